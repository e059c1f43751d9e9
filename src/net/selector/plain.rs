//! The short way of the plain case: one DIRECT entry, the address's own name, nobody who listens or filters. The state
//! machine is left as if it had gone the long way, and goes on from there whenever the case turns out not to be plain.

use super::entry::Ordered;
use super::*;

/// True when answers for this address need no look at anything but the database: a name, no filter, nobody who listens,
/// byway's own rules.
#[inline]
pub(crate) fn is_plain(cx: &Context<'_>) -> bool {
    cx.settings.compat == Compat::Byway
        && cx.settings.target_filter.is_none()
        && cx.address.host().literal() == Literal::Name
        && cx.listening.is_nobody()
}

/// True for an answer that [`Selector::answer_plainly`] takes.
#[inline]
pub(crate) fn is_plain_answer(ips: &[Ip], services: &[Arc<Service>]) -> bool {
    !ips.is_empty() && ips.len() <= INLINE_ROUTES && services.is_empty()
}

impl Selector {
    /// What [`Selector::step`] would ask first, when that is for the address's own name in a [plain](is_plain) case. To
    /// be answered by [`Selector::answer_plainly`] or as any other lookup.
    #[inline]
    pub(crate) fn ask_plainly(&mut self, cx: &Context<'_>) -> Option<Lookup> {
        let head = &mut self.head;
        let direct = match head.from {
            From::Direct => true,
            From::List => matches!(head.listed.first(), Some(Listed::Direct)),
            From::Explicit => false,
        };
        let first =
            head.state == State::Idle && head.next_proxy == 0 && head.proxy_count == 1 && !head.canceled;
        if !first || !direct || head.rare.is_some() || !is_plain(cx) {
            return None;
        }
        head.next_proxy = 1;
        head.state = State::Dns(Whose::Target);
        head.request = head.request.wrapping_add(1);
        Some(Lookup { request: head.request, whose: Whose::Target })
    }

    /// The whole answer to it, [plain](is_plain_answer) too. `None` when every route failed before: the next step gives
    /// them.
    #[inline]
    pub(crate) fn answer_plainly(&mut self, cx: &Context<'_>, ips: &[Ip]) -> Option<Selection> {
        self.head.state = State::Idle;
        self.add_ordered(cx, Ordered { ips, order: cx.settings.order }, cx.address.port(), None, None);
        (self.head.fresh > 0).then(|| self.take_fresh())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::address::AddressSpec;
    use crate::net::database::Policy;
    use crate::net::failure::Failure;
    use crate::net::order::FirstFamily;
    use crate::net::route::Route;

    type Given = (u16, Vec<(RouteKey, u8, u16)>);

    /// Every Selection with its number and routes, and the whole history, after a first Selection that came the short way
    /// or the long one.
    fn run(cx: &Context<'_>, ips: &[Ip], short: bool) -> (Vec<Given>, bool) {
        let mut selector = Selector::new(1);
        let mut given = Vec::new();
        if matches!(selector.start(cx), Step::NeedProxies) {
            selector.answer_proxies(cx, [Listed::Direct]).unwrap();
        }
        let show = |selector: &Selector, selection: Selection| {
            let (mut extract, mut own) = (Extract::default(), Vec::new());
            selector.extract(&selection, &mut extract);
            own.extend(
                extract.routes(cx.address).map(|route| (route.key(), route.flags(), selection.number())),
            );
            assert_eq!(own.len(), selection.len());
            (selection.number(), own)
        };
        if short {
            let lookup = selector.ask_plainly(cx).unwrap();
            assert_eq!(selector.lookup(), Some(lookup));
            assert_eq!(selector.lookup_name(cx.address), "plain.example");
            if let Some(selection) = selector.answer_plainly(cx, ips) {
                given.push(show(&selector, selection));
            }
        }
        assert!(!short || selector.ask_plainly(cx).is_none(), "only the first time");
        loop {
            let more = selector.may_have_next();
            match selector.step(cx) {
                Step::Selection(selection) => given.push(show(&selector, selection)),
                Step::NeedDns(lookup) => selector.answer_dns(cx, lookup.request, ips, &[], true).unwrap(),
                Step::Done => {
                    let history = selector.history(cx.address).map(|(route, proxy, selection, position)| {
                        assert_eq!(proxy, 0);
                        (route.key(), route.flags(), selection * 1000 + position)
                    });
                    given.push((0, history.collect()));
                    return (given, more);
                }
                step => panic!("{step:?}"),
            }
        }
    }

    #[test]
    fn the_short_way_and_the_long_one_come_to_the_same() {
        let texts = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.3"];
        let ips: Vec<Ip> = texts.iter().map(|text| Ip::parse(text).unwrap()).collect();
        for failed in 0..64_u32 {
            for (interleave, dedup, proxy_selector) in [(true, false, 0), (false, false, 1), (true, true, 1)]
            {
                for first_family in [FirstFamily::V6, FirstFamily::V4] {
                    let spec = AddressSpec {
                        host: "plain.example",
                        port: 80,
                        proxy_selector,
                        ..AddressSpec::default()
                    };
                    let address = Arc::new(Address::new(spec, Compat::Byway, &|_| None).unwrap());
                    let database = RouteDatabase::new(Policy::default());
                    for (i, ip) in ips.iter().enumerate().filter(|(i, _)| failed >> i & 1 == 1) {
                        let route = Route::new(Arc::clone(&address), None, (*ip, 80), Ip::NONE, None);
                        database.failed(&route, Failure::Refused, i as i32, 0);
                    }
                    let mut settings = Settings::default();
                    settings.order = Order { interleave, dedup, first_family, ..settings.order };
                    let cx = Context {
                        address: &address,
                        database: &database,
                        settings: &settings,
                        early_selection: false,
                        now: &|| 1,
                        listening: Listening::NOBODY,
                    };
                    assert!(is_plain_answer(&ips, &[]));
                    assert_eq!(run(&cx, &ips, true), run(&cx, &ips, false));
                }
            }
        }
    }
}
