"""Adding an op as docs/adding-an-op.md says: `add_op.py SOURCE_DIR BUILD_DIR WORK_DIR CMAKE CXX LUA PYTHON [DRIVER]`.

Copies the tree and takes only these steps. Then the script generates, builds, and calls the op from C, Python and Lua, with its
gradient. The calls run on the CPU and, if DRIVER is the folder of the fake CUDA driver, on the emulated device. Only files that
the op changes are compiled, and linked with the other objects of BUILD_DIR (reuse.py). With YOKE_SOAK all files are also compiled
for the CPU, as a stranger would.
"""
import os
import pathlib
import shutil
import sys

import reuse
from steps import Steps, copy_tree, run, use, use_everywhere

HERE = pathlib.Path(__file__).resolve().parent


def add_op(tree, page):
    line, block, functor = ((HERE / name).read_text(encoding="utf-8") for name in ("op.def", "gradient.cpp", "functor.h"))
    steps = Steps(tree, page)
    steps.change("core/ops/ops.def", "[pointwise]\n", f"[pointwise]\n{line}")
    steps.change("core/ops/pointwise.cpp", "}  // namespace yoke", f"{block}\n}}  // namespace yoke")
    included = '#include "kernels/common/elementwise.h"\n'
    steps.change("kernels/common/pointwise_ops.h", included, f"{included}\nYOKE_KERNELS_BEGIN\n\n{functor}\nYOKE_KERNELS_END\n")
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


def main(source, finished, work, cmake, compiler, lua, python, driver=""):
    tree, folder = work / "tree", work / "build"
    copy_tree(source, tree)
    edited = add_op(tree, source / "docs/adding-an-op.md")
    if "YOKE_SOAK" in os.environ:
        build_all(tree, work / "whole", cmake, compiler)
        use(HERE, tree, work / "whole", lua, python, YOKE_DEVICE="cpu")
    reuse.build(source, finished, tree, folder, edited, bool(driver))
    where = use_everywhere(HERE, tree, folder, lua, python, driver)
    print(f"the new op was called from C, Python and Lua on {where}")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:4]), *sys.argv[4:])
