//! A chain: routers over one invoker list for one consumer. Writers compile a new world and swap it in; readers never
//! wait for them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::compiled::Compiled;
use super::live::{Kind, Live};
use super::picking::{PickOptions, Picking};
use super::plan::{Assembly, Plan, StageBody, StageSource};
use super::program::{Lowering, Program, Rule};
use super::recent::Recent;
use super::router::{ActiveRule, Router, RouterSlot, SlotBody, Trouble, select};
use super::snapshot::Invokers;
use super::store::{RuleStore, Subscriber};
use super::url::Url;
use crate::error::{Error, Result};
use crate::runtime::random::{RandomSource, SharedStream};
use crate::sys::published::Published;

/// What a chain is made of.
pub struct ChainOptions {
    /// The consumer URL. Parameter `router` selects routers ([`select`]).
    pub consumer: Url,
    /// The dialect, a number the rule languages give out.
    pub dialect: u8,
    /// An empty list ends the chain (Dubbo's default). Otherwise later routers still see it.
    pub fail_fast: bool,
    /// Every router the chain may use: built-in ones, static rules, host routers by name.
    pub routers: Vec<RouterSlot>,
    /// Bytes of memoised results one world may keep; 0 switches the memo off. Default 32 MiB.
    pub memo_bytes: usize,
    /// The last calls are kept to be explained ([`Chain::keep_recent`]). Default no.
    pub keep_recent: bool,
    /// What picks stand on.
    pub picks: PickOptions,
}

impl ChainOptions {
    /// Options with the usual values.
    pub fn new(consumer: Url, routers: Vec<RouterSlot>) -> ChainOptions {
        ChainOptions {
            consumer,
            dialect: 0,
            fail_fast: true,
            routers,
            memo_bytes: 32 << 20,
            keep_recent: false,
            picks: PickOptions::default(),
        }
    }
}

/// A chain. Shared: cloning gives another handle on the same chain. Any thread.
#[derive(Clone)]
pub struct Chain {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) current: Published<Plan>,
    /// Of the current plan; what sessions compare.
    pub(crate) generation: AtomicU64,
    state: Mutex<State>,
    /// Something has changed since the last rebuild began.
    dirty: AtomicBool,
    /// Changes that are to take effect together are under way; the last one to end makes the world.
    held: AtomicUsize,
    /// Keys whose rules the chain wants.
    wanted: Mutex<Vec<Arc<str>>>,
    keys_observer: Mutex<Option<Arc<KeysObserver>>>,
    rules: Arc<RuleStore>,
    consumer: Arc<Url>,
    dialect: u8,
    fail_fast: bool,
    memo_bytes: usize,
    pub(crate) random: Arc<RandomSource>,
    /// For calls without a session.
    pub(crate) stream: SharedStream,
    pub(crate) picking: Arc<Picking>,
    _live: Live,
}

type KeysObserver = Box<dyn Fn(&[Arc<str>]) + Send + Sync>;

struct State {
    invokers: Arc<Invokers>,
    slots: Vec<RouterSlot>,
    recent: Option<Arc<Recent>>,
    generation: u64,
    /// What the last rebuild made of rules and list.
    made: Made,
}

/// What a rebuild made, for the next one that differs little. Only what a world uses is carried on, so that nothing
/// piles up.
#[derive(Default)]
struct Made {
    lowered: LoweredRules,
    compiled: CompiledPrograms,
    /// By router name.
    bound: HashMap<Arc<str>, BoundRules>,
}

/// A router over rules, and what it was made from.
#[derive(Clone)]
struct BoundRules {
    invokers: u64,
    rules: Vec<(Arc<str>, Arc<dyn Rule>)>,
    router: Option<Arc<dyn Router>>,
}

impl BoundRules {
    fn is_of(&self, invokers: &Invokers, rules: &[ActiveRule]) -> bool {
        let same = |((key, rule), one): (&(Arc<str>, Arc<dyn Rule>), &ActiveRule)| {
            *key == one.key && std::ptr::addr_eq(Arc::as_ptr(rule), Arc::as_ptr(&one.rule))
        };
        self.invokers == invokers.id()
            && self.rules.len() == rules.len()
            && self.rules.iter().zip(rules).all(same)
    }
}

