"""What failed, what that means, and who is told."""
from __future__ import annotations

import ctypes
import enum
from typing import Optional

from . import _abi
from ._core import call, take_text
from ._library import lib
from .ip import Compat
from .proxy import ProxyKind


class Failure(enum.IntEnum):
    """Kinds of failure that are reported and asked about."""

    IO = _abi.BYWAY_FAILURE_IO
    REFUSED = _abi.BYWAY_FAILURE_REFUSED
    UNREACHABLE = _abi.BYWAY_FAILURE_UNREACHABLE
    TIMEOUT = _abi.BYWAY_FAILURE_TIMEOUT
    RESET = _abi.BYWAY_FAILURE_RESET
    LOCAL = _abi.BYWAY_FAILURE_LOCAL
    CANCELED = _abi.BYWAY_FAILURE_CANCELED
    INTERRUPTED = _abi.BYWAY_FAILURE_INTERRUPTED
    UNKNOWN_HOST = _abi.BYWAY_FAILURE_UNKNOWN_HOST
    PROTOCOL = _abi.BYWAY_FAILURE_PROTOCOL
    TLS_HANDSHAKE = _abi.BYWAY_FAILURE_TLS_HANDSHAKE
    TLS_CERTIFICATE = _abi.BYWAY_FAILURE_TLS_CERTIFICATE
    TLS_PEER_UNVERIFIED = _abi.BYWAY_FAILURE_TLS_PEER_UNVERIFIED
    TLS = _abi.BYWAY_FAILURE_TLS
    CONNECTION_SHUTDOWN = _abi.BYWAY_FAILURE_CONNECTION_SHUTDOWN
    STREAM_REFUSED = _abi.BYWAY_FAILURE_STREAM_REFUSED
    STREAM_CANCELED = _abi.BYWAY_FAILURE_STREAM_CANCELED
    STREAM_RESET = _abi.BYWAY_FAILURE_STREAM_RESET
    REQUEST_BODY = _abi.BYWAY_FAILURE_REQUEST_BODY
    PROXY_REFUSED = _abi.BYWAY_FAILURE_PROXY_REFUSED
    PROXY_AUTH = _abi.BYWAY_FAILURE_PROXY_AUTH
    PROXY_PROTOCOL = _abi.BYWAY_FAILURE_PROXY_PROTOCOL
    AUTH_WITHOUT_PROXY = _abi.BYWAY_FAILURE_AUTH_WITHOUT_PROXY
    SELF_CONNECT = _abi.BYWAY_FAILURE_SELF_CONNECT
    INVALID_PORT = _abi.BYWAY_FAILURE_INVALID_PORT
    FILTERED = _abi.BYWAY_FAILURE_FILTERED

    @classmethod
    def from_errno(cls, number: int) -> "Failure":
        """The kind of a system's error number (``OSError.errno``) that connecting, reading or writing gave. What means
        nothing special is ``IO``."""
        return cls(lib.byway_failure_from_errno(number))

    @property
    def text(self) -> str:
        """Short text, for example ``refused``."""
        return take_text(lib.byway_failure_text, self)

    @property
    def retry_tls(self) -> bool:
        """True when a TLS handshake that failed so may be tried again on the same route with other parameters."""
        return bool(lib.byway_failure_retry_tls(self))


class Phase(enum.IntEnum):
    """Where in a connection's life something failed."""

    DNS = _abi.BYWAY_PHASE_DNS
    TCP = _abi.BYWAY_PHASE_TCP
    TUNNEL = _abi.BYWAY_PHASE_TUNNEL
    TLS = _abi.BYWAY_PHASE_TLS
    EXCHANGE = _abi.BYWAY_PHASE_EXCHANGE


class Recovery(enum.IntEnum):
    """May a failed call be retried on another route? The first reason against it."""

    RETRY = _abi.BYWAY_RECOVER_RETRY
    DISABLED = _abi.BYWAY_RECOVER_DISABLED
    NOT_REPEATABLE = _abi.BYWAY_RECOVER_NOT_REPEATABLE
    FATAL = _abi.BYWAY_RECOVER_FATAL
    NO_MORE_ROUTES = _abi.BYWAY_RECOVER_NO_MORE_ROUTES


class Tell(enum.IntFlag):
    """Who is told of a failure, and what becomes of the connection."""

    FAILED_EVENT = _abi.BYWAY_TELL_FAILED_EVENT
    CANCELED_EVENT = _abi.BYWAY_TELL_CANCELED_EVENT
    PROXY_SELECTOR = _abi.BYWAY_TELL_PROXY_SELECTOR
    DATABASE = _abi.BYWAY_TELL_DATABASE
    NEXT_ROUTE = _abi.BYWAY_TELL_NEXT_ROUTE
    NO_NEW_EXCHANGES = _abi.BYWAY_TELL_NO_NEW_EXCHANGES
    ROUTE_FAILURE = _abi.BYWAY_TELL_ROUTE_FAILURE


def track(
    failure: Optional[Failure],
    *,
    successes: int = 0,
    refused_before: int = 0,
    multiplexed: bool = False,
    call_canceled: bool = False,
    proxied: bool = False,
) -> Tell:
    """What a failed exchange means for its connection and route; ``failure`` None for one without an error.
    ``successes`` exchanges were completed on the connection before. Tells nobody."""
    exchange = _abi.byway_failed_exchange(
        ctypes.sizeof(_abi.byway_failed_exchange), successes, -1 if failure is None else failure, refused_before,
        (_abi.BYWAY_EXCHANGE_MULTIPLEXED if multiplexed else 0)
        | (_abi.BYWAY_EXCHANGE_CALL_CANCELED if call_canceled else 0)
        | (_abi.BYWAY_EXCHANGE_PROXIED if proxied else 0),
        0,
    )
    out = ctypes.c_uint32()
    call(lib.byway_failure_track, ctypes.addressof(exchange), ctypes.addressof(out))
    return Tell(out.value)


def report(
    failure: Failure,
    phase: Phase,
    *,
    compat: Compat = Compat.BYWAY,
    proxy_kind: ProxyKind = ProxyKind.DIRECT,
    from_selector: bool = False,
    retry_enabled: bool = True,
) -> Tell:
    """Who ``Engine.connect_failed`` would tell. Tells nobody."""
    out = ctypes.c_uint32()
    call(
        lib.byway_failure_report, compat, failure, phase, proxy_kind, int(from_selector), int(retry_enabled),
        ctypes.addressof(out),
    )
    return Tell(out.value)
