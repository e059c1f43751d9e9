//! `byway_dns`: who resolves names, and `byway_dns_request`: one question and its answer.

use super::address::{as_ips, byway_ip, checked};
use super::arguments::{self, Versioned, byway_str};
use super::call::{Call, byway_call};
use super::callbacks::{self, Callbacks, Set};
use super::engine::{self, byway_engine};
use super::error::byway_error;
use super::guard::{Fail, call, call_bare, call_or, call_quiet, status_bare};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::status::byway_status;
use crate::engine::routes::dns::{HostDns, Resolver, Resolving, Serving};
use crate::engine::routes::request::{DnsAnswer, DnsRequest};
use crate::error::{Error, Source, Status};
use crate::net::{HostsTable, Ip, Service};
use crate::sys::slab::Shared;
use core::ffi::{c_char, c_void};
use std::sync::Arc;

/// Who resolves names. Shared.
pub struct byway_dns {
    _private: [u8; 0],
}

handle!(byway_dns, DnsHandle, 5, false);

/// The resolver.
pub(crate) struct DnsHandle(pub(crate) Arc<Resolver>);

/// One question to a resolver, and where its answer goes. Shared; the callback borrows it, and retains it to answer
/// later.
pub struct byway_dns_request {
    _private: [u8; 0],
}

handle!(byway_dns_request, DnsRequest, 6, false);

/// A host's resolver.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_dns_callbacks {
    /// `sizeof(byway_dns_callbacks)`.
    pub struct_size: usize,
    /// First argument of every function.
    pub user_data: *mut c_void,
    /// Runs once when the set is no longer in use. May be NULL.
    pub destroy: callbacks::byway_destroy,
    /// Asks for the addresses of a canonical name. Put the answer into `request`, in the order in which routes are to
    /// be tried, and return `BYWAY_OK`; or retain `request`, return `BYWAY_PENDING` and answer from any thread later
    /// (finishing before returning is legal); or `BYWAY_PASS` to have the system asked; or an error. `BYWAY_OK` with
    /// nothing added means that the name has no address.
    pub lookup: Option<
        unsafe extern "C-unwind" fn(
            user_data: *mut c_void,
            request: *mut byway_dns_request,
            host: *const c_char,
            host_len: usize,
            call: *const byway_call,
        ) -> byway_status,
    >,
    /// Nobody waits for this request any more; a late answer is harmless. May be NULL.
    pub on_cancel: Option<unsafe extern "C-unwind" fn(user_data: *mut c_void, request_id: u64)>,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_dns_callbacks {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_dns_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
        lookup: None,
        on_cancel: None,
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_dns_callbacks {}

/// One HTTPS or SVCB record (RFC 9460). Routes carry it on to the host; byway connects by the address records.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_service_options {
    /// `sizeof(byway_service_options)`.
    pub struct_size: usize,
    /// Target name; empty means the name that was asked.
    pub target: byway_str,
    /// SvcPriority, lower is preferred.
    pub priority: u16,
    /// Port, 0 when the record has none.
    pub port: u16,
    /// Zero.
    pub reserved: u32,
    /// ALPN ids in order.
    pub alpn: *const byway_str,
    /// Number of ALPN ids.
    pub alpn_len: usize,
    /// Encrypted ClientHello configuration list.
    pub ech: byway_str,
    /// Address hints.
    pub hints: *const byway_ip,
    /// Number of hints.
    pub hints_len: usize,
}

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_service_options {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_service_options {
        struct_size: size_of::<Self>(),
        target: byway_str::NONE,
        priority: 0,
        port: 0,
        reserved: 0,
        alpn: core::ptr::null(),
        alpn_len: 0,
        ech: byway_str::NONE,
        hints: core::ptr::null(),
        hints_len: 0,
    };
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_dns_callbacks { struct_size, user_data, destroy, lookup, on_cancel }),
    layout!(byway_service_options {
        struct_size,
        target,
        priority,
        port,
        reserved,
        alpn,
        alpn_len,
        ech,
        hints,
        hints_len,
    }),
];

/// The host's functions as the engine sees them.
struct HostSet(Arc<Set<byway_dns_callbacks>>);

impl HostDns for HostSet {
    #[inline]
    fn lookup(&self, request: &Shared<DnsRequest>, name: &str, serving: &Serving) -> Status {
        let Some(lookup) = self.0.raw().lookup else { return Status::PASS };
        let context = Call::lasting(serving.engine, serving.tag, serving.id, serving.left);
        let request = request.cell().as_ptr().cast();
        // SAFETY: the host gave this function for this pointer; the arguments live until it returns, and `name` ends
        // in NUL.
        Status(unsafe {
            lookup(self.0.user_data(), request, name.as_ptr().cast(), name.len() - 1, context.as_ptr())
        })
    }

