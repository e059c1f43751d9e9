//! Slabs of handle cells: what a `byway_*` pointer points to.
//!
//! A cell starts with a [`Header`]. Its word is the address of the type's [`TypeInfo`] plus a state in the low bits,
//! so that one load and one compare reject NULL-adjacent garbage, a handle of another type, a freed one, and one made
//! by another copy of the library in the same process (whose `TypeInfo` lives elsewhere). Cells are never unmapped
//! and never used for another type: looking at a dead handle is safe for ever.
//!
//! Three protocols share the cell:
//! - *shared*: a reference count; whoever has a reference may use the value from any thread.
//! - *exclusive*: LIVE and BUSY alternate; a second call is turned away at once. Freeing a busy cell marks it, and
//!   the running call frees it when it ends.
//! - *owned* ([`owned`]): exclusive for one thread, which enters and leaves without a locked instruction.

pub mod owned;

use super::{fence, record};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use parking_lot::Mutex;

/// Identity of a handle type in this copy of the library.
#[repr(align(16))]
#[derive(Debug)]
pub struct TypeInfo {
    /// C name without `byway_`.
    pub name: &'static str,
    /// Position in the per-thread caches, unique, below [`record::MAX_TYPES`].
    pub index: usize,
}

const DEAD: usize = 0;
const LIVE: usize = 1;
const BUSY: usize = 2;
const POISONED: usize = 3;
const STATE: usize = 15;

/// Count of an exclusive handle that was freed while a call was running.
const FREED: u32 = u32::MAX;

/// First bytes of every cell.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Header {
    word: AtomicUsize,
    /// Shared: references. Exclusive: [`FREED`] when the handle was freed during a call.
    count: AtomicU32,
    /// Calls that look at the value beside the running one; see [`Visit`].
    visitors: AtomicU32,
}

/// Why a handle was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// NULL, misaligned, dead, of another type or of another copy of the library.
    Bad,
    /// An exclusive handle on which another call is running.
    Busy,
    /// An owned handle of another thread.
    Elsewhere,
    /// A panic left it in an unknown state.
    Poisoned,
}

/// Ties a Rust type to its slab.
pub trait Slot: Sized + 'static {
    /// The type's identity.
    const INFO: &'static TypeInfo;
    /// The type's slab.
    fn slab() -> &'static Slab<Self>;
    /// Told, from any thread, that the handle was freed while a call is running on it: must make that call end soon.
    /// Reads only what may be read beside a running call.
    fn interrupt(cell: &Cell<Self>) {
        let _ = cell;
    }
}

/// One cell.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Cell<T> {
    header: Header,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is only reached through the two protocols, which bring their own bounds.
unsafe impl<T: Send> Sync for Cell<T> {}

/// All cells of one type.
#[derive(Debug)]
pub struct Slab<T> {
    free: Mutex<FreeList>,
    _type: core::marker::PhantomData<fn() -> T>,
}

#[derive(Debug)]
struct FreeList {
    head: *mut u8,
}

// SAFETY: the list owns the dead cells it links; the pointers are only followed under the lock.
unsafe impl Send for FreeList {}

/// Cells moved between a thread's cache and the slab at a time.
const BATCH: usize = 32;

impl Header {
    #[inline(always)]
    fn expect(info: &'static TypeInfo, state: usize) -> usize {
        ptr::from_ref(info).addr() | state
    }

    /// True when the cell is of this type and in a state in which it may be read.
    #[inline(always)]
    fn is_usable(&self, info: &'static TypeInfo) -> bool {
        self.word.load(Ordering::Acquire) == Self::expect(info, LIVE)
    }
}

impl<T: Slot> Slab<T> {
    /// An empty slab.
    pub const fn new() -> Self {
        Slab { free: Mutex::new(FreeList { head: ptr::null_mut() }), _type: core::marker::PhantomData }
    }

    /// Handles of this type that are alive, exact when no other thread is in the middle of a call.
    pub fn live(&self) -> usize {
        record::live(T::INFO.index)
    }

    /// A live cell with one reference that holds `value`.
    #[inline(always)]
    pub fn insert(&self, value: T) -> NonNull<Cell<T>> {
        self.insert_with(|place| {
            place.write(value);
        })
    }

