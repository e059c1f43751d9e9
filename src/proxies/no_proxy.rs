//! `NO_PROXY`: which hosts are reached directly, in the dialect of the program whose setting it is.
//!
//! There is no standard; of 232 lists given to ten programs 93 get one answer. So the meaning has a name:
//!
//! | dialect | `x.com` | `.x.com` | `*.x.com` | port | networks | `*` | loopback |
//! |---|---|---|---|---|---|---|---|
//! | byway | apex, below | apex, below | below | yes, default filled in | both families, brackets allowed | any entry | implied, can be switched off |
//! | curl 8 | apex, below | apex, below | never | never | both, /0 compares exactly | only alone | no |
//! | Go httpproxy | apex, below | below | below | yes, default filled in | both | any entry | implied |
//! | Python urllib | apex, below | apex, below | never | text | no | only alone | no |
//! | Chromium | everything ending in it | below | below | yes | both | any entry | implied, link-local too |
//! | Node undici | apex, below | apex, below | apex, below | yes, default filled in | no | only alone | no |
//!
//! The list is compiled once; a question costs one hash per label of the host and allocates only in the dialects
//! that compare text. Names are never resolved.

use super::Why;
use super::bypass::{BypassList, Style};
use super::network::{self, Network, number, parse_length};
use super::target::{Target, default_port, parse_port};
use crate::error::{Error, Status};
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Whose reading of proxy variables is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dialect {
    /// The union people expect, every ignored entry reported.
    #[default]
    Byway,
    /// curl 8.
    Curl,
    /// Go's `golang.org/x/net/http/httpproxy`.
    Go,
    /// Python's `urllib.request`.
    Python,
    /// Chromium on Linux.
    Chromium,
    /// Node's undici.
    Node,
}

impl Dialect {
    /// The dialect with this lower-case name.
    pub fn named(name: &str) -> Option<Dialect> {
        Some(match name {
            "byway" => Dialect::Byway,
            "curl" => Dialect::Curl,
            "go" => Dialect::Go,
            "python" => Dialect::Python,
            "chromium" => Dialect::Chromium,
            "node" => Dialect::Node,
            _ => return None,
        })
    }
}

/// As [`Dialect::named`], for a parameter called `subject`.
///
/// # Errors
/// `E_ARGUMENT` with the name and the names there are.
pub fn dialect_of(name: &str, subject: &str) -> Result<Dialect, Error> {
    Dialect::named(name).ok_or_else(|| {
        let shown: String = name.chars().take(80).collect();
        let why = format!("no dialect \"{shown}\"; expected byway, curl, go, python, chromium or node");
        Error::new(Status::E_ARGUMENT, why).subject(subject)
    })
}

/// Switches of the byway dialect; the others have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `localhost`, `*.localhost`, 127.0.0.0/8 and ::1 are never proxied.
    pub loopback: bool,
    /// `.x.com` covers what is below `x.com` only.
    pub strict_dot: bool,
    /// Blanks separate entries too.
    pub blank_separates: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { loopback: true, strict_dot: false, blank_separates: false }
    }
}

/// A compiled list.
#[derive(Clone, Debug)]
pub struct NoProxy {
    dialect: Dialect,
    loopback: bool,
    everything: Option<Arc<str>>,
    local: Option<Arc<str>>,
    names: HashMap<Box<str>, Vec<Name>>,
    networks: Vec<Net>,
    browser: Option<BypassList>,
    ignored: Vec<String>,
}

#[derive(Clone, Debug)]
struct Name {
    text: Arc<str>,
    apex: bool,
    below: bool,
    port: Option<Port>,
}

#[derive(Clone, Debug)]
struct Net {
    text: Arc<str>,
    network: Network,
    port: Option<Port>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Port(u16);

impl NoProxy {
    /// Compiles a list in a dialect with its usual options.
    pub fn new(list: &str, dialect: Dialect) -> NoProxy {
        NoProxy::with_options(list, dialect, Options::default())
    }

