"""Ctrl-C while the library waits inside a call."""
from __future__ import annotations

import os
import select
import signal
import threading
import time
from typing import Callable, Optional, TypeVar

from .errors import CanceledError

T = TypeVar("T")


def waiting(wait: Callable[[Optional[float]], T], timeout: Optional[float], cancel: Callable[[], object]) -> T:
    """``wait(timeout)``, a call of the library that ends with CanceledError after ``cancel``.

    Python's handlers run when a call is over, so on the main thread a Ctrl-C ends it: a second thread hears of the signal
    and cancels. A handler that raises nothing has the call begun anew, with what is left of its time. Other signals wait,
    as during any call.
    """
    if threading.current_thread() is not threading.main_thread() or (timeout is not None and timeout <= 0):
        return wait(timeout)
    end = None if timeout is None else time.monotonic() + timeout
    with _Watch(cancel) as watch:
        while True:
            try:
                return wait(None if end is None else max(0.0, end - time.monotonic()))
            except CanceledError:
                if not watch.interrupted:
                    raise
                watch.interrupted = False


class _Watch:
    """Cancels after a Ctrl-C, until it ends."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        self.interrupted = False
        self._cancel = cancel
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._thread = threading.Thread(target=self._watch, name="byway-interrupt", daemon=True)
        self._former = -1

    def __enter__(self) -> "_Watch":
        self._thread.start()
        try:
            self._former = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        except ValueError:
            # An interpreter that gets no signals.
            self._set = False
        else:
            self._set = True
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._set:
                signal.set_wakeup_fd(self._former)
        finally:
            # The end of the pipe is the end of the thread.
            os.close(self._write)
            self._thread.join()
            os.close(self._read)

    def _watch(self) -> None:
        ready = select.poll()
        ready.register(self._read, select.POLLIN)
        while True:
            # The call may not have begun when the signal came: again and again.
            if ready.poll(50 if self.interrupted else None):
                numbers = os.read(self._read, 64)
                if not numbers:
                    return
                if self._former >= 0:
                    try:
                        os.write(self._former, numbers)
                    except OSError:
                        pass
                self.interrupted = self.interrupted or signal.SIGINT in numbers
            if self.interrupted:
                self._cancel()
