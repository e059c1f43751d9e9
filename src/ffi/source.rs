//! `byway_source`: where rules and provider lists come from.

use super::arguments::{self, Versioned, Wait, byway_str};
use super::engine::byway_engine;
use super::error::{self, byway_error};
use super::guard::{Fail, call, call_or};
use super::handle::{self, handle};
use super::library::{Layout, layout};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::Engine;
use crate::error::{Error, Status};
use crate::source::Source;
use crate::source::file::{FileOptions, FileSource};
use crate::source::memory::MemorySource;
use crate::source::topic::{Topic, Value};
use core::ffi::c_char;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where rules and provider lists come from. Shared; ends with its engine. Its thread, if it has one, is named
/// `byway-files` or `byway-zookeeper` and ends with the last reference.
pub struct byway_source {
    _private: [u8; 0],
}

handle!(byway_source, SourceHandle, 24, false);

pub(crate) struct SourceHandle {
    engine: Arc<Engine>,
    pub(super) source: Arc<dyn Source>,
    memory: Option<Arc<MemorySource>>,
}

/// How a ZooKeeper ensemble is reached, beside its connection string. Start from `BYWAY_ZOOKEEPER_OPTIONS_INIT` or
/// `byway_zookeeper_options_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_zookeeper_options {
    /// `sizeof(byway_zookeeper_options)`.
    pub struct_size: usize,
    /// User of the digest scheme; empty: what the connection string has.
    pub username: byway_str,
    /// Its password. Shown nowhere.
    pub password: byway_str,
    /// Dubbo's root; empty: what the connection string says, else `/dubbo`.
    pub root: byway_str,
    /// Session timeout to ask for, in milliseconds; 0 means what the connection string says, else 15 s.
    pub session_timeout_ms: i64,
    /// Longest wait for one server, in milliseconds; 0 means what the connection string says, else 5 s.
    pub connect_timeout_ms: i64,
    /// Longest wait between two tries when no server answers, in milliseconds; 0 means 10 s. Tries never end.
    pub retry_longest_ms: i64,
}

/// A text that is not given.
const ABSENT: byway_str = byway_str { data: core::ptr::null(), len: 0 };

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_zookeeper_options {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_zookeeper_options {
        struct_size: size_of::<Self>(),
        username: ABSENT,
        password: ABSENT,
        root: ABSENT,
        session_timeout_ms: 0,
        connect_timeout_ms: 0,
        retry_longest_ms: 0,
    };
}

/// One change of a memory source.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_source_change {
    /// Key, as `byway_source_put` takes it.
    pub key: byway_str,
    /// Text; not looked at when the key is removed.
    pub text: byway_str,
    /// 1: the key is removed.
    pub remove: i32,
    /// 0.
    pub reserved: i32,
}

/// How a source stands.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_source_state {
    /// `sizeof(byway_source_state)`, set by the caller.
    pub struct_size: usize,
    /// Wall clock in milliseconds when it was connected, or was lost; -1 before the first connection.
    pub since_ms: i64,
    /// Milliseconds since what is served was last known to be what the centre holds; -1 before the first contact.
    pub age_ms: i64,
    /// Counts what changed.
    pub generation: u64,
    /// Keys, lists and other things followed.
    pub keys: u64,
    /// Complaints so far.
    pub errors: u64,
    /// 1: what is served is kept up to date at the moment.
    pub connected: i32,
    /// 0.
    pub reserved: i32,
}

// SAFETY: repr(C), size first, plain numbers.
unsafe impl Versioned for byway_source_state {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_source_state {
        struct_size: size_of::<Self>(),
        since_ms: -1,
        age_ms: -1,
        generation: 0,
        keys: 0,
        errors: 0,
        connected: 0,
        reserved: 0,
    };
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_zookeeper_options {
        struct_size,
        username,
        password,
        root,
        session_timeout_ms,
        connect_timeout_ms,
        retry_longest_ms,
    }),
    layout!(byway_source_change { key, text, remove, reserved }),
    layout!(byway_source_state {
        struct_size,
        since_ms,
        age_ms,
        generation,
        keys,
        errors,
        connected,
        reserved,
    }),
];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_zookeeper_options_init(options: *mut byway_zookeeper_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// Sets every field to what nothing is known of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_state_init(state: *mut byway_source_state) {
    call_or((), || {
        arguments::init(state);
        Ok(())
    });
}

