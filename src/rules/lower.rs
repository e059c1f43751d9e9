//! Rules to programs: what depends on the consumer alone is decided here, once per chain.

use super::affinity::AffinityRule;
use super::condition::{ConditionRule, Conditions};
use super::dialect::{
    AbsentKey, AffinityValue, Block, Dialect, Draw, Fallback as Unit, MissingValue, SENTINEL,
};
use super::expression::{Condition, Key, KeyTest, Tests, Value};
use super::mock::{NEED_MOCK, PROTOCOL};
use super::pattern::{Pattern, Side};
use super::tag::{FORCE_TAG, Members, TAG, TagRule, parse_force};
use super::value_test::{self as value, View};
use super::{Rule, destination::DestinationCondition};
use crate::chain::program as p;
use crate::chain::program::{CallKey, CallTest, Column, Program, RowTest, Step, Test, Then};
use crate::chain::url::Url;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// One rule for one consumer.
pub fn rule(rule: &Rule, consumer: &Url, dialect: Dialect) -> Program {
    match rule {
        Rule::Condition(rule) => condition_rule(rule, consumer, dialect),
        Rule::Tag(rule) => tag(Some(rule), consumer, dialect),
        Rule::Affinity(rule) => affinity(rule, consumer, dialect),
    }
}

// --- conditions ---

/// A condition rule. A rule that is not in force lets everything pass.
pub fn condition_rule(rule: &ConditionRule, consumer: &Url, dialect: Dialect) -> Program {
    if !rule.in_force() {
        return Program::new(Vec::new());
    }
    let table = dialect.table();
    let at = Lowering::new(consumer, dialect);
    let force = rule.header.force;
    let steps = match &rule.conditions {
        Conditions::V30(list) => list.iter().filter_map(|one| at.condition(one, force)).collect(),
        Conditions::V31(list) => {
            // dubbo-go looks first at what is switched off, wherever it stands.
            let first = |one: &&DestinationCondition| table.fallback == Unit::Rule && one.blocks();
            let (off, rest): (Vec<_>, Vec<_>) = list.iter().partition(first);
            off.into_iter().chain(rest).filter_map(|one| at.destinations(one, force)).collect()
        }
    };
    let fallback = match table.fallback {
        Unit::Condition => p::Fallback::PerStep,
        Unit::Rule => p::Fallback::WholeProgram { force },
    };
    Program { fallback, ..Program::new(steps) }
}

/// A rule of which an earlier text has been lowered for the same consumer: conditions that are the same objects keep
/// their steps. `None` when it must be lowered from the beginning.
fn condition_rule_after(
    rule: &ConditionRule,
    earlier: &ConditionRule,
    program: &Program,
    consumer: &Url,
    dialect: Dialect,
) -> Option<Program> {
    let (Conditions::V30(list), Conditions::V30(before)) = (&rule.conditions, &earlier.conditions) else {
        return None;
    };
    // Conditions that can never fire for the consumer have no step; then places do not line up.
    let line_up = list.len() == before.len() && program.steps.len() == list.len();
    let force = rule.header.force;
    if !line_up || !rule.in_force() || !earlier.in_force() || force != earlier.header.force {
        return None;
    }
    let at = Lowering::new(consumer, dialect);
    let step = |((one, before), step): ((&Arc<Condition>, &Arc<Condition>), &Step)| {
        if Arc::ptr_eq(one, before) { Some(step.clone()) } else { at.condition(one, force) }
    };
    let steps: Option<Vec<Step>> = list.iter().zip(before).zip(&program.steps).map(step).collect();
    Some(Program { steps: steps?, fallback: program.fallback, firing: program.firing })
}

struct Lowering<'a> {
    consumer: &'a Url,
    dialect: Dialect,
    /// Tests made so far: rules say the same things again and again.
    made: RefCell<HashMap<String, Test>>,
}

impl<'a> Lowering<'a> {
    fn new(consumer: &'a Url, dialect: Dialect) -> Self {
        Lowering { consumer, dialect, made: RefCell::default() }
    }

    fn made(&self, pattern: &Pattern, view: &View, words: &str) -> Test {
        let key = value::pattern_key(pattern, view);
        let mut made = self.made.borrow_mut();
        Arc::clone(made.entry(key).or_insert_with(|| value::pattern(pattern.clone(), view, words)))
    }
}

/// A formula over the value of one key. The same for both sides; what its leaves test differs.
enum Formula {
    Const(bool),
    Leaf(Test),
    Not(Box<Formula>),
    All(Vec<Formula>),
    Any(Vec<Formula>),
}

