//! The invoker list: immutable, columnar, in the host's row order.
//!
//! Each row carries the host's tag, so a host gets its own object back whatever rows move. An update makes a new
//! list that shares every column the update did not touch.

use std::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::bits::{Bits, RowSet};
pub use super::builder::InvokersBuilder;
use super::column::{ABSENT, ColumnData, Dictionary, Ids, fill};
use super::live::Live;
use super::program::{Column, Shape, Test};
use super::selection::SelectionCache;
use crate::error::Result;

/// Columns that every list has, in this order; parameters follow.
const PROTOCOL: usize = 0;
const USERNAME: usize = 1;
const PASSWORD: usize = 2;
const HOST: usize = 3;
const PORT: usize = 4;
const PATH: usize = 5;
pub(super) const FIXED: usize = 6;

/// Most parameters of different names one list takes. Beyond it the list is refused: names come from the network.
pub const MAX_COLUMNS: usize = 4096;

/// An immutable list of invokers. Shared by [`Arc`]; any thread.
pub struct Invokers {
    pub(super) id: u64,
    pub(super) rows: usize,
    pub(super) tags: Tags,
    pub(super) columns: Vec<ColumnData>,
    pub(super) names: Arc<HashMap<Arc<str>, usize>>,
    pub(super) texts: Option<Arc<Texts>>,
    pub(crate) cache: Mutex<SelectionCache>,
    /// Dropped with the last list that can name its tags.
    pub(super) keep: Option<Arc<dyn Any + Send + Sync>>,
    pub(super) _live: Live,
}

#[derive(Clone)]
pub(super) enum Tags {
    /// The row number.
    Rows,
    Given(Arc<Vec<u64>>),
}

#[derive(Clone, Default)]
pub(super) struct Texts {
    pub(super) list: Vec<Arc<str>>,
}

impl Invokers {
    /// The empty list.
    pub fn none() -> Arc<Invokers> {
        InvokersBuilder::new().assemble()
    }

