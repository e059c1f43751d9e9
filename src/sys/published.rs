//! The snapshot pointer that readers follow: a value that writers replace while readers look at it, without a lock and
//! without a locked instruction on the reader's side.
//!
//! A reader writes the pointer into a slot of its thread's record, a hazard, and looks whether it is still the current
//! one. A writer swaps the pointer, makes every thread pass the asymmetric fence, and drops what no slot holds. What a
//! slot holds waits on a list, and the reader that finds the pointer changed when it leaves looks through the list
//! again: so nothing waits for the next change, and nobody waits for a reader. References that outlast the look are
//! [`pinned`], or counted.

use super::pinned::{self, Pinned, Waiting};
use super::record::{self, Record};
use super::{fence, fork};
use core::fmt;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::Arc;

/// A shared value that is replaced as a whole.
pub struct Published<T: Send + Sync + 'static> {
    /// From [`Arc::into_raw`]; never null.
    pointer: AtomicPtr<T>,
    /// Tells what this has published from what others have.
    id: u64,
}

impl<T: Send + Sync + 'static> Published<T> {
    /// Publishes a first value.
    pub fn new(value: Arc<T>) -> Published<T> {
        fence::init();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Published { pointer: AtomicPtr::new(Arc::into_raw(value).cast_mut()), id }
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

    /// A look by a thread that knows its record, when no other look of its is under way; no answer when the value has
    /// just been replaced. With something beside it, [`pinned::sweep`] must follow: what goes then may run anything.
    #[inline(always)]
    pub fn glimpse<R>(&self, record: &Record, body: impl FnOnce(&T) -> R) -> (Option<R>, Option<Waiting>) {
        let Some(slot) = record.first_hazard() else { return (None, None) };
        let pointer = self.pointer.load(Ordering::Acquire);
        slot.store(pointer.cast(), Ordering::Release);
        fence::light();
        // A panic leaves the slot taken and the value waiting, no more.
        let seen = if self.pointer.load(Ordering::Acquire) == pointer {
            // SAFETY: the pointer is from `Arc::into_raw`, and the slot keeps its value.
            Some(body(unsafe { &*pointer }))
        } else {
            None
        };
        slot.store(ptr::null_mut(), Ordering::Release);
        fence::light();
        let changed = seen.is_none() || self.pointer.load(Ordering::Relaxed) != pointer;
        (seen, changed.then_some(Waiting::of(self.id)))
    }

    /// A reference to the current value that costs no locked instruction. `Err`: ask for [`load`](Self::load); with
    /// something, [`pinned::sweep`] must follow.
    #[inline(always)]
    pub fn pin(&self, record: &'static Record) -> Result<Pinned<T>, Option<Waiting>> {
        // SAFETY: what the pointer shows is from `Arc::into_raw`, and `replace` and `drop` retire it.
        unsafe { Pinned::take(record, &self.pointer) }
    }

    /// Deep inside nested looks of this thread no slot is left.
    #[cold]
    fn read_slowly(&self) -> Reading<'_, T> {
        let kept = {
            // Under this lock nothing is replaced, so the count of the current value cannot reach 0.
            let _held = pinned::hold_replacements();
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
        let mut retired = pinned::hold_replacements();
        let before = self.pointer.swap(Arc::into_raw(value).cast_mut(), Ordering::SeqCst);
        // SAFETY: the pointer is from `Arc::into_raw`, and its reference was this object's until the swap.
        pinned::retire(&mut retired, self.id, unsafe { Arc::from_raw(before) });
    }

    /// Drops what was replaced and nobody looks at any more. The rest goes when those who look are done.
    pub fn sweep(&self) {
        pinned::sweep(Waiting::of(self.id));
    }
}

impl<T: Send + Sync + 'static> Drop for Published<T> {
    fn drop(&mut self) {
        if fork::is_child() {
            return;
        }
        // SAFETY: the pointer is from `Arc::into_raw`; this object's reference ends here. Nobody looks any more, but
        // references may be out.
        let last = unsafe { Arc::from_raw(*self.pointer.get_mut()) };
        pinned::retire(&mut pinned::hold_replacements(), self.id, last);
        self.sweep();
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Published")
    }
}

/// A look at the current value.
#[derive(Debug)]
pub struct Reading<'a, T: Send + Sync + 'static> {
    owner: &'a Published<T>,
    pointer: *mut T,
    slot: Option<&'static AtomicPtr<()>>,
    /// The slot held a value that was replaced meanwhile: a sweep may have found it there and left it.
    missed: bool,
    /// Instead of a slot.
    _kept: Option<Arc<T>>,
}

impl<T: Send + Sync + 'static> Reading<'_, T> {
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

impl<T: Send + Sync + 'static> Deref for Reading<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as in `share`.
        unsafe { &*self.pointer }
    }
}

