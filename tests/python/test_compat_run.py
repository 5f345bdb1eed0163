"""python -m yoke.compat.torch runs a script as Python itself would."""

import os
import signal
import subprocess
import sys

import pytest

from compat_run import passes, run

ABOUT = """
    import os, sys, torch
    class Kept: pass
    if __name__ == "__main__":
        import pickle
        pickle.loads(pickle.dumps(Kept()))
        print(sys.argv[1:], __name__, os.path.basename(__file__), os.path.isabs(__file__), sys.path[0] == os.path.dirname(__file__))
        print(sys.modules["__main__"].__dict__ is globals(), __spec__, torch.__version__)
"""


def test_a_script_sees_what_python_shows(tmp_path):
    assert passes(tmp_path, ABOUT, "a", "-b").splitlines() == [
        "['a', '-b'] __main__ script.py True True", "True None 2.15.0+yoke"]


def test_a_script_finds_modules_beside_it(tmp_path):
    (tmp_path / "net.py").write_text("import torch.nn as nn\nNET = nn.Linear(2, 3)\n")
    assert passes(tmp_path, "from net import NET\nprint(NET)") == "Linear(in_features=2, out_features=3, bias=True)\n"


@pytest.mark.parametrize("text, code", [("import sys; sys.exit(3)", 3), ("import sys; sys.exit('why')", 1), ("raise SystemExit", 0), ("1 / 0", 1)])
def test_the_exit_code_is_the_scripts(tmp_path, text, code):
    assert run(tmp_path, text).returncode == code


@pytest.mark.parametrize("text", ["def f():\n    return 1 / 0\nf()\n", "x = (\n", "import nothing_of_this_name\n",
                                  "import sys\nsys.excepthook = lambda kind, value, trace: print(trace.tb_frame.f_code.co_name, file=sys.stderr)\n1 / 0\n"])
def test_errors_look_as_in_python(tmp_path, text):
    ours, plain = run(tmp_path, text), run(tmp_path, text, interpreter=())
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)


def test_a_missing_script_is_an_error_as_in_python(tmp_path):
    done = subprocess.run([sys.executable, "-m", "yoke.compat.torch", "none.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert f"can't open file '{tmp_path / 'none.py'}': [Errno 2] No such file or directory" in done.stderr


@pytest.mark.parametrize("arguments, code", [([], 2), (["-m"], 2), (["--nope"], 2), (["-"], 2), (["--help"], 0)])
def test_wrong_arguments_show_the_usage(arguments, code):
    done = subprocess.run([sys.executable, "-m", "yoke.compat.torch", *arguments], capture_output=True, text=True)
    assert done.returncode == code
    assert "usage: python -m yoke.compat.torch" in done.stdout + done.stderr


def test_a_module_runs_as_with_m(tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "go.py").write_text("import sys, torch\nprint(sys.argv[1:], __name__, __package__, torch.ones(2).sum())\n")
    done = subprocess.run([sys.executable, "-m", "yoke.compat.torch", "-m", "pack.go", "1"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "['1'] __main__ pack tensor(2.)\n", done.stderr


def test_an_interrupt_ends_the_script_by_its_signal(tmp_path):
    done = run(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(5)\n")
    assert done.returncode == -signal.SIGINT
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"


CHILDREN = """
    import multiprocessing, os, subprocess, sys, torch
    def work(x):
        import torch
        return float(x + torch.ones(1).item()), torch.__version__
    if __name__ == "__main__":
        subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__, torch.ones(2))"], check=True)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(work, [1, 2]))
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(pool.map(work, [1, 2]))
"""


def test_processes_that_the_script_starts_inherit_it(tmp_path):
    assert passes(tmp_path, CHILDREN).splitlines() == ["2.15.0+yoke tensor([1., 1.])", *["[(2.0, '2.15.0+yoke'), (3.0, '2.15.0+yoke')]"] * 2]


def test_the_variable_for_children_keeps_what_it_had(tmp_path):
    told = passes(tmp_path, "import os\nprint(os.environ['PYTHONPATH'])", env={**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"] + os.pathsep + "/else"})
    folders = told.strip().split(os.pathsep)
    assert folders[0].endswith(os.path.join("compat", "torch", "path")) and folders[-1] == "/else"
