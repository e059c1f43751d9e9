//! Proxy selectors that ask a proxy auto-configuration script.

use super::address::byway_ip;
use super::arguments::{self, Versioned, byway_str};
use super::call::byway_call;
use super::callbacks::{self, Callbacks, Set};
use super::dns::{byway_dns, failure};
use super::engine::byway_engine;
use super::error::byway_error;
use super::guard::{Fail, call, call_or, call_quiet};
use super::handle;
use super::library::{Layout, layout};
#[cfg(not(feature = "script"))]
use super::proxy_script_off as on;
#[cfg(feature = "script")]
use super::proxy_script_on as on;
use super::proxy_selector::{self, byway_proxy_selector};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::Engine;
use crate::engine::routes::proxies::{Choosing, ProxySource};
use crate::error::Status;
use core::ffi::{c_char, c_void};
use std::sync::Arc;

/// `FindProxyForURLEx` is called when the script defines it, as on Windows.
pub const BYWAY_PAC_EX: u32 = 1;
/// The keyword `SOCKS` means SOCKS 5; without it SOCKS 4, as in browsers.
pub const BYWAY_PAC_SOCKS_IS_5: u32 = 2;
/// An answer that names no usable proxy means DIRECT, as in browsers; without it that is an error.
pub const BYWAY_PAC_EMPTY_IS_DIRECT: u32 = 4;
/// The script is asked about loopback hosts too; without it they are DIRECT.
pub const BYWAY_PAC_ASK_LOOPBACK: u32 = 8;
/// `dateRange` and `timeRange` do what they do in browsers; without it what they say: `timeRange(22, 6)` passes midnight.
pub const BYWAY_PAC_BROWSER_CALENDAR: u32 = 16;
/// Local time is `utc_offset_minutes` east of UTC; without it the system's.
pub const BYWAY_PAC_FIXED_ZONE: u32 = 32;

/// A proxy auto-configuration script. Start from `BYWAY_PAC_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_pac_options {
    /// `sizeof(byway_pac_options)`.
    pub struct_size: usize,
    /// Its URL or absolute path; appears in errors. A path or `file:` URL is read by byway when there is no `source`.
    pub url: byway_str,
    /// Its text, when that is at hand; `data` NULL: it is read or fetched.
    pub source: byway_str,
    /// Who resolves the names it asks for; NULL: the resolver of the address in question. Retained.
    pub dns: *mut byway_dns,
    /// This machine's addresses, for `myIpAddress`; NULL: those that the routing table prefers towards the internet. Not NULL
    /// with a length of 0: it has none.
    pub my_addresses: *const byway_ip,
    /// Their number.
    pub my_addresses_len: usize,
    /// A fetched script that is older in milliseconds is fetched anew by the next question, while it still serves; 0: only
    /// after `byway_proxy_selector_refresh` and after the network changed.
    pub refresh_ms: u64,
    /// Bytes of memory, at least 32 MiB; 0 means that.
    pub memory_limit: u64,
    /// Milliseconds of script time per run, counted on its thread's processor clock, so that a busy machine ends no good
    /// script; 0 means 250. A run that does not get them ends after 20 times as many on the wall, at least 10 000.
    pub time_limit_ms: u32,
    /// Different names one question may ask for; 0 means 20.
    pub names_limit: u32,
    /// See `BYWAY_PAC_FIXED_ZONE`; -1440 to 1440.
    pub utc_offset_minutes: i32,
    /// `BYWAY_PAC_EX` and the like.
    pub flags: u32,
}

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_pac_options {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_pac_options {
        struct_size: size_of::<Self>(),
        url: byway_str::NONE,
        source: byway_str::NONE,
        dns: core::ptr::null_mut(),
        my_addresses: core::ptr::null(),
        my_addresses_len: 0,
        refresh_ms: 0,
        memory_limit: 0,
        time_limit_ms: 0,
        names_limit: 0,
        utc_offset_minutes: 0,
        flags: 0,
    };
}

