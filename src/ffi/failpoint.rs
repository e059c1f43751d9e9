//! Panics on demand inside the boundary, for the tests of the guards. Only with feature `failpoints`, never shipped, not
//! in the header.

use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Where a panic can be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Point {
    /// Inside a guard, before the body runs.
    Guard = 0,
    /// After an exclusive handle was taken for a call.
    Exclusive = 1,
}

/// Which points panic, and how often they have since they were armed.
static ARMED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
static FIRED: [AtomicI64; 2] = [const { AtomicI64::new(0) }; 2];

/// Panics when the point is armed.
#[allow(clippy::panic, reason = "what this is for")]
#[allow(clippy::indexing_slicing, reason = "one flag per point")]
pub(crate) fn reach(point: Point) {
    if ARMED[point as usize].load(Ordering::Relaxed) {
        FIRED[point as usize].fetch_add(1, Ordering::Relaxed);
        panic!("failpoint {point:?}");
    }
}

/// From now on every pass of a point panics (`on` 1) or none does (0). Returns how often it has since the last call.
#[unsafe(no_mangle)]
pub extern "C" fn byway_failpoint_arm(point: i32, on: i32) -> i64 {
    let point = usize::try_from(point).unwrap_or(usize::MAX);
    let (Some(armed), Some(fired)) = (ARMED.get(point), FIRED.get(point)) else { return -1 };
    armed.store(on != 0, Ordering::Relaxed);
    fired.swap(0, Ordering::Relaxed)
}
