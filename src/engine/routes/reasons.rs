//! Why a list of proxies is what it is, in explanations.

use super::bad_proxies::Moved;
use crate::proxies::Why;
use serde_json::{Map, Value, json};

/// Reasons of one list.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    /// From the outermost proxy selector inwards.
    pub(super) why: Vec<Why>,
    /// Proxies that failed lately and stand behind the others therefore.
    pub(super) moved: Vec<Moved>,
}

/// Adds `because`, `script` and `moved_back` to a document.
pub(super) fn insert(document: &mut Map<String, Value>, why: &[Why], moved: &[Moved]) {
    if !why.is_empty() {
        document.insert("because".into(), why.iter().map(Why::to_string).collect());
    }
    let said = why.iter().find_map(|why| match why {
        Why::Script(said) => Some(said),
        _ => None,
    });
    if let Some(said) = said {
        let mut script = json!({"answer": said.answer, "took_us": said.took_ns / 1000});
        if !said.skipped.is_empty() {
            script["skipped"] = json!(said.skipped);
        }
        if !said.alerts.is_empty() {
            script["alerts"] = json!(said.alerts);
        }
        document.insert("script".into(), script);
    }
    if !moved.is_empty() {
        let shown = moved.iter().map(|m| json!({"proxy": m.proxy, "remaining_ms": m.remaining_ms}));
        document.insert("moved_back".into(), shown.collect());
    }
}

/// The same as lines for people, each indented.
pub(super) fn lines(reasons: &Reasons) -> String {
    let mut lines = String::new();
    for why in &reasons.why {
        lines.push_str(&format!("  because: {why}\n"));
        if let Why::Script(said) = why {
            for skipped in &said.skipped {
                lines.push_str(&format!("    names no proxy: \"{skipped}\"\n"));
            }
        }
    }
    for moved in &reasons.moved {
        let seconds = moved.remaining_ms.div_ceil(1000);
        lines.push_str(&format!("  moved back: {} failed lately, {seconds} s left\n", moved.proxy));
    }
    lines
}
