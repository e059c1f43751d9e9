//! [`RouteDatabase`]: what failed, so that the next selector puts it behind what did not.
//!
//! Three layers, cheapest first: an atomic count (a healthy client never gets further), a lock-free filter of
//! 16-bit fingerprints that errs only towards "maybe", and the exact table under a mutex.
//! Times are milliseconds of one monotonic clock that the caller reads; nobody reads it unless an entry is found.

use super::address::Origin;
use super::failure::Failure;
use super::hash::Seed;
use super::proxy::Proxy;
use super::route::{Route, RouteKey};
use hashbrown::HashTable;
use once_cell::sync::OnceCell;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// When a reported failure enters the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(i32)]
pub enum Commit {
    /// At once.
    #[default]
    Always = 0,
    /// When the selector that made the route reports a route connected: a machine that is simply offline then
    /// learns nothing wrong.
    OnSuccess = 1,
}

/// How long and how many. Fixed for the life of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// First postponement in milliseconds; 0 means until connected.
    pub postpone_ms: u64,
    /// Longest postponement. Every failed period adds `postpone_ms` up to this; not above it, not below
    /// `postpone_ms`.
    pub longest_ms: u64,
    /// Most records; the oldest goes first. 0 means no bound (OkHttp).
    pub capacity: usize,
    /// When a failure counts.
    pub commit: Commit,
}

impl Default for Policy {
    /// 5 minutes, up to 30, 4096 records, at once.
    fn default() -> Policy {
        Policy { postpone_ms: 300_000, longest_ms: 1_800_000, capacity: 4096, commit: Commit::Always }
    }
}

impl Policy {
    /// OkHttp's: for ever, unbounded, at once.
    pub const OKHTTP: Policy = Policy { postpone_ms: 0, longest_ms: 0, capacity: 0, commit: Commit::Always };

    fn grows(&self) -> bool {
        self.longest_ms > self.postpone_ms
    }

    fn penalty(&self, periods: u32) -> u64 {
        match self.postpone_ms {
            0 => u64::MAX,
            first => first.saturating_mul(u64::from(periods)).min(self.longest_ms.max(first)),
        }
    }
}

/// "No record" in the list of ages.
const NIL: u32 = u32::MAX;

pub(crate) struct Record {
    pub(crate) key: RouteKey,
    /// Keeps the ids in the key alive, so that an equal address made later has the same one.
    pub(crate) origin: Arc<Origin>,
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) since: u64,
    pub(crate) until: u64,
    pub(crate) periods: u32,
    pub(crate) failure: Failure,
    pub(crate) os_errno: i32,
    hash: u64,
    older: u32,
    newer: u32,
}

impl Record {
    fn postponed(&self, now: u64) -> bool {
        now < self.until
    }

    /// After its postponement a record is kept for the same time again, so that a route that fails right after
    /// it was tried again is postponed for longer.
    fn forgotten(&self, now: u64, policy: &Policy) -> bool {
        if self.postponed(now) || self.until == u64::MAX {
            return false;
        }
        !policy.grows() || now >= self.until.saturating_add(self.until.saturating_sub(self.since))
    }
}

/// A failure that waits for its selector's success.
struct Pending {
    route: Route,
    failure: Failure,
    os_errno: i32,
    at: u64,
}

#[derive(Default)]
pub(crate) struct Table {
    index: HashTable<u32>,
    records: Vec<Record>,
    oldest: u32,
    newest: u32,
    pending: HashMap<u64, Vec<Pending>>,
    pending_count: usize,
    /// Per bucket of the filter: keys that have no lane of their own.
    crowded: HashMap<usize, usize>,
}

/// One failed route as a person or an export sees it. Times are relative: monotonic clocks mean nothing elsewhere.
#[derive(Clone, Debug)]
pub struct FailedRoute {
    /// Its key.
    pub key: RouteKey,
    /// TLS, host, port, TLS identity.
    pub origin: Arc<OriginText>,
    /// Its proxy.
    pub proxy: Option<Arc<Proxy>>,
    /// Milliseconds since the failure that began this postponement.
    pub age_ms: u64,
    /// Milliseconds until it counts as good again; `None` = until connected.
    pub remaining_ms: Option<u64>,
    /// Failed periods in a row.
    pub periods: u32,
    /// What happened.
    pub failure: Failure,
    /// The operating system's number, 0 when there is none.
    pub os_errno: i32,
}

