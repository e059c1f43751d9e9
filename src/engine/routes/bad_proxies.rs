//! Proxies that fail: which ones a selector's list held, what became of them, and where that puts them in later lists.
//!
//! The route database postpones single routes; this is about whole proxies. A selector's failures are held back here
//! until one of its routes is reported connected, see [`crate::proxies::bad`].

use crate::engine::Engine;
use crate::error::{Error, Status};
use crate::net::recover::Phase;
use crate::net::{Compat, Failure, Listed, Proxy, ProxyKind, Route};
use crate::proxies::bad::{BadProxies, Fault, Trial};
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// What an engine knows about proxies that fail.
pub(super) struct Failing {
    period_ms: u64,
    /// Nothing is marked and nothing is on trial: the usual state, told without a lock.
    quiet: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    table: BadProxies,
    /// By selector.
    trials: HashMap<u64, Trial>,
}

/// A proxy that was moved behind the others.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Without credentials.
    pub proxy: String,
    /// Milliseconds until it returns to its place.
    pub remaining_ms: u64,
}

/// Selectors with lists on trial at most; a host that never ends its selectors loses the marks, nothing else.
const MAX_TRIALS: usize = 4096;

impl Failing {
    /// Marks for so long; 0 = never.
    pub(super) fn new(period_ms: u64) -> Failing {
        let table = BadProxies::new(Duration::from_millis(period_ms));
        let state = Mutex::new(State { table, trials: HashMap::new() });
        Failing { period_ms, quiet: AtomicBool::new(true), state }
    }

    pub(super) fn forget(&self) {
        let mut state = self.state.lock();
        state.table.clear();
        state.trials.clear();
        self.quiet.store(true, Ordering::Release);
    }

    fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Acquire)
    }
}

/// Is the proxy itself to blame, and not what lies behind it?
fn blames_proxy(kind: ProxyKind, failure: Failure, phase: Phase) -> bool {
    match phase {
        Phase::Tcp => failure.blames_route(),
        // TLS to the proxy; or a proxy that speaks another protocol. Its refusals are about the target.
        Phase::Tunnel => match failure {
            Failure::ProxyProtocol | Failure::Protocol | Failure::Reset | Failure::Timeout | Failure::Io => {
                true
            }
            Failure::Tls | Failure::TlsHandshake | Failure::TlsCertificate | Failure::TlsPeerUnverified => {
                kind == ProxyKind::Https
            }
            _ => false,
        },
        Phase::Dns => matches!(failure, Failure::UnknownHost | Failure::InvalidPort),
        Phase::Tls | Phase::Exchange => false,
    }
}

impl Engine {
    fn marks_proxies(&self) -> bool {
        self.routes.failing.period_ms > 0 && self.options().compat == Compat::Byway
    }

    /// Puts proxies that failed lately behind the others; returns those that were moved. `over` hears of proxies whose
    /// time is over.
    pub(super) fn order_proxies(&self, list: &mut Vec<Listed>, over: impl Fn(&Arc<Proxy>)) -> Vec<Moved> {
        let failing = &self.routes.failing;
        if failing.is_quiet() {
            return Vec::new();
        }
        let now = self.database_now();
        let back = failing.state.lock().table.reinstate(now);
        // Host code listens: not under the lock.
        back.iter().for_each(over);
        if list.len() < 2 {
            return Vec::new();
        }
        let state = failing.state.lock();
        let ordered = state.table.reorder(&list.as_slice().into(), now);
        let moved = list.iter().filter_map(|entry| match entry {
            Listed::Proxy(proxy) => {
                let remaining_ms = state.table.remaining(proxy, now)?;
                Some(Moved { proxy: proxy.to_string(), remaining_ms })
            }
            _ => None,
        });
        let moved = moved.collect();
        *list = ordered.to_vec();
        moved
    }

    /// A selector got this list: what becomes of its proxies counts.
    pub(super) fn try_proxies(&self, selector: u64, list: &[Listed]) {
        if list.len() < 2 || !self.marks_proxies() || !matches!(list.first(), Some(Listed::Proxy(_))) {
            return;
        }
        let failing = &self.routes.failing;
        let mut state = failing.state.lock();
        if state.trials.len() >= MAX_TRIALS {
            state.trials.clear();
        }
        state.trials.insert(selector, Trial::new(list.into()));
        failing.quiet.store(false, Ordering::Release);
    }

