//! Ten thousand evaluations of a script rule do not grow. In a process of its own, whose memory is nobody else's.
#![cfg(feature = "script")]
#![allow(clippy::unwrap_used, reason = "a test")]

use byway::chain::invocation::Invocation;
use byway::chain::snapshot::Invokers;
use byway::chain::url::Url;
use byway::rules::script::{Call, Program};
use byway::script::{Limits, Pool, PoolLimits};
use std::sync::Arc;
use std::time::Duration;

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

#[test]
fn ten_thousand_evaluations_do_not_grow() {
    let pool = Pool::new(PoolLimits { threads: 1, ..PoolLimits::default() });
    // The least memory there is, and time on any machine; each run makes objects, texts and cycles.
    let limits = Limits { memory: Limits::LEAST_MEMORY, time: Duration::from_secs(60), ..Limits::default() };
    let source = "(function () { var kept = new java.util.ArrayList(), seen = {}; for (var i = 0; i < invokers.size(); i++) { \
        var one = invokers.get(i); seen[one.getUrl().getHost()] = { of: seen, name: invocation.getMethodName() + i }; \
        if (i > 0) kept.add(one); } return kept; })()";
    let program = Arc::new(Program::new(source.to_owned(), limits).unwrap());
    let urls: Vec<String> = (1..=9).map(|n| format!("dubbo://10.0.0.{n}:1/S")).collect();
    let list = Invokers::from_urls(urls.iter().map(String::as_str)).unwrap();
    let consumer = Arc::new(Url::parse("consumer://10.1.1.1/S").unwrap());
    let call = Invocation::new(b"hello");
    let run = || {
        let call = Call::new(list.clone(), (0..9).collect(), &call, consumer.clone());
        assert_eq!(program.route(&pool, call).unwrap().len(), 8);
    };
    (0..1000).for_each(|_| run());
    let before = resident();
    (0..10_000).for_each(|_| run());
    let grown = resident().saturating_sub(before);
    // A kilobyte each would be 10 MB. Huge pages that the kernel makes of half empty ones come and go.
    assert!(grown < 9 << 20, "grew by {grown} bytes");
}
