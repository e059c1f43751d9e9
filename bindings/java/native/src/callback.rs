//! Java objects behind `user_data`, and threads of the engine inside the JVM.
//!
//! A callback goes to a static method of a nested class `Callbacks`, looked up once at load, with the registered object
//! as its first argument. Those methods catch whatever the object throws, so no exception is ever pending on the way
//! back into the engine.

use crate::env::Env;
use crate::errors;
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use jni_sys::{
    JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, JavaVMAttachArgs, jclass, jint, jmethodID, jobject, jvalue,
};

/// What a `Callbacks` method answers when its object threw: this, less the status that the exception means.
/// `io.byway.Errors` has the exception.
const RAISED: jint = jint::MIN;

/// No status is lower.
const LOWEST: jint = -0xffff;

static VM: AtomicPtr<JavaVM> = AtomicPtr::new(ptr::null_mut());

/// A static method that is looked up at load. On a thread of the engine, and with another class loader, a later
/// look-up would not find the class.
pub struct StaticMethod {
    owner: &'static CStr,
    name: &'static CStr,
    signature: &'static CStr,
    class: AtomicPtr<jni_sys::_jobject>,
    id: AtomicPtr<c_void>,
}

impl StaticMethod {
    pub const fn new(owner: &'static CStr, name: &'static CStr, signature: &'static CStr) -> Self {
        StaticMethod {
            owner,
            name,
            signature,
            class: AtomicPtr::new(ptr::null_mut()),
            id: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The class alone.
    pub const fn class_only(owner: &'static CStr) -> Self {
        Self::new(owner, c"", c"")
    }

    /// Looks class and method up; false leaves the exception pending, and loading fails with it.
    pub fn resolve(&self, env: Env) -> bool {
        // SAFETY: plain look-ups with NUL-terminated names.
        unsafe {
            let table = &env.table().v1_2;
            let class = (table.FindClass)(env.raw(), self.owner.as_ptr());
            if class.is_null() {
                return false;
            }
            let global = (table.NewGlobalRef)(env.raw(), class);
            (table.DeleteLocalRef)(env.raw(), class);
            if global.is_null() {
                return false;
            }
            self.class.store(global.cast(), Ordering::Release);
            if self.name.is_empty() {
                return true;
            }
            let id =
                (table.GetStaticMethodID)(env.raw(), global, self.name.as_ptr(), self.signature.as_ptr());
            self.id.store(id.cast(), Ordering::Release);
            !id.is_null()
        }
    }

    /// The class, a global reference.
    pub fn class(&self) -> jclass {
        self.class.load(Ordering::Relaxed).cast()
    }

    fn method(&self) -> jmethodID {
        self.id.load(Ordering::Relaxed).cast()
    }

    /// Calls a method that returns nothing. What escapes it goes nowhere: such methods catch all they can.
    pub fn call_void(&self, env: Env, arguments: &[jvalue]) {
        // SAFETY: resolved at load; the arguments fit the signature beside it.
        unsafe {
            (env.table().v1_2.CallStaticVoidMethodA)(
                env.raw(),
                self.class(),
                self.method(),
                arguments.as_ptr(),
            );
        }
        escaped(env);
    }

    /// Calls a method that returns a status.
    pub fn call_status(&self, env: Env, arguments: &[jvalue]) -> i32 {
        // SAFETY: as above.
        let status = unsafe {
            (env.table().v1_2.CallStaticIntMethodA)(
                env.raw(),
                self.class(),
                self.method(),
                arguments.as_ptr(),
            )
        };
        if escaped(env) {
            return byway::Status::E_HOST.0;
        }
        if status < LOWEST {
            if is_foreign() {
                // No call of Java's is below this one that could throw it.
                errors::UNCLAIMED.call_void(env, &[]);
            } else {
                errors::raised();
            }
            return RAISED.wrapping_sub(status);
        }
        status
    }

    /// Calls a method that returns a long; `None` when an exception escaped it.
    pub fn call_long(&self, env: Env, arguments: &[jvalue]) -> Option<i64> {
        // SAFETY: as above.
        let value = unsafe {
            (env.table().v1_2.CallStaticLongMethodA)(
                env.raw(),
                self.class(),
                self.method(),
                arguments.as_ptr(),
            )
        };
        (!escaped(env)).then_some(value)
    }

    /// Calls a method that returns an object; `None` leaves its exception pending.
    pub fn call_object(&self, env: Env, arguments: &[jvalue]) -> Option<jobject> {
        // SAFETY: as above.
        let object = unsafe {
            (env.table().v1_2.CallStaticObjectMethodA)(
                env.raw(),
                self.class(),
                self.method(),
                arguments.as_ptr(),
            )
        };
        // SAFETY: a plain call, legal with an exception pending.
        let thrown = unsafe { (env.table().v1_2.ExceptionCheck)(env.raw()) };
        (!thrown && !object.is_null()).then_some(object)
    }
}

/// Ends what a callback method could not catch itself, such as a stack that overflowed once more.
fn escaped(env: Env) -> bool {
    // SAFETY: plain calls, legal with an exception pending.
    unsafe {
        let escaped = (env.table().v1_2.ExceptionCheck)(env.raw());
        if escaped {
            (env.table().v1_1.ExceptionClear)(env.raw());
        }
        escaped
    }
}

/// What `user_data` points to: the registered Java object.
pub struct Target(jobject);

impl Target {
    /// A new `user_data`; `None` leaves an OutOfMemoryError pending. [`destroy`] ends it.
    pub fn register(env: Env, object: jobject) -> Option<*mut c_void> {
        // SAFETY: a live local reference.
        let global = unsafe { (env.table().v1_1.NewGlobalRef)(env.raw(), object) };
        (!global.is_null()).then(|| Box::into_raw(Box::new(Target(global))).cast())
    }

    /// The object as an argument.
    ///
    /// # Safety
    /// `user_data` came from [`Target::register`] and was not destroyed.
    pub unsafe fn of(user_data: *mut c_void) -> jvalue {
        // SAFETY: as promised.
        jvalue { l: unsafe { (*user_data.cast::<Target>()).0 } }
    }
}

/// Member `destroy` of every callback set.
pub unsafe extern "C-unwind" fn destroy(user_data: *mut c_void) {
    // SAFETY: the engine calls this once, with what `register` gave.
    let target = unsafe { Box::from_raw(user_data.cast::<Target>()) };
    if let Some(env) = current() {
        // SAFETY: our global reference.
        unsafe { (env.table().v1_1.DeleteGlobalRef)(env.raw(), target.0) };
    }
}

/// Runs `body` with this thread's `Env` and room for local references that go away with it; `None` when the JVM takes
/// no more threads or memory.
pub fn enter<T>(body: impl FnOnce(Env) -> T) -> Option<T> {
    let env = current()?;
    // SAFETY: pushed and popped in pairs; `body` cannot unwind past the engine's guard.
    unsafe {
        if (env.table().v1_2.PushLocalFrame)(env.raw(), 16) != 0 {
            (env.table().v1_1.ExceptionClear)(env.raw());
            return None;
        }
        let aside = errors::set_aside(env);
        let value = body(env);
        errors::put_back(env, aside);
        (env.table().v1_2.PopLocalFrame)(env.raw(), ptr::null_mut());
        Some(value)
    }
}

/// Remembers the JVM.
pub fn remember(vm: *mut JavaVM) {
    VM.store(vm, Ordering::Release);
}

/// Detaches a thread of the engine when it ends.
struct Attached;

impl Drop for Attached {
    fn drop(&mut self) {
        let vm = VM.load(Ordering::Acquire);
        // SAFETY: the JVM that this thread was attached to.
        unsafe { ((**vm).v1_1.DetachCurrentThread)(vm) };
    }
}

std::thread_local! {
    static ATTACHED: core::cell::RefCell<Option<Attached>> = const { core::cell::RefCell::new(None) };
}

/// True on a thread of the engine, which no Java call will take an exception from.
fn is_foreign() -> bool {
    ATTACHED.try_with(|attached| attached.borrow().is_some()).unwrap_or(true)
}

/// This thread's way into the JVM. A thread of the engine is attached once, as a daemon: it keeps no JVM from ending.
fn current() -> Option<Env> {
    let vm = VM.load(Ordering::Acquire);
    if vm.is_null() {
        return None;
    }
    let mut env: *mut c_void = ptr::null_mut();
    // SAFETY: the JVM of JNI_OnLoad; attaching and detaching come in pairs through the thread-local.
    unsafe {
        if ((**vm).v1_2.GetEnv)(vm, &mut env, JNI_VERSION_1_8) == JNI_OK {
            return Some(Env::of(env.cast::<JNIEnv>()));
        }
        let mut name = [0 as core::ffi::c_char; 16];
        libc_name(&mut name);
        let mut arguments =
            JavaVMAttachArgs { version: JNI_VERSION_1_8, name: name.as_mut_ptr(), group: ptr::null_mut() };
        if ((**vm).v1_4.AttachCurrentThreadAsDaemon)(vm, &mut env, (&raw mut arguments).cast()) != JNI_OK {
            return None;
        }
        // A thread whose locals are gone is ending: it is not kept.
        if ATTACHED.try_with(|attached| *attached.borrow_mut() = Some(Attached)).is_err() {
            ((**vm).v1_1.DetachCurrentThread)(vm);
            return None;
        }
        Some(Env::of(env.cast::<JNIEnv>()))
    }
}

/// The thread's own name, `byway-*`, for Java's thread dumps.
fn libc_name(name: &mut [core::ffi::c_char; 16]) {
    let current = std::thread::current();
    let text = current.name().unwrap_or("byway");
    for (to, from) in name.iter_mut().zip(text.bytes().take(15)) {
        *to = from as core::ffi::c_char;
    }
}
