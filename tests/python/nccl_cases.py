"""Every collective with its expected result: a model in Python with values that all dtypes hold exactly."""
import functools
import math
from typing import Any, Callable, NamedTuple

import yoke

SIGNED = (yoke.float64, yoke.float32, yoke.float16, yoke.bfloat16, yoke.int64, yoke.int32, yoke.int8, yoke.float8_e4m3, yoke.float8_e5m2)
DTYPES = (*SIGNED, yoke.uint8, yoke.bool)
WITH_AVG = (yoke.float64, yoke.float32, yoke.float16, yoke.bfloat16)
WITHOUT_SUM = (yoke.bool, yoke.float8_e4m3, yoke.float8_e5m2)
UNWRITTEN = 1  # value of outputs before a call


class Case(NamedTuple):
    """Call of a rank; `out` is the written tensor, or None, and `expected` its values after the call."""
    name: str
    call: Callable[[Any], Any]
    out: Any
    expected: list


def value(dtype, rank, i):
    """The element `i` of rank `rank`: of each reduction of four such all dtypes have the exact result."""
    number = (i * 5 + rank * 3 + i // 7) % 4
    if dtype is yoke.bool:
        return number % 2 == 0
    return number - 1 if dtype in SIGNED else number % 3


def reductions(dtype):
    return ("min", "max", *(() if dtype in WITHOUT_SUM else ("sum", "prod")), *(("avg",) if dtype in WITH_AVG else ()))


def reduced(op, values):
    if op in ("min", "max"):
        return min(values) if op == "min" else max(values)
    if op == "prod":
        return math.prod(values)
    return sum(values) / len(values) if op == "avg" else sum(values)


def tensor(values, dtype, device, strided):
    """Returns a tensor of two axes, transposed in memory if `strided`."""
    t = yoke.tensor(values, device="cpu").to(dtype=dtype) if values else yoke.zeros((0,), dtype=dtype, device="cpu")
    t = t.reshape(-1, 2) if len(values) % 2 == 0 else t.reshape(-1, 1)
    return (t.transpose(0, 1).contiguous().to(device).transpose(0, 1)) if strided else t.to(device)


class Rank:
    """Inputs and expected outputs of rank `rank` of `size`, for calls with parts of `count` elements."""

    def __init__(self, rank, size, device, dtype, count, strided):
        self.rank, self.size, self.count, self.dtype = rank, size, count, dtype
        self.made = functools.partial(tensor, dtype=dtype, device=device, strided=strided)

    def values(self, rank, count):
        return [value(self.dtype, rank, i) for i in range(count)]

    def mine(self, parts=1):
        return self.made(self.values(self.rank, parts * self.count))

    def unwritten(self, parts=1):
        return self.made([bool(UNWRITTEN) if self.dtype is yoke.bool else UNWRITTEN] * (parts * self.count))

    def part(self, of, which):
        """Returns part `which` of the input of rank `of`."""
        return self.values(of, self.size * self.count)[which * self.count:(which + 1) * self.count]

    def reductions(self, root):
        for op in reductions(self.dtype):
            def model(parts, op=op):
                return [reduced(op, each) for each in zip(*parts)]

            whole = model([self.values(each, self.count) for each in range(self.size)])
            t, other, t_in, out = self.mine(), self.mine(), self.mine(self.size), self.unwritten()
            yield Case(f"all_reduce {op}", lambda group, t=t, op=op: group.all_reduce(t, op), t, whole)
            at_root = whole if self.rank == root else self.values(self.rank, self.count)
            yield Case(f"reduce {op}", lambda group, t=other, op=op: group.reduce(t, root, op), other, at_root)
            yield Case(f"reduce_scatter {op}", lambda group, t=t_in, out=out, op=op: group.reduce_scatter(out, t, op), out,
                       model([self.part(each, self.rank) for each in range(self.size)]))

    def passing(self, root):
        count, size, everyone = self.count, self.size, range(self.size)
        t = self.mine()
        yield Case("broadcast", lambda group: group.broadcast(t, root), t, self.values(root, count))
        all_of, mine = self.unwritten(size), self.mine()
        gathered = [x for each in everyone for x in self.values(each, count)]
        yield Case("all_gather", lambda group: group.all_gather(all_of, mine), all_of, gathered)
        at_root = self.unwritten(size) if self.rank == root else None
        yield Case("gather", lambda group: group.gather(at_root, mine, root), at_root, gathered)
        part, given = self.unwritten(), self.mine(size) if self.rank == root else None
        yield Case("scatter", lambda group: group.scatter(part, given, root), part, self.part(root, self.rank))
        there, here = self.unwritten(size), self.mine(size)
        yield Case("all_to_all", lambda group: group.all_to_all(there, here), there,
                   [x for each in everyone for x in self.part(each, self.rank)])

    def messages(self):
        """Yields a send and a receive from each rank to the next rank, issued together."""
        left, right = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        out, mine = self.unwritten(), self.mine()
        yield Case("send", lambda group: group.send(mine, right), None, [])
        yield Case("recv", lambda group: group.recv(out, left), out, self.values(left, self.count))


def check(case, where):
    if case.out is None:
        return
    found = case.out.reshape(-1).tolist()
    # A mean of three is rounded, in the dtype; all else is exact.
    right = found == case.expected or (case.name.endswith("avg") and all(
        math.isclose(a, b, rel_tol=1e-2, abs_tol=1e-3) for a, b in zip(found, case.expected, strict=True)))
    assert right, (where, case.name, case.out.dtype, found, case.expected)
