//! One question to a proxy selector outside a connection: which proxies does this URL have?

use super::asking::refusal;
use super::bad_proxies::Moved;
use super::dns::{Resolver, Serving};
#[cfg(feature = "script")]
use super::listen::Audience;
use super::open;
use super::proxies::{Choosing, ProxySource};
use super::request::ProxyRequest;
#[cfg(feature = "script")]
use super::script_proxies::{Asker, Hearing, ScriptQuestion};
use super::select::Patience;
use super::waiter::Waiter;
use crate::engine::{Engine, Operation};
use crate::error::{Error, Result, Source, Status};
#[cfg(feature = "script")]
use crate::net::EventKind;
use crate::net::address::AddressSpec;
#[cfg(feature = "script")]
use crate::net::events::Listening;
use crate::net::{Address, Listed};
use crate::proxies::{OwnedTarget, Why};
use crate::runtime::notice::Notice;
use crate::sys::resolve::interface_index;
use crate::sys::slab::Shared;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// A list and why it is what it is.
#[derive(Debug)]
pub struct Found {
    /// In order; never empty.
    pub list: Vec<Listed>,
    /// From the outermost proxy selector inwards.
    pub why: Vec<Why>,
    /// Proxies that failed lately and stand behind the others therefore.
    pub moved: Vec<Moved>,
}

impl Found {
    /// The list with its reasons, as JSON.
    pub fn explain(&self, url: &OwnedTarget) -> String {
        let shown = |entry: &Listed| match entry {
            Listed::Proxy(proxy) => proxy.to_string(),
            Listed::Direct | Listed::Null => "DIRECT".to_owned(),
        };
        let mut document = serde_json::Map::new();
        document.insert("host".into(), url.borrow().host.into());
        document.insert("proxies".into(), self.list.iter().map(shown).collect());
        super::reasons::insert(&mut document, &self.why, &self.moved);
        serde_json::Value::Object(document).to_string()
    }
}

/// What one source came to.
enum Answer {
    Found(Vec<Listed>),
    Passed,
}

/// One question under way.
struct ForUrl<'a> {
    engine: &'a Engine,
    #[cfg_attr(not(feature = "script"), expect(dead_code, reason = "only scripts want names"))]
    resolver: Option<&'a Arc<Resolver>>,
    url: &'a OwnedTarget,
    patience: Patience,
    waiter: Option<Arc<Waiter>>,
    why: Vec<Why>,
}

impl Engine {
    /// Asks `source` about a URL and waits as long as `patience` says. `resolver` is asked for what a script wants to
    /// know and has no resolver of its own for; `None` = the system.
    ///
    /// # Errors
    /// The proxy selector's; `E_TIMEOUT`, `E_WOULD_DEADLOCK` on the thread of an event loop, `E_SHUTDOWN`.
    pub fn proxies_for_url(
        &self,
        source: &Arc<ProxySource>,
        resolver: Option<&Arc<Resolver>>,
        url: &OwnedTarget,
        patience: Patience,
    ) -> Result<Found> {
        self.check_open()?;
        let mut asked = ForUrl { engine: self, resolver, url, patience, waiter: None, why: Vec::new() };
        let found = asked.all(source);
        if let Some(waiter) = asked.waiter.take() {
            self.forget(waiter.id);
        }
        let mut list = found?;
        let moved = self.order_proxies(&mut list, |_| ());
        Ok(Found { list, why: asked.why, moved })
    }
}