/// A rule that stands in for the one under a key; `None`: no rule.
type Instead<'i> = (&'i str, Option<Arc<dyn Rule>>);

/// By router name and key.
type LoweredRules = HashMap<(Arc<str>, Arc<str>), Lowered>;
/// By address of the program, which they keep alive.
type CompiledPrograms = HashMap<usize, Arc<Compiled>>;

#[derive(Clone)]
struct Lowered {
    rule: Arc<dyn Rule>,
    /// The last program that could be made for this key.
    program: Option<Arc<Program>>,
    error: Option<Error>,
}

/// How a router of a chain stands.
#[derive(Clone, Debug)]
pub struct RouterStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Its place.
    pub priority: i64,
    /// The key of its rule, if it has one at the moment.
    pub key: Option<Arc<str>>,
    /// Counts the texts the key was given; 0 without a rule.
    pub revision: u64,
    /// Version of the rule in force.
    pub version: String,
    /// It does something.
    pub in_force: bool,
    /// Why the last text was refused, or could not be made to work for this chain.
    pub error: Option<Error>,
    /// What went wrong while it decided calls, which it then passed on unchanged.
    pub trouble: Option<Trouble>,
}

impl Chain {
    /// A chain without providers. It takes rules from `rules` at once and whenever they change.
    pub fn new(options: ChainOptions, rules: Arc<RuleStore>, random: Arc<RandomSource>) -> Chain {
        let ChainOptions { consumer, dialect, fail_fast, routers, memo_bytes, keep_recent, picks } = options;
        let picking = Arc::new(Picking::new(picks, &consumer));
        let slots = select(&routers, consumer.parameter("router"));
        let consumer = Arc::new(consumer);
        let invokers = Invokers::none();
        let plan = Plan::new(Assembly {
            generation: 0,
            invokers: Arc::clone(&invokers),
            consumer: Arc::clone(&consumer),
            fail_fast,
            stages: Vec::new(),
            memo_bytes,
            picking: Arc::clone(&picking),
            recent: None,
        });
        let stream = random.shared_stream();
        let shared = Arc::new(Shared {
            current: Published::new(Arc::new(plan)),
            generation: AtomicU64::new(0),
            state: Mutex::new(State {
                invokers,
                slots,
                recent: keep_recent.then(Arc::default),
                generation: 0,
                made: Made::default(),
            }),
            dirty: AtomicBool::new(true),
            held: AtomicUsize::new(0),
            wanted: Mutex::default(),
            keys_observer: Mutex::default(),
            rules: Arc::clone(&rules),
            consumer,
            dialect,
            fail_fast,
            memo_bytes,
            random,
            stream,
            picking,
            _live: Live::new(Kind::Chain),
        });
        let weak: std::sync::Weak<Shared> = Arc::downgrade(&shared);
        rules.subscribe(weak);
        shared.refresh();
        Chain { shared }
    }

    /// Gives the chain another list. When this returns, calls route over it, under the rules in force now.
    pub fn set_invokers(&self, invokers: Arc<Invokers>) {
        {
            let mut state = self.shared.state.lock();
            state.invokers = invokers;
            self.shared.dirty.store(true, Ordering::SeqCst);
        }
        self.shared.refresh();
    }

