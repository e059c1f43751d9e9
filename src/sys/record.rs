//! What byway keeps per thread: which engines' callbacks are running on it, what must run when it leaves the
//! library, and free handle cells.
//!
//! One record per thread, found by one thread-local load. Records are never freed; a thread that ends gives its
//! record to the next one, caches included. Other threads read only the atomic fields: that is how shutdown learns,
//! without a counter on every callback, that no callback of an engine is running any more (a hazard pointer with an
//! asymmetric fence).

use super::pinned::{PINS, Pin};
use super::{fence, thread};
use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Handle types that may exist; a free list per type and thread.
pub const MAX_TYPES: usize = 48;

/// Callbacks nested on one thread. Selectors may nest to 8; listeners and destroys come on top.
pub const MAX_DEPTH: usize = 16;

/// Looks at [published](super::published) values nested on one thread that need no count.
const HAZARDS: usize = 4;

/// Numbers kept for the floors above, see [`Record::note`].
const NOTES: usize = 16;

/// Work put off until the thread leaves the library, when no lock of ours is held.
pub type Job = Box<dyn FnOnce()>;

/// Singly linked list of dead cells.
#[derive(Clone, Copy)]
pub(super) struct Cache {
    pub(super) head: *mut u8,
    pub(super) len: usize,
}

/// A number kept under two others.
#[derive(Clone, Copy)]
struct Note {
    keys: (u64, u64),
    value: u32,
}

/// One thread's record.
pub struct Record {
    /// What this thread looks at and nobody may drop; null where nothing.
    hazards: [AtomicPtr<()>; HAZARDS],
    /// What this thread handed out references to.
    pins: [Pin; PINS],
    notes: [Cell<Note>; NOTES],
    engines: [AtomicU64; MAX_DEPTH],
    objects: [AtomicUsize; MAX_DEPTH],
    depth: AtomicUsize,
    in_use: AtomicBool,
    next: AtomicPtr<Record>,
    calls: Cell<u32>,
    running_jobs: Cell<bool>,
    jobs: UnsafeCell<Vec<Job>>,
    panic: UnsafeCell<Option<String>>,
    caches: [Cell<Cache>; MAX_TYPES],
    /// Handles made less handles freed on this thread; written by its owner only, so without a locked instruction.
    live: [AtomicIsize; MAX_TYPES],
}

// SAFETY: other threads touch only the atomics; the cells belong to the thread that holds `in_use`.
unsafe impl Sync for Record {}

static ALL: AtomicPtr<Record> = AtomicPtr::new(ptr::null_mut());

struct Leaver;

impl Drop for Leaver {
    fn drop(&mut self) {
        let record = CURRENT.replace(ptr::null());
        if !record.is_null() {
            // SAFETY: records are never freed.
            let record = unsafe { &*record };
            record.belongs_to(0);
            record.in_use.store(false, Ordering::Release);
        }
    }
}

thread_local! {
    static CURRENT: Cell<*const Record> = const { Cell::new(ptr::null()) };
    static LEAVER: Leaver = const { Leaver };
}

/// This thread's record.
#[inline]
pub fn current() -> &'static Record {
    let record = CURRENT.get();
    if record.is_null() {
        return register();
    }
    // SAFETY: records are never freed, and CURRENT only shows this thread's own.
    unsafe { &*record }
}

/// This thread's record, if it ever entered the library.
#[inline]
pub fn try_current() -> Option<&'static Record> {
    let record = CURRENT.try_with(Cell::get).ok()?;
    // SAFETY: as in `current`.
    unsafe { record.as_ref() }
}

#[cold]
fn register() -> &'static Record {
    let record = adopt().unwrap_or_else(create);
    record.belongs_to(thread::token());
    CURRENT.set(record);
    // Fails while the thread is being torn down: then the record stays taken, which costs a few hundred bytes.
    let _ = LEAVER.try_with(|_| ());
    record
}

fn adopt() -> Option<&'static Record> {
    let mut at = ALL.load(Ordering::Acquire);
    // SAFETY: the list is only pushed to, and its records are never freed.
    while let Some(record) = unsafe { at.as_ref() } {
        if !record.in_use.load(Ordering::Relaxed)
            && record.in_use.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            return Some(record);
        }
        at = record.next.load(Ordering::Acquire);
    }
    None
}

fn create() -> &'static Record {
    let record: &'static Record = Box::leak(Box::new(Record {
        hazards: [const { AtomicPtr::new(ptr::null_mut()) }; HAZARDS],
        pins: [const { Pin::new() }; PINS],
        notes: [const { Cell::new(Note { keys: (0, 0), value: 0 }) }; NOTES],
        engines: [const { AtomicU64::new(0) }; MAX_DEPTH],
        objects: [const { AtomicUsize::new(0) }; MAX_DEPTH],
        depth: AtomicUsize::new(0),
        in_use: AtomicBool::new(true),
        next: AtomicPtr::new(ptr::null_mut()),
        calls: Cell::new(0),
        running_jobs: Cell::new(false),
        jobs: UnsafeCell::new(Vec::new()),
        panic: UnsafeCell::new(None),
        caches: [const { Cell::new(Cache { head: ptr::null_mut(), len: 0 }) }; MAX_TYPES],
        live: [const { AtomicIsize::new(0) }; MAX_TYPES],
    }));
    let node = ptr::from_ref(record).cast_mut();
    let mut head = ALL.load(Ordering::Relaxed);
    loop {
        record.next.store(head, Ordering::Relaxed);
        match ALL.compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return record,
            Err(now) => head = now,
        }
    }
}

