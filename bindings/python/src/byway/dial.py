"""From an address to a connected socket: races routes, speaks SOCKS and HTTP CONNECT, reports what it learnt."""
from __future__ import annotations

import ctypes
import enum
import select
import socket
import time
from typing import Any, List, NamedTuple, Optional, Tuple

from . import _abi, errors
from ._core import Handle, call, check, take_text
from ._library import lib
from .net import Address, Route, Selector


class RaceUntil(enum.IntEnum):
    """When an attempt has won."""

    TCP = _abi.BYWAY_RACE_UNTIL_TCP
    READY = _abi.BYWAY_RACE_UNTIL_READY
    HOST = _abi.BYWAY_RACE_UNTIL_HOST


class Connected(NamedTuple):
    """A connected socket, non-blocking, and the route it leads over."""

    socket: socket.socket
    route: Route
    #: Number of the attempt, for ``confirm`` and ``resume``.
    attempt: int
    #: ``BYWAY_CONNECTED_*``.
    flags: int

    @property
    def needs_proxy_tls(self) -> bool:
        """TLS to an HTTPS proxy must be run before anything else, then the tunnel asked for."""
        return bool(self.flags & _abi.BYWAY_CONNECTED_NEEDS_PROXY_TLS)


class Dial(Handle):
    """One connect over all routes of an address. Exclusive: one thread at a time; ``cancel`` from any.

    Either ``run``, or, in an event loop, watch ``fileno`` for reading and ``step`` until it gives a socket.
    Options are the fields of ``byway_dial_options``, times in milliseconds as there.
    """

    __slots__ = ("_selector", "_kept", "_fd")
    _end = "byway_dial_free"

    def __init__(self, address: Address, **options: Any) -> None:
        raw = _abi.byway_dial_options()
        lib.byway_dial_options_init(ctypes.addressof(raw))
        kept: List[bytes] = []
        known = {name for name, *_ in raw._fields_} - {"struct_size", "headers", "header_count"}
        for name, value in options.items():
            if name not in known:
                raise TypeError(f"no dial option {name!r}; there are {', '.join(sorted(known))}")
            if isinstance(value, str):
                kept.append(value.encode())
                value = _abi.byway_str(ctypes.cast(ctypes.c_char_p(kept[-1]), ctypes.c_void_p).value, len(kept[-1]))
            setattr(raw, name, value)
        self._selector = Selector(address)
        self._kept = kept
        out = ctypes.c_void_p()
        call(
            lib.byway_dial_new, address.engine.pointer, self._selector.pointer, ctypes.addressof(raw), None,
            ctypes.addressof(out),
        )
        super().__init__(out.value or 0)
        self._fd: Optional[int] = None

    def fileno(self) -> int:
        """Readable when a step is due or a socket can be taken; the same for the dial's whole life."""
        if self._fd is None:
            out = ctypes.c_int32(-1)
            call(lib.byway_dial_fd, self.pointer, ctypes.addressof(out))
            self._fd = out.value
        return self._fd

    def step(self) -> Optional[Connected]:
        """Does what is due and never waits. None: go on watching ``fileno``."""
        if call(lib.byway_dial_step, self.pointer, None, 0) == _abi.BYWAY_PENDING:
            return None
        out = _abi.byway_connected()
        call(lib.byway_dial_take, self.pointer, ctypes.addressof(out))
        return Connected(socket.socket(fileno=out.fd), Route(out.route), out.attempt, out.flags)

    def run(self, timeout: Optional[float] = None) -> Connected:
        """Waits for the socket, up to ``timeout`` seconds (None: 30). Ctrl-C ends the wait."""
        end = time.monotonic() + (30.0 if timeout is None else timeout)
        while True:
            connected = self.step()
            if connected is not None:
                return connected
            left = end - time.monotonic()
            if left <= 0:
                self.cancel()
                raise errors.TimeoutError(_abi.BYWAY_E_TIMEOUT)
            select.select([self.fileno()], [], [], left)

    def confirm(self, attempt: int) -> None:
        """Under ``RaceUntil.HOST``: this attempt has won."""
        call(lib.byway_dial_confirm, self.pointer, attempt)

    def cancel(self) -> None:
        """Ends it for good. Any thread."""
        check(lib.byway_dial_cancel(self.pointer))

    def explain(self, json: bool = False) -> str:
        """The waterfall: who started when, who won, why the others ended."""
        how = _abi.BYWAY_EXPLAIN_JSON if json else _abi.BYWAY_EXPLAIN_TEXT
        return take_text(lib.byway_dial_explain, self.pointer, how)

    def close(self) -> None:
        """Ends it and closes every socket that was not taken. Idempotent."""
        super().close()
        self._selector.close()


def connect(address: Address, timeout: Optional[float] = None, **options: Any) -> Tuple[socket.socket, Route]:
    """A connected blocking socket to an address, through whatever proxy was chosen for it."""
    with Dial(address, **options) as dial:
        connected = dial.run(timeout)
    connected.socket.setblocking(True)
    return connected.socket, connected.route
