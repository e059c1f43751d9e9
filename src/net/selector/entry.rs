//! Routes found: how addresses become entries, and how entries are shown.

use super::*;

/// One route found. `selection` 0 = not delivered yet.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(super) ip: [u8; 16],
    pub(super) scope_id: u32,
    pub(super) port: u16,
    pub(super) family: u8,
    pub(super) flags: u8,
    pub(super) proxy: u16,
    pub(super) aux: u16,
    pub(super) selection: u16,
    pub(super) position: u16,
}

impl Entry {
    pub(super) fn hop(&self) -> Ip {
        Ip { bytes: self.ip, scope_id: self.scope_id, family: self.family, reserved: [0; 3] }
    }
}

/// What few routes have: a target resolved here, service metadata. Entries name it by position + 1.
pub(super) struct Aux {
    pub(super) target: Ip,
    pub(super) service: Option<Arc<Service>>,
}

pub(super) fn filtered(subject: &str) -> Error {
    Error::new(Status::E_FILTERED, "the address filter refuses every address")
        .subject(subject)
        .source(Source::Engine)
}

/// Addresses and the order to take them in.
#[derive(Clone, Copy)]
pub(super) struct Ordered<'a> {
    pub(super) ips: &'a [Ip],
    pub(super) order: Order,
}

#[derive(Clone, Copy)]
pub(super) struct Base {
    pub(super) origin: u64,
    pub(super) proxy_id: u64,
    pub(super) ech: u64,
    pub(super) port: u16,
    pub(super) proxy: u16,
    pub(super) aux: u16,
    pub(super) flags: u8,
}

impl Base {
    #[inline]
    pub(super) fn entry(&self, position: usize, hop: Ip) -> Entry {
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
    pub(super) fn key(&self, hop: Ip, target: Ip) -> RouteKey {
        RouteKey::new(self.origin, self.proxy_id, hop, self.port, target, self.ech)
    }
}

impl Selector {
    #[inline]
    pub(super) fn add_direct(&mut self, cx: &Context<'_>, ips: &[Ip], service: Option<Arc<Service>>) {
        let order = self.order(cx);
        let from = self.entries().len();
        let ips = Ordered { ips, order };
        self.add_ordered(cx, ips, cx.address.port(), service, cx.settings.target_filter.as_deref());
        self.after_adding(cx, from);
    }

    pub(super) fn order(&self, cx: &Context<'_>) -> Order {
        match cx.settings.compat {
            // OkHttp 3 keeps the resolver's order.
            Compat::OkHttp3 => Order { interleave: false, ..cx.settings.order },
            _ => cx.settings.order,
        }
    }

    pub(super) fn add_through_proxy(&mut self, cx: &Context<'_>, ips: &[Ip], service: Option<Arc<Service>>) {
        let Some(port) = self.proxy_at(self.head.current, cx.address).and_then(|proxy| proxy.usable_port())
        else {
            return;
        };
        let from = self.entries().len();
        if self.head.rare().targets.is_empty() {
            let ips = Ordered { ips, order: self.order(cx) };
            self.add_ordered(cx, ips, port, service, cx.settings.hop_filter.as_deref());
            self.after_adding(cx, from);
            return;
        }
        // SOCKS4 and SOCKS5: every target through the proxy's first address, then the first target through its
        // others.
        let service =
            dns::service_for(&self.head.rare().target_services, cx.address.host().text(), false).or(service);
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
        let targets = std::mem::take(&mut self.head.rare_mut().targets);
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
        self.head.rare_mut().targets = targets;
        self.after_adding(cx, from);
    }

    /// The hot path: the addresses of one name become entries.
    #[inline]
    pub(super) fn add_ordered(
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
    pub(super) fn add_entries(
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
                self.head.rare_mut().aux.push(Aux { target, service: service.clone() });
                entry.aux = u16::try_from(self.head.rare().aux.len()).unwrap_or(0);
            }
            if checker.as_mut().is_some_and(|checker| checker.should_postpone(&base.key(hop, target))) {
                entry.flags |= flag::POSTPONED;
            }
            self.push(entry);
        }
        for &(position, hop, target) in filtered {
            let mut entry = base.entry(position, hop);
            if target.is_some() {
                self.head.rare_mut().aux.push(Aux { target, service: None });
                entry.aux = u16::try_from(self.head.rare().aux.len()).unwrap_or(0);
            }
            self.push(Entry { flags: entry.flags | flag::FILTERED, ..entry });
        }
    }

