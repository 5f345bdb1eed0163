"""The ops of random programs: choice of arguments, and NumPy's results.

choose(rng, env) returns arguments, or None if no live tensor fits; compute(*arguments) returns (array, dtype, scale). A Var among
the arguments stands for a tensor of the program.
"""
import dataclasses
from typing import Any, Callable

import numpy as np

import reference as ref
from reference import FLOATS, Ref, both, floating, promoted, rounded

MOST = 48  # elements of a tensor


@dataclasses.dataclass(frozen=True)
class Var:
    """A tensor of a program, by its number."""
    number: int


@dataclasses.dataclass
class Op:
    name: str
    choose: Callable[..., Any]
    compute: Callable[..., Any]
    kind: str = "new"  # view: shares memory; inplace: changes its first argument; new: any other op
    ulps: float = 4
    autocast: str = "none"
    smooth: bool = False  # has a gradient that differences may show


OPS = {}


def op(name, choose, compute, **options):
    OPS[name] = Op(name, choose, compute, **options)


# ---- choice of tensors -----------------------------------------------------------------------------------------------


def pick(rng, env, fits):
    """Returns a tensor of the program that meets `fits`; younger tensors are likelier."""
    found = [n for n, x in env.items() if fits(x)]
    return Var(found[-1 - min(int(rng.exponential(3)), len(found) - 1)]) if found else None


def is_float(x):
    return x.dtype in FLOATS


def one(fits=lambda x: True):
    def choose(rng, env):
        x = pick(rng, env, fits)
        return x and (x,)
    return choose


def broadcasts(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1])) and \
        np.prod([max(p) if 0 not in p else 0 for p in zip(((1,) * 9 + a)[-9:], ((1,) * 9 + b)[-9:])]) <= MOST


def number(rng, dtype):
    if dtype == "uint8":
        return int(rng.integers(0, 4))
    return float(rng.integers(-8, 9)) / 4 if dtype in FLOATS or rng.random() < 0.1 else int(rng.integers(-3, 4))


def two(fits=lambda x: True, scalars=True):
    def choose(rng, env):
        x = pick(rng, env, fits)
        if x is None:
            return None
        if scalars and rng.random() < 0.3:
            return x, number(rng, env[x.number].dtype)
        return x, pick(rng, env, lambda y: fits(y) and broadcasts(env[x.number].shape, y.shape))
    return choose


def axis_of(rng, x):
    return int(rng.integers(-x.array.ndim, x.array.ndim))


def with_axis(fits=lambda x: x.array.ndim > 0):
    def choose(rng, env):
        x = pick(rng, env, lambda x: x.array.ndim > 0 and fits(x))
        return x and (x, axis_of(rng, env[x.number]))
    return choose


# ---- pointwise -------------------------------------------------------------------------------------------------------


def unary(name, function, fits=is_float, ulps=4, smooth=True, autocast="none"):
    def compute(x):
        dtype = "float32" if autocast_is(autocast, x) else x.dtype
        return function(rounded(x.array, dtype)), dtype, 0
    op(name, one(fits), compute, ulps=ulps, smooth=smooth, autocast=autocast)


def autocast_is(kind, x):
    """Tells whether autocast computes this tensor in float32: set by the reference while a region is in force."""
    return kind == "f32" and region[0] and x.dtype in ("float16", "bfloat16")


region = [None]  # the half of the autocast region that the reference is in

NUMBERS = (*FLOATS, *ref.INTS)
unary("neg", np.negative, lambda x: x.dtype in NUMBERS, ulps=0)
unary("abs", np.abs, lambda x: x.dtype in NUMBERS, ulps=0)
unary("relu", lambda a: np.where(a > 0, a, np.where(np.isnan(a), a, 0)), ulps=0)
unary("tanh", np.tanh)
unary("sigmoid", ref.sigmoid)
unary("exp", np.exp, autocast="f32", ulps=8)
unary("sin", np.sin, lambda x: is_float(x) and np.all(np.abs(x.array) < 100))
unary("cos", np.cos, lambda x: is_float(x) and np.all(np.abs(x.array) < 100))
unary("silu", lambda a: a * ref.sigmoid(a), lambda x: is_float(x) and np.all(np.isfinite(x.array)), ulps=8)
unary("erf", ref.erf, ulps=8)
unary("floor", np.floor, ulps=0, smooth=False)
unary("round", np.round, ulps=0, smooth=False)


def arithmetic(name, function, ulps=2, fits=lambda x: x.dtype in NUMBERS, smooth=True):
    def compute(x, y):
        a, b, dtype = both(x, y)
        return function(a, b), dtype, 0
    op(name, two(fits), compute, ulps=ulps, smooth=smooth)


arithmetic("add", np.add)
arithmetic("sub", np.subtract)
arithmetic("mul", np.multiply)
arithmetic("maximum", np.maximum, ulps=1)
arithmetic("minimum", np.minimum, ulps=1)


def divide(x, y):
    a, b, dtype = both(x, y)
    return np.divide(a, b), floating(dtype), 0


op("div", two(is_float), divide, smooth=True)


