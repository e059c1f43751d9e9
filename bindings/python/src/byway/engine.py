"""The one thing a host holds."""
from __future__ import annotations

import ctypes
import enum
import json
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional

from . import _abi, _callbacks, errors
from ._core import Handle, call, check, finish_at_exit, give, lend, live, milliseconds, option_milliseconds, take_text
from ._library import lib
from .ip import Compat, Filter, Ip, ip_from
from .queue import Queue

if TYPE_CHECKING:
    from .event import Event, EventKind
    from .failure import Failure, Phase, Recovery
    from .dns import Dns
    from .proxy import Proxy, ProxyKind, ProxySelector
    from .route import Route


class Dialect(enum.IntEnum):
    """Whose reading of rules decides."""

    BYWAY = _abi.BYWAY_DIALECT_BYWAY
    DUBBO_3 = _abi.BYWAY_DIALECT_DUBBO_3
    DUBBO_2_7 = _abi.BYWAY_DIALECT_DUBBO_2_7
    DUBBO_GO = _abi.BYWAY_DIALECT_DUBBO_GO


class Call:
    """The operation a callback serves. Only until the callback returns: afterwards everything is 0 or None."""

    __slots__ = ("_pointer",)

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    @property
    def engine(self) -> Optional["Engine"]:
        """The engine; None when the host has closed it."""
        found = live.get(lib.byway_call_engine(self._pointer) or 0)
        return found if isinstance(found, Engine) else None

    @property
    def tag(self) -> int:
        """The number the host gave the operation, 0 when it gave none."""
        return int(lib.byway_call_tag(self._pointer))

    @property
    def id(self) -> int:
        """The operation's number, for example a selector's; 0 when there is none."""
        return int(lib.byway_call_id(self._pointer))

    @property
    def deadline(self) -> Optional[float]:
        """Seconds until the operation gives up, 0 when that moment has passed; None when there is none."""
        left = int(lib.byway_call_deadline_ms(self._pointer))
        return None if left < 0 else left / 1000

    def end(self) -> None:
        """The callback has returned."""
        self._pointer = 0


class FailedRoute(NamedTuple):
    """One route that failed and is postponed."""

    ip: Optional[Ip]
    port: int
    #: The origin's port.
    target_port: int
    proxy_kind: "ProxyKind"
    failure: "Failure"
    os_errno: int
    #: Failed periods in a row.
    periods: int
    #: Seconds since the failure that began this postponement.
    age: float
    #: Seconds until it counts as good again; None: until it is reported connected.
    remaining: Optional[float]


