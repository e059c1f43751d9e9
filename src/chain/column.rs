//! One column of an invoker snapshot: small ids per row, each distinct text once.

use std::sync::Arc;

use hashbrown::HashTable;

use super::bits::{Bits, RowSet};
use super::hash;
use super::program::{Shape, ValueTest};
use crate::sys::bitset;

/// The id of rows without a value.
pub(crate) const ABSENT: u32 = 0;

/// Distinct texts of a column; ids count from 1.
#[derive(Clone, Default)]
pub(crate) struct Dictionary {
    arena: String,
    /// Text `id` is `arena[ends[id - 1]..ends[id]]`.
    ends: Vec<u32>,
    table: HashTable<u32>,
}

impl Dictionary {
    /// The text of an id.
    #[inline]
    pub(crate) fn text(&self, id: u32) -> Option<&str> {
        let id = (id as usize).checked_sub(1)?;
        let end = *self.ends.get(id)? as usize;
        let start = match id.checked_sub(1) {
            Some(before) => *self.ends.get(before)? as usize,
            None => 0,
        };
        self.arena.get(start..end)
    }

    pub(crate) fn hash(text: &str) -> u64 {
        hash::bytes(hash::seed(), text.as_bytes())
    }

    /// The id of a text.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.find_hashed(Dictionary::hash(text), text)
    }

    /// The id of a text whose hash is known.
    #[inline]
    pub(crate) fn find_hashed(&self, hash: u64, text: &str) -> Option<u32> {
        let same = |id: &u32| self.text(*id).is_some_and(|own| hash::same(own.as_bytes(), text.as_bytes()));
        self.table.find(hash, same).copied()
    }

    /// Adds a text that is not there yet. `None` when 4 GiB of text are reached.
    pub(crate) fn insert(&mut self, hash: u64, text: &str) -> Option<u32> {
        let end = u32::try_from(self.arena.len() + text.len()).ok()?;
        self.arena.push_str(text);
        self.ends.push(end);
        let id = u32::try_from(self.ends.len()).ok()?;
        let Dictionary { arena, ends, table } = self;
        table.insert_unique(hash, id, |id| {
            let id = *id as usize;
            let start = if id >= 2 { ends.get(id - 2).copied().unwrap_or(0) } else { 0 };
            let end = ends.get(id - 1).copied().unwrap_or(0);
            Dictionary::hash(arena.get(start as usize..end as usize).unwrap_or_default())
        });
        Some(id)
    }

    /// Number of distinct texts, dead ones included.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn shrink(&mut self) {
        self.arena.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn heap_bytes(&self) -> usize {
        self.arena.capacity() + self.ends.capacity() * 4 + self.table.allocation_size()
    }
}

/// One id per row, as narrow as the ids allow.
#[derive(Clone)]
pub(crate) enum Ids {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
}

