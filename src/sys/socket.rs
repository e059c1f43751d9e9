//! Socket calls that socket2 and std do not have, or not without a signal: peek, send without SIGPIPE, options.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

fn size(n: isize) -> io::Result<usize> {
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Reads at most `buffer.len()` bytes without waiting; with `peek` they stay in the socket. 0 is the end.
///
/// # Errors
/// What the kernel says, `WouldBlock` when nothing is there.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], peek: bool) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | if peek { libc::MSG_PEEK } else { 0 };
    // SAFETY: an open descriptor and a writable buffer of the length given.
    size(unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) })
}

/// Writes without waiting and without SIGPIPE, which would end a C host that never asked for a handler.
///
/// # Errors
/// What the kernel says, `WouldBlock` when there is no room.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: an open descriptor and a readable buffer of the length given.
    size(unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

fn set_int(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: an open descriptor and an int on this stack.
    let done =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets `bind` fix the source address alone; the port is chosen at `connect`, when the whole tuple is known.
///
/// # Errors
/// What the kernel says.
pub fn bind_address_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// TCP Fast Open on the next `connect`.
///
/// # Errors
/// What the kernel says.
pub fn fast_open_connect(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1)
}

/// Takes over a descriptor somebody else has opened for us. `None` for a number that is not an open one: closing such a
/// number would end the process or hit whoever opens it next.
pub fn adopt(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: asks about a number, whatever it is.
    let is_open = fd >= 0 && unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
    // SAFETY: open, and the caller hands it over; nobody else closes it.
    is_open.then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One entry of a poll set: what the host's own `poll` takes.
pub use libc::pollfd as PollFd;

/// Waits for events, at most `timeout_ms` (negative: without limit). A signal ends the wait with 0.
///
/// # Errors
/// What the kernel says.
pub fn poll(set: &mut [PollFd], timeout_ms: i32) -> io::Result<usize> {
    let length = libc::nfds_t::try_from(set.len()).unwrap_or(libc::nfds_t::MAX);
    // SAFETY: a slice of pollfd of the length given.
    match size(unsafe { libc::poll(set.as_mut_ptr(), length, timeout_ms) } as isize) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        other => other,
    }
}
