//! What OkHttp and the JDK under it do with host texts, kept apart from byway's own rules.
//!
//! Facts: OkHttp `-HostnamesCommon.kt`, `HttpUrl.reencodeForUri`, `RouteSelector.resetNextProxy`; java.net.URI's
//! server-based host grammar; `sun.net.util.IPAddressUtil`.

use super::ip::Ip;
use core::net::Ipv6Addr;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

/// Which behaviour an engine shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(i32)]
pub enum Compat {
    /// byway's own rules.
    #[default]
    Byway = 0,
    /// OkHttp 5, as on its main line in July 2026.
    OkHttp5 = 1,
    /// OkHttp 3.13.
    OkHttp3 = 2,
}

impl Compat {
    /// The profile with this number.
    pub fn from_number(number: i32) -> Option<Compat> {
        match number {
            0 => Some(Compat::Byway),
            1 => Some(Compat::OkHttp5),
            2 => Some(Compat::OkHttp3),
            _ => None,
        }
    }
}

/// OkHttp's canonical host, `None` when it refuses the text.
///
/// IPv4-like texts stay as they are (`127.1`), IPv4-mapped IPv6 becomes IPv4 text, zones are refused.
pub fn canonical_host(text: &str) -> Option<String> {
    if text.contains(':') {
        let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        let ip: Ipv6Addr = inner.parse().ok()?;
        return Some(ip.to_ipv4_mapped().map_or_else(|| ip.to_string(), |v4| v4.to_string()));
    }
    let name = Uts46::new()
        .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .ok()?
        .into_owned();
    let refused = |b: u8| b <= 0x1f || b >= 0x7f || b" #%/:?@[\\]".contains(&b);
    if name.bytes().any(refused) || !(1..=253).contains(&name.len()) {
        return None;
    }
    let labels = name.strip_suffix('.').unwrap_or(&name).split('.');
    labels.into_iter().all(|label| (1..=63).contains(&label.len())).then_some(name)
}

/// OkHttp's test for texts that skip DNS: hex digits, a colon, then hex digits, colons and dots; or digits and
/// dots only.
pub fn looks_like_ip(text: &str) -> bool {
    if let Some((head, tail)) = text.split_once(':') {
        return head.bytes().all(|b| b.is_ascii_hexdigit())
            && tail.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    }
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// The JDK's literal parser for texts that pass [`looks_like_ip`]: one to four decimal parts, the last one fills
/// the rest; at most 15 characters. IPv4-mapped IPv6 becomes IPv4.
pub fn java_literal(text: &str) -> Option<Ip> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(|ip| Ip::v6(ip.octets(), 0).unmapped());
    }
    if text.len() > 15 {
        return None;
    }
    let parts: Vec<u64> = text
        .split('.')
        .map(|part| part.parse::<u64>().ok().filter(|_| part.bytes().all(|b| b.is_ascii_digit())))
        .collect::<Option<_>>()?;
    let (&last, heads) = parts.split_last()?;
    let filled_bits = match heads.len() {
        0..=3 => 32 - 8 * heads.len(),
        _ => return None,
    };
    if heads.iter().any(|&part| part > 255) || last >= 1 << filled_bits {
        return None;
    }
    let head = heads.iter().fold(0_u64, |sum, &part| sum << 8 | part);
    let whole = u32::try_from(head << filled_bits | last).ok()?;
    Some(Ip::v4(whole.to_be_bytes()))
}

/// `InetAddress.getHostAddress`: IPv6 in eight groups without compression, scope behind `%`.
pub fn java_ip_text(ip: Ip) -> String {
    if ip.family != super::ip::V6 {
        return ip.to_string();
    }
    let groups: Vec<String> =
        Ipv6Addr::from(ip.bytes).segments().iter().map(|group| format!("{group:x}")).collect();
    let text = groups.join(":");
    if ip.scope_id == 0 { text } else { format!("{text}%{}", ip.scope_id) }
}

/// The host as OkHttp hands it to java.net.URI, and whether URI then reports one. Without one the proxy selector
/// is skipped.
pub fn uri_host(host: &str) -> Option<String> {
    let host: String = host.chars().filter(|c| !"\"<>^`{|}".contains(*c)).collect();
    if host.contains(':') {
        return Some(host);
    }
    let quad: Vec<&str> = host.split('.').collect();
    if quad.len() == 4
        && quad.iter().all(|part| !part.is_empty() && part.len() <= 3 && part.parse::<u8>().is_ok())
    {
        return Some(host);
    }
    let labels: Vec<&str> = host.strip_suffix('.').unwrap_or(&host).split('.').collect();
    let fine = |label: &&str| {
        let b = label.as_bytes();
        b.first().is_some_and(u8::is_ascii_alphanumeric)
            && b.last().is_some_and(u8::is_ascii_alphanumeric)
            && b.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    };
    // Only a name of several labels must end in one that starts with a letter.
    let last_starts_with_digit =
        labels.last().is_some_and(|label| label.starts_with(|c: char| c.is_ascii_digit()));
    let fails = !labels.iter().all(fine) || (labels.len() > 1 && last_starts_with_digit);
    (!fails).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jdk_fills_short_ipv4_forms() {
        for (text, want) in [
            ("127.1", Some("127.0.0.1")),
            ("54", Some("0.0.0.54")),
            ("1.2.3", Some("1.2.0.3")),
            ("0127.0.0.1", Some("127.0.0.1")),
            ("4294967295", Some("255.255.255.255")),
            ("4294967296", None),
            ("1234.1.1.1", None),
            ("256.1.1.1", None),
            ("1.2.3.4.5", None),
            (".", None),
            ("a:.23", None),
            ("::1", Some("::1")),
        ] {
            assert_eq!(java_literal(text).map(|ip| ip.to_string()).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn java_net_uri_sees_no_host_in_these() {
        for text in ["host_a", "foo.1bar", "a-", "127.1", "1234.1.1.1", "-", "*.x", "a..b", ">", ""] {
            assert_eq!(uri_host(text), None, "{text}");
        }
        for text in ["hosta.", "xn--n3h.net", "1.2.3.4", "::1", "a-b.c1"] {
            assert_eq!(uri_host(text).as_deref(), Some(text), "{text}");
        }
    }
}