fn adopt(
    engine: &Arc<Engine>,
    source: Arc<dyn Source>,
    memory: Option<Arc<MemorySource>>,
) -> Result<*mut byway_source, Fail> {
    engine.adopt_source(&source)?;
    Ok(handle::hand_out(SourceHandle { engine: Arc::clone(engine), source, memory }))
}

/// Makes a source the host fills itself, with `byway_source_put`.
///
/// Ownership: the caller owns one reference; bound chains keep it.
/// Errors: `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_new_memory(
    engine: *mut byway_engine,
    out: *mut *mut byway_source,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = &handle::shared(engine, "engine")?.0;
        let memory = MemorySource::new();
        *out = adopt(engine, Arc::clone(&memory) as Arc<dyn Source>, Some(memory))?;
        Ok(Status::OK)
    })
}

/// Makes a source of files: a directory in Dubbo's layout, or one file. In a directory `D` the rule `K` is
/// `D/dubbo/config/dubbo/K`, `D/config/dubbo/K` or `D/K`, each also with `.yaml` or `.yml`; a file directly in `D` whose
/// name ends in `condition-router`, `tag-router` or `affinity-router` (and perhaps `.yaml` or `.yml`) also counts for
/// the `key` its text names, with `scope: service` for a service's. Providers are the lines of
/// `D/dubbo/<interface>/providers`, `D/<interface>/providers` or `D/<interface>.providers`. `key` (may be empty) says
/// what a single file holds, as `byway_source_put` takes it.
///
/// Atomic renames, symlink swaps, writes in place and deletions are followed; half a text is never taken. A path that is
/// not there is no error, it may come.
///
/// Ownership: the caller owns one reference; bound chains keep it.
/// Errors: `BYWAY_E_ARGUMENT`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_new_file(
    engine: *mut byway_engine,
    path: *const c_char,
    path_len: usize,
    key: *const c_char,
    key_len: usize,
    out: *mut *mut byway_source,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = &handle::shared(engine, "engine")?.0;
        let path = arguments::text(path, path_len, "path")?;
        let key = arguments::text(key, key_len, "key")?;
        let key = Some(key).filter(|key| !key.is_empty()).map(str::to_owned);
        let source = FileSource::new(FileOptions { key, ..FileOptions::new(path) })?;
        *out = adopt(engine, source, None)?;
        Ok(Status::OK)
    })
}

/// Makes a source of a ZooKeeper ensemble in Dubbo's layout. `servers` is `host:port,host:port/chroot`, with
/// `user:password@` in front if need be, or Dubbo's
/// `zookeeper://user:password@host:port/chroot?backup=host:port,host:port&group=dubbo`. `options` may be NULL.
/// Nobody connects before a chain is bound; nobody answering is no error, it is tried again for ever.
///
/// Ownership: the caller owns one reference; bound chains keep it.
/// Errors: `BYWAY_E_ARGUMENT` with the place in the connection string, `BYWAY_E_UNSUPPORTED` when the library was built
/// without it, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_new_zookeeper(
    engine: *mut byway_engine,
    servers: *const c_char,
    servers_len: usize,
    options: *const byway_zookeeper_options,
    out: *mut *mut byway_source,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = &handle::shared(engine, "engine")?.0;
        let servers = arguments::text(servers, servers_len, "servers")?;
        let options = arguments::versioned_or_default(options, "options")?;
        *out = adopt(engine, zookeeper(servers, &options)?, None)?;
        Ok(Status::OK)
    })
}

