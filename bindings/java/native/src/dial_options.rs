//! From what `io.byway.Dial.Options` packs to `byway_dial_options`.

use crate::env::{Env, Texts, str_of};
use byway::ffi::dial_options::{byway_dial_options, byway_dial_options_init, byway_header};
use core::mem::MaybeUninit;
use jni_sys::{jbyteArray, jint, jintArray, jlong, jobjectArray};

/// The struct, and what it borrows.
pub struct Options {
    raw: byway_dial_options,
    _texts: Vec<Option<Vec<u8>>>,
    _names: Texts,
    _values: Texts,
    _headers: Vec<byway_header>,
}

impl Options {
    /// The struct, valid as long as this.
    pub fn raw(&self) -> &byway_dial_options {
        &self.raw
    }

    /// `numbers` has the members behind `tag` in their order, `texts` the source addresses, device and user agent, of
    /// which null is none; headers come as [`Env::texts`] reads them.
    pub fn of(
        env: Env,
        tag: jlong,
        numbers: jintArray,
        texts: jobjectArray,
        names: (jbyteArray, jintArray),
        values: (jbyteArray, jintArray),
    ) -> Options {
        let mut options = MaybeUninit::<byway_dial_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut raw = unsafe {
            byway_dial_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        raw.tag = tag as u64;
        let numbers = env.ints(numbers);
        let number = |i: usize| numbers.get(i).copied().unwrap_or(0);
        let unsigned: [(&mut u32, usize); 16] = [
            (&mut raw.flags, 0),
            (&mut raw.attempt_delay_ms, 1),
            (&mut raw.resolution_delay_ms, 2),
            (&mut raw.attempt_timeout_ms, 3),
            (&mut raw.ready_timeout_ms, 4),
            (&mut raw.overall_timeout_ms, 5),
            (&mut raw.ready_extend_ms, 6),
            (&mut raw.max_in_flight, 7),
            (&mut raw.first_family_count, 12),
            (&mut raw.max_tunnel_attempts, 13),
            (&mut raw.max_line, 14),
            (&mut raw.max_header, 15),
            (&mut raw.max_drain, 16),
            (&mut raw.keepalive_s, 17),
            (&mut raw.user_timeout_ms, 18),
            (&mut raw.mark, 19),
        ];
        for (member, i) in unsigned {
            *member = number(i) as u32;
        }
        raw.cap_policy = number(8);
        raw.on_failure = number(9);
        raw.race_until = number(10);
        raw.first_family = number(11);
        let texts: Vec<Option<Vec<u8>>> = (0..4).map(|i| element(env, texts, i)).collect();
        let mut members = [&mut raw.source_v4, &mut raw.source_v6, &mut raw.device, &mut raw.user_agent];
        for (member, text) in members.iter_mut().zip(&texts) {
            if let Some(text) = text {
                **member = str_of(text);
            }
        }
        let (names, values) = (env.texts(names.0, names.1), env.texts(values.0, values.1));
        let headers: Vec<byway_header> = names
            .views
            .iter()
            .zip(&values.views)
            .map(|(&name, &value)| byway_header { name, value })
            .collect();
        raw.headers = headers.as_ptr();
        raw.header_count = headers.len();
        Options { raw, _texts: texts, _names: names, _values: values, _headers: headers }
    }
}

fn element(env: Env, array: jobjectArray, i: jint) -> Option<Vec<u8>> {
    // SAFETY: an array of at least four byte arrays; the local reference goes with the native.
    let text = unsafe { (env.table().v1_1.GetObjectArrayElement)(env.raw(), array, i) };
    (!text.is_null()).then(|| env.bytes(text))
}
