"""What the core compiles: op numbers (ops.inc), typed arguments and callers (ops.h), the table itself (table.cpp)."""

from gen.table import TYPES, result_name

# Argument type: (type of its accessor, Args:: getter, Args:: setter and the type it takes, type of a caller's
# parameter).
ACCESS = {
    "tensor": ("const yoke_tensor &", "tensor", ("set_tensor", "const yoke_tensor &"), "const yoke_tensor &"),
    "tensor?": ("const yoke_tensor *", "tensor_or_null", None, "const yoke_tensor *"),
    "tensors": ("TensorList ", "tensors", None, "TensorList "),
    "mut": ("yoke_tensor &", "mut", None, "yoke_tensor &"),
    "muts": ("TensorList ", "tensors", None, "TensorList "),
    "operand": ("const yoke_arg &", "value", None, "const Operand &"),
    "int": ("int64_t ", "integer", ("set_integer", "int64_t "), "int64_t "),
    "int?": ("std::optional<int64_t> ", "optional_integer", ("set_integer", "int64_t "), "std::optional<int64_t> "),
    "ints": ("IntList ", "ints", ("set_ints", "IntList "), "IntList "),
    "ints?": ("std::optional<IntList> ", "optional_ints", ("set_ints", "IntList "), "std::optional<IntList> "),
    "float": ("double ", "real", None, "double "),
    "bool": ("bool ", "boolean", None, "bool "),
    "dtype": ("yoke_dtype ", "dtype_of", ("set_dtype_of", "yoke_dtype "), "yoke_dtype "),
    "scalar": ("const yoke_arg &", "value", None, "const Operand &"),
    "scalar?": ("const yoke_arg *", "value_or_null", None, "std::optional<Operand> "),
    "str": ("std::string_view ", "string", None, "const char *"),
    "device": ("Device *", "device_or_null", None, "Device *"),
}

# How a caller turns a parameter into a yoke_arg.
PACK = {
    "tensor": "arg_tensor({})", "tensor?": "arg_optional_tensor({})", "tensors": "arg_tensors({})",
    "mut": "arg_tensor({})", "muts": "arg_tensors({})", "operand": "{}.arg()", "int": "arg_int({})",
    "int?": "{0} ? arg_int(*{0}) : arg_none()", "ints": "arg_ints({})",
    "ints?": "{0} ? arg_ints(*{0}) : arg_none()", "float": "arg_float({})", "bool": "arg_bool({})",
    "dtype": "arg_int({})", "scalar": "{}.arg()", "scalar?": "{0} ? {0}->arg() : arg_none()",
    "str": "arg_string({})", "device": "arg_device({})",
}


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
        kind, getter, setter, _ = ACCESS[arg.type]
        k = enumerator(arg.name)
        out.append(f"    {kind}{arg.name}() const {{ return Args::{getter}({k}); }}")
        if setter:
            out.append(f"    void set_{arg.name}({setter[1]}v) {{ Args::{setter[0]}({k}, v); }}")
    return out + ["};"]


def rules(op):
    """The functions that the op's family defines; one that is missing is a link error."""
    if op.composed:
        counts = [f"int64_t count_{op.cpp}({op.struct} a);"] if op.gives_list else []
        return counts + [f"{result_type(op)} compose_{op.cpp}({op.struct} a);"]
    if op.in_place:
        return []
    return [f"void infer_{op.cpp}({op.struct} a, Plan &plan);"] + (
        [f"void vjp_{op.cpp}({op.struct} a, Backward &b);"] if op.has_vjp else [])


def cpp_default(arg):
    if arg.default is None:
        return ""
    if arg.default == "none":
        return {"dtype": " = YOKE_NONE", "device": " = nullptr", "tensor?": " = nullptr"}.get(arg.type, " = std::nullopt")
    if arg.type in ("scalar", "scalar?"):
        return f" = Operand({'double' if '.' in arg.default else 'int64_t'}{{{arg.default}}})"
    return " = " + arg.default


def result_type(op):
    n = len(op.returned)
    if op.gives_list:
        return "std::vector<Tensor>"
    return "void" if n == 0 else "Tensor" if n == 1 else f"std::array<Tensor, {n}>"


def caller(op, with_defaults):
    params = ", ".join(ACCESS[a.type][3] + a.name + (cpp_default(a) if with_defaults else "") for a in op.args)
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
        out += [f"// {op.name}: {op.doc}"] + args_struct(op) + rules(op) + [""]
    out += ["// Callers. They cast, record and count like any call from outside.", "namespace ops {"]
    out += [caller(op, True) + ";" for op in ops]
    return "\n".join(out) + "\n} // namespace ops\n} // namespace yoke\n"


