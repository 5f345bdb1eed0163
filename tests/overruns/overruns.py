#!/usr/bin/env python3
"""Checks whether the daily tests under sanitizers find an overrun.  overruns.py BUILD, a build of the preset asan.

Each overrun is planted in a CPU kernel or a binding. The script links the library with this new object beside the build's
objects, and runs the tests that must stop there. The exit status is 1 if an overrun was not caught.
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/add_op")]
import check  # noqa: E402
import reuse  # noqa: E402

EDGES = "python/test_ops_edges"
FOUND = ("AddressSanitizer", "runtime error:")


@dataclasses.dataclass
class Plant:
    """Edit, and the sanitized test of the edited code; `op` chooses among the edge cases."""
    file: str
    right: str
    wrong: str
    test: str = EDGES
    op: str = ""


PLANTS = [
    Plant("kernels/cpu/simd/softmax.cpp", "k < n; k++) out[k] *= scale;\n}", "k <= n; k++) out[k] *= scale;\n}", op="softmax"),
    Plant("kernels/cpu/simd/scan.cpp", "for (; i < n; i++) put(", "for (; i <= n; i++) put(", op="cumsum"),
    Plant("kernels/cpu/simd/embedding.cpp", "memcpy(to, from, (size_t)width", "memcpy(to, from, (size_t)(width + 1)", op="embedding"),
    Plant("kernels/cpu/simd/gather.cpp", "i < n; i++) {\n                int64_t at", "i <= n; i++) {\n                int64_t at", op="gather"),
    Plant("kernels/cpu/simd/mask.cpp", "i < columns; i++) *(T *)(to", "i <= columns; i++) *(T *)(to", op="triu"),
    Plant("kernels/cpu/simd/argmax.cpp", "(const T *)cursor.data[1], stride, n)", "(const T *)cursor.data[1], stride, n + 1)", op="argmax"),
    Plant("kernels/cpu/simd/multiply.cpp", "j < n; j++) to[j * stride]", "j <= n; j++) to[j * stride]", op="matmul"),
    Plant("kernels/cpu/simd/optim.cpp", "i < n; i++) p[i] = adam(", "i <= n; i++) p[i] = adam(", test="python/test_optim"),
    Plant("bindings/lua/src/list.c", "lua_newuserdatauv(L, (size_t)*bytes + 1, 0)", "lua_newuserdatauv(L, (size_t)*bytes / 2, 0)",
          test="lua/tensor_spec"),
    Plant("bindings/python/src/values/make.cpp", "packed.resize(static_cast<size_t>(view.len))",
          "packed.resize(static_cast<size_t>(view.len - 1))", test="python/test_binding_tensor"),
]


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def library_of(plant):
    """Returns (target, folder) of a file's library."""
    target = {"lua": "yoke_lua", "python": "_yoke"}.get(plant.file.split("/")[1], "yoke")
    return target, reuse.LIBRARIES[target]


def plant_in(plant, build, folder):
    """Links the library with the overrun, at the build's place under `folder`."""
    text = (ROOT / plant.file).read_text()
    if text.count(plant.right) != 1:
        sys.exit(f"{plant.file} does not hold this once, so that the overrun has no place: {plant.right}")
    source = folder / "source" / plant.file
    source.parent.mkdir(parents=True)
    source.write_text(text.replace(plant.right, plant.wrong))
    target, place = library_of(plant)
    link = reuse.link_of(build, target)
    part, files, arguments = next((part, files, arguments) for part, (files, arguments) in reuse.commands(ROOT, build).items()
                                  if plant.file in files and part in link)
    if len(files) > 1:  # compiled together with other files
        batch = folder / "source/batch.cpp"
        batch.write_text("".join(f'#include "{source if file == plant.file else ROOT / file}"\n' for file in files))
        source = batch
    arguments[arguments.index("-o") + 1] = str(folder / "planted.o")
    arguments[arguments.index("-c") + 1] = str(source)
    # The source includes files of its own folder, so the folder must be on the path.
    run([*arguments, f"-I{(ROOT / plant.file).parent}", "-Wno-error"], cwd=build)
    output = link.index("-o") + 1
    built = folder / place / pathlib.Path(link[output]).name
    built.parent.mkdir(parents=True)
    link = [str(folder / "planted.o") if argument == part else argument for argument in link]
    link[output] = str(built)
    run(link, cwd=build)
    if target == "yoke":
        (built.parent / "libyoke.so.0").symlink_to(built.name)
    else:
        for script in (build / place).iterdir():
            if script.name != built.name:
                (built.parent / script.name).symlink_to(script)


def caught(plant, tests, folder):
    command, environment = tests.tests[plant.test]["command"], os.environ | tests.environment(plant.test)
    place = next(i for i, part in enumerate(command) if part.endswith("measured.sh")) + 1
    planted = ["env", f"LD_LIBRARY_PATH={folder}/lib:{tests.folder}/lib", f"PYTHONPATH={folder}/python:{tests.folder}/python",
               f"LUA_PATH={folder}/lua/?.lua;{folder}/lua/?/init.lua;{tests.folder}/lua/?.lua;{tests.folder}/lua/?/init.lua;;",
               f"LUA_CPATH={folder}/lua/?.so;{tests.folder}/lua/?.so;;"]
    # pytest would capture the sanitizer's output, and lose the output at the crash.
    aloud = ["-s"] if "pytest" in command else []
    command = [*command[:place], *planted, *command[place:], *aloud, *([f"--op={plant.op}"] if plant.op else [])]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    return done.returncode != 0 and any(word in done.stdout + done.stderr for word in FOUND)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    tests, folder, missed = check.Build(build), build / "overruns", 0
    for plant in PLANTS:
        shutil.rmtree(folder, ignore_errors=True)
        plant_in(plant, build, folder)
        good = caught(plant, tests, folder)
        missed += not good
        print(f"{'caught' if good else 'MISSED'}  {plant.file}: {plant.wrong.splitlines()[0]}  ({plant.test} {plant.op})", flush=True)
    print(f"{len(PLANTS) - missed} of {len(PLANTS)} overruns were caught")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
