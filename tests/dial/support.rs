//! Routes from a list, scripted servers, and a guard that counts descriptors.

use byway::dial::op::PollEntry;
use byway::dial::socks::{Credentials, Host};
use byway::dial::{
    Batch, Hooks, Leg, Next, NoHooks, Operation, Options, Report, RouteSource, Step, Via, Waker,
};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// One route of a test.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) hop: SocketAddr,
    pub(crate) via: Via,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) credentials: Option<(String, String)>,
}

pub(crate) fn direct(hop: SocketAddr) -> Way {
    Way { hop, via: Via::Direct, host: hop.ip().to_string(), port: hop.port(), credentials: None }
}

pub(crate) fn through(hop: SocketAddr, via: Via, host: &str, port: u16) -> Way {
    Way { hop, via, host: host.to_owned(), port, credentials: None }
}

/// What a source delivers, in order.
pub(crate) enum Turn {
    Selection(Vec<Way>),
    Family(byway::dial::race::Family, Vec<Way>, bool),
    /// Nothing until the waker is taken from the place given.
    Wait(Arc<Mutex<Option<Waker>>>),
    Waiting(Arc<Mutex<Option<Waker>>>),
    Failed(byway::Error),
}

/// Routes from a list; what is reported goes into a log.
pub(crate) struct Plain {
    turns: VecDeque<Turn>,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

impl RouteSource for Plain {
    type Route = Way;

    fn poll_next(&mut self, batch: &mut Batch<Way>, waker: &Waker) -> Next {
        match self.turns.pop_front() {
            None => Next::Done,
            Some(Turn::Selection(ways)) => {
                batch.extend(ways);
                Next::Selection
            }
            Some(Turn::Family(family, ways, last)) => {
                batch.extend(ways);
                Next::Family { family, last }
            }
            Some(Turn::Failed(error)) => Next::Failed(error),
            Some(Turn::Wait(place)) => {
                *place.lock().unwrap() = Some(waker.clone());
                self.turns.push_front(Turn::Waiting(place));
                Next::Pending
            }
            Some(Turn::Waiting(place)) if place.lock().unwrap().is_some() => {
                self.turns.push_front(Turn::Waiting(place));
                Next::Pending
            }
            Some(Turn::Waiting(_)) => self.poll_next(batch, waker),
        }
    }

    fn leg<'a>(&self, way: &'a Way) -> Leg<'a> {
        Leg {
            hop: way.hop,
            via: way.via,
            tunnel: true,
            host: Host::parse(&way.host).unwrap_or(Host::Name(&way.host)),
            port: way.port,
            credentials: way.credentials.as_ref().map(|(user, password)| Credentials { user, password }),
        }
    }

    fn report(&mut self, way: &Way, report: Report<'_>) {
        let line = match report {
            Report::Started => "started".to_owned(),
            Report::Connected => "connected".to_owned(),
            Report::Canceled => "canceled".to_owned(),
            Report::Failed { fault, database, selector, .. } => {
                let to = [(database, " database"), (selector, " selector")];
                let to: String = to.iter().filter(|(told, _)| *told).map(|(_, name)| *name).collect();
                format!("failed {fault}{to}")
            }
        };
        self.log.lock().unwrap().push(format!("{} {line}", way.hop.port()));
    }
}

pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) fn operation(turns: Vec<Turn>, options: Options) -> (Operation<Plain>, Log) {
    operation_with(turns, options, NoHooks)
}

pub(crate) fn operation_with(
    turns: Vec<Turn>,
    options: Options,
    hooks: impl Hooks<Way> + Send + 'static,
) -> (Operation<Plain>, Log) {
    let log = Log::default();
    let source = Plain { turns: turns.into(), log: Arc::clone(&log) };
    (Operation::new(source, Arc::new(options), Box::new(hooks)), log)
}

pub(crate) fn one_selection(ways: Vec<Way>, options: Options) -> (Operation<Plain>, Log) {
    operation(vec![Turn::Selection(ways)], options)
}

