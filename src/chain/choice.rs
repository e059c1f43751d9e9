//! Routing without a session: a result that owns itself and pins its world.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use arrayvec::ArrayVec;

use super::bits::{Bits, Rows};
use super::calls::Facts;
use super::chain::Chain;
use super::invocation::Invocation;
use super::memo::{Node, NodeKind, Outcome, OwnedRows};
use super::plan::{Plan, StageBody};
use super::reference::destination_of;
use super::router::{Request, Verdict};
use super::run::{Draws, Machine, Scratch, draw_number, rows_into};
use super::snapshot::Invokers;
use super::view::View;
use crate::error::{Error, Result, Status};
use crate::runtime::random::Draw;
use crate::sys::pinned::{Pinned, Waiting};
use crate::sys::record::Record;

/// Most destinations one call can draw through the memo; a chain with more runs without it.
pub(crate) const MAX_DRAWS: usize = 16;

/// A routing result that owns itself and pins its world.
pub struct Choice {
    pub(crate) plan: World,
    body: ChoiceBody,
    /// Destinations drawn.
    pub(crate) drawn: Box<[u32]>,
}

enum ChoiceBody {
    /// Kept by the plan under this number ([`Plan::settled_at`]).
    Settled(u32),
    Node(Arc<Node>),
    Own(Outcome),
}

/// The world of a choice, pinned.
pub(crate) enum World {
    Counted(Arc<Plan>),
    /// By a count of the thread that routed.
    Pinned(Pinned<Plan>),
}

impl Deref for World {
    type Target = Plan;
    #[inline]
    fn deref(&self) -> &Plan {
        match self {
            World::Counted(plan) => plan,
            World::Pinned(plan) => plan,
        }
    }
}

impl From<Arc<Plan>> for World {
    fn from(plan: Arc<Plan>) -> World {
        World::Counted(plan)
    }
}

impl Choice {
    /// The choice that the plan keeps at a place.
    #[inline(always)]
    pub(crate) fn settled(plan: Pinned<Plan>, place: u32) -> Choice {
        Choice { plan: World::Pinned(plan), body: ChoiceBody::Settled(place), drawn: Box::default() }
    }

    /// What pins the world, when giving it back is all it takes to end this choice on the calling thread.
    #[inline(always)]
    pub(crate) fn pin(&self) -> Option<&Pinned<Plan>> {
        match (&self.plan, &self.body) {
            (World::Pinned(plan), ChoiceBody::Settled(_)) if plan.is_mine() && self.drawn.is_empty() => {
                Some(plan)
            }
            _ => None,
        }
    }

    fn outcome(&self) -> Option<&Outcome> {
        match &self.body {
            ChoiceBody::Own(outcome) => Some(outcome),
            ChoiceBody::Settled(place) => self.plan.settled_at(*place),
            ChoiceBody::Node(node) => match &node.kind {
                NodeKind::Rows(outcome) => Some(outcome),
                NodeKind::Draw { .. } => None,
            },
        }
    }

    /// Rows of [`invokers`](Self::invokers), ascending.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        self.outcome().map_or(Rows::List(&[]), Outcome::rows)
    }

    /// How many invokers may serve the call.
    pub fn len(&self) -> usize {
        self.rows().len()
    }

    /// True when none may.
    pub fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    /// The tag of the `n`-th.
    pub fn tag_at(&self, n: usize) -> Option<u64> {
        self.plan.invokers.tag(self.rows().nth(n)?)
    }

    /// All tags, as an array made when first asked for; `None` for more than 16 384, see [`tags_into`](Self::tags_into).
    pub fn tags(&self) -> Option<&[u64]> {
        match (self.rows(), self.plan.invokers.tags()) {
            (Rows::All(_), Some(tags)) => Some(tags),
            _ => self.outcome()?.tags(&self.plan.invokers),
        }
    }

    /// Copies as many tags as fit and answers how many there are.
    pub fn tags_into(&self, out: &mut [u64]) -> usize {
        copy_tags(self.rows(), &self.plan.invokers, out);
        self.len()
    }

    /// All tags in a new vector.
    pub fn to_tags(&self) -> Vec<u64> {
        let mut tags = vec![0; self.len()];
        self.tags_into(&mut tags);
        tags
    }

    /// The list it was chosen from.
    pub fn invokers(&self) -> &Arc<Invokers> {
        &self.plan.invokers
    }

    /// Number of the world that answered.
    pub fn generation(&self) -> u64 {
        self.plan.generation
    }

    /// The router that left nothing; `None` when something is left or there was nothing to begin with.
    pub fn emptied_by(&self) -> Option<&str> {
        let outcome = self.outcome()?;
        if !self.is_empty() {
            return None;
        }
        self.plan.stage_name(outcome.emptied_by).map(|name| &**name)
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Choice({} of {})", self.len(), self.plan.invokers.len())
    }
}

