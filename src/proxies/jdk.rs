//! Proxies from Java system properties, as the JDK's `DefaultProxySelector` reads them (17 to 25), which is what
//! OkHttp asks by default.
//!
//! | scheme | properties in order | exceptions |
//! |---|---|---|
//! | http | `http.proxyHost`, `proxyHost`, `socksProxyHost` | `http.nonProxyHosts` |
//! | https | `https.proxyHost`, `proxyHost`, `socksProxyHost` | `http.nonProxyHosts` |
//! | ftp | `ftp.proxyHost`, `ftpProxyHost`, `proxyHost`, `socksProxyHost` | `ftp.nonProxyHosts` |
//! | socket | `socksProxyHost` | `socksNonProxyHosts` |
//! | ws, wss | as http, https (the JDK from 2026 on; earlier ones answer DIRECT) | as http |
//!
//! Kept with its quirks: a port that is missing, text or 0 is borrowed from the other prefixes (not from SOCKS), a number
//! may be octal (`010`), `socksProxyVersion` 4 counts, `https.nonProxyHosts` does not exist, `127.*` also covers `127.evil.com`, patterns are not trimmed. Different
//! on purpose: a port outside 1..65535 is a clear error of the request instead of an exception.

use super::fixed::direct_list;
use super::{Choice, Listed, Proxy, ProxyKind, ProxyList, ProxySelector, Target, Why};
use crate::error::{Error, Result, Status};
use crate::net::Compat;
use crate::net::proxy::ProxySpec;
use std::sync::Arc;

/// A snapshot of system properties.
#[derive(Clone, Debug, Default)]
pub struct Properties(Vec<(String, String)>);

