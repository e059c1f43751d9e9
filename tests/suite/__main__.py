"""Runs every test of the project, part by part, and counts.

python3 tests/suite [PART...]    all parts, or some
python3 tests/suite --vectors    every vector runner over BYWAY_VECTORS
python3 tests/suite --fuzz N [SEED]  N random calls over the header, N mutated inputs for each parser
python3 tests/suite --list       the parts
"""
import os
import re
import sys
import time

import c_programs
import cpp
import faces
import package
from artefacts import BUILD, CARGO, FEATURES, PRIVATE, ROOT, Broken, compile_c, prefix
from quickstart import quickstart
from report import Report, run, tail
from surface import surface


def form(report):
    report.run([CARGO, "fmt", "--check"], "cargo fmt --check")
    report.run([CARGO, "clippy", "--quiet", "--all-targets", "--features", f"{FEATURES},failpoints", "--", "-D",
                "warnings"], "cargo clippy")
    report.run([CARGO, "fmt", "--check", "--package", "byway-jni"], "cargo fmt --check of the JNI crate")
    report.run([CARGO, "clippy", "--quiet", "--package", "byway-jni", "--", "-D", "warnings"],
               "cargo clippy of the JNI crate")
    report.run([CARGO, "doc", "--quiet", "--no-deps", "--features", FEATURES], "cargo doc",
               env={"RUSTDOCFLAGS": "-D warnings"})


def rust_tests(report):
    """Unit, integration and documentation tests; the vector runner and the fuzzers have their own parts."""
    named = sorted(path.stem for path in (ROOT / "tests").glob("*.rs"))
    named += sorted(path.parent.name for path in (ROOT / "tests").glob("*/main.rs") if path.parent.name not in ("conform", "fuzz"))
    selection = ["--lib"] + [word for name in named for word in ("--test", name)]
    seen = 0
    for what, arguments in (("tests", selection), ("documentation", ["--doc"])):
        command = [CARGO, "test", "--quiet", "--no-fail-fast", "--features", FEATURES, *arguments]
        if what == "tests":
            # Apart, so that the time a test may take does not hang on what had to be compiled.
            run([*command, "--no-run"])
        done = run(command, timeout=1200)
        results = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", done.stdout, re.M)
        seen += len(results)
        for passed, failed, ignored in results:
            report.passed += int(passed)
            report.failed += int(failed)
            if int(ignored):
                report.skip(what, "ignored by name", int(ignored))
        for name in sorted(set(re.findall(r"^skipped?: (.*)$", done.stdout, re.M | re.I))):
            report.skip(name, "", 1)
        if done.returncode and not any(int(failed) for _, failed, _ in results):
            report.ok(False, f"cargo test ({what})", done.stdout)
        elif done.returncode:
            print(f"FAIL {report.name}: cargo test ({what})")
            for line in tail(done.stdout.splitlines(), 80):
                print(f"    {line}")
    report.ok(seen > 2, "test programs were run")


def vectors_rust(report):
    command = [CARGO, "test", "--quiet", "--features", FEATURES, "--test", "conform"]
    run([*command, "--no-run"])
    done = run(command, timeout=600)
    finish_vectors(report, done)


def vectors_c(report):
    """The same files through the C boundary."""
    folder = BUILD / "c" / "conform"
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted((ROOT / "tests" / "c" / "conform").glob("*.c"))
    if run(["sh", "-c", "echo '#include <cjson/cJSON.h>' | cc -E -"]).returncode:
        report.skip("every case through C", "no libcjson-dev")
        return
    program = compile_c(sources, folder / "conform", [str(prefix() / "lib" / "libbyway.a"), "-lcjson", *PRIVATE])
    finish_vectors(report, run([str(program)], timeout=300))


def vectors_cpp(report):
    """The same files through byway.hpp."""
    program = cpp.conform()
    if program is None:
        report.skip("every case through C++", "no nlohmann-json3-dev")
        return
    finish_vectors(report, run([str(program)], timeout=600))


def vectors_python(report):
    """The same files through the Python package."""
    done = run([sys.executable, str(ROOT / "tests" / "python" / "conform")], env=faces.python_environment())
    finish_vectors(report, done)


