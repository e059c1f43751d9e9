//! `byway_proxy`: one intermediary and the credentials it alone may see.

use super::address::{byway_ip, ip_of, ip_out};
use super::arguments::{self, byway_str};
use super::error::byway_error;
use super::guard::{self, Fail, call, call_bare, call_or, status_bare};
use super::handle::{self, handle};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::error::Status;
use crate::net::compat::Compat;
use crate::net::proxy::ProxySpec;
use crate::net::{Proxy, ProxyKind};
use crate::sys::resolve::interface_index;
use core::ffi::c_char;
use std::sync::Arc;

/// A proxy: kind, place, credentials. Immutable; a value. NULL stands for DIRECT wherever a proxy is taken.
pub struct byway_proxy {
    _private: [u8; 0],
}

handle!(byway_proxy, ProxyHandle, 10, true);

/// The proxy.
pub(crate) struct ProxyHandle(pub(crate) Arc<Proxy>);

/// No proxy.
pub const BYWAY_PROXY_DIRECT: i32 = 0;
/// HTTP proxy; `CONNECT` where a tunnel is needed.
pub const BYWAY_PROXY_HTTP: i32 = 1;
/// HTTP proxy reached over TLS.
pub const BYWAY_PROXY_HTTPS: i32 = 2;
/// SOCKS4: the target is resolved here, IPv4 only.
pub const BYWAY_PROXY_SOCKS4: i32 = 3;
/// SOCKS4a: the proxy resolves.
pub const BYWAY_PROXY_SOCKS4A: i32 = 4;
/// SOCKS5: the target is resolved here.
pub const BYWAY_PROXY_SOCKS5: i32 = 5;
/// SOCKS5: the proxy resolves.
pub const BYWAY_PROXY_SOCKS5H: i32 = 6;

/// A proxy kind that has a place.
pub(super) fn kind_of(kind: i32, name: &'static str) -> Result<ProxyKind, Fail> {
    ProxyKind::from_number(kind).ok_or(Fail::Parameter(Status::E_ENUM, name))
}

/// A handle for `proxy`, owned by the caller.
pub(super) fn hand_out(proxy: Arc<Proxy>) -> *mut byway_proxy {
    handle::hand_out(ProxyHandle(proxy))
}

/// Makes a proxy of a `BYWAY_PROXY_*` kind other than DIRECT.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_ENUM`, `BYWAY_E_INVALID_HOST`, `BYWAY_E_INVALID_PORT`, `BYWAY_E_INVALID_PROXY`, `BYWAY_E_UTF8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_new(
    kind: i32,
    host: *const c_char,
    len: usize,
    port: i32,
    out: *mut *mut byway_proxy,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        let spec = ProxySpec {
            kind: kind_of(kind, "kind")?,
            host: arguments::text(host, len, "host")?,
            resolved: None,
            port: i64::from(port),
            user: None,
            password: None,
        };
        *out = hand_out(make(spec)?);
        Ok(Status::OK)
    })
}

fn make(spec: ProxySpec<'_>) -> Result<Arc<Proxy>, Fail> {
    let proxy = Proxy::listed(spec, Compat::Byway, &interface_index)?;
    proxy.check_port()?;
    Ok(Arc::new(proxy))
}

/// As `byway_proxy_new`, already resolved: this address is used and no other; `host` may be empty and is only text.
///
/// Ownership: the caller owns one reference.
/// Errors: as `byway_proxy_new`; `BYWAY_E_INVALID_IP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_new_resolved(
    kind: i32,
    host: *const c_char,
    len: usize,
    ip: *const byway_ip,
    port: i32,
    out: *mut *mut byway_proxy,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        let spec = ProxySpec {
            kind: kind_of(kind, "kind")?,
            host: arguments::text(host, len, "host")?,
            resolved: Some(ip_of(ip, "ip")?),
            port: i64::from(port),
            user: None,
            password: None,
        };
        *out = hand_out(make(spec)?);
        Ok(Status::OK)
    })
}

/// The same proxy with credentials. They go to this proxy only, and are shown nowhere: not in texts, errors, events or
/// explanations. NULL says that there is none; an empty text is an empty one.
///
/// Ownership: the caller owns one reference; `self` stays as it is.
/// Errors: `BYWAY_E_INVALID_PROXY` for what the protocol cannot carry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_with_credentials(
    self_: *const byway_proxy,
    user: *const c_char,
    user_len: usize,
    password: *const c_char,
    password_len: usize,
    out: *mut *mut byway_proxy,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let proxy = &handle::shared(self_, "self")?.0;
        let part = |data: *const c_char, len, name| {
            if data.is_null() { Ok(None) } else { arguments::text(data, len, name).map(Some) }
        };
        let (user, password) = (part(user, user_len, "user")?, part(password, password_len, "password")?);
        *out = hand_out(Arc::new(proxy.with_credentials(user, password, Compat::Byway)?));
        Ok(Status::OK)
    })
}

/// `BYWAY_PROXY_*`; DIRECT for NULL, -1 for what is not a live proxy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_kind(self_: *const byway_proxy) -> i32 {
    call_bare(-1, || {
        let proxy = handle::optional(self_, "self")?;
        Ok(proxy.map_or(BYWAY_PROXY_DIRECT, |proxy| proxy.0.kind() as i32))
    })
}

/// Canonical host, without brackets.
///
/// Ownership: borrowed, valid until the proxy goes.
/// Errors: `BYWAY_E_BAD_HANDLE`, also for NULL, which is DIRECT and has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_host(self_: *const byway_proxy, out: *mut byway_str) -> byway_status {
    status_bare(|| {
        let out = arguments::out(out, byway_str::EMPTY, "out")?;
        *out = lend(handle::shared(self_, "self")?.0.host().c_text());
        Ok(Status::OK)
    })
}

/// A text with a NUL behind it, lent without that.
pub(super) fn lend(c_text: &str) -> byway_str {
    byway_str { data: c_text.as_ptr().cast(), len: c_text.len().saturating_sub(1) }
}

/// The one address used, when the proxy was made resolved or its host is a literal.
///
/// Errors: `BYWAY_DONE` when its name has to be resolved.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_ip(self_: *const byway_proxy, out: *mut byway_ip) -> byway_status {
    status_bare(|| {
        let out = arguments::out(out, byway_ip::NONE, "out")?;
        let Some(ip) = handle::shared(self_, "self")?.0.ip() else { return Ok(Status::DONE) };
        *out = ip_out(ip);
        Ok(Status::OK)
    })
}

/// Port, 0 for what is not a live proxy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_port(self_: *const byway_proxy) -> u16 {
    call_bare(0, || Ok(handle::shared(self_, "self")?.0.usable_port().unwrap_or(0)))
}

/// 1 when both are the same proxy: kind, place and user name; the password does not count. NULL is DIRECT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_equals(self_: *const byway_proxy, other: *const byway_proxy) -> i32 {
    call_bare(0, || {
        let (a, b) = (handle::optional(self_, "self")?, handle::optional(other, "other")?);
        Ok(i32::from(a.map(|a| a.0.id()) == b.map(|b| b.0.id())))
    })
}

/// `kind://host:port`, without credentials.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_text(
    self_: *const byway_proxy,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        *out = text::hand_out(handle::shared(self_, "self")?.0.to_string());
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live proxy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_retain(self_: *mut byway_proxy) -> *mut byway_proxy {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_release(self_: *mut byway_proxy) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}
