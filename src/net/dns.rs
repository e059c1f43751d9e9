//! DNS answers: addresses, and beside them HTTPS/SVCB service metadata (RFC 9460) that routes carry on to the host.

use super::ip::Ip;
use core::fmt;
use std::sync::Arc;

/// Most addresses one answer may hold; a resolver that says more is refused with `E_LIMIT`.
pub const MAX_ADDRESSES: usize = 4096;
/// Most service records one answer may hold.
pub const MAX_SERVICES: usize = 64;

/// One HTTPS or SVCB record. byway connects by the address records; what is here is for the host's TLS and HTTP.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Service {
    /// Target name; empty means the name that was asked.
    pub target: Box<str>,
    /// SvcPriority; lower is preferred.
    pub priority: u16,
    /// ALPN ids in order.
    pub alpn: Box<[Box<[u8]>]>,
    /// Port, 0 when the record has none.
    pub port: u16,
    /// Encrypted ClientHello configuration list; empty when the record has none.
    pub ech: Box<[u8]>,
    /// Address hints.
    pub hints: Box<[Ip]>,
}

impl Service {
    /// True when the record is about `name`.
    pub fn applies_to(&self, name: &str) -> bool {
        self.target.is_empty()
            || self.target.trim_end_matches('.').eq_ignore_ascii_case(name.trim_end_matches('.'))
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "service {} {:?} port {} ech {} bytes",
            self.priority,
            self.target,
            self.port,
            self.ech.len()
        )
    }
}

/// What a resolver has said so far about one name.
#[derive(Clone, Default, Debug)]
pub struct Answer {
    /// Addresses in the resolver's order.
    pub ips: Vec<Ip>,
    /// Service metadata in the resolver's order.
    pub services: Vec<Arc<Service>>,
}

impl Answer {
    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.ips.clear();
        self.services.clear();
    }
}

/// The record that a route to `name` carries: the most preferred one that applies (RFC 9460 2.4.1); OkHttp takes
/// the last.
pub fn service_for(services: &[Arc<Service>], name: &str, last_wins: bool) -> Option<Arc<Service>> {
    let mut applying = services.iter().filter(|service| service.applies_to(name));
    let chosen =
        if last_wins { applying.next_back() } else { applying.min_by_key(|service| service.priority) };
    chosen.cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_applying_record_is_carried() {
        let record = |target: &str, priority| {
            Arc::new(Service { target: target.into(), priority, ..Service::default() })
        };
        let all = [record("other.example", 1), record("A.example.", 3), record("", 2), record("", 2)];
        assert!(Arc::ptr_eq(&service_for(&all, "a.example", false).unwrap(), &all[2]));
        assert!(Arc::ptr_eq(&service_for(&all, "a.example", true).unwrap(), &all[3]));
        assert!(service_for(&all[..1], "a.example", false).is_none());
    }
}
