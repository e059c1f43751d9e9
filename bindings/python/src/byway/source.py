"""Where rules and provider lists come from."""
from __future__ import annotations

import ctypes
import enum
from typing import Callable, Dict, Mapping, NamedTuple, Optional

from . import _abi, _callbacks, errors
from ._core import Handle, array_of, call, give, made, milliseconds, option_milliseconds, string, take_text
from ._library import lib
from .engine import Engine


class EmptyProtection(enum.IntEnum):
    """When an empty list from the centre empties a chain's."""

    VANISHED = _abi.BYWAY_EMPTY_PROTECTION_VANISHED
    ON = _abi.BYWAY_EMPTY_PROTECTION_ON
    OFF = _abi.BYWAY_EMPTY_PROTECTION_OFF


class Discovery(enum.IntEnum):
    """Where providers are looked for."""

    AUTO = _abi.BYWAY_DISCOVERY_AUTO
    INTERFACE = _abi.BYWAY_DISCOVERY_INTERFACE
    APPLICATION = _abi.BYWAY_DISCOVERY_APPLICATION


class SourceEventKind(enum.IntEnum):
    """What happened to a bound chain."""

    READY = _abi.BYWAY_SOURCE_EVENT_READY
    CONNECTED = _abi.BYWAY_SOURCE_EVENT_CONNECTED
    DISCONNECTED = _abi.BYWAY_SOURCE_EVENT_DISCONNECTED
    CHANGED = _abi.BYWAY_SOURCE_EVENT_CHANGED
    REFUSED = _abi.BYWAY_SOURCE_EVENT_REFUSED
    KEPT = _abi.BYWAY_SOURCE_EVENT_KEPT


class SourceEvent(NamedTuple):
    """One event of a bound chain."""

    kind: SourceEventKind
    status: int
    #: What was refused, or empty.
    subject: str
    #: Worlds put in force so far; 0 where it does not belong.
    worlds: int
    error: Optional[errors.BywayError]


class Source(Handle):
    """``Source.memory(engine)``, ``.file(engine, path)`` or ``.zookeeper(engine, servers)``; a chain follows it."""

    __slots__ = ()
    _end = "byway_source_release"

    @classmethod
    def memory(cls, engine: Engine) -> "Source":
        """The host pushes texts with ``put``."""
        return made(cls, lib.byway_source_new_memory, engine.pointer)

    @classmethod
    def file(cls, engine: Engine, path: str, key: str = "") -> "Source":
        """A directory in Dubbo's layout, or one file whose content is the rule ``key``; changes are followed."""
        raw, raw_key = path.encode(), key.encode()
        return made(cls, lib.byway_source_new_file, engine.pointer, raw, len(raw), raw_key, len(raw_key))

    @classmethod
    def zookeeper(
        cls,
        engine: Engine,
        servers: str,
        *,
        session_timeout: Optional[float] = None,
        connect_timeout: Optional[float] = None,
        retry_longest: Optional[float] = None,
        username: str = "",
        password: str = "",
        root: str = "",
    ) -> "Source":
        """Dubbo's layout in ZooKeeper. Times in seconds; what is not given is what ``servers`` says, or the default."""
        options = _abi.byway_zookeeper_options()
        lib.byway_zookeeper_options_init(ctypes.addressof(options))
        raw, user, secret, top = servers.encode(), username.encode(), password.encode(), root.encode()
        options.username, options.password, options.root = string(user), string(secret), string(top)
        for name, value in (
            ("session_timeout_ms", session_timeout), ("connect_timeout_ms", connect_timeout),
            ("retry_longest_ms", retry_longest),
        ):
            if value is not None:
                setattr(options, name, option_milliseconds(value, name[:-3]))
        return made(
            cls, lib.byway_source_new_zookeeper, engine.pointer, raw, len(raw), ctypes.addressof(options)
        )

    def put(self, key: str, text: str) -> None:
        """Adds or changes one text of a memory source."""
        raw_key, raw = key.encode(), text.encode()
        call(lib.byway_source_put, self.pointer, raw_key, len(raw_key), raw, len(raw))

    def remove(self, key: str) -> None:
        """Removes one text of a memory source."""
        raw = key.encode()
        call(lib.byway_source_remove, self.pointer, raw, len(raw))

    def apply(self, changes: Mapping[str, Optional[str]]) -> None:
        """Several changes of a memory source as one moment: bound chains see all of them or none. None removes a key."""
        raw = [(key.encode(), b"" if text is None else text.encode(), text is None) for key, text in changes.items()]
        array = array_of(
            _abi.byway_source_change,
            [_abi.byway_source_change(string(key), string(text), int(gone), 0) for key, text, gone in raw],
        )
        call(lib.byway_source_apply, self.pointer, ctypes.addressof(array), len(raw))

    def get(self, key: str, timeout: Optional[float] = None) -> str:
        """The text the source has under a key."""
        raw = key.encode()
        return take_text(lib.byway_source_get, self.pointer, raw, len(raw), milliseconds(timeout))

    def status(self) -> Dict[str, int]:
        """Connected, since when, age of the data, generation, keys followed, complaints."""
        state = _abi.byway_source_state()
        lib.byway_source_state_init(ctypes.addressof(state))
        call(lib.byway_source_status, self.pointer, ctypes.addressof(state), None)
        names = [name for name, *_ in state._fields_ if name not in ("struct_size", "reserved")]
        return {name: getattr(state, name) for name in names}

    def last_error(self) -> Optional[errors.BywayError]:
        """What went wrong last, None when nothing did."""
        state = _abi.byway_source_state()
        lib.byway_source_state_init(ctypes.addressof(state))
        last = give(lib.byway_source_status, self.pointer, ctypes.addressof(state))
        if not last:
            return None
        error = errors.read(last)
        lib.byway_error_free(last)
        return error


def following(on_event: Optional[Callable[[SourceEvent], None]]) -> Optional[_abi.byway_source_callbacks]:
    """Callbacks for whoever hears of a bound chain's events."""
    if on_event is None:
        return None
    return _abi.byway_source_callbacks(
        ctypes.sizeof(_abi.byway_source_callbacks), _callbacks.register(on_event), _callbacks.destroy, _ON_EVENT
    )


def _on_event(target: Callable[[SourceEvent], None], address: int) -> None:
    raw = _abi.byway_source_event.from_address(address)
    target(
        SourceEvent(
            SourceEventKind(raw.kind), raw.status, _callbacks.text(raw.subject.data, raw.subject.len), raw.worlds,
            errors.read(raw.error) if raw.error else None,
        )
    )


_ON_EVENT = _callbacks.guarded(_abi.byway_source_callbacks_on_event, _on_event, None)
