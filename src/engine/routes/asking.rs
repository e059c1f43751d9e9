//! The questions of a selector: which proxies, which addresses; asked in place, taken later, given up.

use super::Target;
use super::dns::{self, HostDns, Resolver, Resolving, Serving};
use super::listen::Audience;
use super::open::{self, Open};
use super::proxies::{Choosing, HostProxies, ProxySource};
use super::reasons::Reasons;
use super::request::{DnsRequest, ProxyRequest};
#[cfg(feature = "script")]
use super::script_proxies::{Asker, Hearing, ScriptQuestion};
use crate::engine::Engine;
use crate::error::{Error, Result, Source, Status};
use crate::net::events::Listening;
use crate::net::{Address, Context, Event, EventKind, Listed, Lookup, Selector};
use crate::proxies::{self, Choice};
use crate::sys::slab::Shared;
use std::sync::Arc;

/// A question under way.
pub(super) enum Pending {
    None,
    Proxies(Shared<ProxyRequest>, Option<Open>),
    Names(Shared<DnsRequest>, Lookup, Option<Open>),
    #[cfg(feature = "script")]
    Script(Box<ScriptQuestion>),
}

#[inline]
pub(super) fn context<'a>(
    target: &'a Target,
    audience: &'a Audience<'a>,
    now: &'a dyn Fn() -> u64,
    early_selection: bool,
) -> Context<'a> {
    let mask = audience.listeners.mask();
    Context {
        address: &target.address,
        database: target.engine.database(),
        settings: target.engine.settings(),
        early_selection,
        now,
        listening: if mask == 0 { Listening::NOBODY } else { Listening::to(audience, mask) },
    }
}

/// A callback's status that means failure, as an error; statuses nobody defined count as the host's.
pub(super) fn refusal(status: Status) -> Error {
    let status = match status {
        known if known.is_error() && known.name() != "BYWAY_UNKNOWN" => known,
        _ => Status::E_HOST,
    };
    Error::bare(status).source(Source::Callback)
}

/// Who asks, and for what.
pub(super) struct Asking<'a> {
    pub(super) target: &'a Target,
    pub(super) serving: &'a Serving,
    pub(super) object: usize,
    /// Nothing can be taken later.
    pub(super) in_place: bool,
}

/// An address as proxy selectors see it.
pub(super) fn asked_target(address: &Address) -> proxies::Target<'_> {
    proxies::Target {
        scheme: address.scheme(),
        host: address.host().text(),
        port: address.port(),
        uri: address.uri(),
    }
}

#[cold]
pub(super) fn ask_proxies(
    core: &mut Selector,
    pending: &mut Pending,
    reasons: &mut Option<Box<Reasons>>,
    cx: &Context<'_>,
    asking: &Asking<'_>,
) -> Result<()> {
    if let Some(source) = &asking.target.proxies
        && let Some(answered) = ask_source(core, pending, reasons, cx, asking, source)?
    {
        return answered;
    }
    ask_default_proxies(core, pending, reasons, cx, asking)
}

/// Nobody, or a pass: the engine's default proxy selector, else DIRECT.
pub(super) fn ask_default_proxies(
    core: &mut Selector,
    pending: &mut Pending,
    reasons: &mut Option<Box<Reasons>>,
    cx: &Context<'_>,
    asking: &Asking<'_>,
) -> Result<()> {
    let default = asking.target.engine.default_proxies();
    if let Some(default) = default
        && let Some(answered) = ask_source(core, pending, reasons, cx, asking, &default)?
    {
        return answered;
    }
    core.answer_proxies(cx, [Listed::Direct])
}

