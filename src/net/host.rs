//! [`Host`]: a canonical host name or IP literal.
//!
//! Canonicalised by the WHATWG URL rules (`url` crate: IDNA, IPv4 in all its spellings, IPv6 in RFC 5952 form),
//! with DNS length limits, which those rules leave out. IPv6 literals may carry a zone (RFC 6874).

use super::compat::{self, Compat};
use super::ip::Ip;
use crate::error::{Error, Position, Result, Source, Status};
use core::fmt;
use core::net::Ipv6Addr;

/// Longest accepted host text in bytes; a name in Punycode is at most 253.
pub(crate) const MAX_INPUT: usize = 1024;

/// What kind of text a host is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal {
    /// A name: somebody has to resolve it.
    Name,
    /// An IP literal.
    Ip(Ip),
    /// Compat only: passes OkHttp's loose literal test, but the JDK's parser refuses it. Never resolved.
    Unparsable,
}

/// A canonical host. Equality is by text and zone.
#[derive(Clone, PartialEq, Eq)]
pub struct Host {
    /// With a NUL behind it, for C.
    text: Box<str>,
    zone: Option<Box<str>>,
    literal: Literal,
}

/// Finds the interface index of a zone name such as `eth0`.
pub type ZoneIndex<'a> = &'a dyn Fn(&str) -> Option<u32>;

fn refuse(text: &str, at: usize, message: impl Into<String>) -> Error {
    if text.is_empty() {
        // There is no place in what is not there.
        let why = "the host is empty; a name or an IP literal was expected";
        return Error::new(Status::E_INVALID_HOST, why).subject("host").source(Source::Argument);
    }
    let shown: String = text.chars().take(80).collect();
    Error::new(Status::E_INVALID_HOST, message)
        .subject(shown.escape_debug().to_string())
        .at(Position::in_text(text, at))
        .source(Source::Parser)
}

impl Host {
    /// Canonicalises under the default rules. `[…]` around an IPv6 literal is optional; `%zone` and `%25zone` are
    /// accepted there, a number or a name known to `zone_index`.
    ///
    /// # Errors
    /// `E_INVALID_HOST` with the place and the reason.
    pub fn parse(text: &str, zone_index: ZoneIndex<'_>) -> Result<Host> {
        if text.is_empty() {
            return Err(refuse(text, 0, ""));
        }
        if text.len() > MAX_INPUT {
            return Err(refuse(text, MAX_INPUT, format!("the host is longer than {MAX_INPUT} bytes")));
        }
        if let Some(at) = text.bytes().position(|b| b < 0x20 || b == 0x7f) {
            return Err(refuse(text, at, "control character in a host"));
        }
        if text.starts_with('[') || text.contains(':') {
            return Self::parse_ipv6(text, zone_index);
        }
        match url::Host::parse(text) {
            Ok(url::Host::Domain(name)) => {
                if let Some(why) = length_fault(&name) {
                    return Err(refuse(text, 0, why));
                }
                Ok(Host { text: with_nul(name), zone: None, literal: Literal::Name })
            }
            Ok(url::Host::Ipv4(ip)) => Ok(Host {
                text: with_nul(ip.to_string()),
                zone: None,
                literal: Literal::Ip(Ip::v4(ip.octets())),
            }),
            Ok(url::Host::Ipv6(ip)) => Ok(Host {
                text: with_nul(ip.to_string()),
                zone: None,
                literal: Literal::Ip(Ip::v6(ip.octets(), 0)),
            }),
            Err(error) => Err(refuse(text, 0, format!("not a host name or IP literal: {error}"))),
        }
    }

    fn parse_ipv6(text: &str, zone_index: ZoneIndex<'_>) -> Result<Host> {
        let inner = match (text.strip_prefix('['), text.strip_suffix(']')) {
            (Some(_), Some(_)) => text.get(1..text.len() - 1).unwrap_or_default(),
            (None, None) => text,
            _ => return Err(refuse(text, 0, "brackets of an IPv6 literal do not match")),
        };
        let (literal, zone) = inner.split_once('%').map_or((inner, None), |(ip, zone)| {
            // RFC 6874 writes the percent sign itself as %25.
            (ip, Some(zone.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(zone)))
        });
        let ip: Ipv6Addr = literal.parse().map_err(|_| {
            refuse(text, 0, "not an IPv6 literal (a host with a colon must be one, without a port)")
        })?;
        let mut scope = 0;
        if let Some(zone) = zone {
            let at = text.find('%').unwrap_or(0) + 1;
            if zone.is_empty() || !zone.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)) {
                return Err(refuse(text, at, "the zone must be an interface name or number"));
            }
            if !ip.is_unicast_link_local() && !ip.is_multicast() {
                return Err(refuse(text, at, "only link-local and multicast addresses have a zone"));
            }
            scope = zone
                .parse()
                .ok()
                .or_else(|| zone_index(zone))
                .filter(|&index| index != 0)
                .ok_or_else(|| refuse(text, at, format!("no interface is named {zone:?}")))?;
        }
        // The text stays what RFC 5952 says; what is connected to is the address a mapped form stands for.
        let canonical = canonical_ipv6(ip);
        Ok(Host {
            text: with_nul(canonical),
            zone: zone.map(Into::into),
            literal: Literal::Ip(Ip::v6(ip.octets(), scope).unmapped()),
        })
    }

    /// Canonicalises as the given profile does; OkHttp's rules are in [`compat::canonical_host`].
    ///
    /// # Errors
    /// As [`Host::parse`].
    pub fn parse_as(text: &str, profile: Compat, zone_index: ZoneIndex<'_>) -> Result<Host> {
        if profile == Compat::Byway {
            return Self::parse(text, zone_index);
        }
        let name = compat::canonical_host(text)
            .ok_or_else(|| refuse(text, 0, format!("unexpected host: {text}")))?;
        Ok(Self::verbatim(&name))
    }

    /// A host text taken as it is, its literal read by the JDK's loose rules: proxies under compat, which
    /// java.net accepts unseen.
    pub fn verbatim(text: &str) -> Host {
        let literal = match compat::looks_like_ip(text) {
            false => Literal::Name,
            true => compat::java_literal(text).map_or(Literal::Unparsable, Literal::Ip),
        };
        Host { text: with_nul(text.to_owned()), zone: None, literal }
    }

    /// Canonical text: no brackets, no zone.
    #[inline]
    pub fn text(&self) -> &str {
        self.text.get(..self.text.len() - 1).unwrap_or_default()
    }

    /// The text with a NUL behind it.
    #[inline]
    pub fn c_text(&self) -> &str {
        &self.text
    }

    /// The zone as it was written, without `%`.
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// Name or literal.
    #[inline]
    pub fn literal(&self) -> Literal {
        self.literal
    }

    /// The address, when the host is a literal.
    #[inline]
    pub fn ip(&self) -> Option<Ip> {
        match self.literal {
            Literal::Ip(ip) => Some(ip),
            _ => None,
        }
    }

    /// With brackets around IPv6, as in URLs and `CONNECT`; never with a zone, which means nothing elsewhere.
    pub fn bracketed(&self) -> BracketedHost<'_> {
        BracketedHost(self.text())
    }
}

