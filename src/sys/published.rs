//! The snapshot pointer that readers follow: a value that writers replace while readers look at it, without a lock and
//! without a locked instruction on the reader's side.
//!
//! A reader writes the pointer into a slot of its thread's record, a hazard, and looks whether it is still the current
//! one. A writer swaps the pointer, makes every thread pass the asymmetric fence, and drops what no slot holds. What a
//! slot holds waits on a list, and the reader that finds the pointer changed when it leaves looks through the list
//! again: so nothing waits for the next change, and nobody waits for a reader.

use super::{fence, record};
use core::fmt;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

/// A shared value that is replaced as a whole.
pub struct Published<T> {
    /// From [`Arc::into_raw`]; never null.
    pointer: AtomicPtr<T>,
    /// What was replaced and was being looked at.
    retired: Mutex<Vec<Arc<T>>>,
}

impl<T> Published<T> {
    /// Publishes a first value.
    pub fn new(value: Arc<T>) -> Published<T> {
        fence::init();
        Published { pointer: AtomicPtr::new(Arc::into_raw(value).cast_mut()), retired: Mutex::default() }
    }

    /// The current value, for a look that is not long.
    #[inline]
    pub fn read(&self) -> Reading<'_, T> {
        let record = record::current();
        let Some(slot) = record.free_hazard() else { return self.read_slowly() };
        self.look(slot, self.pointer.load(Ordering::Acquire))
    }

    /// A look through this slot, at what was `seen` if it is still the current value.
    #[inline(always)]
    fn look(&self, slot: &'static AtomicPtr<()>, seen: *mut T) -> Reading<'_, T> {
        let mut pointer = seen;
        let mut missed = false;
        loop {
            slot.store(pointer.cast(), Ordering::Release);
            fence::light();
            let now = self.pointer.load(Ordering::Acquire);
            if now == pointer {
                return Reading { owner: self, pointer, slot: Some(slot), missed, _kept: None };
            }
            pointer = now;
            missed = true;
        }
    }

    /// Deep inside nested looks of this thread no slot is left.
    #[cold]
    fn read_slowly(&self) -> Reading<'_, T> {
        let kept = {
            // Under this lock nothing is replaced, so the count of the current value cannot reach 0.
            let _retired = self.retired.lock();
            let pointer = self.pointer.load(Ordering::Acquire);
            // SAFETY: the pointer is from `Arc::into_raw`, and its reference is this object's as long as the lock lasts.
            unsafe {
                Arc::increment_strong_count(pointer);
                Arc::from_raw(pointer)
            }
        };
        Reading {
            owner: self,
            pointer: Arc::as_ptr(&kept).cast_mut(),
            slot: None,
            missed: false,
            _kept: Some(kept),
        }
    }

    /// A reference to the current value.
    #[inline]
    pub fn load(&self) -> Arc<T> {
        self.read().share()
    }

    /// Publishes another value. The one before is dropped by [`sweep`](Self::sweep), which must follow; in between the
    /// caller may give back its locks, because what the value holds runs when it is dropped.
    pub fn replace(&self, value: Arc<T>) {
        let mut retired = self.retired.lock();
        let before = self.pointer.swap(Arc::into_raw(value).cast_mut(), Ordering::SeqCst);
        // SAFETY: the pointer is from `Arc::into_raw`, and its reference was this object's until the swap.
        retired.push(unsafe { Arc::from_raw(before) });
    }

    /// Drops what was replaced and nobody looks at any more. The rest goes when those who look are done.
    #[cold]
    pub fn sweep(&self) {
        let gone: Vec<Arc<T>> = {
            let mut retired = self.retired.lock();
            if retired.is_empty() {
                return;
            }
            // Either a reader's slot is seen below, or the reader sees that the pointer has changed.
            fence::heavy();
            let held = record::hazards();
            let is_held = |value: &Arc<T>| held.contains(&Arc::as_ptr(value).cast());
            let (stays, gone) = core::mem::take(&mut *retired).into_iter().partition(is_held);
            *retired = stays;
            gone
        };
        drop(gone);
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `Arc::into_raw`; this object's reference ends here, and nobody reads any more.
        drop(unsafe { Arc::from_raw(*self.pointer.get_mut()) });
    }
}

