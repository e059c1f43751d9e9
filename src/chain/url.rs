//! Dubbo URL text: `protocol://user:password@host:port/path?key=value&key=value`.
//!
//! Read as Dubbo reads it (`URLStrParser`): parameters start at the first `?`; `&` and `;` separate them; the last
//! of a repeated key counts; a key without value is present and empty; values are not percent-decoded;
//! `default.x=v` also gives `x=v` when `x` is not given. Not as Dubbo: an IPv6 literal may stand without a port,
//! and a malformed port or bracket is an error instead of a surprise.

use std::borrow::Cow;
use std::ops::Range;

use super::program::Column;
use crate::error::{Error, Position, Result, Source, Status};

/// Longest URL text taken, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;

/// The parts of a URL, borrowed from its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Scheme; empty when the text has none.
    pub protocol: &'a str,
    /// User name in front of `@`.
    pub username: Option<&'a str>,
    /// Password in front of `@`.
    pub password: Option<&'a str>,
    /// Host as written, IPv6 with its brackets; may be empty.
    pub host: &'a str,
    /// Port as written, without leading zeros; empty when there is none or it is 0.
    pub port: &'a str,
    /// Path without its leading slash.
    pub path: &'a str,
    /// Everything behind the first `?`.
    pub query: &'a str,
}

impl<'a> Parts<'a> {
    /// Splits a text.
    ///
    /// # Errors
    /// `E_INVALID_URL` with the byte offset: empty, longer than [`MAX_TEXT`], nothing in front of `://`, a port
    /// that is not a number up to 65535, an unclosed bracket.
    pub fn parse(text: &'a str) -> Result<Parts<'a>> {
        if text.len() > MAX_TEXT {
            return Err(bad(text, MAX_TEXT, "longer than 65536 bytes"));
        }
        let (body, query) = text.split_once('?').unwrap_or((text, ""));
        if body.trim().is_empty() {
            return Err(bad(text, 0, "empty, expected protocol://host:port/path"));
        }
        // Mostly the first colon is the one; a search for three characters costs more than that.
        let colon = body.bytes().position(|b| b == b':');
        let quick = colon.filter(|at| body.get(*at..).is_some_and(|tail| tail.starts_with("://")));
        let (protocol, rest) = match quick.or_else(|| body.find("://")) {
            Some(0) => return Err(bad(text, 0, "no protocol in front of \"://\"")),
            Some(at) => (body.get(..at).unwrap_or_default(), body.get(at + 3..).unwrap_or_default()),
            None => match body.find(":/") {
                Some(0) => return Err(bad(text, 0, "no protocol in front of \":/\"")),
                Some(at) => (body.get(..at).unwrap_or_default(), body.get(at + 1..).unwrap_or_default()),
                None => ("", body),
            },
        };
        let start = body.len() - rest.len();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, endpoint) = match authority.rsplit_once('@') {
            Some((user, endpoint)) => (Some(user), endpoint),
            None => (None, authority),
        };
        let (username, password) = match user {
            None => (None, None),
            Some(user) => match user.split_once(':') {
                Some((name, password)) => (Some(name), Some(password)),
                None => (Some(user), None),
            },
        };
        let at = start + authority.len() - endpoint.len();
        let (host, port) = split_port(endpoint).map_err(|(offset, why)| bad(text, at + offset, why))?;
        Ok(Parts { protocol, username, password, host, port, path, query })
    }

    /// The parameters in text order, repeated keys included, without the copies that `default.` keys make.
    pub fn parameters(&self) -> Parameters<'a> {
        Parameters { rest: self.query }
    }
}

/// Splits `host:port`; the port without leading zeros, empty for 0.
fn split_port(endpoint: &str) -> std::result::Result<(&str, &str), (usize, &'static str)> {
    let (host, port, at) = if endpoint.starts_with('[') {
        let Some(close) = endpoint.find(']') else {
            return Err((0, "the bracket of an IPv6 address is not closed"));
        };
        let (host, tail) = endpoint.split_at(close + 1);
        match tail.strip_prefix(':') {
            Some(port) => (host, port, close + 2),
            None if tail.is_empty() => (host, "", close + 1),
            None => return Err((close + 1, "expected \":port\" behind the IPv6 address")),
        }
    } else {
        match endpoint.rfind(':') {
            // More than one colon and no brackets: a bare IPv6 address, or one with a port. Dubbo takes what is
            // behind the last colon as the port, unless a zone id makes it part of the address.
            Some(at) if endpoint.get(at..).is_some_and(|tail| tail.len() > 1) => {
                let (host, port) = endpoint.split_at(at);
                if host.contains(':') && (host.contains('%') || port.contains('%') || host.ends_with(':')) {
                    (endpoint, "", at)
                } else {
                    (host, port.get(1..).unwrap_or_default(), at + 1)
                }
            }
            Some(at) => (endpoint.get(..at).unwrap_or_default(), "", at),
            None => (endpoint, "", endpoint.len()),
        }
    };
    if port.is_empty() {
        return Ok((host, ""));
    }
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err((at, "the port is not a number"));
    }
    let port = port.trim_start_matches('0');
    if port.len() > 5 || port.parse::<u32>().is_ok_and(|number| number > 65535) {
        return Err((at, "the port is above 65535"));
    }
    Ok((host, port))
}

