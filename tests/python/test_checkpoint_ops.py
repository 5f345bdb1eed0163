"""Every differentiable op in a checkpoint scope: gradients have the same bits as without a scope."""
import contextlib

import pytest

import yoke
from op_cases import CASES
from op_harness import inputs_of, invoke
from op_table import OPS, to_numpy

NAMES = [name for name in CASES if OPS[name].differentiable]
DTYPES = ["float32", "bfloat16"]


def gradients(name, sample, dtype, scope):
    """Returns the bytes of the gradients of the op's inputs, with a use of the result, and of later random numbers."""
    leaves = []
    yoke.manual_seed(3)
    with scope:
        # The op's inputs and the reader of its result are made in the scope too; otherwise there is little to
        # recompute.
        out = invoke(OPS[name], sample, dtype, lambda leaf: leaf.clone(), leaves)
        used = out * out
    del out
    used.backward(yoke.ones_like(used) * 0.5)
    return [to_numpy(leaf.grad.to(dtype=yoke.float32)).tobytes() if leaf.grad is not None else None for leaf in leaves] + [
        to_numpy(yoke.rand((4,))).tobytes()]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_without_a_scope(name, dtype):
    if dtype not in CASES[name].dtypes:
        pytest.skip(f"{name} does not take {dtype}")
    for sample in CASES[name].all_calls():
        if not inputs_of(sample):
            continue
        wanted = gradients(name, sample, dtype, contextlib.nullcontext())
        for policy in ("full", "matmul", [OPS[name].name]):
            assert gradients(name, sample, dtype, yoke.checkpoint_scope(policy)) == wanted, (sample, policy)


def written_between(scope):
    """Returns the gradient through values that inner scopes read, and that the outer scope writes in place afterwards."""
    yoke.manual_seed(0)
    x = yoke.randn((5,)).requires_grad_()
    outside = yoke.randn((5,))
    with scope():
        h = x + 1.0
        with scope():
            first = yoke.exp(h + outside)
            h.mul_(0.5)  # made in the outer scope
            second = yoke.exp(h + 2.0)
        h.add_(5.0)
        with scope():
            third = yoke.exp(h * 0.1)
        outside.mul_(3.0)  # calls of a scope have read this tensor
        h.add_(outside)
        fourth = yoke.exp(h * 0.1)
    (first + second + third + fourth).sum().backward()
    return x.grad.tolist(), outside.tolist()


@pytest.mark.parametrize("policy", ["full", "matmul", ["add"], ["exp"]])
def test_what_is_written_between_scopes_is_read_as_it_was(policy):
    assert written_between(lambda: yoke.checkpoint_scope(policy)) == written_between(contextlib.nullcontext)
