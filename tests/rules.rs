//! Properties of the rule languages: programs mean what the naive reference says, printed rules read back, and no
//! text does harm. All random choices come from fixed seeds.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod engines;
mod naive;

use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::rules::dialect::Dialect;
use byway::rules::report::Severity;
use byway::rules::slot::Slot;
use byway::rules::{Rule, RuleKind, lint, routers};
use byway::runtime::random::Draw;
use engines::{Compiled, InForce, Lowered, Random, Replay, Router};
use naive::{Call, World, url::Url};
use std::collections::HashMap;
use std::sync::Arc;

/// Picks from a list.
fn one<'a>(random: &mut Random, list: &[&'a str]) -> &'a str {
    list[usize::try_from(random.below(list.len() as u64)).unwrap()]
}

fn maybe(random: &mut Random, of: u64) -> bool {
    random.below(of) == 0
}

const KEYS: &[&str] = &[
    "host",
    "port",
    "address",
    "region",
    "env",
    "version",
    "path",
    "protocol",
    "username",
    "weight",
    "x",
    "dubbo.tag",
    "serialization",
    "consumer.env",
    "provider.region",
];
const CALL_KEYS: &[&str] = &[
    "method",
    "methods",
    "arguments[0]",
    "arguments[1]",
    "arguments[1].name",
    "arguments[7]",
    "arguments",
    "attachments[user]",
    "attachments[a.b]",
    "attachments[level]",
    "attachments",
];
const VALUES: &[&str] = &[
    "hz",
    "bj",
    "gray",
    "*",
    "h*",
    "*z",
    "h*z",
    "*a*",
    "g*a*y",
    "$region",
    "$host",
    "$port",
    "$path",
    "$missing",
    "$env",
    "1~5",
    "~3",
    "4~",
    "~",
    "9~1",
    "a~b",
    "10.0.0.*",
    "10.*.0.*",
    "10.0.0.0/30",
    "10.0.0.1~10.0.0.3",
    "[::1]",
    "sayHello",
    "say*",
    "null",
    "u1",
    "0",
    "20880",
    "*:20880",
    "10.0.0.1:20880",
    "S",
    "/S",
    "*$*",
    "true",
];
const HOSTS: &[&str] =
    &["10.0.0.1", "10.0.0.2", "10.0.0.5", "10.1.0.9", "127.0.0.1", "[::1]", "hz.example.com"];

fn side(random: &mut Random, keys: &[&str]) -> String {
    let mut out = Vec::new();
    for _ in 0..random.below(4) {
        let key = one(random, keys);
        let mut text = key.to_owned();
        if !maybe(random, 10) {
            text += if maybe(random, 3) { "!=" } else { "=" };
            let values: Vec<&str> = (0..1 + random.below(3)).map(|_| one(random, VALUES)).collect();
            text += &values.join(",");
        }
        out.push(text);
    }
    out.join(if maybe(random, 15) { " " } else { " & " })
}

fn both_keys() -> Vec<&'static str> {
    KEYS.iter().chain(CALL_KEYS).copied().collect()
}

fn flags(random: &mut Random) -> String {
    format!("force: {}\nenabled: {}\n", maybe(random, 2), !maybe(random, 12))
}

fn condition_text(random: &mut Random) -> String {
    let mut text = flags(random);
    let count = random.below(5);
    let all = both_keys();
    if maybe(random, 2) {
        text += "configVersion: v3.0\nconditions:\n";
        for _ in 0..count {
            let when = side(random, &all);
            let keys = if maybe(random, 9) { &all } else { KEYS };
            let then = side(random, keys);
            text += &format!("- '{when} => {then}'\n");
        }
        if count == 0 {
            text += "- 'a=b => c'\n";
        }
        return text;
    }
    text += "configVersion: v3.1\nconditions:\n";
    for _ in 0..=count {
        text += &format!("- from: {{match: '{}'}}\n", side(random, &all));
        if maybe(random, 7) {
            continue;
        }
        if maybe(random, 5) {
            text += "  hashKey: attachments[user]\n";
        }
        text += "  to:\n";
        for _ in 0..1 + random.below(3) {
            let rows = if maybe(random, 12) { "false".to_owned() } else { side(random, KEYS) };
            text += &format!("  - match: '{rows}'\n    weight: {}\n", random.below(4));
            if maybe(random, 4) {
                text += &format!("    priority: {}\n", random.below(3));
            }
        }
    }
    text
}

