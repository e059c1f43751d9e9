//! `JNI_OnLoad`: the names that are looked up once. A callback adds its method to the list.

use crate::callback::{self, StaticMethod};
use crate::env::Env;
use crate::{
    binding, dial_hooks, dns, engine, errors, invokers, listener, proxy_script, proxy_selector, queue, router,
};
use core::ffi::c_void;
use jni_sys::{JNI_ERR, JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, jint};

static METHODS: &[&StaticMethod] = &[
    &errors::MAKE,
    &errors::UNCLAIMED,
    &errors::SET_ASIDE,
    &errors::PUT_BACK,
    &errors::THROWABLE,
    &queue::NOTIFY,
    &engine::SOURCE,
    &dns::LOOKUP,
    &dns::CANCELED,
    &proxy_selector::SELECT,
    &proxy_selector::CONNECT_FAILED,
    &proxy_selector::CANCELED,
    &proxy_script::FETCH,
    &listener::EVENT,
    &dial_hooks::OPEN,
    &dial_hooks::CONFIGURE,
    &dial_hooks::CLOSE,
    &dial_hooks::AUTH,
    &invokers::ENDED,
    &router::ROUTE,
    &binding::EVENT,
];

/// The JVM has loaded the library, on a thread whose class loader knows `io.byway`.
#[unsafe(no_mangle)]
extern "system" fn JNI_OnLoad(vm: *mut JavaVM, _reserved: *mut c_void) -> jint {
    let mut env: *mut c_void = core::ptr::null_mut();
    // SAFETY: the JVM passes itself; this thread is attached.
    let env = unsafe {
        if ((**vm).v1_2.GetEnv)(vm, &mut env, JNI_VERSION_1_8) != JNI_OK {
            return JNI_ERR;
        }
        Env::of(env.cast::<JNIEnv>())
    };
    callback::remember(vm);
    if METHODS.iter().all(|method| method.resolve(env)) { JNI_VERSION_1_8 } else { JNI_ERR }
}
