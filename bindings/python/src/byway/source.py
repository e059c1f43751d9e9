"""Where rules and provider lists come from."""
from __future__ import annotations

import ctypes
from typing import Dict, Optional

from . import _abi, errors
from ._core import Handle, call, milliseconds, take_text
from ._library import lib
from .engine import Engine


class Source(Handle):
    """``Source.memory(engine)``, ``.file(engine, path)`` or ``.zookeeper(engine, servers)``; a chain follows it."""

    __slots__ = ()
    _end = "byway_source_release"

    @classmethod
    def memory(cls, engine: Engine) -> "Source":
        """The host pushes texts with ``put``."""
        out = ctypes.c_void_p()
        call(lib.byway_source_new_memory, engine.pointer, ctypes.addressof(out))
        return cls(out.value or 0)

    @classmethod
    def file(cls, engine: Engine, path: str, key: str = "") -> "Source":
        """A directory in Dubbo's layout, or one file whose content is the rule ``key``; changes are followed."""
        raw, raw_key, out = path.encode(), key.encode(), ctypes.c_void_p()
        call(
            lib.byway_source_new_file, engine.pointer, raw, len(raw), raw_key, len(raw_key), ctypes.addressof(out)
        )
        return cls(out.value or 0)

    @classmethod
    def zookeeper(cls, engine: Engine, servers: str, *, session_timeout: Optional[float] = None) -> "Source":
        """Dubbo's layout in ZooKeeper; needs a library built with that feature."""
        options = _abi.byway_zookeeper_options()
        lib.byway_zookeeper_options_init(ctypes.addressof(options))
        if session_timeout is not None:
            options.session_timeout_ms = milliseconds(session_timeout)
        raw, out = servers.encode(), ctypes.c_void_p()
        call(
            lib.byway_source_new_zookeeper, engine.pointer, raw, len(raw), ctypes.addressof(options),
            ctypes.addressof(out),
        )
        return cls(out.value or 0)

    def put(self, key: str, text: str) -> None:
        """Adds or changes one text of a memory source."""
        raw_key, raw = key.encode(), text.encode()
        call(lib.byway_source_put, self.pointer, raw_key, len(raw_key), raw, len(raw))

    def remove(self, key: str) -> None:
        """Removes one text of a memory source."""
        raw = key.encode()
        call(lib.byway_source_remove, self.pointer, raw, len(raw))

    def get(self, key: str, timeout: Optional[float] = None) -> str:
        """The text the source has under a key."""
        raw = key.encode()
        return take_text(lib.byway_source_get, self.pointer, raw, len(raw), milliseconds(timeout))

    def status(self) -> Dict[str, int]:
        """Connected, since when, age of the data, generation, keys followed, complaints."""
        state, last = _abi.byway_source_state(), ctypes.c_void_p()
        lib.byway_source_state_init(ctypes.addressof(state))
        call(lib.byway_source_status, self.pointer, ctypes.addressof(state), ctypes.addressof(last))
        if last.value:
            lib.byway_error_free(last)
        names = [name for name, *_ in state._fields_ if name not in ("struct_size", "reserved")]
        return {name: getattr(state, name) for name in names}

    def last_error(self) -> Optional[errors.BywayError]:
        """What went wrong last, None when nothing did."""
        state, last = _abi.byway_source_state(), ctypes.c_void_p()
        lib.byway_source_state_init(ctypes.addressof(state))
        call(lib.byway_source_status, self.pointer, ctypes.addressof(state), ctypes.addressof(last))
        if not last.value:
            return None
        error = errors.read(last.value)
        lib.byway_error_free(last)
        return error
