//! The content of a regular file, of which nobody knows what it has become since its path was written down: reading it
//! neither waits nor grows without bound.

use crate::error::{Error, Status};
use core::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file that was read.
#[derive(Debug)]
pub struct Content {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Still open: what was read can be compared with what is there now.
    pub file: File,
    /// As the file was before it was read.
    pub found: Metadata,
}

/// Why a file was not read.
#[derive(Debug)]
pub enum Unread {
    /// What the kernel says; `WouldBlock` of a file that makes its readers wait.
    Failed(io::Error),
    /// A directory, a pipe, a device or a socket.
    NotRegular(Box<Metadata>),
    /// More bytes than the caller takes.
    TooLarge {
        /// The limit.
        at_most: u64,
        /// As the file was before it was read.
        found: Box<Metadata>,
    },
}

impl Unread {
    /// No file is there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Unread::Failed(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// As an error about the file: `E_OS`, `E_ARGUMENT` when it is not a regular one, `E_LIMIT`.
    pub fn error(&self, path: &Path) -> Error {
        let status = match self {
            Unread::Failed(_) => Status::E_OS,
            Unread::NotRegular(_) => Status::E_ARGUMENT,
            Unread::TooLarge { .. } => Status::E_LIMIT,
        };
        Error::new(status, format!("{} {self}", path.display()))
            .subject(path.display().to_string())
            .os(self.errno())
    }

    /// The kernel's number; 0 when it did not refuse.
    pub fn errno(&self) -> i32 {
        match self {
            Unread::Failed(error) => error.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }
}

/// What follows the file's name in a sentence.
impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Failed(error) if error.kind() == io::ErrorKind::WouldBlock => {
                f.write_str("cannot be read: it makes its readers wait")
            }
            Unread::Failed(error) => write!(f, "cannot be read: {error}"),
            Unread::NotRegular(_) => f.write_str("is not a regular file"),
            // The kernel's own files say 0, and others may have grown since.
            Unread::TooLarge { at_most, found } if found.len() <= *at_most => {
                write!(f, "has more than {at_most} bytes, the most that are read")
            }
            Unread::TooLarge { at_most, found } => {
                write!(f, "has {} bytes; at most {at_most} are read", found.len())
            }
        }
    }
}