impl Chain {
    /// Routes a call without a session. The result pins its world.
    ///
    /// # Errors
    /// What a host router failed with.
    pub fn route(&self, call: &Invocation<'_>) -> Result<Choice> {
        match self.settled(call) {
            Ok(choice) => Ok(choice),
            Err(plan) => self.choose(plan, call, None),
        }
    }

    /// The answer to a call that has nothing but a method name and was answered before; else the world to ask.
    #[inline]
    pub(crate) fn settled(&self, call: &Invocation<'_>) -> std::result::Result<Choice, Arc<Plan>> {
        let plan = self.shared.current.read();
        let place = plan.quick_place(call).filter(|place| plan.settled_at(*place).is_some());
        let plan = plan.share();
        match place {
            Some(place) => {
                Ok(Choice { plan: plan.into(), body: ChoiceBody::Settled(place), drawn: Box::default() })
            }
            None => Err(plan),
        }
    }

    /// The same, as [`Choice::settled`] takes it, for a call named by `stamp` (see [`Session::recall`](super::session::Session::recall)), whose place is
    /// noted in `record` or found by `find`: no locked instruction, no allocation, nothing dropped. `Err`: ask
    /// [`route`](Self::route); with something, [`pinned::sweep`](crate::sys::pinned::sweep) must follow.
    #[inline(always)]
    pub(crate) fn recall(
        &self,
        record: &'static Record,
        stamp: u64,
        find: impl FnOnce(&Plan) -> Option<u32>,
    ) -> std::result::Result<(Pinned<Plan>, u32), Option<Waiting>> {
        let plan = self.shared.current.pin(record)?;
        match plan.recall_place(record, stamp, find) {
            Some(place) => Ok((plan, place)),
            None => Err(plan.give_back()),
        }
    }

    /// [`route_tags`](Self::route_tags) for a call as [`recall`](Self::recall) knows it; `None` is no answer. With
    /// something beside it, [`pinned::sweep`](crate::sys::pinned::sweep) must follow.
    #[inline(always)]
    pub(crate) fn recall_tags(
        &self,
        record: &Record,
        stamp: u64,
        find: impl FnOnce(&Plan) -> Option<u32>,
        out: &mut [u64],
    ) -> (Option<(usize, u64)>, Option<Waiting>) {
        let (answer, waiting) = self.shared.current.glimpse(record, |plan| {
            let outcome = plan.settled_at(plan.recall_place(record, stamp, find)?)?;
            Some((outcome.tags_into(&plan.invokers, out), plan.generation))
        });
        (answer.flatten(), waiting)
    }

    /// Routes a call under an availability mask: bit *n* = row *n* of [`Choice::invokers`] may serve. The memo is not
    /// used, because a fall-back under a mask is not the mask of a fall-back.
    ///
    /// # Errors
    /// `E_STATE` when the mask was made for another list than `invokers`; what a host router failed with.
    pub fn route_masked(&self, call: &Invocation<'_>, invokers: &Invokers, mask: &Bits) -> Result<Choice> {
        let plan = self.shared.current.load();
        if plan.invokers.id() != invokers.id() {
            return Err(Error::new(Status::E_STATE, "the list has changed since the mask was made"));
        }
        self.choose(plan, call, Some(mask))
    }

