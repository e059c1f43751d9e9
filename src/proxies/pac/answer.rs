//! The answer of `FindProxyForURL`: `PROXY a:1; SOCKS5 b; DIRECT`.
//!
//! | keyword (any case) | proxy | default port |
//! |---|---|---|
//! | `DIRECT` | none | |
//! | `PROXY`, `HTTP` | HTTP | 80 |
//! | `HTTPS` | HTTP behind TLS | 443 |
//! | `SOCKS` | SOCKS 4 (the browsers' meaning; can be set to 5) | 1080 |
//! | `SOCKS4`, `SOCKS4A` | SOCKS 4, 4a | 1080 |
//! | `SOCKS5` | SOCKS 5, the proxy resolves | 1080 |
//!
//! An element with anything else in it (another keyword, credentials, a URL, a path, a bad port) is left out and
//! reported. Order and duplicates are kept.

use crate::error::{Error, Result, Source, Status};
use crate::proxies::target::{Authority, canonical_host, parse_port};
use crate::proxies::value::default_port;
use crate::proxies::{Listed, Proxy, ProxyKind, kind_of};
use std::sync::Arc;

/// A longer answer is refused.
pub const LIMIT: usize = 4096;

/// What an answer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// In the script's order; may be empty.
    pub proxies: Vec<Listed>,
    /// Elements that were left out, as written.
    pub skipped: Vec<String>,
}

impl Answer {
    /// Reads an answer. `socks` is what the bare keyword `SOCKS` means.
    ///
    /// `E_PAC` when the text is not ASCII or longer than [`LIMIT`].
    pub fn parse(text: &str, socks: ProxyKind) -> Result<Answer> {
        let refuse = |why: &str| Err(Error::new(Status::E_PAC, why).source(Source::Script));
        if text.len() > LIMIT {
            return refuse("the script's answer is longer than 4096 bytes");
        }
        if !text.is_ascii() {
            return refuse("the script's answer is not ASCII");
        }
        let mut answer = Answer::default();
        for element in text.split(';') {
            let element = element.trim_matches([' ', '\t', '\r', '\n']);
            if element.is_empty() {
                continue;
            }
            match parse_element(element, socks) {
                Some(proxy) => answer.proxies.push(proxy),
                None => answer.skipped.push(element.to_owned()),
            }
        }
        Ok(answer)
    }

    /// Keeps the kinds the host can use. `E_PROXY_SELECTOR` when that leaves nothing of a list that named
    /// something: it never becomes DIRECT.
    pub fn keep(mut self, kinds: &[ProxyKind]) -> Result<Answer> {
        let had = !self.proxies.is_empty();
        self.proxies.retain(|entry| kinds.contains(&kind_of(entry)));
        if had && self.proxies.is_empty() {
            let why = "the script names only kinds of proxy this host cannot use";
            return Err(Error::new(Status::E_PROXY_SELECTOR, why).source(Source::Script));
        }
        Ok(self)
    }
}

fn parse_element(element: &str, socks: ProxyKind) -> Option<Listed> {
    let mut words = element.split([' ', '\t']).filter(|word| !word.is_empty());
    let keyword = words.next()?.to_ascii_uppercase();
    let place = words.next();
    if words.next().is_some() {
        return None;
    }
    let kind = match keyword.as_str() {
        "DIRECT" => return place.is_none().then_some(Listed::Direct),
        "PROXY" | "HTTP" => ProxyKind::Http,
        "HTTPS" => ProxyKind::Https,
        "SOCKS" => socks,
        "SOCKS4" => ProxyKind::Socks4,
        "SOCKS4A" => ProxyKind::Socks4a,
        "SOCKS5" => ProxyKind::Socks5h,
        _ => return None,
    };
    let place = place?;
    if place.contains(['/', '@', '?', '#', '\\', '%']) {
        return None;
    }
    let parts = Authority::split(place)?;
    let port = match parts.port {
        None => default_port(kind),
        Some(digits) => parse_port(digits)?,
    };
    let host = canonical_host(parts.host)?;
    let host = host.strip_suffix('.').unwrap_or(&host);
    Proxy::new(kind, host, i64::from(port)).ok().map(|proxy| Listed::Proxy(Arc::new(proxy)))
}
