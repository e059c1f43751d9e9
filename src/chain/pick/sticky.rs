//! The provider a chain stays with while it can.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::{Candidates, Providers};

/// One chain's memory of the provider picked last with the sticky flag, for all of its methods.
///
/// Threads may overwrite each other's choice; whichever is read is a provider somebody chose.
#[derive(Debug, Default)]
pub struct Sticky {
    known: AtomicBool,
    tag: AtomicU64,
    /// Where the tag was last, so that it is not searched for as long as rows do not move.
    row: AtomicU32,
}

impl Sticky {
    /// No provider yet.
    pub const fn new() -> Self {
        Sticky { known: AtomicBool::new(false), tag: AtomicU64::new(0), row: AtomicU32::new(0) }
    }

    /// The provider to stay with.
    pub fn tag(&self) -> Option<u64> {
        self.known.load(Relaxed).then(|| self.tag.load(Relaxed))
    }

    pub(super) fn remember(&self, tag: u64, row: u32) {
        if self.tag() != Some(tag) {
            self.tag.store(tag, Relaxed);
            self.known.store(true, Relaxed);
        }
        self.row.store(row, Relaxed);
    }

    /// Its row, if it is among the candidates; forgets it otherwise.
    pub(super) fn row<P: Providers, C: Candidates>(&self, providers: &P, candidates: &C) -> Option<u32> {
        let tag = self.tag()?;
        let hint = self.row.load(Relaxed);
        let stays = hint < providers.len() && providers.tag(hint) == tag;
        let row = if stays { Some(hint) } else { providers.row_of(tag) };
        let row = row.filter(|row| candidates.contains(*row));
        match row {
            Some(row) => self.row.store(row, Relaxed),
            None => self.known.store(false, Relaxed),
        }
        row
    }
}
