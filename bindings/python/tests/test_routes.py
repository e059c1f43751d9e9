"""Where do I connect next, from Python."""
import asyncio
import gc
import ipaddress
import threading
import unittest

import byway
from byway import _callbacks, aio
from servers import origin, refused_port, tunnel


class Routes(unittest.TestCase):
    def setUp(self):
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)

    def test_a_failed_route_is_postponed_and_the_explanation_says_why(self):
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1", "192.0.2.2"])
        address = byway.Address(self.engine, "A.example", 443, tls=True, dns=dns)
        self.assertEqual(address.host, "a.example")
        first = byway.Selector(address).next()[0]
        self.engine.connect_failed(first, byway.Failure.REFUSED)
        self.assertTrue(self.engine.should_postpone(first))
        selector = byway.Selector(address)
        hops = [hop for selection in selector for hop in selection.hops()]
        self.assertEqual([str(hop.ip) for hop in hops], ["192.0.2.2", "192.0.2.1"])
        self.assertIn("postponed", selector.explain())
        self.engine.connected(first)
        self.assertFalse(self.engine.should_postpone(first))

    def test_what_a_callback_raises_is_the_cause(self):
        class Broken(Exception):
            pass

        def lookup(host):
            raise Broken(host)

        address = byway.Address(self.engine, "b.example", 80, dns=byway.Dns(self.engine, lookup))
        with self.assertRaises(byway.HostError) as caught:
            byway.Selector(address).next()
        self.assertIsInstance(caught.exception.__cause__, Broken)

    def test_an_interrupt_in_a_callback_comes_back_as_itself(self):
        def lookup(host):
            raise KeyboardInterrupt

        address = byway.Address(self.engine, "b.example", 80, dns=byway.Dns(self.engine, lookup))
        with self.assertRaises(KeyboardInterrupt):
            byway.Selector(address).next()

    def test_a_resolver_may_answer_later_from_another_thread(self):
        asked = []
        dns = byway.Dns(self.engine, lambda request: asked.append(request.later()), takes_request=True)
        selector = byway.Selector(byway.Address(self.engine, "c.example", 80, dns=dns))
        self.assertIsNone(selector.poll())
        thread = threading.Thread(target=lambda: asked[0].add("192.0.2.9").finish())
        thread.start()
        self.assertEqual(selector.next(120).hops()[0].ip, ipaddress.ip_address("192.0.2.9"))
        thread.join()

    def test_nobody_answers(self):
        kept = []
        dns = byway.Dns(self.engine, lambda request: kept.append(request.later()), takes_request=True)
        selector = byway.Selector(byway.Address(self.engine, "d.example", 80, dns=dns))
        with self.assertRaises(TimeoutError):
            selector.next(0.001)
        selector.cancel()
        with self.assertRaises(byway.CanceledError):
            selector.next()

    def test_bad_input_names_what_is_wrong(self):
        with self.assertRaises(byway.ArgumentError) as caught:
            byway.Address(self.engine, "a b", 80)
        self.assertEqual(caught.exception.name, "BYWAY_E_INVALID_HOST")
        with self.assertRaises(ValueError):
            byway.Address(self.engine, "a", 70000)

    def test_events_arrive_in_order(self):
        seen = []
        self.engine.add_listener(lambda event: seen.append(event.kind))
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1"])
        byway.Selector(byway.Address(self.engine, "e.example", 80, dns=dns)).next()
        self.assertEqual(seen, [0, 1, 2, 3])

    def test_filter_guards_targets(self):
        public = byway.Filter.public()
        self.assertFalse(public.allows("169.254.169.254"))
        self.assertFalse(public.allows("::ffff:10.0.0.1"))
        self.assertTrue(public.allows("93.184.216.34"))

    def test_proxies_of_an_environment(self):
        table = {"https_proxy": "http://proxy.example:3128", "NO_PROXY": "inner.example"}
        chooser = byway.ProxySelector.environment(self.engine, table)
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1"])
        for host, kind in (("a.example", byway.ProxyKind.HTTP), ("x.inner.example", byway.ProxyKind.DIRECT)):
            address = byway.Address(self.engine, host, 443, tls=True, dns=dns, proxy_selector=chooser)
            self.assertEqual(byway.Selector(address).next().hops()[0].proxy_kind, kind)
        broken = byway.ProxySelector.environment(self.engine, {"https_proxy": "gopher://x"})
        address = byway.Address(self.engine, "a.example", 443, tls=True, dns=dns, proxy_selector=broken)
        with self.assertRaises(byway.ProxyError):
            byway.Selector(address).next()

    def test_proxies_of_java_properties_and_of_a_script(self):
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1"])
        choosers = [byway.ProxySelector.properties(self.engine, {"https.proxyHost": "p.example"})]
        if byway.has_feature("script"):
            script = "function FindProxyForURL(url, host) { return 'PROXY p.example:443'; }"
            choosers.append(byway.ProxySelector.script(self.engine, script))
        for chooser in choosers:
            address = byway.Address(self.engine, "a.example", 443, tls=True, dns=dns, proxy_selector=chooser)
            route = byway.Selector(address).next(120)[0]
            self.assertEqual((route.proxy.host, route.proxy.port), ("p.example", 443))

    def test_values_outlive_their_engine(self):
        engine = byway.Engine()
        dns = byway.Dns(engine, lambda host: ["192.0.2.1"])
        route = byway.Selector(byway.Address(engine, "f.example", 80, dns=dns)).next()[0]
        engine.close()
        self.assertEqual(route.sockaddr, ("192.0.2.1", 80))

    def test_closing_the_engine_drops_every_callback_object(self):
        gc.collect()
        before = _callbacks.alive()
        engine = byway.Engine()
        byway.Dns(engine, lambda host: [])
        byway.ProxySelector(engine, lambda uri: None)
        kept = byway.Dns(engine, lambda host: [])
        self.assertGreater(_callbacks.alive(), before)
        engine.close()
        self.assertEqual(_callbacks.alive(), before)
        self.assertFalse(kept.closed)

    def test_many_selections_leave_nothing_behind(self):
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1", "192.0.2.2"])
        address = byway.Address(self.engine, "g.example", 80, dns=dns)
        for _ in range(3):
            for _ in range(1000):
                byway.Selector(address).next().hops()
            gc.collect()
            count = len(gc.get_objects())
        for _ in range(5000):
            byway.Selector(address).next().hops()
        gc.collect()
        self.assertLess(len(gc.get_objects()), count + 200)


