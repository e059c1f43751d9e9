//! Makes invoker lists: whole ones from URL texts, or updates of a list that share what they do not touch.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashTable;
use memchr::memmem;
use once_cell::sync::Lazy;
use parking_lot::Mutex;

use super::column::{ABSENT, ColumnData, Dictionary, Ids};
use super::hash;
use super::live::{Kind, Live};
use super::snapshot::{FIXED, Invokers, MAX_COLUMNS, Tags, Texts};
use super::url::Parts;
use crate::error::{Error, Result, Source, Status};

/// Something taken over from another list until it must change.
enum Held<T> {
    Shared(Arc<T>),
    Own(T),
}

impl<T: Clone> Held<T> {
    #[inline]
    fn get(&self) -> &T {
        match self {
            Held::Shared(shared) => shared,
            Held::Own(own) => own,
        }
    }

    #[inline]
    fn own(&mut self) -> &mut T {
        if let Held::Shared(shared) = self {
            *self = Held::Own(T::clone(shared));
        }
        match self {
            Held::Own(own) => own,
            // Replaced just above.
            Held::Shared(shared) => Arc::make_mut(shared),
        }
    }

    fn share(self) -> Arc<T> {
        match self {
            Held::Shared(shared) => shared,
            Held::Own(own) => Arc::new(own),
        }
    }
}

impl Invokers {
    /// Starts an update of this list: see [`InvokersBuilder::set`] and [`InvokersBuilder::remove`].
    pub fn update(self: &Arc<Invokers>) -> InvokersBuilder {
        let mut columns: Vec<Building> = self.columns.iter().map(Building::from_data).collect();
        for (name, at) in &*self.names {
            if let Some(column) = columns.get_mut(*at) {
                column.name = Arc::clone(name);
                column.default_of = default_of(name);
            }
        }
        InvokersBuilder {
            base: Some(Arc::clone(self)),
            rows: self.rows,
            given: self.rows as u64,
            tags: match &self.tags {
                Tags::Rows => (0..self.rows as u64).collect(),
                Tags::Given(tags) => tags.to_vec(),
            },
            own_tags: matches!(self.tags, Tags::Given(_)),
            columns,
            names: Arc::clone(&self.names),
            texts: self.texts.as_ref().map(|texts| Texts::clone(texts)),
            keep: self.keep.clone(),
            ascending: false,
            known: None,
            changes: Some(Vec::new()),
            shape: Vec::new(),
            defaults: Vec::new(),
            failed: None,
        }
    }
}

/// A column under construction.
struct Building {
    ids: Held<Ids>,
    dictionary: Held<Dictionary>,
    /// Id in the row before.
    last: u32,
    /// For small ids: which one followed it last time. Lists repeat values, or repeat them in turn.
    follow: Vec<u8>,
    name: Arc<str>,
    /// For `default.x`: `x`.
    default_of: Option<Arc<str>>,
}

impl Building {
    fn new(name: Arc<str>) -> Building {
        Building {
            ids: Held::Own(Ids::U8(Vec::new())),
            dictionary: Held::Own(Dictionary::default()),
            last: ABSENT,
            follow: Vec::new(),
            default_of: default_of(&name),
            name,
        }
    }

    fn from_data(data: &ColumnData) -> Building {
        Building {
            ids: Held::Shared(Arc::clone(&data.ids)),
            dictionary: Held::Shared(Arc::clone(&data.dictionary)),
            last: ABSENT,
            follow: Vec::new(),
            default_of: None,
            name: "".into(),
        }
    }

    /// The id of a text; `None` when the dictionary is full.
    #[inline]
    fn intern(&mut self, text: &str) -> Option<u32> {
        let hash = Dictionary::hash(text);
        match self.dictionary.get().find_hashed(hash, text) {
            Some(id) => Some(id),
            None => self.dictionary.own().insert(hash, text),
        }
    }

    /// The id that the next row probably has.
    #[inline(always)]
    fn guess(&self) -> u32 {
        self.follow.get(self.last as usize).map_or(ABSENT, |id| u32::from(*id))
    }

    /// Remembers what came after the row before.
    #[inline]
    fn learn(&mut self, id: u32) {
        if let (Ok(small), true) = (u8::try_from(id), self.last < 256) {
            let at = self.last as usize;
            if at >= self.follow.len() {
                self.follow.resize(at + 1, 0);
            }
            if let Some(slot) = self.follow.get_mut(at) {
                *slot = small;
            }
        }
        self.last = id;
    }

