//! Natives of `io.byway.ProxySelector`: those made of others, and what all of them tell about themselves.

use crate::env::{Class, Env, call, handle, make, str_of};
use byway::ffi::proxy_built_in::byway_proxy_selector_new_windows;
use byway::ffi::proxy_composed::{
    byway_bypass_options, byway_bypass_options_init, byway_proxy_selector_diagnostics,
    byway_proxy_selector_new_bypass, byway_proxy_selector_new_per_scheme, byway_proxy_selector_new_rules,
};
use byway::ffi::proxy_script::byway_proxy_selector_refresh;
use byway::ffi::proxy_selector::byway_proxy_selector;
use core::mem::MaybeUninit;
use jni_sys::{jbyteArray, jint, jintArray, jlong, jlongArray};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeWindows(
    env: Env,
    _: Class,
    engine: jlong,
    server: jbyteArray,
    bypass: jbyteArray,
) -> jlong {
    env.guard(|| {
        let (server, bypass) = (env.bytes(server), env.bytes(bypass));
        // SAFETY: a held handle, live bytes, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_selector_new_windows(
                handle(engine),
                server.as_ptr().cast(),
                server.len(),
                bypass.as_ptr().cast(),
                bypass.len(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeBypass(
    env: Env,
    _: Class,
    engine: jlong,
    list: jbyteArray,
    style: jint,
    flags: jint,
    dialect: jbyteArray,
    inner: jlong,
) -> jlong {
    env.guard(|| {
        let (list, dialect) = (env.bytes(list), env.bytes(dialect));
        let mut options = MaybeUninit::<byway_bypass_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut options = unsafe {
            byway_bypass_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        options.list = str_of(&list);
        options.style = style;
        options.flags = flags as u32;
        options.dialect = str_of(&dialect);
        // SAFETY: held handles, live options, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_selector_new_bypass(handle(engine), &options, handle(inner), out, err)
        })
    })
}

/// By scheme, or by pattern.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeOneOf(
    env: Env,
    _: Class,
    engine: jlong,
    by_scheme: bool,
    words: jbyteArray,
    word_lengths: jintArray,
    selectors: jlongArray,
    otherwise: jlong,
) -> jlong {
    env.guard(|| {
        let words = env.texts(words, word_lengths);
        let selectors: Vec<*const byway_proxy_selector> = env
            .longs(selectors)
            .into_iter()
            .map(|one| handle::<byway_proxy_selector>(one).cast_const())
            .collect();
        let n = words.views.len().min(selectors.len());
        let function =
            if by_scheme { byway_proxy_selector_new_per_scheme } else { byway_proxy_selector_new_rules };
        // SAFETY: held handles, NULL for DIRECT, two live arrays of one length, outputs of our own.
        make(|out, err| unsafe {
            function(handle(engine), words.views.as_ptr(), selectors.as_ptr(), n, handle(otherwise), out, err)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_diagnostics(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        // SAFETY: a held handle, outputs of our own.
        env.take_text(|out, err| unsafe { byway_proxy_selector_diagnostics(handle(self_), out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_refresh(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_proxy_selector_refresh(handle(self_), err) })?;
        Ok(())
    });
}
