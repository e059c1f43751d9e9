"""Where do I connect next? Addresses, proxies, resolvers, routes."""
from __future__ import annotations

import ctypes
import enum
import ipaddress
import time
from typing import Any, Callable, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi, _callbacks, errors
from ._core import Handle, call, check, lent, made, string, take_text
from ._library import getters, lib
from .engine import Engine
from .queue import Queue, own_queue

Ip = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


class ProxyKind(enum.IntEnum):
    """Where the name is resolved follows the kind: SOCKS4 and SOCKS5 here, SOCKS4A and SOCKS5H at the proxy."""

    DIRECT = _abi.BYWAY_PROXY_DIRECT
    HTTP = _abi.BYWAY_PROXY_HTTP
    HTTPS = _abi.BYWAY_PROXY_HTTPS
    SOCKS4 = _abi.BYWAY_PROXY_SOCKS4
    SOCKS4A = _abi.BYWAY_PROXY_SOCKS4A
    SOCKS5 = _abi.BYWAY_PROXY_SOCKS5
    SOCKS5H = _abi.BYWAY_PROXY_SOCKS5H


def _ip_from(value: _abi.byway_ip) -> Optional[Ip]:
    raw = bytes(value.bytes)
    if value.family == 4:
        return ipaddress.IPv4Address(raw[:4])
    if value.family == 6:
        return ipaddress.IPv6Address(raw)
    return None


def _ip_to(value: Union[str, Ip]) -> _abi.byway_ip:
    out = _abi.byway_ip()
    raw = str(value).encode()
    call(lib.byway_ip_parse, raw, len(raw), ctypes.addressof(out))
    return out


class Filter(Handle):
    """Judges target addresses: an allow and deny list of networks, or ``Filter.public()``."""

    __slots__ = ()
    _end = "byway_filter_release"

    def __init__(self, rules: Union[str, int]) -> None:
        if isinstance(rules, str):
            raw, out = rules.encode(), ctypes.c_void_p()
            call(lib.byway_filter_new, raw, len(raw), ctypes.addressof(out))
            rules = out.value or 0
        super().__init__(rules)

    @classmethod
    def public(cls) -> "Filter":
        """Only addresses of the public internet: the guard against requests forged to inner hosts."""
        return made(cls, lib.byway_filter_new_public)

    def allows(self, ip: Union[str, Ip]) -> bool:
        """True when the filter lets this address through."""
        denied = ctypes.c_int32()
        value = _ip_to(ip)
        check(lib.byway_filter_check(self.pointer, ctypes.addressof(value), ctypes.addressof(denied)))
        return not denied.value


class Proxy(Handle):
    """A proxy with its own credentials, which are shown nowhere."""

    __slots__ = ()
    _end = "byway_proxy_release"

    def __init__(
        self,
        kind: int,
        host: str = "",
        port: int = 0,
        *,
        ip: Union[str, Ip, None] = None,
        username: Optional[str] = None,
        password: str = "",
    ) -> None:
        raw, out = host.encode(), ctypes.c_void_p()
        if ip is None:
            call(lib.byway_proxy_new, kind, raw, len(raw), port, ctypes.addressof(out))
        else:
            value = _ip_to(ip)
            call(
                lib.byway_proxy_new_resolved, kind, raw, len(raw), ctypes.addressof(value), port, ctypes.addressof(out)
            )
        super().__init__(out.value or 0)
        if username is not None:
            user, secret, with_it = username.encode(), password.encode(), ctypes.c_void_p()
            call(
                lib.byway_proxy_with_credentials, self.pointer, user, len(user), secret, len(secret),
                ctypes.addressof(with_it),
            )
            self._finalizer()
            super().__init__(with_it.value or 0)

    @classmethod
    def _adopt(cls, pointer: int) -> "Proxy":
        proxy = cls.__new__(cls)
        Handle.__init__(proxy, pointer)
        return proxy

    @property
    def kind(self) -> ProxyKind:
        """DIRECT, HTTP, ..."""
        return ProxyKind(getters.byway_proxy_kind(self.pointer))

    @property
    def host(self) -> str:
        """Name or address as given; empty for DIRECT."""
        return lent(lib.byway_proxy_host, self.pointer)

    @property
    def port(self) -> int:
        """0 for DIRECT."""
        return int(getters.byway_proxy_port(self.pointer))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proxy) and bool(lib.byway_proxy_equals(self.pointer, other.pointer))

    def __hash__(self) -> int:
        return hash((self.kind, self.host, self.port))

    def __str__(self) -> str:
        return take_text(lib.byway_proxy_text, self.pointer)


