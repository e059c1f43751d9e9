"""One event loop's inbox."""
from __future__ import annotations

import ctypes
import select
import threading
from typing import Any, Callable, List, NamedTuple, Optional

from . import _abi, _callbacks
from ._core import Handle, call, check, finish_at_exit, give
from ._library import lib

_ROOM = 64


class Completion(NamedTuple):
    """Says how one pending operation ended; ``status`` 0 means: call the operation again for its result."""

    tag: int
    id: int
    kind: int
    status: int


class Queue(Handle):
    """Completion records, callbacks that must run on the host's thread, deadlines.

    ``fileno`` is readable while ``poll`` has something to do, so a queue can be registered with any selector or event
    loop. Usable from every thread; one poller at a time.
    """

    __slots__ = ("_plain",)
    #: What a selector with no wishes is made with, for this queue.
    _plain: Any
    _end = "byway_queue_release"

    def __init__(self, *, loop: bool = False, capacity: int = 0) -> None:
        options = _abi.byway_queue_options()
        lib.byway_queue_options_init(ctypes.addressof(options))
        options.flags = _abi.BYWAY_QUEUE_LOOP if loop else 0
        options.capacity = capacity
        super().__init__(give(lib.byway_queue_new, ctypes.addressof(options)))

    def fileno(self) -> int:
        """Descriptor that is readable while something is queued or a deadline has passed. The queue's own."""
        out = ctypes.c_int32(-1)
        check(lib.byway_queue_fd(self.pointer, ctypes.addressof(out)))
        return out.value

    def poll(self, timeout: Optional[float] = 0) -> List[Completion]:
        """Runs queued callbacks on this thread and returns the records that were there.

        ``timeout`` in seconds; None waits up to 30 s. Waiting can be interrupted with Ctrl-C.
        """
        if timeout is None or timeout > 0:
            # Python's own wait handles signals; the library's would only see them when it is over.
            select.select([self.fileno()], [], [], 30 if timeout is None else timeout)
        count = ctypes.c_size_t()
        records = (_abi.byway_completion * _ROOM)()
        call(
            lib.byway_queue_poll, self.pointer, 0, ctypes.addressof(records), ctypes.sizeof(_abi.byway_completion),
            _ROOM, ctypes.addressof(count),
        )
        return [Completion(r.tag, r.id, r.kind, r.status) for r in records[: count.value]]

    def wakeup(self) -> None:
        """Ends a running poll, or the next one, at once. Any thread."""
        check(lib.byway_queue_wakeup(self.pointer))

    def deadline(self) -> Optional[float]:
        """Seconds until the next deadline; 0 when it has passed, None when there is none."""
        out = ctypes.c_int64(-1)
        check(lib.byway_queue_deadline(self.pointer, ctypes.addressof(out)))
        return None if out.value < 0 else out.value / 1000

    def lost(self) -> int:
        """Events dropped because the queue was full."""
        return int(lib.byway_queue_lost(self.pointer))

    def set_notify(self, notify: Optional[Callable[[], None]]) -> None:
        """Has ``notify`` called when the queue goes from empty to non-empty, on any thread. None takes it back.

        It may only schedule a poll elsewhere. A descriptor (``fileno``) needs no foreign thread inside Python.
        """
        if notify is None:
            call(lib.byway_queue_set_notify, self.pointer, None)
            return
        callbacks = _abi.byway_notify_callbacks(
            ctypes.sizeof(_abi.byway_notify_callbacks), _callbacks.register(notify), _callbacks.destroy, _NOTIFY
        )
        call(lib.byway_queue_set_notify, self.pointer, ctypes.addressof(callbacks))
        finish_at_exit(self)

    def _at_exit(self) -> None:
        # Threads of the library may not call into an interpreter that is gone.
        self.set_notify(None)


def _notify(target: Callable[[], None]) -> None:
    target()


_NOTIFY = _callbacks.guarded(_abi.byway_notify_callbacks_notify, _notify, None, alone=True)

_own = threading.local()


def own_queue() -> Queue:
    """This thread's queue for calls that wait."""
    try:
        queue: Queue = _own.queue
    except AttributeError:
        queue = _own.queue = Queue()
    return queue
