//! Natives of `io.byway.Choice` and of a session's view, which shows a choice that is lent.

use crate::env::{Class, Env, NO_TEXT, bytes_of, call, check, handle, make};
use crate::errors::Fail;
use byway::ffi::choice::{
    byway_choice, byway_choice_emptied_by, byway_choice_free, byway_choice_generation, byway_choice_invokers,
    byway_choice_len, byway_choice_tag_at, byway_choice_tags,
};
use byway::ffi::text::{byway_text_free, byway_text_str};
use core::ptr;
use jni_sys::{jbyteArray, jint, jlong, jlongArray};

/// Reads all tags of a choice: few of them cost no allocation.
pub fn read_tags<T>(
    choice: *const byway_choice,
    body: impl FnOnce(&[u64]) -> Result<T, Fail>,
) -> Result<T, Fail> {
    let mut few = [0_u64; 64];
    let mut total = 0;
    // SAFETY: a live choice, room of our own.
    check(unsafe { byway_choice_tags(choice, few.as_mut_ptr(), few.len(), &mut total) })?;
    if let Some(tags) = few.get(..total) {
        return body(tags);
    }
    let mut many = vec![0_u64; total];
    // SAFETY: as above.
    check(unsafe { byway_choice_tags(choice, many.as_mut_ptr(), many.len(), &mut total) })?;
    body(&many)
}

/// Writes as many of them as fit into Java's array, and says how many there are.
pub fn tags_into(env: Env, choice: *const byway_choice, into: jlongArray) -> Result<jint, Fail> {
    read_tags(choice, |tags| {
        let room = env.length(into);
        env.put_unsigned(into, tags.get(..room).unwrap_or(tags));
        Ok(tags.len() as jint)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Choice_size(env: Env, _: Class, self_: jlong) -> jint {
    // SAFETY: a held handle, or one that a held session lends.
    env.guard(|| Ok(unsafe { byway_choice_len(handle(self_)) } as jint))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Choice_tag(env: Env, _: Class, self_: jlong, index: jint) -> jlong {
    env.guard(|| {
        let mut tag = 0;
        // SAFETY: as above; an output of our own.
        check(unsafe { byway_choice_tag_at(handle(self_), index as usize, &mut tag) })?;
        Ok(tag as jlong)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Choice_tags(env: Env, _: Class, self_: jlong) -> jlongArray {
    env.guard(|| read_tags(handle(self_), |tags| env.new_unsigned(tags)))
}

/// Copies as many tags as fit into an array of the caller's, and says how many there are.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Choice_tagsInto(env: Env, _: Class, self_: jlong, into: jlongArray) -> jint {
    env.guard(|| tags_into(env, handle(self_), into))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Choice_generation(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: as above.
    env.guard(|| Ok(unsafe { byway_choice_generation(handle(self_)) } as jlong))
}

/// Null when something is left, or nothing was there.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Choice_emptiedBy(env: Env, _: Class, self_: jlong) -> jbyteArray {
    env.guard(|| {
        let mut text = ptr::null_mut();
        // SAFETY: as above, outputs of our own.
        call(|err| unsafe { byway_choice_emptied_by(handle(self_), &mut text, err) })?;
        if text.is_null() {
            return Ok(ptr::null_mut());
        }
        let mut view = NO_TEXT;
        // SAFETY: the text is ours; its content is copied before it goes.
        unsafe {
            byway_text_str(text, &mut view);
            let name = env.new_bytes(bytes_of(&view));
            byway_text_free(text);
            name
        }
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Choice_invokers(env: Env, _: Class, self_: jlong) -> jlong {
    // SAFETY: as above, outputs of our own.
    env.guard(|| make(|out, err| unsafe { byway_choice_invokers(handle(self_), out, err) }))
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Choice_free(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own handle, ended once.
    unsafe { byway_choice_free(handle(self_)) };
}
