//! `byway_engine`, first half: what became of routes, the route database, and decisions after a failure.

use super::address::{byway_ip, ip_out};
use super::arguments::{self, Versioned};
use super::engine::{self, byway_engine};
use super::error::byway_error;
use super::guard::{Fail, call, call_bare, call_quiet, status_bare};
use super::handle;
use super::library::{Layout, layout};
use super::proxy_selector::byway_proxy_selector;
use super::route::byway_route;
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::routes::feedback::FailedAttempt;
use crate::error::Status;
use crate::net::recover::{self, Attempt, Connection, Failed, Phase};
use crate::net::{Compat, Failure};
use core::ffi::c_char;
use std::sync::Arc;

/// An input or output error of no special kind.
pub const BYWAY_FAILURE_IO: i32 = 0;
/// Connection refused.
pub const BYWAY_FAILURE_REFUSED: i32 = 1;
/// Network or host unreachable, as reported from the path.
pub const BYWAY_FAILURE_UNREACHABLE: i32 = 2;
/// Connecting, or reading, took too long.
pub const BYWAY_FAILURE_TIMEOUT: i32 = 3;
/// The peer reset the connection.
pub const BYWAY_FAILURE_RESET: i32 = 4;
/// This machine could not make the attempt: descriptors, permission, no local route. Blames no route.
pub const BYWAY_FAILURE_LOCAL: i32 = 5;
/// Called off: it lost the race, or the call was cancelled. Blames no route.
pub const BYWAY_FAILURE_CANCELED: i32 = 6;
/// Interrupted, not by a timeout.
pub const BYWAY_FAILURE_INTERRUPTED: i32 = 7;
/// A name did not resolve.
pub const BYWAY_FAILURE_UNKNOWN_HOST: i32 = 8;
/// The peer broke the protocol.
pub const BYWAY_FAILURE_PROTOCOL: i32 = 9;
/// A TLS handshake failed for a reason other than a certificate.
pub const BYWAY_FAILURE_TLS_HANDSHAKE: i32 = 10;
/// A TLS handshake failed because of a certificate.
pub const BYWAY_FAILURE_TLS_CERTIFICATE: i32 = 11;
/// The peer is not who it should be: host name or pin.
pub const BYWAY_FAILURE_TLS_PEER_UNVERIFIED: i32 = 12;
/// Another TLS failure.
pub const BYWAY_FAILURE_TLS: i32 = 13;
/// The connection announced its shutdown before the request was sent.
pub const BYWAY_FAILURE_CONNECTION_SHUTDOWN: i32 = 14;
/// A multiplexed stream was refused before it was processed.
pub const BYWAY_FAILURE_STREAM_REFUSED: i32 = 15;
/// A multiplexed stream was cancelled.
pub const BYWAY_FAILURE_STREAM_CANCELED: i32 = 16;
/// A multiplexed stream was reset for another reason.
pub const BYWAY_FAILURE_STREAM_RESET: i32 = 17;
/// The request's own body could not be read.
pub const BYWAY_FAILURE_REQUEST_BODY: i32 = 18;
/// The proxy refuses to make the connection.
pub const BYWAY_FAILURE_PROXY_REFUSED: i32 = 19;
/// The proxy wants other credentials.
pub const BYWAY_FAILURE_PROXY_AUTH: i32 = 20;
/// The proxy breaks its protocol.
pub const BYWAY_FAILURE_PROXY_PROTOCOL: i32 = 21;
/// 407 from something that is no HTTP proxy.
pub const BYWAY_FAILURE_AUTH_WITHOUT_PROXY: i32 = 22;
/// The socket is connected to itself.
pub const BYWAY_FAILURE_SELF_CONNECT: i32 = 23;
/// The proxy's port cannot be connected to.
pub const BYWAY_FAILURE_INVALID_PORT: i32 = 24;
/// Every address was refused by the address filter.
pub const BYWAY_FAILURE_FILTERED: i32 = 25;

