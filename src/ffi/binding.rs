//! Chains that follow a source.

use super::arguments::{self, Versioned, byway_str};
use super::callbacks::{self, Callbacks, Set};
use super::chain::{ChainHandle, byway_chain};
use super::error::{self, byway_error};
use super::guard::{Fail, call, call_or, status_bare};
use super::handle;
use super::library::{Layout, layout};
use super::queue::{BYWAY_COMPLETION_SOURCE, byway_queue};
use super::source::{byway_source, until};
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::engine::Engine;
use crate::engine::first_state::FirstState;
use crate::error::{Error, Status};
use crate::runtime::queue::{Completion, Queue};
use crate::source::bind::{BindEvent, BindOptions, Binding, Discovery, EmptyProtection};
use core::ffi::c_void;
use core::ptr::NonNull;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A list whose place in the centre is gone is kept (a replaced or wiped server deletes places, nobody else does); a
/// place that is there and empty empties the list.
pub const BYWAY_EMPTY_PROTECTION_VANISHED: i32 = 0;
/// Both are kept, as Dubbo's `enable-empty-protection=true`; only `empty://` empties.
pub const BYWAY_EMPTY_PROTECTION_ON: i32 = 1;
/// Both empty the list, as Dubbo without protection.
pub const BYWAY_EMPTY_PROTECTION_OFF: i32 = 2;

/// Providers are looked for under the interface, and while nobody is there, by application.
pub const BYWAY_DISCOVERY_AUTO: i32 = 0;
/// Under the interface only.
pub const BYWAY_DISCOVERY_INTERFACE: i32 = 1;
/// By application only.
pub const BYWAY_DISCOVERY_APPLICATION: i32 = 2;

/// Follow the rules only: the host gives the provider list itself.
pub const BYWAY_BIND_RULES_ONLY: u32 = 1;
/// When another source takes the place of one, or none does: the providers stay in the chain.
pub const BYWAY_BIND_KEEP_LIST: u32 = 2;

/// The first world is in force.
pub const BYWAY_SOURCE_EVENT_READY: i32 = 0;
/// The source is kept up to date, again.
pub const BYWAY_SOURCE_EVENT_CONNECTED: i32 = 1;
/// The source is away (`error`, which may be NULL), also when it was not reached at the first try; the last world stays.
pub const BYWAY_SOURCE_EVENT_DISCONNECTED: i32 = 2;
/// Another world is in force; `worlds` counts them.
pub const BYWAY_SOURCE_EVENT_CHANGED: i32 = 3;
/// A rule, override or entry was refused (`error`; `subject` names it); what was in force stays.
pub const BYWAY_SOURCE_EVENT_REFUSED: i32 = 4;
/// The list has become empty in the centre and is kept.
pub const BYWAY_SOURCE_EVENT_KEPT: i32 = 5;

/// One event of a bound chain. Everything is borrowed until the callback returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_source_event {
    /// `sizeof(byway_source_event)` of the library; grows at the end.
    pub struct_size: usize,
    /// Worlds put in force so far; 0 where it does not belong.
    pub worlds: u64,
    /// What was refused, or empty.
    pub subject: byway_str,
    /// Why, or NULL.
    pub error: *const byway_error,
    /// `BYWAY_SOURCE_EVENT_*`.
    pub kind: i32,
    /// Status of `error`, or 0.
    pub status: byway_status,
}

/// Who hears of a bound chain's events.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_source_callbacks {
    /// `sizeof(byway_source_callbacks)`.
    pub struct_size: usize,
    /// First argument of the function.
    pub user_data: *mut c_void,
    /// Runs once when the set is no longer in use. May be NULL.
    pub destroy: callbacks::byway_destroy,
    /// One event, on the thread that polls the queue. Of events of one kind about one subject that wait for the poll
    /// only the newest arrives.
    pub on_event:
        Option<unsafe extern "C-unwind" fn(user_data: *mut c_void, event: *const byway_source_event)>,
}

// SAFETY: repr(C), size first; a null function pointer is `None` and any other bits are the host's promise.
unsafe impl Versioned for byway_source_callbacks {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_source_callbacks {
        struct_size: size_of::<Self>(),
        user_data: core::ptr::null_mut(),
        destroy: None,
        on_event: None,
    };
}

// SAFETY: begins with size, user_data and destroy.
unsafe impl Callbacks for byway_source_callbacks {}

