//! The one-call form: every route of an address, in the order to try them, with answers that come in place.

use super::address::{Address, ExplicitProxy};
use super::dns::Service;
use super::ip::Ip;
use super::route::{RouteKey, RouteRef, flag};
use super::selector::{Context, INLINE_ROUTES, Lookup, Selector, Step};
use crate::error::{Error, Result, Source, Status};
use arrayvec::ArrayVec;
use std::sync::Arc;

/// Who answers in place. Each call must answer or fail the selector before it returns.
pub trait Answers {
    /// [`Selector::answer_proxies`] or [`Selector::fail_proxies`].
    ///
    /// # Errors
    /// Ends the plan.
    fn proxies(&mut self, selector: &mut Selector, cx: &Context<'_>) -> Result<()>;

    /// [`Selector::answer_dns`] or [`Selector::fail_dns`].
    ///
    /// # Errors
    /// Ends the plan.
    fn names(&mut self, selector: &mut Selector, cx: &Context<'_>, lookup: Lookup) -> Result<()>;
}

/// Runs a selector to its end and calls `each` with every route, in order: the Selections one after another, what
/// failed before at the end. Returns how many.
///
/// # Errors
/// What the selector failed with, if it gave nothing; `E_WOULD_DEADLOCK` when an answer did not come in place.
#[inline]
pub fn plan<'a>(
    selector: &'a mut Selector,
    cx: &Context<'a>,
    answers: &mut impl Answers,
    mut each: impl FnMut(usize, RouteRef<'_>),
) -> Result<usize> {
    let mut count = 0;
    loop {
        match selector.step(cx) {
            Step::Selection(selection) => {
                for route in selector.routes(cx.address, &selection) {
                    each(count, route);
                    count += 1;
                }
            }
            Step::NeedProxies => answers.proxies(selector, cx)?,
            Step::NeedDns(lookup) => answers.names(selector, cx, lookup)?,
            Step::Done => return Ok(count),
            Step::Failed(error) if error.status() == Status::E_CANCELED => return Err(error),
            // Under OkHttp one proxy failed and the next may do.
            Step::Failed(_) if selector.may_have_next() => {}
            Step::Failed(error) if count == 0 => return Err(error),
            Step::Failed(_) => return Ok(count),
            Step::Wait => {
                let message = "a plan needs its answers in place, and one did not come";
                return Err(Error::new(Status::E_WOULD_DEADLOCK, message).source(Source::Callback));
            }
        }
    }
}

/// True when there is no proxy by the address's own word. If the rest is plain too, a plan needs no selector; see
/// [`plain`].
#[inline]
pub fn is_direct(address: &Address) -> bool {
    match address.explicit_proxy() {
        Some(explicit) => matches!(explicit, ExplicitProxy::Direct),
        None => address.proxy_selector() == 0,
    }
}

/// True for an answer that [`plain`] takes.
#[inline]
pub fn is_plain_answer(ips: &[Ip], services: &[Arc<Service>]) -> bool {
    super::selector::is_plain_answer(ips, services)
}

/// The routes of a plain case: what [`plan`] gives, without the state machine. `flags` are those that all routes have.
/// The addresses are [canonical](Ip::is_canonical), as answers keep them.
#[inline]
pub fn plain(
    cx: &Context<'_>,
    selector: u64,
    flags: u8,
    ips: &[Ip],
    mut each: impl FnMut(usize, RouteRef<'_>),
) -> usize {
    let (address, order) = (cx.address, &cx.settings.order);
    let tidy;
    let mut list = ips;
    if order.dedup && list.len() > 1 {
        tidy = order.tidy(list);
        list = &tidy;
    }
    let (port, origin) = (address.port(), address.origin().id());
    let mut fresh: ArrayVec<Ip, INLINE_ROUTES> = ArrayVec::new_const();
    let mut behind: ArrayVec<Ip, INLINE_ROUTES> = ArrayVec::new_const();
    let checked = !cx.database.is_empty();
    if checked {
        let mut checker = cx.database.checker(cx.now);
        order.visit(list, |_, ip| {
            let key = RouteKey::new(origin, 0, ip, port, Ip::NONE, 0);
            let _ = if checker.should_postpone(&key) { behind.try_push(ip) } else { fresh.try_push(ip) };
        });
    } else if order.moves(list) {
        order.visit(list, |_, ip| {
            let _ = fresh.try_push(ip);
        });
    }
    let front = if checked || !fresh.is_empty() { &fresh[..] } else { list };
    let count = front.len() + behind.len();
    // One loop, and `each` in one place, so that it becomes part of it.
    for i in 0..count {
        let (ip, flags) = match front.get(i) {
            Some(ip) => (ip, flags),
            None => match behind.get(i - front.len()) {
                Some(ip) => (ip, flags | flag::POSTPONED),
                None => return i,
            },
        };
        let route = RouteRef {
            hop: *ip,
            port,
            target: Ip::NONE,
            address,
            proxy: None,
            service: None,
            selector,
            flags,
        };
        each(i, route);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Address, AddressSpec, Compat, Failure, Ip, Policy, RouteDatabase, Settings};
    use crate::net::{Route, events::Listening, selector::Listed};
    use std::sync::Arc;

    struct Fixed(&'static [&'static str]);

    impl Answers for Fixed {
        fn proxies(&mut self, selector: &mut Selector, cx: &Context<'_>) -> Result<()> {
            selector.answer_proxies(cx, [Listed::Direct])
        }
        fn names(&mut self, selector: &mut Selector, cx: &Context<'_>, lookup: Lookup) -> Result<()> {
            let ips: Vec<Ip> = self.0.iter().map(|text| Ip::parse(text)).collect::<Result<_>>()?;
            match ips.is_empty() {
                true => Ok(()),
                false => Ok(selector.answer_dns(cx, lookup.request, &ips, &[], true)?),
            }
        }
    }

    #[test]
    fn a_plan_is_every_route_with_failed_ones_last() {
        let spec =
            AddressSpec { host: "plan.example", port: 80, proxy_selector: 1, ..AddressSpec::default() };
        let address = Arc::new(Address::new(spec, Compat::Byway, &|_| None).unwrap());
        let database = RouteDatabase::new(Policy::default());
        let failed = (Ip::parse("2001:db8::1").unwrap(), 80);
        database.failed(
            &Route::new(Arc::clone(&address), None, failed, Ip::NONE, None),
            Failure::Refused,
            0,
            0,
        );
        let cx = Context {
            address: &address,
            database: &database,
            settings: &Settings::default(),
            early_selection: false,
            now: &|| 1,
            listening: Listening::NOBODY,
        };
        let mut got = Vec::new();
        let each = |_, route: RouteRef<'_>| got.push(route.hop().0.to_string());
        let mut answers = Fixed(&["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
        assert_eq!(plan(&mut Selector::new(1), &cx, &mut answers, each).unwrap(), 3);
        assert_eq!(got, ["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
        let late = plan(&mut Selector::new(2), &cx, &mut Fixed(&[]), |_, _| ());
        assert_eq!(late.unwrap_err().status(), Status::E_WOULD_DEADLOCK);
    }

    /// The short way and the state machine must agree, whatever failed before and however answers are ordered.
    #[test]
    fn the_plain_case_gives_what_the_selector_gives() {
        let spec = AddressSpec { host: "plain.example", port: 80, ..AddressSpec::default() };
        let address = Arc::new(Address::new(spec, Compat::Byway, &|_| None).unwrap());
        let texts =
            ["192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::1", "::ffff:192.0.2.3", "2001:db8::2"];
        let ips: Vec<Ip> = texts.iter().map(|text| Ip::parse(text).unwrap()).collect();
        for failed in 0..64_u32 {
            for (interleave, dedup) in [(true, false), (false, false), (true, true)] {
                let database = RouteDatabase::new(Policy::default());
                for (i, ip) in ips.iter().enumerate().filter(|(i, _)| failed >> i & 1 == 1) {
                    let hop = (ip.unmapped(), 80);
                    let route = Route::new(Arc::clone(&address), None, hop, Ip::NONE, None);
                    database.failed(&route, Failure::Refused, i as i32, 0);
                }
                let mut settings = Settings::default();
                (settings.order.interleave, settings.order.dedup) = (interleave, dedup);
                let cx = Context {
                    address: &address,
                    database: &database,
                    settings: &settings,
                    early_selection: false,
                    now: &|| 1,
                    listening: Listening::NOBODY,
                };
                assert!(
                    is_direct(&address) && crate::net::selector::is_plain(&cx) && is_plain_answer(&ips, &[])
                );
                let (mut short, mut long) = (Vec::new(), Vec::new());
                let kept: Vec<Ip> = ips.iter().map(|ip| ip.unmapped()).collect();
                plain(&cx, 1, 0, &kept, |i, route| short.push((i, route.key(), route.flags())));
                struct Given<'a>(&'a [Ip]);
                impl Answers for Given<'_> {
                    fn proxies(&mut self, _: &mut Selector, _: &Context<'_>) -> Result<()> {
                        Ok(())
                    }
                    fn names(
                        &mut self,
                        selector: &mut Selector,
                        cx: &Context<'_>,
                        lookup: Lookup,
                    ) -> Result<()> {
                        Ok(selector.answer_dns(cx, lookup.request, self.0, &[], true)?)
                    }
                }
                let each = |i, route: RouteRef<'_>| long.push((i, route.key(), route.flags()));
                plan(&mut Selector::new(1), &cx, &mut Given(&ips), each).unwrap();
                assert_eq!(short, long);
            }
        }
    }
}
