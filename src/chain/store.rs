//! Rules by key. They live here whether or not a chain wants them; chains take what they need and are told when it
//! changes.
//!
//! A text is read completely before anything changes. What a text that cannot be used does to the rule in force is
//! the rule language's decision ([`RuleState`]); by default the last good rule stays and the status has the error.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::program::Rule;
use crate::error::{Error, Result, Status};

/// A rule language: what the keys with one suffix hold.
pub trait Language: Send + Sync {
    /// What the keys end with, for example `.condition-router`.
    fn suffix(&self) -> &str;

    /// The state of one key under one dialect, before any text.
    fn open(&self, dialect: u8) -> Box<dyn RuleState>;
}

/// One key's rule through its updates, under one dialect.
pub trait RuleState: Send {
    /// The key was added or its text changed. An error says why the text was refused.
    fn set(&mut self, text: &str) -> Result<()>;

    /// The key was removed.
    fn remove(&mut self);

    /// The rule in force; it may be one that does nothing.
    fn active(&self) -> Option<Arc<dyn Rule>>;
}

/// Told about changes of rules it may want.
pub(crate) trait Subscriber: Send + Sync {
    /// The rule of a key has changed.
    fn rule_changed(&self, key: &str);
}

/// What happened to a rule.
#[derive(Clone, Debug)]
pub struct RuleEvent {
    /// Its key.
    pub key: Arc<str>,
    /// Counts the texts this key was given.
    pub revision: u64,
    /// Why the text was refused; `None`: it was taken.
    pub error: Option<Error>,
    /// The key was removed.
    pub removed: bool,
}

/// One key, for the status.
#[derive(Clone, Debug)]
pub struct RuleStatus {
    /// The key.
    pub key: Arc<str>,
    /// Counts the texts this key was given.
    pub revision: u64,
    /// Version of the rule in force; empty when it names none or there is no rule.
    pub version: String,
    /// A rule is there and does something.
    pub in_force: bool,
    /// Why the last text was refused; the rule in force, if any, is an earlier one.
    pub error: Option<Error>,
}

type Observer = Box<dyn Fn(&RuleEvent) + Send + Sync>;

/// Rules by key. Shared by [`Arc`]; any thread.
pub struct RuleStore {
    languages: Vec<Arc<dyn Language>>,
    dialect: u8,
    keys: Mutex<BTreeMap<Arc<str>, Entry>>,
    subscribers: Mutex<Vec<Weak<dyn Subscriber>>>,
    observer: Mutex<Option<Arc<Observer>>>,
}

struct Entry {
    text: Option<Arc<str>>,
    revision: u64,
    /// One per dialect in use; the store's own first.
    states: Vec<(u8, Box<dyn RuleState>)>,
    error: Option<Error>,
}

impl RuleStore {
    /// A store for these languages. Texts are read under `dialect` at once and under others when a chain needs it.
    pub fn new(languages: Vec<Arc<dyn Language>>, dialect: u8) -> Arc<RuleStore> {
        Arc::new(RuleStore {
            languages,
            dialect,
            keys: Mutex::default(),
            subscribers: Mutex::default(),
            observer: Mutex::default(),
        })
    }

    /// Called for every event, on the thread that caused it, after the change has taken effect, without a lock.
    pub fn observe(&self, observer: impl Fn(&RuleEvent) + Send + Sync + 'static) {
        *self.observer.lock() = Some(Arc::new(Box::new(observer)));
    }

    /// Sets the text of a key. When this returns, every chain that wants the key routes by it.
    ///
    /// # Errors
    /// `E_NOT_FOUND`: no language has such keys. Otherwise why the text was refused, with its place; what stays in
    /// force then is the language's decision, by default the last good rule.
    pub fn put(&self, key: &str, text: &str) -> Result<()> {
        let Some(language) = self.language(key) else {
            let known: Vec<&str> = self.languages.iter().map(|language| language.suffix()).collect();
            let message = format!("no kind of rule has such keys; they end with {}", known.join(", "));
            return Err(Error::new(Status::E_NOT_FOUND, message).subject(key));
        };
        let (event, error) = {
            let mut keys = self.keys.lock();
            let name: Arc<str> = match keys.get_key_value(key) {
                Some((name, _)) => Arc::clone(name),
                None => key.into(),
            };
            let entry = keys.entry(Arc::clone(&name)).or_insert_with(|| Entry::new(&*language, self.dialect));
            entry.text = Some(text.into());
            entry.revision += 1;
            entry.error = None;
            for (i, (_, state)) in entry.states.iter_mut().enumerate() {
                let result = state
                    .set(text)
                    .map_err(|error| if error.about().is_empty() { error.subject(key) } else { error });
                // The store's own dialect speaks for the text; another's refusal is only told if that one took it.
                if let Err(error) = result
                    && (i == 0 || entry.error.is_none())
                {
                    entry.error = Some(error);
                }
            }
            let error = entry.error.clone();
            (RuleEvent { key: name, revision: entry.revision, error: error.clone(), removed: false }, error)
        };
        self.tell(&event);
        error.map_or(Ok(()), Err)
    }

