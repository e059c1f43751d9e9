//! `byway_engine`: the one thing a host holds.

use super::arguments::{self, Versioned, Wait};
use super::chain::dialect_of;
use super::error::byway_error;
use super::filter::{FilterHandle, byway_filter};
use super::guard::{self, Fail, call, call_or};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::queue::byway_queue;
use super::status::byway_status;
use crate::engine::{Engine, EngineOptions};
use crate::error::{Error, Status};
use crate::net::Settings;
use crate::net::compat::Compat;
use crate::net::database::{Commit, Policy};
use crate::net::order::Order;
use crate::runtime::clock::{Clock, TimeSource};
use crate::runtime::queue::{Queue, QueueOptions};
use crate::runtime::random::{HostRandom, RandomSource};
use core::ffi::c_void;
use core::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Holds what must be remembered between calls: failed routes, rules, counters, callbacks. Made once per client.
pub struct byway_engine {
    _private: [u8; 0],
}

handle!(byway_engine, EngineHandle, 3, false);

/// The handle's reference. When the last one goes, the engine closes; what still holds it sees that.
pub(crate) struct EngineHandle(pub(crate) Arc<Engine>);

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.0.set_handle(0);
        self.0.close();
    }
}

/// The engine behind a handle, unless it has been shut down.
#[inline]
pub(super) fn open<'a>(pointer: *const byway_engine, name: &'static str) -> Result<&'a Arc<Engine>, Fail> {
    let engine = &handle::shared(pointer, name)?.0;
    engine.check_open()?;
    Ok(engine)
}

/// Events of rules, chains and sources are told at once, on byway's own thread `byway-callbacks`, one at a time and without
/// anybody polling; a set whose last owner was a thread of byway's is destroyed there. Without it all of this waits for a
/// thread of the host's to poll the queue. Every other callback runs on the thread of the call it serves.
pub const BYWAY_CALLBACKS_ANY_THREAD: u32 = 1;

/// A failure counts at once.
pub const BYWAY_COMMIT_ALWAYS: i32 = 0;
/// A failure counts when its selector reports a route connected: a machine that is offline learns nothing wrong.
pub const BYWAY_COMMIT_ON_SUCCESS: i32 = 1;

/// Keep the resolver's order of addresses; without it families alternate, IPv6 first.
pub const BYWAY_ROUTING_NO_FAST_FALLBACK: u32 = 1;
/// Ask the resolver for IP literals too.
pub const BYWAY_ROUTING_RESOLVE_LITERALS: u32 = 2;
/// An empty proxy list means DIRECT, not an error.
pub const BYWAY_ROUTING_EMPTY_IS_DIRECT: u32 = 4;
/// Refuse targets whose address byway never sees, because a proxy resolves the name.
pub const BYWAY_ROUTING_DENY_UNRESOLVED_TARGETS: u32 = 8;
/// Try an address that a resolver names twice only once.
pub const BYWAY_ROUTING_DEDUPLICATE: u32 = 16;

/// A proxy selector that fails is an error.
pub const BYWAY_ON_PROXY_SELECTOR_ERROR_FAIL: i32 = 0;
/// A proxy selector that fails means DIRECT.
pub const BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT: i32 = 1;

/// byway's own rules.
pub const BYWAY_COMPAT_BYWAY: i32 = 0;
/// Exactly as OkHttp 5.
pub const BYWAY_COMPAT_OKHTTP_5: i32 = 1;
/// Exactly as OkHttp 3.13.
pub const BYWAY_COMPAT_OKHTTP_3: i32 = 2;

