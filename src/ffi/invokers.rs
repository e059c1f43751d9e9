//! `byway_invokers` and `byway_invokers_builder`: an immutable provider list, and what makes one.

use super::arguments::{self, Versioned, byway_str};
use super::callbacks::{self, Callbacks, Set};
use super::engine::byway_engine;
use super::error::byway_error;
use super::guard::{self, Fail, call, call_bare, call_or, status_bare};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::chain::builder::InvokersBuilder;
use crate::chain::snapshot::Invokers;
use crate::engine::Engine;
use crate::error::{Error, Status};
use core::ffi::{c_char, c_void};
use std::sync::Arc;

/// An immutable provider list in the host's order. Every row carries the host's tag.
pub struct byway_invokers {
    _private: [u8; 0],
}

handle!(byway_invokers, InvokersHandle, 18, false);

/// The handle's reference.
pub(crate) struct InvokersHandle(pub(crate) Arc<Invokers>);

/// Makes a provider list, whole or as an update of another. Exclusive.
pub struct byway_invokers_builder {
    _private: [u8; 0],
}

handle!(byway_invokers_builder, BuilderObject, 17, false);

/// The builder until it has finished, and whose it is.
pub(crate) struct BuilderObject {
    builder: Option<Box<InvokersBuilder>>,
    engine: Arc<Engine>,
}

/// Keep the URL texts, for `byway_invokers_url`.
pub const BYWAY_INVOKERS_KEEP_URLS: u32 = 1;

/// Options of a provider list; all of them are for what the host's tags stand for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_invokers_callbacks {
    /// `sizeof(byway_invokers_callbacks)`.
    pub struct_size: usize,
    /// First argument of `destroy`.
    pub user_data: *mut c_void,
    /// Runs once when no list, chain, session or choice can name the tags any more. Lists made by update count as
    /// the list they came from unless they bring a set of their own. May be NULL.
    pub destroy: callbacks::byway_destroy,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_invokers_callbacks {
    const FIRST_SIZE: usize = 24;
    const INIT: Self = byway_invokers_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_invokers_callbacks {}

pub(super) const LAYOUTS: &[Layout] =
    &[layout!(byway_invokers_callbacks { struct_size, user_data, destroy })];

fn start(
    engine: *mut byway_engine,
    base: Option<&Arc<Invokers>>,
    flags: u32,
    callbacks: *const byway_invokers_callbacks,
) -> Result<(InvokersBuilder, Arc<Engine>), Fail> {
    let (engine, set) = if callbacks.is_null() {
        (Arc::clone(&handle::shared(engine, "engine")?.0), None)
    } else {
        let (engine, set) = Set::register(callbacks, engine, "callbacks")?;
        (engine, Some(set))
    };
    engine.check_open()?;
    if flags & !BYWAY_INVOKERS_KEEP_URLS != 0 {
        return Err(Fail::Parameter(Status::E_ENUM, "flags"));
    }
    let mut builder = base.map_or_else(InvokersBuilder::new, Invokers::update);
    if flags & BYWAY_INVOKERS_KEEP_URLS != 0 {
        builder = builder.keep_texts();
    }
    if let Some(set) = set {
        builder = builder.keep(set);
    }
    Ok((builder, engine))
}

fn add_all(
    builder: &mut InvokersBuilder,
    urls: *const byway_str,
    tags: *const u64,
    count: usize,
) -> Result<(), Fail> {
    let urls = arguments::array(urls, count, "urls")?;
    let tags = if tags.is_null() { None } else { Some(arguments::array(tags, count, "tags")?) };
    for (index, url) in urls.iter().enumerate() {
        let url = arguments::text_of(*url, "urls").map_err(|fail| at_index(fail, index))?;
        builder.add(url, tags.and_then(|tags| tags.get(index)).copied())?;
    }
    Ok(())
}

/// A text that cannot be read at all, said of its place in the list.
fn at_index(fail: Fail, index: usize) -> Fail {
    let status = fail.status();
    let cause = match fail {
        Fail::Error(error) => error,
        _ => Error::bare(status),
    };
    Error::new(Status::E_INVOKERS, "the URL cannot be read")
        .subject(format!("invoker {index}"))
        .cause(cause)
        .into()
}

/// Makes a list from `count` provider URLs in the host's order. `tags` may be NULL: then a tag is its URL's index.
/// Otherwise `tags[i]` belongs to `urls[i]`; no tag may be 0 or occur twice. `callbacks` may be NULL.
///
/// URLs are raw or merged; a text without `protocol://` begins with its host, as Dubbo reads it. `disabled=true` and
/// `enabled=false` rows are skipped, `empty://` clears what came before.
///
/// Ownership: the caller owns one reference. The set is taken over, also when the call fails.
/// Errors: `BYWAY_E_INVOKERS` naming the first bad index; nothing is made then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_new(
    engine: *mut byway_engine,
    urls: *const byway_str,
    tags: *const u64,
    count: usize,
    flags: u32,
    callbacks: *const byway_invokers_callbacks,
    out: *mut *mut byway_invokers,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let (mut builder, _) = start(engine, None, flags, callbacks)?;
        add_all(&mut builder, urls, tags, count)?;
        *out = handle::hand_out(InvokersHandle(builder.finish()?));
        Ok(Status::OK)
    })
}