/// How a chain is bound. Start from `BYWAY_BIND_OPTIONS_INIT` or `byway_bind_options_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_bind_options {
    /// `sizeof(byway_bind_options)`.
    pub struct_size: usize,
    /// `BYWAY_BIND_*` or 0.
    pub flags: u32,
    /// `BYWAY_EMPTY_PROTECTION_*`.
    pub empty_protection: i32,
    /// `BYWAY_DISCOVERY_*`.
    pub discovery: i32,
    /// 0.
    pub reserved: i32,
    /// Where events and the completion record go; NULL: the engine's. Retained.
    pub queue: *mut byway_queue,
    /// The host's own number, echoed in the completion record.
    pub tag: u64,
}

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_bind_options {
    const FIRST_SIZE: usize = core::mem::offset_of!(Self, tag);
    const INIT: Self = byway_bind_options {
        struct_size: size_of::<Self>(),
        flags: 0,
        empty_protection: BYWAY_EMPTY_PROTECTION_VANISHED,
        discovery: BYWAY_DISCOVERY_AUTO,
        reserved: 0,
        queue: core::ptr::null_mut(),
        tag: 0,
    };
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_source_event { struct_size, worlds, subject, error, kind, status }),
    layout!(byway_source_callbacks { struct_size, user_data, destroy, on_event }),
    layout!(byway_bind_options { struct_size, flags, empty_protection, discovery, reserved, queue, tag }),
];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_bind_options_init(options: *mut byway_bind_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// Has a chain follow a source: its rules, and unless `BYWAY_BIND_RULES_ONLY` its providers, overrides and static routers.
/// All of it takes effect as one world. The last one stays while the source is away. NULL unbinds: what the source gave
/// is taken back, the providers only without `BYWAY_BIND_KEEP_LIST`; a list the host has set itself stays. A chain that was bound before leaves its old
/// source, without a gap, when the new one has given its first state. `options` and `callbacks` (who hears of events)
/// may be NULL.
///
/// Tags of providers from a source are byway's: a provider keeps its tag as long as it is there;
/// `byway_invokers_url` of a choice's list names it.
///
/// `timeout_ms` is how long to wait for the first state: 0 = not at all, negative = the engine's default. `BYWAY_PENDING`
/// says that it has not come by then; it comes later, and is followed by exactly one `BYWAY_COMPLETION_SOURCE` record on
/// the binding's queue: status 0 when the first world is in force, `BYWAY_E_CANCELED` when the chain is unbound or bound
/// anew before, `BYWAY_E_SHUTDOWN`. Until then the source the chain was bound to before goes on serving.
/// Ownership: the callbacks are taken over, also when the call fails.
/// Threads: any; on the thread that polls a queue marked as a loop it must not have to wait.
/// Errors: `BYWAY_E_CANCELED` when `byway_chain_cancel_bind` or unbinding ended the wait, `BYWAY_E_WOULD_DEADLOCK`,
/// `BYWAY_E_LIMIT` when the queue has no room for a record, `BYWAY_E_ENUM`,
/// `BYWAY_E_NULL` without `on_event`, `BYWAY_E_SHUTDOWN`; nothing is bound then, and what was bound stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_bind_source(
    self_: *mut byway_chain,
    source: *mut byway_source,
    options: *const byway_bind_options,
    callbacks: *const byway_source_callbacks,
    timeout_ms: i64,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let canceled =
            handle::shared(self_, "self").map_or(0, |chain| chain.binds_canceled.load(Ordering::SeqCst));
        let (chain, set) = match take_over(self_, callbacks)? {
            (chain, Some(set)) if set.raw().on_event.is_none() => {
                drop((chain, set));
                return Err(Fail::Parameter(Status::E_NULL, "callbacks.on_event"));
            }
            taken => taken,
        };
        let options = arguments::versioned_or_default(options, "options")?;
        if options.flags & !(BYWAY_BIND_RULES_ONLY | BYWAY_BIND_KEEP_LIST) != 0 {
            return Err(Fail::Parameter(Status::E_ENUM, "options.flags"));
        }
        if source.is_null() {
            chain.binds_canceled.fetch_add(1, Ordering::SeqCst);
            let before = chain.binding.lock().take();
            if let Some(before) = before {
                before.unbind(options.flags & BYWAY_BIND_KEEP_LIST != 0);
            }
            return Ok(Status::OK);
        }
        let source = Arc::clone(&handle::shared(source, "source")?.source);
        let queue = match NonNull::new(options.queue) {
            Some(queue) => Arc::clone(&handle::shared(queue.as_ptr(), "options.queue")?.0),
            None => Arc::clone(chain.engine.queue()),
        };
        let mut bind = bind_options(&options, chain, set, &queue)?;
        let record = Completion { tag: options.tag, kind: BYWAY_COMPLETION_SOURCE, ..Completion::default() };
        let first = FirstState::expect(&chain.engine, &queue, record)?;
        bind.events = Some(first.watch(bind.events.take()));
        let binding = chain.routing.bind(source, bind);
        let (binding, is_there) =
            wait_for(binding, chain, canceled, &queue, timeout_ms).inspect_err(|_| first.forget())?;
        let mut place = chain.binding.lock();
        let mut before = place.take().and_then(BoundTo::serving);
        // Before others see the new binding: who ends it ends what serves in its place.
        let awaited = first.is_awaited(is_there, &mut before);
        *place = Some(BoundTo { binding, first });
        drop(place);
        if let Some(before) = before {
            // The new source's list is in force: the old one must not be taken out of the chain.
            before.unbind(true);
        }
        Ok(if awaited { Status::PENDING } else { Status::OK })
    })
}

