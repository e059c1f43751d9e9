//! The hash of the chain's tables: seeded folded multiplication, because names come from the network.

use once_cell::sync::OnceCell;
use std::hash::{BuildHasher, RandomState};

/// This process's seed.
#[inline]
pub(crate) fn seed() -> u64 {
    static SEED: OnceCell<u64> = OnceCell::new();
    *SEED.get_or_init(|| RandomState::new().hash_one(0x0062_7977_6179_u64) | 1)
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ ((wide >> 64) as u64)
}

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd6e8_feb8_6659_fd93;

/// Hashes bytes.
#[inline]
pub(crate) fn bytes(seed: u64, data: &[u8]) -> u64 {
    let len = data.len();
    let (a, b) = if let (Some(first), Some(last)) = (data.first_chunk::<8>(), data.last_chunk::<8>()) {
        let mut state = seed;
        // Sixteen bytes a step; the last two words overlap what came before when the length is odd.
        if len > 16 {
            let (chunks, _) = data.as_chunks::<16>();
            for chunk in chunks {
                let (low, high) = chunk.split_at(8);
                state = fold(state ^ word(low), K1 ^ word(high));
            }
        }
        (u64::from_le_bytes(*first) ^ state, u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (data.first_chunk::<4>(), data.last_chunk::<4>()) {
        (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
    } else {
        match *data {
            [] => (0, 0),
            [a] => (u64::from(a), 1),
            [a, b] => (u64::from(a) | u64::from(b) << 8, 2),
            [a, b, c, ..] => (u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16, 3),
        }
    };
    fold(fold(a ^ K0, b ^ seed) ^ len as u64, K1)
}

#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Adds a number to a hash.
#[inline]
pub(crate) fn combine(state: u64, value: u64) -> u64 {
    fold(state ^ value, K0)
}

/// Equality of short byte strings without a call.
#[inline(always)]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if let (Some(a0), Some(b0), Some(a1), Some(b1)) =
        (a.first_chunk::<8>(), b.first_chunk::<8>(), a.last_chunk::<8>(), b.last_chunk::<8>())
    {
        if a.len() <= 16 {
            return u64::from_le_bytes(*a0) == u64::from_le_bytes(*b0)
                && u64::from_le_bytes(*a1) == u64::from_le_bytes(*b1);
        }
        return a == b;
    }
    if let (Some(a0), Some(b0), Some(a1), Some(b1)) =
        (a.first_chunk::<4>(), b.first_chunk::<4>(), a.last_chunk::<4>(), b.last_chunk::<4>())
    {
        return u32::from_le_bytes(*a0) == u32::from_le_bytes(*b0)
            && u32::from_le_bytes(*a1) == u32::from_le_bytes(*b1);
    }
    a.iter().zip(b).all(|(x, y)| x == y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn similar_texts_spread_over_low_bits() {
        let texts: Vec<String> = (0..4096)
            .map(|i| format!("10.0.{}.{}", i / 250, i % 250))
            .chain((0..4096).map(|i| format!("m{i}")))
            .collect();
        for seed in [1, 0x1234_5678_9abc_def1] {
            let mut buckets = vec![0u32; 8192];
            for text in &texts {
                buckets[bytes(seed, text.as_bytes()) as usize % 8192] += 1;
            }
            // Throwing 8192 balls into 8192 bins leaves more than 8 in one with a probability below 1 in 100.
            assert!(*buckets.iter().max().unwrap() <= 9);
        }
        let all: HashSet<u64> = texts.iter().map(|text| bytes(7, text.as_bytes())).collect();
        assert_eq!(all.len(), texts.iter().collect::<HashSet<_>>().len());
    }

    #[test]
    fn same_is_equality_at_every_length() {
        for len in 0..40 {
            let a: Vec<u8> = (0..len).map(|i| i as u8).collect();
            assert!(same(&a, &a.clone()));
            for at in 0..len as usize {
                let mut b = a.clone();
                b[at] ^= 1;
                assert!(!same(&a, &b), "{len} {at}");
            }
            assert!(!same(&a, &[a.as_slice(), b"x"].concat()));
        }
    }
}
