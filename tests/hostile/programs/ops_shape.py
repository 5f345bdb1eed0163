"""The ops that rearrange, index and write in place, beside ops.py."""
import numpy as np

import ops
from ops import FLOATS, MOST, axis_of, both, broadcasts, is_float, number, one, op, pick, promoted, rounded


def view(name, choose, function):
    op(name, choose, lambda x, *rest: (function(x.array, *rest), x.dtype, 0), kind="view", ulps=0, smooth=True)


def copied(name, choose, function):
    op(name, choose, lambda x, *rest: (np.array(function(x.array, *rest)), x.dtype, 0), ulps=0, smooth=True)


# ---- views -----------------------------------------------------------------------------------------------------------


def choose_transpose(rng, env):
    x = pick(rng, env, lambda x: x.array.ndim > 1)
    return x and (x, axis_of(rng, env[x.number]), axis_of(rng, env[x.number]))


def choose_slice(rng, env):
    x = pick(rng, env, lambda x: x.array.ndim > 0)
    if x is None:
        return None
    start, stop = (int(v) if rng.random() < 0.7 else None for v in rng.integers(-6, 7, 2))
    return x, axis_of(rng, env[x.number]), start, stop, int(rng.choice((1, 1, 2, 3, -1, -2)))


def sliced(array, axis, start, stop, step):
    index = [slice(None)] * array.ndim
    index[axis] = slice(start, stop, step)
    return array[tuple(index)]


def choose_permute(rng, env):
    x = pick(rng, env, lambda x: x.array.ndim > 1)
    return x and (x, [int(a) for a in rng.permutation(env[x.number].array.ndim)])


def choose_unsqueeze(rng, env):
    x = pick(rng, env, lambda x: x.array.ndim < 4)
    return x and (x, int(rng.integers(-env[x.number].array.ndim - 1, env[x.number].array.ndim + 1)))


