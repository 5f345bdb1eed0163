"""Every op of the table against PyTorch on the CPU, values and gradients: `./dev test --oracle torch`."""
import numpy as np
import pytest

from op_cases import CASES, CREATION, RANDOM
from op_harness import inputs_of, invoke, map_arrays
from op_table import EPSILON, FLOATS, NUMPY, OPS, as_dtype, name_of, to_numpy, to_yoke

pytestmark = [pytest.mark.usefixtures("oracle"), pytest.mark.filterwarnings("ignore")]
NAMES = [n for n in CASES if n in OPS]
# Errors allowed between the two, in units in the last place of the largest number of a result. Both round; in the
# narrow dtypes PyTorch rounds between the steps of some ops.
VALUE_ULPS = {"float64": 64, "float32": 64, "float16": 16, "bfloat16": 16}
GRADIENT_ULPS = {"float64": 256, "float32": 256}
WIDENED = {"einsum"}  # PyTorch widens integers in some equations; NumPy and Yoke never do


@pytest.fixture
def oracle(request):
    if request.config.getoption("--oracle") != "torch":
        pytest.skip("runs with --oracle torch")


def torch_arguments(op, call, dtype, leaves=None):
    import torch

    def tensor(array):
        x = torch.tensor(np.array(as_dtype(array, dtype)))
        if array.dtype.kind != "f":
            return x
        x = x.to(getattr(torch, dtype))
        if leaves is not None:
            leaves.append(x.requires_grad_(True))
        return x
    return map_arrays(tensor, call)


def numbers(x):
    """A torch tensor in NumPy; bfloat16 as float32."""
    import torch
    return x.detach().to(torch.float32 if x.dtype == torch.bfloat16 else x.dtype).numpy()


def refuses(error):
    """Returns whether PyTorch reports a missing kernel for a dtype, which is no disagreement."""
    words = ("not implemented for", "only supports", "not supported for", "can only be computed", "Input dtype must be", "expected scalar type",
             "for input of type", "only defined for", "is not supported", "does not support", "must have the same dtype", "should be the same", "should be float")
    return any(word in str(error) for word in words)


def ask(name, op, call, dtype, leaves=None):
    """PyTorch's result, a tensor or several; None where it has no kernel."""
    import oracle_torch
    args, named = torch_arguments(op, call, dtype, leaves)
    try:
        return oracle_torch.function_of(name)(*args, **named)
    except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError) as error:
        if dtype == "float64" or not refuses(error):
            raise
        return None


def first(results):
    return results[0] if isinstance(results, (tuple, list)) else results


def agree(got, want, dtype, ulps, what):
    assert tuple(got.shape) == want.shape, f"{what}: shape {got.shape}, PyTorch's is {want.shape}"
    if dtype not in EPSILON:
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    size = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=0, atol=float(ulps * EPSILON[dtype] * size),
                               err_msg=what)


def test_every_differentiable_op_has_its_function_in_torch():
    oracle_torch = pytest.importorskip("oracle_torch")
    public = [n for n in OPS if not n.startswith("_") and n not in CREATION | RANDOM]
    missing = [n for n in public if oracle_torch.function_of(n) is None]
    assert missing == [], "ops without an entry in oracle_torch.py"
    assert [n for n in oracle_torch.OPS if n not in OPS] == [], "entries in oracle_torch.py of ops that the table does not have"


@pytest.mark.parametrize("name", NAMES)
def test_values_are_torchs_in_every_dtype(name):
    case, op = CASES[name], OPS[name]
    for call in [*case.all_calls(), case.large]:
        for dtype in case.dtypes if name != "one_hot" else ("int64",):
            want = first(ask(name, op, call, dtype))
            if want is None or (want.numel() == 0 and dtype not in FLOATS):
                continue  # for empty tensors PyTorch accepts a dtype that it refuses otherwise
            got = first(invoke(op, call, dtype))
            what = f"{name}({call}) in {dtype}"
            if name not in WIDENED or dtype in FLOATS:
                assert name_of(got.dtype) == str(want.dtype).removeprefix("torch."), what
            agree(to_numpy(got), numbers(want), name_of(got.dtype), VALUE_ULPS.get(name_of(got.dtype)), what)


@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].differentiable])
def test_gradients_are_torchs(name):
    import torch
    random = np.random.default_rng(5)
    case, op = CASES[name], OPS[name]
    for call in [*case.all_calls(), case.large]:
        if not inputs_of(call):
            continue
        for dtype in ("float64", "float32"):
            ours, theirs = [], []
            want = first(ask(name, op, call, dtype, theirs))
            got = first(invoke(op, call, dtype, leaves=ours))
            upstream = random.uniform(-1, 1, tuple(got.shape)).astype(NUMPY[name_of(got.dtype)])
            got.backward(to_yoke(upstream, name_of(got.dtype)))
            wanted = torch.autograd.grad(want, theirs, torch.tensor(upstream), allow_unused=True)
            for i, (x, y) in enumerate(zip(ours, wanted, strict=True)):
                what = f"{name}({call}) in {dtype}, the gradient of value {i}"
                theirs_ = np.zeros(tuple(x.shape)) if y is None else numbers(y)
                mine = np.zeros(tuple(x.shape)) if x.grad is None else to_numpy(x.grad)
                agree(mine, theirs_, dtype, GRADIENT_ULPS[dtype], what)
