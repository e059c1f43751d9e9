//! Routing through a session: it pins a world and costs next to nothing per call.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrayvec::ArrayVec;

use super::bits::{Bits, Form, Rows};
use super::calls::Facts;
use super::chain::{Chain, Shared};
use super::choice::{Choice, MAX_DRAWS, choose, go_on};
use super::hash;
use super::invocation::Invocation;
use super::live::{Kind, Live};
use super::looked::{Kept, LONGEST, Looked};
use super::memo::{Node, NodeKind};
use super::plan::Plan;
use super::reference::destination_of;
use super::run::{Draws, Machine, Place, Scratch, draw_number, rows_into};
use super::snapshot::Invokers;
use super::view::{View, view_of};
use crate::error::{Error, Result, Status};
use crate::runtime::random::{Draw, Stream};
use crate::sys::thread;

/// Slots of a session's own table.
const SLOTS: usize = 128;
/// Keys up to this length are kept in the slot itself.
const INLINE: usize = 40;

/// Routes calls on one thread. Exclusive; belongs to the thread that made it until [`adopt`](Self::adopt).
///
/// Pins the world it last used: the list's tags stay valid until the next call, [`idle`](Self::idle) or drop.
pub struct Session {
    chain: Arc<Shared>,
    plan: Option<Arc<Plan>>,
    generation: u64,
    owner: AtomicUsize,
    seed: u64,
    slots: Box<[Slot]>,
    marks: [Mark; MARKS],
    used: usize,
    /// The slot of the call before: most threads repeat a method.
    last: usize,
    stream: Stream,
    /// For picks; lent out while a view is.
    pub(crate) pick_stream: Stream,
    facts: Facts,
    kept: Kept,
    scratch: Scratch,
    key: Vec<u8>,
    path: ArrayVec<u32, MAX_DRAWS>,
    /// A node that no slot holds.
    loose: Option<Arc<Node>>,
    _live: Live,
}

/// One remembered call: what rules look at of it, and its node.
#[derive(Default)]
struct Slot {
    hash: u64,
    node: Option<Arc<Node>>,
    long: Option<Box<[u8]>>,
    len: u32,
    /// The key is a method name and nothing else.
    bare: bool,
    short: Inline,
}

struct Inline([u8; INLINE]);

impl Default for Inline {
    fn default() -> Self {
        Inline([0; INLINE])
    }
}

impl Slot {
    #[inline(always)]
    fn is_for(&self, bare: bool, key: &[u8]) -> bool {
        if self.node.is_none() || self.bare != bare || self.len as usize != key.len() {
            return false;
        }
        match &self.long {
            None => self.short.0.get(..key.len()).is_some_and(|own| hash::same(own, key)),
            Some(own) => **own == *key,
        }
    }

    /// True for the call whose key these pieces make, which is not written down for that.
    #[inline(always)]
    fn is_for_pieces(&self, looked: &Looked<'_>, plan: &Plan, call: &Invocation<'_>) -> bool {
        if self.node.is_none() || self.bare {
            return false;
        }
        match &self.long {
            None => self.short.0.get(..self.len as usize).is_some_and(|own| looked.is_key(own, plan, call)),
            Some(own) => looked.is_key(own, plan, call),
        }
    }

    fn fill(&mut self, hash: u64, bare: bool, key: &[u8], node: Arc<Node>) {
        self.hash = hash;
        self.bare = bare;
        self.len = key.len() as u32;
        match self.short.0.get_mut(..key.len()) {
            Some(own) => {
                own.copy_from_slice(key);
                self.long = None;
            }
            None => self.long = Some(key.into()),
        }
        self.node = Some(node);
    }
}

/// A call that was in a slot when it was last looked for: callers that ask the same again name it by a number.
#[derive(Clone, Copy, Default)]
struct Mark {
    stamp: u64,
    slot: u32,
}

const MARKS: usize = 16;

#[inline(always)]
fn mark_of(stamp: u64) -> usize {
    (stamp ^ stamp >> 32) as usize % MARKS
}

/// A remembered answer that nobody has looked at yet.
#[derive(Clone, Copy)]
pub struct Remembered<'a> {
    plan: &'a Plan,
    /// Rows, for good: looked into when somebody asks.
    node: &'a Node,
}

impl<'a> Remembered<'a> {
    /// The answer.
    #[inline]
    pub fn view(self) -> View<'a> {
        view_of(Some(self.plan), Some(self.node), &[])
    }
}

