"""Builds and runs the bars in C against the shipped library: times, then allocations, then instructions."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "suite"))

from artefacts import BUILD, PRIVATE, Broken, compile_c, have, prefix  # noqa: E402


def show(command):
    return subprocess.run(command, cwd=ROOT).returncode


def instructions(program, name, count):
    """Instructions of `count` rounds and the set-up, as callgrind counts them."""
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program),
                           "--instructions", name, str(count)], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found.group(1)) if found else None


def main():
    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    source = ROOT / "benches" / "c" / "bars.c"
    library = prefix() / "lib"
    shared = compile_c([source], folder / "bars", [f"-L{library}", "-lbyway", f"-Wl,-rpath,{library}", "-lpthread"],
                       extra=["-O2"])
    status = show([str(shared)])
    wraps = ",".join(f"--wrap={name}" for name in ("malloc", "calloc", "realloc", "posix_memalign"))
    counted = compile_c([source], folder / "allocations", [str(library / "libbyway.a"), f"-Wl,{wraps}", *PRIVATE],
                        extra=["-O2", "-DCOUNT_ALLOCATIONS", "-Wno-missing-prototypes"])
    status |= show([str(counted)])
    if have("valgrind"):
        print(f"\n{'':36} instructions")
        for name in re.findall(r'^    \{ "(\w+)"', source.read_text(), re.M):
            few, many = instructions(shared, name, 1000), instructions(shared, name, 2000)
            if few and many:
                print(f"{name:36} {(many - few) / 1000:12.1f}")
    else:
        print("# instructions: no valgrind")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as broken:
        sys.exit(str(broken))
