"""Kernels of the CPU for an instruction set, in a fresh process, because a process chooses its kernels only once."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

NAMES = ("base", "v3", "v4")


def run(isa, *arguments):
    """Returns Python's output for these arguments with the set's kernels. Skips the test if this machine or build does not support
    the set.
    """
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent,
                          env={**os.environ, "YOKE_CPU_ISA": isa, "YOKE_DEVICE": "cpu", "YOKE_TEST_DEVICE": "cpu"})
    lacking = re.search(rf"YOKE_CPU_ISA={isa}: this (CPU does not support AVX|build has no kernels).* unset YOKE_CPU_ISA", done.stdout + done.stderr)
    if isa != "base" and lacking:
        pytest.skip(lacking.group())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
