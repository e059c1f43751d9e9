//! Bars of router chains: one line `bar NAME VALUE LIMIT ok|short` each. Times are processor time of the thread, the
//! median of 11 batches; limits are multiples of `E`, an empty C call in the same run, or of `V`, the plain reference
//! that looks at one invoker after another.
//!
//! `cargo bench --bench chain` (or `--profile quick` for a look).
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use byway::chain::bits::Bits;
use byway::chain::builder::InvokersBuilder;
use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::invocation::Invocation;
use byway::chain::program::*;
use byway::chain::reference::Run;
use byway::chain::router::{RouterSlot, SlotBody, SlotKey};
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::chain::url::Url;
use byway::rules::routers;
use byway::runtime::random::RandomSource;
use byway::sys::bitset::{Block, Tier, and_chain};
use byway::sys::thread::cpu_time_ns;

extern "C" fn empty() {}

static EMPTY: extern "C" fn() = empty;

/// Median nanoseconds per call of 11 batches, each long enough for the clock.
fn measure(mut call: impl FnMut()) -> f64 {
    let mut batch = 1u64;
    loop {
        let start = cpu_time_ns();
        for _ in 0..batch {
            call();
        }
        if cpu_time_ns() - start > 4_000_000 || batch >= 1 << 28 {
            break;
        }
        batch *= 2;
    }
    let mut times: Vec<f64> = (0..11)
        .map(|_| {
            let start = cpu_time_ns();
            for _ in 0..batch {
                call();
            }
            (cpu_time_ns() - start) as f64 / batch as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[5]
}

/// A bar that must not be passed.
fn at_most(name: &str, value: f64, limit: f64) {
    println!("bar {name} {value:.2} {limit:.2} {}", if value <= limit { "ok" } else { "short" });
}

/// A bar that must be reached.
fn at_least(name: &str, value: f64, limit: f64) {
    println!("bar {name} {value:.2} {limit:.2} {}", if value >= limit { "ok" } else { "short" });
}

struct Glob {
    head: String,
    tail: Option<String>,
    key: String,
}

impl ValueTest for Glob {
    fn test(&self, value: Option<&str>) -> bool {
        value.is_some_and(|value| match &self.tail {
            None => value == self.head,
            Some(tail) => value.starts_with(&self.head) && value.ends_with(tail),
        })
    }

    fn cache_key(&self) -> &str {
        &self.key
    }

    fn shape(&self) -> Shape<'_> {
        match &self.tail {
            None => Shape::Exact(&self.head),
            Some(tail) => Shape::Affix(&self.head, tail),
        }
    }
}

fn glob(text: &str) -> Test {
    let (head, tail) = match text.split_once('*') {
        None => (text, None),
        Some((head, tail)) => (head, Some(tail.to_owned())),
    };
    Arc::new(Glob { head: head.to_owned(), tail, key: text.to_owned() })
}

struct Absent;

impl ValueTest for Absent {
    fn test(&self, value: Option<&str>) -> bool {
        value.is_none_or(str::is_empty)
    }
    fn cache_key(&self) -> &str {
        "absent or empty"
    }
}

fn rule(method: &str, column: Column, pattern: &str) -> Step {
    Step::Condition(Condition {
        when: CallTest::Value(CallKey::Method, glob(method)),
        then: Then::Keep(RowTest::Value(column, glob(pattern))),
        force: true,
        text: format!("method={method} => {}={pattern}", column_name(pattern)).into(),
    })
}

fn column_name(pattern: &str) -> &str {
    if pattern.contains(':') { "address" } else { "parameter" }
}

fn url(i: usize) -> String {
    let host = format!("10.{}.{}.{}", i % 4, i / 4 / 250 % 250, 1 + i / 4 % 250);
    let region = ["hangzhou", "shanghai", "beijing"][i % 3];
    let tag = if i.is_multiple_of(10) { "&dubbo.tag=gray" } else { "" };
    format!(
        "dubbo://{host}:{}/com.foo.BarService?anyhost=true&application=provider-{}&deprecated=false&dubbo=2.0.2\
         &dynamic=true&generic=false&interface=com.foo.BarService&methods=hello,hello2,bye&pid={}&release=3.3.0\
         &region={region}&zone=z{}&revision=1.0.{}&service-name-mapping=true&side=provider&timestamp={}&weight=100{tag}",
        20880 + i % 2,
        i % 4,
        1000 + i % 30000,
        i % 8,
        i % 5,
        1_700_000_000_000u64 + i as u64 * 37,
    )
}

fn list(rows: usize) -> Arc<Invokers> {
    let mut builder = InvokersBuilder::new();
    for i in 0..rows {
        builder.add(&url(i), Some(1 + i as u64 * 3)).unwrap();
    }
    builder.finish().unwrap()
}

fn chain(list: &Arc<Invokers>, programs: Vec<Program>, memo: bool) -> Chain {
    let slots: Vec<RouterSlot> = programs
        .into_iter()
        .enumerate()
        .map(|(i, program)| RouterSlot::new(format!("r{i}"), i as i64, SlotBody::Program(Arc::new(program))))
        .collect();
    let consumer = Url::parse("consumer://10.9.8.7/com.foo.BarService?application=me").unwrap();
    let mut options = ChainOptions::new(consumer, slots);
    if !memo {
        options.memo_bytes = 0;
    }
    let chain = Chain::new(options, RuleStore::new(Vec::new(), 0), Arc::new(RandomSource::seeded(1)));
    chain.set_invokers(Arc::clone(list));
    chain
}

fn tag_router(rule: Option<TagRule>) -> Program {
    let column = Column::parameter("dubbo.tag");
    Program::new(vec![Step::Tag(Tag {
        tag: CallKey::Attachment("dubbo.tag".into()),
        empty_is_no_tag: false,
        everyone: None,
        default_tag: None,
        force: CallTest::Value(CallKey::Attachment("dubbo.force.tag".into()), glob("true")),
        untagged: RowTest::Value(column.clone(), Arc::new(Absent)),
        column,
        rule,
        text: "tag".into(),
    })])
}

fn dynamic_tag() -> TagRule {
    let addresses = (0..10).map(|i| {
        let url = Url::parse(&url(i * 7)).unwrap();
        RowTest::Value(Column::Address, glob(&url.address()))
    });
    let rows = RowTest::AnyOf(addresses.collect());
    TagRule {
        force: false,
        force_unknown: false,
        levels: true,
        sets: vec![TagSet { name: "gray".into(), rows: rows.clone(), gone_when_empty: false }],
        claimed: rows,
        untagged_without_tag: RowTest::Value(Column::parameter("dubbo.tag"), Arc::new(Absent)),
        failover: FailoverClaim::Claimed,
    }
}

fn one_rule() -> Program {
    Program::new(vec![rule("hello", Column::Address, "*:20880")])
}

fn main() {
    // A quiet spell first: the clock of the processor rises under load.
    let start = cpu_time_ns();
    while cpu_time_ns() - start < 300_000_000 {
        black_box(EMPTY)();
    }
    let e = measure(|| black_box(EMPTY)());
    let tier = Tier::current();
    println!("E {e:.2} ns, vectors {}", tier.name());
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wants = |name: &str| only.as_ref().is_none_or(|only| name.starts_with(only.as_str()));
    if wants("memo") {
        memoised(e);
    }
    if wants("threads") {
        threads();
    }
    if wants("run") {
        unmemoised(e, tier);
    }
    if wants("tag") {
        tags(e, tier);
    }
    if wants("change") {
        changes();
        condition_of_a_text();
    }
}

const ATTACHMENTS: [(&[u8], &[u8]); 4] = [
    (b"dubbo.tag", b"gray"),
    (b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    (b"user", b"u1"),
    (b"path", b"x"),
];

fn memoised(e: f64) {
    let hello = Invocation::new(b"hello");
    for (rows, rules) in [(10, 1), (10_000, 1), (100, 1000)] {
        let mut programs = vec![tag_router(None)];
        let steps = (0..rules - 1).map(|i| rule(&format!("method{i}"), Column::parameter("region"), "hang*"));
        programs.push(Program::new(steps.chain([rule("hello", Column::Address, "*:20880")]).collect()));
        let list = list(rows);
        let chain = chain(&list, programs, true);
        let mut session = chain.session();
        let time = measure(|| {
            black_box(session.route(black_box(&hello)).unwrap().len());
        });
        at_most(&format!("memo_session_{rows}_invokers_{rules}_rules_E"), time / e, 4.0);
        let call = Invocation { attachments: &ATTACHMENTS, ..hello };
        let time = measure(|| {
            black_box(session.route(black_box(&call)).unwrap().len());
        });
        at_most(&format!("memo_session_4_attachments_{rows}_invokers_{rules}_rules_E"), time / e, 15.0);
        let time = measure(|| {
            black_box(chain.route(black_box(&hello)).unwrap());
        });
        println!("a choice that pins its world, {rows} invokers: {time:.1} ns");
        let time = measure(|| {
            black_box(chain.route_with(black_box(&hello), |view| view.len()).unwrap());
        });
        at_most(&format!("memo_without_session_{rows}_invokers_{rules}_rules_E"), time / e, 12.0);
        let mut out = vec![0; rows];
        let count = chain.route(&hello).unwrap().len();
        let time = measure(|| {
            black_box(chain.route_tags(black_box(&hello), black_box(&mut out)).unwrap());
        });
        at_most(
            &format!("memo_route_tags_{rows}_invokers_{rules}_rules_ns"),
            time,
            15.0 * e + 0.5 * count as f64,
        );
    }
}

/// Processor time per call of two threads that route at once, with and without a thread that changes the rule.
fn threads() {
    let list = list(100);
    let chain = chain(&list, vec![one_rule()], true);
    let each = |threads: usize, writer: bool| {
        let stop = AtomicBool::new(false);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            if writer {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        chain.set_invokers(Arc::clone(&list));
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
            }
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let mut session = chain.session();
                        let hello = Invocation::new(b"hello");
                        let time = measure(|| {
                            black_box(session.route(black_box(&hello)).unwrap().len());
                        });
                        // The others keep routing until all have measured.
                        while !stop.load(Ordering::Relaxed) {
                            black_box(session.route(black_box(&hello)).unwrap().len());
                        }
                        time
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(600));
            stop.store(true, Ordering::Relaxed);
            let times: Vec<f64> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
            done.store(true, Ordering::Relaxed);
            times.iter().sum::<f64>() / times.len() as f64
        })
    };
    let alone = each(1, false);
    at_most("threads_2_against_1", each(2, false) / alone, 1.15);
    at_most("threads_2_with_writer_against_1", each(2, true) / alone, 1.4);
}

