"""Tests run every code block of a page, or its mark says why not: `check_snippets.py SOURCE_DIR [BUILD_DIR]`.

tests/python/documents.py has the marks and their meaning; tests/python/test_snippets.py runs the blocks of all pages.
"""
import pathlib
import re
import sys

import tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import documents  # noqa: E402


def faults_of_mark(snippet):
    """Yields what is wrong with the mark of a block."""
    if snippet.language in documents.PLAIN:
        if snippet.run or snippet.reason:
            yield "has a mark, but no code"
    elif snippet.reason:
        if snippet.reason not in documents.REASONS:
            yield f"is not run for the reason \"{snippet.reason}\"; there are {', '.join(documents.REASONS)}"
        elif not re.search(documents.REASONS[snippet.reason], snippet.text, re.M):
            yield f"does not look as if it {snippet.reason}"
    elif snippet.language not in documents.RUN:
        yield f"is in {snippet.language}, which no test runs; give it a mark"
    elif snippet.language == "c" and snippet.run:
        yield "is in C, which has no options"
    elif not re.fullmatch(rf"(?:(?:{'|'.join(documents.OPTIONS)})=[1-9] ?)*(?<! )", snippet.run):
        yield f"has unknown options \"{snippet.run}\"; there are {', '.join(documents.OPTIONS)}"


def faults(text, commands):
    """Yields (line, fault) of a page. `commands` are the commands of ./dev."""
    found = documents.snippets(text)
    fences = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*(```|~~~)", line)]
    for line in sorted({*fences[::2]} - {each.line for each in found}):
        yield line, "has a fence that is indented, has no end, or names no language"
    marked = sum(bool(each.run or each.reason) for each in found)
    if len(re.findall(r"<!--\s*(?:not )?run\b", text)) != marked:
        yield 1, "has a mark that does not stand in the line before a block"
    for each in found:
        for fault in faults_of_mark(each):
            yield each.line, fault
        for command in re.findall(r"\./dev ([a-z]\S*)", each.text):
            if command not in commands:
                yield each.line, f"calls ./dev {command}, which does not exist"


def main(root):
    root = pathlib.Path(root).resolve()
    commands = set(re.findall(r"^cmd_([a-z-]+)\(\)", (root / "dev").read_text(encoding="utf-8"), re.M))
    broken, blocks = [], 0
    for path in tree.files(root, {".md"}):
        text = path.read_text(encoding="utf-8")
        blocks += len(documents.snippets(text))
        broken += [f"{path.relative_to(root)}:{line} {fault}" for line, fault in faults(text, commands)]
    tree.report("blocks of pages", blocks, broken)


if __name__ == "__main__":
    main(sys.argv[1])
