"""Proxies that failed: where they stand in later lists. Failures and successes are reported for the routes of a selector."""
import byway
from byway import ProxyKind, ProxySelector
from case import Skips, same


def proxy_of(text):
    """`http host:port`, or None for `direct`."""
    kind, _, place = text.partition(" ")
    if not place:
        return None
    host, _, port = place.rpartition(":")
    return byway.Proxy(ProxyKind[kind.upper()], host, int(port))


def entry_of(proxy):
    """As these cases write an entry."""
    return "direct" if proxy is None else f"{proxy.kind.name.lower()} {proxy.host}:{proxy.port}"


def fixed(engine, entries):
    return ProxySelector.fixed(engine, map(proxy_of, entries))


def connection(engine, entries, failing, standing):
    """One connection over a list: these entries fail when their turn comes, this one stands."""
    dns = byway.Dns(engine, lambda host: ["192.0.2.1"])
    address = byway.Address(engine, "target.test", 80, proxy_selector=fixed(engine, entries), dns=dns)
    for selection in byway.Selector(address):
        for route in selection:
            entry = entry_of(route.proxy)
            if entry in failing:
                engine.connect_failed(route, byway.Failure.REFUSED, os_errno=111)
            elif entry == standing:
                engine.connected(route)
                return


def retry(case):
    given, expect = case["input"], case["expect"]
    if "fallbacks" in given:
        raise Skips("marks of different length in one engine")
    # byway has no "never while bad" flag: a list without such an entry is what the flag asks for.
    entries = [entry for entry in given["list"] if entry not in (given.get("bad_never_while_bad") or ())]
    fallback, events = given.get("fallback"), given.get("events") or []
    also = (fallback or {}).get("also_bad") or []
    # Nobody tries what stands behind the entry that works.
    if fallback and len(entries) > 2 and entries[-1] in also and entries[0] != "direct":
        raise Skips("an entry behind the one that works fails")
    at = given.get("at_s") or 0
    now = [at]
    delay = (fallback.get("delay_s") or 0) if fallback else None
    with byway.Engine(monotonic=lambda: int(now[0] * 10**9), bad_proxy=delay) as engine:
        for bad in given.get("bad") or ():
            connection(engine, [bad, "http works.test:1"], [bad], "http works.test:1")
        if fallback:
            # Chromium's step "the first entry failed, go on behind it": it and those named beside it, then the first left.
            failing = [*also, entries[0]]
            connection(engine, entries, failing, next((entry for entry in entries if entry not in failing), None))
        if events:
            words = [event.partition(" ") for event in events]
            failing = [entry for word, _, entry in words if word == "fail"]
            standing = [entry for word, _, entry in words if word == "ok"]
            connection(engine, entries, failing, standing[-1] if standing else None)
        if "network_changed" in events:
            engine.network_changed()
        now[0] = at if given.get("ask_at_s") is None else given["ask_at_s"]
        order = engine.proxies_for_url(fixed(engine, entries), "http://target.test/", timeout=30)
        marked = engine.bad_proxies()
    if "order" in expect:
        same([entry_of(proxy) for proxy in order], expect["order"], "order")
    if "marked" in expect:
        got = [f"{one['kind']} {one['host']}:{one['port']}" for one in marked]
        same(sorted(got), sorted(expect["marked"]), "marked")
    if "delay_s" in expect:
        same(marked[0]["remaining_ms"] if marked else 0, expect["delay_s"] * 1000, "delay")


def wpad_names(case):
    same(byway.wpad_names(case["input"]["local_domain"]), case["expect"]["names"], "names")


KINDS = {("proxy", "retry"): retry, ("bugs", "wpad_names"): wpad_names}
