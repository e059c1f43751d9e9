//! Natives of `io.byway.Chain`: what it says about its calls, its routers and its rules.

use crate::env::{Class, Env, call, handle};
use crate::invocation::{Asked, pointers};
use byway::ffi::chain::{byway_chain_keys, byway_chain_status};
use byway::ffi::chain_report::{
    byway_chain_diff, byway_chain_explain, byway_chain_keep_recent, byway_chain_recent,
};
use core::ptr;
use jni_sys::{jbyteArray, jint, jlong, jlongArray};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_explain(
    env: Env,
    _: Class,
    self_: jlong,
    invocation: jlong,
    notes: jlong,
    len: jint,
    format: jint,
) -> jbyteArray {
    env.guard(|| {
        let invocation = Asked { invocation, notes, len }.ready()?;
        // SAFETY: a held handle, an invocation of this thread, outputs of our own.
        env.take_text(|out, err| unsafe { byway_chain_explain(handle(self_), invocation, format, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_keepRecent(env: Env, _: Class, self_: jlong, on: bool) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_chain_keep_recent(handle(self_), i32::from(on), err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_recent(env: Env, _: Class, self_: jlong, format: jint) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_chain_recent(handle(self_), format, out, err) }))
}

/// `text` null: without the rule.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_diff(
    env: Env,
    _: Class,
    self_: jlong,
    key: jbyteArray,
    text: jbyteArray,
    invocations: jlongArray,
    format: jint,
) -> jbyteArray {
    env.guard(|| {
        let (key, proposed) = (env.bytes(key), env.bytes(text));
        let asked = pointers(&env.longs(invocations));
        let start = if text.is_null() { ptr::null() } else { proposed.as_ptr().cast() };
        // SAFETY: a held handle, live bytes, invocations of this thread, outputs of our own.
        env.take_text(|out, err| unsafe {
            byway_chain_diff(
                handle(self_),
                key.as_ptr().cast(),
                key.len(),
                start,
                proposed.len(),
                asked.as_ptr(),
                asked.len(),
                format,
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_keys(env: Env, _: Class, self_: jlong) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_chain_keys(handle(self_), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_status(env: Env, _: Class, self_: jlong) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_chain_status(handle(self_), out, err) }))
}