def default_value(arg):
    """The default as a yoke_arg initialiser in C++ and C."""
    text = arg.default
    if text is None or (text == "none" and arg.type != "dtype"):
        return "{YOKE_ARG_NONE, 0, {}}"
    if arg.type == "dtype":
        return "{YOKE_ARG_INT, 0, {.i = YOKE_NONE}}"
    if arg.type == "bool":
        return f"{{YOKE_ARG_BOOL, 0, {{.i = {int(text == 'true')}}}}}"
    if arg.type == "str":
        return f"{{YOKE_ARG_STRING, 0, {{.string = {text}}}}}"
    if arg.type == "float" or "." in text or "e" in text:
        return f"{{YOKE_ARG_FLOAT, 0, {{.f = {float(text)!r}}}}}"
    return f"{{YOKE_ARG_INT, 0, {{.i = {text}}}}}"


def type_enumerator(kind):
    stem = {"str": "string"}.get(kind, kind.rstrip("?"))
    return "ArgType::k" + ("Optional" if kind.endswith("?") else "") + stem.capitalize()


def saves_mask(op, arg):
    """Bit k: argument k; bit 16 + k: result k. Results marked as saved are kept whichever argument asks."""
    if not TYPES[arg.type][1] or not op.has_vjp:
        return 0
    names, outs = [a.name for a in op.args], [result_name(i) for i in range(len(op.results))]
    bits = [16 + i for i, kind in enumerate(op.results) if kind == "saved"]
    for name in op.saves.get(arg.name, []):
        bits.append(names.index(name) if name in names else 16 + outs.index(name))
    return sum(1 << bit for bit in set(bits))


def table_entry(op):
    quoted = op.doc.replace("\\", "\\\\").replace('"', '\\"')
    signature = op.signature.replace('"', '\\"')
    results = ", ".join(f"ResultKind::k{r.capitalize()}" for r in op.results)
    saves = ", ".join(f"0x{saves_mask(op, a):x}" for a in op.args)
    infer = "nullptr" if op.composed or op.in_place else f"[](yoke_arg *a, Plan &p) {{ infer_{op.cpp}({op.struct}(a), p); }}"
    vjp = f"[](yoke_arg *a, Backward &b) {{ vjp_{op.cpp}({op.struct}(a), b); }}" if op.has_vjp else "nullptr"
    compose = f"[](yoke_arg *a) {{ return compose_{op.cpp}({op.struct}(a)); }}"
    one, many = (compose if op.composed and op.gives_list == many else "nullptr" for many in (False, True))
    count = f"[](yoke_arg *a) {{ return count_{op.cpp}({op.struct}(a)); }}" if op.gives_list else "nullptr"
    results = "" if op.gives_list else results
    autocast = "".join(part.capitalize() for part in op.autocast.split("_"))
    return f"""    {{
        .name = "{op.name}",
        .signature = "{signature}",
        .doc = "{quoted}",
        .family = "{op.family}",
        .args = {'k' + op.struct if op.args else 'nullptr'},
        .arg_count = {len(op.args)},
        .results = {{{results}}},
        .result_count = {0 if op.gives_list else len(op.results)},
        .returned_count = {-1 if op.gives_list else len(op.returned)},
        .mut_result = {op.mut},
        .in_place_of = {op.macro[:-1] if op.in_place else -1},
        .saves = {{{saves}}},
        .autocast = AutocastClass::k{autocast},
        .cost = Cost::k{op.cost.capitalize()},
        .infer = {infer},
        .vjp = {vjp},
        .compose = {one},
        .compose_list = {many},
        .count_list = {count},
    }},"""


def table_cpp(ops):
    out = ["""#include "core/ops/op_def.h"
#include "core/ops/ops.h"
#include "core/ops/run.h"

namespace yoke {
namespace {

void run_in_place(int32_t op, yoke_arg *args)
{
    Tensor results[kMaxResults];
    run(op, args, results);
}
"""]
    for op in ops:
        if op.args:
            specs = [f'    {{"{a.name}", {type_enumerator(a.type)}, {role_enumerator(a.role)}, {str(a.default is not None).lower()}, {default_value(a)}}},'
                     for a in op.args]
            out += [f"const ArgSpec k{op.struct}[] = {{"] + specs + ["};"]
    out += ["", "} // namespace", "", "const OpDef kOps[YOKE_OP_COUNT] = {"] + [table_entry(op) for op in ops]
    out += ["};", "", "namespace ops {", ""]
    for op in ops:
        values = ", ".join(PACK[a.type].format(a.name) for a in op.args)
        call = (f"return run_list({op.macro}, args);" if op.gives_list else
                f"return run_one({op.macro}, args);" if len(op.returned) == 1 else
                f"return run_many<{len(op.returned)}>({op.macro}, args);" if op.returned else f"run_in_place({op.macro}, args);")
        out += [caller(op, False), "{", f"    yoke_arg args[] = {{{values}}};", f"    {call}", "}", ""]
    return "\n".join(out) + "} // namespace ops\n} // namespace yoke\n"
