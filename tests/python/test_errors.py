"""Bad input from Python: every misuse is a clear error, the host program lives on and no memory is lost."""

import builtins
import subprocess
import sys

import pytest

import yoke


@pytest.mark.parametrize("name, code, also", [
    ("ValueError", 1, builtins.ValueError), ("TypeError", 2, builtins.TypeError), ("IndexError", 3, builtins.IndexError),
    ("ClosedError", 4, Exception), ("StateError", 5, RuntimeError), ("UnsupportedError", 6, Exception),
    ("OutOfMemoryError", 7, MemoryError), ("DeviceUnavailableError", 8, Exception), ("DeviceLostError", 9, Exception),
    ("TimeoutError", 10, builtins.TimeoutError), ("CancelledError", 11, Exception), ("CollectiveError", 12, Exception),
    ("CheckpointError", 13, Exception), ("IOError", 14, OSError), ("ForkedError", 15, Exception),
    ("InternalError", 16, Exception),
])
def test_each_status_has_its_class(name, code, also):
    cls = getattr(yoke, name)
    assert issubclass(cls, yoke.Error) and issubclass(cls, also) and cls.code == code
    error = cls("text")
    assert str(error) == "text" and (error.native_code, error.device, error.call) == (0, "", "")


def raised(kind, *words, call=None):
    """Expects an error with all these words."""
    class Expect:
        def __enter__(self):
            self.raises = pytest.raises(kind)
            self.info = self.raises.__enter__()
            return self.info

        def __exit__(self, *exception):
            swallowed = self.raises.__exit__(*exception)
            text = str(self.info.value)
            assert type(self.info.value) is kind
            for word in words:
                assert word in text, text
            assert self.info.value.code == kind.code
            if call:
                assert self.info.value.call.startswith(call), self.info.value.call
            return swallowed

    return Expect()


def test_a_wrong_shape_names_both():
    with raised(yoke.ValueError, "add", "[2]", "[3]"):
        yoke.ones(2) + yoke.ones(3)
    with raised(yoke.ValueError, "matmul", "3", "4"):
        yoke.ones((2, 3)) @ yoke.ones((4, 5))
    with raised(yoke.ValueError, "reshape", "7", "6"):
        yoke.ones((2, 3)).reshape(7)


def test_a_wrong_dtype_is_a_type_error():
    with raised(yoke.TypeError, "mean", "int64"):
        yoke.ones(2, dtype=yoke.int64).mean()
    with raised(yoke.TypeError, "int64"):
        yoke.ones(2, dtype=yoke.int64).requires_grad_()
    with raised(yoke.ValueError, "float99"):
        yoke.ones(2, dtype="float99")
    with raised(yoke.TypeError, "zeros", "dtype", "int"):
        yoke.zeros((2,), 3)


def test_a_wrong_axis_is_an_index_error():
    with raised(yoke.IndexError, "softmax", "axis", "2"):
        yoke.softmax(yoke.ones((2, 2)), axis=2)
    with raised(yoke.IndexError, "sum", "-3"):
        yoke.ones((2, 2)).sum(axis=(0, -3))


def test_negative_and_too_large_sizes_are_refused():
    with raised(yoke.ValueError, "zeros", "-1"):
        yoke.zeros((2, -1))
    with raised(yoke.ValueError, "zeros"):
        yoke.zeros((2**40, 2**40))
    with raised(yoke.ValueError, "shape", "64-bit"):
        yoke.zeros(2**70)


def test_running_out_of_memory_is_a_memory_error():
    with raised(yoke.OutOfMemoryError):
        yoke.zeros((2**45,), dtype=yoke.float64)
    assert yoke.ones(2).tolist() == [1, 1]


@pytest.mark.parametrize("spec", ["tpu", "cuda:x", "cpu:-1", "", "auto:min_free=8", "cpu\0"])
def test_an_unknown_device_spec_is_refused_by_name(spec):
    with pytest.raises(yoke.ValueError):
        yoke.device(spec)
    with pytest.raises(yoke.ValueError):
        yoke.zeros(1, device=spec)


