//! File rules: `file:///dir/route.js?router=script` means a rule whose text is in the file, its type the file's
//! extension. Whoever has the rule watches the file and puts its new text in ([`FileRule::with_text`]).

use crate::chain::url::Url;
use crate::error::{Error, Result, Status};
use crate::runtime::file;
use std::path::{Path, PathBuf};

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
}

impl FileRule {
    /// Reads the file a URL names.
    ///
    /// # Errors
    /// `E_INVALID_URL` when it is no file URL, `E_OS` when the file cannot be read, `E_ARGUMENT`
    /// when it is not a regular one, `E_LIMIT` above 1 MiB, `E_UTF8`.
    pub fn read(url: &Url) -> Result<FileRule> {
        if url.protocol() != "file" {
            return Err(Error::new(Status::E_INVALID_URL, "not a file URL").subject("url"));
        }
        if !url.host().is_empty() {
            let why = "a file URL names no host: file:///directory/name.js";
            return Err(Error::new(Status::E_INVALID_URL, why).subject("url"));
        }
        let path = format!("/{}", url.path());
        let language =
            path.rfind('.').filter(|at| *at > 0).and_then(|at| path.get(at + 1..)).map(str::to_owned);
        let path = PathBuf::from(path);
        Ok(FileRule {
            router: url.given("router").unwrap_or("script").to_owned(),
            language,
            runtime: url.given("runtime").is_some_and(|value| value.eq_ignore_ascii_case("true")),
            text: content(&path)?,
            path,
        })
    }

    /// The text as last read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same rule after its file has changed.
    #[must_use]
    pub fn with_text(&self, text: &str) -> FileRule {
        FileRule { text: text.to_owned(), ..self.clone() }
    }
}

fn content(path: &Path) -> Result<String> {
    let content = file::content(path, LIMIT).map_err(|why| why.error(path))?;
    let text = String::from_utf8(content.bytes)
        .map_err(|_| Error::new(Status::E_UTF8, "not UTF-8").subject(path.display().to_string()))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_rules() {
        for (path, want) in [
            ("/dev/zero", Status::E_ARGUMENT),
            ("/dev", Status::E_ARGUMENT),
            ("/byway/missing.js", Status::E_OS),
        ] {
            let url = Url::parse(&format!("file://{path}?router=script")).unwrap();
            let error = FileRule::read(&url).unwrap_err();
            assert_eq!((error.status(), error.about()), (want, path), "{error}");
        }
    }
}
