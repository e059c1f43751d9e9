//! Second half: which provider serves this call? Vocabulary and algorithm; no I/O, no rule text.

pub mod invocation;
pub mod program;
pub mod reference;
pub mod url;
