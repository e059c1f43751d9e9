//! `byway_filter`: CIDR allow and deny rules.

use super::address::{byway_ip, ip_of};
use super::arguments;
use super::error::byway_error;
use super::guard::{self, call, call_or, status_bare};
use super::handle::{self, handle};
use super::status::byway_status;
use crate::error::Status;
use crate::net::{Filter, Verdict};
use core::ffi::c_char;
use std::sync::Arc;

/// An immutable list of rules that says which addresses may be connected to: a guard against server-side request
/// forgery. A value.
pub struct byway_filter {
    _private: [u8; 0],
}

handle!(byway_filter, FilterHandle, 9, true);

/// The rules.
pub(crate) struct FilterHandle(pub(crate) Arc<Filter>);

/// Makes a filter from text, one rule a line: `allow NETWORK`, `deny NETWORK`, `allow all` or `deny all` for
/// everything else, `public` for the list of `byway_filter_new_public`; `#` begins a comment. The first rule that holds
/// an address decides. Without an `all` line everything else is denied when the text allows something by name and does
/// not say `public`, else allowed.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_SYNTAX` with line and column, `BYWAY_E_UTF8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_filter_new(
    rules: *const c_char,
    len: usize,
    out: *mut *mut byway_filter,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        let filter = Filter::parse(arguments::text(rules, len, "rules")?)?;
        *out = handle::hand_out(FilterHandle(Arc::new(filter)));
        Ok(Status::OK)
    })
}

/// Makes the filter that lets only globally reachable addresses through: no loopback, private, link-local, shared,
/// documentation, multicast or reserved ones, also not inside IPv4-mapped, NAT64 or 6to4 forms.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_filter_new_public(
    out: *mut *mut byway_filter,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        *out = handle::hand_out(FilterHandle(Arc::new(Filter::public())));
        Ok(Status::OK)
    })
}

/// Judges one address: `*denied` gets 1 when it must not be connected to, else 0.
///
/// Errors: `BYWAY_E_INVALID_IP` when the record is of no family; `*denied` is 1 then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_filter_check(
    self_: *const byway_filter,
    ip: *const byway_ip,
    denied: *mut i32,
) -> byway_status {
    status_bare(|| {
        let denied = arguments::out(denied, 1, "denied")?;
        let filter = &handle::shared(self_, "self")?.0;
        let ip = ip_of(ip, "ip")?;
        *denied = i32::from(filter.check(ip) == Verdict::Deny);
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_filter_retain(self_: *mut byway_filter) -> *mut byway_filter {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_filter_release(self_: *mut byway_filter) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}
