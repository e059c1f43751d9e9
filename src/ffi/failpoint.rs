//! Panics on demand inside the boundary, for the tests of the guards. Only with feature `failpoints`, never shipped, not
//! in the header.

use core::sync::atomic::{AtomicI64, Ordering};

/// Where a panic can be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Point {
    /// Inside a guard, before the body runs.
    Guard = 0,
    /// After an exclusive handle was taken for a call.
    Exclusive = 1,
}

static LEFT: [AtomicI64; 2] = [const { AtomicI64::new(0) }; 2];

/// Panics when its turn has come.
#[allow(clippy::panic, reason = "what this is for")]
#[allow(clippy::indexing_slicing, reason = "one counter per point")]
pub(crate) fn reach(point: Point) {
    let left = &LEFT[point as usize];
    if left.load(Ordering::Relaxed) > 0 && left.fetch_sub(1, Ordering::Relaxed) == 1 {
        panic!("failpoint {point:?}");
    }
}

/// The `n`-th pass of a point from now on panics; 0 takes it back. Returns how many passes were still to come.
#[unsafe(no_mangle)]
pub extern "C" fn byway_failpoint_arm(point: i32, n: i64) -> i64 {
    let left = usize::try_from(point).ok().and_then(|point| LEFT.get(point));
    left.map_or(-1, |left| left.swap(n, Ordering::Relaxed))
}
