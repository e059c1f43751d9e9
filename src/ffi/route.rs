//! `byway_route`: one way to an address.

use super::address::{byway_address, byway_ip, ip_of, ip_out};
use super::arguments::{self, Versioned, byway_str};
use super::error::byway_error;
use super::guard::{self, Fail, call, call_bare, call_or, call_quiet, status_bare};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::proxy::{self, byway_proxy, lend};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::routes::proxies::ProxySource;
use crate::error::{Error, Status};
use crate::net::route::{NoCoalescing, Peer, RouteRef, Target, coalesces, flag};
use crate::net::{Address, Compat, Ip, Proxy, Route};
use core::ffi::c_void;
use std::sync::{Arc, Weak};

/// One way to an address: one TCP destination (the hop) and what the proxy or TLS is told (the target). Immutable; a
/// value that owns what it shows and pins no engine, resolver or callback.
pub struct byway_route {
    _private: [u8; 0],
}

handle!(byway_route, RouteObject, 14, true);

/// A route, and the proxy selector that chose it as long as the host has that.
pub(crate) struct RouteObject {
    pub(crate) route: Route,
    pub(crate) source: Option<Weak<ProxySource>>,
}

/// A handle for `route`, owned by the caller.
pub(crate) fn hand_out(route: Route, source: Option<Weak<ProxySource>>) -> *mut byway_route {
    handle::hand_out(RouteObject { route, source })
}

/// It failed before and was put behind the others.
pub const BYWAY_ROUTE_POSTPONED: u32 = 1;
/// An HTTP proxy must first be asked for a tunnel.
pub const BYWAY_ROUTE_REQUIRES_TUNNEL: u32 = 2;
/// The proxy resolves the target's name; else the target is an address.
pub const BYWAY_ROUTE_TARGET_IS_NAME: u32 = 4;
/// The proxy selector chose the proxy.
pub const BYWAY_ROUTE_FROM_SELECTOR: u32 = 8;
/// The address filter has not seen the target, because the proxy resolves its name.
pub const BYWAY_ROUTE_TARGET_NOT_CHECKED: u32 = 16;
/// HTTPS/SVCB metadata came with the addresses; see `byway_route_service`.
pub const BYWAY_ROUTE_HAS_SERVICE: u32 = 32;

/// A route as a record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_route_record {
    /// What `connect(2)` gets.
    pub hop_ip: byway_ip,
    /// Resolved target behind a SOCKS4 or SOCKS5 proxy; family 0 when the target is the hop or a name.
    pub target_ip: byway_ip,
    /// Port for `connect(2)`.
    pub hop_port: u16,
    /// The target's port.
    pub target_port: u16,
    /// `BYWAY_PROXY_*`.
    pub proxy_kind: i32,
    /// `BYWAY_ROUTE_*`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
    /// The address's canonical host. Borrowed from where the record came from.
    pub host: byway_str,
    /// The proxy's host, `(NULL, 0)` for DIRECT. Borrowed as `host`.
    pub proxy_host: byway_str,
}

pub(super) const RECORD: byway_route_record = byway_route_record {
    hop_ip: byway_ip::NONE,
    target_ip: byway_ip::NONE,
    hop_port: 0,
    target_port: 0,
    proxy_kind: 0,
    flags: 0,
    reserved: 0,
    host: byway_str::NONE,
    proxy_host: byway_str::NONE,
};

/// What the host knows of the peer of a live connection.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_peer {
    /// `sizeof(byway_peer)`.
    pub struct_size: usize,
    /// `BYWAY_PEER_*`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// HTTP/2 or newer: many exchanges at once.
pub const BYWAY_PEER_MULTIPLEXED: u32 = 1;
/// Host names are verified by the default rules, not by the host's own.
pub const BYWAY_PEER_DEFAULT_VERIFICATION: u32 = 2;
/// The certificate covers the wanted host.
pub const BYWAY_PEER_CERTIFICATE_COVERS_HOST: u32 = 4;
/// Pins for the wanted host hold, or there are none.
pub const BYWAY_PEER_PINS_HOLD: u32 = 8;
/// The peer answered 421 to a coalesced request before.
pub const BYWAY_PEER_REFUSED_BEFORE: u32 = 16;

