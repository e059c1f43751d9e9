"""One estate, several callers: python3 examples/dubbo/run.py

Starts ZooKeeper (Debian's package) and three real Dubbo providers of HelloService on ports 20880, 20881 and 20882,
then every caller there is: a C program, a Python one, a Dubbo consumer whose router is byway, and Dubbo's own consumer
beside them. An administrator writes a rule that sends `hello` to 20880 and `hello2` to 20882,
changes it, breaks it, repairs it and deletes it; a provider goes and returns. Every caller must follow each change, which
takes it a fraction of a second, and no call may fail that the rule did not ask for. Ends with `N passed, N failed`.

Needs: java, mvn, cc, unshare, ip, the package zookeeper, and a built library (`make build`; BYWAY_LIBRARY names another one).
"""
import glob
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SERVICE = "org.example.HelloService"
RULE = f"/dubbo/config/dubbo/{SERVICE}::.condition-router"
PORTS = (20880, 20881, 20882)
# Dubbo registers no loopback address. Everything runs in a network namespace of its own with this one on its loopback
# device, so the ports are free and nothing leaves it.
HOST = "10.9.8.7"
INSIDE = "BYWAY_EXAMPLE_INSIDE"
CLASSPATH = f"{HERE}/target/classes:{HERE}/target/lib/*"
JAVA_BINDING = ROOT / "bindings" / "java"
BYWAY_JARS = [JAVA_BINDING / "target" / "byway-0.1.0.jar", JAVA_BINDING / "dubbo" / "target" / "byway-dubbo-0.1.0.jar"]
# A caller has followed when this many calls in a row are as expected; on a quiet machine within a fraction of a second
# after the administrator's command has returned, on a loaded one when it comes to it.
ENOUGH = 10
PATIENCE = 60.0
# And it stays so for this long.
STAYS = 1.0
JARS = ("zookeeper zookeeper-jute slf4j-api slf4j-nop netty-all netty-handler netty-transport netty-common "
        "netty-transport-native-epoll netty-transport-native-unix-common netty-buffer netty-codec metrics-core "
        "snappy-java commons-cli").split()
JAVA = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]

passed = failed = 0
# Seconds from each of the administrator's changes to the last call that did not know of it.
delays = []


def check(good, what, detail=""):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
    print(f"{'ok' if good else 'FAIL'}  {what}{'' if good else ': ' + detail}", flush=True)
    return good


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def debian_classpath():
    return ":".join(f"/usr/share/java/{jar}.jar" for jar in JARS)


