//! [`Selector`]: which routes to try, in order. A state machine: it says what it needs (proxies, the addresses of a
//! name), is fed the answers, and gives [`Selection`]s. It does no input or output, runs no callbacks, holds no
//! lock between calls and reads no clock unless a failed route is met.
//!
//! OkHttp's `RouteSelector` (routes of one proxy per Selection, failed ones last) with byway's decisions about
//! proxies that cannot be tried, SOCKS, filters and partial answers; [`super::compat`] profiles restore upstream's.
//!
//! Layout: one inline block. Every route found is one 32-byte entry, never moved; a Selection is the entries that
//! carry its number, so giving one copies nothing and the whole history stays for the explanation.

use super::address::{Address, ExplicitProxy};
use super::compat::{self, Compat};
use super::database::RouteDatabase;
use super::dns::{self, Answer, Service};
use super::events::{Event, EventKind, Listening};
use super::filter::{Filter, Verdict};
use super::host::Literal;
use super::ip::Ip;
use super::order::Order;
use super::proxy::{Proxy, ProxyKind};
use super::route::{RouteKey, RouteRef, ech_word, flag};
use crate::error::{Error, Result, Source, Status};
use arrayvec::ArrayVec;
use std::sync::Arc;

/// Routes held without a second allocation.
pub const INLINE_ROUTES: usize = 16;
/// Proxies held without a second allocation.
const INLINE_PROXIES: usize = 4;
/// Most routes through one SOCKS4 or SOCKS5 proxy.
const MAX_SOCKS_ROUTES: usize = 16;
/// Most routes of one selector.
const MAX_ROUTES: usize = 1 << 20;
/// Most proxies of one list.
pub const MAX_PROXIES: usize = u16::MAX as usize - 1;

/// How an engine selects. Shared by all its selectors.
#[derive(Clone, Default)]
pub struct Settings {
    /// Profile.
    pub compat: Compat,
    /// Order of the addresses of one name.
    pub order: Order,
    /// Ask the resolver for IP literals too.
    pub resolve_literals: bool,
    /// A proxy selector that fails means DIRECT, not an error.
    pub direct_on_selector_error: bool,
    /// An empty proxy list means DIRECT, not an error.
    pub empty_is_direct: bool,
    /// Refuse targets whose address byway never sees, because a proxy resolves the name.
    pub deny_unresolved_targets: bool,
    /// Judges targets: resolved addresses and literals.
    pub target_filter: Option<Arc<Filter>>,
    /// Judges the addresses of proxies.
    pub hop_filter: Option<Arc<Filter>>,
}

/// What a step needs besides the selector itself. The floor above owns all of it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The address; the same in every call on one selector.
    pub address: &'a Arc<Address>,
    /// What failed before.
    pub database: &'a RouteDatabase,
    /// How the engine selects.
    pub settings: &'a Settings,
    /// Give the routes of the first family while the other is still awaited.
    pub early_selection: bool,
    /// Milliseconds of the database's clock.
    pub now: &'a dyn Fn() -> u64,
    /// Who listens.
    pub listening: Listening<'a>,
}

/// One entry of a proxy list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// No proxy.
    Direct,
    /// Through this one.
    Proxy(Arc<Proxy>),
    /// A null entry: an error, under OkHttp only when its turn comes.
    Null,
}

/// Whose name is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Whose {
    /// The address's own host.
    Target = 0,
    /// The proxy's.
    Proxy = 1,
}

/// A name to resolve; its text is [`Selector::lookup_name`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// Number to answer with; an answer with another number is late.
    pub request: u32,
    /// Whose name.
    pub whose: Whose,
}

/// Some routes of a selector. Immutable: later failures and answers do not change it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    number: u16,
    start: u32,
    end: u32,
    len: u32,
}

impl Selection {
    /// Number of routes, at least 1.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// Never: a Selection has at least one route.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// 1 for the selector's first.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// What the driver does next.
#[derive(Debug)]
pub enum Step {
    /// Routes to try.
    Selection(Selection),
    /// Ask the proxy selector with [`Address::uri`], then [`Selector::answer_proxies`] or
    /// [`Selector::fail_proxies`].
    NeedProxies,
    /// Resolve a name, then [`Selector::answer_dns`] or [`Selector::fail_dns`].
    NeedDns(Lookup),
    /// An answer is awaited.
    Wait,
    /// Nothing is left.
    Done,
    /// Nothing came of it. Under OkHttp only one proxy of the list failed, and another step goes on.
    Failed(Error),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    New,
    Idle,
    Proxies,
    Dns(Whose),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    Direct,
    Explicit,
    List,
}

/// One route found. `selection` 0 = not delivered yet.
#[derive(Clone, Copy)]
struct Entry {
    ip: [u8; 16],
    scope_id: u32,
    port: u16,
    family: u8,
    flags: u8,
    proxy: u16,
    aux: u16,
    selection: u16,
    position: u16,
}

impl Entry {
    fn hop(&self) -> Ip {
        Ip { bytes: self.ip, scope_id: self.scope_id, family: self.family, reserved: [0; 3] }
    }
}

/// What few routes have: a target resolved here, service metadata. Entries name it by position + 1.
struct Aux {
    target: Ip,
    service: Option<Arc<Service>>,
}

/// Why one entry of the proxy list cannot be tried.
struct Fault {
    proxy: u16,
    error: Error,
}

/// The state machine. Small, made in place, reset for the next use; it holds no address, engine or database.
pub struct Selector {
    id: u64,
    state: State,
    from: From,
    canceled: bool,
    /// A lookup is due that no step has named yet.
    unnamed: bool,
    /// Selections given.
    selections: u16,
    /// Position of the proxy whose names are asked for.
    current: u16,
    next_proxy: u32,
    proxy_count: u32,
    request: u32,
    fresh_start: u32,
    fresh: u32,
    postponed: u32,
    /// Faults already told in an error, or made up for by a Selection.
    told: u32,
    /// Addresses of the running lookup that were used before it was complete.
    early_taken: u32,
    inline: ArrayVec<Entry, INLINE_ROUTES>,
    spilled: Vec<Entry>,
    listed: ArrayVec<Listed, INLINE_PROXIES>,
    long_list: Vec<Listed>,
    aux: Vec<Aux>,
    targets: Vec<Ip>,
    target_services: Vec<Arc<Service>>,
    partial: Answer,
    faults: Vec<Fault>,
    /// Only when the name asked is not the host's text (OkHttp's text of a resolved proxy).
    odd_name: String,
}

impl Default for Selector {
    fn default() -> Selector {
        Selector::new(0)
    }
}

impl Selector {
    /// A selector with an id that events and routes carry; 0 is "none".
    #[inline]
    pub fn new(id: u64) -> Selector {
        Selector {
            id,
            state: State::New,
            from: From::Direct,
            canceled: false,
            unnamed: false,
            selections: 0,
            current: 0,
            next_proxy: 0,
            proxy_count: 0,
            request: 0,
            fresh_start: 0,
            fresh: 0,
            postponed: 0,
            told: 0,
            early_taken: 0,
            inline: ArrayVec::new_const(),
            spilled: Vec::new(),
            listed: ArrayVec::new_const(),
            long_list: Vec::new(),
            aux: Vec::new(),
            targets: Vec::new(),
            target_services: Vec::new(),
            partial: Answer::default(),
            faults: Vec::new(),
            odd_name: String::new(),
        }
    }