# --- resolvers -------------------------------------------------------------------------------------------------------


class DnsRequest:
    """A question to a resolver, and the place for its answer. ``later()`` keeps it beyond the callback."""

    __slots__ = ("host", "_pointer", "_kept")

    def __init__(self, pointer: int, host: str) -> None:
        self.host = host
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
        """Adds addresses in order."""
        raw = " ".join(str(ip) for ip in ips).encode()
        call(lib.byway_dns_request_add_text, self._pointer, raw, len(raw))
        return self

    def family_done(self, family: int) -> None:
        """Says that all addresses of this family (4 or 6) are there."""
        check(lib.byway_dns_request_family_done(self._pointer, family))

    def finish(self) -> None:
        """The answer is complete."""
        check(lib.byway_dns_request_finish(self._pointer))

    def fail(self, message: str = "", *, code: int = _abi.BYWAY_E_UNKNOWN_HOST, host_code: int = 0) -> None:
        """There is no answer."""
        raw = message.encode()
        check(lib.byway_dns_request_fail(self._pointer, code, host_code, raw, len(raw)))


class _KeptDns(Handle):
    __slots__ = ()
    _end = "byway_dns_request_release"


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
        out = ctypes.c_void_p()
        call(lib.byway_dns_new, engine.pointer, ctypes.addressof(callbacks), ctypes.addressof(out))
        super().__init__(out.value or 0)

    @classmethod
    def _adopt(cls, pointer: Optional[int]) -> "Dns":
        dns = cls.__new__(cls)
        Handle.__init__(dns, pointer or 0)
        return dns

    @classmethod
    def system(cls, engine: Engine) -> "Dns":
        """getaddrinfo on the library's own bounded pool of threads."""
        out = ctypes.c_void_p()
        call(lib.byway_dns_new_system, engine.pointer, ctypes.addressof(out))
        return cls._adopt(out.value)

    @classmethod
    def hosts(cls, engine: Engine, text: str) -> "Dns":
        """A fixed table in the form of a hosts file."""
        raw, out = text.encode(), ctypes.c_void_p()
        call(lib.byway_dns_new_hosts, engine.pointer, raw, len(raw), ctypes.addressof(out))
        return cls._adopt(out.value)


def _lookup(target: Tuple[Lookup, bool, Any], request: int, host: int, length: int, _call: int) -> int:
    lookup, takes_request, _ = target
    asked = DnsRequest(request, _callbacks.text(host, length))
    answer = lookup(asked) if takes_request else lookup(asked.host)
    if asked._kept is not None:
        return _abi.BYWAY_PENDING
    if answer is None:
        return _abi.BYWAY_OK if takes_request else _abi.BYWAY_PASS
    raw = " ".join(str(ip) for ip in answer).encode()
    return int(lib.byway_dns_request_add_text(request, raw, len(raw), None))


def _dns_cancel(target: Tuple[Lookup, bool, Any], request_id: int) -> None:
    if target[2] is not None:
        target[2](request_id)


_LOOKUP = _callbacks.guarded(_abi.byway_dns_callbacks_lookup, _lookup)
_DNS_CANCEL = _callbacks.guarded(_abi.byway_dns_callbacks_on_cancel, _dns_cancel, None)


# --- proxy selectors -------------------------------------------------------------------------------------------------