/// What an engine is made with. Start from `BYWAY_ENGINE_OPTIONS_INIT` or `byway_engine_options_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_engine_options {
    /// `sizeof(byway_engine_options)`.
    pub struct_size: usize,
    /// Inbox of everything that names none of its own; NULL makes one. Retained.
    pub queue: *mut byway_queue,
    /// Seed of every random draw; 0 takes one from the system.
    pub seed: u64,
    /// `BYWAY_CALLBACKS_ANY_THREAD` or 0.
    pub flags: u32,
    /// `BYWAY_COMPAT_*`.
    pub compat: i32,
    /// What a negative `timeout_ms` means, in milliseconds; 0 means 30 000.
    pub default_timeout_ms: i64,
    /// First postponement of a failed route in milliseconds; -1 means 5 minutes, 0 until it is reported connected.
    pub postpone_for_ms: i64,
    /// Longest postponement in milliseconds; -1 means 30 minutes.
    pub postpone_at_most_ms: i64,
    /// Failed routes remembered, the oldest goes first; 0 means 4096.
    pub database_capacity: u32,
    /// `BYWAY_COMMIT_*`.
    pub commit_failures: i32,
    /// `BYWAY_DIALECT_*`: whose reading of rules is wanted where a chain does not say.
    pub dialect: i32,
    /// `BYWAY_ROUTING_*`.
    pub routing_flags: u32,
    /// What a proxy selector that fails means: `BYWAY_ON_PROXY_SELECTOR_ERROR_*`.
    pub on_proxy_selector_error: i32,
    /// Milliseconds for which addresses of a name are kept; 0 keeps none.
    pub dns_cache_ms: u32,
    /// Judges targets: resolved addresses and literals, also literals sent to a proxy. NULL lets all through. Retained.
    pub target_filter: *const byway_filter,
    /// Judges the addresses of proxies. NULL lets all through. Retained.
    pub proxy_filter: *const byway_filter,
    /// First argument of the three functions below. They are called on any thread at any time until a shutdown has
    /// ended with `BYWAY_OK`, must be quick and must not call byway.
    pub source_data: *mut c_void,
    /// Nanoseconds since a fixed moment, never going back. NULL: the system's monotonic clock.
    pub monotonic_ns: Option<unsafe extern "C-unwind" fn(source_data: *mut c_void) -> u64>,
    /// Milliseconds since 1970-01-01 UTC. NULL: the system's clock.
    pub wall_ms: Option<unsafe extern "C-unwind" fn(source_data: *mut c_void) -> i64>,
    /// 64 uniformly distributed bits, for every random draw; `seed` is not used then. NULL: byway's own generator.
    pub random: Option<unsafe extern "C-unwind" fn(source_data: *mut c_void) -> u64>,
    /// Milliseconds for which a proxy that failed is tried last; -1 means 5 minutes, 0 keeps every list as it is.
    pub bad_proxy_ms: i64,
}

// SAFETY: repr(C), size first, plain numbers, pointers, and functions whose NULL is `None`.
unsafe impl Versioned for byway_engine_options {
    const FIRST_SIZE: usize = 96;
    const INIT: Self = byway_engine_options {
        struct_size: size_of::<Self>(),
        queue: core::ptr::null_mut(),
        seed: 0,
        flags: 0,
        compat: BYWAY_COMPAT_BYWAY,
        default_timeout_ms: 0,
        postpone_for_ms: -1,
        postpone_at_most_ms: -1,
        database_capacity: 0,
        commit_failures: BYWAY_COMMIT_ALWAYS,
        dialect: 0,
        routing_flags: 0,
        on_proxy_selector_error: BYWAY_ON_PROXY_SELECTOR_ERROR_FAIL,
        dns_cache_ms: 0,
        target_filter: core::ptr::null(),
        proxy_filter: core::ptr::null(),
        source_data: core::ptr::null_mut(),
        monotonic_ns: None,
        wall_ms: None,
        random: None,
        bad_proxy_ms: -1,
    };
}

