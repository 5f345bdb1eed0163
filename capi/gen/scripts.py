"""Generated input of the script bindings: rows of ops, stubs for Python, LuaLS comments for Lua, and the reference page."""

import dataclasses

from gen import forms as further
from gen import other_names, words
from gen.arg_types import TYPES
from gen.table import with_star

FAMILIES = {
    "pointwise": "Pointwise", "inplace": "In place", "reduce": "Reductions", "softmax": "Softmax", "loss": "Losses",
    "matmul": "Products", "conv": "Convolution", "shape": "Shape and views", "random": "Random", "create": "Creation",
}
CASTS = {
    "low": "runs in the autocast dtype", "f32": "runs in float32", "promote": "runs in the widest dtype of its arguments",
    "f32_unless_dtype": "runs in float32 unless `dtype` is given", "error": "is refused", "none": "does not change the dtypes",
}


# Results that are a named tuple in Python: bindings/python/src/values/op_spec.cpp has the list too.
PAIRS = {"sort", "topk", "max", "min", "median", "mode", "kthvalue", "cummax", "cummin"}
# Results that scripts get as a bool of the language.
TRUTHS = {"allclose", "equal"}
# Further stubs of Python: parameters behind the first tensor, and the result. The call stays the same op.
MORE_STUBS = {
    "randint_like": [("high: int, *, dtype: DType | str | None = None, device: Device | str | int | None = None, requires_grad: bool = False", "Tensor")],
    "randint": [("high: int, size: int | Sequence[int], *, dtype: DType | str | None = None, device: Device | str | int | None = None, requires_grad: bool = False",
                 "Tensor")],
    "einsum": [("equation: str, *tensors: Tensor", "Tensor")],
    "meshgrid": [('*tensors: Tensor, indexing: str = "ij"', "tuple[Tensor, ...]")],
}


def is_method(op):
    return bool(op.args) and TYPES[op.args[0].type].kind in ("tensor", "operand") and not TYPES[op.args[0].type].optional


def python_default(arg):
    words = {"none": "None", "true": "True", "false": "False"}
    return "" if arg.default is None else " = " + words.get(arg.default, arg.default)


def python_type(arg):
    kind = TYPES[arg.type].python
    return kind.removesuffix(" | None") if arg.type == "dtype" and arg.default is None else kind


def python_params(args):
    params = [f"{a.name}: {python_type(a)}{python_default(a)}" for a in args]
    return with_star(params + (["requires_grad: bool = False"] if creates(args) else []), sum(not a.by_name for a in args))


def creates(args):
    """Returns whether an op creates its result without input tensors; Python then takes requires_grad too."""
    return any(TYPES[a.type].kind == "device" for a in args)


def spread(args):
    """Returns the index of the list of ints that may be spread, as in randn(2, 3), or -1: the last required argument, unless a
    number may follow.

    The bindings find the index by the same rule in yoke_op_info.
    """
    last = max((i for i, a in enumerate(args) if a.default is None and not TYPES[a.type].optional), default=-1)
    if last < 0 or args[last].type != "ints":
        return -1
    return -1 if last + 1 < len(args) and TYPES[args[last + 1].type].takes_number else last


def python_spread(args):
    """Returns the parameters of the other form: reshape(x, *shape), after which all arguments have names."""
    i = spread(args)
    rest = python_params(args[i + 1:])
    return python_params(args[:i])[:i] + [f"*{args[i].name}: int"] + [p for p in rest if p != "*"] + (
        ["requires_grad: bool = False"] if creates(args) and "requires_grad: bool = False" not in rest else [])


def renamed(op, args, rows):
    """Returns arguments under their other names, the first of each; a plural, as `keepdims`, stands for no own argument."""
    others = other_names.of_call(rows, op.name, [a.name for a in op.args])
    flag = {"0": "false", "1": "true"}
    changed = []
    for arg in args:
        written = [each for each in others.get(arg.name, []) if each[0] != arg.name + "s" and each[0] not in words.LANGUAGES["Python"]]
        name, is_flag = next(iter(written), (arg.name, False))
        kind, default = ("bool", flag[arg.default]) if is_flag else (arg.type, arg.default)
        changed.append(dataclasses.replace(arg, name=name, type=kind, default=default))
    return changed


def form_params(form):
    """Returns the parameters of a form."""
    def param(arg):
        kind = "Tensor | _Scalar | None" if arg.type == "tensor?" else python_type(arg)
        return f"{arg.name}: {kind}{' | None' if arg.default == 'none' and 'None' not in kind else ''}{python_default(arg)}"
    return with_star([param(arg) for arg in form.args], form.by_place)


def form_result(form, own):
    """Returns the result; a form with an argument of the binding alone may also run the call's own op."""
    results = [python_result(form.call, own)] if form.dropped else []
    return " | ".join([*results, python_result(form.meant, own)])


