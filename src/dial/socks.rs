//! SOCKS4, SOCKS4a and SOCKS5 (RFC 1928, RFC 1929) from the client's side: bytes in, bytes out.
//!
//! The dialogue says how many bytes may be read ([`Socks::want_read`]), so that nothing behind the proxy's answer
//! is ever taken from the socket. Every answer gives the same result however it is split. A failure is decoded
//! as soon as its code is there: servers that send two bytes and close still tell why.

use super::fault::Fault;
use arrayvec::ArrayVec;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest message: SOCKS5 with everything at once (4 + 513 + 262 bytes), rounded up.
const OUT: usize = 784;

/// Protocol version on the wire. Whether a name may be resolved locally is decided before, by the proxy's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4 addresses only.
    V4,
    /// IPv4 addresses, and names resolved by the proxy.
    V4a,
    /// Names, IPv4 and IPv6 addresses.
    V5,
}

/// Switches of the dialogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Refuse a non-zero reserved byte and a password answer of version other than 1.
    pub strict: bool,
    /// Offer only user and password, never "no authentication".
    pub require_auth: bool,
    /// Send greeting, password and request in one go and read the answers afterwards: one round trip instead of
    /// three where the server copes.
    pub optimistic: bool,
}

/// User and password; the password may be empty.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// User name; SOCKS4 calls it user id.
    pub user: &'a str,
    /// Password; SOCKS4 has none.
    pub password: &'a str,
}

/// A host as the proxy is told: an address or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'a> {
    /// An address, sent in binary; a zone is never sent.
    Ip(IpAddr),
    /// A name the proxy resolves.
    Name(&'a str),
}

impl<'a> Host<'a> {
    /// Reads a host text: IPv4, IPv6 with or without brackets and zone, else a name, which is checked.
    pub fn parse(text: &'a str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Err(Fault::EmptyHost);
        }
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let literal = bare.unwrap_or(text);
        let literal = literal.split_once('%').map_or(literal, |(address, _)| address);
        if literal.contains(':') {
            let ip: Ipv6Addr = literal.parse().map_err(|_| Fault::BadHost)?;
            return Ok(Host::Ip(ip.into()));
        }
        if bare.is_some() {
            return Err(Fault::BadHost);
        }
        if let Ok(ip) = text.parse::<Ipv4Addr>() {
            return Ok(Host::Ip(ip.into()));
        }
        Host::Name(text).check()?;
        Ok(Host::Name(text))
    }

    /// What no protocol may be told: no name, a name of more than 255 bytes, spaces and control characters.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            Host::Ip(_) => Ok(()),
            Host::Name("") => Err(Fault::EmptyHost),
            Host::Name(name) if name.len() > 255 => Err(Fault::LongHost),
            Host::Name(name) if name.bytes().any(|b| b <= b' ' || b == 0x7f) => Err(Fault::BadHost),
            Host::Name(_) => Ok(()),
        }
    }
}

/// Without brackets.
impl core::fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Host::Ip(ip) => write!(f, "{ip}"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

/// The address the proxy says it connected from; informative only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// An address and port.
    Ip(IpAddr, u16),
    /// A name and port; the name may be empty.
    Name(String, u16),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reply4,
    Method,
    Password,
    Reply5,
    Done,
    Failed(Fault),
}

/// One dialogue.
pub struct Socks {
    options: Options,
    state: State,
    with_password: bool,
    out: ArrayVec<u8, OUT>,
    /// The password message and the request, sent when their turn comes.
    password: ArrayVec<u8, 513>,
    request: ArrayVec<u8, 262>,
    /// The answer under way; 262 bytes is the longest.
    answer: ArrayVec<u8, 262>,
    bound: Option<Bound>,
}

impl Drop for Socks {
    fn drop(&mut self) {
        // The password does not stay behind in freed memory.
        self.out.iter_mut().for_each(|b| *b = 0);
        self.password.iter_mut().for_each(|b| *b = 0);
        core::hint::black_box((&self.out, &self.password));
    }
}

fn push<const N: usize>(to: &mut ArrayVec<u8, N>, bytes: &[u8], full: Fault) -> Result<(), Fault> {
    to.try_extend_from_slice(bytes).map_err(|_| full)
}

