"""Where a call wants to go, and one way to get there."""
from __future__ import annotations

import ctypes
import enum
import socket
import struct
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi
from ._core import Handle, array_of, call, check, give, lend, lent, lock, string, strings, take_text
from ._library import getters, lib
from .dns import Dns
from .engine import Engine
from .ip import Ip, ip_from, ip_of, ip_to
from .proxy import Proxy, ProxyKind, ProxySelector


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
        array = strings(raw_protocols)
        options = _abi.byway_address_options()
        lib.byway_address_options_init(ctypes.addressof(options))
        options.scheme, options.host, options.port = string(raw_scheme), string(raw_host), port
        options.flags = (_abi.BYWAY_ADDRESS_TLS if tls else 0) | (_abi.BYWAY_ADDRESS_DIRECT if direct else 0)
        lend(options, proxy=proxy, proxy_selector=proxy_selector, dns=dns)
        options.protocols, options.protocols_len = ctypes.addressof(array), len(raw_protocols)
        options.tls_identity, options.authenticator = tls_identity, authenticator
        options.tls_identity_bytes = string(tls_identity_bytes)
        super().__init__(give(lib.byway_address_new, engine.pointer, ctypes.addressof(options)))
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

    def __repr__(self) -> str:
        return "<byway.Address closed>" if self.closed else f"<byway.Address {self}>"


#: A ``byway_route_record`` in one step. By position: hop's bytes, scope and family; the same of the target; hop's port,
#: target's port, proxy kind, flags; address and length of host and of the proxy's host.
RECORD = struct.Struct("=16sIB3x16sIB3xHHiI4xQQQQ")
assert RECORD.size == ctypes.sizeof(_abi.byway_route_record)
_KINDS = {int(kind): kind for kind in ProxyKind}
_TRAITS = (
    (_abi.BYWAY_ROUTE_POSTPONED, "postponed"),
    (_abi.BYWAY_ROUTE_REQUIRES_TUNNEL, "tunnel"),
    (_abi.BYWAY_ROUTE_TARGET_NOT_CHECKED, "target not checked"),
)


class Hop:
    """One route as plain values, read in one crossing."""

    __slots__ = ("_record",)
    _record: Tuple[Any, ...]

    @property
    def ip(self) -> Optional[Ip]:
        """Address that ``connect`` gets; None for a hop nobody resolved."""
        record = self._record
        return ip_of(record[2], record[0])

    @property
    def port(self) -> int:
        """Port that ``connect`` gets."""
        return int(self._record[6])

    @property
    def scope_id(self) -> int:
        """Interface of a link-local IPv6 hop, else 0."""
        return int(self._record[1])

    @property
    def sockaddr(self) -> Tuple[Any, ...]:
        """Argument for ``socket.connect``: ``(host, port)`` or ``(host, port, flowinfo, scope_id)``. Raises ValueError
        for a hop nobody resolved."""
        record = self._record
        family = record[2]
        if family == 4:
            return socket.inet_ntop(socket.AF_INET, record[0][:4]), record[6]
        if family == 6:
            return socket.inet_ntop(socket.AF_INET6, record[0]), record[6], 0, record[1]
        raise ValueError("the hop of this route is not resolved")

    @property
    def target_ip(self) -> Optional[Ip]:
        """Resolved target behind a SOCKS4 or SOCKS5 proxy; None when the target is the hop or a name."""
        record = self._record
        return ip_of(record[5], record[3])

    @property
    def target_port(self) -> int:
        """The target's port."""
        return int(self._record[7])

    @property
    def proxy_kind(self) -> ProxyKind:
        """Kind of the proxy; DIRECT when there is none."""
        return _KINDS[self._record[8]]

    @property
    def flags(self) -> int:
        """``BYWAY_ROUTE_*``."""
        return int(self._record[9])

    @property
    def postponed(self) -> bool:
        """It failed before and stands behind the others."""
        return bool(self._record[9] & _abi.BYWAY_ROUTE_POSTPONED)

    @property
    def requires_tunnel(self) -> bool:
        """An HTTP CONNECT is needed."""
        return bool(self._record[9] & _abi.BYWAY_ROUTE_REQUIRES_TUNNEL)

    def __eq__(self, other: object) -> bool:
        # Behind these a record has addresses of texts.
        return type(other) is type(self) and isinstance(other, Hop) and self._record[:10] == other._record[:10]

    def __hash__(self) -> int:
        return hash(self._record[:10])

    def _traits(self) -> str:
        flags = self._record[9]
        return "".join(f", {text}" for bit, text in _TRAITS if flags & bit)

    def _place(self) -> str:
        ip = self.ip
        place = f"[{ip}]" if ip is not None and ip.version == 6 else str(ip or "unresolved")
        return f"{place}:{self.port}"

    def __repr__(self) -> str:
        by = "" if self.proxy_kind == ProxyKind.DIRECT else f" by {self.proxy_kind.name}"
        return f"<byway.Hop {self._place()}{by}{self._traits()}>"


