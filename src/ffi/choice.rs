//! `byway_choice`: a routing result.

use super::arguments;
use super::error::byway_error;
use super::guard::{Fail, call, call_bare, call_or, status_bare};
use super::handle::{self, handle};
use super::invokers::{InvokersHandle, byway_invokers};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::chain::choice::Choice;
use crate::chain::plan::Plan;
use crate::chain::session::Remembered;
use crate::chain::view::View;
use crate::error::Status;
use crate::sys::pinned::{self, Pinned, Waiting};
use crate::sys::record::{self, Record};
use crate::sys::slab::Cell;
use std::sync::Arc;

/// A routing result: the providers that may serve a call, by the host's tags and in list order. Immutable.
///
/// One from `byway_chain_route` is the caller's, pins the list it was chosen from and is ended with
/// `byway_choice_free`. One from `byway_session_route` is lent: it shows that session's last result, on its thread,
/// until the session's next call; freeing it does nothing.
pub struct byway_choice {
    _private: [u8; 0],
}

handle!(byway_choice, ChoiceObject, 22, true);

/// What is shown.
pub(crate) enum ChoiceObject {
    /// A result that owns itself.
    Own(Choice),
    /// What a session found last. The lifetimes say `'static`; they last until the session's next call.
    Lent(View<'static>),
    /// The same, from its memory.
    Remembered(Remembered<'static>),
    /// A session without a result.
    Nothing,
}

/// A lent result: the cell belongs to a session.
pub(crate) struct Lent(*const Cell<ChoiceObject>);

// SAFETY: the cell belongs to one session, which writes to it on the thread that owns the session.
unsafe impl Send for Lent {}

impl Lent {
    pub(crate) fn new() -> Lent {
        let pointer: *mut byway_choice = handle::hand_out(ChoiceObject::Nothing);
        Lent(pointer.cast_const().cast())
    }

    /// Shows a result, until the next call of this or [`Lent::clear`].
    ///
    /// # Safety
    /// What the view borrows stays until then, and nobody reads the choice meanwhile (header, `byway_choice`).
    pub(crate) unsafe fn show(&mut self, view: View<'_>) -> *const byway_choice {
        // SAFETY: the caller's promise.
        self.set(ChoiceObject::Lent(unsafe { core::mem::transmute::<View<'_>, View<'static>>(view) }))
    }

    /// As [`Lent::show`].
    ///
    /// # Safety
    /// As [`Lent::show`].
    #[inline(always)]
    pub(crate) unsafe fn show_remembered(&mut self, answer: Remembered<'_>) -> *const byway_choice {
        // SAFETY: the caller's promise.
        let answer = unsafe { core::mem::transmute::<Remembered<'_>, Remembered<'static>>(answer) };
        self.set(ChoiceObject::Remembered(answer))
    }

    #[inline(always)]
    fn set(&mut self, object: ChoiceObject) -> *const byway_choice {
        // SAFETY: the cell is alive as long as this object, and what is overwritten is a view or nothing, which need
        // no drop.
        unsafe { (*self.0).value_ptr().cast_mut().write(object) };
        self.0.cast()
    }

    /// Shows nothing.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.set(ChoiceObject::Nothing);
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.clear();
        handle::free(self.0.cast::<byway_choice>());
    }
}

/// As [`hand_out`], of a result that a world keeps, if the thread has a handle at hand; else it comes back.
#[inline(always)]
pub(crate) fn hand_out_here(
    record: &Record,
    plan: Pinned<Plan>,
    place: u32,
) -> Result<*mut byway_choice, Pinned<Plan>> {
    let mut plan = Some(plan);
    let handle = handle::hand_out_here(record, || match plan.take() {
        Some(plan) => ChoiceObject::Own(Choice::settled(plan, place)),
        None => ChoiceObject::Nothing,
    });
    match (handle, plan) {
        (None, Some(plan)) => Err(plan),
        (handle, _) => Ok(handle.unwrap_or(core::ptr::null_mut())),
    }
}

/// A handle for a result, owned by the caller.
#[inline]
pub(crate) fn hand_out(choice: Choice) -> *mut byway_choice {
    handle::hand_out(ChoiceObject::Own(choice))
}

fn shown<'a>(self_: *const byway_choice) -> Result<&'a ChoiceObject, Fail> {
    handle::shared(self_, "self")
}

/// How many providers may serve the call; 0 for what is not a live choice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_choice_len(self_: *const byway_choice) -> usize {
    call_bare(0, || {
        Ok(match shown(self_)? {
            ChoiceObject::Own(choice) => choice.len(),
            ChoiceObject::Lent(view) => view.len(),
            ChoiceObject::Remembered(answer) => answer.view().len(),
            ChoiceObject::Nothing => 0,
        })
    })
}

