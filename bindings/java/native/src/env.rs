//! What natives may ask of the JVM. Every method may be called while no exception is pending, which holds from the
//! entry of a native until one of them answers [`Fail::Thrown`].

use crate::errors::{self, Fail};
use byway::ffi::arguments::byway_str;
use byway::ffi::error::byway_error;
use byway::ffi::text::{byway_text, byway_text_free, byway_text_str};
use core::ffi::c_char;
use core::ptr;
use jni_sys::{
    JNIEnv, JNINativeInterface_, jarray, jbyteArray, jclass, jint, jintArray, jlong, jlongArray, jobject,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The class a static native belongs to; unused.
pub type Class = jclass;

/// One thread's way into the JVM, valid until the native returns.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Env(*mut JNIEnv);

/// What a native returns beside a pending exception; Java never sees it.
pub trait Blank {
    const BLANK: Self;
}

macro_rules! blank {
    ($($kind:ty = $value:expr;)*) => { $(impl Blank for $kind { const BLANK: Self = $value; })* };
}

blank! {
    () = ();
    bool = false;
    jint = 0;
    jlong = 0;
    jobject = ptr::null_mut();
}

/// Address of a handle that the Java object holds for the length of the call, 0 for none.
#[inline(always)]
pub fn handle<T>(address: jlong) -> *mut T {
    address as usize as *mut T
}

/// What Java keeps as a handle.
#[inline(always)]
pub fn address<T>(handle: *const T) -> jlong {
    handle as usize as jlong
}

impl Env {
    /// # Safety
    /// `raw` is the current thread's.
    pub unsafe fn of(raw: *mut JNIEnv) -> Env {
        Env(raw)
    }

    /// The function table; every member used here exists since JNI 1.2.
    #[inline(always)]
    pub fn table(self) -> &'static JNINativeInterface_ {
        // SAFETY: the JVM passes a pointer to its table, which lives as long as the JVM.
        unsafe { &**self.0 }
    }

    /// The raw pointer, for calls through [`Env::table`].
    #[inline(always)]
    pub fn raw(self) -> *mut JNIEnv {
        self.0
    }

    /// Body of every native: errors and panics become the pending exception.
    #[inline(always)]
    pub fn guard<T: Blank>(self, body: impl FnOnce() -> Result<T, Fail>) -> T {
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(value)) => {
                errors::check_raised(self);
                value
            }
            Ok(Err(fail)) => {
                errors::throw(self, fail);
                T::BLANK
            }
            Err(_) => {
                errors::throw(self, Fail::Status(byway::Status::E_PANIC.0, ptr::null_mut()));
                T::BLANK
            }
        }
    }

    /// Length of an array that is not null.
    pub fn length(self, array: jarray) -> usize {
        // SAFETY: a live array of this native's arguments or of our making.
        usize::try_from(unsafe { (self.table().v1_1.GetArrayLength)(self.0, array) }).unwrap_or(0)
    }

    /// A copy of a byte array; null is empty.
    pub fn bytes(self, array: jbyteArray) -> Vec<u8> {
        if array.is_null() {
            return Vec::new();
        }
        let len = self.length(array);
        let mut copy: Vec<u8> = Vec::with_capacity(len);
        // SAFETY: the buffer has room for `len` bytes, all of which are written.
        unsafe {
            (self.table().v1_1.GetByteArrayRegion)(self.0, array, 0, len as jint, copy.as_mut_ptr().cast());
            copy.set_len(len);
        }
        copy
    }

    /// A copy of a part of a byte array, which the caller has checked to lie inside.
    pub fn region(self, array: jbyteArray, offset: jint, length: jint) -> Vec<u8> {
        let len = usize::try_from(length).unwrap_or(0);
        let mut copy: Vec<u8> = vec![0; len];
        // SAFETY: the buffer has room for the part; the JVM refuses one that is not inside the array.
        unsafe {
            (self.table().v1_1.GetByteArrayRegion)(
                self.0,
                array,
                offset,
                len as jint,
                copy.as_mut_ptr().cast(),
            );
        }
        copy
    }

    /// A copy of an array of addresses or numbers; null is empty.
    pub fn longs(self, array: jlongArray) -> Vec<jlong> {
        if array.is_null() {
            return Vec::new();
        }
        let mut copy = vec![0; self.length(array)];
        // SAFETY: the buffer is as long as the array.
        unsafe {
            (self.table().v1_1.GetLongArrayRegion)(self.0, array, 0, copy.len() as jint, copy.as_mut_ptr())
        };
        copy
    }

    /// A copy of an array of ints; null is empty.
    pub fn ints(self, array: jintArray) -> Vec<jint> {
        if array.is_null() {
            return Vec::new();
        }
        let mut copy = vec![0; self.length(array)];
        // SAFETY: the buffer is as long as the array.
        unsafe {
            (self.table().v1_1.GetIntArrayRegion)(self.0, array, 0, copy.len() as jint, copy.as_mut_ptr())
        };
        copy
    }

    /// Many texts, as `io.byway.Texts` packs them: all bytes, and the length of each.
    pub fn texts(self, bytes: jbyteArray, lengths: jintArray) -> Texts {
        let bytes = self.bytes(bytes);
        let mut at = 0;
        let mut views = Vec::new();
        for length in self.ints(lengths) {
            let end = (at + usize::try_from(length).unwrap_or(0)).min(bytes.len());
            views.push(str_of(bytes.get(at..end).unwrap_or_default()));
            at = end;
        }
        Texts { _bytes: bytes, views }
    }

    /// A Java byte array with this content.
    pub fn new_bytes(self, content: &[u8]) -> Result<jbyteArray, Fail> {
        let Ok(len) = jint::try_from(content.len()) else {
            return Err(Fail::Status(byway::Status::E_LIMIT.0, ptr::null_mut()));
        };
        // SAFETY: plain calls; the region is as long as the array.
        unsafe {
            let array = (self.table().v1_1.NewByteArray)(self.0, len);
            if array.is_null() {
                return Err(Fail::Thrown);
            }
            (self.table().v1_1.SetByteArrayRegion)(self.0, array, 0, len, content.as_ptr().cast());
            Ok(array)
        }
    }

    /// A Java long array with this content.
    pub fn new_longs(self, content: &[jlong]) -> Result<jlongArray, Fail> {
        let Ok(len) = jint::try_from(content.len()) else {
            return Err(Fail::Status(byway::Status::E_LIMIT.0, ptr::null_mut()));
        };
        // SAFETY: plain calls; the region is as long as the array.
        unsafe {
            let array = (self.table().v1_1.NewLongArray)(self.0, len);
            if array.is_null() {
                return Err(Fail::Thrown);
            }
            (self.table().v1_1.SetLongArrayRegion)(self.0, array, 0, len, content.as_ptr());
            Ok(array)
        }
    }

    /// A Java long array with these tags.
    pub fn new_unsigned(self, content: &[u64]) -> Result<jlongArray, Fail> {
        // SAFETY: the same memory, read with a sign.
        self.new_longs(unsafe { core::slice::from_raw_parts(content.as_ptr().cast(), content.len()) })
    }

    /// Writes tags into a Java array that is at least as long.
    pub fn put_unsigned(self, array: jlongArray, content: &[u64]) {
        // SAFETY: the caller has compared the lengths; the JVM would throw, not write, beyond the end.
        unsafe {
            (self.table().v1_1.SetLongArrayRegion)(
                self.0,
                array,
                0,
                content.len() as jint,
                content.as_ptr().cast(),
            );
        }
    }

    /// Content of a borrowed text as a Java byte array.
    pub fn lent(self, text: byway_str) -> Result<jbyteArray, Fail> {
        self.new_bytes(bytes_of(&text))
    }

    /// Calls a function that gives a `byway_text`, and returns its content.
    pub fn take_text(
        self,
        function: impl FnOnce(*mut *mut byway_text, *mut *mut byway_error) -> i32,
    ) -> Result<jbyteArray, Fail> {
        let mut text = ptr::null_mut();
        call(|err| function(&mut text, err))?;
        let mut view = NO_TEXT;
        // SAFETY: the text is ours; its content is copied before it goes.
        unsafe {
            byway_text_str(text, &mut view);
            let array = self.lent(view);
            byway_text_free(text);
            array
        }
    }
}

