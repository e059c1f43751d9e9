"""Which provider serves this call, from Python."""
import json
import os
import signal
import threading
import time
import unittest

import byway

RULE = """\
scope: service
force: true
enabled: true
runtime: true
key: HelloService
conditions:
  - method=hello => address=*:20880
  - method=hello2 => address=*:20882
"""


class Chains(unittest.TestCase):
    def setUp(self):
        self.engine = byway.Engine(seed=7)
        self.addCleanup(self.engine.close)
        self.chain = byway.Chain(self.engine, "consumer://127.0.0.1/HelloService?application=web&interface=HelloService")
        urls = [f"tri://10.0.0.{i}:2088{i % 3}/HelloService?application=demo" for i in range(6)]
        self.chain.set_invokers(byway.Invokers(self.engine, urls, range(100, 106), keep_urls=True))
        self.key = byway.rule_key("HelloService")

    def test_a_rule_decides_from_the_next_call_on(self):
        hello, hello2 = byway.Invocation("hello"), byway.Invocation("hello2")
        session = self.chain.session()
        self.assertEqual(len(self.chain.tags(hello)), 6)
        self.engine.set_rule(self.key, RULE)
        for tags in (self.chain.tags, session.tags, lambda call: self.chain.route(call).tags()):
            self.assertEqual((tags(hello), tags(hello2)), ([100, 103], [102, 105]))
        self.assertEqual(self.chain.route_many([hello, hello2]), [[100, 103], [102, 105]])
        self.assertIn(self.chain.pick(hello).tag, (100, 103))
        self.engine.remove_rule(self.key)
        self.assertEqual(len(session.tags(hello)), 6)
        urls = [f"tri://10.0.1.{i}:20880/HelloService?application=demo" for i in range(200)]
        self.chain.set_invokers(byway.Invokers(self.engine, urls, range(1, 201)))
        self.assertEqual((session.tags(hello), self.chain.tags(hello)), (list(range(1, 201)),) * 2)

    def test_a_bad_rule_says_where_and_leaves_the_good_one(self):
        self.engine.set_rule(self.key, RULE)
        with self.assertRaises(byway.RuleError) as caught:
            self.engine.set_rule(self.key, "conditions:\n  - 'method=hello => a!'\n  - [")
        self.assertEqual(caught.exception.line, 3)
        self.assertEqual(self.chain.tags(byway.Invocation("hello")), [100, 103])

    def test_explanations_name_the_dropped(self):
        self.engine.set_rule(self.key, RULE)
        self.assertIn("address=10.0.0.1:20881", self.chain.explain(byway.Invocation("hello")))
        json.loads(self.chain.explain(byway.Invocation("hello"), json=True))

    def test_the_last_calls_are_kept_on_request(self):
        call = byway.Invocation("hello")
        self.chain.tags(call)
        self.assertEqual(self.chain.recent(), "")
        self.chain.keep_recent()
        self.chain.tags(call)
        kept = json.loads(self.chain.recent(json=True))
        self.assertEqual([(one["number"], one["explanation"]["out"]) for one in kept], [(1, 6)])
        self.chain.keep_recent(False)
        self.assertEqual(self.chain.recent(), "")

    def test_a_dry_run_status_and_keys(self):
        self.assertIn(self.key, self.chain.keys())
        change = self.chain.diff(self.key, RULE, [byway.Invocation("hello")])[0]
        self.assertEqual((change["before"], change["after"]), (6, 2))
        self.engine.set_rule(self.key, RULE)
        routers = self.chain.status()["routers"]
        self.assertIn((self.key, True), [(one.get("key"), one["in_force"]) for one in routers])

    def test_nobody_left_is_an_error_of_its_own(self):
        self.engine.set_rule(self.key, RULE.replace("*:20880", "*:1"))
        choice = self.chain.route(byway.Invocation("hello"))
        self.assertEqual((len(choice), bool(choice.emptied_by)), (0, True))
        with self.assertRaises(byway.NoInvokerError):
            self.chain.pick(byway.Invocation("hello"))

    def test_a_chain_follows_a_memory_source(self):
        source = byway.Source.memory(self.engine)
        source.put(self.key, RULE)
        self.chain.bind(source, 120, rules_only=True)
        self.assertEqual(self.chain.tags(byway.Invocation("hello")), [100, 103])
        self.assertEqual(source.get(self.key), RULE)
        self.assertEqual(source.status()["connected"], 1)

    def test_rules_are_told_where_the_listener_polls(self):
        seen, queue = [], byway.Queue()
        self.engine.add_listener(lambda event: seen.append(event.subject), [byway.EventKind.RULE], queue)
        self.engine.set_rule(self.key, RULE)
        self.engine.queue.poll(0)
        self.assertEqual(seen, [])
        queue.poll(0)
        self.assertEqual(seen, [self.key])

    def test_rules_are_told_at_once_where_the_engine_may(self):
        told, where = threading.Event(), []
        engine = byway.Engine(callbacks_any_thread=True)
        self.addCleanup(engine.close)

        def heard(event):
            where.append(threading.current_thread())
            told.set()

        engine.add_listener(heard, [byway.EventKind.RULE])
        engine.set_rule(self.key, RULE)
        told.wait()
        self.assertIsNot(where[0], threading.current_thread())

    def test_a_number_of_a_bound_list_leads_to_its_url(self):
        source = byway.Source.memory(self.engine)
        source.put("HelloService/providers", "tri://10.0.0.1:20880/HelloService\ntri://10.0.0.2:20881/HelloService")
        self.chain.bind(source, 120)
        choice = self.chain.route(byway.Invocation("hello"))
        self.chain.unbind()
        urls = [choice.invokers.url(choice.invokers.row_of(tag)) for tag in choice.tags()]
        self.assertEqual([url.partition("/H")[0] for url in urls], ["tri://10.0.0.1:20880", "tri://10.0.0.2:20881"])
        with self.assertRaises(byway.BywayError):
            self.chain.invokers.row_of(choice.tags()[0])

    def test_a_router_of_the_host(self):
        seen = []

        def route(request):
            seen.append((request.method, request.attachment("user"), request.argument(0)))
            return [tag for tag in request.tags if tag % 2]

        router = byway.Router(self.engine, "odd", route)
        self.chain.add_router(router)
        call = byway.Invocation("hi", arguments=["first"], attachments={"user": "ann"})
        self.assertEqual(self.chain.tags(call), [101, 103, 105])
        self.assertEqual(seen[0], ("hi", "ann", "first"))

    def test_a_router_that_raises_is_the_cause(self):
        def route(request):
            raise LookupError("no")

        router = byway.Router(self.engine, "broken", route)
        self.chain.add_router(router)
        with self.assertRaises(byway.BywayError) as caught:
            self.chain.tags(byway.Invocation("hi"))
        self.assertIsInstance(caught.exception.__cause__, LookupError)

    def test_lint_finds_unknown_keys(self):
        self.assertIn("2:1: warning: 'nonsense'", byway.rule_check("conditions: []\nnonsense: 1\n"))

    def test_a_list_with_a_repeated_tag_is_refused_whole(self):
        with self.assertRaises(byway.BywayError) as caught:
            byway.Invokers(self.engine, ["tri://a:1/x", "tri://b:1/x"], [1, 1])
        self.assertIn("1", str(caught.exception))
        self.assertIs(type(caught.exception), byway.InvokersError)
        self.assertIsInstance(caught.exception, ValueError)


