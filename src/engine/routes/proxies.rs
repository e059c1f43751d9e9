//! Proxy selectors as an engine uses them.

use super::dns::Serving;
use super::request::ProxyRequest;
#[cfg(feature = "script")]
use super::script_proxies::ScriptProxies;
use super::system_proxies::SystemProxies;
use crate::error::{Error, Result, Status};
use crate::net::{Address, Failure, Listed, Route};
use crate::proxies::fixed::{Exceptions, Schemes};
use crate::proxies::rules::Rules;
use crate::proxies::{ProxySelector, Target, Why};
use crate::sys::slab::Shared;
use once_cell::sync::Lazy;
use std::collections::HashSet;
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

/// Who chooses proxies.
pub struct ProxySource {
    id: u64,
    /// How many selectors lie one inside the other.
    depth: u32,
    kind: Choosing,
}

/// Selectors one inside the other at most.
const MAX_DEPTH: u32 = 16;

impl ProxySource {
    /// A proxy selector with an identity of its own. All that only say DIRECT are the same one, because proxy
    /// selectors count in the equality of addresses.
    pub fn new(kind: Choosing) -> Arc<ProxySource> {
        let id = if matches!(kind, Choosing::Direct) { 1 } else { super::identity() };
        Arc::new(ProxySource { id, depth: 0, kind })
    }

    /// A proxy selector made of `parts`.
    ///
    /// # Errors
    /// `E_LIMIT` when more than 16 lie one inside the other.
    pub fn composed<'a>(
        kind: Choosing,
        parts: impl IntoIterator<Item = &'a Arc<ProxySource>>,
    ) -> Result<Arc<ProxySource>> {
        let depth = 1 + parts.into_iter().map(|part| part.depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            let why = format!("more than {MAX_DEPTH} proxy selectors one inside the other");
            return Err(Error::new(Status::E_LIMIT, why));
        }
        Ok(Arc::new(ProxySource { id: super::identity(), depth, kind }))
    }

    /// Number by which addresses know it; never 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How it chooses.
    pub fn kind(&self) -> &Choosing {
        &self.kind
    }

    /// Follows selectors that only choose among others, noting the reasons in `why`, to the one that knows proxies.
    ///
    /// # Errors
    /// A rule list that says nothing about this target; settings that name a script nobody handed in.
    pub fn leaf(self: &Arc<Self>, target: &Target<'_>, why: &mut Vec<Why>) -> Result<Arc<ProxySource>> {
        let mut at = Arc::clone(self);
        loop {
            let next = match &at.kind {
                Choosing::Excepted(exceptions, inner) => match exceptions.decide(target) {
                    Some(reason) => {
                        why.push(reason);
                        direct()
                    }
                    None => Arc::clone(inner),
                },
                Choosing::Schemes(schemes) => match schemes.find(target.scheme) {
                    Some((reason, inner)) => {
                        why.push(reason);
                        Arc::clone(inner)
                    }
                    None => {
                        why.push(Why::NoSetting);
                        direct()
                    }
                },
                Choosing::Rules(rules) => {
                    let (reason, inner) = rules.find(target)?;
                    why.push(reason);
                    Arc::clone(inner)
                }
                Choosing::System(system) => {
                    let (source, inner) = system.in_force();
                    why.push(Why::Settings(source));
                    inner
                }
                _ => return Ok(at),
            };
            at = next;
        }
    }

    /// This selector and all that it chooses among, each once, in their order.
    pub fn whole(&self) -> Vec<&ProxySource> {
        let (mut found, mut seen, mut left) = (Vec::new(), HashSet::new(), vec![self]);
        while let Some(one) = left.pop() {
            if seen.insert(one.id) {
                found.push(one);
                let parts: Vec<&Arc<ProxySource>> = match &one.kind {
                    Choosing::Excepted(_, inner) => vec![inner],
                    Choosing::Schemes(schemes) => schemes.all().collect(),
                    Choosing::Rules(rules) => rules.all().collect(),
                    _ => Vec::new(),
                };
                left.extend(parts.into_iter().rev().map(|part| &**part));
            }
        }
        found
    }

    /// Entries of the configuration that are not in use, and what else is to be known about it; one sentence each.
    pub fn diagnostics(&self) -> Vec<String> {
        let lines = |one: &ProxySource| match &one.kind {
            Choosing::BuiltIn(own) => own.diagnostics(),
            Choosing::Excepted(exceptions, _) => exceptions.ignored().to_vec(),
            Choosing::System(system) => system.diagnostics(),
            #[cfg(feature = "script")]
            Choosing::Script(script) => script.diagnostics(),
            _ => Vec::new(),
        };
        self.whole().into_iter().flat_map(lines).collect()
    }
}

/// The selector that always says DIRECT.
pub fn direct() -> Arc<ProxySource> {
    static DIRECT: Lazy<Arc<ProxySource>> = Lazy::new(|| ProxySource::new(Choosing::Direct));
    DIRECT.clone()
}

/// How proxies are chosen.
pub enum Choosing {
    /// Always DIRECT; OkHttp's NullProxySelector.
    Direct,
    /// Always this list.
    Fixed(Vec<Listed>),
    /// One of this library's own that answers at once.
    BuiltIn(Arc<dyn ProxySelector>),
    /// Host code.
    Host(Arc<dyn HostProxies>),
    /// DIRECT for some hosts, for all others another one.
    Excepted(Exceptions, Arc<ProxySource>),
    /// One per scheme.
    Schemes(Schemes<Arc<ProxySource>>),
    /// The one of the first pattern that covers the target.
    Rules(Rules<Arc<ProxySource>>),
    /// What the system's settings say.
    System(SystemProxies),
    /// A proxy script, run on threads of its own.
    #[cfg(feature = "script")]
    Script(ScriptProxies),
}
