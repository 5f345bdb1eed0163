"""Scripts written for PyTorch run unchanged under yoke.compat.torch, and learn as under PyTorch: the losses of tests/compat/golden."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "compat"))
import compare  # noqa: E402


@pytest.mark.parametrize("name", compare.NAMES)
def test_the_losses_are_pytorchs(name):
    assert compare.Script(name).compare() == ""


def test_every_line_of_the_table_has_a_script_and_every_script_its_losses():
    assert set(compare.TABLE) <= set(compare.NAMES)
    assert {path.stem for path in (compare.HERE / "golden").glob("*.json")} == set(compare.NAMES)
