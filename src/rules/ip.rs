//! IP expressions of rules: single addresses, parts with `*` and `a-b`, networks, ranges, each with an optional
//! port. Families are never mixed and names are never resolved: a name matches itself.
//!
//! | form | example |
//! |---|---|
//! | address | `10.0.0.1`, `fe80::1`, `[fe80::1]` |
//! | parts | `10.0.*.1-9`, `fe80:0:0:0:0:0:0:a-f` (all eight groups) |
//! | network | `10.0.0.0/8`, `fe80::/10` |
//! | range | `10.0.0.1~10.0.0.9` |
//! | any | `*` |
//! | with port | `10.0.0.*:20880`, `[fe80::1]:20880`, `10.0.0.0/8:20880`, `*:20880`, `10.0.0.1:*` |
//!
//! How Dubbo's own matcher answers is in [`super::java_ip`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A parsed IP expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPattern {
    host: HostPattern,
    /// `None`: every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Any,
    V4([Part; 4]),
    V6([Part; 8]),
    /// Both ends included, same family.
    Between(IpAddr, IpAddr),
    Name(String),
}

/// One number of an address: from, to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part(u16, u16);

impl Part {
    fn contains(self, value: u16) -> bool {
        (self.0..=self.1).contains(&value)
    }
}

impl IpPattern {
    /// Reads an expression. The error says what is wrong with it, without its place.
    pub fn parse(text: &str) -> Result<IpPattern, String> {
        let text = text.trim();
        let (host, port) = split_port(text)?;
        let port = match port {
            None | Some("*") => None,
            Some(port) => {
                Some(port.parse().map_err(|_| format!("'{port}' is not a port (0 to 65535, or *)"))?)
            }
        };
        Ok(IpPattern { host: parse_host(host)?, port })
    }

    /// Whether the expression names a port.
    pub fn has_port(&self) -> bool {
        self.port.is_some()
    }

    /// Whether the expression is a plain name, which only matches itself.
    pub fn is_name(&self) -> bool {
        matches!(self.host, HostPattern::Name(_))
    }

    /// Whether it says "any host": `*`, `*.*.*.*`.
    pub fn any_host(&self) -> bool {
        match self.host {
            HostPattern::Any => true,
            HostPattern::V4(parts) => parts.iter().all(|part| *part == Part(0, 255)),
            _ => false,
        }
    }

    /// Whether it matches a host, IPv6 with or without brackets, and a port (0: none).
    pub fn matches(&self, host: &str, port: u16) -> bool {
        if self.port.is_some_and(|wanted| wanted != port) {
            return false;
        }
        self.matches_host(host)
    }

    /// Whether it matches `host`, `host:port` or `[v6]:port`.
    pub fn matches_address(&self, address: &str) -> bool {
        let (host, port) = split_address(address);
        self.matches(host, port)
    }

    fn matches_host(&self, host: &str) -> bool {
        match &self.host {
            // `*.*.*.*` has always meant any host, not any IPv4 host.
            _ if self.any_host() => true,
            HostPattern::Any => true,
            HostPattern::Name(name) => host.eq_ignore_ascii_case(name),
            HostPattern::V4(parts) => match parse_ip(host) {
                Some(IpAddr::V4(ip)) => {
                    parts.iter().zip(ip.octets()).all(|(part, octet)| part.contains(u16::from(octet)))
                }
                _ => false,
            },
            HostPattern::V6(parts) => match parse_ip(host) {
                Some(IpAddr::V6(ip)) => {
                    parts.iter().zip(ip.segments()).all(|(part, group)| part.contains(group))
                }
                _ => false,
            },
            HostPattern::Between(low, high) => match (parse_ip(host), low, high) {
                (Some(IpAddr::V4(ip)), IpAddr::V4(low), IpAddr::V4(high)) => *low <= ip && ip <= *high,
                (Some(IpAddr::V6(ip)), IpAddr::V6(low), IpAddr::V6(high)) => *low <= ip && ip <= *high,
                _ => false,
            },
        }
    }
}

/// Splits `host`, `host:port`, `[v6]:port` as URLs print addresses; a port that is none reads as 0.
pub fn split_address(address: &str) -> (&str, u16) {
    if let Some((host, port)) = address.rsplit_once(':') {
        let v6 = host.contains(':');
        if (!v6 || (host.starts_with('[') && host.ends_with(']')))
            && !port.is_empty()
            && let Ok(port) = port.parse()
        {
            return (host, port);
        }
    }
    (address, 0)
}

/// The address in `text`, brackets and zone taken off.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let text = if text.contains(':') { text.split('%').next().unwrap_or(text) } else { text };
    text.parse().ok()
}

fn split_port(text: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((inner, behind)) = rest.split_once(']') else { return Err("a ']' is missing".into()) };
        return match behind.strip_prefix(':') {
            Some(port) => Ok((inner, Some(port))),
            None if behind.is_empty() => Ok((inner, None)),
            // `[fe80::]/64` and `[a]~[b]` keep their brackets for the host parser.
            None => Ok((text, None)),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Ok((host, Some(port))),
        _ => Ok((text, None)),
    }
}

