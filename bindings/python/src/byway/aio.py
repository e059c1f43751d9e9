"""byway in an asyncio loop: no thread, one descriptor a queue or dial."""
from __future__ import annotations

import asyncio
import ssl as _ssl
import weakref
from typing import Any, Dict, List, Optional, Tuple, Union

from . import errors
from .connecting import needs_proxy_tls
from .dial import Connected, Dial
from .route import Address
from .selector import Selection, Selector


#: By loop and descriptor, who waits for it: a loop has one reader a descriptor, and selectors share queues.
_waiting: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Dict[int, List[asyncio.Future[None]]]]" = (
    weakref.WeakKeyDictionary()
)


def _wake(waiting: "List[asyncio.Future[None]]") -> None:
    for ready in waiting:
        if not ready.done():
            ready.set_result(None)


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    by_descriptor = _waiting.setdefault(loop, {})
    waiting = by_descriptor.setdefault(fd, [])
    ready = loop.create_future()
    waiting.append(ready)
    if len(waiting) == 1:
        loop.add_reader(fd, _wake, waiting)
    try:
        await ready
    finally:
        waiting.remove(ready)
        if not waiting:
            loop.remove_reader(fd)
            del by_descriptor[fd]


async def next_selection(selector: Selector) -> Optional[Selection]:
    """The selector's next Selection without blocking the loop; None when nothing is left. Any number of them may be
    awaited at once. Cancelling the task cancels the selector."""
    try:
        while True:
            try:
                selection = selector.poll()
            except StopIteration:
                return None
            if selection is not None:
                return selection
            await _readable(selector._queue.fileno())
            # Whoever shares the queue was woken too and looks for itself.
            selector._queue.poll(0)
    except asyncio.CancelledError:
        selector.cancel()
        try:
            # Passes the cancel on to whoever was asked.
            selector.poll()
        except errors.CanceledError:
            pass
        raise


async def dial(address: Address, **options: Any) -> Connected:
    """A connected socket. Cancelling the task cancels the dial and closes every socket of it."""
    with Dial(address, **options) as running:
        while True:
            connected = running.step()
            if connected is not None:
                return connected
            await _readable(running.fileno())


async def open_connection(
    address: Address,
    *,
    ssl: Union[_ssl.SSLContext, bool, None] = None,
    server_hostname: Optional[str] = None,
    timeout: Optional[float] = None,
    **options: Any,
) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As ``asyncio.open_connection``, over the routes of an address.

    A route through an HTTPS proxy raises ConnectError (``BYWAY_E_NEEDS_PROXY_TLS``): asyncio's streams carry one TLS.
    """
    connected = await asyncio.wait_for(dial(address, **options), timeout)
    if connected.needs_proxy_tls:
        raise needs_proxy_tls(connected)
    name = server_hostname or (address.host if ssl else None)
    try:
        return await asyncio.open_connection(sock=connected.socket, ssl=ssl, server_hostname=name)
    except BaseException:
        connected.socket.close()
        raise
