//! Proxy auto-configuration: what a script is told, what its answer means, where one is looked for.
//!
//! Reading results and names needs no engine; running a script needs the feature `script`.

pub mod answer;
#[cfg(feature = "script")]
mod engine;
#[cfg(feature = "script")]
mod helpers;
pub mod question;
#[cfg(feature = "script")]
mod selector;
pub mod text;
pub mod wpad;

#[cfg(feature = "script")]
pub use engine::{Calendar, Question};
#[cfg(feature = "script")]
pub use selector::{Evaluation, Names, NoNames, NothingUsable, Pac, PacOptions, Step};
