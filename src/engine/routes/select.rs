//! Drives a selector: asks proxy selectors and resolvers, in place or later, waits or says that it would have to.

use super::Target;
use super::asking::{
    Asked, Asking, Pending, ask_default_proxies, ask_host, ask_host_proxies, ask_names, ask_proxies, collect,
    context, give_up, lookup_id, settle, settle_proxies,
};
use super::dns::{Resolver, Resolving, Serving};
use super::listen::Audience;
use super::proxies::{Choosing, ProxySource};
use super::reasons::{self, Reasons};
use super::request::{DnsRequest, ProxyRequest};
use super::waiter::Waiter;
use crate::engine::Operation;
use crate::error::{Error, Result, Source, Status};
use crate::net::plan::Answers;
use crate::net::route::flag;
use crate::net::{Context, Listed, Lookup, RouteRef, Selection, Selector, Step, plan};
use crate::runtime::queue::{Completion, Queue};
use crate::sys::slab::Shared;
use core::sync::atomic::{AtomicBool, Ordering};
use once_cell::sync::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `kind` of a selector's completion record.
const COMPLETION: i32 = 1;

/// What other threads may touch while a call is running: cancel, and what ends a wait.
#[derive(Default)]
pub struct Side {
    canceled: AtomicBool,
    waiter: OnceCell<Arc<Waiter>>,
}

impl Side {
    /// Cancels for good. Any thread; takes no lock.
    pub fn cancel(&self) {
        self.canceled.store(true, Ordering::SeqCst);
        if let Some(waiter) = self.waiter.get() {
            waiter.notice.cancel();
        }
    }

    fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::SeqCst)
    }
}

/// How long a call may wait. The clock is read when it has to wait, not before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    timeout: Option<Duration>,
    until: Option<Instant>,
}

impl Patience {
    /// Not at all.
    pub const NONE: Patience = Patience { timeout: None, until: None };

    /// For so long from now.
    pub fn lasting(timeout: Duration) -> Patience {
        Patience { timeout: Some(timeout), until: None }
    }

    /// When it ends; `None` = at once.
    pub(super) fn end(&mut self) -> Option<Instant> {
        // A deadline beyond the clock's range is the farthest one a host can mean: a hundred years.
        let far = Duration::from_secs(100 * 365 * 86_400);
        if self.until.is_none() {
            let timeout = self.timeout?.min(far);
            self.until = Instant::now().checked_add(timeout);
        }
        self.until
    }

    /// What is left, as a callback sees it.
    pub(super) fn left(&self) -> Option<Duration> {
        match self.until {
            Some(until) => Some(until.saturating_duration_since(Instant::now())),
            None => self.timeout,
        }
    }
}

/// What one drive came to.
pub enum Driven {
    /// Routes.
    Selection(Selection),
    /// Nothing is left.
    Done,
    /// An answer is awaited.
    Wait,
}

/// A selector at work. Made in place, in two parts.
pub struct Selecting {
    pub(crate) core: Selector,
    pub(crate) rest: Rest,
}

/// Everything of it but the state machine.
pub(crate) struct Rest {
    target: Shared<Target>,
    /// For the first Selection, taken together with `target`.
    spare: Option<Shared<Target>>,
    tag: u64,
    queue: Option<Arc<Queue>>,
    pending: Pending,
    early: bool,
    /// Why the proxies are what they are, once they are known.
    reasons: Option<Box<Reasons>>,
}

impl Rest {
    /// What [`Selecting`] needs beside a fresh [`Selector`].
    #[inline]
    pub(crate) fn new([target, spare]: [Shared<Target>; 2], options: SelectOptions) -> Rest {
        let SelectOptions { tag, queue, early } = options;
        Rest { target, spare: Some(spare), tag, queue, pending: Pending::None, early, reasons: None }
    }
}

/// What a selector is made with.
#[derive(Default)]
pub struct SelectOptions {
    /// The host's own number.
    pub tag: u64,
    /// Its queue; `None` = the engine's.
    pub queue: Option<Arc<Queue>>,
    /// Give routes of the first family while the other is awaited.
    pub early: bool,
}

impl Selecting {
    /// Its number.
    pub fn id(&self) -> u64 {
        self.core.id()
    }

    /// A reference to its address that a Selection keeps.
    #[inline]
    pub fn target_for_selection(&mut self) -> Shared<Target> {
        self.rest.spare.take().unwrap_or_else(|| self.rest.target.clone())
    }

