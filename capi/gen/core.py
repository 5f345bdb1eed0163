"""Generated code of the core: op numbers (ops.inc), typed arguments and callers (ops.h), the table itself (table.cpp)."""

import re

from gen import rules
from gen.arg_types import TYPES
from gen.table import result_name

def enumerator(name):
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def role_enumerator(role):
    return "ArgRole::" + enumerator(role or "none")


def ops_inc(ops, digest):
    out = [f"#define YOKE_OP_TABLE_HASH 0x{digest:016x}ull", f"#define YOKE_OP_COUNT {len(ops)}",
           "/* Ops below this number are public; the others have names that begin with _. */",
           f"#define YOKE_PUBLIC_OP_COUNT {sum(not op.internal for op in ops)}", ""]
    out += [f"#define {op.macro} {op.id}" for op in ops]
    out += ["", "/* In the order of their numbers. Views, composed ops and in-place forms have no kernel of their own. */",
            "#define YOKE_FOR_EACH_OP(KERNEL, NO_KERNEL) \\"]
    calls = [f"{'NO_KERNEL' if op.cost in ('view', 'composed', 'inplace') else 'KERNEL'}({op.name})" for op in ops]
    return "\n".join(out) + "\n    " + " \\\n    ".join(calls) + "\n"


def args_struct(op):
    out = [f"struct {op.struct} : Args {{", "    using Args::Args;"]
    if op.args:
        out.append(f"    enum : int {{ {', '.join(enumerator(a.name) for a in op.args)} }};")
    for arg in op.args:
        kind = TYPES[arg.type]
        k = enumerator(arg.name)
        out.append(f"    {kind.value}{arg.name}() const {{ return Args::{kind.getter}({k}); }}")
        if kind.setter:
            out.append(f"    void set_{arg.name}({kind.setter[1]}v) {{ Args::{kind.setter[0]}({k}, v); }}")
    return out + ["};"]


def defined(op):
    """Functions defined by the op's family; a missing function is a link error."""
    if op.composed:
        counts = [f"int64_t count_{op.cpp}({op.struct} a);"] if op.gives_list else []
        return counts + [f"{result_type(op)} compose_{op.cpp}({op.struct} a);"]
    if op.in_place:
        return []
    infer = [f"void infer_{op.cpp}({op.struct} a, Plan &plan);"] if op.rule == rules.OWN else []
    return infer + ([f"void vjp_{op.cpp}({op.struct} a, Backward &b);"] if op.has_vjp else [])


def cpp_default(arg):
    if arg.default is None:
        return ""
    if arg.default == "none":
        return f" = {TYPES[arg.type].absent}"
    if "Operand" in TYPES[arg.type].caller:
        return f" = Operand({'double' if '.' in arg.default else 'int64_t'}{{{arg.default}}})"
    return " = " + arg.default


def result_type(op):
    n = len(op.returned)
    if op.gives_list:
        return "std::vector<Tensor>"
    return "void" if n == 0 else "Tensor" if n == 1 else f"std::array<Tensor, {n}>"


def caller(op, with_defaults):
    params = ", ".join(TYPES[a.type].caller + a.name + (cpp_default(a) if with_defaults else "") for a in op.args)
    return f"{result_type(op)} {op.cpp}({params})"


def ops_h(ops):
    out = ["""// What ops.def says, as C++: typed views of the arguments of each op, the functions that its family must define,
// and typed callers through the one path of run.h. An internal op drops its leading underscore; where a public op has
// that name, _internal follows it. A trailing underscore stays, and is "Inplace" in the name of a struct.
#pragma once

#include "core/ops/args.h"
#include "core/ops/op_def.h"

#include <array>
#include <vector>

namespace yoke {
"""]
    for op in ops:
        out += [f"// {op.name}: {op.doc}"] + args_struct(op) + defined(op) + [""]
    out += ["// Callers. They cast, record and count like any call from outside.", "namespace ops {"]
    out += [caller(op, True) + ";" for op in ops]
    return "\n".join(out) + "\n} // namespace ops\n} // namespace yoke\n"


def default_value(arg):
    """Returns the default as a yoke_arg initialiser in C++ and C."""
    text, kind = arg.default, TYPES[arg.type]
    if text is None or (text == "none" and kind.absent != "YOKE_NONE"):
        return "{YOKE_ARG_NONE, 0, {}}"
    holds = "FLOAT" if "FLOAT" in kind.kinds and re.search("[.e]", text) else kind.kinds[0]
    member = {"FLOAT": "f", "STRING": "string"}.get(holds, "i")
    words = {"none": "YOKE_NONE", "true": "1", "false": "0"}
    value = repr(float(text)) if holds == "FLOAT" else words.get(text, text)
    return f"{{YOKE_ARG_{holds}, 0, {{.{member} = {value}}}}}"


