//! Proxies that failed lately: they go to the end of a selector's list for a while, never out of it.
//!
//! The route database postpones single routes; this table is about the proxy itself, when nothing behind it could
//! be reached: its name, TCP or TLS to it, its SOCKS greeting. A proxy is marked only when a later entry of the
//! same list worked, so being offline marks nothing. DIRECT is never marked, nothing is ever invented.

use super::{Listed, Proxy, ProxyKind, ProxyList};
use crate::net::Failure;
use std::sync::Arc;
use std::time::Duration;

/// How long a proxy stays at the end of lists.
pub const DEFAULT_PERIOD: Duration = Duration::from_secs(300);

/// The table. Time is the caller's monotonic clock in milliseconds, so tests need no waiting.
#[derive(Clone, Debug)]
pub struct BadProxies {
    period_ms: u64,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    proxy: Arc<Proxy>,
    until_ms: u64,
    /// The last one, and when it was.
    fault: Fault,
}

/// How a proxy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of failure.
    pub failure: Failure,
    /// The system's number, 0 for none.
    pub os_errno: i32,
    /// By the caller's clock.
    pub at_ms: u64,
}

/// One marked proxy, without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// What speaks there.
    pub kind: ProxyKind,
    /// Canonical host.
    pub host: String,
    /// Port.
    pub port: i64,
    /// Milliseconds until it returns to its place.
    pub remaining_ms: u64,
    /// How it failed last.
    pub fault: Fault,
}

impl Default for BadProxies {
    fn default() -> Self {
        BadProxies::new(DEFAULT_PERIOD)
    }
}

/// More are not kept; the one that returns first makes room.
const LIMIT: usize = 1024;

impl BadProxies {
    /// A table that marks for `period`.
    pub fn new(period: Duration) -> BadProxies {
        BadProxies { period_ms: u64::try_from(period.as_millis()).unwrap_or(u64::MAX), entries: Vec::new() }
    }

    /// Marks a proxy for the table's period.
    pub fn mark(&mut self, proxy: &Arc<Proxy>, fault: Fault, now_ms: u64) {
        self.mark_for(proxy, fault, now_ms, self.period_ms);
    }

    /// Marks a proxy; of two marks the one that ends later counts. DIRECT is no proxy, so it is never marked.
    pub fn mark_for(&mut self, proxy: &Arc<Proxy>, fault: Fault, now_ms: u64, period_ms: u64) {
        let until_ms = now_ms.saturating_add(period_ms);
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.is(proxy)) {
            known.until_ms = known.until_ms.max(until_ms);
            if fault.at_ms >= known.fault.at_ms {
                known.fault = fault;
            }
            return;
        }
        if self.entries.len() >= LIMIT {
            let first = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.until_ms);
            if let Some((index, _)) = first {
                self.entries.swap_remove(index);
            }
        }
        self.entries.push(Entry { proxy: Arc::clone(proxy), until_ms, fault });
    }

    /// Takes out the proxies whose time is over.
    pub fn reinstate(&mut self, now_ms: u64) -> Vec<Arc<Proxy>> {
        let mut over = Vec::new();
        self.entries.retain(|entry| {
            let stays = entry.until_ms > now_ms;
            if !stays {
                over.push(Arc::clone(&entry.proxy));
            }
            stays
        });
        over
    }

    /// True when nothing is marked, not even one whose time is over.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True while the proxy is marked.
    pub fn is_bad(&self, proxy: &Proxy, now_ms: u64) -> bool {
        self.remaining(proxy, now_ms).is_some()
    }

    /// Milliseconds until a marked proxy returns to its place.
    pub fn remaining(&self, proxy: &Proxy, now_ms: u64) -> Option<u64> {
        let entry = self.entries.iter().find(|entry| entry.until_ms > now_ms && entry.is(proxy))?;
        Some(entry.until_ms - now_ms)
    }

    /// The list with marked proxies behind the others, order kept otherwise; the same list when none is marked.
    pub fn reorder(&self, list: &ProxyList, now_ms: u64) -> ProxyList {
        let is_bad = |entry: &&Listed| matches!(entry, Listed::Proxy(proxy) if self.is_bad(proxy, now_ms));
        if self.entries.is_empty() || !list.iter().any(|entry| is_bad(&entry)) {
            return list.clone();
        }
        let good = list.iter().filter(|entry| !is_bad(entry));
        good.chain(list.iter().filter(is_bad)).cloned().collect()
    }

    /// Forgets everything: the network changed, or the configuration was read again.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// What is marked now.
    pub fn snapshot(&self, now_ms: u64) -> Vec<Marked> {
        let live = self.entries.iter().filter(|entry| entry.until_ms > now_ms);
        let marked = live.map(|entry| Marked {
            kind: entry.proxy.kind(),
            host: entry.proxy.host().text().to_owned(),
            port: entry.proxy.port(),
            remaining_ms: entry.until_ms - now_ms,
            fault: entry.fault,
        });
        marked.collect()
    }
}

impl Entry {
    fn is(&self, proxy: &Proxy) -> bool {
        is_same(&self.proxy, proxy)
    }
}

/// Equal in kind, host and port; credentials do not count.
fn is_same(a: &Proxy, b: &Proxy) -> bool {
    a.kind() == b.kind() && a.port() == b.port() && a.host().text() == b.host().text()
}

/// What happened to the entries of one list, held back until one of them works.
#[derive(Clone, Debug)]
pub struct Trial {
    list: ProxyList,
    /// By index: how it failed last.
    failed: Vec<(usize, Fault)>,
    spared: Vec<usize>,
}

impl Trial {
    /// A trial of a list in the order it is tried.
    pub fn new(list: ProxyList) -> Trial {
        Trial { list, failed: Vec::new(), spared: Vec::new() }
    }

    /// This proxy itself failed: nothing behind it could be asked. Refusals of the target and cancelled attempts
    /// do not belong here.
    pub fn failed(&mut self, entry: &Listed, fault: Fault) {
        let Some(index) = self.list.iter().position(|known| same(known, entry)) else { return };
        match self.failed.iter_mut().find(|(known, _)| *known == index) {
            Some((_, last)) => *last = fault,
            None => self.failed.push((index, fault)),
        }
    }

    /// An attempt through this proxy says nothing against it: it was called off, or what lies behind it failed. Failures
    /// of its other addresses do not count then.
    pub fn spared(&mut self, entry: &Listed) {
        if let Some(index) = self.list.iter().position(|known| same(known, entry))
            && !self.spared.contains(&index)
        {
            self.spared.push(index);
        }
    }

    /// This entry worked: the proxies that failed before it are marked, and returned. A list that begins with DIRECT
    /// marks nothing, its later entries are what a failed DIRECT fell back to.
    pub fn worked(self, entry: &Listed, table: &mut BadProxies, now_ms: u64) -> Vec<Arc<Proxy>> {
        let mut marked = Vec::new();
        let Some(good) = self.list.iter().position(|known| same(known, entry)) else { return marked };
        if matches!(self.list.first(), Some(Listed::Direct)) {
            return marked;
        }
        for (index, fault) in &self.failed {
            if *index != good
                && !self.spared.contains(index)
                && let Some(Listed::Proxy(proxy)) = self.list.get(*index)
            {
                table.mark(proxy, *fault, now_ms);
                marked.push(Arc::clone(proxy));
            }
        }
        marked
    }
}

fn same(a: &Listed, b: &Listed) -> bool {
    match (a, b) {
        (Listed::Proxy(a), Listed::Proxy(b)) => is_same(a, b),
        _ => a == b,
    }
}
