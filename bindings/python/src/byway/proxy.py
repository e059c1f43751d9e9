"""Proxies, and who chooses them."""
from __future__ import annotations

import ctypes
import enum
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi, _callbacks
from ._core import Handle, array_of, call, check, give, lent, made, string, strings, take_text
from ._library import getters, lib
from .engine import Call, Engine
from .ip import Ip, ip_from, ip_to
from .proxy_settings import (
    BypassFlag,
    BypassStyle,
    Fetch,
    PacOptions,
    SystemSettings,
    Text,
    fetching,
    set_script,
    table,
)

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
            self.pointer = self._reference(with_them)

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
        cls, engine: Engine, variables: Optional[Mapping[str, str]] = None, dialect: str = "byway"
    ) -> "ProxySelector":
        """What ``http_proxy``, ``NO_PROXY`` and their kin say, in any table; None: in the process's own environment, read
        now and by ``refresh``. ``dialect`` names whose reading of NO_PROXY decides: ``byway``, ``curl``, ``go``,
        ``python``, ``chromium``, ``node``."""
        raw = dialect.encode()
        if variables is None:
            return made(
                cls, lib.byway_proxy_selector_new_environment, engine.pointer, None, None, 0, raw, len(raw)
            )
        names, values, kept = table(variables)
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
        names, values, kept = table(properties)
        selector = made(
            cls, lib.byway_proxy_selector_new_properties, engine.pointer, ctypes.addressof(names),
            ctypes.addressof(values), len(properties), int(web_sockets),
        )
        del kept
        return selector

    @classmethod
    def windows(cls, engine: Engine, server: str, bypass: str = "") -> "ProxySelector":
        """What Windows' ``ProxyServer`` and ``ProxyOverride`` say."""
        raw, exceptions = server.encode(), bypass.encode()
        return made(
            cls, lib.byway_proxy_selector_new_windows, engine.pointer, raw, len(raw), exceptions, len(exceptions)
        )

    @classmethod
    def bypass(
        cls,
        engine: Engine,
        exceptions: str,
        inner: "ProxySelector",
        style: BypassStyle = BypassStyle.BROWSER,
        *,
        flags: BypassFlag = BypassFlag(0),
        dialect: str = "",
    ) -> "ProxySelector":
        """DIRECT for the hosts of a list, ``inner`` for all others. ``dialect`` says whose ``NO_PROXY`` is meant in that
        style."""
        raw, name = exceptions.encode(), dialect.encode()
        options = _abi.byway_bypass_options()
        lib.byway_bypass_options_init(ctypes.addressof(options))
        options.list, options.style, options.flags, options.dialect = string(raw), style, flags, string(name)
        return made(
            cls, lib.byway_proxy_selector_new_bypass, engine.pointer, ctypes.addressof(options), inner.pointer
        )

    @classmethod
    def per_scheme(
        cls,
        engine: Engine,
        selectors: Mapping[str, Optional["ProxySelector"]],
        otherwise: Optional["ProxySelector"] = None,
    ) -> "ProxySelector":
        """One of others by the URL's scheme; None among them is DIRECT."""
        return cls._one_of(lib.byway_proxy_selector_new_per_scheme, engine, list(selectors.items()), otherwise)

    @classmethod
    def rules(
        cls,
        engine: Engine,
        rules: Iterable[Tuple[str, Optional["ProxySelector"]]],
        otherwise: Optional["ProxySelector"] = None,
    ) -> "ProxySelector":
        """The one of the first pattern that covers the target (``*.corp;10.0.0.0/8``, ``*`` for every host); None among them
        is DIRECT. Without a match ``otherwise``; without that the request fails."""
        return cls._one_of(lib.byway_proxy_selector_new_rules, engine, list(rules), otherwise)

    @classmethod
    def _one_of(
        cls, function: Any, engine: Engine, pairs: Sequence[Tuple[str, Optional["ProxySelector"]]],
        otherwise: Optional["ProxySelector"],
    ) -> "ProxySelector":
        raw = [text.encode() for text, _ in pairs]
        names = strings(raw)
        chosen = array_of(ctypes.c_void_p, [None if one is None else one.pointer for _, one in pairs])
        return made(
            cls, function, engine.pointer, ctypes.addressof(names), ctypes.addressof(chosen), len(pairs),
            None if otherwise is None else otherwise.pointer,
        )

    @classmethod
    def system(
        cls, engine: Engine, settings: Optional[SystemSettings] = None, fetch: Optional[Fetch] = None
    ) -> "ProxySelector":
        """The system's settings, a snapshot: environment, GNOME, KDE, ``/etc/sysconfig/proxy``; those of this process when
        None. ``fetch`` fetches a script they name."""
        options, kept = (settings or SystemSettings.here())._raw()
        callbacks = fetching(fetch)
        selector = made(
            cls, lib.byway_proxy_selector_new_system, engine.pointer, ctypes.addressof(options),
            None if callbacks is None else ctypes.addressof(callbacks),
        )
        del kept
        return selector

    def set_system(self, settings: SystemSettings) -> None:
        """Has the system's settings read from elsewhere from now on."""
        options, kept = settings._raw()
        call(lib.byway_proxy_selector_set_system, self.pointer, ctypes.addressof(options))
        del kept

    @classmethod
    def pac(cls, engine: Engine, options: PacOptions, fetch: Optional[Fetch] = None) -> "ProxySelector":
        """A proxy auto-configuration script: its text, a file, or what ``fetch`` gives when the first question comes."""
        raw, kept = options._raw()
        callbacks = fetching(fetch)
        selector = made(
            cls, lib.byway_proxy_selector_new_pac, engine.pointer, ctypes.addressof(raw),
            None if callbacks is None else ctypes.addressof(callbacks),
        )
        del kept
        return selector

    def set_script(self, source: Text, charset: str = "") -> None:
        """A newer text of its script, in force from the next run on."""
        set_script(self.pointer, source, charset)

    @property
    def script_url(self) -> Optional[str]:
        """URL of the script behind it, empty when it is to be discovered; None when there is no script."""
        found = give(lib.byway_proxy_selector_script_url, self.pointer)
        if not found:
            return None
        try:
            return lent(lib.byway_text_str, found)
        finally:
            lib.byway_text_free(found)

    def refresh(self) -> None:
        """Reads what it, and the selectors inside it, are made from again: the process's environment, the system's settings,
        a script's file. ``BYWAY_E_STATE`` is raised when there is nothing of that kind."""
        call(lib.byway_proxy_selector_refresh, self.pointer)

    def diagnostics(self) -> List[str]:
        """What is to be known about its configuration: entries that are not in use, variables that were ignored, where
        settings came from, why a script was not fetched."""
        return take_text(lib.byway_proxy_selector_diagnostics, self.pointer).splitlines()

    @classmethod
    def script(cls, engine: Engine, source: str, name: str = "proxy.pac") -> "ProxySelector":
        """A proxy auto-configuration script. Raises UnsupportedError in a library built without scripts."""
        raw_name, raw = name.encode(), source.encode()
        return made(cls, lib.byway_proxy_selector_new_script, engine.pointer, raw_name, len(raw_name), raw, len(raw))


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
