"""Checks the layers of the tree: `check_floors.py SOURCE_DIR [BUILD_DIR]`.

A file may include the files that the first matching rule allows, and includes must form no circle. System headers are free,
except that the core and the public headers name no engine of a backend.

Below the bindings, only the places listed here know the names "cuda" and "nvidia", and no binding compares with these names.
Properties of a device kind are in core/backend/traits.cpp, properties of a vendor's cards in the vendor's file, and a backend
knows its own name. Among the bindings, only files whose interface has CUDA in its name may ask. No message decides anything,
because a failure has a type. A backend reports a kernel's failure as text alone; only the two files that pass the text on may
read it. An argument's name decides nothing either: the core uses its type or role. In the folders of groups, neither the end of a
connection nor the call of a failure is read from text.
"""
import pathlib
import re
import sys

import tree

TYPES = "capi/include/yoke/types.h"
PUBLIC = "capi/include/"
# The inventory, selection and the doctor fill in structs of the C API itself.
STRUCTS = {layer: [f"capi/include/yoke/{name}.h" for name in ("inventory", "select", "doctor")]
           for layer in ("machine", "device", "select", "doctor")}
LAYERS = ["base", "store", "launch", "rendezvous", "backend", "machine", "device", "select", "doctor", "memory", "tensor", "autograd", "ops", "optim", "state",
          "comm", "hang", "parallel", "monitor"]
LUA, PYTHON = "bindings/lua/src/", "bindings/python/src/"  # where the leaves stand, which know each other by no header
ENGINES = re.compile(r"(cuda|cublas|cudnn|nccl|nvml|nvrtc|dnnl|oneapi|omp\.h|gloo|Python\.h|pybind|lua)")

# (pattern of files, allowed includes, whether an engine may be named). The first pattern that matches the start of a
# file's path counts; {own} is the matched text.
RULES = [
    (PUBLIC, [PUBLIC], False),
    (r"core/lent\.cpp", ["core/"], False),
    (r"core/backend/backend\.h", [TYPES, "core/backend/ops.inc"], False),
    (r"core/backend/comm\.h", ["core/backend/backend.h"], False),
    *((f"core/{layer}/", [TYPES, *STRUCTS.get(layer, [])] + [f"core/{low}/" for low in LAYERS[: height + 1]], False)
      for height, layer in enumerate(LAYERS)),
    (r"capi/src/", ["core/", "capi/"], False),
    (r"kernels/\w+/", ["{own}", "kernels/common/", "core/backend/backend.h", "core/backend/comm.h", "core/backend/ops.inc",
                       TYPES], True),
    (r"bindings/common/", [PUBLIC], False),
    (r"bindings/lua/src/runtime/", ["{own}", PUBLIC], True),
    (r"bindings/lua/src/values/", ["{own}", LUA + "runtime/", PUBLIC], True),
    (LUA, [LUA + "runtime/", LUA + "values/", LUA + "leaves.h", LUA + "ops.inc", LUA + "dtypes.inc", "bindings/common/", PUBLIC], True),
    (r"bindings/python/src/runtime/", ["{own}", PUBLIC], True),
    (r"bindings/python/src/values/", ["{own}", PYTHON + "runtime/", PUBLIC], True),
    (PYTHON, [PYTHON + "runtime/", PYTHON + "values/", PYTHON + "leaves.h", "bindings/common/", PUBLIC], True),
    (r"bindings/\w+/", ["{own}", "bindings/common/", PUBLIC], True),
    (r"tests/(core|cudnn|kernels|backend|emu|fakes|fuzz|hostile|static)/", ["core/", "capi/", "kernels/", "tests/"], True),
    (r"tests/\w+/", ["{own}", PUBLIC], True),
    (r"benchmarks/workers/comm_engine", ["core/backend/backend.h", "core/backend/comm.h", TYPES, "benchmarks/workers/comm_pair.h"], True),  # an engine without what the core adds
    (r"benchmarks/workers/overhead_nccl", ["core/backend/comm.h", PUBLIC, TYPES], True),  # the table of a module beside the library
    (r"benchmarks/workers/(memory|fragmentation)", ["core/memory/", TYPES, "benchmarks/workers/torch_policy.h"], True),  # the allocator without a device
    (r"benchmarks/workers/chunks", ["core/backend/registry.h", "core/device/device.h", TYPES], True),  # a backend's table without the core
    (r"(examples|benchmarks)/", ["{own}", PUBLIC], True),
]


