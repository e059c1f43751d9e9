//! What became of a route: told to the database, to the proxy selector that chose it, and to whoever listens.

use super::asking;
use super::dns::Serving;
use super::listen::Audience;
use super::proxies::{Choosing, ProxySource};
use crate::engine::Engine;
use crate::error::{Error, Status};
use crate::net::events::Listening;
use crate::net::recover::{Attempt, Phase, Report, report};
use crate::net::route::flag;
use crate::net::{Compat, Event, EventKind, Failure, Route};
use std::sync::{Arc, Weak};

/// How an attempt to use a route failed.
#[derive(Clone, Copy)]
pub struct FailedAttempt<'a> {
    /// Kind.
    pub failure: Failure,
    /// When.
    pub phase: Phase,
    /// The system's number, 0 for none.
    pub os_errno: i32,
    /// The proxy selector that chose the route, if the host still has it.
    pub source: Option<&'a Weak<ProxySource>>,
    /// The host's own number of the operation.
    pub tag: u64,
}

impl Engine {
    /// A route stands: it is not postponed any more.
    pub fn connected(&self, route: &Route) {
        self.database().connected(route);
        for proxy in &self.proxy_worked(route) {
            let audience = Audience { listeners: self.listeners(), tag: 0 };
            Listening::to(&audience, self.listeners().mask()).emit(EventKind::ProxyMarkedBad, || Event {
                proxy: Some(proxy),
                ..Event::new(EventKind::ProxyMarkedBad, route.selector(), route.address())
            });
        }
    }

    /// Should this route go behind the others?
    #[inline]
    pub fn should_postpone(&self, route: &Route) -> bool {
        self.database().should_postpone(route.key(), || self.database_now())
    }

    /// An attempt failed: database first, then the proxy selector that chose the route, then the listeners.
    ///
    /// # Errors
    /// `E_SHUTDOWN` when the proxy selector could not be told any more.
    pub fn connect_failed(&self, route: &Route, failed: &FailedAttempt<'_>) -> Result<Report, Status> {
        let attempt = Attempt {
            failure: failed.failure,
            phase: failed.phase,
            from_selector: route.flags() & flag::FROM_SELECTOR != 0,
            proxied: route.proxy().is_some(),
            retry_enabled: true,
        };
        let told = report(self.options().compat, &attempt);
        self.tell_failure(route, failed, &told, None)?;
        Ok(told)
    }

    /// Tells those of a failure who are to be told. Listeners see `error`; `None` = the failure's own words.
    ///
    /// # Errors
    /// As [`Engine::connect_failed`].
    pub fn tell_failure(
        &self,
        route: &Route,
        failed: &FailedAttempt<'_>,
        told: &Report,
        error: Option<&Error>,
    ) -> Result<(), Status> {
        self.proxy_failed(route, failed.failure, failed.os_errno, failed.phase);
        if told.database {
            let now = self.database_now();
            match self.options().compat {
                Compat::Byway => self.database().failed(route, failed.failure, failed.os_errno, now),
                _ => self.database().put(route, failed.failure, failed.os_errno, now),
            }
        }
        if told.proxy_selector
            && let Some(source) = failed.source.and_then(Weak::upgrade)
        {
            self.tell(&source, route, failed)?;
        }
        let kind = match () {
            () if told.canceled_event => EventKind::ConnectCanceled,
            () if told.failed_event => EventKind::ConnectFailed,
            () => return Ok(()),
        };
        if self.listeners().mask() & kind.bit() != 0 {
            let own = || Error::new(failed.failure.status(), failed.failure.text()).os(failed.os_errno);
            self.emit(kind, route, failed.tag, Some(&error.cloned().unwrap_or_else(own)));
        }
        Ok(())
    }

    fn tell(
        &self,
        source: &Arc<ProxySource>,
        route: &Route,
        failed: &FailedAttempt<'_>,
    ) -> Result<(), Status> {
        let leaf = source.leaf(&asking::asked_target(route.address()), &mut Vec::new());
        let Some(Choosing::Host(host)) = leaf.as_ref().ok().map(|leaf| leaf.kind()) else { return Ok(()) };
        let serving = Serving { tag: failed.tag, id: route.selector(), left: None, engine: self.handle() };
        self.host_call(0, || host.connect_failed(route, failed.failure, failed.os_errno, &serving))
    }

    /// Tells the listeners of something that happened to a route.
    pub fn emit(&self, kind: EventKind, route: &Route, tag: u64, error: Option<&Error>) {
        let audience = Audience { listeners: self.listeners(), tag };
        Listening::to(&audience, self.listeners().mask()).emit(kind, || Event {
            route: Some(route.as_ref()),
            error,
            ..Event::new(kind, route.selector(), route.address())
        });
    }
}
