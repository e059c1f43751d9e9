//! The one source of every random draw in the library.
//!
//! An engine owns a [`RandomSource`], made from a seed (the host's, or one from the operating system) or from a host
//! callback. Whoever draws takes a [`Stream`] of its own (a session, a selector) or a [`SharedStream`] (an object many
//! threads use at once). With a seed the n-th stream of an engine always yields the same numbers.
//!
//! Bounded draws are exact: every value has the same probability (Lemire's multiplication with rejection), not merely
//! nearly the same. Nothing here is for secrets.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The host's own generator. Called on whichever thread draws; must be quick and must not call back into the engine.
pub trait HostRandom: Send + Sync {
    /// 64 uniformly distributed bits.
    fn next_u64(&self) -> u64;
}

/// Something one can draw from.
pub trait Draw {
    /// 64 uniformly distributed bits.
    fn next_u64(&mut self) -> u64;

    /// A number in `0..bound`, every one equally likely; 0 when `bound` is 0 or 1, without drawing.
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let mut wide = u128::from(self.next_u64()) * u128::from(bound);
        if (wide as u64) < bound {
            // Only here can a value be over-represented: the first `2^64 mod bound` products of each value are one
            // too many.
            let surplus = bound.wrapping_neg() % bound;
            // A host's generator that repeats itself must not hang its caller; one that does not is never rejected
            // so often.
            for _ in 0..MOST_REJECTED {
                if (wide as u64) >= surplus {
                    break;
                }
                wide = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (wide >> 64) as u64
    }

    /// An index in `0..len`; 0 when `len` is 0 or 1, without drawing.
    #[inline]
    fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True with probability `numerator / denominator`, exactly; always true when numerator >= denominator.
    #[inline]
    fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        numerator >= denominator || self.below(denominator) < numerator
    }
}

impl<D: Draw + ?Sized> Draw for &mut D {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        (**self).next_u64()
    }
}

/// Where an engine's streams come from.
pub struct RandomSource {
    seed: u64,
    streams: AtomicU64,
    host: Option<Arc<dyn HostRandom>>,
}

impl RandomSource {
    /// Seeded by the operating system: different in every process and every engine.
    pub fn from_system() -> Self {
        // RandomState takes its keys from the operating system; hashing nothing exposes 64 bits of them.
        RandomSource::seeded(RandomState::new().build_hasher().finish())
    }

    /// Repeatable: the n-th stream taken always yields the same numbers.
    pub fn seeded(seed: u64) -> Self {
        RandomSource { seed, streams: AtomicU64::new(0), host: None }
    }

    /// Every draw asks the host.
    pub fn host(host: Arc<dyn HostRandom>) -> Self {
        RandomSource { seed: 0, streams: AtomicU64::new(0), host: Some(host) }
    }

    /// The next stream, for one owner.
    pub fn stream(&self) -> Stream {
        match &self.host {
            Some(host) => Stream { kind: Kind::Host(Arc::clone(host)) },
            None => Stream::seeded(self.next_seed()),
        }
    }

    /// The next stream, for many threads at once.
    pub fn shared_stream(&self) -> SharedStream {
        SharedStream { state: Padded(AtomicU64::new(self.next_seed())), host: self.host.clone() }
    }

    fn next_seed(&self) -> u64 {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        // Two rounds apart from the seed itself, so that neighbouring seeds do not share streams shifted by one.
        mix(mix(self.seed).wrapping_add(number.wrapping_mul(GAMMA)).wrapping_add(GAMMA))
    }
}

impl fmt::Debug for RandomSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.host.is_some() { "RandomSource(host)" } else { "RandomSource(seed)" })
    }
}

/// One owner's stream: xoshiro256++, or the host.
#[derive(Clone)]
pub struct Stream {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Own([u64; 4]),
    Host(Arc<dyn HostRandom>),
}

impl Stream {
    /// Holds the place of a stream that is in use elsewhere; must not be drawn from.
    pub(crate) const fn lent() -> Self {
        Stream { kind: Kind::Own([0; 4]) }
    }

    /// A stream that depends on the seed alone.
    pub fn seeded(seed: u64) -> Self {
        let mut state = seed;
        Stream { kind: Kind::Own([(); 4].map(|()| split_mix(&mut state))) }
    }
}

