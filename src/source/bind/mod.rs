//! A chain that follows a source: its providers, overrides, static routers, instances and rules, as one world.
//!
//! Nothing takes effect before all of it is known: a list whose rules have not been read waits for them, so that no
//! call sees providers of one moment with rules of another. Whatever happens while a world is being made is one look
//! at the board afterwards. While the source is away the last world stays.

mod feed;
mod status;
mod target;

pub use target::{Owners, Refusal, Target, World};

use super::board::{WatchId, Watcher};
use super::topic::Topic;
use super::{Source, SourceStatus};
use crate::error::{Error, Result, Status};
use crate::sys::thread;
use feed::{Feed, Step};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// What a list that has become empty does. Numbers are fixed for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum EmptyProtection {
    /// A list whose place in the centre is gone is kept: nobody deletes a service's node in normal life, a replaced or
    /// wiped server does. A place that is there and empty empties the list.
    #[default]
    Vanished = 0,
    /// Both are kept, as Dubbo's `enable-empty-protection=true`. Only `empty://` empties.
    On = 1,
    /// Both empty the list, as Dubbo without protection.
    Off = 2,
}

impl EmptyProtection {
    /// From a host's number.
    pub fn from_number(number: i32) -> Option<EmptyProtection> {
        [EmptyProtection::Vanished, EmptyProtection::On, EmptyProtection::Off]
            .into_iter()
            .find(|one| *one as i32 == number)
    }
}

/// Where providers are looked for. Numbers are fixed for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum Discovery {
    /// Under the interface, and while nobody is there, by application.
    #[default]
    Auto = 0,
    /// Under the interface only.
    Interface = 1,
    /// By application only.
    Application = 2,
}

impl Discovery {
    /// From a host's number.
    pub fn from_number(number: i32) -> Option<Discovery> {
        [Discovery::Auto, Discovery::Interface, Discovery::Application]
            .into_iter()
            .find(|one| *one as i32 == number)
    }
}

/// What happened to a bound chain or its source.
#[derive(Clone, Debug)]
pub enum BindEvent {
    /// The first world is in force.
    Ready,
    /// The source is kept up to date (again).
    Connected,
    /// The source is away, lost or not found at the first try; the last world stays.
    Disconnected(Option<Error>),
    /// Another world is in force. Counts them.
    Changed(u64),
    /// A text or entry was refused; what was in force stays. The error's subject names it.
    Refused(Error),
    /// The list has become empty in the centre and is kept.
    Kept,
}

/// Told what happens, on the source's thread, without a lock. Must not block.
pub type EventSink = Arc<dyn Fn(&BindEvent) + Send + Sync>;

/// How a chain is bound.
#[derive(Clone, Default)]
pub struct BindOptions {
    /// What an empty list does.
    pub empty_protection: EmptyProtection,
    /// Where providers are looked for.
    pub discovery: Discovery,
    /// Follow the rules only: the host sets the provider list itself.
    pub rules_only: bool,
    /// Told what happens.
    pub events: Option<EventSink>,
}

impl fmt::Debug for BindOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BindOptions")
            .field("empty_protection", &self.empty_protection)
            .field("discovery", &self.discovery)
            .field("rules_only", &self.rules_only)
            .finish_non_exhaustive()
    }
}

/// How a binding stands.
#[derive(Clone, Debug)]
pub struct BindStatus {
    /// How its source stands.
    pub source: SourceStatus,
    /// The first world is in force.
    pub ready: bool,
    /// Worlds put in force so far.
    pub worlds: u64,
    /// Topics this chain follows, sorted.
    pub topics: Vec<Topic>,
    /// Providers in force.
    pub providers: usize,
    /// The list is kept although the centre has none.
    pub kept: bool,
    /// What was refused last, with what stands in its place.
    pub last_refusal: Option<Error>,
    /// Since the world in force was made.
    pub age: Option<Duration>,
}

/// Keeps a chain bound; dropping it unbinds. Any thread.
pub struct Binding {
    bound: Arc<Bound>,
}

struct Bound {
    source: Arc<dyn Source>,
    target: Arc<dyn Target>,
    options: BindOptions,
    id: AtomicU64,
    state: Mutex<State>,
    /// Something happened that has not been looked at.
    dirty: AtomicBool,
    /// The thread that is making a world.
    maker: AtomicUsize,
    /// What hosts ask for, beside the state so that they never wait for a world being made.
    shown: Mutex<Shown>,
    turned: Condvar,
    gone: AtomicBool,
    _live: super::Live,
}

