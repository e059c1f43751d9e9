"""Words of rules seen through what they choose: addresses and matchers of tags, keys, orders, weights, and what a chain
does with lists and notifications."""
import re
import threading

import byway
import sequences
from byway import Dialect, RuleKind
from case import Skips, need, same, shown
from mesh import matched as block_fits
from worlds import World, dialect_of, sane_of

APPLICATION = "of-the-case"


def tagged(dialect, tag, provider):
    """Whether a provider belongs to a tag; None when the rule is refused."""
    rule = {"configVersion": "v3.0", "tags": [{**tag, "name": "t"}]}
    consumer = "consumer://10.0.1.1/S?router=-default,tag"
    with World(dialect, consumer, [provider], f"application={APPLICATION}", "application=") as world:
        if world.set_rule(f"{APPLICATION}.tag-router", shown(rule)) is not None:
            return None
        world.call({"method": "m", "attachments": {"dubbo.tag": "t", "dubbo.force.tag": "true"}})
        return bool(world.routed())


# --- addresses ---


def at_address(dialect, pattern, host, port):
    place = f"[{host}]" if ":" in host else host
    return tagged(dialect, {"addresses": [pattern]}, f"dubbo://{place}:{port}/S")


def ip(case):
    """Dubbo's matcher throws where it does not understand; a tag then has nobody there."""
    function, pattern, host = case.get("function") or "", case.get("pattern") or "", case.get("host")
    port, expect, sane = int(case.get("port") or 1), case["expect"], sane_of(case)
    if host is None:
        raise Skips("a provider always has a host")
    if function == "expression2":
        raise Skips("upstream's address without a port is no provider's")
    if function == "range" and "/" in pattern:
        raise Skips("the range alone, in front of which a network is always looked for")
    if pattern.startswith("0.0.0.0:"):
        raise Skips("in a tag 0.0.0.0 and a port mean every host")
    got = at_address(Dialect.DUBBO_3, pattern, host, port)
    if not (got is None and isinstance(expect, dict)):
        same(bool(got), expect is True, "there")
    if sane is not None:
        same(bool(at_address(Dialect.BYWAY, pattern, host, port)), sane is True, "byway: there")


# --- matchers of tags ---


def parameter_fits(dialect, key, matcher, provider):
    return tagged(dialect, {"match": [{"key": key, "value": matcher}]}, provider)


def param_match(case):
    matcher = case["matcher"]
    got = parameter_fits(dialect_of(case), matcher["key"], matcher.get("value"), case["invokers"][0]["url"])
    same(bool(got), case["expect"] is True, "fits")


def string_match(case):
    expect, matcher, given, dialect = case["expect"], case["matcher"], case.get("input"), dialect_of(case)
    if isinstance(expect, dict) and "error" in expect:
        # Upstream learns at the first call what a reader says at once.
        need(parameter_fits(dialect, "k", matcher, "dubbo://10.0.0.1:1/S?k=b") is None, "the rule is taken")
        return
    if dialect != Dialect.DUBBO_GO:
        # Of attachments, which may be absent.
        if isinstance(expect, dict) and isinstance(expect.get("parsed"), dict):
            # A number was read as its text, so that text fits.
            given, expect = expect["parsed"].get("exact") or "", True
        block = {"attachments": {"dubboContext": {"k": matcher}}}
        call = {"method": "m", "attachments": {} if given is None else {"k": given}}
        block_fits(dialect, "consumer://10.1.1.1/S", block, call, None, expect)
        return
    query = "a=b" if given is None else f"k={given}"
    same(bool(parameter_fits(dialect, "k", matcher, f"dubbo://10.0.0.1:1/S?{query}")), expect is True, "fits")


# --- what a text is read as, as far as it shows ---


def router_of(world, name):
    """How a router stands; of several of a name the last."""
    return [router for router in world.chain.status()["routers"] if router["name"] == name][-1]