    /// Makes several changes take effect as one world: lists, routers and rules set inside `change`, and whatever
    /// other threads set meanwhile, are seen when this returns, all at once.
    pub fn together<R>(&self, change: impl FnOnce() -> R) -> R {
        struct Held<'s>(&'s Shared);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.held.fetch_sub(1, Ordering::SeqCst);
                self.0.refresh();
            }
        }
        self.shared.held.fetch_add(1, Ordering::SeqCst);
        let _held = Held(&self.shared);
        change()
    }

    /// Keys whose rules the chain would want if it had this list.
    pub fn keys_with(&self, invokers: &Invokers) -> Vec<Arc<str>> {
        wanted_by(&self.shared.state.lock().slots, invokers)
    }

    /// The list of the current world.
    pub fn invokers(&self) -> Arc<Invokers> {
        Arc::clone(&self.shared.current.read().invokers)
    }

    /// Replaces the routers, for example when a static rule from a URL came or a host router was registered.
    pub fn set_routers(&self, routers: &[RouterSlot]) {
        let slots = select(routers, self.shared.consumer.parameter("router"));
        {
            let mut state = self.shared.state.lock();
            state.slots = slots;
            self.shared.dirty.store(true, Ordering::SeqCst);
        }
        self.shared.refresh();
    }

    /// The consumer URL.
    pub fn consumer(&self) -> &Url {
        &self.shared.consumer
    }

    /// The dialect's number.
    pub fn dialect(&self) -> u8 {
        self.shared.dialect
    }

    /// The rules this chain takes its own from.
    pub fn rules(&self) -> &Arc<RuleStore> {
        &self.shared.rules
    }

    /// Keys whose rules the chain wants at the moment, in router order, without repetition. They depend on the first
    /// provider's application.
    pub fn keys(&self) -> Vec<Arc<str>> {
        self.shared.wanted.lock().clone()
    }

    /// Called when [`keys`](Self::keys) change, on the thread that caused it, without a lock.
    pub fn observe_keys(&self, observer: impl Fn(&[Arc<str>]) + Send + Sync + 'static) {
        *self.shared.keys_observer.lock() = Some(Arc::new(Box::new(observer)));
    }

    /// Number of the current world; grows with every change.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// How each router stands, in chain order; a router that follows several keys once for each.
    pub fn status(&self) -> Vec<RouterStatus> {
        let state = self.shared.state.lock();
        let mut list = Vec::new();
        for slot in &state.slots {
            let (keys, always): (Vec<Arc<str>>, bool) = match &slot.body {
                SlotBody::Rule { key, otherwise } => {
                    (key.resolve(&state.invokers).into_iter().collect(), otherwise.is_some())
                }
                SlotBody::Rules(router) => (router.keys(&state.invokers), false),
                SlotBody::Program(_) | SlotBody::Foreign(_) => (Vec::new(), true),
            };
            let router = match &slot.body {
                SlotBody::Foreign(router) => Some(router),
                SlotBody::Rules(_) => state.made.bound.get(&slot.name).and_then(|one| one.router.as_ref()),
                _ => None,
            };
            let trouble = router.and_then(|router| router.trouble());
            let of_key = |key: Option<Arc<str>>| {
                let stored = key.as_ref().and_then(|key| self.shared.rules.status_of(key));
                let active = key.as_ref().and_then(|key| self.shared.rules.active(key, self.shared.dialect));
                let lowered = key
                    .as_ref()
                    .and_then(|key| state.made.lowered.get(&(Arc::clone(&slot.name), Arc::clone(key))));
                RouterStatus {
                    name: Arc::clone(&slot.name),
                    priority: slot.priority,
                    revision: stored.as_ref().map_or(0, |status| status.revision),
                    version: active.as_ref().map(|(rule, _)| rule.version().to_owned()).unwrap_or_default(),
                    in_force: always || active.is_some_and(|(rule, _)| rule.in_force()),
                    error: stored
                        .and_then(|status| status.error)
                        .or_else(|| lowered.and_then(|one| one.error.clone())),
                    trouble: trouble.clone(),
                    key,
                }
            };
            if keys.is_empty() {
                list.push(of_key(None));
            } else {
                list.extend(keys.into_iter().map(|key| of_key(Some(key))));
            }
        }
        list
    }

    /// The world this chain would have if a key held another rule (`None`: no rule). Nothing changes.
    pub(crate) fn plan_with(&self, key: &str, rule: Option<Arc<dyn Rule>>) -> Result<Arc<Plan>> {
        let shared = &self.shared;
        let state = shared.state.lock();
        let stages = shared.stages(&state, Some(&(key, rule)), &mut Made::default())?;
        Ok(Arc::new(shared.assemble(state.generation, &state.invokers, stages, None)))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({}, generation {})", self.shared.consumer.text(), self.generation())
    }
}