fn with_nul(mut text: String) -> Box<str> {
    text.push('\0');
    text.into_boxed_str()
}

/// RFC 5952. The standard library writes mapped addresses with a dotted tail; WHATWG writes them in hex.
fn canonical_ipv6(ip: Ipv6Addr) -> String {
    match ip.to_ipv4_mapped() {
        Some(_) => {
            let s = ip.segments();
            format!("::ffff:{:x}:{:x}", s[6], s[7])
        }
        None => ip.to_string(),
    }
}

/// RFC 1035 lengths: 1..253 without the final dot, labels 1..63.
pub(crate) fn length_fault(name: &str) -> Option<&'static str> {
    let body = name.strip_suffix('.').unwrap_or(name);
    if body.len() > 253 {
        return Some("the name is longer than 253 characters");
    }
    if body.split('.').any(str::is_empty) {
        return Some("the name has an empty label");
    }
    if body.split('.').any(|label| label.len() > 63) {
        return Some("a label of the name is longer than 63 characters");
    }
    None
}

/// See [`Host::bracketed`].
pub struct BracketedHost<'a>(pub(crate) &'a str);

impl fmt::Display for BracketedHost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') { write!(f, "[{}]", self.0) } else { f.write_str(self.0) }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            Some(zone) => write!(f, "{}%{zone}", self.text()),
            None => f.write_str(self.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(name: &str) -> Option<u32> {
        (name == "eth0").then_some(3)
    }

    #[test]
    fn hosts_take_their_canonical_form() {
        for (text, want) in [
            ("WWW.Example.COM", "www.example.com"),
            ("☃.net", "xn--n3h.net"),
            ("host_a", "host_a"),
            ("hosta.", "hosta."),
            ("127.1", "127.0.0.1"),
            ("0x7f.0.0.1", "127.0.0.1"),
            ("[2001:DB8::0:1]", "2001:db8::1"),
            ("::ffff:192.0.2.1", "::ffff:c000:201"),
            ("a%62", "ab"),
        ] {
            assert_eq!(Host::parse(text, &zones).unwrap().text(), want, "{text}");
        }
    }

    #[test]
    fn a_mapped_literal_connects_to_the_ipv4_address() {
        assert_eq!(Host::parse("::ffff:192.0.2.1", &zones).unwrap().ip(), Some(Ip::v4([192, 0, 2, 1])));
    }

    #[test]
    fn zones_become_the_scope_and_are_not_part_of_the_text() {
        for text in ["fe80::1%eth0", "[fe80::1%25eth0]", "[fe80::1%3]"] {
            let host = Host::parse(text, &zones).unwrap();
            assert_eq!((host.text(), host.ip().unwrap().scope_id), ("fe80::1", 3), "{text}");
        }
    }

    #[test]
    fn hostile_hosts_are_refused_with_a_reason() {
        let (long, label) = ("a.".repeat(150), format!("{}.example", "a".repeat(64)));
        for text in [
            "",
            "a\0b",
            "a\rb",
            "%00",
            "a b",
            "a/b",
            "a@b",
            "a#b",
            "a:80",
            "[::1",
            "::1]",
            "1234.1.1.1",
            "a..b",
            ".",
            "[::1%25eth0]",
            "fe80::1%none",
            "fe80::1%",
            "fe80::1%a/b",
            &long,
            &label,
        ] {
            let error = Host::parse(text, &zones).expect_err(text);
            assert_eq!(error.status(), Status::E_INVALID_HOST, "{text:?}");
            assert_eq!(error.position().is_none(), text.is_empty(), "{text:?}");
            assert_eq!(error.about() == "host", text.is_empty(), "{text:?}");
            assert!(!error.message().contains(['\0', '\r']), "{text:?}");
        }
    }
}