/// Steps, at a time if one is given, until something has come of it: a connect to this machine may need a moment, too.
pub(crate) fn settle(op: &mut Operation<Plain>, at: Option<u64>) -> byway::Result<Step> {
    let mut ready: Vec<PollEntry> = Vec::new();
    loop {
        let step = match at {
            Some(now) => op.step_at(now, &ready)?,
            None => op.step_with(&ready)?,
        };
        if !matches!(step, Step::Pending) {
            return Ok(step);
        }
        ready.clear();
        op.pollset(|entry| ready.push(entry))?;
        let mut set: Vec<_> = ready
            .iter()
            .map(|entry| libc::pollfd { fd: entry.fd, events: entry.events, revents: 0 })
            .collect();
        byway::sys::socket::poll(&mut set, -1).unwrap();
        for (entry, seen) in ready.iter_mut().zip(&set) {
            entry.revents = seen.revents;
        }
    }
}

pub(crate) fn lines(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(loopback()).unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// A port where nobody listens and nobody else can: bound, not listening, kept until dropped.
pub(crate) fn closed_port() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&loopback().into()).unwrap();
    let at = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, at)
}

/// A listener whose queue is full, so that further SYNs are dropped: a black hole without privileges.
pub(crate) struct BlackHole {
    _listener: socket2::Socket,
    _filler: TcpStream,
    pub(crate) at: SocketAddr,
}

pub(crate) fn black_hole() -> BlackHole {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&loopback().into()).unwrap();
    listener.listen(0).unwrap();
    let at = listener.local_addr().unwrap().as_socket().unwrap();
    let filler = TcpStream::connect(at).unwrap();
    // Connected at its own end; the queue has it once it could be accepted.
    let mut set = [libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    assert_eq!(byway::sys::socket::poll(&mut set, -1).unwrap(), 1);
    BlackHole { _listener: listener, _filler: filler, at }
}

/// One step of a scripted server on one connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Read this many bytes.
    Read(usize),
    /// Read to the end of an HTTP head.
    ReadHead,
    Send(Vec<u8>),
    /// One byte per segment.
    Drip(Vec<u8>),
    /// Close with RST.
    Reset,
    /// Stay until the peer closes.
    Hold,
}

/// Serves the scripts one connection each, then ends. Returns what it read per connection.
pub(crate) fn serve(scripts: Vec<Vec<Act>>) -> (SocketAddr, JoinHandle<Vec<Vec<u8>>>) {
    let (listener, at) = listen();
    (at, std::thread::spawn(move || scripts.iter().map(|script| one_connection(&listener, script)).collect()))
}

pub(crate) fn one_connection(listener: &TcpListener, script: &[Act]) -> Vec<u8> {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    let mut seen = Vec::new();
    for act in script {
        match act {
            Act::Read(n) => {
                let mut buffer = vec![0; *n];
                if stream.read_exact(&mut buffer).is_err() {
                    break;
                }
                seen.extend(buffer);
            }
            Act::ReadHead => {
                let mut byte = [0];
                while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                    seen.push(byte[0]);
                }
            }
            // The peer may have given up: that is its right.
            Act::Send(bytes) => {
                let _ = stream.write_all(bytes);
            }
            Act::Drip(bytes) => {
                for byte in bytes.chunks(1) {
                    if stream.write_all(byte).is_err() {
                        break;
                    }
                }
            }
            Act::Reset => {
                socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
            }
            Act::Hold => {
                let _ = stream.read_to_end(&mut seen);
            }
        }
    }
    seen
}

/// Descriptors of this process now.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Names of our own threads; there must be none.
pub(crate) fn own_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("byway")).collect()
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs alone, and leaves as many descriptors as there were and no thread.
pub(crate) struct Quiet {
    before: usize,
    _alone: MutexGuard<'static, ()>,
}

pub(crate) fn quiet() -> Quiet {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    Quiet { before: descriptors(), _alone: alone }
}

impl Quiet {
    pub(crate) fn check(self) {
        assert_eq!(descriptors(), self.before, "descriptors");
        // A thread that has been joined is listed until the kernel has put it away.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !own_threads().is_empty() && std::time::Instant::now() < patience {
            std::thread::yield_now();
        }
        assert_eq!(own_threads(), Vec::<String>::new());
    }
}

/// Says that a test could not run, by name, so that nothing is skipped in silence.
pub(crate) fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    eprintln!("SKIPPED so far: {}", COUNT.fetch_add(1, Ordering::Relaxed) + 1);
}

/// The path of a program, if it is installed.
pub(crate) fn program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}
