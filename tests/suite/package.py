"""The installed package as a user meets it: four ways to link, soname and links, symbols, the header in every
dialect, the ABI against the last release."""
import os
import re
import shutil
import sys

from artefacts import BUILD, CARGO, FEATURES, LIMIT, PRIVATE, PROFILE, ROOT, TARGET, have, prefix, version
from header import read
from report import run

PROGRAM = r"""
#include <byway.h>
#include <stdio.h>
int main(void)
{
    byway_engine *engine = NULL;
    if (byway_abi_version() != BYWAY_ABI_VERSION || byway_engine_new(NULL, &engine, NULL) != BYWAY_OK)
        return 1;
    if (byway_engine_shutdown(engine, 0, NULL) != BYWAY_OK)
        return 2;
    byway_engine_release(engine);
    puts(byway_version());
    return 0;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(byway {version} REQUIRED CONFIG)
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE byway::{target})
"""


# Where the version stands beside Cargo.toml.
VERSIONS = {
    "bindings/python/pyproject.toml": r'^version = "(.*)"',
    "bindings/java/native/Cargo.toml": r'^version = "(.*)"',
    "bindings/java/pom.xml": r"<artifactId>byway</artifactId>\s*<version>(.*)</version>",
    "bindings/java/dubbo/pom.xml": r"<artifactId>byway-dubbo</artifactId>\s*<version>(.*)</version>",
    "bindings/java/all.xml": r"<artifactId>byway-all</artifactId>\s*<version>(.*)</version>",
}


def package(report):
    for file, pattern in VERSIONS.items():
        found = re.search(pattern, (ROOT / file).read_text(), re.M)
        report.ok(found and found[1] == version(), f"{file} has the library's version", str(found))
    consumer(report)
    without_scripts(report)


def without_scripts(report):
    """The library without the feature `script` wants no C compiler, and is smaller by the whole script engine."""
    if os.environ.get("FEATURES", "script") != "script":
        report.skip("a library without scripts beside the one with them", "FEATURES is set")
        return
    folder = BUILD / "without-scripts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Only the linker may be called: it is found by its name, compilers of C by these.
    broken = folder / "no-compiler"
    broken.write_text("#!/bin/sh\necho 'no C compiler here' >&2\nexit 1\n")
    broken.chmod(0o755)
    machine = run(["rustc", "-vV"]).stdout.partition("host: ")[2].split()[0]
    names = [f"{prefix}{name}" for name in ("CC", "CXX") for prefix in ("", "HOST_", "TARGET_")]
    names += [f"{name}_{form}" for name in ("CC", "CXX") for form in (machine, machine.replace("-", "_"))]
    environment = dict.fromkeys(names, str(broken))
    command = [CARGO, "build", "--lib", "--target-dir", str(TARGET / "without-scripts")]
    done = run(command, env=environment)
    if not report.ok(done.returncode == 0, "without the feature script the library builds without a C compiler",
                     done.stdout):
        return
    with_scripts = run([*command, "--features", "script"], env=environment)
    report.ok(with_scripts.returncode != 0 and "no C compiler here" in with_scripts.stdout,
              "the compiler that does not work is the one that would be called", with_scripts.stdout)
    # In the profile that is quick to build; the engine's C code is optimised in each.
    done = run([CARGO, "build", "--lib", "--features", "script"])
    if not report.ok(done.returncode == 0, "with it it builds with one", done.stdout):
        return
    sizes = []
    for number, built in enumerate((TARGET / "without-scripts" / "debug", TARGET / "debug")):
        copy = folder / f"{number}.so"
        shutil.copy2(built / "libbyway.so", copy)
        run([os.environ.get("STRIP", "strip"), str(copy)])
        sizes.append(copy.stat().st_size)
    report.ok(sizes[1] - sizes[0] >= 1 << 20, f"it is at least 1 MiB smaller: {sizes[0]} and {sizes[1]} bytes")


