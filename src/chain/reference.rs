//! What a [`Program`] means, said plainly: one invoker at a time, nothing compiled, nothing cached.
//!
//! The oracle of the compiled engine's tests, and what explanations are made with.

use std::borrow::Cow;

use super::invocation::{Invocation, as_text};
use super::program::{
    Affinity, CallTest, Column, Condition, Destination, Destinations, Equal, FailoverClaim, Fallback, Firing,
    Program, RowTest, Step, Tag, TagRule, TagSet, Then,
};
use super::snapshot::Invokers;
use super::url::Url;

/// Where random draws come from: called with the sum of weights, answers a number below it.
pub type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

/// True when the call passes the test.
pub fn call_passes(test: &CallTest, call: &Invocation<'_>) -> bool {
    match test {
        CallTest::Always => true,
        CallTest::Never => false,
        CallTest::Value(key, test) => match call.value(key) {
            None => test.test(None),
            Some(bytes) => test.test(Some(&as_text(bytes))),
        },
        CallTest::Not(inner) => !call_passes(inner, call),
        CallTest::AllOf(list) => list.iter().all(|inner| call_passes(inner, call)),
        CallTest::AnyOf(list) => list.iter().any(|inner| call_passes(inner, call)),
    }
}

/// Invokers as this module sees them: rows with columns.
pub trait Table {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// What a column holds in a row; `None` when absent or out of range.
    fn value(&self, row: usize, column: &Column) -> Option<Cow<'_, str>>;

    /// True when the row is selected.
    fn passes(&self, row: usize, test: &RowTest) -> bool {
        match test {
            RowTest::Any => true,
            RowTest::Never => false,
            RowTest::Value(column, test) => test.test(self.value(row, column).as_deref()),
            RowTest::Not(inner) => !self.passes(row, inner),
            RowTest::AllOf(list) => list.iter().all(|inner| self.passes(row, inner)),
            RowTest::AnyOf(list) => list.iter().any(|inner| self.passes(row, inner)),
        }
    }
}

impl Table for [Url] {
    fn rows(&self) -> usize {
        self.len()
    }

    fn value(&self, row: usize, column: &Column) -> Option<Cow<'_, str>> {
        self.get(row)?.column(column)
    }
}

impl Table for Vec<Url> {
    fn rows(&self) -> usize {
        self.len()
    }

    fn value(&self, row: usize, column: &Column) -> Option<Cow<'_, str>> {
        self.get(row)?.column(column)
    }
}

impl Table for Invokers {
    fn rows(&self) -> usize {
        self.len()
    }

    fn value(&self, row: usize, column: &Column) -> Option<Cow<'_, str>> {
        self.column(row, column)
    }
}

/// True when the invoker is selected.
pub fn row_passes(test: &RowTest, invoker: &Url) -> bool {
    std::slice::from_ref(invoker).passes(0, test)
}

