//! Kernels over sets of rows, dispatched at run time: x86-64 baseline, AVX2, AVX-512; NEON on aarch64.
//!
//! A set is a slice of [`Block`]s: 512 rows each, 64-byte aligned, unused bits zero.

use std::sync::atomic::{AtomicU8, Ordering};

/// 512 rows: one cache line, one AVX-512 register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub [u64; 8]);

/// Most sets one call of [`and_chain`] takes.
pub const MAX_CHAIN: usize = 8;

/// What the processor offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Tier {
    /// What every processor of this architecture has.
    Baseline = 1,
    /// 256-bit integer operations.
    Avx2 = 2,
    /// 512-bit operations with population count.
    Avx512 = 3,
}

impl Tier {
    /// The best tier of this processor.
    #[inline]
    pub fn current() -> Tier {
        static CURRENT: AtomicU8 = AtomicU8::new(0);
        match CURRENT.load(Ordering::Relaxed) {
            1 => Tier::Baseline,
            2 => Tier::Avx2,
            3 => Tier::Avx512,
            _ => {
                let tier = Tier::detect();
                CURRENT.store(tier as u8, Ordering::Relaxed);
                tier
            }
        }
    }

    #[cold]
    fn detect() -> Tier {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq") {
                return Tier::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                return Tier::Avx2;
            }
        }
        Tier::Baseline
    }

    /// The name for reports: `sse2`, `avx2`, `avx512`, `neon`, `scalar`.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Avx512 => "avx512",
            Tier::Avx2 => "avx2",
            Tier::Baseline if cfg!(target_arch = "x86_64") => "sse2",
            Tier::Baseline if cfg!(target_arch = "aarch64") => "neon",
            Tier::Baseline => "scalar",
        }
    }
}

/// `out = input & sets[0] & sets[1] & ...` in one pass. Bit *i* of the answer tells whether the result up to and
/// including `sets[i]` has a row.
///
/// `input` absent means all rows. All slices must be as long as `out`; if one is not, the shortest counts. At most
/// [`MAX_CHAIN`] sets; further ones are ignored.
pub fn and_chain(input: Option<&[Block]>, sets: &[&[Block]], out: &mut [Block]) -> u32 {
    and_chain_at(Tier::current(), input, sets, out)
}

/// [`and_chain`] with the tier given; one the processor lacks is lowered.
pub fn and_chain_at(tier: Tier, input: Option<&[Block]>, sets: &[&[Block]], out: &mut [Block]) -> u32 {
    let tier = tier.min(Tier::current());
    match *sets {
        [] => 0,
        [a] => chain(tier, input, [a], out),
        [a, b] => chain(tier, input, [a, b], out),
        [a, b, c] => chain(tier, input, [a, b, c], out),
        [a, b, c, d] => chain(tier, input, [a, b, c, d], out),
        [a, b, c, d, e] => chain(tier, input, [a, b, c, d, e], out),
        [a, b, c, d, e, f] => chain(tier, input, [a, b, c, d, e, f], out),
        [a, b, c, d, e, f, g] => chain(tier, input, [a, b, c, d, e, f, g], out),
        [a, b, c, d, e, f, g, h, ..] => chain(tier, input, [a, b, c, d, e, f, g, h], out),
    }
}

