"""Lua as a host of random programs: a process that gets each program as a chunk of Lua and writes observations."""
import os
import subprocess
import pathlib

import numpy as np

from hosts import LUA, REPLAYS, Observed, call_literal, literal, render, tensor_literal
from ops import Var
from program import other_input

SCRIPT = pathlib.Path(__file__).with_name("lua_host.lua")


class Lua:
    """A Lua interpreter, which is replaced after its end."""

    def __init__(self, interpreter="lua5.4"):
        self.command = [os.environ.get("YOKE_LUA", interpreter), str(SCRIPT)]
        self.process = None

    def run(self, program):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        source = chunk(program)
        try:
            self.process.stdin.write(f"{len(source)}\n{source}")
            self.process.stdin.flush()
            lines = self.answer()
        except BrokenPipeError:
            lines = None
        if lines is None:
            raise RuntimeError(f"Lua ended with status {self.process.wait()}")
        return observed_from(lines)

    def answer(self):
        lines = []
        for line in self.process.stdout:
            if line == "done\n":
                return lines
            lines.append(line.rstrip("\n"))
        return None

    def render(self, program):
        return render(program, LUA)


def see(word, number):
    return f'see("{word}", {literal(Var(number), LUA)})'


def scoped(scope, lines):
    return [f"do local _ <close> = {scope}", *lines, "end"]


def chunk(program):
    """Returns the program as a chunk of Lua that fills `v`, and prints by `see`."""
    lines = ["local yoke, v, see = ...", *(f"v[{n}] = {tensor_literal(d, a, LUA)}" for n, (d, a) in program.inputs.items())]
    if program.mode == "autograd":
        lines += [f"v[{n}]:requires_grad_(true)" for n in program.inputs]
    steps = []
    for step in program.steps:
        call = [call_literal(step, LUA)]
        steps += call if step.recorded else scoped("yoke.no_grad()", call)
        if program.mode != "graph":
            steps.append(see("step", step.out))
    if program.mode == "graph":
        return "\n".join(lines + captured(program, steps))
    if program.mode == "autocast":
        steps = scoped(f'yoke.autocast "{program.half}"', steps)
    numbers = sorted({*program.inputs, *(step.out for step in program.steps)})
    lines += steps + [see(f"final {n}", n) for n in numbers]
    if program.weights:
        terms = [f"(v[{n}] * {tensor_literal('float64', np.asarray(w), LUA)}):sum()" for n, w in program.weights]
        lines += [f"local loss = {' + '.join(terms)}", "if loss.requires_grad then loss:backward() end"]
        lines += [f'if v[{n}].grad then see("grad {n}", v[{n}].grad) end' for n in program.inputs]
    return "\n".join(lines)


def captured(program, steps):
    lines = ["local graph <close> = yoke.Graph()", "graph:capture(function()", *steps, "end)"]
    numbers = sorted({*program.inputs, *(step.out for step in program.steps)})
    for replay in range(REPLAYS):
        lines += [f"v[{n}]:copy_({tensor_literal(d, other_input(program, n, replay), LUA)})" for n, (d, _) in program.inputs.items()]
        lines += ["graph:replay()", *(see(f"replay {replay} {n}", n) for n in numbers)]
    return lines


def values_of(text, dtype):
    if dtype == "bool":
        return [word == "true" for word in text.split()]
    return [float(word.replace("-nan", "nan")) if "." in dtype or dtype.startswith(("float", "bfloat")) else int(word) for word in text.split()]


def observed_from(lines):
    observed = Observed(replays=[{} for _ in range(REPLAYS)])
    for line in lines:
        word, _, rest = line.partition("|")
        if word == "error":
            raise RuntimeError(rest)
        if word == "refused":
            observed.refused = rest
            return observed
        dtype, shape, strides, values = rest.split("|")
        got = dtype, *(tuple(map(int, sizes.split())) for sizes in (shape, strides)), values_of(values, dtype)
        kind, *numbers = word.split()
        if kind == "step":
            observed.steps.append(got)
        elif kind == "final":
            observed.final[int(numbers[0])] = got
        elif kind == "grad":
            observed.gradients[int(numbers[0])] = got[-1]
        else:
            observed.replays[int(numbers[0])][int(numbers[1])] = got
    return observed
