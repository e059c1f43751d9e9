"""Condition, affinity, tag and mock cases: rules set by key or by URL, seen through what a chain routes."""
import json
import math
from urllib.parse import quote_from_bytes

import byway
from byway import Dialect, RuleKind, _abi
from case import Fails, Skips, equal, need, same, shown
from worlds import World, dialect_named, dialect_of, ids_of, sane_of

ALONE = "router=-default,"
NO_METHOD = "a rule about methods, a call without one"


def consumer_with(consumer, routers):
    """The consumer of a case, with a `router=` of its own when the case has none."""
    if not consumer or "://" not in consumer:
        consumer = "consumer://127.0.0.1/com.demo.Service"
    if routers is None or "router=" in consumer:
        return consumer
    return f"{consumer}{'&' if '?' in consumer else '?'}{routers}"


def world_for(dialect, consumer, routers, rows, extra=None, unless=""):
    return World(dialect, consumer_with(consumer, routers), rows, extra, unless)


def static_rule(rule, parameters):
    """`condition://` with a rule and the parameters of a case."""
    url = f"condition://0.0.0.0/S?rule={quote_from_bytes(rule.encode(), safe='')}"
    for key, value in (parameters or {}).items():
        url += f"&{key}={value if isinstance(value, str) else shown(value)}"
    return url


def error_of(expect):
    return expect.get("error") if isinstance(expect, dict) else None


def crash(expect):
    """Upstream dies of it."""
    return (error_of(expect) or {}).get("code") == "panic"


def string_as(case, dialect, expect):
    invokers, rule = case.get("invokers") or [], case.get("rule") or ""
    if invokers and invokers[0] == "":
        raise Skips("a list of empty URLs is refused whole")
    with world_for(dialect, case.get("consumer_url"), ALONE + "condition", invokers) as world:
        refused = None
        try:
            world.chain.set_rule_urls([static_rule(rule, case.get("params"))])
        except byway.BywayError as error:
            refused = error
        if error_of(expect) is not None and not crash(expect):
            need(refused is not None and refused.code == _abi.BYWAY_E_RULE and refused.causes
                 and refused.causes[0].line > 0, f"{refused!r}, want a refusal with its place")
            return
        need(refused is None, f"refused: {refused}")
        if not world.call(case.get("invocation")) and "method" in rule:
            raise Skips(NO_METHOD)
        rows = world.routed()
        if crash(expect):
            need(any(equal(rows, other) for other in case["expect_by_impl"].values()), "an answer that nobody gives")
        else:
            same(rows, expect, "rows")


def when_holds(rule, dialect, consumer, call):
    """Whether the left side of a rule holds: with a right side that nobody meets and force, nothing is left."""
    left = rule.partition("=>")[0] if "=>" in rule else ""
    with world_for(dialect, consumer, ALONE + "condition", ["dubbo://1.1.1.1:1/S"]) as world:
        world.chain.set_rule_urls([static_rule(f"{left} => nowhere=1", {"force": True})])
        world.call(call)
        return not world.routed()


def when_as(case, dialect, expect):
    call, rule = case.get("invocation") or {}, case.get("rule") or ""
    if not isinstance(call.get("method"), str) and "method" in rule:
        raise Skips(NO_METHOD)
    same(when_holds(rule, dialect, case.get("consumer_url"), call), expect, "holds")


def parameter(url, name):
    """A part of a URL's query; empty when it is not there."""
    pairs = (part.partition("=") for part in url.partition("?")[2].split("&"))
    return next((value for key, _, value in pairs if key == name), "")


def interface_of(url):
    named = parameter(url, "interface")
    if named or "://" not in url:
        return named
    return url.partition("://")[2].partition("/")[2].partition("?")[0]


def key_of(dialect, kind, application, url):
    if application is not None:
        return byway.rule_key(application=application, kind=kind, dialect=dialect)
    return byway.rule_key(interface_of(url), version=parameter(url, "version"), group=parameter(url, "group"),
                          kind=kind, dialect=dialect)


