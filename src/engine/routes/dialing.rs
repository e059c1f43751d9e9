//! Dialling with an engine: Selections become the routes of an operation, and what becomes of them is told to the
//! database, to the proxy selector that chose them, and to the listeners.

use super::feedback::FailedAttempt;
use super::proxies::ProxySource;
use super::select::{Driven, Selecting, Side};
use crate::dial::race::Family;
use crate::dial::socks::{Credentials, Host, Version};
use crate::dial::{Batch, Canceler, Fault, Leg, Next, Report, RouteSource, Via, Waker};
use crate::engine::{Engine, Operation, Telling};
use crate::error::{Error, Status};
use crate::net::recover::{Phase, Report as Told};
use crate::net::route::{Target, flag};
use crate::net::{EventKind, Failure, ProxyKind, Route, Selection};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::sync::{Arc, Weak};

/// A route with the proxy selector that chose it, as long as the host has that.
#[derive(Clone)]
pub struct DialRoute {
    /// The route.
    pub route: Route,
    /// Who chose its proxy.
    pub source: Option<Weak<ProxySource>>,
}

/// Lends a selector for one step. Whoever holds it makes sure that nobody else works on it meanwhile.
pub trait Lends: Send {
    /// The selector, and what other threads may touch of it.
    fn lend(&mut self) -> (&Side, &mut Selecting);
}

/// Where the routes of an operation come from.
pub enum Origin {
    /// A selector, Selection after Selection.
    Selector(Box<dyn Lends>),
    /// One Selection, given once.
    Routes(Vec<DialRoute>),
}

/// The routes of one operation.
pub struct Routes {
    engine: Arc<Engine>,
    origin: Origin,
    tag: u64,
    /// Address of the handle host code is called for.
    object: Arc<AtomicUsize>,
    /// The family whose answer is still awaited, and the proxy it is about.
    awaited: Option<(Family, u64)>,
    /// What came while a family had to be closed first.
    held: Option<Held>,
}

enum Held {
    Selection(Selection),
    Next(Next),
}

impl Routes {
    /// Routes whose outcomes are reported to `engine` under the host's own number.
    pub fn new(engine: Arc<Engine>, origin: Origin, tag: u64, object: Arc<AtomicUsize>) -> Routes {
        Routes { engine, origin, tag, object, awaited: None, held: None }
    }

    /// The engine outcomes are reported to.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// A Selection or one family of it, as the state of the lookup says.
    fn deliver(&mut self, selection: Selection, batch: &mut Batch<DialRoute>) -> Next {
        let Origin::Selector(lender) = &mut self.origin else { return Next::Done };
        let (_, work) = lender.lend();
        let address = &work.target().address;
        let first = work.core().routes(address, &selection).next();
        let first =
            first.map(|route| (family_of(route.hop().0.family), route.proxy().map_or(0, |proxy| proxy.id())));
        if let (Some((family, proxy)), Some((other, of))) = (self.awaited, first)
            && (proxy != of || family != other)
        {
            // The awaited family has no address; this is another Selection.
            self.held = Some(Held::Selection(selection));
            self.awaited = None;
            return Next::Family { family, last: true };
        }
        let proxies = work.target().proxies.as_ref();
        batch.extend(work.core().routes(address, &selection).map(|route| DialRoute {
            source: proxies.filter(|_| route.flags() & flag::FROM_SELECTOR != 0).map(Arc::downgrade),
            route: route.to_route(),
        }));
        if let Some((family, _)) = self.awaited.take() {
            return Next::Family { family, last: true };
        }
        match first {
            Some((family, proxy)) if work.awaits_names() => {
                let other = if family == Family::V4 { Family::V6 } else { Family::V4 };
                self.awaited = Some((other, proxy));
                Next::Family { family, last: true }
            }
            _ => Next::Selection,
        }
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        if let Origin::Selector(lender) = &mut self.origin {
            let (side, work) = lender.lend();
            work.forget_waker(side);
        }
    }
}

fn family_of(family: u8) -> Family {
    if family == 4 { Family::V4 } else { Family::V6 }
}

impl RouteSource for Routes {
    type Route = DialRoute;

    fn poll_next(&mut self, batch: &mut Batch<DialRoute>, waker: &Waker) -> Next {
        match self.held.take() {
            Some(Held::Next(next)) => return next,
            Some(Held::Selection(selection)) => return self.deliver(selection, batch),
            None => {}
        }
        let lender = match &mut self.origin {
            Origin::Selector(lender) => lender,
            Origin::Routes(routes) if routes.is_empty() => return Next::Done,
            Origin::Routes(routes) => {
                batch.extend(routes.drain(..));
                return Next::Selection;
            }
        };
        let object = self.object.load(Ordering::Relaxed);
        let (side, work) = lender.lend();
        let waker = waker.clone();
        let next = match work.poll_waking(side, object, move || waker.wake()) {
            Ok(Driven::Wait) => return Next::Pending,
            Ok(Driven::Selection(selection)) => return self.deliver(selection, batch),
            Ok(Driven::Done) => Next::Done,
            Err(error) if matches!(error.status(), Status::E_CANCELED | Status::E_SHUTDOWN) => {
                return Next::Ended(error);
            }
            Err(error) => Next::Failed(error),
        };
        match self.awaited.take() {
            Some((family, _)) => {
                self.held = Some(Held::Next(next));
                Next::Family { family, last: true }
            }
            None => next,
        }
    }

