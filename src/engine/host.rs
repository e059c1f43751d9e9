//! Rules for running host code: when it may run, how it is counted, when its `destroy` runs.
//!
//! Host code runs only through [`Engine::host_call`], on a thread that is inside the library, or where the host allows
//! it on the one of [`outside`]. `destroy` runs exactly
//! once, on a thread that is inside the library and about to leave it, when no lock of ours is held: when the last
//! owner of a set is gone ([`Engine::retire_set`]), or in shutdown, whichever is first; a shutdown waits for those that
//! run on other threads.

use super::Engine;
use crate::error::Status;
use crate::runtime::outside;
use crate::runtime::queue::{Job, Queue};
use crate::sys::record::{self, CallbackScope};
use crate::sys::{fence, fork, thread};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// How a set of host callbacks ends.
pub struct End {
    /// Runs at most once.
    destroy: Box<dyn Fn() + Send + Sync>,
    /// [`IDLE`], [`DONE`], or the token of the thread that runs it.
    state: AtomicUsize,
    /// Host code may run on this library's own threads.
    any_thread: bool,
}

const IDLE: usize = 0;
const DONE: usize = 1;

/// What became of [`End::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It has run.
    Done,
    /// It runs further up on this thread.
    Here,
    /// It runs on another thread.
    Elsewhere,
}

impl End {
    /// An end that runs `destroy`, which is host code, with `any_thread` also on a thread of this library.
    pub fn new(any_thread: bool, destroy: impl Fn() + Send + Sync + 'static) -> Arc<End> {
        Arc::new(End { destroy: Box::new(destroy), state: AtomicUsize::new(IDLE), any_thread })
    }

    /// True once it has begun.
    pub fn has_begun(&self) -> bool {
        self.state.load(Ordering::Acquire) != IDLE
    }

    /// Runs `destroy` unless that has begun. On a host's thread with no lock held.
    fn run(&self) -> Ended {
        /// Also when the host's code unwinds.
        struct Over<'e>(&'e End);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.state.store(DONE, Ordering::SeqCst);
            }
        }
        let me = thread::token();
        match self.state.compare_exchange(IDLE, me, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                let over = Over(self);
                (self.destroy)();
                drop(over);
                Ended::Done
            }
            Err(DONE) => Ended::Done,
            Err(other) if other == me => Ended::Here,
            Err(_) => Ended::Elsewhere,
        }
    }
}

/// The ends of the sets made with one engine that have not run yet, so that shutdown reaches them.
#[derive(Default)]
pub(super) struct HostSets {
    ends: Mutex<HashMap<u64, Arc<End>>>,
}

impl HostSets {
    /// Runs every end that is left and says `one_more` after each. True when none is running on another thread.
    pub(super) fn end_all(&self, one_more: impl Fn()) -> bool {
        let ends: Vec<_> = self.ends.lock().iter().map(|(id, end)| (*id, Arc::clone(end))).collect();
        let mut all = true;
        for (id, end) in ends {
            match end.run() {
                Ended::Done => {
                    drop(self.ends.lock().remove(&id));
                    one_more();
                }
                Ended::Here => {}
                Ended::Elsewhere => all = false,
            }
        }
        all
    }
}

/// Host code may run on this thread. However that ends, a shutdown that waits for it is woken.
struct Inside<'e> {
    engine: &'e Engine,
    scope: Option<CallbackScope<'static>>,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        drop(self.scope.take());
        self.engine.after_callback();
    }
}

impl Engine {
    /// Puts a set's end under this engine's care until [`Engine::retire_set`].
    ///
    /// # Errors
    /// [`Status::E_SHUTDOWN`]; then it is not registered, and its owner retires it.
    pub fn register_set(&self, id: u64, end: &Arc<End>) -> Result<(), Status> {
        let mut ends = self.sets.ends.lock();
        self.check_open()?;
        ends.insert(id, Arc::clone(end));
        Ok(())
    }

    /// The last owner of a set is gone: its end runs when this thread leaves the library. Until it has, a shutdown
    /// finds it.
    pub fn retire_set(self: &Arc<Self>, id: u64, end: Arc<End>) {
        let engine = Arc::downgrade(self);
        let any_thread = end.any_thread;
        let job = move || {
            let ended = end.run();
            let Some(engine) = engine.upgrade() else { return };
            if ended == Ended::Done {
                drop(engine.sets.ends.lock().remove(&id));
            }
            if engine.check_open().is_err() {
                engine.callback_left();
            }
        };
        retire_for(any_thread, job);
    }

    /// Has `job`, which tells a host of a change, run by whoever polls `queue`; where the host allows it on a thread of
    /// ours, at once and without anybody polling. What waits under the same key (0: none) is replaced.
    pub fn tell_later(&self, queue: &Queue, key: u64, job: Job) {
        if !self.options().callbacks_any_thread {
            queue.post_latest(key, job);
        } else if !outside::post(key, job) {
            queue.note_lost();
        }
    }