    /// Removes a key; false when it was not there.
    pub fn remove(&self, key: &str) -> bool {
        let event = {
            let mut keys = self.keys.lock();
            let Some((name, entry)) = keys.remove_entry(key) else { return false };
            RuleEvent { key: name, revision: entry.revision + 1, error: None, removed: true }
        };
        self.tell(&event);
        true
    }

    fn tell(&self, event: &RuleEvent) {
        let subscribers: Vec<Arc<dyn Subscriber>> = {
            let mut list = self.subscribers.lock();
            list.retain(|one| one.strong_count() > 0);
            list.iter().filter_map(Weak::upgrade).collect()
        };
        for subscriber in subscribers {
            subscriber.rule_changed(&event.key);
        }
        let observer = self.observer.lock().clone();
        if let Some(observer) = observer {
            observer(event);
        }
    }

    /// The rule in force under a dialect, with the revision of its key.
    pub fn active(&self, key: &str, dialect: u8) -> Option<(Arc<dyn Rule>, u64)> {
        let mut keys = self.keys.lock();
        let entry = keys.get_mut(key)?;
        let revision = entry.revision;
        if let Some((_, state)) = entry.states.iter().find(|(own, _)| *own == dialect) {
            return Some((state.active()?, revision));
        }
        let mut state = self.language(key)?.open(dialect);
        if let Some(text) = &entry.text
            && let Err(error) = state.set(text)
            && entry.error.is_none()
        {
            entry.error = Some(error.subject(key));
        }
        let active = state.active();
        entry.states.push((dialect, state));
        Some((active?, revision))
    }

    /// The text last given for a key, taken or refused.
    pub fn text(&self, key: &str) -> Option<Arc<str>> {
        self.keys.lock().get(key)?.text.clone()
    }

    /// Every key and how it stands, sorted by key.
    pub fn status(&self) -> Vec<RuleStatus> {
        let keys = self.keys.lock();
        keys.iter().map(|(key, entry)| entry.status(key)).collect()
    }

    /// How one key stands.
    pub fn status_of(&self, key: &str) -> Option<RuleStatus> {
        let keys = self.keys.lock();
        keys.get_key_value(key).map(|(key, entry)| entry.status(key))
    }

    /// The language of a key.
    pub fn language(&self, key: &str) -> Option<Arc<dyn Language>> {
        self.languages.iter().find(|language| key.ends_with(language.suffix())).cloned()
    }

    pub(crate) fn subscribe(&self, subscriber: Weak<dyn Subscriber>) {
        let mut list = self.subscribers.lock();
        if list.len() >= 64 && list.len().is_power_of_two() {
            list.retain(|one| one.strong_count() > 0);
        }
        list.push(subscriber);
    }
}

impl Entry {
    fn new(language: &dyn Language, dialect: u8) -> Entry {
        Entry { text: None, revision: 0, states: vec![(dialect, language.open(dialect))], error: None }
    }

    fn status(&self, key: &Arc<str>) -> RuleStatus {
        let active = self.states.first().and_then(|(_, state)| state.active());
        RuleStatus {
            key: Arc::clone(key),
            revision: self.revision,
            version: active.as_ref().map(|rule| rule.version().to_owned()).unwrap_or_default(),
            in_force: active.is_some_and(|rule| rule.in_force()),
            error: self.error.clone(),
        }
    }
}

impl fmt::Debug for RuleStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuleStore({} keys)", self.keys.lock().len())
    }
}
