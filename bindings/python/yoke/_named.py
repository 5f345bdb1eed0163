"""Python classes and functions whose errors about a missing or unknown argument are the library's, not Python's.

A call that fits costs one `try`. After Python has refused the arguments of a call, the texts are made from the function's code.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any, Callable, Iterable, NamedTuple, Optional, TypeVar

from yoke import _yoke

F = TypeVar("F", bound=Callable[..., Any])

# Methods that training calls at each step: the wrapper would cost a tenth of the call.
EACH_STEP = frozenset({"step", "zero_grad"})
_TAKES_MORE, _TAKES_ANY = 0x04, 0x08  # flags of a code object: it has *arguments, **keywords


class Named:
    """Base of classes with such errors, in __init__ and in public methods; a class without __init__ takes no arguments.

    A class of a script keeps its own methods. Its errors about arguments of __init__ name the nearest argument too.
    """

    _CALL_PREFIX = ""  # what a script writes before the name of the class, if the errors need it

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if _is_ours(cls.__module__):
            name_methods(cls)

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        if (args or keywords) and not hasattr(cls.__init__, "__wrapped__"):
            init: Any = cls.__init__
            if init is object.__init__ or hasattr(init, "__code__"):
                problem = _problem(_called(cls), init, 1, len(args), keywords, _is_ours(getattr(init, "__module__", cls.__module__)))
                if problem is not None:
                    raise _yoke.TypeError(problem)
        return super().__new__(cls)


def named(function: F) -> F:
    """Decorates a function: raises the library's TypeError if the arguments of a call do not fit."""
    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError as error:
            ours = under_own_names(error, function, args, keywords)
            problem = refusal(error, function, args, keywords) if ours is None else None
            if ours is None and problem is None:
                raise
        if ours is not None:  # outside the block: Python's error says no more
            return call(*args, **ours)
        raise _yoke.TypeError(problem)

    return call  # type: ignore[return-value]