/// An [`Origin`] with a text.
pub struct OriginText(pub Arc<Origin>);

impl core::fmt::Debug for OriginText {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let scheme = if self.0.tls() { "tls" } else { "plain" };
        write!(f, "{scheme} {}:{}", self.0.host().bracketed(), self.0.port())
    }
}

/// Figures for a host's monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Routes postponed now.
    pub postponed: usize,
    /// Records held, including those whose postponement is over but not yet forgotten.
    pub records: usize,
    /// Failures that wait for their selector's success.
    pub pending: usize,
    /// Times the network changed.
    pub generation: u64,
}

/// Failed routes. Every method takes `&self` and may be called from every thread.
pub struct RouteDatabase {
    len: AtomicUsize,
    generation: AtomicU64,
    seed: Seed,
    policy: Policy,
    buckets: usize,
    filter: OnceCell<Box<[AtomicU64]>>,
    table: Mutex<Table>,
}

/// Four 16-bit fingerprints in a word; 0 = free lane, `CROWDED` = anything may be here.
const CROWDED: u16 = u16::MAX;
const LANES: u64 = 0x0001_0001_0001_0001;

/// True when one of the four lanes of `word` equals `lane` (exact: no borrow can cross into a lane below the first
/// equal one, and a false lane above it does not change the answer).
#[inline]
fn has_lane(word: u64, lane: u16) -> bool {
    let x = word ^ (LANES * u64::from(lane));
    x.wrapping_sub(LANES) & !x & (LANES << 15) != 0
}

#[inline]
fn tag_of(hash: u64) -> u16 {
    // 1..=0xfffe: neither "free" nor "crowded".
    ((hash >> 48) as u16).clamp(1, CROWDED - 1)
}

impl RouteDatabase {
    /// An empty database.
    pub fn new(policy: Policy) -> RouteDatabase {
        let expected = if policy.capacity == 0 { 1 << 16 } else { policy.capacity };
        RouteDatabase {
            len: AtomicUsize::new(0),
            generation: AtomicU64::new(0),
            seed: Seed::random(),
            policy,
            buckets: expected.clamp(64, 1 << 24).next_power_of_two(),
            filter: OnceCell::new(),
            table: Mutex::new(Table { oldest: NIL, newest: NIL, ..Table::default() }),
        }
    }

    /// Its policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// True when no record is held: the usual state of a healthy client.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// May the key be in the table? `false` is certain.
    #[inline]
    fn maybe(&self, hash: u64) -> bool {
        let Some(filter) = self.filter.get() else { return false };
        let Some(word) = filter.get(hash as usize & (self.buckets - 1)) else { return true };
        let word = word.load(Ordering::Acquire);
        has_lane(word, tag_of(hash)) || has_lane(word, CROWDED)
    }

    /// Should this route go behind the others? `now` is asked only when a record is found.
    #[inline]
    pub fn should_postpone(&self, key: &RouteKey, now: impl FnOnce() -> u64) -> bool {
        if self.is_empty() {
            return false;
        }
        let hash = self.seed.hash(&key.0);
        self.maybe(hash) && self.look_up(key, hash, now)
    }

    #[inline(never)]
    fn look_up(&self, key: &RouteKey, hash: u64, now: impl FnOnce() -> u64) -> bool {
        let mut table = self.table.lock();
        self.postponed_in(&mut table, key, hash, now)
    }

    fn postponed_in(&self, table: &mut Table, key: &RouteKey, hash: u64, now: impl FnOnce() -> u64) -> bool {
        let Some(at) = table.find(key, hash) else { return false };
        let Some(record) = table.records.get(at as usize) else { return false };
        if record.until == u64::MAX {
            return true;
        }
        let now = now();
        let (postponed, forgotten) = (record.postponed(now), record.forgotten(now, &self.policy));
        if forgotten {
            self.remove_at(table, at);
        }
        postponed
    }

    /// Checks several routes, taking the lock at most once.
    pub fn checker<'a>(&'a self, now: &'a dyn Fn() -> u64) -> Checker<'a> {
        Checker { database: self, table: None, now, now_ms: None }
    }

