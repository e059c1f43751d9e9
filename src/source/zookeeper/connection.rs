//! One connection to one server: bytes in and out without blocking, frames of bounded length.

use super::wire::{Connected, Request};
use crate::error::{Error, Result, Source, Status};
use crate::sys::socket::{PollFd, poll};
use crate::sys::wake::Wake;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Longest frame taken.
const MAX_FRAME: usize = 256 << 20;
/// Room for reading that is kept between frames.
const KEPT: usize = 256 << 10;
/// More room is given back after this time without a frame that needed it: a long list is read again with every change.
const ROOMY: Duration = Duration::from_secs(10);

const POLLIN: i16 = 1;
const POLLOUT: i16 = 4;

/// See the module.
pub(super) struct Connection {
    socket: Socket,
    name: String,
    inbox: Vec<u8>,
    /// Bytes of the inbox that have been read.
    filled: usize,
    /// Bytes of the inbox that have been taken.
    taken: usize,
    outbox: Vec<u8>,
    sent: usize,
    closed: bool,
    /// When a frame last needed more room than is kept.
    large_at: Instant,
    pub(super) heard_at: Instant,
    pub(super) sent_at: Instant,
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// Bytes can be read, or were written.
    Socket,
    /// Somebody raised a flag.
    Flag,
    /// Time is up.
    Time,
}

/// An error about this server.
pub(super) fn failure(name: &str, what: &str, os: Option<&std::io::Error>) -> Error {
    let message = match os {
        Some(os) => format!("{what}: {}", os.kind()),
        None => what.to_owned(),
    };
    Error::new(Status::E_SOURCE, message)
        .subject(name)
        .os(os.and_then(std::io::Error::raw_os_error).unwrap_or(0))
        .source(Source::Socket)
}

