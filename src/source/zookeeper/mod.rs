//! ZooKeeper as a source: Dubbo's registry and config centre.
//!
//! The client is byway's own, because the maintained crates bring an async runtime with threads that are not ours to
//! name or end; what following a tree needs of the protocol is small ([`wire`]). One thread, `byway-zookeeper`, does
//! everything: it connects to the servers in turn, with waits that grow to a bound and never end, takes its session
//! up again or begins another, reads everything again, and publishes when all of it is known (`tree.rs`).

mod address;
mod connection;
mod names;
mod tree;
pub mod wire;

pub use address::{Credentials, ZooKeeperOptions};

use super::Source;
use super::backoff::Backoff;
use super::board::{Board, Publication};
use super::topic::Topic;
use super::worker::{STOP, TOPICS, Worker};
use crate::error::{Error, Result, Status};
use crate::sys::socket::{PollFd, poll};
use crate::sys::wake::Wake;
use connection::{Connection, Woken, failure};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tree::Tree;
use wire::{Reply, Request};

/// While reads are under way, what is known is published after this at the latest.
const PUBLISH_AT_LATEST: Duration = Duration::from_millis(50);
/// Of changes that come one after another, one publication in this time; a single change does not wait.
const PUBLISH_EVERY: Duration = Duration::from_millis(10);
/// Shortest and longest session timeout asked for.
const SESSION: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));

/// See the module. Any thread.
pub struct ZooKeeperSource {
    inner: Arc<Inner>,
}

struct Inner {
    board: Arc<Board>,
    options: ZooKeeperOptions,
    topics: Mutex<BTreeSet<Topic>>,
    worker: Worker,
}

impl ZooKeeperSource {
    /// An ensemble. Nobody connects before somebody follows a topic.
    ///
    /// # Errors
    /// `E_ARGUMENT`: no server.
    pub fn new(options: ZooKeeperOptions) -> Result<Arc<ZooKeeperSource>> {
        if options.servers.is_empty() {
            return Err(Error::new(Status::E_ARGUMENT, "no server is named").subject("servers"));
        }
        let (board, topics, worker) = (Arc::default(), Mutex::default(), Worker::default());
        Ok(Arc::new(ZooKeeperSource { inner: Arc::new(Inner { board, options, topics, worker }) }))
    }
}

impl Source for ZooKeeperSource {
    fn kind(&self) -> &'static str {
        "zookeeper"
    }

    fn board(&self) -> &Arc<Board> {
        &self.inner.board
    }

    fn follow(&self, topic: &Topic) {
        self.inner.topics.lock().insert(topic.clone());
        let inner = Arc::clone(&self.inner);
        if let Err(error) = self.inner.worker.start("byway-zookeeper", move |wake| inner.run(wake)) {
            self.inner.board.set_connected(false, Some(error.clone()));
            self.inner.board.publish([Publication { topic: topic.clone(), state: Err(error) }]);
        }
        self.inner.worker.raise(TOPICS);
    }

    fn unfollow(&self, topic: &Topic) {
        self.inner.topics.lock().remove(topic);
        self.inner.worker.raise(TOPICS);
    }

    fn stop(&self, timeout: Duration) -> bool {
        self.inner.worker.stop(timeout)
    }
}

impl Drop for ZooKeeperSource {
    fn drop(&mut self) {
        self.inner.worker.stop(Duration::ZERO);
    }
}

impl fmt::Debug for ZooKeeperSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = &self.inner.options.servers;
        write!(f, "ZooKeeperSource({servers:?}, {:?})", self.inner.options.chroot)
    }
}

/// A session with the ensemble; 0 before the first.
#[derive(Default)]
struct Session {
    id: i64,
    password: Vec<u8>,
    timeout: Duration,
}

/// How a connection ended.
enum End {
    /// The source is to end.
    Stop,
    /// The server has no such session any more.
    Expired,
    /// It failed.
    Failed {
        why: Error,
        /// Everything had been read: the server works.
        worked: bool,
        /// The server hung up on the first request, as it does on clients that have seen more than it has.
        refused: bool,
    },
}

impl Inner {
    fn run(&self, wake: &Wake) {
        let work = std::panic::AssertUnwindSafe(|| self.keep_connected(wake));
        if std::panic::catch_unwind(work).is_err() {
            let error = Error::new(
                Status::E_PANIC,
                "the ZooKeeper thread has panicked; nothing is followed any more",
            );
            self.board.set_connected(false, Some(error.source(crate::error::Source::Panic)));
        } else {
            self.board.set_connected(false, None);
        }
    }

