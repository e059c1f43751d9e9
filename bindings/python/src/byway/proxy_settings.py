"""What built-in proxy selectors are made from: lists of exceptions, scripts, the system's settings."""
from __future__ import annotations

import ctypes
import dataclasses
import enum
import os
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi, _callbacks
from ._core import Handle, array_of, call, check, lend, option_milliseconds, string, take_text
from ._library import lib
from .dns import Dns
from .engine import Call
from .ip import Ip, ip_to

Text = Union[str, bytes]


def raw_of(text: Text) -> bytes:
    """Texts are UTF-8; files come as they are."""
    return text if isinstance(text, bytes) else text.encode()


def wpad_names(domain: str, stop_at: str = "") -> List[str]:
    """Names at which a proxy script is looked for below a machine's domain (WPAD by DNS), most specific first; nothing above
    ``stop_at``, the registrable domain. The script is ``http://NAME/wpad.dat``."""
    raw, stop = domain.encode(), stop_at.encode()
    return take_text(lib.byway_wpad_names, raw, len(raw), stop, len(stop)).splitlines()


class BypassStyle(enum.IntEnum):
    """How a list of exceptions is written."""

    BROWSER = _abi.BYWAY_BYPASS_BROWSER
    BROWSER_SUFFIX = _abi.BYWAY_BYPASS_BROWSER_SUFFIX
    WINDOWS = _abi.BYWAY_BYPASS_WINDOWS
    MACOS = _abi.BYWAY_BYPASS_MACOS
    NO_PROXY = _abi.BYWAY_BYPASS_NO_PROXY


class BypassFlag(enum.IntFlag):
    """How a list of exceptions is read."""

    REVERSED = _abi.BYWAY_BYPASS_REVERSED
    PROXY_LOOPBACK = _abi.BYWAY_BYPASS_PROXY_LOOPBACK
    STRICT_DOT = _abi.BYWAY_BYPASS_STRICT_DOT
    BLANK_SEPARATES = _abi.BYWAY_BYPASS_BLANK_SEPARATES
    EXCLUDE_SIMPLE = _abi.BYWAY_BYPASS_EXCLUDE_SIMPLE


class PacFlag(enum.IntFlag):
    """How a proxy script is run and read."""

    EX = _abi.BYWAY_PAC_EX
    SOCKS_IS_5 = _abi.BYWAY_PAC_SOCKS_IS_5
    EMPTY_IS_DIRECT = _abi.BYWAY_PAC_EMPTY_IS_DIRECT
    ASK_LOOPBACK = _abi.BYWAY_PAC_ASK_LOOPBACK
    BROWSER_CALENDAR = _abi.BYWAY_PAC_BROWSER_CALENDAR
    FIXED_ZONE = _abi.BYWAY_PAC_FIXED_ZONE


@dataclasses.dataclass
class PacOptions:
    """A proxy auto-configuration script. Times in seconds; 0 is the library's default."""

    #: Its URL or absolute path; a path or ``file:`` URL is read by the library when there is no ``source``.
    url: str = ""
    source: Optional[Text] = None
    #: Who resolves the names it asks for; None: the resolver of the address in question.
    dns: Optional[Dns] = None
    #: For ``myIpAddress``; None: those that the routing table prefers towards the internet.
    my_addresses: Optional[Sequence[Union[str, Ip]]] = None
    #: A fetched script that is older is fetched anew by the next question; 0: only on request and after the network changed.
    refresh: float = 0
    memory_limit: int = 0
    #: Script time per run, of its thread's processor clock.
    time_limit: float = 0
    #: Different names one question may ask for.
    names_limit: int = 0
    #: Minutes local time is east of UTC; None: the system's.
    utc_offset: Optional[int] = None
    flags: PacFlag = PacFlag(0)

    def _raw(self) -> Tuple[Any, List[Any]]:
        options = _abi.byway_pac_options()
        lib.byway_pac_options_init(ctypes.addressof(options))
        url, source = self.url.encode(), None if self.source is None else raw_of(self.source)
        addresses = array_of(_abi.byway_ip, [ip_to(ip) for ip in self.my_addresses or ()])
        options.url = string(url)
        if source is not None:
            # An empty text is a text too; it must not look like none.
            options.source = string(source)
        lend(options, dns=self.dns)
        if self.my_addresses is not None:
            options.my_addresses, options.my_addresses_len = ctypes.addressof(addresses), len(self.my_addresses)
        options.refresh_ms = option_milliseconds(self.refresh, "refresh")
        options.time_limit_ms = option_milliseconds(self.time_limit, "time_limit", 2**32 - 1)
        options.memory_limit, options.names_limit = self.memory_limit, self.names_limit
        options.flags = self.flags
        if self.utc_offset is not None:
            options.flags |= PacFlag.FIXED_ZONE
            options.utc_offset_minutes = self.utc_offset
        return options, [url, source, addresses]


