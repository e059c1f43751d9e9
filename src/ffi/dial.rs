//! `byway_dial`: from routes to a connected socket.

use super::arguments;
use super::arguments::byway_str;
use super::callbacks::{self, Set};
use super::dial_hooks::{HostHooks, byway_dial_callbacks};
use super::dial_options::{byway_dial_options, options_of};
use super::engine::byway_engine;
use super::error::byway_error;
use super::guard::{Fail, call, call_or, call_quiet, status_bare};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::route::{self, byway_route};
use super::selection::byway_selection;
use super::selector::{SelectorObject, byway_selector};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::dial::op::{EventKind, PollEntry};
use crate::dial::{Authenticator, Canceler, Fault, NoHooks, Operation, Step};
use crate::engine::Engine;
use crate::engine::routes::dialing::{DialRoute, Lends, Origin, Routes, Stop};
use crate::engine::routes::select::{Selecting, Side};
use crate::error::{Error, Source, Status};
use crate::sys::slab::Exclusive;
use core::cell::UnsafeCell;
use core::ffi::c_char;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::os::fd::IntoRawFd;
use std::sync::Arc;

/// One operation: races the routes of a Selection, speaks to proxies, reports what happens to the engine, and hands one
/// connected socket to the host. Exclusive. Driven by the host's event loop (`byway_dial_fd`, or `byway_dial_pollset` and
/// `byway_dial_deadline_ms`, and `byway_dial_step`), or by `byway_dial_run`.
///
/// All host code (resolver, proxy selector, hooks, listeners) runs on the thread that steps; a resolver that answers in
/// place delays the race by its own length.
pub struct byway_dial {
    _private: [u8; 0],
}

handle!(byway_dial, DialObject, 15, false, |cell| {
    // SAFETY: `side` is made for being touched beside a running call, and the cell is not dead.
    unsafe { (*cell.value_ptr()).side.canceler.cancel() }
});

/// What other threads may touch while a call is running.
struct DialSide {
    canceler: Canceler,
    authenticator: Authenticator,
}

/// What a call works on, and what other threads may touch meanwhile.
pub(crate) struct DialObject {
    side: DialSide,
    work: UnsafeCell<Operation<Routes>>,
    /// Keeps the engine's way to end it alive.
    _stop: Arc<Stop>,
    engine: Arc<Engine>,
    id: u64,
}

// SAFETY: the operation belongs to whoever has taken the handle; the side is made for any thread.
unsafe impl Send for DialObject {}

impl Drop for DialObject {
    fn drop(&mut self) {
        self.engine.forget(self.id);
    }
}

impl DialObject {
    /// The part that belongs to the running call.
    #[allow(clippy::mut_from_ref, reason = "the exclusive borrow is that of the handle")]
    fn work<'a>(this: &'a mut Exclusive<'_, DialObject>) -> &'a mut Operation<Routes> {
        let this: &DialObject = this;
        // SAFETY: the handle is taken for this call, so nobody else reaches `work`.
        unsafe { &mut *this.work.get() }
    }
}

/// A selector that belongs to a dial for as long as that lives: other calls on it are turned away as busy.
struct Borrowed(Exclusive<'static, SelectorObject>);

// SAFETY: the handle may be taken on one thread and given back on another; its content may move between threads.
unsafe impl Send for Borrowed {}

impl Lends for Borrowed {
    fn lend(&mut self) -> (&Side, &mut Selecting) {
        SelectorObject::work(&mut self.0)
    }
}

/// A connected socket.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_connected {
    /// The socket; the host's own from now on. -1 when there is none.
    pub fd: i32,
    /// Number of the attempt, for `byway_dial_confirm` and `byway_dial_resume`.
    pub attempt: u32,
    /// The route it leads over. The caller owns one reference.
    pub route: *mut byway_route,
    /// `BYWAY_CONNECTED_*`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// TLS to the proxy must be run first, then a `byway_handshake`, then `byway_dial_confirm`.
pub const BYWAY_CONNECTED_NEEDS_PROXY_TLS: u32 = 1;
/// The race goes on until `byway_dial_confirm`.
pub const BYWAY_CONNECTED_PROVISIONAL: u32 = 2;

const NOTHING: byway_connected =
    byway_connected { fd: -1, attempt: 0, route: core::ptr::null_mut(), flags: 0, reserved: 0 };

/// One descriptor to watch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_pollfd {
    /// Number of the attempt, 0 for wake-ups. A descriptor's number may come back for another attempt within one step:
    /// compare these.
    pub id: u32,
    /// The descriptor.
    pub fd: i32,
    /// `POLLIN`, `POLLOUT`.
    pub events: i16,
    /// What `poll` said.
    pub revents: i16,
}

