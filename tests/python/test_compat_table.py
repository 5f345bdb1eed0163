"""The table of PyTorch's names: its objects are there, and docs/from-pytorch.md is what the table says."""

import pathlib
import subprocess
import sys
import textwrap

from compat_run import passes

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "from-pytorch.md"

EACH = """
    import importlib, types
    import torch
    from yoke.compat.torch import _modules
    from yoke.compat.torch._facts import FACTS
    from yoke.compat.torch._table import ATTRIBUTES, MODULES, TABLE

    for name in MODULES:
        assert isinstance(importlib.import_module(name), types.ModuleType), name
    for place, names in TABLE.items():
        for name, entry in names.items():
            try:
                _modules.implementation(entry)
            except AttributeError as error:
                raise AssertionError(f"{place}.{name}: {entry}: {error}")
            assert place not in FACTS or name in FACTS[place] or name[0] == "_" or (place, name) in OTHER, f"PyTorch has no {place}.{name}"
    for place in ("torch", "nn", "nn.functional", "optim", "optim.lr_scheduler", "distributed", "cuda"):
        assert len(dir(importlib.import_module("torch" if place == "torch" else f"torch.{place}"))) > 5
    for name in FACTS["Tensor"]:
        hasattr(torch.ones(1, 1), name)
"""
# Names that PyTorch's modules have, but do not list.
OTHER = {("multiprocessing", "ProcessException"), ("multiprocessing", "ProcessExitedException"), ("multiprocessing", "ProcessRaisedException"), ("multiprocessing", "spawn"), ("distributed", "default_pg_timeout"), ("version", "__version__")}


def test_each_object_of_the_table_is_there(tmp_path):
    passes(tmp_path, f"OTHER = {OTHER!r}\n" + textwrap.dedent(EACH))


def test_the_page_is_what_the_table_says():
    written = subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name("compat_page.py"))], capture_output=True, text=True)
    assert written.returncode == 0, written.stderr
    assert written.stdout == PAGE.read_text(encoding="utf-8"), "run python tests/python/compat_page.py > docs/from-pytorch.md"
