//! `byway_listener`: who hears of events.

use super::address::{byway_ip, ip_out};
use super::arguments::{self, Versioned, byway_str};
use super::callbacks::{self, Callbacks, Set};
use super::engine::byway_engine;
use super::error::{self, byway_error};
use super::guard::{Fail, call, call_or};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::proxy::{self, byway_proxy};
use super::queue::byway_queue;
use super::route::{self, byway_route};
use super::status::byway_status;
use crate::engine::Engine;
use crate::engine::routes::listen::{Listener, Notice};
use crate::error::Status;
use crate::net::{Event, Listed};
use crate::runtime::queue::Queue;
use core::ffi::c_void;
use std::sync::{Arc, Weak};

/// Somebody who hears of events until it is removed or released. Shared.
pub struct byway_listener {
    _private: [u8; 0],
}

handle!(byway_listener, ListenerHandle, 4, false);

/// The registration; ends with the last reference.
pub(crate) struct ListenerHandle {
    engine: Weak<Engine>,
    id: u64,
}

impl ListenerHandle {
    fn remove(&self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.listeners().remove(self.id);
        }
    }
}

impl Drop for ListenerHandle {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The proxies for an address are being looked for; `subject` is the URI.
pub const BYWAY_EVENT_PROXY_SELECT_START: i32 = 0;
/// They are known (`proxies`), or the proxy selector failed (`error`).
pub const BYWAY_EVENT_PROXY_SELECT_END: i32 = 1;
/// A name is asked for; `subject` is the name. Also one that a proxy script wants to know: then between the start and the
/// end of the selection of proxies.
pub const BYWAY_EVENT_DNS_START: i32 = 2;
/// It is answered (`ips`, in the resolver's order), or the lookup failed (`error`).
pub const BYWAY_EVENT_DNS_END: i32 = 3;
/// An attempt begins; `route`.
pub const BYWAY_EVENT_CONNECT_START: i32 = 4;
/// A connection is up; `route`.
pub const BYWAY_EVENT_CONNECT_END: i32 = 5;
/// An attempt failed (`route`, `error`), or a whole entry of the proxy list cannot be tried (`proxies` has it, `error`).
pub const BYWAY_EVENT_CONNECT_FAILED: i32 = 6;
/// An attempt was called off, by a lost race or by the host; `route`.
pub const BYWAY_EVENT_CONNECT_CANCELED: i32 = 7;
/// A route goes behind the others because it failed before; `route`.
pub const BYWAY_EVENT_ROUTE_POSTPONED: i32 = 8;
/// The address filter refuses a route; `route`.
pub const BYWAY_EVENT_ROUTE_FILTERED: i32 = 9;
/// A proxy failed and a later entry of its list worked: it is tried last for a while; `proxies` has it.
pub const BYWAY_EVENT_PROXY_MARKED_BAD: i32 = 10;
/// That time is over, the proxy is back in its place; `proxies` has it. Told when a list with it is asked for.
pub const BYWAY_EVENT_PROXY_REINSTATED: i32 = 11;
/// A rule was set or removed, or its text refused (`error`); `subject` is its key, for one in a file its URL. Comes
/// through the listener's queue, only the newest of a key.
pub const BYWAY_EVENT_RULE: i32 = 32;
/// A chain wants other rules than before, see `byway_chain_keys`; `subject` is its consumer URL. Comes through the
/// listener's queue.
pub const BYWAY_EVENT_CHAIN_KEYS: i32 = 33;
/// A script rule in force failed while it routed a call, whose list stayed as it was: `error` with line and column of the
/// script, `subject` is the rule's key or URL. Comes through the listener's queue, only the newest of a rule.
pub const BYWAY_EVENT_RULE_FAILED: i32 = 34;

/// One event. What does not belong to its kind is empty. Everything is borrowed until the callback returns;
/// `byway_route_retain` keeps the route.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_event {
    /// `sizeof(byway_event)` of the library; grows at the end.
    pub struct_size: usize,
    /// The host's number of the operation.
    pub tag: u64,
    /// The selector's number; 0 for what a proxy script asks on behalf of `byway_engine_proxies_for_url`.
    pub selector_id: u64,
    /// Monotonic time in nanoseconds.
    pub time_ns: u64,
    /// `BYWAY_EVENT_*`.
    pub kind: i32,
    /// `BYWAY_OK`, or why it failed.
    pub status: byway_status,
    /// URI or name.
    pub subject: byway_str,
    /// The route, or NULL.
    pub route: *const byway_route,
    /// Proxies; a NULL entry is DIRECT.
    pub proxies: *const *const byway_proxy,
    /// Number of proxies.
    pub proxies_len: usize,
    /// Addresses.
    pub ips: *const byway_ip,
    /// Number of addresses.
    pub ips_len: usize,
    /// The whole error, or NULL.
    pub error: *const byway_error,
}

/// A listener's callbacks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_listener_callbacks {
    /// `sizeof(byway_listener_callbacks)`.
    pub struct_size: usize,
    /// First argument of every function.
    pub user_data: *mut c_void,
    /// Runs once when the listener is gone. May be NULL.
    pub destroy: callbacks::byway_destroy,
    /// Bits `1 << BYWAY_EVENT_*` of the kinds to be told of. Nothing is built for others.
    pub mask: u64,
    /// One event, on the thread that drives the operation (rules and chains: on the one that polls `queue`, or with
    /// `BYWAY_CALLBACKS_ANY_THREAD` on byway's own), with no lock held.
    pub on_event: Option<unsafe extern "C-unwind" fn(user_data: *mut c_void, event: *const byway_event)>,
    /// Whose poll tells of rules and chains; NULL: that of the engine's queue. Retained. Events of an operation always
    /// come on the thread that drives it.
    pub queue: *mut byway_queue,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_listener_callbacks {
    const FIRST_SIZE: usize = core::mem::offset_of!(Self, queue);
    const INIT: Self = byway_listener_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
        mask: u64::MAX,
        on_event: None,
        queue: core::ptr::null_mut(),
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_listener_callbacks {}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_event {
        struct_size,
        tag,
        selector_id,
        time_ns,
        kind,
        status,
        subject,
        route,
        proxies,
        proxies_len,
        ips,
        ips_len,
        error,
    }),
    layout!(byway_listener_callbacks { struct_size, user_data, destroy, mask, on_event, queue }),
];