class ZooKeeper:
    def __init__(self, folder):
        self.address = f"127.0.0.1:{free_port()}"
        config = folder / "zoo.cfg"
        host, port = self.address.split(":")
        config.write_text(f"tickTime=500\ndataDir={folder}/data\nclientPort={port}\nclientPortAddress={host}\n"
                          "admin.enableServer=false\n4lw.commands.whitelist=*\n")
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        self.process = subprocess.Popen([*JAVA, "-cp", debian_classpath(), main, str(config)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.time() + 180
        while not self.answers():
            if time.time() > end:
                raise SystemExit("ZooKeeper does not start")
            time.sleep(0.05)

    def answers(self):
        host, port = self.address.split(":")
        try:
            with socket.create_connection((host, int(port)), 1) as one:
                one.sendall(b"ruok")
                return one.recv(4) == b"imok"
        except OSError:
            return False

    def administrator(self, *command):
        """ZooKeeper's own command line."""
        main = "org.apache.zookeeper.ZooKeeperMain"
        done = subprocess.run([*JAVA, "-cp", debian_classpath(), main, "-server", self.address, *command],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
        return done.stdout

    def write_rule(self, text):
        for path in ("/dubbo", "/dubbo/config", "/dubbo/config/dubbo"):
            if path not in self.made:
                self.administrator("create", path, "")
                self.made.add(path)
        verb = "set" if RULE in self.made else "create"
        self.administrator(verb, RULE, text)
        self.made.add(RULE)

    made = set()

    def wait_for_provider(self, port):
        """The port is open a little before the registry knows."""
        end = time.time() + 180
        while f"{HOST}%3A{port}" not in self.administrator("ls", f"/dubbo/{SERVICE}/providers"):
            if time.time() > end:
                raise SystemExit(f"the provider on {port} does not register")

    def delete_rule(self):
        self.administrator("delete", RULE)
        self.made.discard(RULE)


def rule(hello, hello2):
    return (f"configVersion: v3.0\nscope: service\nkey: {SERVICE}\nenabled: true\nforce: true\nruntime: true\n"
            "conditions:\n"
            f"- interface={SERVICE}&method=hello=>address=*:{hello}\n"
            f"- interface={SERVICE}&method=hello2=>address=*:{hello2}\n")


class Program:
    """A caller; remembers what it has printed."""

    def __init__(self, name, command, follows, env=None):
        self.name, self.calls, self.ready = name, [], threading.Event()
        # Dubbo's own consumer is watched, and judged only where its routers promise the same.
        self.follows = follows
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, **(env or {})})
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words == ["ready"]:
                self.ready.set()
            elif len(words) == 3 and words[0].isdigit():
                self.calls.append((int(words[0]) / 1000, words[1], words[2]))

    def between(self, begin, end):
        return [call for call in list(self.calls) if begin <= call[0] < end]

    def since(self, begin):
        return self.between(begin, float("inf"))


class Provider:
    def __init__(self, zookeeper, classpath, port):
        env = {**os.environ, "DUBBO_IP_TO_REGISTRY": HOST}
        command = [*JAVA, "-Xmx160m", "-Djava.net.preferIPv4Stack=true", "-Ddubbo.service.shutdown.wait=2000",
                   "-cp", classpath, "org.example.Provider", zookeeper.address, str(port)]
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)

    def wait(self):
        end = time.time() + 180
        while time.time() < end and self.process.poll() is None:
            try:
                socket.create_connection((HOST, self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"the provider on {self.port} does not start")


def step(what, programs, expected, spread=()):
    """`expected`: for each method the answers that may be seen; `spread`: answers each caller must see of hello.

    Waits until every caller has followed, then watches that it stays so."""
    begin = time.time()
    watched = [program for program in programs if program.follows]
    while time.time() < begin + PATIENCE and not all(followed(one, begin, expected, spread) for one in watched):
        time.sleep(0.02)
    settled = time.time()
    while time.time() < begin + 2 * PATIENCE and not all(len(one.since(settled)) >= ENOUGH for one in watched):
        time.sleep(0.02)
    time.sleep(STAYS)
    for program in watched:
        calls = program.since(settled)
        wrong = [call for call in calls if call[2] not in expected[call[1]]]
        seen = {call[2] for call in program.since(begin) if call[1] == "hello"}
        good = len(calls) >= ENOUGH and not wrong and all(answer in seen for answer in spread)
        # The last call that still went by the state before; 0 when there was none after the command had returned.
        before = max((call[0] for call in program.since(begin) if call[2] not in expected[call[1]]), default=begin)
        delays.append(before - begin)
        check(good, f"{program.name}: {what} ({len(calls)} calls, followed after {before - begin:.2f} s)",
              f"{len(wrong)} of {len(calls)} wrong, for example {wrong[:3]}, seen {sorted(seen)}")


def followed(program, begin, expected, spread):
    """Whether its latest calls are as expected, and all of the spread has been seen."""
    calls = program.since(begin)
    seen = {call[2] for call in calls if call[1] == "hello"}
    return (len(calls) >= ENOUGH and all(call[2] in expected[call[1]] for call in calls[-ENOUGH:])
            and all(answer in seen for answer in spread))


def library():
    """The static library; the shared one lies beside it."""
    given = os.environ.get("BYWAY_LIBRARY")
    found = [given] if given else sorted(
        (path for kind in ("release", "quick", "debug") for path in glob.glob(f"{ROOT}/target/{kind}/libbyway.a")),
        key=os.path.getmtime, reverse=True)
    if not found:
        raise SystemExit("no libbyway.a: run make build first")
    return pathlib.Path(found[0])


def caller(folder):
    program = folder / "caller"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", f"-I{ROOT}/include", "-o", str(program),
                    str(HERE / "caller.c"), str(library()), "-lpthread", "-lm", "-ldl", "-lrt", "-lutil"], check=True)
    return program


