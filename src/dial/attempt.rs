//! One socket: open, options, connect, verify, proxy dialogue. Knows what an error number means where it came up.

use super::fault::Fault;
use super::handshake::{Handshake, Want};
use super::options::SocketOptions;
use super::source::Hooks;
use crate::sys::socket::{adopt, bind_address_without_port, fast_open_connect, receive, send};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

/// A fault with the system's number.
pub(super) type Failure = (Fault, i32);

/// A socket on its way.
#[derive(Debug)]
pub(super) struct Link {
    socket: OwnedFd,
    hop: SocketAddr,
    fast_open: bool,
    /// How often this route has reached itself.
    self_connects: u8,
}

/// How far a connect has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Wait for it to become writable.
    Pending,
    /// It stands.
    Connected,
    /// The network has refused it already.
    Failed(Fault, i32),
}

/// What a proxy dialogue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    Readable,
    Writable,
    Credentials,
    Reconnect,
    Done,
}

fn into_progress((fault, errno): Failure) -> Progress {
    Progress::Failed(fault, errno)
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

impl Link {
    /// Opens a socket and starts its connect. The error says that nothing was sent.
    pub(super) fn start<R>(
        hop: SocketAddr,
        options: &SocketOptions,
        fast_open: bool,
        route: &R,
        hooks: &mut dyn Hooks<R>,
    ) -> Result<(Link, Progress), Failure> {
        if hop.port() == 0 {
            // A route without a destination: upstream's unresolved one.
            return Err((Fault::BadAddress, 0));
        }
        let socket = open(hop, options, route, hooks)?;
        let mut link = Link { socket, hop, fast_open, self_connects: 0 };
        match link.prepare(options, route, hooks).and_then(|()| link.connect()) {
            Ok(progress) => Ok((link, progress)),
            Err(failure) => {
                link.close(hooks);
                Err(failure)
            }
        }
    }

    fn prepare<R>(
        &mut self,
        options: &SocketOptions,
        route: &R,
        hooks: &mut dyn Hooks<R>,
    ) -> Result<(), Failure> {
        let sock = SockRef::from(&self.socket);
        let option = |error: io::Error| match errno(&error) {
            libc::ENODEV => (Fault::NoDevice, libc::ENODEV),
            number @ (libc::EPERM | libc::EACCES) => (Fault::AccessDenied, number),
            number => (Fault::OptionFailed, number),
        };
        if options.nodelay {
            sock.set_tcp_nodelay(true).map_err(option)?;
        }
        if options.keepalive_s > 0 {
            let pause = Duration::from_secs(options.keepalive_s.into());
            let keepalive = TcpKeepalive::new().with_time(pause).with_interval(pause);
            sock.set_tcp_keepalive(&keepalive).map_err(option)?;
        }
        if options.user_timeout_ms > 0 {
            let limit = Duration::from_millis(options.user_timeout_ms.into());
            sock.set_tcp_user_timeout(Some(limit)).map_err(option)?;
        }
        if let Some(device) = &options.device {
            sock.bind_device(Some(device.as_bytes())).map_err(option)?;
        }
        if options.mark != 0 {
            sock.set_mark(options.mark).map_err(option)?;
        }
        let source: Option<SocketAddr> = match self.hop {
            SocketAddr::V4(_) => options.source_v4.map(|ip| SocketAddr::new(ip.into(), 0)),
            SocketAddr::V6(_) => options.source_v6.map(|ip| SocketAddr::new(ip.into(), 0)),
        };
        if let Some(source) = source {
            // Without it one local port would be used up per attempt; old kernels do without.
            let _ = bind_address_without_port(self.socket.as_fd());
            sock.bind(&source.into()).map_err(|error| (Fault::BindFailed, errno(&error)))?;
        }
        hooks.configure(self.fd(), route).map_err(|number| (Fault::HookRejected, number))?;
        if self.fast_open {
            // Not having it costs a round trip and nothing else.
            self.fast_open = fast_open_connect(self.socket.as_fd()).is_ok();
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<Progress, Failure> {
        match SockRef::from(&self.socket).connect(&self.hop.into()) {
            Ok(()) if self.fast_open => Ok(Progress::Connected),
            Ok(()) => Ok(self.verify().unwrap_or_else(into_progress)),
            Err(error) => match errno(&error) {
                // Interrupted: the kernel goes on connecting.
                libc::EINPROGRESS | libc::EINTR if self.hop.ip().is_loopback() => {
                    // On loopback the answer is there by now; asking costs less than waiting.
                    match self.verify_peer() {
                        Ok(Progress::Pending) => Ok(self.verify().unwrap_or_else(into_progress)),
                        other => Ok(other.unwrap_or_else(into_progress)),
                    }
                }
                libc::EINPROGRESS | libc::EINTR => Ok(Progress::Pending),
                number => Err((Fault::of_connect(number), number)),
            },
        }
    }

    /// After the socket became writable: did it connect, and to somebody else?
    pub(super) fn verify(&mut self) -> Result<Progress, Failure> {
        match SockRef::from(&self.socket).take_error() {
            Ok(None) => self.verify_peer(),
            Ok(Some(error)) | Err(error) => match errno(&error) {
                libc::EINPROGRESS | libc::EALREADY => Ok(Progress::Pending),
                libc::EISCONN => self.verify_peer(),
                number => Err((Fault::of_network(number), number)),
            },
        }
    }

    fn verify_peer(&mut self) -> Result<Progress, Failure> {
        let sock = SockRef::from(&self.socket);
        let peer = match sock.peer_addr() {
            Ok(peer) => peer,
            Err(_) if self.fast_open => return Ok(Progress::Connected),
            // A wake-up without a connection.
            Err(error) if errno(&error) == libc::ENOTCONN => return Ok(Progress::Pending),
            Err(error) => return Err((Fault::of_network(errno(&error)), errno(&error))),
        };
        // Only an address of this machine can be both ends.
        match sock.local_addr() {
            Ok(local) if local == peer => Err((Fault::SelfConnect, 0)),
            _ => Ok(Progress::Connected),
        }
    }

    /// Closes and connects to the same hop again: after a self-connect, or because a proxy closed.
    pub(super) fn restart<R>(
        self,
        options: &SocketOptions,
        route: &R,
        hooks: &mut dyn Hooks<R>,
    ) -> Result<(Link, Progress), Failure> {
        let (hop, again) = (self.hop, self.self_connects);
        self.close(hooks);
        let (mut link, progress) = Link::start(hop, options, false, route, hooks)?;
        link.self_connects = again;
        Ok((link, progress))
    }

    /// True while another try may help after the socket reached itself: the next local port is another one.
    pub(super) fn may_repeat_self_connect(&mut self) -> bool {
        self.self_connects += 1;
        self.self_connects <= 2
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn close<R>(self, hooks: &mut dyn Hooks<R>) {
        if hooks.close_socket(self.fd()) {
            let _ = std::os::fd::IntoRawFd::into_raw_fd(self.socket);
        }
    }

    /// Gives the socket away in the mode asked for.
    pub(super) fn hand_over(self, nonblocking: bool) -> Result<OwnedFd, Failure> {
        if !nonblocking {
            let mode = SockRef::from(&self.socket).set_nonblocking(false);
            mode.map_err(|error| (Fault::OptionFailed, errno(&error)))?;
        }
        Ok(self.socket)
    }

    /// Moves the proxy dialogue on until it has to wait.
    pub(super) fn talk(&self, dialogue: &mut Handshake) -> Result<Pause, Failure> {
        let broken = |error: &io::Error| (Fault::of_network(errno(error)), errno(error));
        let mut buffer = [0_u8; 4096];
        loop {
            match dialogue.want() {
                Want::Write(bytes) => match send(self.as_fd(), bytes) {
                    Ok(sent) => dialogue.sent(sent),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Pause::Writable),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => self.lost(dialogue, broken(&error))?,
                },
                want @ (Want::Read(_) | Want::Peek) => {
                    let peek = want == Want::Peek;
                    let length = if let Want::Read(n) = want { n.min(buffer.len()) } else { buffer.len() };
                    let room = buffer.get_mut(..length).unwrap_or_default();
                    match receive(self.as_fd(), room, peek) {
                        Ok(0) => dialogue.eof().map_err(|fault| (fault, 0))?,
                        Ok(n) => {
                            let bytes = buffer.get(..n).unwrap_or_default();
                            let used = dialogue.feed(bytes).map_err(|fault| (fault, 0))?;
                            if peek {
                                self.take(used).map_err(|error| broken(&error))?;
                            }
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            return Ok(Pause::Readable);
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => self.lost(dialogue, broken(&error))?,
                    }
                }
                Want::Credentials(_) => return Ok(Pause::Credentials),
                Want::Reconnect => return Ok(Pause::Reconnect),
                Want::Done => return Ok(Pause::Done),
                Want::Failed(fault) => return Err((fault, 0)),
            }
        }
    }

    /// Takes exactly what was peeked and belongs to the dialogue.
    fn take(&self, mut count: usize) -> io::Result<()> {
        let mut buffer = [0_u8; 4096];
        while count > 0 {
            let room = buffer.get_mut(..count.min(4096)).unwrap_or_default();
            match receive(self.as_fd(), room, false) {
                Ok(0) => return Ok(()),
                Ok(n) => count -= n.min(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The connection broke. On a kept connection the dialogue may ask for a new one; else the number decides.
    fn lost(&self, dialogue: &mut Handshake, failure: Failure) -> Result<(), Failure> {
        let _ = dialogue.eof();
        if dialogue.want() == Want::Reconnect { Ok(()) } else { Err(failure) }
    }
}

/// A non-blocking stream socket, close-on-exec; the host's own if it has a hook.
fn open<R>(
    hop: SocketAddr,
    options: &SocketOptions,
    route: &R,
    hooks: &mut dyn Hooks<R>,
) -> Result<OwnedFd, Failure> {
    let domain = Domain::for_address(hop);
    let tcp = Protocol::TCP;
    match hooks.open_socket(domain.into(), tcp.into(), route) {
        Err(number) => return Err((Fault::HookRejected, number)),
        Ok(Some(fd)) => {
            let socket = adopt(fd).ok_or((Fault::HookRejected, libc::EBADF))?;
            let mode = SockRef::from(&socket).set_nonblocking(true);
            mode.map_err(|error| (Fault::HookRejected, errno(&error)))?;
            return Ok(socket);
        }
        Ok(None) => {}
    }
    // A user timeout does not exist on such sockets, and one that was asked for must not be lost.
    if options.mptcp
        && options.user_timeout_ms == 0
        && let Ok(socket) = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::MPTCP))
    {
        return Ok(socket.into());
    }
    match Socket::new(domain, Type::STREAM.nonblocking(), Some(tcp)) {
        Ok(socket) => Ok(socket.into()),
        Err(error) => Err((Fault::of_connect(errno(&error)), errno(&error))),
    }
}
