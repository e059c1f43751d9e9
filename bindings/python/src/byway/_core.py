"""What every object stands on: calls that raise, handles that end exactly once."""
from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Type, TypeVar

from . import _abi, errors
from ._library import lib

H = TypeVar("H", bound="Handle")

#: By thread, what a callback raised and the call that led to it has not picked up yet. Nearly always empty, so that a
#: call only asks whether it is.
raised: Dict[int, BaseException] = {}


class _Cell:
    """Room for what a call puts out, with addresses worked out once. A call takes one and gives it back, so calls from
    several threads, or from inside a callback, never share one."""

    __slots__ = ("out", "out_at", "err", "err_at")

    def __init__(self) -> None:
        self.out, self.err = ctypes.c_void_p(), ctypes.c_void_p()
        self.out_at, self.err_at = ctypes.addressof(self.out), ctypes.addressof(self.err)


_cells: List[_Cell] = []


def _cell() -> _Cell:
    try:
        return _cells.pop()
    except IndexError:
        return _Cell()


def call(function: Any, *arguments: Any) -> int:
    """Calls a function whose last parameter is ``byway_error **``. Raises for negative statuses."""
    cell = _cell()
    status: int = function(*arguments, cell.err_at)
    if status < 0 or raised:
        fail(status, cell.err.value if status < 0 else None)
    _cells.append(cell)
    return status


def give(function: Any, *arguments: Any) -> int:
    """Calls a function whose last parameters are a pointer it fills and ``byway_error **``; returns what it gave, 0 for
    nothing. Raises for negative statuses."""
    cell = _cell()
    status: int = function(*arguments, cell.out_at, cell.err_at)
    if status < 0 or raised:
        fail(status, cell.err.value if status < 0 else None)
    pointer: int = cell.out.value or 0
    _cells.append(cell)
    return pointer


def check(status: int) -> int:
    """For functions without an error object. Raises for negative statuses."""
    if status < 0 or raised:
        fail(status, None)
    return status


def fail(status: int, error: Optional[int]) -> None:
    """Raises for a negative status, with what a callback on this thread raised as its cause."""
    exception = raised.pop(threading.get_ident(), None)
    if status >= 0:
        # A callback raised in a place whose failure the library does not pass on.
        if exception is not None and not isinstance(exception, Exception):
            raise exception
        if exception is not None:
            unraisable(exception)
        return
    raise errors.make(status, error, exception)


def unraisable(exception: BaseException) -> None:
    """Hands an exception that has no caller to ``threading.excepthook``."""
    threading.excepthook(
        threading.ExceptHookArgs((type(exception), exception, exception.__traceback__, threading.current_thread()))
    )


def take_text(function: Any, *arguments: Any) -> str:
    """Calls a function that gives a ``byway_text`` and returns its content."""
    text = give(function, *arguments)
    try:
        return lent(lib.byway_text_str, text)
    finally:
        lib.byway_text_free(text)


def lent(getter: Any, pointer: Any) -> str:
    """Content of a borrowed ``byway_str``."""
    view = _abi.byway_str()
    getter(pointer, ctypes.addressof(view))
    return ctypes.string_at(view.data, view.len).decode("utf-8", "replace") if view.len else ""


def string(text: bytes) -> Any:
    """A ``byway_str`` over ``text``, which must stay referenced."""
    return _abi.byway_str(ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value, len(text))


def lock() -> Any:
    """A lock that a forked child finds free: the thread that held it is not there any more."""
    made = threading.Lock()
    os.register_at_fork(before=made.acquire, after_in_parent=made.release, after_in_child=made.release)
    return made


def lend(options: Any, **handles: Optional["Handle"]) -> None:
    """Names shared handles (None: none) in an option struct, whose fields are plain numbers. They live as long as the
    struct, also when another thread closes them meanwhile."""
    kept = {name: None if handle is None else handle.pointer for name, handle in handles.items()}
    for name, pointer in kept.items():
        setattr(options, name, pointer)
    options.lent = (getattr(options, "lent", None), kept)


def array_of(kind: Any, values: Sequence[Any]) -> Any:
    """An array of these, of at least one so that it has an address. References among them last as long as it does."""
    array = (kind * max(1, len(values)))(*values)
    array.values = values
    return array


