"""Classes whose constructor says of a keyword that it lacks which one is near, as the library's functions do."""

from __future__ import annotations

from typing import Any

from yoke import _yoke

_TAKES_ANY = 0x08  # of a code object: it has **keywords


class Named:
    """Looks at the keywords before __init__ does, whose own error names neither the nearest nor the others."""

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        if keywords:
            check_keywords(cls, len(args), keywords)
        return super().__new__(cls)


def check_keywords(cls: type, given: int, keywords: dict[str, Any]) -> None:
    """Raises TypeError for a keyword that cls.__init__ lacks, or that one of the `given` positional arguments has filled."""
    code = getattr(cls.__init__, "__code__", None)  # type: ignore[misc]
    if code is None or code.co_flags & _TAKES_ANY:
        return
    names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    for name in keywords:
        if name not in names:
            raise _yoke.TypeError(f"{cls.__name__}(): {_yoke._unknown_keyword(name, names)}: {cls.__name__}({', '.join(names)})")
        if name in names[:given]:
            raise _yoke.TypeError(f"{cls.__name__}(): argument '{name}' is given twice, by its place and by its name: {cls.__name__}({', '.join(names)})")