def shares(world, case, outcomes, share):
    """Shares of a weighted draw: within five deviations."""
    repeat, counts = int(case.get("repeat", 20000)), [0] * len(outcomes)
    for _ in range(repeat):
        rows = world.routed()
        found = next((i for i, outcome in enumerate(outcomes) if outcome["indices"] == rows), None)
        need(found is not None, "rows that are none of the outcomes")
        counts[found] += 1
    for count, outcome in zip(counts, outcomes):
        p = outcome.get(share) or 0
        slack = 5 * math.sqrt(repeat * p * (1 - p)) + 1e-6 * repeat
        need(abs(count - p * repeat) <= slack, f"{count} of {repeat}, want a share of {p}")


def events_as(case, dialect, kind, expect):
    consumer = case.get("consumer_url") or "consumer://127.0.0.1/com.foo.BarService"
    of_provider = case.get("router") == "provider-app"
    if of_provider and dialect == Dialect.DUBBO_2_7:
        raise Skips("2.7 has no such router")
    with world_for(dialect, consumer, None, case["invokers"]) as world:
        key = key_of(dialect, kind, "demo-provider" if of_provider else None, consumer)
        refused = None
        for event in case["events"]:
            if event.get("type") == "DELETED":
                refused = world.remove_rule(key)
            else:
                refused = world.set_rule(key, event.get("content") or "")
        about_methods = any("method" in (event.get("content") or "") for event in case["events"])
        if not world.call(case.get("invocation")) and about_methods:
            raise Skips(NO_METHOD)
        if isinstance(expect, dict) and "outcomes" in expect:
            shares(world, case, expect["outcomes"], "p_ideal" if dialect == Dialect.BYWAY else "p_dubbo")
        elif crash(expect):
            need(refused is not None and len(world.routed()) == len(world.rows), "a text upstream dies of is taken")
        else:
            same(world.routed(), expect, "rows")


def rule_key_as(case, dialect, expect):
    same(key_of(dialect, RuleKind.CONDITION, None, case["url"]), f"{expect}.condition-router", "key")


ROUTERS = {"AddressInvokersSelector": "address", "AppRouter": "app", "ServiceRouter": "service", "TagRouter": "tag",
           "MockInvokersSelector": "mock"}
IMPLEMENTATIONS = [("dubbo-3.2", Dialect.DUBBO_3), ("dubbo-3.3", Dialect.DUBBO_3), ("dubbo-2.7.8", Dialect.DUBBO_2_7),
                   ("dubbo-go", Dialect.DUBBO_GO)]


def chain_order(case):
    """The built-in routers of the dialect stand in the status in the order the case wants."""
    implementation = case.get("impl") or ""
    dialect = next((dialect for name, dialect in IMPLEMENTATIONS if implementation.startswith(name)), None)
    if dialect is None:
        raise Skips("no dialect of byway")
    with World(dialect, "consumer://127.0.0.1/S?application=a&router=default,address", []) as world:
        names = [router["name"] for router in world.chain.status()["routers"]]
    begin = 0
    for name in case["expect"]:
        name = ROUTERS.get(name, name)
        if name in names[begin:]:
            begin = names.index(name, begin) + 1
        else:
            need(name not in names, f"{name} comes too early")


def form_as(case, name, expect):
    form, dialect = case.get("form") or "", dialect_named(name)
    if dialect is None:
        if "/StateRouter" in name:
            raise Skips("the bare condition")
        raise Fails(f"no dialect for {name}")
    if form == "string":
        string_as(case, dialect, expect)
    elif form == "when":
        when_as(case, dialect, expect)
    elif form == "events":
        events_as(case, dialect, RuleKind.CONDITION, expect)
    elif form == "affinity":
        events_as(case, dialect, RuleKind.AFFINITY, expect)
    elif form == "rulekey":
        rule_key_as(case, dialect, expect)
    elif form in ("glob", "range"):
        same(fits(case, dialect), expect, "fits")
    elif form == "parse":
        parse_as(case, dialect, expect)
    else:
        raise Skips(f"{form} is below the boundary")


