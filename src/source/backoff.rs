//! How long to wait before trying again: doubling, bounded, with a spread so that many engines do not return at once;
//! never ends.

use std::time::Duration;

/// Waits of one thing that keeps failing.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    tries: u32,
    state: u64,
}

impl Backoff {
    /// Waits from `first` up to `longest`. The seed decides the spread.
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Backoff {
        Backoff { first, longest, tries: 0, state: seed | 1 }
    }

    /// The next wait: between half and all of the doubled time, never above the longest.
    pub fn next_wait(&mut self) -> Duration {
        let full = self.first.saturating_mul(1 << self.tries.min(20)).min(self.longest);
        self.tries = self.tries.saturating_add(1);
        // xorshift64: the spread only has to differ between engines.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let half = full / 2;
        half + half.mul_f64((self.state >> 40) as f64 / (1u64 << 24) as f64)
    }

    /// It worked: the next failure waits the first time again.
    pub fn reset(&mut self) {
        self.tries = 0;
    }

    /// Failures since the last success.
    pub fn tries(&self) -> u32 {
        self.tries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_never_end() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5), 7);
        for round in 0..1000 {
            let full = Duration::from_millis(100 << round.min(20)).min(Duration::from_secs(5));
            let wait = backoff.next_wait();
            assert!(wait >= full / 2 && wait <= full, "{round}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next_wait() <= Duration::from_millis(100));
    }
}
