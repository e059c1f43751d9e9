//! File rules: `file:///dir/route.js?router=script` means a rule whose text is in the file, its type the file's
//! extension. The content is read again when the file changed.

use crate::chain::url::Url;
use crate::error::{Error, Result, Status};
use std::path::PathBuf;
use std::time::SystemTime;

/// A larger file is refused.
const LIMIT: u64 = 1 << 20;

/// A rule's text in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRule {
    path: PathBuf,
    /// The kind of router, the URL's `router`; `script` when it names none.
    pub router: String,
    /// What follows the last dot of the path; `None` when there is none: the router's default.
    pub language: Option<String>,
    /// The URL's `runtime`, shown.
    pub runtime: bool,
    text: String,
    seen: Option<Seen>,
}

/// What tells that a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    length: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl FileRule {
    /// Reads the file a URL names. Blocking.
    ///
    /// # Errors
    /// `E_INVALID_URL` when it is no file URL, `E_OS` when the file cannot be read, `E_LIMIT` above 1 MiB, `E_UTF8`.
    pub fn read(url: &Url) -> Result<FileRule> {
        if url.protocol() != "file" {
            return Err(Error::new(Status::E_INVALID_URL, "not a file URL").subject("url"));
        }
        let path = format!("/{}", url.path());
        let language =
            path.rfind('.').filter(|at| *at > 0).and_then(|at| path.get(at + 1..)).map(str::to_owned);
        let mut rule = FileRule {
            path: path.into(),
            router: url.given("router").unwrap_or("script").to_owned(),
            language,
            runtime: url.given("runtime").is_some_and(|value| value.eq_ignore_ascii_case("true")),
            text: String::new(),
            seen: None,
        };
        rule.refresh()?;
        Ok(rule)
    }

    /// The text as last read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Reads the file again if it changed; true when the text is another one. After an error the text stays.
    /// Blocking: not for the path of a call.
    ///
    /// # Errors
    /// As [`FileRule::read`].
    pub fn refresh(&mut self) -> Result<bool> {
        let shown = self.path.display().to_string();
        let failed = |error: std::io::Error| {
            Error::new(Status::E_OS, error.to_string()).subject(&*shown).os(error.raw_os_error().unwrap_or(0))
        };
        let data = std::fs::metadata(&self.path).map_err(failed)?;
        let seen = Seen { length: data.len(), modified: data.modified().ok(), inode: inode(&data) };
        if self.seen == Some(seen) {
            return Ok(false);
        }
        if data.len() > LIMIT {
            return Err(Error::new(Status::E_LIMIT, "larger than 1 MiB").subject(&*shown));
        }
        let bytes = std::fs::read(&self.path).map_err(failed)?;
        let text =
            String::from_utf8(bytes).map_err(|_| Error::new(Status::E_UTF8, "not UTF-8").subject(&*shown))?;
        self.seen = Some(seen);
        Ok(std::mem::replace(&mut self.text, text) != self.text)
    }
}

#[cfg(unix)]
fn inode(data: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(data)
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}