impl<T> fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Published")
    }
}

// SAFETY: as for an `Arc<T>` behind a lock.
unsafe impl<T: Send + Sync> Send for Published<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Published<T> {}

/// A look at the current value.
#[derive(Debug)]
pub struct Reading<'a, T> {
    owner: &'a Published<T>,
    pointer: *mut T,
    slot: Option<&'static AtomicPtr<()>>,
    /// The slot held a value that was replaced meanwhile: a sweep may have found it there and left it.
    missed: bool,
    /// Instead of a slot.
    _kept: Option<Arc<T>>,
}

impl<T> Reading<'_, T> {
    /// A reference that outlasts the look.
    #[inline]
    pub fn share(&self) -> Arc<T> {
        // SAFETY: the pointer is from `Arc::into_raw`, and the slot or `_kept` keeps its value.
        unsafe {
            Arc::increment_strong_count(self.pointer);
            Arc::from_raw(self.pointer)
        }
    }
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as in `share`.
        unsafe { &*self.pointer }
    }
}

impl<T> Drop for Reading<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        slot.store(ptr::null_mut(), Ordering::Release);
        fence::light();
        if self.missed || self.owner.pointer.load(Ordering::Relaxed) != self.pointer {
            self.owner.sweep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    struct Counted<'a>(&'a AtomicUsize, u64, u64);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.1 = u64::MAX;
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_is_looked_at_stays_and_goes_when_the_look_ends() {
        let dropped = AtomicUsize::new(0);
        let published = Published::new(Arc::new(Counted(&dropped, 1, 1)));
        let looks: Vec<_> = (0..20).map(|_| published.read()).collect();
        published.replace(Arc::new(Counted(&dropped, 2, 2)));
        published.sweep();
        assert_eq!(dropped.load(Ordering::SeqCst), 0, "twenty looks");
        assert!(looks.iter().all(|look| look.1 == 1));
        assert_eq!(published.read().1, 2);
        let kept = looks[3].share();
        drop(looks);
        assert_eq!((dropped.load(Ordering::SeqCst), kept.1), (0, 1), "a reference outlasts them");
        drop(kept);
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "and nothing waits for the next change");
        drop(published);
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
    }

    /// A reader has written the first value into its slot, and looks whether it is current only after the writer's sweep.
    #[test]
    fn what_a_reader_missed_goes_when_its_look_ends() {
        let dropped = AtomicUsize::new(0);
        let published = Published::new(Arc::new(Counted(&dropped, 1, 1)));
        let slot = record::current().free_hazard().unwrap();
        let seen = published.pointer.load(Ordering::Acquire);
        slot.store(seen.cast(), Ordering::Release);
        published.replace(Arc::new(Counted(&dropped, 2, 2)));
        published.sweep();
        let look = published.look(slot, seen);
        assert_eq!((look.1, dropped.load(Ordering::SeqCst)), (2, 0));
        drop(look);
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "nothing waits for the next change");
    }

    #[test]
    fn readers_see_whole_values_while_writers_replace_them() {
        let dropped = AtomicUsize::new(0);
        let rounds = if cfg!(miri) { 20 } else { 5_000 };
        {
            let published = Published::new(Arc::new(Counted(&dropped, 0, 0)));
            let (stop, looked) = (AtomicBool::new(false), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for reader in 0..3 {
                    let (published, stop, looked) = (&published, &stop, &looked);
                    scope.spawn(move || {
                        let mut last = 0;
                        while !stop.load(Ordering::Relaxed) || looked.load(Ordering::Relaxed) < rounds {
                            let seen = published.read();
                            let kept = if reader == 0 { Some(seen.share()) } else { None };
                            assert!(seen.1 == seen.2 && seen.1 >= last, "{} {} {last}", seen.1, seen.2);
                            last = seen.1;
                            drop(seen);
                            assert!(kept.is_none_or(|kept| kept.1 == last));
                            looked.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                for number in 1..=rounds as u64 {
                    published.replace(Arc::new(Counted(&dropped, number, number)));
                    published.sweep();
                }
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(dropped.load(Ordering::SeqCst), rounds, "all but the last");
        }
        assert_eq!(dropped.load(Ordering::SeqCst), rounds + 1);
    }
}
