//! What stands for a selector that waits: how it is woken, and what a shutdown calls off.

use super::dns::{Resolver, Resolving};
use super::proxies::{Choosing, ProxySource};
use super::request::{DnsRequest, ProxyRequest};
use crate::engine::{Operation, Telling};
use crate::error::Status;
use crate::runtime::notice::Notice;
use crate::sys::slab::Shared;
use core::sync::atomic::{AtomicI32, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

/// Made when a selector waits for the first time.
pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) notice: Arc<Notice>,
    pub(super) stopped: AtomicI32,
    /// What it waits for, so that a shutdown can call it off.
    pub(super) asked: Mutex<Asked>,
}

impl Operation for Waiter {
    fn stop(&self, status: Status) -> Option<Telling> {
        let tell = core::mem::take(&mut *self.asked.lock()).call_off();
        self.stopped.store(status.0, Ordering::SeqCst);
        self.notice.wake();
        tell
    }
}

/// A question that is awaited, and who was asked.
#[derive(Default)]
pub(super) enum Asked {
    #[default]
    Nothing,
    Proxies(Shared<ProxyRequest>, Option<Arc<ProxySource>>),
    Names(Shared<DnsRequest>, Option<Arc<Resolver>>),
}

impl Asked {
    /// A later answer is told that it is too late; returns the call that tells the host.
    fn call_off(self) -> Option<Telling> {
        match self {
            Asked::Proxies(request, source) if request.cancel() => Some(Box::new(move || {
                if let Some(Choosing::Host(host)) = source.as_deref().map(ProxySource::kind) {
                    host.canceled(request.id());
                }
            })),
            Asked::Names(request, resolver) if request.cancel() => Some(Box::new(move || {
                if let Some(Resolving::Host(host)) = resolver.as_deref().map(Resolver::kind) {
                    host.canceled(request.id());
                }
            })),
            _ => None,
        }
    }
}
