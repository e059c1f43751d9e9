//! From C arguments to Rust values: strings, numbers, outputs, versioned structs, arrays.

use super::guard::Fail;
use crate::error::{Error, Status};
use core::ffi::c_char;
use std::time::{Duration, Instant};

/// Length that says "measure it": the text ends at the first NUL.
pub const BYWAY_NUL: usize = usize::MAX;

/// Borrowed text with its length. Where byway fills one, a NUL follows the text and `len` does not count it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct byway_str {
    /// First byte; NULL only with `len` 0.
    pub data: *const c_char,
    /// Bytes; `BYWAY_NUL` in inputs means "up to the first NUL".
    pub len: usize,
}

impl byway_str {
    /// The empty text.
    pub(crate) const EMPTY: byway_str = byway_str { data: c"".as_ptr(), len: 0 };

    /// No text given: what inputs default to.
    pub(crate) const NONE: byway_str = byway_str { data: core::ptr::null(), len: 0 };
}

/// Longest text or array that is believed, in bytes: a wild length must not send anybody through the address space.
const LONGEST: usize = 1 << 30;

/// Bytes of a text argument.
#[inline(always)]
pub(crate) fn bytes<'a>(data: *const c_char, len: usize, name: &'static str) -> Result<&'a [u8], Fail> {
    let len = if data.is_null() || len > LONGEST { odd_length(data, len, name)? } else { len };
    let data = if data.is_null() { c"".as_ptr() } else { data };
    // SAFETY: the host promises `len` readable bytes for the time of the call; without data `len` is 0.
    Ok(unsafe { core::slice::from_raw_parts(data.cast(), len) })
}

/// A length that says something else than how many bytes there are.
#[cold]
fn odd_length(data: *const c_char, len: usize, name: &'static str) -> Result<usize, Fail> {
    if data.is_null() {
        return if len == 0 { Ok(0) } else { Err(Fail::Parameter(Status::E_NULL, name)) };
    }
    if len == BYWAY_NUL {
        // SAFETY: BYWAY_NUL promises a NUL (header, "Strings").
        return Ok(unsafe { libc::strlen(data) });
    }
    Err(Error::new(Status::E_ARGUMENT, format!("length {len} is above {LONGEST}")).subject(name).into())
}

/// Text argument that must be UTF-8.
pub(crate) fn text<'a>(data: *const c_char, len: usize, name: &'static str) -> Result<&'a str, Fail> {
    let bytes = bytes(data, len, name)?;
    core::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Error::new(Status::E_UTF8, format!("byte {at} is not UTF-8")).subject(name).into()
    })
}

/// Text inside a struct that must be UTF-8.
pub(crate) fn text_of<'a>(text: byway_str, name: &'static str) -> Result<&'a str, Fail> {
    self::text(text.data, text.len, name)
}

/// Longest list of exceptions (a bypass list, a `NO_PROXY`) and longest variable or property, in bytes.
pub(crate) const LONGEST_SETTING: usize = 1 << 20;

/// A setting's text: UTF-8 of at most [`LONGEST_SETTING`] bytes.
pub(crate) fn setting<'a>(data: *const c_char, len: usize, name: &'static str) -> Result<&'a str, Fail> {
    // Before its bytes are looked at.
    let bytes = bytes(data, len, name)?;
    if bytes.len() > LONGEST_SETTING {
        let why = format!("{} bytes are more than {LONGEST_SETTING}", bytes.len());
        return Err(Error::new(Status::E_LIMIT, why).subject(name).into());
    }
    text(data, len, name)
}

/// An output: must not be NULL, is cleared at once.
pub(crate) fn out<'a, T: Copy>(place: *mut T, empty: T, name: &'static str) -> Result<&'a mut T, Fail> {
    // SAFETY: by the header's contract an output is NULL or a place for one value.
    let place = unsafe { place.as_mut() }.ok_or(Fail::Parameter(Status::E_NULL, name))?;
    *place = empty;
    Ok(place)
}

/// An output for a handle.
pub(crate) fn out_handle<'a, C>(place: *mut *mut C, name: &'static str) -> Result<&'a mut *mut C, Fail> {
    out(place, core::ptr::null_mut(), name)
}

/// An output that may be NULL.
pub(crate) fn out_optional<'a, T: Copy>(place: *mut T, empty: T) -> Option<&'a mut T> {
    // SAFETY: as in `out`.
    let place = unsafe { place.as_mut() }?;
    *place = empty;
    Some(place)
}

/// The time an export may wait until.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    Never,
    /// Until then.
    Until(Instant),
}

/// `timeout_ms`: 0 = do not wait, negative = `default`, never for ever.
pub(crate) fn wait(timeout_ms: i64, default: Duration) -> Wait {
    let timeout = match u64::try_from(timeout_ms) {
        Ok(0) => return Wait::Never,
        Ok(ms) => Duration::from_millis(ms),
        Err(_) => default,
    };
    let now = Instant::now();
    // A deadline beyond the clock's range is the farthest one a host can mean: a hundred years.
    let far = Duration::from_secs(100 * 365 * 86_400);
    Wait::Until(now.checked_add(timeout.min(far)).unwrap_or(now))
}

