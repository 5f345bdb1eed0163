"""The library's log in Python: warnings, standard error, logging."""

import os
import subprocess
import sys
import warnings

import pytest

import yoke
from yoke import _log


def run(code, **environment):
    """Returns the output of a fresh interpreter. If the interpreter fails, its output is the message."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_warnings_of_the_library_are_python_warnings():
    with pytest.warns(RuntimeWarning, match="careful"):
        _log.emit(_log.WARN, "careful")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _log.emit(_log.DEBUG, "quiet")


def test_warnings_name_the_line_of_the_script():
    net = yoke.nn.Linear(3, 2)
    with pytest.warns(RuntimeWarning, match="no tensor to clip") as seen:
        yoke.optim.clip_grad_norm_(iter(()), 1.0)
    assert [each.filename for each in seen] == [__file__]
    schedule = yoke.optim.schedule.step(yoke.optim.SGD(net.parameters(), lr=0.1), 1)
    with pytest.warns(RuntimeWarning, match=r"step\(\) was called before") as seen:
        schedule.step()
    assert [each.filename for each in seen] == [__file__]


@pytest.mark.parametrize("call", ["yoke.device('cpu')", "t = threading.Thread(target=yoke.device, args=['cpu']); t.start(); t.join()"],
                         ids=["main thread", "another thread"])
def test_what_the_library_says_arrives_from_any_thread(call):
    code = f"""
import os, threading, warnings, yoke
yoke.zeros(1)
os.environ["YOKE_DEVICE"] = "cuda:7"
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    {call}
    yoke.zeros(1) + 1
print([("YOKE_DEVICE" in str(w.message), w.category.__name__) for w in said])
"""
    assert run(code) == "[(True, 'RuntimeWarning')]"


def test_what_the_library_says_arrives_where_no_file_can_be_opened():
    code = """if True:
        import os, sys, warnings, yoke
        yoke.zeros(1)
        os.environ["YOKE_DEVICE"] = "cuda:7"

        def refuse(event, arguments):
            if event == "open":
                raise OSError(24, "Too many open files")

        sys.addaudithook(refuse)  # a limit of no descriptors would be met by sanitizers too, which open pipes as they look at memory
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            yoke.device("cpu")
        print([("YOKE_DEVICE" in str(w.message), w.category.__name__) for w in said])
    """
    assert run(code) == "[(True, 'RuntimeWarning')]"


INFO = "_log.emit(_log.INFO, 'how ranks meet'); _log.emit(_log.DEBUG, 'in detail')"


@pytest.mark.parametrize("before, told", [
    ("", ["yoke: how ranks meet", "yoke: in detail"]),
    ("import logging", ["yoke: how ranks meet", "yoke: in detail"]),
    ("import logging; logging.basicConfig(level='INFO')", ["INFO:yoke:how ranks meet"]),
    ("import logging; logging.getLogger('yoke').addHandler(logging.NullHandler())", []),
    ("import logging; logging.basicConfig(level='DEBUG'); logging.getLogger('yoke').setLevel('ERROR')", []),
    ("import sys; sys.stderr = None", []),
], ids=["plain", "imported", "set up", "a handler", "silenced", "no console"])
def test_info_is_on_standard_error_unless_the_script_has_set_up_logging(before, told):
    done = subprocess.run([sys.executable, "-c", f"{before}\nfrom yoke import _log\n{INFO}"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.splitlines()) == (0, told)


@pytest.mark.parametrize("before", [
    "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 2)", "import sys; sys.stderr.close()",
    "import io, sys; sys.stderr = io.TextIOWrapper(io.BytesIO(), 'ascii')",
], ids=["no reader", "closed", "of ASCII"])
def test_no_op_fails_for_a_line_of_the_log(before):
    code = f"{before}\nimport yoke\nfrom yoke import _log\n{INFO}; _log.emit(_log.DEBUG, 'größer'); _log.emit(_log.WARN, 'careful')\n"
    run(f"{code}print(yoke.ones(2).tolist(), flush=True); import os; os._exit(0)", YOKE_LOG="debug")


def test_a_filter_makes_errors_of_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="careful"):
            _log.emit(_log.WARN, "careful")


def test_info_goes_to_logging(caplog):
    import logging

    with caplog.at_level(logging.DEBUG, "yoke"):
        _log.emit(_log.INFO, "hello")
        _log.emit(_log.DEBUG, "details")
    assert [(r.levelname, r.message) for r in caplog.records] == [("INFO", "hello"), ("DEBUG", "details")]
