//! Faults of the network and of this machine. Those that need another network run in a network namespace of
//! their own, entered by one thread; where that is not allowed the test says so and is counted as skipped.
//! After each there are as many descriptors as before, and no thread of ours.

use crate::support::*;
use byway::Status;
use byway::dial::race::{CapPolicy, RaceUntil, Rules};
use byway::dial::socks::Version;
use byway::dial::{Fault, Options, Via};
use std::io::Write;
use std::net::SocketAddr;
use std::process::Command;

fn options(change: impl FnOnce(&mut Rules)) -> Options {
    let mut rules = Rules { attempt_delay_ms: 10, ..Rules::default() };
    change(&mut rules);
    Options { rules, ..Options::default() }
}

/// Runs `ip` inside the namespace of the calling thread.
fn ip(line: &str) -> bool {
    let Some(program) = program("ip") else { return false };
    let words = line.split(' ');
    Command::new(program).args(words).stderr(std::process::Stdio::null()).status().is_ok_and(|s| s.success())
}

/// Runs `body` on a thread with a network of its own, loopback up.
fn in_own_network(test: &'static str, body: fn()) {
    let quiet = quiet();
    let thread = std::thread::spawn(move || {
        // SAFETY: changes the network namespace of this thread alone, which ends with it.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return skipped(test, "network namespaces are not allowed here");
        }
        if !ip("link set lo up") {
            return skipped(test, "the program `ip` is missing or refuses");
        }
        body();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
    quiet.check();
}

fn faults(ways: Vec<Way>, options: Options) -> (byway::Result<SocketAddr>, Vec<Fault>, Vec<String>) {
    let (mut op, log) = one_selection(ways, options);
    let result = op.run(None).map(|connected| connected.route.hop);
    (result, op.failures().iter().filter_map(|failure| failure.fault).collect(), lines(&log))
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn a_black_hole_ends_with_the_attempt_timeout() {
    let quiet = quiet();
    let hole = black_hole();
    let limits = options(|rules| rules.attempt_timeout_ms = 20);
    let (result, faults, log) = faults(vec![direct(hole.at)], limits);
    assert_eq!((result.unwrap_err().status(), faults), (Status::E_CONNECT, vec![Fault::TimeoutAttempt]));
    assert!(log[1].ends_with("failed TIMEOUT_ATTEMPT database selector"));
    drop(hole);
    quiet.check();
}

#[test]
fn a_real_black_hole_in_both_families() {
    in_own_network("a_real_black_hole_in_both_families", || {
        if !ip("link add bh0 type ifb") {
            return skipped("a_real_black_hole_in_both_families", "no ifb device in this kernel");
        }
        for line in [
            "link set bh0 up",
            "addr add 192.0.2.1/24 dev bh0",
            "-6 addr add 2001:db8::1/64 dev bh0 nodad",
            "neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev bh0",
            "-6 neigh add 2001:db8::2 lladdr 02:00:00:00:00:02 dev bh0",
        ] {
            assert!(ip(line), "{line}");
        }
        let (listener, good) = listen();
        let ways = vec![direct(at("[2001:db8::2]:443")), direct(at("192.0.2.2:443")), direct(good)];
        let (result, _, log) = faults(ways.clone(), options(|_| {}));
        assert_eq!(result.unwrap(), good);
        assert_eq!(log.iter().filter(|line| line.ends_with("443 canceled")).count(), 2, "{log:?}");
        let (result, _, log) = faults(ways[..2].to_vec(), options(|rules| rules.overall_timeout_ms = 40));
        assert_eq!(result.unwrap_err().status(), Status::E_TIMEOUT);
        assert!(log.iter().all(|line| !line.contains("failed")), "a deadline blames nobody: {log:?}");
        drop(listener);
    });
}

#[test]
fn what_this_machine_cannot_do_blames_no_route() {
    in_own_network("what_this_machine_cannot_do_blames_no_route", || {
        if !ip("link add bh0 type ifb") {
            return skipped("what_this_machine_cannot_do_blames_no_route", "no ifb device in this kernel");
        }
        for line in [
            "link set bh0 up",
            "addr add 192.0.2.1/24 dev bh0",
            "route add unreachable 198.51.100.0/26",
            "route add prohibit 198.51.100.64/26",
            "route add blackhole 198.51.100.128/26",
            "route add throw 198.51.100.192/26",
        ] {
            assert!(ip(line), "{line}");
        }
        let (listener, good) = listen();
        for (hop, fault) in [
            ("203.0.113.1:443", Fault::NoLocalRoute),
            ("198.51.100.1:443", Fault::NoLocalRoute),
            ("198.51.100.65:443", Fault::AccessDenied),
            ("198.51.100.129:443", Fault::BadAddress),
            ("198.51.100.193:443", Fault::NoLocalRoute),
            ("[fe80::1]:443", Fault::BadAddress),
        ] {
            let (result, found, log) = faults(vec![direct(at(hop)), direct(good)], options(|_| {}));
            assert_eq!((result.unwrap(), found), (good, vec![fault]), "{hop}");
            assert_eq!(log[1], format!("443 failed {fault}"), "told to neither database nor proxy selector");
            let (result, ..) = faults(vec![direct(at(hop))], options(|_| {}));
            assert_eq!(result.unwrap_err().status(), Status::E_LOCAL, "{hop}");
        }
        drop(listener);
    });
}

#[test]
fn without_ipv6_the_next_family_starts_at_once() {
    in_own_network("without_ipv6_the_next_family_starts_at_once", || {
        std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").unwrap();
        let (listener, good) = listen();
        let never = options(|rules| rules.attempt_delay_ms = 2000);
        let v6 = at(&format!("[::1]:{}", good.port()));
        let (mut op, _) = one_selection(vec![direct(v6), direct(good)], never);
        assert!(matches!(settle(&mut op, Some(0)).unwrap(), byway::dial::Step::Ready));
        assert!(op.failures()[0].fault.unwrap().is_local());
        drop((op, listener));
    });
}

#[test]
fn used_up_local_ports_are_a_local_fault() {
    in_own_network("used_up_local_ports_are_a_local_fault", || {
        // Its port is none of the two, in a network where nobody else has it.
        let good = at("127.0.0.1:50000");
        let listener = std::net::TcpListener::bind(good).unwrap();
        std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40001").unwrap();
        let _one = std::net::TcpStream::connect(good).unwrap();
        let _two = std::net::TcpStream::connect(good).unwrap();
        let (result, found, _) = faults(vec![direct(good)], options(|_| {}));
        assert_eq!(result.unwrap_err().status(), Status::E_LOCAL);
        assert_eq!(found, [Fault::AddrNotAvailable]);
        drop(listener);
    });
}

#[test]
fn a_socket_connected_to_itself_is_never_handed_over() {
    in_own_network("a_socket_connected_to_itself_is_never_handed_over", || {
        std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40003").unwrap();
        let mut met = 0;
        for round in 0..400 {
            let port = 40000 + round % 4;
            let (result, found, _) = faults(vec![direct(at(&format!("127.0.0.1:{port}")))], options(|_| {}));
            assert!(result.is_err(), "nobody listens");
            met += usize::from(found == [Fault::SelfConnect]);
        }
        // Every connect of ours that lands on its own port is tried again, so few are left.
        assert!(met < 400);
    });
}

#[test]
fn one_of_several_descriptors_is_waited_for_and_none_ends_the_operation() {
    let quiet = quiet();
    let (hole, (listener, good)) = (black_hole(), listen());
    let limit = |soft: Option<u64>| {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: plain calls with a struct on this stack.
        unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut now);
            let before = now.rlim_cur;
            if let Some(soft) = soft {
                now.rlim_cur = soft;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const now);
            }
            before
        }
    };
    // The lowest number that is free: nothing at or above it can be opened.
    let probe = std::fs::File::open("/dev/null").unwrap();
    let free = std::os::fd::AsRawFd::as_raw_fd(&probe) as u64;
    drop(probe);

    let before = limit(None);
    let (mut op, log) = one_selection(vec![direct(hole.at), direct(good)], options(|_| {}));
    op.pollable_fd().unwrap();
    assert!(matches!(op.step_at(0, &[]).unwrap(), byway::dial::Step::Pending));
    limit(Some(free));
    let second = op.step_at(10, &[]).unwrap();
    let (mut alone, alone_log) = one_selection(vec![direct(good)], options(|_| {}));
    let error = alone.run(None).unwrap_err();
    limit(Some(before));
    assert!(matches!(second, byway::dial::Step::Pending));
    assert_eq!((error.status(), error.os_errno()), (Status::E_LOCAL, libc::EMFILE));
    assert_eq!(lines(&alone_log)[1], format!("{} failed FD_LIMIT", good.port()));
    // With a descriptor free again the same route has its turn after the delay.
    assert!(matches!(settle(&mut op, Some(20)).unwrap(), byway::dial::Step::Ready));
    assert_eq!(lines(&log).iter().filter(|line| line.ends_with("started")).count(), 3);
    drop((op, alone, listener, hole));
    quiet.check();
}

