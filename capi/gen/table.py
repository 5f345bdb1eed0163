"""Reads core/ops/ops.def, with the grammar in its first lines, and refuses lines that break the grammar."""

import contextlib
import hashlib
import math
import re
from dataclasses import dataclass, field

from gen import rules, words
from gen.arg_types import TYPES
from gen.errors import TableError

AUTOCAST = ("low", "f32", "f32_unless_dtype", "promote", "error", "none")
COSTS = ("bytes", "gemm", "view", "composed", "inplace")

# Role of an argument: its allowed types.
ROLES = {"index": ("tensor", "tensors"), "random_offset": ("int",)}

# Results of an op that gives scripts a list, but a list of one as the tensor alone. The bindings know it by the
# signature.
ONE_OR_MORE = "tensor or tensors"

OP = re.compile(r"(\w+)\((.*)\) -> (.+?) \| ([^|]+) \| (\w+) \| (\w+) \| (\S.*)")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
ARG = re.compile(r"(\w+): ([a-z]+\??)(?: as (\w+))?(?: = (.+))?")


@dataclass
class Arg:
    name: str
    type: str
    role: str | None
    default: str | None  # as written in the table
    by_name: bool = False  # stands behind "*": scripts take it by name alone

    @property
    def public(self):
        """Returns the signature's form: without the role, because only the core uses the role."""
        return f"{self.name}: {self.type}" + (f" = {self.default}" if self.default is not None else "")


@dataclass
class Op:
    name: str
    family: str
    signature: str
    args: list
    results: list  # "tensor", "plain", "saved", or "tensors" alone; empty if the op changes an argument or returns nothing
    mut: int  # the argument that is returned, or -1
    saves: dict  # argument -> names kept for its gradient
    rule: str  # shape rule, and its arguments
    rule_args: list
    autocast: str
    cost: str
    doc: str
    cpp: str = ""  # its name in C++
    line: int = 0  # in the table
    id: int = field(default=-1)

    @property
    def internal(self):
        return self.name.startswith("_")

    @property
    def composed(self):
        return self.cost == "composed"

    @property
    def in_place(self):
        return self.cost == "inplace"

    @property
    def returned(self):
        return [r for r in self.results if r != "saved"]

    @property
    def gives_list(self):
        return self.results == ["tensors"]

    @property
    def may_give_one(self):
        """Returns whether scripts get a list of a single result as the tensor alone."""
        return self.signature.endswith(f"-> {ONE_OR_MORE}")

    @property
    def has_vjp(self):
        return not self.composed and not self.in_place and ("tensor" in self.results or (self.mut >= 0 and not self.internal))

    @property
    def places(self):
        """Returns how many arguments scripts take by place."""
        return sum(not arg.by_name for arg in self.args)

    @property
    def struct(self):
        camel = "".join(part.capitalize() for part in self.cpp.split("_"))
        return camel + ("Inplace" if self.cpp.endswith("_") else "") + "Args"

    @property
    def macro(self):
        return "YOKE_OP_" + self.name.upper()


