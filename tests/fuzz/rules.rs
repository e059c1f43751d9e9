//! Rule texts: what is read prints and reads back as itself, the lint agrees with the reader, and what a rule does to a
//! list is a part of the list.

use crate::mutate::{Mutator, text};
use crate::{Target, cases, texts};
use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::invocation::Invocation;
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::chain::url::Url;
use byway::rules::dialect::Dialect;
use byway::rules::expression::Condition;
use byway::rules::mesh::router::MeshRouter;
use byway::rules::report::{Problem, Severity};
use byway::rules::{RuleKind, TextKind, lint, mesh, read, routers};
use byway::runtime::random::RandomSource;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn targets(folder: &Path) -> Vec<Target> {
    let (chain, condition, bugs) =
        (cases(folder, "dubbo_chain"), cases(folder, "dubbo_condition"), cases(folder, "bugs"));
    let of = |kinds: &[&str]| -> Vec<Value> {
        chain
            .iter()
            .filter(|case| kinds.contains(&case["kind"].as_str().unwrap_or_default()))
            .cloned()
            .collect()
    };
    let strings: Vec<Value> = condition.iter().filter(|case| case["form"] == "string").cloned().collect();
    let mut conditions = texts(&condition, &["content"]);
    conditions.extend(texts(&bugs, &["yaml"]));
    vec![
        Target {
            name: "mesh_yaml",
            seeds: texts(&of(&["mesh", "mesh-listener", "mesh-lifecycle", "mesh-parse"]), &["rule"]),
            words: &[
                "\n---\n",
                "kind: VirtualService\n",
                "kind: DestinationRule\n",
                "metadata: {name: x}\n",
                "subsets:",
                "labels:",
                "route:",
                "match:",
                "weight: ",
                "fallback:",
                "exact:",
                "regex:",
                "oneof:",
                "attachments:",
                "dubboContext:",
                "num_value: {oneof: [{mod: 0.0, exact: 1.0}]}",
                "args: [{index: 99}]",
            ],
            look: mesh_yaml,
            work: (6_000, 60),
            every: 1,
        },
        Target {
            name: "condition_yaml",
            seeds: conditions,
            words: &[
                "configVersion: v3.1\n",
                "configVersion: v3.0\n",
                "conditions:\n",
                "  - ",
                "=>",
                "match:",
                "from:",
                "to:",
                "weight: ",
                "force: true\n",
                "enabled: false\n",
                "priority: ",
                "attachments[a]=1~9",
                "arguments[0]=*",
                "!=",
            ],
            look: |input, mutator| rule_yaml(RuleKind::Condition, input, mutator),
            work: (6_000, 60),
            every: 1,
        },
        Target {
            name: "tag_yaml",
            seeds: texts(&of(&["tag", "tag-parse", "tag-lifecycle"]), &["rule"]),
            words: &[
                "tags:\n",
                "- name: ",
                "addresses: ",
                "match:",
                "key: ",
                "value: {",
                "regex: ",
                "10.0.0.*:1",
                "force: true\n",
            ],
            look: |input, mutator| rule_yaml(RuleKind::Tag, input, mutator),
            work: (6_000, 60),
            every: 1,
        },
        Target {
            name: "affinity_yaml",
            seeds: texts(&condition, &["content"]),
            words: &["affinityAware:", "key: region", "ratio: ", "configVersion: v3.1\n"],
            look: |input, mutator| rule_yaml(RuleKind::Affinity, input, mutator),
            work: (6_000, 60),
            every: 2,
        },
        Target {
            name: "condition_text",
            seeds: texts(&strings, &["rule"]),
            words: &[
                "=>",
                "&",
                "!=",
                "=",
                ",",
                "host",
                "method",
                "arguments[0]",
                "attachments[a.b]",
                "$host",
                "~",
                "1~5",
                "*",
            ],
            look: condition_text,
            work: (200, 20),
            every: 1,
        },
    ]
}

fn errors(problems: &[Problem]) -> usize {
    problems.iter().filter(|one| one.severity == Severity::Error).count()
}

/// Places are inside the text.
fn placed(problems: &[Problem], text: &str) {
    let lines = text.split('\n').count() + 1;
    for problem in problems {
        assert!(problem.at.offset <= text.len(), "{problem:?}");
        assert!((1..=lines).contains(&(problem.at.line as usize)) && problem.at.column >= 1, "{problem:?}");
        assert!(!problem.message.is_empty());
    }
}