impl Formula {
    fn eval(&self, value: Option<&str>) -> bool {
        match self {
            Formula::Const(answer) => *answer,
            Formula::Leaf(test) => test.test(value),
            Formula::Not(inner) => !inner.eval(value),
            Formula::All(list) => list.iter().all(|inner| inner.eval(value)),
            Formula::Any(list) => list.iter().any(|inner| inner.eval(value)),
        }
    }

    fn call(&self, key: &CallKey) -> CallTest {
        match self {
            Formula::Const(true) => CallTest::Always,
            Formula::Const(false) => CallTest::Never,
            Formula::Leaf(test) => CallTest::Value(key.clone(), Arc::clone(test)),
            Formula::Not(inner) => CallTest::Not(Box::new(inner.call(key))),
            Formula::All(list) => CallTest::AllOf(list.iter().map(|inner| inner.call(key)).collect()),
            Formula::Any(list) => CallTest::AnyOf(list.iter().map(|inner| inner.call(key)).collect()),
        }
    }

    fn rows(&self, column: &Column) -> RowTest {
        match self {
            Formula::Const(true) => RowTest::Any,
            Formula::Const(false) => RowTest::Never,
            Formula::Leaf(test) => RowTest::Value(column.clone(), Arc::clone(test)),
            Formula::Not(inner) => RowTest::Not(Box::new(inner.rows(column))),
            Formula::All(list) => RowTest::AllOf(list.iter().map(|inner| inner.rows(column)).collect()),
            Formula::Any(list) => RowTest::AnyOf(list.iter().map(|inner| inner.rows(column)).collect()),
        }
    }
}

/// A list of one needs no brackets.
fn any(mut list: Vec<Formula>) -> Formula {
    match list.len() {
        1 => list.pop().unwrap_or(Formula::Const(false)),
        _ => Formula::Any(list),
    }
}

