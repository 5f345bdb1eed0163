"""docs/settings.md tells of every setting that core/base/config.cpp has, and of no other."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_setting_is_documented():
    source = (ROOT / "core" / "base" / "config.cpp").read_text()
    table = source[source.index("kKeys[] = {"):source.index("kKeyCount")]
    keys = re.findall(r'\{"(YOKE_\w+)", check_', table)
    rows = re.findall(r"^\| `(YOKE_\w+)` \|", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE)
    assert len(keys) > 10
    assert sorted(rows) == sorted(keys)


def test_a_misspelt_setting_is_told_once_where_it_would_have_counted():
    script = "import yoke\nfor _ in range(3): yoke.ones(3)\nyoke.why_unavailable('cuda')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, "YOKE_DEVCE": "cpu", "YOKE_LOG": "warn"})
    assert done.stderr.count("there is no setting YOKE_DEVCE") == 1 and "did you mean YOKE_DEVICE?" in done.stderr
