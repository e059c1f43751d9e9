"""Which provider serves this call? Invoker lists, chains, rules, picks."""
from __future__ import annotations

import ctypes
import enum
from typing import Any, Callable, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _abi, _callbacks
from ._core import Handle, call, check, made, string, take_text
from ._library import getters, lib
from ._core import milliseconds as _milliseconds
from .engine import Dialect, Engine
from .source import Source


class RuleKind(enum.IntEnum):
    """Rule languages."""

    CONDITION = _abi.BYWAY_RULE_CONDITION
    TAG = _abi.BYWAY_RULE_TAG
    AFFINITY = _abi.BYWAY_RULE_AFFINITY


class Balance(enum.IntEnum):
    """How one provider is picked; AUTO does what the providers' ``loadbalance`` says."""

    AUTO = 0
    RANDOM = _abi.BYWAY_BALANCE_RANDOM
    ROUND_ROBIN = _abi.BYWAY_BALANCE_ROUND_ROBIN
    LEAST_ACTIVE = _abi.BYWAY_BALANCE_LEAST_ACTIVE
    SHORTEST_RESPONSE = _abi.BYWAY_BALANCE_SHORTEST_RESPONSE
    CONSISTENT_HASH = _abi.BYWAY_BALANCE_CONSISTENT_HASH
    P2C = _abi.BYWAY_BALANCE_P2C


def _strings(texts: Sequence[bytes]) -> Any:
    return (_abi.byway_str * max(1, len(texts)))(*[string(text) for text in texts])


def rule_key(
    interface: str = "",
    *,
    application: str = "",
    version: str = "",
    group: str = "",
    kind: RuleKind = RuleKind.CONDITION,
    dialect: Dialect = Dialect.BYWAY,
) -> str:
    """The key under which a rule is looked for, with the dialect's rule for versions."""
    raw = [text.encode() for text in (application, interface, version, group)]
    arguments: List[Any] = [dialect, kind]
    for text in raw:
        arguments += [text, len(text)]
    return take_text(lib.byway_rule_key, *arguments)


def rule_check(
    text: str,
    kind: RuleKind = RuleKind.CONDITION,
    *,
    dialect: Dialect = Dialect.BYWAY,
    providers: Optional["Invokers"] = None,
    json: bool = False,
) -> str:
    """Everything that is wrong with a rule text, or looks wrong, with line and column. Empty when nothing is."""
    raw = text.encode()
    how = _abi.BYWAY_FORMAT_JSON if json else _abi.BYWAY_FORMAT_TEXT
    return take_text(
        lib.byway_rule_check, dialect, kind, raw, len(raw), providers.pointer if providers is not None else None, how
    )


class Invokers(Handle):
    """An immutable list of provider URLs, each with a number of the host's (its row when none is given)."""

    __slots__ = ()
    _end = "byway_invokers_release"

    def __init__(
        self, engine: Engine, urls: Iterable[str], tags: Optional[Iterable[int]] = None, *, keep_urls: bool = False
    ) -> None:
        raw = [url.encode() for url in urls]
        array = _strings(raw)
        numbers = None
        if tags is not None:
            listed = list(tags)
            if len(listed) != len(raw):
                raise ValueError(f"{len(raw)} urls but {len(listed)} tags")
            numbers = (ctypes.c_uint64 * max(1, len(listed)))(*listed)
        out = ctypes.c_void_p()
        call(
            lib.byway_invokers_new, engine.pointer, ctypes.addressof(array),
            None if numbers is None else ctypes.addressof(numbers), len(raw),
            _abi.BYWAY_INVOKERS_KEEP_URLS if keep_urls else 0, None, ctypes.addressof(out),
        )
        super().__init__(out.value or 0)

    @classmethod
    def _given(cls, function: Any, pointer: int) -> "Invokers":
        """The list a getter of another handle gives."""
        out = ctypes.c_void_p()
        call(function, pointer, ctypes.addressof(out))
        self = cls.__new__(cls)
        Handle.__init__(self, out.value or 0)
        return self

    def __len__(self) -> int:
        return int(getters.byway_invokers_len(self.pointer))

    def row_of(self, tag: int) -> int:
        """The row of a number. Raises when the list has none."""
        out = ctypes.c_size_t()
        check(lib.byway_invokers_row_of(self.pointer, tag, ctypes.addressof(out)))
        return out.value

    def tag(self, row: int) -> int:
        """The host's number of a row."""
        out = ctypes.c_uint64()
        check(lib.byway_invokers_tag(self.pointer, row, ctypes.addressof(out)))
        return out.value

    def url(self, row: int) -> str:
        """The URL of a row; needs ``keep_urls``."""
        return take_text(lib.byway_invokers_url, self.pointer, row)

    @property
    def generation(self) -> int:
        """A number no other list has."""
        return int(getters.byway_invokers_generation(self.pointer))


