"""Every exported function is reachable from every binding, or abi/surface.txt says why it is not.

A line of that file is `BINDING FUNCTION REASON`. A function that is neither used nor listed fails; so does a line about a
function that is used, or is not exported, or that gives no reason: the list can only be true.
"""
import ast
import re
import sys

from artefacts import ROOT

EXPORTS = ROOT / "abi" / "exports.txt"
REASONS = ROOT / "abi" / "surface.txt"


def words(path):
    """Names in C++ or Rust code, comments and texts left out."""
    code = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', " ", path.read_text(), flags=re.S)
    return set(re.findall(r"\bbyway_\w+", code))


def attributes(path):
    """Names that Python code takes from the library, by attribute or by a text that is nothing but the name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
    return found


# Name, folder or file, what to read there, how, and what is left out: the generated list of every function.
BINDINGS = [
    ("cpp", ROOT / "include", "*.hpp", words, ()),
    ("python", ROOT / "bindings" / "python" / "src", "*.py", attributes, ("_abi.py",)),
    ("java", ROOT / "bindings" / "java" / "native", "*.rs", words, ()),
]


def used(place, pattern, read, left_out):
    files = [place] if place.is_file() else [f for f in place.rglob(pattern) if f.name not in left_out]
    return set().union(*map(read, files))


def reasons():
    """What is listed: {(binding, function): reason}, and the lines that are not of the form."""
    listed, odd = {}, []
    for line in REASONS.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split(None, 2)
        if len(parts) < 3 or (parts[0], parts[1]) in listed:
            odd.append(line)
        else:
            listed[parts[0], parts[1]] = parts[2]
    return listed, odd


def gaps():
    """For every binding that is there: exported functions it does not use."""
    exports = set(EXPORTS.read_text().split())
    return exports, {name: exports - used(*rest) for name, *rest in BINDINGS if rest[0].exists()}


# Names in the pages that are none of the header's: a CMake target, variables of the environment.
OTHER_NAMES = {"byway_static", "BYWAY_LIBRARY", "BYWAY_VECTORS"}


def pages(report):
    """What the pages name is there: functions and constants of the header, files of the project."""
    header = set(re.findall(r"\b(?:byway|BYWAY)_\w+", (ROOT / "include" / "byway.h").read_text()))
    found = 0
    for pattern in ("*.md", "docs/*.md", "bindings/*/README.md"):
        for page in ROOT.glob(pattern):
            text = page.read_text()
            names = set(re.findall(r"\b(?:byway|BYWAY)_\w+\b", text))
            found += len(names)
            # A family is named by its beginning: `byway_dial_*`, `BYWAY_BIND_*`.
            unknown = [name for name in sorted(names - OTHER_NAMES)
                       if name not in header and not (name.endswith("_") and any(one.startswith(name) for one in header))]
            report.ok(not unknown, f"{page.relative_to(ROOT)} names what the header has", "\n".join(unknown))
            links = [link for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text) if not (page.parent / link).exists()]
            report.ok(not links, f"{page.relative_to(ROOT)} links to what is there", "\n".join(links))
    report.ok(found > 50, "names were found")


def surface(report):
    pages(report)
    exports, missing = gaps()
    listed, odd = reasons()
    report.ok(not odd, "every line is a binding, a function, a reason, once", "\n".join(odd))
    unknown = [f"{name} {function}" for name, function in listed
               if name not in {binding[0] for binding in BINDINGS} or function not in exports]
    report.ok(not unknown, "what is listed exists", "\n".join(unknown))
    for name, functions in missing.items():
        report.ok(len(functions) < 0.9 * len(exports), f"{name}: its code is found and read")
        here = {function for binding, function in listed if binding == name}
        report.ok(not functions - here, f"{name}: every export is used, or abi/surface.txt says why not",
                  "\n".join(sorted(functions - here)))
        stale = here - functions - {function for function in here if function not in exports}
        report.ok(not stale, f"{name}: what is listed is not used", "\n".join(sorted(stale)))


if __name__ == "__main__":
    # Shows what is missing, for whoever binds or lists it.
    for binding, functions in gaps()[1].items():
        print("\n".join(f"{binding} {function}" for function in sorted(functions)), file=sys.stdout)
