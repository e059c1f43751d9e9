//! Events: what happens on the way to a connection, in OkHttp's order. Nothing is built for a masked event.

use super::address::Address;
use super::ip::Ip;
use super::proxy::Proxy;
use super::route::RouteRef;
use super::selector::Listed;
use crate::error::Error;
use std::sync::Arc;

/// Kind of an event. Numbers are part of the C ABI; bit `1 << number` of a mask lets it through.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
pub enum EventKind {
    /// The proxies for an address are being looked for; `subject` is the URI.
    ProxySelectStart = 0,
    /// They are known (`proxies`), or the proxy selector failed (`error`).
    ProxySelectEnd = 1,
    /// A name is asked for; `subject` is the name.
    DnsStart = 2,
    /// It is answered (`ips`, in the resolver's order), or the lookup failed (`error`; not under OkHttp, which
    /// leaves it out).
    DnsEnd = 3,
    /// An attempt begins; `route`.
    ConnectStart = 4,
    /// A connection is up; `route`.
    ConnectEnd = 5,
    /// An attempt failed (`route`, `error`), or a whole entry of the proxy list cannot be tried (`proxy`,
    /// `error`).
    ConnectFailed = 6,
    /// An attempt was called off, by a lost race or by the host; `route`.
    ConnectCanceled = 7,
    /// A route goes behind the others because it failed before; `route`.
    RoutePostponed = 8,
    /// The address filter refuses a route; `route`.
    RouteFiltered = 9,
    /// A proxy failed and a later entry of its list worked: it is tried last for a while; `proxy`.
    ProxyMarkedBad = 10,
    /// That time is over, the proxy is back in its place; `proxy`.
    ProxyReinstated = 11,
}

impl EventKind {
    /// Every kind with its name.
    pub const ALL: [(EventKind, &'static str); 12] = [
        (EventKind::ProxySelectStart, "proxy_select_start"),
        (EventKind::ProxySelectEnd, "proxy_select_end"),
        (EventKind::DnsStart, "dns_start"),
        (EventKind::DnsEnd, "dns_end"),
        (EventKind::ConnectStart, "connect_start"),
        (EventKind::ConnectEnd, "connect_end"),
        (EventKind::ConnectFailed, "connect_failed"),
        (EventKind::ConnectCanceled, "connect_canceled"),
        (EventKind::RoutePostponed, "route_postponed"),
        (EventKind::RouteFiltered, "route_filtered"),
        (EventKind::ProxyMarkedBad, "proxy_marked_bad"),
        (EventKind::ProxyReinstated, "proxy_reinstated"),
    ];

    /// Its bit in a mask.
    #[inline]
    pub const fn bit(self) -> u64 {
        1 << self as u32
    }

    /// Name, as in logs.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// One event. What does not belong to its kind is empty.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// Kind.
    pub kind: EventKind,
    /// Id of the selector it belongs to.
    pub selector: u64,
    /// The address it is about.
    pub address: &'a Arc<Address>,
    /// URI or name.
    pub subject: &'a str,
    /// Proxies offered.
    pub proxies: &'a [Listed],
    /// Addresses answered.
    pub ips: &'a [Ip],
    /// The route.
    pub route: Option<RouteRef<'a>>,
    /// The entry of the proxy list, when there is no route.
    pub proxy: Option<&'a Arc<Proxy>>,
    /// Why it failed.
    pub error: Option<&'a Error>,
}

impl<'a> Event<'a> {
    /// An event with nothing but its kind.
    pub fn new(kind: EventKind, selector: u64, address: &'a Arc<Address>) -> Event<'a> {
        let (route, proxy, error) = (None, None, None);
        Event { kind, selector, address, subject: "", proxies: &[], ips: &[], route, proxy, error }
    }
}

/// Somebody who listens. Called on the thread that drives the selector, with no lock held.
pub trait EventSink {
    /// One event that passed the mask.
    fn event(&self, event: &Event<'_>);
}

/// Who listens, and to what.
#[derive(Clone, Copy)]
pub struct Listening<'a> {
    mask: u64,
    sink: Option<&'a dyn EventSink>,
}

impl<'a> Listening<'a> {
    /// True when nobody hears of anything.
    #[inline]
    pub fn is_nobody(&self) -> bool {
        self.mask == 0
    }

    /// Nobody.
    pub const NOBODY: Listening<'static> = Listening { mask: 0, sink: None };

    /// One sink, for the kinds whose [`EventKind::bit`] is in `mask`.
    pub fn to(sink: &'a dyn EventSink, mask: u64) -> Listening<'a> {
        Listening { mask, sink: Some(sink) }
    }

    /// True when somebody wants this kind.
    #[inline]
    pub fn wants(&self, kind: EventKind) -> bool {
        self.mask & kind.bit() != 0
    }

    /// Builds and delivers, only if somebody wants it.
    #[inline]
    pub fn emit<'e>(&self, kind: EventKind, build: impl FnOnce() -> Event<'e>) {
        if self.wants(kind)
            && let Some(sink) = self.sink
        {
            sink.event(&build());
        }
    }
}
