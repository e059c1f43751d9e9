//! Natives of `io.byway.Selector`.

use crate::env::{Class, Env, call, check, handle, make};
use crate::errors::Fail;
use crate::selection::{self, Buffer};
use byway::Status;
use byway::ffi::route::byway_route_record;
use byway::ffi::selection::{byway_selection, byway_selection_free};
use byway::ffi::selector::{
    byway_selector_cancel, byway_selector_explain, byway_selector_free, byway_selector_id,
    byway_selector_may_have_next, byway_selector_new, byway_selector_next, byway_selector_options,
    byway_selector_options_init, byway_selector_plan, byway_selector_poll_next,
};
use core::mem::{MaybeUninit, size_of};
use core::ptr;
use jni_sys::{jbyteArray, jint, jlong};

/// What `next` and `pollNext` answer instead of a selection.
const DONE: jlong = 0;
const PENDING: jlong = 1;

fn options(tag: jlong, queue: jlong, flags: jint) -> byway_selector_options {
    let mut options = MaybeUninit::<byway_selector_options>::uninit();
    // SAFETY: `_init` writes the whole struct.
    let mut options = unsafe {
        byway_selector_options_init(options.as_mut_ptr());
        options.assume_init()
    };
    options.tag = tag as u64;
    options.queue = handle(queue);
    options.flags = flags as u32;
    options
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_make(
    env: Env,
    _: Class,
    engine: jlong,
    address: jlong,
    tag: jlong,
    queue: jlong,
    flags: jint,
) -> jlong {
    env.guard(|| {
        let options = options(tag, queue, flags);
        // SAFETY: held handles, live options, outputs of our own.
        make(|out, err| unsafe { byway_selector_new(handle(engine), handle(address), &options, out, err) })
    })
}

/// A selection and its routes in one crossing.
fn given(
    status: Result<jint, Fail>,
    selection: *mut byway_selection,
    buffer: &Buffer,
) -> Result<jlong, Fail> {
    match Status(status?) {
        Status::OK => {
            if let Err(fail) = selection::write(selection, buffer) {
                // SAFETY: ours; Java never sees it.
                unsafe { byway_selection_free(selection) };
                return Err(fail);
            }
            Ok(crate::env::address(selection))
        }
        Status::PENDING => Ok(PENDING),
        _ => Ok(DONE),
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_next(
    env: Env,
    _: Class,
    self_: jlong,
    timeout_ms: jlong,
    buffer: jlong,
    capacity: jint,
) -> jlong {
    env.guard(|| {
        let mut selection = ptr::null_mut();
        // SAFETY: a held handle, outputs of our own.
        let status =
            call(|err| unsafe { byway_selector_next(handle(self_), timeout_ms, &mut selection, err) });
        given(status, selection, &Buffer::of(buffer, capacity))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_pollNext(
    env: Env,
    _: Class,
    self_: jlong,
    buffer: jlong,
    capacity: jint,
) -> jlong {
    env.guard(|| {
        let mut selection = ptr::null_mut();
        // SAFETY: a held handle, outputs of our own.
        let status = call(|err| unsafe { byway_selector_poll_next(handle(self_), &mut selection, err) });
        given(status, selection, &Buffer::of(buffer, capacity))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_plan(
    env: Env,
    _: Class,
    engine: jlong,
    address: jlong,
    tag: jlong,
    buffer: jlong,
    capacity: jint,
) {
    env.guard(|| {
        let (options, buffer) = (options(tag, 0, 0), Buffer::of(buffer, capacity));
        let mut total = 0;
        // SAFETY: held handles, live options, an array of that many records.
        call(|err| unsafe {
            byway_selector_plan(
                handle(engine),
                handle(address),
                &options,
                buffer.records(),
                size_of::<byway_route_record>(),
                buffer.room(),
                &mut total,
                err,
            )
        })?;
        buffer.finish(total);
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_mayHaveNext(env: Env, _: Class, self_: jlong) -> bool {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_selector_may_have_next(handle(self_)) } != 0))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_cancel(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_selector_cancel(handle(self_)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_explain(
    env: Env,
    _: Class,
    self_: jlong,
    format: jint,
) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_selector_explain(handle(self_), format, out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_id(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_selector_id(handle(self_)) } as jlong))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selector_free(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own handle, ended once.
    unsafe { byway_selector_free(handle(self_)) };
}
