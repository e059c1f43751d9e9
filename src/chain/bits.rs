//! Sets of rows of one invoker snapshot.

use crate::sys::bitset::{self, Block};

/// A dense set: one bit per row, 64-byte aligned, padded with zeros to 512 rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    blocks: Vec<Block>,
}

impl Bits {
    /// The empty set over `rows` rows.
    pub fn empty(rows: usize) -> Bits {
        Bits { blocks: vec![Block::default(); rows.div_ceil(512)] }
    }

    /// All of `rows` rows.
    pub fn full(rows: usize) -> Bits {
        let mut bits = Bits { blocks: vec![Block([u64::MAX; 8]); rows.div_ceil(512)] };
        bits.truncate(rows);
        bits
    }

    /// The rows listed; ones outside are ignored.
    pub fn from_rows(rows: usize, list: impl IntoIterator<Item = u32>) -> Bits {
        let mut bits = Bits::empty(rows);
        for row in list {
            if (row as usize) < rows {
                bits.insert(row as usize);
            }
        }
        bits
    }

    /// Clears every row from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        let first = rows / 64;
        for (i, word) in self.words_mut().enumerate().skip(first) {
            *word = if i == first { *word & ((1 << (rows % 64)) - 1) } else { 0 };
        }
    }

    /// The blocks, for the kernels.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks, for the kernels. Bits behind the last row must stay zero.
    #[inline]
    pub fn blocks_mut(&mut self) -> &mut [Block] {
        &mut self.blocks
    }

    /// The words, row 0 in the lowest bit of the first.
    #[inline]
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.iter().flat_map(|block| block.0)
    }

    fn words_mut(&mut self) -> impl Iterator<Item = &mut u64> + '_ {
        self.blocks.iter_mut().flat_map(|block| block.0.iter_mut())
    }

    /// Adds a row; one outside is ignored.
    #[inline]
    pub fn insert(&mut self, row: usize) {
        if let Some(block) = self.blocks.get_mut(row / 512) {
            block.0[row / 64 % 8] |= 1 << (row % 64);
        }
    }

    /// Takes a row out.
    #[inline]
    pub fn remove(&mut self, row: usize) {
        if let Some(block) = self.blocks.get_mut(row / 512) {
            block.0[row / 64 % 8] &= !(1 << (row % 64));
        }
    }

    /// True when the row is in the set.
    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        self.blocks.get(row / 512).is_some_and(|block| block.0[row / 64 % 8] >> (row % 64) & 1 != 0)
    }

    /// Number of rows in the set.
    pub fn count(&self) -> usize {
        bitset::count(&self.blocks)
    }

    /// True when no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| block.0.iter().fold(0, |seen, word| seen | word) == 0)
    }

    /// The rows, ascending.
    pub fn iter(&self) -> BitsIter<'_> {
        BitsIter { blocks: &self.blocks, at: 0, word: self.blocks.first().map_or(0, |block| block.0[0]) }
    }

    /// The `n`-th row of the set, from 0.
    pub fn nth(&self, mut n: usize) -> Option<usize> {
        for (i, block) in self.blocks.iter().enumerate() {
            let inside = block.0.iter().map(|word| word.count_ones() as usize).sum();
            if n >= inside {
                n -= inside;
                continue;
            }
            return nth_in_block(block, n).map(|row| i * 512 + row);
        }
        None
    }

    /// Closes the gap that taking away row `row` leaves: later rows move down by one.
    pub(crate) fn close_gap(&mut self, row: usize) {
        let at = row / 64;
        let mut carry = 0u64;
        for (i, word) in self.words_mut().enumerate().skip(at).collect::<Vec<_>>().into_iter().rev() {
            let next = *word & 1;
            *word = if i == at {
                let low = (1u64 << (row % 64)) - 1;
                (*word & low) | (((*word >> 1) | carry << 63) & !low)
            } else {
                (*word >> 1) | carry << 63
            };
            carry = next;
        }
    }

    /// Makes room for `rows` rows; new ones are not in the set.
    pub(crate) fn grow(&mut self, rows: usize) {
        self.blocks.resize(rows.div_ceil(512), Block::default());
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
    }
}

/// The `n`-th row of a block.
pub(crate) fn nth_in_block(block: &Block, mut n: usize) -> Option<usize> {
    for (i, word) in block.0.iter().enumerate() {
        let inside = word.count_ones() as usize;
        if n >= inside {
            n -= inside;
            continue;
        }
        let mut word = *word;
        for _ in 0..n {
            word &= word - 1;
        }
        return Some(i * 64 + word.trailing_zeros() as usize);
    }
    None
}

/// Ascending rows of a [`Bits`].
#[derive(Clone, Debug)]
pub struct BitsIter<'a> {
    blocks: &'a [Block],
    /// Index of the word being read.
    at: usize,
    word: u64,
}

impl Iterator for BitsIter<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            self.at += 1;
            self.word = self.blocks.get(self.at / 8)?.0[self.at % 8];
        }
        let row = self.at * 64 + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(row)
    }
}

