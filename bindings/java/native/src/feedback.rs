//! Natives of `io.byway.Engine` and `io.byway.Failure`: what hosts report, and what the engine makes of it.

use crate::env::{Class, Env, call, check, handle};
use crate::host::pack;
use byway::ffi::feedback::{
    byway_engine_connect_failed, byway_engine_connected, byway_engine_database_export,
    byway_engine_database_import, byway_engine_database_snapshot, byway_engine_network_changed,
    byway_engine_recover, byway_engine_set_proxy_selector, byway_engine_should_postpone,
    byway_engine_statistics, byway_engine_stats, byway_failed_call, byway_failed_exchange,
    byway_failed_route, byway_failure_from_errno, byway_failure_report, byway_failure_retry_tls,
    byway_failure_text, byway_failure_track,
};
use byway::ffi::rule::{byway_engine_remove_rule, byway_engine_set_rule};
use core::mem::{MaybeUninit, size_of};
use jni_sys::{jbyteArray, jint, jlong, jlongArray};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_connected(env: Env, _: Class, self_: jlong, route: jlong) {
    env.guard(|| {
        // SAFETY: two held handles.
        check(unsafe { byway_engine_connected(handle(self_), handle(route)) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_connectFailed(
    env: Env,
    _: Class,
    self_: jlong,
    route: jlong,
    failure: jint,
    phase: jint,
    os_errno: jint,
) {
    env.guard(|| {
        // SAFETY: two held handles.
        call(|err| unsafe {
            byway_engine_connect_failed(handle(self_), handle(route), failure, phase, os_errno, err)
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_shouldPostpone(
    env: Env,
    _: Class,
    self_: jlong,
    route: jlong,
) -> bool {
    env.guard(|| {
        let mut out = 0;
        // SAFETY: two held handles, an output of our own.
        check(unsafe { byway_engine_should_postpone(handle(self_), handle(route), &mut out) })?;
        Ok(out != 0)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_networkChanged(env: Env, _: Class, self_: jlong) -> jlong {
    env.guard(|| {
        let mut generation = 0;
        // SAFETY: a held handle, an output of our own.
        check(unsafe { byway_engine_network_changed(handle(self_), &mut generation) })?;
        Ok(generation as jlong)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_setProxySelector(
    env: Env,
    _: Class,
    self_: jlong,
    proxy_selector: jlong,
) {
    env.guard(|| {
        // SAFETY: held handles; none takes the selector back.
        call(|err| unsafe { byway_engine_set_proxy_selector(handle(self_), handle(proxy_selector), err) })?;
        Ok(())
    });
}

/// Per record: `byway_ip`, then nine longs: hop port, target port, proxy kind, failure, errno, periods, age, remaining.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_databaseSnapshot(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let mut records: Vec<byway_failed_route> = Vec::new();
        loop {
            let mut total = 0;
            let room = records.capacity();
            // SAFETY: a held handle, an array with room for that many records; the library writes the first of them.
            unsafe {
                check(byway_engine_database_snapshot(
                    handle(self_),
                    records.as_mut_ptr(),
                    size_of::<byway_failed_route>(),
                    room,
                    &mut total,
                ))?;
                records.set_len(total.min(room));
            }
            if total <= room {
                break;
            }
            records.clear();
            records.reserve(total + 16);
        }
        let mut bytes = Vec::new();
        for record in &records {
            bytes.extend_from_slice(&pack(&[record.hop_ip]));
            let numbers: [i64; 8] = [
                record.hop_port.into(),
                record.target_port.into(),
                record.proxy_kind.into(),
                record.failure.into(),
                record.os_errno.into(),
                record.periods.into(),
                record.age_ms as i64,
                record.remaining_ms,
            ];
            for number in numbers {
                bytes.extend_from_slice(&number.to_ne_bytes());
            }
        }
        env.new_bytes(&bytes)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_databaseExport(env: Env, _: Class, self_: jlong) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_engine_database_export(handle(self_), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_databaseImport(
    env: Env,
    _: Class,
    self_: jlong,
    json: jbyteArray,
) -> jlong {
    env.guard(|| {
        let json = env.bytes(json);
        let mut n = 0;
        // SAFETY: a held handle, live bytes, an output of our own.
        call(|err| unsafe {
            byway_engine_database_import(handle(self_), json.as_ptr().cast(), json.len(), &mut n, err)
        })?;
        Ok(n as jlong)
    })
}

/// In the order of `byway_engine_statistics`.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_stats(env: Env, _: Class, self_: jlong) -> jlongArray {
    env.guard(|| {
        let mut out = byway_engine_statistics {
            struct_size: size_of::<byway_engine_statistics>(),
            postponed: 0,
            database_records: 0,
            database_pending: 0,
            network_generation: 0,
            waiting: 0,
        };
        // SAFETY: a held handle, an output of our own.
        check(unsafe { byway_engine_stats(handle(self_), &mut out) })?;
        let numbers =
            [out.postponed, out.database_records, out.database_pending, out.network_generation, out.waiting];
        env.new_longs(&numbers.map(|number| number as jlong))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_recover(
    env: Env,
    _: Class,
    self_: jlong,
    failure: jint,
    phase: jint,
    flags: jint,
) -> jint {
    env.guard(|| {
        let failed = byway_failed_call {
            struct_size: size_of::<byway_failed_call>(),
            failure,
            phase,
            flags: flags as u32,
            reserved: 0,
        };
        let mut out = 0;
        // SAFETY: a held handle, live input, an output of our own.
        call(|err| unsafe { byway_engine_recover(handle(self_), &failed, &mut out, err) })?;
        Ok(out)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_setRule(
    env: Env,
    _: Class,
    self_: jlong,
    key: jbyteArray,
    text: jbyteArray,
) {
    env.guard(|| {
        let (key, text) = (env.bytes(key), env.bytes(text));
        // SAFETY: a held handle, live bytes.
        call(|err| unsafe {
            byway_engine_set_rule(
                handle(self_),
                key.as_ptr().cast(),
                key.len(),
                text.as_ptr().cast(),
                text.len(),
                err,
            )
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Engine_removeRule(env: Env, _: Class, self_: jlong, key: jbyteArray) {
    env.guard(|| {
        let key = env.bytes(key);
        // SAFETY: a held handle, live bytes.
        call(|err| unsafe { byway_engine_remove_rule(handle(self_), key.as_ptr().cast(), key.len(), err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Failure_retryTls0(_: Env, _: Class, failure: jint) -> bool {
    byway_failure_retry_tls(failure) != 0
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Failure_fromErrno0(_: Env, _: Class, os_errno: jint) -> jint {
    byway_failure_from_errno(os_errno)
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Failure_text0(env: Env, _: Class, failure: jint) -> jbyteArray {
    // SAFETY: outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_failure_text(failure, out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Failure_track0(
    env: Env,
    _: Class,
    failure: jint,
    flags: jint,
    successes: jlong,
    refused_before: jint,
) -> jint {
    env.guard(|| {
        let mut exchange = MaybeUninit::<byway_failed_exchange>::zeroed();
        // SAFETY: plain numbers, for which zero is fine.
        let exchange = unsafe { exchange.assume_init_mut() };
        exchange.struct_size = size_of::<byway_failed_exchange>();
        exchange.failure = failure;
        exchange.flags = flags as u32;
        exchange.successes = successes as u64;
        exchange.refused_before = refused_before as u32;
        let mut out = 0;
        // SAFETY: live input, an output of our own.
        call(|err| unsafe { byway_failure_track(exchange, &mut out, err) })?;
        Ok(out as jint)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Failure_report0(
    env: Env,
    _: Class,
    compat: jint,
    failure: jint,
    phase: jint,
    proxy_kind: jint,
    from_selector: bool,
    retry_enabled: bool,
) -> jint {
    env.guard(|| {
        let mut out = 0;
        // SAFETY: an output of our own.
        call(|err| unsafe {
            byway_failure_report(
                compat,
                failure,
                phase,
                proxy_kind,
                from_selector.into(),
                retry_enabled.into(),
                &mut out,
                err,
            )
        })?;
        Ok(out as jint)
    })
}
