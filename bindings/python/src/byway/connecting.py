"""A connected socket in one call, TLS to the proxy included."""
from __future__ import annotations

import socket
import ssl
import time
from typing import Any, Optional, Tuple

from . import _abi, errors
from .dial import Connected, Dial, Resume
from .handshake import Handshake, Want
from .route import Address, Route


def needs_proxy_tls(connected: Connected) -> errors.BywayError:
    """For a host that runs no TLS to proxies: closes the socket; the error names the proxy."""
    connected.socket.close()
    return errors.ConnectError(_abi.BYWAY_E_NEEDS_PROXY_TLS, subject=str(connected.route.proxy))


def connect(
    address: Address, timeout: Optional[float] = None, *, proxy_tls: Optional[ssl.SSLContext] = None, **options: Any
) -> Tuple[socket.socket, Route]:
    """A connected blocking socket to an address, through whatever proxy was chosen for it; ``timeout`` in seconds, None
    for 30. Options are a ``Dial``'s.

    To an HTTPS proxy TLS is spoken under ``proxy_tls``, and the socket is an ``ssl.SSLSocket``; without it such a route
    raises ConnectError (``BYWAY_E_NEEDS_PROXY_TLS``).
    """
    end = time.monotonic() + (30.0 if timeout is None else timeout)
    with Dial(address, **options) as dial:
        while True:
            connected = dial.run(max(0.0, end - time.monotonic()))
            opened = connected.socket
            if connected.needs_proxy_tls:
                if proxy_tls is None:
                    raise needs_proxy_tls(connected)
                try:
                    opened = _tunnel(connected, proxy_tls, end, options)
                    dial.confirm(connected.attempt)
                except (OSError, errors.BywayError) as error:
                    connected.socket.close()
                    # Another route may do better; when there is none, the dial says what became of all of them.
                    dial.resume(connected.attempt, reason_of(error))
                    continue
            opened.setblocking(True)
            return opened, connected.route


def reason_of(error: BaseException) -> Resume:
    """Why a socket to a proxy could not be used."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Resume.CERTIFICATE
    return Resume.TLS if isinstance(error, ssl.SSLError) else Resume.CLOSED


def _tunnel(connected: Connected, context: ssl.SSLContext, end: float, options: Any) -> socket.socket:
    """TLS to the proxy, and through it the tunnel."""
    route = connected.route
    proxy = route.proxy
    host = proxy.host if proxy is not None else None
    opened = connected.socket
    with Handshake(route, **options) as dialogue:
        while True:
            opened.settimeout(max(0.001, end - time.monotonic()))
            wrapped = context.wrap_socket(opened, server_hostname=host)
            try:
                want = dialogue.run(wrapped)
                if want == Want.DONE:
                    return wrapped
                if want == Want.CREDENTIALS:
                    # The proxy's own were sent at once; there are no others.
                    dialogue.answer(None)
            except BaseException:
                wrapped.close()
                raise
            wrapped.close()
            opened = socket.socket(socket.AF_INET6 if len(route.sockaddr) == 4 else socket.AF_INET)
            opened.settimeout(max(0.001, end - time.monotonic()))
            opened.connect(route.sockaddr)
            dialogue.reconnected()