/// `None` when the source passes.
fn ask_source(
    core: &mut Selector,
    pending: &mut Pending,
    reasons: &mut Option<Box<Reasons>>,
    cx: &Context<'_>,
    asking: &Asking<'_>,
    source: &Arc<ProxySource>,
) -> Result<Option<Result<()>>> {
    let asked = asked_target(&asking.target.address);
    let mut why = Vec::new();
    let leaf = match source.leaf(&asked, &mut why) {
        Ok(leaf) => leaf,
        Err(error) => return Ok(Some(core.fail_proxies(cx, error))),
    };
    if !why.is_empty() {
        reasons.get_or_insert_default().why = why;
    }
    let host = match leaf.kind() {
        Choosing::Fixed(list) => return Ok(Some(answer_list(core, reasons, cx, asking, list.clone()))),
        Choosing::BuiltIn(own) => {
            return Ok(Some(match own.select(&asked) {
                Ok(choice) => answer_choice(core, reasons, cx, asking, choice),
                Err(error) => core.fail_proxies(cx, error),
            }));
        }
        Choosing::Host(host) => host,
        #[cfg(feature = "script")]
        Choosing::Script(_) => {
            *pending = Pending::Script(Box::new(ScriptQuestion::new(leaf.clone(), &asked)));
            collect(core, pending, reasons, cx, asking)?;
            return Ok(Some(Ok(())));
        }
        _ => return Ok(Some(core.answer_proxies(cx, [Listed::Direct]))),
    };
    let request = Shared::new(ProxyRequest::new(asking.target.engine.next_id()));
    let asked = ask_host_proxies(host, asking, &request)?;
    settle_proxies(core, pending, reasons, cx, asking, request, asked)
}

/// Asks a host for the proxies of an address.
///
/// # Errors
/// As [`Engine::host_call`].
#[inline]
pub(super) fn ask_host_proxies(
    host: &Arc<dyn HostProxies>,
    asking: &Asking<'_>,
    request: &Shared<ProxyRequest>,
) -> Result<Asked, Status> {
    let call = || host.select(request, &asking.target.address, asking.serving);
    let left = || open::left(request, host, |host, request| host.canceled(request));
    asking.target.engine.ask_host(asking.object, call, left)
}

/// What a host's proxy selector came to; `None` when it passes.
pub(super) fn settle_proxies(
    core: &mut Selector,
    pending: &mut Pending,
    reasons: &mut Option<Box<Reasons>>,
    cx: &Context<'_>,
    asking: &Asking<'_>,
    mut request: Shared<ProxyRequest>,
    (status, open): Asked,
) -> Result<Option<Result<()>>> {
    match status {
        Status::OK => {
            let _ = request.finish(Ok(()));
        }
        Status::PENDING => {}
        Status::PASS => {
            request.cancel();
            return Ok(None);
        }
        failed => {
            request.cancel();
            return Ok(Some(core.fail_proxies(cx, refusal(failed))));
        }
    }
    if let Some(request) = request.get_mut() {
        let (answer, done) = request.parts_mut();
        return Ok(Some(match done.take() {
            Some(Ok(())) => answer_list(core, reasons, cx, asking, core::mem::take(&mut answer.list)),
            Some(Err(error)) => core.fail_proxies(cx, error),
            None => core.fail_proxies(cx, Error::bare(Status::E_ABANDONED)),
        }));
    }
    *pending = Pending::Proxies(request, open);
    collect(core, pending, reasons, cx, asking)?;
    Ok(Some(Ok(())))
}

/// What a selector of this library answered.
fn answer_choice(
    core: &mut Selector,
    reasons: &mut Option<Box<Reasons>>,
    cx: &Context<'_>,
    asking: &Asking<'_>,
    choice: Choice,
) -> Result<()> {
    reasons.get_or_insert_default().why.push(choice.why);
    answer_list(core, reasons, cx, asking, choice.proxies.to_vec())
}

/// A list in the order of its selector: proxies that failed lately go behind the others, and what becomes of it is watched.
fn answer_list(
    core: &mut Selector,
    reasons: &mut Option<Box<Reasons>>,
    cx: &Context<'_>,
    asking: &Asking<'_>,
    mut list: Vec<Listed>,
) -> Result<()> {
    let engine = &asking.target.engine;
    let moved = engine.order_proxies(&mut list, |proxy| {
        cx.listening.emit(EventKind::ProxyReinstated, || Event {
            proxy: Some(proxy),
            ..Event::new(EventKind::ProxyReinstated, core.id(), cx.address)
        });
    });
    if !moved.is_empty() {
        reasons.get_or_insert_default().moved = moved;
    }
    engine.try_proxies(core.id(), &list);
    core.answer_proxies(cx, list)
}