    /// Reads a whole list; tags are the positions in `urls`. See [`InvokersBuilder`] for tags of one's own.
    pub fn from_urls<'a>(urls: impl IntoIterator<Item = &'a str>) -> Result<Arc<Invokers>> {
        let mut builder = InvokersBuilder::new();
        for url in urls {
            builder.add(url, None)?;
        }
        builder.finish()
    }

    /// Names of the parameters that occur, in no order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|name| &**name)
    }

    /// Different for every list of this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Number of invokers.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The host's tag of a row.
    #[inline]
    pub fn tag(&self, row: usize) -> Option<u64> {
        match &self.tags {
            Tags::Rows if row < self.rows => Some(row as u64),
            Tags::Rows => None,
            Tags::Given(tags) => tags.get(row).copied(),
        }
    }

    /// All tags in row order; `None` when a tag is its row number.
    #[inline]
    pub fn tags(&self) -> Option<&[u64]> {
        match &self.tags {
            Tags::Rows => None,
            Tags::Given(tags) => Some(tags),
        }
    }

    /// The row of a tag. Looks at every row.
    pub fn row_of(&self, tag: u64) -> Option<usize> {
        match &self.tags {
            Tags::Rows => usize::try_from(tag).ok().filter(|row| *row < self.rows),
            Tags::Given(tags) => tags.iter().position(|own| *own == tag),
        }
    }

    /// The URL text of a row, if texts were kept.
    pub fn text(&self, row: usize) -> Option<&str> {
        self.texts.as_ref()?.list.get(row).map(|text| &**text)
    }

    /// What a column holds in a row; `None` when absent.
    pub fn column(&self, row: usize, column: &Column) -> Option<Cow<'_, str>> {
        let fixed = |at: usize| self.columns.get(at).and_then(|data| data.text(row));
        let parameter = |name: &str| self.data(name).and_then(|data| data.text(row));
        let text = match column {
            Column::Parameter(name) => parameter(name),
            Column::Protocol => fixed(PROTOCOL),
            Column::Username => fixed(USERNAME),
            Column::Password => fixed(PASSWORD),
            Column::Host => fixed(HOST),
            Column::Port => fixed(PORT),
            Column::Path => fixed(PATH),
            Column::Address => {
                return match (fixed(HOST), fixed(PORT)) {
                    (host, Some(port)) => Some(Cow::Owned(format!("{}:{port}", host.unwrap_or_default()))),
                    (host, None) => host.map(Cow::Borrowed),
                };
            }
            Column::Application => parameter("remote.application")
                .filter(|text| !text.is_empty())
                .or_else(|| parameter("application").filter(|text| !text.is_empty())),
        };
        text.map(Cow::Borrowed)
    }

    /// The different applications of the providers, in order of their first rows.
    pub fn applications(&self) -> Vec<&str> {
        let columns = ["remote.application", "application"].map(|name| self.data(name));
        let mut known = columns.map(|data| vec![false; data.map_or(0, |data| data.dictionary.len()) + 1]);
        let mut found: Vec<&str> = Vec::new();
        for row in 0..self.rows {
            for (data, known) in columns.iter().zip(&mut known) {
                let Some(data) = data else { continue };
                let id = data.ids.get(row);
                let Some(known) = known.get_mut(id as usize) else { continue };
                if *known {
                    break;
                }
                if let Some(text) = data.dictionary.text(id).filter(|text| !text.is_empty()) {
                    *known = true;
                    if !found.contains(&text) {
                        found.push(text);
                    }
                    break;
                }
            }
        }
        found
    }

    /// `host:port` of a row, for people.
    pub fn address(&self, row: usize) -> String {
        self.column(row, &Column::Address).map(Cow::into_owned).unwrap_or_default()
    }

    pub(crate) fn data(&self, parameter: &str) -> Option<&ColumnData> {
        self.names.get(parameter).and_then(|at| self.columns.get(*at))
    }

    fn data_of(&self, column: &Column) -> Option<&ColumnData> {
        let at = match column {
            Column::Parameter(name) => return self.data(name),
            Column::Protocol => PROTOCOL,
            Column::Username => USERNAME,
            Column::Password => PASSWORD,
            Column::Host => HOST,
            Column::Port => PORT,
            Column::Path => PATH,
            Column::Address | Column::Application => return None,
        };
        self.columns.get(at)
    }

    /// The rows whose column equals a text.
    pub fn rows_equal(&self, column: &Column, text: &str) -> RowSet {
        match column {
            Column::Address => self.address_equal(text),
            Column::Application => self.each_row(column, |value| value == Some(text)),
            _ => match self.data_of(column) {
                None => RowSet::none(self.rows),
                Some(data) => match data.dictionary.find(text) {
                    None => RowSet::none(self.rows),
                    Some(id) => data.rows_of(self.rows, id),
                },
            },
        }
    }

    /// The dictionary column behind a column; `None` for computed ones and parameters that no invoker has.
    pub(crate) fn column_data(&self, column: &Column) -> Option<ColumnData> {
        self.data_of(column).cloned()
    }

    /// A number for a text of a column, if a row may have it: the dictionary's, or, for computed columns, the first
    /// such row and 1.
    pub(crate) fn value_id(&self, column: &Column, text: &str) -> Option<u32> {
        match column {
            Column::Address | Column::Application => {
                let first = self.rows_equal(column, text).to_bits().iter().next()?;
                u32::try_from(first + 1).ok()
            }
            _ => self.data_of(column)?.dictionary.find(text),
        }
    }

    /// The largest number [`value_id`](Self::value_id) gives.
    pub(crate) fn value_count(&self, column: &Column) -> usize {
        match column {
            Column::Address | Column::Application => self.rows,
            _ => self.data_of(column).map_or(0, |data| data.dictionary.len()),
        }
    }

    /// The rows of a number that [`value_id`](Self::value_id) gave.
    pub(crate) fn rows_of_value(&self, column: &Column, id: u32) -> RowSet {
        match column {
            Column::Address | Column::Application => {
                let row = (id as usize).wrapping_sub(1);
                match self.column(row, column) {
                    Some(text) => self.rows_equal(column, &text),
                    None => RowSet::none(self.rows),
                }
            }
            _ => self
                .data_of(column)
                .map_or_else(|| RowSet::none(self.rows), |data| data.rows_of(self.rows, id)),
        }
    }

    /// The rows a test selects, without looking at the cache.
    pub(crate) fn evaluate(&self, column: &Column, test: &Test) -> RowSet {
        match column {
            Column::Address => self.evaluate_address(test),
            Column::Application => self.each_row(column, |value| test.test(value)),
            _ => match self.data_of(column) {
                Some(data) => data.select(self.rows, &**test),
                None if test.test(None) => RowSet::all(self.rows),
                None => RowSet::none(self.rows),
            },
        }
    }

    fn each_row(&self, column: &Column, passes: impl Fn(Option<&str>) -> bool) -> RowSet {
        let list = (0..self.rows).filter(|row| passes(self.column(*row, column).as_deref()));
        RowSet::from_list(self.rows, list.map(|row| row as u32).collect())
    }

    fn fixed(&self, at: usize) -> (&Ids, &Dictionary) {
        static EMPTY: once_cell::sync::Lazy<ColumnData> = once_cell::sync::Lazy::new(ColumnData::default);
        let data = self.columns.get(at).unwrap_or(&EMPTY);
        (&data.ids, &data.dictionary)
    }

    /// Addresses are made of two columns; most of them are distinct, so tests run per row, on one buffer.
    fn evaluate_address(&self, test: &Test) -> RowSet {
        let (hosts, host_texts) = self.fixed(HOST);
        let (ports, port_texts) = self.fixed(PORT);
        match test.shape() {
            Shape::Exact(text) => return self.address_equal(text),
            // `*:20880`: for rows with a port the tail decides; a host alone must be looked at.
            Shape::Affix("", tail) if tail.len() > 1 && tail.rfind(':') == Some(0) => {
                let port = port_texts.find(tail.get(1..).unwrap_or_default());
                let mut bits = Bits::empty(self.rows);
                let rows: Vec<u32> = (0..self.rows as u32).collect();
                fill(&rows, &mut bits, |row| {
                    let own = ports.get(row as usize);
                    if own == ABSENT {
                        host_texts.text(hosts.get(row as usize)).is_some_and(|host| host.ends_with(tail))
                    } else {
                        Some(own) == port
                    }
                });
                return RowSet::from_bits(self.rows, bits);
            }
            // `10.20.*`: a head without a colon lies inside the host.
            Shape::Affix(head, "") if !head.is_empty() && !head.contains(':') => {
                let mut passes = vec![false];
                passes.extend(
                    (1..=host_texts.len())
                        .map(|id| host_texts.text(id as u32).is_some_and(|host| host.starts_with(head))),
                );
                return self
                    .columns
                    .get(HOST)
                    .map_or_else(|| RowSet::none(self.rows), |data| data.by_id(self.rows, &passes));
            }
            _ => {}
        }
        let mut buffer = String::new();
        let mut list = Vec::new();
        let mut last = (u32::MAX, u32::MAX, false);
        for row in 0..self.rows {
            let (host, port) = (hosts.get(row), ports.get(row));
            if (host, port) != (last.0, last.1) {
                buffer.clear();
                buffer.push_str(host_texts.text(host).unwrap_or_default());
                if let Some(port) = port_texts.text(port) {
                    buffer.push(':');
                    buffer.push_str(port);
                }
                last = (host, port, test.test(Some(buffer.as_str()).filter(|text| !text.is_empty())));
            }
            if last.2 {
                list.push(row as u32);
            }
        }
        RowSet::from_list(self.rows, list)
    }

    fn address_equal(&self, text: &str) -> RowSet {
        let (hosts, host_texts) = self.fixed(HOST);
        let (ports, port_texts) = self.fixed(PORT);
        let whole = host_texts.find(text).map(|host| (host, ABSENT));
        let split = text.rsplit_once(':').and_then(|(host, port)| {
            let host = if host.is_empty() { ABSENT } else { host_texts.find(host)? };
            Some((host, port_texts.find(port)?))
        });
        let same = |row: &u32| {
            let own = (hosts.get(*row as usize), ports.get(*row as usize));
            Some(own) == whole || Some(own) == split
        };
        if whole.is_none() && split.is_none() {
            return RowSet::none(self.rows);
        }
        RowSet::from_list(self.rows, (0..self.rows as u32).filter(same).collect())
    }

    /// Bytes on the heap for columns and tags; URL texts and cached selections not counted.
    pub fn heap_bytes(&self) -> usize {
        let tags = match &self.tags {
            Tags::Rows => 0,
            Tags::Given(tags) => tags.capacity() * 8,
        };
        tags + self.columns.iter().map(ColumnData::heap_bytes).sum::<usize>()
    }

    /// Bytes on the heap for cached selections.
    pub fn cache_bytes(&self) -> usize {
        self.cache.lock().heap_bytes()
    }
}

impl fmt::Debug for Invokers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invokers({} rows)", self.rows)
    }
}
