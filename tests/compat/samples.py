"""Writes calls and results of PyTorch's own sample generators into a file: samples.py FILE [--most N] [--share I/N] [NAME...]

Runs under PyTorch; oracle.py replays the file under yoke.compat.torch. Each sample becomes a program: the calls of PyTorch's functions and
methods, in the order in which PyTorch's entry makes them. Tensors stand in a program by number, all else by value.
"""
import argparse
import pickle
import random
import warnings

import numpy as np
import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

DTYPES = [torch.float32, torch.int64, torch.bool]
KINDS = {"float32": np.float32, "float64": np.float64, "int64": np.int64, "int32": np.int32, "bool": np.bool_, "uint8": np.uint8, "int8": np.int8}
# Functions behind a wrapper of PyTorch's, and the wrapper that scripts call.
WRAPPERS = {"torch.nn.functional.max_pool2d_with_indices": "torch.nn.functional.max_pool2d", "torch._C._nn.": "torch.nn.functional."}


class Unsendable(Exception):
    """A value that has no form in Yoke: complex numbers, sparse tensors, generators, functions."""


def encoded(x):
    """Returns dtype, shape, strides and bytes of a tensor. The strides stay if the storage is small and no element stands twice."""
    name = str(x.dtype)[6:]
    if name not in KINDS or x.layout is not torch.strided or x.device.type != "cpu":
        raise Unsendable(f"{name} {x.layout}")
    x = x.detach()
    base, strides, offset = x.contiguous(), None, 0
    if not x.is_contiguous() and x.numel() and 0 not in x.stride() and x.untyped_storage().nbytes() <= 16 * x.numel() * x.element_size():
        base = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
        strides, offset = tuple(x.stride()), x.storage_offset()
    return {"dtype": name, "shape": tuple(x.shape), "strides": strides, "offset": offset, "data": base.numpy().tobytes()}


def upstream(x):
    """Returns a gradient for a result, which the replay makes too."""
    return torch.from_numpy(np.cos(np.arange(x.numel()))).to(x.dtype).reshape(x.shape)


class Recorder(TorchFunctionMode):
    """The calls at the top, with their arguments as they are before the call."""

    def __init__(self):
        self.calls, self.inputs, self.numbers, self.kept, self.leaves = [], {}, {}, [], []

    def number(self, x, is_input):
        if id(x) not in self.numbers:
            number = self.numbers[id(x)] = len(self.numbers)
            self.kept.append(x)
            if is_input:
                self.inputs[number] = encoded(x)
                if x.requires_grad:
                    self.inputs[number]["requires_grad"] = True
                    self.leaves.append((number, x))
        return self.numbers[id(x)]

    def form(self, value, is_input=True):
        """Returns a value with tensors as ("tensor", number)."""
        if isinstance(value, torch.Tensor):
            return ("tensor", self.number(value, is_input))
        if isinstance(value, (list, tuple)):
            return ("list" if type(value) is list else "tuple", [self.form(each, is_input) for each in value])
        if isinstance(value, dict):
            return ("dict", {key: self.form(each, is_input) for key, each in value.items()})
        if isinstance(value, slice):
            return ("slice", [self.form(each) for each in (value.start, value.stop, value.step)])
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return ("torch", str(value)[6:])
        if isinstance(value, torch.device):
            return ("device", str(value))
        if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str)):
            return ("plain", value)
        if isinstance(value, np.generic):
            return ("plain", value.item())
        raise Unsendable(type(value).__name__)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = (resolve_name(func) or getattr(func, "__name__", "?")).replace("torch.functional.", "torch.")
        for old, new in WRAPPERS.items():
            name = name.replace(old, new)
        if not name.startswith("torch."):
            raise Unsendable("a function without a public name")
        given = (self.form(list(args)), self.form(kwargs))
        result = func(*args, **kwargs)
        if holds_tensor(result) or not name.endswith("__get__"):
            self.calls.append((name, *given, self.form(result, False)))
        return result


def holds_tensor(value):
    """Returns whether a result has a tensor in it."""
    return isinstance(value, torch.Tensor) or isinstance(value, (list, tuple)) and any(map(holds_tensor, value))


