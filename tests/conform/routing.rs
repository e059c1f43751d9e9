//! Routing a case through every engine there is: the naive reference, and the programs that rules are lowered to.

use crate::Outcome;
pub(crate) use crate::engines::Router;
use crate::engines::{Compiled, Lowered, Random, Replay, naive, names_method};
use crate::naive::{Call, TagWay, World, url::Url};
use byway::rules::dialect::Dialect;
use byway::rules::expression::Condition;
use byway::runtime::random::Draw;
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

/// Where draws begin; any number will do.
const SEED: u64 = 7;

/// Routes the whole list once through every engine.
pub(crate) fn route_all(
    router: Router<'_>,
    dialect: Dialect,
    consumer: &str,
    invokers: &[String],
    call: Option<&Call>,
) -> Got {
    let urls: Vec<Url> = invokers.iter().map(|text| Url::parse(text, dialect)).collect();
    let world = World::new(dialect, consumer, &urls, call);
    let (rows, way) = naive(router, &world, &mut |total| Replay(SEED).below(total));
    let lowered = Lowered::new(router, dialect, consumer, invokers);
    let disagree = call.filter(|call| call.method.is_some() || !names_method(router)).and_then(|call| {
        let plain = lowered.route(call, &mut |total| Replay(SEED).below(total));
        if plain != rows {
            return Some(format!("naive {rows:?}, its program {plain:?}: {:?}", lowered.words()));
        }
        let mut compiled = Compiled::of(&lowered, consumer, invokers);
        // Once when it is new to the engine, once when it is remembered.
        let answers = [compiled.route(call, SEED), compiled.route(call, SEED)];
        (answers != [rows.clone(), rows.clone()])
            .then(|| format!("naive {rows:?}, compiled {answers:?}: {:?}", lowered.words()))
    });
    Got { rows, way, disagree }
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
    let mut compiled = Compiled::of(&lowered, consumer, invokers);
    let nothing = Call::default();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut counts = vec![0u64; outcomes.len()];
    for round in 0..repeat {
        // The engines draw turn by turn: the shares hold for each and for all together.
        let call = call.unwrap_or(&nothing);
        let rows = match round % 3 {
            0 => naive(router, &world, &mut |total| random.below(total)).0,
            1 => lowered.route(call, &mut |total| random.below(total)),
            _ => compiled.route(call, random.next()),
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
