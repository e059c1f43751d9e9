//! From a C pointer to a live object, or a clear refusal.

use super::guard::Fail;
use crate::error::Status;
use crate::sys::fork;
use crate::sys::record::Record;
use crate::sys::slab::owned::{Bound, Owned};
use crate::sys::slab::{self, Cell, Exclusive, Refused, Slot, Visit};

/// Ties a C type to what its pointer really points to. A wrong cast becomes a compile error.
pub(crate) trait Opaque: Sized {
    /// The cell's content.
    type Value: Slot;
    /// The handle only shows values of its own and stays usable in a forked child.
    const IS_VALUE: bool;
}

/// Declares a handle: C type, content, position in the thread caches (unique), whether it is a value, and for
/// exclusive handles what ends a running call when the handle is freed meanwhile.
///
/// Taken positions: error 0, text 1, queue 2, engine 3, listener 4, dns 5, dns_request 6, proxy_selector 7,
/// proxy_request 8, filter 9, proxy 10, address 11, selector 12, selection 13, route 14, dial 15, handshake 16,
/// invokers_builder 17, invokers 18, invocation 19, chain 20, router 21, choice 22, session 23, source 24.
macro_rules! handle {
    ($c:ident, $value:ty, $index:literal, $is_value:literal) => {
        $crate::ffi::handle::handle!($c, $value, $index, $is_value, |_cell| ());
    };
    ($c:ident, $value:ty, $index:literal, $is_value:literal, |$cell:ident| $interrupt:expr) => {
        impl $crate::ffi::handle::Opaque for $c {
            type Value = $value;
            const IS_VALUE: bool = $is_value;
        }
        impl $crate::sys::slab::Slot for $value {
            const INFO: &'static $crate::sys::slab::TypeInfo = {
                static INFO: $crate::sys::slab::TypeInfo =
                    $crate::sys::slab::TypeInfo { name: stringify!($c), index: $index };
                &INFO
            };
            fn slab() -> &'static $crate::sys::slab::Slab<Self> {
                static SLAB: $crate::sys::slab::Slab<$value> = $crate::sys::slab::Slab::new();
                &SLAB
            }
            fn interrupt($cell: &$crate::sys::slab::Cell<Self>) {
                $interrupt
            }
        }
    };
}
pub(crate) use handle;

/// Invocations have no `adopt`: their `reset` is one.
const OF_ANOTHER_THREAD: &str = "belongs to another thread; adopt it first (an invocation: reset it)";

fn refuse(why: Refused, name: &'static str) -> Fail {
    let status = match why {
        Refused::Bad => Status::E_BAD_HANDLE,
        Refused::Busy => Status::E_BUSY,
        Refused::Elsewhere => {
            return Fail::Told(Status::E_BUSY, name, OF_ANOTHER_THREAD);
        }
        Refused::Poisoned => Status::E_POISONED,
    };
    Fail::Parameter(status, name)
}

#[cold]
fn forked(name: &'static str) -> Fail {
    Fail::Parameter(Status::E_FORKED, name)
}

#[inline(always)]
fn cell_pointer<C: Opaque>(pointer: *const C) -> *const Cell<C::Value> {
    pointer.cast()
}

/// The cell of a shared handle.
#[inline(always)]
pub(crate) fn cell<'a, C: Opaque>(pointer: *const C, name: &'static str) -> Result<&'a Cell<C::Value>, Fail> {
    if !C::IS_VALUE && fork::is_child() {
        return Err(forked(name));
    }
    // SAFETY: the host passes NULL or a handle, live or dead (header, "Handles").
    unsafe { slab::check(cell_pointer(pointer)) }.map_err(|why| refuse(why, name))
}

/// The object behind a shared handle.
#[inline(always)]
pub(crate) fn shared<'a, C: Opaque>(pointer: *const C, name: &'static str) -> Result<&'a C::Value, Fail>
where
    C::Value: Sync,
{
    Ok(cell(pointer, name)?.get())
}

/// An exclusive handle, whether or not a call is running on it: for what may be touched beside one.
#[inline]
pub(crate) fn running<'a, C: Opaque>(
    pointer: *const C,
    name: &'static str,
) -> Result<Visit<'a, C::Value>, Fail> {
    if !C::IS_VALUE && fork::is_child() {
        return Err(forked(name));
    }
    // SAFETY: as in `cell`.
    unsafe { slab::visit(cell_pointer(pointer)) }.map_err(|why| refuse(why, name))
}

/// As [`shared`], with NULL for "none".
#[inline]
pub(crate) fn optional<'a, C: Opaque>(
    pointer: *const C,
    name: &'static str,
) -> Result<Option<&'a C::Value>, Fail>
where
    C::Value: Sync,
{
    if pointer.is_null() { Ok(None) } else { shared(pointer, name).map(Some) }
}

/// An exclusive handle, taken for this call.
#[inline]
pub(crate) fn exclusive<'a, C: Opaque>(
    pointer: *const C,
    name: &'static str,
) -> Result<Exclusive<'a, C::Value>, Fail>
where
    C::Value: Send,
{
    if !C::IS_VALUE && fork::is_child() {
        return Err(forked(name));
    }
    // SAFETY: as in `cell`.
    let taken = unsafe { Cell::lock(cell_pointer(pointer)) }.map_err(|why| match why {
        Refused::Busy if crate::sys::record::current().inside_object(pointer.addr()) => {
            Fail::Parameter(Status::E_REENTRANT, name)
        }
        why => refuse(why, name),
    });
    #[cfg(feature = "failpoints")]
    if taken.is_ok() {
        super::failpoint::reach(super::failpoint::Point::Exclusive);
    }
    taken
}

