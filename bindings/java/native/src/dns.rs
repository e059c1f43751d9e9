//! Natives of `io.byway.Dns` and `io.byway.DnsRequest`.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, address, call, check, handle, make, str_of};
use crate::errors::Fail;
use crate::host::ips_of;
use byway::Status;
use byway::ffi::call::{byway_call, byway_call_deadline_ms, byway_call_tag};
use byway::ffi::dns::{
    byway_dns_callbacks, byway_dns_new, byway_dns_new_hosts, byway_dns_new_system, byway_dns_release,
    byway_dns_request, byway_dns_request_add, byway_dns_request_add_service, byway_dns_request_fail,
    byway_dns_request_family_done, byway_dns_request_finish, byway_dns_request_id,
    byway_dns_request_is_canceled, byway_dns_request_release, byway_dns_request_retain,
    byway_service_options,
};
use core::ffi::{c_char, c_void};
use core::mem::size_of;
use jni_sys::{jbyteArray, jint, jintArray, jlong, jobject, jvalue};

pub static LOOKUP: StaticMethod =
    StaticMethod::new(c"io/byway/Dns$Callbacks", c"lookup", c"(Ljava/lang/Object;J[BJJ)I");
pub static CANCELED: StaticMethod =
    StaticMethod::new(c"io/byway/Dns$Callbacks", c"canceled", c"(Ljava/lang/Object;J)V");

unsafe extern "C-unwind" fn lookup(
    user_data: *mut c_void,
    request: *mut byway_dns_request,
    host: *const c_char,
    host_len: usize,
    context: *const byway_call,
) -> i32 {
    let asked = callback::enter(|env| {
        // SAFETY: the engine lends all of these until this returns.
        unsafe {
            let Ok(host) = env.new_bytes(core::slice::from_raw_parts(host.cast(), host_len)) else {
                return None;
            };
            Some(LOOKUP.call_status(
                env,
                &[
                    Target::of(user_data),
                    jvalue { j: address(request) },
                    jvalue { l: host },
                    jvalue { j: byway_call_tag(context) as jlong },
                    jvalue { j: byway_call_deadline_ms(context) },
                ],
            ))
        }
    });
    asked.flatten().unwrap_or(Status::E_RESOURCES.0)
}

unsafe extern "C-unwind" fn on_cancel(user_data: *mut c_void, request_id: u64) {
    callback::enter(|env| {
        // SAFETY: the set is alive, so its object is.
        CANCELED.call_void(env, &[unsafe { Target::of(user_data) }, jvalue { j: request_id as jlong }]);
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dns_make(env: Env, _: Class, engine: jlong, object: jobject) -> jlong {
    env.guard(|| {
        let callbacks = byway_dns_callbacks {
            struct_size: size_of::<byway_dns_callbacks>(),
            user_data: Target::register(env, object).ok_or(Fail::Thrown)?,
            destroy: Some(callback::destroy),
            lookup: Some(lookup),
            on_cancel: Some(on_cancel),
        };
        // SAFETY: a held handle, a live set, outputs of our own.
        make(|out, err| unsafe { byway_dns_new(handle(engine), &callbacks, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dns_makeSystem(env: Env, _: Class, engine: jlong) -> jlong {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_dns_new_system(handle(engine), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dns_makeHosts(env: Env, _: Class, engine: jlong, text: jbyteArray) -> jlong {
    env.guard(|| {
        let text = env.bytes(text);
        // SAFETY: a held handle, live bytes, outputs of our own.
        make(|out, err| unsafe {
            byway_dns_new_hosts(handle(engine), text.as_ptr().cast(), text.len(), out, err)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dns_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_dns_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_id(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_dns_request_id(handle(self_)) } as jlong))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_isCanceled(env: Env, _: Class, self_: jlong) -> bool {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_dns_request_is_canceled(handle(self_)) } != 0))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_add(env: Env, _: Class, self_: jlong, packed: jbyteArray) {
    env.guard(|| {
        let ips = ips_of(env, packed);
        // SAFETY: a held handle, a live array.
        check(unsafe { byway_dns_request_add(handle(self_), ips.as_ptr(), ips.len()) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_addService(
    env: Env,
    _: Class,
    self_: jlong,
    target: jbyteArray,
    priority: jint,
    port: jint,
    alpn: jbyteArray,
    alpn_lengths: jintArray,
    ech: jbyteArray,
    hints: jbyteArray,
) {
    env.guard(|| {
        let (target, ech, hints) = (env.bytes(target), env.bytes(ech), ips_of(env, hints));
        let alpn = env.texts(alpn, alpn_lengths);
        let options = byway_service_options {
            struct_size: size_of::<byway_service_options>(),
            target: str_of(&target),
            priority: priority as u16,
            port: port as u16,
            reserved: 0,
            alpn: alpn.views.as_ptr(),
            alpn_len: alpn.views.len(),
            ech: str_of(&ech),
            hints: hints.as_ptr(),
            hints_len: hints.len(),
        };
        // SAFETY: a held handle, live options.
        call(|err| unsafe { byway_dns_request_add_service(handle(self_), &options, err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_familyDone(env: Env, _: Class, self_: jlong, family: jint) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_dns_request_family_done(handle(self_), family) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_finish(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_dns_request_finish(handle(self_)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_fail(
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
            byway_dns_request_fail(handle(self_), status, host_code, message.as_ptr().cast(), message.len())
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_retain(_: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a handle that the running callback lends.
    address(unsafe { byway_dns_request_retain(handle(self_)) })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_DnsRequest_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_dns_request_release(handle(self_)) };
}
