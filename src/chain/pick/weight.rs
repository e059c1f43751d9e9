//! Weights, and how they grow while a provider warms up.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use super::Candidates;
use crate::runtime::random::Draw;
use core::ops::ControlFlow;

/// Weight of a provider that names none.
pub const DEFAULT_WEIGHT: u32 = 100;
/// Warm-up of a provider that names none, in milliseconds.
pub const DEFAULT_WARMUP_MS: u32 = 600_000;

/// One value per row, stored once where all rows have the same.
#[derive(Clone, Debug)]
pub(super) enum Column<T> {
    All(T),
    Each(Arc<[T]>),
    /// A few rows, ascending, differ from another column.
    Patched(Arc<Column<T>>, Box<[(u32, T)]>),
}

impl<T: Copy + PartialEq> Column<T> {
    pub(super) fn from_values(values: Vec<T>, default: T) -> Column<T> {
        let first = values.first().copied().unwrap_or(default);
        if values.iter().all(|value| *value == first) {
            Column::All(first)
        } else {
            Column::Each(values.into())
        }
    }

    /// `patches` ascending by row. A column whose every row is patched stands alone.
    pub(super) fn patched(
        base: &Arc<Column<T>>,
        patches: Vec<(u32, T)>,
        rows: u32,
        default: T,
    ) -> Arc<Column<T>> {
        if patches.is_empty() {
            return Arc::clone(base);
        }
        if patches.len() == rows as usize {
            return Arc::new(Column::from_values(
                patches.into_iter().map(|(_, value)| value).collect(),
                default,
            ));
        }
        Arc::new(Column::Patched(Arc::clone(base), patches.into_boxed_slice()))
    }

    #[inline]
    pub(super) fn get(&self, row: u32, default: T) -> T {
        match self {
            Column::All(value) => *value,
            Column::Each(values) => values.get(row as usize).copied().unwrap_or(default),
            Column::Patched(base, patches) => match patches.binary_search_by_key(&row, |(row, _)| *row) {
                Ok(at) => patches.get(at).map_or(default, |(_, value)| *value),
                Err(_) => base.get(row, default),
            },
        }
    }
}

impl Column<u32> {
    /// An upper bound of all values, and the value all rows share if they do.
    fn bounds(&self) -> (u32, Option<u32>) {
        match self {
            Column::All(value) => (*value, Some(*value)),
            Column::Each(values) => (values.iter().copied().max().unwrap_or(0), None),
            Column::Patched(base, patches) => {
                let (bound, equal) = base.bounds();
                let equal = equal.filter(|value| patches.iter().all(|(_, patch)| patch == value));
                (patches.iter().fold(bound, |bound, (_, patch)| bound.max(*patch)), equal)
            }
        }
    }
}

/// The weight of a provider `uptime_ms` after its start: grows from 1 to the full weight in `warmup_ms`. In single
/// precision, as upstream computes it, so that both sides of a mixed estate agree to the unit.
#[must_use]
pub fn warmup_weight(uptime_ms: i32, warmup_ms: i32, weight: i32) -> i32 {
    let grown = (uptime_ms as f32 / (warmup_ms as f32 / weight as f32)) as i32;
    if grown < 1 { 1 } else { grown.min(weight) }
}

/// When each provider started and how long it warms up.
#[derive(Debug)]
pub(super) struct Warmup {
    /// Wall clock, milliseconds; 0 = unknown, never warms up.
    pub(super) start_ms: Column<i64>,
    pub(super) length_ms: Column<u32>,
    /// From here on everyone is warm.
    pub(super) done_at_ms: i64,
    /// Set once that moment has passed, so that warm lists do not even read the clock.
    pub(super) over: AtomicBool,
}

/// The weights of one method over a list.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    full: Arc<Column<u32>>,
    bound: u32,
    equal: Option<u32>,
    warmup: Option<Arc<Warmup>>,
}

impl Weights {
    pub(super) fn new(full: Arc<Column<u32>>, warmup: Option<Arc<Warmup>>) -> Weights {
        let (bound, equal) = full.bounds();
        Weights { full, bound, equal, warmup }
    }

    pub(super) fn full(&self) -> &Arc<Column<u32>> {
        &self.full
    }