/// One more reference; returns its argument, NULL for what is not a live list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_retain(self_: *mut byway_invokers) -> *mut byway_invokers {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. Chains and choices that use the list keep it. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_release(self_: *mut byway_invokers) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}

/// Number of providers; 0 for what is not a live list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_len(self_: *const byway_invokers) -> usize {
    call_bare(0, || Ok(handle::shared(self_, "self")?.0.len()))
}

/// The tag of a row.
///
/// Errors: `BYWAY_E_NOT_FOUND` past the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_tag(
    self_: *const byway_invokers,
    row: usize,
    tag: *mut u64,
) -> byway_status {
    status_bare(|| {
        let tag = arguments::out(tag, 0, "tag")?;
        let list = &handle::shared(self_, "self")?.0;
        *tag = list.tag(row).ok_or(Fail::Parameter(Status::E_NOT_FOUND, "row"))?;
        Ok(Status::OK)
    })
}

/// The URL text of a row, if the list was made with `BYWAY_INVOKERS_KEEP_URLS`.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_NOT_FOUND` past the end or when no texts were kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_url(
    self_: *const byway_invokers,
    row: usize,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let list = &handle::shared(self_, "self")?.0;
        let url = list.text(row).ok_or_else(|| {
            let why =
                if row < list.len() { "the list was made without its URL texts" } else { "no such row" };
            Fail::from(Error::new(Status::E_NOT_FOUND, why).subject("row"))
        })?;
        *out = text::hand_out(url.to_owned());
        Ok(Status::OK)
    })
}

/// The row of the provider with this tag.
///
/// Errors: `BYWAY_E_NOT_FOUND` when the list has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_row_of(
    self_: *const byway_invokers,
    tag: u64,
    row: *mut usize,
) -> byway_status {
    status_bare(|| {
        let out = arguments::out(row, 0, "row")?;
        let list = &handle::shared(self_, "self")?.0;
        *out = list.row_of(tag).ok_or(Fail::Parameter(Status::E_NOT_FOUND, "tag"))?;
        Ok(Status::OK)
    })
}

/// A number no other list of this process has; 0 for what is not a live list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_generation(self_: *const byway_invokers) -> u64 {
    call_bare(0, || Ok(handle::shared(self_, "self")?.0.id()))
}

