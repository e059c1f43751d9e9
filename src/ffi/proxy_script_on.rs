//! Proxy scripts behind their exports, in a library with the feature `script`.

use super::address::checked;
use super::arguments;
use super::call::Call;
use super::callbacks::Set;
use super::guard::Fail;
use super::handle;
use super::proxy_script::{
    BYWAY_PAC_ASK_LOOPBACK, BYWAY_PAC_BROWSER_CALENDAR, BYWAY_PAC_EMPTY_IS_DIRECT, BYWAY_PAC_EX,
    BYWAY_PAC_FIXED_ZONE, BYWAY_PAC_SOCKS_IS_5, Fetching, byway_pac_callbacks, byway_pac_options,
    unavailable,
};
use super::proxy_selector;
use crate::engine::Engine;
use crate::engine::routes::dns::Serving;
use crate::engine::routes::proxies::{Choosing, ProxySource};
use crate::engine::routes::script_proxies::{HostScripts, ScriptProxies, ScriptSettings};
use crate::engine::routes::system_proxies::MakeScript;
use crate::error::Error;
use crate::error::Status;
use crate::proxies::ProxyKind;
use crate::proxies::pac::{Calendar, NothingUsable, PacOptions};
use crate::script::{Limits, Zone};
use std::sync::{Arc, Weak};
use std::time::Duration;

struct HostSet(Arc<Set<byway_pac_callbacks>>, Weak<Engine>);

impl HostScripts for HostSet {
    fn fetch(&self, source: &Arc<ProxySource>, url: &str, serving: &Serving) -> Status {
        let Some(fetch) = self.0.raw().fetch else { return Status::E_NULL };
        let context = Call::lasting(serving.engine, serving.tag, serving.id, serving.left);
        let lent = proxy_selector::hand_out(Arc::clone(source), self.1.clone());
        let text = format!("{url}\0");
        // SAFETY: the host gave this function for this pointer; the arguments live until it returns, and the URL ends
        // in NUL.
        let status =
            unsafe { fetch(self.0.user_data(), lent, text.as_ptr().cast(), url.len(), context.as_ptr()) };
        handle::release(lent);
        Status(status)
    }
}

/// What scripts are run with.
pub(super) fn settings(
    engine: &Arc<Engine>,
    options: &byway_pac_options,
    fetching: Fetching,
) -> Result<ScriptSettings, Fail> {
    if options.flags & !63 != 0 {
        return Err(Fail::Parameter(Status::E_ENUM, "options.flags"));
    }
    let has = |bit: u32| options.flags & bit != 0;
    if !(-1440..=1440).contains(&options.utc_offset_minutes) {
        return Err(Fail::Parameter(Status::E_ARGUMENT, "options.utc_offset_minutes"));
    }
    let mut limits = Limits::default();
    if options.time_limit_ms != 0 {
        limits.time = Duration::from_millis(u64::from(options.time_limit_ms));
    }
    if options.memory_limit != 0 {
        let bytes = usize::try_from(options.memory_limit).ok().filter(|&bytes| bytes >= Limits::LEAST_MEMORY);
        let why = format!("{} bytes; expected at least {}", options.memory_limit, Limits::LEAST_MEMORY);
        limits.memory =
            bytes.ok_or_else(|| Error::new(Status::E_ARGUMENT, why).subject("options.memory_limit"))?;
    }
    let pac = PacOptions {
        limits,
        clock: engine.clock().clone(),
        zone: match has(BYWAY_PAC_FIXED_ZONE) {
            true => Zone::Fixed(options.utc_offset_minutes),
            false => Zone::System,
        },
        calendar: match has(BYWAY_PAC_BROWSER_CALENDAR) {
            true => Calendar::Browser,
            false => Calendar::Plain,
        },
        ex: has(BYWAY_PAC_EX),
        socks: if has(BYWAY_PAC_SOCKS_IS_5) { ProxyKind::Socks5h } else { ProxyKind::Socks4 },
        nothing_usable: match has(BYWAY_PAC_EMPTY_IS_DIRECT) {
            true => NothingUsable::Direct,
            false => NothingUsable::Error,
        },
        loopback_direct: !has(BYWAY_PAC_ASK_LOOPBACK),
        names: match options.names_limit {
            0 => PacOptions::default().names,
            limit => limit as usize,
        },
    };
    let own = arguments::array(options.my_addresses, options.my_addresses_len, "options.my_addresses")?;
    let mut own_addresses = (!options.my_addresses.is_null()).then(|| Vec::with_capacity(own.len()));
    for ip in own {
        if let Some(addresses) = &mut own_addresses {
            addresses.extend(checked(ip, "options.my_addresses")?.to_std());
        }
    }
    let resolver = handle::optional(options.dns, "options.dns")?.map(|dns| Arc::clone(&dns.0));
    let engine = Arc::downgrade(engine);
    let host = fetching.map(|set| Arc::new(HostSet(set, engine.clone())) as Arc<dyn HostScripts>);
    let refresh_ms = options.refresh_ms;
    Ok(ScriptSettings { options: pac, resolver, own_addresses, host, refresh_ms, engine })
}

pub(super) fn make(
    engine: &Arc<Engine>,
    options: &byway_pac_options,
    fetching: Fetching,
) -> Result<Arc<ProxySource>, Fail> {
    let settings = settings(engine, options, fetching)?;
    let url = arguments::text_of(options.url, "options.url")?;
    let made = match options.source.data.is_null() {
        true => ScriptProxies::new(url, settings)?,
        false => {
            let text = arguments::text_of(options.source, "options.source")?;
            ScriptProxies::with_text(url, text.to_owned(), settings)?
        }
    };
    Ok(ProxySource::new(Choosing::Script(made)))
}

pub(super) fn maker(
    engine: &Arc<Engine>,
    options: *const byway_pac_options,
    fetching: Fetching,
) -> Result<MakeScript, Fail> {
    let options = arguments::versioned_or_default(options, "options.pac")?;
    let settings = settings(engine, &options, fetching)?;
    Ok(Box::new(move |url| match ScriptProxies::new(url, settings.clone()) {
        Ok(made) => Ok(ProxySource::new(Choosing::Script(made))),
        // Nobody fetches: an error of the requests, because other settings may come.
        Err(error) if error.status() == Status::E_ARGUMENT => Ok(unavailable(url)),
        Err(error) => Err(error),
    }))
}

/// The script behind a proxy selector, also one that the system's settings name.
pub(super) fn with_script<T>(
    source: &Arc<ProxySource>,
    work: impl FnOnce(&ScriptProxies) -> Result<T, Fail>,
) -> Result<T, Fail> {
    match source.kind() {
        Choosing::Script(script) => work(script),
        Choosing::System(system) => match system.in_force().1.kind() {
            Choosing::Script(script) => work(script),
            _ => Err(Fail::Parameter(Status::E_STATE, "self")),
        },
        _ => Err(Fail::Parameter(Status::E_STATE, "self")),
    }
}

pub(super) fn set(source: &Arc<ProxySource>, bytes: &[u8], charset: Option<&str>) -> Result<(), Fail> {
    with_script(source, |script| {
        let text = crate::proxies::pac::text::decode(bytes, charset);
        Ok(text.inspect_err(|error| drop(script.fail(error.clone()))).and_then(|text| script.set(text))?)
    })
}

pub(super) fn failed(source: &Arc<ProxySource>, error: Error) -> Result<(), Fail> {
    with_script(source, |script| Ok(script.fail(error)?))
}

pub(super) fn url(source: &Arc<ProxySource>) -> Option<String> {
    with_script(source, |script| Ok(script.url().to_owned())).ok()
}
