//! What a chain sees of a tree that changes.

use super::Test;
use super::admin::Admin;
use super::fixture::*;
use super::server::{Server, free_port};
use byway::source::Source;
use byway::source::bind::{BindOptions, Discovery};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("rules_and_providers_are_followed", rules_and_providers_are_followed),
    ("garbage_spoils_nothing", garbage_spoils_nothing),
    ("instances_of_applications_are_followed", instances_of_applications_are_followed),
    ("a_chroot_credentials_and_a_dead_server_in_the_list", chroot_credentials_and_rotation),
    ("wrong_credentials_are_told_and_spoil_nothing_else", wrong_credentials),
    ("ten_thousand_providers", ten_thousand_providers),
    ("two_engines_on_one_tree", two_engines),
    ("a_flood_of_writes_is_few_worlds_and_ends_in_the_last_state", flood),
    ("binding_and_unbinding_leaves_nothing_behind", nothing_left),
];

fn rules_and_providers_are_followed() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in [20880, 20881, 20882] {
        admin.make(&node(port, ""), b"");
    }
    let bound = Bound::new(&format!("127.0.0.1:{}", server.port)).ready();
    assert_eq!(bound.route("hello"), [20880, 20881, 20882]);
    bound.until("it keeps up", |bound| bound.binding.status().source.connected);
    let status = bound.binding.status();
    assert!(status.ready && status.providers == 3 && status.source.since.is_some());
    // The first, another, a broken one, repaired, gone.
    admin.make(RULE, only(20880).as_bytes());
    bound.until_route("hello", &[20880]);
    assert_eq!(bound.route("other"), [20880, 20881, 20882]);
    admin.set(RULE, only(20882).as_bytes());
    bound.until_route("hello", &[20882]);
    admin.set(RULE, b"conditions: [[[");
    bound.until("the refusal is told", |bound| {
        bound
            .log
            .refusals()
            .iter()
            .any(|error| error.about().contains("condition-router") && error.position().is_some())
    });
    assert_eq!(bound.route("hello"), [20882], "the last good rule stays");
    admin.set(RULE, only(20881).as_bytes());
    bound.until_route("hello", &[20881]);
    admin.delete(RULE);
    bound.until_route("hello", &[20880, 20881, 20882]);
    // Providers come and go.
    admin.delete(&node(20881, ""));
    bound.until_route("hello", &[20880, 20882]);
    admin.make(&node(20881, ""), b"");
    bound.until_route("hello", &[20880, 20881, 20882]);
    // Overrides: one provider is switched off, and on again.
    let path = "/dubbo/com.foo.Bar/configurators/";
    let text = "override://10.0.0.1:20881/com.foo.Bar?category=configurators&dynamic=false&disabled=true";
    let path = format!("{path}{}", byway::source::providers::encode(text));
    admin.make(&path, b"");
    bound.until_route("hello", &[20880, 20882]);
    admin.delete(&path);
    bound.until_route("hello", &[20880, 20881, 20882]);
    // A static router from a URL.
    let text =
        "condition://0.0.0.0/com.foo.Bar?category=routers&force=true&rule=method%3Dhello+%3D%3E+port%3D20880";
    let path = format!("/dubbo/com.foo.Bar/routers/{}", byway::source::providers::encode(text));
    admin.make(&path, b"");
    bound.until_route("hello", &[20880]);
    admin.delete(&path);
    bound.until_route("hello", &[20880, 20881, 20882]);
    // Everybody has gone: the place is there and empty.
    for port in [20880, 20881, 20882] {
        admin.delete(&node(port, ""));
    }
    bound.until_route("hello", &[]);
}

fn garbage_spoils_nothing() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    admin.make(&node(1, ""), b"");
    for name in ["garbage", "%zz", "dubbo%3A%2F%2Fh%3Aport%2FS", "a b c", "ünï", "%ff%fe"] {
        admin.make(&format!("{PROVIDERS}/{name}"), b"\xff\xff");
    }
    admin.make(RULE, b"\xff\xfe\x00");
    admin.make("/dubbo/config/dubbo/stock.tag-router", b"");
    admin.make("/dubbo/config/dubbo/shop.configurators", b"{{{{");
    let bound = Bound::new(&format!("127.0.0.1:{}", server.port)).ready();
    assert_eq!(bound.route("hello"), [1]);
    bound.until("all of it is told", |bound| bound.log.refusals().len() >= 3);
    let binary: Vec<u8> = (0..200_000u32).map(|at| (at * 31 % 251) as u8).collect();
    admin.set(RULE, &binary);
    admin.set(RULE, only(1).as_bytes());
    admin.make(&node(2, ""), b"");
    bound.until("the good rule and the new provider", |bound| {
        bound.route("hello") == [1] && bound.route("other") == [1, 2]
    });
}

