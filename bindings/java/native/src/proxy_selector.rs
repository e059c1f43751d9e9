//! Natives of `io.byway.ProxySelector` and `io.byway.ProxyRequest`.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, address, call, check, handle, make};
use crate::errors::Fail;
use byway::Status;
use byway::ffi::call::{byway_call, byway_call_tag};
use byway::ffi::proxy::byway_proxy;
use byway::ffi::proxy_built_in::{byway_proxy_selector_new_environment, byway_proxy_selector_new_properties};
use byway::ffi::proxy_script::byway_proxy_selector_new_script;
use byway::ffi::proxy_selector::{
    byway_proxy_request, byway_proxy_request_add, byway_proxy_request_add_direct,
    byway_proxy_request_add_proxy, byway_proxy_request_fail, byway_proxy_request_finish,
    byway_proxy_request_id, byway_proxy_request_is_canceled, byway_proxy_request_release,
    byway_proxy_request_retain, byway_proxy_selector_callbacks, byway_proxy_selector_new,
    byway_proxy_selector_new_direct, byway_proxy_selector_new_fixed, byway_proxy_selector_release,
};
use byway::ffi::route::{byway_route, byway_route_retain};
use core::ffi::{c_char, c_void};
use core::mem::size_of;
use jni_sys::{jbyteArray, jint, jintArray, jlong, jlongArray, jobject, jvalue};

pub static SELECT: StaticMethod =
    StaticMethod::new(c"io/byway/ProxySelector$Callbacks", c"select", c"(Ljava/lang/Object;J[BJ)I");
pub static CONNECT_FAILED: StaticMethod =
    StaticMethod::new(c"io/byway/ProxySelector$Callbacks", c"connectFailed", c"(Ljava/lang/Object;[BJII)V");
pub static CANCELED: StaticMethod =
    StaticMethod::new(c"io/byway/ProxySelector$Callbacks", c"canceled", c"(Ljava/lang/Object;J)V");

unsafe extern "C-unwind" fn select(
    user_data: *mut c_void,
    request: *mut byway_proxy_request,
    uri: *const c_char,
    uri_len: usize,
    context: *const byway_call,
) -> i32 {
    let asked = callback::enter(|env| {
        // SAFETY: the engine lends all of these until this returns.
        unsafe {
            let uri = env.new_bytes(core::slice::from_raw_parts(uri.cast(), uri_len)).ok()?;
            Some(SELECT.call_status(
                env,
                &[
                    Target::of(user_data),
                    jvalue { j: address(request) },
                    jvalue { l: uri },
                    jvalue { j: byway_call_tag(context) as jlong },
                ],
            ))
        }
    });
    asked.flatten().unwrap_or(Status::E_RESOURCES.0)
}

unsafe extern "C-unwind" fn connect_failed(
    user_data: *mut c_void,
    uri: *const c_char,
    uri_len: usize,
    route: *const byway_route,
    failure: i32,
    os_errno: i32,
    _context: *const byway_call,
) {
    callback::enter(|env| {
        // SAFETY: the engine lends all of these until this returns; Java gets a reference of its own to the route.
        unsafe {
            let Ok(uri) = env.new_bytes(core::slice::from_raw_parts(uri.cast(), uri_len)) else { return };
            CONNECT_FAILED.call_void(
                env,
                &[
                    Target::of(user_data),
                    jvalue { l: uri },
                    jvalue { j: address(byway_route_retain(route)) },
                    jvalue { i: failure },
                    jvalue { i: os_errno },
                ],
            );
        }
    });
}