/// The tag of one of them, in list order, from 0.
///
/// Errors: `BYWAY_E_NOT_FOUND` past the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_choice_tag_at(
    self_: *const byway_choice,
    index: usize,
    tag: *mut u64,
) -> byway_status {
    status_bare(|| {
        let out = arguments::out(tag, 0, "tag")?;
        let tag = match shown(self_)? {
            ChoiceObject::Own(choice) => choice.tag_at(index),
            ChoiceObject::Lent(view) => view.tag_at(index),
            ChoiceObject::Remembered(answer) => answer.view().tag_at(index),
            ChoiceObject::Nothing => None,
        };
        *out = tag.ok_or(Fail::Parameter(Status::E_NOT_FOUND, "index"))?;
        Ok(Status::OK)
    })
}

/// The list the providers were chosen from: with `byway_invokers_row_of` and `byway_invokers_url` it says what a tag
/// stands for, also when the chain has another list by now.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_STATE` for a session's choice that shows nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_choice_invokers(
    self_: *const byway_choice,
    out: *mut *mut byway_invokers,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let list = match shown(self_)? {
            ChoiceObject::Own(choice) => Arc::clone(choice.invokers()),
            ChoiceObject::Lent(view) => Arc::clone(view.invokers()),
            ChoiceObject::Remembered(answer) => Arc::clone(answer.view().invokers()),
            ChoiceObject::Nothing => return Err(Fail::Parameter(Status::E_STATE, "self")),
        };
        *out = handle::hand_out(InvokersHandle(list));
        Ok(Status::OK)
    })
}

/// Copies the tags, in list order: as many as fit into `cap`, and how many there are into `*total`. `(NULL, 0)`
/// counts.
///
/// Errors: `BYWAY_E_NULL` for a `cap` without a place, `BYWAY_E_BUSY` for a session's choice on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_choice_tags(
    self_: *const byway_choice,
    tags: *mut u64,
    cap: usize,
    total: *mut usize,
) -> byway_status {
    status_bare(|| {
        let total = arguments::out_optional(total, 0);
        let room = arguments::room(tags, cap, "tags")?;
        let count = match shown(self_)? {
            ChoiceObject::Own(choice) => choice.tags_into(room),
            ChoiceObject::Lent(view) => view.tags_into(room),
            ChoiceObject::Remembered(answer) => answer.view().tags_into(room),
            ChoiceObject::Nothing => 0,
        };
        if let Some(total) = total {
            *total = count;
        }
        Ok(Status::OK)
    })
}

/// Number of the world (list and rules) that answered; grows with every change of its chain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_choice_generation(self_: *const byway_choice) -> u64 {
    call_bare(0, || {
        Ok(match shown(self_)? {
            ChoiceObject::Own(choice) => choice.generation(),
            ChoiceObject::Lent(view) => view.generation(),
            ChoiceObject::Remembered(answer) => answer.view().generation(),
            ChoiceObject::Nothing => 0,
        })
    })
}

/// Name of the router that left no provider.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_DONE` and no text when there are providers, or were none to begin with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_choice_emptied_by(
    self_: *const byway_choice,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let name = match shown(self_)? {
            ChoiceObject::Own(choice) => choice.emptied_by(),
            ChoiceObject::Lent(view) => view.emptied_by(),
            ChoiceObject::Remembered(answer) => answer.view().emptied_by(),
            ChoiceObject::Nothing => None,
        };
        let Some(name) = name else { return Ok(Status::DONE) };
        *out = text::hand_out(name.to_owned());
        Ok(Status::OK)
    })
}

/// Ends a choice from `byway_chain_route`. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_choice_free(self_: *mut byway_choice) {
    // One that this thread has routed and that pins its world by this thread's count needs nothing else.
    let (ended, waiting) = call_bare((false, None), || {
        let Some(record) = record::try_current() else { return Ok((false, None)) };
        let cell = handle::cell(self_, "self")?;
        let ChoiceObject::Own(choice) = cell.get() else { return Ok((false, None)) };
        let Some(pin) = choice.pin() else { return Ok((false, None)) };
        // SAFETY: it was just found live, and its owner says that nobody looks at it any more. The pin is all it holds.
        let waiting = unsafe {
            let waiting = pin.give_back_in_place();
            cell.end_here(record);
            waiting
        };
        Ok((true, waiting))
    });
    if !ended {
        free_slowly(self_);
    } else if let Some(waiting) = waiting {
        sweep(waiting);
    }
}

#[cold]
fn free_slowly(self_: *mut byway_choice) {
    call_or((), || {
        if matches!(shown(self_)?, ChoiceObject::Own(_)) {
            handle::free(self_);
        }
        Ok(())
    });
}

/// Drops a world that waited for this thread alone; what it holds of the host's goes on the way out.
#[cold]
pub(crate) fn sweep(waiting: Waiting) {
    call_or((), || {
        pinned::sweep(waiting);
        Ok(())
    });
}
