//! `byway_text`: a text the caller owns.

use super::arguments::byway_str;
use super::guard::{Fail, call_bare, call_or};
use super::handle::{self, handle};
use crate::error::Status;
use core::ffi::c_char;

/// A text made for the caller: an explanation, an export. Free with `byway_text_free`.
pub struct byway_text {
    _private: [u8; 0],
}

/// An explanation or report as one JSON object or list.
pub const BYWAY_FORMAT_JSON: i32 = 0;
/// As text for people.
pub const BYWAY_FORMAT_TEXT: i32 = 1;

/// True for text, false for JSON.
pub(crate) fn is_text(format: i32) -> Result<bool, Fail> {
    match format {
        BYWAY_FORMAT_JSON => Ok(false),
        BYWAY_FORMAT_TEXT => Ok(true),
        _ => Err(Fail::Parameter(Status::E_ENUM, "format")),
    }
}

handle!(byway_text, TextObject, 1, true);

/// The text with a NUL behind it.
pub(crate) struct TextObject(Box<str>);

/// A handle for `text`, owned by the caller.
pub(crate) fn hand_out(mut text: String) -> *mut byway_text {
    text.push('\0');
    handle::hand_out(TextObject(text.into_boxed_str()))
}

/// The text, UTF-8, followed by a NUL that `len` does not count.
///
/// Ownership: borrowed, valid until `self` is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_text_str(self_: *const byway_text, out: *mut byway_str) {
    let value = call_bare(byway_str::EMPTY, || {
        let text = &handle::shared(self_, "self")?.0;
        Ok(byway_str { data: text.as_ptr().cast::<c_char>(), len: text.len() - 1 })
    });
    // SAFETY: by the header's contract `out` is NULL or a place for one value.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = value;
    }
}

/// Ends a text. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_text_free(self_: *mut byway_text) {
    call_or((), || {
        handle::free(self_);
        Ok(())
    });
}
