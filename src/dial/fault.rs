//! Why one attempt ended without a connection, and whom that concerns.
//!
//! The list follows what the protocols and Linux can say (RFC 1928, RFC 1929, RFC 9110 9.3.6, `connect(2)`); a
//! number the peer sent travels along instead of being rounded to the nearest known one.

use crate::error::{Error, Source, Status};
use core::fmt;

/// What a failed attempt says about the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The route does not work: the database and the proxy selector are told.
    Route,
    /// The proxy works and cannot reach the target: the database is told, the proxy selector is not.
    Target,
    /// The proxy answered and refuses the tunnel: a decision, not a defect.
    Refusal,
    /// Credentials are missing or wrong: nobody is told.
    Auth,
    /// This machine could not make the attempt: nobody is told.
    Local,
    /// This machine is out of descriptors or buffers: nobody is told, the attempt may be repeated later.
    Exhausted,
}

macro_rules! faults {
    ($( $(#[$doc:meta])* $name:ident $(($number:ty))? = $text:literal, $blame:ident, $status:ident, $message:literal; )*) => {
        /// Why an attempt failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Fault { $( $(#[$doc])* $name $(($number))?, )* }

        impl Fault {
            /// The fault's fixed name, without the number it may carry.
            pub const fn name(self) -> &'static str {
                match self { $( faults!(@pattern $name $(($number))?) => $text, )* }
            }

            /// The name with a NUL behind it.
            pub const fn c_name(self) -> &'static str {
                match self { $( faults!(@pattern $name $(($number))?) => concat!($text, "\0"), )* }
            }

            /// Whom it concerns.
            pub const fn blame(self) -> Blame {
                match self { $( faults!(@pattern $name $(($number))?) => Blame::$blame, )* }
            }

            /// The status a caller branches on.
            pub const fn status(self) -> Status {
                match self { $( faults!(@pattern $name $(($number))?) => Status::$status, )* }
            }

            /// One sentence for people.
            pub const fn message(self) -> &'static str {
                match self { $( faults!(@pattern $name $(($number))?) => $message, )* }
            }
        }
    };
    (@pattern $name:ident) => { Fault::$name };
    (@pattern $name:ident ($number:ty)) => { Fault::$name(_) };
}

