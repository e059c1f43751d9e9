//! Tells a forked child from its parent with one load: a page the kernel wipes in the child.

use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::Once;

/// What the page pointer shows before [`init`]: a place that says "not a child".
static BEFORE_INIT: AtomicU8 = AtomicU8::new(1);
static PAGE: AtomicPtr<AtomicU8> = AtomicPtr::new(&raw const BEFORE_INIT as *mut AtomicU8);

/// True in a process forked after [`init`]. Never a system call.
#[inline(always)]
pub fn is_child() -> bool {
    // SAFETY: PAGE shows either the static or a mapping that is never unmapped.
    unsafe { (*PAGE.load(Ordering::Relaxed)).load(Ordering::Relaxed) == 0 }
}

/// Sets the page up. A child that calls it keeps being a child.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(page) = wiped_page() {
            PAGE.store(page, Ordering::Release);
        }
    });
}

#[cfg(unix)]
fn wiped_page() -> Option<*mut AtomicU8> {
    // SAFETY: an anonymous private mapping of one page at an address the kernel chooses; it lives for ever.
    let page = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            1,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    let page = page.cast::<AtomicU8>();
    // SAFETY: `page` is a writable mapping of at least one byte.
    unsafe { (*page).store(1, Ordering::Relaxed) };
    if !wipe_on_fork(page) {
        // SAFETY: the handler below only stores to a mapping that is never unmapped: legal after fork.
        unsafe { libc::pthread_atfork(None, None, Some(mark_child)) };
    }
    Some(page)
}

#[cfg(not(unix))]
fn wiped_page() -> Option<*mut AtomicU8> {
    None
}

#[cfg(target_os = "linux")]
fn wipe_on_fork(page: *mut AtomicU8) -> bool {
    // SAFETY: the range is the one page mapped above.
    unsafe { libc::madvise(page.cast(), 1, libc::MADV_WIPEONFORK) == 0 }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn wipe_on_fork(_: *mut AtomicU8) -> bool {
    false
}

#[cfg(unix)]
unsafe extern "C" fn mark_child() {
    // SAFETY: see `is_child`; the mapping is private, so only the child's copy changes.
    unsafe { (*PAGE.load(Ordering::Relaxed)).store(0, Ordering::Relaxed) };
}
