"""Holds the tree to its include rules: `check_includes.py SOURCE_DIR [BUILD_DIR]`.

A file may include what the first rule that matches its path allows. System headers are free, except
that the core and the public headers name no engine of a backend.
"""
import pathlib
import re
import sys

import tree

TYPES = "capi/include/yoke/types.h"
PUBLIC = "capi/include/"
# What the inventory, selection and the doctor fill in are the structs of the C API themselves.
STRUCTS = {floor: [f"capi/include/yoke/{name}.h" for name in ("inventory", "select", "doctor")]
           for floor in ("machine", "device", "select", "doctor")}
FLOORS = ["base", "backend", "machine", "device", "select", "doctor", "memory", "tensor", "autograd", "ops", "optim", "state",
          "comm", "monitor"]
ENGINES = re.compile(r"(cuda|cublas|cudnn|nccl|nvml|nvrtc|dnnl|oneapi|omp\.h|gloo|Python\.h|pybind|lua)")

# (whose, what it may include, whether it may name an engine). The first whose pattern matches the
# start of a file's path counts; {own} is what the pattern matched.
RULES = [
    (PUBLIC, [PUBLIC], False),
    (r"core/lent\.cpp", ["core/"], False),
    (r"core/backend/backend\.h", [TYPES, "core/backend/ops.inc"], False),
    *((f"core/{floor}/", [TYPES, *STRUCTS.get(floor, [])] + [f"core/{low}/" for low in FLOORS[: height + 1]], False)
      for height, floor in enumerate(FLOORS)),
    (r"capi/src/", ["core/", "capi/"], False),
    (r"kernels/\w+/", ["{own}", "kernels/common/", "core/backend/backend.h", "core/backend/ops.inc",
                       TYPES], True),
    (r"bindings/common/", [PUBLIC], False),
    (r"bindings/\w+/", ["{own}", "bindings/common/", PUBLIC], True),
    (r"tests/(core|kernels|backend|emu|fakes|fuzz|hostile|static)/", ["core/", "capi/", "kernels/", "tests/"], True),
    (r"tests/\w+/", ["{own}", PUBLIC], True),
    (r"(examples|benchmarks)/", ["{own}", PUBLIC], True),
]


def rule_for(path):
    """(allowed prefixes, may name engines) for a file, or None."""
    for pattern, allowed, engines in RULES:
        own = re.match(pattern, path)
        if own:
            return [prefix.replace("{own}", own[0]) for prefix in allowed], engines
    return None


def resolve(root, source, name):
    """The tree's file that `#include "name"` means, or None for a header from outside."""
    for base in [source.parent, root, root / "capi" / "include"]:
        path = (base / name).resolve()
        if path.is_file() and path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return None


def check_line(root, source, name, quoted):
    """What is wrong with one include, or None."""
    path = source.relative_to(root).as_posix()
    rule = rule_for(path)
    if rule is None:
        return "stands in a folder that the floor plan does not have"
    allowed, engines = rule
    target = resolve(root, source, name)
    if target is None:
        if quoted:
            return f'includes "{name}", which is no file of this tree; write <{name}> if it is from outside'
        if not engines and ENGINES.match(name):
            return f"includes <{name}>: only kernels and bindings may name an engine"
        return None
    if any(target == one or (one.endswith("/") and target.startswith(one)) for one in allowed):
        return None
    return f"includes {target}; it may include {', '.join(allowed) or 'nothing'}"


def main(root):
    root = pathlib.Path(root).resolve()
    broken, looked_at = [], 0
    for source in tree.files(root, tree.CODE):
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if found:
                looked_at += 1
                wrong = check_line(root, source, found[2], found[1] == '"')
                if wrong:
                    broken.append(f"{source.relative_to(root)}:{number} {wrong}")
    tree.report("includes", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[1])