impl Lowering<'_> {
    fn condition(&self, condition: &Condition, force: bool) -> Option<Step> {
        let then = match &condition.then {
            None => Then::Empty { last_word: self.dialect.table().block == Block::Always },
            // A right side without keys fits nobody, and is no block.
            Some(tests) if tests.keys.is_empty() => Then::Keep(RowTest::Never),
            Some(tests) => Then::Keep(self.rows(tests)),
        };
        self.step(&condition.when, then, force, condition.to_string())
    }

    fn destinations(&self, condition: &DestinationCondition, force: bool) -> Option<Step> {
        let then = if condition.blocks() {
            Then::Empty { last_word: true }
        } else {
            let list = condition.to.iter().map(|one| p::Destination {
                rows: match &one.rows {
                    None => RowTest::Never,
                    Some(tests) => self.rows(tests),
                },
                weight: one.weight,
                priority: one.priority,
                text: one.rows.as_ref().map(Tests::to_string).unwrap_or_default().into(),
            });
            Then::Destinations(p::Destinations {
                list: list.collect(),
                hash_key: condition.hash_key.as_deref().and_then(hash_key),
                first_gains_one: self.dialect.table().draw == Draw::FirstGainsOne,
            })
        };
        self.step(&condition.from, then, force, condition.to_string())
    }

    /// `None`: never fires for this consumer.
    fn step(&self, when: &Tests, then: Then, force: bool, text: String) -> Option<Step> {
        let mut tests = Vec::new();
        for key in &when.keys {
            match self.call_test(key) {
                CallTest::Always => {}
                CallTest::Never => return None,
                test => tests.push(test),
            }
        }
        let when = match tests.len() {
            0 => CallTest::Always,
            1 => tests.pop()?,
            _ => CallTest::AllOf(tests),
        };
        Some(Step::Condition(p::Condition { when, then, force, text: text.into() }))
    }

    /// A key on the left side.
    fn call_test(&self, test: &KeyTest) -> CallTest {
        let table = self.dialect.table();
        let constant = |answer: bool| if answer { CallTest::Always } else { CallTest::Never };
        let plain = self.view();
        match &test.key {
            Key::Parameter => constant(self.on_consumer(test)),
            Key::Method => {
                // A call that names no method is asked about as if there were none: by the consumer's URL.
                let on_consumer = self.on_consumer(test);
                let key = if table.unwrap_generic { CallKey::Method } else { CallKey::RawMethod };
                let formula = self.formula(test, Side::When, &plain, false);
                let none = || {
                    CallTest::Value(
                        key.clone(),
                        self.made(&Pattern::Exact(String::new()), &View::default(), ""),
                    )
                };
                match (on_consumer, formula.eval(Some(""))) {
                    (true, false) => CallTest::AnyOf(vec![none(), formula.call(&key)]),
                    (false, true) => {
                        CallTest::AllOf(vec![CallTest::Not(Box::new(none())), formula.call(&key)])
                    }
                    _ => formula.call(&key),
                }
            }
            Key::Attachment(name) => {
                let key = CallKey::Attachment(name.as_str().into());
                self.formula(test, Side::When, &plain, false).call(&key)
            }
            Key::Argument(index) => {
                let null = if self.dialect == Dialect::DubboGo { "<nil>" } else { "null" };
                let key = CallKey::Argument { index: *index, null: null.into() };
                let view = View {
                    absent_as: (table.missing_value == MissingValue::Sentinel).then(|| SENTINEL.to_owned()),
                    ..plain
                };
                let never_missing = table.missing_value == MissingValue::NoMatch;
                self.formula(test, Side::When, &view, never_missing).call(&key)
            }
            Key::Malformed => constant(self.on_missing(test, Side::When)),
        }
    }

    /// The keys of a right side.
    fn rows(&self, tests: &Tests) -> RowTest {
        let mut list: Vec<RowTest> = tests.keys.iter().map(|test| self.row_test(test)).collect();
        match list.len() {
            1 => list.pop().unwrap_or(RowTest::Any),
            _ => RowTest::AllOf(list),
        }
    }

    /// A key on the right side.
    fn row_test(&self, test: &KeyTest) -> RowTest {
        let table = self.dialect.table();
        let constant = |answer: bool| if answer { RowTest::Any } else { RowTest::Never };
        if !matches!(test.key, Key::Parameter | Key::Method) {
            return constant(self.on_missing(test, Side::Then));
        }
        let name = test.name.as_str();
        let mut view = self.view();
        let (column, overrides) = match name {
            "protocol" => (Column::Protocol, false),
            "host" => (Column::Host, false),
            "address" if table.address_key => (Column::Address, false),
            "username" => (Column::Username, true),
            "password" => (Column::Password, true),
            "port" if table.zero_port => {
                view.absent_as = Some("0".to_owned());
                (Column::Port, false)
            }
            "port" => (Column::Port, true),
            "path" => {
                view.slash = table.path_slash;
                (Column::Path, true)
            }
            _ => (Column::parameter(name), false),
        };
        let formula = self.formula(test, Side::Then, &view, false);
        let rows = formula.rows(&column);
        if overrides {
            // The part of the URL counts if there is one, else the parameter of that name.
            let there = RowTest::Value(column, value::present(&View::default()));
            let parameter =
                self.formula(test, Side::Then, &self.view(), false).rows(&Column::parameter(name));
            let absent = RowTest::Not(Box::new(there.clone()));
            return RowTest::AnyOf(vec![
                RowTest::AllOf(vec![there, rows]),
                RowTest::AllOf(vec![absent, parameter]),
            ]);
        }
        if !table.default_keys && matches!(column, Column::Parameter(_)) && !name.starts_with("default.") {
            // The snapshot has the copy that `default.x` makes of x; this dialect does not know it.
            let copied = RowTest::Value(
                Column::parameter(format!("default.{name}")),
                value::present(&View::default()),
            );
            return RowTest::AllOf(vec![RowTest::Not(Box::new(copied)), rows]);
        }
        rows
    }

    fn view(&self) -> View {
        View { empty_is_absent: self.dialect.table().empty_is_absent, ..View::default() }
    }

    /// The formula of a key's values. `never_missing`: an absent value fails whatever the values are.
    fn formula(&self, test: &KeyTest, side: Side, view: &View, never_missing: bool) -> Formula {
        let absent_fits = self.dialect.table().absent_key == AbsentKey::MatchesUnlessWanted && !never_missing;
        let leaves = |list: &[Value]| any(list.iter().map(|one| self.leaf(one, side, view)).collect());
        let present = || Formula::Leaf(self.made(&Pattern::Any, view, "*"));
        let not = |inner: Formula| Formula::Not(Box::new(inner));
        match (test.wanted.is_empty(), test.unwanted.is_empty()) {
            (true, true) if absent_fits => not(present()),
            (true, true) => Formula::Const(false),
            (true, false) if absent_fits => not(leaves(&test.unwanted)),
            (true, false) => Formula::All(vec![present(), not(leaves(&test.unwanted))]),
            (false, true) => leaves(&test.wanted),
            (false, false) => Formula::All(vec![leaves(&test.wanted), not(leaves(&test.unwanted))]),
        }
    }

    fn leaf(&self, one: &Value, side: Side, view: &View) -> Formula {
        match &one.pattern {
            Pattern::Reference(name) if side == Side::Then => {
                match reference(name, self.consumer, self.dialect) {
                    Some(text) => {
                        let words = format!("{} ({text})", one.text);
                        let pattern = Pattern::glob(&text, self.dialect.table().star);
                        Formula::Leaf(self.made(&pattern, view, &words))
                    }
                    None => Formula::Const(false),
                }
            }
            pattern => Formula::Leaf(self.made(pattern, view, &one.text)),
        }
    }

    /// A key of the left side on the consumer's URL.
    fn on_consumer(&self, test: &KeyTest) -> bool {
        let value = consumer_value(&test.name, self.consumer, self.dialect);
        self.formula(test, Side::When, &self.view(), false).eval(value.as_deref())
    }

    /// A key that reads nothing the call has.
    fn on_missing(&self, test: &KeyTest, side: Side) -> bool {
        let value = match self.dialect.table().missing_value {
            MissingValue::NoMatch => return false,
            MissingValue::Absent => None,
            MissingValue::Sentinel => Some(SENTINEL),
        };
        self.formula(test, side, &self.view(), false).eval(value)
    }
}

