"""Checks the shape of the tree: `check_shape.py SOURCE_DIR [BUILD_DIR | --list]`; --list names all counted places.

For the product's C and C++:
- A folder has few units; a header and its source are a unit. Folders with a family member in each file are in FAMILIES.
- A class declared in a header has its functions in a single source, and few functions. Friend functions count; deleted and
  defaulted functions do not.
- A type with a mutex has few other fields. Fields of structs in the same file count if the type holds or owns the struct, unless
  the struct has a mutex.
- A folder of core with more than README_FROM units has a README.md, which lists exactly the folder's headers.
- Headers of a folder do not define two types of equal name, because the linker would confuse them.
- An idea has a single name: no word of RETIRED, and few functions with the meaning "this group failed". Threads of core are
  started only by start_thread, and eight lines of code do not occur twice.

BOUNDS has the limits. Figures above a limit are in ABOVE with today's number, which may only fall.
"""
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

import tree

PRODUCT = ("core/", "kernels/", "bindings/", "capi/src/")
SOURCES = {".h", ".cuh", ".c", ".cpp", ".cu"}
HEADERS = {".h", ".cuh"}
# Folders with a family member in each file, or the files of a folder that are members.
FAMILIES = {"kernels/common", "kernels/cpu/simd", "kernels/cuda/ops"}
OPS_FAMILIES = {f"core/ops/{name}" for name in (
    "activation arrange attention conv create einsum index inplace loss matmul move norm norm_channels optim pointwise pool random "
    "reduce scalar scaled_mm shape softmax sort window").split()}
RETIRED = re.compile(r"Hall|(?<!Virtualization)Guest|Comer|Reunion|Meeting|Arrival|(?<![a-z])(?:hall|comer|reunion|meeting|arrival)(?![a-z])")
FAILED = re.compile(r"(?:\w+_)?(?:fail|failed|lose|cause|agreed)(?:_\w+)?")
# Refusals of what a caller gave, before there is a group.
OTHER_FAILURES = set("fail_init fail_list fail_short fail_to_listen fail_unreached fail_url fail_without_network has_default_failed or_fail".split())
FAILED_FOLDERS = ("core/comm/", "core/parallel/", "core/rendezvous/")
STARTS_THREADS = "core/base/start_thread"
TWIN = 8  # lines
# Limits of figures for a folder, for a type, and for the whole tree.
BOUNDS = {"units of a folder": 40, "sources of a class": 1, "functions of a class": 40, "fields beside a mutex": 16,
          "types of one name in headers of a folder": 1, "retired names": 0, "functions for a failed group": 8, "threads that are started by hand": 0, "twins": 2}
# Figures above a bound: each may only fall, and must leave this table when the bound is met.
ABOVE = {}
README_FROM, README_LINES = 12, 60
# Folders without a README.md so far.
WITHOUT_README = set()
WHOLE = {"retired names", "functions for a failed group", "threads that are started by hand", "twins"}


