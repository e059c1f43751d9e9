//! What every room stands on: clock, random source, queues, worker pool, fork guard.
