//! Exception lists as browsers, Windows and macOS write them.
//!
//! Browser grammar (Chromium's proxy bypass rules): entries separated by `,` or `;`, each
//! `[scheme://]pattern[:port]`, an IP literal, a CIDR block, `<local>` or `<-loopback>`. Later entries override
//! earlier ones; loopback and link-local hosts are exceptions unless `<-loopback>` takes that back. Windows uses
//! `;` and blanks, macOS a list of its own with short networks (`169.254/16`) and no implicit exceptions.

use super::network::{self, Network, number};
use super::target::{Target, default_port, parse_port};
use super::{Why, glob};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Which list this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Style {
    /// Chromium's rules.
    #[default]
    Browser,
    /// The same where plain names also cover everything they are a suffix of: how Chromium reads `NO_PROXY`.
    BrowserSuffix,
    /// The `ProxyOverride` value of Windows.
    Windows,
}

/// A compiled exception list.
#[derive(Clone, Debug, Default)]
pub struct BypassList {
    rules: Vec<Rule>,
    /// Loopback and link-local hosts are exceptions when no rule decides.
    implicit: bool,
    ignored: Vec<String>,
}

#[derive(Clone, Debug)]
struct Rule {
    text: Arc<str>,
    /// Empty: every scheme.
    scheme: Box<str>,
    /// 0: every port.
    port: u16,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// Names without a dot.
    Local,
    /// Takes the implicit exceptions back.
    MinusLoopback,
    Glob(Box<str>),
    Address(IpAddr),
    Network(Network),
}

impl BypassList {
    /// Compiles a list. Entries that mean nothing are left out and named in [`BypassList::ignored`].
    pub fn new(text: &str, style: Style) -> BypassList {
        let mut list = BypassList { implicit: true, ..BypassList::default() };
        let windows = style == Style::Windows;
        for entry in text.split(|c: char| matches!(c, ',' | ';') || windows && c.is_ascii_whitespace()) {
            let entry = entry.trim_matches([' ', '\t', '\r', '\n']);
            if entry.is_empty() {
                continue;
            }
            match Rule::parse(entry, style == Style::BrowserSuffix) {
                Some(rule) => list.rules.push(rule),
                None => list.ignored.push(format!("exception entry \"{entry}\" is not a host pattern")),
            }
        }
        list
    }

    /// The macOS exception list: exact names, `*` patterns, addresses and networks whose trailing octets may be
    /// missing; `exclude_simple` adds names without a dot.
    pub fn macos<'a>(entries: impl IntoIterator<Item = &'a str>, exclude_simple: bool) -> BypassList {
        let mut list = BypassList::default();
        for entry in entries {
            let entry = entry.trim();
            let rule = short_network(entry)
                .map(|network| Rule::plain(entry, What::Network(network)))
                .or_else(|| Rule::parse(entry, false));
            match rule {
                Some(rule) => list.rules.push(rule),
                None if entry.is_empty() => {}
                None => list.ignored.push(format!("exception entry \"{entry}\" is not a host pattern")),
            }
        }
        if exclude_simple {
            list.rules.push(Rule::plain("simple host names", What::Local));
        }
        list
    }

    /// True when no entry is in use.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Entries that were left out, one sentence each.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Switches the implicit loopback and link-local exceptions.
    #[must_use]
    pub fn with_implicit(mut self, on: bool) -> BypassList {
        self.implicit = on;
        self
    }

    /// The entry that makes `target` an exception, or `None` when it goes through the proxy.
    pub fn decide(&self, target: &Target<'_>) -> Option<Why> {
        let ip = target.ip();
        for rule in self.rules.iter().rev() {
            match rule.matches(target, ip) {
                None => {}
                Some(true) => return Some(Why::Exception(rule.text.clone())),
                Some(false) => return None,
            }
        }
        (self.implicit && is_implicit(target, ip)).then_some(Why::Loopback)
    }
}

fn is_implicit(target: &Target<'_>, ip: Option<IpAddr>) -> bool {
    match ip {
        Some(ip) => network::is_loopback(ip) || network::is_link_local(ip),
        None => network::is_localhost_name(target.host),
    }
}

impl Rule {
    fn plain(text: &str, what: What) -> Rule {
        Rule { text: text.into(), scheme: "".into(), port: 0, what }
    }

    fn parse(entry: &str, suffix: bool) -> Option<Rule> {
        match entry {
            _ if entry.eq_ignore_ascii_case("<local>") => return Some(Rule::plain(entry, What::Local)),
            _ if entry.eq_ignore_ascii_case("<-loopback>") => {
                return Some(Rule::plain(entry, What::MinusLoopback));
            }
            _ => {}
        }
        let (scheme, rest) = match entry.split_once("://") {
            Some(("", _)) | Some((_, "")) => return None,
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => (String::new(), entry),
        };
        let rule = |what, port| Some(Rule { text: entry.into(), scheme: scheme.as_str().into(), port, what });
        if rest.contains('/') {
            return rule(What::Network(Network::parse(rest)?), 0);
        }
        if let Some(inner) = rest.strip_prefix('[') {
            let (address, port) = inner.split_once(']')?;
            let port = if port.is_empty() { 0 } else { parse_port(port.strip_prefix(':')?)? };
            return rule(What::Address(IpAddr::V6(address.parse().ok()?)), port);
        }
        if let Ok(address) = rest.parse::<Ipv6Addr>() {
            return rule(What::Address(IpAddr::V6(address)), 0);
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) => (host, parse_port(port)?),
            None => (rest, 0),
        };
        if host.is_empty() || host.contains([':', '[', ']', ' ', '@', '<', '>']) {
            return None;
        }
        if let Ok(address) = host.parse::<Ipv4Addr>() {
            return rule(What::Address(IpAddr::V4(address)), port);
        }
        let host = if host.is_ascii() {
            host.to_ascii_lowercase()
        } else {
            // Only names without wildcards can be converted; the others are left as typed.
            idna::domain_to_ascii(host).unwrap_or_else(|_| host.to_lowercase())
        };
        let widen = host.starts_with('.') || suffix && !host.starts_with('*');
        rule(What::Glob(if widen { format!("*{host}").into() } else { host.into() }), port)
    }

    /// `Some(true)`: exception, `Some(false)`: taken back, `None`: not about this target.
    fn matches(&self, target: &Target<'_>, ip: Option<IpAddr>) -> Option<bool> {
        if !self.scheme.is_empty() && *self.scheme != *target.scheme {
            return None;
        }
        let port = if target.port == 0 { default_port(target.scheme) } else { target.port };
        if self.port != 0 && self.port != port {
            return None;
        }
        let hit = match &self.what {
            What::Local => ip.is_none() && !target.host.contains('.'),
            What::MinusLoopback => return is_implicit(target, ip).then_some(false),
            // A zone is no part of the name: it must not satisfy a suffix.
            What::Glob(pattern) => glob::matches(pattern, target.host.split('%').next().unwrap_or_default()),
            What::Address(address) => ip == Some(*address),
            What::Network(network) => ip.is_some_and(|ip| network.contains(number(ip))),
        };
        hit.then_some(true)
    }
}

/// `169.254/16`: an IPv4 network whose trailing zero octets are left out.
fn short_network(entry: &str) -> Option<Network> {
    let (address, length) = entry.split_once('/')?;
    let given = address.split('.').count();
    if given > 4 {
        return None;
    }
    let full = format!("{address}{}", ".0".repeat(4 - given));
    Network::new(IpAddr::V4(full.parse().ok()?), network::parse_length(length)?)
}
