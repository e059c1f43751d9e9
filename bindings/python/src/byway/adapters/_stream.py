"""Blocking sockets of byway as network streams of ``httpcore``."""
from __future__ import annotations

import contextlib
import select
import socket
import ssl
from typing import Any, Iterable, Iterator, Optional, Type

import httpcore

from .. import errors
from ._dialler import Dialler


class Backend(httpcore.NetworkBackend):
    """Opens connections through byway; ``tls`` says what they are for."""

    def __init__(self, dialler: Dialler, tls: bool) -> None:
        self._dialler, self._tls = dialler, tls

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Optional[float] = None,
        local_address: Optional[str] = None,
        socket_options: Optional[Iterable[Any]] = None,
    ) -> httpcore.NetworkStream:
        """Called by httpcore."""
        source = None if local_address is None else (local_address, 0)
        try:
            opened = self._dialler.open(host, port, self._tls, timeout, tls_in_tls=True, source=source)
        except errors.TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except errors.BywayError as error:
            raise httpcore.ConnectError(str(error)) from error
        for option in socket_options or ():
            opened.setsockopt(*option)
        return Stream(opened)


@contextlib.contextmanager
def _told(late: Type[Exception], broken: Type[Exception]) -> Iterator[None]:
    try:
        yield
    except socket.timeout as error:
        raise late(str(error)) from error
    except OSError as error:
        raise broken(str(error)) from error


class Stream(httpcore.NetworkStream):
    """A connected socket, with or without TLS."""

    def __init__(self, opened: Any) -> None:
        self._socket = opened

    def read(self, max_bytes: int, timeout: Optional[float] = None) -> bytes:
        """Called by httpcore."""
        with _told(httpcore.ReadTimeout, httpcore.ReadError):
            self._socket.settimeout(timeout)
            data: bytes = self._socket.recv(max_bytes)
            return data

    def write(self, buffer: bytes, timeout: Optional[float] = None) -> None:
        """Called by httpcore."""
        with _told(httpcore.WriteTimeout, httpcore.WriteError):
            self._socket.settimeout(timeout)
            self._socket.sendall(buffer)

    def close(self) -> None:
        """Called by httpcore."""
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: Optional[str] = None, timeout: Optional[float] = None
    ) -> httpcore.NetworkStream:
        """Called by httpcore."""
        try:
            with _told(httpcore.ConnectTimeout, httpcore.ConnectError):
                self._socket.settimeout(timeout)
                if isinstance(self._socket, ssl.SSLSocket):
                    return Stream(TlsInTls(self._socket, ssl_context, server_hostname))
                return Stream(ssl_context.wrap_socket(self._socket, server_hostname=server_hostname))
        except Exception:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:
        """Called by httpcore."""
        if info == "ssl_object":
            return self._socket if hasattr(self._socket, "selected_alpn_protocol") else None
        if info == "client_addr":
            return self._socket.getsockname()
        if info == "server_addr":
            return self._socket.getpeername()
        if info == "socket":
            return self._socket
        if info == "is_readable":
            return readable(self._socket)
        return None


def readable(opened: Any) -> bool:
    """True when an idle connection has something to read: it was closed, or is out of step."""
    number = opened.fileno()
    if number < 0:
        return True
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


class TlsInTls:
    """TLS to the origin inside the TLS to the proxy; as much of a socket as a stream needs."""

    def __init__(self, outer: ssl.SSLSocket, context: ssl.SSLContext, server_hostname: Optional[str]) -> None:
        self._outer, self._in, self._out = outer, ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=server_hostname)
        self._pump(self._tls.do_handshake)

    def __getattr__(self, name: str) -> Any:
        # The place of the connection and its timeout are the outer socket's.
        return getattr(self._outer, name)

    def _pump(self, work: Any, *arguments: Any) -> Any:
        while True:
            try:
                result = work(*arguments)
            except ssl.SSLWantReadError:
                self._flush()
                data = self._outer.recv(65536)
                if data:
                    self._in.write(data)
                else:
                    self._in.write_eof()
                continue
            self._flush()
            return result

    def _flush(self) -> None:
        if self._out.pending:
            self._outer.sendall(self._out.read())

    def selected_alpn_protocol(self) -> Optional[str]:
        """Of the origin."""
        return self._tls.selected_alpn_protocol()

    def recv(self, size: int) -> bytes:
        """What the origin says."""
        try:
            data: bytes = self._pump(self._tls.read, size)
            return data
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def sendall(self, data: bytes) -> None:
        """To the origin."""
        view = memoryview(data)
        while view:
            view = view[self._pump(self._tls.write, view):]
