//! The engines a rule runs through in tests: the naive reference, the program it is lowered to run by the plain
//! reference of programs, and the compiled engine.
#![allow(dead_code, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

use crate::naive::{Call, TagWay, World};
use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::router::{RouterSlot, SlotBody};
use byway::chain::session::Session;
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::chain::{self, invocation::Invocation, program::Program};
use byway::rules::dialect::Dialect;
use byway::rules::{Rule, RuleKind, lower, routers};
use byway::runtime::random::{Draw, HostRandom, RandomSource};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One router of a chain.
#[derive(Clone, Copy)]
pub(crate) enum Router<'r> {
    /// The router of a kind, with the rule in force.
    Rule(Option<&'r Rule>, RuleKind),
    /// The mock selector.
    Mock,
}

/// Runs the naive reference.
pub(crate) fn naive(
    router: Router<'_>,
    world: &World<'_>,
    draws: &mut dyn FnMut(u64) -> u64,
) -> (Vec<usize>, Option<TagWay>) {
    let list = world.all();
    match router {
        Router::Mock => (world.mock(list), None),
        Router::Rule(Some(Rule::Condition(rule)), _) => (world.condition_rule(rule, list, draws), None),
        Router::Rule(Some(Rule::Affinity(rule)), _) => (world.affinity_rule(rule, list), None),
        Router::Rule(rule, RuleKind::Tag) => {
            let rule = match rule {
                Some(Rule::Tag(rule)) => Some(rule),
                _ => None,
            };
            let (rows, way) = world.tag(rule, list);
            (rows, Some(way))
        }
        Router::Rule(..) => (list, None),
    }
}

/// A call always names a method once it is a call; only the naive reference can be asked without one.
pub(crate) fn names_method(router: Router<'_>) -> bool {
    use byway::rules::condition::Conditions;
    use byway::rules::expression::Key;
    let Router::Rule(Some(Rule::Condition(rule)), _) = router else { return false };
    let sides: Vec<_> = match &rule.conditions {
        Conditions::V30(list) => list.iter().map(|one| &one.when).collect(),
        Conditions::V31(list) => list.iter().map(|one| &one.from).collect(),
    };
    sides.iter().any(|side| side.keys.iter().any(|test| test.key == Key::Method))
}

/// A router lowered for one consumer, over one list.
pub(crate) struct Lowered {
    program: Program,
    invokers: Vec<chain::url::Url>,
}

impl Lowered {
    pub(crate) fn new(router: Router<'_>, dialect: Dialect, consumer: &str, invokers: &[String]) -> Lowered {
        let consumer = usable(consumer);
        let program = match router {
            Router::Mock => lower::mock(),
            Router::Rule(Some(rule), _) => lower::rule(rule, &consumer, dialect),
            Router::Rule(None, RuleKind::Tag) => lower::tag(None, &consumer, dialect),
            Router::Rule(None, _) => Program::new(Vec::new()),
        };
        Lowered { program, invokers: invokers.iter().map(|text| usable(text)).collect() }
    }

    pub(crate) fn route(&self, call: &Call, draw: &mut dyn FnMut(u64) -> u64) -> Vec<usize> {
        with_invocation(call, |call| {
            let mut run = chain::reference::Run { invokers: &self.invokers, call, draw };
            run.program(&self.program, (0..self.invokers.len()).collect())
        })
    }

    pub(crate) fn words(&self) -> String {
        let words = |step: &chain::program::Step| match step {
            chain::program::Step::Condition(one) => format!("{:?} => {}", one.when, one.text),
            _ => String::new(),
        };
        self.program.steps.iter().map(words).collect::<Vec<_>>().join("; ")
    }
}

/// The call as the engine takes it.
pub(crate) fn with_invocation<T>(call: &Call, run: impl FnOnce(&Invocation<'_>) -> T) -> T {
    let arguments: Vec<Option<&[u8]>> =
        call.arguments.iter().map(|text| text.as_deref().map(str::as_bytes)).collect();
    let attachments: Vec<(&[u8], &[u8])> =
        call.attachments.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let types: &[&[u8]] = if call.first_is_text || call.arguments.is_empty() { &[] } else { &[b"long"] };
    run(&Invocation {
        method: call.method.as_deref().unwrap_or_default().as_bytes(),
        types,
        arguments: &arguments,
        attachments: &attachments,
        ..Invocation::default()
    })
}

/// SplitMix64, seeded: tests must not depend on the day.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `bound`; the bias of a 64-bit modulus is beyond what these tests can see.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }
}

/// Numbers that every engine draws alike: the n-th one from a start that is set before each call.
#[derive(Default)]
pub(crate) struct Numbers(AtomicU64);

impl HostRandom for Numbers {
    fn next_u64(&self) -> u64 {
        Random(self.0.fetch_add(1, Ordering::Relaxed)).next()
    }
}

/// The same numbers, for the engines that are given a draw.
pub(crate) struct Replay(pub u64);

impl Draw for Replay {
    fn next_u64(&mut self) -> u64 {
        self.0 += 1;
        Random(self.0 - 1).next()
    }
}

/// A chain over one list, routed through a session.
pub(crate) struct Compiled {
    chain: Chain,
    session: Session,
    numbers: Arc<Numbers>,
}