def fits(case, dialect):
    """Whether a pattern fits a value: as a rule's right side, which sees the consumer's URL, or else as its left side."""
    pattern, value, consumer = case["pattern"], case["value"], case.get("param_url")
    if pattern == "" or value is None:
        raise Skips("a rule cannot say an empty pattern")
    if value == "":
        raise Skips("an empty parameter is none")
    if pattern.startswith("$") and consumer is None:
        raise Skips("a reference always has a consumer")
    if consumer is not None or case.get("side") == "then":
        with world_for(dialect, consumer, ALONE + "condition", [f"dubbo://1.1.1.1:1/S?x={value}"]) as world:
            world.chain.set_rule_urls([static_rule(f"=> x={pattern}", {"force": True})])
            world.call({"method": "m"})
            return bool(world.routed())
    return when_holds(f"x={pattern} =>", dialect, f"consumer://1.1.1.1/S?x={value}", {"method": "m"})


def parse_as(case, dialect, expect):
    """Refused with a place; or else in force where upstream's rule is valid and enabled, and strict where it is forced:
    of that shows what a left side that holds leaves when nobody meets the right one."""
    text = case["rule"]
    found = json.loads(byway.rule_check(text, dialect=dialect, json=True))
    consumer = "consumer://1.1.1.1/S?a=b&region=beijing&version=v1&tag=tag1"
    with world_for(dialect, consumer, None, ["dubbo://1.1.1.1:1/S"]) as world:
        key = key_of(dialect, RuleKind.CONDITION, None, consumer)
        refused = world.set_rule(key, text)
        same(refused is not None, found["refused"], "refused as the check says")
        if expect.get("error") is not None:
            need(found["refused"], f"an error was expected, {found}")
            need(all(one["line"] > 0 and one["message"] for one in found["problems"]), f"{found}")
            return
        need(refused is None, f"refused: {refused}")
        router = next(router for router in world.chain.status()["routers"] if router.get("key") == key)
        same(router["in_force"], expect.get("valid", True) is True and expect.get("enabled", True) is True
             and ("rule" not in expect or expect["rule"] is not None), "in force")
        world.call({"method": "m"})
        left = len(world.routed())
    if router["in_force"] and expect.get("conditions") is not None and strict(expect["conditions"]):
        same(left, 0 if expect["force"] else 1, "left")


def strict(conditions):
    """Whether the first one is in the way of every provider here."""
    first = conditions[0]
    return first == "a=b => c=d" if isinstance(first, str) else False


def condition(case):
    if case.get("form") == "chain-order":
        chain_order(case)
        return
    by = case.get("expect_by_impl") or {}
    if isinstance(by.get("all"), list):
        runs = [(name, case["expect"]) for name in by["all"]]
    elif by:
        runs = list(by.items())
    else:
        runs = [("dubbo-3.3", case.get("expect"))]
    if case.get("expect_byway") is not None:
        runs.append(("byway", case["expect_byway"]))
    ran, skipped = False, None
    for name, expect in runs:
        try:
            form_as(case, name, expect)
            ran = True
        except Skips as why:
            skipped = why
        except Fails as why:
            raise Fails(f"[{name}] {why}") from why
    if not ran:
        raise skipped


# --- tags ---

APPLICATION = "remote.application=of-the-case"


def tag_key(invokers):
    url = (invokers[0] if isinstance(invokers[0], str) else invokers[0]["url"]) if invokers else ""
    application = parameter(url, "remote.application") or parameter(url, "application") or "of-the-case"
    return f"{application}.tag-router"


def tag_world(dialect, consumer, invokers):
    return world_for(dialect, consumer, ALONE + "tag", invokers, APPLICATION, "application=")


