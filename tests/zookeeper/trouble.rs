//! What a chain does while its ZooKeeper is in trouble.

use super::Test;
use super::admin::Admin;
use super::fixture::*;
use super::proxy::Proxy;
use super::server::Server;
use byway::chain::invocation::Invocation;
use byway::source::bind::{BindOptions, EmptyProtection};
use byway::source::zookeeper::ZooKeeperOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    ("nobody_answers_at_first", nobody_answers_at_first),
    ("killed_and_restarted_twenty_times_during_traffic", killed_twenty_times),
    ("a_half_open_connection_is_noticed_and_its_session_expires", half_open),
    ("a_slow_connection_is_only_slow", slow),
    ("an_empty_server_in_its_place_takes_nothing_away", replaced_by_an_empty_one),
    ("a_shutdown_ends_the_thread_wherever_it_is", shutdown_anywhere),
    ("protection_off_takes_what_the_empty_server_says", replaced_without_protection),
];

/// Calls that go on until it is dropped; the number of them, and of those that found nobody.
struct Traffic {
    stop: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    empty: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Traffic {
    fn start(bound: &Bound) -> Traffic {
        let mut traffic = Traffic {
            stop: Arc::default(),
            calls: Arc::default(),
            empty: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..2 {
            let chain = bound.chain.chain().clone();
            let (stop, calls, empty) =
                (Arc::clone(&traffic.stop), Arc::clone(&traffic.calls), Arc::clone(&traffic.empty));
            traffic.threads.push(std::thread::spawn(move || {
                let mut session = chain.session();
                while !stop.load(Ordering::Relaxed) {
                    let view = session.route(&Invocation::new(b"hello")).unwrap();
                    if view.is_empty() {
                        empty.fetch_add(1, Ordering::Relaxed);
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_micros(100));
                }
            }));
        }
        traffic
    }

    /// Calls, and those that found nobody.
    fn end(self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        (self.calls.load(Ordering::Relaxed), self.empty.load(Ordering::Relaxed))
    }
}

fn nobody_answers_at_first() {
    let mut server = Server::start();
    Admin::connect(server.address()).make(&node(1, ""), b"");
    server.kill();
    let bound = Bound::new(&format!("127.0.0.1:{}", server.port));
    bound.until("nobody answers", |bound| bound.binding.status().source.last_error.is_some());
    let error = bound.binding.wait_ready(Duration::from_millis(1)).unwrap_err();
    assert_eq!(error.status(), byway::Status::E_TIMEOUT);
    assert!(error.all_causes()[0].message().contains("cannot connect"), "{error:?}");
    assert!(!bound.binding.status().source.connected);
    server.restart();
    let bound = bound.ready();
    assert_eq!(bound.route("hello"), [1]);
}

fn killed_twenty_times() {
    let mut server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in 1..=5 {
        admin.make(&node(port, ""), b"");
    }
    admin.make(RULE, only(1).as_bytes());
    let bound = Bound::new(&format!("127.0.0.1:{}", server.port)).ready();
    assert_eq!(bound.route("hello"), [1]);
    let traffic = Traffic::start(&bound);
    let mut ages = Vec::new();
    let mut first = (0, 0);
    for round in 0..20u16 {
        if round == 1 {
            // What the first round leaves is what every round may leave.
            first = left();
        }
        server.kill();
        bound.until("the loss is seen", |bound| !bound.binding.status().source.connected);
        let before = bound.route("hello");
        assert_eq!(before.len(), 1, "the last state stays");
        ages.push(bound.binding.status().source.age.unwrap());
        server.restart();
        // Changed before the source has read again, or after: it must come to the same.
        let port = round % 5 + 1;
        Admin::connect(server.address()).set(RULE, only(port).as_bytes());
        bound.until_route("hello", &[port]);
        bound.until("it is connected again", |bound| bound.binding.status().source.connected);
    }
    // A session of calls lets a world go with its next call.
    let settled = |last: (usize, i64)| last.0 <= first.0 && last.1 <= first.1 + 2;
    soon(|| settled(left()));
    let last = left();
    let (calls, empty) = traffic.end();
    println!("     {calls} calls, {empty} without a provider; {first:?} and {last:?} descriptors and lists");
    assert!(calls > 0 && empty == 0);
    assert!(settled(last), "twenty losses leave what one leaves");
    soon(|| own_threads() == ["byway-zookeeper"]);
    assert_eq!(own_threads(), ["byway-zookeeper"]);
}

/// Descriptors and provider lists that are there.
fn left() -> (usize, i64) {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    (descriptors, byway::chain::live::count(byway::chain::live::Kind::Invokers))
}

/// Waiting for somebody who has fallen silent, for somebody who never answers, for somebody who is not there.
fn shutdown_anywhere() {
    let mut server = Server::start();
    Admin::connect(server.address()).make(&node(1, ""), b"");
    let proxy = Proxy::new(server.address());
    let end = |bound: Bound, state: &str| {
        assert_eq!(bound.engine.shutdown(PATIENCE).unwrap(), byway::Status::OK, "{state}");
        soon(|| own_threads().is_empty());
        assert_eq!(own_threads(), Vec::<String>::new(), "{state}");
    };
    // Longer than the shutdown waits: it must not be a timeout that ends the thread.
    let patient = |port: u16| ZooKeeperOptions {
        connect_timeout: PATIENCE * 10,
        session_timeout: PATIENCE * 10,
        retry_first: PATIENCE * 10,
        retry_longest: PATIENCE * 10,
        ..options(&format!("127.0.0.1:{port}"))
    };
    let bound = Bound::with(patient(proxy.port), BindOptions::default()).ready();
    proxy.freeze(true);
    end(bound, "silent");
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bound = Bound::with(patient(mute.local_addr().unwrap().port()), BindOptions::default());
    let _unanswered = mute.accept().unwrap();
    end(bound, "without an answer");
    let bound = Bound::with(patient(server.port), BindOptions::default()).ready();
    server.kill();
    bound.until("the loss is seen", |bound| !bound.binding.status().source.connected);
    end(bound, "nobody there");
}

fn half_open() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in 1..=3 {
        admin.make(&node(port, ""), b"");
    }
    admin.make(RULE, only(1).as_bytes());
    let proxy = Proxy::new(server.address());
    let longer = ZooKeeperOptions {
        session_timeout: Duration::from_secs(3),
        ..options(&format!("127.0.0.1:{}", proxy.port))
    };
    let bound = Bound::with(longer, BindOptions::default()).ready();
    assert_eq!(bound.route("hello"), [1]);
    proxy.freeze(true);
    bound.until("the silence is noticed", |bound| !bound.binding.status().source.connected);
    // What changes meanwhile is not seen, and the session runs out at the server, which then closes what it had.
    admin.set(RULE, only(2).as_bytes());
    drop(admin);
    bound.until("the session has run out", |_| {
        let connections = server.ask("cons");
        !connections.is_empty() && !connections.contains("sid=")
    });
    assert_eq!(bound.route("hello"), [1]);
    proxy.freeze(false);
    bound.until_route("hello", &[2]);
    let losses = bound.log.losses();
    let told = |words: &str| {
        losses.iter().any(|error| error.message().contains(words))
            || bound.binding.status().source.last_error.is_some_and(|error| error.message().contains(words))
    };
    assert!(told("fallen silent"), "{losses:?}");
    // The server says so, or hangs up on the first who asks for it.
    assert!(told("expired") || told("closed the connection"), "{losses:?}");
    Admin::connect(server.address()).set(RULE, only(3).as_bytes());
    bound.until_route("hello", &[3]);
}

fn slow() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in 1..=200 {
        admin.make(&node(port, &format!("&text={}", "x".repeat(200))), b"");
    }
    let proxy = Proxy::new(server.address());
    // 500 bytes every 10 ms: the list alone takes longer than the session's timeout.
    proxy.pace(500);
    let short = ZooKeeperOptions {
        session_timeout: Duration::from_millis(1000),
        ..options(&format!("127.0.0.1:{}", proxy.port))
    };
    // Whoever took slow for lost would begin anew for ever.
    let bound = Bound::with(short, BindOptions::default()).ready();
    assert_eq!(bound.route("hello").len(), 200);
    admin.make(RULE, only(7).as_bytes());
    bound.until_route("hello", &[7]);
}