/// Port, TLS, proxy, resolver or protocols differ.
pub const BYWAY_NO_COALESCING_OTHER_ADDRESS: i32 = 1;
/// The connection carries one exchange at a time.
pub const BYWAY_NO_COALESCING_NOT_MULTIPLEXED: i32 = 2;
/// 421 before.
pub const BYWAY_NO_COALESCING_REFUSED_BEFORE: i32 = 3;
/// No DIRECT route of the wanted address has this address and port.
pub const BYWAY_NO_COALESCING_NO_SHARED_IP: i32 = 4;
/// The certificate or its pins do not cover the host.
pub const BYWAY_NO_COALESCING_NOT_VERIFIED: i32 = 5;

// SAFETY: repr(C), size first, plain numbers.
unsafe impl Versioned for byway_peer {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_peer { struct_size: size_of::<Self>(), flags: 0, reserved: 0 };
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_route_record {
        hop_ip,
        target_ip,
        hop_port,
        target_port,
        proxy_kind,
        flags,
        reserved,
        host,
        proxy_host,
    }),
    layout!(byway_peer { struct_size, flags, reserved }),
];

/// What the records of all routes of one address have in common.
#[inline]
pub(super) fn common(address: &Address) -> byway_route_record {
    byway_route_record { target_port: address.port(), host: lend(address.host().c_text()), ..RECORD }
}

/// Flags that a route without a proxy and without metadata can have.
#[inline(always)]
fn bare_flags(own: u8) -> u32 {
    (u32::from(own & flag::POSTPONED != 0) * BYWAY_ROUTE_POSTPONED)
        | (u32::from(own & flag::FROM_SELECTOR != 0) * BYWAY_ROUTE_FROM_SELECTOR)
        | (u32::from(own & flag::NOT_CHECKED != 0) * BYWAY_ROUTE_TARGET_NOT_CHECKED)
}

/// A route as a record; `common` is that of its address. `host` and `proxy_host` are borrowed from the address and its
/// proxies.
fn record(route: &RouteRef<'_>, common: &byway_route_record, with_proxy_host: bool) -> byway_route_record {
    let mut record = *common;
    let (hop, hop_port) = route.hop();
    record.hop_ip = ip_out(hop);
    record.hop_port = hop_port;
    record.flags = bare_flags(route.flags());
    record.flags |= u32::from(route.service().is_some()) * BYWAY_ROUTE_HAS_SERVICE;
    if let Some(proxy) = route.proxy() {
        let target = route.target_ip();
        record.target_ip = ip_out(target);
        record.proxy_kind = route.proxy_kind() as i32;
        if with_proxy_host {
            record.proxy_host = lend(proxy.host().c_text());
        }
        record.flags |= u32::from(route.requires_tunnel()) * BYWAY_ROUTE_REQUIRES_TUNNEL;
        let by_name = !target.is_some() && route.address().host().ip().is_none();
        record.flags |= u32::from(by_name) * BYWAY_ROUTE_TARGET_IS_NAME;
    }
    record
}

/// An array of records that was checked for `cap` elements of `stride` bytes.
#[derive(Clone, Copy)]
pub(super) struct Records {
    pub(super) array: *mut byway_route_record,
    pub(super) stride: usize,
    pub(super) cap: usize,
    /// See [`common`].
    pub(super) common: byway_route_record,
    pub(super) with_proxy_host: bool,
}

impl Records {
    /// Writes record `i`, unless it is beyond the array.
    ///
    /// What most routes are is written where it belongs, in words as wide as they are read; the rest goes a longer way.
    #[inline(always)]
    pub(super) fn write(&self, i: usize, route: &RouteRef<'_>) {
        if i >= self.cap {
            return;
        }
        // SAFETY: `i` is below `cap`, and the host promises that many elements.
        let place = unsafe { self.array.byte_add(i * self.stride) };
        if self.stride != size_of::<byway_route_record>() || !route.is_bare() {
            // A copy for the longer way only: here the route is never put together in memory.
            let whole = *route;
            return self.write_other(place, &whole);
        }
        let (hop, hop_port) = route.hop();
        // SAFETY: as above; the array need not be aligned.
        unsafe {
            place.write_unaligned(self.common);
            (&raw mut (*place).hop_ip).write_unaligned(ip_out(hop));
            (&raw mut (*place).hop_port).write_unaligned(hop_port);
            (&raw mut (*place).flags).write_unaligned(bare_flags(route.flags()));
        }
    }

