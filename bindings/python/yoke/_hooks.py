"""Tables of hooks, and the handles that take hooks out of them again."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

_numbers = itertools.count()


class Table(dict[int, Any]):
    """Hooks by number, in the order in which they run. Handles refer to a table weakly."""

    __slots__ = ("__weakref__",)

    def add(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Adds a hook behind the others, or before them; returns its handle."""
        handle = RemovableHandle(self, next(number for number in _numbers if number not in self))  # hooks of pickles have numbers
        others = dict(self) if prepend else {}
        if prepend:
            self.clear()
        self[handle.id] = hook
        self.update(others)
        return handle


class RemovableHandle:
    """Handle of a hook: remove() takes the hook out, and so does the end of a `with` block. A copy or pickle of an object with hooks
    and handles has handles of its own hooks.
    """

    id: int

    def __init__(self, table: Table, number: int) -> None:
        self._table, self.id = weakref.ref(table), number

    def remove(self) -> None:
        """Takes the hook out; nothing happens if it is out already. A call that runs goes on with the hook."""
        table = self._table()
        if table is not None:
            table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[Any, int]:
        return self._table(), self.id

    def __setstate__(self, state: tuple[Any, int]) -> None:
        table, self.id = state
        self._table = weakref.ref(Table() if table is None else table)
