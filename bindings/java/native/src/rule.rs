//! Natives of `io.byway.Rule`: what can be said of a rule text without a chain.

use crate::env::{Class, Env, handle};
use byway::ffi::rule::{byway_rule_check, byway_rule_key};
use jni_sys::{jbyteArray, jint, jlong};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Rule_key(
    env: Env,
    _: Class,
    dialect: jint,
    kind: jint,
    application: jbyteArray,
    interface: jbyteArray,
    version: jbyteArray,
    group: jbyteArray,
) -> jbyteArray {
    env.guard(|| {
        let (application, interface) = (env.bytes(application), env.bytes(interface));
        let (version, group) = (env.bytes(version), env.bytes(group));
        // SAFETY: live bytes, outputs of our own.
        env.take_text(|out, err| unsafe {
            byway_rule_key(
                dialect,
                kind,
                application.as_ptr().cast(),
                application.len(),
                interface.as_ptr().cast(),
                interface.len(),
                version.as_ptr().cast(),
                version.len(),
                group.as_ptr().cast(),
                group.len(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Rule_check(
    env: Env,
    _: Class,
    dialect: jint,
    kind: jint,
    text: jbyteArray,
    providers: jlong,
    format: jint,
) -> jbyteArray {
    env.guard(|| {
        let text = env.bytes(text);
        // SAFETY: live bytes, a held handle or none, outputs of our own.
        env.take_text(|out, err| unsafe {
            byway_rule_check(
                dialect,
                kind,
                text.as_ptr().cast(),
                text.len(),
                handle(providers),
                format,
                out,
                err,
            )
        })
    })
}
