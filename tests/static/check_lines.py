"""No hand-written file is longer than 400 lines: `check_lines.py SOURCE_DIR [BUILD_DIR]`."""
import sys

import tree

LIMIT = 400
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
        if lines > LIMIT:
            broken.append(f"{path.relative_to(root)} has {lines} lines; split it, {LIMIT} is the limit")
    tree.report("lengths", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[1])
