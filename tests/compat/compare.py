"""Runs scripts written for PyTorch under yoke.compat.torch, and compares their first 20 losses with PyTorch's.

    compare.py [--torch PYTHON [--write] [--alone]] [NAME...]

With --torch, PYTHON runs each script under PyTorch too, and --write keeps the losses in golden/. Without --torch, PyTorch's losses are
those of golden/. --alone runs PyTorch's side only. table.json has a line for a script with several ranks, with a wider tolerance, or with
losses that do not fall. Exits with 1 if a script differs.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COUNT = 20  # losses that are compared
TABLE = json.loads((HERE / "table.json").read_text())
NAMES = sorted(path.stem for path in (HERE / "scripts").glob("*.py"))
ONE_THREAD = {"OMP_NUM_THREADS": "1", "YOKE_NUM_THREADS": "1"}
COMMAND = "python tests/compat/compare.py --torch PYTHON --write"


class Script:
    """A script and its line of the table."""

    def __init__(self, name):
        self.name, self.path = name, HERE / "scripts" / f"{name}.py"
        self.golden = HERE / "golden" / f"{name}.json"
        line = TABLE.get(name, {})
        self.ranks, self.tolerance = line.get("ranks", 1), line.get("tolerance", 1e-3)
        self.falls = not line.get("does not fall")
        self.error = float("nan")  # largest distance of two losses in the last comparison

    def losses(self, side, python=sys.executable, torch=None):
        """Runs the script on a side; returns {"version": …, "losses": […]}, or raises RuntimeError with the end of the output.

        `torch` is a Python with PyTorch, whose torchrun starts the ranks.
        """
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder) / "result.json"
            command = [python, "-B", str(HERE / "one.py"), side, str(self.path), str(result)]
            environments = [{}]
            if self.ranks > 1 and torch:
                launcher = "torch.distributed.run --standalone --no-python --nproc-per-node".split()
                command = [torch, "-m", *launcher, str(self.ranks), *command]
            elif self.ranks > 1:
                environments = _ranks(self.ranks)
            running = [subprocess.Popen(command, cwd=folder, env=os.environ | ONE_THREAD | each, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True) for each in environments]
            outputs = [each.communicate(timeout=300)[0] for each in running]
            for each, output in zip(running, outputs):
                if each.returncode:
                    raise RuntimeError("\n".join(output.splitlines()[-12:]))
            return json.loads(result.read_text())

    def faults(self, ours, theirs):
        """Returns what is wrong with the losses beside PyTorch's, or ""."""
        if len(theirs) < COUNT or len(ours) != len(theirs):
            return f"{len(ours)} losses, and {len(theirs)} of PyTorch; {COUNT} are needed"
        worst = max(range(COUNT), key=lambda i: _error(ours[i], theirs[i]))
        self.error = _error(ours[worst], theirs[worst])
        if not self.error <= self.tolerance:
            return f"loss {worst} is {ours[worst]:.6g}, PyTorch's {theirs[worst]:.6g}, which is more than {self.tolerance:g} apart"
        if self.falls and not sum(ours[-5:]) < sum(ours[:5]):
            return f"the losses do not fall: {sum(ours[:5]) / 5:.4g} at first, {sum(ours[-5:]) / 5:.4g} at last"
        return ""

    def compare(self, torch=None, write=False, alone=False):
        """Returns what is wrong with the script, or ""."""
        try:
            theirs = self.losses("torch", torch, torch) if torch else json.loads(self.golden.read_text())
            if write:
                self.golden.parent.mkdir(exist_ok=True)
                told = {"pytorch": theirs["version"], "command": COMMAND, "losses": theirs["losses"]}
                self.golden.write_text(json.dumps(told, indent=1) + "\n")
            ours = theirs if alone else self.losses("yoke", torch=torch)
            return self.faults(ours["losses"], theirs["losses"])
        except RuntimeError as error:
            return str(error)


def _error(ours, theirs):
    """Returns the relative distance of two losses; a NaN is far from all numbers."""
    return abs(ours - theirs) / max(abs(theirs), 1e-6) if ours == ours else float("inf")


def _ranks(count):
    """Returns the variables of each rank, as torchrun sets them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [told | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="Python with PyTorch, which runs each script too")
    parser.add_argument("--write", action="store_true", help="keep PyTorch's losses in golden/")
    parser.add_argument("--alone", action="store_true", help="run PyTorch's side only")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    scripts = [Script(name) for name in options.names or NAMES]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        wrong = list(pool.map(lambda script: script.compare(options.torch, options.write, options.alone), scripts))
    for script, problem in zip(scripts, wrong):
        print(f"{script.name}: {problem or f'agrees to {script.error:.1e}'}")
    print(f"{len(scripts) - sum(map(bool, wrong))} of {len(scripts)} agree")
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