    /// Compiles a list; `options` count in the byway dialect.
    pub fn with_options(list: &str, dialect: Dialect, options: Options) -> NoProxy {
        let mut set = NoProxy {
            dialect,
            loopback: match dialect {
                Dialect::Byway => options.loopback,
                Dialect::Go => true,
                _ => false,
            },
            everything: None,
            local: None,
            names: HashMap::new(),
            networks: Vec::new(),
            browser: None,
            ignored: Vec::new(),
        };
        match dialect {
            Dialect::Byway => set.compile_byway(list, options),
            Dialect::Curl => set.compile_curl(list),
            Dialect::Go => set.compile_go(list),
            Dialect::Python => set.compile_python(list),
            Dialect::Chromium => {
                let browser = BypassList::new(list, Style::BrowserSuffix);
                set.ignored = browser.ignored().to_vec();
                set.browser = Some(browser);
            }
            Dialect::Node => set.compile_node(list),
        }
        set
    }

    /// Entries that mean nothing in this dialect, one sentence each.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Why `target` is reached directly, or `None` when it is proxied.
    pub fn decide(&self, target: &Target<'_>) -> Option<Why> {
        if let Some(browser) = &self.browser {
            return browser.decide(target);
        }
        if let Some(entry) = &self.everything {
            return Some(Why::Exception(entry.clone()));
        }
        match self.dialect {
            Dialect::Python => self.decide_python(target),
            Dialect::Go => self.decide_go(target),
            _ => {
                let ip = target.ip();
                let port = match target.port {
                    // undici fills in 80 and 443 only.
                    _ if self.dialect == Dialect::Node
                        && !matches!(target.scheme, "http" | "https")
                        && target.authority().port.is_none() =>
                    {
                        0
                    }
                    0 => default_port(target.scheme),
                    port => port,
                };
                if let Some(entry) = self.find(target.host, ip, port) {
                    return Some(Why::Exception(entry.clone()));
                }
                let is_loopback = self.loopback
                    && ip.map_or_else(|| network::is_localhost_name(target.host), network::is_loopback);
                is_loopback.then_some(Why::Loopback)
            }
        }
    }

    fn find(&self, host: &str, ip: Option<IpAddr>, port: u16) -> Option<&Arc<str>> {
        let covers = |wanted: Option<Port>| wanted.is_none_or(|wanted| wanted.0 == port);
        if let Some(ip) = ip {
            if self.networks.is_empty() {
                return None;
            }
            let address = number(ip);
            // curl and Node compare within the family the URL is written in.
            let mapped_is_v6 = matches!(self.dialect, Dialect::Curl | Dialect::Node);
            let net = self.networks.iter().find(|net| {
                net.network.contains(address)
                    && covers(net.port)
                    && (!mapped_is_v6 || net.network.is_v6() == ip.is_ipv6())
            });
            return net.map(|net| &net.text);
        }
        if let Some(entry) = self.local.as_ref().filter(|_| !host.contains('.')) {
            return Some(entry);
        }
        if self.names.is_empty() {
            return None;
        }
        let name = match self.dialect {
            Dialect::Byway | Dialect::Curl => host.strip_suffix('.').unwrap_or(host),
            _ => host,
        };
        self.find_name(name, covers)
    }

    /// The whole name, then everything behind each of its dots.
    fn find_name(&self, name: &str, covers: impl Fn(Option<Port>) -> bool) -> Option<&Arc<str>> {
        let hit = |key: &str, apex: bool| {
            let rules = self.names.get(key)?;
            rules.iter().find(|rule| (if apex { rule.apex } else { rule.below }) && covers(rule.port))
        };
        if let Some(rule) = hit(name, true) {
            return Some(&rule.text);
        }
        let dots = name.bytes().enumerate().filter(|(_, byte)| *byte == b'.');
        for (dot, _) in dots {
            if let Some(rule) = hit(name.get(dot + 1..)?, false) {
                return Some(&rule.text);
            }
        }
        None
    }

    fn add_name(&mut self, key: &str, rule: Name) {
        self.names.entry(key.into()).or_default().push(rule);
    }

    fn ignore(&mut self, entry: &str, why: &str) {
        self.ignored.push(format!("no_proxy entry \"{entry}\" is ignored: {why}"));
    }

    // ---- byway

    fn compile_byway(&mut self, list: &str, options: Options) {
        let separates =
            |c: char| c == ',' || options.blank_separates && matches!(c, ' ' | '\t' | '\r' | '\n');
        for entry in list.split(separates) {
            let entry = entry.trim_matches([' ', '\t', '\r', '\n']);
            if entry.is_empty() {
                continue;
            }
            if let Err(why) = self.add_byway(entry, options.strict_dot) {
                self.ignore(entry, why);
            }
        }
    }

