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
}

/// See the module.
#[derive(Default)]
pub(super) struct Names {
    entries: Vec<Entry>,
    table: HashTable<u32>,
    round: u64,
    texts: Option<Arc<[Arc<str>]>>,
}

impl Names {
    /// Takes over what a read found; what is new comes last, in order of its text. Gives what came and what went.
    pub(super) fn update(&mut self, found: &[&str]) -> (Vec<String>, Vec<String>) {
        self.round += 1;
        let round = self.round;
        let mut fresh = Vec::new();
        for raw in found {
            let hash = hash::bytes(hash::seed(), raw.as_bytes());
            let entries = &mut self.entries;
            let known = self
                .table
                .find(hash, |at| entries.get(*at as usize).is_some_and(|entry| *entry.raw == **raw));
            match known.and_then(|at| entries.get_mut(*at as usize)) {
                Some(entry) => entry.seen = round,
                None => {
                    // A name that cannot be decoded is an entry that does not parse; whoever reads it says so.
                    let text: Arc<str> = match providers::decode(raw) {
                        Ok(text) => text.as_ref().into(),
                        Err(_) => (*raw).into(),
                    };
                    fresh.push(Entry { raw: (*raw).into(), text, hash, seen: round });
                }
            }
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
        self.texts = None;
        fresh.sort_by(|a, b| a.text.cmp(&b.text));
        fresh.dedup_by(|a, b| a.raw == b.raw);
        let added = fresh.iter().map(|entry| entry.raw.to_string()).collect();
        self.entries.retain(|entry| entry.seen == round);
        self.entries.append(&mut fresh);
        self.table.clear();
        let entries = &self.entries;
        for (at, entry) in entries.iter().enumerate() {
            let hash_of = |at: &u32| entries.get(*at as usize).map_or(0, |entry| entry.hash);
            self.table.insert_unique(entry.hash, at as u32, hash_of);
        }
        (added, gone)
    }

    /// As on the wire.
    pub(super) fn raw(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.raw)
    }

    /// Decoded.
    pub(super) fn texts(&self) -> Arc<[Arc<str>]> {
        match &self.texts {
            Some(texts) => Arc::clone(texts),
            None => self.entries.iter().map(|entry| Arc::clone(&entry.text)).collect(),
        }
    }
}
