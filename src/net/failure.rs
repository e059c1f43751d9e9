//! [`Failure`]: the kinds of failure byway tells apart, and what each says about a route.

use crate::error::Status;

macro_rules! failures {
    ($( $(#[$doc:meta])* $name:ident = $number:literal, $text:literal, $status:ident, $blames:literal; )*) => {
        /// Why an attempt, a handshake or an exchange failed. Numbers are part of the C ABI.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(i32)]
        pub enum Failure { $( $(#[$doc])* $name = $number, )* }

        impl Failure {
            /// Every kind with its text, in order of number.
            pub const ALL: &'static [(Failure, &'static str)] = &[ $( (Failure::$name, $text), )* ];

            /// Short lower-case text, as in exports and explanations.
            pub fn text(self) -> &'static str {
                match self { $( Failure::$name => $text, )* }
            }

            /// The status of an error that reports this failure.
            pub fn status(self) -> Status {
                match self { $( Failure::$name => Status::$status, )* }
            }

            /// True when the route itself is to blame, so that it is worth postponing. Local trouble (no
            /// descriptors, no permission, no local route), an attempt called off, and faults of one request or
            /// of the peer's certificate say nothing about the path.
            pub fn blames_route(self) -> bool {
                match self { $( Failure::$name => $blames, )* }
            }
        }
    };
}

failures! {
    /// An input or output error of no special kind, for example a connection closed too early.
    Io = 0, "io", E_OS, true;
    /// Connection refused.
    Refused = 1, "refused", E_REFUSED, true;
    /// Network or host unreachable, as reported from the path.
    Unreachable = 2, "unreachable", E_UNREACHABLE, true;
    /// Connecting, or reading, took too long.
    Timeout = 3, "timeout", E_TIMEOUT, true;
    /// The peer reset the connection.
    Reset = 4, "reset", E_RESET, true;
    /// This machine could not make the attempt: descriptors, permission, no local route.
    Local = 5, "local", E_LOCAL, false;
    /// Called off: it lost the race, or the call was cancelled.
    Canceled = 6, "canceled", E_CANCELED, false;
    /// Interrupted, not by a timeout.
    Interrupted = 7, "interrupted", E_CANCELED, false;
    /// A name did not resolve.
    UnknownHost = 8, "unknown host", E_UNKNOWN_HOST, false;
    /// The peer broke the protocol.
    Protocol = 9, "protocol", E_PROXY_PROTOCOL, true;
    /// A TLS handshake failed for a reason other than a certificate.
    TlsHandshake = 10, "tls handshake", E_CLOSED, true;
    /// A TLS handshake failed because of a certificate.
    TlsCertificate = 11, "tls certificate", E_CLOSED, true;
    /// The peer is not who it should be: host name or pin.
    TlsPeerUnverified = 12, "tls peer unverified", E_CLOSED, true;
    /// Another TLS failure.
    Tls = 13, "tls", E_CLOSED, true;
    /// The connection announced its shutdown before the request was sent.
    ConnectionShutdown = 14, "connection shutdown", E_CLOSED, true;
    /// A multiplexed stream was refused before it was processed.
    StreamRefused = 15, "stream refused", E_RESET, false;
    /// A multiplexed stream was cancelled.
    StreamCanceled = 16, "stream canceled", E_CANCELED, false;
    /// A multiplexed stream was reset for another reason.
    StreamReset = 17, "stream reset", E_RESET, false;
    /// The request's own body could not be read (a missing file).
    RequestBody = 18, "request body", E_HOST, false;
    /// The proxy refuses to make the connection.
    ProxyRefused = 19, "proxy refused", E_PROXY_REFUSED, true;
    /// The proxy wants other credentials.
    ProxyAuth = 20, "proxy auth", E_PROXY_AUTH, true;
    /// The proxy breaks its protocol.
    ProxyProtocol = 21, "proxy protocol", E_PROXY_PROTOCOL, true;
    /// 407 from something that is no HTTP proxy.
    AuthWithoutProxy = 22, "407 without proxy", E_PROXY_PROTOCOL, false;
    /// The socket is connected to itself.
    SelfConnect = 23, "self connect", E_SELF_CONNECT, false;
    /// The proxy's port cannot be connected to.
    InvalidPort = 24, "invalid port", E_INVALID_PORT, false;
    /// Every address was refused by the address filter.
    Filtered = 25, "filtered", E_FILTERED, false;
}

impl Failure {
    /// The kind of a system's error number that connecting, reading or writing gave. What is not in the table is
    /// [`Failure::Io`]; so is 0.
    pub fn from_errno(errno: i32) -> Failure {
        match errno {
            libc::ECONNREFUSED => Failure::Refused,
            libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN => Failure::Unreachable,
            // The latter two: a blocking socket with a time limit of its own (SO_RCVTIMEO, SO_SNDTIMEO).
            libc::ETIMEDOUT | libc::EAGAIN | libc::EINPROGRESS => Failure::Timeout,
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => Failure::Reset,
            libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => Failure::Local,
            libc::EACCES | libc::EPERM | libc::EADDRNOTAVAIL | libc::EADDRINUSE => Failure::Local,
            libc::EAFNOSUPPORT | libc::EPFNOSUPPORT | libc::EPROTONOSUPPORT => Failure::Local,
            libc::EINVAL | libc::ENODEV | libc::ENXIO => Failure::Local,
            libc::EPROTO => Failure::Protocol,
            libc::ECANCELED => Failure::Canceled,
            libc::EINTR => Failure::Interrupted,
            _ => Failure::Io,
        }
    }

    /// The kind with this number.
    pub fn from_number(number: i32) -> Option<Failure> {
        let (kind, _) = Self::ALL.get(usize::try_from(number).ok()?)?;
        Some(*kind)
    }

    /// The kind with this text.
    pub fn from_text(text: &str) -> Option<Failure> {
        Self::ALL.iter().find(|(_, own)| *own == text).map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions_and_texts_are_unique() {
        for (i, (kind, text)) in Failure::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, i);
            assert_eq!(Failure::from_number(i as i32), Some(*kind));
            assert_eq!(Failure::from_text(text), Some(*kind));
        }
        assert_eq!(Failure::from_number(-1), None);
        assert_eq!(Failure::from_number(9999), None);
    }
}