#[test]
fn a_proxy_that_breaks_its_protocol_is_blamed_and_the_next_one_tried() {
    let quiet = quiet();
    let head = |text: &str| text.as_bytes().to_vec();
    let endless = b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(5000);
    let socks = Via::Socks(Version::V5);
    for (via, script, fault) in [
        (Via::Http, vec![Act::ReadHead, Act::Send(head("SSH-2.0-OpenSSH\r\n"))], Fault::BadStatusLine),
        (Via::Http, vec![Act::ReadHead, Act::Send(head("HTTP/1.1 200 OK\r\nA: b\0\r\n"))], Fault::BadHeader),
        (
            Via::Http,
            vec![Act::ReadHead, Act::Send([head("HTTP/1.1 200 OK\r\n"), endless].concat()), Act::Hold],
            Fault::HeaderTooLarge,
        ),
        (Via::Http, vec![Act::ReadHead, Act::Drip(head("HTTP/1.1 200 OK\r\nVia"))], Fault::Truncated),
        (Via::Http, vec![Act::ReadHead], Fault::ProxyClosed),
        (Via::Http, vec![Act::ReadHead, Act::Send(head("HTTP/1.1 2")), Act::Reset], Fault::Reset),
        (Via::Http, vec![Act::Read(1), Act::Reset], Fault::Reset),
        (
            socks,
            vec![Act::Read(3), Act::Drip(vec![5, 0]), Act::Read(16), Act::Send(vec![5, 4])],
            Fault::RepHostUnreachable,
        ),
        (socks, vec![Act::Read(3), Act::Send(head("HTTP/1.1 400 Bad"))], Fault::BadVersion),
        (socks, vec![Act::Read(3), Act::Send(vec![5])], Fault::Truncated),
        (socks, vec![Act::Read(3), Act::Hold], Fault::TimeoutReady),
        (Via::Http, vec![Act::ReadHead, Act::Drip(head("HTTP/1.1 200 O")), Act::Hold], Fault::TimeoutReady),
    ] {
        let (broken, server) = serve(vec![script.clone()]);
        let (listener, good) = listen();
        let limits = options(|rules| {
            // The next one starts because this one has failed, never beside it.
            (rules.max_in_flight, rules.cap_policy) = (1, CapPolicy::Wait);
            rules.race_until = RaceUntil::Ready;
            rules.ready_timeout_ms = if fault == Fault::TimeoutReady { 30 } else { 30_000 };
        });
        let ways = vec![through(broken, via, "o.example", 443), direct(good)];
        let (result, found, log) = faults(ways, limits);
        server.join().unwrap();
        let to = if fault == Fault::RepHostUnreachable { "" } else { " selector" };
        assert_eq!((result.unwrap(), found), (good, vec![fault]), "{script:?}");
        assert_eq!(log[1], format!("{} failed {fault} database{to}", broken.port()));
        drop(listener);
    }
    quiet.check();
}

