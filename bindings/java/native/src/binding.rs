//! Natives of `io.byway.Chain`: following a source.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, bytes_of, call, check, handle};
use crate::errors::{self, Fail};
use byway::ffi::binding::{
    byway_bind_options, byway_bind_options_init, byway_chain_bind_source, byway_chain_bind_status,
    byway_chain_cancel_bind, byway_source_callbacks, byway_source_event,
};
use core::ffi::c_void;
use core::mem::{MaybeUninit, size_of};
use core::ptr;
use jni_sys::{jbyteArray, jint, jlong, jobject, jvalue};

/// Object, kind, status, worlds, subject, error.
pub static EVENT: StaticMethod = StaticMethod::new(
    c"io/byway/SourceEvent$Callbacks",
    c"event",
    c"(Ljava/lang/Object;IIJ[BLjava/lang/Throwable;)V",
);

unsafe extern "C-unwind" fn on_event(user_data: *mut c_void, event: *const byway_source_event) {
    // SAFETY: the engine lends the event and all it shows until this returns.
    callback::enter(|env| unsafe {
        let event = &*event;
        let Ok(subject) = env.new_bytes(bytes_of(&event.subject)) else { return };
        let error = if event.error.is_null() { None } else { errors::of(env, event.error) };
        EVENT.call_void(
            env,
            &[
                Target::of(user_data),
                jvalue { i: event.kind },
                jvalue { i: event.status },
                jvalue { j: event.worlds as jlong },
                jvalue { l: subject },
                jvalue { l: error.unwrap_or(ptr::null_mut()) },
            ],
        );
    });
}

/// `source` 0 unbinds; `on_event` may be null. True when the first state has come.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_bind(
    env: Env,
    _: Class,
    self_: jlong,
    source: jlong,
    flags: jint,
    empty_protection: jint,
    discovery: jint,
    queue: jlong,
    tag: jlong,
    object: jobject,
    timeout_ms: jlong,
) -> bool {
    env.guard(|| {
        let mut options = MaybeUninit::<byway_bind_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut options = unsafe {
            byway_bind_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        options.flags = flags as u32;
        options.empty_protection = empty_protection;
        options.discovery = discovery;
        options.queue = handle(queue);
        options.tag = tag as u64;
        let callbacks = if object.is_null() {
            None
        } else {
            Some(byway_source_callbacks {
                struct_size: size_of::<byway_source_callbacks>(),
                user_data: Target::register(env, object).ok_or(Fail::Thrown)?,
                destroy: Some(callback::destroy),
                on_event: Some(on_event),
            })
        };
        let callbacks = callbacks.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: held handles, live options and set.
        let status = call(|err| unsafe {
            byway_chain_bind_source(handle(self_), handle(source), &options, callbacks, timeout_ms, err)
        })?;
        Ok(status == 0)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_cancelBind(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_chain_cancel_bind(handle(self_)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_bindStatus(env: Env, _: Class, self_: jlong) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_chain_bind_status(handle(self_), out, err) }))
}
