"""The column `shape` of ops.def: the rules of core/ops/rules.h, as a line names them and as the op table calls them."""

from gen.errors import TableError

# Rule: its arguments, each with its required type.
RULES = {
    "like": (("x", "tensor"),), "floating like": (("x", "tensor"),), "number like": (("x", "tensor"),),
    "bool like": (("x", "tensor"),), "row-major like": (("x", "tensor"),),
    "broadcast": (("x", "operand"), ("y", "operand")), "floating broadcast": (("x", "operand"), ("y", "operand")),
    "compare": (("x", "operand"), ("y", "operand")), "logic": (("x", "operand"), ("y", "operand")),
    "reduce": (("x", "tensor"), ("axis", "ints?"), ("keepdim", "bool"), ("dtype", "dtype")),
    "floating reduce": (("x", "tensor"), ("axis", "ints?"), ("keepdim", "bool")),
    "bool reduce": (("x", "tensor"), ("axis", "ints?"), ("keepdim", "bool")),
}
OWN, NOTHING = "own", "-"


def form(rule):
    return " ".join([rule, *(name for name, _ in RULES[rule])])


def parse(text):
    """Parses 'floating like x' -> ('floating like', ['x'])."""
    words = text.split(" ")
    if text in (OWN, NOTHING):
        return text, []
    for count in range(len(words), 0, -1):
        rule = " ".join(words[:count])
        if rule in RULES:
            return rule, words[count:]
    known = ", ".join([*map(form, RULES), OWN, NOTHING])
    raise TableError(f"unknown shape rule '{text}'; known: {known}")


def check_arguments(rule, names, args):
    types = {arg.name: arg.type for arg in args}
    if len(names) != len(RULES[rule]):
        raise TableError(f"shape rule '{' '.join([rule, *names])}' is not written as '{form(rule)}'")
    for name, (_, wanted) in zip(names, RULES[rule]):
        if name not in types:
            raise TableError(f"shape rule '{rule}' names '{name}', which is no argument; there are: {', '.join(types) or 'none'}")
        if types[name] != wanted:
            raise TableError(f"shape rule '{rule}' names '{name}' of type {types[name]}; '{form(rule)}' takes {wanted} there")


def check(text, args, results, cost):
    """Returns (rule, names) of an op, if the op may have this rule."""
    rule, names = parse(text)
    if cost in ("composed", "inplace"):
        if rule != NOTHING:
            raise TableError(f"cost {cost} has the shape rule '{NOTHING}': other ops say what the result is")
    elif rule in RULES:
        check_arguments(rule, names, args)
        if len(results) != 1:
            raise TableError(f"shape rule '{rule}' is of one result, and this op has {len(results)}; '{OWN}' may say any")
    elif rule == NOTHING and results:
        raise TableError(f"shape rule '{NOTHING}' is of an op that only writes its mut arguments; known: {', '.join([*map(form, RULES), OWN])}")
    return rule, names


def infer(op, enumerator):
    """Returns the C++ call for the op table."""
    if op.composed or op.in_place:
        return "nullptr"
    if op.rule == NOTHING:
        return "[](yoke_arg *, Plan &) {}"
    if op.rule == OWN:
        return f"[](yoke_arg *a, Plan &p) {{ infer_{op.cpp}({op.struct}(a), p); }}"
    name = op.rule.replace(" ", "_").replace("-", "_")
    places = "".join(f"{op.struct}::{enumerator(name)}, " for name in op.rule_args)
    return f"[](yoke_arg *a, Plan &p) {{ rules::{name}(Args(a), {places}p); }}"