def split_args(text):
    """Splits at commas outside quotes; such commas have an even number of quotes behind them."""
    return [part.strip() for part in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', text)] if text else []


def check_role(name, kind, role):
    if role is not None and role not in ROLES:
        raise TableError(f"argument '{name}' has the unknown role '{role}'; known: {', '.join(ROLES)}")
    if role is not None and kind not in ROLES[role]:
        raise TableError(f"argument '{name}' of type {kind} cannot be {role}; that is for {' and '.join(ROLES[role])}")


def parse_arg(text):
    match = ARG.fullmatch(text)
    if not match:
        raise TableError(f"argument '{text}' is not written as 'name: type', which 'as role' and '= default' may follow")
    name, kind, role, default = match.groups()
    words.check(name, "argument")
    if kind not in TYPES:
        raise TableError(f"argument '{name}' has the unknown type '{kind}'; known: {', '.join(TYPES)}")
    check_role(name, kind, role)
    pattern, allowed = TYPES[kind].default or (None, "this type takes no default")
    if default is not None and not (pattern and re.fullmatch(pattern, default)):
        raise TableError(f"argument '{name}': '{default}' is no default of type {kind}; allowed: {allowed}")
    check_range(name, default or "")
    return Arg(name, kind, role, default)


def check_range(name, default):
    """Checks that C can hold a number."""
    whole = re.fullmatch(r"-?\d+", default)
    if whole and not -(1 << 63) < int(default) < 1 << 63:
        raise TableError(f"argument '{name}': '{default}' does not fit into 64 bits; allowed: -9223372036854775807 to 9223372036854775807")
    if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", default) and math.isinf(float(default)):
        raise TableError(f"argument '{name}': '{default}' is beyond the largest double, 1.8e308")


def starred(texts):
    """Returns the words of arguments without the "*" among them, and the number of words before the "*"."""
    places = texts.index("*") if "*" in texts else len(texts)
    if places < len(texts) and (places == len(texts) - 1 or texts.count("*") > 1):
        raise TableError("'*' stands once at most, with an argument behind it")
    return [text for text in texts if text != "*"], places


def with_star(texts, places):
    """Puts the "*" back that starred() took out."""
    return [*texts[:places], "*", *texts[places:]] if places < len(texts) else texts


def parse_args(text):
    parts, places = starred(split_args(text))
    args = [parse_arg(part) for part in parts]
    for arg in args[places:]:
        arg.by_name = True
        if arg.default is None:
            raise TableError(f"argument '{arg.name}' stands behind '*' and has no default; scripts could not leave it out")
    names = [arg.name for arg in args]
    enumerators = {}
    offsets = [arg.name for arg in args if arg.role == "random_offset"]
    if len(offsets) > 1:
        raise TableError(f"arguments '{offsets[0]}' and '{offsets[1]}' are both random_offset; an op has one at most")
    for i, arg in enumerate(args):
        if arg.name in [a.name for a in args[:i]]:
            raise TableError(f"argument '{arg.name}' is listed twice; list it once")
        if (other := enumerators.setdefault(arg.name.replace("_", ""), arg)) is not arg:
            raise TableError(f"arguments '{other.name}' and '{arg.name}' are one name in C++, where '_' goes; one needs another")
        if i and args[i - 1].default is not None and arg.default is None:
            raise TableError(f"argument '{arg.name}' has no default, but the argument before has one; give it a default, or move it")
        if f"{arg.name}_count" in names and TYPES[arg.type].is_list:
            raise TableError(f"argument '{arg.name}_count' has the name that C gives the length of '{arg.name}'; use another name")
    if len(args) > 12:
        raise TableError(f"{len(args)} arguments; kMaxArgs of core/ops/op_def.h is 12")
    return args


def parse_results(text, args):
    """Parses 'tensor, saved' -> (kinds, -1); 'x' -> ([], index of the mut argument); '()' -> ([], -1)."""
    muts = {a.name: i for i, a in enumerate(args) if a.type == "mut"}
    if text == "()":
        return [], -1
    if text in muts:
        return [], muts[text]
    if text in ("tensors", ONE_OR_MORE):
        return ["tensors"], -1
    kinds = text.split(", ")
    for kind in kinds:
        if kind not in ("tensor", "plain", "saved"):
            raise TableError(f"result '{kind}' is unknown; known: tensor, plain, saved, tensors, tensor or tensors, () or a mut argument")
    if len(kinds) > 4:
        raise TableError(f"{len(kinds)} results; kMaxResults of core/ops/op_def.h is 4")
    if kinds != sorted(kinds, key=lambda k: k == "saved") or kinds[0] == "saved":
        raise TableError("saved results stand after a returned one")
    return kinds, -1


def result_name(i):
    return f"out{i}" if i else "out"


def parse_saves(text, args, results):
    """Parses 'y for x, x for y' -> {'x': ['y'], 'y': ['x']}; 'x out' -> the same names for every tensor."""
    inputs = [a.name for a in args if TYPES[a.type].tensor and not TYPES[a.type].written]
    known = [a.name for a in args if TYPES[a.type].tensor] + [result_name(i) for i in range(len(results))]
    saves = {}
    for part in text.split(", ") if text is not None else []:
        names, _, target = part.partition(" for ")
        if not names.strip():
            raise TableError(f"'saves' names nothing; there are: {', '.join(known)}")
        for name in names.split() + ([target] if target else []):
            if name not in known:
                raise TableError(f"saves '{name}', which is no tensor of the op; there are: {', '.join(known)}")
        for key in [target] if target else inputs:
            saves.setdefault(key, []).extend(names.split())
    return saves


def check_doc(doc):
    if not doc.endswith("."):
        raise TableError("the text is not a sentence that ends in '.'")
    if "\\" in doc or "*/" in doc:
        raise TableError("the text holds \\ or */, which mean something else in C and Python; other words are needed")


def check_public(args, results):
    """Checks argument names against the names added by the C function and the bindings, and the number of lists against the
    bindings' limit.
    """
    returned = [kind for kind in results if kind != "saved"]
    names = ["outs", "capacity", "count"] if results == ["tensors"] else (
        ["out"] if len(returned) == 1 else [f"out{i}" for i in range(len(returned))])
    names += ["requires_grad"] if any(arg.type == "device" for arg in args) else []
    for arg in args:
        if arg.name in ["out", *names]:
            raise TableError(f"argument '{arg.name}' has the name of what is added to the arguments: {', '.join(names) or 'out'}")
    lists = [arg.name for arg in args if TYPES[arg.type].is_list]
    if len(lists) > 4:
        raise TableError(f"{len(lists)} lists; kMaxOpLists of bindings/python/src/values/op_spec.h is 4")
    if sum(arg.type == "floats?" for arg in args) > 1:
        raise TableError("several lists of floats; both bindings have space for a single list of floats")


def parse_op(line, family):
    match = OP.fullmatch(line)
    if not match:
        raise TableError("not written as 'name(arg: type, ...) -> results | shape | autocast | cost | text'")
    name, args, results, shape, autocast, cost, doc = match.groups()
    words.check(name, "op")
    results, *saves = re.split(" saves(?: |$)", results, maxsplit=1)
    args = parse_args(args)
    places = sum(not arg.by_name for arg in args)
    signature = f"{name}({', '.join(with_star([arg.public for arg in args], places))}) -> {results}"
    kinds, mut = parse_results(results, args)
    if autocast not in AUTOCAST:
        raise TableError(f"unknown autocast class '{autocast}'; known: {', '.join(AUTOCAST)}")
    if cost not in COSTS:
        raise TableError(f"unknown cost '{cost}'; known: {', '.join(COSTS)}")
    rule, rule_args = rules.check(shape, args, kinds, cost)
    if kinds == ["tensors"] and (cost != "composed" or saves):
        raise TableError("the result 'tensors', a list, is for composed ops")
    if name.endswith("_") != (mut >= 0) and not name.startswith("_"):
        raise TableError("a name ends in '_' if and only if the op returns its mut argument")
    check_doc(doc)
    if not name.startswith("_"):
        check_public(args, kinds)
    kept = parse_saves(saves[0] if saves else None, args, kinds)
    op = Op(name, family, signature, args, kinds, mut, kept, rule, rule_args, autocast, cost, doc)
    if kept and not op.has_vjp:
        raise TableError("'saves' is of an op with a gradient of its own: neither composed nor inplace, and with a tensor that it gives or changes")
    return op


def check_in_place(op, ops):
    """Checks that an in-place form takes its op's arguments, and has no autocast class itself."""
    base = ops.get(op.name[:-1])
    if base is None:
        raise TableError(f"there is no op '{op.name[:-1]}' that '{op.name}' could run in place")
    if op.mut != 0 or op.autocast != "none" or op.args[1:] != base.args[1:]:
        raise TableError(f"'{op.name}' does not take a mut argument, then what '{base.name}' takes, roles and defaults too, with autocast none")
    if len(base.returned) != 1:
        raise TableError(f"'{base.name}' has {len(base.returned)} results; one is needed to run it in place")


def normalised(text):
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("#"))


