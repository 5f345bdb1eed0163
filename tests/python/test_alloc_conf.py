"""Settings of the allocator: set_alloc_conf, get_alloc_conf, YOKE_ALLOC_CONF and PyTorch's variables."""
import os
import subprocess
import sys

import pytest

import yoke

DEFAULTS = "expandable_segments:True,garbage_collection_threshold:0,ask_fences:False"


@pytest.fixture(autouse=True)
def settings():
    before = yoke.get_alloc_conf()
    yield
    yoke.set_alloc_conf(before)


def test_what_is_named_changes_and_the_rest_stays():
    yoke.set_alloc_conf(DEFAULTS)
    yoke.set_alloc_conf("garbage_collection_threshold:0.8")
    yoke.set_alloc_conf("ask_fences:True")
    assert yoke.get_alloc_conf() == "expandable_segments:True,garbage_collection_threshold:0.8,ask_fences:True"


@pytest.mark.parametrize("text, told", [
    ("expandable_segment:True", "did you mean 'expandable_segments'?"),
    ("max_split_size_mb:20", "the settings are expandable_segments, garbage_collection_threshold and ask_fences"),
    ("ask_fences:True,ask_fences:False", "setting 'ask_fences' is given twice"),
    ("ask_fences:1", "setting 'ask_fences' is '1'; it must be True or False"),
    ("ask_fences:True,garbage_collection_threshold:1", "is '1'; it must be 0 (off) or a share of the device's memory below 1"),
])
def test_what_is_wrong_is_named_and_nothing_changes(text, told):
    before = yoke.get_alloc_conf()
    with pytest.raises(yoke.ValueError) as error:
        yoke.set_alloc_conf(text)
    assert str(error.value).startswith("set_alloc_conf: ") and told in str(error.value)
    assert yoke.get_alloc_conf() == before


def test_it_takes_a_text():
    with pytest.raises(yoke.TypeError, match="argument 'settings' must be a str, not dict"):
        yoke.set_alloc_conf({"ask_fences": True})


def told_with(variables):
    program = "import yoke; x = yoke.ones(4); print(yoke.get_alloc_conf())"
    env = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name}
    return subprocess.run([sys.executable, "-c", program], env={**env, **variables}, capture_output=True, text=True, timeout=60)


def test_variables_decide_at_first():
    assert told_with({}).stdout == DEFAULTS + "\n"
    assert "ask_fences:True" in told_with({"YOKE_ALLOC_CONF": "ask_fences:True", "PYTORCH_ALLOC_CONF": "expandable_segments:False"}).stdout
    assert "threshold:0.6" in told_with({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64,garbage_collection_threshold:0.6"}).stdout
    assert told_with({"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}).stdout == DEFAULTS + "\n"
    wrong = told_with({"YOKE_ALLOC_CONF": "ask_fences:maybe"})
    assert wrong.returncode == 1 and "YOKE_ALLOC_CONF: setting 'ask_fences' is 'maybe'; it must be True or False" in wrong.stderr
    wrong = told_with({"PYTORCH_ALLOC_CONF": "garbage_collection_threshold:7"})
    assert wrong.returncode == 1 and "PYTORCH_ALLOC_CONF: setting 'garbage_collection_threshold' is '7'" in wrong.stderr
