//! Resolvers as an engine uses them: the host's, a hosts table, the system's on a small pool of threads.

use super::request::DnsRequest;
#[cfg(feature = "script")]
use crate::engine::Engine;
use crate::error::{Error, Source, Status};
use crate::net::{HostsTable, Ip};
use crate::runtime::clock::Clock;
use crate::sys::resolve;
use crate::sys::slab::Shared;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
#[cfg(feature = "script")]
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The call a host callback serves.
#[derive(Clone, Copy)]
pub struct Serving {
    /// The host's own number of the operation.
    pub tag: u64,
    /// The selector.
    pub id: u64,
    /// Time until the operation gives up.
    pub left: Option<Duration>,
    /// The host's engine handle as an address, 0 when it was released.
    pub engine: usize,
}

/// A host's resolver. Called without a lock, inside [`crate::engine::Engine::host_call`].
pub trait HostDns: Send + Sync {
    /// Asks for a name; `name` ends in NUL. The answer goes into the request.
    fn lookup(&self, request: &Shared<DnsRequest>, name: &str, serving: &Serving) -> Status;
    /// Nobody waits for that request any more.
    fn canceled(&self, request: u64);
}

/// Who resolves names.
pub struct Resolver {
    id: u64,
    kind: Resolving,
}

impl Resolver {
    /// A resolver with an identity of its own; the system's is the same for everybody.
    pub fn new(kind: Resolving) -> Arc<Resolver> {
        let id = if matches!(kind, Resolving::System) { 0 } else { super::identity() };
        Arc::new(Resolver { id, kind })
    }

    /// Number by which addresses know it; 0 is the system's.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How it resolves.
    pub fn kind(&self) -> &Resolving {
        &self.kind
    }
}

/// How names are resolved.
pub enum Resolving {
    /// `getaddrinfo`.
    System,
    /// Names of a text.
    Hosts(HostsTable),
    /// Host code.
    Host(Arc<dyn HostDns>),
}

/// Threads that may sit in `getaddrinfo` at once, in the whole process.
const MAX_THREADS: usize = 8;
/// Names that may wait for a thread.
const MAX_WAITING: usize = 4096;
/// How long a thread waits for another name.
const IDLE: Duration = Duration::from_secs(10);

struct Pool {
    state: Mutex<PoolState>,
    work: Condvar,
}

struct PoolState {
    waiting: VecDeque<(String, Shared<DnsRequest>)>,
    threads: usize,
    idle: usize,
}

static POOL: Pool = Pool {
    state: Mutex::new(PoolState { waiting: VecDeque::new(), threads: 0, idle: 0 }),
    work: Condvar::new(),
};

/// Has the system asked. The thread owns only the name and the request: a host that gives up loses nothing to it.
///
/// # Errors
/// `E_LIMIT` when too many names wait, `E_RESOURCES` when no thread can be started.
pub fn ask_system(name: &str, request: &Shared<DnsRequest>) -> Result<(), Status> {
    let mut state = POOL.state.lock();
    if state.waiting.len() >= MAX_WAITING {
        return Err(Status::E_LIMIT);
    }
    state.waiting.push_back((name.to_owned(), request.clone()));
    if state.idle >= state.waiting.len() || state.threads >= MAX_THREADS {
        drop(state);
        POOL.work.notify_one();
        return Ok(());
    }
    state.threads += 1;
    let number = state.threads;
    drop(state);
    let builder = std::thread::Builder::new().name(format!("byway-dns-{number}")).stack_size(256 * 1024);
    if builder.spawn(work).is_err() {
        let mut state = POOL.state.lock();
        state.threads -= 1;
        if state.threads == 0 {
            state.waiting.pop_back();
            return Err(Status::E_RESOURCES);
        }
    }
    Ok(())
}