fn limit(rows: usize, tier: Tier) -> f64 {
    let wide = match rows {
        0..=1_000 => 12.0,
        1_001..=10_000 => 20.0,
        _ => 100.0,
    };
    if rows > 1_000 && tier < Tier::Avx512 { wide * 2.5 } else { wide }
}

fn unmemoised(e: f64, tier: Tier) {
    let hello = Invocation::new(b"hello");
    let tier_name = tier.name();
    for rows in [10, 1_000, 10_000, 100_000] {
        let list = list(rows);
        let mine = chain(&list, vec![one_rule()], false);
        let mut session = mine.session();
        let one = measure(|| {
            black_box(session.route(black_box(&hello)).unwrap().len());
        });
        at_most(&format!("run_1_rule_{rows}_invokers_{tier_name}_E"), one / e, limit(rows, tier));
        if rows <= 10_000 {
            let urls: Vec<Url> = (0..rows).map(|i| Url::parse(&url(i)).unwrap()).collect();
            let program = one_rule();
            let plain = measure(|| {
                let mut draw = |_| 0;
                let mut run = Run { invokers: &urls, call: &hello, draw: &mut draw };
                black_box(run.program(&program, (0..urls.len()).collect()).len());
            });
            let faster = match rows {
                10 => 20.0,
                1_000 => 2_000.0,
                _ => 20_000.0,
            };
            at_least(&format!("run_1_rule_{rows}_invokers_against_V"), plain / one, faster);
        }
        if rows <= 1_000 {
            let steps = (0..999).map(|i| rule(&format!("method{i}"), Column::parameter("region"), "hang*"));
            let program = Program::new(steps.chain([rule("hello", Column::Address, "*:20880")]).collect());
            let other = chain(&list, vec![program], false);
            let mut session = other.session();
            let time = measure(|| {
                black_box(session.route(black_box(&hello)).unwrap().len());
            });
            at_most(&format!("run_1000_rules_1_fires_{rows}_invokers_E"), time / e, 12.0);
            let steps = (0..999).map(|i| {
                let method = if i % 2 == 0 { format!("get{i}Of*") } else { format!("*Of{i}") };
                rule(&method, Column::parameter("region"), "hang*")
            });
            let program = Program::new(steps.chain([rule("hel*", Column::Address, "*:20880")]).collect());
            let other = chain(&list, vec![program], false);
            let mut session = other.session();
            // Not the same one twice in a row: that would only be recognised.
            let calls = [&b"helloWorldOfMine"[..], b"helloWorldOfThine"].map(Invocation::new);
            let mut turn = 0;
            let time = measure(|| {
                turn ^= 1;
                black_box(session.route(black_box(&calls[turn])).unwrap().len());
            });
            at_most(&format!("run_1000_globs_1_fires_{rows}_invokers_E"), time / e, 80.0);
        }
        if rows == 100_000 {
            let columns = [
                (Column::parameter("region"), "*h*"),
                (Column::parameter("zone"), "z*"),
                (Column::parameter("zone"), "*1"),
                (Column::Address, "*:20880"),
                (Column::Address, "*:20881"),
                (Column::parameter("revision"), "1.0.1"),
                (Column::parameter("revision"), "1.0.2"),
                (Column::Host, "10.1*"),
            ];
            // Each keeps a part and falls back when its turn leaves nothing; made to leave something: any of two.
            let steps = columns.iter().enumerate().map(|(i, (column, pattern))| {
                let other = RowTest::Value(Column::parameter("zone"), glob(&format!("z{}", i % 8)));
                Step::Condition(Condition {
                    when: CallTest::Value(CallKey::Method, glob("hello")),
                    then: Then::Keep(RowTest::AnyOf(vec![
                        RowTest::Value(column.clone(), glob(pattern)),
                        other,
                        RowTest::Value(Column::Host, glob("10.2*")),
                    ])),
                    force: true,
                    text: "one of eight".into(),
                })
            });
            let other = chain(&list, vec![Program::new(steps.collect())], false);
            let mut session = other.session();
            let time = measure(|| {
                black_box(session.route(black_box(&hello)).unwrap().len());
            });
            let blocks = rows.div_ceil(512);
            let sets: Vec<Vec<Block>> = (0..8).map(|_| vec![Block([u64::MAX; 8]); blocks]).collect();
            let sets: Vec<&[Block]> = sets.iter().map(Vec::as_slice).collect();
            let mut out = vec![Block::default(); blocks];
            let kernel = measure(|| {
                black_box(and_chain(None, black_box(&sets), &mut out));
            });
            println!("kernel of 8 sets {kernel:.0} ns, routing {time:.0} ns");
            at_least(
                &format!("run_8_rules_100000_invokers_{tier_name}_of_kernel_percent"),
                100.0 * kernel / time,
                60.0,
            );
        }
        let mask = Bits::full(rows);
        let masked = measure(|| {
            black_box(session.route_masked(black_box(&hello), &list, &mask).unwrap().len());
        });
        println!("under a mask, {rows} invokers: {masked:.1} ns");
    }
}