fn bad(text: &str, offset: usize, why: &str) -> Error {
    Error::new(Status::E_INVALID_URL, why).at(Position::in_text(text, offset)).source(Source::Parser)
}

/// Iterates over `key, value` of a query.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let bytes = self.rest.as_bytes();
            let end = bytes.iter().position(|b| matches!(b, b'&' | b';')).unwrap_or(bytes.len());
            let pair = self.rest.get(..end).unwrap_or_default();
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !key.is_empty() {
                return Some((key, value));
            }
        }
    }
}

/// A parsed URL that owns its text: the consumer URL of a chain, or one provider looked at by itself.
#[derive(Clone, Debug)]
pub struct Url {
    text: Box<str>,
    protocol: Range<u32>,
    username: Option<Range<u32>>,
    password: Option<Range<u32>>,
    host: Range<u32>,
    port: Range<u32>,
    path: Range<u32>,
    /// Key and value, sorted by key, unique; `default.` copies included.
    parameters: Box<[(Range<u32>, Range<u32>)]>,
}

impl Url {
    /// Parses a text; see [`Parts::parse`] for the errors.
    pub fn parse(text: &str) -> Result<Url> {
        let parts = Parts::parse(text)?;
        let place = |part: &str| {
            // A part is a slice of the text, so its distance from the start is its offset.
            let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
            let start = if part.is_empty() { 0 } else { start as u32 };
            start..start + part.len() as u32
        };
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        let mut defaults: Vec<(&str, &str)> = Vec::new();
        for (key, value) in parts.parameters() {
            pairs.push((key, value));
            if let Some(plain) = key.strip_prefix("default.").filter(|plain| !plain.is_empty()) {
                defaults.push((plain, value));
            }
        }
        // The last of a repeated key counts; the first default is the one that finds the key absent.
        pairs.reverse();
        pairs.extend(defaults);
        pairs.sort_by_key(|(key, _)| *key);
        pairs.dedup_by_key(|(key, _)| *key);
        let parameters = pairs.iter().map(|(key, value)| (place(key), place(value))).collect();
        Ok(Url {
            protocol: place(parts.protocol),
            username: parts.username.map(place),
            password: parts.password.map(place),
            host: place(parts.host),
            port: place(parts.port),
            path: place(parts.path),
            parameters,
            text: text.into(),
        })
    }

    fn slice(&self, range: &Range<u32>) -> &str {
        self.text.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The text as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Scheme; empty when the text has none.
    pub fn protocol(&self) -> &str {
        self.slice(&self.protocol)
    }

    /// User name in front of `@`.
    pub fn username(&self) -> Option<&str> {
        self.username.as_ref().map(|range| self.slice(range))
    }

    /// Password in front of `@`.
    pub fn password(&self) -> Option<&str> {
        self.password.as_ref().map(|range| self.slice(range))
    }

    /// Host as written, IPv6 with its brackets; may be empty.
    pub fn host(&self) -> &str {
        self.slice(&self.host)
    }

    /// Port, 0 when there is none.
    pub fn port(&self) -> u16 {
        self.slice(&self.port).parse().unwrap_or(0)
    }

    /// Path without its leading slash.
    pub fn path(&self) -> &str {
        self.slice(&self.path)
    }

    /// `host:port`, or `host` without a port.
    pub fn address(&self) -> Cow<'_, str> {
        let (host, port) = (self.slice(&self.host), self.slice(&self.port));
        if port.is_empty() { Cow::Borrowed(host) } else { Cow::Owned(format!("{host}:{port}")) }
    }

    /// A parameter; `None` when absent, `Some("")` when present without value.
    pub fn parameter(&self, key: &str) -> Option<&str> {
        let at = self.parameters.binary_search_by(|(name, _)| self.slice(name).cmp(key)).ok()?;
        self.parameters.get(at).map(|(_, value)| self.slice(value))
    }

