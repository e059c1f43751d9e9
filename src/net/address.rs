//! [`Address`]: where a host wants to go, by whatever proxy and resolver. Immutable and plain: it pins nothing of
//! an engine, so a route that holds one can be kept for ever.

use super::compat::{self, Compat};
use super::host::{Host, ZoneIndex};
use super::intern::{Interner, Value};
use super::proxy::Proxy;
use crate::error::{Error, Result, Status};
use core::fmt;
use std::sync::Arc;

/// What the route database knows of an address: TLS or not, host, port, and the host's own TLS identity. Interned.
pub struct Origin {
    id: u64,
    key: Box<[u8]>,
    tls: bool,
    host: Host,
    port: u16,
    tls_identity: u64,
    tls_identity_bytes: Box<[u8]>,
}

impl Value for Origin {
    fn key(&self) -> &[u8] {
        &self.key
    }
    fn id(&self) -> u64 {
        self.id
    }
}

static ORIGINS: Interner<Origin> = Interner::new();

impl Drop for Origin {
    fn drop(&mut self) {
        ORIGINS.forget(&self.key, self.id);
    }
}

impl Origin {
    /// The one live origin with these values.
    pub fn intern(
        tls: bool,
        host: Host,
        port: u16,
        tls_identity: u64,
        tls_identity_bytes: &[u8],
    ) -> Arc<Origin> {
        let mut key = Vec::with_capacity(32 + host.text().len() + tls_identity_bytes.len());
        key.push(u8::from(tls));
        key.extend_from_slice(&port.to_le_bytes());
        key.extend_from_slice(&tls_identity.to_le_bytes());
        key.extend_from_slice(host.text().as_bytes());
        key.push(0);
        key.extend_from_slice(&host.ip().map_or(0, |ip| ip.scope_id).to_le_bytes());
        key.extend_from_slice(tls_identity_bytes);
        ORIGINS.intern(&key, |id| Origin {
            id,
            key: key.as_slice().into(),
            tls,
            host,
            port,
            tls_identity,
            tls_identity_bytes: tls_identity_bytes.into(),
        })
    }

    /// Interned identity, never reused.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }
    /// True when TLS is spoken to the origin.
    pub fn tls(&self) -> bool {
        self.tls
    }
    /// Canonical host.
    pub fn host(&self) -> &Host {
        &self.host
    }
    /// Port.
    pub fn port(&self) -> u16 {
        self.port
    }
    /// The host's opaque TLS identity.
    pub fn tls_identity(&self) -> u64 {
        self.tls_identity
    }
    /// More of it, as bytes.
    pub fn tls_identity_bytes(&self) -> &[u8] {
        &self.tls_identity_bytes
    }
}

/// What an address is made from. Everything but host and port may stay at its default.
#[derive(Clone, Copy, Default)]
pub struct AddressSpec<'a> {
    /// URL scheme; empty means `https` or `http` by [`AddressSpec::tls`]. `https` and `wss` imply TLS.
    pub scheme: &'a str,
    /// TLS to the origin.
    pub tls: bool,
    /// Host name or IP literal.
    pub host: &'a str,
    /// 1..65535.
    pub port: i64,
    /// Explicit proxy; the proxy selector is then not asked.
    pub proxy: Option<ExplicitProxy<'a>>,
    /// Identity of the proxy selector, 0 for none (DIRECT).
    pub proxy_selector: u64,
    /// Identity of the resolver, 0 for the engine's default.
    pub dns: u64,
    /// Application protocols in order of preference, as ALPN names; `h2_prior_knowledge` needs a tunnel
    /// through HTTP proxies.
    pub protocols: &'a [&'a [u8]],
    /// Opaque identity of the host's own TLS configuration. Ignored without TLS.
    pub tls_identity: u64,
    /// More of it, as bytes.
    pub tls_identity_bytes: &'a [u8],
    /// Opaque identity of whatever answers a proxy's challenges; counts in equality.
    pub authenticator: u64,
}

/// An explicit choice of proxy: saying DIRECT differs from saying nothing.
#[derive(Clone, Copy)]
pub enum ExplicitProxy<'a> {
    /// No proxy, and nobody is asked.
    Direct,
    /// This proxy.
    Proxy(&'a Arc<Proxy>),
}

#[derive(Clone, PartialEq, Eq)]
enum Explicit {
    Unset,
    Direct,
    Proxy(Arc<Proxy>),
}

/// Marks an address whose plain-text protocol needs a tunnel through an HTTP proxy.
pub const H2_PRIOR_KNOWLEDGE: &[u8] = b"h2_prior_knowledge";

