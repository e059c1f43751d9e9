"""Bars of the Python face: one line `bar NAME VALUE LIMIT ok|short` each, preceded by a table. Processor time of the
thread, the median of 11 batches; E is an empty ctypes call in the same run.

BYWAY_LIBRARY=... PYTHONPATH=bindings/python/src python3 benches/python/bars.py
"""
import sys
import time

import byway
from byway._library import lib

BATCHES = 11

engine = byway.Engine()
dns = byway.Dns.hosts(engine, "".join(f"192.0.2.{i} a.example\n" for i in range(1, 5)))
address = byway.Address(engine, "a.example", 443, tls=True, dns=dns)

chain = byway.Chain(engine, "consumer://10.0.0.9/Hello?application=web&interface=Hello")
chain.set_invokers(byway.Invokers(engine, [f"tri://10.0.0.{i}:20880/Hello?application=demo" for i in range(1, 5)]))
invocation = byway.Invocation("hello")
batch = [byway.Invocation(f"hello{i % 4}") for i in range(64)]


def empty():
    """E."""
    lib.byway_abi_version()


def selection():
    """New, next, four routes as objects, out of one crossing, and what `socket.connect` gets of each."""
    for route in byway.Selector(address).next():
        route.sockaddr


def selection_alone():
    """New and next, nothing read."""
    byway.Selector(address).next()


def getters():
    """The same with a crossing for every route and every value of it: how routes are read that come from elsewhere."""
    routes = byway.Selector(address).next()
    while routes.more:
        route = routes.take()
        route.sockaddr


def tags():
    """One call routed, its numbers as a list."""
    chain.tags(invocation)


session = chain.session()


def session_tags():
    """The same through a session."""
    session.tags(invocation)


def route_many():
    """64 calls routed in one crossing."""
    chain.route_many(batch, room=4)


def median(work, seconds=0.02):
    """Microseconds of one round."""
    begin, rounds = time.thread_time(), 0
    while time.thread_time() - begin < seconds:
        work()
        rounds += 1
    times = []
    for _ in range(BATCHES):
        begin = time.thread_time_ns()
        for _ in range(rounds):
            work()
        times.append((time.thread_time_ns() - begin) / rounds / 1000)
    return sorted(times)[BATCHES // 2]


def bar(name, value, limit):
    good = value <= limit
    print(f"bar {name} {value:.3f} {limit} {'ok' if good else 'short'}")
    return good


def main():
    works = [empty, selection, selection_alone, getters, tags, session_tags, route_many]
    times = {work.__name__: median(work) for work in works}
    print(f"{'':24} {'us':>9} {'E':>9}")
    for name, value in times.items():
        print(f"{name:24} {value:9.3f} {value / times['empty']:9.1f}")
    good = [
        bar("python_selection_us", times["selection"], 15),
        bar("python_selection_in_empty_calls", times["selection"] / times["empty"], 150),
        bar("python_selection_to_one_getter_at_a_time", times["selection"] / times["getters"], 1 / 3),
        bar("python_route_many_to_one_at_a_time", times["route_many"] / 64 / times["tags"], 0.5),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
