"""PyTorch's words for what a tensor has or does under another name."""

import copy
import json
import pickle

import numpy as np
import pytest

import yoke
from yoke import nn


X = yoke.arange(6, device="cpu").reshape(2, 3).float()


# ---- data ------------------------------------------------------------------------------------------------------------


def test_data_shares_the_memory_without_a_record():
    w = yoke.ones(2, requires_grad=True)
    assert not w.data.requires_grad and yoke.shares_memory(w, w.data)
    w.data.mul_(3)
    assert w.tolist() == [3, 3] and (w * 2).data.is_leaf


def test_data_is_assigned_and_the_object_stays_the_same():
    w = nn.Parameter(yoke.ones(2))
    net = nn.Linear(2, 1)
    net.bias = w
    optimizer = yoke.optim.SGD(net.parameters(), lr=1.0)
    loss, new = (w * 2).sum(), yoke.full((2,), 5.0)
    w.data = new
    assert net.bias is w and w.requires_grad and w.is_leaf and yoke.shares_memory(w, new) and not new.requires_grad
    loss.backward()
    optimizer.step()
    assert w.tolist() == new.tolist() == [3, 3]


def test_data_of_another_dtype_takes_the_gradient_along():
    w = yoke.ones(2, requires_grad=True)
    w.sum().backward()
    stale = (w * w).sum()
    w.data = w.data.double()
    assert w.dtype == w.grad.dtype == yoke.float64 and w.grad.tolist() == [1, 1]
    with pytest.raises(yoke.StateError):
        stale.backward()


def test_data_of_another_device_takes_the_gradient_along():
    w = yoke.ones(2, requires_grad=True, device="cpu")
    w.sum().backward()
    w.data = yoke.zeros(2)
    assert w.device == w.grad.device == yoke.current_device() and w.grad.tolist() == [1, 1] and w.tolist() == [0, 0]
    (w * 3).sum().backward()
    assert w.grad.tolist() == [4, 4] and w.is_cuda == (yoke.current_device().kind == "cuda")


@pytest.mark.parametrize("data, kind, told", [
    (lambda: yoke.ones(3), yoke.ValueError, r"data: argument 'data' has shape \[3\], but the tensor has shape \[2\]"),
    (lambda: yoke.ones(2, dtype=yoke.int32), yoke.TypeError, "data: argument 'data' has dtype int32"),
    (lambda: 3, yoke.TypeError, "argument 'data' must be a tensor"),
])
def test_data_that_does_not_fit_is_refused_and_nothing_changes(data, kind, told):
    w = yoke.ones(2, requires_grad=True)
    with pytest.raises(kind, match=told):
        w.data = data()
    assert w.tolist() == [1, 1] and w.dtype == yoke.float32


def test_data_of_a_result_cannot_be_assigned_nor_deleted():
    with pytest.raises(yoke.StateError, match="was made by mul, and only a leaf can take other data"):
        (yoke.ones(2, requires_grad=True) * 2).data = yoke.ones(2)
    with pytest.raises(yoke.TypeError, match="cannot be deleted"):
        del yoke.ones(2).data
    plain = yoke.ones(2)
    plain.data = yoke.tensor([1, 2])
    assert plain.dtype == yoke.int64


# ---- Types and sizes -------------------------------------------------------------------------------------------------


def test_the_number_of_elements_is_an_int_and_can_be_called():
    assert X.numel == X.numel() == X.nelement() == yoke.numel(X) == 6 and isinstance(X.numel, int) and type(X.numel()) is int
    assert f"{X.numel}" == "6" and json.dumps(X.numel) == "6" and X.numel + 1 == 7 and [0] * X.numel == [0] * 6
    assert type(pickle.loads(pickle.dumps(X.numel))) is int and copy.copy(X.numel) == 6 and X.reshape(X.numel).shape == (6,)
    with pytest.raises(yoke.TypeError, match="takes no arguments"):
        X.numel(1)


def test_sizes_and_facts():
    assert (X.element_size(), X.stride(), X.stride(0), X.stride(dim=-1)) == (4, (3, 1), 3, 1)
    assert X.is_contiguous() and X.is_floating_point() and not X.long().is_floating_point() and not X.is_cuda
    assert yoke.device("cpu").type == "cpu" and yoke.is_tensor(X) and not yoke.is_tensor(3)
    with pytest.raises(yoke.IndexError, match="axis 2 is out of range"):
        X.stride(2)


