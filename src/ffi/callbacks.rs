//! Sets of host callbacks: copied in once, kept as long as anybody may call them, destroyed exactly once.

use super::arguments::{self, Versioned};
use super::engine::byway_engine;
use super::guard::Fail;
use super::handle;
use crate::engine::Engine;
use crate::engine::host::{self, End};
use core::ffi::c_void;
use std::sync::{Arc, Weak};

/// Ends a set's `user_data`.
pub type byway_destroy = Option<unsafe extern "C-unwind" fn(user_data: *mut c_void)>;

/// A callback struct: after `struct_size` come `user_data` and `destroy`.
///
/// # Safety
/// `Self` is `repr(C)` and begins with `usize`, `*mut c_void`, [`byway_destroy`].
pub(crate) unsafe trait Callbacks: Versioned + 'static {}

/// First fields of every callback struct.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    struct_size: usize,
    user_data: *mut c_void,
    destroy: byway_destroy,
}

/// A set in use. Dropping the last owner has `destroy` run where host code may run.
pub(crate) struct Set<R: Callbacks> {
    raw: R,
    user_data: *mut c_void,
    /// None when there is nothing to run.
    end: Option<Arc<End>>,
    engine: Weak<Engine>,
    id: u64,
}

// SAFETY: the host promises that a set may be called from any thread that is inside the library (header,
// "Callbacks"); byway never looks behind user_data.
unsafe impl<R: Callbacks> Send for Set<R> {}
// SAFETY: as above.
unsafe impl<R: Callbacks> Sync for Set<R> {}

impl Head {
    fn run(user_data: usize, destroy: unsafe extern "C-unwind" fn(*mut c_void)) {
        // SAFETY: the host gave this function for this pointer, and this is its only call.
        unsafe { destroy(core::ptr::with_exposed_provenance_mut(user_data)) };
    }
}

impl<R: Callbacks> Set<R> {
    /// Takes a set over for the engine behind `engine`. Whatever goes wrong from here on, `destroy` runs exactly once.
    pub(crate) fn register(
        pointer: *const R,
        engine: *const byway_engine,
        name: &'static str,
    ) -> Result<(Arc<Engine>, Arc<Set<R>>), Fail> {
        let engine = handle::shared(engine, "engine").inspect_err(|_| destroy_refused(pointer))?;
        let engine = Arc::clone(&engine.0);
        let set = Self::register_in(pointer, &engine, name)?;
        Ok((engine, set))
    }

    /// [`Set::register`] with an engine that is there already.
    pub(crate) fn register_in(
        pointer: *const R,
        engine: &Arc<Engine>,
        name: &'static str,
    ) -> Result<Arc<Set<R>>, Fail> {
        let raw = arguments::versioned(pointer, name).inspect_err(|_| destroy_refused(pointer))?;
        // SAFETY: every callback struct begins with these fields.
        let head = unsafe { *(&raw const raw).cast::<Head>() };
        let (user_data, id) = (head.user_data, engine.next_id());
        let address = user_data.expose_provenance();
        let any_thread = engine.options().callbacks_any_thread;
        let end = head.destroy.map(|destroy| End::new(any_thread, move || Head::run(address, destroy)));
        let set = Arc::new(Set { raw, user_data, end, engine: Arc::downgrade(engine), id });
        match &set.end {
            Some(end) => engine.register_set(id, end)?,
            None => engine.check_open()?,
        }
        Ok(set)
    }

    /// The functions.
    #[inline]
    pub(crate) fn raw(&self) -> &R {
        &self.raw
    }

    /// First argument of every one of them.
    #[inline]
    pub(crate) fn user_data(&self) -> *mut c_void {
        self.user_data
    }

    /// The engine it was made with, unless that is gone.
    pub(crate) fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.upgrade()
    }
}

impl<R: Callbacks> Drop for Set<R> {
    fn drop(&mut self) {
        let Some(end) = self.end.take().filter(|end| !end.has_begun()) else { return };
        match self.engine.upgrade() {
            Some(engine) => engine.retire_set(self.id, end),
            None => host::retire_alone(end),
        }
    }
}

/// A set whose struct was refused still owns its `user_data`, if it is large enough to say how to end it.
pub(crate) fn destroy_refused<R: Callbacks>(pointer: *const R) {
    let pointer = pointer.cast::<Head>();
    if pointer.is_null() || crate::sys::fork::is_child() {
        return;
    }
    // SAFETY: a callback struct starts with its size, and the host promises that many readable bytes.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    if size >= size_of::<Head>() && size <= 65_536 {
        // SAFETY: as above.
        let head = unsafe { pointer.read_unaligned() };
        if let Some(destroy) = head.destroy {
            Head::run(head.user_data.expose_provenance(), destroy);
        }
    }
}