def name_in_cpp(ops, path):
    """Gives each op a unique name in C++; struct names must differ in more than '_'."""
    public, seen = {op.name for op in ops}, {}
    for op in ops:
        stem = op.name.removeprefix("_")
        ending = "_" if stem.endswith("_") else ""
        op.cpp = stem.removesuffix("_") + "_internal" + ending if op.internal and stem in public else stem
        other = seen.setdefault(op.struct, op)
        if other is not op:
            raise TableError(f"{path}:{op.line}: op '{op.name}' and op '{other.name}' of line {other.line} are both {op.struct} in C++; one of them needs another name")


def read(root, path):
    """Returns the text of a file of the tree."""
    try:
        data = (root / path).read_bytes()
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8") from None


def read_line(line, number, families, ops):
    """Adds the content of a line to `families`, {name: its line}, or to `ops`."""
    if stray := CONTROL.search(line):
        raise TableError(f"U+{ord(stray[0]):04X}, a control character, has no place here")
    if not line or line.startswith("#"):
        return
    if line.startswith("["):
        header = re.fullmatch(r"\[([a-z_]+)\]", line)
        if not header:
            raise TableError(f"'{line}' is not written as '[family]': a to z and '_'")
        if (first := families.setdefault(header[1], number)) != number:
            raise TableError(f"family '{header[1]}' stands there twice; line {first} has it")
        return
    if not families:
        raise TableError("an op stands before the first [family]")
    op = parse_op(line, list(families)[-1])
    op.line = number
    if first := next((o for o in ops if o.name == op.name), None):
        raise TableError(f"op '{op.name}' stands there twice; line {first.line} has it")
    ops.append(op)


@contextlib.contextmanager
def errors_at(path, line):
    try:
        yield
    except TableError as error:
        raise TableError(f"{path}:{line}: {error}") from None


def parse(text, path="ops.def"):
    """Returns all ops, public ops first, and the hash of the table."""
    ops, families = [], {}
    for number, line in enumerate(text.split("\n"), 1):
        with errors_at(path, number):
            read_line(line.strip(), number, families, ops)
    by_name = {op.name: op for op in ops}
    for op in ops:
        with errors_at(path, op.line):
            if op.in_place:
                check_in_place(op, by_name)
    name_in_cpp(ops, path)
    ops.sort(key=lambda op: op.internal)
    for i, op in enumerate(ops):
        op.id = i
    digest = int.from_bytes(hashlib.sha256(normalised(text).encode()).digest()[:8], "big")
    return ops, digest