    #[inline]
    fn set(&mut self, row: usize, id: u32) {
        // Most rows come one after the other, and most columns have few values.
        if let (Held::Own(Ids::U8(ids)), Ok(small)) = (&mut self.ids, u8::try_from(id))
            && ids.len() == row
        {
            ids.push(small);
            return;
        }
        let ids = self.ids.get();
        if ids.len() <= row || ids.get(row) != id {
            self.ids.own().set(row, id);
        }
    }
}

fn default_of(name: &str) -> Option<Arc<str>> {
    name.strip_prefix("default.").filter(|plain| !plain.is_empty()).map(Into::into)
}

/// One change that cached selections must follow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// The row has another URL.
    Replaced(usize),
    /// The row is gone; later rows moved down.
    Removed(usize),
    /// A row was added at the end.
    Added,
}

/// Makes a list, whole or as an update of another. Nothing takes effect before [`finish`](Self::finish); an error
/// leaves the list it started from as it was.
pub struct InvokersBuilder {
    base: Option<Arc<Invokers>>,
    rows: usize,
    /// URLs given so far, skipped ones included: the index errors name and the tag of a URL without one.
    given: u64,
    tags: Vec<u64>,
    own_tags: bool,
    columns: Vec<Building>,
    names: Arc<HashMap<Arc<str>, usize>>,
    texts: Option<Texts>,
    keep: Option<Arc<dyn Any + Send + Sync>>,
    /// Every tag so far is above the one before, so none can repeat.
    ascending: bool,
    /// Tags seen, to find repeated ones.
    known: Option<HashTable<u64>>,
    changes: Option<Vec<Change>>,
    /// Columns in the order of the URL before.
    shape: Vec<usize>,
    /// `default.` keys of the current URL: column and id.
    defaults: Vec<(usize, u32)>,
    /// The first refusal.
    failed: Option<Error>,
}

impl Default for InvokersBuilder {
    fn default() -> Self {
        InvokersBuilder::new()
    }
}

impl InvokersBuilder {
    /// Starts a whole list.
    pub fn new() -> InvokersBuilder {
        InvokersBuilder {
            base: None,
            rows: 0,
            given: 0,
            tags: Vec::new(),
            own_tags: false,
            columns: (0..FIXED).map(|_| Building::new("".into())).collect(),
            names: Arc::default(),
            texts: None,
            keep: None,
            ascending: true,
            known: None,
            changes: None,
            shape: Vec::new(),
            defaults: Vec::new(),
            failed: None,
        }
    }

    /// Keeps the URL texts, for [`Invokers::text`]. Must be said before the first URL.
    #[must_use]
    pub fn keep_texts(mut self) -> InvokersBuilder {
        if self.rows == 0 {
            self.texts.get_or_insert_default();
        }
        self
    }

    /// Something to drop when no list can name its tags any more: lists made by update inherit it.
    #[must_use]
    pub fn keep(mut self, what: Arc<dyn Any + Send + Sync>) -> InvokersBuilder {
        self.keep = Some(what);
        self
    }

    /// Adds a provider at the end. Without a tag its tag is its index among all URLs given.
    ///
    /// `disabled=true` and `enabled=false` providers are skipped; a URL with protocol `empty` clears the list.
    ///
    /// # Errors
    /// `E_INVOKERS` naming the index: an unparsable URL (the cause has the place), a tag of 0 (a host's NULL) or one
    /// that is already there.
    pub fn add(&mut self, url: &str, tag: Option<u64>) -> Result<()> {
        let result = self.append(url, tag);
        self.noted(result)
    }

    /// The first refusal makes the whole list unusable.
    fn noted(&mut self, result: Result<()>) -> Result<()> {
        if let (Err(error), None) = (&result, &self.failed) {
            self.failed = Some(error.clone());
        }
        result
    }

    fn append(&mut self, url: &str, tag: Option<u64>) -> Result<()> {
        let index = self.given;
        self.given += 1;
        let parts = Parts::parse(url).map_err(|cause| unparsable(index, url, cause))?;
        if parts.protocol == "empty" {
            self.clear();
            return Ok(());
        }
        if is_disabled(&parts) {
            return Ok(());
        }
        let tag = match tag {
            Some(0) => return Err(refuse(index, "the tag is 0, which is no object", None)),
            Some(tag) => {
                self.own_tags = true;
                tag
            }
            None => index,
        };
        // A tag that only says the row number needs no memory, unless rows were skipped.
        self.own_tags |= tag != self.rows as u64;
        if !self.remember(tag) {
            return Err(refuse(index, &format!("tag {tag} is already in the list"), None));
        }
        let row = self.rows;
        self.rows += 1;
        self.tags.push(tag);
        if let Some(changes) = &mut self.changes {
            changes.push(Change::Added);
        }
        self.write(row, url, &parts, index)
    }