    /// The state machine.
    pub fn core(&self) -> &Selector {
        &self.core
    }

    /// Its address.
    pub fn target(&self) -> &Shared<Target> {
        &self.rest.target
    }

    /// The host's own number.
    pub fn tag(&self) -> u64 {
        self.rest.tag
    }

    /// Asks the proxy selector, if there is one to ask. What it answers, or that it fails, shows in the first
    /// [`Selecting::next`].
    ///
    /// # Errors
    /// Under OkHttp, what the proxy selector fails with.
    #[inline]
    pub fn start(&mut self, object: usize) -> Result<()> {
        let Selecting { core, rest: Rest { target, tag, pending, early, reasons, .. } } = self;
        let target = &**target;
        let engine = &*target.engine;
        let audience = Audience { listeners: engine.listeners(), tag: *tag };
        let now = || engine.database_now();
        let cx = context(target, &audience, &now, *early);
        match core.start(&cx) {
            Step::NeedProxies => {
                let serving = Serving { tag: *tag, id: core.id(), left: None, engine: engine.handle() };
                let asking = Asking { target, serving: &serving, object, in_place: false };
                ask_proxies(core, pending, reasons, &cx, &asking)
            }
            _ => Ok(()),
        }
    }

    /// Goes as far as answers in place allow.
    ///
    /// # Errors
    /// The selector's, `E_CANCELED`, `E_SHUTDOWN`.
    #[inline]
    pub fn drive(&mut self, side: &Side, patience: &mut Patience, object: usize) -> Result<Driven> {
        let Selecting { core, rest: Rest { target, tag, pending, early, reasons, .. } } = self;
        let target = &**target;
        let engine = &*target.engine;
        engine.check_open()?;
        let audience = Audience { listeners: engine.listeners(), tag: *tag };
        let now = || engine.database_now();
        let cx = context(target, &audience, &now, *early);
        let serving = Serving { tag: *tag, id: core.id(), left: patience.left(), engine: engine.handle() };
        let asking = Asking { target, serving: &serving, object, in_place: false };
        if matches!(pending, Pending::None)
            && engine.routes.cache.is_off()
            && !side.is_canceled()
            && let Some(resolver @ (Resolving::Host(_) | Resolving::Hosts(_))) =
                target.resolver.as_deref().map(Resolver::kind)
            && let Some(lookup) = core.ask_plainly(&cx)
            && let Some(selection) = first_selection(core, pending, &cx, &asking, side, resolver, lookup)?
        {
            return Ok(Driven::Selection(selection));
        }
        loop {
            if side.is_canceled() {
                core.cancel();
                give_up(pending);
            }
            if !matches!(pending, Pending::None) {
                collect(core, pending, reasons, &cx, &asking)?;
            }
            match core.step(&cx) {
                Step::Selection(selection) => {
                    engine.useless_proxies(core.id(), core.faults_of_proxies(cx.address));
                    return Ok(Driven::Selection(selection));
                }
                Step::NeedProxies => ask_proxies(core, pending, reasons, &cx, &asking)?,
                Step::NeedDns(lookup) => ask_names(core, pending, &cx, &asking, lookup)?,
                Step::Done => return Ok(Driven::Done),
                Step::Failed(error) => return Err(error),
                Step::Wait => return Ok(Driven::Wait),
            }
        }
    }

    /// The next Selection, waiting for answers as long as `patience` says. `None` when nothing is left.
    ///
    /// # Errors
    /// As [`Selecting::drive`]; `E_TIMEOUT`, after which a further call goes on waiting for the same answers;
    /// `E_WOULD_DEADLOCK` on the thread of an event loop.
    #[inline]
    pub fn next(&mut self, side: &Side, patience: &mut Patience, object: usize) -> Result<Option<Selection>> {
        loop {
            match self.drive(side, patience, object)? {
                Driven::Selection(selection) => return Ok(Some(selection)),
                Driven::Done => return Ok(None),
                Driven::Wait => self.wait(side, patience)?,
            }
        }
    }

