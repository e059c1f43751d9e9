//! Natives of `io.byway.Invocation`: what Java wrote about a call, handed to the engine where it lies.

use crate::env::{Class, Env, check, handle, make, str_of};
use crate::errors::Fail;
use byway::Status;
use byway::ffi::arguments::{BYWAY_NUL, byway_str};
use byway::ffi::invocation::{
    byway_invocation, byway_invocation_free, byway_invocation_new, byway_invocation_reset,
    byway_invocation_set_arguments, byway_invocation_set_attachment, byway_invocation_set_attachments,
    byway_invocation_set_method, byway_invocation_set_method_id, byway_invocation_set_types,
};
use core::ptr;
use jni_sys::{jint, jlong};

/// Kinds of notes in the memory of an `io.byway.Invocation`, each an int with ints and texts behind it.
const METHOD: i32 = 0;
const METHOD_ID: i32 = 1;
const TYPES: i32 = 2;
const ARGUMENTS: i32 = 3;
const ATTACHMENT: i32 = 4;
const ATTACHMENTS: i32 = 5;

/// Reads notes. The memory is Java's and stays until the invocation is closed or filled anew.
struct Notes<'a> {
    left: &'a [u8],
}

impl<'a> Notes<'a> {
    fn number(&mut self) -> Result<i32, Fail> {
        let (number, left) = self.left.split_first_chunk::<4>().ok_or_else(broken)?;
        self.left = left;
        Ok(i32::from_ne_bytes(*number))
    }

    /// A text; `None` where its length is negative.
    fn text(&mut self) -> Result<Option<&'a [u8]>, Fail> {
        let Ok(len) = usize::try_from(self.number()?) else { return Ok(None) };
        let (text, left) = self.left.split_at_checked(len).ok_or_else(broken)?;
        self.left = left;
        Ok(Some(text))
    }

    fn view(&mut self) -> Result<byway_str, Fail> {
        Ok(self.text()?.map_or(byway_str { data: ptr::null(), len: BYWAY_NUL }, str_of))
    }

    /// Calls `give` with this many texts.
    fn views(&mut self, give: impl FnOnce(*const byway_str, usize) -> i32) -> Result<(), Fail> {
        let count = usize::try_from(self.number()?).map_err(|_| broken())?;
        let mut few = [byway_str { data: ptr::null(), len: 0 }; 16];
        let mut many = Vec::new();
        let views = match few.get_mut(..count) {
            Some(few) => few,
            None => {
                many.resize(count.min(self.left.len()), byway_str { data: ptr::null(), len: 0 });
                &mut many[..]
            }
        };
        for view in &mut *views {
            *view = self.view()?;
        }
        check(give(views.as_ptr(), views.len()))?;
        Ok(())
    }
}

#[cold]
fn broken() -> Fail {
    Fail::Status(Status::E_ARGUMENT.0, ptr::null_mut())
}

/// What goes with every native that takes an invocation: its handle, and the notes if it is to be filled anew.
#[derive(Clone, Copy)]
pub struct Asked {
    pub invocation: jlong,
    pub notes: jlong,
    pub len: jint,
}

impl Asked {
    /// The invocation, filled. Its texts are lent by Java for as long as it is in use.
    pub fn ready(self) -> Result<*const byway_invocation, Fail> {
        let invocation: *mut byway_invocation = handle(self.invocation);
        if let Ok(len) = usize::try_from(self.len) {
            // SAFETY: Java wrote this many bytes there and holds them.
            fill(invocation, unsafe { core::slice::from_raw_parts(handle(self.notes), len) })?;
        }
        Ok(invocation)
    }
}

/// Forgets what was set, and sets what Java wrote; the calling thread becomes the owner.
fn fill(invocation: *mut byway_invocation, notes: &[u8]) -> Result<(), Fail> {
    let mut notes = Notes { left: notes };
    // SAFETY: the handle is checked by the engine; the texts stay where they are (see `Asked`).
    unsafe {
        check(byway_invocation_reset(invocation))?;
        while !notes.left.is_empty() {
            match notes.number()? {
                METHOD => {
                    let name = notes.view()?;
                    check(byway_invocation_set_method(invocation, name.data, name.len))?;
                }
                METHOD_ID => {
                    check(byway_invocation_set_method_id(invocation, notes.number()? as u32))?;
                }
                TYPES => {
                    notes.views(|views, count| byway_invocation_set_types(invocation, views, count))?;
                }
                ARGUMENTS => {
                    notes.views(|views, count| byway_invocation_set_arguments(invocation, views, count))?;
                }
                ATTACHMENT => {
                    let (key, value) = (notes.view()?, notes.view()?);
                    check(byway_invocation_set_attachment(
                        invocation, key.data, key.len, value.data, value.len,
                    ))?;
                }
                ATTACHMENTS => {
                    notes.views(|views, count| byway_invocation_set_attachments(invocation, views, count))?;
                }
                _ => return Err(broken()),
            }
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invocation_make(env: Env, _: Class) -> jlong {
    // SAFETY: outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_invocation_new(out, err) }))
}

/// Fills it now.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invocation_fill(env: Env, _: Class, self_: jlong, notes: jlong, len: jint) {
    env.guard(|| {
        Asked { invocation: self_, notes, len }.ready()?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invocation_free(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own handle, ended once.
    unsafe { byway_invocation_free(handle(self_)) };
}

/// Several invocations, each filled before.
pub fn pointers(addresses: &[jlong]) -> Vec<*const byway_invocation> {
    addresses.iter().map(|address| handle::<byway_invocation>(*address).cast_const()).collect()
}
