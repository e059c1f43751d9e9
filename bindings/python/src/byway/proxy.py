"""Proxies, and who chooses them."""
from __future__ import annotations

import ctypes
import enum
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi, _callbacks
from ._core import Handle, array_of, call, check, give, lent, made, string, take_text
from ._library import getters, lib
from .engine import Call, Engine
from .ip import Ip, ip_from, ip_to

if TYPE_CHECKING:
    from .route import Route


class ProxyKind(enum.IntEnum):
    """Where the name is resolved follows the kind: SOCKS4 and SOCKS5 here, SOCKS4A and SOCKS5H at the proxy."""

    DIRECT = _abi.BYWAY_PROXY_DIRECT
    HTTP = _abi.BYWAY_PROXY_HTTP
    HTTPS = _abi.BYWAY_PROXY_HTTPS
    SOCKS4 = _abi.BYWAY_PROXY_SOCKS4
    SOCKS4A = _abi.BYWAY_PROXY_SOCKS4A
    SOCKS5 = _abi.BYWAY_PROXY_SOCKS5
    SOCKS5H = _abi.BYWAY_PROXY_SOCKS5H


class Proxy(Handle):
    """A proxy with its own credentials, which are shown nowhere. With ``ip`` this address is used and no other."""

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
        password: Optional[str] = "",
    ) -> None:
        raw = host.encode()
        if ip is None:
            super().__init__(give(lib.byway_proxy_new, kind, raw, len(raw), port))
        else:
            value = ip_to(ip)
            super().__init__(
                give(lib.byway_proxy_new_resolved, kind, raw, len(raw), ctypes.addressof(value), port)
            )
        if username is not None:
            user, secret = username.encode(), None if password is None else password.encode()
            with_them = give(
                lib.byway_proxy_with_credentials, self.pointer, user, len(user), secret,
                0 if secret is None else len(secret),
            )
            self.close()
            self.pointer = with_them

    @property
    def kind(self) -> ProxyKind:
        """HTTP, SOCKS5, ..."""
        return ProxyKind(getters.byway_proxy_kind(self.pointer))

    @property
    def host(self) -> str:
        """Canonical name or address, without brackets."""
        return lent(lib.byway_proxy_host, self.pointer)

    @property
    def port(self) -> int:
        """1..65535."""
        return int(getters.byway_proxy_port(self.pointer))

    @property
    def ip(self) -> Optional[Ip]:
        """The one address used, when it was made with one or its host is a literal; None when the name is resolved."""
        out = _abi.byway_ip()
        check(lib.byway_proxy_ip(self.pointer, ctypes.addressof(out)))
        return ip_from(out)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proxy) and bool(lib.byway_proxy_equals(self.pointer, other.pointer))

    def __hash__(self) -> int:
        return hash((self.kind, self.host, self.port))

    def __str__(self) -> str:
        return take_text(lib.byway_proxy_text, self.pointer)

    def __repr__(self) -> str:
        return "<byway.Proxy closed>" if self.closed else f"<byway.Proxy {self}>"


class ProxyRequest:
    """A question to a proxy selector, and the place for its answer. ``later()`` keeps it beyond the callback."""

    __slots__ = ("uri", "call", "_pointer", "_kept")

    def __init__(self, pointer: int, uri: str, call: Call) -> None:
        self.uri = uri
        #: The operation that asks; only until the callback returns.
        self.call = call
        self._pointer = pointer
        self._kept: Optional["_KeptProxy"] = None

    @property
    def id(self) -> int:
        """The number ``on_cancel`` names."""
        return int(lib.byway_proxy_request_id(self._pointer))

    @property
    def canceled(self) -> bool:
        """True when nobody waits for the answer any more."""
        return bool(lib.byway_proxy_request_is_canceled(self._pointer))

    def later(self) -> "ProxyRequest":
        """Says that ``finish`` or ``fail`` will be called after the callback has returned, from any thread."""
        if self._kept is None:
            self._kept = _KeptProxy(lib.byway_proxy_request_retain(self._pointer))
        return self

    def add(self, proxy: Optional[Proxy]) -> "ProxyRequest":
        """Adds a proxy, with its credentials; None is DIRECT."""
        if proxy is None:
            check(lib.byway_proxy_request_add_direct(self._pointer))
        else:
            check(lib.byway_proxy_request_add_proxy(self._pointer, proxy.pointer))
        return self

    def add_place(self, kind: int, host: str, port: int) -> "ProxyRequest":
        """Adds a proxy by its place. A port that cannot be connected to is taken: that entry fails when its turn comes."""
        raw = host.encode()
        call(lib.byway_proxy_request_add, self._pointer, kind, raw, len(raw), port)
        return self

    def finish(self) -> None:
        """The list is complete."""
        check(lib.byway_proxy_request_finish(self._pointer))

    def fail(self, message: str = "", *, code: int = _abi.BYWAY_E_PROXY_SELECTOR, host_code: int = 0) -> None:
        """No proxies can be named."""
        raw = message.encode()
        check(lib.byway_proxy_request_fail(self._pointer, code, host_code, raw, len(raw)))


class _KeptProxy(Handle):
    __slots__ = ()
    _end = "byway_proxy_request_release"


Select = Callable[..., Any]


