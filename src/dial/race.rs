//! The race: which attempt starts when, which one wins, which ones end (RFC 8305, Happy Eyeballs).
//!
//! Pure: a virtual clock in milliseconds goes in, one [`Action`] at a time comes out. No sockets, no clock of its
//! own, no allocation while no more than eight routes and eight attempts are known at once.
//!
//! The caller reports what happened ([`Race::report`]) and then pulls [`Race::next`] until it says
//! [`Action::Wait`]. What is due at one moment is handled in this order: cancel; results, by start of their
//! attempt; timeouts; the overall deadline; starts. So a success that arrives with the timer wins, and the first
//! of two successes wins whatever order they were reported in.

use smallvec::SmallVec;
use std::collections::VecDeque;

/// Milliseconds on the caller's clock.
pub type Millis = u64;

/// Address family of a route's hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    const fn other(self) -> Family {
        match self {
            Family::V4 => Family::V6,
            Family::V6 => Family::V4,
        }
    }
}

/// What a failure does to the wait for the next start while others are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Nothing: the next starts at its time (OkHttp, curl).
    #[default]
    WhenIdle,
    /// The next starts at once, 10 ms after the last start at the earliest (Envoy).
    Immediate,
    /// As `Immediate`, but only when the newest attempt failed (asyncio).
    Latest,
}

/// What happens when as many attempts as allowed are in flight and the next is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CapPolicy {
    /// The oldest is dropped, without blame (curl).
    #[default]
    DropOldest,
    /// The next waits for a free place.
    Wait,
}

/// What an attempt must have reached to win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RaceUntil {
    /// TCP is connected (OkHttp).
    #[default]
    Tcp,
    /// The proxy handshake is done.
    Ready,
    /// The host confirms it, usually after TLS (Happy Eyeballs version 3).
    Host,
}

/// Which family goes first when addresses arrive family by family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FirstFamily {
    /// IPv6 (OkHttp, RFC 8305).
    #[default]
    V6,
    /// IPv4.
    V4,
    /// The family of the first address that arrives.
    FirstAddress,
}

/// Rules of one race; the defaults are those of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Pause between starts while something is in flight; clamped to 10..=2000. Default 250.
    pub attempt_delay_ms: u32,
    /// How long an answer of the other family waits for the preferred one. Default 50.
    pub resolution_delay_ms: u32,
    /// Limit for one TCP connect, 0 for none. Default 10 000.
    pub attempt_timeout_ms: u32,
    /// Limit for one proxy handshake, 0 for none. Default 30 000.
    pub ready_timeout_ms: u32,
    /// Limit for everything, counted from the first step, 0 for none. Default 0.
    pub overall_timeout_ms: u32,
    /// Pause granted to an attempt whose TCP is up; `None` is the attempt delay.
    pub ready_extend_ms: Option<u32>,
    /// Attempts in flight at once, 0 for no limit. Default 6.
    pub max_in_flight: u32,
    /// What to do at that limit.
    pub cap_policy: CapPolicy,
    /// What a failure changes while others are in flight.
    pub on_failure: OnFailure,
    /// What winning means.
    pub race_until: RaceUntil,
    /// Preferred family of live answers.
    pub first_family: FirstFamily,
    /// How many addresses of the preferred family start before the first of the other. Default 1.
    pub first_family_count: u32,
    /// Start routes of the next Selection while the present one still has attempts in flight. Default off: a slow
    /// proxy must not get a DIRECT connection racing beside it.
    pub across_selections: bool,
    /// Upstream's timing: the timer is looked at before results, a start that fails at once uses up its turn, and
    /// so does a turn with nothing to start.
    pub upstream_timing: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            attempt_delay_ms: 250,
            resolution_delay_ms: 50,
            attempt_timeout_ms: 10_000,
            ready_timeout_ms: 30_000,
            overall_timeout_ms: 0,
            ready_extend_ms: None,
            max_in_flight: 6,
            cap_policy: CapPolicy::DropOldest,
            on_failure: OnFailure::WhenIdle,
            race_until: RaceUntil::Tcp,
            first_family: FirstFamily::V6,
            first_family_count: 1,
            across_selections: false,
            upstream_timing: false,
        }
    }
}

