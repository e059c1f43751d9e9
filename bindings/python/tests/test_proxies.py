"""Proxy selectors from Python: made of others, of settings, of scripts; what is asked outside a connection."""
import errno
import os
import threading
import unittest
from unittest import mock

import byway
from byway import BypassStyle, PacOptions, ProxySelector, SystemSettings
from servers import origin, refused_port, tunnel

HTTP = byway.ProxyKind.HTTP
SCRIPT = "function FindProxyForURL(url, host) { return 'PROXY ' + host + ':%d'; }"


class Selectors(unittest.TestCase):
    def setUp(self):
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)

    def fixed(self, host):
        return ProxySelector.fixed(self.engine, [byway.Proxy(HTTP, host, 3128)])

    def ask(self, selector, url):
        return ["DIRECT" if proxy is None else proxy.host for proxy in self.engine.proxies_for_url(selector, url)]

    def test_names_of_discovery(self):
        names = byway.wpad_names("a.b.example.co.uk", "example.co.uk")
        self.assertEqual(names, ["wpad.b.example.co.uk", "wpad.example.co.uk"])

    def test_selectors_are_made_of_others(self):
        a, b = self.fixed("a.example"), self.fixed("b.example")
        schemes = ProxySelector.per_scheme(self.engine, {"http": a, "ftp": None}, b)
        self.assertEqual([self.ask(schemes, f"{scheme}://h.example/") for scheme in ("http", "ftp", "https")],
                         [["a.example"], ["DIRECT"], ["b.example"]])
        rules = ProxySelector.rules(self.engine, [("*.corp;10.0.0.0/8", None), ("*.example", a)])
        self.assertEqual((self.ask(rules, "http://x.corp/"), self.ask(rules, "http://h.example/")),
                         (["DIRECT"], ["a.example"]))
        with self.assertRaises(byway.ProxyError):
            self.ask(rules, "http://h.other/")
        outside = ProxySelector.bypass(self.engine, ".inner.example", b, BypassStyle.NO_PROXY, dialect="curl")
        self.assertEqual((self.ask(outside, "http://x.inner.example/"), self.ask(outside, "http://h.example/")),
                         (["DIRECT"], ["b.example"]))

    def test_what_is_wrong_in_a_list_is_told(self):
        selector = ProxySelector.bypass(self.engine, "good.example,10.0.0.0/99", self.fixed("a.example"))
        self.assertEqual(len(selector.diagnostics()), 1)
        self.assertIn("10.0.0.0/99", selector.diagnostics()[0])

    def test_the_environment_of_the_process_is_read_when_it_is_told_to(self):
        with mock.patch.dict(os.environ, http_proxy="http://one.example:1", no_proxy=""):
            selector = ProxySelector.environment(self.engine)
            os.environ["http_proxy"] = "http://two.example:1"
            self.assertEqual(self.ask(selector, "http://h.example/"), ["one.example"])
            selector.refresh()
            self.assertEqual(self.ask(selector, "http://h.example/"), ["two.example"])
        with self.assertRaises(byway.BywayError) as caught:
            ProxySelector.environment(self.engine, {}).refresh()
        self.assertEqual(caught.exception.name, "BYWAY_E_STATE")

    def test_settings_of_windows_and_of_desktops(self):
        windows = ProxySelector.windows(self.engine, "http=p.example:8080", "*.corp")
        self.assertEqual((self.ask(windows, "http://h.example/"), self.ask(windows, "http://x.corp/")),
                         (["p.example"], ["DIRECT"]))
        keyfile = "[org/gnome/system/proxy]\nmode='manual'\n[org/gnome/system/proxy/http]\nhost='%s'\nport=3128\n"
        system = ProxySelector.system(self.engine, SystemSettings({}, desktop="GNOME", keyfile=keyfile % "one.example"))
        self.assertEqual(self.ask(system, "http://h.example/"), ["one.example"])
        system.set_system(SystemSettings({}, desktop="GNOME", keyfile=keyfile % "two.example"))
        system.refresh()
        self.assertEqual(self.ask(system, "http://h.example/"), ["two.example"])
        self.assertIsNone(system.script_url)
        here = ProxySelector.system(self.engine)
        self.assertIsInstance(self.ask(here, "http://127.0.0.1/"), list)

    def test_the_reasons_are_told(self):
        chooser = ProxySelector.environment(self.engine, {"http_proxy": "http://p.example:1", "no_proxy": "inner.example"})
        told = self.engine.explain_proxies(chooser, "http://x.inner.example/")
        self.assertEqual((told["proxies"], len(told["because"]) > 0), (["DIRECT"], True))

    def test_a_proxy_that_failed_goes_last_for_a_while(self):
        with origin() as web, tunnel({"a.example": "127.0.0.1"}) as proxy:
            dead = refused_port()
            chooser = ProxySelector.fixed(self.engine, [byway.Proxy(HTTP, "127.0.0.1", port) for port in (dead, proxy.port)])
            address = byway.Address(self.engine, "a.example", web.port, tls=True, proxy_selector=chooser)
            opened, _ = byway.connect(address, 10)
            opened.close()
        bad = self.engine.bad_proxies()
        self.assertEqual([(one["port"], one["failure"], one["os_errno"]) for one in bad], [(dead, "refused", errno.ECONNREFUSED)])
        self.assertGreaterEqual(bad[0]["age_ms"], 0)
        ports = [one.port for one in self.engine.proxies_for_url(chooser, "https://h.example/")]
        self.assertEqual(ports, [proxy.port, dead])
        self.engine.forget_bad_proxies()
        self.assertEqual(self.engine.bad_proxies(), [])
        self.engine.mark_proxy(byway.Proxy(HTTP, "127.0.0.1", dead), byway.Failure.TIMEOUT)
        self.assertEqual([(one["port"], one["failure"]) for one in self.engine.bad_proxies()], [(dead, "timeout")])


