//! [`Route`]: one way to an address. One TCP destination (`hop`, what `connect(2)` gets) and one `target` (what the
//! proxy or TLS is told).

use super::address::Address;
use super::compat::{self, Compat};
use super::dns::Service;
use super::ip::Ip;
use super::proxy::{Proxy, ProxyKind};
use core::fmt;
use std::sync::Arc;

/// What the route database compares: eight plain words.
///
/// Origin id, proxy id, hop, the target address where byway resolved it, and (OkHttp 5 only) the ECH configuration.
/// Ids are interned and never reused, so equal keys mean equal values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RouteKey(pub(crate) [u64; 8]);

impl RouteKey {
    /// Builds a key. `target` is [`Ip::NONE`] when it is the hop or a name.
    #[inline]
    pub(crate) fn new(origin: u64, proxy: u64, hop: Ip, port: u16, target: Ip, ech: u64) -> RouteKey {
        let [h0, h1] = hop.words();
        let [t0, t1] = target.words();
        let place = u64::from(hop.scope_id) << 32
            | u64::from(port) << 16
            | u64::from(hop.family) << 8
            | u64::from(target.family);
        RouteKey([origin, proxy, h0, h1, place, t0, t1, ech])
    }

    /// The hop's address and port.
    pub fn hop(&self) -> (Ip, u16) {
        let w = &self.0;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&w[2].to_ne_bytes());
        bytes[8..].copy_from_slice(&w[3].to_ne_bytes());
        let family = (w[4] >> 8) as u8;
        (Ip { bytes, scope_id: (w[4] >> 32) as u32, family, reserved: [0; 3] }, (w[4] >> 16) as u16)
    }

    /// The target address byway resolved, [`Ip::NONE`] when the target is the hop or a name.
    pub fn target(&self) -> Ip {
        let w = &self.0;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&w[5].to_ne_bytes());
        bytes[8..].copy_from_slice(&w[6].to_ne_bytes());
        Ip { bytes, scope_id: 0, family: w[4] as u8, reserved: [0; 3] }
    }
}

/// 64-bit fingerprint of an ECH configuration, 0 for none: equality of routes in OkHttp 5 counts it.
pub(crate) fn ech_word(service: Option<&Service>) -> u64 {
    use once_cell::sync::Lazy;
    static SEED: Lazy<super::hash::Seed> = Lazy::new(super::hash::Seed::random);
    match service {
        Some(service) if !service.ech.is_empty() => SEED.hash_bytes(&service.ech) | 1,
        _ => 0,
    }
}

/// A route that owns what it shows; it holds no engine, resolver or callback. Cloning clones three `Arc`s.
#[derive(Clone)]
pub struct Route {
    pub(crate) key: RouteKey,
    pub(crate) address: Arc<Address>,
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) selector: u64,
    pub(crate) flags: u8,
}

/// Bits of [`Route::flags`].
pub mod flag {
    /// It had failed before and was put behind the others.
    pub const POSTPONED: u8 = 1;
    /// The address filter refused it; never delivered.
    pub const FILTERED: u8 = 2;
    /// The proxy selector chose its proxy.
    pub const FROM_SELECTOR: u8 = 4;
    /// The target was not checked by the address filter, because the proxy resolves its name.
    pub const NOT_CHECKED: u8 = 8;
}

/// What a route is told to reach: a name, or an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// The proxy resolves it, or TLS is told it.
    Name(&'a str),
    /// Resolved here, or a literal.
    Ip(Ip),
}

impl Route {
    /// A route from its parts: for hosts that keep routes of their own, and for tests.
    pub fn new(
        address: Arc<Address>,
        proxy: Option<Arc<Proxy>>,
        hop: (Ip, u16),
        target: Ip,
        service: Option<Arc<Service>>,
    ) -> Route {
        let ech = if address.profile() == Compat::OkHttp5 { ech_word(service.as_deref()) } else { 0 };
        let proxy_id = proxy.as_ref().map_or(0, |proxy| proxy.id());
        let key = RouteKey::new(address.origin().id(), proxy_id, hop.0, hop.1, target, ech);
        Route { key, address, proxy, service, selector: 0, flags: 0 }
    }

