"""connect.jsonl order: in which order the addresses of a host are tried; and postpone: how long a route that failed stays
behind the others."""
import byway
from byway import _abi
from case import Fails, Skips, ip_text, same
from okhttp import planned

FAMILIES = {"v4": byway.FirstFamily.V4, "first_address": byway.FirstFamily.FIRST_ADDRESS}


def order(case):
    """By `ip_order` and by the routes to a host with these addresses: whatever of the two can say the case must give it."""
    family = FAMILIES.get(case.get("first_family"), byway.FirstFamily.V6)
    count = case.get("first_family_count", 1)
    interleave, dedup = case.get("interleave", True), case.get("dedup", False)
    # ip_order takes addresses as they are; a resolver's answer takes mapped ones for IPv4.
    only_plan = not interleave or dedup or case.get("unmap", False)
    can_plan = family == byway.FirstFamily.V6 and count == 1
    if case.get("interleave_stage") == "after_postpone":
        raise Skips("no interleaving after the split")
    if "postponed" in case:
        raise Skips("no order of postponed addresses")
    if "rtt_min_ms" in case or "attempts" in case:
        raise Skips("no order by history")
    if only_plan and not can_plan:
        raise Skips("no first family of a plan")
    if not only_plan:
        same([ip_text(ip) for ip in byway.ip_order(case["input"], family, count)], case["expect"], "order")
    if can_plan:
        flags = (0 if interleave else _abi.BYWAY_ROUTING_NO_FAST_FALLBACK) | (
            _abi.BYWAY_ROUTING_DEDUPLICATE if dedup else 0)
        same(planned(case["input"], flags), case["expect"], "plan")


def postpone(case):
    policy, now = case["policy"], [0]
    if policy["mode"] == "forever":
        times = {"postpone_for": 0}
    elif policy["mode"] == "fixed":
        times = {"postpone_for": policy["ttl_ms"] / 1000, "postpone_at_most": policy["ttl_ms"] / 1000}
    else:
        times = {"postpone_for": policy["base_ms"] / 1000, "postpone_at_most": policy["max_ms"] / 1000}
    with byway.Engine(monotonic=lambda: now[0] * 1000000, **times) as engine:
        route = byway.Route(byway.Address(engine, "postpone.example", 80), None, "192.0.2.1")
        happen = {"failed": lambda: engine.connect_failed(route, byway.Failure.REFUSED),
                  "connected": lambda: engine.connected(route), "network_changed": engine.network_changed}
        # Events of one moment come before its questions.
        moments = [(at, 0, "event", value) for at, value in case.get("events") or ()]
        moments += [(at, 1, "postponed", value) for at, value in case.get("expect") or ()]
        moments += [(at, 1, "size", value) for at, value in case.get("size_at") or ()]
        for at, _, what, value in sorted(moments, key=lambda moment: moment[:2]):
            now[0] = at
            if what == "event":
                if value not in happen:
                    raise Fails(f"no event {value}")
                happen[value]()
            elif what == "size":
                same(engine.stats()["database_records"], value, f"size at {at}")
            else:
                same(engine.should_postpone(route), value, f"postponed at {at}")


KINDS = {("connect", "order"): order, ("connect", "postpone"): postpone}