class ProxySelector(Handle):
    """Chooses proxies: ``ProxySelector(engine, select)``, ``.direct(engine)`` or ``.fixed(engine, proxies)``.

    ``select`` gets a URI and returns proxies in the order to try them (``None`` in the list is DIRECT); returning None
    passes to the engine's default. ``connect_failed`` is told of failures of what it chose.
    """

    __slots__ = ()
    _end = "byway_proxy_selector_release"

    def __init__(
        self,
        engine: Engine,
        select: Callable[[str], Optional[Sequence[Optional[Proxy]]]],
        connect_failed: Optional[Callable[[str, "Route", int], None]] = None,
    ) -> None:
        callbacks = _abi.byway_proxy_selector_callbacks(
            ctypes.sizeof(_abi.byway_proxy_selector_callbacks), _callbacks.register((select, connect_failed)),
            _callbacks.destroy, _SELECT, _CONNECT_FAILED, _PROXY_CANCEL,
        )
        out = ctypes.c_void_p()
        call(lib.byway_proxy_selector_new, engine.pointer, ctypes.addressof(callbacks), ctypes.addressof(out))
        super().__init__(out.value or 0)

    @classmethod
    def _adopt(cls, pointer: Optional[int]) -> "ProxySelector":
        selector = cls.__new__(cls)
        Handle.__init__(selector, pointer or 0)
        return selector

    @classmethod
    def direct(cls, engine: Engine) -> "ProxySelector":
        """Never a proxy."""
        out = ctypes.c_void_p()
        call(lib.byway_proxy_selector_new_direct, engine.pointer, ctypes.addressof(out))
        return cls._adopt(out.value)

    @classmethod
    def environment(
        cls, engine: Engine, variables: Mapping[str, str], dialect: str = "byway"
    ) -> "ProxySelector":
        """What ``http_proxy``, ``NO_PROXY`` and their kin say; pass ``os.environ`` or any table. ``dialect`` names whose
        reading of NO_PROXY decides: ``byway``, ``curl``, ``go``, ``python``, ``chromium``, ``node``."""
        names, values, kept = _table(variables)
        raw, out = dialect.encode(), ctypes.c_void_p()
        call(
            lib.byway_proxy_selector_new_environment, engine.pointer, ctypes.addressof(names),
            ctypes.addressof(values), len(variables), raw, len(raw), ctypes.addressof(out),
        )
        del kept
        return cls._adopt(out.value)

    @classmethod
    def properties(
        cls, engine: Engine, properties: Mapping[str, str], *, web_sockets: bool = False
    ) -> "ProxySelector":
        """What Java's system properties say: ``http.proxyHost``, ``nonProxyHosts``, ``socksProxyHost`` and so on."""
        names, values, kept = _table(properties)
        out = ctypes.c_void_p()
        call(
            lib.byway_proxy_selector_new_properties, engine.pointer, ctypes.addressof(names),
            ctypes.addressof(values), len(properties), int(web_sockets), ctypes.addressof(out),
        )
        del kept
        return cls._adopt(out.value)

    @classmethod
    def script(cls, engine: Engine, source: str, name: str = "proxy.pac") -> "ProxySelector":
        """A proxy auto-configuration script. Raises UnsupportedError in a library built without scripts."""
        raw_name, raw, out = name.encode(), source.encode(), ctypes.c_void_p()
        call(
            lib.byway_proxy_selector_new_script, engine.pointer, raw_name, len(raw_name), raw, len(raw),
            ctypes.addressof(out),
        )
        return cls._adopt(out.value)

    @classmethod
    def fixed(cls, engine: Engine, proxies: Iterable[Proxy]) -> "ProxySelector":
        """Always these."""
        kept = list(proxies)
        array = (ctypes.c_void_p * len(kept))(*[proxy.pointer for proxy in kept])
        out = ctypes.c_void_p()
        call(
            lib.byway_proxy_selector_new_fixed, engine.pointer, ctypes.addressof(array), len(kept),
            ctypes.addressof(out),
        )
        return cls._adopt(out.value)


def _table(texts: Mapping[str, str]) -> Tuple[Any, Any, List[bytes]]:
    kept = [text.encode() for pair in texts.items() for text in pair]
    size = max(1, len(texts))
    names = (_abi.byway_str * size)(*[string(text) for text in kept[0::2]])
    values = (_abi.byway_str * size)(*[string(text) for text in kept[1::2]])
    return names, values, kept


def _select(target: Tuple[Any, Any], request: int, uri: int, length: int, _call: int) -> int:
    proxies = target[0](_callbacks.text(uri, length))
    if proxies is None:
        return _abi.BYWAY_PASS
    for proxy in proxies:
        if proxy is None:
            status = lib.byway_proxy_request_add_direct(request)
        else:
            status = lib.byway_proxy_request_add_proxy(request, proxy.pointer)
        if status < 0:
            return int(status)
    return _abi.BYWAY_OK


def _connect_failed(
    target: Tuple[Any, Any], uri: int, length: int, route: int, failure: int, _errno: int, _call: int
) -> None:
    if target[1] is not None:
        target[1](_callbacks.text(uri, length), Route._retained(route), failure)