/// A handle of the calling thread, taken for this call without a locked instruction.
#[inline(always)]
pub(crate) fn owned<'a, C, V>(pointer: *const C, name: &'static str) -> Result<Owned<'a, V>, Fail>
where
    C: Opaque<Value = Bound<V>>,
    Bound<V>: Slot,
    V: Send,
{
    if !C::IS_VALUE && fork::is_child() {
        return Err(forked(name));
    }
    // SAFETY: as in `cell`.
    unsafe { Cell::enter(cell_pointer(pointer)) }.map_err(|why| not_mine(why, pointer.addr(), name))
}

/// The stamp of a handle of the calling thread, without taking it; `None` is no answer: take it to learn why.
#[inline(always)]
pub(crate) fn glance<C, V>(pointer: *const C) -> Option<u64>
where
    C: Opaque<Value = Bound<V>>,
    Bound<V>: Slot,
    V: Send,
{
    if !C::IS_VALUE && fork::is_child() {
        return None;
    }
    // SAFETY: as in `cell`.
    unsafe { Cell::glance(cell_pointer(pointer)) }
}

#[cold]
fn not_mine(why: Refused, address: usize, name: &'static str) -> Fail {
    let inside = || crate::sys::record::try_current().is_some_and(|record| record.inside_object(address));
    if why == Refused::Busy && inside() {
        return Fail::Parameter(Status::E_REENTRANT, name);
    }
    refuse(why, name)
}

/// Makes the calling thread the owner of a handle made by [`hand_out_owned`].
pub(crate) fn adopt<C, V>(pointer: *const C, name: &'static str) -> Result<(), Fail>
where
    C: Opaque<Value = Bound<V>>,
    Bound<V>: Slot,
    V: Send,
{
    if !C::IS_VALUE && fork::is_child() {
        return Err(forked(name));
    }
    // SAFETY: as in `cell`.
    unsafe { Cell::adopt(cell_pointer(pointer)) }.map_err(|why| not_mine(why, pointer.addr(), name))
}

/// A handle for `value` that the calling thread will own.
pub(crate) fn hand_out_owned<C, V>(value: V) -> *mut C
where
    C: Opaque<Value = Bound<V>>,
    Bound<V>: Slot,
{
    hand_out::<C>(Bound::here(value))
}

/// Ends a handle made by [`hand_out_owned`], from any thread and also during a call on it.
pub(crate) fn free_owned<C, V>(pointer: *const C)
where
    C: Opaque<Value = Bound<V>>,
    Bound<V>: Slot,
    V: Send,
{
    // SAFETY: as in `cell`.
    if let Ok(Some(value)) = unsafe { Cell::free_owned(cell_pointer(pointer)) } {
        if !C::IS_VALUE && fork::is_child() {
            core::mem::forget(value);
        } else {
            drop(value);
        }
    }
}

/// A handle for `value` that the caller of the export will own.
#[inline]
pub(crate) fn hand_out<C: Opaque>(value: C::Value) -> *mut C {
    C::Value::slab().insert(value).as_ptr().cast()
}

/// As [`hand_out`], from the cells this thread has at hand, if it has one.
#[inline(always)]
pub(crate) fn hand_out_here<C: Opaque>(record: &Record, make: impl FnOnce() -> C::Value) -> Option<*mut C> {
    C::Value::slab().insert_here(record, make).map(|cell| cell.as_ptr().cast())
}

/// One more reference; returns the pointer, or a failure for what is not a live handle.
#[inline]
pub(crate) fn retain<C: Opaque>(pointer: *const C) -> Result<*mut C, Fail>
where
    C::Value: Sync,
{
    // SAFETY: as in `cell`. Retaining is legal in a child: the count is in memory of the process.
    let cell = unsafe { slab::check(cell_pointer(pointer)) }.map_err(|why| refuse(why, "self"))?;
    cell.retain();
    Ok(pointer.cast_mut())
}

/// One reference less. What is not a live handle is left alone.
#[inline]
pub(crate) fn release<C: Opaque>(pointer: *const C)
where
    C::Value: Sync,
{
    // SAFETY: as in `cell`.
    if let Ok(cell) = unsafe { slab::check(cell_pointer(pointer)) } {
        cell.release_in_place(stays_behind::<C>());
    }
}

/// Ends an exclusive handle, also during a call on it. What is not a live handle is left alone.
#[inline]
pub(crate) fn free<C: Opaque>(pointer: *const C)
where
    C::Value: Send,
{
    // SAFETY: as in `cell`. What is not a live handle is left alone.
    let _ = unsafe { Cell::free_in_place(cell_pointer(pointer), stays_behind::<C>()) };
}

/// In a child nothing may be locked, run or closed; what the value holds stays behind.
#[inline]
fn stays_behind<C: Opaque>() -> bool {
    !C::IS_VALUE && fork::is_child()
}
