"""Reads include/byway.h: functions, parameters, structs, constants. Everything that must hold for each export grows
from this list."""
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Parameter:
    type: str
    name: str

    @property
    def is_pointer(self):
        return "*" in self.type or self.type == "byway_destroy"

    @property
    def handle(self):
        """The handle type this points to, if it is `T *` or `const T *` of an opaque T."""
        found = re.fullmatch(r"(?:const )?(byway_\w+) \*", self.type)
        return found and found.group(1)

    @property
    def handle_array(self):
        """The handle type of `const T *const *`, an array of handles that only goes in."""
        found = re.fullmatch(r"(?:const )?(byway_\w+) \*const \*", self.type)
        return found and found.group(1)

    @property
    def out_handle(self):
        found = re.fullmatch(r"(?:const )?(byway_\w+) \*\*", self.type)
        return found and found.group(1)


@dataclass
class Function:
    name: str
    result: str
    parameters: list
    documentation: str
    line: int


@dataclass
class Field:
    type: str
    name: str
    documentation: str


@dataclass
class Header:
    functions: list = field(default_factory=list)
    opaque: list = field(default_factory=list)
    structs: dict = field(default_factory=dict)
    constants: dict = field(default_factory=dict)
    macros: list = field(default_factory=list)
    callbacks: dict = field(default_factory=dict)

    def function(self, name):
        return next((f for f in self.functions if f.name == name), None)

    def methods(self, handle):
        """Functions whose first parameter is this handle and called self."""
        return [f for f in self.functions
                if f.parameters and f.parameters[0].name == "self" and f.parameters[0].handle == handle]


def _tidy(text):
    text = re.sub(r"\bstruct\s+", "", " ".join(text.split()))
    return re.sub(r"\s*\*\s*", "*", text)


def _parameter(text):
    text = _tidy(text)
    found = re.fullmatch(r"(.*?)(\w+)((?:\[\d*\])*)", text)
    kind = found.group(1).strip()
    stars = len(kind) - len(kind.rstrip("*"))
    kind = kind.rstrip("*").strip() + (" " + "*" * stars if stars else "")
    kind = re.sub(r"(\w)\*const", r"\1 *const", kind)
    return Parameter(kind.strip(), found.group(2))


def _documentation(text, end):
    """The doxygen comment that stops right before `end`."""
    before = text[:end].rstrip()
    if not before.endswith("*/"):
        return ""
    start = before.rfind("/**")
    lines = before[start + 3:-2].splitlines()
    return "\n".join(line.strip().removeprefix("*").strip() for line in lines).strip()


def read(path=ROOT / "include" / "byway.h"):
    text = Path(path).read_text()
    header = Header()
    for found in re.finditer(r"^BYWAY_API\s+([^;{}]*?)\b(byway_\w+)\s*\(([^;]*?)\);", text, re.M | re.S):
        arguments = found.group(3).strip()
        depth, parts, current = 0, [], ""
        for letter in arguments:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                parts.append(current)
                current = ""
            else:
                current += letter
        parts.append(current)
        parameters = [] if arguments in ("void", "") else [_parameter(part) for part in parts]
        result = re.sub(r"\s*\*$", " *", _tidy(found.group(1)))
        header.functions.append(Function(found.group(2), result, parameters,
                                         _documentation(text, found.start()), text.count("\n", 0, found.start()) + 1))
    header.opaque = re.findall(r"^typedef struct (byway_\w+) \1;", text, re.M)
    for found in re.finditer(r"^typedef struct (byway_\w+) \{(.*?)^\} \1;", text, re.M | re.S):
        body, fields = found.group(2), []
        for line in re.finditer(r"^ {4}([^/*\s][^;]*);", body, re.M):
            declaration = line.group(1)
            pointer = re.match(r"(.*)\(\*(\w+)\)\s*\(", declaration, re.S)
            if pointer:
                fields.append(Field("function", pointer.group(2), _documentation(body, line.start())))
                header.callbacks.setdefault(found.group(1), {})[pointer.group(2)] = " ".join(declaration.split())
            else:
                parameter = _parameter(declaration)
                kind = "array" if "[" in declaration else parameter.type
                fields.append(Field(kind, parameter.name, _documentation(body, line.start())))
        header.structs[found.group(1)] = fields
    for name, value in re.findall(r"^#define (BYWAY_\w+) (-?\d+|0x[0-9A-Fa-f]+)$", text, re.M):
        header.constants[name] = int(value, 0)
    # A set may have nothing but its destroy.
    for name, fields in header.structs.items():
        if any(f.type == "byway_destroy" for f in fields):
            header.callbacks.setdefault(name, {})
    header.macros = re.findall(r"^#define (BYWAY_\w+_INIT)\b", text, re.M)
    return header


if __name__ == "__main__":
    h = read()
    for f in h.functions:
        print(f.result, f.name, [(p.type, p.name) for p in f.parameters])
    print(h.opaque, {k: [(f.type, f.name) for f in v] for k, v in h.structs.items()}, h.callbacks, h.macros, sep="\n")
