//! Why a call gets the invokers it gets: every router's in and out, and for each dropped invoker the sentence that
//! dropped it. Recomputed on a choice's own world with its own draws, by the plain reference; nothing is counted.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::chain::Chain;
use super::choice::{Choice, call_router, choose, drawn_number};
use super::invocation::{Invocation, as_text};
use super::plan::{Plan, StageBody};
use super::program::{Column, Condition, Destination, Program, RowTest, Step, Tag, Then};
use super::reference::{Event, Table, Walk, call_passes, requested_tag};
use super::router::Trouble;
use super::snapshot::Invokers;
use crate::error::{Error, Result, Status};
use crate::runtime::random::{Draw, Stream};

/// Most invokers listed per reason.
pub const LISTED: usize = 100;

/// Why one call got what it got.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The consumer's interface.
    pub service: String,
    /// The method as called.
    pub method: String,
    /// Number of the world.
    pub generation: u64,
    /// Invokers in the list.
    pub input: usize,
    /// Invokers that may serve the call.
    pub output: usize,
    /// The first of those.
    pub first: Vec<ExplainedInvoker>,
    /// The router that left nothing.
    pub emptied_by: Option<String>,
    /// In chain order.
    pub routers: Vec<ExplainedRouter>,
}

/// One router's part.
#[derive(Clone, Debug, Default)]
pub struct ExplainedRouter {
    /// Its name.
    pub name: String,
    /// Its place.
    pub priority: i64,
    /// Key of the rule in force.
    pub key: Option<String>,
    /// False: the chain stopped before it.
    pub reached: bool,
    /// Invokers that came in.
    pub input: usize,
    /// Invokers that went out.
    pub output: usize,
    /// What it did, a sentence per step that was asked.
    pub steps: Vec<String>,
    /// Whom it dropped.
    pub dropped: Vec<Reason>,
}

/// Invokers dropped for one reason.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The sentence.
    pub sentence: String,
    /// How many.
    pub count: usize,
    /// The first [`LISTED`].
    pub first: Vec<ExplainedInvoker>,
}

/// One invoker, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedInvoker {
    /// The host's tag.
    pub tag: u64,
    /// `host:port`.
    pub address: String,
    /// What it has where the reason wants something else, for example `region=beijing`.
    pub has: Option<String>,
}

impl Chain {
    /// Routes a call and explains the result.
    ///
    /// # Errors
    /// What a host router failed with.
    pub fn explain(&self, call: &Invocation<'_>) -> Result<Explanation> {
        let plan = self.shared.current.load();
        let mut stream = &self.shared.stream;
        choose(plan, call, None, &mut |bound| stream.below(bound))?.explain(call)
    }

    /// What a rule text (`None`: no rule) would change for these calls, if it were set for `key`. Nothing is set;
    /// draws are the same on both sides.
    ///
    /// # Errors
    /// `E_NOT_FOUND` when the chain does not want the key; why the text is refused; what a host router failed with.
    pub fn diff(&self, key: &str, text: Option<&str>, calls: &[Invocation<'_>]) -> Result<Vec<Difference>> {
        if !self.keys().iter().any(|wanted| **wanted == *key) {
            return Err(Error::new(Status::E_NOT_FOUND, "the chain takes no rule from this key").subject(key));
        }
        let rule = match (text, self.rules().language(key)) {
            (Some(text), Some(language)) => {
                let mut state = language.open(self.dialect());
                state
                    .set(text)
                    .map_err(|error| if error.about().is_empty() { error.subject(key) } else { error })?;
                state.active()
            }
            _ => None,
        };
        let now = self.shared.current.load();
        let then = self.plan_with(key, rule)?;
        let mut differences = Vec::new();
        for (number, call) in calls.iter().enumerate() {
            let route = |plan: &Arc<Plan>| {
                let mut stream = Stream::seeded(number as u64);
                choose(Arc::clone(plan), call, None, &mut |bound| stream.below(bound))
            };
            let before = route(&now)?;
            let known: Vec<_> = troubles(&then).iter().map(|one| one.as_ref().map(|one| one.count)).collect();
            let after = route(&then)?;
            let found = troubles(&then);
            let new =
                found.into_iter().zip(known).find(|(new, old)| new.as_ref().map(|one| one.count) != *old);
            let trouble = new.and_then(|(new, _)| new).map(|one| one.error);
            differences.push(Difference { trouble, ..Difference::between(number, &before, &after) });
        }
        Ok(differences)
    }
}

/// What a proposed rule would change for one call.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Position of the call.
    pub call: usize,
    /// Invokers that may serve it now.
    pub before: usize,
    /// Invokers that might serve it then.
    pub after: usize,
    /// Tags of all that come in.
    pub added: Vec<u64>,
    /// Tags of all that go.
    pub removed: Vec<u64>,
    /// The router that leaves nothing now.
    pub emptied_before: Option<String>,
    /// The router that would leave nothing.
    pub emptied_after: Option<String>,
    /// What would go wrong in a router, which would pass the call on unchanged.
    pub trouble: Option<Error>,
}

