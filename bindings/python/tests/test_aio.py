"""byway in asyncio: connections through real proxies, cancellation."""
import asyncio
import socket
import ssl
import sys
import unittest

import byway
from byway import aio
from servers import origin, socks5, tunnel

try:
    import trustme
except ImportError as missing:
    raise unittest.SkipTest(f"asyncio through proxies: {missing}")

INNER = {"inner.example": "127.0.0.1"}


class Connections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        authority = trustme.CA()
        cls.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("inner.example", "127.0.0.1").configure_cert(cls.server)
        cls.stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(cls.stranger)
        cls.client = ssl.create_default_context()
        authority.configure_trust(cls.client)

    def setUp(self):
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)

    def address(self, kind, proxy, port, host="inner.example"):
        chooser = byway.ProxySelector.fixed(self.engine, [byway.Proxy(kind, "127.0.0.1", proxy)])
        return byway.Address(self.engine, host, port, tls=True, proxy_selector=chooser)

    def fetch(self, address, **options):
        async def fetch():
            reader, writer = await aio.open_connection(address, timeout=120, **options)
            writer.write(b"GET /x HTTP/1.1\r\nHost: inner.example\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(head.partition(b"Content-Length: ")[2].split()[0]))
            writer.close()
            return body

        return asyncio.run(fetch())

    def test_tls_to_the_origin_through_proxies_of_either_kind(self):
        for kind, listening in ((byway.ProxyKind.HTTP, tunnel), (byway.ProxyKind.SOCKS5H, socks5)):
            with self.subTest(kind), origin(context=self.server) as web, listening(INNER) as proxy:
                answer = self.fetch(self.address(kind, proxy.port, web.port), ssl=self.client)
                self.assertEqual(answer, b"hello from inner.example /x")
                self.assertEqual(len(proxy.server.seen), 1)

    def test_the_name_of_the_origin_is_checked(self):
        with origin(context=self.server) as web, tunnel({"other.example": "127.0.0.1"}) as proxy:
            address = self.address(byway.ProxyKind.HTTP, proxy.port, web.port, "other.example")
            with self.assertRaises(ssl.SSLCertVerificationError):
                self.fetch(address, ssl=self.client)
            self.assertEqual(self.fetch(address, ssl=self.client, server_hostname="inner.example"),
                             b"hello from inner.example /x")

    def test_tls_to_the_proxy_carries_tls_to_the_origin(self):
        with origin(context=self.server) as secret, origin() as web, tunnel(INNER, self.server) as proxy:
            plain = self.address(byway.ProxyKind.HTTPS, proxy.port, web.port)
            self.assertEqual(self.fetch(plain, proxy_tls=self.client), b"hello from inner.example /x")
            inner = self.address(byway.ProxyKind.HTTPS, proxy.port, secret.port)
            if sys.version_info >= (3, 11):
                self.assertEqual(self.fetch(inner, ssl=self.client, proxy_tls=self.client), b"hello from inner.example /x")
                with self.assertRaises(ssl.SSLCertVerificationError):
                    self.fetch(inner, ssl=self.client, proxy_tls=self.client, server_hostname="other.example")
            else:
                with self.assertRaises(byway.UnsupportedError):
                    self.fetch(inner, ssl=self.client, proxy_tls=self.client)
            with self.assertRaises(byway.ConnectError) as caught:
                self.fetch(inner, ssl=self.client)
            self.assertEqual(caught.exception.name, "BYWAY_E_NEEDS_PROXY_TLS")

    def test_past_a_proxy_whose_certificate_is_not_trusted(self):
        with origin() as web, tunnel(INNER, self.server) as good, tunnel(INNER, self.stranger) as bad:
            proxies = [byway.Proxy(byway.ProxyKind.HTTPS, "127.0.0.1", one.port) for one in (bad, good)]
            chooser = byway.ProxySelector.fixed(self.engine, proxies)
            address = byway.Address(self.engine, "inner.example", web.port, tls=True, proxy_selector=chooser)
            self.assertEqual(self.fetch(address, proxy_tls=self.client), b"hello from inner.example /x")
            self.assertEqual((len(bad.server.seen), len(good.server.seen)), (0, 1))

    def test_cancelling_closes_the_socket_that_waits_for_its_proxy(self):
        async def cancel(listener):
            loop = asyncio.get_running_loop()
            address = self.address(byway.ProxyKind.HTTP, listener.getsockname()[1], 443)
            task = asyncio.ensure_future(aio.open_connection(address))
            peer, _ = await loop.sock_accept(listener)
            with peer:
                peer.setblocking(False)
                self.assertIn(b"CONNECT", await loop.sock_recv(peer, 65536))
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                # The socket has gone, and with it what the proxy waits for.
                return await asyncio.wait_for(loop.sock_recv(peer, 65536), 120)

        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            self.assertEqual(asyncio.run(cancel(listener)), b"")


if __name__ == "__main__":
    unittest.main()
