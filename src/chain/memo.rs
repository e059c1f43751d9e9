//! Results kept by the class of the call: which steps fired and which values known to the rules it has. Raw values
//! are no part of the key, so junk cannot fill the memo; a bound holds all the same.
//!
//! Insert-only and without locks; freed with the plan it belongs to.

use once_cell::sync::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bits::{Bits, Rows};
use super::calls::Facts;
use super::hash;
use super::live::{Kind, Live};
use super::program::CallKey;
use super::snapshot::Invokers;

/// What is known about a class of calls.
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    _live: Live,
}

pub(crate) enum NodeKind {
    /// A destination must be drawn first.
    Draw {
        /// Of the live destinations.
        weights: Box<[u32]>,
        /// Equally likely outcomes of the draw.
        total: u64,
        /// Draw by this property of the call.
        hash_key: Option<CallKey>,
        /// [`Destinations::first_gains_one`](super::program::Destinations::first_gains_one).
        skewed: bool,
        /// One per live destination.
        children: Box<[OnceCell<Arc<Node>>]>,
    },
    /// The rows, before the first foreign router or for good.
    Rows(Outcome),
}

impl Node {
    pub(crate) fn new(kind: NodeKind) -> Arc<Node> {
        Arc::new(Node { kind, _live: Live::new(Kind::Outcome) })
    }
}

/// Rows that own themselves.
pub(crate) struct Outcome {
    pub(crate) rows: OwnedRows,
    /// The stage that left nothing.
    pub(crate) emptied_by: Option<u32>,
    /// The foreign router to go on with.
    pub(crate) resume_at: Option<u32>,
    tags: OnceCell<Box<[u64]>>,
}

pub(crate) enum OwnedRows {
    All(usize),
    List(Box<[u32]>),
    Dense { bits: Bits, count: usize, ranks: Box<[u32]> },
}

/// Results up to this length keep their tags as an array once asked for.
const TAGS_KEPT: usize = 16_384;

impl Outcome {
    pub(crate) fn new(rows: OwnedRows, emptied_by: Option<u32>, resume_at: Option<u32>) -> Outcome {
        Outcome { rows, emptied_by, resume_at, tags: OnceCell::new() }
    }

    #[inline]
    pub(crate) fn rows(&self) -> Rows<'_> {
        self.rows.view()
    }

    /// The tags as an array, if the result is small enough to keep one.
    #[inline]
    pub(crate) fn tags(&self, invokers: &Invokers) -> Option<&[u64]> {
        if let Some(tags) = self.tags.get() {
            return Some(tags);
        }
        let rows = self.rows();
        if rows.len() > TAGS_KEPT {
            return None;
        }
        Some(self.tags.get_or_init(|| rows.iter().filter_map(|row| invokers.tag(row)).collect()))
    }

    fn heap_bytes(&self) -> usize {
        let rows = match &self.rows {
            OwnedRows::All(_) => 0,
            OwnedRows::List(list) => list.len() * 4,
            OwnedRows::Dense { bits, ranks, .. } => bits.heap_bytes() + ranks.len() * 4,
        };
        rows + self.rows().len().min(TAGS_KEPT) * 8 + 128
    }
}

impl OwnedRows {
    #[inline]
    pub(crate) fn view(&self) -> Rows<'_> {
        match self {
            OwnedRows::All(rows) => Rows::All(*rows),
            OwnedRows::List(list) => Rows::List(list),
            OwnedRows::Dense { bits, count, ranks } => Rows::Dense(bits, *count, ranks),
        }
    }
}

struct Entry {
    hash: u64,
    key: Box<[u32]>,
    node: Arc<Node>,
}

/// Sizes of the segments; each is made when the one before it is crowded.
const SEGMENTS: [usize; 4] = [8, 64, 512, 4096];
/// Slots looked at in each segment.
const WINDOW: usize = 4;

/// The memo of one plan.
pub(crate) struct Memo {
    segments: [OnceCell<Box<[OnceCell<Entry>]>>; SEGMENTS.len()],
    /// Bytes the kept results take.
    bytes: AtomicUsize,
    limit: usize,
}

impl Memo {
    /// A memo that stops taking results when they take `limit` bytes.
    pub(crate) fn new(limit: usize) -> Memo {
        Memo { segments: [const { OnceCell::new() }; SEGMENTS.len()], bytes: AtomicUsize::new(0), limit }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.limit == 0
    }

    /// True when one more result of this size fits; it is then counted.
    pub(crate) fn admit(&self, outcome: &Outcome) -> bool {
        let size = outcome.heap_bytes();
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size > self.limit {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// True when nothing more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.limit
    }

    /// The hash of a class.
    #[inline]
    pub(crate) fn hash(facts: &Facts) -> u64 {
        let state =
            facts.steps.iter().fold(hash::seed(), |state, step| hash::combine(state, u64::from(*step)));
        facts
            .values
            .iter()
            .fold(hash::combine(state, u64::MAX), |state, value| hash::combine(state, u64::from(*value)))
    }

    #[inline]
    fn is_class(entry: &Entry, hash: u64, facts: &Facts) -> bool {
        entry.hash == hash
            && entry.key.len() == facts.steps.len() + facts.values.len()
            && entry.key.starts_with(&facts.steps)
            && entry.key.ends_with(&facts.values)
    }

    /// The node of a class.
    #[inline]
    pub(crate) fn find(&self, hash: u64, facts: &Facts) -> Option<&Arc<Node>> {
        for segment in &self.segments {
            let slots = segment.get()?;
            for at in 0..WINDOW {
                let slot = slots.get((hash as usize).wrapping_add(at) % slots.len())?;
                let Some(entry) = slot.get() else { break };
                if Memo::is_class(entry, hash, facts) {
                    return Some(&entry.node);
                }
            }
        }
        None
    }

    /// Keeps a node, unless another thread was first (then that one's is the answer) or no slot is free.
    pub(crate) fn insert(&self, hash: u64, facts: &Facts, node: Arc<Node>) -> Arc<Node> {
        let key = facts.steps.iter().chain(&facts.values).copied().collect();
        let mut entry = Entry { hash, key, node };
        for (segment, size) in self.segments.iter().zip(SEGMENTS) {
            let slots = segment.get_or_init(|| (0..size).map(|_| OnceCell::new()).collect());
            for at in 0..WINDOW {
                let Some(slot) = slots.get((hash as usize).wrapping_add(at) % slots.len()) else { continue };
                match slot.set(entry) {
                    Ok(()) => {
                        return slot.get().map_or_else(|| Node::new(empty()), |entry| entry.node.clone());
                    }
                    Err(back) => entry = back,
                }
                if let Some(first) = slot.get()
                    && Memo::is_class(first, hash, facts)
                {
                    return Arc::clone(&first.node);
                }
            }
        }
        entry.node
    }
}

fn empty() -> NodeKind {
    NodeKind::Rows(Outcome::new(OwnedRows::List(Box::default()), None, None))
}