class Invocation(Handle):
    """A call: method, parameter types, arguments, attachments."""

    __slots__ = ("_kept",)
    _end = "byway_invocation_free"

    def __init__(
        self,
        method: str = "",
        *,
        types: Sequence[str] = (),
        arguments: Sequence[str] = (),
        attachments: Optional[Mapping[str, str]] = None,
    ) -> None:
        out = ctypes.c_void_p()
        call(lib.byway_invocation_new, ctypes.addressof(out))
        super().__init__(out.value or 0)
        # The library borrows these texts until the invocation is reset or freed.
        raw_method = method.encode()
        raw_types, raw_arguments = [t.encode() for t in types], [a.encode() for a in arguments]
        raw_attachments = [text.encode() for pair in (attachments or {}).items() for text in pair]
        arrays = [_strings(raw_types), _strings(raw_arguments), _strings(raw_attachments)]
        self._kept = (raw_method, raw_types, raw_arguments, raw_attachments, arrays)
        address = ctypes.addressof
        check(lib.byway_invocation_set_method(self.pointer, raw_method, len(raw_method)))
        if raw_types:
            check(lib.byway_invocation_set_types(self.pointer, address(arrays[0]), len(raw_types)))
        if raw_arguments:
            check(lib.byway_invocation_set_arguments(self.pointer, address(arrays[1]), len(raw_arguments)))
        if raw_attachments:
            check(lib.byway_invocation_set_attachments(self.pointer, address(arrays[2]), len(raw_attachments)))


class Picked(NamedTuple):
    """One provider, and the ticket to say how the call went."""

    tag: int
    ticket: int
    row: int
    available: bool


def _choice_tags(pointer: int) -> List[int]:
    count = getters.byway_choice_len(pointer)
    tags = (ctypes.c_uint64 * max(1, count))()
    total = ctypes.c_size_t()
    check(lib.byway_choice_tags(pointer, ctypes.addressof(tags), count, ctypes.addressof(total)))
    return list(tags[: total.value])


class Choice(Handle):
    """Providers that may serve a call; pins the world it was made in."""

    __slots__ = ()
    _end = "byway_choice_free"

    def __len__(self) -> int:
        return int(getters.byway_choice_len(self.pointer))

    def tags(self) -> List[int]:
        """The host's numbers of the providers, in list order."""
        return _choice_tags(self.pointer)

    @property
    def generation(self) -> int:
        """Of the world it was made in."""
        return int(getters.byway_choice_generation(self.pointer))

    @property
    def invokers(self) -> Invokers:
        """The list the providers were chosen from, also when the chain has another one by now."""
        return Invokers._given(lib.byway_choice_invokers, self.pointer)

    @property
    def emptied_by(self) -> str:
        """The router after which nothing was left; empty when something is."""
        return take_text(lib.byway_choice_emptied_by, self.pointer)


class RouterRequest(NamedTuple):
    """What a host's router is asked: which of ``tags`` stay?"""

    method: str
    tags: List[int]
    explaining: bool
    attachment: Callable[[str], Optional[str]]
    argument: Callable[[int], Optional[str]]


