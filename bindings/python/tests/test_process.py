"""What happens at the edges of a process: exit, fork, collected callbacks, interrupts. Each in a process of its own."""
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path
from unittest import mock

import byway
from byway import _library

SOURCES = str(Path(__file__).resolve().parent.parent / "src")


def run(text, **options):
    env = {**os.environ, "PYTHONPATH": SOURCES}
    return subprocess.run([sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(text)], env=env, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, **options)


def state(pid):
    """R, S, ... as in `ps`."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Process(unittest.TestCase):
    def clean(self, text, out=""):
        done = run(text)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", out))

    def test_exit_with_a_live_engine_and_a_pending_lookup(self):
        self.clean("""
            import byway
            engine = byway.Engine()
            dns = byway.Dns.system(engine)
            kept = []
            later = byway.Dns(engine, lambda r: kept.append(r.later()), takes_request=True)
            a = byway.Selector(byway.Address(engine, "never.invalid", 80, dns=dns))
            b = byway.Selector(byway.Address(engine, "later.invalid", 80, dns=later))
            a.poll(); b.poll()
        """)

    def test_exit_while_another_thread_waits(self):
        self.clean("""
            import threading, byway
            engine = byway.Engine()
            started = threading.Event()
            def lookup(request):
                request.later(); started.set()
            dns = byway.Dns(engine, lookup, takes_request=True)
            def wait():
                try:
                    byway.Selector(byway.Address(engine, "a.example", 80, dns=dns)).next()
                except byway.BywayError:
                    pass
            threading.Thread(target=wait, daemon=True).start()
            started.wait()
        """)

    def test_exit_with_everything_alive(self):
        self.clean("""
            import byway
            engine = byway.Engine(monotonic=lambda: 1)
            queue = byway.Queue(); queue.set_notify(lambda: None)
            chain = byway.Chain(engine, "consumer://127.0.0.1/S")
            chain.set_invokers(byway.Invokers(engine, ["tri://10.0.0.1:1/S"], [1], on_end=lambda: print("ended")))
            chain.add_router(byway.Router(engine, "mine", lambda request: None))
            session = chain.session()
            assert session.tags(byway.Invocation("m")) == [1]
            address = byway.Address(engine, "a.example", 80, dns=byway.Dns(engine, lambda host: ["192.0.2.1"]))
            kept = [byway.Selector(address) for _ in range(3)]
            routes = [route for selector in kept for route in selector.next()]
        """, "ended\n")

    def test_callbacks_survive_collection_of_their_handles(self):
        self.clean("""
            import gc, byway
            engine = byway.Engine()
            address = byway.Address(engine, "a.example", 80, dns=byway.Dns(engine, lambda host: ["192.0.2.1"]))
            for _ in range(200):
                gc.collect()
                assert len(byway.Selector(address).next()) == 1
        """)

    def test_a_forked_child_is_told_and_ends_cleanly(self):
        self.clean("""
            import os, sys, byway
            engine = byway.Engine()
            address = byway.Address(engine, "a.example", 80, dns=byway.Dns(engine, lambda host: ["192.0.2.1"]))
            route = byway.Selector(address).next()[0]
            child = os.fork()
            if child == 0:
                assert route.sockaddr == ("192.0.2.1", 80)
                try:
                    byway.Selector(address)
                except byway.ShutdownError as error:
                    assert error.name == "BYWAY_E_FORKED", error.name
                else:
                    os._exit(3)
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert len(byway.Selector(address).next()) == 1
        """)

    def test_children_of_a_busy_process_find_no_lock_taken(self):
        self.clean("""
            import os, threading, warnings, byway
            # Newer Pythons warn of what is tried here.
            warnings.simplefilter("ignore", DeprecationWarning)
            engine = byway.Engine()
            address = byway.Address(engine, "a.example", 80, dns=byway.Dns(engine, lambda host: ["192.0.2.1"]))
            route = byway.Selector(address).next()[0]
            stop = threading.Event()
            def busy():
                while not stop.is_set():
                    for one in byway.Selector(address).next():
                        one.pointer
                        byway.Dns(engine, lambda host: None)
            threads = [threading.Thread(target=busy, daemon=True) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(30):
                child = os.fork()
                if child == 0:
                    try:
                        route.pointer
                        byway.Dns(engine, lambda host: None)
                    except byway.ShutdownError:
                        os._exit(0 if route.sockaddr == ("192.0.2.1", 80) else 2)
                    os._exit(3)
                assert os.waitpid(child, 0)[1] == 0
            stop.set()
            for thread in threads:
                thread.join()
        """)

    def test_an_interrupt_ends_a_wait(self):
        text = """
            import byway, signal
            # A runner in the background is started with the signal ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            engine = byway.Engine()
            kept = []
            dns = byway.Dns(engine, lambda r: kept.append(r.later()), takes_request=True)
            selector = byway.Selector(byway.Address(engine, "a.example", 80, dns=dns))
            try:
                print("waiting", flush=True)
                selector.next(3600)
            except KeyboardInterrupt:
                print("interrupted")
        """
        env = {**os.environ, "PYTHONPATH": SOURCES}
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], env=env, stdout=subprocess.PIPE,
                                   universal_newlines=True)
        self.assertEqual(process.stdout.readline(), "waiting\n")
        # The wait begins after the line: the process sleeps. A signal before that would raise at once.
        while state(process.pid) not in "SZ":
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        self.assertEqual(out, "interrupted\n")

    def test_the_library_is_looked_for_in_the_order_that_is_documented(self):
        with tempfile.TemporaryDirectory() as folder:
            beside = Path(folder).resolve() / "libbyway.so"
            beside.touch()
            where = (mock.patch.object(_library, "__file__", str(beside.with_name("_library.py"))),
                     mock.patch("ctypes.util.find_library", {"byway": "libbyway.so.0"}.get))
            with where[0], where[1]:
                with mock.patch.dict(os.environ, BYWAY_LIBRARY="/opt/libbyway.so"):
                    self.assertEqual(byway.find_library(), "/opt/libbyway.so")
                with mock.patch.dict(os.environ, BYWAY_LIBRARY=""):
                    self.assertEqual(byway.find_library(), str(beside))
                    beside.unlink()
                    self.assertEqual(byway.find_library(), "libbyway.so.0")
            with where[0], mock.patch("ctypes.util.find_library", {}.get), mock.patch.dict(os.environ, BYWAY_LIBRARY=""):
                with self.assertRaises(ImportError) as caught:
                    byway.find_library()
            self.assertIn(str(beside), str(caught.exception))

    def test_a_missing_library_is_named(self):
        env = {**os.environ, "PYTHONPATH": SOURCES, "BYWAY_LIBRARY": "/nowhere/libbyway.so"}
        done = subprocess.run([sys.executable, "-c", "import byway"], env=env, stderr=subprocess.PIPE,
                              universal_newlines=True)
        self.assertIn("/nowhere/libbyway.so", done.stderr)


if __name__ == "__main__":
    unittest.main()