/// Names, proxies, planning: no attempt was made.
pub const BYWAY_PHASE_DNS: i32 = 0;
/// TCP connect.
pub const BYWAY_PHASE_TCP: i32 = 1;
/// `CONNECT` or SOCKS.
pub const BYWAY_PHASE_TUNNEL: i32 = 2;
/// TLS handshake.
pub const BYWAY_PHASE_TLS: i32 = 3;
/// The request may have been sent.
pub const BYWAY_PHASE_EXCHANGE: i32 = 4;

/// A failed call, for `byway_engine_recover`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_failed_call {
    /// `sizeof(byway_failed_call)`.
    pub struct_size: usize,
    /// `BYWAY_FAILURE_*`.
    pub failure: i32,
    /// `BYWAY_PHASE_*`.
    pub phase: i32,
    /// `BYWAY_CALL_*`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// The host lets failed connections be retried.
pub const BYWAY_CALL_RETRY_ENABLED: u32 = 1;
/// The request's body can be sent only once.
pub const BYWAY_CALL_ONE_SHOT: u32 = 2;
/// Bytes of the request may have left this machine.
pub const BYWAY_CALL_SENT: u32 = 4;
/// The exchange itself failed, not the search for a connection.
pub const BYWAY_CALL_EXCHANGE_FAILED: u32 = 8;
/// A further route exists.
pub const BYWAY_CALL_MORE_ROUTES: u32 = 16;

/// Take the next route.
pub const BYWAY_RECOVER_RETRY: i32 = 0;
/// Retrying is switched off.
pub const BYWAY_RECOVER_DISABLED: i32 = 1;
/// The request cannot be sent a second time.
pub const BYWAY_RECOVER_NOT_REPEATABLE: i32 = 2;
/// Another route would fail in the same way, or the call was called off.
pub const BYWAY_RECOVER_FATAL: i32 = 3;
/// Everything was tried.
pub const BYWAY_RECOVER_NO_MORE_ROUTES: i32 = 4;

/// A connection whose exchange failed, for `byway_failure_track`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_failed_exchange {
    /// `sizeof(byway_failed_exchange)`.
    pub struct_size: usize,
    /// Exchanges completed on the connection so far.
    pub successes: u64,
    /// `BYWAY_FAILURE_*`, -1 for a failure without an error.
    pub failure: i32,
    /// Streams refused on it before.
    pub refused_before: u32,
    /// `BYWAY_EXCHANGE_*`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// HTTP/2 or newer.
pub const BYWAY_EXCHANGE_MULTIPLEXED: u32 = 1;
/// The failing call was cancelled by its own host.
pub const BYWAY_EXCHANGE_CALL_CANCELED: u32 = 2;
/// The connection goes through a proxy.
pub const BYWAY_EXCHANGE_PROXIED: u32 = 4;

/// A connect-failed event is sent.
pub const BYWAY_TELL_FAILED_EVENT: u32 = 1;
/// A connect-canceled event is sent.
pub const BYWAY_TELL_CANCELED_EVENT: u32 = 2;
/// The proxy selector hears of it.
pub const BYWAY_TELL_PROXY_SELECTOR: u32 = 4;
/// The route goes into the route database.
pub const BYWAY_TELL_DATABASE: u32 = 8;
/// The next route is tried.
pub const BYWAY_TELL_NEXT_ROUTE: u32 = 16;
/// The connection takes no new exchanges.
pub const BYWAY_TELL_NO_NEW_EXCHANGES: u32 = 32;
/// One more failure of the connection's route.
pub const BYWAY_TELL_ROUTE_FAILURE: u32 = 64;

