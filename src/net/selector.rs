//! [`Selector`]: which routes to try, in order. A state machine: it says what it needs (proxies, the addresses of a
//! name), is fed the answers, and gives [`Selection`]s. It does no input or output, runs no callbacks, holds no
//! lock between calls and reads no clock unless a failed route is met.
//!
//! OkHttp's `RouteSelector` (routes of one proxy per Selection, failed ones last) with byway's decisions about
//! proxies that cannot be tried, SOCKS, filters and partial answers; [`super::compat`] profiles restore upstream's.
//!
//! Layout: one inline block. Every route found is one 36-byte entry, never moved; a Selection is the entries that
//! carry its number, so giving one copies nothing and the whole history stays for the explanation.

mod answer;
mod entry;
mod okhttp;
mod plain;
#[cfg(test)]
mod tests;

pub use self::entry::Extract;
pub(crate) use self::entry::ExtractHead;
use self::entry::{Aux, Entry, filtered};
pub(crate) use self::plain::{is_plain, is_plain_answer};
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

/// Why one entry of the proxy list cannot be tried.
struct Fault {
    proxy: u16,
    error: Error,
}

/// The state machine. Made in place, part by part, and never moved; it holds no address, engine or database.
pub struct Selector {
    pub(crate) head: Head,
    /// Uninitialised but for its length until routes are found.
    pub(crate) inline: ArrayVec<Entry, INLINE_ROUTES>,
}

/// Everything of a selector but the routes.
pub(crate) struct Head {
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
    listed: ArrayVec<Listed, INLINE_PROXIES>,
    /// What most selectors never have.
    rare: Option<Box<Rare>>,
}

/// What most selectors never have: long lists, resolved SOCKS targets, answers in parts, faults.
#[derive(Default)]
pub(crate) struct Rare {
    spilled: Vec<Entry>,
    long_list: Vec<Listed>,
    aux: Vec<Aux>,
    targets: Vec<Ip>,
    target_services: Vec<Arc<Service>>,
    partial: Answer,
    faults: Vec<Fault>,
    /// Only when the name asked is not the host's text (OkHttp's text of a resolved proxy); with a NUL behind it.
    odd_name: String,
}

/// Stands for the rare part of a selector that has none.
static NOTHING_RARE: Rare = Rare {
    spilled: Vec::new(),
    long_list: Vec::new(),
    aux: Vec::new(),
    targets: Vec::new(),
    target_services: Vec::new(),
    partial: Answer { ips: Vec::new(), services: Vec::new() },
    faults: Vec::new(),
    odd_name: String::new(),
};

impl Default for Selector {
    fn default() -> Selector {
        Selector::new(0)
    }
}

impl Selector {
    /// A selector with an id that events and routes carry; 0 is "none".
    #[inline]
    pub fn new(id: u64) -> Selector {
        Selector { head: Head::new(id), inline: ArrayVec::new_const() }
    }
}

impl Head {
    #[inline]
    fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// See [`Selector::new`].
    #[inline]
    pub(crate) fn new(id: u64) -> Head {
        Head {
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
            listed: ArrayVec::new_const(),
            rare: None,
        }
    }
}

impl Selector {
    /// As new, under another id, without moving or freeing the block.
    #[inline]
    pub fn reset(&mut self, id: u64) {
        self.head.id = id;
        self.head.state = State::New;
        self.head.from = From::Direct;
        (self.head.canceled, self.head.unnamed) = (false, false);
        (self.head.selections, self.head.current) = (0, 0);
        (self.head.next_proxy, self.head.proxy_count) = (0, 0);
        (self.head.fresh_start, self.head.fresh, self.head.postponed, self.head.told) = (0, 0, 0, 0);
        self.head.early_taken = 0;
        self.inline.clear();
        self.head.listed.clear();
        self.head.rare = None;
    }

    /// Its id.
    #[inline]
    pub fn id(&self) -> u64 {
        self.head.id
    }

    /// From now on every step fails with `E_CANCELED`.
    pub fn cancel(&mut self) {
        self.head.canceled = true;
    }

