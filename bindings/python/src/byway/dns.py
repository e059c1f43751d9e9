"""Who resolves names."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

from . import _abi, _callbacks
from ._core import Handle, array_of, call, check, give, made, string, strings
from ._library import lib
from .engine import Call, Engine
from .ip import Ip, ip_to


class DnsRequest:
    """A question to a resolver, and the place for its answer. ``later()`` keeps it beyond the callback."""

    __slots__ = ("host", "call", "_pointer", "_kept")

    def __init__(self, pointer: int, host: str, call: Call) -> None:
        self.host = host
        #: The operation that asks; only until the callback returns.
        self.call = call
        self._pointer = pointer
        self._kept: Optional["_KeptDns"] = None

    @property
    def id(self) -> int:
        """The number ``on_cancel`` names."""
        return int(lib.byway_dns_request_id(self._pointer))

    @property
    def canceled(self) -> bool:
        """True when nobody waits for the answer any more."""
        return bool(lib.byway_dns_request_is_canceled(self._pointer))

    def later(self) -> "DnsRequest":
        """Says that ``finish`` or ``fail`` will be called after the callback has returned, from any thread."""
        if self._kept is None:
            self._kept = _KeptDns(lib.byway_dns_request_retain(self._pointer))
        return self

    def add(self, *ips: Union[str, Ip]) -> "DnsRequest":
        """Adds addresses in order; all or none of them."""
        raw = array_of(_abi.byway_ip, [ip_to(ip) for ip in ips])
        check(lib.byway_dns_request_add(self._pointer, ctypes.addressof(raw), len(ips)))
        return self

    def add_text(self, ips: str) -> "DnsRequest":
        """Adds addresses from a text, separated by white space or commas."""
        raw = ips.encode()
        call(lib.byway_dns_request_add_text, self._pointer, raw, len(raw))
        return self

    def add_service(
        self,
        *,
        target: str = "",
        priority: int = 1,
        port: int = 0,
        alpn: Sequence[str] = (),
        ech: bytes = b"",
        hints: Iterable[Union[str, Ip]] = (),
    ) -> "DnsRequest":
        """Adds one HTTPS or SVCB record (RFC 9460), which the routes carry on; see ``Route.service``."""
        raw_target, raw_alpn = target.encode(), [name.encode() for name in alpn]
        names, addresses = strings(raw_alpn), [ip_to(ip) for ip in hints]
        array = array_of(_abi.byway_ip, addresses)
        options = _abi.byway_service_options(
            ctypes.sizeof(_abi.byway_service_options), string(raw_target), priority, port, 0, ctypes.addressof(names),
            len(raw_alpn), string(ech), ctypes.addressof(array), len(addresses),
        )
        call(lib.byway_dns_request_add_service, self._pointer, ctypes.addressof(options))
        return self

    def family_done(self, family: int) -> None:
        """Says that all addresses of this family (4 or 6) are there."""
        check(lib.byway_dns_request_family_done(self._pointer, family))

    def finish(self) -> None:
        """The answer is complete."""
        check(lib.byway_dns_request_finish(self._pointer))

    def fail(self, message: str = "", *, code: int = _abi.BYWAY_E_UNKNOWN_HOST, host_code: int = 0) -> None:
        """There is no answer. What was added before still counts."""
        raw = message.encode()
        check(lib.byway_dns_request_fail(self._pointer, code, host_code, raw, len(raw)))


class _KeptDns(Handle):
    __slots__ = ()
    _end = "byway_dns_request_release"


#: ``lookup(host)`` gives addresses or None; with ``takes_request``, ``lookup(request)`` answers through the request.
Lookup = Callable[..., Any]


class Dns(Handle):
    """A resolver: ``Dns(engine, lookup)``, ``Dns.system(engine)`` or ``Dns.hosts(engine, text)``.

    ``lookup`` gets a host name and returns addresses; or, when it is declared to take a ``DnsRequest``
    (``takes_request=True``), answers through that, now or later. Returning None passes to the system's resolver.
    """

    __slots__ = ()
    _end = "byway_dns_release"

    def __init__(self, engine: Engine, lookup: Lookup, *, takes_request: bool = False,
                 on_cancel: Optional[Callable[[int], None]] = None) -> None:
        callbacks = _abi.byway_dns_callbacks(
            ctypes.sizeof(_abi.byway_dns_callbacks), _callbacks.register((lookup, takes_request, on_cancel)),
            _callbacks.destroy, _LOOKUP, _DNS_CANCEL,
        )
        super().__init__(give(lib.byway_dns_new, engine.pointer, ctypes.addressof(callbacks)))

    @classmethod
    def system(cls, engine: Engine) -> "Dns":
        """getaddrinfo on the library's own bounded pool of threads."""
        return made(cls, lib.byway_dns_new_system, engine.pointer)

    @classmethod
    def hosts(cls, engine: Engine, text: str) -> "Dns":
        """A fixed table in the form of a hosts file."""
        raw = text.encode()
        return made(cls, lib.byway_dns_new_hosts, engine.pointer, raw, len(raw))


def _lookup(target: Tuple[Lookup, bool, Any], request: int, host: int, length: int, call_: int) -> int:
    lookup, takes_request, _ = target
    asked = DnsRequest(request, _callbacks.text(host, length), Call(call_))
    try:
        answer = lookup(asked) if takes_request else lookup(asked.host)
    finally:
        asked.call.end()
        if asked._kept is None:
            # What is kept without ``later`` answers BYWAY_E_BAD_HANDLE.
            asked._pointer = 0
    if asked._kept is not None:
        return _abi.BYWAY_PENDING
    if answer is None:
        return _abi.BYWAY_OK if takes_request else _abi.BYWAY_PASS
    words: List[str] = [answer] if isinstance(answer, str) else [str(ip) for ip in answer]
    raw = " ".join(words).encode()
    return int(lib.byway_dns_request_add_text(request, raw, len(raw), None))


def _dns_cancel(target: Tuple[Lookup, bool, Any], request_id: int) -> None:
    if target[2] is not None:
        target[2](request_id)


_LOOKUP = _callbacks.guarded(_abi.byway_dns_callbacks_lookup, _lookup)
_DNS_CANCEL = _callbacks.guarded(_abi.byway_dns_callbacks_on_cancel, _dns_cancel, None)