impl Remembered<'_> {
    /// Copies as many tags as fit; how many there are, and the number of the world that answered.
    #[inline(always)]
    pub fn tags_into(self, out: &mut [u64]) -> (usize, u64) {
        match &self.node.kind {
            NodeKind::Rows(outcome) => (outcome.tags_into(&self.plan.invokers, out), self.plan.generation),
            NodeKind::Draw { .. } => (0, self.plan.generation),
        }
    }
}

impl fmt::Debug for Remembered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

/// A call no slot holds.
struct Missing {
    hash: u64,
    bare: bool,
    /// The first slot it may take.
    place: usize,
}

/// Where the answer of a call is.
#[derive(Clone, Copy)]
enum Found {
    /// In this slot, through the draws in `path`.
    Slot(usize),
    /// In `loose`, through the draws in `path`.
    Loose,
    /// In this slot or `loose`, through the draws in `path`; foreign routers follow.
    Foreign(Option<usize>),
    /// The plan must run.
    Run,
}

impl Chain {
    /// A session of the calling thread, with a random stream of its own.
    pub fn session(&self) -> Session {
        Session {
            chain: Arc::clone(&self.shared),
            plan: None,
            generation: u64::MAX,
            owner: AtomicUsize::new(thread::token()),
            seed: hash::seed(),
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            marks: [Mark::default(); MARKS],
            used: 0,
            last: 0,
            stream: self.shared.random.stream(),
            pick_stream: self.shared.random.stream(),
            facts: Facts::default(),
            kept: Kept::default(),
            scratch: Scratch::default(),
            key: Vec::new(),
            path: ArrayVec::new(),
            loose: None,
            _live: Live::new(Kind::Session),
        }
    }
}

