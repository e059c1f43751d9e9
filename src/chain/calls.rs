//! Which steps a call fires. Exact values are found by hash, globs by their heads and tails; only opaque tests are
//! asked one by one.

use std::collections::HashMap;

use hashbrown::HashTable;

use super::hash;
use super::invocation::{Invocation, as_text};
use super::program::{CallKey, CallTest, Shape, Test};

/// A call test over interned atoms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    Never,
    Atom(u32),
    Not(Box<When>),
    All(Vec<When>),
    Any(Vec<When>),
}

impl When {
    /// The answer, given the atoms that are true, ascending.
    pub(crate) fn holds(&self, atoms: &[u32]) -> bool {
        match self {
            When::Always => true,
            When::Never => false,
            When::Atom(atom) => atoms.binary_search(atom).is_ok(),
            When::Not(inner) => !inner.holds(atoms),
            When::All(list) => list.iter().all(|inner| inner.holds(atoms)),
            When::Any(list) => list.iter().any(|inner| inner.holds(atoms)),
        }
    }

    /// Atoms of which at least one is true whenever this holds; `None` when there is no such list.
    fn anchors(&self) -> Option<Vec<u32>> {
        match self {
            When::Always | When::Not(_) => None,
            When::Never => Some(Vec::new()),
            When::Atom(atom) => Some(vec![*atom]),
            When::All(list) => list.iter().filter_map(When::anchors).min_by_key(Vec::len),
            When::Any(list) => {
                let mut all = Vec::new();
                for inner in list {
                    all.extend(inner.anchors()?);
                }
                Some(all)
            }
        }
    }
}

/// What a call is to the rules.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// True atoms, ascending.
    pub(crate) atoms: Vec<u32>,
    /// Firing steps, ascending.
    pub(crate) steps: Vec<u32>,
    /// Tags and other values the rules know.
    pub(crate) values: Vec<u32>,
}

/// The index. Built when rules change.
#[derive(Default)]
pub(crate) struct CallIndex {
    keys: Vec<KeyIndex>,
    /// Steps per atom: those whose condition is the atom alone, then those that need a closer look.
    plain: Vec<Vec<u32>>,
    closer: Vec<Vec<u32>>,
    whens: HashMap<u32, When>,
    /// Steps that fire for every call, ascending.
    always: Vec<u32>,
    /// Steps that must be looked at for every call.
    unanchored: Vec<u32>,
    reads: Reads,
}

/// Which properties of a call anybody looks at.
#[derive(Default, Debug)]
pub(crate) struct Reads {
    pub(crate) method: bool,
    pub(crate) raw_method: bool,
    pub(crate) arguments: Vec<u32>,
    pub(crate) attachments: Vec<Box<[u8]>>,
    /// Bit *n*: some attachment key has *n* bytes (63: or more).
    pub(crate) attachment_lengths: u64,
}

impl Reads {
    /// True when somebody looks at this attachment.
    #[inline(always)]
    pub(crate) fn wants(&self, name: &[u8]) -> bool {
        self.attachment(name).is_some()
    }

    /// The number of an attachment somebody looks at. For most their length says that nobody does.
    #[inline(always)]
    pub(crate) fn attachment(&self, name: &[u8]) -> Option<usize> {
        if self.attachment_lengths >> name.len().min(63) & 1 == 0 { None } else { self.position(name) }
    }

    #[inline(never)]
    fn position(&self, name: &[u8]) -> Option<usize> {
        self.attachments.iter().position(|known| hash::same(known, name))
    }
}

struct KeyIndex {
    key: CallKey,
    exact: HashTable<(Box<[u8]>, u32)>,
    heads: AffixIndex,
    tails: AffixIndex,
    present: Vec<u32>,
    absent: Vec<u32>,
    opaque: Vec<(u32, Test)>,
}

/// Globs by a part they must have, found with one hash for each length such parts have.
#[derive(Default)]
struct AffixIndex {
    /// Lengths of the parts, ascending, without repetition.
    lengths: Vec<usize>,
    parts: HashTable<Part>,
}

struct Part {
    hash: u64,
    text: Box<[u8]>,
    /// Atom and what the other end must be.
    globs: Vec<(u32, Box<[u8]>)>,
}

/// Bytes of a part that are hashed: more would let the length of names and rules multiply.
const HASHED: usize = 32;

#[inline(always)]
fn part_hash(part: &[u8]) -> u64 {
    match part.first_chunk::<HASHED>() {
        None => hash::bytes(hash::seed(), part),
        Some(head) => hash::combine(hash::bytes(hash::seed(), head), part.len() as u64),
    }
}

impl AffixIndex {
    fn insert(&mut self, text: &str, atom: u32, other_end: &str) {
        let text = text.as_bytes();
        let hash = part_hash(text);
        if let Err(at) = self.lengths.binary_search(&text.len()) {
            self.lengths.insert(at, text.len());
        }
        let glob = (atom, Box::from(other_end.as_bytes()));
        match self.parts.find_mut(hash, |known| *known.text == *text) {
            Some(known) => known.globs.push(glob),
            None => {
                let part = Part { hash, text: text.into(), globs: vec![glob] };
                self.parts.insert_unique(hash, part, |part| part.hash);
            }
        }
    }

