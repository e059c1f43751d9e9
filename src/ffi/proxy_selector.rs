//! `byway_proxy_selector`: who chooses proxies, and `byway_proxy_request`: one question and its answer.

use super::arguments::{self, Versioned};
use super::call::{Call, byway_call};
use super::callbacks::{self, Callbacks, Set};
use super::dns::failure;
use super::engine::{self, byway_engine};
use super::error::byway_error;
use super::guard::{Fail, call, call_bare, call_or, call_quiet};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::proxy::{byway_proxy, kind_of};
use super::route::{self, byway_route};
use super::status::byway_status;
use crate::engine::Engine;
use crate::engine::routes::dns::Serving;
use crate::engine::routes::proxies::{Choosing, HostProxies, ProxySource};
use crate::engine::routes::request::{ProxyAnswer, ProxyRequest};
use crate::error::{Error, Status};
use crate::net::proxy::ProxySpec;
use crate::net::selector::MAX_PROXIES;
use crate::net::{Address, Compat, Failure, Listed, Proxy, ProxyKind, Route};
use crate::sys::resolve::interface_index;
use crate::sys::slab::Shared;
use core::ffi::{c_char, c_void};
use std::sync::{Arc, Weak};

/// Who chooses proxies for an address. Shared.
pub struct byway_proxy_selector {
    _private: [u8; 0],
}

handle!(byway_proxy_selector, ProxySelectorHandle, 7, false);

/// The proxy selector.
pub(crate) struct ProxySelectorHandle(pub(crate) Arc<ProxySource>, Weak<Engine>);

/// A proxy selector, unless its engine has been shut down or is gone.
pub(super) fn open<'a>(
    pointer: *const byway_proxy_selector,
    name: &'static str,
) -> Result<&'a Arc<ProxySource>, Fail> {
    let ProxySelectorHandle(source, engine) = handle::shared(pointer, name)?;
    engine.upgrade().ok_or(Status::E_SHUTDOWN)?.check_open()?;
    Ok(source)
}

/// A new handle of a proxy selector that belongs to this engine.
pub(super) fn hand_out(source: Arc<ProxySource>, engine: Weak<Engine>) -> *mut byway_proxy_selector {
    handle::hand_out(ProxySelectorHandle(source, engine))
}

/// One question to a proxy selector, and where its answer goes. Shared; the callback borrows it, and retains it to
/// answer later.
pub struct byway_proxy_request {
    _private: [u8; 0],
}

handle!(byway_proxy_request, ProxyRequest, 8, false);

/// A host's proxy selector.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_proxy_selector_callbacks {
    /// `sizeof(byway_proxy_selector_callbacks)`.
    pub struct_size: usize,
    /// First argument of every function.
    pub user_data: *mut c_void,
    /// Runs once when the set is no longer in use. May be NULL.
    pub destroy: callbacks::byway_destroy,
    /// Asks for the proxies of an address, for every host. Put them into `request` in order and return `BYWAY_OK`; or
    /// retain `request`, return `BYWAY_PENDING` and answer from any thread later; or `BYWAY_PASS` for the engine's
    /// default proxy selector, else DIRECT; or an error. DIRECT is said, not implied: `BYWAY_OK` with nothing added is
    /// `BYWAY_E_EMPTY_ANSWER` unless the engine says `BYWAY_ROUTING_EMPTY_IS_DIRECT`.
    pub select: Option<
        unsafe extern "C-unwind" fn(
            user_data: *mut c_void,
            request: *mut byway_proxy_request,
            uri: *const c_char,
            uri_len: usize,
            call: *const byway_call,
        ) -> byway_status,
    >,
    /// A proxy that this selector chose failed; `failure` is a `BYWAY_FAILURE_*`. May be NULL.
    pub connect_failed: Option<
        unsafe extern "C-unwind" fn(
            user_data: *mut c_void,
            uri: *const c_char,
            uri_len: usize,
            route: *const byway_route,
            failure: i32,
            os_errno: i32,
            call: *const byway_call,
        ),
    >,
    /// Nobody waits for this request any more; a late answer is harmless. May be NULL.
    pub on_cancel: Option<unsafe extern "C-unwind" fn(user_data: *mut c_void, request_id: u64)>,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_proxy_selector_callbacks {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_proxy_selector_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
        select: None,
        connect_failed: None,
        on_cancel: None,
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_proxy_selector_callbacks {}

pub(super) const LAYOUTS: &[Layout] = &[layout!(byway_proxy_selector_callbacks {
    struct_size,
    user_data,
    destroy,
    select,
    connect_failed,
    on_cancel,
})];

/// The host's functions as the engine sees them.
struct HostSet(Arc<Set<byway_proxy_selector_callbacks>>);

fn context(serving: &Serving) -> Call<'_> {
    Call::lasting(serving.engine, serving.tag, serving.id, serving.left)
}

