//! The two arguments of `FindProxyForURL`: a URL without secrets, and the host.

use crate::proxies::Target;

/// The URL argument. For https and wss everything behind the authority is removed (a script could leak paths and
/// tokens through DNS); every scheme loses user information and fragment. The port stays as written.
pub fn url_argument(target: &Target<'_>) -> String {
    let host = host_argument(target);
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut url = format!("{}://{bracketed}", target.scheme);
    if let Some(port) = target.authority().port.filter(|port| !port.is_empty()) {
        // A written default port is no part of a canonical URL.
        if port.parse() != Ok(crate::proxies::target::default_port(target.scheme)) {
            url.push(':');
            url.push_str(port);
        }
    }
    if matches!(target.scheme, "https" | "wss") {
        url.push('/');
        return url;
    }
    let tail = target.uri.split_once("://").map_or("", |(_, rest)| {
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        rest.get(at..).unwrap_or_default()
    });
    let tail = tail.split('#').next().unwrap_or_default();
    if !tail.starts_with('/') {
        url.push('/');
    }
    url.push_str(tail);
    url
}

/// The host argument: canonical, no port, no brackets, no zone.
pub fn host_argument<'a>(target: &Target<'a>) -> &'a str {
    target.host.split('%').next().unwrap_or_default()
}
