//! A program met an invoker list: every test on invokers has become a set of rows.

use once_cell::sync::OnceCell;
use std::sync::Arc;

use hashbrown::HashTable;

use super::bits::RowSet;
use super::column::ColumnData;
use super::hash;
use super::program::{
    Column, Condition, Destinations, FailoverClaim, Fallback, Firing, Program, Step, Tag, Then,
};
use super::selection::Selection;
use super::snapshot::Invokers;

/// A program over one list. Depends on nothing else, so it is kept while both stay.
pub(crate) struct Compiled {
    pub(crate) program: Arc<Program>,
    pub(crate) invokers: u64,
    pub(crate) steps: Vec<CompiledStep>,
    /// What the selection cache must not forget while this lives.
    held: Vec<Arc<Selection>>,
    /// Per step, where its part of `held` ends.
    held_to: Vec<usize>,
}

pub(crate) enum CompiledStep {
    Keep { set: Arc<Selection>, force: bool },
    Empty { last_word: bool },
    Destinations { list: Vec<CompiledDestination>, force: bool },
    Tag(CompiledTag),
    Affinity { set: Arc<Selection>, ratio: f64, keep_empty: bool },
    Equal(CompiledEqual),
}

pub(crate) struct CompiledDestination {
    pub(crate) set: Arc<Selection>,
    pub(crate) weight: u32,
    pub(crate) priority: i32,
}

pub(crate) struct CompiledTag {
    column: Column,
    /// The column itself, so that a call need not look for it by name.
    data: Option<ColumnData>,
    /// By value id of the column; made when first asked for.
    by_value: OnceCell<Box<[OnceCell<Arc<Selection>>]>>,
    pub(crate) untagged: Arc<Selection>,
    pub(crate) rule: Option<CompiledTagRule>,
}

pub(crate) struct CompiledTagRule {
    pub(crate) force: bool,
    pub(crate) force_unknown: bool,
    pub(crate) levels: bool,
    names: HashTable<(Box<str>, u32)>,
    pub(crate) sets: Vec<CompiledTagSet>,
    /// For calls without a tag.
    pub(crate) without_tag: Arc<Selection>,
    /// For calls whose tag is nowhere.
    pub(crate) failover: Arc<Selection>,
}

pub(crate) struct CompiledTagSet {
    pub(crate) rows: Arc<Selection>,
    /// When this set was asked for and gave nothing.
    pub(crate) failover: Arc<Selection>,
}

pub(crate) struct CompiledEqual {
    column: Column,
    data: Option<ColumnData>,
    by_value: OnceCell<Box<[OnceCell<Arc<Selection>>]>>,
    pub(crate) force: bool,
}

impl Compiled {
    /// The program over the list. Steps that `earlier`, what another text of the rule came to, has in the same place are
    /// taken over.
    pub(crate) fn new(program: &Arc<Program>, invokers: &Invokers, earlier: Option<&Compiled>) -> Compiled {
        let mut held = Vec::new();
        let mut held_to = Vec::with_capacity(program.steps.len());
        let own = program.fallback == Fallback::PerStep;
        let earlier = earlier
            .filter(|before| before.invokers == invokers.id() && before.program.fallback == program.fallback);
        let compile = |at: usize, step: &Step, held: &mut Vec<Arc<Selection>>| match step {
            Step::Condition(condition) => earlier
                .and_then(|before| before.taken_over(at, condition, held))
                .unwrap_or_else(|| compile_condition(condition, own, invokers, held)),
            Step::Tag(tag) => CompiledStep::Tag(compile_tag(tag, invokers, held)),
            Step::Affinity(affinity) => CompiledStep::Affinity {
                set: invokers.select(&affinity.rows, held),
                ratio: affinity.ratio,
                keep_empty: affinity.keep_empty,
            },
            Step::Equal(equal) => CompiledStep::Equal(CompiledEqual {
                column: equal.column.clone(),
                data: invokers.column_data(&equal.column),
                by_value: OnceCell::new(),
                force: equal.force,
            }),
        };
        let mut steps = Vec::with_capacity(program.steps.len());
        for (at, step) in program.steps.iter().enumerate() {
            let compiled = compile(at, step, &mut held);
            steps.push(compiled);
            held_to.push(held.len());
        }
        Compiled { program: Arc::clone(program), invokers: invokers.id(), steps, held, held_to }
    }

    /// The compiled form of a condition that looks at invokers as the one in this place did.
    fn taken_over(
        &self,
        at: usize,
        condition: &Condition,
        held: &mut Vec<Arc<Selection>>,
    ) -> Option<CompiledStep> {
        let Some(Step::Condition(own)) = self.program.steps.get(at) else { return None };
        if own.force != condition.force {
            return None;
        }
        let (Then::Keep(rows), Then::Keep(own), CompiledStep::Keep { set, force }) =
            (&condition.then, &own.then, self.steps.get(at)?)
        else {
            return None;
        };
        if !rows.is_the_same(own) {
            return None;
        }
        let from = at.checked_sub(1).map_or(0, |before| self.held_to.get(before).copied().unwrap_or(0));
        held.extend_from_slice(self.held.get(from..*self.held_to.get(at)?)?);
        Some(CompiledStep::Keep { set: Arc::clone(set), force: *force })
    }

