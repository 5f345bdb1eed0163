"""Program of tests/python/test_state_file_systems.py on each file system: `file_system_run.py FOLDER`. Prints a line for each
defect.
"""
import os
import subprocess
import sys

import yoke

WRITER = """
import sys
import yoke
try:
    yoke.CheckpointManager(sys.argv[1]).save(9, {"k": 9}, blocking=True)
except yoke.StateError as error:
    print("refused" if "writes to" in str(error) else error)
"""


def state_of(version, count=3):
    return {f"part.{i}": yoke.full((1000,), float(version)) for i in range(count)} | {"k": version}


def version_of(state):
    """Returns the version, or -1 if the parts have different versions."""
    parts = [value for name, value in state.items() if name != "k"]
    same = all(bool((part == state["k"]).all()) for part in parts)
    return state["k"] if same and parts else -1


def files(folder):
    """Saves files and sets over each other, while earlier states are in use; yields the defects."""
    path = os.path.join(folder, "state.safetensors")
    held = []
    for version, options in enumerate([{}, {}, {"blocking": False}, {"max_shard": 5000}, {"max_shard": 5000, "blocking": False}, {}], 1):
        yoke.save(path, state_of(version), **options).wait()
        held.append(yoke.load(path))
        found = [version_of(held[-1]), version_of(yoke.load(path, mmap=False)), yoke.load_info(path)["kind"]]
        if found != [version, version, "set" if "max_shard" in options else "file"]:
            yield f"version {version} of the file is {found}"
    if [version_of(state) for state in held] != [1, 2, 3, 4, 5, 6]:
        yield "what was loaded has changed"
    os.chmod(path, 0o600)
    yoke.save(path, state_of(7))
    if os.stat(path).st_mode & 0o077:
        yield "a file that others may not read became one that they may"


def steps(folder, keeps=True, locks=True):
    """Saves steps, some steps anew, while earlier states are in use; yields the defects."""
    run = os.path.join(folder, "run")
    before = yoke.CheckpointManager(run, keep=2)
    held = [before.load()] if keeps else []
    if before.latest() != 2:
        yield f"the newest step is {before.latest()} in the beginning"
    manager = yoke.CheckpointManager(run, keep=2)
    for version, step in enumerate([1, 2, 3, 2, 2, 4], 11):
        manager.save(step, state_of(version), blocking=version % 2 == 0).wait()
        state = manager.load()
        if version_of(state) != version or manager.latest() != step:
            yield f"version {version} of step {step} is {version_of(state)}, the newest step {manager.latest()}"
        held += [state] if keeps else []
        del state
    if manager.steps() != [2, 4] or version_of(manager.load(step=2)) != 15:
        yield f"the steps are {manager.steps()}"
    if -1 in map(version_of, held):
        yield "what was loaded has changed"
    if locks:
        other = subprocess.run([sys.executable, "-c", WRITER, run], capture_output=True, text=True, timeout=120)
        if other.stdout != "refused\n":
            yield f"another writer is not refused: {other.stdout}{other.stderr}"
    del held
    manager.save(5, state_of(17), blocking=True)
    if version_of(manager.load()) != 17 or len(manager.steps()) != 2:
        yield f"the steps are {manager.steps()} in the end"
    for left in os.listdir(run):
        if ".yoke-" in left:
            yield f"{left} is left"


if __name__ == "__main__":
    if sys.argv[2:] == ["before"]:  # prepares content before the file system is mounted
        for number in (1, 2):
            yoke.CheckpointManager(os.path.join(sys.argv[1], "run"), keep=2).save(number, state_of(number), blocking=True)
        sys.exit()
    for part, options in ((files, {}), (steps, {"keeps": "alone" not in sys.argv, "locks": "unlocked" not in sys.argv})):
        try:
            for wrong in part(sys.argv[1], **options):
                print("wrong:", wrong)
        except yoke.Error as error:
            print(f"wrong: {part.__name__}: {type(error).__name__}: {error}")