def hops_from(records: Any, count: int) -> List[Hop]:
    """Plain values from a buffer of records."""
    out = []
    for record in RECORD.iter_unpack(memoryview(records).cast("B")[: count * RECORD.size]):
        hop = Hop()
        hop._record = record
        out.append(hop)
    return out


class Service(NamedTuple):
    """HTTPS or SVCB metadata that came with the addresses."""

    #: ALPN ids in order.
    alpn: Tuple[str, ...]
    #: 0 when the record has none.
    port: int
    #: Encrypted ClientHello configuration list.
    ech: bytes
    #: Address hints.
    hints: Tuple[Ip, ...] = ()


class NoCoalescing(enum.IntEnum):
    """Why a live connection must not serve another address."""

    OTHER_ADDRESS = _abi.BYWAY_NO_COALESCING_OTHER_ADDRESS
    NOT_MULTIPLEXED = _abi.BYWAY_NO_COALESCING_NOT_MULTIPLEXED
    REFUSED_BEFORE = _abi.BYWAY_NO_COALESCING_REFUSED_BEFORE
    NO_SHARED_IP = _abi.BYWAY_NO_COALESCING_NO_SHARED_IP
    NOT_VERIFIED = _abi.BYWAY_NO_COALESCING_NOT_VERIFIED


class Peer(enum.IntFlag):
    """What the host knows of the peer of a live connection."""

    MULTIPLEXED = _abi.BYWAY_PEER_MULTIPLEXED
    DEFAULT_VERIFICATION = _abi.BYWAY_PEER_DEFAULT_VERIFICATION
    CERTIFICATE_COVERS_HOST = _abi.BYWAY_PEER_CERTIFICATE_COVERS_HOST
    PINS_HOLD = _abi.BYWAY_PEER_PINS_HOLD
    REFUSED_BEFORE = _abi.BYWAY_PEER_REFUSED_BEFORE


#: A Selection is exclusive in the library; its routes may be used from any thread. Nothing is done under this lock but
#: one call of a few loads.
exclusive = lock()


class _Kept(Handle):
    __slots__ = ()
    _end = "byway_route_release"