def _proxy_cancel(_target: Tuple[Any, Any], _request_id: int) -> None:
    # Answers are always given in place, so there is nothing to call off.
    return None


_SELECT = _callbacks.guarded(_abi.byway_proxy_selector_callbacks_select, _select)
_CONNECT_FAILED = _callbacks.guarded(_abi.byway_proxy_selector_callbacks_connect_failed, _connect_failed, None)
_PROXY_CANCEL = _callbacks.guarded(_abi.byway_proxy_selector_callbacks_on_cancel, _proxy_cancel, None)


# --- addresses and routes --------------------------------------------------------------------------------------------


class Address(Handle):
    """Where a call wants to go: host, port, TLS, who chooses proxies and who resolves names. Immutable."""

    __slots__ = ("engine",)
    _end = "byway_address_release"

    def __init__(
        self,
        engine: Engine,
        host: str,
        port: int,
        *,
        tls: bool = False,
        scheme: str = "",
        direct: bool = False,
        proxy: Optional[Proxy] = None,
        proxy_selector: Optional[ProxySelector] = None,
        dns: Optional[Dns] = None,
        protocols: Sequence[str] = (),
        tls_identity: int = 0,
        tls_identity_bytes: bytes = b"",
        authenticator: int = 0,
    ) -> None:
        raw_scheme, raw_host = scheme.encode(), host.encode()
        raw_protocols = [protocol.encode() for protocol in protocols]
        array = (_abi.byway_str * max(1, len(raw_protocols)))(*[string(raw) for raw in raw_protocols])
        options = _abi.byway_address_options()
        lib.byway_address_options_init(ctypes.addressof(options))
        options.scheme, options.host, options.port = string(raw_scheme), string(raw_host), port
        options.flags = (_abi.BYWAY_ADDRESS_TLS if tls else 0) | (_abi.BYWAY_ADDRESS_DIRECT if direct else 0)
        options.proxy = proxy.pointer if proxy is not None else None
        options.proxy_selector = proxy_selector.pointer if proxy_selector is not None else None
        options.dns = dns.pointer if dns is not None else None
        options.protocols, options.protocols_len = ctypes.addressof(array), len(raw_protocols)
        options.tls_identity, options.authenticator = tls_identity, authenticator
        options.tls_identity_bytes = string(tls_identity_bytes)
        out = ctypes.c_void_p()
        call(lib.byway_address_new, engine.pointer, ctypes.addressof(options), ctypes.addressof(out))
        super().__init__(out.value or 0)
        self.engine = engine

    @property
    def host(self) -> str:
        """Canonical host."""
        return lent(lib.byway_address_host, self.pointer)

    @property
    def port(self) -> int:
        """1..65535."""
        return int(getters.byway_address_port(self.pointer))

    @property
    def uri(self) -> str:
        """What a proxy selector is asked with."""
        return lent(lib.byway_address_uri, self.pointer)

    def equal_non_host(self, other: "Address") -> bool:
        """Equal in everything that decides whether a pooled connection fits, but for the host."""
        return bool(lib.byway_address_equal_non_host(self.pointer, other.pointer))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and bool(lib.byway_address_equals(self.pointer, other.pointer))

    def __hash__(self) -> int:
        return int(lib.byway_address_hash(self.pointer))

    def __str__(self) -> str:
        return take_text(lib.byway_address_text, self.pointer)


class Hop(NamedTuple):
    """One route as plain values, read in one crossing."""

    ip: Optional[Ip]
    port: int
    scope_id: int
    target_ip: Optional[Ip]
    target_port: int
    proxy_kind: ProxyKind
    flags: int

    @property
    def postponed(self) -> bool:
        """It failed before and stands behind the others."""
        return bool(self.flags & _abi.BYWAY_ROUTE_POSTPONED)

    @property
    def requires_tunnel(self) -> bool:
        """An HTTP CONNECT is needed."""
        return bool(self.flags & _abi.BYWAY_ROUTE_REQUIRES_TUNNEL)


_KINDS = {int(kind): kind for kind in ProxyKind}
_RECORD_SIZE = ctypes.sizeof(_abi.byway_route_record)


def _hop(record: Any) -> Hop:
    return Hop(
        _ip_from(record.hop_ip), record.hop_port, record.hop_ip.scope_id, _ip_from(record.target_ip),
        record.target_port, _KINDS[record.proxy_kind], record.flags,
    )


