"""String literals that are cut in two, and how to join them: `literals.py FILE…` rewrites these files.

grep finds a text in a single literal. Two adjacent literals are a text cut in two, with two exceptions: the first ends with a
newline (each line of a page may have a line of its own), or a macro such as PRId64 stands between them.
"""
import io
import pathlib
import re
import sys
import tokenize

# Comments, raw strings and characters are matched, so that a quote within them begins no literal.
TOKENS = {
    ".cpp": re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<end>[^(]*)\(.*?\)(?P=end)"|'(?:[^'\\\n]|\\.)+'|(?P<text>"(?:[^"\\\n]|\\.)*")""",
                       re.S),
    ".lua": re.compile(r"""--\[\[.*?\]\]|--[^\n]*|\[\[.*?\]\]|'(?:[^'\\\n]|\\.)*'|(?P<text>"(?:[^"\\\n]|\\.)*")""", re.S),
}
LANGUAGE = {suffix: ".cpp" for suffix in (".h", ".c", ".cpp", ".cu", ".cuh", ".inc", ".def")} | {".lua": ".lua"}
FOLDERS = ("capi/", "core/", "kernels/", "bindings/", "examples/")  # texts for users
BETWEEN = {".cpp": re.compile(r"\s*"), ".lua": re.compile(r"\s*\.\.\s*")}


def checked(name):
    """Tells whether the texts of a file, by its path in the tree, are to stand whole."""
    return name.startswith(FOLDERS)


class Cut:
    """Two adjacent literals: `start` to `end` of the file's text, to be replaced by `joined`."""

    def __init__(self, text, start, end, joined):
        self.line = text.count("\n", 0, start) + 1
        self.start, self.end, self.joined = start, end, joined


def cut_in(path):
    """Returns the cuts of a file's text, in order."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    suffix = pathlib.Path(path).suffix
    found = python_cuts(text) if suffix in (".py", ".pyi") else code_cuts(text, LANGUAGE[suffix])
    return text, found


def code_cuts(text, language):
    literals = [match for match in TOKENS[language].finditer(text) if match["text"]]
    for one, next_one in zip(literals, literals[1:]):
        if BETWEEN[language].fullmatch(text, one.end(), next_one.start()) and not one[0].endswith('\\n"'):
            # "\x1b" "a" is not "\x1ba", nor "%" "PRI".
            if not re.search(r'\\x[0-9a-fA-F]+"$|\\[0-7]{1,2}"$', one[0]):
                yield Cut(text, one.start(), next_one.end(), one[0][:-1] + next_one[0][1:])


def python_cuts(text):
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    before = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NL:
            continue
        if token.type == tokenize.STRING and before is not None and before.type == tokenize.STRING:
            joined = joined_python(before.string, token.string)
            if joined:
                yield Cut(text, lines[before.start[0] - 1] + before.start[1], lines[token.end[0] - 1] + token.end[1], joined)
        before = token


def joined_python(one, other):
    """Returns two literals of Python joined, or None if they are not a cut text."""
    parts = [re.fullmatch(r"(?i)([rbfu]*)('|\")((?:(?!\2).)*)\2", literal) for literal in (one, other)]
    if not all(parts) or one.endswith(('\\n"', "\\n'")) or any(set(part[1].lower()) & {"r", "b"} for part in parts):
        return None
    quote = parts[0][2]
    bodies = [part[3] for part in parts]
    if parts[1][2] != quote:
        bodies[1] = bodies[1].replace("\\" + parts[1][2], parts[1][2])
        bodies[1] = bodies[1].replace(quote, "\\" + quote)
        if "\\" + quote in bodies[1] and "f" in parts[1][1].lower():
            return None
    formatted = any("f" in part[1].lower() for part in parts)
    if formatted:
        bodies = [body if "f" in part[1].lower() else re.sub(r"([{}])", r"\1\1", body) for part, body in zip(parts, bodies)]
    return ("f" if formatted else "") + quote + bodies[0] + bodies[1] + quote


def join(path):
    """Joins the cut literals of a file; how many there were."""
    count = 0
    while True:
        text, cuts = cut_in(path)
        cut = next(iter(cuts), None)
        if cut is None:
            return count
        pathlib.Path(path).write_text(text[: cut.start] + cut.joined + text[cut.end :], encoding="utf-8")
        count += 1


if __name__ == "__main__":
    for name in sys.argv[1:]:
        join(name)