    /// As new, under another id, without moving or freeing the block.
    #[inline]
    pub fn reset(&mut self, id: u64) {
        self.id = id;
        self.state = State::New;
        self.from = From::Direct;
        (self.canceled, self.unnamed) = (false, false);
        (self.selections, self.current) = (0, 0);
        (self.next_proxy, self.proxy_count) = (0, 0);
        (self.fresh_start, self.fresh, self.postponed, self.told) = (0, 0, 0, 0);
        self.early_taken = 0;
        self.inline.clear();
        self.listed.clear();
        if self.has_rare() {
            self.reset_rare();
        }
    }

    fn has_rare(&self) -> bool {
        self.spilled.capacity()
            | self.long_list.capacity()
            | self.aux.capacity()
            | self.targets.capacity()
            | self.faults.capacity()
            | self.partial.ips.capacity()
            | self.partial.services.capacity()
            | self.odd_name.capacity()
            != 0
    }

    #[cold]
    fn reset_rare(&mut self) {
        self.spilled = Vec::new();
        self.long_list = Vec::new();
        self.aux = Vec::new();
        self.targets = Vec::new();
        self.target_services = Vec::new();
        self.faults = Vec::new();
        self.partial = Answer::default();
        self.odd_name = String::new();
    }

    /// Its id.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// From now on every step fails with `E_CANCELED`.
    pub fn cancel(&mut self) {
        self.canceled = true;
    }

    /// Works out whom to ask for proxies: [`Step::NeedProxies`], or [`Step::Done`] when that is settled already.
    /// [`Selector::step`] does it too; a host that has the proxy selector asked early calls this first.
    pub fn start(&mut self, cx: &Context<'_>) -> Step {
        if self.state != State::New {
            return Step::Done;
        }
        self.state = State::Idle;
        let silent = cx.settings.compat == Compat::OkHttp3;
        if !silent {
            cx.listening.emit(EventKind::ProxySelectStart, || Event {
                subject: cx.address.uri(),
                ..Event::new(EventKind::ProxySelectStart, self.id, cx.address)
            });
        }
        self.proxy_count = 1;
        match cx.address.explicit_proxy() {
            Some(ExplicitProxy::Direct) => self.from = From::Direct,
            Some(ExplicitProxy::Proxy(_)) => self.from = From::Explicit,
            None if cx.address.proxy_selector() == 0 => self.from = From::Direct,
            None if cx.settings.compat == Compat::OkHttp5 && !cx.address.uri_has_host() => {
                self.from = From::Direct
            }
            None => {
                self.proxy_count = 0;
                self.state = State::Proxies;
                return Step::NeedProxies;
            }
        }
        self.proxies_known(cx, None);
        Step::Done
    }

    fn proxies_known(&self, cx: &Context<'_>, error: Option<&Error>) {
        if !cx.listening.wants(EventKind::ProxySelectEnd) || cx.settings.compat == Compat::OkHttp3 {
            return;
        }
        let explicit;
        let proxies = match (self.from, cx.address.explicit_proxy()) {
            (From::List, _) => self.list(),
            (From::Explicit, Some(ExplicitProxy::Proxy(proxy))) => {
                explicit = [Listed::Proxy(Arc::clone(proxy))];
                &explicit
            }
            _ if error.is_some() => &[],
            _ => &[Listed::Direct][..],
        };
        cx.listening.emit(EventKind::ProxySelectEnd, || Event {
            subject: cx.address.uri(),
            proxies,
            error,
            ..Event::new(EventKind::ProxySelectEnd, self.id, cx.address)
        });
    }

    #[inline]
    fn list(&self) -> &[Listed] {
        if self.long_list.is_empty() { &self.listed } else { &self.long_list }
    }

