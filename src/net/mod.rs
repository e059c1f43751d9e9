//! First half: the vocabulary and the algorithm of connection routing. No sockets, no threads, no callbacks.
//!
//! A host describes where it wants to go ([`Address`]); a [`Selector`] says what it needs to know (proxies, names)
//! and gives [`Selection`]s of [`Route`]s in the order to try them; a [`RouteDatabase`] remembers what failed.
//! Everything here is plain values: DNS and proxy selectors are 64-bit identities, the floors above give them life.

pub mod address;
pub mod compat;
pub mod database;
mod database_json;
pub mod dns;
pub mod events;
pub mod explain;
pub mod failure;
pub mod filter;
pub mod hash;
pub mod host;
pub mod hosts;
mod intern;
pub mod ip;
pub mod order;
pub mod plan;
pub mod proxy;
pub mod recover;
pub mod route;
pub mod selector;

pub use address::{Address, AddressSpec, Origin};
pub use compat::Compat;
pub use database::{Commit, Policy, RouteDatabase};
pub use dns::{Answer, Service};
pub use events::{Event, EventKind, EventSink};
pub use failure::Failure;
pub use filter::{Filter, Verdict};
pub use host::Host;
pub use hosts::HostsTable;
pub use ip::Ip;
pub use proxy::{Proxy, ProxyKind};
pub use route::{Route, RouteKey, RouteRef};
pub use selector::{Context, Listed, Lookup, Selection, Selector, Settings, Step};