fn instances_of_applications_are_followed() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    let instance = |port: u16, revision: &str| {
        format!(
            r#"{{"name":"stock","id":"10.0.0.1:{port}","address":"10.0.0.1","port":{port},"payload":{{"metadata":{{"dubbo.endpoints":"[{{\"port\":{port},\"protocol\":\"tri\"}}]","dubbo.metadata.revision":"{revision}"}}}}}}"#
        )
    };
    admin.make("/dubbo/mapping/com.foo.Bar", b"stock");
    admin.make(
        "/dubbo/metadata/stock/r1",
        br#"{"services":{"com.foo.Bar:tri":{"name":"com.foo.Bar","protocol":"tri"}}}"#,
    );
    admin.make("/services/stock/a", instance(1, "r1").as_bytes());
    admin.make("/services/stock/b", instance(2, "r1").as_bytes());
    admin.make("/services/stock/c", b"not json");
    let options_text = format!("127.0.0.1:{}", server.port);
    let bound = Bound::with(
        options(&options_text),
        BindOptions { discovery: Discovery::Application, ..BindOptions::default() },
    )
    .ready();
    assert_eq!(bound.route("hello"), [1, 2]);
    // An instance moves to a revision that serves nothing of it, and back.
    admin.make("/dubbo/metadata/stock/r2", br#"{"services":{}}"#);
    admin.set("/services/stock/b", instance(2, "r2").as_bytes());
    bound.until_route("hello", &[1]);
    admin.set("/services/stock/b", instance(2, "r1").as_bytes());
    bound.until_route("hello", &[1, 2]);
    admin.make("/services/other/d", instance(3, "r1").as_bytes());
    admin.set("/dubbo/mapping/com.foo.Bar", b"stock,other");
    bound.until_route("hello", &[1, 2, 3]);
    admin.delete("/services/stock/a");
    bound.until_route("hello", &[2, 3]);
}

fn chroot_credentials_and_rotation() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    admin.auth("ada:secret");
    admin.make("/estate/dubbo/com.foo.Bar/providers", b"");
    admin.make(&format!("/estate{}", node(5, "")), b"");
    admin.make("/estate/dubbo/config/dubbo", b"");
    // "auth" as scheme: whoever this session has authenticated as.
    admin.make_for(&format!("/estate{RULE}"), only(5).as_bytes(), ("auth", ""));
    let (dead, port) = (free_port(), server.port);
    let text = format!("zookeeper://ada:secret@127.0.0.1:{dead}/estate?backup=127.0.0.1:{port}");
    let bound = Bound::new(&text).ready();
    assert_eq!(bound.route("hello"), [5]);
    assert_eq!(bound.route("other"), [5]);
    assert!(bound.log.refusals().is_empty(), "{:?}", bound.log.refusals());
    admin.set(&format!("/estate{RULE}"), only(6).as_bytes());
    bound.until_route("hello", &[]);
}

fn wrong_credentials() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    admin.auth("ada:secret");
    admin.make(&node(5, ""), b"");
    admin.make("/dubbo/config/dubbo", b"");
    admin.make_for(RULE, only(9).as_bytes(), ("auth", ""));
    let bound = Bound::new(&format!("ada:wrong-word@127.0.0.1:{}", server.port)).ready();
    // The providers are readable, the rule is not: it is told, without the password.
    assert_eq!(bound.route("hello"), [5]);
    bound.until("the refusal is told", |bound| {
        bound.log.refusals().iter().any(|error| error.message().contains("not permitted"))
    });
    let refusals = bound.log.refusals();
    let told = format!("{:?} {:?} {:?}", refusals, bound.source, bound.binding.status());
    assert!(!told.contains("wrong-word"), "{told}");
    // The rule becomes readable: permissions change without a notification, so it is tried again.
    admin.delete(RULE);
    admin.make(RULE, only(5).as_bytes());
    admin.make(&node(6, ""), b"");
    bound.until_route("other", &[5, 6]);
    bound.until_route("hello", &[5]);
}

