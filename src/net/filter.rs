//! [`Filter`]: CIDR allow and deny rules for addresses (a guard against server-side request forgery).

use super::ip::{Ip, V4, V6};
use crate::error::{Error, Position, Result, Source, Status};
use ipnet::IpNet;

/// What a filter says of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Verdict {
    /// May be connected to.
    Allow = 0,
    /// Must not be connected to.
    Deny = 1,
}

#[derive(Clone, Copy)]
struct Rule {
    family: u8,
    network: u128,
    mask: u128,
    verdict: Verdict,
}

/// An ordered rule list: the first rule that holds the address decides, else the default.
#[derive(Clone)]
pub struct Filter {
    rules: Vec<Rule>,
    default: Verdict,
    /// Addresses that carry an IPv4 address inside (NAT64, 6to4) are judged by that address as well.
    look_inside: bool,
}

/// Networks that are not globally reachable (IANA special-purpose registries, RFC 6890 and successors), plus
/// multicast and reserved space.
const NOT_PUBLIC: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/96",
    "100::/64",
    "100:0:0:1::/64",
    "64:ff9b:1::/48",
    "2001::/23",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

impl Filter {
    /// A filter without rules.
    pub fn new(default: Verdict) -> Filter {
        Filter { rules: Vec::new(), default, look_inside: false }
    }

    /// Only globally reachable addresses. Rules added before or after are looked at first.
    pub fn public() -> Filter {
        let mut filter = Filter::new(Verdict::Allow);
        filter.look_inside = true;
        for text in NOT_PUBLIC {
            if let Ok(network) = text.parse::<IpNet>() {
                filter.rules.push(Rule::new(network, Verdict::Deny));
            }
        }
        filter
    }

    /// A filter from text, one rule a line: `allow NETWORK`, `deny NETWORK`, `allow all` or `deny all` as the
    /// default, `public` for the ready-made list; `#` comments. Without an `all` line the default is deny when the
    /// text allows something by name and does not say `public`, else allow.
    ///
    /// # Errors
    /// `E_SYNTAX` with line and column.
    pub fn parse(text: &str) -> Result<Filter> {
        let mut filter = Filter::new(Verdict::Allow);
        let (mut default, mut allows) = (None, false);
        // With the ready-made list, what it does not name is public.

        for line in text.lines() {
            let content = line.split('#').next().unwrap_or_default();
            let mut words = content.split_ascii_whitespace();
            let Some(verb) = words.next() else { continue };
            let fail = |word: &str, what: &str| {
                let at = word.as_ptr().addr().saturating_sub(text.as_ptr().addr());
                Err(Error::new(Status::E_SYNTAX, what).at(Position::in_text(text, at)).source(Source::Parser))
            };
            let verdict = match verb {
                "allow" => Verdict::Allow,
                "deny" => Verdict::Deny,
                "public" => {
                    let public = Filter::public();
                    filter.rules.extend(public.rules);
                    filter.look_inside = true;
                    continue;
                }
                _ => return fail(verb, "expected allow, deny or public"),
            };
            let Some(what) = words.next() else { return fail(verb, "expected a network or `all`") };
            if let Some(extra) = words.next() {
                return fail(extra, "expected the end of the line");
            }
            if what == "all" {
                default = Some(verdict);
            } else {
                match parse_network(what) {
                    Some(network) => filter.rules.push(Rule::new(network, verdict)),
                    None => return fail(what, "expected a network such as 10.0.0.0/8, or an address"),
                }
                allows |= verdict == Verdict::Allow;
            }
        }
        let closed = allows && !filter.look_inside;
        filter.default = default.unwrap_or(if closed { Verdict::Deny } else { Verdict::Allow });
        Ok(filter)
    }

    /// Adds one rule in front of those already there.
    ///
    /// # Errors
    /// `E_INVALID_IP` when the text is neither a network nor an address.
    pub fn add_first(&mut self, network: &str, verdict: Verdict) -> Result<()> {
        let network = parse_network(network).ok_or_else(|| {
            Error::new(Status::E_INVALID_IP, "expected a network such as 10.0.0.0/8, or an address")
                .subject(network)
        })?;
        self.rules.insert(0, Rule::new(network, verdict));
        Ok(())
    }

    /// The verdict on one address. IPv4-mapped forms are judged as IPv4; "none" is denied.
    pub fn check(&self, ip: Ip) -> Verdict {
        let ip = ip.unmapped();
        if !ip.is_some() || self.judge(ip) == Verdict::Deny {
            return Verdict::Deny;
        }
        match embedded_ipv4(ip) {
            Some(inner) if self.look_inside => self.judge(inner),
            _ => Verdict::Allow,
        }
    }

