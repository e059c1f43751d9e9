"""The face for C++: byway.hpp as its users compile it, and its examples."""
import re
from pathlib import Path

from artefacts import BUILD, LIMIT, PRIVATE, ROOT, Broken, compile_cpp, have, prefix
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
    old = run(["g++", "-std=c++14", f"-I{ROOT / 'include'}", "-fsyntax-only", "-include", "byway.hpp", "-x", "c++",
               "/dev/null"])
    report.ok(old.returncode and old.stdout.count("error:") == 1 and "needs C++17" in old.stdout,
              "an older standard is refused with one error", old.stdout)
    snippets(report, folder, library)


def conform():
    """The runner over the same files through byway.hpp; None without what reads JSON."""
    if run(["sh", "-c", "echo '#include <nlohmann/json.hpp>' | c++ -E -x c++ -"]).returncode:
        return None
    folder = BUILD / "cpp"
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted((ROOT / "tests" / "cpp" / "conform").glob("*.cpp"))
    made = compile_cpp(sources, folder / "conform", [str(prefix() / "lib" / "libbyway.a"), *PRIVATE], ["-std=c++17", "-O0"])
    if made.returncode:
        raise Broken(made.stdout)
    return folder / "conform"


def snippets(report, folder, library):
    """What the pages show is one program each, and compiles."""
    for page in PAGES:
        text = (ROOT / page).read_text()
        blocks = re.findall(r"^```cpp\n(.*?)^```$", text, re.M | re.S)
        source = folder / (Path(page).stem + "-page.cpp")
        source.write_text("\n".join(blocks))
        done = run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Wno-unused-variable", "-Werror", f"-I{ROOT / 'include'}",
                    str(source), "-o", str(source.with_suffix("")), str(library), *PRIVATE])
        report.ok(blocks and done.returncode == 0, f"the program of {page} compiles", done.stdout)


PAGES = ["docs/choosing.md"]
