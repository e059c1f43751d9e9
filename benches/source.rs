//! What following a ZooKeeper costs, against a real server: latency of a rule change beside that of a bare watch in the
//! same run, loading and updating ten thousand providers, and calls while all of that happens.
//!
//! Prints one line per bar: `bar NAME VALUE LIMIT ok|short`. `cargo bench --bench source`. Needs Java and Debian's
//! package `zookeeper`.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(dead_code, unreachable_pub, reason = "the fixtures of the tests, of which a part is used")]

#[path = "../tests/zookeeper/admin.rs"]
mod admin;
#[path = "../tests/zookeeper/fixture.rs"]
mod fixture;
#[path = "../tests/zookeeper/server.rs"]
mod server;

use admin::Admin;
use byway::chain::invocation::Invocation;
use byway::engine::routing::RoutingChain;
use byway::source::Source;
use byway::source::bind::{BindEvent, BindOptions};
use byway::source::providers::encode;
use byway::source::zookeeper::ZooKeeperSource;
use fixture::*;
use server::Server;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn bar(name: &str, value: f64, limit: f64) {
    let verdict = if value <= limit { "ok" } else { "short" };
    println!("bar {name} {value:.3} {limit} {verdict}");
}

/// CPU time in milliseconds of this process without this thread, which writes the changes.
fn others_cpu_ms() -> f64 {
    cpu_ms(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu_ms(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time in milliseconds: of this thread, or of all of them.
fn cpu_ms(clock: libc::clockid_t) -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a struct on this stack.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A chain bound to the server, and the moments at which another world was in force.
struct Timed {
    chain: Arc<RoutingChain>,
    worlds: Mutex<Receiver<Instant>>,
    binding: byway::source::bind::Binding,
    source: Arc<ZooKeeperSource>,
    engine: Arc<byway::engine::Engine>,
}

impl Timed {
    /// When the next world came into force.
    fn world(&self) -> Instant {
        self.worlds.lock().unwrap().recv_timeout(PATIENCE).unwrap()
    }
}

fn timed(server: &Server) -> Timed {
    let engine = engine();
    let chain = chain(&engine);
    let source = ZooKeeperSource::new(options(&format!("127.0.0.1:{}", server.port))).unwrap();
    let (sender, worlds) = channel();
    let sender = Mutex::new(sender);
    let events = move |event: &BindEvent| {
        if matches!(event, BindEvent::Changed(_)) {
            let _ = sender.lock().unwrap().send(Instant::now());
        }
    };
    let bind = BindOptions { events: Some(Arc::new(events)), ..BindOptions::default() };
    let binding = chain.bind(Arc::clone(&source) as Arc<dyn Source>, bind);
    binding.wait_ready(PATIENCE).unwrap();
    worlds.recv_timeout(PATIENCE).unwrap();
    Timed { chain, worlds: Mutex::new(worlds), binding, source, engine }
}

/// A bare client: watches one node, reads it when told, and says when it had the new data.
fn bare(server: &Server) -> Receiver<Instant> {
    use byway::source::zookeeper::wire::{Operation, Request};
    use std::io::{Read, Write};
    let (sender, moments) = channel();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    let frame = |stream: &mut TcpStream| -> Option<Vec<u8>> {
        let mut head = [0; 4];
        stream.read_exact(&mut head).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(head) as usize];
        stream.read_exact(&mut frame).ok()?;
        Some(frame)
    };
    stream.write_all(&Request::connect(0, 4000, 0, &[0; 16])).unwrap();
    frame(&mut stream).unwrap();
    std::thread::spawn(move || {
        for xid in 1.. {
            if stream.write_all(&Request::watch(xid, Operation::GetData, RULE)).is_err() {
                return;
            }
            let Some(_data) = frame(&mut stream) else { return };
            if sender.send(Instant::now()).is_err() {
                return;
            }
            // The notification.
            if frame(&mut stream).is_none() {
                return;
            }
        }
    });
    moments.recv_timeout(PATIENCE).unwrap();
    moments
}

fn latency() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    for port in 1..=10 {
        admin.make(&node(port, ""), b"");
    }
    admin.make(RULE, only(1).as_bytes());
    let timed = timed(&server);
    let moments = bare(&server);
    let (mut own, mut plain) = (Vec::new(), Vec::new());
    for round in 1..401u16 {
        let port = round % 10 + 1;
        let begin = Instant::now();
        admin.set(RULE, only(port).as_bytes());
        let effective = timed.world();
        let told = moments.recv_timeout(PATIENCE).unwrap();
        let choice = timed.chain.chain().route(&Invocation::new(b"hello")).unwrap();
        let row = choice.invokers().row_of(choice.to_tags()[0]).unwrap();
        assert!(choice.invokers().address(row).ends_with(&format!(":{port}")), "the next call routes by it");
        // Caches of the server and the JIT warm up first.
        if round > 100 {
            own.push((effective - begin).as_secs_f64() * 1e3);
            plain.push((told - begin).as_secs_f64() * 1e3);
        }
        std::thread::sleep(Duration::from_millis(15));
    }
    let (own, plain) = (median(own), median(plain));
    println!("# rule change effective after {own:.3} ms, bare watch {plain:.3} ms (medians)");
    bar("source_rule_change_ms", own, 50.0);
    bar("source_rule_change_to_bare_watch", own / plain, 1.5);
    drop(timed.binding);
    drop((timed.source, timed.engine));
}

fn path(at: u32, more: &str) -> String {
    let methods = "methods=hello,hello2,hello3&pid=4711&release=3.3.6&serialization=hessian2&deprecated=false&dubbo=2.0.2\
                   &generic=false&interface=com.foo.Bar&metadata-type=remote&timestamp=1730000000000";
    let url =
        format!("tri://10.0.{}.{}:20880/{SERVICE}?application=stock&{methods}{more}", at / 250, at % 250);
    format!("{PROVIDERS}/{}", encode(&url))
}

fn ten_thousand() {
    let server = Server::start();
    let mut admin = Admin::connect(server.address());
    admin.make(PROVIDERS, b"");
    let paths: Vec<String> = (0..10_000).map(|at| path(at, "")).collect();
    admin.make_many(paths.iter().map(String::as_str));
    let before = cpu_ms(libc::CLOCK_PROCESS_CPUTIME_ID);
    let timed = timed(&server);
    let loaded = cpu_ms(libc::CLOCK_PROCESS_CPUTIME_ID) - before;
    assert_eq!(timed.chain.chain().invokers().len(), 10_000);
    bar("source_load_10000_providers_cpu_ms", loaded, 1000.0);

    // One provider registers itself again under another URL: its node goes and another comes.
    let mut costs = Vec::new();
    for round in 0..150u32 {
        let (old, new) = (path(round + 100, ""), path(round + 100, "&weight=7"));
        let before = others_cpu_ms();
        admin.delete(&old);
        timed.world();
        let between = others_cpu_ms();
        // Two changes, two worlds: each is one changed provider.
        costs.push(between - before);
        admin.create(&new);
        timed.world();
        costs.push(others_cpu_ms() - between);
    }
    bar("source_one_of_10000_cpu_ms", median(costs), 5.0);
    readers(&timed, &mut admin);
    drop(timed.binding);
    drop((timed.source, timed.engine));
}

/// Nanoseconds a call costs a reader's thread, median of at least 15 rounds, until `enough`.
fn reader_ns(chain: &RoutingChain, enough: impl Fn() -> bool) -> f64 {
    const CALLS: u32 = 200_000;
    let mut session = chain.chain().session();
    let mut costs = Vec::new();
    while costs.len() < 15 || !enough() {
        let before = cpu_ms(libc::CLOCK_THREAD_CPUTIME_ID);
        for _ in 0..CALLS {
            std::hint::black_box(session.route(&Invocation::new(b"hello")).unwrap().len());
        }
        costs.push((cpu_ms(libc::CLOCK_THREAD_CPUTIME_ID) - before) * 1e6 / f64::from(CALLS));
    }
    median(costs)
}

/// Calls while one of the ten thousand comes and goes, again and again, each time seen before the next.
fn readers(timed: &Timed, admin: &mut Admin) {
    const CHANGES: u32 = 200;
    let quiet = reader_ns(&timed.chain, || true);
    let over = AtomicBool::new(false);
    let busy = std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..CHANGES / 2 {
                let at = path(9_000, &format!("&weight={round}"));
                admin.create(&at);
                timed.world();
                admin.delete(&at);
                timed.world();
            }
            over.store(true, Ordering::Relaxed);
        });
        reader_ns(&timed.chain, || over.load(Ordering::Relaxed))
    });
    println!("# a call costs {quiet:.1} ns while nothing changes, {busy:.1} ns during {CHANGES} changes");
    bar("source_reader_during_changes_ratio", busy / quiet, 1.4);
}

fn main() {
    if let Some(why) = server::missing() {
        println!("skipped: source bars: {why}");
        return;
    }
    latency();
    ten_thousand();
}
