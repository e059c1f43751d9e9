//! Natives of `io.byway.Listener`.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, address, bytes_of, handle, make};
use crate::errors::{self, Fail};
use crate::host::pack;
use byway::ffi::listener::{
    byway_engine_add_listener, byway_event, byway_listener_callbacks, byway_listener_release,
    byway_listener_remove,
};
use byway::ffi::proxy::byway_proxy_retain;
use byway::ffi::route::byway_route_retain;
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use jni_sys::{jlong, jobject, jvalue};

/// Kind, status, tag, selector, time, subject, route, proxies, addresses, error.
pub static EVENT: StaticMethod = StaticMethod::new(
    c"io/byway/Listener$Callbacks",
    c"event",
    c"(Ljava/lang/Object;IIJJJ[BJ[J[BLjava/lang/Throwable;)V",
);

unsafe extern "C-unwind" fn on_event(user_data: *mut c_void, event: *const byway_event) {
    // SAFETY: the engine lends the event and all it shows until this returns; Java gets references of its own.
    callback::enter(|env| unsafe {
        let event = &*event;
        let Ok(subject) = env.new_bytes(bytes_of(&event.subject)) else { return };
        let mut proxies = Vec::new();
        for i in 0..event.proxies_len {
            let proxy = *event.proxies.add(i);
            proxies.push(if proxy.is_null() {
                0
            } else {
                address(byway_proxy_retain(proxy.cast_mut().cast()))
            });
        }
        let ips =
            if event.ips_len == 0 { &[] } else { core::slice::from_raw_parts(event.ips, event.ips_len) };
        let (Ok(proxies), Ok(ips)) = (env.new_longs(&proxies), env.new_bytes(&pack(ips))) else { return };
        let error = if event.error.is_null() { None } else { errors::of(env, event.error) };
        let route = if event.route.is_null() { 0 } else { address(byway_route_retain(event.route)) };
        EVENT.call_void(
            env,
            &[
                Target::of(user_data),
                jvalue { i: event.kind },
                jvalue { i: event.status },
                jvalue { j: event.tag as jlong },
                jvalue { j: event.selector_id as jlong },
                jvalue { j: event.time_ns as jlong },
                jvalue { l: subject },
                jvalue { j: route },
                jvalue { l: proxies },
                jvalue { l: ips },
                jvalue { l: error.unwrap_or(ptr::null_mut()) },
            ],
        );
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Listener_make(
    env: Env,
    _: Class,
    engine: jlong,
    object: jobject,
    mask: jlong,
    queue: jlong,
) -> jlong {
    env.guard(|| {
        let callbacks = byway_listener_callbacks {
            struct_size: size_of::<byway_listener_callbacks>(),
            user_data: Target::register(env, object).ok_or(Fail::Thrown)?,
            destroy: Some(callback::destroy),
            mask: mask as u64,
            on_event: Some(on_event),
            queue: handle(queue),
        };
        // SAFETY: a held handle, a live set, outputs of our own.
        make(|out, err| unsafe { byway_engine_add_listener(handle(engine), &callbacks, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Listener_remove(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        unsafe { byway_listener_remove(handle(self_)) };
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Listener_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_listener_release(handle(self_)) };
}
