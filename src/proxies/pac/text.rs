//! A script's text from bytes: what was fetched, or a file.

use crate::error::{Error, Result, Status};
use crate::runtime::file;
use std::path::Path;

/// A larger script is refused.
pub const LIMIT: usize = 1 << 20;

/// Decodes a fetched script. The charset given with it counts, then a byte order mark, else Latin-1 (UTF-8 is not
/// the default on the web for scripts of this kind; ASCII is the same in both).
///
/// `E_LIMIT` above 1 MiB, `E_UTF8` when the bytes are not in the charset, `E_UNSUPPORTED` for other charsets.
pub fn decode(bytes: &[u8], charset: Option<&str>) -> Result<String> {
    if bytes.len() > LIMIT {
        return Err(Error::new(Status::E_LIMIT, "the script is longer than 1 MiB").subject("script"));
    }
    let not = |what: &str| Error::new(Status::E_UTF8, format!("the script is not {what}")).subject("script");
    let utf16 = |bytes: &[u8], little: bool| {
        let units = bytes.chunks(2).map(|pair| match *pair {
            [a, b] if little => Ok(u16::from_le_bytes([a, b])),
            [a, b] => Ok(u16::from_be_bytes([a, b])),
            _ => Err(not("UTF-16")),
        });
        String::from_utf16(&units.collect::<Result<Vec<_>>>()?).map_err(|_| not("UTF-16"))
    };
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| not("UTF-8"));
    let after = |mark: &[u8]| bytes.strip_prefix(mark);
    match charset.map(|name| name.trim().trim_matches('"').to_ascii_lowercase()).as_deref() {
        Some("utf-8" | "utf8") => utf8(after(b"\xef\xbb\xbf").unwrap_or(bytes)),
        Some("utf-16le") => utf16(after(b"\xff\xfe").unwrap_or(bytes), true),
        Some("utf-16be") => utf16(after(b"\xfe\xff").unwrap_or(bytes), false),
        Some("" | "utf-16") | None => {
            match (after(b"\xef\xbb\xbf"), after(b"\xff\xfe"), after(b"\xfe\xff")) {
                (Some(rest), ..) => utf8(rest),
                (_, Some(rest), _) => utf16(rest, true),
                (.., Some(rest)) => utf16(rest, false),
                _ => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
            }
        }
        Some("iso-8859-1" | "latin1" | "us-ascii" | "ascii" | "windows-1252") => {
            Ok(bytes.iter().map(|byte| char::from(*byte)).collect())
        }
        Some(other) => {
            Err(Error::new(Status::E_UNSUPPORTED, format!("charset {other} of a script")).subject("charset"))
        }
    }
}

/// Reads a script from a path or a `file:` URL. Not for the path of a question.
///
/// # Errors
/// `E_INVALID_URL` for a file URL of another machine, those of [`file::Unread::error`], those of [`decode`].
pub fn read_file(path: &str) -> Result<String> {
    let local = if path.starts_with("file:") {
        let url = url::Url::parse(path).ok().and_then(|url| url.to_file_path().ok());
        url.ok_or_else(|| Error::new(Status::E_INVALID_URL, "not a file URL of this machine").subject(path))?
    } else {
        Path::new(path).to_path_buf()
    };
    let content = file::content(&local, LIMIT as u64).map_err(|why| why.error(&local).subject(path))?;
    decode(&content.bytes, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charset_then_mark_then_latin_1() {
        for (bytes, charset, want) in [
            (&b"caf\xe9"[..], None, Some("café")),
            (b"caf\xc3\xa9", Some("UTF-8"), Some("café")),
            (b"\xef\xbb\xbfcaf\xc3\xa9", None, Some("café")),
            (b"\xff\xfea\0", None, Some("a")),
            (b"\xfe\xff\0a", Some("utf-16"), Some("a")),
            (b"\xff", Some("utf-8"), None),
            (b"a", Some("shift_jis"), None),
            (b"\xff\xfea", None, None),
        ] {
            assert_eq!(decode(bytes, charset).ok().as_deref(), want, "{bytes:?}");
        }
    }

    #[test]
    fn files_that_are_none() {
        for (path, want) in [
            ("file:///dev/zero", Status::E_ARGUMENT),
            ("/dev/zero", Status::E_ARGUMENT),
            ("file:///", Status::E_ARGUMENT),
            ("file:///byway/missing.pac", Status::E_OS),
            ("file://elsewhere/x.pac", Status::E_INVALID_URL),
        ] {
            let error = read_file(path).unwrap_err();
            assert_eq!((error.status(), error.about()), (want, path), "{error}");
        }
    }
}
