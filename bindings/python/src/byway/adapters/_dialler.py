"""What a client's connection needs to open its socket."""
from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Dict, Optional, Tuple

from .. import _abi, aio, errors
from ..connecting import connect
from ..dial import Connected
from ..dns import Dns
from ..engine import Engine
from ..proxy import ProxySelector
from ..route import Address


class Dialler:
    """An engine, who chooses proxies, who resolves names, TLS to proxies, options of a ``Dial``."""

    def __init__(
        self,
        engine: Engine,
        proxy_selector: Optional[ProxySelector],
        dns: Optional[Dns],
        proxy_tls: Optional[ssl.SSLContext],
        options: Optional[Dict[str, Any]],
    ) -> None:
        self.engine, self.proxy_selector, self.dns = engine, proxy_selector, dns
        self.proxy_tls, self.options = proxy_tls, options or {}

    def address(self, host: str, port: int, tls: bool) -> Address:
        """The origin, always reached through a tunnel where a proxy is in between: every request then looks the same."""
        return Address(
            self.engine, host, port, tls=tls, proxy_selector=self.proxy_selector, dns=self.dns,
            protocols=() if tls else ("h2_prior_knowledge",),
        )

    def from_source(self, source: Optional[Tuple[str, int]]) -> Dict[str, Any]:
        """The options for sockets bound to an address of this machine, whose port the system chooses."""
        if source is None:
            return self.options
        ip, port = source
        if port:
            raise errors.UnsupportedError(_abi.BYWAY_E_UNSUPPORTED, "a fixed local port", subject="source_address")
        return {**self.options, "source_v6" if ":" in ip else "source_v4": ip}

    def open(
        self,
        host: str,
        port: int,
        tls: bool,
        timeout: Optional[float],
        tls_in_tls: bool,
        source: Optional[Tuple[str, int]] = None,
    ) -> socket.socket:
        """A connected blocking socket to the origin. Without ``tls_in_tls`` an origin that speaks TLS is not reached
        through a proxy that does."""
        options = self.from_source(source)
        opened, route = connect(self.address(host, port, tls), timeout, proxy_tls=self.proxy_tls, **options)
        if tls and not tls_in_tls and isinstance(opened, ssl.SSLSocket):
            opened.close()
            raise errors.UnsupportedError(_abi.BYWAY_E_UNSUPPORTED, "TLS inside TLS to the proxy", subject=str(route.proxy))
        return opened

    async def dial(
        self, host: str, port: int, tls: bool, timeout: Optional[float], source: Optional[Tuple[str, int]] = None
    ) -> Connected:
        """The same in an asyncio loop; what TLS to a proxy needs is the caller's."""
        options = self.from_source(source)
        return await asyncio.wait_for(aio.dial(self.address(host, port, tls), **options), timeout)
