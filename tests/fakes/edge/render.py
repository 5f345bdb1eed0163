#!/usr/bin/env python3
"""Makes a machine out of a scenario: `render.py SCENARIO FOLDER [--nvml LIBRARY]`.

SCENARIO is a name of scenarios/ or the path of a JSON file; schema.py has the keys. FOLDER then has
  scenario.json   the scenario with all parts from other scenarios and models, for the fake libraries
  root/           contents of /sys, /proc, /dev and the like on such a machine
  lib/            a libnvidia-ml.so.1 without the calls that are missing in the scenario
  environment     lines NAME=value: with these variables, Yoke sees the machine

The fake NVML library is LIBRARY, else the library of the build tree in YOKE_BUILD_DIR, else of the newest build tree. `none` is
for a machine without need of the library.
"""
import argparse
import copy
import json
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import patch  # noqa: E402
import schema  # noqa: E402
import sysroot  # noqa: E402
from schema import Mistake  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SCENARIOS = HERE / "scenarios"
LIBRARY = "libnvidia-ml.so.1"
# Defaults of a machine, for keys missing in the scenario.
DRIVER = {"version": "580.82.07", "flavor": "open", "cuda": "13.0", "loaded": True, "bound": "nvidia"}
GPU = {"used": "0MiB", "utilization": 0, "memory_utilization": 0, "throttle": 0, "performance_state": 0,
       "runtime_status": "active", "removable": False, "display": False, "compute_mode": 0, "numa_node": -1,
       "virtualization": "none", "class": "030000", "processes": []}
NAMESPACE = uuid.UUID("9a4f7f6e-4a57-4d0e-8c0c-6f7d3c7ab1e5")


def names():
    """Returns the scenarios by name. A name with an underscore at the front is a part of other scenarios."""
    return sorted(path.stem for path in SCENARIOS.glob("*.json") if not path.stem.startswith("_"))


def find(scenario, near=SCENARIOS):
    """Returns the file of a scenario: a path, or a name in the extending scenario's folder or in SCENARIOS."""
    if str(scenario).endswith(".json"):
        path = pathlib.Path(scenario)
        if path.is_file():
            return path
        raise Mistake(f"there is no scenario file {scenario}")
    for folder in (near, SCENARIOS):
        if (folder / f"{scenario}.json").is_file():
            return folder / f"{scenario}.json"
    raise Mistake(f"there is no scenario {json.dumps(str(scenario))}{schema.nearest(str(scenario), names())}"
                  f" There are: {', '.join(names())}")


