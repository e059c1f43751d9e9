"""Sockets of byway in an asyncio loop as network streams of ``httpcore``."""
from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Any, Iterable, Iterator, Optional, Type

import anyio
import anyio.abc
import anyio.streams.tls
import httpcore

from .. import errors
from ..connecting import needs_proxy_tls
from ..dial import Connected
from ..failure import Failure, Phase
from ..handshake import Handshake, Want
from ._dialler import Dialler
from ._stream import readable


class AsyncBackend(httpcore.AsyncNetworkBackend):
    """Opens connections through byway; ``tls`` says what they are for."""

    def __init__(self, dialler: Dialler, tls: bool) -> None:
        self._dialler, self._tls = dialler, tls

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Optional[float] = None,
        local_address: Optional[str] = None,
        socket_options: Optional[Iterable[Any]] = None,
    ) -> httpcore.AsyncNetworkStream:
        """Called by httpcore."""
        source = None if local_address is None else (local_address, 0)
        try:
            connected = await self._dialler.dial(host, port, self._tls, timeout, source=source)
            stream: anyio.abc.ByteStream = Bytes(connected.socket)
            try:
                for option in socket_options or ():
                    connected.socket.setsockopt(*option)
                if connected.needs_proxy_tls:
                    stream = await self._through(connected, stream, timeout)
            except BaseException:
                connected.socket.close()
                raise
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except (OSError, errors.BywayError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
            raise httpcore.ConnectError(str(error)) from error
        return AsyncStream(stream, connected.socket)

    async def _through(
        self, connected: Connected, raw: anyio.abc.ByteStream, timeout: Optional[float]
    ) -> anyio.abc.ByteStream:
        """TLS to the proxy, and through it the tunnel."""
        if self._dialler.proxy_tls is None:
            raise needs_proxy_tls(connected)
        try:
            stream = await self._dialogue(connected, raw, timeout)
        except (OSError, errors.BywayError, anyio.BrokenResourceError, anyio.EndOfStream):
            self._dialler.engine.connect_failed(connected.route, Failure.TLS_HANDSHAKE, phase=Phase.TLS)
            raise
        self._dialler.engine.connected(connected.route)
        return stream

    async def _dialogue(
        self, connected: Connected, raw: anyio.abc.ByteStream, timeout: Optional[float]
    ) -> anyio.abc.ByteStream:
        proxy = connected.route.proxy
        with anyio.fail_after(timeout), Handshake(connected.route, **self._dialler.options) as dialogue:
            stream = await anyio.streams.tls.TLSStream.wrap(
                raw, server_side=False, hostname=None if proxy is None else proxy.host,
                ssl_context=self._dialler.proxy_tls, standard_compatible=False,
            )
            while True:
                want, limit = dialogue.wanted()
                if want == Want.WRITE:
                    data = dialogue.output()
                    await stream.send(data)
                    dialogue.sent(len(data))
                elif want in (Want.READ, Want.PEEK):
                    # What is behind the answer is the tunnel's.
                    dialogue.feed(await stream.receive(limit if want == Want.READ else 1))
                elif want == Want.DONE:
                    return stream
                else:
                    dialogue.answer(None)


@contextlib.contextmanager
def _told(late: Type[Exception], broken: Type[Exception]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        raise broken(str(error)) from error


class Bytes(anyio.abc.ByteStream):
    """A non-blocking socket in the running loop."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """What arrived; raises EndOfStream behind the last of it."""
        data = await asyncio.get_running_loop().sock_recv(self._socket, max_bytes)
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        """All of it."""
        await asyncio.get_running_loop().sock_sendall(self._socket, item)

    async def send_eof(self) -> None:
        """No more is sent."""
        self._socket.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        """Closes the socket."""
        self._socket.close()


class AsyncStream(httpcore.AsyncNetworkStream):
    """A connection, with or without TLS, or with one inside another."""

    def __init__(self, stream: anyio.abc.ByteStream, opened: socket.socket) -> None:
        self._stream, self._socket = stream, opened

    async def read(self, max_bytes: int, timeout: Optional[float] = None) -> bytes:
        """Called by httpcore."""
        with _told(httpcore.ReadTimeout, httpcore.ReadError), anyio.fail_after(timeout):
            try:
                return await self._stream.receive(max_bytes)
            except anyio.EndOfStream:
                return b""

    async def write(self, buffer: bytes, timeout: Optional[float] = None) -> None:
        """Called by httpcore."""
        if buffer:
            with _told(httpcore.WriteTimeout, httpcore.WriteError), anyio.fail_after(timeout):
                await self._stream.send(buffer)

    async def aclose(self) -> None:
        """Called by httpcore."""
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: Optional[str] = None, timeout: Optional[float] = None
    ) -> httpcore.AsyncNetworkStream:
        """Called by httpcore."""
        try:
            with _told(httpcore.ConnectTimeout, httpcore.ConnectError), anyio.fail_after(timeout):
                try:
                    wrapped = await anyio.streams.tls.TLSStream.wrap(
                        self._stream, server_side=False, hostname=server_hostname, ssl_context=ssl_context,
                        standard_compatible=False,
                    )
                except anyio.EndOfStream as error:
                    raise httpcore.ConnectError("the origin closed inside the TLS handshake") from error
        except BaseException:
            self._socket.close()
            raise
        return AsyncStream(wrapped, self._socket)

    def get_extra_info(self, info: str) -> Any:
        """Called by httpcore."""
        if info == "ssl_object":
            return self._stream.extra(anyio.streams.tls.TLSAttribute.ssl_object, None)
        if info == "client_addr":
            return self._socket.getsockname()
        if info == "server_addr":
            return self._socket.getpeername()
        if info == "socket":
            return self._socket
        if info == "is_readable":
            return readable(self._socket)
        return None
