"""Names of PyTorch that are several ops in yoke.compat.torch, beside formulas."""

import textwrap

import pytest

from compat_run import passes

PARTS = {
    "every activation is a layer": """
        x = torch.randn(2, 4, 4)
        for name in NAMES.split():
            layer = getattr(nn, name)()
            assert layer(x).isfinite().all() and repr(layer).startswith(name), name
        close(nn.Softplus(beta=2)(torch.zeros(1)), [math.log(2) / 2])
        close(nn.Softplus(1, 0.5)(torch.ones(1)), [1])
    """,
    "activations": """
        x = torch.tensor([-2.0, -0.25, 0.0, 1.5], requires_grad=True)
        close(F.celu(x, 2.0), [2 * math.expm1(-1), 2 * math.expm1(-0.125), 0, 1.5])
        close(F.selu(x), [1.0507009873554805 * 1.6732632423543772 * math.expm1(-2), 1.0507009873554805 * 1.6732632423543772 * math.expm1(-0.25), 0, 1.5 * 1.0507009873554805])
        close(F.threshold(x, -0.5, 9.0), [9, -0.25, 0, 1.5])
        close(F.hardshrink(x), [-2, 0, 0, 1.5])
        close(F.softshrink(x), [-1.5, 0, 0, 1])
        y = torch.tensor([-1.0, 1.0])
        assert F.selu(y, inplace=True) is y and y[0] < -1.1
        nn.CELU()(x).sum().backward()
        close(x.grad, [math.exp(-2), math.exp(-0.25), 1, 1])
        for layer in (nn.SELU(), nn.CELU(0.5), nn.Threshold(0.1, 20), nn.Hardshrink(), nn.Softshrink(0.2)):
            assert layer(x).shape == x.shape and type(layer).__name__ in repr(layer)
        layer = nn.PReLU(3)
        assert list(layer.state_dict()) == ["weight"] and repr(layer) == "PReLU(num_parameters=3)"
        close(layer(torch.full((1, 3, 2), -1.0)), [[[-0.25, -0.25]] * 3])
    """,
    "variables and states of random numbers": """
        from torch.autograd import Variable
        x = torch.ones(2)
        v = Variable(x, requires_grad=True)
        assert v.requires_grad and not x.requires_grad and isinstance(v, Variable) and not isinstance(1, Variable)
        assert v.data_ptr() == x.data_ptr() and not Variable(v * 2).requires_grad
        torch.manual_seed(1)
        with torch.random.fork_rng():
            first = torch.rand(2)
        assert torch.equal(first, torch.rand(2))
        with torch.random.fork_rng(devices=[], enabled=False):
            second = torch.rand(2)
        torch.manual_seed(1)
        torch.rand(2)
        assert torch.equal(second, torch.rand(2))
    """,
    "columns": """
        x = torch.arange(32.0).reshape(1, 2, 4, 4).requires_grad_()
        columns = nn.Unfold(2, stride=2)(x)
        assert columns.shape == (1, 8, 4)
        assert torch.equal(nn.Fold((4, 4), 2, stride=2)(columns), x)
        counts = F.fold(F.unfold(torch.ones(1, 1, 4, 4), 3, padding=1), (4, 4), 3, padding=1)
        close(counts[0, 0], [[4, 6, 6, 4], [6, 9, 9, 6], [6, 9, 9, 6], [4, 6, 6, 4]])
        spread = F.fold(torch.ones(1, 4, 4), (4, 4), 2, dilation=2)
        close(spread, [[[[1, 1, 1, 1]] * 4]])
        F.fold(columns, (4, 4), 2, stride=2).pow(2).sum().backward()
        close(x.grad, 2 * x)
        with refused(ValueError, "fold\\\\(\\\\): argument 'input' has shape"):
            F.fold(torch.ones(1, 4, 5), (4, 4), 2)
    """,
    "arguments": """
        x = torch.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
        assert torch.sort(x, stable=True)[1].tolist() == x.argsort(stable=True, dim=1).tolist() == [[1, 2, 0]]
        assert torch.ones(1, 2, 1).squeeze((0, 2)).shape == (2,) and torch.squeeze(torch.ones(1, 1), ()).shape == (1, 1)
        assert torch.select(x, 1, 0).tolist() == [3] and x.where(x > 1, 0.0).tolist() == [[3, 0, 2]]
        assert [each.tolist() for each in torch.tensor_split(x[0], torch.tensor([1]))] == [[3], [1, 2]]
        assert torch.linspace(torch.tensor(0), torch.tensor(2), 3).tolist() == [0, 1, 2] and torch.logspace(0, 2, 3, dtype=torch.int64).tolist() == [1, 10, 100]
        assert x.double(memory_format=torch.preserve_format).dtype is torch.float64 and torch.scalar_tensor(1, requires_grad=True).requires_grad
        v = torch.tensor(2.0, requires_grad=True)
        torch.fill(torch.zeros(3), v).sum().backward()
        assert v.grad == 3 and torch.copysign(torch.tensor([2]), -1).dtype is torch.float32
        assert F.hardtanh(torch.tensor([-3, 3])).tolist() == [-1, 1] and F.relu6(torch.tensor([9])).dtype is torch.int64
        y = torch.tensor([0.44, 2.46])
        assert y.round_(decimals=1) is y and abs(y[0] - 0.4) < 1e-6
    """,
    "written in place with a gradient": """
        for change in (lambda y: y.clamp_min_(0.5), lambda y: y.hypot_(torch.ones(2)), lambda y: y.copysign_(torch.ones(2)), lambda y: F.mish(y, inplace=True),
                       lambda y: F.selu(y, inplace=True), lambda y: F.celu(y, inplace=True), lambda y: F.hardswish(y, inplace=True), lambda y: y.cumprod_(0)):
            x = torch.tensor([0.25, 2.0], requires_grad=True)
            change(x * 1).sum().backward()
            assert x.grad.isfinite().all() and x.grad.any()
        x = torch.tensor([0.25, 2.0], requires_grad=True)
        (x * 1).clamp_min_(0.5).sum().backward()
        close(x.grad, [0, 1])
    """,
    "errors of layers name the class": """
        for make in (lambda: nn.BatchNorm1d(3, color=1), lambda: nn.Linear(3)):
            with refused(TypeError, "(BatchNorm1d|Linear)\\(\\): "):
                make()
    """,
    "windows and layers": """
        x, w = torch.arange(10.0).reshape(1, 1, 10), torch.ones(1, 1, 4)
        assert F.conv1d(x, w, padding="same").shape == (1, 1, 10) and F.conv1d(x, w, stride=(2,), padding="valid").shape == (1, 1, 4)
        close(F.conv1d(x, w, padding="same")[0, 0, :2], [3, 6])
        assert F.conv2d(torch.ones(1, 1, 5, 5), torch.ones(1, 1, 3, 2), padding="same", dilation=2).shape == (1, 1, 5, 5)
        close(F.unfold(torch.arange(9.0).reshape(1, 1, 3, 3), 2, dilation=2)[0, :, 0], [0, 2, 6, 8])
        assert F.adaptive_avg_pool2d(torch.ones(1, 2, 4, 6), (None, 3)).shape == (1, 2, 4, 3)
        assert F.bilinear(torch.ones(2, 5, 3), torch.ones(2, 5, 4), torch.ones(6, 3, 4)).shape == (2, 5, 6)
        close(F.linear(torch.ones(2, 3), torch.ones(3), torch.tensor(1.0)), [4, 4])
        z = torch.ones(2, 3, 4, 4)
        assert F.dropout2d(z, 0.5, inplace=True) is z and F.prelu(torch.tensor(-1.0), torch.tensor([0.5])).shape == ()
        q, k = torch.ones(1, 4, 2, 8), torch.ones(1, 2, 2, 8)
        assert F.scaled_dot_product_attention(q, k, k, dropout_p=0.5, enable_gqa=True).shape == q.shape
    """,
    "sums and products": """
        nan, eye = torch.full((2,), float("nan")), torch.eye(2)
        close(torch.addmv(nan, eye, torch.ones(2), beta=0), [1, 1])
        with refused(TypeError, "addmv: argument 'beta' is 0.5, but the tensors are torch.int64"):
            torch.addmv(torch.ones(2).long(), eye.long(), torch.ones(2).long(), beta=0.5)
        flags = torch.tensor([True, False])
        assert torch.addr(torch.zeros(2, 2).bool(), flags, flags).tolist() == [[True, False], [False, False]]
        close(torch.linalg.multi_dot([torch.ones(2), eye, eye * 3]), [3, 3])
        close(torch.logcumsumexp(torch.tensor([-200.0, 0.0, 0.0]), 0), [-200, 0, math.log(2)])
        close(torch.trapezoid(torch.ones(2, 3), torch.tensor([[0.0, 1, 3], [0, 2, 2]])), [3, 2])
        close(torch.trapezoid(torch.ones(2, 3), torch.tensor([0.0, 5]), dim=0), [5, 5, 5])
        assert torch.diff(torch.tensor([True, True, False])).tolist() == [False, True] and torch.diff(eye, 0).shape == (2, 2)
        close(torch.tensordot(torch.tensor([[1.0, 2]]), torch.tensor([[3.0], [4]]), ([1, 0], [1, 0])), 21)
        assert torch.cummax(torch.tensor(2.0), 0).indices == 0
        start, places = torch.zeros(2).long(), torch.tensor([0, 0, 1])
        for name, values in (("mean", [2, 3]), ("amax", [4, 9]), ("amin", [0, 0])):
            found = torch.scatter_reduce(start, 0, places, torch.tensor([4, 3, 9]), name)
            assert found.dtype is torch.int64 and (name == "mean" or found.tolist() == values)
    """,
    "statistics": """
        values, counts = torch.tensor([[1.0, 2.0, 4.0], [2.0, 3.0, 1.0]]), torch.tensor([1, 2, 1])
        close(torch.cov(values, fweights=counts), torch.cov(values.repeat_interleave(counts, 1)))
        close(torch.cov(values, aweights=torch.ones(3)), torch.cov(values))
        assert torch.corrcoef(values[:1]).shape == () and torch.cov(values.long()).dtype is torch.float32
        x = torch.tensor([[1.0, 2.0, 4.0], [2.0, 3.0, 1.0]])
        close(torch.cov(x), [[7 / 3, -1], [-1, 1]])
        close(torch.cov(x[0], correction=0), 14 / 9)
        close(torch.corrcoef(x)[0, 1], torch.cov(x)[0, 1] / (7 / 3) ** 0.5)
        close(torch.corrcoef(x[0]), 1)
        assert torch.combinations(torch.tensor([5, 6, 7])).tolist() == [[5, 6], [5, 7], [6, 7]]
        assert torch.combinations(torch.tensor([5, 6]), with_replacement=True).tolist() == [[5, 5], [5, 6], [6, 6]]
        assert torch.combinations(torch.tensor([5]), 2).shape == (0, 2)
    """,
    "extremes by place": """
        start = torch.tensor([4.0, -1.0, 0.5])
        index = torch.tensor([0, 0, 2, 2, 2])
        src = torch.tensor([1.0, 5.0, 2.0, 3.0, 3.0], requires_grad=True)
        most = start.scatter_reduce(0, index, src, "amax")
        close(most, [5, -1, 3])
        most.sum().backward()
        close(src.grad, [0, 1, 0, 0.5, 0.5])
        close(start.scatter_reduce(0, index, src, "amin"), [1, -1, 0.5])
        close(start.scatter_reduce(0, index, src, "amin", include_self=False), [1, -1, 2])
        rows = torch.zeros(2, 2).scatter_reduce(1, torch.tensor([[0, 0], [1, 0]]), torch.tensor([[-3.0, -2.0], [-5.0, 7.0]]), reduce="amax", include_self=False)
        close(rows, [[-2, 0], [7, -5]])
        with refused(RuntimeError, "argument 'reduce' is 'prod'"):
            start.scatter_reduce(0, index, src, "prod")
    """,
    "texts of numbers, and errors": """
        assert f"{torch.tensor(3)} {torch.tensor(1.5):.3f} {torch.tensor([1.0])}" == "3 1.500 tensor([1.])"
        assert "{}".format(torch.tensor(True)) == "True"
        for call in (lambda: torch.ones(2).view(3), lambda: nn.Linear(2, 2)(torch.ones(1, 3)), lambda: torch.ones(2) @ torch.ones(3), lambda: torch.ones(2).backward()):
            with refused(RuntimeError, "."):
                call()
        assert issubclass(torch.OutOfMemoryError, RuntimeError) and issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
    """,
}

HEAD = """
NAMES = '''ReLU SiLU LeakyReLU ELU Softplus Hardtanh ReLU6 LogSigmoid Mish Softsign Tanhshrink GLU Softmin Hardswish Hardsigmoid PReLU CELU SELU
    Hardshrink Softshrink GELU Tanh Sigmoid Softmax LogSoftmax Identity Flatten Dropout Dropout1d'''
import math, re
import torch, torch.nn as nn, torch.nn.functional as F


def close(found, wanted):
    wanted = wanted if isinstance(wanted, torch.Tensor) else torch.tensor(wanted, dtype=torch.float32)
    assert found.shape == wanted.shape and torch.allclose(found, wanted, atol=1e-5), (found, wanted)


class refused:
    def __init__(self, kind, text):
        self.kind, self.text = kind, text

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        assert kind is not None and issubclass(kind, self.kind) and re.search(self.text, str(error)), (kind, error)
        return True


"""


@pytest.mark.parametrize("part", PARTS)
def test_a_part(tmp_path, part):
    passes(tmp_path, HEAD + textwrap.dedent(PARTS[part]))
