//! The last state known of every topic somebody follows, and who is told when it changes.
//!
//! Watchers are told *that* something changed and look for themselves; a thousand publications while a watcher is at
//! work are one look afterwards.

use super::SourceStatus;
use super::topic::{Topic, Value};
use crate::error::Error;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::fmt;
use std::sync::Weak;
use std::time::{Duration, Instant, SystemTime};

/// Told that something it follows has changed. Called on the source's thread, without a lock of the source.
pub trait Watcher: Send + Sync {
    /// Something changed: a topic's state, or whether the source is connected.
    fn changed(&self);
}

/// A watcher that looks by itself.
#[derive(Debug)]
pub struct Nobody;

impl Watcher for Nobody {
    fn changed(&self) {}
}

/// Number of a watcher on one board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(u64);

/// What a topic came to: a state, or why it cannot be read.
pub type State = Result<Value, Error>;

/// One publication.
#[derive(Debug)]
pub struct Publication {
    /// What it is about.
    pub topic: Topic,
    /// Its state now. An error leaves the last state in force.
    pub state: State,
}

/// See the module.
pub struct Board {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<Topic, Entry>,
    watchers: HashMap<WatchId, Weak<dyn Watcher>>,
    next: u64,
    generation: u64,
    connected: bool,
    /// It was lost, or was looked for everywhere and not found.
    away: bool,
    since: Option<SystemTime>,
    errors: u64,
    last_error: Option<Error>,
    confirmed: Option<Instant>,
    always_fresh: bool,
}

#[derive(Default)]
struct Entry {
    value: Option<Value>,
    error: Option<Error>,
    watchers: Vec<WatchId>,
}

impl Default for Board {
    fn default() -> Self {
        Board { inner: Mutex::default(), changed: Condvar::new() }
    }
}

impl Board {
    /// The board of a source that is never away, such as memory.
    pub fn always_connected() -> Board {
        let board = Board::default();
        {
            let mut inner = board.inner.lock();
            inner.connected = true;
            inner.since = Some(SystemTime::now());
            inner.always_fresh = true;
        }
        board
    }

    /// Puts a watcher on a topic; true when it is the topic's first.
    pub fn add(&self, topic: &Topic, id: Option<WatchId>, watcher: Weak<dyn Watcher>) -> (WatchId, bool) {
        let mut inner = self.inner.lock();
        let id = id.unwrap_or_else(|| {
            inner.next += 1;
            WatchId(inner.next)
        });
        inner.watchers.entry(id).or_insert(watcher);
        let entry = inner.entries.entry(topic.clone()).or_default();
        let first = entry.watchers.is_empty();
        if !entry.watchers.contains(&id) {
            entry.watchers.push(id);
        }
        (id, first)
    }

    /// Takes a watcher off a topic; true when it was the topic's last. Its state is forgotten then.
    pub fn remove(&self, topic: &Topic, id: WatchId) -> bool {
        let mut inner = self.inner.lock();
        let Some(entry) = inner.entries.get_mut(topic) else { return false };
        let before = entry.watchers.len();
        entry.watchers.retain(|other| *other != id);
        let last = entry.watchers.is_empty() && before > 0;
        let gone = if last { inner.entries.remove(topic) } else { None };
        if !inner.entries.values().any(|entry| entry.watchers.contains(&id)) {
            inner.watchers.remove(&id);
        }
        drop(inner);
        drop(gone);
        last
    }

    /// What is known of a topic: nothing yet, a state, or why there is none. A state comes before a later error.
    pub fn look(&self, topic: &Topic) -> Option<State> {
        let inner = self.inner.lock();
        inner.entries.get(topic).and_then(Entry::state)
    }

    /// The complaint about a topic that has not been followed by a good state.
    pub fn complaint(&self, topic: &Topic) -> Option<Error> {
        self.inner.lock().entries.get(topic).and_then(|entry| entry.error.clone())
    }

    /// [`Board::look`], waiting up to `timeout` for something to be known.
    pub fn wait(&self, topic: &Topic, timeout: Duration) -> Option<State> {
        let end = Instant::now().checked_add(timeout);
        let mut inner = self.inner.lock();
        loop {
            if let Some(state) = inner.entries.get(topic).and_then(Entry::state) {
                return Some(state);
            }
            match end {
                Some(end) => {
                    if self.changed.wait_until(&mut inner, end).timed_out() {
                        return inner.entries.get(topic).and_then(Entry::state);
                    }
                }
                None => self.changed.wait(&mut inner),
            }
        }
    }

