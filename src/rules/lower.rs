//! Rules to programs.

/// What a hash key names; `None` for anything a call does not have.
pub fn hash_key(text: &str) -> Option<()> {
    (!text.is_empty()).then_some(())
}
