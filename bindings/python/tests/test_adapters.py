"""Real HTTP and HTTPS requests by requests and urllib3 through real proxies."""
import socket
import ssl
import unittest

import byway
from servers import origin, refused_port, socks5, tunnel

try:
    import requests
    import trustme
    import urllib3  # noqa: F401
    from byway.adapters.requests import BywayAdapter, BywayPoolManager
except ImportError as missing:
    raise unittest.SkipTest(f"adapters: {missing}")


class Adapters(unittest.TestCase):
    def setUp(self):
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)
        self.authority = trustme.CA()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("inner.example", "127.0.0.1").configure_cert(self.context)

    def chooser(self, *ports, kind=byway.ProxyKind.HTTP):
        proxies = [byway.Proxy(kind, "127.0.0.1", port) for port in ports]
        return byway.ProxySelector(self.engine, lambda uri: proxies)

    def fetch(self, url, chooser, **options):
        """What a session of requests gets whose connections all go through byway."""
        with self.authority.cert_pem.tempfile() as trusted, requests.Session() as session:
            # A bundle named in the environment would count for more.
            session.trust_env, session.verify = False, trusted
            for scheme in ("http://", "https://"):
                session.mount(scheme, BywayAdapter(self.engine, proxy_selector=chooser, **options))
            return session.get(url, timeout=120).text

    def test_requests_goes_past_a_dead_proxy_and_keeps_the_connection(self):
        with origin() as web, tunnel({"inner.example": "127.0.0.1"}) as proxy, requests.Session() as session:
            session.mount("http://", BywayAdapter(self.engine, proxy_selector=self.chooser(refused_port(), proxy.port)))
            for path in ("/one", "/two"):
                answer = session.get(f"http://inner.example:{web.port}{path}", timeout=120)
                self.assertEqual(answer.text, f"hello from inner.example:{web.port} {path}")
            self.assertEqual(proxy.server.seen, [("CONNECT", f"inner.example:{web.port}")])

    def test_requests_over_tls_checks_the_name_of_the_origin(self):
        dns = byway.Dns(self.engine, lambda host: ["127.0.0.1"])
        with self.authority.cert_pem.tempfile() as trusted, origin(context=self.context) as web:
            with requests.Session() as session:
                session.trust_env = False
                session.verify = trusted
                session.mount("https://", BywayAdapter(self.engine, dns=dns))
                answer = session.get(f"https://inner.example:{web.port}/", timeout=120)
                self.assertEqual(answer.text, f"hello from inner.example:{web.port} /")
                with self.assertRaises(requests.exceptions.SSLError):
                    session.get(f"https://other.example:{web.port}/", timeout=120)

    def test_tls_to_the_origin_through_proxies_of_either_kind(self):
        for kind, listening in ((byway.ProxyKind.HTTP, tunnel), (byway.ProxyKind.SOCKS5H, socks5)):
            with self.subTest(kind), origin(context=self.context) as web, listening({"inner.example": "127.0.0.1"}) as proxy:
                text = self.fetch(f"https://inner.example:{web.port}/x", self.chooser(proxy.port, kind=kind))
                self.assertEqual(text, f"hello from inner.example:{web.port} /x")
                place = ("CONNECT", f"inner.example:{web.port}")
                self.assertEqual(proxy.server.seen, [place if kind == byway.ProxyKind.HTTP else ("inner.example", web.port)])

    def test_the_proxies_of_requests_and_of_the_environment_are_not_looked_at(self):
        elsewhere = f"http://127.0.0.1:{refused_port()}"
        with origin() as web, tunnel({"inner.example": "127.0.0.1"}) as proxy, requests.Session() as session:
            session.mount("http://", BywayAdapter(self.engine, proxy_selector=self.chooser(proxy.port)))
            session.proxies = {"http": elsewhere}
            self.assertIn("hello", session.get(f"http://inner.example:{web.port}/", timeout=120).text)
            self.assertEqual(len(proxy.server.seen), 1)

    def test_tls_to_the_proxy_carries_plain_requests_and_refuses_a_second_tls_by_name(self):
        trusting = ssl.create_default_context()
        self.authority.configure_trust(trusting)
        with origin() as web, origin(context=self.context) as secret, tunnel({"inner.example": "127.0.0.1"}, self.context) as proxy:
            chooser = self.chooser(proxy.port, kind=byway.ProxyKind.HTTPS)
            text = self.fetch(f"http://inner.example:{web.port}/", chooser, proxy_tls=trusting)
            self.assertEqual(text, f"hello from inner.example:{web.port} /")
            for options, why in (({"proxy_tls": trusting}, "TLS inside TLS"), ({}, "TLS to the proxy must be run first")):
                with self.assertRaises(requests.exceptions.ConnectionError) as caught:
                    self.fetch(f"https://inner.example:{secret.port}/", chooser, **options)
                self.assertIn(why, str(caught.exception))

    def test_sockets_have_the_source_and_the_options_that_were_asked_for(self):
        dns = byway.Dns(self.engine, lambda host: ["127.0.0.1"])
        asked = {"source_address": ("127.0.0.3", 0), "socket_options": [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]}
        with origin() as web:
            manager = BywayPoolManager(self.engine, dns=dns, **asked)
            with manager.request("GET", f"http://inner.example:{web.port}/", preload_content=False) as answer:
                opened = answer.connection.sock
                self.assertEqual(opened.getsockname()[0], "127.0.0.3")
                self.assertEqual(opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1)
            fixed = BywayPoolManager(self.engine, dns=dns, source_address=("127.0.0.3", 1), retries=False)
            with self.assertRaises(urllib3.exceptions.NewConnectionError) as caught:
                fixed.request("GET", f"http://inner.example:{web.port}/")
            self.assertIn("source_address", str(caught.exception))

    def test_urllib3_says_what_failed(self):
        dns = byway.Dns(self.engine, lambda host: ["127.0.0.1"])
        manager = BywayPoolManager(self.engine, dns=dns, retries=False)
        with self.assertRaises(urllib3.exceptions.NewConnectionError):
            manager.request("GET", f"http://inner.example:{refused_port()}/")


if __name__ == "__main__":
    unittest.main()
