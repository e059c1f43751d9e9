//! What an operation does, over loopback.

use crate::support::*;
use byway::Status;
use byway::dial::op::EventKind::{Canceled, Failed, FdClosing, Start, Won};
use byway::dial::op::PollEntry;
use byway::dial::race::{CapPolicy, Family, RaceUntil, Rules};
use byway::dial::socks::Version;
use byway::dial::{Connected, Decision, Fault, Hooks, Options, Step, TunnelRefusal, Via};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex};

fn stream<R>(connected: Connected<R>) -> TcpStream {
    let stream = TcpStream::from(connected.socket);
    stream.set_nonblocking(false).unwrap();
    stream
}

fn quick() -> Options {
    Options { rules: Rules { attempt_delay_ms: 10, ..Rules::default() }, ..Options::default() }
}

/// The next route starts because the one before has failed, never beside it, however long this machine takes.
fn one_by_one(mut options: Options) -> Options {
    options.rules = Rules { max_in_flight: 1, cap_policy: CapPolicy::Wait, ..options.rules };
    options
}

fn ready() -> Options {
    Options { rules: Rules { race_until: RaceUntil::Ready, ..Rules::default() }, ..Options::default() }
}

#[test]
fn one_route_connects_and_the_socket_is_the_callers() {
    let quiet = quiet();
    let (listener, at) = listen();
    let (mut op, log) = one_selection(vec![direct(at)], Options::default());
    let connected = op.run(None).unwrap();
    drop(op);
    let flags = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", connected.fd())).unwrap();
    let flags = flags.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim().to_owned();
    let flags = i32::from_str_radix(&flags, 8).unwrap();
    assert_ne!(flags & libc::O_CLOEXEC, 0);
    assert_ne!(flags & libc::O_NONBLOCK, 0);
    let ours = stream(connected);
    let (mut theirs, peer) = listener.accept().unwrap();
    assert_eq!(ours.local_addr().unwrap(), peer);
    (&ours).write_all(b"x").unwrap();
    theirs.read_exact(&mut [0]).unwrap();
    assert!(ours.nodelay().unwrap());
    assert_eq!(lines(&log), [format!("{} started", at.port()), format!("{} connected", at.port())]);
    drop((ours, theirs, listener));
    quiet.check();
}

#[test]
fn a_refused_route_is_reported_and_the_next_wins() {
    let quiet = quiet();
    let ((_kept, bad), (listener, good)) = (closed_port(), listen());
    let (mut op, log) = one_selection(vec![direct(bad), direct(good)], one_by_one(Options::default()));
    assert_eq!(op.run(None).unwrap().route.hop, good);
    let (bad, good) = (bad.port(), good.port());
    let want = [
        format!("{bad} started"),
        format!("{bad} failed REFUSED database selector"),
        format!("{good} started"),
        format!("{good} connected"),
    ];
    assert_eq!(lines(&log), want);
    let json = op.explain_json();
    assert_eq!(json["attempts"][0]["fault"], "REFUSED");
    assert_eq!(
        (&json["result"], &json["attempts"][1]["outcome"]),
        (&"connected".into(), &"connected".into())
    );
    assert!(op.explain_text().contains("connection refused (errno 111)"), "{}", op.explain_text());
    drop((op, listener, _kept));
    quiet.check();
}

#[test]
fn a_silent_route_is_overtaken_and_not_blamed() {
    let quiet = quiet();
    let (hole, (listener, good)) = (black_hole(), listen());
    let (mut op, log) = one_selection(vec![direct(hole.at), direct(good)], quick());
    assert_eq!(op.run(None).unwrap().route.hop, good);
    assert!(lines(&log).contains(&format!("{} canceled", hole.at.port())));
    drop((op, listener, hole));
    quiet.check();
}