/// The hash behind [`Destinations::hash_key`]: FNV-1a, 64 bit, then mixed so that every bit counts. Fixed for
/// ever, because a roll-out must not reshuffle with an update of this library.
pub fn stable_hash(value: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in value {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// Which destination a drawn number below the sum of weights means. All weights 0: the number itself, modulo the
/// count.
pub(crate) fn destination_of(weights: impl Iterator<Item = u32> + Clone, mut number: u64) -> usize {
    for (i, weight) in weights.clone().enumerate() {
        if number < u64::from(weight) {
            return i;
        }
        number -= u64::from(weight);
    }
    let count = weights.count().max(1) as u64;
    usize::try_from(number % count).unwrap_or(0)
}

/// The number of equally likely outcomes of a draw.
pub(crate) fn draw_total(weights: impl Iterator<Item = u32> + Clone) -> u64 {
    match weights.clone().map(u64::from).sum() {
        0 => weights.count() as u64,
        total => total,
    }
}

/// One run of a program: all invokers, the call, the source of draws.
pub struct Run<'a, 'd, T: Table + ?Sized> {
    /// The whole list; rows are indices into it.
    pub invokers: &'a T,
    /// The call.
    pub call: &'a Invocation<'a>,
    /// Answers draws.
    pub draw: Draw<'d>,
}

impl<T: Table + ?Sized> Run<'_, '_, T> {
    /// The rows that the program leaves of `list`, in its order.
    pub fn program(&mut self, program: &Program, list: Vec<usize>) -> Vec<usize> {
        let Run { invokers, call, draw } = self;
        let mut pick = |destinations: &Destinations, weights: &[u32]| {
            let weights = weights.iter().copied();
            let total = draw_total(weights.clone());
            let number = match destinations.hash_key.as_ref().and_then(|key| call.value(key)) {
                Some(value) => stable_hash(value) % total,
                None => draw(total),
            };
            destination_of(
                weights,
                if destinations.first_gains_one { number.saturating_sub(1) } else { number },
            )
        };
        Walk { invokers: *invokers, call, pick: &mut pick, observe: &mut |_| {} }.program(program, list)
    }
}

/// Something that happened while a program ran.
pub(crate) enum Event<'a> {
    /// A step was asked and answered.
    Step { step: &'a Step, before: &'a [usize], after: &'a [usize], drawn: Option<&'a Destination> },
    /// A condition did not fire.
    Silent(&'a Condition),
    /// Nothing was left, and the program gave its input back.
    Restored(&'a [usize]),
}

/// Which of the live destinations, given their weights.
pub(crate) type Pick<'a> = &'a mut dyn FnMut(&Destinations, &[u32]) -> usize;

/// A run whose draws are decided by index and whose steps are watched.
pub(crate) struct Walk<'a, 'd, T: Table + ?Sized> {
    pub(crate) invokers: &'a T,
    pub(crate) call: &'a Invocation<'a>,
    pub(crate) pick: Pick<'d>,
    pub(crate) observe: &'d mut dyn FnMut(Event<'_>),
}

impl<T: Table + ?Sized> Walk<'_, '_, T> {
    pub(crate) fn program(&mut self, program: &Program, list: Vec<usize>) -> Vec<usize> {
        let input = list.clone();
        let mut list = list;
        let mut last_word = false;
        let mut condition_fired = false;
        let own = program.fallback == Fallback::PerStep;
        for step in &program.steps {
            if list.is_empty() {
                break;
            }
            let before = list.clone();
            let mut drawn = None;
            list = match step {
                Step::Condition(condition) => {
                    if condition_fired && program.firing == Firing::First
                        || !call_passes(&condition.when, self.call)
                    {
                        (self.observe)(Event::Silent(condition));
                        continue;
                    }
                    condition_fired = true;
                    last_word = matches!(condition.then, Then::Empty { last_word: true });
                    self.condition(condition, list, own, &mut drawn)
                }
                Step::Tag(tag) => self.tag(tag, list),
                Step::Affinity(affinity) => self.affinity(affinity, list),
                Step::Equal(equal) => self.equal(equal, list),
            };
            (self.observe)(Event::Step { step, before: &before, after: &list, drawn });
        }
        match program.fallback {
            Fallback::WholeProgram { force: false } if list.is_empty() && !last_word && !input.is_empty() => {
                (self.observe)(Event::Restored(&input));
                input
            }
            _ => list,
        }
    }

    fn keep(&self, list: &[usize], test: &RowTest) -> Vec<usize> {
        list.iter().copied().filter(|row| self.invokers.passes(*row, test)).collect()
    }

    fn condition<'r>(
        &mut self,
        condition: &'r Condition,
        list: Vec<usize>,
        own_fallback: bool,
        drawn: &mut Option<&'r Destination>,
    ) -> Vec<usize> {
        let kept = match &condition.then {
            Then::Empty { .. } => return Vec::new(),
            Then::Keep(rows) => self.keep(&list, rows),
            Then::Destinations(destinations) => self.destination(destinations, &list, drawn),
        };
        if kept.is_empty() && own_fallback && !condition.force { list } else { kept }
    }

    fn destination<'r>(
        &mut self,
        destinations: &'r Destinations,
        list: &[usize],
        drawn: &mut Option<&'r Destination>,
    ) -> Vec<usize> {
        let mut live: Vec<(&Destination, Vec<usize>)> = destinations
            .list
            .iter()
            .map(|one| (one, self.keep(list, &one.rows)))
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        let first = live.iter().map(|(one, _)| one.priority).min();
        live.retain(|(one, _)| Some(one.priority) == first);
        let chosen = if live.len() > 1 {
            let weights: Vec<u32> = live.iter().map(|(one, _)| one.weight).collect();
            (self.pick)(destinations, &weights)
        } else {
            0
        };
        match live.into_iter().nth(chosen) {
            Some((one, rows)) => {
                *drawn = Some(one);
                rows
            }
            None => Vec::new(),
        }
    }

    fn tag(&mut self, tag: &Tag, list: Vec<usize>) -> Vec<usize> {
        let insists = call_passes(&tag.force, self.call);
        let wanted = requested_tag(tag, self.call);
        let with_static = |run: &Self, wanted: &str| -> Vec<usize> {
            let same =
                |row: &usize| run.invokers.value(*row, &tag.column).is_some_and(|value| value == wanted);
            list.iter().copied().filter(same).collect()
        };
        if wanted.is_some() && wanted.as_deref() == tag.everyone.as_deref() {
            return list;
        }
        let Some(rule) = &tag.rule else {
            let Some(wanted) = wanted else { return self.keep(&list, &tag.untagged) };
            let kept = with_static(self, &wanted);
            return if kept.is_empty() && !insists { self.keep(&list, &tag.untagged) } else { kept };
        };
        let Some(wanted) = wanted else {
            let free = self.keep(&list, &RowTest::Not(Box::new(rule.claimed.clone())));
            return self.keep(&free, &rule.untagged_without_tag);
        };
        let set = self.tag_set(rule, &wanted, insists);
        let (kept, stands) = match set {
            Some(set) => (self.keep(&list, &set.rows), rule.force),
            None => (with_static(self, &wanted), rule.force && rule.force_unknown),
        };
        if !kept.is_empty() || stands || insists {
            return kept;
        }
        let claimed = match rule.failover {
            FailoverClaim::Claimed => Some(&rule.claimed),
            FailoverClaim::Requested => set.map(|set| &set.rows),
        };
        let free = match claimed {
            Some(claimed) => self.keep(&list, &RowTest::Not(Box::new(claimed.clone()))),
            None => list,
        };
        self.keep(&free, &tag.untagged)
    }

    fn tag_set<'r>(&self, rule: &'r TagRule, wanted: &str, insists: bool) -> Option<&'r TagSet> {
        let find = |name: &str| {
            rule.sets.iter().find(|set| {
                &*set.name == name
                    && (!set.gone_when_empty
                        || (0..self.invokers.rows()).any(|row| self.invokers.passes(row, &set.rows)))
            })
        };
        if insists || !rule.levels {
            return find(wanted);
        }
        let mut level = wanted;
        loop {
            if let Some(set) = find(level) {
                return Some(set);
            }
            level = level.rsplit_once('|')?.0;
        }
    }

    fn affinity(&mut self, affinity: &Affinity, list: Vec<usize>) -> Vec<usize> {
        let kept = self.keep(&list, &affinity.rows);
        let enough = kept.len() as f64 / list.len() as f64 >= affinity.ratio / 100.0;
        if enough && (affinity.keep_empty || !kept.is_empty()) { kept } else { list }
    }

    fn equal(&mut self, equal: &Equal, list: Vec<usize>) -> Vec<usize> {
        let Some(wanted) = self.call.value(&equal.key).filter(|value| !value.is_empty()) else { return list };
        let wanted = as_text(wanted);
        let same =
            |row: &usize| self.invokers.value(*row, &equal.column).is_some_and(|value| value == wanted);
        let kept: Vec<usize> = list.iter().copied().filter(same).collect();
        if kept.is_empty() && !equal.force { list } else { kept }
    }
}

/// The tag a call asks for.
pub(crate) fn requested_tag<'a>(tag: &'a Tag, call: &Invocation<'a>) -> Option<Cow<'a, str>> {
    match call.value(&tag.tag) {
        Some(value) if !value.is_empty() => Some(as_text(value)),
        Some(_) if tag.empty_is_no_tag => None,
        _ => tag.default_tag.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed),
    }
}
