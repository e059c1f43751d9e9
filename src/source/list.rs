//! From registry entries to an invoker list: matched, merged, overridden, with tags that stay.
//!
//! A provider keeps its tag as long as it is there, also when its URL changes (a weight, a restart): what counts is
//! protocol, address, path, group and version. A list of thousands in which one entry changed becomes an update of the
//! list before, not a new one.

use super::configurator::{Configurators, configure};
use super::merge::Merge;
use super::providers::{Category, Matcher, category, refusal};
use crate::chain::hash;
use crate::chain::snapshot::{Invokers, InvokersBuilder};
use crate::chain::url::{Parts, Url};
use crate::error::{Error, Result, Status};
use crate::rules::dialect::Dialect;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::sync::Arc;

/// Entries of one service; more are refused as a whole.
pub const MAX_ENTRIES: usize = 1_000_000;
/// Parameters of one entry; an entry with more is left out.
const MAX_PARAMETERS: usize = 1024;
/// Refused entries told by name.
const TOLD: usize = 8;

/// An entry that is or was in the list.
struct Row {
    entry: Arc<str>,
    hash: u64,
    /// `None`: left out.
    tag: Option<u64>,
    identity: Option<Box<str>>,
    /// Round in which it was seen last.
    seen: u64,
}

/// What became of an update.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The list is another one.
    pub changed: bool,
    /// The entries said that there is nobody: `empty://` and no provider.
    pub said_none: bool,
    /// Entries left out since the last update, at most a few, then a count.
    pub refused: Vec<Error>,
}

/// See the module.
pub struct List {
    consumer: Arc<Url>,
    matcher: Matcher,
    merge: Merge,
    rows: HashTable<Row>,
    /// What the rows were made of.
    entries: Arc<[Arc<str>]>,
    identities: HashMap<Box<str>, u64>,
    round: u64,
    next_tag: u64,
    current: Arc<Invokers>,
    empties: usize,
    spoiled: bool,
}

/// A change of the list, before it is made.
struct Pending {
    /// Merged and overridden URL.
    url: String,
    tag: u64,
    /// The tag is in the list already.
    replaces: bool,
}

impl List {
    /// For a consumer; empty.
    pub fn new(consumer: Arc<Url>, dialect: Dialect) -> List {
        List {
            matcher: Matcher::new(&consumer),
            merge: Merge::new(&consumer, dialect),
            consumer,
            rows: HashTable::new(),
            entries: Arc::from([]),
            identities: HashMap::new(),
            round: 0,
            next_tag: 1,
            current: Invokers::none(),
            empties: 0,
            spoiled: false,
        }
    }

    /// The list as it is.
    pub fn current(&self) -> &Arc<Invokers> {
        &self.current
    }

    /// The consumer's interface.
    pub fn interface(&self) -> &str {
        self.matcher.interface()
    }

