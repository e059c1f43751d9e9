//! Natives of `io.byway.Dial`. Host code a dial calls is in `dial_hooks`, sockets in `connected`.

use crate::dial_hooks;
use crate::dial_options::Options;
use crate::env::{Class, Env, address, call, check, handle, make};
use crate::errors::Fail;
use byway::Status;
use byway::ffi::dial::{
    byway_connected, byway_dial, byway_dial_authenticate, byway_dial_cancel, byway_dial_confirm,
    byway_dial_deadline_ms, byway_dial_event, byway_dial_explain, byway_dial_failure,
    byway_dial_failure_route, byway_dial_failures, byway_dial_fd, byway_dial_free, byway_dial_new,
    byway_dial_new_routes, byway_dial_new_selection, byway_dial_next_event, byway_dial_pollset,
    byway_dial_resume, byway_dial_run, byway_dial_step, byway_dial_step_at, byway_dial_take, byway_pollfd,
};
use byway::ffi::error::byway_error;
use byway::ffi::route::byway_route;
use core::mem::size_of;
use core::ptr;
use jni_sys::{jbyteArray, jint, jintArray, jlong, jlongArray, jobject, jobjectArray};

/// What a dial is made over: a selector (0), a selection (1), or routes (2).
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_make(
    env: Env,
    _: Class,
    engine: jlong,
    over: jint,
    handles: jlongArray,
    hooks: jobject,
    tag: jlong,
    numbers: jintArray,
    texts: jobjectArray,
    names: jbyteArray,
    name_lengths: jintArray,
    values: jbyteArray,
    value_lengths: jintArray,
) -> jlong {
    env.guard(|| {
        let options = Options::of(env, tag, numbers, texts, (names, name_lengths), (values, value_lengths));
        let handles = env.longs(handles);
        let first = handles.first().copied().unwrap_or(0);
        let callbacks = dial_hooks::of(env, hooks)?;
        let callbacks = callbacks.as_ref().map_or(ptr::null(), ptr::from_ref);
        let engine = handle(engine);
        // SAFETY: held handles, live options and set, outputs of our own.
        make(|out, err| unsafe {
            match over {
                0 => byway_dial_new(engine, handle(first), options.raw(), callbacks, out, err),
                1 => byway_dial_new_selection(engine, handle(first), options.raw(), callbacks, out, err),
                _ => {
                    let routes: Vec<*const byway_route> =
                        handles.iter().map(|&route| handle::<byway_route>(route).cast_const()).collect();
                    byway_dial_new_routes(
                        engine,
                        routes.as_ptr(),
                        routes.len(),
                        options.raw(),
                        callbacks,
                        out,
                        err,
                    )
                }
            }
        })
    })
}

