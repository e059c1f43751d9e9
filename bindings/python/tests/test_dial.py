"""Dials from Python: what a host can add, see and decide; dialogues without a socket."""
import select
import socket
import threading
import unittest

import byway
from byway import DialEventKind, DialFlag, Want
from servers import origin, refused_port, socks5, tunnel

HTTP = byway.ProxyKind.HTTP
# Seconds, for what takes none on a machine that is not busy.
PATIENCE = 120


class Dials(unittest.TestCase):
    def setUp(self):
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)

    def local(self, port, *ips, **options):
        ips = ips or ("127.0.0.1",)
        return byway.Address(self.engine, "a.example", port, dns=byway.Dns(self.engine, lambda host: ips), **options)

    def test_a_host_opens_configures_and_closes_sockets(self):
        seen = []

        class Mine(byway.Hooks):
            def open_socket(self, family, protocol, route):
                seen.append(("open", family == socket.AF_INET, route.port))
                return socket.socket(family, socket.SOCK_STREAM)

            def configure(self, fd, route):
                seen.append(("configure", fd >= 0, route.port))

            def close_socket(self, fd):
                seen.append(("close", True, fd >= 0))
                return False

        dead = refused_port()
        with self.assertRaises(ConnectionError):
            byway.connect(self.local(dead), PATIENCE, hooks=Mine())
        self.assertEqual(seen, [("open", True, dead), ("configure", True, dead), ("close", True, True)])

    def test_what_a_hook_raises_skips_the_route_and_is_the_cause(self):
        class Broken(byway.Hooks):
            def configure(self, fd, route):
                raise LookupError(route.port)

        with origin() as web, self.assertRaises(byway.BywayError) as caught:
            byway.connect(self.local(web.port), PATIENCE, hooks=Broken())
        self.assertIsInstance(caught.exception.__cause__, LookupError)

    def test_events_failures_and_the_waterfall(self):
        with origin("127.0.0.2") as web:
            address = self.local(web.port, "127.0.0.1", "127.0.0.2")
            with byway.Dial(address, flags=DialFlag.EVENTS) as dial:
                connected = dial.run(PATIENCE)
                connected.socket.close()
                events = list(iter(dial.next_event, None))
                failures = dial.failures()
                self.assertIn("127.0.0.1", dial.explain())
        kinds = [(event.kind, event.attempt) for event in events]
        self.assertIn((DialEventKind.FAILED, 1), kinds)
        self.assertEqual(kinds[-1], (DialEventKind.WON, 2))
        self.assertEqual([(one.name, one.attempt, str(one.route.ip)) for one in failures], [("REFUSED", 1, "127.0.0.1")])
        self.assertEqual(connected.route.sockaddr, ("127.0.0.2", web.port))

    def test_a_loop_of_the_hosts_own_watches_every_descriptor(self):
        with origin() as web, byway.Dial(self.local(web.port)) as dial:
            connected = dial.step()
            while connected is None:
                entries, poll = dial.pollset(), select.poll()
                for entry in entries:
                    poll.register(entry.fd, entry.events)
                left = dial.deadline()
                said = dict(poll.poll(PATIENCE * 1000 if left is None else left * 1000))
                connected = dial.step([entry._replace(revents=said.get(entry.fd, 0)) for entry in entries])
            self.assertEqual(connected.socket.getpeername()[1], web.port)
            connected.socket.close()

    def test_over_routes_the_host_has_kept_and_over_the_rest_of_a_selection(self):
        dead = refused_port()
        with origin() as web:
            bad, good = (byway.Route(self.local(port), None, "127.0.0.1") for port in (dead, web.port))
            with byway.Dial.over(self.engine, [bad, good]) as dial:
                connected = dial.run(PATIENCE)
            self.assertEqual(connected.route, good)
            connected.socket.close()
            selection = byway.Selector(self.local(web.port, "127.0.0.3", "127.0.0.1")).next()
            selection.take()
            with byway.Dial.over(self.engine, selection) as dial:
                connected = dial.run(PATIENCE)
            self.assertEqual((connected.route, connected.attempt), (selection[1], 1))
            connected.socket.close()

    def test_the_host_decides_who_has_won(self):
        with origin("127.0.0.1") as web:
            second = socket.create_server(("127.0.0.2", web.port))
            address = self.local(web.port, "127.0.0.1", "127.0.0.2")
            with second, byway.Dial(address, race_until=byway.RaceUntil.HOST) as dial:
                first = dial.run(PATIENCE)
                self.assertTrue(first.provisional)
                first.socket.close()
                dial.resume(first.attempt, byway.Resume.TLS)
                other = dial.run(PATIENCE)
                dial.confirm(other.attempt)
                other.socket.close()
        self.assertNotEqual(first.route, other.route)
        self.assertTrue(self.engine.should_postpone(first.route))
        self.assertFalse(self.engine.should_postpone(other.route))

    def test_credentials_from_the_host_now_and_later(self):
        class Mine(byway.Hooks):
            def proxy_auth(self, attempt, route, challenges):
                asked.append((attempt, challenges))
                return byway.LATER if later else "Basic dTpw"

        for later in (False, True):
            asked = []
            with origin() as web, tunnel({"a.example": "127.0.0.1"}, auth="Basic dTpw") as proxy:
                address = byway.Address(self.engine, "a.example", web.port, tls=True,
                                        proxy=byway.Proxy(HTTP, "127.0.0.1", proxy.port))
                with byway.Dial(address, hooks=Mine()) as dial:
                    while later and not asked:
                        self.assertIsNone(dial.step())
                        if not asked:
                            select.select([dial], [], [], PATIENCE)
                    if later:
                        answer = threading.Thread(target=dial.authenticate, args=(asked[0][0], "Basic dTpw"))
                        answer.start()
                        answer.join()
                    dial.run(PATIENCE).socket.close()
            self.assertEqual(asked, [(1, ['Basic realm="r"'])])

    def test_headers_for_the_proxy_alone(self):
        with origin() as web, tunnel({"a.example": "127.0.0.1"}) as proxy:
            address = byway.Address(self.engine, "a.example", web.port, tls=True,
                                    proxy=byway.Proxy(HTTP, "127.0.0.1", proxy.port))
            opened, _ = byway.connect(address, PATIENCE, headers={"Proxy-Trace": "t-1"}, user_agent="mine/1")
            opened.close()
            self.assertIn("Proxy-Trace: t-1", proxy.server.heads[0])
            self.assertIn("User-Agent: mine/1", proxy.server.heads[0])
        with self.assertRaises(TypeError) as caught:
            byway.Dial(address, attempt_delay=1)
        self.assertIn("attempt_delay_ms", str(caught.exception))

    def test_a_proxy_behind_tls_is_named_when_nobody_speaks_tls_to_it(self):
        with origin() as web, tunnel() as proxy:
            address = byway.Address(self.engine, "127.0.0.1", web.port, tls=True,
                                    proxy=byway.Proxy(byway.ProxyKind.HTTPS, "127.0.0.1", proxy.port))
            with self.assertRaises(byway.ConnectError) as caught:
                byway.connect(address, PATIENCE)
        self.assertEqual(caught.exception.name, "BYWAY_E_NEEDS_PROXY_TLS")
        self.assertEqual(caught.exception.subject, f"https://127.0.0.1:{proxy.port}")


