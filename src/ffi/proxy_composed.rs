//! Proxy selectors made of others: exceptions around one, one per scheme, one per pattern.

use super::arguments::{self, Versioned, byway_str};
use super::engine::{self, byway_engine};
use super::error::byway_error;
use super::guard::{Fail, call, call_or};
use super::handle;
use super::library::{Layout, layout};
use super::proxy_selector::{self, byway_proxy_selector};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::routes::proxies::{Choosing, ProxySource, direct};
use crate::error::{Error, Status};
use crate::proxies::bypass::{BypassList, Style};
use crate::proxies::fixed::{Exceptions, Schemes};
use crate::proxies::no_proxy::{Dialect, NoProxy, Options, dialect_of};
use crate::proxies::rules::Rules;
use std::sync::Arc;

/// Chromium's rules: `*.corp`, `.corp`, `https://x:8443`, `10.0.0.0/8`, `<local>`, `<-loopback>`, separated by `,` or `;`;
/// later entries override earlier ones. A plain name is that name only.
pub const BYWAY_BYPASS_BROWSER: i32 = 0;
/// The same where plain names also cover everything they are a suffix of.
pub const BYWAY_BYPASS_BROWSER_SUFFIX: i32 = 1;
/// The `ProxyOverride` value of Windows: the same, also separated by blanks.
pub const BYWAY_BYPASS_WINDOWS: i32 = 2;
/// The exceptions of macOS: names, `*` patterns, addresses, networks whose trailing octets may be missing (`169.254/16`),
/// separated by `,` or line breaks. Loopback is no exception by itself.
pub const BYWAY_BYPASS_MACOS: i32 = 3;
/// `NO_PROXY` in the reading of `dialect`.
pub const BYWAY_BYPASS_NO_PROXY: i32 = 4;

/// The listed hosts are the only ones that are proxied.
pub const BYWAY_BYPASS_REVERSED: u32 = 1;
/// Loopback (and in the browser styles link-local) hosts are no exceptions by themselves. In the `NO_PROXY` style it counts
/// in the dialect `byway`; the others have rules of their own.
pub const BYWAY_BYPASS_PROXY_LOOPBACK: u32 = 2;
/// `NO_PROXY`, dialect `byway`: `.x.com` covers what is below `x.com` only.
pub const BYWAY_BYPASS_STRICT_DOT: u32 = 4;
/// `NO_PROXY`, dialect `byway`: blanks separate entries too.
pub const BYWAY_BYPASS_BLANK_SEPARATES: u32 = 8;
/// macOS: names without a dot are exceptions.
pub const BYWAY_BYPASS_EXCLUDE_SIMPLE: u32 = 16;

/// A list of hosts that are not proxied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_bypass_options {
    /// `sizeof(byway_bypass_options)`.
    pub struct_size: usize,
    /// The list.
    pub list: byway_str,
    /// `BYWAY_BYPASS_BROWSER` and the like: how it is written.
    pub style: i32,
    /// `BYWAY_BYPASS_REVERSED` and the like.
    pub flags: u32,
    /// Whose `NO_PROXY`: `byway` (also empty), `curl`, `go`, `python`, `chromium`, `node`.
    pub dialect: byway_str,
}

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_bypass_options {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_bypass_options {
        struct_size: size_of::<Self>(),
        list: byway_str::NONE,
        style: BYWAY_BYPASS_BROWSER,
        flags: 0,
        dialect: byway_str::NONE,
    };
}

