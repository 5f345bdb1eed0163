"""Choosing devices on the machines that the fake edge can be: which check of the doctor is named, what has no name."""
import json
import os
import subprocess
import sys

import pytest

from test_inventory import EMULATED, LIBRARY, render

needs_emulated = pytest.mark.skipif(not (EMULATED[0] / "libyoke_cuda.so").is_file(),
                                    reason="there is no emulated CUDA in this build")


def machine_of(folder, scenario):
    """The variables of a machine: a scenario's name, or its keys."""
    if isinstance(scenario, dict):
        path = folder / "machine.json"
        path.write_text(json.dumps({"about": "a machine of this test", **scenario}))
        scenario = str(path)
    return render.render(scenario, folder / "machine", LIBRARY)


def run(machine, script, **variables):
    """What a script that has imported yoke prints on a machine."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("CUDA_", "NVIDIA_")) and key not in ("YOKE_NVML_TIMEOUT", "YOKE_DEVICE")}
    done = subprocess.run([sys.executable, "-c", "import os, yoke\n" + script], text=True, timeout=120,
                          capture_output=True, env={**kept, **machine, **variables})
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@needs_emulated
def test_a_variable_that_changes_after_cuda_has_read_it_is_told_as_it_counts(tmp_path):
    said = run(machine_of(tmp_path, "A100+T4"), """
assert yoke.device("cuda:0").kind == "cuda"
del os.environ["CUDA_VISIBLE_DEVICES"]
try:
    yoke.select(2, kind="cuda")
except yoke.DeviceUnavailableError as error:
    print(error)
""", CUDA_VISIBLE_DEVICES="0", YOKE_CUDA_LIB_PATH=str(EMULATED[1]),
               LD_LIBRARY_PATH=os.pathsep.join(map(str, EMULATED)), YOKE_LOG="warn")
    assert "CUDA_VISIBLE_DEVICES hides it" in said and "though nothing hides it" not in said, said
    assert "CUDA_VISIBLE_DEVICES is not set now" in said and "still counts as '0'" in said, said