    /// Works out whom to ask for proxies: [`Step::NeedProxies`], or [`Step::Done`] when that is settled already.
    /// [`Selector::step`] does it too; a host that has the proxy selector asked early calls this first.
    pub fn start(&mut self, cx: &Context<'_>) -> Step {
        if self.head.state != State::New {
            return Step::Done;
        }
        self.head.state = State::Idle;
        let silent = cx.settings.compat == Compat::OkHttp3;
        if !silent {
            cx.listening.emit(EventKind::ProxySelectStart, || Event {
                subject: cx.address.uri(),
                ..Event::new(EventKind::ProxySelectStart, self.head.id, cx.address)
            });
        }
        self.head.proxy_count = 1;
        match cx.address.explicit_proxy() {
            Some(ExplicitProxy::Direct) => self.head.from = From::Direct,
            Some(ExplicitProxy::Proxy(_)) => self.head.from = From::Explicit,
            None if cx.address.proxy_selector() == 0 => self.head.from = From::Direct,
            None if cx.settings.compat == Compat::OkHttp5 && !cx.address.uri_has_host() => {
                self.head.from = From::Direct
            }
            None => {
                self.head.proxy_count = 0;
                self.head.state = State::Proxies;
                return Step::NeedProxies;
            }
        }
        self.proxies_known(cx, None);
        Step::Done
    }

    #[inline]
    fn list(&self) -> &[Listed] {
        if self.head.rare().long_list.is_empty() { &self.head.listed } else { &self.head.rare().long_list }
    }

    /// True when a step may still give routes or an error; asks nobody.
    pub fn may_have_next(&self) -> bool {
        self.head.state != State::Idle
            || self.head.fresh > 0
            || self.head.postponed > 0
            || self.head.next_proxy < self.head.proxy_count
            || (self.head.told as usize) < self.head.rare().faults.len()
    }

    /// Goes on until routes are there or something is needed.
    #[inline]
    pub fn step(&mut self, cx: &Context<'_>) -> Step {
        if self.head.canceled {
            return Step::Failed(Error::new(Status::E_CANCELED, "canceled").source(Source::Engine));
        }
        loop {
            if self.head.fresh > 0 {
                return self.give_fresh();
            }
            match self.head.state {
                State::Idle => {}
                State::New => match self.start(cx) {
                    Step::Done => {}
                    step => return step,
                },
                State::Dns(whose) if self.head.unnamed => {
                    self.head.unnamed = false;
                    return Step::NeedDns(Lookup { request: self.head.request, whose });
                }
                State::Proxies | State::Dns(_) => return Step::Wait,
            }
            if cx.settings.compat != Compat::Byway
                && (self.head.told as usize) < self.head.rare().faults.len()
            {
                return self.give_faults();
            }
            if self.head.next_proxy < self.head.proxy_count {
                // The position moves on first: whatever comes of this proxy, it is used up.
                self.head.current = self.head.next_proxy as u16;
                self.head.next_proxy += 1;
                self.head.early_taken = 0;
                if let Some(step) = self.begin_proxy(cx) {
                    return step;
                }
            } else if self.head.postponed > 0 {
                return self.give_postponed();
            } else {
                return self.give_faults();
            }
        }
    }

    #[inline]
    fn give_fresh(&mut self) -> Step {
        Step::Selection(self.take_fresh())
    }

    #[inline]
    fn take_fresh(&mut self) -> Selection {
        self.head.selections += 1;
        let end = self.entries().len() as u32;
        let selection = Selection {
            number: self.head.selections,
            start: self.head.fresh_start,
            end,
            len: self.head.fresh,
        };
        self.head.fresh_start = end;
        self.head.fresh = 0;
        self.head.told = self.head.rare().faults.len() as u32;
        selection
    }

    fn give_postponed(&mut self) -> Step {
        self.head.selections += 1;
        let number = self.head.selections;
        let entries = if self.head.rare().spilled.is_empty() {
            self.inline.as_mut_slice()
        } else {
            self.head.rare_mut().spilled.as_mut_slice()
        };
        let waits = |e: &&mut Entry| e.selection() == 0 && e.flags() & flag::POSTPONED != 0;
        for entry in entries.iter_mut().filter(waits) {
            entry.set_selection(number);
        }
        let end = entries.len() as u32;
        let selection = Selection { number, start: 0, end, len: self.head.postponed };
        self.head.postponed = 0;
        self.head.fresh_start = end;
        self.head.told = self.head.rare().faults.len() as u32;
        Step::Selection(selection)
    }

