//! The mock selector: providers with protocol `mock` are served only to calls that ask for them.
//!
//! Attachment `invocation.need.mock` absent: the real ones. `true` in any case: the mocks, possibly nobody. Any
//! other value, the empty one too: everybody.

/// The attachment that asks for mocks.
pub const NEED_MOCK: &str = "invocation.need.mock";
/// The protocol of mock providers.
pub const PROTOCOL: &str = "mock";

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The attachment is absent: real providers.
    Real,
    /// The attachment says true: mock providers.
    Mocks,
    /// The attachment says anything else: all providers.
    Everybody,
}

impl Wanted {
    /// What the attachment's value asks for.
    pub fn by(attachment: Option<&str>) -> Wanted {
        match attachment {
            None => Wanted::Real,
            Some(text) if text.eq_ignore_ascii_case("true") => Wanted::Mocks,
            Some(_) => Wanted::Everybody,
        }
    }
}
