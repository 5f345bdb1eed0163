"""Python on a machine without usable CUDA: everything else works, and the reason is known."""
import os
import pathlib
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", ""))
DRIVER = BUILD / "tests" / "fakes" / "cuda" / "driver"
EMULATED = BUILD / "tests" / "emu" / "lib"  # beside a copy of libyoke; it stands in where nvcc has built no module
ASK = """
import yoke
print(yoke.is_available("cuda"), yoke.device_count("cuda"), yoke.why_unavailable("cuda"))
print((yoke.ones(3) + 1).tolist())
"""


def ask(**variables):
    if not (DRIVER / "libcuda.so.1").exists():
        pytest.skip("not built: there is no CUDA toolkit")
    env = dict(os.environ, YOKE_CUDA_LIB_PATH=str(DRIVER), YOKE_DEVICE="auto", **variables)
    env.pop("CUDA_VISIBLE_DEVICES", None)
    if not (BUILD / "lib" / "libyoke_cuda.so").exists():
        env["LD_LIBRARY_PATH"] = f"{EMULATED}:{DRIVER}:{env.get('LD_LIBRARY_PATH', '')}"
    done = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    why, values = done.stdout.splitlines()
    assert values == "[2.0, 2.0, 2.0]", "the host goes on"
    return why


@pytest.mark.parametrize("variables, words", [
    ({"FAKE_CUDA_FAIL": "cuInit=803"}, ["cuInit failed", "(803)", "restart the machine"]),
    ({"FAKE_CUDA_VERSION": "11040"}, ["supports CUDA 11.4", "install driver release"]),
    ({"FAKE_CUDA_DEVICES": ""}, ["finds no GPU", "nvidia-smi -L"]),
    ({"FAKE_CUDA_DEVICES": "3.5"}, ["compute capability 3.5", "YOKE_CUDA_ARCHS"]),
])
def test_the_reason_and_its_remedy_are_one_call_away(variables, words):
    why = ask(**variables)
    assert why.startswith("False 0 ")
    for word in words:
        assert word in why