    /// Routes a call without a session and shows the result; no copy, and no allocation for a call seen before.
    ///
    /// # Errors
    /// What a host router failed with.
    pub fn route_with<T>(&self, call: &Invocation<'_>, body: impl FnOnce(View<'_>) -> T) -> Result<T> {
        let plan = self.shared.current.read();
        if let Some(outcome) = plan.settled(call) {
            return Ok(body(View::of(&plan, outcome)));
        }
        drop(plan);
        let choice = self.route(call)?;
        match choice.outcome() {
            Some(outcome) => Ok(body(View::of(&choice.plan, outcome))),
            None => Err(Error::bare(Status::E_STATE)),
        }
    }

    /// Copies the tags of a call's invokers into `out`, as many as fit; answers how many there are and the number of
    /// the world that answered.
    ///
    /// # Errors
    /// What a host router failed with.
    pub fn route_tags(&self, call: &Invocation<'_>, out: &mut [u64]) -> Result<(usize, u64)> {
        let plan = self.shared.current.read();
        if let Some(outcome) = plan.settled(call) {
            return Ok((outcome.tags_into(&plan.invokers, out), plan.generation));
        }
        drop(plan);
        let choice = self.route(call)?;
        copy_tags(choice.rows(), &choice.plan.invokers, out);
        Ok((choice.len(), choice.generation()))
    }

    fn choose(&self, plan: Arc<Plan>, call: &Invocation<'_>, mask: Option<&Bits>) -> Result<Choice> {
        let mut stream = &self.shared.stream;
        let mut random = move |bound| stream.below(bound);
        let choice = choose(plan, call, mask, &mut random)?;
        if let (None, World::Counted(plan)) = (mask, &choice.plan) {
            plan.note(call, &choice.drawn);
        }
        Ok(choice)
    }
}

impl Outcome {
    /// Copies as many tags as fit and answers how many there are.
    #[inline(always)]
    pub(super) fn tags_into(&self, invokers: &Invokers, out: &mut [u64]) -> usize {
        if !out.is_empty() {
            match self.tags(invokers) {
                Some(tags) => copy(tags, out),
                None => copy_tags(self.rows(), invokers, out),
            }
        }
        self.rows().len()
    }
}

#[inline]
fn copy(from: &[u64], to: &mut [u64]) {
    for (slot, tag) in to.iter_mut().zip(from) {
        *slot = *tag;
    }
}

#[inline]
pub(crate) fn copy_tags(rows: Rows<'_>, invokers: &Invokers, out: &mut [u64]) {
    match (rows, invokers.tags()) {
        (Rows::All(count), Some(tags)) => {
            copy(tags.get(..count).unwrap_or(tags), out);
        }
        (rows, Some(tags)) => {
            for (slot, row) in out.iter_mut().zip(rows.iter()) {
                *slot = tags.get(row).copied().unwrap_or(0);
            }
        }
        (rows, None) => out.iter_mut().zip(rows.iter()).for_each(|(slot, row)| *slot = row as u64),
    }
}

thread_local! {
    /// Buffers for calls without a session.
    static SPARE: RefCell<(Facts, Scratch)> = RefCell::default();
}

/// Runs with this thread's buffers, or, inside a nested call, with new ones.
fn with_buffers<T>(body: impl FnOnce(&mut Facts, &mut Scratch) -> T) -> T {
    SPARE.with(|spare| match spare.try_borrow_mut() {
        Ok(mut spare) => {
            let (facts, scratch) = &mut *spare;
            body(facts, scratch)
        }
        Err(_) => body(&mut Facts::default(), &mut Scratch::default()),
    })
}

