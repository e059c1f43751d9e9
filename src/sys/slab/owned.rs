//! The third protocol: handles that belong to one thread, for calls that are made millions of times a second.
//!
//! The owner enters and leaves with plain stores. Whoever frees or adopts the handle from elsewhere pays for both
//! with the heavy side of the asymmetric fence: either it sees that the owner is inside, or the owner sees that it
//! came (Dekker's handshake).
//!
//! A thread that stalls between its look at the owner and its plain store would take away the mark of whoever has
//! adopted the handle meanwhile. So the plain mark is the maker's alone: once a handle has been adopted, whoever owns
//! it enters with one compare-and-exchange on a mark of its own.
//!
//! A handle is either this or exclusive, for all of its calls.

use super::{Cell, FREED, Header, LIVE, POISONED, Refused, Slot};
use crate::sys::{fence, thread};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{self, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Content of a handle that belongs to a thread: the value and its owner.
#[repr(C)]
#[derive(Debug)]
pub struct Bound<V> {
    /// Initialised as long as the cell is not dead. First, because a dead cell keeps its link here.
    value: MaybeUninit<V>,
    owner: Owner,
}

/// What the owner writes. Stays in place when the value is taken out, since the owner may be looking at it.
#[derive(Debug)]
struct Owner {
    /// A thread's token, with [`ADOPTED`] in its low bit once another one than the maker has had the handle.
    thread: AtomicUsize,
    /// The maker's mark while it is inside. Others only read it.
    inside: AtomicU32,
    /// The token of an owner by adoption while it is inside, else 0.
    adopter: AtomicUsize,
    /// Names what is in the value, for [`Cell::glance`]; 0 when nothing does.
    stamp: AtomicU64,
}

/// Low bit of [`Owner::thread`]: tokens are even.
const ADOPTED: usize = 1;

impl Owner {
    #[inline(always)]
    fn is(&self, me: usize) -> bool {
        self.thread.load(Ordering::Relaxed) & !ADOPTED == me
    }

    /// True while no call is running; exact for the owner and after a heavy fence.
    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0 && self.adopter.load(Ordering::SeqCst) == 0
    }
}

impl<V> Bound<V> {
    /// Belongs to the calling thread.
    pub fn here(value: V) -> Bound<V> {
        let owner = Owner {
            thread: AtomicUsize::new(thread::token()),
            inside: AtomicU32::new(0),
            adopter: AtomicUsize::new(0),
            stamp: AtomicU64::new(0),
        };
        Bound { value: MaybeUninit::new(value), owner }
    }
}

/// The one running call on a handle that belongs to this thread.
#[derive(Debug)]
pub struct Owned<'a, V>
where
    Bound<V>: Slot,
{
    cell: &'a Cell<Bound<V>>,
}

