//! `byway_queue`: one event loop's inbox.

use super::arguments::{self, Versioned, Wait};
use super::call::millis;
use super::callbacks::{self, Callbacks};
use super::error::byway_error;
use super::guard::{self, Fail, call, call_or, call_quiet};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::status::byway_status;
use crate::engine::host;
use crate::error::{Error, Status};
use crate::runtime::queue::{Completion, Queue, QueueOptions};
use crate::sys::{fork, record};
use core::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One event loop's inbox: completion records, callbacks that must run on the host's thread, deadlines. Engines may
/// share one; every selector, listener and binding to a source may name its own. A dial needs none: it has a descriptor.
pub struct byway_queue {
    _private: [u8; 0],
}

handle!(byway_queue, QueueHandle, 2, false);

/// The handle's reference.
pub(crate) struct QueueHandle(pub(crate) Arc<Queue>);

/// The thread that polls this queue is an event loop: a blocking call on it that would have to wait answers
/// `BYWAY_E_WOULD_DEADLOCK`.
pub const BYWAY_QUEUE_LOOP: u32 = 1;

/// What a queue is made with. Start from `BYWAY_QUEUE_OPTIONS_INIT` or `byway_queue_options_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_queue_options {
    /// `sizeof(byway_queue_options)`.
    pub struct_size: usize,
    /// `BYWAY_QUEUE_LOOP` or 0.
    pub flags: u32,
    /// Records and callbacks that may wait, each; 0 means 65536. A new operation that would go over it is refused
    /// with `BYWAY_E_LIMIT`; events that would are dropped and counted.
    pub capacity: u32,
}

// SAFETY: repr(C), size first, plain numbers.
unsafe impl Versioned for byway_queue_options {
    const FIRST_SIZE: usize = 16;
    const INIT: Self = byway_queue_options { struct_size: size_of::<Self>(), flags: 0, capacity: 0 };
}

/// Says how one pending operation ended. Each `BYWAY_PENDING` is followed by exactly one, also on timeout, cancel and
/// shutdown.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_completion {
    /// The host's number for the operation, echoed.
    pub tag: u64,
    /// The operation's number, for example `byway_selector_id`.
    pub id: u64,
    /// `BYWAY_COMPLETION_*`.
    pub kind: i32,
    /// 0: call the operation again for its result. Negative: it ended without one.
    pub status: byway_status,
}

/// A selector's `poll_next` may be called again.
pub const BYWAY_COMPLETION_SELECTOR: i32 = 1;
/// The first state of a source is in force in a chain. (2 is retired: dials post no records.)
pub const BYWAY_COMPLETION_SOURCE: i32 = 3;

/// Tells a host without descriptors that a queue went from empty to non-empty.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_notify_callbacks {
    /// `sizeof(byway_notify_callbacks)`.
    pub struct_size: usize,
    /// First argument of both functions.
    pub user_data: *mut c_void,
    /// Runs once when the set is no longer in use. May be NULL.
    pub destroy: callbacks::byway_destroy,
    /// Any thread, also one of byway's own: may only schedule a poll elsewhere, and must not call byway.
    pub notify: Option<unsafe extern "C-unwind" fn(user_data: *mut c_void)>,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_notify_callbacks {
    const FIRST_SIZE: usize = 32;
    const INIT: Self = byway_notify_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
        notify: None,
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_notify_callbacks {}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_queue_options { struct_size, flags, capacity }),
    layout!(byway_completion { tag, id, kind, status }),
    layout!(byway_notify_callbacks { struct_size, user_data, destroy, notify }),
];

/// Longest wait of a poll whose `timeout_ms` is negative.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_options_init(options: *mut byway_queue_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// Makes a queue. `options` may be NULL.
///
/// Ownership: the caller owns one reference.
/// Threads: any.
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_ENUM` for unknown flags.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_new(
    options: *const byway_queue_options,
    out: *mut *mut byway_queue,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        let options = arguments::versioned_or_default(options, "options")?;
        if options.flags & !BYWAY_QUEUE_LOOP != 0 {
            return Err(Fail::Parameter(Status::E_ENUM, "options.flags"));
        }
        let mut made =
            QueueOptions { is_loop: options.flags & BYWAY_QUEUE_LOOP != 0, ..QueueOptions::default() };
        if let Ok(capacity @ 1..) = usize::try_from(options.capacity) {
            made.capacity = capacity;
        }
        *out = handle::hand_out(QueueHandle(Queue::new(made)));
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_retain(self_: *mut byway_queue) -> *mut byway_queue {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. Never blocks. NULL is fine. The descriptor is closed when neither the host nor an engine holds
/// the queue any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_release(self_: *mut byway_queue) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}

/// A descriptor for the host's own loop: readable, level-triggered, while something is queued or a deadline has
/// passed. Then call `byway_queue_poll`. Made on first use.
///
/// Ownership: the queue's; must not be read, written or closed.
/// Errors: `BYWAY_E_RESOURCES` when the process has no descriptors left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_fd(self_: *mut byway_queue, out: *mut i32) -> byway_status {
    call_quiet(|| {
        let out = arguments::out(out, -1, "out")?;
        *out = handle::shared(self_, "self")?.0.fd()?;
        Ok(Status::OK)
    })
}

/// Sets what is called when the queue goes from empty to non-empty, also at once when it is not empty now. That a deadline
/// passes is not told: ask `byway_queue_deadline` after each poll, and after calls that answered `BYWAY_PENDING`. NULL takes
/// it back. The previous set is destroyed.
///
/// Threads: any; `notify` itself is called on any thread.
/// Errors: `BYWAY_E_NULL` without `notify`, `BYWAY_E_STRUCT_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_set_notify(
    self_: *mut byway_queue,
    callbacks: *const byway_notify_callbacks,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let notify = if callbacks.is_null() { None } else { Some(Notify::new(callbacks)?) };
        let queue = &handle::shared(self_, "self")?.0;
        drop(queue.set_notify(notify.map(|notify| Arc::new(move || notify.call()) as _)));
        Ok(Status::OK)
    })
}

