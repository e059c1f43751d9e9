//! Natives of `io.byway.Selection`: all its routes in one crossing.

use crate::env::{Class, Env, address, bytes_of, check, handle};
use crate::errors::Fail;
use byway::ffi::arguments::byway_str;
use byway::ffi::route::{byway_route_record, byway_route_retain};
use byway::ffi::selection::{
    byway_selection, byway_selection_at, byway_selection_free, byway_selection_records,
};
use core::ffi::c_char;
use core::mem::size_of;
use core::ptr;
use jni_sys::{jint, jlong};

/// What stands in front of the records: their number, and the bytes that all of it takes.
const HEAD: usize = 16;

/// Memory that Java reads without a crossing: head, records, texts. In a record a text's address is its offset here.
pub struct Buffer {
    start: *mut u8,
    capacity: usize,
}

impl Buffer {
    /// Memory of a direct buffer that Java holds for the length of the call and no other thread uses.
    pub fn of(start: jlong, capacity: jint) -> Buffer {
        Buffer { start: handle(start), capacity: usize::try_from(capacity).unwrap_or(0) }
    }

    /// Where records go.
    pub fn records(&self) -> *mut byway_route_record {
        self.start.wrapping_add(HEAD).cast()
    }

    /// How many fit.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(HEAD) / size_of::<byway_route_record>()
    }

    /// Behind `total` records that byway wrote: brings their texts in and writes the head. When the buffer is too small
    /// the head says how much is needed.
    pub fn finish(&self, total: usize) {
        let stride = size_of::<byway_route_record>();
        let mut end = HEAD + total * stride;
        let mut fits = total <= self.room();
        if fits {
            let mut previous: [(byway_str, usize); 2] = [(byway_str { data: ptr::null(), len: 0 }, 0); 2];
            for i in 0..total {
                // SAFETY: record `i` lies inside the buffer and was written; the buffer is aligned as malloc aligns.
                let record = unsafe { &mut *self.records().add(i) };
                for (text, seen) in [&mut record.host, &mut record.proxy_host].into_iter().zip(&mut previous)
                {
                    if text.data != seen.0.data || text.len != seen.0.len {
                        *seen = (*text, end);
                        end += text.len;
                        if end <= self.capacity {
                            let content = bytes_of(text);
                            // SAFETY: the text ends inside the buffer, behind all records.
                            unsafe {
                                ptr::copy_nonoverlapping(
                                    content.as_ptr(),
                                    self.start.add(seen.1),
                                    content.len(),
                                );
                            }
                        }
                    }
                    text.data = seen.1 as *const c_char;
                }
            }
            fits = end <= self.capacity;
        } else {
            // Room for the longest texts there are.
            end += total * 512;
        }
        let count = if fits { total as i32 } else { -1 };
        // SAFETY: the head lies inside the buffer.
        unsafe {
            self.start.cast::<i32>().write(count);
            self.start.cast::<i32>().add(1).write(i32::try_from(end).unwrap_or(i32::MAX));
        }
    }
}

/// Writes a selection's routes.
pub fn write(selection: *const byway_selection, buffer: &Buffer) -> Result<(), Fail> {
    let mut total = 0;
    // SAFETY: a held handle, an array of that many records.
    check(unsafe {
        byway_selection_records(
            selection,
            buffer.records(),
            size_of::<byway_route_record>(),
            buffer.room(),
            &mut total,
        )
    })?;
    buffer.finish(total);
    Ok(())
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selection_records(
    env: Env,
    _: Class,
    self_: jlong,
    buffer: jlong,
    capacity: jint,
) {
    env.guard(|| write(handle(self_), &Buffer::of(buffer, capacity)));
}

/// A reference of its own to one route; 0 past the end.
#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selection_at(env: Env, _: Class, self_: jlong, index: jint) -> jlong {
    env.guard(|| {
        // SAFETY: a held handle, which lends the route.
        let route = unsafe { byway_selection_at(handle(self_), index as usize) };
        // SAFETY: lent by the selection; NULL stays NULL.
        Ok(address(unsafe { byway_route_retain(route) }))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_io_byway_Selection_free(_: Env, _: Class, self_: jlong) {
    // SAFETY: the Java object's own handle, ended once.
    unsafe { byway_selection_free(handle(self_)) };
}
