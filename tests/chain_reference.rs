//! The compiled engine answers as the plain reference does: random programs, lists and calls, through sessions and
//! without, memoised and not, under masks, across updates of rules and lists.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use byway::chain::bits::Bits;
use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::invocation::Invocation;
use byway::chain::program::*;
use byway::chain::reference::Run;
use byway::chain::router::{Request, Router, RouterSlot, SlotBody, Verdict};
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::chain::url::Url;
use byway::error::Result;
use byway::runtime::random::{Draw, HostRandom, RandomSource};

/// A generator of its own, so that a failing case is its number.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// Numbers both engines draw from; the counter is set before each call.
#[derive(Default)]
struct Shared(AtomicU64);

fn number(at: u64) -> u64 {
    let mut dice = Dice(at);
    dice.below(u64::MAX)
}

impl HostRandom for Shared {
    fn next_u64(&self) -> u64 {
        number(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

struct Replay(u64);

impl Draw for Replay {
    fn next_u64(&mut self) -> u64 {
        self.0 += 1;
        number(self.0 - 1)
    }
}

enum Pattern {
    Exact(String),
    Affix(String, String),
    Present,
    Absent,
    /// Opaque: length modulo; absent counts as 0.
    Length(usize, usize),
}

struct TestOf(Pattern, String);

impl ValueTest for TestOf {
    fn test(&self, value: Option<&str>) -> bool {
        match (&self.0, value) {
            (Pattern::Absent, value) => value.is_none(),
            (Pattern::Length(modulus, rest), value) => value.map_or(0, str::len) % modulus == *rest,
            (_, None) => false,
            (Pattern::Exact(text), Some(value)) => text == value,
            (Pattern::Affix(head, tail), Some(value)) => value.starts_with(head) && value.ends_with(tail),
            (Pattern::Present, Some(_)) => true,
        }
    }

    fn cache_key(&self) -> &str {
        &self.1
    }

    fn shape(&self) -> Shape<'_> {
        match &self.0 {
            Pattern::Exact(text) => Shape::Exact(text),
            Pattern::Affix(head, tail) => Shape::Affix(head, tail),
            Pattern::Present => Shape::Present,
            Pattern::Absent => Shape::Absent,
            Pattern::Length(..) => Shape::Opaque,
        }
    }

    fn words(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.1)
    }
}

fn test_of(pattern: Pattern) -> Test {
    let key = match &pattern {
        Pattern::Exact(text) => format!("={text}"),
        Pattern::Affix(head, tail) => format!("{head}*{tail}"),
        Pattern::Present => "any".into(),
        Pattern::Absent => "absent".into(),
        Pattern::Length(modulus, rest) => format!("len%{modulus}={rest}"),
    };
    Arc::new(TestOf(pattern, key))
}

const VALUES: &[&str] = &["a", "b", "", "gray", "blue", "hz", "ab", "aba", "base", "gray|blue"];

fn pattern(dice: &mut Dice, values: &[&str]) -> Test {
    test_of(match dice.below(10) {
        0..=3 => Pattern::Exact((*dice.pick(values)).into()),
        4..=6 => {
            let text = dice.pick(values);
            let cut = dice.below(text.len() as u64 + 1) as usize;
            let (head, tail) = text.split_at(cut);
            match dice.below(3) {
                0 => Pattern::Affix(head.into(), String::new()),
                1 => Pattern::Affix(String::new(), tail.into()),
                _ => Pattern::Affix(head.into(), tail.into()),
            }
        }
        7 => Pattern::Present,
        8 => Pattern::Absent,
        _ => Pattern::Length(2 + dice.below(3) as usize, dice.below(2) as usize),
    })
}

fn column(dice: &mut Dice) -> (Column, Vec<&'static str>) {
    match dice.below(9) {
        0 => (Column::Host, vec!["10.0.0.1", "10.0.1.7", "h", "10."]),
        1 => (Column::Port, vec!["20880", "20881", "1"]),
        2 => (Column::Address, vec!["10.0.0.1:20880", "h", ":20880", ":1", "10.0.0.3:20881", "10."]),
        3 => (Column::Protocol, vec!["dubbo", "tri", "mock"]),
        4 => (Column::Path, vec!["S", "com.foo.Bar"]),
        5 => (Column::Application, vec!["app", "shop"]),
        6 => (Column::parameter("rare"), vec!["x", "y"]),
        n => (Column::parameter(if n == 7 { "k" } else { "dubbo.tag" }), VALUES.to_vec()),
    }
}

fn row_test(dice: &mut Dice, depth: u32) -> RowTest {
    match dice.below(if depth == 0 { 6 } else { 10 }) {
        0 => RowTest::Any,
        1 if dice.chance(30) => RowTest::Never,
        6 => RowTest::Not(Box::new(row_test(dice, depth - 1))),
        7 | 8 => RowTest::AllOf((0..dice.below(4)).map(|_| row_test(dice, depth - 1)).collect()),
        9 => RowTest::AnyOf((0..dice.below(4)).map(|_| row_test(dice, depth - 1)).collect()),
        _ => {
            let (column, values) = column(dice);
            let test = pattern(dice, &values);
            RowTest::Value(column, test)
        }
    }
}

const METHODS: &[&str] = &["hello", "hello2", "getFoo", "getBar", "setFoo", "$invoke", "", "x"];

fn call_key(dice: &mut Dice) -> CallKey {
    match dice.below(8) {
        0..=3 => CallKey::Method,
        4 => CallKey::RawMethod,
        5 => CallKey::Argument { index: dice.below(3) as u32, null: "null".into() },
        _ => CallKey::Attachment(if dice.chance(50) { "k" } else { "other-key" }.into()),
    }
}

fn call_test(dice: &mut Dice, depth: u32) -> CallTest {
    match dice.below(if depth == 0 { 7 } else { 10 }) {
        0 => CallTest::Always,
        1 if dice.chance(20) => CallTest::Never,
        7 => CallTest::Not(Box::new(call_test(dice, depth - 1))),
        8 => CallTest::AllOf((0..dice.below(4)).map(|_| call_test(dice, depth - 1)).collect()),
        9 => CallTest::AnyOf((0..dice.below(4)).map(|_| call_test(dice, depth - 1)).collect()),
        _ => {
            let key = call_key(dice);
            let values = if matches!(key, CallKey::Method | CallKey::RawMethod) { METHODS } else { VALUES };
            CallTest::Value(key, pattern(dice, values))
        }
    }
}

fn attachment(name: &str) -> CallKey {
    CallKey::Attachment(name.into())
}

fn tag_rule(dice: &mut Dice) -> TagRule {
    let mut sets: Vec<TagSet> = Vec::new();
    for name in ["gray", "blue", "a", "gray|blue"] {
        if dice.chance(60) {
            sets.push(TagSet {
                name: name.into(),
                rows: row_test(dice, 1),
                gone_when_empty: dice.chance(50),
            });
        }
    }
    let claimed = RowTest::AnyOf(sets.iter().map(|set| set.rows.clone()).collect());
    TagRule {
        force: dice.chance(40),
        force_unknown: dice.chance(30),
        levels: dice.chance(60),
        claimed: if dice.chance(80) { claimed } else { row_test(dice, 1) },
        untagged_without_tag: row_test(dice, 1),
        failover: if dice.chance(60) { FailoverClaim::Claimed } else { FailoverClaim::Requested },
        sets,
    }
}

fn step(dice: &mut Dice) -> Step {
    match dice.below(12) {
        0 => Step::Tag(Tag {
            tag: attachment("dubbo.tag"),
            empty_is_no_tag: dice.chance(20),
            everyone: dice.chance(30).then(|| "a".into()),
            default_tag: dice.chance(30).then(|| (*dice.pick(VALUES)).into()),
            force: if dice.chance(50) {
                CallTest::Value(attachment("dubbo.force.tag"), test_of(Pattern::Exact("true".into())))
            } else {
                call_test(dice, 1)
            },
            column: if dice.chance(85) { Column::parameter("dubbo.tag") } else { Column::Address },
            untagged: if dice.chance(70) {
                RowTest::AnyOf(vec![
                    RowTest::Value(Column::parameter("dubbo.tag"), test_of(Pattern::Absent)),
                    RowTest::Value(Column::parameter("dubbo.tag"), test_of(Pattern::Exact(String::new()))),
                ])
            } else {
                row_test(dice, 1)
            },
            rule: dice.chance(60).then(|| tag_rule(dice)),
            text: "tag".into(),
        }),
        1 => Step::Affinity(Affinity {
            rows: row_test(dice, 1),
            ratio: dice.below(101) as f64,
            keep_empty: dice.chance(50),
            text: "affinity".into(),
        }),
        2 => {
            let (column, _) = column(dice);
            Step::Equal(Equal { key: attachment("k"), column, force: dice.chance(50), text: "equal".into() })
        }
        _ => Step::Condition(Condition {
            when: call_test(dice, 2),
            then: match dice.below(10) {
                0 => Then::Empty { last_word: dice.chance(50) },
                1..=3 => Then::Destinations(Destinations {
                    list: (0..dice.below(5))
                        .map(|_| Destination {
                            rows: row_test(dice, 1),
                            weight: *dice.pick(&[0, 1, 1, 3, 100]),
                            priority: *dice.pick(&[0, 0, 0, 1, -1]),
                            text: "to".into(),
                        })
                        .collect(),
                    hash_key: dice.chance(20).then(|| call_key(dice)),
                    first_gains_one: dice.chance(20),
                }),
                _ => Then::Keep(row_test(dice, 2)),
            },
            force: dice.chance(40),
            text: "condition".into(),
        }),
    }
}

fn program(dice: &mut Dice) -> Program {
    Program {
        steps: (0..dice.below(if dice.0.is_multiple_of(5) { 14 } else { 4 })).map(|_| step(dice)).collect(),
        fallback: match dice.below(6) {
            0 => Fallback::WholeProgram { force: true },
            1 => Fallback::WholeProgram { force: false },
            _ => Fallback::PerStep,
        },
        firing: if dice.chance(15) { Firing::First } else { Firing::Every },
    }
}

fn url(dice: &mut Dice) -> String {
    let mut text = format!("{}://", dice.pick(&["dubbo", "dubbo", "tri", "mock"]));
    match dice.below(5) {
        0 => text.push('h'),
        1 => text.push_str("10.0.0.1"),
        n => text.push_str(&format!("10.0.{}.{}", dice.below(2), n + dice.below(30))),
    }
    if dice.chance(85) {
        text.push_str(dice.pick::<&str>(&[":20880", ":20881", ":1"]));
    }
    text.push_str(dice.pick::<&str>(&["/S", "/com.foo.Bar", ""]));
    let mut separator = '?';
    let mut put = |text: &mut String, pair: String| {
        text.push(separator);
        text.push_str(&pair);
        separator = '&';
    };
    for name in ["k", "dubbo.tag", "remote.application", "application", "default.k", "extra", "k"] {
        if dice.chance(35) {
            let values: &[&str] = if name.ends_with("application") { &["app", "shop", ""] } else { VALUES };
            let value = dice.pick(values);
            put(&mut text, if dice.chance(10) { name.into() } else { format!("{name}={value}") });
        }
    }
    if dice.chance(1) {
        put(&mut text, format!("rare={}", dice.pick(&["x", "y"])));
    }
    text
}

/// Keeps the rows whose number is not divisible; stateless.
struct Sieve(usize);

impl Router for Sieve {
    fn route(&self, request: &mut Request<'_>) -> Result<Verdict> {
        if request.call.method == b"x" {
            return Ok(Verdict::Pass);
        }
        let rows: Vec<usize> = request.rows.iter().collect();
        for row in rows.into_iter().rev().filter(|row| row % self.0 != 0) {
            request.keep(row);
            request.keep(row);
        }
        // Rows that never came in must not get in.
        request.keep(usize::MAX);
        request.keep(request.invokers.len());
        Ok(Verdict::Kept)
    }
}

#[derive(Clone)]
enum Part {
    Program(Arc<Program>),
    Sieve(usize),
}

struct World {
    texts: Vec<String>,
    urls: Vec<Url>,
    tags: Vec<u64>,
    parts: Vec<Part>,
    fail_fast: bool,
}

impl World {
    fn read(&mut self) {
        self.urls = self.texts.iter().map(|text| Url::parse(text).unwrap()).collect();
    }