#[test]
fn when_all_fail_the_error_names_the_first_and_lists_all() {
    let quiet = quiet();
    let ((_a, one), (_b, two)) = (closed_port(), closed_port());
    let mut failed = byway::Error::new(Status::E_UNKNOWN_HOST, "unknown host").subject("b.example");
    failed = failed.os(0);
    let turns =
        vec![Turn::Selection(vec![direct(one)]), Turn::Failed(failed), Turn::Selection(vec![direct(two)])];
    let (mut op, _) = operation(turns, Options::default());
    let error = op.run(None).unwrap_err();
    assert_eq!((error.status(), error.os_errno()), (Status::E_CONNECT, libc::ECONNREFUSED));
    assert_eq!(error.about(), one.to_string());
    let causes: Vec<String> = error.all_causes().iter().map(ToString::to_string).collect();
    let refused = |at| format!("{at}: connection refused");
    assert_eq!(causes, [refused(one), "b.example: unknown host".into(), refused(two)]);
    assert_eq!(op.failures().len(), 3);
    let (mut none, _) = operation(vec![], Options::default());
    assert_eq!(none.run(None).unwrap_err().status(), Status::E_NO_ROUTE);
    drop((op, none, _a, _b));
    quiet.check();
}

#[test]
fn a_destination_that_is_listed_twice_is_tried_once() {
    let quiet = quiet();
    let (_kept, bad) = closed_port();
    let twice = || vec![direct(bad), direct(bad), through(bad, Via::Http, "o.example", 1)];
    for (keep_duplicates, attempts) in [(false, 2), (true, 3)] {
        let (mut op, _) = one_selection(twice(), Options { keep_duplicates, ..Options::default() });
        assert!(op.run(None).is_err());
        assert_eq!(op.failures().len(), attempts);
    }
    drop(_kept);
    quiet.check();
}

#[test]
fn a_slow_proxy_gets_no_direct_connection_beside_it() {
    let quiet = quiet();
    let (hole, (listener, at)) = (black_hole(), listen());
    let turns = || {
        vec![
            Turn::Selection(vec![through(hole.at, Via::Http, "o.example", 443)]),
            Turn::Selection(vec![direct(at)]),
        ]
    };
    let mut options = quick();
    options.rules.overall_timeout_ms = 100;
    let (mut op, log) = operation(turns(), options.clone());
    assert_eq!(op.run(None).unwrap_err().status(), Status::E_TIMEOUT);
    assert_eq!(lines(&log).len(), 2, "{:?}", lines(&log));
    options.rules.across_selections = true;
    options.rules.overall_timeout_ms = Options::default().rules.overall_timeout_ms;
    drop(op);
    let (mut op, _) = operation(turns(), options);
    assert_eq!(op.run(None).unwrap().route.hop, at);
    drop((op, listener, hole));
    quiet.check();
}

#[test]
fn socks_answers_are_read_to_the_byte() {
    let quiet = quiet();
    let ok = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for dripping in [false, true] {
        let answer = [&ok[..], b"hello"].concat();
        let send = |bytes: Vec<u8>| if dripping { Act::Drip(bytes) } else { Act::Send(bytes) };
        let script = vec![
            Act::Read(4),
            send(vec![5, 2]),
            Act::Read(5),
            send(vec![1, 0]),
            Act::Read(16),
            send(answer),
            Act::Hold,
        ];
        let (at, server) = serve(vec![script]);
        let mut way = through(at, Via::Socks(Version::V5), "o.example", 443);
        way.credentials = Some(("u".into(), "p".into()));
        let (mut op, log) = one_selection(vec![way], Options::default());
        let mut stream = stream(op.run(None).unwrap());
        let mut data = [0; 5];
        stream.read_exact(&mut data).unwrap();
        assert_eq!(&data, b"hello");
        drop((stream, op));
        let seen = server.join().unwrap().concat();
        assert_eq!(seen, b"\x05\x02\x00\x02\x01\x01u\x01p\x05\x01\x00\x03\x09o.example\x01\xbb");
        assert_eq!(lines(&log).last().unwrap(), &format!("{} connected", at.port()));
    }
    quiet.check();
}

#[test]
fn data_behind_the_connect_answer_stays_in_the_socket() {
    let quiet = quiet();
    let answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nVia: x\r\n\r\nSSH-2.0-x\r\n".to_vec();
    for send in [Act::Send(answer.clone()), Act::Drip(answer)] {
        let (at, server) = serve(vec![vec![Act::ReadHead, send, Act::Hold]]);
        let (mut op, _) = one_selection(vec![through(at, Via::Http, "2001:db8::1", 443)], Options::default());
        let mut stream = stream(op.run(None).unwrap());
        let mut data = [0; 11];
        stream.read_exact(&mut data).unwrap();
        assert_eq!(&data, b"SSH-2.0-x\r\n");
        drop((stream, op));
        let seen = String::from_utf8(server.join().unwrap().concat()).unwrap();
        assert!(seen.starts_with("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n"));
    }
    quiet.check();
}

