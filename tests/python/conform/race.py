"""Race timelines through `byway.Dial` on a clock of the test's own. Sockets are real, in a network of their own; what
happened on one is told to the dial at the moment the case says, so a connect "takes" as long as it should."""
import json
import resource
import select
import socket

import byway
import networks
from byway import DialEventKind, DialFlag, PollFd, _abi
from case import Fails, equal, need, same
from networks import OTHER, listener_at, same_hop

class Way:
    """Where a route's connect goes: something that answers as the case says, if not when."""

    def __init__(self, world, spec):
        self.spec, self.tries = spec, 0
        outcome, sync, ip = spec.get("outcome", "ok"), spec.get("sync") is True, OTHER
        works = outcome in ("ok", "pending")
        if (spec.get("retry") or {}).get("outcome") == "ok":
            works, sync = True, False
        if sync:
            ip = "127.0.0.1" if works else networks.NOWHERE
        self.listener = listener_at("127.0.0.1" if sync and works else OTHER, 0, works)
        port = self.listener.getsockname()[1]
        if spec.get("ready") is not None and world.options.get("race_until", "tcp") != "tcp":
            proxy = byway.Proxy(byway.ProxyKind.HTTP, ip, port)
            address = byway.Address(world.engine, "192.0.2.99", 443, tls=True, proxy=proxy)
        else:
            address = byway.Address(world.engine, ip, port, tls=True)
        self.route = byway.Selector(address).next(0)[0]

    def _again(self, name, otherwise):
        retry = self.spec.get("retry") or {}
        first = self.spec.get(name, otherwise)
        return retry.get(name, first) if self.tries > 1 else first

    @property
    def outcome(self):
        return self._again("outcome", "ok")

    @property
    def after(self):
        return self._again("after_ms", 0)

    @property
    def at_once(self):
        return self._again("sync", False) is True

    def reply(self):
        """The proxy's answer, which is there when the dial is told so."""
        outcome = (self.spec.get("ready") or {}).get("outcome", "ok")
        accepted, _ = self.listener.accept()
        with accepted:
            need(accepted.recv(2048), "the dial says nothing to the proxy")
            if not outcome.startswith("socks"):
                status = outcome.partition("tunnel_status:")[2]
                accepted.sendall(f"HTTP/1.1 {status} no\r\n\r\n".encode() if status else b"HTTP/1.1 200 OK\r\n\r\n")
            accepted.shutdown(socket.SHUT_WR)


class HostWay(Way):
    """One of the addresses of the case's host."""

    def __init__(self, world, spec, family):
        self.spec, self.tries = spec, 0
        self.ip = networks.own_ip(family, len(world.ways) + 1)
        self.listener = listener_at(self.ip, HOST_PORT, spec.get("outcome", "ok") in ("ok", "pending"))
        self.route = byway.Route(world.host, None, self.ip, HOST_PORT)


HOST_PORT = 443


class Answers:
    """What the host's resolver says, family by family, each when the case says so."""

    def __init__(self, world, given):
        self.left, self.request = [], None
        for answer in given:
            family, first = 4 if answer["family"] == "v4" else 6, len(world.ways)
            for spec in answer["routes"]:
                world.ways.append(HostWay(world, spec, family))
            self.left.append((answer["at_ms"], family, [way.ip for way in world.ways[first:]]))

    def lookup(self, request):
        self.request = request.later()

    @property
    def next(self):
        return min((at for at, _, _ in self.left), default=-1)

    def give(self, now):
        """Gives the first answer that is due, so that a step sees each of them come."""
        due = next((answer for answer in self.left if answer[0] <= now), None)
        if self.request is None or due is None:
            return
        self.left.remove(due)
        if due[2]:
            self.request.add(*due[2])
        self.request.family_done(due[1])
        if not self.left:
            self.request.finish()
            self.request = None


