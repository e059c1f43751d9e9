"""The C programs of tests/c: shared and static, under valgrind, with sanitizers, with failpoints."""
import os

from artefacts import BUILD, LIMIT, PRIVATE, ROOT, compile_c, failpoints, generated, have, prefix, sanitized
from report import run

FOLDER = ROOT / "tests" / "c"
# Parts of other programs, not programs.
PIECES = {"zoo.c", "calls.c"}
# Need a library that panics on demand.
ON_DEMAND = {"panics"}
# Load the shared library themselves.
LOADERS = {"copies"}
# Children leave what they had on purpose: nothing is freed in them.
LEAVES = {"forked", "children"}
# Run threads against each other: what a race detector is for.
RACES = {"threads", "queues", "dials", "endings", "outside", "waits"}


def programs():
    return sorted(path.stem for path in FOLDER.glob("*.c") if path.name not in PIECES)


def sources(name):
    text = (FOLDER / f"{name}.c").read_text()
    wants_zoo = '"zoo.h"' in text or '"calls.c"' in text
    return [FOLDER / f"{name}.c"] + ([FOLDER / "zoo.c"] if wants_zoo else [])


def folder(kind):
    path = BUILD / "c" / kind
    path.mkdir(parents=True, exist_ok=True)
    return path


def build(name, kind):
    generated()
    output = folder(kind) / name
    if kind == "shared":
        library = prefix() / "lib"
        link = [f"-L{library}", "-lbyway", f"-Wl,-rpath,{library}", "-lpthread", "-ldl"]
    elif kind == "static":
        link = [str(prefix() / "lib" / "libbyway.a"), *PRIVATE]
    else:
        link = [str(failpoints() / "libbyway.a"), *PRIVATE]
    return compile_c(sources(name), output, link)


def arguments(name):
    if name not in LOADERS:
        return []
    library = prefix() / "lib" / "libbyway.so"
    copy = BUILD / "c" / "another-copy.so"
    copy.write_bytes(library.read_bytes())
    return [str(library), str(copy)]


def plain(report, kind):
    for name in programs():
        if name in ON_DEMAND or (kind == "static" and name in LOADERS):
            continue
        report.tap([str(build(name, kind)), *arguments(name)], name, timeout=LIMIT)


def shared(report):
    plain(report, "shared")


def static(report):
    plain(report, "static")


def on_demand(report):
    for name in sorted(ON_DEMAND):
        report.tap([str(build(name, "failpoints"))], name, timeout=LIMIT)


def memcheck(report):
    if not have("valgrind"):
        report.skip("C programs", "no valgrind", 2 * len(programs()))
        return
    for kind in ("shared", "static"):
        for name in programs():
            if name in ON_DEMAND or name in LOADERS:
                continue
            command = ["valgrind", "-q", "--error-exitcode=99", f"--leak-check={'no' if name in LEAVES else 'full'}",
                       "--show-leak-kinds=definite",
                       "--errors-for-leak-kinds=definite", "--fair-sched=try", "--num-callers=25",
                       f"--suppressions={FOLDER / 'valgrind.supp'}", str(build(name, kind))]
            done = run(command, timeout=5 * LIMIT, env={"BYWAY_TEST_SLOW": "1"})
            report.ok(done.returncode == 0, f"{name} ({kind})",
                      "\n".join(line for line in done.stdout.splitlines() if not line.startswith("ok ")))


def sanitizer(report, kind, names):
    compiler = os.environ.get("CC", "cc")
    library, runtime = sanitized(kind)
    flag = f"-fsanitize={kind}"
    for name in names:
        objects = []
        for source in sources(name):
            output = folder(kind) / f"{name}-{source.stem}.o"
            compile_c([source], output, [], extra=["-c", flag, "-fno-omit-frame-pointer"], compiler=compiler)
            objects.append(str(output))
        program = folder(kind) / name
        # The runtime is the one of Rust: it must be whole, and what it intercepts must be visible.
        done = run([compiler, "-o", str(program), *objects, str(library), "-Wl,--whole-archive", str(runtime),
                    "-Wl,--no-whole-archive", "-Wl,--export-dynamic", *PRIVATE, "-lstdc++"])
        if not report.ok(done.returncode == 0, f"{name} links", done.stdout):
            continue
        instrumented = run(["nm", str(program)]).stdout
        short = {"address": "__asan_report", "thread": "__tsan_func_entry"}[kind]
        report.ok(short in instrumented, f"{name} is instrumented")
        report.tap([str(program)], name, timeout=3 * LIMIT,
                   env={"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=98",
                        "BYWAY_TEST_SLOW": "1",
                        "LSAN_OPTIONS": f"suppressions={FOLDER / 'lsan.supp'}:print_suppressions=0",
                        "TSAN_OPTIONS": f"suppressions={FOLDER / 'tsan.supp'}:exitcode=97:halt_on_error=0"})


def address(report):
    sanitizer(report, "address", [n for n in programs() if n not in ON_DEMAND | LOADERS])


def thread(report):
    sanitizer(report, "thread", [n for n in programs() if n in RACES])


def fuzz(report, runs, seed):
    """Random call sequences under the address sanitizer, from a seed that is said."""
    os.environ.update(BYWAY_FUZZ_RUNS=runs, BYWAY_FUZZ_SEED=seed)
    print(f"fuzz: {runs} calls, seed {seed}")
    sanitizer(report, "address", ["sequences"])