    /// Records a failure of a route. Failures that do not blame the route change nothing.
    ///
    /// Inside a running postponement a further failure counts once; after it, the next postponement is longer.
    pub fn failed(&self, route: &Route, failure: Failure, os_errno: i32, now: u64) {
        if failure.blames_route() {
            self.put(route, failure, os_errno, now);
        }
    }

    /// Records a failure whatever its kind (OkHttp 3).
    pub fn put(&self, route: &Route, failure: Failure, os_errno: i32, now: u64) {
        let mut table = self.table.lock();
        if self.policy.commit == Commit::OnSuccess && route.selector != 0 {
            let bound = if self.policy.capacity == 0 { usize::MAX } else { self.policy.capacity };
            if table.pending_count < bound {
                table.pending_count += 1;
                let pending = Pending { route: route.clone(), failure, os_errno, at: now };
                table.pending.entry(route.selector).or_default().push(pending);
            }
            return;
        }
        self.commit(&mut table, route, failure, os_errno, now);
    }

    fn commit(&self, table: &mut Table, route: &Route, failure: Failure, os_errno: i32, now: u64) {
        let hash = self.seed.hash(&route.key.0);
        let Some(at) = table.find(&route.key, hash) else {
            let record = Record {
                key: route.key,
                origin: Arc::clone(route.address.origin()),
                proxy: route.proxy.clone(),
                since: now,
                until: now.saturating_add(self.policy.penalty(1)),
                periods: 1,
                failure,
                os_errno,
                hash,
                older: NIL,
                newer: NIL,
            };
            self.insert(table, record);
            return;
        };
        let policy = self.policy;
        let Some(record) = table.records.get_mut(at as usize) else { return };
        if record.postponed(now) {
            return;
        }
        record.periods = if record.forgotten(now, &policy) { 1 } else { record.periods.saturating_add(1) };
        record.since = now;
        record.until = now.saturating_add(policy.penalty(record.periods));
        (record.failure, record.os_errno) = (failure, os_errno);
        table.unlink(at);
        table.link_newest(at);
    }

    fn insert(&self, table: &mut Table, record: Record) {
        if self.policy.capacity != 0 && table.records.len() >= self.policy.capacity && table.oldest != NIL {
            self.remove_at(table, table.oldest);
        }
        let Ok(at) = u32::try_from(table.records.len()) else { return };
        if at == NIL {
            return;
        }
        let hash = record.hash;
        table.records.push(record);
        let Table { index, records, .. } = table;
        index.insert_unique(hash, at, |&at| records.get(at as usize).map_or(0, |record| record.hash));
        table.link_newest(at);
        self.filter_add(table, hash);
        self.len.store(table.records.len(), Ordering::Release);
    }

    /// Removes by position; the last record moves into the gap.
    fn remove_at(&self, table: &mut Table, at: u32) {
        let Some(hash) = table.records.get(at as usize).map(|record| record.hash) else { return };
        table.unlink(at);
        if let Ok(entry) = table.index.find_entry(hash, |&own| own == at) {
            entry.remove();
        }
        let last = table.records.len() as u32 - 1;
        table.records.swap_remove(at as usize);
        if last != at {
            table.moved(last, at);
        }
        self.filter_remove(table, hash);
        self.len.store(table.records.len(), Ordering::Release);
    }

    fn filter_add(&self, table: &mut Table, hash: u64) {
        let filter = self.filter.get_or_init(|| (0..self.buckets).map(|_| AtomicU64::new(0)).collect());
        let bucket = hash as usize & (self.buckets - 1);
        let Some(slot) = filter.get(bucket) else { return };
        let mut lanes = lanes_of(slot.load(Ordering::Relaxed));
        if let Some(free) = lanes.iter_mut().find(|lane| **lane == 0) {
            *free = tag_of(hash);
        } else {
            let crowded = table.crowded.entry(bucket).or_insert(0);
            if *crowded == 0 {
                // The displaced key loses its lane too.
                *crowded = 1;
                lanes[3] = CROWDED;
            }
            *crowded += 1;
        }
        slot.store(word_of(lanes), Ordering::Release);
    }

