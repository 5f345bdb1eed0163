"""Allowed names of ops and arguments."""

import keyword
import re

from gen.errors import TableError

LUA = set("""and break do else elseif end false for function goto if in local nil not or repeat
return then true until while""".split())
C = set("""auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef typeof union unsigned void volatile while""".split())
CPP = C - {"restrict"} | set("""alignas alignof and and_eq asm bitand bitor bool catch class compl concept const_cast consteval
constexpr constinit decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public reinterpret_cast requires static_assert static_cast template this thread_local throw
true try typeid typename using virtual wchar_t xor xor_eq co_await co_return co_yield""".split())
# Names with a special meaning in generated code or in the table.
TABLE = {"none", "self", "args"}
LANGUAGES = {"C": C, "C++": CPP, "Python": set(keyword.kwlist), "Lua": LUA, "this table": TABLE}

NAME = re.compile(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*_?")


def check(name, what):
    if not NAME.fullmatch(name):
        raise TableError(f"{what} '{name}' is not written in snake_case: a to z, digits, single '_' between words")
    languages = [language for language, words in LANGUAGES.items() if name.strip("_") in words]
    if languages:
        raise TableError(f"{what} '{name}' is a word of {' and '.join(languages)}; another name is needed")
