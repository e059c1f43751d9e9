//! Waiting on a 32-bit word. Waking is legal in a signal handler, which no condition variable allows.

use core::sync::atomic::AtomicU32;
use core::time::Duration;

/// Sleeps while `*word == expected`, at most `timeout`. May return early for no reason; callers loop.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let spec = timeout.map(|t| libc::timespec {
        tv_sec: libc::time_t::try_from(t.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(t.subsec_nanos().cast_signed()),
    });
    let spec: *const libc::timespec = spec.as_ref().map_or(core::ptr::null(), |spec| spec);
    // SAFETY: the word outlives the call by its borrow; the timespec is on this stack.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            spec,
        )
    };
}

/// Wakes every thread that sleeps on `word`. Signal-safe.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE only uses the address as a key.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX)
    };
}