class Route(Handle):
    """One way to connect. A value: it holds no engine and no callback, and may be pooled for as long as one likes."""

    __slots__ = ()
    _end = "byway_route_release"

    @classmethod
    def _retained(cls, borrowed: int) -> "Route":
        return cls(lib.byway_route_retain(borrowed))

    @property
    def hop(self) -> Tuple[Optional[Ip], int]:
        """Address and port that ``connect`` gets."""
        ip, port = _abi.byway_ip(), ctypes.c_uint16()
        check(lib.byway_route_hop(self.pointer, ctypes.addressof(ip), ctypes.addressof(port)))
        return _ip_from(ip), port.value

    @property
    def sockaddr(self) -> Tuple[Any, ...]:
        """Argument for ``socket.connect``: ``(host, port)`` or ``(host, port, flowinfo, scope_id)``."""
        ip, port = _abi.byway_ip(), ctypes.c_uint16()
        check(lib.byway_route_hop(self.pointer, ctypes.addressof(ip), ctypes.addressof(port)))
        if ip.family == 6:
            return str(_ip_from(ip)), port.value, 0, ip.scope_id
        return str(_ip_from(ip)), port.value

    @property
    def target(self) -> Tuple[str, Optional[Ip], int]:
        """What the proxy or TLS is told: name, resolved address if there is one, port."""
        name, ip, port = _abi.byway_str(), _abi.byway_ip(), ctypes.c_uint16()
        check(
            lib.byway_route_target(
                self.pointer, ctypes.addressof(name), ctypes.addressof(ip), ctypes.addressof(port)
            )
        )
        return ctypes.string_at(name.data, name.len).decode(), _ip_from(ip), port.value

    @property
    def proxy(self) -> Proxy:
        """The proxy it leads through; kind DIRECT when there is none."""
        out = ctypes.c_void_p()
        call(lib.byway_route_proxy, self.pointer, ctypes.addressof(out))
        return Proxy._adopt(out.value) if out.value else Proxy(ProxyKind.DIRECT)

    @property
    def proxy_kind(self) -> ProxyKind:
        """Kind of the proxy."""
        return ProxyKind(getters.byway_route_proxy_kind(self.pointer))

    @property
    def requires_tunnel(self) -> bool:
        """An HTTP CONNECT is needed."""
        return bool(getters.byway_route_requires_tunnel(self.pointer))

    @property
    def flags(self) -> int:
        """``BYWAY_ROUTE_*``."""
        return int(getters.byway_route_flags(self.pointer))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Route) and bool(lib.byway_route_equals(self.pointer, other.pointer))

    def __hash__(self) -> int:
        return int(lib.byway_route_hash(self.pointer))

    def __str__(self) -> str:
        return take_text(lib.byway_route_text, self.pointer)


class Selection(Handle):
    """Routes to try now, in order. Iterates over ``Route``; ``hops`` reads all of them in one crossing."""

    __slots__ = ()
    _end = "byway_selection_free"

    def __len__(self) -> int:
        return int(lib.byway_selection_len(self.pointer))

    def __getitem__(self, index: int) -> Route:
        count = len(self)
        at = index + count if index < 0 else index
        borrowed = lib.byway_selection_at(self.pointer, at) if 0 <= at < count else None
        if not borrowed:
            raise IndexError(index)
        return Route._retained(borrowed)

    def __iter__(self) -> Iterator[Route]:
        return (self[i] for i in range(len(self)))

    def hops(self) -> List[Hop]:
        """Every route as plain values."""
        total, room = ctypes.c_size_t(), 16
        while True:
            records = (_abi.byway_route_record * room)()
            check(
                lib.byway_selection_records(
                    self.pointer, ctypes.addressof(records), _RECORD_SIZE, room, ctypes.addressof(total)
                )
            )
            if total.value <= room:
                return [_hop(record) for record in records[: total.value]]
            room = total.value


