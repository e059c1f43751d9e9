"""The libraries the C tests run against: as shipped, with failpoints, with sanitizers."""
import os
import platform
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from header import ROOT
from report import run

BUILD = ROOT / "build"
GENERATED = BUILD / "c"
PREFIX = BUILD / "prefix"
PROFILE = os.environ.get("PROFILE", "release")
FEATURES = os.environ.get("FEATURES", "script")
CARGO = os.environ.get("CARGO", "cargo")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PRIVATE = "-lpthread -lm -ldl -lrt -lutil".split()
WARNINGS = "-std=c99 -D_GNU_SOURCE -pedantic -Wall -Wextra -Werror -g -O1".split()
TRIPLE = f"{platform.machine()}-unknown-linux-gnu"


# Seconds for a program that takes few of them alone; what is left over is for a slow, loaded machine.
LIMIT = 120


class Broken(Exception):
    """A library that does not build: the part that wanted it fails."""


def have(tool):
    return shutil.which(tool) is not None


def version():
    """Of the library."""
    return re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)


@lru_cache
def generated():
    import generate
    generate.main(GENERATED)
    return GENERATED


@lru_cache
def prefix():
    """An installed prefix of the library as shipped."""
    shutil.rmtree(PREFIX, ignore_errors=True)
    for goal in ("build", "install"):
        done = run(["make", "--no-print-directory", goal, f"PREFIX={PREFIX}", f"PROFILE={PROFILE}",
                    f"FEATURES={FEATURES}"])
        if done.returncode:
            raise Broken(done.stdout)
    return PREFIX


@lru_cache
def failpoints():
    """Folder with a debug library that panics on demand."""
    done = run([CARGO, "build", "--lib", "--features", f"{FEATURES},failpoints"])
    if done.returncode:
        raise Broken(done.stdout)
    folder = BUILD / "failpoints"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("libbyway.so", "libbyway.a"):
        shutil.copy2(TARGET / "debug" / name, folder / name)
    return folder


@lru_cache
def sanitized(kind):
    """(static library, runtime of the sanitizer), both sides of the boundary instrumented."""
    flags = {"address": "-Zsanitizer=address",
             "thread": "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"}[kind]
    target = TARGET / kind
    done = run([CARGO, "rustc", "--lib", "--crate-type", "staticlib", "--target", TRIPLE, "--target-dir", str(target),
                "--features", FEATURES],
               env={"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": f"{flags} -Cforce-frame-pointers=yes"})
    if done.returncode:
        raise Broken(done.stdout)
    sysroot = run(["rustc", "--print", "sysroot"]).stdout.strip()
    short = {"address": "asan", "thread": "tsan"}[kind]
    runtimes = list(Path(sysroot).glob(f"lib/rustlib/{TRIPLE}/lib/librustc-*_rt.{short}.a"))
    if not runtimes:
        raise Broken(f"this Rust has no {short} runtime")
    return target / TRIPLE / "debug" / "libbyway.a", runtimes[0]


def compile_c(sources, output, link, extra=(), compiler=None):
    """A test program; warnings are errors."""
    command = [compiler or os.environ.get("CC", "cc"), *WARNINGS, *extra, f"-I{ROOT / 'include'}",
               f"-I{ROOT / 'tests' / 'c'}", f"-I{generated()}", "-o", str(output), *map(str, sources), *link]
    done = run(command)
    if done.returncode:
        raise Broken(" ".join(command) + "\n" + done.stdout)
    return output


CPP_WARNINGS = "-Wall -Wextra -Wpedantic -Werror".split()


def compile_cpp(sources, output, link, flags=(), compiler="g++"):
    """A program in C++, its files compiled side by side; warnings are errors. Answers as `run` does."""
    folder = Path(f"{output}.objects")
    folder.mkdir(parents=True, exist_ok=True)
    command = [compiler, *flags, *CPP_WARNINGS, f"-I{ROOT / 'include'}"]
    objects = [folder / f"{Path(source).stem}.o" for source in sources]

    def compile_one(pair):
        return run([*command, "-c", str(pair[0]), "-o", str(pair[1])])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(compile_one, zip(sources, objects)):
            if done.returncode:
                return done
    return run([*command, "-o", str(output), *map(str, objects), *link])
