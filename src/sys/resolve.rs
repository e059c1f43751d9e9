//! `getaddrinfo`, `if_nametoindex` and the coarse clock.

use std::ffi::{CStr, CString};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// Why a name was not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError {
    /// The name does not exist or has no addresses; otherwise trying again may help.
    pub unknown: bool,
    /// `EAI_*`.
    pub code: i32,
    /// `errno` when the code is `EAI_SYSTEM`, else 0.
    pub errno: i32,
    /// The system's own words.
    pub text: String,
}

/// Asks the system for the addresses of a name, in its order. Blocks, for as long as the system likes.
///
/// # Errors
/// [`ResolveError`].
pub fn resolve(name: &str) -> Result<Vec<SocketAddr>, ResolveError> {
    let Ok(c_name) = CString::new(name) else {
        return Err(ResolveError { unknown: true, code: 0, errno: 0, text: "NUL in the name".into() });
    };
    // SAFETY: an all-zero addrinfo is the documented empty hint.
    let mut hints: libc::addrinfo = unsafe { core::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut list: *mut libc::addrinfo = core::ptr::null_mut();
    // SAFETY: the name is NUL-terminated, hints and list are valid for the call.
    let code =
        unsafe { libc::getaddrinfo(c_name.as_ptr(), core::ptr::null(), &raw const hints, &raw mut list) };
    if code != 0 {
        let errno = if code == libc::EAI_SYSTEM { last_errno() } else { 0 };
        // SAFETY: gai_strerror returns a static text for every code.
        let text = unsafe { CStr::from_ptr(libc::gai_strerror(code)) }.to_string_lossy().into_owned();
        #[allow(unreachable_patterns, reason = "the codes are one number on some systems")]
        let unknown = matches!(code, libc::EAI_NONAME | libc::EAI_NODATA);
        return Err(ResolveError { unknown, code, errno, text });
    }
    let mut found = Vec::new();
    let mut at = list;
    // SAFETY: the list is getaddrinfo's own, linked by ai_next until NULL, and freed once below.
    while let Some(info) = unsafe { at.as_ref() } {
        if !info.ai_addr.is_null() {
            match info.ai_family {
                libc::AF_INET => {
                    // SAFETY: AF_INET says that this is a sockaddr_in.
                    let v4 = unsafe { info.ai_addr.cast::<libc::sockaddr_in>().read_unaligned() };
                    let ip = std::net::Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                    found.push(SocketAddr::from((ip, 0)));
                }
                libc::AF_INET6 => {
                    // SAFETY: AF_INET6 says that this is a sockaddr_in6.
                    let v6 = unsafe { info.ai_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
                    let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                    found.push(SocketAddr::V6(SocketAddrV6::new(ip, 0, 0, v6.sin6_scope_id)));
                }
                _ => {}
            }
        }
        at = info.ai_next;
    }
    // SAFETY: see above.
    unsafe { libc::freeaddrinfo(list) };
    Ok(found)
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Index of a network interface.
pub fn interface_index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is NUL-terminated.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Milliseconds of the monotonic clock, some milliseconds behind at most, at a fraction of the price: what ages the
/// route database needs no better.
#[inline]
pub fn coarse_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for one timespec; the clock exists on every Linux this library runs on.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

/// This machine's addresses that would be used towards the internet, IPv4 first; empty when it has no way there.
pub fn own_addresses() -> Vec<std::net::IpAddr> {
    // Connecting a datagram socket sends nothing; it asks the routing table which address would be used.
    let probe = |own: &str, other: &str| {
        let socket = std::net::UdpSocket::bind((own, 0)).ok()?;
        socket.connect((other, 53)).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    [("0.0.0.0", "8.8.8.8"), ("::", "2001:4860:4860::8888")]
        .iter()
        .filter_map(|(own, other)| probe(own, other))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_the_loopback_interface_are_known_everywhere() {
        assert_eq!(resolve("127.0.0.1").unwrap()[0].ip().to_string(), "127.0.0.1");
        assert_eq!(resolve("::1").unwrap()[0].ip().to_string(), "::1");
        assert!(resolve("a\0b").unwrap_err().unknown);
        assert!(interface_index("lo").is_some_and(|index| index > 0));
        assert_eq!(interface_index("no-such-interface"), None);
    }
}