/// One byte of length, then the bytes.
fn push_counted<const N: usize>(to: &mut ArrayVec<u8, N>, bytes: &[u8], long: Fault) -> Result<(), Fault> {
    let length = u8::try_from(bytes.len()).map_err(|_| long)?;
    push(to, &[length], long)?;
    push(to, bytes, long)
}

impl Socks {
    /// A dialogue that asks the proxy for `host:port`. Everything that cannot be sent is refused here, before a
    /// byte goes out.
    pub fn new(
        version: Version,
        host: Host<'_>,
        port: u16,
        credentials: Option<Credentials<'_>>,
        options: Options,
    ) -> Result<Self, Fault> {
        if port == 0 {
            return Err(Fault::BadPort);
        }
        let mut socks = Socks {
            options,
            state: State::Method,
            with_password: false,
            out: ArrayVec::new(),
            password: ArrayVec::new(),
            request: ArrayVec::new(),
            answer: ArrayVec::new(),
            bound: None,
        };
        match version {
            Version::V5 => socks.prepare_5(host, port, credentials)?,
            Version::V4 | Version::V4a => {
                let user = credentials.map_or("", |c| c.user);
                socks.prepare_4(version, host, port, user)?;
            }
        }
        Ok(socks)
    }

    fn prepare_4(&mut self, version: Version, host: Host<'_>, port: u16, user: &str) -> Result<(), Fault> {
        if user.len() > 255 {
            return Err(Fault::LongUser);
        }
        if user.bytes().any(|b| b == 0) {
            return Err(Fault::BadUser);
        }
        let (ip, name) = match host {
            Host::Ip(IpAddr::V4(ip)) => (ip, None),
            Host::Ip(IpAddr::V6(_)) => return Err(Fault::UnsupportedAddress),
            Host::Name(_) if version == Version::V4 => return Err(Fault::UnresolvedHost),
            // 0.0.0.x with x != 0 says that a name follows.
            Host::Name(name) => (Ipv4Addr::new(0, 0, 0, 1), Some(name)),
        };
        push(&mut self.out, &[4, 1], Fault::LongHost)?;
        push(&mut self.out, &port.to_be_bytes(), Fault::LongHost)?;
        push(&mut self.out, &ip.octets(), Fault::LongHost)?;
        push(&mut self.out, user.as_bytes(), Fault::LongUser)?;
        push(&mut self.out, &[0], Fault::LongUser)?;
        if let Some(name) = name {
            push(&mut self.out, name.as_bytes(), Fault::LongHost)?;
            push(&mut self.out, &[0], Fault::LongHost)?;
        }
        self.state = State::Reply4;
        Ok(())
    }

    fn prepare_5(
        &mut self,
        host: Host<'_>,
        port: u16,
        credentials: Option<Credentials<'_>>,
    ) -> Result<(), Fault> {
        if let Some(Credentials { user, password }) = credentials {
            self.with_password = true;
            push(&mut self.password, &[1], Fault::LongUser)?;
            push_counted(&mut self.password, user.as_bytes(), Fault::LongUser)?;
            push_counted(&mut self.password, password.as_bytes(), Fault::LongPassword)?;
        } else if self.options.require_auth {
            return Err(Fault::BadUser);
        }
        push(&mut self.request, &[5, 1, 0], Fault::LongHost)?;
        match host {
            Host::Ip(IpAddr::V4(ip)) => {
                push(&mut self.request, &[1], Fault::LongHost)?;
                push(&mut self.request, &ip.octets(), Fault::LongHost)?;
            }
            Host::Ip(IpAddr::V6(ip)) => {
                push(&mut self.request, &[4], Fault::LongHost)?;
                push(&mut self.request, &ip.octets(), Fault::LongHost)?;
            }
            Host::Name(name) => {
                push(&mut self.request, &[3], Fault::LongHost)?;
                push_counted(&mut self.request, name.as_bytes(), Fault::LongHost)?;
            }
        }
        push(&mut self.request, &port.to_be_bytes(), Fault::LongHost)?;

        // An optimistic client must know beforehand which method will be picked, so it offers only one.
        let only_password = self.options.require_auth || self.options.optimistic;
        let greeting: &[u8] = match (self.with_password, only_password) {
            (false, _) => &[5, 1, 0],
            (true, false) => &[5, 2, 0, 2],
            (true, true) => &[5, 1, 2],
        };
        push(&mut self.out, greeting, Fault::LongHost)?;
        if self.options.optimistic {
            if self.with_password {
                self.send_password()?;
            }
            self.send_request()?;
        }
        Ok(())
    }

