"""okhttp.jsonl race: upstream's own time lines through a dial of an engine that behaves as upstream's connector. A plan is
a route; what its lines say is read from the dial's events, on a clock of the test's own."""
import resource
import select
import socket
import threading

import byway
import networks
from byway import DialEventKind, DialFlag, PollFd
from case import need, same
from networks import listener_at, own_ip, same_hop

ANSWERS = (
    b"HTTP/1.1 407 no\r\nProxy-Authenticate: Basic realm=\"p\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
)


class Plan:
    def __init__(self, spec):
        self.spec, self.id = spec, spec["id"]
        self.route = self.listener = None
        self.from_planner = spec.get("from_planner", True)
        self.delay, self.connected_already = spec.get("tcp_delay_ms", 0), spec.get("already_connected", False)
        self.crashes = (spec.get("tcp_error") or "").startswith("crash:")
        error = spec.get("tcp_error") or spec.get("planning_error") or spec.get("tls_error") or "?"
        self.error = error.partition("crash:")[2] if self.crashes else error

    def make_route(self, engine):
        """A route that connects, at once or when told so, or is refused; for a plan whose connect ends in another plan a
        proxy that wants credentials on a new connection."""
        ip = "127.0.0.1" if self.connected_already else own_ip(4, 1)
        self.listener = listener_at(ip, 0, "tcp_error" not in self.spec)
        port = self.listener.getsockname()[1]
        proxy = byway.Proxy(byway.ProxyKind.HTTP, ip, port) if "tcp_next" in self.spec else None
        self.route = byway.Route(byway.Address(engine, "192.0.2.99", 443, tls=True), proxy, ip, port)

    def answer(self, again):
        """The proxy closes the first connection, and opens the tunnel on the second."""
        accepted, _ = self.listener.accept()
        with accepted:
            need(accepted.recv(2048), "the dial says nothing to the proxy")
            accepted.sendall(ANSWERS[again])
            accepted.shutdown(socket.SHUT_WR)


class Attempt:
    def __init__(self):
        self.way = self.plan = self.ends = None
        self.fd, self.sockets, self.canceled, self.won = -1, 0, False, False