/// An authenticator with a fixed answer, or one that comes later.
struct Answers {
    value: &'static str,
    later: Option<std::sync::mpsc::Sender<u32>>,
}

impl Hooks<Way> for Answers {
    fn proxy_auth(&mut self, attempt: u32, _: &Way, challenges: &[String]) -> Decision {
        assert_eq!(challenges, ["Digest realm=\"p\""]);
        match &self.later {
            Some(sender) => {
                sender.send(attempt).unwrap();
                Decision::Later
            }
            None => Decision::Answer(self.value.into()),
        }
    }
}

#[test]
fn credentials_come_at_once_or_later_over_kept_and_new_connections() {
    let quiet = quiet();
    let challenge = |close: &str| {
        format!(
            "HTTP/1.1 407 x\r\nProxy-Authenticate: Digest realm=\"p\"\r\n{close}Content-Length: 3\r\n\r\nabc"
        )
    };
    let kept = challenge("").into_bytes();
    let closed = challenge("Connection: close\r\n").into_bytes();
    let granted = || Act::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec());
    for later in [false, true] {
        for scripts in [
            vec![vec![
                Act::ReadHead,
                Act::Send(kept.clone()),
                Act::Read(1),
                Act::ReadHead,
                granted(),
                Act::Hold,
            ]],
            vec![vec![Act::ReadHead, Act::Send(closed.clone())], vec![Act::ReadHead, granted(), Act::Hold]],
        ] {
            let (at, server) = serve(scripts);
            let (sender, receiver) = std::sync::mpsc::channel();
            let hooks = Answers { value: "Digest x", later: later.then_some(sender) };
            let turns = vec![Turn::Selection(vec![through(at, Via::Http, "o.example", 443)])];
            let (mut op, _) = operation_with(turns, Options::default(), hooks);
            let authenticator = op.authenticator();
            let other = std::thread::spawn(move || {
                if let Ok(attempt) = receiver.recv() {
                    authenticator.answer(attempt, Some("Digest x".into()));
                }
            });
            drop(op.run(None).unwrap());
            drop(op);
            other.join().unwrap();
            let seen = String::from_utf8(server.join().unwrap().concat()).unwrap();
            assert_eq!(seen.matches("Proxy-Authorization: Digest x\r\n").count(), 1, "{seen}");
        }
    }
    quiet.check();
}

#[test]
fn own_credentials_go_out_at_once_and_are_not_repeated() {
    let quiet = quiet();
    let refusal =
        b"HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n".to_vec();
    let (at, server) = serve(vec![vec![Act::ReadHead, Act::Send(refusal), Act::Hold]]);
    let mut way = through(at, Via::Http, "o.example", 443);
    way.credentials = Some(("user".into(), "pass".into()));
    let (mut op, log) = one_selection(vec![way.clone(), way], Options::default());
    let error = op.run(None).unwrap_err();
    assert_eq!(error.status(), Status::E_PROXY_AUTH);
    let everything = format!("{error:?} {} {}", op.explain_text(), op.explain_json());
    assert!(!everything.contains("user") && !everything.contains("dXNlcjpwYXNz"), "{everything}");
    assert_eq!(lines(&log).last().unwrap(), &format!("{} failed CONNECT_AUTH_REQUIRED", at.port()));
    drop(op);
    let seen = String::from_utf8(server.join().unwrap().concat()).unwrap();
    assert_eq!(seen.matches("Basic dXNlcjpwYXNz").count(), 1);
    quiet.check();
}

#[test]
fn a_refused_tunnel_ends_the_operation_unless_the_next_route_is_wanted() {
    let quiet = quiet();
    let refusal = || vec![Act::ReadHead, Act::Send(b"HTTP/1.1 503 no\r\n\r\n".to_vec())];
    for next in [false, true] {
        let (at, server) = serve(vec![refusal()]);
        let (listener, good) = listen();
        let ways = vec![through(at, Via::Http, "o.example", 443), direct(good)];
        let mut options = one_by_one(ready());
        options.tunnel_refusal = if next { TunnelRefusal::Next } else { TunnelRefusal::Stop };
        let (mut op, log) = one_selection(ways, options);
        let result = op.run(None);
        assert_eq!(result.is_ok(), next);
        let want = if next { " database" } else { "" };
        assert!(lines(&log).contains(&format!("{} failed CONNECT_STATUS:503{want}", at.port())));
        if let Err(error) = result {
            assert_eq!(error.status(), Status::E_PROXY_REFUSED);
            assert!(error.message().contains("503"));
        }
        server.join().unwrap();
        drop((op, listener));
    }
    quiet.check();
}

