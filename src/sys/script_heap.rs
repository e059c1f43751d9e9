//! The memory of one script context: counted, bounded, and it says whether the bound was met.
//!
//! The engine's own bound tells nobody: what fails for want of memory throws an error that takes memory itself, and
//! then nothing but `null` is left of it. Here a refusal is remembered, and behind the bound there is a little for the
//! error.

use rquickjs::allocator::{Allocator, RustAllocator};
use std::cell::Cell;
use std::rc::Rc;

/// What is behind the bound once it was met.
const RESERVE: usize = 256 << 10;

/// How a heap stands.
#[derive(Debug)]
pub struct Gauge {
    limit: usize,
    used: Cell<usize>,
    refused: Cell<bool>,
}

impl Gauge {
    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// More than the limit was asked for since the last [`Gauge::reset`].
    pub fn refused(&self) -> bool {
        self.refused.get()
    }

    /// Forgets refusals.
    pub fn reset(&self) {
        self.refused.set(false);
    }

    /// May `more` be had in place of `less`?
    fn admits(&self, less: usize, more: usize) -> bool {
        let limit = self.limit.saturating_add(if self.refused.get() { RESERVE } else { 0 });
        let fits = (self.used.get() - less).checked_add(more).is_some_and(|all| all <= limit);
        if !fits {
            self.refused.set(true);
        }
        fits
    }

    /// Counts what was given.
    fn count(&self, ptr: *mut u8) -> *mut u8 {
        if ptr.is_null() {
            self.refused.set(true);
        } else {
            // SAFETY: just given by this allocator.
            self.used.set(self.used.get() + unsafe { RustAllocator::usable_size(ptr) });
        }
        ptr
    }
}

/// An allocator for one engine, on one thread.
#[derive(Debug)]
pub struct ScriptHeap(Rc<Gauge>);

impl ScriptHeap {
    /// A heap of at most `limit` bytes, and its gauge.
    pub fn new(limit: usize) -> (ScriptHeap, Rc<Gauge>) {
        let gauge = Rc::new(Gauge { limit, used: Cell::new(0), refused: Cell::new(false) });
        (ScriptHeap(gauge.clone()), gauge)
    }
}

// SAFETY: every piece is one of `RustAllocator`, which keeps the contract; this only counts and says no.
unsafe impl Allocator for ScriptHeap {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.admits(0, size) {
            return std::ptr::null_mut();
        }
        self.0.count(RustAllocator.alloc(size))
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !count.checked_mul(size).is_some_and(|all| self.0.admits(0, all)) {
            return std::ptr::null_mut();
        }
        self.0.count(RustAllocator.calloc(count, size))
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        // SAFETY: the caller's contract: a piece of this allocator, and its last use.
        unsafe {
            self.0.used.set(self.0.used.get() - RustAllocator::usable_size(ptr));
            RustAllocator.dealloc(ptr);
        }
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        if ptr.is_null() {
            return self.alloc(new_size);
        }
        // SAFETY: the caller's contract: a piece of this allocator.
        let before = unsafe { RustAllocator::usable_size(ptr) };
        if !self.0.admits(before, new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above; when it fails the old piece stays and stays counted.
        let new = unsafe { RustAllocator.realloc(ptr, new_size) };
        if !new.is_null() {
            self.0.used.set(self.0.used.get() - before);
        }
        self.0.count(new)
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: the caller's contract: a piece of this allocator.
        unsafe { RustAllocator::usable_size(ptr) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_counts_what_it_gives_refuses_what_is_too_much_and_then_has_a_little_more() {
        let (mut heap, gauge) = ScriptHeap::new(1 << 20);
        let one = heap.alloc(1000);
        // SAFETY: pieces of this heap, each used until it is given back or moved.
        unsafe {
            one.write_bytes(7, 1000);
            assert_eq!(gauge.used(), 1000);
            let one = heap.realloc(one, 1 << 19);
            assert_eq!((gauge.used(), one.add(999).read()), (1 << 19, 7));
            assert!(heap.realloc(one, (1 << 20) + 8).is_null(), "beyond the limit");
            assert_eq!((gauge.used(), gauge.refused()), (1 << 19, true));
            assert!(heap.alloc(usize::MAX).is_null());
            assert!(heap.calloc(usize::MAX, 2).is_null());
            let reserve = heap.calloc(1, (1 << 19) + RESERVE);
            assert!(!reserve.is_null(), "what is behind the limit");
            assert!(heap.alloc(8).is_null());
            heap.dealloc(reserve);
            gauge.reset();
            assert!(heap.alloc((1 << 19) + 8).is_null(), "the limit holds again");
            heap.dealloc(one);
        }
        assert_eq!(gauge.used(), 0);
    }
}
