//! `byway_chain`: routers over one provider list for one consumer.

use super::arguments::{self, Versioned};
use super::binding::BoundTo;
use super::choice::{self, byway_choice};
use super::engine::byway_engine;
use super::error::byway_error;
use super::guard::{self, Fail, call, call_bare, call_or};
use super::handle::{self, handle};
use super::invocation::{self, CallObject, byway_invocation};
use super::invokers::{InvokersHandle, byway_invokers};
use super::library::{Layout, layout};
use super::router::byway_router;
use super::status::byway_status;
use super::text::{self, byway_text};
use crate::chain::chain::Chain;
use crate::chain::names;
use crate::chain::pick::{Balance, Outcome, Picked, ProviderReport, Ticket};
use crate::chain::picking::Wish;
use crate::chain::plan::Plan;
use crate::chain::url::Url;
use crate::engine::Engine;
use crate::engine::routing::{ChainWish, RoutingChain};
use crate::error::{Error, Status};
use crate::rules::dialect::Dialect;
use crate::sys::record::{self, Record};
use crate::sys::slab::owned::Owned;
use core::ffi::c_char;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Routers over one provider list for one consumer. Rules and lists change while calls are routed: a call sees one
/// world, and readers never wait for writers.
pub struct byway_chain {
    _private: [u8; 0],
}

handle!(byway_chain, ChainHandle, 20, false);

/// The chain and the engine it lives in.
pub(crate) struct ChainHandle {
    /// Before the chain, so that it lets go first.
    pub(crate) binding: Mutex<Option<BoundTo>>,
    /// How often waiting binds were called off: one that sees another number than at its beginning ends.
    pub(crate) binds_canceled: AtomicU64,
    pub(crate) engine: Arc<Engine>,
    pub(crate) routing: Arc<RoutingChain>,
}

impl ChainHandle {
    #[inline]
    pub(crate) fn chain(&self) -> &Chain {
        self.routing.chain()
    }
}

/// An empty list does not end the chain: later routers still see it.
pub const BYWAY_CHAIN_RUN_ON: u32 = 1;
/// An empty list ends the chain, whatever the dialect does.
pub const BYWAY_CHAIN_FAIL_FAST: u32 = 2;
/// Results are not memoised.
pub const BYWAY_CHAIN_NO_MEMO: u32 = 4;
/// The last 32 calls are kept for `byway_chain_recent` from the start.
pub const BYWAY_CHAIN_KEEP_RECENT: u32 = 8;

/// How a chain differs from what its engine says. Start from `BYWAY_CHAIN_OPTIONS_INIT` or
/// `byway_chain_options_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_chain_options {
    /// `sizeof(byway_chain_options)`.
    pub struct_size: usize,
    /// `BYWAY_DIALECT_*`; -1 means the engine's.
    pub dialect: i32,
    /// `BYWAY_CHAIN_*` or 0.
    pub flags: u32,
    /// Bytes of memoised results one world may keep; 0 means 32 MiB.
    pub memo_bytes: u64,
}

// SAFETY: repr(C), size first, plain numbers.
unsafe impl Versioned for byway_chain_options {
    const FIRST_SIZE: usize = 24;
    const INIT: Self =
        byway_chain_options { struct_size: size_of::<Self>(), dialect: -1, flags: 0, memo_bytes: 0 };
}

/// Weighted random.
pub const BYWAY_BALANCE_RANDOM: i32 = 1;
/// Smooth weighted round robin.
pub const BYWAY_BALANCE_ROUND_ROBIN: i32 = 2;
/// Fewest calls in flight.
pub const BYWAY_BALANCE_LEAST_ACTIVE: i32 = 3;
/// Shortest response time.
pub const BYWAY_BALANCE_SHORTEST_RESPONSE: i32 = 4;
/// Same arguments, same provider.
pub const BYWAY_BALANCE_CONSISTENT_HASH: i32 = 5;
/// Of two at random the one with the lower load.
pub const BYWAY_BALANCE_P2C: i32 = 6;

/// Stay with the provider picked last as long as it can serve.
pub const BYWAY_PICK_STICKY: u32 = 1;
/// Do not, whatever the providers' `sticky` says.
pub const BYWAY_PICK_NOT_STICKY: u32 = 2;