/// A `byway_str` to be filled.
pub const NO_TEXT: byway_str = byway_str { data: ptr::null(), len: 0 };

/// Texts in C's form; they live as long as this.
pub struct Texts {
    _bytes: Vec<u8>,
    /// One view per text.
    pub views: Vec<byway_str>,
}

/// A view of bytes that stay where they are.
pub fn str_of(bytes: &[u8]) -> byway_str {
    byway_str { data: bytes.as_ptr().cast::<c_char>(), len: bytes.len() }
}

/// The bytes of a view that byway filled, valid as long as what lent it.
pub fn bytes_of(text: &byway_str) -> &[u8] {
    if text.data.is_null() {
        return &[];
    }
    // SAFETY: byway filled it; the caller copies before the lender goes.
    unsafe { core::slice::from_raw_parts(text.data.cast(), text.len) }
}

/// Calls a function whose last parameter is `byway_error **`; negative statuses are failures.
#[inline(always)]
pub fn call(function: impl FnOnce(*mut *mut byway_error) -> i32) -> Result<jint, Fail> {
    let mut err = ptr::null_mut();
    let status = function(&mut err);
    if status < 0 { Err(Fail::Status(status, err)) } else { Ok(status) }
}

/// The same for a function that gives a handle.
#[inline(always)]
pub fn make<T>(function: impl FnOnce(*mut *mut T, *mut *mut byway_error) -> i32) -> Result<jlong, Fail> {
    let mut out = ptr::null_mut();
    call(|err| function(&mut out, err))?;
    Ok(address(out))
}

/// For functions without an error object.
#[inline(always)]
pub fn check(status: i32) -> Result<jint, Fail> {
    if status < 0 { Err(Fail::Status(status, ptr::null_mut())) } else { Ok(status) }
}