struct State {
    feed: Feed,
    id: Option<WatchId>,
    followed: BTreeSet<Topic>,
    /// What was told last: it is there, or it is away.
    connected: Option<bool>,
}

#[derive(Default)]
struct Shown {
    ready: bool,
    worlds: u64,
    topics: Vec<Topic>,
    providers: usize,
    kept: bool,
    last_refusal: Option<Error>,
    made: Option<Instant>,
}

impl Binding {
    /// Binds a target to a source and makes the first world if everything is known already. A source that is away is
    /// no error: the world comes when it does.
    pub fn new(source: Arc<dyn Source>, target: Arc<dyn Target>, options: BindOptions) -> Binding {
        let consumer = Arc::new(target.consumer().clone());
        let feed = Feed::new(Arc::clone(&consumer), target.dialect(), &options);
        let bound = Arc::new(Bound {
            source,
            target,
            options,
            id: AtomicU64::new(0),
            state: Mutex::new(State { feed, id: None, followed: BTreeSet::new(), connected: None }),
            dirty: AtomicBool::new(true),
            maker: AtomicUsize::new(0),
            shown: Mutex::default(),
            turned: Condvar::new(),
            gone: AtomicBool::new(false),
            _live: super::Live::new(),
        });
        bound.id.store(bound.target.owners().map_or(0, Owners::next), Ordering::Release);
        bound.look();
        Binding { bound }
    }

    /// Waits for the first world.
    ///
    /// # Errors
    /// `E_TIMEOUT` with what the source complains about as its cause. The binding stays and goes on.
    pub fn wait_ready(&self, timeout: Duration) -> Result<()> {
        let end = Instant::now().checked_add(timeout);
        let mut shown = self.bound.shown.lock();
        while !shown.ready {
            let over = match end {
                Some(end) => self.bound.turned.wait_until(&mut shown, end).timed_out(),
                None => {
                    self.bound.turned.wait(&mut shown);
                    false
                }
            };
            if over && !shown.ready {
                drop(shown);
                let status = self.bound.source.status();
                let message = format!("the {} source gave no first state in time", status.kind);
                return Err(Error::new(Status::E_TIMEOUT, message)
                    .subject(self.bound.target.consumer().interface())
                    .source(crate::error::Source::Engine)
                    .causes(status.last_error));
            }
        }
        Ok(())
    }

    /// Looks again: for hosts that changed the chain's routers, and with them the keys it wants.
    pub fn refresh(&self) {
        self.bound.changed();
    }

    /// The source it follows.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.bound.source
    }

    /// How it stands. Never waits.
    pub fn status(&self) -> BindStatus {
        let source = self.bound.source.status();
        let shown = self.bound.shown.lock();
        BindStatus {
            source,
            ready: shown.ready,
            worlds: shown.worlds,
            topics: shown.topics.clone(),
            providers: shown.providers,
            kept: shown.kept,
            last_refusal: shown.last_refusal.clone(),
            age: shown.made.map(|at| at.elapsed()),
        }
    }

    /// Unbinds as if it had never been, as long as no world of it is in force; afterwards it gives itself back.
    ///
    /// # Errors
    /// The binding, which has its first world.
    pub fn abandon(self) -> Result<(), Binding> {
        if self.bound.abandon() { Ok(()) } else { Err(self) }
    }

    /// Unbinds, and takes back what the source gave: rules no other binding holds, overrides, static routers; with
    /// `keep_list` the providers stay in the chain, for a host that binds another source or goes on by itself.
    pub fn unbind(self, keep_list: bool) {
        self.bound.leave(keep_list);
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        self.bound.leave(false);
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Binding({} to {})", self.bound.target.consumer().interface(), self.bound.source.kind())
    }
}

impl Watcher for Bound {
    fn changed(&self) {
        self.dirty.store(true, Ordering::SeqCst);
        // What this thread causes while it makes a world is looked at when the world is made.
        if self.maker.load(Ordering::SeqCst) == thread::token() {
            return;
        }
        self.work();
    }
}

impl Bound {
    fn look(self: &Arc<Self>) {
        let weak: Weak<dyn Watcher> = Arc::downgrade(&(Arc::clone(self) as Arc<dyn Watcher>));
        self.state.lock().feed.watcher = Some(weak);
        self.work();
    }