/// An immutable set of rows in the form that suits its size, with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSet {
    rows: usize,
    count: usize,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// No row.
    None,
    /// Every row.
    All,
    /// Fewer than 1 row in 64: the rows, ascending.
    Sparse(Box<[u32]>),
    /// One bit per row.
    Dense(Bits),
}

impl RowSet {
    /// Every one of `rows` rows.
    pub fn all(rows: usize) -> RowSet {
        RowSet { rows, count: rows, form: if rows == 0 { Form::None } else { Form::All } }
    }

    /// No row.
    pub fn none(rows: usize) -> RowSet {
        RowSet { rows, count: 0, form: Form::None }
    }

    /// Takes the form that suits the set.
    pub fn from_bits(rows: usize, bits: Bits) -> RowSet {
        let count = bits.count();
        let form = if count == 0 {
            Form::None
        } else if count == rows {
            Form::All
        } else if count < rows / 64 {
            Form::Sparse(bits.iter().map(|row| row as u32).collect())
        } else {
            Form::Dense(bits)
        };
        RowSet { rows, count, form }
    }

    /// From ascending rows.
    pub fn from_list(rows: usize, list: Vec<u32>) -> RowSet {
        if !list.is_empty() && list.len() < rows / 64 {
            RowSet { rows, count: list.len(), form: Form::Sparse(list.into_boxed_slice()) }
        } else {
            RowSet::from_bits(rows, Bits::from_rows(rows, list))
        }
    }

    /// How many rows the snapshot has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many rows are in the set.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// True when every row is in the set.
    #[inline]
    pub fn is_all(&self) -> bool {
        self.count == self.rows
    }

    /// True when no row is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// True when the row is in the set.
    pub fn contains(&self, row: usize) -> bool {
        match &self.form {
            Form::None => false,
            Form::All => row < self.rows,
            Form::Sparse(list) => u32::try_from(row).is_ok_and(|row| list.binary_search(&row).is_ok()),
            Form::Dense(bits) => bits.contains(row),
        }
    }

    /// As a dense set of its own.
    pub fn to_bits(&self) -> Bits {
        match &self.form {
            Form::None => Bits::empty(self.rows),
            Form::All => Bits::full(self.rows),
            Form::Sparse(list) => Bits::from_rows(self.rows, list.iter().copied()),
            Form::Dense(bits) => bits.clone(),
        }
    }

    /// Rows not in this set.
    pub fn complement(&self) -> RowSet {
        match &self.form {
            Form::None => RowSet::all(self.rows),
            Form::All => RowSet::none(self.rows),
            _ => {
                let mut bits = self.to_bits();
                for word in bits.words_mut() {
                    *word = !*word;
                }
                bits.truncate(self.rows);
                RowSet::from_bits(self.rows, bits)
            }
        }
    }

    /// Rows in both.
    pub fn and(&self, other: &RowSet) -> RowSet {
        match (&self.form, &other.form) {
            (Form::All, _) => other.clone(),
            (_, Form::All) => self.clone(),
            (Form::None, _) | (_, Form::None) => RowSet::none(self.rows),
            (Form::Sparse(list), _) => {
                let both = |row: &u32| other.contains(*row as usize);
                RowSet::from_list(self.rows, list.iter().copied().filter(both).collect())
            }
            (_, Form::Sparse(_)) => other.and(self),
            (Form::Dense(a), Form::Dense(b)) => {
                let mut out = Bits::empty(self.rows);
                bitset::and_chain(Some(a.blocks()), &[b.blocks()], out.blocks_mut());
                RowSet::from_bits(self.rows, out)
            }
        }
    }

