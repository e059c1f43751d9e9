"""The vocabulary of okhttp.jsonl: its addresses, proxies, failures and versions as byway's."""
import byway
from byway import Failure

WHOLE = {
    "plain_io": Failure.IO,
    "refused": Failure.REFUSED,
    "connection_shutdown": Failure.CONNECTION_SHUTDOWN,
    "file_not_found": Failure.REQUEST_BODY,
    "protocol": Failure.PROTOCOL,
    "interrupted_io": Failure.INTERRUPTED,
    "socket_timeout": Failure.TIMEOUT,
    "timeout": Failure.TIMEOUT,
    "tls_handshake_cert_cause": Failure.TLS_CERTIFICATE,
    "tls_handshake_other": Failure.TLS_HANDSHAKE,
    "tls_peer_unverified": Failure.TLS_PEER_UNVERIFIED,
    "tls_other": Failure.TLS,
    "stream_reset_refused": Failure.STREAM_REFUSED,
    "stream_reset_cancel": Failure.STREAM_CANCELED,
    "stream_reset_other": Failure.STREAM_RESET,
    "unknown_host": Failure.UNKNOWN_HOST,
    "http_code_407_without_http_proxy": Failure.AUTH_WITHOUT_PROXY,
    "unreachable": Failure.UNREACHABLE,
}
PARTS = [
    ("lost the race", Failure.CANCELED),
    ("407", Failure.PROXY_AUTH),
    ("certificate", Failure.TLS_CERTIFICATE),
    ("handshake", Failure.TLS_HANDSHAKE),
    ("tls", Failure.TLS_HANDSHAKE),
    ("timeout", Failure.TIMEOUT),
]


def failure(name):
    """The failure a name of the cases stands for."""
    if name in WHOLE:
        return WHOLE[name]
    return next((kind for part, kind in PARTS if name and part in name), Failure.IO)


def line(case):
    """The line of OkHttp a case is about."""
    return byway.Compat.OKHTTP_3 if (case.get("line") or "").startswith("3") else byway.Compat.OKHTTP_5


def engine_with(compat, routing_flags=0):
    return byway.Engine(compat=compat, routing_flags=routing_flags)


def proxy_of(proxy):
    """`{"type": "HTTP", "host": ..., "ip": ..., "port": ...}`; None for DIRECT and null."""
    kind = (proxy or {}).get("type") or "DIRECT"
    if kind == "DIRECT":
        return None
    socks = byway.ProxyKind.SOCKS5H if kind == "SOCKS" else byway.ProxyKind.HTTP
    return byway.Proxy(socks, proxy.get("host") or "", proxy.get("port") or 0, ip=proxy.get("ip"))


def address_of(engine, address, explicit_proxy=None, dns=None, chooser=None):
    """`{"scheme": ..., "host": ..., "port": ..., "protocols": [...]}`."""
    return byway.Address(
        engine, address.get("host") or "", address.get("port") or 0, scheme=address.get("scheme") or "http",
        direct=(explicit_proxy or {}).get("type") == "DIRECT", proxy=proxy_of(explicit_proxy), dns=dns,
        proxy_selector=chooser, protocols=address.get("protocols") or (),
    )