/// Earliest start after another one, whatever the policy (RFC 8305 section 8).
const FLOOR: Millis = 10;
/// Longest pause between starts (RFC 8305 section 8).
const CEILING: Millis = 2000;

/// A route the race may start; `route` is the caller's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The caller's number.
    pub route: u32,
    /// Family of its hop, used only for live answers.
    pub family: Family,
    /// Number of its Selection, ascending.
    pub selection: u32,
}

/// What happened to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// TCP is connected; `handshake` when a proxy handshake has to follow.
    Tcp {
        /// A proxy handshake follows.
        handshake: bool,
    },
    /// The proxy handshake is done.
    Ready,
    /// It failed.
    Failed {
        /// Nothing was sent: the attempt does not use up its turn.
        at_once: bool,
    },
    /// No descriptor or buffer: tried again later when others are in flight, else the end.
    Exhausted,
    /// It failed in a way that ends the whole race: the proxy refuses, a defect in host code.
    Stop,
    /// It ended without blame and this route goes on in its place, first in line.
    FollowUp(Candidate),
}

/// Why an attempt is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another one won.
    Lost,
    /// The oldest at the limit.
    Dropped,
    /// The caller cancelled.
    Canceled,
    /// The overall deadline passed.
    Deadline,
    /// Another one ended the race.
    Stopped,
}

/// How a race ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// This attempt won.
    Won(u32),
    /// Every route failed.
    Failed,
    /// The overall deadline passed.
    Deadline,
    /// The caller cancelled.
    Canceled,
    /// This attempt ended it.
    Stopped(u32),
}

/// What the caller has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a connect for this route under this number.
    Start {
        /// Number of the attempt, from 1, never used twice.
        attempt: u32,
        /// The caller's route.
        route: u32,
    },
    /// Begin the proxy handshake on this attempt.
    Handshake(u32),
    /// Close this attempt.
    Cancel(u32, Why),
    /// The reported failure counts; close this attempt.
    Failed(u32),
    /// Time ran out for this attempt; close it.
    TimedOut {
        /// The attempt.
        attempt: u32,
        /// It was in its proxy handshake.
        handshake: bool,
    },
    /// This attempt could not be made now; its route waits for another turn.
    PutBack(u32),
    /// Ready, the host may use it while the race goes on ([`RaceUntil::Host`]).
    Offer(u32),
    /// Nothing is left to try: add a Selection or say there is none.
    NeedRoutes,
    /// It is over.
    Ended(Ending),
    /// Nothing to do before this time, or before the next report when `None`.
    Wait(Option<Millis>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Handshake,
    Offered,
}

struct Attempt {
    id: u32,
    candidate: Candidate,
    phase: Phase,
    deadline: Option<Millis>,
    report: Option<Report>,
    /// `next_start` and `last_start` before this start, put back when it fails at once.
    before: (Millis, Millis),
}

/// Answers that arrive family by family.
struct Live {
    preferred: Family,
    open: [bool; 2],
    first_answer: Option<Millis>,
    started_preferred: u32,
    last: Option<Family>,
    started: bool,
}

#[derive(Clone, Copy)]
enum Closing {
    Winner { id: u32, handshake: bool },
    End(Why, Ending),
}