/// Something that happened, for hosts that keep state per descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_dial_event {
    /// `BYWAY_DIAL_EVENT_*`.
    pub kind: i32,
    /// Number of the attempt.
    pub attempt: u32,
    /// Its descriptor, -1 when it has none.
    pub fd: i32,
    /// Why, for failures.
    pub status: byway_status,
    /// Milliseconds since the first step.
    pub at_ms: i64,
}

/// A connect was started.
pub const BYWAY_DIAL_EVENT_START: i32 = 1;
/// TCP stands, the proxy dialogue begins.
pub const BYWAY_DIAL_EVENT_HANDSHAKE: i32 = 2;
/// The descriptor is about to be closed: forget it now.
pub const BYWAY_DIAL_EVENT_FD_CLOSING: i32 = 3;
/// It failed.
pub const BYWAY_DIAL_EVENT_FAILED: i32 = 4;
/// It ended without blame: another one won, the host cancelled, time ran out.
pub const BYWAY_DIAL_EVENT_CANCELED: i32 = 5;
/// `proxy_auth` said that credentials come later.
pub const BYWAY_DIAL_EVENT_CREDENTIALS: i32 = 6;
/// A socket may be taken while the race goes on.
pub const BYWAY_DIAL_EVENT_OFFER: i32 = 7;
/// It won.
pub const BYWAY_DIAL_EVENT_WON: i32 = 8;

/// One failed attempt.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_dial_failure {
    /// Number of the attempt; 0 when no Selection could be made.
    pub attempt: u32,
    /// What to branch on.
    pub status: byway_status,
    /// The system's number, 0 for none.
    pub os_errno: i32,
    /// The number the proxy sent: a SOCKS code, an HTTP status; 0 for none. A 407 is told by `BYWAY_E_PROXY_AUTH`.
    pub number: i32,
    /// Begin, milliseconds since the first step.
    pub start_ms: i64,
    /// End.
    pub end_ms: i64,
    /// Fixed name, for example `REFUSED` or `CONNECT_STATUS`. Static.
    pub name: byway_str,
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_connected { fd, attempt, route, flags, reserved }),
    layout!(byway_pollfd { id, fd, events, revents }),
    layout!(byway_dial_event { kind, attempt, fd, status, at_ms }),
    layout!(byway_dial_failure { attempt, status, os_errno, number, start_ms, end_ms, name }),
];

/// The host's TLS failed for another reason than a certificate: the route is put behind the others.
pub const BYWAY_RESUME_TLS: i32 = 0;
/// The certificate was not accepted: nobody is to blame for it.
pub const BYWAY_RESUME_CERTIFICATE: i32 = 1;
/// The connection was closed or broke.
pub const BYWAY_RESUME_CLOSED: i32 = 2;

