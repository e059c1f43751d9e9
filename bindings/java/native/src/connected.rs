//! Natives of `io.byway.Connected`: a connected socket as Java's own objects.
//!
//! Java has no public way from a descriptor to a channel. `FileDescriptor` has had its member `fd`, and the channel's class
//! one of two constructors, in every release since 11; where neither is found, nothing is guessed.

use crate::env::{Class, Env};
use crate::errors::Fail;
use core::ffi::CStr;
use core::ptr;
use jni_sys::{jint, jobject, jvalue};
use std::net::TcpStream;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Connected_closeSocket(_: Env, _: Class, fd: jint) {
    // SAFETY: the Java object's own descriptor, closed once.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
}

/// Sets whether reads and writes wait.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Connected_setBlocking(_: Env, _: Class, fd: jint, on: bool) -> bool {
    // SAFETY: a descriptor that its Java object holds for the length of the call; it goes back open.
    let socket = unsafe { TcpStream::from_raw_fd(fd) };
    let set = socket.set_nonblocking(!on).is_ok();
    let _ = socket.into_raw_fd();
    set
}

/// A `java.io.FileDescriptor`, null with an exception pending when this JVM has another kind.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Connected_newFileDescriptor(env: Env, _: Class, fd: jint) -> jobject {
    env.guard(|| {
        // SAFETY: plain look-ups and calls; a failed look-up leaves its exception pending.
        unsafe {
            let table = &env.table().v1_2;
            let class = (table.FindClass)(env.raw(), c"java/io/FileDescriptor".as_ptr());
            if class.is_null() {
                return Err(Fail::Thrown);
            }
            let make = (table.GetMethodID)(env.raw(), class, c"<init>".as_ptr(), c"()V".as_ptr());
            let member = (table.GetFieldID)(env.raw(), class, c"fd".as_ptr(), c"I".as_ptr());
            if make.is_null() || member.is_null() {
                return Err(Fail::Thrown);
            }
            let object = (table.NewObjectA)(env.raw(), class, make, ptr::null());
            if object.is_null() {
                return Err(Fail::Thrown);
            }
            (table.SetIntField)(env.raw(), object, member, fd);
            Ok(object)
        }
    })
}

const BEFORE_15: &CStr =
    c"(Ljava/nio/channels/spi/SelectorProvider;Ljava/io/FileDescriptor;Ljava/net/InetSocketAddress;)V";
const SINCE_16: &CStr = c"(Ljava/nio/channels/spi/SelectorProvider;Ljava/net/ProtocolFamily;Ljava/io/FileDescriptor;Ljava/net/SocketAddress;)V";

/// A connected `SocketChannel` over a descriptor; null when this JVM's class has neither constructor.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Connected_newChannel(
    env: Env,
    _: Class,
    provider: jobject,
    family: jobject,
    descriptor: jobject,
    remote: jobject,
) -> jobject {
    env.guard(|| {
        // SAFETY: plain look-ups and calls; what a failed look-up leaves pending is cleared.
        unsafe {
            let table = &env.table().v1_2;
            let class = (table.FindClass)(env.raw(), c"sun/nio/ch/SocketChannelImpl".as_ptr());
            if class.is_null() {
                (table.ExceptionClear)(env.raw());
                return Ok(ptr::null_mut());
            }
            let shapes: [(&CStr, &[jvalue]); 2] = [
                (
                    SINCE_16,
                    &[
                        jvalue { l: provider },
                        jvalue { l: family },
                        jvalue { l: descriptor },
                        jvalue { l: remote },
                    ],
                ),
                (BEFORE_15, &[jvalue { l: provider }, jvalue { l: descriptor }, jvalue { l: remote }]),
            ];
            for (signature, arguments) in shapes {
                let make = (table.GetMethodID)(env.raw(), class, c"<init>".as_ptr(), signature.as_ptr());
                if make.is_null() {
                    (table.ExceptionClear)(env.raw());
                    continue;
                }
                let channel = (table.NewObjectA)(env.raw(), class, make, arguments.as_ptr());
                return if channel.is_null() { Err(Fail::Thrown) } else { Ok(channel) };
            }
            Ok(ptr::null_mut())
        }
    })
}