    /// As [`Slab::insert`], written in place by `init`, which must initialise all of it.
    #[inline(always)]
    pub fn insert_with(&self, init: impl FnOnce(&mut MaybeUninit<T>)) -> NonNull<Cell<T>> {
        let record = record::current();
        let cell = self.take(record);
        // SAFETY: a cell taken from the free list belongs to nobody else.
        unsafe {
            init(&mut *(*cell.as_ptr()).value.get());
            let header = &(*cell.as_ptr()).header;
            header.count.store(1, Ordering::Relaxed);
            header.word.store(Header::expect(T::INFO, LIVE), Ordering::Release);
        }
        record.count_live(T::INFO.index, 1);
        cell
    }

    /// As [`Slab::insert`], from the cells this thread has at hand, if it has one; `make` writes the value in place.
    #[inline(always)]
    pub fn insert_here(&self, record: &record::Record, make: impl FnOnce() -> T) -> Option<NonNull<Cell<T>>> {
        let slot = record.cache(T::INFO.index)?;
        let mut cache = slot.get();
        let cell = NonNull::new(cache.head.cast::<Cell<T>>())?;
        cache.head = next_of(cell);
        cache.len -= 1;
        slot.set(cache);
        // SAFETY: a cell taken from the free list belongs to nobody else.
        unsafe {
            (*(*cell.as_ptr()).value.get()).write(make());
            let header = &(*cell.as_ptr()).header;
            header.count.store(1, Ordering::Relaxed);
            header.word.store(Header::expect(T::INFO, LIVE), Ordering::Release);
        }
        record.count_live(T::INFO.index, 1);
        Some(cell)
    }

    #[inline]
    fn take(&self, record: &record::Record) -> NonNull<Cell<T>> {
        let Some(slot) = record.cache(T::INFO.index) else { return self.take_global(None) };
        let mut cache = slot.get();
        let Some(cell) = NonNull::new(cache.head.cast::<Cell<T>>()) else {
            return self.take_global(Some(slot));
        };
        cache.head = next_of(cell);
        cache.len -= 1;
        slot.set(cache);
        cell
    }

    #[cold]
    fn take_global(&self, slot: Option<&core::cell::Cell<record::Cache>>) -> NonNull<Cell<T>> {
        // In a child another thread of the parent may have held the lock at the moment of the fork: then the cells come
        // from a chunk of their own.
        let mut own = FreeList { head: ptr::null_mut() };
        let mut guard = if super::fork::is_child() { self.free.try_lock() } else { Some(self.free.lock()) };
        let list = guard.as_deref_mut().unwrap_or(&mut own);
        if list.head.is_null() {
            list.head = Self::grow();
        }
        let first = NonNull::new(list.head.cast::<Cell<T>>()).unwrap_or(NonNull::dangling());
        list.head = next_of(first);
        if let Some(slot) = slot {
            let mut cache = slot.get();
            while cache.len < BATCH {
                let Some(cell) = NonNull::new(list.head.cast::<Cell<T>>()) else { break };
                list.head = next_of(cell);
                set_next(cell, cache.head);
                cache.head = cell.as_ptr().cast();
                cache.len += 1;
            }
            slot.set(cache);
        }
        first
    }

    /// A chunk of fresh dead cells, linked. Its memory is never given back.
    fn grow() -> *mut u8 {
        let cells = (65_536 / size_of::<Cell<T>>()).clamp(8, 512);
        let chunk: Box<[MaybeUninit<Cell<T>>]> = Box::new_uninit_slice(cells);
        let first = Box::leak(chunk).as_mut_ptr().cast::<Cell<T>>();
        let mut head: *mut u8 = ptr::null_mut();
        for i in (0..cells).rev() {
            // SAFETY: `i` is inside the chunk, which was just allocated and is leaked.
            unsafe {
                let cell = first.add(i);
                (&raw mut (*cell).header).write(Header {
                    word: AtomicUsize::new(Header::expect(T::INFO, DEAD)),
                    count: AtomicU32::new(0),
                    visitors: AtomicU32::new(0),
                });
                set_next(NonNull::new_unchecked(cell), head);
                head = cell.cast();
            }
        }
        head
    }

    /// Puts a cell whose value is gone back. Its word says DEAD already.
    #[inline]
    fn put(&self, cell: NonNull<Cell<T>>) {
        self.put_here(record::current(), cell);
    }