fn make(
    engine: *mut byway_engine,
    options: *const byway_dial_options,
    hooks: *const byway_dial_callbacks,
    out: *mut *mut byway_dial,
    origin: impl FnOnce() -> Result<Origin, Fail>,
) -> Result<Status, Fail> {
    let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(hooks))?;
    let set = match hooks.is_null() {
        true => None,
        false => Some(Set::register(hooks, engine, "callbacks")?.1),
    };
    let engine = Arc::clone(&handle::shared(engine, "engine")?.0);
    engine.check_open()?;
    let (options, tag) = options_of(options, engine.options().compat)?;
    let object = Arc::new(AtomicUsize::new(0));
    let source = Routes::new(Arc::clone(&engine), origin()?, tag, Arc::clone(&object));
    let mut work = Operation::new(source, Arc::new(options), Box::new(NoHooks));
    if let Some(set) = set {
        let authenticator = work.authenticator();
        let (engine, object) = (Arc::clone(&engine), Arc::clone(&object));
        work.set_hooks(Box::new(HostHooks { set, engine, tag, object, authenticator }));
    }
    let side = DialSide { canceler: work.canceler(), authenticator: work.authenticator() };
    let stop = Arc::new(Stop(work.canceler()));
    let id = engine.watch_over(&stop)?;
    let dial = DialObject { side, work: UnsafeCell::new(work), _stop: stop, engine, id };
    let pointer: *mut byway_dial = handle::hand_out(dial);
    object.store(pointer.addr(), Ordering::Relaxed);
    *out = pointer;
    Ok(Status::OK)
}

/// Makes a dial over the routes of a selector, Selection after Selection. Nothing happens before the first step.
/// `options` and `callbacks` may be NULL.
///
/// Ownership: the caller owns the dial. The selector stays the caller's and belongs to the dial until that is freed:
/// other calls on it answer `BYWAY_E_BUSY`; cancelling or freeing it ends the dial.
/// Errors: `BYWAY_E_BUSY` for a selector in use, `BYWAY_E_ENUM`, `BYWAY_E_ARGUMENT`, `BYWAY_E_INVALID_IP`,
/// `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_new(
    engine: *mut byway_engine,
    selector: *mut byway_selector,
    options: *const byway_dial_options,
    callbacks: *const byway_dial_callbacks,
    out: *mut *mut byway_dial,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        make(engine, options, callbacks, out, || {
            let mut selector = Borrowed(handle::exclusive(selector, "selector")?);
            let own = handle::shared(engine, "engine")?;
            if !Arc::ptr_eq(&selector.lend().1.target().engine, &own.0) {
                let message = "the selector was made with another engine";
                return Err(Error::new(Status::E_ARGUMENT, message).subject("selector").into());
            }
            Ok(Origin::Selector(Box::new(selector)))
        })
    })
}

/// Makes a dial over the routes of one Selection that are still before its cursor. Otherwise as `byway_dial_new`.
///
/// Ownership: the caller owns the dial; the selection is not needed any more.
/// Errors: as `byway_dial_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_new_selection(
    engine: *mut byway_engine,
    selection: *mut byway_selection,
    options: *const byway_dial_options,
    callbacks: *const byway_dial_callbacks,
    out: *mut *mut byway_dial,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        make(engine, options, callbacks, out, || {
            let mut selection = handle::exclusive(selection, "selection")?;
            Ok(Origin::Routes(selection.take_rest()))
        })
    })
}

/// Makes a dial over routes the host has kept, in this order. Otherwise as `byway_dial_new`.
///
/// Ownership: the caller owns the dial; the routes are retained.
/// Errors: as `byway_dial_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_new_routes(
    engine: *mut byway_engine,
    routes: *const *const byway_route,
    count: usize,
    options: *const byway_dial_options,
    callbacks: *const byway_dial_callbacks,
    out: *mut *mut byway_dial,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        make(engine, options, callbacks, out, || {
            let routes = arguments::array(routes, count, "routes")?;
            let routes = routes.iter().map(|route| {
                let object = handle::shared(*route, "routes")?;
                Ok(DialRoute { route: object.route.clone(), source: object.source.clone() })
            });
            Ok(Origin::Routes(routes.collect::<Result<_, Fail>>()?))
        })
    })
}