class Closing(unittest.TestCase):
    def test_a_call_keeps_what_another_thread_closes(self):
        with byway.Engine() as engine:
            for _ in range(100):
                chain = byway.Chain(engine, "consumer://192.0.2.1/S")
                calls, ended = [0] * 3, []

                def use(number):
                    try:
                        while True:
                            chain.set_invokers(byway.Invokers(engine, ["tri://192.0.2.1:1/S"]))
                            chain.status()
                            calls[number] += 1
                    except byway.BywayError as error:
                        ended.append(type(error))

                threads = [threading.Thread(target=use, args=(number,)) for number in range(3)]
                for thread in threads:
                    thread.start()
                while min(calls) < 5:
                    time.sleep(0)
                chain.close()
                for thread in threads:
                    thread.join()
                self.assertEqual(ended, [byway.errors.HandleError] * 3)


    def test_options_keep_what_another_thread_closes(self):
        class Closing:
            """Something that is asked for its address last, when another thread closes what the options name."""

            def __init__(self, one, *others):
                self._one, self._others = one, others

            @property
            def pointer(self):
                for other in self._others:
                    other.close()
                return self._one.pointer

        with byway.Engine() as engine:
            dns = byway.Dns(engine, lambda host: ["192.0.2.7"])
            proxies = byway.ProxySelector.fixed(engine, [byway.Proxy(byway.ProxyKind.HTTP, "192.0.2.9", 3128)])
            address = byway.Address(Closing(engine, dns, proxies), "a.example", 80, dns=dns, proxy_selector=proxies)
            self.assertEqual([str(hop.ip) for hop in byway.plan(address)], ["192.0.2.9"])
            queue, memory = byway.Queue(), byway.Source.memory(engine)
            chain = byway.Chain(engine, "consumer://192.0.2.1/S")
            self.assertTrue(chain.bind(Closing(memory, queue), queue=queue))
            self.assertTrue(queue.closed)


