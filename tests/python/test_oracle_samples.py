"""PyTorch's own samples of ops and modules, replayed under yoke.compat.torch: `./dev test --oracle torch`. More samples: YOKE_SAMPLES=40."""
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

from test_oracle_torch import oracle  # noqa: F401: a fixture

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "compat"
SAMPLES = os.environ.get("YOKE_SAMPLES", "8")


def replay(path, *options):
    return subprocess.run([sys.executable, "-B", FOLDER / "oracle.py", path, *options], capture_output=True, text=True, timeout=1800)


def test_samples_of_pytorch_agree(oracle, tmp_path):  # noqa: F811
    made = subprocess.run([sys.executable, "-B", FOLDER / "samples.py", tmp_path / "samples", "--most", SAMPLES], capture_output=True, text=True, timeout=3600)
    assert made.returncode == 0, made.stderr
    done = replay(tmp_path / "samples")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def told(values, **more):
    array = np.array(values, np.float32)
    return {"dtype": "float32", "shape": array.shape, "strides": None, "offset": 0, "data": array.tobytes()} | more


def doubled(name="torch.mul", result=(2, 4), gradient=(2 * np.cos(0), 2 * np.cos(1))):
    x = told([1, 2], requires_grad=True)
    call = (name, ("list", [("tensor", 0), ("plain", 2)]), ("dict", {}), ("tensor", 1))
    return {"op": "mul", "form": "function", "dtype": "float32", "index": 0, "inputs": {0: x}, "calls": [call], "result": ("tensor", 1),
            "values": [told(result)], "gradients": {0: told(gradient)}}


def test_the_replay_notices_what_differs(tmp_path):
    cases = [(doubled(), "1 names with equal samples"), (doubled(result=(2, 5)), "mul (function, float32): value: 1 samples; sample 0: [4.] instead of [5.]"),
             (doubled(gradient=(1, 1)), "mul (function, float32): gradient"), (doubled(result=(2,)), "mul (function, float32): shape"),
             (doubled("torch.svd"), "1 that Yoke does not have"), (doubled("torch.cat"), "refused: 1")]
    for record, text in cases:
        (tmp_path / "samples").write_bytes(pickle.dumps(record))
        done = replay(tmp_path / "samples")
        assert text in done.stdout, done.stdout + done.stderr