class World(byway.Hooks):
    def __init__(self, case):
        self.case, self.options = case, case.get("options") or {}
        on_success = self.options.get("commit_failures") == "on_success"
        self.engine = byway.Engine(commit_on_success=on_success)
        self.dial, self.events = None, []  # events: when, attempt, way, is it the proxy's answer
        self.opened, self.way_of, self.fd_of = [], {}, {}
        self.limit, self.limited = resource.getrlimit(resource.RLIMIT_NOFILE), False
        # Room for everything Python itself may open meanwhile is there before the limit is low.
        self.ways, self.answers = [], None
        # By its resolver's answers; or because what is remembered of failures hangs on the selector routes have in common.
        self.by_host = "dns" in case or "commit_failures" in self.options
        if self.by_host:
            dns = byway.Dns(self.engine, lambda request: self.answers.lookup(request), takes_request=True)
            self.host = byway.Address(self.engine, "race.example", HOST_PORT, tls=True, dns=dns)
            self.answers = Answers(self, case.get("dns") or [{"at_ms": 0, "family": "v4", "routes": case["routes"]}])
        else:
            self.ways = [Way(self, spec) for spec in case["routes"]]
        self.routes = [way.route for way in self.ways]
        self.ways += [Way(self, step["follow_up"]) for step in case.get("resume") or () if "follow_up" in step]

    def close(self):
        self.lower(False)
        if self.dial is not None:
            self.dial.close()
        for way in self.ways:
            way.listener.close()
        self.engine.close()

    def lower(self, on):
        if on != self.limited:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3 if on else self.limit[0], self.limit[1]))
            self.limited = on

    def open_socket(self, family, protocol, route):
        way = next(way for way in self.ways if same_hop(way.route, route))
        way.tries += 1
        self.opened.append(way)
        self.lower(way.outcome == "fd_limit")
        return None

    def follow(self, now):
        """What the dial did in a step: new attempts get their end, dialogues their answer."""
        for event in iter(self.dial.next_event, None):
            if event.kind == DialEventKind.START:
                way = self.opened.pop(0)
                self.way_of[event.attempt], self.fd_of[event.attempt] = way, event.fd
                if event.fd >= 0 and not way.at_once and way.outcome != "pending":
                    self.events.append((now + way.after, event.attempt, way, False))
            elif event.kind == DialEventKind.HANDSHAKE:
                way = self.way_of[event.attempt]
                ready = way.spec.get("ready") or {}
                if ready.get("outcome", "ok") != "pending":
                    self.events.append((now + ready.get("after_ms", 0), event.attempt, way, True))
            elif event.kind == DialEventKind.FD_CLOSING:
                self.events = [later for later in self.events if later[1] != event.attempt]

    def due(self, now):
        ready = []
        for at, attempt, way, answered in self.events:
            if at <= now:
                if answered:
                    way.reply()
                bits = select.POLLIN if answered else select.POLLOUT
                ready.append(PollFd(attempt, self.fd_of[attempt], bits, bits))
        self.events = [event for event in self.events if event[0] > now]
        return ready

    def step(self, now, ready=()):
        try:
            return self.dial.step(ready, now=now / 1000)
        finally:
            self.lower(False)
            self.follow(now)

    def pass_time(self, now):
        """A step after the socket was taken: there is no other one to take."""
        try:
            self.dial.step(now=now / 1000)
        except byway.BywayError as error:
            same(error.code, _abi.BYWAY_E_STATE, "a step after the end")

    def made(self, **options):
        if self.by_host:
            return byway.Dial(self.host, early=True, **options)
        return byway.Dial.over(self.engine, self.routes, **options)

    def race(self):
        """The case's timeline: how it ended, and the deadlines that were named on the way."""
        given, got, deadlines = self.options, {}, []
        flags = DialFlag.EVENTS | (DialFlag.NEXT_ON_REFUSAL if given.get("tunnel_refusal") == "next" else 0)
        self.dial = self.made(
            hooks=self, flags=flags,
            max_in_flight=given.get("max_in_flight") or byway.NO_LIMIT,
            cap_policy=_abi.BYWAY_CAP_WAIT if given.get("cap_policy") == "wait" else _abi.BYWAY_CAP_DROP_OLDEST,
            on_failure={"immediate": _abi.BYWAY_ON_FAILURE_IMMEDIATE, "latest": _abi.BYWAY_ON_FAILURE_LATEST}.get(
                given.get("on_failure"), _abi.BYWAY_ON_FAILURE_WHEN_IDLE),
            race_until=byway.RaceUntil.READY if given.get("race_until") == "ready" else byway.RaceUntil.TCP,
            **{name: given.get(name) or 0 for name in (
                "attempt_delay_ms", "resolution_delay_ms", "first_family_count", "attempt_timeout_ms", "ready_timeout_ms", "overall_timeout_ms", "ready_extend_ms")},
        )
        cancel_at, resumes, now = self.case.get("cancel_at_ms", -1), list(self.case.get("resume") or ()), 0
        try:
            for _ in range(1000):
                ready = self.due(now)
                if 0 <= cancel_at <= now:
                    self.dial.cancel()
                if self.answers is not None:
                    self.answers.give(now)
                connected = self.step(now, ready)
                upcoming = -1 if self.answers is None else self.answers.next
                if connected is None and 0 <= upcoming <= now and self.answers.request is not None:
                    continue  # the next answer of this moment
                if connected is not None:
                    got["result"] = "connected"
                    connected.socket.close()
                    if not resumes:
                        got["winner"] = self.way_of[connected.attempt].spec["id"]
                        break
                    resume = resumes.pop(0)
                    now += resume.get("after_ms", 0)
                    self.pass_time(now)
                    follow_up = self.ways[len(self.routes)].route if "follow_up" in resume else None
                    self.dial.resume(connected.attempt, byway.Resume.TLS, follow_up)
                    self.follow(now)
                    continue
                upcoming = min((event[0] for event in self.events), default=upcoming if upcoming > now else -1)
                if self.answers is not None and now < self.answers.next < upcoming:
                    upcoming = self.answers.next
                if 0 <= upcoming <= now:
                    continue
                if cancel_at > now and (upcoming < 0 or cancel_at < upcoming):
                    upcoming = cancel_at
                left = self.dial.deadline()
                deadline = None if left is None else now + round(left * 1000)
                deadlines.append([now, deadline])
                now = deadline if upcoming < 0 or (deadline is not None and deadline < upcoming) else upcoming
        except byway.CanceledError:
            got["result"] = "canceled"
        except byway.TimeoutError:
            got["result"] = "timeout"
        except byway.BywayError:
            got["result"] = "failed"
        got.update(at_ms=now, deadlines=deadlines)
        return got

    def waterfall(self, got):
        """What the case expects, read from the dial's own waterfall."""
        lists = {name: [] for name in ("starts", "failed", "canceled", "dropped", "local_errors")}
        faults = {"TIMEOUT_ATTEMPT": "timeout", "TIMEOUT_READY": "handshake_timeout", "TLS_FAILED": "tls_failed"}
        for one in json.loads(self.dial.explain(json=True)).get("attempts") or ():
            way, ended = self.way_of[one["attempt"]], one.get("ended_ms", 0)
            name, fault = way.spec["id"], one.get("fault") or ""
            if not (fault == "FD_LIMIT" and way.tries > 1):
                lists["starts"].append([name, one.get("started_ms", 0)])
            if one.get("outcome") == "canceled":
                oldest = (one.get("reason") or "").startswith("oldest")
                lists["dropped" if oldest else "canceled"].append([name, ended])
            elif one.get("outcome") == "failed":
                why = way.spec.get("outcome", "ok")
                if why == "ok":
                    why = (way.spec.get("ready") or {}).get("outcome", "ok")
                why = faults.get(fault, why)
                if why.startswith("tunnel_status") and "error" not in got:
                    got["error"] = why
                else:
                    local = fault in ("FD_LIMIT", "NO_LOCAL_ROUTE")
                    lists["local_errors" if local else "failed"].append([name, why, ended])
        for name, entries in lists.items():
            # By the time of their end, equal times in order of start.
            got[name] = entries if name == "starts" else sorted(entries, key=lambda entry: entry[-1])

    def judge(self, got):
        expect = self.case["expect"]
        if got["result"] == "timeout":
            got["error"] = "overall_timeout"
        elif got["result"] == "failed" and "error" not in got:
            first = (got["failed"] or got["local_errors"] or [None])[0]
            got["error"] = first[1] if first else "no_routes"
        for name in ("result", "at_ms", "starts", "failed", "canceled", "dropped", "local_errors", "deadlines", "winner",
                     "error"):
            want = expect.get(name)
            if name in got and not (want is None and got[name] == []) or want is not None:
                same(got.get(name), want, name)
        blamed = (expect.get("db") or {}).get("failed") or []
        for way in self.ways:
            same(self.engine.should_postpone(way.route), any(equal(one, way.spec["id"]) for one in blamed),
                 f"{way.spec['id']} postponed")


