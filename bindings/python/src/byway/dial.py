"""From an address to a connected socket: races routes, speaks SOCKS and HTTP CONNECT, reports what it learnt."""
from __future__ import annotations

import ctypes
import enum
import select
import socket
import time
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi, _callbacks, errors
from ._core import Handle, array_of, call, check, give, string, take_text
from ._library import getters, lib
from .engine import Call, Engine
from .route import Address, Route, exclusive
from .selector import Selection, Selector


#: No limit, or no pause: for the times and ``max_in_flight`` of a dial's options.
NO_LIMIT = _abi.BYWAY_DIAL_NONE


class RaceUntil(enum.IntEnum):
    """When an attempt has won."""

    TCP = _abi.BYWAY_RACE_UNTIL_TCP
    READY = _abi.BYWAY_RACE_UNTIL_READY
    HOST = _abi.BYWAY_RACE_UNTIL_HOST


class Resume(enum.IntEnum):
    """Why the host could not use a socket."""

    TLS = _abi.BYWAY_RESUME_TLS
    CERTIFICATE = _abi.BYWAY_RESUME_CERTIFICATE
    CLOSED = _abi.BYWAY_RESUME_CLOSED


class DialFlag(enum.IntFlag):
    """Bits of the dial option ``flags``."""

    ACROSS_SELECTIONS = _abi.BYWAY_DIAL_ACROSS_SELECTIONS
    NEXT_ON_REFUSAL = _abi.BYWAY_DIAL_NEXT_ON_REFUSAL
    EVENTS = _abi.BYWAY_DIAL_EVENTS
    SOCKS_STRICT = _abi.BYWAY_DIAL_SOCKS_STRICT
    SOCKS_OPTIMISTIC = _abi.BYWAY_DIAL_SOCKS_OPTIMISTIC
    SOCKS_REQUIRE_AUTH = _abi.BYWAY_DIAL_SOCKS_REQUIRE_AUTH
    STRICT_200 = _abi.BYWAY_DIAL_STRICT_200
    REJECT_EARLY_DATA = _abi.BYWAY_DIAL_REJECT_EARLY_DATA
    NO_PREEMPTIVE_AUTH = _abi.BYWAY_DIAL_NO_PREEMPTIVE_AUTH
    ASK_FIRST = _abi.BYWAY_DIAL_ASK_FIRST
    REPEAT_CREDENTIALS = _abi.BYWAY_DIAL_REPEAT_CREDENTIALS
    BLOCKING_SOCKET = _abi.BYWAY_DIAL_BLOCKING_SOCKET
    NO_NODELAY = _abi.BYWAY_DIAL_NO_NODELAY
    MPTCP = _abi.BYWAY_DIAL_MPTCP
    FAST_OPEN = _abi.BYWAY_DIAL_FAST_OPEN
    KEEP_DUPLICATES = _abi.BYWAY_DIAL_KEEP_DUPLICATES


class DialEventKind(enum.IntEnum):
    """What happened to an attempt."""

    START = _abi.BYWAY_DIAL_EVENT_START
    HANDSHAKE = _abi.BYWAY_DIAL_EVENT_HANDSHAKE
    FD_CLOSING = _abi.BYWAY_DIAL_EVENT_FD_CLOSING
    FAILED = _abi.BYWAY_DIAL_EVENT_FAILED
    CANCELED = _abi.BYWAY_DIAL_EVENT_CANCELED
    CREDENTIALS = _abi.BYWAY_DIAL_EVENT_CREDENTIALS
    OFFER = _abi.BYWAY_DIAL_EVENT_OFFER
    WON = _abi.BYWAY_DIAL_EVENT_WON


class DialEvent(NamedTuple):
    """Something that happened, for hosts that keep state per descriptor."""

    kind: DialEventKind
    attempt: int
    #: -1 when it has none.
    fd: int
    status: int
    #: Seconds since the first step.
    at: float


class DialFailure(NamedTuple):
    """One failed attempt."""

    #: 0 when no Selection could be made.
    attempt: int
    #: Fixed name, for example ``REFUSED`` or ``CONNECT_STATUS``.
    name: str
    status: int
    os_errno: int
    #: The number the proxy sent: a SOCKS code, an HTTP status; 0 for none.
    number: int
    #: Seconds since the first step.
    start: float
    end: float
    #: None when no Selection could be made.
    route: Optional[Route]


