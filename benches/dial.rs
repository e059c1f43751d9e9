//! What dialling costs over a bare blocking `connect`, in CPU time of the thread, in one and the same run.
//!
//! Prints one line per bar: `bar NAME VALUE LIMIT ok|short`. `cargo bench --bench dial`.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use byway::dial::race::{Action, Candidate, Family, Race, Report as Told, Rules};
use byway::dial::socks::Host;
use byway::dial::{Batch, Leg, Next, NoHooks, Operation, Options, Report, RouteSource, Step, Via, Waker};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes every call on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn thread_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a struct on this stack.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Routes of one Selection, twice at most.
#[derive(Clone)]
struct Fixed {
    hops: [SocketAddr; 2],
    count: usize,
    given: bool,
}

impl RouteSource for Fixed {
    type Route = SocketAddr;

    fn poll_next(&mut self, batch: &mut Batch<SocketAddr>, _: &Waker) -> Next {
        if std::mem::replace(&mut self.given, true) {
            return Next::Done;
        }
        batch.extend(self.hops[..self.count].iter().copied());
        Next::Selection
    }

    fn leg<'a>(&self, route: &'a SocketAddr) -> Leg<'a> {
        let host = Host::Ip(route.ip());
        Leg { hop: *route, via: Via::Direct, tunnel: false, host, port: route.port(), credentials: None }
    }

    fn report(&mut self, route: &SocketAddr, report: Report<'_>) {
        black_box((route, &report));
    }
}

fn close(socket: OwnedFd) {
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
}

fn bare(at: SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_tcp_nodelay(true).unwrap();
    socket.connect(&at.into()).unwrap();
    close(socket.into());
}

fn operation(options: &Arc<Options>, hops: &[SocketAddr]) -> Operation<Fixed> {
    let source = Fixed { hops: [hops[0], *hops.last().unwrap()], count: hops.len(), given: false };
    Operation::new(source, Arc::clone(options), Box::new(NoHooks))
}

fn blocking(options: &Arc<Options>, hops: &[SocketAddr]) {
    close(operation(options, hops).run(None).unwrap().socket);
}

/// As a host with an event loop does it: watch the descriptor, step when it is readable.
fn pollable(options: &Arc<Options>, at: SocketAddr) {
    let mut op = operation(options, &[at]);
    let mut set = [libc::pollfd { fd: op.pollable_fd().unwrap(), events: libc::POLLIN, revents: 0 }];
    loop {
        if let Step::Ready = op.step().unwrap() {
            return close(op.take().unwrap().socket);
        }
        byway::sys::socket::poll(&mut set, -1).unwrap();
    }
}

fn per_call(calls: u64, mut call: impl FnMut()) -> f64 {
    let start = thread_ns();
    (0..calls).for_each(|_| call());
    (thread_ns() - start) as f64 / calls as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn bar(name: &str, value: f64, limit: f64) {
    let verdict = if value <= limit { "ok" } else { "short" };
    println!("bar {name} {value:.3} {limit} {verdict}");
}

/// Median over rounds of the ratio of `call` to the bare connect measured right before and after it.
fn ratio(at: SocketAddr, mut call: impl FnMut()) -> f64 {
    const CALLS: u64 = 300;
    let rounds = (0..41).map(|_| {
        let before = per_call(CALLS, || bare(at));
        let ours = per_call(CALLS, &mut call);
        let after = per_call(CALLS, || bare(at));
        2.0 * ours / (before + after)
    });
    median(rounds.collect())
}

/// Eight attempts, started one after the other and then failing one after the other; cost of one action.
fn race_step() -> f64 {
    let rules = Rules { max_in_flight: 0, attempt_delay_ms: 10, ..Rules::default() };
    let rounds = (0..15).map(|_| {
        let mut actions = 0_u64;
        let start = thread_ns();
        for _ in 0..2000 {
            let mut race = Race::new(rules);
            race.add_selection((0..8).map(|route| Candidate { route, family: Family::V4, selection: 0 }));
            race.no_more_routes();
            let mut now = 0;
            while race.in_flight() < 8 {
                actions += 1;
                if let Action::Wait(Some(at)) = black_box(race.next(now)) {
                    now = at;
                }
            }
            for attempt in 1..=8 {
                race.report(attempt, Told::Failed { at_once: false });
                actions += 2;
                black_box(race.next(now));
                black_box(race.next(now));
            }
        }
        (thread_ns() - start) as f64 / actions as f64
    });
    median(rounds.collect())
}

/// Cost of one operation when so many are alive at once in one thread.
fn together(options: &Arc<Options>, at: SocketAddr, count: usize) -> f64 {
    let rounds = (0..(2000 / count).max(5)).map(|_| {
        per_call(1, || {
            let mut ops: Vec<_> = (0..count).map(|_| operation(options, &[at])).collect();
            let mut set: Vec<_> = ops
                .iter_mut()
                .map(|op| libc::pollfd { fd: op.pollable_fd().unwrap(), events: libc::POLLIN, revents: 0 })
                .collect();
            for op in &mut ops {
                op.step().unwrap();
            }
            let mut left = count;
            while left > 0 {
                byway::sys::socket::poll(&mut set, -1).unwrap();
                for (op, entry) in ops.iter_mut().zip(&mut set).filter(|(_, e)| e.revents != 0) {
                    if let Step::Ready = op.step().unwrap() {
                        close(op.take().unwrap().socket);
                        (entry.fd, entry.revents) = (-1, 0);
                        left -= 1;
                    }
                }
            }
        }) / count as f64
    });
    median(rounds.collect())
}

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&listener).listen(4096).unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(|stream| drop(black_box(stream))));
    let closed = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    closed.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    let refused = closed.local_addr().unwrap().as_socket().unwrap();
    let options = Arc::new(Options::default());

    for _ in 0..2000 {
        bare(at);
        blocking(&options, &[at]);
    }
    println!("bare connect and close: {:.1} us", per_call(3000, || bare(at)) / 1000.0);
    bar("dial_blocking_one_route_ratio", ratio(at, || blocking(&options, &[at])), 1.20);
    bar("dial_refused_then_good_ratio", ratio(at, || blocking(&options, &[refused, at])), 1.9);
    bar("dial_pollable_fd_ratio", ratio(at, || pollable(&options, at)), 1.5);
    bar("race_step_us", race_step() / 1000.0, 1.0);
    let (few, many) = (together(&options, at, 10), together(&options, at, 1000));
    bar("dial_1000_operations_to_10_ratio", many / few, 1.3);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..1000).for_each(|_| blocking(&options, &[at]));
    let blocking_allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    bar("dial_allocations_per_operation", blocking_allocations as f64 / 1000.0, 3.0);
}
