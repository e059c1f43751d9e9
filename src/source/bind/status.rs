//! How a binding stands, for people and machines.

use super::BindStatus;
use crate::error::Error;
use serde_json::{Value, json};
use std::time::UNIX_EPOCH;

impl BindStatus {
    /// As JSON.
    pub fn to_json(&self) -> String {
        let topics: Vec<String> = self.topics.iter().map(ToString::to_string).collect();
        let since = self.source.since.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        json!({
            "ready": self.ready,
            "worlds": self.worlds,
            "providers": self.providers,
            "kept": self.kept,
            "topics": topics,
            "last_refusal": self.last_refusal.as_ref().map(error_json),
            "world_age_ms": self.age.map(|age| age.as_millis() as u64),
            "source": {
                "kind": self.source.kind,
                "connected": self.source.connected,
                "since_ms": since.map(|since| since.as_millis() as u64),
                "age_ms": self.source.age.map(|age| age.as_millis() as u64),
                "generation": self.source.generation,
                "keys": self.source.keys,
                "errors": self.source.errors,
                "last_error": self.source.last_error.as_ref().map(error_json),
            },
        })
        .to_string()
    }
}

fn error_json(error: &Error) -> Value {
    let place = error.position();
    json!({
        "status": error.status().name(),
        "subject": error.about(),
        "message": error.message(),
        "line": place.map(|at| at.line),
        "column": place.map(|at| at.column),
    })
}
