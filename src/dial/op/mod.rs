//! One operation: the race, its sockets and its reports, driven by whoever calls [`Operation::step`].
//!
//! A step never waits. Between steps the host watches either one descriptor ([`Operation::pollable_fd`]) or the
//! poll set and the deadline; a step without events looks for itself. All host code (routes, reports, hooks) runs
//! inside a step, with no lock held; a resolver that answers in place delays the race by as long as it takes.
//!
//! Exactly one socket is handed over. Every other one is closed on every path, by the thread that steps or drops.

mod event;
mod lanes;
mod outcome;

pub use event::{Connected, Event, EventKind, FailureRecord, PollEntry};

use super::attempt::{Failure, Link};
use super::explain::Trace;
use super::fault::Fault;
use super::handshake::Handshake;
use super::options::Options;
use super::race::{Action, Candidate, Family, Millis, Race};
use super::source::{Batch, Hooks, Leg, Next, RouteSource, Waker};
use crate::error::{Error, Result, Source, Status};
use crate::sys::fork;
use crate::sys::poller::{INNER, Poller, monotonic_ns};
use crate::sys::socket::{PollFd, poll};
use crate::sys::wake::Wake;
use core::sync::atomic::{AtomicI32, Ordering};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Wake-up flag: the caller cancels.
pub(super) const CANCEL: u32 = 1;
/// Wake-up flag: the source has news.
pub(super) const SOURCE: u32 = 2;
/// Wake-up flag: credentials have arrived.
pub(super) const ANSWER: u32 = 4;

/// An answer to `Decision::Later`: which attempt, and the header value.
type LateAnswer = (u32, Option<String>);

/// What other threads may touch of an operation.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) wake: Wake,
    /// Why it was cancelled, when that was not the caller's wish; 0 when it was.
    stopped: AtomicI32,
    answers: Mutex<Vec<LateAnswer>>,
}

/// Cancels an operation from any thread and from a signal handler; sticky.
#[derive(Clone)]
pub struct Canceler(Arc<Shared>);

impl Canceler {
    /// One atomic and at most one write; no lock, no allocation.
    pub fn cancel(&self) {
        self.0.wake.raise(CANCEL);
    }

    /// As [`Canceler::cancel`]; the operation then ends with `status` instead of `E_CANCELED`.
    pub fn stop(&self, status: Status) {
        self.0.stopped.store(status.0, Ordering::SeqCst);
        self.0.wake.raise(CANCEL);
    }

    /// True once cancelled.
    pub fn is_canceled(&self) -> bool {
        self.0.wake.flags() & CANCEL != 0
    }
}

/// Gives late answers to [`super::Decision::Later`], from any thread.
#[derive(Clone)]
pub struct Authenticator(Arc<Shared>);

impl Authenticator {
    /// A value for `Proxy-Authorization`, or none to give up. An attempt that is over ignores it.
    pub fn answer(&self, attempt: u32, value: Option<String>) {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner).push((attempt, value));
        self.0.wake.raise(ANSWER);
    }

    /// Takes the answer back that was given for an attempt, if there is one: for hooks that answer in place through
    /// this same door.
    pub fn take(&self, attempt: u32) -> Option<Option<String>> {
        let mut held = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let index = held.iter().position(|(id, _)| *id == attempt)?;
        Some(held.swap_remove(index).1)
    }
}

