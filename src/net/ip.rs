//! [`Ip`]: one IP address as plain bytes, the same layout as the C record `byway_ip`.

use crate::error::{Error, Result, Source, Status};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Family number of IPv4 in [`Ip::family`].
pub const V4: u8 = 4;
/// Family number of IPv6 in [`Ip::family`].
pub const V6: u8 = 6;

/// One IP address. IPv4 uses the first four bytes. Equality is by value, scope included.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ip {
    /// Network byte order; IPv4 in the first four bytes, the rest zero.
    pub bytes: [u8; 16],
    /// Interface index of a link-local IPv6 address, else 0.
    pub scope_id: u32,
    /// 4, 6, or 0 for "none".
    pub family: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

impl Ip {
    /// No address.
    pub const NONE: Ip = Ip { bytes: [0; 16], scope_id: 0, family: 0, reserved: [0; 3] };

    /// An IPv4 address.
    pub const fn v4(b: [u8; 4]) -> Ip {
        let bytes = [b[0], b[1], b[2], b[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        Ip { bytes, scope_id: 0, family: V4, reserved: [0; 3] }
    }

    /// An IPv6 address; `scope_id` is an interface index or 0.
    pub const fn v6(bytes: [u8; 16], scope_id: u32) -> Ip {
        Ip { bytes, scope_id, family: V6, reserved: [0; 3] }
    }

    /// Parses a literal, without brackets; a numeric `%zone` becomes the scope id.
    ///
    /// # Errors
    /// `E_INVALID_IP` when the text is not a literal of either family.
    pub fn parse(text: &str) -> Result<Ip> {
        let (literal, zone) = text.split_once('%').map_or((text, None), |(ip, zone)| (ip, Some(zone)));
        let refuse = || {
            Error::new(Status::E_INVALID_IP, format!("expected an IPv4 or IPv6 address, found {text:?}"))
                .source(Source::Parser)
        };
        match (literal.parse::<IpAddr>(), zone) {
            (Ok(ip), None) => Ok(Ip::from(ip)),
            (Ok(IpAddr::V6(ip)), Some(zone)) => {
                Ok(Ip::v6(ip.octets(), zone.parse::<u32>().map_err(|_| refuse())?))
            }
            _ => Err(refuse()),
        }
    }

    /// IPv4-mapped IPv6 (`::ffff:a.b.c.d`, RFC 4291 2.5.5.2) as the IPv4 address it stands for.
    #[must_use]
    #[inline(always)]
    pub fn unmapped(self) -> Ip {
        if self.family == V6 && self.is_mapped() { self.mapped() } else { self }
    }

    /// Ten bytes of zeros, two of ones.
    #[inline]
    fn is_mapped(&self) -> bool {
        let [first, second] = self.words();
        first == 0 && second & Self::PREFIX == Self::MAPPED
    }

    /// The part of the second word that tells IPv4-mapped addresses, and what it says there.
    const PREFIX: u64 = u64::from_ne_bytes([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    const MAPPED: u64 = u64::from_ne_bytes([0, 0, 0xff, 0xff, 0, 0, 0, 0]);

    /// An address in the one form in which byway keeps it: of a known family, zero where it has to be, and IPv4 where it
    /// stands for IPv4. Such ones are copied whole; one that is put together from its bytes costs as much as all the rest
    /// that is done with it.
    #[inline(always)]
    pub fn is_canonical(&self) -> bool {
        const FOUR: u32 = u32::from_ne_bytes([V4, 0, 0, 0]);
        const SIX: u32 = u32::from_ne_bytes([V6, 0, 0, 0]);
        const BEHIND_FOUR: u64 = u64::from_ne_bytes([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        let [first, second] = self.words();
        let [a, b, c] = self.reserved;
        match u32::from_ne_bytes([self.family, a, b, c]) {
            FOUR => first & BEHIND_FOUR | second | u64::from(self.scope_id) == 0,
            SIX => first != 0 || second & Self::PREFIX != Self::MAPPED,
            _ => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn mapped(self) -> Ip {
        let b = self.bytes;
        Ip::v4([b[12], b[13], b[14], b[15]])
    }

    /// True when this is an address of a known family.
    #[inline]
    pub fn is_some(self) -> bool {
        self.family == V4 || self.family == V6
    }

    /// The address as the standard library's type, without scope; `None` for "none".
    pub fn to_std(self) -> Option<IpAddr> {
        let b = self.bytes;
        match self.family {
            V4 => Some(IpAddr::V4(Ipv4Addr::new(b[0], b[1], b[2], b[3]))),
            V6 => Some(IpAddr::V6(Ipv6Addr::from(b))),
            _ => None,
        }
    }

    /// The 16 bytes as two words, for keys.
    #[inline]
    pub(crate) fn words(&self) -> [u64; 2] {
        let b = &self.bytes;
        [
            u64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
            u64::from_ne_bytes([b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]]),
        ]
    }

    /// Text with a port, IPv6 in brackets: what a person reads and `CONNECT` takes.
    pub fn with_port(self, port: u16) -> String {
        if self.family == V6 { format!("[{self}]:{port}") } else { format!("{self}:{port}") }
    }
}

impl From<IpAddr> for Ip {
    fn from(ip: IpAddr) -> Ip {
        match ip {
            IpAddr::V4(ip) => Ip::v4(ip.octets()),
            IpAddr::V6(ip) => Ip::v6(ip.octets(), 0),
        }
    }
}

/// RFC 5952 text; a scope id follows as `%N`.
impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_std() {
            None => f.write_str("none"),
            Some(ip) if self.scope_id != 0 => write!(f, "{ip}%{}", self.scope_id),
            Some(ip) => write!(f, "{ip}"),
        }
    }
}

impl fmt::Debug for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_round_trip_and_others_are_refused() {
        for text in ["192.0.2.1", "2001:db8::1", "fe80::1%3", "::"] {
            assert_eq!(Ip::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "192.0.2", "192.0.2.1%1", "::1%eth0", "[::1]", "300.1.1.1", "a.example"] {
            assert_eq!(Ip::parse(text).unwrap_err().status(), Status::E_INVALID_IP, "{text}");
        }
    }

    #[test]
    fn mapped_addresses_are_the_ipv4_address_they_stand_for() {
        assert_eq!(Ip::parse("::ffff:10.0.0.1").unwrap().unmapped(), Ip::v4([10, 0, 0, 1]));
        assert_eq!(Ip::parse("::10.0.0.1").unwrap().unmapped().family, V6);
    }

    #[test]
    fn there_is_one_form_of_an_address() {
        for text in
            ["192.0.2.1", "0.0.0.0", "2001:db8::1", "fe80::1%3", "::", "::10.0.0.1", "1::ffff:10.0.0.1"]
        {
            assert!(Ip::parse(text).unwrap().is_canonical(), "{text}");
        }
        let (four, six) = (Ip::v4([192, 0, 2, 1]), Ip::parse("::ffff:10.0.0.1").unwrap());
        let odd = [
            six,
            Ip::NONE,
            Ip { scope_id: 1, ..four },
            Ip { family: 5, ..four },
            Ip { reserved: [0, 1, 0], ..four },
            Ip { reserved: [0, 0, 1], ..Ip::parse("2001:db8::1").unwrap() },
        ];
        assert!(odd.iter().all(|ip| !ip.is_canonical()));
        for i in 4..16 {
            let mut bytes = four.bytes;
            bytes[i] = 1;
            assert!(!Ip { bytes, ..four }.is_canonical(), "byte {i}");
        }
    }
}
