"""Replays PyTorch's samples under yoke.compat.torch, and compares with PyTorch's results: oracle.py FILE [--list]

samples.py writes FILE. Compares values, dtypes, shapes and gradients, and the states of modules afterwards. Names that Yoke does not have
are counted. A refusal is counted too: an error of Yoke's for a sample that PyTorch takes. All else is a mismatch, unless the table
differences.json names it with its reason. Exits with 1 if there is a mismatch.
"""
import argparse
import collections
import fnmatch
import json
import pathlib
import pickle
import re
import sys
import warnings

import numpy as np

import yoke
import yoke.compat.torch

yoke.compat.torch.install()
import torch  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {"float32": np.float32, "float64": np.float64, "int64": np.int64, "int32": np.int32, "bool": np.bool_, "uint8": np.uint8, "int8": np.int8}
TOLERANCE = 2e-5  # of the number itself, and of the median number of a result


class Absent(Exception):
    """A name of PyTorch that Yoke does not have."""


class Mismatch(Exception):
    """A result that differs: (kind, text)."""


def array(told):
    """Returns the array of an encoded tensor, with its strides."""
    base = np.frombuffer(bytearray(told["data"]), KINDS[told["dtype"]])
    if told["strides"] is None:
        return base.reshape(told["shape"])
    size = base.itemsize
    return np.lib.stride_tricks.as_strided(base[told["offset"]:], told["shape"], [n * size for n in told["strides"]])


def tensor(told):
    x = torch.from_numpy(array(told))
    return x.requires_grad_() if told.get("requires_grad") else x


def object_of(name):
    """Returns the object with a dotted name of PyTorch's, and whether the name is a property."""
    path = name.removeprefix("torch.").split(".")
    is_property = path[-1] == "__get__"
    value = torch
    for part in path[:-1] if is_property else path:
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError) as error:
            raise Absent(name) from error
    return value, is_property


class Replay:
    """The tensors of a program by number."""

    def __init__(self, record):
        self.record = record
        self.tensors = {number: tensor(told) for number, told in record["inputs"].items()}

    def value(self, form):
        kind, inner = form
        if kind == "tensor":
            return self.tensors[inner]
        if kind in ("list", "tuple"):
            values = [self.value(each) for each in inner]
            return values if kind == "list" else tuple(values)
        if kind == "dict":
            return {key: self.value(each) for key, each in inner.items()}
        if kind == "slice":
            return slice(*map(self.value, inner))
        return object_of(f"torch.{inner}")[0] if kind == "torch" else torch.device(inner) if kind == "device" else inner

    def keep(self, form, result):
        """Gives the tensors of a result their numbers."""
        kind, inner = form
        if kind == "tensor":
            if not isinstance(result, torch.Tensor):
                raise Mismatch("form", f"{type(result).__name__} instead of a tensor")
            self.tensors.setdefault(inner, result)
        elif kind in ("list", "tuple"):
            if not isinstance(result, (list, tuple)) or len(result) != len(inner):
                raise Mismatch("form", f"{type(result).__name__} instead of {len(inner)} results")
            for each, part in zip(inner, result):
                self.keep(each, part)
        elif kind == "plain" and (isinstance(result, torch.Tensor) or not same(result, inner)):
            raise Mismatch("value", f"{result!r} instead of {inner!r}")

    def run(self):
        """Runs the calls; returns the tensors of the result."""
        if "module" in self.record:
            return self.run_module()
        found = [(object_of(name), rest) for name, *rest in self.record["calls"]]
        for (function, is_property), (args, kwargs, result) in found:
            args, kwargs = self.value(args), self.value(kwargs)
            self.keep(result, function.__get__(args[0]) if is_property else function(*args, **kwargs))
        return [self.tensors[number] for number in numbers(self.record["result"])]

    def run_module(self):
        kind = object_of(f"torch.nn.{self.record['module']}")[0]
        args, kwargs = map(self.value, self.record["made"])
        self.layer = kind(*args, **kwargs).train(self.record["training"])
        self.layer.load_state_dict({key: tensor(told) for key, told in self.record["state"].items()})
        args, kwargs = map(self.value, self.record["given"])
        self.keep(self.record["result"], self.layer(*args, **kwargs))
        for key, told in self.record["after"].items():
            compare(self.layer.state_dict()[key], told, "state")
        return [self.tensors[number] for number in numbers(self.record["result"])]

    def leaves(self):
        parameters = dict(self.layer.named_parameters()) if "module" in self.record else {}
        return [self.tensors[key] if isinstance(key, int) else parameters[key] for key in self.record["gradients"]]

    def check(self, is_random, has_places):
        """Compares all; without values if the numbers are random, without the second result if the result has places."""
        results = self.run()
        for index, (x, told) in enumerate(zip(results, self.record["values"], strict=True)):
            compare(x, told, "value", is_random or has_places and index > 0)
        if self.record["gradients"] and not is_random:
            used = [x for x in results if x.requires_grad]
            if not used and not any(array(told).any() for told in self.record["gradients"].values()):
                return
            if not used:
                raise Mismatch("gradient", "no result requires a gradient")
            above = [torch.from_numpy(np.cos(np.arange(x.numel()))).to(x.dtype).reshape(tuple(x.shape)) for x in used]
            found = torch.autograd.grad(used, self.leaves(), above, allow_unused=True)
            for g, told in zip(found, self.record["gradients"].values()):
                if g is not None or array(told).any():
                    compare(torch.zeros(told["shape"]) if g is None else g, told, "gradient")


