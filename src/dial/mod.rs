//! From a Selection to a connected socket.
//!
//! Pure parts first, each usable alone: [`race`] (virtual clock in, start and cancel out), [`socks`] and
//! [`connect`] (bytes in, bytes out), [`handshake`] (one proxy dialogue over either).

pub mod connect;
pub mod fault;
pub mod handshake;
pub mod race;
pub mod socks;

pub use fault::{Blame, Fault};
