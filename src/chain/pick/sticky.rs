//! The provider a chain stays with while it can.

use core::sync::atomic::{AtomicU64, Ordering};

/// One chain's memory of the provider picked last with the sticky flag, for all of its methods.
#[derive(Debug, Default)]
pub struct Sticky {
    /// 0 = none; a tag is never 0.
    tag: AtomicU64,
}

impl Sticky {
    /// No provider yet.
    pub const fn new() -> Self {
        Sticky { tag: AtomicU64::new(0) }
    }

    /// The provider to stay with.
    pub fn tag(&self) -> Option<u64> {
        Some(self.tag.load(Ordering::Relaxed)).filter(|tag| *tag != 0)
    }

    pub(super) fn remember(&self, tag: u64) {
        if self.tag.load(Ordering::Relaxed) != tag {
            self.tag.store(tag, Ordering::Relaxed);
        }
    }

    /// Forgets the provider unless another one has been remembered meanwhile.
    pub(super) fn forget(&self, tag: u64) {
        let _ = self.tag.compare_exchange(tag, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}
