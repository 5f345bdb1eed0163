"""Runs a script on one side, and writes its losses: `one.py torch|yoke SCRIPT RESULT`.

Both sides draw random numbers from the same stream (stream.py). A script keeps its losses in a list `losses`, or prints lines with
"loss X". Of several ranks rank 0 writes.
"""
import contextlib
import io
import json
import os
import pathlib
import random
import re
import runpy
import sys

import numpy as np


def run(side, script, result):
    if side == "yoke":
        import yoke.compat.torch

        yoke.compat.torch.install()
    import torch

    import stream

    torch.set_num_threads(1)
    stream.replace(torch)
    random.seed(0)
    np.random.seed(0)
    sys.argv = [script]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            kept = runpy.run_path(script, run_name="__main__")
    finally:
        sys.stdout.write(printed.getvalue())
    losses = kept["losses"] if "losses" in kept else re.findall(r"loss[ =:]+([-\d.e+]+)", printed.getvalue())
    if os.environ.get("RANK", "0") == "0":
        pathlib.Path(result).write_text(json.dumps({"version": torch.__version__, "losses": [float(each) for each in losses[:20]]}))


if __name__ == "__main__":
    run(*sys.argv[1:])
