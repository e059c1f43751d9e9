//! Rules for running host code: when it may run, how it is counted, when its `destroy` runs.
//!
//! Host code runs only through [`Engine::host_call`], on a thread that is inside the library. `destroy` runs exactly
//! once, on a thread that is inside the library and about to leave it, when no lock of ours is held: when the last
//! owner of a set is gone ([`retire`]), or in shutdown.

use super::Engine;
use crate::error::Status;
use crate::sys::record;
use crate::sys::{fence, fork};
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// A set of host callbacks with its `destroy`.
pub trait HostSet: Send + Sync {
    /// Runs `destroy` unless it has run. Called on a host's thread with no lock held.
    fn destroy(&self);
}

/// The sets made with one engine, so that shutdown reaches those that are still owned.
#[derive(Default)]
pub(super) struct HostSets {
    sets: Mutex<HashMap<u64, Weak<dyn HostSet>>>,
}

impl HostSets {
    pub(super) fn take_all(&self) -> Vec<Arc<dyn HostSet>> {
        let sets = core::mem::take(&mut *self.sets.lock());
        sets.into_values().filter_map(|set| set.upgrade()).collect()
    }
}

impl Engine {
    /// Puts a set under this engine's care until [`Engine::unregister_set`].
    ///
    /// # Errors
    /// [`Status::E_SHUTDOWN`]; then the set is not registered and its owner's drop runs `destroy`.
    pub fn register_set(&self, id: u64, set: Weak<dyn HostSet>) -> Result<(), Status> {
        let mut sets = self.sets.sets.lock();
        self.check_open()?;
        sets.insert(id, set);
        Ok(())
    }

    /// Takes [`Engine::register_set`] back.
    pub fn unregister_set(&self, id: u64) {
        let gone = self.sets.sets.lock().remove(&id);
        drop(gone);
    }

    /// Runs host code for `object` (an address that recognises the handle the call is for; 0 when there is none).
    ///
    /// # Errors
    /// [`Status::E_SHUTDOWN`] when the engine is closing, [`Status::E_REENTRANT`] when callbacks are nested too deep.
    #[inline]
    pub fn host_call<T>(&self, object: usize, call: impl FnOnce() -> T) -> Result<T, Status> {
        let scope = record::current().enter_callback(self.id, object).ok_or(Status::E_REENTRANT)?;
        // From here on a shutdown waits for this call, or this call sees the shutdown.
        self.check_open()?;
        let result = call();
        drop(scope);
        fence::light();
        if self.check_open().is_err() {
            self.callback_left();
        }
        Ok(result)
    }

    /// True when this thread is inside a callback of this engine: shutdown would wait for itself.
    pub fn is_inside_callback(&self) -> bool {
        record::try_current().is_some_and(|record| record.inside_engine(self.id))
    }
}

/// Has `job` (a `destroy`) run on a host's thread: when this thread leaves the library, or, on a thread of ours, when
/// the next host's thread does. Not at all in a forked child.
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