    fn give_faults(&mut self) -> Step {
        let untold = self.head.rare().faults.get(self.head.told as usize..).unwrap_or_default();
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
        self.head.told = self.head.rare().faults.len() as u32;
        Step::Failed(error)
    }

    /// The proxy at the current position; `None` for DIRECT and null.
    #[inline]
    fn proxy_at<'a>(&'a self, position: u16, address: &'a Address) -> Option<&'a Arc<Proxy>> {
        match self.head.from {
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
        let Some(proxy) = self.proxy_at(self.head.current, cx.address) else {
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
        if let Some(rare) = &mut self.head.rare {
            rare.targets.clear();
        }
        if let Some(rare) = &mut self.head.rare {
            rare.target_services.clear();
        }
        if kind.resolves_locally() {
            match literal {
                Some(ip) => self.head.rare_mut().targets.push(Ip { scope_id: 0, ..ip }),
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
        self.head.state = State::Dns(whose);
        self.head.request = self.head.request.wrapping_add(1);
        cx.listening.emit(EventKind::DnsStart, || Event {
            subject: self.lookup_name(cx.address),
            ..Event::new(EventKind::DnsStart, self.head.id, cx.address)
        });
        Step::NeedDns(Lookup { request: self.head.request, whose })
    }

    /// The name of the running lookup; empty when there is none.
    #[inline]
    pub fn lookup_name<'a>(&'a self, address: &'a Address) -> &'a str {
        let text = self.lookup_c_name(address);
        text.get(..text.len() - 1).unwrap_or_default()
    }

    /// The same with a NUL behind it.
    #[inline]
    pub fn lookup_c_name<'a>(&'a self, address: &'a Address) -> &'a str {
        match self.head.state {
            State::Dns(Whose::Target) => address.host().c_text(),
            State::Dns(Whose::Proxy) if !self.head.rare().odd_name.is_empty() => &self.head.rare().odd_name,
            State::Dns(Whose::Proxy) => {
                self.proxy_at(self.head.current, address).map_or("\0", |proxy| proxy.host().c_text())
            }
            _ => "\0",
        }
    }

    /// The running lookup.
    pub fn lookup(&self) -> Option<Lookup> {
        match self.head.state {
            State::Dns(whose) => Some(Lookup { request: self.head.request, whose }),
            _ => None,
        }
    }

    /// One entry of the list cannot be tried. byway goes on; OkHttp's step ends with the error.
    fn fault(&mut self, cx: &Context<'_>, error: Error) -> Option<Step> {
        if cx.settings.compat == Compat::Byway {
            let proxy = self.proxy_at(self.head.current, cx.address);
            if proxy.is_some() {
                cx.listening.emit(EventKind::ConnectFailed, || Event {
                    proxy,
                    error: Some(&error),
                    ..Event::new(EventKind::ConnectFailed, self.head.id, cx.address)
                });
            }
        }
        let proxy = self.head.current;
        self.head.rare_mut().faults.push(Fault { proxy, error });
        None
    }

    pub(crate) fn fault_list(&self) -> impl Iterator<Item = (usize, &Error)> {
        self.head.rare().faults.iter().map(|fault| (usize::from(fault.proxy), &fault.error))
    }

    /// Proxies of the list that cannot be tried, and why.
    pub(crate) fn faults_of_proxies<'a>(
        &'a self,
        address: &'a Address,
    ) -> impl Iterator<Item = (&'a Arc<Proxy>, &'a Error)> {
        self.head.rare().faults.iter().filter_map(|f| Some((self.proxy_at(f.proxy, address)?, &f.error)))
    }

    /// Proxies offered, and how many of them have been turned to.
    pub(crate) fn offered<'a>(&'a self, address: &'a Address) -> (Vec<Option<&'a Arc<Proxy>>>, usize) {
        let count = self.head.proxy_count as usize;
        ((0..count).map(|at| self.proxy_at(at as u16, address)).collect(), self.head.next_proxy as usize)
    }

    pub(crate) fn was_listed(&self) -> bool {
        self.head.from == From::List
    }

    pub(crate) fn awaits_proxies(&self) -> bool {
        matches!(self.head.state, State::Proxies | State::New)
    }
}
