//! `byway_call`: what a callback learns about the call it serves.

use super::engine::byway_engine;
use super::guard::{Fail, call_bare};
use crate::error::Status;
use core::marker::PhantomData;
use std::time::{Duration, Instant};

/// The call a callback serves. Only valid until the callback returns.
pub struct byway_call {
    _private: [u8; 0],
}

/// What stands behind it, on the stack of whoever calls the host.
#[repr(C)]
pub(crate) struct Call<'a> {
    /// The address of [`MARK`].
    mark: usize,
    engine: *const byway_engine,
    tag: u64,
    id: u64,
    deadline: Option<Instant>,
    /// Time that was left when the callback began, for calls that have not read the clock.
    left: Option<Duration>,
    _stack: PhantomData<&'a ()>,
}

/// First word of a call of this copy of the library; no handle begins with it.
static MARK: u8 = 0;

fn mark() -> usize {
    (&raw const MARK).addr()
}

impl Call<'_> {
    /// A context for one callback; `engine` is the host's own handle as an address, 0 when it was released.
    pub(crate) fn new(engine: usize, tag: u64, id: u64, deadline: Option<Instant>) -> Self {
        Call {
            mark: mark(),
            engine: engine as *const byway_engine,
            tag,
            id,
            deadline,
            left: None,
            _stack: PhantomData,
        }
    }

    /// As [`Call::new`], with the time that is left.
    pub(crate) fn lasting(engine: usize, tag: u64, id: u64, left: Option<Duration>) -> Self {
        Call { left, ..Call::new(engine, tag, id, None) }
    }

    /// For the callback's last argument.
    pub(crate) fn as_ptr(&self) -> *const byway_call {
        core::ptr::from_ref(self).cast()
    }
}

fn read<T>(call: *const byway_call, otherwise: T, body: impl FnOnce(&Call<'_>) -> T) -> T {
    call_bare(otherwise, || {
        let call = call.cast::<Call<'_>>();
        if call.is_null() || !call.is_aligned() {
            return Err(Fail::Parameter(Status::E_BAD_HANDLE, "call"));
        }
        // SAFETY: a callback passes on the pointer it was given, which lives as long as it runs; any handle of ours
        // has a word to read as well.
        if unsafe { (&raw const (*call).mark).read() } != mark() {
            return Err(Fail::Parameter(Status::E_BAD_HANDLE, "call"));
        }
        // SAFETY: as above; the mark says that it is a call.
        Ok(body(unsafe { &*call }))
    })
}

/// The engine. NULL when the host has released it.
///
/// Ownership: borrowed, valid until the callback returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_call_engine(call: *const byway_call) -> *const byway_engine {
    read(call, core::ptr::null(), |call| call.engine)
}

/// The `tag` the host gave the operation, 0 when it gave none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_call_tag(call: *const byway_call) -> u64 {
    read(call, 0, |call| call.tag)
}

/// The operation's number, for example a selector's; 0 when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_call_id(call: *const byway_call) -> u64 {
    read(call, 0, |call| call.id)
}

/// Milliseconds until the operation gives up, 0 when that moment has passed, -1 when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_call_deadline_ms(call: *const byway_call) -> i64 {
    read(call, -1, |call| {
        let left = call.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.or(call.left).map_or(-1, millis)
    })
}

/// Whole milliseconds, rounded up so that waiting that long is enough.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
