//! What an engine remembers about the calls it placed: calls in flight, response times, load, turns.
//!
//! One *cell* per service, method and provider tag. Cells live in tables that only grow, are addressed by number and
//! reused with a new generation, so reading and counting need no lock and a late answer cannot hit the wrong one.
//! A *ticket* is one call begun; ending it twice, or after its provider or list is gone, does nothing.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use core::sync::atomic::{Ordering::AcqRel, Ordering::Acquire};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use super::{Balance, plan::Calls, plan::Providers};
use crate::runtime::clock::Clock;

/// One call begun. 64 bits the host carries and gives back; 0 means that nothing needs to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Nothing to end.
    pub const NONE: Ticket = Ticket(0);
}

/// How a call went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// It was answered without a failure.
    pub ok: bool,
    /// Its length in nanoseconds; `None` = from pick to now, by the engine's clock.
    pub latency_ns: Option<u64>,
    /// What the provider said about itself, if anything.
    pub report: Option<ProviderReport>,
}

/// A provider's words about itself, which Dubbo sends back in an answer's attachments (`curTime`, `load`, `rt`).
#[derive(Clone, Copy, Debug)]
pub struct ProviderReport {
    /// The provider's wall clock in milliseconds; reports older than the last one are ignored.
    pub time_ms: i64,
    /// CPU load; any scale that all providers share.
    pub load: f64,
    /// Its own measure of the response time, in milliseconds.
    pub latency_ms: f64,
}

/// Counters of one engine.
pub struct CallStats {
    cells: [OnceCell<Segment>; SEGMENTS],
    next_cell: AtomicU32,
    free_cells: Mutex<Vec<u32>>,
    slots: [OnceCell<Box<[Slot]>>; SEGMENTS],
    next_slot: AtomicU32,
    free_slots: [FreeList; SHARDS],
    untracked: AtomicU64,
    services: Mutex<HashMap<Box<str>, Weak<ServiceStats>>>,
}

const FIRST_SEGMENT: u32 = 64;
const SEGMENTS: usize = 22;
const SHARDS: usize = 8;
/// Calls in flight that are counted at once; more are placed uncounted.
const MAX_TICKETS: u32 = 1 << 20;
/// Cells at once; providers beyond it share the last one.
const MAX_CELLS: u32 = FIRST_SEGMENT * ((1 << SEGMENTS) - 1);
/// Response times are averaged over windows of this length (`shortestResponseSlidePeriod`).
pub(super) const WINDOW_NS: u64 = 30_000_000_000;
/// A provider unseen for so long is forgotten.
const FORGET_NS: u64 = 60_000_000_000;
/// Methods of a service with counters of their own; the others share one set.
const MAX_METHODS: usize = 256;

/// Cells of equal size class. The parts an algorithm needs are made when it is first used.
struct Segment {
    active: Box<[AtomicU64]>,
    holders: Box<[AtomicU32]>,
    credits: OnceCell<Box<[Credit]>>,
    responses: OnceCell<Box<[Response]>>,
    loads: OnceCell<Box<[Load]>>,
}

#[derive(Default)]
struct Credit {
    current: AtomicI64,
    weight: AtomicU32,
}

#[derive(Default)]
struct Response {
    window: AtomicU64,
    answers: AtomicU64,
    elapsed_ns: AtomicU64,
}

/// Padded: two providers' loads are written by different threads.
#[repr(align(64))]
struct Load {
    ewma_ms: AtomicU64,
    updated_ns: AtomicU64,
    picked_ns: AtomicU64,
    requests: AtomicU64,
    successes: AtomicU64,
    cpu: AtomicU64,
    reported_ms: AtomicI64,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            ewma_ms: AtomicU64::new(0),
            updated_ns: AtomicU64::new(0),
            picked_ns: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            successes: AtomicU64::new(0),
            // Without reports all providers count as equally loaded.
            cpu: AtomicU64::new(1_f64.to_bits()),
            reported_ms: AtomicI64::new(i64::MIN),
        }
    }
}

