"""Side by side with Dubbo's own consumer: python3 tests/dubbo [SEED [COUNT]]

Writes generated rules and provider lists to a real ZooKeeper. A Java process asks Dubbo's own consumers whom they would
call; here byway, in dialect `dubbo-3` and bound to the same ZooKeeper, is asked the same. Weighted draws are made often,
and the different outcomes compared. What differs must be one of DIFFERENCES. Ends with `N passed, N failed`.

Needs java, mvn, the package zookeeper, and a built library (BYWAY_LIBRARY).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "examples" / "dubbo"), str(ROOT / "bindings" / "python" / "src")]

import generate  # noqa: E402
import run as estate  # noqa: E402

SEED, COUNT = 20880, 200
# Dubbo takes its own address for the consumer's.
CONSUMER = "10.9.8.7"


def affinity_to_nothing(case):
    """Neither the consumer nor any provider has what an affinity rule of ratio 0 compares."""
    rule = next((text for key, text in case["rules"].items() if key.endswith(".affinity-router")), "")
    key = re.search(r"^  key: (\w+)$", rule, re.M)
    if not key or "enabled: false" in rule or not re.search(r"^  ratio: 0$", rule, re.M):
        return False
    return key[1] not in case["consumer"] and not any(f"&{key[1]}=" in url for url in case["providers"])


def overrides(case):
    return next((text for key, text in case["rules"].items() if key.endswith(".configurators")), "")


def rule_of_an_overridden_key(case):
    """An override changes what a rule asks for, or the static tag."""
    if "'dubbo.tag'" in overrides(case):
        return True
    keys = set(re.findall(r"^    (region|env|level|weight): ", overrides(case), re.M))
    rules = [text for key, text in case["rules"].items() if not key.endswith(".configurators")]
    return any(re.search(rf"\b{key}\b", text) for key in keys for text in rules)


def provider_disabled(case):
    return "disabled: true" in overrides(case)


# What byway does otherwise in dialect dubbo-3, on purpose; docs/rules.md has the reasons.
DIFFERENCES = {
    "affinity to what nobody has keeps the list": affinity_to_nothing,
    "an override counts for rules": rule_of_an_overridden_key,
    "an override takes a provider out": provider_disabled,
}


def answers_of_dubbo(zookeeper, folder, cases):
    classes = folder / "classes"
    made = subprocess.run(["javac", "-nowarn", "-d", str(classes), "-cp", estate.CLASSPATH, str(HERE / "Chooser.java")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        raise SystemExit(made.stdout)
    shutil.copytree(HERE / "META-INF", classes / "META-INF")
    command = [*estate.JAVA, "-Xmx700m", "-Djava.net.preferIPv4Stack=true",
               "-Ddubbo.application.service-discovery.migration=FORCE_INTERFACE", "-Ddubbo.application.logger=slf4j",
               "-cp", f"{classes}:{estate.CLASSPATH}", "org.example.Chooser", zookeeper.address, str(cases),
               str(folder / "answers")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400,
                          env={**os.environ, "DUBBO_IP_TO_REGISTRY": CONSUMER})
    if done.returncode:
        raise SystemExit(done.stdout[-4000:])
    return [json.loads(line) for line in (folder / "answers").read_text().splitlines()]


def argument(value):
    """As Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Byway:
    def __init__(self, zookeeper):
        os.environ["BYWAY_LIBRARY"] = str(estate.library().with_suffix(".so"))
        import byway
        self.byway = byway
        self.engine = byway.Engine(seed=7, dialect=byway.Dialect.DUBBO_3)
        self.source = byway.Source.zookeeper(self.engine, zookeeper.address)

    def outcomes(self, case, consumer):
        """For each call the different lists that came of its draws."""
        chain = self.byway.Chain(self.engine, consumer)
        chain.bind(self.source, 30)
        invokers, session = chain.invokers, chain.session()
        addresses = {}
        for row in range(len(invokers)):
            addresses[invokers.tag(row)] = invokers.url(row).split("://")[1].split("/")[0]
        made = []
        for call in case["calls"]:
            invocation = self.byway.Invocation(
                call["method"], arguments=[argument(one) for one in call["arguments"]], attachments=call["attachments"])
            drawn = {tuple(sorted(addresses[tag] for tag in session.tags(invocation))) for _ in range(case["draws"])}
            made.append((drawn, chain, invocation))
        return made


def show(drawn):
    return " or ".join(sorted("{" + ", ".join(one) + "}" for one in drawn))


def compare(cases, theirs, byway, expected):
    passed, failed, explained, calls, decided = 0, [], {}, 0, 0
    for case, answer in zip(cases, theirs):
        assert case["name"] == answer["name"]
        wrong = []
        for call, other, snapshot, (own, chain, invocation) in zip(
                case["calls"], answer["calls"], answer["snapshots"], byway.outcomes(case, answer["consumer"])):
            calls += 1
            decided += any(0 < len(one) < len(case["providers"]) for one in own)
            other = {tuple(sorted(one)) for one in other}
            if own == other:
                continue
            name = next((name for name, applies in DIFFERENCES.items() if applies(case)), None)
            if name:
                explained[name] = explained.get(name, 0) + 1
            else:
                wrong.append(f"    {call}\n    byway: {show(own)}\n    dubbo: {show(other)}\n"
                             + snapshot + "\n" + chain.explain(invocation))
        if wrong:
            failed.append((case, answer, wrong))
        else:
            passed += 1
    for case, answer, wrong in failed:
        print(f"FAIL  {case['name']}: {len(wrong)} of {len(case['calls'])} calls differ")
        print(f"    {answer['consumer']}")
        for key, text in case["rules"].items():
            print(f"    {key}:\n" + "".join(f"        {line}\n" for line in text.splitlines()), end="")
        print("\n".join(wrong))
    unseen = [name for name in expected if name not in explained]
    for name in unseen:
        print(f"FAIL  the difference '{name}' was not seen")
    # Rules that decide nothing would compare nothing.
    idle = decided * 2 < calls
    if idle:
        print("FAIL  most calls go to everybody or nobody: the cases test nothing")
    print(f"{len(cases)} cases, {calls} calls, {decided} of them to some of the providers; "
          f"differences by design: {explained or 'none'}")
    return passed, len(failed) + len(unseen) + idle


def main(arguments):
    for tool in ("java", "javac", "mvn"):
        if not shutil.which(tool):
            print(f"skipped: side by side with Dubbo: no {tool}\n0 passed, 0 failed")
            return 0
    if not os.path.exists("/usr/share/java/zookeeper.jar"):
        print("skipped: side by side with Dubbo: the package zookeeper is not installed\n0 passed, 0 failed")
        return 0
    seed, count = ([*map(int, arguments)] + [SEED, COUNT][len(arguments):])[:2]
    estate.classes()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="byway-side-by-side-"))
    zookeeper = None
    try:
        zookeeper = estate.ZooKeeper(folder)
        cases = generate.write(folder / "cases", seed, count)
        theirs = answers_of_dubbo(zookeeper, folder, folder / "cases")
        # Other seeds need not show every difference.
        expected = DIFFERENCES if (seed, count) == (SEED, COUNT) else ()
        passed, failed = compare(cases, theirs, Byway(zookeeper), expected)
    finally:
        if zookeeper:
            zookeeper.process.kill()
            zookeeper.process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
