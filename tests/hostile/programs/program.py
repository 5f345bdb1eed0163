"""A random program: tensors to begin with and steps, the same for every language; what the reference says of each."""
import dataclasses

import numpy as np

import ops
import ops_shape  # noqa: F401: adds its ops to the table
import reference as ref
from ops import OPS, Var
from reference import FLOATS, Ref, close, rounded

DTYPES = ("float32", "float32", "float64", "float16", "bfloat16", "int64", "int64", "int32", "int8", "uint8", "bool", "bool")
SHAPES = ((), (3,), (2, 3), (3, 2), (1, 3), (2, 1), (4,), (2, 3, 2), (0,), (2, 0), (1,), (3, 3))
# Ops that a capture must not hold: a replay goes on from rounded values, so a jump would amplify the rounding.
JUMPS = ("floor", "round", "eq", "ne", "lt", "ge", "argmax", "where", "cast", "masked_select", "logical_and", "logical_or",
         "logical_xor", "logical_not", "all", "any", "sort_values", "index_select")


# Ops whose second argument must be a tensor or number; elsewhere None stands for a default.
TWO = ("add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "ge", "logical_and", "logical_or", "logical_xor")


@dataclasses.dataclass
class Step:
    name: str
    args: tuple
    out: int  # number of the result; in place, of the first argument
    recorded: bool = True  # False: under no_grad


@dataclasses.dataclass
class Program:
    seed: int
    mode: str  # plain, autocast, autograd, graph
    half: str  # dtype of the autocast region
    inputs: dict  # number: (dtype, array)
    steps: list
    weights: list = dataclasses.field(default_factory=list)  # (number, array): the loss of an autograd program


class Wrong(Exception):
    """A program gave another result than the reference, or an error that is not allowed."""


def variables(args):
    """Yields the Vars among arguments."""
    for a in args:
        if isinstance(a, Var):
            yield a
        elif isinstance(a, list):
            yield from variables(a)


def bound(args, env):
    """Arguments with tensors for Vars."""
    return [env[a.number] if isinstance(a, Var) else bound(a, env) if isinstance(a, list) and any(variables(a)) else a for a in args]


def compute(step, env, half=None):
    """Returns (array rounded to its dtype, dtype, scale) of a step."""
    ops.region[0] = half
    with np.errstate(all="ignore"):
        array, dtype, scale = OPS[step.name].compute(*bound(step.args, env))
        # A view stays the very view.
        return (array if OPS[step.name].kind == "view" else rounded(array, dtype)), dtype, scale


def apply(step, env, array, dtype):
    """Puts what a step gave into the reference."""
    kind = OPS[step.name].kind
    if kind == "inplace":
        env[step.out].array[...] = rounded(array, env[step.out].dtype)
    else:
        env[step.out] = Ref(array, dtype)


# ---- making a program ------------------------------------------------------------------------------------------------


def make_input(rng, dtype, shape, mode="plain"):
    if mode == "autograd":
        return rng.standard_normal(shape)  # no zeros, no ties: there no slope is the gradient
    if dtype == "bool":
        return rng.integers(0, 2, shape) > 0
    if dtype in ref.INTS:
        return rng.integers(0 if dtype == "uint8" else -3, 4, shape)
    return rounded(rng.integers(-16, 17, shape) / 8 if rng.random() < 0.5 else rng.standard_normal(shape), dtype)


def dtypes_of(mode):
    return {"autograd": ("float64",), "graph": ("float64", "float64", "int64")}.get(mode, DTYPES)


def allowed(mode, name):
    if mode == "autograd":
        return OPS[name].smooth
    return mode != "graph" or name not in JUMPS


def make(seed):
    rng = np.random.default_rng(seed)
    mode = str(rng.choice(("plain", "plain", "plain", "autocast", "autograd", "graph")))
    program = Program(seed, mode, str(rng.choice(("bfloat16", "float16"))), {}, [])
    for n in range(int(rng.integers(2, 6))):
        dtype, shape = str(rng.choice(dtypes_of(mode))), SHAPES[rng.integers(len(SHAPES))]
        program.inputs[n] = (dtype, make_input(rng, dtype, shape, mode))
    env = {n: Ref(np.array(a, ref.storage(d)), d) for n, (d, a) in program.inputs.items()}
    for x in env.values():  # a leaf does not change during the recording, directly or through a view
        x.array.flags.writeable = mode != "autograd"
    ops.region[0] = program.half if mode == "autocast" else None
    names = [name for name in OPS if allowed(mode, name)]
    for _ in range(int(rng.integers(3, 14))):
        add_step(rng, program, env, str(rng.choice(names)))
    if mode == "autograd":
        results = [n for n in env if n not in program.inputs and env[n].dtype == "float64" and np.all(np.abs(env[n].array) < 1e4)]
        program.weights = [(n, np.round(rng.standard_normal(env[n].shape), 2)) for n in results[-3:]]
    return program


def add_step(rng, program, env, name):
    args = OPS[name].choose(rng, env)
    if args is None or name in TWO and args[1] is None:
        return
    number = args[0].number if OPS[name].kind == "inplace" else len(program.inputs) + len(program.steps)
    step = Step(name, args, number, recorded=program.mode != "autograd" or OPS[name].kind != "new" or rng.random() < 0.85)
    array, dtype, _ = compute(step, env, program.half if program.mode == "autocast" else None)
    if array.size > 2 * ops.MOST:
        return
    apply(step, env, array, dtype)
    program.steps.append(step)


# ---- checking a program ----------------------------------------------------------------------------------------------


def check_result(step, got, array, dtype, scale, ulps):
    """Checks `got`, (dtype, shape, strides, values) as a host saw them. Returns the values with the order of axes in memory, because
    reshape() decides by this order what is a view.
    """
    seen_dtype, seen_shape, strides, values = got
    if seen_dtype != dtype or tuple(seen_shape) != array.shape:
        raise Wrong(f"{step.name} gave {seen_dtype} {list(seen_shape)}, not {dtype} {list(array.shape)}")
    values = np.asarray(values, ref.storage(dtype)).reshape(array.shape)
    if not close(values, array, scale, dtype, ulps):
        raise Wrong(f"{step.name} gave {values.tolist()}, not {array.tolist()}")
    outer_first = sorted(range(values.ndim), key=lambda axis: -strides[axis])
    return np.ascontiguousarray(values.transpose(outer_first)).transpose(np.argsort(outer_first)) if values.ndim else values


def check(program, observed):
    """Goes through the steps with the host's observations. The host's values replace the reference's, so that roundings do not add
    up.
    """
    env = {n: Ref(np.array(a, ref.storage(d)), d) for n, (d, a) in program.inputs.items()}
    half = program.half if program.mode == "autocast" else None
    for step, got in zip(program.steps, observed.steps):
        array, dtype, scale = compute(step, env, half)
        if OPS[step.name].kind == "inplace":
            dtype = env[step.out].dtype
            array = rounded(array, dtype)
        values = check_result(step, got, array, dtype, scale, OPS[step.name].ulps)
        apply(step, env, array if OPS[step.name].kind == "view" else values, dtype)
    for n, got in observed.final.items():
        x = env[n]
        check_result(Step(f"in the end tensor {n}", (), n), got, x.array, x.dtype, 0, 0)


def check_graph(program, observed):
    """After a capture nothing has run; each replay does all steps again on new inputs."""
    env = {n: Ref(np.array(a, ref.storage(d)), d) for n, (d, a) in program.inputs.items()}
    for replay, seen in enumerate(observed.replays):
        for n in program.inputs:
            env[n].array[...] = other_input(program, n, replay)
        for step in program.steps:
            array, dtype, _ = compute(step, env)
            if OPS[step.name].kind == "inplace" or step.out not in env:
                apply(step, env, array, dtype)
            elif array.size and not any(np.shares_memory(array, x.array) for x in env.values()):
                env[step.out].array[...] = array  # a copy is made anew, a view is there
        for n, got in seen.items():
            x = env[n]
            finite = np.abs(np.where(np.isfinite(x.array.astype(float)), x.array.astype(float), 0))
            check_result(Step(f"after replay {replay} tensor {n}", (), n), got, x.array, x.dtype, 1 + finite.max(initial=0), 1e6)


def other_input(program, n, replay):
    dtype, array = program.inputs[n]
    return make_input(np.random.default_rng((program.seed, n, replay)), dtype, array.shape)


# ---- gradients -------------------------------------------------------------------------------------------------------


def loss_of(program, inputs, frozen):
    """Returns the loss for other inputs. Results under no_grad keep their first values (`frozen`, filled at the first run)."""
    env = {n: Ref(np.array(a), "float64") for n, a in inputs.items()}
    first = not frozen
    held = {}
    for i, step in enumerate(program.steps):
        array, dtype, _ = compute(step, env)
        if not step.recorded:
            held[i] = frozen.get(i, np.array(array))
            array = held[i]
        apply(step, env, array if OPS[step.name].kind == "view" and step.recorded else np.array(array), dtype)
    if first:
        frozen.update(held or {-1: None})
    return sum(float((env[n].array * w).sum()) for n, w in program.weights)


def check_gradients(program, gradients):
    """Along a random direction, by differences; where two widths disagree, or the two sides, as in the midst of a tie that
    no_grad made, there is a kink, and nothing is said."""
    rng = np.random.default_rng((program.seed, 5))
    inputs = {n: a for n, (_, a) in program.inputs.items()}
    way = {n: rng.standard_normal(a.shape) for n, a in inputs.items()}
    frozen = {}
    loss_of(program, inputs, frozen)

    def moved(h):
        return loss_of(program, {n: a + h * way[n] for n, a in inputs.items()}, frozen)

    def slope(h):
        return (moved(h) - moved(-h)) / (2 * h)

    with np.errstate(all="ignore"):
        wide, narrow, third = slope(1e-4), slope(1e-5), slope(3e-6)
        here = moved(0.0)
        right, left = (moved(1e-5) - here) / 1e-5, (here - moved(-1e-5)) / 1e-5
        got = sum(float((np.asarray(g).reshape(inputs[n].shape) * way[n]).sum()) for n, g in gradients.items() if g is not None)
        size = 1 + sum(float(np.abs(np.asarray(g)).sum()) for g in gradients.values() if g is not None)
    smooth = all(np.isfinite(v) for v in (wide, narrow, third)) and \
        abs(right - left) <= 1e-2 * (abs(narrow) + size * 1e-2) and max(abs(wide - narrow), abs(narrow - third)) <= 1e-4 * (abs(narrow) + size * 1e-2)
    if smooth and not abs(got - narrow) <= 1e-3 * (abs(narrow) + size * 1e-1):
        raise Wrong(f"the gradients give a slope of {got}, differences {narrow}")
    return smooth
