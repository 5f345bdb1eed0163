"""Steps of docs/adding-*.md on a copy of the tree, and programs in three languages that use the result."""
import os
import shutil
import subprocess
import sys

FOLDERS = ["capi", "cmake", "core", "kernels", "bindings", "tests/emu", "tests/fakes"]


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-6000:]}{done.stderr[-6000:]}")
    return done.stdout


def copy_tree(source, tree):
    """Copies the parts for a build, without leftovers of an earlier run. Times are kept, so that the compiler cache recognizes the
    files.
    """
    shutil.rmtree(tree, ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(source / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in ("CMakeLists.txt", "LICENSE", "README.md"):
        if (source / name).exists():
            shutil.copy2(source / name, tree / name)


class Steps:
    """Changes of files that the page of the steps names."""

    def __init__(self, tree, page):
        self.tree, self.name, self.page, self.edited = tree, page.name, page.read_text(encoding="utf-8"), set()

    def change(self, path, old, new):
        """`new` in place of the last `old` of a file."""
        if f"`{path}`" not in self.page:
            sys.exit(f"{self.name} does not name {path}")
        head, found, rest = (self.tree / path).read_text(encoding="utf-8").rpartition(old)
        if not found:
            sys.exit(f"{path} has no {old!r}")
        (self.tree / path).write_text(head + new + rest, encoding="utf-8")
        self.edited.add(path)


def use(programs, tree, folder, lua, python, **variables):
    """Runs use.c, use.py and use.lua of a folder with what was built."""
    program = folder / "use_c"
    run([os.environ.get("CC", "cc"), "-std=c99", "-Wall", "-Wextra", "-Werror", programs / "use.c", f"-I{tree}/capi/include",
         f"-L{folder}/lib", "-lyoke", "-lm", f"-Wl,-rpath,{folder}/lib", "-o", program])
    # The environment of the running build would provide the wrong library.
    clean = {key: value for key, value in os.environ.items()
             if key not in ("PYTHONPATH", "LUA_PATH", "LUA_CPATH", "LD_LIBRARY_PATH")} | variables
    run([program], env=clean)
    run([folder / "env", python, "-B", programs / "use.py"], env=clean)
    run([folder / "env", lua, programs / "use.lua"], env=clean)


def use_everywhere(programs, tree, folder, lua, python, driver):
    """On the CPU and, where `driver` is the fake CUDA driver's folder, on the emulated device; says where."""
    use(programs, tree, folder, lua, python, YOKE_DEVICE="cpu")
    if not driver:
        return "cpu"
    use(programs, tree, folder, lua, python, YOKE_DEVICE="cuda", YOKE_CUDA_LIB_PATH=driver, LD_LIBRARY_PATH=driver)
    return "cpu and cuda, emulated"