def tag_as(case, dialect, expect):
    wanted = case.get("route_input")
    current = not isinstance(wanted, list) or case.get("chain_generation") == case.get("cache_generation")
    picked = [row for row in case["invokers"] if current or row.get("id") in wanted]
    with tag_world(dialect, case.get("consumer_url"), picked) as world:
        if isinstance(case.get("rule"), str):
            world.set_rule(tag_key(picked), case["rule"])
        call = dict(case.get("invocation") or {})
        if not isinstance(call.get("method"), str):
            call["method"] = "m"
        world.call(call)
        rows = world.routed()
        if isinstance(expect, dict) and "count" in expect:
            same(len(rows), expect["count"], "count")
        else:
            same(ids_of(picked, rows), expect, "ids")


def tag(case):
    tag_as(case, dialect_of(case), case["expect"])
    if sane_of(case) is not None:
        tag_as(case, Dialect.BYWAY, sane_of(case))


def tag_lifecycle(case):
    invokers = case["invokers"]
    with tag_world(dialect_of(case), case.get("consumer_url"), invokers) as world:
        world.call(case.get("invocation"))
        for step in case["expect"]:
            event, key = step["event"], tag_key(invokers)
            begin, end = event.find("'"), event.rfind("'")
            text = event[begin + 1:end] if 0 <= begin < end else case.get("rule") or ""
            if event.startswith("DELETED"):
                world.remove_rule(key)
            else:
                world.set_rule(key, text)
            same(ids_of(invokers, world.routed()), step["route"], event)


def level(addresses, selector, force, dialect):
    """Level search, seen through routing: one provider per address, and the caller insisting or not. Gives the addresses
    found and the group of the first."""
    rule = {"tags": [{"name": name, "addresses": group} for name, group in addresses.items()]}
    places = [(name, address) for name, group in addresses.items() for address in group]
    with tag_world(dialect, "consumer://10.0.1.1/s", [f"dubbo://{address}/s" for _, address in places]) as world:
        refused = world.set_rule("of-the-case.tag-router", shown(rule))
        need(refused is None, f"the rule is refused: {refused}")
        world.call({"method": "m", "attachments": {"dubbo.tag": selector, "dubbo.force.tag": "true" if force else "false"}})
        rows = world.routed()
    return [places[row][1] for row in rows], places[rows[0]][0] if rows else None


def tag_level(case):
    expect = case["expect"]
    found, name = level(case["tag_addresses"], case["selector"], case.get("force") is True, dialect_of(case))
    if found or expect["addresses"] is not None:
        same(found, expect["addresses"], case["selector"])
    if "matched_name" in expect:
        same(name or "", expect["matched_name"] or "", "name")


def tag_levels_reported(case):
    given = case["input"]
    for selector, want in zip(given["selectors"], case["expect"]["addresses"]):
        found, _ = level(given["tag_addresses"], selector, given.get("force") is True, Dialect.BYWAY)
        if found or want is not None:
            same(found, want, selector)


def tag_reported_as(given, dialect, want):
    consumer = "consumer://10.0.1.1/s"
    if isinstance(given.get("consumer_tag"), str):
        consumer += f"?dubbo.tag={given['consumer_tag']}"
    with tag_world(dialect, consumer, given["invokers"]) as world:
        if isinstance(given.get("rule"), str):
            world.set_rule(tag_key(given["invokers"]), given["rule"])
        attachments = {}
        for name, key in (("tag", "dubbo.tag"), ("force_tag", "dubbo.force.tag")):
            if given.get(name) is not None:
                attachments[key] = given[name] if isinstance(given[name], str) else shown(given[name])
        world.call({"method": "m", "attachments": attachments})
        for _ in range(int(given.get("calls", 1))):
            same(world.routed(), want, "rows")


def tag_reported(case):
    tag_reported_as(case["input"], Dialect.BYWAY, case["expect"]["kept"])
    if case["expect"].get("compat_dubbo_go") is not None:
        tag_reported_as(case["input"], Dialect.DUBBO_GO, case["expect"]["compat_dubbo_go"])


# --- mock selector, plain chains ---


def routed_as(case, dialect, routers, expect):
    with world_for(dialect, case.get("consumer_url"), routers, case["invokers"]) as world:
        world.call({"method": "m", **{k: v for k, v in (case.get("invocation") or {}).items() if v is not None}})
        same(ids_of(case["invokers"], world.routed()), expect, "ids")


