//! Waking the thread that drives an operation: from any thread and from a signal handler.

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::io;
use std::os::fd::RawFd;

/// Flags that stay set until taken, and a descriptor that is readable while one is set. The descriptor exists only
/// once somebody has to wait for it, so an operation that never waits makes none.
#[derive(Debug)]
pub struct Wake {
    flags: AtomicU32,
    fd: AtomicI32,
}

impl Default for Wake {
    fn default() -> Self {
        Wake { flags: AtomicU32::new(0), fd: AtomicI32::new(-1) }
    }
}

impl Wake {
    /// Sets flags and wakes. One atomic and at most one write: legal in a signal handler; keeps `errno`.
    pub fn raise(&self, flags: u32) {
        self.flags.fetch_or(flags, Ordering::SeqCst);
        let fd = self.fd.load(Ordering::SeqCst);
        if fd >= 0 {
            let one: u64 = 1;
            // SAFETY: errno's place is this thread's own; the descriptor lives as long as `self`, and eight
            // readable bytes are on this stack. A full counter (EAGAIN) means readable already.
            unsafe {
                let errno = libc::__errno_location();
                let kept = *errno;
                libc::write(fd, (&raw const one).cast(), 8);
                *errno = kept;
            }
        }
    }

    /// The flags set now.
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::SeqCst)
    }

    /// Takes `mask` out of the flags and returns what was set of it. The descriptor is quiet again afterwards,
    /// unless something was raised meanwhile.
    pub fn take(&self, mask: u32) -> u32 {
        let fd = self.fd.load(Ordering::SeqCst);
        if fd >= 0 {
            let mut count: u64 = 0;
            // SAFETY: our own non-blocking descriptor and eight writable bytes.
            unsafe { libc::read(fd, (&raw mut count).cast(), 8) };
        }
        // After the read: what is raised between the two is in the flags and makes the descriptor readable again.
        self.flags.fetch_and(!mask, Ordering::SeqCst) & mask
    }

    /// The descriptor to wait for, made now if there is none. A flag set before it existed does not make it
    /// readable: look at [`Wake::flags`] after this call and before waiting. To be called by one thread at a time.
    ///
    /// # Errors
    /// What the kernel says, mostly EMFILE.
    pub fn fd(&self) -> io::Result<RawFd> {
        let known = self.fd.load(Ordering::SeqCst);
        if known >= 0 {
            return Ok(known);
        }
        // SAFETY: a plain system call that returns a new descriptor or -1.
        let made = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        self.fd.store(made, Ordering::SeqCst);
        Ok(made)
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        let fd = *self.fd.get_mut();
        if fd >= 0 {
            // SAFETY: nobody else owns the descriptor, and nobody can raise any more.
            unsafe { libc::close(fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::socket::{PollFd, poll};

    #[test]
    fn a_flag_is_seen_with_or_without_a_descriptor_and_taken_once() {
        let wake = Wake::default();
        wake.raise(1);
        let fd = wake.fd().unwrap();
        let readable = || poll(&mut [PollFd { fd, events: libc::POLLIN, revents: 0 }], 0).unwrap() == 1;
        assert_eq!((wake.flags(), readable()), (1, false));
        wake.raise(2);
        assert!(readable());
        assert_eq!((wake.take(3), wake.take(3)), (3, 0));
        assert!(!readable());
    }
}