/// Routes a call over a given world.
pub(crate) fn choose(
    plan: Arc<Plan>,
    call: &Invocation<'_>,
    mask: Option<&Bits>,
    random: &mut dyn FnMut(u64) -> u64,
) -> Result<Choice> {
    if mask.is_none()
        && let Some(slot) = plan.quick(call).map(|quick| &quick.node)
    {
        let node = match slot.get() {
            Some(node) => Some(Arc::clone(node)),
            None => with_buffers(|facts, scratch| {
                plan.facts(call, facts);
                plan.node(facts, scratch)
            }),
        };
        if let Some(node) = node {
            // Another thread may have been first; both nodes say the same.
            let node = Arc::clone(slot.get_or_init(|| node));
            if let NodeKind::Rows(outcome) = &node.kind
                && outcome.resume_at.is_none()
            {
                let (plan, body) = (plan.into(), ChoiceBody::Node(node));
                return Ok(Choice { plan, body, drawn: Box::default() });
            }
        }
    }
    with_buffers(|facts, scratch| {
        plan.facts(call, facts);
        if mask.is_none()
            && let Some(mut node) = plan.node(facts, scratch)
        {
            let mut path = ArrayVec::new();
            match walk(&plan, &mut node, call, random, &mut path, facts, scratch) {
                Some(true) => {
                    let (plan, body) = (plan.into(), ChoiceBody::Node(node));
                    return Ok(Choice { plan, body, drawn: path.as_slice().into() });
                }
                Some(false) => return foreign_choice(plan, &node, &path, call, random, facts, scratch),
                None => {}
            }
        }
        let outcome = {
            let mut machine = Machine::new(&plan, facts, scratch, mask);
            // Live draws are never missing.
            let _ = machine.run(0, &mut Draws::Live(random, call));
            machine.outcome()
        };
        let drawn = scratch.drawn.as_slice().into();
        finish_choice(plan, outcome, drawn, call, random, facts, scratch)
    })
}

/// Follows draws from a node to rows. `Some(true)`: there; `Some(false)`: there, foreign routers follow; `None`: the
/// memo has no room for what was drawn.
fn walk(
    plan: &Plan,
    node: &mut Arc<Node>,
    call: &Invocation<'_>,
    random: &mut dyn FnMut(u64) -> u64,
    path: &mut ArrayVec<u32, MAX_DRAWS>,
    facts: &Facts,
    scratch: &mut Scratch,
) -> Option<bool> {
    loop {
        let next = match &node.kind {
            NodeKind::Rows(outcome) => return Some(outcome.resume_at.is_none()),
            NodeKind::Draw { weights, total, hash_key, skewed, children } => {
                let number = draw_number(*total, hash_key.as_ref(), *skewed, call, random);
                let chosen = destination_of(weights.iter().copied(), number);
                path.try_push(chosen as u32).ok()?;
                let child = children.get(chosen)?;
                match child.get() {
                    Some(child) => Arc::clone(child),
                    None => {
                        let made = plan.compute(facts, path, scratch)?;
                        Arc::clone(child.get_or_init(|| made))
                    }
                }
            }
        };
        *node = next;
    }
}

fn foreign_choice(
    plan: Arc<Plan>,
    node: &Node,
    path: &[u32],
    call: &Invocation<'_>,
    random: &mut dyn FnMut(u64) -> u64,
    facts: &Facts,
    scratch: &mut Scratch,
) -> Result<Choice> {
    let NodeKind::Rows(outcome) = &node.kind else { return Err(Error::bare(Status::E_PANIC)) };
    rows_into(outcome.rows(), &mut scratch.list);
    scratch.drawn.clear();
    scratch.drawn.extend_from_slice(path);
    go_on(&plan, call, facts, scratch, random, outcome.resume_at, outcome.emptied_by).map(|emptied_by| {
        let rows = OwnedRows::List(scratch.list.as_slice().into());
        let drawn = scratch.drawn.as_slice().into();
        Choice { plan: plan.into(), body: ChoiceBody::Own(Outcome::new(rows, emptied_by, None)), drawn }
    })
}

