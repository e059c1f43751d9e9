//! Something to call that is replaced while others call it: calling takes no lock, allocates and frees nothing, and is
//! legal in a signal handler, whatever the interrupted thread is doing.
//!
//! Callers are counted. What was replaced while one was inside waits on a list for the next replacement or
//! [`Bell::sweep`], so nobody waits for a caller and no caller drops anything.

use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

/// What is called.
pub type Clapper = dyn Fn() + Send + Sync;

/// What was in a bell: to be dropped.
pub struct Hung(Arc<Clapper>);

impl fmt::Debug for Hung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hung")
    }
}

/// See the module.
#[derive(Default)]
pub struct Bell {
    /// From [`Box::into_raw`], or null.
    current: AtomicPtr<Hung>,
    ringing: AtomicUsize,
    #[allow(clippy::vec_box, reason = "whoever is ringing looks at it where it is")]
    retired: Mutex<Vec<Box<Hung>>>,
    /// Their number, for a look without the lock.
    waiting: AtomicUsize,
}

/// Leaves also when what was called unwinds.
struct Leaves<'b>(&'b AtomicUsize);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Bell {
    /// Calls what is there, if anything. Signal-safe as far as that is.
    pub fn ring(&self) {
        self.ringing.fetch_add(1, Ordering::SeqCst);
        let _leaves = Leaves(&self.ringing);
        let current = self.current.load(Ordering::SeqCst);
        // SAFETY: null, or from `Box::into_raw`; it is freed only after a moment at which nobody was ringing and it was
        // replaced already, and this one was counted before it looked.
        if let Some(clapper) = unsafe { current.as_ref() } {
            (clapper.0)();
        }
    }

    /// Puts another one in its place, or none. Gives back what nobody is in any more, to be dropped where that may run
    /// code of others. Not from a signal handler.
    #[allow(clippy::vec_box, reason = "as above")]
    pub fn replace(&self, clapper: Option<Arc<Clapper>>) -> Vec<Box<Hung>> {
        let new = clapper.map_or(ptr::null_mut(), |clapper| Box::into_raw(Box::new(Hung(clapper))));
        let old = self.current.swap(new, Ordering::SeqCst);
        if !old.is_null() {
            let mut retired = self.retired.lock();
            // SAFETY: from `Box::into_raw`, and taken out of the only place it was in.
            retired.push(unsafe { Box::from_raw(old) });
            self.waiting.store(retired.len(), Ordering::SeqCst);
        }
        self.sweep()
    }

    /// What was replaced and nobody is in any more. Not from a signal handler.
    #[allow(clippy::vec_box, reason = "as above")]
    #[must_use = "it is dropped where that may run code of others"]
    pub fn sweep(&self) -> Vec<Box<Hung>> {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return Vec::new();
        }
        let mut retired = self.retired.lock();
        // Who comes after this look finds none of them.
        if self.ringing.load(Ordering::SeqCst) != 0 {
            return Vec::new();
        }
        self.waiting.store(0, Ordering::SeqCst);
        core::mem::take(&mut *retired)
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let current = *self.current.get_mut();
        if !current.is_null() {
            // SAFETY: from `Box::into_raw`; nobody else has the bell any more.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_while_it_is_called_is_given_back_afterwards() {
        let bell = Arc::new(Bell::default());
        let count = Arc::new(AtomicUsize::new(0));
        let (inner, counted) = (Arc::clone(&bell), Arc::clone(&count));
        let token = Arc::new(());
        let held = Arc::clone(&token);
        let first: Arc<Clapper> = Arc::new(move || {
            let _held = &held;
            counted.fetch_add(1, Ordering::SeqCst);
            assert!(inner.replace(None).is_empty(), "it is being called");
        });
        assert!(bell.replace(Some(first)).is_empty());
        bell.ring();
        bell.ring();
        assert_eq!((count.load(Ordering::SeqCst), Arc::strong_count(&token)), (1, 2));
        drop(bell.sweep());
        assert_eq!(Arc::strong_count(&token), 1);
    }

    #[test]
    fn threads_ring_while_another_replaces() {
        let bell = Bell::default();
        let (rung, over) = (AtomicUsize::new(0), core::sync::atomic::AtomicBool::new(false));
        let total = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::SeqCst) {
                        bell.ring();
                        rung.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            while rung.load(Ordering::SeqCst) < 1000 {
                let total = Arc::clone(&total);
                drop(bell.replace(Some(Arc::new(move || _ = total.fetch_add(1, Ordering::SeqCst)))));
            }
            over.store(true, Ordering::SeqCst);
        });
        drop(bell.replace(None));
        assert_eq!(Arc::strong_count(&total), 1, "all of them are gone");
    }
}
