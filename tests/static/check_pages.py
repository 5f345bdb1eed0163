"""Compares pages with the code: `check_pages.py SOURCE_DIR [BUILD_DIR]`.

Pages are docs/*.md and the READMEs of the product's folders. For names of the code on a page
- `Type::member` must be a member of such a type, a function of a namespace or an enumerator,
- `function` (`file.cpp`) must be in a file of this name, or at the given path.
If the first line of a header begins with a file name, the name must be the header's own.
"""
import pathlib
import re
import sys

import check_shape
import tree

MEMBER = re.compile(r"`((?:\w+::)+~?\w+)(?:\(\))?`")
IN_FILE = re.compile(r"`(?:\w+::)*(~?\w+)(?:\(\))?` \(`([\w/.-]+\.(?:cpp|h|cu|cuh))`\)")
# Namespaces of other libraries, and of the generated functions of ops.
FOREIGN = ("std", "nlohmann", "torch", "ops")


def pages(root):
    return [path for path in tree.files(root, {".md"})
            if path.parent == root / "docs" or path.name == "README.md" and path.relative_to(root).as_posix().startswith(check_shape.PRODUCT)]


def members(product):
    """Returns the pairs (type or namespace, member) from ctags; nested types count by the last name."""
    return {(tag["scope"].rsplit("::", 1)[-1], tag["name"]) for tag in product.tags if "scope" in tag}


def faults(page, text, product, known):
    for found in MEMBER.finditer(text):
        *scopes, name = found[1].split("::")
        if scopes[0] not in FOREIGN and (scopes[-1], name) not in known:
            yield f"{page} names {found[1]}, which is not in the code"
    for found in IN_FILE.finditer(text):
        name, file = found.groups()
        paths = [path for path in product.code if path == file or path.endswith(f"/{file}")]
        if paths and not any(re.search(rf"\b{re.escape(name.lstrip('~'))}\b", product.code[path]) for path in paths):
            yield f"{page} looks for {name} in {file}, which does not have it"
        elif not paths:
            yield f"{page} names {file}, which is not there"


def misnamed(product):
    for path in product.code:
        with open(product.root / path, encoding="utf-8") as file:
            found = re.match(r"// (\w+\.(?:h|cuh)): ", file.readline())
        if found and found[1] != path.rsplit("/", 1)[-1]:
            yield f"{path} begins with the name of {found[1]}"


def main(root):
    product = check_shape.Product(pathlib.Path(root).resolve())
    known, broken, looked_at = members(product), [], 0
    for path in pages(product.root):
        looked_at += 1
        broken += faults(path.relative_to(product.root).as_posix(), path.read_text(encoding="utf-8"), product, known)
    tree.report("pages", looked_at, broken + [*misnamed(product)])


if __name__ == "__main__":
    main(sys.argv[1])