    fn add_byway(&mut self, entry: &str, strict_dot: bool) -> Result<(), &'static str> {
        let text: Arc<str> = entry.into();
        if entry == "*" {
            self.everything.get_or_insert(text);
            return Ok(());
        }
        if entry.eq_ignore_ascii_case("<local>") {
            self.local.get_or_insert(text);
            return Ok(());
        }
        if entry.contains("://") {
            return Err("a URL; expected a host");
        }
        if entry.contains([' ', '\t']) {
            return Err("a blank inside; entries are separated by commas");
        }
        if let Some((address, length)) = entry.split_once('/') {
            let network = if let Some(inner) = address.strip_prefix('[') {
                // Both `[2001:db8::]/32` and `[2001:db8::/32]` are in use.
                match inner.strip_suffix(']') {
                    Some(inner) => parse_network(inner, length),
                    None => length.strip_suffix(']').and_then(|length| parse_network(inner, length)),
                }
            } else {
                parse_network(address, length)
            };
            let network = network.ok_or("not address/length")?;
            self.networks.push(Net { text, network, port: None });
            return Ok(());
        }
        let (host, port) = if let Some(inner) = entry.strip_prefix('[') {
            let (inner, tail) = inner.split_once(']').ok_or("no closing bracket")?;
            let address = parse_address(inner).filter(IpAddr::is_ipv6).ok_or("not an IPv6 address")?;
            let port = match tail {
                "" => None,
                _ => Some(Port(tail.strip_prefix(':').and_then(parse_port).ok_or("not a port")?)),
            };
            self.networks.push(Net { text, network: Network::host(address), port });
            return Ok(());
        } else if let Some(address) = parse_address(entry) {
            self.networks.push(Net { text, network: Network::host(address), port: None });
            return Ok(());
        } else {
            match entry.split_once(':') {
                Some((host, port)) => (host, Some(Port(parse_port(port).ok_or("not a port")?))),
                None => (entry, None),
            }
        };
        if let Some(address) = parse_address(host) {
            self.networks.push(Net { text, network: Network::host(address), port });
            return Ok(());
        }
        let (name, apex) = match (host.strip_prefix("*."), host.strip_prefix('.')) {
            (Some(name), _) => (name, false),
            (_, Some(name)) => (name, !strict_dot),
            _ => (host, true),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.is_empty() || name.split('.').any(str::is_empty) {
            return Err("an empty label");
        }
        if name.contains('*') {
            return Err("a star is allowed alone or as the first label");
        }
        let name = idna::domain_to_ascii(name).map_err(|_| "not a host name")?;
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
        if !name.bytes().all(legal) {
            return Err("not a host name");
        }
        self.add_name(&name, Name { text, apex, below: true, port });
        Ok(())
    }

    // ---- curl: lib/proxy.c as of 8.x

