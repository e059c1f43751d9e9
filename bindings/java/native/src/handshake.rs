//! Natives of `io.byway.Handshake`.

use crate::dial_options::Options;
use crate::env::{Class, Env, NO_TEXT, call, check, handle, make};
use byway::Status;
use byway::ffi::handshake::{
    byway_handshake, byway_handshake_answer, byway_handshake_challenge_at, byway_handshake_eof,
    byway_handshake_feed, byway_handshake_free, byway_handshake_new, byway_handshake_new_target,
    byway_handshake_output, byway_handshake_reconnected, byway_handshake_sent, byway_handshake_want,
};
use core::ptr;
use jni_sys::{jbyteArray, jint, jintArray, jlong, jobjectArray};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_make(
    env: Env,
    _: Class,
    route: jlong,
    numbers: jintArray,
    texts: jobjectArray,
    names: jbyteArray,
    name_lengths: jintArray,
    values: jbyteArray,
    value_lengths: jintArray,
) -> jlong {
    env.guard(|| {
        let options = Options::of(env, 0, numbers, texts, (names, name_lengths), (values, value_lengths));
        // SAFETY: a held handle, live options, outputs of our own.
        make(|out, err| unsafe { byway_handshake_new(handle(route), options.raw(), out, err) })
    })
}

/// `user` null: no credentials.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_makeTarget(
    env: Env,
    _: Class,
    kind: jint,
    host: jbyteArray,
    port: jint,
    user: jbyteArray,
    password: jbyteArray,
    numbers: jintArray,
    texts: jobjectArray,
    names: jbyteArray,
    name_lengths: jintArray,
    values: jbyteArray,
    value_lengths: jintArray,
) -> jlong {
    env.guard(|| {
        let options = Options::of(env, 0, numbers, texts, (names, name_lengths), (values, value_lengths));
        let (host, name, secret) = (env.bytes(host), env.bytes(user), env.bytes(password));
        let name_start = if user.is_null() { ptr::null() } else { name.as_ptr().cast() };
        // SAFETY: live bytes and options, outputs of our own.
        make(|out, err| unsafe {
            byway_handshake_new_target(
                kind,
                host.as_ptr().cast(),
                host.len(),
                port,
                name_start,
                name.len(),
                secret.as_ptr().cast(),
                secret.len(),
                options.raw(),
                out,
                err,
            )
        })
    })
}

/// What is needed, and how many bytes may be read for it: limit above, want below.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_want(env: Env, _: Class, self_: jlong) -> jlong {
    env.guard(|| {
        let mut limit = 0;
        // SAFETY: a held handle, an output of our own.
        let want = unsafe { byway_handshake_want(handle(self_), &mut limit) };
        Ok((limit.min(0x7fff_ffff) as jlong) << 8 | jlong::from(want))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_output(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let mut out = NO_TEXT;
        // SAFETY: a held handle, which lends the bytes.
        check(unsafe { byway_handshake_output(handle(self_), &mut out) })?;
        env.lent(out)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_sent(env: Env, _: Class, self_: jlong, count: jint) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_handshake_sent(handle(self_), count as usize) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_feed(
    env: Env,
    _: Class,
    self_: jlong,
    data: jbyteArray,
    offset: jint,
    length: jint,
) -> jint {
    env.guard(|| {
        let data = env.region(data, offset, length);
        let mut consumed = 0;
        let dialogue: *mut byway_handshake = handle(self_);
        // SAFETY: a held handle, live bytes, outputs of our own.
        call(|err| unsafe {
            byway_handshake_feed(dialogue, data.as_ptr().cast(), data.len(), &mut consumed, err)
        })?;
        Ok(consumed as jint)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_eof(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_handshake_eof(handle(self_), err) })?;
        Ok(())
    });
}

/// One challenge; null past the end.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_challengeAt(
    env: Env,
    _: Class,
    self_: jlong,
    index: jint,
) -> jbyteArray {
    env.guard(|| {
        let mut out = NO_TEXT;
        // SAFETY: a held handle, which lends the text.
        if check(unsafe { byway_handshake_challenge_at(handle(self_), index as usize, &mut out) })?
            == Status::DONE.0
        {
            return Ok(ptr::null_mut());
        }
        env.lent(out)
    })
}

/// `value` null: there are no credentials.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_answer(env: Env, _: Class, self_: jlong, value: jbyteArray) {
    env.guard(|| {
        let bytes = env.bytes(value);
        let text = if value.is_null() { ptr::null() } else { bytes.as_ptr().cast() };
        // SAFETY: a held handle, live bytes or NULL.
        call(|err| unsafe { byway_handshake_answer(handle(self_), text, bytes.len(), err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_reconnected(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_handshake_reconnected(handle(self_), err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Handshake_free(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own handle, ended once.
    unsafe { byway_handshake_free(handle(self_)) };
}