    /// The proxy selector's answer, in its order.
    ///
    /// # Errors
    /// `E_STATE` when nothing was asked. Under OkHttp also what [`Selector::fail_proxies`] returns.
    pub fn answer_proxies(
        &mut self,
        cx: &Context<'_>,
        proxies: impl IntoIterator<Item = Listed>,
    ) -> Result<()> {
        if self.state != State::Proxies {
            return Err(Error::new(Status::E_STATE, "no proxies were asked for"));
        }
        let okhttp = cx.settings.compat != Compat::Byway;
        for (i, listed) in proxies.into_iter().enumerate() {
            if listed == Listed::Null && !okhttp {
                return self
                    .fail_proxies(cx, Error::new(Status::E_NULL, format!("proxy {i} of the list is NULL")));
            }
            if i >= MAX_PROXIES {
                let error =
                    Error::new(Status::E_LIMIT, format!("more than {MAX_PROXIES} proxies in one list"));
                return self.fail_proxies(cx, error);
            }
            if let Err(full) = self.listed.try_push(listed) {
                if self.long_list.is_empty() {
                    self.long_list.extend(self.listed.iter().cloned());
                }
                self.long_list.push(full.element());
            }
        }
        if self.list().is_empty() {
            if !okhttp && !cx.settings.empty_is_direct {
                let error =
                    Error::new(Status::E_EMPTY_ANSWER, "the proxy selector answered without any proxy");
                return self.fail_proxies(cx, error.source(Source::Callback));
            }
            self.from = From::Direct;
            self.proxy_count = 1;
        } else {
            self.from = From::List;
            self.proxy_count = self.list().len() as u32;
        }
        self.state = State::Idle;
        self.proxies_known(cx, None);
        Ok(())
    }

    /// The proxy selector failed.
    ///
    /// # Errors
    /// Under OkHttp the error itself, which there leaves the constructor; but 5 takes an argument error as DIRECT.
    /// byway's own rule never fails here: the next step does, or goes DIRECT by the engine's policy.
    pub fn fail_proxies(&mut self, cx: &Context<'_>, error: Error) -> Result<()> {
        if self.state != State::Proxies {
            return Err(Error::new(Status::E_STATE, "no proxies were asked for"));
        }
        self.listed.clear();
        self.long_list.clear();
        self.state = State::Idle;
        let direct = match cx.settings.compat {
            Compat::Byway => cx.settings.direct_on_selector_error,
            Compat::OkHttp5 => error.status() == Status::E_ARGUMENT,
            Compat::OkHttp3 => false,
        };
        if direct {
            self.from = From::Direct;
            self.proxy_count = 1;
            self.proxies_known(cx, (cx.settings.compat == Compat::Byway).then_some(&error));
            return Ok(());
        }
        self.from = From::List;
        self.proxy_count = 0;
        if cx.settings.compat != Compat::Byway {
            return Err(error);
        }
        let status = match error.status() {
            known @ (Status::E_CANCELED
            | Status::E_TIMEOUT
            | Status::E_EMPTY_ANSWER
            | Status::E_ABANDONED) => known,
            _ => Status::E_PROXY_SELECTOR,
        };
        let wrapped = Error::new(status, format!("the proxy selector failed: {}", error.message()))
            .subject(cx.address.uri())
            .source(error.found_by())
            .host(error.host_code())
            .cause(error);
        self.proxies_known(cx, Some(&wrapped));
        self.faults.push(Fault { proxy: u16::MAX, error: wrapped });
        Ok(())
    }

    /// True when a step may still give routes or an error; asks nobody.
    pub fn may_have_next(&self) -> bool {
        self.state != State::Idle
            || self.fresh > 0
            || self.postponed > 0
            || self.next_proxy < self.proxy_count
            || (self.told as usize) < self.faults.len()
    }

    /// Goes on until routes are there or something is needed.
    #[inline]
    pub fn step(&mut self, cx: &Context<'_>) -> Step {
        if self.canceled {
            return Step::Failed(Error::new(Status::E_CANCELED, "canceled").source(Source::Engine));
        }
        loop {
            if self.fresh > 0 {
                return self.give_fresh();
            }
            match self.state {
                State::Idle => {}
                State::New => match self.start(cx) {
                    Step::Done => {}
                    step => return step,
                },
                State::Dns(whose) if self.unnamed => {
                    self.unnamed = false;
                    return Step::NeedDns(Lookup { request: self.request, whose });
                }
                State::Proxies | State::Dns(_) => return Step::Wait,
            }
            if cx.settings.compat != Compat::Byway && (self.told as usize) < self.faults.len() {
                return self.give_faults();
            }
            if self.next_proxy < self.proxy_count {
                // The position moves on first: whatever comes of this proxy, it is used up.
                self.current = self.next_proxy as u16;
                self.next_proxy += 1;
                self.early_taken = 0;
                if let Some(step) = self.begin_proxy(cx) {
                    return step;
                }
            } else if self.postponed > 0 {
                return self.give_postponed();
            } else {
                return self.give_faults();
            }
        }
    }

    fn give_fresh(&mut self) -> Step {
        self.selections += 1;
        let end = self.entries().len() as u32;
        let selection = Selection { number: self.selections, start: self.fresh_start, end, len: self.fresh };
        self.fresh_start = end;
        self.fresh = 0;
        self.told = self.faults.len() as u32;
        Step::Selection(selection)
    }

    fn give_postponed(&mut self) -> Step {
        self.selections += 1;
        let number = self.selections;
        let entries =
            if self.spilled.is_empty() { self.inline.as_mut_slice() } else { self.spilled.as_mut_slice() };
        for entry in entries.iter_mut().filter(|e| e.selection == 0 && e.flags & flag::POSTPONED != 0) {
            entry.selection = number;
        }
        let end = entries.len() as u32;
        let selection = Selection { number, start: 0, end, len: self.postponed };
        self.postponed = 0;
        self.fresh_start = end;
        self.told = self.faults.len() as u32;
        Step::Selection(selection)
    }