    #[inline(never)]
    fn write_other(&self, place: *mut byway_route_record, route: &RouteRef<'_>) {
        let record = record(route, &self.common, self.with_proxy_host);
        let _ = arguments::fill(place, self.stride, 1, core::ptr::null_mut(), 1, |_| record);
    }
}

/// Makes a route from its parts, for hosts that keep routes of their own. `proxy` NULL is DIRECT; `hop` NULL is an
/// unresolved hop, as OkHttp's SOCKS routes have. The usual source of routes is `byway_selection_next`.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_INVALID_IP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_new(
    address: *const byway_address,
    proxy: *const byway_proxy,
    hop: *const byway_ip,
    hop_port: u16,
    out: *mut *mut byway_route,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        let address = Arc::clone(&handle::shared(address, "address")?.address);
        let proxy: Option<Arc<Proxy>> = handle::optional(proxy, "proxy")?.map(|proxy| Arc::clone(&proxy.0));
        let hop = if hop.is_null() { Ip::NONE } else { ip_of(hop, "hop")? };
        *out = hand_out(Route::new(address, proxy, (hop, hop_port), Ip::NONE, None), None);
        Ok(Status::OK)
    })
}

/// Fills a `struct sockaddr_in` or `sockaddr_in6` for `connect(2)`, at most `cap` bytes; `*len` gets the size.
///
/// Errors: `BYWAY_E_LIMIT` when `cap` is too small (`*len` says what is needed; `sizeof(struct sockaddr_storage)` is
/// always enough), `BYWAY_E_NO_ROUTE` for an unresolved hop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_sockaddr(
    self_: *const byway_route,
    out: *mut c_void,
    cap: usize,
    len: *mut usize,
) -> byway_status {
    status_bare(|| {
        let len = arguments::out(len, 0, "len")?;
        let (ip, port) = handle::shared(self_, "self")?.route.hop();
        if out.is_null() {
            return Err(Fail::Parameter(Status::E_NULL, "out"));
        }
        let mut write = |bytes: &[u8]| {
            *len = bytes.len();
            if cap < bytes.len() {
                return Err(Fail::Parameter(Status::E_LIMIT, "cap"));
            }
            // SAFETY: the host promises `cap` writable bytes.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), bytes.len()) };
            Ok(Status::OK)
        };
        let b = ip.bytes;
        match ip.family {
            4 => {
                // SAFETY: all-zero is a valid sockaddr_in.
                let mut v4: libc::sockaddr_in = unsafe { core::mem::zeroed() };
                v4.sin_family = libc::AF_INET as libc::sa_family_t;
                v4.sin_port = port.to_be();
                v4.sin_addr.s_addr = u32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
                write(as_bytes(&v4))
            }
            6 => {
                // SAFETY: all-zero is a valid sockaddr_in6.
                let mut v6: libc::sockaddr_in6 = unsafe { core::mem::zeroed() };
                v6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                v6.sin6_port = port.to_be();
                v6.sin6_addr.s6_addr = b;
                v6.sin6_scope_id = ip.scope_id;
                write(as_bytes(&v6))
            }
            _ => Err(Fail::Status(Status::E_NO_ROUTE)),
        }
    })
}

fn as_bytes<T>(value: &T) -> &[u8] {
    // SAFETY: the socket address structs used here are plain bytes without padding that was not zeroed.
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// What `connect(2)` gets. Family 0 for an unresolved hop. `port` may be NULL.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_NULL` without `ip`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_hop(
    self_: *const byway_route,
    ip: *mut byway_ip,
    port: *mut u16,
) -> byway_status {
    status_bare(|| {
        let ip = arguments::out(ip, byway_ip::NONE, "ip")?;
        let port = arguments::out_optional(port, 0);
        let (hop, hop_port) = handle::shared(self_, "self")?.route.hop();
        *ip = ip_out(hop);
        if let Some(port) = port {
            *port = hop_port;
        }
        Ok(Status::OK)
    })
}