/// Ends every `byway_chain_bind_source` that is waiting on this chain now, within some 50 ms: `BYWAY_E_CANCELED`, and the
/// chain follows what it followed before. Sticky for calls that have begun, nothing to later ones, nor to those that have
/// answered `BYWAY_PENDING`, which unbinding ends. A call whose first state has just come ends with success.
///
/// Threads: any, at any time, also from a signal handler.
/// Errors: `BYWAY_E_BAD_HANDLE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_cancel_bind(self_: *mut byway_chain) -> byway_status {
    status_bare(|| {
        handle::shared(self_, "self")?.binds_canceled.fetch_add(1, Ordering::SeqCst);
        Ok(Status::OK)
    })
}

/// Waits for the first state, as long as the caller says and nobody calls it off since the count was `canceled`; whether
/// it is there. After an error the chain is as if the binding had never been.
fn wait_for(
    mut binding: Binding,
    chain: &ChainHandle,
    canceled: u64,
    queue: &Queue,
    timeout_ms: i64,
) -> Result<(Binding, bool), Fail> {
    let end = Instant::now().checked_add(until(timeout_ms, &chain.engine));
    let mut ready = binding.wait_ready(Duration::ZERO).is_ok();
    let mut stop = (!ready && timeout_ms != 0 && queue.would_deadlock()).then_some(Status::E_WOULD_DEADLOCK);
    while !ready && timeout_ms != 0 {
        if chain.binds_canceled.load(Ordering::SeqCst) != canceled {
            stop = Some(Status::E_CANCELED);
        }
        if let Some(why) = stop {
            match binding.abandon() {
                Ok(()) => return Err(why.into()),
                // Its first state has just come.
                Err(it) => (binding, ready) = (it, true),
            }
            break;
        }
        chain.engine.check_open()?;
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        // In slices, so that a shutdown is seen, and what a signal handler said, which may wake nobody.
        ready = binding.wait_ready(left.min(Duration::from_millis(50))).is_ok();
    }
    Ok((binding, ready))
}

/// What a chain is bound to.
pub(crate) struct BoundTo {
    pub(crate) binding: Binding,
    first: Arc<FirstState>,
}

impl BoundTo {
    /// Ends it, and what still serves in its place.
    fn unbind(self, keep_list: bool) {
        if let Some(before) = self.first.take_before() {
            before.unbind(keep_list);
        }
        self.binding.unbind(keep_list);
    }

    /// Another source takes its place: what serves until that has given its first state.
    fn serving(self) -> Option<Binding> {
        let Some(before) = self.first.take_before() else { return Some(self.binding) };
        self.binding.unbind(true);
        Some(before)
    }
}

type EventSet = Arc<Set<byway_source_callbacks>>;

/// The chain, and the callbacks if there are any, whose `destroy` is owed from here on.
fn take_over<'a>(
    self_: *mut byway_chain,
    callbacks: *const byway_source_callbacks,
) -> Result<(&'a ChainHandle, Option<EventSet>), Fail> {
    let open = handle::shared(self_, "self").and_then(|chain| {
        chain.engine.check_open()?;
        Ok(chain)
    });
    let chain = open.inspect_err(|_| callbacks::destroy_refused(callbacks))?;
    match callbacks.is_null() {
        true => Ok((chain, None)),
        false => Ok((chain, Some(Set::register_in(callbacks, &chain.engine, "callbacks")?))),
    }
}

