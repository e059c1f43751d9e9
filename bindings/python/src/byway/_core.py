"""What every object stands on: calls that raise, handles that end exactly once."""
from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from typing import Any, Optional, Type, TypeVar

from . import _abi, errors
from ._library import lib

H = TypeVar("H", bound="Handle")


class _PerThread(threading.local):
    """What one thread carries between a callback and the call that made it."""

    def __init__(self) -> None:
        self.raised: Optional[BaseException] = None


per_thread = _PerThread()


def call(function: Any, *arguments: Any) -> int:
    """Calls a function whose last parameter is ``byway_error **``. Raises for negative statuses."""
    err = ctypes.c_void_p()
    status: int = function(*arguments, ctypes.addressof(err))
    if status < 0 or per_thread.raised is not None:
        fail(status, err.value)
    return status


def check(status: int) -> int:
    """For functions without an error object. Raises for negative statuses."""
    if status < 0 or per_thread.raised is not None:
        fail(status, None)
    return status


def fail(status: int, error: Optional[int]) -> None:
    """Raises for a negative status, with what a callback on this thread raised as its cause."""
    raised, per_thread.raised = per_thread.raised, None
    if status >= 0:
        # A callback raised in a place whose failure the library does not pass on.
        if raised is not None and not isinstance(raised, Exception):
            raise raised
        if raised is not None:
            unraisable(raised)
        return
    raise errors.make(status, error, raised)


def unraisable(exception: BaseException) -> None:
    """Hands an exception that has no caller to ``threading.excepthook``."""
    threading.excepthook(
        threading.ExceptHookArgs((type(exception), exception, exception.__traceback__, threading.current_thread()))
    )


def take_text(function: Any, *arguments: Any) -> str:
    """Calls a function that gives a ``byway_text`` and returns its content."""
    out = ctypes.c_void_p()
    call(function, *arguments, ctypes.addressof(out))
    return _read_text(out)


def _read_text(out: ctypes.c_void_p) -> str:
    view = _abi.byway_str()
    lib.byway_text_str(out, ctypes.addressof(view))
    text = ctypes.string_at(view.data, view.len).decode("utf-8", "replace") if view.len else ""
    lib.byway_text_free(out)
    return text


def lent(getter: Any, pointer: Any) -> str:
    """Content of a borrowed ``byway_str``."""
    view = _abi.byway_str()
    getter(pointer, ctypes.addressof(view))
    return ctypes.string_at(view.data, view.len).decode("utf-8", "replace") if view.len else ""


def string(text: bytes) -> _abi.byway_str:
    """A ``byway_str`` over ``text``, which must stay referenced."""
    return _abi.byway_str(ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value, len(text))


def milliseconds(timeout: Optional[float]) -> int:
    """Seconds, or None for the engine's default, as the library counts."""
    if timeout is None:
        return -1
    if timeout <= 0:
        return 0
    return max(1, min(int(timeout * 1000 + 0.999), 2**62))


#: Engines that are alive, shut down at exit so that no thread of the library is inside Python by then.
_live: "weakref.WeakSet[Handle]" = weakref.WeakSet()


def _release(function: Any, pointer: int, process: int) -> None:
    # A forked child shares the parent's handles in name only.
    if os.getpid() == process:
        function(pointer)


class Handle:
    """Owns one reference. ``close`` is idempotent; the garbage collector does the same later."""

    __slots__ = ("_pointer", "_finalizer", "__weakref__")
    _end: str = ""

    def __init__(self, pointer: int) -> None:
        self._pointer: Optional[int] = pointer
        self._finalizer = weakref.finalize(self, _release, getattr(lib, self._end), pointer, os.getpid())
        # At exit engines are shut down in order; their children then need no release.
        self._finalizer.atexit = False

    @property
    def pointer(self) -> int:
        """Address of the handle. Raises when it is closed."""
        pointer = self._pointer
        if pointer is None:
            raise errors.HandleError(_abi.BYWAY_E_BAD_HANDLE, f"{type(self).__name__} is closed")
        return pointer

    @property
    def closed(self) -> bool:
        """True after ``close``."""
        return self._pointer is None

    def close(self) -> None:
        """Gives the reference back. Idempotent."""
        self._pointer = None
        self._finalizer()

    def finish(self) -> None:
        """What interpreter exit does instead of ``close``."""

    def __enter__(self: H) -> H:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def made(kind: Type[H], function: Any, *arguments: Any) -> H:
    """Calls a function that gives a handle through its last output."""
    out = ctypes.c_void_p()
    call(function, *arguments, ctypes.addressof(out))
    assert out.value is not None
    return kind(out.value)


def finish_at_exit(handle: Handle) -> None:
    """Has ``handle.finish()`` run at interpreter exit if it is still alive."""
    _live.add(handle)


@atexit.register
def _finish() -> None:
    for handle in list(_live):
        if not handle.closed:
            handle.finish()
