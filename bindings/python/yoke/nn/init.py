"""Ways to fill a tensor before training. Each changes the tensor in place, unrecorded, and returns it.

Draws are yoke.rand's and yoke.randn's of the tensor's shape and dtype, in row-major order, so that one seed gives
the same values in Python and Lua.
"""

from __future__ import annotations

import math
from typing import TypeVar

import yoke
from yoke import _yoke
from yoke._check import number, tensor as need_tensor
from yoke._named import named
from yoke._unknown import teller
from yoke._yoke import Tensor

__all__ = ["calculate_gain", "constant_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_",
           "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_"]
__getattr__ = teller(__name__)

T = TypeVar("T", bound=Tensor)


def _fill(tensor: T, values: Tensor) -> T:
    with yoke.no_grad():
        tensor.copy_(values)
    return tensor


@named
def constant_(tensor: T, value: float) -> T:
    """Fills the tensor with `value`."""
    need_tensor("constant_", "tensor", tensor)
    with yoke.no_grad():
        tensor.fill_(value)
    return tensor


@named
def zeros_(tensor: T) -> T:
    """Fills the tensor with 0."""
    return constant_(tensor, 0.0)


@named
def ones_(tensor: T) -> T:
    """Fills the tensor with 1."""
    return constant_(tensor, 1.0)


@named
def uniform_(tensor: T, a: float = 0.0, b: float = 1.0) -> T:
    """Draws uniform numbers in [a, b)."""
    need_tensor("uniform_", "tensor", tensor)
    a, b = number("uniform_", "a", a), number("uniform_", "b", b)
    return _fill(tensor, yoke.rand_like(tensor) * (b - a) + a)


@named
def normal_(tensor: T, mean: float = 0.0, std: float = 1.0) -> T:
    """Draws normal numbers with a mean and a standard deviation."""
    need_tensor("normal_", "tensor", tensor)
    mean, std = number("normal_", "mean", mean), number("normal_", "std", std)
    if std < 0:
        raise _yoke.ValueError(f"normal_(): argument 'std' is {std}; it must not be negative")
    return _fill(tensor, yoke.randn_like(tensor) * std + mean)


def _erfinv(x: Tensor) -> Tensor:
    # M. Giles, "Approximating the erfinv function", GPU Computing Gems 2: single precision.
    near = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
            0.246640727, 1.50140941)
    far = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
           1.00167406, 2.83297682)
    w = -yoke.log((1.0 - x) * (1.0 + x))

    def polynomial(coefficients: tuple[float, ...], at: Tensor) -> Tensor:
        sum_ = yoke.full_like(at, coefficients[0])
        for c in coefficients[1:]:
            sum_ = sum_ * at + c
        return sum_

    return x * yoke.where(yoke.lt(w, 5.0), polynomial(near, w - 2.5), polynomial(far, yoke.sqrt(yoke.maximum(w, 5.0)) - 3.0))


@named
def trunc_normal_(tensor: T, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> T:
    """Draws from a normal distribution with a mean and a standard deviation, cut to [a, b]."""
    need_tensor("trunc_normal_", "tensor", tensor)
    given = {"mean": mean, "std": std, "a": a, "b": b}
    mean, std, a, b = (number("trunc_normal_", name, value) for name, value in given.items())
    if std <= 0 or not a < b:
        raise _yoke.ValueError(f"trunc_normal_(): arguments 'std', 'a' and 'b' are {std}, {a} and {b}; 'std' must be above 0, and 'a' below 'b'")
    # Uniform between the probabilities of both ends, then back through the normal distribution.
    ends = yoke.tensor([(a - mean) / std, (b - mean) / std], dtype=yoke.float64)
    low, high = yoke.erf(ends / 2.0**0.5).tolist()
    with yoke.no_grad():
        values = _erfinv(yoke.rand(tensor.shape, device=tensor.device) * (high - low) + low) * (std * 2.0**0.5) + mean
    return _fill(tensor, yoke.clamp(values, a, b))


def _fans(tensor: Tensor, call: str) -> tuple[int, int]:
    if need_tensor(call, "tensor", tensor).ndim < 2:
        raise _yoke.ValueError(f"{call}(): the tensor has shape {tensor.shape}; it must have two axes or more, because inputs and outputs are counted on axes")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@named
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the factor that keeps the variance through an activation; `param` is leaky_relu's slope."""
    slope = 0.01 if param is None else number("calculate_gain", "param", param)
    gains = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0, "relu": 2.0**0.5, "selu": 0.75,
             "leaky_relu": (2.0 / (1.0 + slope * slope)) ** 0.5}
    if not isinstance(nonlinearity, str) or nonlinearity not in gains:
        raise _yoke.ValueError(f"calculate_gain(): argument 'nonlinearity' is '{nonlinearity}'; it must be one of {', '.join(sorted(gains))}")
    return gains[nonlinearity]


@named
def xavier_uniform_(tensor: T, gain: float = 1.0) -> T:
    """Draws uniform numbers in ±gain · √(6 / (inputs + outputs)) (X. Glorot, Y. Bengio)."""
    fan_in, fan_out = _fans(tensor, "xavier_uniform_")
    gain = number("xavier_uniform_", "gain", gain)
    bound = gain * (6.0 / max(fan_in + fan_out, 1)) ** 0.5
    return uniform_(tensor, -bound, bound)


@named
def xavier_normal_(tensor: T, gain: float = 1.0) -> T:
    """Draws normal numbers with standard deviation gain · √(2 / (inputs + outputs)) (X. Glorot, Y. Bengio)."""
    fan_in, fan_out = _fans(tensor, "xavier_normal_")
    gain = number("xavier_normal_", "gain", gain)
    return normal_(tensor, 0.0, gain * (2.0 / max(fan_in + fan_out, 1)) ** 0.5)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str, call: str) -> float:
    fans = dict(zip(("fan_in", "fan_out"), _fans(tensor, call)))
    if not isinstance(mode, str) or mode not in fans:
        raise _yoke.ValueError(f"{call}(): argument 'mode' is '{mode}'; it must be fan_in or fan_out")
    return calculate_gain(nonlinearity, a) / max(fans[mode], 1) ** 0.5


@named
def kaiming_uniform_(tensor: T, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> T:
    """Draws uniform numbers in ±gain · √(3 / fan) (K. He et al., "Delving Deep into Rectifiers")."""
    bound = 3.0**0.5 * _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound)


@named
def kaiming_normal_(tensor: T, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> T:
    """Draws normal numbers with standard deviation gain / √fan (K. He et al., "Delving Deep into Rectifiers")."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_"))


@named
def orthogonal_(tensor: T, gain: float = 1.0) -> T:
    """Fills with orthonormal rows, or columns if there are fewer columns, times gain (A. Saxe et al.); axes from 1 on are joined.

    Rows of normal draws, each orthogonalized against earlier rows, twice (Gram and Schmidt), in float64.
    """
    columns, rows = _fans(tensor, "orthogonal_")[0], tensor.shape[0]
    gain = number("orthogonal_", "gain", gain)
    with yoke.no_grad():
        q = yoke.randn((min(rows, columns), max(rows, columns)), dtype=yoke.float64, device=tensor.device)
        for i in range(q.shape[0]):
            row = q[i]
            for _ in range(2 if i else 0):
                row = row - yoke.matmul(yoke.matmul(q[:i], row), q[:i])
            q[i] = row / yoke.sqrt(yoke.sum(row * row))
        values = (q if rows <= columns else q.transpose(0, 1)) * gain
        return _fill(tensor, values.reshape(tensor.shape))