/// A notify set. It belongs to a queue, not to an engine, so it has its own small life cycle.
struct Notify(byway_notify_callbacks);

// SAFETY: the header says that `notify` is called on any thread.
unsafe impl Send for Notify {}
// SAFETY: as above.
unsafe impl Sync for Notify {}

impl Notify {
    fn new(callbacks: *const byway_notify_callbacks) -> Result<Notify, Fail> {
        let taken = arguments::versioned(callbacks, "callbacks");
        let notify = Notify(taken.inspect_err(|_| callbacks::destroy_refused(callbacks))?);
        if notify.0.notify.is_none() {
            return Err(Error::new(Status::E_NULL, "notify must not be NULL").subject("callbacks").into());
        }
        Ok(notify)
    }

    fn call(&self) {
        if let Some(notify) = self.0.notify {
            // SAFETY: the host gave this function for this pointer.
            unsafe { notify(self.0.user_data) };
        }
    }
}

impl Drop for Notify {
    fn drop(&mut self) {
        if let Some(destroy) = self.0.destroy.take() {
            let user_data = self.0.user_data.addr();
            host::retire(Box::new(move || {
                // SAFETY: the host gave this function for this pointer, and this is its only call.
                unsafe { destroy(user_data as *mut c_void) };
            }));
        }
    }
}

/// Milliseconds until the next deadline: 0 when it has passed, -1 when there is none. For hosts that cannot watch a
/// descriptor.
///
/// Errors: `BYWAY_E_NULL` without a place for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_deadline(self_: *mut byway_queue, out_ms: *mut i64) -> byway_status {
    call_quiet(|| {
        let out = arguments::out(out_ms, -1, "out_ms")?;
        *out = handle::shared(self_, "self")?.0.deadline().map_or(-1, millis);
        Ok(Status::OK)
    })
}

/// Waits for something to do, runs the callbacks that were queued at that moment on this thread, and fills completion
/// records that were there, at most `cap` of `stride` bytes each. `*n` gets their number. With `*n == cap` there may
/// be more.
///
/// `timeout_ms`: 0 = do not wait, negative = 30 s.
/// Threads: one poller at a time.
/// Errors: `BYWAY_E_BUSY` while another thread polls, `BYWAY_E_REENTRANT` from inside a callback of an engine that
/// uses this queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_poll(
    self_: *mut byway_queue,
    timeout_ms: i64,
    records: *mut byway_completion,
    stride: usize,
    cap: usize,
    n: *mut usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let n = arguments::out(n, 0, "n")?;
        let queue = &handle::shared(self_, "self")?.0;
        // Checked before anything is taken out: a record must not be lost to a bad argument.
        arguments::fill(records, stride, cap, core::ptr::null_mut(), 0, |_| EMPTY)?;
        let record = record::current();
        if queue.users().iter().any(|&engine| record.inside_engine(engine)) || queue.is_polled_here() {
            return Err(Fail::Parameter(Status::E_REENTRANT, "self"));
        }
        host::adopt_orphans();
        let timeout = match arguments::wait(timeout_ms, DEFAULT_TIMEOUT) {
            Wait::Never => Duration::ZERO,
            Wait::Until(end) => end.saturating_duration_since(Instant::now()),
        };
        let mut filled = 0;
        queue.poll(Some(timeout), cap, |completion| {
            // SAFETY: `fill` has checked the array; `poll` delivers at most `cap` records.
            let place = unsafe { records.byte_add(filled * stride) };
            let _ = arguments::fill(place, stride, 1, core::ptr::null_mut(), 1, |_| from(completion));
            filled += 1;
        })?;
        *n = filled;
        Ok(Status::OK)
    })
}

const EMPTY: byway_completion = byway_completion { tag: 0, id: 0, kind: 0, status: 0 };

fn from(completion: Completion) -> byway_completion {
    let Completion { tag, id, kind, status } = completion;
    byway_completion { tag, id, kind, status }
}

/// Ends a running poll, or the next one, at once.
///
/// Threads: any.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_wakeup(self_: *mut byway_queue) -> byway_status {
    call_quiet(|| {
        handle::shared(self_, "self")?.0.wakeup();
        Ok(Status::OK)
    })
}

/// Events dropped because the queue was full, since it was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_queue_lost(self_: *mut byway_queue) -> u64 {
    call_or(0, || {
        if fork::is_child() {
            return Ok(0);
        }
        Ok(handle::shared(self_, "self")?.0.lost())
    })
}