    /// A selector has ended: what it held back counts for nothing.
    #[inline]
    pub(super) fn end_trial(&self, selector: u64) {
        if !self.routes.failing.is_quiet() {
            self.drop_trial(selector);
        }
    }

    #[cold]
    fn drop_trial(&self, selector: u64) {
        let failing = &self.routes.failing;
        let mut state = failing.state.lock();
        state.trials.remove(&selector);
        failing.quiet.store(state.trials.is_empty() && state.table.is_empty(), Ordering::Release);
    }

    /// An attempt through a proxy failed.
    pub(super) fn proxy_failed(&self, route: &Route, failure: Failure, os_errno: i32, phase: Phase) {
        let Some(proxy) = route.proxy() else { return };
        if self.routes.failing.is_quiet() {
            return;
        }
        let fault = Fault { failure, os_errno, at_ms: self.database_now() };
        let mut state = self.routes.failing.state.lock();
        let Some(trial) = state.trials.get_mut(&route.selector()) else { return };
        if blames_proxy(proxy.kind(), failure, phase) {
            trial.failed(&Listed::Proxy(Arc::clone(proxy)), fault);
        } else if phase != Phase::Dns {
            trial.spared(&Listed::Proxy(Arc::clone(proxy)));
        }
    }

    /// Proxies of a selector's list whose own names did not resolve, or that cannot be connected to at all.
    pub(super) fn useless_proxies<'a>(
        &self,
        selector: u64,
        proxies: impl Iterator<Item = (&'a Arc<Proxy>, &'a Error)>,
    ) {
        if self.routes.failing.is_quiet() {
            return;
        }
        for (proxy, error) in proxies {
            // What is said about another name is not the proxy's fault.
            if error.status() != Status::E_FILTERED && error.about() == proxy.host().text() {
                let failure = match error.status() {
                    Status::E_INVALID_PORT => Failure::InvalidPort,
                    _ => Failure::UnknownHost,
                };
                let fault = Fault { failure, os_errno: error.os_errno(), at_ms: self.database_now() };
                let mut state = self.routes.failing.state.lock();
                if let Some(trial) = state.trials.get_mut(&selector) {
                    trial.failed(&Listed::Proxy(Arc::clone(proxy)), fault);
                }
            }
        }
    }

    /// A route stands: proxies that failed before it are marked. Returns them.
    pub(super) fn proxy_worked(&self, route: &Route) -> Vec<Arc<Proxy>> {
        if self.routes.failing.is_quiet() {
            return Vec::new();
        }
        let now = self.database_now();
        let mut state = self.routes.failing.state.lock();
        let State { table, trials } = &mut *state;
        let Some(trial) = trials.remove(&route.selector()) else { return Vec::new() };
        let entry = route.proxy().map_or(Listed::Direct, |proxy| Listed::Proxy(Arc::clone(proxy)));
        trial.worked(&entry, table, now)
    }

    /// A host that connects by itself says that a proxy failed. Nothing is marked where nothing ever is: with a period
    /// of 0, and under a `compat` whose upstream has no such table.
    pub fn mark_proxy(&self, proxy: &Arc<Proxy>, failure: Failure, os_errno: i32) {
        if !self.marks_proxies() {
            return;
        }
        let failing = &self.routes.failing;
        let now = self.database_now();
        failing.state.lock().table.mark(proxy, Fault { failure, os_errno, at_ms: now }, now);
        failing.quiet.store(false, Ordering::Release);
    }

    /// What is marked, as JSON.
    pub fn bad_proxies_json(&self) -> String {
        let now = self.database_now();
        let marked = self.routes.failing.state.lock().table.snapshot(now);
        let shown = marked.into_iter().map(|marked| {
            serde_json::json!({
                "kind": marked.kind.scheme(),
                "host": marked.host,
                "port": marked.port,
                "remaining_ms": marked.remaining_ms,
                "failure": marked.fault.failure.text(),
                "os_errno": marked.fault.os_errno,
                "age_ms": now.saturating_sub(marked.fault.at_ms),
            })
        });
        serde_json::Value::Array(shown.collect()).to_string()
    }

    /// All proxies are tried in their configured order again.
    pub fn forget_bad_proxies(&self) {
        self.routes.failing.forget();
    }
}
