//! Descriptors a host's event loop can watch: an epoll set over an eventfd and a timerfd.

use core::time::Duration;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// One descriptor, readable while [`Signal::raise`] is in force or the armed deadline has passed.
#[derive(Debug)]
pub struct Signal {
    epoll: OwnedFd,
    event: OwnedFd,
    timer: OwnedFd,
}

impl Signal {
    /// Three descriptors, all close-on-exec and non-blocking.
    ///
    /// # Errors
    /// What the kernel says, mostly EMFILE.
    pub fn new() -> io::Result<Signal> {
        // SAFETY: plain system calls that return a new descriptor or -1.
        let (epoll, event, timer) = unsafe {
            (
                owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?,
                owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?,
                owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK))?,
            )
        };
        for fd in [event.as_raw_fd(), timer.as_raw_fd()] {
            let mut interest = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            // SAFETY: both descriptors are open and the struct is on this stack.
            if unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut interest) } != 0
            {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Signal { epoll, event, timer })
    }

    /// What the host's loop watches for reading.
    pub fn fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Makes the descriptor readable until [`Signal::clear`]. Signal-safe.
    pub fn raise(&self) {
        let one: u64 = 1;
        // SAFETY: eight readable bytes. The counter cannot overflow in practice; EAGAIN means "already readable".
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Takes back [`Signal::raise`].
    pub fn clear(&self) {
        let mut count: u64 = 0;
        // SAFETY: eight writable bytes.
        unsafe { libc::read(self.event.as_raw_fd(), (&raw mut count).cast(), 8) };
    }

    /// Becomes readable after `after`, and stays so; `None` disarms.
    pub fn arm(&self, after: Option<Duration>) {
        let value = after.map_or(libc::timespec { tv_sec: 0, tv_nsec: 0 }, |after| libc::timespec {
            tv_sec: libc::time_t::try_from(after.as_secs()).unwrap_or(libc::time_t::MAX),
            // Zero would disarm, and a deadline that has passed must fire.
            tv_nsec: libc::c_long::from(after.subsec_nanos().cast_signed()).max(1),
        });
        let spec =
            libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: an open timerfd and a struct on this stack.
        unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), 0, &raw const spec, core::ptr::null_mut()) };
    }
}

/// True when a read on `fd` would find something now.
pub fn is_readable(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd on this stack.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed this descriptor to us and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(fd: RawFd, timeout_ms: i32) -> bool {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd on this stack.
        unsafe { libc::poll(&raw mut poll, 1, timeout_ms) == 1 }
    }

    #[test]
    fn readable_while_raised_or_past_the_deadline() {
        let signal = Signal::new().unwrap();
        assert!(!readable(signal.fd(), 0));
        signal.raise();
        signal.raise();
        assert!(readable(signal.fd(), 0) && readable(signal.fd(), 0), "level-triggered");
        signal.clear();
        assert!(!readable(signal.fd(), 0));
        signal.arm(Some(Duration::ZERO));
        assert!(readable(signal.fd(), 10_000));
        signal.arm(None);
        assert!(!readable(signal.fd(), 0));
    }
}
