"""Shows that two commits differ in comments and pages alone: `compare_code.py BASE [HEAD]`.

Names each file whose code differs, and exits with 1 if there is any. White space of C, C++, CUDA and Lua does not count.
"""
import ast
import pathlib
import re
import subprocess
import sys

import english
import literals
import tree


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def code_of(path, text):
    """Code of a file without comments, docstrings and white space outside of literals."""
    suffix = pathlib.Path(path).suffix
    if suffix in (".py", ".pyi"):
        parsed = ast.parse(text)
        for node in ast.walk(parsed):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
                node.body[0].value.value = ""
        return ast.dump(parsed)
    if suffix in tree.CODE or suffix == ".lua":
        tokens = literals.TOKENS[".cpp"] if suffix in tree.CODE else english.LUA
        parts, at = [], 0
        for found in tokens.finditer(text):
            parts.append(re.sub(r"\s+", "", text[at:found.start()]))
            parts.append("" if found[0].startswith(("//", "/*", "--")) else found[0])
            at = found.end()
        return "".join(parts) + re.sub(r"\s+", "", text[at:])
    return "\n".join(line for line in re.sub(r"(?m)^\s*#(?!!).*$|\s# .*$", "", text).splitlines() if line.strip())


def at(commit, path):
    """Text of a file in a commit, or "" if the commit has no such file."""
    done = subprocess.run(["git", "show", f"{commit}:{path}"], capture_output=True, text=True)
    return "" if done.returncode else done.stdout


def main(base, head="HEAD"):
    names = [name for name in git("diff", "--name-only", base, head).splitlines() if not name.endswith(".md")]
    differ = [name for name in names if code_of(name, at(base, name)) != code_of(name, at(head, name))]
    print(*differ, sep="\n")
    print(f"{len(names)} files differ, {len(differ)} of them in their code")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