impl<V: Send> Cell<Bound<V>>
where
    Bound<V>: Slot,
{
    /// Enters a call on the owning thread. No locked instruction where that is the one that made the handle.
    ///
    /// # Errors
    /// [`Refused::Elsewhere`] on another thread, [`Refused::Busy`] when this thread is inside already.
    ///
    /// # Safety
    /// As [`super::check`].
    #[inline(always)]
    pub unsafe fn enter<'a>(pointer: *const Self) -> Result<Owned<'a, V>, Refused> {
        // SAFETY: by this function's contract.
        let cell = unsafe { super::check(pointer) }?;
        let (owner, me) = (cell.owner(), thread::token());
        if owner.thread.load(Ordering::Relaxed) != me {
            return cell.enter_adopted(me);
        }
        if owner.inside.load(Ordering::Relaxed) != 0 {
            return Err(Refused::Busy);
        }
        cell.enter_made(me)
    }

    /// The maker's way in, from where it saw that the handle is its own and idle.
    #[inline(always)]
    fn enter_made(&self, me: usize) -> Result<Owned<'_, V>, Refused> {
        let owner = self.owner();
        owner.inside.store(1, Ordering::Relaxed);
        fence::light();
        let stays = self.header.count.load(Ordering::Relaxed) != FREED
            && owner.thread.load(Ordering::Relaxed) == me
            && self.header.is_usable(<Bound<V> as Slot>::INFO);
        if stays { Ok(Owned { cell: self }) } else { Err(self.step_back()) }
    }

    /// The way in of a thread that has adopted the handle.
    #[cold]
    fn enter_adopted(&self, me: usize) -> Result<Owned<'_, V>, Refused> {
        let owner = self.owner();
        if owner.thread.load(Ordering::SeqCst) != me | ADOPTED {
            return Err(Refused::Elsewhere);
        }
        if owner.adopter.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return Err(Refused::Busy);
        }
        // The maker may still be inside when two threads tried to adopt at once, and one gave back to the other.
        let maker = owner.inside.load(Ordering::SeqCst) != 0;
        let stays = !maker
            && self.header.count.load(Ordering::SeqCst) != FREED
            && owner.thread.load(Ordering::SeqCst) == me | ADOPTED
            && self.header.is_usable(<Bound<V> as Slot>::INFO);
        match stays {
            true => Ok(Owned { cell: self }),
            false if maker => {
                self.leave();
                Err(Refused::Busy)
            }
            false => Err(self.step_back()),
        }
    }

    /// The stamp of a handle of the calling thread that no call is running on, without entering it: for whoever knows
    /// from it what the value holds. A free or an adoption that comes meanwhile counts as one that comes afterwards.
    ///
    /// # Safety
    /// As [`super::check`].
    #[inline(always)]
    pub unsafe fn glance(pointer: *const Self) -> Option<u64> {
        // SAFETY: by this function's contract.
        let owner = unsafe { super::check(pointer) }.ok()?.owner();
        if owner.is(thread::token()) && owner.is_idle() {
            Some(owner.stamp.load(Ordering::Relaxed))
        } else {
            None
        }
    }

    /// Somebody freed or adopted the handle while this thread was entering.
    #[cold]
    fn step_back(&self) -> Refused {
        let word = self.header.word.load(Ordering::Acquire);
        self.leave();
        if word == Header::expect(<Bound<V> as Slot>::INFO, LIVE) {
            Refused::Elsewhere
        } else {
            Self::why_not(word)
        }
    }

    /// Makes the calling thread the owner.
    ///
    /// # Errors
    /// [`Refused::Busy`] while the owner is inside a call.
    ///
    /// # Safety
    /// As [`super::check`].
    pub unsafe fn adopt(pointer: *const Self) -> Result<(), Refused> {
        // SAFETY: by this function's contract. The visit keeps the cell from being used for another object meanwhile.
        let visit = unsafe { super::visit(pointer) }?;
        let (owner, me) = (visit.cell.owner(), thread::token());
        let before = owner.thread.load(Ordering::Acquire);
        if before & !ADOPTED == me {
            return Ok(());
        }
        let adopted = me | ADOPTED;
        if owner.thread.compare_exchange(before, adopted, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return Err(Refused::Busy);
        }
        fence::heavy();
        if owner.is_idle() {
            return Ok(());
        }
        // It was inside; give the handle back unless a third thread has taken it meanwhile.
        let _ = owner.thread.compare_exchange(adopted, before, Ordering::SeqCst, Ordering::Relaxed);
        Err(Refused::Busy)
    }

    /// Frees the handle from any thread. A running call is interrupted and frees it when it ends.
    ///
    /// # Errors
    /// [`Refused::Bad`] when there is nothing to free.
    ///
    /// # Safety
    /// As [`super::check`].
    pub unsafe fn free_owned(pointer: *const Self) -> Result<Option<V>, Refused> {
        // SAFETY: by this function's contract.
        let cell = match unsafe { super::check(pointer) } {
            Ok(cell) => cell,
            // SAFETY: poisoned means that the pointer was found to be a cell.
            Err(Refused::Poisoned) => unsafe { &*pointer },
            Err(why) => return Err(why),
        };
        if cell.owner().is(thread::token()) {
            // The owner itself: it is inside when a callback of its own call frees the handle.
            if cell.owner().is_idle() {
                return cell.take().map(Some).ok_or(Refused::Bad);
            }
            cell.header.count.store(FREED, Ordering::SeqCst);
            Bound::<V>::interrupt(cell);
            // What looked like a call may have been a former owner on its way out.
            fence::heavy();
            return Ok(if cell.owner().is_idle() { cell.take() } else { None });
        }
        // The owner may end the handle as soon as it sees the mark; the visit keeps the cell from being used for another
        // object until we have looked at it for the last time.
        let running = super::Visit::announce(cell);
        cell.header.count.store(FREED, Ordering::SeqCst);
        Bound::<V>::interrupt(cell);
        fence::heavy();
        let ours = cell.owner().is_idle() && cell.claim();
        drop(running);
        // SAFETY: this thread has claimed the value.
        Ok(ours.then(|| unsafe { cell.collect_bound() }))
    }
}