    #[inline(always)]
    fn put_here(&self, record: &record::Record, cell: NonNull<Cell<T>>) {
        record.count_live(T::INFO.index, -1);
        let slot = record.cache(T::INFO.index);
        match slot {
            Some(slot) if slot.get().len < 2 * BATCH => {
                let mut cache = slot.get();
                set_next(cell, cache.head);
                cache.head = cell.as_ptr().cast();
                cache.len += 1;
                slot.set(cache);
            }
            _ => self.put_global(cell),
        }
    }

    #[cold]
    fn put_global(&self, cell: NonNull<Cell<T>>) {
        if super::fork::is_child() {
            // Another thread of the parent may have held the lock at the moment of the fork.
            return;
        }
        let mut list = self.free.lock();
        set_next(cell, list.head);
        list.head = cell.as_ptr().cast();
    }
}

impl<T: Slot> Default for Slab<T> {
    fn default() -> Self {
        Slab::new()
    }
}

fn next_of<T>(cell: NonNull<Cell<T>>) -> *mut u8 {
    // SAFETY: a dead cell keeps the link in its value's bytes; `set_next` wrote it, unaligned because T may be small.
    unsafe { (*cell.as_ptr()).value.get().cast::<*mut u8>().read_unaligned() }
}

fn set_next<T>(cell: NonNull<Cell<T>>, next: *mut u8) {
    const { assert!(size_of::<T>() >= size_of::<*mut u8>(), "a handle's value must have room for a link") };
    // SAFETY: the cell is dead or fresh, so its value's bytes are free to use, and they have room.
    unsafe { (*cell.as_ptr()).value.get().cast::<*mut u8>().write_unaligned(next) };
}

/// The cell behind a pointer that came from outside, if it is live and of this type.
///
/// # Safety
/// `pointer` is NULL or points to memory that can be read as a [`Header`]: any byway handle, live or dead.
#[inline(always)]
pub unsafe fn check<'a, T: Slot>(pointer: *const Cell<T>) -> Result<&'a Cell<T>, Refused> {
    if pointer.is_null() || pointer.addr() & 15 != 0 {
        return Err(Refused::Bad);
    }
    // SAFETY: by this function's contract.
    let cell = unsafe { &*pointer };
    let word = cell.header.word.load(Ordering::Acquire);
    if word == Header::expect(T::INFO, LIVE) { Ok(cell) } else { Err(Cell::<T>::why_not(word)) }
}

/// A look at an exclusive handle's value beside a call that may be running on it. Whoever ends the handle waits until
/// the last visit is over before it touches the value, so a visit must be short and must not end the handle itself.
#[derive(Debug)]
pub struct Visit<'a, T: Slot> {
    cell: &'a Cell<T>,
}

/// As [`check`], also for an exclusive handle on which a call is running. Takes no lock, signal-safe.
///
/// # Safety
/// As [`check`].
#[inline]
pub unsafe fn visit<'a, T: Slot>(pointer: *const Cell<T>) -> Result<Visit<'a, T>, Refused> {
    // SAFETY: by this function's contract.
    let cell = match unsafe { check(pointer) } {
        Ok(cell) => cell,
        // SAFETY: `Busy` says that the pointer is a cell of this type.
        Err(Refused::Busy) => unsafe { &*pointer },
        Err(why) => return Err(why),
    };
    // Announced first, looked at afterwards: either the one who ends the handle sees the visit and waits, or the visit
    // sees that the handle has ended.
    let visit = Visit::announce(cell);
    let word = cell.header.word.load(Ordering::SeqCst);
    match Cell::<T>::why_not(word) {
        _ if word == Header::expect(T::INFO, LIVE) => Ok(visit),
        Refused::Busy => Ok(visit),
        why => Err(why),
    }
}

impl<'a, T: Slot> Visit<'a, T> {
    fn announce(cell: &'a Cell<T>) -> Self {
        cell.header.visitors.fetch_add(1, Ordering::SeqCst);
        Visit { cell }
    }

    /// The value's place, for fields that may be read beside a running call.
    pub fn value_ptr(&self) -> *const T {
        self.cell.value_ptr()
    }
}

impl<T: Slot> Drop for Visit<'_, T> {
    fn drop(&mut self) {
        self.cell.header.visitors.fetch_sub(1, Ordering::Release);
    }
}