def mock(case):
    expect = case["expect"]
    if isinstance(expect, dict):
        for name, want in expect.items():
            dialect = Dialect.DUBBO_2_7 if name == "java_2_7" else Dialect.DUBBO_3
            routed_as(case, dialect, ALONE + "mock", want or [])
        return
    # dubbo-go has no mock selector.
    for dialect in (Dialect.BYWAY, Dialect.DUBBO_3, Dialect.DUBBO_2_7):
        routed_as(case, dialect, ALONE + "mock", expect)


# --- reports ---


def named(call):
    """A call with a method."""
    return call if isinstance(call.get("method"), str) else {**call, "method": "m"}


def condition_route(case):
    given = case["input"]
    call = given["invocation"] if isinstance(given.get("invocation"), dict) else given
    string_as({"rule": given.get("rule"), "consumer_url": given.get("consumer") or "consumer://10.9.9.9/s",
               "params": {"force": given.get("force") is True}, "invocation": named(call),
               "invokers": given["invokers"]}, Dialect.BYWAY, case["expect"]["kept"])


def condition_when(case):
    given = case["input"]
    rules = given["rules"] if isinstance(given.get("rules"), list) else [given["rule"]]
    if isinstance(given.get("invocations"), list):
        calls = given["invocations"]
    else:
        calls = [given["invocation"] if isinstance(given.get("invocation"), dict) else given]
    consumer = given.get("consumer") or "consumer://10.9.9.9/s"
    matched = [when_holds(rule, Dialect.BYWAY, consumer, named(call)) for rule in rules for call in calls]
    same(matched, case["expect"]["matched"], "matched")


def rule_texts(case):
    key, before = "S::.condition-router", "conditions: ['=> region=a']\nforce: true"
    for text, want in zip(case["input"]["texts"], case["expect"]["result"]):
        with World(Dialect.BYWAY, "consumer://1.1.1.1/S", ["dubbo://1.1.1.1:1/S?region=b"]) as world:
            world.set_rule(key, before)
            refused = world.set_rule(key, text)
            world.call({"method": "m"})
            left = len(world.routed())
            if want == "delete":
                good = refused is None and left == 1
            elif want in ("error", "decide"):
                good = refused is not None and refused.line > 0 and left == 0
            else:
                good = refused is None
            need(good, f"{text!r}: {refused!r}, {left} left, want {want}")


def affinity_reported(case):
    given, expect = case["input"], case["expect"]
    consumer = given.get("consumer") or "consumer://10.9.9.9/s"
    wanted = [(Dialect.BYWAY, expect["kept"])]
    if expect.get("compat_dubbo_go") is not None:
        wanted.append((Dialect.DUBBO_GO, expect["compat_dubbo_go"]))
    for dialect, want in wanted:
        with World(dialect, consumer, given["invokers"]) as world:
            text = (f"configVersion: v3.1\nenabled: true\n"
                    f"affinityAware: {{key: {given.get('key') or ''}, ratio: {shown(given.get('ratio'))}}}\n")
            refused = world.set_rule(key_of(dialect, RuleKind.AFFINITY, None, consumer), text)
            if dialect == Dialect.BYWAY:
                need((refused is not None) == isinstance(expect.get("events"), list), f"the rule: {refused}")
            world.call({"method": "m"})
            same(world.routed(), want, "rows")


KINDS = {
    ("dubbo_condition", "condition"): condition,
    ("dubbo_chain", "tag"): tag,
    ("dubbo_chain", "tag-lifecycle"): tag_lifecycle,
    ("dubbo_chain", "tag-level"): tag_level,
    ("dubbo_chain", "mock"): mock,
    ("bugs", "tag_route"): tag_reported,
    ("bugs", "tag_level"): tag_levels_reported,
    ("bugs", "condition_route"): condition_route,
    ("bugs", "condition_when"): condition_when,
    ("bugs", "condition_when_list"): condition_when,
    ("bugs", "rule_parse_list"): rule_texts,
    ("bugs", "affinity"): affinity_reported,
}
