//! What is owed while a chain's source has not given its first state: one record in a queue, and the end of the binding
//! before, which serves until then.

use super::{Engine, Operation, Telling};
use crate::error::Status;
use crate::runtime::queue::{Completion, Queue, Ticket};
use crate::source::bind::{BindEvent, Binding, EventSink};
use core::sync::atomic::AtomicBool;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// See the module. Ending it, as unbinding does, ends the wait with a record that says so.
pub struct FirstState {
    engine: Weak<Engine>,
    id: u64,
    owed: Mutex<Owed>,
}

#[derive(Default)]
struct Owed {
    came: bool,
    /// The host was told to wait.
    awaited: bool,
    record: Option<Ticket>,
    before: Option<Binding>,
}

impl FirstState {
    /// For a binding about to be made, whose record would go to `queue`.
    ///
    /// # Errors
    /// `E_LIMIT` when that has no room for it, `E_SHUTDOWN`.
    pub fn expect(
        engine: &Arc<Engine>,
        queue: &Arc<Queue>,
        mut record: Completion,
    ) -> Result<Arc<Self>, Status> {
        let id = engine.next_id();
        record.id = id;
        let record = Some(queue.expect(record, None, Arc::new(AtomicBool::new(false)))?);
        let engine_of = Arc::downgrade(engine);
        let owed = Mutex::new(Owed { record, ..Owed::default() });
        let first = Arc::new(FirstState { engine: engine_of, id, owed });
        let ends = Arc::new(Ends(Arc::downgrade(&first)));
        engine.remember(id, ends).inspect_err(|_| first.forget())?;
        Ok(first)
    }

    /// Looks at a binding's events, before its host does.
    pub fn watch(self: &Arc<Self>, then: Option<EventSink>) -> EventSink {
        let first = Arc::downgrade(self);
        Arc::new(move |event: &BindEvent| {
            if let (BindEvent::Ready, Some(first)) = (event, first.upgrade()) {
                first.came();
            }
            if let Some(then) = &then {
                then(event);
            }
        })
    }

    fn came(&self) {
        let mut owed = self.owed.lock();
        owed.came = true;
        if !owed.awaited {
            return;
        }
        let (record, before) = (owed.record.take(), owed.before.take());
        drop(owed);
        if let Some(before) = before {
            before.unbind(true);
        }
        if let Some(record) = record {
            record.complete(Status::OK);
        }
        self.forgotten();
    }

    /// The call that binds is about to return. False when the first state is there, which its caller may know before the
    /// event: nothing is owed, and `before` has ended. Otherwise both come with it.
    pub fn is_awaited(&self, is_there: bool, before: Option<Binding>) -> bool {
        let mut owed = self.owed.lock();
        owed.awaited = !is_there && !owed.came;
        if owed.awaited {
            owed.before = before;
            return true;
        }
        drop(owed);
        if let Some(before) = before {
            // The new source's list is in force: the old one must not be taken out of the chain.
            before.unbind(true);
        }
        self.forget();
        false
    }

    /// Nothing is owed: the call that binds has failed.
    pub fn forget(&self) {
        let record = self.owed.lock().record.take();
        if let Some(record) = record {
            record.retract();
        }
        self.forgotten();
    }

    /// The binding before that still serves, for who takes its place or ends it.
    pub fn take_before(&self) -> Option<Binding> {
        self.owed.lock().before.take()
    }

    fn forgotten(&self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.forget(self.id);
        }
    }
}

/// What a shutdown stops; the binding alone keeps the rest alive.
struct Ends(Weak<FirstState>);

impl Operation for Ends {
    fn stop(&self, status: Status) -> Option<Telling> {
        let record = self.0.upgrade().and_then(|first| first.owed.lock().record.take());
        if let Some(record) = record {
            record.complete(status);
        }
        None
    }
}

impl Drop for FirstState {
    fn drop(&mut self) {
        // What is left of the record is posted as cancelled.
        self.forgotten();
    }
}
