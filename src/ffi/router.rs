//! `byway_router`: a host's own router.

use super::arguments::{self, Versioned, byway_str};
use super::call::{Call, byway_call};
use super::callbacks::{self, Callbacks, Set};
use super::engine::byway_engine;
use super::error::byway_error;
use super::guard::{Fail, call, call_or, status_bare};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::status::{BYWAY_OK, BYWAY_PASS, byway_status};
use crate::chain::bits::Rows;
use crate::chain::invocation::Invocation;
use crate::chain::router::{Request, Router, RouterSlot, SlotBody, Verdict};
use crate::error::{Error, Source, Status};
use core::ffi::{c_char, c_void};
use std::sync::Arc;

/// A host's own router. A chain asks it for every call, after the routers of smaller priority.
pub struct byway_router {
    _private: [u8; 0],
}

handle!(byway_router, RouterHandle, 21, false);

/// The router and its place.
pub(crate) struct RouterHandle {
    pub(crate) slot: RouterSlot,
}

/// Every chain made from now on has the router, unless its `router=` takes it away (`-name`, `-default`).
pub const BYWAY_ROUTER_EVERY_CHAIN: u32 = 1;
/// Every chain made from now on has the router if its `router=` names it.
pub const BYWAY_ROUTER_BY_NAME: u32 = 2;

/// One question to a host's router. Only valid until the callback returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_router_request {
    /// `sizeof(byway_router_request)` of the library.
    pub struct_size: usize,
    /// Tags of the providers that came in, in list order. NULL when there are none.
    pub tags: *const u64,
    /// How many.
    pub count: usize,
    /// Where to write which of them stay: `keep[i]` 1 = `tags[i]` stays, 0 = it goes. All 0 on entry.
    pub keep: *mut u8,
    /// Method that is meant.
    pub method: byway_str,
    /// The call, for the `byway_router_request_*` functions. Opaque.
    pub context: *const c_void,
    /// 1 when an explanation is made: nothing is sent anywhere with the answer, and no counter should move.
    pub explaining: i32,
    /// 0.
    pub reserved: i32,
}

/// A host's router.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_router_callbacks {
    /// `sizeof(byway_router_callbacks)`.
    pub struct_size: usize,
    /// First argument of the functions.
    pub user_data: *mut c_void,
    /// Runs once when the set is no longer in use. May be NULL.
    pub destroy: callbacks::byway_destroy,
    /// Decides which providers stay. `BYWAY_OK`: those marked in `request->keep`, possibly none. `BYWAY_PASS`: all.
    /// Negative: the route call fails with it. Runs on the routing thread and must not block.
    pub route: Option<
        unsafe extern "C-unwind" fn(
            user_data: *mut c_void,
            request: *const byway_router_request,
            call: *const byway_call,
        ) -> byway_status,
    >,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_router_callbacks {
    const FIRST_SIZE: usize = 32;
    const INIT: Self = byway_router_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
        route: None,
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_router_callbacks {}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_router_request { struct_size, tags, count, keep, method, context, explaining, reserved }),
    layout!(byway_router_callbacks { struct_size, user_data, destroy, route }),
];

/// The host's functions as the chain sees them.
struct HostRouter {
    name: Arc<str>,
    set: Arc<Set<byway_router_callbacks>>,
}

impl Router for HostRouter {
    fn route(&self, request: &mut Request<'_>) -> crate::error::Result<Verdict> {
        let Some(route) = self.set.raw().route else { return Ok(Verdict::Pass) };
        let engine = self.set.engine().ok_or(Status::E_SHUTDOWN)?;
        let rows: Vec<u32> = match request.rows {
            Rows::List(list) => list.to_vec(),
            rows => rows.iter().map(|row| row as u32).collect(),
        };
        let tags: Vec<u64> =
            rows.iter().map(|row| request.invokers.tag(*row as usize).unwrap_or_default()).collect();
        let mut keep = vec![0_u8; rows.len()];
        let method = request.call.effective_method();
        let asked = byway_router_request {
            struct_size: size_of::<byway_router_request>(),
            tags: if tags.is_empty() { core::ptr::null() } else { tags.as_ptr() },
            count: tags.len(),
            keep: keep.as_mut_ptr(),
            method: byway_str { data: method.as_ptr().cast(), len: method.len() },
            context: core::ptr::from_ref(request.call).cast(),
            explaining: i32::from(request.explaining),
            reserved: 0,
        };
        let context = Call::new(engine.handle(), 0, 0, None);
        let user_data = self.set.user_data();
        let status = engine.host_call(core::ptr::from_ref(self).addr(), || {
            // SAFETY: the host gave this function for this user_data; the request and its arrays live until it
            // returns.
            unsafe { route(user_data, &raw const asked, context.as_ptr()) }
        })?;
        match status {
            BYWAY_PASS => Ok(Verdict::Pass),
            BYWAY_OK => {
                for (row, kept) in rows.iter().zip(&keep) {
                    if *kept != 0 {
                        request.keep(*row as usize);
                    }
                }
                Ok(Verdict::Kept)
            }
            status => {
                let known = status < 0 && Status::ALL.iter().any(|(known, ..)| known.0 == status);
                let (code, host_code) = if known { (Status(status), 0) } else { (Status::E_HOST, status) };
                let message = format!("the router answered {status}");
                let error = Error::new(code, message).source(Source::Callback).host(i64::from(host_code));
                Err(error.subject(format!("router {}", self.name)))
            }
        }
    }
}