    /// Rows in at least one.
    pub fn or(&self, other: &RowSet) -> RowSet {
        match (&self.form, &other.form) {
            (Form::All, _) | (_, Form::None) => self.clone(),
            (_, Form::All) | (Form::None, _) => other.clone(),
            _ => {
                let mut bits = self.to_bits();
                match &other.form {
                    Form::Sparse(list) => list.iter().for_each(|row| bits.insert(*row as usize)),
                    Form::Dense(more) => bits.words_mut().zip(more.words()).for_each(|(a, b)| *a |= b),
                    Form::None | Form::All => {}
                }
                RowSet::from_bits(self.rows, bits)
            }
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.form {
            Form::None | Form::All => 0,
            Form::Sparse(list) => list.len() * 4,
            Form::Dense(bits) => bits.heap_bytes(),
        }
    }
}

/// Rows of a routing result, borrowed: what load balancing and views read.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// All rows below this number.
    All(usize),
    /// These, ascending.
    List(&'a [u32]),
    /// These; the number tells how many, the ranks how many lie in front of each block (or none are known).
    Dense(&'a Bits, usize, &'a [u32]),
}

impl<'a> Rows<'a> {
    /// How many rows.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Rows::All(rows) => *rows,
            Rows::List(list) => list.len(),
            Rows::Dense(_, count, _) => *count,
        }
    }

    /// True when there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `n`-th row, from 0, without materialising the list.
    #[inline]
    pub fn nth(&self, n: usize) -> Option<usize> {
        match self {
            Rows::All(rows) => Some(n).filter(|n| n < rows),
            Rows::List(list) => list.get(n).map(|row| *row as usize),
            Rows::Dense(bits, count, _) if n >= *count || bits.blocks().is_empty() => None,
            Rows::Dense(bits, _, []) => bits.nth(n),
            Rows::Dense(bits, _, ranks) => {
                let block = ranks.partition_point(|rank| *rank as usize <= n).checked_sub(1)?;
                let before = *ranks.get(block)? as usize;
                nth_in_block(bits.blocks().get(block)?, n - before).map(|row| block * 512 + row)
            }
        }
    }

    /// True when the row is one of them.
    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        match self {
            Rows::All(rows) => row < *rows,
            Rows::List(list) => u32::try_from(row).is_ok_and(|row| list.binary_search(&row).is_ok()),
            Rows::Dense(bits, ..) => bits.contains(row),
        }
    }

    /// The rows, ascending.
    pub fn iter(&self) -> RowsIter<'a> {
        match *self {
            Rows::All(rows) => RowsIter::All(0..rows),
            Rows::List(list) => RowsIter::List(list.iter()),
            Rows::Dense(bits, ..) => RowsIter::Dense(bits.iter()),
        }
    }
}

/// Ascending rows of a [`Rows`].
#[derive(Clone, Debug)]
pub enum RowsIter<'a> {
    /// Of [`Rows::All`].
    All(std::ops::Range<usize>),
    /// Of [`Rows::List`].
    List(std::slice::Iter<'a, u32>),
    /// Of [`Rows::Dense`].
    Dense(BitsIter<'a>),
}

impl Iterator for RowsIter<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        match self {
            RowsIter::All(range) => range.next(),
            RowsIter::List(list) => list.next().map(|row| *row as usize),
            RowsIter::Dense(bits) => bits.next(),
        }
    }
}

/// How many rows lie in front of each block.
pub(crate) fn ranks(bits: &Bits) -> Box<[u32]> {
    let mut sum = 0;
    bits.blocks()
        .iter()
        .map(|block| {
            let before = sum;
            sum += block.0.iter().map(|word| word.count_ones()).sum::<u32>();
            before
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(rows: usize, step: usize) -> Vec<u32> {
        (0..rows).filter(|row| row % step == 1 || row % 97 == 0).map(|row| row as u32).collect()
    }

    #[test]
    fn algebra_holds_in_every_form() {
        for rows in [1usize, 64, 500, 513, 3000] {
            let lists: Vec<Vec<u32>> = vec![
                Vec::new(),
                (0..rows as u32).collect(),
                pattern(rows, 2),
                pattern(rows, 3),
                vec![rows as u32 / 2],
                vec![0, rows as u32 - 1],
            ];
            for a in &lists {
                for b in &lists {
                    let (a_set, b_set) =
                        (RowSet::from_list(rows, a.clone()), RowSet::from_list(rows, b.clone()));
                    let (and, or, not) = (a_set.and(&b_set), a_set.or(&b_set), a_set.complement());
                    for row in 0..rows {
                        let (in_a, in_b) = (a.contains(&(row as u32)), b.contains(&(row as u32)));
                        assert_eq!(and.contains(row), in_a && in_b);
                        assert_eq!(or.contains(row), in_a || in_b);
                        assert_eq!(not.contains(row), !in_a);
                    }
                    let rows_of = |set: &RowSet| set.to_bits().iter().count();
                    assert_eq!((and.count(), or.count()), (rows_of(&and), rows_of(&or)));
                }
            }
        }
    }

    #[test]
    fn nth_agrees_with_iteration() {
        let bits = Bits::from_rows(3000, pattern(3000, 7));
        let ranks = ranks(&bits);
        let list: Vec<u32> = bits.iter().map(|row| row as u32).collect();
        let forms =
            [Rows::Dense(&bits, list.len(), &ranks), Rows::Dense(&bits, list.len(), &[]), Rows::List(&list)];
        for rows in forms {
            for (n, row) in list.iter().enumerate() {
                assert_eq!(rows.nth(n), Some(*row as usize));
            }
            assert_eq!(rows.nth(list.len()), None);
            assert!(rows.iter().eq(list.iter().map(|row| *row as usize)));
        }
    }

    #[test]
    fn a_closed_gap_moves_later_rows_down() {
        for gap in [0, 1, 63, 64, 65, 511, 512, 900] {
            let list = pattern(1200, 3);
            let mut bits = Bits::from_rows(1200, list.iter().copied());
            bits.close_gap(gap);
            let expect: Vec<usize> = list
                .iter()
                .map(|row| *row as usize)
                .filter(|row| *row != gap)
                .map(|row| if row > gap { row - 1 } else { row })
                .collect();
            assert_eq!(bits.iter().collect::<Vec<_>>(), expect, "{gap}");
        }
    }
}