class Race(byway.Hooks):
    def __init__(self, case):
        self.case, self.engine = case, byway.Engine(compat=byway.Compat.OKHTTP_5)
        self.plans = {spec["id"]: Plan(spec) for spec in case["plans"]}
        again = {spec[name] for spec in case["plans"] for name in ("retry", "tcp_next") if name in spec}
        for plan in self.plans.values():
            if plan.id not in again:
                plan.make_route(self.engine)
        self.current = dict(self.plans)  # by the plan whose route it is: the plan it is tried as
        self.attempts, self.opened, self.lines = {}, [], []
        self.limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.now, self.won, self.results = 0, None, []
        self.dial = byway.Dial.over(
            self.engine, [plan.route for plan in self.plans.values() if plan.from_planner], hooks=self,
            flags=DialFlag.EVENTS, attempt_delay_ms=case["delay_ms"], attempt_timeout_ms=byway.NO_LIMIT)

    def close(self):
        self.lower(False)
        self.dial.close()
        for plan in self.plans.values():
            if plan.listener is not None:
                plan.listener.close()
        self.engine.close()

    def say(self, plan, what, at=None):
        self.lines.append((self.now if at is None else at, f"plan {plan.id} {what}"))

    def lower(self, on):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3 if on else self.limit[0], self.limit[1]))

    # --- what the dial asks ---

    def open_socket(self, family, protocol, route):
        """Planning fails here. What upstream does not expect, a crash, is here that the system has nothing more to give."""
        way = next(plan for plan in self.plans.values() if plan.route is not None and same_hop(plan.route, route))
        self.opened.append(way)
        self.lower(self.current[way.id].crashes)
        if "planning_error" in self.current[way.id].spec:
            raise OSError(self.current[way.id].error)
        return None

    def proxy_auth(self, attempt, route, challenges):
        return "Basic dTpw"

    # --- what it does ---

    def started(self, attempt, fd):
        attempt.way, attempt.fd, attempt.ends = self.opened.pop(0), fd, None
        attempt.plan = self.current[attempt.way.id]
        attempt.sockets += 1
        if attempt.sockets > 1:  # the same attempt over a new connection: what upstream calls the next plan
            attempt.plan = self.plans[attempt.plan.spec["tcp_next"]]
        elif attempt.plan.from_planner:
            self.lines.append((self.now, f"take plan {attempt.plan.id}"))
        if "planning_error" in attempt.plan.spec or attempt.plan.connected_already:
            return
        self.say(attempt.plan, "TCP connecting...")
        if not attempt.plan.crashes:
            attempt.ends = self.now + attempt.plan.delay

    def failed(self, attempt):
        attempt.ends = None
        if not attempt.won:
            if "planning_error" not in attempt.plan.spec:
                self.say(attempt.plan, "TCP connect failed")
        elif "tls_error" in attempt.plan.spec:  # the host has said so with resume
            self.say(attempt.plan, "TLS connect failed")
        elif "tls_next" in attempt.plan.spec:
            self.say(attempt.plan, "needs follow-up")

    def follow(self):
        connected = None
        for event in iter(self.dial.next_event, None):
            attempt = self.attempts.setdefault(event.attempt, Attempt())
            if event.kind == DialEventKind.START:
                self.started(attempt, event.fd)
            elif event.kind == DialEventKind.FD_CLOSING and "tcp_next" in attempt.plan.spec:
                self.say(attempt.plan, "needs follow-up")
            elif event.kind == DialEventKind.FAILED:
                self.failed(attempt)
            elif event.kind == DialEventKind.CANCELED:
                # Others are cancelled because one has connected: upstream says that first.
                winner = next((other for other in self.attempts.values() if other is not attempt and not other.canceled
                               and other.ends == self.now and not other.plan.spec.get("yields")), None)
                if connected is None and winner is not None:
                    connected = winner
                    self.say(winner.plan, "TCP connected")
                self.say(attempt.plan, "cancel")
                # Upstream's socket ends its connect when it would have ended; here it was closed at once.
                self.say(attempt.plan, "TCP connect canceled", max(attempt.ends or 0, self.now))
                attempt.canceled, attempt.ends = True, None
                if "retry" in attempt.plan.spec:
                    self.current[attempt.way.id] = self.plans[attempt.plan.spec["retry"]]
            elif event.kind == DialEventKind.WON:
                self.won, attempt.won, attempt.ends = event.attempt, True, None
                if not attempt.plan.connected_already:
                    if connected is not attempt:
                        self.say(attempt.plan, "TCP connected")
                    self.say(attempt.plan, "TLS connecting...")

    def step_dial(self, ready=()):
        try:
            connected = self.dial.step(ready, now=self.now / 1000)
        finally:
            self.lower(False)
            self.follow()
        return connected

    def step(self, with_yielding):
        """One step in which the connects that are due are told to the dial: what has connected, and how many were told."""
        due = [(number, attempt) for number, attempt in self.attempts.items() if attempt.ends is not None
               and attempt.ends <= self.now and (with_yielding or not attempt.plan.spec.get("yields"))]
        connected = self.step_dial([PollFd(number, attempt.fd, select.POLLOUT, select.POLLOUT) for number, attempt in due])
        for number, attempt in due:
            if connected is None and "tcp_next" in attempt.way.spec and attempt.ends == self.now:
                # Connected, and the request is written: the answer.
                attempt.ends = None
                attempt.way.answer(attempt.sockets > 1)
                connected = self.step_dial([PollFd(number, attempt.fd, select.POLLIN, select.POLLIN)])
        return connected, len(due)

    def settle(self):
        """Steps until nothing more happens at this moment; a connect that yields is told when all else is done."""
        told, connected = 1, None
        while told and connected is None:
            connected, told = self.step(False)
            if connected is None and not told:
                connected, told = self.step(True)
        return connected

    def use(self, connected):
        """TLS over the connection that won, and what comes of it; true when that was the last find."""
        attempt = self.attempts[connected.attempt]
        plan, error = attempt.plan, attempt.plan.spec.get("tls_error")
        connected.socket.close()
        if not plan.connected_already:
            self.now += plan.spec.get("tls_delay_ms", 0)
        try:
            self.dial.step(now=self.now / 1000)
        except byway.BywayError:
            pass  # there is no other socket to take
        if error is None and "tls_next" not in plan.spec:
            if not plan.connected_already:
                self.say(plan, "TLS connected")
            self.results.append({"winner": plan.id})
            if len(self.results) == self.case.get("find_calls", 1):
                return True
        follow_up = self.plans[plan.spec["tls_next"]].route if "tls_next" in plan.spec else None
        self.dial.resume(connected.attempt, byway.Resume.TLS if error else byway.Resume.CLOSED, follow_up)
        self.follow()
        return False

    def end_failed(self):
        """What upstream throws: the first failure, the others suppressed."""
        failures = self.dial.failures()
        errors = [self.attempts[failure.attempt].plan.error for failure in failures]
        self.results.append({"error": errors[0] if errors else None, "suppressed": errors[1:],
                             "unchecked": any(failure.name == "FD_LIMIT" for failure in failures)})

    def run(self):
        try:
            for _ in range(1000):
                connected = self.settle()
                if connected is not None:
                    if self.use(connected):
                        break
                    continue
                left = self.dial.deadline()
                times = [attempt.ends for attempt in self.attempts.values() if attempt.ends is not None]
                times += [] if left is None else [self.now + round(left * 1000)]
                self.now = max(self.now, min(times))
        except byway.BywayError:
            self.end_failed()
        timeline = []
        for at, line in sorted(self.lines, key=lambda line: line[0]):
            if not timeline or timeline[-1]["at_ms"] != at:
                timeline.append({"at_ms": at, "events": []})
            timeline[-1]["events"].append(line)
        same(timeline, self.case["timeline"], "timeline")
        wanted = self.case["expect"]["results"]
        # A result says what its case asks for.
        same([{key: value for key, value in got.items() if key in want} for got, want in zip(self.results, wanted)], wanted,
             "results")


def run(case):
    def race():
        one, told = Race(case), threading.excepthook
        # A hook that raises is part of the case and nobody's news.
        threading.excepthook = lambda _: None
        try:
            one.run()
        finally:
            threading.excepthook = told
            one.close()

    networks.inside(race)


KINDS = {("okhttp", "race"): run}