/// Reads a regular file of at most `at_most` bytes. Never waits for whoever writes a pipe or a file of the kernel's,
/// and never reads more than one byte above the limit.
///
/// # Errors
/// [`Unread`].
pub fn content(path: &Path, at_most: u64) -> Result<Content, Unread> {
    // Looked at before it is opened, because opening alone makes some devices act; and looked at again once it is open,
    // because another file may stand there by then, for which O_NONBLOCK and O_NOCTTY are.
    regular(std::fs::metadata(path).map_err(Unread::Failed)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(Unread::Failed)?;
    let found = regular(file.metadata().map_err(Unread::Failed)?)?;
    if found.len() > at_most {
        return Err(Unread::TooLarge { at_most, found: found.into() });
    }
    let room = usize::try_from(found.len()).unwrap_or(0) + 1;
    match bounded(&mut file, room, at_most).map_err(Unread::Failed)? {
        Some(bytes) => Ok(Content { bytes, file, found }),
        None => Err(Unread::TooLarge { at_most, found: found.into() }),
    }
}

fn regular(found: Metadata) -> Result<Metadata, Unread> {
    if found.is_file() { Ok(found) } else { Err(Unread::NotRegular(found.into())) }
}

/// `None` when there is more than `at_most`.
fn bounded(from: &mut impl Read, room: usize, at_most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(room);
    from.take(at_most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= at_most).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("byway-content-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// On a thread of its own, so that a read that waits is a failure and not the end of all tests.
    fn read(path: impl Into<PathBuf>) -> Result<Vec<u8>, (Status, String)> {
        let (path, (sender, answer)) = (path.into(), mpsc::channel());
        std::thread::spawn(move || {
            let read = content(&path, 1000).map(|content| content.bytes).map_err(|why| {
                let error = why.error(&path);
                (error.status(), error.message().replace(&*path.display().to_string(), "FILE"))
            });
            let _ = sender.send(read);
        });
        answer.recv_timeout(Duration::from_secs(60)).expect("it waits")
    }

    fn refused(status: Status, message: &str) -> Result<Vec<u8>, (Status, String)> {
        Err((status, message.to_owned()))
    }

    #[test]
    fn up_to_the_limit() {
        let directory = Directory::new("limit");
        let path = directory.0.join("file");
        for (length, want) in [
            (0, Ok(Vec::new())),
            (1000, Ok(vec![0; 1000])),
            (1001, refused(Status::E_LIMIT, "FILE has 1001 bytes; at most 1000 are read")),
            (1 << 40, refused(Status::E_LIMIT, "FILE has 1099511627776 bytes; at most 1000 are read")),
        ] {
            File::create(&path).unwrap().set_len(length).unwrap();
            assert_eq!(read(&path), want, "{length} bytes");
        }
    }

    #[test]
    fn only_regular_files() {
        let directory = Directory::new("kinds");
        let pipe = directory.0.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = directory.0.join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link, &directory.0, Path::new("/dev/zero")] {
            assert_eq!(
                read(path),
                refused(Status::E_ARGUMENT, "FILE is not a regular file"),
                "{}",
                path.display()
            );
        }
        let missing = directory.0.join("missing");
        assert!(content(&missing, 1).unwrap_err().is_missing());
        assert_eq!(read(missing).unwrap_err().0, Status::E_OS);
    }

    /// A file of the kernel's says 0 bytes, whatever it has.
    #[test]
    fn files_that_do_not_know_their_length() {
        let whole = content(Path::new("/proc/self/status"), 1 << 20).unwrap();
        assert!(whole.found.len() == 0 && !whole.bytes.is_empty());
        assert_eq!(
            read("/proc/self/status"),
            refused(Status::E_LIMIT, "FILE has more than 1000 bytes, the most that are read")
        );
    }

    /// As the kernel's log is: some bytes now, and more whenever there are.
    #[test]
    fn files_that_make_their_readers_wait() {
        struct Log(bool);
        impl Read for Log {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if core::mem::replace(&mut self.0, true) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                buffer[0] = b'<';
                Ok(1)
            }
        }
        let why = Unread::Failed(bounded(&mut Log(false), 1, 1000).unwrap_err());
        let error = why.error(Path::new("/log"));
        assert_eq!(
            (error.status(), error.message()),
            (Status::E_OS, "/log cannot be read: it makes its readers wait")
        );
    }

    /// What stands at a path may change between the look and the opening: opening never waits either.
    #[test]
    fn a_pipe_that_takes_the_place_of_a_file() {
        let directory = Directory::new("swap");
        let (path, pipe, file) =
            (directory.0.join("now"), directory.0.join("pipe"), directory.0.join("file"));
        let (spare, until) = (directory.0.join("spare"), std::sync::Arc::new(()));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(&file, "text").unwrap();
        std::fs::hard_link(&file, &path).unwrap();
        let alive = std::sync::Arc::downgrade(&until);
        let swapping = std::thread::spawn(move || {
            while alive.strong_count() > 0 {
                for from in [&pipe, &file] {
                    std::fs::hard_link(from, &spare).unwrap();
                    std::fs::rename(&spare, &path).unwrap();
                    // Renaming one link of a file to another does nothing and leaves it.
                    let _ = std::fs::remove_file(&spare);
                }
            }
        });
        let path = directory.0.join("now");
        for _ in 0..2000 {
            match read(&path) {
                Ok(bytes) => assert_eq!(bytes, b"text"),
                other => assert_eq!(other, refused(Status::E_ARGUMENT, "FILE is not a regular file")),
            }
        }
        drop(until);
        swapping.join().unwrap();
    }
}