def python_function(op, args, own, rows, forms, indent=""):
    """Returns the stub of a function or a method: several stubs if a list may be spread, or if arguments have other names."""
    first = ["self"] if indent else []
    written = [python_params(args)] + ([python_spread(args)] if spread(args) >= 0 else [])
    other = python_params(renamed(op, args, rows))
    written += [other] if other not in written else []
    lines = [f"{indent}def {op.name}({', '.join(first + params)}) -> {python_result(op, own)}: ..." for params in written]
    for form in further.of(forms, op):
        params = form_params(form)
        lines.append(f"{indent}def {op.name}({', '.join((first or params[:1]) + params[1:])}) -> {form_result(form, own)}: ...")
    for params, result in MORE_STUBS.get(op.name, []):
        tensor = first if is_method(op) and indent else [f"{op.args[0].name}: Tensor"] if is_method(op) else []
        lines.append(f"{indent}def {op.name}({', '.join(tensor + [params] * bool(params))}) -> {result}: ...")
    return lines if len(lines) == 1 else [line for each in lines for line in (f"{indent}@overload", each)]


def python_result(op, own):
    n = len(op.returned)
    if op.name in TRUTHS:
        return "bool"
    if op.mut >= 0:
        return own
    if op.gives_list:
        return f"{own} | tuple[{own}, ...]" if op.may_give_one else f"tuple[{own}, ...]"
    if op.name in PAIRS and n == 2:
        return "ValuesAndIndices"
    return "Tensor" if n == 1 else f"tuple[{', '.join(['Tensor'] * n)}]" if n else "None"


def text_signature(name, args):
    """Returns the lines of a docstring read by inspect.signature."""
    params = [a.name + python_default(a).replace(" ", "") for a in args] + (["requires_grad=False"] if creates(args) else [])
    return f"{name}({', '.join(with_star(params, sum(not a.by_name for a in args)))})\\n--\\n\\n"


def form_signature(form):
    return text_signature(form.call.name, form.args)


def bind(macro, ops, forms, with_doc):
    quote = lambda s: s.replace('"', '\\"')
    doc = lambda op: f', "{quote(text_signature(op.name, [*op.args, *further.options(forms, op)]) + op.doc)}"' if with_doc else ""
    return "\n".join(f'{macro}({op.name}, {op.id}{doc(op)})' for op in ops) + "\n"


def stubs(ops, rows, forms):
    out = ["from collections.abc import Sequence", "from typing import Self, overload", "",
           "from yoke._random import Generator", "from yoke._yoke import Device, Tensor, ValuesAndIndices",
           "from yoke._yoke import dtype as DType", "",
           "_Scalar = bool | int | float", ""]
    for op in ops:
        out += python_function(op, op.args, "Tensor", rows, forms)
    out += ["", "class _TensorOps:", '    """Every op whose first argument is a tensor, as a method of it."""', ""]
    for op in ops:
        if is_method(op):
            out += python_function(op, op.args[1:], "Self", rows, forms, "    ")
    return "\n".join(out) + "\n"


def lua_options(op, args, rows):
    """Returns the arguments with a default, under all their names."""
    others = other_names.of_call(rows, op.name, [a.name for a in op.args])
    lua = lambda name, kind: f"{name}?: {TYPES[kind].lua.removesuffix('|nil')}"
    options = [lua(a.name, a.type) for a in args if a.default is not None]
    options += [lua(f'["{name}"]' if name in words.LUA else name, "bool" if is_flag else a.type)
                for a in args if a.default is not None for name, is_flag in others.get(a.name, [])]
    return options + (["requires_grad?: boolean"] if creates(args) else [])


def lua_result(op):
    if op.name in TRUTHS:
        return "boolean"
    result = "yoke.Tensor" if op.returned or op.mut >= 0 else "nil"
    return "yoke.Tensor|yoke.Tensor[]" if op.may_give_one else "yoke.Tensor[]" if op.gives_list else ", ".join([result] * max(1, len(op.returned)))


def lua_form(form, owner, dot):
    """Returns the overload of a form; arguments by name stand in a table at the end."""
    kind = lambda arg: "yoke.Tensor|number" if arg.type == "tensor?" else TYPES[arg.type].lua.removesuffix("|nil")
    param = lambda arg: f"{arg.name}{'?' if arg.default is not None else ''}: {kind(arg)}"
    params = [f"self: {owner}" if dot == ":" else param(form.args[0]), *[param(arg) for arg in form.args[1:form.by_place]]]
    options = [param(arg) for arg in form.args[form.by_place:]]
    results = list(dict.fromkeys([lua_result(form.call), lua_result(form.meant)] if form.dropped else [lua_result(form.meant)]))
    return f"---@overload fun({', '.join(params + ([f'options: {{ {chr(44).join(options)} }}'] if options else []))}): {'|'.join(results)}"


