"""Other names of arguments, which calls take beside their own: the table core/ops/other_names.def, and its rows."""

import re
from dataclasses import dataclass

from gen import words
from gen.errors import TableError

ROW = re.compile(r"(\w+) -> (\w+(?: \w+)*?)( as flag)?(?: for (\w+(?: \w+)*))?")


@dataclass
class OtherName:
    name: str
    own: list
    is_flag: bool
    calls: list  # empty: every call


def parse_row(line):
    match = ROW.fullmatch(line)
    if not match:
        raise TableError("not written as 'other -> own ...', which 'as flag' and 'for call ...' may follow")
    name, own, flag, calls = match.groups()
    if not words.NAME.fullmatch(name):
        raise TableError(f"other name '{name}' is not written in snake_case: a to z, digits, single '_' between words")
    for each in own.split():
        words.check(each, "argument")
        if each == name:
            raise TableError(f"'{name}' cannot be another name of itself")
    return OtherName(name, own.split(), bool(flag), calls.split() if calls else [])


def parse(text, path):
    """Returns the rows in the table's order."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            rows.append(parse_row(line))
        except TableError as error:
            raise TableError(f"{path}:{number}: {error}") from None
    return rows


def inc(rows):
    """Returns the rows for C and C++: other name, own name, whether it is a flag, and the calls between spaces, or ""."""
    calls = lambda row: f" {' '.join(row.calls)} " if row.calls else ""
    return "".join(f'YOKE_OTHER_NAME("{row.name}", "{own}", {int(row.is_flag)}, "{calls(row)}")\n' for row in rows for own in row.own)


def own_argument(row, call, names):
    """Returns the argument, one of `names`, that a row's name means in a call; None if it means none."""
    if row.name in names or row.calls and call not in row.calls:
        return None
    return next((own for own in row.own if own in names), None)


def of_call(rows, call, names):
    """Returns {argument: [(other name, is_flag), ...]} of a call. Rows of few calls come first, then rows that have the argument
    first.
    """
    meant = [(bool(row.calls), -row.own.index(own), row, own) for row in rows if (own := own_argument(row, call, names))]
    found = {}
    for _, _, row, own in sorted(meant, key=lambda each: each[:2], reverse=True):
        found.setdefault(own, []).append((row.name, row.is_flag))
    return found


# ---- Names that Yoke does not have -----------------------------------------------------------------------------------

FOREIGN = re.compile(r"([\w ]+): (\S.*)")


def parse_foreign(text, path):
    """Returns [(place, name, text)] in the table's order; a name counts once in its place."""
    rows, place = [], None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if header := re.fullmatch(r"\[([\w.]+)\]", line):
            place = header[1]
            continue
        match = FOREIGN.fullmatch(line)
        if not match or place is None or '"' in line and "\\" in line:
            raise TableError(f"{path}:{number}: not written as 'name ...: text' behind a [place]")
        known = {name for where, name, _ in rows if where == place}
        rows += [(place, name, match[2]) for name in dict.fromkeys(match[1].split()) if name not in known]
    return rows


def foreign_inc(rows):
    quote = lambda s: s.replace('"', '\\"')
    return "".join(f'YOKE_FOREIGN_NAME("{place}", "{name}", "{quote(text)}")\n' for place, name, text in rows)