    /// Publishes what a source has read, as one moment: every watcher concerned is told once, afterwards. Topics that
    /// nobody follows are passed over.
    pub fn publish(&self, publications: impl IntoIterator<Item = Publication>) {
        self.store(publications).tell();
    }

    /// [`Board::publish`] without telling anybody yet: for sources that must keep publications in order under a lock
    /// of their own, which must be free again before watchers run.
    pub fn store(&self, publications: impl IntoIterator<Item = Publication>) -> Told {
        let mut told: Vec<WatchId> = Vec::new();
        let mut dropped = Vec::new();
        let mut inner = self.inner.lock();
        for Publication { topic, state } in publications {
            let Inner { entries, errors, last_error, .. } = &mut *inner;
            let Some(entry) = entries.get_mut(&topic) else { continue };
            let changed = match state {
                Ok(value) => {
                    let healed = entry.error.take().is_some();
                    let same = entry.value.as_ref().is_some_and(|old| old.same(&value));
                    if !same {
                        dropped.push(entry.value.replace(value));
                    }
                    healed || !same
                }
                Err(error) => {
                    let known = entry.error.as_ref() == Some(&error);
                    if !known {
                        *errors += 1;
                        *last_error = Some(error.clone());
                        entry.error = Some(error);
                    }
                    !known
                }
            };
            if changed {
                for id in &entry.watchers {
                    if !told.contains(id) {
                        told.push(*id);
                    }
                }
            }
        }
        if told.is_empty() {
            return Told(Vec::new());
        }
        inner.generation += 1;
        let watchers: Vec<Weak<dyn Watcher>> =
            told.iter().filter_map(|id| inner.watchers.get(id).cloned()).collect();
        drop(inner);
        drop(dropped);
        self.changed.notify_all();
        Told(watchers)
    }

    /// The source was connected or lost. Tells everybody when that changed, or when a new complaint came with it.
    pub fn set_connected(&self, connected: bool, why: Option<Error>) {
        let mut inner = self.inner.lock();
        let new_complaint = why.is_some() && why != inner.last_error;
        if let Some(why) = why {
            inner.errors += 1;
            inner.last_error = Some(why);
        }
        let turned = inner.connected != connected;
        if turned {
            inner.connected = connected;
            inner.away = !connected;
            inner.since = Some(SystemTime::now());
        }
        if connected {
            inner.away = false;
        }
        if connected && turned {
            inner.confirmed = Some(Instant::now());
        }
        if !turned && !new_complaint {
            return;
        }
        let watchers: Vec<Weak<dyn Watcher>> = inner.watchers.values().cloned().collect();
        drop(inner);
        self.changed.notify_all();
        Told(watchers).tell();
    }

    /// The source was looked for everywhere it may be, for the first time or again. Tells everybody the first time.
    pub fn not_found(&self) {
        let mut inner = self.inner.lock();
        if inner.connected || std::mem::replace(&mut inner.away, true) {
            return;
        }
        let watchers: Vec<Weak<dyn Watcher>> = inner.watchers.values().cloned().collect();
        drop(inner);
        Told(watchers).tell();
    }

    /// What the source reads from is not there, and `topics` have never been read. However often it is looked for, that
    /// is one complaint until it is there again.
    pub fn absent(&self, why: &Error, topics: &[Topic]) {
        let mut inner = self.inner.lock();
        let Inner { entries, watchers, connected, away, since, errors, last_error, .. } = &mut *inner;
        let turned = std::mem::replace(connected, false);
        if turned {
            *since = Some(SystemTime::now());
        }
        let begins = !std::mem::replace(away, true);
        if begins || last_error.as_ref() != Some(why) {
            *errors += 1;
            *last_error = Some(why.clone());
        }
        let mut told: Vec<WatchId> = if begins { watchers.keys().copied().collect() } else { Vec::new() };
        for topic in topics {
            let Some(entry) = entries.get_mut(topic) else { continue };
            if entry.error.as_ref() != Some(why) {
                entry.error = Some(why.clone());
                told.extend(
                    entry.watchers.iter().filter(|id| !told.contains(id)).copied().collect::<Vec<_>>(),
                );
            }
        }
        if told.is_empty() {
            return;
        }
        inner.generation += 1;
        let watchers: Vec<Weak<dyn Watcher>> =
            told.iter().filter_map(|id| inner.watchers.get(id).cloned()).collect();
        drop(inner);
        self.changed.notify_all();
        Told(watchers).tell();
    }

