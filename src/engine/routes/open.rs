//! Questions that a host left open: it answers later, from any thread, or is told that nobody waits any more.

use super::request::Request;
use crate::engine::{Engine, Operation, Telling};
use crate::error::Status;
use crate::sys::record;
use crate::sys::slab::{Shared, Slot};
use std::sync::{Arc, Weak};

/// A question a host has taken and not answered. Whoever asked gives it up or drops it; a shutdown finds it meanwhile.
pub(super) struct Open {
    engine: Weak<Engine>,
    id: u64,
}

struct Question(parking_lot::Mutex<Option<Telling>>);

impl Operation for Question {
    fn stop(&self, _: Status) -> Option<Telling> {
        self.0.lock().take()
    }
}

impl Engine {
    /// [`Engine::host_call`] for a question that may be taken: after `PENDING`, `left_open` gives the call that tells
    /// the host that nobody waits any more, or `None` when the answer is there already.
    ///
    /// It is registered before the callback counts as over. So a shutdown either waits for the callback or finds its
    /// question, and the host is told exactly once, before its `destroy`.
    ///
    /// # Errors
    /// As [`Engine::host_call`].
    #[inline]
    pub(super) fn ask_host(
        &self,
        object: usize,
        call: impl FnOnce() -> Status,
        left_open: impl FnOnce() -> Option<Telling>,
    ) -> Result<(Status, Option<Open>), Status> {
        self.host_call(object, || match call() {
            Status::PENDING => (Status::PENDING, left_open().and_then(|tell| self.leave_open(tell))),
            status => (status, None),
        })
    }

    #[cold]
    fn leave_open(&self, tell: Telling) -> Option<Open> {
        let id = self.next_id();
        let question = Arc::new(Question(Some(tell).into()));
        if self.remember(id, question.clone()).is_ok() {
            return Some(Open { engine: self.own.clone(), id });
        }
        // The shutdown began while the callback ran, and waits for it.
        if let Some(tell) = question.stop(Status::E_SHUTDOWN) {
            tell();
        }
        None
    }
}

impl Open {
    /// Tells the host, unless a shutdown does.
    pub(super) fn give_up(self) {
        let Some(engine) = self.engine.upgrade() else { return };
        // Inside before the question is taken out: a shutdown that no longer finds it waits for this call.
        let scope = record::current().enter_callback(engine.id(), 0);
        let question = engine.take_back(self.id);
        if let Some(question) = question
            && let Some(tell) = question.stop(Status::E_CANCELED)
            && scope.is_some()
        {
            tell();
        }
        drop(scope);
        engine.after_callback();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.forget(self.id);
        }
    }
}

/// A callback returned `PENDING`: the call that tells `host` that nobody waits for `request` any more; `None` when it
/// is answered by now, or nobody is left who could.
pub(super) fn left<A, H>(
    request: &Shared<Request<A>>,
    host: &Arc<H>,
    canceled: impl FnOnce(&H, u64) + Send + 'static,
) -> Option<Telling>
where
    A: Default + 'static,
    H: ?Sized + Send + Sync + 'static,
    Request<A>: Slot + Sync + Send,
{
    request.drop_answerer();
    if request.is_answered() {
        return None;
    }
    let (request, host) = (request.clone(), Arc::clone(host));
    Some(Box::new(move || {
        if request.cancel() {
            canceled(&host, request.id());
        }
    }))
}

/// Nobody waits for `request` any more; a host that took it is told.
pub(super) fn give_up<A: Default>(request: &Request<A>, open: Option<Open>) {
    if let Some(open) = open {
        open.give_up();
    }
    request.cancel();
}