    /// The database key.
    #[inline]
    pub fn key(&self) -> &RouteKey {
        &self.key
    }
    /// The address it leads to.
    pub fn address(&self) -> &Arc<Address> {
        &self.address
    }
    /// The proxy it goes through, `None` for DIRECT.
    pub fn proxy(&self) -> Option<&Arc<Proxy>> {
        self.proxy.as_ref()
    }
    /// Kind of proxy, DIRECT without one.
    pub fn proxy_kind(&self) -> ProxyKind {
        self.proxy.as_ref().map_or(ProxyKind::Direct, |proxy| proxy.kind())
    }
    /// HTTPS/SVCB metadata of the name that was resolved for the hop (or for the target, with SOCKS4 and 5).
    pub fn service(&self) -> Option<&Arc<Service>> {
        self.service.as_ref()
    }
    /// Id of the selector that made it, 0 for none.
    pub fn selector(&self) -> u64 {
        self.selector
    }
    /// Bits of [`flag`].
    pub fn flags(&self) -> u8 {
        self.flags
    }
    /// Where `connect(2)` goes. Family 0 only for OkHttp's unresolved SOCKS route.
    #[inline]
    pub fn hop(&self) -> (Ip, u16) {
        self.key.hop()
    }

    /// The same, lent.
    pub fn as_ref(&self) -> RouteRef<'_> {
        let (hop, port) = self.key.hop();
        RouteRef {
            hop,
            port,
            target: self.key.target(),
            address: &self.address,
            proxy: self.proxy.as_ref(),
            service: self.service.as_ref(),
            selector: self.selector,
            flags: self.flags,
        }
    }

    /// What the proxy or TLS is told, and the port.
    pub fn target(&self) -> (Target<'_>, u16) {
        let resolved = self.key.target();
        let target = match (self.proxy.is_some(), resolved.is_some(), self.address.host().ip()) {
            (_, true, _) => Target::Ip(resolved),
            (false, ..) => Target::Ip(self.key.hop().0),
            // A scope means nothing to another machine.
            (true, false, Some(ip)) => Target::Ip(Ip { scope_id: 0, ..ip }),
            (true, false, None) => Target::Name(self.address.host().text()),
        };
        (target, self.address.port())
    }

    /// True when an HTTP proxy must first be asked for a tunnel.
    pub fn requires_tunnel(&self) -> bool {
        self.proxy_kind().is_http() && self.address.needs_tunnel()
    }

    /// OkHttp's `socketAddress`: the hop; for SOCKS the unresolved origin.
    pub fn socket_address(&self) -> (Option<Ip>, u16) {
        if self.proxy_kind().is_socks() {
            return (None, self.address.port());
        }
        let (ip, port) = self.hop();
        (Some(ip), port)
    }

    /// Hash that is the same for equal routes of this process.
    pub fn hash_value(&self) -> u64 {
        self.key.0.chunks(2).fold(0x9e37_79b9_7f4a_7c15, |h, w| {
            super::hash::fold(h ^ w[0], w[1] ^ 0xd6e8_feb8_6659_fd93 ^ h.rotate_left(32))
        })
    }

    /// Text of OkHttp 3.
    pub fn okhttp3_text(&self) -> String {
        let (ip, port) = self.hop();
        match ip.is_some() {
            true => format!("Route{{{}:{port}}}", compat::java_ip_text(ip)),
            false => format!("Route{{{}:{port}}}", self.address.host()),
        }
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Route) -> bool {
        self.key == other.key
    }
}
impl Eq for Route {}

