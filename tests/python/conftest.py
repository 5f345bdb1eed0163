"""Fixtures of all Python tests: no test may leave a tensor behind.

YOKE_TEST_DEVICE=cuda runs the tests on that device. Tensors are made there, and numpy(), which needs host memory, copies.
"""

import gc
import time
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pytest

DEVICE = os.environ.get("YOKE_TEST_DEVICE", "cpu")
EMULATED = False
if DEVICE != "cpu":
    os.environ["YOKE_DEVICE"] = DEVICE
    import yoke

    EMULATED = yoke.device(DEVICE).total_memory == 1 << 30  # as the GPUs of tests/fakes have, and no true one
    _numpy = yoke.Tensor.numpy
    yoke.Tensor.numpy = lambda tensor: _numpy(tensor.cpu())

    class _RaisesLate(type(pytest.raises(Exception))):
        """Expects the errors of kernels as well: a later waiting call raises such errors, here at the end of the block."""

        def __exit__(self, kind, error, traceback):
            if kind is not None:
                return super().__exit__(kind, error, traceback)
            try:
                yoke.synchronize()
            except Exception as late:
                # Raises an error of another type, because no other error leaves the block.
                if super().__exit__(type(late), late, late.__traceback__):
                    return True
                raise
            return super().__exit__(None, None, None)

    _raises = pytest.raises

    def _raises_late(expected, *args, **options):
        context = _raises(expected, *args, **options)
        if isinstance(context, type(_raises(Exception))):
            context.__class__ = _RaisesLate
        return context

    pytest.raises = _raises_late


def _skips():
    """The lines of device_skips.txt that hold here: (test, reason)."""
    for line in (pathlib.Path(__file__).parent / "device_skips.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            test, where, reason = (part.strip() for part in line.split("|"))
            assert where in ("device", "emulated"), line
            if DEVICE != "cpu" and (where == "device" or EMULATED):
                yield test, reason


WORDS = {"all", "any", "where", "full", "empty", "mean"}  # ops whose names are also plain words in names of tests


def _is_of(item, op):
    """Returns whether a test is about an op: the op is the parameter, or part of the function's name."""
    if op not in WORDS and re.search(rf"(^|_){op}(_|$)", item.originalname.removeprefix("test_")):
        return True
    return "[" in item.nodeid and re.search(rf"(?<![a-z0-9_]){op}(?![a-z0-9_])", item.nodeid.split("[", 1)[1])


def pytest_collection_modifyitems(config, items):
    ops = config.getoption("--op")
    if ops:
        config.hook.pytest_deselected(items=[item for item in items if not any(_is_of(item, op) for op in ops)])
        items[:] = [item for item in items if any(_is_of(item, op) for op in ops)]
    for test, reason in _skips():
        for item in items:
            name = item.nodeid.rsplit("/", 1)[-1]
            if name == test or name.startswith(test + "["):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_addoption(parser):
    parser.addoption("--op", action="append", default=[], help="only what is about this op; may be given again")
    parser.addoption("--oracle", choices=["torch"], help="also compare every op with another library (test_oracle_torch.py)")


def pytest_collection_finish():
    # Keeps imported and collected objects out of later collections: a collection before each test would take longer
    # than most tests.
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
    before = _live()
    yield
    if DEVICE != "cpu":
        yoke.synchronize()  # errors of kernels then belong to the test that started the kernels
    if not getattr(request.node, "passed", False):
        return  # the traceback of a failure keeps its locals, also tensors
    if _live() > before:
        gc.collect()  # not after each test: that would take longer than most
        for _ in range(200):  # a joined thread releases its casts a moment later
            if _live() <= before:
                break
            time.sleep(0.01)
    assert _live() <= before, "the test left tensors alive"


@pytest.fixture(autouse=True)
def grad_mode_is_restored():
    yield
    yoke = sys.modules.get("yoke")
    assert yoke is None or yoke.is_grad_enabled()


@pytest.fixture
def comma_locale(tmp_path):
    """tmp_path holds the locale de_DE.utf8, for LOCPATH."""
    try:
        subprocess.run(["localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.utf8")],
                       capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no locale with a comma can be made here")


@pytest.fixture
def folder_for_users():
    """Yields a folder that every user may enter, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)