/// A begun call. `state` is even when free, odd when begun, and never repeats until 2^31 calls later.
#[derive(Default)]
struct Slot {
    state: AtomicU32,
    next: AtomicU32,
    cell: AtomicU32,
    generation: AtomicU32,
    started_ns: AtomicU64,
}

/// A lock-free stack of slot numbers; the upper half of the head is a change counter.
#[derive(Default)]
#[repr(align(64))]
struct FreeList(AtomicU64);

fn table<T: Default>(part: usize) -> Box<[T]> {
    (0..(FIRST_SEGMENT as usize) << part).map(|_| T::default()).collect()
}

/// Number of the segment and place in it.
#[inline]
fn locate(index: u32) -> (usize, usize) {
    let shifted = u64::from(index) + u64::from(FIRST_SEGMENT);
    let part = (shifted / u64::from(FIRST_SEGMENT)).ilog2();
    (part as usize, (shifted - (u64::from(FIRST_SEGMENT) << part)) as usize)
}

impl Segment {
    fn new(part: usize) -> Segment {
        Segment {
            active: table(part),
            holders: table(part),
            credits: OnceCell::new(),
            responses: OnceCell::new(),
            loads: OnceCell::new(),
        }
    }
}

impl CallStats {
    /// No calls yet.
    pub fn new() -> Arc<CallStats> {
        Arc::new(CallStats {
            cells: [const { OnceCell::new() }; SEGMENTS],
            next_cell: AtomicU32::new(0),
            free_cells: Mutex::new(Vec::new()),
            slots: [const { OnceCell::new() }; SEGMENTS],
            next_slot: AtomicU32::new(0),
            free_slots: Default::default(),
            untracked: AtomicU64::new(0),
            services: Mutex::default(),
        })
    }

    /// The counters of one service; chains of the same service share them. They go with the last holder.
    pub fn service(self: &Arc<Self>, key: &str) -> Arc<ServiceStats> {
        let mut services = self.services.lock();
        if let Some(service) = services.get(key).and_then(Weak::upgrade) {
            return service;
        }
        let service =
            Arc::new(ServiceStats { stats: Arc::clone(self), key: key.into(), methods: Mutex::default() });
        services.insert(key.into(), Arc::downgrade(&service));
        service
    }

    /// Ends a call. False when there was nothing to end: no ticket, an unknown one, or one ended before.
    pub fn end(&self, ticket: Ticket, outcome: &Outcome, clock: &Clock) -> bool {
        let (state, number) = ((ticket.0 >> 32) as u32, ticket.0 as u32);
        let Some((index, slot)) = number.checked_sub(1).and_then(|index| Some((index, self.slot(index)?)))
        else {
            return false;
        };
        if state % 2 == 0 {
            return false;
        }
        let (cell, generation) = (slot.cell.load(Relaxed), slot.generation.load(Relaxed));
        let started = slot.started_ns.load(Relaxed);
        if slot.state.compare_exchange(state, state.wrapping_add(1), AcqRel, Relaxed).is_err() {
            return false;
        }
        self.push_free(index, slot);
        if self.leave(cell, generation) {
            let now = clock.monotonic_ns();
            let latency = outcome.latency_ns.unwrap_or_else(|| now.saturating_sub(started));
            self.record(cell, outcome, latency, now);
        }
        true
    }

    /// Calls in flight of a cell.
    #[inline]
    pub(super) fn active(&self, cell: u32) -> u32 {
        self.at(cell)
            .and_then(|(segment, at)| segment.active.get(at))
            .map_or(0, |cell| cell.load(Relaxed) as u32)
    }

    /// Calls that were placed uncounted because too many tickets were never given back.
    pub fn untracked(&self) -> u64 {
        self.untracked.load(Relaxed)
    }