fn replaced_by_an_empty_one() {
    let mut server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in 1..=3 {
        admin.make(&node(port, ""), b"");
    }
    admin.make(RULE, only(2).as_bytes());
    let bound = Bound::new(&format!("127.0.0.1:{}", server.port)).ready();
    bound.until_route("hello", &[2]);
    let traffic = Traffic::start(&bound);
    server.kill();
    server.wipe();
    server.restart();
    bound.until("the empty server is told", |bound| {
        bound.binding.status().source.last_error.is_some_and(|error| error.message().contains("is kept"))
    });
    assert_eq!((bound.route("hello"), bound.route("other")), (vec![2], vec![1, 2, 3]));
    assert!(!bound.binding.status().source.connected, "an empty server keeps nothing up to date");
    // Before it is filled, which takes several writes: a list that is there and has nobody in it is an answer.
    let (calls, empty) = traffic.end();
    assert!(calls > 0 && empty == 0, "{empty} of {calls} calls found nobody");
    // It is filled again: providers first, the rule later, and then the rule is really deleted.
    let mut admin = Admin::connect(server.address());
    admin.make(&node(2, ""), b"");
    admin.make(&node(9, ""), b"");
    bound.until_route("other", &[2, 9]);
    assert_eq!(bound.route("hello"), [2], "the rule is nowhere, and was not deleted");
    bound.until("it keeps up again", |bound| bound.binding.status().source.connected);
    admin.make(RULE, only(9).as_bytes());
    bound.until_route("hello", &[9]);
    admin.delete(RULE);
    bound.until_route("hello", &[2, 9]);
}

fn replaced_without_protection() {
    let mut server = Server::start();
    let mut admin = Admin::connect(server.address());
    admin.make(&node(1, ""), b"");
    admin.make(&node(2, ""), b"");
    let text = format!("127.0.0.1:{}", server.port);
    let off = BindOptions { empty_protection: EmptyProtection::Off, ..BindOptions::default() };
    let bound = Bound::with(options(&text), off).ready();
    assert_eq!(bound.route("hello"), [1, 2]);
    // The node itself goes while the server is the same.
    for path in [node(1, ""), node(2, ""), PROVIDERS.to_owned()] {
        admin.delete(&path);
    }
    bound.until_route("hello", &[]);
    server.kill();
    server.restart();
    Admin::connect(server.address()).make(&node(3, ""), b"");
    bound.until_route("hello", &[3]);
}
