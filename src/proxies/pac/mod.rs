//! Proxy auto-configuration: what a script is told, what its answer means, where one is looked for.
//!
//! Reading results and names needs no engine; running a script needs the feature `script`.

pub mod answer;
pub mod question;
pub mod wpad;
