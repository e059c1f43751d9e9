//! The one thread of a source: woken by flags, ended with it.

use crate::error::{Error, Result, Status};
use crate::sys::thread;
use crate::sys::wake::Wake;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread is to end.
pub(super) const STOP: u32 = 1;
/// What is followed has changed.
pub(super) const TOPICS: u32 = 2;

/// See the module.
#[derive(Default)]
pub(super) struct Worker {
    wake: Arc<Wake>,
    thread: Mutex<Option<JoinHandle<()>>>,
    ended: Arc<(Mutex<bool>, Condvar)>,
}

/// Says that the thread has ended, however it did.
struct Ends(Arc<(Mutex<bool>, Condvar)>);

impl Drop for Ends {
    fn drop(&mut self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }
}

impl Worker {
    /// Starts the thread, unless it runs or has been stopped.
    ///
    /// # Errors
    /// `E_RESOURCES` with the system's number.
    pub(super) fn start(&self, name: &str, work: impl FnOnce(&Wake) + Send + 'static) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_some() || self.wake.flags() & STOP != 0 {
            return Ok(());
        }
        let (wake, ends) = (Arc::clone(&self.wake), Ends(Arc::clone(&self.ended)));
        let started = thread::spawn(name, move || {
            let _ends = ends;
            work(&wake);
        });
        match started {
            Ok(started) => {
                *thread = Some(started);
                Ok(())
            }
            Err(error) => Err(Error::new(Status::E_RESOURCES, format!("no thread {name}: {error}"))
                .os(error.raw_os_error().unwrap_or(0))),
        }
    }

    /// Wakes the thread.
    pub(super) fn raise(&self, flags: u32) {
        self.wake.raise(flags);
    }

    /// Tells the thread to end and waits up to `timeout`; true when there is none any more. On the thread itself it
    /// only tells.
    pub(super) fn stop(&self, timeout: Duration) -> bool {
        self.wake.raise(STOP);
        let Some(thread) = self.thread.lock().take() else { return self.is_over() };
        if thread.thread().id() == std::thread::current().id() {
            *self.thread.lock() = Some(thread);
            return false;
        }
        let end = Instant::now().checked_add(timeout);
        let mut ended = self.ended.0.lock();
        while !*ended {
            let over = match end {
                Some(end) => self.ended.1.wait_until(&mut ended, end).timed_out(),
                None => {
                    self.ended.1.wait(&mut ended);
                    false
                }
            };
            if over && !*ended {
                drop(ended);
                *self.thread.lock() = Some(thread);
                return false;
            }
        }
        drop(ended);
        // It has said that it ends: this is a matter of microseconds.
        let _ = thread.join();
        true
    }

    fn is_over(&self) -> bool {
        *self.ended.0.lock() || self.thread.lock().is_none()
    }
}
