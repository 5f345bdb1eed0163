"""The C API of the ops: header and bodies, the function table with its slots, the export list."""

import re
import textwrap

from gen.arg_types import TYPES
from gen.core import default_value
from gen.errors import TableError

AUTOCAST = {
    "low": "runs in the autocast dtype", "f32": "runs in float32", "promote": "runs in the widest dtype of its arguments",
    "f32_unless_dtype": "runs in float32 unless dtype is given", "error": "is refused", "none": None,
}
FUNCTION = re.compile(r"YOKE_API\s+([^;()]*?)(yoke_\w+)\(([^;]*?)\);")


def scalar_name(op):
    return f"yoke_{op.name[:-1]}_scalar_" if op.mut >= 0 else f"yoke_{op.name}_scalar"


def c_types(op, scalar):
    """Returns the types of the arguments; with `scalar` the last operand is a script scalar."""
    types = [a.type for a in op.args]
    if scalar:
        types[len(types) - 1 - types[::-1].index("operand")] = "scalar"
    return types


def variants(op):
    """Returns (C name, argument types) of the functions of an op."""
    out = [(f"yoke_{op.name}", c_types(op, False))]
    if any(a.type == "operand" for a in op.args):
        out.append((scalar_name(op), c_types(op, True)))
    return out


def outs(op):
    n = len(op.returned)
    return ["outs", "capacity", "count"] if op.gives_list else ["out"] if n == 1 else [f"out{i}" for i in range(n)]


def wrap(head, params, tail):
    """Returns `head(params)tail`, broken at commas under the opening parenthesis."""
    lines, indent = [head + "("], " " * (len(head) + 1)
    for i, part in enumerate(params):
        part += tail if i == len(params) - 1 else ","
        if len(lines[-1]) + len(part) + 1 > 100:
            lines.append(indent)
        lines[-1] += part if lines[-1] in (indent, head + "(") else " " + part
    return "\n".join(lines)


def header(name, types, op, tail):
    params = [p for a, t in zip(op.args, types) for p in TYPES[t].param.format(a.name).split(", ")]
    results = ["yoke_tensor **outs", "int64_t capacity", "int64_t *count"] if op.gives_list else [
        f"yoke_tensor **{o}" for o in outs(op)]
    return wrap(f"YOKE_API yoke_status {name}", params + results, tail)


def prototype(op):
    return "\n".join(header(name, types, op, ");") for name, types in variants(op))


def comment(op):
    text = [op.doc, op.signature]
    if AUTOCAST[op.autocast]:
        text.append(f"Under autocast it {AUTOCAST[op.autocast]}.")
    text[-1] += " [any-thread]" if len(text) == 3 else ""
    lines = [line for t in text for line in textwrap.wrap(t, 94, subsequent_indent="    ", break_long_words=False)]
    lines += ["[any-thread]"] if len(text) == 2 else []
    return "/* " + "\n * ".join(lines) + " */"


def ops_h(ops):
    out = ["""/*
 * yoke/ops.h: one function for each op.
 *
 * The second line of a comment is the op's signature, as docs/ops.md, Python and Lua know it; yoke.h
 * says how its types become C. Every op checks before it starts: shapes that do not fit, sizes that
 * overflow and tensors on different devices are VALUE, wrong dtypes TYPE, axes out of range INDEX, an op
 * that the device's backend lacks UNSUPPORTED, a shortage of memory OOM. A failed op changes nothing.
 * Results are recorded for yoke_backward where an input requires grad. The function whose name ends in
 * _scalar takes a script scalar as its last operand. A list of results goes to outs[0] … outs[*count - 1];
 * where it is longer than `capacity`, *count alone is set, nothing is written, and the status is VALUE.
 */
#ifndef YOKE_OPS_H
#define YOKE_OPS_H

#include "yoke/types.h"
#include "yoke/work.h"

#ifdef __cplusplus
extern "C" {
#endif
"""]
    family = None
    for op in ops:
        if op.family != family:
            family = op.family
            out.append(f"/* ---- {family} {'-' * (88 - len(family))} */\n")
        out += [comment(op), prototype(op), ""]
    return "\n".join(out) + "\n#ifdef __cplusplus\n}\n#endif\n#endif /* YOKE_OPS_H */\n"


def convert(arg, kind):
    value = TYPES[kind].convert.format(arg.name)
    if arg.default not in (None, "none") and kind in ("scalar", "str"):
        return f"{arg.name} ? {value} : yoke_arg{default_value(arg)}"
    return value


