"""What a listener is told."""
from __future__ import annotations

import ctypes
import enum
from typing import List, NamedTuple, Optional, Tuple

from . import _abi, _callbacks, errors
from ._library import lib
from .ip import Ip, ip_from
from .proxy import Proxy
from .route import Route


class EventKind(enum.IntEnum):
    """Kinds of event, in the order in which a connection has them; behind those the ones of rules and chains."""

    PROXY_SELECT_START = _abi.BYWAY_EVENT_PROXY_SELECT_START
    PROXY_SELECT_END = _abi.BYWAY_EVENT_PROXY_SELECT_END
    DNS_START = _abi.BYWAY_EVENT_DNS_START
    DNS_END = _abi.BYWAY_EVENT_DNS_END
    CONNECT_START = _abi.BYWAY_EVENT_CONNECT_START
    CONNECT_END = _abi.BYWAY_EVENT_CONNECT_END
    CONNECT_FAILED = _abi.BYWAY_EVENT_CONNECT_FAILED
    CONNECT_CANCELED = _abi.BYWAY_EVENT_CONNECT_CANCELED
    ROUTE_POSTPONED = _abi.BYWAY_EVENT_ROUTE_POSTPONED
    ROUTE_FILTERED = _abi.BYWAY_EVENT_ROUTE_FILTERED
    PROXY_MARKED_BAD = _abi.BYWAY_EVENT_PROXY_MARKED_BAD
    PROXY_REINSTATED = _abi.BYWAY_EVENT_PROXY_REINSTATED
    RULE = _abi.BYWAY_EVENT_RULE
    CHAIN_KEYS = _abi.BYWAY_EVENT_CHAIN_KEYS
    RULE_FAILED = _abi.BYWAY_EVENT_RULE_FAILED


class Event(NamedTuple):
    """One event. What does not belong to its kind is empty."""

    #: An ``EventKind``; a bare number from a library newer than this package.
    kind: int
    status: int
    #: The host's number of the operation.
    tag: int
    selector_id: int
    #: Monotonic time in nanoseconds.
    time_ns: int
    #: URI, name, rule key.
    subject: str
    route: Optional[Route]
    #: None is DIRECT.
    proxies: Tuple[Optional[Proxy], ...]
    ips: Tuple[Optional[Ip], ...]
    error: Optional[errors.BywayError]

    @classmethod
    def read(cls, address: int) -> "Event":
        """Copies a ``byway_event`` that lives until the callback returns."""
        raw = _abi.byway_event.from_address(address)
        proxies: List[Optional[Proxy]] = []
        if raw.proxies_len:
            for pointer in (ctypes.c_void_p * raw.proxies_len).from_address(raw.proxies):
                proxies.append(Proxy._adopt(lib.byway_proxy_retain(pointer)) if pointer else None)
        ips = (_abi.byway_ip * raw.ips_len).from_address(raw.ips) if raw.ips_len else ()
        try:
            kind: int = EventKind(raw.kind)
        except ValueError:
            kind = raw.kind
        return cls(
            kind, raw.status, raw.tag, raw.selector_id, raw.time_ns,
            _callbacks.text(raw.subject.data, raw.subject.len),
            Route._retained(raw.route) if raw.route else None, tuple(proxies), tuple(ip_from(ip) for ip in ips),
            errors.read(raw.error) if raw.error else None,
        )