fn tags(e: f64, tier: Tier) {
    for rows in [10, 1_000, 10_000, 100_000] {
        let list = list(rows);
        let most = 2.0 * limit(rows, tier);
        let tagged = [(&b"dubbo.tag"[..], &b"gray"[..])];
        let call = Invocation { attachments: &tagged, ..Invocation::new(b"hello") };
        let plain = Invocation::new(b"hello");
        for (name, rule) in [("static", None), ("dynamic", Some(dynamic_tag()))] {
            let tagged = chain(&list, vec![tag_router(rule)], false);
            let mut session = tagged.session();
            for (what, call) in [("tagged", &call), ("untagged", &plain)] {
                let time = measure(|| {
                    black_box(session.route(black_box(call)).unwrap().len());
                });
                at_most(&format!("tag_{name}_{what}_{rows}_invokers_{}_E", tier.name()), time / e, most);
            }
        }
    }
}

fn changes() {
    for rows in [10, 1_000, 10_000, 100_000] {
        let texts: Vec<String> = (0..rows).map(url).collect();
        let time = measure(|| {
            let mut builder = InvokersBuilder::new();
            for (i, text) in texts.iter().enumerate() {
                builder.add(text, Some(1 + i as u64 * 3)).unwrap();
            }
            black_box(builder.finish().unwrap());
        });
        let most = if rows == 10_000 { 400.0 } else { f64::INFINITY };
        at_most(&format!("change_build_{rows}_invokers_ns_each"), time / rows as f64, most);
        let most = if rows >= 1_000 { 130.0 } else { f64::INFINITY };
        at_most(
            &format!("change_memory_{rows}_invokers_bytes_each"),
            list(rows).heap_bytes() as f64 / rows as f64,
            most,
        );
    }
    let hundred_thousand = list(100_000);
    // A thousand rules as routers of their own, of which one changes back and forth.
    let program = |i: usize, pattern: &str| {
        Arc::new(Program::new(vec![rule(&format!("method{i}"), Column::parameter("region"), pattern)]))
    };
    let slots = |special: &Arc<Program>, others: &[Arc<Program>]| -> Vec<RouterSlot> {
        others
            .iter()
            .chain([special])
            .enumerate()
            .map(|(i, program)| {
                RouterSlot::new(format!("r{i}"), i as i64, SlotBody::Program(Arc::clone(program)))
            })
            .collect()
    };
    let others: Vec<Arc<Program>> = (0..999).map(|i| program(i, "hang*")).collect();
    let variants = [slots(&program(999, "shang*"), &others), slots(&program(999, "bei*"), &others)];
    let changing = chain(&hundred_thousand, Vec::new(), true);
    let mut turn = 0;
    let time = measure(|| {
        turn += 1;
        changing.set_routers(&variants[turn % 2]);
    });
    at_most("change_1_rule_of_1000_us", time / 1e3, 1000.0);
    let eight: Vec<Step> =
        (0..8).map(|i| rule("hello", Column::parameter("zone"), &format!("z{i}"))).collect();
    let changing = chain(&hundred_thousand, vec![Program::new(eight), one_rule()], true);
    let mut current = hundred_thousand;
    let mut turn = 0;
    let time = measure(|| {
        turn += 1;
        let mut update = current.update();
        update.set(&url(turn % 7 * 100 + 5), 1 + 50_000 * 3).unwrap();
        current = update.finish().unwrap();
        changing.set_invokers(Arc::clone(&current));
    });
    at_most("change_1_invoker_of_100000_us", time / 1e3, 2000.0);
}

