//! Script rules that want to hang, crash or escape: the list stays as it is, the status tells why, the next rule works.
#![cfg(feature = "script")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::invocation::Invocation;
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::chain::url::Url;
use byway::error::Status;
use byway::rules::dialect::Dialect;
use byway::rules::routers;
use byway::rules::script::{self, ScriptLanguage};
use byway::runtime::random::RandomSource;
use byway::script::{Limits, Pool, PoolLimits};
use std::sync::Arc;
use std::time::Duration;

/// Bodies of functions none of which may answer.
const HOSTILE: &[(&str, &str)] = &[
    ("endless loop", "while (true) {}"),
    ("endless loop that catches", "for (;;) { try { for (;;) {} } catch (e) {} }"),
    ("endless recursion", "function f() { return f() + 1; } return f();"),
    ("memory", "for (var a = []; ;) a.push(new Array(1000).fill(0));"),
    ("text doubling", "var s = 'x'; while (true) s += s;"),
    ("join", "return new Array(1e9).join();"),
    ("join of nested arrays", "var a = []; for (var i = 0; i < 40; i++) a = [a, a]; return '' + a;"),
    ("join of the list", "invokers.length = 4e9; return invokers.join();"),
    ("catastrophic pattern", "return /^(a+)+$/.test('a'.repeat(40) + 'b');"),
    ("catastrophic pattern of Java's", "return 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.matches('(a+)+');"),
    ("big numbers", "for (var x = 3n; ;) x = x * x;"),
    ("eval", "return eval('invokers');"),
    ("function constructor", "return new Function('return invokers')();"),
    ("class of an object", "return invokers.getClass().forName('java.lang.Runtime');"),
    ("another class", "return java.lang.System.exit(1);"),
    ("a type of the host", "return Java.type('java.io.File').listRoots();"),
    ("a list that grows", "for (;;) invokers.add(invokers.get(0));"),
    (
        "a list without end",
        "return { [Symbol.iterator]() { return { next() { return { done: false }; } }; } };",
    ),
    ("a list that throws", "return { [Symbol.iterator]() { throw 1; } };"),
    ("an invoker in place of a list", "return invokers.get(0);"),
    ("calling a provider", "return invokers.get(0).invoke(invocation);"),
    ("thrown null", "throw null;"),
    ("an error that errs", "throw { get message() { throw 1; }, get stack() { throw 2; } };"),
];

/// A chain of three providers of `shop`, whose script rule has this long.
fn chain(limit: Duration) -> (Chain, Arc<RuleStore>) {
    let pool = Pool::new(PoolLimits { stuck: 100, ..PoolLimits::default() });
    let limits = Limits { time: limit, ..Limits::default() };
    let languages = routers::languages_with(ScriptLanguage { limits, pool: pool.clone() });
    let store = RuleStore::new(languages, Dialect::Byway as u8);
    let slots = script::slot(Dialect::Byway, pool, None).into_iter().collect();
    let consumer = Url::parse("consumer://10.1.1.1/com.foo.Bar").unwrap();
    let options = ChainOptions::new(consumer, slots);
    let chain = Chain::new(options, store.clone(), Arc::new(RandomSource::seeded(1)));
    let urls = (1..=3).map(|n| format!("dubbo://10.0.0.{n}:20880/com.foo.Bar?application=shop&n={n}"));
    let urls: Vec<String> = urls.collect();
    chain.set_invokers(Invokers::from_urls(urls.iter().map(String::as_str)).unwrap());
    (chain, store)
}

fn put(store: &RuleStore, script: &str) {
    let rule = format!("script: {}\n", serde_json::Value::from(script));
    store.put("shop.script-router", &rule).unwrap_or_else(|error| panic!("{script}: {error}"));
}

fn kept(chain: &Chain) -> Vec<u64> {
    chain.route(&Invocation::new(b"hello")).unwrap().to_tags()
}

#[test]
fn every_hostile_rule_leaves_the_list_as_it_is_and_is_told() {
    let (short, store) = chain(Duration::from_millis(100));
    for (name, body) in HOSTILE {
        put(&store, &format!("(function () {{ {body} }})()"));
        assert_eq!(kept(&short), [0, 1, 2], "{name}");
        let trouble = short.status().into_iter().find_map(|router| router.trouble);
        let trouble = trouble.unwrap_or_else(|| panic!("{name} is no trouble"));
        assert_eq!(trouble.count, 1, "{name}");
        let memory = trouble.error.message() == "needs more than 32 MiB of memory";
        assert_eq!(memory, trouble.error.status() == Status::E_LIMIT, "{name}: {}", trouble.error);
        assert!(memory || *name != "memory", "{}", trouble.error);
    }
    // Contexts that were used up are not met again.
    let (ample, store) = chain(Duration::from_secs(60));
    for (name, body) in
        HOSTILE.iter().filter(|(name, _)| name.contains("recursion") || name.contains("doubling"))
    {
        put(
            &store,
            &format!(
                "invocation.getMethodName() == 'bad' ? (function () {{ {body} }})() : [invokers.get(1)]"
            ),
        );
        assert_eq!(ample.route(&Invocation::new(b"bad")).unwrap().len(), 3, "{name}");
        assert_eq!(kept(&ample), [1], "after {name}");
    }
}

#[test]
fn eight_threads_route_by_one_script_each_with_its_own_answer() {
    let (chain, store) = chain(Duration::from_secs(60));
    put(
        &store,
        "invokers.filter(function (one) { return one.getUrl().getParameter('n') == invocation.getAttachment('n'); })",
    );
    std::thread::scope(|scope| {
        for number in 0..8_u64 {
            let chain = chain.clone();
            scope.spawn(move || {
                let wanted = number % 3;
                let text = (wanted + 1).to_string();
                let attachments: [(&[u8], &[u8]); 1] = [(b"n", text.as_bytes())];
                let call = Invocation { attachments: &attachments, ..Invocation::new(b"hello") };
                for _ in 0..100 {
                    assert_eq!(chain.route(&call).unwrap().to_tags(), [wanted]);
                }
            });
        }
    });
}

#[test]
fn a_rule_replaced_while_its_script_runs_serves_the_next_call_and_the_running_one_ends() {
    let (chain, store) = chain(Duration::from_secs(2));
    // Runs for as long as it may.
    put(&store, "while (true) {}");
    std::thread::scope(|scope| {
        let (started, running) = std::sync::mpsc::channel();
        let old = chain.clone();
        let call = scope.spawn(move || {
            let mut session = old.session();
            started.send(()).unwrap();
            session.route(&Invocation::new(b"hello")).unwrap().rows().iter().collect::<Vec<_>>()
        });
        running.recv().unwrap();
        // Compiled on the pool beside the one that runs.
        put(&store, "[invokers.get(2)]");
        assert_eq!(kept(&chain), [2]);
        // By the old rule, which fails, or already by the new one.
        let rows = call.join().unwrap();
        assert!(rows == [0, 1, 2] || rows == [2], "{rows:?}");
    });
}