impl<T: Send + Sync + 'static> Drop for Reading<'_, T> {
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

    struct Counted(Arc<AtomicUsize>, u64, u64);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1 = u64::MAX;
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn counted(dropped: &Arc<AtomicUsize>, number: u64) -> Arc<Counted> {
        Arc::new(Counted(Arc::clone(dropped), number, number))
    }

    #[test]
    fn what_is_looked_at_stays_and_goes_when_the_look_ends() {
        let dropped = Arc::default();
        let published = Published::new(counted(&dropped, 1));
        let looks: Vec<_> = (0..20).map(|_| published.read()).collect();
        published.replace(counted(&dropped, 2));
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
        let dropped = Arc::default();
        let published = Published::new(counted(&dropped, 1));
        let slot = record::current().free_hazard().unwrap();
        let seen = published.pointer.load(Ordering::Acquire);
        slot.store(seen.cast(), Ordering::Release);
        published.replace(counted(&dropped, 2));
        published.sweep();
        let look = published.look(slot, seen);
        assert_eq!((look.1, dropped.load(Ordering::SeqCst)), (2, 0));
        drop(look);
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "nothing waits for the next change");
    }

    #[test]
    fn a_pinned_value_stays_until_the_last_pin_comes_back_from_wherever() {
        let dropped = Arc::default();
        let published = Published::new(counted(&dropped, 1));
        let pin = || published.pin(record::current()).unwrap();
        let (here, elsewhere) = (pin(), [pin(), pin()]);
        published.replace(counted(&dropped, 2));
        published.sweep();
        let newer = pin();
        assert_eq!((here.1, newer.1, dropped.load(Ordering::SeqCst)), (1, 2, 0));
        drop(here);
        assert_eq!(dropped.load(Ordering::SeqCst), 0, "two are out");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                assert!(!elsewhere[0].is_mine());
                drop(elsewhere);
            });
        });
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "the last one takes it along");
        drop(published);
        assert_eq!(
            (newer.1, dropped.load(Ordering::SeqCst)),
            (2, 1),
            "also when nothing is published any more"
        );
        drop(newer);
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_thread_pins_some_values_and_the_others_are_counted() {
        let dropped = Arc::default();
        let many: Vec<_> = (0..20).map(|number| Published::new(counted(&dropped, number))).collect();
        let pins: Vec<_> = many.iter().map(|published| published.pin(record::current())).collect();
        // A thread that had the record before may have references out still.
        let pinned = pins.iter().filter(|pin| pin.is_ok()).count();
        assert!((1..=pinned::PINS).contains(&pinned), "{pinned}");
        assert!(many.iter().zip(&pins).all(|(published, pin)| {
            let number = published.load().1;
            pin.as_ref().map_or_else(Option::is_none, |pin| pin.1 == number && pin.share().1 == number)
        }));
        drop(many);
        assert_eq!(dropped.load(Ordering::SeqCst), 20 - pinned);
        drop(pins);
        assert_eq!(dropped.load(Ordering::SeqCst), 20);
        let again = Published::new(counted(&dropped, 1));
        assert!(again.pin(record::current()).is_ok(), "places are free again");
    }

    /// Pins taken on one thread come back on another while a writer replaces the value.
    #[test]
    fn pins_change_threads_while_writers_replace_the_value() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let rounds = if cfg!(miri) { 20 } else { 3_000 };
        let published = Published::new(counted(&dropped, 0));
        let (send, receive) = std::sync::mpsc::sync_channel::<Pinned<Counted>>(8);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    match published.pin(record::current()) {
                        Ok(pin) if pin.1 % 3 == 0 => drop(pin),
                        Ok(pin) => send.send(pin).unwrap(),
                        Err(waiting) => pinned::sweep(waiting.expect("one place is enough for a value")),
                    }
                }
                drop(send);
            });
            scope.spawn(|| receive.into_iter().for_each(|pin| assert_eq!(pin.1, pin.2)));
            for number in 1..=rounds as u64 {
                published.replace(counted(&dropped, number));
                published.sweep();
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(dropped.load(Ordering::SeqCst), rounds, "all but the last");
        drop(published);
        assert_eq!(dropped.load(Ordering::SeqCst), rounds + 1);
    }

    #[test]
    fn readers_see_whole_values_while_writers_replace_them() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let rounds = if cfg!(miri) { 20 } else { 5_000 };
        {
            let published = Published::new(counted(&dropped, 0));
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
                    published.replace(counted(&dropped, number));
                    published.sweep();
                }
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(dropped.load(Ordering::SeqCst), rounds, "all but the last");
        }
        assert_eq!(dropped.load(Ordering::SeqCst), rounds + 1);
    }
}
