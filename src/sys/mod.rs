//! The only `unsafe` below the C boundary: system calls, SIMD kernels, handle slabs.

#![allow(unsafe_code)]

pub mod bell;
pub mod bitset;
pub mod descriptor;
pub mod fence;
pub mod fork;
pub mod futex;
pub mod pinned;
pub mod poller;
pub mod published;
pub mod record;
pub mod resolve;
#[cfg(feature = "script")]
pub mod script_heap;
pub mod slab;
pub mod socket;
pub mod spin;
pub mod thread;
pub mod wake;
