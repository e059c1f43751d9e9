//! Natives of `io.byway.ProxySelector` and `io.byway.ScriptRequest`: scripts, and the system's settings, which may name one.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, address, call, check, handle, make, str_of};
use crate::errors::Fail;
use crate::host::ips_of;
use byway::Status;
use byway::ffi::address::byway_ip;
use byway::ffi::call::byway_call;
use byway::ffi::proxy_script::{
    byway_pac_callbacks, byway_pac_options, byway_pac_options_init, byway_proxy_selector_new_pac,
    byway_proxy_selector_script_failed, byway_proxy_selector_script_url, byway_proxy_selector_set_script,
};
use byway::ffi::proxy_selector::{
    byway_proxy_selector, byway_proxy_selector_release, byway_proxy_selector_retain,
};
use byway::ffi::proxy_system::{
    byway_proxy_selector_new_system, byway_proxy_selector_set_system, byway_system_options,
    byway_system_options_init,
};
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, size_of};
use core::ptr;
use jni_sys::{jbyteArray, jint, jintArray, jlong, jlongArray, jobject, jobjectArray, jvalue};

pub static FETCH: StaticMethod = StaticMethod::new(
    c"io/byway/ScriptRequest$Callbacks",
    c"fetch",
    c"(Lio/byway/ScriptRequest$Fetcher;J[B)I",
);

unsafe extern "C-unwind" fn fetch(
    user_data: *mut c_void,
    selector: *mut byway_proxy_selector,
    url: *const c_char,
    url_len: usize,
    _context: *const byway_call,
) -> i32 {
    let asked = callback::enter(|env| {
        // SAFETY: the engine lends all of these until this returns.
        unsafe {
            let url = if url_len == 0 { &[] } else { core::slice::from_raw_parts(url.cast(), url_len) };
            let url = env.new_bytes(url).ok()?;
            Some(FETCH.call_status(
                env,
                &[Target::of(user_data), jvalue { j: address(selector) }, jvalue { l: url }],
            ))
        }
    });
    asked.flatten().unwrap_or(Status::E_RESOURCES.0)
}

fn fetching(env: Env, fetcher: jobject) -> Result<Option<byway_pac_callbacks>, Fail> {
    if fetcher.is_null() {
        return Ok(None);
    }
    Ok(Some(byway_pac_callbacks {
        struct_size: size_of::<byway_pac_callbacks>(),
        user_data: Target::register(env, fetcher).ok_or(Fail::Thrown)?,
        destroy: Some(callback::destroy),
        fetch: Some(fetch),
    }))
}

/// Elements of an array of byte arrays; null is none.
fn texts(env: Env, array: jobjectArray) -> Vec<Option<Vec<u8>>> {
    (0..env.length(array))
        .map(|i| {
            // SAFETY: inside the array; the local reference goes with the native.
            let text = unsafe { (env.table().v1_1.GetObjectArrayElement)(env.raw(), array, i as jint) };
            (!text.is_null()).then(|| env.bytes(text))
        })
        .collect()
}

/// `byway_pac_options`, and what it borrows.
struct Pac {
    raw: byway_pac_options,
    _texts: Vec<Option<Vec<u8>>>,
    _addresses: Vec<byway_ip>,
}

