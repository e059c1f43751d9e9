"""Real HTTP and HTTPS requests by requests and urllib3 through real proxies."""
import ssl
import unittest

import byway
from servers import origin, refused_port, tunnel

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
        self.authority.issue_cert("inner.example").configure_cert(self.context)

    def chooser(self, *ports):
        proxies = [byway.Proxy(byway.ProxyKind.HTTP, "127.0.0.1", port) for port in ports]
        return byway.ProxySelector(self.engine, lambda uri: proxies)

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

    def test_urllib3_says_what_failed(self):
        dns = byway.Dns(self.engine, lambda host: ["127.0.0.1"])
        manager = BywayPoolManager(self.engine, dns=dns, retries=False)
        with self.assertRaises(urllib3.exceptions.NewConnectionError):
            manager.request("GET", f"http://inner.example:{refused_port()}/")


if __name__ == "__main__":
    unittest.main()