class Sockets(unittest.TestCase):
    def setUp(self):
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)

    def test_dials_past_a_dead_proxy_through_a_live_one(self):
        dead = refused_port()
        with origin() as web, tunnel({"inner.example": "127.0.0.1"}) as proxy:
            told = []
            chooser = byway.ProxySelector(
                self.engine,
                lambda uri: [byway.Proxy(byway.ProxyKind.HTTP, "127.0.0.1", dead),
                             byway.Proxy(byway.ProxyKind.HTTP, "127.0.0.1", proxy.port)],
                lambda uri, route, failure: told.append(failure),
            )
            address = byway.Address(self.engine, "inner.example", web.port, tls=True, proxy_selector=chooser)
            sock, route = byway.connect(address, 120)
            with sock:
                sock.sendall(b"GET /x HTTP/1.1\r\nHost: inner.example\r\nConnection: close\r\n\r\n")
                answer = b"".join(iter(lambda: sock.recv(65536), b""))
            self.assertIn(b"hello from inner.example /x", answer)
            self.assertEqual(proxy.server.seen, [("CONNECT", f"inner.example:{web.port}")])
            self.assertEqual(told, [byway.Failure.REFUSED])
            self.assertTrue(route.requires_tunnel)

    def test_every_route_refused_is_one_error_with_every_cause(self):
        port = refused_port()
        dns = byway.Dns(self.engine, lambda host: ["127.0.0.1", "127.0.0.2"])
        with self.assertRaises(ConnectionError) as caught:
            byway.connect(byway.Address(self.engine, "h.example", port, dns=dns), 120)
        self.assertEqual(len(caught.exception.causes), 2)

    def test_asyncio_connects_and_cancels(self):
        async def fetch(port):
            dns = byway.Dns(self.engine, lambda host: ["127.0.0.2", "127.0.0.1"])
            address = byway.Address(self.engine, "i.example", port, dns=dns)
            reader, writer = await aio.open_connection(address, timeout=120)
            writer.write(b"GET / HTTP/1.1\r\nHost: i.example\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            return answer

        async def cancel():
            kept = []
            dns = byway.Dns(self.engine, lambda request: kept.append(request.later()), takes_request=True)
            selector = byway.Selector(byway.Address(self.engine, "j.example", 80, dns=dns), queue=byway.Queue())
            task = asyncio.ensure_future(aio.next_selection(selector))
            while not kept:
                await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return kept[0].canceled
            return None

        with origin() as web:
            self.assertIn(b"hello from i.example /", asyncio.run(fetch(web.port)))
        self.assertTrue(asyncio.run(cancel()))


if __name__ == "__main__":
    unittest.main()