struct HostSet {
    set: Arc<Set<byway_listener_callbacks>>,
    engine: Weak<Engine>,
    queue: Option<Arc<Queue>>,
}

impl Listener for HostSet {
    fn mask(&self) -> u64 {
        self.set.raw().mask
    }

    fn queue(&self) -> Option<&Arc<Queue>> {
        self.queue.as_ref()
    }

    fn notice(&self, notice: &Notice) {
        let (Some(on_event), Some(engine)) = (self.set.raw().on_event, self.engine.upgrade()) else { return };
        let subject = format!("{}\0", notice.subject);
        let error =
            notice.error.as_ref().map_or(core::ptr::null_mut(), |error| error::hand_out(error.clone()));
        let record = byway_event {
            struct_size: size_of::<byway_event>(),
            tag: 0,
            selector_id: 0,
            time_ns: engine.clock().monotonic_ns(),
            kind: notice.kind as i32,
            status: notice.error.as_ref().map_or(0, |error| error.status().0),
            subject: byway_str { data: subject.as_ptr().cast(), len: subject.len() - 1 },
            route: core::ptr::null(),
            proxies: core::ptr::null(),
            proxies_len: 0,
            ips: core::ptr::null(),
            ips_len: 0,
            error,
        };
        // SAFETY: the host gave this function for this pointer; the record and what it shows live until it returns.
        let _ = engine.host_call(0, || unsafe { on_event(self.set.user_data(), &raw const record) });
        handle::free(error);
    }

    fn event(&self, event: &Event<'_>, tag: u64) {
        let (Some(on_event), Some(engine)) = (self.set.raw().on_event, self.engine.upgrade()) else { return };
        let mut subject = event.subject.to_owned();
        subject.push('\0');
        let list: Vec<*mut byway_proxy> = event
            .proxies
            .iter()
            .map(|listed| match listed {
                Listed::Proxy(proxy) => proxy::hand_out(Arc::clone(proxy)),
                Listed::Direct | Listed::Null => core::ptr::null_mut(),
            })
            .chain(event.proxy.map(|proxy| proxy::hand_out(Arc::clone(proxy))))
            .collect();
        let ips: Vec<byway_ip> = event.ips.iter().map(|&ip| ip_out(ip)).collect();
        let route =
            event.route.map_or(core::ptr::null_mut(), |route| route::hand_out(route.to_route(), None));
        let error = event.error.map_or(core::ptr::null_mut(), |error| error::hand_out(error.clone()));
        let record = byway_event {
            struct_size: size_of::<byway_event>(),
            tag,
            selector_id: event.selector,
            time_ns: engine.clock().monotonic_ns(),
            kind: event.kind as i32,
            status: event.error.map_or(0, |error| error.status().0),
            subject: byway_str { data: subject.as_ptr().cast(), len: subject.len() - 1 },
            route,
            proxies: list.as_ptr().cast(),
            proxies_len: list.len(),
            ips: ips.as_ptr(),
            ips_len: ips.len(),
            error,
        };
        // SAFETY: the host gave this function for this pointer; the record and what it shows live until it returns.
        let _ = engine.host_call(0, || unsafe { on_event(self.set.user_data(), &raw const record) });
        for proxy in list {
            handle::release(proxy);
        }
        handle::release(route);
        handle::free(error);
    }
}

/// Adds a listener to an engine. It hears of operations that begin after this call, at the latest.
///
/// Ownership: the caller owns one reference; the last release removes the listener. `callbacks->destroy` runs when it is
/// gone, also when this fails.
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_NULL` without `on_event`, `BYWAY_E_BAD_HANDLE` also for `callbacks.queue`,
/// `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_add_listener(
    self_: *mut byway_engine,
    callbacks: *const byway_listener_callbacks,
    out: *mut *mut byway_listener,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let (engine, set) = Set::register(callbacks, self_, "callbacks")?;
        if set.raw().on_event.is_none() {
            return Err(Fail::Parameter(Status::E_NULL, "callbacks.on_event"));
        }
        let queue = handle::optional(set.raw().queue, "callbacks.queue")?.map(|queue| Arc::clone(&queue.0));
        let id = engine.next_id();
        let listener: Arc<dyn Listener> = Arc::new(HostSet { set, engine: Arc::downgrade(&engine), queue });
        engine.listeners().add(id, &listener);
        *out = handle::hand_out(ListenerHandle { engine: Arc::downgrade(&engine), id });
        Ok(Status::OK)
    })
}

/// Ends a listener before its last release. An event that is being delivered on another thread still arrives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_listener_remove(self_: *mut byway_listener) {
    call_or((), || {
        handle::shared(self_, "self")?.remove();
        Ok(())
    });
}

/// One more reference; returns its argument, NULL for what is not a live listener.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_listener_retain(self_: *mut byway_listener) -> *mut byway_listener {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less; the last one removes the listener. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_listener_release(self_: *mut byway_listener) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}