/// Ends when dropped; see [`Record::enter_callback`].
pub struct CallbackScope<'r> {
    record: &'r Record,
    at: usize,
}

impl Record {
    /// Says that a callback of `engine` is about to run on this thread, called on behalf of `object` (an address
    /// that only serves to recognise it). `None` when the nesting is too deep.
    ///
    /// After this the caller looks whether the engine is closing, and only then calls: [`anyone_inside`] and that
    /// look are ordered by the asymmetric fence.
    #[inline]
    pub fn enter_callback(&self, engine: u64, object: usize) -> Option<CallbackScope<'_>> {
        let at = self.depth.load(Ordering::Relaxed);
        let (engine_slot, object_slot) = (self.engines.get(at)?, self.objects.get(at)?);
        object_slot.store(object, Ordering::Relaxed);
        engine_slot.store(engine, Ordering::Relaxed);
        self.depth.store(at + 1, Ordering::Relaxed);
        fence::light();
        Some(CallbackScope { record: self, at })
    }

    /// Callbacks that are running on this thread, of any engine.
    pub fn callback_depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// True when a callback of `engine` is running on this thread.
    pub fn inside_engine(&self, engine: u64) -> bool {
        self.engines.iter().take(self.callback_depth()).any(|slot| slot.load(Ordering::Relaxed) == engine)
    }

    /// True when a callback made on behalf of `object` is running on this thread.
    pub fn inside_object(&self, object: usize) -> bool {
        self.objects.iter().take(self.callback_depth()).any(|slot| slot.load(Ordering::Relaxed) == object)
    }

    /// The first slot, if it holds nothing.
    #[inline(always)]
    pub(super) fn first_hazard(&self) -> Option<&AtomicPtr<()>> {
        self.hazards.first().filter(|slot| slot.load(Ordering::Relaxed).is_null())
    }

    /// A slot that holds nothing. Only this thread writes to it.
    #[inline]
    pub(super) fn free_hazard(&self) -> Option<&AtomicPtr<()>> {
        self.hazards.iter().find(|slot| slot.load(Ordering::Relaxed).is_null())
    }

    fn belongs_to(&self, thread: usize) {
        for pin in &self.pins {
            pin.belongs_to(thread);
        }
    }

    /// Where references to `pointer` are counted, or may be from now on.
    #[inline(always)]
    pub(super) fn pin_for(&self, pointer: *const ()) -> Option<&Pin> {
        // Allocations of one kind differ above these bits.
        let first = (pointer.addr() >> 8 ^ pointer.addr() >> 12) % PINS;
        match self.pins.get(first) {
            Some(pin) if pin.may_count(pointer) => Some(pin),
            _ => self.pin_elsewhere(pointer),
        }
    }

    #[cold]
    fn pin_elsewhere(&self, pointer: *const ()) -> Option<&Pin> {
        self.pins.iter().find(|pin| pin.may_count(pointer))
    }

    #[inline(always)]
    fn place_of(&self, keys: (u64, u64)) -> Option<&Cell<Note>> {
        self.notes.get((keys.0 ^ keys.0 >> 32 ^ keys.1) as usize % NOTES)
    }

    /// What this thread noted under two numbers, of which the first is not 0; a later note may have taken its place.
    #[inline(always)]
    pub fn noted(&self, keys: (u64, u64)) -> Option<u32> {
        let note = self.place_of(keys)?.get();
        (note.keys == keys).then_some(note.value)
    }

    /// Notes a number for [`Record::noted`].
    #[inline]
    pub fn note(&self, keys: (u64, u64), value: u32) {
        if let Some(place) = self.place_of(keys) {
            place.set(Note { keys, value });
        }
    }

    /// The library was entered on this thread.
    #[inline]
    pub fn enter(&self) {
        self.calls.set(self.calls.get() + 1);
    }

    /// The library is being left; on the outermost level runs the jobs put off meanwhile.
    #[inline]
    pub fn leave(&self) {
        let left = self.calls.get() - 1;
        self.calls.set(left);
        // SAFETY: only this thread touches its jobs, and no reference to them outlives a statement.
        if left == 0 && !unsafe { (*self.jobs.get()).is_empty() } {
            self.run_jobs();
        }
    }

    /// True while this thread is inside a call made by the host.
    pub fn is_inside(&self) -> bool {
        self.calls.get() > 0
    }

    /// Puts work off until the thread leaves the library. Only while [`Record::is_inside`].
    pub fn put_off(&self, job: Job) {
        // SAFETY: as in `leave`.
        unsafe { (*self.jobs.get()).push(job) };
    }

    #[cold]
    fn run_jobs(&self) {
        // A job may come back into the library and put off more: the loop below takes those too.
        if self.running_jobs.replace(true) {
            return;
        }
        loop {
            // SAFETY: as in `leave`.
            let jobs = unsafe { core::mem::take(&mut *self.jobs.get()) };
            if jobs.is_empty() {
                break;
            }
            for job in jobs {
                job();
            }
        }
        self.running_jobs.set(false);
    }

    /// Keeps what the panic hook saw for the guard that catches the panic.
    pub fn note_panic(&self, text: String) {
        // SAFETY: as in `leave`.
        unsafe { *self.panic.get() = Some(text) };
    }

    /// What [`Record::note_panic`] kept last.
    pub fn take_panic(&self) -> Option<String> {
        // SAFETY: as in `leave`.
        unsafe { (*self.panic.get()).take() }
    }

    #[inline]
    pub(super) fn count_live(&self, index: usize, change: isize) {
        if let Some(live) = self.live.get(index) {
            live.store(live.load(Ordering::Relaxed) + change, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn cache(&self, index: usize) -> Option<&Cell<Cache>> {
        self.caches.get(index)
    }
}

impl Drop for CallbackScope<'_> {
    #[inline]
    fn drop(&mut self) {
        if let (Some(engine), Some(object)) =
            (self.record.engines.get(self.at), self.record.objects.get(self.at))
        {
            engine.store(0, Ordering::Release);
            object.store(0, Ordering::Relaxed);
        }
        self.record.depth.store(self.at, Ordering::Relaxed);
    }
}

/// True when a callback of `engine` is running on any thread. The caller has marked the engine as closing before;
/// a callback that this call does not see will see the mark.
pub fn anyone_inside(engine: u64) -> bool {
    fence::heavy();
    let mut at = ALL.load(Ordering::Acquire);
    // SAFETY: as in `adopt`.
    while let Some(record) = unsafe { at.as_ref() } {
        if record.engines.iter().any(|slot| slot.load(Ordering::Acquire) == engine) {
            return true;
        }
        at = record.next.load(Ordering::Acquire);
    }
    false
}

/// Every thread's pins.
pub(super) fn each_pin(mut visit: impl FnMut(&'static Pin)) {
    let mut at = ALL.load(Ordering::Acquire);
    // SAFETY: as in `adopt`.
    while let Some(record) = unsafe { at.as_ref() } {
        record.pins.iter().for_each(&mut visit);
        at = record.next.load(Ordering::Acquire);
    }
}

/// What all threads look at, and what references are out to. The caller has made it unreachable and passed the heavy
/// side of the fence.
pub(super) fn held() -> Vec<*const ()> {
    let mut held = Vec::new();
    let mut at = ALL.load(Ordering::Acquire);
    // SAFETY: as in `adopt`.
    while let Some(record) = unsafe { at.as_ref() } {
        let slots = record.hazards.iter().map(|slot| slot.load(Ordering::Acquire).cast_const());
        held.extend(slots.filter(|pointer| !pointer.is_null()));
        held.extend(record.pins.iter().filter_map(Pin::held));
        at = record.next.load(Ordering::Acquire);
    }
    held
}

/// Handles of one type that are alive, summed over all threads.
pub(super) fn live(index: usize) -> usize {
    let mut sum = 0;
    let mut at = ALL.load(Ordering::Acquire);
    // SAFETY: as in `adopt`.
    while let Some(record) = unsafe { at.as_ref() } {
        sum += record.live.get(index).map_or(0, |live| live.load(Ordering::Relaxed));
        at = record.next.load(Ordering::Acquire);
    }
    usize::try_from(sum).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_running_callback_is_seen_from_elsewhere_and_gone_after() {
        let engine = u64::MAX - 7;
        let (inside, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let thread = std::thread::spawn(move || {
            let scope = current().enter_callback(engine, 1);
            inside.0.send(()).unwrap();
            go_on.1.recv().unwrap();
            drop(scope);
        });
        inside.1.recv().unwrap();
        assert!(anyone_inside(engine) && !current().inside_engine(engine));
        go_on.0.send(()).unwrap();
        thread.join().unwrap();
        assert!(!anyone_inside(engine));
    }

    #[test]
    fn nesting_has_an_end() {
        let record = current();
        let scopes: Vec<_> = (0..MAX_DEPTH).map(|_| record.enter_callback(3, 0).unwrap()).collect();
        assert!(record.enter_callback(3, 0).is_none());
        for scope in scopes.into_iter().rev() {
            drop(scope);
        }
        assert_eq!(record.callback_depth(), 0);
    }

    #[test]
    fn jobs_run_once_when_the_outermost_call_ends() {
        let ran = Rc::new(Cell::new(0));
        let record = current();
        record.enter();
        record.enter();
        let count = Rc::clone(&ran);
        record.put_off(Box::new(move || {
            current().enter();
            let again = Rc::clone(&count);
            current().put_off(Box::new(move || again.set(again.get() + 10)));
            current().leave();
            count.set(count.get() + 1);
        }));
        record.leave();
        assert_eq!(ran.get(), 0);
        record.leave();
        assert_eq!(ran.get(), 11);
    }
}