fn taken(work: &mut Operation<Routes>) -> Result<byway_connected, Fail> {
    let connected = work.take()?;
    let flags = (u32::from(connected.needs_proxy_tls) * BYWAY_CONNECTED_NEEDS_PROXY_TLS)
        | (u32::from(connected.provisional) * BYWAY_CONNECTED_PROVISIONAL);
    let route = route::hand_out(connected.route.route, connected.route.source);
    Ok(byway_connected {
        fd: connected.socket.into_raw_fd(),
        attempt: connected.attempt,
        route,
        flags,
        reserved: 0,
    })
}

/// Drives the dial on this thread until a socket is ready, and takes it, or until nothing is left. When `timeout_ms` has
/// passed the dial ends with `BYWAY_E_TIMEOUT`; 0 does what can be done without waiting and may answer `BYWAY_PENDING`;
/// negative is the engine's default. Only this dial's host code runs meanwhile.
///
/// Ownership: socket and route in `*out` are the caller's.
/// Errors: `BYWAY_E_CONNECT` with every failed attempt as a cause; `BYWAY_E_PROXY_REFUSED` and `BYWAY_E_PROXY_AUTH` when
/// a proxy's answer ended the dial; `BYWAY_E_LOCAL` when this machine could make no attempt; `BYWAY_E_NO_ROUTE`,
/// `BYWAY_E_TIMEOUT`, `BYWAY_E_CANCELED`, `BYWAY_E_SHUTDOWN`; `BYWAY_E_WOULD_DEADLOCK` on an event loop's thread when it
/// would have to wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_run(
    self_: *mut byway_dial,
    timeout_ms: i64,
    out: *mut byway_connected,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, NOTHING, "out")?;
        let mut dial = handle::exclusive(self_, "self")?;
        let engine = Arc::clone(&dial.engine);
        let work = DialObject::work(&mut dial);
        match work.step_with(&[])? {
            Step::Ended(error) => return Err(error.into()),
            Step::Ready => {}
            Step::Pending if timeout_ms == 0 => return Ok(Status::PENDING),
            Step::Pending => {
                if engine.queue().would_deadlock() {
                    return Err(Status::E_WOULD_DEADLOCK.into());
                }
                let default = engine.options().default_timeout.as_millis();
                let limit = u64::try_from(timeout_ms).unwrap_or(u64::try_from(default).unwrap_or(u64::MAX));
                work.wait_until_ready(Some(limit))?;
            }
        }
        *out = taken(work)?;
        Ok(Status::OK)
    })
}

fn entries(ready: *const byway_pollfd, count: usize) -> Result<Vec<PollEntry>, Fail> {
    let ready = arguments::array(ready, count, "ready")?.iter();
    let entry = |p: &byway_pollfd| PollEntry {
        id: p.id,
        reserved: 0,
        fd: p.fd,
        events: p.events,
        revents: p.revents,
    };
    Ok(ready.map(entry).collect())
}

fn stepped(step: Step) -> Result<Status, Fail> {
    match step {
        Step::Ready => Ok(Status::OK),
        Step::Pending => Ok(Status::PENDING),
        Step::Ended(error) => Err(error.into()),
    }
}

/// Does what is due and never waits. `ready` is what `poll` said about the set of `byway_dial_pollset`; `(NULL, 0)` looks
/// for itself. `BYWAY_OK`: a socket can be taken. `BYWAY_PENDING`: go on watching; no record comes to a queue, the
/// descriptors say when.
///
/// Errors: as `byway_dial_run` when it is over without a socket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_step(
    self_: *mut byway_dial,
    ready: *const byway_pollfd,
    count: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let ready = entries(ready, count)?;
        let mut dial = handle::exclusive(self_, "self")?;
        let work = DialObject::work(&mut dial);
        stepped(if ready.is_empty() { work.step()? } else { work.step_with(&ready)? })
    })
}

/// As `byway_dial_step` on a clock of the host's own, milliseconds since the first step, that never goes back; nothing is
/// looked for. For tests and simulations: from here on the dial asks no other clock.
///
/// Errors: as `byway_dial_step`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_step_at(
    self_: *mut byway_dial,
    now_ms: u64,
    ready: *const byway_pollfd,
    count: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let ready = entries(ready, count)?;
        let mut dial = handle::exclusive(self_, "self")?;
        stepped(DialObject::work(&mut dial).step_at(now_ms, &ready)?)
    })
}