impl Properties {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Properties(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Which JDK answers for web sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WebSockets {
    /// ws uses the http properties, wss those of https.
    #[default]
    AsHttp,
    /// DIRECT, as released JDKs up to 25 do.
    Direct,
}

/// The selector: a host compares prefixes and suffixes, nothing else.
#[derive(Clone, Debug)]
pub struct JdkProperties {
    http: Part,
    https: Part,
    ftp: Part,
    socket: Part,
    web_sockets: WebSockets,
}

/// What one scheme uses.
#[derive(Clone, Debug)]
struct Part {
    proxies: Option<(Arc<str>, Result<ProxyList>)>,
    exceptions: Arc<[Pattern]>,
}

/// One entry: a star counts at the start and at the end only.
#[derive(Clone, Debug)]
struct Pattern {
    written: Arc<str>,
    literal: Box<str>,
    star_before: bool,
    star_behind: bool,
}

const DEFAULT_EXCEPTIONS: &str = "localhost|127.*|[::1]|0.0.0.0|[::0]";

impl JdkProperties {
    /// Reads a snapshot. Never fails: a bad port is the answer to the requests it is for.
    pub fn new(properties: &Properties, web_sockets: WebSockets) -> JdkProperties {
        let exceptions = |name: &str| patterns(properties.get(name));
        let http_exceptions = exceptions("http.nonProxyHosts");
        let part = |prefixes: &[&str], port, exceptions: &Arc<[Pattern]>| Part {
            proxies: find(properties, prefixes, port),
            exceptions: exceptions.clone(),
        };
        JdkProperties {
            http: part(&["http.proxy", "proxy", "socksProxy"], 80, &http_exceptions),
            https: part(&["https.proxy", "proxy", "socksProxy"], 443, &http_exceptions),
            ftp: part(
                &["ftp.proxy", "ftpProxy", "proxy", "socksProxy"],
                80,
                &exceptions("ftp.nonProxyHosts"),
            ),
            socket: part(&["socksProxy"], 1080, &exceptions("socksNonProxyHosts")),
            web_sockets,
        }
    }
}

impl ProxySelector for JdkProperties {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        let part = match target.scheme {
            "http" => &self.http,
            "https" => &self.https,
            "ftp" => &self.ftp,
            "socket" => &self.socket,
            "ws" if self.web_sockets == WebSockets::AsHttp => &self.http,
            "wss" if self.web_sockets == WebSockets::AsHttp => &self.https,
            _ => return Ok(Choice { proxies: direct_list(), why: Why::NoSetting }),
        };
        let Some((name, proxies)) = &part.proxies else {
            return Ok(Choice { proxies: direct_list(), why: Why::NoSetting });
        };
        // The JDK compares the host as the URI spells it, IPv6 in its brackets.
        let written = target.authority().host;
        if let Some(pattern) = part.exceptions.iter().find(|pattern| pattern.covers(written)) {
            return Ok(Choice { proxies: direct_list(), why: Why::Exception(pattern.written.clone()) });
        }
        match proxies {
            Ok(proxies) => Ok(Choice { proxies: proxies.clone(), why: Why::Variable(name.clone()) }),
            Err(error) => Err(error.clone()),
        }
    }
}

/// The first prefix with a host; the port under it, else under the other prefixes, of which the last, that of SOCKS,
/// neither borrows nor lends.
fn find(
    properties: &Properties,
    prefixes: &[&str],
    default_port: u16,
) -> Option<(Arc<str>, Result<ProxyList>)> {
    let (index, name, host) = prefixes.iter().enumerate().find_map(|(index, prefix)| {
        let name = format!("{prefix}Host");
        let host = properties.get(&name).filter(|host| !host.is_empty())?;
        Some((index, name, host))
    })?;
    let (own, socks) = (prefixes.get(index)?, index + 1 == prefixes.len());
    let others = prefixes.iter().take(prefixes.len() - 1).filter(|other| *other != own && !socks);
    // 0 and what is no number are no port: the next one is looked at.
    let written = core::iter::once(own).chain(others).find_map(|prefix| {
        let name = format!("{prefix}Port");
        let port = integer(properties.get(&name)?).filter(|port| *port != 0)?;
        Some((port, name))
    });
    let port = match written {
        None => Ok(if socks { 1080 } else { default_port }),
        Some((port, name)) => u16::try_from(port).map_err(|_| {
            Error::new(Status::E_INVALID_PORT, format!("port {port}; expected 1 to 65535")).subject(name)
        }),
    };
    let version_4 = properties.get("socksProxyVersion").and_then(integer) == Some(4);
    let kind = match (socks, version_4) {
        (false, _) => ProxyKind::Http,
        (true, true) => ProxyKind::Socks4,
        (true, false) => ProxyKind::Socks5h,
    };
    let listed = port.and_then(|port| {
        let port = i64::from(port);
        let spec = ProxySpec { kind, host, resolved: None, port, user: None, password: None };
        // The JDK hands out any text as an unresolved host; it fails when its turn comes.
        let proxy = Proxy::listed(spec, Compat::OkHttp5, &|_| None)?;
        Ok(Arc::from([Listed::Proxy(Arc::new(proxy))]))
    });
    Some((name.into(), listed))
}

/// As `Integer.decode` reads a number: a sign, then `0x`, `0X` or `#` for hexadecimal, `0` for octal; nothing around it.
fn integer(text: &str) -> Option<i32> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = ["0x", "0X", "#"].iter().find_map(|prefix| rest.strip_prefix(prefix));
    let (digits, radix) = match (hexadecimal, rest.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (rest, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i64::from_str_radix(digits, radix).ok()?;
    i32::try_from(if negative { -value } else { value }).ok()
}

/// Unset: the defaults; empty: nothing at all; else the defaults and what is written.
fn patterns(property: Option<&str>) -> Arc<[Pattern]> {
    let written = match property {
        Some("") => return Arc::from([]),
        Some(written) => written,
        None => "",
    };
    let defaults = DEFAULT_EXCEPTIONS.split('|');
    written.split('|').chain(defaults).filter(|entry| !entry.is_empty()).map(Pattern::new).collect()
}

impl Pattern {
    fn new(entry: &str) -> Pattern {
        let behind = entry.strip_prefix('*');
        let inner = behind.unwrap_or(entry);
        let before = inner.strip_suffix('*');
        Pattern {
            written: entry.into(),
            literal: before.unwrap_or(inner).to_lowercase().into(),
            star_before: behind.is_some(),
            star_behind: before.is_some(),
        }
    }

    fn covers(&self, host: &str) -> bool {
        let (host, literal) = (host.as_bytes(), self.literal.as_bytes());
        let equal = |part: Option<&[u8]>| part.is_some_and(|part| part.eq_ignore_ascii_case(literal));
        match (self.star_before, self.star_behind) {
            (false, false) => equal(Some(host)),
            (false, true) => equal(host.get(..literal.len())),
            (true, false) => equal(host.len().checked_sub(literal.len()).and_then(|at| host.get(at..))),
            (true, true) => literal.is_empty() || host.windows(literal.len()).any(|part| equal(Some(part))),
        }
    }
}