    fn send_password(&mut self) -> Result<(), Fault> {
        push(&mut self.out, &self.password, Fault::LongPassword)
    }

    fn send_request(&mut self) -> Result<(), Fault> {
        push(&mut self.out, &self.request, Fault::LongHost)
    }

    /// What has to be written now; empty when an answer is awaited.
    pub fn output(&self) -> &[u8] {
        &self.out
    }

    /// The first `n` bytes of [`Socks::output`] were written.
    pub fn sent(&mut self, n: usize) {
        let n = n.min(self.out.len());
        self.out.drain(..n);
    }

    /// How many bytes may be read now without touching what lies behind the proxy's answer; 0 when the dialogue
    /// is over.
    pub fn want_read(&self) -> usize {
        self.answer_length().saturating_sub(self.answer.len())
    }

    fn answer_length(&self) -> usize {
        match self.state {
            State::Reply4 => 8,
            State::Method | State::Password => 2,
            // 5 bytes show type and, for a name, its length; no answer is shorter than 7.
            State::Reply5 => match (self.answer.get(3), self.answer.get(4)) {
                (Some(1), _) => 10,
                (Some(4), _) => 22,
                (Some(3), Some(&length)) => 7 + usize::from(length),
                _ => 5,
            },
            State::Done | State::Failed(_) => 0,
        }
    }

