//! Seeded folded-multiply hash. Addresses come from DNS, so from attackers: without the seed nobody can aim
//! collisions, and XOR-ing words together (as cheaper hashes do) clusters on neighbouring addresses.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Upper half XOR lower half of the 128-bit product: every input bit reaches every output bit.
#[inline]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Eight random words, drawn once per table.
#[derive(Clone, Copy)]
pub struct Seed([u64; 8]);

impl Seed {
    /// Random words from the system's generator (through the standard library's own hash seeds).
    pub fn random() -> Seed {
        Seed(std::array::from_fn(|i| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_usize(i);
            hasher.finish()
        }))
    }

    /// Hash of 64 bytes. Four independent products, so their latencies overlap.
    #[inline]
    pub fn hash(&self, w: &[u64; 8]) -> u64 {
        let s = &self.0;
        let a = fold(w[0] ^ s[0], w[1] ^ s[1]);
        let b = fold(w[2] ^ s[2], w[3] ^ s[3]);
        let c = fold(w[4] ^ s[4], w[5] ^ s[5]);
        let d = fold(w[6] ^ s[6], w[7] ^ s[7]);
        fold(a ^ b.rotate_left(23) ^ s[7], c ^ d.rotate_left(41) ^ s[0])
    }

    /// Hash of bytes, for interning and rare keys.
    pub fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        let mut h = self.0[0] ^ (bytes.len() as u64);
        for (i, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0_u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            h = fold(h ^ self.0[1 + i % 7], u64::from_le_bytes(word) ^ self.0[2])
                .wrapping_add(h.rotate_left(29));
        }
        fold(h ^ self.0[3], self.0[4] | 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neighbouring addresses and ids must spread as random numbers do: chi-squared over 4096 buckets, for both
    /// ends of the hash (bucket index and fingerprint).
    #[test]
    fn neighbouring_keys_spread_evenly() {
        const BUCKETS: usize = 4096;
        const KEYS: usize = BUCKETS * 16;
        let shapes: [fn(u64) -> [u64; 8]; 4] = [
            |i| [7, 0, i, 0, 443 << 16, 0, 0, 0],
            |i| [7, 0, i.swap_bytes(), 0, 443 << 16, 0, 0, 0],
            |i| [i, i, i, i, i, i, i, i],
            |i| [i % 16, i / 16 % 16, 1, 1, i / 256, 0, 0, 0],
        ];
        for (n, shape) in shapes.iter().enumerate() {
            let seed = Seed::random();
            let (mut low, mut high) = (vec![0_f64; BUCKETS], vec![0_f64; BUCKETS]);
            for i in 0..KEYS as u64 {
                let h = seed.hash(&shape(i));
                low[h as usize % BUCKETS] += 1.0;
                high[(h >> 52) as usize] += 1.0;
            }
            for buckets in [low, high] {
                let mean = KEYS as f64 / BUCKETS as f64;
                let chi: f64 = buckets.iter().map(|n| (n - mean) * (n - mean) / mean).sum();
                // Degrees of freedom 4095: mean 4095, deviation 90; nine deviations never happen by chance.
                assert!((chi - 4095.0).abs() < 9.0 * 90.5, "shape {n}: chi-squared {chi}");
            }
        }
    }

    #[test]
    fn byte_hash_depends_on_every_byte_and_on_length() {
        let seed = Seed::random();
        let base = seed.hash_bytes(b"a.example:443");
        assert_ne!(base, seed.hash_bytes(b"a.example:444"));
        assert_ne!(seed.hash_bytes(b""), seed.hash_bytes(b"\0"));
        assert_eq!(base, seed.hash_bytes(b"a.example:443"));
    }
}
