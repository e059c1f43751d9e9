//! Which thread is this, for one load; and threads of our own.

/// A number that differs between threads that are alive at the same time. Even and never 0. A later thread may have the
/// number of one that has ended.
#[inline(always)]
pub fn token() -> usize {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        let token: usize;
        // SAFETY: on x86-64 Linux the word at fs:0 is the thread control block's own address; reading it has no
        // side effect.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) token, options(nostack, preserves_flags, readonly, pure));
        }
        token
    }
    #[cfg(all(target_arch = "aarch64", target_os = "linux"))]
    {
        let token: usize;
        // SAFETY: on aarch64 Linux tpidr_el0 is the thread pointer; reading it has no side effect.
        unsafe {
            std::arch::asm!("mrs {}, tpidr_el0", out(reg) token, options(nostack, preserves_flags, nomem, pure));
        }
        token
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
    {
        thread_local!(static HERE: u64 = const { 0 });
        HERE.with(|here| std::ptr::from_ref(here) as usize)
    }
}

/// Starts a thread of this library: named, and with every signal blocked, because signals are the host's.
///
/// # Errors
/// What the kernel says, mostly EAGAIN: no more threads.
pub fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    // A new thread inherits the mask of the one that makes it.
    // SAFETY: two signal sets on this stack, zeroed and then filled by the calls; the mask is put back below.
    let before = unsafe {
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    // SAFETY: the set filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut()) };
    thread
}

/// Nanoseconds of processor time the calling thread has used; for measuring, where wall clocks would count other
/// people's work.
pub fn cpu_time_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; a clock that does not exist is an error.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (failed == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The processor clock of one thread, readable from every other one.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    /// The calling thread's; `None` where threads have no such clock.
    pub fn own() -> Option<CpuClock> {
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the calling thread is alive, and the pointer is to a live number.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        (failed == 0).then_some(CpuClock(clock))
    }

    /// Nanoseconds its thread has used; `None` when that has ended.
    pub fn now_ns(self) -> Option<u64> {
        read(self.0)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_alive_together_differ() {
        let own = super::token();
        assert_ne!(own, 0);
        assert_eq!(own, super::token());
        assert_ne!(own, std::thread::spawn(super::token).join().unwrap());
    }

    #[test]
    fn processor_time_of_a_thread_goes_on_while_it_works_and_is_read_by_others() {
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let stop = &stop;
            scope.spawn(move || {
                tell.send(super::CpuClock::own().unwrap()).unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let clock = told.recv().unwrap();
            let start = clock.now_ns().unwrap();
            while clock.now_ns().unwrap() < start + 1_000_000 {
                std::thread::yield_now();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
