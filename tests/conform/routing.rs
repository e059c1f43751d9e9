//! Routing a case through every engine there is: the naive reference, and the programs that rules are lowered to.

use crate::Outcome;
use crate::naive::{Call, TagWay, World, url::Url};
use byway::chain::{self, invocation::Invocation, program::Program};
use byway::rules::dialect::Dialect;
use byway::rules::expression::Condition;
use byway::rules::{Rule, RuleKind, lower};
use serde_json::{Value, json};

/// The dialect of an implementation's name in a case.
pub(crate) fn dialect_of(name: &str) -> Option<Dialect> {
    match name {
        "dubbo-3.3" | "dubbo-3.3.6" | "dubbo-3" => Some(Dialect::Dubbo3),
        name => Dialect::named(name),
    }
}

/// URL texts of a case's invokers, which are texts or objects with a `url`.
pub(crate) fn invokers_of(value: &Value) -> Vec<String> {
    let url = |one: &Value| one.as_str().or_else(|| one["url"].as_str()).unwrap_or_default().to_owned();
    value.as_array().into_iter().flatten().map(url).collect()
}

/// One router of a chain.
#[derive(Clone, Copy)]
pub(crate) enum Router<'r> {
    /// The router of a kind, with the rule in force.
    Rule(Option<&'r Rule>, RuleKind),
    /// The mock selector.
    Mock,
}

/// What came of routing.
pub(crate) struct Got {
    pub rows: Vec<usize>,
    /// How a tag decision went.
    pub way: Option<TagWay>,
    /// Engines that answered otherwise, in words.
    pub disagree: Option<String>,
}

impl Got {
    /// Compares with a list of indices, and the engines with each other.
    pub(crate) fn expect(&self, want: &Value) -> Outcome {
        match &self.disagree {
            Some(why) => Outcome::Fail(why.clone()),
            None => Outcome::equal(json!(self.rows), want.clone()),
        }
    }
}

/// Routes the whole list once. Draws answer 0.
pub(crate) fn route_all(
    router: Router<'_>,
    dialect: Dialect,
    consumer: &str,
    invokers: &[String],
    call: Option<&Call>,
) -> Got {
    let urls: Vec<Url> = invokers.iter().map(|text| Url::parse(text, dialect)).collect();
    let world = World::new(dialect, consumer, &urls, call);
    let (rows, way) = naive(router, &world, &mut |_| 0);
    let lowered = Lowered::new(router, dialect, consumer, invokers);
    let disagree = call.filter(|call| call.method.is_some() || !names_method(router)).and_then(|call| {
        let got = lowered.route(call, &mut |_| 0);
        (got != rows).then(|| format!("naive {rows:?}, its program {got:?}: {:?}", lowered.words()))
    });
    Got { rows, way, disagree }
}

/// A call always names a method once it is a call; only the naive reference can be asked without one.
fn names_method(router: Router<'_>) -> bool {
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
        // A case may have invokers without a URL; the engine takes no such list.
        let url = |text: &str| {
            chain::url::Url::parse(text).or_else(|_| chain::url::Url::parse("none://0.0.0.0")).expect("a URL")
        };
        let consumer = url(consumer);
        let program = match router {
            Router::Mock => lower::mock(),
            Router::Rule(Some(rule), _) => lower::rule(rule, &consumer, dialect),
            Router::Rule(None, RuleKind::Tag) => lower::tag(None, &consumer, dialect),
            Router::Rule(None, _) => Program::new(Vec::new()),
        };
        Lowered { program, invokers: invokers.iter().map(|text| url(text)).collect() }
    }

    pub(crate) fn route(&self, call: &Call, draw: &mut dyn FnMut(u64) -> u64) -> Vec<usize> {
        with_invocation(call, |call| {
            let mut run = chain::reference::Run { invokers: &self.invokers, call, draw };
            run.program(&self.program, (0..self.invokers.len()).collect())
        })
    }

    fn words(&self) -> String {
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
    })
}

fn naive(
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

/// Whether the left side of a rule text holds.
pub(crate) fn when_all(
    text: &str,
    dialect: Dialect,
    consumer: &str,
    call: Option<&Call>,
) -> Result<bool, String> {
    let (condition, faults) = Condition::parse(text, dialect);
    let condition = condition.ok_or_else(|| format!("refused: {faults:?}"))?;
    Ok(World::new(dialect, consumer, &[], call).when(&condition.when))
}

/// Draws `repeat` times with a fixed seed and compares the shares: within five standard deviations, and exactly
/// where nothing is left to chance.
#[allow(clippy::too_many_arguments)]
pub(crate) fn distribution(
    router: Router<'_>,
    dialect: Dialect,
    consumer: &str,
    invokers: &[String],
    call: Option<&Call>,
    repeat: u64,
    outcomes: &[Value],
    share: &str,
) -> Outcome {
    let urls: Vec<Url> = invokers.iter().map(|text| Url::parse(text, dialect)).collect();
    let world = World::new(dialect, consumer, &urls, call);
    let lowered = Lowered::new(router, dialect, consumer, invokers);
    let nothing = Call::default();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut counts = vec![0u64; outcomes.len()];
    for round in 0..repeat {
        // Both engines draw from one stream, turn by turn: the shares hold for each and for both together.
        let rows = if round % 2 == 0 {
            naive(router, &world, &mut |total| random.below(total)).0
        } else {
            lowered.route(call.unwrap_or(&nothing), &mut |total| random.below(total))
        };
        let Some(at) = outcomes.iter().position(|outcome| outcome["indices"] == json!(rows)) else {
            return Outcome::Fail(format!("{rows:?} is none of the outcomes"));
        };
        counts[at] += 1;
    }
    for (count, outcome) in counts.iter().zip(outcomes) {
        let p = outcome[share].as_f64().unwrap_or(f64::NAN);
        let expected = p * repeat as f64;
        let slack = 5.0 * (repeat as f64 * p * (1.0 - p)).max(0.0).sqrt() + 1e-6 * repeat as f64;
        if (*count as f64 - expected).abs() > slack {
            return Outcome::Fail(format!(
                "{} of {repeat} draws, expected {expected} +- {slack:.0}: {outcome}",
                count
            ));
        }
    }
    Outcome::Pass
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
