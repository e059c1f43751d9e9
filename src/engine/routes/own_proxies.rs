//! This library's own proxy selectors behind the engine's seam.

use super::proxies::{BuiltIn, Choosing, ProxySource};
use crate::error::Result;
use crate::net::{Address, Listed};
use crate::proxies::{ProxySelector, Target};
use std::sync::Arc;

/// A selector of [`crate::proxies`] for an engine.
pub fn source(selector: Arc<dyn ProxySelector>) -> Arc<ProxySource> {
    ProxySource::new(Choosing::BuiltIn(Box::new(Own(selector))))
}

struct Own(Arc<dyn ProxySelector>);

impl BuiltIn for Own {
    fn select(&self, address: &Address) -> Result<Vec<Listed>> {
        let target = Target {
            scheme: address.scheme(),
            host: address.host().text(),
            port: address.port(),
            uri: address.uri(),
        };
        Ok(self.0.select(&target)?.proxies.to_vec())
    }
}

/// Names for proxy scripts from the system's resolver, on the thread that wants the proxies.
#[cfg(feature = "script")]
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

#[cfg(feature = "script")]
impl crate::proxies::pac::Names for SystemNames {
    fn resolve(&self, name: &str) -> Result<Vec<std::net::IpAddr>> {
        use std::net::ToSocketAddrs;
        let found = (name, 0).to_socket_addrs().map_err(|error| {
            crate::error::Error::new(crate::error::Status::E_UNKNOWN_HOST, error.to_string()).subject(name)
        })?;
        Ok(found.map(|address| address.ip()).collect())
    }

    fn own_addresses(&self) -> Vec<std::net::IpAddr> {
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
}
