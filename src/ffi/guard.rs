//! What stands around every export: no panic crosses, errors become objects, put-off work runs on the way out.

use super::error::{self, byway_error};
use super::status::byway_status;
use crate::error::{Error, Source, Status};
use crate::sys::record::{self, Record};
use crate::sys::{fence, fork};
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Once;

/// Why an export did not do what it says. The error object is only built when the host asked for one.
#[derive(Debug)]
pub(crate) enum Fail {
    /// A status that needs no more words.
    Status(Status),
    /// A parameter, and what is wrong with it.
    Parameter(Status, &'static str),
    /// The same, in other words than the status has.
    Told(Status, &'static str, &'static str),
    /// The whole story.
    Error(Error),
}

impl From<Status> for Fail {
    fn from(status: Status) -> Fail {
        Fail::Status(status)
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Fail {
        Fail::Error(error)
    }
}

impl Fail {
    pub(crate) fn status(&self) -> Status {
        match self {
            Fail::Status(status) | Fail::Parameter(status, _) | Fail::Told(status, ..) => *status,
            Fail::Error(error) => error.status(),
        }
    }

    fn into_error(self) -> Error {
        match self {
            Fail::Status(status) => Error::bare(status).source(Source::Engine),
            Fail::Parameter(status, name) => Error::bare(status).subject(name),
            Fail::Told(status, name, message) => Error::new(status, message).subject(name),
            Fail::Error(error) => error,
        }
    }
}

/// What a guarded body gives: a success status, or why not.
pub(crate) type Outcome = Result<Status, Fail>;

/// The body, and in front of it the place where tests make it panic.
#[inline(always)]
fn pass<T>(body: impl FnOnce() -> T) -> T {
    #[cfg(feature = "failpoints")]
    super::failpoint::reach(super::failpoint::Point::Guard);
    body()
}

/// Runs the body of an export that returns a status and may fill `*err`.
#[inline]
pub(crate) fn call(err: *mut *mut byway_error, body: impl FnOnce() -> Outcome) -> byway_status {
    let inside = Inside::enter();
    // SAFETY: by the header's contract `err` is NULL or a place for one pointer.
    if let Some(err) = unsafe { err.as_mut() } {
        *err = core::ptr::null_mut();
    }
    let fail = match catch_unwind(AssertUnwindSafe(|| pass(body))) {
        Ok(Ok(status)) => return status.0,
        Ok(Err(fail)) => fail,
        Err(_) => panicked(inside.0),
    };
    report(err, fail)
}

/// Runs the body of an export that returns a status and explains nothing.
#[inline]
pub(crate) fn call_quiet(body: impl FnOnce() -> Outcome) -> byway_status {
    call(core::ptr::null_mut(), body)
}

/// Runs the body of an export that returns a plain value: `otherwise` when something is wrong.
#[inline]
pub(crate) fn call_or<T>(otherwise: T, body: impl FnOnce() -> Result<T, Fail>) -> T {
    let _inside = Inside::enter();
    match catch_unwind(AssertUnwindSafe(|| pass(body))) {
        Ok(Ok(value)) => value,
        Ok(Err(_)) | Err(_) => otherwise,
    }
}

/// As [`call_or`] for bodies of a few loads that run no host code, drop nothing and cannot block: no thread-local is
/// touched.
#[inline(always)]
pub(crate) fn call_bare<T>(otherwise: T, body: impl FnOnce() -> Result<T, Fail>) -> T {
    match catch_unwind(AssertUnwindSafe(|| pass(body))) {
        Ok(Ok(value)) => value,
        Ok(Err(_)) | Err(_) => otherwise,
    }
}

/// As [`call_quiet`], under the conditions of [`call_bare`].
#[inline(always)]
pub(crate) fn status_bare(body: impl FnOnce() -> Outcome) -> byway_status {
    match catch_unwind(AssertUnwindSafe(|| pass(body))) {
        Ok(Ok(status)) => status.0,
        Ok(Err(fail)) => fail.status().0,
        Err(_) => Status::E_PANIC.0,
    }
}

#[cold]
fn report(err: *mut *mut byway_error, fail: Fail) -> byway_status {
    let status = fail.status();
    // SAFETY: as in `call`.
    if let Some(err) = unsafe { err.as_mut() } {
        *err = error::hand_out(fail.into_error());
    }
    status.0
}

#[cold]
fn panicked(record: &Record) -> Fail {
    let text = record.take_panic().unwrap_or_else(|| "panic without a message".to_owned());
    Fail::Error(Error::new(Status::E_PANIC, text).source(Source::Panic))
}

/// The thread is inside the library for as long as this lives.
struct Inside(&'static Record);

impl Inside {
    #[inline]
    fn enter() -> Inside {
        // The first call of a thread may be the first of all: a panic must find the hook in place.
        let record = record::try_current().unwrap_or_else(first_entry);
        record.enter();
        Inside(record)
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cold]
fn first_entry() -> &'static Record {
    get_ready();
    record::current()
}

/// What must be in force before the first object is handed out. Called by everything that makes one out of nothing.
/// In a forked child nothing is made: locks and threads of the parent stay as they were at the fork.
pub(crate) fn prepare() -> Result<(), Fail> {
    if fork::is_child() {
        return Err(Fail::Status(Status::E_FORKED));
    }
    get_ready();
    Ok(())
}

fn get_ready() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        fence::init();
        fork::init();
        keep_panics_quiet();
    });
}

/// A panic that a guard will catch is kept for the error object and prints nothing. Panics of anybody else who shares
/// this copy of the standard library go to the hook that was there before.
fn keep_panics_quiet() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        let own = !cfg!(test) && info.location().is_some_and(|at| at.file().starts_with(OWN_SOURCES));
        match record::try_current() {
            Some(record) if record.is_inside() || own => {
                let payload = info.payload();
                let text = payload.downcast_ref::<&str>().copied();
                let what = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                let what = what.unwrap_or("panic without a message");
                record.note_panic(format!("{what}{place}"));
            }
            _ if own => {}
            _ => before(info),
        }
    }));
}

/// How the paths of this crate's files start in panic locations.
const OWN_SOURCES: &str = {
    let (file, tail) = (file!(), "ffi/guard.rs");
    let (head, _) = file.as_bytes().split_at(file.len() - tail.len());
    match core::str::from_utf8(head) {
        Ok(head) => head,
        Err(_) => "src/",
    }
};