    /// Cells in use and calls in flight, for leak checks.
    pub fn live(&self) -> (usize, usize) {
        let cells = self.next_cell.load(Relaxed) as usize - self.free_cells.lock().len();
        let begun = (0..self.next_slot.load(Relaxed))
            .filter(|index| self.slot(*index).is_some_and(|slot| slot.state.load(Relaxed) % 2 == 1))
            .count();
        (cells, begun)
    }

    pub(super) fn begin(&self, cell: u32, balance: Balance, now: u64) -> Ticket {
        let Some((segment, at)) = self.at(cell) else { return Ticket::NONE };
        if balance == Balance::P2c
            && let Some(load) = segment.loads.get_or_init(|| table_like(&segment.active)).get(at)
        {
            load.requests.fetch_add(1, Relaxed);
            load.picked_ns.store(now, Relaxed);
        } else if balance == Balance::ShortestResponse {
            segment.responses.get_or_init(|| table_like(&segment.active));
        }
        let Some((index, slot)) = self.pop_free() else {
            self.untracked.fetch_add(1, Relaxed);
            return Ticket::NONE;
        };
        let Some(active) = segment.active.get(at) else { return Ticket::NONE };
        let generation = (active.fetch_add(1, Relaxed) >> 32) as u32;
        slot.cell.store(cell, Relaxed);
        slot.generation.store(generation, Relaxed);
        slot.started_ns.store(now, Relaxed);
        let state = slot.state.load(Relaxed).wrapping_add(1);
        slot.state.store(state, core::sync::atomic::Ordering::Release);
        Ticket(u64::from(state) << 32 | u64::from(index + 1))
    }

    /// Average response time in the running window times calls in flight plus one; 0 without answers.
    pub(super) fn estimate(&self, cell: u32, now: u64) -> u64 {
        let Some((segment, at)) = self.at(cell) else { return 0 };
        let Some(response) = segment.responses.get().and_then(|all| all.get(at)) else { return 0 };
        let answers = response.answers.load(Relaxed);
        if answers == 0 || response.window.load(Relaxed) != now / WINDOW_NS {
            return 0;
        }
        let average = response.elapsed_ns.load(Relaxed) / answers;
        average.saturating_mul(u64::from(self.active(cell)) + 1)
    }

    /// Upstream's adaptive load: CPU load * (sqrt(average response time) + 1) * (in flight + 1)
    /// / (success ratio * weight + 1). 0 for a provider that was not asked for twice its timeout.
    ///
    /// The average fades with time, by half per timeout, and towards twice the timeout while asked calls stay
    /// unanswered. Upstream lets it fade per *look*, so that it depends on how often others are called.
    pub(super) fn load(&self, cell: u32, weight: u32, timeout_ms: u32, now: u64) -> f64 {
        let Some((segment, at)) = self.at(cell) else { return 0.0 };
        let Some(load) = segment.loads.get().and_then(|all| all.get(at)) else { return 0.0 };
        let timeout_ns = u64::from(timeout_ms.max(1)) * 1_000_000;
        let picked = load.picked_ns.load(Relaxed);
        if load.requests.load(Relaxed) == 0 || now.saturating_sub(picked) > timeout_ns.saturating_mul(2) {
            return 0.0;
        }
        let active = f64::from(self.active(cell));
        let mut ewma = f64::from_bits(load.ewma_ms.load(Relaxed));
        let updated = load.updated_ns.load(Relaxed);
        let periods = now.saturating_sub(updated) / timeout_ns;
        if updated > 0 && periods > 0 {
            let kept = 0.5_f64.powi(i32::try_from(periods).unwrap_or(i32::MAX));
            let silent = active > 0.0 && picked > updated;
            ewma = ewma * kept + if silent { (1.0 - kept) * 2.0 * f64::from(timeout_ms) } else { 0.0 };
        }
        let ratio = load.successes.load(Relaxed) as f64 / (load.requests.load(Relaxed) as f64 + 1.0);
        let cpu = f64::from_bits(load.cpu.load(Relaxed));
        cpu * (ewma.sqrt() + 1.0) * (active + 1.0) / (ratio * f64::from(weight) + 1.0)
    }