def consumer(report):
    """Builds and runs a program against the installed prefix in each of the ways users link."""
    folder = BUILD / "consumer"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    where = prefix()
    library = where / "lib"
    main = folder / "main.c"
    main.write_text(PROGRAM)
    compiler = os.environ.get("CC", "cc")
    environment = {"PKG_CONFIG_PATH": str(library / "pkgconfig")}
    if have("pkg-config"):
        asked = run(["pkg-config", "--modversion", "byway"], env=environment).stdout.strip()
        report.ok(asked == version(), "byway.pc has the version", asked)
        flags = run(["pkg-config", "--cflags", "--libs", "byway"], env=environment).stdout.split()
        done = run([compiler, str(main), "-o", str(folder / "shared"), *flags, f"-Wl,-rpath,{library}"])
        if report.ok(done.returncode == 0, "pkg-config, shared, links", done.stdout):
            started(report, folder / "shared", "pkg-config, shared", needs=True)
        flags = run(["pkg-config", "--cflags", "--libs", "byway-static"], env=environment).stdout.split()
        done = run([compiler, str(main), "-o", str(folder / "static"), *flags])
        if report.ok(done.returncode == 0, "pkg-config byway-static links", done.stdout):
            started(report, folder / "static", "pkg-config byway-static", needs=False)
        beside(report, folder, [compiler, *flags])
        flags = run(["pkg-config", "--static", "--cflags", "--libs", "byway"], env=environment).stdout.split()
        done = run([compiler, "-static", str(main), "-o", str(folder / "whole"), *flags])
        if report.ok(done.returncode == 0, "pkg-config --static with cc -static links", done.stdout):
            started(report, folder / "whole", "pkg-config --static with cc -static", needs=False)
    else:
        report.skip("pkg-config, shared and static", "no pkg-config", 3)
    if have("cmake"):
        # Moved after installing: the targets must not remember where they were.
        moved = folder / "moved"
        shutil.copytree(where, moved, symlinks=True)
        for target, needs in (("byway", True), ("byway_static", False)):
            source = folder / f"cmake-{target}"
            source.mkdir()
            (source / "main.c").write_text(PROGRAM)
            (source / "CMakeLists.txt").write_text(CMAKE.format(version=version(), target=target))
            done = run(["cmake", "-S", str(source), "-B", str(source / "out"), f"-DCMAKE_PREFIX_PATH={moved}"])
            done = run(["cmake", "--build", str(source / "out")]) if done.returncode == 0 else done
            if report.ok(done.returncode == 0, f"CMake, {target}, builds", done.stdout):
                started(report, source / "out" / "consumer", f"CMake, {target}", needs)
        wrong = folder / "cmake-newer"
        wrong.mkdir()
        (wrong / "main.c").write_text(PROGRAM)
        (wrong / "CMakeLists.txt").write_text(CMAKE.format(version="99.0", target="byway"))
        done = run(["cmake", "-S", str(wrong), "-B", str(wrong / "out"), f"-DCMAKE_PREFIX_PATH={moved}"])
        report.ok(done.returncode != 0 and "99.0" in done.stdout, "CMake refuses a version that is not there",
                  done.stdout)
    else:
        report.skip("CMake, shared and static", "no cmake", 3)
    staged = folder / "staged"
    profile = [f"PROFILE={PROFILE}", f"FEATURES={FEATURES}"]
    done = run(["make", "--no-print-directory", "install", f"DESTDIR={staged}", "PREFIX=/usr",
                "LIBDIR=/usr/lib/x86_64-linux-gnu", *profile])
    files = sorted(str(path.relative_to(staged)) for path in staged.rglob("*") if not path.is_dir())
    report.ok(done.returncode == 0 and "usr/lib/x86_64-linux-gnu/libbyway.so.0" in files
              and str(staged) not in (staged / "usr/lib/x86_64-linux-gnu/pkgconfig/byway.pc").read_text(),
              "DESTDIR is only where files go", done.stdout + "\n".join(files))
    done = run(["make", "--no-print-directory", "uninstall", f"DESTDIR={staged}", "PREFIX=/usr",
                "LIBDIR=/usr/lib/x86_64-linux-gnu"])
    left = [path for path in staged.rglob("*") if not path.is_dir()]
    report.ok(done.returncode == 0 and not left, "uninstall leaves nothing", done.stdout + str(left))
    for goal in ("install", "wheel", "build/examples/tour"):
        done = run(["make", "--no-print-directory", "--dry-run", goal, *profile])
        report.ok(f"build --lib --profile {PROFILE}" in done.stdout,
                  f"make {goal} has cargo see whether the library is fresh", done.stdout)
    done = run(["make", "--no-print-directory", "install", f"DESTDIR={staged}", "PREFIX=usr", *profile])
    report.ok(done.returncode != 0 and "must be absolute" in done.stdout, "a relative PREFIX is refused", done.stdout)
    quiet(report, folder)
    cpp_consumer(report, folder, where)