unsafe extern "C-unwind" fn on_cancel(user_data: *mut c_void, request_id: u64) {
    callback::enter(|env| {
        // SAFETY: the set is alive, so its object is.
        CANCELED.call_void(env, &[unsafe { Target::of(user_data) }, jvalue { j: request_id as jlong }]);
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_make(
    env: Env,
    _: Class,
    engine: jlong,
    object: jobject,
) -> jlong {
    env.guard(|| {
        let callbacks = byway_proxy_selector_callbacks {
            struct_size: size_of::<byway_proxy_selector_callbacks>(),
            user_data: Target::register(env, object).ok_or(Fail::Thrown)?,
            destroy: Some(callback::destroy),
            select: Some(select),
            connect_failed: Some(connect_failed),
            on_cancel: Some(on_cancel),
        };
        // SAFETY: a held handle, a live set, outputs of our own.
        make(|out, err| unsafe { byway_proxy_selector_new(handle(engine), &callbacks, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeDirect(env: Env, _: Class, engine: jlong) -> jlong {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_proxy_selector_new_direct(handle(engine), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeFixed(
    env: Env,
    _: Class,
    engine: jlong,
    proxies: jlongArray,
) -> jlong {
    env.guard(|| {
        let proxies: Vec<*const byway_proxy> =
            env.longs(proxies).into_iter().map(|proxy| handle::<byway_proxy>(proxy).cast_const()).collect();
        // SAFETY: held handles, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_selector_new_fixed(handle(engine), proxies.as_ptr(), proxies.len(), out, err)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeEnvironment(
    env: Env,
    _: Class,
    engine: jlong,
    names: jbyteArray,
    name_lengths: jintArray,
    values: jbyteArray,
    value_lengths: jintArray,
    dialect: jbyteArray,
) -> jlong {
    env.guard(|| {
        let (names, values) = (env.texts(names, name_lengths), env.texts(values, value_lengths));
        let dialect = env.bytes(dialect);
        // SAFETY: a held handle, two live arrays of one length, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_selector_new_environment(
                handle(engine),
                names.views.as_ptr(),
                values.views.as_ptr(),
                names.views.len().min(values.views.len()),
                dialect.as_ptr().cast(),
                dialect.len(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeProperties(
    env: Env,
    _: Class,
    engine: jlong,
    names: jbyteArray,
    name_lengths: jintArray,
    values: jbyteArray,
    value_lengths: jintArray,
    web_sockets: bool,
) -> jlong {
    env.guard(|| {
        let (names, values) = (env.texts(names, name_lengths), env.texts(values, value_lengths));
        // SAFETY: a held handle, two live arrays of one length, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_selector_new_properties(
                handle(engine),
                names.views.as_ptr(),
                values.views.as_ptr(),
                names.views.len().min(values.views.len()),
                web_sockets.into(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeScript(
    env: Env,
    _: Class,
    engine: jlong,
    name: jbyteArray,
    source: jbyteArray,
) -> jlong {
    env.guard(|| {
        let (name, source) = (env.bytes(name), env.bytes(source));
        // SAFETY: a held handle, live bytes, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_selector_new_script(
                handle(engine),
                name.as_ptr().cast(),
                name.len(),
                source.as_ptr().cast(),
                source.len(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_proxy_selector_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_id(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_proxy_request_id(handle(self_)) } as jlong))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_isCanceled(env: Env, _: Class, self_: jlong) -> bool {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_proxy_request_is_canceled(handle(self_)) } != 0))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_add(
    env: Env,
    _: Class,
    self_: jlong,
    kind: jint,
    host: jbyteArray,
    port: jint,
) {
    env.guard(|| {
        let host = env.bytes(host);
        // SAFETY: a held handle, live bytes.
        call(|err| unsafe {
            byway_proxy_request_add(handle(self_), kind, host.as_ptr().cast(), host.len(), port, err)
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_addProxy(env: Env, _: Class, self_: jlong, proxy: jlong) {
    env.guard(|| {
        // SAFETY: two held handles.
        check(unsafe { byway_proxy_request_add_proxy(handle(self_), handle(proxy)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_addDirect(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_proxy_request_add_direct(handle(self_)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_finish(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_proxy_request_finish(handle(self_)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_fail(
    env: Env,
    _: Class,
    self_: jlong,
    status: jint,
    host_code: jlong,
    message: jbyteArray,
) {
    env.guard(|| {
        let message = env.bytes(message);
        // SAFETY: a held handle, live bytes.
        check(unsafe {
            byway_proxy_request_fail(handle(self_), status, host_code, message.as_ptr().cast(), message.len())
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_retain(_: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a handle that the running callback lends.
    address(unsafe { byway_proxy_request_retain(handle(self_)) })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxyRequest_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_proxy_request_release(handle(self_)) };
}