    /// Takes bytes from the proxy and returns how many of them belong to the dialogue; the rest is tunnel data.
    /// An answer that comes before its question was written is accepted.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        for (index, &byte) in bytes.iter().enumerate() {
            match self.state {
                State::Done => return Ok(index),
                State::Failed(fault) => return Err(fault),
                _ => {}
            }
            if let Err(fault) = self.take(byte) {
                self.state = State::Failed(fault);
                return Err(fault);
            }
        }
        Ok(bytes.len())
    }

    fn take(&mut self, byte: u8) -> Result<(), Fault> {
        push(&mut self.answer, &[byte], Fault::BadVersion)?;
        let position = self.answer.len();
        match self.state {
            State::Reply4 => match position {
                1 if byte != 0 => Err(Fault::BadVersion),
                2 if byte != 90 => Err(match byte {
                    91 => Fault::Socks4Rejected,
                    92 => Fault::Socks4NoIdentd,
                    93 => Fault::Socks4IdentMismatch,
                    other => Fault::Socks4UnknownCode(other),
                }),
                8 => {
                    self.state = State::Done;
                    Ok(())
                }
                _ => Ok(()),
            },
            State::Method => match position {
                1 if byte != 5 => Err(Fault::BadVersion),
                2 => self.method(byte),
                _ => Ok(()),
            },
            State::Password => match position {
                1 if self.options.strict && byte != 1 => Err(Fault::BadAuthVersion),
                2 if byte != 0 => Err(Fault::AuthRejected(byte)),
                2 => {
                    self.next(State::Reply5);
                    if self.options.optimistic { Ok(()) } else { self.send_request() }
                }
                _ => Ok(()),
            },
            State::Reply5 => self.reply_5(position, byte),
            State::Done | State::Failed(_) => Ok(()),
        }
    }

    fn next(&mut self, state: State) {
        self.answer.clear();
        self.state = state;
    }

    fn method(&mut self, method: u8) -> Result<(), Fault> {
        match method {
            0xff => Err(Fault::NoAcceptableMethod),
            0 if !(self.with_password && (self.options.require_auth || self.options.optimistic)) => {
                self.next(State::Reply5);
                if self.options.optimistic { Ok(()) } else { self.send_request() }
            }
            2 if self.with_password => {
                self.next(State::Password);
                if self.options.optimistic { Ok(()) } else { self.send_password() }
            }
            _ => Err(Fault::MethodNotOffered),
        }
    }

    fn reply_5(&mut self, position: usize, byte: u8) -> Result<(), Fault> {
        match position {
            1 if byte != 5 => return Err(Fault::BadVersion),
            2 if byte != 0 => {
                return Err(match byte {
                    1 => Fault::RepGeneralFailure,
                    2 => Fault::RepNotAllowed,
                    3 => Fault::RepNetUnreachable,
                    4 => Fault::RepHostUnreachable,
                    5 => Fault::RepRefused,
                    6 => Fault::RepTtlExpired,
                    7 => Fault::RepCommandNotSupported,
                    8 => Fault::RepAddressTypeNotSupported,
                    other => Fault::RepUnassigned(other),
                });
            }
            3 if self.options.strict && byte != 0 => return Err(Fault::BadReserved),
            4 if !matches!(byte, 1 | 3 | 4) => return Err(Fault::BadAtyp),
            _ => {}
        }
        if position >= 5 && position == self.answer_length() {
            self.bound = self.read_bound();
            self.state = State::Done;
        }
        Ok(())
    }

    fn read_bound(&self) -> Option<Bound> {
        let (head, port) = self.answer.split_last_chunk::<2>()?;
        let port = u16::from_be_bytes(*port);
        let address = head.get(4..)?;
        Some(match self.answer.get(3)? {
            1 => Bound::Ip(Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).into(), port),
            4 => Bound::Ip(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).into(), port),
            _ => Bound::Name(String::from_utf8_lossy(address.get(1..)?).into_owned(), port),
        })
    }

    /// The proxy closed. Harmless after the end, else the fault that follows from what was read so far.
    pub fn eof(&mut self) -> Result<(), Fault> {
        let fault = match self.state {
            State::Done => return Ok(()),
            State::Failed(fault) => fault,
            _ if self.answer.is_empty() => Fault::ProxyClosed,
            _ => Fault::Truncated,
        };
        self.state = State::Failed(fault);
        Err(fault)
    }

    /// True once the proxy has connected; what follows on the socket is the tunnel.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// What a SOCKS5 proxy says it connected from.
    pub fn bound(&self) -> Option<&Bound> {
        self.bound.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimistic_sends_everything_at_once_and_offers_one_method() {
        let credentials = Some(Credentials { user: "u", password: "p" });
        let options = Options { optimistic: true, ..Options::default() };
        let host = Host::Ip(Ipv4Addr::new(192, 0, 2, 7).into());
        let mut socks = Socks::new(Version::V5, host, 80, credentials, options).unwrap();
        let request = [5, 1, 2, 1, 1, b'u', 1, b'p', 5, 1, 0, 1, 192, 0, 2, 7, 0, 80];
        assert_eq!(socks.output(), request);
        socks.sent(request.len());
        let answers = [5, 2, 1, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, b'x'];
        assert_eq!(socks.feed(&answers), Ok(answers.len() - 1));
        assert!(socks.is_done() && socks.output().is_empty());
    }

    #[test]
    fn the_longest_message_fits() {
        let long = "x".repeat(255);
        let credentials = Some(Credentials { user: &long, password: &long });
        let options = Options { optimistic: true, ..Options::default() };
        let socks = Socks::new(Version::V5, Host::Name(&long), 1, credentials, options).unwrap();
        assert_eq!(socks.output().len(), 3 + 513 + 262);
        assert!(Socks::new(Version::V4a, Host::Name(&long), 1, credentials, Options::default()).is_ok());
    }

    #[test]
    fn host_texts() {
        let v6 = Host::Ip("2001:db8::1".parse().unwrap());
        for (text, want) in [
            ("192.0.2.1", Ok(Host::Ip(Ipv4Addr::new(192, 0, 2, 1).into()))),
            ("2001:db8::1", Ok(v6)),
            ("[2001:db8::1]", Ok(v6)),
            ("[2001:db8::1%eth0]", Ok(v6)),
            ("a b", Err(Fault::BadHost)),
            ("a\r\n", Err(Fault::BadHost)),
            ("[a]", Err(Fault::BadHost)),
            ("1:2", Err(Fault::BadHost)),
            ("", Err(Fault::EmptyHost)),
            ("a.example", Ok(Host::Name("a.example"))),
        ] {
            assert_eq!(Host::parse(text), want, "{text}");
        }
    }
}