    /// Adds the weight to a provider's credit and returns the new credit. A changed weight starts it anew.
    pub(super) fn earn(&self, cell: u32, weight: u32, full: u32) -> i64 {
        let Some(credit) = self.credit(cell) else { return 0 };
        if credit.weight.load(Relaxed) != full {
            credit.weight.store(full, Relaxed);
            credit.current.store(0, Relaxed);
        }
        credit.current.fetch_add(i64::from(weight), Relaxed) + i64::from(weight)
    }

    pub(super) fn pay(&self, cell: u32, total: i64) {
        if let Some(credit) = self.credit(cell) {
            credit.current.fetch_sub(total, Relaxed);
        }
    }

    fn credit(&self, cell: u32) -> Option<&Credit> {
        let (segment, at) = self.at(cell)?;
        segment.credits.get_or_init(|| table_like(&segment.active)).get(at)
    }

    /// One call less in flight, if the cell still is the one it was begun on.
    fn leave(&self, cell: u32, generation: u32) -> bool {
        let Some(active) = self.at(cell).and_then(|(segment, at)| segment.active.get(at)) else {
            return false;
        };
        active
            .fetch_update(AcqRel, Relaxed, |value| {
                ((value >> 32) as u32 == generation && value as u32 > 0).then(|| value - 1)
            })
            .is_ok()
    }

    fn record(&self, cell: u32, outcome: &Outcome, latency_ns: u64, now: u64) {
        let Some((segment, at)) = self.at(cell) else { return };
        if outcome.ok
            && let Some(response) = segment.responses.get().and_then(|all| all.get(at))
        {
            response.add(latency_ns, now);
        }
        if let Some(load) = segment.loads.get().and_then(|all| all.get(at)) {
            load.add(outcome, latency_ns, now);
        }
    }

    #[inline]
    fn at(&self, cell: u32) -> Option<(&Segment, usize)> {
        let (part, at) = locate(cell);
        Some((self.cells.get(part)?.get()?, at))
    }

    fn allocate_cell(&self) -> u32 {
        if let Some(cell) = self.free_cells.lock().pop() {
            return cell;
        }
        let cell = self
            .next_cell
            .fetch_update(Relaxed, Relaxed, |next| (next < MAX_CELLS).then_some(next + 1))
            .unwrap_or(MAX_CELLS - 1);
        let (part, _) = locate(cell);
        if let Some(segment) = self.cells.get(part) {
            segment.get_or_init(|| Segment::new(part));
        }
        cell
    }

    fn free_cell(&self, cell: u32) {
        let Some((segment, at)) = self.at(cell) else { return };
        if let Some(active) = segment.active.get(at) {
            let _ = active.fetch_update(AcqRel, Relaxed, |value| Some(((value >> 32).wrapping_add(1)) << 32));
        }
        if let Some(credit) = segment.credits.get().and_then(|all| all.get(at)) {
            credit.current.store(0, Relaxed);
        }
        if let Some(response) = segment.responses.get().and_then(|all| all.get(at)) {
            response.answers.store(0, Relaxed);
        }
        if let Some(load) = segment.loads.get().and_then(|all| all.get(at)) {
            load.reset();
        }
        self.free_cells.lock().push(cell);
    }

    fn hold(&self, cell: u32, change: i32) {
        if let Some(holders) = self.at(cell).and_then(|(segment, at)| segment.holders.get(at)) {
            holders.fetch_add(change as u32, AcqRel);
        }
    }

