//! [`Proxy`]: how to leave this machine, where the intermediary is, and the credentials it alone may see.

use super::compat::Compat;
use super::host::{Host, ZoneIndex};
use super::intern::{Interner, Value};
use super::ip::Ip;
use crate::error::{Error, Result, Source, Status};
use core::fmt;
use std::sync::Arc;

/// Kind of proxy. Where the target's name is resolved follows the kind. Numbers are part of the C ABI.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
pub enum ProxyKind {
    /// No proxy.
    Direct = 0,
    /// HTTP proxy, `CONNECT` for tunnels (RFC 9110 9.3.6).
    Http = 1,
    /// HTTP proxy reached over TLS.
    Https = 2,
    /// SOCKS4: the target is resolved here, IPv4 only.
    Socks4 = 3,
    /// SOCKS4a: the proxy resolves.
    Socks4a = 4,
    /// SOCKS5 (RFC 1928), the target is resolved here.
    Socks5 = 5,
    /// SOCKS5, the proxy resolves. OkHttp's SOCKS is this one.
    Socks5h = 6,
}

impl ProxyKind {
    /// Every kind with its URL scheme.
    pub const ALL: [(ProxyKind, &'static str); 7] = [
        (ProxyKind::Direct, "direct"),
        (ProxyKind::Http, "http"),
        (ProxyKind::Https, "https"),
        (ProxyKind::Socks4, "socks4"),
        (ProxyKind::Socks4a, "socks4a"),
        (ProxyKind::Socks5, "socks5"),
        (ProxyKind::Socks5h, "socks5h"),
    ];

    /// The kind with this number.
    pub fn from_number(number: i32) -> Option<ProxyKind> {
        Some(Self::ALL.get(usize::try_from(number).ok()?)?.0)
    }

    /// The kind with this URL scheme, any letter case.
    pub fn from_scheme(scheme: &str) -> Option<ProxyKind> {
        Self::ALL.iter().find(|(_, own)| own.eq_ignore_ascii_case(scheme)).map(|(kind, _)| *kind)
    }

    /// URL scheme, lower case.
    pub fn scheme(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("direct", |(_, scheme)| scheme)
    }

    /// HTTP or HTTPS.
    #[inline]
    pub fn is_http(self) -> bool {
        matches!(self, ProxyKind::Http | ProxyKind::Https)
    }

    /// SOCKS of any version.
    #[inline]
    pub fn is_socks(self) -> bool {
        matches!(self, ProxyKind::Socks4 | ProxyKind::Socks4a | ProxyKind::Socks5 | ProxyKind::Socks5h)
    }

    /// SOCKS that takes an address, so the target's name is resolved here.
    #[inline]
    pub fn resolves_locally(self) -> bool {
        matches!(self, ProxyKind::Direct | ProxyKind::Socks4 | ProxyKind::Socks5)
    }
}

/// The part of a proxy that makes two of them the same proxy: kind, place, user.
struct Identity {
    id: u64,
    key: Box<[u8]>,
}

impl Value for Identity {
    fn key(&self) -> &[u8] {
        &self.key
    }
    fn id(&self) -> u64 {
        self.id
    }
}

static IDENTITIES: Interner<Identity> = Interner::new();

impl Drop for Identity {
    fn drop(&mut self) {
        IDENTITIES.forget(&self.key, self.id());
    }
}

/// A proxy. Immutable, plain values; credentials are shown nowhere.
#[derive(Clone)]
pub struct Proxy {
    identity: Arc<Identity>,
    kind: ProxyKind,
    host: Host,
    resolved: Option<Ip>,
    port: i64,
    user: Option<Box<str>>,
    password: Option<Box<str>>,
}

/// What a proxy is made from.
#[derive(Clone, Copy)]
pub struct ProxySpec<'a> {
    /// Kind; DIRECT takes nothing else.
    pub kind: ProxyKind,
    /// Host name or literal.
    pub host: &'a str,
    /// Address, when the host is already resolved: then it is the one used, and the name is only text.
    pub resolved: Option<Ip>,
    /// 1..65535.
    pub port: i64,
    /// User name for SOCKS or `Proxy-Authorization`.
    pub user: Option<&'a str>,
    /// Password.
    pub password: Option<&'a str>,
}

impl Proxy {
    /// A proxy by name or literal and port.
    ///
    /// # Errors
    /// `E_INVALID_PORT`, `E_INVALID_HOST`, `E_INVALID_PROXY` (DIRECT has no place).
    pub fn new(kind: ProxyKind, host: &str, port: i64) -> Result<Proxy> {
        let spec = ProxySpec { kind, host, resolved: None, port, user: None, password: None };
        let proxy = Self::listed(spec, Compat::Byway, &|_| None)?;
        proxy.check_port()?;
        Ok(proxy)
    }