/// One race.
pub struct Race {
    rules: Rules,
    delay: Millis,
    waiting: VecDeque<Candidate>,
    attempts: SmallVec<[Attempt; 8]>,
    losers: SmallVec<[Candidate; 8]>,
    live: Option<Live>,
    selection: u32,
    next_id: u32,
    next_start: Millis,
    last_start: Millis,
    /// The overall deadline of the rules, and one set from outside.
    overall: Option<Millis>,
    limit: Option<Millis>,
    closing: Option<Closing>,
    ended: Option<Ending>,
    winner: Option<Candidate>,
    begun: bool,
    /// The winner is in its handshake; nothing else starts.
    solo: bool,
    canceled: bool,
    asked: bool,
    no_more_routes: bool,
}

impl Race {
    /// A race with no routes yet.
    pub fn new(rules: Rules) -> Self {
        Race {
            delay: Millis::from(rules.attempt_delay_ms).clamp(FLOOR, CEILING),
            rules,
            waiting: VecDeque::new(),
            attempts: SmallVec::new(),
            losers: SmallVec::new(),
            live: None,
            selection: 0,
            next_id: 0,
            next_start: 0,
            last_start: 0,
            overall: None,
            limit: None,
            closing: None,
            ended: None,
            winner: None,
            begun: false,
            solo: false,
            canceled: false,
            asked: false,
            no_more_routes: false,
        }
    }

    /// The pause between starts after clamping.
    pub fn delay(&self) -> Millis {
        self.delay
    }

    /// Adds a complete Selection in its order; answers [`Action::NeedRoutes`].
    pub fn add_selection(&mut self, routes: impl IntoIterator<Item = Candidate>) {
        self.asked = false;
        self.waiting.extend(routes);
    }

    /// The present Selection's addresses will arrive family by family, see [`Race::add_family`].
    pub fn expect_families(&mut self) {
        self.asked = false;
        let preferred = match self.rules.first_family {
            FirstFamily::V4 => Family::V4,
            FirstFamily::V6 | FirstFamily::FirstAddress => Family::V6,
        };
        self.live = Some(Live {
            preferred,
            open: [true; 2],
            first_answer: None,
            started_preferred: 0,
            last: None,
            started: false,
        });
    }

    /// One family's addresses, also none; late ones join those not tried yet. `last` closes the family.
    pub fn add_family(
        &mut self,
        now: Millis,
        family: Family,
        routes: impl IntoIterator<Item = Candidate>,
        last: bool,
    ) {
        if self.live.is_none() {
            self.expect_families();
        }
        let before = self.waiting.len();
        self.waiting.extend(routes);
        let added = self.waiting.len() > before;
        if let Some(live) = &mut self.live {
            if last {
                live.open[family as usize] = false;
            }
            if added && live.first_answer.is_none() {
                live.first_answer = Some(now);
                if self.rules.first_family == FirstFamily::FirstAddress {
                    live.preferred = family;
                }
            }
        }
    }