    fn canceled(&self, request: u64) {
        if let Some(on_cancel) = self.0.raw().on_cancel {
            // SAFETY: the host gave this function for this pointer.
            unsafe { on_cancel(self.0.user_data(), request) };
        }
    }
}

/// Makes a resolver from callbacks.
///
/// Ownership: the caller owns one reference. `callbacks->destroy` runs when the last user is gone, also when this fails.
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_NULL` without `lookup`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_new(
    engine: *mut byway_engine,
    callbacks: *const byway_dns_callbacks,
    out: *mut *mut byway_dns,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let (_, set) = Set::register(callbacks, engine, "callbacks")?;
        if set.raw().lookup.is_none() {
            return Err(Fail::Parameter(Status::E_NULL, "callbacks.lookup"));
        }
        let host: Arc<dyn HostDns> = Arc::new(HostSet(set));
        *out = handle::hand_out(DnsHandle(Resolver::new(Resolving::Host(host))));
        Ok(Status::OK)
    })
}

/// Makes a resolver that asks the system (`getaddrinfo`) on a small pool of byway's own threads. Giving up abandons the
/// thread's answer, never waits for it.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_new_system(
    engine: *mut byway_engine,
    out: *mut *mut byway_dns,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        engine::open(engine, "engine")?;
        *out = handle::hand_out(DnsHandle(Resolver::new(Resolving::System)));
        Ok(Status::OK)
    })
}

/// Makes a resolver from hosts-file text: lines of an address and its names, `#` comments. Names that are not listed do
/// not exist.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_SYNTAX` with line and column, `BYWAY_E_UTF8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_new_hosts(
    engine: *mut byway_engine,
    text: *const c_char,
    len: usize,
    out: *mut *mut byway_dns,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        engine::open(engine, "engine")?;
        let table = HostsTable::parse(arguments::text(text, len, "text")?)?;
        *out = handle::hand_out(DnsHandle(Resolver::new(Resolving::Hosts(table))));
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live resolver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_retain(self_: *mut byway_dns) -> *mut byway_dns {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. NULL is fine. Addresses that use the resolver keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_release(self_: *mut byway_dns) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}

/// Number of the request, as `on_cancel` names it; 0 for what is not a live one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_id(self_: *const byway_dns_request) -> u64 {
    call_bare(0, || Ok(handle::shared(self_, "self")?.id()))
}

/// 1 when nobody waits for the answer any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_is_canceled(self_: *const byway_dns_request) -> i32 {
    call_bare(1, || Ok(i32::from(handle::shared(self_, "self")?.is_canceled())))
}

/// Adds addresses to the answer, behind those already there. All or none.
///
/// Threads: any; runs no host code.
/// Errors: `BYWAY_E_INVALID_IP`, `BYWAY_E_LIMIT`, `BYWAY_E_STATE` after the answer, `BYWAY_E_CANCELED` (harmless) when
/// nobody waits any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_add(
    self_: *mut byway_dns_request,
    ips: *const byway_ip,
    n: usize,
) -> byway_status {
    status_bare(|| {
        let request = handle::shared(self_, "self")?;
        let ips = arguments::array(ips, n, "ips")?;
        let as_they_are = as_ips(ips);
        if as_they_are.iter().all(Ip::is_canonical) {
            request.add(|answer| answer.add_canonical(as_they_are))?;
            return Ok(Status::OK);
        }
        add_checked(request, ips)
    })
}

/// Addresses that are not in byway's own form, or are none.
#[cold]
fn add_checked(request: &DnsRequest, ips: &[byway_ip]) -> Result<Status, Fail> {
    let checked: Vec<Ip> = ips.iter().map(|ip| checked(ip, "ips")).collect::<Result<_, _>>()?;
    add(request, &checked)
}

#[inline]
fn add(request: &DnsRequest, ips: &[Ip]) -> Result<Status, Fail> {
    request.add(|answer| answer.add(ips))?;
    Ok(Status::OK)
}

