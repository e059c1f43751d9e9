//! What a binding feeds: a chain and the rule store behind it.

use crate::chain::snapshot::Invokers;
use crate::chain::url::Url;
use crate::error::Error;
use crate::rules::dialect::Dialect;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Everything that takes effect together.
#[derive(Debug, Default)]
pub struct World {
    /// Another list; `None`: the one before.
    pub invokers: Option<Arc<Invokers>>,
    /// URLs of static routers; `None`: those before.
    pub routers: Option<Vec<Arc<str>>>,
    /// Rules that changed; a text of `None` is a key that was removed.
    pub rules: Vec<(Arc<str>, Option<Arc<str>>)>,
    /// The list is kept although the centre has none.
    pub kept: bool,
}

/// A rule that was refused.
#[derive(Debug)]
pub struct Refusal {
    /// Its key, or the URL of a static router.
    pub key: Arc<str>,
    /// Why.
    pub error: Error,
}

/// What a binding feeds.
pub trait Target: Send + Sync {
    /// The consumer's URL.
    fn consumer(&self) -> &Url;

    /// Its dialect.
    fn dialect(&self) -> Dialect;

    /// Keys of the rules it wants while it has this list.
    fn keys_with(&self, invokers: &Invokers) -> Vec<Arc<str>>;

    /// The list it has now.
    fn invokers(&self) -> Arc<Invokers>;

    /// Puts a world in force on behalf of a binding: afterwards every call sees all of it.
    fn apply(&self, world: World, binding: u64) -> Vec<Refusal>;

    /// Takes back what a binding gave and is still in force; with `keep_list` not the list.
    fn withdraw(&self, binding: u64, keep_list: bool);

    /// Who shares the rules it writes to.
    fn owners(&self) -> Option<&Owners>;
}

/// Which bindings hold which rule key: one per rule store, so that unbinding one chain leaves the rules of the others.
#[derive(Default)]
pub struct Owners {
    next: AtomicU64,
    keys: Mutex<HashMap<Arc<str>, Vec<u64>>>,
}

impl Owners {
    /// A number for a binding.
    pub fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A binding holds a key.
    pub fn hold(&self, key: &Arc<str>, binding: u64) {
        let mut keys = self.keys.lock();
        let holders = keys.entry(Arc::clone(key)).or_default();
        if !holders.contains(&binding) {
            holders.push(binding);
        }
    }

    /// A binding lets a key go; true when it was the last one that held it.
    pub fn release(&self, key: &str, binding: u64) -> bool {
        let mut keys = self.keys.lock();
        let Some(holders) = keys.get_mut(key) else { return false };
        let before = holders.len();
        holders.retain(|one| *one != binding);
        let last = holders.is_empty() && before > 0;
        if holders.is_empty() {
            keys.remove(key);
        }
        last
    }

    /// Lets every key of a binding go; those that nobody holds any more.
    pub fn release_all(&self, binding: u64) -> Vec<Arc<str>> {
        let mut keys = self.keys.lock();
        let mut free = Vec::new();
        keys.retain(|key, holders| {
            let before = holders.len();
            holders.retain(|one| *one != binding);
            if holders.is_empty() && before > 0 {
                free.push(Arc::clone(key));
            }
            !holders.is_empty()
        });
        free
    }

    /// Keys held by anybody.
    pub fn len(&self) -> usize {
        self.keys.lock().len()
    }

    /// True when nobody holds anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owners({} keys)", self.len())
    }
}
