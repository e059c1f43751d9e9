//! What a pick chooses from: rows of a list, in ascending order, in whatever form the router left them.

use super::Visit;
use core::ops::ControlFlow;

/// A set of rows in ascending order.
pub trait Candidates {
    /// How many.
    fn len(&self) -> usize;

    /// True when there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a position; any row of the list when `position >= len`.
    fn nth(&self, position: usize) -> u32;

    /// Position of a row; `None` when it is not in the set.
    fn position(&self, row: u32) -> Option<usize>;

    /// Whether the row is in the set.
    fn contains(&self, row: u32) -> bool {
        self.position(row).is_some()
    }

    /// Shows every row, ascending, until the visitor breaks.
    fn visit(&self, visitor: impl FnMut(u32) -> Visit);

    /// Shows every row, ascending.
    fn each(&self, mut visitor: impl FnMut(u32)) {
        self.visit(|row| {
            visitor(row);
            ControlFlow::Continue(())
        });
    }
}

/// The candidates that pass a test. Counting them costs one pass, as does finding one by position: for second
/// choices, which are rare.
pub(super) struct Filtered<'a, C, F> {
    inner: &'a C,
    passes: F,
    len: usize,
}

impl<'a, C: Candidates, F: Fn(u32) -> bool> Filtered<'a, C, F> {
    /// `None` when nothing passes.
    pub(super) fn new(inner: &'a C, passes: F) -> Option<Self> {
        let mut len = 0;
        inner.each(|row| len += usize::from(passes(row)));
        (len > 0).then_some(Filtered { inner, passes, len })
    }
}

impl<C: Candidates, F: Fn(u32) -> bool> Candidates for Filtered<'_, C, F> {
    fn len(&self) -> usize {
        self.len
    }

    fn nth(&self, position: usize) -> u32 {
        let (mut left, mut found) = (position, 0);
        self.visit(|row| {
            found = row;
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            ControlFlow::Continue(())
        });
        found
    }

    fn position(&self, row: u32) -> Option<usize> {
        if !self.contains(row) {
            return None;
        }
        let mut position = 0;
        self.visit(|other| {
            if other == row {
                return ControlFlow::Break(());
            }
            position += 1;
            ControlFlow::Continue(())
        });
        Some(position)
    }

    fn contains(&self, row: u32) -> bool {
        self.inner.contains(row) && (self.passes)(row)
    }

    fn visit(&self, mut visitor: impl FnMut(u32) -> Visit) {
        self.inner.visit(|row| if (self.passes)(row) { visitor(row) } else { ControlFlow::Continue(()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::bits::Rows;

    fn all<C: Candidates>(candidates: &C) -> Vec<u32> {
        let mut rows = Vec::new();
        candidates.each(|row| rows.push(row));
        assert_eq!(rows.len(), candidates.len());
        for (position, row) in rows.iter().enumerate() {
            assert_eq!((candidates.nth(position), candidates.position(*row)), (*row, Some(position)));
        }
        rows
    }

    #[test]
    fn every_form_agrees_with_itself() {
        assert_eq!(all(&Rows::All(3)), [0, 1, 2]);
        let rows = Rows::List(&[2, 5, 7, 8]);
        assert_eq!(all(&rows), [2, 5, 7, 8]);
        assert_eq!((rows.position(6), Rows::All(3).position(3)), (None, None));
        let odd = Filtered::new(&rows, |row| row % 2 == 1).unwrap();
        assert_eq!(all(&odd), [5, 7]);
        assert!(!odd.contains(8) && !odd.contains(9));
        assert!(Filtered::new(&rows, |row| row > 8).is_none());
    }
}