fn tag_text(random: &mut Random) -> String {
    let mut text = flags(random);
    text += one(random, &["configVersion: v3.0\n", "configVersion: v3.1\n", ""]);
    text += "tags:\n";
    for name in ["gray", "blue", "gray|team", "hz"] {
        if maybe(random, 3) {
            continue;
        }
        text += &format!("- name: {name}\n");
        let by_match = maybe(random, 2);
        if !by_match || maybe(random, 6) {
            let addresses = [
                "10.0.0.1",
                "10.0.0.*:20880",
                "0.0.0.0:20881",
                "10.0.0.0/30",
                "127.0.0.1:20880",
                "[::1]:20880",
                "10.0.0.1-2",
                "*",
                "hz.example.com",
                "10.0.0.2:20880",
            ];
            let list: Vec<String> =
                (0..1 + random.below(2)).map(|_| format!("'{}'", one(random, &addresses))).collect();
            text += &format!("  addresses: [{}]\n", list.join(", "));
        }
        if by_match {
            let matches = [
                "{exact: gray}",
                "{prefix: h}",
                "{regex: 'h.|b.'}",
                "{wildcard: '*'}",
                "{empty: y}",
                "{noempty: y}",
            ];
            let list: Vec<String> = (0..random.below(3))
                .map(|_| {
                    format!(
                        "{{key: {}, value: {}}}",
                        one(random, &["region", "env", "none"]),
                        one(random, &matches)
                    )
                })
                .collect();
            text += &format!("  match: [{}]\n", list.join(", "));
        }
    }
    text + "- {name: last, addresses: ['10.9.9.9']}\n"
}

fn affinity_text(random: &mut Random) -> String {
    let key = one(random, &["region", "env", "host", "missing", "path"]);
    let ratio = one(random, &["0", "20", "33.4", "50", "100"]);
    format!("configVersion: v3.1\nenabled: true\naffinityAware: {{key: {key}, ratio: {ratio}}}\n")
}

fn url(random: &mut Random, protocols: &[&str]) -> String {
    let user = if maybe(random, 8) { one(random, &["hz@", "u1:gray@"]) } else { "" };
    let port = one(random, &["", ":20880", ":20880", ":20881", ":4"]);
    let mut text = format!(
        "{}://{user}{}{port}/{}?p=1",
        one(random, protocols),
        one(random, HOSTS),
        one(random, &["S", "S", ""])
    );
    for (key, values) in [
        ("region", &["hz", "bj", "", "h*"][..]),
        ("env", &["gray", "hz"]),
        ("version", &["1", "2"]),
        ("dubbo.tag", &["gray", "blue", "unknown", ""]),
        ("weight", &["3", "abc", "99999999999"]),
        ("default.serialization", &["hz"]),
        ("username", &["u1"]),
        ("port", &["4"]),
        ("methods", &["sayHello"]),
    ] {
        if maybe(random, 2) {
            text += &format!("&{key}={}", one(random, values));
        }
    }
    text
}

fn consumer(random: &mut Random) -> String {
    let mut text = url(random, &["consumer"]);
    if maybe(random, 6) {
        text += "&dubbo.force.tag=true";
    }
    text
}

fn call(random: &mut Random) -> Call {
    let mut call = Call {
        method: Some(one(random, &["sayHello", "sayBye", "$invoke", "get"]).to_owned()),
        ..Call::default()
    };
    for _ in 0..random.below(3) {
        call.arguments
            .push((!maybe(random, 5)).then(|| one(random, &["hz", "sayHello", "4", "u1"]).to_owned()));
    }
    call.first_is_text = maybe(random, 2) && matches!(call.arguments.first(), Some(Some(_)));
    for (name, values) in [
        ("user", &["u1", "hz", ""][..]),
        ("a.b", &["gray"]),
        ("level", &["4", "1"]),
        ("dubbo.tag", &["gray", "blue", "gray|team|x", "hz|y", "unknown", "*", ""]),
        ("dubbo.force.tag", &["true", "TRUE", "1", "false", ""]),
        ("invocation.need.mock", &["true", "False", ""]),
    ] {
        if maybe(random, 2) {
            call.attachments.insert(name.to_owned(), one(random, values).to_owned());
        }
    }
    call
}

