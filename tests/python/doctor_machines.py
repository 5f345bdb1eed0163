"""Machines for the doctor's tests: scenarios of doctor_cases.json, rendered and examined in a process of their own."""
import copy
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fakes" / "edge"))

import render  # noqa: E402

TABLE = json.loads((ROOT / "tests" / "python" / "doctor_cases.json").read_text(encoding="utf-8"))
CASES = TABLE["cases"]
EXAMINE = """
import json, sys, yoke
folder, options = sys.argv[1], json.loads(sys.argv[2])
if folder: yoke.doctor_record(folder, **options)
report = yoke.doctor(**options)
print(json.dumps({"exit_code": report.exit_code, "checks": [check._asdict() for check in report.checks]}))
"""


def plain_environment():
    """Returns the test's own environment without variables about GPUs. LD_PRELOAD stays, because it loads the sanitizers' runtime."""
    own = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUDA_", "NVIDIA_", "YOKE_", "OMP_"))}
    return {**own, "YOKE_BUILD_DIR": os.environ.get("YOKE_BUILD_DIR", "")}


def patched(case, patch):
    """Returns the scenario of a case: the base, the parts named by the case, and the case's own patch over both."""
    whole = TABLE["base"]
    for part in case.get("with", []):
        whole = render.merge(whole, TABLE["parts"][part])
    return copy.deepcopy(render.merge(whole, patch))


def rendered(scenario, folder):
    """The variables of a scenario, rendered into a folder."""
    folder.mkdir(parents=True)
    (folder / "given.json").write_text(json.dumps(scenario), encoding="utf-8")
    return render.render(folder / "given.json", folder / "machine")


def examined(variables, folder="", **options):
    """The report of a machine, {"exit_code", "checks": {id: check}}; recorded into `folder` where one is given."""
    environment = {**plain_environment(), **variables}
    # The loader's folders belong to the machine, but this process needs its own libraries too.
    own = os.environ.get("LD_LIBRARY_PATH", "")
    if "LD_LIBRARY_PATH" in variables and own:
        environment["LD_LIBRARY_PATH"] = f"{variables['LD_LIBRARY_PATH']}:{own}"
    done = subprocess.run([sys.executable, "-c", EXAMINE, str(folder), json.dumps(options)], env=environment,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.replace(f":{own}", "") if own else done.stdout)
    report["checks"] = {check["id"]: check for check in report["checks"]}
    return report


def replayed(recording, keep=()):
    """Returns the variables that make a recording the machine; `keep` says whether LD_LIBRARY_PATH stays among them."""
    lines = (recording / "environment").read_text(encoding="utf-8").splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    if "LD_LIBRARY_PATH" not in keep:
        variables.pop("LD_LIBRARY_PATH", None)
    fake = render.patch.find_library(render.HERE, render.LIBRARY, None)
    return {**variables, "YOKE_SYSROOT": str(recording / "root"), "YOKE_NVML_PATH": str(fake),
            "YOKE_FAKE_SCENARIO": str(recording / "scenario.json")}