class ProxySelector(Handle):
    """Chooses proxies: ``ProxySelector(engine, select)``, or one of the class methods.

    ``select`` gets a URI and returns proxies in the order to try them (``None`` in the list is DIRECT); or, when it is
    declared to take a ``ProxyRequest`` (``takes_request=True``), answers through that, now or later. Returning None
    passes to the engine's default. ``connect_failed`` is told of failures of what it chose: URI, route, failure.
    """

    __slots__ = ()
    _end = "byway_proxy_selector_release"

    def __init__(
        self,
        engine: Engine,
        select: Select,
        connect_failed: Optional[Callable[[str, "Route", int], None]] = None,
        *,
        takes_request: bool = False,
        on_cancel: Optional[Callable[[int], None]] = None,
    ) -> None:
        callbacks = _abi.byway_proxy_selector_callbacks(
            ctypes.sizeof(_abi.byway_proxy_selector_callbacks),
            _callbacks.register((select, takes_request, connect_failed, on_cancel)),
            _callbacks.destroy, _SELECT, _CONNECT_FAILED, _PROXY_CANCEL,
        )
        super().__init__(give(lib.byway_proxy_selector_new, engine.pointer, ctypes.addressof(callbacks)))

    @classmethod
    def direct(cls, engine: Engine) -> "ProxySelector":
        """Never a proxy."""
        return made(cls, lib.byway_proxy_selector_new_direct, engine.pointer)

    @classmethod
    def fixed(cls, engine: Engine, proxies: Iterable[Optional[Proxy]]) -> "ProxySelector":
        """Always these; None is DIRECT."""
        kept = list(proxies)
        array = array_of(ctypes.c_void_p, [None if proxy is None else proxy.pointer for proxy in kept])
        return made(cls, lib.byway_proxy_selector_new_fixed, engine.pointer, ctypes.addressof(array), len(kept))

    @classmethod
    def environment(
        cls, engine: Engine, variables: Mapping[str, str], dialect: str = "byway"
    ) -> "ProxySelector":
        """What ``http_proxy``, ``NO_PROXY`` and their kin say; pass ``os.environ`` or any table. ``dialect`` names whose
        reading of NO_PROXY decides: ``byway``, ``curl``, ``go``, ``python``, ``chromium``, ``node``."""
        names, values, kept = _table(variables)
        raw = dialect.encode()
        selector = made(
            cls, lib.byway_proxy_selector_new_environment, engine.pointer, ctypes.addressof(names),
            ctypes.addressof(values), len(variables), raw, len(raw),
        )
        del kept
        return selector

    @classmethod
    def properties(
        cls, engine: Engine, properties: Mapping[str, str], *, web_sockets: bool = False
    ) -> "ProxySelector":
        """What Java's system properties say: ``http.proxyHost``, ``nonProxyHosts``, ``socksProxyHost`` and so on."""
        names, values, kept = _table(properties)
        selector = made(
            cls, lib.byway_proxy_selector_new_properties, engine.pointer, ctypes.addressof(names),
            ctypes.addressof(values), len(properties), int(web_sockets),
        )
        del kept
        return selector

    @classmethod
    def script(cls, engine: Engine, source: str, name: str = "proxy.pac") -> "ProxySelector":
        """A proxy auto-configuration script. Raises UnsupportedError in a library built without scripts."""
        raw_name, raw = name.encode(), source.encode()
        return made(cls, lib.byway_proxy_selector_new_script, engine.pointer, raw_name, len(raw_name), raw, len(raw))


def _table(texts: Mapping[str, str]) -> Tuple[Any, Any, List[bytes]]:
    kept = [text.encode() for pair in texts.items() for text in pair]
    size = max(1, len(texts))
    names = (_abi.byway_str * size)(*[string(text) for text in kept[0::2]])
    values = (_abi.byway_str * size)(*[string(text) for text in kept[1::2]])
    return names, values, kept


def _select(target: Tuple[Any, ...], request: int, uri: int, length: int, call_: int) -> int:
    select, takes_request, _, _ = target
    asked = ProxyRequest(request, _callbacks.text(uri, length), Call(call_))
    try:
        proxies: Optional[Sequence[Optional[Proxy]]] = select(asked) if takes_request else select(asked.uri)
        if asked._kept is None:
            for proxy in proxies or ():
                asked.add(proxy)
    finally:
        asked.call.end()
        if asked._kept is None:
            # What is kept without ``later`` answers BYWAY_E_BAD_HANDLE.
            asked._pointer = 0
    if asked._kept is not None:
        return _abi.BYWAY_PENDING
    return _abi.BYWAY_PASS if proxies is None and not takes_request else _abi.BYWAY_OK


def _connect_failed(
    target: Tuple[Any, ...], uri: int, length: int, route: int, failure: int, _errno: int, _call: int
) -> None:
    from .failure import Failure
    from .route import Route

    if target[2] is not None:
        target[2](_callbacks.text(uri, length), Route._retained(route), Failure(failure))


def _proxy_cancel(target: Tuple[Any, ...], request_id: int) -> None:
    if target[3] is not None:
        target[3](request_id)


_SELECT = _callbacks.guarded(_abi.byway_proxy_selector_callbacks_select, _select)
_CONNECT_FAILED = _callbacks.guarded(_abi.byway_proxy_selector_callbacks_connect_failed, _connect_failed, None)
_PROXY_CANCEL = _callbacks.guarded(_abi.byway_proxy_selector_callbacks_on_cancel, _proxy_cancel, None)
