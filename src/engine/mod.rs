//! Engine: composes runtime, route database, rules, chains and sources into the one thing a host holds.

mod bound;
pub mod first_state;
pub mod host;
pub mod routes;
pub mod routing;
mod shutdown;
mod static_rules;

use crate::error::{Result, Status};
use crate::net::Settings;
use crate::net::compat::Compat;
use crate::net::database::{Policy, RouteDatabase};
use crate::rules::dialect::Dialect;
use crate::runtime::clock::Clock;
use crate::runtime::queue::Queue;
use crate::runtime::random::RandomSource;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use host::HostSets;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What an engine is made with; fixed for its life.
pub struct EngineOptions {
    /// Inbox of everything that names none of its own.
    pub queue: Arc<Queue>,
    /// Time as this engine sees it.
    pub clock: Clock,
    /// Where every random draw comes from.
    pub random: Arc<RandomSource>,
    /// Whose reading of rules is wanted where a chain does not say.
    pub dialect: Dialect,
    /// How long failed routes stay behind, and how many.
    pub database: Policy,
    /// Which behaviour the first half shows.
    pub compat: Compat,
    /// How routes are selected.
    pub settings: Settings,
    /// How long addresses of a name are kept; 0 = not at all.
    pub dns_cache_ms: u64,
    /// How long a proxy that failed is tried last; 0 = not at all.
    pub bad_proxy_ms: u64,
    /// What a negative `timeout_ms` means.
    pub default_timeout: Duration,
    /// Host code may run on this library's own threads.
    pub callbacks_any_thread: bool,
}

/// Host code that says that nobody waits for an answer any more.
pub type Telling = Box<dyn FnOnce() + Send>;

/// Something that waits and must learn that the engine is closing.
pub trait Operation: Send + Sync {
    /// Ends it with `status`; must not run host code. Returns what the host must be told when no lock is held.
    fn stop(&self, status: Status) -> Option<Telling>;
}

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

/// See the module.
pub struct Engine {
    id: u64,
    /// For what outlives a call and must not keep the engine.
    own: Weak<Engine>,
    options: EngineOptions,
    database: RouteDatabase,
    routing: routing::Routing,
    routes: routes::Routes,
    state: AtomicU8,
    sets: HostSets,
    operations: Mutex<HashMap<u64, Arc<dyn Operation>>>,
    sources: bound::Sources,
    next_id: AtomicU64,
    /// The host's own handle, as an address, for contexts handed to callbacks; 0 when it was released.
    handle: AtomicUsize,
}

impl Engine {
    /// A running engine.
    pub fn new(options: EngineOptions) -> Arc<Engine> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        options.queue.add_user(id);
        let engine = Arc::new_cyclic(|own| Engine {
            own: own.clone(),
            id,
            database: RouteDatabase::new(options.database),
            routing: routing::Routing::new(options.dialect),
            routes: routes::Routes::new(
                options.settings.clone(),
                options.dns_cache_ms,
                options.bad_proxy_ms,
                options.clock.clone(),
            ),
            options,
            state: AtomicU8::new(OPEN),
            sets: HostSets::default(),
            operations: Mutex::default(),
            sources: bound::Sources::default(),
            next_id: AtomicU64::new(1),
            handle: AtomicUsize::new(0),
        });
        engine.tell_of_rules();
        engine
    }

    /// Unique in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it was made with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Inbox of everything that names none of its own.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.options.queue
    }

    /// Time as this engine sees it.
    pub fn clock(&self) -> &Clock {
        &self.options.clock
    }

    /// What failed before.
    pub fn database(&self) -> &RouteDatabase {
        &self.database
    }

    /// What the chains of this engine share.
    #[inline]
    pub fn routing(&self) -> &routing::Routing {
        &self.routing
    }

    /// A number no other object of this engine has.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The host's own handle as an address; 0 when it has released it.
    pub fn handle(&self) -> usize {
        self.handle.load(Ordering::Acquire)
    }

    /// Remembers the host's handle; 0 when its last reference goes.
    pub fn set_handle(&self, address: usize) {
        self.handle.store(address, Ordering::Release);
    }

    /// # Errors
    /// [`Status::E_SHUTDOWN`] once a shutdown has begun.
    #[inline]
    pub fn check_open(&self) -> Result<(), Status> {
        if self.state.load(Ordering::Acquire) == OPEN { Ok(()) } else { Err(Status::E_SHUTDOWN) }
    }

    /// Has `operation` stopped when the engine shuts down, until [`Engine::forget`].
    ///
    /// # Errors
    /// [`Status::E_SHUTDOWN`] when that has begun.
    pub fn remember(&self, id: u64, operation: Arc<dyn Operation>) -> Result<(), Status> {
        let mut operations = self.operations.lock();
        self.check_open()?;
        operations.insert(id, operation);
        Ok(())
    }

    /// Takes [`Engine::remember`] back.
    pub fn forget(&self, id: u64) {
        drop(self.take_back(id));
    }

    /// As [`Engine::forget`]; `None` when a shutdown stops that operation.
    fn take_back(&self, id: u64) -> Option<Arc<dyn Operation>> {
        self.operations.lock().remove(&id)
    }

    /// Operations that wait at this moment.
    pub fn waiting(&self) -> usize {
        self.operations.lock().len()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.options.queue.remove_user(self.id);
    }
}

impl core::fmt::Debug for Engine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Engine").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An engine that does nothing by itself.
#[cfg(test)]
fn for_tests() -> Arc<Engine> {
    Engine::new(EngineOptions {
        queue: Queue::new(crate::runtime::queue::QueueOptions::default()),
        clock: Clock::system(),
        random: Arc::new(RandomSource::seeded(7)),
        dialect: Dialect::Byway,
        database: Policy::default(),
        compat: Compat::Byway,
        settings: Settings::default(),
        dns_cache_ms: 0,
        bad_proxy_ms: 0,
        default_timeout: Duration::from_secs(30),
        callbacks_any_thread: false,
    })
}
