"""Scripts from URLs, from files and by rule. A script that fails leaves the list, and the status of the chain tells the
error: that is what byway has in place of upstream's exceptions."""
import tempfile
from pathlib import Path
from urllib.parse import quote_from_bytes

import byway
from byway import Dialect
from case import need, same, shown
from worlds import World, dialect_of, ids_of

KEY = "demo-provider.script-router"
GOOD = ('configVersion: v3.0\nkey: demo-provider\ntype: javascript\nenabled: true\n'
        'script: "(function () { return [invokers.get(1)]; })()"\n')
# Scripts that a case only describes.
DESCRIBED = {
    "<Invoker[] holding invokers.get(2)>": "[invokers.get(2)]",
    "<script that calls invokers[i].Invoke(context, invocation)>":
        "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].Invoke(context, invocation);"
        " return invokers; })()",
    "<script that calls GetURL(' Err Here ')>":
        "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].GetURL(' Err Here '); return invokers; })()",
    "<calls every exposed accessor of invoker url and invocation>":
        "(function () { var u = invokers[0].GetURL(); u.GetParam('a', 'b'); u.GetParamBool('a', true);"
        " u.GetParamInt('a', 1); u.GetMethodParam('m', 'a', 'b'); u.GetNonDefaultParam('a'); u.Service();"
        " u.ServiceKey(); u.Group(); u.Version(); u.Address(); u.Key(); u.String(); invokers[0].IsAvailable();"
        " invocation.MethodName(); invocation.ActualMethodName(); invocation.Arguments();"
        " invocation.ParameterValues(); invocation.ParameterTypeNames(); invocation.Attachments();"
        " invocation.GetAttachment('a'); invocation.GetAttachmentWithDefaultValue('a', 'b');"
        " var v = invokers[0].getUrl(); v.getParameters().size(); v.getServiceKey();"
        " v.getMethodParameter('m', 'a', 'b'); invocation.getAttachments().size(); context.getAttachment('a');"
        " context.getUrl().getHost(); return invokers; })()",
}


def providers(case):
    """A case's providers; those without a URL get one each."""
    rows = []
    for number, row in enumerate(case.get("invokers") or ()):
        row = {"id": row} if isinstance(row, str) else row
        rows.append({"id": row.get("id") or "",
                     "url": row.get("url") or f"dubbo://10.0.0.{number}:20880/com.foo.BarService"})
    return rows


def script_world(case, dialect, rows):
    consumer, call = case.get("consumer_url") or "", dict(case.get("invocation") or {})
    if not consumer.startswith("consumer://"):
        # Who is available is the script's to say, not the pick's.
        consumer = "consumer://10.1.1.1/com.foo.BarService?cluster.availablecheck=false"
    world = World(dialect, consumer, rows, "application=demo-provider", "application=")
    # Values that are no text, as their JSON.
    attachments = {key: value if isinstance(value, str) else shown(value)
                   for key, value in (call.get("attachments") or {}).items()}
    call.update(attachments=attachments, method=call["method"] if isinstance(call.get("method"), str) else "m")
    world.call(call)
    return world


def failure(world):
    """Status and message of the error that a script failed with while routing; empty when it did not."""
    failed = [rule["failed"] for rule in world.chain.status().get("static") or () if rule.get("failed") is not None]
    return (failed[-1].get("status") or "", failed[-1].get("message") or "") if failed else ("", "")


def set_url(world, url):
    """The error that refuses a URL, None when it is taken."""
    try:
        world.chain.set_rule_urls([url])
    except byway.BywayError as error:
        return error
    return None


def left(world, case):
    """The rows that may serve the call. Who is available the caller says at a pick: there, the rows that picks give."""
    able = [row for row, one in enumerate(case.get("invokers") or ()) if one.get("available", True)]
    if len(able) == len(case.get("invokers") or ()):
        return world.routed()
    asked = {"balance": byway.Balance.ROUND_ROBIN, "available": (world.list, able)}
    try:
        return sorted({world.chain.pick(world.invocation, **asked).row for _ in range(2 * len(world.rows))})
    except byway.NoInvokerError:
        return []


def compare(world, case, refused):
    """What a static script did with what upstream did."""
    expect = case["expect"]
    error = expect.get("error") if isinstance(expect, dict) else None
    rows = left(world, case)
    status, told = ("", refused.message) if refused is not None else failure(world)
    if isinstance(error, str):
        # The part in front of the colon is Java's class of the error.
        if error.startswith("ClassCastException"):
            fits = "expected a list" in told
        elif error.startswith("interrupted"):
            fits = status == "BYWAY_E_TIMEOUT"
        else:
            fits = ": " in error and error.partition(": ")[2] in told
        need(fits and len(rows) == len(world.rows), f"told {status} {told}, want {error}")
    elif isinstance(error, bool):
        failed = refused is not None or bool(told)
        need(failed == error and len(rows) == len(world.rows), f"told {told}")
    else:
        same(ids_of(world.rows, rows), expect, told or "ids")