    fn slots(&self) -> Vec<RouterSlot> {
        let body = |part: &Part| match part {
            Part::Program(program) => SlotBody::Program(Arc::clone(program)),
            Part::Sieve(n) => SlotBody::Foreign(Arc::new(Sieve(*n))),
        };
        self.parts
            .iter()
            .enumerate()
            .map(|(i, part)| RouterSlot::new(format!("r{i}"), i as i64, body(part)))
            .collect()
    }

    fn expect(&self, call: &Invocation<'_>, seed: u64, input: Vec<usize>) -> (Vec<usize>, Option<String>) {
        let mut numbers = Replay(seed);
        let mut draw = |bound| numbers.below(bound);
        let mut list = input;
        let mut emptied_by = None;
        for (i, part) in self.parts.iter().enumerate() {
            let before = list.len();
            match part {
                Part::Program(program) => {
                    let mut run = Run { invokers: &self.urls, call, draw: &mut draw };
                    list = run.program(program, list);
                }
                Part::Sieve(n) => {
                    if (!list.is_empty() || !self.fail_fast) && call.method != b"x" {
                        list.retain(|row| row % n != 0);
                    }
                }
            }
            if list.is_empty() && before > 0 {
                emptied_by = Some(format!("r{i}"));
            }
        }
        (list, emptied_by)
    }
}

struct CallText {
    method: String,
    arguments: Vec<Option<String>>,
    attachments: Vec<(String, String)>,
}

fn call(dice: &mut Dice) -> CallText {
    let arguments = (0..dice.below(3))
        .map(|_| {
            let text = if dice.chance(50) { *dice.pick(METHODS) } else { *dice.pick(VALUES) };
            dice.chance(80).then(|| text.to_owned())
        })
        .collect();
    let mut attachments = Vec::new();
    for name in ["k", "other-key", "dubbo.tag", "dubbo.force.tag", "junk", "k"] {
        if dice.chance(25) {
            let value = if name == "dubbo.force.tag" {
                "true".to_owned()
            } else if dice.chance(10) {
                format!("junk{}", dice.below(1000))
            } else if dice.chance(15) {
                "10.0.0.1:20880".to_owned()
            } else {
                (*dice.pick(VALUES)).to_owned()
            };
            attachments.push((name.to_owned(), value));
        }
    }
    let method =
        if dice.chance(10) { format!("m{}", dice.below(500)) } else { (*dice.pick(METHODS)).to_owned() };
    CallText { method, arguments, attachments }
}

fn with_call<T>(text: &CallText, body: impl FnOnce(&Invocation<'_>) -> T) -> T {
    let arguments: Vec<Option<&[u8]>> =
        text.arguments.iter().map(|argument| argument.as_ref().map(|text| text.as_bytes())).collect();
    let attachments: Vec<(&[u8], &[u8])> =
        text.attachments.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    body(&Invocation {
        method: text.method.as_bytes(),
        types: &[],
        arguments: &arguments,
        attachments: &attachments,
        ..Invocation::default()
    })
}

fn check(case: u64) {
    let mut dice = Dice(case.wrapping_mul(0x1234_5678_9abc_def1));
    let rows = match dice.below(10) {
        0 => 0,
        1..=6 => 1 + dice.below(20),
        7 | 8 => dice.below(700),
        _ => 600 + dice.below(1500),
    };
    let mut world = World {
        texts: (0..rows).map(|_| url(&mut dice)).collect(),
        urls: Vec::new(),
        tags: (0..rows).map(|row| if case.is_multiple_of(2) { row + 1 } else { row * 10 + 7 }).collect(),
        parts: (0..1 + dice.below(3)).map(|_| Part::Program(Arc::new(program(&mut dice)))).collect(),
        fail_fast: dice.chance(70),
    };
    if dice.chance(25) {
        let at = dice.below(world.parts.len() as u64 + 1) as usize;
        world.parts.insert(at, Part::Sieve(2 + dice.below(3) as usize));
    }
    world.read();
    let numbers = Arc::new(Shared::default());
    let random = Arc::new(RandomSource::host(Arc::clone(&numbers) as Arc<dyn HostRandom>));
    let consumer = Url::parse("consumer://10.9.8.7/S?application=me").unwrap();
    let mut options = ChainOptions::new(consumer, world.slots());
    options.fail_fast = world.fail_fast;
    if dice.chance(20) {
        options.memo_bytes = 0;
    }
    let chain = Chain::new(options, RuleStore::new(Vec::new(), 0), random);
    let mut builder = byway::chain::builder::InvokersBuilder::new();
    for (text, tag) in world.texts.iter().zip(&world.tags) {
        builder.add(text, Some(*tag)).unwrap();
    }
    chain.set_invokers(builder.finish().unwrap());
    let mut session = chain.session();
    for round in 0..3 {
        let calls: Vec<CallText> = (0..12).map(|_| call(&mut dice)).collect();
        for repeat in 0..2u64 {
            for (n, text) in calls.iter().enumerate() {
                let seed = case * 1_000_003 + n as u64 * 17 + repeat * 7919 + round;
                let place = format!("case {case}, round {round}, call {n}, repeat {repeat}");
                with_call(text, |call| compare(&chain, &mut session, &world, &numbers, call, seed, &place));
            }
        }
        change(&mut dice, &chain, &mut world);
    }
}

fn compare(
    chain: &Chain,
    session: &mut byway::chain::session::Session,
    world: &World,
    numbers: &Shared,
    call: &Invocation<'_>,
    seed: u64,
    place: &str,
) {
    let (expect, emptied_by) = world.expect(call, seed, (0..world.urls.len()).collect());
    let tags: Vec<u64> = expect.iter().map(|row| world.tags[*row]).collect();
    numbers.0.store(seed, Ordering::Relaxed);
    let view = session.route(call).unwrap();
    let got: Vec<usize> = view.rows().iter().collect();
    assert_eq!(got, expect, "{place}: session\n{call:?}\n{}", show(world));
    assert_eq!(view.emptied_by(), emptied_by.as_deref(), "{place}: emptied by");
    let mut copied = vec![0; tags.len()];
    assert_eq!(view.tags_into(&mut copied), tags.len(), "{place}");
    assert_eq!(copied, tags, "{place}: tags");
    if let Some(own) = view.tags() {
        assert_eq!(own, tags, "{place}: tag array");
    }
    for (n, tag) in tags.iter().enumerate().step_by(7) {
        assert_eq!(view.tag_at(n), Some(*tag), "{place}: tag {n}");
    }
    numbers.0.store(seed, Ordering::Relaxed);
    let choice = chain.route(call).unwrap();
    assert_eq!(choice.to_tags(), tags, "{place}: choice");
    assert_eq!(choice.emptied_by(), emptied_by.as_deref(), "{place}: choice emptied by");
    numbers.0.store(seed, Ordering::Relaxed);
    copied.fill(0);
    assert_eq!(chain.route_tags(call, &mut copied).unwrap().0, tags.len(), "{place}");
    assert_eq!(copied, tags, "{place}: route_tags");
    // Every third row is not available, and those divisible by 5 are.
    let available: Vec<usize> = (0..world.urls.len()).filter(|row| row % 3 != 0 || row % 5 == 0).collect();
    let (expect, _) = world.expect(call, seed, available.clone());
    let mask = Bits::from_rows(world.urls.len(), available.iter().map(|row| *row as u32));
    numbers.0.store(seed, Ordering::Relaxed);
    let invokers = chain.invokers();
    let view = session.route_masked(call, &invokers, &mask).unwrap();
    assert_eq!(view.rows().iter().collect::<Vec<_>>(), expect, "{place}: mask");
}

/// The programs of a world, for whoever looks at a failing case.
fn show(world: &World) -> String {
    let mut text = String::new();
    for part in &world.parts {
        match part {
            Part::Sieve(n) => text.push_str(&format!("sieve {n}\n")),
            Part::Program(program) => {
                text.push_str(&format!("program {:?} {:?}\n", program.fallback, program.firing));
                for step in &program.steps {
                    text.push_str(&match step {
                        Step::Condition(one) => {
                            let then = match &one.then {
                                Then::Keep(rows) => format!("keep {rows:?}"),
                                Then::Empty { last_word } => format!("empty, last word {last_word}"),
                                Then::Destinations(to) => to
                                    .list
                                    .iter()
                                    .map(|to| format!("[{}@{} {:?}]", to.weight, to.priority, to.rows))
                                    .collect(),
                            };
                            format!("  when {:?} force {}: {then}\n", one.when, one.force)
                        }
                        Step::Tag(tag) => match &tag.rule {
                            None => format!("  tag, static, untagged {:?}\n", tag.untagged),
                            Some(rule) => format!(
                                "  tag, force {} unknown {} levels {} claimed {:?} without {:?} failover {:?} untagged {:?} sets {:?}\n",
                                rule.force,
                                rule.force_unknown,
                                rule.levels,
                                rule.claimed,
                                rule.untagged_without_tag,
                                rule.failover,
                                tag.untagged,
                                rule.sets.iter().map(|set| (&set.name, &set.rows)).collect::<Vec<_>>(),
                            ),
                        },
                        Step::Affinity(one) => format!("  affinity {} {:?}\n", one.ratio, one.rows),
                        Step::Equal(one) => format!("  equal {} {}\n", one.key, one.column.name()),
                    });
                }
            }
        }
    }
    text
}

/// Changes the list, a program, or both.
fn change(dice: &mut Dice, chain: &Chain, world: &mut World) {
    if dice.chance(70) {
        let mut update = chain.invokers().update();
        for _ in 0..1 + dice.below(4) {
            match dice.below(3) {
                0 if !world.tags.is_empty() => {
                    let row = dice.below(world.tags.len() as u64) as usize;
                    let text = url(dice);
                    update.set(&text, world.tags[row]).unwrap();
                    world.texts[row] = text;
                }
                1 if !world.tags.is_empty() => {
                    let row = dice.below(world.tags.len() as u64) as usize;
                    assert!(update.remove(world.tags[row]));
                    world.tags.remove(row);
                    world.texts.remove(row);
                }
                _ => {
                    let tag = 1_000_000 + dice.below(1 << 40);
                    let text = url(dice);
                    update.add(&text, Some(tag)).unwrap();
                    world.tags.push(tag);
                    world.texts.push(text);
                }
            }
        }
        world.read();
        chain.set_invokers(update.finish().unwrap());
    }
    if dice.chance(60) {
        let at = dice.below(world.parts.len() as u64) as usize;
        if let Part::Program(program) = &mut world.parts[at] {
            *program = Arc::new(self::program(dice));
        }
        chain.set_routers(&world.slots());
    }
}

#[test]
fn compiled_and_plain_agree() {
    let cases = std::env::var("BYWAY_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let first = std::env::var("BYWAY_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for case in first..first + cases {
        check(case);
    }
}

#[test]
fn updates_of_lists_show_what_a_new_list_would() {
    let mut dice = Dice(99);
    let texts: Vec<String> = (0..50).map(|_| url(&mut dice)).collect();
    let list = Invokers::from_urls(texts.iter().map(String::as_str)).unwrap();
    let mut update = list.update();
    update.set("tri://[::1]:5/P?new=1&k=z", 7).unwrap();
    assert!(update.remove(0) && !update.remove(0));
    update.add("dubbo://h:1/S?k=q", Some(900)).unwrap();
    let updated = update.finish().unwrap();
    assert_eq!((list.len(), updated.len()), (50, 50));
    assert_eq!((updated.tag(0), updated.tag(6), updated.tag(49)), (Some(1), Some(7), Some(900)));
    let value = |row, column: Column| updated.column(row, &column).map(Cow::into_owned);
    assert_eq!(value(6, Column::Address).as_deref(), Some("[::1]:5"));
    assert_eq!(value(6, Column::parameter("new")).as_deref(), Some("1"));
    assert_eq!(value(6, Column::parameter("dubbo.tag")), None);
    assert_eq!(value(49, Column::parameter("k")).as_deref(), Some("q"));
    // The list it started from is what it was.
    let old = Url::parse(&texts[7]).unwrap();
    assert_eq!(list.column(7, &Column::Path), old.column(&Column::Path));
}
