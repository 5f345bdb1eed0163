"""Sums of scaled operands, tensors as bounds, rounded quotients: internal ops behind forms of calls, against NumPy."""
import numpy as np
import pytest

import yoke
from op_table import to_numpy, to_yoke

NUMBERS = np.arange(-6, 6).reshape(3, 4)
OTHERS = np.array([[3, -2, 1, 4]])


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "int8"])
def test_blends_have_numpys_values(dtype):
    x, y = (to_yoke(array, dtype) for array in (NUMBERS, OTHERS))
    for got, want in (
        (yoke.add(x, y, alpha=2), NUMBERS + 2 * OTHERS), (yoke.sub(x, y, alpha=3), NUMBERS - 3 * OTHERS),
        (yoke.div(x, y, rounding_mode="floor"), NUMBERS // OTHERS), (yoke.div(x, y, rounding_mode="trunc"), np.trunc(NUMBERS / OTHERS)),
        (yoke.clamp(x, y - 2, y), np.minimum(np.maximum(NUMBERS, OTHERS - 2), OTHERS)), (yoke.clamp(x, max=y), np.minimum(NUMBERS, OTHERS)),
        (yoke.clamp(x, min=y), np.maximum(NUMBERS, OTHERS)), (yoke.addcmul(x, y, y, value=2), NUMBERS + 2 * OTHERS * OTHERS),
        (yoke.square(x), NUMBERS * NUMBERS)):
        np.testing.assert_array_equal(to_numpy(got).astype(float), want)


def test_floats_between_and_infinities_have_numpys_values():
    x, y = to_yoke(NUMBERS.astype(float), "float32"), to_yoke(OTHERS.astype(float), "float32")
    np.testing.assert_allclose(to_numpy(yoke.lerp(x, y, 0.25)), NUMBERS + 0.25 * (OTHERS - NUMBERS), rtol=1e-6)
    np.testing.assert_allclose(to_numpy(yoke.addcdiv(x, y, y + 5, value=2)), NUMBERS + 2 * OTHERS / (OTHERS + 5), rtol=1e-6)
    np.testing.assert_array_equal(to_numpy(yoke.isinf(x / 0)), NUMBERS != 0)
    np.testing.assert_array_equal(to_numpy(yoke.isclose(x, x + 1e-9)), np.ones((3, 4), bool))
