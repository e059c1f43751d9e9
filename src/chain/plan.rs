//! One world: an invoker list and the rules in force over it, compiled. Immutable; routes read nothing else.

use once_cell::sync::OnceCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use hashbrown::HashTable;

use super::calls::{CallIndex, Facts, IndexBuilder, When};
use super::compiled::{Compiled, CompiledStep};
use super::hash;
use super::invocation::{Invocation, as_text};
use super::live::{Kind, Live};
use super::memo::{Memo, Node, NodeKind, Outcome};
use super::picking::Picking;
use super::program::{CallTest, Destinations, Fallback, Firing, Program, Step, Then};
use super::recent::Recent;
use super::reference::requested_tag;
use super::router::Router;
use super::run::{Draws, Machine, Scratch};
use super::selection::Selection;
use super::snapshot::Invokers;
use super::url::Url;
use crate::error::Result;
use crate::sys::record::Record;

/// What a plan is made of, in chain order.
pub(crate) struct StageSource {
    pub(crate) name: Arc<str>,
    pub(crate) priority: i64,
    /// Key and revision of the rule in force.
    pub(crate) rule: Option<(Arc<str>, u64)>,
    pub(crate) body: StageBody,
}

#[derive(Clone)]
pub(crate) enum StageBody {
    Program(Arc<Compiled>),
    Foreign(Arc<dyn Router>),
}

pub(crate) struct Stage {
    pub(crate) name: Arc<str>,
    pub(crate) priority: i64,
    pub(crate) rule: Option<(Arc<str>, u64)>,
    pub(crate) body: StageBody,
    /// Its first step; those of a stage are consecutive.
    pub(crate) first_step: u32,
}

/// Something the class of a call depends on beside firing steps.
struct ValueSource {
    stage: u32,
    step: usize,
    insists: When,
}

pub(crate) struct Plan {
    pub(crate) generation: u64,
    /// Tells worlds of all chains of the process apart, for ever.
    serial: u64,
    pub(crate) invokers: Arc<Invokers>,
    pub(crate) consumer: Arc<Url>,
    pub(crate) fail_fast: bool,
    pub(crate) stages: Vec<Stage>,
    /// Stage and place in it, per step.
    pub(crate) steps: Vec<(u32, u32)>,
    pub(crate) calls: CallIndex,
    values: Vec<ValueSource>,
    /// The foreign stages, ascending.
    pub(crate) foreign: Vec<u32>,
    /// Per step, those that only narrow the list: found without a walk through stage and program.
    pub(crate) narrowing: Vec<Option<Narrowing>>,
    /// Per step, the place of its facts in [`Facts::values`].
    value_places: Vec<u32>,
    pub(crate) memo: Memo,
    pub(crate) picking: Arc<Picking>,
    /// What picks need to know of the list; made by the first one.
    pub(crate) picks: OnceCell<Result<super::pick::Plan>>,
    quick: QuickIndex,
    /// Where calls are kept for explanation, if they are. Weak: what is kept holds its world.
    pub(crate) recent: Option<Weak<Recent>>,
    _live: Live,
}

/// A step that keeps a set and decides its own fall-back.
pub(crate) struct Narrowing {
    pub(crate) set: Arc<Selection>,
    pub(crate) force: bool,
    pub(crate) stage: u32,
}

/// What is known about calls that have one method name and nothing else; filled by the first of them.
#[derive(Default)]
pub(crate) struct Quick {
    pub(crate) node: OnceCell<Arc<Node>>,
    facts: OnceCell<Facts>,
}

/// Calls that have nothing but a method name: found by one hash.
struct QuickIndex {
    /// Places in `slots`, when there are many.
    by_method: HashTable<u32>,
    /// By name, and behind them, where rules tell names apart by equality alone, one for every other name.
    slots: Box<[(Box<[u8]>, Quick)]>,
    names: usize,
}

/// Up to so many names are compared one by one.
const FEW_NAMES: usize = 4;

/// What a call's tag is to a tag step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagFact {
    /// None is asked for.
    None,
    /// Asked for, and nowhere.
    Unknown,
    /// The tag that gets everybody.
    Everyone,
    /// This set of the rule.
    Set(u32),
    /// This value of the column.
    Static(u32),
}

impl TagFact {
    fn encode(self) -> u32 {
        match self {
            TagFact::None => 0,
            TagFact::Unknown => 1,
            TagFact::Everyone => 2,
            TagFact::Set(set) => set.saturating_mul(2).saturating_add(4),
            TagFact::Static(value) => value.saturating_mul(2).saturating_add(5),
        }
    }