def test_a_device_that_is_not_there_says_why():
    with raised(yoke.ValueError, "cpu:99", "use 'cpu'"):
        yoke.device("cpu:99")
    with raised(yoke.TypeError, "device", "float"):
        yoke.zeros(1, device=1.5)
    if not yoke.is_available("cuda"):
        assert yoke.why_unavailable("cuda")
        with pytest.raises(yoke.DeviceUnavailableError) as info:
            yoke.device("cuda")
        assert info.value.code == 8


@pytest.mark.parametrize("use, kind", [
    (lambda: yoke.nonsense, AttributeError), (lambda: yoke.ones(2).nonsense, AttributeError),
    (lambda: yoke.ones(2) + "a", TypeError), (lambda: yoke.ones(2) < "a", TypeError), (lambda: yoke.ones(2)(), TypeError),
    (lambda: memoryview(yoke.ones(2, dtype="bfloat16")), BufferError), (lambda: yoke.ones(2).__dlpack__(dl_device=(2, 0)), BufferError),
    (lambda: yoke.optim.SGD([yoke.ones(1, requires_grad=True)], lr=1).step(1), TypeError),
    (lambda: yoke.optim.SGD([yoke.ones(1, requires_grad=True)], lr=1).zero_grad(nonsense=1), TypeError),
])
def test_what_python_itself_refuses_is_not_an_error_of_the_library(use, kind):
    """The guide lists these."""
    if yoke.current_device().kind != "cpu" and kind is BufferError:
        pytest.skip("the tensor would be on a GPU")
    with pytest.raises(kind) as told:
        use()
    assert not isinstance(told.value, yoke.Error)


OPS_ON_CLOSED = {
    "add": lambda x: yoke.add(x, x), "operator": lambda x: 1 + x, "relu": lambda x: x.relu(), "shape": lambda x: x.shape,
    "cat": lambda x: yoke.cat([x]), "item": lambda x: x.item(), "getitem": lambda x: x[0], "backward": lambda x: x.backward(),
    "numpy": lambda x: x.numpy(), "tolist": lambda x: x.tolist(), "len": len, "to": lambda x: x.to("cpu"),
    "dlpack": lambda x: x.__dlpack__(), "memoryview": memoryview, "grad": lambda x: x.grad, "copy": lambda x: yoke.ones(2).copy_(x),
    "tensor": yoke.tensor, "shares_memory": lambda x: yoke.shares_memory(x, x), "iter": iter, "fill": lambda x: x.fill_(1),
    "optimizer": lambda x: yoke.optim.SGD([x], lr=1), "requires_grad_": lambda x: x.requires_grad_(),
    "assign": lambda x: x.__setitem__(0, 1), "yoke.grad": lambda x: yoke.grad(x, x),
}


@pytest.mark.parametrize("use", OPS_ON_CLOSED.values(), ids=OPS_ON_CLOSED)
def test_any_use_of_a_closed_tensor_is_a_closed_error(use):
    x = yoke.ones(2)
    x.close()
    x.close()  # closing twice is fine
    with pytest.raises(yoke.ClosedError) as info:
        use(x)
    assert "closed" in str(info.value) and info.value.call and info.value.code == 4


def test_closing_leaves_views_alive():
    x = yoke.tensor([1.0, 2.0])
    view = x[1:]
    x.close()
    assert view.tolist() == [2.0]


