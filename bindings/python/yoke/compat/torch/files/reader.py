"""Pickle of a PyTorch file, run by a small interpreter: tensors and containers alone, and no code of any module.

calls.py has the allowed names. Memory stays in proportion to the bytes of the file, and the interpreter has no recursion.
"""

from __future__ import annotations

import struct
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

from yoke import _yoke
from yoke.compat.torch.files.calls import TRUSTED, Call, allowed, key_of, refused_global, set_attributes
from yoke.compat.torch.files.arrays import NumPyArray, NumPyType
from yoke.compat.torch.files.tensors import Kind, Refused, Storage

MOST_LEVELS = 64


class Pickle:
    """Interpreter of a pickle. `load_storage` takes the id of a storage; `damaged` makes the error of a broken rule.

    `weights_only` leaves out the classes in TRUSTED.
    """

    def __init__(self, data: bytes, load_storage: Callable[[Any], Storage], damaged: Callable[[str], Exception], weights_only: bool) -> None:
        self._data, self._at = data, 0
        self._weights_only = weights_only
        self._load_storage, self._damaged = load_storage, damaged
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []  # stacks below the marks
        self._memo: dict[int, Any] = {}
        self._copied = 0  # members, by all calls

    def run(self) -> Any:
        """Returns the value of the pickle. Storage, Refused and this package's classes for NumPy may stand in the value."""
        while True:
            at = self._at
            try:
                code = self._data[at]
                self._at += 1
                if code == 0x2E:  # STOP
                    return self._stack.pop()
                step = self._STEPS.get(code)
                if step is None:
                    raise self._damaged(f"the pickle has the instruction {bytes([code])!r} at byte {at}, which no state of tensors and containers needs")
                step(self)
            except (LookupError, struct.error, UnicodeError):
                raise self._damaged(f"the pickle is damaged at byte {at} of {len(self._data)}") from None
            except _yoke.ValueError as error:
                raise self._damaged(str(error)) from None

    # ---- Bytes and the stack -----------------------------------------------------------------------------------------

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise IndexError
        self._at, begin = end, self._at
        return self._data[begin:end]

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _line(self) -> str:
        end = self._data.index(b"\n", self._at, self._at + 300) if b"\n" in self._data[self._at:self._at + 300] else -1
        if end < 0:
            raise IndexError
        self._at, begin = end + 1, self._at
        return self._data[begin:end].decode()

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def _to_mark(self) -> list[Any]:
        """Returns the values above the last mark, and removes values and mark."""
        found, self._stack = self._stack, self._outer.pop()
        return found

    def _tuple(self, count: int) -> None:
        if len(self._stack) < count:
            raise IndexError
        self._stack[-count:] = [tuple(self._stack[-count:])]

    # ---- Containers --------------------------------------------------------------------------------------------------

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) not in (dict, OrderedDict, Counter, defaultdict) or len(items) % 2:
            raise IndexError
        for i in range(0, len(items), 2):
            target[key_of(items[i])] = items[i + 1]

    def _append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is set:
            target.update(map(key_of, items))
        elif type(target) is list:
            target.extend(items)
        else:
            raise IndexError

    def _count(self, count: int) -> None:
        """Counts copied members of a call. A file has each member once; without a limit a short file would fill the memory."""
        self._copied += count
        if self._copied > len(self._data):
            raise self._damaged("the file copies the same values again and again")

    # ---- Names and calls ---------------------------------------------------------------------------------------------

    def _global(self, module: str, name: str) -> None:
        path = f"{'builtins' if module == '__builtin__' else module}.{name}"
        found = allowed().get(path)
        if found is None or self._weights_only and path in TRUSTED:
            raise self._damaged(refused_global(path))
        self._push(found)

    def _reduce(self) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not isinstance(function, Call) or type(arguments) is not tuple:
            raise IndexError
        self._push(function.make(self._count, arguments))

    def _new(self) -> None:
        if not isinstance(self._stack[-2], Call) or self._stack[-2].path not in TRUSTED:
            raise IndexError
        self._reduce()

    def _build(self) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if isinstance(target, (NumPyType, NumPyArray)):
            target.build(state)
        elif type(target) in (OrderedDict, Namespace) and type(state) is dict:
            self._count(len(state))
            set_attributes(target, state)
        else:
            raise self._damaged(f"the pickle sets the state of a {type(target).__name__}")

    def _persistent(self) -> None:
        self._push(self._load_storage(self._stack.pop()))

    _STEPS: ClassVar[dict[int, Callable[[Any], None]]] = {
        0x80: lambda self: self._take(1) and None,  # PROTO
        0x95: lambda self: self._take(8) and None,  # FRAME
        ord("("): _mark,
        ord("N"): lambda self: self._push(None),
        0x88: lambda self: self._push(True),
        0x89: lambda self: self._push(False),
        ord("J"): lambda self: self._push(self._number("<i")),
        ord("K"): lambda self: self._push(self._number("<B")),
        ord("M"): lambda self: self._push(self._number("<H")),
        ord("G"): lambda self: self._push(self._number(">d")),
        0x8A: lambda self: self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True)),  # LONG1
        ord("X"): lambda self: self._push(self._take(self._number("<I")).decode("utf-8", "surrogatepass")),
        0x8C: lambda self: self._push(self._take(self._number("<B")).decode("utf-8", "surrogatepass")),
        0x8D: lambda self: self._push(self._take(self._number("<Q")).decode("utf-8", "surrogatepass")),
        ord("U"): lambda self: self._push(self._take(self._number("<B"))),  # SHORT_BINSTRING, of Python 2
        ord("C"): lambda self: self._push(self._take(self._number("<B"))),
        ord("B"): lambda self: self._push(self._take(self._number("<I"))),
        0x8E: lambda self: self._push(self._take(self._number("<Q"))),
        0x96: lambda self: self._push(bytearray(self._take(self._number("<Q")))),
        ord(")"): lambda self: self._push(()),
        ord("]"): lambda self: self._push([]),
        ord("}"): lambda self: self._push({}),
        0x8F: lambda self: self._push(set()),
        0x85: lambda self: self._tuple(1),
        0x86: lambda self: self._tuple(2),
        0x87: lambda self: self._tuple(3),
        ord("t"): lambda self: self._push_to_mark(),
        ord("a"): lambda self: self._append([self._stack.pop()]),
        ord("e"): lambda self: self._append(self._to_mark()),
        0x90: lambda self: self._append(self._to_mark()),  # ADDITEMS
        ord("s"): lambda self: self._set_items([self._stack.pop(-2), self._stack.pop()]),
        ord("u"): lambda self: self._set_items(self._to_mark()),
        ord("q"): lambda self: self._memorize(self._number("<B")),
        ord("r"): lambda self: self._memorize(self._number("<I")),
        0x94: lambda self: self._memorize(len(self._memo)),  # MEMOIZE
        ord("h"): lambda self: self._push(self._memo[self._number("<B")]),
        ord("j"): lambda self: self._push(self._memo[self._number("<I")]),
        ord("c"): lambda self: self._global(self._line(), self._line()),
        0x93: lambda self: self._stack_global(),
        ord("R"): _reduce,
        0x81: lambda self: self._new(),  # NEWOBJ
        ord("b"): _build,
        ord("Q"): _persistent,
    }

    def _push_to_mark(self) -> None:
        found = tuple(self._to_mark())
        self._push(found)

    def _memorize(self, number: int) -> None:
        self._memo[number] = self._stack[-1]

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str or len(name) + len(module) > 300:
            raise IndexError
        self._global(module, name)