    /// The weights at this moment; the clock is only asked while someone warms up.
    #[inline]
    pub(super) fn now(&self, wall_ms: impl FnOnce() -> i64) -> WeightsNow<'_> {
        let warming = self.warmup.as_deref().filter(|warmup| !warmup.over.load(Ordering::Relaxed));
        let warming = warming.and_then(|warmup| {
            let now = wall_ms();
            if now >= warmup.done_at_ms {
                warmup.over.store(true, Ordering::Relaxed);
                return None;
            }
            Some((warmup, now))
        });
        WeightsNow { weights: self, warming }
    }
}

/// Weights at one moment, so that all looks of one pick agree.
pub(super) struct WeightsNow<'a> {
    weights: &'a Weights,
    warming: Option<(&'a Warmup, i64)>,
}

/// Up to here a weighted draw adds the weights up; above it draws and rejects.
const SMALL: usize = 16;
const DRAWS: usize = 64;

impl WeightsNow<'_> {
    #[inline]
    pub(super) fn full(&self, row: u32) -> u32 {
        self.weights.full.get(row, DEFAULT_WEIGHT)
    }

    #[inline]
    pub(super) fn of(&self, row: u32) -> u32 {
        let full = self.full(row);
        match self.warming {
            Some((warmup, now)) if full > 0 => warmup.weight(row, full, now),
            _ => full,
        }
    }

    /// The weight all rows of the list have now, if that is known without looking at each.
    #[inline]
    pub(super) fn all_equal(&self) -> Option<u32> {
        if self.warming.is_some() { None } else { self.weights.equal }
    }

    /// One candidate, each with the exact probability weight / sum; if the sum is 0, each alike.
    pub(super) fn draw<C: Candidates>(&self, candidates: &C, draw: &mut impl Draw) -> u32 {
        let count = candidates.len();
        if self.all_equal().is_some() {
            return candidates.nth(draw.index(count));
        }
        if count > SMALL {
            // One number below count * bound is a row and a height; the draw holds when the height lies within the
            // row's weight. Exact, and without looking at the other rows. Very uneven weights end in the sum below.
            let bound = u64::from(self.weights.bound.max(1));
            for _ in 0..DRAWS {
                let number = draw.below(count as u64 * bound);
                let row = candidates.nth((number / bound) as usize);
                if number % bound < u64::from(self.of(row)) {
                    return row;
                }
            }
        }
        let (mut total, mut first, mut same) = (0_u64, None, true);
        candidates.each(|row| {
            let weight = self.of(row);
            same &= *first.get_or_insert(weight) == weight;
            total += u64::from(weight);
        });
        if same || total == 0 {
            return candidates.nth(draw.index(count));
        }
        let (mut left, mut chosen) = (draw.below(total), 0);
        candidates.visit(|row| {
            let weight = u64::from(self.of(row));
            if left < weight {
                chosen = row;
                return ControlFlow::Break(());
            }
            left -= weight;
            ControlFlow::Continue(())
        });
        chosen
    }
}