def ops_cpp(ops):
    out = ['#include "yoke/ops.h"\n', '#include "capi/src/args.h"\n', "using namespace yoke::capi;\n"]
    for op in ops:
        for name, types in variants(op):
            values = ", ".join(convert(a, t) for a, t in zip(op.args, types))
            call = "call_list" if op.gives_list else "call"
            passed = ", ".join([f'"{name}"', op.macro, "args"] + outs(op))
            out += [header(name, types, op, ")").removeprefix("YOKE_API "), "{",
                    f"    yoke_arg args[] = {{{values}}};", f"    return {call}({passed});", "}", ""]
    return "\n".join(out)


def find_functions(text):
    """Returns {name: (result type, parameters)} of all prototypes, in their order."""
    squeeze = lambda s: re.sub(r"\s+", " ", s).strip()
    return {name: (squeeze(result), squeeze(params)) for result, name, params in FUNCTION.findall(without_comments(text))}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)


def names_by_hand(headers):
    """Returns all names of the C API in headers {path: text}, functions and types. Raises for a function that is there twice."""
    names, places = set(), {}
    for path, text in headers.items():
        code = without_comments(text)
        names |= set(re.findall(r"\byoke_\w+", code))
        for found in FUNCTION.finditer(code):
            place = f"{path}:{code.count(chr(10), 0, found.start(2)) + 1}"
            if (first := places.setdefault(found[2], place)) != place:
                raise TableError(f"{place}: {found[2]} is declared twice; {first} has it")
    return names


def check_functions(ops, by_hand, path):
    """Raises unless each name belongs to the function of a single op, or to a header written by hand."""
    seen = {}
    for op in ops:
        for name, _ in variants(op):
            other = "a header written by hand" if name in by_hand else seen.get(name)
            if other:
                raise TableError(f"{path}:{op.line}: {name} of op '{op.name}' is declared by {other} too; the op needs another name")
            seen[name] = f"op '{op.name}' of line {op.line}"


def check_slots(slots, functions):
    """Returns the slots, with new functions at the end. A slot without its function is refused."""
    for number, slot in enumerate(slots, 1):
        place = f"capi/slots.txt:{number}"
        if not re.fullmatch(r"yoke_[a-z0-9_]+", slot):
            raise TableError(f"{place}: '{slot}' is not the name of one function, yoke_<name>, alone on its line")
        if (first := slots.index(slot) + 1) != number:
            raise TableError(f"{place}: {slot} stands there twice; line {first} has it")
        if slot not in functions:
            raise TableError(f"{place}: no header declares {slot}; a slot that was released stays, and one that never was goes by taking this line away")
    return slots + [name for name in functions if name not in slots]


def api_h(slots, functions):
    out = ["""/*
 * yoke/api.h: the whole API as one table of functions, for programs that load libyoke with dlopen.
 *
 *     const yoke_api *(*get_api)(uint32_t, uint32_t) = dlsym(library, "yoke_get_api");
 *     const yoke_api *api = get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR);
 *
 * A member is the function of its name with yoke_ before it; the headers describe them. Members keep
 * their places for ever and new ones come last: a table of a later minor version begins with this one.
 */
#ifndef YOKE_API_H
#define YOKE_API_H

#include "yoke/amp.h"
#include "yoke/autograd.h"
#include "yoke/checkpoint.h"
#include "yoke/checkpoints.h"
#include "yoke/comm.h"
#include "yoke/doctor.h"
#include "yoke/engines.h"
#include "yoke/graph.h"
#include "yoke/inventory.h"
#include "yoke/memory.h"
#include "yoke/optim.h"
#include "yoke/parallel.h"
#include "yoke/runtime.h"
#include "yoke/select.h"
#include "yoke/state.h"
#include "yoke/stream.h"
#include "yoke/tensor.h"
#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_api {
    uint32_t struct_size; /* of the library's table, perhaps longer than this header's */
    uint32_t major;
    uint32_t minor;
    uint32_t reserved;"""]
    for name in slots:
        result, params = functions[name]
        star = "" if result.endswith("*") else " "
        out.append(wrap(f"    {result}{star}(*{name.removeprefix('yoke_')})", params.split(", "), ");"))
    return "\n".join(out) + """
} yoke_api;

/* The table, if the library's major version is `major` and its minor version at least `min_minor`; else
 * NULL, and the last error names the versions wanted and found. Static. [any-thread] */
YOKE_API const yoke_api *yoke_get_api(uint32_t major, uint32_t min_minor);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_API_H */
"""


def table_inc(slots):
    return "\n".join(f"{name}," for name in slots) + "\n"


def version_script(functions):
    names = sorted([*functions, "yoke_get_api"])
    return "YOKE_0 {\n    global:\n" + "".join(f"        {n};\n" for n in names) + "    local:\n        *;\n};\n"