impl<T: Slot> Cell<T> {
    /// Ends the life of a value that nobody can reach any more: the handle is dead before anything is dropped.
    #[inline]
    fn bury(&self, forget: bool) {
        self.header.word.store(Header::expect(T::INFO, DEAD), Ordering::Release);
        if !forget {
            // SAFETY: by the protocol that led here this thread is the only one that may touch the value, which is
            // initialised and not touched again before the cell is used anew.
            unsafe { (*self.value.get()).assume_init_drop() };
        }
        T::slab().put(NonNull::from(self));
    }

    #[cold]
    fn why_not(word: usize) -> Refused {
        match word & STATE {
            _ if word & !STATE != Header::expect(T::INFO, 0) => Refused::Bad,
            BUSY => Refused::Busy,
            POISONED => Refused::Poisoned,
            _ => Refused::Bad,
        }
    }

    /// Waits for calls that look at the value. The word says DEAD already, by a `SeqCst` exchange, so none comes later.
    #[inline]
    fn outlast_visitors(&self) {
        if self.header.visitors.load(Ordering::SeqCst) != 0 {
            self.outlast_slowly();
        }
    }

    #[cold]
    fn outlast_slowly(&self) {
        // A child has only one thread: a visitor of the parent's never leaves there.
        while self.header.visitors.load(Ordering::SeqCst) != 0 && !super::fork::is_child() {
            std::thread::yield_now();
        }
    }

    /// The pointer handed to the host.
    pub fn as_ptr(&self) -> *mut Cell<T> {
        ptr::from_ref(self).cast_mut()
    }

    /// The value's place, for reading fields that may be read beside a running call. The cell must not be dead.
    pub fn value_ptr(&self) -> *const T {
        self.value.get().cast()
    }

    /// Marks the object as left in an unknown state.
    pub fn poison(&self) {
        self.header.word.store(Header::expect(T::INFO, POISONED), Ordering::Release);
    }
}

// --- shared -------------------------------------------------------------------------------------------------------

impl<T: Slot + Sync> Cell<T> {
    /// The value. Whoever calls this has a reference, by the contract of the handle.
    #[inline(always)]
    pub fn get(&self) -> &T {
        // SAFETY: LIVE was checked, and the host holds a reference as long as it uses the handle.
        unsafe { &*self.value.get().cast::<T>() }
    }

    /// One more reference.
    #[inline]
    pub fn retain(&self) {
        self.header.count.fetch_add(1, Ordering::Relaxed);
    }

    /// References at this moment.
    pub fn references(&self) -> u32 {
        self.header.count.load(Ordering::Relaxed)
    }

    /// One more reference unless the last one is gone.
    pub fn try_retain(&self) -> bool {
        let mut count = self.header.count.load(Ordering::Relaxed);
        while count > 0 && self.header.is_usable(T::INFO) {
            match self.header.count.compare_exchange_weak(
                count,
                count + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }

    /// As [`Cell::release`], with the value dropped where it lies, or only forgotten (in a forked child).
    #[inline]
    pub fn release_in_place(&self, forget: bool) {
        if self.header.count.fetch_sub(1, Ordering::Release) == 1 {
            core::sync::atomic::fence(Ordering::Acquire);
            self.bury(forget);
        }
    }

    /// One reference less; the last one takes the value out, and the handle is dead from then on.
    #[inline]
    pub fn release(&self) -> Option<T> {
        if self.header.count.fetch_sub(1, Ordering::Release) != 1 {
            return None;
        }
        core::sync::atomic::fence(Ordering::Acquire);
        self.header.word.store(Header::expect(T::INFO, DEAD), Ordering::Release);
        // SAFETY: the last reference is gone, so nobody reads the value any more; the cell is put back after it left.
        let value = unsafe { (*self.value.get()).assume_init_read() };
        T::slab().put(NonNull::from(self));
        Some(value)
    }
}

// --- owned references ---------------------------------------------------------------------------------------------

/// A reference to a shared cell that is given back when dropped. In a forked child it is only forgotten.
#[derive(Debug)]
pub struct Shared<T: Slot + Sync>(NonNull<Cell<T>>);

// SAFETY: a reference may be used and given back on any thread, by the shared protocol.
unsafe impl<T: Slot + Sync + Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Slot + Sync + Send> Sync for Shared<T> {}

impl<T: Slot + Sync> Shared<T> {
    /// A new cell with `value`.
    #[inline(always)]
    pub fn new(value: T) -> Shared<T> {
        Shared(T::slab().insert(value))
    }

    /// One more reference to a live cell.
    #[inline]
    pub fn of(cell: &Cell<T>) -> Shared<T> {
        cell.retain();
        Shared(NonNull::from(cell))
    }

    /// Two more references at the price of one.
    #[inline]
    pub fn two_of(cell: &Cell<T>) -> [Shared<T>; 2] {
        cell.header.count.fetch_add(2, Ordering::Relaxed);
        [Shared(NonNull::from(cell)), Shared(NonNull::from(cell))]
    }

    /// Gives a reference back that may be the only one: then without a locked instruction.
    #[inline]
    pub fn end(mut self) {
        if self.get_mut().is_some() && !super::fork::is_child() {
            self.cell().bury(false);
            core::mem::forget(self);
        }
    }

    /// The cell.
    #[inline]
    pub fn cell(&self) -> &Cell<T> {
        // SAFETY: the reference keeps the cell alive, and cells are never unmapped.
        unsafe { self.0.as_ref() }
    }

    /// The value for this owner alone, when nobody else has a reference.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if self.cell().header.count.load(Ordering::Acquire) != 1 {
            return None;
        }
        // SAFETY: the only reference is this one, borrowed mutably, and new ones come only from existing ones.
        Some(unsafe { &mut *self.cell().value.get().cast::<T>() })
    }

