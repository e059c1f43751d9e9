"""Where do I connect next? Selectors and their Selections."""
from __future__ import annotations

import ctypes
import time
from typing import Any, Iterator, List, Optional, Tuple

from . import _abi, errors
from ._core import Handle, _cell, _cells, call, check, fail, raised, take_text
from ._library import getters, lib
from .queue import Queue, own_queue
from .route import RECORD, Address, Hop, Route, exclusive, hops_from

_RECORD_SIZE = RECORD.size
_OPTIONS_SIZE = ctypes.sizeof(_abi.byway_selector_options)


class _Room:
    """Where records are written before they are read; taken and given back as ``_Cell`` is."""

    __slots__ = ("size", "records", "view", "at", "total", "total_at")

    def __init__(self, size: int) -> None:
        self.size = size
        self.records = (ctypes.c_ubyte * (size * _RECORD_SIZE))()
        self.view = memoryview(self.records)
        self.total = ctypes.c_size_t()
        self.at, self.total_at = ctypes.addressof(self.records), ctypes.addressof(self.total)


_rooms: List[_Room] = []


class Selection(Handle):
    """Routes to try now, in order. Iterates over ``Route``, as often as one likes; all of them cross in one call.

    Routes that were given out stay usable; the memory goes with the last of them.
    """

    __slots__ = ("_rows",)
    _end = "byway_selection_free"
    _rows: Optional[List[Tuple[Any, ...]]]

    def _read(self) -> List[Tuple[Any, ...]]:
        if self._rows is not None:
            return self._rows
        try:
            room = _rooms.pop()
        except IndexError:
            room = _Room(16)
        while True:
            with exclusive:
                check(getters.byway_selection_records(self.pointer, room.at, _RECORD_SIZE, room.size, room.total_at))
            total = room.total.value
            if total <= room.size:
                break
            room = _Room(total)
        self._rows = rows = list(RECORD.iter_unpack(room.view[: total * _RECORD_SIZE]))
        _rooms.append(room)
        return rows

    def close(self) -> None:
        """Idempotent. Routes that were given out stay usable."""
        if self._rows is None:
            super().close()

    def __len__(self) -> int:
        with exclusive:
            return int(getters.byway_selection_len(self.pointer))

    def __getitem__(self, index: int) -> Route:
        rows = self._read()
        return _route(self, index + len(rows) if index < 0 else index, rows[index])

    def __iter__(self) -> Iterator[Route]:
        # Read here, not at the first step of a generator: what is wrong shows where the loop stands.
        return iter([_route(self, index, row) for index, row in enumerate(self._read())])

    def hops(self) -> List[Hop]:
        """Every route as plain values."""
        out = []
        for row in self._read():
            hop = Hop()
            hop._record = row
            out.append(hop)
        return out

    def take(self) -> Optional[Route]:
        """The route under the cursor, which moves on; None when all were given. A ``Dial`` over a Selection tries those
        that are left."""
        out = ctypes.c_void_p()
        with exclusive:
            if call(getters.byway_selection_next, self.pointer, ctypes.addressof(out)) == _abi.BYWAY_DONE:
                return None
            return Route._retained(out.value or 0)

    @property
    def more(self) -> bool:
        """True when ``take`` has a route."""
        with exclusive:
            return bool(getters.byway_selection_more(self.pointer))


def _route(selection: Selection, index: int, row: Tuple[Any, ...]) -> Route:
    route = _new_route(Route)
    route._record = row
    route._owner = selection
    route._index = index
    return route


_new_route = Route.__new__