def choose_expand(rng, env):
    x = pick(rng, env, lambda x: x.array.ndim < 4 and 0 < x.array.size <= MOST // 3)
    if x is None:
        return None
    shape = [int(rng.integers(1, 4)) if n == 1 else n for n in env[x.number].shape]
    if rng.random() < 0.5:
        shape.insert(0, int(rng.integers(1, 4)))
    return (x, shape) if np.prod(shape) <= MOST else None


view("transpose", choose_transpose, np.swapaxes)
view("permute", choose_permute, np.transpose)
view("slice", choose_slice, sliced)
view("unsqueeze", choose_unsqueeze, np.expand_dims)
view("squeeze", one(), lambda a: np.reshape(a, [n for n in a.shape if n != 1]) if 1 in a.shape else a[...])
view("expand", choose_expand, lambda a, shape: np.broadcast_to(a, shape))


def shapes_of(rng, size):
    """Returns a shape of so many elements."""
    found = []
    while size > 1 and len(found) < 3:
        n = int(rng.choice([d for d in range(1, size + 1) if size % d == 0]))
        found.append(n)
        size //= n
    return found + [size]


def choose_reshape(rng, env):
    x = pick(rng, env, lambda x: x.array.size > 0)
    return x and (x, shapes_of(rng, env[x.number].array.size))


# The result is a view if strides allow. NumPy has an equal rule, and shows the outcome.
view("reshape", choose_reshape, np.reshape)

# ---- copies ----------------------------------------------------------------------------------------------------------


def choose_axes(rng, env):
    x = pick(rng, env, lambda x: x.array.ndim > 0)
    return x and (x, [int(a) for a in rng.permutation(env[x.number].array.ndim)[:rng.integers(1, env[x.number].array.ndim + 1)]])


def choose_roll(rng, env):
    found = choose_axes(rng, env)
    return found and (found[0], [int(s) for s in rng.integers(-4, 5, len(found[1]))], found[1])


def choose_tile(rng, env):
    x = pick(rng, env, lambda x: x.array.size <= MOST // 4)
    if x is None:
        return None
    reps = [int(n) for n in rng.integers(1, 3, max(env[x.number].array.ndim, 1))]
    return (x, reps) if env[x.number].array.size * np.prod(reps) <= MOST else None


def choose_joined(rng, env):
    x = pick(rng, env, lambda x: 0 < x.array.ndim < 4 and x.array.size <= MOST // 2)
    y = x and pick(rng, env, lambda y: y.shape == env[x.number].shape)
    return y and ([x, y], axis_of(rng, env[x.number]))


def joined(function):
    def compute(pair, axis):
        dtype = promoted(pair[0].dtype, pair[1].dtype)
        return function([rounded(x.array, dtype) for x in pair], axis), dtype, 0
    return compute


def choose_index(rng, env):
    x = pick(rng, env, lambda x: x.array.ndim > 0)
    if x is None:
        return None
    axis = axis_of(rng, env[x.number])
    length = env[x.number].shape[axis]
    index = pick(rng, env, lambda i: i.dtype == "int64" and i.array.ndim == 1 and
                 (i.array.size == 0 or (i.array.min() >= 0 and i.array.max() < length)))
    return (x, axis, index) if index and env[x.number].array.size * (env[index.number].array.size + 1) <= 4 * MOST else None


def choose_pad(rng, env):
    x = pick(rng, env, lambda x: 0 < x.array.ndim and x.array.size <= MOST // 2)
    return x and (x, [int(n) for n in rng.integers(0, 3, 2)])


def padded(array, padding):
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [tuple(padding)])


def choose_diagonal(rng, env):
    x = pick(rng, env, lambda x: x.array.ndim >= 2)
    return x and (x, int(rng.integers(-3, 4)))


copied("clone", one(), lambda a: a)
copied("flip", choose_axes, lambda a, axes: np.flip(a, axes))
copied("roll", choose_roll, lambda a, shifts, axes: np.roll(a, shifts, axes))
copied("tile", choose_tile, np.tile)
copied("pad", choose_pad, padded)
copied("tril", choose_diagonal, np.tril)
copied("triu", choose_diagonal, np.triu)
op("cat", choose_joined, joined(np.concatenate), ulps=0, smooth=True)
op("stack", choose_joined, joined(np.stack), ulps=0, smooth=True)
op("index_select", choose_index, lambda x, axis, index: (np.take(x.array, index.array, axis), x.dtype, 0), ulps=0, smooth=True)


def choose_mask(rng, env):
    x = pick(rng, env, lambda x: True)
    mask = x and pick(rng, env, lambda m: m.dtype == "bool" and broadcasts(m.shape, env[x.number].shape))
    return mask and (x, mask)


op("masked_select", choose_mask, lambda x, m: ((lambda a, b: a[b])(*np.broadcast_arrays(x.array, m.array)), x.dtype, 0), ulps=0, smooth=True)

# ---- in place --------------------------------------------------------------------------------------------------------


def fits_into(small, large):
    return len(small) <= len(large) and all(m in (1, n) for m, n in zip(small[::-1], large[::-1]))


def writable(x):
    """No element of it stands at two places."""
    return x.array.flags.writeable and all(s != 0 or n <= 1 for s, n in zip(x.array.strides, x.shape))


def choose_write(rng, env):
    x = pick(rng, env, writable)
    if x is None:
        return None
    into = env[x.number]
    if rng.random() < 0.3:
        value = number(rng, into.dtype)
        return (x, value) if isinstance(value, int) or is_float(into) else None
    y = pick(rng, env, lambda y: fits_into(y.shape, into.shape) and promoted(y.dtype, into.dtype) == into.dtype)
    return y and (x, y)


def write(name, function):
    def compute(x, y):
        a, b, dtype = both(x, y)
        return function(a, b), dtype, 0
    op(name, choose_write, compute, kind="inplace", ulps=2, smooth=True)


def not_bool(choose):
    def chosen(rng, env):
        found = choose(rng, env)
        return found if found and env[found[0].number].dtype != "bool" else None
    return chosen


write("add_", np.add)
write("mul_", np.multiply)
write("sub_", np.subtract)
for _name in ("add_", "mul_", "sub_"):
    ops.OPS[_name].choose = not_bool(choose_write)


def choose_copy(rng, env):
    x = pick(rng, env, writable)
    y = x and pick(rng, env, lambda y: fits_into(y.shape, env[x.number].shape) and
                   (env[x.number].dtype in FLOATS or y.dtype not in FLOATS))
    return y and (x, y)


op("copy_", choose_copy, lambda x, y: (np.broadcast_to(rounded(y.array, x.dtype), x.shape), x.dtype, 0), kind="inplace", ulps=0, smooth=True)
op("fill_", lambda rng, env: (lambda x: x and (x, int(rng.integers(0, 3))))(pick(rng, env, writable)),
   lambda x, v: (np.full(x.shape, v), x.dtype, 0), kind="inplace", ulps=0, smooth=True)
op("relu_", one(lambda x: writable(x) and x.dtype in ops.NUMBERS), lambda x: (np.where(x.array <= 0, 0, x.array), x.dtype, 0),
   kind="inplace", ulps=0, smooth=True)
op("neg_", one(lambda x: writable(x) and x.dtype in ops.NUMBERS), lambda x: (-x.array, x.dtype, 0), kind="inplace", ulps=0, smooth=True)
op("abs_", one(lambda x: writable(x) and x.dtype in ops.NUMBERS), lambda x: (np.abs(x.array), x.dtype, 0), kind="inplace", ulps=0, smooth=True)


def choose_masked_write(rng, env):
    x = pick(rng, env, writable)
    mask = x and pick(rng, env, lambda m: m.dtype == "bool" and fits_into(m.shape, env[x.number].shape))
    return mask and (x, mask, int(rng.integers(0, 3)))


op("masked_fill_", choose_masked_write, lambda x, m, v: (np.where(m.array, rounded(np.asarray(v), x.dtype), x.array), x.dtype, 0),
   kind="inplace", ulps=0, smooth=True)