impl Difference {
    fn between(call: usize, before: &Choice, after: &Choice) -> Difference {
        // Both worlds have one list unless it was replaced in between: then tags are what they share.
        let (old, new) = (before.to_tags(), after.to_tags());
        let (old_set, new_set): (std::collections::HashSet<_>, std::collections::HashSet<_>) =
            (old.iter().copied().collect(), new.iter().copied().collect());
        Difference {
            call,
            before: old.len(),
            after: new.len(),
            added: new.iter().copied().filter(|tag| !old_set.contains(tag)).collect(),
            removed: old.iter().copied().filter(|tag| !new_set.contains(tag)).collect(),
            emptied_before: before.emptied_by().map(str::to_owned),
            emptied_after: after.emptied_by().map(str::to_owned),
            trouble: None,
        }
    }

    /// True when the rule would change something for this call.
    pub fn is_change(&self) -> bool {
        !self.added.is_empty() || !self.removed.is_empty()
    }

    /// As JSON: one object per call.
    pub fn list_to_json(list: &[Difference]) -> String {
        let list: Vec<Value> = list
            .iter()
            .map(|one| {
                json!({
                    "call": one.call,
                    "before": one.before,
                    "after": one.after,
                    "added": one.added,
                    "removed": one.removed,
                    "emptied_before": one.emptied_before,
                    "emptied_after": one.emptied_after,
                    "failed": one.trouble.as_ref().map(|error| json!({
                        "status": error.status().name(),
                        "message": error.message(),
                        "line": error.position().map(|at| at.line),
                        "column": error.position().map(|at| at.column),
                    })),
                })
            })
            .collect();
        Value::Array(list).to_string()
    }

