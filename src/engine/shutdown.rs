//! Ending an engine: cancel, drain, run every outstanding `destroy`, and after that never host code again.

use super::{CLOSED, CLOSING, Engine, OPEN, host};
use crate::error::Status;
use crate::sys::{futex, record};
use core::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Counts callbacks that ended while some engine was closing; what a shutdown sleeps on.
pub(super) static CALLBACKS_LEFT: AtomicU32 = AtomicU32::new(0);

/// Looks again whenever a callback or a `destroy` has ended; false when no time is `left`.
fn wait_until(left: &impl Fn() -> Duration, ready: impl Fn() -> bool) -> bool {
    loop {
        let seen = CALLBACKS_LEFT.load(Ordering::SeqCst);
        if ready() {
            return true;
        }
        let left = left();
        if left == Duration::ZERO {
            return false;
        }
        futex::wait(&CALLBACKS_LEFT, seen, Some(left));
    }
}

impl Engine {
    /// Cancels everything, waits up to `timeout` for running callbacks, then runs every outstanding `destroy` and waits
    /// for those that run on other threads. Idempotent. [`Status::PENDING`] when one is still running: call again.
    ///
    /// # Errors
    /// [`Status::E_REENTRANT`] from inside a callback of this engine.
    pub fn shutdown(&self, timeout: Duration) -> Result<Status, Status> {
        if self.is_inside_callback() {
            return Err(Status::E_REENTRANT);
        }
        host::adopt_orphans();
        self.close();
        let end = Instant::now().checked_add(timeout);
        let left = || end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        if !wait_until(&left, || !record::anyone_inside(self.id)) {
            return Ok(Status::PENDING);
        }
        self.sources.stop(left());
        if !wait_until(&left, || self.sets.end_all(|| self.callback_left())) {
            return Ok(Status::PENDING);
        }
        self.state.store(CLOSED, Ordering::SeqCst);
        Ok(Status::OK)
    }

    /// The part of shutdown that never waits; what the last release of the handle does.
    pub fn close(&self) {
        if self.check_open().is_err() {
            return;
        }
        // Counts as inside a callback throughout: a second shutdown waits until everybody has been told.
        let scope = record::current().enter_callback(self.id, 0);
        if self.state.compare_exchange(OPEN, CLOSING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.sources.stop(Duration::ZERO);
            // `remember` looks at the state under the same lock, so nothing slips in behind this.
            let waiting = core::mem::take(&mut *self.operations.lock());
            for operation in waiting.into_values() {
                // No further call of this engine begins, but whoever was asked learns that nobody waits any more.
                if let Some(tell) = operation.stop(Status::E_SHUTDOWN)
                    && scope.is_some()
                {
                    tell();
                }
            }
        }
        drop(scope);
        self.after_callback();
    }

    /// True after a shutdown that ended with OK.
    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) == CLOSED
    }

    #[cold]
    pub(super) fn callback_left(&self) {
        CALLBACKS_LEFT.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&CALLBACKS_LEFT);
    }
}
