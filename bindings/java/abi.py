#!/usr/bin/env python3
"""Makes src/main/java/io/byway/Abi.java from include/byway.h and abi/layout.txt: numbers, and the structs Java reads.

Run by `make header`; with --check it only says whether the checked-in file is what they say.
"""
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = HERE / "src" / "main" / "java" / "io" / "byway" / "Abi.java"
# What Java reads without a crossing.
STRUCTS = ["byway_ip", "byway_route_record"]


def constants():
    text = re.sub(r"/\*.*?\*/", " ", (ROOT / "include" / "byway.h").read_text(), flags=re.S)
    for name, value in re.findall(r"^#define BYWAY_(\w+) (-?(?:0x[0-9a-fA-F]+|\d+))u?l*\s*$", text, re.M):
        yield name, int(value, 0)


def layouts():
    for line in (ROOT / "abi" / "layout.txt").read_text().splitlines():
        name, size, *members = line.replace(":", "").split()
        if name in STRUCTS:
            yield name, int(size), [(m.split("@")[0], int(m.split("@")[1])) for m in members]


def text():
    out = ["// What include/byway.h and abi/layout.txt say. Made by abi.py; do not edit.", "package io.byway;", "",
           "/** Numbers of the C header, without their {@code BYWAY_}. */", "final class Abi {"]
    for name, value in constants():
        kind, suffix = ("long", "L") if value > 2**31 - 1 else ("int", "")
        out.append(f"    static final {kind} {name} = {value}{suffix};")
    lines = []
    for name, size, members in layouts():
        short = name.removeprefix("byway_").upper()
        out += ["", f"    /** Size of {{@code {name}}} and offsets of its members. */", f"    static final int {short} = {size};"]
        out += [f"    static final int {short}_{member.upper()} = {offset};" for member, offset in members]
        lines.append(" ".join([name, str(size), *[str(offset) for _, offset in members]]))
    out += ["", "    /** The same, as the loaded library describes itself. */", "    static final String[] LAYOUT = {"]
    out += [f'        "{line}",' for line in lines] + ["    };", "", "    private Abi() {}", "}", ""]
    return "\n".join(out)


def main():
    fresh = text()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text() != fresh:
            sys.exit(f"{TARGET.name} is stale: run `make header`")
        return
    TARGET.write_text(fresh)


if __name__ == "__main__":
    main()
