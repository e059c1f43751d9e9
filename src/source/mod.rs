//! Where rules and provider lists come from: memory, files, ZooKeeper, and whatever else implements [`Source`].
//!
//! A source keeps a [`board`]: for every [`topic::Topic`] somebody follows, the last state known. It publishes states,
//! never changes, so nothing is lost when notifications are: whoever looks at the board sees what holds now. A
//! [`bind::Binding`] follows what one chain needs (its rules, its providers, overrides, static routers, instances of
//! applications) and hands them to the chain as one world.
//!
//! | file | subject |
//! |---|---|
//! | [`topic`], [`board`] | what can be followed; the last state known of it, and who is told |
//! | [`memory`], [`mod@file`], `zookeeper` | the sources |
//! | [`providers`], [`merge`], [`configurator`], [`instances`] | Dubbo's layout: provider URLs, consumer parameters, overrides, application-level discovery |
//! | [`bind`] | a chain that follows a source |
//! | [`backoff`] | how long to wait before trying again |

pub mod backoff;
pub mod bind;
pub mod board;
pub mod configurator;
pub mod file;
pub mod instances;
pub mod list;
pub mod memory;
pub mod merge;
pub mod providers;
pub mod topic;
mod worker;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

use crate::error::{Error, Result, Status};
use board::{Board, WatchId, Watcher};
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};
use topic::{Topic, Value};

/// A centre that rules and provider lists come from. Implementations publish on their [`Board`], from any thread,
/// and never hold a lock while they do.
pub trait Source: Send + Sync + fmt::Debug {
    /// What it is, for people: `memory`, `file`, `zookeeper`.
    fn kind(&self) -> &'static str;

    /// Where it publishes.
    fn board(&self) -> &Arc<Board>;

    /// Somebody begins to follow a topic that nobody followed. Its state must be published, now or later, and again
    /// whenever it changes.
    fn follow(&self, topic: &Topic);

    /// Nobody follows the topic any more.
    fn unfollow(&self, topic: &Topic);

    /// Ends it: no thread, no descriptor, no publication afterwards. The board keeps the last states. Waits up to
    /// `timeout` for its thread; false when that thread is stuck in the system and was let go.
    fn stop(&self, timeout: Duration) -> bool;

    /// Follows a topic on behalf of a watcher. Several topics of one watcher share its number: `None` gets one.
    fn watch(&self, topic: &Topic, id: Option<WatchId>, watcher: Weak<dyn Watcher>) -> WatchId {
        let (id, first) = self.board().add(topic, id, watcher);
        if first {
            self.follow(topic);
        }
        id
    }

    /// Takes [`Source::watch`] back; does nothing when it was taken back before.
    fn unwatch(&self, topic: &Topic, id: WatchId) {
        if self.board().remove(topic, id) {
            self.unfollow(topic);
        }
    }

    /// The state of a topic, waited for if need be.
    ///
    /// # Errors
    /// `E_TIMEOUT` when it does not come in time, with what the source last complained about as its cause; else why
    /// the source cannot read it.
    fn get(&self, topic: &Topic, timeout: Duration) -> Result<Value> {
        self.get_while(topic, timeout, &|| true)
    }

    /// The same, no longer than `goes_on` says so; it is asked several times a second.
    ///
    /// # Errors
    /// As [`Source::get`].
    fn get_while(&self, topic: &Topic, timeout: Duration, goes_on: &dyn Fn() -> bool) -> Result<Value> {
        let nobody: Weak<board::Nobody> = Weak::new();
        let id = self.watch(topic, None, nobody);
        let end = Instant::now().checked_add(timeout);
        let result = loop {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            let found = self.board().wait(topic, left.min(Duration::from_millis(50)));
            if found.is_some() || left.is_zero() || !goes_on() {
                break found;
            }
        };
        self.unwatch(topic, id);
        match result {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(error),
            None => {
                let message = format!("the {} source gave no state of {topic} in time", self.kind());
                let error = Error::new(Status::E_TIMEOUT, message).subject(topic.to_string());
                Err(error.causes(self.status().last_error))
            }
        }
    }

    /// How it stands.
    fn status(&self) -> SourceStatus {
        self.board().status(self.kind())
    }
}

/// Bindings alive in this process, for those who count what is left behind.
pub fn bindings_alive() -> i64 {
    ALIVE.load(Ordering::SeqCst)
}

static ALIVE: AtomicI64 = AtomicI64::new(0);

/// Counts a binding while it lives.
struct Live(());

impl Live {
    fn new() -> Live {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Live(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a source stands.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// What it is: `memory`, `file`, `zookeeper`.
    pub kind: &'static str,
    /// What is on the board is kept up to date at the moment.
    pub connected: bool,
    /// It was lost, or was looked for everywhere it may be and not found: what waits for it hears of that.
    pub away: bool,
    /// When it was connected, or was lost; `None` before the first connection.
    pub since: Option<SystemTime>,
    /// Counts the publications that changed something.
    pub generation: u64,
    /// Topics followed.
    pub keys: usize,
    /// Complaints so far.
    pub errors: u64,
    /// The last complaint; it stays when things are right again.
    pub last_error: Option<Error>,
    /// Time since the board was last known to be what the centre holds; `None` before the first contact. Zero for
    /// memory.
    pub age: Option<Duration>,
}