    /// What the entries of one proxy have in common.
    #[inline]
    pub(super) fn base(&mut self, cx: &Context<'_>, port: u16, service: Option<Arc<Service>>) -> Base {
        let proxy = self.proxy_at(self.head.current, cx.address);
        let mut flags = if self.head.from == From::List { flag::FROM_SELECTOR } else { 0 };
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
            self.head.rare_mut().aux.push(Aux { target: Ip::NONE, service });
            aux = u16::try_from(self.head.rare().aux.len()).unwrap_or(0);
        }
        Base { origin: cx.address.origin().id(), proxy_id, port, ech, proxy: self.head.current, aux, flags }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        let mut entry = entry;
        if entry.flags & (flag::FILTERED | flag::POSTPONED) == 0 {
            entry.selection = self.head.selections + 1;
            self.head.fresh += 1;
        } else if entry.flags & flag::FILTERED == 0 {
            self.head.postponed += 1;
        }
        if let Err(full) = self.inline.try_push(entry) {
            self.spill(full.element());
        }
    }

    #[cold]
    pub(super) fn spill(&mut self, entry: Entry) {
        if self.head.rare().spilled.is_empty() {
            self.head.rare_mut().spilled.extend_from_slice(&self.inline);
        }
        self.head.rare_mut().spilled.push(entry);
    }

    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        if self.head.rare().spilled.is_empty() { &self.inline } else { &self.head.rare().spilled }
    }

    /// Events and faults for what was just added, with no lock held any more.
    #[inline]
    pub(super) fn after_adding(&mut self, cx: &Context<'_>, from: usize) {
        let filtering = cx.settings.target_filter.is_some() || cx.settings.hop_filter.is_some();
        let listening =
            cx.listening.wants(EventKind::RoutePostponed) || cx.listening.wants(EventKind::RouteFiltered);
        if filtering || listening || self.entries().len() > MAX_ROUTES {
            self.after_adding_rare(cx, from);
        }
    }

    #[cold]
    pub(super) fn after_adding_rare(&mut self, cx: &Context<'_>, from: usize) {
        self.emit_added(cx, from);
        let added = self.entries().get(from..).unwrap_or_default();
        if !added.is_empty() && added.iter().all(|entry| entry.flags & flag::FILTERED != 0) {
            let about = match self.proxy_at(self.head.current, cx.address) {
                Some(proxy) => proxy.to_string(),
                None => cx.address.host().text().to_owned(),
            };
            self.fault(cx, filtered(&about));
        }
        if self.entries().len() > MAX_ROUTES {
            self.head.next_proxy = self.head.proxy_count;
            self.fault(cx, Error::new(Status::E_LIMIT, format!("more than {MAX_ROUTES} routes")));
        }
    }

    pub(super) fn emit_added(&self, cx: &Context<'_>, from: usize) {
        for (at, entry) in self.entries().iter().enumerate().skip(from) {
            let kind = match entry.flags {
                f if f & flag::FILTERED != 0 => EventKind::RouteFiltered,
                f if f & flag::POSTPONED != 0 => EventKind::RoutePostponed,
                _ => continue,
            };
            let route = self.entry_ref(cx.address, at);
            cx.listening.emit(kind, || Event { route, ..Event::new(kind, self.head.id, cx.address) });
        }
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
    pub(super) fn route_of<'a>(&'a self, address: &'a Arc<Address>, entry: &Entry) -> RouteRef<'a> {
        let proxy = self.proxy_at(entry.proxy, address);
        let aux = usize::from(entry.aux).checked_sub(1).and_then(|at| self.head.rare().aux.get(at));
        show(address, entry, proxy, aux, self.head.id)
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
}

/// The routes of one Selection on their own: what stays when the selector is gone.
#[derive(Default)]
pub struct Extract {
    pub(crate) head: ExtractHead,
    pub(crate) inline: ArrayVec<Entry, INLINE_ROUTES>,
}

/// Everything of it but the routes.
#[derive(Default)]
pub(crate) struct ExtractHead {
    spilled: Vec<Entry>,
    proxies: ArrayVec<Arc<Proxy>, INLINE_PROXIES>,
    more_proxies: Vec<Arc<Proxy>>,
    aux: Vec<Aux>,
    selector: u64,
}

impl Extract {
    /// Number of routes.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// True without routes.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    #[inline]
    fn entries(&self) -> &[Entry] {
        if self.head.spilled.is_empty() { &self.inline } else { &self.head.spilled }
    }

    /// The `i`-th route; `address` is the selector's.
    #[inline]
    pub fn route<'a>(&'a self, address: &'a Arc<Address>, i: usize) -> Option<RouteRef<'a>> {
        let entry = self.entries().get(i)?;
        let listed = if self.head.more_proxies.is_empty() {
            &self.head.proxies[..]
        } else {
            &self.head.more_proxies[..]
        };
        let proxy = match (usize::from(entry.proxy).checked_sub(1), address.explicit_proxy()) {
            (Some(at), _) => listed.get(at),
            (None, Some(ExplicitProxy::Proxy(proxy))) => Some(proxy),
            _ => None,
        };
        let aux = usize::from(entry.aux).checked_sub(1).and_then(|at| self.head.aux.get(at));
        Some(show(address, entry, proxy, aux, self.head.selector))
    }

    /// Position of a proxy among those of the extract, from 1.
    fn keep(&mut self, proxy: &Arc<Proxy>) -> u16 {
        let kept = if self.head.more_proxies.is_empty() {
            &self.head.proxies[..]
        } else {
            &self.head.more_proxies[..]
        };
        if let Some(at) = kept.iter().rposition(|own| Arc::ptr_eq(own, proxy)) {
            return at as u16 + 1;
        }
        if let Err(full) = self.head.proxies.try_push(Arc::clone(proxy)) {
            if self.head.more_proxies.is_empty() {
                self.head.more_proxies.extend(self.head.proxies.iter().cloned());
            }
            self.head.more_proxies.push(full.element());
            return self.head.more_proxies.len() as u16;
        }
        self.head.proxies.len() as u16
    }
}

/// One entry as a route.
#[inline]
fn show<'a>(
    address: &'a Arc<Address>,
    entry: &Entry,
    proxy: Option<&'a Arc<Proxy>>,
    aux: Option<&'a Aux>,
    selector: u64,
) -> RouteRef<'a> {
    RouteRef {
        hop: entry.hop(),
        port: entry.port,
        target: aux.map_or(Ip::NONE, |aux| aux.target),
        address,
        proxy,
        service: aux.and_then(|aux| aux.service.as_ref()),
        selector,
        flags: entry.flags,
    }
}

impl Selector {
    /// Puts a Selection's routes into `into`, which must be fresh, so that they outlive the selector.
    #[inline]
    pub fn extract(&self, selection: &Selection, into: &mut Extract) {
        into.head.selector = self.head.id;
        let range = self.entries().get(selection.start as usize..selection.end as usize).unwrap_or_default();
        for entry in range.iter().filter(|entry| entry.selection == selection.number) {
            let mut entry = *entry;
            entry.proxy = match self.head.from {
                From::List => match self.list().get(usize::from(entry.proxy)) {
                    Some(Listed::Proxy(proxy)) => into.keep(proxy),
                    _ => 0,
                },
                _ => 0,
            };
            if let Some(aux) =
                usize::from(entry.aux).checked_sub(1).and_then(|at| self.head.rare().aux.get(at))
            {
                into.head.aux.push(Aux { target: aux.target, service: aux.service.clone() });
                entry.aux = u16::try_from(into.head.aux.len()).unwrap_or(0);
            }
            if let Err(full) = into.inline.try_push(entry) {
                if into.head.spilled.is_empty() {
                    into.head.spilled.extend_from_slice(&into.inline);
                }
                into.head.spilled.push(full.element());
            }
        }
    }
}
