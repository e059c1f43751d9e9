//! Natives of `io.byway.Route`, for what its record does not hold.

use crate::env::{Class, Env, NO_TEXT, bytes_of, call, check, handle, make};
use crate::errors::Fail;
use crate::host::{NO_IP, ips_of, pack};
use byway::Status;
use byway::ffi::address::byway_ip;
use byway::ffi::proxy::{byway_proxy_host, byway_proxy_release};
use byway::ffi::route::{
    byway_peer, byway_route, byway_route_coalesces, byway_route_equals, byway_route_flags, byway_route_hash,
    byway_route_hop, byway_route_new, byway_route_proxy, byway_route_proxy_kind, byway_route_record,
    byway_route_release, byway_route_service, byway_route_service_alpn_at, byway_route_service_hints,
    byway_route_socket_address, byway_route_target, byway_route_text,
};
use core::mem::{MaybeUninit, offset_of, size_of};
use jni_sys::{jbyteArray, jint, jlong, jlongArray};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_make(
    env: Env,
    _: Class,
    address: jlong,
    proxy: jlong,
    hop: jbyteArray,
    hop_port: jint,
) -> jlong {
    env.guard(|| {
        let Ok(hop_port) = u16::try_from(hop_port) else {
            return Err(Fail::Status(Status::E_INVALID_PORT.0, core::ptr::null_mut()));
        };
        let hop = ips_of(env, hop);
        let hop = hop.first().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: held handles, a live address or NULL, outputs of our own.
        make(|out, err| unsafe { byway_route_new(handle(address), handle(proxy), hop, hop_port, out, err) })
    })
}

/// The route's record as a selection's buffer holds it: the struct, texts as offsets, then the texts.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_record(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let route: *const byway_route = handle(self_);
        let (mut hop, mut hop_port) = (NO_IP, 0);
        let (mut name, mut target, mut target_port) = (NO_TEXT, NO_IP, 0);
        let mut proxy = core::ptr::null_mut();
        // SAFETY: a held handle, which lends the name; outputs of our own.
        unsafe {
            check(byway_route_hop(route, &mut hop, &mut hop_port))?;
            check(byway_route_target(route, &mut name, &mut target, &mut target_port))?;
            call(|err| byway_route_proxy(route, &mut proxy, err))?;
        }
        let mut proxy_host = NO_TEXT;
        if !proxy.is_null() {
            // SAFETY: a reference of our own, which lends its host until it goes below.
            unsafe { byway_proxy_host(proxy, &mut proxy_host) };
        }
        // SAFETY: a held handle.
        let (kind, flags) = unsafe { (byway_route_proxy_kind(route), byway_route_flags(route)) };
        let size = size_of::<byway_route_record>();
        let mut bytes = vec![0; size];
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        put(offset_of!(byway_route_record, hop_ip), &pack(&[hop]));
        if target.family != 0 && (target.bytes != hop.bytes || target.family != hop.family) {
            put(offset_of!(byway_route_record, target_ip), &pack(&[target]));
        }
        put(offset_of!(byway_route_record, hop_port), &hop_port.to_ne_bytes());
        put(offset_of!(byway_route_record, target_port), &target_port.to_ne_bytes());
        put(offset_of!(byway_route_record, proxy_kind), &kind.to_ne_bytes());
        put(offset_of!(byway_route_record, flags), &flags.to_ne_bytes());
        put(offset_of!(byway_route_record, host), &size.to_ne_bytes());
        put(offset_of!(byway_route_record, host) + 8, &name.len.to_ne_bytes());
        put(offset_of!(byway_route_record, proxy_host), &(size + name.len).to_ne_bytes());
        put(offset_of!(byway_route_record, proxy_host) + 8, &proxy_host.len.to_ne_bytes());
        bytes.extend_from_slice(bytes_of(&name));
        bytes.extend_from_slice(bytes_of(&proxy_host));
        // SAFETY: our own reference; NULL is fine.
        unsafe { byway_proxy_release(proxy) };
        env.new_bytes(&bytes)
    })
}