class PollFd(NamedTuple):
    """One descriptor to watch."""

    #: Number of the attempt, 0 for wake-ups.
    id: int
    fd: int
    #: ``select.POLLIN``, ``select.POLLOUT``.
    events: int
    #: What ``poll`` said.
    revents: int = 0


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
        """TLS to an HTTPS proxy must be run before anything else, then the tunnel asked for: a ``Handshake``."""
        return bool(self.flags & _abi.BYWAY_CONNECTED_NEEDS_PROXY_TLS)

    @property
    def provisional(self) -> bool:
        """The race goes on until ``confirm``."""
        return bool(self.flags & _abi.BYWAY_CONNECTED_PROVISIONAL)


class Hooks:
    """Host code a dial calls on the thread that steps it. Override what is wanted; what is not does as built in."""

    def open_socket(self, family: int, protocol: int, route: Route) -> Optional[socket.socket]:
        """A stream socket to connect with, for example one that a VPN service protects; the library takes it over. None:
        open it as usual. Raising skips the route."""
        return None

    def configure(self, fd: int, route: Route) -> None:
        """Sets further options before ``connect``. Raising skips the route."""

    def close_socket(self, fd: int) -> bool:
        """Closes a socket and returns True; False: close it as usual."""
        return False

    def proxy_auth(self, attempt: int, route: Route, challenges: Sequence[str]) -> Union[str, None, "Later"]:
        """Credentials for the challenges of an HTTP proxy (values of ``Proxy-Authenticate``; none before the first
        request): the whole value of ``Proxy-Authorization``. None: there are none, the attempt ends. ``LATER``:
        ``Dial.authenticate`` will be called, from any thread."""
        return None


class Later(enum.Enum):
    """Says that credentials come later."""

    LATER = "later"


LATER = Later.LATER


def options_of(options: Mapping[str, Any]) -> Tuple[Any, List[Any]]:
    """``byway_dial_options`` from keywords: its fields by name, times in milliseconds as there, and ``headers`` as a
    mapping. With it what must stay alive until the library has copied the texts."""
    raw = _abi.byway_dial_options()
    lib.byway_dial_options_init(ctypes.addressof(raw))
    kept: List[Any] = []
    known = {name for name, *_ in raw._fields_} - {"struct_size", "header_count"}

    def text(value: str) -> Any:
        kept.append(value.encode())
        return string(kept[-1])

    for name, value in options.items():
        if name not in known:
            raise TypeError(f"no dial option {name!r}; there are {', '.join(sorted(known))}")
        if name == "headers":
            headers = [_abi.byway_header(text(key), text(content)) for key, content in dict(value).items()]
            array = array_of(_abi.byway_header, headers)
            kept.append(array)
            raw.headers, raw.header_count = ctypes.addressof(array), len(headers)
        else:
            setattr(raw, name, text(value) if isinstance(value, str) else value)
    return raw, kept


