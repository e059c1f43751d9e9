//! Routes found: how addresses become entries, and how entries are shown.

use super::*;

/// One route found.
///
/// Words as they are written and read: small fields on their own would be put together on the stack and read back in
/// one piece before their stores are done.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(super) hop: Ip,
    /// Port, proxy, aux and selection, 16 bits each from the lowest.
    common: [u32; 2],
    /// Position in the answer, and flags above it.
    own: u32,
}

impl Entry {
    #[inline]
    pub(super) fn port(&self) -> u16 {
        self.common[0] as u16
    }
    /// Position of the proxy in the selector's list; in an [`Extract`] among those kept, from 1.
    #[inline]
    pub(super) fn proxy(&self) -> u16 {
        (self.common[0] >> 16) as u16
    }
    /// Position + 1 among what few routes have, 0 = nothing.
    #[inline]
    pub(super) fn aux(&self) -> u16 {
        self.common[1] as u16
    }
    /// Number of the Selection it belongs to, 0 = not delivered yet.
    #[inline]
    pub(super) fn selection(&self) -> u16 {
        (self.common[1] >> 16) as u16
    }
    #[inline]
    pub(super) fn position(&self) -> u16 {
        self.own as u16
    }
    #[inline]
    pub(super) fn flags(&self) -> u8 {
        (self.own >> 16) as u8
    }
    #[inline]
    pub(super) fn set_flag(&mut self, flag: u8) {
        self.own |= u32::from(flag) << 16;
    }
    #[inline]
    pub(super) fn set_selection(&mut self, selection: u16) {
        self.common[1] = self.common[1] & 0xffff | u32::from(selection) << 16;
    }
    fn set_aux(&mut self, aux: u16) {
        self.common[1] = self.common[1] & 0xffff_0000 | u32::from(aux);
    }
    fn set_proxy(&mut self, proxy: u16) {
        self.common[0] = self.common[0] & 0xffff | u32::from(proxy) << 16;
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
    pub(super) fn entry(&self, position: usize, hop: Ip, selection: u16) -> Entry {
        Entry {
            hop,
            common: [
                u32::from(self.port) | u32::from(self.proxy) << 16,
                u32::from(self.aux) | u32::from(selection) << 16,
            ],
            own: position.min(0xffff) as u32 | u32::from(self.flags) << 16,
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
        let tidy;
        let mut list = ips.ips;
        if ips.order.wants_tidying(list) {
            tidy = ips.order.tidy(list);
            list = &tidy;
        }
        let base = self.base(cx, port, service);
        self.make_room(list.len());
        let selection = self.head.selections + 1;
        if filter.is_none() && cx.database.is_empty() && self.head.rare.is_none() {
            // Nobody has anything to say against any of them, and there is room.
            ips.order.visit(list, |position, ip| {
                let _ = self.inline.try_push(base.entry(position, ip, selection));
            });
            self.head.fresh += list.len() as u32;
            return;
        }
        let mut checker = (!cx.database.is_empty()).then(|| cx.database.checker(cx.now));
        ips.order.visit(list, |position, ip| {
            let mut entry = base.entry(position, ip, 0);
            if filter.is_some_and(|filter| filter.check(ip) == Verdict::Deny) {
                entry.set_flag(flag::FILTERED);
            } else if let Some(checker) = &mut checker
                && checker.should_postpone(&base.key(ip, Ip::NONE))
            {
                entry.set_flag(flag::POSTPONED);
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
            let mut entry = base.entry(position, hop, 0);
            if target.is_some() || service.is_some() {
                self.head.rare_mut().aux.push(Aux { target, service: service.clone() });
                entry.set_aux(u16::try_from(self.head.rare().aux.len()).unwrap_or(0));
            }
            if checker.as_mut().is_some_and(|checker| checker.should_postpone(&base.key(hop, target))) {
                entry.set_flag(flag::POSTPONED);
            }
            self.make_room(1);
            self.push(entry);
        }
        for &(position, hop, target) in filtered {
            let mut entry = base.entry(position, hop, 0);
            if target.is_some() {
                self.head.rare_mut().aux.push(Aux { target, service: None });
                entry.set_aux(u16::try_from(self.head.rare().aux.len()).unwrap_or(0));
            }
            entry.set_flag(flag::FILTERED);
            self.make_room(1);
            self.push(entry);
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

    /// Into the next Selection, among the postponed ones, or only to be shown.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        let mut entry = entry;
        if entry.flags() & (flag::FILTERED | flag::POSTPONED) == 0 {
            entry.set_selection(self.head.selections + 1);
            self.head.fresh += 1;
        } else if entry.flags() & flag::FILTERED == 0 {
            self.head.postponed += 1;
        }
        match &mut self.head.rare {
            Some(rare) if !rare.spilled.is_empty() => rare.spilled.push(entry),
            // Making room when there was nothing to move has moved nothing: then they are moved by the first too many.
            _ => {
                if let Err(full) = self.inline.try_push(entry) {
                    self.spill();
                    self.head.rare_mut().spilled.push(full.element());
                }
            }
        }
    }

    /// Room for `more` entries.
    #[inline]
    fn make_room(&mut self, more: usize) {
        if self.inline.remaining_capacity() < more {
            self.spill();
        }
    }

    /// From here on all entries are elsewhere.
    #[cold]
    fn spill(&mut self) {
        if self.head.rare().spilled.is_empty() {
            self.head.rare_mut().spilled.extend_from_slice(&self.inline);
        }
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
        if !added.is_empty() && added.iter().all(|entry| entry.flags() & flag::FILTERED != 0) {
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
            let kind = match entry.flags() {
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
        let mut own = range.iter().enumerate().filter(|(_, entry)| entry.selection() == selection.number);
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
        let proxy = self.proxy_at(entry.proxy(), address);
        let aux = usize::from(entry.aux()).checked_sub(1).and_then(|at| self.head.rare().aux.get(at));
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
            .filter(move |entry| entry.selection() == number)
            .map(move |entry| self.route_of(address, entry))
    }

    /// What the explanation reads: the routes found with the Selection that gave each (0 = none yet), and the
    /// position in the resolver's answer.
    pub(crate) fn history<'a>(
        &'a self,
        address: &'a Arc<Address>,
    ) -> impl Iterator<Item = (RouteRef<'a>, usize, u16, u16)> + use<'a> {
        self.entries().iter().map(move |entry| {
            (self.route_of(address, entry), usize::from(entry.proxy()), entry.selection(), entry.position())
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
    selector: u64,
    proxies: ArrayVec<Arc<Proxy>, INLINE_PROXIES>,
    /// What most Selections never have.
    rare: Option<Box<ExtractRare>>,
}

/// Many routes, many proxies, routes with more to them than a hop.
#[derive(Default)]
struct ExtractRare {
    spilled: Vec<Entry>,
    more_proxies: Vec<Arc<Proxy>>,
    aux: Vec<Aux>,
}

static NOTHING_RARE: ExtractRare =
    ExtractRare { spilled: Vec::new(), more_proxies: Vec::new(), aux: Vec::new() };

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
    fn rare(&self) -> &ExtractRare {
        self.head.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }

    fn rare_mut(&mut self) -> &mut ExtractRare {
        self.head.rare.get_or_insert_default()
    }

    #[inline]
    fn entries(&self) -> &[Entry] {
        match &self.head.rare {
            Some(rare) if !rare.spilled.is_empty() => &rare.spilled,
            _ => &self.inline,
        }
    }

    /// The `i`-th route; `address` is the selector's.
    #[inline]
    pub fn route<'a>(&'a self, address: &'a Arc<Address>, i: usize) -> Option<RouteRef<'a>> {
        Some(self.shown(address, self.entries().get(i)?))
    }

    /// The routes in order; `address` is the selector's.
    #[inline]
    pub fn routes<'a>(&'a self, address: &'a Arc<Address>) -> impl Iterator<Item = RouteRef<'a>> + use<'a> {
        self.entries().iter().map(move |entry| self.shown(address, entry))
    }

    #[inline]
    fn shown<'a>(&'a self, address: &'a Arc<Address>, entry: &Entry) -> RouteRef<'a> {
        let proxy = match usize::from(entry.proxy()).checked_sub(1) {
            Some(at) => self.proxies().get(at),
            None => match address.explicit_proxy() {
                Some(ExplicitProxy::Proxy(proxy)) => Some(proxy),
                _ => None,
            },
        };
        let aux = usize::from(entry.aux()).checked_sub(1).and_then(|at| self.rare().aux.get(at));
        show(address, entry, proxy, aux, self.head.selector)
    }

    #[inline]
    fn proxies(&self) -> &[Arc<Proxy>] {
        match &self.head.rare {
            Some(rare) if !rare.more_proxies.is_empty() => &rare.more_proxies,
            _ => &self.head.proxies,
        }
    }

    /// Position of a proxy among those of the extract, from 1.
    fn keep(&mut self, proxy: &Arc<Proxy>) -> u16 {
        if let Some(at) = self.proxies().iter().rposition(|own| Arc::ptr_eq(own, proxy)) {
            return at as u16 + 1;
        }
        if let Err(full) = self.head.proxies.try_push(Arc::clone(proxy)) {
            let few = self.head.proxies.clone();
            let more = &mut self.rare_mut().more_proxies;
            if more.is_empty() {
                more.extend(few);
            }
            more.push(full.element());
            return more.len() as u16;
        }
        self.head.proxies.len() as u16
    }

    fn keep_aux(&mut self, aux: &Aux) -> u16 {
        let kept = &mut self.rare_mut().aux;
        kept.push(Aux { target: aux.target, service: aux.service.clone() });
        u16::try_from(kept.len()).unwrap_or(0)
    }

    #[cold]
    fn spill(&mut self, entry: Entry) {
        let few = self.inline.clone();
        let spilled = &mut self.rare_mut().spilled;
        if spilled.is_empty() {
            spilled.extend(few);
        }
        spilled.push(entry);
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
        hop: entry.hop,
        port: entry.port(),
        target: aux.map_or(Ip::NONE, |aux| aux.target),
        address,
        proxy,
        service: aux.and_then(|aux| aux.service.as_ref()),
        selector,
        flags: entry.flags(),
    }
}

impl Selector {
    /// Puts a Selection's routes into `into`, which must be fresh, so that they outlive the selector.
    #[inline]
    pub fn extract(&self, selection: &Selection, into: &mut Extract) {
        into.head.selector = self.head.id;
        let range = self.entries().get(selection.start as usize..selection.end as usize).unwrap_or_default();
        let whole = range.len() == selection.len();
        if whole && self.head.rare.is_none() && self.head.from != From::List {
            // Nothing in them points anywhere.
            let _ = into.inline.try_extend_from_slice(range);
            return;
        }
        for entry in range.iter().filter(|entry| entry.selection() == selection.number) {
            let mut entry = *entry;
            entry.set_proxy(match self.head.from {
                From::List => match self.list().get(usize::from(entry.proxy())) {
                    Some(Listed::Proxy(proxy)) => into.keep(proxy),
                    _ => 0,
                },
                _ => 0,
            });
            if let Some(aux) =
                usize::from(entry.aux()).checked_sub(1).and_then(|at| self.head.rare().aux.get(at))
            {
                entry.set_aux(into.keep_aux(aux));
            }
            if into.inline.is_full() {
                into.spill(entry);
            } else {
                let _ = into.inline.try_push(entry);
            }
        }
    }
}