    /// As text for people: a line per call that would change, or fail, and how many would not.
    pub fn list_to_text(list: &[Difference]) -> String {
        let mut text = String::new();
        let mut same = 0;
        for one in list {
            if !one.is_change() && one.trouble.is_none() {
                same += 1;
                continue;
            }
            let _ = write!(text, "call {}: {} -> {}", one.call, one.before, one.after);
            for (what, tags) in [("come", &one.added), ("go", &one.removed)] {
                if !tags.is_empty() {
                    let shown: Vec<String> = tags.iter().take(LISTED).map(u64::to_string).collect();
                    let more = if tags.len() > LISTED { ", ..." } else { "" };
                    let _ = write!(text, "; {} {what}: {}{more}", tags.len(), shown.join(", "));
                }
            }
            if let Some(router) = &one.emptied_after {
                let _ = write!(text, "; router {router} leaves nobody");
            }
            if let Some(error) = &one.trouble {
                let _ = write!(text, "; a router fails and passes everybody on: {error}");
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{same} of {} calls stay as they are", list.len());
        text
    }
}

/// What went wrong so far in each foreign router of a world.
fn troubles(plan: &Plan) -> Vec<Option<Trouble>> {
    let of = |stage: &super::plan::Stage| match &stage.body {
        StageBody::Foreign(router) => Some(router.trouble()),
        StageBody::Program(_) => None,
    };
    plan.stages.iter().filter_map(of).collect()
}

impl Choice {
    /// Explains this choice; `call` is the one it was made for.
    ///
    /// # Errors
    /// What a host router failed with.
    pub fn explain(&self, call: &Invocation<'_>) -> Result<Explanation> {
        explain_on(&self.plan, &self.drawn, call)
    }
}

/// Explains a call on the world that answered it, with the destinations it drew.
pub(crate) fn explain_on(plan: &Plan, drawn: &[u32], call: &Invocation<'_>) -> Result<Explanation> {
    let invokers = &plan.invokers;
    let mut drawn = drawn.iter().copied();
    let mut list: Vec<usize> = (0..invokers.len()).collect();
    let mut routers = Vec::new();
    let mut emptied_by = None;
    let mut stream = Stream::seeded(plan.generation);
    for (number, stage) in plan.stages.iter().enumerate() {
        let mut router = ExplainedRouter {
            name: stage.name.to_string(),
            priority: stage.priority,
            key: stage.rule.as_ref().map(|(key, _)| key.to_string()),
            reached: !list.is_empty() || !plan.fail_fast,
            input: list.len(),
            ..ExplainedRouter::default()
        };
        if router.reached {
            let before = list.len();
            match &stage.body {
                StageBody::Program(compiled) => {
                    list = explain_program(&compiled.program, invokers, call, list, &mut drawn, &mut router);
                }
                StageBody::Foreign(_) => {
                    let rows: Vec<u32> = list.iter().map(|row| *row as u32).collect();
                    let mut random = |bound| match drawn_number(&mut drawn) {
                        Some(number) if number < bound => number,
                        _ => stream.below(bound),
                    };
                    let (kept, message) = call_router(plan, number as u32, &rows, call, &mut random, true)?;
                    if let Some(kept) = kept {
                        let sentence = format!("router \"{}\" did not keep it", stage.name);
                        router.steps.extend(message);
                        let gone = list.iter().filter(|row| kept.binary_search(&(**row as u32)).is_err());
                        let gone: Vec<Gone> = gone.map(|row| (*row, None)).collect();
                        add_reason(&mut router, invokers, sentence, gone);
                        list = kept.into_iter().map(|row| row as usize).collect();
                    } else {
                        router.steps.push(message.unwrap_or_else(|| "passed the list on".into()));
                    }
                }
            }
            if list.is_empty() && before > 0 {
                emptied_by = Some(router.name.clone());
            }
        }
        router.output = list.len();
        routers.push(router);
    }
    Ok(Explanation {
        service: plan.consumer.interface().to_owned(),
        method: as_text(call.method).into_owned(),
        generation: plan.generation,
        input: invokers.len(),
        output: list.len(),
        first: list.iter().take(LISTED).map(|row| invoker(invokers, *row, None)).collect(),
        emptied_by,
        routers,
    })
}

/// A dropped row and what it has where the reason wants something else.
type Gone = (usize, Option<String>);

fn explain_program(
    program: &Program,
    invokers: &Arc<Invokers>,
    call: &Invocation<'_>,
    list: Vec<usize>,
    drawn: &mut dyn Iterator<Item = u32>,
    router: &mut ExplainedRouter,
) -> Vec<usize> {
    let mut pick = |_: &super::program::Destinations, weights: &[u32]| {
        drawn.next().map_or(0, |chosen| (chosen as usize).min(weights.len().saturating_sub(1)))
    };
    let mut silent = Vec::new();
    let mut observe = |event: Event<'_>| match event {
        Event::Silent(condition) => {
            silent.push(router.steps.len());
            router.steps.push(format!("\"{}\" does not apply to this call", condition.text));
        }
        Event::Restored(list) => {
            // What the steps dropped came back.
            router.dropped.clear();
            router
                .steps
                .push(format!("nothing was left and the rule is not forced: all {} stay", list.len()));
        }
        Event::Step { step, before, after, drawn } => {
            router.steps.push(describe(step, call, invokers, before, after, drawn));
            // Both lists ascend: what is missing from the second was dropped.
            let mut kept = after.iter().peekable();
            let gone = before.iter().filter(|row| kept.next_if(|next| next == row).is_none());
            let mut reasons: Vec<(String, Vec<Gone>)> = Vec::new();
            let mut known: HashMap<String, usize> = HashMap::new();
            for row in gone {
                let (sentence, has) = why(step, call, invokers, *row, drawn, after);
                let at = *known.entry(sentence.clone()).or_insert_with(|| {
                    reasons.push((sentence, Vec::new()));
                    reasons.len() - 1
                });
                if let Some((_, rows)) = reasons.get_mut(at) {
                    rows.push((*row, has));
                }
            }
            for (sentence, rows) in reasons {
                add_reason(router, invokers, sentence, rows);
            }
        }
    };
    let list =
        Walk { invokers: &**invokers, call, pick: &mut pick, observe: &mut observe }.program(program, list);
    // Built-in alternatives: only the one that applies is worth a line.
    if router.key.is_none() && silent.len() < router.steps.len() {
        silent.into_iter().rev().for_each(|at| drop(router.steps.remove(at)));
    }
    list
}

fn add_reason(router: &mut ExplainedRouter, invokers: &Invokers, sentence: String, rows: Vec<Gone>) {
    if rows.is_empty() {
        return;
    }
    let count = rows.len();
    let first = rows.into_iter().take(LISTED).map(|(row, has)| invoker(invokers, row, has)).collect();
    router.dropped.push(Reason { sentence, count, first });
}

fn invoker(invokers: &Invokers, row: usize, has: Option<String>) -> ExplainedInvoker {
    ExplainedInvoker { tag: invokers.tag(row).unwrap_or_default(), address: invokers.address(row), has }
}

fn text_of(step: &Step) -> &str {
    match step {
        Step::Condition(condition) => &condition.text,
        Step::Tag(tag) => &tag.text,
        Step::Affinity(affinity) => &affinity.text,
        Step::Equal(equal) => &equal.text,
    }
}

/// What a step did, in one sentence.
fn describe(
    step: &Step,
    call: &Invocation<'_>,
    invokers: &Arc<Invokers>,
    before: &[usize],
    after: &[usize],
    drawn: Option<&Destination>,
) -> String {
    let text = text_of(step);
    let counts = format!("{} -> {}", before.len(), after.len());
    match step {
        Step::Condition(Condition { then: Then::Empty { .. }, .. }) => {
            format!("\"{text}\" applies and lets nobody serve this call")
        }
        Step::Condition(condition) => {
            let target = match (&condition.then, drawn) {
                (Then::Destinations(_), Some(one)) => {
                    format!(", destination \"{}\" (weight {})", one.text, one.weight)
                }
                (Then::Destinations(_), None) => ", no destination has an invoker".into(),
                _ => String::new(),
            };
            let matched = matches_nothing(&condition.then, invokers, before);
            let note = if matched && !after.is_empty() {
                "; it matches none of them and is not forced, so all stay"
            } else if after.is_empty() {
                "; it matches none of them"
            } else {
                ""
            };
            format!("\"{text}\" applies{target}: {counts}{note}")
        }
        Step::Tag(tag) => {
            let insists = if call_passes(&tag.force, call) { ", and insists on it" } else { "" };
            match requested_tag(tag, call) {
                None => format!("the call asks for no tag: {counts}"),
                Some(wanted) => format!("the call asks for tag \"{wanted}\"{insists}: {counts}"),
            }
        }
        Step::Affinity(affinity) => {
            let preferred = before.iter().filter(|row| invokers.passes(**row, &affinity.rows)).count();
            let verdict = if after.len() == before.len() { "all stay" } else { "they are preferred" };
            format!(
                "\"{text}\": {preferred} of {} match, wanted {} %: {verdict}",
                before.len(),
                affinity.ratio
            )
        }
        Step::Equal(equal) => match call.value(&equal.key) {
            None => format!("\"{text}\": the call does not set {}", equal.key),
            Some(value) => format!("\"{text}\": {} is \"{}\": {counts}", equal.key, as_text(value)),
        },
    }
}

fn matches_nothing(then: &Then, invokers: &Arc<Invokers>, rows: &[usize]) -> bool {
    let any = |test: &RowTest| rows.iter().any(|row| invokers.passes(*row, test));
    match then {
        Then::Empty { .. } => true,
        Then::Keep(test) => !any(test),
        Then::Destinations(to) => !to.list.iter().any(|one| any(&one.rows)),
    }
}

/// Why a step dropped an invoker, and what the invoker has instead.
fn why(
    step: &Step,
    call: &Invocation<'_>,
    invokers: &Arc<Invokers>,
    row: usize,
    drawn: Option<&Destination>,
    after: &[usize],
) -> (String, Option<String>) {
    let text = text_of(step);
    let wants = |test: &RowTest| match failing(invokers, row, test) {
        Some((words, has)) => (format!("\"{text}\" wants {words}"), has),
        None => (format!("\"{text}\" does not keep it"), None),
    };
    match step {
        Step::Condition(condition) => match (&condition.then, drawn) {
            (Then::Empty { .. }, _) => (format!("\"{text}\" lets nobody serve this call"), None),
            (Then::Keep(test), _) => wants(test),
            (Then::Destinations(_), Some(one)) => {
                (format!("\"{text}\" drew destination \"{}\" for this call", one.text), None)
            }
            (Then::Destinations(_), None) => (format!("\"{text}\" has no destination with an invoker"), None),
        },
        Step::Tag(tag) => why_tag(tag, call, invokers, row, after),
        Step::Affinity(affinity) => wants(&affinity.rows),
        Step::Equal(equal) => (
            format!("\"{text}\" wants {} to equal {}", equal.column.name(), equal.key),
            has(invokers, row, &equal.column),
        ),
    }
}

fn why_tag(
    tag: &Tag,
    call: &Invocation<'_>,
    invokers: &Arc<Invokers>,
    row: usize,
    after: &[usize],
) -> (String, Option<String>) {
    let own = has(invokers, row, &tag.column);
    let member = tag.rule.as_ref().and_then(|rule| {
        rule.sets.iter().find(|set| invokers.passes(row, &set.rows)).map(|set| set.name.to_string())
    });
    let has = match member {
        Some(name) => Some(format!("tag \"{name}\" by rule")),
        None => own,
    };
    let Some(wanted) = requested_tag(tag, call) else {
        return ("calls without a tag get invokers without a tag".into(), has);
    };
    let fits = |row: usize| {
        let set = tag.rule.as_ref().and_then(|rule| rule.sets.iter().find(|set| *set.name == *wanted));
        match set {
            Some(set) => invokers.passes(row, &set.rows),
            None => invokers.value(row, &tag.column).is_some_and(|value| value == wanted),
        }
    };
    let sentence = if after.is_empty() || after.iter().any(|row| fits(*row)) {
        format!("the call asks for tag \"{wanted}\"")
    } else {
        format!(
            "the call asks for tag \"{wanted}\", which no invoker has: it falls back to those without a tag"
        )
    };
    (sentence, has)
}

fn has(invokers: &Invokers, row: usize, column: &Column) -> Option<String> {
    Some(match invokers.column(row, column) {
        Some(value) => format!("{}={value}", column.name()),
        None => format!("no {}", column.name()),
    })
}

/// The part of a test that an invoker fails, in words, and what it has there.
fn failing(invokers: &Arc<Invokers>, row: usize, test: &RowTest) -> Option<(String, Option<String>)> {
    match test {
        RowTest::Any => None,
        RowTest::Never => Some(("what no invoker can have".into(), None)),
        RowTest::Value(column, test) => {
            let words = format!("{} {}", column.name(), test.words());
            if test.test(invokers.column(row, column).as_deref()) {
                return None;
            }
            Some((words, has(invokers, row, column)))
        }
        RowTest::Not(inner) => {
            if !invokers.passes(row, inner) {
                return None;
            }
            let has = match &**inner {
                RowTest::Value(column, _) => has(invokers, row, column),
                _ => None,
            };
            Some((format!("not {}", words(inner)), has))
        }
        RowTest::AllOf(list) => list.iter().find_map(|inner| failing(invokers, row, inner)),
        RowTest::AnyOf(list) => {
            if invokers.passes(row, test) {
                return None;
            }
            // Alternatives that begin with what they are for: the one that this invoker is in says it all.
            let applies = |inner: &&RowTest| match inner {
                RowTest::AllOf(parts) => parts.first().is_some_and(|first| invokers.passes(row, first)),
                _ => false,
            };
            if let Some(own) = list.iter().find(applies) {
                return failing(invokers, row, own);
            }
            let has = list.iter().find_map(|inner| match inner {
                RowTest::Value(column, _) => has(invokers, row, column),
                _ => None,
            });
            Some((words(test), has))
        }
    }
}

fn words(test: &RowTest) -> String {
    let join = |list: &[RowTest], word: &str| {
        let list: Vec<String> = list.iter().map(words).collect();
        list.join(word)
    };
    match test {
        RowTest::Any => "anything".into(),
        RowTest::Never => "nothing".into(),
        RowTest::Value(column, test) => format!("{} {}", column.name(), test.words()),
        RowTest::Not(inner) => format!("not ({})", words(inner)),
        RowTest::AllOf(list) => join(list, " and "),
        RowTest::AnyOf(list) => join(list, " or "),
    }
}

impl Explanation {
    /// As JSON, one object.
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    pub(crate) fn to_value(&self) -> Value {
        let invoker = |one: &ExplainedInvoker| {
            let mut object = json!({ "tag": one.tag, "address": one.address });
            if let (Some(has), Some(map)) = (&one.has, object.as_object_mut()) {
                map.insert("has".into(), json!(has));
            }
            object
        };
        let routers: Vec<Value> = self
            .routers
            .iter()
            .map(|router| {
                let dropped: Vec<Value> = router
                    .dropped
                    .iter()
                    .map(|reason| {
                        json!({
                            "reason": reason.sentence,
                            "count": reason.count,
                            "first": reason.first.iter().map(invoker).collect::<Vec<_>>(),
                        })
                    })
                    .collect();
                json!({
                    "name": router.name,
                    "priority": router.priority,
                    "key": router.key,
                    "reached": router.reached,
                    "in": router.input,
                    "out": router.output,
                    "steps": router.steps,
                    "dropped": dropped,
                })
            })
            .collect();
        json!({
            "service": self.service,
            "method": self.method,
            "generation": self.generation,
            "in": self.input,
            "out": self.output,
            "emptied_by": self.emptied_by,
            "routers": routers,
            "invokers": self.first.iter().map(invoker).collect::<Vec<_>>(),
        })
    }

