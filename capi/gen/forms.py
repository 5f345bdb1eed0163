"""Further forms of calls in Python and Lua: the table core/ops/forms.def, and its rows."""

import dataclasses
import re

from gen.arg_types import TYPES
from gen.errors import TableError
from gen.table import Arg, with_star

LINE = re.compile(r"(\w+): (?:(alone)|(given|unset|tensor|list) (\w+)) -> (\w+)\((.*)\)")
ARG = re.compile(r"(-?)(\w+)(?:: (\w+))?(?: as (\w+))?(?: = (\S+))?")
MOST_ARGS = 4  # of a form; the bindings' rows have as many places


@dataclasses.dataclass(frozen=True)
class Place:
    """Argument of a form."""

    arg: Arg  # as scripts know it
    at: int  # place in the op; behind the op's arguments if the binding alone reads it


@dataclasses.dataclass(frozen=True)
class Form:
    call: object  # the op whose function scripts call
    when: str
    argument: str  # that decides; "" if the first argument stands alone
    meant: object  # the op that runs
    places: tuple

    @property
    def args(self):
        return [each.arg for each in self.places]

    @property
    def dropped(self):
        return any(each.at >= len(self.meant.args) for each in self.places)

    @property
    def by_place(self):
        return sum(not arg.by_name for arg in self.args)

    @property
    def signature(self):
        result = re.split(r"\) -> ", self.meant.signature)[1]
        return f"{self.call.name}({', '.join(with_star([arg.public for arg in self.args], self.by_place))}) -> {result}"


def parse_arg(text, meant, by_name):
    match = ARG.fullmatch(text)
    if not match:
        raise TableError(f"argument '{text}' is not written as '-name', or as 'name', which ': other', 'as type' and '= default' may follow")
    dropped, name, other, kind, default = match.groups()
    if dropped:
        return Place(Arg(name, "bool", None, "false", by_name), len(meant.args))
    at = next((i for i, arg in enumerate(meant.args) if arg.name == (other or name)), None)
    if at is None:
        raise TableError(f"op '{meant.name}' has no argument '{other or name}'; it has {', '.join(arg.name for arg in meant.args)}")
    if default is None and not other:
        default = meant.args[at].default or ("none" if TYPES[meant.args[at].type].optional else None)
    return Place(Arg(name, kind or meant.args[at].type, None, default, by_name), at)


def parse_line(line, ops):
    match = LINE.fullmatch(line)
    if not match:
        raise TableError(f"'{line}' is not written as 'call: alone -> op(argument, ...)', or with 'given name' and such for 'alone'")
    call, alone, when, argument, meant, args = match.groups()
    for name in (call, meant):
        if name not in ops:
            raise TableError(f"there is no op '{name}' in ops.def")
    texts = args.split(", ")
    star = texts.index("*") if "*" in texts else len(texts)
    places = tuple(parse_arg(text, ops[meant], i > star) for i, text in enumerate(texts) if text != "*")
    check_places(places, ops[meant])
    return Form(ops[call], alone or when, argument or "", ops[meant], places)


def check_places(places, meant):
    if len(places) > MOST_ARGS:
        raise TableError(f"a form has {len(places)} arguments; the bindings read at most {MOST_ARGS}")
    for i, each in enumerate(places):
        if TYPES[each.arg.type].tensor and each.at != i:
            raise TableError(f"the tensor '{each.arg.name}' stands at place {i}, and in op '{meant.name}' at {each.at}; the bindings need one place")


def parse(text, path, all_ops):
    ops, forms = {op.name: op for op in all_ops}, []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            try:
                form = parse_line(line, ops)
                if form.call in [each.call for each in forms[:-1]] and form.call is not forms[-1].call:
                    raise TableError(f"the forms of '{form.call.name}' stand apart; the bindings read them together")
                forms.append(form)
            except TableError as error:
                raise TableError(f"{path}:{number}: {error}") from None
    return forms


def of(forms, op):
    """Returns the forms of a call with different signatures, without those that run the op itself."""
    found = {}
    for form in forms:
        if form.call is op and (form.meant is not op or not form.dropped):
            found.setdefault(form.signature, form)
    return list(found.values())


def options(forms, op):
    """Returns the arguments that a call of the op takes by name beyond the op's own."""
    own = {arg.name for arg in op.args}
    return [arg for form in of(forms, op) for arg in form.args if arg.by_name and arg.name not in own]


def deciding_place(form):
    """Returns the place of the deciding argument in the call; -1 if the argument has a name alone."""
    names = [arg.name for arg in form.call.args]
    return names.index(form.argument) if form.when in ("tensor", "list") else -1


def rows(forms, signature):
    """Returns the rows for C and C++: call, when, argument, place, op, signature, number of arguments by place, arguments as
    {name, place in the op}."""
    quote = lambda s: s.replace('"', '\\"')
    shown = {(form.call.name, form.argument): form for form in forms}  # the last has the argument's own default
    return "".join(
        f'YOKE_FORM({form.call.name}, k{form.when.capitalize()}, "{form.argument}", {deciding_place(form)}, "{form.meant.name}", "{quote(signature(shown[form.call.name, form.argument]))}", {form.by_place}, {len(form.places)}, {", ".join(f"""{{"{each.arg.name}", {each.at}}}""" for each in form.places)})\n' for form in forms)


def ops_inc(forms):
    """Returns the list of the internal ops that C finds by name."""
    return "".join(f"YOKE_FORM_OP({macro})\n" for macro in dict.fromkeys(form.meant.macro for form in forms if form.meant.internal))
