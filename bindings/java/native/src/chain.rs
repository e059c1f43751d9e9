//! Natives of `io.byway.Chain`: its life and its calls. What it says about them is in `chain_report`.

use crate::choice::read_tags;
use crate::env::{Class, Env, call, check, handle, make};
use crate::errors::Fail;
use crate::invocation::{Asked, pointers};
use byway::ffi::chain::{
    byway_call_result, byway_call_result_init, byway_chain_add_router, byway_chain_generation,
    byway_chain_intern_method, byway_chain_invokers, byway_chain_new, byway_chain_options,
    byway_chain_options_init, byway_chain_pick, byway_chain_pick_end, byway_chain_pick_end_with,
    byway_chain_release, byway_chain_route, byway_chain_route_many, byway_chain_route_tags,
    byway_chain_set_invokers, byway_chain_set_rule_urls, byway_pick_options, byway_pick_options_init,
    byway_picked,
};
use byway::ffi::error::byway_error;
use core::mem::MaybeUninit;
use core::ptr;
use jni_sys::{jbyteArray, jdouble, jint, jintArray, jlong, jlongArray};

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_make(
    env: Env,
    _: Class,
    engine: jlong,
    consumer_url: jbyteArray,
    dialect: jint,
    flags: jint,
    memo_bytes: jlong,
) -> jlong {
    env.guard(|| {
        let url = env.bytes(consumer_url);
        let mut options = MaybeUninit::<byway_chain_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut options = unsafe {
            byway_chain_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        options.dialect = dialect;
        options.flags = flags as u32;
        options.memo_bytes = memo_bytes as u64;
        // SAFETY: a held handle, live bytes and options, outputs of our own.
        make(|out, err| unsafe {
            byway_chain_new(handle(engine), url.as_ptr().cast(), url.len(), &options, out, err)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_chain_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_setInvokers(
    env: Env,
    _: Class,
    self_: jlong,
    invokers: jlong,
) -> jlong {
    env.guard(|| {
        let mut generation = 0;
        // SAFETY: two held handles, an output of our own.
        call(|err| unsafe {
            byway_chain_set_invokers(handle(self_), handle(invokers), &mut generation, err)
        })?;
        Ok(generation as jlong)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_invokers(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_chain_invokers(handle(self_), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_internMethod(
    env: Env,
    _: Class,
    self_: jlong,
    name: jbyteArray,
) -> jint {
    env.guard(|| {
        let name = env.bytes(name);
        let mut id = 0;
        // SAFETY: a held handle, live bytes, an output of our own.
        call(|err| unsafe {
            byway_chain_intern_method(handle(self_), name.as_ptr().cast(), name.len(), &mut id, err)
        })?;
        Ok(id as jint)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_addRouter(env: Env, _: Class, self_: jlong, router: jlong) {
    env.guard(|| {
        // SAFETY: two held handles.
        call(|err| unsafe { byway_chain_add_router(handle(self_), handle(router), err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_setRuleUrls(
    env: Env,
    _: Class,
    self_: jlong,
    urls: jbyteArray,
    lengths: jintArray,
) {
    env.guard(|| {
        let urls = env.texts(urls, lengths);
        // SAFETY: a held handle, live texts.
        call(|err| unsafe {
            byway_chain_set_rule_urls(handle(self_), urls.views.as_ptr(), urls.views.len(), err)
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_route(
    env: Env,
    _: Class,
    self_: jlong,
    invocation: jlong,
    notes: jlong,
    len: jint,
) -> jlong {
    env.guard(|| {
        let invocation = Asked { invocation, notes, len }.ready()?;
        // SAFETY: a held handle, an invocation of this thread, outputs of our own.
        make(|out, err| unsafe { byway_chain_route(handle(self_), invocation, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_tags(
    env: Env,
    _: Class,
    self_: jlong,
    invocation: jlong,
    notes: jlong,
    len: jint,
) -> jlongArray {
    env.guard(|| {
        let invocation = Asked { invocation, notes, len }.ready()?;
        let mut few = [0_u64; 64];
        let mut total = 0;
        // SAFETY: a held handle, an invocation of this thread, room of our own.
        call(|err| unsafe {
            byway_chain_route_tags(
                handle(self_),
                invocation,
                few.as_mut_ptr(),
                few.len(),
                &mut total,
                ptr::null_mut(),
                err,
            )
        })?;
        if let Some(tags) = few.get(..total) {
            return env.new_unsigned(tags);
        }
        // One question, one answer: what did not fit is asked for as a whole.
        let mut choice = ptr::null_mut();
        // SAFETY: as above.
        call(|err| unsafe { byway_chain_route(handle(self_), invocation, &mut choice, err) })?;
        let tags = read_tags(choice, |tags| env.new_unsigned(tags));
        // SAFETY: ours; Java never sees it.
        unsafe { byway::ffi::choice::byway_choice_free(choice) };
        tags
    })
}

/// `tags` has `room` places for each of the `invocations`, `totals` one; returns the generation.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_routeMany(
    env: Env,
    _: Class,
    self_: jlong,
    invocations: jlongArray,
    tags: jlongArray,
    room: jint,
    totals: jlongArray,
) -> jlong {
    env.guard(|| {
        let asked = pointers(&env.longs(invocations));
        let room = room as usize;
        let (mut found, mut counts) = (vec![0_u64; asked.len() * room], vec![0_usize; asked.len()]);
        let mut generation = 0;
        // SAFETY: a held handle, invocations of this thread, room of our own.
        call(|err| unsafe {
            byway_chain_route_many(
                handle(self_),
                asked.as_ptr(),
                asked.len(),
                found.as_mut_ptr(),
                room,
                counts.as_mut_ptr(),
                &mut generation,
                err,
            )
        })?;
        env.put_unsigned(tags, &found);
        let counts: Vec<u64> = counts.into_iter().map(|count| count as u64).collect();
        env.put_unsigned(totals, &counts);
        Ok(generation as jlong)
    })
}

/// Pick options as Java gives them.
pub struct Wanted {
    options: Option<byway_pick_options>,
    _exclude: Vec<jlong>,
    _available: Vec<jlong>,
}

impl Wanted {
    /// `exclude` and `available` may be null; all zero is the default.
    pub fn of(
        env: Env,
        balance: jint,
        flags: jint,
        exclude: jlongArray,
        available: jlongArray,
        available_list: jlong,
    ) -> Wanted {
        if balance == 0 && flags == 0 && exclude.is_null() && available.is_null() {
            return Wanted { options: None, _exclude: Vec::new(), _available: Vec::new() };
        }
        let (excluded, bits) = (env.longs(exclude), env.longs(available));
        let mut options = MaybeUninit::<byway_pick_options>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut options = unsafe {
            byway_pick_options_init(options.as_mut_ptr());
            options.assume_init()
        };
        options.balance = balance;
        options.flags = flags as u32;
        if !exclude.is_null() {
            options.exclude = excluded.as_ptr().cast();
            options.exclude_count = excluded.len();
        }
        if !available.is_null() {
            options.available = bits.as_ptr().cast();
            options.available_words = bits.len();
            options.available_list = available_list as u64;
        }
        Wanted { options: Some(options), _exclude: excluded, _available: bits }
    }

    /// For a call, as long as this lives.
    pub fn options(&self) -> *const byway_pick_options {
        self.options.as_ref().map_or(ptr::null(), ptr::from_ref)
    }
}

/// Calls a function that picks, and writes tag, ticket, row and availability into Java's array.
pub fn give_picked(
    env: Env,
    to: jlongArray,
    function: impl FnOnce(*mut byway_picked, *mut *mut byway_error) -> i32,
) -> Result<(), Fail> {
    let mut picked = byway_picked { tag: 0, ticket: 0, row: 0, available: 0, reserved: 0 };
    call(|err| function(&mut picked, err))?;
    env.put_unsigned(to, &[picked.tag, picked.ticket, picked.row, picked.available as u64]);
    Ok(())
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_pick(
    env: Env,
    _: Class,
    self_: jlong,
    invocation: jlong,
    notes: jlong,
    len: jint,
    balance: jint,
    flags: jint,
    exclude: jlongArray,
    available: jlongArray,
    available_list: jlong,
    picked: jlongArray,
) {
    env.guard(|| {
        let invocation = Asked { invocation, notes, len }.ready()?;
        let wanted = Wanted::of(env, balance, flags, exclude, available, available_list);
        // SAFETY: a held handle, an invocation of this thread, live options, outputs of our own.
        give_picked(env, picked, |out, err| unsafe {
            byway_chain_pick(handle(self_), invocation, wanted.options(), out, err)
        })
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_pickEnd(
    env: Env,
    _: Class,
    self_: jlong,
    ticket: jlong,
    ok: bool,
    latency_ns: jlong,
) -> bool {
    env.guard(|| {
        // SAFETY: a held handle.
        let status =
            check(unsafe { byway_chain_pick_end(handle(self_), ticket as u64, i32::from(ok), latency_ns) })?;
        Ok(status == 0)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_pickEndWith(
    env: Env,
    _: Class,
    self_: jlong,
    ticket: jlong,
    ok: bool,
    latency_ns: jlong,
    report_time_ms: jlong,
    report_load: jdouble,
    report_latency_ms: jdouble,
) -> bool {
    env.guard(|| {
        let mut result = MaybeUninit::<byway_call_result>::uninit();
        // SAFETY: `_init` writes the whole struct.
        let mut result = unsafe {
            byway_call_result_init(result.as_mut_ptr());
            result.assume_init()
        };
        result.ok = i32::from(ok);
        result.latency_ns = latency_ns;
        result.has_report = 1;
        result.report_time_ms = report_time_ms;
        result.report_load = report_load;
        result.report_latency_ms = report_latency_ms;
        // SAFETY: a held handle, a live struct.
        let status =
            call(|err| unsafe { byway_chain_pick_end_with(handle(self_), ticket as u64, &result, err) })?;
        Ok(status == 0)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Chain_generation(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_chain_generation(handle(self_)) } as jlong))
}