    /// As text for people, one line per fact.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}.{}: {} -> {}", self.service, self.method, self.input, self.output);
        for router in &self.routers {
            let key = router.key.as_ref().map(|key| format!(" [{key}]")).unwrap_or_default();
            if !router.reached {
                let _ = writeln!(out, "  {}{key}: not reached", router.name);
                continue;
            }
            let _ = writeln!(out, "  {}{key}: {} -> {}", router.name, router.input, router.output);
            for step in &router.steps {
                let _ = writeln!(out, "    {step}");
            }
            for reason in &router.dropped {
                let _ = writeln!(out, "    dropped {}: {}", reason.count, reason.sentence);
                for one in &reason.first {
                    let has = one.has.as_ref().map(|has| format!(" ({has})")).unwrap_or_default();
                    let _ = writeln!(out, "      {}{has}", one.address);
                }
                if reason.count > reason.first.len() {
                    let _ = writeln!(out, "      and {} more", reason.count - reason.first.len());
                }
            }
        }
        match &self.emptied_by {
            Some(name) => {
                let _ = writeln!(out, "nobody may serve this call: router {name} left nothing");
            }
            None => {
                for one in &self.first {
                    let _ = writeln!(out, "-> {}", one.address);
                }
                if self.output > self.first.len() {
                    let _ = writeln!(out, "-> and {} more", self.output - self.first.len());
                }
            }
        }
        out
    }
}
