"""Exchange of memory without a copy: NumPy, PyTorch (where it is installed) and the buffer protocol."""

import binascii
import ctypes
import gc

import numpy as np
import pytest

import yoke

NAMES = ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool"]
DLPACK_NAMES = [name for name in NAMES if name != "bool" or np.lib.NumpyVersion(np.__version__) >= "1.25.0"]


def sample(name):
    return (np.arange(12) % 2).reshape(3, 4).astype(name)


def capsule_name(capsule):
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get(capsule)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_sees_the_memory_of_a_tensor(name):
    x = yoke.tensor(sample(name), device="cpu")
    a = x.numpy()
    assert a.dtype.name == name and a.ctypes.data == x.data_ptr() and a.tolist() == x.tolist()
    a[0, 0] = 1
    assert x[0, 0].item() == 1


@pytest.mark.parametrize("view", [lambda x: x.transpose(0, 1), lambda x: x[::-1, ::2], lambda x: x[1], lambda x: x[:0],
                                  lambda x: x[2, 3], lambda x: x[:, None]], ids=range(6))
def test_views_keep_their_strides_in_numpy(view):
    x = view(yoke.tensor(sample("float32")))
    a = np.asarray(x)
    assert a.shape == x.shape and a.tolist() == x.tolist()
    assert x.numel == 0 or a.ctypes.data == x.data_ptr()


def test_an_array_outlives_its_tensor():
    x = yoke.tensor([1.0, 2.0, 3.0])
    a, m = x.numpy(), memoryview(x)
    x.close()
    del x
    gc.collect()
    assert a.tolist() == [1, 2, 3] and m.tolist() == [1, 2, 3]
    assert yoke.live_tensor_count() >= 1


def test_numpy_copies_only_when_asked():
    x = yoke.tensor([1.0, 2.0])
    assert np.asarray(x).ctypes.data == x.data_ptr()
    assert np.array(x).ctypes.data != x.data_ptr()
    assert np.asarray(x, dtype="float64").dtype == np.float64
    assert x.__array__(dtype="int32", copy=True).tolist() == [1, 2]
    assert (np.ones(2, dtype=np.float32) * x).storage_id() != x.storage_id()  # a tensor: test_numpy_operators.py


@pytest.mark.parametrize("make, error, hint", [
    (lambda: yoke.ones(2, dtype=yoke.bfloat16), yoke.UnsupportedError, "float32"),
    (lambda: yoke.ones(2, requires_grad=True), yoke.StateError, "detach"),
])
def test_what_numpy_cannot_hold_says_what_to_do(make, error, hint):
    x = make()
    with pytest.raises(error, match=hint):
        x.numpy()
    with pytest.raises(error, match=hint):
        np.asarray(x)
    with pytest.raises(BufferError, match=hint):
        memoryview(x)


def test_the_buffer_protocol_gives_format_shape_and_strides():
    m = memoryview(yoke.tensor([[1, 2, 3], [4, 5, 6]], dtype=yoke.int32).transpose(0, 1))
    assert (m.format, m.shape, m.strides, m.itemsize, m.readonly) == ("i", (3, 2), (4, 12), 4, False)
    assert bytes(yoke.tensor([1, 2], dtype=yoke.uint8)) == b"\x01\x02"
    with pytest.raises(BufferError, match="contiguous"):
        binascii.crc32(yoke.ones((2, 2)).transpose(0, 1))


@pytest.mark.parametrize("name", DLPACK_NAMES)
def test_numpy_arrays_come_in_without_a_copy(name):
    a = sample(name)
    x = yoke.from_dlpack(a)
    assert x.dtype.name == name and x.data_ptr() == a.ctypes.data and x.tolist() == a.tolist()
    x[0, 0] = 1
    assert a[0, 0] == 1


@pytest.mark.parametrize("name", DLPACK_NAMES)
def test_tensors_go_to_numpy_by_dlpack_without_a_copy(name):
    x = yoke.tensor(sample(name))
    a = np.from_dlpack(x)
    assert a.ctypes.data == x.data_ptr() and a.tolist() == x.tolist()


def test_memory_stays_until_both_sides_are_done():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::-1]
    x = yoke.from_dlpack(a)
    want = a.tolist()
    view = x[1]
    del a, x
    gc.collect()
    assert view.tolist() == want[1]
    b = np.from_dlpack(view)
    view.close()
    gc.collect()
    assert b.tolist() == want[1]


@pytest.mark.parametrize("options, name", [
    ({}, b"dltensor"), ({"max_version": (1, 0)}, b"dltensor_versioned"), ({"max_version": (0, 8)}, b"dltensor"),
    ({"copy": True, "max_version": (1, 1)}, b"dltensor_versioned"), ({"dl_device": (1, 0)}, b"dltensor"),
])
def test_capsules_are_of_the_version_asked_for_and_are_used_once(options, name):
    x = yoke.tensor([1.0, 2.0], device="cpu")
    capsule = x.__dlpack__(**options)
    assert capsule_name(capsule) == name
    y = yoke.from_dlpack(capsule)
    assert capsule_name(capsule) == b"used_" + name
    assert y.tolist() == [1, 2]
    assert (y.data_ptr() == x.data_ptr()) is not options.get("copy", False)
    with pytest.raises(yoke.StateError, match="consumed"):
        yoke.from_dlpack(capsule)


def test_a_capsule_that_nobody_takes_frees_its_memory():
    x = yoke.ones(4)
    count = yoke.live_tensor_count()
    for options in ({}, {"max_version": (1, 0)}):
        capsule = x.__dlpack__(**options)
        del capsule
    assert yoke.live_tensor_count() == count


def test_dlpack_refuses_what_cannot_be_shared():
    x = yoke.ones(2, device="cpu")
    with pytest.raises(yoke.StateError, match="detach"):
        x.clone().requires_grad_().__dlpack__()
    with pytest.raises(BufferError, match="cannot be exported"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(yoke.ValueError, match="stream"):
        x.__dlpack__(stream=7)
    with pytest.raises(yoke.TypeError):
        x.__dlpack__(None)
    with pytest.raises(yoke.TypeError, match="max_version"):
        x.__dlpack__(max_version=1)
    assert x.__dlpack_device__() == (1, 0)


def test_foreign_dtypes_and_read_only_arrays_are_refused():
    with pytest.raises(yoke.TypeError, match="complex"):
        yoke.from_dlpack(np.zeros(2, dtype=np.complex64))
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises((BufferError, yoke.UnsupportedError, TypeError)):
        yoke.from_dlpack(frozen)


def test_pytorch_shares_memory_both_ways():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8):
        t = torch.arange(6).reshape(2, 3).to(dtype).t()
        x = yoke.from_dlpack(t)
        assert x.data_ptr() == t.data_ptr() and x.tolist() == t.tolist() and x.shape == (3, 2)
        back = torch.from_dlpack(x)
        assert back.data_ptr() == t.data_ptr() and back.dtype is dtype
        back[0, 0] = 5
        assert x[0, 0].item() == 5