/// What is asked of a pick. Start from `BYWAY_PICK_OPTIONS_INIT` or `byway_pick_options_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_pick_options {
    /// `sizeof(byway_pick_options)`.
    pub struct_size: usize,
    /// `BYWAY_BALANCE_*`; 0 means what the providers' `loadbalance` says, random otherwise.
    pub balance: i32,
    /// `BYWAY_PICK_*` or 0.
    pub flags: u32,
    /// One bit a row of the list, lowest bit of the first word first: 1 = can be called. NULL: all can.
    /// Scripts see it too, as `isAvailable`.
    pub available: *const u64,
    /// Words in `available`; rows behind them count as unavailable.
    pub available_words: usize,
    /// `byway_invokers_generation` of the list the rows belong to.
    pub available_list: u64,
    /// Tags tried before, for a retry. NULL: none.
    pub exclude: *const u64,
    /// How many.
    pub exclude_count: usize,
}

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_pick_options {
    const FIRST_SIZE: usize = 56;
    const INIT: Self = byway_pick_options {
        struct_size: size_of::<Self>(),
        balance: 0,
        flags: 0,
        available: core::ptr::null(),
        available_words: 0,
        available_list: 0,
        exclude: core::ptr::null(),
        exclude_count: 0,
    };
}

/// The provider picked.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_picked {
    /// Its tag.
    pub tag: u64,
    /// For `byway_chain_pick_end`; 0 when nothing needs to be ended.
    pub ticket: u64,
    /// Its row in the list.
    pub row: u64,
    /// 0 when nothing better than an unavailable provider was left, else 1.
    pub available: i32,
    /// 0.
    pub reserved: i32,
}

impl byway_picked {
    pub(crate) const NONE: Self = byway_picked { tag: 0, ticket: 0, row: 0, available: 0, reserved: 0 };
}

impl From<Picked> for byway_picked {
    fn from(picked: Picked) -> Self {
        byway_picked {
            tag: picked.tag,
            ticket: picked.ticket.0,
            row: u64::from(picked.row),
            available: i32::from(picked.available),
            reserved: 0,
        }
    }
}

/// How a picked call went. Start from `BYWAY_CALL_RESULT_INIT` or `byway_call_result_init`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_call_result {
    /// `sizeof(byway_call_result)`.
    pub struct_size: usize,
    /// 1: answered without a failure.
    pub ok: i32,
    /// 1: the provider reported about itself, the fields below are set.
    pub has_report: i32,
    /// Length of the call in nanoseconds; -1 = from pick to now.
    pub latency_ns: i64,
    /// The provider's wall clock in milliseconds (Dubbo's `curTime`).
    pub report_time_ms: i64,
    /// Its CPU load, on any scale all providers share (Dubbo's `load`).
    pub report_load: f64,
    /// Its own measure of the response time in milliseconds (Dubbo's `rt`).
    pub report_latency_ms: f64,
}

// SAFETY: repr(C), size first, plain numbers.
unsafe impl Versioned for byway_call_result {
    const FIRST_SIZE: usize = 48;
    const INIT: Self = byway_call_result {
        struct_size: size_of::<Self>(),
        ok: 1,
        has_report: 0,
        latency_ns: -1,
        report_time_ms: 0,
        report_load: 0.0,
        report_latency_ms: 0.0,
    };
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_chain_options { struct_size, dialect, flags, memo_bytes }),
    layout!(byway_pick_options {
        struct_size,
        balance,
        flags,
        available,
        available_words,
        available_list,
        exclude,
        exclude_count,
    }),
    layout!(byway_picked { tag, ticket, row, available, reserved }),
    layout!(byway_call_result {
        struct_size,
        ok,
        has_report,
        latency_ns,
        report_time_ms,
        report_load,
        report_latency_ms,
    }),
];

/// The dialect with a host's number.
pub(crate) fn dialect_of(number: i32, name: &'static str) -> Result<Dialect, Fail> {
    Dialect::from_number(number).ok_or(Fail::Parameter(Status::E_ENUM, name))
}

/// Pick options, checked.
pub(crate) struct PickRequest<'a> {
    balance: Option<Balance>,
    sticky: Option<bool>,
    available: Option<(&'a [u64], u64)>,
    exclude: &'a [u64],
}