def holds_for_gray(dialect, rule):
    """A rule that counts says who is gray; one that does not leaves nobody gray."""
    with World(dialect, "consumer://10.0.1.1/S", ["dubbo://192.168.0.1:20000/S?application=test-app"]) as world:
        world.set_rule("test-app.tag-router", rule)
        world.call({"method": "m", "attachments": {"dubbo.tag": "gray", "dubbo.force.tag": "true"}})
        return bool(world.routed())


def tag_parse(case):
    dialect, expect = dialect_of(case), case["expect"]
    with World(dialect, "consumer://10.0.1.1/S", case.get("invokers") or ["dubbo://10.0.0.1:1/S?application=a"]) as world:
        key = router_of(world, "tag")["key"]
        refused = world.set_rule(key, case.get("rule") or "")
    if "config_key" in expect:
        same(key, expect["config_key"], "key")
    if "valid" in expect:
        need(refused is None, f"refused: {refused}")
        same(holds_for_gray(dialect, case["rule"]), expect["valid"], "a call for gray gets the provider that is")
    for name, group in (expect.get("tag_to_addresses") or {}).items():
        need(tagged(dialect, {"addresses": group}, f"dubbo://{group[0]}/S"), f"{name} is not at {group[0]}")


def condition_config(case):
    given, expect = case["input"], case["expect"]
    with World(Dialect.BYWAY, "consumer://10.9.9.9/s", given["invokers"]) as world:
        refused = world.set_rule("s::.condition-router", given["yaml"])
        need(refused is None, f"refused: {refused}")
        world.call({"method": given.get("method") or "m"})
        same(world.routed(), expect["kept"], "kept")
        same(bool(router_of(world, "service")["in_force"]), expect["enabled"], "in force")


def rule_keys(case):
    given, expect = case["input"], case["expect"]
    provider, consumer = given.get("provider_application") or "", given.get("consumer_application") or ""
    of_service = {"version": given.get("version") or "", "group": given.get("group") or ""}

    def of_application(kind, application):
        return byway.rule_key(application=application, kind=kind, **of_service)

    got = {
        "tag": lambda: of_application(RuleKind.TAG, provider),
        "script": lambda: of_application(RuleKind.SCRIPT, provider),
        "condition_service": lambda: byway.rule_key(given["service"], **of_service),
        "affinity_service": lambda: byway.rule_key(given["service"], kind=RuleKind.AFFINITY, **of_service),
        "condition_app": lambda: [of_application(RuleKind.CONDITION, consumer), of_application(RuleKind.CONDITION, provider)],
    }
    for name, want in expect.items():
        need(name in got, f"unknown key {name}")
        same(got[name](), want, name)


ROUTERS = {
    "mock": "MockInvokersSelector", "standard-mesh-rule": "StandardMeshRuleRouter", "tag": "TagStateRouter",
    "service": "ServiceStateRouter", "provider-app": "ProviderAppStateRouter", "app": "AppStateRouter",
    "script-app": "AppScriptStateRouter",
}


def chain_order(case):
    with World(Dialect.DUBBO_3, case.get("consumer_url") or "", []) as world:
        names = [router["name"] for router in world.chain.status()["routers"]]
    # Affinity came after the version the cases were taken from.
    same([ROUTERS[name] for name in names if name in ROUTERS], case["expect"], "routers")


# --- weights ---

WALL = 5000000000000


def weighs(first, weight):
    """Smooth weighted round robin gives each provider exactly its share, so counts tell the weight."""
    rows, other = [first, "dubbo://10.0.0.2:1/S?weight=50"], 50
    with World(Dialect.DUBBO_3, "consumer://127.0.0.1/S?router=-default", rows, wall=lambda: WALL) as world:
        world.call({"method": "m"})
        picks = [world.chain.pick(world.invocation, balance=byway.Balance.ROUND_ROBIN).tag
                 for _ in range(20 * (weight + other))]
    same(picks.count(1), 20 * weight, f"of {len(picks)} picks")