fn work() {
    loop {
        let job = {
            let mut state = POOL.state.lock();
            state.idle += 1;
            let end = Instant::now() + IDLE;
            while state.waiting.is_empty() {
                if POOL.work.wait_until(&mut state, end).timed_out() {
                    break;
                }
            }
            state.idle -= 1;
            match state.waiting.pop_front() {
                Some(job) => job,
                None => {
                    state.threads -= 1;
                    return;
                }
            }
        };
        let (name, request) = job;
        if request.is_canceled() {
            continue;
        }
        answer(&name, &request);
    }
}

fn answer(name: &str, request: &DnsRequest) {
    let result = match resolve::resolve(name) {
        Ok(found) => {
            let ips: Vec<Ip> = found
                .iter()
                .map(|place| match place {
                    std::net::SocketAddr::V4(v4) => Ip::v4(v4.ip().octets()),
                    std::net::SocketAddr::V6(v6) => Ip::v6(v6.ip().octets(), v6.scope_id()),
                })
                .collect();
            request
                .add(|answer| answer.add(ips.get(..crate::net::dns::MAX_ADDRESSES).unwrap_or(&ips)))
                .map_err(Error::from)
        }
        Err(error) => {
            let status = if error.unknown { Status::E_UNKNOWN_HOST } else { Status::E_DNS };
            Err(Error::new(status, error.text).subject(name).os(error.errno).source(Source::Socket))
        }
    };
    let _ = request.finish(result);
}

/// Answers kept for a while, when an engine wants that. Keyed by resolver and name.
pub(super) struct Cache {
    keep_ns: u64,
    clock: Clock,
    names: Mutex<HashMap<CacheKey, CacheEntry>>,
}

/// Resolver and name.
type CacheKey = (u64, Box<str>);
/// When it was put there, on the engine's clock, and the addresses.
type CacheEntry = (u64, Arc<[Ip]>);

/// Names kept at most.
const MAX_CACHED: usize = 1000;

impl Cache {
    pub(super) fn new(keep_ms: u64, clock: Clock) -> Cache {
        Cache { keep_ns: keep_ms.saturating_mul(1_000_000), clock, names: Mutex::default() }
    }

    pub(super) fn is_off(&self) -> bool {
        self.keep_ns == 0
    }

    pub(super) fn get(&self, resolver: u64, name: &str) -> Option<Arc<[Ip]>> {
        if self.is_off() {
            return None;
        }
        let now = self.clock.monotonic_ns();
        let mut names = self.names.lock();
        let key = (resolver, Box::from(name));
        match names.get(&key) {
            Some((since, ips)) if now.saturating_sub(*since) < self.keep_ns => Some(Arc::clone(ips)),
            Some(_) => {
                names.remove(&key);
                None
            }
            None => None,
        }
    }

    pub(super) fn put(&self, resolver: u64, name: &str, ips: &[Ip]) {
        if self.is_off() || ips.is_empty() {
            return;
        }
        let now = self.clock.monotonic_ns();
        let mut names = self.names.lock();
        if names.len() >= MAX_CACHED {
            names.retain(|_, (since, _)| now.saturating_sub(*since) < self.keep_ns);
            if names.len() >= MAX_CACHED {
                names.clear();
            }
        }
        names.insert((resolver, Box::from(name)), (now, ips.into()));
    }

    pub(super) fn clear(&self) {
        self.names.lock().clear();
    }
}

#[cfg(feature = "script")]
impl Engine {
    /// Addresses of a name that are still kept.
    pub(super) fn cached_name(&self, resolver: Option<&Resolver>, name: &str) -> Option<Vec<IpAddr>> {
        let ips = self.routes.cache.get(resolver.map_or(0, Resolver::id), name)?;
        Some(ips.iter().filter_map(|ip| ip.to_std()).collect())
    }

    /// Keeps addresses of a name, when the engine wants that.
    pub(super) fn remember_name(&self, resolver: Option<&Resolver>, name: &str, ips: &[IpAddr]) {
        let ips: Vec<Ip> = ips.iter().map(|ip| Ip::from(*ip)).collect();
        self.routes.cache.put(resolver.map_or(0, Resolver::id), name, &ips);
    }
}