impl PickRequest<'_> {
    pub(crate) fn read(options: *const byway_pick_options) -> Result<Self, Fail> {
        if options.is_null() {
            return Ok(PickRequest { balance: None, sticky: None, available: None, exclude: &[] });
        }
        let options = arguments::versioned(options, "options")?;
        let balance = match options.balance {
            0 => None,
            number => {
                Some(Balance::from_number(number).ok_or(Fail::Parameter(Status::E_ENUM, "options.balance"))?)
            }
        };
        let sticky = match options.flags {
            0 => None,
            BYWAY_PICK_STICKY => Some(true),
            BYWAY_PICK_NOT_STICKY => Some(false),
            _ => return Err(Fail::Parameter(Status::E_ENUM, "options.flags")),
        };
        let available = if options.available.is_null() {
            None
        } else {
            let words = arguments::array(options.available, options.available_words, "options.available")?;
            Some((words, options.available_list))
        };
        let exclude = arguments::array(options.exclude, options.exclude_count, "options.exclude")?;
        Ok(PickRequest { balance, sticky, available, exclude })
    }

    pub(crate) fn wish(&self) -> Wish<'_> {
        Wish { balance: self.balance, available: self.available, exclude: self.exclude, sticky: self.sticky }
    }
}

/// The chain behind a pointer, while its engine is open.
#[inline(always)]
pub(super) fn open<'a>(self_: *const byway_chain) -> Result<&'a ChainHandle, Fail> {
    let chain = handle::shared(self_, "self")?;
    chain.engine.check_open()?;
    Ok(chain)
}

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_options_init(options: *mut byway_chain_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_pick_options_init(options: *mut byway_pick_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// Sets every field to its default: a success whose length the engine measures, without a report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_call_result_init(result: *mut byway_call_result) {
    call_or((), || {
        arguments::init(result);
        Ok(())
    });
}

/// Makes a chain for a consumer URL (`consumer://host/interface?application=...`), with the built-in routers of its
/// dialect and the engine's routers, without providers. It follows the engine's rules, also those set before.
/// `options` may be NULL. The URL's host, and even its protocol, may be missing, as in Dubbo.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_INVALID_URL`; `BYWAY_E_RULE` when the URL carries a static rule that is unusable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_new(
    engine: *mut byway_engine,
    consumer_url: *const c_char,
    len: usize,
    options: *const byway_chain_options,
    out: *mut *mut byway_chain,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let engine = &handle::shared(engine, "engine")?.0;
        let options = arguments::versioned_or_default(options, "options")?;
        let url = arguments::text(consumer_url, len, "consumer_url")?;
        let named =
            |error: Error| if error.about().is_empty() { error.subject("consumer_url") } else { error };
        let consumer = Url::parse(url).map_err(named)?;
        let routing = engine.chain(consumer, &chain_wish(&options)?)?;
        let (binding, binds_canceled) = (Mutex::new(None), AtomicU64::new(0));
        let engine = Arc::clone(engine);
        *out = handle::hand_out(ChainHandle { binding, binds_canceled, engine, routing });
        Ok(Status::OK)
    })
}

fn chain_wish(options: &byway_chain_options) -> Result<ChainWish, Fail> {
    let known = BYWAY_CHAIN_RUN_ON | BYWAY_CHAIN_FAIL_FAST | BYWAY_CHAIN_NO_MEMO | BYWAY_CHAIN_KEEP_RECENT;
    let fail_fast = match options.flags & (BYWAY_CHAIN_RUN_ON | BYWAY_CHAIN_FAIL_FAST) {
        _ if options.flags & !known != 0 => return Err(Fail::Parameter(Status::E_ENUM, "options.flags")),
        0 => None,
        BYWAY_CHAIN_RUN_ON => Some(false),
        BYWAY_CHAIN_FAIL_FAST => Some(true),
        _ => return Err(Fail::Parameter(Status::E_ARGUMENT, "options.flags")),
    };
    Ok(ChainWish {
        dialect: match options.dialect {
            -1 => None,
            number => Some(dialect_of(number, "options.dialect")?),
        },
        fail_fast,
        keep_recent: options.flags & BYWAY_CHAIN_KEEP_RECENT != 0,
        memo_bytes: match options.memo_bytes {
            _ if options.flags & BYWAY_CHAIN_NO_MEMO != 0 => Some(0),
            0 => None,
            bytes => Some(usize::try_from(bytes).unwrap_or(usize::MAX)),
        },
    })
}