    fn compile_curl(&mut self, list: &str) {
        if list == "*" {
            self.everything = Some("*".into());
            return;
        }
        let blank = [' ', '\t'];
        let mut rest = list;
        loop {
            rest = rest.trim_start_matches(blank);
            let end = rest.find([' ', '\t', ',']).unwrap_or(rest.len());
            let (token, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
            if !token.is_empty() {
                self.add_curl(token);
            }
            let tail = tail.trim_start_matches(blank);
            if !tail.starts_with(',') {
                if !tail.is_empty() {
                    self.ignore(tail, "a blank without a comma ends the list");
                }
                return;
            }
            rest = tail.trim_start_matches(',');
        }
    }

    fn add_curl(&mut self, token: &str) {
        let text: Arc<str> = token.into();
        if token.len() < 128 {
            let (address, length) = match token.split_once('/') {
                Some((address, length)) => (address, parse_length(length)),
                None => (token, Some(0)),
            };
            if let (Ok(address), Some(length)) = (address.parse::<IpAddr>(), length) {
                // A length of 0 means "exactly this address" there, also when it is written.
                let network = match length {
                    0 => Some(Network::host(address)),
                    _ => Network::new(address, length),
                };
                if let Some(network) = network {
                    self.networks.push(Net { text: text.clone(), network, port: None });
                }
            }
        }
        let name = token.strip_suffix('.').unwrap_or(token);
        let name = name.strip_prefix('.').unwrap_or(name).to_ascii_lowercase();
        self.add_name(&name, Name { text, apex: true, below: true, port: None });
    }

    // ---- Go: golang.org/x/net/http/httpproxy

    fn compile_go(&mut self, list: &str) {
        for entry in list.split(',') {
            let entry = entry.trim().to_lowercase();
            let text: Arc<str> = entry.as_str().into();
            if entry.is_empty() {
                continue;
            }
            if entry == "*" {
                self.everything = Some(text);
                return;
            }
            if let Some(network) = Network::parse(&entry) {
                self.networks.push(Net { text, network, port: None });
                continue;
            }
            let (host, port) = match split_host_port(&entry) {
                Some(("", _)) => {
                    self.ignore(&entry, "no host");
                    continue;
                }
                Some((host, "")) => (host, None),
                Some((host, port)) => match parse_port(port) {
                    Some(port) => (host, Some(Port(port))),
                    // Compared as text there, so it can match nothing.
                    None => {
                        self.ignore(&entry, "not a port");
                        continue;
                    }
                },
                None => (entry.as_str(), None),
            };
            if let Ok(address) = host.parse::<IpAddr>() {
                self.networks.push(Net { text, network: Network::host(address), port });
                continue;
            }
            let host = host.strip_prefix('*').filter(|tail| tail.starts_with('.')).unwrap_or(host);
            let (name, apex) = match host.strip_prefix('.') {
                Some(name) => (name, false),
                None => (host, true),
            };
            let name = if name.is_ascii() {
                name.to_owned()
            } else {
                idna::domain_to_ascii(name).unwrap_or_else(|_| name.to_owned())
            };
            self.add_name(&name, Name { text, apex, below: true, port });
        }
    }

    fn decide_go(&self, target: &Target<'_>) -> Option<Why> {
        // Go matches the host as the URL spells it: legacy IPv4 forms are names there.
        let written = target.authority().host;
        let written = written.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(written);
        let ip = match written.split_once('%') {
            Some((address, zone)) if !zone.is_empty() => address.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => written.parse::<IpAddr>().ok(),
        };
        if written == "localhost" || ip.is_some_and(network::is_loopback) {
            return Some(Why::Loopback);
        }
        // Other schemes than these two have no default port there.
        let port = match target.scheme {
            "http" | "https" => target.port,
            _ if target.authority().port.is_some() => target.port,
            _ => 0,
        };
        let host: Cow<'_, str> = match written {
            _ if !written.is_ascii() => Cow::Borrowed(target.host),
            _ if written.bytes().any(|b| b.is_ascii_uppercase()) => Cow::Owned(written.to_ascii_lowercase()),
            _ => Cow::Borrowed(written),
        };
        let entry = self.find(&host, ip, port)?;
        Some(Why::Exception(entry.clone()))
    }

    // ---- Python: urllib.request.proxy_bypass_environment

    fn compile_python(&mut self, list: &str) {
        if list == "*" {
            self.everything = Some("*".into());
            return;
        }
        for entry in list.split(',') {
            let entry = entry.trim();
            if !entry.is_empty() {
                let name = entry.trim_start_matches('.').to_lowercase();
                self.add_name(&name, Name { text: entry.into(), apex: true, below: true, port: None });
            }
        }
    }

    fn decide_python(&self, target: &Target<'_>) -> Option<Why> {
        let authority = target.host_and_port_text().to_lowercase();
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => &authority,
        };
        let entry = self.find_name(host, |_| true).or_else(|| self.find_name(&authority, |_| true))?;
        Some(Why::Exception(entry.clone()))
    }

    // ---- Node: undici's EnvHttpProxyAgent

