//! What stands for a selector that waits: how it is woken, and what a shutdown stops.

use crate::engine::{Operation, Telling};
use crate::error::Status;
use crate::runtime::notice::Notice;
use crate::runtime::queue::Queue;
use core::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;

/// Made when a selector waits for the first time.
pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) notice: Arc<Notice>,
    pub(super) stopped: AtomicI32,
}

impl Waiter {
    /// `id` is what the engine knows it by.
    pub(super) fn new(id: u64, queue: &Arc<Queue>) -> Waiter {
        Waiter { id, notice: Notice::new(Arc::clone(queue)), stopped: AtomicI32::new(0) }
    }
}

impl Operation for Waiter {
    fn stop(&self, status: Status) -> Option<Telling> {
        self.stopped.store(status.0, Ordering::SeqCst);
        self.notice.wake();
        None
    }
}
