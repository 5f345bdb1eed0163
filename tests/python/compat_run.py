"""Runs scripts under yoke.compat.torch in processes of their own: the rules hold for a whole process."""

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