    fn give_faults(&mut self) -> Step {
        let untold = self.faults.get(self.told as usize..).unwrap_or_default();
        let Some(first) = untold.first() else { return Step::Done };
        let error = if untold.len() == 1 {
            first.error.clone()
        } else {
            let same = untold.iter().all(|fault| fault.error.status() == first.error.status());
            let status = if same { first.error.status() } else { Status::E_NO_ROUTE };
            Error::new(
                status,
                format!("no route: {} entries failed, first: {}", untold.len(), first.error.message()),
            )
            .subject(first.error.about())
            .source(first.error.found_by())
            .causes(untold.iter().map(|fault| fault.error.clone()))
        };
        self.told = self.faults.len() as u32;
        Step::Failed(error)
    }

    /// The proxy at the current position; `None` for DIRECT and null.
    #[inline]
    fn proxy_at<'a>(&'a self, position: u16, address: &'a Address) -> Option<&'a Arc<Proxy>> {
        match self.from {
            From::Direct => None,
            From::Explicit => match address.explicit_proxy() {
                Some(ExplicitProxy::Proxy(proxy)) => Some(proxy),
                _ => None,
            },
            From::List => match self.list().get(usize::from(position)) {
                Some(Listed::Proxy(proxy)) => Some(proxy),
                _ => None,
            },
        }
    }

    /// Begins with one proxy. `None` = go on, this one is through.
    #[inline]
    fn begin_proxy(&mut self, cx: &Context<'_>) -> Option<Step> {
        if cx.settings.compat != Compat::Byway {
            return self.begin_proxy_okhttp(cx);
        }
        let Some(proxy) = self.proxy_at(self.current, cx.address) else {
            return match cx.address.host().literal() {
                Literal::Ip(ip) if !cx.settings.resolve_literals => {
                    self.add_direct(cx, &[ip], None);
                    None
                }
                _ => Some(self.ask(cx, Whose::Target)),
            };
        };
        let (kind, port_ok) = (proxy.kind(), proxy.usable_port().is_some());
        if !port_ok {
            let error = proxy.check_port().err().unwrap_or_else(|| Error::bare(Status::E_INVALID_PORT));
            return self.fault(cx, error);
        }
        let hop = proxy.ip();
        let literal = cx.address.host().ip();
        if let Some(ip) = literal {
            if cx.settings.target_filter.as_ref().is_some_and(|filter| filter.check(ip) == Verdict::Deny) {
                return self.fault(cx, filtered(cx.address.host().text()));
            }
        } else if !kind.resolves_locally() && cx.settings.deny_unresolved_targets {
            let error = Error::new(
                Status::E_FILTERED,
                "the proxy would resolve this name, unseen by the address filter",
            );
            return self.fault(cx, error.subject(cx.address.host().text()).source(Source::Engine));
        }
        self.targets.clear();
        self.target_services.clear();
        if kind.resolves_locally() {
            match literal {
                Some(ip) => self.targets.push(Ip { scope_id: 0, ..ip }),
                None => return Some(self.ask(cx, Whose::Target)),
            }
        }
        self.reach_proxy(cx, hop)
    }

    /// The target is settled; the proxy's own address is next.
    fn reach_proxy(&mut self, cx: &Context<'_>, hop: Option<Ip>) -> Option<Step> {
        match hop {
            Some(ip) if !cx.settings.resolve_literals => {
                self.add_through_proxy(cx, &[ip], None);
                None
            }
            _ => Some(self.ask(cx, Whose::Proxy)),
        }
    }

    #[inline]
    fn ask(&mut self, cx: &Context<'_>, whose: Whose) -> Step {
        self.state = State::Dns(whose);
        self.request = self.request.wrapping_add(1);
        cx.listening.emit(EventKind::DnsStart, || Event {
            subject: self.lookup_name(cx.address),
            ..Event::new(EventKind::DnsStart, self.id, cx.address)
        });
        Step::NeedDns(Lookup { request: self.request, whose })
    }

    /// The name of the running lookup; empty when there is none.
    #[inline]
    pub fn lookup_name<'a>(&'a self, address: &'a Address) -> &'a str {
        match self.state {
            State::Dns(Whose::Target) => address.host().text(),
            State::Dns(Whose::Proxy) if !self.odd_name.is_empty() => &self.odd_name,
            State::Dns(Whose::Proxy) => {
                self.proxy_at(self.current, address).map_or("", |proxy| proxy.host().text())
            }
            _ => "",
        }
    }

    /// The running lookup.
    pub fn lookup(&self) -> Option<Lookup> {
        match self.state {
            State::Dns(whose) => Some(Lookup { request: self.request, whose }),
            _ => None,
        }
    }

    /// Upstream's `nextRoutes`. An error ends the step; the next one goes on with the following proxy.
    #[cold]
    fn begin_proxy_okhttp(&mut self, cx: &Context<'_>) -> Option<Step> {
        let null =
            self.from == From::List && self.list().get(usize::from(self.current)) == Some(&Listed::Null);
        if null {
            return Some(Step::Failed(Error::new(Status::E_NULL, "a null proxy in the list")));
        }
        self.odd_name.clear();
        self.targets.clear();
        let address = cx.address;
        let Some(proxy) = self.proxy_at(self.current, address).cloned() else {
            return self.literal_or_ask_okhttp(
                cx,
                Whose::Target,
                address.host().literal(),
                address.host().text(),
            );
        };
        if proxy.kind().is_socks() {
            let hop = (Ip::NONE, address.port());
            self.add_entries(cx, [(0, hop.0, Ip::NONE)].into_iter(), hop.1, None, &[]);
            return None;
        }
        let text = proxy.resolved().map_or_else(|| proxy.host().text().to_owned(), compat::java_ip_text);
        if proxy.usable_port().is_none() {
            let message = format!("No route to {text}:{}; port is out of range", proxy.port());
            return Some(Step::Failed(Error::new(Status::E_INVALID_PORT, message).subject(text)));
        }
        // A scoped literal fails the loose test and is handed to the resolver.
        let literal = match proxy.resolved() {
            Some(ip) if ip.scope_id == 0 => Literal::Ip(ip),
            Some(_) => Literal::Name,
            None => proxy.host().literal(),
        };
        if proxy.resolved().is_some() {
            self.odd_name.clone_from(&text);
        }
        self.literal_or_ask_okhttp(cx, Whose::Proxy, literal, &text)
    }

