"""okhttp.jsonl connect_tunnel: upstream's tunnels through a dial of an engine that behaves as upstream's connector. The
proxy is here, on the same thread, so that every cut of its answers comes as it was cut."""
import re
import select
import socket

import byway
from byway import DialEventKind, DialFlag
from case import Fails, same
from networks import listener_at

CHALLENGE = "Proxy-Authenticate: Basic realm=\"p\"\r\n"


def replies(case):
    """`407 keep-alive`, `407 close x21`, `200 followed by 5 stray bytes`...: texts, and whether the proxy closes behind."""
    for phrase in case["replies"]:
        what, times = re.fullmatch(r"(.*?)(?: x(\d+))?", phrase).groups()
        head = f"HTTP/1.1 {what.split(' ')[0]} x\r\n"
        if "keep-alive" in what:
            text = f"{head}{CHALLENGE}Content-Length: 0\r\n\r\n"
        elif what.endswith(" close"):
            text = f"{head}{CHALLENGE}Connection: close\r\nContent-Length: 0\r\n\r\n"
        elif "stray bytes" in what:
            text = f"{head}\r\nstray"
        elif "Content-Length 5" in what:
            text = f"{head}Content-Length: 5\r\n\r\nabc"
        elif " " not in what:
            text = f"{head}\r\n"
        else:
            raise Fails(f"cannot read {phrase}")
        yield from [(text.encode(), "then closed" in what)] * int(times or 1)


class Visit(byway.Hooks):
    """One dial through the proxy."""

    def __init__(self, case, listener, answers, cut):
        self.case, self.listener, self.answers, self.cut = case, listener, list(answers), cut
        self.client, self.server, self.reply = None, None, None
        self.requests = self.connections = 0
        self.engine = byway.Engine(compat=byway.Compat.OKHTTP_5)
        port = listener.getsockname()[1]
        proxy = byway.Proxy(byway.ProxyKind.HTTP, "127.0.0.1", port)
        route = byway.Route(byway.Address(self.engine, "o.example", 443, tls=True), proxy, "127.0.0.1", port)
        self.dial = byway.Dial.over(self.engine, [route], hooks=self, flags=DialFlag.EVENTS, user_agent="")

    def proxy_auth(self, attempt, route, challenges):
        return "Basic dXNlcjpwYXNz" if challenges and self.case.get("credentials") else None

    def hang_up(self):
        if self.server is not None:
            self.server.close()
        self.server = None

    def step(self):
        try:
            return self.dial.step()
        finally:
            for event in iter(self.dial.next_event, None):
                if event.kind == DialEventKind.START:
                    self.client = event.fd
                elif event.kind == DialEventKind.FD_CLOSING:
                    self.hang_up()

    def act(self):
        """The proxy's next act; the dial has nothing to do before it."""
        if self.server is None:
            self.server, _ = self.listener.accept()
            self.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections, self.head, self.reply = self.connections + 1, b"", None
        elif self.reply is None:
            if select.select([self.server], [], [], 0)[0]:
                self.head += self.server.recv(2048)
            if not self.head.endswith(b"\r\n\r\n"):
                select.select([], [self.client], [])
                return
            same(self.head.split(b"\r\n")[0].decode(), "CONNECT o.example:443 HTTP/1.1", "request")
            self.head, self.requests = b"", self.requests + 1
            if not self.answers:
                self.hang_up()
            else:
                text, self.closes = self.answers.pop(0)
                self.reply = self.cut(text)
        elif self.reply:
            self.server.sendall(self.reply.pop(0))
            select.select([self.client], [], [])
        elif self.closes:
            self.hang_up()
            select.select([self.client], [], [])
        else:
            self.reply = None

    def run(self):
        """What came of it: upstream's kind of error and message, none for a tunnel."""
        try:
            connected = None
            while connected is None:
                connected = self.step()
                if connected is None:
                    self.act()
            connected.socket.close()
            # With a piece that ends at the head's end the data behind it comes too late to be refused here.
            return ("io", "TLS tunnel buffered too many bytes!") if self.reply else None
        except byway.BywayError:
            failure = self.dial.failures()[0]
            return MESSAGES.get(failure.name, lambda number: ("io", failure.name))(failure.number)
        finally:
            self.hang_up()
            self.dial.close()
            self.engine.close()


MESSAGES = {
    "CONNECT_STATUS": lambda number: ("io", f"Unexpected response code for CONNECT: {number}"),
    "CONNECT_AUTH_REQUIRED": lambda _: ("io", "Failed to authenticate with proxy"),
    "EARLY_DATA": lambda _: ("io", "TLS tunnel buffered too many bytes!"),
    "CONNECT_AUTH_LOOP": lambda _: ("protocol", "Too many tunnel connections attempted: 21"),
    "PROXY_CLOSED": lambda _: ("io", "unexpected end of stream"),
    "UNEXPECTED_END": lambda _: ("io", "unexpected end of stream"),
    "TRUNCATED": lambda _: ("io", "unexpected end of stream"),
}


def run(case):
    answers, expect = list(replies(case)), case["expect"]
    longest = max(len(text) for text, _ in answers)
    # Every place is cut in Rust and in C; here enough of them to see that pieces arrive as they were cut.
    places = sorted({1, 2, 9, longest // 2, longest - 5, longest - 1, longest})
    with listener_at("127.0.0.1", 0, True) as listener:
        for place in places:
            visit = Visit(case, listener, answers, lambda text, at=place: [part for part in (text[:at], text[at:]) if part])
            error = visit.run()
            got = {"result": "tunnel" if error is None else "error", "connects": visit.requests,
                   "tcp_connections": visit.connections}
            if error is not None:
                got.update(error=error[0], message=error[1])
            same({key: got.get(key) for key in expect}, expect, f"cut at {place}")


KINDS = {("okhttp", "connect_tunnel"): run}