faults! {
    /// RST in answer to SYN.
    Refused = "REFUSED", Route, E_REFUSED, "connection refused";
    /// RST after the connection stood.
    Reset = "RESET", Route, E_RESET, "connection reset";
    /// ICMP host unreachable or administratively prohibited.
    HostUnreachable = "HOST_UNREACHABLE", Route, E_UNREACHABLE, "host unreachable";
    /// ICMP network unreachable.
    NetUnreachable = "NET_UNREACHABLE", Route, E_UNREACHABLE, "network unreachable";
    /// No answer within the attempt timeout.
    TimeoutAttempt = "TIMEOUT_ATTEMPT", Route, E_TIMEOUT, "no answer within the attempt timeout";
    /// The proxy handshake did not end in time.
    TimeoutReady = "TIMEOUT_READY", Route, E_TIMEOUT, "the proxy handshake did not end in time";
    /// TLS failed on the host's side.
    TlsFailed = "TLS_FAILED", Route, E_CONNECT, "TLS failed on this connection";
    /// TLS failed because of the certificate; trying again does not help and the route is not at fault.
    TlsCertificate = "TLS_CERTIFICATE", Auth, E_CONNECT, "the certificate was not accepted";
    /// Another error number from the socket.
    Socket(i32) = "SOCKET", Route, E_OS, "the socket failed";

    /// `connect(2)` knows no route; nothing was sent.
    NoLocalRoute = "NO_LOCAL_ROUTE", Local, E_LOCAL, "no local route to this address";
    /// No usable source address, or local ports used up.
    AddrNotAvailable = "ADDR_NOT_AVAILABLE", Local, E_LOCAL, "no source address or local port available";
    /// The configured source address cannot be bound.
    BindFailed = "BIND_FAILED", Local, E_LOCAL, "the source address cannot be bound";
    /// The configured network device does not exist.
    NoDevice = "NO_DEVICE", Local, E_LOCAL, "no such network device";
    /// Permission denied, also by a `prohibit` route or a firewall of this machine.
    AccessDenied = "ACCESS_DENIED", Local, E_LOCAL, "permission denied on this machine";
    /// The address family is not available.
    AfUnsupported = "AF_UNSUPPORTED", Local, E_LOCAL, "address family not available";
    /// No descriptor left.
    FdLimit = "FD_LIMIT", Exhausted, E_LOCAL, "no file descriptor left";
    /// No memory or buffer space for a socket.
    NoBuffers = "NO_BUFFERS", Exhausted, E_LOCAL, "no buffer space left";
    /// The socket reached itself (TCP simultaneous open on a local port).
    SelfConnect = "SELF_CONNECT", Local, E_SELF_CONNECT, "the socket connected to itself";
    /// A host hook refused this route.
    HookRejected = "HOOK_REJECTED", Local, E_HOST, "the host refused this route";
    /// A socket option could not be set.
    OptionFailed = "OPTION_FAILED", Local, E_LOCAL, "a socket option could not be set";
    /// An address `connect(2)` does not accept (link-local without a zone, `blackhole` route).
    BadAddress = "BAD_ADDRESS", Local, E_LOCAL, "the system does not accept this address";

    /// Closed before the first byte of an answer.
    ProxyClosed = "PROXY_CLOSED", Route, E_CLOSED, "the proxy closed without an answer";
    /// Closed inside an answer.
    Truncated = "TRUNCATED", Route, E_CLOSED, "the proxy closed inside its answer";
    /// Not the protocol that was expected.
    BadVersion = "BAD_VERSION", Route, E_PROXY_PROTOCOL, "the answer is not of the expected SOCKS version";
    /// A host with characters no host has.
    BadHost = "BAD_HOST", Local, E_INVALID_HOST, "the host has characters that must not be sent";
    /// No host.
    EmptyHost = "EMPTY_HOST", Local, E_INVALID_HOST, "the host is empty";
    /// A host that does not fit the one-byte length.
    LongHost = "LONG_HOST", Local, E_INVALID_HOST, "the host is longer than 255 bytes";
    /// A user that does not fit the one-byte length.
    LongUser = "LONG_USER", Local, E_INVALID_PROXY, "the user name is longer than 255 bytes";
    /// A password that does not fit the one-byte length.
    LongPassword = "LONG_PASSWORD", Local, E_INVALID_PROXY, "the password is longer than 255 bytes";
    /// A user or password with characters the protocol cannot carry.
    BadUser = "BAD_USER", Local, E_INVALID_PROXY, "user or password has characters the protocol cannot carry";
    /// Port 0.
    BadPort = "BAD_PORT", Local, E_INVALID_PORT, "port outside 1..65535";
    /// An address the protocol cannot carry: IPv6 over SOCKS4.
    UnsupportedAddress = "UNSUPPORTED_ADDRESS", Local, E_INVALID_PROXY, "this protocol cannot carry an IPv6 address";
    /// A name where an address is needed; it is never resolved behind the caller's back.
    UnresolvedHost = "UNRESOLVED_HOST", Local, E_INVALID_HOST, "SOCKS4 needs an address, not a name";

    /// SOCKS4 code 91.
    Socks4Rejected = "SOCKS4_REJECTED", Target, E_PROXY_REFUSED, "SOCKS4: rejected or failed (91)";
    /// SOCKS4 code 92.
    Socks4NoIdentd = "SOCKS4_NO_IDENTD", Target, E_PROXY_REFUSED, "SOCKS4: identd not reachable (92)";
    /// SOCKS4 code 93.
    Socks4IdentMismatch = "SOCKS4_IDENT_MISMATCH", Target, E_PROXY_REFUSED, "SOCKS4: identd names another user (93)";
    /// SOCKS4 answer with a code nobody defined.
    Socks4UnknownCode(u8) = "SOCKS4_UNKNOWN_CODE", Target, E_PROXY_REFUSED, "SOCKS4: unknown answer code";
    /// SOCKS5 method 255.
    NoAcceptableMethod = "NO_ACCEPTABLE_METHOD", Auth, E_PROXY_AUTH, "SOCKS5: the proxy accepts no offered method";
    /// SOCKS5 server picked a method that was not offered.
    MethodNotOffered = "METHOD_NOT_OFFERED", Route, E_PROXY_PROTOCOL, "SOCKS5: the proxy picked a method that was not offered";
    /// RFC 1929 answer with another version, when strict.
    BadAuthVersion = "BAD_AUTH_VERSION", Route, E_PROXY_PROTOCOL, "SOCKS5: wrong version in the password answer";
    /// RFC 1929 status other than 0.
    AuthRejected(u8) = "AUTH_REJECTED", Auth, E_PROXY_AUTH, "SOCKS5: user or password refused";
    /// Reply 1.
    RepGeneralFailure = "REP_GENERAL_FAILURE", Target, E_PROXY_REFUSED, "SOCKS5: general failure (1)";
    /// Reply 2.
    RepNotAllowed = "REP_NOT_ALLOWED", Target, E_PROXY_REFUSED, "SOCKS5: not allowed by the rules (2)";
    /// Reply 3.
    RepNetUnreachable = "REP_NET_UNREACHABLE", Target, E_PROXY_REFUSED, "SOCKS5: network unreachable (3)";
    /// Reply 4.
    RepHostUnreachable = "REP_HOST_UNREACHABLE", Target, E_PROXY_REFUSED, "SOCKS5: host unreachable (4)";
    /// Reply 5.
    RepRefused = "REP_REFUSED", Target, E_PROXY_REFUSED, "SOCKS5: connection refused (5)";
    /// Reply 6.
    RepTtlExpired = "REP_TTL_EXPIRED", Target, E_PROXY_REFUSED, "SOCKS5: TTL expired (6)";
    /// Reply 7.
    RepCommandNotSupported = "REP_COMMAND_NOT_SUPPORTED", Target, E_PROXY_REFUSED, "SOCKS5: command not supported (7)";
    /// Reply 8.
    RepAddressTypeNotSupported = "REP_ADDRESS_TYPE_NOT_SUPPORTED", Target, E_PROXY_REFUSED, "SOCKS5: address type not supported (8)";
    /// A reply nobody assigned; some servers define their own.
    RepUnassigned(u8) = "REP_UNASSIGNED", Target, E_PROXY_REFUSED, "SOCKS5: unassigned failure code";
    /// Address type other than 1, 3, 4.
    BadAtyp = "BAD_ATYP", Route, E_PROXY_PROTOCOL, "SOCKS5: unknown address type";
    /// Reserved byte not 0, when strict.
    BadReserved = "BAD_RESERVED", Route, E_PROXY_PROTOCOL, "SOCKS5: reserved byte is not 0";

    /// Not `HTTP/1.x NNN`.
    BadStatusLine = "BAD_STATUS_LINE", Route, E_PROXY_PROTOCOL, "CONNECT: not an HTTP/1 status line";
    /// A header byte HTTP forbids.
    BadHeader = "BAD_HEADER", Route, E_PROXY_PROTOCOL, "CONNECT: a header has forbidden bytes";
    /// A line or the whole head beyond its limit.
    HeaderTooLarge = "HEADER_TOO_LARGE", Route, E_PROXY_PROTOCOL, "CONNECT: the answer's head is too large";
    /// Any other final status than success and 407.
    ConnectStatus(u16) = "CONNECT_STATUS", Refusal, E_PROXY_REFUSED, "CONNECT: the proxy refuses the tunnel";
    /// 407 and nobody has other credentials.
    ConnectAuthRequired = "CONNECT_AUTH_REQUIRED", Auth, E_PROXY_AUTH, "CONNECT: the proxy wants credentials";
    /// 407 again and again.
    ConnectAuthLoop = "CONNECT_AUTH_LOOP", Auth, E_PROXY_AUTH, "CONNECT: the proxy keeps asking for credentials";
    /// Bytes behind the head, when that is not wanted.
    EarlyData = "EARLY_DATA", Route, E_PROXY_PROTOCOL, "CONNECT: data behind the answer's head";
    /// A body promised with the success answer was cut; only upstream waits for one.
    UnexpectedEnd = "UNEXPECTED_END", Route, E_CLOSED, "unexpected end of stream";
}