def classes():
    """Builds the Java side, with everything it needs beside it: the example, and byway with its router for Dubbo."""
    for pom, *more in ((HERE / "pom.xml", "dependency:copy-dependencies", "-DoutputDirectory=target/lib"),
                       (JAVA_BINDING / "all.xml", "-DskipTests", "-Dmaven.javadoc.skip=true")):
        done = subprocess.run(["mvn", "-q", "-B", "-f", str(pom), "package", *more], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(done.stdout[-2000:])


def callers(zookeeper, folder, classpath):
    programs = [Program("C", [str(caller(folder)), zookeeper.address], True)]
    python = ROOT / "bindings" / "python" / "src"
    if python.exists():
        programs.append(Program("Python", [sys.executable, str(HERE / "caller.py"), zookeeper.address], True,
                                {"PYTHONPATH": str(python), "BYWAY_LIBRARY": str(library().with_suffix(".so"))}))
    else:
        print("skipped: Python caller: no binding")
    consumer = [*JAVA, "-Xmx160m", "-Djava.net.preferIPv4Stack=true", f"-Dio.byway.workdir={folder}", "-cp",
                ":".join([classpath, *map(str, BYWAY_JARS)]), "org.example.Consumer", zookeeper.address]
    # Dubbo's consumer twice: byway in place of all of its routers, and as it is.
    programs.append(Program("Java", [*consumer, "-default,byway"], True))
    programs.append(Program("Dubbo", consumer, False))
    return programs


def scenario(zookeeper, providers, programs, classpath):
    any_port = {str(port) for port in PORTS}
    free = {"hello": any_port, "hello2": any_port}
    begin = time.time()
    step("without a rule, everybody serves", programs, free, spread=("20880", "20882"))
    zookeeper.write_rule(rule(20880, 20882))
    only = {"hello": {"20880"}, "hello2": {"20882"}}
    step("hello only to 20880, hello2 only to 20882", programs, only)
    zookeeper.write_rule(rule(20881, 20880))
    changed = {"hello": {"20881"}, "hello2": {"20880"}}
    step("the rule is changed", programs, changed)
    zookeeper.write_rule("conditions: [[[")
    step("a broken rule leaves the last good one", programs, changed)
    zookeeper.write_rule(rule(20880, 20882))
    step("the rule is repaired", programs, only)
    zookeeper.delete_rule()
    step("the rule is deleted", programs, free, spread=("20880", "20882"))
    gone = providers[1]
    gone.process.terminate()
    gone.process.wait(180)
    left = {"20880", "20882"}
    step("a provider has gone", programs, {"hello": left, "hello2": left})
    providers[1] = Provider(zookeeper, classpath, gone.port)
    providers[1].wait()
    zookeeper.wait_for_provider(gone.port)
    step("it is back", programs, free, spread=("20881",))
    providers[1].process.kill()
    providers[1].process.wait()
    step("a provider is killed: calls go to the others", programs, {"hello": left, "hello2": left})
    print(f"      every change was followed within {max(delays):.2f} s")
    end = time.time()
    for program in programs:
        calls = program.between(begin, end)
        bad = [call for call in calls if call[2] in ("none", "fail")]
        if program.follows:
            check(not bad, f"{program.name}: none of {len(calls)} calls failed", f"{len(bad)}: {bad[:5]}")
        else:
            print(f"      {program.name}'s own consumer: {len(calls)} calls, {len(bad)} failed")


def main():
    for tool in ("java", "mvn", os.environ.get("CC", "cc"), "unshare", "ip"):
        if not shutil.which(tool):
            print(f"skipped: dubbo example: no {tool}")
            print("0 passed, 0 failed")
            return 0
    if not os.path.exists("/usr/share/java/zookeeper.jar"):
        print("skipped: dubbo example: the package zookeeper is not installed")
        print("0 passed, 0 failed")
        return 0
    if INSIDE not in os.environ:
        print("building the Java side with Maven, and byway in it with Cargo: some minutes the first time", flush=True)
        classes()
        users = [] if os.geteuid() == 0 else ["--map-root-user"]
        inside = ["unshare", "--net", *users, "sh", "-c",
                  f"ip link set lo up && ip addr add {HOST}/32 dev lo && exec {sys.executable} {__file__}"]
        return subprocess.run(inside, env={**os.environ, INSIDE: "1"}).returncode
    folder = pathlib.Path(tempfile.mkdtemp(prefix="byway-dubbo-"))
    processes, zookeeper = [], None
    try:
        classpath = CLASSPATH
        zookeeper = ZooKeeper(folder)
        providers = [Provider(zookeeper, classpath, port) for port in PORTS]
        processes = providers
        for provider in providers:
            provider.wait()
        programs = callers(zookeeper, folder, classpath)
        processes = providers + programs
        for program in programs:
            if not program.ready.wait(180):
                check(False, f"{program.name}: ready", "not within three minutes")
        scenario(zookeeper, providers, programs, classpath)
        processes = providers + programs
    finally:
        for one in [*processes, *([zookeeper] if zookeeper else [])]:
            one.process.kill()
            one.process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