/// What the proxy or TLS is told. `name` gets the address's canonical host; `ip` the address of the target where it is
/// one, else family 0 (the proxy resolves the name). `ip` and `port` may be NULL.
///
/// Ownership: `*name` is borrowed, valid until the route goes.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_NULL` without `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_target(
    self_: *const byway_route,
    name: *mut byway_str,
    ip: *mut byway_ip,
    port: *mut u16,
) -> byway_status {
    status_bare(|| {
        let name = arguments::out(name, byway_str::EMPTY, "name")?;
        let (ip, port) = (arguments::out_optional(ip, byway_ip::NONE), arguments::out_optional(port, 0));
        let route = &handle::shared(self_, "self")?.route;
        *name = lend(route.address().host().c_text());
        let (target, target_port) = route.target();
        if let (Some(ip), Target::Ip(target)) = (ip, target) {
            *ip = ip_out(target);
        }
        if let Some(port) = port {
            *port = target_port;
        }
        Ok(Status::OK)
    })
}

/// OkHttp's `socketAddress`: the hop; behind SOCKS the unresolved origin (family 0) and its port.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_NULL` without `ip`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_socket_address(
    self_: *const byway_route,
    ip: *mut byway_ip,
    port: *mut u16,
) -> byway_status {
    status_bare(|| {
        let ip = arguments::out(ip, byway_ip::NONE, "ip")?;
        let port = arguments::out(port, 0, "port")?;
        let (socket, socket_port) = handle::shared(self_, "self")?.route.socket_address();
        *ip = ip_out(socket.unwrap_or(Ip::NONE));
        *port = socket_port;
        Ok(Status::OK)
    })
}

/// The proxy it goes through; NULL for DIRECT.
///
/// Ownership: the caller owns one reference of `*out`.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_proxy(
    self_: *const byway_route,
    out: *mut *mut byway_proxy,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        if let Some(proxy) = handle::shared(self_, "self")?.route.proxy() {
            *out = proxy::hand_out(Arc::clone(proxy));
        }
        Ok(Status::OK)
    })
}

/// `BYWAY_PROXY_*`; -1 for what is not a live route.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_proxy_kind(self_: *const byway_route) -> i32 {
    call_bare(-1, || Ok(handle::shared(self_, "self")?.route.proxy_kind() as i32))
}

/// 1 when an HTTP proxy must first be asked for a tunnel (`CONNECT`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_requires_tunnel(self_: *const byway_route) -> i32 {
    call_bare(0, || Ok(i32::from(handle::shared(self_, "self")?.route.requires_tunnel())))
}

/// `BYWAY_ROUTE_*`; 0 for what is not a live route.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_flags(self_: *const byway_route) -> u32 {
    call_bare(0, || {
        let route = &handle::shared(self_, "self")?.route;
        Ok(record(&route.as_ref(), &RECORD, false).flags)
    })
}

/// HTTPS/SVCB metadata of the name that was resolved: ECH configuration list and port (0 when the record has none).
/// Both outputs may be NULL.
///
/// Ownership: `*ech` is borrowed bytes, without a NUL, valid until the route goes.
/// Errors: `BYWAY_DONE` when the route carries none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_service(
    self_: *const byway_route,
    ech: *mut byway_str,
    port: *mut u16,
) -> byway_status {
    status_bare(|| {
        let (ech, port) = (arguments::out_optional(ech, byway_str::EMPTY), arguments::out_optional(port, 0));
        let Some(service) = handle::shared(self_, "self")?.route.service() else { return Ok(Status::DONE) };
        if let Some(ech) = ech {
            *ech = byway_str { data: service.ech.as_ptr().cast(), len: service.ech.len() };
        }
        if let Some(port) = port {
            *port = service.port;
        }
        Ok(Status::OK)
    })
}

/// One ALPN id of the metadata, in order.
///
/// Ownership: `*out` is borrowed bytes, without a NUL, valid until the route goes.
/// Errors: `BYWAY_DONE` past the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_service_alpn_at(
    self_: *const byway_route,
    index: usize,
    out: *mut byway_str,
) -> byway_status {
    status_bare(|| {
        let out = arguments::out(out, byway_str::EMPTY, "out")?;
        let service = handle::shared(self_, "self")?.route.service();
        let Some(id) = service.and_then(|service| service.alpn.get(index)) else { return Ok(Status::DONE) };
        *out = byway_str { data: id.as_ptr().cast(), len: id.len() };
        Ok(Status::OK)
    })
}

