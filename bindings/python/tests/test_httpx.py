"""Real HTTP and HTTPS requests by httpx through real proxies, synchronous and in asyncio."""
import asyncio
import ssl
import unittest

import byway
from servers import origin, refused_port, socks5, tunnel

try:
    import httpx
    import trustme
    from byway.adapters.httpx import AsyncBywayTransport, BywayTransport
except ImportError as missing:
    raise unittest.SkipTest(f"httpx: {missing}")

# Seconds, for what takes none on a machine that is not busy.
PATIENCE = 120
INNER = {"inner.example": "127.0.0.1"}


class Adapters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.authority = trustme.CA()
        cls.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        cls.authority.issue_cert("inner.example", "127.0.0.1").configure_cert(cls.server)
        cls.client = ssl.create_default_context()
        cls.authority.configure_trust(cls.client)

    def setUp(self):
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)

    def fetch(self, *urls, **options):
        """The answers of both clients, one after the other; each keeps its connections."""
        options = {"verify": self.client, **options}

        async def fetch():
            async with httpx.AsyncClient(transport=AsyncBywayTransport(self.engine, **options), timeout=PATIENCE) as client:
                return [(await client.get(url)).text for url in urls]

        with httpx.Client(transport=BywayTransport(self.engine, **options), timeout=PATIENCE) as client:
            texts = [client.get(url).text for url in urls]
        return [texts, asyncio.run(fetch())]

    def chooser(self, *proxies):
        return byway.ProxySelector.fixed(self.engine, [byway.Proxy(kind, "127.0.0.1", port) for kind, port in proxies])

    def test_past_a_dead_proxy_through_a_live_one_on_one_connection(self):
        http = byway.ProxyKind.HTTP
        with origin() as web, tunnel(INNER) as proxy:
            place = f"inner.example:{web.port}"
            texts = self.fetch(f"http://{place}/one", f"http://{place}/two",
                               proxy_selector=self.chooser((http, refused_port()), (http, proxy.port)))
            self.assertEqual(texts, [[f"hello from {place} /one", f"hello from {place} /two"]] * 2)
            self.assertEqual(proxy.server.seen, [("CONNECT", place)] * 2)

    def test_tls_to_the_origin_through_a_socks_proxy(self):
        with origin(context=self.server) as web, socks5(INNER) as proxy:
            place = f"inner.example:{web.port}"
            chooser = self.chooser((byway.ProxyKind.SOCKS5H, proxy.port))
            self.assertEqual(self.fetch(f"https://{place}/", proxy_selector=chooser), [[f"hello from {place} /"]] * 2)
            self.assertEqual(proxy.server.seen, [("inner.example", web.port)] * 2)

    def test_tls_to_the_origin_inside_tls_to_the_proxy(self):
        with origin(context=self.server) as web, tunnel(INNER, self.server) as proxy:
            place = f"inner.example:{web.port}"
            chooser = self.chooser((byway.ProxyKind.HTTPS, proxy.port))
            options = {"proxy_selector": chooser, "proxy_tls": self.client}
            self.assertEqual(self.fetch(f"https://{place}/a", f"https://{place}/b", **options),
                             [[f"hello from {place} /a", f"hello from {place} /b"]] * 2)
            self.assertEqual(proxy.server.seen, [("CONNECT", place)] * 2)
            for transport in (BywayTransport(self.engine, proxy_selector=chooser),):
                with httpx.Client(transport=transport, timeout=PATIENCE) as client, self.assertRaises(httpx.ConnectError) as caught:
                    client.get(f"https://{place}/")
            self.assertIn("TLS to the proxy", str(caught.exception))

    def test_the_name_of_the_origin_is_checked(self):
        dns = byway.Dns(self.engine, lambda host: ["127.0.0.1"])
        with origin(context=self.server) as web:
            with self.assertRaises(httpx.ConnectError):
                self.fetch(f"https://other.example:{web.port}/", dns=dns)

    def test_what_fails_is_httpx_own_exception(self):
        port = refused_port()
        dns = byway.Dns(self.engine, lambda host: ["127.0.0.1"])

        async def fetch():
            async with httpx.AsyncClient(transport=AsyncBywayTransport(self.engine, dns=dns), timeout=PATIENCE) as client:
                await client.get(f"http://inner.example:{port}/")

        with self.assertRaises(httpx.ConnectError):
            asyncio.run(fetch())
        with httpx.Client(transport=BywayTransport(self.engine, dns=dns), timeout=PATIENCE) as client:
            with self.assertRaises(httpx.ConnectError):
                client.get(f"http://inner.example:{port}/")
            with self.assertRaises(httpx.UnsupportedProtocol):
                client.get("ftp://inner.example/")

    def test_a_resolver_that_does_not_answer_is_a_connect_timeout(self):
        kept = []
        dns = byway.Dns(self.engine, lambda request: kept.append(request.later()), takes_request=True)
        timeout = httpx.Timeout(PATIENCE, connect=0.01)
        with httpx.Client(transport=BywayTransport(self.engine, dns=dns), timeout=timeout) as client:
            with self.assertRaises(httpx.ConnectTimeout):
                client.get("http://inner.example/")

        async def fetch():
            async with httpx.AsyncClient(transport=AsyncBywayTransport(self.engine, dns=dns), timeout=timeout) as client:
                await client.get("http://inner.example/")

        with self.assertRaises(httpx.ConnectTimeout):
            asyncio.run(fetch())
        self.assertTrue(all(request.canceled for request in kept))


if __name__ == "__main__":
    unittest.main()
