//! Natives of `io.byway.Session`.

use crate::chain::{Wanted, give_picked};
use crate::env::{Class, Env, address, call, handle, make};
use crate::errors::{self, Fail};
use crate::invocation::Asked;
use byway::Status;
use byway::ffi::choice::byway_choice;
use byway::ffi::error::byway_error_free;
use byway::ffi::invocation::byway_invocation;
use byway::ffi::session::{
    byway_session_adopt, byway_session_free, byway_session_idle, byway_session_new, byway_session_pick,
    byway_session_route, byway_session_route_tags,
};
use core::ptr;
use jni_sys::{jint, jlong, jlongArray};

/// What `route` answers instead of a choice when session or invocation belong to another thread of the system: a
/// virtual thread has changed its carrier. Java looks whether it has, and asks again.
const BUSY: jlong = 1;

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_make(env: Env, _: Class, chain: jlong) -> jlong {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_session_new(handle(chain), out, err) }))
}

/// The choice a session lends for a call; the same address every time.
#[inline(always)]
fn route(session: jlong, invocation: *const byway_invocation) -> Result<jlong, Fail> {
    let mut choice: *const byway_choice = ptr::null();
    let mut err = ptr::null_mut();
    // SAFETY: handles that are checked by the engine, outputs of our own.
    let status = unsafe { byway_session_route(handle(session), invocation, &mut choice, &mut err) };
    if status == 0 { Ok(address(choice)) } else { refused(status, err) }
}

#[cold]
fn refused(status: i32, err: *mut byway::ffi::error::byway_error) -> Result<jlong, Fail> {
    // What a callback says of another session is not about this one.
    if status != Status::E_BUSY.0 || errors::was_raised() {
        return Err(Fail::Status(status, err));
    }
    // SAFETY: ours, and nobody reads it.
    unsafe { byway_error_free(err) };
    Ok(BUSY)
}

/// The hot one. Java holds neither handle, which is how it comes without a locked instruction: both belong to this
/// thread, and the engine refuses what was closed.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_route(env: Env, _: Class, self_: jlong, invocation: jlong) -> jlong {
    env.guard(|| route(self_, handle(invocation)))
}

/// The same for an invocation that is to be filled.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_routeFilled(
    env: Env,
    _: Class,
    self_: jlong,
    invocation: jlong,
    notes: jlong,
    len: jint,
) -> jlong {
    env.guard(|| route(self_, Asked { invocation, notes, len }.ready()?))
}

/// Routes and reads the tags: few of them cost no allocation, and a result that has no room is asked for again.
fn routed<T>(session: jlong, asked: Asked, body: impl FnOnce(&[u64]) -> Result<T, Fail>) -> Result<T, Fail> {
    let invocation = asked.ready()?;
    let ask = |room: &mut [u64]| {
        let mut total = 0;
        // SAFETY: handles that are checked by the engine, room and outputs of our own.
        call(|err| unsafe {
            byway_session_route_tags(
                handle(session),
                invocation,
                room.as_mut_ptr(),
                room.len(),
                &mut total,
                ptr::null_mut(),
                err,
            )
        })
        .map(|_| total)
    };
    let mut few = [0; 64];
    let mut total = ask(&mut few)?;
    if let Some(tags) = few.get(..total) {
        return body(tags);
    }
    loop {
        let mut many = vec![0; total];
        total = ask(&mut many)?;
        if let Some(tags) = many.get(..total) {
            return body(tags);
        }
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_tags(
    env: Env,
    _: Class,
    self_: jlong,
    invocation: jlong,
    notes: jlong,
    len: jint,
) -> jlongArray {
    env.guard(|| routed(self_, Asked { invocation, notes, len }, |tags| env.new_unsigned(tags)))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_tagsInto(
    env: Env,
    _: Class,
    self_: jlong,
    invocation: jlong,
    notes: jlong,
    len: jint,
    into: jlongArray,
) -> jint {
    env.guard(|| {
        routed(self_, Asked { invocation, notes, len }, |tags| {
            let room = env.length(into);
            env.put_unsigned(into, tags.get(..room).unwrap_or(tags));
            Ok(tags.len() as jint)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_pick(
    env: Env,
    _: Class,
    self_: jlong,
    invocation: jlong,
    notes: jlong,
    len: jint,
    balance: jint,
    flags: jint,
    exclude: jlongArray,
    available: jlongArray,
    available_list: jlong,
    picked: jlongArray,
) {
    env.guard(|| {
        let invocation = Asked { invocation, notes, len }.ready()?;
        let wanted = Wanted::of(env, balance, flags, exclude, available, available_list);
        // SAFETY: a held session, an invocation of this thread, live options, outputs of our own.
        give_picked(env, picked, |out, err| unsafe {
            byway_session_pick(handle(self_), invocation, wanted.options(), out, err)
        })
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_adopt(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_session_adopt(handle(self_), err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_idle(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_session_idle(handle(self_), err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Session_free(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own handle, ended once.
    unsafe { byway_session_free(handle(self_)) };
}