/// A host that fetches scripts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_pac_callbacks {
    /// `sizeof(byway_pac_callbacks)`.
    pub struct_size: usize,
    /// First argument of every function.
    pub user_data: *mut c_void,
    /// Runs once when the set is no longer in use. May be NULL.
    pub destroy: callbacks::byway_destroy,
    /// Wants the script at `url`, which is empty when it is to be discovered (WPAD). Hand it to `selector` with
    /// `byway_proxy_selector_set_script` and return `BYWAY_OK`; or retain `selector`, return `BYWAY_PENDING`, and call
    /// `byway_proxy_selector_set_script` or `byway_proxy_selector_script_failed` later, from any thread; or return an error.
    /// Called by a question that needs the script, by one at a time, never through the proxies it is about. A failed fetch is
    /// repeated by the first question after 8 seconds, 32 seconds, 2 minutes, then every 4 hours; one that has not been
    /// answered after 30 seconds by the next question.
    pub fetch: Option<
        unsafe extern "C-unwind" fn(
            user_data: *mut c_void,
            selector: *mut byway_proxy_selector,
            url: *const c_char,
            url_len: usize,
            call: *const byway_call,
        ) -> byway_status,
    >,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_pac_callbacks {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_pac_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
        fetch: None,
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_pac_callbacks {}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_pac_options {
        struct_size,
        url,
        source,
        dns,
        my_addresses,
        my_addresses_len,
        refresh_ms,
        memory_limit,
        time_limit_ms,
        names_limit,
        utc_offset_minutes,
        flags,
    }),
    layout!(byway_pac_callbacks { struct_size, user_data, destroy, fetch }),
];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_pac_options_init(options: *mut byway_pac_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// The host's fetching functions, kept for an engine.
pub(super) type Fetching = Option<Arc<Set<byway_pac_callbacks>>>;

/// Takes the callbacks over. From here on `destroy` runs whatever goes wrong.
pub(super) fn fetching(
    engine: &Arc<Engine>,
    callbacks: *const byway_pac_callbacks,
) -> Result<Fetching, Fail> {
    if callbacks.is_null() {
        return Ok(None);
    }
    let set = Set::register_in(callbacks, engine, "callbacks")?;
    if set.raw().fetch.is_none() {
        return Err(Fail::Parameter(Status::E_NULL, "callbacks.fetch"));
    }
    Ok(Some(set))
}

/// A selector for settings whose script nobody can run: every question is an error.
pub(super) fn unavailable(url: &str) -> Arc<ProxySource> {
    let plan = crate::proxies::system::Plan::Script(url.to_owned());
    ProxySource::new(Choosing::BuiltIn(Arc::new(plan)))
}

/// Makes a proxy selector from the text of a proxy auto-configuration script; short for `byway_proxy_selector_new_pac` with
/// `url` and `source`.
///
/// Ownership: the caller owns one reference; the texts are copied.
/// Errors: as `byway_proxy_selector_new_pac`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_script(
    engine: *mut byway_engine,
    name: *const c_char,
    name_len: usize,
    source: *const c_char,
    source_len: usize,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = &handle::shared(engine, "engine")?.0;
        let source = arguments::text(source, source_len, "source")?;
        let options = byway_pac_options {
            url: byway_str { data: name, len: name_len },
            source: byway_str { data: source.as_ptr().cast(), len: source.len() },
            ..byway_pac_options::INIT
        };
        *out = proxy_selector::hand_out(on::make(engine, &options, None)?, Arc::downgrade(engine));
        Ok(Status::OK)
    })
}