fn parse_host(text: &str) -> Result<HostPattern, String> {
    if text == "*" {
        return Ok(HostPattern::Any);
    }
    if let Some((low, high)) = text.split_once('~') {
        let end = |text: &str| {
            parse_ip(text.trim()).ok_or_else(|| format!("'{}' is not an IP address", text.trim()))
        };
        let (low, high) = (end(low)?, end(high)?);
        if low.is_ipv4() != high.is_ipv4() {
            return Err(format!("the range {low}~{high} mixes IPv4 and IPv6"));
        }
        if low > high {
            return Err(format!("the range {low}~{high} is empty: its first address is behind its last"));
        }
        return Ok(HostPattern::Between(low, high));
    }
    if let Some((network, prefix)) = text.split_once('/') {
        let Some(network) = parse_ip(network) else {
            return Err(format!("'{network}' in front of the / is not an IP address"));
        };
        let bits = if network.is_ipv4() { 32 } else { 128 };
        let length = prefix.parse::<u8>().ok().filter(|&length| length <= bits && !prefix.starts_with('+'));
        let Some(length) = length else {
            return Err(format!("'{prefix}' is not a prefix length (0 to {bits})"));
        };
        return Ok(match network {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                let low = u32::from(ip) & mask;
                HostPattern::Between(Ipv4Addr::from(low).into(), Ipv4Addr::from(low | !mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                let low = u128::from(ip) & mask;
                HostPattern::Between(Ipv6Addr::from(low).into(), Ipv6Addr::from(low | !mask).into())
            }
        });
    }
    if text.contains(':') {
        return parse_v6(text);
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'*' | b'-')) {
        let parts: Vec<&str> = text.split('.').collect();
        let Ok(parts) = <[&str; 4]>::try_from(parts) else {
            return Err(format!("'{text}' has not the four parts of an IPv4 address; write * for open ones"));
        };
        let mut out = [Part(0, 255); 4];
        for (slot, part) in out.iter_mut().zip(parts) {
            *slot = parse_part(part, 10, 255)?;
        }
        return Ok(HostPattern::V4(out));
    }
    if text.is_empty() {
        return Err("the host is empty".into());
    }
    if let Some(bad) = text.chars().find(|c| !c.is_alphanumeric() && !matches!(c, '.' | '-' | '_')) {
        return Err(format!("'{text}' is neither an IP expression nor a name: '{bad}' is in neither"));
    }
    Ok(HostPattern::Name(text.to_owned()))
}

fn parse_v6(text: &str) -> Result<HostPattern, String> {
    if !text.contains(['*', '-']) {
        return match parse_ip(text) {
            Some(IpAddr::V6(ip)) => Ok(HostPattern::Between(ip.into(), ip.into())),
            _ => Err(format!("'{text}' is not an IPv6 address")),
        };
    }
    let Ok(groups) = <[&str; 8]>::try_from(text.split(':').collect::<Vec<_>>()) else {
        return Err(format!(
            "'{text}' has a * or - and so needs all eight groups, as 234e:0:4567:0:0:0:3d:*"
        ));
    };
    let mut out = [Part(0, u16::MAX); 8];
    for (slot, group) in out.iter_mut().zip(groups) {
        *slot = parse_part(group, 16, u16::MAX)?;
    }
    Ok(HostPattern::V6(out))
}

fn parse_part(text: &str, radix: u32, max: u16) -> Result<Part, String> {
    if text == "*" {
        return Ok(Part(0, max));
    }
    let number = |text: &str| {
        let digits = !text.is_empty() && text.len() <= 4 && text.chars().all(|c| c.is_digit(radix));
        let value = u16::from_str_radix(text, radix).ok().filter(|&value| digits && value <= max);
        value.ok_or_else(|| format!("'{text}' is not a part of an address (0 to {max}, *, or a range a-b)"))
    };
    match text.split_once('-') {
        None => number(text).map(|value| Part(value, value)),
        Some((low, high)) => {
            let (low, high) = (number(low)?, number(high)?);
            if low > high {
                return Err(format!("the range {text} is empty"));
            }
            Ok(Part(low, high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_their_own_family_only() {
        for (pattern, address, want) in [
            ("10.0.0.0/8", "10.200.3.4:20880", true),
            ("10.0.0.0/8:20880", "10.200.3.4:20881", false),
            ("0.0.0.0/0", "[::1]:1", false),
            ("::/0", "1.2.3.4:1", false),
            ("::/0", "[::1]:1", true),
            ("10.0.0.1~10.0.0.9", "10.0.0.9", true),
            ("10.0.0.1~10.0.0.9", "10.0.0.10", false),
            ("10.0.0.1~10.0.0.9:80", "10.0.0.9:80", true),
            ("[fe80::1]:20880", "[fe80:0::1]:20880", true),
            ("fe80:0:0:0:0:0:0:A-F", "[fe80::c]:1", true),
            ("127.0.0.*", "127.0.0.1:7777", true),
            ("10.0.0.1:*", "10.0.0.1:7", true),
            ("*:80", "anything:80", true),
            ("*.*.*.*", "[::1]:5", true),
            ("Dubbo.apache.org:1", "dubbo.apache.org:1", true),
            ("10.0-9.1.010", "10.5.1.10", true),
        ] {
            let parsed = IpPattern::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(parsed.matches_address(address), want, "{pattern} {address}");
        }
    }

    #[test]
    fn broken_expressions_say_why() {
        for (pattern, words) in [
            ("10.0.0.0/33", "prefix length"),
            ("10.0.0.0/-1", "prefix length"),
            ("10.20.*", "four parts"),
            ("10.0.0.300", "part of an address"),
            ("::*", "eight groups"),
            ("10.0.0.1~::1", "mixes"),
            ("10.0.0.9~10.0.0.1", "empty"),
            ("10.0.0.5-1", "empty"),
            ("1.2.3.4:99999", "not a port"),
            ("", "empty"),
            ("[::1", "missing"),
        ] {
            let error = IpPattern::parse(pattern).expect_err(pattern);
            assert!(error.contains(words), "{pattern}: {error}");
        }
    }
}