/// `byway_ip` and port of OkHttp's `socketAddress`.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_socketAddress(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let (mut ip, mut port) = (NO_IP, 0);
        // SAFETY: a held handle, outputs of our own.
        check(unsafe { byway_route_socket_address(handle(self_), &mut ip, &mut port) })?;
        let mut bytes = pack(&[ip]);
        bytes.extend_from_slice(&port.to_ne_bytes());
        env.new_bytes(&bytes)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_proxy(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_route_proxy(handle(self_), out, err) }))
}

/// Port of the service record, or -1 when the route has none.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_servicePort(env: Env, _: Class, self_: jlong) -> jint {
    env.guard(|| {
        let (mut ech, mut port) = (NO_TEXT, 0);
        // SAFETY: a held handle, outputs of our own.
        let status = unsafe { byway_route_service(handle(self_), &mut ech, &mut port) };
        if status == Status::E_NOT_FOUND.0 {
            return Ok(-1);
        }
        check(status)?;
        Ok(port.into())
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_serviceEch(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let (mut ech, mut port) = (NO_TEXT, 0);
        // SAFETY: a held handle, which lends the text.
        check(unsafe { byway_route_service(handle(self_), &mut ech, &mut port) })?;
        env.lent(ech)
    })
}

/// Every address hint of the service record.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_serviceHints(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let (mut hints, mut total) = (Vec::new(), 0);
        loop {
            // SAFETY: a held handle, an array of that many addresses, an output of our own.
            check(unsafe {
                byway_route_service_hints(
                    handle(self_),
                    hints.as_mut_ptr(),
                    size_of::<byway_ip>(),
                    hints.len(),
                    &mut total,
                )
            })?;
            if total <= hints.len() {
                return env.new_bytes(&pack(&hints));
            }
            hints.resize(total, NO_IP);
        }
    })
}

/// One protocol of the service record; null past the end.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_serviceAlpnAt(
    env: Env,
    _: Class,
    self_: jlong,
    index: jint,
) -> jbyteArray {
    env.guard(|| {
        let mut alpn = NO_TEXT;
        // SAFETY: a held handle, which lends the text.
        let status = unsafe { byway_route_service_alpn_at(handle(self_), index as usize, &mut alpn) };
        if status != 0 {
            return Ok(core::ptr::null_mut());
        }
        env.lent(alpn)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_equals(env: Env, _: Class, self_: jlong, other: jlong) -> bool {
    // SAFETY: two held handles.
    env.guard(|| Ok(unsafe { byway_route_equals(handle(self_), handle(other)) } != 0))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_hash(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_route_hash(handle(self_)) } as jlong))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_text(env: Env, _: Class, self_: jlong) -> jbyteArray {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| env.take_text(|out, err| unsafe { byway_route_text(handle(self_), out, err) }))
}

/// 0 when a connection over this route serves `wanted` too, else the reason.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_coalesces(
    env: Env,
    _: Class,
    self_: jlong,
    wanted: jlong,
    routes: jlongArray,
    peer_flags: jint,
) -> jint {
    env.guard(|| {
        let routes: Vec<*const byway_route> =
            env.longs(routes).into_iter().map(|route| handle::<byway_route>(route).cast_const()).collect();
        let mut peer = MaybeUninit::<byway_peer>::zeroed();
        // SAFETY: plain numbers, for which zero is fine.
        let peer = unsafe { peer.assume_init_mut() };
        peer.struct_size = size_of::<byway_peer>();
        peer.flags = peer_flags as u32;
        let mut why_not = 0;
        // SAFETY: held handles, live arrays, outputs of our own.
        call(|err| unsafe {
            byway_route_coalesces(
                handle(self_),
                handle(wanted),
                routes.as_ptr(),
                routes.len(),
                peer,
                &mut why_not,
                err,
            )
        })?;
        Ok(why_not)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Route_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_route_release(handle(self_)) };
}
