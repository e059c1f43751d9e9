//! Helper functions of proxy scripts: the part that is not JavaScript. Pure; names come in resolved.

use crate::proxies::network::{Network, number, parse_length};
use std::net::{IpAddr, Ipv4Addr};

/// The rest of them, in JavaScript. Evaluates to a function of the native part and of whether calendar helpers
/// mean what they say (`true`) or what browsers make of them.
pub(super) const SOURCE: &str = include_str!("helpers.js");

/// No dot and no address.
pub(super) fn is_plain(host: &str) -> bool {
    !host.contains('.') && host.parse::<IpAddr>().is_err()
}

/// `*` and `?` over the whole text; `None` when the pattern has characters that mean something to a regular
/// expression, or the text a line break, which `*` does not match there.
pub(super) fn glob(text: &str, pattern: &str) -> Option<bool> {
    let simple = |b: u8| b.is_ascii_alphanumeric() || b" !\"#%&',-./:;<=>@_`~*?".contains(&b);
    if !pattern.bytes().all(simple) || !text.is_ascii() || text.contains(['\n', '\r']) {
        return None;
    }
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(other) if *other == b'?' || other == byte => {
                p += 1;
                t += 1;
            }
            _ => {
                let (at, taken) = match star {
                    Some(star) => star,
                    None => return Some(false),
                };
                star = Some((at, taken + 1));
                p = at + 1;
                t = taken + 1;
            }
        }
    }
    Some(pattern.get(p..).unwrap_or_default().iter().all(|b| *b == b'*'))
}

/// A dotted quad of 1 to 3 digits each; `None` for anything else. Leading zeros are decimal.
pub(super) fn quad(text: &str) -> Option<Ipv4Addr> {
    let mut bytes = [0u8; 4];
    let mut parts = text.split('.');
    for byte in &mut bytes {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *byte = part.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(bytes))
}

/// `isInNet` on an address.
pub(super) fn in_net(address: Ipv4Addr, pattern: &str, mask: &str) -> bool {
    match (quad(pattern), quad(mask)) {
        (Some(pattern), Some(mask)) => {
            address.to_bits() & mask.to_bits() == pattern.to_bits() & mask.to_bits()
        }
        _ => false,
    }
}

/// `isInNetEx`: both families, an IPv4 address against an IPv6 prefix in its mapped form.
pub(super) fn in_net_ex(address: &str, prefix: &str) -> bool {
    let parsed = || {
        let address: IpAddr = address.parse().ok()?;
        let (base, length) = prefix.split_once('/')?;
        let base: IpAddr = base.parse().ok()?;
        let length = parse_length(length)?;
        Network::new(base, length)?;
        let length = if base.is_ipv4() { length + 96 } else { length };
        let mask = if length == 0 { 0 } else { u128::MAX << (128 - length) };
        Some(number(address) & mask == number(base) & mask)
    };
    parsed().unwrap_or(false)
}

/// `sortIpAddressList`: IPv6 first, then by value, the text of each kept; `None` when one is no address or there
/// is none.
pub(super) fn sort(list: &str) -> Option<String> {
    let mut addresses = Vec::new();
    for text in list.split(';').map(|text| text.trim_matches([' ', '\t'])).filter(|text| !text.is_empty()) {
        let address: IpAddr = text.parse().ok()?;
        addresses.push((address.is_ipv4(), number(address), text));
    }
    if addresses.is_empty() {
        return None;
    }
    addresses.sort_by_key(|(is_v4, number, _)| (*is_v4, *number));
    let texts: Vec<&str> = addresses.iter().map(|(_, _, text)| *text).collect();
    Some(texts.join(";"))
}

#[cfg(test)]
mod tests {
    use crate::proxies::pac::{Calendar, NoNames, Pac, PacOptions};
    use crate::runtime::clock::VirtualClock;
    use crate::script::{Pool, Zone};
    use std::sync::Arc;
    use std::time::Duration;

    /// As the helper file of browsers answers at those times.
    #[test]
    fn dates_nobody_can_name_a_meaning_of_are_what_browsers_make_of_them() {
        let mut options =
            PacOptions { zone: Zone::Fixed(0), calendar: Calendar::Browser, ..PacOptions::default() };
        options.limits.time = Duration::from_secs(60);
        for (now, call, want) in [
            (1_787_671_650_000, "dateRange(1, 'FEB')", "false"), // 2026-08-25
            (1_787_671_650_000, "dateRange(2, 'DEC')", "true"),
            (1_775_207_945_000, "dateRange(28, 'FEB')", "true"), // 2026-04-03
            (1_827_859_565_000, "dateRange(8, 'FEB', 'GMT')", "true"), // 2027-12-03
        ] {
            let clock = VirtualClock::new(now);
            let options = PacOptions { clock: clock.clock(), ..options.clone() };
            let script = "function FindProxyForURL() { return 'DIRECT'; }".to_owned();
            let pac = Pac::new("dates", script, Pool::default(), Arc::new(NoNames), options).unwrap();
            assert_eq!(pac.evaluate(call).unwrap().0, want, "{call}");
        }
    }
}