impl Ids {
    pub(crate) fn len(&self) -> usize {
        match self {
            Ids::U8(ids) => ids.len(),
            Ids::U16(ids) => ids.len(),
            Ids::U32(ids) => ids.len(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> u32 {
        match self {
            Ids::U8(ids) => ids.get(row).map_or(ABSENT, |id| u32::from(*id)),
            Ids::U16(ids) => ids.get(row).map_or(ABSENT, |id| u32::from(*id)),
            Ids::U32(ids) => ids.get(row).copied().unwrap_or(ABSENT),
        }
    }

    /// Sets the id of a row, rows in between become absent.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, id: u32) {
        loop {
            match self {
                Ids::U8(ids) => {
                    if let Ok(id) = u8::try_from(id) {
                        return put(ids, row, id);
                    }
                    *self = Ids::U16(ids.iter().map(|id| u16::from(*id)).collect());
                }
                Ids::U16(ids) => {
                    if let Ok(id) = u16::try_from(id) {
                        return put(ids, row, id);
                    }
                    *self = Ids::U32(ids.iter().map(|id| u32::from(*id)).collect());
                }
                Ids::U32(ids) => return put(ids, row, id),
            }
        }
    }

    /// Cuts or pads with absent to `rows`.
    pub(crate) fn resize(&mut self, rows: usize) {
        match self {
            Ids::U8(ids) => ids.resize(rows, 0),
            Ids::U16(ids) => ids.resize(rows, 0),
            Ids::U32(ids) => ids.resize(rows, 0),
        }
    }

    pub(crate) fn remove(&mut self, row: usize) {
        if row < self.len() {
            match self {
                Ids::U8(ids) => drop(ids.remove(row)),
                Ids::U16(ids) => drop(ids.remove(row)),
                Ids::U32(ids) => drop(ids.remove(row)),
            }
        }
    }

    pub(crate) fn shrink(&mut self) {
        match self {
            Ids::U8(ids) => ids.shrink_to_fit(),
            Ids::U16(ids) => ids.shrink_to_fit(),
            Ids::U32(ids) => ids.shrink_to_fit(),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Ids::U8(ids) => ids.capacity(),
            Ids::U16(ids) => ids.capacity() * 2,
            Ids::U32(ids) => ids.capacity() * 4,
        }
    }
}

#[inline]
fn put<T: Copy + Default>(ids: &mut Vec<T>, row: usize, id: T) {
    if row == ids.len() {
        ids.push(id);
    } else {
        if row > ids.len() {
            ids.resize(row + 1, T::default());
        }
        if let Some(slot) = ids.get_mut(row) {
            *slot = id;
        }
    }
}

/// A column: ids and their texts, each shared with the snapshots that did not change them.
#[derive(Clone)]
pub(crate) struct ColumnData {
    pub(crate) ids: Arc<Ids>,
    pub(crate) dictionary: Arc<Dictionary>,
}

impl Default for ColumnData {
    fn default() -> Self {
        ColumnData { ids: Arc::new(Ids::U8(Vec::new())), dictionary: Arc::default() }
    }
}

impl ColumnData {
    /// The text of a row.
    #[inline]
    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        self.dictionary.text(self.ids.get(row))
    }

    /// The rows of one id.
    pub(crate) fn rows_of(&self, rows: usize, id: u32) -> RowSet {
        if id as usize > self.dictionary.len() {
            return RowSet::none(rows);
        }
        let mut bits = Bits::empty(rows);
        match &*self.ids {
            Ids::U8(ids) => match u8::try_from(id) {
                Ok(id) => bitset::equal_u8(ids, id, bits.blocks_mut()),
                Err(_) => return RowSet::none(rows),
            },
            Ids::U16(ids) => fill(ids, &mut bits, |value| u32::from(value) == id),
            Ids::U32(ids) => fill(ids, &mut bits, |value| value == id),
        }
        bits.truncate(rows);
        RowSet::from_bits(rows, bits)
    }

    /// The rows whose value passes; each distinct value is tested once.
    pub(crate) fn select(&self, rows: usize, test: &dyn ValueTest) -> RowSet {
        match test.shape() {
            Shape::Exact(text) => match self.dictionary.find(text) {
                Some(id) => return self.rows_of(rows, id),
                None => return RowSet::none(rows),
            },
            Shape::Absent => return self.rows_of(rows, ABSENT),
            Shape::Present => return self.rows_of(rows, ABSENT).complement(),
            Shape::Affix(..) | Shape::Opaque => {}
        }
        let mut passes = vec![test.test(None)];
        passes.extend((1..=self.dictionary.len()).map(|id| test.test(self.dictionary.text(id as u32))));
        self.by_id(rows, &passes)
    }

    /// The rows whose id passes.
    pub(crate) fn by_id(&self, rows: usize, passes: &[bool]) -> RowSet {
        let mut winners = passes.iter().enumerate().filter(|(_, passes)| **passes).map(|(id, _)| id);
        match (winners.next(), winners.next()) {
            (None, _) => return RowSet::none(rows),
            (Some(id), None) => return self.rows_of(rows, id as u32),
            _ => {}
        }
        let mut bits = Bits::empty(rows);
        let pass = |id: usize| passes.get(id).copied().unwrap_or(false);
        match &*self.ids {
            Ids::U8(ids) => {
                let mut table = [false; 256];
                table.iter_mut().zip(passes).for_each(|(slot, passes)| *slot = *passes);
                fill(ids, &mut bits, |id| table.get(usize::from(id)).copied().unwrap_or(false));
            }
            Ids::U16(ids) => fill(ids, &mut bits, |id| pass(usize::from(id))),
            Ids::U32(ids) => fill(ids, &mut bits, |id| pass(id as usize)),
        }
        bits.truncate(rows);
        RowSet::from_bits(rows, bits)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.ids.heap_bytes() + self.dictionary.heap_bytes()
    }
}

/// Sets bit *i* where `passes(ids[i])`.
pub(crate) fn fill<T: Copy>(ids: &[T], bits: &mut Bits, passes: impl Fn(T) -> bool) {
    let mut chunks = ids.chunks(64);
    for block in bits.blocks_mut() {
        for word in &mut block.0 {
            let mut set = 0u64;
            for (i, id) in chunks.next().unwrap_or_default().iter().enumerate() {
                set |= u64::from(passes(*id)) << i;
            }
            *word = set;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_widen_and_keep_their_values() {
        let mut ids = Ids::U8(Vec::new());
        for (row, id) in [(0, 1), (3, 255), (4, 256), (5, 65_536), (1, 7)] {
            ids.set(row, id);
        }
        ids.resize(8);
        let got: Vec<u32> = (0..9).map(|row| ids.get(row)).collect();
        assert_eq!(got, [1, 7, 0, 255, 256, 65_536, 0, 0, 0]);
    }

    #[test]
    fn texts_are_kept_once() {
        let mut dictionary = Dictionary::default();
        let ids: Vec<u32> = ["a", "", "b", "a", ""]
            .map(|text| {
                let hash = Dictionary::hash(text);
                dictionary.find_hashed(hash, text).or_else(|| dictionary.insert(hash, text)).unwrap()
            })
            .to_vec();
        assert_eq!(ids, [1, 2, 3, 1, 2]);
        assert_eq!((dictionary.text(0), dictionary.text(2), dictionary.text(4)), (None, Some(""), None));
        assert_eq!((dictionary.find("b"), dictionary.find("c")), (Some(3), None));
    }
}
