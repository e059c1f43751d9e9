//! `byway_selector`: which routes to try, Selection by Selection.

use super::address::byway_address;
use super::arguments::{self, Versioned};
use super::engine::byway_engine;
use super::error::byway_error;
use super::guard::{Fail, call, call_or, status_bare};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::queue::byway_queue;
use super::route::{self, byway_route_record};
use super::selection::{SelectionObject, byway_selection};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::routes::Target;
use crate::engine::routes::select::{Driven, Patience, Rest, SelectOptions, Selecting, Side, plan_routes};
use crate::error::{Error, Status};
use crate::net::Selection;
use crate::net::selector::{ExtractHead, Head};
use crate::sys::slab::{Exclusive, Shared, Slot};
use arrayvec::ArrayVec;
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Gives the routes of an address in the order to try them: first those of the first proxy that did not fail before,
/// what failed before last. Exclusive.
pub struct byway_selector {
    _private: [u8; 0],
}

handle!(byway_selector, SelectorObject, 12, false, |cell| {
    // SAFETY: `side` is made for being touched beside a running call, and the cell is not dead.
    unsafe { (*cell.value_ptr()).side.cancel() }
});

/// What a call works on, and what other threads may touch meanwhile.
pub(crate) struct SelectorObject {
    side: Side,
    work: UnsafeCell<Selecting>,
}

impl Drop for SelectorObject {
    fn drop(&mut self) {
        self.work.get_mut().end(&self.side);
    }
}

impl SelectorObject {
    /// The part that belongs to the running call.
    #[allow(clippy::mut_from_ref, reason = "the exclusive borrow is that of the handle")]
    #[inline]
    pub(super) fn work<'a>(this: &'a mut Exclusive<'_, SelectorObject>) -> (&'a Side, &'a mut Selecting) {
        let this: &SelectorObject = this;
        // SAFETY: the handle is taken for this call, so nobody else reaches `work`; `side` is reached by shared
        // reference only.
        (&this.side, unsafe { &mut *this.work.get() })
    }
}

/// Give the routes of the first family that is answered while the other is still awaited, as a Selection of its own.
pub const BYWAY_SELECTOR_EARLY: u32 = 1;

/// What a selector is made with. Start from `BYWAY_SELECTOR_OPTIONS_INIT` or `byway_selector_options_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_selector_options {
    /// `sizeof(byway_selector_options)`.
    pub struct_size: usize,
    /// The host's own number, echoed in completion records, events and calls.
    pub tag: u64,
    /// Where its completion records go, NULL for the engine's queue. Retained.
    pub queue: *mut byway_queue,
    /// `BYWAY_SELECTOR_EARLY` or 0.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: repr(C), size first, plain numbers and a pointer.
unsafe impl Versioned for byway_selector_options {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_selector_options {
        struct_size: size_of::<Self>(),
        tag: 0,
        queue: core::ptr::null_mut(),
        flags: 0,
        reserved: 0,
    };
}

