"""Snippets of pages, taken from the pages' text, so that the tests run the text that readers copy.

A snippet is a fenced block. The output of a line stands behind the line as a comment, and is compared:

    print(x.shape)          # (2, 3)

An ellipsis (…) in such a comment stands for any text.

Tests run each snippet in Python, Lua, C and the shell. A comment of HTML in the line before a block changes how, or says why not:

    <!-- run: ranks=2 -->                         as two ranks of a group
    <!-- run: cards=2 -->                         on an emulated machine with two cards
    <!-- run: mpi=2 -->                           as two ranks of MPI
    <!-- run: script=2 -->                        in a second script, not behind the page's other snippets
    <!-- not run: installs on the system -->      a reason of REASONS

Snippets of a page with equal language and mark are a single script. Setups of scripts are files of tests/snippets.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?:<!-- (run|not run): ([^\n]*) -->\n)?```(\w*)\n(.*?)^```$", re.S | re.M)
RUN = ("python", "lua", "c", "sh")
# Languages of blocks that are no code.
PLAIN = ("", "text")
OPTIONS = ("ranks", "cards", "mpi", "script")
# Reasons not to run a block, and what such a block must have.
REASONS = {
    "builds the tree": r"^(?:\S+=\S+ )*\./dev ",
    "installs on the system": r"apt-get|venv|luarocks|cmake",
    "needs a card": r"gpu|cuda",
    "needs a cluster": r"srun|mpirun|kubectl",
    "needs PyTorch": r"torch",
}
# Patterns of a printing line of each language, and of its comment.
PRINTING = {
    "python": re.compile(r"\bprint\(.*?\)\s+# (.*)$"),
    "lua": re.compile(r"\bprint\(.*?\)\s+-- (.*)$"),
    "c": re.compile(r"\bprintf\(.*?\);\s+/\* (.*) \*/$"),
    "sh": re.compile(r"\bprint\(.*?\)'?\s+# (.*)$"),
}


class Snippet(NamedTuple):
    """Fenced block of a page. `run` has the options of its mark; `reason` is "" for a block that runs."""
    language: str
    line: int  # of the opening fence
    text: str
    run: str
    reason: str


def snippets(text):
    """Returns the fenced blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(text):
        mark, what, language, body = match.groups()
        line = text.count("\n", 0, match.start(4))
        found.append(Snippet(language, line, body, what if mark == "run" else "", what if mark == "not run" else ""))
    return found


def scripts(text):
    """Returns the pairs (language, options) of the scripts that a page's snippets make, without those that do not run."""
    found = [(each.language, each.run) for each in snippets(text) if each.language in RUN and not each.reason]
    return list(dict.fromkeys(found))


def section(path, title):
    """Returns the text under a heading of a document, up to the next heading of the same level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", Path(path).read_text(), re.S | re.M)
    assert found, f"{path} has no section '{title}'"
    return found[1]


def blocks(text, language):
    """Returns the snippets of a language, in order."""
    return [each.text for each in snippets(text) if each.language == language]


def as_one(text, language, run=""):
    """Returns the snippets of a language and a mark as a single script. Each line stays at its place in the page, so an error names
    the page's line.
    """
    lines = [""] * (text.count("\n") + 1)
    for each in snippets(text):
        if (each.language, each.run) == (language, run) and not each.reason:
            snippet = each.text.splitlines()
            lines[each.line:each.line + len(snippet)] = snippet
    return "\n".join(lines) + "\n"


def promised(snippet, language):
    """Returns the promised output of a snippet: a text for each line."""
    found = [PRINTING[language].search(line.rstrip()) for line in snippet.splitlines()]
    return [match[1].strip() for match in found if match]


def differences(promises, printed):
    """Yields the differences between printed and promised lines, in words."""
    lines = printed.splitlines()
    for number, (promise, line) in enumerate(zip(promises, lines), 1):
        pattern = re.sub(r"([\[?*])", r"[\1]", promise).replace("…", "*")
        if not fnmatchcase(line.strip(), pattern):
            yield f"line {number} of the output is {line!r}; the document says {promise!r}"
    if len(promises) != len(lines):
        yield f"{len(lines)} lines were printed, {len(promises)} have a comment that says what: {lines}"
