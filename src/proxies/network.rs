//! IP networks as exception lists write them, compared in one address space.

use std::net::{IpAddr, Ipv6Addr};

/// An IP network. IPv4 lives at `::ffff:0:0/96`, so an IPv4-mapped address and its IPv4 form are one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    mask: u128,
    v6: bool,
}

/// An address in the common space.
pub fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// First address of the IPv4 part of the space.
const MAPPED: u128 = 0xffff_0000_0000;

/// True in the IPv4 part of the space.
fn is_v4(number: u128) -> bool {
    number >> 32 == MAPPED >> 32
}

impl Network {
    /// `address/length`; host bits are ignored. `None` when the length is longer than the family's addresses.
    pub fn new(address: IpAddr, length: u32) -> Option<Network> {
        let length = match address {
            IpAddr::V4(_) if length <= 32 => length + 96,
            IpAddr::V6(_) if length <= 128 => length,
            _ => return None,
        };
        let mask = if length == 0 { 0 } else { u128::MAX << (128 - length) };
        Some(Network { bits: number(address) & mask, mask, v6: address.is_ipv6() })
    }

    /// Exactly one address.
    pub fn host(address: IpAddr) -> Network {
        Network { bits: number(address), mask: u128::MAX, v6: address.is_ipv6() }
    }

    /// Reads `address/length` without brackets. The length is digits only.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, length) = text.split_once('/')?;
        Network::new(address.parse().ok()?, parse_length(length)?)
    }

    /// True if it was written in IPv6.
    pub fn is_v6(&self) -> bool {
        self.v6
    }

    /// True if the address is inside. An IPv6 network wider than the IPv4 part does not reach into it.
    pub fn contains(&self, address: u128) -> bool {
        address & self.mask == self.bits && (!is_v4(address) || self.mask.leading_ones() >= 96)
    }
}

/// Digits only.
pub fn parse_length(text: &str) -> Option<u32> {
    if text.is_empty() || text.len() > 8 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// 127.0.0.0/8, ::1 and their mapped forms.
pub fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback()),
    }
}

/// 169.254.0.0/16, fe80::/10 and their mapped forms.
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => {
            Ipv6Addr::segments(&v6).first().is_some_and(|first| first & 0xffc0 == 0xfe80)
                || v6.to_ipv4_mapped().is_some_and(|v4| v4.is_link_local())
        }
    }
}

/// `localhost` or a name below it, one trailing dot ignored.
pub fn is_localhost_name(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let Some(split) = name.len().checked_sub("localhost".len()) else { return false };
    let Some((head, tail)) = name.split_at_checked(split) else { return false };
    tail.eq_ignore_ascii_case("localhost") && (head.is_empty() || (head.len() > 1 && head.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_meet_only_in_the_mapped_range() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("::ffff:10.0.0.0/104", "10.1.2.3", true),
            ("::/0", "10.1.2.3", false),
            ("::/0", "2001:db8::1", true),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("10.9.9.9/08", "10.1.2.3", true),
            ("2001:db8::/65", "2001:db8:0:0:8000::1", false),
        ] {
            let got = Network::parse(network).unwrap().contains(number(address.parse().unwrap()));
            assert_eq!(got, inside, "{network} {address}");
        }
        for bad in ["10.0.0.0/33", "::/129", "10/8", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/ 8", "::1"] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn localhost_needs_a_label_boundary() {
        for (host, want) in [
            ("localhost", true),
            ("LOCALHOST.", true),
            ("a.localhost", true),
            (".localhost", false),
            ("xlocalhost", false),
            ("localhost.net", false),
            ("ünlocalhost", false),
        ] {
            assert_eq!(is_localhost_name(host), want, "{host}");
        }
    }
}