/// A random rule of a kind that the dialect takes, and its text.
fn rule(random: &mut Random, kind: RuleKind, dialect: Dialect) -> (Rule, String) {
    for _ in 0..1000 {
        let text = match kind {
            RuleKind::Condition => condition_text(random),
            RuleKind::Tag => tag_text(random),
            RuleKind::Affinity => affinity_text(random),
        };
        if let Ok(Some(rule)) = byway::rules::parse(kind, dialect, &text) {
            return (rule, text);
        }
    }
    panic!("no rule of a thousand is taken")
}

#[test]
fn programs_mean_what_the_naive_reference_says() {
    let mut random = Random(1);
    for round in 0..6000 {
        let dialect = Dialect::ALL[round % 4];
        let kind =
            [RuleKind::Condition, RuleKind::Condition, RuleKind::Tag, RuleKind::Affinity][round / 4 % 4];
        let (rule, text) = rule(&mut random, kind, dialect);
        let consumer = consumer(&mut random);
        let invokers: Vec<String> =
            (0..random.below(9)).map(|_| url(&mut random, &["dubbo", "tri", "mock"])).collect();
        let urls: Vec<Url> = invokers.iter().map(|text| Url::parse(text, dialect)).collect();
        let router = match round % 9 {
            0 => Router::Mock,
            1 => Router::Rule(None, kind),
            _ => Router::Rule(Some(&rule), kind),
        };
        let lowered = Lowered::new(router, dialect, &consumer, &invokers);
        let mut compiled = Compiled::of(&lowered, &consumer, &invokers);
        for turn in 0..6 {
            let call = call(&mut random);
            let seed = random.next();
            let world = World::new(dialect, &consumer, &urls, Some(&call));
            let (mut first, mut second) = (Replay(seed), Replay(seed));
            let (want, _) = engines::naive(router, &world, &mut |total| first.below(total));
            let plain = lowered.route(&call, &mut |total| second.below(total));
            let got = if turn % 2 == 0 {
                [compiled.route(&call, seed), plain]
            } else {
                [plain, compiled.route(&call, seed)]
            };
            let want = [want.clone(), want];
            assert_eq!(
                got,
                want,
                "{dialect:?} {kind:?}\n{text}\nconsumer {consumer}\n{invokers:#?}\n{call:?}\n{}",
                lowered.words()
            );
        }
    }
}

#[test]
fn chains_follow_their_rules_and_lists() {
    let mut random = Random(4);
    let keys = [
        (RuleKind::Condition, "S::"),
        (RuleKind::Condition, "own"),
        (RuleKind::Condition, "theirs"),
        (RuleKind::Condition, "others"),
        (RuleKind::Affinity, "S::"),
        (RuleKind::Affinity, "theirs"),
        (RuleKind::Tag, "theirs"),
        (RuleKind::Tag, "own"),
    ];
    for round in 0..400 {
        let dialect = Dialect::ALL[round % 4];
        let consumer =
            consumer(&mut random).replace("/?", "/S?") + one(&mut random, &["", "&application=own"]);
        let store = RuleStore::new(routers::languages(), dialect as u8);
        let mut compiled = Compiled::whole(dialect, &consumer, &[], &store);
        let mut slots: HashMap<String, Slot> = HashMap::new();
        let mut invokers: Vec<String> = Vec::new();
        for _ in 0..30 {
            match random.below(6) {
                0 => {
                    invokers = (0..random.below(12))
                        .map(|_| {
                            let app = one(
                                &mut random,
                                &[
                                    "",
                                    "&remote.application=theirs",
                                    "&application=theirs",
                                    "&remote.application=own",
                                ],
                            );
                            url(&mut random, &["dubbo", "dubbo", "mock"]) + app
                        })
                        .collect();
                    compiled.set_invokers(&invokers);
                }
                1 | 2 => {
                    let (kind, name) = keys[usize::try_from(random.below(keys.len() as u64)).unwrap()];
                    let key = format!("{name}{}", kind.suffix());
                    let slot = slots.entry(key.clone()).or_insert_with(|| Slot::new(kind, dialect));
                    match random.below(5) {
                        0 => {
                            slot.remove();
                            let _ = store.remove(&key);
                        }
                        1 => {
                            let bad =
                                one(&mut random, &["conditions: [", "tags: 5", "", "conditions: ['a==b']"]);
                            let refused = slot.set(Some(bad)).error;
                            assert_eq!(store.put(&key, bad).err(), refused.map(|error| error.subject(key)));
                        }
                        _ => {
                            let text = rule(&mut random, kind, dialect).1;
                            slot.set(Some(&text));
                            store.put(&key, &text).unwrap();
                        }
                    }
                }
                _ => {}
            }
            let in_force: InForce = slots
                .iter()
                .filter_map(|(key, slot)| Some((key.clone(), Arc::clone(slot.active()?))))
                .collect();
            let urls: Vec<Url> = invokers.iter().map(|text| Url::parse(text, dialect)).collect();
            let call = call(&mut random);
            let seed = random.next();
            let world = World::new(dialect, &consumer, &urls, Some(&call));
            let mut draws = Replay(seed);
            let want = engines::naive_chain(&world, &in_force, &mut |total| draws.below(total));
            let got = compiled.route(&call, seed);
            assert_eq!(
                got,
                want,
                "{dialect:?} {consumer}\n{invokers:#?}\n{call:?}\n{:#?}\n{:#?}",
                in_force.iter().map(|(key, rule)| format!("{key}\n{}", rule.to_yaml())).collect::<Vec<_>>(),
                compiled.chain().status()
            );
        }
    }
}

