"""Load balancing, stickiness and second choices, through picks of a chain."""
import math
import re
import threading

import byway
from byway import Balance, Dialect
from case import Fails, need, same
from worlds import World

BALANCES = {"random": Balance.RANDOM, "roundrobin": Balance.ROUND_ROBIN, "leastactive": Balance.LEAST_ACTIVE,
            "shortestresponse": Balance.SHORTEST_RESPONSE, "consistenthash": Balance.CONSISTENT_HASH,
            "adaptive": Balance.P2C}


class Picks:
    """A chain over the case's invokers that picks by the case's algorithm. A generic call is unwrapped as hosts do."""

    def __init__(self, case, dialect):
        call, consumer = case.get("invocation") or {}, "consumer://127.0.0.1/S?router=-default"
        if case.get("availablecheck", True) is not True:
            consumer += "&cluster.availablecheck=false"
        self.options = {"balance": BALANCES.get(case.get("algorithm"), Balance.AUTO)}
        self.world = World(dialect, consumer, case["invokers"])
        self.rows = self.world.rows
        arguments = call.get("arguments") or []
        if (call.get("method") or "").startswith("$invoke") and len(arguments) == 3:
            # Behind the method and the types come the method's own arguments.
            self.world.invocation.reset(call["method"], arguments=[arguments[0], "", *arguments[2]])
        elif not self.world.call(call):
            self.world.invocation.reset("m")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.world.engine.close()

    def pick(self, **more):
        return self.world.chain.pick(self.world.invocation, **{**self.options, **more})

    def end(self, picked, ok=False, latency=0.0, report=None):
        return self.world.chain.pick_end(picked, ok, latency, report)

    def id_at(self, row):
        return self.rows[row].get("id")

    def row_of(self, name):
        """Some cases call the third provider by the letter of its upstream variable (`E` for protocol `test5`)."""
        protocol = f"test{ord(name[0]) - ord('A') + 1}://"
        for row, one in enumerate(self.rows):
            if one.get("id") == name:
                return row
        return next((row for row, one in enumerate(self.rows) if one["url"].startswith(protocol)), 0)

    def begin_on(self, row):
        """Begins a call on one provider: the only one that is available."""
        return self.pick(available=(self.world.list, [row]))

    def weight(self, row):
        found = re.search(r"weight=(\d+)", self.rows[row]["url"])
        return float(found.group(1)) if found else 100.0

    def count(self, runs, **more):
        counts = [0] * len(self.rows)
        for _ in range(runs):
            picked = self.pick(**more)
            self.end(picked)
            counts[picked.row] += 1
        return counts

    def count_on_threads(self, runs, threads):
        all_counts = []

        def turns():
            call, counts = byway.Invocation("test"), [0] * len(self.rows)
            for _ in range(runs // threads):
                counts[self.world.chain.pick(call, **self.options).row] += 1
            all_counts.append(counts)

        running = [threading.Thread(target=turns) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return [sum(counts) for counts in zip(*all_counts)]

    def sequence(self, want, **more):
        for expected in want:
            got = self.id_at(self.pick(**more).row)
            if len(expected) == 1:
                got = got[0]
            same(got, expected, "pick")


def adaptive(picks, metrics, runs):
    rows = {picks.row_of(name): metric for name, metric in metrics.items()}
    counts = [0] * len(picks.rows)
    for i in range(runs):
        picked = picks.pick()
        metric = rows[picked.row]
        counts[picked.row] += 1
        report = byway.Report(i / 1000, metric.get("load", 0), metric.get("rt", 0) / 1000)
        need(picks.end(picked, metric.get("error") is not True, None, report), "a ticket that does not end")
    unit = math.floor(runs / sum(map(picks.weight, range(len(counts)))))
    for row, count in enumerate(counts):
        ewma = 25 + rows[row].get("rt", 0) / 2
        need(abs(count / (picks.weight(row) * ewma) - unit) < 2 * unit, f"row {row} got {count}")
    worst = max(rows, key=lambda row: (rows[row].get("load", 0), -row))
    same(counts.index(min(counts)), worst, "the row with the highest load gets the fewest calls")


def every_one_is_hit(picks):
    counts = [0] * len(picks.rows)
    for number in range(1000):
        picks.world.invocation.reset("method1", arguments=[f"arg{number}", "arg2", "arg3"])
        home = picks.pick().row
        counts[home] += 1
        for _ in range(4):
            same(picks.pick().row, home, f"arg{number}")
    need(all(counts), f"somebody is never hit: {counts}")


def asserted(picks, case, words):
    expect = case["expect"]
    if words.startswith("same invoker as the plain call"):
        arguments = case["invocation"]["arguments"]
        plain = {**case, "invocation": {"method": arguments[0], "arguments": arguments[2]}}
        with Picks(plain, Dialect.DUBBO_3) as other:
            same(other.pick().row, picks.pick().row, "row")
        return
    if words == "every invoker is hit":
        every_one_is_hit(picks)
        return
    if "window" in words:
        # One slow answer, then a new window in which it no longer counts.
        picks.end(picks.begin_on(len(picks.rows) - 1), True, 5.0)
        picks.world.now += 30001000000
    runs, threads = int(expect.get("runs", 0)), int(expect.get("threads", 1))
    counts = picks.count_on_threads(runs, threads) if threads > 1 else picks.count(runs)
    total, average = sum(map(picks.weight, range(len(counts)))), runs / len(counts)
    for row, count in enumerate(counts):
        weight = picks.weight(row)
        if words == "sum is 10000":
            good = True
        elif words.startswith("within 100% of average"):
            good = count > 0 and abs(count - average) <= average
        elif words.startswith("each count differs"):
            good = abs(count - average) < 1
        elif words.startswith("count per invoker within 10"):
            good = abs(count - math.floor(runs / total) * weight) <= 10
        elif "share by weight" in words:
            good = count > 0 and abs(count / weight - runs / total) < 2 * runs / total
        else:
            raise Fails(f"not understood: {words}")
        need(good, f"row {row} got {count}: {words}")
    same(sum(counts), runs, "sum")


def shares(picks, expect):
    runs = int(expect.get("runs", 0))
    counts = picks.count(runs)
    if isinstance(expect.get("counts"), dict):
        for name, want in expect["counts"].items():
            same(counts[picks.row_of(name)], want, name)
        return
    share = [0.0] * len(counts)
    observed = expect.get("observed") or {}
    for name, seen in observed.items():
        # Observed counts are themselves one draw; they stand for the nearest simple share.
        even = 1 / len(observed)
        share[picks.row_of(name)] = even if abs(seen / runs - even) < 0.05 else seen / runs
    for name, part in (expect.get("share") or {}).items():
        share[picks.row_of(name)] = part
    if isinstance(expect.get("ratio"), str):
        names, _, parts = expect["ratio"].partition(" about ")
        left, right = (float(re.match(r"[\d.]+", part).group()) for part in parts.split(":"))
        for name, part in ((names[0], left), (names[2], right)):
            share[picks.row_of(name)] = part / (left + right)
    for row, count in enumerate(counts):
        p = share[row]
        need(abs(count - p * runs) <= 5 * math.sqrt(runs * p * (1 - p)), f"row {row} got {count} of {runs}, share {p}")


def balance(case):
    expect = case["expect"]
    with Picks(case, Dialect.DUBBO_3) as picks:
        for name, calls in (case.get("active") or {}).items():
            for _ in range(calls):
                picks.begin_on(picks.row_of(name))
        for name, words in (case.get("stats") or {}).items():
            ms, active = map(int, re.fullmatch(r"one success of (\d+) ms and (\d+) active", words).groups())
            picks.end(picks.begin_on(picks.row_of(name)), True, ms / 1000)
            for _ in range(active):
                picks.begin_on(picks.row_of(name))
        if isinstance(expect, list):
            picks.sequence(expect)
        elif isinstance(expect.get("sequence"), str):
            picks.sequence(expect["sequence"])
        elif isinstance(case.get("provider_metrics"), dict):
            adaptive(picks, case["provider_metrics"], int(expect.get("runs", 0)))
        elif isinstance(expect.get("assert"), str):
            asserted(picks, case, expect["assert"])
        else:
            shares(picks, expect)
    if isinstance(case.get("sane"), dict):
        with Picks(case, Dialect.BYWAY) as picks:
            counts = picks.count(sum(case["sane"].values()))
            same({name: counts[picks.row_of(name)] for name in case["sane"]}, case["sane"], "[byway] counts")


def sticky(case):
    with Picks(case, Dialect.DUBBO_3) as picks:
        picks.options["balance"] = Balance.ROUND_ROBIN
        if isinstance(case["expect"].get("five_selects"), list):
            picks.sequence(case["expect"]["five_selects"])
            return
        stuck = picks.pick().tag
        same(picks.pick().tag, stuck, "it stays")
        need(picks.pick(exclude=[stuck]).tag != stuck, "it does not leave")


def choose(case):
    expect = case["expect"]
    with Picks(case, Dialect.DUBBO_3) as picks:
        able = [row for row, one in enumerate(picks.rows) if one.get("available") is not False]
        tried = [picks.row_of(name) + 1 for name in case.get("selected") or ()]
        if len(tried) == 1 and picks.id_at(tried[0] - 1) != case["selected"][0]:
            # A number that is in no list.
            tried = [999]
        # Upstream's tests that name no algorithm drive a round robin or a stub that returns the first.
        if picks.options["balance"] == Balance.AUTO:
            picks.options["balance"] = Balance.ROUND_ROBIN
        more = {"available": (picks.world.list, able), "exclude": tried}
        if isinstance(expect, list):
            picks.sequence(expect, **more)
        elif "runs" in expect:
            counts = picks.count(int(expect["runs"]), **more)
            need(counts[1] + counts[3] == 1000 and counts[1] > 200 and counts[3] > 200, f"{counts}")
        else:
            for _ in range(100):
                picked = picks.pick(**more)
                picks.end(picked, True, 0.001)
                name = picks.id_at(picked.row)
                need(name in expect["any_of"] if "any_of" in expect else picked.row in able, f"got {name}")


KINDS = {("dubbo_chain", "lb"): balance, ("dubbo_chain", "sticky"): sticky, ("dubbo_chain", "cluster-select"): choose}
