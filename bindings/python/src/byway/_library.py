"""Finds, loads and checks the shared library."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
from pathlib import Path
from typing import Any, List

from . import _abi

#: Environment variable that names the exact file; nothing else is tried when it is set.
VARIABLE = "BYWAY_LIBRARY"


def find_library() -> str:
    """Path or name of the library that is loaded, by this order:

    1. the file named by the environment variable ``BYWAY_LIBRARY``, and nothing else when it is set;
    2. ``libbyway.so`` beside this module, as a wheel brings it;
    3. what the system's loader finds as ``byway``.

    Raises ImportError that lists what was tried.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return named
    beside = Path(__file__).resolve().parent / "libbyway.so"
    if beside.exists():
        return str(beside)
    system = ctypes.util.find_library("byway")
    if system:
        return system
    raise ImportError(
        f"libbyway was not found: {VARIABLE} is not set, {beside} does not exist, and the system's loader knows no "
        "'byway'. Install the wheel, or libbyway.so, or set the variable to its path."
    )


def _declare(library: ctypes.CDLL) -> None:
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(f"{library._name}: no function {name}; the library is older than this package")
        function.restype = result
        function.argtypes = arguments


def _check_layout(library: Any) -> None:
    ours = {kind.__name__: kind for kind in _abi.STRUCTS}
    name, size, total = _abi.byway_str(), ctypes.c_uint32(), ctypes.c_size_t()
    offsets = (ctypes.c_uint32 * 64)()
    seen: List[str] = []
    index = 0
    while library.byway_layout(
        index, ctypes.addressof(name), ctypes.addressof(size), ctypes.addressof(offsets), 64, ctypes.addressof(total)
    ) == _abi.BYWAY_OK:
        index += 1
        struct = ctypes.string_at(name.data, name.len).decode()
        kind = ours.get(struct)
        if kind is None:
            continue
        seen.append(struct)
        here = [getattr(kind, field[0]).offset for field in kind._fields_]
        there = list(offsets[: total.value])
        if there[: len(here)] != here or size.value < ctypes.sizeof(kind):
            raise ImportError(f"{library._name}: struct {struct} is laid out as {there}, this package expects {here}")


def _load() -> Any:
    path = find_library()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"libbyway could not be loaded from {path}: {error}") from error
    _declare(library)
    version = library.byway_abi_version()
    if version != _abi.BYWAY_ABI_VERSION:
        raise ImportError(f"{path} speaks ABI {version}, this package {_abi.BYWAY_ABI_VERSION}")
    _check_layout(library)
    return library


#: The library; its calls let other Python threads run.
lib: Any = _load()


def _getters() -> Any:
    """The same library for calls of a few loads, which keep the interpreter lock: half the price."""
    library = ctypes.PyDLL(lib._name)
    _declare(library)
    return library


getters: Any = _getters()


def version() -> str:
    """Version of the loaded library."""
    text = ctypes.string_at(lib.byway_version()) if lib.byway_version() else b""
    return text.decode()


def version_number() -> int:
    """The same as ``0xMMmmpp``: comparable."""
    return int(lib.byway_version_number())


def has_feature(name: str) -> bool:
    """True when the library was built with this feature."""
    raw = name.encode()
    return bool(lib.byway_has_feature(raw, len(raw)))


def status_name(status: int) -> str:
    """C name of a status, for example ``BYWAY_E_BUSY``; answers for every number."""
    return ctypes.string_at(lib.byway_status_name(status)).decode()


def status_message(status: int) -> str:
    """One sentence about a status; answers for every number."""
    return ctypes.string_at(lib.byway_status_message(status)).decode()

