"""Which provider serves this call? Chains, choices, picks."""
from __future__ import annotations

import ctypes
import enum
import json as _json
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import _abi, _signals
from ._core import Handle, array_of, call, check, give, lend, made, milliseconds, strings, take_text
from ._library import getters, lib
from .engine import Dialect, Engine
from .invocation import Invocation
from .invokers import Invokers
from .queue import Queue
from .router import Router
from .source import Discovery, EmptyProtection, Source, SourceEvent, following


class Balance(enum.IntEnum):
    """How one provider is picked; AUTO does what the providers' ``loadbalance`` says."""

    AUTO = 0
    RANDOM = _abi.BYWAY_BALANCE_RANDOM
    ROUND_ROBIN = _abi.BYWAY_BALANCE_ROUND_ROBIN
    LEAST_ACTIVE = _abi.BYWAY_BALANCE_LEAST_ACTIVE
    SHORTEST_RESPONSE = _abi.BYWAY_BALANCE_SHORTEST_RESPONSE
    CONSISTENT_HASH = _abi.BYWAY_BALANCE_CONSISTENT_HASH
    P2C = _abi.BYWAY_BALANCE_P2C


class Picked(NamedTuple):
    """One provider, and the ticket to say how the call went."""

    tag: int
    ticket: int
    row: int
    #: False when nothing better than a provider that cannot be called was left.
    available: bool


class Report(NamedTuple):
    """What a provider reported about itself."""

    #: Its wall clock in seconds since 1970.
    time: float
    #: Its CPU load, on any scale all providers share.
    load: float
    #: Its own measure of the response time in seconds.
    latency: float


class _Numbers:
    """Room for what a choice holds; taken and given back."""

    __slots__ = ("size", "array", "at", "total", "total_at")

    def __init__(self, size: int) -> None:
        self.size = size
        self.array, self.total = (ctypes.c_uint64 * size)(), ctypes.c_size_t()
        self.at, self.total_at = ctypes.addressof(self.array), ctypes.addressof(self.total)


_rooms: List[_Numbers] = []


def _choice_tags(pointer: int) -> List[int]:
    try:
        room = _rooms.pop()
    except IndexError:
        room = _Numbers(64)
    while True:
        check(getters.byway_choice_tags(pointer, room.at, room.size, room.total_at))
        total = room.total.value
        if total <= room.size:
            break
        room = _Numbers(total)
    tags: List[int] = room.array[:total]
    _rooms.append(room)
    return tags


def _routed_tags(route: Callable[..., int], pointer: int, asked: int) -> List[int]:
    """Routes and copies in one crossing; a result that has no room is asked for again."""
    try:
        room = _rooms.pop()
    except IndexError:
        room = _Numbers(64)
    while True:
        call(route, pointer, asked, room.at, room.size, room.total_at, None)
        total = room.total.value
        if total <= room.size:
            break
        room = _Numbers(total)
    tags: List[int] = room.array[:total]
    _rooms.append(room)
    return tags


class Choice(Handle):
    """Providers that may serve a call, by the host's numbers; pins the world it was made in."""

    __slots__ = ()
    _end = "byway_choice_free"

    def __len__(self) -> int:
        return int(getters.byway_choice_len(self.pointer))

    def __getitem__(self, index: int) -> int:
        count = len(self)
        out = ctypes.c_uint64()
        at = index + count if index < 0 else index
        if not 0 <= at < count:
            raise IndexError(index)
        check(getters.byway_choice_tag_at(self.pointer, at, ctypes.addressof(out)))
        return out.value

    def __iter__(self) -> Iterator[int]:
        return iter(self.tags())

    def tags(self) -> List[int]:
        """The host's numbers of the providers, in list order."""
        return _choice_tags(self.pointer)

    @property
    def invokers(self) -> Invokers:
        """The list they were chosen from, also when the chain has another one by now."""
        return made(Invokers, lib.byway_choice_invokers, self.pointer)

    @property
    def generation(self) -> int:
        """Of the world it was made in."""
        return int(getters.byway_choice_generation(self.pointer))

    @property
    def emptied_by(self) -> str:
        """The router after which nothing was left; empty when something is."""
        return take_text(lib.byway_choice_emptied_by, self.pointer)


