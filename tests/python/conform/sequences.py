"""bugs.jsonl sequence, the first half: what an engine remembers of routes that failed, and who hears of it."""
import byway
from case import Fails, Skips, ip_text, same
from net import Script

FAILURES = {"refused": byway.Failure.REFUSED}


class Remembered:
    """Steps against one engine and one address."""

    def __init__(self, case):
        given = case["input"]
        if not given.get("dns"):
            given = {**given, "dns": {"h": ["192.0.2.1", "192.0.2.2"]}}
        self.case, self.script, self.got, self.selects = case, Script({**case, "input": given}, False), {}, 0

    def route(self, name):
        """`r1` is the first route, another name its address."""
        return byway.Route(self.script.address, None, f"192.0.2.{name[1:]}" if name.startswith("r") else name)

    def failed(self, route, failure=byway.Failure.REFUSED, errno=111):
        self.script.engine.connect_failed(route, failure, os_errno=errno)

    def report_connected(self, name):
        self.script.engine.connected(self.route(name))

    def report_exchange_failed(self, name):
        self.failed(self.route(name), byway.Failure.IO, 0)

    def fail(self, name):
        if name.startswith("first route"):
            self.failed(self.script.select_all()[0][0])
        else:
            self.failed(self.route(name))

    report_connect_failed = fail

    def fail_distinct_routes(self, count):
        most, bound = 0, self.case["expect"]["size_max"]
        for n in range(count):
            address = f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"
            self.failed(byway.Route(self.script.address, None, address))
            if n % 1000 == 0 or n + 1 == count:
                most = max(most, self.script.engine.stats()["database_records"])
        self.got["size_max"] = most

    def advance_clock_s(self, seconds):
        self.script.now += seconds * 1000000000

    def should_postpone(self, name):
        self.got["result"] = self.script.engine.should_postpone(self.route(name))

    def notify_network_changed(self):
        self.script.engine.network_changed()

    def select(self, *_):
        """What one selector gives; a step that only says how the address is made is no question."""
        if _:
            return
        self.selects += 1
        shown = [[ip_text(route.hop[0]) for route in given] for given in self.script.select_all()]
        self.got[f"select_{self.selects}"] = shown
        self.got["selections"] = [[text.replace("192.0.2.", "r") for text in given] for given in shown]

    def select_through_copy_2(self):
        copy = byway.Address(self.script.engine, self.script.address.host, 80, dns=self.script.dns)
        first = next(iter(byway.Selector(copy).next(0)))
        self.got["first_route_postponed"] = ip_text(first.hop[0]) != "192.0.2.1"


def told(case):
    """Which failures a proxy selector hears of."""
    heard = []
    given = {**case["input"], "dns": {text.split(" ")[1].split(":")[0]: [f"192.0.2.{n}"]
                                      for n, text in enumerate(case["input"]["proxies"], 1)}}
    names = {failure: name for name, failure in FAILURES.items()}

    def hear(_, route, failure):
        heard.append([f"{route.proxy.host}:{route.proxy.port}", names.get(failure, failure)])

    script = Script({**case, "input": given}, False, hear)
    selector, route = byway.Selector(script.address), None
    for word, *rest in case["input"]["steps"]:
        if word == "next":
            route = selector.next(0)[0]
        elif word == "report_connected":
            script.engine.connected(route)
        elif word == "report_connect_failed":
            script.engine.connect_failed(route, FAILURES[rest[0]], os_errno=111)
        else:
            raise Fails(f"step {word}")
    script.engine.close()
    same(heard, case["expect"]["selector_connect_failed_calls"], "heard")


def run(case):
    if case["area"] == "selector":
        told(case)
        return
    if case["area"] != "db":
        raise Skips("no selector looks for wpad by names; bugs.jsonl wpad_names shows which ones would be asked")
    steps = Remembered(case)
    for word, *rest in case["input"]["steps"]:
        getattr(steps, word.replace(" ", "_"))(*rest)
    steps.script.engine.close()
    for key, want in case["expect"].items():
        same(steps.got.get(key), want, key)