/// An address. Shared by `Arc`; equal values have the same [`Origin`].
pub struct Address {
    origin: Arc<Origin>,
    scheme: Box<str>,
    /// With a NUL behind it, for C.
    uri: Box<str>,
    uri_has_host: bool,
    proxy: Explicit,
    proxy_selector: u64,
    dns: u64,
    authenticator: u64,
    protocols: Box<[Box<[u8]>]>,
    profile: Compat,
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        _ => None,
    }
}

impl Address {
    /// Makes an address; host texts, IP literals and the URI for the proxy selector are worked out here, once.
    ///
    /// # Errors
    /// `E_INVALID_HOST`, `E_INVALID_PORT`, `E_ARGUMENT` for a scheme that is no scheme.
    pub fn new(spec: AddressSpec<'_>, profile: Compat, zone_index: ZoneIndex<'_>) -> Result<Address> {
        let host = Host::parse_as(spec.host, profile, zone_index)?;
        let port = u16::try_from(spec.port).ok().filter(|&port| port != 0).ok_or_else(|| {
            let message = match profile {
                Compat::Byway => format!("port {} is not in 1..65535", spec.port),
                _ => format!("unexpected port: {}", spec.port),
            };
            Error::new(Status::E_INVALID_PORT, message).subject(host.text())
        })?;
        let scheme = match spec.scheme {
            "" if spec.tls => "https".to_owned(),
            "" => "http".to_owned(),
            text => text.to_ascii_lowercase(),
        };
        let scheme_is_one = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        if !scheme_is_one {
            let message =
                "a scheme is letters, digits, '+', '-' and '.', and starts with a letter (RFC 3986 3.1)";
            return Err(Error::new(Status::E_ARGUMENT, message).subject("scheme"));
        }
        let tls = spec.tls || matches!(&*scheme, "https" | "wss");
        let (identity, identity_bytes) =
            if tls { (spec.tls_identity, spec.tls_identity_bytes) } else { (0, &[][..]) };
        let (uri_host, uri_has_host) = match profile {
            Compat::OkHttp5 => compat::uri_host(host.text()).map_or((None, false), |host| (Some(host), true)),
            _ => (None, true),
        };
        let shown = uri_host.as_deref().unwrap_or(host.text());
        let shown = super::host::BracketedHost(shown);
        let uri = match default_port(&scheme) == Some(port) {
            true => format!("{scheme}://{shown}/\0"),
            false => format!("{scheme}://{shown}:{port}/\0"),
        };
        Ok(Address {
            origin: Origin::intern(tls, host, port, identity, identity_bytes),
            scheme: scheme.into(),
            uri: uri.into(),
            uri_has_host,
            proxy: match spec.proxy {
                None => Explicit::Unset,
                Some(ExplicitProxy::Direct) => Explicit::Direct,
                Some(ExplicitProxy::Proxy(proxy)) => {
                    if profile == Compat::Byway {
                        proxy.check_port()?;
                    }
                    Explicit::Proxy(Arc::clone(proxy))
                }
            },
            proxy_selector: spec.proxy_selector,
            dns: spec.dns,
            authenticator: spec.authenticator,
            protocols: spec.protocols.iter().map(|&name| name.into()).collect(),
            profile,
        })
    }

