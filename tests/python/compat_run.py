"""Runs scripts under yoke.compat.torch in processes of their own: the rules hold for a whole process."""

import json
import pathlib
import subprocess
import sys
import textwrap


def run(folder, text, *arguments, name="script.py", interpreter=("-m", "yoke.compat.torch"), **options):
    """Runs a script; returns the ended process."""
    path = pathlib.Path(folder) / name
    path.write_text(textwrap.dedent(text))
    command = [sys.executable, *interpreter, str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, **options)


def passes(folder, text, *arguments, **options):
    """Runs a script, which must end with 0; returns its output."""
    done = run(folder, text, *arguments, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


EACH = """
    import json, sys, traceback
    import torch
    parts, told = json.load(open(sys.argv[1])), {}
    for name, code in parts.items():
        try:
            exec(compile(code, name, "exec"), {"__name__": "__main__", "torch": torch, "nn": torch.nn})
        except BaseException as error:
            told[name] = [type(error).__name__, str(error), traceback.format_exc()]
    print(json.dumps(told))
"""


def errors_of(folder, parts):
    """Runs pieces of code one after the other in one process; returns {name: [type, text, traceback]} of those that raised."""
    (pathlib.Path(folder) / "parts.json").write_text(json.dumps({name: textwrap.dedent(code) for name, code in parts.items()}))
    return json.loads(passes(folder, EACH, "parts.json").splitlines()[-1])