impl Session {
    /// True when the calling thread owns the session. One load and one compare; may be called on any thread.
    #[inline]
    pub fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == thread::token()
    }

    /// Makes the calling thread the owner. No other thread may be inside a call.
    pub fn adopt(&self) {
        self.owner.store(thread::token(), Ordering::Relaxed);
    }

    /// Lets go of the world the session pins, for a thread that will not route for a while.
    pub fn idle(&mut self) {
        self.forget();
        self.plan = None;
        self.generation = u64::MAX;
    }

    fn forget(&mut self) {
        self.loose = None;
        self.kept.forget();
        self.marks = [Mark::default(); MARKS];
        if self.used > 0 {
            self.used = 0;
            for slot in &mut self.slots {
                if slot.node.take().is_some() {
                    slot.hash = 0;
                    slot.len = u32::MAX;
                }
            }
        }
    }

    #[inline(always)]
    fn prepare(&mut self) -> Result<()> {
        if !self.is_mine() {
            return Err(Error::new(Status::E_BUSY, "the session belongs to another thread; adopt it first"));
        }
        if self.chain.generation.load(Ordering::Acquire) != self.generation {
            self.renew();
        }
        Ok(())
    }

    #[cold]
    fn renew(&mut self) {
        self.forget();
        let plan = self.chain.current.load();
        self.generation = plan.generation;
        self.plan = Some(plan);
    }

    /// Routes a call: a borrowed view, no copy and, for a class of calls seen before, no allocation.
    ///
    /// # Errors
    /// `E_BUSY` on another thread than the owner's; what a host router failed with.
    #[inline]
    pub fn route(&mut self, call: &Invocation<'_>) -> Result<View<'_>> {
        self.prepare()?;
        match self.find(call) {
            Found::Slot(slot) => {
                let node = self.slots.get(slot).and_then(|slot| slot.node.as_deref());
                Ok(view_of(self.plan.as_deref(), node, &self.path))
            }
            Found::Loose => Ok(view_of(self.plan.as_deref(), self.loose.as_deref(), &self.path)),
            Found::Foreign(slot) => self.foreign(call, slot),
            Found::Run => self.run(call, None),
        }
    }

    /// Routes a call under an availability mask: bit *n* = row *n* of the list may serve. The program runs; the memo
    /// is not used, because a fall-back under a mask is not the mask of a fall-back.
    ///
    /// # Errors
    /// As [`route`](Self::route), and `E_STATE` when the mask was made for another list than the current one.
    pub fn route_masked<'s>(
        &'s mut self,
        call: &Invocation<'_>,
        invokers: &Invokers,
        mask: &'s Bits,
    ) -> Result<View<'s>> {
        self.prepare()?;
        if self.plan.as_ref().is_none_or(|plan| plan.invokers.id() != invokers.id()) {
            return Err(Error::new(Status::E_STATE, "the list has changed since the mask was made"));
        }
        self.run(call, Some(mask))
    }

    /// Routes many calls under one world and shows each result to `each`, with the call's position. What is a loop
    /// for the caller crosses a boundary once.
    ///
    /// # Errors
    /// The first error of any call; those before it have been shown.
    pub fn route_many(
        &mut self,
        calls: &[Invocation<'_>],
        mut each: impl FnMut(usize, View<'_>),
    ) -> Result<()> {
        self.prepare()?;
        for (i, call) in calls.iter().enumerate() {
            let view = match self.find(call) {
                Found::Slot(slot) => {
                    let node = self.slots.get(slot).and_then(|slot| slot.node.as_deref());
                    view_of(self.plan.as_deref(), node, &self.path)
                }
                Found::Loose => view_of(self.plan.as_deref(), self.loose.as_deref(), &self.path),
                Found::Foreign(slot) => self.foreign(call, slot)?,
                Found::Run => self.run(call, None)?,
            };
            each(i, view);
        }
        Ok(())
    }

    /// The list of the world the session pins, the current one if it pins none.
    ///
    /// # Errors
    /// `E_BUSY` on another thread than the owner's.
    pub fn invokers(&mut self) -> Result<Arc<Invokers>> {
        self.prepare()?;
        Ok(self.plan.as_ref().map_or_else(Invokers::none, |plan| Arc::clone(&plan.invokers)))
    }

    /// The last result as a choice that pins its world by itself, for example to explain it.
    pub fn choice(&mut self, call: &Invocation<'_>) -> Result<Choice> {
        self.prepare()?;
        let plan = self.plan.clone().unwrap_or_else(|| self.chain.current.load());
        let stream = &mut self.stream;
        choose(plan, call, None, &mut |bound| stream.below(bound))
    }

    /// The session's own random stream, for picks.
    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Where the answer of a call is [remembered](Self::remembered), if this world has given one that needs no draw and
    /// the session was asked for it by this stamp before: no host code runs and nothing is dropped. Otherwise
    /// [`recall_by_text`](Self::recall_by_text).
    ///
    /// `stamp` names what is in a call: two calls with the same stamp are the same call. 0: not named.
    #[inline(always)]
    pub fn recall(&self, stamp: u64) -> Option<usize> {
        if self.chain.generation.load(Ordering::Acquire) != self.generation {
            return None;
        }
        let mark = self.marks.get(mark_of(stamp))?;
        (mark.stamp == stamp && stamp != 0).then_some(mark.slot as usize)
    }

    /// The same by what is in the call. `None`: ask [`route`](Self::route).
    pub fn recall_by_text(&mut self, stamp: u64, call: &Invocation<'_>) -> Option<usize> {
        if self.chain.generation.load(Ordering::Acquire) != self.generation {
            return None;
        }
        let found = self.locate(call).ok()?;
        // Only a call that has rows which nothing comes behind.
        match self.slots.get(found)?.node.as_deref()? {
            Node { kind: NodeKind::Rows(outcome), .. } if outcome.resume_at.is_none() => {}
            _ => return None,
        }
        if let Some(mark) = self.marks.get_mut(mark_of(stamp)) {
            *mark = Mark { stamp, slot: found as u32 };
        }
        Some(found)
    }

    /// The answer at a place that [`recall`](Self::recall) or [`recall_by_text`](Self::recall_by_text) has just named.
    #[inline(always)]
    pub fn remembered(&self, place: usize) -> Option<Remembered<'_>> {
        match (self.plan.as_deref(), self.slots.get(place)?.node.as_deref()) {
            (Some(plan), Some(node)) => Some(Remembered { plan, node }),
            _ => None,
        }
    }

    /// The slot of a call; else what is needed to fill one.
    #[inline(always)]
    fn locate(&mut self, call: &Invocation<'_>) -> std::result::Result<usize, Missing> {
        let nowhere = Missing { hash: 0, bare: false, place: 0 };
        let Some(plan) = self.plan.as_deref() else { return Err(nowhere) };
        if !(call.attachments.is_empty() && call.arguments.is_empty() && plan.is_bare(call)) {
            return self.locate_looking(call);
        }
        let key = plan.bare_key(call);
        if self.slots.get(self.last).is_some_and(|slot| slot.is_for(true, key)) {
            return Ok(self.last);
        }
        self.last = search(&self.slots, self.seed, true, key)?;
        Ok(self.last)
    }

    /// The same for a call that has more than a method name.
    #[inline(never)]
    fn locate_looking(&mut self, call: &Invocation<'_>) -> std::result::Result<usize, Missing> {
        let Some(plan) = self.plan.as_deref() else { return Err(Missing { hash: 0, bare: false, place: 0 }) };
        let looked = Looked::at(plan, call);
        let bare = looked.is_bare;
        let last = self.slots.get(self.last);
        let key: &[u8] = if bare {
            let key = plan.bare_key(call);
            if last.is_some_and(|slot| slot.is_for(true, key)) {
                return Ok(self.last);
            }
            key
        } else {
            if last.is_some_and(|slot| slot.is_for_pieces(&looked, plan, call)) {
                return Ok(self.last);
            }
            looked.write_key(plan, call, &mut self.key);
            &self.key
        };
        self.last = search(&self.slots, self.seed, bare, key)?;
        Ok(self.last)
    }

    #[inline(always)]
    fn find(&mut self, call: &Invocation<'_>) -> Found {
        if self.plan.as_deref().is_none_or(|plan| plan.memo.is_off()) {
            return Found::Run;
        }
        match self.locate(call) {
            Ok(place) => self.found(call, place),
            Err(Missing { hash, bare, place }) => self.first_time(call, hash, bare, place),
        }
    }

    #[inline(always)]
    fn found(&mut self, call: &Invocation<'_>, place: usize) -> Found {
        match self.slots.get(place).and_then(|slot| slot.node.as_deref()).map(|node| &node.kind) {
            Some(NodeKind::Rows(outcome)) => {
                let foreign = outcome.resume_at.is_some();
                self.path.clear();
                if foreign { Found::Foreign(Some(place)) } else { Found::Slot(place) }
            }
            Some(NodeKind::Draw { .. }) => self.draw(call, Some(place)),
            None => Found::Run,
        }
    }

    #[cold]
    #[inline(never)]
    fn first_time(&mut self, call: &Invocation<'_>, hash: u64, bare: bool, place: usize) -> Found {
        let Some(plan) = self.plan.as_deref() else { return Found::Run };
        plan.facts(call, &mut self.facts);
        let Some(node) = plan.node(&self.facts, &mut self.scratch) else { return Found::Run };
        if bare && let Some(quick) = plan.quick(call) {
            let _ = quick.node.set(Arc::clone(&node));
        }
        let key: &[u8] = if bare { plan.bare_key(call) } else { &self.key };
        let in_slot = if key.len() <= LONGEST {
            // Of the two places the one that is free, else the first: it is then the older.
            let taken = |at: usize| self.slots.get(at).is_some_and(|slot| slot.node.is_some());
            let place = if taken(place) && !taken(place ^ 1) { place ^ 1 } else { place };
            if let Some(slot) = self.slots.get_mut(place) {
                slot.fill(hash, bare, key, Arc::clone(&node));
                self.used += 1;
                // Whoever was in the slot before is not there any more.
                self.marks = [Mark::default(); MARKS];
            }
            Some(place)
        } else {
            None
        };
        let (is_draw, foreign) = match &node.kind {
            NodeKind::Rows(outcome) => (false, outcome.resume_at.is_some()),
            NodeKind::Draw { .. } => (true, false),
        };
        self.path.clear();
        if in_slot.is_none() {
            self.loose = Some(node);
        }
        match in_slot {
            slot if is_draw => self.draw(call, slot),
            slot if foreign => Found::Foreign(slot),
            Some(place) => Found::Slot(place),
            None => Found::Loose,
        }
    }

    /// Draws destinations from a node on; the path ends in rows, or the plan must run.
    fn draw(&mut self, call: &Invocation<'_>, slot: Option<usize>) -> Found {
        let Session { plan, slots, loose, stream, path, facts, scratch, .. } = self;
        let (Some(plan), Some(root)) = (
            plan.as_deref(),
            match slot {
                Some(at) => slots.get(at).and_then(|slot| slot.node.as_ref()),
                None => loose.as_ref(),
            },
        ) else {
            return Found::Run;
        };
        path.clear();
        let mut node: &Node = root;
        loop {
            match &node.kind {
                NodeKind::Rows(outcome) if outcome.resume_at.is_some() => return Found::Foreign(slot),
                NodeKind::Rows(_) => return slot.map_or(Found::Loose, Found::Slot),
                NodeKind::Draw { weights, total, hash_key, skewed, children } => {
                    let number = draw_number(*total, hash_key.as_ref(), *skewed, call, &mut |bound| {
                        stream.below(bound)
                    });
                    let chosen = destination_of(weights.iter().copied(), number);
                    if path.try_push(chosen as u32).is_err() {
                        return Found::Run;
                    }
                    let Some(child) = children.get(chosen) else { return Found::Run };
                    node = match child.get() {
                        Some(child) => child,
                        None => {
                            plan.facts(call, facts);
                            let Some(made) = plan.compute(facts, path, scratch) else { return Found::Run };
                            child.get_or_init(|| made)
                        }
                    };
                }
            }
        }
    }

    /// Goes on from a memoised result with the foreign routers behind it.
    fn foreign(&mut self, call: &Invocation<'_>, slot: Option<usize>) -> Result<View<'_>> {
        let Session { plan, slots, loose, facts, scratch, stream, path, .. } = self;
        let Some(plan) = plan.as_deref() else { return Err(Error::bare(Status::E_STATE)) };
        let root = match slot {
            Some(at) => slots.get(at).and_then(|slot| slot.node.as_deref()),
            None => loose.as_deref(),
        };
        let memoised = view_of(Some(plan), root, path);
        let Some(outcome) = memoised.outcome else { return Err(Error::bare(Status::E_STATE)) };
        plan.facts(call, facts);
        rows_into(outcome.rows(), &mut scratch.list);
        scratch.drawn.clear();
        scratch.drawn.extend(path.iter().copied());
        let mut random = |bound| stream.below(bound);
        let emptied_by =
            go_on(plan, call, facts, scratch, &mut random, outcome.resume_at, outcome.emptied_by)?;
        let rows = Rows::List(&scratch.list);
        Ok(View {
            plan: Some(plan),
            rows,
            invokers: &plan.invokers,
            outcome: None,
            generation: plan.generation,
            emptied_by: plan.stage_name(emptied_by).filter(|_| rows.is_empty()),
        })
    }

    /// Runs the plan into the session's buffers.
    fn run<'s>(&'s mut self, call: &Invocation<'_>, mask: Option<&'s Bits>) -> Result<View<'s>> {
        let Session { plan, kept, scratch, stream, .. } = self;
        let Some(plan) = plan.as_ref() else { return Err(Error::bare(Status::E_STATE)) };
        let facts = kept.of(plan, call);
        let mut random = |bound| stream.below(bound);
        let mut machine = Machine::new(plan, facts, scratch, mask);
        let _ = machine.run(0, &mut Draws::Live(&mut random, call));
        let mut emptied_by = machine.emptied_by();
        let resume_at = machine.resume_at();
        let place = machine.place();
        if resume_at.is_some() {
            let outcome = machine.outcome();
            rows_into(outcome.rows(), &mut scratch.list);
            emptied_by = go_on(plan, call, facts, scratch, &mut random, resume_at, emptied_by)?;
        }
        if mask.is_none() && plan.recent.is_some() {
            plan.note(call, &scratch.drawn);
        }
        let plan: &Plan = plan;
        let rows = match place {
            _ if resume_at.is_some() => Rows::List(&scratch.list),
            Place::All => Rows::All(plan.invokers.len()),
            Place::Set(set) => match set.form() {
                Form::None => Rows::List(&[]),
                Form::All => Rows::All(set.rows()),
                Form::Sparse(list) => Rows::List(list),
                Form::Dense(bits) => Rows::Dense(bits, set.count(), &[]),
            },
            Place::Mask(bits) => Rows::Dense(bits, bits.count(), &[]),
            Place::Front => Rows::Dense(&scratch.front, scratch.front.count(), &[]),
            Place::List => Rows::List(&scratch.list),
            Place::Empty => Rows::List(&[]),
        };
        Ok(View {
            plan: Some(plan),
            rows,
            invokers: &plan.invokers,
            outcome: None,
            generation: plan.generation,
            emptied_by: plan.stage_name(emptied_by).filter(|_| rows.is_empty()),
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session(generation {})", self.generation)
    }
}

/// The slot of a key; else what is needed to fill one.
#[inline]
fn search(slots: &[Slot], seed: u64, bare: bool, key: &[u8]) -> std::result::Result<usize, Missing> {
    let hash = hash::bytes(seed, key) | 1;
    let place = (hash >> 32) as usize % SLOTS;
    let holds = |at: &usize| slots.get(*at).is_some_and(|slot| slot.hash == hash && slot.is_for(bare, key));
    [place, place ^ 1].into_iter().find(holds).ok_or(Missing { hash, bare, place })
}