    fn judge(&self, ip: Ip) -> Verdict {
        let bits = bits_of(ip);
        let rule =
            self.rules.iter().find(|rule| rule.family == ip.family && bits & rule.mask == rule.network);
        rule.map_or(self.default, |rule| rule.verdict)
    }
}

impl Rule {
    fn new(network: IpNet, verdict: Verdict) -> Rule {
        let ip = Ip::from(network.network());
        let width = u32::from(network.max_prefix_len());
        let host_bits = width - u32::from(network.prefix_len());
        let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        Rule { family: ip.family, network: bits_of(ip) & mask, mask, verdict }
    }
}

fn bits_of(ip: Ip) -> u128 {
    let b = ip.bytes;
    if ip.family == V4 {
        u128::from(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    } else {
        u128::from_be_bytes(b)
    }
}

fn parse_network(text: &str) -> Option<IpNet> {
    let network: IpNet =
        text.parse().ok().or_else(|| Some(IpNet::from(text.parse::<core::net::IpAddr>().ok()?)))?;
    match network {
        // Rules on mapped space are rules on IPv4, because that is how addresses are judged.
        IpNet::V6(v6) if v6.prefix_len() >= 96 => {
            let Some(v4) = v6.addr().to_ipv4_mapped() else { return Some(network) };
            ipnet::Ipv4Net::new(v4, v6.prefix_len() - 96).ok().map(IpNet::V4)
        }
        _ => Some(network),
    }
}

/// IPv4 inside NAT64 (RFC 6052 well-known prefix) or 6to4 (RFC 3056).
fn embedded_ipv4(ip: Ip) -> Option<Ip> {
    let b = ip.bytes;
    if ip.family != V6 {
        return None;
    }
    if b[..12] == [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0] {
        return Some(Ip::v4([b[12], b[13], b[14], b[15]]));
    }
    (b[..2] == [0x20, 0x02]).then(|| Ip::v4([b[2], b[3], b[4], b[5]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(filter: &Filter, ip: &str) -> Verdict {
        filter.check(Ip::parse(ip).unwrap())
    }

    #[test]
    fn public_lets_only_globally_reachable_addresses_through() {
        let filter = Filter::public();
        for ip in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.169.254",
            "0.0.0.0",
            "::1",
            "::",
            "fe80::1%2",
            "fd00::1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "2001::1",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            assert_eq!(verdict(&filter, ip), Verdict::Deny, "{ip}");
        }
        for ip in ["1.1.1.1", "2606:4700::1111", "64:ff9b::1.1.1.1", "::ffff:8.8.8.8"] {
            assert_eq!(verdict(&filter, ip), Verdict::Allow, "{ip}");
        }
        assert_eq!(filter.check(Ip::NONE), Verdict::Deny);
    }

    #[test]
    fn the_first_rule_that_holds_decides() {
        let filter = Filter::parse("allow 10.1.0.0/16 # ours\npublic\n").unwrap();
        assert_eq!(verdict(&filter, "10.1.2.3"), Verdict::Allow);
        assert_eq!(verdict(&filter, "10.2.2.3"), Verdict::Deny);
        let mapped = Filter::parse("deny ::ffff:192.0.2.0/120").unwrap();
        assert_eq!(verdict(&mapped, "192.0.2.9"), Verdict::Deny);
        assert_eq!(verdict(&mapped, "192.0.3.9"), Verdict::Allow);
    }

    #[test]
    fn the_default_follows_what_the_text_names() {
        assert_eq!(verdict(&Filter::parse("allow 192.0.2.0/24").unwrap(), "192.0.3.1"), Verdict::Deny);
        assert_eq!(verdict(&Filter::parse("deny 192.0.2.0/24").unwrap(), "192.0.3.1"), Verdict::Allow);
        assert_eq!(verdict(&Filter::parse("deny ::/0\ndeny all").unwrap(), "192.0.3.1"), Verdict::Deny);
    }

    #[test]
    fn faults_name_their_place() {
        for (text, line, column) in
            [("deny", 1, 1), ("deny 10.0.0.0/33", 1, 6), ("\n permit all", 2, 2), ("deny all x", 1, 10)]
        {
            let at = Filter::parse(text).err().unwrap().position().unwrap();
            assert_eq!((at.line, at.column), (line, column), "{text:?}");
        }
    }
}