BESIDE = r"""
#include <byway.h>
#include <stdio.h>
/* Another QuickJS. */
int JS_NewRuntime(void) { return 42; }
int JS_Eval(void) { return 43; }
int main(void)
{
    byway_engine *engine = NULL;
    byway_proxy_selector *script = NULL;
    byway_proxy *proxy = NULL;
    byway_str host;
    size_t total = 0;
    byway_pac_options options = BYWAY_PAC_OPTIONS_INIT;
    options.source.data = "function FindProxyForURL(url, host) { return 'PROXY ' + host + ':1'; }";
    options.source.len = BYWAY_NUL;
    options.time_limit_ms = 60000;
    if (byway_engine_new(NULL, &engine, NULL) || byway_proxy_selector_new_pac(engine, &options, NULL, &script, NULL)
        || byway_engine_proxies_for_url(engine, script, "http://two.example/", BYWAY_NUL, NULL, -1, &proxy, 1, &total,
                                        NULL, NULL))
        return 1;
    byway_proxy_host(proxy, &host);
    printf("%s %d %d\n", host.data, JS_NewRuntime(), JS_Eval());
    byway_proxy_release(proxy);
    byway_proxy_selector_release(script);
    byway_engine_shutdown(engine, 1000, NULL);
    byway_engine_release(engine);
    return 0;
}
"""


def beside(report, folder, command):
    """A program that has functions of QuickJS's names of its own links libbyway.a, whose scripts call their own."""
    if "script" not in FEATURES:
        report.skip("a QuickJS of the program's own", "FEATURES is set")
        return
    main, program = folder / "beside.c", folder / "beside"
    main.write_text(BESIDE)
    compiler, *flags = command
    done = run([compiler, str(main), "-o", str(program), *flags])
    if report.ok(done.returncode == 0, "a program with a QuickJS of its own links libbyway.a", done.stdout):
        done = run([str(program)], timeout=LIMIT)
        report.ok(done.stdout == "two.example 42 43\n", "and both work", done.stdout)


