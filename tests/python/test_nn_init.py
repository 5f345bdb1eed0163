"""yoke.nn.init: the values of each scheme, and equal values in Lua."""

import math
import shutil
import subprocess

import numpy as np
import pytest

import yoke
from yoke import nn

init = nn.init


def drawn(scheme, shape=(400, 300), **options):
    yoke.manual_seed(11)
    return scheme(yoke.empty(shape), **options).numpy()


def test_constants_fill_parameters_in_place():
    p = nn.Parameter(yoke.empty(3))
    assert init.ones_(p) is p and p.tolist() == [1, 1, 1] and p.requires_grad and p.is_leaf
    assert init.zeros_(p).tolist() == [0, 0, 0] and init.constant_(p, 2.5).tolist() == [2.5] * 3


def test_uniform_and_normal_are_scaled_draws():
    yoke.manual_seed(11)
    want = (yoke.rand((400, 300)) * 5.0 - 2.0).numpy()
    np.testing.assert_array_equal(drawn(init.uniform_, a=-2, b=3), want)
    yoke.manual_seed(11)
    want = (yoke.randn((400, 300)) * 3.0 + 1.0).numpy()
    np.testing.assert_array_equal(drawn(init.normal_, mean=1, std=3), want)


@pytest.mark.parametrize("scheme, options, deviation, uniform", [
    (init.xavier_uniform_, {"gain": 2.0}, 2 * math.sqrt(2 / 700), True),
    (init.xavier_normal_, {}, math.sqrt(2 / 700), False),
    (init.kaiming_uniform_, {"a": math.sqrt(5)}, math.sqrt(1 / (3 * 300)), True),
    (init.kaiming_normal_, {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(2 / 400), False),
])
def test_schemes_have_their_deviation(scheme, options, deviation, uniform):
    values = drawn(scheme, **options)
    assert values.std() == pytest.approx(deviation, rel=0.01) and abs(values.mean()) < 0.02 * deviation
    bound = math.sqrt(3) * deviation
    assert (np.abs(values).max() <= bound * 1.0001) == uniform


def test_linear_starts_as_kaiming_uniform_would():
    yoke.manual_seed(2)
    layer = nn.Linear(64, 32, bias=False)
    yoke.manual_seed(2)
    again = init.kaiming_uniform_(yoke.empty((32, 64)), a=math.sqrt(5))
    np.testing.assert_allclose(layer.weight.detach().numpy(), again.numpy(), rtol=0, atol=1e-7)


@pytest.mark.parametrize("a, b, mean, deviation", [(-2.0, 2.0, 0.0, 0.87962566), (1.0, 5.0, 1.52513, 0.446199)])
def test_a_truncated_normal_stays_within_its_ends(a, b, mean, deviation):
    values = drawn(init.trunc_normal_, a=a, b=b)
    assert values.min() >= a and values.max() <= b
    assert values.mean() == pytest.approx(mean, abs=0.01) and values.std() == pytest.approx(deviation, rel=0.01)


@pytest.mark.parametrize("shape", [(7, 20), (20, 7), (6, 3, 4)])
def test_orthogonal_rows_or_columns_are_orthonormal(shape):
    q = drawn(init.orthogonal_, shape, gain=2.0).reshape(shape[0], -1)
    product = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


@pytest.mark.parametrize("call, said", [
    (lambda: init.normal_(yoke.empty(2), std=-1), "argument 'std' is -1"),
    (lambda: init.trunc_normal_(yoke.empty(2), a=2, b=1), "'std', 'a' and 'b' are 1.0, 2 and 1"),
    (lambda: init.xavier_uniform_(yoke.empty(5)), r"xavier_uniform_\(\): the tensor has shape \(5,\)"),
    (lambda: init.orthogonal_(yoke.empty(5)), r"orthogonal_\(\): the tensor has shape \(5,\)"),
    (lambda: init.kaiming_normal_(yoke.empty((2, 2)), mode="fan"), "'mode' is 'fan'"),
    (lambda: init.calculate_gain("swoosh"), "'swoosh'; it must be one of leaky_relu"),
])
def test_wrong_input_is_named(call, said):
    with pytest.raises(yoke.ValueError, match=said):
        call()


LUA = """
local yoke = require "yoke"
local init = yoke.nn.init
local function show(name, ...)
    yoke.manual_seed(11)
    local values = init[name](yoke.empty { 7, 5 }, ...):reshape { -1 }:tolist()
    for i, v in ipairs(values) do values[i] = ("%a"):format(v) end
    print(name .. " " .. table.concat(values, " "))
end
show("uniform_", -2, 3)
show("normal_", 1, 3)
show "trunc_normal_"
show("xavier_uniform_", 2.0)
show "xavier_normal_"
show("kaiming_uniform_", { a = 5 ^ 0.5 })
show("kaiming_normal_", { mode = "fan_out", nonlinearity = "tanh" })
show "orthogonal_"
"""
PYTHON = {
    "uniform_": {"a": -2, "b": 3}, "normal_": {"mean": 1, "std": 3}, "trunc_normal_": {}, "xavier_uniform_": {"gain": 2.0},
    "xavier_normal_": {}, "kaiming_uniform_": {"a": 5**0.5},
    "kaiming_normal_": {"mode": "fan_out", "nonlinearity": "tanh"}, "orthogonal_": {},
}


def test_lua_draws_the_same_bits():
    lua = shutil.which("lua5.4")
    if lua is None:
        pytest.skip("lua5.4 is not installed")
    done = subprocess.run([lua, "-"], input=LUA, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert sorted(rows) == sorted(PYTHON)
    for name, options in PYTHON.items():
        mine = drawn(getattr(init, name), (7, 5), **options).ravel().tolist()
        assert [float.fromhex(v) for v in rows[name].split()] == mine, name
