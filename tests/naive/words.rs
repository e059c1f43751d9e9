//! Values of rules against values of URLs and calls, said plainly.

use super::url::Url;
use byway::rules::dialect::{AddressStyle, Dialect, RangeStyle, StarStyle};
use byway::rules::ip::IpPattern;
use byway::rules::java_ip;
use byway::rules::pattern::Side;
use std::net::IpAddr;

/// Whether a value fits one pattern of a key.
pub(crate) fn fits(
    pattern: &str,
    key: &str,
    side: Side,
    value: &str,
    consumer: &Url,
    dialect: Dialect,
) -> bool {
    let table = dialect.table();
    let address_key = table.ip_patterns && (key == "host" || key == "address");
    if address_key && (pattern.contains('/') || pattern.contains('~')) && !pattern.starts_with('$') {
        return inside_network(pattern, value);
    }
    if pattern.contains('~') && table.range != RangeStyle::Literal {
        return in_range(pattern, value, side, table.range);
    }
    if side == Side::Then
        && let Some(name) = pattern.strip_prefix('$')
    {
        return consumer.reference(name).is_some_and(|text| glob(text, value, dialect));
    }
    glob(pattern, value, dialect)
}

/// Text in which only `*` is special.
pub(crate) fn glob(pattern: &str, value: &str, dialect: Dialect) -> bool {
    match dialect.table().star {
        StarStyle::Every => every_star(pattern.as_bytes(), value.as_bytes()),
        StarStyle::Last => {
            if pattern == "*" {
                return true;
            }
            match pattern.rfind('*') {
                None => pattern == value,
                Some(at) => value.starts_with(&pattern[..at]) && value.ends_with(&pattern[at + 1..]),
            }
        }
    }
}

fn every_star(pattern: &[u8], value: &[u8]) -> bool {
    // One star is head and tail, which may overlap in the value, as upstream has it.
    if pattern.iter().filter(|&&b| b == b'*').count() == 1 {
        let at = pattern.iter().position(|&b| b == b'*').unwrap();
        return value.starts_with(&pattern[..at]) && value.ends_with(&pattern[at + 1..]);
    }
    if let Some(at) = pattern.windows(2).position(|pair| pair == b"**") {
        let mut single = pattern.to_vec();
        single.remove(at);
        return every_star(&single, value);
    }
    // Table over prefixes: fits[j] = the pattern so far fits the first j bytes.
    let mut fits = vec![false; value.len() + 1];
    fits[0] = true;
    for &want in pattern {
        let mut next = vec![false; value.len() + 1];
        for at in 0..=value.len() {
            next[at] = if want == b'*' {
                fits[at] || (at > 0 && next[at - 1])
            } else {
                at > 0 && fits[at - 1] && value[at - 1] == want
            };
        }
        fits = next;
    }
    fits[value.len()]
}

fn in_range(pattern: &str, value: &str, side: Side, style: RangeStyle) -> bool {
    let default = side == Side::Then;
    let mut pieces: Vec<&str> = pattern.split('~').collect();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match style {
        RangeStyle::Strict => {
            let Ok(value) = value.parse::<i128>().map_err(|_| ()) else {
                // Too long for a number of this machine: beyond every end that is given.
                let positive = digits(value);
                let negative = value.strip_prefix('-').is_some_and(digits);
                return (positive && pieces[1].is_empty()) || (negative && pieces[0].is_empty());
            };
            let low = pieces[0].is_empty() || value >= pieces[0].parse::<i128>().unwrap();
            let high = pieces[1].is_empty() || value <= pieces[1].parse::<i128>().unwrap();
            low && high
        }
        RangeStyle::Java => {
            while pieces.last().is_some_and(|piece| piece.is_empty()) {
                pieces.pop();
            }
            if pieces.len() < 2 {
                return default;
            }
            let number = |text: &str| if digits(text) { text.parse::<i32>().ok() } else { Some(0) };
            let (Some(low), Some(high), Some(value)) = (number(pieces[0]), number(pieces[1]), number(value))
            else {
                return default;
            };
            (pieces[0].is_empty() || value >= low) && (pieces[1].is_empty() || value <= high)
        }
        RangeStyle::Go => {
            let end =
                |text: &str| if text.is_empty() { Some(None) } else { text.parse::<i64>().ok().map(Some) };
            match (end(pieces[0]), end(pieces[1]), value.parse::<i64>().ok()) {
                (Some(None), Some(None), _) => default,
                (Some(low), Some(high), Some(value)) => {
                    low.is_none_or(|low| value >= low) && high.is_none_or(|high| value <= high)
                }
                _ => default,
            }
        }
        RangeStyle::Literal => pattern == value,
    }
}

/// `host` or `host:port` in a network or range, itself with or without port.
fn inside_network(pattern: &str, value: &str) -> bool {
    let split = |text: &str| -> (String, Option<String>) {
        match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host.to_owned(), Some(port.to_owned()))
            }
            _ => (text.to_owned(), None),
        }
    };
    let bare = |text: &str| text.trim_start_matches('[').trim_end_matches(']').to_owned();
    let (wanted, wanted_port) = split(pattern);
    let (host, port) = split(value);
    if wanted_port.as_deref().is_some_and(|wanted| wanted != "*" && Some(wanted) != port.as_deref()) {
        return false;
    }
    let Ok(host) = bare(&host).parse::<IpAddr>() else { return false };
    let wanted = bare(&wanted);
    if let Some((low, high)) = wanted.split_once('~') {
        let (low, high) = (bare(low).parse::<IpAddr>().unwrap(), bare(high).parse::<IpAddr>().unwrap());
        return low.is_ipv4() == host.is_ipv4() && low <= host && host <= high;
    }
    let network: ipnet::IpNet = wanted.replace(']', "").parse().unwrap();
    network.contains(&host)
}

/// Whether a provider is at an address of a tag.
pub(crate) fn address(text: &str, url: &Url, dialect: Dialect) -> bool {
    let address = url.address();
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().unwrap_or(0)),
        _ => (address.as_str(), 0u16),
    };
    let any_host = text == format!("0.0.0.0:{port}");
    match dialect.table().tag_addresses {
        AddressStyle::Literal => text == address || any_host,
        AddressStyle::JavaIp => java_ip::match_expression(text, host, port).unwrap_or(false) || any_host,
        AddressStyle::Ip => any_host || IpPattern::parse(text).unwrap().matches(host, port),
    }
}