    /// True while a family's answer is still awaited.
    pub fn families_open(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.open.contains(&true))
    }

    /// There is no further Selection; answers [`Action::NeedRoutes`].
    pub fn no_more_routes(&mut self) {
        self.no_more_routes = true;
    }

    /// Says what happened to an attempt. Reports about attempts that are over are ignored, so a late one does no
    /// harm.
    pub fn report(&mut self, attempt: u32, report: Report) {
        if let Some(found) = self.attempts.iter_mut().find(|a| a.id == attempt) {
            found.report = Some(report);
        }
    }

    /// Ends the race at the next call of [`Race::next`], before anything else.
    pub fn cancel(&mut self) {
        self.canceled = true;
    }

    /// Ends the race at this time at the latest, as the overall deadline does.
    pub fn end_at(&mut self, at: Millis) {
        self.limit = Some(self.limit.map_or(at, |limit| limit.min(at)));
    }

    /// The host is content with an offered attempt: it wins. False when it is not on offer.
    pub fn confirm(&mut self, attempt: u32) -> bool {
        let on_offer = self.attempts.iter().any(|a| a.id == attempt && a.phase == Phase::Offered);
        if on_offer && self.ended.is_none() {
            self.closing = Some(Closing::Winner { id: attempt, handshake: false });
        }
        on_offer
    }

    /// The host could not use an offered attempt: it counts as failed. False when it is not on offer.
    pub fn reject(&mut self, attempt: u32) -> bool {
        match self.attempts.iter_mut().find(|a| a.id == attempt && a.phase == Phase::Offered) {
            Some(found) => {
                found.report = Some(Report::Failed { at_once: false });
                true
            }
            None => false,
        }
    }

    /// Goes on after a win the host could not use: first the follow-up, then those that lost, each with a fresh
    /// attempt, then what was never tried. False when nothing was won.
    pub fn resume(&mut self, now: Millis, follow_up: Option<Candidate>) -> bool {
        if !matches!(self.ended, Some(Ending::Won(_))) {
            return false;
        }
        self.ended = None;
        self.requeue(now, follow_up);
        true
    }

    fn requeue(&mut self, now: Millis, follow_up: Option<Candidate>) {
        while let Some(loser) = self.losers.pop() {
            self.waiting.push_front(loser);
        }
        if let Some(route) = follow_up {
            self.waiting.push_front(route);
        }
        self.solo = false;
        self.winner = None;
        if !self.rules.upstream_timing {
            self.next_start = now;
        }
    }

    /// Routes known and not tried.
    pub fn untried(&self) -> usize {
        self.waiting.len()
    }

    /// Attempts in flight.
    pub fn in_flight(&self) -> usize {
        self.attempts.len()
    }

    /// What to do now. To be called until it answers [`Action::Wait`] or [`Action::Ended`].
    pub fn next(&mut self, now: Millis) -> Action {
        if !self.begun {
            self.begun = true;
            self.next_start = now;
            let limit = Millis::from(self.rules.overall_timeout_ms);
            self.overall = (limit > 0).then_some(now.saturating_add(limit));
        }
        loop {
            if self.canceled && self.ended.is_none() && !self.is_ending() {
                self.closing = Some(Closing::End(Why::Canceled, Ending::Canceled));
            }
            if let Some(action) = self.close_one() {
                return action;
            }
            if let Some(ending) = self.ended {
                return Action::Ended(ending);
            }
            if self.rules.upstream_timing
                && let Some(action) = self.start(now)
            {
                return action;
            }
            if let Some(index) = self.attempts.iter().position(|a| a.report.is_some()) {
                match self.settle(now, index) {
                    Some(action) => return action,
                    None => continue,
                }
            }
            if let Some(index) = self.attempts.iter().position(|a| a.deadline.is_some_and(|at| at <= now)) {
                let attempt = self.attempts.remove(index);
                self.failed(now, &attempt, false);
                return Action::TimedOut {
                    attempt: attempt.id,
                    handshake: attempt.phase == Phase::Handshake,
                };
            }
            if self.overall.into_iter().chain(self.limit).any(|at| at <= now) {
                self.closing = Some(Closing::End(Why::Deadline, Ending::Deadline));
                continue;
            }
            if let Some(action) = self.start(now) {
                return action;
            }
            return self.rest(now);
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self.closing, Some(Closing::End(..)))
    }

    /// Closes what stands in the way of a decision, one attempt a call.
    fn close_one(&mut self) -> Option<Action> {
        match self.closing? {
            Closing::Winner { id, handshake } => {
                if let Some(index) = self.attempts.iter().position(|a| a.id != id) {
                    let loser = self.attempts.remove(index);
                    self.losers.push(loser.candidate);
                    return Some(Action::Cancel(loser.id, Why::Lost));
                }
                self.closing = None;
                if handshake {
                    self.solo = true;
                    return Some(Action::Handshake(id));
                }
                self.winner = self.attempts.pop().map(|a| a.candidate);
                self.ended = Some(Ending::Won(id));
                Some(Action::Ended(Ending::Won(id)))
            }
            Closing::End(why, ending) => {
                if !self.attempts.is_empty() {
                    return Some(Action::Cancel(self.attempts.remove(0).id, why));
                }
                self.closing = None;
                self.ended = Some(ending);
                Some(Action::Ended(ending))
            }
        }
    }

    /// Handles the report of one attempt.
    fn settle(&mut self, now: Millis, index: usize) -> Option<Action> {
        let until = self.rules.race_until;
        let limit = Millis::from(self.rules.ready_timeout_ms);
        let attempt = self.attempts.get_mut(index)?;
        let id = attempt.id;
        match attempt.report.take()? {
            Report::Tcp { handshake: true } => {
                attempt.phase = Phase::Handshake;
                attempt.deadline = (limit > 0).then_some(now.saturating_add(limit));
                if until == RaceUntil::Tcp {
                    self.closing = Some(Closing::Winner { id, handshake: true });
                    return None;
                }
                self.extend(now);
                Some(Action::Handshake(id))
            }
            Report::Tcp { handshake: false } | Report::Ready if until == RaceUntil::Host => {
                attempt.phase = Phase::Offered;
                attempt.deadline = None;
                self.extend(now);
                Some(Action::Offer(id))
            }
            Report::Tcp { handshake: false } | Report::Ready => {
                self.closing = Some(Closing::Winner { id, handshake: false });
                None
            }
            Report::Failed { at_once } => {
                let attempt = self.attempts.remove(index);
                self.failed(now, &attempt, at_once);
                Some(Action::Failed(id))
            }
            Report::Exhausted => {
                let attempt = self.attempts.remove(index);
                if self.attempts.is_empty() {
                    self.closing = Some(Closing::End(Why::Stopped, Ending::Stopped(id)));
                    return Some(Action::Failed(id));
                }
                self.waiting.push_front(attempt.candidate);
                self.last_start = attempt.before.1;
                self.next_start = now.saturating_add(self.delay);
                Some(Action::PutBack(id))
            }
            Report::Stop => {
                self.attempts.remove(index);
                self.closing = Some(Closing::End(Why::Stopped, Ending::Stopped(id)));
                Some(Action::Failed(id))
            }
            Report::FollowUp(route) => {
                self.attempts.remove(index);
                if self.solo {
                    self.requeue(now, Some(route));
                } else {
                    self.waiting.push_front(route);
                }
                None
            }
        }
    }

    fn extend(&mut self, now: Millis) {
        let pause = self.rules.ready_extend_ms.map_or(self.delay, Millis::from);
        self.next_start = self.next_start.max(now.saturating_add(pause));
    }

    fn failed(&mut self, now: Millis, attempt: &Attempt, at_once: bool) {
        if self.solo {
            self.requeue(now, None);
        } else if at_once && !self.rules.upstream_timing {
            (self.next_start, self.last_start) = attempt.before;
        } else if self.rules.on_failure == OnFailure::Immediate
            || self.rules.on_failure == OnFailure::Latest && attempt.id == self.next_id
        {
            self.next_start = self.next_start.min(now.max(self.last_start.saturating_add(FLOOR)));
        }
    }

    /// Selections are barriers: nothing of the next starts beside attempts of the present one.
    fn held_back(&self, front: &Candidate) -> bool {
        !self.rules.across_selections && !self.attempts.is_empty() && front.selection != self.selection
    }

    /// When the first route of live answers may start; `None` when that depends on an answer.
    fn live_gate(&self, now: Millis) -> Option<Millis> {
        let Some(live) = &self.live else { return Some(now) };
        let preferred_over = !live.open[live.preferred as usize];
        if live.started || preferred_over || self.waiting.iter().any(|c| c.family == live.preferred) {
            return Some(now);
        }
        Some(live.first_answer?.saturating_add(Millis::from(self.rules.resolution_delay_ms)))
    }

    fn start(&mut self, now: Millis) -> Option<Action> {
        if self.solo {
            return None;
        }
        let idle = self.attempts.is_empty();
        if !idle && now < self.next_start {
            return None;
        }
        let front = match self.waiting.front() {
            Some(front) => *front,
            None => {
                if self.rules.upstream_timing && !idle {
                    self.next_start = now.saturating_add(self.delay);
                }
                return None;
            }
        };
        if self.held_back(&front) || self.live_gate(now).is_none_or(|at| at > now) {
            return None;
        }
        let cap = self.rules.max_in_flight as usize;
        if cap > 0 && self.attempts.len() >= cap {
            if self.rules.cap_policy == CapPolicy::Wait {
                return None;
            }
            let oldest = self.attempts.iter().position(|a| a.phase != Phase::Offered)?;
            return Some(Action::Cancel(self.attempts.remove(oldest).id, Why::Dropped));
        }
        let candidate = self.pick(front)?;
        self.selection = candidate.selection;
        self.next_id += 1;
        let limit = Millis::from(self.rules.attempt_timeout_ms);
        self.attempts.push(Attempt {
            id: self.next_id,
            candidate,
            phase: Phase::Connecting,
            deadline: (limit > 0).then_some(now.saturating_add(limit)),
            report: None,
            before: (self.next_start, self.last_start),
        });
        self.last_start = now;
        self.next_start = now.saturating_add(self.delay);
        Some(Action::Start { attempt: self.next_id, route: candidate.route })
    }

    /// The next route: the front one, or for live answers the family whose turn it is.
    fn pick(&mut self, front: Candidate) -> Option<Candidate> {
        let Some(live) = &mut self.live else { return self.waiting.pop_front() };
        let wanted = if live.started_preferred < self.rules.first_family_count.max(1) {
            live.preferred
        } else {
            live.last.map_or(live.preferred, Family::other)
        };
        let index = self
            .waiting
            .iter()
            .position(|c| c.family == wanted && c.selection == front.selection)
            .unwrap_or_default();
        let candidate = self.waiting.remove(index)?;
        live.started = true;
        live.last = Some(candidate.family);
        live.started_preferred += u32::from(candidate.family == live.preferred);
        Some(candidate)
    }

    /// Nothing is due: ask, end or wait.
    fn rest(&mut self, now: Millis) -> Action {
        let open = self.families_open();
        let idle = self.attempts.is_empty();
        if self.waiting.is_empty() && !open && !self.solo {
            let may_ask = idle || self.rules.across_selections && now >= self.next_start;
            if may_ask && !self.no_more_routes && !self.asked {
                self.asked = true;
                self.live = None;
                return Action::NeedRoutes;
            }
            if idle && self.no_more_routes {
                self.ended = Some(Ending::Failed);
                return Action::Ended(Ending::Failed);
            }
        }
        Action::Wait(self.deadline(now))
    }

    fn deadline(&self, now: Millis) -> Option<Millis> {
        let attempts = self.attempts.iter().filter_map(|a| a.deadline).min();
        [attempts, self.overall, self.limit, self.next_turn(now)].into_iter().flatten().min()
    }

    /// When the next start could be, if only time stands in its way.
    fn next_turn(&self, now: Millis) -> Option<Millis> {
        if self.solo {
            return None;
        }
        let idle = self.attempts.is_empty();
        match self.waiting.front() {
            Some(front) => {
                let cap = self.rules.max_in_flight as usize;
                let full = cap > 0
                    && self.attempts.len() >= cap
                    && (self.rules.cap_policy == CapPolicy::Wait
                        || self.attempts.iter().all(|a| a.phase == Phase::Offered));
                if self.held_back(front) || full {
                    return None;
                }
                let gate = self.live_gate(now)?;
                Some(if idle { gate } else { gate.max(self.next_start) })
            }
            None => {
                let asks = self.rules.across_selections && !self.no_more_routes && !self.asked;
                (!idle && (asks || self.rules.upstream_timing)).then_some(self.next_start)
            }
        }
    }
}
