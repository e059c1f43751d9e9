//! An asymmetric memory fence: free on the path that runs a million times, a system call on the one that does not.
//!
//! [`light`] only keeps the compiler from reordering; [`heavy`] makes every running thread of the process execute a
//! full barrier (`membarrier(2)`, private expedited). Together they order like two `SeqCst` fences. Where the
//! kernel has no `membarrier` both become real fences.

use core::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

const UNKNOWN: u8 = 0;
const EXPEDITED: u8 = 1;
const PLAIN: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Registers the process with the kernel; called before the first object is handed out. Idempotent.
pub fn init() {
    if MODE.load(Ordering::Acquire) == UNKNOWN {
        let mode = if register() { EXPEDITED } else { PLAIN };
        MODE.store(mode, Ordering::SeqCst);
    }
}

/// The cheap side. Pairs with [`heavy`] only.
#[inline(always)]
pub fn light() {
    if MODE.load(Ordering::Relaxed) != EXPEDITED {
        plain();
    }
    compiler_fence(Ordering::SeqCst);
}

/// Out of the way of those who need it not.
#[cold]
#[inline(never)]
fn plain() {
    fence(Ordering::SeqCst);
}

/// The dear side: a few hundred nanoseconds.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if MODE.load(Ordering::Relaxed) == EXPEDITED {
        barrier_everywhere();
    }
}

#[cfg(target_os = "linux")]
fn register() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    // SAFETY: membarrier takes plain integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn register() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn barrier_everywhere() {
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    // SAFETY: as in `register`; the command was registered, so it cannot fail.
    unsafe { libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) };
}

#[cfg(not(target_os = "linux"))]
fn barrier_everywhere() {}