def numbers(form):
    kind, inner = form
    return [inner] if kind == "tensor" else [n for each in inner for n in numbers(each)] if kind in ("list", "tuple") else []


def same(x, y):
    return x == y or isinstance(y, float) and abs(x - y) <= TOLERANCE * abs(y) or x != x and y != y


def compare(x, told, what, is_random=False):
    """Raises if dtype, shape or values differ."""
    if x.dtype.name != told["dtype"]:
        raise Mismatch("dtype" if what == "value" else what, f"{x.dtype.name} instead of {told['dtype']}")
    if tuple(x.shape) != told["shape"]:
        raise Mismatch("shape" if what == "value" else what, f"{tuple(x.shape)} instead of {told['shape']}")
    if is_random or 0 in told["shape"]:
        return
    got, want = x.detach().numpy(), array(told)
    if want.dtype.kind != "f":
        if (got != want).any():
            raise Mismatch(what, f"{got[got != want][:3]} instead of {want[got != want][:3]}")
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(want[np.isfinite(want)])
    size = max(1.0, float(np.median(finite))) if finite.size else 1.0
    with np.errstate(invalid="ignore"):
        near = (np.abs(got - want) <= TOLERANCE * (np.abs(want) + size)) | (got == want) | np.isnan(got) & np.isnan(want)
    if not near.all():
        raise Mismatch(what, f"{got[~near][:3]} instead of {want[~near][:3]}, {(~near).sum()} of {near.size}")


# ---- Table and report ------------------------------------------------------------------------------------------------


def outcome(record, table):
    """Returns the kind of an outcome, and a text."""
    if "left out" in record:
        return "left out", record["left out"]
    name, drops = record["op"].split()[0], [each for each in re.findall(r"'dropout_p': \('plain', ([\d.]+)\)", str(record["calls"])) if float(each)]
    try:
        Replay(record).check(name in table["random"] or drops, name in table["places"])
        return "equal", ""
    except Absent as error:
        return "absent", str(error)
    except Mismatch as error:
        return error.args
    except (yoke.Error, MemoryError) as error:
        return "refused", f"{type(error).__name__}: {error}"
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def line_for(table, record, kind):
    """Returns the pattern of the table for a mismatch, or None."""
    names = {record["op"], record["op"].split()[0]}
    for pattern in table:
        op, _, kinds = pattern.partition(": ")
        if kind in kinds.split(", ") and any(fnmatch.fnmatchcase(name, op) for name in names):
            return pattern
    return None


def records(path):
    with open(path, "rb") as file:
        while file.peek(1):
            yield pickle.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--list", action="store_true", help="print refusals and absent names one by one")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    table = json.loads((HERE / "differences.json").read_text())
    counts, used, wrong, told = collections.Counter(), set(), collections.defaultdict(list), collections.defaultdict(collections.Counter)
    names = collections.defaultdict(set)
    for record in records(options.file):
        kind, text = outcome(record, table)
        counts[kind] += 1
        names[kind].add(record["op"].split()[0])
        if kind in ("absent", "refused", "left out"):
            told[kind][text if kind == "absent" else f"{record['op']}: {text}"] += 1
        elif kind != "equal":
            line = line_for(table["differences"], record, kind)
            if line:
                used.add(line)
                counts["named in the table"] += 1
            else:
                wrong[f"{record['op']} ({record['form']}, {record['dtype']}): {kind}"].append(f"sample {record['index']}: {text}")
    for what, texts in wrong.items():
        print(f"{what}: {len(texts)} samples; {texts[0]}")
    if options.list:
        for kind, texts in told.items():
            for text, count in sorted(texts.items()):
                print(f"{kind} {count}: {text}")
    idle = [line for line in table["differences"] if line not in used]
    if idle:
        print("lines of differences.json that these samples do not need:", idle)
    print(", ".join(f"{kind}: {count}" for kind, count in counts.most_common()))
    print(f"{len(names['equal'])} names with equal samples; {len(names['absent'] - names['equal'])} that Yoke does not have")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
