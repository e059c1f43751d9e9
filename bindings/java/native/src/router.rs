//! Natives of `io.byway.Router` and `io.byway.RouterRequest`.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, NO_TEXT, address, bytes_of, check, handle, make};
use crate::errors::Fail;
use byway::Status;
use byway::ffi::call::byway_call;
use byway::ffi::router::{
    byway_router_callbacks, byway_router_new, byway_router_release, byway_router_request,
    byway_router_request_argument, byway_router_request_attachment,
};
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use jni_sys::{jbyteArray, jint, jlong, jobject, jvalue};

/// Object, request, tags, method, explaining, room for what stays.
pub static ROUTE: StaticMethod =
    StaticMethod::new(c"io/byway/Router$Callbacks", c"route", c"(Ljava/lang/Object;J[J[BZ[B)I");

unsafe extern "C-unwind" fn route(
    user_data: *mut c_void,
    request: *const byway_router_request,
    _call: *const byway_call,
) -> i32 {
    let asked = callback::enter(|env| {
        // SAFETY: the engine lends the request and its arrays until this returns; `keep` has room for `count`.
        unsafe {
            let lent = &*request;
            let tags = if lent.count == 0 { &[] } else { core::slice::from_raw_parts(lent.tags, lent.count) };
            let keep = env.new_bytes(&vec![0; lent.count]).ok()?;
            let tags = env.new_unsigned(tags).ok()?;
            let method = env.new_bytes(bytes_of(&lent.method)).ok()?;
            let status = ROUTE.call_status(
                env,
                &[
                    Target::of(user_data),
                    jvalue { j: address(request) },
                    jvalue { l: tags },
                    jvalue { l: method },
                    jvalue { z: lent.explaining != 0 },
                    jvalue { l: keep },
                ],
            );
            if status == 0 && lent.count > 0 {
                let kept = env.bytes(keep);
                ptr::copy_nonoverlapping(kept.as_ptr(), lent.keep, kept.len().min(lent.count));
            }
            Some(status)
        }
    });
    asked.flatten().unwrap_or(Status::E_RESOURCES.0)
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Router_make(
    env: Env,
    _: Class,
    engine: jlong,
    name: jbyteArray,
    priority: jlong,
    flags: jint,
    object: jobject,
) -> jlong {
    env.guard(|| {
        let name = env.bytes(name);
        let callbacks = byway_router_callbacks {
            struct_size: size_of::<byway_router_callbacks>(),
            user_data: Target::register(env, object).ok_or(Fail::Thrown)?,
            destroy: Some(callback::destroy),
            route: Some(route),
        };
        // SAFETY: a held handle, live bytes and set, outputs of our own.
        make(|out, err| unsafe {
            byway_router_new(
                handle(engine),
                name.as_ptr().cast(),
                name.len(),
                priority,
                flags as u32,
                &callbacks,
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Router_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_router_release(handle(self_)) };
}

/// Null when the call has none.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_RouterRequest_attachment(
    env: Env,
    _: Class,
    self_: jlong,
    key: jbyteArray,
) -> jbyteArray {
    env.guard(|| {
        let key = env.bytes(key);
        let mut value = NO_TEXT;
        // SAFETY: the request of the running callback, live bytes, an output of our own.
        let status = unsafe {
            byway_router_request_attachment(handle(self_), key.as_ptr().cast(), key.len(), &mut value)
        };
        if status == Status::E_NOT_FOUND.0 {
            return Ok(ptr::null_mut());
        }
        check(status)?;
        env.lent(value)
    })
}

/// Null for a null argument and behind the last one.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_RouterRequest_argument(
    env: Env,
    _: Class,
    self_: jlong,
    index: jint,
) -> jbyteArray {
    env.guard(|| {
        let mut value = NO_TEXT;
        // SAFETY: the request of the running callback, an output of our own.
        let status = unsafe { byway_router_request_argument(handle(self_), index as usize, &mut value) };
        if status == Status::E_NOT_FOUND.0 {
            return Ok(ptr::null_mut());
        }
        check(status)?;
        if value.data.is_null() { Ok(ptr::null_mut()) } else { env.lent(value) }
    })
}
