"""Calls that are bound in C++ refuse arguments as the Python calls do (test_bindings.py): by a TypeError of the library, with call and argument."""

import re
import types

import pytest

import yoke
from yoke import _yoke

KINDS = (types.BuiltinFunctionType, types.MethodDescriptorType)
PLAIN = (types.FunctionType, types.MethodType)


def public_calls():
    """Returns {path: function} of the public functions, and of the public methods of classes, without the Python code of the package."""
    found = {}
    for name in dir(yoke):
        value = getattr(yoke, name)
        if isinstance(value, KINDS):
            found[name] = value
        elif isinstance(value, type) and value.__module__ in ("yoke", "yoke._yoke") and not issubclass(value, (BaseException, tuple)):
            found[name] = value
            for method in dir(value):
                call = getattr(value, method, None)  # PyTorch's other names raise what to write
                if method[0] != "_" and callable(call) and not isinstance(call, PLAIN):
                    found[f"{name}.{method}"] = call
    return found


CALLS = public_calls()
SELVES = {"Device": lambda: yoke.device("cpu"), "Stream": yoke.Stream, "Event": yoke.Event, "Tensor": lambda: yoke.ones(2)}
OPS = {"new_tensor": "tensor"}  # words for these calls
CLASSES = {"Device", "Work", "Tensor", "dtype"}  # their errors say what to call instead


def refusal(path, *args, **keywords):
    """Returns the text of the refusal of a call; a method gets an object."""
    kind = path.partition(".")[0]
    own = [SELVES[kind]()] if "." in path else []
    with pytest.raises(yoke.TypeError) as told:
        CALLS[path](*own, *args, **keywords)
    text = str(told.value)
    assert isinstance(told.value, TypeError) and told.value.__context__ is None
    called = path.rpartition(".")[2]
    assert text.startswith(f"{OPS.get(called, called)}(): ") and "arg0" not in text and "incompatible" not in text, text
    return text


def walked():
    return [path for path in CALLS if path.partition(".")[0] != "Work" and path not in CLASSES]


def test_the_walk_finds_the_calls():
    assert {"set_device", "Stream", "Device.supports", "Event.elapsed_time", "Tensor.detach", "Tensor.sum", "add", "from_dlpack", "shutdown", "dtype"} <= set(CALLS)
    assert len(CALLS) > 300


@pytest.mark.parametrize("path", walked())
def test_an_unknown_keyword_is_named(path):
    assert "there is no argument 'nonsense'" in refusal(path, nonsense=1)


@pytest.mark.parametrize("path", walked())
def test_an_argument_of_a_wrong_type_is_an_error_of_the_library(path):
    kind, dot, _ = path.partition(".")
    signature = re.search(r": \w+\((.*)\)$", refusal(path, nonsense=1))[1]
    names = re.findall(r"(?:^|, )(\w+)(?==|,|$)", signature)
    if dot and names[:1] == ["x"]:  # the tensor itself, in the text for an op
        names = names[1:]
    if names:
        with pytest.raises(yoke.Error):
            CALLS[path](*([SELVES[kind]()] if dot else []), **{name: object() for name in names})


@pytest.mark.parametrize("path", [path for path in walked() if "." in path])
def test_a_method_without_its_object_is_refused(path):
    with pytest.raises(TypeError) as told:
        CALLS[path]()
    if isinstance(CALLS[path], types.MethodDescriptorType):  # Python checks the object of such a method
        return
    assert isinstance(told.value, yoke.TypeError) and "argument 'self' is missing" in str(told.value)


@pytest.mark.parametrize("call, text", [
    (lambda: yoke.set_device(), "set_device(): argument 'device' is missing: set_device(device)"),
    (lambda: yoke.set_device(0, 1), "set_device(): takes at most 1 argument but 2 were given: set_device(device)"),
    (lambda: yoke.set_device(0, device=1), "set_device(): argument 'device' is given twice, by position and by name; give it once: set_device(device)"),
    (lambda: yoke.version(1), "version(): takes no arguments but 1 was given: version()"),
    (lambda: yoke.shutdown("soon"), "shutdown(): argument 'timeout' must be a number, not str"),
    (lambda: yoke.memory_stats(dev="cpu"), "memory_stats(): there is no argument 'dev'; did you mean 'device'?: memory_stats(device=None)"),
    (lambda: yoke.device("cpu").supports(), "supports(): argument 'dtype' is missing: supports(dtype, feature='compute')"),
    (lambda: yoke.Stream.close(3), "close(): argument 'self' must be a Stream, not int: close()"),
    (lambda: yoke.Stream.close(), "close(): argument 'self' is missing: close(self)"),
    (lambda: yoke.Event().elapsed_time(), "elapsed_time(): argument 'end' is missing: elapsed_time(end)"),
    (lambda: yoke.device(), "device(): argument 'spec' is missing: device(spec, index)"),
    (lambda: yoke.device("cpu", 1, 2), "device(): takes at most 2 positional arguments but 3 were given: device(spec, index)"),
    (lambda: yoke.ones(2).__dlpack__(3), "__dlpack__(): takes no positional arguments but 1 was given: __dlpack__(stream, "),
    (lambda: yoke.manual_seed(1.5), "manual_seed(): argument 'seed' must be an integer, not float"),
    (lambda: yoke.from_dlpack(), "from_dlpack(): argument 'x' is missing: from_dlpack(x)"),
    (lambda: yoke.ones(2).detach(1), "detach(): takes no arguments but 1 was given: detach()"),
    (lambda: yoke.ones(2).numpy(force=True), "numpy(): there is no argument 'force'; the call takes none: numpy()"),
    (lambda: yoke.Device(), "Device(): a script cannot create a Device; write yoke.device(spec), such as yoke.device('cpu')"),
    (lambda: yoke.Device("cpu"), "Device(): a script cannot create a Device; write yoke.device(spec), such as yoke.device('cpu')"),
    (lambda: yoke.FloatTensor(2, dtyp=1), "FloatTensor(): there is no argument 'dtyp'; the arguments are: FloatTensor(*sizes_or_data, device=None)"),
    (lambda: yoke.ones(2).view_as(), "view_as(): argument 'other' is missing: view_as(other)"),
    (lambda: yoke.dtype(), "dtype(): takes one name such as \"float32\""),
    (lambda: yoke.Work(), "Work(): a script cannot create a Work; yoke.save(path, state, blocking=False) and a collective with async_op=True return a Work"),
])
def test_the_text_names_call_and_argument(call, text):
    with pytest.raises(yoke.TypeError, match=f"^{re.escape(text)}") as told:
        call()
    assert told.value.code == yoke.TypeError.code


def test_a_type_error_of_a_script_stays_as_it_is():
    class Index:
        def __index__(self):
            raise TypeError("set_device(): incompatible function arguments. The following argument types are supported:\n    1. () -> None\n")

    with pytest.raises(TypeError, match="incompatible") as told:
        yoke.manual_seed(Index())
    assert type(told.value) is TypeError


def test_private_functions_of_the_package_have_the_same_errors():
    with pytest.raises(yoke.TypeError, match=r"^_load\(\): argument 'path' is missing: _load\(path, device, mmap, dtype, names\)"):
        _yoke._load()
