"""Cases "op NAME DTYPE" of cpu_kernels.py: expressions that Yoke and PyTorch both understand, over 16 MiB for each input.

`lib` is the library. x lies in (-0.95, 0.95), p in (0.1, 4), y in (0.3, 3); m is x as a matrix of 4096 rows, s as a square; i and j are
positive int64 vectors, bins an int64 vector of 1000 numbers, index a square of indices, line a vector of the square's length; to is
written. The dtype is that of the floats; expressions without floats are measured for f32 alone.
"""

DTYPES = {"f32": "float32", "bf16": "bfloat16"}
MIB = 16

_UNARY = {"x": "square tan asin acos trunc frac erfinv isinf nan_to_num", "p": "log1p log2 log10", "4 * x": "expm1 exp2 atan sinh cosh"}
_BINARY = {"x": "atan2 logaddexp isclose", "9 * x": "fmod remainder floor_divide"}

# {name: expression}, or {name: (expression that prepares `a`, expression)}
ELEMENTWISE = {
    **{name: (given, f"a.{name}()") for given, names in _UNARY.items() for name in names.split()},
    **{name: (given, f"lib.{name}(a, y)") for given, names in _BINARY.items() for name in names.split()},
    "lerp": "lib.lerp(x, y, 0.3)", "addcmul": "lib.addcmul(x, y, p, value=2)", "addcdiv": "lib.addcdiv(x, y, p, value=2)",
    "add alpha": "lib.add(x, y, alpha=2)", "div floor": "lib.div(x, y, rounding_mode='floor')", "div trunc": "lib.div(x, y, rounding_mode='trunc')",
    "clamp between tensors": "lib.clamp(x, -y, p)",
}
INTEGERS = {
    **{name: f"lib.{name}(i, j)" for name in "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()},
    **{f"{name} int64": f"lib.{name}(i, j)" for name in "fmod remainder floor_divide".split()}, "bitwise_not": "lib.bitwise_not(i)",
}
REDUCTIONS = {
    **{name: f"lib.{name}(m, 1)" for name in "max min median mode count_nonzero cumprod var_mean std_mean".split()}, "max of all": "x.max()",
    "max over rows": "lib.max(m, 0)", "cumprod over rows": "lib.cumprod(m, 0)", "aminmax": "lib.aminmax(m, dim=1)", "kthvalue": "lib.kthvalue(m, 10, 1)",
    "quantile": "lib.quantile(m, 0.3, 1)", "equal": "lib.equal(x, +x)", "allclose": "lib.allclose(x, x)", "bincount": "lib.bincount(bins)",
}
DRAWS = {name: f"to.{name}()" for name in "normal_ uniform_ random_ exponential_ bernoulli_".split()}
PLACES = {
    "scatter": "s.scatter(1, index, s)", "scatter over rows": "s.scatter(0, index, s)", "scatter_": "to.scatter_(1, index, s)",
    "diag": "lib.diag(line)", "bilinear interpolate": (
        "lib.nn.functional", "a.interpolate(pictures, scale_factor=2.0, mode='bilinear', align_corners=False)"),
    "bilinear interpolate of pixels": ("lib.nn.functional", "a.interpolate(pixels, (128, 16), mode='bilinear', align_corners=False)"),
}
FLOATS = {**ELEMENTWISE, **REDUCTIONS, **DRAWS, **PLACES}
ABSENT = {("quantile", "bf16"), ("bincount", "bf16")}  # PyTorch has none of bfloat16; bincount has no floats


def all_cases():
    """Returns the (name, dtype) of all cases."""
    floats = [(name, dtype) for dtype in DTYPES for name in FLOATS if (name, dtype) not in ABSENT]
    return floats + [(name, "f32") for name in INTEGERS]


def counts(name):
    """Returns whether a case counts for the mean of elementwise ops and reductions."""
    return name in ELEMENTWISE or name in INTEGERS or name in REDUCTIONS


def prepare(lib, name, dtype):
    """Returns a function without arguments that computes a case."""
    float_dtype, n = getattr(lib, DTYPES[dtype]), MIB * 2**20 // (4 if dtype == "f32" else 2)
    ints = MIB * 2**20 // 8

    def drawn(low, high, *shape):
        return (lib.rand(*shape) * (high - low) + low).to(float_dtype)

    side = int(n**0.5)
    x = drawn(-0.95, 0.95, n)
    given = {"lib": lib, "x": x, "m": x.reshape(4096, -1), "s": x[:side * side].reshape(side, side), "to": drawn(0, 1, n)[:side * side].reshape(side, side)}
    makers = {
        "y": lambda: drawn(0.3, 3, n), "p": lambda: drawn(0.1, 4, n), "i": lambda: lib.randint(1, 1000, (ints,)), "j": lambda: lib.randint(1, 9, (ints,)),
        "bins": lambda: lib.randint(0, 1000, (ints,)), "index": lambda: lib.randint(0, side, (side, side)), "line": lambda: x[:side],
        "pictures": lambda: x[:n // 4].reshape(32, -1, 64, 64),
        "pixels": lambda: x[:n // 4].reshape(32, 64, -1, 64).permute(0, 3, 1, 2),
    }
    before, expression = FLOATS[name] if isinstance(FLOATS.get(name), tuple) else ("None", {**FLOATS, **INTEGERS}[name])
    code = compile(expression, name, "eval")
    for key in set(code.co_names) & set(makers) | {key for key in makers if key in before.split()}:
        given[key] = makers[key]()
    given["a"] = eval(before, given)
    return lambda: eval(code, given)
