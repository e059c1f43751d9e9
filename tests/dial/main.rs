//! Dialling over real sockets: loopback, own network namespaces, proxies of the distribution.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod faults;
mod many;
mod operation;
mod peers;
mod seeded;
mod support;