    fn keep_connected(&self, wake: &Wake) {
        let options = &self.options;
        let seed = RandomState::new().hash_one(std::process::id());
        let mut servers = options.servers.clone();
        shuffle(&mut servers, seed);
        let mut tree = Tree::new(&options.chroot, &options.root, &options.services);
        let mut session = Session::default();
        let mut backoff = Backoff::new(options.retry_first, options.retry_longest, seed);
        let mut turn = 0usize;
        let (mut failed, mut refusals) = (0usize, 0usize);
        loop {
            let Some(server) = servers.get(turn % servers.len().max(1)) else { return };
            match self.visit(server, &mut session, &mut tree, wake) {
                End::Stop => return,
                End::Expired => {
                    session = Session::default();
                    let error =
                        Error::new(Status::E_SOURCE, "the session has expired; everything is read again")
                            .source(crate::error::Source::Socket);
                    self.board.set_connected(false, Some(error));
                    failed = 0;
                    continue;
                }
                End::Failed { why, worked, refused } => {
                    self.board.set_connected(false, Some(why));
                    if worked {
                        backoff.reset();
                        (failed, refusals) = (0, 0);
                    }
                    failed += 1;
                    refusals = if refused { refusals + 1 } else { 0 };
                    if refusals >= servers.len() {
                        // Every server hangs up on what we have seen: the ensemble is another one. As a stranger we
                        // are let in, and the tree knows that it went back in time.
                        session = Session::default();
                    }
                }
            }
            if failed >= servers.len() {
                self.board.not_found();
            }
            turn = turn.wrapping_add(1);
            // Every server gets its try before the first wait, unless one that worked was lost.
            if failed >= servers.len() && !self.pause(wake, backoff.next_wait()) {
                return;
            }
        }
    }

    /// Sleeps; false when it is to end.
    fn pause(&self, wake: &Wake, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if wake.flags() & STOP != 0 {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            let mut set = [PollFd { fd: wake.fd().unwrap_or(-1), events: 1, revents: 0 }];
            let millis = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
            if poll(&mut set, millis).is_err() {
                std::thread::sleep(left.min(Duration::from_millis(100)));
            }
            // Topics are taken when the connection stands.
            wake.take(0);
        }
    }

    /// One connection from beginning to end.
    fn visit(&self, server: &(String, u16), session: &mut Session, tree: &mut Tree, wake: &Wake) -> End {
        let options = &self.options;
        let failed = |why: Error| End::Failed { why, worked: false, refused: false };
        let mut connection = match Connection::open(server, options.connect_timeout, wake, STOP) {
            Ok(Some(connection)) => connection,
            Ok(None) => return End::Stop,
            Err(why) => return failed(why),
        };
        let asked = options.session_timeout.clamp(SESSION.0, SESSION.1);
        let asked = i32::try_from(asked.as_millis()).unwrap_or(i32::MAX);
        // A stranger has seen nothing.
        let seen = if session.id == 0 { 0 } else { tree.zxid };
        let password = if session.id == 0 { vec![0; 16] } else { session.password.clone() };
        let hello = Request::connect(seen, asked, session.id, &password);
        let connected = match connection.handshake(&hello, options.connect_timeout, wake, STOP) {
            Ok(Some(connected)) => connected,
            Ok(None) => return End::Stop,
            Err(why) => {
                let refused = session.id != 0 && connection.was_closed();
                return End::Failed { why, worked: false, refused };
            }
        };
        if connected.timeout_ms <= 0 || connected.session == 0 {
            return match session.id {
                0 => failed(failure(connection.name(), "the server gives no session", None)),
                _ => End::Expired,
            };
        }
        let new_session = connected.session != session.id;
        *session = Session {
            id: connected.session,
            password: connected.password,
            timeout: Duration::from_millis(u64::try_from(connected.timeout_ms).unwrap_or(0)),
        };
        if let Some(credentials) = &options.credentials {
            connection.queue(&Request::auth("digest", credentials.bytes()));
        }
        tree.follow(&self.topics.lock().clone());
        tree.restart(new_session);
        let mut worked = false;
        match self.converse(&mut connection, session, tree, wake, &mut worked) {
            Ok(()) => {
                connection.close();
                End::Stop
            }
            Err(why) => End::Failed { why, worked, refused: false },
        }
    }