/// One failed route of a snapshot.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_failed_route {
    /// Its hop.
    pub hop_ip: byway_ip,
    /// Its hop's port.
    pub hop_port: u16,
    /// The origin's port.
    pub target_port: u16,
    /// `BYWAY_PROXY_*`.
    pub proxy_kind: i32,
    /// `BYWAY_FAILURE_*`.
    pub failure: i32,
    /// The system's number, 0 for none.
    pub os_errno: i32,
    /// Failed periods in a row.
    pub periods: u32,
    /// Zero.
    pub reserved: u32,
    /// Milliseconds since the failure that began this postponement.
    pub age_ms: u64,
    /// Milliseconds until it counts as good again; -1 = until it is reported connected.
    pub remaining_ms: i64,
}

/// Figures of an engine.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_engine_statistics {
    /// `sizeof(byway_engine_statistics)`.
    pub struct_size: usize,
    /// Routes postponed now.
    pub postponed: u64,
    /// Records of the route database, including those whose postponement is over but not yet forgotten.
    pub database_records: u64,
    /// Failures that wait for their selector's success.
    pub database_pending: u64,
    /// Times the network changed.
    pub network_generation: u64,
    /// Operations that wait for something now.
    pub waiting: u64,
}

// SAFETY: repr(C), size first, plain numbers.
unsafe impl Versioned for byway_failed_call {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self =
        byway_failed_call { struct_size: size_of::<Self>(), failure: 0, phase: 0, flags: 0, reserved: 0 };
}

// SAFETY: as above.
unsafe impl Versioned for byway_failed_exchange {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_failed_exchange {
        struct_size: size_of::<Self>(),
        successes: 0,
        failure: -1,
        refused_before: 0,
        flags: 0,
        reserved: 0,
    };
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_failed_call { struct_size, failure, phase, flags, reserved }),
    layout!(byway_failed_exchange { struct_size, successes, failure, refused_before, flags, reserved }),
    layout!(byway_failed_route {
        hop_ip,
        hop_port,
        target_port,
        proxy_kind,
        failure,
        os_errno,
        periods,
        reserved,
        age_ms,
        remaining_ms,
    }),
    layout!(byway_engine_statistics {
        struct_size,
        postponed,
        database_records,
        database_pending,
        network_generation,
        waiting,
    }),
];

pub(super) fn failure_of(number: i32, name: &'static str) -> Result<Failure, Fail> {
    Failure::from_number(number).ok_or(Fail::Parameter(Status::E_ENUM, name))
}

fn phase_of(number: i32, name: &'static str) -> Result<Phase, Fail> {
    Phase::from_number(number).ok_or(Fail::Parameter(Status::E_ENUM, name))
}

/// A connection over this route stands: it is not postponed any more, and with `BYWAY_COMMIT_ON_SUCCESS` the other
/// failures of its selector now count.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_connected(
    self_: *mut byway_engine,
    route: *const byway_route,
) -> byway_status {
    call_quiet(|| {
        let engine = engine::open(self_, "self")?;
        engine.connected(&handle::shared(route, "route")?.route);
        Ok(Status::OK)
    })
}

/// An attempt over this route failed. The route database is told, unless the failure blames no route; then the proxy
/// selector that chose the route, if the host still has it; then the listeners. `failure` is `BYWAY_FAILURE_*`, `phase`
/// `BYWAY_PHASE_*`, `os_errno` the system's number or 0.
///
/// Errors: `BYWAY_E_ENUM`, `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_connect_failed(
    self_: *mut byway_engine,
    route: *const byway_route,
    failure: i32,
    phase: i32,
    os_errno: i32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let engine = engine::open(self_, "self")?;
        let object = handle::shared(route, "route")?;
        let failed = FailedAttempt {
            failure: failure_of(failure, "failure")?,
            phase: phase_of(phase, "phase")?,
            os_errno,
            source: object.source.as_ref(),
            tag: 0,
        };
        engine.connect_failed(&object.route, &failed)?;
        Ok(Status::OK)
    })
}

