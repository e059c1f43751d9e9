//! HTTP CONNECT (RFC 9110 9.3.6, RFC 9112): the request as text, the answer as a parser that gives the same
//! result for every split of its input and never takes a byte of the tunnel.

use super::fault::Fault;
use super::socks::Host;
use core::fmt::Write as _;

/// The `host:port` of request line and `Host` header: the port always, an IPv6 address in brackets once, a zone
/// never.
pub fn authority(host: &str, port: u16) -> Result<String, Fault> {
    if port == 0 {
        return Err(Fault::BadPort);
    }
    match Host::parse(host)? {
        Host::Ip(std::net::IpAddr::V6(ip)) => Ok(format!("[{ip}]:{port}")),
        Host::Ip(ip) => Ok(format!("{ip}:{port}")),
        Host::Name(name) => {
            let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&b);
            if !name.bytes().all(unreserved) {
                return Err(Fault::BadHost);
            }
            Ok(format!("{name}:{port}"))
        }
    }
}

/// `Basic` credentials (RFC 7617): UTF-8, no colon in the user, no control characters.
pub fn basic(user: &str, password: &str) -> Result<String, Fault> {
    if user.contains(':') || user.chars().chain(password.chars()).any(char::is_control) {
        return Err(Fault::BadUser);
    }
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let plain = [user.as_bytes(), b":", password.as_bytes()].concat();
    let mut text = String::from("Basic ");
    for chunk in plain.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let index = (bits >> (18 - 6 * position)) as usize & 63;
            let filler = position > chunk.len();
            text.push(if filler { '=' } else { char::from(ALPHABET.get(index).copied().unwrap_or(b'=')) });
        }
    }
    Ok(text)
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// True when `text` may stand in a header: no control character but tab, so no second line either.
pub fn is_header_value(text: &str) -> bool {
    text.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f))
}

/// One CONNECT request.
#[derive(Clone, Copy, Default)]
pub struct Request<'a> {
    /// Target, name or address.
    pub host: &'a str,
    /// Target port.
    pub port: u16,
    /// Value of `Proxy-Authorization`, if any.
    pub authorization: Option<&'a str>,
    /// Value of `User-Agent`; empty for none.
    pub user_agent: &'a str,
    /// Further headers for the proxy alone; they never reach the target.
    pub headers: &'a [(String, String)],
}

impl Request<'_> {
    /// The request as it goes to the proxy.
    pub fn text(&self) -> Result<String, Fault> {
        let authority = authority(self.host, self.port)?;
        let mut authorization = self.authorization;
        let mut extra = String::new();
        for (name, value) in self.headers {
            if !is_token(name) || !is_header_value(value) {
                return Err(Fault::BadHeader);
            }
            let reserved = ["host", "content-length", "transfer-encoding", "connection", "proxy-connection"];
            if reserved.iter().any(|r| name.eq_ignore_ascii_case(r)) {
                return Err(Fault::BadHeader);
            }
            if name.eq_ignore_ascii_case("proxy-authorization") {
                authorization = authorization.or(Some(value));
                continue;
            }
            let _ = write!(extra, "{name}: {value}\r\n");
        }
        let mut text = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        if let Some(value) = authorization {
            if !is_header_value(value) || value.is_empty() {
                return Err(Fault::BadHeader);
            }
            let _ = write!(text, "Proxy-Authorization: {value}\r\n");
        }
        text.push_str("Proxy-Connection: Keep-Alive\r\n");
        if !self.user_agent.is_empty() {
            if !is_header_value(self.user_agent) {
                return Err(Fault::BadHeader);
            }
            let _ = write!(text, "User-Agent: {}\r\n", self.user_agent);
        }
        text.push_str(&extra);
        text.push_str("\r\n");
        Ok(text)
    }
}

/// Limits and dialect of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest line, without its end. Default 16 KiB.
    pub max_line: usize,
    /// All heads of one answer together, interim ones included. Default 256 KiB.
    pub max_header: usize,
    /// Longest body of a 407 that is read to keep the connection. Default 64 KiB.
    pub max_drain: usize,
    /// Only 200 opens the tunnel, not every 2xx. Default off.
    pub strict_200: bool,
    /// Upstream's reading: 200 alone, no interim answers, bodies by Content-Length alone also on success, only
    /// `Connection: close` ends a connection.
    pub upstream: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_line: 16 << 10,
            max_header: 256 << 10,
            max_drain: 64 << 10,
            strict_200: false,
            upstream: false,
        }
    }
}