    /// Hands the reference over to the host.
    pub fn into_raw(self) -> *mut Cell<T> {
        let cell = self.0.as_ptr();
        core::mem::forget(self);
        cell
    }
}

impl<T: Slot + Sync> core::ops::Deref for Shared<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.cell().get()
    }
}

impl<T: Slot + Sync> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared::of(self.cell())
    }
}

impl<T: Slot + Sync> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        if !super::fork::is_child() {
            self.cell().release_in_place(false);
        }
    }
}

// --- exclusive ----------------------------------------------------------------------------------------------------

/// The one running call on an exclusive handle.
#[derive(Debug)]
pub struct Exclusive<'a, T: Slot> {
    cell: &'a Cell<T>,
}

impl<T: Slot + Send> Cell<T> {
    /// Takes the handle for one call.
    ///
    /// # Errors
    /// [`Refused::Busy`] at once when another call is running.
    ///
    /// # Safety
    /// As [`check`].
    #[inline]
    pub unsafe fn lock<'a>(pointer: *const Cell<T>) -> Result<Exclusive<'a, T>, Refused> {
        if pointer.is_null() || pointer.addr() & 15 != 0 {
            return Err(Refused::Bad);
        }
        // SAFETY: by this function's contract.
        let cell = unsafe { &*pointer };
        let (idle, busy) = (Header::expect(T::INFO, LIVE), Header::expect(T::INFO, BUSY));
        match cell.header.word.compare_exchange(idle, busy, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(Exclusive { cell }),
            Err(word) => Err(Self::why_not(word)),
        }
    }

    /// Frees the handle. A running call is interrupted and frees it when it ends, then the value is dropped there.
    /// Returns the value when nothing is running, so that the caller drops it where host code may run.
    ///
    /// # Errors
    /// [`Refused::Bad`] when there is nothing to free.
    ///
    /// # Safety
    /// As [`check`].
    pub unsafe fn free(pointer: *const Cell<T>) -> Result<Option<T>, Refused> {
        if pointer.is_null() || pointer.addr() & 15 != 0 {
            return Err(Refused::Bad);
        }
        // SAFETY: by this function's contract.
        let cell = unsafe { &*pointer };
        loop {
            if let Some(value) = cell.end() {
                return Ok(Some(value));
            }
            let word = cell.header.word.load(Ordering::Acquire);
            if word == Header::expect(T::INFO, BUSY) {
                break;
            }
            // LIVE again: the running call has ended between the two looks.
            if word != Header::expect(T::INFO, LIVE) && word != Header::expect(T::INFO, POISONED) {
                return Err(Refused::Bad);
            }
        }
        // The running call may end the handle as soon as it sees the mark. The visit keeps the value until the call has
        // been told, and the cell from being used for another object until we have looked at it for the last time.
        let running = Visit::announce(cell);
        cell.header.count.store(FREED, Ordering::SeqCst);
        if cell.header.word.load(Ordering::SeqCst) & STATE != DEAD {
            T::interrupt(cell);
        }
        // Either the running call sees the mark when it ends, or we see here that it has ended.
        fence::heavy();
        let ours = cell.claim();
        drop(running);
        // SAFETY: this thread has claimed the value.
        Ok(ours.then(|| unsafe { cell.collect() }))
    }

