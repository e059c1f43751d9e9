//! From a Selection to a connected socket.
//!
//! Pure parts first, each usable alone: [`race`] (virtual clock in, start and cancel out), [`socks`] and
//! [`connect`] (bytes in, bytes out), [`handshake`] (one proxy dialogue over either). On top of them [`op`], one
//! operation over real sockets that a host drives from its own event loop or lets block, and [`explain`], its
//! waterfall.
//!
//! # What is reported
//!
//! | outcome | event | route database | proxy selector |
//! |---|---|---|---|
//! | winner, or the host's confirmation | connected | connected | |
//! | refused, reset, unreachable by ICMP, timeouts, protocol faults of the proxy | failed | failed | told |
//! | the proxy could not reach the target (SOCKS replies) | failed | failed | |
//! | CONNECT status other than 2xx and 407 | failed | only when the next route is to be tried | |
//! | credentials missing or refused | failed | | |
//! | this machine could not make the attempt | failed, marked local | | |
//! | lost, dropped, cancelled, overall deadline | canceled | | |
//! | the host's TLS failed (`resume`) | failed | failed, but not for certificates | told |

mod attempt;
pub mod connect;
pub mod driver;
pub mod explain;
pub mod fault;
pub mod handshake;
pub mod op;
pub mod options;
pub mod race;
pub mod socks;
pub mod source;

pub use fault::{Blame, Fault};
pub use op::{Authenticator, Canceler, Connected, Operation, Step};
pub use options::{Options, SocketOptions, TunnelRefusal};
pub use source::{Batch, Decision, Hooks, Leg, Next, NoHooks, Report, RouteSource, Via, Waker};
