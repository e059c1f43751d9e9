//! What every context is given before a script sees it.

/// Removes what a sandbox must not have and bounds what does not poll. Evaluates to a function that takes
/// `(now, offset)`: the clock in milliseconds, and minutes east of UTC or `undefined` for the system's zone.
pub(super) const SOURCE: &str = include_str!("hardening.js");