/// One descriptor for everything: readable when a step is due or a socket can be taken. The same for the dial's whole
/// life, also after a shutdown: then it is readable, and the step says `BYWAY_E_SHUTDOWN`. Linux.
///
/// Ownership: the dial closes it.
/// Errors: `BYWAY_E_LOCAL` when it cannot be made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_fd(
    self_: *mut byway_dial,
    out: *mut i32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, -1, "out")?;
        let mut dial = handle::exclusive(self_, "self")?;
        *out = DialObject::work(&mut dial).pollable_fd()?;
        Ok(Status::OK)
    })
}

/// Milliseconds until a step is due, rounded up: 0 = now, -1 = not before a descriptor says so. Also after a
/// shutdown.
///
/// Errors: `BYWAY_E_NULL`, `BYWAY_E_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_deadline_ms(self_: *mut byway_dial, out: *mut i64) -> byway_status {
    call_quiet(|| {
        let out = arguments::out(out, -1, "out")?;
        let mut dial = handle::exclusive(self_, "self")?;
        let deadline = DialObject::work(&mut dial).deadline_ms();
        *out = deadline.map_or(-1, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
        Ok(Status::OK)
    })
}

/// Every descriptor to watch now, the one for wake-ups among them: writes up to `cap` entries of `stride` bytes, `*total`
/// gets their number. `*generation`, which may be NULL, changes with the set. Also after a shutdown, as `byway_dial_fd`.
///
/// Errors: `BYWAY_E_LOCAL` when the descriptor for wake-ups cannot be made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_pollset(
    self_: *mut byway_dial,
    out: *mut byway_pollfd,
    stride: usize,
    cap: usize,
    total: *mut usize,
    generation: *mut u64,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let generation = arguments::out_optional(generation, 0);
        let mut dial = handle::exclusive(self_, "self")?;
        let mut set = Vec::new();
        let number = DialObject::work(&mut dial).pollset(|p| {
            set.push(byway_pollfd { id: p.id, fd: p.fd, events: p.events, revents: 0 });
        })?;
        if let Some(generation) = generation {
            *generation = number;
        }
        let empty = byway_pollfd { id: 0, fd: -1, events: 0, revents: 0 };
        arguments::fill(out, stride, cap, total, set.len(), |i| set.get(i).copied().unwrap_or(empty))?;
        Ok(Status::OK)
    })
}

/// The oldest event not fetched yet. None are kept without `BYWAY_DIAL_EVENTS`. Also after a shutdown.
///
/// Errors: `BYWAY_DONE` when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_next_event(
    self_: *mut byway_dial,
    out: *mut byway_dial_event,
) -> byway_status {
    call_quiet(|| {
        let empty = byway_dial_event { kind: 0, attempt: 0, fd: -1, status: 0, at_ms: 0 };
        let out = arguments::out(out, empty, "out")?;
        let mut dial = handle::exclusive(self_, "self")?;
        let Some(event) = DialObject::work(&mut dial).next_event() else { return Ok(Status::DONE) };
        *out = byway_dial_event {
            kind: number(event.kind),
            attempt: event.attempt,
            fd: event.fd,
            status: event.fault.map_or(0, |fault| fault.status().0),
            at_ms: i64::try_from(event.at_ms).unwrap_or(i64::MAX),
        };
        Ok(Status::OK)
    })
}

fn number(kind: EventKind) -> i32 {
    match kind {
        EventKind::Start => BYWAY_DIAL_EVENT_START,
        EventKind::Handshake => BYWAY_DIAL_EVENT_HANDSHAKE,
        EventKind::FdClosing => BYWAY_DIAL_EVENT_FD_CLOSING,
        EventKind::Failed => BYWAY_DIAL_EVENT_FAILED,
        EventKind::Canceled => BYWAY_DIAL_EVENT_CANCELED,
        EventKind::Credentials => BYWAY_DIAL_EVENT_CREDENTIALS,
        EventKind::Offer => BYWAY_DIAL_EVENT_OFFER,
        EventKind::Won => BYWAY_DIAL_EVENT_WON,
    }
}