fn bind_options(
    options: &byway_bind_options,
    chain: &ChainHandle,
    set: Option<EventSet>,
    queue: &Arc<Queue>,
) -> Result<BindOptions, Fail> {
    let mut bind = BindOptions {
        empty_protection: EmptyProtection::from_number(options.empty_protection)
            .ok_or(Fail::Parameter(Status::E_ENUM, "options.empty_protection"))?,
        discovery: Discovery::from_number(options.discovery)
            .ok_or(Fail::Parameter(Status::E_ENUM, "options.discovery"))?,
        rules_only: options.flags & BYWAY_BIND_RULES_ONLY != 0,
        events: None,
    };
    let Some(set) = set else { return Ok(bind) };
    let (engine, inbox) = (Arc::downgrade(&chain.engine), Arc::clone(queue));
    // Keys of waiting events: one per binding, kind and subject.
    let keys = RandomState::new();
    bind.events = Some(Arc::new(move |event: &BindEvent| {
        let subject = match event {
            BindEvent::Refused(error) => error.about().to_owned(),
            _ => String::new(),
        };
        let key = keys.hash_one((kind_of(event), subject)) | 1;
        let (set, engine, event) = (Arc::clone(&set), Weak::clone(&engine), event.clone());
        let Some(owner) = engine.upgrade() else { return };
        owner.tell_later(&inbox, key, Box::new(move || deliver(&set, &engine, &event)));
    }));
    Ok(bind)
}

fn kind_of(event: &BindEvent) -> i32 {
    match event {
        BindEvent::Ready => BYWAY_SOURCE_EVENT_READY,
        BindEvent::Connected => BYWAY_SOURCE_EVENT_CONNECTED,
        // Connected and lost are two sides of one state, but a host may want to know of both.
        BindEvent::Disconnected(_) => BYWAY_SOURCE_EVENT_DISCONNECTED,
        BindEvent::Changed(_) => BYWAY_SOURCE_EVENT_CHANGED,
        BindEvent::Refused(_) => BYWAY_SOURCE_EVENT_REFUSED,
        BindEvent::Kept => BYWAY_SOURCE_EVENT_KEPT,
    }
}

fn deliver(set: &Set<byway_source_callbacks>, engine: &Weak<Engine>, event: &BindEvent) {
    let (Some(on_event), Some(engine)) = (set.raw().on_event, engine.upgrade()) else { return };
    if engine.check_open().is_err() {
        return;
    }
    let why = match event {
        BindEvent::Refused(error) => Some(error),
        BindEvent::Disconnected(error) => error.as_ref(),
        _ => None,
    };
    let mut subject = why.map(|error| error.about().to_owned()).unwrap_or_default();
    subject.push('\0');
    let error = why.map_or(core::ptr::null_mut(), |error| error::hand_out(error.clone()));
    let record = byway_source_event {
        struct_size: size_of::<byway_source_event>(),
        worlds: match event {
            BindEvent::Changed(worlds) => *worlds,
            _ => 0,
        },
        subject: byway_str { data: subject.as_ptr().cast(), len: subject.len() - 1 },
        error,
        kind: kind_of(event),
        status: why.map_or(0, |error| error.status().0),
    };
    // SAFETY: the host gave this function for this pointer; the record and what it shows live until it returns.
    let _ = engine.host_call(0, || unsafe { on_event(set.user_data(), &raw const record) });
    handle::free(error);
}

/// How a bound chain stands, as JSON: whether it is ready, the topics it follows, worlds so far, providers, whether the
/// list is kept, what was refused last, and how its source stands.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_STATE` when it is not bound, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_bind_status(
    self_: *mut byway_chain,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let chain = handle::shared(self_, "self")?;
        chain.engine.check_open()?;
        let status = chain.binding.lock().as_ref().map(|bound| bound.binding.status());
        let Some(status) = status else {
            return Err(Error::new(Status::E_STATE, "the chain is not bound to a source")
                .subject("self")
                .into());
        };
        *out = text::hand_out(status.to_json());
        Ok(Status::OK)
    })
}