    /// Makes worlds until nothing is left to be looked at. A second thread waits, and finds its work done.
    fn work(&self) {
        let mut events = Vec::new();
        {
            let mut state = self.state.lock();
            self.maker.store(thread::token(), Ordering::SeqCst);
            while self.dirty.swap(false, Ordering::SeqCst) && !self.gone.load(Ordering::SeqCst) {
                self.make(&mut state, &mut events);
            }
            self.maker.store(0, Ordering::SeqCst);
        }
        if let Some(sink) = &self.options.events {
            for event in &events {
                sink(event);
            }
        }
    }

    fn make(&self, state: &mut State, events: &mut Vec<BindEvent>) {
        let source = self.source.status();
        if source.connected && state.connected != Some(true) {
            state.connected = Some(true);
            events.push(BindEvent::Connected);
        } else if source.away && state.connected != Some(false) {
            state.connected = Some(false);
            events.push(BindEvent::Disconnected(source.last_error));
        }
        let board = Arc::clone(self.source.board());
        loop {
            let step = state.feed.step(&board, &state.followed, &*self.target);
            let errors = state.feed.take_refusals();
            for error in errors {
                self.shown.lock().last_refusal = Some(error.clone());
                events.push(BindEvent::Refused(error));
            }
            match step {
                Step::Follow(topics) => {
                    self.follow(state, topics);
                    // Memory and other sources that answer at once have published by now.
                }
                Step::Wait => return,
                Step::Nothing => break,
                Step::World(world) => {
                    let id = self.id.load(Ordering::Acquire);
                    let kept = world.kept;
                    let refusals = self.target.apply(world, id);
                    let mut shown = self.shown.lock();
                    for Refusal { key, error } in refusals {
                        let error = if error.about().is_empty() { error.subject(&*key) } else { error };
                        shown.last_refusal = Some(error.clone());
                        events.push(BindEvent::Refused(error));
                    }
                    if !shown.ready {
                        shown.ready = true;
                        events.push(BindEvent::Ready);
                    }
                    if kept && !shown.kept {
                        events.push(BindEvent::Kept);
                    }
                    shown.kept = kept;
                    shown.worlds += 1;
                    shown.providers = state.feed.providers();
                    shown.made = Some(Instant::now());
                    events.push(BindEvent::Changed(shown.worlds));
                    drop(shown);
                    self.turned.notify_all();
                }
            }
        }
        self.forget(state);
    }

    fn follow(&self, state: &mut State, topics: Vec<Topic>) {
        let Some(weak) = state.feed.watcher.clone() else { return };
        for topic in topics {
            if state.followed.insert(topic.clone()) {
                state.id = Some(self.source.watch(&topic, state.id, weak.clone()));
            }
        }
        self.shown.lock().topics = state.followed.iter().cloned().collect();
    }

    /// Stops following what the world in force no longer needs.
    fn forget(&self, state: &mut State) {
        let Some(id) = state.id else { return };
        let wanted = state.feed.wanted();
        let idle: Vec<Topic> =
            state.followed.iter().filter(|topic| !wanted.contains(*topic)).cloned().collect();
        if idle.is_empty() {
            return;
        }
        for topic in idle {
            state.followed.remove(&topic);
            self.source.unwatch(&topic, id);
        }
        self.shown.lock().topics = state.followed.iter().cloned().collect();
    }

    /// False when a world is in force. A chain that has none of this source's has nothing to give back.
    fn abandon(&self) -> bool {
        let mut state = self.state.lock();
        if self.shown.lock().ready {
            return false;
        }
        self.gone.store(true, Ordering::SeqCst);
        let followed = std::mem::take(&mut state.followed);
        if let Some(id) = state.id {
            for topic in &followed {
                self.source.unwatch(topic, id);
            }
        }
        true
    }

    fn leave(&self, keep_list: bool) {
        if self.gone.swap(true, Ordering::SeqCst) {
            return;
        }
        let inside = self.maker.load(Ordering::SeqCst) == thread::token();
        if inside {
            // From a callback of its own world: the lock is held by this very thread. Nothing more is made; what is
            // followed goes with the last reference.
            return;
        }
        let mut state = self.state.lock();
        let followed = std::mem::take(&mut state.followed);
        if let Some(id) = state.id {
            for topic in &followed {
                self.source.unwatch(topic, id);
            }
        }
        self.target.withdraw(self.id.load(Ordering::Acquire), keep_list);
        self.shown.lock().topics.clear();
        self.turned.notify_all();
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if let Some(id) = state.id {
            for topic in std::mem::take(&mut state.followed) {
                self.source.unwatch(&topic, id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
