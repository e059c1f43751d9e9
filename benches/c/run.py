"""Builds and runs the bars in C against the shipped library: times, then allocations, then instructions; then those in
Python, in Java and in Rust."""
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "suite"))

import faces  # noqa: E402
from artefacts import BUILD, PRIVATE, Broken, compile_c, compile_cpp, have, prefix  # noqa: E402
from report import Report  # noqa: E402


# Bars that were passed over: name, value, limit.
short = []


def show(command, **options):
    """Runs a program, shows what it says as it comes, and notes which bars are short."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options) as child:
        for line in child.stdout:
            print(line, end="", flush=True)
            bar = re.match(r"bar (\S+) (\S+) (\S+) short$", line)
            if bar:
                short.append(bar.groups())
    return child.returncode


def reasons():
    """Why a bar is short, as far as it is known: benches/short.txt, a pattern and a sentence a line."""
    lines = (ROOT / "benches" / "short.txt").read_text().splitlines()
    return [line.split(": ", 1) for line in lines if line and not line.startswith("#")]


def summary():
    known = reasons()
    print(f"\n{len(short)} bars are short")
    for name, value, limit in short:
        why = next((why for pattern, why in known if fnmatch(name, pattern)), "not explained yet")
        print(f"short {name}: {value}, limit {limit}: {why}")


def instructions(program, name, count):
    """Instructions of `count` rounds and the set-up, as callgrind counts them."""
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program),
                           "--instructions", name, str(count)], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found.group(1)) if found else None


def main():
    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    library = prefix() / "lib"
    status = 0
    for source in sorted((ROOT / "benches" / "c").glob("*.c")):
        text = source.read_text()
        program = compile_c([source], folder / source.stem,
                            [f"-L{library}", "-lbyway", f"-Wl,-rpath,{library}", "-lpthread", "-lm"], extra=["-O2"])
        print(f"\n{source.stem}", flush=True)
        status |= show([str(program)])
        if "COUNT_ALLOCATIONS" in text:
            wraps = ",".join(f"--wrap={name}" for name in ("malloc", "calloc", "realloc", "posix_memalign"))
            counted = compile_c([source], folder / f"{source.stem}-allocations",
                                [str(library / "libbyway.a"), f"-Wl,{wraps}", *PRIVATE],
                                extra=["-O2", "-DCOUNT_ALLOCATIONS"])
            status |= show([str(counted)])
        if "--instructions" in text:
            count_instructions(program, text)
    for source in sorted((ROOT / "benches" / "cpp").glob("*.cpp")):
        print(f"\nC++ {source.stem}", flush=True)
        program = folder / f"cpp-{source.stem}"
        made = compile_cpp([source], program, [f"-L{library}", "-lbyway", f"-Wl,-rpath,{library}"], ["-std=c++17", "-O2"])
        print(made.stdout, end="")
        status |= made.returncode or show([str(program)])
    for source in sorted((ROOT / "benches" / "python").glob("*.py")):
        print(f"\npython {source.stem}", flush=True)
        status |= show([sys.executable, str(source)], env={
            **os.environ, "BYWAY_LIBRARY": str(library / "libbyway.so"),
            "PYTHONPATH": str(ROOT / "bindings" / "python" / "src"),
        })
    status |= java()
    for source in sorted((ROOT / "benches").glob("*.rs")):
        print(f"\n{source.stem}", flush=True)
        status |= show([os.environ.get("CARGO", "cargo"), "bench", "--quiet", "--features", "script", "--bench",
                        source.stem])
    summary()
    return status


def java():
    """The bars of the JVM's face, on its library as shipped."""
    print("\njava", flush=True)
    report = Report("java")
    command = faces.java_command(report, "the bars")
    if command is None:
        print(f"# {report.line()}")
        return report.failed
    return show([word for word in command if word != "-Xcheck:jni"] + ["io.byway.Bars"])


def count_instructions(program, text):
    if not have("valgrind"):
        print("# instructions: no valgrind")
        return
    print(f"\n{'':36} instructions")
    for name in re.findall(r'^    \{ "(\w+)"', text, re.M):
        few, many = instructions(program, name, 1000), instructions(program, name, 2000)
        if few and many:
            print(f"{name:36} {(many - few) / 1000:12.1f}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as broken:
        sys.exit(str(broken))
