//! Script sources: whatever the text, the answer is a part of the list or an error, and the next script runs.

use crate::mutate::{Mutator, text};
use crate::{Target, cases, texts};
use byway::chain::invocation::Invocation;
use byway::chain::snapshot::Invokers;
use byway::chain::url::Url;
use byway::error::Status;
use byway::rules::dialect::Dialect;
use byway::rules::script::{Call, Program, lint};
use byway::script::{Limits, Pool, PoolLimits};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub(crate) fn targets(folder: &Path) -> Vec<Target> {
    let chain: Vec<_> = cases(folder, "dubbo_chain")
        .into_iter()
        .filter(|case| matches!(case["kind"].as_str(), Some("script" | "file" | "script-app")))
        .collect();
    let mut seeds = texts(&chain, &["rule"]);
    seeds.extend(texts(&cases(folder, "bugs"), &["script", "scripts"]));
    seeds.extend(
        [
            "var a = []; while (true) a.push({});",
            "new Array(1e9).join()",
            "/^(a+)+$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaab')",
        ]
        .map(|text| text.as_bytes().to_vec()),
    );
    vec![Target {
        name: "script_source",
        seeds,
        words: &[
            "invokers",
            "invocation",
            "context",
            "getUrl()",
            "getParameter('a')",
            "java.util.ArrayList",
            "new ",
            "return ",
            "function ",
            "=>",
            "while (1);",
            "for (;;) ",
            "throw ",
            "try {",
            "} catch (e) {}",
            "`${",
            "/",
            "/*",
            "//",
            "...",
            "async ",
            "await ",
            "yield ",
            "class ",
            "'x'.repeat(1e6)",
            ".join()",
            ".map(",
            "Symbol.iterator",
            "let ",
            "null",
        ],
        look: script_source,
        work: (4_000, 40),
        // Each has a context of its own.
        every: 20,
    }]
}

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(PoolLimits { stuck: 64, ..PoolLimits::default() }));

fn ask(source: &str) -> Result<Vec<u32>, Status> {
    let limits = Limits { time: Duration::from_millis(20), ..Limits::default() };
    let list = Invokers::from_urls(
        (1..=3).map(|n| format!("dubbo://10.0.0.{n}:1/S")).collect::<Vec<_>>().iter().map(String::as_str),
    );
    let consumer = Arc::new(Url::parse("consumer://10.1.1.1/S").unwrap());
    let call = Call::new(list.unwrap(), vec![0, 1, 2], &Invocation::new(b"m"), consumer);
    let program = Arc::new(Program::new(source.to_owned(), limits).map_err(|error| error.status())?);
    program.route(&POOL, call).map_err(|error| error.status())
}

fn script_source(input: &[u8], _: &mut Mutator) {
    let source = text(input);
    match ask(&source) {
        Ok(rows) => assert!(rows.iter().all(|row| *row < 3) && rows.is_sorted()),
        Err(status) => assert!(
            [Status::E_SCRIPT, Status::E_TIMEOUT, Status::E_LIMIT, Status::E_ARGUMENT].contains(&status),
            "{status:?}"
        ),
    }
    // A busy machine may take its time to give the next one a thread; an answer it is.
    let next = (0..100).find_map(|_| ask("[invokers.get(1)]").ok());
    assert_eq!(next, Some(vec![1]));
    // In a rule, quoted by a JSON string, which is YAML.
    let rule = format!("script: {}\n", serde_json::Value::from(source.as_str()));
    for problem in lint(&rule, Dialect::Byway) {
        assert!(problem.at.offset <= rule.len() && !problem.message.is_empty());
    }
}
