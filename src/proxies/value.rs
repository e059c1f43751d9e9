//! Proxy values and the grammar in which settings write them: `[scheme://][user[:password]@]host[:port]`.

use super::target::{Authority, canonical_host, parse_port};
use crate::error::{Error, Result, Source, Status};
use crate::net::proxy::ProxySpec;
use crate::net::{Compat, Listed, Proxy, ProxyKind};
use std::fmt;
use std::sync::Arc;

/// Port when a setting names none; 0 for DIRECT.
pub fn default_port(kind: ProxyKind) -> u16 {
    match kind {
        ProxyKind::Direct => 0,
        ProxyKind::Http => 80,
        ProxyKind::Https => 443,
        _ => 1080,
    }
}

/// A proxy as a setting describes it, before it becomes a value of the engine.
#[derive(Clone, PartialEq, Eq)]
pub struct Described {
    /// What speaks there.
    pub kind: ProxyKind,
    /// Canonical host, IPv6 without brackets.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
    /// User and password, decoded.
    pub credentials: Option<(String, String)>,
}

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.kind.scheme(), self.host, self.port)
    }
}

impl Described {
    /// The engine's value. `name` is the error's subject: credentials a protocol cannot carry are refused here.
    pub fn listed(&self, name: &str) -> Result<Listed> {
        let spec = ProxySpec {
            kind: self.kind,
            host: &self.host,
            resolved: None,
            port: i64::from(self.port),
            user: self.credentials.as_ref().map(|(user, _)| user.as_str()),
            // SOCKS 4 has a user and no password: an empty one is none.
            password: self.credentials.as_ref().map(|(_, password)| password.as_str()).filter(|password| {
                !password.is_empty() || !matches!(self.kind, ProxyKind::Socks4 | ProxyKind::Socks4a)
            }),
        };
        let proxy = Proxy::listed(spec, Compat::Byway, &|_| None);
        let proxy = proxy.map_err(|error| {
            Error::new(error.status(), error.message()).subject(name).source(Source::Parser)
        })?;
        Ok(Listed::Proxy(Arc::new(proxy)))
    }
}

/// How a dialect reads proxy values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grammar {
    /// What `socks://` means.
    pub socks: ProxyKind,
    /// What `socks5://` means: local or remote resolution.
    pub socks5: ProxyKind,
    /// Blanks around the value are taken off.
    pub trim: bool,
    /// `host:` means the default port.
    pub empty_port: bool,
    /// A password may hold an `@` as it is.
    pub raw_at: bool,
}

impl Default for Grammar {
    /// `socks://` is SOCKS 5 with remote names, `socks5://` resolves here.
    fn default() -> Self {
        Grammar {
            socks: ProxyKind::Socks5h,
            socks5: ProxyKind::Socks5,
            trim: true,
            empty_port: false,
            raw_at: true,
        }
    }
}

/// Reads a proxy value. `name` (a variable, a property, a file's key) is the error's subject; the value itself
/// is never shown, it may hold a password.
pub fn parse(name: &str, value: &str, grammar: Grammar) -> Result<Described> {
    let bad = |why: String| Error::new(Status::E_INVALID_PROXY, why).subject(name).source(Source::Parser);
    let text = if grammar.trim { value.trim_matches([' ', '\t', '\r', '\n']) } else { value };
    if text.is_empty() {
        return Err(bad("no proxy; expected [scheme://][user:password@]host[:port]".into()));
    }
    if text.chars().any(char::is_control) {
        return Err(bad("a control character; expected [scheme://][user:password@]host[:port]".into()));
    }
    let (kind, rest) = match text.split_once("://") {
        None => (ProxyKind::Http, text),
        Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
            "http" => (ProxyKind::Http, rest),
            "https" => (ProxyKind::Https, rest),
            "socks" => (grammar.socks, rest),
            "socks4" => (ProxyKind::Socks4, rest),
            "socks4a" => (ProxyKind::Socks4a, rest),
            "socks5" => (grammar.socks5, rest),
            "socks5h" => (ProxyKind::Socks5h, rest),
            other => {
                // A scheme is shown only if it looks like one: `user:pw@h://` must not leak.
                let shown = if other.len() <= 32
                    && other.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
                {
                    other
                } else {
                    "?"
                };
                return Err(bad(format!(
                    "unsupported proxy scheme {shown}; expected http, https, socks, socks4, socks4a, socks5 or socks5h"
                )));
            }
        },
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let parts = Authority::split(authority)
        .ok_or_else(|| bad("not host[:port]; an IPv6 address needs brackets".into()))?;
    let host = canonical_host(parts.host).ok_or_else(|| bad("not a host name or IP address".into()))?;
    let port = match parts.port {
        None => default_port(kind),
        Some("") if grammar.empty_port => default_port(kind),
        Some("") => return Err(bad("empty port; expected 1 to 65535".into())),
        Some(digits) => parse_port(digits).ok_or_else(|| bad("not a port; expected 1 to 65535".into()))?,
    };
    let credentials = match parts.user_info {
        None => None,
        Some(user_info) if user_info.contains('@') && !grammar.raw_at => {
            return Err(bad("an @ in user or password; write it as %40".into()));
        }
        Some(user_info) => {
            let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
            let decode = |part: &str| {
                let text = percent_decode(part)
                    .ok_or_else(|| bad("user or password is not UTF-8 after percent-decoding".into()))?;
                if text.chars().any(char::is_control) {
                    return Err(bad("a control character in user or password".into()));
                }
                Ok(text)
            };
            Some((decode(user)?, decode(password)?))
        }
    };
    Ok(Described { kind, host, port, credentials })
}

/// Decodes `%XX`; a `%` without two hex digits stays. `None` when the bytes are not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = |offset: usize| bytes.get(at + offset).and_then(|b| (*b as char).to_digit(16));
        match (byte, hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).ok()?);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_survive_every_character_people_put_into_them() {
        for (value, user, password) in [
            ("http://u%40corp:p%3A%2F%25@p:3128", "u@corp", "p:/%"),
            ("http://user:p@ss@p:3128", "user", "p@ss"),
            ("http://:pw@p:3128", "", "pw"),
            ("u@p:3128", "u", ""),
            ("http://u:100%@p:3128", "u", "100%"),
        ] {
            let proxy = parse("x", value, Grammar::default()).unwrap();
            let got = proxy.credentials.clone().unwrap();
            assert_eq!(
                (proxy.host.as_str(), got.0.as_str(), got.1.as_str()),
                ("p", user, password),
                "{value}"
            );
            assert!(!format!("{proxy:?}").contains("pw"));
        }
    }

    #[test]
    fn bad_values_are_errors_that_name_the_variable_and_hide_the_value() {
        for value in [
            "http://secret:x@",
            "ftp://secret@p",
            "http://p:0",
            "http://p:65536",
            "2001:db8::5",
            "http://a b",
            "http://u:%0d%0a@p",
            "http://[::1",
            "http://u:a/b@p:1",
        ] {
            let error = parse("http_proxy", value, Grammar::default()).unwrap_err();
            assert_eq!((error.status(), error.about()), (Status::E_INVALID_PROXY, "http_proxy"), "{value}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
