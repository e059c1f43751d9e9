//! Natives of `io.byway.Engine`: which proxies a URL has, and which ones failed.

use crate::env::{Class, Env, address, call, handle};
use byway::ffi::proxy::{byway_proxy, byway_proxy_release};
use byway::ffi::proxy_question::{
    byway_engine_bad_proxies, byway_engine_forget_bad_proxies, byway_engine_mark_proxy,
    byway_engine_proxies_for_url,
};
use core::ptr;
use jni_sys::{jbyteArray, jint, jlong, jlongArray};

/// Lists are short; a longer one is asked for once more, with room for all.
const ROOM: usize = 8;

/// A reference of its own to each proxy, 0 for DIRECT.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_proxiesForUrl(
    env: Env,
    _: Class,
    self_: jlong,
    selector: jlong,
    url: jbyteArray,
    dns: jlong,
    timeout_ms: jlong,
) -> jlongArray {
    env.guard(|| {
        let url = env.bytes(url);
        let mut proxies: Vec<*mut byway_proxy> = vec![ptr::null_mut(); ROOM];
        loop {
            let mut total = 0;
            // SAFETY: held handles, a live text, and a place with its length.
            call(|err| unsafe {
                byway_engine_proxies_for_url(
                    handle(self_),
                    handle(selector),
                    url.as_ptr().cast(),
                    url.len(),
                    handle(dns),
                    timeout_ms,
                    proxies.as_mut_ptr(),
                    proxies.len(),
                    &mut total,
                    ptr::null_mut(),
                    err,
                )
            })?;
            if total <= proxies.len() {
                proxies.truncate(total);
                break;
            }
            for &proxy in &proxies {
                // SAFETY: a reference this call was given.
                unsafe { byway_proxy_release(proxy) };
            }
            proxies = vec![ptr::null_mut(); total];
        }
        let addresses: Vec<jlong> = proxies.iter().map(|&proxy| address(proxy)).collect();
        env.new_longs(&addresses)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_explainProxiesForUrl(
    env: Env,
    _: Class,
    self_: jlong,
    selector: jlong,
    url: jbyteArray,
    dns: jlong,
    timeout_ms: jlong,
) -> jbyteArray {
    env.guard(|| {
        let url = env.bytes(url);
        let mut total = 0;
        // SAFETY: held handles and a live text; no proxy is asked for, the text is taken.
        env.take_text(|out, err| unsafe {
            byway_engine_proxies_for_url(
                handle(self_),
                handle(selector),
                url.as_ptr().cast(),
                url.len(),
                handle(dns),
                timeout_ms,
                ptr::null_mut(),
                0,
                &mut total,
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_markProxy(
    env: Env,
    _: Class,
    self_: jlong,
    proxy: jlong,
    failure: jint,
    os_errno: jint,
) {
    env.guard(|| {
        // SAFETY: two held handles.
        call(|err| unsafe { byway_engine_mark_proxy(handle(self_), handle(proxy), failure, os_errno, err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_badProxies(env: Env, _: Class, self_: jlong) -> jbyteArray {
    // SAFETY: a held handle; the text is taken.
    env.guard(|| env.take_text(|out, err| unsafe { byway_engine_bad_proxies(handle(self_), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_forgetBadProxies(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_engine_forget_bad_proxies(handle(self_), err) })?;
        Ok(())
    });
}