    /// A step that changes nothing whatever the call is: it need not be looked for.
    pub(crate) fn is_idle(&self, step: usize) -> bool {
        // Under these a step counts even when it keeps everything.
        if self.program.firing == Firing::First {
            return false;
        }
        match self.steps.get(step) {
            Some(CompiledStep::Keep { set, force }) => {
                set.set.is_all() || set.set.is_empty() && !force && self.program.fallback == Fallback::PerStep
            }
            _ => false,
        }
    }
}

fn compile_condition(
    condition: &Condition,
    own_fallback: bool,
    invokers: &Invokers,
    held: &mut Vec<Arc<Selection>>,
) -> CompiledStep {
    // Under a fall-back for the whole program a condition filters without one of its own.
    let force = condition.force || !own_fallback;
    match &condition.then {
        Then::Empty { last_word } => CompiledStep::Empty { last_word: *last_word },
        Then::Keep(rows) => CompiledStep::Keep { set: invokers.select(rows, held), force },
        Then::Destinations(Destinations { list, .. }) => CompiledStep::Destinations {
            list: list
                .iter()
                .map(|one| CompiledDestination {
                    set: invokers.select(&one.rows, held),
                    weight: one.weight,
                    priority: one.priority,
                })
                .collect(),
            force,
        },
    }
}

fn compile_tag(tag: &Tag, invokers: &Invokers, held: &mut Vec<Arc<Selection>>) -> CompiledTag {
    let untagged = invokers.select(&tag.untagged, held);
    let rule = tag.rule.as_ref().map(|rule| {
        let free = |claimed: &RowSet, from: &RowSet| Selection::new(from.and(&claimed.complement()));
        let claimed = invokers.select(&rule.claimed, held);
        let without_tag = invokers.select(&rule.untagged_without_tag, held);
        let without_tag = free(&claimed.set, &without_tag.set);
        let failover = match rule.failover {
            FailoverClaim::Claimed => free(&claimed.set, &untagged.set),
            FailoverClaim::Requested => Arc::clone(&untagged),
        };
        let mut names: HashTable<(Box<str>, u32)> = HashTable::new();
        let mut sets = Vec::new();
        for set in &rule.sets {
            let rows = invokers.select(&set.rows, held);
            if set.gone_when_empty && rows.set.is_empty() {
                continue;
            }
            let hash = name_hash(&set.name);
            if names.find(hash, |(name, _)| **name == *set.name).is_none() {
                let entry = (Box::from(&*set.name), sets.len() as u32);
                names.insert_unique(hash, entry, |(name, _)| name_hash(name));
            }
            let failover = match rule.failover {
                FailoverClaim::Claimed => Arc::clone(&failover),
                FailoverClaim::Requested => free(&rows.set, &untagged.set),
            };
            sets.push(CompiledTagSet { rows, failover });
        }
        CompiledTagRule {
            force: rule.force,
            force_unknown: rule.force_unknown,
            levels: rule.levels,
            names,
            sets,
            without_tag,
            failover,
        }
    });
    CompiledTag {
        column: tag.column.clone(),
        data: invokers.column_data(&tag.column),
        by_value: OnceCell::new(),
        untagged,
        rule,
    }
}

fn name_hash(name: &str) -> u64 {
    hash::bytes(hash::seed(), name.as_bytes())
}

/// The rows of a value the list knows by number.
fn rows_of_value<'a>(
    cells: &'a OnceCell<Box<[OnceCell<Arc<Selection>>]>>,
    column: &Column,
    invokers: &Invokers,
    value: u32,
) -> Option<&'a Arc<Selection>> {
    let cells = cells.get_or_init(|| (0..=invokers.value_count(column)).map(|_| OnceCell::new()).collect());
    let cell = cells.get(value as usize)?;
    Some(cell.get_or_init(|| Selection::new(invokers.rows_of_value(column, value))))
}

/// The number of a value; see [`Invokers::value_id`].
fn value_id(data: Option<&ColumnData>, column: &Column, invokers: &Invokers, text: &str) -> Option<u32> {
    match data {
        Some(data) => data.dictionary.find(text),
        None => invokers.value_id(column, text),
    }
}

impl CompiledTag {
    /// The number of a tag.
    pub(crate) fn value_id(&self, invokers: &Invokers, text: &str) -> Option<u32> {
        value_id(self.data.as_ref(), &self.column, invokers, text)
    }

    /// The rows that carry a tag statically; `value` from [`Invokers::value_id`].
    pub(crate) fn carrying(&self, invokers: &Invokers, value: u32) -> Option<&Arc<Selection>> {
        rows_of_value(&self.by_value, &self.column, invokers, value)
    }
}

impl CompiledEqual {
    /// The number of a value.
    pub(crate) fn value_id(&self, invokers: &Invokers, text: &str) -> Option<u32> {
        value_id(self.data.as_ref(), &self.column, invokers, text)
    }

    /// The rows with a value; `value` from [`Invokers::value_id`].
    pub(crate) fn rows(&self, invokers: &Invokers, value: u32) -> Option<&Arc<Selection>> {
        rows_of_value(&self.by_value, &self.column, invokers, value)
    }
}

impl CompiledTagRule {
    /// The set for a tag.
    pub(crate) fn set_for(&self, wanted: &str, insists: bool) -> Option<u32> {
        if insists || !self.levels {
            return self.find(wanted);
        }
        let mut level = wanted;
        loop {
            if let Some(set) = self.find(level) {
                return Some(set);
            }
            level = level.rsplit_once('|')?.0;
        }
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.names.find(name_hash(name), |(own, _)| **own == *name).map(|(_, set)| *set)
    }
}