    /// Requests and answers until the connection fails; `Ok`: the source is to end.
    fn converse(
        &self,
        connection: &mut Connection,
        session: &Session,
        tree: &mut Tree,
        wake: &Wake,
        worked: &mut bool,
    ) -> Result<()> {
        let ping_every = session.timeout / 3;
        let silence = session.timeout * 2 / 3;
        let mut pace = Pace::default();
        loop {
            let flags = wake.take(TOPICS);
            if wake.flags() & STOP != 0 {
                return Ok(());
            }
            if flags & TOPICS != 0 {
                let topics = self.topics.lock().clone();
                tree.follow(&topics);
            }
            let now = Instant::now();
            let retry = tree.retry(now);
            while let Some(request) = tree.next_request() {
                connection.queue(&request);
            }
            self.publish(tree, &mut pace, worked);
            if now.duration_since(connection.sent_at) >= ping_every {
                connection.queue(&Request::new(wire::XID_PING, wire::Operation::Ping).finish());
                connection.sent_at = now;
            }
            connection.flush()?;
            let quiet = now.duration_since(connection.heard_at);
            if quiet >= silence {
                return Err(failure(connection.name(), "the server has fallen silent", None));
            }
            let mut wait =
                (silence - quiet).min(ping_every.saturating_sub(now.duration_since(connection.sent_at)));
            wait = retry.map_or(wait, |retry| wait.min(retry));
            if let Some(since) = pace.news_since {
                let last =
                    pace.published_at.map_or(Duration::ZERO, |at| PUBLISH_EVERY.saturating_sub(at.elapsed()));
                let due =
                    if tree.is_settled() { last } else { PUBLISH_AT_LATEST.saturating_sub(since.elapsed()) };
                wait = wait.min(due.max(Duration::from_millis(1)));
            }
            if connection.wait(wake, wait)? == Woken::Socket && connection.receive()? {
                self.read(connection, tree)?;
                self.board.confirm();
            }
        }
    }

    /// Takes every complete frame.
    fn read(&self, connection: &mut Connection, tree: &mut Tree) -> Result<()> {
        let mut answers: Vec<Vec<u8>> = Vec::new();
        let name = connection.name().to_owned();
        while let Some(frame) = connection.frame()? {
            let (reply, mut reader) = Reply::read(frame)?;
            match reply.xid {
                wire::XID_PING => {}
                wire::XID_AUTH if reply.error == wire::OK => {}
                wire::XID_AUTH => return Err(failure(&name, "the credentials were refused", None)),
                wire::XID_EVENT => tree.event(wire::event_path(&mut reader)?),
                _ => answers.extend(tree.reply(reply, reader)?),
            }
        }
        for answer in answers {
            connection.queue(&answer);
        }
        Ok(())
    }

    /// Publishes when everything asked for is known, or when it has taken too long; after a connection only then.
    fn publish(&self, tree: &mut Tree, pace: &mut Pace, worked: &mut bool) {
        let settled = tree.is_settled();
        let late = pace.news_since.is_some_and(|since| since.elapsed() >= PUBLISH_AT_LATEST) && *worked;
        let mut complaint = None;
        if settled {
            complaint = tree.finish_rereading();
        }
        let due = !*worked || pace.published_at.is_none_or(|at| at.elapsed() >= PUBLISH_EVERY);
        if due && (settled || late) && tree.has_news() {
            let publications = tree.publications();
            self.board.publish(publications);
            pace.published_at = Some(Instant::now());
        }
        pace.news_since =
            if tree.has_news() { pace.news_since.or_else(|| Some(Instant::now())) } else { None };
        if settled && !tree.has_news() {
            *worked = true;
            // A server without the tree answers well and keeps nothing up to date.
            self.board.set_connected(!tree.is_bereft(), complaint);
        } else if complaint.is_some() {
            self.board.set_connected(false, complaint);
        }
    }
}

/// When something was published, and since when something waits for it.
#[derive(Default)]
struct Pace {
    published_at: Option<Instant>,
    news_since: Option<Instant>,
}

fn shuffle(servers: &mut [(String, u16)], seed: u64) {
    let mut state = seed | 1;
    for at in (1..servers.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        servers.swap(at, (state % (at as u64 + 1)) as usize);
    }
}
