//! References to [published](super::published) values that are taken and given back without a locked instruction.
//!
//! Each thread counts those it hands out in its own record, per value, with plain stores; one that another thread gives
//! back is counted there beside them. A value that was replaced waits until no thread's counts differ. Whoever replaces
//! it says so to every count that holds it and passes the heavy side of the asymmetric fence: either it sees that a
//! reference has come back, or the one who brings it back sees that somebody waits, and looks through what waits.

use super::{fence, fork, record, thread};
use core::any::Any;
use core::fmt;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// Values a thread may have references out to at the same time; beyond, they are counted in the value.
pub(super) const PINS: usize = 8;

/// One thread's references to one value.
pub(super) struct Pin {
    pointer: AtomicPtr<()>,
    /// Handed out, less those that came back on the same thread; written by it only.
    taken: AtomicUsize,
    /// Came back on other threads.
    given: AtomicUsize,
    /// The value was replaced and waits.
    wanted: AtomicBool,
    /// The [token](thread::token) of the thread; 0 when it has ended.
    owner: AtomicUsize,
}

impl Pin {
    pub(super) const fn new() -> Pin {
        Pin {
            pointer: AtomicPtr::new(ptr::null_mut()),
            taken: AtomicUsize::new(0),
            given: AtomicUsize::new(0),
            wanted: AtomicBool::new(false),
            owner: AtomicUsize::new(0),
        }
    }

    pub(super) fn belongs_to(&self, thread: usize) {
        self.owner.store(thread, Ordering::Relaxed);
    }

    /// True when this counts references to `pointer`, or none at all. Asked by the owner.
    #[inline(always)]
    pub(super) fn may_count(&self, pointer: *const ()) -> bool {
        self.pointer.load(Ordering::Relaxed).cast_const() == pointer
            || self.taken.load(Ordering::Relaxed) == self.given.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn take(&self, pointer: *mut ()) {
        self.pointer.store(pointer, Ordering::Relaxed);
        // The pointer is seen by whoever sees the count.
        self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    #[inline(always)]
    fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == thread::token()
    }

    /// True when somebody waits for the value.
    #[inline(always)]
    fn give_back(&self) -> bool {
        if self.is_mine() {
            self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Release);
            fence::light();
        } else {
            self.given.fetch_add(1, Ordering::SeqCst);
        }
        self.wanted.load(Ordering::SeqCst)
    }

    /// What references are out to. Asked after the heavy side of the fence, about values that were replaced before it:
    /// no new reference to such a one comes to stay.
    pub(super) fn held(&self) -> Option<*const ()> {
        // In this order: a reference that is out during both looks is never missed, because what came back elsewhere
        // only grows.
        let taken = self.taken.load(Ordering::Acquire);
        let pointer = self.pointer.load(Ordering::Acquire);
        (taken != self.given.load(Ordering::Acquire)).then_some(pointer.cast_const())
    }
}

/// A value that was replaced and is still held.
pub(super) struct Retired {
    at: *const (),
    /// Who published it.
    of: u64,
    /// Only kept.
    _value: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the pointer is only compared.
unsafe impl Send for Retired {}

static RETIRED: Mutex<Vec<Retired>> = Mutex::new(Vec::new());

/// Nothing is replaced while this lasts.
pub(super) fn hold_replacements() -> MutexGuard<'static, Vec<Retired>> {
    RETIRED.lock()
}

/// Lets a value that nobody can reach any more wait for those who hold it; [`sweep`] must follow.
pub(super) fn retire<T: Send + Sync + 'static>(list: &mut Vec<Retired>, of: u64, value: Arc<T>) {
    list.push(Retired { at: Arc::as_ptr(&value).cast(), of, _value: value });
}

/// Which values a [`sweep`] is about: what others wait for is theirs to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting(Which);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    At(usize),
    Of(u64),
}

impl Waiting {
    pub(super) fn of(publisher: u64) -> Waiting {
        Waiting(Which::Of(publisher))
    }

