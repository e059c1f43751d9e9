"""Small real servers on loopback for the tests."""
import socket
import socketserver
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
        line = self.rfile.readline().decode()
        while self.rfile.readline().strip():
            pass
        method, target, _ = line.split()
        self.server.seen.append((method, target))
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
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def tunnel(names=None):
    """An HTTP CONNECT proxy that knows `names`; `.server.seen` has what it was asked."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Tunnel)
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