def run_with(case, judge):
    def race():
        world = World(case)
        try:
            got = world.race()
            world.waterfall(got)
            judge(world, got)
        finally:
            world.close()

    networks.inside(race)


def run(case):
    run_with(case, World.judge)


# --- time lines of the bug log: addresses that connect, fail or drop ---


def report(case):
    """The same world as connect.jsonl has: literals are answers of a resolver, family by family; other names are routes."""
    given, expect = case["input"], case["expect"]
    made = {"options": {"attempt_delay_ms": given.get("delay_ms", 250),
                        "overall_timeout_ms": given.get("deadline_ms", 0)}, "routes": []}
    families = {"v6": made["routes"], "v4": made["routes"]}
    if ":" in given["addresses"][0]["a"]:
        made["dns"] = [{"at_ms": 0, "family": family, "routes": []} for family in families]
        families = {answer["family"]: answer["routes"] for answer in made["dns"]}
    for address in given["addresses"]:
        outcome = "ok" if "connect_ms" in address else "refused" if "fail_ms" in address else "pending"
        families["v6" if ":" in address["a"] else "v4"].append(
            {"id": address["a"], "outcome": outcome, "after_ms": address.get("connect_ms", address.get("fail_ms", 0))})

    def judge(world, got):
        ends = {"timeout": "deadline", "failed": "all_failed"}
        shown = {"winner": got.get("winner"), "error": ends.get(got["result"], got["result"]),
                 "attempts": len(got["starts"]), "errors": len(world.dial.failures()),
                 "start_order": [start[0] for start in got["starts"]]}
        for key, want in expect.items():
            if key == "at_ms":
                need(want[0] <= got[key] <= want[1], f"at {got[key]} ms")
            elif key in shown:
                same(shown[key], want, key)
            else:
                raise Fails(f"no reading for {key}")

    run_with(made, judge)


KINDS = {("connect", "race"): run, ("bugs", "race"): report}