def warmup(case):
    uptime = int(case.get("uptime_ms") or 0)
    if uptime == 0:
        raise Skips("an uptime of 0 does not come to the formula")
    url = (f"dubbo://10.0.0.1:1/S?weight={case.get('weight') or 0}&warmup={case.get('warmup_ms') or 0}"
           f"&timestamp={WALL - uptime}")
    weighs(url, int(case["expect"]))


def weight(case):
    if not isinstance(case["expect"], dict):
        raise Skips("weights of whole registries are a cluster's of clusters")
    for row in case["invokers"]:
        ago = int(re.fullmatch(r"now-(\d+)ms", row["timestamp"]).group(1))
        weighs(f"dubbo://10.0.0.1:1/S?timestamp={WALL - ago}", int(case["expect"]["value"]))


# --- lists ---


def urls_of(names):
    return [name if "://" in name else f"dubbo://{name}:1/S" for name in names]


def list_ops(case):
    given = case["input"]
    names = [*(given.get("base") or ()), *(given.get("tail") or ())]
    with World(Dialect.BYWAY, "consumer://10.0.0.1/S", urls_of(names)) as world:
        for number, (word, *rest) in enumerate(given["ops"]):
            def route(request, dropped=rest[0] if word == "drop_by_router" else None):
                return [tag for tag in request.tags if names[tag - 1] != dropped]

            world.chain.add_router(byway.Router(world.engine, f"op{number}", route, priority=number))
        world.call({"method": "m"})
        same([names[row] for row in world.routed()], case["expect"]["members"], "members")


# --- threads ---


def concurrency(case):
    given = case["input"]
    # Rounds in place of seconds: the same number of races on every machine.
    concurrent(given["lists"], int(given.get("threads_route", 1)), int(given.get("threads_set_invokers", 1)),
               1000 * int(given.get("seconds", 1)))


