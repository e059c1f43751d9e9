//! Decisions after a failure: may it be retried on another route, may TLS be tried again, who is told.
//!
//! OkHttp's tables: `RetryAndFollowUpInterceptor.recover`, `RetryTlsHandshake`, `RealConnection.trackFailure`,
//! `ConnectPlan`; byway's own rules differ where a comment says so.

use super::compat::Compat;
use super::failure::Failure;

/// How far the call had come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Phase {
    /// Names, proxies, planning: no attempt was made.
    Dns = 0,
    /// TCP connect.
    Tcp = 1,
    /// `CONNECT` or SOCKS.
    Tunnel = 2,
    /// TLS handshake.
    Tls = 3,
    /// The request may have been sent.
    Exchange = 4,
}

impl Phase {
    /// The phase with this number.
    pub fn from_number(number: i32) -> Option<Phase> {
        [Phase::Dns, Phase::Tcp, Phase::Tunnel, Phase::Tls, Phase::Exchange]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

/// What a host says about a call that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// What happened.
    pub failure: Failure,
    /// When it happened.
    pub phase: Phase,
    /// The host lets failed connections be retried at all.
    pub retry_enabled: bool,
    /// The request's body can be sent only once.
    pub one_shot: bool,
    /// Bytes of the request may have left this machine.
    pub sent: bool,
    /// The exchange itself failed (and not the search for a connection). Only OkHttp 5 asks.
    pub exchange_failed: bool,
    /// A further route exists.
    pub more_routes: bool,
}

/// Whether to retry, and if not, the first reason why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Recovery {
    /// Take the next route.
    Retry = 0,
    /// Retrying is switched off.
    Disabled = 1,
    /// The request cannot be sent a second time.
    NotRepeatable = 2,
    /// Another route would fail in the same way, or the call was called off.
    Fatal = 3,
    /// Everything was tried.
    NoMoreRoutes = 4,
}

/// May the call be retried on another route?
///
/// byway: before anything was sent every failure that another path may avoid goes on to the next route; after that
/// only a request that can be repeated does, and never on a timeout, because the peer may still be working on it.
pub fn recover(profile: Compat, failed: &Failed) -> Recovery {
    if !failed.retry_enabled {
        return Recovery::Disabled;
    }
    let shutdown = failed.failure == Failure::ConnectionShutdown;
    let sent = match profile {
        Compat::Byway => failed.sent && !shutdown && failed.failure != Failure::StreamRefused,
        // Everything but an announced shutdown counts as "sending started".
        Compat::OkHttp5 => !shutdown,
        Compat::OkHttp3 => failed.phase == Phase::Exchange && !shutdown,
    };
    if sent && (failed.one_shot || failed.failure == Failure::RequestBody) {
        return Recovery::NotRepeatable;
    }
    let fatal = match failed.failure {
        Failure::Protocol | Failure::AuthWithoutProxy => true,
        Failure::Interrupted => true,
        Failure::Canceled | Failure::RequestBody => profile == Compat::Byway,
        Failure::Timeout => sent,
        Failure::TlsCertificate | Failure::TlsPeerUnverified => true,
        _ => false,
    };
    if fatal {
        return Recovery::Fatal;
    }
    if !failed.more_routes || (profile == Compat::OkHttp5 && !failed.exchange_failed) {
        return Recovery::NoMoreRoutes;
    }
    Recovery::Retry
}

/// May the TLS handshake be tried again on the same route with other parameters?
pub fn retry_tls(failure: Failure) -> bool {
    matches!(failure, Failure::TlsHandshake | Failure::Tls)
}

/// What a connection that carried an exchange does after a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tracked {
    /// The connection takes no new exchanges.
    pub no_new_exchanges: bool,
    /// Failures of the route to add to the connection's count.
    pub route_failures: u32,
    /// The route goes into the database.
    pub database: bool,
    /// The proxy selector is told.
    pub proxy_selector: bool,
}

/// A connection at the moment of a failure.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// HTTP/2 or newer.
    pub multiplexed: bool,
    /// Exchanges completed on it so far.
    pub successes: u64,
    /// Streams refused before this one.
    pub refused_before: u32,
    /// The failing call was cancelled by its own host.
    pub call_canceled: bool,
    /// It goes through a proxy.
    pub proxied: bool,
}