    pub(crate) fn decode(code: u32) -> TagFact {
        match code {
            0 => TagFact::None,
            1 => TagFact::Unknown,
            2 | 3 => TagFact::Everyone,
            code if code % 2 == 0 => TagFact::Set(code / 2 - 2),
            code => TagFact::Static((code - 5) / 2),
        }
    }
}

/// Everything a plan is assembled from.
pub(crate) struct Assembly {
    pub(crate) generation: u64,
    pub(crate) invokers: Arc<Invokers>,
    pub(crate) consumer: Arc<Url>,
    pub(crate) fail_fast: bool,
    pub(crate) stages: Vec<StageSource>,
    pub(crate) memo_bytes: usize,
    pub(crate) picking: Arc<Picking>,
    /// Calls are kept there, and results are not memoised, so that every call is seen.
    pub(crate) recent: Option<Weak<Recent>>,
}

impl Plan {
    pub(crate) fn new(assembly: Assembly) -> Plan {
        let mut builder = IndexBuilder::default();
        let mut steps = Vec::new();
        let mut values = Vec::new();
        let mut stages = Vec::new();
        let mut foreign = Vec::new();
        for (number, source) in assembly.stages.into_iter().enumerate() {
            let number = number as u32;
            let first_step = steps.len() as u32;
            if let StageBody::Program(compiled) = &source.body {
                index_program(compiled, number, &mut builder, &mut steps, &mut values);
            } else {
                foreign.push(number);
            }
            let StageSource { name, priority, rule, body } = source;
            stages.push(Stage { name, priority, rule, body, first_step });
        }
        let calls = builder.finish();
        let narrowing = steps.iter().map(|(stage, step)| narrowing(&stages, *stage, *step)).collect();
        let value_places = value_places(&stages, &steps, &values);
        let quick = QuickIndex::new(&calls);
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        Plan {
            generation: assembly.generation,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            invokers: assembly.invokers,
            consumer: assembly.consumer,
            fail_fast: assembly.fail_fast,
            picking: assembly.picking,
            picks: OnceCell::new(),
            stages,
            steps,
            calls,
            values,
            foreign,
            narrowing,
            value_places,
            memo: Memo::new(if assembly.recent.is_some() { 0 } else { assembly.memo_bytes }),
            quick,
            recent: assembly.recent,
            _live: Live::new(Kind::Plan),
        }
    }

    /// What the call is to the rules.
    #[inline]
    pub(crate) fn facts(&self, call: &Invocation<'_>, facts: &mut Facts) {
        self.calls.evaluate(call, facts);
        facts.values.clear();
        for source in &self.values {
            self.value_facts(source, call, facts);
        }
    }

    fn value_facts(&self, source: &ValueSource, call: &Invocation<'_>, facts: &mut Facts) {
        let Some(Stage { body: StageBody::Program(compiled), .. }) = self.stages.get(source.stage as usize)
        else {
            return;
        };
        match (compiled.program.steps.get(source.step), compiled.steps.get(source.step)) {
            (Some(Step::Tag(tag)), Some(CompiledStep::Tag(own))) => {
                let insists = source.insists.holds(&facts.atoms);
                let fact = match requested_tag(tag, call) {
                    None => TagFact::None,
                    Some(wanted) if tag.everyone.as_deref() == Some(&*wanted) => TagFact::Everyone,
                    Some(wanted) => {
                        let set = own.rule.as_ref().and_then(|rule| rule.set_for(&wanted, insists));
                        match set {
                            Some(set) => TagFact::Set(set),
                            None => own
                                .value_id(&self.invokers, &wanted)
                                .map_or(TagFact::Unknown, TagFact::Static),
                        }
                    }
                };
                facts.values.push(fact.encode());
                facts.values.push(u32::from(insists));
            }
            (Some(Step::Equal(equal)), Some(CompiledStep::Equal(own))) => {
                let given = call.value(&equal.key).filter(|value| !value.is_empty());
                // 0: not given; 1: no invoker has it; otherwise the value's number and 1.
                let code = match given {
                    None => 0,
                    Some(value) => {
                        own.value_id(&self.invokers, &as_text(value)).map_or(1, |id| id.saturating_add(1))
                    }
                };
                facts.values.push(code);
            }
            _ => {}
        }
    }

    /// Index of a step's facts in [`Facts::values`].
    #[inline]
    pub(crate) fn value_place(&self, stage: u32, step: usize) -> Option<usize> {
        let number = self.stages.get(stage as usize)?.first_step as usize + step;
        self.value_places.get(number).map(|place| *place as usize)
    }