    /// A proxy as a proxy selector lists it. Its port may be unusable: then that one entry fails when its turn
    /// comes, and the list goes on. Under compat the host is taken unseen, as java.net does.
    ///
    /// # Errors
    /// `E_INVALID_HOST`, `E_INVALID_PROXY` for DIRECT with a place or credentials that no protocol can carry.
    pub fn listed(spec: ProxySpec<'_>, profile: Compat, zone_index: ZoneIndex<'_>) -> Result<Proxy> {
        if spec.kind == ProxyKind::Direct {
            return Err(Error::new(Status::E_INVALID_PROXY, "DIRECT has no host and no port"));
        }
        check_credentials(&spec)?;
        let host = match (profile, spec.resolved) {
            (Compat::Byway, Some(ip)) if spec.host.is_empty() => Host::verbatim(&ip.to_string()),
            (Compat::Byway, _) => Host::parse(spec.host, zone_index)?,
            _ => Host::verbatim(spec.host),
        };
        let resolved = spec.resolved.map(Ip::unmapped);
        let mut key = Vec::with_capacity(64);
        key.extend_from_slice(&(spec.kind as i32).to_le_bytes());
        key.extend_from_slice(&spec.port.to_le_bytes());
        let user = spec.user.unwrap_or_default();
        key.extend_from_slice(&(user.len() as u64).to_le_bytes());
        key.push(u8::from(spec.user.is_some()));
        key.extend_from_slice(user.as_bytes());
        match resolved {
            // A resolved place is its address: the name is ignored, as java.net.InetSocketAddress does.
            Some(ip) => {
                key.push(1);
                key.extend_from_slice(&ip.bytes);
                key.push(ip.family);
                key.extend_from_slice(&ip.scope_id.to_le_bytes());
            }
            None => {
                key.push(2);
                key.extend_from_slice(host.text().to_ascii_lowercase().as_bytes());
                key.push(0);
                key.extend_from_slice(host.zone().unwrap_or_default().as_bytes());
            }
        }
        let identity = IDENTITIES.intern(&key, |id| Identity { id, key: key.as_slice().into() });
        Ok(Proxy {
            identity,
            kind: spec.kind,
            host,
            resolved,
            port: spec.port,
            user: spec.user.map(Into::into),
            password: spec.password.map(Into::into),
        })
    }

    /// `E_INVALID_PORT` unless the port is 1..65535.
    ///
    /// # Errors
    /// As said.
    pub fn check_port(&self) -> Result<u16> {
        self.usable_port().ok_or_else(|| {
            Error::new(Status::E_INVALID_PORT, format!("proxy port {} is not in 1..65535", self.port))
                .subject(format!("{self}"))
        })
    }

    /// Kind; never DIRECT (which is the absence of a proxy).
    #[inline]
    pub fn kind(&self) -> ProxyKind {
        self.kind
    }

    /// Host as given, canonical.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The one address used, when the proxy was made resolved or its host is a literal.
    #[inline]
    pub fn ip(&self) -> Option<Ip> {
        self.resolved.or_else(|| self.host.ip())
    }

    /// The address it was made with, if it was made resolved.
    pub fn resolved(&self) -> Option<Ip> {
        self.resolved
    }

    /// Port as given; may be out of range in a listed proxy.
    pub fn port(&self) -> i64 {
        self.port
    }

    /// Port that can be connected to.
    #[inline]
    pub fn usable_port(&self) -> Option<u16> {
        u16::try_from(self.port).ok().filter(|&port| port != 0)
    }

    /// User name, for the handshake with this proxy only.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Password, for the handshake with this proxy only.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Interned identity over kind, place and user; equal for equal proxies, never reused.
    #[inline]
    pub fn id(&self) -> u64 {
        self.identity.id
    }

    /// The same proxy with other credentials.
    ///
    /// # Errors
    /// `E_INVALID_PROXY` when the protocol cannot carry them.
    pub fn with_credentials(
        &self,
        user: Option<&str>,
        password: Option<&str>,
        profile: Compat,
    ) -> Result<Proxy> {
        let zone = self.host.zone();
        let scope = self.host.ip().map(|ip| ip.scope_id).filter(|&scope| scope != 0);
        let host =
            zone.map_or_else(|| self.host.text().to_owned(), |zone| format!("{}%{zone}", self.host.text()));
        let spec = ProxySpec {
            kind: self.kind,
            host: &host,
            resolved: self.resolved,
            port: self.port,
            user,
            password,
        };
        Self::listed(spec, profile, &|_| scope)
    }