#[cfg(feature = "zookeeper")]
fn zookeeper(servers: &str, given: &byway_zookeeper_options) -> Result<Arc<dyn Source>, Fail> {
    use crate::source::zookeeper::{Credentials, ZooKeeperOptions, ZooKeeperSource};
    let mut options = ZooKeeperOptions::parse(servers)?;
    let user = arguments::text_of(given.username, "options.username")?;
    let password = arguments::text_of(given.password, "options.password")?;
    if !user.is_empty() {
        options.credentials = Some(Credentials::new(user, password));
    } else if !password.is_empty() {
        return Err(Error::new(Status::E_ARGUMENT, "a password without a user")
            .subject("options.username")
            .into());
    }
    let root = arguments::text_of(given.root, "options.root")?;
    if !root.is_empty() {
        options.set_root(root)?;
    }
    let span = |value: i64, own: &mut Duration, name: &'static str| match value {
        0 => Ok(()),
        1..=3_600_000 => {
            *own = Duration::from_millis(value.unsigned_abs());
            Ok(())
        }
        _ => Err(Fail::from(
            Error::new(Status::E_ARGUMENT, "expected 0 to 3600000 milliseconds").subject(name),
        )),
    };
    span(given.session_timeout_ms, &mut options.session_timeout, "options.session_timeout_ms")?;
    span(given.connect_timeout_ms, &mut options.connect_timeout, "options.connect_timeout_ms")?;
    span(given.retry_longest_ms, &mut options.retry_longest, "options.retry_longest_ms")?;
    Ok(ZooKeeperSource::new(options)?)
}

#[cfg(not(feature = "zookeeper"))]
fn zookeeper(_: &str, _: &byway_zookeeper_options) -> Result<Arc<dyn Source>, Fail> {
    Err(Error::new(Status::E_UNSUPPORTED, "this library was built without ZooKeeper").into())
}

/// One more reference; returns its argument, NULL for what is not a live source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_retain(self_: *mut byway_source) -> *mut byway_source {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. Bound chains keep what they follow; the last reference ends its thread without waiting for it.
/// NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_release(self_: *mut byway_source) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}

fn open<'a>(self_: *const byway_source) -> Result<&'a SourceHandle, Fail> {
    let source = handle::shared(self_, "self")?;
    source.engine.check_open()?;
    Ok(source)
}

fn memory<'a>(self_: *const byway_source) -> Result<&'a MemorySource, Fail> {
    let source = open(self_)?;
    source.memory.as_deref().ok_or_else(|| {
        let message = format!("a {} source is not written by its host", source.source.kind());
        Error::new(Status::E_UNSUPPORTED, message).subject("self").into()
    })
}

/// Sets one key of a memory source. When the call returns, bound chains route by it. A key is a rule's
/// (`com.foo.Bar::.condition-router`), or a path in Dubbo's tree: `<interface>/providers`, `/routers` or
/// `/configurators`, `mapping/<interface>`, `metadata/<application>/<revision>`, `config/<group>/<key>`,
/// `/services/<application>`. The text of a list is one entry a line.
///
/// Errors: `BYWAY_E_ARGUMENT` for a key that means nothing; `BYWAY_E_UNSUPPORTED` for a source that is not memory. A rule
/// that is refused is no error here: it is told by an event and the status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_put(
    self_: *mut byway_source,
    key: *const c_char,
    key_len: usize,
    text: *const c_char,
    text_len: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let memory = memory(self_)?;
        memory.put(arguments::text(key, key_len, "key")?, arguments::text(text, text_len, "text")?)?;
        Ok(Status::OK)
    })
}

/// Removes one key of a memory source; removing what is not there is fine.
///
/// Errors: as `byway_source_put`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_remove(
    self_: *mut byway_source,
    key: *const c_char,
    key_len: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        memory(self_)?.remove(arguments::text(key, key_len, "key")?)?;
        Ok(Status::OK)
    })
}

