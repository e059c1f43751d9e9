//! Picking through a chain: route, then choose one of what is left, in one call and over one world.

use std::sync::Arc;

use super::bits::Rows;
use super::chain::Chain;
use super::invocation::Invocation;
use super::pick::{self as picks};
use super::pick::{
    Balance, CallStats, Outcome, Picked, Picker, Quirks, Request, ServiceStats, Sticky, Ticket,
};
use super::plan::Plan;
use super::session::Session;
use super::url::Url;
use crate::error::{Error, Result, Status};
use crate::runtime::clock::Clock;
use crate::runtime::random::{Draw, Stream};

/// What the picks of a chain stand on.
#[derive(Clone, Debug)]
pub struct PickOptions {
    /// The engine's counters.
    pub stats: Arc<CallStats>,
    /// The engine's clock.
    pub clock: Clock,
    /// How the dialect differs.
    pub quirks: Quirks,
}

impl Default for PickOptions {
    fn default() -> Self {
        PickOptions { stats: CallStats::new(), clock: Clock::system(), quirks: Quirks::default() }
    }
}

/// A chain's part of the picks.
pub(crate) struct Picking {
    stats: Arc<CallStats>,
    service: Arc<ServiceStats>,
    sticky: Sticky,
    clock: Clock,
    quirks: Quirks,
    check_available: bool,
}

impl Picking {
    pub(crate) fn new(options: PickOptions, consumer: &Url) -> Picking {
        let parameter = |name| consumer.given(name).unwrap_or_default();
        let key = format!("{}/{}:{}", parameter("group"), consumer.interface(), parameter("version"));
        Picking {
            service: options.stats.service(&key),
            stats: options.stats,
            sticky: Sticky::new(),
            clock: options.clock,
            quirks: options.quirks,
            check_available: !parameter("cluster.availablecheck").eq_ignore_ascii_case("false"),
        }
    }

    /// The engine's wall clock.
    pub(crate) fn wall_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    fn pick(
        &self,
        plan: &Plan,
        rows: Rows<'_>,
        call: &Invocation<'_>,
        wish: &Wish<'_>,
        draw: impl Draw,
    ) -> Result<Picked> {
        let build = || picks::Plan::build(&*plan.invokers, self.quirks, Arc::clone(&self.service));
        let picks = plan.picks.get_or_init(build).as_ref().map_err(Error::clone)?;
        let available = match wish.available {
            Some((bits, list)) if list == plan.invokers.id() => Some(bits),
            Some(_) => {
                return Err(Error::new(
                    Status::E_STATE,
                    "the list has changed since the availability was noted",
                ));
            }
            None => None,
        };
        let method = call.effective_method();
        // Of a generic call the first two arguments are the method that is meant and the types of the others.
        let own = if method.as_ptr() == call.method.as_ptr() { 0 } else { 2 };
        let argument =
            |index: usize| call.arguments.get(index.checked_add(own)?).map(|text| text.unwrap_or(b"null"));
        let request = Request {
            method,
            arguments: &argument,
            balance: wish.balance,
            available,
            exclude: wish.exclude,
            sticky: wish.sticky,
            check_available: self.check_available,
        };
        let mut picker = Picker {
            providers: &*plan.invokers,
            plan: picks,
            sticky: &self.sticky,
            clock: &self.clock,
            draw,
        };
        picker.pick(&rows, &request)
    }
}

/// What a caller asks of a pick beside the call itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish<'a> {
    /// Overrides the `loadbalance` parameter.
    pub balance: Option<Balance>,
    /// One bit a row, 1 = can be called, and the [`Invokers::id`](super::snapshot::Invokers::id) of the list the rows
    /// belong to.
    pub available: Option<(&'a [u64], u64)>,
    /// Tags tried before.
    pub exclude: &'a [u64],
    /// Overrides the `sticky` parameter.
    pub sticky: Option<bool>,
}

impl<'a> Wish<'a> {
    /// The call with what its caller knows of who can be called, for routers that ask; `None`: nothing is known.
    fn told<'c>(&self, call: &Invocation<'c>) -> Option<Invocation<'c>>
    where
        'a: 'c,
    {
        self.available.map(|known| Invocation { available: Some(known), ..*call })
    }
}

impl Chain {
    /// Routes a call and picks one provider, without a session.
    ///
    /// # Errors
    /// `E_NO_INVOKER`, naming the router that left nothing; `E_STATE` when the availability was noted for another
    /// list; those of [`Picker::pick`]; what a host router failed with.
    pub fn pick(&self, call: &Invocation<'_>, wish: &Wish<'_>) -> Result<Picked> {
        let told = wish.told(call);
        let call = told.as_ref().unwrap_or(call);
        let (picking, draw) = (&self.shared.picking, &self.shared.stream);
        let plan = self.shared.current.read();
        if let Some(outcome) = plan.settled(call).filter(|outcome| !outcome.rows().is_empty()) {
            return picking.pick(&plan, outcome.rows(), call, wish, draw);
        }
        drop(plan);
        let choice = self.route(call)?;
        if choice.is_empty() {
            return Err(nobody(choice.emptied_by()));
        }
        picking.pick(&choice.plan, choice.rows(), call, wish, draw)
    }

    /// Ends a call that was picked here or through any other chain of the engine. False when there was nothing to
    /// end: no ticket, an unknown one, or one ended before.
    pub fn pick_end(&self, ticket: Ticket, outcome: &Outcome) -> bool {
        let picking = &self.shared.picking;
        picking.stats.end(ticket, outcome, &picking.clock)
    }
}

impl Session {
    /// Routes a call and picks one provider.
    ///
    /// # Errors
    /// As [`Chain::pick`], and `E_BUSY` on another thread than the owner's.
    pub fn pick(&mut self, call: &Invocation<'_>, wish: &Wish<'_>) -> Result<Picked> {
        let told = wish.told(call);
        let call = told.as_ref().unwrap_or(call);
        // The view borrows the session; the stream of the picks is lent out meanwhile.
        let mut draw = core::mem::replace(&mut self.pick_stream, Stream::lent());
        let picked = self.route(call).and_then(|view| match view.plan {
            Some(plan) if !view.is_empty() => plan.picking.pick(plan, view.rows(), call, wish, &mut draw),
            _ => Err(nobody(view.emptied_by())),
        });
        self.pick_stream = draw;
        picked
    }
}

#[cold]
fn nobody(router: Option<&str>) -> Error {
    match router {
        Some(router) => {
            Error::new(Status::E_NO_INVOKER, format!("router {router} left no invoker for this call"))
        }
        None => Error::new(Status::E_NO_INVOKER, "the chain has no invokers"),
    }
}