    /// Makes the list what `entries` say. `overridden`: the overrides are others than last time, so every URL has to be
    /// written again.
    ///
    /// # Errors
    /// `E_LIMIT`, `E_INVOKERS`: the list stays as it was.
    pub fn update(
        &mut self,
        entries: &Arc<[Arc<str>]>,
        overrides: &[&Configurators],
        overridden: bool,
    ) -> Result<Outcome> {
        if entries.len() > MAX_ENTRIES {
            let message = format!("{} providers; at most {MAX_ENTRIES} are taken", entries.len());
            return Err(Error::new(Status::E_LIMIT, message).subject(self.interface()));
        }
        let mut outcome = Outcome::default();
        let mut left_out = 0usize;
        self.round += 1;
        let round = self.round;
        let overridden = overridden | std::mem::take(&mut self.spoiled);
        if overridden {
            self.rows.clear();
        }
        let before = std::mem::replace(&mut self.entries, Arc::clone(entries));
        // Sources hand out the same objects for what has not changed: only the others have to be looked at. Where an
        // entry came twice, no object stands for its row alone.
        let (others, lost) = match self.rows.len() == before.len() {
            true => difference(&before, entries),
            false => (entries.iter().collect(), None),
        };
        let mut fresh: Vec<(u64, &Arc<str>)> = Vec::new();
        for entry in others {
            let hash = hash::bytes(hash::seed(), entry.as_bytes());
            match self.rows.find_mut(hash, |row| row.entry == *entry) {
                Some(row) => row.seen = round,
                None => fresh.push((hash, entry)),
            }
        }
        // What was not seen is gone; its identity may be taken over by a fresh entry.
        let mut gone: HashMap<Box<str>, u64> = HashMap::new();
        let mut gone_tags: Vec<u64> = Vec::new();
        let stale: Vec<Row> = match lost {
            None => self.rows.extract_if(|row| row.seen != round).collect(),
            Some(lost) => lost.into_iter().filter_map(|entry| self.take(entry, round)).collect(),
        };
        if overridden {
            gone = std::mem::take(&mut self.identities);
        }
        for row in stale {
            if row.entry.starts_with("empty:") {
                self.empties = self.empties.saturating_sub(1);
            }
            if let Some(identity) = row.identity
                && let Some(tag) = self.identities.remove(&identity)
            {
                gone.insert(identity, tag);
            } else if let Some(tag) = row.tag {
                gone_tags.push(tag);
            }
        }
        if overridden {
            self.empties = 0;
        }
        let mut pending = Vec::new();
        let mut merged = String::new();
        let mut configured = String::new();
        for (hash, entry) in fresh {
            // The same text twice among the fresh ones.
            if self.rows.find(hash, |row| row.entry == *entry).is_some() {
                continue;
            }
            let read = self.read(entry, overrides, &mut merged, &mut configured);
            let (tag, identity) = match read {
                Ok(None) => (None, None),
                Ok(Some(identity)) => {
                    let url = if configured.is_empty() { &merged } else { &configured };
                    let (tag, replaces, identity) = self.tag(identity, &mut gone);
                    pending.push(Pending { url: url.clone(), tag, replaces });
                    (Some(tag), identity)
                }
                Err(error) => {
                    left_out += 1;
                    if outcome.refused.len() < TOLD {
                        outcome.refused.push(refusal(entry, error));
                    }
                    (None, None)
                }
            };
            if entry.starts_with("empty:") {
                self.empties += 1;
            }
            let row = Row { entry: Arc::clone(entry), hash, tag, identity, seen: round };
            self.rows.insert_unique(hash, row, |row| row.hash);
        }
        if left_out > outcome.refused.len() {
            let message = format!("{} more entries are left out", left_out - outcome.refused.len());
            outcome.refused.push(Error::new(Status::E_SOURCE, message).subject(self.interface()));
        }
        gone_tags.extend(gone.into_values());
        outcome.changed = overridden || !pending.is_empty() || !gone_tags.is_empty();
        if outcome.changed {
            match self.build(entries, pending, gone_tags, overridden) {
                Ok(list) => self.current = list,
                Err(error) => {
                    // What is remembered of the rows is ahead of the list now.
                    self.spoiled = true;
                    return Err(error);
                }
            }
        }
        outcome.said_none = self.current.is_empty() && self.empties > 0;
        Ok(outcome)
    }

    /// The row of an entry, taken out unless it was seen in this round.
    fn take(&mut self, entry: &str, round: u64) -> Option<Row> {
        let hash = hash::bytes(hash::seed(), entry.as_bytes());
        match self.rows.find_entry(hash, |row| *row.entry == *entry) {
            Ok(found) if found.get().seen != round => Some(found.remove().0),
            _ => None,
        }
    }

    /// The identity of an entry that is a provider of this consumer, with its URL written; `None`: not one.
    fn read(
        &self,
        entry: &str,
        overrides: &[&Configurators],
        merged: &mut String,
        configured: &mut String,
    ) -> Result<Option<String>> {
        if category(entry)? != Some(Category::Providers) {
            return Ok(None);
        }
        let parts = Parts::parse(entry)?;
        if matches!(parts.protocol, "empty" | "consumer") || !self.matcher.takes(&parts) {
            return Ok(None);
        }
        if parts.host.is_empty() {
            return Err(Error::new(Status::E_INVALID_URL, "a provider needs a host"));
        }
        if entry.chars().any(char::is_control) {
            return Err(Error::new(Status::E_INVALID_URL, "a URL has no control characters"));
        }
        if parts.parameters().count() > MAX_PARAMETERS {
            return Err(Error::new(Status::E_LIMIT, format!("more than {MAX_PARAMETERS} parameters")));
        }
        self.merge.write(&parts, merged);
        configure(overrides, merged, &self.consumer, configured)?;
        let (mut group, mut version) = ("", "");
        for (key, value) in parts.parameters() {
            match key {
                "group" => group = value,
                "version" => version = value,
                _ => {}
            }
        }
        Ok(Some(format!(
            "{}://{}:{}/{}|{group}|{version}",
            parts.protocol, parts.host, parts.port, parts.path
        )))
    }