def with_url(case, url, rows):
    with script_world(case, Dialect.BYWAY, rows) as world:
        compare(world, case, set_url(world, url))


def static_url(rule, kind=None):
    return f"script://0.0.0.0/S?{'a=b' if kind is None else f'type={kind}'}&rule={quote_from_bytes(rule.encode(), safe='')}"


def script(case):
    rule = case.get("rule") or ""
    rule = DESCRIBED.get(rule, rule)
    # Nobody in the list, nothing to route: a chain would not ask the script.
    rows = providers(case) or [{"id": "i1", "url": "dubbo://10.0.0.1:1/S"}]
    with_url(case, static_url(rule, case.get("script_type")), rows)


def file(case):
    written, rule, expect = case.get("consumer_url") or "", case.get("rule"), case["expect"]
    rows = providers(case) or [{"id": f"i{i}", "url": f"dubbo://10.0.0.{i}:1/S"} for i in (1, 2)]
    with tempfile.TemporaryDirectory(prefix="byway-conform-") as folder:
        url = written
        if rule is not None:
            place, mark, query = written.partition("?")
            path = Path(folder) / place.rpartition("/")[2]
            path.write_text("[invokers.get(0)]" if rule == "<script text>" else rule)
            url = f"file://{path}{mark}{query}"
        if isinstance(expect, list):
            with_url(case, url, rows)
            return
        # What a file is read as shows in what it does.
        with script_world(case, Dialect.BYWAY, rows) as world:
            refused = set_url(world, url)
            if isinstance(expect.get("error"), str):
                need(refused is not None and "No such file" in refused.message, f"told {refused}")
            else:
                need(refused is None, f"refused: {refused}")
                same(len(world.routed()), 1 if rule == "<script text>" else len(rows), "stay")


# --- by rule ---


def script_app(case):
    rows, expect, dialect = providers(case), case["expect"], dialect_of(case)
    # dubbo-go's own dialect has no such router; its rules are read by the default one.
    with script_world(case, Dialect.BYWAY if dialect == Dialect.DUBBO_GO else dialect, rows) as world:
        _, named, rest = rows[0]["url"].partition("application=")
        world.set_rule(f"{rest.partition('&')[0]}.script-router" if named else KEY, case.get("rule") or "")
        kept = world.routed()
        if isinstance(expect, dict) and "count" in expect:
            same(len(kept), expect["count"], "count")
        else:
            same(ids_of(rows, kept), expect, "ids")


EVENTS = {
    "ADDED": GOOD,
    "MODIFIED good": GOOD,
    "MODIFIED enabled: false": GOOD.replace("enabled: true", "enabled: false"),
    "MODIFIED type: nosuch, enabled: true": GOOD.replace("type: javascript", "type: nosuch"),
    "MODIFIED without script": "configVersion: v3.0\nkey: demo-provider\ntype: javascript\n",
    "MODIFIED bad yaml": "script: [",
    "DELETED": None,
    "no rule": None,
}


def lifecycle(case):
    steps = case["expect"]
    if not isinstance(steps, list):
        rows = [{"id": f"i{i}", "url": f"dubbo://10.0.0.{i}:1/S"} for i in (1, 2)]
        with script_world(case, Dialect.DUBBO_3, rows) as world:
            # A removal has no content.
            world.set_rule(KEY, GOOD)
            need(world.remove_rule(KEY) is None, "not removed")
            same(len(world.routed()), len(rows), "filtered")
        return
    with script_world(case, Dialect.DUBBO_3, providers(case)) as world:
        for step in steps:
            event = step["event"]
            if event.startswith("MODIFIED type: nosuch"):
                # Upstream keeps its compiled script for this step.
                world.set_rule(KEY, GOOD)
            if EVENTS[event] is not None:
                world.set_rule(KEY, EVENTS[event])
            elif event == "DELETED":
                world.remove_rule(KEY)
            want = step["sane_route"] if isinstance(step.get("sane_route"), list) else step["route"]
            same(ids_of(world.rows, world.routed()), want, event)


# --- reports ---


def kept_by(given, text):
    rows = providers(given)
    with script_world(given, Dialect.BYWAY, rows) as world:
        set_url(world, static_url(text))
        return ids_of(rows, world.routed())


def reported(case):
    given = case["input"]
    if isinstance(given.get("script"), str):
        got = kept_by(given, given["script"])
    else:
        got = [kept_by(given, text) for text in given["scripts"]]
    same(got, case["expect"]["kept"], "kept")


KINDS = {
    ("dubbo_chain", "script"): script,
    ("dubbo_chain", "file"): file,
    ("dubbo_chain", "script-app"): script_app,
    ("dubbo_chain", "script-app-lifecycle"): lifecycle,
    ("bugs", "script_route"): reported,
    ("bugs", "script_route_list"): reported,
}
if not byway.has_feature("script"):
    KINDS = {}