class Handshakes(unittest.TestCase):
    def test_bytes_in_bytes_out(self):
        with byway.Handshake.to(byway.ProxyKind.SOCKS5H, "a.example", 443) as dialogue:
            self.assertEqual((dialogue.want, dialogue.output()), (Want.WRITE, b"\5\1\0"))
            dialogue.sent(3)
            self.assertEqual(dialogue.wanted(), (Want.READ, 2))
            self.assertEqual(dialogue.feed(b"\5\0"), 2)
            dialogue.sent(len(dialogue.output()))
            with self.assertRaises(ConnectionError) as caught:
                dialogue.eof()
        self.assertIn("closed", str(caught.exception))

    def test_a_challenge_and_its_answer(self):
        with byway.Handshake.to(HTTP, "a.example", 443) as dialogue:
            dialogue.sent(len(dialogue.output()))
            dialogue.feed(b'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="r"\r\nContent-Length: 0\r\n\r\n')
            self.assertEqual((dialogue.want, dialogue.challenges()), (Want.CREDENTIALS, ['Basic realm="r"']))
            dialogue.answer("Basic dTpw")
            self.assertIn(b"Proxy-Authorization: Basic dTpw\r\n", dialogue.output())

    def test_over_a_socket_nothing_of_the_tunnel_is_taken(self):
        engine = byway.Engine()
        self.addCleanup(engine.close)
        with origin() as web, socks5({"a.example": "127.0.0.1"}) as proxy:
            address = byway.Address(engine, "a.example", web.port,
                                    proxy=byway.Proxy(byway.ProxyKind.SOCKS5H, "127.0.0.1", proxy.port))
            route = byway.Selector(address).next()[0]
            with socket.create_connection(route.sockaddr) as opened, byway.Handshake(route) as dialogue:
                self.assertEqual(dialogue.run(opened), Want.DONE)
                opened.sendall(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
                answer = b"".join(iter(lambda: opened.recv(65536), b""))
        self.assertIn(b"hello from a.example /", answer)


if __name__ == "__main__":
    unittest.main()
