//! What an operation needs from outside: routes, somebody to report to, and the host's hooks.

use super::fault::Fault;
use super::race::Family;
use super::socks::{Credentials, Host, Version};
use crate::error::Error;
use smallvec::SmallVec;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// How a route reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The hop is the target.
    Direct,
    /// An HTTP proxy.
    Http,
    /// An HTTP proxy behind TLS, which the host runs.
    Https,
    /// A SOCKS proxy.
    Socks(Version),
}

/// What the operation has to know of a route.
#[derive(Clone, Copy)]
pub struct Leg<'a> {
    /// What `connect(2)` gets.
    pub hop: SocketAddr,
    /// How it goes on from there.
    pub via: Via,
    /// An HTTP proxy must be asked for a tunnel; without it the host sends absolute-form requests.
    pub tunnel: bool,
    /// What the proxy is told.
    pub host: Host<'a>,
    /// The target's port.
    pub port: u16,
    /// The proxy's own credentials.
    pub credentials: Option<Credentials<'a>>,
}

/// Routes of one answer.
pub type Batch<R> = SmallVec<[R; 4]>;

/// What [`RouteSource::poll_next`] has.
#[derive(Debug)]
pub enum Next {
    /// One whole Selection was put into the batch.
    Selection,
    /// One family's addresses of the Selection under way, perhaps none; the other family's may still come.
    Family {
        /// The family.
        family: Family,
        /// No more of this family will come.
        last: bool,
    },
    /// The answer comes later; the waker is raised then.
    Pending,
    /// No further Selection.
    Done,
    /// No Selection could be made; counts as one failure, and the next call goes on.
    Failed(Error),
    /// The source is over, and so is the operation: cancelled, shut down.
    Ended(Error),
}

/// What is reported about a route.
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// A connect was started.
    Started,
    /// It stands and was handed over.
    Connected,
    /// It failed. The switches say who is to be told beside the listeners.
    Failed {
        /// Why.
        fault: Fault,
        /// The system's number, 0 for none.
        errno: i32,
        /// The route database postpones it.
        database: bool,
        /// The proxy selector that chose it hears of it.
        selector: bool,
        /// The whole error, for people.
        error: &'a Error,
    },
    /// Ended without blame: another one won, the caller cancelled, time ran out.
    Canceled,
}

/// Where routes come from and where results go. Called on the driving thread only, with no lock held.
pub trait RouteSource {
    /// A route; cloning must be cheap.
    type Route: Clone;

    /// The next Selection, never waiting. New routes go into `batch`, which comes empty.
    fn poll_next(&mut self, batch: &mut Batch<Self::Route>, waker: &Waker) -> Next;

    /// What has to be known of a route.
    fn leg<'a>(&self, route: &'a Self::Route) -> Leg<'a>;

    /// Something happened to a route.
    fn report(&mut self, route: &Self::Route, report: Report<'_>);
}

/// Raised when a source that answered [`Next::Pending`] has news. From any thread.
#[derive(Clone)]
pub struct Waker(pub(super) Arc<super::op::Shared>);

impl Waker {
    /// Wakes the driving thread.
    pub fn wake(&self) {
        self.0.wake.raise(super::op::SOURCE);
    }
}

/// What the host's authenticator says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No credentials: the attempt ends.
    GiveUp,
    /// This value for `Proxy-Authorization`.
    Answer(String),
    /// Later, by [`super::op::Authenticator::answer`].
    Later,
}

/// Host code an operation may call, on the driving thread, with no lock held. Every hook has a built-in default.
#[allow(unused_variables)]
pub trait Hooks<R> {
    /// Opens a stream socket for this family (`AF_INET`, `AF_INET6`) and protocol instead of `socket(2)`, for
    /// example one a VPN service has to protect. `None`: open it as usual. The operation makes it non-blocking.
    ///
    /// # Errors
    /// The route is skipped, with this number as its `errno`.
    fn open_socket(&mut self, family: i32, protocol: i32, route: &R) -> Result<Option<RawFd>, i32> {
        Ok(None)
    }

    /// Sets further options before `connect(2)`.
    ///
    /// # Errors
    /// The route is skipped, with this number as its `errno`.
    fn configure(&mut self, fd: RawFd, route: &R) -> Result<(), i32> {
        Ok(())
    }

    /// Closes a socket instead of `close(2)`. False: close it as usual.
    fn close_socket(&mut self, fd: RawFd) -> bool {
        false
    }

    /// Credentials for a proxy's challenges; none before the first request.
    fn proxy_auth(&mut self, attempt: u32, route: &R, challenges: &[String]) -> Decision {
        Decision::GiveUp
    }
}

/// No hooks.
pub struct NoHooks;

impl<R> Hooks<R> for NoHooks {}