/// Makes a router. `name` is what `router=` lists, explanations and errors call it; routers run in ascending
/// `priority`, equal ones in the order they were added. `flags`: 0 (only chains it is added to),
/// `BYWAY_ROUTER_EVERY_CHAIN` or `BYWAY_ROUTER_BY_NAME`, for as long as the handle lives.
///
/// Ownership: the caller owns one reference; chains that use it keep it. The set is taken over, also when the call
/// fails.
/// Errors: `BYWAY_E_ARGUMENT` for an unusable name, `BYWAY_E_DUPLICATE` for a taken one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_router_new(
    engine: *mut byway_engine,
    name: *const c_char,
    name_len: usize,
    priority: i64,
    flags: u32,
    callbacks: *const byway_router_callbacks,
    out: *mut *mut byway_router,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let (engine, set) = Set::register(callbacks, engine, "callbacks")?;
        if set.raw().route.is_none() {
            return Err(Fail::Parameter(Status::E_NULL, "callbacks.route"));
        }
        let name = arguments::text(name, name_len, "name")?;
        let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty()
            || name.len() > 128
            || name.starts_with('-')
            || name == "default"
            || !name.chars().all(usable)
        {
            let expected = "a name has 1 to 128 letters, digits, '_', '-' and '.', does not start with '-' and is not 'default'";
            return Err(Error::new(Status::E_ARGUMENT, expected).subject("name").into());
        }
        let router: Arc<dyn Router> = Arc::new(HostRouter { name: name.into(), set });
        let mut slot = RouterSlot::new(name, priority, SlotBody::Foreign(Arc::clone(&router)));
        slot.by_default = flags != BYWAY_ROUTER_BY_NAME;
        match flags {
            0 => {}
            BYWAY_ROUTER_EVERY_CHAIN | BYWAY_ROUTER_BY_NAME => engine.routing().register(&slot, &router)?,
            _ => return Err(Fail::Parameter(Status::E_ENUM, "flags")),
        }
        *out = handle::hand_out(RouterHandle { slot });
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live router.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_router_retain(self_: *mut byway_router) -> *mut byway_router {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. Chains that use the router keep it. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_router_release(self_: *mut byway_router) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}

fn asked<'a>(request: *const byway_router_request) -> Result<&'a Invocation<'a>, Fail> {
    // SAFETY: a callback passes on the request it was given, which lives as long as it runs, or NULL.
    let request = unsafe { request.as_ref() }.ok_or(Fail::Parameter(Status::E_NULL, "request"))?;
    // SAFETY: only byway makes requests, and their context is the call.
    unsafe { request.context.cast::<Invocation<'a>>().as_ref() }
        .ok_or(Fail::Parameter(Status::E_NULL, "request"))
}

fn lend(text: &[u8]) -> byway_str {
    byway_str { data: text.as_ptr().cast(), len: text.len() }
}

/// An attachment of the call a router is asked about. The text may lack a NUL behind it.
///
/// Ownership: borrowed, valid until the callback returns.
/// Errors: `BYWAY_E_NOT_FOUND` when the call has no such attachment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_router_request_attachment(
    request: *const byway_router_request,
    key: *const c_char,
    key_len: usize,
    out: *mut byway_str,
) -> byway_status {
    status_bare(|| {
        let out = arguments::out(out, byway_str::EMPTY, "out")?;
        let key = arguments::bytes(key, key_len, "key")?;
        let value = asked(request)?.attachment(key).ok_or(Fail::Parameter(Status::E_NOT_FOUND, "key"))?;
        *out = lend(value);
        Ok(Status::OK)
    })
}

/// An argument of the call a router is asked about, by its text; `{NULL, 0}` for a null argument. The text may lack a
/// NUL behind it.
///
/// Ownership: borrowed, valid until the callback returns.
/// Errors: `BYWAY_E_NOT_FOUND` behind the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_router_request_argument(
    request: *const byway_router_request,
    index: usize,
    out: *mut byway_str,
) -> byway_status {
    status_bare(|| {
        let out = arguments::out(out, byway_str::EMPTY, "out")?;
        let argument = asked(request)?.arguments.get(index);
        let argument = argument.ok_or(Fail::Parameter(Status::E_NOT_FOUND, "index"))?;
        *out = argument.map_or(byway_str::NONE, lend);
        Ok(Status::OK)
    })
}
