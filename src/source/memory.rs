//! A source the host fills itself: from its own registry client, its own configuration, a test.

use super::Source;
use super::board::{Board, Publication};
use super::topic::{Topic, Value};
use crate::error::{Error, Result, Status};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Topics one memory source holds at most.
pub const MAX_TOPICS: usize = 1 << 20;

/// See the module. Any thread. A change has taken effect in every bound chain when the call that made it returns.
#[derive(Debug)]
pub struct MemorySource {
    board: Arc<Board>,
    values: Mutex<BTreeMap<Topic, Value>>,
}

impl MemorySource {
    /// An empty source; every topic is absent.
    pub fn new() -> Arc<MemorySource> {
        Arc::new(MemorySource { board: Arc::new(Board::always_connected()), values: Mutex::default() })
    }

    /// Sets one key ([`Topic::parse`]). A rule's text is taken as it is; the text of a list is one entry a line, empty
    /// lines and lines that begin with `#` left out.
    ///
    /// # Errors
    /// `E_ARGUMENT` for a key that means nothing, `E_LIMIT` when too many are there.
    pub fn put(&self, key: &str, text: &str) -> Result<()> {
        self.apply(&[(key, Some(text))])
    }

    /// Removes one key; removing what is not there is fine.
    ///
    /// # Errors
    /// As [`MemorySource::put`].
    pub fn remove(&self, key: &str) -> Result<()> {
        self.apply(&[(key, None)])
    }

    /// Several changes as one moment: bound chains see all of them or none, and make one snapshot.
    ///
    /// # Errors
    /// As [`MemorySource::put`]; nothing has changed then.
    pub fn apply(&self, changes: &[(&str, Option<&str>)]) -> Result<()> {
        let mut topics = Vec::with_capacity(changes.len());
        for (key, text) in changes {
            let topic = Topic::parse(key)?;
            let value = match text {
                None => Value::Absent,
                Some(text) if topic.is_list() => Value::List(lines(text).map(Arc::from).collect()),
                Some(text) => Value::Text((*text).into()),
            };
            topics.push((topic, value));
        }
        let told = {
            let mut values = self.values.lock();
            let added = topics
                .iter()
                .filter(|(topic, value)| *value != Value::Absent && !values.contains_key(topic))
                .count();
            if values.len() + added > MAX_TOPICS {
                return Err(Error::new(Status::E_LIMIT, format!("a memory source holds {MAX_TOPICS} keys")));
            }
            for (topic, value) in &topics {
                match value {
                    Value::Absent => values.remove(topic),
                    value => values.insert(topic.clone(), value.clone()),
                };
            }
            // Under the lock, so that of two threads the later one's state is what stays on the board.
            self.board.store(topics.into_iter().map(|(topic, value)| Publication { topic, state: Ok(value) }))
        };
        told.tell();
        Ok(())
    }
}

/// The entries of a list text.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.trim_start_matches('\u{feff}')
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

impl Source for MemorySource {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn board(&self) -> &Arc<Board> {
        &self.board
    }

    fn follow(&self, topic: &Topic) {
        let told = {
            let values = self.values.lock();
            let value = values.get(topic).cloned().unwrap_or(Value::Absent);
            self.board.store([Publication { topic: topic.clone(), state: Ok(value) }])
        };
        told.tell();
    }

    fn unfollow(&self, _: &Topic) {}

    fn stop(&self, _: Duration) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_what_is_read() {
        let source = MemorySource::new();
        source.put("a.tag-router", "tags: []").unwrap();
        source.put("S/providers", "# two\ndubbo://h:1/S\n\n  dubbo://h:2/S \r\n").unwrap();
        let get = |name: &str| source.get(&Topic::parse(name).unwrap(), Duration::ZERO).unwrap();
        assert_eq!(get("a.tag-router"), Value::Text("tags: []".into()));
        assert_eq!(get("S/providers").list().len(), 2);
        assert_eq!(get("b.tag-router"), Value::Absent);
        source.remove("a.tag-router").unwrap();
        assert_eq!(get("a.tag-router"), Value::Absent);
        assert_eq!(source.board().topics().len(), 0, "get leaves nothing behind");
    }

    #[test]
    fn a_bad_key_among_several_changes_nothing() {
        let source = MemorySource::new();
        let error = source.apply(&[("a.tag-router", Some("x")), ("a//b", Some("y"))]).unwrap_err();
        assert_eq!(error.status(), Status::E_ARGUMENT);
        assert_eq!(source.get(&Topic::rule("a.tag-router"), Duration::ZERO).unwrap(), Value::Absent);
    }
}
