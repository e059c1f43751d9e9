//! Real proxies of the distribution, and the same answers given to curl.
//!
//! Each proxy is started here on loopback. One that is not installed makes its test skipped by name.

use crate::support::*;
use byway::dial::fault::Blame;
use byway::dial::race::{RaceUntil, Rules};
use byway::dial::socks::Version;
use byway::dial::{Fault, Options, Via};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A proxy process with a folder of its own; both go with it.
struct Peer {
    child: Child,
    at: SocketAddr,
    folder: PathBuf,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: the group of a process started here, which has not been waited for yet.
        unsafe { libc::kill(-self.child.id().cast_signed(), libc::SIGKILL) };
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Below the ports that connects take for themselves, so that it stays free until the program has it.
fn free_port() -> u16 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    loop {
        let step = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + std::process::id() * 16;
        let port = 20_000 + (step % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Starts a program and waits until it listens. `arguments` gets the port and a folder for files.
fn start(test: &str, name: &str, arguments: impl Fn(u16, &PathBuf) -> Vec<String>) -> Option<Peer> {
    let Some(path) = program(name) else {
        skipped(test, &format!("{name} is not installed"));
        return None;
    };
    let port = free_port();
    let folder = std::env::temp_dir().join(format!("byway-{name}-{}-{port}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(path);
    command.args(arguments(port, &folder)).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    let mut peer = Peer { child, at, folder };
    let patience = Instant::now() + Duration::from_secs(60);
    // Seldom enough that no connect lands on itself while nobody listens.
    while TcpStream::connect(at).is_err() {
        if Instant::now() > patience || peer.child.try_wait().unwrap().is_some() {
            skipped(test, &format!("{name} does not start here"));
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(peer)
}

fn file(folder: &std::path::Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// A target that answers every line with itself, until the connection closes.
struct Echo {
    at: SocketAddr,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn echo() -> Echo {
    let (listener, at) = listen();
    let thread = std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 64];
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                if &buffer[..n] == b"end" {
                    return;
                }
                stream.write_all(&buffer[..n]).unwrap();
            }
        }
    });
    Echo { at, thread: Some(thread) }
}

impl Drop for Echo {
    fn drop(&mut self) {
        TcpStream::connect(self.at).unwrap().write_all(b"end").unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn ready() -> Options {
    Options { rules: Rules { race_until: RaceUntil::Ready, ..Rules::default() }, ..Options::default() }
}

/// What comes of asking `proxy` for `target`: an echo, or the fault.
fn ask(
    proxy: SocketAddr,
    via: Via,
    host: &str,
    port: u16,
    credentials: Option<(&str, &str)>,
) -> Result<(), Fault> {
    let mut way = through(proxy, via, host, port);
    way.credentials = credentials.map(|(user, password)| (user.into(), password.into()));
    let (mut op, _) = one_selection(vec![way], ready());
    match op.run(Some(60_000)) {
        Ok(connected) => {
            let mut stream = TcpStream::from(connected.socket);
            stream.set_nonblocking(false).unwrap();
            stream.write_all(b"ping").unwrap();
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"ping");
            Ok(())
        }
        Err(error) => Err(op.failures().first().and_then(|f| f.fault).unwrap_or_else(|| panic!("{error:?}"))),
    }
}

const V5: Via = Via::Socks(Version::V5);

#[test]
fn microsocks() {
    let quiet = quiet();
    let target = echo();
    let (_kept, closed) = closed_port();
    let open = start("microsocks", "microsocks", |port, _| {
        ["-i", "127.0.0.1", "-p", &port.to_string()].map(String::from).to_vec()
    });
    let locked = start("microsocks", "microsocks", |port, _| {
        ["-i", "127.0.0.1", "-p", &port.to_string(), "-u", "user", "-P", "pass"].map(String::from).to_vec()
    });
    if let (Some(open), Some(locked)) = (&open, &locked) {
        let port = target.at.port();
        assert_eq!(ask(open.at, V5, "127.0.0.1", port, None), Ok(()));
        assert_eq!(ask(open.at, V5, "localhost", port, Some(("u", "p"))), Ok(()));
        assert_eq!(ask(open.at, V5, "127.0.0.1", closed.port(), None), Err(Fault::RepRefused));
        assert_eq!(
            ask(open.at, V5, "no.such.name.invalid", 80, None).map_err(Fault::blame),
            Err(Blame::Target)
        );
        assert_eq!(ask(open.at, Via::Socks(Version::V4), "127.0.0.1", port, None), Err(Fault::BadVersion));
        assert_eq!(ask(locked.at, V5, "127.0.0.1", port, Some(("user", "pass"))), Ok(()));
        assert_eq!(
            ask(locked.at, V5, "127.0.0.1", port, Some(("user", ""))).map_err(Fault::blame),
            Err(Blame::Auth)
        );
        assert_eq!(ask(locked.at, V5, "127.0.0.1", port, None), Err(Fault::NoAcceptableMethod));
    }
    drop((open, locked, target, _kept));
    quiet.check();
}

#[test]
fn dante() {
    let quiet = quiet();
    let target = echo();
    let (_kept, closed) = closed_port();
    let config = |method: &str| {
        let method = method.to_owned();
        move |port: u16, folder: &PathBuf| {
            let text = format!(
                "logoutput: /dev/null\ninternal: 127.0.0.1 port = {port}\nexternal: 127.0.0.1\n\
                 clientmethod: none\nsocksmethod: {method}\nuser.privileged: root\nuser.unprivileged: nobody\n\
                 client pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}\nsocks pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}\n"
            );
            vec![
                "-f".into(),
                file(folder, "danted.conf", &text),
                "-p".into(),
                format!("{}/pid", folder.display()),
            ]
        }
    };
    let open = start("dante", "danted", config("none"));
    // Its passwords are those of the system's users, so only the refusals can be shown here.
    let locked = start("dante with password", "danted", config("username"));
    if let (Some(open), Some(locked)) = (&open, &locked) {
        let port = target.at.port();
        assert_eq!(ask(open.at, V5, "127.0.0.1", port, None), Ok(()));
        assert_eq!(ask(open.at, Via::Socks(Version::V4), "127.0.0.1", port, None), Ok(()));
        assert_eq!(ask(open.at, V5, "127.0.0.1", closed.port(), None), Err(Fault::RepRefused));
        assert_eq!(ask(locked.at, V5, "127.0.0.1", port, None), Err(Fault::NoAcceptableMethod));
        let wrong = ask(locked.at, V5, "127.0.0.1", port, Some(("nosuchuser", "x")));
        assert!(matches!(wrong, Err(Fault::AuthRejected(_))), "{wrong:?}");
    }
    drop((open, locked, target, _kept));
    quiet.check();
}

#[test]
fn tinyproxy() {
    let quiet = quiet();
    let target = echo();
    let (_kept, closed) = closed_port();
    let config = |line: &'static str| {
        move |port: u16, folder: &PathBuf| {
            let text = format!("Port {port}\nListen 127.0.0.1\nTimeout 20\nLogFile \"/dev/null\"\n{line}\n");
            vec!["-d".into(), "-c".into(), file(folder, "tinyproxy.conf", &text)]
        }
    };
    let open = start("tinyproxy", "tinyproxy", config(""));
    let locked = start("tinyproxy", "tinyproxy", config("BasicAuth user pass"));
    if let (Some(open), Some(locked)) = (&open, &locked) {
        let port = target.at.port();
        assert_eq!(ask(open.at, Via::Http, "127.0.0.1", port, None), Ok(()));
        let refused = ask(open.at, Via::Http, "127.0.0.1", closed.port(), None);
        assert!(matches!(refused, Err(Fault::ConnectStatus(500..=599))), "{refused:?}");
        assert_eq!(ask(locked.at, Via::Http, "127.0.0.1", port, Some(("user", "pass"))), Ok(()));
        // It refuses with 401 or 407, by version.
        for credentials in [None, Some(("user", "wrong"))] {
            let refused = ask(locked.at, Via::Http, "127.0.0.1", port, credentials);
            let known = matches!(refused, Err(Fault::ConnectAuthRequired | Fault::ConnectStatus(401)));
            assert!(known, "{refused:?}");
        }
    }
    drop((open, locked, target, _kept));
    quiet.check();
}

#[test]
fn squid() {
    let quiet = quiet();
    let target = echo();
    let (_kept, closed) = closed_port();
    let arguments = |port: u16, folder: &PathBuf| {
        // user:pass
        let users = file(folder, "users", "user:$apr1$abcdefgh$rK/lObuciIG5ziaV8BdHR/\n");
        let text = format!(
            "http_port 127.0.0.1:{port}\naccess_log none\ncache_log /dev/null\npid_filename none\ncache deny all\n\
             coredump_dir none\nshutdown_lifetime 0 seconds\nvisible_hostname test.invalid\n\
             auth_param basic program /usr/lib/squid/basic_ncsa_auth {users}\nauth_param basic children 1\n\
             auth_param basic realm p\nacl known proxy_auth REQUIRED\nacl free dst 127.0.0.9\n\
             http_access allow free\nhttp_access allow known\nhttp_access deny all\n"
        );
        vec!["-N".into(), "-f".into(), file(folder, "squid.conf", &text), "-n".into(), format!("byway{port}")]
    };
    let squid = start("squid", "squid", arguments);
    if let Some(squid) = &squid {
        let port = target.at.port();
        assert_eq!(ask(squid.at, Via::Http, "127.0.0.1", port, Some(("user", "pass"))), Ok(()));
        assert_eq!(ask(squid.at, Via::Http, "localhost", port, Some(("user", "pass"))), Ok(()));
        for credentials in [None, Some(("user", "wrong"))] {
            let refused = ask(squid.at, Via::Http, "127.0.0.1", port, credentials);
            assert_eq!(refused, Err(Fault::ConnectAuthRequired), "{credentials:?}");
        }
        assert_eq!(
            ask(squid.at, Via::Http, "127.0.0.9", closed.port(), None),
            Err(Fault::ConnectStatus(503))
        );
        // Challenged first and answered on the connection that carried the challenge.
        let mut options = ready();
        options.handshake.preemptive_basic = false;
        let mut way = through(squid.at, Via::Http, "127.0.0.1", port);
        way.credentials = Some(("user".into(), "pass".into()));
        let (mut op, log) = one_selection(vec![way], options);
        op.run(Some(60_000)).unwrap();
        assert_eq!(lines(&log).iter().filter(|line| line.ends_with("started")).count(), 1);
    }
    drop((squid, target, _kept));
    quiet.check();
}

// ---- the same answers for curl

enum Ask {
    Connect,
    Socks5,
    Socks4a,
}

/// Answers one client and says whether it went on to use the tunnel.
fn judge(listener: &TcpListener, ask: &Ask, answers: &[&[u8]]) -> bool {
    let (mut stream, _) = listener.accept().unwrap();
    let mut seen = Vec::new();
    let mut byte = [0];
    for (round, answer) in answers.iter().enumerate() {
        let complete = |seen: &[u8]| match (ask, round) {
            (Ask::Connect, _) => seen.ends_with(b"\r\n\r\n"),
            (Ask::Socks5, 0) => seen.len() >= 2 && seen.len() == 2 + usize::from(seen[1]),
            (Ask::Socks5, _) => seen.len() >= 5 && seen.len() == 7 + usize::from(seen[4]),
            (Ask::Socks4a, _) => seen.len() > 8 && seen[8..].iter().filter(|b| **b == 0).count() == 2,
        };
        seen.clear();
        while !complete(&seen) {
            match stream.read(&mut byte) {
                Ok(1) => seen.push(byte[0]),
                _ => return false,
            }
        }
        if stream.write_all(answer).is_err() {
            return false;
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    matches!(stream.read(&mut byte), Ok(1))
}

#[test]
fn curl_accepts_and_rejects_the_same_answers() {
    let quiet = quiet();
    let Some(curl) = program("curl") else {
        skipped("curl_accepts_and_rejects_the_same_answers", "curl is not installed");
        return;
    };
    const NO_AUTH: &[u8] = b"\x05\x00";
    let c = |answer: &'static [u8]| (Ask::Connect, vec![answer]);
    let s5 = |answer: &'static [u8]| (Ask::Socks5, vec![NO_AUTH, answer]);
    let s4 = |answer: &'static [u8]| (Ask::Socks4a, vec![answer]);
    // (answer, byway takes it, curl may differ because ...)
    let cases = [
        (c(b"HTTP/1.1 200 OK\r\n\r\n"), true, ""),
        (c(b"HTTP/1.0 200 OK\r\n\r\n"), true, ""),
        (c(b"HTTP/1.1 200\r\n\r\n"), true, ""),
        (c(b"HTTP/1.1 204 No Content\r\n\r\n"), true, ""),
        (c(b"HTTP/1.1 299 X\r\n\r\n"), true, ""),
        (c(b"HTTP/1.1 200 OK\nVia: x\n\n"), true, ""),
        (c(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), true, ""),
        (c(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), true, ""),
        (
            c(b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
            true,
            "RFC 9110 15.2: interim answers are skipped",
        ),
        (c(b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"), true, "a line without a colon is skipped"),
        (c(b"HTTP/1.1  200 OK\r\n\r\n"), false, "two spaces; later releases of curl refuse them too"),
        (c(b"HTTP/1.1 2000 OK\r\n\r\n"), false, ""),
        (c(b"HTTP/2 200 OK\r\n\r\n"), false, ""),
        (c(b"ICY 200 OK\r\n\r\n"), false, ""),
        (c(b"\r\nHTTP/1.1 200 OK\r\n\r\n"), false, ""),
        (c(b"HTTP/1.1 101 Switching\r\n\r\n"), false, ""),
        (c(b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n"), false, ""),
        (c(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n"), false, ""),
        (
            c(b"HTTP/1.1 407 no\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n"),
            false,
            "",
        ),
        (c(b"HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n"), false, ""),
        (c(b"HTTP/1.1 200 OK\r\nVia: x\r\n"), false, ""),
        (c(b"\x05\xff"), false, ""),
        (c(b""), false, ""),
        (s5(b"\x05\x00\x00\x01\0\0\0\0\0\0"), true, ""),
        (s5(b"\x05\x00\x00\x03\x03abc\x1f\x90"), true, ""),
        (s5(b"\x05\x00\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), true, ""),
        (s5(b"\x05\x00\x01\x01\0\0\0\0\0\0"), true, ""),
        (s5(b"\x05\x00\x00\x03\x00\x00\x00"), true, "7 bytes are a whole reply; curl waits for 10"),
        (s5(b"\x05\x05\x00\x01\0\0\0\0\0\0"), false, ""),
        (s5(b"\x05\x04"), false, ""),
        (s5(b"\x05\x00\x00\x02\0\0\0\0\0\0"), false, ""),
        (s5(b"\x00\x00\x00\x01\0\0\0\0\0\0"), false, ""),
        ((Ask::Socks5, vec![b"\x05\xff".as_slice()]), false, ""),
        ((Ask::Socks5, vec![b"\x04\x00".as_slice()]), false, ""),
        (s4(b"\x00\x5a\0\0\0\0\0\0"), true, ""),
        (s4(b"\x00\x5b\0\0\0\0\0\0"), false, ""),
        (s4(b"\x00\x5d\0\0\0\0\0\0"), false, ""),
        (s4(b"\x04\x5a\0\0\0\0\0\0"), false, ""),
        (s4(b"\x00\x5a\0\0"), false, ""),
    ];
    let (mut differences, mut unexplained) = (Vec::new(), 0);
    for ((kind, answers), want, reason) in &cases {
        let shown =
            || answers.iter().map(|a| a.escape_ascii().to_string()).collect::<Vec<_>>().join(" then ");
        let (listener, at) = listen();
        let (ours, theirs) = std::thread::scope(|scope| {
            let server = scope.spawn(|| (judge(&listener, kind, answers), judge(&listener, kind, answers)));
            let via = match kind {
                Ask::Connect => Via::Http,
                Ask::Socks5 => V5,
                Ask::Socks4a => Via::Socks(Version::V4a),
            };
            let (mut op, _) = one_selection(vec![through(at, via, "o.example", 80)], ready());
            if let Ok(connected) = op.run(Some(60_000)) {
                let mut stream = TcpStream::from(connected.socket);
                stream.write_all(b"x").unwrap();
            }
            drop(op);
            let mut command = Command::new(&curl);
            command.args(["-q", "-s", "-o", "/dev/null", "--max-time", "60", "--noproxy", ""]);
            match kind {
                Ask::Connect => command.args(["-p", "-x", &format!("http://{at}")]),
                Ask::Socks5 => command.args(["--socks5-hostname", &at.to_string()]),
                Ask::Socks4a => command.args(["--socks4a", &at.to_string()]),
            };
            command.arg("http://o.example:80/").status().unwrap();
            server.join().unwrap()
        });
        assert_eq!(ours, *want, "{}", shown());
        if ours != theirs {
            unexplained += usize::from(reason.is_empty());
            differences.push(format!("{}: byway {ours}, curl {theirs}: {reason}", shown()));
        }
    }
    eprintln!("differences from curl, {} of {}:\n{}", differences.len(), cases.len(), differences.join("\n"));
    assert_eq!(unexplained, 0);
    quiet.check();
}