/// The providers that fit a right side for some consumer: `$name` fits anything.
pub(super) fn rows_for_anybody(tests: &Tests, dialect: Dialect) -> RowTest {
    let mut tests = tests.clone();
    for test in &mut tests.keys {
        // What excludes one consumer's value excludes nothing for another.
        test.unwanted.retain(|value| !matches!(value.pattern, Pattern::Reference(_)));
        for value in &mut test.wanted {
            if matches!(value.pattern, Pattern::Reference(_)) {
                value.pattern = Pattern::Any;
            }
        }
    }
    tests.keys.retain(|test| !(test.wanted.is_empty() && test.unwanted.is_empty()));
    match Url::parse("consumer://0.0.0.0") {
        Ok(consumer) => Lowering::new(&consumer, dialect).rows(&tests),
        Err(_) => RowTest::Any,
    }
}

/// The providers at a tag's addresses.
pub(super) fn at(list: &[super::tag::Address]) -> RowTest {
    RowTest::Value(Column::Address, value::addresses(list))
}

/// The providers that fit a tag's `match`.
pub(super) fn like(list: &[super::tag::ParamMatch]) -> RowTest {
    let entry = |one: &super::tag::ParamMatch| {
        RowTest::Value(Column::parameter(one.key.as_str()), value::string_match(&one.value))
    };
    RowTest::AllOf(list.iter().map(entry).collect())
}

/// What a condition key reads of a consumer URL: a part of it, else the parameter of that name.
fn consumer_value(name: &str, consumer: &Url, dialect: Dialect) -> Option<String> {
    let part = match name {
        "protocol" | "username" | "password" | "host" | "port" | "path" => reference(name, consumer, dialect),
        "address" if dialect.table().address_key => {
            Some(consumer.address().into_owned()).filter(|text| !text.is_empty())
        }
        _ => None,
    };
    part.or_else(|| parameter(name, consumer, dialect))
}

/// A parameter, without the copies of `default.` keys where the dialect knows none.
fn parameter(name: &str, url: &Url, dialect: Dialect) -> Option<String> {
    let value = url.parameter(name)?;
    let copied = !dialect.table().default_keys
        && !name.starts_with("default.")
        && url.parameter(&format!("default.{name}")).is_some();
    (!copied).then(|| value.to_owned())
}

/// What `$name` stands for: a part of the consumer URL, else its parameter; `None` when absent.
pub fn reference(name: &str, consumer: &Url, dialect: Dialect) -> Option<String> {
    let table = dialect.table();
    let present = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    match name {
        "protocol" => present(consumer.protocol()),
        "username" => consumer.username().and_then(present),
        "password" => consumer.password().and_then(present),
        "host" => present(consumer.host()),
        "port" if consumer.port() == 0 => table.zero_port.then(|| "0".to_owned()),
        "port" => Some(consumer.port().to_string()),
        "path" if table.path_slash => present(consumer.path()).map(|path| format!("/{path}")),
        "path" => present(consumer.path()),
        _ => parameter(name, consumer, dialect),
    }
}

