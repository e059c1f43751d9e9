//! Which rows a test selects, evaluated once per (column, test) and kept while someone uses it, across rule changes
//! and across updates of the list.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::bits::RowSet;
use super::builder::Change;
use super::live::{Kind, Live};
use super::program::{Column, RowTest, Test};
use super::snapshot::Invokers;

/// A selection and its count of one. Shared by the plans that use it.
pub(crate) struct Selection {
    pub(crate) set: RowSet,
    _live: Live,
}

impl Selection {
    pub(crate) fn new(set: RowSet) -> Arc<Selection> {
        Arc::new(Selection { set, _live: Live::new(Kind::Selection) })
    }
}

/// Selections of one list.
#[derive(Default)]
pub(crate) struct SelectionCache {
    entries: HashMap<(Column, Box<str>), Entry>,
    /// Sweep the dead ones when there are this many.
    sweep_at: usize,
}

struct Entry {
    test: Test,
    selection: Weak<Selection>,
    /// An update carries selections over before anybody uses them: held until the next update.
    _carried: Option<Arc<Selection>>,
}

impl SelectionCache {
    /// What an update takes over: every selection in use, adjusted to the rows that changed.
    pub(crate) fn carried_over(&self, changes: &[Change], next: &Invokers) -> SelectionCache {
        // Shifting bits for many removed rows costs more than evaluating again.
        let removed = changes.iter().filter(|change| matches!(change, Change::Removed(_))).count();
        let mut cache = SelectionCache::default();
        if removed > 64 || changes.len() > next.len() / 4 + 1 {
            return cache;
        }
        for ((column, key), entry) in &self.entries {
            let Some(selection) = entry.selection.upgrade() else { continue };
            let set = adjusted(&selection.set, changes, next, column, &entry.test);
            let selection = Selection::new(set);
            cache.entries.insert(
                (column.clone(), key.clone()),
                Entry {
                    test: Arc::clone(&entry.test),
                    selection: Arc::downgrade(&selection),
                    _carried: Some(selection),
                },
            );
        }
        cache
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let sets = self.entries.values().filter_map(|entry| entry.selection.upgrade());
        sets.map(|selection| selection.set.heap_bytes()).sum()
    }

    fn sweep(&mut self) {
        self.entries.retain(|_, entry| entry.selection.strong_count() > 0);
        self.sweep_at = (self.entries.len() * 2).max(64);
    }
}

fn adjusted(set: &RowSet, changes: &[Change], next: &Invokers, column: &Column, test: &Test) -> RowSet {
    let mut bits = set.to_bits();
    let mut rows = set.rows();
    let mut dirty: Vec<usize> = Vec::new();
    for change in changes {
        match *change {
            Change::Replaced(row) => dirty.push(row),
            Change::Added => {
                rows += 1;
                bits.grow(rows);
                dirty.push(rows - 1);
            }
            Change::Removed(gone) => {
                bits.close_gap(gone);
                rows -= 1;
                dirty.retain(|row| *row != gone);
                dirty.iter_mut().filter(|row| **row > gone).for_each(|row| *row -= 1);
            }
        }
    }
    bits.grow(rows);
    for row in dirty {
        if test.test(next.column(row, column).as_deref()) {
            bits.insert(row);
        } else {
            bits.remove(row);
        }
    }
    RowSet::from_bits(rows, bits)
}

impl Invokers {
    /// The rows of one column test, from the cache or evaluated now.
    pub(crate) fn selection(&self, column: &Column, test: &Test) -> Arc<Selection> {
        let key = (column.clone(), Box::from(test.cache_key()));
        if let Some(found) = self.cache.lock().entries.get(&key).and_then(|entry| entry.selection.upgrade()) {
            return found;
        }
        // Not under the lock: a test is foreign code. Two threads may do the same work once.
        let selection = Selection::new(self.evaluate(column, test));
        let mut cache = self.cache.lock();
        if cache.entries.len() >= cache.sweep_at.max(64) {
            cache.sweep();
        }
        let entry = Entry { test: Arc::clone(test), selection: Arc::downgrade(&selection), _carried: None };
        cache.entries.insert(key, entry);
        selection
    }

    /// The rows a test selects. What the cache must keep while the result is in use is added to `held`.
    pub(crate) fn select(&self, test: &RowTest, held: &mut Vec<Arc<Selection>>) -> Arc<Selection> {
        let rows = self.len();
        match test {
            RowTest::Value(column, test) => {
                let selection = self.selection(column, test);
                held.push(Arc::clone(&selection));
                selection
            }
            RowTest::AllOf(list) if list.len() == 1 => match list.first() {
                Some(only) => self.select(only, held),
                None => Selection::new(RowSet::all(rows)),
            },
            RowTest::AnyOf(list) if list.len() == 1 => match list.first() {
                Some(only) => self.select(only, held),
                None => Selection::new(RowSet::none(rows)),
            },
            _ => Selection::new(self.compose(test, held)),
        }
    }

    fn compose(&self, test: &RowTest, held: &mut Vec<Arc<Selection>>) -> RowSet {
        let rows = self.len();
        match test {
            RowTest::Any => RowSet::all(rows),
            RowTest::Never => RowSet::none(rows),
            RowTest::Value(..) => self.select(test, held).set.clone(),
            RowTest::Not(inner) => self.select(inner, held).set.complement(),
            RowTest::AllOf(list) => {
                list.iter().fold(RowSet::all(rows), |set, inner| set.and(&self.select(inner, held).set))
            }
            RowTest::AnyOf(list) => {
                list.iter().fold(RowSet::none(rows), |set, inner| set.or(&self.select(inner, held).set))
            }
        }
    }
}
