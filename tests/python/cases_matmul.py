"""Samples of the ops of core/ops/matmul and their references in NumPy."""
import math

import numpy as np

from op_samples import Case, call, values
from op_table import FLOATS

_erf = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def np_linear(x, weight, bias=None, activation="none"):
    y = x @ weight.T
    return ACTIVATIONS[activation](y if bias is None else y + bias)


CASES = {
    "linear": Case(np_linear, [
        call(values(3, 4), values(5, 4), values(5)), call(values(3, 4), values(5, 4)), call(values(4), values(5, 4), values(5)),
        call(values(2, 3, 4), values(5, 4), values(5)), call(values(1, 1), values(1, 1), None),
        call(values(33, 20), values(17, 20), values(17)),
        *[call(values(3, 4), values(5, 4), values(5), activation=a) for a in ("relu", "gelu", "gelu_tanh")],
        call(values(2, 3, 4), values(5, 4), None, "gelu"), call(values(4), values(5, 4), values(5), "gelu_tanh")],
        empty=[call(values(0, 4), values(5, 4), values(5)), call(values(3, 0), values(5, 0), values(5)),
               call(values(3, 4), values(0, 4), values(0), "gelu"), call(values(2, 3, 0), values(5, 0), activation="relu")],
        large=call(values(300, 301), values(257, 301), values(257)), dtypes=FLOATS, ulps=16, absolute=True),
}
