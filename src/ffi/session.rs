//! `byway_session`: routing on one thread, for next to nothing per call.

use super::arguments;
use super::chain::{PickRequest, byway_chain, byway_pick_options, byway_picked, tell};
use super::choice::{Lent, byway_choice};
use super::error::byway_error;
use super::guard::{call, call_bare, call_or};
use super::handle::{self, handle};
use super::invocation::{self, byway_invocation};
use super::status::byway_status;
use crate::chain::session::Session;
use crate::engine::Engine;
use crate::error::Status;
use crate::sys::slab::owned::Bound;
use std::sync::Arc;

/// Routes calls of one chain on one thread. Pins the world (list and rules) it used last, so that a result is a
/// borrowed view.
///
/// Threads: belongs to the thread that made it until another one calls `byway_session_adopt`; elsewhere
/// `BYWAY_E_BUSY`. `byway_session_free` is legal from any thread.
pub struct byway_session {
    _private: [u8; 0],
}

handle!(byway_session, Bound<SessionObject>, 23, false);

/// The session and the choice it lends.
pub(crate) struct SessionObject {
    /// Borrows from the session below, so it goes first.
    lent: Lent,
    session: Session,
    engine: Arc<Engine>,
}

/// Makes a session of the calling thread, with a random stream of its own.
///
/// Ownership: the caller owns it; free with `byway_session_free`.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_session_new(
    chain: *mut byway_chain,
    out: *mut *mut byway_session,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let chain = handle::shared(chain, "chain")?;
        chain.engine.check_open()?;
        *out = handle::hand_out_owned(SessionObject {
            lent: Lent::new(),
            session: chain.chain().session(),
            engine: Arc::clone(&chain.engine),
        });
        Ok(Status::OK)
    })
}

/// Routes a call. For a class of calls seen before this copies nothing, allocates nothing and takes no lock.
///
/// Ownership: `*out` is borrowed and shows this result until the session's next call.
/// Errors: `BYWAY_E_BUSY` on another thread; what a host's router failed with. An empty result is no error, see
/// `byway_choice_emptied_by`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_session_route(
    self_: *mut byway_session,
    invocation: *const byway_invocation,
    out: *mut *const byway_choice,
    err: *mut *mut byway_error,
) -> byway_status {
    // A remembered answer needs nothing of what stands around a call: no host code runs and nothing is dropped.
    let remembered = call_bare(None, || {
        // SAFETY: by the header's contract `out` and `err` are NULL or a place for one pointer.
        let (Some(out), err) = (unsafe { (out.as_mut(), err.as_mut()) }) else { return Ok(None) };
        let mut guard = handle::owned(self_, "self")?;
        let SessionObject { lent, session, engine } = &mut *guard;
        engine.check_open()?;
        let Some(slot) = recall(session, invocation) else { return Ok(None) };
        let Some(answer) = session.remembered(slot) else { return Ok(None) };
        if let Some(err) = err {
            *err = core::ptr::null_mut();
        }
        // SAFETY: the session keeps what the answer borrows until its next call, which replaces it.
        *out = unsafe { lent.show_remembered(answer) };
        guard.done();
        Ok(Some(Status::OK.0))
    });
    match remembered {
        Some(status) => status,
        None => route_anew(self_, invocation, out, err),
    }
}

/// Where a session remembers the answer of a call: by the call's stamp, else by its text.
#[inline(always)]
fn recall(session: &mut Session, invocation: *const byway_invocation) -> Option<usize> {
    let stamp = handle::glance(invocation)?;
    match session.recall(stamp) {
        Some(slot) => Some(slot),
        None => recall_by_text(session, invocation),
    }
}

#[inline(never)]
fn recall_by_text(session: &mut Session, invocation: *const byway_invocation) -> Option<usize> {
    let read = invocation::read(invocation).ok()?;
    let found = session.recall_by_text(read.stamp(), &read.as_call());
    read.done();
    found
}

