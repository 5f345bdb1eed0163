"""Each source includes the headers of the public functions that it calls: `check_includes.py SOURCE_DIR [BUILD_DIR]`.

Most builds compile eight sources at a time, so a neighbour's include hides a missing one. A build that compiles each source alone
then fails, as the first build of a new user does. An included header may bring the declaration through headers of its own.
"""
import pathlib
import re
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
DECLARED = re.compile(r"^YOKE_API [^;]*?\b(yoke_\w+)\(", re.M)
CALLED = re.compile(r"(?<![\w\"])(yoke_\w+)\s*\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)


class Graph:
    def __init__(self, root):
        self.root, self.include, self.reached = root, root / "capi" / "include", {}
        self.headers = {}  # name of a public function: its headers
        for header in sorted((self.include / "yoke").glob("*.h")):
            for name in DECLARED.findall(header.read_text()):
                self.headers.setdefault(name, set()).add(header)

    def behind(self, file):
        """Returns the tree's own files that `file` includes, directly or through other files."""
        if file not in self.reached:
            self.reached[file] = found = set()
            for name in INCLUDE.findall(file.read_text(errors="replace")):
                for folder in (self.root, self.include, file.parent):
                    if (header := folder / name).is_file():
                        found |= {header.resolve(), *self.behind(header.resolve())}
                        break
        return self.reached[file]

    def missing(self, file):
        """Returns the public functions that `file` calls without a declaration, each with a header that has it."""
        text = INCLUDE.sub("", file.read_text(errors="replace"))
        text = COMMENT.sub(lambda match: '""' if match[0][0] == '"' else " ", text)
        seen = self.behind(file) | {file}
        called = {name for name in CALLED.findall(text) if name in self.headers}
        return {name: min(self.headers[name]) for name in called if not self.headers[name] & seen}


def main(root):
    graph = Graph(pathlib.Path(root).resolve())
    looked_at, broken = 0, []
    for file in tree.files(graph.root, {".cpp", ".c", ".h"}):
        looked_at += 1
        for name, header in sorted(graph.missing(file).items()):
            broken.append(f"{file.relative_to(graph.root)}: calls {name}; include \"{header.relative_to(graph.include)}\"")
    tree.report("includes", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[1])
