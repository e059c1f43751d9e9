"""The one thing a host holds."""
from __future__ import annotations

import ctypes
import enum
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from . import _abi, _callbacks, errors
from ._core import Handle, call, check, finish_at_exit, made, milliseconds, take_text
from ._library import lib
from .queue import Queue

if TYPE_CHECKING:
    from .net import Event, Filter, ProxySelector, Route


class Compat(enum.IntEnum):
    """Which behaviour the first half shows."""

    BYWAY = _abi.BYWAY_COMPAT_BYWAY
    OKHTTP_5 = _abi.BYWAY_COMPAT_OKHTTP_5
    OKHTTP_3 = _abi.BYWAY_COMPAT_OKHTTP_3


class Dialect(enum.IntEnum):
    """Whose reading of rules decides."""

    BYWAY = _abi.BYWAY_DIALECT_BYWAY
    DUBBO_3 = _abi.BYWAY_DIALECT_DUBBO_3
    DUBBO_2_7 = _abi.BYWAY_DIALECT_DUBBO_2_7
    DUBBO_GO = _abi.BYWAY_DIALECT_DUBBO_GO


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


class Phase(enum.IntEnum):
    """Where in a connection's life something failed."""

    DNS = _abi.BYWAY_PHASE_DNS
    TCP = _abi.BYWAY_PHASE_TCP
    TUNNEL = _abi.BYWAY_PHASE_TUNNEL
    TLS = _abi.BYWAY_PHASE_TLS
    EXCHANGE = _abi.BYWAY_PHASE_EXCHANGE


