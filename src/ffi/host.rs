//! Host texts and IP addresses, on their own.

use super::address::{byway_ip, checked, ip_of, ip_out};
use super::arguments;
use super::error::byway_error;
use super::guard::{self, Fail, call, call_bare};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::error::Status;
use crate::net::order::{FirstFamily, Order};
use crate::net::{Compat, Host, Ip, compat};
use crate::sys::resolve::interface_index;
use core::ffi::c_char;

/// IPv6 first, as OkHttp and RFC 8305.
pub const BYWAY_FIRST_FAMILY_V6: i32 = 0;
/// IPv4 first.
pub const BYWAY_FIRST_FAMILY_V4: i32 = 1;
/// The family of the first address first.
pub const BYWAY_FIRST_FAMILY_FIRST_ADDRESS: i32 = 2;

/// The canonical form of a host name or IP literal, without brackets and zone, as an address of that `BYWAY_COMPAT_*`
/// has it.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_INVALID_HOST` with the place, `BYWAY_E_UTF8`, `BYWAY_E_ENUM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_host_canonical(
    compat: i32,
    host: *const c_char,
    len: usize,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        let profile = Compat::from_number(compat).ok_or(Fail::Parameter(Status::E_ENUM, "compat"))?;
        let host = Host::parse_as(arguments::text(host, len, "host")?, profile, &interface_index)?;
        *out = text::hand_out(host.text().to_owned());
        Ok(Status::OK)
    })
}

/// 1 when a host is taken for an IP literal, which nobody resolves: OkHttp's loose test under `BYWAY_COMPAT_OKHTTP_5`
/// and `_3`, else whether it is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_host_is_literal(compat: i32, host: *const c_char, len: usize) -> i32 {
    call_bare(0, || {
        let host = arguments::text(host, len, "host")?;
        Ok(i32::from(match Compat::from_number(compat) {
            Some(Compat::Byway) => Host::parse(host, &interface_index).is_ok_and(|host| host.ip().is_some()),
            Some(_) => compat::looks_like_ip(host),
            None => false,
        }))
    })
}

/// Parses an IP literal, without brackets; a numeric `%zone` becomes the scope id.
///
/// Errors: `BYWAY_E_INVALID_IP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_ip_parse(
    text: *const c_char,
    len: usize,
    out: *mut byway_ip,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, byway_ip::NONE, "out")?;
        *out = ip_out(Ip::parse(arguments::text(text, len, "text")?)?);
        Ok(Status::OK)
    })
}

/// RFC 5952 text of an address.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_INVALID_IP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_ip_text(
    ip: *const byway_ip,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        *out = text::hand_out(ip_of(ip, "ip")?.to_string());
        Ok(Status::OK)
    })
}

/// Puts addresses in the order in which they are to be tried, in place: families alternate, `first_family_count` of the
/// first one first. Inside a family the order stays. `first_family` is `BYWAY_FIRST_FAMILY_*`.
///
/// Errors: `BYWAY_E_INVALID_IP`, `BYWAY_E_ENUM`, `BYWAY_E_ARGUMENT` for a count of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_ip_order(
    ips: *mut byway_ip,
    n: usize,
    first_family: i32,
    first_family_count: u32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let first_family = match first_family {
            BYWAY_FIRST_FAMILY_V6 => FirstFamily::V6,
            BYWAY_FIRST_FAMILY_V4 => FirstFamily::V4,
            BYWAY_FIRST_FAMILY_FIRST_ADDRESS => FirstFamily::FirstAddress,
            _ => return Err(Fail::Parameter(Status::E_ENUM, "first_family")),
        };
        if first_family_count == 0 {
            return Err(Fail::Parameter(Status::E_ARGUMENT, "first_family_count"));
        }
        let given = arguments::array(ips.cast_const(), n, "ips")?;
        let mut list: Vec<Ip> = given.iter().map(|ip| checked(ip, "ips")).collect::<Result<_, _>>()?;
        let order =
            Order { first_family, first_family_count: first_family_count as usize, ..Order::default() };
        order.apply(&mut list);
        for (i, ip) in list.into_iter().enumerate() {
            // SAFETY: as many addresses as came in, into the host's own array of `n`.
            unsafe { ips.add(i).write(ip_out(ip)) };
        }
        Ok(Status::OK)
    })
}