#[inline]
pub(super) fn ask_names(
    core: &mut Selector,
    pending: &mut Pending,
    cx: &Context<'_>,
    asking: &Asking<'_>,
    lookup: Lookup,
) -> Result<()> {
    let Asking { target, serving, object, .. } = *asking;
    let engine = &*target.engine;
    if !engine.routes.cache.is_off() && from_cache(core, cx, target, lookup) {
        return Ok(());
    }
    let host = match target.resolver.as_deref().map(Resolver::kind) {
        Some(Resolving::Host(host)) => host,
        Some(Resolving::Hosts(table)) => {
            let name = core.lookup_name(cx.address);
            let ips = table.lookup(name);
            return match ips.is_empty() {
                false => Ok(core.answer_dns(cx, lookup.request, ips, &[], true)?),
                true => {
                    let message = format!("{name} is not in the hosts table");
                    let error = Error::new(Status::E_UNKNOWN_HOST, message).subject(name);
                    Ok(core.fail_dns(cx, lookup.request, error)?)
                }
            };
        }
        Some(Resolving::System) | None => return ask_system(core, pending, cx, engine, lookup),
    };
    let request = Shared::new(DnsRequest::new(lookup_id(serving.id, lookup)));
    let name = core.lookup_c_name(cx.address);
    let asked = ask_host(host, engine, object, &request, name, serving)?;
    settle(core, pending, cx, asking, lookup, request, asked)
}

/// Number of a selector's lookup, as the host knows it.
#[inline]
pub(super) fn lookup_id(selector: u64, lookup: Lookup) -> u64 {
    selector << 16 | u64::from(lookup.request & 0xffff)
}

/// What a host's callback said, and the question if it was taken.
pub(super) type Asked = (Status, Option<Open>);

/// Asks a host for the addresses of a name.
///
/// # Errors
/// As [`Engine::host_call`].
#[inline]
pub(super) fn ask_host(
    host: &Arc<dyn HostDns>,
    engine: &Engine,
    object: usize,
    request: &Shared<DnsRequest>,
    name: &str,
    serving: &Serving,
) -> Result<Asked, Status> {
    let call = || host.lookup(request, name, serving);
    engine.ask_host(object, call, || open::left(request, host, |host, request| host.canceled(request)))
}

/// What a host's lookup came to.
#[inline]
pub(super) fn settle(
    core: &mut Selector,
    pending: &mut Pending,
    cx: &Context<'_>,
    asking: &Asking<'_>,
    lookup: Lookup,
    mut request: Shared<DnsRequest>,
    (status, open): Asked,
) -> Result<()> {
    let target = asking.target;
    match status {
        Status::OK | Status::PENDING => {}
        Status::PASS => {
            request.cancel();
            return ask_system(core, pending, cx, &target.engine, lookup);
        }
        failed => {
            request.cancel();
            return Ok(core.fail_dns(cx, lookup.request, refusal(failed))?);
        }
    }
    if let Some(sole) = request.get_mut() {
        // Nobody kept it: no lock, nothing copied.
        let (answer, done) = sole.parts_mut();
        match done.take() {
            Some(Err(error)) => core.fail_dns(cx, lookup.request, error)?,
            _ => {
                if !target.engine.routes.cache.is_off() {
                    remember(core, cx, target, answer.ips());
                }
                core.answer_dns(cx, lookup.request, answer.ips(), &answer.services, true)?;
            }
        }
        request.end();
        return Ok(());
    }
    if status == Status::OK {
        let _ = request.finish(Ok(()));
    }
    *pending = Pending::Names(request, lookup, open);
    collect(core, pending, &mut None, cx, asking)
}

fn resolver_id(target: &Target) -> u64 {
    target.resolver.as_ref().map_or(0, |resolver| resolver.id())
}