    /// Replaces the URL of the provider with this tag in its row, or adds it at the end.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn set(&mut self, url: &str, tag: u64) -> Result<()> {
        let result = self.replace(url, tag);
        self.noted(result)
    }

    fn replace(&mut self, url: &str, tag: u64) -> Result<()> {
        let Some(row) = self.tags.iter().position(|own| *own == tag) else {
            return self.append(url, Some(tag));
        };
        let index = self.given;
        self.given += 1;
        let parts = Parts::parse(url).map_err(|cause| unparsable(index, url, cause))?;
        if is_disabled(&parts) {
            self.remove_row(row);
            return Ok(());
        }
        // What the old URL had and the new one has not must become absent.
        let fixed = fixed_texts(&parts);
        for (at, column) in self.columns.iter_mut().enumerate() {
            let stays = match fixed.get(at) {
                Some(text) => text.is_some(),
                None => parts.parameters().any(|(key, _)| *key == *column.name),
            };
            if !stays && column.ids.get().get(row) != ABSENT {
                column.ids.own().set(row, ABSENT);
            }
        }
        if let Some(changes) = &mut self.changes {
            changes.push(Change::Replaced(row));
        }
        self.write(row, url, &parts, index)
    }

    /// Takes the provider with this tag out; false when there is none.
    pub fn remove(&mut self, tag: u64) -> bool {
        match self.tags.iter().position(|own| *own == tag) {
            Some(row) => {
                self.remove_row(row);
                true
            }
            None => false,
        }
    }

    fn remove_row(&mut self, row: usize) {
        for column in &mut self.columns {
            column.ids.own().remove(row);
        }
        let tag = self.tags.remove(row);
        if let Some(known) = &mut self.known
            && let Ok(entry) = known.find_entry(tag_hash(tag), |own| *own == tag)
        {
            entry.remove();
        }
        if let Some(texts) = &mut self.texts
            && row < texts.list.len()
        {
            texts.list.remove(row);
        }
        self.rows -= 1;
        self.own_tags = true;
        if let Some(changes) = &mut self.changes {
            changes.push(Change::Removed(row));
        }
    }

    fn clear(&mut self) {
        let keep_texts = self.texts.is_some();
        let given = self.given;
        let keep = self.keep.take();
        *self = InvokersBuilder { given, keep, ..InvokersBuilder::new() };
        if keep_texts {
            self.texts = Some(Texts::default());
        }
    }

    /// False when the tag is already there.
    fn remember(&mut self, tag: u64) -> bool {
        if self.known.is_none() {
            // While tags are row numbers they cannot repeat.
            if !self.own_tags {
                return true;
            }
            self.ascending &= self.tags.last().is_none_or(|last| tag > *last);
            if self.ascending {
                return true;
            }
            if self.base.is_some() && self.changes.as_ref().is_some_and(|changes| changes.len() < 16) {
                return !self.tags.contains(&tag);
            }
            let mut known = HashTable::with_capacity(self.tags.len() + 64);
            for tag in &self.tags {
                known.insert_unique(tag_hash(*tag), *tag, |tag| tag_hash(*tag));
            }
            self.known = Some(known);
        }
        let Some(known) = &mut self.known else { return true };
        match known.entry(tag_hash(tag), |own| *own == tag, |own| tag_hash(*own)) {
            hashbrown::hash_table::Entry::Occupied(_) => false,
            hashbrown::hash_table::Entry::Vacant(slot) => {
                slot.insert(tag);
                true
            }
        }
    }

    fn write(&mut self, row: usize, url: &str, parts: &Parts<'_>, index: u64) -> Result<()> {
        for (at, text) in fixed_texts(parts).into_iter().enumerate() {
            if let Some(text) = text {
                self.put(at, row, text, index)?;
            }
        }
        self.parameters(row, parts.query, index)?;
        if let Some(texts) = &mut self.texts {
            match texts.list.get_mut(row) {
                Some(slot) => *slot = url.into(),
                None => texts.list.push(url.into()),
            }
        }
        Ok(())
    }

    /// Reads the query, guessing that keys and values are those of the URL before.
    fn parameters(&mut self, row: usize, query: &str, index: u64) -> Result<()> {
        let mut rest = query;
        let mut position = 0;
        self.defaults.clear();
        while !rest.is_empty() {
            let guess = self.shape.get(position).and_then(|at| {
                let column = self.columns.get(*at)?;
                let tail = after(rest, &column.name)?.strip_prefix('=')?;
                Some((*at, tail))
            });
            let (at, tail) = match guess {
                Some(found) => found,
                None => {
                    let end =
                        rest.bytes().position(|b| matches!(b, b'=' | b'&' | b';')).unwrap_or(rest.len());
                    let (key, tail) = rest.split_at(end);
                    if key.is_empty() && !tail.starts_with('=') {
                        rest = tail.get(1..).unwrap_or_default();
                        continue;
                    }
                    let tail = tail.strip_prefix('=').unwrap_or(tail);
                    if key.is_empty() {
                        let end = value_end(tail);
                        rest = tail.get(end + 1..).unwrap_or_default();
                        continue;
                    }
                    let at = self.column_of(key, index)?;
                    self.shape.truncate(position);
                    self.shape.push(at);
                    (at, tail)
                }
            };
            position += 1;
            let Some(column) = self.columns.get_mut(at) else { break };
            // The value expected here, if it ends where this value ends.
            let guess = column.guess();
            let expected = column.dictionary.get().text(guess).and_then(|text| {
                let after = after(tail, text)?;
                match after.as_bytes().first() {
                    None => Some(""),
                    Some(b'&' | b';') => after.get(1..),
                    Some(_) => None,
                }
            });
            let id = match expected {
                Some(after) => {
                    rest = after;
                    column.last = guess;
                    guess
                }
                None => {
                    let end = value_end(tail);
                    let value = tail.get(..end).unwrap_or_default();
                    rest = tail.get(end + 1..).unwrap_or_default();
                    let id = column.intern(value).ok_or_else(|| too_much_text(index))?;
                    column.learn(id);
                    id
                }
            };
            column.set(row, id);
            if column.default_of.is_some() {
                self.defaults.push((at, id));
            }
        }
        self.shape.truncate(position);
        if !self.defaults.is_empty() {
            self.apply_defaults(row, index)?;
        }
        Ok(())
    }

    /// `default.x=v` also gives `x=v` where `x` is absent.
    #[cold]
    fn apply_defaults(&mut self, row: usize, index: u64) -> Result<()> {
        for (at, id) in std::mem::take(&mut self.defaults) {
            let Some(column) = self.columns.get(at) else { continue };
            let (Some(plain), Some(value)) = (column.default_of.clone(), column.dictionary.get().text(id))
            else {
                continue;
            };
            let value = value.to_owned();
            let target = self.column_of(&plain, index)?;
            if self.columns.get(target).is_some_and(|column| column.ids.get().get(row) == ABSENT) {
                self.put(target, row, &value, index)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, at: usize, row: usize, text: &str, index: u64) -> Result<()> {
        let Some(column) = self.columns.get_mut(at) else { return Ok(()) };
        let guess = column.guess();
        let id = if column.dictionary.get().text(guess) == Some(text) {
            column.last = guess;
            guess
        } else {
            let id = column.intern(text).ok_or_else(|| too_much_text(index))?;
            column.learn(id);
            id
        };
        column.set(row, id);
        Ok(())
    }

    fn column_of(&mut self, name: &str, index: u64) -> Result<usize> {
        if let Some(at) = self.names.get(name) {
            return Ok(*at);
        }
        if self.columns.len() >= MAX_COLUMNS {
            return Err(refuse(index, &format!("more than {MAX_COLUMNS} different parameters"), None));
        }
        let at = self.columns.len();
        let name: Arc<str> = name.into();
        self.columns.push(Building::new(Arc::clone(&name)));
        Arc::make_mut(&mut self.names).insert(name, at);
        Ok(at)
    }

    /// The list, if every URL was usable.
    ///
    /// # Errors
    /// The first error that [`add`](Self::add) or [`set`](Self::set) gave.
    pub fn finish(mut self) -> Result<Arc<Invokers>> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(self.assemble()),
        }
    }

    pub(super) fn assemble(mut self) -> Arc<Invokers> {
        let rows = self.rows;
        let whole = self.base.is_none();
        let columns = self
            .columns
            .drain(..)
            .map(|mut column| {
                if column.ids.get().len() != rows {
                    column.ids.own().resize(rows);
                }
                if whole {
                    column.ids.own().shrink();
                    column.dictionary.own().shrink();
                }
                ColumnData { ids: column.ids.share(), dictionary: column.dictionary.share() }
            })
            .collect();
        let in_order = || self.tags.iter().enumerate().all(|(row, tag)| row as u64 == *tag);
        let tags = if !self.own_tags || in_order() {
            Tags::Rows
        } else {
            self.tags.shrink_to_fit();
            Tags::Given(Arc::new(self.tags))
        };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let invokers = Invokers {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            rows,
            tags,
            columns,
            names: self.names,
            texts: self.texts.map(Arc::new),
            cache: Mutex::default(),
            keep: self.keep,
            _live: Live::new(Kind::Invokers),
        };
        if let (Some(base), Some(changes)) = (&self.base, &self.changes) {
            let inherited = base.cache.lock().carried_over(changes, &invokers);
            *invokers.cache.lock() = inherited;
        }
        Arc::new(invokers)
    }
}