/// The property of a call that a `hashKey` names; `None` for anything a call does not have.
pub fn hash_key(text: &str) -> Option<CallKey> {
    if text == "method" {
        return Some(CallKey::Method);
    }
    let (word, inside) = text.strip_suffix(']')?.split_once('[')?;
    match word {
        "attachments" if !inside.is_empty() => Some(CallKey::Attachment(inside.into())),
        "arguments" => Some(CallKey::Argument { index: inside.parse().ok()?, null: "null".into() }),
        _ => None,
    }
}

// --- affinity ---

/// An affinity rule. A rule that is not in force lets everything pass.
pub fn affinity(rule: &AffinityRule, consumer: &Url, dialect: Dialect) -> Program {
    let table = dialect.table();
    if !rule.in_force() {
        return Program::new(Vec::new());
    }
    let own = match table.affinity_value {
        AffinityValue::Reference => reference(&rule.key, consumer, dialect),
        AffinityValue::JavaParameter => match parameter(&rule.key, consumer, dialect) {
            // Dubbo trips over its own empty hand here and leaves the list as it is.
            None => return Program::new(Vec::new()),
            own => own,
        },
    };
    let pattern = own.as_deref().and_then(|own| match table.affinity_value {
        AffinityValue::Reference => Some(Pattern::glob(own, table.star)),
        AffinityValue::JavaParameter => Pattern::parse(own, &rule.key, Side::When, dialect).ok(),
    });
    let rows = match pattern {
        None => RowTest::Never,
        Some(pattern) => {
            let value = Value { text: own.unwrap_or_default(), pattern };
            let test = KeyTest {
                name: rule.key.clone(),
                key: Key::Parameter,
                wanted: vec![value],
                unwanted: Vec::new(),
            };
            Lowering::new(consumer, dialect).row_test(&test)
        }
    };
    let text = format!("{}=${0}, at least {}%", rule.key, rule.ratio).into();
    let keep_empty = !table.affinity_keeps_when_empty;
    Program::new(vec![Step::Affinity(p::Affinity { rows, ratio: rule.ratio, keep_empty, text })])
}

// --- tags ---

/// The tag router, with the rule in force if there is one; without, static tags decide.
pub fn tag(rule: Option<&TagRule>, consumer: &Url, dialect: Dialect) -> Program {
    let table = dialect.table();
    let column = Column::parameter(TAG);
    let untagged = RowTest::Value(column.clone(), value::nothing());
    let insisting = consumer.parameter(FORCE_TAG).is_some_and(|text| parse_force(text, dialect));
    let read: fn(&str) -> bool = match table.force_tag_parse_bool {
        true => |text| parse_force(text, Dialect::DubboGo),
        false => |text| parse_force(text, Dialect::Byway),
    };
    let name = if table.force_tag_parse_bool { "true, 1 or t" } else { "true" };
    let force = CallTest::Value(CallKey::Attachment(FORCE_TAG.into()), value::flag(name, insisting, read));
    let rule = rule.filter(|rule| rule.in_force());
    let text = match rule {
        Some(_) => "tag rule",
        None => "static tags",
    };
    Program::new(vec![Step::Tag(p::Tag {
        tag: CallKey::Attachment(TAG.into()),
        empty_is_no_tag: table.empty_tag_counts,
        everyone: table.star_tag_is_all.then(|| "*".into()),
        default_tag: consumer.parameter(TAG).filter(|tag| !tag.is_empty()).map(Into::into),
        force,
        column: column.clone(),
        untagged: untagged.clone(),
        rule: rule.map(|rule| dynamic_tag(rule, &column, untagged, dialect)),
        text: text.into(),
    })])
}

fn dynamic_tag(rule: &TagRule, column: &Column, untagged: RowTest, dialect: Dialect) -> p::TagRule {
    let table = dialect.table();
    let (mut sets, mut claimed) = (Vec::new(), Vec::new());
    for group in rule.groups(dialect) {
        let (rows, by_match) = match group.members {
            Members::At(list) => (at(list), false),
            Members::Like(list) => (like(list), true),
        };
        if !(by_match && table.untagged_ignores_match) {
            claimed.push(rows.clone());
        }
        sets.push(p::TagSet { name: group.name.into(), rows, gone_when_empty: group.gone_when_empty });
    }
    let untagged_without_tag = match table.untagged_call {
        super::dialect::UntaggedCall::NoTagAtAll => untagged,
        super::dialect::UntaggedCall::NoTagOfTheRule => {
            let known = rule.tags.iter().filter(|tag| !tag.name.is_empty()).map(|tag| {
                let exact = Pattern::Exact(tag.name.clone());
                RowTest::Value(column.clone(), value::pattern(exact, &View::default(), &tag.name))
            });
            RowTest::Not(Box::new(RowTest::AnyOf(known.collect())))
        }
    };
    p::TagRule {
        force: rule.header.force,
        force_unknown: table.tag_force_unknown,
        levels: table.tag_levels,
        sets,
        claimed: RowTest::AnyOf(claimed),
        untagged_without_tag,
        failover: match table.tag_failover {
            super::dialect::TagFailover::OutsideEveryGroup => p::FailoverClaim::Claimed,
            super::dialect::TagFailover::OutsideAskedGroup => p::FailoverClaim::Requested,
        },
    }
}

