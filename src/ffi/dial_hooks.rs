//! Host code a dial calls: `byway_dial_callbacks`.

use super::arguments::{Versioned, byway_str};
use super::call::{Call, byway_call};
use super::callbacks::{self, Callbacks, Set};
use super::dial::byway_dial;
use super::handle;
use super::library::{Layout, layout};
use super::route::{self, byway_route};
use super::status::byway_status;
use crate::dial::{Authenticator, Decision, Hooks};
use crate::engine::Engine;
use crate::engine::routes::dialing::DialRoute;
use crate::error::Status;
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::os::fd::RawFd;
use std::sync::Arc;

/// Host code a dial calls on the thread that steps it. Every function may be NULL: built in.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_dial_callbacks {
    /// `sizeof(byway_dial_callbacks)`.
    pub struct_size: usize,
    /// First argument of every function.
    pub user_data: *mut c_void,
    /// Runs once when the set is no longer in use. May be NULL.
    pub destroy: callbacks::byway_destroy,
    /// Opens a stream socket of this family and protocol, for example one that a VPN service protects. `BYWAY_PASS`:
    /// open it as usual. An error skips the route. byway makes the socket non-blocking.
    pub open_socket: Option<
        unsafe extern "C-unwind" fn(
            user_data: *mut c_void,
            family: i32,
            protocol: i32,
            route: *const byway_route,
            fd: *mut i32,
            call: *const byway_call,
        ) -> byway_status,
    >,
    /// Sets further options before `connect(2)`. An error skips the route.
    pub configure: Option<
        unsafe extern "C-unwind" fn(
            user_data: *mut c_void,
            fd: i32,
            route: *const byway_route,
            call: *const byway_call,
        ) -> byway_status,
    >,
    /// Closes a socket. `BYWAY_PASS`: close it as usual.
    pub close_socket: Option<
        unsafe extern "C-unwind" fn(user_data: *mut c_void, fd: i32, call: *const byway_call) -> byway_status,
    >,
    /// Credentials for the challenges of an HTTP proxy (values of `Proxy-Authenticate`; none before the first request).
    /// `BYWAY_OK`: `byway_dial_authenticate` was called with them. `BYWAY_PENDING`: it will be, from any thread; the
    /// attempt waits, the race goes on. `BYWAY_PASS` or an error: there are none, the attempt ends.
    pub proxy_auth: Option<
        unsafe extern "C-unwind" fn(
            user_data: *mut c_void,
            dial: *mut byway_dial,
            attempt: u32,
            route: *const byway_route,
            challenges: *const byway_str,
            count: usize,
            call: *const byway_call,
        ) -> byway_status,
    >,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_dial_callbacks {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_dial_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
        open_socket: None,
        configure: None,
        close_socket: None,
        proxy_auth: None,
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_dial_callbacks {}

pub(super) const LAYOUTS: &[Layout] = &[layout!(byway_dial_callbacks {
    struct_size,
    user_data,
    destroy,
    open_socket,
    configure,
    close_socket,
    proxy_auth,
})];

/// The host's hooks as an operation calls them.
pub(super) struct HostHooks {
    pub(super) set: Arc<Set<byway_dial_callbacks>>,
    pub(super) engine: Arc<Engine>,
    pub(super) tag: u64,
    /// Address of the dial's handle.
    pub(super) object: Arc<AtomicUsize>,
    pub(super) authenticator: Authenticator,
}

/// A route's handle for the time of one callback.
struct Lent(*mut byway_route);

impl Lent {
    fn new(route: &DialRoute) -> Lent {
        Lent(route::hand_out(route.route.clone(), route.source.clone()))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        handle::release(self.0);
    }
}

impl HostHooks {
    /// Runs one of them; what an engine that shuts down does not run is an error.
    fn run(&self, body: impl FnOnce(*mut c_void, *const byway_call) -> byway_status) -> Status {
        let object = self.object.load(Ordering::Relaxed);
        let call = Call::new(self.engine.handle(), self.tag, 0, None);
        let status = self.engine.host_call(object, || body(self.set.user_data(), call.as_ptr()));
        status.map_or_else(|status| status, Status)
    }

    /// What a refused route shows as its errno: positive numbers a host gives are taken for one.
    fn refused(status: Status) -> i32 {
        status.0.max(0)
    }
}

impl Hooks<DialRoute> for HostHooks {
    fn open_socket(&mut self, family: i32, protocol: i32, route: &DialRoute) -> Result<Option<RawFd>, i32> {
        let Some(open) = self.set.raw().open_socket else { return Ok(None) };
        let lent = Lent::new(route);
        let mut fd = -1;
        // SAFETY: the host's function with the arguments it is declared with.
        let status =
            self.run(|data, call| unsafe { open(data, family, protocol, lent.0, &raw mut fd, call) });
        match status {
            Status::OK => Ok(Some(fd)),
            Status::PASS => Ok(None),
            other => Err(Self::refused(other)),
        }
    }

    fn configure(&mut self, fd: RawFd, route: &DialRoute) -> Result<(), i32> {
        let Some(configure) = self.set.raw().configure else { return Ok(()) };
        let lent = Lent::new(route);
        // SAFETY: as above.
        match self.run(|data, call| unsafe { configure(data, fd, lent.0, call) }) {
            Status::OK | Status::PASS => Ok(()),
            other => Err(Self::refused(other)),
        }
    }

    fn close_socket(&mut self, fd: RawFd) -> bool {
        let Some(close) = self.set.raw().close_socket else { return false };
        // SAFETY: as above.
        self.run(|data, call| unsafe { close(data, fd, call) }) == Status::OK
    }

    fn proxy_auth(&mut self, attempt: u32, route: &DialRoute, challenges: &[String]) -> Decision {
        let Some(ask) = self.set.raw().proxy_auth else { return Decision::GiveUp };
        let lent = Lent::new(route);
        let dial = self.object.load(Ordering::Relaxed) as *mut byway_dial;
        let texts: Vec<String> =
            challenges.iter().map(|text| format!("{}\0", text.replace('\0', " "))).collect();
        let shown: Vec<byway_str> = texts
            .iter()
            .map(|text| byway_str { data: text.as_ptr().cast::<c_char>(), len: text.len() - 1 })
            .collect();
        let status = self.run(|data, call| {
            // SAFETY: as above; the array lives until the callback has returned.
            unsafe { ask(data, dial, attempt, lent.0, shown.as_ptr(), shown.len(), call) }
        });
        match status {
            Status::PENDING => Decision::Later,
            Status::OK => match self.authenticator.take(attempt) {
                Some(Some(value)) => Decision::Answer(value),
                _ => Decision::GiveUp,
            },
            _ => Decision::GiveUp,
        }
    }
}
