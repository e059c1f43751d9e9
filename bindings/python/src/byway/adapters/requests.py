"""``requests`` and ``urllib3`` over byway: proxies, names and sockets come from an engine.

>>> session = requests.Session()
>>> session.mount("http://", BywayAdapter(engine, proxy_selector=chooser))
>>> session.mount("https://", BywayAdapter(engine, proxy_selector=chooser))

A plain ``http`` request through an HTTP proxy is tunnelled as an ``https`` one is: the origin sees no difference, and
the proxy learns only host and port. TLS to an origin through a proxy that itself is behind TLS is refused with an error:
urllib3 has no public place for a second TLS inside the first.
"""
from __future__ import annotations

import socket
import ssl
from typing import Any, Dict, Optional, Tuple

import requests.adapters
import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from .. import errors
from ..dns import Dns
from ..engine import Engine
from ..proxy import ProxySelector
from ._dialler import Dialler


def _seconds(connection: Any) -> Optional[float]:
    timeout = connection.timeout
    return timeout if isinstance(timeout, (int, float)) else None


def _open(connection: Any, tls: bool) -> socket.socket:
    try:
        dialler: Dialler = connection.byway
        opened = dialler.open(
            connection.host, connection.port, tls, _seconds(connection), tls_in_tls=False, source=connection.source_address
        )
    except errors.TimeoutError as error:
        raise urllib3.exceptions.ConnectTimeoutError(connection, str(error)) from error
    except errors.BywayError as error:
        raise urllib3.exceptions.NewConnectionError(connection, str(error)) from error
    try:
        for option in connection.socket_options or ():
            opened.setsockopt(*option)
        opened.settimeout(_seconds(connection))
    except BaseException:
        opened.close()
        raise
    return opened


class _Http(HTTPConnection):
    byway: Dialler

    def _new_conn(self) -> socket.socket:
        return _open(self, False)


class _Https(HTTPSConnection):
    byway: Dialler

    def _new_conn(self) -> socket.socket:
        return _open(self, True)


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http
    dialler: Dialler

    def _new_conn(self) -> Any:
        connection: Any = super()._new_conn()
        connection.byway = self.dialler
        return connection


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https
    dialler: Dialler

    def _new_conn(self) -> Any:
        connection: Any = super()._new_conn()
        connection.byway = self.dialler
        return connection


class BywayPoolManager(urllib3.PoolManager):
    """A pool manager whose connections are opened by byway."""

    def __init__(
        self,
        engine: Engine,
        *,
        proxy_selector: Optional[ProxySelector] = None,
        dns: Optional[Dns] = None,
        proxy_tls: Optional[ssl.SSLContext] = None,
        dial_options: Optional[Dict[str, Any]] = None,
        **pool_options: Any,
    ) -> None:
        super().__init__(**pool_options)
        self.dialler = Dialler(engine, proxy_selector, dns, proxy_tls, dial_options)
        self.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def _new_pool(self, scheme: str, host: str, port: int, request_context: Optional[Dict[str, Any]] = None) -> Any:
        pool: Any = super()._new_pool(scheme, host, port, request_context)
        pool.dialler = self.dialler
        return pool


class BywayAdapter(requests.adapters.HTTPAdapter):
    """Mount it on a session; ``proxies`` of requests and of the environment are then not looked at."""

    def __init__(
        self,
        engine: Engine,
        *,
        proxy_selector: Optional[ProxySelector] = None,
        dns: Optional[Dns] = None,
        proxy_tls: Optional[ssl.SSLContext] = None,
        dial_options: Optional[Dict[str, Any]] = None,
        **adapter_options: Any,
    ) -> None:
        self._byway: Tuple[Any, ...] = (engine, proxy_selector, dns, proxy_tls, dial_options)
        super().__init__(**adapter_options)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: Any) -> None:
        """Called by requests."""
        engine, proxy_selector, dns, proxy_tls, dial_options = self._byway
        self.poolmanager = BywayPoolManager(
            engine, proxy_selector=proxy_selector, dns=dns, proxy_tls=proxy_tls, dial_options=dial_options,
            num_pools=connections, maxsize=maxsize, block=block, **pool_kwargs,
        )

    def proxy_manager_for(self, proxy: str, **proxy_kwargs: Any) -> Any:
        """Called by requests for a proxy it found itself: byway decides instead."""
        return self.poolmanager

    def request_url(self, request: Any, proxies: Any) -> Any:
        """Called by requests: always the path, because the socket leads to the origin."""
        return super().request_url(request, {})
