//! The C boundary and nothing else: one file per handle, in the order of the header.
//!
//! Every export is written out literally and its body is one call of a guard function (`guard.rs`) with a closure.
//! The closure turns pointers into checked Rust values (`handle.rs`, `arguments.rs`), calls the floor below, and
//! writes the outputs. Nothing else happens here.
//!
//! The first lines of an item's documentation end up in `include/byway.h`: what it does, then `Ownership:`,
//! `Threads:` and `Errors:` where they say something the conventions at the top of the header do not.

#![allow(unsafe_code, non_camel_case_types)]
#![allow(improper_ctypes_definitions, reason = "handles are opaque: declared in the header, never defined")]
#![allow(clippy::missing_safety_doc, reason = "the contract of every pointer is in the header's conventions")]

pub mod arguments;
pub mod callbacks;
#[cfg(feature = "failpoints")]
pub mod failpoint;
mod guard;
mod handle;

pub mod address;
pub mod binding;
pub mod call;
pub mod chain;
pub mod chain_report;
pub mod choice;
pub mod dial;
pub mod dial_hooks;
pub mod dial_options;
pub mod dns;
pub mod engine;
pub mod error;
pub mod feedback;
pub mod filter;
pub mod handshake;
pub mod host;
pub mod invocation;
pub mod invokers;
pub mod library;
pub mod listener;
pub mod proxy;
pub mod proxy_built_in;
pub mod proxy_composed;
pub mod proxy_question;
pub mod proxy_script;
#[cfg(not(feature = "script"))]
mod proxy_script_off;
#[cfg(feature = "script")]
mod proxy_script_on;
pub mod proxy_selector;
pub mod proxy_system;
pub mod queue;
pub mod route;
pub mod router;
pub mod rule;
pub mod selection;
pub mod selector;
pub mod session;
pub mod source;
pub mod status;
pub mod text;