/// Makes a proxy selector that asks a proxy auto-configuration script: its text, a file that is read here, or what
/// `callbacks` fetches when the first question comes. A text that is at hand is loaded here, so one that does not parse,
/// throws, or defines no `FindProxyForURL` is an error now.
///
/// The script runs on threads of the library, without input and output, and with the engine's wall clock. Names it asks for
/// are resolved by `options->dns` or the address's own resolver, on the thread that drives the request, and are awaited as
/// any lookup: nobody else waits for a slow name or a slow script. A script that fails, or names nothing usable, is an
/// error of the request, never DIRECT, unless the engine says so.
///
/// Ownership: the caller owns one reference; the texts are copied. `callbacks->destroy` runs when the last user is gone, also
/// when this fails.
/// Errors: `BYWAY_E_PAC` with line and column, `BYWAY_E_TIMEOUT`, `BYWAY_E_LIMIT`, `BYWAY_E_OS` for the file,
/// `BYWAY_E_ARGUMENT` for a URL that nobody can fetch, a path that is no regular file, or an option out of range,
/// `BYWAY_E_ENUM`, `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_UTF8`, `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`; `BYWAY_E_UNSUPPORTED` in a
/// library built without the feature `script`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_pac(
    engine: *mut byway_engine,
    options: *const byway_pac_options,
    callbacks: *const byway_pac_callbacks,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let engine =
            handle::shared(engine, "engine").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let fetching = fetching(&engine.0, callbacks)?;
        let options = arguments::versioned(options, "options")?;
        *out = proxy_selector::hand_out(on::make(&engine.0, &options, fetching)?, Arc::downgrade(&engine.0));
        Ok(Status::OK)
    })
}

/// Hands a script in: the answer to `fetch`, or a newer text at any time. It is loaded here and in force from the next run on;
/// questions that waited for it go on. `charset` is what was said where it was fetched; without one a byte order mark
/// counts, else Latin-1. For a proxy selector of system settings it is the script they name.
///
/// Threads: any; waits for the script to load, at most twice its time limit by its thread's clock. Runs no host code.
/// Errors: `BYWAY_E_PAC` with line and column, `BYWAY_E_TIMEOUT`, `BYWAY_E_LIMIT`, `BYWAY_E_UTF8`, `BYWAY_E_UNSUPPORTED` for a
/// charset or a library without the feature `script`: the old text stays in force, questions that waited for a first one
/// get the error. `BYWAY_E_STATE` for a proxy selector without a script, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_set_script(
    self_: *mut byway_proxy_selector,
    source: *const c_char,
    source_len: usize,
    charset: *const c_char,
    charset_len: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let selector = proxy_selector::open(self_, "self")?;
        let bytes = arguments::bytes(source, source_len, "source")?;
        let charset = match charset.is_null() {
            true => None,
            false => Some(arguments::text(charset, charset_len, "charset")?),
        };
        on::set(selector, bytes, charset)?;
        Ok(Status::OK)
    })
}

/// The script could not be fetched: the answer to `fetch` that is none. Questions that wait get the error. `status` is a
/// `BYWAY_E_*`; `host_code` and the message go into the error.
///
/// Threads: any; runs no host code.
/// Errors: `BYWAY_E_STATE` for a proxy selector without a script, `BYWAY_E_UTF8`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_script_failed(
    self_: *mut byway_proxy_selector,
    status: byway_status,
    host_code: i64,
    message: *const c_char,
    len: usize,
) -> byway_status {
    call_quiet(|| {
        let selector = proxy_selector::open(self_, "self")?;
        on::failed(selector, failure(status, host_code, arguments::text(message, len, "message")?))?;
        Ok(Status::OK)
    })
}

/// URL of the script behind a proxy selector, empty when it is to be discovered (WPAD). Also after a shutdown.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_DONE` and no text when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_script_url(
    self_: *const byway_proxy_selector,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let selector = &handle::shared(self_, "self")?.0;
        let url = match selector.kind() {
            Choosing::System(system) => system.script_url(),
            _ => on::url(selector),
        };
        Ok(match url {
            Some(url) => {
                *out = text::hand_out(url);
                Status::OK
            }
            None => Status::DONE,
        })
    })
}

/// Reads what a proxy selector is made from again: the process's environment, the system's settings, a script's file; of one
/// that is made of others, all of them. A script that the host fetches is fetched anew by the next question, while the old
/// text still serves. On an error the old state stays in force.
///
/// Threads: any; reads files. Reading the process's environment must not run while another thread changes it.
/// Errors: those of the constructor; `BYWAY_E_STATE` for a proxy selector that is made from nothing that could be read again,
/// `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_refresh(
    self_: *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        proxy_selector::open(self_, "self")?.refresh()?;
        Ok(Status::OK)
    })
}