    fn literal_or_ask_okhttp(
        &mut self,
        cx: &Context<'_>,
        whose: Whose,
        literal: Literal,
        text: &str,
    ) -> Option<Step> {
        match literal {
            Literal::Ip(ip) if cx.settings.compat == Compat::OkHttp5 => {
                match whose {
                    Whose::Target => self.add_direct(cx, &[ip], None),
                    Whose::Proxy => self.add_through_proxy(cx, &[ip], None),
                }
                return None;
            }
            Literal::Unparsable if cx.settings.compat == Compat::OkHttp5 => {
                let why = if text.contains(':') {
                    "invalid IPv6 address literal"
                } else {
                    "Name or service not known"
                };
                return Some(Step::Failed(
                    Error::new(Status::E_UNKNOWN_HOST, format!("{text}: {why}")).subject(text),
                ));
            }
            _ => {}
        }
        let step = self.ask(cx, whose);
        if cx.settings.compat == Compat::OkHttp5 && compat::canonical_host(text).is_none() {
            self.state = State::Idle;
            let error = Error::new(Status::E_ARGUMENT, format!("unexpected hostname: {text}"));
            return Some(Step::Failed(error.subject(text)));
        }
        Some(step)
    }

    /// Part or all of a resolver's answer to the running lookup, in its order.
    ///
    /// # Errors
    /// `E_STATE` for a lookup that is not running (a late or second answer), `E_LIMIT` for more addresses than
    /// [`dns::MAX_ADDRESSES`].
    #[inline]
    pub fn answer_dns(
        &mut self,
        cx: &Context<'_>,
        request: u32,
        ips: &[Ip],
        services: &[Arc<Service>],
        last: bool,
    ) -> Result<(), Status> {
        let State::Dns(whose) = self.state else { return Err(Status::E_STATE) };
        if request != self.request {
            return Err(Status::E_STATE);
        }
        if last && self.partial.ips.is_empty() && self.partial.services.is_empty() {
            if ips.len() > dns::MAX_ADDRESSES {
                return Err(Status::E_LIMIT);
            }
            self.resolved(cx, whose, ips, services);
            return Ok(());
        }
        self.answer_partly(cx, whose, ips, services, last)
    }

    fn answer_partly(
        &mut self,
        cx: &Context<'_>,
        whose: Whose,
        ips: &[Ip],
        services: &[Arc<Service>],
        last: bool,
    ) -> Result<(), Status> {
        if self.partial.ips.len() + ips.len() > dns::MAX_ADDRESSES
            || self.partial.services.len() + services.len() > dns::MAX_SERVICES
        {
            return Err(Status::E_LIMIT);
        }
        self.partial.ips.extend_from_slice(ips);
        self.partial.services.extend_from_slice(services);
        // The target of a SOCKS proxy is only half of a route.
        let makes_routes = whose == Whose::Proxy || self.proxy_at(self.current, cx.address).is_none();
        if !last && !(cx.early_selection && makes_routes) {
            return Ok(());
        }
        let answer = std::mem::take(&mut self.partial);
        if last {
            self.resolved(cx, whose, &answer.ips, &answer.services);
        } else {
            let fresh = answer.ips.get(self.early_taken as usize..).unwrap_or_default();
            self.early_taken = answer.ips.len() as u32;
            self.add_answer(cx, whose, fresh, &answer.services);
            self.partial = answer;
        }
        Ok(())
    }

    /// The lookup failed. What already arrived counts as the answer: one family that fails does not fail the call.
    ///
    /// # Errors
    /// `E_STATE` for a lookup that is not running.
    pub fn fail_dns(&mut self, cx: &Context<'_>, request: u32, error: Error) -> Result<(), Status> {
        let State::Dns(whose) = self.state else { return Err(Status::E_STATE) };
        if request != self.request {
            return Err(Status::E_STATE);
        }
        if !self.partial.ips.is_empty() {
            let answer = std::mem::take(&mut self.partial);
            self.resolved(cx, whose, &answer.ips, &answer.services);
            return Ok(());
        }
        self.partial.clear();
        let error =
            if error.about().is_empty() { error.subject(self.lookup_name(cx.address)) } else { error };
        self.lookup_failed(cx, error);
        Ok(())
    }

    fn lookup_failed(&mut self, cx: &Context<'_>, error: Error) {
        if cx.settings.compat == Compat::Byway {
            cx.listening.emit(EventKind::DnsEnd, || Event {
                subject: self.lookup_name(cx.address),
                error: Some(&error),
                ..Event::new(EventKind::DnsEnd, self.id, cx.address)
            });
        }
        self.state = State::Idle;
        self.fault(cx, error);
    }