def test_a_device_of_a_kind_and_an_index():
    if yoke.is_available("cuda"):
        assert yoke.device("cuda", 0) == yoke.device(type="cuda", index=0) == yoke.device("cuda:0")
    else:
        with pytest.raises(yoke.DeviceUnavailableError, match="cuda"):
            yoke.device("cuda", 0)
    assert yoke.device(type="cpu") == yoke.device("cpu")
    for spec, index in (("cuda:0", 1), ("cuda", -1)):
        with pytest.raises(yoke.ValueError, match=f"arguments 'spec' and 'index' are \"{spec}\" and {index}; give a kind"):
            yoke.device(spec, index)


def test_dtypes_have_pytorchs_names():
    assert (yoke.float, yoke.double, yoke.half, yoke.long, yoke.int) == (yoke.float32, yoke.float64, yoke.float16, yoke.int64, yoke.int32)
    names = {}
    exec("from yoke import *", names)
    assert names["tensor"] is yoke.tensor and "float" not in names and "int" not in names


def test_types():
    assert X.type() == "yoke.FloatTensor" and yoke.ones(1, dtype=yoke.float8_e5m2, device="cpu").type() == "yoke.float8_e5m2"
    assert X.type("torch.LongTensor").dtype is X.type(yoke.LongTensor).dtype is X.type(yoke.int64).dtype is X.type("int64").dtype is yoke.int64
    assert (X.byte().dtype, X.char().dtype) == (yoke.uint8, yoke.int8)
    assert X.type_as(yoke.ones(1, dtype=yoke.float16)).dtype is X.to(yoke.ones(1, dtype=yoke.float16)).dtype is yoke.float16
    assert X.to(other=yoke.tensor([1])).dtype is yoke.int64 and X.to(yoke.tensor([1]), yoke.float64).dtype is yoke.float64
    with pytest.raises(yoke.UnsupportedError, match="no dtype int16; write x.int"):
        X.short()
    with pytest.raises(yoke.ValueError, match="'torch.QTensor'; it takes a dtype"):
        X.type("torch.QTensor")


def test_constructors_of_types():
    assert yoke.Tensor(2, 3).shape == (2, 3) and yoke.Tensor(2, 3).dtype is yoke.float32 and yoke.Tensor().shape == (0,)
    assert yoke.Tensor([1, 2]).tolist() == [1, 2] and yoke.Tensor([1, 2]).dtype is yoke.float32
    assert yoke.LongTensor([1, 2]).dtype is yoke.int64 and yoke.ByteTensor(2).dtype is yoke.uint8 and yoke.FloatTensor(np.ones(2)).dtype is yoke.float32
    assert isinstance(yoke.LongTensor([1]), yoke.LongTensor) and not isinstance(yoke.ones(1), yoke.LongTensor) and isinstance(yoke.ones(1), yoke.Tensor)
    with pytest.raises(yoke.TypeError, match=r"LongTensor\(\): a size is a str"):
        yoke.LongTensor(2, "3")
    with pytest.raises(yoke.TypeError, match="there is no argument 'dtype'"):
        yoke.Tensor([1], dtype=yoke.int64)
    with pytest.raises(yoke.TypeError, match="Parameter"):
        nn.Parameter([1.0])


def test_arrays_share_their_memory():
    array = np.arange(4.0).reshape(2, 2)
    x = yoke.from_numpy(array)
    array[0, 0] = 7
    assert x.tolist() == [[7, 1], [2, 3]] and yoke.as_tensor(array, device="cpu").data_ptr() == x.data_ptr()
    assert yoke.from_numpy(np.array([True, False])).tolist() == [True, False] and yoke.from_numpy(array.T).tolist() == array.T.tolist()
    assert yoke.as_tensor(array, dtype=yoke.float32).dtype is yoke.float32 and yoke.as_tensor(x) is x
    assert yoke.as_tensor([1, 2]).tolist() == [1, 2] and yoke.as_tensor(array[::-1], device="cpu").tolist() == array[::-1].tolist()
    with pytest.raises(yoke.TypeError, match="it takes a NumPy array: write yoke.tensor"):
        yoke.from_numpy([1])
    with pytest.raises(yoke.TypeError, match="dtype complex128"):
        yoke.from_numpy(np.ones(2, complex))
    array.flags.writeable = False
    with pytest.raises(yoke.ValueError, match="cannot be written"):
        yoke.from_numpy(array)


# ---- Shapes, new tensors, calls --------------------------------------------------------------------------------------


def test_shapes_of_another():
    assert X.t().tolist() == X.T.tolist() and yoke.shares_memory(X.t(), X) and yoke.ones(2).t().shape == (2,)
    assert X.expand_as(yoke.ones(4, 2, 3)).shape == (4, 2, 3) and X.view_as(yoke.ones(6)).shape == X.reshape_as(yoke.ones(6)).shape == (6,)
    assert X.repeat(2, 1).tolist() == X.repeat((2, 1)).tolist() == X.tile((2, 1)).tolist()
    with pytest.raises(yoke.ValueError, match="3 axes; it must have at most two"):
        yoke.ones(1, 1, 1).t()
    with pytest.raises(yoke.TypeError, match="argument 'other' must be a tensor"):
        X.view_as((2, 3))