class Router(Handle):
    """A router of the host's: ``route`` gets a ``RouterRequest`` and returns the tags that stay; None passes."""

    __slots__ = ()
    _end = "byway_router_release"

    def __init__(
        self,
        engine: Engine,
        name: str,
        route: Callable[[RouterRequest], Optional[Iterable[int]]],
        *,
        priority: int = 0,
        every_chain: bool = False,
        by_name: bool = False,
    ) -> None:
        raw, out = name.encode(), ctypes.c_void_p()
        flags = (_abi.BYWAY_ROUTER_EVERY_CHAIN if every_chain else 0) | (_abi.BYWAY_ROUTER_BY_NAME if by_name else 0)
        callbacks = _abi.byway_router_callbacks(
            ctypes.sizeof(_abi.byway_router_callbacks), _callbacks.register(route), _callbacks.destroy, _ROUTE
        )
        call(
            lib.byway_router_new, engine.pointer, raw, len(raw), priority, flags, ctypes.addressof(callbacks),
            ctypes.addressof(out),
        )
        super().__init__(out.value or 0)


def _route(target: Callable[[RouterRequest], Optional[Iterable[int]]], address: int, _call: int) -> int:
    raw = _abi.byway_router_request.from_address(address)
    tags = list((ctypes.c_uint64 * raw.count).from_address(raw.tags)) if raw.count else []

    def attachment(key: str) -> Optional[str]:
        name, out = key.encode(), _abi.byway_str()
        status = lib.byway_router_request_attachment(address, name, len(name), ctypes.addressof(out))
        return _callbacks.text(out.data, out.len) if status == _abi.BYWAY_OK else None

    def argument(index: int) -> Optional[str]:
        out = _abi.byway_str()
        status = lib.byway_router_request_argument(address, index, ctypes.addressof(out))
        return _callbacks.text(out.data, out.len) if status == _abi.BYWAY_OK else None

    request = RouterRequest(
        _callbacks.text(raw.method.data, raw.method.len), tags, bool(raw.explaining), attachment, argument
    )
    stay = target(request)
    if stay is None:
        return _abi.BYWAY_PASS
    kept = set(stay)
    if raw.count:
        keep = (ctypes.c_uint8 * raw.count).from_address(raw.keep)
        for i, tag in enumerate(tags):
            keep[i] = 1 if tag in kept else 0
    return _abi.BYWAY_OK


_ROUTE = _callbacks.guarded(_abi.byway_router_callbacks_route, _route)