    fn filter_remove(&self, table: &mut Table, hash: u64) {
        let Some(filter) = self.filter.get() else { return };
        let bucket = hash as usize & (self.buckets - 1);
        let Some(slot) = filter.get(bucket) else { return };
        let mut lanes = lanes_of(slot.load(Ordering::Relaxed));
        if let Some(own) = lanes.iter_mut().find(|lane| **lane == tag_of(hash)) {
            // Another key of the bucket with the same tag may be the one without a lane; the counts agree anyway.
            *own = 0;
        } else if let Some(crowded) = table.crowded.get_mut(&bucket) {
            *crowded -= 1;
            if *crowded == 0 {
                table.crowded.remove(&bucket);
                if let Some(mark) = lanes.iter_mut().find(|lane| **lane == CROWDED) {
                    *mark = 0;
                }
            }
        }
        slot.store(word_of(lanes), Ordering::Release);
    }

    /// A route worked: it is forgotten, and under [`Commit::OnSuccess`] the other failures of its selector now
    /// count.
    pub fn connected(&self, route: &Route) {
        if self.is_empty() && self.policy.commit == Commit::Always {
            return;
        }
        let mut table = self.table.lock();
        for pending in table.take_pending(route.selector) {
            if pending.route.key != route.key {
                self.commit(&mut table, &pending.route, pending.failure, pending.os_errno, pending.at);
            }
        }
        let hash = self.seed.hash(&route.key.0);
        if let Some(at) = table.find(&route.key, hash) {
            self.remove_at(&mut table, at);
        }
    }

    /// A selector is gone: what it held back is dropped.
    #[inline]
    pub fn drop_pending(&self, selector: u64) {
        if self.policy.commit == Commit::OnSuccess {
            self.table.lock().take_pending(selector);
        }
    }

    /// The network is another one: everything is forgotten. Returns the new generation.
    pub fn network_changed(&self) -> u64 {
        let mut table = self.table.lock();
        self.clear(&mut table);
        self.generation.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn clear(&self, table: &mut Table) {
        table.index.clear();
        table.records.clear();
        (table.oldest, table.newest) = (NIL, NIL);
        table.pending.clear();
        table.pending_count = 0;
        table.crowded.clear();
        for slot in self.filter.get().into_iter().flatten() {
            slot.store(0, Ordering::Release);
        }
        self.len.store(0, Ordering::Release);
    }

    /// Times the network changed.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The record of a route, if it is postponed now.
    pub fn get(&self, key: &RouteKey, now: u64) -> Option<FailedRoute> {
        if self.is_empty() {
            return None;
        }
        let hash = self.seed.hash(&key.0);
        let table = self.table.lock();
        let record = table.records.get(table.find(key, hash)? as usize)?;
        record.postponed(now).then(|| record.show(now))
    }

    /// Routes postponed now, oldest first. Forgets what has run out.
    pub fn snapshot(&self, now: u64) -> Vec<FailedRoute> {
        let mut table = self.table.lock();
        let mut shown = Vec::with_capacity(table.records.len());
        let mut at = table.oldest;
        let mut forgotten = Vec::new();
        while let Some(record) = table.records.get(at as usize) {
            if record.postponed(now) {
                shown.push(record.show(now));
            } else if record.forgotten(now, &self.policy) {
                forgotten.push((record.key, record.hash));
            }
            at = record.newer;
        }
        for (key, hash) in forgotten {
            if let Some(at) = table.find(&key, hash) {
                self.remove_at(&mut table, at);
            }
        }
        shown
    }

    /// Figures; forgets what has run out.
    pub fn stats(&self, now: u64) -> Stats {
        let postponed = self.snapshot(now).len();
        let table = self.table.lock();
        Stats {
            postponed,
            records: table.records.len(),
            pending: table.pending_count,
            generation: self.generation(),
        }
    }

    /// Puts a record from an import.
    pub(crate) fn restore(&self, failed: FailedRoute, now: u64) {
        let mut table = self.table.lock();
        let hash = self.seed.hash(&failed.key.0);
        if table.find(&failed.key, hash).is_some() {
            return;
        }
        let until = failed.remaining_ms.map_or(u64::MAX, |remaining| now.saturating_add(remaining));
        let record = Record {
            key: failed.key,
            origin: Arc::clone(&failed.origin.0),
            proxy: failed.proxy,
            since: now.saturating_sub(failed.age_ms),
            until,
            periods: failed.periods.max(1),
            failure: failed.failure,
            os_errno: failed.os_errno,
            hash,
            older: NIL,
            newer: NIL,
        };
        self.insert(&mut table, record);
    }
}

fn lanes_of(word: u64) -> [u16; 4] {
    [word as u16, (word >> 16) as u16, (word >> 32) as u16, (word >> 48) as u16]
}

fn word_of(lanes: [u16; 4]) -> u64 {
    lanes.iter().rev().fold(0, |word, &lane| word << 16 | u64::from(lane))
}

impl Record {
    fn show(&self, now: u64) -> FailedRoute {
        FailedRoute {
            key: self.key,
            origin: Arc::new(OriginText(Arc::clone(&self.origin))),
            proxy: self.proxy.clone(),
            age_ms: now.saturating_sub(self.since),
            remaining_ms: (self.until != u64::MAX).then(|| self.until.saturating_sub(now)),
            periods: self.periods,
            failure: self.failure,
            os_errno: self.os_errno,
        }
    }
}

impl Table {
    fn find(&self, key: &RouteKey, hash: u64) -> Option<u32> {
        let same = |&at: &u32| self.records.get(at as usize).is_some_and(|record| record.key == *key);
        self.index.find(hash, same).copied()
    }