/// `HOST[:PORT]`, then ` at IP:PORT` or ` via proxy IP:PORT` where that says more, then ` with ECH`.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.address.host();
        let (ip, port) = self.hop();
        let hop = if ip.is_some() { ip.to_string() } else { "<unresolved>".to_owned() };
        let same = hop == host.text() || host.ip() == Some(ip);
        write!(f, "{}", host.bracketed())?;
        if self.address.port() != port || same {
            write!(f, ":{}", self.address.port())?;
        }
        if !same {
            let word = if self.proxy.is_some() { "via proxy" } else { "at" };
            if ip.is_some() {
                write!(f, " {word} {}", ip.with_port(port))?;
            } else {
                write!(f, " {word} {hop}:{port}")?;
            }
        }
        if self.service.as_ref().is_some_and(|service| !service.ech.is_empty()) {
            f.write_str(" with ECH")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A route lent by a selector: the same answers as [`Route`], nothing cloned.
#[derive(Clone, Copy)]
pub struct RouteRef<'a> {
    pub(crate) hop: Ip,
    pub(crate) port: u16,
    pub(crate) target: Ip,
    pub(crate) address: &'a Arc<Address>,
    pub(crate) proxy: Option<&'a Arc<Proxy>>,
    pub(crate) service: Option<&'a Arc<Service>>,
    pub(crate) selector: u64,
    pub(crate) flags: u8,
}

impl RouteRef<'_> {
    /// An owned copy.
    pub fn to_route(&self) -> Route {
        Route {
            key: self.key(),
            address: Arc::clone(self.address),
            proxy: self.proxy.cloned(),
            service: self.service.cloned(),
            selector: self.selector,
            flags: self.flags,
        }
    }
    /// The database key.
    pub fn key(&self) -> RouteKey {
        let ech = match self.address.profile() {
            Compat::OkHttp5 => ech_word(self.service.map(|service| &**service)),
            _ => 0,
        };
        let proxy = self.proxy.map_or(0, |proxy| proxy.id());
        RouteKey::new(self.address.origin().id(), proxy, self.hop, self.port, self.target, ech)
    }
    /// The address it leads to.
    #[inline]
    pub fn address(&self) -> &Arc<Address> {
        self.address
    }
    /// True when there is nothing to it but a hop: DIRECT, no metadata.
    #[inline]
    pub fn is_bare(&self) -> bool {
        self.proxy.is_none() && self.service.is_none()
    }
    /// The target address byway resolved, [`Ip::NONE`] when the target is the hop or a name.
    #[inline]
    pub fn target_ip(&self) -> Ip {
        self.target
    }
    /// The proxy it goes through.
    pub fn proxy(&self) -> Option<&Arc<Proxy>> {
        self.proxy
    }
    /// Kind of proxy.
    #[inline]
    pub fn proxy_kind(&self) -> ProxyKind {
        self.proxy.map_or(ProxyKind::Direct, |proxy| proxy.kind())
    }
    /// Service metadata.
    pub fn service(&self) -> Option<&Arc<Service>> {
        self.service
    }
    /// Bits of [`flag`].
    #[inline]
    pub fn flags(&self) -> u8 {
        self.flags
    }
    /// Where `connect(2)` goes.
    #[inline]
    pub fn hop(&self) -> (Ip, u16) {
        (self.hop, self.port)
    }
    /// True when an HTTP proxy must first be asked for a tunnel.
    #[inline]
    pub fn requires_tunnel(&self) -> bool {
        self.proxy_kind().is_http() && self.address.needs_tunnel()
    }
}

/// May a live connection made over `connection` serve `wanted`, whose own routes are `wanted_routes`?
///
/// RFC 9113 9.1.1 and OkHttp's rules: same address; or HTTP/2, a certificate that covers the host under the
/// default verification (and pins that hold), both DIRECT, and the very same ip and port.
pub fn coalesces(
    connection: &Route,
    wanted: &Address,
    wanted_routes: &[Route],
    peer: &Peer,
) -> Result<(), NoCoalescing> {
    if !connection.address.equal_non_host(wanted) {
        return Err(NoCoalescing::OtherAddress);
    }
    if connection.address.host() == wanted.host() && connection.address.tls() == wanted.tls() {
        return Ok(());
    }
    if !peer.multiplexed {
        return Err(NoCoalescing::NotMultiplexed);
    }
    if peer.refused_before {
        return Err(NoCoalescing::RefusedBefore);
    }
    let hop = connection.hop();
    let shared = wanted_routes.iter().any(|route| {
        route.proxy.is_none() && connection.proxy.is_none() && route.hop() == hop && hop.0.is_some()
    });
    if !shared {
        return Err(NoCoalescing::NoSharedIp);
    }
    if !wanted.tls() || !peer.default_verification || !peer.certificate_covers_host || !peer.pins_hold {
        return Err(NoCoalescing::NotVerified);
    }
    Ok(())
}