class Dial(Handle):
    """One connect: over all routes of an address, or ``over`` a Selection or routes the host has kept. Exclusive: one
    thread at a time; ``cancel`` and ``authenticate`` from any.

    Either ``run``, or, in an event loop, watch ``fileno`` for reading and ``step`` until it gives a socket.
    Options are the fields of ``byway_dial_options``, times in milliseconds as there, and ``headers`` as a mapping.
    ``early`` starts with the family a resolver has answered first while the other one is awaited.
    """

    __slots__ = ("_selector", "_fd")
    _end = "byway_dial_free"
    _selector: Optional[Selector]
    _fd: Optional[int]

    def __init__(
        self, address: Address, *, hooks: Optional[Hooks] = None, early: bool = False, **options: Any
    ) -> None:
        self._selector = Selector(address, early=early)
        self._begin(lib.byway_dial_new, (address.engine.pointer, self._selector.pointer), hooks, options)

    @classmethod
    def over(
        cls,
        engine: Engine,
        routes: Union[Selection, Sequence[Route]],
        *,
        hooks: Optional[Hooks] = None,
        **options: Any,
    ) -> "Dial":
        """Over the routes of one Selection that are still before its cursor, or over routes the host has kept."""
        dial = cls.__new__(cls)
        dial._selector = None
        if isinstance(routes, Selection):
            with exclusive:
                dial._begin(getters.byway_dial_new_selection, (engine.pointer, routes.pointer), hooks, options)
        else:
            array = array_of(ctypes.c_void_p, [route.pointer for route in routes])
            dial._begin(
                lib.byway_dial_new_routes, (engine.pointer, ctypes.addressof(array), len(routes)), hooks, options
            )
        return dial

    def _begin(self, function: Any, over: Tuple[Any, ...], hooks: Optional[Hooks], options: Mapping[str, Any]) -> None:
        raw, kept = options_of(options)
        callbacks = None
        if hooks is not None:
            callbacks = _abi.byway_dial_callbacks(
                ctypes.sizeof(_abi.byway_dial_callbacks), _callbacks.register(hooks), _callbacks.destroy, _OPEN,
                _CONFIGURE, _CLOSE, _AUTH,
            )
        self.pointer = give(
            function, *over, ctypes.addressof(raw), None if callbacks is None else ctypes.addressof(callbacks)
        )
        del kept
        self._fd = None

    def fileno(self) -> int:
        """Readable when a step is due or a socket can be taken; the same for the dial's whole life."""
        if self._fd is None:
            out = ctypes.c_int32(-1)
            call(lib.byway_dial_fd, self.pointer, ctypes.addressof(out))
            self._fd = out.value
        return self._fd

    def step(self, ready: Sequence[PollFd] = (), *, now: Optional[float] = None) -> Optional[Connected]:
        """Does what is due and never waits. None: go on watching ``fileno``.

        ``ready`` is what ``poll`` said about ``pollset``; without it the dial looks for itself. ``now`` puts the dial on a
        clock of the host's own, in seconds since the first step, for tests and simulations.
        """
        array = array_of(_abi.byway_pollfd, [_abi.byway_pollfd(*entry) for entry in ready]) if ready else None
        at = None if array is None else ctypes.addressof(array)
        if now is None:
            status = call(lib.byway_dial_step, self.pointer, at, len(ready))
        else:
            status = call(lib.byway_dial_step_at, self.pointer, int(now * 1000), at, len(ready))
        return None if status == _abi.BYWAY_PENDING else self._take()

    def _take(self) -> Connected:
        out = _abi.byway_connected()
        call(lib.byway_dial_take, self.pointer, ctypes.addressof(out))
        return Connected(socket.socket(fileno=out.fd), Route._adopt(out.route), out.attempt, out.flags)

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

    def pollset(self) -> List[PollFd]:
        """Every descriptor to watch now, for loops that want them one by one instead of ``fileno``."""
        total, room = ctypes.c_size_t(), 16
        while True:
            entries = (_abi.byway_pollfd * room)()
            call(
                lib.byway_dial_pollset, self.pointer, ctypes.addressof(entries), ctypes.sizeof(_abi.byway_pollfd), room,
                ctypes.addressof(total), None,
            )
            if total.value <= room:
                return [PollFd(e.id, e.fd, e.events, e.revents) for e in entries[: total.value]]
            room = total.value

    def deadline(self) -> Optional[float]:
        """Seconds until a step is due; None: not before a descriptor says so."""
        out = ctypes.c_int64(-1)
        check(lib.byway_dial_deadline_ms(self.pointer, ctypes.addressof(out)))
        return None if out.value < 0 else out.value / 1000

    def next_event(self) -> Optional[DialEvent]:
        """The oldest event not fetched yet, None when there is none; kept with ``flags=DialFlag.EVENTS``."""
        out = _abi.byway_dial_event()
        if check(lib.byway_dial_next_event(self.pointer, ctypes.addressof(out))) == _abi.BYWAY_DONE:
            return None
        return DialEvent(DialEventKind(out.kind), out.attempt, out.fd, out.status, out.at_ms / 1000)

    def failures(self) -> List[DialFailure]:
        """The failed attempts so far, in the order in which they failed."""
        total, room = ctypes.c_size_t(), 16
        while True:
            records = (_abi.byway_dial_failure * room)()
            check(
                lib.byway_dial_failures(
                    self.pointer, ctypes.addressof(records), ctypes.sizeof(_abi.byway_dial_failure), room,
                    ctypes.addressof(total),
                )
            )
            if total.value <= room:
                break
            room = total.value
        out, route = [], ctypes.c_void_p()
        for index, r in enumerate(records[: total.value]):
            found = check(lib.byway_dial_failure_route(self.pointer, index, ctypes.addressof(route))) == _abi.BYWAY_OK
            out.append(
                DialFailure(
                    r.attempt, ctypes.string_at(r.name.data, r.name.len).decode(), r.status, r.os_errno, r.number,
                    r.start_ms / 1000, r.end_ms / 1000, Route._adopt(route.value) if found else None,
                )
            )
        return out

    def confirm(self, attempt: int) -> None:
        """Content with this attempt's socket, usually after TLS: ends a race that waits for it (``RaceUntil.HOST``)."""
        call(lib.byway_dial_confirm, self.pointer, attempt)

    def resume(self, attempt: int, reason: Resume, follow_up: Optional[Route] = None) -> None:
        """This attempt's socket could not be used: go on, first with ``follow_up``, then with the routes that lost, then
        with those never tried. A socket that was taken stays the host's."""
        call(
            lib.byway_dial_resume, self.pointer, attempt, reason, None if follow_up is None else follow_up.pointer
        )

    def authenticate(self, attempt: int, value: Optional[str]) -> None:
        """Credentials that ``Hooks.proxy_auth`` promised; None: there are none. Any thread."""
        raw = None if value is None else value.encode("latin-1")
        check(lib.byway_dial_authenticate(self.pointer, attempt, raw, 0 if raw is None else len(raw)))

    def cancel(self) -> None:
        """Ends it for good. Any thread."""
        check(lib.byway_dial_cancel(self.pointer))

    def explain(self, json: bool = False) -> str:
        """The waterfall: who started when, who won, why the others ended."""
        how = _abi.BYWAY_FORMAT_JSON if json else _abi.BYWAY_FORMAT_TEXT
        return take_text(lib.byway_dial_explain, self.pointer, how)

    def close(self) -> None:
        """Ends it and closes every socket that was not taken. Idempotent."""
        super().close()
        if self._selector is not None:
            self._selector.close()