    fn is_for(self, one: &Retired) -> bool {
        match self.0 {
            Which::At(address) => one.at.addr() == address,
            Which::Of(publisher) => one.of == publisher,
        }
    }
}

/// Drops what was replaced and nobody holds any more. The rest goes when those who hold it are done.
#[cold]
pub fn sweep(waiting: Waiting) {
    // In a child another thread of the parent may have held the lock at the moment of the fork.
    if fork::is_child() {
        return;
    }
    let gone: Vec<Retired> = {
        let mut retired = RETIRED.lock();
        // Also when nothing waits, so that nobody asks again. Never behind the look below: a flag taken down there could
        // be that of a reference that came back after it.
        say_who_waits(&retired);
        if retired.is_empty() {
            return;
        }
        // Either what holds a value is seen below, or whoever lets go of it sees that it is waited for.
        fence::heavy();
        let held = record::held();
        let stays = |one: &Retired| !waiting.is_for(one) || held.contains(&one.at);
        let (stays, gone) = core::mem::take(&mut *retired).into_iter().partition(stays);
        *retired = stays;
        gone
    };
    drop(gone);
}

fn say_who_waits(retired: &[Retired]) {
    record::each_pin(|pin| {
        let pointer = pin.pointer.load(Ordering::SeqCst).cast_const();
        pin.wanted.store(retired.iter().any(|one| one.at == pointer), Ordering::SeqCst);
    });
}

/// A reference to a value that was current when it was taken. Any thread may use it and give it back.
pub struct Pinned<T> {
    pin: &'static Pin,
    pointer: *const T,
}

// SAFETY: as for an `Arc<T>`.
unsafe impl<T: Send + Sync> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Pinned<T> {}

impl<T> Pinned<T> {
    /// A reference to what `current` shows. `Err` with something: it has just been replaced, and [`sweep`] must follow;
    /// with nothing: this thread has references out to too many values.
    ///
    /// # Safety
    /// What `current` shows is from [`Arc::into_raw`] and, once replaced, goes only by [`sweep`].
    #[inline(always)]
    pub(super) unsafe fn take(
        record: &'static record::Record,
        current: &AtomicPtr<T>,
    ) -> Result<Pinned<T>, Option<Waiting>> {
        let pointer = current.load(Ordering::Acquire);
        let Some(pin) = record.pin_for(pointer.cast_const().cast()) else { return Err(None) };
        pin.take(pointer.cast());
        fence::light();
        if current.load(Ordering::Acquire) == pointer {
            return Ok(Pinned { pin, pointer });
        }
        // Whoever waits for it may have looked before this thread held it, and again while it did.
        pin.give_back();
        Err(Some(Waiting(Which::At(pointer.addr()))))
    }

    /// True on the thread that took the reference.
    #[inline(always)]
    pub fn is_mine(&self) -> bool {
        self.pin.is_mine()
    }

    /// Gives the reference back. With something, [`sweep`] must follow: what goes then may run anything.
    #[inline(always)]
    pub fn give_back(self) -> Option<Waiting> {
        let wanted = self.pin.give_back();
        let waiting = Waiting(Which::At(self.pointer.addr()));
        core::mem::forget(self);
        wanted.then_some(waiting)
    }

    /// As [`give_back`](Self::give_back), where it lies.
    ///
    /// # Safety
    /// The reference is neither used nor dropped afterwards.
    #[inline(always)]
    pub unsafe fn give_back_in_place(&self) -> Option<Waiting> {
        let wanted = self.pin.give_back();
        wanted.then_some(Waiting(Which::At(self.pointer.addr())))
    }

    /// A counted reference.
    pub fn share(&self) -> Arc<T> {
        // SAFETY: the pointer is from `Arc::into_raw`, and the value is held.
        unsafe {
            Arc::increment_strong_count(self.pointer);
            Arc::from_raw(self.pointer)
        }
    }
}

impl<T> Deref for Pinned<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the count of this reference keeps the value.
        unsafe { &*self.pointer }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.pin.give_back() {
            sweep(Waiting(Which::At(self.pointer.addr())));
        }
    }
}

impl<T> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pinned")
    }
}
