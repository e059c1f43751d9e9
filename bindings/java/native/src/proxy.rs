//! Natives of `io.byway.Proxy`.

use crate::env::{Class, Env, NO_TEXT, check, handle, make};
use crate::host::{NO_IP, ips_of, pack};
use byway::ffi::proxy::{
    byway_proxy_equals, byway_proxy_host, byway_proxy_ip, byway_proxy_kind, byway_proxy_new,
    byway_proxy_new_resolved, byway_proxy_port, byway_proxy_release, byway_proxy_text,
    byway_proxy_with_credentials,
};
use jni_sys::{jbyteArray, jint, jlong};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_make(
    env: Env,
    _: Class,
    kind: jint,
    host: jbyteArray,
    ip: jbyteArray,
    port: jint,
) -> jlong {
    env.guard(|| {
        let host = env.bytes(host);
        let text = host.as_ptr().cast();
        match ips_of(env, ip).first() {
            // SAFETY: live bytes and address, outputs of our own.
            Some(ip) => make(|out, err| unsafe {
                byway_proxy_new_resolved(kind, text, host.len(), ip, port, out, err)
            }),
            // SAFETY: live bytes, outputs of our own.
            None => make(|out, err| unsafe { byway_proxy_new(kind, text, host.len(), port, out, err) }),
        }
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_withCredentials(
    env: Env,
    _: Class,
    self_: jlong,
    user: jbyteArray,
    password: jbyteArray,
) -> jlong {
    env.guard(|| {
        let (user, password) = (env.bytes(user), env.bytes(password));
        // SAFETY: a held handle, live bytes, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_with_credentials(
                handle(self_),
                user.as_ptr().cast(),
                user.len(),
                password.as_ptr().cast(),
                password.len(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_kind(env: Env, _: Class, self_: jlong) -> jint {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_proxy_kind(handle(self_)) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_host(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let mut host = NO_TEXT;
        // SAFETY: a held handle, which lends the text.
        check(unsafe { byway_proxy_host(handle(self_), &mut host) })?;
        env.lent(host)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_ip(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let mut ip = NO_IP;
        // SAFETY: a held handle, an output of our own.
        check(unsafe { byway_proxy_ip(handle(self_), &mut ip) })?;
        env.new_bytes(&pack(&[ip]))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_port(env: Env, _: Class, self_: jlong) -> jint {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_proxy_port(handle(self_)) }.into()))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_equals(env: Env, _: Class, self_: jlong, other: jlong) -> bool {
    // SAFETY: two held handles.
    env.guard(|| Ok(unsafe { byway_proxy_equals(handle(self_), handle(other)) } != 0))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_text(env: Env, _: Class, self_: jlong) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_proxy_text(handle(self_), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Proxy_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_proxy_release(handle(self_)) };
}