    #[cold]
    fn wait(&mut self, side: &Side, patience: &mut Patience) -> Result<()> {
        let timeout = |name: &str| {
            Error::new(Status::E_TIMEOUT, "no answer in time").subject(name).source(Source::Engine)
        };
        let Some(deadline) = patience.end() else { return Err(timeout(self.awaited())) };
        let waiter = self.waiter(side)?;
        if waiter.notice.queue().would_deadlock() {
            return Err(Status::E_WOULD_DEADLOCK.into());
        }
        let seen = waiter.notice.seen();
        if !self.watch(&waiter) || side.is_canceled() {
            return Ok(());
        }
        if !waiter.notice.wait(seen, Some(deadline)) {
            return Err(timeout(self.awaited()));
        }
        self.stopped(&waiter)
    }

    fn awaited(&self) -> &str {
        match self.rest.pending {
            Pending::Proxies(..) => self.rest.target.address.uri(),
            #[cfg(feature = "script")]
            Pending::Script(..) => self.rest.target.address.uri(),
            _ => self.core.lookup_name(&self.rest.target.address),
        }
    }

    fn stopped(&self, waiter: &Waiter) -> Result<()> {
        match waiter.stopped.load(Ordering::SeqCst) {
            0 => Ok(()),
            status => Err(Error::bare(Status(status)).source(Source::Engine)),
        }
    }

    fn waiter(&self, side: &Side) -> Result<Arc<Waiter>> {
        if let Some(waiter) = side.waiter.get() {
            return Ok(Arc::clone(waiter));
        }
        let engine = &self.rest.target.engine;
        let queue = self.rest.queue.as_ref().unwrap_or(engine.queue());
        let id = engine.next_id();
        let waiter = Arc::new(Waiter::new(id, queue));
        engine.remember(id, Arc::clone(&waiter) as Arc<dyn Operation>)?;
        let _ = side.waiter.set(Arc::clone(&waiter));
        Ok(waiter)
    }

    /// False when the awaited answer is there already.
    fn watch(&self, waiter: &Waiter) -> bool {
        match &self.rest.pending {
            Pending::None => false,
            Pending::Proxies(request, _) => request.watch(&waiter.notice, false),
            Pending::Names(request, ..) => request.watch(&waiter.notice, self.rest.early),
            #[cfg(feature = "script")]
            Pending::Script(question) => question.watch(&waiter.notice),
        }
    }

    /// As [`Selecting::next`] without waiting: `E_…` or a result, or [`Driven::Wait`] after which exactly one record
    /// comes to the queue, at the latest when the engine's default timeout has passed. A further poll before that record
    /// shares it.
    ///
    /// # Errors
    /// As [`Selecting::next`]; `E_LIMIT` when the queue has no room for the record.
    pub fn poll(&mut self, side: &Side, object: usize) -> Result<Driven> {
        let mut patience = Patience::NONE;
        loop {
            match self.drive(side, &mut patience, object)? {
                Driven::Wait => {}
                driven => return Ok(driven),
            }
            let waiter = self.waiter(side)?;
            self.stopped(&waiter)?;
            let seen = waiter.notice.seen();
            if !self.watch(&waiter) || side.is_canceled() {
                continue;
            }
            let completion =
                Completion { tag: self.rest.tag, id: self.core.id(), kind: COMPLETION, status: 0 };
            let deadline = Instant::now().checked_add(self.rest.target.engine.options().default_timeout);
            match waiter.notice.announce(seen, completion, deadline) {
                Ok(()) | Err(Status::E_STATE) => return Ok(Driven::Wait),
                Err(status) => return Err(status.into()),
            }
        }
    }