class Binding(unittest.TestCase):
    def setUp(self):
        if not byway.has_feature("zookeeper"):
            self.skipTest("a library without ZooKeeper")
        self.engine = byway.Engine()
        self.addCleanup(self.engine.close)
        # Nobody listens on port 1, so no first state ever comes.
        self.nowhere = byway.Source.zookeeper(self.engine, "127.0.0.1:1")
        self.chain = byway.Chain(self.engine, "consumer://192.0.2.1/S")

    def meanwhile(self, step):
        """Does a step again and again, once the bind has begun: its source has been looked for then."""
        over = threading.Event()

        def work():
            while not self.nowhere.status()["errors"]:
                time.sleep(0.001)
            while not over.wait(0.05):
                step()

        thread = threading.Thread(target=work)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)
        return over

    def test_a_bind_that_waits_is_called_off(self):
        over = self.meanwhile(self.chain.cancel_bind)
        with self.assertRaises(byway.CanceledError):
            self.chain.bind(self.nowhere, 600)
        over.set()
        with self.assertRaises(byway.BywayError) as caught:
            self.chain.bind_status()
        self.assertEqual(caught.exception.name, "BYWAY_E_STATE")

    def test_ctrl_c_ends_a_bind_and_handlers_that_do_not_raise_let_it_go_on(self):
        heard = []

        def on_signal(number, frame):
            heard.append(number)
            if len(heard) == 2:
                raise KeyboardInterrupt

        former = signal.signal(signal.SIGINT, on_signal)
        self.addCleanup(signal.signal, signal.SIGINT, former)
        read, write = os.pipe()
        os.set_blocking(write, False)
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        wakeup = signal.set_wakeup_fd(write)
        self.addCleanup(signal.set_wakeup_fd, wakeup)
        # The process's signal, which some thread of it gets.
        over = self.meanwhile(lambda: os.kill(os.getpid(), signal.SIGINT) if len(heard) < 2 else None)
        with self.assertRaises(KeyboardInterrupt):
            self.chain.bind(self.nowhere, 600)
        over.set()
        self.assertGreaterEqual(len(heard), 2)
        self.assertEqual(signal.set_wakeup_fd(write), write, "the host's own descriptor is back")
        self.assertIn(signal.SIGINT, os.read(read, 64), "and was told meanwhile")
        self.assertFalse([thread for thread in threading.enumerate() if thread.name == "byway-interrupt"])