    fn leg<'a>(&self, route: &'a DialRoute) -> Leg<'a> {
        leg(&route.route)
    }

    fn report(&mut self, route: &DialRoute, report: Report<'_>) {
        let (engine, tag) = (&self.engine, self.tag);
        match report {
            Report::Started => engine.emit(EventKind::ConnectStart, &route.route, tag, None),
            Report::Canceled => engine.emit(EventKind::ConnectCanceled, &route.route, tag, None),
            Report::Connected => {
                engine.connected(&route.route);
                engine.emit(EventKind::ConnectEnd, &route.route, tag, None);
            }
            Report::Failed { fault, errno, database, selector, error } => {
                let from_selector = route.route.flags() & flag::FROM_SELECTOR != 0;
                let told = Told {
                    failed_event: true,
                    canceled_event: false,
                    proxy_selector: selector && from_selector && route.route.proxy().is_some(),
                    database,
                    next_route: true,
                };
                let failed = FailedAttempt {
                    failure: failure(fault),
                    phase: Phase::Tcp,
                    os_errno: errno,
                    source: route.source.as_ref(),
                    tag,
                };
                // Shut down meanwhile: nobody is left to be told.
                let _ = engine.tell_failure(&route.route, &failed, &told, Some(error));
            }
        }
    }
}

/// What an operation has to know of a route.
pub fn leg(route: &Route) -> Leg<'_> {
    let (ip, port) = route.hop();
    let hop = match ip.to_std() {
        Some(IpAddr::V4(v4)) => SocketAddr::new(v4.into(), port),
        Some(IpAddr::V6(v6)) => SocketAddrV6::new(v6, port, 0, ip.scope_id).into(),
        // Port 0 is refused before a socket is made.
        None => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
    };
    let via = match route.proxy_kind() {
        ProxyKind::Direct => Via::Direct,
        ProxyKind::Http => Via::Http,
        ProxyKind::Https => Via::Https,
        ProxyKind::Socks4 => Via::Socks(Version::V4),
        ProxyKind::Socks4a => Via::Socks(Version::V4a),
        ProxyKind::Socks5 | ProxyKind::Socks5h => Via::Socks(Version::V5),
    };
    let (target, port) = route.target();
    let host = match target {
        Target::Name(name) => Host::Name(name),
        Target::Ip(ip) => ip.to_std().map_or(Host::Name(""), Host::Ip),
    };
    let credentials = route.proxy().and_then(|proxy| {
        (proxy.user().is_some() || proxy.password().is_some()).then(|| Credentials {
            user: proxy.user().unwrap_or_default(),
            password: proxy.password().unwrap_or_default(),
        })
    });
    Leg { hop, via, tunnel: route.requires_tunnel(), host, port, credentials }
}

/// The kind of failure the database and proxy selectors know.
fn failure(fault: Fault) -> Failure {
    match fault {
        Fault::Refused => Failure::Refused,
        Fault::Reset => Failure::Reset,
        Fault::HostUnreachable | Fault::NetUnreachable => Failure::Unreachable,
        Fault::TimeoutAttempt | Fault::TimeoutReady => Failure::Timeout,
        Fault::TlsFailed => Failure::TlsHandshake,
        Fault::TlsCertificate => Failure::TlsCertificate,
        Fault::SelfConnect => Failure::SelfConnect,
        Fault::Socket(errno) => Failure::from_errno(errno),
        fault if fault.is_local() => Failure::Local,
        fault => match fault.status() {
            Status::E_PROXY_REFUSED => Failure::ProxyRefused,
            Status::E_PROXY_AUTH => Failure::ProxyAuth,
            _ => Failure::ProxyProtocol,
        },
    }
}

/// Ends an operation when its engine shuts down.
pub struct Stop(pub Canceler);

impl Operation for Stop {
    fn stop(&self, status: Status) -> Option<Telling> {
        self.0.stop(status);
        None
    }
}

impl Engine {
    /// Has an operation end with this engine, until [`Engine::forget`] of the number it gives.
    ///
    /// # Errors
    /// `E_SHUTDOWN`.
    pub fn watch_over(&self, stop: &Arc<Stop>) -> Result<u64, Error> {
        let id = self.next_id();
        self.remember(id, Arc::clone(stop) as Arc<dyn Operation>)?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dial_and_a_hosts_own_transport_tell_the_same_number_the_same() {
        for errno in -1..200 {
            assert_eq!(failure(Fault::of_network(errno)), Failure::from_errno(errno), "{errno}");
        }
        assert_eq!(Failure::from_errno(libc::ECONNREFUSED), Failure::Refused);
        assert_eq!(Failure::from_errno(libc::EMFILE), Failure::Local);
        assert_eq!(Failure::from_errno(0), Failure::Io);
    }
}
