"""docs/settings.md lists every setting of core/base/config.cpp, and no other setting."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_setting_is_documented():
    source = (ROOT / "core" / "base" / "config.cpp").read_text()
    table = source[source.index("kKeys[] = {"):source.index("kKeyCount")]
    keys = dict(re.findall(r'\{"(YOKE_\w+)", check_\w+,\s*("\d+"|nullptr)\}', table))
    rows = dict(re.findall(r"^\| `(YOKE_\w+)` \|.*\| ([^|]*) \|$", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))
    assert len(keys) > 10
    assert sorted(rows) == sorted(keys)
    defaults = {key: value.strip('"') for key, value in keys.items() if value != "nullptr"}
    assert len(defaults) > 10
    wrong = {key: rows[key] for key, value in defaults.items() if not re.search(rf"(?<!\d){value}(?!\d)", rows[key])}
    assert not wrong
    undeclared = {key: row for key, row in rows.items() if key not in defaults and re.fullmatch(r"\d+(:.*)?", row)}
    assert not undeclared
    # Other pages name a default behind its setting: "`YOKE_COMM_SILENCE`, 30 s".
    told = [(page.name, key, value) for page in (ROOT / "docs").glob("*.md")
            for key, value in re.findall(r"`(YOKE_\w+)`, (\d+) s", page.read_text())]
    assert told and all(defaults.get(key) == value for _, key, value in told)


def test_a_misspelt_setting_is_told_once_where_it_would_have_counted():
    script = "import yoke\nfor _ in range(3): yoke.ones(3)\nyoke.why_unavailable('cuda')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, "YOKE_DEVCE": "cpu", "YOKE_LOG": "warn"})
    assert done.stderr.count("there is no setting YOKE_DEVCE") == 1 and "did you mean YOKE_DEVICE?" in done.stderr