    fn link_newest(&mut self, at: u32) {
        let newest = self.newest;
        if let Some(record) = self.records.get_mut(at as usize) {
            (record.older, record.newer) = (newest, NIL);
        }
        match self.records.get_mut(newest as usize) {
            Some(record) => record.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Some((older, newer)) = self.records.get(at as usize).map(|record| (record.older, record.newer))
        else {
            return;
        };
        self.join(older, newer);
    }

    fn join(&mut self, older: u32, newer: u32) {
        match self.records.get_mut(older as usize) {
            Some(record) => record.newer = newer,
            None => self.oldest = newer,
        }
        match self.records.get_mut(newer as usize) {
            Some(record) => record.older = older,
            None => self.newest = older,
        }
    }

    /// The record at `from` now sits at `to`: index and neighbours follow.
    fn moved(&mut self, from: u32, to: u32) {
        let Some((hash, older, newer)) = self.records.get(to as usize).map(|r| (r.hash, r.older, r.newer))
        else {
            return;
        };
        if let Some(at) = self.index.find_mut(hash, |&at| at == from) {
            *at = to;
        }
        match self.records.get_mut(older as usize) {
            Some(record) => record.newer = to,
            None => self.oldest = to,
        }
        match self.records.get_mut(newer as usize) {
            Some(record) => record.older = to,
            None => self.newest = to,
        }
    }

    fn take_pending(&mut self, selector: u64) -> Vec<Pending> {
        let taken = self.pending.remove(&selector).unwrap_or_default();
        self.pending_count -= taken.len();
        taken
    }
}

/// See [`RouteDatabase::checker`]. Holds the lock from the first "maybe" on: drop it before host code runs.
pub struct Checker<'a> {
    database: &'a RouteDatabase,
    table: Option<MutexGuard<'a, Table>>,
    now: &'a dyn Fn() -> u64,
    now_ms: Option<u64>,
}

impl Checker<'_> {
    /// As [`RouteDatabase::should_postpone`], for a database that is not empty.
    #[inline]
    pub fn should_postpone(&mut self, key: &RouteKey) -> bool {
        let hash = self.database.seed.hash(&key.0);
        self.database.maybe(hash) && self.look_up(key, hash)
    }

