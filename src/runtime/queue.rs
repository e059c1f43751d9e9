//! One event loop's inbox: completion records, host callbacks to be run by the poller, and deadlines.
//!
//! Everything that finishes somewhere else (a DNS answer, a rule update) ends here, and the host takes it out on a
//! thread of its own. Nothing in this file runs host code except [`Queue::poll`], which holds no lock while it does.

use crate::error::Status;
use crate::sys::bell::{Bell, Hung};
use crate::sys::descriptor::Signal;
use crate::sys::{futex, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use once_cell::sync::OnceCell;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, VecDeque};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Says how one pending operation ended. Exactly one per `PENDING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Completion {
    /// The host's own number, echoed.
    pub tag: u64,
    /// The operation's number.
    pub id: u64,
    /// What kind of operation it was.
    pub kind: i32,
    /// 0: call the operation again for its result; negative: it ended without one.
    pub status: i32,
}

/// Host code to be run by the poller.
pub type Job = Box<dyn FnOnce() + Send>;

/// What [`Queue::set_notify`] takes: must only schedule a poll.
pub type Notify = Arc<dyn Fn() + Send + Sync>;

/// Bounds and behaviour of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// Records and jobs that may wait, each.
    pub capacity: usize,
    /// A blocking call on the polling thread is refused instead of waiting for itself.
    pub is_loop: bool,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions { capacity: 65_536, is_loop: false }
    }
}

/// See the module.
pub struct Queue {
    inner: Mutex<Inner>,
    /// Counts wake-ups; what a poller sleeps on.
    word: AtomicU32,
    /// Set by cancels, which may come from a signal handler and so take no lock.
    attention: AtomicBool,
    signal: OnceCell<Signal>,
    notify: Bell,
    /// [`thread::token`] of the thread that polled last, 0 before.
    poller: AtomicUsize,
    is_loop: bool,
    /// Engines that have this as their own queue.
    users: Mutex<Vec<u64>>,
}

struct Inner {
    records: VecDeque<Completion>,
    jobs: VecDeque<(u64, Job)>,
    pending: Vec<Option<Pending>>,
    vacant: Vec<usize>,
    deadlines: BTreeSet<(Instant, usize)>,
    capacity: usize,
    polling: bool,
    woken: bool,
    lost: u64,
}

struct Pending {
    completion: Completion,
    deadline: Option<Instant>,
    canceled: Arc<AtomicBool>,
}

/// The right to post one record; see [`Queue::expect`].
#[derive(Debug)]
pub struct Ticket {
    queue: Arc<Queue>,
    slot: usize,
}

impl Queue {
    /// An empty queue.
    pub fn new(options: QueueOptions) -> Arc<Queue> {
        Arc::new(Queue {
            inner: Mutex::new(Inner {
                records: VecDeque::new(),
                jobs: VecDeque::new(),
                pending: Vec::new(),
                vacant: Vec::new(),
                deadlines: BTreeSet::new(),
                capacity: options.capacity.max(1),
                polling: false,
                woken: false,
                lost: 0,
            }),
            word: AtomicU32::new(0),
            attention: AtomicBool::new(false),
            signal: OnceCell::new(),
            notify: Bell::default(),
            poller: AtomicUsize::new(0),
            is_loop: options.is_loop,
            users: Mutex::new(Vec::new()),
        })
    }

    /// A descriptor that is readable while [`Queue::poll`] has something to do. Made on first use.
    ///
    /// # Errors
    /// [`Status::E_RESOURCES`] when the process has no descriptors left.
    pub fn fd(&self) -> Result<RawFd, Status> {
        let signal = self.signal.get_or_try_init(Signal::new).map_err(|_| Status::E_RESOURCES)?;
        // What came before the descriptor existed must show on it.
        let inner = self.inner.lock();
        if inner.has_work() || inner.woken || self.attention.load(Ordering::SeqCst) {
            signal.raise();
        }
        signal.arm(inner.next_deadline());
        Ok(signal.fd())
    }

    /// Called from any thread when the queue goes from empty to non-empty. `None` takes it back. Returns what it
    /// replaces, so that it is dropped where host code may run; one that is being called at the moment goes later.
    #[allow(clippy::vec_box, reason = "as in the bell")]
    pub fn set_notify(&self, notify: Option<Notify>) -> Vec<Box<Hung>> {
        let before = self.notify.replace(notify);
        let inner = self.inner.lock();
        let waits = inner.has_work() || inner.woken;
        drop(inner);
        if waits {
            self.call_notify();
        }
        before
    }

    /// Time until the next deadline; zero when it has passed, `None` when there is none.
    pub fn deadline(&self) -> Option<Duration> {
        self.inner.lock().next_deadline()
    }

    /// Ends a running poll, or the next one, at once.
    pub fn wakeup(&self) {
        self.inner.lock().woken = true;
        self.ring();
    }

    /// Numbers of the engines that have this as their own queue.
    pub fn users(&self) -> Vec<u64> {
        self.users.lock().clone()
    }

    /// An engine begins to use this queue.
    pub fn add_user(&self, engine: u64) {
        self.users.lock().push(engine);
    }

    /// An engine is gone.
    pub fn remove_user(&self, engine: u64) {
        self.users.lock().retain(|&user| user != engine);
    }

    /// True when this thread is inside [`Queue::poll`] of this queue.
    pub fn is_polled_here(&self) -> bool {
        // Under the lock: else a poll that begins elsewhere between two looks counts as one of this thread's.
        let inner = self.inner.lock();
        inner.polling && self.poller.load(Ordering::Relaxed) == thread::token()
    }

    /// Records and jobs dropped because the queue was full.
    pub fn lost(&self) -> u64 {
        self.inner.lock().lost
    }

    /// Counts what was meant for this queue's host and went another way until it was dropped there.
    pub fn note_lost(&self) {
        self.inner.lock().lost += 1;
    }

    /// True when a blocking call on this thread would have to wait for itself.
    pub fn would_deadlock(&self) -> bool {
        self.is_loop && self.poller.load(Ordering::Relaxed) == this_thread()
    }

    /// Announces an operation whose end will be one record: at `deadline`, when `canceled` is set and
    /// [`Queue::attend`] called, or by [`Ticket::complete`], whichever comes first. Dropping the ticket posts
    /// [`Status::E_CANCELED`].
    ///
    /// # Errors
    /// [`Status::E_LIMIT`] when as many operations are pending as records fit.
    pub fn expect(
        self: &Arc<Queue>,
        completion: Completion,
        deadline: Option<Instant>,
        canceled: Arc<AtomicBool>,
    ) -> Result<Ticket, Status> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let waiting = inner.pending.len() - inner.vacant.len() + inner.records.len();
        if waiting >= inner.capacity {
            return Err(Status::E_LIMIT);
        }
        let entry = Some(Pending { completion, deadline, canceled });
        let slot = match inner.vacant.pop() {
            Some(slot) => slot,
            None => {
                inner.pending.push(None);
                inner.pending.len() - 1
            }
        };
        if let Some(place) = inner.pending.get_mut(slot) {
            *place = entry;
        }
        if let Some(deadline) = deadline {
            inner.deadlines.insert((deadline, slot));
            self.rearm(inner);
        }
        Ok(Ticket { queue: Arc::clone(self), slot })
    }

    /// Has the poller look for operations that were cancelled. Takes no lock and is signal-safe, but for a notify
    /// callback, whose safety is the host's.
    pub fn attend(&self) {
        self.attention.store(true, Ordering::SeqCst);
        self.word.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.word);
        if let Some(signal) = self.signal.get() {
            signal.raise();
        }
        self.notify.ring();
    }

    /// Has the poller run `job`. False, and one more lost, when the queue is full.
    pub fn post(&self, job: Job) -> bool {
        self.post_latest(0, job)
    }

    /// As [`Queue::post`], but replaces a waiting job with the same key (0: never), so that the newest state wins.
    pub fn post_latest(&self, key: u64, job: Job) -> bool {
        let mut inner = self.inner.lock();
        let was_empty = !inner.has_work();
        let waiting = inner.jobs.iter().position(|(other, _)| key != 0 && *other == key);
        let mut old = None;
        if let Some(entry) = waiting.and_then(|at| inner.jobs.get_mut(at)) {
            old = Some(core::mem::replace(&mut entry.1, job));
        } else if inner.jobs.len() >= inner.capacity {
            inner.lost += 1;
            return false;
        } else {
            inner.jobs.push_back((key, job));
        }
        drop(inner);
        drop(old);
        self.ring_if(was_empty);
        true
    }

    /// Waits up to `timeout` for something to do, then runs the jobs and hands out the records that were there at
    /// that moment, at most `room` records. `None` waits without end (until [`Queue::wakeup`]).
    ///
    /// # Errors
    /// [`Status::E_BUSY`] while another thread polls.
    pub fn poll(
        &self,
        timeout: Option<Duration>,
        room: usize,
        mut deliver: impl FnMut(Completion),
    ) -> Result<usize, Status> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut inner = self.inner.lock();
        if inner.polling {
            return Err(Status::E_BUSY);
        }
        inner.polling = true;
        self.poller.store(this_thread(), Ordering::Relaxed);
        loop {
            self.collect(&mut inner);
            if inner.has_work() || inner.woken {
                break;
            }
            let now = Instant::now();
            let left = end.map(|end| end.saturating_duration_since(now));
            if left == Some(Duration::ZERO) {
                break;
            }
            let wait = [left, inner.next_deadline()].into_iter().flatten().min();
            let seen = self.word.load(Ordering::SeqCst);
            MutexGuard::unlocked(&mut inner, || {
                if !self.attention.load(Ordering::SeqCst) {
                    futex::wait(&self.word, seen, wait);
                }
            });
        }
        inner.woken = false;
        let jobs = core::mem::take(&mut inner.jobs);
        let count = inner.records.len().min(room);
        let rest = inner.records.split_off(count);
        let records = core::mem::replace(&mut inner.records, rest);
        if let Some(signal) = self.signal.get()
            && !inner.has_work()
        {
            signal.clear();
            if self.attention.load(Ordering::SeqCst) {
                signal.raise();
            }
            signal.arm(inner.next_deadline());
        }
        drop(inner);
        let mut taken = Taken { queue: self, jobs, records };
        while let Some((_, job)) = taken.jobs.pop_front() {
            job();
        }
        while let Some(record) = taken.records.pop_front() {
            deliver(record);
        }
        drop(taken);
        Ok(count)
    }

    /// Turns passed deadlines and cancels into records.
    fn collect(&self, inner: &mut Inner) {
        if self.attention.swap(false, Ordering::SeqCst) {
            let canceled: Vec<_> = inner
                .pending
                .iter()
                .enumerate()
                .filter(|(_, entry)| entry.as_ref().is_some_and(|e| e.canceled.load(Ordering::SeqCst)))
                .map(|(slot, _)| slot)
                .collect();
            for slot in canceled {
                inner.finish(slot, Status::E_CANCELED);
            }
        }
        let now = Instant::now();
        while let Some(&(deadline, slot)) = inner.deadlines.first() {
            if deadline > now {
                break;
            }
            inner.finish(slot, Status::E_TIMEOUT);
        }
    }

    fn rearm(&self, inner: &Inner) {
        if let Some(signal) = self.signal.get() {
            signal.arm(inner.next_deadline());
        }
        // A poller that sleeps until a later deadline must look again.
        self.word.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.word);
    }

    fn ring(&self) {
        self.word.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.word);
        if let Some(signal) = self.signal.get() {
            signal.raise();
        }
        self.call_notify();
    }

    fn ring_if(&self, was_empty: bool) {
        if was_empty {
            self.ring();
        }
    }

    fn call_notify(&self) {
        self.notify.ring();
        drop(self.notify.sweep());
    }
}

/// What one poll took out. Ends the poll, also when a job panics: what has not had its turn goes back to the front.
struct Taken<'q> {
    queue: &'q Queue,
    jobs: VecDeque<(u64, Job)>,
    records: VecDeque<Completion>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut inner = self.queue.inner.lock();
        inner.polling = false;
        if self.jobs.is_empty() && self.records.is_empty() {
            return;
        }
        self.jobs.append(&mut inner.jobs);
        self.records.append(&mut inner.records);
        core::mem::swap(&mut inner.jobs, &mut self.jobs);
        core::mem::swap(&mut inner.records, &mut self.records);
        drop(inner);
        self.queue.ring();
    }
}

impl Inner {
    fn has_work(&self) -> bool {
        !self.records.is_empty() || !self.jobs.is_empty()
    }

    fn next_deadline(&self) -> Option<Duration> {
        let (deadline, _) = self.deadlines.first()?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Posts the record of a pending operation, unless it has been posted.
    fn finish(&mut self, slot: usize, status: Status) -> bool {
        let Some(entry) = self.pending.get_mut(slot).and_then(Option::take) else { return false };
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, slot));
        }
        // The slot stays taken until its ticket goes, so that a late ticket cannot end another operation.
        self.records.push_back(Completion { status: status.0, ..entry.completion });
        true
    }
}

impl Ticket {
    /// True when the record has been posted, by the deadline or a cancel.
    pub fn is_spent(&self) -> bool {
        let inner = self.queue.inner.lock();
        inner.pending.get(self.slot).is_none_or(Option::is_none)
    }

    /// Posts the record; does nothing when the deadline or a cancel came first.
    pub fn complete(self, status: Status) {
        self.finish(status);
    }

    /// Takes the announcement back: no record is posted.
    pub fn retract(self) {
        let mut inner = self.queue.inner.lock();
        let entry = inner.pending.get_mut(self.slot).and_then(Option::take);
        if let Some(deadline) = entry.and_then(|entry| entry.deadline) {
            inner.deadlines.remove(&(deadline, self.slot));
        }
    }

    fn finish(&self, status: Status) {
        let mut inner = self.queue.inner.lock();
        let was_empty = !inner.has_work();
        let posted = inner.finish(self.slot, status);
        drop(inner);
        self.queue.ring_if(posted && was_empty);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.finish(Status::E_CANCELED);
        self.queue.inner.lock().vacant.push(self.slot);
    }
}

fn this_thread() -> usize {
    thread::token()
}

impl core::fmt::Debug for Queue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Queue").field("is_loop", &self.is_loop).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn flag() -> Arc<AtomicBool> {
        Arc::new(AtomicBool::new(false))
    }

    fn record(id: u64) -> Completion {
        Completion { tag: id * 10, id, kind: 1, status: 0 }
    }

    fn poll(queue: &Queue, timeout: Option<Duration>) -> Vec<Completion> {
        let mut got = Vec::new();
        queue.poll(timeout, 64, |c| got.push(c)).unwrap();
        got
    }

    #[test]
    fn each_pending_operation_ends_in_exactly_one_record() {
        let queue = Queue::new(QueueOptions::default());
        let canceled = flag();
        let expired = queue.expect(record(1), Some(Instant::now()), flag()).unwrap();
        let done = queue.expect(record(2), None, flag()).unwrap();
        let by_signal = queue.expect(record(3), None, Arc::clone(&canceled)).unwrap();
        let dropped = queue.expect(record(4), None, flag()).unwrap();
        done.complete(Status::OK);
        drop(dropped);
        canceled.store(true, Ordering::SeqCst);
        queue.attend();
        let mut got: Vec<_> = poll(&queue, Some(Duration::ZERO)).iter().map(|c| (c.id, c.status)).collect();
        got.sort_unstable();
        let (timeout, cancel) = (Status::E_TIMEOUT.0, Status::E_CANCELED.0);
        assert_eq!(got, [(1, timeout), (2, 0), (3, cancel), (4, cancel)]);
        queue.expect(record(5), Some(Instant::now()), flag()).unwrap().retract();
        assert_eq!(queue.deadline(), None);
        expired.complete(Status::OK);
        by_signal.complete(Status::OK);
        assert!(poll(&queue, Some(Duration::ZERO)).is_empty());
        let inner = queue.inner.lock();
        assert_eq!(inner.vacant.len(), inner.pending.len());
    }

    #[test]
    fn a_blocked_poll_is_ended_by_a_record_from_another_thread() {
        let queue = Queue::new(QueueOptions::default());
        let ticket = queue.expect(record(9), None, flag()).unwrap();
        let thread = std::thread::spawn(move || ticket.complete(Status::OK));
        assert_eq!(poll(&queue, None), [record(9)]);
        thread.join().unwrap();
        queue.wakeup();
        assert!(poll(&queue, None).is_empty(), "a wake-up before the poll is not lost");
    }

    #[test]
    fn the_descriptor_shows_work_that_came_before_it_and_goes_quiet_after_the_poll() {
        let queue = Queue::new(QueueOptions::default());
        let ran = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&ran);
        assert!(queue.post(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })));
        let fd = queue.fd().unwrap();
        assert!(readable(fd));
        poll(&queue, Some(Duration::ZERO));
        assert!(!readable(fd));
        assert_eq!(ran.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_wake_up_that_came_before_the_descriptor_shows_on_it() {
        let queue = Queue::new(QueueOptions::default());
        queue.wakeup();
        let fd = queue.fd().unwrap();
        assert!(readable(fd));
        poll(&queue, Some(Duration::ZERO));
        assert!(!readable(fd));
    }

    #[test]
    fn a_deadline_that_passes_shows_on_the_descriptor_and_ends_in_a_record() {
        let queue = Queue::new(QueueOptions::default());
        let fd = queue.fd().unwrap();
        let far = Instant::now() + Duration::from_secs(3600);
        let late = queue.expect(record(1), Some(far), flag()).unwrap();
        assert!(queue.deadline().is_some_and(|left| left > Duration::from_secs(3000)));
        assert!(!readable(fd) && !late.is_spent());
        let past = queue.expect(record(2), Some(Instant::now()), flag()).unwrap();
        assert_eq!(queue.deadline(), Some(Duration::ZERO));
        while !readable(fd) {
            std::thread::yield_now();
        }
        let got: Vec<_> = poll(&queue, None).iter().map(|c| (c.id, c.status)).collect();
        assert_eq!(got, [(2, Status::E_TIMEOUT.0)]);
        assert!(past.is_spent() && !readable(fd));
        late.complete(Status::OK);
        assert_eq!(poll(&queue, None), [record(1)]);
        assert_eq!(queue.deadline(), None);
    }

    #[test]
    fn a_job_that_panics_takes_nothing_with_it() {
        let queue = Queue::new(QueueOptions::default());
        let ran = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&ran);
        queue.expect(record(5), None, flag()).unwrap().complete(Status::OK);
        queue.post(Box::new(|| panic!("meant")));
        queue.post(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        let polled = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| poll(&queue, None)));
        assert!(polled.is_err() && ran.load(Ordering::Relaxed) == 0);
        assert_eq!(poll(&queue, None), [record(5)]);
        assert_eq!(ran.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_full_queue_counts_what_it_loses_and_a_keyed_job_replaces_its_older_self() {
        let queue = Queue::new(QueueOptions { capacity: 1, is_loop: false });
        let seen = Arc::new(AtomicU64::new(0));
        for value in [1, 2] {
            let seen = Arc::clone(&seen);
            assert!(queue.post_latest(7, Box::new(move || seen.store(value, Ordering::Relaxed))));
        }
        assert!(!queue.post(Box::new(|| ())));
        assert_eq!(queue.lost(), 1);
        poll(&queue, Some(Duration::ZERO));
        assert_eq!(seen.load(Ordering::Relaxed), 2);
        let _one = queue.expect(record(1), None, flag()).unwrap();
        assert_eq!(queue.expect(record(2), None, flag()).err(), Some(Status::E_LIMIT));
    }

    #[test]
    fn only_the_polling_thread_of_a_loop_would_wait_for_itself() {
        let queue = Queue::new(QueueOptions { is_loop: true, ..QueueOptions::default() });
        assert!(!queue.would_deadlock());
        poll(&queue, Some(Duration::ZERO));
        assert!(queue.would_deadlock());
        let other = Arc::clone(&queue);
        assert!(!std::thread::spawn(move || other.would_deadlock()).join().unwrap());
    }

    fn readable(fd: RawFd) -> bool {
        let source = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        assert!(source.is_ok(), "an open descriptor");
        crate::sys::descriptor::is_readable(fd)
    }
}
