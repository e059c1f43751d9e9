//! Rules by key, and what can be said of a rule text without a chain.

use super::arguments;
use super::chain::dialect_of;
use super::engine::byway_engine;
use super::error::byway_error;
use super::guard::{Fail, call};
use super::handle;
use super::invokers::byway_invokers;
use super::status::byway_status;
use super::text::{self, byway_text, is_text};
use crate::error::{Error, Status};
use crate::rules::dialect::service_rule_key;
use crate::rules::{RuleKind, TextKind, lint, report};
use core::ffi::c_char;

/// byway's own reading: Dubbo Java 3.3 for well-formed rules, right where it is plainly wrong.
pub const BYWAY_DIALECT_BYWAY: i32 = 0;
/// Exactly as Dubbo Java 3.3.
pub const BYWAY_DIALECT_DUBBO_3: i32 = 1;
/// Exactly as Dubbo Java 2.7.
pub const BYWAY_DIALECT_DUBBO_2_7: i32 = 2;
/// Exactly as dubbo-go 3.3.
pub const BYWAY_DIALECT_DUBBO_GO: i32 = 3;

/// Conditions of a service, application or provider application: `.condition-router`.
pub const BYWAY_RULE_CONDITION: i32 = 0;
/// Tags of a provider application: `.tag-router`.
pub const BYWAY_RULE_TAG: i32 = 1;
/// Affinity of a service or provider application: `.affinity-router`.
pub const BYWAY_RULE_AFFINITY: i32 = 2;
/// VirtualService and DestinationRule of a provider application: `.MESHAPPRULE`.
pub const BYWAY_RULE_MESH: i32 = 3;
/// A script of a provider application: `.script-router`.
pub const BYWAY_RULE_SCRIPT: i32 = 4;

/// Sets the text of the rule with this key, whether or not a chain wants it yet. When the call returns, every chain
/// that wants the key routes by it; routes running meanwhile see the world before or after, never a mixture.
///
/// Errors: `BYWAY_E_NOT_FOUND` when no kind of rule has such keys; otherwise why the text was refused, with line and
/// column. A refused text leaves the last good rule in force (unless the dialect drops it).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_set_rule(
    self_: *mut byway_engine,
    key: *const c_char,
    key_len: usize,
    text: *const c_char,
    text_len: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let engine = &handle::shared(self_, "self")?.0;
        engine.check_open()?;
        let key = arguments::text(key, key_len, "key")?;
        engine.routing().rules().put(key, arguments::text(text, text_len, "text")?)?;
        Ok(Status::OK)
    })
}

/// Removes the rule with this key from every chain.
///
/// Errors: `BYWAY_E_NOT_FOUND` when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_engine_remove_rule(
    self_: *mut byway_engine,
    key: *const c_char,
    key_len: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let engine = &handle::shared(self_, "self")?.0;
        engine.check_open()?;
        let key = arguments::text(key, key_len, "key")?;
        if engine.routing().rules().remove(key) {
            return Ok(Status::OK);
        }
        Err(Error::new(Status::E_NOT_FOUND, "there is no rule with this key").subject(key).into())
    })
}

fn kind_of(kind: i32) -> Result<TextKind, Fail> {
    TextKind::from_number(kind).ok_or(Fail::Parameter(Status::E_ENUM, "kind"))
}

/// The key under which a configuration centre holds a rule of this kind (`BYWAY_RULE_*`) for a service:
/// `interface:[version]:[group]` and the kind's suffix. `version` and `group` may be empty. With an `application` and
/// no `interface` it is the application's key.
///
/// Ownership: the caller owns the text.
/// Errors: `BYWAY_E_ENUM`; `BYWAY_E_ARGUMENT` when neither or both are given, or for tag, mesh and script rules of a
/// service.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_rule_key(
    dialect: i32,
    kind: i32,
    application: *const c_char,
    application_len: usize,
    interface: *const c_char,
    interface_len: usize,
    version: *const c_char,
    version_len: usize,
    group: *const c_char,
    group_len: usize,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let (dialect, kind) = (dialect_of(dialect, "dialect")?, kind_of(kind)?);
        let application = arguments::text(application, application_len, "application")?;
        let interface = arguments::text(interface, interface_len, "interface")?;
        let version = arguments::text(version, version_len, "version")?;
        let group = arguments::text(group, group_len, "group")?;
        let refused = |why: &str| Fail::from(Error::new(Status::E_ARGUMENT, why).subject("interface"));
        let key = match (application.is_empty(), interface.is_empty()) {
            (false, true) => format!("{application}{}", kind.suffix()),
            (true, false) => match kind {
                TextKind::Of(kind) if kind != RuleKind::Tag => {
                    service_rule_key(dialect, kind, interface, version, group)
                }
                _ => {
                    let what = kind.suffix();
                    let why = format!("rules under {what} belong to an application, not to a service");
                    return Err(refused(&why));
                }
            },
            _ => return Err(refused("give either an interface or an application")),
        };
        *out = text::hand_out(key);
        Ok(Status::OK)
    })
}

/// Everything that is wrong with a rule text of a kind (`BYWAY_RULE_*`) under a dialect (`BYWAY_DIALECT_*`), or looks
/// wrong, in text order. `format`: `BYWAY_FORMAT_TEXT` gives a line each, as compilers write them; `BYWAY_FORMAT_JSON`:
/// `{"refused": bool, "problems": [{"severity": "error" | "warning" | "hint", "line", "column", "offset", "message"}]}`.
/// Lines and columns count from 1, the offset bytes from 0. `refused` is what `byway_engine_set_rule` would do.
///
/// `providers` may be NULL; with a list, conditions, tags, addresses and subsets that none of them fits are named too.
/// A script is compiled, not run; its syntax errors have their place in the rule's text. A library without the feature
/// `script` reads the text around it.
///
/// Ownership: the caller owns the text. Any thread.
/// Errors: `BYWAY_E_ENUM`; a rule with errors is no error here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_rule_check(
    dialect: i32,
    kind: i32,
    text: *const c_char,
    text_len: usize,
    providers: *const byway_invokers,
    format: i32,
    out: *mut *mut byway_text,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let (dialect, kind, as_text) = (dialect_of(dialect, "dialect")?, kind_of(kind)?, is_text(format)?);
        let text = arguments::text(text, text_len, "text")?;
        let providers = handle::optional(providers, "providers")?;
        let problems = kind.check(dialect, text, providers.map(|list| &*list.0));
        *out = text::hand_out(if as_text { report::to_text(&problems) } else { lint::to_json(&problems) });
        Ok(Status::OK)
    })
}
