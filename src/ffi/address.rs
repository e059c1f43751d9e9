//! `byway_address`: where a host wants to go, and `byway_ip`.

use super::arguments::{self, Versioned, byway_str};
use super::dns::byway_dns;
use super::engine::{self, byway_engine};
use super::error::byway_error;
use super::guard::{Fail, call, call_bare, call_or, status_bare};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::proxy::{byway_proxy, lend};
use super::proxy_selector::byway_proxy_selector;
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::routes::Target;
use crate::error::Status;
use crate::net::address::{AddressSpec, ExplicitProxy};
use crate::net::{Address, Ip};
use crate::sys::resolve::interface_index;
use core::mem::offset_of;
use std::sync::Arc;

/// One IP address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_ip {
    /// Network byte order; IPv4 in the first four bytes, the rest zero.
    pub bytes: [u8; 16],
    /// Interface index of a link-local IPv6 address, else 0.
    pub scope_id: u32,
    /// 4 or 6; 0 for "none".
    pub family: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

impl byway_ip {
    /// No address.
    pub(super) const NONE: byway_ip = byway_ip { bytes: [0; 16], scope_id: 0, family: 0, reserved: [0; 3] };
}

/// A checked address from C.
#[inline]
pub(super) fn checked(ip: &byway_ip, name: &'static str) -> Result<Ip, Fail> {
    let b = ip.bytes;
    match ip.family {
        4 => Ok(Ip::v4([b[0], b[1], b[2], b[3]])),
        6 => Ok(Ip::v6(b, ip.scope_id)),
        _ => Err(Fail::Parameter(Status::E_INVALID_IP, name)),
    }
}

/// Addresses from C as they are, checked or not: both records are the same bytes.
#[inline(always)]
pub(super) fn as_ips(ips: &[byway_ip]) -> &[Ip] {
    const {
        assert!(size_of::<byway_ip>() == size_of::<Ip>() && align_of::<byway_ip>() == align_of::<Ip>());
        assert!(offset_of!(byway_ip, bytes) == offset_of!(Ip, bytes));
        assert!(offset_of!(byway_ip, scope_id) == offset_of!(Ip, scope_id));
        assert!(offset_of!(byway_ip, family) == offset_of!(Ip, family));
        assert!(offset_of!(byway_ip, reserved) == offset_of!(Ip, reserved));
    }
    // SAFETY: plain numbers of the same types at the same places, as said above.
    unsafe { core::slice::from_raw_parts(ips.as_ptr().cast(), ips.len()) }
}

pub(super) fn ip_of(ip: *const byway_ip, name: &'static str) -> Result<Ip, Fail> {
    // SAFETY: by the header's contract an input record is NULL or readable.
    let ip = unsafe { ip.as_ref() }.ok_or(Fail::Parameter(Status::E_NULL, name))?;
    checked(ip, name)
}

/// The same bytes, whole: an address that goes over field by field is stored in pieces.
#[inline(always)]
pub(super) fn ip_out(ip: Ip) -> byway_ip {
    // SAFETY: plain numbers of the same types at the same places; see `as_ips`.
    unsafe { core::mem::transmute(ip) }
}

/// Where a host wants to go, by whatever proxy and resolver. Immutable; a value.
pub struct byway_address {
    _private: [u8; 0],
}

handle!(byway_address, Target, 11, true);

/// TLS to the origin.
pub const BYWAY_ADDRESS_TLS: u32 = 1;
/// No proxy, and nobody is asked; differs from saying nothing.
pub const BYWAY_ADDRESS_DIRECT: u32 = 2;