/// The address hints of the metadata, in order: writes up to `cap` addresses of `stride` bytes, `*total` gets their
/// number. byway itself connects by the address records.
///
/// Errors: `BYWAY_DONE` and a total of 0 when the route carries no metadata; `BYWAY_E_NULL` for a `cap` without a place,
/// `BYWAY_E_ARGUMENT` for a stride of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_service_hints(
    self_: *const byway_route,
    out: *mut byway_ip,
    stride: usize,
    cap: usize,
    total: *mut usize,
) -> byway_status {
    call_quiet(|| {
        let _ = arguments::out(total, 0, "total")?;
        let service = handle::shared(self_, "self")?.route.service();
        let hints = service.map_or(&[][..], |service| &service.hints);
        arguments::fill(out, stride, cap, total, hints.len(), |at| {
            hints.get(at).map_or(byway_ip::NONE, |&hint| ip_out(hint))
        })?;
        Ok(if service.is_some() { Status::OK } else { Status::DONE })
    })
}

/// 1 when both are the same route by value: origin, proxy, hop, and the target where byway resolved it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_equals(self_: *const byway_route, other: *const byway_route) -> i32 {
    call_bare(0, || {
        let (a, b) = (handle::shared(self_, "self")?, handle::shared(other, "other")?);
        Ok(i32::from(a.route == b.route))
    })
}

/// The same for equal routes, within this process; 0 for what is not a live route.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_hash(self_: *const byway_route) -> u64 {
    call_bare(0, || Ok(handle::shared(self_, "self")?.route.hash_value()))
}

/// Text for people: `HOST[:PORT]`, then ` at IP:PORT` or ` via proxy IP:PORT`.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_text(
    self_: *const byway_route,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let route = &handle::shared(self_, "self")?.route;
        *out = text::hand_out(match route.address().profile() {
            Compat::OkHttp3 => route.okhttp3_text(),
            _ => route.to_string(),
        });
        Ok(Status::OK)
    })
}

/// May a live connection made over `self` serve `wanted`, whose own routes are `wanted_routes`? The same address; or a
/// multiplexed connection whose certificate covers the host under the default verification, both DIRECT, and the very
/// same address and port. `*why_not` gets 0 when it may, else `BYWAY_NO_COALESCING_*`.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_STRUCT_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_coalesces(
    self_: *const byway_route,
    wanted: *const byway_address,
    wanted_routes: *const *const byway_route,
    n: usize,
    peer: *const byway_peer,
    why_not: *mut i32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let why_not = arguments::out(why_not, BYWAY_NO_COALESCING_OTHER_ADDRESS, "why_not")?;
        let connection = &handle::shared(self_, "self")?.route;
        let wanted = &handle::shared(wanted, "wanted")?.address;
        let peer = arguments::versioned(peer, "peer")?;
        if peer.flags & !31 != 0 {
            return Err(Error::new(Status::E_ENUM, "unknown flags").subject("peer.flags").into());
        }
        let has = |bit: u32| peer.flags & bit != 0;
        let peer = Peer {
            multiplexed: has(BYWAY_PEER_MULTIPLEXED),
            default_verification: has(BYWAY_PEER_DEFAULT_VERIFICATION),
            certificate_covers_host: has(BYWAY_PEER_CERTIFICATE_COVERS_HOST),
            pins_hold: has(BYWAY_PEER_PINS_HOLD),
            refused_before: has(BYWAY_PEER_REFUSED_BEFORE),
        };
        let mut routes = Vec::with_capacity(n.min(64));
        for &route in arguments::array(wanted_routes, n, "wanted_routes")? {
            routes.push(handle::shared(route, "wanted_routes")?.route.clone());
        }
        *why_not = match coalesces(connection, wanted, &routes, &peer) {
            Ok(()) => 0,
            Err(why) => why as i32,
        };
        const { assert!(NoCoalescing::NotVerified as i32 == BYWAY_NO_COALESCING_NOT_VERIFIED) };
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live route. Keeps a route that a selection lent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_retain(self_: *const byway_route) -> *mut byway_route {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_route_release(self_: *mut byway_route) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}