/// A struct that begins with `struct_size` and only grows at its end.
///
/// # Safety
/// `Self` is `repr(C)`, starts with the `usize` size, and every bit pattern of its fields is valid.
pub(crate) unsafe trait Versioned: Copy {
    /// Size in the first release; smaller is an error.
    const FIRST_SIZE: usize;
    /// Every field at its default.
    const INIT: Self;
}

/// Largest `struct_size` that is believed.
const FAR: usize = 65_536;

/// Copies a versioned struct in: what the host's version lacks keeps its default, what this version does not know
/// must be zero.
pub(crate) fn versioned<T: Versioned>(pointer: *const T, name: &'static str) -> Result<T, Fail> {
    if pointer.is_null() {
        return Err(Fail::Parameter(Status::E_NULL, name));
    }
    // SAFETY: every versioned struct starts with its size, and the host promises that many readable bytes.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    let known = size_of::<T>();
    if size < T::FIRST_SIZE || size > FAR {
        let first = T::FIRST_SIZE;
        return Err(Error::new(
            Status::E_STRUCT_SIZE,
            format!("struct_size is {size}; this library takes {first} to {FAR} and knows {known} bytes"),
        )
        .subject(name)
        .into());
    }
    if size > known {
        // SAFETY: `size` bytes are readable, see above.
        let tail = unsafe { core::slice::from_raw_parts(pointer.cast::<u8>().add(known), size - known) };
        if tail.iter().any(|&byte| byte != 0) {
            return Err(Error::new(
                Status::E_STRUCT_SIZE,
                format!("struct_size is {size}; bytes after the {known} this library knows must be zero"),
            )
            .subject(name)
            .into());
        }
    }
    let mut value = T::INIT;
    // SAFETY: both have at least that many bytes, they do not overlap, and any bits are valid by `Versioned`.
    unsafe {
        core::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast::<u8>(), size.min(known));
    }
    Ok(value)
}

/// As [`versioned`], with NULL for "every default".
pub(crate) fn versioned_or_default<T: Versioned>(pointer: *const T, name: &'static str) -> Result<T, Fail> {
    if pointer.is_null() { Ok(T::INIT) } else { versioned(pointer, name) }
}

/// The `_init` function of a versioned struct; NULL is left alone.
pub(crate) fn init<T: Versioned>(place: *mut T) {
    // SAFETY: by the header's contract `place` is NULL or room for one struct of this version.
    if !place.is_null() {
        // SAFETY: see above.
        unsafe { place.write(T::INIT) };
    }
}

/// Fills an array of records whose element size is the host's: writes `min(cap, total)` elements, zeroes what the
/// host's version has and this one does not, and sets `total`. `(NULL, 0)` counts.
pub(crate) fn fill<T: Copy>(
    array: *mut T,
    stride: usize,
    cap: usize,
    total: *mut usize,
    count: usize,
    mut item: impl FnMut(usize) -> T,
) -> Result<(), Fail> {
    if let Some(total) = out_optional(total, 0) {
        *total = count;
    }
    if array.is_null() {
        return if cap == 0 { Ok(()) } else { Err(Fail::Parameter(Status::E_NULL, "out")) };
    }
    if stride == 0 || stride > FAR || cap.saturating_mul(stride) > LONGEST {
        return Err(Fail::Parameter(Status::E_ARGUMENT, "stride"));
    }
    if stride == size_of::<T>() {
        for i in 0..count.min(cap) {
            // SAFETY: the host promises `cap` elements of this size; `i` is below `cap`. The array need not be aligned.
            unsafe { array.add(i).write_unaligned(item(i)) };
        }
        return Ok(());
    }
    let known = stride.min(size_of::<T>());
    for i in 0..count.min(cap) {
        let value = item(i);
        // SAFETY: the host promises `cap` elements of `stride` bytes; `i` is below `cap`.
        unsafe {
            let place = array.cast::<u8>().add(i * stride);
            core::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), place, known);
            core::ptr::write_bytes(place.add(known), 0, stride - known);
        }
    }
    Ok(())
}

/// A plain array argument.
pub(crate) fn array<'a, T>(data: *const T, len: usize, name: &'static str) -> Result<&'a [T], Fail> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Fail::Parameter(Status::E_NULL, name));
    }
    if !data.is_aligned() || len.saturating_mul(size_of::<T>()) > LONGEST {
        return Err(Fail::Parameter(Status::E_ARGUMENT, name));
    }
    // SAFETY: aligned, in range, and the host promises `len` readable elements for the time of the call.
    Ok(unsafe { core::slice::from_raw_parts(data, len) })
}

/// A plain array to be filled; `(NULL, 0)` is no room.
pub(crate) fn room<'a, T>(data: *mut T, cap: usize, name: &'static str) -> Result<&'a mut [T], Fail> {
    if cap == 0 {
        return Ok(&mut []);
    }
    if data.is_null() {
        return Err(Fail::Parameter(Status::E_NULL, name));
    }
    if !data.is_aligned() || isize::try_from(cap.saturating_mul(size_of::<T>())).is_err() {
        return Err(Fail::Parameter(Status::E_ARGUMENT, name));
    }
    // SAFETY: aligned, in range, and the host promises room for `cap` elements that nobody else uses meanwhile.
    Ok(unsafe { core::slice::from_raw_parts_mut(data, cap) })
}