const URLS: [&str; 3] = [
    "dubbo://10.0.0.1:20880/com.foo.Bar?application=app1&region=hz&v=1",
    "dubbo://10.0.0.2:20880/com.foo.Bar?application=app1&region=bj&v=2",
    "dubbo://[2001:db8::7]:20880/com.foo.Bar?application=app1&dubbo.tag=gray",
];

/// Routes some calls by the text under a key; whatever it is, what comes out was in the list.
fn routed(key: &str, text: &str, dialect: Dialect) {
    let store = RuleStore::new(routers::languages(), dialect as u8);
    let consumer = Url::parse("consumer://10.1.1.1/com.foo.Bar?application=web&env=gray").unwrap();
    let mut slots = routers::built_in(dialect, &consumer).unwrap();
    slots.extend(MeshRouter::slot(dialect));
    let chain =
        Chain::new(ChainOptions::new(consumer, slots), Arc::clone(&store), Arc::new(RandomSource::seeded(1)));
    chain.set_invokers(Invokers::from_urls(URLS).unwrap());
    let taken = store.put(key, text);
    let attachments: [(&[u8], &[u8]); 2] = [(b"dubbo.tag", b"gray"), (b"a", b"7")];
    let arguments: [Option<&[u8]>; 2] = [Some(b"1"), None];
    for call in [
        Invocation::new(b"sayHello"),
        Invocation { attachments: &attachments, arguments: &arguments, ..Invocation::new(b"$invoke") },
    ] {
        match chain.route(&call) {
            Ok(choice) => {
                let tags = choice.to_tags();
                assert!(tags.iter().all(|tag| *tag < 3) && tags.is_sorted());
                let explained = choice.explain(&call).unwrap();
                assert_eq!(explained.output, tags.len(), "{}", explained.to_text());
            }
            // Only where upstream fails the call.
            Err(error) => assert!(dialect != Dialect::Byway, "{error}"),
        }
    }
    assert_eq!(store.remove(key), taken.is_ok() || store.text(key).is_some() || !store.remove(key));
}

fn mesh_yaml(input: &[u8], mutator: &mut Mutator) {
    let rule = text(input);
    for dialect in [Dialect::Byway, Dialect::Dubbo3] {
        let problems = TextKind::Mesh.check(dialect, &rule, None);
        placed(&problems, &rule);
        let read = mesh::MeshRules::parse(&rule, dialect);
        assert_eq!(read.is_err(), errors(&problems) > 0, "{problems:?}");
    }
    routed("app1.MESHAPPRULE", &rule, if mutator.below(2) == 0 { Dialect::Byway } else { Dialect::Dubbo3 });
}

fn rule_yaml(kind: RuleKind, input: &[u8], mutator: &mut Mutator) {
    let rule = text(input);
    let dialect = Dialect::ALL[mutator.below(Dialect::ALL.len())];
    let reading = read(kind, dialect, &rule);
    placed(&reading.problems, &rule);
    assert_eq!(reading.error.is_some(), errors(&reading.problems) > 0);
    let problems = lint::check(kind, dialect, &rule, None);
    placed(&problems, &rule);
    if reading.error.is_some() {
        assert!(errors(&problems) > 0, "the lint finds nothing wrong");
    }
    // Of a rule that is switched off the conditions are not read.
    if dialect == Dialect::Byway
        && let Some(one) = reading.rule.as_ref().filter(|one| one.in_force())
    {
        let printed = one.to_yaml();
        let again = read(kind, dialect, &printed);
        assert_eq!(again.rule.as_ref(), Some(one), "{printed}");
    }
    let key = match kind {
        RuleKind::Tag => "app1.tag-router".to_owned(),
        kind => format!("com.foo.Bar::{}", kind.suffix()),
    };
    routed(&key, &rule, dialect);
}

fn condition_text(input: &[u8], _: &mut Mutator) {
    let rule = text(input);
    for dialect in Dialect::ALL {
        let (read, faults) = Condition::parse(&rule, dialect);
        let refused = faults.iter().any(|fault| fault.severity == Severity::Error);
        assert!(faults.iter().all(|fault| fault.at <= rule.len()));
        assert_eq!(read.is_none(), refused, "{faults:?}");
        // Characters below a space are trimmed at an end, where printing may put them.
        let plain = !rule.chars().any(char::is_control);
        if let (Some(read), Dialect::Byway, true) = (read, dialect, plain) {
            let printed = read.to_string();
            let (again, _) = Condition::parse(&printed, dialect);
            assert_eq!(again.as_ref(), Some(&read), "{printed}");
        }
    }
}
