//! Second half: which provider serves this call? Vocabulary and algorithm; no I/O, no rule text.

pub mod bits;
pub mod builder;
mod calls;
#[allow(clippy::module_inception)]
pub mod chain;
pub mod choice;
mod column;
mod compiled;
pub mod explain;
pub(crate) mod hash;
pub mod invocation;
pub mod live;
mod looked;
mod memo;
pub mod names;
pub mod pick;
pub mod picking;
pub(crate) mod plan;
pub mod program;
pub mod recent;
pub mod reference;
pub mod router;
mod run;
mod selection;
pub mod session;
pub mod snapshot;
pub mod store;
pub mod url;
pub mod view;