/// Descriptor, attempt, route and flags; null when it comes later.
fn connected(
    env: Env,
    function: impl FnOnce(*mut byway_connected, *mut *mut byway_error) -> i32,
) -> Result<jlongArray, Fail> {
    let mut out = byway_connected { fd: -1, attempt: 0, route: ptr::null_mut(), flags: 0, reserved: 0 };
    if call(|err| function(&mut out, err))? == Status::PENDING.0 {
        return Ok(ptr::null_mut());
    }
    env.new_longs(&[out.fd.into(), out.attempt.into(), address(out.route), out.flags.into()])
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_run(env: Env, _: Class, self_: jlong, timeout_ms: jlong) -> jlongArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| connected(env, |out, err| unsafe { byway_dial_run(handle(self_), timeout_ms, out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_take(env: Env, _: Class, self_: jlong) -> jlongArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| connected(env, |out, err| unsafe { byway_dial_take(handle(self_), out, err) }))
}

/// Entries as Java packs them: id, descriptor, events, what `poll` said. `now_ms` below 0 is the system's clock. True
/// when a socket can be taken.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_step(
    env: Env,
    _: Class,
    self_: jlong,
    now_ms: jlong,
    entries: jintArray,
) -> bool {
    env.guard(|| {
        let entries: Vec<byway_pollfd> = env
            .ints(entries)
            .chunks_exact(4)
            .map(|entry| byway_pollfd {
                id: entry[0] as u32,
                fd: entry[1],
                events: entry[2] as i16,
                revents: entry[3] as i16,
            })
            .collect();
        let ready = if entries.is_empty() { ptr::null() } else { entries.as_ptr() };
        let dial: *mut byway_dial = handle(self_);
        // SAFETY: a held handle, a live array.
        let status = call(|err| unsafe {
            match u64::try_from(now_ms) {
                Ok(now) => byway_dial_step_at(dial, now, ready, entries.len(), err),
                Err(_) => byway_dial_step(dial, ready, entries.len(), err),
            }
        })?;
        Ok(status == Status::OK.0)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_fd(env: Env, _: Class, self_: jlong) -> jint {
    env.guard(|| {
        let mut fd = -1;
        // SAFETY: a held handle, outputs of our own.
        call(|err| unsafe { byway_dial_fd(handle(self_), &mut fd, err) })?;
        Ok(fd)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_deadline(env: Env, _: Class, self_: jlong) -> jlong {
    env.guard(|| {
        let mut ms = -1;
        // SAFETY: a held handle, an output of our own.
        check(unsafe { byway_dial_deadline_ms(handle(self_), &mut ms) })?;
        Ok(ms)
    })
}

/// Four numbers per entry: id, descriptor, events, what `poll` said.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_pollset(env: Env, _: Class, self_: jlong) -> jlongArray {
    env.guard(|| {
        let mut entries = vec![byway_pollfd { id: 0, fd: -1, events: 0, revents: 0 }; 16];
        loop {
            let mut total = 0;
            // SAFETY: a held handle, an array of that many entries.
            call(|err| unsafe {
                byway_dial_pollset(
                    handle(self_),
                    entries.as_mut_ptr(),
                    size_of::<byway_pollfd>(),
                    entries.len(),
                    &mut total,
                    ptr::null_mut(),
                    err,
                )
            })?;
            if total <= entries.len() {
                entries.truncate(total);
                break;
            }
            entries.resize(total, byway_pollfd { id: 0, fd: -1, events: 0, revents: 0 });
        }
        let mut flat: Vec<jlong> = Vec::with_capacity(4 * entries.len());
        for entry in entries {
            flat.extend([entry.id.into(), entry.fd.into(), entry.events.into(), jlong::from(entry.revents)]);
        }
        env.new_longs(&flat)
    })
}

/// Kind, attempt, descriptor, status, milliseconds; null when there is none.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_nextEvent(env: Env, _: Class, self_: jlong) -> jlongArray {
    env.guard(|| {
        let mut event = byway_dial_event { kind: 0, attempt: 0, fd: -1, status: 0, at_ms: 0 };
        // SAFETY: a held handle, an output of our own.
        if check(unsafe { byway_dial_next_event(handle(self_), &mut event) })? == Status::DONE.0 {
            return Ok(ptr::null_mut());
        }
        env.new_longs(&[
            event.kind.into(),
            event.attempt.into(),
            event.fd.into(),
            event.status.into(),
            event.at_ms,
        ])
    })
}

/// Seven numbers per failure: attempt, status, errno, number, start, end, route (a reference of its own, or 0).
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_failures(env: Env, _: Class, self_: jlong) -> jlongArray {
    env.guard(|| {
        let records = failures(self_)?;
        let mut flat: Vec<jlong> = Vec::with_capacity(7 * records.len());
        for (index, record) in records.iter().enumerate() {
            let mut route = ptr::null_mut();
            // SAFETY: a held handle, an output of our own.
            check(unsafe { byway_dial_failure_route(handle(self_), index, &mut route) })?;
            flat.extend([
                record.attempt.into(),
                record.status.into(),
                record.os_errno.into(),
                record.number.into(),
                record.start_ms,
                record.end_ms,
                address(route),
            ]);
        }
        env.new_longs(&flat)
    })
}

/// Name of one failure; null past the end.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_failureName(
    env: Env,
    _: Class,
    self_: jlong,
    index: jint,
) -> jbyteArray {
    env.guard(|| match failures(self_)?.get(index as usize) {
        Some(record) => env.lent(record.name),
        None => Ok(ptr::null_mut()),
    })
}

fn failures(self_: jlong) -> Result<Vec<byway_dial_failure>, Fail> {
    let mut records: Vec<byway_dial_failure> = Vec::new();
    loop {
        let (mut total, room) = (0, records.capacity());
        // SAFETY: a held handle, an array with room for that many records; the library writes the first of them.
        unsafe {
            check(byway_dial_failures(
                handle(self_),
                records.as_mut_ptr(),
                size_of::<byway_dial_failure>(),
                room,
                &mut total,
            ))?;
            records.set_len(total.min(room));
        }
        if total <= room {
            return Ok(records);
        }
        records.clear();
        records.reserve(total + 8);
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_confirm(env: Env, _: Class, self_: jlong, attempt: jint) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_dial_confirm(handle(self_), attempt as u32, err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_resume(
    env: Env,
    _: Class,
    self_: jlong,
    attempt: jint,
    reason: jint,
    follow_up: jlong,
) {
    env.guard(|| {
        // SAFETY: held handles; none is NULL.
        call(|err| unsafe {
            byway_dial_resume(handle(self_), attempt as u32, reason, handle(follow_up), err)
        })?;
        Ok(())
    });
}

/// `value` null: there are no credentials.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_authenticate(
    env: Env,
    _: Class,
    self_: jlong,
    attempt: jint,
    value: jbyteArray,
) {
    env.guard(|| {
        let bytes = env.bytes(value);
        let text = if value.is_null() { ptr::null() } else { bytes.as_ptr().cast() };
        // SAFETY: a held handle, live bytes or NULL.
        check(unsafe { byway_dial_authenticate(handle(self_), attempt as u32, text, bytes.len()) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_cancel(env: Env, _: Class, self_: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        check(unsafe { byway_dial_cancel(handle(self_)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_explain(env: Env, _: Class, self_: jlong, format: jint) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_dial_explain(handle(self_), format, out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Dial_free(env: Env, _: Class, self_: jlong) {
    // Guarded, as a hook that closes a socket may throw.
    env.guard(|| {
        // SAFETY: the Java object's own handle, ended once.
        unsafe { byway_dial_free(handle(self_)) };
        Ok(())
    });
}