    /// The whole answer is here.
    #[inline]
    fn resolved(&mut self, cx: &Context<'_>, whose: Whose, ips: &[Ip], services: &[Arc<Service>]) {
        if ips.is_empty() {
            let name = self.lookup_name(cx.address).to_owned();
            let message = format!("DNS returned no addresses for {name}");
            self.lookup_failed(
                cx,
                Error::new(Status::E_UNKNOWN_HOST, message).subject(name).source(Source::Callback),
            );
            return;
        }
        cx.listening.emit(EventKind::DnsEnd, || Event {
            subject: self.lookup_name(cx.address),
            ips,
            ..Event::new(EventKind::DnsEnd, self.id, cx.address)
        });
        let fresh = ips.get(self.early_taken as usize..).unwrap_or_default();
        self.early_taken = 0;
        if !fresh.is_empty() {
            self.add_answer(cx, whose, fresh, services);
        }
        self.state = State::Idle;
        if whose == Whose::Target && !self.targets.is_empty() {
            let hop = self.proxy_at(self.current, cx.address).and_then(|proxy| proxy.ip());
            // Either adds the routes, or begins a lookup that the next step names.
            self.unnamed = self.reach_proxy(cx, hop).is_some();
        }
    }

    #[inline]
    fn add_answer(&mut self, cx: &Context<'_>, whose: Whose, ips: &[Ip], services: &[Arc<Service>]) {
        let socks_target = whose == Whose::Target && self.proxy_at(self.current, cx.address).is_some();
        if socks_target {
            self.keep_targets(cx, ips, services);
            return;
        }
        let service = if services.is_empty() {
            None
        } else {
            let last_wins = cx.settings.compat != Compat::Byway;
            dns::service_for(services, self.lookup_name(cx.address), last_wins)
        };
        let service = if cx.settings.compat == Compat::OkHttp3 { None } else { service };
        match whose {
            Whose::Target => self.add_direct(cx, ips, service),
            Whose::Proxy => self.add_through_proxy(cx, ips, service),
        }
    }

    /// Targets for a SOCKS4 or SOCKS5 proxy: filtered, in order. SOCKS4 carries IPv4 only.
    fn keep_targets(&mut self, cx: &Context<'_>, ips: &[Ip], services: &[Arc<Service>]) {
        let name = cx.address.host().text();
        let v4_only =
            self.proxy_at(self.current, cx.address).is_some_and(|proxy| proxy.kind() == ProxyKind::Socks4);
        let filter = cx.settings.target_filter.as_deref();
        let mut denied = Vec::new();
        let targets = &mut self.targets;
        cx.settings.order.visit(ips, |i, ip| {
            let ip = Ip { scope_id: 0, ..ip.unmapped() };
            if filter.is_some_and(|filter| filter.check(ip) == Verdict::Deny) {
                denied.push((i, Ip::NONE, ip));
            } else if !v4_only || ip.family == super::ip::V4 {
                targets.push(ip);
            }
        });
        self.target_services.extend_from_slice(services);
        let from = self.entries().len();
        self.add_entries(cx, std::iter::empty(), 0, None, &denied);
        if !self.targets.is_empty() {
            self.emit_added(cx, from);
        } else {
            self.emit_added(cx, from);
            let error = match denied.is_empty() {
                false => filtered(name),
                true => Error::new(Status::E_UNKNOWN_HOST, "no IPv4 address, and SOCKS4 carries no other")
                    .subject(name),
            };
            self.fault(cx, error);
        }
    }

    #[inline]
    fn add_direct(&mut self, cx: &Context<'_>, ips: &[Ip], service: Option<Arc<Service>>) {
        let order = self.order(cx);
        let from = self.entries().len();
        let ips = Ordered { ips, order };
        self.add_ordered(cx, ips, cx.address.port(), service, cx.settings.target_filter.as_deref());
        self.after_adding(cx, from);
    }

    fn order(&self, cx: &Context<'_>) -> Order {
        match cx.settings.compat {
            // OkHttp 3 keeps the resolver's order.
            Compat::OkHttp3 => Order { interleave: false, ..cx.settings.order },
            _ => cx.settings.order,
        }
    }

    fn add_through_proxy(&mut self, cx: &Context<'_>, ips: &[Ip], service: Option<Arc<Service>>) {
        let Some(port) = self.proxy_at(self.current, cx.address).and_then(|proxy| proxy.usable_port()) else {
            return;
        };
        let from = self.entries().len();
        if self.targets.is_empty() {
            let ips = Ordered { ips, order: self.order(cx) };
            self.add_ordered(cx, ips, port, service, cx.settings.hop_filter.as_deref());
            self.after_adding(cx, from);
            return;
        }
        // SOCKS4 and SOCKS5: every target through the proxy's first address, then the first target through its
        // others.
        let service = dns::service_for(&self.target_services, cx.address.host().text(), false).or(service);
        let filter = cx.settings.hop_filter.as_deref();
        let mut hops = Vec::with_capacity(ips.len());
        let mut filtered_hops = Vec::new();
        self.order(cx).visit(ips, |i, ip| {
            let ip = ip.unmapped();
            match filter.is_some_and(|filter| filter.check(ip) == Verdict::Deny) {
                true => filtered_hops.push((i, ip, Ip::NONE)),
                false => hops.push((i, ip)),
            }
        });
        let targets = std::mem::take(&mut self.targets);
        if let (Some(&(_, first_hop)), Some(&first_target)) = (hops.first(), targets.first()) {
            let through_first = targets.iter().enumerate().map(|(i, &target)| (i, first_hop, target));
            let through_others = hops.iter().skip(1).map(|&(i, hop)| (i, hop, first_target));
            self.add_entries(
                cx,
                through_first.chain(through_others).take(MAX_SOCKS_ROUTES),
                port,
                service,
                &[],
            );
        }
        self.add_entries(cx, std::iter::empty(), port, None, &filtered_hops);
        self.targets = targets;
        self.after_adding(cx, from);
    }

