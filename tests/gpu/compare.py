"""Every op on the device, on the CPU and on the emulated device, over the samples of tests/python/op_cases.py.

    compare.py --folder FOLDER [--others cpu,emulated] [--jobs 8] [--seconds 90] [--ops NAMES] [--cudnn]
    compare.py --folder FOLDER --keep FILE      # records the emulated half alone, for a machine with a card
    compare.py --folder FOLDER --carried FILE   # takes the emulated half from the file

Separate processes record results and gradients (samples.py), with the device as the only difference. This process compares them.
Integers, and ops that only move or select, must agree bit for bit. Sums and functions must agree within the error that the case
grants each side. Random numbers have equal bits everywhere.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time
import zipfile

import halves
import samples

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", ROOT / "build" / "cuda"))
sys.path.insert(0, str(ROOT / "tests" / "python"))

EXACT_FAMILIES = ("shape", "create", "random")
EXACT_OPS = ("neg relu abs sign floor ceil round clamp maximum minimum where eq ne lt le gt ge logical_and logical_or "
             "logical_xor logical_not isnan isfinite cast clone copy_ fill_ neg_ relu_ abs_ amax amin argmax argmin sort "
             "argsort topk all any").split()
SUMS = ("scatter_add",)  # add, though their family only moves
PARTS = 8  # parts of the ops, each for a process


# ---- records of devices ----------------------------------------------------------------------------------------------


def environment(device, cudnn):
    variables = dict(os.environ, OMP_NUM_THREADS="1", YOKE_NUM_THREADS="1", OMP_WAIT_POLICY="passive", YOKE_CUDNN_ENABLED=str(int(cudnn)))
    if device == "emulated":
        driver = BUILD / "tests" / "fakes" / "cuda" / "driver"
        folders = [BUILD / "tests" / "emu" / "lib", driver, variables.get("LD_LIBRARY_PATH", "")]
        variables.update(YOKE_CUDA_LIB_PATH=str(driver), LD_LIBRARY_PATH=":".join(map(str, folders)), YOKE_CUDNN_ENABLED="0")
        variables.pop("CUDA_VISIBLE_DEVICES", None)
    return variables


def record_elsewhere(device, part, options, until):
    """Records a part in another process. Returns the part's file, the reason for its absence, or None if there was no work."""
    path = pathlib.Path(options.folder) / f"{device}-{part}.npz"
    for old in (path, pathlib.Path(f"{path}.json")):
        old.unlink(missing_ok=True)
    ops = options.ops[part::PARTS]
    command = [sys.executable, "-B", samples.__file__, device, str(path), "--ops", ",".join(ops)]
    command += ["--seconds", f"{max(1.0, until - time.monotonic() - 6):.0f}", *["--small"] * options.small]  # a call more, and the file
    if not ops:
        return None
    try:
        done = subprocess.run(command, env=environment(device, options.cudnn), capture_output=True, text=True,
                              timeout=max(1.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"{device}, part {part}: out of time"
    if done.returncode not in (0, samples.INCOMPLETE) or not path.exists():
        return f"{device}, part {part}: status {done.returncode}: {done.stderr.strip()[-300:]}"
    return path


def load(outcomes):
    """Returns (results, errors by name, failed processes, missing ops) of a device."""
    import numpy as np

    found, wrong, broken, left = {}, {}, [], []
    for outcome in outcomes:
        if isinstance(outcome, str):
            broken.append(outcome)
        if outcome is None or isinstance(outcome, str):
            continue
        try:
            with np.load(outcome) as file:
                results = dict(file)
            kept = json.loads(pathlib.Path(f"{outcome}.json").read_text())
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            broken.append(f"{outcome} cannot be read: {error}")
            continue
        found.update(results)
        wrong.update(kept["wrong"])
        left += kept["left"]
    return found, wrong, broken, left


# ---- the half that is carried: halves.py -----------------------------------------------------------------------------


def keep(record, options):
    """Writes the record of the emulated device into a file for another machine. Returns whether the record is whole."""
    found, wrong, broken, left = record
    size = halves.write(options.keep, found, {"sources": options.sources, "samples": samples_digest(), "wrong": wrong, "left": left + broken})
    for text in broken:
        print("BROKEN", text)
    print(f"emulated: {len(found)} results, {size / 2**20:.1f} MiB; {len(wrong)} samples failed, {len(left)} ops are missing")
    return bool(found) and not wrong and not left and not broken


def take(options):
    """Returns the record in a carried file, as load() does."""
    try:
        found, mark = halves.read(options.carried)
        for name, here in (("sources", options.sources), ("samples", samples_digest())):
            if mark[name] != here:
                return {}, {}, [f"{options.carried} was made of other {name}, {mark[name]}, than this tree's, {here}"], []
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        return {}, {}, [f"{options.carried} cannot be read: {error}"], []
    return found, mark["wrong"], [], mark["left"]


def samples_digest():
    """Returns twelve digits that change with the values of the samples, which NumPy draws, and with how they are recorded."""
    import numpy as np
    from op_cases import CASES

    digest = hashlib.sha256(pathlib.Path(samples.__file__).read_bytes())
    for op, case in sorted(CASES.items()):
        for call in [*case.all_calls(), *([case.large] if case.large else [])]:
            digest.update(f"{op} {call}".encode())
            for value in [*call.args, *call.named.values()]:
                for array in value if isinstance(value, list) else [value]:
                    digest.update(array.tobytes() if isinstance(array, np.ndarray) else b"")
    return digest.hexdigest()[:12]


# ---- comparing -------------------------------------------------------------------------------------------------------


def allowed(name, want, case, exact):
    """Returns the largest difference that two devices may have, element by element."""
    import numpy as np
    from op_table import EPSILON

    dtype = name.rsplit("|", 1)[1]
    gradient = ", gradient " in name
    if dtype not in EPSILON or (exact and not gradient) or case is None:
        return np.zeros(want.shape)
    wide = np.abs(want.astype(np.float64))
    finite = wide[np.isfinite(wide)]
    ulps = 8 * max(case.ulps, 16) if gradient else 2 * case.ulps
    scale = np.maximum(1.0, finite.max(initial=0)) if case.absolute or gradient else wide
    tiny = float(np.finfo(np.float16 if dtype == "float16" else np.float32).tiny)
    return np.broadcast_to(ulps * EPSILON[dtype] * scale + tiny, want.shape)


def differs(name, got, want, case, exact):
    """Returns (same bits, problem or None) of a result."""
    import numpy as np

    if isinstance(want, halves.Thinned):
        if want.holds(got):
            return True, None
        same, problem = differs(name, halves.thin(got) if got.shape == want.shape else got, want.sample, case, exact)
        return False, problem or ("some elements differ, and none of the sample that was carried" if exact and same else None)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False, f"{got.dtype}{got.shape} against {want.dtype}{want.shape}"
    if np.array_equal(got, want, equal_nan=want.dtype.kind == "f"):
        return True, None
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed(name, want, case, exact)))
    if not wrong.any():
        return False, None
    at = np.unravel_index(np.argmax(np.where(wrong, np.abs(a - b), -1)), wrong.shape)
    return False, f"{wrong.sum()} of {wrong.size} differ, at {tuple(map(int, at))} {a[at]!r} against {b[at]!r}"


