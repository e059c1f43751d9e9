//! The only `unsafe` below the C boundary: system calls, SIMD kernels, handle slabs.

#![allow(unsafe_code)]

pub mod bitset;
pub mod thread;
