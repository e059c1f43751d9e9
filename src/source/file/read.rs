//! Reading files so that what was read is what was there.

use crate::error::{Error, Source, Status};
use crate::runtime::file::{self, Content, Unread};
use crate::source::board::State;
use crate::source::memory::lines;
use crate::source::providers;
use crate::source::topic::{Topic, Value};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest text file, in bytes.
const MAX_TEXT: u64 = 4 << 20;
/// Longest list file, in bytes.
const MAX_LIST: u64 = 256 << 20;

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &std::fs::Metadata) -> Stamp {
        Stamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    fn at(path: &Path) -> Option<Stamp> {
        std::fs::metadata(path).ok().map(|found| Stamp::of(&found))
    }
}

/// What a topic's files held.
#[derive(Debug)]
pub(super) struct Reading {
    files: Vec<PathBuf>,
    stamps: Vec<Option<Stamp>>,
    state: State,
    steady: bool,
}

impl Reading {
    /// Reads the files of a topic.
    pub(super) fn take(topic: &Topic, files: &[PathBuf]) -> Reading {
        let mut reading =
            Reading { files: files.to_vec(), stamps: Vec::new(), state: Ok(Value::Absent), steady: true };
        if files.is_empty() {
            return reading;
        }
        let mut texts = Vec::new();
        for path in files {
            match read(path, if topic.is_list() { MAX_LIST } else { MAX_TEXT }) {
                Ok((text, stamp, steady)) => {
                    reading.stamps.push(Some(stamp));
                    reading.steady &= steady;
                    texts.push((path, text));
                }
                Err(Trouble::Gone) => {
                    reading.stamps.push(None);
                    reading.steady = false;
                }
                Err(Trouble::Refused(error, stamp)) => {
                    reading.stamps.push(stamp);
                    reading.state = Err(error.subject(topic.to_string()));
                }
            }
        }
        if reading.state.is_err() {
            return reading;
        }
        reading.state = Ok(if topic.is_list() {
            let mut entries: Vec<Arc<str>> = Vec::new();
            for (path, text) in &texts {
                let before = entries.len();
                entries.extend(lines(text).map(Arc::from));
                // As in Dubbo's tree: an empty file whose name is the encoded entry.
                if entries.len() == before
                    && files.len() > 1
                    && let Some(name) = path.file_name().and_then(|name| name.to_str())
                    && name.contains("%3A%2F%2F")
                    && let Ok(entry) = providers::decode(name)
                {
                    entries.push(entry.as_ref().into());
                }
            }
            Value::List(entries.into())
        } else {
            match texts.pop() {
                Some((_, text)) => Value::Text(text.trim_start_matches('\u{feff}').into()),
                None => Value::Absent,
            }
        });
        reading
    }

    /// Nothing changed while it was read.
    pub(super) fn is_steady(&self) -> bool {
        self.steady
    }

    /// The same files in the same state.
    pub(super) fn is_of(&self, files: &[PathBuf]) -> bool {
        self.files == files && self.is_still_there()
    }

    /// What was read is what is there.
    pub(super) fn is_still_there(&self) -> bool {
        self.files.iter().zip(&self.stamps).all(|(path, stamp)| Stamp::at(path) == *stamp)
    }

    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }
}

enum Trouble {
    Gone,
    Refused(Error, Option<Stamp>),
}

/// Text, its stamp, and whether it stayed the same meanwhile. A directory reads as an empty text.
fn read(path: &Path, most: u64) -> Result<(String, Stamp, bool), Trouble> {
    let refused = |message: String, stamp: Option<Stamp>, errno: i32| {
        let error = Error::new(Status::E_SOURCE, message).source(Source::Parser).os(errno);
        Trouble::Refused(error, stamp)
    };
    let failed = |why: Unread| match &why {
        _ if why.is_missing() => Trouble::Gone,
        Unread::Failed(_) => refused(format!("{} {why}", path.display()), Stamp::at(path), why.errno()),
        Unread::NotRegular(found) | Unread::TooLarge { found, .. } => {
            refused(format!("{} {why}", path.display()), Some(Stamp::of(found)), 0)
        }
    };
    let Content { bytes, file, found } = match file::content(path, most) {
        Ok(content) => content,
        Err(Unread::NotRegular(found)) if found.is_dir() => {
            return Ok((String::new(), Stamp::of(&found), true));
        }
        Err(why) => return Err(failed(why)),
    };
    let stamp = Stamp::of(&found);
    let after = file.metadata().map_err(|error| failed(Unread::Failed(error)))?;
    let steady =
        Stamp::of(&after) == stamp && Stamp::at(path) == Some(stamp) && bytes.len() as u64 == found.len();
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, stamp, steady)),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            let message = format!("{} is not UTF-8 from byte {offset} on", path.display());
            let error = Error::new(Status::E_UTF8, message).source(Source::Parser);
            Err(Trouble::Refused(error, Some(stamp)))
        }
    }
}

/// What rule files say about themselves, by path, as long as they do not change.
#[derive(Default)]
pub(super) struct Shelf {
    known: HashMap<PathBuf, (Option<Stamp>, Option<Topic>, bool)>,
}

impl Shelf {
    /// A look begins.
    pub(super) fn begin(&mut self) {
        for (_, _, used) in self.known.values_mut() {
            *used = false;
        }
    }

    /// A look has ended: what it did not ask for is forgotten.
    pub(super) fn end(&mut self) {
        self.known.retain(|_, (_, _, used)| *used);
    }

    /// The topic a file names, read when the file has changed. A text that cannot be read keeps the name it had, so
    /// that a broken edit is refused under its own key and not taken for a removal.
    pub(super) fn declared(&mut self, path: &Path, name: impl Fn(&str) -> Option<Topic>) -> Option<Topic> {
        let stamp = Stamp::at(path);
        if let Some((known, topic, used)) = self.known.get_mut(path) {
            *used = true;
            if *known == stamp {
                return topic.clone();
            }
        }
        let text = match read(path, MAX_TEXT) {
            Ok((text, ..)) => Some(text),
            Err(_) => None,
        };
        let before = self.known.get(path).and_then(|(_, topic, _)| topic.clone());
        let topic = text.and_then(|text| name(&text)).or(before);
        self.known.insert(path.to_owned(), (stamp, topic.clone(), true));
        topic
    }
}