impl Fault {
    /// The number the peer or system sent with it, 0 when there is none.
    pub const fn number(self) -> i32 {
        match self {
            Fault::Socket(n) => n,
            Fault::Socks4UnknownCode(n) | Fault::AuthRejected(n) | Fault::RepUnassigned(n) => n as i32,
            Fault::ConnectStatus(n) => n as i32,
            _ => 0,
        }
    }

    /// True when the attempt failed before or beside the network: the database is not told.
    pub const fn is_local(self) -> bool {
        matches!(self.blame(), Blame::Local | Blame::Exhausted)
    }

    /// The fault of an error number that `connect(2)` gave at once: nothing was sent, so what would be the
    /// network's verdict later is this machine's own now.
    pub fn of_connect(errno: i32) -> Fault {
        match errno {
            libc::ENETUNREACH | libc::EHOSTUNREACH => Fault::NoLocalRoute,
            libc::EADDRNOTAVAIL | libc::EADDRINUSE => Fault::AddrNotAvailable,
            libc::EACCES | libc::EPERM => Fault::AccessDenied,
            libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::EPFNOSUPPORT => Fault::AfUnsupported,
            libc::EINVAL => Fault::BadAddress,
            libc::ENODEV | libc::ENXIO => Fault::NoDevice,
            libc::EMFILE | libc::ENFILE => Fault::FdLimit,
            libc::ENOBUFS | libc::ENOMEM | libc::EAGAIN => Fault::NoBuffers,
            other => Fault::of_network(other),
        }
    }