def test_new_tensors_are_like_the_old():
    half = X.half()
    for new in (half.new_zeros(2, 3), half.new_ones((2, 3)), half.new_empty(size=(2, 3)), half.new_full((2, 3), 4), half.new_tensor([[1, 2, 3]] * 2)):
        assert new.dtype is yoke.float16 and new.shape == (2, 3) and new.device == half.device
    assert half.new_zeros(2, dtype=yoke.int32).dtype is yoke.int32 and half.new_ones(2, requires_grad=True).requires_grad
    assert half.new_full((2,), fill_value=4).tolist() == [4, 4]
    with pytest.raises(yoke.TypeError, match="argument 'shape' is missing"):
        half.new_zeros()


def test_values_and_indices_are_named():
    for pair in (X.sort(1, descending=True), X.topk(2)):
        values, indices = pair
        assert pair.values is values is pair[0] and pair.indices is indices and isinstance(pair, tuple) and len(pair) == 2
    assert pickle.loads(pickle.dumps(X.topk(1))).values.tolist() == [[2], [5]] and "indices=" in repr(X.topk(1))


def test_places_of_what_is_true():
    rows, columns = yoke.where(X > 3)
    assert (rows.tolist(), columns.tolist()) == ([1, 1], [1, 2])
    assert [each.tolist() for each in X.nonzero(as_tuple=True)] == [each.tolist() for each in np.nonzero(X.numpy())]
    assert X.nonzero(as_tuple=False).tolist() == X.nonzero().tolist() and yoke.nonzero(yoke.tensor(5.0), as_tuple=True)[0].tolist() == [0]
    assert [each.tolist() for each in yoke.nonzero(yoke.zeros(0, 2), as_tuple=True)] == [[], []]
    with pytest.raises(yoke.TypeError, match="argument 'as_tuple'"):
        X.nonzero(as_tuple="yes")
    with pytest.raises(yoke.TypeError, match="where"):
        yoke.where()


def test_bounds_of_random_integers():
    for drawn in (yoke.randint(3, (50,)), yoke.randint(3, size=(50,)), yoke.randint(high=3, size=(50,)), yoke.randint_like(yoke.ones(50), 3)):
        assert drawn.shape == (50,) and set(drawn.long().tolist()) <= {0, 1, 2}
    for drawn in (yoke.randint(5, 7, (50,)), yoke.randint(5, 7, 50), yoke.randint(low=5, high=7, size=(50,)), yoke.randint_like(yoke.ones(50), 5, 7)):
        assert drawn.shape == (50,) and set(drawn.long().tolist()) <= {5, 6}
    with pytest.raises(yoke.TypeError, match="is missing"):
        yoke.randint(3)


def test_tensors_of_einsum_one_by_one():
    assert yoke.einsum("ij,kj->ik", X, X).tolist() == yoke.einsum("ij,kj->ik", [X, X]).tolist()
    assert yoke.einsum("ij->j", X).tolist() == [3, 5, 7]
    with pytest.raises(yoke.TypeError, match="a int at position 1"):
        yoke.einsum("ij,kj->ik", X, 3)


# ---- Files -----------------------------------------------------------------------------------------------------------


def test_path_and_state_stand_in_either_order(tmp_path):
    for path in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        yoke.save({"x": X}, path)
        assert yoke.load(path, map_location="cpu", weights_only=True)["x"].tolist() == X.tolist()
    yoke.save(nn.Linear(2, 2), tmp_path / "net.pt")
    yoke.save(str(tmp_path / "text.pt"), "a state")  # of two strings the first is the path
    assert yoke.load(tmp_path / "text.pt", weights_only=False) == "a state" and "weight" in yoke.load(tmp_path / "net.pt")


@pytest.mark.parametrize("options, told", [
    ({"device": "cpu", "map_location": "cpu"}, "arguments 'device' and 'map_location' are the same argument"),
    ({"map_location": lambda storage, place: storage}, "'map_location' is a function; give the one device"),
    ({"map_location": {"cuda:0": "cpu"}}, "'map_location' is a dict; give the one device"),
    ({"weights_only": 1}, "'weights_only' is a int; it takes a bool"),
])
def test_what_load_cannot_read_is_refused(options, told):
    with pytest.raises(yoke.TypeError, match=told):
        yoke.load("nowhere", **options)