# Where the include graph must have no circle, and where names and texts decide nothing.
PARTS = re.compile(r"(core|kernels|capi|bindings/(lua|python))/")
NO_NAMES = re.compile(r"(core|kernels|capi)/")
NO_COMPARISONS = re.compile(r"(core|kernels|capi|bindings)/")
NAMED_PLACES = re.compile(r"core/backend/traits\.cpp|core/machine/nvidia|core/doctor/|kernels/cuda/"
                          r"|core/tensor/dlpack\.cpp"  # DLPack's names for types of devices
                          r"|bindings/lua/src/tensor_fields\.c"  # is_cuda
                          r"|bindings/python/src/(habits|words|dlpack|attributes)\.cpp")  # .cuda(), __dlpack__, __cuda_array_interface__
# The `yoke` command formats texts for people, and prints a text shared by several entries only once.
NO_TEXTS = re.compile(r"(core|kernels|capi|bindings/(lua|python))/(?!base/error\.cpp|ops/names\.cpp)")
NO_FAILURES = re.compile(r"core/(?:store|rendezvous|device|comm|hang|parallel|launch)/")
NO_ARGUMENTS = re.compile(r"(core/(autograd|ops)|capi/src)/")

NAME = r'"(?:cuda|nvidia)(?::[^"]*)?"'
CALLS = r"\b(?:str\w*cmp|strstr|memcmp|compare|r?find|starts_with|ends_with|contains|count)\("
LITERAL = re.compile(NAME, re.IGNORECASE)
COMPARISON = re.compile(rf"[=!]=\s*{NAME}|{NAME}\s*[=!]=|{CALLS}[^;{{}}]*?{NAME}")
# Name of a variable or member with words for people, or a failure's what().
TEXT = r"(?:what\(\)|\b(?:\w*_)?(?:message|reason|problem|evidence|remedy)(?:_text)?(?:\.c_str\(\)|\.text)?)[)}]?"
# A reason may be a value of an enum, a problem a number: these are no texts.
NO_TEXT = r"\s*(?:(?:\w+::)*k[A-Z]|nullptr|\d|'|std::errc|=)"
TEXT_DECIDES = re.compile(
    rf"{TEXT}\s*\.(?:r?find\w*|compare|starts_with|ends_with|contains|substr)\("
    rf"|\b(?:str\w*cmp|str(?:case)?str|memcmp|regex_\w+|v?sscanf)\([^;{{}}]*?{TEXT}|(?<!char ){TEXT}\[[^\]]*\](?!\s*(?:;|=[^=]))"
    rf"|{TEXT}\s*[=!]=(?!{NO_TEXT})|[=!]=\s*[\w:.>(-]*?{TEXT}(?![\w:(])")
# Reads of a connection's reason to end (`how`), a failure's text, and the call at the front of a text. An event must
# have a kind, a failure a number, an error its call.
CUTS = r"\.(?:starts_with|ends_with|r?find\w*|compare|contains|substr|remove_prefix)\("
FAILURE_DECIDES = re.compile(rf"\bhow{CUTS}|(?:\.|->)text\s*[=!]=\s*(?![\"'])|(?<![.\w])[\w.]+\s*[=!]=\s*\w+(?:\.|->)text\b(?!\()")
NAMES_CALL = re.compile(r"\b(\w+)\s*(?:=|\()[^;{}]*\"[^\"\n]*: \"\s*[;),]")
# The name of an argument, from its line in the op table.
ARGUMENT = r"(?:\bargs\[[^\]]*\]|\bspec)(?:\.|->)name\b\)?"
ARGUMENT_DECIDES = re.compile(
    rf"{CALLS}[^;{{}}]*?{ARGUMENT}|[=!]=\s*[\w:.>(-]*?{ARGUMENT}|{ARGUMENT}\s*(?:[=!]=|\[|\.(?:r?find|compare|starts_with|ends_with))")