    fn tag(&mut self, identity: String, gone: &mut HashMap<Box<str>, u64>) -> (u64, bool, Option<Box<str>>) {
        let identity = identity.into_boxed_str();
        if let Some(tag) = gone.remove(&identity) {
            self.identities.insert(identity.clone(), tag);
            return (tag, true, Some(identity));
        }
        let tag = self.next_tag;
        self.next_tag += 1;
        // A second entry of the same provider is a second row; the first one owns the identity.
        if self.identities.contains_key(&identity) {
            return (tag, false, None);
        }
        self.identities.insert(identity.clone(), tag);
        (tag, false, Some(identity))
    }

    fn build(
        &self,
        entries: &[Arc<str>],
        pending: Vec<Pending>,
        gone: Vec<u64>,
        whole: bool,
    ) -> Result<Arc<Invokers>> {
        let few = pending.len() + gone.len() <= 64 && !whole && self.current.len() > 64;
        if few {
            let mut builder = self.current.update();
            for tag in gone {
                builder.remove(tag);
            }
            for one in pending {
                if one.replaces {
                    builder.set(&one.url, one.tag)?;
                } else {
                    builder.add(&one.url, Some(one.tag))?;
                }
            }
            return builder.finish();
        }
        let mut urls: HashMap<u64, String> = pending.into_iter().map(|one| (one.tag, one.url)).collect();
        let mut kept: HashMap<u64, usize> = HashMap::new();
        for row in 0..self.current.len() {
            if let Some(tag) = self.current.tag(row) {
                kept.insert(tag, row);
            }
        }
        let mut builder = InvokersBuilder::new().keep_texts();
        let mut done = std::collections::HashSet::with_capacity(entries.len());
        for entry in entries {
            let hash = hash::bytes(hash::seed(), entry.as_bytes());
            let Some(tag) = self.rows.find(hash, |row| row.entry == *entry).and_then(|row| row.tag) else {
                continue;
            };
            if !done.insert(tag) {
                continue;
            }
            if let Some(url) = urls.remove(&tag) {
                builder.add(&url, Some(tag))?;
            } else if let Some(text) = kept.get(&tag).and_then(|row| self.current.text(*row)) {
                builder.add(text, Some(tag))?;
            }
        }
        builder.finish()
    }
}

/// How far [`difference`] looks for where two lists go on together.
const AHEAD: usize = 64;