class Selector(Handle):
    """Gives Selections of routes; iterate over it, or call ``next``.

    Waiting happens in Python's own ``select`` on a queue, so Ctrl-C works and other threads run.
    """

    __slots__ = ("_queue", "_address")
    _end = "byway_selector_free"

    def __init__(self, address: Address, *, tag: int = 0, queue: Optional[Queue] = None, early: bool = False) -> None:
        if queue is None:
            queue = own_queue()
        self._queue = queue
        self._address = address
        if tag or early:
            options = _options(queue, tag, early)
        else:
            try:
                options = queue._plain
            except AttributeError:
                options = queue._plain = _options(queue, 0, False)
        cell = _cell()
        # The options have its number only; another thread may close it.
        held = queue.pointer
        status = lib.byway_selector_new(
            address.engine.pointer, address.pointer, ctypes.addressof(options), cell.out_at, cell.err_at
        )
        del held
        if status < 0 or raised:
            fail(status, cell.err.value)
        self.pointer = cell.out.value or 0
        _cells.append(cell)

    def _step(self) -> Tuple[int, Optional[Selection]]:
        cell = _cell()
        status: int = lib.byway_selector_poll_next(self.pointer, cell.out_at, cell.err_at)
        if status:
            if status < 0 or raised:
                fail(status, cell.err.value)
            _cells.append(cell)
            return status, None
        selection = Selection.__new__(Selection)
        selection.pointer = cell.out.value or 0
        selection._rows = None
        _cells.append(cell)
        if raised:
            fail(status, None)
        return status, selection

    def poll(self) -> Optional[Selection]:
        """The next Selection if it is there now. None when answers are awaited: a record on the queue will tell.

        Raises StopIteration when nothing is left.
        """
        status, selection = self._step()
        if status == _abi.BYWAY_DONE:
            raise StopIteration
        return selection

    def next(self, timeout: Optional[float] = None) -> Optional[Selection]:
        """The next Selection; None when nothing is left. ``timeout`` in seconds, None for 30 s.

        Raises TimeoutError; a further call goes on waiting for the same answers.
        """
        status, selection = self._step()
        if status != _abi.BYWAY_PENDING:
            return selection
        end = time.monotonic() + (30.0 if timeout is None else timeout)
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise errors.TimeoutError(_abi.BYWAY_E_TIMEOUT)
            self._queue.poll(left)
            status, selection = self._step()
            if status != _abi.BYWAY_PENDING:
                return selection

    def __iter__(self) -> Iterator[Selection]:
        while True:
            selection = self.next()
            if selection is None:
                return
            yield selection

    @property
    def may_have_next(self) -> bool:
        """False when ``next`` would say that nothing is left. Asks nobody."""
        return bool(lib.byway_selector_may_have_next(self.pointer))

    @property
    def id(self) -> int:
        """The number completion records and events carry."""
        return int(lib.byway_selector_id(self.pointer))

    def cancel(self) -> None:
        """Ends this for good; a running or later call raises CanceledError. Any thread."""
        check(lib.byway_selector_cancel(self.pointer))

    def explain(self, json: bool = False) -> str:
        """The whole decision so far: what was offered, asked, answered, postponed and filtered."""
        kind = _abi.BYWAY_FORMAT_JSON if json else _abi.BYWAY_FORMAT_TEXT
        return take_text(lib.byway_selector_explain, self.pointer, kind)


def _options(queue: Queue, tag: int, early: bool) -> Any:
    return _abi.byway_selector_options(
        _OPTIONS_SIZE, tag, queue.pointer, _abi.BYWAY_SELECTOR_EARLY if early else 0, 0
    )


def plan(address: Address, tag: int = 0) -> List[Hop]:
    """Every route of an address in one call, what failed before at the end. Answers must come in place."""
    options = _abi.byway_selector_options(_OPTIONS_SIZE, tag, None, 0, 0)
    total, room = ctypes.c_size_t(), 32
    while True:
        records = (_abi.byway_route_record * room)()
        call(
            lib.byway_selector_plan, address.engine.pointer, address.pointer, ctypes.addressof(options),
            ctypes.addressof(records), _RECORD_SIZE, room, ctypes.addressof(total),
        )
        if total.value <= room:
            return hops_from(records, total.value)
        room = total.value