/// Starts a list. `base` may be NULL: a whole list; otherwise an update of that list, which stays as it is. What the
/// update does not touch is shared with it. `callbacks` may be NULL; an update then goes on with the set of `base`.
///
/// Ownership: the caller owns it; free with `byway_invokers_builder_free`. The set is taken over, also when the call
/// fails.
/// Errors: `BYWAY_E_ENUM` for unknown flags, `BYWAY_E_STRUCT_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_builder_new(
    engine: *mut byway_engine,
    base: *const byway_invokers,
    flags: u32,
    callbacks: *const byway_invokers_callbacks,
    out: *mut *mut byway_invokers_builder,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let base = handle::optional(base, "base").map(|base| base.map(|base| &base.0));
        // The set must end well whatever else is wrong, so it is looked at in any case.
        let (builder, engine) = match base {
            Ok(base) => start(engine, base, flags, callbacks)?,
            Err(fail) => {
                start(engine, None, flags, callbacks)?;
                return Err(fail);
            }
        };
        guard::prepare()?;
        *out = handle::hand_out(BuilderObject { builder: Some(Box::new(builder)), engine });
        Ok(Status::OK)
    })
}

fn building(
    self_: *mut byway_invokers_builder,
    err: *mut *mut byway_error,
    body: impl FnOnce(&mut InvokersBuilder) -> Result<(), Fail>,
) -> byway_status {
    call(err, || {
        let mut object = handle::exclusive(self_, "self")?;
        object.engine.check_open()?;
        let builder = object.builder.as_mut().ok_or(Fail::Parameter(Status::E_STATE, "self"))?;
        body(builder)?;
        Ok(Status::OK)
    })
}

/// Adds a provider at the end.
///
/// Errors: `BYWAY_E_INVOKERS` for an unparsable URL, a tag of 0 or one that is in the list; the whole list is then
/// refused by `finish` with the first of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_builder_add(
    self_: *mut byway_invokers_builder,
    url: *const c_char,
    len: usize,
    tag: u64,
    err: *mut *mut byway_error,
) -> byway_status {
    building(self_, err, |builder| {
        let url = arguments::text(url, len, "url")?;
        Ok(builder.add(url, Some(tag))?)
    })
}

/// Adds `count` providers at the end. `tags` may be NULL: then a tag is its URL's index among all URLs given.
///
/// Errors: as `byway_invokers_builder_add`; those before the bad one have been added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_builder_add_many(
    self_: *mut byway_invokers_builder,
    urls: *const byway_str,
    tags: *const u64,
    count: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    building(self_, err, |builder| add_all(builder, urls, tags, count))
}

/// Replaces the URL of the provider with this tag in its place, or adds it at the end.
///
/// Errors: as `byway_invokers_builder_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_builder_set(
    self_: *mut byway_invokers_builder,
    url: *const c_char,
    len: usize,
    tag: u64,
    err: *mut *mut byway_error,
) -> byway_status {
    building(self_, err, |builder| {
        let url = arguments::text(url, len, "url")?;
        Ok(builder.set(url, tag)?)
    })
}

/// Takes the provider with this tag out.
///
/// Errors: `BYWAY_E_NOT_FOUND` when there is none; the list stays usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_builder_remove(
    self_: *mut byway_invokers_builder,
    tag: u64,
    err: *mut *mut byway_error,
) -> byway_status {
    building(self_, err, |builder| {
        if builder.remove(tag) { Ok(()) } else { Err(Fail::Parameter(Status::E_NOT_FOUND, "tag")) }
    })
}

/// Makes the list. The builder is used up, whatever comes of it, and can only be freed.
///
/// Ownership: the caller owns one reference.
/// Errors: the first refusal of a URL or tag; `BYWAY_E_STATE` when it has finished before; `BYWAY_E_SHUTDOWN`, which uses
/// nothing up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_builder_finish(
    self_: *mut byway_invokers_builder,
    out: *mut *mut byway_invokers,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let mut object = handle::exclusive(self_, "self")?;
        object.engine.check_open()?;
        let builder = object.builder.take();
        let builder = builder.ok_or(Fail::Parameter(Status::E_STATE, "self"))?;
        *out = handle::hand_out(InvokersHandle(builder.finish()?));
        Ok(Status::OK)
    })
}

/// Ends a builder, finished or not. NULL is fine.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_invokers_builder_free(self_: *mut byway_invokers_builder) {
    call_or((), || {
        handle::free(self_);
        Ok(())
    });
}