impl HostProxies for HostSet {
    fn select(&self, request: &Shared<ProxyRequest>, address: &Address, serving: &Serving) -> Status {
        let Some(select) = self.0.raw().select else { return Status::PASS };
        let (context, uri) = (context(serving), address.c_uri());
        let request = request.cell().as_ptr().cast();
        // SAFETY: the host gave this function for this pointer; the arguments live until it returns, and `uri` ends in
        // NUL.
        Status(unsafe {
            select(self.0.user_data(), request, uri.as_ptr().cast(), uri.len() - 1, context.as_ptr())
        })
    }

    fn connect_failed(&self, route: &Route, failure: Failure, os_errno: i32, serving: &Serving) {
        let Some(connect_failed) = self.0.raw().connect_failed else { return };
        let (context, uri) = (context(serving), route.address().c_uri());
        let lent = route::hand_out(route.clone(), None);
        // SAFETY: as in `select`.
        unsafe {
            let uri_data = uri.as_ptr().cast();
            let failure = failure as i32;
            connect_failed(
                self.0.user_data(),
                uri_data,
                uri.len() - 1,
                lent,
                failure,
                os_errno,
                context.as_ptr(),
            );
        }
        handle::release(lent);
    }

    fn canceled(&self, request: u64) {
        if let Some(on_cancel) = self.0.raw().on_cancel {
            // SAFETY: the host gave this function for this pointer.
            unsafe { on_cancel(self.0.user_data(), request) };
        }
    }
}

/// Makes a proxy selector from callbacks.
///
/// Ownership: the caller owns one reference. `callbacks->destroy` runs when the last user is gone, also when this fails.
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_NULL` without `select`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new(
    engine: *mut byway_engine,
    callbacks: *const byway_proxy_selector_callbacks,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let (engine, set) = Set::register(callbacks, engine, "callbacks")?;
        if set.raw().select.is_none() {
            return Err(Fail::Parameter(Status::E_NULL, "callbacks.select"));
        }
        let host: Arc<dyn HostProxies> = Arc::new(HostSet(set));
        *out = made(Choosing::Host(host), &engine);
        Ok(Status::OK)
    })
}

fn made(kind: Choosing, engine: &Arc<Engine>) -> *mut byway_proxy_selector {
    hand_out(ProxySource::new(kind), Arc::downgrade(engine))
}

/// Makes the proxy selector that always says DIRECT. All of them are equal.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_direct(
    engine: *mut byway_engine,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(engine, "engine")?;
        *out = made(Choosing::Direct, engine);
        Ok(Status::OK)
    })
}

/// Makes a proxy selector that always gives this list, in its order. A NULL entry is DIRECT.
///
/// Ownership: the caller owns one reference; the proxies are retained.
/// Errors: `BYWAY_E_EMPTY_ANSWER` for an empty list, `BYWAY_E_LIMIT`, `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_fixed(
    engine: *mut byway_engine,
    proxies: *const *const byway_proxy,
    n: usize,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(engine, "engine")?;
        let given = arguments::array(proxies, n, "proxies")?;
        if given.is_empty() {
            return Err(Fail::Parameter(Status::E_EMPTY_ANSWER, "proxies"));
        }
        if given.len() > MAX_PROXIES {
            return Err(Fail::Parameter(Status::E_LIMIT, "proxies"));
        }
        let mut list = Vec::with_capacity(given.len());
        for &proxy in given {
            list.push(match handle::optional(proxy, "proxies")? {
                Some(proxy) => Listed::Proxy(Arc::clone(&proxy.0)),
                None => Listed::Direct,
            });
        }
        *out = made(Choosing::Fixed(list), engine);
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live proxy selector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_retain(
    self_: *mut byway_proxy_selector,
) -> *mut byway_proxy_selector {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. NULL is fine. Addresses that use the proxy selector keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_release(self_: *mut byway_proxy_selector) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}

/// Number of the request, as `on_cancel` names it; 0 for what is not a live one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_id(self_: *const byway_proxy_request) -> u64 {
    call_bare(0, || Ok(handle::shared(self_, "self")?.id()))
}

