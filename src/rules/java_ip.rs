//! IP expressions as Dubbo Java answers them (`NetUtils.matchIpExpression`, `CIDRUtils`), for the dialects that
//! promise its answers: loopback and 0.0.0.0 are taken for IPv6, networks are compared as plain numbers across
//! families. Names are not resolved here either; where Dubbo would ask DNS the answer is [`Fault::UnknownHost`].

use std::net::{IpAddr, Ipv4Addr};

/// The exception that Dubbo throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The pattern has not the host's family or shape.
    IllegalArgument,
    /// A number in the pattern is none.
    NumberFormat,
    /// The host, or a pattern without `*` and `-`, is not an IP address.
    UnknownHost,
}

/// `matchIpExpression(pattern, host, port)`.
pub fn match_expression(pattern: &str, host: &str, port: u16) -> Result<bool, Fault> {
    if pattern.contains('/') { match_network(pattern, host) } else { match_range(pattern, Some(host), port) }
}

/// `matchIpExpression(pattern, address)`: the address is a host; only one that ends with a colon is split, so
/// that `host:port` is an unknown host.
pub fn match_address(pattern: &str, address: Option<&str>) -> Result<bool, Fault> {
    match address {
        None => Ok(false),
        Some(address) => match_expression(pattern, address.strip_suffix(':').unwrap_or(address), 0),
    }
}

/// `CIDRUtils(pattern).isInRange(host)`.
pub fn match_network(pattern: &str, host: &str) -> Result<bool, Fault> {
    let (network, prefix) = pattern.split_once('/').ok_or(Fault::IllegalArgument)?;
    let network = resolve(network)?;
    let prefix: i32 = prefix.parse().map_err(|_| Fault::NumberFormat)?;
    let bits: u32 = if network.is_ipv4() { 32 } else { 128 };
    let all = if network.is_ipv4() { u128::from(u32::MAX) } else { u128::MAX };
    let number = number(network);
    let (low, high) = match u32::try_from(prefix) {
        Err(_) => (0, all),
        Ok(prefix) if prefix >= bits => (number, number),
        Ok(prefix) => {
            let tail = all >> prefix;
            (number & !tail, number | tail)
        }
    };
    let host = self::number(resolve(host)?);
    Ok((low..=high).contains(&host))
}

/// `matchIpRange(pattern, host, port)`.
pub fn match_range(pattern: &str, host: Option<&str>, port: u16) -> Result<bool, Fault> {
    let host = host.ok_or(Fault::IllegalArgument)?;
    let pattern = pattern.trim();
    if matches!(pattern, "*" | "*.*.*.*") {
        return Ok(true);
    }
    let ip = resolve(host)?;
    let v4 = matches!(ip, IpAddr::V4(ip) if !ip.is_loopback() && ip != Ipv4Addr::UNSPECIFIED);
    let (pattern, wanted) = split_port(pattern, v4);
    if wanted.is_some_and(|wanted| wanted != port.to_string()) {
        return Ok(false);
    }
    let separator = if v4 { '.' } else { ':' };
    let mask = java_split(pattern, separator);
    let open = pattern.contains(['*', '-']);
    let fits = if v4 { mask.len() == 4 } else { mask.len() == 8 || (!open && pattern.contains("::")) };
    if !fits {
        return Err(Fault::IllegalArgument);
    }
    let host = java_text(ip);
    if pattern == host {
        return Ok(true);
    }
    if !open {
        return Ok(java_text(resolve(pattern)?) == host);
    }
    let parts: Vec<&str> = host.split(if ip.is_ipv4() { '.' } else { ':' }).collect();
    let radix = if v4 { 10 } else { 16 };
    for (mask, part) in mask.iter().zip(&parts) {
        if *mask == "*" || mask == part {
            continue;
        }
        if mask.contains('-') {
            let mut ends = mask.split('-');
            let (Some(low), Some(high), None) = (ends.next(), ends.next(), ends.next()) else {
                return Err(Fault::IllegalArgument);
            };
            let number = |text: &str| i32::from_str_radix(text, radix).map_err(|_| Fault::NumberFormat);
            let (low, high, part) = (number(low)?, number(high)?, number(part)?);
            if part < low || part > high {
                return Ok(false);
            }
        } else if !(*part == "0" && matches!(*mask, "0" | "00" | "000" | "0000")) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn split_port(pattern: &str, v4: bool) -> (&str, Option<&str>) {
    if let Some(rest) = pattern.strip_prefix('[') {
        if let Some((inner, port)) = rest.split_once("]:") {
            return (inner, Some(port));
        }
        if let Some(inner) = rest.strip_suffix(']') {
            return (inner, None);
        }
    }
    match pattern.split_once(':') {
        Some((host, port)) if v4 => (host, Some(port)),
        _ => (pattern, None),
    }
}

/// `String.split`: empty pieces at the end are dropped.
fn java_split(text: &str, separator: char) -> Vec<&str> {
    let mut pieces: Vec<&str> = text.split(separator).collect();
    while pieces.len() > 1 && pieces.last().is_some_and(|piece| piece.is_empty()) {
        pieces.pop();
    }
    pieces
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// Java prints IPv6 without `::`.
fn java_text(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => ip.segments().map(|group| format!("{group:x}")).join(":"),
    }
}

/// `InetAddress.getByName` for literals: 1 to 4 decimal parts, the last one filling the rest.
fn resolve(text: &str) -> Result<IpAddr, Fault> {
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if text.contains(':') {
        return text.parse().map_err(|_| Fault::UnknownHost);
    }
    let parts: Vec<u64> = text
        .split('.')
        .map(|part| if part.bytes().all(|b| b.is_ascii_digit()) { part.parse().ok() } else { None })
        .collect::<Option<_>>()
        .ok_or(Fault::UnknownHost)?;
    let (last, head) = parts.split_last().ok_or(Fault::UnknownHost)?;
    if head.len() > 3 || head.iter().any(|&part| part > 255) {
        return Err(Fault::UnknownHost);
    }
    let room = 8 * (4 - head.len() as u32);
    if *last >= 1u64 << room {
        return Err(Fault::UnknownHost);
    }
    let value = head.iter().enumerate().fold(*last, |value, (i, part)| value | part << (24 - 8 * i));
    u32::try_from(value).map(|value| Ipv4Addr::from(value).into()).map_err(|_| Fault::UnknownHost)
}