class Route(Hop):
    """One way to connect. A value: it holds no engine and no callback, and may be pooled for as long as one likes.

    Out of a Selection it is a record and a place there; the library is asked for more only when more is wanted.
    """

    __slots__ = ("_owner", "_index")
    #: The Selection it came from, with ``_index`` its place there; or what keeps it, with ``_index`` -1.
    _owner: Handle
    _index: int

    def __init__(
        self,
        address: Address,
        proxy: Optional[Proxy] = None,
        ip: Union[str, Ip, None] = None,
        port: Optional[int] = None,
    ) -> None:
        """A route from its parts, for hosts that keep routes of their own: hop ``ip`` and ``port`` (default: the
        proxy's or the address's); without ``ip`` the hop is not resolved."""
        hop = None if ip is None else ip_to(ip)
        if port is None:
            port = (address if proxy is None else proxy).port
        self._index = -1
        self._owner = _Kept(
            give(
                lib.byway_route_new, address.pointer, None if proxy is None else proxy.pointer,
                None if hop is None else ctypes.addressof(hop), port,
            )
        )

    @classmethod
    def _adopt(cls, pointer: Optional[int]) -> "Route":
        route = cls.__new__(cls)
        route._owner, route._index = _Kept(pointer or 0), -1
        return route

    @classmethod
    def _retained(cls, borrowed: int) -> "Route":
        return cls._adopt(getters.byway_route_retain(borrowed))

    @property
    def pointer(self) -> int:
        """Address of the handle, as long as this object lives."""
        if self._index < 0:
            return self._owner.pointer
        with exclusive:
            found = getters.byway_selection_at(self._owner.pointer, self._index)
            if not found:
                # In a forked child; the Selection says so.
                total = ctypes.c_size_t()
                check(
                    getters.byway_selection_records(self._owner.pointer, None, RECORD.size, 0, ctypes.addressof(total))
                )
        return int(found or 0)

    def __getattr__(self, name: str) -> Any:
        # Only asked for what is not there: the record of a route that did not come in one.
        if name == "_record":
            self._record = _read(self.pointer)
            return self._record
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def hop(self) -> Tuple[Optional[Ip], int]:
        """Address and port that ``connect`` gets."""
        return self.ip, self.port

    @property
    def raw_sockaddr(self) -> bytes:
        """A ``struct sockaddr_in`` or ``sockaddr_in6``, for code that calls ``connect(2)`` itself."""
        room, size = ctypes.create_string_buffer(128), ctypes.c_size_t()
        check(lib.byway_route_sockaddr(self.pointer, ctypes.addressof(room), 128, ctypes.addressof(size)))
        return room.raw[: size.value]

    @property
    def target(self) -> Tuple[str, Optional[Ip], int]:
        """What the proxy or TLS is told: name, resolved address if there is one, port."""
        name, ip, port = _abi.byway_str(), _abi.byway_ip(), ctypes.c_uint16()
        check(
            lib.byway_route_target(self.pointer, ctypes.addressof(name), ctypes.addressof(ip), ctypes.addressof(port))
        )
        return ctypes.string_at(name.data, name.len).decode(), ip_from(ip), port.value

    @property
    def socket_address(self) -> Tuple[Optional[Ip], int]:
        """OkHttp's ``socketAddress``: the hop; behind SOCKS the unresolved origin (None) and its port."""
        ip, port = _abi.byway_ip(), ctypes.c_uint16()
        check(lib.byway_route_socket_address(self.pointer, ctypes.addressof(ip), ctypes.addressof(port)))
        return ip_from(ip), port.value

    @property
    def proxy(self) -> Optional[Proxy]:
        """The proxy it leads through; None for DIRECT."""
        found = give(lib.byway_route_proxy, self.pointer)
        return Proxy._adopt(found) if found else None

    @property
    def service(self) -> Optional[Service]:
        """HTTPS or SVCB metadata of the name that was resolved, None when there is none."""
        ech, port, name = _abi.byway_str(), ctypes.c_uint16(), _abi.byway_str()
        pointer = self.pointer
        if check(lib.byway_route_service(pointer, ctypes.addressof(ech), ctypes.addressof(port))) == _abi.BYWAY_DONE:
            return None
        alpn: List[str] = []
        while lib.byway_route_service_alpn_at(pointer, len(alpn), ctypes.addressof(name)) == _abi.BYWAY_OK:
            alpn.append(ctypes.string_at(name.data, name.len).decode("latin-1"))
        total, room = ctypes.c_size_t(), 0
        hints = (_abi.byway_ip * 0)()
        while True:
            check(
                lib.byway_route_service_hints(
                    pointer, ctypes.addressof(hints), ctypes.sizeof(_abi.byway_ip), room, ctypes.addressof(total)
                )
            )
            if total.value <= room:
                break
            room = total.value
            hints = (_abi.byway_ip * room)()
        found = tuple(ip for ip in map(ip_from, hints) if ip is not None)
        return Service(tuple(alpn), port.value, ctypes.string_at(ech.data, ech.len) if ech.len else b"", found)

    def coalesces(self, wanted: Address, routes: Sequence["Route"], peer: Peer) -> Optional[NoCoalescing]:
        """May a live connection made over this route serve ``wanted``, whose own routes are ``routes``? None when it may,
        else why not."""
        array = array_of(ctypes.c_void_p, [route.pointer for route in routes])
        known, why = _abi.byway_peer(ctypes.sizeof(_abi.byway_peer), peer, 0), ctypes.c_int32()
        call(
            lib.byway_route_coalesces, self.pointer, wanted.pointer, ctypes.addressof(array), len(routes),
            ctypes.addressof(known), ctypes.addressof(why),
        )
        return NoCoalescing(why.value) if why.value else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Route) and bool(lib.byway_route_equals(self.pointer, other.pointer))

    def __hash__(self) -> int:
        return int(lib.byway_route_hash(self.pointer))

    def __str__(self) -> str:
        return take_text(lib.byway_route_text, self.pointer)

    def __repr__(self) -> str:
        return f"<byway.Route {self}{self._traits()}>"


def _read(pointer: int) -> Tuple[Any, ...]:
    """What a record holds, by getters: for routes that did not come in one."""
    name, hop, target = _abi.byway_str(), _abi.byway_ip(), _abi.byway_ip()
    port, target_port = ctypes.c_uint16(), ctypes.c_uint16()
    check(getters.byway_route_hop(pointer, ctypes.addressof(hop), ctypes.addressof(port)))
    check(
        getters.byway_route_target(
            pointer, ctypes.addressof(name), ctypes.addressof(target), ctypes.addressof(target_port)
        )
    )
    kind, flags = getters.byway_route_proxy_kind(pointer), getters.byway_route_flags(pointer)
    if getters.byway_route_requires_tunnel(pointer):
        flags |= _abi.BYWAY_ROUTE_REQUIRES_TUNNEL
    # A record's target is empty where the target is the hop.
    behind = kind in (ProxyKind.SOCKS4, ProxyKind.SOCKS5)
    return (
        bytes(hop.bytes), hop.scope_id, hop.family,
        *((bytes(target.bytes), target.scope_id, target.family) if behind else (bytes(16), 0, 0)),
        port.value, target_port.value, kind, flags,
    )