    fn is_held(&self, cell: u32) -> bool {
        let holders = self.at(cell).and_then(|(segment, at)| segment.holders.get(at));
        holders.is_some_and(|holders| holders.load(Acquire) > 0)
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot> {
        let (part, at) = locate(index);
        self.slots.get(part)?.get()?.get(at)
    }

    fn pop_free(&self) -> Option<(u32, &Slot)> {
        let own = shard();
        if let Some(slot) = self.pop_from(own) {
            return Some(slot);
        }
        let grown = self.next_slot.fetch_update(Relaxed, Relaxed, |n| (n < MAX_TICKETS).then_some(n + 1));
        if let Ok(index) = grown {
            let (part, at) = locate(index);
            return self.slots.get(part)?.get_or_init(|| table(part)).get(at).map(|slot| (index, slot));
        }
        (0..SHARDS).find_map(|other| self.pop_from(other))
    }

    fn pop_from(&self, shard: usize) -> Option<(u32, &Slot)> {
        let head = &self.free_slots.get(shard)?.0;
        let mut seen = head.load(Acquire);
        loop {
            let index = (seen as u32).checked_sub(1)?;
            let slot = self.slot(index)?;
            let next = u64::from(slot.next.load(Relaxed));
            let changed = ((seen >> 32) + 1) << 32 | next;
            match head.compare_exchange_weak(seen, changed, AcqRel, Acquire) {
                Ok(_) => return Some((index, slot)),
                Err(now) => seen = now,
            }
        }
    }

    fn push_free(&self, index: u32, slot: &Slot) {
        let Some(FreeList(head)) = self.free_slots.get(shard()) else { return };
        let mut seen = head.load(Relaxed);
        loop {
            slot.next.store(seen as u32, Relaxed);
            let changed = ((seen >> 32) + 1) << 32 | u64::from(index + 1);
            match head.compare_exchange_weak(seen, changed, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

impl fmt::Debug for CallStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cells, begun) = self.live();
        write!(f, "CallStats({cells} cells, {begun} calls)")
    }
}

fn table_like<T: Default>(other: &[AtomicU64]) -> Box<[T]> {
    other.iter().map(|_| T::default()).collect()
}

/// A number that stays with the thread, so that threads mostly use free lists of their own.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    std::thread_local!(static SHARD: usize = NEXT.fetch_add(1, Relaxed) % SHARDS);
    SHARD.try_with(|shard| *shard).unwrap_or(0)
}

impl Response {
    /// A sample that meets a change of window may be lost; averages can bear it.
    fn add(&self, latency_ns: u64, now: u64) {
        let window = now / WINDOW_NS;
        let seen = self.window.load(Relaxed);
        if seen != window && self.window.compare_exchange(seen, window, AcqRel, Relaxed).is_ok() {
            self.answers.store(0, Relaxed);
            self.elapsed_ns.store(0, Relaxed);
        }
        self.elapsed_ns.fetch_add(latency_ns, Relaxed);
        self.answers.fetch_add(1, Relaxed);
    }
}

impl Load {
    fn add(&self, outcome: &Outcome, latency_ns: u64, now: u64) {
        if outcome.ok {
            self.successes.fetch_add(1, Relaxed);
        }
        let ewma = f64::from_bits(self.ewma_ms.load(Relaxed));
        let sample = match outcome.report {
            Some(report) => {
                if self.reported_ms.fetch_max(report.time_ms, Relaxed) > report.time_ms {
                    return;
                }
                if report.load.is_finite() {
                    self.cpu.store(report.load.max(0.0).to_bits(), Relaxed);
                }
                Some(report.latency_ms).filter(|ms| ms.is_finite()).map(|ms| ms.max(0.0))
            }
            None => {
                let ms = latency_ns as f64 / 1e6;
                // A quick failure does not make a provider quick; a slow one makes it slow.
                Some(ms).filter(|ms| outcome.ok || *ms > ewma)
            }
        };
        if let Some(sample) = sample {
            self.ewma_ms.store((ewma * 0.5 + sample * 0.5).to_bits(), Relaxed);
        }
        self.updated_ns.store(now, Relaxed);
    }