impl Shared {
    /// Makes what has changed take effect. Writers that come while one is at work find their change done.
    fn refresh(&self) {
        // The order matters: `dirty` was set before this look, and who holds looks at it after letting go.
        if self.held.load(Ordering::SeqCst) > 0 {
            return;
        }
        let mut state = self.state.lock();
        if !self.dirty.swap(false, Ordering::SeqCst) {
            return;
        }
        let changed = self.want(&state);
        let mut made = Made::default();
        // Without a proposed rule nothing fails: a rule that cannot be lowered leaves its predecessor in force.
        let stages = self.stages(&state, None, &mut made).unwrap_or_default();
        state.made = made;
        state.generation += 1;
        let plan = self.assemble(state.generation, &state.invokers, stages, state.recent.as_ref());
        self.current.replace(Arc::new(plan));
        self.generation.store(state.generation, Ordering::Release);
        drop(state);
        self.current.sweep();
        if changed {
            let observer = self.keys_observer.lock().clone();
            if let Some(observer) = observer {
                let keys = self.wanted.lock().clone();
                observer(&keys);
            }
        }
    }

    /// Publishes the wanted keys before the rules are read, so that a rule set meanwhile is not missed. True when
    /// they changed.
    fn want(&self, state: &State) -> bool {
        let keys = wanted_by(&state.slots, &state.invokers);
        let mut wanted = self.wanted.lock();
        let changed = *wanted != keys;
        *wanted = keys;
        changed
    }

    /// Where calls are kept now.
    pub(crate) fn recent(&self) -> Option<Arc<Recent>> {
        self.state.lock().recent.clone()
    }

    /// Keeps calls there from now on.
    pub(crate) fn keep_recent(&self, recent: Option<Arc<Recent>>) {
        let before = {
            let mut state = self.state.lock();
            self.dirty.store(true, Ordering::SeqCst);
            std::mem::replace(&mut state.recent, recent)
        };
        self.refresh();
        drop(before);
    }

    fn assemble(
        &self,
        generation: u64,
        invokers: &Arc<Invokers>,
        stages: Vec<StageSource>,
        recent: Option<&Arc<Recent>>,
    ) -> Plan {
        Plan::new(Assembly {
            generation,
            invokers: Arc::clone(invokers),
            consumer: Arc::clone(&self.consumer),
            fail_fast: self.fail_fast,
            stages,
            memo_bytes: self.memo_bytes,
            picking: Arc::clone(&self.picking),
            recent: recent.map(Arc::downgrade),
        })
    }

    fn stages(
        &self,
        state: &State,
        instead: Option<&Instead<'_>>,
        made: &mut Made,
    ) -> Result<Vec<StageSource>> {
        let active = |key: &str| match instead {
            Some((name, rule)) if *name == key => Some((rule.clone()?, u64::MAX)),
            _ => self.rules.active(key, self.dialect),
        };
        let mut stages = Vec::new();
        for slot in &state.slots {
            let mut rule = None;
            let body = match &slot.body {
                SlotBody::Foreign(router) => StageBody::Foreign(Arc::clone(router)),
                SlotBody::Rules(router) => {
                    let in_force = |key: Arc<str>| {
                        let (rule, revision) = active(&key).filter(|(rule, _)| rule.in_force())?;
                        Some(ActiveRule { key, rule, revision })
                    };
                    let rules: Vec<ActiveRule> =
                        router.keys(&state.invokers).into_iter().filter_map(in_force).collect();
                    let Some(first) = rules.first() else { continue };
                    rule = Some((Arc::clone(&first.key), first.revision));
                    let known = state.made.bound.get(&slot.name);
                    let bound = match known.filter(|known| known.is_of(&state.invokers, &rules)) {
                        Some(known) => known.clone(),
                        None => BoundRules {
                            invokers: state.invokers.id(),
                            router: router.bind(&state.invokers, &rules, instead.is_some()),
                            rules: rules.into_iter().map(|one| (one.key, one.rule)).collect(),
                        },
                    };
                    let router = bound.router.clone();
                    made.bound.insert(Arc::clone(&slot.name), bound);
                    match router {
                        Some(router) => StageBody::Foreign(router),
                        None => continue,
                    }
                }
                SlotBody::Program(program) => {
                    StageBody::Program(compile(program, state, None, &mut made.compiled))
                }
                SlotBody::Rule { key, otherwise } => {
                    let key = key.resolve(&state.invokers);
                    let active = key.as_ref().and_then(|key| active(key));
                    let before = key.as_ref().and_then(|key| {
                        state.made.lowered.get(&(Arc::clone(&slot.name), Arc::clone(key)))?.program.as_ref()
                    });
                    let program = match (key.clone(), active) {
                        (Some(key), Some((active, revision))) if active.in_force() => {
                            let one = self.lower(state, &slot.name, &key, active);
                            if let (Some(_), Some(error)) = (instead, &one.error) {
                                return Err(error.clone());
                            }
                            let program = one.program.clone();
                            made.lowered.insert((Arc::clone(&slot.name), Arc::clone(&key)), one);
                            rule = Some((key, revision));
                            program
                        }
                        _ => None,
                    };
                    match program.or_else(|| otherwise.clone()) {
                        Some(program) => {
                            StageBody::Program(compile(&program, state, before, &mut made.compiled))
                        }
                        None => continue,
                    }
                }
            };
            stages.push(StageSource { name: Arc::clone(&slot.name), priority: slot.priority, rule, body });
        }
        Ok(stages)
    }

