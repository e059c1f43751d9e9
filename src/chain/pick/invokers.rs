//! The invoker snapshot and its row sets as picks see them.

use super::{Candidates, Providers, Visit};
use crate::chain::bits::Rows;
use crate::chain::column::ColumnData;
use crate::chain::program::Column;
use crate::chain::snapshot::Invokers;

impl Providers for Invokers {
    fn len(&self) -> u32 {
        u32::try_from(Invokers::len(self)).unwrap_or(u32::MAX)
    }

    #[inline]
    fn tag(&self, row: u32) -> u64 {
        Invokers::tag(self, row as usize).unwrap_or_default()
    }

    fn row_of(&self, tag: u64) -> Option<u32> {
        Invokers::row_of(self, tag).and_then(|row| u32::try_from(row).ok())
    }

    fn address(&self, row: u32, out: &mut String) {
        out.push_str(&self.column(row as usize, &Column::Address).unwrap_or_default());
    }

    fn keys(&self, visitor: &mut dyn FnMut(&str)) {
        let mut keys: Vec<&str> = self.parameters().collect();
        keys.sort_unstable();
        keys.into_iter().for_each(visitor);
    }

    fn values(&self, key: &str, visitor: &mut dyn FnMut(u32, &str)) {
        if let Some(data) = self.data(key) {
            each(data, Providers::len(self), visitor);
        }
    }

    fn interfaces(&self, visitor: &mut dyn FnMut(u32, &str)) {
        let interface = self.data("interface");
        for row in 0..Providers::len(self) {
            let named = interface.and_then(|data| data.text(row as usize)).filter(|name| !name.is_empty());
            match named {
                Some(name) => visitor(row, name),
                None => {
                    if let Some(path) = self.column(row as usize, &Column::Path) {
                        visitor(row, &path);
                    }
                }
            }
        }
    }
}

fn each(data: &ColumnData, rows: u32, visitor: &mut dyn FnMut(u32, &str)) {
    for row in 0..rows {
        if let Some(text) = data.text(row as usize) {
            visitor(row, text);
        }
    }
}

impl Candidates for Rows<'_> {
    #[inline]
    fn len(&self) -> usize {
        Rows::len(self)
    }

    #[inline]
    fn nth(&self, position: usize) -> u32 {
        Rows::nth(self, position).unwrap_or(0) as u32
    }

    fn position(&self, row: u32) -> Option<usize> {
        match self {
            Rows::All(rows) => Some(row as usize).filter(|row| row < rows),
            Rows::List(list) => list.binary_search(&row).ok(),
            Rows::Dense(bits, ..) => bits.contains(row as usize).then(|| {
                let (word, bit) = (row as usize / 64, row % 64);
                let before: u32 = bits.words().take(word).map(u64::count_ones).sum();
                let own = bits.words().nth(word).unwrap_or(0) & ((1 << bit) - 1);
                (before + own.count_ones()) as usize
            }),
        }
    }

    #[inline]
    fn contains(&self, row: u32) -> bool {
        Rows::contains(self, row as usize)
    }

    #[inline]
    fn visit(&self, mut visitor: impl FnMut(u32) -> Visit) {
        let mut see = |row: usize| visitor(row as u32);
        // One loop per form: the iterator would ask for the form at every row.
        let _ = match self.iter() {
            crate::chain::bits::RowsIter::All(mut range) => range.try_for_each(&mut see),
            crate::chain::bits::RowsIter::List(mut list) => list.try_for_each(|row| see(*row as usize)),
            crate::chain::bits::RowsIter::Dense(mut bits) => bits.try_for_each(&mut see),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallStats, Plan, Quirks, Request};
    use super::*;
    use crate::chain::bits::Bits;
    use crate::chain::pick::{Balance, Picker, Sticky};
    use crate::runtime::clock::Clock;
    use crate::runtime::random::Stream;

    #[test]
    fn rows_in_every_form_agree_with_themselves() {
        let list: Vec<u32> = (0..2000).filter(|row| row % 3 == 1).collect();
        let bits = Bits::from_rows(2000, list.iter().copied());
        let ranks = crate::chain::bits::ranks(&bits);
        for rows in
            [Rows::List(&list), Rows::Dense(&bits, list.len(), &ranks), Rows::Dense(&bits, list.len(), &[])]
        {
            let mut seen = Vec::new();
            rows.each(|row| seen.push(row));
            assert_eq!(seen, list);
            for (position, row) in list.iter().enumerate() {
                assert_eq!((Candidates::nth(&rows, position), rows.position(*row)), (*row, Some(position)));
            }
            assert_eq!((rows.position(0), Candidates::contains(&rows, 0)), (None, false));
        }
    }

    #[test]
    fn a_snapshot_tells_what_picks_need() {
        let urls = [
            "dubbo://10.0.0.1:20880/S?m.weight=0&loadbalance=roundrobin",
            "dubbo://10.0.0.2:20880/S?default.weight=7",
            "dubbo://[::1]:20880/S?weight=3",
        ];
        let list = Invokers::from_urls(urls).unwrap();
        let plan = Plan::build(&*list, Quirks::default(), CallStats::new().service("S")).unwrap();
        assert_eq!([0, 1, 2].map(|row| plan.weight(b"m", row, 0)), [0, 7, 3]);
        assert_eq!(plan.weight(b"other", 0, 0), 100);
        let mut address = String::new();
        Providers::address(&*list, 2, &mut address);
        assert_eq!(address, "[::1]:20880");
        let (sticky, clock) = (Sticky::new(), Clock::system());
        let mut picker = Picker {
            providers: &*list,
            plan: &plan,
            sticky: &sticky,
            clock: &clock,
            draw: Stream::seeded(1),
        };
        let request = Request { balance: Some(Balance::RoundRobin), ..Request::new(b"m") };
        let picks: Vec<u64> = (0..10).map(|_| picker.pick(&Rows::All(3), &request).unwrap().tag).collect();
        assert_eq!(picks.iter().filter(|tag| **tag == 1).count(), 7);
        // A default tag may be 0, and sticks like any other.
        let stay = Request { sticky: Some(true), ..Request::new(b"m") };
        let home = picker.pick(&Rows::All(1), &stay).unwrap().tag;
        assert_eq!((home, picker.pick(&Rows::All(3), &stay).unwrap().tag), (0, 0));
    }
}
