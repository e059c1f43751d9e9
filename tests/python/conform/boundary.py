"""Kinds of bugs.jsonl about the boundary itself, as far as they are Python's."""
import gc
import os
import threading

import byway
from case import Skips, need


def two_mistakes(expect):
    """Errors are told to whom they belong."""
    told, both = {}, threading.Barrier(2)

    def mistake(name, function):
        try:
            function()
        except byway.BywayError as error:
            # Both have failed before one asks why.
            both.wait()
            told[name] = f"{error.name} {error}"

    with byway.Engine() as engine:
        works = {"T1": lambda: engine.set_rule("S::.condition-router", "conditions: 5"),
                 "T2": lambda: byway.Chain(engine, "consumer://[::1/S")}
        threads = [threading.Thread(target=mistake, args=work) for work in works.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name in works:
        need(expect[f"{name}_contains"].lower() in told.get(name, "").lower(), f"{name} was told: {told.get(name)}")


def callback_kept(expect):
    """A resolver that nobody but the library holds lives as long as the library needs it."""
    engine = byway.Engine()
    address = byway.Address(engine, "h", 80, dns=byway.Dns(engine, lambda host: ["192.0.2.1"]))
    gc.collect()
    for _ in range(1000):
        routes = list(byway.Selector(address).next(0))
        need([str(route.hop[0]) for route in routes] == ["192.0.2.1"], f"{routes}")
    engine.close()
    need(expect["crash"] is False, "a crash is wanted")


def forked(expect):
    """A child is told that the engine belongs to its parent."""
    with byway.Engine() as engine:
        address = byway.Address(engine, "192.0.2.1", 80)
        child = os.fork()
        if child == 0:
            try:
                list(byway.Selector(address).next(0))
            except byway.BywayError as error:
                os._exit(0 if error.name.endswith("FORKED") else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
    need(os.waitstatus_to_exitcode(status) == 0, f"the child ended with {status}")
    need(expect["hang"] is False, "a hang is wanted")


def sequence(case):
    expect, calls = case["expect"], " ".join(case["input"]["calls"])
    if "T1_contains" in expect:
        two_mistakes(expect)
    elif "destroy_callback_calls" in expect:
        callback_kept(expect)
    elif "fork" in calls:
        forked(expect)
    else:
        raise Skips("tests/c/conform/boundary.c, tests/c/copies.c and the bindings' own tests")


def elsewhere(case):
    raise Skips({"ffi_null": "tests/c/misuse.c calls every function so", "load": "Java's own tests",
                 "artifact": "Android is no platform of byway's"}[case["kind"]])


KINDS = {("bugs", "ffi_sequence"): sequence, **{("bugs", kind): elsewhere for kind in ("ffi_null", "load", "artifact")}}