fn finish_choice(
    plan: Arc<Plan>,
    outcome: Outcome,
    drawn: Box<[u32]>,
    call: &Invocation<'_>,
    random: &mut dyn FnMut(u64) -> u64,
    facts: &Facts,
    scratch: &mut Scratch,
) -> Result<Choice> {
    if outcome.resume_at.is_none() {
        return Ok(Choice { plan: plan.into(), body: ChoiceBody::Own(outcome), drawn });
    }
    rows_into(outcome.rows(), &mut scratch.list);
    let emptied_by = go_on(&plan, call, facts, scratch, random, outcome.resume_at, outcome.emptied_by)?;
    let rows = OwnedRows::List(scratch.list.as_slice().into());
    let drawn = scratch.drawn.as_slice().into();
    Ok(Choice { plan: plan.into(), body: ChoiceBody::Own(Outcome::new(rows, emptied_by, None)), drawn })
}

/// Goes on from a foreign router with the rows in `scratch.list`, which it leaves the result in. Answers the stage
/// that left nothing.
pub(crate) fn go_on(
    plan: &Plan,
    call: &Invocation<'_>,
    facts: &Facts,
    scratch: &mut Scratch,
    random: &mut dyn FnMut(u64) -> u64,
    mut resume_at: Option<u32>,
    mut emptied_by: Option<u32>,
) -> Result<Option<u32>> {
    while let Some(stage) = resume_at {
        let list = std::mem::take(&mut scratch.list);
        let mut numbers = std::mem::take(&mut scratch.drawn);
        let mut keep = |bound| {
            let number = random(bound);
            numbers.extend(halves(number));
            number
        };
        let kept = call_router(plan, stage, &list, call, &mut keep, false);
        scratch.drawn = numbers;
        let kept = kept?;
        scratch.list = match kept.0 {
            Some(kept) => kept,
            None => list,
        };
        if scratch.list.is_empty() && emptied_by.is_none() && !plan.invokers.is_empty() {
            emptied_by = Some(stage);
        }
        if scratch.list.is_empty() && plan.fail_fast {
            return Ok(emptied_by);
        }
        let drawn = std::mem::take(&mut scratch.drawn);
        let mut machine = Machine::resume(plan, facts, scratch, emptied_by);
        let _ = machine.run(stage as usize + 1, &mut Draws::Live(random, call));
        let outcome = machine.outcome();
        scratch.drawn.splice(0..0, drawn);
        rows_into(outcome.rows(), &mut scratch.list);
        resume_at = outcome.resume_at;
        emptied_by = outcome.emptied_by;
    }
    Ok(emptied_by)
}

/// A number drawn by a foreign router among the destinations drawn, so that an explanation repeats the draw.
fn halves(number: u64) -> [u32; 2] {
    [(number >> 32) as u32, number as u32]
}

/// Takes back what [`halves`] kept; `None` when it is not there.
pub(crate) fn drawn_number(drawn: &mut dyn Iterator<Item = u32>) -> Option<u64> {
    Some(u64::from(drawn.next()?) << 32 | u64::from(drawn.next()?))
}

/// Asks a foreign router. Answers the rows it keeps, in list order (`None`: all), and what it says about it.
pub(crate) fn call_router(
    plan: &Plan,
    stage: u32,
    rows: &[u32],
    call: &Invocation<'_>,
    random: &mut dyn FnMut(u64) -> u64,
    explaining: bool,
) -> Result<(Option<Vec<u32>>, Option<String>)> {
    let Some(stage) = plan.stages.get(stage as usize) else { return Ok((None, None)) };
    let StageBody::Foreign(router) = &stage.body else { return Ok((None, None)) };
    let mut kept = Vec::new();
    let mut request = Request {
        invokers: &plan.invokers,
        rows: Rows::List(rows),
        call,
        consumer: &plan.consumer,
        explaining,
        draw: random,
        message: None,
        kept: &mut kept,
    };
    let verdict = router.route(&mut request).map_err(|error| {
        if error.about().is_empty() { error.subject(format!("router {}", stage.name)) } else { error }
    })?;
    let message = request.message.take();
    match verdict {
        Verdict::Pass => Ok((None, message)),
        Verdict::Kept => {
            kept.sort_unstable();
            kept.dedup();
            kept.retain(|row| rows.binary_search(row).is_ok());
            Ok((Some(kept), message))
        }
    }
}
