"""The same work on OkHttp 5 and 4, on Dubbo and on byway, in one JVM: python3 benches/peers [okhttp5 okhttp4 dubbo]

Builds byway's jar and the benchmarks (Maven), runs each module's in JMH, twice, so that what disturbs one round does not
decide, and takes the best of many short iterations. Prints a table and `bar NAME VALUE LIMIT ok|short`: how many times as
long the peer takes, at least LIMIT. BYWAY_JAR names a jar that is there, JMH what JMH gets for arguments.
"""
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
JAVA = ROOT / "bindings" / "java"
JMH = shlex.split(os.environ.get("JMH", "-f 1 -wi 5 -w 400ms -i 40 -r 25ms -foe true"))
ROUNDS = 2
# Serial: no thread of a collector competes with what is measured.
JVM = "-Xms1g -Xmx1g -XX:+UseSerialGC"

# What is compared: name of the bar, peer, byway, least ratio; None is only shown. By module, and by the number of providers.
BARS = {
    "okhttp5": [
        ("selection_static_dns", "okhttp", "bywayTable", 8),
        ("selection_static_dns_one_failed", "okhttpFailed", "bywayTableFailed", 8),
        ("selection_java_dns", "okhttp", "bywayLookup", 2),
        ("selection_java_dns_one_failed", "okhttpFailed", "bywayLookupFailed", 2),
        ("selection_proxy_selector_static_dns", "okhttpProxySelector", "bywayTableProxySelector", None),
        ("selection_proxy_selector_java_dns", "okhttpProxySelector", "bywayLookupProxySelector", None),
        ("selection_with_socket_addresses", "okhttp", "bywayTableAddresses", None),
        ("selection_by_selector", "okhttp", "bywayTableSelector", None),
        ("postponed", "okhttpPostponed", "bywayPostponed", None),
        ("not_postponed", "okhttpNotPostponed", "bywayNotPostponed", None),
    ],
    "dubbo": [
        ("built_in", "dubbo", "byway", {10: 40, 1000: 1500}),
        ("condition", "dubboCondition", "bywayCondition", {10: 300, 1000: 30000}),
        ("static_tag", "dubboTag", "bywayTag", {10: 20, 1000: 8000}),
    ],
}
BARS["okhttp4"] = [(name, peer, own, None) for name, peer, own, _ in BARS["okhttp5"]]


def build(modules):
    given = os.environ.get("BYWAY_JAR")
    if not given:
        subprocess.run(["make", "--no-print-directory", "jar"], cwd=ROOT, check=True)
    # Not those of sources and documentation.
    jar = given or next(path for path in JAVA.glob("target/byway-*.jar") if path.stem.split("-")[-1][0].isdigit())
    subprocess.run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "-pl", ",".join(modules), "package",
                    f"-Dbyway.jar={jar}"], check=True)
    return jar


def measure(module, jar, times):
    """Adds every iteration's nanoseconds to `times`, by benchmark and number of providers."""
    folder = HERE / module / "target"
    result = folder / "jmh.json"
    classpath = f"{folder / 'classes'}:{folder / 'lib'}/*:{jar}"
    done = subprocess.run(["java", "-cp", classpath, "org.openjdk.jmh.Main", *JMH, "-jvmArgs", JVM, "-rf", "json",
                           "-rff", str(result)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(done.stdout[-4000:])
    for one in json.loads(result.read_text()):
        name = one["benchmark"].rsplit(".", 1)[1]
        size = int(one.get("params", {}).get("providers", 0))
        raw = one["primaryMetric"]["rawData"]
        times.setdefault((name, size), []).extend(value for fork in raw for value in fork)


def show(module, times):
    best = {key: min(values) for key, values in times.items()}
    print(f"\n{module:56} {'peer ns':>14} {'byway ns':>12} {'ratio':>12}")
    lines = []
    for name, peer, own, limits in BARS[module]:
        for size in sorted({size for benchmark, size in best if benchmark == peer}):
            if (own, size) not in best:
                continue
            ratio = best[peer, size] / best[own, size]
            full = f"{module}_{name}" + (f"_{size}" if size else "")
            print(f"{full:56} {best[peer, size]:14.1f} {best[own, size]:12.1f} {ratio:12.1f}")
            limit = limits.get(size) if isinstance(limits, dict) else limits
            if limit:
                lines.append(f"bar {full} {ratio:.1f} {limit} {'ok' if ratio >= limit else 'short'}")
    print("\n".join(lines), flush=True)


def main(modules):
    modules = modules or ["okhttp5", "okhttp4", "dubbo"]
    jar = build(modules)
    for module in modules:
        times = {}
        for _ in range(ROUNDS):
            measure(module, jar, times)
        show(module, times)


if __name__ == "__main__":
    main(sys.argv[1:])