pub(super) const LAYOUTS: &[Layout] = &[layout!(byway_engine_options {
    struct_size,
    queue,
    seed,
    flags,
    compat,
    default_timeout_ms,
    postpone_for_ms,
    postpone_at_most_ms,
    database_capacity,
    commit_failures,
    dialect,
    routing_flags,
    on_proxy_selector_error,
    dns_cache_ms,
    target_filter,
    proxy_filter,
    source_data,
    monotonic_ns,
    wall_ms,
    random,
    bad_proxy_ms,
})];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_options_init(options: *mut byway_engine_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// Makes an engine. `options` may be NULL.
///
/// Ownership: the caller owns one reference.
/// Threads: any.
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_ENUM`, `BYWAY_E_ARGUMENT`, `BYWAY_E_BAD_HANDLE` for the queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_new(
    options: *const byway_engine_options,
    out: *mut *mut byway_engine,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        let engine = Engine::new(engine_options(&arguments::versioned_or_default(options, "options")?)?);
        let handle: *mut byway_engine = handle::hand_out(EngineHandle(Arc::clone(&engine)));
        engine.set_handle(handle.addr());
        *out = handle;
        Ok(Status::OK)
    })
}

fn engine_options(options: &byway_engine_options) -> Result<EngineOptions, Fail> {
    if options.flags & !BYWAY_CALLBACKS_ANY_THREAD != 0 {
        return Err(Fail::Parameter(Status::E_ENUM, "options.flags"));
    }
    let queue = match NonNull::new(options.queue) {
        Some(queue) => Arc::clone(&handle::shared(queue.as_ptr(), "options.queue")?.0),
        None => Queue::new(QueueOptions::default()),
    };
    let compat =
        Compat::from_number(options.compat).ok_or(Fail::Parameter(Status::E_ENUM, "options.compat"))?;
    let standard = if compat == Compat::Byway { Policy::default() } else { Policy::OKHTTP };
    let commit = match options.commit_failures {
        BYWAY_COMMIT_ALWAYS => Commit::Always,
        BYWAY_COMMIT_ON_SUCCESS => Commit::OnSuccess,
        _ => return Err(Fail::Parameter(Status::E_ENUM, "options.commit_failures")),
    };
    let capacity = match usize::try_from(options.database_capacity) {
        Ok(capacity @ 1..) => capacity,
        _ => standard.capacity,
    };
    Ok(EngineOptions {
        queue,
        clock: match (options.monotonic_ns, options.wall_ms) {
            (None, None) => Clock::system(),
            _ => Clock::from_source(Arc::new(HostSource::of(options))),
        },
        random: Arc::new(match options.seed {
            _ if options.random.is_some() => RandomSource::host(Arc::new(HostSource::of(options))),
            0 => RandomSource::from_system(),
            seed => RandomSource::seeded(seed),
        }),
        dialect: dialect_of(options.dialect, "options.dialect")?,
        database: Policy {
            postpone_ms: span(options.postpone_for_ms, standard.postpone_ms, "options.postpone_for_ms")?,
            longest_ms: span(
                options.postpone_at_most_ms,
                standard.longest_ms,
                "options.postpone_at_most_ms",
            )?,
            capacity,
            commit,
        },
        compat,
        settings: settings(options, compat)?,
        dns_cache_ms: u64::from(options.dns_cache_ms),
        bad_proxy_ms: span(options.bad_proxy_ms, 300_000, "options.bad_proxy_ms")?,
        default_timeout: match options.default_timeout_ms {
            0 => Duration::from_secs(30),
            ms => Duration::from_millis(span(ms, 30_000, "options.default_timeout_ms")?),
        },
        callbacks_any_thread: options.flags & BYWAY_CALLBACKS_ANY_THREAD != 0,
    })
}

/// The host's own clocks and generator.
struct HostSource {
    data: *mut c_void,
    monotonic_ns: Option<unsafe extern "C-unwind" fn(*mut c_void) -> u64>,
    wall_ms: Option<unsafe extern "C-unwind" fn(*mut c_void) -> i64>,
    random: Option<unsafe extern "C-unwind" fn(*mut c_void) -> u64>,
    system: Clock,
}

// SAFETY: the host promises that the functions may be called on any thread (`source_data`); byway never looks behind
// the pointer.
unsafe impl Send for HostSource {}
// SAFETY: as above.
unsafe impl Sync for HostSource {}

impl HostSource {
    fn of(options: &byway_engine_options) -> HostSource {
        HostSource {
            data: options.source_data,
            monotonic_ns: options.monotonic_ns,
            wall_ms: options.wall_ms,
            random: options.random,
            system: Clock::system(),
        }
    }
}

impl TimeSource for HostSource {
    fn monotonic_ns(&self) -> u64 {
        // SAFETY: the host gave this function for this pointer.
        self.monotonic_ns.map_or_else(|| self.system.monotonic_ns(), |ask| unsafe { ask(self.data) })
    }

    fn wall_ms(&self) -> i64 {
        // SAFETY: as above.
        self.wall_ms.map_or_else(|| self.system.wall_ms(), |ask| unsafe { ask(self.data) })
    }
}

impl HostRandom for HostSource {
    fn next_u64(&self) -> u64 {
        // SAFETY: as above.
        self.random.map_or(0, |ask| unsafe { ask(self.data) })
    }
}

/// How routes are selected.
fn settings(options: &byway_engine_options, compat: Compat) -> Result<Settings, Fail> {
    let has = |bit: u32| options.routing_flags & bit != 0;
    if options.routing_flags & !31 != 0 {
        return Err(Fail::Parameter(Status::E_ENUM, "options.routing_flags"));
    }
    let direct_on_selector_error = match options.on_proxy_selector_error {
        BYWAY_ON_PROXY_SELECTOR_ERROR_FAIL => false,
        BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT => true,
        _ => return Err(Fail::Parameter(Status::E_ENUM, "options.on_proxy_selector_error")),
    };
    let filter = |filter, name| {
        handle::optional(filter, name)
            .map(|filter: Option<&FilterHandle>| filter.map(|filter| Arc::clone(&filter.0)))
    };
    Ok(Settings {
        compat,
        order: Order {
            interleave: !has(BYWAY_ROUTING_NO_FAST_FALLBACK),
            dedup: has(BYWAY_ROUTING_DEDUPLICATE),
            ..Order::default()
        },
        resolve_literals: has(BYWAY_ROUTING_RESOLVE_LITERALS),
        direct_on_selector_error,
        empty_is_direct: has(BYWAY_ROUTING_EMPTY_IS_DIRECT),
        deny_unresolved_targets: has(BYWAY_ROUTING_DENY_UNRESOLVED_TARGETS),
        target_filter: filter(options.target_filter, "options.target_filter")?,
        hop_filter: filter(options.proxy_filter, "options.proxy_filter")?,
    })
}

/// Milliseconds of an option where -1 means the default.
fn span(value: i64, default: u64, name: &'static str) -> Result<u64, Fail> {
    match value {
        -1 => Ok(default),
        value => u64::try_from(value).map_err(|_| {
            Error::new(Status::E_ARGUMENT, format!("{value} ms is negative; -1 means the default"))
                .subject(name)
                .into()
        }),
    }
}

/// One more reference; returns its argument, NULL for what is not a live engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_retain(self_: *mut byway_engine) -> *mut byway_engine {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. The last one never blocks: it cancels what is running, detaches and returns; callback sets are
/// destroyed as their last owners go. Call `byway_engine_shutdown` before it to know when host code no longer runs.
/// NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_release(self_: *mut byway_engine) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}

/// Ends the engine: cancels every operation, waits up to `timeout_ms` for running callbacks, runs every outstanding
/// `destroy`. Idempotent. After `BYWAY_OK` no callback and no `destroy` of this engine ever runs, and its handles
/// answer `BYWAY_E_SHUTDOWN`. `BYWAY_PENDING`: a callback still runs; call again.
///
/// `timeout_ms`: 0 = do not wait, negative = the engine's default.
/// Threads: any, but not from inside a callback of this engine.
/// Errors: `BYWAY_E_REENTRANT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_shutdown(
    self_: *mut byway_engine,
    timeout_ms: i64,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let engine = &handle::shared(self_, "self")?.0;
        let timeout = match arguments::wait(timeout_ms, engine.options().default_timeout) {
            Wait::Never => Duration::ZERO,
            Wait::Until(end) => end.saturating_duration_since(Instant::now()),
        };
        Ok(engine.shutdown(timeout)?)
    })
}

/// The engine's queue.
///
/// Ownership: the caller owns one reference; NULL for what is not a live engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_queue(self_: *mut byway_engine) -> *mut byway_queue {
    call_or(core::ptr::null_mut(), || {
        let queue = Arc::clone(handle::shared(self_, "self")?.0.queue());
        Ok(handle::hand_out(super::queue::QueueHandle(queue)))
    })
}