#[test]
fn printed_rules_read_back_as_themselves() {
    let mut random = Random(2);
    for round in 0..4000 {
        let dialect = Dialect::ALL[round % 4];
        let kind = RuleKind::ALL[round / 4 % 3];
        let (rule, text) = rule(&mut random, kind, dialect);
        let printed = rule.to_yaml();
        let again = byway::rules::parse(kind, dialect, &printed);
        // Expressions of a disabled rule are not read, so they cannot be printed.
        if !rule.header().enabled {
            continue;
        }
        assert_eq!(
            again.as_ref().ok().and_then(Option::as_ref),
            Some(&rule),
            "{dialect:?}\n{text}\nprinted\n{printed}\n{again:?}"
        );
    }
}

#[test]
fn no_text_does_harm() {
    let mut random = Random(3);
    let providers = ["dubbo://10.0.0.1:20880/S?region=hz&env=gray", "tri://[::1]/S"];
    let providers = Invokers::from_urls(providers).unwrap();
    for round in 0..12_000 {
        let kind = RuleKind::ALL[round % 3];
        let mut bytes = match round % 5 {
            0 => (0..random.below(200)).map(|_| random.next().to_le_bytes()[0]).collect(),
            1 => affinity_text(&mut random).into_bytes(),
            2 => tag_text(&mut random).into_bytes(),
            _ => condition_text(&mut random).into_bytes(),
        };
        for _ in 0..random.below(8) {
            let at = usize::try_from(random.below(bytes.len() as u64 + 1)).unwrap();
            let odd = b"[]{}:,&*!|>'\"%@`#?-=~$/\\\n\t \0\xff";
            match random.below(4) {
                0 => bytes.insert(at, odd[usize::try_from(random.below(odd.len() as u64)).unwrap()]),
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 if at < bytes.len() => bytes[at] = random.next().to_le_bytes()[0],
                _ => {
                    let end = (at + usize::try_from(random.below(40)).unwrap()).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let dialect = Dialect::ALL[round % 4];
        let reading = byway::rules::read(kind, dialect, &text);
        let failed = reading.problems.iter().any(|problem| problem.severity == Severity::Error);
        assert_eq!(failed, reading.error.is_some(), "{text:?}");
        let linted = lint::check(kind, dialect, &text, Some(&providers));
        assert!(!failed || lint::is_refused(&linted), "{text:?}: {linted:?}");
        for problem in &reading.problems {
            assert!(
                problem.at.offset <= text.len() && problem.at.line > 0 && problem.at.column > 0,
                "{problem:?}"
            );
            assert!(!problem.message.is_empty());
        }
        if let Some(rule) = reading.rule {
            let lowered = Lowered::new(
                Router::Rule(Some(&rule), kind),
                dialect,
                "consumer://10.0.0.1/S?region=hz",
                &[],
            );
            lowered.route(&Call::default(), &mut |_| 0);
        }
    }
}

/// Texts made to hurt: the work they cause must stay in proportion to their length. Nothing is timed; an algorithm
/// quadratic in a quarter of a megabyte makes itself felt.
#[test]
fn large_hostile_texts_end() {
    let length = 1 << 18;
    let fill = |piece: &str| piece.repeat((length - 200) / piece.len());
    let numbered = |before: &str, behind: &str| -> String {
        let mut out = String::new();
        for i in 0.. {
            let piece = format!("{before}{i}{behind}");
            if out.len() + piece.len() > length - 200 {
                break;
            }
            out += &piece;
        }
        out
    };
    let texts = [
        fill("["),
        fill("{a: "),
        fill("- "),
        fill("? "),
        fill("a: b\n"),
        fill("&a "),
        fill("'"),
        fill("\"\\x41"),
        fill("!!x "),
        format!("conditions: ['{}']", fill("&=,! ")),
        format!("conditions: ['{}']", fill("a=b&")),
        format!("conditions: ['{}']", fill("a=b,c ")),
        format!("conditions: ['=> host={}']", fill("*a")),
        format!("conditions: ['=> a={}']", fill("~")),
        format!("conditions:\n{}", fill("- 'a==b'\n")),
        format!("conditions:\n{}", fill("- 'a=b => c=d'\n")),
        format!("tags:\n{}", fill("- name: a\n")),
        format!("tags: [{{name: a, match: [{{key: k, value: {{regex: '{}'}}}}]}}]", fill("(a*)*")),
        fill("é: ü\n"),
        numbered("k", ": v\n"),
        format!("conditions: ['{}']", numbered("k", "=v&")),
        format!("conditions: ['{}']", numbered("k", " ")),
        format!("conditions: ['k=v{}']", numbered(",", "")),
        format!("conditions: ['{}']", numbered("&&k", "")),
        format!("conditions: ['{}']", fill("arguments& ")),
        format!("tags:\n{}", numbered("- {name: n", ", addresses: ['1.1.1.1']}\n")),
        format!("tags: [{{name: a, addresses: [{}]}}]", fill("'1.1.1.1',")),
    ];
    for text in &texts {
        for kind in RuleKind::ALL {
            let reading = byway::rules::read(kind, Dialect::Byway, text);
            let shown: String = text.chars().take(40).collect();
            assert!(reading.error.is_some() || reading.rule.is_some(), "{kind:?} {shown}");
            let linted = lint::check(kind, Dialect::Byway, text, None);
            assert!(linted.len() >= reading.problems.len(), "{kind:?} {shown}");
            assert!(reading.problems.len() <= 201, "{kind:?} {shown}");
            assert!(reading.problems.iter().all(|problem| problem.message.len() < 2000), "{kind:?} {shown}");
            if let Some(rule) = reading.rule {
                Lowered::new(Router::Rule(Some(&rule), kind), Dialect::Byway, "consumer://10.0.0.1/S", &[]);
            }
        }
    }
}

/// One regular expression is bounded, and so are all of a text together: else a megabyte of them takes gigabytes.
#[test]
fn the_regular_expressions_of_one_text_share_a_bound() {
    let text = |count: usize, regex: &str| -> String {
        let tag = |i| format!("- {{name: t{i}, match: [{{key: k, value: {{regex: '{regex}'}}}}]}}\n");
        format!("tags:\n{}", (0..count).map(tag).collect::<String>())
    };
    let large = "[a-z]{9000}";
    for (count, regex, taken) in [(250, "v[0-9]+", true), (2, large, true), (40, large, false)] {
        for dialect in Dialect::ALL {
            let reading = byway::rules::read(RuleKind::Tag, dialect, &text(count, regex));
            assert_eq!(reading.error.is_none(), taken, "{count} {regex} {dialect:?} {:?}", reading.error);
        }
    }
    let error = byway::rules::read(RuleKind::Tag, Dialect::Byway, &text(40, large)).error.unwrap();
    assert!(error.message().contains("regular expressions of this text"), "{error}");
}