def code_of(text):
    """Returns the text without comments and literals; lines stay."""
    blank = lambda found: '""' if found[0][0] == '"' else "0" if found[0][0] == "'" else re.sub(r"[^\n]", "", found[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


class Product:
    """The product's files, with the findings of ctags."""

    def __init__(self, root):
        self.root = root
        self.code = {}
        for path in tree.files(root, SOURCES):
            name = path.relative_to(root).as_posix()
            if name.startswith(PRODUCT) and not tree.is_generated(path):
                self.code[name] = code_of(path.read_text(encoding="utf-8"))
        command = ["ctags", "--output-format=json", "--languages=C++", "--langmap=C++:.h.cuh.c.cpp.cu", "--kinds-C++=+pf", "--fields=+nSe",
                   "-f", "-", "-L", "-"]
        if not shutil.which("ctags"):
            sys.exit("ctags is not here, which finds the types and functions: install Debian's universal-ctags")
        told = subprocess.run(command, cwd=root, input="\n".join(self.code), capture_output=True, text=True, check=True).stdout
        self.tags = [json.loads(line) for line in told.splitlines()]
        self.types = {}  # name: tag
        for tag in self.tags:
            if tag["kind"] in ("class", "struct"):
                self.types.setdefault(full_name(tag), tag)

    def lines(self, tag):
        return "\n".join(self.code[tag["path"]].splitlines()[tag["line"] - 1:tag.get("end", tag["line"])])

    def declared(self):
        """Types that a header declares."""
        return {name: tag for name, tag in self.types.items() if pathlib.PurePath(tag["path"]).suffix in HEADERS}


def full_name(tag):
    return f"{tag['scope']}::{tag['name']}" if "scope" in tag else tag["name"]


def units(product):
    """Returns {folder: its units}."""
    folders = collections.defaultdict(set)
    for path in product.code:
        stem = path.rsplit(".", 1)[0]
        folder = stem.rsplit("/", 1)[0]
        if folder not in FAMILIES and stem not in OPS_FAMILIES:
            folders[folder].add(stem)
    return folders


def functions(product):
    """Returns {type: functions}, {type: sources with definitions}."""
    declared, found, sources = product.declared(), collections.defaultdict(set), collections.defaultdict(set)
    for tag in product.tags:
        owner = tag.get("scope")
        if owner not in declared or tag["kind"] not in ("prototype", "function"):
            continue
        text = product.code[tag["path"]].splitlines()[tag["line"] - 1]
        if re.search(r"=\s*(delete|default)\s*;", text):
            continue
        given = tag.get("signature", "()")
        found[owner].add((tag["name"], given.count(",") + (re.sub(r"\s", "", given)[:2] != "()")))
        if tag["kind"] == "function" and pathlib.PurePath(tag["path"]).suffix not in HEADERS:
            sources[owner].add(tag["path"])
    for name, tag in declared.items():
        for friend in re.findall(r"\bfriend\s+(?!class\b|struct\b)[^;{]*?(\w+)\s*\(", product.lines(tag)):
            found[name].add((friend, -1))
    return found, sources


def fields(product):
    """Returns {type with a mutex: other fields}, including fields of structs that the type holds or owns."""
    members = collections.defaultdict(list)
    for tag in product.tags:
        if tag["kind"] == "member" and "scope" in tag:
            members[tag["scope"]].append((tag["name"], tag.get("typeref", "").split(":", 1)[-1]))
    is_mutex = lambda text: re.fullmatch(r"(?:mutable )?(?:std::(?:\w*_)?mutex|(?:yoke::)?Mutex)", text)
    by_name = collections.defaultdict(set)
    for name in members:
        by_name[name.rsplit("::", 1)[-1]].add(name)
    aliases = {(tag["path"], tag["name"]): tag.get("typeref", "").split(":", 1)[-1] for tag in product.tags if tag["kind"] == "typedef"}
    has_mutex = {name for name, own in members.items() if any(is_mutex(text) for _, text in own)}

    def held(owner, text, seen=()):
        """Yields the structs that a field of this type holds or owns."""
        if "*" in text or "&" in text or re.search(r"\b(?:weak_ptr|shared_ptr|Ref|function)\b", text):
            return
        file = product.types.get(owner, {}).get("path")
        for word in re.findall(r"\w+", text):
            if word not in seen:
                yield from held(owner, aliases.get((file, word), ""), (*seen, word))
            for name in by_name.get(word, ()):
                tag = product.types.get(name, {})
                if tag.get("kind") == "struct" and tag["path"] == file and name not in has_mutex and name != owner:
                    yield name

    def count(owner, name):
        found = []
        for field, text in members[name]:
            if is_mutex(text):
                continue
            inner = [each for struct in held(owner, text) for each in count(owner, struct)]
            found += inner or [f"{name}::{field}"]
        return found

    return {name: count(name, name) for name in has_mutex}


def named_alike(product):
    """Returns {folder and type: how many headers define it}, of types at file scope."""
    headers = collections.defaultdict(set)
    for tag in product.tags:
        path = pathlib.PurePath(tag["path"])
        if tag["kind"] in ("class", "struct") and path.suffix in HEADERS and tag.get("scopeKind", "namespace") == "namespace":
            headers[f"{path.parent} {full_name(tag)}"].add(path)
    return headers


def retired(product):
    names = collections.Counter()
    for code in product.code.values():
        names.update(word for word in re.findall(r"\b[A-Za-z_]\w*", code) if RETIRED.search(word))
    return sorted(names)


def failed(product):
    return sorted({tag["name"] for tag in product.tags if tag["kind"] in ("prototype", "function") and tag["path"].startswith(FAILED_FOLDERS)
                   and FAILED.fullmatch(tag["name"]) and tag["name"] not in OTHER_FAILURES})


def threads(product):
    return [f"{path}:{code[:found.start()].count(chr(10)) + 1}" for path, code in sorted(product.code.items())
            if path.startswith("core/") and not path.startswith(STARTS_THREADS)
            for found in re.finditer(r"\bstd::thread\s*(?:[({](?!\s*[)}])|\w+\s*[({]\s*(?!const\b)[\[\w])|std::async\(|threads\w*\.emplace_back\(", code)]


def twins(product):
    """Returns places where TWIN lines of code occur again: for each pair of files the first place."""
    first, found = {}, {}
    for path, code in sorted(product.code.items()):
        lines = [(number, " ".join(line.split())) for number, line in enumerate(code.splitlines(), 1)]
        lines = [(number, line) for number, line in lines if re.search(r"\w\w", line) and not line.startswith(("#", "using ", "namespace", "case "))]
        for at in range(len(lines) - TWIN + 1):
            window = tuple(line for _, line in lines[at:at + TWIN])
            number = lines[at][0]
            before = first.setdefault(window, (path, number))
            if before == (path, number) or before[0] == path and abs(before[1] - number) < TWIN:
                continue
            found.setdefault((before[0], path), f"{before[0]}:{before[1]} and {path}:{number}")
    return sorted(found.values())


def figures(product):
    """Returns {figure: {name: number}}; a figure of the whole tree has an entry of 1 for each place."""
    owned, sources = functions(product)
    of_each = {"units of a folder": units(product), "sources of a class": sources, "functions of a class": owned,
               "fields beside a mutex": fields(product), "types of one name in headers of a folder": named_alike(product)}
    listed = {"retired names": retired(product), "functions for a failed group": failed(product),
              "threads that are started by hand": threads(product), "twins": twins(product)}
    return ({figure: {name: len(own) for name, own in table.items()} for figure, table in of_each.items()}
            | {figure: collections.Counter(names) for figure, names in listed.items()})


def readme_faults(product):
    """Yields the problems of READMEs in core's folders."""
    headers, stems = collections.defaultdict(set), collections.defaultdict(set)
    for path in product.code:
        folder, name = path.rsplit("/", 1)
        stems[folder].add(name.rsplit(".", 1)[0])
        if name.endswith(".h"):
            headers[folder].add(name)
    for folder in sorted(folder for folder in stems if folder.startswith("core/")):
        page = product.root / folder / "README.md"
        if not page.exists():
            if len(stems[folder]) > README_FROM and folder not in WITHOUT_README:
                yield f"{folder} has {len(stems[folder])} units and no README.md"
            continue
        if folder in WITHOUT_README:
            yield f"{folder} has a README.md: take it out of WITHOUT_README"
        lines = page.read_text(encoding="utf-8").splitlines()
        if len(lines) > README_LINES:
            yield f"{folder}/README.md has {len(lines)} lines, and may have {README_LINES}"
        listed = {found[1] for line in lines if (found := re.match(r"\| `(\w+\.h)` ", line))}
        for name in sorted(listed ^ headers[folder]):
            yield f"{folder}/README.md lists {name}, which is not there" if name in listed else f"{folder}/README.md lacks {name}"


def faults(figure, table):
    """Yields figures above the bound, or below the number in ABOVE."""
    bound, above = BOUNDS[figure], ABOVE.get(figure, {})
    if figure in WHOLE:
        table, above = {"the tree": sum(table.values())}, {"the tree": above or bound}
    for name in sorted(table.keys() | above.keys()):
        number, most = table.get(name, 0), above.get(name, bound)
        if number > most:
            yield f"{figure}: {name} has {number}, and may have {most}"
        elif most > bound and number < most:
            yield f"{figure}: {name} has {number} now; note that in ABOVE instead of {most}"


def main(root, *options):
    product = Product(pathlib.Path(root).resolve())
    broken = []
    for figure, table in figures(product).items():
        over = [name for name, number in table.items() if number > BOUNDS[figure]]
        print(f"{figure}: {sum(table.values())} in all, at most {BOUNDS[figure]}" if figure in WHOLE else
              f"{figure}: at most {max(table.values(), default=0)}; above {BOUNDS[figure]}: {len(over)}")
        if "--list" in options:
            print(*(f"    {number} {name}" for name, number in sorted(table.items(), key=lambda each: (-each[1], each[0]))), sep="\n")
        broken += faults(figure, table)
    tree.report("shapes", len(product.code), broken + [*readme_faults(product)])


if __name__ == "__main__":
    main(*sys.argv[1:])
