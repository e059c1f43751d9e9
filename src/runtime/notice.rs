//! How an operation that waits learns that it may go on: one word to sleep on, one sticky cancel flag, and, while the
//! host polls instead of blocking, one ticket of its queue.

use super::queue::{Completion, Queue, Ticket};
use crate::error::Status;
use crate::sys::bell::{Bell, Clapper};
use crate::sys::futex;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// See the module. Shared between the operation and whoever wakes or cancels it.
#[derive(Debug)]
pub struct Notice {
    word: AtomicU32,
    canceled: Arc<AtomicBool>,
    ticket: Mutex<Option<Ticket>>,
    hook: Bell,
    queue: Arc<Queue>,
}

/// What [`Notice::seen`] gives and [`Notice::wait`] takes: nothing that happens in between is missed.
#[derive(Clone, Copy, Debug)]
pub struct Seen(u32);

impl Notice {
    /// For an operation whose records go to `queue`.
    pub fn new(queue: Arc<Queue>) -> Arc<Notice> {
        Arc::new(Notice {
            word: AtomicU32::new(0),
            canceled: Arc::new(AtomicBool::new(false)),
            ticket: Mutex::new(None),
            hook: Bell::default(),
            queue,
        })
    }

    /// The queue of the operation.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// True once [`Notice::cancel`] was called.
    #[inline]
    pub fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::SeqCst)
    }

    /// The present moment. Take it before looking whether there is something to do.
    pub fn seen(&self) -> Seen {
        Seen(self.word.load(Ordering::SeqCst))
    }

    /// Sleeps until something happened after `seen`, or `deadline`. False when the deadline has passed.
    pub fn wait(&self, seen: Seen, deadline: Option<Instant>) -> bool {
        while self.word.load(Ordering::SeqCst) == seen.0 {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            futex::wait(&self.word, seen.0, left);
        }
        true
    }

    /// Has `hook` run at every wake and cancel from now on, or nothing: on whatever thread that is, also in a signal
    /// handler, so it may only set flags and wake. Look at the flag of cancels afterwards.
    pub fn set_hook(&self, hook: Option<Arc<Clapper>>) {
        drop(self.hook.replace(hook));
    }

    /// Something happened: ends a wait, and posts the record of a pending poll.
    pub fn wake(&self) {
        self.word.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.word);
        let ticket = self.ticket.lock().take();
        if let Some(ticket) = ticket {
            ticket.complete(Status::OK);
        }
        self.hook.ring();
    }

    /// Cancels the operation for good. Any thread; takes no lock, signal-safe.
    pub fn cancel(&self) {
        self.canceled.store(true, Ordering::SeqCst);
        self.word.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.word);
        self.hook.ring();
        self.queue.attend();
    }

    /// Has one record posted when something happens after `seen`, at once when it already has, and at the latest at
    /// `deadline`, with [`Status::E_TIMEOUT`].
    ///
    /// # Errors
    /// [`Status::E_LIMIT`] when the queue has no room, [`Status::E_STATE`] when a record is already on its way.
    pub fn announce(
        &self,
        seen: Seen,
        completion: Completion,
        deadline: Option<Instant>,
    ) -> Result<(), Status> {
        let mut place = self.ticket.lock();
        if place.as_ref().is_some_and(|ticket| !ticket.is_spent()) {
            return Err(Status::E_STATE);
        }
        *place = Some(self.queue.expect(completion, deadline, Arc::clone(&self.canceled))?);
        drop(place);
        if self.word.load(Ordering::SeqCst) != seen.0 {
            let ticket = self.ticket.lock().take();
            if let Some(ticket) = ticket {
                let status = if self.is_canceled() { Status::E_CANCELED } else { Status::OK };
                ticket.complete(status);
            }
        }
        Ok(())
    }

    /// Ends a pending poll with `status`, for shutdown and free.
    pub fn finish(&self, status: Status) {
        let ticket = self.ticket.lock().take();
        if let Some(ticket) = ticket {
            ticket.complete(status);
        }
    }

    /// Takes a record announcement back whose operation went on without waiting for it. The record is posted all the
    /// same: every `PENDING` has one.
    pub fn retract(&self) {
        self.finish(Status::OK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::queue::QueueOptions;

    fn records(queue: &Queue) -> Vec<i32> {
        let mut got = Vec::new();
        queue.poll(Some(Duration::ZERO), 8, |c| got.push(c.status)).unwrap();
        got
    }

    #[test]
    fn a_wake_between_look_and_wait_is_not_missed() {
        let queue = Queue::new(QueueOptions::default());
        let notice = Notice::new(Arc::clone(&queue));
        let seen = notice.seen();
        notice.wake();
        assert!(notice.wait(seen, None));
        notice.announce(seen, Completion::default(), None).unwrap();
        assert_eq!(records(&queue), [0]);
    }

    #[test]
    fn cancel_ends_a_blocked_wait_and_a_pending_poll() {
        let queue = Queue::new(QueueOptions::default());
        let notice = Notice::new(Arc::clone(&queue));
        let seen = notice.seen();
        notice.announce(seen, Completion::default(), None).unwrap();
        assert_eq!(notice.announce(seen, Completion::default(), None), Err(Status::E_STATE));
        let other = Arc::clone(&notice);
        let thread = std::thread::spawn(move || other.cancel());
        assert!(notice.wait(seen, None));
        thread.join().unwrap();
        assert_eq!(records(&queue), [Status::E_CANCELED.0]);
        assert!(notice.is_canceled());
    }

    #[test]
    fn a_poll_that_timed_out_can_be_announced_again() {
        let queue = Queue::new(QueueOptions::default());
        let notice = Notice::new(Arc::clone(&queue));
        let seen = notice.seen();
        notice.announce(seen, Completion::default(), Some(Instant::now())).unwrap();
        assert_eq!(notice.announce(seen, Completion::default(), None), Err(Status::E_STATE));
        assert_eq!(records(&queue), [Status::E_TIMEOUT.0]);
        notice.announce(seen, Completion::default(), None).unwrap();
        notice.wake();
        assert_eq!(records(&queue), [0]);
    }

    #[test]
    fn a_deadline_ends_a_wait() {
        let notice = Notice::new(Queue::new(QueueOptions::default()));
        assert!(!notice.wait(notice.seen(), Some(Instant::now())));
    }
}
