"""Writes C over the whole export list: build/c/calls.h (one function that calls each export, with at most one bad
argument), and the tables the suites in tests/c use. Nothing here names an export: a new one is covered when the header
has it."""
import sys
from pathlib import Path

from header import ROOT, read

INTEGERS = {"int32_t": ["INT32_MIN", "INT32_MAX", "-1"], "uint32_t": ["UINT32_MAX"], "int64_t": ["INT64_MIN", "INT64_MAX"],
            "uint64_t": ["UINT64_MAX"], "size_t": ["0", "SIZE_MAX - 1"], "byway_status": ["INT32_MIN", "12345"],
            "uint8_t": ["255"], "uint16_t": ["65535"], "int16_t": ["-1"], "double": ["-1.0"], "int": ["-1"]}

# Lengths and sizes that must tell the truth about memory: a lie about them is the caller's, not ours.
TRUTHFUL = {"cap", "stride", "len", "n", "count", "capacity"}


def is_length_of(parameters, index):
    """True for the length that follows a text or array."""
    before = parameters[index - 1] if index else None
    return bool(before and before.is_pointer and parameters[index].type == "size_t")


def counts_elements(parameters, index):
    """True for a length in elements of an array of handles or records, which must not be invented."""
    return is_length_of(parameters, index) and "char" not in parameters[index - 1].type \
        and "void" not in parameters[index - 1].type