    /// The hot path: the addresses of one name become entries.
    #[inline]
    fn add_ordered(
        &mut self,
        cx: &Context<'_>,
        ips: Ordered<'_>,
        port: u16,
        service: Option<Arc<Service>>,
        filter: Option<&Filter>,
    ) {
        let deduped: Vec<Ip>;
        let mut list = ips.ips;
        if ips.order.dedup && list.len() > 1 {
            let mut copy = list.to_vec();
            Order { interleave: false, ..ips.order }.apply(&mut copy);
            deduped = copy;
            list = &deduped;
        }
        let base = self.base(cx, port, service);
        let mut checker = (!cx.database.is_empty()).then(|| cx.database.checker(cx.now));
        ips.order.visit(list, |position, ip| {
            let ip = ip.unmapped();
            let mut entry = base.entry(position, ip);
            if filter.is_some_and(|filter| filter.check(ip) == Verdict::Deny) {
                entry.flags |= flag::FILTERED;
            } else if let Some(checker) = &mut checker
                && checker.should_postpone(&base.key(ip, Ip::NONE))
            {
                entry.flags |= flag::POSTPONED;
            }
            self.push(entry);
        });
    }

    /// Entries with a target of their own, and entries that are only shown.
    fn add_entries(
        &mut self,
        cx: &Context<'_>,
        routes: impl Iterator<Item = (usize, Ip, Ip)>,
        port: u16,
        service: Option<Arc<Service>>,
        filtered: &[(usize, Ip, Ip)],
    ) {
        let base = self.base(cx, port, None);
        let mut checker = (!cx.database.is_empty()).then(|| cx.database.checker(cx.now));
        for (position, hop, target) in routes {
            let mut entry = base.entry(position, hop);
            if target.is_some() || service.is_some() {
                self.aux.push(Aux { target, service: service.clone() });
                entry.aux = u16::try_from(self.aux.len()).unwrap_or(0);
            }
            if checker.as_mut().is_some_and(|checker| checker.should_postpone(&base.key(hop, target))) {
                entry.flags |= flag::POSTPONED;
            }
            self.push(entry);
        }
        for &(position, hop, target) in filtered {
            let mut entry = base.entry(position, hop);
            if target.is_some() {
                self.aux.push(Aux { target, service: None });
                entry.aux = u16::try_from(self.aux.len()).unwrap_or(0);
            }
            self.push(Entry { flags: entry.flags | flag::FILTERED, ..entry });
        }
    }

    /// What the entries of one proxy have in common.
    #[inline]
    fn base(&mut self, cx: &Context<'_>, port: u16, service: Option<Arc<Service>>) -> Base {
        let proxy = self.proxy_at(self.current, cx.address);
        let mut flags = if self.from == From::List { flag::FROM_SELECTOR } else { 0 };
        let proxy_id = proxy.map_or(0, |proxy| proxy.id());
        if let Some(proxy) = proxy
            && cx.settings.target_filter.is_some()
            && !proxy.kind().resolves_locally()
            && cx.address.host().ip().is_none()
        {
            flags |= flag::NOT_CHECKED;
        }
        let ech = if cx.settings.compat == Compat::OkHttp5 { ech_word(service.as_deref()) } else { 0 };
        let mut aux = 0;
        if service.is_some() {
            self.aux.push(Aux { target: Ip::NONE, service });
            aux = u16::try_from(self.aux.len()).unwrap_or(0);
        }
        Base { origin: cx.address.origin().id(), proxy_id, port, ech, proxy: self.current, aux, flags }
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        let mut entry = entry;
        if entry.flags & (flag::FILTERED | flag::POSTPONED) == 0 {
            entry.selection = self.selections + 1;
            self.fresh += 1;
        } else if entry.flags & flag::FILTERED == 0 {
            self.postponed += 1;
        }
        if let Err(full) = self.inline.try_push(entry) {
            self.spill(full.element());
        }
    }

    #[cold]
    fn spill(&mut self, entry: Entry) {
        if self.spilled.is_empty() {
            self.spilled.extend_from_slice(&self.inline);
        }
        self.spilled.push(entry);
    }

    #[inline]
    fn entries(&self) -> &[Entry] {
        if self.spilled.is_empty() { &self.inline } else { &self.spilled }
    }

    /// Events and faults for what was just added, with no lock held any more.
    #[inline]
    fn after_adding(&mut self, cx: &Context<'_>, from: usize) {
        let filtering = cx.settings.target_filter.is_some() || cx.settings.hop_filter.is_some();
        let listening =
            cx.listening.wants(EventKind::RoutePostponed) || cx.listening.wants(EventKind::RouteFiltered);
        if filtering || listening || self.entries().len() > MAX_ROUTES {
            self.after_adding_rare(cx, from);
        }
    }

    #[cold]
    fn after_adding_rare(&mut self, cx: &Context<'_>, from: usize) {
        self.emit_added(cx, from);
        let added = self.entries().get(from..).unwrap_or_default();
        if !added.is_empty() && added.iter().all(|entry| entry.flags & flag::FILTERED != 0) {
            let about = match self.proxy_at(self.current, cx.address) {
                Some(proxy) => proxy.to_string(),
                None => cx.address.host().text().to_owned(),
            };
            self.fault(cx, filtered(&about));
        }
        if self.entries().len() > MAX_ROUTES {
            self.next_proxy = self.proxy_count;
            self.fault(cx, Error::new(Status::E_LIMIT, format!("more than {MAX_ROUTES} routes")));
        }
    }