/// `*out` gets 1 when this route goes behind the others, because it failed before, else 0.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_should_postpone(
    self_: *mut byway_engine,
    route: *const byway_route,
    out: *mut i32,
) -> byway_status {
    status_bare(|| {
        let out = arguments::out(out, 0, "out")?;
        let engine = engine::open(self_, "self")?;
        *out = i32::from(engine.should_postpone(&handle::shared(route, "route")?.route));
        Ok(Status::OK)
    })
}

/// The network is another one (interface, VPN): failed routes and cached names are forgotten, the generation rises.
/// `*generation` gets the new one and may be NULL.
///
/// Errors: `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_network_changed(
    self_: *mut byway_engine,
    generation: *mut u64,
) -> byway_status {
    call_quiet(|| {
        let out = arguments::out_optional(generation, 0);
        let engine = engine::open(self_, "self")?;
        let generation = engine.network_changed();
        if let Some(out) = out {
            *out = generation;
        }
        Ok(Status::OK)
    })
}

/// Sets who answers when a proxy selector passes (`BYWAY_PASS`); NULL takes it back: DIRECT. Retained.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_set_proxy_selector(
    self_: *mut byway_engine,
    proxy_selector: *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let engine = engine::open(self_, "self")?;
        let source = handle::optional(proxy_selector, "proxy_selector")?.map(|given| Arc::clone(&given.0));
        drop(engine.set_default_proxies(source));
        Ok(Status::OK)
    })
}

/// Failed routes, oldest first: writes up to `cap` records of `stride` bytes; `*total` gets their number. Texts are in
/// `byway_engine_database_export`.
///
/// Errors: `BYWAY_E_ARGUMENT` for a stride of 0, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_database_snapshot(
    self_: *mut byway_engine,
    out: *mut byway_failed_route,
    stride: usize,
    cap: usize,
    total: *mut usize,
) -> byway_status {
    call_quiet(|| {
        let engine = engine::open(self_, "self")?;
        let all = engine.database().snapshot(engine.database_now());
        arguments::fill(out, stride, cap, total, all.len(), |i| {
            all.get(i).map_or(NO_ROUTE, |failed| {
                let (hop, hop_port) = failed.key.hop();
                byway_failed_route {
                    hop_ip: ip_out(hop),
                    hop_port,
                    target_port: failed.origin.0.port(),
                    proxy_kind: failed.proxy.as_ref().map_or(0, |proxy| proxy.kind() as i32),
                    failure: failed.failure as i32,
                    os_errno: failed.os_errno,
                    periods: failed.periods,
                    reserved: 0,
                    age_ms: failed.age_ms,
                    remaining_ms: failed.remaining_ms.map_or(-1, |ms| i64::try_from(ms).unwrap_or(i64::MAX)),
                }
            })
        })?;
        Ok(Status::OK)
    })
}

const NO_ROUTE: byway_failed_route = byway_failed_route {
    hop_ip: byway_ip::NONE,
    hop_port: 0,
    target_port: 0,
    proxy_kind: 0,
    failure: 0,
    os_errno: 0,
    periods: 0,
    reserved: 0,
    age_ms: 0,
    remaining_ms: 0,
};

/// The route database as JSON, to be kept over a restart; to be asked for before a shutdown. Entries whose proxy has a
/// user name are left out and counted.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_database_export(
    self_: *mut byway_engine,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(self_, "self")?;
        *out = text::hand_out(engine.database().export_json(engine.database_now()));
        Ok(Status::OK)
    })
}

/// Adds what an export holds, with the time that was left then. What is known already stays. Nothing is added when
/// anything in the text is wrong. `*n` gets the number of entries in the text and may be NULL.
///
/// Errors: `BYWAY_E_SYNTAX` with line and column, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT`, `BYWAY_E_UNSUPPORTED` for another
/// version; for a bad entry its own error, naming the index; `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_database_import(
    self_: *mut byway_engine,
    json: *const c_char,
    len: usize,
    n: *mut usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_optional(n, 0);
        let engine = engine::open(self_, "self")?;
        let json = arguments::text(json, len, "json")?;
        let count = engine.database().import_json(json, engine.options().compat, engine.database_now())?;
        if let Some(out) = out {
            *out = count;
        }
        Ok(Status::OK)
    })
}

