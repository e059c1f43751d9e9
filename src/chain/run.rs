//! Runs a plan for one call: one fused pass over the rows of the firing conditions, fall-backs decided afterwards.

use arrayvec::ArrayVec;

use super::bits::{Bits, Form, RowSet, Rows, ranks};
use super::calls::Facts;
use super::compiled::{Compiled, CompiledDestination, CompiledStep, CompiledTag};
use super::invocation::Invocation;
use super::memo::{Outcome, OwnedRows};
use super::plan::{Plan, StageBody, TagFact};
use super::program::{CallKey, Fallback, Firing, Step};
use super::reference::{destination_of, draw_total, stable_hash};
use crate::sys::bitset::{self, MAX_CHAIN};

/// Buffers of one thread's runs; sized to the list.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) front: Bits,
    back: Bits,
    saved: Bits,
    pub(crate) list: Vec<u32>,
    other: Vec<u32>,
    saved_list: Vec<u32>,
    before_affinity: Vec<u32>,
    /// Destinations drawn, by their place among the live ones.
    pub(crate) drawn: Vec<u32>,
    rows: usize,
}

impl Scratch {
    /// Makes room for a list.
    pub(crate) fn fit(&mut self, rows: usize) {
        if self.rows != rows || self.front.blocks().len() != rows.div_ceil(512) {
            self.front = Bits::empty(rows);
            self.back = Bits::empty(rows);
            self.saved = Bits::default();
            self.rows = rows;
        }
    }
}