class Engine(Handle):
    """Holds what must be remembered between calls: failed routes, rules, counters, callbacks. Made once per client,
    usable from every thread. ``close`` shuts it down.

    Options are those of ``byway_engine_options``, times in seconds: ``default_timeout``, ``postpone_for``,
    ``postpone_at_most``, ``dns_cache``.
    """

    __slots__ = ("_kept",)
    _end = "byway_engine_release"

    def __init__(
        self,
        *,
        queue: Optional[Queue] = None,
        seed: int = 0,
        compat: Compat = Compat.BYWAY,
        dialect: Dialect = Dialect.BYWAY,
        default_timeout: Optional[float] = None,
        postpone_for: Optional[float] = None,
        postpone_at_most: Optional[float] = None,
        database_capacity: int = 0,
        commit_on_success: bool = False,
        fast_fallback: bool = True,
        routing_flags: int = 0,
        direct_on_proxy_selector_error: bool = False,
        dns_cache: float = 0,
        target_filter: Optional["Filter"] = None,
        proxy_filter: Optional["Filter"] = None,
    ) -> None:
        options = _abi.byway_engine_options()
        lib.byway_engine_options_init(ctypes.addressof(options))
        options.queue = queue.pointer if queue is not None else None
        options.seed = seed
        options.compat = compat
        options.dialect = dialect
        if default_timeout is not None:
            options.default_timeout_ms = milliseconds(default_timeout)
        if postpone_for is not None:
            options.postpone_for_ms = milliseconds(postpone_for)
        if postpone_at_most is not None:
            options.postpone_at_most_ms = milliseconds(postpone_at_most)
        options.database_capacity = database_capacity
        options.commit_failures = _abi.BYWAY_COMMIT_ON_SUCCESS if commit_on_success else _abi.BYWAY_COMMIT_ALWAYS
        options.routing_flags = routing_flags | (0 if fast_fallback else _abi.BYWAY_ROUTING_NO_FAST_FALLBACK)
        options.on_proxy_selector_error = (
            _abi.BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT
            if direct_on_proxy_selector_error
            else _abi.BYWAY_ON_PROXY_SELECTOR_ERROR_FAIL
        )
        options.dns_cache_ms = milliseconds(dns_cache)
        options.target_filter = target_filter.pointer if target_filter is not None else None
        options.proxy_filter = proxy_filter.pointer if proxy_filter is not None else None
        out = ctypes.c_void_p()
        call(lib.byway_engine_new, ctypes.addressof(options), ctypes.addressof(out))
        super().__init__(out.value or 0)
        self._kept: List["Listener"] = []
        finish_at_exit(self)

    def shutdown(self, timeout: Optional[float] = None) -> bool:
        """Cancels everything, waits for running callbacks, drops every callback object. True when done; False when a
        callback is still running: call again. After True no callback ever runs."""
        return call(lib.byway_engine_shutdown, self.pointer, milliseconds(timeout)) == _abi.BYWAY_OK

    def finish(self) -> None:
        """What interpreter exit does: shut down and wait a little for callbacks on other threads."""
        try:
            self.shutdown(5)
        except errors.BywayError:
            # Inside its own callback, or in a forked child: nothing of it runs here any more.
            pass

    def close(self) -> None:
        """Shuts the engine down and gives the reference back. Idempotent."""
        if not self.closed:
            self.finish()
        super().close()

    @property
    def queue(self) -> Queue:
        """The engine's queue."""
        return Queue(lib.byway_engine_queue(self.pointer))

    # --- where to connect next ---

    def connected(self, route: "Route") -> None:
        """Reports that a route works: it is no longer postponed."""
        check(lib.byway_engine_connected(self.pointer, route.pointer))

    def connect_failed(
        self, route: "Route", failure: Failure = Failure.IO, *, phase: Phase = Phase.TCP, os_errno: int = 0
    ) -> None:
        """Reports that a route failed; the proxy selector that chose it is told too."""
        call(lib.byway_engine_connect_failed, self.pointer, route.pointer, failure, phase, os_errno)

    def should_postpone(self, route: "Route") -> bool:
        """True when the route failed and its time has not passed."""
        out = ctypes.c_int32()
        check(lib.byway_engine_should_postpone(self.pointer, route.pointer, ctypes.addressof(out)))
        return bool(out.value)

    def network_changed(self) -> int:
        """Forgets failures and cached names; returns the new generation."""
        out = ctypes.c_uint64()
        check(lib.byway_engine_network_changed(self.pointer, ctypes.addressof(out)))
        return out.value

    def set_proxy_selector(self, selector: Optional["ProxySelector"]) -> None:
        """Who is asked where an address names nobody and a callback passes. None: nobody, DIRECT."""
        call(lib.byway_engine_set_proxy_selector, self.pointer, selector.pointer if selector is not None else None)

    def export_database(self) -> str:
        """What failed, as JSON."""
        return take_text(lib.byway_engine_database_export, self.pointer)

    def import_database(self, json: str) -> int:
        """Takes back what ``export_database`` gave; returns how many records were taken."""
        raw, count = json.encode(), ctypes.c_size_t()
        call(lib.byway_engine_database_import, self.pointer, raw, len(raw), ctypes.addressof(count))
        return count.value

    def stats(self) -> Dict[str, int]:
        """Counters of the engine."""
        out = _abi.byway_engine_statistics()
        out.struct_size = ctypes.sizeof(out)
        check(lib.byway_engine_stats(self.pointer, ctypes.addressof(out)))
        return {name: getattr(out, name) for name, *_ in out._fields_ if name != "struct_size"}

    def add_listener(self, on_event: Callable[["Event"], None], kinds: Optional[List[int]] = None) -> "Listener":
        """Has ``on_event`` called for the given kinds of event (all when None). Nothing is built for other kinds."""
        mask = 2**64 - 1 if kinds is None else sum(1 << kind for kind in set(kinds))
        callbacks = _abi.byway_listener_callbacks(
            ctypes.sizeof(_abi.byway_listener_callbacks), _callbacks.register(on_event), _callbacks.destroy, mask,
            _on_event(),
        )
        listener = made(Listener, lib.byway_engine_add_listener, self.pointer, ctypes.addressof(callbacks))
        # It listens until it is closed, whether or not the caller keeps it.
        self._kept.append(listener)
        return listener

    # --- which provider serves a call ---

    def set_rule(self, key: str, text: str) -> None:
        """Adds or changes the rule with this key, also before a chain wants it. A rule that does not parse leaves the
        last good one in force and raises with line and column."""
        raw_key, raw = key.encode(), text.encode()
        call(lib.byway_engine_set_rule, self.pointer, raw_key, len(raw_key), raw, len(raw))

    def remove_rule(self, key: str) -> None:
        """Removes the rule with this key."""
        raw = key.encode()
        call(lib.byway_engine_remove_rule, self.pointer, raw, len(raw))


class Listener(Handle):
    """An event listener; ``close`` ends it."""

    __slots__ = ()
    _end = "byway_listener_release"

    def close(self) -> None:
        """Takes the listener back. Idempotent."""
        if not self.closed:
            lib.byway_listener_remove(self.pointer)
        super().close()


_trampolines: Dict[str, Any] = {}


def _on_event() -> Any:
    from .net import Event

    if "event" not in _trampolines:

        def body(target: Callable[["Event"], None], address: int) -> None:
            target(Event.read(address))

        _trampolines["event"] = _callbacks.guarded(_abi.byway_listener_callbacks_on_event, body, None)
    return _trampolines["event"]