def _pick_options(
    balance: Balance, sticky: Optional[bool], exclude: Sequence[int], available: Optional[Tuple[Invokers, Iterable[int]]]
) -> Tuple[Any, ...]:
    options = _abi.byway_pick_options()
    lib.byway_pick_options_init(ctypes.addressof(options))
    options.balance = balance
    options.flags = {None: 0, True: _abi.BYWAY_PICK_STICKY, False: _abi.BYWAY_PICK_NOT_STICKY}[sticky]
    tried, bits = array_of(ctypes.c_uint64, exclude), None
    if exclude:
        options.exclude, options.exclude_count = ctypes.addressof(tried), len(exclude)
    if available is not None:
        invokers, rows = available
        words = (len(invokers) + 63) // 64
        bits = array_of(ctypes.c_uint64, [0] * words)
        for row in rows:
            bits[row // 64] |= 1 << row % 64
        options.available, options.available_words = ctypes.addressof(bits), words
        options.available_list = invokers.generation
    return options, tried, bits


class Chain(Handle):
    """Routers over one provider list for one consumer. Usable from every thread; a call sees one world."""

    __slots__ = ("engine",)
    _end = "byway_chain_release"

    def __init__(
        self,
        engine: Engine,
        consumer_url: str,
        *,
        dialect: Optional[Dialect] = None,
        flags: int = 0,
        memo_bytes: int = 0,
    ) -> None:
        options = _abi.byway_chain_options()
        lib.byway_chain_options_init(ctypes.addressof(options))
        options.dialect = -1 if dialect is None else dialect
        options.flags, options.memo_bytes = flags, memo_bytes
        raw = consumer_url.encode()
        super().__init__(give(lib.byway_chain_new, engine.pointer, raw, len(raw), ctypes.addressof(options)))
        self.engine = engine

    def set_invokers(self, invokers: Invokers) -> int:
        """Puts a list in force; returns the new generation."""
        out = ctypes.c_uint64()
        call(lib.byway_chain_set_invokers, self.pointer, invokers.pointer, ctypes.addressof(out))
        return out.value

    @property
    def invokers(self) -> Invokers:
        """The list calls route over now: the one given last, or a bound source's."""
        return made(Invokers, lib.byway_chain_invokers, self.pointer)

    def intern_method(self, name: str) -> int:
        """A number for ``Invocation(method_id=...)``, the same in every chain of the process. Meant for the methods of an
        interface, not for names from the network."""
        raw, out = name.encode(), ctypes.c_uint32()
        call(lib.byway_chain_intern_method, self.pointer, raw, len(raw), ctypes.addressof(out))
        return out.value

    def add_router(self, router: Router) -> None:
        """Adds a router of the host's."""
        call(lib.byway_chain_add_router, self.pointer, router.pointer)

    def set_rule_urls(self, urls: Iterable[str]) -> None:
        """Static rules as a registry gives them (``condition://...``); replaces the earlier ones."""
        raw = [url.encode() for url in urls]
        array = strings(raw)
        call(lib.byway_chain_set_rule_urls, self.pointer, ctypes.addressof(array), len(raw))

    def route(self, invocation: Invocation) -> Choice:
        """Providers that may serve the call."""
        return made(Choice, lib.byway_chain_route, self.pointer, invocation.pointer)

    def tags(self, invocation: Invocation) -> List[int]:
        """As ``route``, the host's numbers only, in one crossing."""
        return _routed_tags(lib.byway_chain_route_tags, self.pointer, invocation.pointer)

    def route_many(self, invocations: Sequence[Invocation], room: int = 64) -> List[List[int]]:
        """Several calls in one crossing, all in one world; at most ``room`` numbers a call."""
        count = len(invocations)
        array = array_of(ctypes.c_void_p, [invocation.pointer for invocation in invocations])
        tags, totals = (ctypes.c_uint64 * max(1, count * room))(), (ctypes.c_size_t * max(1, count))()
        generation = ctypes.c_uint64()
        call(
            lib.byway_chain_route_many, self.pointer, ctypes.addressof(array), count, ctypes.addressof(tags), room,
            ctypes.addressof(totals), ctypes.addressof(generation),
        )
        return [list(tags[i * room : i * room + min(room, totals[i])]) for i in range(count)]

    def pick(
        self,
        invocation: Invocation,
        *,
        balance: Balance = Balance.AUTO,
        sticky: Optional[bool] = None,
        exclude: Sequence[int] = (),
        available: Optional[Tuple[Invokers, Iterable[int]]] = None,
    ) -> Picked:
        """One provider. ``exclude`` lists numbers tried before; ``available`` is a list and its rows that can be called
        (all when None). Raises NoInvokerError when nobody may serve the call."""
        options, *_kept = _pick_options(balance, sticky, exclude, available)
        out = _abi.byway_picked()
        call(
            lib.byway_chain_pick, self.pointer, invocation.pointer, ctypes.addressof(options), ctypes.addressof(out)
        )
        return Picked(out.tag, out.ticket, out.row, bool(out.available))

    def pick_end(
        self, picked: Picked, ok: bool, latency: Optional[float] = None, report: Optional[Report] = None
    ) -> bool:
        """Says how the call went; ``latency`` in seconds, None for the time from pick to now. False when there was nothing
        to end: ended before, or the provider is gone."""
        length = -1 if latency is None else round(latency * 1e9)
        if report is None:
            return check(lib.byway_chain_pick_end(self.pointer, picked.ticket, int(ok), length)) == _abi.BYWAY_OK
        result = _abi.byway_call_result()
        lib.byway_call_result_init(ctypes.addressof(result))
        result.ok, result.latency_ns, result.has_report = int(ok), length, 1
        result.report_time_ms, result.report_load = round(report.time * 1000), report.load
        result.report_latency_ms = report.latency * 1000
        status = call(lib.byway_chain_pick_end_with, self.pointer, picked.ticket, ctypes.addressof(result))
        return status == _abi.BYWAY_OK

    def explain(self, invocation: Invocation, json: bool = False) -> str:
        """Per router what came in and out, and for each provider that is gone the sentence that dropped it."""
        how = _abi.BYWAY_FORMAT_JSON if json else _abi.BYWAY_FORMAT_TEXT
        return take_text(lib.byway_chain_explain, self.pointer, invocation.pointer, how)

    def keep_recent(self, on: bool = True) -> None:
        """Keeps the last 32 calls from now on, or no longer; those kept so far go either way."""
        call(lib.byway_chain_keep_recent, self.pointer, int(on))

    def recent(self, json: bool = False) -> str:
        """The calls kept since ``keep_recent()``, oldest first, each explained by the world that answered it."""
        how = _abi.BYWAY_FORMAT_JSON if json else _abi.BYWAY_FORMAT_TEXT
        return take_text(lib.byway_chain_recent, self.pointer, how)

    def diff(self, key: str, text: Optional[str], invocations: Sequence[Invocation]) -> List[Dict[str, Any]]:
        """What a proposed rule would change: for each call how many providers before and after, and the numbers that come
        and go. ``text`` None: without the rule. Nothing is set."""
        raw_key, raw = key.encode(), None if text is None else text.encode()
        array = array_of(ctypes.c_void_p, [invocation.pointer for invocation in invocations])
        changes: List[Dict[str, Any]] = _json.loads(
            take_text(
                lib.byway_chain_diff, self.pointer, raw_key, len(raw_key), raw, 0 if raw is None else len(raw),
                ctypes.addressof(array), len(invocations), _abi.BYWAY_FORMAT_JSON,
            )
        )
        return changes

    def keys(self) -> List[str]:
        """Keys of the rules this chain wants at the moment, in router order."""
        return take_text(lib.byway_chain_keys, self.pointer).splitlines()

    def status(self) -> Dict[str, Any]:
        """How each router stands: rules in force, versions, last errors."""
        status: Dict[str, Any] = _json.loads(take_text(lib.byway_chain_status, self.pointer))
        return status

    @property
    def generation(self) -> int:
        """Of the world calls see now."""
        return int(getters.byway_chain_generation(self.pointer))

    def bind(
        self,
        source: Source,
        timeout: Optional[float] = None,
        *,
        rules_only: bool = False,
        keep_list: bool = False,
        empty_protection: EmptyProtection = EmptyProtection.VANISHED,
        discovery: Discovery = Discovery.AUTO,
        on_event: Optional[Callable[[SourceEvent], None]] = None,
        queue: Optional[Queue] = None,
        tag: int = 0,
    ) -> bool:
        """Follows a source: waits for the first state, then stays up to date; what was known last is served while the
        source is away. ``timeout`` in seconds, None for the engine's default; False when the first state has not come in
        time: it comes later, and a record with ``tag`` on the queue tells; until then the source before serves. Ctrl-C and
        ``cancel_bind`` end the wait, and the chain follows what it followed before.
        ``rules_only``: the host gives the provider list itself; ``keep_list``: the providers stay
        when another source takes the place of this one, or none does. ``on_event`` runs where ``queue`` (None: the
        engine's) is polled."""
        options = _abi.byway_bind_options()
        lib.byway_bind_options_init(ctypes.addressof(options))
        options.flags = (_abi.BYWAY_BIND_RULES_ONLY if rules_only else 0) | (
            _abi.BYWAY_BIND_KEEP_LIST if keep_list else 0
        )
        options.empty_protection, options.discovery = empty_protection, discovery
        options.tag = tag
        lend(options, queue=queue)
        pointer, followed = self.pointer, source.pointer

        def bind(left: Optional[float]) -> int:
            callbacks = following(on_event)
            return call(
                lib.byway_chain_bind_source, pointer, followed, ctypes.addressof(options),
                None if callbacks is None else ctypes.addressof(callbacks), milliseconds(left),
            )

        return _signals.waiting(bind, timeout, lambda: lib.byway_chain_cancel_bind(pointer)) == _abi.BYWAY_OK

    def cancel_bind(self) -> None:
        """Ends every ``bind`` that is waiting on this chain now: CanceledError, and nothing has changed. Any thread."""
        check(lib.byway_chain_cancel_bind(self.pointer))

    def bind_status(self) -> Dict[str, Any]:
        """How a bound chain stands: ready, topics followed, worlds so far, providers, what was refused last, its source."""
        status: Dict[str, Any] = _json.loads(take_text(lib.byway_chain_bind_status, self.pointer))
        return status

    def unbind(self) -> None:
        """Stops following a source."""
        call(lib.byway_chain_bind_source, self.pointer, None, None, None, 0)

    def session(self) -> "Session":
        """The fast way for one thread that routes again and again."""
        return made(Session, lib.byway_session_new, self.pointer)


class Session(Handle):
    """Belongs to the thread that made it."""

    __slots__ = ()
    _end = "byway_session_free"

    def tags(self, invocation: Invocation) -> List[int]:
        """Numbers of the providers that may serve the call."""
        return _routed_tags(lib.byway_session_route_tags, self.pointer, invocation.pointer)

    def pick(
        self,
        invocation: Invocation,
        *,
        balance: Balance = Balance.AUTO,
        sticky: Optional[bool] = None,
        exclude: Sequence[int] = (),
        available: Optional[Tuple[Invokers, Iterable[int]]] = None,
    ) -> Picked:
        """One provider, drawn from this session's own stream; as ``Chain.pick``."""
        options, *_kept = _pick_options(balance, sticky, exclude, available)
        out = _abi.byway_picked()
        call(
            lib.byway_session_pick, self.pointer, invocation.pointer, ctypes.addressof(options),
            ctypes.addressof(out),
        )
        return Picked(out.tag, out.ticket, out.row, bool(out.available))

    def adopt(self) -> None:
        """Moves the session to the calling thread."""
        call(lib.byway_session_adopt, self.pointer)

    def idle(self) -> None:
        """Lets go of the world it saw last, until the next call."""
        call(lib.byway_session_idle, self.pointer)
