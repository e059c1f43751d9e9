"""SOCKS and CONNECT dialogues without a socket: for TLS to the proxy, other loops, tests."""
from __future__ import annotations

import ctypes
import enum
import socket
from typing import Any, List, Optional, Tuple

from . import _abi
from ._core import Handle, call, check, give
from ._library import lib
from .dial import options_of
from .route import Route


class Want(enum.IntEnum):
    """What a dialogue needs now."""

    WRITE = _abi.BYWAY_HANDSHAKE_WRITE
    READ = _abi.BYWAY_HANDSHAKE_READ
    PEEK = _abi.BYWAY_HANDSHAKE_PEEK
    CREDENTIALS = _abi.BYWAY_HANDSHAKE_CREDENTIALS
    RECONNECT = _abi.BYWAY_HANDSHAKE_RECONNECT
    DONE = _abi.BYWAY_HANDSHAKE_DONE
    FAILED = _abi.BYWAY_HANDSHAKE_FAILED


class Handshake(Handle):
    """Bytes in, bytes out, until the tunnel stands. Exclusive. ``Handshake(route)``, or ``Handshake.to`` for a host that
    keeps proxies of its own. Of the dial options those count that concern CONNECT and SOCKS."""

    __slots__ = ()
    _end = "byway_handshake_free"

    def __init__(self, route: Route, **options: Any) -> None:
        raw, _kept = options_of(options)
        super().__init__(give(lib.byway_handshake_new, route.pointer, ctypes.addressof(raw)))

    @classmethod
    def to(
        cls,
        kind: int,
        host: str,
        port: int,
        *,
        username: Optional[str] = None,
        password: Optional[str] = None,
        **options: Any,
    ) -> "Handshake":
        """Asks a proxy of this kind for a tunnel to a name or address."""
        raw, _kept = options_of(options)
        name = host.encode()
        user, secret = (None if text is None else text.encode() for text in (username, password))
        return cls._adopt(
            give(
                lib.byway_handshake_new_target, kind, name, len(name), port, user, len(user or b""), secret,
                len(secret or b""), ctypes.addressof(raw),
            )
        )

    @property
    def want(self) -> Want:
        """What is needed now."""
        return self.wanted()[0]

    def wanted(self) -> Tuple[Want, int]:
        """What is needed now, and for READ how many bytes may be read."""
        limit = ctypes.c_size_t()
        want = lib.byway_handshake_want(self.pointer, ctypes.addressof(limit))
        return Want(want), limit.value

    def output(self) -> bytes:
        """The bytes to write now; they may contain credentials: to the proxy only."""
        out = _abi.byway_str()
        check(lib.byway_handshake_output(self.pointer, ctypes.addressof(out)))
        return ctypes.string_at(out.data, out.len) if out.len else b""

    def sent(self, count: int) -> None:
        """So many bytes of ``output`` were written."""
        check(lib.byway_handshake_sent(self.pointer, count))

    def feed(self, data: bytes) -> int:
        """Takes bytes that arrived; returns how many belong to the dialogue. The rest is tunnel data."""
        consumed = ctypes.c_size_t()
        call(lib.byway_handshake_feed, self.pointer, data, len(data), ctypes.addressof(consumed))
        return consumed.value

    def eof(self) -> None:
        """The proxy closed."""
        call(lib.byway_handshake_eof, self.pointer)

    def challenges(self) -> List[str]:
        """Values of ``Proxy-Authenticate``, for CREDENTIALS."""
        found: List[str] = []
        out = _abi.byway_str()
        while check(lib.byway_handshake_challenge_at(self.pointer, len(found), ctypes.addressof(out))) == _abi.BYWAY_OK:
            found.append(ctypes.string_at(out.data, out.len).decode("latin-1") if out.len else "")
        return found

    def answer(self, value: Optional[str]) -> None:
        """The whole value of ``Proxy-Authorization``; None: there is none."""
        raw = None if value is None else value.encode("latin-1")
        call(lib.byway_handshake_answer, self.pointer, raw, 0 if raw is None else len(raw))

    def reconnected(self) -> None:
        """A new connection to the same hop stands, and TLS on it."""
        call(lib.byway_handshake_reconnected, self.pointer)

    def run(self, sock: socket.socket) -> Want:
        """Drives the dialogue over a blocking socket, with or without TLS to the proxy, as far as it goes without the
        host: until the tunnel stands (DONE), credentials are asked for, or another connection is needed. Takes nothing
        from the socket that belongs to the tunnel."""
        while True:
            want, limit = self.wanted()
            if want == Want.WRITE:
                data = self.output()
                sock.sendall(data)
                self.sent(len(data))
            elif want in (Want.READ, Want.PEEK):
                # TLS cannot peek, so an answer whose end is not known is read byte by byte.
                data = sock.recv(limit if want == Want.READ else 1)
                if data:
                    self.feed(data)
                else:
                    self.eof()
            else:
                return want
