//! `byway_invocation`: one call to be routed.

use super::arguments::{self, byway_str};
use super::error::byway_error;
use super::guard::{self, Fail, call, call_or, status_bare};
use super::handle::{self, handle};
use super::status::byway_status;
use crate::chain::hash;
use crate::chain::invocation::Invocation;
use crate::chain::names;
use crate::error::{Error, Status};
use crate::sys::slab::owned::{Bound, Owned};
use core::ffi::c_char;
use core::sync::atomic::{AtomicU64, Ordering};

/// One call to be routed: method, parameter types, arguments, attachments. Made once per thread and filled anew for
/// every call; filling it allocates nothing once it has held as much before.
///
/// Strings are bytes and are BORROWED, not copied: each must stay as it is until it is replaced, the invocation is
/// reset or freed.
///
/// Threads: belongs to the thread that made or last reset it; elsewhere `BYWAY_E_BUSY`.
pub struct byway_invocation {
    _private: [u8; 0],
}

handle!(byway_invocation, Bound<CallObject>, 19, true);

type Bytes = &'static [u8];

/// What was set. The lifetimes say `'static`; they last as the host promised.
#[derive(Default)]
pub(crate) struct CallObject {
    method: Bytes,
    types: Vec<Bytes>,
    arguments: Vec<Option<Bytes>>,
    attachments: Vec<(Bytes, Bytes)>,
    /// Bit [`bit_of`] of every attachment's key.
    keys: u64,
}

/// Parameters, arguments or attachments one call may have.
const MOST: usize = 65_536;

/// Stamps a call object takes at a time.
const STAMPS: u64 = 1 << 32;

/// The first of a fresh range of stamps.
fn fresh_stamps() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(STAMPS)
}

/// Gives an invocation that is about to change another stamp, which no call of this process ever has again.
#[inline(always)]
fn changed(call: &mut Owned<'_, CallObject>) {
    let next = call.stamp() + 1;
    call.set_stamp(if next.is_multiple_of(STAMPS) { fresh_stamps() } else { next });
}

/// One of 64 bits for a key; most keys of a call have one of their own.
#[inline(always)]
fn bit_of(key: Bytes) -> u64 {
    1 << ((key.last().map_or(0, |last| usize::from(*last)) ^ key.len() << 2) % 64)
}

impl CallObject {
    /// The call as the floor below takes it.
    #[inline(always)]
    pub(crate) fn as_call(&self) -> Invocation<'_> {
        Invocation {
            method: self.method,
            types: &self.types,
            arguments: &self.arguments,
            attachments: &self.attachments,
            available: None,
        }
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.keys = 0;
        self.method = &[];
        self.types.clear();
        self.arguments.clear();
        self.attachments.clear();
    }

    #[inline(always)]
    fn attach(&mut self, key: Bytes, value: Bytes) -> Result<(), Fail> {
        let bit = bit_of(key);
        if self.keys & bit != 0 || self.attachments.len() >= MOST {
            return self.attach_again(key, value);
        }
        self.keys |= bit;
        self.attachments.push((key, value));
        Ok(())
    }

    /// The key may be there already.
    #[inline(never)]
    fn attach_again(&mut self, key: Bytes, value: Bytes) -> Result<(), Fail> {
        if let Some((_, own)) = self.attachments.iter_mut().find(|(own, _)| hash::same(own, key)) {
            *own = value;
            return Ok(());
        }
        if self.attachments.len() >= MOST {
            return Err(Fail::Parameter(Status::E_LIMIT, "key"));
        }
        self.keys |= bit_of(key);
        self.attachments.push((key, value));
        Ok(())
    }
}

/// The invocation behind a pointer, for a call that reads it.
#[inline(always)]
pub(crate) fn read<'a>(pointer: *const byway_invocation) -> Result<Owned<'a, CallObject>, Fail> {
    handle::owned(pointer, "invocation")
}

#[inline(always)]
fn write(
    self_: *mut byway_invocation,
    body: impl FnOnce(&mut CallObject) -> Result<(), Fail>,
) -> byway_status {
    status_bare(|| {
        let mut call = handle::owned(self_, "self")?;
        changed(&mut call);
        body(&mut call)?;
        call.done();
        Ok(Status::OK)
    })
}

fn limited(count: usize, name: &'static str) -> Result<(), Fail> {
    if count <= MOST {
        return Ok(());
    }
    Err(Error::new(Status::E_LIMIT, format!("{count} are more than {MOST}")).subject(name).into())
}

/// Makes an empty invocation.
///
/// Ownership: the caller owns it; free with `byway_invocation_free`.
/// Errors: `BYWAY_E_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_new(
    out: *mut *mut byway_invocation,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        guard::prepare()?;
        *out = handle::hand_out_owned(CallObject {
            types: Vec::with_capacity(8),
            arguments: Vec::with_capacity(8),
            attachments: Vec::with_capacity(8),
            ..CallObject::default()
        });
        handle::owned(*out, "out")?.set_stamp(fresh_stamps());
        Ok(Status::OK)
    })
}

