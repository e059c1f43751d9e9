"""Callbacks: one trampoline per callback type for the whole process, objects found by number.

The library's ``user_data`` is a key that is never used twice, so a late call cannot reach another object; ``destroy``
drops the object. Whatever a callback raises is kept for the call that led to it.
"""
from __future__ import annotations

import ctypes
import itertools
import threading
from typing import Any, Callable, Dict, Optional

from . import _abi
from ._core import per_thread

_objects: Dict[int, Any] = {}
_keys = itertools.count(1)
_lock = threading.Lock()


def register(target: Any) -> int:
    """Keeps ``target`` until the library destroys the set with this ``user_data``."""
    with _lock:
        key = next(_keys)
        _objects[key] = target
    return key


def alive() -> int:
    """How many objects the library may still call."""
    return len(_objects)


def _destroy(user_data: Optional[int]) -> None:
    _objects.pop(user_data or 0, None)


#: Field ``destroy`` of every callback struct.
destroy = _abi.byway_destroy(_destroy)


def guarded(kind: Any, body: Callable[..., Optional[int]], otherwise: Optional[int] = _abi.BYWAY_E_HOST) -> Any:
    """A trampoline: looks the object up, calls ``body(object, *arguments)``, keeps what it raises."""

    def trampoline(user_data: Optional[int], *arguments: Any) -> Optional[int]:
        try:
            target = _objects.get(user_data or 0)
            if target is None:
                return otherwise
            return body(target, *arguments)
        except BaseException as error:  # noqa: B902 - nothing may cross into the library
            per_thread.raised = error
            return otherwise

    return kind(trampoline)


def text(address: Optional[int], length: int) -> str:
    """A callback's text argument."""
    return ctypes.string_at(address, length).decode("utf-8", "replace") if address and length else ""