/// What an address is made from. Start from `BYWAY_ADDRESS_OPTIONS_INIT` or `byway_address_options_init`; `host` and
/// `port` must be set.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_address_options {
    /// `sizeof(byway_address_options)`.
    pub struct_size: usize,
    /// URL scheme; empty means `https` with `BYWAY_ADDRESS_TLS`, else `http`. `https` and `wss` imply TLS.
    pub scheme: byway_str,
    /// Host name or IP literal, canonicalised by the WHATWG URL rules; IPv6 with or without brackets and with a zone.
    pub host: byway_str,
    /// 1..65535.
    pub port: i32,
    /// `BYWAY_ADDRESS_*`.
    pub flags: u32,
    /// Explicit proxy, NULL for none. The proxy selector is then not asked.
    pub proxy: *const byway_proxy,
    /// Who chooses proxies, NULL for nobody: DIRECT. Retained.
    pub proxy_selector: *mut byway_proxy_selector,
    /// Who resolves names, NULL for the system. Retained.
    pub dns: *mut byway_dns,
    /// Application protocols in order of preference, as ALPN names. `h2_prior_knowledge` needs a tunnel through an
    /// HTTP proxy.
    pub protocols: *const byway_str,
    /// Number of protocols.
    pub protocols_len: usize,
    /// Opaque identity of the host's own TLS configuration; ignored without TLS.
    pub tls_identity: u64,
    /// More of it, as bytes.
    pub tls_identity_bytes: byway_str,
    /// Opaque identity of whatever answers a proxy's challenges; counts in equality.
    pub authenticator: u64,
}

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_address_options {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_address_options {
        struct_size: size_of::<Self>(),
        scheme: byway_str::NONE,
        host: byway_str::NONE,
        port: 0,
        flags: 0,
        proxy: core::ptr::null(),
        proxy_selector: core::ptr::null_mut(),
        dns: core::ptr::null_mut(),
        protocols: core::ptr::null(),
        protocols_len: 0,
        tls_identity: 0,
        tls_identity_bytes: byway_str::NONE,
        authenticator: 0,
    };
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_ip { bytes, scope_id, family, reserved }),
    layout!(byway_address_options {
        struct_size,
        scheme,
        host,
        port,
        flags,
        proxy,
        proxy_selector,
        dns,
        protocols,
        protocols_len,
        tls_identity,
        tls_identity_bytes,
        authenticator,
    }),
];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_options_init(options: *mut byway_address_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// Makes an address. Host, literals and the URI for the proxy selector are worked out here, once: keep it and use it
/// again.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_INVALID_HOST` with the place, `BYWAY_E_INVALID_PORT`, `BYWAY_E_ARGUMENT` for a scheme that is none
/// or for an explicit proxy together with `BYWAY_ADDRESS_DIRECT`, `BYWAY_E_UTF8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_new(
    engine: *mut byway_engine,
    options: *const byway_address_options,
    out: *mut *mut byway_address,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = Arc::clone(engine::open(engine, "engine")?);
        let options = arguments::versioned(options, "options")?;
        if options.flags & !(BYWAY_ADDRESS_TLS | BYWAY_ADDRESS_DIRECT) != 0 {
            return Err(Fail::Parameter(Status::E_ENUM, "options.flags"));
        }
        let proxy = handle::optional(options.proxy, "options.proxy")?;
        let direct = options.flags & BYWAY_ADDRESS_DIRECT != 0;
        if direct && proxy.is_some() {
            return Err(Fail::Parameter(Status::E_ARGUMENT, "options.proxy"));
        }
        let proxies = handle::optional(options.proxy_selector, "options.proxy_selector")?;
        let resolver = handle::optional(options.dns, "options.dns")?;
        let mut protocols = Vec::new();
        for protocol in arguments::array(options.protocols, options.protocols_len, "options.protocols")? {
            protocols.push(arguments::bytes(protocol.data, protocol.len, "options.protocols")?);
        }
        let identity = options.tls_identity_bytes;
        let spec = AddressSpec {
            scheme: arguments::text_of(options.scheme, "options.scheme")?,
            tls: options.flags & BYWAY_ADDRESS_TLS != 0,
            host: arguments::text_of(options.host, "options.host")?,
            port: i64::from(options.port),
            proxy: match proxy {
                Some(proxy) => Some(ExplicitProxy::Proxy(&proxy.0)),
                None => direct.then_some(ExplicitProxy::Direct),
            },
            proxy_selector: proxies.map_or(0, |proxies| proxies.0.id()),
            dns: resolver.map_or(0, |resolver| resolver.0.id()),
            protocols: &protocols,
            tls_identity: options.tls_identity,
            tls_identity_bytes: arguments::bytes(identity.data, identity.len, "options.tls_identity_bytes")?,
            authenticator: options.authenticator,
        };
        let address = Arc::new(Address::new(spec, engine.options().compat, &interface_index)?);
        *out = handle::hand_out(Target {
            address,
            resolver: resolver.map(|resolver| Arc::clone(&resolver.0)),
            proxies: proxies.map(|proxies| Arc::clone(&proxies.0)),
            engine,
        });
        Ok(Status::OK)
    })
}

/// Canonical host, without brackets and zone.
///
/// Ownership: borrowed, valid until the address goes.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_host(
    self_: *const byway_address,
    out: *mut byway_str,
) -> byway_status {
    status_bare(|| {
        let out = arguments::out(out, byway_str::EMPTY, "out")?;
        *out = lend(handle::shared(self_, "self")?.address.host().c_text());
        Ok(Status::OK)
    })
}

/// URI as the proxy selector sees it.
///
/// Ownership: borrowed, valid until the address goes.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_uri(self_: *const byway_address, out: *mut byway_str) -> byway_status {
    status_bare(|| {
        let out = arguments::out(out, byway_str::EMPTY, "out")?;
        *out = lend(handle::shared(self_, "self")?.address.c_uri());
        Ok(Status::OK)
    })
}

/// Port, 0 for what is not a live address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_port(self_: *const byway_address) -> u16 {
    call_bare(0, || Ok(handle::shared(self_, "self")?.address.port()))
}

/// 1 when both lead to the same place by the same means: everything an address is made from counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_equals(
    self_: *const byway_address,
    other: *const byway_address,
) -> i32 {
    call_bare(0, || {
        let (a, b) = (handle::shared(self_, "self")?, handle::shared(other, "other")?);
        Ok(i32::from(a.address == b.address))
    })
}

/// 1 when both are equal in everything but host and scheme: what must hold before a connection made for one may be
/// considered for the other (see `byway_route_coalesces`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_equal_non_host(
    self_: *const byway_address,
    other: *const byway_address,
) -> i32 {
    call_bare(0, || {
        let (a, b) = (handle::shared(self_, "self")?, handle::shared(other, "other")?);
        Ok(i32::from(a.address.equal_non_host(&b.address)))
    })
}

/// The same for equal addresses, within this process; 0 for what is not a live address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_hash(self_: *const byway_address) -> u64 {
    call_bare(0, || Ok(handle::shared(self_, "self")?.address.hash_value()))
}

/// Text for people: `scheme://host:port`, with the explicit proxy. Under `BYWAY_COMPAT_OKHTTP_5` and `_3` OkHttp's.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_text(
    self_: *const byway_address,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let address = &handle::shared(self_, "self")?.address;
        *out = text::hand_out(match address.profile() {
            crate::net::Compat::Byway => address.to_string(),
            _ => address.okhttp_text("proxySelector"),
        });
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_retain(self_: *mut byway_address) -> *mut byway_address {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_address_release(self_: *mut byway_address) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}