#[test]
fn a_proxy_behind_tls_is_handed_over_after_tcp_and_confirmed_by_the_host() {
    let quiet = quiet();
    let (listener, at) = listen();
    let (mut op, log) = one_selection(vec![through(at, Via::Https, "o.example", 443)], Options::default());
    let connected = op.run(None).unwrap();
    assert!(connected.needs_proxy_tls);
    assert_eq!(lines(&log).len(), 1, "nothing is proved yet");
    op.confirm(connected.attempt).unwrap();
    assert_eq!(lines(&log)[1], format!("{} connected", at.port()));
    drop((op, connected, listener));
    quiet.check();
}

#[test]
fn after_a_failed_tls_the_losers_get_a_fresh_attempt() {
    let quiet = quiet();
    let (hole, (listener, good)) = (black_hole(), listen());
    let (mut op, log) = one_selection(vec![direct(hole.at), direct(good)], quick());
    let first = op.run(None).unwrap();
    assert_eq!(first.route.hop, good);
    op.resume(first.attempt, Fault::TlsFailed, Some(direct(good))).unwrap();
    assert!(op.resume(first.attempt, Fault::TlsFailed, None).is_err(), "only once");
    let second = op.run(None).unwrap();
    assert_eq!((second.route.hop, second.attempt), (good, 3));
    let (hole_port, good) = (hole.at.port(), good.port());
    assert_eq!(
        lines(&log)[4..],
        [
            format!("{good} failed TLS_FAILED database selector"),
            format!("{good} started"),
            format!("{good} connected"),
        ],
        "{hole_port}"
    );
    assert_eq!(op.take().unwrap_err().status(), Status::E_STATE);
    drop((op, first, second, listener, hole));
    quiet.check();
}

#[test]
fn the_host_decides_while_the_race_goes_on() {
    let quiet = quiet();
    let ((one, first), (two, second)) = (listen(), listen());
    let mut options = quick();
    options.rules.race_until = RaceUntil::Host;
    let (mut op, log) = one_selection(vec![direct(first), direct(second)], options);
    let a = op.run(None).unwrap();
    assert!(a.provisional);
    // TLS on the first hangs; meanwhile the second becomes ready.
    let b = op.run(None).unwrap();
    assert_eq!((a.route.hop, b.route.hop), (first, second));
    assert_eq!(op.take().unwrap_err().status(), Status::E_STATE);
    op.confirm(b.attempt).unwrap();
    assert!(op.confirm(a.attempt).is_err());
    assert_eq!(
        lines(&log)[2..],
        [format!("{} canceled", first.port()), format!("{} connected", second.port())]
    );
    drop((op, a, b, one, two));
    quiet.check();
}

#[test]
fn routes_that_come_later_wake_the_operation() {
    let quiet = quiet();
    let (listener, at) = listen();
    let place = Arc::new(Mutex::new(None));
    let turns = vec![Turn::Wait(Arc::clone(&place)), Turn::Selection(vec![direct(at)])];
    let (mut op, _) = operation(turns, Options::default());
    let fd = op.pollable_fd().unwrap();
    assert!(matches!(op.step().unwrap(), Step::Pending));
    assert!(!readable(fd, 0));
    let waker = place.lock().unwrap().take().unwrap();
    std::thread::spawn(move || waker.wake()).join().unwrap();
    assert!(readable(fd, -1));
    assert!(matches!(settle(&mut op, None).unwrap(), Step::Ready));
    assert!(readable(fd, 0), "readable until the socket is taken");
    drop(op.take().unwrap());
    drop((op, listener));
    quiet.check();
}

