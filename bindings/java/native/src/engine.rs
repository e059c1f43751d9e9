//! Natives of `io.byway.Engine`: its life. What it is told and asked is in `feedback`.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, address, call, handle, make};
use crate::errors::Fail;
use byway::ffi::engine::{
    byway_engine, byway_engine_new, byway_engine_options, byway_engine_options_init, byway_engine_queue,
    byway_engine_release, byway_engine_shutdown,
};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use jni_sys::{jint, jlong, jobject, jvalue};

/// Clocks and the random source a host brings; the number says which is asked.
pub static SOURCE: StaticMethod =
    StaticMethod::new(c"io/byway/Engine$Callbacks", c"source", c"(Ljava/lang/Object;I)J");

fn source(source_data: *mut c_void, which: jint) -> Option<i64> {
    // SAFETY: the object lives until the engine has shut down.
    callback::enter(|env| SOURCE.call_long(env, &[unsafe { Target::of(source_data) }, jvalue { i: which }]))?
}

unsafe extern "C-unwind" fn monotonic_ns(source_data: *mut c_void) -> u64 {
    source(source_data, 0).unwrap_or(0) as u64
}

unsafe extern "C-unwind" fn wall_ms(source_data: *mut c_void) -> i64 {
    source(source_data, 1).unwrap_or(0)
}

unsafe extern "C-unwind" fn random(source_data: *mut c_void) -> u64 {
    source(source_data, 2).unwrap_or(0) as u64
}

/// `sources` is the object behind the clocks and the random source, `given` has a bit for each that there is.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_make(
    env: Env,
    _: Class,
    queue: jlong,
    seed: jlong,
    flags: jint,
    compat: jint,
    default_timeout_ms: jlong,
    postpone_for_ms: jlong,
    postpone_at_most_ms: jlong,
    database_capacity: jint,
    commit_failures: jint,
    dialect: jint,
    routing_flags: jint,
    on_proxy_selector_error: jint,
    dns_cache_ms: jint,
    bad_proxy_ms: jlong,
    target_filter: jlong,
    proxy_filter: jlong,
    sources: jobject,
    given: jint,
) -> jlong {
    env.guard(|| {
        let mut options = MaybeUninit::<byway_engine_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut options = unsafe {
            byway_engine_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        options.queue = handle(queue);
        options.seed = seed as u64;
        options.flags = flags as u32;
        options.compat = compat;
        options.default_timeout_ms = default_timeout_ms;
        options.postpone_for_ms = postpone_for_ms;
        options.postpone_at_most_ms = postpone_at_most_ms;
        options.database_capacity = database_capacity as u32;
        options.commit_failures = commit_failures;
        options.dialect = dialect;
        options.routing_flags = routing_flags as u32;
        options.on_proxy_selector_error = on_proxy_selector_error;
        options.dns_cache_ms = dns_cache_ms as u32;
        options.bad_proxy_ms = bad_proxy_ms;
        options.target_filter = handle(target_filter);
        options.proxy_filter = handle(proxy_filter);
        if given != 0 {
            // An engine's functions have no `destroy`: the object stays, as the engine may ask to its last moment.
            options.source_data = Target::register(env, sources).ok_or(Fail::Thrown)?;
            options.monotonic_ns = (given & 1 != 0).then_some(monotonic_ns as _);
            options.wall_ms = (given & 2 != 0).then_some(wall_ms as _);
            options.random = (given & 4 != 0).then_some(random as _);
        }
        // SAFETY: live options and handles, outputs of our own.
        make(|out, err| unsafe { byway_engine_new(&options, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_engine_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_shutdown(
    env: Env,
    _: Class,
    self_: jlong,
    timeout_ms: jlong,
) -> jint {
    env.guard(|| {
        let engine: *mut byway_engine = handle(self_);
        // SAFETY: a held handle.
        call(|err| unsafe { byway_engine_shutdown(engine, timeout_ms, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_queue(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(address(unsafe { byway_engine_queue(handle(self_)) })))
}
