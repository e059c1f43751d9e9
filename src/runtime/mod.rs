//! What every room stands on: clock, random source, queues, worker pool, fork guard.

pub mod clock;
pub mod notice;
pub mod queue;
pub mod random;
