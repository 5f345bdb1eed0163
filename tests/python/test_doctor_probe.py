"""yoke-probe, which the doctor starts for what must be tried: here on whatever devices there are, the emulated one too."""
import os
import pathlib
import subprocess

import pytest
import yoke


def probed(*devices):
    """What yoke-probe prints of devices, and its exit status."""
    program = pathlib.Path(os.environ["YOKE_BUILD_DIR"]) / "bin" / "yoke-probe"
    done = subprocess.run([program, *devices], capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines(), done.returncode


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_probe_measures_a_device_and_checks_its_results(kind):
    if not yoke.is_available(kind):
        lines, status = probed(kind)
        assert status == 1 and f"{kind} cannot be used" in lines[-1]
        return
    lines, status = probed(f"{kind}:0" if kind == "cuda" else kind)
    assert status == 0 and lines[0] == "smoke ok" and lines[-1] == "done"
    figures = dict(line.split() for line in lines[1:-1])
    assert set(figures) == {"h2d", "d2h", "h2d_pageable", "launch"}
    assert all(0 < float(value) < 1e18 for value in figures.values())
    if yoke.device_count(kind) > 1:
        lines, status = probed(f"{kind}:0", f"{kind}:1")
        assert status == 0 and float(lines[0].removeprefix("peer.1 ")) > 0