    fn compile_node(&mut self, list: &str) {
        if list == "*" {
            self.everything = Some("*".into());
            return;
        }
        for entry in list.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|e| !e.is_empty()) {
            let (host, port) = match entry.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && parse_port(port).is_some() => {
                    (host, parse_port(port))
                }
                _ => (entry, None),
            };
            let name = host.strip_prefix('*').unwrap_or(host);
            let name = name.strip_prefix('.').unwrap_or(name).to_lowercase();
            let rule = Name { text: entry.into(), apex: true, below: true, port: port.map(Port) };
            // Addresses are compared as text, brackets and all.
            match name.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).map(str::parse::<Ipv6Addr>)
            {
                Some(Ok(address)) => self.networks.push(Net {
                    text: rule.text,
                    network: Network::host(IpAddr::V6(address)),
                    port: rule.port,
                }),
                _ => match name.parse::<std::net::Ipv4Addr>() {
                    Ok(address) => self.networks.push(Net {
                        text: rule.text,
                        network: Network::host(IpAddr::V4(address)),
                        port: rule.port,
                    }),
                    Err(_) => self.add_name(&name, rule),
                },
            }
        }
    }
}

fn parse_network(address: &str, length: &str) -> Option<Network> {
    Network::new(parse_address(address)?, parse_length(length)?)
}

/// An address; a zone is allowed behind IPv6 and ignored.
fn parse_address(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() => address.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// `host:port` or `[host]:port` with exactly one colon outside the brackets, as Go splits it.
fn split_host_port(text: &str) -> Option<(&str, &str)> {
    if let Some(inner) = text.strip_prefix('[') {
        let (host, tail) = inner.split_once(']')?;
        return Some((host, tail.strip_prefix(':')?)).filter(|(_, port)| !port.contains(':'));
    }
    let (host, port) = text.split_once(':')?;
    (!port.contains([':', '[', ']']) && !host.contains(['[', ']'])).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxies::OwnedTarget;

    fn bypassed(list: &str, dialect: Dialect, options: Options, uri: &str) -> bool {
        let target = OwnedTarget::parse(uri).unwrap();
        NoProxy::with_options(list, dialect, options).decide(&target.borrow()).is_some()
    }

    #[test]
    fn options_change_what_they_name() {
        let plain = Options { loopback: false, ..Options::default() };
        let strict = Options { strict_dot: true, ..plain };
        let blanks = Options { blank_separates: true, ..plain };
        for (list, options, uri, want) in [
            (".x.com", plain, "http://x.com/", true),
            (".x.com", strict, "http://x.com/", false),
            (".x.com", strict, "http://a.x.com/", true),
            ("a.com x.com", plain, "http://x.com/", false),
            ("a.com x.com", blanks, "http://x.com/", true),
            ("", plain, "http://localhost/", false),
            ("", Options::default(), "http://localhost/", true),
            ("[2001:db8::/32]", plain, "http://[2001:db8::1]/", true),
        ] {
            assert_eq!(bypassed(list, Dialect::Byway, options, uri), want, "{list} {uri}");
        }
    }

    #[test]
    fn entries_that_mean_nothing_are_reported_and_the_rest_stays() {
        let list = ":1,,,/8,[,]:80,%zz,a b,http://x.com,x.com:,x.com:99999,*x*,..x.com,192.168.1.*,good.com";
        let set = NoProxy::new(list, Dialect::Byway);
        assert_eq!(set.ignored().len(), 12, "{:#?}", set.ignored());
        assert!(bypassed(list, Dialect::Byway, Options::default(), "http://a.good.com"));
        assert!(!bypassed(list, Dialect::Byway, Options::default(), "http://x.com"));
    }

    #[test]
    fn a_dialect_there_is_not_is_refused_with_those_there_are() {
        assert_eq!(dialect_of("node", "dialect").unwrap(), Dialect::Node);
        let error = dialect_of(&format!("Curl\n{}", "x".repeat(100)), "dialect").unwrap_err();
        assert_eq!((error.status(), error.about()), (Status::E_ARGUMENT, "dialect"));
        let known = "expected byway, curl, go, python, chromium or node";
        assert_eq!(error.message(), format!("no dialect \"Curl\\n{}\"; {known}", "x".repeat(75)));
    }

    #[test]
    fn a_zone_never_becomes_a_domain_suffix() {
        for dialect in [Dialect::Byway, Dialect::Curl, Dialect::Go, Dialect::Chromium, Dialect::Node] {
            assert!(!bypassed(
                "example.com",
                dialect,
                Options::default(),
                "http://[1000::%25.example.com]:123"
            ));
        }
    }
}