class Selector(Handle):
    """Gives Selections of routes; iterate over it, or call ``next``.

    Waiting happens in Python's own ``select`` on a queue, so Ctrl-C works and other threads run.
    """

    __slots__ = ("_queue", "_address")
    _end = "byway_selector_free"

    def __init__(self, address: Address, *, tag: int = 0, queue: Optional[Queue] = None, early: bool = False) -> None:
        self._queue = queue if queue is not None else own_queue()
        self._address = address
        options = _abi.byway_selector_options(
            _SELECTOR_OPTIONS_SIZE, tag, self._queue.pointer, _abi.BYWAY_SELECTOR_EARLY if early else 0, 0
        )
        out = ctypes.c_void_p()
        call(
            lib.byway_selector_new, address.engine.pointer, address.pointer, ctypes.addressof(options),
            ctypes.addressof(out),
        )
        super().__init__(out.value or 0)

    def poll(self) -> Optional[Selection]:
        """The next Selection if it is there now. None when answers are awaited: a record on the queue will tell.

        Raises StopIteration when nothing is left.
        """
        out = ctypes.c_void_p()
        status = call(lib.byway_selector_poll_next, self.pointer, ctypes.addressof(out))
        if status == _abi.BYWAY_DONE:
            raise StopIteration
        return Selection(out.value or 0) if status == _abi.BYWAY_OK else None

    def next(self, timeout: Optional[float] = None) -> Optional[Selection]:
        """The next Selection; None when nothing is left. ``timeout`` in seconds, None for 30 s.

        Raises TimeoutError; a further call goes on waiting for the same answers.
        """
        end = time.monotonic() + (30.0 if timeout is None else timeout)
        while True:
            try:
                selection = self.poll()
            except StopIteration:
                return None
            if selection is not None:
                return selection
            left = end - time.monotonic()
            if left <= 0:
                raise errors.TimeoutError(_abi.BYWAY_E_TIMEOUT)
            self._queue.poll(left)

    def __iter__(self) -> Iterator[Selection]:
        while True:
            selection = self.next()
            if selection is None:
                return
            yield selection

    @property
    def may_have_next(self) -> bool:
        """False when ``next`` would say that nothing is left. Asks nobody."""
        return bool(lib.byway_selector_may_have_next(self.pointer))

    @property
    def id(self) -> int:
        """The number completion records and events carry."""
        return int(lib.byway_selector_id(self.pointer))

    def cancel(self) -> None:
        """Ends this for good; a running or later call raises CanceledError. Any thread."""
        check(lib.byway_selector_cancel(self.pointer))

    def explain(self, json: bool = False) -> str:
        """The whole decision so far: what was offered, asked, answered, postponed and filtered."""
        kind = _abi.BYWAY_EXPLAIN_JSON if json else _abi.BYWAY_EXPLAIN_TEXT
        return take_text(lib.byway_selector_explain, self.pointer, kind)


_SELECTOR_OPTIONS_SIZE = ctypes.sizeof(_abi.byway_selector_options)


def plan(address: Address, tag: int = 0) -> List[Hop]:
    """Every route of an address in one call, what failed before at the end. Answers must come in place."""
    options = _abi.byway_selector_options(_SELECTOR_OPTIONS_SIZE, tag, None, 0, 0)
    total, room = ctypes.c_size_t(), 32
    while True:
        records = (_abi.byway_route_record * room)()
        call(
            lib.byway_selector_plan, address.engine.pointer, address.pointer, ctypes.addressof(options),
            ctypes.addressof(records), _RECORD_SIZE, room, ctypes.addressof(total),
        )
        if total.value <= room:
            return [_hop(record) for record in records[: total.value]]
        room = total.value


class Event(NamedTuple):
    """What a listener is told."""

    kind: int
    status: int
    tag: int
    selector_id: int
    time_ns: int
    subject: str
    route: Optional[Route]
    proxies: Tuple[str, ...]
    ips: Tuple[Optional[Ip], ...]
    error: Optional[errors.BywayError]

    @classmethod
    def read(cls, address: int) -> "Event":
        """Copies a ``byway_event`` that lives until the callback returns."""
        raw = _abi.byway_event.from_address(address)
        proxies: List[str] = []
        if raw.proxies_len:
            for pointer in (ctypes.c_void_p * raw.proxies_len).from_address(raw.proxies):
                proxies.append(take_text(lib.byway_proxy_text, pointer) if pointer else "DIRECT")
        ips = (_abi.byway_ip * raw.ips_len).from_address(raw.ips) if raw.ips_len else ()
        return cls(
            raw.kind, raw.status, raw.tag, raw.selector_id, raw.time_ns,
            _callbacks.text(raw.subject.data, raw.subject.len),
            Route._retained(raw.route) if raw.route else None, tuple(proxies), tuple(_ip_from(ip) for ip in ips),
            errors.read(raw.error) if raw.error else None,
        )