    /// As [`Cell::free`], with the value dropped where it lies, or only forgotten (in a forked child).
    ///
    /// # Errors
    /// As [`Cell::free`].
    ///
    /// # Safety
    /// As [`check`].
    #[inline]
    pub unsafe fn free_in_place(pointer: *const Cell<T>, forget: bool) -> Result<(), Refused> {
        if pointer.is_null() || pointer.addr() & 15 != 0 {
            return Err(Refused::Bad);
        }
        // SAFETY: by this function's contract.
        let cell = unsafe { &*pointer };
        let (idle, dead) = (Header::expect(T::INFO, LIVE), Header::expect(T::INFO, DEAD));
        if cell.header.word.compare_exchange(idle, dead, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            cell.outlast_visitors();
            cell.bury(forget);
            return Ok(());
        }
        // Busy, poisoned or dead: the slow way.
        // SAFETY: by this function's contract.
        if let Some(value) = unsafe { Self::free(pointer) }? {
            if forget { core::mem::forget(value) } else { drop(value) }
        }
        Ok(())
    }

    /// Ends a handle whose value needs no drop any more, without a locked instruction. Two frees of one handle at the
    /// same time are not told apart, as little as a free that comes when the cell is in use again.
    ///
    /// # Safety
    /// The handle was just found live, no call runs on it, and its owner ends it.
    #[inline(always)]
    pub unsafe fn end_here(&self, record: &record::Record) {
        self.header.word.store(Header::expect(T::INFO, DEAD), Ordering::Release);
        T::slab().put_here(record, NonNull::from(self));
    }

    /// LIVE or POISONED to DEAD, with the value taken out; `None` when it was neither.
    #[inline]
    fn end(&self) -> Option<T> {
        // SAFETY: this thread has just claimed the value.
        self.claim().then(|| unsafe { self.collect() })
    }
}

impl<T: Slot> Cell<T> {
    /// LIVE or POISONED to DEAD: true for the one thread that ends the value.
    #[inline]
    fn claim(&self) -> bool {
        let dead = Header::expect(T::INFO, DEAD);
        [LIVE, POISONED].into_iter().any(|state| {
            let from = Header::expect(T::INFO, state);
            self.header.word.compare_exchange(from, dead, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        })
    }

    /// Takes the value out and puts the cell back.
    ///
    /// # Safety
    /// Only after a [`Cell::claim`] that said true, once, and by a thread that may have the value.
    #[inline]
    unsafe fn collect(&self) -> T {
        self.outlast_visitors();
        // SAFETY: by this function's contract nobody else touches the value.
        let value = unsafe { (*self.value.get()).assume_init_read() };
        T::slab().put(NonNull::from(self));
        value
    }
}

impl<T: Slot> Exclusive<'_, T> {
    /// The cell, for its pointer.
    pub fn cell(&self) -> &Cell<T> {
        self.cell
    }
}

impl<T: Slot> core::ops::Deref for Exclusive<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: BUSY is ours, so no other call has the value.
        unsafe { &*self.cell.value.get().cast::<T>() }
    }
}

impl<T: Slot> core::ops::DerefMut for Exclusive<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.cell.value.get().cast::<T>() }
    }
}

impl<T: Slot> Drop for Exclusive<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let state = if std::thread::panicking() { POISONED } else { LIVE };
        self.cell.header.word.store(Header::expect(T::INFO, state), Ordering::Release);
        fence::light();
        if self.cell.header.count.load(Ordering::Relaxed) == FREED {
            self.finish_free();
        }
    }
}

impl<T: Slot> Exclusive<'_, T> {
    #[cold]
    fn finish_free(&self) {
        if self.cell.claim() {
            // SAFETY: this thread has claimed the value. It need not be `Send`: it may live on this thread, so it may
            // also be dropped on it.
            drop(unsafe { self.cell.collect() });
        }
    }
}

#[cfg(test)]
mod tests;