fn chain<const K: usize>(tier: Tier, input: Option<&[Block]>, sets: [&[Block]; K], out: &mut [Block]) -> u32 {
    let shortest = sets.iter().map(|set| set.len()).chain(input.map(<[Block]>::len)).min().unwrap_or(0);
    let len = shortest.min(out.len());
    // Equal lengths from here on: the kernels rely on it.
    let sets = sets.map(|set| set.get(..len).unwrap_or_default());
    let out = out.get_mut(..len).unwrap_or_default();
    // The first set stands in for a missing input: x & x = x.
    let input = match input {
        Some(input) => input.get(..len).unwrap_or_default(),
        None => sets.first().copied().unwrap_or_default(),
    };
    match tier {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `tier` is not above what the processor has; all slices are `len` long.
        Tier::Avx512 => unsafe { x86::chain_avx512(input, sets, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Tier::Avx2 => unsafe { x86::chain_avx2(input, sets, out) },
        _ => chain_portable(input, sets, out),
    }
}

/// Plain code in a shape the compiler turns into the architecture's baseline vectors (SSE2, NEON).
fn chain_portable<const K: usize>(input: &[Block], sets: [&[Block]; K], out: &mut [Block]) -> u32 {
    let mut seen = [[0u64; 2]; K];
    for (i, (target, start)) in out.iter_mut().zip(input).enumerate() {
        let mut rows = start.0;
        for (set, seen) in sets.iter().zip(&mut seen) {
            let Some(set) = set.get(i) else { continue };
            for (row, other) in rows.iter_mut().zip(&set.0) {
                *row &= other;
            }
            for pair in rows.as_chunks::<2>().0 {
                seen[0] |= pair[0];
                seen[1] |= pair[1];
            }
        }
        target.0 = rows;
    }
    let mut answer = 0;
    for (i, seen) in seen.iter().enumerate() {
        answer |= u32::from(seen[0] | seen[1] != 0) << i;
    }
    answer
}

/// Number of rows in a set.
pub fn count(set: &[Block]) -> usize {
    match Tier::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the tier says the processor has the features.
        Tier::Avx512 => unsafe { x86::count_avx512(set) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the tier says the processor has the features.
        Tier::Avx2 => unsafe { x86::count_avx2(set) },
        _ => count_portable(set),
    }
}

fn count_portable(set: &[Block]) -> usize {
    set.iter().flat_map(|block| block.0).map(|word| word.count_ones() as usize).sum()
}

/// True when two sets share a row; stops at the first.
pub fn intersects(a: &[Block], b: &[Block]) -> bool {
    a.iter().zip(b).any(|(a, b)| a.0.iter().zip(&b.0).fold(0, |seen, (x, y)| seen | (x & y)) != 0)
}

/// Sets bit *i* where `ids[i] == id`; `out` has at least `ids.len()` bits, all of them overwritten.
pub fn equal_u8(ids: &[u8], id: u8, out: &mut [Block]) {
    match Tier::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the tier says the processor has the features.
        Tier::Avx512 | Tier::Avx2 => unsafe { x86::equal_u8_avx2(ids, id, out) },
        _ => equal_portable(ids, id, out),
    }
}

#[inline(always)]
fn equal_portable(ids: &[u8], id: u8, out: &mut [Block]) {
    let mut chunks = ids.chunks(64);
    for block in out {
        for word in &mut block.0 {
            let mut bits = 0u64;
            for (i, value) in chunks.next().unwrap_or_default().iter().enumerate() {
                bits |= u64::from(*value == id) << i;
            }
            *word = bits;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Block, equal_portable};
    use std::arch::x86_64::*;

    /// # Safety
    /// AVX-512F must be available; all slices have one length.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn chain_avx512<const K: usize>(
        input: &[Block],
        sets: [&[Block]; K],
        out: &mut [Block],
    ) -> u32 {
        let zero = _mm512_setzero_si512();
        let mut seen = [zero; K];
        let len = out.len();
        let (input, out) = (input.as_ptr(), out.as_mut_ptr());
        let sets = sets.map(<[Block]>::as_ptr);
        for i in 0..len {
            // SAFETY: i < len, which all slices have; a Block is 64 bytes and 64-byte aligned.
            unsafe {
                let mut rows = _mm512_load_si512(input.add(i).cast());
                for k in 0..K {
                    rows = _mm512_and_si512(rows, _mm512_load_si512(sets[k].add(i).cast()));
                    seen[k] = _mm512_or_si512(seen[k], rows);
                }
                _mm512_store_si512(out.add(i).cast(), rows);
            }
        }
        let mut answer = 0;
        for (k, seen) in seen.iter().enumerate() {
            answer |= u32::from(_mm512_test_epi64_mask(*seen, *seen) != 0) << k;
        }
        answer
    }

    /// # Safety
    /// AVX2 must be available; all slices have one length.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn chain_avx2<const K: usize>(
        input: &[Block],
        sets: [&[Block]; K],
        out: &mut [Block],
    ) -> u32 {
        let zero = _mm256_setzero_si256();
        let mut seen = [zero; K];
        let halves = out.len() * 2;
        let (input, out) = (input.as_ptr().cast::<__m256i>(), out.as_mut_ptr().cast::<__m256i>());
        let sets = sets.map(|set| set.as_ptr().cast::<__m256i>());
        for i in 0..halves {
            // SAFETY: i < 2 * len; a Block is two aligned 32-byte halves.
            unsafe {
                let mut rows = _mm256_load_si256(input.add(i));
                for k in 0..K {
                    rows = _mm256_and_si256(rows, _mm256_load_si256(sets[k].add(i)));
                    seen[k] = _mm256_or_si256(seen[k], rows);
                }
                _mm256_store_si256(out.add(i), rows);
            }
        }
        let mut answer = 0;
        for (k, seen) in seen.iter().enumerate() {
            answer |= u32::from(_mm256_testz_si256(*seen, *seen) == 0) << k;
        }
        answer
    }

    /// # Safety
    /// AVX-512F and VPOPCNTDQ must be available.
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    pub(super) unsafe fn count_avx512(set: &[Block]) -> usize {
        let mut sum = _mm512_setzero_si512();
        for block in set {
            // SAFETY: a Block is 64 bytes and 64-byte aligned.
            let rows = unsafe { _mm512_load_si512(block.0.as_ptr().cast()) };
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(rows));
        }
        _mm512_reduce_add_epi64(sum) as usize
    }

    /// # Safety
    /// AVX2 and POPCNT must be available.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) unsafe fn count_avx2(set: &[Block]) -> usize {
        let mut sums = [0usize; 8];
        for block in set {
            for (sum, word) in sums.iter_mut().zip(&block.0) {
                *sum += word.count_ones() as usize;
            }
        }
        sums.iter().sum()
    }

    /// # Safety
    /// AVX2 must be available.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn equal_u8_avx2(ids: &[u8], id: u8, out: &mut [Block]) {
        let wanted = _mm256_set1_epi8(id as i8);
        let (whole, rest) = ids.as_chunks::<512>();
        let mut blocks = out.iter_mut();
        for ids in whole {
            let Some(block) = blocks.next() else { return };
            for (word, ids) in block.0.iter_mut().zip(ids.as_chunks::<64>().0) {
                // SAFETY: `ids` is 64 bytes; the loads are unaligned ones.
                let (low, high) = unsafe {
                    let at = ids.as_ptr().cast::<__m256i>();
                    (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1)))
                };
                let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)) as u32;
                let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)) as u32;
                *word = u64::from(low) | u64::from(high) << 32;
            }
        }
        equal_portable(rest, id, blocks.into_slice());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, len: usize, density: u64) -> Vec<Block> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 100 < density
        };
        (0..len)
            .map(|_| Block([(); 8].map(|()| (0..64).fold(0u64, |word, bit| word | u64::from(next()) << bit))))
            .collect()
    }

    #[test]
    fn every_tier_computes_the_same_chain() {
        for len in [0, 1, 2, 7] {
            for k in 1..=MAX_CHAIN {
                let input = noise(99, len, 60);
                let sets: Vec<Vec<Block>> =
                    (0..k).map(|i| noise(i as u64, len, if i == 5 { 0 } else { 70 })).collect();
                let slices: Vec<&[Block]> = sets.iter().map(Vec::as_slice).collect();
                for input in [None, Some(input.as_slice())] {
                    let mut expect = input.map_or_else(|| sets[0].clone(), <[Block]>::to_vec);
                    let mut flags = 0;
                    for (i, set) in sets.iter().enumerate() {
                        let mut any = 0;
                        for (a, b) in expect.iter_mut().zip(set) {
                            for (x, y) in a.0.iter_mut().zip(b.0) {
                                *x &= y;
                                any |= *x;
                            }
                        }
                        flags |= u32::from(any != 0) << i;
                    }
                    for tier in [Tier::Baseline, Tier::Avx2, Tier::Avx512] {
                        let mut out = vec![Block::default(); len];
                        assert_eq!(and_chain_at(tier, input, &slices, &mut out), flags, "{tier:?} {len} {k}");
                        assert_eq!(out, expect, "{tier:?} {len} {k}");
                    }
                    assert_eq!(count(&expect), count_portable(&expect));
                }
            }
        }
    }

    #[test]
    fn equal_marks_the_rows_with_the_id_at_every_length() {
        for rows in [0usize, 1, 63, 64, 65, 511, 512, 513, 1500] {
            let ids: Vec<u8> = (0..rows).map(|i| (i * 7 % 5) as u8).collect();
            let mut out = vec![Block([u64::MAX; 8]); rows.div_ceil(512) + 1];
            equal_u8(&ids, 3, &mut out);
            for row in 0..out.len() * 512 {
                let bit = out[row / 512].0[row / 64 % 8] >> (row % 64) & 1;
                assert_eq!(bit == 1, ids.get(row) == Some(&3), "{rows} {row}");
            }
        }
    }
}