# ---- The state -------------------------------------------------------------------------------------------


class Tree:
    """Value of a pickle as a state: checks each value with its place, and replaces this package's classes."""

    def __init__(self, damaged: Callable[[str], Exception]) -> None:
        self._damaged = damaged
        self._path: list[str] = []
        self._done: dict[int, tuple[Any, Any, int]] = {}  # by id: the value, to stay alive; the result; levels below

    def value(self, value: Any) -> Any:
        """Returns the state."""
        return self._made(value)[0]

    def _made(self, value: Any) -> tuple[Any, int]:
        """Returns the value of a state and the number of its levels."""
        kind = type(value)
        if kind in (str, int, float, bool, bytes, type(None)):
            return value, 0
        if kind not in (list, tuple, dict, OrderedDict, defaultdict, Namespace):
            return self._leaf(value), 0
        if id(value) in self._done:
            _, made, levels = self._done[id(value)]
        else:
            if len(self._path) >= MOST_LEVELS:
                self._refuse(f"is deeper than {MOST_LEVELS} levels of containers, or contains itself")
            made, levels = self._container(value)
            self._done[id(value)] = value, made, levels
        if len(self._path) + levels > MOST_LEVELS:
            self._refuse(f"is deeper than {MOST_LEVELS} levels of containers")
        return made, levels

    def _container(self, value: Any) -> tuple[Any, int]:
        most = 0
        if type(value) not in (list, tuple):
            most = max(self._dict(each) for each in (value, getattr(value, "__dict__", None)) if isinstance(each, dict))
            return value, most
        items = []
        for i, each in enumerate(value):
            self._path.append(str(i))
            made, levels = self._made(each)
            self._path.pop()
            items.append(made)
            most = max(most, levels + 1)
        if type(value) is tuple:
            return tuple(items), most
        value[:] = items
        return value, most

    def _dict(self, value: dict[Any, Any]) -> int:
        most = 0
        for key in value:
            self._path.append(str(key)[:80])
            value[key], levels = self._made(value[key])
            self._path.pop()
            most = max(most, levels + 1)
        return most

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, (NumPyType, NumPyArray)):
            try:
                return value.value()
            except _yoke.ValueError as error:
                self._refuse(f"is damaged: {error}")
        if isinstance(value, Storage):
            value = value.flat()
        if isinstance(value, Refused):
            self._refuse(value.reason)
        if isinstance(value, (Call, Kind)):
            self._refuse("is a class or a function; a state has values alone")
        return value

    def _refuse(self, reason: str) -> None:
        raise self._damaged(f"the value at '{'.'.join(self._path)}' {reason}" if self._path else f"its value {reason}")