/// One rule text of a thousand conditions, of which one is edited back and forth: read, lowered and in force.
fn condition_of_a_text() {
    let list = list(1_000);
    let store = RuleStore::new(routers::languages(), 0);
    let consumer = Url::parse("consumer://10.0.0.9/HelloService?application=web").unwrap();
    let key = "HelloService::.condition-router";
    let body = SlotBody::Rule { key: SlotKey::Fixed(key.into()), otherwise: None };
    let options = ChainOptions::new(consumer, vec![RouterSlot::new("service", 140, body)]);
    let chain = Chain::new(options, Arc::clone(&store), Arc::new(RandomSource::seeded(1)));
    chain.set_invokers(list);
    let text = |turn: usize| {
        let mut text = "configVersion: v3.0\nforce: true\nconditions:\n".to_owned();
        for i in 0..1_000 {
            let port = if i == 500 { 20880 + turn } else { 20880 + i % 2 };
            text += &format!("  - method=method{i} => address=*:{port} & region=hang*\n");
        }
        text
    };
    let texts: Vec<String> = (0..2).map(text).collect();
    let mut turn = 0;
    let read = measure(|| {
        turn += 1;
        store.put("Other::.condition-router", &texts[turn % 2]).unwrap();
    });
    let time = measure(|| {
        turn += 1;
        store.put(key, &texts[turn % 2]).unwrap();
    });
    println!("of that, the text read: {:.1} us", read / 1e3);
    at_most("change_1_condition_of_1000_us", time / 1e3, 1000.0);
}
