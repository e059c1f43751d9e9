"""okhttp.jsonl: hosts, addresses, route texts, and the decisions after a failure."""
import byway
from byway import Phase, Tell, _abi, failure as failures
from case import ip_text, need, same, shown
from okhttp_words import address_of, engine_with, failure, line, proxy_of

COMPAT = byway.Compat.OKHTTP_5


def canonical_host(case):
    try:
        got = byway.host_canonical(case["input"], COMPAT)
    except byway.BywayError:
        got = None
    same(got, case["expect"]["value"], "host")


def looks_like_ip(case):
    same(byway.host_is_literal(case["input"], COMPAT), case["expect"]["value"], "literal")


def planned(ips, routing_flags=0):
    """Hops of every DIRECT route to a host with these addresses, in the order to try them."""
    with engine_with(byway.Compat.BYWAY, routing_flags) as engine:
        address = byway.Address(engine, "order.example", 80, dns=byway.Dns(engine, lambda host: ips))
        return [ip_text(hop.ip) for hop in byway.plan(address)]


def inet_order(case):
    want = [byway.ip_text(ip) for ip in case["expect"]["value"]]
    try:
        got = planned(case["input"])
    except byway.BywayError as error:
        need(error.code == _abi.BYWAY_E_EMPTY_ANSWER or not want, f"plan: {error}")
        got = []
    same(got, want, "order")


def socket_host(case):
    proxy = proxy_of({"type": "HTTP", **case["proxy_socket"]})
    same(ip_text(proxy.ip) or proxy.host, case["expect"]["value"], "host")


def route_to_string(case):
    with engine_with(COMPAT) as engine:
        address, route = address_of(engine, case["address"]), case["route"]
        made = byway.Route(address, proxy_of(route["proxy"]), route["socket"].get("ip"), route["socket"].get("port") or 0)
        same(str(made), case["expect"]["value"], "text")


def equality_address(engine, base, change, dns, choosers):
    """OkHttp's objects become objects, numbers and one opaque TLS identity; an "other" one becomes another."""
    either = lambda name: (change if name in change else base).get(name)
    identity = "".join(
        f"{part}={shown(change.get(part))};" for part in ("tls", "verifier", "pinner", "connection_specs", "specs"))
    explicit = change.get("proxy")
    if isinstance(explicit, dict):
        proxy = proxy_of(explicit)
    else:
        proxy = byway.Proxy(byway.ProxyKind.HTTP, "other", 1) if explicit not in (None, "DIRECT") else None
    return byway.Address(
        engine, either("host") or "", either("port") or 0, scheme=either("scheme") or "",
        tls_identity_bytes=identity.encode(), dns=dns["dns" in change], proxy_selector=choosers["selector" in change],
        authenticator=2 if {"authenticator", "proxy_authenticator"} & change.keys() else 1,
        protocols=change["protocols"] if isinstance(change.get("protocols"), list) else ["h2", "http/1.1"],
        direct=explicit == "DIRECT", proxy=proxy,
    )


def address_equality(case):
    with engine_with(COMPAT) as engine:
        dns = [byway.Dns(engine, lambda host: []) for _ in range(2)]
        choosers = [byway.ProxySelector(engine, lambda uri: [None]) for _ in range(2)]
        a = equality_address(engine, case["base"], {}, dns, choosers)
        b = equality_address(engine, case["base"], case["change"], dns, choosers)
        got = {"equal": a == b, "equal_non_host": a.equal_non_host(b),
               "same_hash": None if case["expect"].get("same_hash") is None else hash(a) == hash(b)}
        same(got, case["expect"], "equality")


def address_to_string(case):
    with engine_with(COMPAT) as engine:
        same(str(address_of(engine, case["address"], case.get("explicit_proxy"))), case["expect"]["value"], "text")


def recover_decision(case):
    phase = {"connect": Phase.TCP, "tls": Phase.TLS}.get(case.get("phase"), Phase.EXCHANGE)
    with engine_with(line(case)) as engine:
        got = engine.recover(
            failure(case.get("failure")), phase, retry_enabled=case.get("retry_enabled", True),
            one_shot=case.get("one_shot_body", False), sent=phase == Phase.EXCHANGE,
            exchange_failed=case.get("exchange_failed", True), more_routes=case.get("more_routes", True),
        )
    same(got == byway.Recovery.RETRY, case["expect"]["retry"], "retry")


def tls_retry_decision(case):
    same(failure(case.get("failure")).retry_tls, case["expect"]["retry"], "retry")


def track_failure(case):
    told = failures.track(
        failure(case["failure"]) if case.get("failure") else None, successes=case.get("success_count") or 0,
        refused_before=case.get("refused_before") or 0, multiplexed=bool(case.get("multiplexed")),
        call_canceled=bool(case.get("call_canceled")), proxied=case.get("via") != "DIRECT",
    )
    got = {"no_new_exchanges": bool(told & Tell.NO_NEW_EXCHANGES), "route_failure_count": int(bool(told & Tell.ROUTE_FAILURE)),
           "db_failed": bool(told & Tell.DATABASE), "selector_notified": bool(told & Tell.PROXY_SELECTOR)}
    same(got, case["expect"], "track")


PHASES = {"dns": Phase.DNS, "planning": Phase.DNS, "tunnel": Phase.TUNNEL, "connect": Phase.TUNNEL, "tls": Phase.TLS}
BITS = {"listener_connect_failed": Tell.FAILED_EVENT, "selector_notified": Tell.PROXY_SELECTOR,
        "db_failed": Tell.DATABASE, "next_route_tried": Tell.NEXT_ROUTE}


def connect_failure_report(case):
    for compat, expect in ((byway.Compat.OKHTTP_5, case["expect"]),
                           (byway.Compat.OKHTTP_3, case["expect"].get("v3131") or {})):
        told = failures.report(
            failure(case.get("failure")), PHASES.get(case.get("phase"), Phase.TCP), compat=compat,
            proxy_kind=byway.ProxyKind.DIRECT if case.get("via") == "DIRECT" else byway.ProxyKind.HTTP,
            from_selector=case.get("proxy_from") == "selector", retry_enabled=case.get("retry_enabled", True),
        )
        for name, bit in BITS.items():
            if expect.get(name) is not None:
                same(bool(told & bit), expect[name], f"{name} under {compat.name}")


KINDS = {
    ("okhttp", run.__name__): run
    for run in (canonical_host, looks_like_ip, inet_order, socket_host, route_to_string, address_equality,
                address_to_string, recover_decision, tls_retry_decision, track_failure, connect_failure_report)
}