    /// The node of a class, computed if this is the first call of it. `None`: the memo is off or full.
    pub(crate) fn node(&self, facts: &Facts, scratch: &mut Scratch) -> Option<Arc<Node>> {
        if self.memo.is_off() {
            return None;
        }
        let hash = Memo::hash(facts);
        if let Some(node) = self.memo.find(hash, facts) {
            return Some(Arc::clone(node));
        }
        if self.memo.is_full() {
            return None;
        }
        let node = self.compute(facts, &[], scratch)?;
        Some(self.memo.insert(hash, facts, node))
    }

    /// The node behind some draws; `None` when it does not fit into the memo.
    pub(crate) fn compute(&self, facts: &Facts, path: &[u32], scratch: &mut Scratch) -> Option<Arc<Node>> {
        let mut machine = Machine::new(self, facts, scratch, None);
        let kind = match machine.run(0, &mut Draws::Path(path)) {
            Err(draw) => NodeKind::Draw {
                total: draw.total(),
                children: draw.weights.iter().map(|_| OnceCell::new()).collect(),
                hash_key: draw.hash_key,
                skewed: draw.skewed,
                weights: draw.weights,
            },
            Ok(()) => {
                let outcome = machine.outcome();
                if !self.memo.admit(&outcome) {
                    return None;
                }
                NodeKind::Rows(outcome)
            }
        };
        Some(Node::new(kind))
    }

    /// Keeps a call that was answered, if calls are kept.
    #[inline]
    pub(crate) fn note(self: &Arc<Plan>, call: &Invocation<'_>, drawn: &[u32]) {
        if let Some(recent) = self.recent.as_ref().and_then(Weak::upgrade) {
            recent.note(self, call, drawn);
        }
    }

    /// The place of a call that has nothing but a method name and was answered before: as this thread noted it under the
    /// call's stamp, or as `find` finds it.
    #[inline(always)]
    pub(crate) fn recall_place(
        &self,
        record: &Record,
        stamp: u64,
        find: impl FnOnce(&Plan) -> Option<u32>,
    ) -> Option<u32> {
        let keys = (stamp, self.serial);
        if stamp != 0
            && let Some(place) = record.noted(keys)
        {
            return Some(place);
        }
        let place = find(self).filter(|place| self.settled_at(*place).is_some())?;
        record.note(keys, place);
        Some(place)
    }

    /// What is known about a call that has nothing but a method name.
    #[inline]
    pub(crate) fn quick(&self, call: &Invocation<'_>) -> Option<&Quick> {
        self.quick_at(self.quick_place(call)?)
    }

    /// Where that is kept.
    #[inline]
    pub(crate) fn quick_place(&self, call: &Invocation<'_>) -> Option<u32> {
        if !self.is_bare(call) {
            return None;
        }
        self.quick.find(call.effective_method())
    }

    /// What is kept there.
    #[inline]
    pub(crate) fn quick_at(&self, place: u32) -> Option<&Quick> {
        self.quick.slots.get(place as usize).map(|(_, quick)| quick)
    }

    /// What such a call came to before: rows, with nothing behind them.
    #[inline]
    pub(crate) fn settled_at(&self, place: u32) -> Option<&Outcome> {
        match self.quick_at(place)?.node.get().map(|node| &node.kind)? {
            NodeKind::Rows(outcome) if outcome.resume_at.is_none() => Some(outcome),
            _ => None,
        }
    }

    /// What a call that has nothing but a method name came to before: rows, with nothing behind them.
    #[inline]
    pub(crate) fn settled(&self, call: &Invocation<'_>) -> Option<&Outcome> {
        self.settled_at(self.quick_place(call)?)
    }

    /// What a call that has nothing but a method name is to the rules, if there is a place to keep it.
    #[inline]
    pub(crate) fn bare_facts(&self, call: &Invocation<'_>) -> Option<&Facts> {
        let quick = self.quick_at(self.quick.find(call.effective_method())?)?;
        Some(quick.facts.get_or_init(|| {
            let mut facts = Facts::default();
            self.facts(call, &mut facts);
            facts
        }))
    }