def compared(name, function):
    def compute(x, y):
        a, b, _ = both(x, y)
        return function(a, b), "bool", 0
    # A number is rounded to the dtype or not: the same where the dtype holds it.
    op(name, two(), compute, ulps=0)


for _name, _function in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("ge", np.greater_equal)):
    compared(_name, _function)
for _name, _function in (("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)):
    compared(_name, _function)
op("logical_not", one(), lambda x: (np.logical_not(x.array), "bool", 0), ulps=0)


def choose_where(rng, env):
    c = pick(rng, env, lambda x: x.dtype == "bool")
    x = c and pick(rng, env, lambda x: broadcasts(env[c.number].shape, x.shape))
    y = x and pick(rng, env, lambda y: broadcasts(np.broadcast_shapes(env[c.number].shape, env[x.number].shape), y.shape))
    return y and (c, x, y)


def compute_where(c, x, y):
    a, b, dtype = both(x, y)
    return np.where(c.array, a, b), dtype, 0


op("where", choose_where, compute_where, ulps=0, smooth=True)


def choose_cast(rng, env):
    x = pick(rng, env, lambda x: x.dtype not in FLOATS or np.all(np.abs(x.array) < 100))
    return x and (x, str(rng.choice(("float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "bool"))))



def compute_cast(x, dtype):
    if x.dtype == dtype:
        return x.array, dtype, 0  # itself
    return rounded(np.trunc(x.array) if dtype in ref.INTS else x.array, dtype), dtype, 0


op("cast", choose_cast, compute_cast, kind="view", ulps=0)

# ---- reductions ------------------------------------------------------------------------------------------------------


def reduced(x, kind):
    """Returns the dtype of a sum; integers are summed in int64."""
    if x.dtype not in FLOATS:
        return "int64"
    return "float32" if region[0] and x.dtype in ("float16", "bfloat16") else x.dtype


def choose_reduction(fits):
    def choose(rng, env):
        x = pick(rng, env, fits)
        if x is None:
            return None
        ndim = env[x.number].array.ndim
        axes = [int(a) for a in rng.permutation(ndim)[:rng.integers(0, ndim + 1)]]
        return x, (axes or None), bool(rng.integers(2))
    return choose


def reduction(name, function, dtype_of, fits, ulps=4, smooth=True):
    def compute(x, axes, keepdim):
        axes = None if axes is None else tuple(axes)
        with_sizes = np.abs(x.array.astype(np.float64)).sum(axes, keepdims=keepdim)
        return function(x.array, axis=axes, keepdims=keepdim), dtype_of(x), with_sizes
    op(name, choose_reduction(fits), compute, ulps=ulps, smooth=smooth)


reduction("sum", np.sum, lambda x: reduced(x, "sum"), lambda x: True)
reduction("mean", np.mean, lambda x: x.dtype, lambda x: is_float(x) and x.array.size, ulps=4)
reduction("amax", np.max, lambda x: x.dtype, lambda x: x.array.size and x.dtype != "bool", ulps=0)
reduction("amin", np.min, lambda x: x.dtype, lambda x: x.array.size and x.dtype != "bool", ulps=0)
reduction("all", np.all, lambda x: "bool", lambda x: True, ulps=0, smooth=False)
reduction("any", np.any, lambda x: "bool", lambda x: True, ulps=0, smooth=False)
op("argmax", with_axis(lambda x: x.array.size and x.dtype != "bool" and not np.isnan(x.array).any()),
   lambda x, axis: (np.argmax(x.array, axis), "int64", 0), ulps=0)
op("cumsum", with_axis(), lambda x, axis: (np.cumsum(x.array, axis), reduced(x, "cumsum"), np.cumsum(np.abs(x.array.astype(np.float64)), axis)),
   smooth=True)
op("softmax", with_axis(lambda x: is_float(x) and np.all(np.isfinite(x.array))),
   lambda x, axis: (ref.softmax(x.array, axis), reduced(x, "softmax"), 0.01), ulps=8, smooth=True)
op("sort_values", with_axis(lambda x: x.dtype != "bool" and not np.isnan(x.array).any()), lambda x, axis: (np.sort(x.array, axis), x.dtype, 0),
   ulps=0, smooth=True)

# ---- products --------------------------------------------------------------------------------------------------------


def low(x):
    """Returns the dtype in which a product takes a tensor."""
    return region[0] if region[0] and x.dtype != "float64" else x.dtype


def choose_matmul(rng, env):
    x = pick(rng, env, lambda x: is_float(x) and x.array.ndim in (1, 2) and np.all(np.isfinite(x.array)))
    if x is None:
        return None
    inner = env[x.number].shape[-1]
    dtype = low(env[x.number])
    y = pick(rng, env, lambda y: is_float(y) and low(y) == dtype and y.array.ndim in (1, 2) and np.all(np.isfinite(y.array))
             and y.shape[max(y.array.ndim - 2, 0)] == inner)
    return y and (x, y)


def compute_matmul(x, y):
    dtype = low(x)
    a, b = rounded(x.array, dtype), rounded(y.array, dtype)
    return a @ b, dtype, np.abs(a) @ np.abs(b)


op("matmul", choose_matmul, compute_matmul, ulps=6, smooth=True)