impl ForUrl<'_> {
    fn all(&mut self, source: &Arc<ProxySource>) -> Result<Vec<Listed>> {
        if let Answer::Found(list) = self.one(source)? {
            return Ok(list);
        }
        if let Some(default) = self.engine.default_proxies()
            && let Answer::Found(list) = self.one(&default)?
        {
            return Ok(list);
        }
        Ok(vec![Listed::Direct])
    }

    fn one(&mut self, source: &Arc<ProxySource>) -> Result<Answer> {
        self.why.clear();
        let target = self.url.borrow();
        let leaf = source.leaf(&target, &mut self.why)?;
        Ok(Answer::Found(match leaf.kind() {
            Choosing::Fixed(list) => list.clone(),
            Choosing::BuiltIn(own) => {
                let choice = own.select(&target)?;
                self.why.push(choice.why);
                choice.proxies.to_vec()
            }
            Choosing::Host(_) => return self.host(&leaf),
            #[cfg(feature = "script")]
            Choosing::Script(_) => self.script(&leaf)?,
            _ => vec![Listed::Direct],
        }))
    }

    fn serving(&self) -> Serving {
        Serving { tag: 0, id: 0, left: self.patience.left(), engine: self.engine.handle() }
    }

    /// The URL as an address without resolver and proxy selector.
    fn address(&self) -> Result<Address> {
        let target = self.url.borrow();
        let spec = AddressSpec {
            scheme: target.scheme,
            host: target.host,
            port: i64::from(target.port),
            ..AddressSpec::default()
        };
        Address::new(spec, self.engine.options().compat, &interface_index)
    }

    fn host(&mut self, leaf: &Arc<ProxySource>) -> Result<Answer> {
        let Choosing::Host(host) = leaf.kind() else { return Ok(Answer::Passed) };
        let address = self.address()?;
        let request = Shared::new(ProxyRequest::new(self.engine.next_id()));
        let serving = self.serving();
        let call = || host.select(&request, &address, &serving);
        let (status, open) = self
            .engine
            .ask_host(0, call, || open::left(&request, host, |host, request| host.canceled(request)))?;
        match status {
            Status::OK => {
                let _ = request.finish(Ok(()));
            }
            Status::PENDING => {}
            Status::PASS => {
                request.cancel();
                return Ok(Answer::Passed);
            }
            failed => {
                request.cancel();
                return Err(refusal(failed));
            }
        }
        while !request.is_answered() {
            if let Err(error) = self.until(|notice| request.watch(notice, false)) {
                open::give_up(&request, open);
                return Err(error);
            }
        }
        let list = request.read(|answer, done| match done {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(core::mem::take(&mut answer.list)),
        })?;
        match list.is_empty() {
            true if !self.engine.settings().empty_is_direct => {
                let why = "the proxy selector answered without any proxy";
                Err(Error::new(Status::E_EMPTY_ANSWER, why).source(Source::Callback))
            }
            true => Ok(Answer::Found(vec![Listed::Direct])),
            false => Ok(Answer::Found(list)),
        }
    }

    #[cfg(feature = "script")]
    fn script(&mut self, leaf: &Arc<ProxySource>) -> Result<Vec<Listed>> {
        let mut question = ScriptQuestion::new(Arc::clone(leaf), &self.url.borrow());
        let audience = Audience { listeners: self.engine.listeners(), tag: 0 };
        // Built for listeners alone; a host that is none in an address has names asked for in silence.
        let heard = audience.listeners.mask() & (EventKind::DnsStart.bit() | EventKind::DnsEnd.bit()) != 0;
        let address = heard.then(|| self.address().ok()).flatten().map(Arc::new);
        loop {
            let serving = self.serving();
            let asker = Asker {
                engine: self.engine,
                resolver: self.resolver,
                serving: &serving,
                object: 0,
                in_place: false,
                hearing: Hearing {
                    listening: Listening::to(&audience, audience.listeners.mask()),
                    selector: 0,
                    address: address.as_ref(),
                    compat: self.engine.options().compat,
                },
            };
            if let Some(answer) = question.drive(&asker)? {
                let choice = answer?;
                self.why.push(choice.why);
                return Ok(choice.proxies.to_vec());
            }
            if let Err(error) = self.until(|notice| question.watch(notice)) {
                question.give_up();
                return Err(error);
            }
        }
    }

    /// Waits for news. `watch` is false when they are there already.
    fn until(&mut self, watch: impl Fn(&Arc<Notice>) -> bool) -> Result<()> {
        let waiter = self.waiter()?;
        let seen = waiter.notice.seen();
        if !watch(&waiter.notice) {
            return Ok(());
        }
        let late = || Error::new(Status::E_TIMEOUT, "no answer in time").source(Source::Engine);
        let Some(end) = self.patience.end() else { return Err(late()) };
        if waiter.notice.queue().would_deadlock() {
            return Err(Status::E_WOULD_DEADLOCK.into());
        }
        if !waiter.notice.wait(seen, Some(end)) {
            return Err(late());
        }
        match waiter.stopped.load(Ordering::SeqCst) {
            0 => Ok(()),
            status => Err(Error::bare(Status(status)).source(Source::Engine)),
        }
    }

    fn waiter(&mut self) -> Result<Arc<Waiter>> {
        if let Some(waiter) = &self.waiter {
            return Ok(Arc::clone(waiter));
        }
        let id = self.engine.next_id();
        let waiter = Arc::new(Waiter::new(id, self.engine.queue()));
        self.engine.remember(id, Arc::clone(&waiter) as Arc<dyn Operation>)?;
        self.waiter = Some(Arc::clone(&waiter));
        Ok(waiter)
    }
}