/// Figures of an engine: fills as many bytes as `out->struct_size` says. Also after a shutdown.
///
/// Errors: `BYWAY_E_STRUCT_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_stats(
    self_: *mut byway_engine,
    out: *mut byway_engine_statistics,
) -> byway_status {
    call_quiet(|| {
        // SAFETY: by the header's contract `out` is NULL or starts with its size.
        let size = unsafe { out.cast::<usize>().as_ref() }.copied();
        let size = size.ok_or(Fail::Parameter(Status::E_NULL, "out"))?;
        if size < size_of::<byway_engine_statistics>() || size > 65_536 {
            return Err(Fail::Parameter(Status::E_STRUCT_SIZE, "out"));
        }
        let engine = &handle::shared(self_, "self")?.0;
        let stats = engine.database().stats(engine.database_now());
        let filled = byway_engine_statistics {
            struct_size: size,
            postponed: stats.postponed as u64,
            database_records: stats.records as u64,
            database_pending: stats.pending as u64,
            network_generation: stats.generation,
            waiting: engine.waiting() as u64,
        };
        arguments::fill(out, size, 1, core::ptr::null_mut(), 1, |_| filled)?;
        Ok(Status::OK)
    })
}

/// May a failed call be retried on another route? `*out` gets `BYWAY_RECOVER_*`, the first reason against it.
///
/// Errors: `BYWAY_E_ENUM`, `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_recover(
    self_: *mut byway_engine,
    failed: *const byway_failed_call,
    out: *mut i32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, BYWAY_RECOVER_FATAL, "out")?;
        let engine = engine::open(self_, "self")?;
        let given = arguments::versioned(failed, "failed")?;
        if given.flags & !31 != 0 {
            return Err(Fail::Parameter(Status::E_ENUM, "failed.flags"));
        }
        let has = |bit: u32| given.flags & bit != 0;
        let failed = Failed {
            failure: failure_of(given.failure, "failed.failure")?,
            phase: phase_of(given.phase, "failed.phase")?,
            retry_enabled: has(BYWAY_CALL_RETRY_ENABLED),
            one_shot: has(BYWAY_CALL_ONE_SHOT),
            sent: has(BYWAY_CALL_SENT),
            exchange_failed: has(BYWAY_CALL_EXCHANGE_FAILED),
            more_routes: has(BYWAY_CALL_MORE_ROUTES),
        };
        *out = recover::recover(engine.options().compat, &failed) as i32;
        Ok(Status::OK)
    })
}

/// 1 when a TLS handshake that failed so may be tried again on the same route with other parameters, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn byway_failure_retry_tls(failure: i32) -> i32 {
    call_bare(0, || Ok(i32::from(recover::retry_tls(failure_of(failure, "failure")?))))
}

/// The `BYWAY_FAILURE_*` of a system's error number that connecting, reading or writing gave, as byway's own dials tell
/// them:
///
/// | number | kind |
/// |---|---|
/// | ECONNREFUSED | `REFUSED` |
/// | ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN | `UNREACHABLE` |
/// | ETIMEDOUT; EAGAIN, EINPROGRESS (a blocking socket with SO_RCVTIMEO or SO_SNDTIMEO) | `TIMEOUT` |
/// | ECONNRESET, EPIPE, ECONNABORTED | `RESET` |
/// | EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES, EPERM, EADDRNOTAVAIL, EADDRINUSE, EAFNOSUPPORT, EPFNOSUPPORT, EPROTONOSUPPORT, EINVAL, ENODEV, ENXIO | `LOCAL` |
/// | EPROTO | `PROTOCOL` |
/// | ECANCELED | `CANCELED` |
/// | EINTR | `INTERRUPTED` |
/// | any other number, also 0 | `IO` |
///
/// A `connect(2)` that answers ENETUNREACH or EHOSTUNREACH at once found no local route, and nothing was sent: that is
/// `BYWAY_FAILURE_LOCAL`, which the number alone cannot tell. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn byway_failure_from_errno(os_errno: i32) -> i32 {
    call_bare(BYWAY_FAILURE_IO, || Ok(Failure::from_errno(os_errno) as i32))
}