@unittest.skipUnless(byway.has_feature("script"), "a library without scripts")
class Scripts(unittest.TestCase):
    def setUp(self):
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)

    def port(self, selector):
        return self.engine.proxies_for_url(selector, "http://h.example/", timeout=120)[0].port

    def test_a_script_knows_names_and_addresses_of_the_hosts_own(self):
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.7"] if host == "inner.example" else [])
        source = "function FindProxyForURL(u, h) { return 'PROXY ' + dnsResolve('inner.example') + ':1; PROXY ' + myIpAddress() + ':2'; }"
        selector = ProxySelector.pac(self.engine, PacOptions(source=source, dns=dns, my_addresses=["192.0.2.9"], time_limit=30))
        got = [(one.host, one.port) for one in self.engine.proxies_for_url(selector, "http://h.example/", timeout=120)]
        self.assertEqual(got, [("192.0.2.7", 1), ("192.0.2.9", 2)])

    def test_the_host_fetches_a_script_now_or_later(self):
        asked = []

        def fetch(request):
            asked.append(request.url)
            return SCRIPT % 1

        selector = ProxySelector.pac(self.engine, PacOptions(url="http://wpad.example/p.pac", time_limit=30), fetch)
        self.assertEqual((self.port(selector), self.port(selector), asked), (1, 1, ["http://wpad.example/p.pac"]))
        self.assertEqual(selector.script_url, "http://wpad.example/p.pac")
        selector.set_script(SCRIPT % 2)
        self.assertEqual(self.port(selector), 2)

        def fetch_later(request):
            threading.Thread(target=request.later().finish, args=((SCRIPT % 3).encode(), "utf-8")).start()

        selector = ProxySelector.pac(self.engine, PacOptions(url="http://wpad.example/p.pac", time_limit=30), fetch_later)
        self.assertEqual(self.port(selector), 3)

    def test_a_script_that_cannot_be_fetched_or_loaded(self):
        def fetch(request):
            raise LookupError("nobody there")

        selector = ProxySelector.pac(self.engine, PacOptions(url="http://wpad.example/p.pac"), fetch)
        with self.assertRaises(byway.BywayError) as caught:
            self.port(selector)
        self.assertIsInstance(caught.exception.__cause__, LookupError)
        selector = ProxySelector.pac(self.engine, PacOptions(url="http://wpad.example/p.pac"),
                                     lambda request: request.later().fail("later neither", host_code=404))
        with self.assertRaises(byway.BywayError) as caught:
            self.port(selector)
        self.assertIn("later neither", str(caught.exception))
        with self.assertRaises(byway.ProxyError) as caught:
            ProxySelector.pac(self.engine, PacOptions(source="function FindProxyForURL() {\n  return ("))
        self.assertEqual(caught.exception.line, 2)

    def test_a_script_that_reaches_a_limit_is_no_bad_argument(self):
        script = "function FindProxyForURL(url, host) { dnsResolve('a.x'); dnsResolve('b.x'); return 'DIRECT'; }"
        selector = ProxySelector.pac(self.engine, PacOptions(source=script, names_limit=1, time_limit=30))
        with self.assertRaises(byway.ScriptLimitError) as caught:
            self.engine.proxies_for_url(selector, "http://a.example/", byway.Dns(self.engine, lambda host: ["192.0.2.1"]))
        self.assertEqual(caught.exception.name, "BYWAY_E_LIMIT")
        self.assertNotIsInstance(caught.exception, byway.ArgumentError)
        for option in ("refresh", "time_limit"):
            with self.subTest(option), self.assertRaises(byway.ArgumentError):
                ProxySelector.pac(self.engine, PacOptions(source=script, **{option: -1}))


if __name__ == "__main__":
    unittest.main()
