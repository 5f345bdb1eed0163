"""No hand-written file is longer than 400 lines, no line of comment than 120 columns: `check_lines.py SOURCE_DIR [BUILD_DIR]`."""
import sys

import comments
import tree

LIMIT = 400
# Registers with an entry on each line. A register grows with the library, and people look up entries in a register.
REGISTERS = {"capi/slots.txt", "core/ops/ops.def"}
HAND_WRITTEN = tree.CODE | {".py", ".pyi", ".lua", ".md", ".txt", ".cmake", ".json", ".toml", ".in",
                            ".sh", ""}


def main(root):
    broken, looked_at = [], 0
    for path in tree.files(root, HAND_WRITTEN):
        if tree.is_generated(path):
            continue
        looked_at += 1
        with open(path, encoding="utf-8") as file:
            lines = sum(1 for _ in file)
        if lines > LIMIT and str(path.relative_to(root)) not in REGISTERS:
            broken.append(f"{path.relative_to(root)} has {lines} lines; split it, {LIMIT} is the limit")
        if comments.has_comments(path):
            broken += [f"{path.relative_to(root)}:{line} is a comment behind column {comments.LIMIT}; ./dev format wraps it"
                       for line in comments.too_long(path)]
    tree.report("lengths", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[1])