impl Connection {
    /// Connects to the first address of a server that takes it. `None`: a flag other than `ignored` was raised.
    pub(super) fn open(
        (host, port): &(String, u16),
        timeout: Duration,
        wake: &Wake,
        stop: u32,
    ) -> Result<Option<Connection>> {
        let name = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, *port)],
            Err(_) => match (host.as_str(), *port).to_socket_addrs() {
                Ok(list) => list.collect(),
                Err(error) => return Err(failure(&name, "the name cannot be resolved", Some(&error))),
            },
        };
        let end = Instant::now() + timeout;
        let mut last = failure(&name, "the name has no address", None);
        for address in addresses {
            if wake.flags() & stop != 0 {
                return Ok(None);
            }
            match Connection::attempt(address, end, wake, stop) {
                Ok(Some(socket)) => {
                    let now = Instant::now();
                    return Ok(Some(Connection {
                        socket,
                        name,
                        inbox: vec![0; KEPT],
                        filled: 0,
                        taken: 0,
                        outbox: Vec::new(),
                        sent: 0,
                        closed: false,
                        large_at: now,
                        heard_at: now,
                        sent_at: now,
                    }));
                }
                Ok(None) => return Ok(None),
                Err(error) => last = failure(&name, "cannot connect", Some(&error)),
            }
        }
        Err(last)
    }

    fn attempt(address: SocketAddr, end: Instant, wake: &Wake, stop: u32) -> std::io::Result<Option<Socket>> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&SockAddr::from(address)) {
            Ok(()) => return Ok(Some(socket)),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            let mut set = [
                PollFd { fd: socket.as_raw_fd(), events: POLLOUT, revents: 0 },
                PollFd { fd: wake.fd().unwrap_or(-1), events: POLLIN, revents: 0 },
            ];
            poll(&mut set, millis(left))?;
            if wake.flags() & stop != 0 {
                return Ok(None);
            }
            // Flags of other kinds wait until the connection stands; they must not spin this loop.
            if set[0].revents == 0 {
                wake.take(0);
                continue;
            }
            return match socket.take_error()? {
                Some(error) => Err(error),
                None => Ok(Some(socket)),
            };
        }
    }

    /// The server has hung up.
    pub(super) fn was_closed(&self) -> bool {
        self.closed
    }

    /// The server, as `host:port`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Takes a session up, or begins one. `None`: a flag was raised.
    pub(super) fn handshake(
        &mut self,
        request: &[u8],
        timeout: Duration,
        wake: &Wake,
        stop: u32,
    ) -> Result<Option<Connected>> {
        self.queue(request);
        let end = Instant::now() + timeout;
        loop {
            self.flush()?;
            if let Some(frame) = self.frame()? {
                return Connected::read(frame).map(Some);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(failure(&self.name, "the server takes connections but does not answer", None));
            }
            if wake.flags() & stop != 0 {
                return Ok(None);
            }
            match self.wait(wake, left)? {
                Woken::Socket => {
                    self.receive()?;
                }
                Woken::Flag => {
                    wake.take(0);
                }
                Woken::Time => {}
            }
        }
    }

    /// Puts a frame behind what is to be sent.
    pub(super) fn queue(&mut self, frame: &[u8]) {
        self.outbox.extend_from_slice(frame);
    }

    /// Sends what there is room for.
    pub(super) fn flush(&mut self) -> Result<()> {
        while self.sent < self.outbox.len() {
            let rest = self.outbox.get(self.sent..).unwrap_or_default();
            match self.socket.write(rest) {
                Ok(0) => return Err(failure(&self.name, "the connection is closed", None)),
                Ok(count) => {
                    self.sent += count;
                    self.sent_at = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failure(&self.name, "the connection is lost", Some(&error))),
            }
        }
        self.outbox.clear();
        self.sent = 0;
        Ok(())
    }

    /// Sleeps until something can be read, what is queued can be sent, a flag is raised, or time is up.
    pub(super) fn wait(&self, wake: &Wake, timeout: Duration) -> Result<Woken> {
        let out = if self.outbox.is_empty() { 0 } else { POLLOUT };
        let mut set = [
            PollFd { fd: self.socket.as_raw_fd(), events: POLLIN | out, revents: 0 },
            PollFd { fd: wake.fd().unwrap_or(-1), events: POLLIN, revents: 0 },
        ];
        poll(&mut set, millis(timeout))
            .map_err(|error| failure(&self.name, "waiting failed", Some(&error)))?;
        Ok(if set[0].revents != 0 {
            Woken::Socket
        } else if set[1].revents != 0 {
            Woken::Flag
        } else {
            Woken::Time
        })
    }

    /// Reads what is there, up to a few frames' worth; true when something was.
    pub(super) fn receive(&mut self) -> Result<bool> {
        if self.taken == self.filled {
            self.taken = 0;
            self.filled = 0;
            if self.inbox.len() > KEPT && self.large_at.elapsed() > ROOMY {
                self.inbox = vec![0; KEPT];
            }
        } else if self.taken > 0 && self.inbox.len() - self.filled < KEPT / 4 {
            self.inbox.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        let mut any = false;
        loop {
            if self.filled == self.inbox.len() {
                if self.taken > 0 || any && self.has_frame() {
                    return Ok(any);
                }
                // One frame that is larger than the room: its length says how much is needed.
                self.large_at = Instant::now();
                let wanted = self.length()?.map_or(0, |length| length + 4).max(self.inbox.len() * 2);
                self.inbox.resize(wanted.min(MAX_FRAME + 4), 0);
            }
            let room = self.inbox.get_mut(self.filled..).unwrap_or_default();
            match self.socket.read(room) {
                Ok(0) => {
                    self.closed = true;
                    return match any {
                        // What has come is read first; the end is seen again.
                        true => Ok(true),
                        false => Err(failure(&self.name, "the server closed the connection", None)),
                    };
                }
                Ok(count) => {
                    self.filled += count;
                    self.heard_at = Instant::now();
                    if self.filled > KEPT {
                        self.large_at = self.heard_at;
                    }
                    any = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(any),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.closed = error.kind() == ErrorKind::ConnectionReset;
                    return Err(failure(&self.name, "the connection is lost", Some(&error)));
                }
            }
        }
    }

    fn length(&self) -> Result<Option<usize>> {
        let Some(head) = self.inbox.get(self.taken..self.filled).and_then(|rest| rest.first_chunk::<4>())
        else {
            return Ok(None);
        };
        match usize::try_from(i32::from_be_bytes(*head)) {
            Ok(length) if length <= MAX_FRAME => Ok(Some(length)),
            _ => {
                Err(failure(&self.name, "the server breaks the protocol: a frame of impossible length", None))
            }
        }
    }

    fn has_frame(&self) -> bool {
        matches!(self.length(), Ok(Some(length)) if self.filled - self.taken >= length + 4)
    }

    /// The next complete frame, without its length.
    pub(super) fn frame(&mut self) -> Result<Option<&[u8]>> {
        let Some(length) = self.length()? else { return Ok(None) };
        if self.filled - self.taken < length + 4 {
            return Ok(None);
        }
        let start = self.taken + 4;
        self.taken = start + length;
        Ok(self.inbox.get(start..start + length))
    }

    /// Says good-bye; what does not fit is not waited for.
    pub(super) fn close(mut self) {
        self.queue(&Request::new(1, super::wire::Operation::Close).finish());
        let _ = self.flush();
    }
}

fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis().saturating_add(u128::from(!time.subsec_nanos().is_multiple_of(1_000_000))))
        .unwrap_or(i32::MAX)
}
