//! What a caller may set for one operation.

use super::handshake::Settings;
use super::race::Rules;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What happens when a proxy answers CONNECT with another status than success and 407.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TunnelRefusal {
    /// The operation ends: a proxy that blocks a target is not to be walked round.
    #[default]
    Stop,
    /// The next route is tried.
    Next,
}

/// Options of the sockets an operation makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// `TCP_NODELAY`. Default on.
    pub nodelay: bool,
    /// Seconds of silence before keep-alive probes, and between them; 0 leaves keep-alive off. Default 0.
    pub keepalive_s: u32,
    /// `TCP_USER_TIMEOUT` in milliseconds, 0 for the system's. Default 0.
    pub user_timeout_ms: u32,
    /// Source address of IPv4 attempts.
    pub source_v4: Option<Ipv4Addr>,
    /// Source address of IPv6 attempts.
    pub source_v6: Option<Ipv6Addr>,
    /// Network device (`SO_BINDTODEVICE`).
    pub device: Option<String>,
    /// `SO_MARK`, 0 for none; needs CAP_NET_ADMIN.
    pub mark: u32,
    /// Multipath TCP where the kernel has it, else plain TCP. Default off.
    pub mptcp: bool,
    /// TCP Fast Open. Used only when there is one route and no proxy handshake: with it `connect` succeeds
    /// although nobody listens, which would decide a race wrongly. Default off.
    pub fast_open: bool,
    /// Hand the socket over in non-blocking mode. Default on.
    pub nonblocking: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            nodelay: true,
            keepalive_s: 0,
            user_timeout_ms: 0,
            source_v4: None,
            source_v6: None,
            device: None,
            mark: 0,
            mptcp: false,
            fast_open: false,
            nonblocking: true,
        }
    }
}

/// Everything about one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Who starts when.
    pub rules: Rules,
    /// The proxy dialogue.
    pub handshake: Settings,
    /// The sockets.
    pub socket: SocketOptions,
    /// What a refused tunnel means.
    pub tunnel_refusal: TunnelRefusal,
    /// Try a destination that a Selection lists twice (same hop, proxy kind and target) twice. Default off.
    pub keep_duplicates: bool,
    /// Queue an [`super::op::Event`] for what happens, for hosts that keep state per descriptor.
    pub events: bool,
    /// Reports as upstream makes them: losers raise a failure, no failed connect enters the database.
    pub upstream_reports: bool,
}

impl Options {
    /// The options that restore upstream's connector.
    pub fn upstream() -> Self {
        Options {
            rules: Rules {
                across_selections: true,
                upstream_timing: true,
                max_in_flight: 0,
                ..Rules::default()
            },
            handshake: Settings::upstream(),
            tunnel_refusal: TunnelRefusal::Next,
            keep_duplicates: true,
            upstream_reports: true,
            ..Options::default()
        }
    }

    /// Things that will surprise, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        let delay = self.rules.attempt_delay_ms.clamp(10, 2000);
        if delay != self.rules.attempt_delay_ms {
            found.push(format!(
                "attempt delay {} ms is outside 10..2000, {delay} is used",
                self.rules.attempt_delay_ms
            ));
        }
        for (name, limit) in
            [("attempt", self.rules.attempt_timeout_ms), ("overall", self.rules.overall_timeout_ms)]
        {
            if limit > 0 && limit <= delay {
                found.push(format!(
                    "{name} timeout {limit} ms is not above the attempt delay {delay} ms: a second address \
                     may never get a turn"
                ));
            }
        }
        found
    }
}
