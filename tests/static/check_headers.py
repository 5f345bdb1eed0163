"""Each public header compiles alone as C99 and C++11, pedantic: `check_headers.py SOURCE_DIR [BUILD_DIR]`.

Done with gcc and, where it is installed, clang.
"""
import pathlib
import shutil
import subprocess
import sys

import tree

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
LANGUAGES = [["-x", "c", "-std=c99"], ["-x", "c++", "-std=c++11"]]


def main(root):
    include = pathlib.Path(root) / "capi" / "include"
    compilers = [name for name in ["gcc", "clang"] if shutil.which(name)]
    broken, looked_at = [], 0
    for header in sorted((include / "yoke").glob("*.h")):
        for compiler in compilers:
            for language in LANGUAGES:
                looked_at += 1
                # Includes the header twice, so that the guard is tested as well.
                source = f"#include <yoke/{header.name}>\n" * 2 + "int main(void) { return 0; }\n"
                command = [compiler, *language, *STRICT, f"-I{include}", "-"]
                done = subprocess.run(command, input=source, capture_output=True, text=True)
                if done.returncode:
                    broken.append(f"yoke/{header.name} with {' '.join(command[:4])}:\n{done.stderr}")
    tree.report("headers", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[1])