/// What is in one list of objects and not in the other: new ones, and those that are gone. Objects that have moved far
/// are in both.
fn difference<'a>(
    before: &'a [Arc<str>],
    now: &'a [Arc<str>],
) -> (Vec<&'a Arc<str>>, Option<Vec<&'a Arc<str>>>) {
    let (mut fresh, mut lost) = (Vec::new(), Vec::new());
    let (mut old, mut new) = (before, now);
    while let (Some(one), Some(other)) = (old.first(), new.first()) {
        let (mut skip_old, mut skip_new) = (0, 0);
        if !Arc::ptr_eq(one, other) {
            let place = |list: &[Arc<str>], wanted: &Arc<str>| {
                list.iter().take(AHEAD).position(|entry| Arc::ptr_eq(entry, wanted))
            };
            (skip_old, skip_new) = match (place(old, other), place(new, one)) {
                (Some(gone), _) => (gone, 0),
                (None, Some(come)) => (0, come),
                (None, None) => (1, 1),
            };
        }
        let (gone, rest_old) = old.split_at(skip_old);
        let (come, rest_new) = new.split_at(skip_new);
        lost.extend(gone);
        fresh.extend(come);
        (old, new) = match (skip_old, skip_new) {
            (0, 0) => (rest_old.get(1..).unwrap_or_default(), rest_new.get(1..).unwrap_or_default()),
            _ => (rest_old, rest_new),
        };
    }
    lost.extend(old);
    fresh.extend(new);
    (fresh, Some(lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(consumer: &str) -> List {
        List::new(Arc::new(Url::parse(consumer).unwrap()), Dialect::Byway)
    }

    fn entries(texts: &[&str]) -> Arc<[Arc<str>]> {
        texts.iter().map(|text| Arc::from(*text)).collect()
    }

    fn rows(list: &List) -> Vec<(u64, String)> {
        (0..list.current().len())
            .map(|row| (list.current().tag(row).unwrap(), list.current().address(row)))
            .collect()
    }

    #[test]
    fn tags_stay_with_their_provider() {
        let mut list = list("consumer://1.1.1.1/S");
        let mut update = |texts: &[&str]| {
            list.update(&entries(texts), &[], false).unwrap();
            rows(&list)
        };
        let row = |tag: u64, port: u16| (tag, format!("h:{port}"));
        assert_eq!(update(&["dubbo://h:1/S", "dubbo://h:2/S"]), [row(1, 1), row(2, 2)]);
        // Another URL of the same provider, one more, one gone.
        assert_eq!(update(&["dubbo://h:2/S?weight=5", "dubbo://h:3/S"]), [row(2, 2), row(3, 3)]);
        // Two entries of one provider are two rows; the same text twice is one.
        assert_eq!(
            update(&["dubbo://h:3/S", "dubbo://h:3/S", "dubbo://h:3/S?timestamp=2"]),
            [row(3, 3), row(4, 3)]
        );
        assert_eq!(update(&["dubbo://h:1/S"]), [row(5, 1)], "who has left is forgotten");
    }

    #[test]
    fn garbage_is_left_out_and_told_once() {
        let mut list = list("consumer://1.1.1.1/S?application=shop");
        let mut texts: Vec<String> = (0..20).map(|at| format!("dubbo://u:secret@h:bad{at}/S")).collect();
        texts.push("dubbo://h:1/S?application=stock".to_owned());
        texts.push("dubbo://h:2/Other".to_owned());
        texts.push("consumer://h:2/S".to_owned());
        texts.push("dubbo://h:9/S?disabled=true".to_owned());
        let texts: Arc<[Arc<str>]> = texts.iter().map(|text| Arc::from(text.as_str())).collect();
        let outcome = list.update(&texts, &[], false).unwrap();
        assert_eq!(outcome.refused.len(), TOLD + 1);
        assert!(outcome.refused.last().unwrap().message().starts_with("12 more"));
        assert!(outcome.refused.iter().all(|error| !error.to_string().contains("secret")));
        assert_eq!(rows(&list), [(1, "h:1".to_owned())]);
        assert_eq!(list.current().text(0), Some("dubbo://h:1/S?application=stock"));
        let again = list.update(&texts, &[], false).unwrap();
        assert!(!again.changed && again.refused.is_empty());
    }

    #[test]
    fn changes_among_many_are_the_same_list_as_a_new_one() {
        let mut draw = crate::runtime::random::Stream::seeded(11);
        let mut below =
            |limit: usize| (crate::runtime::random::Draw::next_u64(&mut draw) % limit as u64) as usize;
        let entry = |port: usize, more: usize| Arc::from(format!("dubbo://h:{}/S?a={more}", port + 1));
        let mut texts: Vec<Arc<str>> = (0..300).map(|at| entry(at, at % 7)).collect();
        let mut updated = list("consumer://1.1.1.1/S");
        let sorted = |list: &List| {
            let invokers = list.current();
            let mut all: Vec<_> =
                (0..invokers.len()).map(|row| invokers.text(row).unwrap().to_owned()).collect();
            all.sort();
            all
        };
        for round in 0..60 {
            for _ in 0..below(6) {
                let (at, other) = (below(texts.len()), below(texts.len()));
                match below(6) {
                    0 => drop(texts.remove(at)),
                    1 => texts.insert(at, entry(1000 + round * 10 + other, 1)),
                    2 => texts[at] = entry(at, 100 + round),
                    3 => texts.swap(at, other),
                    // The same text again, as the same object and as another one.
                    4 => texts.insert(at, Arc::clone(&texts[other])),
                    _ => texts.insert(at, Arc::from(&*texts[other])),
                }
            }
            let now: Arc<[Arc<str>]> = texts.clone().into();
            updated.update(&now, &[], false).unwrap();
            let mut whole = list("consumer://1.1.1.1/S");
            whole.update(&now, &[], false).unwrap();
            assert_eq!(sorted(&updated), sorted(&whole), "round {round}");
            // Repetitions go again, or the way for lists without them would not be seen.
            if round % 3 == 0 {
                let mut known = std::collections::HashSet::new();
                texts.retain(|text| known.insert(Arc::clone(text)));
            }
        }
    }

    #[test]
    fn overrides_are_laid_over_every_provider_and_taken_off_again() {
        let mut list = list("consumer://1.1.1.1/S");
        let texts = entries(&["dubbo://h:1/S?weight=1", "dubbo://h:2/S?weight=2"]);
        list.update(&texts, &[], false).unwrap();
        let (overrides, _) =
            Configurators::from_urls(["override://h:2/S?weight=9", "override://h:1/S?disabled=true"]);
        assert!(list.update(&texts, &[&overrides], true).unwrap().changed);
        assert_eq!(rows(&list), [(2, "h:2".to_owned())]);
        assert_eq!(list.current().text(0), Some("dubbo://h:2/S?weight=9"));
        list.update(&texts, &[], true).unwrap();
        assert_eq!(rows(&list), [(1, "h:1".to_owned()), (2, "h:2".to_owned())]);
        assert_eq!(list.current().text(1), Some("dubbo://h:2/S?weight=2"));
    }
}
