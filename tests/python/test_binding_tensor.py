"""Tensors from Python data, tensor attributes, and tensors read back."""

import array
import pickle
import weakref

import numpy as np
import pytest

import yoke

DTYPES = [yoke.float64, yoke.float32, yoke.float16, yoke.bfloat16, yoke.int64, yoke.int32, yoke.int8, yoke.uint8,
          yoke.bool]


@pytest.mark.parametrize("data, dtype, values", [
    (1.5, yoke.float32, 1.5),
    (3, yoke.int64, 3),
    (True, yoke.bool, True),
    ([1, 2], yoke.int64, [1, 2]),
    ([1, 2.5], yoke.float32, [1.0, 2.5]),
    ([True, 2], yoke.int64, [1, 2]),
    (((1, 2), (3, 4)), yoke.int64, [[1, 2], [3, 4]]),
    (range(3), yoke.int64, [0, 1, 2]),
    ([], yoke.float32, []),
    ([[], []], yoke.float32, [[], []]),
    (b"\x01\xff", yoke.uint8, [1, 255]),
    (array.array("d", [1.5, -2]), yoke.float64, [1.5, -2.0]),
    (np.float32(2.5), yoke.float32, 2.5),
    (np.int8(3), yoke.int64, 3),
    (np.bool_(True), yoke.bool, True),
    ([np.float64(0.5), 1], yoke.float32, [0.5, 1.0]),
])
def test_tensor_follows_the_kind_of_its_data(data, dtype, values):
    x = yoke.tensor(data, device="cpu")
    assert x.dtype is dtype
    assert x.tolist() == values


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_goes_from_lists_to_lists(dtype):
    x = yoke.tensor([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    assert x.dtype is dtype and x.shape == (2, 3)
    assert x.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert type(x[0, 0].item()) is (bool if dtype is yoke.bool else float if dtype.is_floating_point else int)


def test_halves_are_rounded_once_and_read_exactly():
    for value in (1 / 3, 65504.0, 6e-8, -0.0, 1e-7, 2049.0, float("inf")):
        half = yoke.tensor(value, dtype="float16").item()
        assert half == float(np.float16(value)) and np.signbit(half) == np.signbit(value)
    assert yoke.tensor(1 / 3, dtype="bfloat16").item() == 0.333984375
    assert np.isnan(yoke.tensor(float("nan"), dtype="float16").item())


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool"])
def test_numpy_arrays_of_any_layout_are_copied_with_their_dtype(name):
    base = (np.arange(24) % 2).reshape(4, 6).astype(name)
    for a in (base, base.T, base[::-1, ::2], base[:0], np.asfortranarray(base), base[1, 2]):
        a = np.asarray(a)
        x = yoke.tensor(a)
        assert x.dtype.name == name and x.shape == a.shape
        assert x.tolist() == a.tolist()
    x = yoke.tensor(base)
    base[:] = 0
    assert x.sum(dtype=yoke.int64).item() == 12 if name != "bool" else x.tolist()[0][1] is True


def test_tensor_of_a_tensor_is_a_copy_without_history():
    x = yoke.tensor([1.0, 2.0], requires_grad=True)
    y = yoke.tensor(x * 2)
    assert not y.requires_grad and y.is_leaf and not yoke.shares_memory(x, y)
    assert not yoke.shares_memory(x, yoke.tensor(x))
    assert yoke.tensor(x, dtype=yoke.int32).tolist() == [1, 2]


def test_attributes_describe_the_tensor():
    x = yoke.zeros((2, 3, 4), dtype=yoke.float32, device="cpu").transpose(0, 2)
    assert x.shape == (4, 3, 2) and x.strides == (1, 4, 12)
    assert (x.ndim, x.numel, x.nbytes, x.itemsize) == (3, 24, 96, 4)
    assert x.dtype is yoke.float32 and x.device is yoke.device("cpu")
    assert not x.is_contiguous() and x.contiguous().is_contiguous()
    assert x.is_leaf and not x.requires_grad and x.grad is None
    assert x.storage_nbytes() >= 96 and x.storage_id() == x[1:].storage_id() != yoke.zeros(3).storage_id()
    assert x[1].data_ptr() == x.data_ptr() + 4


def test_what_changes_nothing_returns_the_same_object():
    x = yoke.zeros((2, 2))
    assert x.contiguous() is x and x.to(x.device) is x and x.to(dtype=yoke.float32) is x
    assert x.cpu() is x or x.device.kind != "cpu"
    assert x.add_(1) is x and x.fill_(3) is x and x.copy_(yoke.ones(2)) is x
    assert +x is x


def test_to_takes_a_device_a_dtype_or_both():
    x = yoke.tensor([1.5, -2.5])
    assert x.to(yoke.int32).tolist() == [1, -2]
    assert x.to("cpu", yoke.float64).dtype is yoke.float64
    assert x.to(device=0, dtype="float16", non_blocking=True).dtype is yoke.float16


def test_conversions_to_python_numbers():
    assert float(yoke.tensor([2.5])) == 2.5 and int(yoke.tensor(7)) == 7 and int(yoke.tensor(-1.9)) == -1
    assert bool(yoke.tensor(0.0)) is False and bool(yoke.tensor([[3]])) is True
    assert list(range(5))[yoke.tensor(2)] == 2
    assert yoke.tensor(2**62 + 1).item() == 2**62 + 1


def test_tensors_are_keys_by_identity_and_take_weak_references():
    x, y = yoke.ones(1), yoke.ones(1)
    assert hash(x) == hash(x) != hash(y) and {x: 1, y: 2}[y] == 2  # == compares elements
    gone = []
    reference = weakref.ref(x, gone.append)
    assert reference() is x
    del x
    assert reference() is None and gone


def test_freed_objects_are_used_again_without_mixing_up():
    for _ in range(3):
        many = [yoke.tensor(i) for i in range(600)]
        assert [x.item() for x in many] == list(range(600))


def test_a_subclass_takes_a_tensor_over():
    class Named(yoke.Tensor):
        pass

    x = yoke.ones(2)
    named = Named(x)
    named.name = "weights"
    assert isinstance(named, yoke.Tensor) and yoke.shares_memory(named, x)
    assert type(named + 1) is yoke.Tensor and (named + 1).tolist() == [2, 2]
    x.close()
    assert named.tolist() == [1, 1]


def test_repr_shows_values_dtype_and_device():
    assert repr(yoke.tensor([1.0, 2.5], device="cpu")) == "Tensor([1.0, 2.5], dtype=float32, device='cpu')"
    assert repr(yoke.tensor([[1, 20], [3, 4]])) == \
        "Tensor([[ 1, 20],\n        [ 3,  4]], dtype=int64, device='cpu')"
    assert repr(yoke.tensor(True)) == "Tensor(True, dtype=bool, device='cpu')"
    assert repr(yoke.zeros((0, 3))) == "Tensor([], shape=(0, 3), dtype=float32, device='cpu')"
    assert "requires_grad=True" in repr(yoke.tensor(1.0, requires_grad=True))
    assert "nan" in repr(yoke.tensor([float("nan"), 1e30]))
    assert repr(yoke.tensor([1.0, 2.0])) == "Tensor([1., 2.], dtype=float32, device='cpu')"


def test_repr_summarises_long_tensors_by_their_edges():
    text = repr(yoke.arange(10_000).reshape((100, 100)))
    assert "..." in text and "9999" in text and "5050" not in text and "shape=(100, 100)" in text
    assert len(text) < 1000
    assert "..." not in repr(yoke.zeros(1000))


def test_repr_of_a_closed_tensor_works():
    x = yoke.ones(2)
    x.close()
    assert repr(x) == "Tensor(closed)" and x.closed


def test_dtypes_are_single_objects_with_the_numbers_of_c():
    assert [d.number for d in DTYPES] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [d.itemsize for d in DTYPES] == [8, 4, 2, 2, 8, 4, 1, 1, 1]
    assert yoke.dtype("float32") is yoke.float32 and yoke.dtype("bf16") is yoke.bfloat16
    assert repr(yoke.int8) == "yoke.int8" and yoke.int8.name == "int8"
    for d in DTYPES:
        assert pickle.loads(pickle.dumps(d)) is d


def test_creation_functions_take_requires_grad():
    assert yoke.zeros((2,), requires_grad=True).requires_grad
    assert not yoke.zeros((2,), requires_grad=False).requires_grad
    with pytest.raises(yoke.TypeError):
        yoke.zeros((2,), dtype=yoke.int64, requires_grad=True)


def test_ops_carry_docstrings_and_signatures():
    import inspect

    assert "Softmax along one axis" in yoke.softmax.__doc__
    assert list(inspect.signature(yoke.softmax).parameters) == ["x", "axis", "dtype"]
    assert yoke.softmax.__module__ == "yoke"
    assert list(inspect.signature(yoke.ones(1).softmax).parameters) == ["axis", "dtype"]
    assert "requires_grad" in inspect.signature(yoke.zeros).parameters
    for name in dir(yoke):
        value = getattr(yoke, name)
        assert name[0] == "_" or isinstance(value, yoke.dtype) or value.__doc__, name