def lua_function(op, owner, args, rows, forms, dot):
    result = lua_result(op)
    required = [f"{a.name}: {TYPES[a.type].lua}" for a in args if a.default is None]
    options = lua_options(op, args, rows)
    out = [f"---{op.doc}"]
    places = [a for a in args if not a.by_name]
    out += [f"---@param {a.name}{'?' if a.default else ''} {TYPES[a.type].lua.removesuffix('|nil')}" for a in places]
    out.append(f"---@return {result}")
    if options:
        own = [f"self: {owner}"] if dot == ":" else []
        params = own + required + [f"options: {{ {', '.join(options)} }}"]
        out.append(f"---@overload fun({', '.join(params)}): {result}")
    i = spread(args)
    if i >= 0:
        before = ([f"self: {owner}"] if dot == ":" else []) + required[:i]
        out.append(f"---@overload fun({', '.join([*before, '...: integer'])}): {result}")
    out += [lua_form(form, owner, dot) for form in further.of(forms, op)]
    name = "yoke" if dot == "." else "Tensor"
    return out + [f"function {name}{dot}{op.name}({', '.join(a.name for a in places)}) end", ""]


def meta_lua(ops, rows, forms):
    out = ["---@meta yoke.ops", "", "---@class yoke", "local yoke = {}", "", "---@class yoke.Tensor", "local Tensor = {}", ""]
    for op in ops:
        out += lua_function(op, "yoke", op.args, rows, forms, ".")
        if is_method(op):
            out += lua_function(op, "yoke.Tensor", op.args[1:], rows, forms, ":")
    return "\n".join(out)


def other_name_table(rows):
    """Returns the page's table of other names: a row for each own name."""
    found = {}
    for row in rows:
        for own in row.own:
            calls = f" ({', '.join(row.calls)})" if row.calls else ""
            found.setdefault(own, []).append(f"`{row.name}`{calls}")
    return ["| Argument | Other names |", "|---|---|", *[f"| `{own}` | {', '.join(names)} |" for own, names in found.items()]]


def reference(ops, rows, forms, prototype):
    out = ["# Ops", "",
           "For those who call ops: the arguments, result and C function of each op, and what autocast does with the op.",
           "",
           "In Python and Lua an op is a function of `yoke`. If the first argument is a tensor, the op is also a method of the",
           "tensor. Broadcasting, negative axes and indexing are as in NumPy. Arguments of type `operand` take a tensor or a",
           "number. A number is weak in promotion: the result has the dtype of the tensors, unless the number is of a higher",
           "kind. The page marks ops whose results are not differentiable.",
           "",
           "Python and Lua take a list of ints also as separate arguments, if the list is the last required argument:",
           "`randn(2, 3)`, `x.reshape(2, -1)`. If another number may follow the list, give a list: `x.split(2, 1)`",
           "has the size 2 and the axis 1.",
           "",
           "Ops that create a tensor, such as `zeros`, also take `requires_grad`. Arguments after `*` must be given by name in",
           "Python and Lua: `x.var(0, keepdim=True)`, in Lua `x:var(0, {keepdim = true})`. PyTorch has other arguments at these",
           "positions. C has no names, and takes all arguments in order. The entries come from `core/ops/ops.def`.", "",
           "Python and Lua also take PyTorch's names of arguments: `x.sum(dim=0)`. Give an argument by a single name. `unbiased` is True",
           "for a correction of 1, and False for 0.", "", *other_name_table(rows), "",
           "Random ops take a `generator`: they draw from its stream and move it on.",
           "",
           "Below the signature of an op stand further forms of its call in Python and Lua, such as `add` with `alpha`. C programs call",
           "such a form by `yoke_op_find` and `yoke_op_invoke`; `core/ops/forms.def` has the names. `allclose` and `equal` give Python a",
           "bool and Lua a boolean.",
           "",
           "| Not here | Why |",
           "|---|---|",
           "| complex numbers, FFT | no dtype holds a complex number |",
           "| sparse tensors | kernels walk strides; `embedding`, `gather` and `scatter_add` serve most uses |",
           "| linear algebra: `solve`, `svd`, `eigh`, `inv` | it needs LAPACK on the host and cuSOLVER on cards |",
           "| quantised tensors | they serve inference; for training there are float8 and `scaled_mm` |",
           "| `grid_sample` | its gradient adds at places that data name, in no fixed order |",
           "| bicubic and trilinear `interpolate` | `nearest`, `nearest-exact`, `bilinear` and `area` serve pictures; no op has volumes |", ""]
    family = None
    for op in ops:
        if op.family != family:
            family = op.family
            out += [f"## {FAMILIES.get(family, family.capitalize())}", ""]
        out += [f"### {op.name}", "", op.doc, "", "```", op.signature, *[form.signature for form in further.of(forms, op)], "```", ""]
        notes = [f"Autocast: {CASTS[op.autocast]}."]
        if not {"tensor", "tensors"} & set(op.results) and op.mut < 0:
            notes.append("Not differentiable.")
        if op.mut >= 0:
            notes.append(f"Changes `{op.args[op.mut].name}` and returns it.")
        out += [" ".join(notes), "", "```c", prototype(op), "```", ""]
    return "\n".join(out)
