"""Mesh rules and their matchers. A matcher is shown by a rule that uses it: the call gets the first of two providers if it
fits, both if it does not."""
import json
import re

import byway
from byway import Dialect, RuleKind
from case import Skips, need, same, shown
from worlds import World, dialect_of, ids_of, sane_of

KEY = "app1.MESHAPPRULE"
CONSUMER = "consumer://10.1.1.1/S"
TRACES = "tracing contexts come from inside the host, of which rules from here see attachments"
RUNS = 10000


def rule_of(subsets, detail):
    """Two documents: subsets, and the routes to them."""
    destination = {"kind": "DestinationRule", "metadata": {"name": "x"}, "spec": {"subsets": subsets}}
    service = {"kind": "VirtualService", "metadata": {"name": "x"}, "spec": {"dubbo": [{"routedetail": [detail]}]}}
    return f"{shown(destination)}\n---\n{shown(service)}\n"


def route_to(subset, blocks=None):
    detail = {"route": [{"destination": {"subset": subset}}]}
    return detail if blocks is None else {**detail, "match": blocks}


def with_labels(url, labels):
    return url + "".join(f"&{key}={value}" for key, value in (labels or {}).items())


def fitting(dialect, consumer, blocks):
    """A world of two providers, and a rule that sends calls that fit one of the blocks to the first."""
    world = World(dialect, consumer, [f"dubbo://10.0.0.{i}:1/S?v={i}&remote.application=app1" for i in (1, 2)])
    refused = world.set_rule(KEY, rule_of([{"name": "one", "labels": {"v": "1"}}], route_to("one", blocks)))
    need(refused is None, f"refused: {refused}")
    world.call({"method": "m"})
    return world


def compare(world, expect):
    """Whether the call was sent to the first provider; or how routing fails."""
    error = expect.get("error") if isinstance(expect, dict) else None
    try:
        fits = len(world.routed()) == 1
    except byway.BywayError as refused:
        need(error is not None and error in f"{refused.name} {refused}", f"{refused}, want {expect}")
        return
    need(error is None, f"want {error}")
    same(fits, expect, "fits")


def matched(dialect, consumer, block, invocation, types, expect):
    with fitting(dialect, consumer, [block]) as world:
        call = invocation or {}
        world.call(call if isinstance(call.get("method"), str) else {**call, "method": "m"}, types)
        compare(world, expect)


def matcher_dialect(case):
    """dubbo-go has the matchers but no mesh router; byway's own reading of them is the same."""
    dialect = dialect_of(case)
    return Dialect.BYWAY if dialect == Dialect.DUBBO_GO else dialect


def argument_match(case, field, kind, matcher):
    """The first argument against a matcher."""
    block = {"method": {"args": [{"index": 0, field: matcher}]}}
    call = {"method": "m", "arguments": [case.get("input")]}
    matched(matcher_dialect(case), CONSUMER, block, call, [kind], case["expect"])