/// One more reference; returns its argument, NULL for what is not a live chain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_retain(self_: *mut byway_chain) -> *mut byway_chain {
    call_or(core::ptr::null_mut(), || handle::retain(self_))
}

/// One reference less. Sessions and choices keep what they need. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_release(self_: *mut byway_chain) {
    call_or((), || {
        handle::release(self_);
        Ok(())
    });
}

/// Gives the chain another provider list. When the call returns, calls route over it, under the rules in force then.
/// `*generation` (may be NULL) gets the number of a world that has the list.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_set_invokers(
    self_: *mut byway_chain,
    invokers: *mut byway_invokers,
    generation: *mut u64,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let generation = arguments::out_optional(generation, 0);
        let chain = open(self_)?;
        chain.chain().set_invokers(Arc::clone(&handle::shared(invokers, "invokers")?.0));
        if let Some(generation) = generation {
            *generation = chain.chain().generation();
        }
        Ok(Status::OK)
    })
}

/// The provider list calls route over now: the one given last, or a bound source's.
///
/// Ownership: the caller owns one reference.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_invokers(
    self_: *mut byway_chain,
    out: *mut *mut byway_invokers,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        *out = handle::hand_out(InvokersHandle(open(self_)?.chain().invokers()));
        Ok(Status::OK)
    })
}

/// Adds a host's router. When the call returns, calls ask it.
///
/// Errors: `BYWAY_E_DUPLICATE` when the chain has a router of its name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_add_router(
    self_: *mut byway_chain,
    router: *mut byway_router,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let chain = open(self_)?;
        let mut slot = handle::shared(router, "router")?.slot.clone();
        slot.by_default = true;
        chain.routing.add_router(slot)?;
        // Other routers may want other keys.
        if let Some(bound) = &*chain.binding.lock() {
            bound.binding.refresh();
        }
        Ok(Status::OK)
    })
}

/// Replaces the chain's static rules by those in `count` URLs, as a registry notifies them: `condition://...?rule=...`,
/// `script://...?type=javascript&rule=...`, `route://...` with `router=condition` or `script`, `file:///path/name.js`
/// (or with `router=condition`), whose file is read here, watched, and read again whenever it changes. `rule` is
/// percent-encoded; `priority` says where the router stands, `pure=true` that a script's answers may be kept. An
/// `empty://` URL is skipped, so `count` 0 or an `empty://` alone takes all away.
///
/// Errors: the first unusable URL, named by its index; nothing changes then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_set_rule_urls(
    self_: *mut byway_chain,
    urls: *const arguments::byway_str,
    count: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let chain = open(self_)?;
        let urls = arguments::array(urls, count, "urls")?;
        let texts: Result<Vec<&str>, Fail> =
            urls.iter().map(|url| arguments::text_of(*url, "urls")).collect();
        chain.routing.set_rule_urls(texts?)?;
        Ok(Status::OK)
    })
}

/// Routes a call.
///
/// Ownership: the caller owns the choice; free with `byway_choice_free`.
/// Errors: what a host's router failed with. An empty result is no error, see `byway_choice_emptied_by`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_route(
    self_: *mut byway_chain,
    invocation: *const byway_invocation,
    out: *mut *mut byway_choice,
    err: *mut *mut byway_error,
) -> byway_status {
    // What the thread has at hand is enough for an answer that was given before.
    let (remembered, waiting) = call_bare((None, None), || {
        // SAFETY: by the header's contract `out` and `err` are NULL or a place for one pointer.
        let (Some(out), err) = (unsafe { (out.as_mut(), err.as_mut()) }) else { return Ok((None, None)) };
        let (chain, record, stamp) = known(self_, invocation)?;
        let (plan, place) = match chain.recall(record, stamp, |plan| place_in(plan, invocation)) {
            Ok(known) => known,
            Err(waiting) => return Ok((None, waiting)),
        };
        match choice::hand_out_here(record, plan, place) {
            Ok(handle) => *out = handle,
            Err(plan) => return Ok((None, plan.give_back())),
        }
        if let Some(err) = err {
            *err = core::ptr::null_mut();
        }
        Ok((Some(Status::OK.0), None))
    });
    if let Some(status) = remembered {
        return status;
    }
    waiting.into_iter().for_each(choice::sweep);
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let chain = open(self_)?;
        let read = invocation::read(invocation)?;
        *out = choice::hand_out(chain.chain().route(&read.as_call())?);
        Ok(Status::OK)
    })
}

