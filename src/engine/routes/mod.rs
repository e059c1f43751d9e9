//! First half, put to work: address, resolver and proxy selector as an engine uses them, and the selector's driver.

mod asking;
pub mod bad_proxies;
pub mod dialing;
pub mod dns;
pub mod feedback;
pub mod for_url;
pub mod listen;
mod open;
pub mod proxies;
mod reasons;
pub mod request;
#[cfg(feature = "script")]
pub mod script_proxies;
pub mod select;
pub mod system_proxies;
mod waiter;

use super::Engine;
use crate::net::{Address, Settings};
use crate::runtime::clock::Clock;
use arc_swap::ArcSwapOption;
use bad_proxies::Failing;
use core::sync::atomic::{AtomicU64, Ordering};
use dns::{Cache, Resolver};
use listen::Listeners;
use proxies::ProxySource;
use std::sync::Arc;

/// What an engine has for the first half beside the route database.
pub(super) struct Routes {
    settings: Settings,
    listeners: Listeners,
    default_proxies: ArcSwapOption<ProxySource>,
    cache: Cache,
    failing: Failing,
}

impl Routes {
    pub(super) fn new(settings: Settings, dns_cache_ms: u64, bad_proxy_ms: u64, clock: Clock) -> Routes {
        Routes {
            settings,
            listeners: Listeners::default(),
            default_proxies: ArcSwapOption::empty(),
            cache: Cache::new(dns_cache_ms, clock),
            failing: Failing::new(bad_proxy_ms),
        }
    }
}

/// A number no other resolver or proxy selector of this process ever has; above those with a meaning.
fn identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(16);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// An address with the objects that serve it. What the host's address handle holds.
pub struct Target {
    /// The plain values.
    pub address: Arc<Address>,
    /// Who resolves; `None` = the system.
    pub resolver: Option<Arc<Resolver>>,
    /// Who chooses proxies; `None` = nobody, DIRECT.
    pub proxies: Option<Arc<ProxySource>>,
    /// The engine it was made with.
    pub engine: Arc<Engine>,
}

impl Engine {
    /// How this engine selects routes.
    pub fn settings(&self) -> &Settings {
        &self.routes.settings
    }

    /// Who listens.
    pub fn listeners(&self) -> &Listeners {
        &self.routes.listeners
    }

    /// Who answers when a proxy selector passes.
    pub fn default_proxies(&self) -> Option<Arc<ProxySource>> {
        self.routes.default_proxies.load_full()
    }

    /// Sets who answers when a proxy selector passes; returns the previous one.
    pub fn set_default_proxies(&self, source: Option<Arc<ProxySource>>) -> Option<Arc<ProxySource>> {
        self.routes.default_proxies.swap(source)
    }

    /// Milliseconds, as the route database counts them.
    #[inline]
    pub fn database_now(&self) -> u64 {
        if self.clock().is_system() {
            crate::sys::resolve::coarse_ms()
        } else {
            self.clock().monotonic_ns() / 1_000_000
        }
    }

    /// The network is another one: failures of routes and proxies and cached names are forgotten. Returns the new generation.
    pub fn network_changed(&self) -> u64 {
        self.routes.cache.clear();
        self.routes.failing.forget();
        self.database().network_changed()
    }
}
