//! Who hears of events.

use crate::error::Error;
use crate::net::{Event, EventSink};
use crate::runtime::queue::Queue;
use arc_swap::ArcSwap;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A host's listener. Called without a lock, inside [`crate::engine::Engine::host_call`].
pub trait Listener: Send + Sync {
    /// Bits of the kinds it wants.
    fn mask(&self) -> u64;
    /// Where it wants its notices; none: the engine's queue.
    fn queue(&self) -> Option<&Arc<Queue>> {
        None
    }
    /// One event.
    fn event(&self, event: &Event<'_>, tag: u64);
    /// Something that is not part of an operation has changed.
    fn notice(&self, notice: &Notice);
}

/// A change of state that is told through the queue.
#[derive(Clone, Debug)]
pub struct Notice {
    /// What has changed.
    pub kind: NoticeKind,
    /// The rule's key or URL, or the chain's consumer URL.
    pub subject: Arc<str>,
    /// Why a rule text was refused, or what failed.
    pub error: Option<Error>,
}

/// Kinds of notices. Numbers are part of the C ABI and lie behind those of [`crate::net::EventKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum NoticeKind {
    /// A rule was set, refused or removed.
    Rule = 32,
    /// A chain wants other rules than before.
    ChainKeys = 33,
    /// A rule in force failed while it routed a call, whose list stayed as it was.
    RuleFailed = 34,
}

impl NoticeKind {
    fn bit(self) -> u64 {
        1 << self as i32
    }
}

/// All listeners of an engine. Changing the list is rare, reading it is not.
#[derive(Default)]
pub struct Listeners {
    mask: AtomicU64,
    list: ArcSwap<Vec<(u64, Arc<dyn Listener>)>>,
}

impl Listeners {
    /// Bits somebody wants; 0 is the usual state.
    #[inline]
    pub fn mask(&self) -> u64 {
        self.mask.load(Ordering::Acquire)
    }

    /// Adds one under a number.
    pub fn add(&self, id: u64, listener: &Arc<dyn Listener>) {
        self.change(|list| list.push((id, Arc::clone(listener))));
    }

    /// Takes one away; a call that is running ends first as it likes.
    pub fn remove(&self, id: u64) {
        self.change(|list| list.retain(|(own, _)| *own != id));
    }

    /// Tells one listener a notice, on the calling thread, unless it has been removed.
    pub fn notify(&self, id: u64, notice: &Notice) {
        let list = self.list.load_full();
        if let Some((_, listener)) = list.iter().find(|(own, _)| *own == id) {
            listener.notice(notice);
        }
    }

    /// Who wants such notices, and the queue of those that named one.
    pub fn inboxes(&self, kind: NoticeKind) -> Vec<(u64, Option<Arc<Queue>>)> {
        let list = self.list.load();
        let wants = list.iter().filter(|(_, listener)| listener.mask() & kind.bit() != 0);
        wants.map(|(id, listener)| (*id, listener.queue().cloned())).collect()
    }

    /// Whether somebody wants such notices.
    pub fn wants(&self, kind: NoticeKind) -> bool {
        self.mask() & kind.bit() != 0
    }

    fn change(&self, change: impl Fn(&mut Vec<(u64, Arc<dyn Listener>)>)) {
        self.list.rcu(|list| {
            let mut list = Vec::clone(list);
            change(&mut list);
            list
        });
        let mask = self.list.load().iter().fold(0, |mask, (_, listener)| mask | listener.mask());
        self.mask.store(mask, Ordering::Release);
    }
}

/// Listeners for one operation.
pub(super) struct Audience<'a> {
    pub(super) listeners: &'a Listeners,
    pub(super) tag: u64,
}

impl EventSink for Audience<'_> {
    fn event(&self, event: &Event<'_>) {
        let list = self.listeners.list.load_full();
        for (_, listener) in list.iter().filter(|(_, listener)| listener.mask() & event.kind.bit() != 0) {
            listener.event(event, self.tag);
        }
    }
}
