"""What the documentation shows as a program runs as it stands, and says what is printed behind it.

A fenced block whose info string is `LANGUAGE run` is a whole program: it is taken out of the text as it is, built as a
user would build it, and run; `LANGUAGE build` is only built. A block `text output` behind it is what it must print.
"""
import re
import sys

import faces
from artefacts import BUILD, LIMIT, ROOT, prefix
from report import run

PAGES = ["README.md", "bindings/*/README.md", "docs/*.md", "examples/*/README.md"]
# Languages of which README.md itself must show a program.
SHOWN = ["c", "cpp", "python", "java"]
BLOCK = re.compile(r"^```(\w+) (run|build|output)\n(.*?)^```$", re.M | re.S)


def compiled(compiler, standard, suffix):
    """A program in C or C++, built with what pkg-config says of the installed library."""
    def build(folder, text):
        source, program = folder / f"quickstart{suffix}", folder / "quickstart"
        source.write_text(text)
        places = {"PKG_CONFIG_PATH": str(prefix() / "lib" / "pkgconfig")}
        flags = run(["pkg-config", "--cflags", "--libs", "byway"], env=places)
        made = run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source),
                    *flags.stdout.split(), f"-Wl,-rpath,{prefix() / 'lib'}"])
        return made, [str(program)], None
    return build


def python(folder, text):
    source = folder / "quickstart.py"
    source.write_text(text)
    return run([sys.executable, "-m", "py_compile", str(source)]), [sys.executable, str(source)], faces.python_environment()


def java(folder, text):
    """A program of one file, as `java -cp byway.jar Quickstart.java` runs it."""
    source = folder / "Quickstart.java"
    source.write_text(text)
    made, jar = faces.jar()
    place = f"-Dio.byway.workdir={folder / 'unpacked'}"
    return made, ["java", place, "-cp", str(jar), str(source)], None


# Language of the fence: writes the text into a folder and builds it; gives how that went, the command that runs the
# program, and its environment.
LANGUAGES = {"c": compiled("cc", "c99", ".c"), "cpp": compiled("g++", "c++17", ".cpp"), "python": python, "java": java}


def programs(page):
    """Line, language, what is done with it, text, and what it must print (None: anything)."""
    text, found = page.read_text(), []
    for block in BLOCK.finditer(text):
        language, what, body = block.groups()
        if what == "output":
            if found:
                found[-1][-1] = body
        else:
            found.append([text.count("\n", 0, block.start()) + 1, language, what, body, None])
    return found


def quickstart(report):
    shown = set()
    for page in sorted({page for pattern in PAGES for page in ROOT.glob(pattern)}):
        name = str(page.relative_to(ROOT))
        for line, language, what, text, output in programs(page):
            place = f"{name}:{line} ({language})"
            if name == "README.md":
                shown.add(language)
            if not report.ok(language in LANGUAGES, f"{place}: somebody knows how to run it"):
                continue
            folder = BUILD / "quickstart" / f"{name.replace('/', '-')}-{line}"
            folder.mkdir(parents=True, exist_ok=True)
            made, command, environment = LANGUAGES[language](folder, text)
            if not report.ok(made.returncode == 0, f"{place}: it is built", made.stdout) or what == "build":
                continue
            done = run(command, timeout=LIMIT, env=environment, cwd=folder)
            if report.ok(done.returncode == 0, f"{place}: it runs", done.stdout) and output is not None:
                report.ok(done.stdout == output, f"{place}: it prints what the text says", done.stdout)
    for language in SHOWN:
        report.ok(language in shown, f"README.md shows a program in {language}")