impl Pac {
    /// `parts`: URL and source, of which null is none; `numbers`: the members behind the addresses, in their order.
    fn of(env: Env, parts: jobjectArray, dns: jlong, addresses: jbyteArray, numbers: jlongArray) -> Pac {
        let mut raw = MaybeUninit::<byway_pac_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut raw = unsafe {
            byway_pac_options_init(raw.as_mut_ptr());
            raw.assume_init()
        };
        let (texts, addresses, numbers) = (texts(env, parts), ips_of(env, addresses), env.longs(numbers));
        for (member, text) in [&mut raw.url, &mut raw.source].into_iter().zip(&texts) {
            if let Some(text) = text {
                *member = str_of(text);
            }
        }
        raw.dns = handle(dns);
        if !addresses.is_empty() {
            raw.my_addresses = addresses.as_ptr();
            raw.my_addresses_len = addresses.len();
        }
        let number = |i: usize| numbers.get(i).copied().unwrap_or(0);
        raw.refresh_ms = number(0) as u64;
        raw.memory_limit = number(1) as u64;
        raw.time_limit_ms = number(2) as u32;
        raw.names_limit = number(3) as u32;
        raw.utc_offset_minutes = number(4) as i32;
        raw.flags = number(5) as u32;
        Pac { raw, _texts: texts, _addresses: addresses }
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makePac(
    env: Env,
    _: Class,
    engine: jlong,
    parts: jobjectArray,
    dns: jlong,
    addresses: jbyteArray,
    numbers: jlongArray,
    fetcher: jobject,
) -> jlong {
    env.guard(|| {
        let pac = Pac::of(env, parts, dns, addresses, numbers);
        let callbacks = fetching(env, fetcher)?;
        let callbacks = callbacks.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: held handles, live options and set, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_selector_new_pac(handle(engine), &pac.raw, callbacks, out, err)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_setScript(
    env: Env,
    _: Class,
    self_: jlong,
    source: jbyteArray,
    charset: jbyteArray,
) {
    env.guard(|| {
        let (source, name) = (env.bytes(source), env.bytes(charset));
        let charset = if charset.is_null() { ptr::null() } else { name.as_ptr().cast() };
        // SAFETY: a held handle, live bytes.
        call(|err| unsafe {
            byway_proxy_selector_set_script(
                handle(self_),
                source.as_ptr().cast(),
                source.len(),
                charset,
                name.len(),
                err,
            )
        })?;
        Ok(())
    });
}

/// Null when there is no script.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_scriptUrl(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let mut none = false;
        // SAFETY: a held handle, outputs of our own.
        let url = env.take_text(|out, err| unsafe {
            let status = byway_proxy_selector_script_url(handle(self_), out, err);
            none = status == Status::DONE.0;
            status
        })?;
        Ok(if none { ptr::null_mut() } else { url })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ScriptRequest_scriptFailed(
    env: Env,
    _: Class,
    selector: jlong,
    status: jint,
    host_code: jlong,
    message: jbyteArray,
) {
    env.guard(|| {
        let message = env.bytes(message);
        // SAFETY: a held handle, live bytes.
        check(unsafe {
            byway_proxy_selector_script_failed(
                handle(selector),
                status,
                host_code,
                message.as_ptr().cast(),
                message.len(),
            )
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ScriptRequest_retain(_: Env, _: Class, selector: jlong) -> jlong {
    // SAFETY: a handle that the running callback lends.
    address(unsafe { byway_proxy_selector_retain(handle(selector)) })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ScriptRequest_release(_: Env, _: Class, selector: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_proxy_selector_release(handle(selector)) };
}

/// `byway_system_options`, and what it borrows.
struct System {
    raw: byway_system_options,
    _texts: Vec<Option<Vec<u8>>>,
    _variables: Option<(crate::env::Texts, crate::env::Texts)>,
}

impl System {
    /// `parts`: the texts from `desktop` on, of which null is none; `names` null: the process's own environment.
    fn of(
        env: Env,
        names: (jbyteArray, jintArray),
        values: (jbyteArray, jintArray),
        parts: jobjectArray,
    ) -> System {
        let mut raw = MaybeUninit::<byway_system_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut raw = unsafe {
            byway_system_options_init(raw.as_mut_ptr());
            raw.assume_init()
        };
        let texts = texts(env, parts);
        let members = [
            &mut raw.desktop,
            &mut raw.home,
            &mut raw.config_home,
            &mut raw.root,
            &mut raw.dconf,
            &mut raw.keyfile,
            &mut raw.kioslaverc,
            &mut raw.sysconfig,
        ];
        for (member, text) in members.into_iter().zip(&texts) {
            if let Some(text) = text {
                *member = str_of(text);
            }
        }
        let variables =
            (!names.0.is_null()).then(|| (env.texts(names.0, names.1), env.texts(values.0, values.1)));
        if let Some((names, values)) = &variables {
            raw.names = names.views.as_ptr();
            raw.values = values.views.as_ptr();
            raw.n = names.views.len().min(values.views.len());
        }
        System { raw, _texts: texts, _variables: variables }
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_makeSystem(
    env: Env,
    _: Class,
    engine: jlong,
    names: jbyteArray,
    name_lengths: jintArray,
    values: jbyteArray,
    value_lengths: jintArray,
    parts: jobjectArray,
    dns: jlong,
    addresses: jbyteArray,
    numbers: jlongArray,
    fetcher: jobject,
) -> jlong {
    env.guard(|| {
        let mut system = System::of(env, (names, name_lengths), (values, value_lengths), parts);
        // How a script that the settings name is run; it has no text of its own here.
        let pac = (!numbers.is_null()).then(|| Pac::of(env, parts, dns, addresses, numbers));
        let pac = pac.map(|mut pac| {
            (pac.raw.url, pac.raw.source) = (crate::env::NO_TEXT, crate::env::NO_TEXT);
            pac
        });
        system.raw.pac = pac.as_ref().map_or(ptr::null(), |pac| &pac.raw);
        let callbacks = fetching(env, fetcher)?;
        let callbacks = callbacks.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: held handles, live options and set, outputs of our own.
        make(|out, err| unsafe {
            byway_proxy_selector_new_system(handle(engine), &system.raw, callbacks, out, err)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_ProxySelector_setSystem(
    env: Env,
    _: Class,
    self_: jlong,
    names: jbyteArray,
    name_lengths: jintArray,
    values: jbyteArray,
    value_lengths: jintArray,
    parts: jobjectArray,
) {
    env.guard(|| {
        let system = System::of(env, (names, name_lengths), (values, value_lengths), parts);
        // SAFETY: a held handle, live options.
        call(|err| unsafe { byway_proxy_selector_set_system(handle(self_), &system.raw, err) })?;
        Ok(())
    });
}