def with_points(value):
    """Numbers written `10.0` in a case are so to Java."""
    if isinstance(value, dict):
        return {key: with_points(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_points(one) for one in value]
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def warned(argument, words):
    """What a text's reader says of a matcher that is written wrongly."""
    said = byway.rule_check(
        "kind: VirtualService\nmetadata: {name: x}\nspec: {dubbo: [{routedetail: [{match: [{method: {args: [{index: 0, "
        f"{argument}}}]}}}}], route: []}}]}}]}}\n", RuleKind.MESH, dialect=Dialect.DUBBO_3)
    need(words in said, f"said {said}")


def double_match(case):
    if isinstance(case.get("rule"), str):
        warned(f"num_value: {{oneof: [{case['rule']}]}}", "'exact: 10' is dropped; write 10.0")
        return
    argument_match(case, "num_value", "java.lang.Double", with_points({"oneof": [case["matcher"]]}))


def list_double_match(case):
    argument_match(case, "num_value", "java.lang.Double", with_points(case["matcher"]))


def bool_match(case):
    if isinstance(case.get("rule"), str):
        warned(f"bool_value: {case['rule']}", "'exact' must be true or false")
        return
    argument_match(case, "bool_value", "boolean", case["matcher"])


def list_bool_match(case):
    argument_match(case, "bool_value", "boolean", case["matcher"]["oneof"][0])


def list_string_match(case):
    argument_match(case, "str_value", "java.lang.String", case["matcher"])


def method_match(case):
    matcher = json.loads(json.dumps(case["matcher"]))
    # Whole numbers of `argc` and `index` stay what they are; those of matchers are Java's doubles.
    for test in matcher.get("args") or ():
        if "num_value" in test:
            test["num_value"] = with_points(test["num_value"])
    call = case.get("invocation") or {}
    matched(Dialect.DUBBO_3, CONSUMER, {"method": matcher}, call, call.get("parameter_types"), case["expect"])


def attachment_match(case):
    if case.get("tracing_context"):
        raise Skips(TRACES)
    matched(Dialect.DUBBO_3, CONSUMER, {"attachments": case["matcher"]}, case.get("invocation"), None, case["expect"])


def match_request(case):
    if case.get("tracing_context"):
        raise Skips(TRACES)
    consumer = with_labels(f"{CONSUMER}?a=b", case.get("source_labels"))
    matched(Dialect.DUBBO_3, consumer, case["matcher"], case.get("invocation"), None, case["expect"])


# --- whole rules ---


def mesh_world(case, dialect, counted=False):
    """A world for a case's consumer, service, providers and rule. Draws give 0 unless they are counted."""
    consumer, call = case.get("consumer_url") or "consumer://h/S", case.get("invocation") or {}
    if call.get("service"):
        head, _, query = consumer.partition("?")
        scheme, _, place = head.partition("://")
        consumer = f"{scheme}://{place.partition('/')[0]}/{call['service']}" + (f"?{query}" if query else "")
    came = case.get("route_input")
    # What an earlier router kept is a list without the others.
    rows = [row for row in case["invokers"] if not isinstance(came, list) or row.get("id") in came]
    world = World(dialect, consumer, rows, random=None if counted else lambda: 0)
    world.call(call if isinstance(call.get("method"), str) else {**call, "method": "m"})
    if isinstance(case.get("rule"), str):
        world.set_rule(f"{case.get('app') or 'app1'}.MESHAPPRULE", case["rule"])
    return world


def mesh_once(case, dialect, expect=None, error=None):
    with mesh_world(case, dialect) as world:
        try:
            rows = world.routed()
        except byway.BywayError as refused:
            need(error is not None and error in f"{refused.name} {refused}", f"{refused}, want {error}")
            return
        need(error is None, f"want {error}")
        if expect is not None:
            same(ids_of(world.rows, rows), expect, "ids")


def mesh_told(case):
    """Upstream's words for people, and ours for the same."""
    message = case["message"]
    with mesh_world(case, Dialect.DUBBO_3) as world:
        said = world.chain.explain(world.invocation)
    if message.startswith("Match App: "):
        for application, subset in re.findall(r"Match App: (\S+) Subset: (\S+)", message):
            need(f"application {application}: VirtualService" in said and f", subset {subset}" in said, f"said {said}")
    elif message.startswith("Empty protection"):
        need("so all stay" in said, f"said {said}")
    else:
        need("standard-mesh-rule" not in said, f"there is a mesh router: {said}")


def mesh_shares(case, dialect, shares, always=None):
    """Shares of each provider over many calls."""
    with mesh_world(case, dialect, counted=True) as world:
        counts = [0] * len(world.rows)
        for _ in range(RUNS):
            for row in world.routed():
                counts[row] += 1
        for row, count in zip(world.rows, counts):
            got, want = count / RUNS, (shares or {}).get(row["id"], 0)
            if always is not None:
                want = got if row["id"] in always and got > 0 else 2 * (row["id"] in always)
            need(abs(got - want) <= 0.015, f"{dialect.name}: {row['id']} gets {got}, want {want}")


def mesh(case):
    expect = case["expect"]
    if isinstance(expect, dict):
        if isinstance(expect.get("error"), str):
            mesh_once(case, Dialect.DUBBO_3, error=re.split(r"[: ]", expect["error"])[0])
            mesh_once(case, Dialect.BYWAY)
        elif isinstance(expect.get("always"), list):
            for dialect in (Dialect.DUBBO_3, Dialect.BYWAY):
                mesh_shares(case, dialect, None, expect["always"])
        else:
            observed = case.get("observed_share")
            mesh_shares(case, Dialect.DUBBO_3, observed if isinstance(observed, dict) else expect.get("observed_share"))
            if isinstance(case.get("sane_share"), dict):
                mesh_shares(case, Dialect.BYWAY, case["sane_share"])
        return
    mesh_once(case, Dialect.DUBBO_3, expect)
    if isinstance(case.get("message"), str):
        mesh_told(case)
    if isinstance(sane_of(case), list):
        mesh_once(case, Dialect.BYWAY, sane_of(case))


def mesh_labels(case):
    rows = [with_labels("dubbo://10.0.0.1:1/S?remote.application=app1", case["invokers"][0].get("params")),
            "dubbo://10.0.0.2:1/S?remote.application=app1"]
    with World(Dialect.DUBBO_3, CONSUMER, rows) as world:
        refused = world.set_rule(KEY, rule_of([{"name": "s", "labels": case["labels"]}], route_to("s")))
        need(refused is None, f"the rule is refused: {refused}")
        world.call({"method": "m"})
        compare(world, case["expect"])


def mesh_cache(case):
    """Members of a subset, by a rule that sends everybody there; all providers means that nobody is in it."""
    expect, total = case["expect"], len(case["invokers"])
    for name, want in expect["subset"].items():
        application, _, subset = name.partition("/")
        with World(Dialect.DUBBO_3, CONSUMER, case["invokers"]) as world:
            for one in case["rules_for"]:
                world.set_rule(f"{one}.MESHAPPRULE", rule_of(case["subsets"], route_to(subset)))
            world.call({"method": "m"})
            rows = world.routed()
        outside = total - len(rows) or total
        same(outside, expect.get("unmatched", -1), "in no subset")
        members = [row for row in rows if f"remote.application={application}" in case["invokers"][row]["url"]]
        same(len(members) if len(rows) < total else 0, want, name)


def mesh_lifecycle(case):
    """In force or not, by the status of a chain that has providers of both applications."""
    rule, names = case["rule"], ("app1", "app2")
    rows = [f"dubbo://10.0.0.{i}:1/S?remote.application=app{i}" for i in (1, 2)]
    with World(Dialect.DUBBO_3, CONSUMER, rows) as world:
        for step in case["expect"]:
            for name in names:
                receives = step.get(f"{name} receives")
                if receives == "DestinationRule only":
                    world.set_rule(f"{name}.MESHAPPRULE", rule.partition("\n---")[0])
                elif receives is not None:
                    world.set_rule(f"{name}.MESHAPPRULE", rule)
                if step.get("clear") == name:
                    world.remove_rule(f"{name}.MESHAPPRULE")
            routers = world.chain.status()["routers"]
            forced = {router.get("key") for router in routers if router.get("in_force")}
            same([name for name in names if f"{name}.MESHAPPRULE" in forced], step["apps_with_rules"], "in force")


def documents_of(text, group):
    """How many documents of a text belong to an extension, by what is said about them; the others are the standard ones,
    unless they are left out."""
    said = byway.rule_check(text, RuleKind.MESH, dialect=Dialect.DUBBO_3)
    if group != "standard":
        return said.count(f"belongs to the extension '{group}'")
    total = 1 + text.count("\n---") if text else 0
    return total - said.count("belongs to the extension ") - said.count("is left out")


def mesh_listener(case):
    steps, known = case["expect"] if isinstance(case["expect"], list) else [case["expect"]], False
    for step in steps:
        text = "" if step.get("receive") == "" else case.get("rule") or ""
        for name, want in step.items():
            group, dot, what = name.partition(".")
            if dot and what == "onRuleChange" and isinstance(want, dict):
                known = True
                same(documents_of(text, group), want.get("docs", -1), name)
            elif dot and what == "clearRule":
                known = True
                same(documents_of(text, group), 0, name)
    if not known:
        raise Skips("counts upstream's listeners")


# --- reports ---


def match_reported(case):
    got = []
    for labels in case["input"]["consumer_labels"]:
        with fitting(Dialect.BYWAY, with_labels(f"{CONSUMER}?a=b", labels), case["input"]["match"]) as world:
            got.append(len(world.routed()) == 1)
    same(got, case["expect"]["matched"], "matched")


def subset_reported(case):
    rows = [with_labels(f"dubbo://10.0.0.{i}:1/S?remote.application=app1", labels)
            for i, labels in enumerate(case["input"]["endpoints"], 1)]
    with World(Dialect.BYWAY, CONSUMER, rows) as world:
        subsets = [{"name": "wanted", "labels": case["input"]["request"]}]
        refused = world.set_rule(KEY, rule_of(subsets, route_to("wanted")))
        need(refused is None, f"the rule is refused: {refused}")
        world.call({"method": "m"})
        same(world.routed(), case["expect"]["kept"], "kept")


def lint_reported(case):
    subsets = [{"name": name} for name in case["input"]["defined_subsets"]]
    detail = {"route": [{"destination": {"subset": name}} for name in case["input"]["route_subsets"]]}
    said = json.loads(byway.rule_check(rule_of(subsets, detail), RuleKind.MESH, json=True))
    messages = (problem["message"] for problem in said["problems"])
    got = [f"unknown_subset:{name}" for message in messages for name in re.findall(r"^unknown subset '([^']*)'", message)]
    same(got, case["expect"]["warnings"], "warnings")


KINDS = {
    ("dubbo_chain", "double_match"): double_match,
    ("dubbo_chain", "bool_match"): bool_match,
    ("dubbo_chain", "list_bool_match"): list_bool_match,
    ("dubbo_chain", "list_double_match"): list_double_match,
    ("dubbo_chain", "list_string_match"): list_string_match,
    ("dubbo_chain", "method_match"): method_match,
    ("dubbo_chain", "attachment_match"): attachment_match,
    ("dubbo_chain", "match_request"): match_request,
    ("dubbo_chain", "mesh"): mesh,
    ("dubbo_chain", "mesh-labels"): mesh_labels,
    ("dubbo_chain", "mesh-cache"): mesh_cache,
    ("dubbo_chain", "mesh-lifecycle"): mesh_lifecycle,
    ("dubbo_chain", "mesh-listener"): mesh_listener,
    ("bugs", "mesh_match"): match_reported,
    ("bugs", "subset"): subset_reported,
    ("bugs", "mesh_lint"): lint_reported,
}
