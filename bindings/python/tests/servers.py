"""Small real servers on loopback for the tests."""
import socket
import socketserver
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Runs a socketserver in a thread for the length of a `with`."""

    def __init__(self, server):
        self.server = server
        self.port = server.server_address[1]

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = f"hello from {self.headers['Host']} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def origin(address="127.0.0.1", context=None):
    """An HTTP server, or an HTTPS one with a TLS context."""
    server = ThreadingHTTPServer((address, 0), Hello)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    return Server(server)


class _Tunnel(socketserver.StreamRequestHandler):
    def handle(self):
        line, head = self.rfile.readline().decode(), ""
        for header in iter(self.rfile.readline, b"\r\n"):
            if not header:
                return
            head += header.decode()
        method, target, _ = line.split()
        if self.server.auth and f"Proxy-Authorization: {self.server.auth}\r\n" not in head:
            self.wfile.write(b'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="r"\r\nContent-Length: 0\r\n\r\n')
            return self.handle()
        self.server.seen.append((method, target))
        self.server.heads.append(head)
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
            return
        host, port = target.rsplit(":", 1)
        upstream = socket.create_connection((self.server.names.get(host, host), int(port)))
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        other = threading.Thread(target=_pump, args=(upstream, self.connection), daemon=True)
        other.start()
        _pump(self.connection, upstream)
        other.join()
        upstream.close()


def _pump(source, sink):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
        # Of a socket with TLS this would take the TLS away under what is still to be read.
        if not isinstance(sink, ssl.SSLSocket):
            sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def tunnel(names=None, context=None, auth=None):
    """An HTTP CONNECT proxy that knows `names`, behind TLS with a context, asking for `auth`; `.server.seen` has what it
    was asked, `.server.heads` the headers."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Tunnel)
    server.daemon_threads = True
    server.seen, server.heads, server.names, server.auth = [], [], names or {}, auth
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    return Server(server)


class _Socks5(socketserver.StreamRequestHandler):
    def handle(self):
        _, methods = self.rfile.read(2)
        self.rfile.read(methods)
        self.wfile.write(b"\5\0")
        _, _, _, kind = self.rfile.read(4)
        if kind == 3:
            host = self.rfile.read(self.rfile.read(1)[0]).decode()
        else:
            host = socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, self.rfile.read(4 if kind == 1 else 16))
        port = int.from_bytes(self.rfile.read(2), "big")
        self.server.seen.append((host, port))
        upstream = socket.create_connection((self.server.names.get(host, host), port))
        self.wfile.write(b"\5\0\0\1" + bytes(6))
        other = threading.Thread(target=_pump, args=(upstream, self.connection), daemon=True)
        other.start()
        _pump(self.connection, upstream)
        other.join()
        upstream.close()


def socks5(names=None):
    """A SOCKS5 proxy that knows `names`; `.server.seen` has what it was asked."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Socks5)
    server.daemon_threads = True
    server.seen, server.names = [], names or {}
    return Server(server)


_kept = []


def refused_port():
    """A port of 127.0.0.1 on which nobody listens, and nobody can: it stays bound."""
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    _kept.append(probe)
    return probe.getsockname()[1]
