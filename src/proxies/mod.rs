//! Built-in proxy selectors.