class Writer:
    def __init__(self, header):
        self.header = header
        self.text = []

    def line(self, text=""):
        self.text.append(text)

    def argument(self, function, index):
        """(declaration and good value, expression, list of bad expressions)"""
        p = function.parameters[index]
        name = f"a{index}"
        kind = p.type
        struct = kind.removeprefix("const ").removesuffix(" *")
        if p.out_handle:
            return (f"void *{name}_place = POISON; {kind} {name} = ({kind})&{name}_place;", name, ["NULL"])
        if p.handle_array:
            of = p.handle_array
            setup = (f"const void *{name}_items[1]; {name}_items[0] = live(\"{of}\"); "
                     f"{kind} {name} = ({kind}){name}_items;")
            bad = ["NULL"] + [f"({name}_items[0] = bad_handle(\"{of}\", {how}), {name}_items)" for how in range(5)]
            return (setup, name, bad)
        if p.handle == "byway_call":
            return (f"{kind} {name} = inside_call;", name, ["NULL"])
        if p.handle in self.header.opaque:
            bad = [f"({kind})bad_handle(\"{p.handle}\", {how})" for how in range(3 + len(self.header.opaque))]
            maker = "self_for" if index == 0 and p.name == "self" else "live"
            return (f"{kind} {name} = ({kind}){maker}(\"{p.handle}\");", name, bad)
        if kind == "const char *":
            return (f"const char *{name} = \"x\";", name, ["NULL", "bad_utf8", "long_text", "odd_text"])
        if is_length_of(function.parameters, index) and "char" in function.parameters[index - 1].type:
            return (f"size_t {name} = BYWAY_NUL;", name, ["0", "1", "SIZE_MAX - 1", "(size_t)PTRDIFF_MAX"])
        if kind in ("const void *", "const uint8_t *", "const unsigned char *"):
            return (f"{kind} {name} = bytes;", name, ["NULL"])
        if is_length_of(function.parameters, index) and function.parameters[index - 1].type in (
                "const void *", "const uint8_t *", "const unsigned char *"):
            return (f"size_t {name} = sizeof bytes;", name, ["0", "SIZE_MAX - 1"])
        if struct in self.header.structs and kind.startswith("const "):
            return self.struct_argument(struct, kind, name)
        if p.name == "stride":
            record = function.parameters[index - 1].type.removesuffix(" *")
            good = f"sizeof({record})" if record != "void" else "16"
            return (f"size_t {name} = {good};", name, ["0", "1", "SIZE_MAX", "65537"])
        if struct in self.header.structs and self.header.structs[struct][0].name == "struct_size" \
                and not function.name.endswith("_init"):
            setup = (f"{kind} {name} = ({kind})room[{index}]; memset(room[{index}], 0, sizeof room[{index}]); "
                     f"{name}->struct_size = sizeof *{name};")
            return (setup, name, ["NULL", f"({name}->struct_size = 0, {name})", f"({name}->struct_size = 7, {name})"])
        if kind.endswith("*"):
            # Room for whatever is written: records, byte buffers, numbers.
            return (f"{kind} {name} = ({kind})room[{index}];", name, ["NULL"])
        if kind == "byway_destroy":
            return (f"byway_destroy {name} = NULL;", name, [])
        if p.name == "timeout_ms":
            return (f"int64_t {name} = 0;", name, ["1"])
        if p.name == "cap" and function.parameters[index - 1].out_handle:
            # Room for handles the caller will own: with none, there is nothing to clear.
            return (f"{kind} {name} = 1;", name, [])
        if counts_elements(function.parameters, index) or p.name in TRUTHFUL:
            return (f"{kind} {name} = 1;", name, ["0"])
        return (f"{kind} {name} = ({kind})1;", name, INTEGERS.get(kind, ["0"]))

    def struct_argument(self, struct, kind, name):
        fields = self.header.structs[struct]
        sized = fields[0].name == "struct_size"
        setup = [f"static union {{ {struct} it; unsigned char all[8192]; }} {name}_room; "
                 f"memset(&{name}_room, 0, sizeof {name}_room); "]
        init = "BYWAY_" + struct.removeprefix("byway_").upper() + "_INIT"
        if init in self.header.macros:
            setup.append(f"{{ {struct} fresh = {init}; {name}_room.it = fresh; }} ")
        elif sized:
            setup.append(f"{name}_room.it.struct_size = sizeof({struct}); ")
        setup.append(f"zoo_fill(\"{struct}\", &{name}_room.it); {kind} {name} = &{name}_room.it;")
        bad = ["NULL"]
        place = f"{name}_room.it"
        if sized:
            bad += [f"({place}.struct_size = {size}, &{place})" for size in ("0", "7", "SIZE_MAX")]
            bad.append(f"(memset({name}_room.all + sizeof({struct}), 255, 64), "
                       f"{place}.struct_size = sizeof({struct}) + 64, &{place})")
        for f in fields[1:] if sized else fields:
            target = f"{place}.{f.name}"
            pointee = f.type.removeprefix("const ").removesuffix(" *")
            if pointee in self.header.opaque and f.type.endswith("*"):
                bad += [f"({target} = ({f.type})bad_handle(\"{pointee}\", {how}), &{place})"
                        for how in (1, 2, 3, 4)]
            elif f.type == "byway_str":
                bad += [f"({target}.data = {data}, {target}.len = {size}, &{place})"
                        for data, size in (("NULL", "5"), ("bad_utf8", "BYWAY_NUL"), ("\"x\"", "SIZE_MAX - 1"),
                                           ("odd_text", "BYWAY_NUL"))]
            elif f.type in INTEGERS and f.name not in TRUTHFUL and not f.name.endswith(("count", "len", "_n")):
                bad += [f"({target} = {value}, &{place})" for value in INTEGERS[f.type]]
            elif f.type == "function" or f.type == "byway_destroy":
                if f.name != "destroy":
                    bad.append(f"({target} = NULL, &{place})")
        return ("".join(setup), name, bad)

    def call(self, function):
        """One C function: calls the export with argument `which` replaced by its bad value number `how`."""
        number = len(function.parameters)
        arguments = [self.argument(function, i) for i in range(number)]
        total = sum(len(bad) for _, _, bad in arguments)
        self.line(f"/* {function.name}: {total} bad arguments */")
        self.line(f"static void call_{function.name}(int bad)")
        self.line("{")
        is_status = function.result == "byway_status" and function.name != "byway_error_code"
        self.line("    (void)bad;")
        number_of_bad = 0
        for i, (declaration, name, bads) in enumerate(arguments):
            self.line(f"    {declaration}")
        for i, (declaration, name, bads) in enumerate(arguments):
            for bad in bads:
                kind = function.parameters[i].type
                self.line(f"    if (bad == {number_of_bad}) {name} = ({kind}){bad};")
                number_of_bad += 1
        expression = f"{function.name}({', '.join(name for _, name, _ in arguments)})"
        first = function.parameters[0] if function.parameters else None
        own = first is not None and first.name == "self" and first.handle in self.header.opaque
        self_bads = len(arguments[0][2]) if own else 0
        for i, p in enumerate(function.parameters):
            if p.type.endswith("_callbacks *"):
                # A set that cannot say how to end it is not owed its destroy.
                self.line(f"    if (!a{i} || a{i}->struct_size < 24 || a{i}->struct_size > 65536) zoo_sets--;")
        # Everything that needs a statement comes before: hooks stand right around the one call.
        self.line("    BEFORE_CALL();")
        if is_status:
            self.line(f"    byway_status status = {expression};")
            self.line("    AFTER_CALL();")
            self.line(f"    seen(\"{function.name}\", bad, status);")
            if own:
                self.line(f"    if (bad >= 0 && bad < {self_bads}) refused(\"{function.name}\", bad, status);")
        elif function.result == "void":
            self.line(f"    {expression};")
            self.line("    AFTER_CALL();")
        else:
            self.line(f"    {function.result} result = {expression};")
            self.line("    AFTER_CALL();")
            self.line("    (void)result;")
        if own and function.name.endswith(("_free", "_release")):
            self.line(f"    if (bad < 0) consumed(a0);")
        if function.name.endswith("_retain"):
            self.line(f"    if (result) owned(\"{first.handle}\", (void *)result);")
        elif function.result.endswith("*") and function.result.startswith("byway_"):
            self.line(f"    if (result) owned(\"{function.result.removesuffix(' *')}\", (void *)result);")
        for i, p in enumerate(function.parameters):
            if not p.out_handle:
                continue
            condition = f"a{i} && " if arguments[i][2] else ""
            if is_status:
                self.line(f"    if ({condition}status < 0) cleared(\"{function.name}\", bad, \"{p.name}\", "
                          f"a{i}_place, {1 if p.name == 'err' else 0}, status);")
            if p.name == "err":
                self.line(f"    if ({condition}a{i}_place != POISON) byway_error_free(a{i}_place);")
            elif not p.type.startswith("const "):
                self.line(f"    if ({condition}a{i}_place && a{i}_place != POISON) "
                          f"owned(\"{p.out_handle}\", a{i}_place);")
        self.line("}")
        self.line()
        return total

    def write(self):
        self.line("/* Generated from include/byway.h by tests/suite/generate.py. */")
        self.line()
        table = [(f, self.call(f)) for f in self.header.functions]
        self.line("static const struct export { const char *name; void (*call)(int bad); int bads; "
                  "const char *self; int is_status; } exports[] = {")
        for function, total in table:
            first = function.parameters[0] if function.parameters else None
            own = first is not None and first.name == "self" and first.handle in self.header.opaque
            handle = f"\"{first.handle}\"" if own else "NULL"
            status = int(function.result == "byway_status" and function.name != "byway_error_code")
            self.line(f"    {{ \"{function.name}\", call_{function.name}, {total}, {handle}, {status} }},")
        self.line("};")
        self.line(f"static const char *const types[] = {{ {', '.join(chr(34) + t + chr(34) for t in self.types())} }};")
        return "\n".join(self.text) + "\n"

    def types(self):
        return [t for t in self.header.opaque if t != "byway_call"]

    def callbacks(self):
        """Table of every callback the header knows, with a function that calls every export from inside it."""
        out = ["/* Generated from include/byway.h by tests/suite/generate.py. */"]
        names = []
        for struct, functions in self.header.callbacks.items():
            names += [f"{struct}.{name}" for name in functions] + [f"{struct}.destroy"]
        out.append("static const char *const callbacks[] = {")
        out += [f"    \"{name}\"," for name in names]
        out.append("};")
        return "\n".join(out) + "\n"

    def layout(self):
        """A C program's idea of every struct, for the comparison with byway_layout()."""
        out = ["/* Generated from include/byway.h by tests/suite/generate.py. */",
               "static const struct expected { const char *name; size_t size; size_t count; size_t offsets[128]; }",
               "expected[] = {"]
        for struct, fields in self.header.structs.items():
            offsets = ", ".join(f"offsetof({struct}, {f.name})" for f in fields)
            out.append(f"    {{ \"{struct}\", sizeof({struct}), {len(fields)}, {{ {offsets} }} }},")
        out.append("};")
        out.append("static void inits_agree(void)")
        out.append("{")
        for macro in self.header.macros:
            struct = "byway_" + macro.removeprefix("BYWAY_").removesuffix("_INIT").lower()
            init = self.header.function(f"{struct}_init")
            out.append("    {")
            out.append(f"        {struct} by_macro = {macro};")
            if init:
                out.append(f"        {struct} by_function;")
                # Padding is nobody's field, so both start from the same bytes.
                out.append(f"        {struct} copy; memset(&copy, 0, sizeof copy); memset(&by_function, 0, "
                           "sizeof by_function);")
                for f in self.header.structs[struct]:
                    out.append(f"        memcpy(&copy.{f.name}, &by_macro.{f.name}, sizeof copy.{f.name});")
                out.append(f"        {struct}_init(&by_function);")
                same = " && ".join(f"!memcmp(&copy.{f.name}, &by_function.{f.name}, sizeof copy.{f.name})"
                                   for f in self.header.structs[struct])
                out.append(f"        OK({same}, \"{macro} and {struct}_init are the same\");")
            else:
                out.append(f"        OK(by_macro.{self.header.structs[struct][0].name} == sizeof by_macro, "
                           f"\"{macro} says its size\");")
            out.append("    }")
        out.append("}")
        return "\n".join(out) + "\n"


def main(folder):
    writer = Writer(read())
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("calls.h", writer.write()), ("callbacks.h", writer.callbacks()), ("layout.h", writer.layout())):
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "c")
