"""The languages that run random programs, and the text of a program in each.

A host runs a program and returns observations: after each step the result as (dtype, shape, strides, values). At the end come
every tensor, the gradients, or the values of every tensor after each replay.
"""
import dataclasses
import math
import subprocess

import numpy as np

from ops import OPS, Var
from program import other_input
from reference import FLOATS


@dataclasses.dataclass
class Observed:
    steps: list = dataclasses.field(default_factory=list)
    final: dict = dataclasses.field(default_factory=dict)
    gradients: dict = dataclasses.field(default_factory=dict)
    replays: list = dataclasses.field(default_factory=list)
    refused: str = ""  # the program's last error, if a permitted refusal


REPLAYS = 2
# Errors with which a step in place may be refused, by the documents of the calls.
REFUSALS = ("state", "unsupported")


# ---- Python ----------------------------------------------------------------------------------------------------------


class Python:
    """In this process."""

    def __init__(self):
        import yoke

        self.yoke = yoke
        self.dtypes = {name: getattr(yoke, name) for name in
                       ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool")}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

    def tensor(self, dtype, array):
        if array.size == 0:
            return self.yoke.zeros(array.shape, dtype=self.dtypes[dtype])
        return self.yoke.tensor(array.tolist(), dtype=self.dtypes[dtype])

    def seen(self, x):
        return self.names[x.dtype], x.shape, x.strides, x.tolist()

    def call(self, step, env):
        def value(a):
            if isinstance(a, Var):
                return env[a.number]
            return [value(v) for v in a] if isinstance(a, list) else self.dtypes[a] if isinstance(a, str) else a
        args = [value(a) for a in step.args]
        if step.name == "sort_values":
            result = self.yoke.sort(*args)[0]
        else:
            result = getattr(self.yoke, step.name)(*args)
        if OPS[step.name].kind != "inplace":
            env[step.out] = result
        return env[step.out]

    def run(self, program):
        env = {n: self.tensor(d, a) for n, (d, a) in program.inputs.items()}
        return getattr(self, program.mode)(program, env)

    def plain(self, program, env):
        observed = Observed()
        for step in program.steps:
            observed.steps.append(self.seen(self.call(step, env)))
        observed.final = {n: self.seen(x) for n, x in env.items()}
        return observed

    def autocast(self, program, env):
        observed = Observed()
        with self.yoke.autocast(self.dtypes[program.half]):
            for step in program.steps:
                observed.steps.append(self.seen(self.call(step, env)))
        observed.final = {n: self.seen(x) for n, x in env.items()}
        return observed

    def autograd(self, program, env):
        observed = Observed()
        for x in env.values():
            x.requires_grad_(True)
        try:
            for step in program.steps:
                if step.recorded:
                    result = self.call(step, env)
                else:
                    with self.yoke.no_grad():
                        result = self.call(step, env)
                observed.steps.append(self.seen(result))
            loss = None
            for n, weight in program.weights:
                term = (env[n] * self.tensor("float64", np.asarray(weight))).sum()
                loss = term if loss is None else loss + term
            if loss is not None and loss.requires_grad:
                loss.backward()
        except (self.yoke.StateError, self.yoke.UnsupportedError) as error:
            observed.refused = str(error)
            return observed
        observed.final = {n: self.seen(x) for n, x in env.items()}
        observed.gradients = {n: None if env[n].grad is None else env[n].grad.tolist() for n in program.inputs}
        return observed

    def graph(self, program, env):
        observed = Observed()
        graph = self.yoke.Graph()
        with graph.capture():
            for step in program.steps:
                self.call(step, env)
        for replay in range(REPLAYS):
            for n, (dtype, _) in program.inputs.items():
                env[n].copy_(self.tensor(dtype, np.asarray(other_input(program, n, replay))))
            graph.replay()
            observed.replays.append({n: self.seen(x) for n, x in env.items()})
        return observed

    def render(self, program):
        return render(program, PYTHON)


# ---- how a program reads ---------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Language:
    none: str
    true: str
    false: str
    brackets: str
    dtype: str  # text for a dtype's name
    infinity: str
    tensor: str  # values, dtype
    empty: str


PYTHON = Language("None", "True", "False", "[]", "yoke.{}", "float('{}')", "yoke.tensor({}, dtype=yoke.{})", "yoke.zeros({}, dtype=yoke.{})")
LUA = Language("nil", "true", "false", "{}", '"{}"', "({})", 'yoke.tensor({}, {{dtype = "{}"}})', 'yoke.zeros({}, {{dtype = "{}"}})')


def literal(value, language):
    if isinstance(value, Var):
        return f"v{value.number}" if language is PYTHON else f"v[{value.number}]"
    if isinstance(value, (list, tuple)):
        return language.brackets[0] + ", ".join(literal(v, language) for v in value) + language.brackets[1]
    if value is None:
        return language.none
    if isinstance(value, bool):
        return language.true if value else language.false
    if isinstance(value, str):
        return language.dtype.format(value)
    if isinstance(value, float) and not math.isfinite(value):
        lua = "0/0" if math.isnan(value) else "math.huge" if value > 0 else "-math.huge"
        return language.infinity.format(lua if language is LUA else value)
    return repr(value)


def tensor_literal(dtype, array, language):
    array = np.asarray(array)
    if array.size == 0:
        return language.empty.format(literal([int(n) for n in array.shape], language), dtype)
    return language.tensor.format(literal(array.tolist(), language), dtype)


def call_literal(step, language):
    name = "sort" if step.name == "sort_values" else step.name
    text = f"yoke.{name}({', '.join(literal(a, language) for a in step.args)})"
    if OPS[step.name].kind == "inplace":
        return text
    first = ("[0]" if language is PYTHON else "") if name == "sort" else ""
    text = f"({text})" if name == "sort" and language is LUA else text + first
    return f"{literal(Var(step.out), language)} = {text}"


def render(program, language):
    """Returns the program as a few lines, to be run by hand."""
    lines = [f"{literal(Var(n), language)} = {tensor_literal(d, a, language)}" for n, (d, a) in program.inputs.items()]
    if program.mode == "autograd":
        lines += [f"{literal(Var(n), language)}{'.' if language is PYTHON else ':'}requires_grad_(True)" if language is PYTHON
                  else f"{literal(Var(n), language)}:requires_grad_(true)" for n in program.inputs]
    for step in program.steps:
        note = "" if step.recorded else "  # under no_grad" if language is PYTHON else "  -- under no_grad"
        lines.append(call_literal(step, language) + note)
    for n, weight in program.weights:
        lines.append(f"loss += (v{n} * {np.asarray(weight).tolist()}).sum()")
    head = {"plain": "", "autocast": f"under autocast({program.half})", "graph": "the steps are captured, then replayed on new inputs",
            "autograd": "loss.backward()"}[program.mode]
    return "\n".join([f"    {line}" for line in lines] + ([f"    # {head}"] if head else []))