pub(super) const LAYOUTS: &[Layout] =
    &[layout!(byway_selector_options { struct_size, tag, queue, flags, reserved })];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_options_init(options: *mut byway_selector_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

fn options_of(options: *const byway_selector_options) -> Result<SelectOptions, Fail> {
    if options.is_null() {
        return Ok(SelectOptions::default());
    }
    let options = arguments::versioned(options, "options")?;
    if options.flags & !BYWAY_SELECTOR_EARLY != 0 {
        return Err(Fail::Parameter(Status::E_ENUM, "options.flags"));
    }
    let queue = match NonNull::new(options.queue) {
        Some(queue) => Some(Arc::clone(&handle::shared(queue.as_ptr(), "options.queue")?.0)),
        None => None,
    };
    Ok(SelectOptions { tag: options.tag, queue, early: options.flags & BYWAY_SELECTOR_EARLY != 0 })
}

/// The address of a call, which must be of that engine.
#[inline]
fn target_of(engine: *mut byway_engine, address: *const byway_address) -> Result<[Shared<Target>; 2], Fail> {
    let engine = &handle::shared(engine, "engine")?.0;
    let address = handle::cell(address, "address")?;
    if !Arc::ptr_eq(engine, &address.get().engine) {
        let message = "the address was made with another engine";
        return Err(Error::new(Status::E_ARGUMENT, message).subject("address").into());
    }
    engine.check_open()?;
    Ok(Shared::two_of(address))
}

/// Makes a selector. The proxy selector is asked here, once; a later answer, or its failure, shows in the first `next`.
/// `options` may be NULL.
///
/// Ownership: the caller owns it; the address is retained.
/// Errors: `BYWAY_E_ARGUMENT` for an address of another engine, `BYWAY_E_SHUTDOWN`. Under `BYWAY_COMPAT_OKHTTP_5` and
/// `_3` also what the proxy selector fails with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_new(
    engine: *mut byway_engine,
    address: *const byway_address,
    options: *const byway_selector_options,
    out: *mut *mut byway_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let options = options_of(options)?;
        let target = target_of(engine, address)?;
        let id = target[0].engine.next_id();
        let cell = SelectorObject::slab().insert_with(|place| {
            let place = place.as_mut_ptr();
            // SAFETY: every field is written once, in place: moving a whole selector would cost more than using it.
            unsafe {
                (&raw mut (*place).side).write(Side::default());
                let work = UnsafeCell::raw_get(&raw const (*place).work);
                (&raw mut (*work).core.head).write(Head::new(id));
                (&raw mut (*work).core.inline).write(ArrayVec::new_const());
                (&raw mut (*work).rest).write(Rest::new(target, options));
            }
        });
        let pointer: *mut byway_selector = cell.as_ptr().cast();
        // SAFETY: the handle is known to nobody yet, so this call is the only one.
        let started = unsafe { (*(*cell.as_ref().value_ptr()).work.get()).start(pointer.addr()) };
        if let Err(error) = started {
            handle::free(pointer);
            return Err(error.into());
        }
        *out = pointer;
        Ok(Status::OK)
    })
}

#[inline]
fn hand_out(work: &mut Selecting, selection: &Selection) -> *mut byway_selection {
    let target = work.target_for_selection();
    let cell = SelectionObject::slab().insert_with(|place| {
        let place = place.as_mut_ptr();
        // SAFETY: every field is written once, in place, and `routes` is filled through a reference to a whole value.
        unsafe {
            (&raw mut (*place).target).write(target);
            (&raw mut (*place).cursor).write(0);
            (&raw mut (*place).lent).write(Vec::new());
            let routes = &raw mut (*place).routes;
            (&raw mut (*routes).head).write(ExtractHead::default());
            (&raw mut (*routes).inline).write(ArrayVec::new_const());
            work.core().extract(selection, &mut *routes);
        }
    });
    cell.as_ptr().cast()
}

/// The next routes to try. Waits for answers up to `timeout_ms` (0 = do not wait, negative = the engine's default);
/// after `BYWAY_E_TIMEOUT` a further call goes on waiting for the same answers.
///
/// Ownership: the caller owns the selection.
/// Errors: `BYWAY_DONE` when nothing is left. An error names every cause since the last Selection: unknown hosts,
/// unusable proxies, filtered addresses. `BYWAY_E_TIMEOUT`, `BYWAY_E_CANCELED`, `BYWAY_E_SHUTDOWN`, `BYWAY_E_BUSY`,
/// `BYWAY_E_REENTRANT`, `BYWAY_E_WOULD_DEADLOCK` on an event loop's thread when it would have to wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_next(
    self_: *mut byway_selector,
    timeout_ms: i64,
    out: *mut *mut byway_selection,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let mut selector = handle::exclusive(self_, "self")?;
        let (side, work) = SelectorObject::work(&mut selector);
        let mut patience = match u64::try_from(timeout_ms) {
            Ok(0) => Patience::NONE,
            Ok(ms) => Patience::lasting(Duration::from_millis(ms)),
            Err(_) => Patience::lasting(work.target().engine.options().default_timeout),
        };
        match work.next(side, &mut patience, self_.addr())? {
            Some(selection) => *out = hand_out(work, &selection),
            None => return Ok(Status::DONE),
        }
        Ok(Status::OK)
    })
}