def _pick_options(balance: Balance, sticky: Optional[bool], exclude: Sequence[int]) -> Tuple[Any, Any]:
    options = _abi.byway_pick_options()
    lib.byway_pick_options_init(ctypes.addressof(options))
    options.balance = balance
    options.flags = {None: 0, True: _abi.BYWAY_PICK_STICKY, False: _abi.BYWAY_PICK_NOT_STICKY}[sticky]
    array = (ctypes.c_uint64 * max(1, len(exclude)))(*exclude)
    if exclude:
        options.exclude, options.exclude_count = ctypes.addressof(array), len(exclude)
    return options, array


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
        raw, out = consumer_url.encode(), ctypes.c_void_p()
        call(
            lib.byway_chain_new, engine.pointer, raw, len(raw), ctypes.addressof(options), ctypes.addressof(out)
        )
        super().__init__(out.value or 0)
        self.engine = engine

    def set_invokers(self, invokers: Invokers) -> int:
        """Puts a list in force; returns the new generation."""
        out = ctypes.c_uint64()
        call(lib.byway_chain_set_invokers, self.pointer, invokers.pointer, ctypes.addressof(out))
        return out.value

    @property
    def invokers(self) -> Invokers:
        """The list calls route over now: the one given last, or a bound source's."""
        return Invokers._given(lib.byway_chain_invokers, self.pointer)

    def add_router(self, router: Router) -> None:
        """Adds a router of the host's."""
        call(lib.byway_chain_add_router, self.pointer, router.pointer)

    def set_rule_urls(self, urls: Iterable[str]) -> None:
        """Static rules as a registry gives them (``condition://...``); replaces the earlier ones."""
        raw = [url.encode() for url in urls]
        array = _strings(raw)
        call(lib.byway_chain_set_rule_urls, self.pointer, ctypes.addressof(array), len(raw))

    def route(self, invocation: Invocation) -> Choice:
        """Providers that may serve the call."""
        return made(Choice, lib.byway_chain_route, self.pointer, invocation.pointer)

    def tags(self, invocation: Invocation) -> List[int]:
        """As ``route``, the host's numbers only, in one crossing."""
        total, generation, room = ctypes.c_size_t(), ctypes.c_uint64(), 64
        while True:
            tags = (ctypes.c_uint64 * room)()
            call(
                lib.byway_chain_route_tags, self.pointer, invocation.pointer, ctypes.addressof(tags), room,
                ctypes.addressof(total), ctypes.addressof(generation),
            )
            if total.value <= room:
                return list(tags[: total.value])
            room = total.value

    def route_many(self, invocations: Sequence[Invocation], room: int = 64) -> List[List[int]]:
        """Several calls in one crossing, all in one world; at most ``room`` numbers a call."""
        count = len(invocations)
        array = (ctypes.c_void_p * max(1, count))(*[invocation.pointer for invocation in invocations])
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
    ) -> Picked:
        """One provider. Raises NoInvokerError when nobody may serve the call."""
        options, _kept = _pick_options(balance, sticky, exclude)
        out = _abi.byway_picked()
        call(
            lib.byway_chain_pick, self.pointer, invocation.pointer, ctypes.addressof(options), ctypes.addressof(out)
        )
        return Picked(out.tag, out.ticket, out.row, bool(out.available))

    def pick_end(self, picked: Picked, ok: bool, latency: float) -> None:
        """Says how the call went; ``latency`` in seconds."""
        check(lib.byway_chain_pick_end(self.pointer, picked.ticket, int(ok), int(latency * 1e9)))

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

    def diff(self, key: str, text: str, invocations: Sequence[Invocation]) -> str:
        """What a proposed rule would change for these calls, as JSON."""
        raw_key, raw = key.encode(), text.encode()
        array = (ctypes.c_void_p * max(1, len(invocations)))(*[invocation.pointer for invocation in invocations])
        return take_text(
            lib.byway_chain_diff, self.pointer, raw_key, len(raw_key), raw, len(raw), ctypes.addressof(array),
            len(invocations),
        )

    def keys(self) -> str:
        """Keys of the rules this chain wants, one a line."""
        return take_text(lib.byway_chain_keys, self.pointer)

    def status(self) -> str:
        """Rules in force, versions, last errors, as JSON."""
        return take_text(lib.byway_chain_status, self.pointer)

    @property
    def generation(self) -> int:
        """Of the world calls see now."""
        return int(getters.byway_chain_generation(self.pointer))

    def bind(self, source: "Source", timeout: Optional[float] = None, *, flags: int = 0) -> None:
        """Follows a source: waits for the first state, then stays up to date; what was known last is served while the
        source is away. ``timeout`` in seconds, None for the engine's default."""
        options = _abi.byway_bind_options()
        lib.byway_bind_options_init(ctypes.addressof(options))
        options.flags = flags
        call(
            lib.byway_chain_bind_source, self.pointer, source.pointer, ctypes.addressof(options), None,
            _milliseconds(timeout),
        )

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
        out = ctypes.c_void_p()
        call(lib.byway_session_route, self.pointer, invocation.pointer, ctypes.addressof(out))
        return _choice_tags(out.value or 0)

    def pick(self, invocation: Invocation, *, balance: Balance = Balance.AUTO) -> Picked:
        """One provider, drawn from this session's own stream."""
        options, _kept = _pick_options(balance, None, ())
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
