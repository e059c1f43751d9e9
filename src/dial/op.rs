//! One operation: the race, its sockets and its reports, driven by whoever calls [`Operation::step`].
//!
//! A step never waits. Between steps the host watches either one descriptor ([`Operation::pollable_fd`]) or the
//! poll set and the deadline; a step without events looks for itself. All host code (routes, reports, hooks) runs
//! inside a step, with no lock held; a resolver that answers in place delays the race by as long as it takes.
//!
//! Exactly one socket is handed over. Every other one is closed on every path, by the thread that steps or drops.

use super::attempt::{Failure, Link, Pause, Progress};
use super::explain::{End, Trace};
use super::fault::{Blame, Fault};
use super::handshake::{Handshake, Protocol, Want};
use super::options::{Options, TunnelRefusal};
use super::race::{Action, Candidate, Ending, Family, Millis, Race, RaceUntil, Report as Told, Why};
use super::source::{Batch, Decision, Hooks, Leg, Next, Report, RouteSource, Via, Waker};
use crate::error::{Error, Result, Source, Status};
use crate::sys::poller::{INNER, Poller, monotonic_ns};
use crate::sys::socket::{PollFd, poll};
use crate::sys::wake::Wake;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Wake-up flag: the caller cancels.
pub(super) const CANCEL: u32 = 1;
/// Wake-up flag: the source has news.
pub(super) const SOURCE: u32 = 2;
/// Wake-up flag: credentials have arrived.
pub(super) const ANSWER: u32 = 4;

/// An answer to [`Decision::Later`]: which attempt, and the header value.
type LateAnswer = (u32, Option<String>);

/// What other threads may touch of an operation.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) wake: Wake,
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

    /// True once cancelled.
    pub fn is_canceled(&self) -> bool {
        self.0.wake.flags() & CANCEL != 0
    }
}

/// Gives late answers to [`Decision::Later`], from any thread.
#[derive(Clone)]
pub struct Authenticator(Arc<Shared>);

impl Authenticator {
    /// A value for `Proxy-Authorization`, or none to give up. An attempt that is over ignores it.
    pub fn answer(&self, attempt: u32, value: Option<String>) {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner).push((attempt, value));
        self.0.wake.raise(ANSWER);
    }
}

/// One descriptor a host has to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PollEntry {
    /// The attempt's number, 0 for the wake-up descriptor. A descriptor number may come back for another attempt
    /// within one step: compare these.
    pub id: u32,
    /// 0.
    pub reserved: u32,
    /// The descriptor.
    pub fd: RawFd,
    /// `POLLIN`, `POLLOUT`.
    pub events: i16,
    /// What `poll` said.
    pub revents: i16,
}

/// What happened, for hosts that keep state per descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Which attempt.
    pub attempt: u32,
    /// Its descriptor, -1 when it has none.
    pub fd: RawFd,
    /// Milliseconds since the first step.
    pub at_ms: Millis,
    /// Why, for failures.
    pub fault: Option<Fault>,
}

/// Kinds of [`Event`]. The numbers are part of the C ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EventKind {
    /// A connect was started.
    Start = 1,
    /// TCP stands, the proxy dialogue begins.
    Handshake = 2,
    /// The descriptor is about to be closed: forget it now.
    FdClosing = 3,
    /// It failed.
    Failed = 4,
    /// It ended without blame.
    Canceled = 5,
    /// The host is asked for credentials later.
    Credentials = 6,
    /// The host may use it while the race goes on.
    Offer = 7,
    /// It won.
    Won = 8,
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

/// The connected socket.
#[derive(Debug)]
pub struct Connected<R> {
    /// The socket; the caller's own from now on.
    pub socket: OwnedFd,
    /// The route it leads over.
    pub route: R,
    /// The attempt's number, for [`Operation::confirm`] and [`Operation::resume`].
    pub attempt: u32,
    /// TLS to the proxy must be run first, then a [`Handshake`].
    pub needs_proxy_tls: bool,
    /// The race goes on until this attempt is confirmed.
    pub provisional: bool,
}

/// A failed attempt, or a Selection that could not be made.
#[derive(Clone, Debug)]
pub struct FailureRecord<R> {
    /// The route; none when no Selection could be made.
    pub route: Option<R>,
    /// The attempt's number, 0 without one.
    pub attempt: u32,
    /// Why.
    pub fault: Option<Fault>,
    /// The system's number, 0 for none.
    pub errno: i32,
    /// Begin and end in milliseconds since the first step.
    pub span_ms: (Millis, Millis),
    /// The whole error.
    pub error: Error,
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
    process: u32,
}