// --- the others ---

/// The mock selector.
pub fn mock() -> Program {
    let key = || CallKey::Attachment(NEED_MOCK.into());
    let mocks = RowTest::Value(
        Column::Protocol,
        value::pattern(Pattern::Exact(PROTOCOL.to_owned()), &View::default(), PROTOCOL),
    );
    let step = |when, rows, text: &str| {
        Step::Condition(p::Condition { when, then: Then::Keep(rows), force: true, text: text.into() })
    };
    let asked = CallTest::Value(key(), value::flag("true", false, |text| text.eq_ignore_ascii_case("true")));
    let silent = CallTest::Not(Box::new(CallTest::Value(key(), value::present(&View::default()))));
    Program::new(vec![
        step(silent, RowTest::Not(Box::new(mocks.clone())), "the call does not ask for mocks"),
        step(asked, mocks, "the call asks for mocks"),
    ])
}

/// The address router (`router=address`): a call with an `address` attachment gets that provider or nobody.
pub fn address() -> Program {
    Program::new(vec![Step::Equal(p::Equal {
        key: CallKey::Attachment("address".into()),
        column: Column::Address,
        force: true,
        text: "the address that the call asks for".into(),
    })])
}

/// dubbo-go's first step: only providers of the consumer's own service key, unless there are none.
pub fn service_key(consumer: &Url) -> Program {
    let exact = |column: Column, text: &str| {
        RowTest::Value(column, value::pattern(Pattern::Exact(text.to_owned()), &View::default(), text))
    };
    let same = |name: &str| match consumer.given(name) {
        Some(text) => exact(Column::parameter(name), text),
        None => RowTest::Value(Column::parameter(name), value::nothing()),
    };
    // The version 0.0.0 is none.
    let version = match consumer.given("version").filter(|version| *version != "0.0.0") {
        Some(text) => exact(Column::parameter("version"), text),
        None => RowTest::AnyOf(vec![
            RowTest::Value(Column::parameter("version"), value::nothing()),
            exact(Column::parameter("version"), "0.0.0"),
        ]),
    };
    let interface = consumer.interface();
    let no_interface = RowTest::Value(Column::parameter("interface"), value::nothing());
    let interface = RowTest::AnyOf(vec![
        exact(Column::parameter("interface"), interface),
        RowTest::AllOf(vec![no_interface, exact(Column::Path, interface)]),
    ]);
    Program::new(vec![Step::Condition(p::Condition {
        when: CallTest::Always,
        then: Then::Keep(RowTest::AllOf(vec![interface, version, same("group")])),
        force: false,
        text: "providers of another service".into(),
    })])
}

impl p::Rule for Rule {
    fn lower(&self, at: &p::Lowering<'_>) -> crate::Result<Program> {
        let dialect = Dialect::from_number(i32::from(at.dialect)).unwrap_or_default();
        Ok(rule(self, at.consumer, dialect))
    }

    fn lower_after(
        &self,
        at: &p::Lowering<'_>,
        earlier: &dyn p::Rule,
        program: &Program,
    ) -> crate::Result<Program> {
        let dialect = Dialect::from_number(i32::from(at.dialect)).unwrap_or_default();
        let earlier = earlier.as_any().and_then(|any| any.downcast_ref::<Rule>());
        let taken_over = match (self, earlier) {
            (Rule::Condition(rule), Some(Rule::Condition(earlier))) => {
                condition_rule_after(rule, earlier, program, at.consumer, dialect)
            }
            _ => None,
        };
        taken_over.map_or_else(|| self.lower(at), Ok)
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn version(&self) -> &str {
        self.header().version.as_deref().unwrap_or_default()
    }

    fn in_force(&self) -> bool {
        Rule::in_force(self)
    }
}
