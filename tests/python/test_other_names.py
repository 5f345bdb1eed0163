"""PyTorch's names of arguments: calls take them beside their own names."""

import pathlib
import sys

import pytest

import yoke
from op_table import OPS
from test_ops_by_name import TORCH
from yoke import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capi"))
from gen import other_names  # noqa: E402

X = yoke.arange(6).reshape(2, 3).float()
MASK = yoke.tensor([[True, False, True], [False, False, True]])
INDEX = yoke.tensor([[0, 1, 0]])
TABLE = other_names.parse((pathlib.Path(__file__).resolve().parents[2] / "core/ops/other_names.def").read_text(), "other_names.def")

SAME = [
    (lambda: X.sum(dim=1), lambda: X.sum(1)),
    (lambda: yoke.sum(input=X, dim=(0, 1), keepdims=True), lambda: yoke.sum(X, (0, 1), True)),
    (lambda: X.flip(dims=(0,)), lambda: X.flip((0,))),
    (lambda: X.permute(dims=(1, 0)), lambda: X.permute(1, 0)),
    (lambda: X.roll(1, dims=0), lambda: X.roll(1, 0)),
    (lambda: X.tile(dims=(2, 1)), lambda: X.tile(2, 1)),
    (lambda: X.tile(repeats=(2, 1)), lambda: X.tile(2, 1)),
    (lambda: yoke.add(input=X, other=1), lambda: X + 1),
    (lambda: X.pow(exponent=2), lambda: X * X),
    (lambda: X[0].outer(vec2=X[1]), lambda: X[0].outer(X[1])),
    (lambda: yoke.zeros(size=(2, 3)), lambda: yoke.zeros((2, 3))),
    (lambda: yoke.full(size=(2,), fill_value=3), lambda: yoke.full((2,), 3)),
    (lambda: yoke.arange(start=1, end=4), lambda: yoke.arange(1, 4)),
    (lambda: X.transpose(dim0=0, dim1=1), lambda: X.transpose(0, 1)),
    (lambda: X.var(dim=1, unbiased=False), lambda: X.var(1, correction=0)),
    (lambda: X.std(unbiased=True), lambda: X.std()),
    (lambda: X.split(split_size=2, dim=1)[1], lambda: X.split(2, 1)[1]),
    (lambda: X.split(size=2, axis=1)[1], lambda: X.split(2, 1)[1]),
    (lambda: yoke.cat([X, X], dim=1), lambda: yoke.cat([X, X], 1)),
    (lambda: X.gather(dim=0, index=INDEX), lambda: X.gather(0, INDEX)),
    (lambda: yoke.embedding(input=INDEX, weight=X), lambda: yoke.embedding(INDEX, X)),
    (lambda: yoke.scaled_dot_product_attention(X[:, :2], X[:, :2], X, attn_mask=MASK[:, :2]),
     lambda: yoke.scaled_dot_product_attention(X[:, :2], X[:, :2], X, MASK[:, :2])),
    (lambda: yoke.one_hot(tensor=INDEX), lambda: yoke.one_hot(INDEX)),
    (lambda: yoke.pad(X, pad=(1, 0)), lambda: yoke.pad(X, (1, 0))),
    (lambda: nn.Softmax(dim=0)(X), lambda: X.softmax(0)),
    (lambda: nn.Tanh()(input=X), lambda: X.tanh()),
    (lambda: yoke.tensor(X.size(dim=1)), lambda: yoke.tensor(3)),
]


@pytest.mark.parametrize("theirs, ours", SAME)
def test_a_name_of_pytorch_means_our_argument(theirs, ours):
    for _ in range(2):  # the second call knows the name
        assert theirs().tolist() == ours().tolist()


def test_a_name_that_is_not_interned_is_found():
    name = "".join(["d", "im"])
    assert X.sum(**{name: 1}).tolist() == X.sum(**{name[:1] + "im": 1}).tolist() == X.sum(1).tolist()


@pytest.mark.parametrize("call, first, second", [
    (lambda: X.sum(axis=0, dim=0), "axis", "dim"),
    (lambda: X.sum(dim=0, axis=0), "dim", "axis"),
    (lambda: X.sum(0, dim=0), "axis", "dim"),
    (lambda: X.sum(dim=0, dims=0), "dim", "dims"),
    (lambda: X.sum(input=X), "x", "input"),
    (lambda: X.var(correction=1, unbiased=True), "correction", "unbiased"),
    (lambda: yoke.Event(timing=True, enable_timing=True), "timing", "enable_timing"),
    (lambda: yoke.Event(True, enable_timing=True), "timing", "enable_timing"),
    (lambda: nn.Softmax(axis=1, dim=1), "axis", "dim"),
    (lambda: nn.Softmax(1, dim=1), "axis", "dim"),
    (lambda: nn.Softmax(dim=1, axis=1), "dim", "axis"),
])
def test_both_names_of_an_argument_are_refused(call, first, second):
    with pytest.raises(yoke.TypeError, match=f"arguments '{first}' and '{second}' are the same argument; give one of the two"):
        call()


def test_a_state_is_saved_and_loaded_under_pytorchs_names(tmp_path):
    path = tmp_path / "x.safetensors"
    yoke.save(obj={"x": X}, f=path)
    assert yoke.load(f=path, map_location="cpu")["x"].tolist() == X.tolist()


def test_a_flag_takes_a_bool():
    with pytest.raises(yoke.TypeError, match="argument 'unbiased' is a int; it takes a bool"):
        X.var(unbiased=1)


def test_a_call_without_the_argument_refuses_the_name():
    for call, name in ((lambda: X.relu(dim=0), "dim"), (lambda: X.add(exponent=2), "exponent"), (lambda: X.sum(unbiased=True), "unbiased"),
                       (lambda: X.relu(**{"\udc80": 1}), "")):
        with pytest.raises(yoke.TypeError, match=f"there is no argument '{name}"):
            call()


def test_a_class_of_the_script_keeps_its_own_names():
    class Net(nn.Module):
        def __init__(self, axis):
            self.axis = axis
    with pytest.raises(yoke.TypeError, match="there is no argument 'dim'; did you mean 'axis'"):
        Net(dim=1)


@pytest.mark.parametrize("name", sorted(name for name in OPS if name in TORCH))
def test_every_name_of_pytorchs_signature_is_known(name):
    """An argument of PyTorch whose place an argument of ours has is known by PyTorch's name too."""
    op = OPS[name]
    known = {other for names in other_names.of_call(TABLE, name, op.arg_names).values() for other, _ in names} | set(op.arg_names)
    for ours, theirs in zip(op.arg_names[:op.places], TORCH[name].split()):
        if (ours, theirs) in {("condition", "input"), ("equation", "input"), ("tensors", "operands")}:
            continue
        assert theirs in known, f"{name}: PyTorch calls '{ours}' '{theirs}'"