/// What a call that was answered before needs: an open chain, what the thread has at hand, and the call's stamp.
#[inline(always)]
fn known<'a>(
    self_: *const byway_chain,
    invocation: *const byway_invocation,
) -> Result<(&'a Chain, &'static Record, u64), Fail> {
    let chain = open(self_)?;
    let (Some(stamp), Some(record)) = (handle::glance(invocation), record::try_current()) else {
        return Err(Fail::Status(Status::E_STATE));
    };
    Ok((chain.chain(), record, stamp))
}

/// The place of a call in a world, by its text.
fn place_in(plan: &Plan, invocation: *const byway_invocation) -> Option<u32> {
    let read = invocation::read(invocation).ok()?;
    let place = plan.quick_place(&read.as_call());
    read.done();
    place
}

/// Routes a call and copies the tags of the providers that may serve it, in list order: as many as fit into `cap`, and
/// how many there are into `*total`. `(NULL, 0)` counts. `*generation` (may be NULL) gets the number of the world that
/// answered.
///
/// Errors: what a host's router failed with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_route_tags(
    self_: *mut byway_chain,
    invocation: *const byway_invocation,
    tags: *mut u64,
    cap: usize,
    total: *mut usize,
    generation: *mut u64,
    err: *mut *mut byway_error,
) -> byway_status {
    let (remembered, waiting) = call_bare((None, None), || {
        let (chain, record, stamp) = known(self_, invocation)?;
        let room = arguments::room(tags, cap, "tags")?;
        Ok(chain.recall_tags(record, stamp, |plan| place_in(plan, invocation), room))
    });
    waiting.into_iter().for_each(choice::sweep);
    if let Some((count, world)) = remembered {
        return tell(count, world, total, generation, err);
    }
    call(err, || {
        let (total, generation) = (arguments::out_optional(total, 0), arguments::out_optional(generation, 0));
        let room = arguments::room(tags, cap, "tags")?;
        let chain = open(self_)?;
        let read = invocation::read(invocation)?;
        let (count, world) = chain.chain().route_tags(&read.as_call(), room)?;
        if let Some(total) = total {
            *total = count;
        }
        if let Some(generation) = generation {
            *generation = world;
        }
        Ok(Status::OK)
    })
}

/// Fills the outputs of a call whose tags were copied.
#[inline(always)]
pub(super) fn tell(
    count: usize,
    world: u64,
    total: *mut usize,
    generation: *mut u64,
    err: *mut *mut byway_error,
) -> byway_status {
    arguments::out_optional(total, count);
    arguments::out_optional(generation, world);
    arguments::out_optional(err, core::ptr::null_mut());
    Status::OK.0
}

/// Routes `count` calls over one world. `totals[i]` gets how many providers may serve call `i`, and `tags + i * cap`
/// as many of their tags as fit into `cap`. `tags` may be NULL with `cap` 0.
///
/// Errors: what a host's router failed with, for the first call that failed; those before it have been answered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_route_many(
    self_: *mut byway_chain,
    invocations: *const *const byway_invocation,
    count: usize,
    tags: *mut u64,
    cap: usize,
    totals: *mut usize,
    generation: *mut u64,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let generation = arguments::out_optional(generation, 0);
        let totals = arguments::room(totals, count, "totals")?;
        totals.fill(0);
        let cells = cap.checked_mul(count).ok_or(Fail::Parameter(Status::E_ARGUMENT, "cap"))?;
        let room = arguments::room(tags, cells, "tags")?;
        let chain = open(self_)?;
        let reads = read_all(invocations, count)?;
        let calls: Vec<_> = reads.iter().map(|read| read.as_call()).collect();
        let mut session = chain.chain().session();
        let mut world = 0;
        session.route_many(&calls, |index, view| {
            world = view.generation();
            if let Some(total) = totals.get_mut(index) {
                *total = view.len();
            }
            if let Some(place) = room.get_mut(index * cap..(index + 1) * cap) {
                view.tags_into(place);
            }
        })?;
        if let Some(generation) = generation {
            *generation = if count == 0 { chain.chain().generation() } else { world };
        }
        Ok(Status::OK)
    })
}

