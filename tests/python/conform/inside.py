"""What upstream's tests ask of the inside of a chain, as it shows outside: in what a chain routes and picks, in its status,
in explanations, and in what a source's entries become."""
import json
import re

import byway
from byway import Dialect
from case import Fails, Skips, need, same, shown
from words import concurrent, urls_of
from worlds import World, dialect_of, ids_of

# --- lists of rows: each state is what a chain with a host's router leaves ---


class Rows:
    """Members of a list in its order, and which of them are left."""

    def __init__(self, names):
        self.names, self.kept = list(names), set(names)

    def routed(self, *others):
        """Who is left, asked of a chain: this set's router, then one for each other set. Same members, other sets: first
        those of this list."""
        names = self.names + [name for other in others for name in other.names if name not in self.names]
        with World(Dialect.BYWAY, "consumer://10.0.0.1/S", urls_of(dict.fromkeys(names))) as world:
            names = list(dict.fromkeys(names))
            for number, rows in enumerate((self, *others)):
                def route(request, kept=frozenset(rows.kept)):
                    return [tag for tag in request.tags if names[tag - 1] in kept]

                world.chain.add_router(byway.Router(world.engine, f"set{number}", route, priority=number))
            world.call({"method": "m"})
            with world.chain.route(world.invocation) as choice:
                return [names[tag - 1] for tag in choice.tags()]

    def add(self, name):
        if name not in self.names:
            self.names.append(name)
        self.kept.add(name)

    def drop(self, names):
        self.kept -= set(names)

    def picked(self):
        """One of those that are left; None when nobody is."""
        with World(Dialect.BYWAY, "consumer://10.0.0.1/S", urls_of(self.routed())) as world:
            world.call({"method": "m"})
            try:
                return self.routed()[world.chain.pick(world.invocation).tag - 1]
            except byway.NoInvokerError:
                return None


class Lists:
    """The lists of a case by name. A step names its list first where the case has several."""

    def __init__(self, case):
        self.all = {}
        self.case = case

    def step(self, step):
        op, arguments = step["op"], list(step["args"])
        if not hasattr(self, f"do_{op}") and op != "new":
            raise Skips(f"{op}: sets have no such thing")
        if op == "new":
            name = arguments.pop(0) if len(arguments) > 1 else ""
            self.all[name] = Rows(arguments[0])
            return
        name = arguments.pop(0) if arguments and isinstance(arguments[0], str) and arguments[0] in self.all and "" not in self.all else ""
        rows = self.all[name]
        before = rows.routed()
        if op == "list_iterator":
            self.walk(rows, arguments[0], step)
            return
        try:
            got = getattr(self, f"do_{op}")(rows, *arguments)
        except IndexError:
            need("throws" in step, f"{op} past the end of {before}")
            return
        wanted = step.get("sane_expect", step.get("fixed_expect", step.get("expect")))
        if "throws" in step and wanted is None:
            need(got is None, f"{op}: got {got}, want {step['throws']}")
        elif wanted is not None:
            same(got, wanted, f"{op}{arguments}")

    @staticmethod
    def do_size(rows):
        return len(rows.routed())

    @staticmethod
    def do_is_empty(rows):
        return not rows.routed()

    @staticmethod
    def do_get(rows, at):
        return rows.routed()[at]

    @staticmethod
    def do_contains(rows, name):
        return name in rows.routed()

    @staticmethod
    def do_index_of(rows, name):
        routed = rows.routed()
        return routed.index(name) if name in routed else -1

    @staticmethod
    def do_to_list(rows):
        return rows.routed()

    @staticmethod
    def do_sub_list(rows, first, last):
        return rows.routed()[first:last]

    @staticmethod
    def do_remove(rows, name):
        there = name in rows.routed()
        rows.drop([name])
        return there

    @staticmethod
    def do_remove_at(rows, at):
        name = rows.routed()[at]
        rows.drop([name])
        return name

    @staticmethod
    def do_remove_all(rows, names):
        rows.drop(names)

    do_remove_if = do_remove_all

    @staticmethod
    def do_add(rows, name):
        rows.add(name)

    @staticmethod
    def do_add_all(rows, names):
        for name in names:
            rows.add(name)

    def do_add_all_bitlist(self, rows, other):
        self.do_add_all(rows, self.all[other].routed())

    @staticmethod
    def do_clear(rows):
        rows.names, rows.kept = [], set()

    def do_and(self, rows, other):
        return rows.routed(self.all[other])

    def do_clone(self, rows, name="clone"):
        self.all[name] = Rows(rows.names)
        self.all[name].kept = set(rows.kept)

    @staticmethod
    def do_new_from(rows):
        return Rows(rows.routed()).routed()

    @staticmethod
    def do_new_from_empty(rows):
        return Rows([]).routed()

    @staticmethod
    def do_add_index(rows, at):
        rows.kept.add(rows.names[at])

    do_list_iterator = None

    @staticmethod
    def walk(rows, at, step):
        """A cursor that removes what it passes, one way and then the other."""
        if not step["remove"]:
            raise Skips("rows have no cursor")
        routed = rows.routed()
        first, second = routed[:at], routed[at:]
        for half, wanted in zip((second, first) if step["walk"].startswith("forward") else (first, second),
                                ("after_first_half", "after_second_half")):
            for name in half:
                rows.drop([name])
            same(rows.routed(), step[wanted], wanted)

    @staticmethod
    def do_random_select_one(rows):
        return rows.picked()


