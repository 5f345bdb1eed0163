"""Lines of comments beyond column 120, and their wrapping.

A line with only a comment gives its last words to the comment's next line, or to a new line.
"""
import re

import tree

LIMIT = 120
MARKERS = {".py": "#", ".pyi": "#", ".cmake": "#", ".txt": "#", ".sh": "#", ".lua": "---?(?!-)"}
CODE_MARKERS = r"//+|/\*+|\*(?!/)"
# Lines for tools stay unchanged; lines of lists and headings take no words from the line before.
TOOLS = r"clang-format|NOLINT|noqa|@|\||!"
APART = re.compile(rf"({TOOLS}|[-*] |\d+\. |[-=]{{4}})")
# A line of a list or a table, whose further lines stand further in.
HANGING = re.compile(r"[-*] |\d+\. |\S+ {2,}\S")
RULE = re.compile(r"^(.{40,}?)(-{4,})( ?\*/)?$")


def pattern(suffix):
    return re.compile(rf"^(\s*(?:{MARKERS.get(suffix, CODE_MARKERS)}))(\s*)((?!{TOOLS})\S.*)$")


def has_comments(path):
    """Tells whether the file's language has comments known here."""
    return path.suffix in tree.CODE or path.suffix in MARKERS and (path.suffix != ".txt" or path.name == "CMakeLists.txt")


def too_long(path):
    """Returns numbers of the lines of comment that are too long."""
    comment = pattern(path.suffix)
    lines = path.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if len(line) > LIMIT and comment.match(line)]


def next_prefix(match):
    """Returns the prefix of a comment's further line."""
    marker, item = match[1], re.match(r"[-*] |\d+\. ", match[3])
    if "/*" in marker:
        return marker.replace("/*", " *", 1)[: len(marker)] + " "
    return marker + match[2] + " " * len(item[0] if item else "")


def goes_on(match, following):
    """Tells whether a line continues the comment of `match` and can take words from it."""
    if not following or APART.match(following[3]) or re.match(r"\s*/\*", following[0]):
        return False
    if re.match(r"\s*/\*", match[0]) or (following[1], following[2]) == (match[1], match[2]):
        return True
    return following[1] == match[1] and len(following[2]) > len(match[2]) and bool(HANGING.match(match[3]))


def wrap(path):
    """Wraps them; how many there were."""
    comment, wrapped = pattern(path.suffix), 0
    lines = path.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        match = comment.match(lines[at]) if len(lines[at]) > LIMIT else None
        if match:
            wrapped += wrap_line(lines, at, match, comment)
        at += 1
    if wrapped:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return wrapped


def wrap_line(lines, at, match, comment):
    rule = RULE.match(lines[at])
    if rule:
        end = rule[3] or ""
        lines[at] = rule[1] + "-" * (LIMIT - len(rule[1]) - len(end)) + end
        return 1
    cut = lines[at].rfind(" ", len(match[1] + match[2]) + 1, LIMIT + 1)
    if cut < 0 or lines[at].rstrip().endswith("\\"):
        return 0
    kept, rest = lines[at][:cut].rstrip(), lines[at][cut:].strip()
    following = comment.match(lines[at + 1]) if at + 1 < len(lines) else None
    closes = lines[at].rstrip().endswith("*/")
    if not closes and goes_on(match, following):
        lines[at : at + 2] = [kept, f"{following[1]}{following[2]}{rest} {following[3]}"]
    else:
        lines[at : at + 1] = [kept, next_prefix(match) + rest]
    return 1
