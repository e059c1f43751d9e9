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
    /// A shutdown came before that.
    stopped: Option<Status>,
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

    /// The call that binds is about to return, and its binding to be seen by others. False when the first state is there,
    /// which its caller may know before the event: nothing is owed, and `before` is the caller's to end. Otherwise both
    /// come with it.
    pub fn is_awaited(&self, is_there: bool, before: &mut Option<Binding>) -> bool {
        let mut owed = self.owed.lock();
        if is_there || owed.came {
            drop(owed);
            self.forget();
            return false;
        }
        owed.awaited = true;
        owed.before = before.take();
        let stopped = owed.stopped.and_then(|status| Some((owed.record.take()?, status)));
        drop(owed);
        if let Some((record, status)) = stopped {
            record.complete(status);
        }
        true
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
        let first = self.0.upgrade()?;
        let mut owed = first.owed.lock();
        if !owed.awaited {
            // Whether a record is owed is not known yet.
            owed.stopped = Some(status);
            return None;
        }
        let record = owed.record.take();
        drop(owed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::for_tests;

    /// A first state of an engine that shuts down right after the call that binds has begun.
    fn stopped() -> (Arc<Engine>, Arc<FirstState>) {
        let engine = for_tests();
        let record = Completion { tag: 7, ..Completion::default() };
        let first = FirstState::expect(&engine, &Arc::clone(engine.queue()), record).unwrap();
        engine.close();
        (engine, first)
    }

    fn records(engine: &Engine) -> Vec<(u64, i32)> {
        let mut got = Vec::new();
        engine
            .queue()
            .poll(Some(core::time::Duration::ZERO), 8, |one| got.push((one.tag, one.status)))
            .unwrap();
        got
    }

    #[test]
    fn a_shutdown_posts_a_record_only_for_a_call_that_has_told_its_host_to_wait() {
        let (engine, first) = stopped();
        first.forget();
        assert_eq!(records(&engine), [], "the call that binds has failed");

        let (engine, first) = stopped();
        assert!(!first.is_awaited(true, &mut None));
        assert_eq!(records(&engine), [], "the first state was there");

        let (engine, first) = stopped();
        assert_eq!(records(&engine), [], "not yet");
        assert!(first.is_awaited(false, &mut None));
        assert_eq!(records(&engine), [(7, Status::E_SHUTDOWN.0)]);
        drop(first);
        assert_eq!(records(&engine), []);
    }
}