/// As `byway_selector_next` without waiting: `BYWAY_PENDING` is followed by exactly one `BYWAY_COMPLETION_SELECTOR`
/// record on the selector's queue, also on cancel, free and shutdown; then call again. Nothing is awaited for ever: when the
/// engine's default timeout has passed the record says `BYWAY_E_TIMEOUT`, and a further call goes on waiting for the same
/// answers. A further poll before that record shares it.
///
/// Ownership: the caller owns the selection.
/// Errors: as `byway_selector_next`; `BYWAY_E_LIMIT` when the queue has no room for the record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_poll_next(
    self_: *mut byway_selector,
    out: *mut *mut byway_selection,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let mut selector = handle::exclusive(self_, "self")?;
        let (side, work) = SelectorObject::work(&mut selector);
        match work.poll(side, self_.addr())? {
            Driven::Selection(selection) => *out = hand_out(work, &selection),
            Driven::Done => return Ok(Status::DONE),
            Driven::Wait => return Ok(Status::PENDING),
        }
        Ok(Status::OK)
    })
}

/// Every route of an address in one call, in the order to try them, what failed before at the end: writes up to `cap`
/// records of `stride` bytes into the caller's memory, `*total` gets their number. Proxy selector and resolver must
/// answer in place. `options` may be NULL.
///
/// Ownership: `host` in the records is borrowed from the address, `proxy_host` too for its explicit proxy, and is
/// `(NULL, 0)` for others: take a selector where their texts or credentials are needed.
/// Errors: as `byway_selector_next`; `BYWAY_E_WOULD_DEADLOCK` when an answer did not come in place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_plan(
    engine: *mut byway_engine,
    address: *const byway_address,
    options: *const byway_selector_options,
    out: *mut byway_route_record,
    stride: usize,
    cap: usize,
    total: *mut usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let total = arguments::out(total, 0, "total")?;
        // Checked before anybody is asked.
        arguments::fill(out, stride, cap, core::ptr::null_mut(), 0, |_| route::RECORD)?;
        let engine = &handle::shared(engine, "engine")?.0;
        let target = handle::shared(address, "address")?;
        if !Arc::ptr_eq(engine, &target.engine) {
            let message = "the address was made with another engine";
            return Err(Error::new(Status::E_ARGUMENT, message).subject("address").into());
        }
        let options = options_of(options)?;
        let records = route::Records {
            array: out,
            stride,
            cap,
            common: route::common(&target.address),
            with_proxy_host: target.address.explicit_proxy().is_some(),
        };
        *total = plan_routes(target, options.tag, 0, |i, route| records.write(i, &route))?;
        Ok(Status::OK)
    })
}

/// 1 when `next` may still give routes or an error, 0 when it says `BYWAY_DONE`. Asks nobody. 0 for what is not a live
/// selector, or one on which a call is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_may_have_next(self_: *const byway_selector) -> i32 {
    call_or(0, || {
        let mut selector = handle::exclusive(self_, "self")?;
        Ok(i32::from(SelectorObject::work(&mut selector).1.may_have_next()))
    })
}

/// Cancels for good: a running or later call ends with `BYWAY_E_CANCELED`, a pending one gets its record.
///
/// Threads: any, at any time, also from a signal handler.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_cancel(self_: *mut byway_selector) -> byway_status {
    status_bare(|| {
        let visit = handle::running(self_, "self")?;
        // SAFETY: as in the handle's interrupt.
        unsafe { (*visit.value_ptr()).side.cancel() };
        Ok(Status::OK)
    })
}

/// The whole decision so far: proxies offered, names, answers, what was postponed since when and why, what was filtered,
/// the resulting order. `format` is `BYWAY_FORMAT_*`. Also after a shutdown.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_ENUM`, `BYWAY_E_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_explain(
    self_: *const byway_selector,
    format: i32,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let as_text = text::is_text(format)?;
        let mut selector = handle::exclusive(self_, "self")?;
        *out = text::hand_out(SelectorObject::work(&mut selector).1.explain(!as_text));
        Ok(Status::OK)
    })
}

/// The selector's number, as completion records and events carry it; 0 for what is not a live selector, or one on which
/// a call is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_id(self_: *const byway_selector) -> u64 {
    call_or(0, || {
        let mut selector = handle::exclusive(self_, "self")?;
        Ok(SelectorObject::work(&mut selector).1.id())
    })
}

/// Ends a selector, at any time: a running call ends with `BYWAY_E_CANCELED` and frees it. Selections and routes it gave
/// stay. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selector_free(self_: *mut byway_selector) {
    call_or((), || {
        handle::free(self_);
        Ok(())
    });
}