#[test]
fn addresses_that_come_family_by_family_join_the_race() {
    let quiet = quiet();
    let (hole, (listener, good)) = (black_hole(), listen());
    let place = Arc::new(Mutex::new(None));
    let turns = vec![
        Turn::Family(Family::V4, vec![direct(hole.at)], true),
        Turn::Wait(Arc::clone(&place)),
        Turn::Family(Family::V6, vec![direct(good)], true),
    ];
    let (mut op, _) = operation(turns, quick());
    assert!(matches!(op.step_at(0, &[]).unwrap(), Step::Pending));
    assert_eq!((op.now(), op.deadline_ms()), (0, Some(50)), "waits for the preferred family");
    assert!(matches!(op.step_at(50, &[]).unwrap(), Step::Pending));
    place.lock().unwrap().take().unwrap().wake();
    assert!(matches!(op.step_at(51, &[]).unwrap(), Step::Pending));
    assert_eq!(op.deadline_ms(), Some(9));
    assert!(matches!(settle(&mut op, Some(60)).unwrap(), Step::Ready));
    drop((op, listener, hole));
    quiet.check();
}

fn readable(fd: RawFd, timeout: i32) -> bool {
    let mut set = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
    byway::sys::socket::poll(&mut set, timeout).unwrap() == 1
}

#[test]
fn a_host_can_drive_it_with_its_own_poll() {
    let quiet = quiet();
    let (hole, (_kept, bad), (listener, good)) = (black_hole(), closed_port(), listen());
    let mut options = quick();
    options.events = true;
    let (mut op, _) = one_selection(vec![direct(hole.at), direct(bad), direct(good)], options);
    let mut watched: HashMap<u32, RawFd> = HashMap::new();
    let mut kinds: [Vec<_>; 3] = Default::default();
    loop {
        let mut set = Vec::new();
        op.pollset(|entry| set.push(entry)).unwrap();
        for entry in set.iter().filter(|entry| entry.id != 0) {
            assert_eq!(watched.get(&entry.id), Some(&entry.fd), "announced before it is in the set");
        }
        let mut fds: Vec<_> =
            set.iter().map(|e| libc::pollfd { fd: e.fd, events: e.events, revents: 0 }).collect();
        let limit = op.deadline_ms().map_or(-1, |ms| i32::try_from(ms).unwrap());
        byway::sys::socket::poll(&mut fds, limit).unwrap();
        let ready: Vec<PollEntry> =
            set.iter().zip(&fds).map(|(e, f)| PollEntry { revents: f.revents, ..*e }).collect();
        let step = op.step_with(&ready).unwrap();
        while let Some(event) = op.next_event() {
            kinds[event.attempt as usize - 1].push(event.kind);
            match event.kind {
                Start => drop(watched.insert(event.attempt, event.fd)),
                FdClosing => assert_eq!(watched.remove(&event.attempt), Some(event.fd)),
                _ => {}
            }
        }
        if let Step::Ready = step {
            break;
        }
    }
    let connected = op.take().unwrap();
    assert_eq!(watched.into_iter().collect::<Vec<_>>(), [(connected.attempt, connected.fd())]);
    // On a slow machine the third may start before the second is known to have failed.
    assert_eq!(kinds, [vec![Start, FdClosing, Canceled], vec![Start, FdClosing, Failed], vec![Start, Won]]);
    drop((op, connected, listener, hole, _kept));
    quiet.check();
}

#[test]
fn a_hundred_operations_share_one_loop() {
    let quiet = quiet();
    let listener = TcpListener::bind(loopback()).unwrap();
    let at = listener.local_addr().unwrap();
    let hole = black_hole();
    let accept =
        std::thread::spawn(move || (0..100).map(|_| listener.accept().unwrap().0).collect::<Vec<_>>());
    let mut ops: Vec<_> =
        (0..100).map(|_| one_selection(vec![direct(hole.at), direct(at)], quick()).0).collect();
    let mut set: Vec<_> = ops
        .iter_mut()
        .map(|op| libc::pollfd { fd: op.pollable_fd().unwrap(), events: libc::POLLIN, revents: 0 })
        .collect();
    let mut sockets = Vec::new();
    // The first step is due at once, the further ones when the descriptor says so.
    set.iter_mut().for_each(|entry| entry.revents = libc::POLLIN);
    while sockets.len() < 100 {
        for (op, entry) in ops.iter_mut().zip(&mut set).filter(|(_, entry)| entry.revents != 0) {
            if let Step::Ready = op.step().unwrap() {
                sockets.push(op.take().unwrap());
                entry.fd = -1;
            }
        }
        if sockets.len() < 100 {
            byway::sys::socket::poll(&mut set, -1).unwrap();
        }
    }
    assert!(sockets.iter().all(|socket| socket.route.hop == at));
    drop((ops, sockets, accept.join().unwrap(), hole));
    quiet.check();
}

