//! The system's notifications: which directories are watched, and which files somebody is writing at the moment.

use crate::error::{Error, Status};
use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};
use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Directories watched at most; beyond it files are only looked at every few seconds.
const MOST: usize = 4096;

struct Watched {
    descriptor: WatchDescriptor,
    identity: (u64, u64),
}

/// See the module.
pub(super) struct Watches {
    inotify: Option<Inotify>,
    trouble: Option<Error>,
    places: HashMap<PathBuf, Watched>,
    /// The places of one descriptor: several paths may lead to one directory.
    paths: HashMap<WatchDescriptor, Vec<PathBuf>>,
    /// Files with a writer, and when it last wrote.
    writing: HashMap<PathBuf, Instant>,
}

impl Watches {
    pub(super) fn new() -> Watches {
        let (inotify, trouble) = match Inotify::init() {
            Ok(inotify) => (Some(inotify), None),
            Err(error) => {
                let message =
                    format!("no file notifications ({error}); files are looked at every few seconds");
                let error = Error::new(Status::E_RESOURCES, message).os(error.raw_os_error().unwrap_or(0));
                (None, Some(error))
            }
        };
        Watches { inotify, trouble, places: HashMap::new(), paths: HashMap::new(), writing: HashMap::new() }
    }

    /// Why there are no notifications.
    pub(super) fn trouble(&self) -> Option<Error> {
        self.trouble.clone()
    }

    /// Readable when something happened; -1, which poll passes over, without notifications.
    pub(super) fn fd(&self) -> RawFd {
        self.inotify.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Watches these directories and no others; true when one is watched that was not.
    pub(super) fn follow(&mut self, places: BTreeSet<PathBuf>) -> bool {
        let Some(inotify) = &mut self.inotify else { return false };
        let mut added = false;
        let gone: Vec<PathBuf> = self
            .places
            .iter()
            .filter(|(path, watched)| !places.contains(*path) || identity(path) != Some(watched.identity))
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            let Some(watched) = self.places.remove(&path) else { continue };
            if let Some(paths) = self.paths.get_mut(&watched.descriptor) {
                paths.retain(|other| *other != path);
                if paths.is_empty() {
                    self.paths.remove(&watched.descriptor);
                    // The directory may be deleted already.
                    let _ = inotify.watches().remove(watched.descriptor);
                }
            }
        }
        let mask = WatchMask::CREATE
            | WatchMask::MODIFY
            | WatchMask::CLOSE_WRITE
            | WatchMask::MOVED_TO
            | WatchMask::MOVED_FROM
            | WatchMask::DELETE
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF
            | WatchMask::ATTRIB
            | WatchMask::ONLYDIR;
        for path in places {
            if self.places.contains_key(&path) || self.places.len() >= MOST {
                continue;
            }
            let Some(identity) = identity(&path) else { continue };
            if let Ok(descriptor) = inotify.watches().add(&path, mask) {
                self.paths.entry(descriptor.clone()).or_default().push(path.clone());
                self.places.insert(path, Watched { descriptor, identity });
                added = true;
            }
        }
        added
    }

    /// Takes all notifications; true when there was one.
    pub(super) fn drain(&mut self) -> bool {
        let Some(inotify) = &mut self.inotify else { return false };
        let mut buffer = [0u8; 16 * 1024];
        let mut any = false;
        loop {
            // An error is "nothing there" almost always; the others show again at the next look.
            let Ok(events) = inotify.read_events(&mut buffer) else { break };
            let mut some = false;
            for event in events {
                some = true;
                if event.mask.contains(EventMask::Q_OVERFLOW) {
                    // What was lost is found by looking; who was writing then counts as quiet from now on.
                    let now = Instant::now();
                    self.writing.values_mut().for_each(|at| *at = now);
                    continue;
                }
                if event.mask.contains(EventMask::IGNORED) {
                    // The kernel has dropped it: the directory is gone.
                    if let Some(paths) = self.paths.remove(&event.wd) {
                        for path in paths {
                            self.places.remove(&path);
                        }
                    }
                    continue;
                }
                let Some(name) = event.name else { continue };
                let Some(paths) = self.paths.get(&event.wd) else { continue };
                for path in paths {
                    let file = path.join(name);
                    if event.mask.contains(EventMask::MODIFY) {
                        self.writing.insert(file, Instant::now());
                    } else if event.mask.contains(EventMask::CREATE) {
                        // Who creates a file writes it and closes it; a link is complete at once.
                        if std::fs::symlink_metadata(&file)
                            .is_ok_and(|found| found.is_file() && found.nlink() == 1)
                        {
                            self.writing.insert(file, Instant::now());
                        }
                    } else if event.mask.intersects(
                        EventMask::CLOSE_WRITE
                            | EventMask::MOVED_TO
                            | EventMask::MOVED_FROM
                            | EventMask::DELETE,
                    ) {
                        self.writing.remove(&file);
                    }
                }
            }
            if !some {
                break;
            }
            any = true;
        }
        any
    }

    /// How long to wait for the writers of these files; `None` when there is none.
    pub(super) fn unsettled(&mut self, files: &[PathBuf], settle: Duration) -> Option<Duration> {
        self.writing.retain(|_, at| at.elapsed() < settle);
        if self.writing.is_empty() {
            return None;
        }
        files
            .iter()
            .filter_map(|file| {
                let at = self.writing.get(file).or_else(|| {
                    let real = std::fs::canonicalize(file).ok()?;
                    self.writing.get(&real)
                })?;
                Some(settle.saturating_sub(at.elapsed()).max(Duration::from_millis(1)))
            })
            .max()
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    found.is_dir().then(|| (found.dev(), found.ino()))
}