pub(super) const LAYOUTS: &[Layout] =
    &[layout!(byway_bypass_options { struct_size, list, style, flags, dialect })];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_bypass_options_init(options: *mut byway_bypass_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

fn exceptions(options: &byway_bypass_options) -> Result<Exceptions, Fail> {
    let has = |bit: u32| options.flags & bit != 0;
    if options.flags & !31 != 0 {
        return Err(Fail::Parameter(Status::E_ENUM, "options.flags"));
    }
    let list = arguments::setting(options.list.data, options.list.len, "options.list")?;
    let browser = |style| {
        let list = BypassList::new(list, style);
        Exceptions::Bypass(list.with_implicit(!has(BYWAY_BYPASS_PROXY_LOOPBACK)))
    };
    let made = match options.style {
        BYWAY_BYPASS_BROWSER => browser(Style::Browser),
        BYWAY_BYPASS_BROWSER_SUFFIX => browser(Style::BrowserSuffix),
        BYWAY_BYPASS_WINDOWS => browser(Style::Windows),
        BYWAY_BYPASS_MACOS => Exceptions::Bypass(BypassList::macos(
            list.split([',', '\n', '\r']),
            has(BYWAY_BYPASS_EXCLUDE_SIMPLE),
        )),
        BYWAY_BYPASS_NO_PROXY => {
            let dialect = match arguments::text_of(options.dialect, "options.dialect")? {
                "" => Dialect::Byway,
                name => dialect_of(name, "options.dialect")?,
            };
            let switches = Options {
                loopback: !has(BYWAY_BYPASS_PROXY_LOOPBACK),
                strict_dot: has(BYWAY_BYPASS_STRICT_DOT),
                blank_separates: has(BYWAY_BYPASS_BLANK_SEPARATES),
            };
            Exceptions::NoProxy(Box::new(NoProxy::with_options(list, dialect, switches)))
        }
        _ => return Err(Fail::Parameter(Status::E_ENUM, "options.style")),
    };
    Ok(if has(BYWAY_BYPASS_REVERSED) { Exceptions::Only(Box::new(made)) } else { made })
}

fn source_of(selector: *const byway_proxy_selector, name: &'static str) -> Result<Arc<ProxySource>, Fail> {
    Ok(handle::optional(selector, name)?.map_or_else(direct, |selector| Arc::clone(&selector.0)))
}

/// Makes a proxy selector that says DIRECT for the hosts of a list and asks `inner` about all others. Entries that mean
/// nothing are not in use and named by `byway_proxy_selector_diagnostics`.
///
/// Ownership: the caller owns one reference; `inner` is retained, the texts are copied.
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_ENUM`, `BYWAY_E_ARGUMENT` for an unknown dialect, `BYWAY_E_UTF8`,
/// `BYWAY_E_BAD_HANDLE`; `BYWAY_E_LIMIT` when more than 16 proxy selectors lie one inside the other, or for a list above
/// 1 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_bypass(
    engine: *mut byway_engine,
    options: *const byway_bypass_options,
    inner: *const byway_proxy_selector,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(engine, "engine")?;
        let exceptions = exceptions(&arguments::versioned(options, "options")?)?;
        let inner = Arc::clone(&handle::shared(inner, "inner")?.0);
        let made = ProxySource::composed(Choosing::Excepted(exceptions, Arc::clone(&inner)), [&inner])?;
        *out = proxy_selector::hand_out(made, Arc::downgrade(engine));
        Ok(Status::OK)
    })
}

/// More parts are no configuration.
const MAX_PARTS: usize = 1 << 16;

/// Texts and the proxy selector for each; NULL for DIRECT.
fn parts<'a>(
    texts: *const byway_str,
    text_name: &'static str,
    selectors: *const *const byway_proxy_selector,
    n: usize,
) -> Result<Vec<(&'a str, Arc<ProxySource>)>, Fail> {
    if n > MAX_PARTS {
        return Err(Fail::Parameter(Status::E_LIMIT, "n"));
    }
    let texts = arguments::array(texts, n, text_name)?;
    let selectors = arguments::array(selectors, n, "selectors")?;
    let part = |(text, selector): (&byway_str, &*const byway_proxy_selector)| {
        Ok((arguments::text_of(*text, text_name)?, source_of(*selector, "selectors")?))
    };
    texts.iter().zip(selectors).map(part).collect()
}

/// Makes a proxy selector that asks one of `n` others by the URL's scheme. A NULL among them is DIRECT. `ws` and `wss` use
/// those of `http` and `https` when they have none of their own; every other scheme uses `otherwise`, NULL for DIRECT.
/// For a list of proxies see `byway_proxy_selector_new_fixed`.
///
/// Ownership: the caller owns one reference; the selectors are retained, the texts are copied.
/// Errors: `BYWAY_E_ARGUMENT` for a scheme named twice or an empty one, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` as in
/// `byway_proxy_selector_new_bypass`, `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_per_scheme(
    engine: *mut byway_engine,
    schemes: *const byway_str,
    selectors: *const *const byway_proxy_selector,
    n: usize,
    otherwise: *const byway_proxy_selector,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(engine, "engine")?;
        let parts = parts(schemes, "schemes", selectors, n)?;
        let mut made = Schemes::default();
        for (index, (scheme, source)) in parts.iter().enumerate() {
            let twice = parts.iter().take(index).any(|(known, _)| known.eq_ignore_ascii_case(scheme));
            if twice || scheme.is_empty() {
                let why = if twice { "named twice" } else { "empty" };
                return Err(Error::new(Status::E_ARGUMENT, format!("scheme {index} is {why}"))
                    .subject("schemes")
                    .into());
            }
            made.set(scheme, Arc::clone(source));
        }
        let otherwise = source_of(otherwise, "otherwise")?;
        made.set_fallback(Arc::clone(&otherwise));
        let inner = parts.iter().map(|(_, source)| source).chain([&otherwise]);
        *out = proxy_selector::hand_out(
            ProxySource::composed(Choosing::Schemes(made), inner)?,
            Arc::downgrade(engine),
        );
        Ok(Status::OK)
    })
}