    /// Reports globs whose part is the value's, where `part` gives that of a length, and `None` when there is no such.
    #[inline(always)]
    fn find<'v>(&self, part: impl Fn(usize) -> Option<&'v [u8]>, mut found: impl FnMut(&(u32, Box<[u8]>))) {
        for length in &self.lengths {
            let Some(own) = part(*length) else { return };
            let hash = part_hash(own);
            if let Some(part) = self.parts.find(hash, |part| part.hash == hash && hash::same(&part.text, own))
            {
                part.globs.iter().for_each(&mut found);
            }
        }
    }
}

impl KeyIndex {
    fn new(key: CallKey) -> KeyIndex {
        KeyIndex {
            key,
            exact: HashTable::new(),
            heads: AffixIndex::default(),
            tails: AffixIndex::default(),
            present: Vec::new(),
            absent: Vec::new(),
            opaque: Vec::new(),
        }
    }

    #[inline]
    fn collect(&self, value: Option<&[u8]>, atoms: &mut Vec<u32>) {
        let Some(value) = value else {
            for atom in &self.absent {
                atoms.push(*atom);
            }
            return;
        };
        if !self.exact.is_empty() {
            let hash = hash::bytes(hash::seed(), value);
            if let Some((_, atom)) = self.exact.find(hash, |(text, _)| hash::same(text, value)) {
                atoms.push(*atom);
            }
        }
        for atom in &self.present {
            atoms.push(*atom);
        }
        if !self.heads.lengths.is_empty() {
            self.heads.find(
                |length| value.get(..length),
                |(atom, tail)| {
                    if value.ends_with(tail) {
                        atoms.push(*atom);
                    }
                },
            );
        }
        if !self.tails.lengths.is_empty() {
            let tail = |length| value.get(value.len().checked_sub(length)?..);
            self.tails.find(tail, |(atom, _)| atoms.push(*atom));
        }
        if !self.opaque.is_empty() {
            let text = as_text(value);
            for (atom, test) in &self.opaque {
                if test.test(Some(&text)) {
                    atoms.push(*atom);
                }
            }
        }
    }

    /// True when values this index has not seen may be told apart.
    fn looks_inside(&self) -> bool {
        !(self.heads.lengths.is_empty() && self.tails.lengths.is_empty() && self.opaque.is_empty())
    }
}

impl CallIndex {
    /// Fills atoms and steps.
    #[inline]
    pub(crate) fn evaluate(&self, call: &Invocation<'_>, facts: &mut Facts) {
        facts.atoms.clear();
        for key in &self.keys {
            key.collect(call.value(&key.key), &mut facts.atoms);
        }
        if facts.atoms.len() > 1 {
            facts.atoms.sort_unstable();
        }
        facts.steps.clear();
        // Mostly one or two: not worth a call to copy them.
        for step in &self.always {
            facts.steps.push(*step);
        }
        let before = facts.steps.len();
        for atom in &facts.atoms {
            if let Some(steps) = self.plain.get(*atom as usize) {
                for step in steps {
                    facts.steps.push(*step);
                }
            }
            for step in self.closer.get(*atom as usize).into_iter().flatten() {
                if self.whens.get(step).is_some_and(|when| when.holds(&facts.atoms)) {
                    facts.steps.push(*step);
                }
            }
        }
        for step in &self.unanchored {
            if self.whens.get(step).is_some_and(|when| when.holds(&facts.atoms)) {
                facts.steps.push(*step);
            }
        }
        if facts.steps.len() > before && facts.steps.len() > 1 {
            facts.steps.sort_unstable();
            facts.steps.dedup();
        }
    }

    /// Which properties of a call anybody looks at.
    #[inline]
    pub(crate) fn reads(&self) -> &Reads {
        &self.reads
    }

    /// The exact method names rules mention, if names are told apart by nothing else.
    pub(crate) fn exact_methods(&self) -> (Vec<Box<[u8]>>, bool) {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let mut looks_inside = false;
        for key in &self.keys {
            if matches!(key.key, CallKey::Method | CallKey::RawMethod) {
                names.extend(key.exact.iter().map(|(text, _)| text.clone()));
                looks_inside |= key.looks_inside();
            }
        }
        names.sort_unstable();
        names.dedup();
        (names, looks_inside)
    }
}

/// Makes a [`CallIndex`].
#[derive(Default)]
pub(crate) struct IndexBuilder {
    index: CallIndex,
    by_key: HashMap<CallKey, usize>,
    atoms: HashMap<(usize, AtomName), u32>,
}

#[derive(PartialEq, Eq, Hash)]
enum AtomName {
    Exact(Box<str>),
    Affix(Box<str>, Box<str>),
    Present,
    Absent,
    Opaque(Box<str>),
}