def read(path):
    """Returns the JSON object of a file; a key that stands twice is a mistake, too."""
    def unique(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise Mistake(f"the key {json.dumps(twice)} stands twice in one object")
        return found
    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
    except ValueError as error:
        raise Mistake(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise Mistake(f"{path}: a scenario is an object, {{...}}")
    return value


def merge(under, over, keep_null=False):
    """Applies a JSON merge patch: objects are merged, null removes a key, any other value replaces the old value.

    `keep_null` keeps null, so that a later merge removes a key added by then.
    """
    if not isinstance(over, dict):
        return copy.deepcopy(over)
    merged = dict(under) if isinstance(under, dict) else {}
    for key, value in over.items():
        if value is None and not keep_null:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value, keep_null)
    return merged


def extended(path, seen=()):
    """Returns a scenario's own text merged over the scenario that it extends."""
    if path.resolve() in seen:
        ring = " -> ".join(each.stem for each in (*seen[seen.index(path.resolve()):], path))
        raise Mistake(f"{path}: extends goes round in a circle: {ring}")
    own = read(path)
    below, changes = own.pop("extends", None), own.pop("gpu_changes", {})
    if below is None:
        return changed(merge({}, own), changes, path)
    if not isinstance(below, str):
        raise Mistake(f"{path}: extends: {json.dumps(below)} is not the name of a scenario")
    try:
        base = find(below, path.parent)
    except Mistake as error:
        raise Mistake(f"{path}: extends: {error}") from None
    return changed(merge(extended(base, (*seen, path.resolve())), own), changes, path)


def changed(scenario, changes, path):
    """Returns a scenario with keys of single cards changed: {"3": {...}} of the fourth."""
    try:
        schema.map_of(schema.map_of(lambda place, value: None), schema.INDEX)("gpu_changes", changes)
        gpus = scenario.get("gpus", [])
        for index, keys in changes.items():
            if not isinstance(gpus, list) or int(index) >= len(gpus):
                raise Mistake(f"gpu_changes has a card {index}, but there are {len(gpus)}")
            gpus[int(index)] = merge(gpus[int(index)], keys, keep_null=True)
    except Mistake as error:
        raise Mistake(f"{path}: {error}") from None
    return scenario


def gpu_of(given, defaults, models):
    """Returns a card: its model, under the scenario's defaults, under its own keys."""
    if not isinstance(given, dict):
        return given
    wanted = merge(defaults, given, keep_null=True)
    model = wanted.pop("model", None)
    if model is None:
        return merge(GPU, wanted)
    schema.one_of(*models)("model", model)
    return merge(merge(GPU, models[model]), wanted)


def cards(scenario, models):
    """Returns all cards of a scenario, whole."""
    given = scenario.get("gpus", [])
    if not isinstance(given, list):
        schema.wrong("gpus", given, "a list")
    made, defaults = [], scenario.pop("gpu_defaults", {})
    schema.record(**schema.GPU_KEYS)("gpu_defaults", defaults)
    for index, one in enumerate(given):
        try:
            made.append(gpu_of(one, defaults, models))
        except Mistake as error:
            raise Mistake(f"gpus[{index}].{error}") from None
    return made


def complete(scenario):
    """Fills in what follows from the rest: UUIDs, minor numbers, links."""
    scenario["driver"] = merge(DRIVER, scenario.get("driver", {}))
    scenario["driver"].setdefault("module_version", scenario["driver"]["version"])
    major = int(scenario["driver"]["cuda"].split(".")[0])
    nvml = scenario.setdefault("nvml", {})
    nvml.setdefault("present", True)
    nvml.setdefault("version", f"{major}.{scenario['driver']['version']}")
    gpus = scenario.setdefault("gpus", [])
    for place, gpu in enumerate(sorted(gpus, key=lambda one: one["pci"])):
        gpu.setdefault("uuid", f"GPU-{uuid.uuid5(NAMESPACE, gpu['name'] + gpu['pci'])}")
        gpu.setdefault("minor", place)
        gpu.setdefault("driver", scenario["driver"]["bound"])
        for number, instance in enumerate(gpu.get("mig_instances", [])):
            instance.setdefault("uuid", f"MIG-{uuid.uuid5(NAMESPACE, gpu['uuid'] + str(number))}")
            instance.setdefault("gpu_instance", 7 + number)
            instance.setdefault("compute_instance", 0)
    links = joined(scenario)
    for index, gpu in enumerate(gpus):
        gpu.setdefault("nvlinks_active", min(gpu.get("nvlinks", 0), links[index]))
    return scenario


def joined(scenario):
    """Returns how many NVLinks each card has in use."""
    gpus, nvlink = scenario["gpus"], scenario.get("nvlink", [])
    if isinstance(nvlink, str):
        return [int(nvlink.split(":")[1])] * len(gpus)
    return [sum(links for a, b, links in nvlink if index in (a, b)) for index in range(len(gpus))]


def check_whole(scenario):
    """Checks rules across keys: numbers of missing cards, two cards at a single place."""
    gpus = scenario["gpus"]
    places = [card["pci"] for card in gpus + scenario.get("other_cards", []) + scenario.get("networks", [])]
    for place in places:
        if places.count(place) > 1:
            raise Mistake(f"two cards stand at {place}")
    bridges = scenario.get("bridges", {})
    for place in places:
        if place in bridges:
            raise Mistake(f"a card stands at {place}, which is the address of a bridge; give it one of its own, and the "
                          "bridge under the key \"under\"")
    for what, card in [(f"gpus[{i}]", gpu) for i, gpu in enumerate(gpus)] + list(bridges.items()):
        above = card.get("under", card.get("parent"))
        if above is not None and above not in bridges:
            raise Mistake(f"{what} stands under {above}, which is no bridge of this scenario"
                          f"{schema.nearest(above, bridges)}")
    for address in bridges:
        sysroot.way_up(scenario, address)
    for what, number in mentioned(scenario):
        if number >= len(gpus):
            raise Mistake(f"{what} names card {number}, but there are {len(gpus)}")
    order = scenario["nvml"].get("order")
    if order is not None and sorted(order) != list(range(len(gpus))):
        raise Mistake(f"nvml.order: {order} is not an order of the {len(gpus)} cards")


def mentioned(scenario):
    """Yields (place, number) for every card mentioned by number."""
    nvml = scenario["nvml"]
    for key in ("lost", "hang"):
        if "gpu" in nvml.get(key, {}):
            yield f"nvml.{key}.gpu", nvml[key]["gpu"]
    for index, event in enumerate(scenario.get("events", [])):
        yield f"events[{index}].gpu", event["gpu"]
    if isinstance(scenario.get("nvlink"), list):
        for index, (first, second, _) in enumerate(scenario["nvlink"]):
            yield f"nvlink[{index}]", max(first, second)


def load(scenario):
    """Returns the flat scenario of a name or a path. Raises Mistake."""
    path = find(scenario)
    try:
        whole = extended(path)
    except RecursionError:
        raise Mistake(f"{path}: its lists and objects are nested deeper than those of any machine") from None
    try:
        whole["gpus"] = cards(whole, read(HERE / "models.json"))
        schema.SCENARIO("the scenario", whole)
        complete(whole)
        check_whole(whole)
    except Mistake as error:
        raise Mistake(f"{path}: {error}") from None
    return whole


def environment_of(scenario, folder):
    library = folder / "lib" / LIBRARY
    if not scenario["nvml"]["present"]:
        library = folder / "root" / "usr" / "lib" / "x86_64-linux-gnu" / LIBRARY
    return {**scenario.get("environment", {}), "YOKE_SYSROOT": str(folder / "root"),
            "YOKE_NVML_PATH": str(library), "YOKE_FAKE_SCENARIO": str(folder / "scenario.json")}


def render(scenario, folder, library=None):
    """Renders into a folder; returns the variables to be set. `library`: path of the fake NVML, "none", or None for a search."""
    whole = load(scenario)
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scenario.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    sysroot.write(whole, folder / "root")
    if whole["nvml"]["present"] and library != "none":
        patch.provide(patch.find_library(HERE, LIBRARY, library), folder / "lib" / LIBRARY,
                      whole["nvml"].get("missing_symbols", []))
    variables = environment_of(whole, folder)
    lines = "".join(f"{name}={value}\n" for name, value in variables.items())
    (folder / "environment").write_text(lines, encoding="utf-8")
    return variables


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario", help="a name, or the path of a JSON file: " + ", ".join(names()))
    parser.add_argument("folder")
    parser.add_argument("--nvml", metavar="LIBRARY", help="the fake NVML library, or none")
    wanted = parser.parse_args()
    try:
        for name, value in render(wanted.scenario, wanted.folder, wanted.nvml).items():
            print(f"{name}={value}")
    except Mistake as error:
        sys.exit(f"render.py: {error}")


if __name__ == "__main__":
    main()
