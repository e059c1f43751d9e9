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
from ._core import lock, raised, unraisable
from .errors import BywayError

_objects: Dict[int, Any] = {}
_keys = itertools.count(1)
_lock = lock()


def register(target: Any) -> int:
    """Keeps ``target`` until the library destroys the set with this ``user_data``."""
    with _lock:
        key = next(_keys)
        _objects[key] = target
    return key


def drop(key: int) -> None:
    """For what the library has no ``destroy`` for: nothing calls it any more."""
    _objects.pop(key, None)


def alive() -> int:
    """How many objects the library may still call."""
    return len(_objects)


def immortal(trampoline: Any) -> Any:
    """Keeps a trampoline for as long as the process: what is released when modules are emptied may still call it."""
    python = getattr(ctypes, "pythonapi", None)
    if python is not None:
        python.Py_IncRef(ctypes.py_object(trampoline))
    return trampoline


def _destroy(user_data: Optional[int], _pop: Any = _objects.pop) -> None:
    # May come when the interpreter ends and modules are empty: what is needed is an argument.
    _pop(user_data or 0, None)


#: Field ``destroy`` of every callback struct.
destroy = immortal(_abi.byway_destroy(_destroy))


def _destroy_and_tell(user_data: Optional[int], _pop: Any = _objects.pop) -> None:
    told = _pop(user_data or 0, None)
    if told is None:
        return
    try:
        told()
    except BaseException as error:  # noqa: B902 - nothing may cross into the library
        unraisable(error)


#: The same for sets whose end is what the host wants to know: calls the object.
destroy_and_tell = immortal(_abi.byway_destroy(_destroy_and_tell))


def guarded(
    kind: Any, body: Callable[..., Optional[int]], otherwise: Optional[int] = _abi.BYWAY_E_HOST, alone: bool = False
) -> Any:
    """A trampoline: looks the object up, calls ``body(object, *arguments)``, keeps what it raises for the call that led
    here; ``alone`` says that there may be none, on a thread of the library's. The code of a BywayError is handed on."""

    def trampoline(user_data: Optional[int], *arguments: Any) -> Optional[int]:
        try:
            target = _objects.get(user_data or 0)
            if target is None:
                return otherwise
            return body(target, *arguments)
        except BaseException as error:  # noqa: B902 - nothing may cross into the library
            if alone:
                unraisable(error)
            else:
                raised[threading.get_ident()] = error
            if isinstance(error, BywayError) and otherwise == _abi.BYWAY_E_HOST and error.code < 0:
                return error.code
            return otherwise

    return immortal(kind(trampoline))


def text(address: Optional[int], length: int) -> str:
    """A callback's text argument."""
    return ctypes.string_at(address, length).decode("utf-8", "replace") if address and length else ""
