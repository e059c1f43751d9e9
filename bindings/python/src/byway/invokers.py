"""Provider lists."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable, Optional

from . import _abi, _callbacks
from ._core import Handle, array_of, call, check, give, made, strings, take_text
from ._library import getters, lib
from .engine import Engine


class Invokers(Handle):
    """An immutable list of provider URLs, each with a number of the host's (its row when none is given).

    ``on_end`` runs once when nothing can name these numbers any more: no list made from this one, chain, session or
    choice.
    """

    __slots__ = ()
    _end = "byway_invokers_release"

    def __init__(
        self,
        engine: Engine,
        urls: Iterable[str],
        tags: Optional[Iterable[int]] = None,
        *,
        keep_urls: bool = False,
        on_end: Optional[Callable[[], None]] = None,
    ) -> None:
        raw = [url.encode() for url in urls]
        array, numbers = strings(raw), _numbers(tags, len(raw))
        callbacks = _ending(on_end)
        super().__init__(
            give(
                lib.byway_invokers_new, engine.pointer, ctypes.addressof(array), _at(numbers), len(raw),
                _abi.BYWAY_INVOKERS_KEEP_URLS if keep_urls else 0, _at(callbacks),
            )
        )

    def __len__(self) -> int:
        return int(getters.byway_invokers_len(self.pointer))

    def tag(self, row: int) -> int:
        """The host's number of a row."""
        out = ctypes.c_uint64()
        check(lib.byway_invokers_tag(self.pointer, row, ctypes.addressof(out)))
        return out.value

    def row_of(self, tag: int) -> int:
        """The row with this number of the host's."""
        out = ctypes.c_size_t()
        check(lib.byway_invokers_row_of(self.pointer, tag, ctypes.addressof(out)))
        return out.value

    def url(self, row: int) -> str:
        """The URL of a row; needs ``keep_urls``."""
        return take_text(lib.byway_invokers_url, self.pointer, row)

    @property
    def generation(self) -> int:
        """A number no other list has."""
        return int(getters.byway_invokers_generation(self.pointer))


class InvokersBuilder(Handle):
    """Makes a list, whole or as an update of another, which stays as it is. Exclusive.

    >>> builder = InvokersBuilder(engine, base=invokers)
    >>> builder.set("tri://10.0.0.1:20880/x?weight=50", 101)
    >>> builder.remove(102)
    >>> chain.set_invokers(builder.finish())
    """

    __slots__ = ()
    _end = "byway_invokers_builder_free"

    def __init__(
        self,
        engine: Engine,
        base: Optional[Invokers] = None,
        *,
        keep_urls: bool = False,
        on_end: Optional[Callable[[], None]] = None,
    ) -> None:
        callbacks = _ending(on_end)
        super().__init__(
            give(
                lib.byway_invokers_builder_new, engine.pointer, None if base is None else base.pointer,
                _abi.BYWAY_INVOKERS_KEEP_URLS if keep_urls else 0, _at(callbacks),
            )
        )

    def add(self, url: str, tag: int) -> None:
        """Adds a provider at the end."""
        raw = url.encode()
        call(lib.byway_invokers_builder_add, self.pointer, raw, len(raw), tag)

    def add_many(self, urls: Iterable[str], tags: Optional[Iterable[int]] = None) -> None:
        """Adds providers at the end; without ``tags`` a number is the URL's index among all URLs given."""
        raw = [url.encode() for url in urls]
        array, numbers = strings(raw), _numbers(tags, len(raw))
        call(lib.byway_invokers_builder_add_many, self.pointer, ctypes.addressof(array), _at(numbers), len(raw))

    def set(self, url: str, tag: int) -> None:
        """Replaces the URL of the provider with this number in its place, or adds it at the end."""
        raw = url.encode()
        call(lib.byway_invokers_builder_set, self.pointer, raw, len(raw), tag)

    def remove(self, tag: int) -> None:
        """Takes a provider out."""
        call(lib.byway_invokers_builder_remove, self.pointer, tag)

    def finish(self) -> Invokers:
        """Makes the list; the builder is used up, whatever comes of it."""
        try:
            return made(Invokers, lib.byway_invokers_builder_finish, self.pointer)
        finally:
            self.close()


def _at(value: Any) -> Optional[int]:
    return None if value is None else ctypes.addressof(value)


def _numbers(tags: Optional[Iterable[int]], count: int) -> Any:
    if tags is None:
        return None
    listed = list(tags)
    if len(listed) != count:
        raise ValueError(f"{count} urls but {len(listed)} tags")
    return array_of(ctypes.c_uint64, listed)


def _ending(on_end: Optional[Callable[[], None]]) -> Any:
    if on_end is None:
        return None
    return _abi.byway_invokers_callbacks(
        ctypes.sizeof(_abi.byway_invokers_callbacks), _callbacks.register(on_end), _callbacks.destroy_and_tell
    )
