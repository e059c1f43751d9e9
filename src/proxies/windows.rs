//! The `ProxyServer` value of Windows' Internet Settings: `http=h:p;https=h:p;ftp=h:p;socks=h:p`, or one bare
//! `h:p` for everything.

use super::ProxyKind;
use super::bypass::{BypassList, Style};
use super::fixed::{Exceptions, PerScheme};
use super::value::{self, Grammar, default_port};
use crate::error::Result;
use std::sync::Arc;

/// Reads `ProxyServer` and `ProxyOverride`. Parts are separated by `;` and blanks; `https=` names an HTTP proxy
/// used with CONNECT, `socks=` a SOCKS 4 proxy for every scheme without its own part; other parts are ignored.
pub fn proxy_server(server: &str, exceptions: &str) -> Result<PerScheme> {
    let mut selector = PerScheme::new();
    for part in server.split(|c: char| c == ';' || c.is_ascii_whitespace()).filter(|part| !part.is_empty()) {
        // An `=` behind `://` belongs to a password, not to us.
        let named = part.split_once('=').filter(|(name, _)| !name.contains(':'));
        let (name, place) =
            named.map_or((String::new(), part), |(name, place)| (name.to_ascii_lowercase(), place));
        if place.is_empty() || !matches!(name.as_str(), "" | "http" | "https" | "ftp" | "socks") {
            continue;
        }
        let mut proxy = value::parse("ProxyServer", place, Grammar::default())?;
        if name == "socks" && !place.contains("://") {
            proxy.kind = ProxyKind::Socks4;
            if proxy.port == default_port(ProxyKind::Http) && !place.ends_with(":80") {
                proxy.port = default_port(ProxyKind::Socks4);
            }
        }
        let list = Arc::from([proxy.listed("ProxyServer")?]);
        match name.as_str() {
            "" | "socks" => selector.set_fallback(list)?,
            scheme => selector.set(scheme, list)?,
        }
    }
    selector.set_exceptions(Exceptions::Bypass(BypassList::new(exceptions, Style::Windows)));
    Ok(selector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxies::{OwnedTarget, ProxySelector};

    #[test]
    fn parts_name_schemes_and_a_bare_value_names_all() {
        for (server, uri, want) in [
            ("http=127.0.0.1:1;https=127.0.0.1:2", "https://h/", "http 127.0.0.1:2"),
            ("localhost:3128", "https://h/", "http localhost:3128"),
            ("socks=127.0.0.1", "http://h/", "socks4 127.0.0.1:1080"),
            ("http=p:1 socks=s:2", "https://h/", "socks4 s:2"),
            ("ftp=x;;gopher=y:1;", "http://h/", "direct"),
            ("http=p:1", "ws://h/", "http p:1"),
        ] {
            let selector = proxy_server(server, "").unwrap();
            let choice = selector.select(&OwnedTarget::parse(uri).unwrap().borrow()).unwrap();
            assert_eq!(crate::proxies::shown(&choice.proxies[0]), want, "{server}");
        }
        assert!(proxy_server("http=a b:1;https=:", "").is_err());
    }
}