/// What a step found.
#[derive(Debug)]
pub enum Step {
    /// Not decided yet.
    Pending,
    /// A socket can be taken.
    Ready,
    /// It is over without a socket.
    Ended(Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// `connect(2)` is under way; `again` when the proxy dialogue asked for a new connection.
    Connecting {
        again: bool,
    },
    /// TCP stands, nothing to do on the socket.
    Tcp,
    Talking,
    /// Waits for the host's credentials.
    Parked,
    /// Offered to the host; the socket is ours until it is taken.
    Offered,
}

struct Lane {
    id: u32,
    route: u32,
    link: Option<Link>,
    dialogue: Option<Box<Handshake>>,
    phase: Phase,
    started: Millis,
    interest: i16,
    watched: bool,
    revents: i16,
    failure: Option<Failure>,
}

enum State<R> {
    Running,
    Won(Box<Won<R>>),
    Ended(Error),
}

struct Won<R> {
    attempt: u32,
    route: R,
    link: Option<Link>,
    needs_proxy_tls: bool,
    reported: bool,
}

/// One operation over the routes of `S`.
pub struct Operation<S: RouteSource> {
    source: S,
    hooks: Box<dyn Hooks<S::Route> + Send>,
    options: Arc<Options>,
    race: Race,
    routes: SmallVec<[S::Route; 4]>,
    lanes: SmallVec<[Lane; 4]>,
    failures: Vec<FailureRecord<S::Route>>,
    trace: Trace,
    events: VecDeque<Event>,
    shared: Arc<Shared>,
    poller: Option<Poller>,
    /// Start on the monotonic clock, in nanoseconds; 0 before the first step.
    origin: u64,
    /// A clock of the caller's: milliseconds.
    test_clock: Option<Millis>,
    wait: Option<Millis>,
    source_pending: bool,
    selections: u32,
    family_open: bool,
    generation: u64,
    state: State<S::Route>,
    /// What ended it from outside, instead of a plain cancel.
    ended_by: Option<Error>,
}

/// The failure of a descriptor that could not be watched.
fn unwatchable(error: &std::io::Error) -> Failure {
    (Fault::FdLimit, error.raw_os_error().unwrap_or(0))
}

impl<S: RouteSource> Operation<S> {
    /// An operation that has not started; the first step starts it.
    pub fn new(source: S, options: Arc<Options>, hooks: Box<dyn Hooks<S::Route> + Send>) -> Self {
        fork::init();
        Operation {
            source,
            hooks,
            race: Race::new(options.rules),
            options,
            routes: SmallVec::new(),
            lanes: SmallVec::new(),
            failures: Vec::new(),
            trace: Trace::default(),
            events: VecDeque::new(),
            shared: Arc::default(),
            poller: None,
            origin: 0,
            test_clock: None,
            wait: Some(0),
            source_pending: false,
            selections: 0,
            family_open: false,
            generation: 0,
            state: State::Running,
            ended_by: None,
        }
    }

    /// Sets the host's hooks; to be called before the first step.
    pub fn set_hooks(&mut self, hooks: Box<dyn Hooks<S::Route> + Send>) {
        self.hooks = hooks;
    }

    /// For cancelling from elsewhere.
    pub fn canceler(&self) -> Canceler {
        Canceler(Arc::clone(&self.shared))
    }

    /// For credentials that come later.
    pub fn authenticator(&self) -> Authenticator {
        Authenticator(Arc::clone(&self.shared))
    }

    /// Where routes come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Where routes come from, to change it between steps.
    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// The failed attempts so far, in the order in which they failed.
    pub fn failures(&self) -> &[FailureRecord<S::Route>] {
        &self.failures
    }

    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn leg_of(&self, route: u32) -> Option<Leg<'_>> {
        self.routes.get(route as usize).map(|route| self.source.leg(route))
    }

    pub(super) fn verdict(&self) -> Option<core::result::Result<u32, &Error>> {
        match &self.state {
            State::Running => None,
            State::Won(won) => Some(Ok(won.attempt)),
            State::Ended(error) => Some(Err(error)),
        }
    }

    /// Milliseconds since the first step.
    pub fn now(&self) -> Millis {
        match self.test_clock {
            Some(now) => now,
            None if self.origin == 0 => 0,
            None => monotonic_ns().saturating_sub(self.origin) / 1_000_000,
        }
    }

    /// A time of ours on the monotonic clock, in nanoseconds.
    fn moment(&self, at: Millis) -> u64 {
        self.origin.saturating_add(at.saturating_mul(1_000_000))
    }

    fn check_process(&self) -> Result<()> {
        if !fork::is_child() {
            return Ok(());
        }
        Err(Error::new(Status::E_FORKED, "the operation belongs to the process that was forked"))
    }

    // ---- what a host watches

    /// Milliseconds until a step is due, rounded up; 0 means now, `None` not before a descriptor says so.
    pub fn deadline_ms(&self) -> Option<Millis> {
        if self.shared.wake.flags() != 0 {
            return Some(0);
        }
        let at = self.wait?;
        if self.test_clock.is_some() || self.origin == 0 {
            return Some(at.saturating_sub(self.now()));
        }
        let left = self.moment(at).saturating_sub(monotonic_ns());
        Some(left.div_ceil(1_000_000))
    }

