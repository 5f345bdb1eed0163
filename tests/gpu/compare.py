"""Every op on the device, on the CPU and on the emulated device, over the samples of tests/python/op_cases.py.

    compare.py --folder FOLDER [--others cpu,emulated] [--jobs 8] [--seconds 90] [--ops NAMES] [--device cuda]

Separate processes record results and gradients (`--record`), with the device as the only difference. This process compares them.
Integers, and ops that only move or select, must agree bit for bit. Sums and functions must agree within the error that the case
grants each side. Random numbers have equal bits everywhere.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", ROOT / "build" / "cuda"))
sys.path.insert(0, str(ROOT / "tests" / "python"))

EXACT_FAMILIES = ("shape", "create", "random")
EXACT_OPS = ("neg relu abs sign floor ceil round clamp maximum minimum where eq ne lt le gt ge logical_and logical_or "
             "logical_xor logical_not isnan isfinite cast clone copy_ fill_ neg_ relu_ abs_ amax amin argmax argmin sort "
             "argsort topk all any").split()
SUMS = ("scatter_add",)  # add, though their family only moves
LARGE_WHEN_EMULATED = ("float32", "bfloat16", "int32")
PARTS = 8  # parts of the ops, each for a process
INCOMPLETE = 3  # exit status of a record with failed or missing samples


# ---- recording -------------------------------------------------------------------------------------------------------


def start_yoke(device):
    """Imports the package on a device, where numpy() copies to the host first (as tests/python/conftest.py has it)."""
    os.environ["YOKE_DEVICE"] = "cuda" if device == "emulated" else device
    import yoke

    plain = yoke.Tensor.numpy
    yoke.Tensor.numpy = lambda tensor: plain(tensor.cpu())
    return yoke


def gradients(yoke, result, leaves):
    import numpy as np
    from op_table import to_numpy

    weights = np.linspace(0.5, 1.5, max(result.numel, 1))[:result.numel].reshape(result.shape)
    result.backward(yoke.tensor(weights, dtype=yoke.float64).to(dtype=result.dtype))
    return [to_numpy(leaf.grad) if leaf.grad is not None else np.zeros(0) for leaf in leaves]


def record_call(yoke, op, call, dtype, name, found):
    from op_harness import invoke
    from op_table import FLOATS, name_of, to_numpy

    leaves = [] if op.differentiable and dtype in FLOATS else None
    result = invoke(op, call, dtype, leaves=leaves)
    found[f"{name}|{name_of(result.dtype)}"] = to_numpy(result)
    if leaves and result.requires_grad:
        for i, grad in enumerate(gradients(yoke, result, leaves)):
            found[f"{name}, gradient {i}|{dtype}"] = grad


def random_draws(yoke):
    """Returns {name: function} of all random draws; each draw begins at the same seed."""
    wide = lambda x: x.cpu().to(dtype=yoke.float64)  # noqa: E731
    draws = {"randint|1000|int64": lambda: yoke.randint(-5, 1000, (1000,)), "randperm|1000|int64": lambda: yoke.randperm(1000),
             "dropout|1000|float32": lambda: yoke.dropout(yoke.ones(1000), 0.3)}
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        for count in (5, 1000, 70_001):
            for draw in (yoke.rand, yoke.randn):
                draws[f"{draw.__name__}|{count}|{dtype}"] = (
                    lambda draw=draw, count=count, dtype=dtype: wide(draw((count,), dtype=getattr(yoke, dtype))))
    return draws


def record_draw(yoke, name, draw, found):
    yoke.manual_seed(7)
    found[name] = draw().numpy()


def record(device, ops, path, small, until):
    """Runs the samples of ops and stores the results, with failures in a file beside. "random" is an op, too.

    If the time runs out, the results so far are stored, with the names of the missing ops. Returns whether all samples succeeded.
    """
    yoke = start_yoke(device)
    import numpy as np
    from op_cases import CASES
    from op_table import OPS

    found, wrong = {}, {}

    def attempt(name, what):
        try:
            what()
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"

    left = []
    for op in ops:
        if time.monotonic() > until:
            left.append(op)
            continue
        if op == "random":
            for name, draw in random_draws(yoke).items():
                attempt(name, lambda: record_draw(yoke, name, draw, found))
            continue
        case = CASES[op]
        calls = [*case.all_calls(), *([case.large] if case.large and not small else [])]
        for i, call in enumerate(calls):
            for dtype in case.dtypes:
                if call is case.large and device == "emulated" and dtype not in LARGE_WHEN_EMULATED:
                    continue
                name = f"{op}|{i} {call}|{dtype}"
                attempt(name, lambda: record_call(yoke, OPS[op], call, dtype, name, found))
    np.savez(path, **found)
    pathlib.Path(f"{path}.json").write_text(json.dumps({"wrong": wrong, "left": left}))
    for name, text in wrong.items():
        print(f"FAILS: {name}: {text}")
    print(f"recorded: {len(found)} results of {len(ops) - len(left)} ops, {len(wrong)} samples failed"
          + (f", no time was left for {' '.join(left)}" if left else ""))
    return bool(found) and not wrong and not left


# ---- comparing -------------------------------------------------------------------------------------------------------


def environment(device):
    variables = dict(os.environ, OMP_NUM_THREADS="1", YOKE_NUM_THREADS="1", OMP_WAIT_POLICY="passive",
                     YOKE_CUDNN_ENABLED="0")  # own kernels are compared
    if device == "emulated":
        driver = BUILD / "tests" / "fakes" / "cuda" / "driver"
        folders = [BUILD / "tests" / "emu" / "lib", driver, variables.get("LD_LIBRARY_PATH", "")]
        variables.update(YOKE_CUDA_LIB_PATH=str(driver), LD_LIBRARY_PATH=":".join(map(str, folders)))
        variables.pop("CUDA_VISIBLE_DEVICES", None)
    return variables


def record_elsewhere(device, part, options, until):
    """Records a part in another process. Returns the part's file, the reason for its absence, or None if there was no work."""
    path = pathlib.Path(options.folder) / f"{device}-{part}.npz"
    for old in (path, pathlib.Path(f"{path}.json")):
        old.unlink(missing_ok=True)
    ops = options.ops[part::PARTS]
    command = [sys.executable, __file__, "--record", device, "--folder", str(path), "--ops", ",".join(ops)]
    command += ["--seconds", f"{max(1.0, until - time.monotonic() - 6):.0f}"]  # a call more, and the file
    if not ops:
        return None
    try:
        done = subprocess.run(command, env=environment(device), capture_output=True, text=True,
                              timeout=max(1.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"{device}, part {part}: out of time"
    if done.returncode not in (0, INCOMPLETE) or not path.exists():
        return f"{device}, part {part}: status {done.returncode}: {done.stderr.strip()[-300:]}"
    return path


def load(outcomes):
    """Returns (results, errors by name, failed processes, missing ops) of a device."""
    import numpy as np

    found, wrong, broken, left = {}, {}, [], []
    for outcome in (each.result() for each in outcomes):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, help="where the records are kept")
    parser.add_argument("--device", default="cuda", help="what is compared with the others")
    parser.add_argument("--others", default="cpu,emulated")
    parser.add_argument("--jobs", type=int, default=8, help="processes at once")
    parser.add_argument("--seconds", type=float, default=90, help="for all records")
    parser.add_argument("--ops", help="these alone, with commas between")
    parser.add_argument("--record", metavar="DEVICE", help="record --ops to the file --folder and do nothing else")
    parser.add_argument("--small", action="store_true", help="record small samples alone")
    options = parser.parse_args()
    if options.record:
        whole = record(options.record, options.ops.split(","), options.folder, options.small,
                       time.monotonic() + options.seconds)
        return 0 if whole else INCOMPLETE
    pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
    os.environ["YOKE_DEVICE"] = "cpu"  # for this process, which only reads
    from op_cases import CASES

    known = ["random", *sorted(CASES)]
    options.ops = options.ops.split(",") if options.ops else known
    if unknown := set(options.ops) - set(known):
        parser.error(f"op_cases.py has no {', '.join(sorted(unknown))}")
    until, bad, said = time.monotonic() + options.seconds, 0, []
    others = options.others.split(",")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outcomes = {who: [pool.submit(record_elsewhere, who, part, options, until) for part in range(PARTS)]
                    for who in (options.device, *others)}
        ours = load(outcomes[options.device])
        for who in others:
            theirs = load(outcomes[who])
            compared, same, different = judge(ours, theirs, who, options)
            bad += different + len(theirs[2]) + (compared == 0)
            said.append(f"{who}: {compared} results, {same} of them the same bits, {different} differ")
            for text in theirs[2]:
                print("BROKEN", text)
            if theirs[3]:
                said.append(f"no time was left on {who} for {len(theirs[3])} ops")
    for text in ours[2]:
        print("BROKEN", text)
    bad += len(ours[2]) + len(ours[3])
    if ours[3]:
        said.append(f"no time was left on {options.device} for {len(ours[3])} ops")
    print("; ".join(said))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