    fn emit_added(&self, cx: &Context<'_>, from: usize) {
        for (at, entry) in self.entries().iter().enumerate().skip(from) {
            let kind = match entry.flags {
                f if f & flag::FILTERED != 0 => EventKind::RouteFiltered,
                f if f & flag::POSTPONED != 0 => EventKind::RoutePostponed,
                _ => continue,
            };
            let route = self.entry_ref(cx.address, at);
            cx.listening.emit(kind, || Event { route, ..Event::new(kind, self.id, cx.address) });
        }
    }

    /// One entry of the list cannot be tried. byway goes on; OkHttp's step ends with the error.
    fn fault(&mut self, cx: &Context<'_>, error: Error) -> Option<Step> {
        if cx.settings.compat == Compat::Byway {
            let proxy = self.proxy_at(self.current, cx.address);
            if proxy.is_some() {
                cx.listening.emit(EventKind::ConnectFailed, || Event {
                    proxy,
                    error: Some(&error),
                    ..Event::new(EventKind::ConnectFailed, self.id, cx.address)
                });
            }
        }
        self.faults.push(Fault { proxy: self.current, error });
        None
    }

    /// Number of routes found so far, delivered or not.
    pub fn found(&self) -> usize {
        self.entries().len()
    }

    /// Position among all routes found of the `i`-th route of a Selection.
    #[inline]
    pub fn position(&self, selection: &Selection, i: usize) -> Option<usize> {
        if i >= selection.len() {
            return None;
        }
        let start = selection.start as usize;
        if selection.end - selection.start == selection.len {
            return Some(start + i);
        }
        let range = self.entries().get(start..selection.end as usize)?;
        let mut own = range.iter().enumerate().filter(|(_, entry)| entry.selection == selection.number);
        own.nth(i).map(|(at, _)| start + at)
    }

    /// The route at a [`Selector::position`].
    #[inline]
    pub fn entry_ref<'a>(&'a self, address: &'a Arc<Address>, position: usize) -> Option<RouteRef<'a>> {
        let entry = self.entries().get(position)?;
        Some(self.route_of(address, entry))
    }

    #[inline]
    fn route_of<'a>(&'a self, address: &'a Arc<Address>, entry: &Entry) -> RouteRef<'a> {
        let proxy = self.proxy_at(entry.proxy, address);
        let aux = usize::from(entry.aux).checked_sub(1).and_then(|at| self.aux.get(at));
        let service = aux.and_then(|aux| aux.service.as_ref());
        let ech = if address.profile() == Compat::OkHttp5 { ech_word(service.map(|s| &**s)) } else { 0 };
        let target = aux.map_or(Ip::NONE, |aux| aux.target);
        let proxy_id = proxy.map_or(0, |proxy| proxy.id());
        RouteRef {
            key: RouteKey::new(address.origin().id(), proxy_id, entry.hop(), entry.port, target, ech),
            address,
            proxy,
            service,
            selector: self.id,
            flags: entry.flags,
        }
    }

    /// The routes of a Selection, in order.
    #[inline]
    pub fn routes<'a>(
        &'a self,
        address: &'a Arc<Address>,
        selection: &Selection,
    ) -> impl Iterator<Item = RouteRef<'a>> + use<'a> {
        let number = selection.number;
        let range = self.entries().get(selection.start as usize..selection.end as usize).unwrap_or_default();
        range
            .iter()
            .filter(move |entry| entry.selection == number)
            .map(move |entry| self.route_of(address, entry))
    }

    /// What the explanation reads: the routes found with the Selection that gave each (0 = none yet), and the
    /// position in the resolver's answer.
    pub(crate) fn history<'a>(
        &'a self,
        address: &'a Arc<Address>,
    ) -> impl Iterator<Item = (RouteRef<'a>, usize, u16, u16)> + use<'a> {
        self.entries().iter().map(move |entry| {
            (self.route_of(address, entry), usize::from(entry.proxy), entry.selection, entry.position)
        })
    }

    pub(crate) fn fault_list(&self) -> impl Iterator<Item = (usize, &Error)> {
        self.faults.iter().map(|fault| (usize::from(fault.proxy), &fault.error))
    }

    /// Proxies offered, and how many of them have been turned to.
    pub(crate) fn offered<'a>(&'a self, address: &'a Address) -> (Vec<Option<&'a Arc<Proxy>>>, usize) {
        let count = self.proxy_count as usize;
        ((0..count).map(|at| self.proxy_at(at as u16, address)).collect(), self.next_proxy as usize)
    }

    pub(crate) fn was_listed(&self) -> bool {
        self.from == From::List
    }

    pub(crate) fn awaits_proxies(&self) -> bool {
        matches!(self.state, State::Proxies | State::New)
    }
}

fn filtered(subject: &str) -> Error {
    Error::new(Status::E_FILTERED, "the address filter refuses every address")
        .subject(subject)
        .source(Source::Engine)
}

/// Addresses and the order to take them in.
#[derive(Clone, Copy)]
struct Ordered<'a> {
    ips: &'a [Ip],
    order: Order,
}

#[derive(Clone, Copy)]
struct Base {
    origin: u64,
    proxy_id: u64,
    ech: u64,
    port: u16,
    proxy: u16,
    aux: u16,
    flags: u8,
}

impl Base {
    #[inline]
    fn entry(&self, position: usize, hop: Ip) -> Entry {
        Entry {
            ip: hop.bytes,
            scope_id: hop.scope_id,
            port: self.port,
            family: hop.family,
            flags: self.flags,
            proxy: self.proxy,
            aux: self.aux,
            selection: 0,
            position: u16::try_from(position).unwrap_or(u16::MAX),
        }
    }

    #[inline]
    fn key(&self, hop: Ip, target: Ip) -> RouteKey {
        RouteKey::new(self.origin, self.proxy_id, hop, self.port, target, self.ech)
    }
}