#[cold]
#[inline(never)]
fn route_anew(
    self_: *mut byway_session,
    invocation: *const byway_invocation,
    out: *mut *const byway_choice,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, core::ptr::null(), "out")?;
        let mut guard = handle::owned(self_, "self")?;
        let SessionObject { lent, session, engine } = &mut *guard;
        engine.check_open()?;
        lent.clear();
        let read = invocation::read(invocation)?;
        let view = session.route(&read.as_call())?;
        // SAFETY: as above.
        *out = unsafe { lent.show(view) };
        Ok(Status::OK)
    })
}

/// Routes a call and copies the tags of the providers that may serve it, as `byway_chain_route_tags` does, for a thread
/// that has a session: what the session remembers is copied without a locked instruction, and nothing is pinned beyond
/// the session. As many tags as fit go into `cap`, and how many there are into `*total`; `(NULL, 0)` counts. `*total` and
/// `*generation` (the number of the world that answered) may be NULL. The choice the session lent before shows nothing
/// from then on.
///
/// Errors: `BYWAY_E_BUSY` on another thread; what a host's router failed with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_session_route_tags(
    self_: *mut byway_session,
    invocation: *const byway_invocation,
    tags: *mut u64,
    cap: usize,
    total: *mut usize,
    generation: *mut u64,
    err: *mut *mut byway_error,
) -> byway_status {
    let remembered = call_bare(None, || {
        let room = arguments::room(tags, cap, "tags")?;
        let mut guard = handle::owned(self_, "self")?;
        let SessionObject { lent, session, engine } = &mut *guard;
        engine.check_open()?;
        let Some(slot) = recall(session, invocation) else { return Ok(None) };
        let Some(answer) = session.remembered(slot) else { return Ok(None) };
        lent.clear();
        let told = answer.tags_into(room);
        guard.done();
        Ok(Some(told))
    });
    if let Some((count, world)) = remembered {
        return tell(count, world, total, generation, err);
    }
    call(err, || {
        let (total, generation) = (arguments::out_optional(total, 0), arguments::out_optional(generation, 0));
        let room = arguments::room(tags, cap, "tags")?;
        let mut guard = handle::owned(self_, "self")?;
        let SessionObject { lent, session, engine } = &mut *guard;
        engine.check_open()?;
        lent.clear();
        let read = invocation::read(invocation)?;
        let view = session.route(&read.as_call())?;
        let count = view.tags_into(room);
        if let Some(total) = total {
            *total = count;
        }
        if let Some(generation) = generation {
            *generation = view.generation();
        }
        Ok(Status::OK)
    })
}

/// Routes a call and picks one provider. `options` may be NULL.
///
/// Errors: `BYWAY_E_BUSY` on another thread; otherwise as `byway_chain_pick`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_session_pick(
    self_: *mut byway_session,
    invocation: *const byway_invocation,
    options: *const byway_pick_options,
    out: *mut byway_picked,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, byway_picked::NONE, "out")?;
        let mut guard = handle::owned(self_, "self")?;
        let SessionObject { lent, session, engine } = &mut *guard;
        engine.check_open()?;
        lent.clear();
        let request = PickRequest::read(options)?;
        let read = invocation::read(invocation)?;
        *out = byway_picked::from(session.pick(&read.as_call(), &request.wish())?);
        Ok(Status::OK)
    })
}

/// Makes the calling thread the owner.
///
/// Errors: `BYWAY_E_BUSY` while the owner is inside a call, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_session_adopt(
    self_: *mut byway_session,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        handle::adopt(self_, "self")?;
        let guard = handle::owned(self_, "self")?;
        guard.engine.check_open()?;
        guard.session.adopt();
        Ok(Status::OK)
    })
}

/// Lets go of the world the session pins, for a thread that will not route for a while. The lent choice shows nothing
/// from then on; the next call pins the current world. Also after a shutdown.
///
/// Errors: `BYWAY_E_BUSY` on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_session_idle(
    self_: *mut byway_session,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let mut guard = handle::owned(self_, "self")?;
        let SessionObject { lent, session, .. } = &mut *guard;
        lent.clear();
        session.idle();
        Ok(Status::OK)
    })
}

/// Ends a session. NULL is fine.
///
/// Threads: any; a call that is running ends first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_session_free(self_: *mut byway_session) {
    call_or((), || {
        handle::free_owned(self_);
        Ok(())
    });
}
