//! Natives of `io.byway.Queue`.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, call, check, handle, make};
use crate::errors::Fail;
use byway::ffi::queue::{
    byway_completion, byway_notify_callbacks, byway_queue, byway_queue_deadline, byway_queue_fd,
    byway_queue_lost, byway_queue_new, byway_queue_options, byway_queue_options_init, byway_queue_poll,
    byway_queue_release, byway_queue_set_notify, byway_queue_wakeup,
};
use core::ffi::c_void;
use core::mem::{MaybeUninit, size_of};
use core::ptr;
use jni_sys::{jint, jlong, jlongArray, jobject};

pub static NOTIFY: StaticMethod =
    StaticMethod::new(c"io/byway/Queue$Callbacks", c"notify", c"(Ljava/lang/Runnable;)V");

/// Records taken by one poll.
const ROOM: usize = 64;

unsafe extern "C-unwind" fn notify(user_data: *mut c_void) {
    // SAFETY: the set is alive, so its object is.
    callback::enter(|env| NOTIFY.call_void(env, &[unsafe { Target::of(user_data) }]));
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Queue_make(env: Env, _: Class, flags: jint, capacity: jint) -> jlong {
    env.guard(|| {
        let mut options = MaybeUninit::<byway_queue_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut options = unsafe {
            byway_queue_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        options.flags = flags as u32;
        options.capacity = capacity as u32;
        // SAFETY: live options, outputs of our own.
        make(|out, err| unsafe { byway_queue_new(&options, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Queue_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_queue_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Queue_fd(env: Env, _: Class, self_: jlong) -> jint {
    env.guard(|| {
        let mut fd = -1;
        // SAFETY: a held handle, an output of our own.
        check(unsafe { byway_queue_fd(handle(self_), &mut fd) })?;
        Ok(fd)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Queue_setNotify(env: Env, _: Class, self_: jlong, object: jobject) {
    env.guard(|| {
        let queue: *mut byway_queue = handle(self_);
        if object.is_null() {
            // SAFETY: a held handle; NULL takes the set back.
            call(|err| unsafe { byway_queue_set_notify(queue, ptr::null(), err) })?;
            return Ok(());
        }
        let callbacks = byway_notify_callbacks {
            struct_size: size_of::<byway_notify_callbacks>(),
            user_data: Target::register(env, object).ok_or(Fail::Thrown)?,
            destroy: Some(callback::destroy),
            notify: Some(notify),
        };
        // SAFETY: a held handle, a live set.
        call(|err| unsafe { byway_queue_set_notify(queue, &callbacks, err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Queue_deadline(env: Env, _: Class, self_: jlong) -> jlong {
    env.guard(|| {
        let mut ms = -1;
        // SAFETY: a held handle, an output of our own.
        check(unsafe { byway_queue_deadline(handle(self_), &mut ms) })?;
        Ok(ms)
    })
}

/// Four longs per record: tag, id, kind, status.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Queue_poll(
    env: Env,
    _: Class,
    self_: jlong,
    timeout_ms: jlong,
) -> jlongArray {
    env.guard(|| {
        let mut records = [byway_completion { tag: 0, id: 0, kind: 0, status: 0 }; ROOM];
        let mut n = 0;
        // SAFETY: a held handle, an array of ROOM records.
        call(|err| unsafe {
            byway_queue_poll(
                handle(self_),
                timeout_ms,
                records.as_mut_ptr(),
                size_of::<byway_completion>(),
                ROOM,
                &mut n,
                err,
            )
        })?;
        let mut flat = Vec::with_capacity(4 * n);
        for record in records.iter().take(n) {
            flat.extend([record.tag as jlong, record.id as jlong, record.kind.into(), record.status.into()]);
        }
        env.new_longs(&flat)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Queue_wakeup(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_queue_wakeup(handle(self_)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Queue_lost(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_queue_lost(handle(self_)) } as jlong))
}
