//! Second half: which provider serves this call? Vocabulary and algorithm; no I/O, no rule text.

pub mod bits;
mod column;
mod hash;
pub mod invocation;
pub mod live;
pub mod names;
pub mod pick;
pub mod program;
pub mod reference;
pub mod router;
mod selection;
pub mod snapshot;
pub mod store;
pub mod url;
