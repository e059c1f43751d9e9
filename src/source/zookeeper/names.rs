//! The children of a node: names as they are on the wire and decoded, with the same objects from one read to the next.

use crate::chain::hash;
use crate::source::providers;
use hashbrown::HashTable;
use std::sync::Arc;

struct Entry {
    raw: Box<str>,
    text: Arc<str>,
    hash: u64,
    seen: u64,
    /// The entry that followed it in the last read: servers list children in much the same order every time.
    next: u32,
}

/// See the module.
#[derive(Default)]
pub(super) struct Names {
    entries: Vec<Entry>,
    table: HashTable<u32>,
    round: u64,
}

/// No entry.
const NONE: u32 = u32::MAX;

impl Entry {
    fn new(raw: &str, seen: u64) -> Entry {
        // A name that cannot be decoded is an entry that does not parse; whoever reads it says so.
        let text: Arc<str> = match providers::decode(raw) {
            Ok(text) => text.as_ref().into(),
            Err(_) => raw.into(),
        };
        let hash = hash::bytes(hash::seed(), raw.as_bytes());
        Entry { raw: raw.into(), text, hash, seen, next: NONE }
    }
}

impl Names {
    /// Takes over what a read found; what is new comes last, in order of its text. Gives what came and what went.
    pub(super) fn update(&mut self, found: &[&str]) -> (Vec<String>, Vec<String>) {
        self.round += 1;
        let round = self.round;
        let mut fresh = Vec::new();
        let mut guess = 0;
        let mut before = NONE;
        for raw in found {
            let at = match self.entries.get(guess as usize) {
                Some(entry) if *entry.raw == **raw => Some(guess),
                _ => self.find(raw),
            };
            let Some(at) = at else {
                fresh.push(Entry::new(raw, round));
                continue;
            };
            if let Some(entry) = self.entries.get_mut(before as usize) {
                entry.next = at;
            }
            if let Some(entry) = self.entries.get_mut(at as usize) {
                entry.seen = round;
                guess = entry.next;
            }
            before = at;
        }
        let gone: Vec<String> = self
            .entries
            .iter()
            .filter(|entry| entry.seen != round)
            .map(|entry| entry.raw.to_string())
            .collect();
        if fresh.is_empty() && gone.is_empty() {
            return (Vec::new(), Vec::new());
        }
        fresh.sort_by(|a, b| a.text.cmp(&b.text));
        fresh.dedup_by(|a, b| a.raw == b.raw);
        let added = fresh.iter().map(|entry| entry.raw.to_string()).collect();
        self.forget(round);
        self.entries.append(&mut fresh);
        self.table.clear();
        let entries = &self.entries;
        for (at, entry) in entries.iter().enumerate() {
            let hash_of = |at: &u32| entries.get(*at as usize).map_or(0, |entry| entry.hash);
            self.table.insert_unique(entry.hash, at as u32, hash_of);
        }
        (added, gone)
    }

    fn find(&self, raw: &str) -> Option<u32> {
        let hash = hash::bytes(hash::seed(), raw.as_bytes());
        let same = |at: &u32| self.entries.get(*at as usize).is_some_and(|entry| *entry.raw == *raw);
        self.table.find(hash, same).copied()
    }

    /// Drops what was not seen; those that stay move up.
    fn forget(&mut self, round: u64) {
        let mut moved = 0;
        let places: Vec<u32> = self
            .entries
            .iter()
            .map(|entry| {
                let place = if entry.seen == round { moved } else { NONE };
                moved += u32::from(entry.seen == round);
                place
            })
            .collect();
        self.entries.retain(|entry| entry.seen == round);
        for entry in &mut self.entries {
            entry.next = places.get(entry.next as usize).copied().unwrap_or(NONE);
        }
    }

    /// As on the wire.
    pub(super) fn raw(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.raw)
    }

    /// Decoded.
    pub(super) fn texts(&self) -> Arc<[Arc<str>]> {
        self.entries.iter().map(|entry| Arc::clone(&entry.text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_keeps_its_object_whatever_the_order() {
        let mut names = Names::default();
        let texts = |names: &Names| names.texts().iter().map(|text| text.to_string()).collect::<Vec<_>>();
        assert_eq!(names.update(&["c", "a%20b", "b"]).0, ["a%20b", "b", "c"]);
        assert_eq!(texts(&names), ["a b", "b", "c"]);
        let first = names.texts();
        // The same in any order is no change; one gone, some new, the rest turned round.
        assert_eq!(names.update(&["c", "a%20b", "b"]), (vec![], vec![]));
        assert_eq!(names.update(&["b", "a%20b", "c"]), (vec![], vec![]));
        assert_eq!(
            names.update(&["e", "c", "d", "e", "b"]),
            (vec!["d".into(), "e".into()], vec!["a%20b".into()])
        );
        assert_eq!(names.update(&["b", "e", "c", "d"]), (vec![], vec![]));
        assert_eq!(texts(&names), ["b", "c", "d", "e"]);
        let now = names.texts();
        assert!(Arc::ptr_eq(&first[1], &now[0]) && Arc::ptr_eq(&first[2], &now[1]));
        assert_eq!(names.update(&[]).1.len(), 4);
        assert_eq!(names.update(&["b"]).0, ["b"]);
    }
}