class Lists(unittest.TestCase):
    def setUp(self):
        self.engine = byway.Engine(seed=7)
        self.addCleanup(self.engine.close)
        self.chain = byway.Chain(self.engine, "consumer://127.0.0.1/HelloService?interface=HelloService")

    def test_a_list_is_made_piece_by_piece_and_updated(self):
        with byway.InvokersBuilder(self.engine, keep_urls=True) as builder:
            builder.add("tri://10.0.0.1:1/HelloService", 11)
            builder.add_many(["tri://10.0.0.2:1/HelloService", "tri://10.0.0.3:1/HelloService"], [12, 13])
            first = builder.finish()
        builder = byway.InvokersBuilder(self.engine, first, keep_urls=True)
        builder.set("tri://10.0.0.9:1/HelloService", 11)
        builder.remove(12)
        second = builder.finish()
        self.assertTrue(builder.closed)
        self.assertEqual([second.tag(row) for row in range(len(second))], [11, 13])
        self.assertEqual((second.url(0), second.row_of(13)), ("tri://10.0.0.9:1/HelloService", 1))
        self.assertEqual((len(first), first.generation == second.generation), (3, False))
        with self.assertRaises(byway.BywayError) as caught:
            byway.InvokersBuilder(self.engine, first).remove(99)
        self.assertEqual(caught.exception.name, "BYWAY_E_NOT_FOUND")

    def test_the_host_hears_when_nothing_can_name_its_numbers(self):
        ended = []
        invokers = byway.Invokers(self.engine, ["tri://10.0.0.1:1/HelloService"], [5], on_end=lambda: ended.append(1))
        self.chain.set_invokers(invokers)
        choice = self.chain.route(byway.Invocation("hello"))
        invokers.close()
        self.chain.set_invokers(byway.Invokers(self.engine, ["tri://10.0.0.2:1/HelloService"]))
        self.assertEqual((list(choice), choice[0], choice[-1], ended), ([5], 5, 5, []))
        choice.close()
        self.engine.close()
        self.assertEqual(ended, [1])

    def test_an_invocation_is_filled_anew(self):
        self.chain.set_invokers(byway.Invokers(self.engine, [f"tri://10.0.0.{i}:2088{i}/HelloService" for i in (0, 2)]))
        self.engine.set_rule(byway.rule_key("HelloService"), RULE)
        number = self.chain.intern_method("hello2")
        call, both = byway.Invocation(method_id=number), self.chain.session().tags
        self.assertEqual(both(call), [1])
        self.assertEqual(both(call.reset("hello")), [0])
        self.assertEqual(both(call.reset("other", arguments=[None, "x"]).attach("k", "v").attach("k", "w")), [0, 1])

    def test_picks_know_who_can_be_called_and_how_calls_went(self):
        invokers = byway.Invokers(self.engine, [f"tri://10.0.0.{i}:1/HelloService" for i in range(4)], range(10, 14))
        self.chain.set_invokers(invokers)
        call = byway.Invocation("hello")
        picked = [self.chain.pick(call, available=(invokers, [2]), sticky=False).tag for _ in range(8)]
        self.assertEqual(picked, [12] * 8)
        session = self.chain.session()
        self.assertEqual(session.pick(call, exclude=[10, 11, 12], balance=byway.Balance.RANDOM).tag, 13)
        one = self.chain.pick(call, balance=byway.Balance.LEAST_ACTIVE)
        self.assertTrue(self.chain.pick_end(one, True, report=byway.Report(1.0, 0.5, 0.002)))
        self.assertFalse(self.chain.pick_end(one, True, 0.001))

    def test_several_changes_of_a_source_are_one_moment_and_are_told(self):
        source, seen, queue = byway.Source.memory(self.engine), [], byway.Queue()
        source.apply({"HelloService/providers": "tri://10.0.0.1:20880/HelloService\ntri://10.0.0.2:20882/HelloService",
                      byway.rule_key("HelloService"): RULE})
        self.assertTrue(self.chain.bind(source, 120, on_event=seen.append, queue=queue))
        self.assertEqual(len(self.chain.tags(byway.Invocation("hello"))), 1)
        self.assertEqual((self.chain.bind_status()["ready"], self.chain.bind_status()["providers"]), (True, 2))
        source.apply({byway.rule_key("HelloService"): None})
        self.assertEqual(len(self.chain.tags(byway.Invocation("hello"))), 2)
        queue.poll(0)
        self.assertIn(byway.SourceEventKind.READY, [event.kind for event in seen])


if __name__ == "__main__":
    unittest.main()