/// Where destinations come from.
pub(crate) enum Draws<'a> {
    /// The caller's stream, and the call for stable draws.
    Live(&'a mut dyn FnMut(u64) -> u64, &'a Invocation<'a>),
    /// These; a draw beyond them ends the run.
    Path(&'a [u32]),
}

/// A draw that must be made first.
#[derive(Debug)]
pub(crate) struct NeedsDraw {
    pub(crate) weights: Box<[u32]>,
    pub(crate) hash_key: Option<CallKey>,
    pub(crate) skewed: bool,
}

impl NeedsDraw {
    pub(crate) fn total(&self) -> u64 {
        draw_total(self.weights.iter().copied())
    }
}

/// Draws by the call's own value or at random.
pub(crate) fn draw_number(
    total: u64,
    hash_key: Option<&CallKey>,
    skewed: bool,
    call: &Invocation<'_>,
    random: &mut dyn FnMut(u64) -> u64,
) -> u64 {
    let number = match hash_key.and_then(|key| call.value(key)) {
        Some(value) => stable_hash(value) % total.max(1),
        None => random(total),
    };
    if skewed { number.saturating_sub(1) } else { number }
}

/// Where the rows are.
#[derive(Clone, Copy)]
enum Cursor<'p> {
    All,
    /// A set of the plan or the caller's mask, not empty.
    Set(&'p RowSet),
    Mask(&'p Bits),
    /// `scratch.front`.
    Front,
    /// `scratch.list`.
    List,
    Empty,
}

struct Pending<'p> {
    set: &'p Bits,
    force: bool,
    stage: u32,
}

pub(crate) struct Machine<'p, 's> {
    plan: &'p Plan,
    facts: &'s Facts,
    scratch: &'s mut Scratch,
    at: Cursor<'p>,
    pending: ArrayVec<Pending<'p>, MAX_CHAIN>,
    emptied_by: Option<u32>,
    resume_at: Option<u32>,
}

impl<'p, 's> Machine<'p, 's> {
    pub(crate) fn new(
        plan: &'p Plan,
        facts: &'s Facts,
        scratch: &'s mut Scratch,
        mask: Option<&'p Bits>,
    ) -> Machine<'p, 's> {
        scratch.fit(plan.invokers.len());
        scratch.drawn.clear();
        let at = match mask {
            _ if plan.invokers.is_empty() => Cursor::Empty,
            None => Cursor::All,
            Some(mask) if mask.is_empty() => Cursor::Empty,
            Some(mask) => Cursor::Mask(mask),
        };
        Machine { plan, facts, scratch, at, pending: ArrayVec::new(), emptied_by: None, resume_at: None }
    }

    /// Goes on with rows that a foreign router left.
    pub(crate) fn resume(
        plan: &'p Plan,
        facts: &'s Facts,
        scratch: &'s mut Scratch,
        emptied_by: Option<u32>,
    ) -> Machine<'p, 's> {
        let at = if scratch.list.is_empty() { Cursor::Empty } else { Cursor::List };
        Machine { plan, facts, scratch, at, pending: ArrayVec::new(), emptied_by, resume_at: None }
    }

    /// Runs from a stage to the next foreign router or the end.
    pub(crate) fn run(&mut self, first_stage: usize, draws: &mut Draws<'_>) -> Result<(), NeedsDraw> {
        let plan = self.plan;
        let facts = self.facts;
        let mut firing = match first_stage {
            0 => facts.steps.as_slice(),
            stage => {
                let first = plan.stages.get(stage).map_or(u32::MAX, |stage| stage.first_step);
                facts.steps.get(facts.steps.partition_point(|step| *step < first)..).unwrap_or_default()
            }
        };
        // Foreign routers have no steps and must not be jumped over.
        let stop =
            plan.foreign.iter().copied().find(|stage| *stage as usize >= first_stage).unwrap_or(u32::MAX);
        while let Some((step, rest)) = firing.split_first() {
            if let Some(Some(narrowing)) = plan.narrowing.get(*step as usize)
                && narrowing.stage < stop
            {
                firing = rest;
                self.push(&narrowing.set.set, narrowing.force, narrowing.stage);
                continue;
            }
            let Some((number, _)) = plan.steps.get(*step as usize) else { break };
            if *number >= stop {
                break;
            }
            let number = *number;
            let Some(stage) = plan.stages.get(number as usize) else { break };
            let StageBody::Program(compiled) = &stage.body else { break };
            let end = stage.first_step + compiled.steps.len() as u32;
            let whole = compiled.program.fallback == (Fallback::WholeProgram { force: false });
            let mut save = None;
            if whole {
                self.flush();
                save = Some(self.save());
            }
            let mut last_word = false;
            let mut fired = false;
            while let Some((step, rest)) = firing.split_first().filter(|(step, _)| **step < end) {
                firing = rest;
                let place = (*step - stage.first_step) as usize;
                if compiled.program.firing == Firing::First
                    && matches!(compiled.program.steps.get(place), Some(Step::Condition(_)))
                    && std::mem::replace(&mut fired, true)
                {
                    continue;
                }
                self.step(compiled, number, place, &mut last_word, draws)?;
            }
            if let Some(save) = save {
                self.flush();
                if matches!(self.at, Cursor::Empty) && !last_word {
                    self.restore(save);
                }
            }
            if matches!(self.at, Cursor::Empty) && self.pending.is_empty() {
                // Nothing left: further programs change nothing.
                break;
            }
        }
        self.flush();
        if stop != u32::MAX && !(matches!(self.at, Cursor::Empty) && plan.fail_fast) {
            self.resume_at = Some(stop);
        }
        Ok(())
    }

    fn step(
        &mut self,
        compiled: &'p Compiled,
        stage: u32,
        place: usize,
        last_word: &mut bool,
        draws: &mut Draws<'_>,
    ) -> Result<(), NeedsDraw> {
        match compiled.steps.get(place) {
            None => {}
            Some(CompiledStep::Keep { set, force }) => self.push(&set.set, *force, stage),
            Some(CompiledStep::Empty { last_word: says }) => {
                self.flush();
                if !matches!(self.at, Cursor::Empty) {
                    *last_word = *says;
                    self.empty(stage);
                }
            }
            Some(CompiledStep::Destinations { list, force }) => {
                self.flush();
                if !matches!(self.at, Cursor::Empty) {
                    self.destinations(list, *force, stage, place, draws)?;
                }
            }
            Some(CompiledStep::Tag(tag)) => self.tag(tag, stage, place),
            Some(CompiledStep::Affinity { set, ratio, keep_empty }) => {
                self.flush();
                self.affinity(&set.set, *ratio, *keep_empty, stage);
            }
            Some(CompiledStep::Equal(equal)) => {
                let code =
                    self.plan.value_place(stage, place).and_then(|at| self.facts.values.get(at)).copied();
                match code.unwrap_or(0) {
                    0 => {}
                    1 => {
                        self.flush();
                        if equal.force {
                            self.empty(stage);
                        }
                    }
                    code => {
                        if let Some(rows) = equal.rows(&self.plan.invokers, code - 1) {
                            self.push(&rows.set, equal.force, stage);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn empty(&mut self, stage: u32) {
        if !matches!(self.at, Cursor::Empty) {
            self.at = Cursor::Empty;
            self.emptied_by = Some(stage);
        }
    }

    /// Narrows by a set: now if that is free or must be, otherwise in the next pass.
    fn push(&mut self, set: &'p RowSet, force: bool, stage: u32) {
        if set.is_all() {
            return;
        }
        if let Form::Dense(bits) = set.form() {
            match self.at {
                Cursor::Empty => return,
                Cursor::All if self.pending.is_empty() => {
                    self.at = Cursor::Set(set);
                    return;
                }
                Cursor::Set(first) if matches!(first.form(), Form::Dense(_)) => {}
                Cursor::All | Cursor::Front | Cursor::Mask(_) => {}
                Cursor::Set(_) | Cursor::List => {
                    if !self.narrow(set) && force {
                        self.empty(stage);
                    }
                    return;
                }
            }
            if self.pending.is_full() {
                self.flush();
                return self.push(set, force, stage);
            }
            self.pending.push(Pending { set: bits, force, stage });
            return;
        }
        self.flush();
        if !self.narrow(set) && force {
            self.empty(stage);
        }
    }

    /// Runs the pending sets. A set that leaves nothing and may fall back is taken out and the pass repeated.
    fn flush(&mut self) {
        while !self.pending.is_empty() {
            let input = match self.at {
                Cursor::All => None,
                Cursor::Set(set) => match set.form() {
                    Form::Dense(bits) => Some(bits.blocks()),
                    _ => None,
                },
                Cursor::Mask(mask) => Some(mask.blocks()),
                Cursor::Front => Some(self.scratch.front.blocks()),
                Cursor::List | Cursor::Empty => {
                    self.pending.clear();
                    return;
                }
            };
            let sets: ArrayVec<_, MAX_CHAIN> = self.pending.iter().map(|one| one.set.blocks()).collect();
            let seen = bitset::and_chain(input, &sets, self.scratch.back.blocks_mut());
            let first_empty = (!seen).trailing_zeros() as usize;
            match self.pending.get(first_empty) {
                None => {
                    std::mem::swap(&mut self.scratch.front, &mut self.scratch.back);
                    self.at = Cursor::Front;
                    self.pending.clear();
                }
                Some(Pending { force: true, stage, .. }) => {
                    let stage = *stage;
                    self.pending.clear();
                    self.empty(stage);
                }
                Some(_) => drop(self.pending.remove(first_empty)),
            }
        }
    }

    /// Narrows by a set at once; false, and no change, when nothing would be left. Nothing may be pending.
    fn narrow(&mut self, set: &'p RowSet) -> bool {
        if set.is_all() {
            return !matches!(self.at, Cursor::Empty);
        }
        if set.is_empty() {
            return false;
        }
        match (self.at, set.form()) {
            (Cursor::Empty, _) => false,
            (Cursor::All, _) => {
                self.at = Cursor::Set(set);
                true
            }
            (Cursor::List, _) => {
                let Scratch { list, other, .. } = &mut *self.scratch;
                other.clear();
                other.extend(list.iter().copied().filter(|row| set.contains(*row as usize)));
                if other.is_empty() {
                    return false;
                }
                std::mem::swap(list, other);
                true
            }
            (Cursor::Set(own), _) if matches!(own.form(), Form::Sparse(_)) => {
                let Form::Sparse(rows) = own.form() else { return false };
                let list = &mut self.scratch.list;
                list.clear();
                list.extend(rows.iter().copied().filter(|row| set.contains(*row as usize)));
                if list.is_empty() {
                    return false;
                }
                self.at = Cursor::List;
                true
            }
            (_, Form::Sparse(rows)) => {
                let inside: &Bits = match self.at {
                    Cursor::Set(own) => match own.form() {
                        Form::Dense(bits) => bits,
                        _ => return false,
                    },
                    Cursor::Mask(mask) => mask,
                    _ => &self.scratch.front,
                };
                self.scratch.other.clear();
                for row in rows {
                    if inside.contains(*row as usize) {
                        self.scratch.other.push(*row);
                    }
                }
                if self.scratch.other.is_empty() {
                    return false;
                }
                let Scratch { list, other, .. } = &mut *self.scratch;
                std::mem::swap(list, other);
                self.at = Cursor::List;
                true
            }
            (_, Form::Dense(bits)) => {
                let input = match self.at {
                    Cursor::Set(own) => match own.form() {
                        Form::Dense(bits) => Some(bits.blocks()),
                        _ => None,
                    },
                    Cursor::Mask(mask) => Some(mask.blocks()),
                    _ => Some(self.scratch.front.blocks()),
                };
                if bitset::and_chain(input, &[bits.blocks()], self.scratch.back.blocks_mut()) == 0 {
                    return false;
                }
                std::mem::swap(&mut self.scratch.front, &mut self.scratch.back);
                self.at = Cursor::Front;
                true
            }
            (_, Form::None | Form::All) => false,
        }
    }

    /// True when a set has a row of the present list. Nothing may be pending.
    fn meets(&self, set: &RowSet) -> bool {
        match (self.at, set.form()) {
            (Cursor::Empty, _) | (_, Form::None) => false,
            (_, Form::All) | (Cursor::All, _) => true,
            (Cursor::List, _) => self.scratch.list.iter().any(|row| set.contains(*row as usize)),
            (Cursor::Set(own), form) => match (own.form(), form) {
                (Form::Sparse(rows), _) => rows.iter().any(|row| set.contains(*row as usize)),
                (_, Form::Sparse(rows)) => rows.iter().any(|row| own.contains(*row as usize)),
                (Form::Dense(a), Form::Dense(b)) => bitset::intersects(a.blocks(), b.blocks()),
                _ => true,
            },
            (Cursor::Mask(_) | Cursor::Front, form) => {
                let own = match self.at {
                    Cursor::Mask(mask) => mask,
                    _ => &self.scratch.front,
                };
                match form {
                    Form::Sparse(rows) => rows.iter().any(|row| own.contains(*row as usize)),
                    Form::Dense(bits) => bitset::intersects(own.blocks(), bits.blocks()),
                    Form::None | Form::All => true,
                }
            }
        }
    }

    fn len(&self) -> usize {
        match self.at {
            Cursor::All => self.plan.invokers.len(),
            Cursor::Set(set) => set.count(),
            Cursor::Mask(mask) => mask.count(),
            Cursor::Front => self.scratch.front.count(),
            Cursor::List => self.scratch.list.len(),
            Cursor::Empty => 0,
        }
    }

    fn destinations(
        &mut self,
        list: &'p [CompiledDestination],
        force: bool,
        stage: u32,
        place: usize,
        draws: &mut Draws<'_>,
    ) -> Result<(), NeedsDraw> {
        let live = || list.iter().filter(|one| self.meets(&one.set.set));
        let Some(first) = live().map(|one| one.priority).min() else {
            if force {
                self.empty(stage);
            }
            return Ok(());
        };
        let live: Vec<&CompiledDestination> = live().filter(|one| one.priority == first).collect();
        let chosen = match live.as_slice() {
            [_] => 0,
            _ => {
                let weights = live.iter().map(|one| one.weight);
                let rule = self.plan.destinations(stage, place);
                let hash_key = rule.and_then(|rule| rule.hash_key.as_ref());
                let skewed = rule.is_some_and(|rule| rule.first_gains_one);
                let chosen = match draws {
                    Draws::Live(random, call) => {
                        let number =
                            draw_number(draw_total(weights.clone()), hash_key, skewed, call, &mut **random);
                        destination_of(weights, number)
                    }
                    Draws::Path(path) => match path.get(self.scratch.drawn.len()) {
                        Some(chosen) => *chosen as usize,
                        None => {
                            return Err(NeedsDraw {
                                weights: weights.collect(),
                                hash_key: hash_key.cloned(),
                                skewed,
                            });
                        }
                    },
                };
                self.scratch.drawn.push(chosen as u32);
                chosen
            }
        };
        if let Some(one) = live.get(chosen) {
            self.narrow(&one.set.set);
        }
        Ok(())
    }

    fn tag(&mut self, tag: &'p CompiledTag, stage: u32, place: usize) {
        let at = self.plan.value_place(stage, place);
        let value = |offset| at.and_then(|at| self.facts.values.get(at + offset)).copied().unwrap_or(0);
        let (fact, insists) = (TagFact::decode(value(0)), value(1) != 0);
        let Some(rule) = &tag.rule else {
            let carrying = match fact {
                TagFact::Everyone => return,
                TagFact::None => return self.push(&tag.untagged.set, true, stage),
                TagFact::Static(value) => tag.carrying(&self.plan.invokers, value),
                _ => None,
            };
            return self.first_of(carrying.map(|found| &found.set), insists, &tag.untagged.set, stage);
        };
        let unknown_stands = insists || rule.force && rule.force_unknown;
        match fact {
            TagFact::Everyone => {}
            TagFact::None => self.push(&rule.without_tag.set, true, stage),
            TagFact::Set(set) => {
                if let Some(set) = rule.sets.get(set as usize) {
                    self.first_of(Some(&set.rows.set), rule.force || insists, &set.failover.set, stage);
                }
            }
            TagFact::Static(value) => {
                let carrying = tag.carrying(&self.plan.invokers, value).map(|found| &found.set);
                self.first_of(carrying, unknown_stands, &rule.failover.set, stage);
            }
            TagFact::Unknown => self.first_of(None, unknown_stands, &rule.failover.set, stage),
        }
    }

    /// Narrows by the first set, or, if that leaves nothing and need not stand, by the second.
    fn first_of(&mut self, first: Option<&'p RowSet>, stands: bool, second: &'p RowSet, stage: u32) {
        match first {
            Some(first) if stands => self.push_or_empty(first, stage),
            Some(first) => {
                self.flush();
                if !self.narrow(first) {
                    self.push_or_empty(second, stage);
                }
            }
            None if stands => {
                self.flush();
                self.empty(stage);
            }
            None => self.push_or_empty(second, stage),
        }
    }

    fn push_or_empty(&mut self, set: &'p RowSet, stage: u32) {
        self.push(set, true, stage);
    }

    fn affinity(&mut self, set: &'p RowSet, ratio: f64, keep_empty: bool, stage: u32) {
        let total = self.len();
        if total == 0 {
            return;
        }
        let before = self.at;
        let Scratch { list, before_affinity, .. } = &mut *self.scratch;
        if matches!(before, Cursor::List) {
            before_affinity.clone_from(list);
        }
        let any = self.narrow(set);
        let kept = if any { self.len() } else { 0 };
        let enough = kept as f64 / total as f64 >= ratio / 100.0;
        match (enough, any) {
            (true, true) => {}
            (true, false) if keep_empty => self.empty(stage),
            (_, false) => {}
            (false, true) => {
                // Back to the list before: `narrow` left its rows where they were, one swap away.
                if matches!(self.at, Cursor::Front) && matches!(before, Cursor::Front) {
                    let Scratch { front, back, .. } = &mut *self.scratch;
                    std::mem::swap(front, back);
                }
                if matches!(before, Cursor::List) {
                    let Scratch { list, before_affinity, .. } = &mut *self.scratch;
                    std::mem::swap(list, before_affinity);
                }
                self.at = before;
            }
        }
    }

    fn save(&mut self) -> (Cursor<'p>, Option<u32>) {
        match self.at {
            Cursor::Front => self.scratch.saved.clone_from(&self.scratch.front),
            Cursor::List => {
                let Scratch { list, saved_list, .. } = &mut *self.scratch;
                saved_list.clone_from(list);
            }
            _ => {}
        }
        (self.at, self.emptied_by)
    }

    fn restore(&mut self, (at, emptied_by): (Cursor<'p>, Option<u32>)) {
        match at {
            Cursor::Front => self.scratch.front.clone_from(&self.scratch.saved),
            Cursor::List => {
                let Scratch { list, saved_list, .. } = &mut *self.scratch;
                list.clone_from(saved_list);
            }
            _ => {}
        }
        self.at = at;
        self.emptied_by = emptied_by;
    }

    /// The stage that left nothing.
    pub(crate) fn emptied_by(&self) -> Option<u32> {
        self.emptied_by
    }

    /// The foreign router to go on with.
    pub(crate) fn resume_at(&self) -> Option<u32> {
        self.resume_at
    }

    /// Where the rows ended up, to be looked up again in the scratch or the plan.
    pub(crate) fn place(&self) -> Place<'p> {
        match self.at {
            Cursor::All => Place::All,
            Cursor::Set(set) => Place::Set(set),
            Cursor::Mask(mask) => Place::Mask(mask),
            Cursor::Front => Place::Front,
            Cursor::List => Place::List,
            Cursor::Empty => Place::Empty,
        }
    }

    /// The result in a form that owns itself.
    pub(crate) fn outcome(&self) -> Outcome {
        let rows = match self.at {
            Cursor::All => OwnedRows::All(self.plan.invokers.len()),
            Cursor::Empty => OwnedRows::List(Box::default()),
            Cursor::List => OwnedRows::List(self.scratch.list.as_slice().into()),
            Cursor::Set(set) => match set.form() {
                Form::Sparse(list) => OwnedRows::List(list.clone()),
                Form::Dense(bits) => own(bits, set.count()),
                Form::All => OwnedRows::All(set.rows()),
                Form::None => OwnedRows::List(Box::default()),
            },
            Cursor::Mask(bits) => own(bits, bits.count()),
            Cursor::Front => own(&self.scratch.front, self.scratch.front.count()),
        };
        Outcome::new(rows, self.emptied_by, self.resume_at)
    }
}

/// Where a run left its rows.
#[derive(Clone, Copy)]
pub(crate) enum Place<'p> {
    All,
    Set(&'p RowSet),
    Mask(&'p Bits),
    Front,
    List,
    Empty,
}

/// Lists up to this length are kept as lists.
const LIST_KEPT: usize = 256;

fn own(bits: &Bits, count: usize) -> OwnedRows {
    if count <= LIST_KEPT {
        OwnedRows::List(bits.iter().map(|row| row as u32).collect())
    } else {
        OwnedRows::Dense { bits: bits.clone(), count, ranks: ranks(bits) }
    }
}

/// The rows of a place as a list, into `out`.
pub(crate) fn rows_into(rows: Rows<'_>, out: &mut Vec<u32>) {
    out.clear();
    out.extend(rows.iter().map(|row| row as u32));
}