    /// What tells calls apart that have nothing but a method name.
    #[inline]
    pub(crate) fn bare_key<'a>(&self, call: &Invocation<'a>) -> &'a [u8] {
        let reads = self.calls.reads();
        if reads.method || reads.raw_method { call.effective_method() } else { b"" }
    }

    /// True when nothing of the call but its method name is looked at.
    #[inline(always)]
    pub(crate) fn is_bare(&self, call: &Invocation<'_>) -> bool {
        let reads = self.calls.reads();
        if call.attachments.is_empty() && call.arguments.is_empty() {
            return !reads.raw_method || call.method.first() != Some(&b'$');
        }
        self.is_bare_beside(call)
    }

    fn is_bare_beside(&self, call: &Invocation<'_>) -> bool {
        let reads = self.calls.reads();
        call.attachments.iter().all(|(name, _)| !reads.wants(name))
            && (call.arguments.is_empty() || reads.arguments.is_empty())
            && !(reads.raw_method && call.method.first() == Some(&b'$'))
    }

    /// The name of the stage a result was emptied by.
    pub(crate) fn stage_name(&self, stage: Option<u32>) -> Option<&Arc<str>> {
        self.stages.get(stage? as usize).map(|stage| &stage.name)
    }

    /// A destination step as the rule has it.
    pub(crate) fn destinations(&self, stage: u32, step: usize) -> Option<&Destinations> {
        let StageBody::Program(compiled) = &self.stages.get(stage as usize)?.body else { return None };
        match compiled.program.steps.get(step)? {
            Step::Condition(condition) => match &condition.then {
                Then::Destinations(destinations) => Some(destinations),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The step as one that only narrows, if it is one wherever it stands.
fn narrowing(stages: &[Stage], stage: u32, step: u32) -> Option<Narrowing> {
    let StageBody::Program(compiled) = &stages.get(stage as usize)?.body else { return None };
    let program = &compiled.program;
    if program.fallback != Fallback::PerStep || program.firing != Firing::Every {
        return None;
    }
    match compiled.steps.get(step as usize)? {
        CompiledStep::Keep { set, force } => Some(Narrowing { set: Arc::clone(set), force: *force, stage }),
        _ => None,
    }
}

fn value_places(stages: &[Stage], steps: &[(u32, u32)], values: &[ValueSource]) -> Vec<u32> {
    let mut places = vec![0; steps.len()];
    let mut place = 0;
    for source in values {
        let Some(stage) = stages.get(source.stage as usize) else { continue };
        if let Some(slot) = places.get_mut(stage.first_step as usize + source.step) {
            *slot = place;
        }
        let is_tag = match &stage.body {
            StageBody::Program(compiled) => {
                matches!(compiled.steps.get(source.step), Some(CompiledStep::Tag(_)))
            }
            StageBody::Foreign(_) => false,
        };
        place += if is_tag { 2 } else { 1 };
    }
    places
}

/// Enters a program's steps into the index.
fn index_program(
    compiled: &Compiled,
    stage: u32,
    builder: &mut IndexBuilder,
    steps: &mut Vec<(u32, u32)>,
    values: &mut Vec<ValueSource>,
) {
    let program: &Program = &compiled.program;
    for (at, step) in program.steps.iter().enumerate() {
        let number = steps.len() as u32;
        steps.push((stage, at as u32));
        if compiled.is_idle(at) {
            continue;
        }
        match step {
            Step::Condition(condition) => {
                let when = builder.intern(&condition.when);
                if let Then::Destinations(destinations) = &condition.then
                    && let Some(key) = &destinations.hash_key
                {
                    builder.reads(key);
                }
                builder.step(number, when);
            }
            Step::Tag(tag) => {
                let insists = builder.intern(&tag.force);
                builder.reads(&tag.tag);
                values.push(ValueSource { stage, step: at, insists });
                builder.step(number, When::Always);
            }
            Step::Affinity(_) => builder.step(number, When::Always),
            Step::Equal(equal) => {
                builder.reads(&equal.key);
                let insists = builder.intern(&CallTest::Never);
                values.push(ValueSource { stage, step: at, insists });
                builder.step(number, When::Always);
            }
        }
    }
}

impl QuickIndex {
    fn new(calls: &CallIndex) -> QuickIndex {
        let (list, looks_inside) = calls.exact_methods();
        let names = list.len();
        let mut by_method = HashTable::new();
        if names > FEW_NAMES {
            let hashes: Vec<u64> = list.iter().map(|name| hash::bytes(hash::seed(), name)).collect();
            by_method.reserve(names, |place: &u32| hashes.get(*place as usize).copied().unwrap_or(0));
            for (place, hash) in (0u32..).zip(&hashes) {
                by_method
                    .insert_unique(*hash, place, |place| hashes.get(*place as usize).copied().unwrap_or(0));
            }
        }
        let every_other = (!looks_inside).then(Box::default);
        let slots = list.into_iter().chain(every_other).map(|name| (name, Quick::default())).collect();
        QuickIndex { by_method, slots, names }
    }

    #[inline]
    fn find(&self, method: &[u8]) -> Option<u32> {
        let same =
            |place: u32| self.slots.get(place as usize).is_some_and(|(name, _)| hash::same(name, method));
        let known = if self.names <= FEW_NAMES {
            (0..self.names as u32).find(|place| same(*place))
        } else {
            self.by_method.find(hash::bytes(hash::seed(), method), |place| same(*place)).copied()
        };
        let every_other = (self.slots.len() > self.names).then_some(self.names as u32);
        known.or(every_other)
    }
}
