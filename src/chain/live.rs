//! Counts of living objects, so that a test or a host can see that updates leave nothing behind.

use std::sync::atomic::{AtomicI64, Ordering};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// Invoker lists.
    Invokers = 0,
    /// Compiled worlds: rules and list of one chain.
    Plan = 1,
    /// Memoised results.
    Outcome = 2,
    /// Chains.
    Chain = 3,
    /// Sessions.
    Session = 4,
    /// Cached selections of rows.
    Selection = 5,
}

const KINDS: usize = 6;

static COUNTS: [AtomicI64; KINDS] = [const { AtomicI64::new(0) }; KINDS];

/// How many objects of a kind are alive in this process.
pub fn count(kind: Kind) -> i64 {
    COUNTS.get(kind as usize).map_or(0, |count| count.load(Ordering::SeqCst))
}

/// Counts its owner while it lives.
#[derive(Debug)]
pub(crate) struct Live(Kind);

impl Live {
    pub(crate) fn new(kind: Kind) -> Live {
        if let Some(count) = COUNTS.get(kind as usize) {
            count.fetch_add(1, Ordering::SeqCst);
        }
        Live(kind)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(count) = COUNTS.get(self.0 as usize) {
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