/// 1 when nobody waits for the answer any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_is_canceled(self_: *const byway_proxy_request) -> i32 {
    call_bare(1, || Ok(i32::from(handle::shared(self_, "self")?.is_canceled())))
}

fn add(request: &ProxyRequest, listed: Listed) -> Result<Status, Fail> {
    request.add(|answer: &mut ProxyAnswer| {
        if answer.list.len() >= MAX_PROXIES {
            return Err(Status::E_LIMIT);
        }
        answer.list.push(listed);
        Ok(())
    })?;
    Ok(Status::OK)
}

/// Adds a proxy to the list. A port outside 1..65535 is taken: that entry fails when its turn comes, with an event, and
/// the next one serves. Everything else that is wrong is an error here, naming the entry's index.
///
/// Threads: any; runs no host code.
/// Errors: `BYWAY_E_ENUM`, `BYWAY_E_INVALID_HOST`, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT`, `BYWAY_E_STATE` after the answer,
/// `BYWAY_E_CANCELED` (harmless) when nobody waits any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_add(
    self_: *mut byway_proxy_request,
    kind: i32,
    host: *const c_char,
    len: usize,
    port: i32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let request = handle::shared(self_, "self")?;
        let spec = ProxySpec {
            kind: kind_of(kind, "kind")?,
            host: arguments::text(host, len, "host")?,
            resolved: None,
            port: i64::from(port),
            user: None,
            password: None,
        };
        if spec.kind == ProxyKind::Direct {
            return add(request, Listed::Direct);
        }
        let proxy = Proxy::listed(spec, Compat::Byway, &interface_index).map_err(|error| {
            let index = request.read(|answer, _| answer.list.len());
            Error::new(error.status(), format!("proxy {index} of the list: {}", error.message()))
                .subject(error.about())
                .source(error.found_by())
        })?;
        add(request, Listed::Proxy(Arc::new(proxy)))
    })
}

/// Adds a proxy made before, with its credentials. NULL is an error: DIRECT is `byway_proxy_request_add_direct`.
///
/// Errors: `BYWAY_E_NULL`, `BYWAY_E_BAD_HANDLE`; else as `byway_proxy_request_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_add_proxy(
    self_: *mut byway_proxy_request,
    proxy: *const byway_proxy,
) -> byway_status {
    call_quiet(|| {
        let request = handle::shared(self_, "self")?;
        if proxy.is_null() {
            return Err(Fail::Parameter(Status::E_NULL, "proxy"));
        }
        add(request, Listed::Proxy(Arc::clone(&handle::shared(proxy, "proxy")?.0)))
    })
}

/// Adds DIRECT.
///
/// Errors: as `byway_proxy_request_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_add_direct(self_: *mut byway_proxy_request) -> byway_status {
    call_quiet(|| add(handle::shared(self_, "self")?, Listed::Direct))
}

/// The list is complete. The first end wins; a callback that returns `BYWAY_OK` has finished.
///
/// Errors: `BYWAY_E_STATE`, `BYWAY_E_CANCELED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_finish(self_: *mut byway_proxy_request) -> byway_status {
    call_quiet(|| {
        handle::shared(self_, "self")?.finish(Ok(()))?;
        Ok(Status::OK)
    })
}

/// No proxies can be named: `status` is a `BYWAY_E_*`; `host_code` and the message go into the error. What it means is
/// the engine's `on_proxy_selector_error`.
///
/// Errors: `BYWAY_E_STATE`, `BYWAY_E_CANCELED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_fail(
    self_: *mut byway_proxy_request,
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

/// One more reference, to answer after the callback has returned; returns its argument, NULL for what is not a live request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_retain(
    self_: *mut byway_proxy_request,
) -> *mut byway_proxy_request {
    call_or(core::ptr::null_mut(), || {
        let retained = handle::retain(self_)?;
        handle::shared(self_, "self")?.add_answerer();
        Ok(retained)
    })
}

/// One reference less. When the last one goes and the question is unanswered, it fails with `BYWAY_E_ABANDONED`. NULL is
/// fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_request_release(self_: *mut byway_proxy_request) {
    call_or((), || {
        if let Ok(request) = handle::shared(self_, "self") {
            request.drop_answerer();
        }
        handle::release(self_);
        Ok(())
    });
}
