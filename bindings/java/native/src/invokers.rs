//! Natives of `io.byway.Invokers` and `io.byway.InvokersBuilder`.

use crate::callback::{self, StaticMethod, Target};
use crate::env::{Class, Env, call, check, handle, make};
use crate::errors::Fail;
use byway::ffi::invokers::{
    BYWAY_INVOKERS_KEEP_URLS, byway_invokers_builder_add, byway_invokers_builder_add_many,
    byway_invokers_builder_finish, byway_invokers_builder_free, byway_invokers_builder_new,
    byway_invokers_builder_remove, byway_invokers_builder_set, byway_invokers_callbacks,
    byway_invokers_generation, byway_invokers_len, byway_invokers_new, byway_invokers_release,
    byway_invokers_row_of, byway_invokers_tag, byway_invokers_url,
};
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use jni_sys::{jbyteArray, jint, jintArray, jlong, jlongArray, jobject};

pub static ENDED: StaticMethod =
    StaticMethod::new(c"io/byway/Invokers$Callbacks", c"ended", c"(Ljava/lang/Object;)V");

/// Member `destroy` of a list's set: tells the object, then lets go of it.
unsafe extern "C-unwind" fn ended(user_data: *mut c_void) {
    // SAFETY: the engine calls this once, with what `register` gave.
    unsafe {
        callback::enter(|env| ENDED.call_void(env, &[Target::of(user_data)]));
        callback::destroy(user_data);
    }
}

/// The set for an object that wants to be told, NULL for none.
struct Ending(Option<byway_invokers_callbacks>);

impl Ending {
    fn of(env: Env, on_end: jobject) -> Result<Ending, Fail> {
        if on_end.is_null() {
            return Ok(Ending(None));
        }
        Ok(Ending(Some(byway_invokers_callbacks {
            struct_size: size_of::<byway_invokers_callbacks>(),
            user_data: Target::register(env, on_end).ok_or(Fail::Thrown)?,
            destroy: Some(ended),
        })))
    }

    fn as_ptr(&self) -> *const byway_invokers_callbacks {
        self.0.as_ref().map_or(ptr::null(), ptr::from_ref)
    }
}

fn flags(keep_urls: bool) -> u32 {
    if keep_urls { BYWAY_INVOKERS_KEEP_URLS } else { 0 }
}

/// Tags as the engine takes them; NULL for none given.
fn tags(env: Env, array: jlongArray) -> (Vec<jlong>, bool) {
    (env.longs(array), !array.is_null())
}

fn at((tags, given): &(Vec<jlong>, bool)) -> *const u64 {
    if *given { tags.as_ptr().cast() } else { ptr::null() }
}

/// `numbers` is null or as long as there are texts.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invokers_make(
    env: Env,
    _: Class,
    engine: jlong,
    urls: jbyteArray,
    lengths: jintArray,
    numbers: jlongArray,
    keep_urls: bool,
    on_end: jobject,
) -> jlong {
    env.guard(|| {
        let (urls, numbers) = (env.texts(urls, lengths), tags(env, numbers));
        let ending = Ending::of(env, on_end)?;
        // SAFETY: a held handle, live texts, as many numbers, outputs of our own.
        make(|out, err| unsafe {
            byway_invokers_new(
                handle(engine),
                urls.views.as_ptr(),
                at(&numbers),
                urls.views.len(),
                flags(keep_urls),
                ending.as_ptr(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invokers_size(env: Env, _: Class, self_: jlong) -> jint {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_invokers_len(handle(self_)) } as jint))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invokers_tag(env: Env, _: Class, self_: jlong, row: jint) -> jlong {
    env.guard(|| {
        let mut tag = 0;
        // SAFETY: a held handle, an output of our own.
        check(unsafe { byway_invokers_tag(handle(self_), row as usize, &mut tag) })?;
        Ok(tag as jlong)
    })
}

/// Every tag, in the order of the rows.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invokers_tags(env: Env, _: Class, self_: jlong) -> jlongArray {
    env.guard(|| {
        // SAFETY: a held handle.
        let len = unsafe { byway_invokers_len(handle(self_)) };
        let mut tags = vec![0_u64; len];
        for (row, tag) in tags.iter_mut().enumerate() {
            // SAFETY: a held handle, a place of our own.
            check(unsafe { byway_invokers_tag(handle(self_), row, tag) })?;
        }
        env.new_unsigned(&tags)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invokers_url(env: Env, _: Class, self_: jlong, row: jint) -> jbyteArray {
    env.guard(|| {
        // SAFETY: a held handle, outputs of our own.
        env.take_text(|out, err| unsafe { byway_invokers_url(handle(self_), row as usize, out, err) })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invokers_rowOf(env: Env, _: Class, self_: jlong, tag: jlong) -> jint {
    env.guard(|| {
        let mut row = 0;
        // SAFETY: a held handle, an output of our own.
        check(unsafe { byway_invokers_row_of(handle(self_), tag as u64, &mut row) })?;
        Ok(row as jint)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invokers_generation(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle.
    env.guard(|| Ok(unsafe { byway_invokers_generation(handle(self_)) } as jlong))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Invokers_release(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own reference, given back once.
    unsafe { byway_invokers_release(handle(self_)) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_InvokersBuilder_make(
    env: Env,
    _: Class,
    engine: jlong,
    base: jlong,
    keep_urls: bool,
    on_end: jobject,
) -> jlong {
    env.guard(|| {
        let ending = Ending::of(env, on_end)?;
        // SAFETY: held handles, outputs of our own.
        make(|out, err| unsafe {
            byway_invokers_builder_new(
                handle(engine),
                handle(base),
                flags(keep_urls),
                ending.as_ptr(),
                out,
                err,
            )
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_InvokersBuilder_add(
    env: Env,
    _: Class,
    self_: jlong,
    url: jbyteArray,
    tag: jlong,
) {
    env.guard(|| {
        let url = env.bytes(url);
        // SAFETY: a held handle, live bytes.
        call(|err| unsafe {
            byway_invokers_builder_add(handle(self_), url.as_ptr().cast(), url.len(), tag as u64, err)
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_InvokersBuilder_addMany(
    env: Env,
    _: Class,
    self_: jlong,
    urls: jbyteArray,
    lengths: jintArray,
    numbers: jlongArray,
) {
    env.guard(|| {
        let (urls, numbers) = (env.texts(urls, lengths), tags(env, numbers));
        // SAFETY: a held handle, live texts, as many numbers.
        call(|err| unsafe {
            byway_invokers_builder_add_many(
                handle(self_),
                urls.views.as_ptr(),
                at(&numbers),
                urls.views.len(),
                err,
            )
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_InvokersBuilder_set(
    env: Env,
    _: Class,
    self_: jlong,
    url: jbyteArray,
    tag: jlong,
) {
    env.guard(|| {
        let url = env.bytes(url);
        // SAFETY: a held handle, live bytes.
        call(|err| unsafe {
            byway_invokers_builder_set(handle(self_), url.as_ptr().cast(), url.len(), tag as u64, err)
        })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_InvokersBuilder_remove(env: Env, _: Class, self_: jlong, tag: jlong) {
    env.guard(|| {
        // SAFETY: a held handle.
        call(|err| unsafe { byway_invokers_builder_remove(handle(self_), tag as u64, err) })?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_InvokersBuilder_finish(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: a held handle, outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_invokers_builder_finish(handle(self_), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_InvokersBuilder_free(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own handle, ended once.
    unsafe { byway_invokers_builder_free(handle(self_)) };
}
