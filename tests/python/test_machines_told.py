"""Reports on unusual machines: the inventory, the doctor's findings and the chosen devices.

Each report stands in machines_told.txt. After an intended change, YOKE_UPDATE_GOLDENS=1 writes the file anew; read the
difference.
"""
import os
import pathlib
import re

import pytest

from test_select_machines import machine_of, run

GOLDENS = pathlib.Path(__file__).with_name("machines_told.txt")
MACHINES = ["mig-half", "mig-half-mixed-uuids", "container-2-of-8", "container-2-of-8-unknown-error", "wsl2", "power-limited",
            "retirement-pending", "unauthorized-dock", "jetson", "jetson-thor", "dgx-spark"]
TELL = """
machine = yoke.inventory()
for key in ("nvml_problem", "visible_devices", "docks"):
    if machine.facts.get(key): print(f"{key}: {machine.facts[key]}")
for card in machine.cards:
    print(f"card {card.index} {card.kind} {card.name or '-'} {card.uuid or card.pci or '-'}"
          f"{'' if card.visible is None else f' cuda:{card.visible}'}{': ' if card.reason else ''}{card.reason or ''}")
for check in yoke.doctor().checks:
    if check.status in ("warn", "fail") and check.id != "lease-folder":
        print(f"{check.status} {check.number} {check.id}: {check.evidence}")
        for line in check.remedy.splitlines(): print(f"  {line}")
for spec in ("auto:kind=cuda", "auto:kind=cuda,n=2"):
    found = yoke.explain(spec)
    print(f"{spec}: {found.visible or '-'}")
    if found.problem: print(f"  {found.problem}")
    for each in found:
        if each.accepted: print(f"  {each.device}: {each.reason}")
"""


def goldens():
    parts = re.split(r"^== (.+)\n", GOLDENS.read_text(encoding="utf-8"), flags=re.M) if GOLDENS.exists() else [""]
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_told_as_it_stands_in_its_golden(name, tmp_path):
    told = run(machine_of(tmp_path, name), TELL, YOKE_LOG="error").strip().replace(str(tmp_path), "…")
    if os.environ.get("YOKE_UPDATE_GOLDENS"):
        known = {**goldens(), name: told}
        GOLDENS.write_text("".join(f"== {each}\n{known[each]}\n\n" for each in MACHINES if each in known), encoding="utf-8")
    assert told == goldens().get(name), "YOKE_UPDATE_GOLDENS=1 writes it, if it is meant"