def allocations(report):
    """What the bars allow to be allocated, counted; times are for `make bench`."""
    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    wraps = ",".join(f"--wrap={name}" for name in ("malloc", "calloc", "realloc", "posix_memalign"))
    program = compile_c([ROOT / "benches" / "c" / "bars.c"], folder / "allocations",
                        [str(prefix() / "lib" / "libbyway.a"), f"-Wl,{wraps}", *PRIVATE],
                        extra=["-DCOUNT_ALLOCATIONS"])
    done = run([str(program)], timeout=300)
    bars = re.findall(r"^bar (\S+) (\S+) (\S+) (ok|short)$", done.stdout, re.M)
    report.ok(done.returncode == 0 and bars, "the bars are counted", done.stdout)
    for name, value, limit, verdict in bars:
        report.ok(verdict == "ok", f"{name}: {value}, at most {limit}")


def vectors_java(report):
    """The same files through the Java package."""
    faces.vectors_java(report, finish_vectors)


def fuzz_parsers(report, runs="400", seed="1"):
    """Every parser under mutated input: the same inputs for the same seed."""
    done = run([CARGO, "test", "--quiet", "--features", FEATURES, "--test", "fuzz"],
               env={"BYWAY_FUZZ_RUNS": runs, "BYWAY_FUZZ_SEED": seed})
    finish_vectors(report, done)


def finish_vectors(report, done):
    for line in done.stdout.splitlines():
        if line.startswith("FAIL "):
            print(line)
    if not report.counted(done.stdout):
        report.ok(False, "the runner ends with its count", done.stdout)
    elif done.returncode and not report.failed:
        report.ok(False, "the runner ends well", done.stdout)


# Name, function, in the order they run: cheap ones that find the most first.
PARTS = [
    ("form", form),
    ("rust", rust_tests),
    ("vectors-rust", vectors_rust),
    ("package", package.package),
    ("fuzz", fuzz_parsers),
    ("symbols", package.symbols),
    ("header", package.headers),
    ("abi", package.abi),
    ("surface", surface),
    ("c-shared", c_programs.shared),
    ("c-static", c_programs.static),
    ("c-panics", c_programs.on_demand),
    ("vectors-c", vectors_c),
    ("vectors-cpp", vectors_cpp),
    ("vectors-python", vectors_python),
    ("vectors-java", vectors_java),
    ("examples", package.examples),
    ("quickstart", quickstart),
    ("cpp", cpp.wrapper),
    ("python", faces.python),
    ("java", faces.java),
    ("dubbo", faces.estate),
    ("allocations", allocations),
    ("memcheck", c_programs.memcheck),
    ("asan", c_programs.address),
    ("tsan", c_programs.thread),
]


def perform(parts):
    reports = []
    for name, function in parts:
        report = Report(name)
        try:
            function(report)
        except Broken as broken:
            report.ok(False, "does not build", str(broken))
        except Exception as defect:  # a part that breaks must not hide the others
            report.ok(False, f"{type(defect).__name__}: {defect}")
        reports.append(report)
        print(f"{report.line()} ({time.monotonic() - report.began:.0f} s)", flush=True)
    return reports


def vectors():
    """One line per runner: `RUNNER: N passed, N failed[, N skipped (kinds ...)]`."""
    worst = 0
    for name, function in PARTS:
        if not name.startswith("vectors-"):
            continue
        report = Report(name.removeprefix("vectors-"))
        try:
            function(report)
        except Broken as broken:
            report.ok(False, "does not build", str(broken))
        line = f"{report.name}: {report.passed} passed, {report.failed} failed"
        if report.skips:
            line += f", {report.skipped} skipped ({'; '.join(what for what, _, _ in report.skips)})"
        print(line, flush=True)
        worst |= report.failed
    return 1 if worst else 0


def main(arguments):
    if "--vectors" in arguments:
        return vectors()
    if "--list" in arguments:
        print("\n".join(name for name, _ in PARTS))
        return 0
    if "--baseline" in arguments:
        package.bless_baseline()
        return 0
    if "--fuzz" in arguments:
        rest = arguments[arguments.index("--fuzz") + 1:]
        report = Report("fuzz")
        seed = rest[1] if len(rest) > 1 else str(int.from_bytes(os.urandom(4), "little"))
        c_programs.fuzz(report, rest[0], seed)
        fuzz_parsers(report, rest[0], seed)
        print(report.line())
        return 1 if report.failed else 0
    unknown = set(arguments) - {name for name, _ in PARTS}
    if unknown:
        print(f"no such part: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    reports = perform([part for part in PARTS if not arguments or part[0] in arguments])
    passed = sum(report.passed for report in reports)
    failed = sum(report.failed for report in reports)
    skipped = sum(report.skipped for report in reports)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
