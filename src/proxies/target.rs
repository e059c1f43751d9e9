//! What a proxy selector is asked about.

use crate::error::{Error, Result, Source, Status};
use crate::net::host::{MAX_INPUT, length_fault};
use std::net::IpAddr;

/// The question: one connection wanted. Borrowed, so asking does not allocate.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Lower case, without the colon.
    pub scheme: &'a str,
    /// Canonical host (WHATWG): lower case ASCII, IPv4 as a dotted quad, IPv6 without brackets; a zone may
    /// follow a `%`.
    pub host: &'a str,
    /// Effective port; 0 when the scheme has no default and none is written.
    pub port: u16,
    /// The URI as the host wrote it. Dialects that compare text read the authority from here.
    pub uri: &'a str,
}

/// A [`Target`] that owns its strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedTarget {
    scheme: String,
    host: String,
    port: u16,
    uri: String,
}

/// The parts of an authority as written; the host keeps its brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Authority<'a> {
    /// `user:password` without the `@`.
    pub(crate) user_info: Option<&'a str>,
    /// With brackets when it is an IPv6 literal.
    pub(crate) host: &'a str,
    /// What follows the colon; `Some("")` when nothing does.
    pub(crate) port: Option<&'a str>,
}

/// Port a URI of this scheme means when it names none (RFC 9110, RFC 6455, RFC 959); 0 for other schemes.
pub fn default_port(scheme: &str) -> u16 {
    match scheme {
        "http" | "ws" => 80,
        "https" | "wss" => 443,
        "ftp" => 21,
        _ => 0,
    }
}

impl OwnedTarget {
    /// Reads `scheme://authority...`. Legacy IPv4 spellings (`127.1`, `0x7f000001`) become dotted quads, names
    /// become ASCII. `E_INVALID_URL` when there is no scheme, no `//`, no host, one longer than an address takes, or a
    /// bad port.
    pub fn parse(uri: &str) -> Result<OwnedTarget> {
        let bad = |what: &str| {
            Error::new(Status::E_INVALID_URL, format!("{what}; expected scheme://host[:port]"))
                .source(Source::Parser)
        };
        let (scheme, rest) = uri.split_once("://").ok_or_else(|| bad("not an absolute URL"))?;
        let mut letters = scheme.bytes();
        if !letters.next().is_some_and(|b| b.is_ascii_alphabetic())
            || !letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        {
            return Err(bad("not a URL scheme"));
        }
        let scheme = scheme.to_ascii_lowercase();
        let authority = Authority::split(head_of(rest)).ok_or_else(|| bad("not a host and port"))?;
        if authority.host.len() > MAX_INPUT {
            return Err(bad(&format!("the host is longer than {MAX_INPUT} bytes")));
        }
        let host = canonical_host(authority.host).ok_or_else(|| bad("not a host"))?;
        // A literal is never long, nor does it have a label that is empty.
        if let Some(why) = length_fault(&host) {
            return Err(bad(why));
        }
        let port = match authority.port {
            None | Some("") => default_port(&scheme),
            Some(digits) => parse_port(digits).ok_or_else(|| bad("not a port"))?,
        };
        Ok(OwnedTarget { scheme, host, port, uri: uri.to_owned() })
    }

    /// Keeps a question.
    pub fn of(target: &Target<'_>) -> OwnedTarget {
        OwnedTarget {
            scheme: target.scheme.to_owned(),
            host: target.host.to_owned(),
            port: target.port,
            uri: target.uri.to_owned(),
        }
    }

    /// Borrows it for a question.
    pub fn borrow(&self) -> Target<'_> {
        Target { scheme: &self.scheme, host: &self.host, port: self.port, uri: &self.uri }
    }
}

impl<'a> Target<'a> {
    /// The host as an address, without its zone; `None` for names.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        // Names rarely begin with a digit and never contain a colon: most are told apart by one byte.
        let first = *self.host.as_bytes().first()?;
        if !first.is_ascii_digit() && !self.host.as_bytes().contains(&b':') {
            return None;
        }
        self.host.split('%').next()?.parse().ok()
    }

    /// The authority as the URI spells it; the canonical host when the URI has none.
    pub(crate) fn authority(&self) -> Authority<'a> {
        let written = self.uri.split_once("://").and_then(|(_, rest)| Authority::split(head_of(rest)));
        written.unwrap_or(Authority { user_info: None, host: self.host, port: None })
    }

    /// The authority's text without user information, as the URI spells it.
    pub(crate) fn host_and_port_text(&self) -> &'a str {
        let Some((_, rest)) = self.uri.split_once("://") else { return self.host };
        let head = head_of(rest);
        head.rsplit_once('@').map_or(head, |(_, tail)| tail)
    }
}

