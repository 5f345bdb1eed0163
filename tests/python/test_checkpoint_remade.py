"""An activation of a product: if a policy holds both, the scope holds the activation's input, and no bit changes."""
import contextlib
import itertools

import pytest

import yoke
from conftest import DEVICE

ROWS, INNER = 6, 24


def step(activation, dtype, columns, has_bias, scope):
    """Bytes that stand between forward and backward, and the gradients."""
    yoke.manual_seed(1)
    x, weight, last = (yoke.randn(shape).to(dtype=dtype).requires_grad_() for shape in ((ROWS, INNER), (columns, INNER), (4, columns)))
    bias = yoke.randn((columns,)).to(dtype=dtype).requires_grad_() if has_bias else None
    leaves = [x, weight, last, *[bias] * has_bias]
    yoke.synchronize()
    before = yoke.memory_allocated(DEVICE)
    with scope:
        y = yoke.linear(yoke.linear(x, weight, bias, activation=activation), last)
    held = yoke.memory_allocated(DEVICE) - before
    (y * y).sum().backward()
    return held, [leaf.grad.to(dtype=yoke.float32).tolist() for leaf in leaves]


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "silu"])
def test_an_activation_is_made_again_from_what_it_was_applied_to(activation):
    for dtype, columns, has_bias in itertools.product((yoke.float32, yoke.bfloat16, yoke.float16), (4096, 37), (True, False)):
        plain, wanted = step(activation, dtype, columns, has_bias, contextlib.nullcontext())
        held, found = step(activation, dtype, columns, has_bias, yoke.checkpoint_scope("matmul"))
        assert found == wanted, (dtype, columns, has_bias)
        assert columns == 37 or held < 0.6 * plain, (dtype, held / plain)  # two tensors
