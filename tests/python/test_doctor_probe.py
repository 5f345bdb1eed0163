"""yoke-probe, which the doctor starts for trials: here on the present devices, the emulated device too."""
import os
import pathlib
import signal
import subprocess

import pytest
import yoke


PROGRAM = pathlib.Path(os.environ["YOKE_BUILD_DIR"]) / "bin" / "yoke-probe"


def probed(*devices, **variables):
    """Returns the output of yoke-probe for devices, and its exit status."""
    done = subprocess.run([PROGRAM, *devices], capture_output=True, text=True, timeout=120, env={**os.environ, **variables})
    return done.stdout.splitlines(), done.returncode


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_probe_measures_a_device_and_checks_its_results(kind):
    if not yoke.is_available(kind):
        lines, status = probed(kind)
        assert status == 3 and lines[-1].startswith("untried device: ") and f"{kind} cannot be used" in lines[-1]
        return
    lines, status = probed(f"{kind}:0" if kind == "cuda" else kind)
    assert status == 0 and lines[0] == "smoke ok" and lines[-1] == "done"
    figures = dict(line.split() for line in lines[1:-1])
    assert set(figures) == {"h2d", "d2h", "h2d_pageable", "launch"}
    assert all(0 < float(value) < 1e18 for value in figures.values())
    if yoke.device_count(kind) > 1:
        lines, status = probed(f"{kind}:0", f"{kind}:1")
        assert status == 0 and float(lines[0].removeprefix("peer.1 ")) > 0


def test_the_probe_tries_the_device_that_it_is_given_whatever_the_variables_say():
    lines, status = probed("cpu", YOKE_PLATFORMS="cuda", YOKE_DEVICE="cuda:7")
    assert status == 0 and lines[0] == "smoke ok" and lines[-1] == "done"


def test_the_probe_ends_itself_when_nobody_ends_it():
    reader, writer = os.pipe()  # a full pipe without a reader: the probe waits for ever with its first line
    os.set_blocking(writer, False)
    try:
        while os.write(writer, b"x" * 65536) == 65536:
            pass
        while os.write(writer, b"x"):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    ignored = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        done = subprocess.run([PROGRAM, "--deadline", "1", "cpu"], stdout=writer, timeout=60)
    finally:
        signal.signal(signal.SIGALRM, ignored)
        os.close(reader)
        os.close(writer)
    assert done.returncode == -signal.SIGALRM