impl Warmup {
    fn weight(&self, row: u32, full: u32, now: i64) -> u32 {
        let start = self.start_ms.get(row, 0);
        if start <= 0 {
            return full;
        }
        let uptime = now.saturating_sub(start);
        let length = self.length_ms.get(row, DEFAULT_WARMUP_MS);
        if uptime < 0 {
            // Its clock is ahead of ours, so it has only just started.
            return full.min(1);
        }
        if uptime == 0 || uptime >= i64::from(length) {
            return full;
        }
        let [uptime, length, full] =
            [uptime, i64::from(length), i64::from(full)].map(|n| i32::try_from(n).unwrap_or(i32::MAX));
        warmup_weight(uptime, length, full) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::bits::Rows;
    use crate::runtime::random::Stream;

    fn weights(values: &[u32]) -> Weights {
        Weights::new(Arc::new(Column::from_values(values.to_vec(), DEFAULT_WEIGHT)), None)
    }

    /// Chi square of observed counts against exact shares, with its degrees of freedom.
    fn chi_square(counts: &[u64], shares: &[u32]) -> (f64, f64) {
        let draws: u64 = counts.iter().sum();
        let total: u64 = shares.iter().map(|share| u64::from(*share)).sum();
        let mut chi = 0.0;
        for (count, share) in counts.iter().zip(shares) {
            let expected = draws as f64 * f64::from(*share) / total as f64;
            if *share == 0 {
                assert_eq!(*count, 0, "weight 0 is never drawn");
            } else {
                chi += (*count as f64 - expected).powi(2) / expected;
            }
        }
        (chi, shares.iter().filter(|share| **share > 0).count() as f64 - 1.0)
    }

    #[test]
    fn weighted_draws_have_exact_shares_on_every_path() {
        let mut draw = Stream::seeded(11);
        let tables: [(&str, Vec<u32>); 5] = [
            ("added up", vec![1, 9, 6]),
            ("zeros", vec![1, 0, 0, 3, 0, 0]),
            ("drawn and rejected", (0..40).map(|row| row % 5).collect()),
            ("too uneven to reject", (0..400).map(|row| if row == 399 { 1_000_000 } else { 1 }).collect()),
            ("equal", vec![7; 20]),
        ];
        for (name, values) in tables {
            let weights = weights(&values);
            let mut counts = vec![0; values.len()];
            let draws = if values.len() > 100 { 20_000 } else { 200_000 };
            for _ in 0..draws {
                let row = weights.now(|| 0).draw(&Rows::All(values.len()), &mut draw);
                counts[row as usize] += 1;
            }
            if name == "too uneven to reject" {
                let small: u64 = counts[..399].iter().sum();
                // 399 of 1000399 are small: 8 expected, deviation 2.8.
                assert!((1..24).contains(&small), "{small}");
                continue;
            }
            let (chi, degrees) = chi_square(&counts, &values);
            assert!(chi < degrees + 5.0 * (2.0 * degrees).sqrt(), "{name}: chi square {chi} for {degrees}");
        }
    }

    #[test]
    fn a_subset_is_drawn_by_its_own_weights() {
        let weights = weights(&(0..100).collect::<Vec<_>>());
        let rows: Vec<u32> = (0..100).filter(|row| row % 4 == 0).collect();
        let mut counts = vec![0; rows.len()];
        let mut draw = Stream::seeded(3);
        for _ in 0..100_000 {
            let row = weights.now(|| 0).draw(&Rows::List(&rows), &mut draw);
            counts[rows.binary_search(&row).unwrap()] += 1;
        }
        let (chi, degrees) = chi_square(&counts, &rows);
        assert!(chi < degrees + 5.0 * (2.0 * degrees).sqrt(), "chi square {chi}");
    }

    #[test]
    fn without_any_weight_everyone_is_drawn_alike() {
        let mut draw = Stream::seeded(5);
        for values in [vec![0; 5], [vec![1], vec![0; 19]].concat()] {
            let weights = weights(&values);
            let zeros: Vec<u32> = (0..values.len() as u32).filter(|row| values[*row as usize] == 0).collect();
            let mut counts = vec![0_u64; values.len()];
            for _ in 0..10_000 {
                counts[weights.now(|| 0).draw(&Rows::List(&zeros), &mut draw) as usize] += 1;
            }
            let expected = 10_000 / zeros.len() as u64;
            assert!(zeros.iter().all(|row| counts[*row as usize].abs_diff(expected) < expected / 4));
        }
    }

    #[test]
    fn warm_weights_stop_reading_the_clock() {
        let warmup = Warmup {
            start_ms: Column::Each(vec![1_000, 0, 5_000].into()),
            length_ms: Column::All(1_000),
            done_at_ms: 6_000,
            over: AtomicBool::new(false),
        };
        let weights = Weights::new(Arc::new(Column::All(100)), Some(Arc::new(warmup)));
        let at = |now| [0, 1, 2].map(|row| weights.now(|| now).of(row));
        // Half grown, no start known, not yet started.
        assert_eq!(at(1_500), [50, 100, 1]);
        assert_eq!(at(5_250), [100, 100, 25]);
        assert_eq!(weights.now(|| 5_999).all_equal(), None);
        assert_eq!(at(6_000), [100, 100, 100]);
        let asked = weights.now(|| panic!("everyone is warm"));
        assert_eq!(asked.all_equal(), Some(100));
    }

    #[test]
    fn columns_store_differences_only() {
        let base = Arc::new(Column::from_values(vec![5, 5, 5], 0));
        assert!(matches!(*base, Column::All(5)));
        let patched = Column::patched(&base, vec![(1, 9)], 3, 0);
        assert_eq!([0, 1, 2].map(|row| patched.get(row, 0)), [5, 9, 5]);
        assert_eq!(patched.bounds(), (9, None));
        assert!(matches!(*Column::patched(&base, vec![(0, 9), (1, 9), (2, 9)], 3, 0), Column::All(9)));
        assert_eq!(Column::patched(&base, vec![(2, 5)], 3, 0).bounds(), (5, Some(5)));
    }
}
