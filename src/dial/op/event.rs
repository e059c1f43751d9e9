//! What a host sees of an operation between steps: descriptors to watch, events, results.

use crate::dial::fault::Fault;
use crate::dial::race::Millis;
use crate::error::Error;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// One descriptor a host has to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PollEntry {
    /// The attempt's number, 0 for the wake-up descriptor. A descriptor number may come back for another attempt
    /// within one step: compare these.
    pub id: u32,
    /// 0.
    pub reserved: u32,
    /// The descriptor.
    pub fd: RawFd,
    /// `POLLIN`, `POLLOUT`.
    pub events: i16,
    /// What `poll` said.
    pub revents: i16,
}

/// What happened, for hosts that keep state per descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Which attempt.
    pub attempt: u32,
    /// Its descriptor, -1 when it has none.
    pub fd: RawFd,
    /// Milliseconds since the first step.
    pub at_ms: Millis,
    /// Why, for failures.
    pub fault: Option<Fault>,
}

/// Kinds of [`Event`]. The numbers are part of the C ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EventKind {
    /// A connect was started.
    Start = 1,
    /// TCP stands, the proxy dialogue begins.
    Handshake = 2,
    /// The descriptor is about to be closed: forget it now.
    FdClosing = 3,
    /// It failed.
    Failed = 4,
    /// It ended without blame.
    Canceled = 5,
    /// The host is asked for credentials later.
    Credentials = 6,
    /// The host may use it while the race goes on.
    Offer = 7,
    /// It won.
    Won = 8,
}

/// The connected socket.
#[derive(Debug)]
pub struct Connected<R> {
    /// The socket; the caller's own from now on.
    pub socket: OwnedFd,
    /// The route it leads over.
    pub route: R,
    /// The attempt's number, for [`super::Operation::confirm`] and [`super::Operation::resume`].
    pub attempt: u32,
    /// TLS to the proxy must be run first, then a [`crate::dial::handshake::Handshake`].
    pub needs_proxy_tls: bool,
    /// The race goes on until this attempt is confirmed.
    pub provisional: bool,
}

/// A failed attempt, or a Selection that could not be made.
#[derive(Clone, Debug)]
pub struct FailureRecord<R> {
    /// The route; none when no Selection could be made.
    pub route: Option<R>,
    /// The attempt's number, 0 without one.
    pub attempt: u32,
    /// Why.
    pub fault: Option<Fault>,
    /// The system's number, 0 for none.
    pub errno: i32,
    /// Begin and end in milliseconds since the first step.
    pub span_ms: (Millis, Millis),
    /// The whole error.
    pub error: Error,
}

/// So that a socket's number can be shown without giving it away.
impl<R> Connected<R> {
    /// The descriptor's number.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