/// Moves the connected socket out, once. Of a provisional one the race goes on.
///
/// Ownership: socket and route in `*out` are the caller's.
/// Errors: `BYWAY_E_STATE` when there is none or it was taken; as `byway_dial_run` when the dial has failed;
/// `BYWAY_E_SHUTDOWN`, the socket is closed with the dial.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_take(
    self_: *mut byway_dial,
    out: *mut byway_connected,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, NOTHING, "out")?;
        let mut dial = handle::exclusive(self_, "self")?;
        dial.engine.check_open()?;
        *out = taken(DialObject::work(&mut dial))?;
        Ok(Status::OK)
    })
}

/// The host is content with this attempt's socket, usually after TLS: ends a race that waits for it
/// (`BYWAY_RACE_UNTIL_HOST`), and reports a route through a proxy behind TLS as connected.
///
/// Errors: `BYWAY_E_STATE` when this attempt is not on offer and has not won, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_confirm(
    self_: *mut byway_dial,
    attempt: u32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let mut dial = handle::exclusive(self_, "self")?;
        dial.engine.check_open()?;
        DialObject::work(&mut dial).confirm(attempt)?;
        Ok(Status::OK)
    })
}

/// The host could not use this attempt's socket, for the reason `BYWAY_RESUME_*`: go on. First `follow_up` if it is not
/// NULL, then the routes that lost, each with a fresh attempt, then those never tried. A socket that was taken stays the
/// host's, one that was not is closed.
///
/// Errors: `BYWAY_E_STATE` when this attempt is not on offer and has not won, `BYWAY_E_ENUM`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_resume(
    self_: *mut byway_dial,
    attempt: u32,
    reason: i32,
    follow_up: *const byway_route,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let mut dial = handle::exclusive(self_, "self")?;
        dial.engine.check_open()?;
        let fault = match reason {
            BYWAY_RESUME_TLS => Fault::TlsFailed,
            BYWAY_RESUME_CERTIFICATE => Fault::TlsCertificate,
            BYWAY_RESUME_CLOSED => Fault::Reset,
            _ => return Err(Fail::Parameter(Status::E_ENUM, "reason")),
        };
        let follow_up = handle::optional(follow_up, "follow_up")?;
        let follow_up =
            follow_up.map(|object| DialRoute { route: object.route.clone(), source: object.source.clone() });
        DialObject::work(&mut dial).resume(attempt, fault, follow_up)?;
        Ok(Status::OK)
    })
}

/// Credentials that `proxy_auth` promised: the whole value of `Proxy-Authorization`, for example `Basic dTpw`.
/// `(NULL, 0)` = there are none, the attempt ends. Sent to this proxy alone.
///
/// Threads: any, at any time, also from inside `proxy_auth`.
/// Errors: `BYWAY_E_ARGUMENT` for a value that must not stand in a header, `BYWAY_E_SHUTDOWN`. An attempt that is over ignores it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_authenticate(
    self_: *mut byway_dial,
    attempt: u32,
    value: *const c_char,
    len: usize,
) -> byway_status {
    call_quiet(|| {
        let visit = handle::running(self_, "self")?;
        // SAFETY: the engine is never changed, and the visit keeps it.
        unsafe { &(*visit.value_ptr()).engine }.check_open()?;
        let value = match arguments::text(value, len, "value")? {
            "" => None,
            text if crate::dial::connect::is_header_value(text) => Some(text.to_owned()),
            _ => return Err(Fail::Parameter(Status::E_ARGUMENT, "value")),
        };
        // SAFETY: `side` is made for being touched beside a running call, and the visit keeps it.
        unsafe { (*visit.value_ptr()).side.authenticator.answer(attempt, value) };
        Ok(Status::OK)
    })
}

