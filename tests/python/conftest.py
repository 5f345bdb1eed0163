"""Shared by all Python tests: no test may leave a tensor behind.

YOKE_TEST_DEVICE=cuda runs them on that device: tensors are made there, and numpy(), which wants host memory, copies.
"""

import gc
import os
import sys

import pytest

DEVICE = os.environ.get("YOKE_TEST_DEVICE", "cpu")
if DEVICE != "cpu":
    os.environ["YOKE_DEVICE"] = DEVICE
    import yoke

    _numpy = yoke.Tensor.numpy
    yoke.Tensor.numpy = lambda tensor: _numpy(tensor.cpu())


def pytest_addoption(parser):
    parser.addoption("--oracle", choices=["torch"], help="also compare every op with another library (test_oracle_torch.py)")


def pytest_collection_finish():
    # What was imported and collected stays to the end: looking through it again before each test takes longer than most.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.passed = outcome.get_result().passed


def _live():
    # Tests of the generator and of C alone do without the package.
    yoke = sys.modules.get("yoke")
    return yoke.live_tensor_count() if yoke else 0


@pytest.fixture(autouse=True)
def no_tensor_is_left(request):
    gc.collect()
    before = _live()
    yield
    if not getattr(request.node, "passed", False):
        return  # the traceback of a failure keeps its locals, tensors among them
    gc.collect()
    assert _live() <= before, "the test left tensors alive"


@pytest.fixture(autouse=True)
def grad_mode_is_restored():
    yield
    yoke = sys.modules.get("yoke")
    assert yoke is None or yoke.is_grad_enabled()
