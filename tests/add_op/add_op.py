"""Adding an op takes one line, one block and one kernel: `add_op.py SOURCE_DIR BUILD_DIR WORK_DIR CMAKE CXX LUA PYTHON`.

Copies the tree, adds an op so, and to nothing else than these three files; generates, builds, and calls the op from C,
Python and Lua, with its gradient. What the op changes is compiled, and linked with the objects of BUILD_DIR that it leaves
alone (reuse.py); with YOKE_SOAK everything is compiled, as a stranger would.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import reuse

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = ["capi", "cmake", "core", "kernels", "bindings"]


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


def add_line(path, line):
    """Behind the last line of the family [pointwise]."""
    text = path.read_text(encoding="utf-8")
    head, rest = text.split("[pointwise]\n", 1)
    family, others = rest.split("\n\n", 1)
    path.write_text(f"{head}[pointwise]\n{family}\n{line.strip()}\n\n{others}", encoding="utf-8")


def add_block(path, block, before):
    """In front of the file's last lines."""
    text = path.read_text(encoding="utf-8")
    place = text.rindex(before)
    path.write_text(text[:place].rstrip("\n") + "\n" + block + "\n" + text[place:], encoding="utf-8")


def add_op(tree):
    add_line(tree / "core/ops/ops.def", (HERE / "op.def").read_text(encoding="utf-8"))
    add_block(tree / "core/ops/pointwise.cpp", (HERE / "shape.cpp").read_text(encoding="utf-8"), "}  // namespace yoke")
    add_block(tree / "kernels/cpu/simd/pointwise.cpp", (HERE / "kernel.cpp").read_text(encoding="utf-8"), "YOKE_SIMD_END")
    run([sys.executable, "-B", tree / "capi/gen_ops.py", "--append-slots"])


def build_all(tree, folder, cmake, compiler):
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DYOKE_TESTS=OFF", "-DYOKE_CUDA=OFF", "-DYOKE_CPU_ISAS=base",
               f"-DCMAKE_CXX_COMPILER={compiler}"]
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run([cmake, "-S", tree, "-B", folder, *generator, *options])
    run([cmake, "--build", folder, "--parallel", "2", "--target", "yoke", "_yoke", "yoke_lua"])


def use(tree, folder, lua, python):
    program = folder / "use_c"
    run([os.environ.get("CC", "cc"), "-std=c99", "-Wall", "-Wextra", "-Werror", HERE / "use.c", f"-I{tree}/capi/include",
         f"-L{folder}/lib", "-lyoke", "-lm", f"-Wl,-rpath,{folder}/lib", "-o", program])
    # The environment of the build that runs this test must not lend its own library.
    clean = {key: value for key, value in os.environ.items()
             if key not in ("PYTHONPATH", "LUA_PATH", "LUA_CPATH", "LD_LIBRARY_PATH")}
    run([program], env=clean)
    run([folder / "env", python, "-B", HERE / "use.py"], env=clean)
    run([folder / "env", lua, HERE / "use.lua"], env=clean)


def main(source, finished, work, cmake, compiler, lua, python):
    tree, folder = work / "tree", work / "build"
    copy_tree(source, tree)
    add_op(tree)
    if "YOKE_SOAK" in os.environ:
        build_all(tree, folder, cmake, compiler)
    else:
        reuse.build(source, finished, tree, folder, run)
    use(tree, folder, lua, python)
    print("an op of one line, one block and one kernel was called from C, Python and Lua")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:4]), *sys.argv[4:])
