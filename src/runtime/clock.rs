//! The two clocks everything reads: monotonic for durations, wall for what other machines write down.
//!
//! An engine has one [`Clock`]. It reads the system's, or the host's callbacks, or, in tests, a [`VirtualClock`] that
//! moves only when told to.

use once_cell::sync::OnceCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where time comes from when it is not the system: the host's callbacks or a virtual clock. Called on whichever
/// thread needs the time, at any moment, so it must be quick and must not call back into the engine.
pub trait TimeSource: Send + Sync {
    /// Nanoseconds since a fixed moment; expected never to go back.
    fn monotonic_ns(&self) -> u64;
    /// Milliseconds since 1970-01-01 UTC; may jump.
    fn wall_ms(&self) -> i64;
}

/// The time as one engine sees it. Cheap to clone.
#[derive(Clone, Default)]
pub struct Clock {
    source: Option<Arc<dyn TimeSource>>,
}

impl Clock {
    /// The system's clocks.
    pub fn system() -> Self {
        Clock::default()
    }

    /// Time from elsewhere.
    pub fn from_source(source: Arc<dyn TimeSource>) -> Self {
        Clock { source: Some(source) }
    }

    /// Nanoseconds since a fixed moment of this process. A host clock that steps back is passed on as it is: readers
    /// subtract with saturation, so a step back reads as "no time has passed".
    #[inline]
    pub fn monotonic_ns(&self) -> u64 {
        match &self.source {
            None => nanos(process_start().elapsed()),
            Some(source) => source.monotonic_ns(),
        }
    }

    /// Monotonic time as a duration since the same fixed moment.
    #[inline]
    pub fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.monotonic_ns())
    }

    /// Milliseconds since 1970-01-01 UTC; negative before it.
    #[inline]
    pub fn wall_ms(&self) -> i64 {
        match &self.source {
            None => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
            },
            Some(source) => source.wall_ms(),
        }
    }

    /// True when time comes from the system, so that a kernel timer and this clock agree.
    pub fn is_system(&self) -> bool {
        self.source.is_none()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_system() { "Clock(system)" } else { "Clock(host)" })
    }
}

/// Nanoseconds of a duration; 584 years saturate.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn process_start() -> Instant {
    static START: OnceCell<Instant> = OnceCell::new();
    *START.get_or_init(Instant::now)
}

/// A clock that stands still until it is moved; shared between the test and the engine.
#[derive(Debug)]
pub struct VirtualClock {
    monotonic_ns: AtomicU64,
    wall_ms: AtomicI64,
}

impl VirtualClock {
    /// Monotonic time starts at one hour, so that "long before now" exists; wall time where the caller says.
    pub fn new(wall_ms: i64) -> Arc<Self> {
        Arc::new(VirtualClock {
            monotonic_ns: AtomicU64::new(3_600_000_000_000),
            wall_ms: AtomicI64::new(wall_ms),
        })
    }

    /// Moves both clocks forward together. Wall time moves by whole milliseconds.
    pub fn advance(&self, by: Duration) {
        self.monotonic_ns.fetch_add(nanos(by), Ordering::SeqCst);
        self.wall_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets the wall clock alone, as an administrator or NTP does.
    pub fn set_wall_ms(&self, wall_ms: i64) {
        self.wall_ms.store(wall_ms, Ordering::SeqCst);
    }

    /// A [`Clock`] that reads this one.
    pub fn clock(self: &Arc<Self>) -> Clock {
        Clock::from_source(Arc::clone(self) as Arc<dyn TimeSource>)
    }
}

impl TimeSource for VirtualClock {
    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::SeqCst)
    }

    fn wall_ms(&self) -> i64 {
        self.wall_ms.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = Clock::system();
        let first = clock.monotonic_ns();
        assert!(clock.monotonic_ns() >= first);
        assert!(clock.wall_ms() > 1_600_000_000_000, "after 2020");
    }

    #[test]
    fn a_virtual_clock_moves_only_when_told_and_wall_time_apart() {
        let time = VirtualClock::new(1_000);
        let clock = time.clock();
        let start = clock.monotonic_ns();
        time.advance(Duration::from_millis(1_500));
        assert_eq!((clock.monotonic_ns() - start, clock.wall_ms()), (1_500_000_000, 2_500));
        time.set_wall_ms(-5);
        assert_eq!((clock.monotonic_ns() - start, clock.wall_ms()), (1_500_000_000, -5));
        assert!(!clock.is_system());
    }
}
