//! The sandboxed JavaScript engine, shared by proxy scripts and script rules (feature `script`).
//!
//! A [`Sandbox`] is one QuickJS context on one thread: no input, no output, no modules, no `eval`, no `Function`
//! constructor, bounded in time, memory and stack ([`Limits`]). Native functions that loop without asking whether
//! time is up are replaced or given a bound on their input (`hardening.js`).
//!
//! Time is the processor time of the script's thread, so that a machine that stands still or is busy with other work
//! ends no good script; a wall clock only stops what gets hardly any processor at all ([`Bound`]).
//!
//! A [`Pool`] runs scripts on its own few threads, so an overrun never takes a host's thread along: the caller
//! stops waiting, the thread is written off until it comes back. A script is compiled once per thread and its
//! context is kept there.

mod hardening;
mod pool;
mod sandbox;

pub use pool::{Bound, Pool, PoolLimits, Script, brief_wait, next_id};
pub use sandbox::{Sandbox, Trap, position};

/// Re-exported so that the rooms above build their host functions with the same version.
pub use rquickjs;

use std::time::Duration;

/// What one script may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of heap per context. Below 32 MiB the engine itself is not safe against allocation failures, so
    /// smaller values are raised to that.
    pub memory: usize,
    /// Bytes of stack.
    pub stack: usize,
    /// Script time per call, loading included when it is the first: processor time of its thread.
    pub time: Duration,
    /// Bytes of source text.
    pub source: usize,
    /// Bytes of `alert` text kept per call.
    pub alerts: usize,
}

impl Limits {
    /// 32 MiB of heap, the least that is accepted.
    pub const LEAST_MEMORY: usize = 32 << 20;
}

impl Default for Limits {
    /// 32 MiB of heap, 256 KiB of stack, 250 ms, 1 MiB of source, 2 KiB of alerts.
    fn default() -> Self {
        Limits {
            memory: Limits::LEAST_MEMORY,
            stack: 256 << 10,
            time: Duration::from_millis(250),
            source: 1 << 20,
            alerts: 2 << 10,
        }
    }
}

/// The zone in which a script sees local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Zone {
    /// The system's.
    #[default]
    System,
    /// This many minutes east of UTC.
    Fixed(i32),
}