fn fixed_texts<'a>(parts: &Parts<'a>) -> [Option<&'a str>; FIXED] {
    let present = |text: &'a str| Some(text).filter(|text| !text.is_empty());
    [
        present(parts.protocol),
        parts.username,
        parts.password,
        present(parts.host),
        present(parts.port),
        present(parts.path),
    ]
}

fn too_much_text(index: u64) -> Error {
    refuse(index, "the list has more than 4 GiB of text in one column", None)
}

/// What follows a prefix; most prefixes are a few bytes, for which a call to compare them costs more than comparing.
#[inline(always)]
fn after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.as_bytes().get(..prefix.len())?;
    if !hash::same(head, prefix.as_bytes()) {
        return None;
    }
    text.get(prefix.len()..)
}

fn tag_hash(tag: u64) -> u64 {
    hash::combine(hash::seed(), tag)
}

fn value_end(text: &str) -> usize {
    text.bytes().position(|b| matches!(b, b'&' | b';')).unwrap_or(text.len())
}

fn is_disabled(parts: &Parts<'_>) -> bool {
    // The common URL has neither word; looking for the words first spares reading every key.
    static WORD: Lazy<memmem::Finder<'static>> = Lazy::new(|| memmem::Finder::new("abled="));
    if WORD.find(parts.query.as_bytes()).is_none() {
        return false;
    }
    let last =
        |wanted: &str| parts.parameters().filter(|(key, _)| *key == wanted).map(|(_, value)| value).last();
    last("disabled").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || last("enabled").is_some_and(|value| value.eq_ignore_ascii_case("false"))
}