    fn reset(&self) {
        let Load { ewma_ms, updated_ns, picked_ns, requests, successes, cpu, reported_ms } = self;
        for counter in [ewma_ms, updated_ns, picked_ns, requests, successes] {
            counter.store(0, Relaxed);
        }
        cpu.store(1_f64.to_bits(), Relaxed);
        reported_ms.store(i64::MIN, Relaxed);
    }
}

/// Counters of one service.
pub struct ServiceStats {
    stats: Arc<CallStats>,
    key: Box<str>,
    methods: Mutex<HashMap<Box<[u8]>, Arc<MethodStats>>>,
}

/// Counters of one method of a service.
pub(super) struct MethodStats {
    cells: Mutex<HashMap<u64, Cell>>,
    turns: [AtomicU64; TURNS],
}

const TURNS: usize = 64;

struct Cell {
    number: u32,
    /// When it was first found unused; 0 = in use.
    unused_since_ns: u64,
}

impl ServiceStats {
    pub(super) fn stats(&self) -> &CallStats {
        &self.stats
    }

    /// The counters of a method for a list: one cell per row, the same cell for the same tag as before.
    pub(super) fn calls(&self, method: &[u8], providers: &impl Providers, clock: &Clock) -> Calls {
        let method = self.method(method);
        let now = clock.monotonic_ns().max(1);
        let mut known = method.cells.lock();
        let cells: Box<[u32]> = (0..providers.len())
            .map(|row| {
                let cell = known
                    .entry(providers.tag(row))
                    .or_insert_with(|| Cell { number: self.stats.allocate_cell(), unused_since_ns: 0 });
                cell.unused_since_ns = 0;
                self.stats.hold(cell.number, 1);
                cell.number
            })
            .collect();
        // Providers that are gone stay for a while, they often come back; but no more of them than live ones.
        let crowded = known.len() > 2 * cells.len() + 1024;
        known.retain(|_, cell| {
            if self.stats.is_held(cell.number) {
                return true;
            }
            if cell.unused_since_ns == 0 {
                cell.unused_since_ns = now;
            }
            let keep = !crowded && now.saturating_sub(cell.unused_since_ns) <= FORGET_NS;
            if !keep {
                self.stats.free_cell(cell.number);
            }
            keep
        });
        drop(known);
        Calls::new(Arc::clone(&self.stats), method, cells)
    }

    /// Counters of a method; behind the bound one set for all further methods, since names come from callers.
    fn method(&self, name: &[u8]) -> Arc<MethodStats> {
        let mut methods = self.methods.lock();
        let name = if methods.len() < MAX_METHODS || methods.contains_key(name) { name } else { b"" };
        let fresh =
            || Arc::new(MethodStats { cells: Mutex::default(), turns: [const { AtomicU64::new(0) }; TURNS] });
        Arc::clone(methods.entry(name.into()).or_insert_with(fresh))
    }
}

impl Drop for ServiceStats {
    fn drop(&mut self) {
        let mut services = self.stats.services.lock();
        if services.get(&self.key).is_some_and(|service| service.strong_count() == 0) {
            services.remove(&self.key);
        }
        drop(services);
        for method in self.methods.lock().values() {
            for cell in method.cells.lock().drain() {
                self.stats.free_cell(cell.1.number);
            }
        }
    }
}

impl fmt::Debug for ServiceStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceStats({})", self.key)
    }
}

impl MethodStats {
    /// The next number of a round over one set of candidates. Sets are told apart by size and ends: two routing
    /// results used in turn must not share a counter, or each would only ever see every second number.
    pub(super) fn next_turn(&self, count: usize, ends: [u64; 2]) -> u64 {
        let [first, last] = ends;
        let mixed = (first ^ last.rotate_left(32) ^ (count as u64).rotate_left(17)).wrapping_mul(MIX);
        let turn = self.turns.get((mixed >> 58) as usize);
        turn.map_or(0, |turn| turn.fetch_add(1, Relaxed))
    }
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Calls {
    fn new(stats: Arc<CallStats>, method: Arc<MethodStats>, cells: Box<[u32]>) -> Calls {
        Calls { stats, method, cells }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        for cell in &self.cells {
            self.stats.hold(*cell, -1);
        }
    }
}
