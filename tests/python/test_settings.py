"""docs/settings.md tells of every setting that core/base/config.cpp has, and of no other."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_setting_is_documented():
    source = (ROOT / "core" / "base" / "config.cpp").read_text()
    table = source[source.index("kKeys[] = {"):source.index("kKeyCount")]
    keys = re.findall(r'\{"(YOKE_\w+)", check_', table)
    rows = re.findall(r"^\| `(YOKE_\w+)` \|", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE)
    assert len(keys) > 10
    assert sorted(rows) == sorted(keys)
