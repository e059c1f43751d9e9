//! Natives of `io.byway.Address`.

use crate::env::{Class, Env, NO_TEXT, check, handle, make, str_of};
use byway::ffi::address::{
    byway_address_equal_non_host, byway_address_equals, byway_address_hash, byway_address_host,
    byway_address_new, byway_address_options, byway_address_options_init, byway_address_port,
    byway_address_release, byway_address_text, byway_address_uri,
};
use core::mem::MaybeUninit;
use jni_sys::{jbyteArray, jint, jintArray, jlong};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_make(
    env: Env,
    _: Class,
    engine: jlong,
    scheme: jbyteArray,
    host: jbyteArray,
    port: jint,
    flags: jint,
    proxy: jlong,
    proxy_selector: jlong,
    dns: jlong,
    protocols: jbyteArray,
    protocol_lengths: jintArray,
    tls_identity: jlong,
    tls_identity_bytes: jbyteArray,
    authenticator: jlong,
) -> jlong {
    env.guard(|| {
        let (scheme, host, identity) = (env.bytes(scheme), env.bytes(host), env.bytes(tls_identity_bytes));
        let protocols = env.texts(protocols, protocol_lengths);
        let mut options = MaybeUninit::<byway_address_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut options = unsafe {
            byway_address_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        options.scheme = str_of(&scheme);
        options.host = str_of(&host);
        options.port = port;
        options.flags = flags as u32;
        options.proxy = handle(proxy);
        options.proxy_selector = handle(proxy_selector);
        options.dns = handle(dns);
        options.protocols = protocols.views.as_ptr();
        options.protocols_len = protocols.views.len();
        options.tls_identity = tls_identity as u64;
        options.tls_identity_bytes = str_of(&identity);
        options.authenticator = authenticator as u64;
        // SAFETY: held handles, live options, outputs of our own.
        make(|out, err| unsafe { byway_address_new(handle(engine), &options, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_address_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_host(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let mut host = NO_TEXT;
        // SAFETY: a held handle, which lends the text.
        check(unsafe { byway_address_host(handle(self_), &mut host) })?;
        env.lent(host)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_uri(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let mut uri = NO_TEXT;
        // SAFETY: a held handle, which lends the text.
        check(unsafe { byway_address_uri(handle(self_), &mut uri) })?;
        env.lent(uri)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_port(env: Env, _: Class, self_: jlong) -> jint {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_address_port(handle(self_)) }.into()))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_equals(env: Env, _: Class, self_: jlong, other: jlong) -> bool {
    // SAFETY: two held handles.
    env.guard(|| Ok(unsafe { byway_address_equals(handle(self_), handle(other)) } != 0))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_equalNonHost(
    env: Env,
    _: Class,
    self_: jlong,
    other: jlong,
) -> bool {
    // SAFETY: two held handles.
    env.guard(|| Ok(unsafe { byway_address_equal_non_host(handle(self_), handle(other)) } != 0))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_hash(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_address_hash(handle(self_)) } as jlong))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Address_text(env: Env, _: Class, self_: jlong) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_address_text(handle(self_), out, err) }))
}
