//! The last calls of a service, to be explained afterwards: off until somebody looks, and then a ring of 32.
//!
//! A kept call is what was asked, the world that answered and what it drew; the explanation is made when it is read.
//! The switch is part of the world (`Plan::recent`), so calls pay nothing for it while it is off.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::chain::Chain;
use super::explain::{Explanation, explain_on};
use super::invocation::Invocation;
use super::plan::Plan;
use crate::error::{Error, Result};

/// Most calls kept.
pub const KEPT: usize = 32;

/// The ring of a chain.
#[derive(Default)]
pub(crate) struct Recent {
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    /// Calls noted since the switch was turned on.
    noted: u64,
    calls: VecDeque<Arc<Kept>>,
}

struct Kept {
    number: u64,
    wall_ms: i64,
    plan: Arc<Plan>,
    drawn: Box<[u32]>,
    call: OwnedCall,
}

impl Recent {
    /// Keeps a call that was answered by this world, with the destinations it drew.
    #[cold]
    pub(crate) fn note(&self, plan: &Arc<Plan>, call: &Invocation<'_>, drawn: &[u32]) {
        let (call, drawn) = (OwnedCall::of(call), drawn.into());
        let (plan, wall_ms) = (Arc::clone(plan), plan.picking.wall_ms());
        let oldest = {
            let mut ring = self.ring.lock();
            let oldest = if ring.calls.len() >= KEPT { ring.calls.pop_front() } else { None };
            ring.noted += 1;
            let number = ring.noted;
            ring.calls.push_back(Arc::new(Kept { number, wall_ms, plan, drawn, call }));
            oldest
        };
        // It may be the last that holds its world: not under the lock.
        drop(oldest);
    }
}

type Bytes = Box<[u8]>;

/// A call that owns what it is made of.
struct OwnedCall {
    method: Bytes,
    types: Vec<Bytes>,
    arguments: Vec<Option<Bytes>>,
    attachments: Vec<(Bytes, Bytes)>,
}

impl OwnedCall {
    fn of(call: &Invocation<'_>) -> OwnedCall {
        OwnedCall {
            method: call.method.into(),
            types: call.types.iter().map(|name| Bytes::from(*name)).collect(),
            arguments: call.arguments.iter().map(|text| text.map(Bytes::from)).collect(),
            attachments: call
                .attachments
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
        }
    }

    fn with<T>(&self, body: impl FnOnce(&Invocation<'_>) -> T) -> T {
        let types: Vec<&[u8]> = self.types.iter().map(|name| &**name).collect();
        let arguments: Vec<Option<&[u8]>> = self.arguments.iter().map(Option::as_deref).collect();
        let attachments: Vec<(&[u8], &[u8])> =
            self.attachments.iter().map(|(key, value)| (&**key, &**value)).collect();
        body(&Invocation {
            method: &self.method,
            types: &types,
            arguments: &arguments,
            attachments: &attachments,
            available: None,
        })
    }
}

/// One kept call.
#[derive(Clone, Debug)]
pub struct RecentCall {
    /// Counts the calls since the switch was turned on, from 1.
    pub number: u64,
    /// When it was routed, on the engine's wall clock: milliseconds since 1970-01-01 UTC.
    pub wall_ms: i64,
    /// Why it got what it got, or what a host router said when it was asked again.
    pub explanation: Result<Explanation>,
}

impl Chain {
    /// Keeps the last [`KEPT`] calls from now on, or no longer; those kept so far go either way. While it is on,
    /// results are not memoised. Off at first.
    pub fn keep_recent(&self, on: bool) {
        self.shared.keep_recent(on.then(Arc::default));
    }

    /// True while calls are kept.
    pub fn keeps_recent(&self) -> bool {
        self.shared.recent().is_some()
    }

    /// The calls kept, oldest first, each explained on the world that answered it; host routers are asked with
    /// `explaining` set. Calls under an availability mask are not kept.
    pub fn recent(&self) -> Vec<RecentCall> {
        let Some(recent) = self.shared.recent() else { return Vec::new() };
        let kept: Vec<Arc<Kept>> = recent.ring.lock().calls.iter().cloned().collect();
        let explained = |kept: &Arc<Kept>| RecentCall {
            number: kept.number,
            wall_ms: kept.wall_ms,
            explanation: kept.call.with(|call| explain_on(&kept.plan, &kept.drawn, call)),
        };
        kept.iter().map(explained).collect()
    }
}

impl RecentCall {
    /// As JSON: a list, oldest first.
    pub fn list_to_json(list: &[RecentCall]) -> String {
        let error = |error: &Error| json!({ "status": error.status().name(), "message": error.message() });
        let one = |call: &RecentCall| {
            let mut value = json!({ "number": call.number, "wall_ms": call.wall_ms });
            if let Some(object) = value.as_object_mut() {
                match &call.explanation {
                    Ok(explanation) => object.insert("explanation".into(), explanation.to_value()),
                    Err(cause) => object.insert("error".into(), error(cause)),
                };
            }
            value
        };
        Value::Array(list.iter().map(one).collect()).to_string()
    }

    /// As text for people, oldest first, a blank line between.
    pub fn list_to_text(list: &[RecentCall]) -> String {
        let mut out = String::new();
        for call in list {
            let gap = if out.is_empty() { "" } else { "\n" };
            // Writing to a String cannot fail.
            let _ = match &call.explanation {
                Ok(explanation) => {
                    write!(out, "{gap}#{} at {} ms: {}", call.number, call.wall_ms, explanation.to_text())
                }
                Err(cause) => writeln!(out, "{gap}#{} at {} ms: {cause}", call.number, call.wall_ms),
            };
        }
        out
    }
}
