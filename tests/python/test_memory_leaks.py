"""Tools of a user who hunts a leak: the count of tensors, and a disabled cache."""
import gc
import os
import subprocess
import sys

import pytest
import yoke


def test_the_count_of_live_tensors_grows_with_what_the_tape_keeps():
    gc.collect()
    count = yoke.live_tensor_count()
    w = yoke.ones(3).requires_grad_()
    total = yoke.exp(w)
    kept = len(yoke.saved_tensors(total))
    assert kept == 1 and yoke.live_tensor_count() == count + 2 + kept
    for step in range(5):  # a sum of losses; each loss holds its own graph
        total = total + yoke.exp(w)
        assert yoke.live_tensor_count() == count + 2 + kept * (2 + step)
    total.sum().backward()
    assert yoke.live_tensor_count() == count + 3, "backward lets go of it, and the gradient is there"
    del total
    assert yoke.live_tensor_count() == count + 2
    with yoke.no_grad():
        total = yoke.exp(w)
    assert yoke.live_tensor_count() == count + 3, "without a tape nothing is kept"
    total = yoke.exp(w)
    del w, total
    assert yoke.live_tensor_count() == count, "a graph that nobody walks goes with its last tensor"


@pytest.mark.parametrize("variables, caching", [
    ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, "False"), ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "0"}, "True"), ({}, "True"),
    ({"PYTORCH_NO_CUDA_MEMORY_CACHING": ""}, "True"), ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "YOKE_NO_CACHING": "0"}, "True"),
    ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "0", "YOKE_NO_CACHING": "1"}, "False"),
    ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "yes"}, "False"), ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "true"}, "False")])
def test_pytorchs_variable_switches_caching_off_unless_our_own_says_otherwise(variables, caching):
    kept = {name: value for name, value in os.environ.items() if "_CACHING" not in name}
    script = "import yoke\ntry:\n    yoke.ones(3)\n    print(yoke.is_caching())\nexcept yoke.ValueError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", script], env={**kept, **variables}, capture_output=True, text=True, timeout=60)
    assert caching in done.stdout, done.stdout + done.stderr