/// Routes a call and picks one provider: the sticky one, else the load balance's choice, and if that was tried before
/// or cannot be called, another one. `options` may be NULL.
///
/// Errors: `BYWAY_E_NO_INVOKER`, naming the router that left nothing; `BYWAY_E_STATE` when `available` was noted for
/// another list; `BYWAY_E_INVOKERS` when the providers name an unknown load balance or an unusable hash ring; what a
/// host's router failed with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_pick(
    self_: *mut byway_chain,
    invocation: *const byway_invocation,
    options: *const byway_pick_options,
    out: *mut byway_picked,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, byway_picked::NONE, "out")?;
        let chain = open(self_)?;
        let request = PickRequest::read(options)?;
        let read = invocation::read(invocation)?;
        *out = byway_picked::from(chain.chain().pick(&read.as_call(), &request.wish())?);
        Ok(Status::OK)
    })
}

/// Ends a call picked through any chain of this engine, so that calls in flight and response times are known. `ok` 1 =
/// answered without a failure; `latency_ns` negative = from pick to now. A ticket of 0, one ended before or one of a
/// provider that is gone does no harm: `BYWAY_DONE`.
///
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_pick_end(
    self_: *mut byway_chain,
    ticket: u64,
    ok: i32,
    latency_ns: i64,
) -> byway_status {
    guard::call_quiet(|| {
        let chain = open(self_)?;
        let outcome = Outcome { ok: ok != 0, latency_ns: u64::try_from(latency_ns).ok(), report: None };
        Ok(ended(chain.chain().pick_end(Ticket(ticket), &outcome)))
    })
}

/// As `byway_chain_pick_end`, with what the provider reported about itself.
///
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_pick_end_with(
    self_: *mut byway_chain,
    ticket: u64,
    result: *const byway_call_result,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let chain = open(self_)?;
        let result = arguments::versioned(result, "result")?;
        let report = ProviderReport {
            time_ms: result.report_time_ms,
            load: result.report_load,
            latency_ms: result.report_latency_ms,
        };
        let outcome = Outcome {
            ok: result.ok != 0,
            latency_ns: u64::try_from(result.latency_ns).ok(),
            report: (result.has_report != 0).then_some(report),
        };
        Ok(ended(chain.chain().pick_end(Ticket(ticket), &outcome)))
    })
}

fn ended(ended: bool) -> Status {
    if ended { Status::OK } else { Status::DONE }
}

pub(super) fn read_all<'a>(
    invocations: *const *const byway_invocation,
    count: usize,
) -> Result<Vec<Owned<'a, CallObject>>, Fail> {
    let invocations = arguments::array(invocations, count, "invocations")?;
    invocations.iter().map(|invocation| invocation::read(*invocation)).collect()
}

/// Keys of the rules the chain wants at the moment, one a line, in router order. They depend on the first provider's
/// application.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_keys(
    self_: *mut byway_chain,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let keys = open(self_)?.chain().keys();
        *out = text::hand_out(keys.iter().map(|key| format!("{key}\n")).collect());
        Ok(Status::OK)
    })
}

/// How each router stands, as JSON: name, priority, key, revision, version, in force, last error with its place.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_status(
    self_: *mut byway_chain,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        *out = text::hand_out(open(self_)?.routing.status_json());
        Ok(Status::OK)
    })
}

/// Number of the current world; grows with every change of list, rules or routers. 0 for what is not a live chain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_generation(self_: *const byway_chain) -> u64 {
    call_bare(0, || Ok(handle::shared(self_, "self")?.chain().generation()))
}

/// Gives a method name a number for `byway_invocation_set_method_id`. The same name has the same number in every chain
/// of the process, for ever. Meant for the methods of an interface, not for names from the network.
///
/// Errors: `BYWAY_E_ARGUMENT` for an empty or over-long name, `BYWAY_E_LIMIT` after 65 536 names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_intern_method(
    self_: *mut byway_chain,
    name: *const c_char,
    len: usize,
    method_id: *mut u32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(method_id, 0, "method_id")?;
        open(self_)?;
        let name = arguments::bytes(name, len, "name")?;
        *out = names::intern(name).map_err(|error| error.subject("name"))?;
        Ok(Status::OK)
    })
}