/// Characters of an unusable URL that an error shows.
const MOST_SHOWN: usize = 80;

/// A URL without what it must not tell: who logs in, and its parameters.
fn unparsable(index: u64, url: &str, cause: Error) -> Error {
    let body = url.split('?').next().unwrap_or_default();
    let scheme = body.split_once("://").filter(|(scheme, _)| !scheme.contains([':', '@']));
    let public = match (scheme, body.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://...@{host}"),
        (None, Some((_, host))) => format!("...@{host}"),
        (_, None) => body.to_owned(),
    };
    let mut shown: String = public.chars().take(MOST_SHOWN).collect();
    if shown.len() < public.len() {
        shown.push_str("...");
    }
    refuse(index, &format!("the URL \"{shown}\" does not parse: {}", cause.message()), Some(cause))
}

fn refuse(index: u64, why: &str, cause: Option<Error>) -> Error {
    let error =
        Error::new(Status::E_INVOKERS, why).subject(format!("invoker {index}")).source(Source::Argument);
    match cause {
        Some(cause) => {
            // The start of a text is no place to look at.
            let error = match cause.position() {
                Some(position) if position.offset > 0 => error.at(position),
                _ => error,
            };
            error.cause(cause)
        }
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_url_is_shown_once_and_tells_no_secret() {
        for (url, shown) in [
            (
                "dubbo://h:99999/S?token=secret",
                "line 1, column 11: the URL \"dubbo://h:99999/S\" does not parse: ",
            ),
            ("dubbo://me:secret@h:x", "line 1, column 21: the URL \"dubbo://...@h:x\" does not parse: "),
            ("me:se://cret@h:x", "line 1, column 16: the URL \"...@h:x\" does not parse: "),
            (" ", "the URL \" \" does not parse: "),
            ("://a\nb", "the URL \"://a\\nb\" does not parse: "),
        ] {
            let error = InvokersBuilder::new().add(url, None).unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(&format!("invoker 0: {shown}")), "{text}");
            assert!(!text.contains("cret"), "{text}");
        }
        let long = format!("dubbo://h:x/{}", "\u{fc}".repeat(200));
        let error = InvokersBuilder::new().add(&long, None).unwrap_err();
        let shown: String = long.chars().take(80).collect();
        assert!(error.message().starts_with(&format!("the URL \"{shown}...\" ")), "{error}");
    }
}
