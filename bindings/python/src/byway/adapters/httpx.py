"""``httpx`` over byway, synchronous and in asyncio: proxies, names and sockets come from an engine.

>>> client = httpx.Client(transport=BywayTransport(engine, proxy_selector=chooser))
>>> client = httpx.AsyncClient(transport=AsyncBywayTransport(engine, proxy_selector=chooser))

Connections are pooled by ``httpcore``, TLS to origins is httpx's own. A plain ``http`` request through an HTTP proxy is
tunnelled as an ``https`` one is: the origin sees no difference, and the proxy learns only host and port. ``proxy`` and
``mounts`` of a client are not needed; its ``verify`` is given here.
"""
from __future__ import annotations

import contextlib
import ssl
from typing import Any, AsyncIterator, Dict, Iterator, Optional, Type, Union

import httpcore
import httpx

from ..dns import Dns
from ..engine import Engine
from ..proxy import ProxySelector
from ._async_stream import AsyncBackend
from ._dialler import Dialler
from ._stream import Backend

#: Of an exception of httpcore the one of httpx has the same name, or that of a base.
_EXCEPTIONS: Dict[Type[Exception], Type[Exception]] = {
    kind: getattr(httpx, name)
    for name, kind in vars(httpcore).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and hasattr(httpx, name)
}


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What httpcore raises comes out as httpx's."""
    try:
        yield
    except Exception as error:
        for kind in type(error).__mro__:
            if kind in _EXCEPTIONS:
                raise _EXCEPTIONS[kind](str(error)) from error
        raise


def _request(request: httpx.Request) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        method=request.method,
        url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw, content=request.stream, extensions=request.extensions,
    )


def _pool_options(verify: Any, limits: httpx.Limits, http1: bool, http2: bool) -> Dict[str, Any]:
    return {
        "ssl_context": httpx.create_ssl_context(verify=verify), "max_connections": limits.max_connections,
        "max_keepalive_connections": limits.max_keepalive_connections, "keepalive_expiry": limits.keepalive_expiry,
        "http1": http1, "http2": http2,
    }


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _told():
            for part in self._stream:
                yield part

    def close(self) -> None:
        self._stream.close()


class BywayTransport(httpx.BaseTransport):
    """A transport for ``httpx.Client``. ``verify`` is as httpx takes it; ``proxy_tls`` is the context for TLS to HTTPS
    proxies, ``dial_options`` are a ``Dial``'s."""

    def __init__(
        self,
        engine: Engine,
        *,
        proxy_selector: Optional[ProxySelector] = None,
        dns: Optional[Dns] = None,
        verify: Union[ssl.SSLContext, str, bool] = True,
        proxy_tls: Optional[ssl.SSLContext] = None,
        http1: bool = True,
        http2: bool = False,
        limits: httpx.Limits = httpx.Limits(max_connections=100, max_keepalive_connections=20),
        dial_options: Optional[Dict[str, Any]] = None,
    ) -> None:
        dialler = Dialler(engine, proxy_selector, dns, proxy_tls, dial_options)
        options = _pool_options(verify, limits, http1, http2)
        # The network backend is not told what the connection is for, so there is a pool for either.
        self._pools = {
            scheme: httpcore.ConnectionPool(network_backend=Backend(dialler, scheme == b"https"), **options)
            for scheme in (b"http", b"https")
        }

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Called by httpx."""
        pool = self._pools.get(request.url.raw_scheme)
        if pool is None:
            raise httpx.UnsupportedProtocol(f"no connections for {request.url.scheme}", request=request)
        with _told():
            answer = pool.handle_request(_request(request))
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    def close(self) -> None:
        """Called by httpx."""
        for pool in self._pools.values():
            pool.close()


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _told():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class AsyncBywayTransport(httpx.AsyncBaseTransport):
    """The same for ``httpx.AsyncClient`` in asyncio: no thread, one descriptor a dial."""

    def __init__(
        self,
        engine: Engine,
        *,
        proxy_selector: Optional[ProxySelector] = None,
        dns: Optional[Dns] = None,
        verify: Union[ssl.SSLContext, str, bool] = True,
        proxy_tls: Optional[ssl.SSLContext] = None,
        http1: bool = True,
        http2: bool = False,
        limits: httpx.Limits = httpx.Limits(max_connections=100, max_keepalive_connections=20),
        dial_options: Optional[Dict[str, Any]] = None,
    ) -> None:
        dialler = Dialler(engine, proxy_selector, dns, proxy_tls, dial_options)
        options = _pool_options(verify, limits, http1, http2)
        self._pools = {
            scheme: httpcore.AsyncConnectionPool(network_backend=AsyncBackend(dialler, scheme == b"https"), **options)
            for scheme in (b"http", b"https")
        }

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Called by httpx."""
        pool = self._pools.get(request.url.raw_scheme)
        if pool is None:
            raise httpx.UnsupportedProtocol(f"no connections for {request.url.scheme}", request=request)
        with _told():
            answer = await pool.handle_async_request(_request(request))
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_AsyncBody(answer.stream), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        """Called by httpx."""
        for pool in self._pools.values():
            await pool.aclose()
