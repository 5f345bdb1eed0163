"""Adding dtypes as docs/adding-a-dtype.md says: `add_dtype.py SOURCE_DIR BUILD_DIR WORK_DIR LUA PYTHON [DRIVER]`.

Copies the tree and adds a float of 8 bits and an integer of 16 by only the steps of this page. Then the script generates, and
compiles the files that read the tables of dtypes. With YOKE_SOAK all files are compiled anew, without optimization. Both dtypes
are then used from C, Python and Lua, on the CPU and, if DRIVER is the folder of the fake CUDA driver, on the emulated device.
"""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "add_op"))
import reuse  # noqa: E402
from steps import Steps, copy_tree, run, use_everywhere  # noqa: E402

MOST_FILES = 6  # written by hand for a dtype that is stored
# Files that read the tables of dtypes, a file from each part of the tree: with an unfit table they do not compile.
READERS = ("core/base/dtype.cpp", "kernels/common/names.cpp", "kernels/cpu/simd/copy.cpp", "kernels/cuda/ops/cast.cu",
           "bindings/lua/src/list.c", "bindings/python/src/values/make_list.cpp", "bindings/python/src/values/elements.cpp")


def add_dtypes(tree, page):
    """The library's part of the steps; the others are a test and a line for people."""
    table = "core/base/dtypes.def"
    last = (tree / table).read_text(encoding="utf-8").splitlines()[-1]
    lines = (HERE / "dtypes.def").read_text(encoding="utf-8").strip()
    steps = Steps(tree, page)
    steps.change(table, last, f"{last}\n{lines}")
    run([sys.executable, "-B", tree / "capi/gen_ops.py"])
    return steps.edited


def main(source, finished, work, lua, python, driver=""):
    tree, folder = work / "tree", work / "build"
    page = source / "docs/adding-a-dtype.md"
    copy_tree(source, tree)
    edited = add_dtypes(tree, page)
    if len(edited) > MOST_FILES:
        sys.exit(f"{len(edited)} files were written by hand: {sorted(edited)}; {MOST_FILES} are the most")
    if "YOKE_SOAK" not in os.environ:
        reuse.compile_files(source, finished, tree, folder, READERS, options=["-O0", "-fsyntax-only"])
        print(f"two dtypes, by {len(edited)} file, compile where tables of dtypes are read")
        return
    reuse.build(source, finished, tree, folder, edited, bool(driver), whole=True)
    where = use_everywhere(HERE, tree, folder, lua, python, driver)
    print(f"two dtypes, by {len(edited)} file, were used from C, Python and Lua on {where}")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:4]), *sys.argv[4:])
