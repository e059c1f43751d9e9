"""Where do I connect next, from Python."""
import asyncio
import errno
import gc
import ipaddress
import threading
import time
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
        self.assertEqual(str(caught.exception), "b.example: a callback failed: Broken: b.example")
        self.assertEqual(caught.exception.args, (str(caught.exception),))

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
        self.assertEqual([kind.name for kind in seen], ["PROXY_SELECT_START", "PROXY_SELECT_END", "DNS_START", "DNS_END"])

    def test_an_option_is_no_negative_time(self):
        for name in ("default_timeout", "postpone_for", "postpone_at_most", "dns_cache", "bad_proxy"):
            with self.subTest(name):
                with self.assertRaises(byway.ArgumentError) as caught:
                    byway.Engine(**{name: -5})
                self.assertEqual((caught.exception.name, caught.exception.subject), ("BYWAY_E_ARGUMENT", name))
        with self.assertRaises(byway.ArgumentError):
            byway.Engine(dns_cache=2**32)

    def test_what_the_filter_refuses_and_what_it_cannot_read(self):
        with byway.Engine(target_filter=byway.Filter.public()) as engine:
            dns = byway.Dns(engine, lambda host: ["10.0.0.1"])
            with self.assertRaises(byway.FilteredError) as caught:
                byway.Selector(byway.Address(engine, "q.example", 80, dns=dns)).next()
            self.assertEqual(caught.exception.name, "BYWAY_E_FILTERED")
            self.assertIsInstance(caught.exception, PermissionError)
            self.assertNotIsInstance(caught.exception, byway.ProxyError)
        with self.assertRaises(byway.ParseError) as caught:
            byway.Filter("allow 10.0.0.0/8\nperhaps 10.0.0.1")
        self.assertEqual(caught.exception.line, 2)
        self.assertIsInstance(caught.exception, ValueError)

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

    def test_a_hundred_thousand_selections_leave_nothing_behind(self):
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1", "192.0.2.2"])
        address = byway.Address(self.engine, "g.example", 80, dns=dns)

        def resident():
            with open("/proc/self/statm") as status:
                return int(status.read().split()[1]) * 4096

        for turn in range(100_000):
            for route in byway.Selector(address).next():
                route.sockaddr
            if turn == 20_000:
                gc.collect()
                objects, memory = len(gc.get_objects()), resident()
        gc.collect()
        self.assertLess(len(gc.get_objects()), objects + 200)
        # A hundred bytes each would be 8 MB. Huge pages that the kernel makes of half empty ones come and go.
        self.assertLess(resident(), memory + 7_000_000)

    def test_threads_share_an_engine(self):
        address = byway.Address(self.engine, "h.example", 80, dns=byway.Dns(self.engine, lambda host: ["192.0.2.1"]))
        counts = []

        def work():
            for turn in range(500):
                route = byway.Selector(address).next()[0]
                (self.engine.connect_failed if turn % 2 else self.engine.connected)(route)
            counts.append(turn)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counts, [499] * 8)

    def test_callbacks_setters_and_getters_never_wait_for_each_other(self):
        # A thread that holds the interpreter's lock while it waits for one of the library's, beside one that holds the
        # library's while it waits for the interpreter, would end here.
        def lookup(host):
            # Lets others run in the middle of a callback.
            time.sleep(0.001)
            return ["192.0.2.1", "192.0.2.2"]

        address = byway.Address(self.engine, "r.example", 80, dns=byway.Dns(self.engine, lookup))
        chooser, done = byway.ProxySelector.direct(self.engine), []

        def select():
            for _ in range(25):
                for route in byway.Selector(address).next():
                    route.proxy_kind, route.target, self.engine.should_postpone(route), hash(route)
            done.append("select")

        def change():
            for turn in range(200):
                self.engine.set_proxy_selector(chooser if turn % 2 else None)
                byway.Listener(self.engine, lambda event: None).close()
                self.engine.network_changed(), self.engine.stats(), address.port
            done.append("change")

        threads = [threading.Thread(target=work) for work in [select] * 6 + [change] * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(done), ["change"] * 2 + ["select"] * 6)

    def test_a_handle_closed_by_many_threads_is_given_back_once(self):
        for _ in range(200):
            proxy = byway.Proxy(byway.ProxyKind.HTTP, "p.example", 1)
            other = byway.Proxy(byway.ProxyKind.HTTP, "q.example", 2)
            threads = [threading.Thread(target=proxy.close) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertTrue(proxy.closed)
            self.assertEqual(other.host, "q.example")
        with self.assertRaises(byway.HandleError):
            proxy.host

    def test_routes_of_a_selection_outlive_it_and_show_themselves(self):
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1", "2001:db8::1"])
        address = byway.Address(self.engine, "i.example", 443, tls=True, dns=dns)
        selector = byway.Selector(address)
        selection = selector.next()
        first, second = selection
        selection.close()
        del selection, selector
        gc.collect()
        self.assertEqual((first.sockaddr, second.sockaddr), (("2001:db8::1", 443, 0, 0), ("192.0.2.1", 443)))
        self.engine.connect_failed(first, byway.Failure.REFUSED)
        again = [route for selection in byway.Selector(address) for route in selection]
        self.assertEqual([route.postponed for route in again], [False, True])
        self.assertEqual(again[1], first)
        self.assertEqual(repr(again[1]), f"<byway.Route {first}, postponed>")
        self.assertEqual(first.raw_sockaddr[:4], b"\x0a\x00\x01\xbb")
        self.assertEqual([(hop.ip, hop.postponed) for hop in byway.plan(address)],
                         [(second.ip, False), (first.ip, True)])
        self.assertEqual(len({*byway.plan(address), *byway.plan(address)}), 2)
        failed = self.engine.failed_routes()
        self.assertEqual([(one.ip, one.port, one.failure) for one in failed], [(first.ip, 443, byway.Failure.REFUSED)])
        self.assertGreater(failed[0].remaining, 0)

    def test_the_cursor_of_a_selection(self):
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1", "192.0.2.2"])
        selection = byway.Selector(byway.Address(self.engine, "j.example", 80, dns=dns)).next()
        taken = []
        while selection.more:
            taken.append(selection.take())
        self.assertEqual((taken, selection.take()), (list(selection), None))
        self.assertEqual(selection[-1], taken[1])
        with self.assertRaises(IndexError):
            selection[2]

    def test_a_route_of_the_hosts_own(self):
        proxy = byway.Proxy(byway.ProxyKind.SOCKS5H, "192.0.2.9", 1080, username="ann", password="secret")
        self.assertEqual(proxy.ip, ipaddress.ip_address("192.0.2.9"))
        self.assertNotIn("secret", repr(proxy))
        address = byway.Address(self.engine, "k.example", 443, tls=True)
        route = byway.Route(address, proxy, "192.0.2.9")
        self.assertEqual((route.hop, route.target), ((proxy.ip, 1080), ("k.example", None, 443)))
        self.assertEqual((route.socket_address, route.proxy), ((None, 443), proxy))
        direct = byway.Route(address, None, "192.0.2.1")
        self.assertEqual((direct.hop, direct.proxy), ((ipaddress.ip_address("192.0.2.1"), 443), None))

    def test_metadata_of_names_rides_on_the_routes(self):
        def lookup(request):
            request.add("192.0.2.1").add_service(
                port=8443, alpn=["h3", "h2"], ech=b"\0config", hints=["192.0.2.5", "2001:db8::5"]
            )

        dns = byway.Dns(self.engine, lookup, takes_request=True)
        route = byway.Selector(byway.Address(self.engine, "l.example", 443, tls=True, dns=dns)).next()[0]
        self.assertEqual(route.service, byway.Service(
            ("h3", "h2"), 8443, b"\0config",
            (ipaddress.ip_address("192.0.2.5"), ipaddress.ip_address("2001:db8::5")),
        ))
        other = byway.Dns(self.engine, lambda host: ["192.0.2.1"])
        self.assertIsNone(byway.Selector(byway.Address(self.engine, "l.example", 80, dns=other)).next()[0].service)

    def test_connections_that_may_serve_another_host(self):
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1"])
        a, b = (byway.Address(self.engine, host, 443, tls=True, dns=dns) for host in ("a.example", "b.example"))
        mine, wanted = byway.Selector(a).next()[0], list(byway.Selector(b).next())
        peer = byway.Peer.MULTIPLEXED | byway.Peer.DEFAULT_VERIFICATION | byway.Peer.PINS_HOLD
        self.assertEqual(mine.coalesces(b, wanted, peer), byway.NoCoalescing.NOT_VERIFIED)
        self.assertIsNone(mine.coalesces(b, wanted, peer | byway.Peer.CERTIFICATE_COVERS_HOST))

    def test_decisions_after_a_failure(self):
        recover = self.engine.recover
        self.assertEqual(recover(byway.Failure.RESET, byway.Phase.TCP), byway.Recovery.RETRY)
        self.assertEqual(recover(byway.Failure.RESET, byway.Phase.EXCHANGE, one_shot=True, sent=True, exchange_failed=True),
                         byway.Recovery.NOT_REPEATABLE)
        self.assertEqual(byway.Failure.REFUSED.text, "refused")
        self.assertEqual(byway.Failure.from_errno(errno.ECONNREFUSED), byway.Failure.REFUSED)
        self.assertIn(byway.Tell.DATABASE, byway.failure.report(byway.Failure.REFUSED, byway.Phase.TCP))

    def test_names_and_addresses(self):
        self.assertEqual(byway.host_canonical("B\u00fccher.Example."), "xn--bcher-kva.example.")
        self.assertTrue(byway.host_is_literal("::1"))
        self.assertEqual(byway.ip_text("2001:DB8:0::1"), "2001:db8::1")
        ordered = byway.ip_order(["192.0.2.1", "192.0.2.2", "2001:db8::1"])
        self.assertEqual([ip.version for ip in ordered], [6, 4, 4])

    def test_what_a_callback_serves(self):
        calls = []

        def lookup(request):
            calls.append((request.call.tag, request.call.engine, request.call.id, request.call.deadline))
            calls.append(request)
            request.add_text("192.0.2.1, 192.0.2.2")

        dns = byway.Dns(self.engine, lookup, takes_request=True)
        selector = byway.Selector(byway.Address(self.engine, "m.example", 80, dns=dns), tag=7)
        self.assertEqual(len(selector.next()), 2)
        self.assertEqual(calls[0][:3], (7, self.engine, selector.id))
        # Kept beyond the callback without ``later``: told, not followed.
        with self.assertRaises(byway.HandleError):
            calls[1].add("192.0.2.3")
        self.assertEqual((calls[1].call.tag, calls[1].call.engine), (0, None))

    def test_a_proxy_selector_may_answer_later_and_fail(self):
        asked = []
        chooser = byway.ProxySelector(self.engine, lambda request: asked.append(request.later()), takes_request=True)
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1"])
        address = byway.Address(self.engine, "n.example", 80, dns=dns, proxy_selector=chooser)
        selector = byway.Selector(address)
        self.assertIsNone(selector.poll())
        asked[0].add_place(byway.ProxyKind.HTTP, "p.example", 3128).add(None)
        asked[0].finish()
        self.assertEqual([route.proxy_kind for route in selector.next()], [byway.ProxyKind.HTTP])
        selector = byway.Selector(address)
        asked[1].fail("not today", host_code=5)
        with self.assertRaises(byway.ProxyError) as caught:
            selector.next()
        self.assertIn("not today", str(caught.exception.causes[0] if caught.exception.causes else caught.exception))

    def test_the_code_of_an_error_raised_in_a_callback_is_handed_on(self):
        def lookup(host):
            raise byway.DnsError(-300, "nobody of this name")

        address = byway.Address(self.engine, "o.example", 80, dns=byway.Dns(self.engine, lookup))
        with self.assertRaises(byway.DnsError) as caught:
            byway.Selector(address).next()
        self.assertEqual(caught.exception.__cause__.message, "nobody of this name")

    def test_time_can_be_the_hosts_own(self):
        now = [0]
        with byway.Engine(monotonic=lambda: now[0], postpone_for=10) as engine:
            route = byway.Route(byway.Address(engine, "p.example", 80), None, "192.0.2.1")
            engine.connect_failed(route)
            self.assertTrue(engine.should_postpone(route))
            now[0] = 11 * 10**9
            self.assertFalse(engine.should_postpone(route))

    def test_events_of_one_kind_carry_what_belongs_to_it(self):
        seen = []
        listener = byway.Listener(self.engine, seen.append, [byway.EventKind.PROXY_SELECT_END, byway.EventKind.DNS_END])
        proxy = byway.Proxy(byway.ProxyKind.HTTP, "192.0.2.8", 3128)
        chooser = byway.ProxySelector.fixed(self.engine, [None, proxy])
        dns = byway.Dns(self.engine, lambda host: ["192.0.2.1"])
        address = byway.Address(self.engine, "q.example", 80, dns=dns, proxy_selector=chooser)
        byway.Selector(address).next()
        self.assertEqual([event.kind.name for event in seen], ["PROXY_SELECT_END", "DNS_END"])
        self.assertEqual((seen[0].proxies, [str(ip) for ip in seen[1].ips]), ((None, proxy), ["192.0.2.1"]))
        listener.close()
        byway.Selector(address).next()
        self.assertEqual(len(seen), 2)


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

    def test_asyncio_loops_in_threads_share_an_engine(self):
        asked, lock = [], threading.Lock()

        def lookup(request):
            with lock:
                asked.append(request.later())
                # One of the two threads, not each of them.
                ready = asked if len(asked) == 4 else ()
            for waiting in ready:
                waiting.add("192.0.2.1").finish()

        dns = byway.Dns(self.engine, lookup, takes_request=True)
        hops = []

        async def resolve(name):
            selector = byway.Selector(byway.Address(self.engine, name, 80, dns=dns))
            selection = await asyncio.wait_for(aio.next_selection(selector), 120)
            hops.append(selection[0].hop[1])

        async def both(thread):
            await asyncio.gather(resolve(f"a{thread}.example"), resolve(f"b{thread}.example"))

        threads = [threading.Thread(target=lambda i=i: asyncio.run(both(i))) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(hops, [80] * 4)


if __name__ == "__main__":
    unittest.main()