def test_wrong_python_types_name_call_and_argument():
    x = yoke.ones((2, 2))
    for call, words in [
        (lambda: yoke.add(x, "a"), ("add()", "'y'", "str")),
        (lambda: yoke.relu([1]), ("relu()", "'x'", "list")),
        (lambda: yoke.softmax(x, axis="last"), ("softmax()", "'axis'", "str")),
        (lambda: yoke.softmax(x, axis=None), ("softmax()", "'axis'", "NoneType")),
        (lambda: yoke.softmax(x, 1.0), ("softmax()", "'axis'", "float")),
        (lambda: yoke.sum(x, keepdim="yes"), ("sum()", "'keepdim'", "str")),
        (lambda: yoke.reshape(x, "22"), ("reshape()", "'shape'", "str")),
        (lambda: yoke.reshape(x, (2, 2.0)), ("reshape()", "'shape'", "float", "position 1")),
        (lambda: yoke.cat(x), ("cat()", "'tensors'", "Tensor")),
        (lambda: yoke.cat([x, 1]), ("cat()", "'tensors'", "int", "position 1")),
        (lambda: yoke.gelu(x, approximate=1), ("gelu()", "'approximate'", "int")),
        (lambda: x.fill_("a"), ("fill_()", "'value'", "str")),
        (lambda: yoke.dropout(x, p="a"), ("dropout()", "'p'", "str")),
        (lambda: yoke.cast(x, 5), ("cast()", "'dtype'", "int")),
        (lambda: yoke.cast(x, None), ("cast()", "'dtype'")),
        (lambda: yoke.cast(x), ("cast()", "'dtype'", "missing")),
        (lambda: yoke.add(x), ("add()", "'y'", "missing")),
        (lambda: yoke.add(), ("add()", "'x'", "missing")),
        (lambda: yoke.add(x, x, x), ("add()", "2", "3")),
        (lambda: x.transpose(2, 2, 2), ("transpose()", "transpose(x, axis0, axis1)")),
        (lambda: yoke.add(x, x, z=1), ("add()", "'z'")),
        (lambda: yoke.add(x, x=x), ("add()", "'x'", "twice")),
        (lambda: x.add(x, y=x), ("add()", "'y'", "twice")),
        (lambda: x.backward(1), ("backward()", "'gradient'", "int")),
        (lambda: x.backward(other=1), ("backward()", "'other'")),
        (lambda: x.to(1.5), ("to()", "'device'", "float")),
        (lambda: yoke.tensor(), ("tensor()", "'data'", "missing")),
        (lambda: yoke.tensor("text"), ("tensor()", "data", "text")),
        (lambda: yoke.tensor([1, None]), ("tensor()", "data[1]", "None")),
        (lambda: yoke.tensor({1: 2}), ("tensor()", "data")),
        (lambda: yoke.Tensor("3"), ("Tensor()", "size", "str")),
        (lambda: yoke.set_num_threads("2"), ("set_num_threads()", "'n'", "str")),
        (lambda: yoke.from_dlpack(3), ("from_dlpack()", "int")),
    ]:
        with pytest.raises(yoke.TypeError) as info:
            call()
        for word in words:
            assert word in str(info.value), str(info.value)


def test_ragged_lists_name_the_place():
    with raised(yoke.ValueError, "data[1]", "3", "2"):
        yoke.tensor([[1, 2], [3, 4, 5]])
    with raised(yoke.ValueError, "data[1]", "ragged"):
        yoke.tensor([[1], 2])
    with raised(yoke.ValueError, "data[0][1]", "ragged"):
        yoke.tensor([[1, [2]]])
    deep = 1
    for _ in range(17):
        deep = [deep]
    with raised(yoke.ValueError, "16"):
        yoke.tensor(deep)
    endless = []
    endless.append(endless)
    with raised(yoke.ValueError, "16"):
        yoke.tensor(endless)


def test_numbers_that_a_dtype_cannot_hold_name_the_place():
    with raised(yoke.ValueError, "data[1]", "300"):
        yoke.tensor([1, 300], dtype=yoke.uint8)
    with raised(yoke.ValueError, "data", "-1"):
        yoke.tensor(-1, dtype=yoke.uint8)
    with raised(yoke.ValueError, "64-bit"):
        yoke.tensor(2**63)
    with raised(yoke.ValueError, "nan"):
        yoke.tensor(float("nan"), dtype=yoke.int32)