    /// As [`Selecting::poll`] for an operation that is woken itself, instead of a record in a queue: after
    /// [`Driven::Wait`] `wake` runs, on any thread, when there is news. It stays in force until
    /// [`Selecting::forget_waker`].
    ///
    /// # Errors
    /// As [`Selecting::next`].
    pub fn poll_waking(
        &mut self,
        side: &Side,
        object: usize,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Driven> {
        let mut patience = Patience::NONE;
        let mut wake = Some(wake);
        loop {
            match self.drive(side, &mut patience, object)? {
                Driven::Wait => {}
                driven => return Ok(driven),
            }
            let waiter = self.waiter(side)?;
            self.stopped(&waiter)?;
            if let Some(wake) = wake.take() {
                waiter.notice.set_hook(Some(Arc::new(wake)));
            }
            if self.watch(&waiter) && !side.is_canceled() {
                return Ok(Driven::Wait);
            }
        }
    }

    /// Nobody is woken any more.
    pub fn forget_waker(&self, side: &Side) {
        if let Some(waiter) = side.waiter.get() {
            waiter.notice.set_hook(None);
        }
    }

    /// True while the addresses of a name are awaited.
    pub fn awaits_names(&self) -> bool {
        matches!(self.rest.pending, Pending::Names(..))
    }

    /// True when a further call may give something; asks nobody.
    pub fn may_have_next(&self) -> bool {
        self.core.may_have_next()
    }

    /// The decision as JSON or as text.
    pub fn explain(&self, as_json: bool) -> String {
        let engine = &*self.rest.target.engine;
        let audience = Audience { listeners: engine.listeners(), tag: self.rest.tag };
        let now = || engine.database_now();
        let cx = context(&self.rest.target, &audience, &now, self.rest.early);
        let reasons = self.rest.reasons.as_deref();
        if as_json {
            let mut json = crate::net::explain::explain_json(&self.core, &cx);
            if let (Some(document), Some(reasons)) = (json.as_object_mut(), reasons) {
                reasons::insert(document, &reasons.why, &reasons.moved);
            }
            serde_json::to_string_pretty(&json).unwrap_or_default()
        } else {
            let mut text = crate::net::explain::explain_text(&self.core, &cx);
            if let Some(reasons) = reasons {
                // Behind the first line, which says who chose.
                let at = text.find('\n').map_or(text.len(), |at| at + 1);
                text.insert_str(at, &reasons::lines(reasons));
            }
            text
        }
    }

    /// Ends it: whoever still works for it is told, a pending poll gets its record. Call before dropping.
    #[inline]
    pub fn end(&mut self, side: &Side) {
        if !matches!(self.rest.pending, Pending::None) {
            give_up(&mut self.rest.pending);
        }
        if let Some(waiter) = side.waiter.get() {
            self.rest.target.engine.forget(waiter.id);
            waiter.notice.finish(Status::E_CANCELED);
        }
        self.rest.target.engine.database().drop_pending(self.core.id());
        self.rest.target.engine.end_trial(self.core.id());
    }
}

/// The short way to the first Selection: an answer in place to what [`Selector::ask_plainly`] asks. `None` when the
/// next step knows more.
#[inline]
fn first_selection(
    core: &mut Selector,
    pending: &mut Pending,
    cx: &Context<'_>,
    asking: &Asking<'_>,
    side: &Side,
    resolver: &Resolving,
    lookup: Lookup,
) -> Result<Option<Selection>> {
    let (target, serving) = (asking.target, asking.serving);
    match resolver {
        Resolving::Host(host) => {
            let mut request = Shared::new(DnsRequest::new(lookup_id(serving.id, lookup)));
            let name = target.address.host().c_text();
            let asked = ask_host(host, &target.engine, asking.object, &request, name, serving)?;
            if asked.0 == Status::OK
                && let Some(sole) = request.get_mut()
                && let (answer, None) = sole.parts_mut()
                && plan::is_plain_answer(answer.ips(), &answer.services)
                && !side.is_canceled()
            {
                let selection = core.answer_plainly(cx, answer.ips());
                request.end();
                return Ok(selection);
            }
            settle(core, pending, cx, asking, lookup, request, asked)?;
        }
        Resolving::Hosts(table) => {
            let ips = table.lookup(target.address.host().text());
            if plan::is_plain_answer(ips, &[]) {
                return Ok(core.answer_plainly(cx, ips));
            }
            ask_names(core, pending, cx, asking, lookup)?;
        }
        Resolving::System => ask_names(core, pending, cx, asking, lookup)?,
    }
    Ok(None)
}

/// The one-call form: every route in order, with answers that come in place.
///
/// # Errors
/// As [`plan::plan`].
#[inline]
pub fn plan_routes(
    target: &Target,
    tag: u64,
    object: usize,
    each: impl FnMut(usize, RouteRef<'_>),
) -> Result<usize> {
    let engine = &*target.engine;
    engine.check_open()?;
    let audience = Audience { listeners: engine.listeners(), tag };
    let now = || engine.database_now();
    let cx = context(target, &audience, &now, false);
    let serving = Serving { tag, id: engine.next_id(), left: None, engine: engine.handle() };
    let asking = Asking { target, serving: &serving, object, in_place: true };
    let mut before = Before::default();
    if engine.routes.cache.is_off()
        && crate::net::selector::is_plain(&cx)
        && let Some(flags) = plain_flags(&cx, &asking, &mut before)?
    {
        match target.resolver.as_deref().map(Resolver::kind) {
            Some(Resolving::Host(host)) => {
                let mut request = Shared::new(DnsRequest::new(serving.id << 16 | 1));
                let name = target.address.host().c_text();
                let asked = ask_host(host, engine, object, &request, name, &serving)?;
                if asked.0 == Status::OK
                    && let Some(sole) = request.get_mut()
                    && let (answer, None) = sole.parts_mut()
                    && plan::is_plain_answer(answer.ips(), &answer.services)
                {
                    let count = plan::plain(&cx, serving.id, flags, answer.ips(), each);
                    request.end();
                    return Ok(count);
                }
                before.names = Some((request, asked));
            }
            Some(Resolving::Hosts(table)) => {
                let ips = table.lookup(target.address.host().text());
                if plan::is_plain_answer(ips, &[]) {
                    return Ok(plan::plain(&cx, serving.id, flags, ips, each));
                }
            }
            Some(Resolving::System) | None => {}
        }
    }
    plan_rest(&cx, &asking, before, each)
}

/// What was asked before a case turned out not to be plain.
#[derive(Default)]
struct Before {
    /// The proxy selector has answered: DIRECT and nothing else.
    direct: bool,
    proxies: Option<(Shared<ProxyRequest>, Asked)>,
    names: Option<(Shared<DnsRequest>, Asked)>,
}

/// Flags of the routes when there is no proxy, by the address's own word or by that of a host's proxy selector, which is
/// asked here. `None` when somebody else decides.
#[inline]
fn plain_flags(cx: &Context<'_>, asking: &Asking<'_>, before: &mut Before) -> Result<Option<u8>> {
    if plan::is_direct(cx.address) {
        return Ok(Some(0));
    }
    let target = asking.target;
    let Some(Choosing::Host(host)) = target.proxies.as_deref().map(ProxySource::kind) else {
        return Ok(None);
    };
    if cx.address.explicit_proxy().is_some() {
        return Ok(None);
    }
    let mut request = Shared::new(ProxyRequest::new(target.engine.next_id()));
    let asked = ask_host_proxies(host, asking, &request)?;
    if asked.0 == Status::OK
        && let Some(sole) = request.get_mut()
        && let (answer, None | Some(Ok(()))) = sole.parts_mut()
        && let [Listed::Direct] = answer.list[..]
    {
        before.direct = true;
        return Ok(Some(flag::FROM_SELECTOR));
    }
    before.proxies = Some((request, asked));
    Ok(None)
}

/// Whatever is not the plain case.
#[inline(never)]
fn plan_rest(
    cx: &Context<'_>,
    asking: &Asking<'_>,
    before: Before,
    each: impl FnMut(usize, RouteRef<'_>),
) -> Result<usize> {
    let mut selector = Selector::new(asking.serving.id);
    let mut in_place = InPlace { asking, pending: Pending::None, before };
    let planned = plan::plan(&mut selector, cx, &mut in_place, each);
    give_up(&mut in_place.pending);
    planned
}

struct InPlace<'a> {
    asking: &'a Asking<'a>,
    pending: Pending,
    before: Before,
}

impl Answers for InPlace<'_> {
    fn proxies(&mut self, selector: &mut Selector, cx: &Context<'_>) -> Result<()> {
        if core::mem::take(&mut self.before.direct) {
            return selector.answer_proxies(cx, [Listed::Direct]);
        }
        let (asking, pending) = (self.asking, &mut self.pending);
        if let Some((request, asked)) = self.before.proxies.take() {
            return match settle_proxies(selector, pending, &mut None, cx, asking, request, asked)? {
                Some(answered) => answered,
                None => ask_default_proxies(selector, pending, &mut None, cx, asking),
            };
        }
        ask_proxies(selector, pending, &mut None, cx, asking)
    }

    #[inline]
    fn names(&mut self, selector: &mut Selector, cx: &Context<'_>, lookup: Lookup) -> Result<()> {
        if let Some((request, asked)) = self.before.names.take() {
            return settle(selector, &mut self.pending, cx, self.asking, lookup, request, asked);
        }
        ask_names(selector, &mut self.pending, cx, self.asking, lookup)
    }
}
