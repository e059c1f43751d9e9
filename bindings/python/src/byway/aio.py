"""byway in an asyncio loop: no thread, one descriptor a queue or dial."""
from __future__ import annotations

import asyncio
import ssl as _ssl
import weakref
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _abi, errors
from .connecting import needs_proxy_tls, reason_of
from .dial import Connected, Dial
from .handshake import Handshake, Want
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


async def _step(running: Dial) -> Connected:
    while True:
        connected = running.step()
        if connected is not None:
            return connected
        await _readable(running.fileno())


async def dial(address: Address, **options: Any) -> Connected:
    """A connected socket. Cancelling the task cancels the dial and closes every socket of it."""
    with Dial(address, **options) as running:
        return await _step(running)


async def open_connection(
    address: Address,
    *,
    ssl: Union[_ssl.SSLContext, bool, None] = None,
    server_hostname: Optional[str] = None,
    timeout: Optional[float] = None,
    proxy_tls: Optional[_ssl.SSLContext] = None,
    **options: Any,
) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As ``asyncio.open_connection``, over the routes of an address; ``timeout`` is in seconds and for all of it, options
    are a ``Dial``'s.

    To an HTTPS proxy TLS is spoken under ``proxy_tls``; without it such a route raises ConnectError
    (``BYWAY_E_NEEDS_PROXY_TLS``). TLS to the origin inside that wants Python 3.11; before it raises UnsupportedError.
    """
    opening = _open(address, ssl, server_hostname or (address.host if ssl else None), proxy_tls, options)
    return await asyncio.wait_for(opening, timeout)


async def _open(
    address: Address,
    tls: Union[_ssl.SSLContext, bool, None],
    name: Optional[str],
    proxy_tls: Optional[_ssl.SSLContext],
    options: Any,
) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    with Dial(address, **options) as running:
        while True:
            connected = await _step(running)
            if not connected.needs_proxy_tls:
                try:
                    return await asyncio.open_connection(sock=connected.socket, ssl=tls, server_hostname=name)
                except BaseException:
                    connected.socket.close()
                    raise
            if proxy_tls is None:
                raise needs_proxy_tls(connected)
            try:
                reader, writer = await _tunnel(connected, proxy_tls, options)
                running.confirm(connected.attempt)
                break
            except (OSError, EOFError, errors.BywayError) as error:
                # Another route may do better; when there is none, the dial says what became of all of them.
                running.resume(connected.attempt, reason_of(error))
    if tls:
        try:
            await _inner_tls(writer, tls, name, connected)
        except BaseException:
            writer.transport.abort()
            raise
    return reader, writer


async def _tunnel(
    connected: Connected, proxy_tls: _ssl.SSLContext, options: Any
) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """TLS to the proxy, and through it the tunnel."""
    proxy = connected.route.proxy
    try:
        reader, writer = await asyncio.open_connection(
            sock=connected.socket, ssl=proxy_tls, server_hostname=None if proxy is None else proxy.host
        )
    except BaseException:
        connected.socket.close()
        raise
    try:
        with Handshake(connected.route, **options) as dialogue:
            while True:
                want, limit = dialogue.wanted()
                if want == Want.WRITE:
                    data = dialogue.output()
                    writer.write(data)
                    await writer.drain()
                    dialogue.sent(len(data))
                elif want in (Want.READ, Want.PEEK):
                    # What is behind the answer is the tunnel's.
                    data = await reader.read(limit if want == Want.READ else 1)
                    if not data:
                        raise EOFError("the proxy closed the connection")
                    dialogue.feed(data)
                elif want == Want.DONE:
                    return reader, writer
                else:
                    # The proxy's own credentials were sent at once; there are no others.
                    dialogue.answer(None)
    except BaseException:
        writer.transport.abort()
        raise


async def _inner_tls(
    writer: asyncio.StreamWriter, tls: Union[_ssl.SSLContext, bool], name: Optional[str], connected: Connected
) -> None:
    # Before 3.11 asyncio has no way to put TLS over a stream, or does not read through two.
    start_tls = getattr(writer, "start_tls", None)
    if start_tls is None:
        why = "TLS inside TLS to the proxy wants Python 3.11"
        raise errors.UnsupportedError(_abi.BYWAY_E_UNSUPPORTED, why, subject=str(connected.route.proxy))
    try:
        await start_tls(_ssl.create_default_context() if tls is True else tls, server_hostname=name)
    except TypeError as error:
        # Python up to 3.11.7 and 3.12.1 stumbles while it gives up a TLS inside TLS, over what it meant to say.
        if isinstance(error.__context__, _ssl.SSLError):
            raise error.__context__ from None
        raise
