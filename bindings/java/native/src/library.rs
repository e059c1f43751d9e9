//! Natives of `io.byway.Library`.

use crate::env::{Blank, Class, Env, NO_TEXT, address, bytes_of};
use byway::ffi::library::{
    byway_abi_version, byway_has_feature, byway_layout, byway_status_message, byway_status_name,
    byway_version,
};
use core::ffi::{CStr, c_char};
use jni_sys::{jbyteArray, jint, jlong, jobject};

fn text(env: Env, text: *const c_char) -> jbyteArray {
    // SAFETY: the library's own texts, static and NUL-terminated.
    env.guard(|| env.new_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Library_abiVersion0(_: Env, _: Class) -> jint {
    byway_abi_version() as jint
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Library_version0(env: Env, _: Class) -> jbyteArray {
    text(env, byway_version())
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Library_hasFeature0(env: Env, _: Class, name: jbyteArray) -> bool {
    env.guard(|| {
        let name = env.bytes(name);
        // SAFETY: live bytes.
        Ok(unsafe { byway_has_feature(name.as_ptr().cast(), name.len()) } != 0)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Library_statusName0(env: Env, _: Class, status: jint) -> jbyteArray {
    text(env, byway_status_name(status))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Library_statusMessage0(env: Env, _: Class, status: jint) -> jbyteArray {
    text(env, byway_status_message(status))
}

/// One line per struct: its name, size and the offsets of its members.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Library_layout0(env: Env, _: Class) -> jbyteArray {
    env.guard(|| {
        let mut lines = Vec::new();
        for index in 0.. {
            let (mut name, mut size, mut offsets, mut total) = (NO_TEXT, 0, [0; 64], 0);
            // SAFETY: outputs of our own.
            let status = unsafe {
                byway_layout(index, &mut name, &mut size, offsets.as_mut_ptr(), offsets.len(), &mut total)
            };
            if status != 0 {
                break;
            }
            lines.extend_from_slice(bytes_of(&name));
            lines.extend_from_slice(format!(" {size}").as_bytes());
            for offset in offsets.iter().take(total) {
                lines.extend_from_slice(format!(" {offset}").as_bytes());
            }
            lines.push(b'\n');
        }
        env.new_bytes(&lines)
    })
}

/// Where a direct buffer's memory is.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Library_bufferAddress0(env: Env, _: Class, buffer: jobject) -> jlong {
    // SAFETY: a live reference to a buffer; null for what is not a direct one.
    let memory = unsafe { (env.table().v1_4.GetDirectBufferAddress)(env.raw(), buffer) };
    if memory.is_null() { jlong::BLANK } else { address(memory) }
}

/// Does nothing: what every crossing costs.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Library_nothing0(_: Env, _: Class, value: jlong) -> jlong {
    value
}