    /// The centre has just been heard: what is on the board is what it holds.
    pub fn confirm(&self) {
        self.inner.lock().confirmed = Some(Instant::now());
    }

    /// Topics followed.
    pub fn topics(&self) -> Vec<Topic> {
        self.inner.lock().entries.keys().cloned().collect()
    }

    /// Watchers on the board, for those who count what is left behind.
    pub fn watchers(&self) -> usize {
        self.inner.lock().watchers.len()
    }

    /// How the source stands.
    pub fn status(&self, kind: &'static str) -> SourceStatus {
        let inner = self.inner.lock();
        SourceStatus {
            kind,
            connected: inner.connected,
            away: inner.away,
            since: inner.since,
            generation: inner.generation,
            keys: inner.entries.len(),
            errors: inner.errors,
            last_error: inner.last_error.clone(),
            age: if inner.always_fresh {
                Some(Duration::ZERO)
            } else {
                inner.confirmed.map(|at| at.elapsed())
            },
        }
    }
}

impl Entry {
    fn state(&self) -> Option<State> {
        match (&self.value, &self.error) {
            (Some(value), _) => Some(Ok(value.clone())),
            (None, Some(error)) => Some(Err(error.clone())),
            (None, None) => None,
        }
    }
}

/// Watchers that have something to look at.
#[must_use = "watchers that are not told miss a change"]
pub struct Told(Vec<Weak<dyn Watcher>>);

impl Told {
    /// Tells them.
    pub fn tell(self) {
        for watcher in self.0.iter().filter_map(Weak::upgrade) {
            watcher.changed();
        }
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Told({})", self.0.len())
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner.lock();
        write!(f, "Board({} topics, generation {})", inner.entries.len(), inner.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Watcher for Count {
        fn changed(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn text(topic: &Topic, text: &str) -> Publication {
        Publication { topic: topic.clone(), state: Ok(Value::Text(text.into())) }
    }

    #[test]
    fn removing_one_watcher_twice_leaves_the_other() {
        let (board, topic) = (Board::default(), Topic::rule("k"));
        let (l1, l2) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let weak = |one: &Arc<Count>| -> Weak<dyn Watcher> { Arc::downgrade(&(Arc::clone(one) as _)) };
        let (id1, first) = board.add(&topic, None, weak(&l1));
        let (id2, second) = board.add(&topic, None, weak(&l2));
        assert_eq!((first, second), (true, false));
        assert!(!board.remove(&topic, id1) && !board.remove(&topic, id1));
        board.publish([text(&topic, "x")]);
        assert_eq!((l1.0.load(Ordering::SeqCst), l2.0.load(Ordering::SeqCst)), (0, 1));
        assert!(board.remove(&topic, id2));
        assert_eq!((board.topics().len(), board.watchers()), (0, 0));
    }

    #[test]
    fn a_watcher_is_told_once_per_moment_and_only_of_changes() {
        let (board, a, b) = (Board::default(), Topic::rule("a"), Topic::rule("b"));
        let watcher = Arc::new(Count::default());
        let weak: Weak<dyn Watcher> = Arc::downgrade(&(Arc::clone(&watcher) as _));
        let (id, _) = board.add(&a, None, weak.clone());
        board.add(&b, Some(id), weak);
        board.publish([text(&a, "1"), text(&b, "1"), text(&Topic::rule("nobody"), "1")]);
        board.publish([text(&a, "1"), text(&b, "1")]);
        assert_eq!((watcher.0.load(Ordering::SeqCst), board.status("x").generation), (1, 1));
    }

    #[test]
    fn an_error_leaves_the_last_state_in_force() {
        let (board, topic) = (Board::default(), Topic::rule("k"));
        board.add(&topic, None, Weak::<Nobody>::new());
        let failure = Error::new(crate::error::Status::E_SOURCE, "no");
        assert!(board.look(&topic).is_none());
        board.publish([Publication { topic: topic.clone(), state: Err(failure.clone()) }]);
        assert_eq!(board.look(&topic), Some(Err(failure.clone())));
        board.publish([text(&topic, "good")]);
        board.publish([Publication { topic: topic.clone(), state: Err(failure.clone()) }]);
        assert_eq!(board.look(&topic), Some(Ok(Value::Text("good".into()))));
        assert_eq!(board.complaint(&topic), Some(failure));
        board.publish([text(&topic, "good")]);
        assert_eq!(board.complaint(&topic), None);
        assert_eq!(board.status("x").errors, 2);
    }
}
