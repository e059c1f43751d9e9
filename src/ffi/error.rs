//! `byway_error`: what a person reads, as an object of its own.

use super::arguments::byway_str;
use super::guard::{call_bare, call_or};
use super::handle::{self, handle};
use super::status::byway_status;
use crate::error::Error;
use core::ffi::c_char;

/// Why a call failed. Owns everything it shows; thread-compatible; usable after the engine is gone and in a child.
/// Made only when the caller passed a place for it. Free with `byway_error_free`.
pub struct byway_error {
    _private: [u8; 0],
}

handle!(byway_error, ErrorObject, 0, true);

/// A parameter of the call.
pub const BYWAY_ERROR_SOURCE_ARGUMENT: i32 = 0;
/// Host code.
pub const BYWAY_ERROR_SOURCE_CALLBACK: i32 = 1;
/// A parser of this library: hosts, rules, URLs, JSON.
pub const BYWAY_ERROR_SOURCE_PARSER: i32 = 2;
/// The operating system, about a socket or a name.
pub const BYWAY_ERROR_SOURCE_SOCKET: i32 = 3;
/// A user's script.
pub const BYWAY_ERROR_SOURCE_SCRIPT: i32 = 4;
/// A defect in this library.
pub const BYWAY_ERROR_SOURCE_PANIC: i32 = 5;
/// The library's own state: cancel, timeout, shutdown, limits.
pub const BYWAY_ERROR_SOURCE_ENGINE: i32 = 6;

/// An error with its texts as C strings and its causes as handles of their own.
pub(crate) struct ErrorObject {
    error: Error,
    message: Box<str>,
    subject: Box<str>,
    causes: Vec<*mut byway_error>,
}

// SAFETY: the object is immutable; its causes are handles that it alone owns.
unsafe impl Send for ErrorObject {}
// SAFETY: as above.
unsafe impl Sync for ErrorObject {}

impl Drop for ErrorObject {
    fn drop(&mut self) {
        for &cause in &self.causes {
            handle::free(cause);
        }
    }
}

/// Text that C may read to its NUL. An inner NUL would hide the rest, so it is shown as a space.
fn c_text(text: &str) -> Box<str> {
    let mut text = text.replace('\0', " ");
    text.push('\0');
    text.into_boxed_str()
}

/// The text without its NUL, lent to C.
fn lend(text: &str) -> byway_str {
    byway_str { data: text.as_ptr().cast::<c_char>(), len: text.len() - 1 }
}

/// A handle for `error`, owned by the caller.
pub(crate) fn hand_out(error: Error) -> *mut byway_error {
    let causes = error.all_causes().iter().cloned().map(hand_out).collect();
    let (message, subject) = (c_text(error.message()), c_text(error.about()));
    handle::hand_out(ErrorObject { error, message, subject, causes })
}

fn read<T>(this: *const byway_error, otherwise: T, body: impl FnOnce(&ErrorObject) -> T) -> T {
    call_bare(otherwise, || handle::shared(this, "self").map(body))
}

fn write<T>(this: *const byway_error, out: *mut T, otherwise: T, body: impl FnOnce(&ErrorObject) -> T) {
    let value = read(this, otherwise, body);
    // SAFETY: by the header's contract `out` is NULL or a place for one value.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = value;
    }
}

/// The number to branch on, one of `BYWAY_E_*`. 0 for what is not a live error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_code(self_: *const byway_error) -> byway_status {
    read(self_, 0, |object| object.error.status().0)
}

/// Who found it, `BYWAY_ERROR_SOURCE_*`. 0 also for what is not a live error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_source(self_: *const byway_error) -> i32 {
    read(self_, 0, |object| object.error.found_by() as i32)
}

/// One line of English that says what was found and what was expected, without the subject.
///
/// Ownership: borrowed, valid until `self` is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_message(self_: *const byway_error, out: *mut byway_str) {
    write(self_, out, byway_str::EMPTY, |object| lend(&object.message));
}

/// What it is about: a parameter, a host, a rule key. Empty when nothing was named.
///
/// Ownership: borrowed, valid until `self` is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_subject(self_: *const byway_error, out: *mut byway_str) {
    write(self_, out, byway_str::EMPTY, |object| lend(&object.subject));
}

/// Byte offset of the fault in the text that was parsed, from 0; -1 when it is not about a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_offset(self_: *const byway_error) -> i64 {
    read(self_, -1, |object| {
        object.error.position().map_or(-1, |at| i64::try_from(at.offset).unwrap_or(i64::MAX))
    })
}

/// Line of the fault, from 1; 0 when it is not about a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_line(self_: *const byway_error) -> u32 {
    read(self_, 0, |object| object.error.position().map_or(0, |at| at.line))
}

/// Column of the fault in characters, from 1; 0 when it is not about a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_column(self_: *const byway_error) -> u32 {
    read(self_, 0, |object| object.error.position().map_or(0, |at| at.column))
}

/// The operating system's `errno`; 0 when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_os_errno(self_: *const byway_error) -> i32 {
    read(self_, 0, |object| object.error.os_errno())
}

/// The number a callback gave with its failure, unchanged; 0 when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_host_code(self_: *const byway_error) -> i64 {
    read(self_, 0, |object| object.error.host_code())
}

/// How many causes are listed: every failed attempt, in the order they happened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_cause_count(self_: *const byway_error) -> usize {
    read(self_, 0, |object| object.causes.len())
}

/// One cause, NULL past the end.
///
/// Ownership: borrowed, valid until `self` is freed; must not be freed itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_cause_at(self_: *const byway_error, index: usize) -> *const byway_error {
    read(self_, core::ptr::null(), |object| {
        object.causes.get(index).map_or(core::ptr::null(), |&c| c.cast_const())
    })
}

/// Ends an error. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_error_free(self_: *mut byway_error) {
    call_or((), || {
        handle::free(self_);
        Ok(())
    });
}