    /// java.net's text: `HTTP @ proxya/<unresolved>:1001`, `HTTP @ /10.9.9.9:3128`.
    pub fn java_text(&self) -> String {
        let kind = if self.kind.is_http() { "HTTP" } else { "SOCKS" };
        match self.resolved {
            Some(ip) => format!("{kind} @ {}/{}:{}", "", super::compat::java_ip_text(ip), self.port),
            None => format!("{kind} @ {}/<unresolved>:{}", self.host.text(), self.port),
        }
    }
}

fn check_credentials(spec: &ProxySpec<'_>) -> Result<()> {
    let refuse = |what: &str| Err(Error::new(Status::E_INVALID_PROXY, what).source(Source::Argument));
    let (user, password) = (spec.user.unwrap_or_default(), spec.password.unwrap_or_default());
    if user.bytes().chain(password.bytes()).any(|b| b < 0x20 || b == 0x7f) {
        return refuse("a control character in the credentials of a proxy");
    }
    match spec.kind {
        ProxyKind::Http | ProxyKind::Https if user.contains(':') => {
            refuse("a user name with a colon cannot be sent by HTTP Basic (RFC 7617)")
        }
        ProxyKind::Socks5 | ProxyKind::Socks5h if user.len() > 255 || password.len() > 255 => {
            refuse("SOCKS5 takes at most 255 bytes of user name and of password (RFC 1929)")
        }
        ProxyKind::Socks4 | ProxyKind::Socks4a if spec.password.is_some() => {
            refuse("SOCKS4 has a user id and no password")
        }
        _ if user.len() > 4096 || password.len() > 4096 => refuse("credentials longer than 4096 bytes"),
        _ => Ok(()),
    }
}

/// Same kind, place and user. The password is not part of a proxy's identity.
impl PartialEq for Proxy {
    fn eq(&self, other: &Proxy) -> bool {
        self.identity.id == other.identity.id
    }
}
impl Eq for Proxy {}

/// `kind://host:port`, without credentials.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.kind.scheme(), self.host.bracketed())?;
        match self.resolved {
            Some(ip) if self.host.ip().is_none() => write!(f, "[{ip}]:{}", self.port),
            _ => write!(f, ":{}", self.port),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec<'a>(
        kind: ProxyKind,
        host: &'a str,
        user: Option<&'a str>,
        password: Option<&'a str>,
    ) -> ProxySpec<'a> {
        ProxySpec { kind, host, resolved: None, port: 1080, user, password }
    }

    fn listed(spec: ProxySpec<'_>) -> Result<Proxy> {
        Proxy::listed(spec, Compat::Byway, &|_| None)
    }

    #[test]
    fn equal_by_kind_place_and_user() {
        let a = listed(spec(ProxyKind::Socks5, "P.example", Some("u"), Some("1"))).unwrap();
        assert_eq!(a, listed(spec(ProxyKind::Socks5, "p.EXAMPLE", Some("u"), Some("2"))).unwrap());
        assert_ne!(a, listed(spec(ProxyKind::Socks5, "p.example", None, None)).unwrap());
        assert_ne!(a, listed(spec(ProxyKind::Socks5h, "p.example", Some("u"), None)).unwrap());
    }

    #[test]
    fn an_identity_lives_as_long_as_a_proxy_has_it_and_is_not_reused() {
        let first = Proxy::new(ProxyKind::Http, "only-here.example", 1).unwrap();
        let id = first.id();
        assert_eq!(Proxy::new(ProxyKind::Http, "only-here.example", 1).unwrap().id(), id);
        drop(first);
        assert!(Proxy::new(ProxyKind::Http, "only-here.example", 1).unwrap().id() > id);
    }

    #[test]
    fn credentials_are_shown_nowhere() {
        let proxy = listed(spec(ProxyKind::Http, "p.example", Some("alice"), Some("hunter2"))).unwrap();
        for text in [format!("{proxy}"), format!("{proxy:?}"), proxy.java_text()] {
            assert!(!text.contains("alice") && !text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn what_a_protocol_cannot_carry_is_refused() {
        let long = "x".repeat(256);
        for bad in [
            spec(ProxyKind::Http, "p", Some("a:b"), None),
            spec(ProxyKind::Http, "p", Some("a\r\nb"), None),
            spec(ProxyKind::Socks5, "p", Some(&long), None),
            spec(ProxyKind::Socks4a, "p", Some("u"), Some("p")),
            spec(ProxyKind::Direct, "p", None, None),
        ] {
            assert_eq!(listed(bad).unwrap_err().status(), Status::E_INVALID_PROXY);
        }
        for port in [0, -1, 65536, 662_184_962] {
            assert_eq!(Proxy::new(ProxyKind::Http, "p", port).unwrap_err().status(), Status::E_INVALID_PORT);
        }
    }
}