/// Short text of a `BYWAY_FAILURE_*`, for example `"refused"`.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_ENUM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_failure_text(
    failure: i32,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        *out = text::hand_out(failure_of(failure, "failure")?.text().to_owned());
        Ok(Status::OK)
    })
}

/// What a failed exchange means for its connection and route: `*out` gets `BYWAY_TELL_*` bits. Tells nobody.
///
/// Errors: `BYWAY_E_ENUM`, `BYWAY_E_STRUCT_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_failure_track(
    exchange: *const byway_failed_exchange,
    out: *mut u32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, 0, "out")?;
        let given = arguments::versioned(exchange, "exchange")?;
        if given.flags & !7 != 0 {
            return Err(Fail::Parameter(Status::E_ENUM, "exchange.flags"));
        }
        let connection = Connection {
            multiplexed: given.flags & BYWAY_EXCHANGE_MULTIPLEXED != 0,
            successes: given.successes,
            refused_before: given.refused_before,
            call_canceled: given.flags & BYWAY_EXCHANGE_CALL_CANCELED != 0,
            proxied: given.flags & BYWAY_EXCHANGE_PROXIED != 0,
        };
        let failure = match given.failure {
            -1 => None,
            number => Some(failure_of(number, "exchange.failure")?),
        };
        let tracked = recover::track_failure(&connection, failure);
        *out = (u32::from(tracked.no_new_exchanges) * BYWAY_TELL_NO_NEW_EXCHANGES)
            | (u32::from(tracked.route_failures > 0) * BYWAY_TELL_ROUTE_FAILURE)
            | (u32::from(tracked.database) * BYWAY_TELL_DATABASE)
            | (u32::from(tracked.proxy_selector) * BYWAY_TELL_PROXY_SELECTOR);
        Ok(Status::OK)
    })
}

/// Who `byway_engine_connect_failed` would tell: `*out` gets `BYWAY_TELL_*` bits. `from_selector` and `retry_enabled`
/// are 0 or 1, `proxy_kind` is `BYWAY_PROXY_*`. Tells nobody.
///
/// Errors: `BYWAY_E_ENUM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_failure_report(
    compat: i32,
    failure: i32,
    phase: i32,
    proxy_kind: i32,
    from_selector: i32,
    retry_enabled: i32,
    out: *mut u32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, 0, "out")?;
        let profile = Compat::from_number(compat).ok_or(Fail::Parameter(Status::E_ENUM, "compat"))?;
        let attempt = Attempt {
            failure: failure_of(failure, "failure")?,
            phase: phase_of(phase, "phase")?,
            from_selector: from_selector != 0,
            proxied: super::proxy::kind_of(proxy_kind, "proxy_kind")? != crate::net::ProxyKind::Direct,
            retry_enabled: retry_enabled != 0,
        };
        let told = recover::report(profile, &attempt);
        *out = (u32::from(told.failed_event) * BYWAY_TELL_FAILED_EVENT)
            | (u32::from(told.canceled_event) * BYWAY_TELL_CANCELED_EVENT)
            | (u32::from(told.proxy_selector) * BYWAY_TELL_PROXY_SELECTOR)
            | (u32::from(told.database) * BYWAY_TELL_DATABASE)
            | (u32::from(told.next_route) * BYWAY_TELL_NEXT_ROUTE);
        Ok(Status::OK)
    })
}
