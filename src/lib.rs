//! byway is a route engine. It answers two questions for a networking stack:
//!
//! 1. *Where do I connect next?* ([`net`]) Address, proxies, DNS and what failed before become routes to try,
//!    in order.
//! 2. *Which provider serves this call?* ([`chain`]) Provider list, rules and invocation become the providers
//!    that may serve it, with the reason for every other one.
//!
//! # The house
//!
//! Floors; imports only go down.
//!
//! | floor | rooms | what lives there |
//! |---|---|---|
//! | 6 | `ffi` | the C boundary and nothing else: one file per handle |
//! | 5 | `engine` | composes everything below into the one thing a host holds |
//! | 4 | [`source`], [`dial`], [`proxies`] | where rules come from; sockets; built-in proxy selectors |
//! | 3 | [`rules`], `script` | rule languages, text to program; the sandboxed JavaScript engine |
//! | 2 | [`net`], [`chain`] | the two vocabularies and algorithms: no I/O; they do not know each other |
//! | 1 | [`runtime`] | clock, random source, queues, worker pool, fork guard |
//! | 0 | [`sys`], [`error`] | system calls, SIMD kernels, handle slabs; every way anything can fail |
//!
//! `unsafe` lives in `ffi` and `sys` only; the lint table in `Cargo.toml` forbids it elsewhere.

pub mod chain;
pub mod dial;
pub mod engine;
pub mod error;
pub mod ffi;
pub mod net;
pub mod proxies;
pub mod rules;
pub mod runtime;
#[cfg(feature = "script")]
pub mod script;
pub mod source;
pub mod sys;

pub use error::{Error, Result, Status};
