#!/usr/bin/env python3
"""Makes src/byway/_abi.py from include/byway.h: constants, structs, callback types, functions.

Run by `make header`; with --check it only says whether the checked-in file is what the header says.
The header is written by cbindgen, so a small reader for its regular shape is enough.
"""
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADER = HERE.parent.parent / "include" / "byway.h"
TARGET = HERE / "src" / "byway" / "_abi.py"

SCALARS = {
    "int8_t": "c_int8", "int16_t": "c_int16", "int32_t": "c_int32", "int64_t": "c_int64",
    "uint8_t": "c_uint8", "uint16_t": "c_uint16", "uint32_t": "c_uint32", "uint64_t": "c_uint64",
    "size_t": "c_size_t", "byway_status": "c_int32", "double": "c_double", "bool": "c_bool",
}


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


class Header:
    """What byway.h declares, in its order."""

    def __init__(self, text):
        text = strip_comments(text)
        text = text.replace("UINT32_MAX", "0xffffffff")
        self.constants = [(n, int(v, 0)) for n, v in
                          re.findall(r"^#define (BYWAY_\w+) (-?(?:0x[0-9a-fA-F]+|\d+))u?l*\s*$", text, re.M)]
        code = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
        self.opaque = re.findall(r"typedef struct (\w+) \1;", code)
        self.structs = []
        self.callbacks = {}
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", code, re.S):
            self.structs.append((name, [self.field(name, f) for f in body.split(";") if f.strip()]))
        for result, name, args in re.findall(r"typedef ([\w ]+?[ *]+)\(\*(\w+)\)\((.*?)\);", code, re.S):
            self.callbacks[name] = (result.strip(), self.split(args))
        self.functions = []
        for decl in re.findall(r"BYWAY_API\s+(.*?);", code, re.S):
            head, args = re.match(r"(.*?)\((.*)\)\s*$", " ".join(decl.split()), re.S).groups()
            result, name = re.match(r"(.*?[ *])(\w+)$", head).groups()
            self.functions.append((name, result.strip(), self.split(args)))

    @staticmethod
    def split(args):
        args = [" ".join(a.split()) for a in args.split(",")]
        return [] if args == ["void"] else args

    def field(self, struct, text):
        text = " ".join(text.split())
        pointer = re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", text)
        if pointer:
            result, name, args = pointer.groups()
            self.callbacks[f"{struct}_{name}"] = (result.strip(), self.split(args))
            return name, f"{struct}_{name}", None
        kind, name, size = re.match(r"(.*?[ *])(\w+)(?:\[(\d+)\])?$", text).groups()
        return name, kind.strip(), size


class Python:
    """The same, as ctypes."""

    def __init__(self, header):
        self.header = header
        self.struct_names = {name for name, _ in header.structs}

    def kind(self, text, result=False):
        text = text.replace("const", " ").replace("struct ", " ")
        base, stars = text.replace("*", " ").split()[0], text.count("*")
        if base in self.header.callbacks:
            return base
        if stars == 0:
            if base == "void":
                return "None"
            return SCALARS.get(base, base)
        # A pointer is an address: ctypes then neither copies nor keeps what stands behind it.
        return "c_void_p"

    def argument(self, text):
        match = re.match(r"(.*?[ *])(\w+)$", text)
        return self.kind(match.group(1) if match and match.group(1).strip() else text)

    def text(self):
        out = ['"""What include/byway.h says, for ctypes. Made by abi.py; do not edit."""',
               "from ctypes import (", *[f"    {n}," for n in sorted(
                   {*SCALARS.values(), "c_void_p", "CFUNCTYPE", "Structure"}, key=str.lower)], ")",
               "from typing import Any, Dict, List, Tuple", "", "# Constants"]
        out += [f"{name} = {value}" for name, value in self.header.constants]
        out += ["BYWAY_NUL = c_size_t(-1).value", "", "# Callback types"]
        for name, (result, args) in self.header.callbacks.items():
            kinds = [self.kind(result, True), *[self.argument(a) for a in args]]
            out.append(f"{name} = CFUNCTYPE({', '.join(kinds)})")
        out += ["", "# Structs"]
        for name, fields in self.header.structs:
            out += ["", f"class {name}(Structure):", "    _fields_ = ["]
            for field, kind, size in fields:
                kind = self.kind(kind)
                out.append(f'        ("{field}", {kind}{f" * {size}" if size else ""}),')
            out.append("    ]")
        out += ["", "", "STRUCTS: List[Any] = [", *[f"    {name}," for name, _ in self.header.structs], "]", "",
                "# Functions: result, arguments", "FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {"]
        for name, result, args in self.header.functions:
            kinds = ", ".join(self.argument(a) for a in args)
            out.append(f'    "{name}": ({self.kind(result, True)}, [{kinds}]),')
        out += ["}", ""]
        return "\n".join(out)


def main():
    fresh = Python(Header(HEADER.read_text())).text()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text() != fresh:
            sys.exit(f"{TARGET.name} is stale: run `make header`")
        return
    TARGET.write_text(fresh)


if __name__ == "__main__":
    main()
