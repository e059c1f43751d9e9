//! Natives of `io.byway.Host` and `io.byway.Ip`.

use crate::env::{Class, Env, call};
use byway::ffi::address::byway_ip;
use byway::ffi::host::{
    byway_host_canonical, byway_host_is_literal, byway_ip_order, byway_ip_parse, byway_ip_text,
};
use core::mem::size_of;
use jni_sys::{jbyteArray, jint};

/// No address.
pub const NO_IP: byway_ip = byway_ip { bytes: [0; 16], scope_id: 0, family: 0, reserved: [0; 3] };

/// Addresses as Java packs them: `byway_ip` after `byway_ip`.
pub fn ips_of(env: Env, packed: jbyteArray) -> Vec<byway_ip> {
    let bytes = env.bytes(packed);
    bytes.chunks_exact(size_of::<byway_ip>()).map(ip_of).collect()
}

fn ip_of(chunk: &[u8]) -> byway_ip {
    let mut ip = NO_IP;
    let (address, rest) = chunk.split_at(16);
    ip.bytes.copy_from_slice(address);
    let mut scope = [0; 4];
    scope.copy_from_slice(rest.get(..4).unwrap_or(&[0; 4]));
    ip.scope_id = u32::from_ne_bytes(scope);
    ip.family = rest.get(4).copied().unwrap_or(0);
    ip
}

/// The other way round.
pub fn pack(ips: &[byway_ip]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(ips));
    for ip in ips {
        bytes.extend_from_slice(&ip.bytes);
        bytes.extend_from_slice(&ip.scope_id.to_ne_bytes());
        bytes.extend_from_slice(&[ip.family, 0, 0, 0]);
    }
    bytes
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Host_canonical(
    env: Env,
    _: Class,
    compat: jint,
    host: jbyteArray,
) -> jbyteArray {
    env.guard(|| {
        let host = env.bytes(host);
        // SAFETY: live bytes, outputs of our own.
        env.take_text(|out, err| unsafe {
            byway_host_canonical(compat, host.as_ptr().cast(), host.len(), out, err)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Host_isLiteral(env: Env, _: Class, compat: jint, host: jbyteArray) -> bool {
    env.guard(|| {
        let host = env.bytes(host);
        // SAFETY: live bytes.
        Ok(unsafe { byway_host_is_literal(compat, host.as_ptr().cast(), host.len()) } != 0)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Ip_parse(env: Env, _: Class, text: jbyteArray) -> jbyteArray {
    env.guard(|| {
        let text = env.bytes(text);
        let mut ip = NO_IP;
        // SAFETY: live bytes, an output of our own.
        call(|err| unsafe { byway_ip_parse(text.as_ptr().cast(), text.len(), &mut ip, err) })?;
        env.new_bytes(&pack(&[ip]))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Ip_text(env: Env, _: Class, packed: jbyteArray) -> jbyteArray {
    env.guard(|| {
        let ip = ips_of(env, packed).first().copied().unwrap_or(NO_IP);
        // SAFETY: a live address, outputs of our own.
        env.take_text(|out, err| unsafe { byway_ip_text(&ip, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Ip_order(
    env: Env,
    _: Class,
    packed: jbyteArray,
    first_family: jint,
    first_family_count: jint,
) -> jbyteArray {
    env.guard(|| {
        let mut ips = ips_of(env, packed);
        // SAFETY: a live array.
        call(|err| unsafe {
            byway_ip_order(ips.as_mut_ptr(), ips.len(), first_family, first_family_count as u32, err)
        })?;
        env.new_bytes(&pack(&ips))
    })
}