impl IndexBuilder {
    fn key(&mut self, key: &CallKey) -> usize {
        if let Some(at) = self.by_key.get(key) {
            return *at;
        }
        self.reads(key);
        let at = self.index.keys.len();
        self.index.keys.push(KeyIndex::new(key.clone()));
        self.by_key.insert(key.clone(), at);
        at
    }

    /// Says that somebody looks at a property, beyond the tests.
    pub(crate) fn reads(&mut self, key: &CallKey) {
        let reads = &mut self.index.reads;
        match key {
            CallKey::Method => reads.method = true,
            CallKey::RawMethod => reads.raw_method = true,
            CallKey::Argument { index, .. } => {
                if !reads.arguments.contains(index) {
                    reads.arguments.push(*index);
                }
            }
            CallKey::Attachment(name) => {
                let name = name.as_bytes();
                if !reads.attachments.iter().any(|known| **known == *name) {
                    reads.attachments.push(name.into());
                    reads.attachment_lengths |= 1 << name.len().min(63);
                }
            }
        }
    }

    fn atom(&mut self, key: &CallKey, test: &Test) -> u32 {
        let at = self.key(key);
        let shape = test.shape();
        let name = match shape {
            Shape::Exact(text) => AtomName::Exact(text.into()),
            Shape::Affix("", "") | Shape::Present => AtomName::Present,
            Shape::Affix(head, tail) => AtomName::Affix(head.into(), tail.into()),
            Shape::Absent => AtomName::Absent,
            Shape::Opaque => AtomName::Opaque(test.cache_key().into()),
        };
        let next = u32::try_from(self.atoms.len()).unwrap_or(u32::MAX);
        let entry = match self.atoms.entry((at, name)) {
            std::collections::hash_map::Entry::Occupied(known) => return *known.get(),
            std::collections::hash_map::Entry::Vacant(entry) => entry,
        };
        entry.insert(next);
        self.index.plain.push(Vec::new());
        self.index.closer.push(Vec::new());
        let Some(index) = self.index.keys.get_mut(at) else { return next };
        match shape {
            Shape::Exact(text) => {
                let hash = hash::bytes(hash::seed(), text.as_bytes());
                index.exact.insert_unique(hash, (text.as_bytes().into(), next), |(text, _)| {
                    hash::bytes(hash::seed(), text)
                });
            }
            Shape::Affix("", "") | Shape::Present => index.present.push(next),
            Shape::Affix("", tail) => index.tails.insert(tail, next, ""),
            Shape::Affix(head, tail) => index.heads.insert(head, next, tail),
            Shape::Absent => index.absent.push(next),
            Shape::Opaque => {
                if test.test(None) {
                    index.absent.push(next);
                }
                index.opaque.push((next, test.clone()));
            }
        }
        next
    }

    /// Interns a test.
    pub(crate) fn intern(&mut self, test: &CallTest) -> When {
        match test {
            CallTest::Always => When::Always,
            CallTest::Never => When::Never,
            CallTest::Value(key, test) => When::Atom(self.atom(key, test)),
            CallTest::Not(inner) => match self.intern(inner) {
                When::Always => When::Never,
                When::Never => When::Always,
                When::Not(inner) => *inner,
                other => When::Not(Box::new(other)),
            },
            CallTest::AllOf(list) => {
                let mut all: Vec<When> = list.iter().map(|inner| self.intern(inner)).collect();
                all.retain(|inner| *inner != When::Always);
                if all.contains(&When::Never) {
                    return When::Never;
                }
                match (all.pop(), all.is_empty()) {
                    (None, _) => When::Always,
                    (Some(only), true) => only,
                    (Some(last), false) => {
                        all.push(last);
                        When::All(all)
                    }
                }
            }
            CallTest::AnyOf(list) => {
                let mut any: Vec<When> = list.iter().map(|inner| self.intern(inner)).collect();
                any.retain(|inner| *inner != When::Never);
                if any.contains(&When::Always) {
                    return When::Always;
                }
                match (any.pop(), any.is_empty()) {
                    (None, _) => When::Never,
                    (Some(only), true) => only,
                    (Some(last), false) => {
                        any.push(last);
                        When::Any(any)
                    }
                }
            }
        }
    }

    /// Registers a step. Steps come in ascending order.
    pub(crate) fn step(&mut self, step: u32, when: When) {
        match when {
            When::Always => self.index.always.push(step),
            When::Never => {}
            When::Atom(atom) => {
                if let Some(steps) = self.index.plain.get_mut(atom as usize) {
                    steps.push(step);
                }
            }
            when => {
                match when.anchors() {
                    None => self.index.unanchored.push(step),
                    Some(anchors) => {
                        for atom in anchors {
                            if let Some(steps) = self.index.closer.get_mut(atom as usize)
                                && steps.last() != Some(&step)
                            {
                                steps.push(step);
                            }
                        }
                    }
                }
                self.index.whens.insert(step, when);
            }
        }
    }

    pub(crate) fn finish(self) -> CallIndex {
        self.index
    }
}