/// Several changes of a memory source as one moment: bound chains see all of them or none, and make one world.
///
/// Errors: as `byway_source_put`; nothing has changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_apply(
    self_: *mut byway_source,
    changes: *const byway_source_change,
    count: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let memory = memory(self_)?;
        let mut list = Vec::new();
        for change in arguments::array(changes, count, "changes")? {
            let key = arguments::text_of(change.key, "changes.key")?;
            let text = match change.remove {
                0 => Some(arguments::text_of(change.text, "changes.text")?),
                1 => None,
                _ => return Err(Fail::Parameter(Status::E_ENUM, "changes.remove")),
            };
            list.push((key, text));
        }
        memory.apply(&list)?;
        Ok(Status::OK)
    })
}

/// What a source holds under a key (as `byway_source_put` takes it), read now if nobody follows it; a list has one entry
/// a line.
///
/// `timeout_ms`: 0 = what is known already, negative = the engine's default.
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_NOT_FOUND` when the centre does not have it, `BYWAY_E_ARGUMENT` for a key that means nothing,
/// `BYWAY_E_TIMEOUT`, `BYWAY_E_WOULD_DEADLOCK` on the thread of the engine's event loop when it would have to wait,
/// `BYWAY_E_SHUTDOWN`, or why it cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_get(
    self_: *mut byway_source,
    key: *const c_char,
    key_len: usize,
    timeout_ms: i64,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let source = open(self_)?;
        let topic = Topic::parse(arguments::text(key, key_len, "key")?)?;
        let timeout = until(timeout_ms, &source.engine);
        let on_loop = source.engine.queue().would_deadlock();
        let timeout = if on_loop { Duration::ZERO } else { timeout };
        let is_open = || source.engine.check_open().is_ok();
        let found = source.source.get_while(&topic, timeout, &is_open).map_err(|error| {
            match (error.status() == Status::E_TIMEOUT, is_open()) {
                (true, false) => Fail::from(Status::E_SHUTDOWN),
                (true, true) if on_loop && timeout_ms != 0 => Fail::from(Status::E_WOULD_DEADLOCK),
                _ => Fail::from(error),
            }
        })?;
        *out = match found {
            Value::Text(found) => text::hand_out(found.to_string()),
            Value::List(list) => text::hand_out(list.join("\n")),
            Value::Absent => {
                let error = Error::new(Status::E_NOT_FOUND, "the source does not have it");
                return Err(error.subject(topic.to_string()).into());
            }
        };
        Ok(Status::OK)
    })
}

pub(super) fn until(timeout_ms: i64, engine: &Engine) -> Duration {
    match arguments::wait(timeout_ms, engine.options().default_timeout) {
        Wait::Never => Duration::ZERO,
        Wait::Until(end) => end.saturating_duration_since(Instant::now()),
    }
}

/// How a source stands. `state->struct_size` must be set. `*last_error` (may be NULL) gets the last complaint, or NULL; it
/// stays when things are right again.
///
/// Ownership: the caller owns the error.
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_source_status(
    self_: *mut byway_source,
    state: *mut byway_source_state,
    last_error: *mut *mut byway_error,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let last_error = arguments::out_optional(last_error, core::ptr::null_mut());
        if state.is_null() {
            return Err(Fail::Parameter(Status::E_NULL, "state"));
        }
        let asked = arguments::versioned(state.cast_const(), "state")?;
        let state = arguments::out(state, asked, "state")?;
        let source = handle::shared(self_, "self")?;
        source.engine.check_open()?;
        let status = source.source.status();
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let wall = |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0, millis);
        *state = byway_source_state {
            struct_size: size_of::<byway_source_state>(),
            since_ms: status.since.map_or(-1, wall),
            age_ms: status.age.map_or(-1, millis),
            generation: status.generation,
            keys: status.keys as u64,
            errors: status.errors,
            connected: i32::from(status.connected),
            reserved: 0,
        };
        if let (Some(place), Some(error)) = (last_error, status.last_error) {
            *place = error::hand_out(error);
        }
        Ok(Status::OK)
    })
}