# Who came later, over which list a set was made, and cursors: nothing a set has.
FOREIGN = {"has_tail", "tail_list", "origin_list"}


def bit_list(case):
    lists = Lists(case)
    steps = [step for step in case["steps"] if step["op"] not in FOREIGN]
    asked = 0
    for step in steps:
        lists.step(step)
        asked += not {"expect", "throws", "sane_expect", "after_first_half"}.isdisjoint(step)
    if not asked:
        raise Skips("sets have no cursors, tails or origins")


# --- chains ---


def consumer_of(case):
    text = case.get("consumer_url") or ""
    return text if "://" in text and " " not in text else "consumer://127.0.0.1/com.demo.Service"


def delivered(case, keys):
    """Static configurations that count: those that are there, enabled and valid, whatever their key."""
    if not isinstance(case.get("configs"), list):
        raise Skips("described in words")
    got = []
    for config in case["configs"]:
        if config is None:
            continue
        key, of_service = config["key"], config["scope"] == "service"
        consumer = f"consumer://10.0.0.1/{key}" if of_service else f"consumer://10.0.0.1/S?application={key}"
        with World(Dialect.BYWAY, consumer, ["dubbo://10.0.0.2:1/S"]) as world:
            refused = world.set_rule(f"{key}{'::' if of_service else ''}.condition-router",
                                     shown({**config, "force": True, "conditions": ["=> a=b"]}))
            need(refused is None, f"{config}: {refused}")
            world.call({"method": "m"})
            if not world.routed():
                got.append(key)
    same(got, keys, "in force")


def host_routers(case):
    """Host routers in ascending order, each on the output of the one before."""
    seen, order = {}, []
    with World(Dialect.BYWAY, consumer_of(case), case["invokers"]) as world:
        named = case.get("routers") or [{"priority": one, "does": "identity"} for one in case["added_priorities"]]
        for router in named:
            def route(request, router=router):
                seen[router["priority"]] = len(request.tags)
                order.append(router["priority"])
                return request.tags[:1] if router["does"] == "keeps the first" else None

            world.chain.add_router(byway.Router(world.engine, f"r{router['priority']}", route, priority=router["priority"]))
        world.call(case["invocation"])
        rows = world.routed()
    for router in named:
        if "input_size" in router:
            same(seen[router["priority"]], router["input_size"], f"rows at {router['priority']}")
    if "call_order" in case["expect"]:
        same(order, case["expect"]["call_order"], "order")
    else:
        same(ids_of(case["invokers"], rows), case["expect"], "ids")


def chain(case):
    expect = case["expect"]
    if isinstance(expect, list) and not isinstance(case.get("routers"), list):
        with World(dialect_of(case), consumer_of(case), case.get("invokers") or []) as world:
            if not world.call(case.get("invocation")):
                world.call({"method": "m"})
            same(ids_of(case.get("invokers"), world.routed()), expect, "ids")
    elif isinstance(expect, list) or "call_order" in expect:
        host_routers(case)
    elif "delivered_keys" in expect:
        delivered(case, expect["delivered_keys"])
    elif "assert" in expect:
        # Four readers, each two thousand calls, and one writer.
        concurrent([["a", "b", "c"], ["b", "c", "d"], ["e"]], 4, 1, 2000)
    elif expect.get("ok") is True:
        # A null list is an empty one.
        with World(dialect_of(case), consumer_of(case), []) as world:
            world.call({"method": "m"})
            same(world.routed(), [], "rows")
    else:
        raise Skips("a chain has one world at a time: no call meets a list that changes under it")


