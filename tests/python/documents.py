"""Snippets of documents, taken from the documents' text, so that the tests run the text that readers copy.

A snippet is a fenced block with a language. The output of a line stands behind the line as a comment, and is compared:

    print(x.shape)          # (2, 3)

An ellipsis (…) in such a comment stands for any text.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
# Patterns of a printing line of each language, and of its comment.
PRINTING = {
    "python": re.compile(r"\bprint\(.*?\)\s+# (.*)$"),
    "lua": re.compile(r"\bprint\(.*?\)\s+-- (.*)$"),
    "c": re.compile(r"\bprintf\(.*?\);\s+/\* (.*) \*/$"),
    "sh": re.compile(r"\bprint\(.*?\)'?\s+# (.*)$"),
}


def section(path, title):
    """Returns the text under a heading of a document, up to the next heading of the same level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", Path(path).read_text(), re.S | re.M)
    assert found, f"{path} has no section '{title}'"
    return found[1]


def blocks(text, language):
    """The snippets of a language, in order."""
    return [found[2] for found in FENCE.finditer(text) if found[1] == language]


def languages(text):
    """Returns the languages of the fenced blocks of a document, "" for blocks without a language."""
    return re.findall(r"^```(\w*)\n(?:.*?)^```$", text, re.S | re.M)


def as_one(text, language):
    """Returns the snippets of a language as a single script. Each line stays at its place in the document, so an error names the
    document's line.
    """
    lines = [""] * (text.count("\n") + 1)
    for found in FENCE.finditer(text):
        if found[1] == language:
            first = text.count("\n", 0, found.start(2))
            snippet = found[2].splitlines()
            lines[first:first + len(snippet)] = snippet
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