/// Consequences of a failed exchange; `None` = it failed without an error (closed early).
pub fn track_failure(connection: &Connection, failure: Option<Failure>) -> Tracked {
    let close = |route_failures| Tracked { no_new_exchanges: true, route_failures, ..Tracked::default() };
    match failure {
        // The first refused stream may be chance, the second is a pattern.
        Some(Failure::StreamRefused) if connection.refused_before == 0 => Tracked::default(),
        Some(Failure::StreamRefused | Failure::StreamReset) => close(1),
        Some(Failure::StreamCanceled) if connection.call_canceled => Tracked::default(),
        Some(Failure::StreamCanceled) => close(1),
        _ if connection.multiplexed && failure != Some(Failure::ConnectionShutdown) => Tracked::default(),
        _ if connection.successes > 0 => close(0),
        None => close(1),
        Some(_) => Tracked { database: true, proxy_selector: connection.proxied, ..close(1) },
    }
}

/// One failed attempt to connect.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// What happened.
    pub failure: Failure,
    /// When.
    pub phase: Phase,
    /// The proxy selector chose its proxy (and not the address).
    pub from_selector: bool,
    /// It goes through a proxy.
    pub proxied: bool,
    /// The host lets failed connections be retried.
    pub retry_enabled: bool,
}

/// Who hears of a failed attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// A connect-failed event.
    pub failed_event: bool,
    /// A connect-canceled event instead.
    pub canceled_event: bool,
    /// The proxy selector.
    pub proxy_selector: bool,
    /// The database.
    pub database: bool,
    /// The next route is tried.
    pub next_route: bool,
}

/// Who hears of a failed attempt, and whether the next route is tried.
///
/// byway: the database hears of every failure that blames the route, and the proxy selector of every such failure
/// through a proxy it chose. A lost race or local trouble blames nobody.
pub fn report(profile: Compat, attempt: &Attempt) -> Report {
    let attempted = attempt.phase != Phase::Dns;
    let called_off = matches!(attempt.failure, Failure::Canceled | Failure::Interrupted);
    match profile {
        Compat::Byway => {
            let blamed = attempted && attempt.failure.blames_route();
            Report {
                failed_event: attempted && !called_off,
                canceled_event: attempted && called_off,
                proxy_selector: blamed && attempt.from_selector && attempt.proxied,
                database: blamed,
                next_route: !called_off,
            }
        }
        Compat::OkHttp5 => Report {
            failed_event: attempted,
            canceled_event: false,
            // A failed exchange is told whoever chose the proxy, and is what enters the database.
            proxy_selector: attempt.proxied
                && (attempt.phase == Phase::Exchange
                    || (attempt.phase == Phase::Tcp && attempt.from_selector)),
            database: attempt.phase == Phase::Exchange,
            next_route: true,
        },
        Compat::OkHttp3 => {
            let failed = Failed {
                failure: attempt.failure,
                phase: attempt.phase,
                retry_enabled: attempt.retry_enabled,
                one_shot: false,
                sent: false,
                exchange_failed: true,
                more_routes: true,
            };
            Report {
                failed_event: attempted,
                canceled_event: false,
                proxy_selector: attempted && attempt.proxied,
                database: attempted,
                next_route: recover(Compat::OkHttp3, &failed) == Recovery::Retry,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_were_sent_decide_what_may_be_repeated() {
        let base = Failed {
            failure: Failure::Timeout,
            phase: Phase::Tcp,
            retry_enabled: true,
            one_shot: true,
            sent: false,
            exchange_failed: true,
            more_routes: true,
        };
        for (failed, want) in [
            (base, Recovery::Retry),
            (Failed { sent: true, ..base }, Recovery::NotRepeatable),
            (Failed { sent: true, one_shot: false, ..base }, Recovery::Fatal),
            (Failed { sent: true, one_shot: false, failure: Failure::Reset, ..base }, Recovery::Retry),
            (Failed { sent: true, failure: Failure::StreamRefused, ..base }, Recovery::Retry),
            (Failed { failure: Failure::TlsPeerUnverified, ..base }, Recovery::Fatal),
            (Failed { more_routes: false, ..base }, Recovery::NoMoreRoutes),
            (Failed { retry_enabled: false, ..base }, Recovery::Disabled),
        ] {
            assert_eq!(recover(Compat::Byway, &failed), want, "{failed:?}");
        }
    }

    #[test]
    fn a_lost_race_and_local_trouble_blame_nobody() {
        let attempt = |failure| Attempt {
            failure,
            phase: Phase::Tcp,
            from_selector: true,
            proxied: true,
            retry_enabled: true,
        };
        let lost = report(Compat::Byway, &attempt(Failure::Canceled));
        assert!(lost.canceled_event && !lost.failed_event && !lost.database && !lost.proxy_selector);
        let local = report(Compat::Byway, &attempt(Failure::Local));
        assert!(local.failed_event && !local.database && !local.proxy_selector && local.next_route);
        let refused = report(Compat::Byway, &attempt(Failure::Refused));
        assert!(refused.failed_event && refused.database && refused.proxy_selector);
    }
}
