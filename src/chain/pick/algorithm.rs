//! The algorithms that compare candidates. None of them copies the set: what needs all of them makes two passes.

use core::ops::ControlFlow;

use super::Candidates;
use super::plan::{Calls, Providers};
use super::weight::WeightsNow;
use crate::runtime::random::Draw;

/// Smooth weighted round robin.
///
/// With different weights every candidate's credit grows by its weight, the richest one is chosen (the first of
/// equals) and pays the sum. Each step is atomic by itself, so credits are never lost: with several threads the
/// shares stay exact, only the order within a round may change. Credits belong to the provider, so a call that sees
/// a subset neither starves nor favours anyone in the next call.
///
/// With equal weights the same order comes from one counter per set of candidates, without touching them.
pub(super) fn round_robin<C: Candidates, P: Providers>(
    candidates: &C,
    weights: &WeightsNow<'_>,
    calls: &Calls,
    providers: &P,
    zero_weights_keep_first: bool,
) -> u32 {
    let count = candidates.len();
    match weights.all_equal() {
        Some(0) if zero_weights_keep_first => return candidates.nth(0),
        Some(_) => {
            let ends = [candidates.nth(0), candidates.nth(count - 1)].map(|row| providers.tag(row));
            return candidates.nth((calls.next_turn(count, ends) % count as u64) as usize);
        }
        None => {}
    }
    let (mut best, mut richest, mut total) = (candidates.nth(0), i64::MIN, 0_i64);
    candidates.each(|row| {
        let weight = weights.of(row);
        let credit = calls.earn(row, weight, weights.full(row));
        total += i64::from(weight);
        if credit > richest {
            (best, richest) = (row, credit);
        }
    });
    calls.pay(best, total);
    best
}

/// The candidate with the smallest value; among equals weighted random.
///
/// Values may change between the passes, other threads call too; then the first of the equals may be returned though
/// another one was drawn, which is no worse a choice.
pub(super) fn smallest<C: Candidates>(
    candidates: &C,
    value: impl Fn(u32) -> u64,
    weights: &WeightsNow<'_>,
    draw: &mut impl Draw,
) -> u32 {
    let (mut least, mut first, mut equals) = (u64::MAX, candidates.nth(0), 0_u64);
    let (mut total, mut same, mut first_weight) = (0_u64, true, 0);
    candidates.each(|row| {
        let own = value(row);
        if own > least {
            return;
        }
        let weight = weights.of(row);
        if own < least || equals == 0 {
            (least, first, equals, total, same, first_weight) = (own, row, 0, 0, true, weight);
        }
        equals += 1;
        total += u64::from(weight);
        same &= weight == first_weight;
    });
    if equals == 1 {
        return first;
    }
    let weighted = !same && total > 0;
    let mut left = draw.below(if weighted { total } else { equals });
    let mut chosen = first;
    candidates.visit(|row| {
        if value(row) != least {
            return ControlFlow::Continue(());
        }
        let share = if weighted { u64::from(weights.of(row)) } else { 1 };
        if left < share {
            chosen = row;
            return ControlFlow::Break(());
        }
        left -= share;
        ControlFlow::Continue(())
    });
    chosen
}

/// Power of two choices: two different candidates at random, the one with the lower load; with equal loads one of the
/// two by weight.
pub(super) fn lower_of_two<C: Candidates>(
    candidates: &C,
    load: impl Fn(u32, u32) -> f64,
    weights: &WeightsNow<'_>,
    draw: &mut impl Draw,
) -> u32 {
    let count = candidates.len();
    let (one, two) = if count == 2 {
        (0, 1)
    } else {
        let one = draw.index(count);
        let other = draw.index(count - 1);
        (one, other + usize::from(other >= one))
    };
    let (one, two) = (candidates.nth(one), candidates.nth(two));
    let (weight_one, weight_two) = (weights.of(one), weights.of(two));
    let (load_one, load_two) = (load(one, weight_one), load(two, weight_two));
    if load_one < load_two {
        return one;
    }
    if load_two < load_one {
        return two;
    }
    let total = u64::from(weight_one) + u64::from(weight_two);
    let takes_one = if total == 0 { draw.below(2) == 0 } else { draw.below(total) < u64::from(weight_one) };
    if takes_one { one } else { two }
}
