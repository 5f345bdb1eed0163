"""libyoke exports exactly the names of its headers: `check_symbols.py SOURCE_DIR BUILD_DIR`.

Three lists must be equal: the YOKE_API declarations of the public headers, the linker's version script, and the library's dynamic
symbols. If there is an MPI module, it must have a single symbol. If there is a CUDA module, it must register no handler of
exit(). Such a handler could run while the module still loads in another thread, and would destroy the objects used by the load.
"""
import pathlib
import re
import subprocess
import sys

import tree


def declared(root):
    """Functions that the public headers declare with YOKE_API."""
    names = set()
    for header in (root / "capi" / "include" / "yoke").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        names |= set(re.findall(r"\bYOKE_API\b[^;(]*?\b(yoke_\w+)\s*\(", text))
    return names


def allowed(root):
    """Returns names that the version script makes global."""
    text = (root / "capi" / "libyoke.map").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/|#[^\n]*", "", text, flags=re.S)
    return set(re.findall(r"\b(yoke_\w+)\s*;", text.split("local:")[0]))


def exported(library):
    """Returns defined dynamic symbols, without the name of the version itself."""
    command = ["nm", "-D", "--defined-only", "--without-symbol-versions", str(library)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1] for line in lines if line.split()[-2] != "A"}


def differences(lists):
    """A line for each name that is not in all of the named sets."""
    for name in sorted(set().union(*lists.values())):
        missing = [where for where, names in lists.items() if name not in names]
        if missing:
            yield f"{name} is in {', '.join(set(lists) - set(missing))}, not in {', '.join(missing)}"


def exit_handlers(module):
    """Yields the functions by which a module registers exit handlers."""
    if not module.is_file():
        return
    lines = subprocess.run(["nm", "-D", "--undefined-only", str(module)], check=True, capture_output=True, text=True).stdout
    for name in re.findall(r"U (\w*atexit\w*)", lines):
        yield f"{module.name} asks for {name}: it is to be bound in kernels/cuda/host/exit_handlers.c"


def foreign_names(module):
    """Yields exports of an engine-only module other than the contract's single symbol."""
    names = exported(module) if module.is_file() else {"yoke_comm_get_v1"}
    for name in sorted(names ^ {"yoke_comm_get_v1"}):
        yield f"{module.name} {'exports' if name in names else 'lacks'} {name}: its one symbol is yoke_comm_get_v1"


def main(root, build):
    root = pathlib.Path(root)
    lists = {
        "the headers": declared(root),
        "capi/libyoke.map": allowed(root),
        "libyoke.so": exported(pathlib.Path(build) / "lib" / "libyoke.so"),
    }
    libraries = pathlib.Path(build) / "lib"
    wrong = [*differences(lists), *foreign_names(libraries / "libyoke_mpi.so"), *exit_handlers(libraries / "libyoke_cuda.so")]
    tree.report("symbols", len(lists["libyoke.so"]), wrong)


if __name__ == "__main__":
    main(*sys.argv[1:])