#[cold]
fn from_cache(core: &mut Selector, cx: &Context<'_>, target: &Target, lookup: Lookup) -> bool {
    let found = target.engine.routes.cache.get(resolver_id(target), core.lookup_name(cx.address));
    found.is_some_and(|ips| core.answer_dns(cx, lookup.request, &ips, &[], true).is_ok())
}

#[cold]
fn remember(core: &Selector, cx: &Context<'_>, target: &Target, ips: &[crate::net::Ip]) {
    target.engine.routes.cache.put(resolver_id(target), core.lookup_name(cx.address), ips);
}

#[cold]
fn ask_system(
    core: &mut Selector,
    pending: &mut Pending,
    cx: &Context<'_>,
    engine: &Engine,
    lookup: Lookup,
) -> Result<()> {
    let request = Shared::new(DnsRequest::new(engine.next_id()));
    let name = core.lookup_name(cx.address);
    match dns::ask_system(name, &request) {
        Ok(()) => {
            *pending = Pending::Names(request, lookup, None);
            Ok(())
        }
        Err(status) => Ok(core.fail_dns(cx, lookup.request, Error::bare(status).subject(name))?),
    }
}

/// Feeds the selector what has been answered meanwhile.
#[cold]
pub(super) fn collect(
    core: &mut Selector,
    pending: &mut Pending,
    reasons: &mut Option<Box<Reasons>>,
    cx: &Context<'_>,
    asking: &Asking<'_>,
) -> Result<()> {
    // Without scripts nobody asks further questions here.
    let _ = (&reasons, asking.in_place);
    match pending {
        #[cfg(feature = "script")]
        Pending::Script(question) => {
            let asker = Asker {
                engine: &asking.target.engine,
                resolver: asking.target.resolver.as_ref(),
                serving: asking.serving,
                object: asking.object,
                in_place: asking.in_place,
                hearing: Hearing {
                    listening: cx.listening,
                    selector: core.id(),
                    address: Some(cx.address),
                    compat: cx.settings.compat,
                },
            };
            let Some(answer) = question.drive(&asker)? else { return Ok(()) };
            *pending = Pending::None;
            match answer {
                Ok(choice) => answer_choice(core, reasons, cx, asking, choice),
                Err(error) => core.fail_proxies(cx, error),
            }
        }
        Pending::None => Ok(()),
        Pending::Proxies(request, _) => {
            let taken = request.read(|answer, done| {
                done.map(|done| match done {
                    Ok(()) => Ok(core::mem::take(&mut answer.list)),
                    Err(error) => Err(error.clone()),
                })
            });
            let Some(taken) = taken else { return Ok(()) };
            *pending = Pending::None;
            match taken {
                Ok(list) => answer_list(core, reasons, cx, asking, list),
                Err(error) => core.fail_proxies(cx, error),
            }
        }
        Pending::Names(request, lookup, _) => {
            let lookup = *lookup;
            let (answer, ended) = request.read(|answer, done| {
                let wanted = done.is_some() || cx.early_selection;
                let answer = if wanted { core::mem::take(answer) } else { Default::default() };
                (answer, done.cloned())
            });
            if ended.is_some() {
                *pending = Pending::None;
            } else if answer.ips().is_empty() && answer.services.is_empty() {
                return Ok(());
            }
            match ended {
                Some(Err(error)) => {
                    if !answer.ips().is_empty() {
                        core.answer_dns(cx, lookup.request, answer.ips(), &answer.services, false)?;
                    }
                    Ok(core.fail_dns(cx, lookup.request, error)?)
                }
                ended => Ok(core.answer_dns(
                    cx,
                    lookup.request,
                    answer.ips(),
                    &answer.services,
                    ended.is_some(),
                )?),
            }
        }
    }
}

/// Nobody waits for the pending answer any more; the host is told when it still may answer.
pub(super) fn give_up(pending: &mut Pending) {
    match core::mem::replace(pending, Pending::None) {
        Pending::None => {}
        Pending::Proxies(request, open) => open::give_up(&request, open),
        Pending::Names(request, _, open) => open::give_up(&request, open),
        #[cfg(feature = "script")]
        Pending::Script(question) => question.give_up(),
    }
}