def cache(case):
    """dubbo-go's pools are the memo here: what is remembered belongs to the generation it was made for."""
    with World(Dialect.BYWAY, consumer_of(case), case["invokers"]) as world:
        world.call({"method": "Say"})
        first, generation = world.routed(), world.chain.generation
        same(world.routed(), first, "again")
        same(world.chain.generation, generation, "generation of the same world")
        world.chain.set_invokers(world.list)
        same(world.chain.generation - generation, case["expect"]["generation"] if case["expect"]["pool_found_by_name"]
             else case["expect"]["generation"] - 1, "generations later")
        same(world.routed(), first, "over the list set again")


ROUTERS = {
    "MockInvokersSelector": "mock",
    "StandardMeshRuleRouter": "standard-mesh-rule",
    "TagStateRouter": "tag",
    "ServiceStateRouter": "service",
    "ProviderAppStateRouter": "provider-app",
    "AppStateRouter": "app",
    "AppScriptStateRouter": "script-app",
}


def explained(world, call):
    world.call(call)
    return json.loads(world.chain.explain(world.invocation, json=True))


def snapshot(case):
    """Upstream's text of a decision says what an explanation says: per router how many come in and go out."""
    text = case["expect"]["text"]
    with World(dialect_of(case), consumer_of(case), case["invokers"]) as world:
        status = [router["name"] for router in json.loads(shown(world.chain.status()))["routers"]]
        if not text.startswith("[ Parent"):
            tool_snapshot(world, text, status)
            return
        got = explained(world, case["invocation"])
    reached = {router["name"]: router for router in got["routers"] if router.get("reached", True)}
    for line in text.splitlines():
        name = re.match(r"\s*\[ (\w+)", line).group(1)
        numbers = [int(re.search(rf"\({word}: (\d+)\)", line).group(1))
                   for word in ("Input", "Current Node Output", "Chain Node Output")]
        same(got["out"], numbers[2], "chain output")
        if name == "Parent":
            same(got["in"], numbers[0], "input")
        elif ROUTERS[name] in reached:
            router = reached.pop(ROUTERS[name])
            same([router["in"], router["out"]], numbers[:2], ROUTERS[name])
        else:
            # Not in force: passes what it gets.
            same(numbers[0], numbers[1], name)
    need(not reached, f"{sorted(reached)} reached as well")


def tool_snapshot(world, text, status):
    """What the operations command shows: the mock router's two groups, and the routers in order."""
    def of_mock(call):
        return next(router["out"] for router in explained(world, call)["routers"] if router["name"] == "mock")

    total = {"[ Mocked": of_mock({"method": "m", "attachments": {"invocation.need.mock": "true"}}),
             "[ Normal": of_mock({"method": "m"}), "MockInvokersSelector": len(world.rows)}
    names = []
    for line in text.splitlines():
        for head, count in total.items():
            if line.startswith(head):
                same(int(re.search(r"Total: (\d+)", line).group(1)), count, head)
        if line.split(" ")[0] in ROUTERS:
            names.append(ROUTERS[line.split(" ")[0]])
    # The application's own rule has a router when the consumer names one; affinity came later.
    same([name for name in status if not name.startswith("affinity")], names, "routers")


def sharing(case):
    """Chains share no routers: what is built for one service never decides for another."""
    rows = ["dubbo://10.0.0.1:1/s?x=1", "dubbo://10.0.0.2:1/s?x=2"]
    consumers = re.findall(r"consumer://\S+", case["consumer_url"])
    own = []
    with World(Dialect.DUBBO_3, consumers[0], rows) as world:
        chains = [world.chain, byway.Chain(world.engine, consumers[1])]
        chains[1].set_invokers(world.list)
        for number, service in enumerate(("com.foo.A", "com.foo.B"), 1):
            world.set_rule(f"{service}::.condition-router", f"force: true\nconditions: ['=> x={number}']")
        world.call({"method": "m"})
        own = [[tag - 1 for tag in one.tags(world.invocation)] for one in chains]
    same(f"AppScriptStateRouter of {'A' if own == [[0], [1]] else 'B'}", case["sane"]["walk_of_A_ends_in"], "end")


def switch(case):
    """Upstream marks a thread between switch and response; here a service's chain keeps its calls, and no other's."""
    service, over = case["invocation"]["service_key"], False
    with World(Dialect.DUBBO_3, f"consumer://127.0.0.1/{service}", []) as world:
        other = byway.Chain(world.engine, "consumer://127.0.0.1/Another")
        for step in case["steps"]:
            word, _, key = step.partition(" ")
            if word in ("enable", "disable"):
                same(key, service, "service")
                world.chain.keep_recent(word == "enable")
            else:
                over = True
        world.call({"method": "call"})

        def kept():
            return [len(json.loads(one.recent(json=True))) for one in (world.chain, other)]

        def printed(one):
            before = kept()
            one.tags(world.invocation)
            return kept() != before

        first = printed(world.chain)
        same(printed(other) if over else first, case["expect"]["need_print"], "kept")


