//! Proxy selectors as an engine uses them.

use super::dns::Serving;
use super::request::ProxyRequest;
use crate::error::{Result, Status};
use crate::net::{Address, Failure, Listed, Route};
use crate::sys::slab::Shared;
use std::sync::Arc;

/// A host's proxy selector. Called without a lock, inside [`crate::engine::Engine::host_call`].
pub trait HostProxies: Send + Sync {
    /// Asks for the proxies of an address. The answer goes into the request.
    fn select(&self, request: &Shared<ProxyRequest>, address: &Address, serving: &Serving) -> Status;
    /// A proxy it chose failed.
    fn connect_failed(&self, route: &Route, failure: Failure, os_errno: i32, serving: &Serving);
    /// Nobody waits for that request any more.
    fn canceled(&self, request: u64);
}

/// A proxy selector of this library: environment, system, scripts.
pub trait BuiltIn: Send + Sync {
    /// The proxies of an address, in order. May take time, but never host code.
    ///
    /// # Errors
    /// As a proxy selector's.
    fn select(&self, address: &Address) -> Result<Vec<Listed>>;
    /// A proxy it chose failed.
    fn connect_failed(&self, route: &Route, failure: Failure) {
        let _ = (route, failure);
    }
}

/// Who chooses proxies.
pub struct ProxySource {
    id: u64,
    kind: Choosing,
}

impl ProxySource {
    /// A proxy selector with an identity of its own. All that only say DIRECT are the same one, because proxy
    /// selectors count in the equality of addresses.
    pub fn new(kind: Choosing) -> Arc<ProxySource> {
        let id = if matches!(kind, Choosing::Direct) { 1 } else { super::identity() };
        Arc::new(ProxySource { id, kind })
    }

    /// Number by which addresses know it; never 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How it chooses.
    pub fn kind(&self) -> &Choosing {
        &self.kind
    }
}

/// How proxies are chosen.
pub enum Choosing {
    /// Always DIRECT; OkHttp's NullProxySelector.
    Direct,
    /// Always this list.
    Fixed(Vec<Listed>),
    /// One of this library's own.
    BuiltIn(Box<dyn BuiltIn>),
    /// Host code.
    Host(Arc<dyn HostProxies>),
}
