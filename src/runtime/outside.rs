//! Host code on a thread of this library, for engines whose host allows that: one thread for the process, made when
//! something is first to be told, and a queue that only it polls.

use super::queue::{Job, Queue, QueueOptions};
use crate::sys::thread;
use core::panic::AssertUnwindSafe;
use once_cell::sync::Lazy;
use parking_lot::Mutex;
use std::sync::Arc;

static QUEUE: Lazy<Arc<Queue>> = Lazy::new(|| Queue::new(QueueOptions::default()));
static RUNS: Mutex<bool> = Mutex::new(false);

/// Has `job` run there; one that waits under the same key (0: none) is replaced. False when it is lost: too many wait,
/// or there is no thread to be had.
pub fn post(key: u64, job: Job) -> bool {
    is_running() && QUEUE.post_latest(key, job)
}

fn is_running() -> bool {
    let mut runs = RUNS.lock();
    if !*runs {
        *runs = thread::spawn("byway-callbacks", run).is_ok();
    }
    *runs
}

fn run() {
    loop {
        // What a job panics with ends that job alone; the others are still in the queue.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| QUEUE.poll(None, 0, |_| ())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn jobs_run_in_order_on_one_named_thread_and_survive_a_panic() {
        let (tell, told) = mpsc::channel();
        assert!(post(0, Box::new(|| panic!("meant"))));
        for number in 0..3 {
            let tell = tell.clone();
            assert!(post(
                0,
                Box::new(move || {
                    let name = std::thread::current().name().map(str::to_owned);
                    tell.send((number, name)).unwrap();
                })
            ));
        }
        let seen: Vec<_> = (0..3).map(|_| told.recv().unwrap()).collect();
        let name = Some("byway-callbacks".to_owned());
        assert_eq!(seen, [(0, name.clone()), (1, name.clone()), (2, name)]);
    }
}