/// As `byway_dns_request_add`, from text: literals separated by white space or commas.
///
/// Errors: as there, naming the word that is no address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_add_text(
    self_: *mut byway_dns_request,
    ips: *const c_char,
    len: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let request = handle::shared(self_, "self")?;
        let text = arguments::text(ips, len, "ips")?;
        let words = text.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let found: Vec<Ip> = words.map(Ip::parse).collect::<Result<_, _>>()?;
        add(request, &found)
    })
}

/// Adds one HTTPS or SVCB record.
///
/// Errors: as `byway_dns_request_add`; `BYWAY_E_STRUCT_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_add_service(
    self_: *mut byway_dns_request,
    service: *const byway_service_options,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let request = handle::shared(self_, "self")?;
        let given = arguments::versioned(service, "service")?;
        let mut alpn = Vec::new();
        for id in arguments::array(given.alpn, given.alpn_len, "service.alpn")? {
            alpn.push(arguments::bytes(id.data, id.len, "service.alpn")?.into());
        }
        let hints = arguments::array(given.hints, given.hints_len, "service.hints")?;
        let hints: Vec<Ip> = hints.iter().map(|ip| checked(ip, "service.hints")).collect::<Result<_, _>>()?;
        let service = Arc::new(Service {
            target: arguments::text_of(given.target, "service.target")?.into(),
            priority: given.priority,
            alpn: alpn.into(),
            port: given.port,
            ech: arguments::bytes(given.ech.data, given.ech.len, "service.ech")?.into(),
            hints: hints.into(),
        });
        request.add(|answer: &mut DnsAnswer| answer.add_service(service))?;
        Ok(Status::OK)
    })
}

/// Says that every address of one family (4 or 6) has been added. With `BYWAY_SELECTOR_EARLY` the routes so far may then
/// be used while the other family is awaited.
///
/// Errors: `BYWAY_E_ENUM`; else as `byway_dns_request_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_family_done(
    self_: *mut byway_dns_request,
    family: i32,
) -> byway_status {
    call_quiet(|| {
        let request = handle::shared(self_, "self")?;
        if family != 4 && family != 6 {
            return Err(Fail::Parameter(Status::E_ENUM, "family"));
        }
        // A part that is complete is a part: whoever waits for parts looks.
        request.add(|answer| answer.add(&[]))?;
        Ok(Status::OK)
    })
}

/// The answer is complete. The first end wins; a callback that returns `BYWAY_OK` has finished.
///
/// Errors: `BYWAY_E_STATE`, `BYWAY_E_CANCELED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_finish(self_: *mut byway_dns_request) -> byway_status {
    call_quiet(|| {
        handle::shared(self_, "self")?.finish(Ok(()))?;
        Ok(Status::OK)
    })
}

/// The lookup failed. What was added before still counts: one family that fails does not fail the call. `status` is a
/// `BYWAY_E_*`, for example `BYWAY_E_UNKNOWN_HOST` or `BYWAY_E_DNS`; `host_code` and the message go into the error.
///
/// Errors: `BYWAY_E_STATE`, `BYWAY_E_CANCELED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_fail(
    self_: *mut byway_dns_request,
    status: byway_status,
    host_code: i64,
    message: *const c_char,
    len: usize,
) -> byway_status {
    call_quiet(|| {
        let request = handle::shared(self_, "self")?;
        request.finish(Err(failure(status, host_code, arguments::text(message, len, "message")?)))?;
        Ok(Status::OK)
    })
}

/// A host's failure as an error; a status nobody defined, or one that is no error, counts as `BYWAY_E_HOST`.
pub(super) fn failure(status: byway_status, host_code: i64, message: &str) -> Error {
    let status = match Status(status) {
        known if known.is_error() && known.name() != "BYWAY_UNKNOWN" => known,
        _ => Status::E_HOST,
    };
    let message = if message.is_empty() { status.message() } else { message };
    Error::new(status, message).host(host_code).source(Source::Callback)
}

/// One more reference, to answer after the callback has returned; returns its argument, NULL for what is not a live request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_retain(self_: *mut byway_dns_request) -> *mut byway_dns_request {
    call_or(core::ptr::null_mut(), || {
        let retained = handle::retain(self_)?;
        handle::shared(self_, "self")?.add_answerer();
        Ok(retained)
    })
}

/// One reference less. When the last one goes and the question is unanswered, it fails with `BYWAY_E_ABANDONED`: nobody
/// waits for ever. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dns_request_release(self_: *mut byway_dns_request) {
    call_or((), || {
        if let Ok(request) = handle::shared(self_, "self") {
            request.drop_answerer();
        }
        handle::release(self_);
        Ok(())
    });
}