class ScriptRequest:
    """A script that is to be fetched, and the place for it. ``later()`` keeps it beyond the callback."""

    __slots__ = ("url", "call", "_pointer", "_kept")

    def __init__(self, pointer: int, url: str, call: Call) -> None:
        #: Empty when it is to be discovered (WPAD).
        self.url = url
        #: The operation that asks; only until the callback returns.
        self.call = call
        self._pointer = pointer
        self._kept: Optional["_KeptSelector"] = None

    def later(self) -> "ScriptRequest":
        """Says that ``finish`` or ``fail`` will be called after the callback has returned, from any thread."""
        if self._kept is None:
            self._kept = _KeptSelector(lib.byway_proxy_selector_retain(self._pointer))
        return self

    def finish(self, source: Text, charset: str = "") -> None:
        """The script. ``charset`` is what was said where it was fetched. Raises when it does not load."""
        set_script(self._pointer, source, charset)

    def fail(self, message: str = "", *, code: int = _abi.BYWAY_E_PROXY_SELECTOR, host_code: int = 0) -> None:
        """It could not be fetched."""
        raw = message.encode()
        check(lib.byway_proxy_selector_script_failed(self._pointer, code, host_code, raw, len(raw)))


class _KeptSelector(Handle):
    __slots__ = ()
    _end = "byway_proxy_selector_release"


def set_script(pointer: int, source: Text, charset: str) -> None:
    """Hands a script to a proxy selector."""
    raw, name = raw_of(source), charset.encode()
    call(lib.byway_proxy_selector_set_script, pointer, raw, len(raw), name, len(name))


#: Gives a script's text, or keeps the request for later and gives None.
Fetch = Callable[[ScriptRequest], Optional[Text]]


def fetching(fetch: Optional[Fetch]) -> Any:
    """Callbacks for a host that fetches scripts; None for one that does not."""
    if fetch is None:
        return None
    return _abi.byway_pac_callbacks(
        ctypes.sizeof(_abi.byway_pac_callbacks), _callbacks.register(fetch), _callbacks.destroy, _FETCH
    )


def _fetch(target: Fetch, selector: int, url: int, length: int, call_: int) -> int:
    asked = ScriptRequest(selector, _callbacks.text(url, length), Call(call_))
    try:
        source = target(asked)
        if source is not None:
            asked.finish(source)
    finally:
        asked.call.end()
        if asked._kept is None:
            # What is kept without ``later`` answers BYWAY_E_BAD_HANDLE.
            asked._pointer = 0
    return _abi.BYWAY_OK if asked._kept is None else _abi.BYWAY_PENDING


_FETCH = _callbacks.guarded(_abi.byway_pac_callbacks_fetch, _fetch)


@dataclasses.dataclass
class SystemSettings:
    """Where the system's proxy settings are found; nothing else is read. ``SystemSettings.here()`` is this process's."""

    #: Environment variables; None: the process's own, read at creation and at every refresh.
    variables: Optional[Mapping[str, str]] = None
    #: ``XDG_CURRENT_DESKTOP``: whose settings count; empty: those that exist, GNOME first.
    desktop: str = ""
    #: Home directory whose ``.config`` holds the desktops' settings; empty: none is looked at.
    home: str = ""
    #: ``XDG_CONFIG_HOME``, instead of ``.config`` below ``home``.
    config_home: str = ""
    #: Directory in place of ``/`` for ``etc/sysconfig/proxy``; empty: not looked at.
    root: str = ""
    #: Settings in place of files: a dconf database, GLib's keyfile, ``kioslaverc``, ``/etc/sysconfig/proxy``.
    dconf: Optional[Text] = None
    keyfile: Optional[Text] = None
    kioslaverc: Optional[Text] = None
    sysconfig: Optional[Text] = None
    #: How a script that the settings name is run; its ``url`` and ``source`` are not used.
    pac: Optional[PacOptions] = None

    @classmethod
    def here(cls) -> "SystemSettings":
        """Those of this process and its user."""
        return cls(
            desktop=os.environ.get("XDG_CURRENT_DESKTOP", ""), home=os.path.expanduser("~"),
            config_home=os.environ.get("XDG_CONFIG_HOME", ""), root="/",
        )

    def _raw(self) -> Tuple[Any, List[Any]]:
        options, kept = _abi.byway_system_options(), []
        lib.byway_system_options_init(ctypes.addressof(options))
        if self.variables is not None:
            names, values, texts = table(self.variables)
            options.names, options.values = ctypes.addressof(names), ctypes.addressof(values)
            options.n = len(self.variables)
            kept += [names, values, texts]
        for name in ("desktop", "home", "config_home", "root", "dconf", "keyfile", "kioslaverc", "sysconfig"):
            text: Optional[Text] = getattr(self, name)
            if text is not None:
                kept.append(raw_of(text))
                setattr(options, name, string(kept[-1]))
        if self.pac is not None:
            pac, more = self.pac._raw()
            options.pac = ctypes.addressof(pac)
            kept += [pac, more]
        return options, kept


def table(texts: Mapping[str, str]) -> Tuple[Any, Any, List[bytes]]:
    """Names and values as arrays, and the texts they point to."""
    kept = [text.encode() for pair in texts.items() for text in pair]
    size = max(1, len(texts))
    names = (_abi.byway_str * size)(*[string(text) for text in kept[0::2]])
    values = (_abi.byway_str * size)(*[string(text) for text in kept[1::2]])
    return names, values, kept