def under_own_names(error: TypeError, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Optional[dict[str, Any]]:
    """Returns the keywords with PyTorch's names replaced by the function's own; None if there are none, as in refusal()."""
    if not keywords or not _is_refused(error, function) or not _is_ours(function.__module__):
        return None
    code, called = function.__code__, _call_of(function, args)
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    ours: dict[str, Any] = {}
    said = dict(zip(names, names[:min(len(args), code.co_argcount)]))  # the name that each argument has in this call
    for name, value in keywords.items():
        own, is_flag = (name, False) if name in names else _yoke._other_name(called, name, names) or (name, False)
        if own in said and own in names and (own != name or said[own] != own):
            raise _yoke.TypeError(f"{called}(): arguments '{said[own]}' and '{name}' are the same argument; give one of the two")
        if is_flag and not isinstance(value, bool):
            raise _yoke.TypeError(f"{called}(): argument '{name}' is a {type(value).__name__}; it takes a bool")
        said[own] = name
        ours[own] = int(value) if is_flag else value
    return None if ours.keys() == keywords.keys() else ours


def name_methods(cls: type, wrap: Callable[[Any], Any] = named, names: Optional[Iterable[str]] = None) -> None:
    """Wraps __init__ and the public methods that the class itself defines, or those of these names.

    Leaves out methods that are already wrapped, methods of each step, and forward(), whose arguments Module.__call__ checks.
    """
    for name in list(vars(cls)) if names is None else names:
        method = vars(cls)[name]
        is_public = name == "__init__" or name[0] != "_" and name != "forward" and name not in EACH_STEP
        if is_public and isinstance(method, FunctionType) and not hasattr(method, "__wrapped__"):
            setattr(cls, name, wrap(method))


def refusal(error: TypeError, function: Any, args: tuple[Any, ...], keywords: dict[str, Any], call: Optional[str] = None) -> Optional[str]:
    """Returns the library's text for Python's refusal of the arguments; None for an error of another cause.

    The caller has caught `error` from function(*args, **keywords).
    """
    if not _is_refused(error, function):
        return None
    own = int(function.__code__.co_varnames[:1] in (("self",), ("cls",)))
    if len(args) < own:
        return None
    return _problem(call or _call_of(function, args), function, own, len(args) - own, keywords, _is_ours(function.__module__))


def _is_refused(error: TypeError, function: Any) -> bool:
    """Returns whether Python has refused the arguments: a function that was entered has a frame in the traceback."""
    return error.__traceback__ is not None and error.__traceback__.tb_next is None and isinstance(function, FunctionType)


# Types in pybind11's signatures: what fits, and its name in an error.
_BOUND_TYPES = {"int": (int, "an integer"), "float": ((int, float), "a number"), "str": (str, "a str"), "bool": (bool, "a bool")}


def refuse_bound(text: str, args: tuple[Any, ...], keywords: Optional[dict[str, Any]]) -> None:
    """Raises the library's TypeError if `text` is pybind11's refusal of these arguments; runtime/refusal.cpp calls this."""
    from ast import parse, unparse  # here, as `re`: the imports take long
    from re import match

    found = match(r"(\w+)\(\): incompatible (?:function|constructor) arguments\. .*\n    1\. ([\w.]*)(\(.*?\))(?: -> .*)?\n", text)
    if found is None:
        return
    is_constructor = found[1] == "__init__"
    call = found[2].rpartition(".")[2] if is_constructor else found[1]
    taken: Any = parse(f"def call{found[3]}: ...").body[0]
    parameters, given = taken.args.args, list(args)[is_constructor:]
    problem = None
    if given and parameters and parameters[0].arg == "self":
        problem = _wrong_type(parameters.pop(0), given.pop(0))
    names = tuple(each.arg for each in parameters)
    optional = frozenset(names[len(names) - len(taken.args.defaults):])
    fits = _Parameters(names, len(names), optional, taken.args.vararg is not None, taken.args.kwarg is not None)
    problem = problem or _misfit(fits, len(given), keywords or {}, True)
    for each, value in [*zip(parameters, given), *((each, keywords[each.arg]) for each in parameters if keywords and each.arg in keywords)]:
        problem = problem or _wrong_type(each, value)
    for each in parameters:
        each.annotation = None
    raise _yoke.TypeError(f"{call}(): {problem or 'an argument has a wrong type'}: {call}({unparse(taken.args)})")


def _wrong_type(parameter: Any, value: Any) -> Optional[str]:
    """Returns what is wrong with the type of a value for a parameter of pybind11, or None."""
    from ast import unparse

    wanted = unparse(parameter.annotation) if parameter.annotation else "object"
    name = wanted.rpartition(".")[2]
    fits, told = _BOUND_TYPES.get(wanted, (getattr(_yoke, name, object), f"a {name}") if "." in wanted else (object, ""))
    return None if isinstance(value, fits) else f"argument '{parameter.arg}' must be {told}, not {type(value).__name__}"


# Devices that scripts written for other libraries name first.
_DEVICES = ("cuda", "cpu", "gpu", "sim", "auto", "mps", "xpu", "hip")


def refuse_device(call: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raises TypeError where the first argument is a device, which a class like autocast does not take."""
    first = keywords.get("device", args[0] if args else None)
    if isinstance(first, _yoke.Device) or isinstance(first, str) and first.partition(":")[0] in _DEVICES:
        raise _yoke.TypeError(f"{call}(): the first argument is the device {str(first)!r}; leave it out, because {call} holds for every device: {call}()")


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "yoke"


def _called(cls: type) -> str:
    return getattr(cls, "_CALL_PREFIX", "") + cls.__name__


def _call_of(function: FunctionType, args: tuple[Any, ...]) -> str:
    """Returns the name that the script has called: for __init__, of the class nearest to the object's that has this __init__."""
    name = function.__name__
    if name not in ("__init__", "__new__"):
        return name
    kinds = (args[0] if isinstance(args[0], type) else type(args[0])).__mro__
    return next((_called(each) for each in kinds if getattr(getattr(each, name), "__wrapped__", None) is function), name)


class _Parameters(NamedTuple):
    """Parameters of a call, without the object of a method."""

    names: tuple[str, ...]  # without *arguments and **keywords
    places: int  # number of parameters that may be given by position
    optional: frozenset[str]
    takes_more: bool
    takes_any: bool


def _problem(call: str, function: Any, own: int, given: int, keywords: dict[str, Any], is_ours: bool) -> Optional[str]:
    """Returns what is wrong with the arguments of a call, or None; the first `own` parameters are not the caller's."""
    problem = _misfit(_parameters(function, own), given, keywords, is_ours)
    return None if problem is None else f"{call}(): {problem}: {call}{_signature(function, own)}"


def _parameters(function: Any, own: int) -> _Parameters:
    code = getattr(function, "__code__", None)  # object.__init__ has none
    if code is None:
        return _Parameters((), 0, frozenset(), False, False)
    names = code.co_varnames[own:code.co_argcount + code.co_kwonlyargcount]
    places = code.co_argcount - own
    optional = {*names[max(0, places - len(function.__defaults__ or ())):places], *(function.__kwdefaults__ or ())}
    return _Parameters(names, places, frozenset(optional), bool(code.co_flags & _TAKES_MORE), bool(code.co_flags & _TAKES_ANY))


def _misfit(taken: _Parameters, given: int, keywords: dict[str, Any], is_ours: bool) -> Optional[str]:
    """Returns what is wrong with `given` arguments by position and these keywords, or None.

    Advice about PyTorch is only for functions of Yoke: a script's function may give such words another meaning.
    """
    names, places = taken.names, taken.places
    if given > places and not taken.takes_more:
        return _misplaced(names, places, given, is_ours)
    for name in keywords:
        if name not in names and not taken.takes_any:
            return str(_yoke._unknown_keyword(name, names, is_ours))
        if name in names[:min(given, places)]:
            return f"argument '{name}' is given twice, by position and by name; give it once"
    missing = [name for name in names[given:] if name not in taken.optional and name not in keywords]
    return "argument '%s' is missing" % missing[0] if missing else None


def _misplaced(names: tuple[str, ...], places: int, given: int, is_ours: bool) -> str:
    if len(names) > places:
        why, which = (", because PyTorch has another argument in its place", "the name of your argument, such as ") if is_ours else ("", "")
        return f"argument '{names[places]}' must be given by name{why}; write {which}{names[places]}=…"
    at_most = f"at most {places} argument{'s' * (places != 1)}" if places else "no arguments"
    return f"takes {at_most} but {given} {'was' if given == 1 else 'were'} given"


def _signature(function: Any, own: int) -> str:
    if function is object.__init__:
        return "()"
    from inspect import Parameter, Signature, signature  # here: its import takes long

    parameters = [each.replace(annotation=Parameter.empty) for each in list(signature(function).parameters.values())[own:]]
    return str(Signature([each for each in parameters if each.name != "unknown"]))
