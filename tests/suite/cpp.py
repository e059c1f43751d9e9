"""The face for C++: byway.hpp as its users compile it, and its examples."""
import re

from artefacts import BUILD, LIMIT, PRIVATE, ROOT, compile_cpp, have, prefix
from report import run

SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Compiler, standard, further flags. The library is as shipped: what is watched is the header and what it hands over.
WRAPPERS = [
    ("g++", "17", SANITIZED),
    ("g++", "17", ["-O0", "-fno-exceptions"]),
    ("g++", "2b", ["-O0"]),
    ("clang++", "17", SANITIZED),
    ("clang++", "20", ["-O0"]),
    ("clang++", "2b", ["-O0", "-fno-exceptions"]),
]


def wrapper(report):
    """Every standard it claims, gcc and clang, with and without exceptions, sanitizers on."""
    library = prefix() / "lib" / "libbyway.a"
    sources = sorted((ROOT / "tests" / "cpp").glob("*.cpp"))
    folder = BUILD / "cpp"
    folder.mkdir(parents=True, exist_ok=True)
    for compiler, standard, flags in WRAPPERS:
        what = " ".join([compiler, f"-std=c++{standard}", *flags])
        if not have(compiler):
            report.skip(f"byway.hpp with {what}", "not installed")
            continue
        program = folder / re.sub(r"[^a-z0-9]+", "-", what)
        made = compile_cpp(sources, program, [str(library), *PRIVATE], [f"-std=c++{standard}", *flags], compiler)
        if report.ok(made.returncode == 0, f"{what} compiles", made.stdout):
            if flags is SANITIZED:
                listed = run(["nm", str(program)]).stdout
                report.ok("__asan_init" in listed and "__ubsan_handle" in listed, f"{what} is watched")
            report.tap([str(program)], what, timeout=LIMIT)
    for header in sorted((ROOT / "include" / "byway").glob("*.hpp")):
        report.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-include",
                    str(header), "-x", "c++", "/dev/null"], f"{header.name} stands alone")
    curl(report, library, folder / "curl-example")


def curl(report, library, example):
    if run(["sh", "-c", "echo '#include <curl/curl.h>' | cc -E -"]).returncode:
        report.skip("the libcurl example", "no libcurl4-openssl-dev")
        return
    made = run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "-o", str(example),
                str(ROOT / "examples" / "curl.cpp"), str(library), "-lcurl", *PRIVATE])
    if report.ok(made.returncode == 0, "the libcurl example compiles", made.stdout):
        done = run([str(example)], timeout=LIMIT)
        report.ok(done.returncode == 0 and "hello over byway!" in done.stdout, "libcurl over byway", done.stdout)