impl<V> Cell<Bound<V>>
where
    Bound<V>: Slot,
{
    #[inline(always)]
    fn owner(&self) -> &Owner {
        // SAFETY: cells are never unmapped, only atomics are reached, and nothing else writes them while anybody may
        // hold the handle.
        unsafe { &(*self.value.get().cast::<Bound<V>>()).owner }
    }

    /// The owner is no longer inside; a free that saw it inside is finished here.
    #[inline(always)]
    fn leave(&self) {
        let owner = self.owner();
        if owner.adopter.load(Ordering::Relaxed) == thread::token() {
            owner.adopter.store(0, Ordering::SeqCst);
        } else {
            owner.inside.store(0, Ordering::Release);
        }
        fence::light();
        if self.header.count.load(Ordering::Relaxed) == FREED {
            self.finish_free();
        }
    }

    /// Whoever finds nobody inside takes the value, exactly one does.
    #[cold]
    fn finish_free(&self) {
        // Of two that leave, at least one sees the other gone.
        atomic::fence(Ordering::SeqCst);
        if self.owner().is_idle() {
            drop(self.take());
        }
    }

    /// LIVE or POISONED to DEAD, with the value taken out; `None` when it was neither.
    fn take(&self) -> Option<V> {
        // SAFETY: this thread has just claimed the value.
        self.claim().then(|| unsafe { self.collect_bound() })
    }

    /// Takes the value out and puts the cell back; the owner's words stay.
    ///
    /// # Safety
    /// As [`Cell::collect`].
    unsafe fn collect_bound(&self) -> V {
        self.outlast_visitors();
        // SAFETY: by this function's contract nobody else touches the value.
        let value = unsafe { (*self.value.get().cast::<Bound<V>>()).value.assume_init_read() };
        Bound::<V>::slab().put(NonNull::from(self));
        value
    }
}

impl<V> Owned<'_, V>
where
    Bound<V>: Slot,
{
    /// The cell, for its pointer.
    pub fn cell(&self) -> &Cell<Bound<V>> {
        self.cell
    }

    /// What names the content.
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        self.cell.owner().stamp.load(Ordering::Relaxed)
    }

    /// Gives the content another name, before it is changed.
    #[inline(always)]
    pub fn set_stamp(&mut self, stamp: u64) {
        self.cell.owner().stamp.store(stamp, Ordering::Relaxed);
    }

    /// Ends the call where it is known that nothing has panicked.
    #[inline(always)]
    pub fn done(self) {
        self.cell.leave();
        core::mem::forget(self);
    }
}

impl<V> core::ops::Deref for Owned<'_, V>
where
    Bound<V>: Slot,
{
    type Target = V;
    #[inline(always)]
    fn deref(&self) -> &V {
        // SAFETY: this thread owns the handle and is inside, so no other call has the value.
        unsafe { (*self.cell.value.get().cast::<Bound<V>>()).value.assume_init_ref() }
    }
}

impl<V> core::ops::DerefMut for Owned<'_, V>
where
    Bound<V>: Slot,
{
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut V {
        // SAFETY: as in `deref`.
        unsafe { (*self.cell.value.get().cast::<Bound<V>>()).value.assume_init_mut() }
    }
}