class Engine(Handle):
    """Holds what must be remembered between calls: failed routes, rules, counters, callbacks. Made once per client,
    usable from every thread. ``close`` shuts it down.

    Options are those of ``byway_engine_options``, times in seconds: ``default_timeout``, ``postpone_for``,
    ``postpone_at_most``, ``dns_cache``, ``bad_proxy``. ``monotonic`` (nanoseconds), ``wall`` (milliseconds since 1970) and ``random``
    (64 bits) replace the system's; they are called on any thread, also one of the library's own. With ``callbacks_any_thread`` events of rules, chains and sources
    come at once on a thread of the library's, without anybody polling.
    """

    __slots__ = ("_kept", "_clocks")
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
        callbacks_any_thread: bool = False,
        fast_fallback: bool = True,
        routing_flags: int = 0,
        direct_on_proxy_selector_error: bool = False,
        dns_cache: float = 0,
        bad_proxy: Optional[float] = None,
        target_filter: Optional[Filter] = None,
        proxy_filter: Optional[Filter] = None,
        monotonic: Optional[Callable[[], int]] = None,
        wall: Optional[Callable[[], int]] = None,
        random: Optional[Callable[[], int]] = None,
    ) -> None:
        options = _abi.byway_engine_options()
        lib.byway_engine_options_init(ctypes.addressof(options))
        options.seed = seed
        options.flags = _abi.BYWAY_CALLBACKS_ANY_THREAD if callbacks_any_thread else 0
        options.compat = compat
        options.dialect = dialect
        if default_timeout is not None:
            options.default_timeout_ms = option_milliseconds(default_timeout, "default_timeout")
        if postpone_for is not None:
            options.postpone_for_ms = option_milliseconds(postpone_for, "postpone_for")
        if postpone_at_most is not None:
            options.postpone_at_most_ms = option_milliseconds(postpone_at_most, "postpone_at_most")
        options.database_capacity = database_capacity
        options.commit_failures = _abi.BYWAY_COMMIT_ON_SUCCESS if commit_on_success else _abi.BYWAY_COMMIT_ALWAYS
        options.routing_flags = routing_flags | (0 if fast_fallback else _abi.BYWAY_ROUTING_NO_FAST_FALLBACK)
        options.on_proxy_selector_error = (
            _abi.BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT
            if direct_on_proxy_selector_error
            else _abi.BYWAY_ON_PROXY_SELECTOR_ERROR_FAIL
        )
        options.dns_cache_ms = option_milliseconds(dns_cache, "dns_cache", 2**32 - 1)
        if bad_proxy is not None:
            options.bad_proxy_ms = option_milliseconds(bad_proxy, "bad_proxy")
        lend(options, queue=queue, target_filter=target_filter, proxy_filter=proxy_filter)
        self._clocks = 0
        if monotonic is not None or wall is not None or random is not None:
            self._clocks = options.source_data = _callbacks.register((monotonic, wall, random))
            if monotonic is not None:
                options.monotonic_ns = _MONOTONIC
            if wall is not None:
                options.wall_ms = _WALL
            if random is not None:
                options.random = _RANDOM
        super().__init__(give(lib.byway_engine_new, ctypes.addressof(options)))
        self._kept: List["Listener"] = []
        finish_at_exit(self)

    def shutdown(self, timeout: Optional[float] = None) -> bool:
        """Cancels everything, waits for running callbacks, drops every callback object. True when done; False when a
        callback is still running: call again. After True no callback ever runs."""
        return call(lib.byway_engine_shutdown, self.pointer, milliseconds(timeout)) == _abi.BYWAY_OK

    def _at_exit(self) -> None:
        """What interpreter exit does: shut down and wait a little for callbacks on other threads."""
        try:
            self.shutdown(5)
        except errors.BywayError:
            # Inside its own callback, or in a forked child: nothing of it runs here any more.
            pass

    def close(self) -> None:
        """Shuts the engine down and gives the reference back. Idempotent."""
        if not self.closed:
            self._at_exit()
        super().close()
        if self._clocks:
            _callbacks.drop(self._clocks)

    @property
    def queue(self) -> Queue:
        """The engine's queue."""
        return Queue._adopt(lib.byway_engine_queue(self.pointer))

    # --- where to connect next ---

    def connected(self, route: "Route") -> None:
        """Reports that a route works: it is no longer postponed."""
        check(lib.byway_engine_connected(self.pointer, route.pointer))

    def connect_failed(
        self,
        route: "Route",
        failure: "Failure" = _abi.BYWAY_FAILURE_IO,  # type: ignore[assignment]
        *,
        phase: "Phase" = _abi.BYWAY_PHASE_TCP,  # type: ignore[assignment]
        os_errno: int = 0,
    ) -> None:
        """Reports that a route failed; the proxy selector that chose it is told too."""
        call(lib.byway_engine_connect_failed, self.pointer, route.pointer, failure, phase, os_errno)

    def should_postpone(self, route: "Route") -> bool:
        """True when the route failed and its time has not passed."""
        out = ctypes.c_int32()
        check(lib.byway_engine_should_postpone(self.pointer, route.pointer, ctypes.addressof(out)))
        return bool(out.value)

    def recover(
        self,
        failure: "Failure",
        phase: "Phase",
        *,
        retry_enabled: bool = True,
        one_shot: bool = False,
        sent: bool = False,
        exchange_failed: bool = False,
        more_routes: bool = True,
    ) -> "Recovery":
        """May a failed call be retried on another route? ``one_shot``: its body can be sent only once; ``sent``: bytes of
        it may have left this machine; ``exchange_failed``: the exchange failed, not the search for a connection;
        ``more_routes``: a further route exists."""
        from .failure import Recovery

        flags = (
            (_abi.BYWAY_CALL_RETRY_ENABLED if retry_enabled else 0) | (_abi.BYWAY_CALL_ONE_SHOT if one_shot else 0)
            | (_abi.BYWAY_CALL_SENT if sent else 0) | (_abi.BYWAY_CALL_EXCHANGE_FAILED if exchange_failed else 0)
            | (_abi.BYWAY_CALL_MORE_ROUTES if more_routes else 0)
        )
        failed, out = _abi.byway_failed_call(ctypes.sizeof(_abi.byway_failed_call), failure, phase, flags, 0), ctypes.c_int32()
        call(lib.byway_engine_recover, self.pointer, ctypes.addressof(failed), ctypes.addressof(out))
        return Recovery(out.value)

    def network_changed(self) -> int:
        """Forgets failures and cached names; returns the new generation."""
        out = ctypes.c_uint64()
        check(lib.byway_engine_network_changed(self.pointer, ctypes.addressof(out)))
        return out.value

    def set_proxy_selector(self, selector: Optional["ProxySelector"]) -> None:
        """Who is asked where an address names nobody and a callback passes. None: nobody, DIRECT."""
        call(lib.byway_engine_set_proxy_selector, self.pointer, selector.pointer if selector is not None else None)

    def failed_routes(self) -> List[FailedRoute]:
        """What failed and is postponed, oldest first."""
        from .failure import Failure
        from .proxy import ProxyKind

        total, room = ctypes.c_size_t(), 64
        while True:
            records = (_abi.byway_failed_route * room)()
            check(
                lib.byway_engine_database_snapshot(
                    self.pointer, ctypes.addressof(records), ctypes.sizeof(_abi.byway_failed_route), room,
                    ctypes.addressof(total),
                )
            )
            if total.value <= room:
                break
            room = total.value
        return [
            FailedRoute(
                ip_from(r.hop_ip), r.hop_port, r.target_port, ProxyKind(r.proxy_kind), Failure(r.failure), r.os_errno,
                r.periods, r.age_ms / 1000, None if r.remaining_ms < 0 else r.remaining_ms / 1000,
            )
            for r in records[: total.value]
        ]

    def proxies_for_url(
        self, selector: "ProxySelector", url: str, dns: Optional["Dns"] = None, timeout: Optional[float] = None
    ) -> List[Optional["Proxy"]]:
        """Which proxies a URL has, in order, outside any connection; None is DIRECT. ``timeout`` in seconds, None for the
        engine's default."""
        from .proxy import Proxy

        raw, total, room = url.encode(), ctypes.c_size_t(), 16
        while True:
            out = (ctypes.c_void_p * room)()
            call(
                lib.byway_engine_proxies_for_url, self.pointer, selector.pointer, raw, len(raw),
                None if dns is None else dns.pointer, milliseconds(timeout), ctypes.addressof(out), room,
                ctypes.addressof(total), None,
            )
            proxies = [Proxy._adopt(pointer) if pointer else None for pointer in out[: total.value]]
            if total.value <= room:
                return proxies
            room = total.value

    def explain_proxies(
        self, selector: "ProxySelector", url: str, dns: Optional["Dns"] = None, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """The same with the reasons: ``proxies``, ``because`` from the outermost proxy selector inwards, ``script`` when one
        ran, ``moved_back`` with the proxies that failed lately."""
        raw, total = url.encode(), ctypes.c_size_t()
        told: Dict[str, Any] = json.loads(
            take_text(
                lib.byway_engine_proxies_for_url, self.pointer, selector.pointer, raw, len(raw),
                None if dns is None else dns.pointer, milliseconds(timeout), None, 0, ctypes.addressof(total),
            )
        )
        return told

    def bad_proxies(self) -> List[Dict[str, Any]]:
        """The proxies that failed lately and are tried last for a while: ``kind``, ``host``, ``port``, ``remaining_ms``, and
        how each failed last: ``failure`` (the text of a Failure), ``os_errno``, ``age_ms``."""
        found: List[Dict[str, Any]] = json.loads(take_text(lib.byway_engine_bad_proxies, self.pointer))
        return found

    def mark_proxy(self, proxy: "Proxy", failure: "Optional[Failure]" = None, os_errno: int = 0) -> None:
        """A proxy failed that was tried outside this library: it goes behind the others for a while."""
        how = _abi.BYWAY_FAILURE_IO if failure is None else failure
        call(lib.byway_engine_mark_proxy, self.pointer, proxy.pointer, how, os_errno)

    def forget_bad_proxies(self) -> None:
        """All are tried in their configured order again."""
        call(lib.byway_engine_forget_bad_proxies, self.pointer)

    def export_database(self) -> str:
        """What failed, as JSON."""
        return take_text(lib.byway_engine_database_export, self.pointer)

    def import_database(self, text: str) -> int:
        """Takes back what ``export_database`` gave; returns how many records were taken."""
        raw, count = text.encode(), ctypes.c_size_t()
        call(lib.byway_engine_database_import, self.pointer, raw, len(raw), ctypes.addressof(count))
        return count.value

    def stats(self) -> Dict[str, int]:
        """Counters of the engine."""
        out = _abi.byway_engine_statistics()
        out.struct_size = ctypes.sizeof(out)
        check(lib.byway_engine_stats(self.pointer, ctypes.addressof(out)))
        return {name: getattr(out, name) for name, *_ in out._fields_ if name != "struct_size"}

    def add_listener(
        self,
        on_event: Callable[["Event"], None],
        kinds: Optional[Iterable["EventKind"]] = None,
        queue: Optional[Queue] = None,
    ) -> "Listener":
        """Has ``on_event`` called for the given kinds of event (all when None). Nothing is built for other kinds. Events of
        rules and chains come where ``queue`` (None: the engine's) is polled."""
        listener = Listener(self, on_event, kinds, queue)
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
    """An event listener; ``close`` ends it. ``Engine.add_listener`` makes one that need not be kept."""

    __slots__ = ()
    _end = "byway_listener_release"

    def __init__(
        self,
        engine: Engine,
        on_event: Callable[["Event"], None],
        kinds: Optional[Iterable["EventKind"]] = None,
        queue: Optional[Queue] = None,
    ) -> None:
        mask = 2**64 - 1 if kinds is None else sum(1 << kind for kind in set(kinds))
        callbacks = _abi.byway_listener_callbacks(
            ctypes.sizeof(_abi.byway_listener_callbacks), _callbacks.register(on_event), _callbacks.destroy, mask,
            _ON_EVENT, None if queue is None else queue.pointer,
        )
        super().__init__(give(lib.byway_engine_add_listener, engine.pointer, ctypes.addressof(callbacks)))

    def close(self) -> None:
        """Takes the listener back. Idempotent."""
        if not self.closed:
            lib.byway_listener_remove(self.pointer)
        super().close()


def _on_event(target: Callable[["Event"], None], address: int) -> None:
    from .event import Event

    target(Event.read(address))


_ON_EVENT = _callbacks.guarded(_abi.byway_listener_callbacks_on_event, _on_event, None)


def _clock(index: int) -> Callable[..., int]:
    def read(target: Any) -> int:
        value: int = target[index]()
        return value

    return read


_MONOTONIC = _callbacks.guarded(_abi.byway_engine_options_monotonic_ns, _clock(0), 0, alone=True)
_WALL = _callbacks.guarded(_abi.byway_engine_options_wall_ms, _clock(1), 0, alone=True)
_RANDOM = _callbacks.guarded(_abi.byway_engine_options_random, _clock(2), 0, alone=True)
