"""The CPU's kernels of one instruction set, in a process of its own, since they are chosen once."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

NAMES = ("base", "v3", "v4")


def run(isa, *arguments):
    """Python's answer to some arguments with that set's kernels; the test is skipped where this machine or build lacks them."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent,
                          env={**os.environ, "YOKE_CPU_ISA": isa, "YOKE_DEVICE": "cpu", "YOKE_TEST_DEVICE": "cpu"})
    lacking = re.search(rf"YOKE_CPU_ISA={isa}: this (CPU has no AVX|build has no kernels).* unset it", done.stdout + done.stderr)
    if isa != "base" and lacking:
        pytest.skip(lacking.group())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