    /// The fault of an error number that came from the network: `SO_ERROR`, read or write.
    pub fn of_network(errno: i32) -> Fault {
        match errno {
            libc::ECONNREFUSED => Fault::Refused,
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => Fault::Reset,
            libc::EHOSTUNREACH | libc::EHOSTDOWN => Fault::HostUnreachable,
            libc::ENETUNREACH | libc::ENETDOWN => Fault::NetUnreachable,
            libc::ETIMEDOUT => Fault::TimeoutAttempt,
            libc::EADDRNOTAVAIL => Fault::AddrNotAvailable,
            libc::EACCES | libc::EPERM => Fault::AccessDenied,
            libc::ENOBUFS | libc::ENOMEM => Fault::NoBuffers,
            other => Fault::Socket(other),
        }
    }

    /// The text upstream's exception carries for a tunnel that failed, for `compat`.
    pub fn upstream_message(self) -> String {
        match self {
            Fault::ConnectStatus(status) => format!("Unexpected response code for CONNECT: {status}"),
            Fault::ConnectAuthRequired => "Failed to authenticate with proxy".into(),
            Fault::EarlyData => "TLS tunnel buffered too many bytes!".into(),
            Fault::ConnectAuthLoop => "Too many tunnel connections attempted: 21".into(),
            Fault::ProxyClosed | Fault::Truncated | Fault::UnexpectedEnd => "unexpected end of stream".into(),
            other => other.message().into(),
        }
    }

    /// The error a caller sees for one attempt; `errno` is the system's number, 0 when there is none.
    pub fn error(self, errno: i32, subject: &str) -> Error {
        let message = match self.number() {
            0 => self.message().to_owned(),
            number => format!("{}: {number}", self.message()),
        };
        let source = if errno != 0 { Source::Socket } else { Source::Parser };
        Error::new(self.status(), message).subject(subject).os(errno).source(source)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.number() {
            0 => Ok(()),
            number => write!(f, ":{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_means_another_thing_before_and_after_a_packet_was_sent() {
        assert_eq!(Fault::of_connect(libc::ENETUNREACH), Fault::NoLocalRoute);
        assert_eq!(Fault::of_network(libc::ENETUNREACH), Fault::NetUnreachable);
        assert!(Fault::of_connect(libc::ENETUNREACH).is_local());
        assert!(!Fault::of_network(libc::ENETUNREACH).is_local());
    }

    #[test]
    fn numbers_of_the_peer_travel_along() {
        assert_eq!(Fault::ConnectStatus(503).to_string(), "CONNECT_STATUS:503");
        assert_eq!(Fault::RepUnassigned(9).number(), 9);
        assert_eq!(Fault::Socket(200).blame(), Blame::Route);
    }
}