/// Makes a proxy selector that asks one of `n` others, that of the first pattern that covers the target. A NULL among them
/// is DIRECT. A pattern is a list in the style `BYWAY_BYPASS_BROWSER` (`*.corp;10.0.0.0/8;https://x:8443`) without exceptions
/// of its own; `*` covers every host. Without a match `otherwise` is asked; when that is NULL the request fails with
/// `BYWAY_E_PROXY_SELECTOR`: DIRECT is said, with a last rule, never implied.
///
/// Ownership: the caller owns one reference; the selectors are retained, the texts are copied.
/// Errors: `BYWAY_E_ARGUMENT` naming the rule whose pattern means nothing, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` as in
/// `byway_proxy_selector_new_bypass`, `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_rules(
    engine: *mut byway_engine,
    patterns: *const byway_str,
    selectors: *const *const byway_proxy_selector,
    n: usize,
    otherwise: *const byway_proxy_selector,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = engine::open(engine, "engine")?;
        let parts = parts(patterns, "patterns", selectors, n)?;
        let mut made = Rules::new();
        for (pattern, source) in &parts {
            made.push(pattern, Arc::clone(source))?;
        }
        let otherwise = match otherwise.is_null() {
            true => None,
            false => Some(source_of(otherwise, "otherwise")?),
        };
        if let Some(otherwise) = &otherwise {
            made.set_otherwise(Arc::clone(otherwise));
        }
        let inner = parts.iter().map(|(_, source)| source).chain(&otherwise);
        *out = proxy_selector::hand_out(
            ProxySource::composed(Choosing::Rules(made), inner)?,
            Arc::downgrade(engine),
        );
        Ok(Status::OK)
    })
}

/// What is to be known about a proxy selector's configuration, one sentence a line: entries that are not in use, variables
/// that were ignored, where the system's settings came from, why a script was not fetched. Empty when there is nothing.
/// Also after a shutdown.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_diagnostics(
    self_: *const byway_proxy_selector,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        *out = text::hand_out(handle::shared(self_, "self")?.0.diagnostics().join("\n"));
        Ok(Status::OK)
    })
}
