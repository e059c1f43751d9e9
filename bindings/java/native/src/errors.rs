//! From a status and an error object to the pending exception.

use crate::callback::StaticMethod;
use crate::env::{Env, NO_TEXT, bytes_of};
use byway::ffi::error::{
    byway_error, byway_error_cause_at, byway_error_cause_count, byway_error_code, byway_error_column,
    byway_error_free, byway_error_host_code, byway_error_line, byway_error_message, byway_error_offset,
    byway_error_os_errno, byway_error_source, byway_error_subject,
};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use jni_sys::{jobject, jvalue};

/// Why a native cannot answer.
pub enum Fail {
    /// A call failed; the error object, which may be missing, is ours.
    Status(i32, *mut byway_error),
    /// An exception is pending already.
    Thrown,
}

/// Makes an exception: code, message, subject, offset, line, column, errno, host code, source, causes.
pub static MAKE: StaticMethod = StaticMethod::new(
    c"io/byway/Errors",
    c"make",
    c"(I[B[BJIIIJI[Ljava/lang/Throwable;)Ljava/lang/Throwable;",
);
/// Takes what a callback on this thread threw into a call that succeeded all the same.
pub static UNCLAIMED: StaticMethod = StaticMethod::new(c"io/byway/Errors", c"unclaimed", c"()V");
/// Gives and forgets what a callback on this thread threw.
pub static SET_ASIDE: StaticMethod =
    StaticMethod::new(c"io/byway/Errors", c"setAside", c"()Ljava/lang/Throwable;");
/// The way back, unless another exception has come.
pub static PUT_BACK: StaticMethod =
    StaticMethod::new(c"io/byway/Errors", c"putBack", c"(Ljava/lang/Throwable;)V");
/// The class of the array of causes.
pub static THROWABLE: StaticMethod = StaticMethod::class_only(c"java/lang/Throwable");

/// Exceptions of callbacks that wait on some thread for the call that led to them.
static RAISED: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    static RAISED_HERE: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// A callback on this thread has left its exception with `io.byway.Errors`.
pub fn raised() {
    RAISED.fetch_add(1, Ordering::Relaxed);
    RAISED_HERE.set(RAISED_HERE.get() + 1);
}

/// True when a callback below the native that runs here has thrown.
pub fn was_raised() -> bool {
    RAISED_HERE.get() != 0
}

/// What waited on this thread when another callback began.
pub struct Aside(usize, Option<jobject>);

/// Before a callback: what an earlier one threw belongs to the call around both, and natives that this one calls, or
/// errors that are made for it, must not take it.
#[inline]
pub fn set_aside(env: Env) -> Option<Aside> {
    let count = RAISED_HERE.replace(0);
    (count != 0).then(|| Aside(count, SET_ASIDE.call_object(env, &[])))
}

/// Behind the callback. What it threw itself comes later and stays.
pub fn put_back(env: Env, aside: Option<Aside>) {
    let Some(Aside(count, thrown)) = aside else { return };
    RAISED_HERE.set(RAISED_HERE.get() + count);
    if let Some(thrown) = thrown {
        PUT_BACK.call_void(env, &[jvalue { l: thrown }]);
    }
}

/// After a call that succeeded: what a callback threw meanwhile has no caller to go to.
#[inline(always)]
pub fn check_raised(env: Env) {
    if RAISED.load(Ordering::Relaxed) != 0 {
        unclaimed(env);
    }
}

fn taken() -> bool {
    let here = RAISED_HERE.replace(0);
    RAISED.fetch_sub(here, Ordering::Relaxed);
    here != 0
}

#[cold]
fn unclaimed(env: Env) {
    if taken() {
        UNCLAIMED.call_void(env, &[]);
    }
}

/// Leaves the exception for a failure pending.
#[cold]
pub fn throw(env: Env, fail: Fail) {
    let raised = taken();
    let Fail::Status(status, error) = fail else { return };
    let throwable = if error.is_null() { bare(env, status) } else { of(env, error) };
    if raised && throwable.is_some() {
        // Where the failure has another cause, a callback's exception would go to the next failure.
        UNCLAIMED.call_void(env, &[]);
    }
    if !error.is_null() {
        // SAFETY: ours, and read by now.
        unsafe { byway_error_free(error) };
    }
    if let Some(throwable) = throwable {
        // SAFETY: a live local reference to a Throwable.
        unsafe { (env.table().v1_1.Throw)(env.raw(), throwable) };
    }
}

fn bare(env: Env, status: i32) -> Option<jobject> {
    let zero = jvalue { j: 0 };
    let none = jvalue { l: ptr::null_mut() };
    MAKE.call_object(
        env,
        &[
            jvalue { i: status },
            none,
            none,
            jvalue { j: -1 },
            jvalue { i: 0 },
            jvalue { i: 0 },
            jvalue { i: 0 },
            zero,
            jvalue { i: -1 },
            none,
        ],
    )
}

/// The exception for a live error, which stays the caller's; `None` when another exception came in between.
pub fn of(env: Env, error: *const byway_error) -> Option<jobject> {
    // SAFETY: a live error and its parts, read only.
    unsafe {
        let count = byway_error_cause_count(error);
        let table = &env.table().v1_2;
        if (table.EnsureLocalCapacity)(env.raw(), 8) != 0 {
            return None;
        }
        let causes = (table.NewObjectArray)(env.raw(), count as i32, THROWABLE.class(), ptr::null_mut());
        if causes.is_null() {
            return None;
        }
        for i in 0..count {
            let cause = of(env, byway_error_cause_at(error, i))?;
            (table.SetObjectArrayElement)(env.raw(), causes, i as i32, cause);
            (table.DeleteLocalRef)(env.raw(), cause);
        }
        let (mut message, mut subject) = (NO_TEXT, NO_TEXT);
        byway_error_message(error, &mut message);
        byway_error_subject(error, &mut subject);
        let message = env.new_bytes(bytes_of(&message)).ok()?;
        let subject = env.new_bytes(bytes_of(&subject)).ok()?;
        let made = MAKE.call_object(
            env,
            &[
                jvalue { i: byway_error_code(error) },
                jvalue { l: message },
                jvalue { l: subject },
                jvalue { j: byway_error_offset(error) },
                jvalue { i: byway_error_line(error) as i32 },
                jvalue { i: byway_error_column(error) as i32 },
                jvalue { i: byway_error_os_errno(error) },
                jvalue { j: byway_error_host_code(error) },
                jvalue { i: byway_error_source(error) },
                jvalue { l: causes },
            ],
        );
        for local in [message, subject, causes] {
            (table.DeleteLocalRef)(env.raw(), local);
        }
        made
    }
}