def flat(value):
    """Lists the tensors of a result."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [x for each in value for x in flat(each)] if isinstance(value, (list, tuple)) else []


def record_of(call, *args, **kwargs):
    """Runs a call; returns the program, the results and the gradients."""
    recorder = Recorder()
    with recorder:
        result = call(*args, **kwargs)
    told = recorder.form(result, False)
    calls = [each for each in recorder.calls if "tensor" in str(each[3])] if holds_tensor(result) else recorder.calls
    record = {"inputs": recorder.inputs, "calls": calls, "result": told, "values": [encoded(x) for x in flat(result)], "gradients": {}}
    return add_gradients(record, flat(result), recorder.leaves)


def add_gradients(record, results, leaves):
    """Adds the gradients of named or numbered tensors to a record."""
    results = [x for x in results if x.requires_grad]
    if results and leaves:
        found = torch.autograd.grad(results, [x for _, x in leaves], [upstream(x) for x in results], allow_unused=True)
        record["gradients"] = {key: encoded(torch.zeros_like(x) if g is None else g) for (key, x), g in zip(leaves, found)}
    return record


def some(samples, most):
    """Returns at most so many samples, evenly chosen."""
    samples = list(samples)
    step = max(1, -(-len(samples) // most))
    return list(enumerate(samples))[::step]


def ops(names, most):
    """Yields a record, or why there is none, for each sample of each op, form and dtype."""
    for op in op_db:
        if names and op.name not in names:
            continue
        forms = {"function": op.op, "method": op.method_variant, "in place": op.inplace_variant}
        for dtype in DTYPES:
            if dtype not in op.dtypes:
                continue
            with_gradients = dtype is torch.float32 and op.supports_autograd
            for form, call in forms.items():
                if call is None:
                    continue
                seed()
                where = {"op": f"{op.name} {op.variant_test_name}".strip(), "form": form, "dtype": str(dtype)[6:]}
                for index, sample in some(op.sample_inputs("cpu", dtype, requires_grad=with_gradients), most):
                    yield one(where | {"index": index}, op_call(call, form), sample.input, *sample.args, **sample.kwargs)


def op_call(call, form):
    """Returns the call of a form. The form in place works on a copy."""
    return (lambda x, *args, **kwargs: call(x.clone(), *args, **kwargs)) if form == "in place" else call


def one(where, call, *args, **kwargs):
    """Returns a record, or one with the reason why a sample is left out."""
    try:
        return where | record_of(call, *args, **kwargs)
    except Unsendable as reason:
        return where | {"left out": f"not sent: {reason}"}
    except Exception as reason:  # PyTorch refuses the sample
        return where | {"left out": f"PyTorch: {type(reason).__name__}"}


def modules(names, most):
    """Yields a record for each sample of each module, in training and in evaluation."""
    for info in module_db:
        name = info.module_cls.__name__
        if names and name not in names:
            continue
        for training in (True, False):
            seed()
            samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
            for index, sample in some(samples, most):
                where = {"op": f"nn.{name}", "form": "training" if training else "evaluation", "dtype": "float32", "index": index}
                try:
                    yield where | module_record(info.module_cls, sample, training)
                except Unsendable as reason:
                    yield where | {"left out": f"not sent: {reason}"}
                except Exception as reason:
                    yield where | {"left out": f"PyTorch: {type(reason).__name__}"}


def module_record(kind, sample, training):
    """Returns the program of a module: how it is made, its state, its input, its results and gradients."""
    made, given = sample.constructor_input, sample.forward_input
    layer = kind(*made.args, **made.kwargs).train(training)
    recorder = Recorder()
    record = {"module": kind.__name__, "made": (recorder.form(list(made.args)), recorder.form(made.kwargs)), "training": training,
              "state": {key: encoded(x) for key, x in layer.state_dict().items()},
              "given": (recorder.form(list(given.args)), recorder.form(given.kwargs)), "inputs": recorder.inputs, "calls": [], "gradients": {}}
    result = layer(*given.args, **given.kwargs)
    record |= {"result": recorder.form(result, False), "values": [encoded(x) for x in flat(result)],
               "after": {key: encoded(x) for key, x in layer.state_dict().items()}}
    parameters = [(key, x) for key, x in layer.named_parameters() if x.requires_grad]
    return add_gradients(record, flat(result), [each for each in recorder.leaves if "tensor" in str(record["given"])] + parameters)


def seed():
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--most", type=int, default=40, help="samples of an op, form and dtype")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with open(options.file, "wb") as file:
        for source in (ops, modules):
            for record in source(options.names, options.most):
                pickle.dump(record, file)


if __name__ == "__main__":
    main()
