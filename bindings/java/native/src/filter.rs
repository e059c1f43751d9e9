//! Natives of `io.byway.Filter`.

use crate::env::{Class, Env, check, handle, make};
use crate::host::{NO_IP, ips_of};
use byway::ffi::filter::{
    byway_filter_check, byway_filter_new, byway_filter_new_public, byway_filter_release,
};
use jni_sys::{jbyteArray, jlong};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Filter_make(env: Env, _: Class, rules: jbyteArray) -> jlong {
    env.guard(|| {
        let rules = env.bytes(rules);
        // SAFETY: live bytes, outputs of our own.
        make(|out, err| unsafe { byway_filter_new(rules.as_ptr().cast(), rules.len(), out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Filter_makePublic(env: Env, _: Class) -> jlong {
    // SAFETY: outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_filter_new_public(out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Filter_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_filter_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Filter_allows(env: Env, _: Class, self_: jlong, ip: jbyteArray) -> bool {
    env.guard(|| {
        let ip = ips_of(env, ip).first().copied().unwrap_or(NO_IP);
        let mut denied = 0;
        // SAFETY: a held handle, a live address.
        check(unsafe { byway_filter_check(handle(self_), &ip, &mut denied) })?;
        Ok(denied == 0)
    })
}
