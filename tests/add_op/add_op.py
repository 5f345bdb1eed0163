"""Adding an op as docs/adding-an-op.md says: `add_op.py SOURCE_DIR BUILD_DIR WORK_DIR CMAKE CXX LUA PYTHON [DRIVER]`.

Copies the tree, takes these steps and no other; generates, builds, and calls the op from C, Python and Lua, with its
gradient, on the CPU and, where DRIVER is the folder of the fake CUDA driver, on the emulated device. What the op changes is
compiled, and linked with the objects of BUILD_DIR that it leaves alone (reuse.py); with YOKE_SOAK everything is compiled
for the CPU besides, as a stranger would.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import reuse

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = ["capi", "cmake", "core", "kernels", "bindings", "tests/emu", "tests/fakes"]


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-6000:]}{done.stderr[-6000:]}")
    return done.stdout


def copy_tree(source, tree):
    """The parts that are built, without what an earlier run has left there; times stay, so that the compiler cache knows them."""
    shutil.rmtree(tree, ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(source / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in ("CMakeLists.txt", "LICENSE", "README.md"):
        if (source / name).exists():
            shutil.copy2(source / name, tree / name)


class Steps:
    """Changes of files that the page of the steps names."""

    def __init__(self, tree, page):
        self.tree, self.page, self.edited = tree, page.read_text(encoding="utf-8"), set()

    def change(self, path, old, new):
        """`new` in place of the last `old` of a file."""
        if f"`{path}`" not in self.page:
            sys.exit(f"docs/adding-an-op.md does not name {path}")
        head, found, rest = (self.tree / path).read_text(encoding="utf-8").rpartition(old)
        if not found:
            sys.exit(f"{path} has no {old!r}")
        (self.tree / path).write_text(head + new + rest, encoding="utf-8")
        self.edited.add(path)


def add_op(tree, page):
    line, block, functor = ((HERE / name).read_text(encoding="utf-8") for name in ("op.def", "shape.cpp", "functor.h"))
    steps = Steps(tree, page)
    steps.change("core/ops/ops.def", "[pointwise]\n", f"[pointwise]\n{line}")
    steps.change("core/ops/pointwise.cpp", "}  // namespace yoke", f"{block}\n}}  // namespace yoke")
    steps.change("kernels/common/arithmetic.h", "YOKE_KERNELS_END", f"{functor}\nYOKE_KERNELS_END")
    steps.change("kernels/common/pointwise_ops.h", "    UNARY(reciprocal, ",
                 "    UNARY(test_cube, for_float, TestCube, kGrain) \\\n    UNARY(reciprocal, ")
    steps.change("kernels/cuda/ops/arithmetic.cu", "OneOf<kernels::Sqrt, ", "OneOf<kernels::TestCube, kernels::Sqrt, ")
    run([sys.executable, "-B", tree / "capi/gen_ops.py"])
    return steps.edited


def build_all(tree, folder, cmake, compiler):
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DYOKE_TESTS=OFF", "-DYOKE_CUDA=OFF", "-DYOKE_CPU_ISAS=base",
               f"-DCMAKE_CXX_COMPILER={compiler}"]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run([cmake, "-S", tree, "-B", folder, *generator, *options])
    run([cmake, "--build", folder, "--parallel", "2", "--target", "yoke", "_yoke", "yoke_lua"])


def use(tree, folder, lua, python, **variables):
    program = folder / "use_c"
    run([os.environ.get("CC", "cc"), "-std=c99", "-Wall", "-Wextra", "-Werror", HERE / "use.c", f"-I{tree}/capi/include",
         f"-L{folder}/lib", "-lyoke", "-lm", f"-Wl,-rpath,{folder}/lib", "-o", program])
    # The environment of the build that runs this test must not lend its own library.
    clean = {key: value for key, value in os.environ.items()
             if key not in ("PYTHONPATH", "LUA_PATH", "LUA_CPATH", "LD_LIBRARY_PATH")} | variables
    run([program], env=clean)
    run([folder / "env", python, "-B", HERE / "use.py"], env=clean)
    run([folder / "env", lua, HERE / "use.lua"], env=clean)


def main(source, finished, work, cmake, compiler, lua, python, driver=""):
    tree, folder = work / "tree", work / "build"
    copy_tree(source, tree)
    edited = add_op(tree, source / "docs/adding-an-op.md")
    if "YOKE_SOAK" in os.environ:
        build_all(tree, work / "whole", cmake, compiler)
        use(tree, work / "whole", lua, python, YOKE_DEVICE="cpu")
    reuse.build(source, finished, tree, folder, run, edited, bool(driver))
    use(tree, folder, lua, python, YOKE_DEVICE="cpu")
    if driver:
        use(tree, folder, lua, python, YOKE_DEVICE="cuda", YOKE_CUDA_LIB_PATH=driver, LD_LIBRARY_PATH=driver)
    print(f"the new op was called from C, Python and Lua on {'cpu and cuda, emulated' if driver else 'cpu'}")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:4]), *sys.argv[4:])