/// Everything before the path, query or fragment.
fn head_of(rest: &str) -> &str {
    rest.split(['/', '?', '#', '\\']).next().unwrap_or_default()
}

impl<'a> Authority<'a> {
    /// Splits `[user-info@]host[:port]`; user information ends at the *last* `@`. `None` when brackets are
    /// unbalanced, an unbracketed host contains a colon, or the host is empty.
    pub(crate) fn split(text: &'a str) -> Option<Authority<'a>> {
        let (user_info, rest) = match text.rsplit_once('@') {
            Some((user_info, rest)) => (Some(user_info), rest),
            None => (None, text),
        };
        let (host, port) = if rest.starts_with('[') {
            let end = rest.find(']')? + 1;
            let (host, tail) = (rest.get(..end)?, rest.get(end..)?);
            (host, if tail.is_empty() { None } else { Some(tail.strip_prefix(':')?) })
        } else {
            match rest.split_once(':') {
                Some((_, port)) if port.contains(':') => return None,
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        (!host.is_empty()).then_some(Authority { user_info, host, port })
    }
}

/// Digits only, 1 to 65535; leading zeros are fine.
pub(crate) fn parse_port(digits: &str) -> Option<u16> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: u32 = digits.trim_start_matches('0').parse().ok()?;
    u16::try_from(value).ok().filter(|&port| port != 0)
}

/// Canonical form of a host as written in an authority; brackets are taken off, a zone stays behind `%`.
pub(crate) fn canonical_host(written: &str) -> Option<String> {
    if let Some(inner) = written.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        let (address, zone) = match inner.split_once('%') {
            Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
            None => (inner, None),
        };
        let address: std::net::Ipv6Addr = address.parse().ok()?;
        return match zone {
            None => Some(address.to_string()),
            Some("") => None,
            Some(zone)
                if zone.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'%' | b'/' | b'[' | b']')) =>
            {
                Some(format!("{address}%{zone}"))
            }
            Some(_) => None,
        };
    }
    if written.contains(['%', ' ']) {
        return None;
    }
    match url::Host::parse(written).ok()? {
        url::Host::Domain(name) if !name.is_empty() => Some(name),
        url::Host::Ipv4(address) => Some(address.to_string()),
        url::Host::Domain(_) | url::Host::Ipv6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_become_canonical_targets() {
        for (uri, scheme, host, port) in [
            ("HTTP://User:p@ss@EXAMPLE.com:8080/x?y#z", "http", "example.com", 8080),
            ("http://0x7f000001/", "http", "127.0.0.1", 80),
            ("wss://[2001:DB8::1]", "wss", "2001:db8::1", 443),
            ("http://[fe80::1%25eth0]:1/", "http", "fe80::1%eth0", 1),
            ("http://bücher.example", "http", "xn--bcher-kva.example", 80),
            ("gopher://h", "gopher", "h", 0),
        ] {
            let got = OwnedTarget::parse(uri).unwrap();
            let got = got.borrow();
            assert_eq!((got.scheme, got.host, got.port), (scheme, host, port), "{uri}");
        }
        for uri in [
            "",
            "nonsense",
            "tcp:",
            "http://",
            "http://:80",
            "http://h:99999",
            "http://[::1",
            "1://h",
            "http://a:b:c",
            "http://.",
            "http://..",
            "http://.h",
            "http://a..b/",
        ] {
            assert_eq!(OwnedTarget::parse(uri).unwrap_err().status(), Status::E_INVALID_URL, "{uri}");
        }
    }

    #[test]
    fn hosts_are_no_longer_than_those_of_addresses() {
        let label = "a".repeat(63);
        let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        for host in [longest.clone(), format!("{longest}."), label.clone()] {
            assert_eq!(OwnedTarget::parse(&format!("http://{host}/")).unwrap().borrow().host, host);
        }
        for (host, why) in [
            (format!("{longest}a"), "longer than 253 characters"),
            (format!("{label}a"), "longer than 63 characters"),
            ("\u{e4}.".repeat(342), "longer than 1024 bytes"),
            (format!("[::{}]", "0".repeat(1024)), "longer than 1024 bytes"),
        ] {
            let error = OwnedTarget::parse(&format!("http://{host}/")).unwrap_err();
            assert!(error.status() == Status::E_INVALID_URL && error.message().contains(why), "{error}");
        }
    }
}