    fn lower(&self, state: &State, router: &Arc<str>, key: &Arc<str>, rule: Arc<dyn Rule>) -> Lowered {
        let before = state.made.lowered.get(&(Arc::clone(router), Arc::clone(key)));
        if let Some(before) = before
            && std::ptr::addr_eq(Arc::as_ptr(&before.rule), Arc::as_ptr(&rule))
        {
            return before.clone();
        }
        let at = Lowering { consumer: &self.consumer, dialect: self.dialect };
        let lowered = match before {
            Some(Lowered { rule: earlier, program: Some(program), error: None }) => {
                rule.lower_after(&at, &**earlier, program)
            }
            _ => rule.lower(&at),
        };
        let (program, error) = match lowered {
            Ok(program) => (Some(Arc::new(program)), None),
            Err(error) => {
                let error = if error.about().is_empty() { error.subject(&**key) } else { error };
                (before.and_then(|before| before.program.clone()), Some(error))
            }
        };
        Lowered { rule, program, error }
    }
}

/// Keys of the rules that these routers want over a list, without repetition.
fn wanted_by(slots: &[RouterSlot], invokers: &Invokers) -> Vec<Arc<str>> {
    let mut keys: Vec<Arc<str>> = Vec::new();
    for slot in slots {
        let of_slot = match &slot.body {
            SlotBody::Rule { key, .. } => key.resolve(invokers).into_iter().collect(),
            SlotBody::Rules(router) => router.keys(invokers),
            SlotBody::Program(_) | SlotBody::Foreign(_) => Vec::new(),
        };
        for key in of_slot {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

/// The program over the list, from those already compiled if it is among them, else after what was there `before`.
fn compile(
    program: &Arc<Program>,
    state: &State,
    before: Option<&Arc<Program>>,
    used: &mut CompiledPrograms,
) -> Arc<Compiled> {
    let address = Arc::as_ptr(program) as usize;
    let same = |one: &&Arc<Compiled>| one.invokers == state.invokers.id();
    let known = used.get(&address).or_else(|| state.made.compiled.get(&address)).filter(same);
    let compiled = match known {
        Some(known) => Arc::clone(known),
        None => {
            let before = before.and_then(|before| state.made.compiled.get(&(Arc::as_ptr(before) as usize)));
            Arc::new(Compiled::new(program, &state.invokers, before.map(|before| &**before)))
        }
    };
    used.insert(address, Arc::clone(&compiled));
    compiled
}

impl Subscriber for Shared {
    fn rule_changed(&self, key: &str) {
        if self.wanted.lock().iter().any(|wanted| **wanted == *key) {
            self.dirty.store(true, Ordering::SeqCst);
            self.refresh();
        }
    }
}
