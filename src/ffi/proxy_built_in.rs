//! Proxy selectors of this library that answer at once: environment, Java system properties, Windows' settings.

use super::arguments::{self, byway_str};
use super::engine::{self, byway_engine};
use super::error::byway_error;
use super::guard::{Fail, call};
use super::proxy_selector::{self, byway_proxy_selector};
use super::status::byway_status;
use crate::engine::Engine;
use crate::engine::routes::proxies::{Choosing, ProxySource};
use crate::error::Status;
use crate::proxies::environment::{Environment, OwnEnvironment, Table};
use crate::proxies::jdk::{JdkProperties, WebSockets};
use crate::proxies::no_proxy::{Dialect, dialect_of};
use crate::proxies::{ProxySelector, windows};
use core::ffi::c_char;
use std::sync::Arc;

/// More variables or properties are no configuration.
const MAX_PAIRS: usize = 1 << 16;

fn hand_out(engine: &Arc<Engine>, selector: Arc<dyn ProxySelector>) -> *mut byway_proxy_selector {
    proxy_selector::hand_out(ProxySource::new(Choosing::BuiltIn(selector)), Arc::downgrade(engine))
}

/// Two arrays of one length as pairs.
pub(super) fn pairs<'a>(
    names: *const byway_str,
    values: *const byway_str,
    n: usize,
) -> Result<Vec<(&'a str, &'a str)>, Fail> {
    if n > MAX_PAIRS {
        return Err(Fail::Parameter(Status::E_LIMIT, "n"));
    }
    let (names, values) = (arguments::array(names, n, "names")?, arguments::array(values, n, "values")?);
    let pair = |(name, value): (&byway_str, &byway_str)| {
        let name = arguments::setting(name.data, name.len, "names")?;
        Ok((name, arguments::setting(value.data, value.len, "values")?))
    };
    names.iter().zip(values).map(pair).collect()
}

/// Makes a proxy selector from environment variables: `http_proxy`, `https_proxy`, `all_proxy`, `no_proxy` and the like.
/// `names` and `values` are `n` variables; with `n` 0 and `names` NULL the process's own environment is read, here and by
/// `byway_proxy_selector_refresh`, and at no other time. `dialect` says whose reading is meant: `byway` (also NULL), `curl`, `go`, `python`, `chromium`,
/// `node`. A value that is no proxy is the error of the requests it is for, never DIRECT.
///
/// Ownership: the caller owns one reference; the texts are copied.
/// Threads: reading the process's environment must not run while another thread changes it.
/// Errors: `BYWAY_E_ARGUMENT` for an unknown dialect, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` for a text above 1 MiB or more than
/// 65 536 variables, `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_environment(
    engine: *mut byway_engine,
    names: *const byway_str,
    values: *const byway_str,
    n: usize,
    dialect: *const c_char,
    dialect_len: usize,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(engine, "engine")?;
        let dialect = match dialect.is_null() {
            true => Dialect::Byway,
            false => dialect_of(arguments::text(dialect, dialect_len, "dialect")?, "dialect")?,
        };
        *out = if n == 0 && names.is_null() {
            hand_out(engine, Arc::new(OwnEnvironment::new(dialect)))
        } else {
            let table: Table = pairs(names, values, n)?.into_iter().collect();
            hand_out(engine, Arc::new(Environment::new(&table, dialect)))
        };
        Ok(Status::OK)
    })
}

/// Makes a proxy selector from Java system properties (`http.proxyHost`, `http.nonProxyHosts`, `socksProxyHost` and the
/// like), with the answers of the JDK's own default selector. `web_sockets` 1: ws and wss use the http and https
/// properties, as the JDK does from 2026 on; 0: they are DIRECT, as before.
///
/// Ownership: the caller owns one reference; the texts are copied.
/// Errors: `BYWAY_E_ENUM` for `web_sockets`, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` for a text above 1 MiB or more than 65 536
/// properties, `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_properties(
    engine: *mut byway_engine,
    names: *const byway_str,
    values: *const byway_str,
    n: usize,
    web_sockets: i32,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(engine, "engine")?;
        let web_sockets = match web_sockets {
            0 => WebSockets::Direct,
            1 => WebSockets::AsHttp,
            _ => return Err(Fail::Parameter(Status::E_ENUM, "web_sockets")),
        };
        let properties = pairs(names, values, n)?.into_iter().collect();
        *out = hand_out(engine, Arc::new(JdkProperties::new(&properties, web_sockets)));
        Ok(Status::OK)
    })
}

/// Makes a proxy selector from the settings of Windows: `server` is the value of `ProxyServer` (`http=h:p;https=h:p;socks=h:p`,
/// or one `h:p` for everything), `bypass` that of `ProxyOverride` (`<local>`, `*.corp`, `10.*`, separated by `;`).
///
/// Ownership: the caller owns one reference; the texts are copied.
/// Errors: `BYWAY_E_INVALID_PROXY`, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` for a text above 1 MiB, `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_windows(
    engine: *mut byway_engine,
    server: *const c_char,
    server_len: usize,
    bypass: *const c_char,
    bypass_len: usize,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(engine, "engine")?;
        let server = arguments::setting(server, server_len, "server")?;
        let bypass = arguments::setting(bypass, bypass_len, "bypass")?;
        *out = hand_out(engine, Arc::new(windows::proxy_server(server, bypass)?));
        Ok(Status::OK)
    })
}
