"""Base of the rehearsals of `./dev gpu`: machines, calls and their reports. tests/static/check_gpu_*.py have the tests.

The runner of tests/gpu is driven as it is, with a clock twenty times as fast; at the boundary of its processes stand-ins play the
card's tools, the build and the parts (bin, site, player.sh).
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PLAY = pathlib.Path(__file__).resolve().parent
SOURCE = PLAY.parents[2]
SPEED, MINUTES = 20, 9.5
OUTCOMES = {"hang": "out of time", "fail": "failed", "crash": "failed", "half": "failed"}


def marked(pid):
    """Returns processes that a run has left behind."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"\0YOKE_GPU_PART={pid}:".encode() in b"\0" + (folder / "environ").read_bytes():
                found.append(folder.name)
        except OSError:
            pass
    return found


def kill(process):
    """Kills a run and its parts, as a machine that ends; returns the run's last output."""
    process.kill()
    said = "" if process.stdout.closed else process.communicate()[0]
    for pid in marked(process.pid):
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    return said


class Rehearsal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.results = self.folder / "results"

    def environment(self, machine, **more):
        """Returns the environment of a machine with a card; its build folder is in this test's folder."""
        known = {name: value for name, value in os.environ.items() if not name.startswith(("YOKE_", "LD_", "CMAKE_"))}
        return {**known, "PATH": f"{PLAY}/bin:{os.environ['PATH']}", "CUDACXX": f"{PLAY}/bin/nvcc", "PYTHONPATH": f"{PLAY}/site",
                "YOKE_GPU_CLOCK": str(SPEED), "YOKE_GPU_FOLDER": str(self.folder / machine), **more}

    def start(self, *options, machine="machine", **more):
        command = [sys.executable, "-B", "tests/gpu/run.py", *map(str, options)]
        return subprocess.Popen(command, cwd=SOURCE, env=self.environment(machine, **more), text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def call(self, *options, **more):
        """Runs `./dev gpu`; returns (exit status, output, seconds of the run's clock, as printed by the run)."""
        process = self.start(*options, **more)
        said = process.communicate()[0]
        self.assertEqual(marked(process.pid), [], "it leaves no process behind")
        told = re.search(r"; (\d+) s in all", said)
        return process.returncode, said, int(told[1]) if told else 0

    def report(self, folder=None, ended=True):
        """Returns the results of a run. During the run, and after a kill, the page may be an entry behind the data."""
        data = json.loads(((folder or self.results) / "RESULTS-h200.json").read_text())
        if ended:
            page = ((folder or self.results) / "RESULTS-h200.md").read_text()
            self.assertEqual([one["name"] for one in [*data["parts"], *data["results"]] if f"| {one['name']} |" not in page], [])
        return {one["name"]: one for one in data["parts"]}, {one["group"]: one for one in data["results"]}, data

    def outcomes(self, folder=None, ended=True):
        """Returns {part: its status} of a run's report."""
        return {name: one["status"] for name, one in self.report(folder, ended)[0].items()}

    def packed(self, machine="first", **more):
        """Makes a build for compute capability 9.0 as on a machine without a card, into the folder of results."""
        status, said, _ = self.call("--only", "build", "--card", "9.0", "--results", self.results, machine=machine, PATH=self.no_card(), **more)
        self.assertEqual(status, 0, said)

    def no_card(self):
        """Returns the PATH of a machine whose nvidia-smi finds no card."""
        (self.folder / "bin").mkdir(exist_ok=True)
        (self.folder / "bin/nvidia-smi").write_text("#!/bin/sh\necho 'No devices were found'\n")
        (self.folder / "bin/nvidia-smi").chmod(0o755)
        return f"{self.folder}/bin:{PLAY}/bin:{os.environ['PATH']}"


def main():
    try:
        import pytest  # noqa: F401
    except ImportError:  # parts would be skipped, and so be missing in each report
        sys.exit(f"{sys.executable} has no pytest, which the rehearsal needs: run it by build/venv/bin/python, or {sys.executable} -m pip install pytest")
    unittest.main(argv=[sys.argv[0]])