    /// Runs host code for `object` (an address that recognises the handle the call is for; 0 when there is none).
    ///
    /// # Errors
    /// [`Status::E_SHUTDOWN`] when the engine is closing, [`Status::E_REENTRANT`] when callbacks are nested too deep.
    #[inline]
    pub fn host_call<T>(&self, object: usize, call: impl FnOnce() -> T) -> Result<T, Status> {
        let scope = record::current().enter_callback(self.id, object).ok_or(Status::E_REENTRANT)?;
        // From here on a shutdown waits for this call, or this call sees the shutdown.
        let _inside = Inside { engine: self, scope: Some(scope) };
        self.check_open()?;
        Ok(call())
    }

    /// Wakes a shutdown that waits for callbacks; once this thread no longer counts as inside one.
    #[inline]
    pub(super) fn after_callback(&self) {
        fence::light();
        if self.check_open().is_err() {
            self.callback_left();
        }
    }

    /// True when this thread is inside a callback of this engine: shutdown would wait for itself.
    pub fn is_inside_callback(&self) -> bool {
        record::try_current().is_some_and(|record| record.inside_engine(self.id))
    }
}

/// Has `job` (a `destroy`) run on a host's thread: when this thread leaves the library, or, on a thread of ours, when
/// the next host's thread does. Not at all in a forked child. For sets of an engine see [`Engine::retire_set`].
pub fn retire(job: Box<dyn FnOnce() + Send>) {
    if fork::is_child() {
        core::mem::forget(job);
        return;
    }
    let record = record::current();
    if record.is_inside() {
        record.put_off(job);
    } else {
        ORPHANS.lock().push(job);
        HAVE_ORPHANS.store(true, Ordering::Release);
    }
}

static ORPHANS: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());
static HAVE_ORPHANS: AtomicBool = AtomicBool::new(false);

/// Takes over what threads of ours left behind; called by polls and shutdowns, which run it on their way out.
pub fn adopt_orphans() {
    if HAVE_ORPHANS.swap(false, Ordering::AcqRel) {
        let jobs = core::mem::take(&mut *ORPHANS.lock());
        for job in jobs {
            record::current().put_off(job);
        }
    }
}

/// As [`retire`]; a thread of ours hands `job` to the one for host code, where the host allows that.
fn retire_for(any_thread: bool, job: impl FnOnce() + Clone + Send + 'static) {
    let on_ours = any_thread && !fork::is_child() && !record::current().is_inside();
    if !on_ours || !outside::post(0, Box::new(job.clone())) {
        retire(Box::new(job));
    }
}

/// Runs an end whose engine is gone, where [`Engine::retire_set`] would have.
pub fn retire_alone(end: Arc<End>) {
    let any_thread = end.any_thread;
    retire_for(any_thread, move || {
        end.run();
    });
}

#[cfg(test)]
mod tests {
    use crate::engine::for_tests;
    use crate::error::Status;
    use core::panic::AssertUnwindSafe;
    use core::time::Duration;

    /// As when an engine's last event is being told while its host releases it: nobody polls or shuts down any more.
    #[test]
    fn an_end_whose_engine_is_gone_runs_on_the_thread_for_host_code_where_that_is_allowed() {
        let (tell, told) = std::sync::mpsc::channel();
        super::retire_alone(super::End::new(true, move || {
            tell.send(std::thread::current().name().map(str::to_owned)).unwrap();
        }));
        let thread = told.recv_timeout(Duration::from_secs(60));
        assert_eq!(thread, Ok(Some("byway-callbacks".to_owned())));
    }

    fn heard() -> u32 {
        crate::engine::shutdown::CALLBACKS_LEFT.load(super::Ordering::SeqCst)
    }

    /// A shutdown sleeps until it hears that a callback has ended: also of one that ended before it began, and of one
    /// that unwinds.
    #[test]
    fn a_shutdown_hears_of_every_end_of_a_call() {
        let engine = for_tests();
        let unwound = std::panic::catch_unwind(AssertUnwindSafe(|| {
            engine.host_call(0, || {
                engine.close();
                assert!(engine.is_inside_callback());
                let before = heard();
                assert_eq!(engine.host_call(0, || ()), Err(Status::E_SHUTDOWN), "it came too late");
                assert_ne!(heard(), before);
                std::panic::resume_unwind(Box::new(heard()))
            })
        }));
        let before = *unwound.unwrap_err().downcast::<u32>().unwrap();
        assert_ne!(heard(), before, "of the one that unwound");
        assert_eq!(engine.shutdown(Duration::ZERO), Ok(Status::OK));
    }
}