impl<V> Drop for Owned<'_, V>
where
    Bound<V>: Slot,
{
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.cell
                .header
                .word
                .store(Header::expect(<Bound<V> as Slot>::INFO, POISONED), Ordering::Release);
        }
        self.cell.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Slab, TypeInfo};
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    impl Slot for Bound<Arc<()>> {
        const INFO: &'static TypeInfo = {
            static INFO: TypeInfo = TypeInfo { name: "bee", index: 43 };
            &INFO
        };
        fn slab() -> &'static Slab<Self> {
            static SLAB: Slab<Bound<Arc<()>>> = Slab::new();
            &SLAB
        }
    }

    fn bee(witness: &Arc<()>) -> *mut Cell<Bound<Arc<()>>> {
        fence::init();
        Bound::slab().insert(Bound::here(Arc::clone(witness))).as_ptr()
    }

    #[test]
    fn only_the_owner_enters_until_another_thread_adopts() {
        let witness = Arc::new(());
        let address = bee(&witness).addr();
        let at = move || address as *mut Cell<Bound<Arc<()>>>;
        // SAFETY: the cell is live until the last line.
        unsafe {
            let call = Cell::enter(at()).unwrap();
            assert_eq!(Cell::enter(at()).err(), Some(Refused::Busy), "inside already");
            assert_eq!(Arc::strong_count(&call), 2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(Cell::enter(at()).err(), Some(Refused::Elsewhere));
                    assert_eq!(Cell::adopt(at()).err(), Some(Refused::Busy), "the owner is inside");
                });
            });
            drop(call);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert!(Cell::adopt(at()).is_ok());
                    assert!(Cell::enter(at()).is_ok());
                });
            });
            assert_eq!(
                Cell::enter(at()).err(),
                Some(Refused::Elsewhere),
                "it belongs to the other thread now"
            );
            assert!(Cell::free_owned(at()).unwrap().is_some(), "free is legal from every thread");
            assert_eq!(Cell::enter(at()).err(), Some(Refused::Bad));
            assert_eq!(Cell::free_owned(at()).err(), Some(Refused::Bad));
        }
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    fn cell_at(address: usize) -> *mut Cell<Bound<Arc<()>>> {
        address as *mut Cell<Bound<Arc<()>>>
    }

    fn elsewhere(work: impl Fn() + Sync) {
        std::thread::scope(|scope| scope.spawn(&work).join().unwrap());
    }

    /// The maker stalls after it saw that the handle is its own; whoever adopts it meanwhile stays alone inside.
    #[test]
    fn a_maker_that_comes_late_takes_nobodys_mark_away() {
        let witness = Arc::new(());
        let address = bee(&witness).addr();
        let maker = thread::token();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let pointer = cell_at(address);
                // SAFETY: the cell is live until the running call ends.
                unsafe {
                    assert!(Cell::adopt(pointer).is_ok());
                    let call = Cell::enter(pointer).unwrap();
                    // What the maker does when it goes on.
                    let late = || {
                        let cell = &*cell_at(address);
                        assert!(cell.enter_made(maker).is_err());
                    };
                    let free = || assert!(Cell::free_owned(cell_at(address)).unwrap().is_none());
                    elsewhere(late);
                    assert_eq!(Cell::enter(pointer).err(), Some(Refused::Busy), "the call is still running");
                    elsewhere(free);
                    elsewhere(late);
                    assert_eq!(Arc::strong_count(&call), 2, "not freed under a call");
                    drop(call);
                    assert_eq!(Cell::enter(pointer).err(), Some(Refused::Bad));
                }
            });
        });
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    /// Two threads that keep adopting a handle from each other are never inside at once.
    #[test]
    fn adopters_are_alone_inside() {
        let witness = Arc::new(());
        let address = bee(&witness).addr();
        let inside = AtomicU32::new(0);
        let calls = std::array::from_fn::<_, 2, _>(|_| AtomicU32::new(0));
        std::thread::scope(|scope| {
            for own in &calls {
                let (inside, calls) = (&inside, &calls);
                scope.spawn(move || {
                    let pointer = cell_at(address);
                    while calls.iter().any(|calls| calls.load(Ordering::Relaxed) < 2_000) {
                        // SAFETY: the cell is live until both threads have ended.
                        let call = unsafe {
                            let _ = Cell::adopt(pointer);
                            Cell::enter(pointer)
                        };
                        if let Ok(call) = call {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            own.fetch_add(1, Ordering::Relaxed);
                            drop(call);
                        }
                    }
                });
            }
        });
        // SAFETY: still live, and nobody else has it.
        assert!(unsafe { Cell::free_owned(cell_at(address)) }.unwrap().is_some());
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn a_free_during_a_call_takes_effect_at_its_end() {
        let witness = Arc::new(());
        let pointer = bee(&witness);
        // SAFETY: the cell is live until the call ends.
        unsafe {
            let call = Cell::enter(pointer).unwrap();
            assert!(Cell::free_owned(pointer).unwrap().is_none());
            assert_eq!(Arc::strong_count(&witness), 2);
            drop(call);
            assert_eq!(Cell::enter(pointer).err(), Some(Refused::Bad));
        }
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    /// Races the owner's calls with a free from elsewhere: the value goes exactly once and never under a call.
    #[test]
    fn free_races_with_entering_and_leaving() {
        let witness = Arc::new(());
        for _ in 0..300 {
            let published = AtomicUsize::new(0);
            let ready = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    published.store(bee(&witness).addr(), Ordering::Release);
                    ready.store(true, Ordering::Release);
                    let pointer = published.load(Ordering::Relaxed) as *mut Cell<Bound<Arc<()>>>;
                    for _ in 0..10_000 {
                        // SAFETY: cells are never unmapped, and no other test makes bees of this thread.
                        match unsafe { Cell::enter(pointer) } {
                            Ok(call) => assert!(Arc::strong_count(&call) >= 2),
                            Err(_) => break,
                        }
                    }
                });
                scope.spawn(|| {
                    while !ready.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                    // SAFETY: the only free of this cell.
                    drop(unsafe {
                        Cell::free_owned(published.load(Ordering::Acquire) as *mut Cell<Bound<Arc<()>>>)
                    });
                });
            });
        }
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
