//! Rules and providers from files: a directory in Dubbo's layout, or one file.
//!
//! Notifications of the system only wake the thread; what holds is what a look at the files finds, so atomic renames,
//! symlink swaps (Kubernetes ConfigMaps), deletion and return all come to the same. A file is read when its writer has
//! closed it, or has been quiet for a while, and read again when it changed during reading: half a text is never
//! taken. A file that vanishes for a moment, as some editors make it, has not vanished. Where the system gives no
//! notifications (network file systems), the files are looked at every few seconds.

mod layout;
mod read;
mod watch;

pub use layout::Layout;

use super::Source;
use super::board::{Board, Publication};
use super::topic::{Topic, Value};
use super::worker::{STOP, TOPICS, Worker};
use crate::error::{Error, Result, Status};
use crate::sys::socket::{PollFd, poll};
use crate::sys::wake::Wake;
use parking_lot::Mutex;
use read::{Reading, Shelf};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watch::Watches;

/// How files are followed.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// A directory, or one file.
    pub path: PathBuf,
    /// For one file: the key its content has ([`Topic::parse`]). `None`: the key its text names (`key`, `scope`).
    pub key: Option<String>,
    /// A writer that keeps a file open has finished when nothing was written for this long. Default 3 s.
    pub settle: Duration,
    /// A file that is gone is deleted after this long. Default 150 ms.
    pub grace: Duration,
    /// Files are looked at this often without any notification. Default 2 s.
    pub look_every: Duration,
}

impl FileOptions {
    /// The usual values for a path.
    pub fn new(path: impl Into<PathBuf>) -> FileOptions {
        FileOptions {
            path: path.into(),
            key: None,
            settle: Duration::from_secs(3),
            grace: Duration::from_millis(150),
            look_every: Duration::from_secs(2),
        }
    }
}

/// After a notification, changes are collected for this long.
const GATHER: Duration = Duration::from_millis(5);
/// And not longer than this, however many come.
const GATHER_AT_MOST: Duration = Duration::from_millis(50);
/// So often the files are read anew when some change between the first and the last of them. Where they never rest, what
/// rests by itself is published alone.
const MOST_TRIES: usize = 8;

/// See the module. Any thread.
pub struct FileSource {
    inner: Arc<Inner>,
}

struct Inner {
    board: Arc<Board>,
    layout: Layout,
    options: FileOptions,
    topics: Mutex<BTreeSet<Topic>>,
    worker: Worker,
}

impl FileSource {
    /// Files at a path. Nothing is read before somebody follows a topic; a path that is not there is no error, it may
    /// come.
    ///
    /// # Errors
    /// `E_ARGUMENT`: an empty path, or a key that means nothing.
    pub fn new(options: FileOptions) -> Result<Arc<FileSource>> {
        let layout = Layout::new(&options)?;
        Ok(FileSource::over(layout, options))
    }

    /// Files anywhere: a rule's key is its file's absolute path ([`Topic::rule`]). Nothing but such rules can be
    /// followed.
    pub fn anywhere() -> Arc<FileSource> {
        FileSource::over(Layout::anywhere(), FileOptions::new("/"))
    }

    fn over(layout: Layout, options: FileOptions) -> Arc<FileSource> {
        let (board, topics, worker) = (Arc::default(), Mutex::default(), Worker::default());
        Arc::new(FileSource { inner: Arc::new(Inner { board, layout, options, topics, worker }) })
    }
}

impl Source for FileSource {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn board(&self) -> &Arc<Board> {
        &self.inner.board
    }

    fn follow(&self, topic: &Topic) {
        self.inner.topics.lock().insert(topic.clone());
        let inner = Arc::clone(&self.inner);
        if let Err(error) = self.inner.worker.start("byway-files", move |wake| inner.run(wake)) {
            self.inner.board.set_connected(false, Some(error.clone()));
            self.inner.board.publish([Publication { topic: topic.clone(), state: Err(error) }]);
        }
        self.inner.worker.raise(TOPICS);
    }

    fn unfollow(&self, topic: &Topic) {
        self.inner.topics.lock().remove(topic);
        self.inner.worker.raise(TOPICS);
    }

    fn stop(&self, timeout: Duration) -> bool {
        self.inner.worker.stop(timeout)
    }
}

impl Drop for FileSource {
    fn drop(&mut self) {
        self.inner.worker.stop(Duration::ZERO);
    }
}

impl fmt::Debug for FileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileSource({})", self.inner.options.path.display())
    }
}

/// What one topic was last seen as.
struct Seen {
    reading: Reading,
    /// When it was first found gone, while it still counts as there.
    missing: Option<Instant>,
}

impl Inner {
    fn run(&self, wake: &Wake) {
        let work = std::panic::AssertUnwindSafe(|| self.look_after(wake));
        if std::panic::catch_unwind(work).is_err() {
            let error =
                Error::new(Status::E_PANIC, "the file thread has panicked; nothing is followed any more");
            self.board.set_connected(false, Some(error.source(crate::error::Source::Panic)));
        } else {
            self.board.set_connected(false, None);
        }
    }