    /// The part the route database knows.
    #[inline]
    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }
    /// Scheme, lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }
    /// Canonical host.
    #[inline]
    pub fn host(&self) -> &Host {
        &self.origin.host
    }
    /// Port.
    #[inline]
    pub fn port(&self) -> u16 {
        self.origin.port
    }
    /// True when TLS is spoken to the origin.
    #[inline]
    pub fn tls(&self) -> bool {
        self.origin.tls
    }
    /// URI for the proxy selector: scheme, host, port unless it is the scheme's default, path `/`.
    #[inline]
    pub fn uri(&self) -> &str {
        self.uri.get(..self.uri.len() - 1).unwrap_or_default()
    }
    /// The URI with a NUL behind it.
    pub fn c_uri(&self) -> &str {
        &self.uri
    }
    /// False when java.net.URI would see no host; only OkHttp 5's profile cares.
    pub fn uri_has_host(&self) -> bool {
        self.uri_has_host
    }
    /// The explicit choice, if one was made.
    #[inline]
    pub fn explicit_proxy(&self) -> Option<ExplicitProxy<'_>> {
        match &self.proxy {
            Explicit::Unset => None,
            Explicit::Direct => Some(ExplicitProxy::Direct),
            Explicit::Proxy(proxy) => Some(ExplicitProxy::Proxy(proxy)),
        }
    }
    /// Identity of the proxy selector, 0 for none.
    #[inline]
    pub fn proxy_selector(&self) -> u64 {
        self.proxy_selector
    }
    /// Identity of the resolver, 0 for the engine's default.
    #[inline]
    pub fn dns(&self) -> u64 {
        self.dns
    }
    /// Application protocols in order.
    pub fn protocols(&self) -> &[Box<[u8]>] {
        &self.protocols
    }
    /// Profile it was made under.
    pub fn profile(&self) -> Compat {
        self.profile
    }

    /// True when an HTTP proxy must be asked for a tunnel (`CONNECT`): TLS, or HTTP/2 with prior knowledge (the
    /// latter not in OkHttp 3).
    #[inline]
    pub fn needs_tunnel(&self) -> bool {
        self.origin.tls
            || (self.profile != Compat::OkHttp3
                && self.protocols.iter().any(|name| &**name == H2_PRIOR_KNOWLEDGE))
    }

    /// Equal in everything but host and scheme: what must match before a pooled connection of another host may be
    /// considered for this one.
    pub fn equal_non_host(&self, other: &Address) -> bool {
        let (a, b) = (&self.origin, &other.origin);
        a.port == b.port
            && a.tls == b.tls
            && a.tls_identity == b.tls_identity
            && a.tls_identity_bytes == b.tls_identity_bytes
            && self.proxy == other.proxy
            && self.proxy_selector == other.proxy_selector
            && self.dns == other.dns
            && self.authenticator == other.authenticator
            && self.protocols == other.protocols
    }

    /// Hash that is the same for equal addresses of this process.
    pub fn hash_value(&self) -> u64 {
        let words = [self.origin.id, self.proxy_selector, self.dns, self.authenticator];
        words
            .iter()
            .fold(0x9e37_79b9_7f4a_7c15, |h, &w| super::hash::fold(h ^ w, 0xd6e8_feb8_6659_fd93 ^ h >> 32))
    }

    /// OkHttp's text, with a name for the proxy selector object.
    pub fn okhttp_text(&self, selector_name: &str) -> String {
        let place = format!("{}:{}", self.host(), self.port());
        match &self.proxy {
            Explicit::Unset => format!("Address{{{place}, proxySelector={selector_name}}}"),
            Explicit::Direct => format!("Address{{{place}, proxy=DIRECT}}"),
            Explicit::Proxy(proxy) => format!("Address{{{place}, proxy={}}}", proxy.java_text()),
        }
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Address) -> bool {
        self.origin.id == other.origin.id && self.scheme == other.scheme && self.equal_non_host(other)
    }
}
impl Eq for Address {}

/// `scheme://host:port`, with the explicit proxy if there is one.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host().bracketed(), self.port())?;
        match &self.proxy {
            Explicit::Unset => Ok(()),
            Explicit::Direct => f.write_str(" (DIRECT)"),
            Explicit::Proxy(proxy) => write!(f, " (proxy {proxy})"),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(spec: AddressSpec<'_>) -> Address {
        Address::new(spec, Compat::Byway, &|_| None).unwrap()
    }

    #[test]
    fn the_uri_leaves_out_only_the_default_port() {
        for (scheme, host, port, want) in [
            ("http", "hosta", 80, "http://hosta/"),
            ("https", "hosta", 80, "https://hosta:80/"),
            ("wss", "::1", 443, "wss://[::1]/"),
            ("ftp", "host_a", 21, "ftp://host_a:21/"),
        ] {
            let spec = AddressSpec { scheme, host, port, ..AddressSpec::default() };
            assert_eq!(address(spec).uri(), want);
        }
    }

    #[test]
    fn equal_values_share_an_origin_while_one_lives() {
        let spec = AddressSpec { host: "shared.example", port: 1, dns: 5, ..AddressSpec::default() };
        let (a, b) = (address(spec), address(AddressSpec { dns: 6, ..spec }));
        assert_ne!(a, b);
        assert_eq!(a.origin().id(), b.origin().id());
        assert_ne!(a.origin().id(), address(AddressSpec { port: 2, ..spec }).origin().id());
    }

    #[test]
    fn ports_and_schemes_are_checked() {
        for (scheme, port, want) in [
            ("", 0, Status::E_INVALID_PORT),
            ("", 65536, Status::E_INVALID_PORT),
            ("1a", 1, Status::E_ARGUMENT),
        ] {
            let spec = AddressSpec { scheme, host: "h", port, ..AddressSpec::default() };
            assert_eq!(Address::new(spec, Compat::Byway, &|_| None).unwrap_err().status(), want);
        }
    }
}