def saves_mask(op, arg):
    """Returns the mask of saved tensors. Bit k: argument k; bit 16 + k: result k. Results marked as saved are always kept."""
    if not TYPES[arg.type].tensor or not op.has_vjp:
        return 0
    names, outs = [a.name for a in op.args], [result_name(i) for i in range(len(op.results))]
    bits = [16 + i for i, kind in enumerate(op.results) if kind == "saved"]
    for name in op.saves.get(arg.name, []):
        bits.append(names.index(name) if name in names else 16 + outs.index(name))
    return sum(1 << bit for bit in set(bits))


def specs(op):
    """Returns the name of the constant with the op's arguments."""
    return f"k{op.struct.removesuffix('Args')}Specs"


def table_entry(op):
    quoted = op.doc.replace("\\", "\\\\").replace('"', '\\"')
    signature = op.signature.replace('"', '\\"')
    results = ", ".join(f"ResultKind::k{r.capitalize()}" for r in op.results)
    saves = ", ".join(f"0x{saves_mask(op, a):x}" for a in op.args)
    vjp = f"[](yoke_arg *a, Backward &b) {{ vjp_{op.cpp}({op.struct}(a), b); }}" if op.has_vjp else "nullptr"
    made = f"compose_{op.cpp}({op.struct}(a))"
    single = f"r[0] = {made};" if len(op.returned) == 1 else f"give_all({made}, r);" if op.returned else f"{made};"
    one = f"[](yoke_arg *a, Tensor *{'r' if op.returned else ''}) {{ {single} }}" if op.composed and not op.gives_list else "nullptr"
    many = f"[](yoke_arg *a) {{ return {made}; }}" if op.composed and op.gives_list else "nullptr"
    count = f"[](yoke_arg *a) {{ return count_{op.cpp}({op.struct}(a)); }}" if op.gives_list else "nullptr"
    results = "" if op.gives_list else results
    autocast = "".join(part.capitalize() for part in op.autocast.split("_"))
    return f"""    {{
        .name = "{op.name}",
        .signature = "{signature}",
        .doc = "{quoted}",
        .family = "{op.family}",
        .args = {specs(op) if op.args else 'nullptr'},
        .arg_count = {len(op.args)},
        .results = {{{results}}},
        .result_count = {0 if op.gives_list else len(op.results)},
        .returned_count = {-1 if op.gives_list else len(op.returned)},
        .mut_result = {op.mut},
        .in_place_of = {op.macro[:-1] if op.in_place else -1},
        .saves = {{{saves}}},
        .autocast = AutocastClass::k{autocast},
        .cost = Cost::k{op.cost.capitalize()},
        .infer = {rules.infer(op, enumerator)},
        .vjp = {vjp},
        .compose = {one},
        .compose_list = {many},
        .count_list = {count},
    }},"""


def table_cpp(ops):
    out = ["""#include "core/ops/op_def.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"
#include "core/ops/run.h"

namespace yoke {
namespace {

void run_in_place(int32_t op, yoke_arg *args)
{
    Tensor results[kMaxResults];
    run(op, args, results);
}

// Moves the results of a composed op to the caller.
template <size_t N>
void give_all(std::array<Tensor, N> made, Tensor *results)
{
    for (Tensor &one : made) *results++ = std::move(one);
}
"""]
    for op in ops:
        if op.args:
            rows = [f'    {{"{a.name}", ArgType::{TYPES[a.type].enumerator}, {role_enumerator(a.role)}, {str(a.default is not None).lower()}, {str(a.by_name).lower()}, {default_value(a)}}},'
                     for a in op.args]
            out += [f"const ArgSpec {specs(op)}[] = {{"] + rows + ["};"]
    out += ["", "} // namespace", "", "const OpDef kOps[YOKE_OP_COUNT] = {"] + [table_entry(op) for op in ops]
    out += ["};", "", "namespace ops {", ""]
    for op in ops:
        values = ", ".join(TYPES[a.type].pack.format(a.name) for a in op.args)
        call = (f"return run_list({op.macro}, args);" if op.gives_list else
                f"return run_one({op.macro}, args);" if len(op.returned) == 1 else
                f"return run_many<{len(op.returned)}>({op.macro}, args);" if op.returned else f"run_in_place({op.macro}, args);")
        out += [caller(op, False), "{", f"    yoke_arg args[] = {{{values}}};", f"    {call}", "}", ""]
    return "\n".join(out) + "} // namespace ops\n} // namespace yoke\n"
