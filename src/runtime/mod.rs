//! What every room stands on: clock, random source, queues, worker pool, fork guard, files.

pub mod clock;
pub mod file;
pub mod notice;
pub mod outside;
pub mod queue;
pub mod random;