/// What the proxy answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The tunnel stands; the next byte on the connection belongs to it.
    Tunnel {
        /// 200 to 299.
        status: u16,
        /// Interim answers before it.
        interim: u32,
    },
    /// 407.
    Challenge {
        /// Values of `Proxy-Authenticate`, in order.
        challenges: Vec<String>,
        /// The connection can carry another request.
        reuse: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Counted(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
}

#[derive(Clone, PartialEq, Eq)]
enum State {
    StatusLine,
    Headers,
    Body(Body),
    Done(Answer),
    Failed(Fault),
}

/// Parser of one answer.
pub struct Reply {
    limits: Limits,
    state: State,
    /// The line under way, without its line feed.
    line: Vec<u8>,
    /// The header before it, kept because a folded line may continue it.
    held: Vec<u8>,
    total: usize,
    interim: u32,
    status: u16,
    head: Head,
}

#[derive(Default)]
struct Head {
    minor: u8,
    challenges: Vec<String>,
    close: bool,
    keep_alive: bool,
    length: Option<u64>,
    bad_length: bool,
    chunked: bool,
    bad_coding: bool,
}

/// What the next byte of a status line may be, up to the three digits.
fn status_line_byte(position: usize, byte: u8) -> bool {
    match b"HTTP/1.".get(position) {
        Some(&want) => byte == want,
        None => match position {
            7 => matches!(byte, b'0' | b'1'),
            8 => byte == b' ',
            9 => matches!(byte, b'1'..=b'9'),
            10 | 11 => byte.is_ascii_digit(),
            12 => matches!(byte, b' ' | b'\r' | b'\n'),
            _ => byte != 0,
        },
    }
}

impl Reply {
    /// A parser at the first byte.
    pub fn new(limits: Limits) -> Self {
        Reply {
            limits,
            state: State::StatusLine,
            line: Vec::new(),
            held: Vec::new(),
            total: 0,
            interim: 0,
            status: 0,
            head: Head::default(),
        }
    }

    /// Takes bytes and returns how many belong to the answer; what follows a tunnel's head is not touched.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match &self.state {
                State::Done(_) => break,
                State::Failed(fault) => return Err(*fault),
                State::Body(Body::Counted(left) | Body::ChunkData(left)) => {
                    let taken = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    at += taken;
                    self.drained(taken as u64);
                }
                _ => {
                    let Some(&byte) = rest.first() else { break };
                    at += 1;
                    if let Err(fault) = self.take(byte) {
                        self.state = State::Failed(fault);
                        return Err(fault);
                    }
                }
            }
        }
        Ok(at)
    }

    /// The proxy closed.
    pub fn eof(&mut self) -> Result<(), Fault> {
        let fault = match &self.state {
            State::Done(_) => return Ok(()),
            State::Failed(fault) => *fault,
            State::Body(_) if self.status == 407 && !self.limits.upstream => {
                self.finish_challenge(false);
                return Ok(());
            }
            State::Body(_) => Fault::UnexpectedEnd,
            // A refusal is known from its status line on.
            State::Headers if self.status >= 300 && self.status != 407 => Fault::ConnectStatus(self.status),
            State::StatusLine if self.line.is_empty() && self.interim == 0 => Fault::ProxyClosed,
            _ => Fault::Truncated,
        };
        self.state = State::Failed(fault);
        Err(fault)
    }

    /// The answer, once it is complete.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.state {
            State::Done(answer) => Some(answer),
            _ => None,
        }
    }

    /// True while everything that arrives belongs to the answer's head, so that it may be searched by peeking.
    pub fn in_head(&self) -> bool {
        matches!(self.state, State::StatusLine | State::Headers)
    }

    fn take(&mut self, byte: u8) -> Result<(), Fault> {
        if self.in_head() {
            self.total += 1;
            if self.total > self.limits.max_header {
                return Err(Fault::HeaderTooLarge);
            }
            if self.state == State::StatusLine && !status_line_byte(self.line.len(), byte) {
                return Err(Fault::BadStatusLine);
            }
            if byte == 0 {
                return Err(Fault::BadHeader);
            }
        }
        if byte != b'\n' {
            self.line.push(byte);
            // One more is allowed while it could be the CR of the line's end.
            let spare = usize::from(byte == b'\r');
            if self.line.len() > self.limits.max_line + spare {
                return if self.in_head() { Err(Fault::HeaderTooLarge) } else { self.give_up_body() };
            }
            return Ok(());
        }
        let mut line = core::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let done = self.take_line(&mut line);
        line.clear();
        if self.line.capacity() == 0 {
            self.line = line;
        }
        done
    }

    fn take_line(&mut self, line: &mut Vec<u8>) -> Result<(), Fault> {
        match self.state {
            State::StatusLine => {
                let digits = line.get(9..12).ok_or(Fault::BadStatusLine)?;
                self.status = digits.iter().fold(0, |n, d| n * 10 + u16::from(d - b'0'));
                self.head = Head { minor: line.get(7).map_or(0, |d| d - b'0'), ..Head::default() };
                self.state = State::Headers;
                Ok(())
            }
            State::Headers if line.is_empty() => {
                self.take_header()?;
                self.end_of_head()
            }
            State::Headers => {
                if matches!(line.first(), Some(b' ' | b'\t')) && !self.held.is_empty() {
                    self.held.push(b' ');
                    self.held.extend_from_slice(line.trim_ascii());
                    return Ok(());
                }
                self.take_header()?;
                core::mem::swap(&mut self.held, line);
                Ok(())
            }
            State::Body(Body::ChunkSize) => {
                let size = line.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
                let text = core::str::from_utf8(size).unwrap_or_default();
                let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
                match u64::from_str_radix(text, 16) {
                    Ok(0) if plain => self.state = State::Body(Body::Trailer),
                    Ok(size) if plain && self.may_drain(size) => {
                        self.state = State::Body(Body::ChunkData(size));
                    }
                    _ => return self.give_up_body(),
                }
                Ok(())
            }
            State::Body(Body::ChunkEnd) => {
                if !line.is_empty() {
                    return self.give_up_body();
                }
                self.state = State::Body(Body::ChunkSize);
                Ok(())
            }
            State::Body(Body::Trailer) => {
                if line.is_empty() {
                    self.finish_challenge(true);
                } else if !self.may_drain(line.len() as u64) {
                    return self.give_up_body();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads the header that is complete now that no folded line can follow.
    fn take_header(&mut self) -> Result<(), Fault> {
        let held = core::mem::take(&mut self.held);
        // A line without a colon is skipped, as clients do.
        let Some(colon) = held.iter().position(|&b| b == b':') else { return Ok(()) };
        let (name, value) = held.split_at(colon);
        let name = name.trim_ascii();
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if held.contains(&b'\r') {
            return Err(Fault::BadHeader);
        }
        let is = |want: &str| name.eq_ignore_ascii_case(want.as_bytes());
        let has = |want: &str| {
            value.split(|&b| b == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(want.as_bytes()))
        };
        if is("proxy-authenticate") {
            self.head.challenges.push(String::from_utf8_lossy(value).into_owned());
        } else if is("connection") || is("proxy-connection") && !self.limits.upstream {
            self.head.close |= has("close");
            self.head.keep_alive |= has("keep-alive");
        } else if is("content-length") {
            for part in value.split(|&b| b == b',') {
                let text = core::str::from_utf8(part.trim_ascii()).unwrap_or_default();
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                let length = text.parse().ok().filter(|_| digits);
                let differs = self.head.length.is_some() && self.head.length != length;
                self.head.bad_length |= length.is_none() || differs;
                self.head.length = length.or(self.head.length);
            }
        } else if is("transfer-encoding") {
            self.head.bad_coding |= self.head.chunked || !value.eq_ignore_ascii_case(b"chunked");
            self.head.chunked = true;
        }
        Ok(())
    }

    fn end_of_head(&mut self) -> Result<(), Fault> {
        let upstream = self.limits.upstream;
        match self.status {
            status @ 100..=199 if status != 101 && !upstream => {
                self.interim += 1;
                self.state = State::StatusLine;
                Ok(())
            }
            status @ 200..=299 => {
                if (self.limits.strict_200 || upstream) && status != 200 {
                    return Err(Fault::ConnectStatus(status));
                }
                match self.head.length {
                    Some(length @ 1..) if upstream => self.state = State::Body(Body::Counted(length)),
                    _ => self.state = State::Done(Answer::Tunnel { status, interim: self.interim }),
                }
                Ok(())
            }
            407 => {
                self.begin_body();
                Ok(())
            }
            status => Err(Fault::ConnectStatus(status)),
        }
    }

    /// Decides whether a 407's body is read to keep the connection.
    fn begin_body(&mut self) {
        let head = &self.head;
        if self.limits.upstream {
            match head.length {
                Some(length @ 1..) => self.state = State::Body(Body::Counted(length)),
                _ => self.finish_challenge(!head.close),
            }
            return;
        }
        let closes = head.close || head.minor == 0 && !head.keep_alive;
        if closes || head.bad_length || head.bad_coding {
            return self.finish_challenge(false);
        }
        self.total = 0;
        if head.chunked {
            self.state = State::Body(Body::ChunkSize);
            return;
        }
        match head.length {
            Some(0) => self.finish_challenge(true),
            Some(length) if length <= self.limits.max_drain as u64 => {
                self.state = State::Body(Body::Counted(length));
            }
            // Longer than is worth reading, or up to the end of the connection.
            _ => self.finish_challenge(false),
        }
    }

    fn may_drain(&mut self, more: u64) -> bool {
        self.total = self.total.saturating_add(usize::try_from(more).unwrap_or(usize::MAX));
        self.total <= self.limits.max_drain
    }

    fn drained(&mut self, taken: u64) {
        match self.state {
            State::Body(Body::Counted(left)) if left > taken => {
                self.state = State::Body(Body::Counted(left - taken));
            }
            State::Body(Body::Counted(_)) if self.status == 407 => {
                let reuse = !(self.limits.upstream && self.head.close);
                self.finish_challenge(reuse);
            }
            State::Body(Body::Counted(_)) => {
                self.state = State::Done(Answer::Tunnel { status: self.status, interim: self.interim });
            }
            State::Body(Body::ChunkData(left)) if left > taken => {
                self.state = State::Body(Body::ChunkData(left - taken));
            }
            State::Body(Body::ChunkData(_)) => self.state = State::Body(Body::ChunkEnd),
            _ => {}
        }
    }

    fn give_up_body(&mut self) -> Result<(), Fault> {
        self.finish_challenge(false);
        Ok(())
    }

    fn finish_challenge(&mut self, reuse: bool) {
        let challenges = core::mem::take(&mut self.head.challenges);
        self.state = State::Done(Answer::Challenge { challenges, reuse });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> (Result<usize, Fault>, Option<Answer>) {
        let mut reply = Reply::new(Limits::default());
        let taken = reply.feed(text.as_bytes());
        (taken, reply.answer().cloned())
    }

    #[test]
    fn basic_is_padded_base64_of_utf8() {
        for (user, password, want) in [
            ("user", "pass", Ok("Basic dXNlcjpwYXNz")),
            ("", "", Ok("Basic Og==")),
            ("a", "", Ok("Basic YTo=")),
            ("é", "€", Ok("Basic w6k64oKs")),
            ("a:b", "c", Err(Fault::BadUser)),
            ("a", "b\r\nX: 1", Err(Fault::BadUser)),
        ] {
            assert_eq!(basic(user, password), want.map(String::from), "{user} {password}");
        }
    }

    #[test]
    fn folded_and_repeated_challenges_are_kept_in_order() {
        let text = "HTTP/1.1 407 no\r\nProxy-Authenticate: Digest a,\r\n  b\r\nproxy-authenticate:Basic\r\n\
                    Content-Length: 0\r\n\r\n";
        let challenges = vec!["Digest a, b".to_owned(), "Basic".to_owned()];
        assert_eq!(whole(text).1, Some(Answer::Challenge { challenges, reuse: true }));
    }

    #[test]
    fn headers_for_the_proxy_cannot_change_the_message() {
        for (name, value, fine) in [
            ("X-Trace", "1", true),
            ("Host", "evil", false),
            ("Transfer-Encoding", "chunked", false),
            ("X y", "1", false),
            ("X", "1\r\nY: 2", false),
        ] {
            let headers = [(name.to_owned(), value.to_owned())];
            let request = Request { host: "o.example", port: 443, headers: &headers, ..Request::default() };
            assert_eq!(request.text().is_ok(), fine, "{name}: {value}");
        }
    }

    #[test]
    fn a_refusal_cut_inside_its_head_still_tells_its_status() {
        let mut reply = Reply::new(Limits::default());
        assert!(reply.feed(b"HTTP/1.1 503 Unavailable\r\nVia").is_ok());
        assert_eq!(reply.eof(), Err(Fault::ConnectStatus(503)));
    }

    #[test]
    fn a_body_that_keeps_the_connection_is_taken_to_its_last_byte_and_no_further() {
        let text = "HTTP/1.1 407 x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\nHTTP/1.1 200";
        let (taken, answer) = whole(text);
        assert_eq!(taken, Ok(text.len() - "HTTP/1.1 200".len()));
        assert_eq!(answer, Some(Answer::Challenge { challenges: vec![], reuse: true }));
    }
}
