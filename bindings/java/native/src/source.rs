//! Natives of `io.byway.Source`.

use crate::env::{Class, Env, call, handle, make, str_of};
use crate::errors;
use byway::ffi::error::byway_error_free;
use byway::ffi::source::{
    byway_source_apply, byway_source_change, byway_source_get, byway_source_new_file,
    byway_source_new_memory, byway_source_new_zookeeper, byway_source_put, byway_source_release,
    byway_source_remove, byway_source_state, byway_source_state_init, byway_source_status,
    byway_zookeeper_options, byway_zookeeper_options_init,
};
use core::mem::MaybeUninit;
use core::ptr;
use jni_sys::{jbyteArray, jintArray, jlong, jlongArray, jobject};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_makeMemory(env: Env, _: Class, engine: jlong) -> jlong {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_source_new_memory(handle(engine), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_makeFile(
    env: Env,
    _: Class,
    engine: jlong,
    path: jbyteArray,
    key: jbyteArray,
) -> jlong {
    env.guard(|| {
        let (path, key) = (env.bytes(path), env.bytes(key));
        // SAFETY: a held handle, live bytes, outputs of our own.
        make(|out, err| unsafe {
            byway_source_new_file(
                handle(engine),
                path.as_ptr().cast(),
                path.len(),
                key.as_ptr().cast(),
                key.len(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_makeZooKeeper(
    env: Env,
    _: Class,
    engine: jlong,
    servers: jbyteArray,
    username: jbyteArray,
    password: jbyteArray,
    root: jbyteArray,
    session_timeout_ms: jlong,
    connect_timeout_ms: jlong,
    retry_longest_ms: jlong,
) -> jlong {
    env.guard(|| {
        let (servers, root) = (env.bytes(servers), env.bytes(root));
        let (username, password) = (env.bytes(username), env.bytes(password));
        let mut options = MaybeUninit::<byway_zookeeper_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut options = unsafe {
            byway_zookeeper_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        options.username = str_of(&username);
        options.password = str_of(&password);
        options.root = str_of(&root);
        options.session_timeout_ms = session_timeout_ms;
        options.connect_timeout_ms = connect_timeout_ms;
        options.retry_longest_ms = retry_longest_ms;
        // SAFETY: a held handle, live bytes and options, outputs of our own.
        make(|out, err| unsafe {
            byway_source_new_zookeeper(
                handle(engine),
                servers.as_ptr().cast(),
                servers.len(),
                &options,
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_source_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_put(
    env: Env,
    _: Class,
    self_: jlong,
    key: jbyteArray,
    text: jbyteArray,
) {
    env.guard(|| {
        let (key, text) = (env.bytes(key), env.bytes(text));
        // SAFETY: a held handle, live bytes.
        call(|err| unsafe {
            byway_source_put(
                handle(self_),
                key.as_ptr().cast(),
                key.len(),
                text.as_ptr().cast(),
                text.len(),
                err,
            )
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_remove(env: Env, _: Class, self_: jlong, key: jbyteArray) {
    env.guard(|| {
        let key = env.bytes(key);
        // SAFETY: a held handle, live bytes.
        call(|err| unsafe { byway_source_remove(handle(self_), key.as_ptr().cast(), key.len(), err) })?;
        Ok(())
    });
}

/// `gone` has 1 for each key that is removed.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_apply(
    env: Env,
    _: Class,
    self_: jlong,
    keys: jbyteArray,
    key_lengths: jintArray,
    texts: jbyteArray,
    text_lengths: jintArray,
    gone: jintArray,
) {
    env.guard(|| {
        let (keys, texts) = (env.texts(keys, key_lengths), env.texts(texts, text_lengths));
        let changes: Vec<byway_source_change> = keys
            .views
            .iter()
            .zip(&texts.views)
            .zip(env.ints(gone))
            .map(|((key, text), remove)| byway_source_change { key: *key, text: *text, remove, reserved: 0 })
            .collect();
        // SAFETY: a held handle, live changes.
        call(|err| unsafe { byway_source_apply(handle(self_), changes.as_ptr(), changes.len(), err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_get(
    env: Env,
    _: Class,
    self_: jlong,
    key: jbyteArray,
    timeout_ms: jlong,
) -> jbyteArray {
    env.guard(|| {
        let key = env.bytes(key);
        // SAFETY: a held handle, live bytes, outputs of our own.
        env.take_text(|out, err| unsafe {
            byway_source_get(handle(self_), key.as_ptr().cast(), key.len(), timeout_ms, out, err)
        })
    })
}

/// Writes connected, since, age, generation, keys, errors; returns the last complaint or null.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Source_status(
    env: Env,
    _: Class,
    self_: jlong,
    state_out: jlongArray,
) -> jobject {
    env.guard(|| {
        let mut state = MaybeUninit::<byway_source_state>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut state = unsafe {
            byway_source_state_init(state.as_mut_ptr());
            state.assume_init()
        };
        let mut last = ptr::null_mut();
        // SAFETY: a held handle, outputs of our own.
        call(|err| unsafe { byway_source_status(handle(self_), &mut state, &mut last, err) })?;
        let numbers = [
            state.connected as u64,
            state.since_ms as u64,
            state.age_ms as u64,
            state.generation,
            state.keys,
            state.errors,
        ];
        env.put_unsigned(state_out, &numbers);
        if last.is_null() {
            return Ok(ptr::null_mut());
        }
        let error = errors::of(env, last);
        // SAFETY: ours, and read by now.
        unsafe { byway_error_free(last) };
        error.ok_or(errors::Fail::Thrown)
    })
}