def _open(hooks: Hooks, family: int, protocol: int, route: int, fd: int, _call: int) -> int:
    opened = hooks.open_socket(family, protocol, Route._retained(route))
    if opened is None:
        return _abi.BYWAY_PASS
    ctypes.c_int32.from_address(fd).value = opened.detach()
    return _abi.BYWAY_OK


def _configure(hooks: Hooks, fd: int, route: int, _call: int) -> int:
    hooks.configure(fd, Route._retained(route))
    return _abi.BYWAY_OK


def _close(hooks: Hooks, fd: int, _call: int) -> int:
    return _abi.BYWAY_OK if hooks.close_socket(fd) else _abi.BYWAY_PASS


def _auth(hooks: Hooks, dial: int, attempt: int, route: int, challenges: int, count: int, _call: int) -> int:
    asked = (_abi.byway_str * count).from_address(challenges) if count else ()
    answer = hooks.proxy_auth(attempt, Route._retained(route), [_callbacks.text(one.data, one.len) for one in asked])
    if answer is LATER:
        return _abi.BYWAY_PENDING
    if answer is None:
        return _abi.BYWAY_PASS
    raw = str(answer).encode("latin-1")
    return int(lib.byway_dial_authenticate(dial, attempt, raw, len(raw)))


_OPEN = _callbacks.guarded(_abi.byway_dial_callbacks_open_socket, _open)
_CONFIGURE = _callbacks.guarded(_abi.byway_dial_callbacks_configure, _configure)
_CLOSE = _callbacks.guarded(_abi.byway_dial_callbacks_close_socket, _close)
_AUTH = _callbacks.guarded(_abi.byway_dial_callbacks_proxy_auth, _auth)
