//! One descriptor that stands for many sockets, a timer and a wake-up: what a host's event loop watches.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// An epoll set that may have a timer inside. Level-triggered, close-on-exec.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    /// Made when it is first armed.
    timer: Option<OwnedFd>,
    armed: Option<u64>,
}

/// Token of the timer and of wake-ups; sockets use others.
pub const INNER: u64 = 0;

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed this descriptor to us and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Poller {
    /// An empty set whose timer is not armed.
    ///
    /// # Errors
    /// What the kernel says, mostly EMFILE.
    pub fn new() -> io::Result<Poller> {
        // SAFETY: a plain system call that returns a new descriptor or -1.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Poller { epoll, timer: None, armed: None })
    }

    /// What the host watches for reading.
    pub fn fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    fn control(&self, operation: i32, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut interest = libc::epoll_event { events, u64: token };
        // SAFETY: an open epoll set and a struct on this stack; a bad `fd` is an error, not a fault.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &raw mut interest) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Watches a descriptor; `events` are poll's bits, which epoll shares.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add(&self, fd: RawFd, events: i16, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, u32::from(events.cast_unsigned()), token)
    }

    /// Changes what a descriptor is watched for.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn modify(&self, fd: RawFd, events: i16, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, u32::from(events.cast_unsigned()), token)
    }

    /// Stops watching; to be called before the descriptor is closed or handed over.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = self.control(libc::EPOLL_CTL_DEL, fd.as_raw_fd(), 0, 0);
    }

    fn timer(&mut self) -> io::Result<RawFd> {
        if let Some(timer) = &self.timer {
            return Ok(timer.as_raw_fd());
        }
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: a plain system call that returns a new descriptor or -1.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        let fd = timer.as_raw_fd();
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, INNER)?;
        self.timer = Some(timer);
        Ok(fd)
    }

    /// Readable from this time on the monotonic clock, in nanoseconds; `None` disarms.
    ///
    /// # Errors
    /// What the kernel says when the timer cannot be made, mostly EMFILE.
    pub fn arm(&mut self, at: Option<u64>) -> io::Result<()> {
        if self.armed == at {
            return Ok(());
        }
        let timer = self.timer()?;
        self.armed = at;
        // Zero would disarm, and a deadline that has passed must fire.
        let at = at.map_or(0, |at| at.max(1));
        let value = libc::timespec {
            tv_sec: libc::time_t::try_from(at / 1_000_000_000).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::try_from(at % 1_000_000_000).unwrap_or(0),
        };
        let spec =
            libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        let flags = libc::TFD_TIMER_ABSTIME;
        // SAFETY: an open timerfd and a struct on this stack.
        unsafe { libc::timerfd_settime(timer, flags, &raw const spec, core::ptr::null_mut()) };
        Ok(())
    }

    /// What is ready now, at most eight entries a call: token and poll's bits.
    pub fn ready(&self, mut each: impl FnMut(u64, i16)) -> usize {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
        // SAFETY: an open epoll set and eight writable entries.
        let n = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), 8, 0) };
        let n = usize::try_from(n).unwrap_or(0);
        for event in events.iter().take(n) {
            each(event.u64, (event.events & 0xffff) as u16 as i16);
        }
        n
    }
}

/// The monotonic clock in nanoseconds, the one [`Poller::arm`] takes.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a struct on this stack; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