    /// Every descriptor to watch now, the wake-up descriptor among them, and a number that changes with the set.
    ///
    /// # Errors
    /// `E_LOCAL` when the wake-up descriptor cannot be made, `E_FORKED`.
    pub fn pollset(&mut self, mut each: impl FnMut(PollEntry)) -> Result<u64> {
        self.check_process()?;
        let fd = self.wake_fd()?;
        each(PollEntry { fd, events: libc::POLLIN, ..PollEntry::default() });
        for lane in self.lanes.iter().filter(|lane| lane.interest != 0) {
            if let Some(link) = &lane.link {
                each(PollEntry { id: lane.id, fd: link.fd(), events: lane.interest, ..PollEntry::default() });
            }
        }
        Ok(self.generation)
    }

    fn wake_fd(&self) -> Result<RawFd> {
        self.shared.wake.fd().map_err(|error| {
            let number = error.raw_os_error().unwrap_or(0);
            Error::new(Status::E_LOCAL, "no descriptor for wake-ups").os(number).source(Source::Socket)
        })
    }

    /// One descriptor for everything: readable when a step is due. The same for the operation's whole life; the
    /// operation closes it.
    ///
    /// # Errors
    /// `E_LOCAL` when it cannot be made, `E_FORKED`.
    pub fn pollable_fd(&mut self) -> Result<RawFd> {
        self.check_process()?;
        if let Some(poller) = &self.poller {
            return Ok(poller.fd());
        }
        let wake = self.wake_fd()?;
        let failed = |error: std::io::Error| {
            let number = error.raw_os_error().unwrap_or(0);
            Error::new(Status::E_LOCAL, "no descriptor for the event loop").os(number).source(Source::Socket)
        };
        let poller = Poller::new().map_err(failed)?;
        poller.add(wake, libc::POLLIN, INNER).map_err(failed)?;
        for lane in &mut self.lanes {
            if let (Some(link), true) = (&lane.link, lane.interest != 0) {
                poller.add(link.fd(), lane.interest, lane.id.into()).map_err(failed)?;
                lane.watched = true;
            }
        }
        let fd = poller.fd();
        self.poller = Some(poller);
        if self.shared.wake.flags() != 0 {
            // Raised before the descriptor existed: make it readable now.
            self.shared.wake.raise(0);
        }
        self.arm();
        Ok(fd)
    }

    /// Makes the pollable descriptor readable when a step or [`Operation::take`] has something to do: at once by the
    /// wake-up descriptor, later by the timer. (A timer set to the past would cost an interrupt.)
    fn arm(&mut self) {
        let finished = match &self.state {
            State::Running => self.offer().is_some(),
            State::Won(won) => won.link.is_some(),
            State::Ended(_) => true,
        };
        let Some(poller) = &mut self.poller else { return };
        let due = finished || self.origin == 0 || self.test_clock.is_none() && self.wait == Some(0);
        if due {
            self.shared.wake.raise(0);
            return;
        }
        let (wait, origin) = (self.wait.filter(|_| matches!(self.state, State::Running)), self.origin);
        if poller.arm(wait.map(|at| origin.saturating_add(at.saturating_mul(1_000_000)))).is_err() {
            // Out of descriptors: the host steps again and again rather than missing a deadline.
            self.shared.wake.raise(0);
        }
    }

    // ---- steps

    /// Does what is due, looking for ready descriptors itself.
    ///
    /// # Errors
    /// `E_FORKED`. That the operation failed is [`Step::Ended`].
    pub fn step(&mut self) -> Result<Step> {
        self.check_process()?;
        self.look();
        self.advance()
    }