    #[inline(never)]
    fn look_up(&mut self, key: &RouteKey, hash: u64) -> bool {
        let table = self.table.get_or_insert_with(|| self.database.table.lock());
        let (now, now_ms) = (self.now, &mut self.now_ms);
        self.database.postponed_in(table, key, hash, || *now_ms.get_or_insert_with(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::address::{Address, AddressSpec};
    use crate::net::compat::Compat;
    use crate::net::ip::Ip;

    fn address(host: &str) -> Arc<Address> {
        let spec = AddressSpec { host, port: 80, ..AddressSpec::default() };
        Arc::new(Address::new(spec, Compat::Byway, &|_| None).unwrap())
    }

    fn route(address: &Arc<Address>, n: u32) -> Route {
        Route::new(Arc::clone(address), None, (Ip::v4(n.to_be_bytes()), 80), Ip::NONE, None)
    }

    fn postponed(database: &RouteDatabase, route: &Route, now: u64) -> bool {
        database.should_postpone(route.key(), || now)
    }

    #[test]
    fn a_million_failures_stay_within_the_bound_and_the_newest_stay() {
        let database = RouteDatabase::new(Policy { capacity: 1000, ..Policy::default() });
        let a = address("bounded.example");
        for n in 0..1_000_000 {
            database.failed(&route(&a, n), Failure::Refused, 111, 0);
        }
        assert_eq!(database.stats(0).records, 1000);
        assert!((999_000..1_000_000).all(|n| postponed(&database, &route(&a, n), 1)));
        assert!((0..999_000).step_by(1009).all(|n| !postponed(&database, &route(&a, n), 1)));
    }

    /// Buckets overflow, tags repeat, entries go in every order: the filter must never hide an entry, and must be
    /// empty when the table is.
    #[test]
    fn the_filter_never_hides_an_entry() {
        let database = RouteDatabase::new(Policy { capacity: 0, postpone_ms: 0, ..Policy::default() });
        let database = RouteDatabase { buckets: 64, ..database };
        let a = address("crowded.example");
        for n in 0..2000 {
            database.failed(&route(&a, n), Failure::Refused, 0, 0);
        }
        for step in [7_u32, 3, 2, 1] {
            for n in (0..2000).step_by(step as usize) {
                database.connected(&route(&a, n));
            }
            for n in 0..2000 {
                let gone = [7, 3, 2, 1].iter().take_while(|s| **s >= step).any(|s| n % s == 0);
                assert_eq!(postponed(&database, &route(&a, n), 0), !gone, "{n} after step {step}");
            }
        }
        assert!(database.filter.get().unwrap().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        assert!(database.table.lock().crowded.is_empty());
    }

    #[test]
    fn the_penalty_grows_with_failed_periods_up_to_the_longest() {
        let policy = Policy { postpone_ms: 10, longest_ms: 30, ..Policy::default() };
        let database = RouteDatabase::new(policy);
        let r = route(&address("penalty.example"), 1);
        let mut now = 0;
        for penalty in [10, 20, 30, 30] {
            database.failed(&r, Failure::Timeout, 0, now);
            database.failed(&r, Failure::Timeout, 0, now + 1);
            assert!(postponed(&database, &r, now + penalty - 1) && !postponed(&database, &r, now + penalty));
            now += penalty;
        }
        // Good for as long as it was postponed: forgotten.
        assert!(!postponed(&database, &r, now + 30));
        assert!(database.is_empty());
    }

    #[test]
    fn failures_that_do_not_blame_the_route_change_nothing() {
        let database = RouteDatabase::new(Policy::default());
        let r = route(&address("blame.example"), 1);
        for failure in [Failure::Local, Failure::Canceled, Failure::UnknownHost] {
            database.failed(&r, failure, 24, 0);
        }
        assert!(database.is_empty());
    }

    #[test]
    fn on_success_counts_only_when_the_selector_connected_elsewhere() {
        let database = RouteDatabase::new(Policy { commit: Commit::OnSuccess, ..Policy::default() });
        let a = address("pending.example");
        let of = |n, selector| Route { selector, ..route(&a, n) };
        database.failed(&of(1, 7), Failure::Refused, 0, 0);
        database.failed(&of(2, 8), Failure::Refused, 0, 0);
        assert!(database.is_empty());
        database.drop_pending(8);
        database.connected(&of(3, 8));
        assert!(database.is_empty());
        database.connected(&of(3, 7));
        assert!(postponed(&database, &of(1, 0), 1) && !postponed(&database, &of(2, 0), 1));
        assert_eq!(database.stats(1).pending, 0);
    }

    #[test]
    fn a_network_change_forgets_and_counts() {
        let database = RouteDatabase::new(Policy::OKHTTP);
        let r = route(&address("network.example"), 1);
        database.failed(&r, Failure::Refused, 0, 0);
        assert_eq!(database.network_changed(), 1);
        assert!(!postponed(&database, &r, 0));
        database.failed(&r, Failure::Refused, 0, 0);
        assert!(postponed(&database, &r, u64::MAX - 1));
    }

    #[test]
    fn an_equal_address_made_after_the_first_is_gone_still_hits() {
        let database = RouteDatabase::new(Policy::default());
        let first = address("again.example");
        database.failed(&route(&first, 1), Failure::Refused, 0, 0);
        drop(first);
        assert!(postponed(&database, &route(&address("again.example"), 1), 1));
    }
}
