//! Interning: equal values get one 64-bit id, so that a route key is a few words. Ids are never reused; a value
//! that nobody holds any more leaves the table.

use super::hash::Seed;
use hashbrown::HashTable;
use once_cell::sync::Lazy;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A value that can be found again by its bytes.
pub(crate) trait Value {
    /// Bytes that are equal exactly when the values are.
    fn key(&self) -> &[u8];
    /// The id given at interning.
    fn id(&self) -> u64;
}

struct Slot<T> {
    hash: u64,
    id: u64,
    value: Weak<T>,
}

/// One table of live values. Locked only while a value is made or dropped, never by a lookup of routes.
pub(crate) struct Interner<T> {
    next: AtomicU64,
    seed: Lazy<Seed>,
    table: Mutex<HashTable<Slot<T>>>,
}

impl<T: Value> Interner<T> {
    pub(crate) const fn new() -> Self {
        Interner {
            // 0 means "no proxy" in a route key.
            next: AtomicU64::new(1),
            seed: Lazy::new(Seed::random),
            table: Mutex::new(HashTable::new()),
        }
    }

    /// The one live value with these bytes; `make` builds it from its id when there is none.
    ///
    /// In a forked child the lock may have been held by a thread that no longer exists. Values must keep working
    /// there, so after a bounded number of tries the value gets an id of its own: equal values then merely do not
    /// share their failures.
    pub(crate) fn intern(&self, key: &[u8], make: impl FnOnce(u64) -> T) -> Arc<T> {
        let hash = self.seed.hash_bytes(key);
        let mut tries = 0;
        let mut table = loop {
            match self.table.try_lock() {
                Some(table) => break table,
                None if tries < 100_000 => std::thread::yield_now(),
                None => return Arc::new(make(self.next.fetch_add(1, Ordering::Relaxed))),
            }
            tries += 1;
        };
        let mut found = None;
        // A slot whose value is just being dropped does not upgrade: it is passed over and removed by its drop.
        table.find(hash, |slot| {
            slot.hash == hash
                && slot.value.upgrade().is_some_and(|value| {
                    let same = value.key() == key;
                    if same {
                        found = Some(value);
                    }
                    same
                })
        });
        if let Some(value) = found {
            return value;
        }
        if table.len() == table.capacity() {
            // Before growing: slots whose drop could not take the lock.
            table.retain(|slot| slot.value.strong_count() > 0);
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let value = Arc::new(make(id));
        table.insert_unique(hash, Slot { hash, id, value: Arc::downgrade(&value) }, |slot| slot.hash);
        value
    }

    /// Called by the value's `Drop`. Takes no lock that it would have to wait for.
    pub(crate) fn forget(&self, key: &[u8], id: u64) {
        let hash = self.seed.hash_bytes(key);
        if let Some(mut table) = self.table.try_lock()
            && let Ok(slot) = table.find_entry(hash, |slot| slot.id == id)
        {
            slot.remove();
        }
    }
}