def concurrent(members, readers, writers, rounds):
    """Every answer is of one list while others replace the list."""
    wrong = []
    with World(Dialect.BYWAY, "consumer://10.0.0.1/S", ["dubbo://a:1/S"]) as world:
        # The hundreds of a number say which list it is of.
        lists = [byway.Invokers(world.engine, urls_of(names), range(100 * i, 100 * i + len(names)))
                 for i, names in enumerate(members, 1)]

        def routes():
            call = byway.Invocation("m")
            for _ in range(rounds):
                tags = world.chain.tags(call)
                if len({tag // 100 for tag in tags}) != 1:
                    wrong.append(tags)

        def replaces():
            for turn in range(rounds):
                world.chain.set_invokers(lists[turn % len(lists)])

        def told(work):
            try:
                work()
            except Exception as error:  # told by the thread that started it
                wrong.append(error)

        works = [routes] * readers + [replaces] * writers
        threads = [threading.Thread(target=told, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    need(not wrong, f"{wrong[:3]}")


# --- a registry's notifications ---

RULE = "route://0.0.0.0/S?router=condition&force=true&rule=%3D%3E%20host%3D10.0.0.1"
TWO = "dubbo://10.0.0.1:20880/S\ndubbo://10.0.0.2:20880/S"


def category(case):
    """An entry is what its key says; among providers only URLs of providers count."""
    entry, expect = case["invokers"][0]["url"], case["expect"]
    with World(Dialect.DUBBO_3, "consumer://10.0.0.9/S", []) as world:
        source = byway.Source.memory(world.engine)
        source.put("S/providers", entry)
        need(world.chain.bind(source, 30), "the first state does not come")
        world.call({"method": "m"})
        same(len(world.routed()), int(expect.get("category") == "providers"), "providers")


def notify(case):
    expect, routers = case["expect"], isinstance(case["expect"].get("url_routers"), list)
    entry = case["invokers"][0].get("url") if case.get("invokers") else None
    if "category" in expect or "dropped" in expect:
        category(case)
        return
    with World(Dialect.DUBBO_2_7 if routers else Dialect.DUBBO_3, "consumer://10.0.0.9/S", []) as world:
        source = byway.Source.memory(world.engine)
        source.put("S/providers", TWO)
        source.put("S/routers", RULE if routers else "")
        need(world.chain.bind(source, 30), "the first state does not come")
        world.call({"method": "m"})
        before = len(world.chain.tags(world.invocation))
        if entry is None:
            source.remove("S/providers")
        else:
            source.put("S/routers" if routers else "S/providers", entry)
        after = len(world.chain.tags(world.invocation))
    invokers = expect.get("invokers")
    if routers:
        same([before, after], [1, 2], "providers")
    else:
        same([before, after], [2, invokers if isinstance(invokers, int) else 2], "providers")


# --- sequences ---

RULE_KEY = "com.foo.BarService::.condition-router"


class Sequence:
    """Steps against one chain; events are told by whoever polls."""

    def __init__(self, world):
        self.world, self.queue = world, world.engine.queue
        self.heard, self.listeners, self.got = [], {}, {}
        world.engine.add_listener(self.heard.append, [byway.EventKind.RULE])

    def push_rule(self, text):
        self.world.set_rule(RULE_KEY, text)

    def push_event(self, event):
        if event.get("type") == "delete":
            self.world.remove_rule(RULE_KEY)
        else:
            self.world.set_rule(RULE_KEY, shown(event.get("value")))

    def publish(self, *_):
        self.world.set_rule(RULE_KEY, "conditions: ['=> host=10.0.0.1']")

    def set_invokers(self, names=()):
        if names:
            self.world.chain.set_invokers(byway.Invokers(self.world.engine, urls_of(names)))

    def route(self, names=()):
        try:
            self.set_invokers(names)
            self.world.call({"method": "m"})
            tags = self.world.chain.tags(self.world.invocation)
        except byway.ShutdownError:
            self.got["error"] = "closed"
            return
        rows = tags if not names else [self.row_of(tag) for tag in tags]
        self.got["kept"] = [row if "://" in names[row] else names[row] for row in rows]

    def row_of(self, tag):
        return self.world.chain.invokers.row_of(tag)

    def destroy(self, *_):
        self.world.engine.shutdown(30)

    def add_listener(self, _, name):
        ear = self.listeners[name] = []
        ear.append(byway.Listener(self.world.engine, ear.append, [byway.EventKind.RULE]))

    def remove_listener(self, _, name):
        self.listeners[name][0].close()

    def create(self, *_):
        pass

    def run(self, steps):
        for word, *rest in steps:
            getattr(self, word)(*rest)
            try:
                self.queue.poll(0)
            except byway.ShutdownError:
                pass


def sequence(case):
    area, expect, steps = case.get("area") or "", case["expect"], case["input"]["steps"]
    if area not in ("chain", "condition"):
        sequences.run(case)
        return
    if any(step[0] == "source_down" for step in steps):
        raise Skips("a centre that can be lost needs a server")
    with World(Dialect.BYWAY, "consumer://10.20.3.1/com.foo.BarService", ["dubbo://10.0.0.1:1/S"]) as world:
        run = Sequence(world)
        run.run(steps)
    refused = [event for event in run.heard if event.status < 0]
    got = {**run.got}
    if "called" in expect:
        got["called"] = [name for name, ear in run.listeners.items() if len(ear) > 1]
    if "errors" in expect:
        got["errors"] = len(refused)
    if "events" in expect:
        got["events"] = ["rule_error"] * len(refused)
    if "panic" in expect:
        got["panic"] = False
    same(got, expect, "outcome")


KINDS = {
    ("dubbo_chain", "ip"): ip,
    ("dubbo_chain", "string_match"): string_match,
    ("dubbo_chain", "param_match"): param_match,
    ("dubbo_chain", "tag-parse"): tag_parse,
    ("dubbo_chain", "chain-order"): chain_order,
    ("dubbo_chain", "lb-warmup"): warmup,
    ("dubbo_chain", "lb-weight"): weight,
    ("dubbo_chain", "notify"): notify,
    ("bugs", "condition_config"): condition_config,
    ("bugs", "rule_keys"): rule_keys,
    ("bugs", "list_ops"): list_ops,
    ("bugs", "concurrency"): concurrency,
    ("bugs", "sequence"): sequence,
}
