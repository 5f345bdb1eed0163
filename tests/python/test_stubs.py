"""The type stubs say what the modules are, as far as mypy can tell."""

import pathlib
import subprocess
import sys

import pytest


def test_the_stubs_agree_with_the_modules():
    pytest.importorskip("mypy")
    allowlist = pathlib.Path(__file__).with_name("stubtest_allowlist.txt")
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "yoke", "--concise", "--ignore-unused-allowlist",
                           "--allowlist", allowlist], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
