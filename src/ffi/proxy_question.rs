//! Questions to proxy selectors outside a connection, and what an engine knows about proxies that fail.

use super::arguments;
use super::dns::byway_dns;
use super::engine::{self, byway_engine};
use super::error::byway_error;
use super::feedback::failure_of;
use super::guard::{self, call};
use super::handle;
use super::proxy::{self, byway_proxy};
use super::proxy_selector::byway_proxy_selector;
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::routes::select::Patience;
use crate::error::Status;
use crate::net::Listed;
use crate::proxies::OwnedTarget;
use crate::proxies::pac::wpad;
use core::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

/// Asks a proxy selector which proxies a URL has, outside any connection: for hosts that connect by themselves, and for
/// looking into a configuration. Waits at most `timeout_ms` for callbacks, scripts and the names they want to know.
///
/// Writes `min(cap, total)` proxies in order, NULL for DIRECT. `explanation`, unless it is NULL, gets the list with the
/// reasons as JSON: `proxies`, `because` from the outermost proxy selector inwards, `script` with its `answer`,
/// `took_us`, `skipped` elements and `alerts` when one ran, `moved_back` with the proxies that failed lately.
/// `dns` resolves what a script wants to know; NULL: the system. Listeners hear of these
/// names with a `selector_id` of 0, and of nothing else.
///
/// `timeout_ms`: 0 = do not wait, negative = the engine's default.
/// Ownership: the caller owns one reference of each proxy written, and the text.
/// Threads: any; on the thread of an event loop only with a `timeout_ms` of 0.
/// Errors: `BYWAY_E_INVALID_URL`, those of the proxy selector, `BYWAY_E_TIMEOUT`, `BYWAY_E_WOULD_DEADLOCK`, `BYWAY_E_UTF8`,
/// `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_proxies_for_url(
    self_: *mut byway_engine,
    selector: *const byway_proxy_selector,
    url: *const c_char,
    url_len: usize,
    dns: *const byway_dns,
    timeout_ms: i64,
    proxies: *mut *mut byway_proxy,
    cap: usize,
    total: *mut usize,
    explanation: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let explanation = arguments::out_optional(explanation, core::ptr::null_mut());
        let mut room = arguments::room(proxies, cap, "proxies");
        if let Ok(room) = &mut room {
            room.fill(core::ptr::null_mut());
        }
        let (room, total) = (room?, arguments::out(total, 0, "total")?);
        let engine = engine::open(self_, "self")?;
        let selector = &handle::shared(selector, "selector")?.0;
        let url = OwnedTarget::parse(arguments::text(url, url_len, "url")?)
            .map_err(|error| error.subject("url"))?;
        let resolver = handle::optional(dns, "dns")?.map(|dns| &dns.0);
        let patience = match u64::try_from(timeout_ms) {
            Ok(0) => Patience::NONE,
            Ok(ms) => Patience::lasting(Duration::from_millis(ms)),
            Err(_) => Patience::lasting(engine.options().default_timeout),
        };
        let found = engine.proxies_for_url(selector, resolver, &url, patience)?;
        *total = found.list.len();
        if let Some(explanation) = explanation {
            *explanation = text::hand_out(found.explain(&url));
        }
        for (place, listed) in room.iter_mut().zip(&found.list) {
            if let Listed::Proxy(proxy) = listed {
                *place = proxy::hand_out(Arc::clone(proxy));
            }
        }
        Ok(Status::OK)
    })
}

/// The names at which a proxy script is looked for below a machine's domain (WPAD by DNS), one a line, most specific first:
/// `a.dept.example.com` gives `wpad.dept.example.com` and `wpad.example.com`; the script is `http://NAME/wpad.dat`. Nothing
/// above `stop_at` is named, nor below a single label; a host whose registrable domain has more labels (`example.co.uk`) says
/// so there. For hosts whose `fetch` is asked to discover: whoever answers for one of these names decides where traffic goes.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_UTF8`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_wpad_names(
    domain: *const c_char,
    domain_len: usize,
    stop_at: *const c_char,
    stop_at_len: usize,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        let domain = arguments::text(domain, domain_len, "domain")?;
        let stop_at = arguments::text(stop_at, stop_at_len, "stop_at")?;
        let stop_at = (!stop_at.is_empty()).then_some(stop_at);
        *out = text::hand_out(wpad::names(domain, stop_at, false).join("\n"));
        Ok(Status::OK)
    })
}

/// The proxies that failed lately and are tried last for a while, as a JSON array: `kind`, `host`, `port`,
/// `remaining_ms`; and how it failed last: `failure` (the text of a `BYWAY_FAILURE_*`), `os_errno` (0 for none), `age_ms`
/// (milliseconds since). A proxy gets there when nothing behind it could be reached (its name, TCP or TLS to it, its SOCKS
/// greeting) and a later entry of the same list worked; it leaves after `bad_proxy_ms`, when the network changes, and when
/// it is forgotten. DIRECT never gets there.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_bad_proxies(
    self_: *const byway_engine,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        *out = text::hand_out(engine::open(self_, "self")?.bad_proxies_json());
        Ok(Status::OK)
    })
}

/// Says that a proxy failed although it was tried outside this library: it goes behind the others for `bad_proxy_ms`. For
/// hosts that ask with `byway_engine_proxies_for_url` and connect by themselves; those that report routes need not. Call
/// it when a later entry of the list worked, or being offline would mark them all. DIRECT is never marked, and nothing is
/// with a `bad_proxy_ms` of 0 or under a `compat`. `failure` is `BYWAY_FAILURE_*`, `os_errno` the system's number or 0.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_ENUM`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_mark_proxy(
    self_: *mut byway_engine,
    proxy: *const byway_proxy,
    failure: i32,
    os_errno: i32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let engine = engine::open(self_, "self")?;
        let proxy = &handle::shared(proxy, "proxy")?.0;
        engine.mark_proxy(proxy, failure_of(failure, "failure")?, os_errno);
        Ok(Status::OK)
    })
}

/// Forgets which proxies failed: all are tried in their configured order again.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_forget_bad_proxies(
    self_: *mut byway_engine,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        engine::open(self_, "self")?.forget_bad_proxies();
        Ok(Status::OK)
    })
}