/// What the host knows of the peer of a live connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// HTTP/2 or newer.
    pub multiplexed: bool,
    /// The host names are verified by the default rules, not by the host's own.
    pub default_verification: bool,
    /// The certificate covers the wanted host.
    pub certificate_covers_host: bool,
    /// Pins for the wanted host hold (true when there are none).
    pub pins_hold: bool,
    /// The peer answered 421 to a coalesced request before.
    pub refused_before: bool,
}

/// Why a connection must not be shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum NoCoalescing {
    /// Port, TLS, proxy, resolver or protocols differ.
    OtherAddress = 1,
    /// The connection carries one exchange at a time.
    NotMultiplexed = 2,
    /// 421 before.
    RefusedBefore = 3,
    /// No DIRECT route of the wanted host has this ip and port.
    NoSharedIp = 4,
    /// The certificate or its pins do not cover the host.
    NotVerified = 5,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::address::AddressSpec;

    fn address(host: &str, dns: u64) -> Arc<Address> {
        let spec = AddressSpec { tls: true, host, port: 443, dns, ..AddressSpec::default() };
        Arc::new(Address::new(spec, Compat::Byway, &|_| None).unwrap())
    }

    fn direct(address: &Arc<Address>, ip: &str) -> Route {
        Route::new(Arc::clone(address), None, (Ip::parse(ip).unwrap(), 443), Ip::NONE, None)
    }

    const PEER: Peer = Peer {
        multiplexed: true,
        default_verification: true,
        certificate_covers_host: true,
        pins_hold: true,
        refused_before: false,
    };

    #[test]
    fn a_key_gives_back_hop_and_target() {
        let hop = Ip::parse("fe80::1%7").unwrap();
        let key = RouteKey::new(1, 2, hop, 8080, Ip::v4([192, 0, 2, 1]), 0);
        assert_eq!((key.hop(), key.target()), ((hop, 8080), Ip::v4([192, 0, 2, 1])));
    }

    #[test]
    fn connections_are_shared_only_where_the_peer_is_proved_to_be_the_same() {
        let (a, b) = (address("a.example", 1), address("b.example", 1));
        let live = direct(&a, "192.0.2.1");
        let same_ip = [direct(&b, "192.0.2.2"), direct(&b, "192.0.2.1")];
        assert_eq!(coalesces(&live, &a, &[], &Peer { multiplexed: false, ..PEER }), Ok(()));
        assert_eq!(coalesces(&live, &b, &same_ip, &PEER), Ok(()));
        for (wanted, routes, peer, want) in [
            (&address("b.example", 2), &same_ip[..], PEER, NoCoalescing::OtherAddress),
            (&b, &same_ip, Peer { multiplexed: false, ..PEER }, NoCoalescing::NotMultiplexed),
            (&b, &same_ip, Peer { refused_before: true, ..PEER }, NoCoalescing::RefusedBefore),
            (&b, &same_ip[..1], PEER, NoCoalescing::NoSharedIp),
            (&b, &same_ip, Peer { certificate_covers_host: false, ..PEER }, NoCoalescing::NotVerified),
            (&b, &same_ip, Peer { default_verification: false, ..PEER }, NoCoalescing::NotVerified),
            (&b, &same_ip, Peer { pins_hold: false, ..PEER }, NoCoalescing::NotVerified),
        ] {
            assert_eq!(coalesces(&live, wanted, routes, &peer), Err(want));
        }
    }
}