    fn look_after(&self, wake: &Wake) {
        let mut watches = Watches::new();
        if let Some(error) = watches.trouble() {
            self.board.set_connected(false, Some(error));
        }
        let mut seen: BTreeMap<Topic, Seen> = BTreeMap::new();
        let mut shelf = Shelf::default();
        loop {
            wake.take(TOPICS);
            let again = self.look(&mut watches, &mut shelf, &mut seen);
            let wait = again.unwrap_or(self.options.look_every).min(self.options.look_every);
            if !self.rest(wake, &mut watches, wait) {
                return;
            }
        }
    }

    /// Sleeps until there is something to look at; false when it is to end.
    fn rest(&self, wake: &Wake, watches: &mut Watches, wait: Duration) -> bool {
        let Ok(fd) = wake.fd() else {
            // Without a descriptor of its own it looks every now and then, until it can be woken again.
            std::thread::sleep(wait.min(Duration::from_millis(100)));
            watches.drain();
            return wake.flags() & STOP == 0;
        };
        let mut wait = wait;
        let mut first: Option<Instant> = None;
        loop {
            if wake.flags() & STOP != 0 {
                return false;
            }
            if wake.flags() & TOPICS != 0 {
                return true;
            }
            let mut set = [
                PollFd { fd, events: POLLIN, revents: 0 },
                PollFd { fd: watches.fd(), events: POLLIN, revents: 0 },
            ];
            let millis = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX).max(1);
            match poll(&mut set, millis) {
                // Time is up, or a signal.
                Ok(0) => return wake.flags() & STOP == 0,
                Ok(_) => {}
                Err(_) => return wake.flags() & STOP == 0,
            }
            if set[1].revents == 0 {
                continue;
            }
            if !watches.drain() {
                continue;
            }
            // Something happened: collect what comes right behind it.
            let first = *first.get_or_insert_with(Instant::now);
            if first.elapsed() >= GATHER_AT_MOST {
                return true;
            }
            wait = GATHER;
        }
    }

    /// Looks at every topic and publishes what changed as one moment. Says when to look again before anything wakes.
    fn look(
        &self,
        watches: &mut Watches,
        shelf: &mut Shelf,
        seen: &mut BTreeMap<Topic, Seen>,
    ) -> Option<Duration> {
        let topics = self.topics.lock().clone();
        seen.retain(|topic, _| topics.contains(topic));
        let mut again: Option<Duration> = None;
        let mut soon = |wait: Duration| again = Some(again.map_or(wait, |old: Duration| old.min(wait)));
        // Watches first: what happens after they are set wakes us, what happened before is seen.
        watches.follow(self.layout.places(&topics));
        if let Some(error) = self.layout.absence() {
            // The place itself is gone, not its content: what was known stays.
            let unknown: Vec<Topic> =
                topics.iter().filter(|topic| !seen.contains_key(topic)).cloned().collect();
            self.board.absent(&error, &unknown);
            return Some(self.options.grace.max(Duration::from_millis(50)));
        }
        let mut read: Vec<(Topic, Reading)>;
        let mut tries = 0;
        loop {
            tries += 1;
            read = Vec::new();
            let mut unchanged = Vec::new();
            shelf.begin();
            for topic in &topics {
                let found = self.layout.find(topic, shelf);
                if let Some(wait) = watches.unsettled(&found, self.options.settle) {
                    // A writer is at work. What is known stays; a topic nobody knows yet waits for it.
                    soon(wait);
                    continue;
                }
                let old = seen.get(topic);
                if old.is_some_and(|old| old.reading.is_of(&found) && old.missing.is_none()) {
                    unchanged.push(topic);
                    continue;
                }
                let reading = Reading::take(topic, &found);
                if !reading.is_steady() {
                    soon(GATHER);
                    continue;
                }
                if matches!(reading.state(), Ok(Value::Absent))
                    && let Some(old) = seen.get_mut(topic)
                    && !matches!(old.reading.state(), Ok(Value::Absent))
                {
                    let since = *old.missing.get_or_insert_with(Instant::now);
                    let left = self.options.grace.saturating_sub(since.elapsed());
                    if !left.is_zero() {
                        soon(left);
                        continue;
                    }
                }
                read.push((topic.clone(), reading));
            }
            shelf.end();
            // What changed under the reader is in the notifications now; it is read again.
            watches.drain();
            // A link that is swapped changes many files at once, and may do so between two of them.
            let stays = |reading: &Reading| reading.is_still_there();
            let whole = read.iter().all(|(_, reading)| stays(reading))
                && unchanged.iter().all(|topic| seen.get(*topic).is_some_and(|old| stays(&old.reading)));
            if read.is_empty() || whole || tries == MOST_TRIES {
                break;
            }
        }
        let mut publications = Vec::new();
        for (topic, reading) in read {
            if watches.unsettled(reading.files(), self.options.settle).is_some() || !reading.is_still_there()
            {
                soon(GATHER);
                continue;
            }
            publications.push(Publication { topic: topic.clone(), state: reading.state().clone() });
            seen.insert(topic, Seen { reading, missing: None });
        }
        self.board.publish(publications);
        self.board.set_connected(true, None);
        self.board.confirm();
        // A place that appeared meanwhile must be watched before we sleep.
        if watches.follow(self.layout.places(&topics)) {
            soon(Duration::from_millis(1));
        }
        again
    }
}

const POLLIN: i16 = 1;

#[cfg(test)]
mod tests;