def strings(texts: Sequence[bytes]) -> Any:
    """An array of ``byway_str`` over texts, which must stay referenced."""
    return array_of(_abi.byway_str, [string(text) for text in texts])


def milliseconds(timeout: Optional[float]) -> int:
    """Seconds, or None for the engine's default, as the library counts."""
    if timeout is None:
        return -1
    if timeout <= 0:
        return 0
    return max(1, min(int(timeout * 1000 + 0.999), 2**62))


def option_milliseconds(value: float, name: str, most: int = 2**62) -> int:
    """Seconds of an option. Raises ArgumentError for a negative time, which only a wait may have, and for one that the
    library cannot hold."""
    if not 0 <= value <= most / 1000:
        why = f"0 to {most // 1000} seconds are possible, not {value}"
        raise errors.ArgumentError(_abi.BYWAY_E_ARGUMENT, why, subject=name)
    return milliseconds(value)


#: Engines that are alive, shut down at exit so that no thread of the library is inside Python by then.
#: Found by their address, as callbacks name them.
live: "weakref.WeakValueDictionary[int, Handle]" = weakref.WeakValueDictionary()


def reference_to(give_back: Any) -> Type[int]:
    """Addresses of shared handles, each with one reference of the library's, given back when Python's last one goes."""

    class Reference(int):
        __slots__ = ()

        def __del__(self) -> None:
            if self:
                give_back(int(self))

    return Reference


class Handle:
    """Owns one reference. ``close`` is idempotent and may be called by several threads at once; the garbage collector
    does the same later. A call of another thread that is under way keeps a shared handle until it is over; what is
    exclusive ends at once, and the call with it.

    In a forked child the library itself knows that the parent's handles are there in name only.
    """

    __slots__ = ("pointer", "__weakref__")
    #: Name of the function that takes the reference back.
    _end: str = ""
    #: Address of the handle. Raises HandleError when it is closed.
    pointer: int
    if TYPE_CHECKING:
        _owned: int

    #: What an address becomes: of a shared handle, one that arguments of a running call keep alive.
    _reference: Any = int
    #: Ends an exclusive handle; None for shared ones. At interpreter exit, when modules are emptied, the class still has it.
    _free: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_end" in cls.__dict__:
            end = getattr(lib, cls._end)
            cls._reference, cls._free = (reference_to(end), None) if cls._end.endswith("_release") else (int, end)

    def __init__(self, pointer: int) -> None:
        self.pointer = self._reference(pointer)

    @classmethod
    def _adopt(cls: Type[H], pointer: Optional[int]) -> H:
        """An object for a reference that is there already."""
        handle = cls.__new__(cls)
        handle.pointer = cls._reference(pointer or 0)
        return handle

    def __getattr__(self, name: str) -> Any:
        # Only asked for what is not there: ``pointer`` after ``close``.
        if name == "pointer":
            raise errors.HandleError(_abi.BYWAY_E_BAD_HANDLE, f"{type(self).__name__} is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def closed(self) -> bool:
        """True after ``close``."""
        try:
            self._owned
        except AttributeError:
            return True
        return False

    def close(self) -> None:
        """Gives the reference back. Idempotent."""
        try:
            pointer = self._owned
            # One step: of several threads, one gets past it.
            del self._owned
        except AttributeError:
            return
        if self._free is not None:
            self._free(pointer)

    def __del__(self) -> None:
        try:
            pointer = self._owned
            del self._owned
        except AttributeError:
            return
        if self._free is not None:
            self._free(pointer)

    def _at_exit(self) -> None:
        """What interpreter exit does instead of ``close``."""

    def __enter__(self: H) -> H:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


#: The slot under a second name, one whose absence is an AttributeError and costs nothing more.
setattr(Handle, "_owned", Handle.__dict__["pointer"])


def made(kind: Type[H], function: Any, *arguments: Any) -> H:
    """Calls a function that gives a handle through its last output."""
    return kind._adopt(give(function, *arguments))


def finish_at_exit(handle: Handle) -> None:
    """Has ``handle._at_exit()`` run at interpreter exit if it is still alive."""
    # The number alone: a reference would never go while the object is there.
    live[int(handle.pointer)] = handle


@atexit.register
def _finish() -> None:
    for handle in list(live.values()):
        if not handle.closed:
            handle._at_exit()
