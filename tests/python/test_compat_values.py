"""Calls whose values or errors once differed from PyTorch's, under PyTorch's words."""

import pytest

from compat_run import errors_of

RAISES = """
        def raises(call, told):
            try:
                call()
            except (RuntimeError, AttributeError) as error:
                assert told in str(error), error
            else:
                raise AssertionError(told)
"""
PARTS = {
    "an empty list of axes means every axis": """
        x = torch.arange(6.0).reshape(2, 3)
        assert x.sum(dim=[]).item() == 15 and torch.mean(x, ()).item() == 2.5 and x.amax(()).item() == 5 and x.amin(dim=[]).item() == 0
        assert x.norm(dim=[]).ndim == 0 and x.sum(dim=(), keepdim=True).shape == (1, 1)
        assert (x > 2).any(dim=()).shape == (2, 3) and x.flip([]).shape == (2, 3)
    """,
    "linalg.diagonal takes the last axes": """
        x = torch.arange(24.0).reshape(2, 3, 4)
        assert torch.linalg.diagonal(x).tolist() == [[0, 5, 10], [12, 17, 22]]
        assert torch.linalg.diagonal(x, offset=1, dim1=0, dim2=2).shape == (3, 2)
    """,
    "fill_diagonal_": RAISES + """
        tall, cube = torch.zeros(7, 3), torch.zeros(2, 2, 2)
        assert tall.clone().fill_diagonal_(4).sum().item() == 12
        assert tall.fill_diagonal_(4, wrap=True).tolist() == [[4, 0, 0], [0, 4, 0], [0, 0, 4], [0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]]
        assert cube.fill_diagonal_(4).tolist() == [[[4, 0], [0, 0]], [[0, 0], [0, 4]]]
        raises(lambda: torch.zeros(2, 3, 2).fill_diagonal_(1), "axes of one length")
        raises(lambda: torch.zeros(2).fill_diagonal_(1), "must be a matrix")
    """,
    "from torch import *": """
        names = {}
        exec("from torch import *; from torch.nn import *; from torch.nn.functional import *", names)
        assert names["zeros"](2).sum().item() == 0 and names["Linear"] is nn.Linear and names["cross_entropy"] is nn.functional.cross_entropy
        assert names["float"] is torch.float32 and "nn" not in names and "Names" not in names
    """,
    "a tensor's device is a key": """
        assert {torch.ones(1).device: 1}[torch.device("cpu")] == 1 and {torch.device("cpu"): 2}[torch.ones(1).device] == 2
    """,
    "is_contiguous of a format": """
        x = torch.ones(2, 3, 4, 5)
        assert x.is_contiguous() and x.is_contiguous(memory_format=torch.contiguous_format)
        assert not x.is_contiguous(memory_format=torch.channels_last)
        assert x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).is_contiguous(memory_format=torch.channels_last)
    """,
    "arguments without an effect are refused": RAISES + """
        from torch.autograd.functional import jacobian, vjp
        x = torch.ones(2, 3, 4)
        raises(lambda: nn.functional.instance_norm(x, use_input_stats=False), "use_input_stats")
        raises(lambda: jacobian(lambda x: x * 2, x, strict=True), "strict")
        raises(lambda: vjp(lambda x: x.sum(), x, strict=True), "strict")
        raises(lambda: nn.MultiheadAttention(4, 2)(x, x, x, is_causal=True), "is_causal")
        net = nn.Sequential(nn.Linear(1, 1))
        raises(lambda: net.set_submodule("9", nn.ReLU(), strict=True), "'9'")
        net.set_submodule("0", nn.ReLU(), strict=True)
        assert isinstance(net[0], nn.ReLU)
    """,
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    return errors_of(tmp_path_factory.mktemp("values"), PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_the_value_is_pytorchs(errors, name):
    assert name not in errors, errors[name][2]