    /// Does what is due; `ready` is what the host's poll said.
    ///
    /// # Errors
    /// As [`Operation::step`].
    pub fn step_with(&mut self, ready: &[PollEntry]) -> Result<Step> {
        self.check_process()?;
        for entry in ready {
            if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == entry.id) {
                lane.revents |= entry.revents;
            }
        }
        self.advance()
    }

    /// As [`Operation::step_with`] on a clock of the caller's, in milliseconds since the first step: for tests.
    ///
    /// # Errors
    /// As [`Operation::step`].
    pub fn step_at(&mut self, now: Millis, ready: &[PollEntry]) -> Result<Step> {
        self.test_clock = Some(self.test_clock.map_or(now, |before| before.max(now)));
        self.step_with(ready)
    }

    fn look(&mut self) {
        if let Some(poller) = &self.poller {
            let lanes = &mut self.lanes;
            let each = |token: u64, revents: i16| {
                if let Some(lane) = lanes.iter_mut().find(|lane| u64::from(lane.id) == token) {
                    lane.revents |= revents;
                }
            };
            // Entries beyond eight keep the descriptor readable for the next step.
            poller.ready(each);
        } else {
            self.poll_lanes(None);
        }
    }

    /// Polls our own sockets; with a limit, waits for them and for a wake-up.
    pub(super) fn poll_lanes(&mut self, wait: Option<(RawFd, i32)>) {
        let mut set: SmallVec<[PollFd; 8]> = SmallVec::new();
        for lane in self.lanes.iter().filter(|lane| lane.interest != 0) {
            if let Some(link) = &lane.link {
                set.push(PollFd { fd: link.fd(), events: lane.interest, revents: 0 });
            }
        }
        let sockets = set.len();
        let mut limit = 0;
        if let Some((wake, timeout)) = wait {
            set.push(PollFd { fd: wake, events: libc::POLLIN, revents: 0 });
            limit = timeout;
        } else if sockets == 0 {
            return;
        }
        // A set that cannot be polled (no memory) shows nothing ready; deadlines still end the attempts.
        if poll(&mut set, limit).is_ok() {
            let waiting = self.lanes.iter_mut().filter(|lane| lane.interest != 0 && lane.link.is_some());
            for (lane, entry) in waiting.zip(set) {
                lane.revents |= entry.revents;
            }
        }
    }

    /// What the blocking driver waits for: the wake-up descriptor.
    pub(super) fn wait_fd(&self) -> Result<RawFd> {
        self.wake_fd()
    }

    pub(super) fn is_woken(&self) -> bool {
        self.shared.wake.flags() != 0
    }

    /// Ends the operation after this many milliseconds at the latest.
    pub(super) fn limit(&mut self, after: Millis) {
        self.begin();
        let now = self.now();
        self.race.end_at(now.saturating_add(after));
    }

    fn begin(&mut self) {
        if self.origin == 0 {
            self.origin = monotonic_ns();
        }
    }

    /// Handles what is ready and due, to the point where only waiting is left.
    pub(super) fn advance(&mut self) -> Result<Step> {
        if !matches!(self.state, State::Running) {
            return Ok(self.outcome());
        }
        self.begin();
        let flags = self.shared.wake.take(SOURCE | ANSWER);
        if self.shared.wake.flags() & CANCEL != 0 {
            self.race.cancel();
        } else {
            if flags & ANSWER != 0 {
                self.late_answers();
            }
            if flags & SOURCE != 0 || self.source_pending {
                self.poll_source();
            }
        }
        let mut index = 0;
        while let Some(lane) = self.lanes.get_mut(index) {
            let revents = core::mem::take(&mut lane.revents);
            if revents != 0 && lane.interest != 0 {
                self.ready(index);
            }
            index += 1;
        }
        self.settle();
        self.arm();
        Ok(self.outcome())
    }

    fn outcome(&self) -> Step {
        match &self.state {
            State::Running if self.offer().is_some() => Step::Ready,
            State::Running => Step::Pending,
            State::Won(_) => Step::Ready,
            State::Ended(error) => Step::Ended(error.clone()),
        }
    }

    fn offer(&self) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.phase == Phase::Offered && lane.link.is_some())
    }

    /// Asks the race until it waits or ends.
    fn settle(&mut self) {
        loop {
            let now = self.now();
            match self.race.next(now) {
                Action::Start { attempt, route } => self.start(attempt, route),
                Action::Handshake(attempt) => self.begin_dialogue(attempt),
                Action::Cancel(attempt, why) => self.canceled(attempt, why),
                Action::Failed(attempt) => self.failed(attempt, None),
                Action::TimedOut { attempt, handshake } => {
                    let fault = if handshake { Fault::TimeoutReady } else { Fault::TimeoutAttempt };
                    self.failed(attempt, Some((fault, 0)));
                }
                Action::PutBack(attempt) => self.failed(attempt, None),
                Action::Offer(attempt) => self.offered(attempt),
                Action::NeedRoutes => self.poll_source(),
                Action::Ended(ending) => {
                    self.wait = None;
                    return self.ended(ending);
                }
                Action::Wait(at) => {
                    self.wait = at;
                    return;
                }
            }
        }
    }

    // ---- routes

    fn poll_source(&mut self) {
        self.source_pending = false;
        let waker = Waker(Arc::clone(&self.shared));
        loop {
            let mut batch: Batch<S::Route> = Batch::new();
            let next = self.source.poll_next(&mut batch, &waker);
            match next {
                Next::Selection => {
                    self.selections += 1;
                    let selection = self.selections;
                    let first = self.routes.len();
                    self.take_in(batch);
                    let count = self.routes.len() - first;
                    let candidates = (first..first + count).map(|at| self.candidate(at, selection));
                    let candidates: SmallVec<[Candidate; 8]> = candidates.collect();
                    self.race.add_selection(candidates);
                    return;
                }
                Next::Family { family, last } => {
                    if !self.family_open {
                        self.family_open = true;
                        self.selections += 1;
                        self.race.expect_families();
                    }
                    let first = self.routes.len();
                    self.routes.extend(batch);
                    let count = self.routes.len() - first;
                    let selection = self.selections;
                    let candidates = (first..first + count)
                        .map(|at| Candidate { family, ..self.candidate(at, selection) })
                        .collect::<SmallVec<[Candidate; 8]>>();
                    let now = self.now();
                    self.race.add_family(now, family, candidates, last);
                    if !self.race.families_open() {
                        self.family_open = false;
                        return;
                    }
                }
                Next::Pending => {
                    self.source_pending = true;
                    return;
                }
                Next::Done => {
                    self.race.no_more_routes();
                    return;
                }
                Next::Ended(error) => {
                    self.ended_by = Some(error);
                    return self.race.cancel();
                }
                Next::Failed(error) => {
                    let now = self.now();
                    self.trace.source_failed(&error, now);
                    self.failures.push(FailureRecord {
                        route: None,
                        attempt: 0,
                        fault: None,
                        errno: error.os_errno(),
                        span_ms: (now, now),
                        error,
                    });
                }
            }
        }
    }

    /// Takes the routes of a Selection, each destination once.
    fn take_in(&mut self, batch: Batch<S::Route>) {
        if self.options.keep_duplicates || batch.len() < 2 {
            return self.routes.extend(batch);
        }
        let first = self.routes.len();
        for route in batch {
            let leg = self.source.leg(&route);
            let known = self.routes.iter().skip(first).map(|known| self.source.leg(known));
            let same = |other: Leg<'_>| {
                (other.hop, other.via, other.port) == (leg.hop, leg.via, leg.port) && other.host == leg.host
            };
            if !known.into_iter().any(same) {
                self.routes.push(route);
            }
        }
    }

    fn candidate(&self, index: usize, selection: u32) -> Candidate {
        let v4 = self.routes.get(index).is_some_and(|route| self.source.leg(route).hop.is_ipv4());
        let family = if v4 { Family::V4 } else { Family::V6 };
        Candidate { route: u32::try_from(index).unwrap_or(u32::MAX), family, selection }
    }
}

impl<S: RouteSource> Drop for Operation<S> {
    fn drop(&mut self) {
        if fork::is_child() {
            // A forked child closes its copies and calls nobody.
            let hooks = core::mem::replace(&mut self.hooks, Box::new(super::source::NoHooks));
            core::mem::forget(hooks);
            return;
        }
        let links = self.lanes.drain(..).filter_map(|lane| lane.link);
        let won = match core::mem::replace(&mut self.state, State::Running) {
            State::Won(won) => won.link,
            _ => None,
        };
        for link in links.chain(won) {
            link.close(&mut *self.hooks);
        }
    }
}