    /// A parameter that is there and not empty.
    pub fn given(&self, key: &str) -> Option<&str> {
        self.parameter(key).filter(|value| !value.is_empty())
    }

    /// The parameters, sorted by key.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(key, value)| (self.slice(key), self.slice(value)))
    }

    /// Parameter `interface`, else the path.
    pub fn interface(&self) -> &str {
        self.given("interface").unwrap_or_else(|| self.path())
    }

    /// What a column holds for this URL.
    pub fn column(&self, column: &Column) -> Option<Cow<'_, str>> {
        let present = |text| Some(text).filter(|text: &&str| !text.is_empty()).map(Cow::Borrowed);
        match column {
            Column::Parameter(name) => self.parameter(name).map(Cow::Borrowed),
            Column::Protocol => present(self.protocol()),
            Column::Username => self.username().map(Cow::Borrowed),
            Column::Password => self.password().map(Cow::Borrowed),
            Column::Host => present(self.host()),
            Column::Port => present(self.slice(&self.port)),
            Column::Address => Some(self.address()).filter(|text| !text.is_empty()),
            Column::Path => present(self.path()),
            Column::Application => {
                self.given("remote.application").or_else(|| self.given("application")).map(Cow::Borrowed)
            }
        }
    }
}

impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Url {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_dubbo_reads() {
        // text, protocol, username, password, host, port, path
        type Case<'a> = (&'a str, &'a str, Option<&'a str>, Option<&'a str>, &'a str, u16, &'a str);
        let table: &[Case<'_>] = &[
            ("dubbo://10.0.0.1:20880/com.foo.Bar?a=b", "dubbo", None, None, "10.0.0.1", 20880, "com.foo.Bar"),
            ("dubbo://u:p@host:1/a/b", "dubbo", Some("u"), Some("p"), "host", 1, "a/b"),
            ("dubbo://u@host/", "dubbo", Some("u"), None, "host", 0, ""),
            ("dubbo://a@b:c@host:7", "dubbo", Some("a@b"), Some("c"), "host", 7, ""),
            ("host:20880/p", "", None, None, "host", 20880, "p"),
            ("host", "", None, None, "host", 0, ""),
            ("file:/etc/rule.js", "file", None, None, "", 0, "etc/rule.js"),
            ("tri://[2001:db8::1]:50051/s", "tri", None, None, "[2001:db8::1]", 50051, "s"),
            ("tri://[::1]/s", "tri", None, None, "[::1]", 0, "s"),
            ("tri://fe80::1%eth0/s", "tri", None, None, "fe80::1%eth0", 0, "s"),
            ("consumer://1.1.1.1/com.foo.Bar", "consumer", None, None, "1.1.1.1", 0, "com.foo.Bar"),
            ("x://h:0/p", "x", None, None, "h", 0, "p"),
            ("x://h:0080/p", "x", None, None, "h", 80, "p"),
            ("empty://0.0.0.0/S?category=providers", "empty", None, None, "0.0.0.0", 0, "S"),
        ];
        for (text, protocol, username, password, host, port, path) in table {
            let url = Url::parse(text).unwrap();
            assert_eq!(
                (url.protocol(), url.username(), url.password(), url.host(), url.port(), url.path()),
                (*protocol, *username, *password, *host, *port, *path),
                "{text}"
            );
        }
    }

    #[test]
    fn parameters_follow_dubbo() {
        let url = Url::parse(
            "x://h/p?flag&e=&a=1&a=2;semi=3&default.s=f&default.t=d&t=own&q=a=b&pct=%20&=x&default.s=g",
        )
        .unwrap();
        let table = [
            ("flag", Some("")),
            ("e", Some("")),
            ("a", Some("2")),
            ("semi", Some("3")),
            ("s", Some("f")),
            ("default.s", Some("g")),
            ("t", Some("own")),
            ("q", Some("a=b")),
            ("pct", Some("%20")),
            ("none", None),
            ("", None),
        ];
        for (key, value) in table {
            assert_eq!(url.parameter(key), value, "{key}");
        }
    }

    #[test]
    fn unusable_texts_name_the_place() {
        for (text, offset) in
            [("", 0), ("   ", 0), ("://h/p", 0), ("x://h:port/p", 6), ("x://h:70000/p", 6), ("x://[::1/p", 4)]
        {
            let error = Url::parse(text).unwrap_err();
            assert_eq!(error.status(), Status::E_INVALID_URL, "{text}");
            assert_eq!(error.position().unwrap().offset, offset, "{text}");
        }
    }
}