impl Draw for Stream {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Own([a, b, c, d]) => {
                let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
                let shifted = *b << 17;
                *c ^= *a;
                *d ^= *b;
                *b ^= *c;
                *a ^= *d;
                *c ^= shifted;
                *d = d.rotate_left(45);
                result
            }
            Kind::Host(host) => host.next_u64(),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

/// A stream many threads draw from without a lock: SplitMix64, whose state is a counter. Used through `&mut &shared`.
pub struct SharedStream {
    state: Padded,
    host: Option<Arc<dyn HostRandom>>,
}

/// A cache line of its own: the counter is written by every thread that draws.
#[repr(align(64))]
struct Padded(AtomicU64);

impl Draw for &SharedStream {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        match &self.host {
            None => mix(self.state.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA)),
            Some(host) => host.next_u64(),
        }
    }
}

impl fmt::Debug for SharedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedStream")
    }
}

/// A draw is rejected with a probability below one half.
const MOST_REJECTED: usize = 128;

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output function (Steele, Lea, Flood 2014, variant 13).
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GAMMA);
    mix(*state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays back given numbers, to reach the rejection branch that chance would never show.
    struct Script(Vec<u64>);

    impl Draw for Script {
        fn next_u64(&mut self) -> u64 {
            self.0.pop().expect("no further draw expected")
        }
    }

    fn script(numbers: &[u64]) -> Script {
        Script(numbers.iter().rev().copied().collect())
    }

    #[test]
    fn split_mix_and_xoshiro_yield_the_published_numbers() {
        // Reference output of splitmix64.c for state 1234567.
        let mut state = 1_234_567;
        let got: Vec<_> = (0..3).map(|_| split_mix(&mut state)).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        // Reference output of xoshiro256plusplus.c for state 1, 2, 3, 4.
        let mut stream = Stream { kind: Kind::Own([1, 2, 3, 4]) };
        let got: Vec<_> = (0..3).map(|_| stream.next_u64()).collect();
        assert_eq!(got, [41_943_041, 58_720_359, 3_588_806_011_781_223]);
    }

    #[test]
    fn bounded_draws_reject_the_surplus() {
        // 2^64 mod 3 = 1: of the products whose low half is below 1 (that is, 0) one value would have one too many.
        assert_eq!(script(&[0, u64::MAX]).below(3), 2);
        // 2^63 + 1 leaves nearly half of all draws over; 0 and 1 times it have low halves 0 and 2^63 + 1.
        assert_eq!(script(&[0, 2, 1]).below((1 << 63) + 1), 0);
        assert_eq!((script(&[]).below(1), script(&[]).below(0), script(&[]).index(1)), (0, 0, 0));
        assert!(script(&[]).chance(5, 5));
    }

    #[test]
    fn a_generator_that_repeats_itself_hangs_nobody() {
        struct Stuck(u64);
        impl Draw for Stuck {
            fn next_u64(&mut self) -> u64 {
                self.0
            }
        }
        for number in [0, 1 << 63, u64::MAX] {
            assert!(Stuck(number).below(110) < 110);
        }
    }

    #[test]
    fn bounded_draws_are_uniform() {
        let mut stream = Stream::seeded(7);
        for bound in [2_u64, 3, 7, 10, 64] {
            let mut counts = vec![0_u64; bound as usize];
            let draws = 100_000;
            for _ in 0..draws {
                counts[stream.below(bound) as usize] += 1;
            }
            let expected = draws as f64 / bound as f64;
            let chi: f64 = counts.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
            // Mean `bound - 1`, deviation sqrt(2 (bound - 1)): five deviations never fail for a fixed seed by chance.
            let degrees = (bound - 1) as f64;
            assert!(chi < degrees + 5.0 * (2.0 * degrees).sqrt(), "bound {bound}: chi square {chi}");
        }
    }

    #[test]
    fn streams_repeat_with_the_seed_and_differ_from_each_other() {
        let take = |source: &RandomSource| -> Vec<u64> {
            let (mut a, mut b, shared) = (source.stream(), source.stream(), source.shared_stream());
            let mut c = &shared;
            vec![a.next_u64(), a.next_u64(), b.next_u64(), c.next_u64(), c.next_u64()]
        };
        let first = take(&RandomSource::seeded(1));
        assert_eq!(first, take(&RandomSource::seeded(1)));
        let mut all = [first, take(&RandomSource::seeded(2)), take(&RandomSource::from_system())].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 15);
    }

    #[test]
    fn a_host_generator_is_asked_for_every_draw() {
        struct Counting(AtomicU64);
        impl HostRandom for Counting {
            fn next_u64(&self) -> u64 {
                self.0.fetch_add(1, Ordering::Relaxed)
            }
        }
        let source = RandomSource::host(Arc::new(Counting(AtomicU64::new(40))));
        let (mut own, shared) = (source.stream(), source.shared_stream());
        assert_eq!((own.next_u64(), (&mut &shared).next_u64(), own.next_u64()), (40, 41, 42));
    }
}
