//! What a chain says about its calls: explanations, the last ones kept, what a proposed rule would change.

use super::arguments;
use super::chain::{byway_chain, open, read_all};
use super::error::byway_error;
use super::guard::call;
use super::invocation::{self, byway_invocation};
use super::status::byway_status;
use super::text::{self, byway_text, is_text};
use crate::chain::explain::Difference;
use crate::chain::recent::RecentCall;
use crate::error::Status;
use core::ffi::c_char;

/// Routes a call and explains the result: per router what came in and went out, the rule's key, and for each dropped
/// provider the sentence that dropped it (counts, and the first 100 per reason). `format`: `BYWAY_FORMAT_*`. Host
/// routers are asked with `explaining` set.
///
/// Ownership: the caller owns the text.
/// Errors: what a host's router failed with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_explain(
    self_: *mut byway_chain,
    invocation: *const byway_invocation,
    format: i32,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let as_text = is_text(format)?;
        let chain = open(self_)?;
        let read = invocation::read(invocation)?;
        let explanation = chain.chain().explain(&read.as_call())?;
        *out = text::hand_out(if as_text { explanation.to_text() } else { explanation.to_json() });
        Ok(Status::OK)
    })
}

/// What a rule text would change for `count` calls, if it were set for `key`. `format`: `BYWAY_FORMAT_JSON` gives a list
/// of `{"call", "before", "after", "added", "removed", "emptied_before", "emptied_after", "failed"}`, per call how many
/// providers before and after, the tags that come and go, the router that leaves nobody, and how a script fails, which
/// then changes nothing; `BYWAY_FORMAT_TEXT` a line for each call that would change. `text` NULL with `text_len` 0
/// means: without the rule. Nothing is set, and no event or counter tells of it.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_NOT_FOUND` when the chain does not want the key; why the text is refused, with line and column;
/// what a host's router failed with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_diff(
    self_: *mut byway_chain,
    key: *const c_char,
    key_len: usize,
    text: *const c_char,
    text_len: usize,
    invocations: *const *const byway_invocation,
    count: usize,
    format: i32,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let as_text = is_text(format)?;
        let key = arguments::text(key, key_len, "key")?;
        let proposed = if text.is_null() && text_len == 0 {
            None
        } else {
            Some(arguments::text(text, text_len, "text")?)
        };
        let chain = open(self_)?;
        let reads = read_all(invocations, count)?;
        let calls: Vec<_> = reads.iter().map(|read| read.as_call()).collect();
        let differences = chain.chain().diff(key, proposed, &calls)?;
        *out = text::hand_out(if as_text {
            Difference::list_to_text(&differences)
        } else {
            Difference::list_to_json(&differences)
        });
        Ok(Status::OK)
    })
}

/// Keeps the last 32 calls of this chain from now on (`on` 1), or no longer (0), to be read by `byway_chain_recent`;
/// those kept so far go either way. Off at first, unless `BYWAY_CHAIN_KEEP_RECENT`. Costs nothing while it is off.
/// While it is on, results are not memoised and the worlds of the kept calls stay alive.
///
/// Threads: any; calls already running are not kept.
/// Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_keep_recent(
    self_: *mut byway_chain,
    on: i32,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        open(self_)?.chain().keep_recent(on != 0);
        Ok(Status::OK)
    })
}

/// The last 32 calls, oldest first, each explained as `byway_chain_explain` does, by the world that answered it and
/// the destinations it drew. `format`: `BYWAY_FORMAT_JSON` gives a list of
/// `{"number", "wall_ms", "explanation" | "error"}`, where `number` counts the calls since they are kept and `wall_ms`
/// is the engine's wall clock; `BYWAY_FORMAT_TEXT` the same for people. Nothing is kept, so the list is empty, until
/// `byway_chain_keep_recent`. Explanations are made here, not when the call was routed: host routers are asked now,
/// on this thread, with `explaining` set.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_ENUM`, `BYWAY_E_SHUTDOWN`. A host's router that fails now is told in its call's `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_chain_recent(
    self_: *mut byway_chain,
    format: i32,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let as_text = is_text(format)?;
        let calls = open(self_)?.chain().recent();
        *out = text::hand_out(if as_text {
            RecentCall::list_to_text(&calls)
        } else {
            RecentCall::list_to_json(&calls)
        });
        Ok(Status::OK)
    })
}
