//! Host code a dial calls: `io.byway.Hooks`.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Env, address, bytes_of};
use crate::errors::Fail;
use byway::Status;
use byway::ffi::arguments::byway_str;
use byway::ffi::call::byway_call;
use byway::ffi::dial::byway_dial;
use byway::ffi::dial_hooks::byway_dial_callbacks;
use byway::ffi::route::{byway_route, byway_route_retain};
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use jni_sys::{jobject, jvalue};

/// A descriptor, -1 for "as usual", or what else is below 0.
pub static OPEN: StaticMethod =
    StaticMethod::new(c"io/byway/Dial$Callbacks", c"openSocket", c"(Lio/byway/Hooks;IIJ)I");
pub static CONFIGURE: StaticMethod =
    StaticMethod::new(c"io/byway/Dial$Callbacks", c"configure", c"(Lio/byway/Hooks;IJ)I");
pub static CLOSE: StaticMethod =
    StaticMethod::new(c"io/byway/Dial$Callbacks", c"closeSocket", c"(Lio/byway/Hooks;I)I");
pub static AUTH: StaticMethod =
    StaticMethod::new(c"io/byway/Dial$Callbacks", c"proxyAuth", c"(Lio/byway/Hooks;JIJ[[B)I");

const AS_USUAL: i32 = -1;

unsafe extern "C-unwind" fn open_socket(
    user_data: *mut c_void,
    family: i32,
    protocol: i32,
    route: *const byway_route,
    fd: *mut i32,
    _context: *const byway_call,
) -> i32 {
    let opened = callback::enter(|env| {
        // SAFETY: the engine lends all of these until this returns; Java gets a reference of its own to the route.
        let (target, route) = unsafe { (Target::of(user_data), address(byway_route_retain(route))) };
        OPEN.call_status(env, &[target, jvalue { i: family }, jvalue { i: protocol }, jvalue { j: route }])
    });
    match opened {
        None => Status::E_RESOURCES.0,
        Some(AS_USUAL) => Status::PASS.0,
        Some(opened) if opened >= 0 => {
            // SAFETY: the engine's output.
            unsafe { *fd = opened };
            Status::OK.0
        }
        Some(status) => status,
    }
}

unsafe extern "C-unwind" fn configure(
    user_data: *mut c_void,
    fd: i32,
    route: *const byway_route,
    _context: *const byway_call,
) -> i32 {
    let status = callback::enter(|env| {
        // SAFETY: the engine lends all of these until this returns; Java gets a reference of its own to the route.
        let (target, route) = unsafe { (Target::of(user_data), address(byway_route_retain(route))) };
        CONFIGURE.call_status(env, &[target, jvalue { i: fd }, jvalue { j: route }])
    });
    status.unwrap_or(Status::E_RESOURCES.0)
}

unsafe extern "C-unwind" fn close_socket(
    user_data: *mut c_void,
    fd: i32,
    _context: *const byway_call,
) -> i32 {
    let status = callback::enter(|env| {
        // SAFETY: the set is alive, so its object is.
        CLOSE.call_status(env, &[unsafe { Target::of(user_data) }, jvalue { i: fd }])
    });
    status.unwrap_or(Status::PASS.0)
}

unsafe extern "C-unwind" fn proxy_auth(
    user_data: *mut c_void,
    dial: *mut byway_dial,
    attempt: u32,
    route: *const byway_route,
    challenges: *const byway_str,
    count: usize,
    _context: *const byway_call,
) -> i32 {
    let status = callback::enter(|env| {
        // SAFETY: the engine lends all of these until this returns; Java gets a reference of its own to the route.
        unsafe {
            let list = if count == 0 { &[] } else { core::slice::from_raw_parts(challenges, count) };
            let texts = texts(env, list)?;
            Some(AUTH.call_status(
                env,
                &[
                    Target::of(user_data),
                    jvalue { j: address(dial) },
                    jvalue { i: attempt as i32 },
                    jvalue { j: address(byway_route_retain(route)) },
                    jvalue { l: texts },
                ],
            ))
        }
    });
    status.flatten().unwrap_or(Status::E_RESOURCES.0)
}

/// An array of byte arrays.
fn texts(env: Env, list: &[byway_str]) -> Option<jobject> {
    // SAFETY: plain calls; each element is a live local reference.
    unsafe {
        let table = &env.table().v1_1;
        let class = (table.FindClass)(env.raw(), c"[B".as_ptr());
        let array =
            (table.NewObjectArray)(env.raw(), i32::try_from(list.len()).ok()?, class, ptr::null_mut());
        if array.is_null() {
            (table.ExceptionClear)(env.raw());
            return None;
        }
        for (i, text) in list.iter().enumerate() {
            let Ok(bytes) = env.new_bytes(bytes_of(text)) else {
                (table.ExceptionClear)(env.raw());
                return None;
            };
            (table.SetObjectArrayElement)(env.raw(), array, i as i32, bytes);
            (table.DeleteLocalRef)(env.raw(), bytes);
        }
        Some(array)
    }
}

/// The set for an object; none for null.
pub fn of(env: Env, hooks: jobject) -> Result<Option<byway_dial_callbacks>, Fail> {
    if hooks.is_null() {
        return Ok(None);
    }
    Ok(Some(byway_dial_callbacks {
        struct_size: size_of::<byway_dial_callbacks>(),
        user_data: Target::register(env, hooks).ok_or(Fail::Thrown)?,
        destroy: Some(callback::destroy),
        open_socket: Some(open_socket),
        configure: Some(configure),
        close_socket: Some(close_socket),
        proxy_auth: Some(proxy_auth),
    }))
}