/// Forgets everything set, keeps the memory, and makes the calling thread the owner.
///
/// Errors: `BYWAY_E_BUSY` while its thread is inside a call on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_reset(self_: *mut byway_invocation) -> byway_status {
    status_bare(|| {
        let mut call = match handle::owned(self_, "self") {
            Ok(call) => call,
            Err(_) => adopted(self_)?,
        };
        changed(&mut call);
        call.clear();
        call.done();
        Ok(Status::OK)
    })
}

#[cold]
fn adopted<'a>(self_: *mut byway_invocation) -> Result<Owned<'a, CallObject>, Fail> {
    handle::adopt(self_, "self")?;
    handle::owned(self_, "self")
}

/// Sets the method name as called, for example `sayHello` or `$invoke`. Borrowed. `len` may be `BYWAY_NUL`.
///
/// Errors: `BYWAY_E_BUSY` on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_set_method(
    self_: *mut byway_invocation,
    name: *const c_char,
    len: usize,
) -> byway_status {
    write(self_, |call| {
        call.method = arguments::bytes(name, len, "name")?;
        Ok(())
    })
}

/// Sets the method by a number from `byway_chain_intern_method`.
///
/// Errors: `BYWAY_E_NOT_FOUND` for a number nobody was given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_set_method_id(
    self_: *mut byway_invocation,
    method_id: u32,
) -> byway_status {
    write(self_, |call| {
        call.method = names::name(method_id).ok_or(Fail::Parameter(Status::E_NOT_FOUND, "method_id"))?;
        Ok(())
    })
}

/// Sets the names of the parameter types, in order. Borrowed; the array itself is not.
///
/// Errors: `BYWAY_E_BUSY` on another thread, `BYWAY_E_LIMIT` for more than 65 536.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_set_types(
    self_: *mut byway_invocation,
    types: *const byway_str,
    count: usize,
) -> byway_status {
    write(self_, |call| {
        limited(count, "types")?;
        let types = arguments::array(types, count, "types")?;
        call.types.clear();
        for text in types {
            call.types.push(arguments::bytes(text.data, text.len, "types")?);
        }
        Ok(())
    })
}

/// Sets the arguments by their text form, in order. Borrowed; the array itself is not. A null argument is
/// `{NULL, BYWAY_NUL}`. Of a generic call (`$invoke`) the first argument is the method that is meant, the second
/// stands for the types, and those behind it are that method's own arguments.
///
/// Errors: `BYWAY_E_BUSY` on another thread, `BYWAY_E_LIMIT` for more than 65 536.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_set_arguments(
    self_: *mut byway_invocation,
    values: *const byway_str,
    count: usize,
) -> byway_status {
    write(self_, |call| {
        limited(count, "values")?;
        let values = arguments::array(values, count, "values")?;
        call.arguments.clear();
        for text in values {
            let is_null = text.data.is_null() && text.len == arguments::BYWAY_NUL;
            call.arguments.push(if is_null {
                None
            } else {
                Some(arguments::bytes(text.data, text.len, "values")?)
            });
        }
        Ok(())
    })
}

/// Sets one attachment; one of the same key is replaced. Borrowed. The lengths may be `BYWAY_NUL`.
///
/// Errors: `BYWAY_E_BUSY` on another thread, `BYWAY_E_LIMIT` for more than 65 536.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_set_attachment(
    self_: *mut byway_invocation,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) -> byway_status {
    write(self_, |call| {
        let key = arguments::bytes(key, key_len, "key")?;
        let value = arguments::bytes(value, value_len, "value")?;
        call.attach(key, value)
    })
}

/// Sets many attachments: key, value, key, value, ... `count` texts. As `byway_invocation_set_attachment`.
///
/// Errors: `BYWAY_E_ARGUMENT` for an odd count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_set_attachments(
    self_: *mut byway_invocation,
    texts: *const byway_str,
    count: usize,
) -> byway_status {
    write(self_, |call| {
        limited(count, "texts")?;
        let (pairs, rest) = arguments::array(texts, count, "texts")?.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Fail::Parameter(Status::E_ARGUMENT, "count"));
        }
        for [key, value] in pairs {
            let key = arguments::bytes(key.data, key.len, "texts")?;
            call.attach(key, arguments::bytes(value.data, value.len, "texts")?)?;
        }
        Ok(())
    })
}

/// Ends an invocation. NULL is fine.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invocation_free(self_: *mut byway_invocation) {
    call_or((), || {
        handle::free_owned(self_);
        Ok(())
    });
}