/// Cancels for good: a running or later call ends with `BYWAY_E_CANCELED`, and the descriptor becomes readable. A socket
/// that was taken stays the host's.
///
/// Threads: any, at any time, also from a signal handler.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_cancel(self_: *mut byway_dial) -> byway_status {
    status_bare(|| {
        let visit = handle::running(self_, "self")?;
        // SAFETY: as above.
        unsafe { (*visit.value_ptr()).side.canceler.cancel() };
        Ok(Status::OK)
    })
}

/// The failed attempts so far, in the order in which they failed: writes up to `cap` records of `stride` bytes, `*total`
/// gets their number. Also after a shutdown.
///
/// Ownership: `name` is static.
/// Errors: `BYWAY_E_BUSY`, `BYWAY_E_ARGUMENT` for a stride of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_failures(
    self_: *mut byway_dial,
    out: *mut byway_dial_failure,
    stride: usize,
    cap: usize,
    total: *mut usize,
) -> byway_status {
    call_quiet(|| {
        let mut dial = handle::exclusive(self_, "self")?;
        let failures = DialObject::work(&mut dial).failures();
        let ms = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
        arguments::fill(out, stride, cap, total, failures.len(), |i| {
            let failure = failures.get(i);
            let name = failure.and_then(|f| f.fault).map_or("NO_SELECTION\0", Fault::c_name);
            byway_dial_failure {
                attempt: failure.map_or(0, |f| f.attempt),
                status: failure.map_or(0, |f| f.error.status().0),
                os_errno: failure.map_or(0, |f| f.errno),
                number: failure.and_then(|f| f.fault).map_or(0, Fault::number),
                start_ms: failure.map_or(0, |f| ms(f.span_ms.0)),
                end_ms: failure.map_or(0, |f| ms(f.span_ms.1)),
                name: byway_str { data: name.as_ptr().cast(), len: name.len() - 1 },
            }
        })?;
        Ok(Status::OK)
    })
}

/// The route of the failed attempt at this position of `byway_dial_failures`. Also after a shutdown.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_DONE` past the end, and when no Selection could be made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_failure_route(
    self_: *mut byway_dial,
    index: usize,
    out: *mut *mut byway_route,
) -> byway_status {
    call_quiet(|| {
        let out = arguments::out_handle(out, "out")?;
        let mut dial = handle::exclusive(self_, "self")?;
        let failure = DialObject::work(&mut dial).failures().get(index);
        let Some(failed) = failure.and_then(|f| f.route.clone()) else { return Ok(Status::DONE) };
        *out = route::hand_out(failed.route, failed.source);
        Ok(Status::OK)
    })
}

/// The waterfall: which attempt started when, which one won, why the others ended. `format` is `BYWAY_FORMAT_*`. Shows
/// no credentials. Also after a shutdown.
///
/// As text: the outcome and how many milliseconds everything took, then a line for each attempt: its number, hop, kind of
/// proxy (`direct` for none), a bar, when it started, how and when it ended, and why. All bars share one axis of time, from
/// the first step to the last end: `-` TCP is being connected, `=` the proxy is spoken to, `|` the end.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_ENUM`, `BYWAY_E_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_explain(
    self_: *mut byway_dial,
    format: i32,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let as_text = text::is_text(format)?;
        let mut dial = handle::exclusive(self_, "self")?;
        let work = DialObject::work(&mut dial);
        let explained = match as_text {
            true => work.explain_text(),
            false => {
                let json = work.explain_json();
                serde_json::to_string_pretty(&json).map_err(|error| {
                    Error::new(Status::E_RESOURCES, error.to_string()).source(Source::Engine)
                })?
            }
        };
        *out = text::hand_out(explained);
        Ok(Status::OK)
    })
}

/// Ends a dial, at any time: a running call ends with `BYWAY_E_CANCELED` and frees it. Every socket that was not taken is
/// closed; the selector is the caller's again. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_free(self_: *mut byway_dial) {
    call_or((), || {
        handle::free(self_);
        Ok(())
    });
}