impl Compiled {
    /// A chain of one router.
    pub(crate) fn of(lowered: &Lowered, consumer: &str, invokers: &[String]) -> Compiled {
        let slot = RouterSlot::new("one", 0, SlotBody::Program(Arc::new(lowered.program.clone())));
        let rules = RuleStore::new(routers::languages(), 0);
        Compiled::new(Dialect::Byway, consumer, invokers, vec![slot], rules)
    }

    /// A chain of these routers that follows these rules.
    pub(crate) fn new(
        dialect: Dialect,
        consumer: &str,
        invokers: &[String],
        slots: Vec<RouterSlot>,
        rules: Arc<RuleStore>,
    ) -> Compiled {
        let numbers = Arc::new(Numbers::default());
        let random = Arc::new(RandomSource::host(Arc::clone(&numbers) as Arc<dyn HostRandom>));
        let mut options = ChainOptions::new(usable(consumer), slots);
        options.dialect = dialect as u8;
        options.fail_fast = dialect.table().fail_fast;
        let chain = Chain::new(options, rules, random);
        let texts = invokers
            .iter()
            .map(|text| if chain::url::Url::parse(text).is_ok() { text.as_str() } else { NO_URL });
        chain.set_invokers(Invokers::from_urls(texts).expect("a list"));
        let session = chain.session();
        Compiled { chain, session, numbers }
    }

    /// The chain a host gets: the routers of the dialect, following `rules`.
    pub(crate) fn whole(
        dialect: Dialect,
        consumer: &str,
        invokers: &[String],
        rules: &Arc<RuleStore>,
    ) -> Compiled {
        let slots = routers::built_in(dialect, &usable(consumer)).expect("routers");
        Compiled::new(dialect, consumer, invokers, slots, Arc::clone(rules))
    }

    pub(crate) fn set_invokers(&self, invokers: &[String]) {
        self.chain.set_invokers(Invokers::from_urls(invokers.iter().map(String::as_str)).expect("a list"));
    }

    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Routes with draws from the `seed`-th number on.
    pub(crate) fn route(&mut self, call: &Call, seed: u64) -> Vec<usize> {
        self.numbers.0.store(seed, Ordering::Relaxed);
        let session = &mut self.session;
        with_invocation(call, |call| session.route(call).expect("a route").rows().iter().collect())
    }
}

/// In place of an invoker without a URL, which the engine takes no list with.
const NO_URL: &str = "none://0.0.0.0";

fn usable(text: &str) -> chain::url::Url {
    chain::url::Url::parse(text).or_else(|_| chain::url::Url::parse(NO_URL)).expect("a URL")
}

/// The rules in force by key, for the naive reference.
pub(crate) type InForce = std::collections::HashMap<String, Arc<Rule>>;

/// A whole chain by the naive reference: every router of the dialect in order, each on the output of the one before.
pub(crate) fn naive_chain(
    world: &World<'_>,
    rules: &InForce,
    draws: &mut dyn FnMut(u64) -> u64,
) -> Vec<usize> {
    use byway::rules::dialect::{Role, application_rule_key, service_rule_key};
    let table = world.dialect.table();
    let given = |name: &str| world.consumer.parameter(name).filter(|text| !text.is_empty());
    let (version, group) = (given("version").unwrap_or_default(), given("group").unwrap_or_default());
    let path = world.consumer.reference("path").unwrap_or_default();
    let interface = given("interface").unwrap_or_else(|| path.trim_start_matches('/'));
    let own = given("application");
    let of_provider = world.invokers.first().and_then(|first| {
        let value = |name: &&str| first.parameter(name).filter(|text| !text.is_empty());
        ["remote.application", "application"].iter().find_map(value)
    });
    let mut list = world.all();
    if table.service_key_filter {
        list = world.service_key(list);
    }
    for place in table.routers {
        let by_service = |kind| Some(service_rule_key(world.dialect, kind, interface, version, group));
        let by_app =
            |kind, application: Option<&str>| application.map(|name| application_rule_key(kind, name));
        let key = match place.role {
            Role::Service => by_service(RuleKind::Condition),
            Role::ProviderApplication if of_provider == own => None,
            Role::ProviderApplication => by_app(RuleKind::Condition, of_provider),
            Role::Application => by_app(RuleKind::Condition, own),
            Role::AffinityService => by_service(RuleKind::Affinity),
            Role::AffinityProviderApplication => by_app(RuleKind::Affinity, of_provider),
            Role::Tag => by_app(RuleKind::Tag, of_provider),
            Role::Mock | Role::Mesh | Role::Script | Role::Address => None,
        };
        let rule = key.and_then(|key| rules.get(&key)).map(Arc::as_ref);
        list = match (place.role, rule) {
            (Role::Mock, _) => world.mock(list),
            (Role::Tag, Some(Rule::Tag(rule))) => world.tag(Some(rule), list).0,
            (Role::Tag, _) => world.tag(None, list).0,
            (_, Some(Rule::Condition(rule))) => world.condition_rule(rule, list, draws),
            (_, Some(Rule::Affinity(rule))) => world.affinity_rule(rule, list),
            _ => list,
        };
    }
    list
}