# --- sources ---


def configured(matcher, address):
    """Whether an override with this match is in force for a consumer at this address: it takes the provider away."""
    override = {"configVersion": "v3.0", "scope": "service", "key": "S", "enabled": True, "configs": [
        {"side": "consumer", "match": {"address": matcher}, "parameters": {"disabled": "true"}}]}
    with World(Dialect.DUBBO_3, f"consumer://{address}/S", []) as world:
        source = byway.Source.memory(world.engine)
        source.put("S/providers", "dubbo://10.0.0.1:1/S")
        source.put("S::.configurators", shown(override))
        need(world.chain.bind(source, 30), "the first state does not come")
        world.call({"method": "m"})
        return not world.routed()


def address_match(case):
    address, matcher = case.get("input") or "", case["matcher"]
    if not re.fullmatch(r"[0-9.]*", address) or address == "0.0.0.0":
        raise Skips("a consumer has one address, and no text in its place")
    same(configured(matcher, address), case["expect"], "in force")


def directory(case):
    """An empty list is a state of a service, and no error."""
    if "expect_byway" not in case:
        raise Skips("whoever calls knows who cannot be reached, and says so at a pick")
    with World(Dialect.BYWAY, case["consumer_url"], case["invokers"]) as world:
        world.call({"method": "m"})
        same({"list": ids_of(case["invokers"], world.routed())}, case["expect_byway"], "list")


# --- what a text is read as ---


def mesh_parse(case):
    expect, text = case["expect"], case["rule"]
    found = json.loads(byway.rule_check(text, byway.RuleKind.MESH, dialect=Dialect.DUBBO_3, json=True))
    need(not found["refused"], f"{found}")
    # Which subset a label leads to shows the routes; without its other half a text has no subsets.
    routes = expect.get("routedetail")
    if routes is None:
        same([kind for kind in re.findall(r"^kind: (\w+)", text, re.M)], expect["documents"], "documents")
        routes = [{"match": [{"sourceLabels": {"trafficLabel": label}}], "route": [{"destination": {"subset": subset}}]}
                  for label, subset in re.findall(r"trafficLabel: ([\w-]+)\}\n.*\n.*\n.*subset: ([\w-]+)", text)]
    else:
        text = "kind: DestinationRule\nmetadata: {name: demo-route}\nspec:\n  host: demo\n  subsets:\n" + "".join(
            f"  - {{name: {subset}, labels: {{at: {subset}}}}}\n"
            for subset in ("isolation", "testing-trunk", "testing")) + "---\n" + text
    labels = {"isolation": "env-sign=xxx&tag1=hello&at=isolation", "testing-trunk": "env-sign=yyy&at=testing-trunk",
              "testing": "env-sign=zzz&at=testing"}
    names = list(labels)
    need(bool(routes), "no routes")
    for route in routes:
        wanted = route["route"][0]["destination"]["subset"]
        label = route["match"][0]["sourceLabels"]["trafficLabel"] if route.get("match") else "of-nobody"
        for service in ("ccc", "ccd"):
            consumer = f"consumer://10.0.0.1/{service}?application=c&trafficLabel={label}"
            rows = [f"dubbo://10.0.0.{n}:1/{service}?remote.application=demo&{labels[name]}" for n, name in enumerate(names, 1)]
            with World(Dialect.DUBBO_3, consumer, rows) as world:
                refused = world.set_rule("demo.MESHAPPRULE", text)
                need(refused is None, f"{refused}")
                world.call({"method": "m"})
                got = [names[row] for row in world.routed()]
            if service == "ccc":
                same(got, [wanted], label)


KINDS = {
    ("dubbo_chain", "bitlist"): bit_list,
    ("dubbo_chain", "chain"): chain,
    ("dubbo_chain", "chain-cache"): cache,
    ("dubbo_chain", "chain-snapshot"): snapshot,
    ("dubbo_chain", "chain-sharing"): sharing,
    ("dubbo_chain", "snapshot-switch"): switch,
    ("dubbo_chain", "address_match"): address_match,
    ("dubbo_chain", "directory"): directory,
    ("dubbo_chain", "mesh-parse"): mesh_parse,
}