/// Hooks that open and close sockets themselves, and refuse one port.
struct Broker {
    refuse: u16,
    open: Arc<Mutex<Vec<RawFd>>>,
}

impl Hooks<Way> for Broker {
    fn open_socket(&mut self, family: i32, protocol: i32, _: &Way) -> Result<Option<RawFd>, i32> {
        let socket =
            socket2::Socket::new(family.into(), socket2::Type::STREAM, Some(protocol.into())).unwrap();
        let fd = std::os::fd::IntoRawFd::into_raw_fd(socket);
        self.open.lock().unwrap().push(fd);
        Ok(Some(fd))
    }

    fn configure(&mut self, _: RawFd, way: &Way) -> Result<(), i32> {
        if way.hop.port() == self.refuse { Err(libc::EPERM) } else { Ok(()) }
    }

    fn close_socket(&mut self, fd: RawFd) -> bool {
        self.open.lock().unwrap().retain(|open| *open != fd);
        drop(byway::sys::socket::adopt(fd));
        true
    }
}

#[test]
fn hooks_open_configure_and_close_every_socket() {
    let quiet = quiet();
    let (hole, (listener, good)) = (black_hole(), listen());
    let open = Arc::new(Mutex::new(Vec::new()));
    let hooks = Broker { refuse: 9, open: Arc::clone(&open) };
    let ways = vec![direct("127.0.0.1:9".parse().unwrap()), direct(hole.at), direct(good)];
    let (mut op, log) = operation_with(vec![Turn::Selection(ways)], quick(), hooks);
    let connected = op.run(None).unwrap();
    assert_eq!(connected.socket.as_fd().as_raw_fd(), connected.fd());
    assert_eq!(lines(&log)[1], "9 failed HOOK_REJECTED", "nobody is blamed");
    assert_eq!(*open.lock().unwrap(), [connected.fd()]);
    drop((op, connected, listener, hole));
    quiet.check();
}

#[test]
fn options_reach_the_socket() {
    let quiet = quiet();
    let (listener, at) = listen();
    let mut options = Options::default();
    options.socket.keepalive_s = 7;
    options.socket.user_timeout_ms = 1234;
    options.socket.source_v4 = Some("127.0.0.9".parse().unwrap());
    options.socket.nonblocking = false;
    options.socket.mptcp = true;
    let (mut op, _) = one_selection(vec![direct(at)], options.clone());
    let connected = op.run(None).unwrap();
    let socket = socket2::SockRef::from(&connected.socket);
    assert!(socket.keepalive().unwrap() && !socket.nonblocking().unwrap());
    assert_eq!(socket.tcp_user_timeout().unwrap().unwrap().as_millis(), 1234);
    assert_eq!(socket.local_addr().unwrap().as_socket().unwrap().ip().to_string(), "127.0.0.9");
    for (source, device, fault) in [
        (Some("192.0.2.77".parse().unwrap()), None, Fault::BindFailed),
        (None, Some("nosuchdev0".to_owned()), Fault::NoDevice),
    ] {
        let mut options = Options::default();
        options.socket.source_v4 = source;
        options.socket.device = device;
        let (mut op, _) = one_selection(vec![direct(at)], options);
        assert_eq!(op.run(None).unwrap_err().status(), Status::E_LOCAL);
        assert_eq!(op.failures()[0].fault, Some(fault));
    }
    let mut options = Options::default();
    options.socket.mptcp = true;
    options.socket.fast_open = true;
    let (mut multipath, _) = one_selection(vec![direct(at)], options);
    drop(multipath.run(None).unwrap());
    drop((op, connected, multipath, listener));
    quiet.check();
}

#[test]
fn dropped_in_any_state_it_closes_everything() {
    let quiet = quiet();
    let (hole, (listener, good)) = (black_hole(), listen());
    let (mut running, _) = one_selection(vec![direct(hole.at), direct(good)], Options::default());
    running.pollable_fd().unwrap();
    assert!(matches!(running.step_at(0, &[]).unwrap(), Step::Pending));
    let (mut won, _) = one_selection(vec![direct(good)], Options::default());
    assert!(matches!(settle(&mut won, None).unwrap(), Step::Ready));
    let (fresh, _) = one_selection(vec![direct(good)], Options::default());
    drop((running, won, fresh, hole, listener));
    quiet.check();
}