def test_arrays_of_foreign_dtypes_are_refused_with_a_hint():
    numpy = pytest.importorskip("numpy")
    for dtype, hint in (("uint16", "astype"), (">f4", "astype"), ("complex64", ".real")):
        with raised(yoke.UnsupportedError, hint):
            yoke.tensor(numpy.zeros(2, dtype=dtype))


def test_backward_twice_and_backward_of_many_elements_are_refused():
    x = yoke.ones(3, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    with raised(yoke.StateError, "retain_graph"):
        loss.backward()
    with raised(yoke.ValueError, "gradient"):
        (x * 2).backward()
    with raised(yoke.ValueError, "[2]", "[3]"):
        (x * 2).backward(yoke.ones(2))
    with pytest.raises(yoke.StateError):
        yoke.ones(1).backward()


def test_changing_a_leaf_in_place_is_refused():
    x = yoke.ones(3, requires_grad=True)
    for change in (lambda: x.add_(1), lambda: x.fill_(0), lambda: x.copy_(yoke.ones(3))):
        with raised(yoke.StateError, "leaf"):
            change()
    with raised(yoke.StateError, "fill_", "view of a leaf"):
        x[0] = 1
    with yoke.no_grad():
        x += 1
    assert x.tolist() == [2, 2, 2]


def test_changing_a_saved_tensor_names_the_op():
    x = yoke.ones(3, requires_grad=True)
    y = yoke.exp(x)
    loss = y.sum()
    y.detach().add_(1)
    with raised(yoke.StateError, "exp"):
        loss.backward()


def test_a_number_whose_code_raises_passes_its_error_on():
    class Broken:
        def __index__(self):
            raise KeyError("mine")

    x = yoke.ones(2)
    for call in (lambda: yoke.softmax(x, Broken()), lambda: yoke.zeros(Broken()), lambda: yoke.zeros([Broken()])):
        with pytest.raises(KeyError, match="mine"):
            call()


def test_a_tensor_closed_while_its_call_is_prepared_stays_valid():
    x = yoke.tensor([1.0, 2.0])

    class Closer:
        def __index__(self):
            x.close()
            return -1

    assert sum(yoke.softmax(x, Closer()).tolist()) == pytest.approx(1)
    assert x.closed


def test_errors_carry_their_call():
    with pytest.raises(yoke.Error) as info:
        yoke.ones(2).backward()
    assert info.value.call == "backward"
    with pytest.raises(yoke.Error) as info:
        yoke.softmax(yoke.ones(2), 3)
    assert info.value.call == "softmax"


def test_many_failures_leak_nothing():
    x = yoke.ones(2, requires_grad=True)
    for _ in range(200):
        with pytest.raises(yoke.Error):
            x + yoke.ones(3)
        with pytest.raises(yoke.Error):
            yoke.tensor([[1.0], [2.0, 3.0]])
        with pytest.raises(yoke.Error):
            yoke.cat([x, yoke.ones((2, 2))])
        with pytest.raises(yoke.Error):
            yoke.zeros(2, dtype=yoke.int64, requires_grad=True)


def test_an_interrupt_within_what_the_library_says_is_heard():
    """No call of the script can raise the interrupt, because the log line comes between two steps of the script."""
    program = """
import ctypes, os, warnings, yoke
yoke.zeros(1)
os.environ["YOKE_DEVICE"] = "cuda:7"
library, device = ctypes.CDLL("libyoke.so.0"), ctypes.c_void_p()
def interrupted(*_, **__):
    raise KeyboardInterrupt
warnings.showwarning = interrupted
warnings.simplefilter("always")
try:
    library.yoke_device_open(b"cpu", ctypes.byref(device))
    for _ in range(1000): pass
except KeyboardInterrupt:
    print("heard")
library.yoke_device_release(device)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "heard\n"), done.stderr