def quiet(report, folder):
    """The README's program gives everything back: with the installed suppressions valgrind has nothing to report."""
    if not have("valgrind"):
        report.skip("the installed suppressions", "no valgrind")
        return
    main, program = folder / "readme.c", folder / "readme"
    main.write_text(re.search(r"^```c run\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)[1])
    done = run([os.environ.get("CC", "cc"), "-g", f"-I{prefix() / 'include'}", str(main), "-o", str(program),
                str(prefix() / "lib" / "libbyway.a"), *PRIVATE])
    if done.returncode == 0:
        done = run(["valgrind", "-q", "--leak-check=full", "--error-exitcode=99",
                    f"--suppressions={prefix() / 'share' / 'byway' / 'valgrind.supp'}", str(program)], timeout=5 * LIMIT)
    report.ok(done.returncode == 0, "nothing is reported with the installed suppressions", done.stdout)


def cpp_consumer(report, folder, where):
    """The installed headers for C++, without anything of the source tree."""
    if not have("g++"):
        report.skip("a consumer in C++", "no g++")
        return
    source = folder / "main.cpp"
    source.write_text("""#include <byway.hpp>
#include <iostream>
int main() { std::cout << byway::version() << std::endl; return byway::engine::make() ? 0 : 1; }
""")
    done = run(["g++", "-std=c++17", f"-I{where / 'include'}", str(source), "-o", str(folder / "cpp"),
                f"-L{where / 'lib'}", "-lbyway", f"-Wl,-rpath,{where / 'lib'}"])
    if report.ok(done.returncode == 0, "the installed byway.hpp compiles", done.stdout):
        started(report, folder / "cpp", "a consumer in C++", needs=True)


def started(report, program, what, needs):
    done = run([str(program)], env={"LD_LIBRARY_PATH": str(prefix() / "lib")} if needs else None)
    report.ok(done.returncode == 0 and done.stdout.strip() == version(), f"{what}, runs", done.stdout)
    needed = run(["readelf", "-d", str(program)]).stdout
    report.ok(("[libbyway.so.0]" in needed) == needs, f"{what}, needs the library at run time: {needs}", needed)


def symbols(report):
    """Soname, links, and not one symbol that is not in the header."""
    library = prefix() / "lib"
    real = library / f"libbyway.so.{version()}"
    report.ok(real.is_file() and not real.is_symlink(), "the shared library has its version in its name")
    for link, target in (("libbyway.so.0", real.name), ("libbyway.so", "libbyway.so.0")):
        path = library / link
        report.ok(path.is_symlink() and os.readlink(path) == target, f"{link} -> {target}")
    dynamic = run(["readelf", "-d", str(real)]).stdout
    report.ok("Library soname: [libbyway.so.0]" in dynamic, "soname", dynamic)
    report.ok("NODELETE" in dynamic, "stays loaded (nodelete)", dynamic)
    report.ok("BIND_NOW" in dynamic, "binds at load", dynamic)
    listed = run(["nm", "-D", "--defined-only", str(real)]).stdout.split("\n")
    names = sorted(line.split()[-1] for line in listed if line.strip())
    golden = (ROOT / "abi" / "exports.txt").read_text().split()
    report.ok(names == golden, "exports = abi/exports.txt",
              f"only exported: {sorted(set(names) - set(golden))}\nonly listed: {sorted(set(golden) - set(names))}")
    report.ok(golden == sorted(f.name for f in read().functions), "abi/exports.txt = functions of the header")
    # The boundary's guard is dead code in a library that aborts.
    report.ok("_Unwind_RaiseException" in run(["nm", "-D", str(real)]).stdout, "the shipped library can unwind")
    # Not with nm: where an LLVM plugin is installed it looks at the bitcode beside the code, and may be too old for it.
    text = run(["readelf", "-sW", str(library / "libbyway.a")]).stdout
    others = re.findall(r" (?:GLOBAL|WEAK) +(?:DEFAULT|PROTECTED) +(?:\d+|COM|ABS) ((?!byway_)\S+)$", text, re.M)
    report.ok(not others, "the static library has no other names", "\n".join(others[:20]))
    static = {found[1] for found in re.finditer(r" GLOBAL DEFAULT +\d+ (byway_\w+)$", text, re.M)}
    report.ok(sorted(static) == golden, "the static library defines the same functions",
              f"only defined: {sorted(static - set(golden))}\nonly listed: {sorted(set(golden) - static)}")


def headers(report):
    """Each header in every dialect and compiler: alone, twice, in two files of one program."""
    folder = BUILD / "header"
    folder.mkdir(parents=True, exist_ok=True)
    include = prefix() / "include"
    strict = ["-pedantic-errors", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
    for compiler, extension, dialects in (
            ("gcc", "c", ["c99", "c11", "c17", "c2x"]), ("clang", "c", ["c99", "c11", "c17", "c2x"]),
            ("g++", "cpp", ["c++11", "c++14", "c++17", "c++20"]),
            ("clang++", "cpp", ["c++11", "c++14", "c++17", "c++20"])):
        if not have(compiler):
            report.skip(f"header with {compiler}", f"no {compiler}", 2 * len(dialects) + 1)
            continue
        alone = folder / f"alone.{extension}"
        alone.write_text("#include <byway.h>\nextern int used; int used = (int)BYWAY_ABI_VERSION;\n")
        twice = folder / f"twice.{extension}"
        twice.write_text("#include <byway.h>\n#include <byway.h>\nextern int used; int used = BYWAY_OK;\n")
        for dialect in dialects:
            for source in (alone, twice):
                report.run([compiler, f"-std={dialect}", *strict, "-fsyntax-only", str(source)],
                           f"{source.stem} with {compiler} {dialect}")
        other = folder / f"other.{extension}"
        other.write_text("#include <byway.h>\nconst char *other(void);\n"
                         "const char *other(void) { return byway_version(); }\n")
        main = folder / f"main.{extension}"
        main.write_text("#include <byway.h>\nconst char *other(void);\n"
                        "int main(void) { return other() != byway_version(); }\n")
        program = folder / f"two-{compiler}"
        done = run([compiler, f"-std={dialects[0]}", *strict, str(main), str(other), "-o", str(program),
                    f"-L{prefix() / 'lib'}", "-lbyway", f"-Wl,-rpath,{prefix() / 'lib'}"])
        done = run([str(program)]) if done.returncode == 0 else done
        report.ok(done.returncode == 0, f"two files with {compiler}", done.stdout)
    wrapper = include / "byway.hpp"
    if wrapper.exists():
        source = folder / "wrapper.cpp"
        source.write_text("#include <byway.hpp>\n#include <byway.hpp>\nint main() { return 0; }\n")
        for compiler in ("g++", "clang++"):
            for dialect in ("c++17", "c++20", "c++2b"):
                if have(compiler):
                    report.run([compiler, f"-std={dialect}", *strict, "-fsyntax-only", str(source)],
                               f"byway.hpp with {compiler} {dialect}")


def probe(folder):
    """A library of function pointers and structs, as a C compiler reads the header: what abidw looks at."""
    header = read()
    lines = ["#include <byway.h>"]
    for function in header.functions:
        parameters = ", ".join(p.type for p in function.parameters) or "void"
        lines.append(f"{function.result} (*probe_{function.name})({parameters}) = {function.name};")
    lines += [f"{struct} probe_struct_{struct};" for struct in header.structs]
    source = folder / "probe.c"
    source.write_text("\n".join(lines) + "\n")
    output = folder / "libprobe.so"
    done = run([os.environ.get("CC", "cc"), "-std=c99", "-g", "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(source),
                "-o", str(output)])
    return output if done.returncode == 0 else None


BASELINE = ROOT / "abi" / "baseline.abi"


def dump(folder):
    library = probe(folder)
    if library is None:
        return None
    text = folder / "now.abi"
    done = run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--out-file",
                str(text), str(library)])
    return text if done.returncode == 0 else None


def abi(report):
    """What a program linked to the last release relies on is still there."""
    if not have("abidw") or not have("abidiff"):
        report.skip("ABI against the last release", "no abidw")
        return
    folder = BUILD / "abi"
    folder.mkdir(parents=True, exist_ok=True)
    now = dump(folder)
    if not report.ok(now is not None, "the header's ABI can be dumped"):
        return
    # The comparison is awake: a function less and a field more must be noticed.
    text = now.read_text()
    for what, changed in (("a function less", re.sub(r"<elf-symbol name='probe_byway_engine_shutdown'.*?/>", "", text)),
                          ("a struct that grew", text.replace("size-in-bits='128'", "size-in-bits='192'", 1))):
        other = folder / "changed.abi"
        other.write_text(changed)
        report.ok(changed != text and run(["abidiff", "--no-show-locs", str(now), str(other)]).returncode != 0,
                  f"{what} is noticed")
    if not BASELINE.exists():
        report.skip("ABI against the last release", "no release yet")
        return
    done = run(["abidiff", "--no-added-syms", "--no-show-locs", str(BASELINE), str(now)])
    report.ok(done.returncode == 0, "nothing is gone or changed since the last release", done.stdout)


def bless_baseline():
    folder = BUILD / "abi"
    folder.mkdir(parents=True, exist_ok=True)
    now = dump(folder)
    if now is None:
        raise SystemExit("abidw failed")
    shutil.copy2(now, BASELINE)


def examples(report):
    """Every example in C and C++ builds without a warning, and those and the ones in Python end well, printing
    something."""
    folder = BUILD / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    strict = ["-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{prefix() / 'include'}"]
    languages = {".c": [os.environ.get("CC", "cc"), "-std=c99", "-D_GNU_SOURCE"],
                 ".cpp": [os.environ.get("CXX", "c++"), "-std=c++17"]}
    for source in sorted((ROOT / "examples").glob("*.c*")):
        compiler = languages[source.suffix]
        link = [str(prefix() / "lib" / "libbyway.a"), *PRIVATE]
        if "<curl/curl.h>" in source.read_text():
            link.append("-lcurl")
            if run(["sh", "-c", "echo '#include <curl/curl.h>' | cc -E -"]).returncode:
                report.skip(source.name, "no libcurl4-openssl-dev")
                continue
        if not have(compiler[0]):
            report.skip(source.name, f"no {compiler[0]}")
            continue
        program = folder / source.name.replace(".", "-")
        done = run([*compiler, *strict, str(source), "-o", str(program), *link])
        if report.ok(done.returncode == 0, f"{source.name} builds", done.stdout):
            done = run([str(program)], timeout=LIMIT)
            report.ok(done.returncode == 0 and done.stdout.strip(), f"{source.name} runs", done.stdout)
            for wanted in SAYS.get(source.name, ()):
                report.ok(re.search(wanted, done.stdout), f"{source.name} says: {wanted}", done.stdout)
    here = {"BYWAY_LIBRARY": str(prefix() / "lib" / "libbyway.so"), "PYTHONPATH": str(ROOT / "bindings" / "python" / "src")}
    for source in sorted((ROOT / "examples").glob("*.py")):
        done = run([sys.executable, str(source)], timeout=LIMIT, env=here)
        report.ok(done.returncode == 0 and done.stdout.strip(), f"{source.name} runs", done.stdout)


# What some examples must have shown.
SAYS = {
    "curl.cpp": [r"(?m)^hello from the server, which was asked: GET / HTTP/1\.1$",
                 r"(?s)connection refused.*hello from the proxy, which was asked: GET http://service\.example:\d+/ HTTP/1\.1.*"
                 r"not tried any more(?!.*connection refused).*hello from the proxy"],
    "canary.cpp": [r"bob may go to: east 1, east 2\n", r"alice may go to: canary\n", r"retried on another provider: yes",
                   r"refused: .*line 1"],
}