def rule_for(path):
    """Returns (allowed prefixes, may name engines) for a file, or None."""
    for pattern, allowed, engines in RULES:
        own = re.match(pattern, path)
        if own:
            return [prefix.replace("{own}", own[0]) for prefix in allowed], engines
    return None


def resolve(root, source, name):
    """Returns the tree's file that `#include "name"` means, or None for a header from outside."""
    for base in [source.parent, root, root / "capi" / "include"]:
        path = (base / name).resolve()
        if path.is_file() and path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return None


def check_line(root, source, name, quoted):
    """Returns the problem with an include, or None."""
    path = source.relative_to(root).as_posix()
    rule = rule_for(path)
    if rule is None:
        return "stands in a folder that no layer has"
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


def code_of(text):
    """Returns the text with comments blanked out, so that places stay."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0]) if found[0][0] == "/" else found[0]
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def decisions(path, text):
    """Yields places, with their lines, where a name or a text decides and must not."""
    rules = []
    if NO_NAMES.match(path) and not NAMED_PLACES.match(path):
        rules.append((LITERAL, "knows a kind's or a vendor's name; ask its traits, or the vendor"))
    elif NO_COMPARISONS.match(path) and not NAMED_PLACES.match(path):
        rules.append((COMPARISON, "compares with a kind's or a vendor's name; ask its traits, or the vendor"))
    if NO_TEXTS.match(path):
        rules.append((TEXT_DECIDES, "lets the text of a message decide; give the failure a type"))
    if NO_ARGUMENTS.match(path):
        rules.append((ARGUMENT_DECIDES, "lets the name of an argument decide; give it a role in core/ops/ops.def"))
    if NO_FAILURES.match(path):
        rules.append((FAILURE_DECIDES, "lets the text of a failure decide; give the event a kind, or the failure a number"))
    code = code_of(text) if rules else ""
    if NO_FAILURES.match(path) and (calls := set(NAMES_CALL.findall(code))):
        names = "|".join(sorted(calls))
        rules.append((re.compile(rf"(?:starts_with|remove_prefix)\((?:{names})\b"), "cuts a call off a text; ask the error for its call"))
    for pattern, wrong in rules:
        for found in pattern.finditer(code):
            yield f"{path}:{code.count(chr(10), 0, found.start()) + 1} {wrong}: {' '.join(found[0].split())}"


def circles(graph):
    """Returns the circles of a graph {file: included files}, each as a list of files."""
    state, way = {}, []

    def walk(file):
        state[file] = "open"
        way.append(file)
        for other in sorted(graph.get(file, ())):
            if other not in state:
                yield from walk(other)
            elif state[other] == "open":
                yield " -> ".join([*way[way.index(other):], other])
        way.pop()
        state[file] = "done"

    for file in sorted(graph):
        if file not in state:
            yield from walk(file)


def main(root):
    root = pathlib.Path(root).resolve()
    broken, looked_at, graph = [], 0, {}
    for source in tree.files(root, tree.CODE):
        path, text = source.relative_to(root).as_posix(), source.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r"\s*#\s*include\s+[A-Z_a-z]", line):
                broken.append(f"{path}:{number} includes what a macro says; name the file")
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if found:
                looked_at += 1
                wrong = check_line(root, source, found[2], found[1] == '"')
                if wrong:
                    broken.append(f"{path}:{number} {wrong}")
                target = resolve(root, source, found[2])
                if PARTS.match(path) and target and target != path:
                    graph.setdefault(path, set()).add(target)
        broken += decisions(path, text)
    broken += [f"files include one another in a circle: {circle}" for circle in circles(graph)]
    tree.report("includes", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[1])