#[test]
fn a_dripping_proxy_is_ended_by_the_absolute_limit() {
    let quiet = quiet();
    let (listener, at) = listen();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        // Alive for ever, one byte at a time, until the peer has had enough.
        while stream.write_all(b"X").is_ok() && stream.write_all(b":\r\n").is_ok() {
            std::thread::yield_now();
        }
    });
    let mut limits = options(|rules| rules.ready_timeout_ms = 50);
    limits.handshake.limits.max_header = usize::MAX;
    let (result, found, _) = faults(vec![through(at, Via::Http, "o.example", 443)], limits);
    assert_eq!((result.is_err(), found), (true, vec![Fault::TimeoutReady]));
    server.join().unwrap();
    quiet.check();
}

#[test]
fn a_write_to_a_closed_connection_does_not_kill_a_c_host() {
    let quiet = quiet();
    let (listener, at) = listen();
    let stream = std::net::TcpStream::connect(at).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // SAFETY: the child calls two system calls and leaves; SIGPIPE as a C program has it.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let refused = byway::sys::socket::send(std::os::fd::AsFd::as_fd(&stream), b"x").is_err();
            libc::_exit(if refused { 7 } else { 8 });
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        status
    };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "status {status:#x}");
    drop((stream, listener));
    quiet.check();
}
