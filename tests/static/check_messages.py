"""A message is a single string literal, so that grep finds the message: `check_messages.py SOURCE_DIR [BUILD_DIR]`.

The check reads every literal in the sources of the product and names literals that are cut in two; `./dev format` joins them.
"""
import pathlib
import sys

import literals
import tree


def main(root):
    root, broken, looked_at = pathlib.Path(root).resolve(), [], 0
    for path in tree.files(root, set(literals.LANGUAGE) | {".py"}):
        name = path.relative_to(root).as_posix()
        if not literals.checked(name) or tree.is_generated(path):
            continue
        looked_at += 1
        broken += [f"{name}:{cut.line} cuts a text in two; ./dev format joins it" for cut in literals.cut_in(path)[1]]
    tree.report("texts", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[1])