def judge(ours, theirs, who, options):
    """Prints what differs; (compared, same bits, different)."""
    from op_cases import CASES
    from op_table import OPS

    same = different = compared = 0
    for name in sorted(ours[0].keys() & theirs[0].keys()):
        op = name.split("|")[0]
        exact = op in EXACT_OPS or (op in OPS and OPS[op].family in EXACT_FAMILIES and op not in SUMS)
        bits, problem = differs(name, ours[0][name], theirs[0][name], CASES.get(op), exact)
        compared, same = compared + 1, same + bits
        if problem:
            different += 1
            print(f"DIFFERS from {who}: {name}: {problem}")
    for where, (_, wrong, *_), (found, *_) in ((options.device, ours, theirs), (who, theirs, ours)):
        done = {name.rsplit("|", 1)[0] for name in found}
        for name in sorted(wrong):
            different += 1
            print(f"FAILS on {where}{' alone' if name in done else ''}: {name}: {wrong[name]}")
    return compared, same, different


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, help="where the records are kept")
    parser.add_argument("--device", default="cuda", help="what is compared with the others")
    parser.add_argument("--others", default="cpu,emulated")
    parser.add_argument("--jobs", type=int, default=8, help="processes at once")
    parser.add_argument("--seconds", type=float, default=90, help="for all records")
    parser.add_argument("--ops", help="these alone, with commas between")
    parser.add_argument("--small", action="store_true", help="record small samples alone")
    parser.add_argument("--cudnn", action="store_true", help="let cuDNN compute; else own kernels are compared")
    parser.add_argument("--keep", metavar="FILE", help="record the emulated device into a file and do nothing else")
    parser.add_argument("--carried", metavar="FILE", help="take the record of the emulated device from a file of --keep")
    parser.add_argument("--sources", default="", help="digest of the compiled sources, which the file of --keep names")
    options = parser.parse_args()
    pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
    os.environ["YOKE_DEVICE"] = "cpu"  # for this process, which only reads
    known = samples.known_ops()
    options.ops = options.ops.split(",") if options.ops else known
    if unknown := set(options.ops) - set(known):
        parser.error(f"op_cases.py has no {', '.join(sorted(unknown))}")
    return options


def compare(options, record):
    """Compares the device with the others; returns the number of problems. record(device) gives a device's results."""
    ours, bad, said = record(options.device), 0, []
    for who in options.others.split(","):
        theirs = take(options) if who == "emulated" and options.carried else record(who)
        compared, same, different = judge(ours, theirs, who, options)
        bad += different + len(theirs[2]) + (compared == 0)
        said.append(f"{who}: {compared} results, {same} of them the same bits, {different} differ")
        for text in theirs[2]:
            print("BROKEN", text)
        if theirs[3]:
            said.append(f"no time was left on {who} for {len(theirs[3])} ops")
    for text in ours[2]:
        print("BROKEN", text)
    if ours[3]:
        said.append(f"no time was left on {options.device} for {len(ours[3])} ops")
    print("; ".join(said))
    return bad + len(ours[2]) + len(ours[3])


def main():
    options = read_options()
    until = time.monotonic() + options.seconds
    devices = ["emulated"] if options.keep else [options.device, *options.others.split(",")]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {who: [pool.submit(record_elsewhere, who, part, options, until) for part in range(PARTS)]
                   for who in devices if who != "emulated" or not options.carried}

        def record(device):
            return load(each.result() for each in running[device])

        if options.keep:
            return 0 if keep(record("emulated"), options) else 1
        return 1 if compare(options, record) else 0


if __name__ == "__main__":
    sys.exit(main())