/// The failure of a descriptor that could not be watched.
fn unwatchable(error: &std::io::Error) -> Failure {
    (Fault::FdLimit, error.raw_os_error().unwrap_or(0))
}

impl<S: RouteSource> Operation<S> {
    /// An operation that has not started; the first step starts it.
    pub fn new(source: S, options: Arc<Options>, hooks: Box<dyn Hooks<S::Route> + Send>) -> Self {
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
            process: std::process::id(),
        }
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

    fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
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
        let left = (self.origin + at * 1_000_000).saturating_sub(monotonic_ns());
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

    fn arm(&mut self) {
        let origin = if self.origin == 0 { monotonic_ns() } else { self.origin };
        let finished = !matches!(self.state, State::Running) || self.offer().is_some();
        // A result that was not fetched yet keeps the descriptor readable.
        let at = if finished { Some(1) } else { self.wait.map(|at| origin + at * 1_000_000) };
        if let Some(poller) = &mut self.poller {
            poller.arm(at);
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
        self.test_clock = Some(now);
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
                    self.routes.extend(batch);
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

    fn candidate(&self, index: usize, selection: u32) -> Candidate {
        let v4 = self.routes.get(index).is_some_and(|route| self.source.leg(route).hop.is_ipv4());
        let family = if v4 { Family::V4 } else { Family::V6 };
        Candidate { route: u32::try_from(index).unwrap_or(u32::MAX), family, selection }
    }

    // ---- attempts

    fn start(&mut self, attempt: u32, route: u32) {
        let now = self.now();
        self.trace.started(attempt, route, now);
        let Some(shown) = self.routes.get(route as usize).cloned() else { return };
        self.source.report(&shown, Report::Started);
        let leg = self.source.leg(&shown);
        let alone = self.race.untried() == 0 && self.race.in_flight() == 1;
        let fast_open = self.options.socket.fast_open && alone && leg.via == Via::Direct;
        let made = Link::start(leg.hop, &self.options.socket, fast_open, &shown, &mut *self.hooks);
        let mut lane = Lane {
            id: attempt,
            route,
            link: None,
            dialogue: None,
            phase: Phase::Connecting { again: false },
            started: now,
            interest: 0,
            watched: false,
            revents: 0,
            failure: None,
        };
        match made {
            Ok((link, progress)) => {
                self.emit(EventKind::Start, attempt, link.fd(), None);
                lane.link = Some(link);
                self.lanes.push(lane);
                self.progressed(self.lanes.len() - 1, progress);
            }
            Err(failure) => {
                self.emit(EventKind::Start, attempt, -1, None);
                self.lanes.push(lane);
                self.report_failure(self.lanes.len() - 1, failure, true);
            }
        }
        self.generation += 1;
    }

    /// Says which events a lane waits for; 0 for none, then it is not watched at all, because a set shows errors
    /// and hang-ups even unasked.
    fn watch(&mut self, index: usize, interest: i16) {
        let Some(lane) = self.lanes.get_mut(index) else { return };
        if lane.interest == interest {
            return;
        }
        lane.interest = interest;
        self.generation += 1;
        let (Some(poller), Some(link)) = (&self.poller, &lane.link) else { return };
        let token = u64::from(lane.id);
        let done = match (lane.watched, interest) {
            (false, 0) => Ok(()),
            (true, 0) => {
                poller.remove(link.as_fd());
                Ok(())
            }
            (true, _) => poller.modify(link.fd(), interest, token),
            (false, _) => poller.add(link.fd(), interest, token),
        };
        lane.watched = interest != 0;
        if let Err(error) = done {
            self.report_failure(index, unwatchable(&error), false);
        }
    }

    fn ready(&mut self, index: usize) {
        let Some(lane) = self.lanes.get_mut(index) else { return };
        match (lane.phase, &mut lane.link) {
            (Phase::Connecting { .. }, Some(link)) => match link.verify() {
                Ok(progress) => self.progressed(index, progress),
                Err((fault, errno)) => self.progressed(index, Progress::Failed(fault, errno)),
            },
            (Phase::Talking, Some(_)) => self.talk(index),
            _ => {}
        }
    }

    fn progressed(&mut self, index: usize, progress: Progress) {
        match progress {
            Progress::Pending => self.watch(index, libc::POLLOUT),
            Progress::Connected => self.connected(index),
            Progress::Failed(Fault::SelfConnect, errno) => {
                let repeat = self
                    .lanes
                    .get_mut(index)
                    .and_then(|lane| lane.link.as_mut())
                    .is_some_and(Link::may_repeat_self_connect);
                if repeat {
                    self.reconnect(index);
                } else {
                    self.report_failure(index, (Fault::SelfConnect, errno), false);
                }
            }
            Progress::Failed(fault, errno) => self.report_failure(index, (fault, errno), false),
        }
    }

    fn connected(&mut self, index: usize) {
        let now = self.now();
        let Some(lane) = self.lanes.get(index) else { return };
        let (id, route, phase) = (lane.id, lane.route, lane.phase);
        self.trace.tcp(id, now);
        if phase == (Phase::Connecting { again: true })
            && let Some(lane) = self.lanes.get_mut(index)
            && let Some(dialogue) = &mut lane.dialogue
        {
            lane.phase = Phase::Talking;
            match dialogue.reconnected() {
                Ok(()) => self.talk(index),
                Err(fault) => self.report_failure(index, (fault, 0), false),
            }
            return;
        }
        self.watch(index, 0);
        if let Some(lane) = self.lanes.get_mut(index) {
            lane.phase = Phase::Tcp;
        }
        let handshake = self.routes.get(route as usize).is_some_and(|route| {
            let leg = self.source.leg(route);
            matches!(leg.via, Via::Socks(_)) || leg.via == Via::Http && leg.tunnel
        });
        self.race.report(id, Told::Tcp { handshake });
    }

    fn begin_dialogue(&mut self, attempt: u32) {
        let Some(index) = self.lanes.iter().position(|lane| lane.id == attempt) else { return };
        let Some(lane) = self.lanes.get_mut(index) else { return };
        let Some(route) = self.routes.get(lane.route as usize) else { return };
        let leg = self.source.leg(route);
        let protocol = match leg.via {
            Via::Socks(version) => Protocol::Socks(version),
            _ => Protocol::Connect,
        };
        let settings = self.options.handshake.clone();
        match Handshake::new(protocol, leg.host, leg.port, leg.credentials, settings) {
            Ok(dialogue) => {
                lane.dialogue = Some(Box::new(dialogue));
                lane.phase = Phase::Talking;
                let fd = lane.link.as_ref().map_or(-1, Link::fd);
                self.emit(EventKind::Handshake, attempt, fd, None);
                self.talk(index);
            }
            Err(fault) => self.report_failure(index, (fault, 0), false),
        }
    }

    fn talk(&mut self, index: usize) {
        loop {
            let Some(lane) = self.lanes.get_mut(index) else { return };
            let (Some(link), Some(dialogue)) = (&lane.link, &mut lane.dialogue) else { return };
            match link.talk(dialogue) {
                Ok(Pause::Readable) => return self.watch(index, libc::POLLIN),
                Ok(Pause::Writable) => return self.watch(index, libc::POLLOUT),
                Ok(Pause::Reconnect) => return self.reconnect(index),
                Ok(Pause::Done) => {
                    let id = lane.id;
                    lane.dialogue = None;
                    lane.phase = Phase::Tcp;
                    self.watch(index, 0);
                    let now = self.now();
                    self.trace.ready(id, now);
                    return self.race.report(id, Told::Ready);
                }
                Ok(Pause::Credentials) => {
                    let Want::Credentials(challenges) = dialogue.want() else { return };
                    let Some(route) = self.routes.get(lane.route as usize) else { return };
                    let answer = match self.hooks.proxy_auth(lane.id, route, challenges) {
                        Decision::GiveUp => None,
                        Decision::Answer(value) => Some(value),
                        Decision::Later => {
                            lane.phase = Phase::Parked;
                            let (id, fd) = (lane.id, link.fd());
                            self.emit(EventKind::Credentials, id, fd, None);
                            return self.watch(index, 0);
                        }
                    };
                    if let Err(fault) = dialogue.answer(answer.as_deref()) {
                        return self.report_failure(index, (fault, 0), false);
                    }
                }
                Err(failure) => return self.report_failure(index, failure, false),
            }
        }
    }

    fn late_answers(&mut self) {
        let answers = {
            let mut held = self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::take(&mut *held)
        };
        for (attempt, value) in answers {
            let parked = |lane: &Lane| lane.id == attempt && lane.phase == Phase::Parked;
            let Some(index) = self.lanes.iter().position(parked) else { continue };
            let Some(lane) = self.lanes.get_mut(index) else { continue };
            lane.phase = Phase::Talking;
            match lane.dialogue.as_mut().map(|dialogue| dialogue.answer(value.as_deref())) {
                Some(Err(fault)) => self.report_failure(index, (fault, 0), false),
                _ => self.talk(index),
            }
        }
    }

    /// A new connection for the same attempt: the proxy closed, or the socket had reached itself.
    fn reconnect(&mut self, index: usize) {
        self.watch(index, 0);
        let Some(lane) = self.lanes.get_mut(index) else { return };
        let Some(link) = lane.link.take() else { return };
        let (id, again) = (lane.id, lane.dialogue.is_some());
        lane.phase = Phase::Connecting { again };
        let Some(route) = self.routes.get(lane.route as usize).cloned() else { return };
        self.emit(EventKind::FdClosing, id, link.fd(), None);
        self.source.report(&route, Report::Started);
        match link.restart(&self.options.socket, &route, &mut *self.hooks) {
            Ok((link, progress)) => {
                self.emit(EventKind::Start, id, link.fd(), None);
                if let Some(lane) = self.lanes.get_mut(index) {
                    lane.link = Some(link);
                }
                self.progressed(index, progress);
            }
            Err(failure) => self.report_failure(index, failure, false),
        }
        self.generation += 1;
    }

    /// Tells the race; what is told to others waits until the race has taken it.
    fn report_failure(&mut self, index: usize, failure: Failure, at_once: bool) {
        self.watch(index, 0);
        let Some(lane) = self.lanes.get_mut(index) else { return };
        lane.failure = Some(failure);
        let stop = self.options.tunnel_refusal == TunnelRefusal::Stop;
        let told = match failure.0 {
            Fault::ConnectAuthRequired | Fault::ConnectAuthLoop if stop => Told::Stop,
            fault => match fault.blame() {
                Blame::Refusal if stop => Told::Stop,
                Blame::Exhausted => Told::Exhausted,
                _ => Told::Failed { at_once },
            },
        };
        self.race.report(lane.id, told);
    }

    fn remove(&mut self, attempt: u32) -> Option<Lane> {
        let index = self.lanes.iter().position(|lane| lane.id == attempt)?;
        self.watch(index, 0);
        self.generation += 1;
        Some(self.lanes.remove(index))
    }

    fn close(&mut self, id: u32, link: Option<Link>) {
        if let Some(link) = link {
            self.emit(EventKind::FdClosing, id, link.fd(), None);
            link.close(&mut *self.hooks);
        }
    }

    fn failed(&mut self, attempt: u32, timeout: Option<Failure>) {
        let Some(mut lane) = self.remove(attempt) else { return };
        self.close(attempt, lane.link.take());
        let handshake = lane.dialogue.is_some();
        let (fault, errno) = timeout.or(lane.failure).unwrap_or((Fault::Socket(0), 0));
        self.record(attempt, lane.route, lane.started, (fault, errno), handshake);
    }

    fn record(&mut self, attempt: u32, route: u32, started: Millis, failure: Failure, handshake: bool) {
        let now = self.now();
        let (fault, errno) = failure;
        self.trace.ended(attempt, now, End::Failed(fault, errno));
        self.emit(EventKind::Failed, attempt, -1, Some(fault));
        let Some(shown) = self.routes.get(route as usize).cloned() else { return };
        let leg = self.source.leg(&shown);
        let error = fault.error(errno, &leg.hop.to_string());
        let upstream = self.options.upstream_reports;
        // Told to whom: the table in the module documentation of `dial`.
        let (database, selector) = match fault.blame() {
            Blame::Route if upstream => (false, !handshake),
            Blame::Route => (true, true),
            Blame::Target => (!upstream, false),
            Blame::Refusal => (!upstream && self.options.tunnel_refusal == TunnelRefusal::Next, false),
            Blame::Local if upstream => (false, true),
            Blame::Auth | Blame::Local | Blame::Exhausted => (false, false),
        };
        self.source.report(&shown, Report::Failed { fault, errno, database, selector, error: &error });
        self.failures.push(FailureRecord {
            route: Some(shown),
            attempt,
            fault: Some(fault),
            errno,
            span_ms: (started, now),
            error,
        });
    }

    fn canceled(&mut self, attempt: u32, why: Why) {
        let Some(mut lane) = self.remove(attempt) else { return };
        self.close(attempt, lane.link.take());
        let now = self.now();
        self.trace.ended(attempt, now, End::Canceled(why));
        self.emit(EventKind::Canceled, attempt, -1, None);
        let Some(route) = self.routes.get(lane.route as usize).cloned() else { return };
        if self.options.upstream_reports {
            let fault = Fault::Socket(libc::ECANCELED);
            let error = Error::bare(Status::E_CANCELED);
            let report = Report::Failed { fault, errno: 0, database: false, selector: true, error: &error };
            self.source.report(&route, report);
        } else {
            self.source.report(&route, Report::Canceled);
        }
    }

    fn offered(&mut self, attempt: u32) {
        let now = self.now();
        self.trace.ready(attempt, now);
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == attempt) {
            lane.phase = Phase::Offered;
            let fd = lane.link.as_ref().map_or(-1, Link::fd);
            self.emit(EventKind::Offer, attempt, fd, None);
        }
    }

    fn ended(&mut self, ending: Ending) {
        let now = self.now();
        match ending {
            Ending::Won(attempt) => {
                let Some(lane) = self.remove(attempt) else { return };
                let Some(route) = self.routes.get(lane.route as usize).cloned() else { return };
                let needs_proxy_tls = self.source.leg(&route).via == Via::Https;
                self.trace.ended(attempt, now, End::Won);
                self.emit(EventKind::Won, attempt, lane.link.as_ref().map_or(-1, Link::fd), None);
                // A proxy behind TLS has proved nothing yet: the host confirms.
                let reported = !needs_proxy_tls;
                if reported {
                    self.source.report(&route, Report::Connected);
                }
                let won = Won { attempt, route, link: lane.link, needs_proxy_tls, reported };
                self.state = State::Won(Box::new(won));
            }
            Ending::Failed | Ending::Stopped(_) => {
                let attempt = if let Ending::Stopped(attempt) = ending { attempt } else { 0 };
                self.state = State::Ended(self.all_failed(attempt));
            }
            Ending::Deadline => {
                let message = format!("no connection within {now} ms");
                let error = Error::new(Status::E_TIMEOUT, message).source(Source::Engine);
                self.state = State::Ended(self.with_causes(error));
            }
            Ending::Canceled => {
                let error = Error::bare(Status::E_CANCELED).source(Source::Engine);
                self.state = State::Ended(self.with_causes(error));
            }
        }
    }

    fn with_causes(&self, error: Error) -> Error {
        error.causes(self.failures.iter().map(|failure| failure.error.clone()))
    }

    /// The error when nothing is left: a failure that ended the race, else the first one of a route, else of the
    /// source, else a local one; all of them are its causes.
    fn all_failed(&self, stopped_by: u32) -> Error {
        let local = |failure: &&FailureRecord<S::Route>| failure.fault.is_some_and(Fault::is_local);
        let stopper = self.failures.iter().find(|f| stopped_by != 0 && f.attempt == stopped_by);
        let main =
            stopper.or_else(|| self.failures.iter().find(|f| !local(f))).or_else(|| self.failures.first());
        let Some(main) = main else {
            return Error::new(Status::E_NO_ROUTE, "there is no route to try").source(Source::Engine);
        };
        let refused = matches!(main.error.status(), Status::E_PROXY_REFUSED | Status::E_PROXY_AUTH);
        let status = match main.error.status() {
            status if stopper.is_some() && refused || self.failures.iter().all(|f| local(&f)) => status,
            _ if self.failures.iter().all(|f| f.fault.is_none()) => main.error.status(),
            _ => Status::E_CONNECT,
        };
        let error = Error::new(status, main.error.message()).subject(main.error.about());
        let error =
            error.os(main.error.os_errno()).host(main.error.host_code()).source(main.error.found_by());
        self.with_causes(error)
    }

    fn emit(&mut self, kind: EventKind, attempt: u32, fd: RawFd, fault: Option<Fault>) {
        if self.options.events {
            self.events.push_back(Event { kind, attempt, fd, at_ms: self.now(), fault });
        }
    }

    /// The oldest event not fetched yet; none are kept unless the options ask for them.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    // ---- the result

    /// Moves the connected socket out, once. Of an offered one the race goes on.
    ///
    /// # Errors
    /// `E_STATE` when there is none or it was taken, the operation's own error when it failed, `E_FORKED`.
    pub fn take(&mut self) -> Result<Connected<S::Route>> {
        self.check_process()?;
        let taken = || Error::new(Status::E_STATE, "the socket was taken before").source(Source::Engine);
        let nonblocking = self.options.socket.nonblocking;
        let (attempt, route, link, needs_proxy_tls, provisional) = match &mut self.state {
            State::Ended(error) => return Err(error.clone()),
            State::Won(won) => {
                let link = won.link.take().ok_or_else(taken)?;
                (won.attempt, won.route.clone(), link, won.needs_proxy_tls, false)
            }
            State::Running => {
                let none = || Error::new(Status::E_STATE, "no socket is ready").source(Source::Engine);
                let index = self.offer().ok_or_else(none)?;
                let lane = self.lanes.get_mut(index).ok_or_else(none)?;
                let link = lane.link.take().ok_or_else(none)?;
                let route = self.routes.get(lane.route as usize).cloned().ok_or_else(none)?;
                let needs_tls = self.source.leg(&route).via == Via::Https;
                (lane.id, route, link, needs_tls, true)
            }
        };
        self.arm();
        let socket = link.hand_over(nonblocking).map_err(|(fault, errno)| fault.error(errno, ""))?;
        Ok(Connected { socket, route, attempt, needs_proxy_tls, provisional })
    }

    /// The host is content with this attempt, usually after TLS. Ends the race of [`RaceUntil::Host`]; for a proxy
    /// behind TLS it is the moment at which the route counts as connected.
    ///
    /// # Errors
    /// `E_STATE` when this attempt is not on offer and has not won, `E_FORKED`.
    pub fn confirm(&mut self, attempt: u32) -> Result<()> {
        self.check_process()?;
        if matches!(self.state, State::Running) && self.race.confirm(attempt) {
            self.settle();
            self.arm();
        }
        match &mut self.state {
            State::Won(won) if won.attempt == attempt => {
                if !core::mem::replace(&mut won.reported, true) {
                    self.source.report(&won.route, Report::Connected);
                }
                Ok(())
            }
            _ => Err(Error::new(Status::E_STATE, "this attempt has not won").source(Source::Engine)),
        }
    }

    /// The host could not use this attempt's socket: go on. First the follow-up if there is one (the same target
    /// tried differently), then those that lost, then what was never tried. A socket not taken is closed here.
    ///
    /// # Errors
    /// `E_STATE` when this attempt is not on offer and has not won, `E_FORKED`.
    pub fn resume(&mut self, attempt: u32, fault: Fault, follow_up: Option<S::Route>) -> Result<()> {
        self.check_process()?;
        let now = self.now();
        if matches!(self.state, State::Running) && self.race.reject(attempt) {
            if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == attempt) {
                lane.failure = Some((fault, 0));
            }
        } else {
            let matching = matches!(&self.state, State::Won(won) if won.attempt == attempt);
            if !matching {
                let message = "this attempt has not won, nothing to go on from";
                return Err(Error::new(Status::E_STATE, message).source(Source::Engine));
            }
            if let State::Won(won) = core::mem::replace(&mut self.state, State::Running) {
                self.close(attempt, won.link);
                if let Some((route, started)) = self.trace.span(attempt) {
                    self.record(attempt, route, started, (fault, 0), true);
                }
            }
            let follow_up = follow_up.map(|route| {
                self.routes.push(route);
                self.candidate(self.routes.len() - 1, self.selections)
            });
            self.race.resume(now, follow_up);
        }
        self.settle();
        self.arm();
        Ok(())
    }

    /// True when what wins is decided by the host.
    pub fn needs_confirm(&self) -> bool {
        self.options.rules.race_until == RaceUntil::Host
    }
}

impl<S: RouteSource> Drop for Operation<S> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
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

/// So that a socket's number can be shown without giving it away.
impl<R> Connected<R> {
    /// The descriptor's number.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
