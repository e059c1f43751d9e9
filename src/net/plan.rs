//! The one-call form: every route of an address, in the order to try them, with answers that come in place.

use super::route::RouteRef;
use super::selector::{Context, Lookup, Selector, Step};
use crate::error::{Error, Result, Source, Status};

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
}