fn ten_thousand_providers() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    admin.make(PROVIDERS, b"");
    let path = |at: u32, more: &str| {
        let methods =
            "methods=hello,hello2,hello3&pid=4711&release=3.3.6&serialization=hessian2&deprecated=false";
        let url =
            format!("tri://10.0.{}.{}:20880/{SERVICE}?application=stock&{methods}{more}", at / 250, at % 250);
        format!("{PROVIDERS}/{}", byway::source::providers::encode(&url))
    };
    let paths: Vec<String> = (0..10_000).map(|at| path(at, "")).collect();
    admin.make_many(paths.iter().map(String::as_str));
    let bound = Bound::new(&format!("127.0.0.1:{}", server.port)).ready();
    assert_eq!(bound.route("hello").len(), 10_000);
    admin.delete(&paths[77]);
    admin.create(&path(77, "&weight=1"));
    admin.create(&path(10_000, ""));
    bound.until("the changes among many", |bound| {
        bound.route("hello").len() == 10_001
            && (0..10_001).any(|row| {
                bound.chain.chain().invokers().text(row).is_some_and(|text| text.contains("weight=1"))
            })
    });
}

fn two_engines() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in [1, 2, 3] {
        admin.make(&node(port, ""), b"");
    }
    let text = format!("127.0.0.1:{}", server.port);
    let (one, two) = (Bound::new(&text).ready(), Bound::new(&text).ready());
    for round in 0..30u16 {
        let port = round % 3 + 1;
        admin.make(RULE, only(port).as_bytes());
        if round % 5 == 4 {
            one.until_route("hello", &[port]);
            two.until_route("hello", &[port]);
        }
    }
    drop(one);
    admin.set(RULE, only(2).as_bytes());
    two.until_route("hello", &[2]);
}

fn flood() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in 1..=50 {
        admin.make(&node(port, ""), b"");
    }
    admin.make(RULE, only(1).as_bytes());
    let bound = Bound::new(&format!("127.0.0.1:{}", server.port)).ready();
    let before = bound.binding.status().worlds;
    let begin = Instant::now();
    let mut writes = 0u32;
    // A thousand writes a second, or as many as this machine can; calls go on all the while.
    while writes < 2000 {
        for _ in 0..20 {
            writes += 1;
            admin.set(RULE, only(u16::try_from(writes % 50 + 1).unwrap()).as_bytes());
        }
        assert_eq!(bound.route("hello").len(), 1);
        let ahead = Duration::from_millis(u64::from(writes));
        std::thread::sleep(ahead.saturating_sub(begin.elapsed()));
    }
    admin.set(RULE, only(50).as_bytes());
    bound.until_route("hello", &[50]);
    let worlds = bound.binding.status().worlds - before;
    println!("     {writes} writes, {worlds} worlds");
    // One publication in 10 ms, whatever comes.
    assert!(worlds > 0 && u128::from(worlds) <= begin.elapsed().as_millis() / 10 + 5);
    assert_eq!(
        bound.chain.chain().route(&byway::chain::invocation::Invocation::new(b"hello")).unwrap().len(),
        1
    );
}

fn nothing_left() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in 1..=20 {
        admin.make(&node(port, ""), b"");
    }
    admin.make(RULE, only(7).as_bytes());
    let text = format!("127.0.0.1:{}", server.port);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let alive = || byway::chain::live::count(byway::chain::live::Kind::Invokers);
    // The engines of other tests are released, not shut down: their threads end on their own.
    soon(|| own_threads().is_empty());
    let (open_before, bindings_before, lists_before) =
        (descriptors(), byway::source::bindings_alive(), alive());
    // One engine and source, many bindings.
    let bound = Bound::new(&text).ready();
    for round in 0..200u16 {
        let chain = chain(&bound.engine);
        let binding = chain.bind(std::sync::Arc::clone(&bound.source) as _, BindOptions::default());
        binding.wait_ready(PATIENCE).unwrap();
        assert_eq!(chain.chain().invokers().len(), 20);
        if round % 2 == 0 {
            binding.unbind(false);
            assert!(chain.chain().invokers().is_empty());
        }
    }
    let bindings = || (bound.source.board().watchers(), byway::source::bindings_alive());
    soon(|| bindings() == (1, bindings_before + 1));
    assert_eq!(bindings(), (1, bindings_before + 1));
    let Bound { engine, chain, source, binding, log } = bound;
    let rules = std::sync::Arc::clone(engine.routing().rules());
    assert!(!rules.status().is_empty());
    drop(binding);
    assert!(rules.status().is_empty() && source.board().topics().is_empty());
    drop((chain, log));
    assert_eq!(engine.shutdown(PATIENCE).unwrap(), byway::Status::OK);
    soon(|| own_threads().is_empty());
    assert_eq!(own_threads(), Vec::<String>::new());
    drop((source, engine, rules));
    soon(|| descriptors() == open_before && alive() <= lists_before + 1);
    assert_eq!((descriptors(), byway::source::bindings_alive()), (open_before, bindings_before));
    assert!(alive() <= lists_before + 1, "{} lists are left", alive() - lists_before);
}
