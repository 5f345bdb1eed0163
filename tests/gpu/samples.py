"""Records results and gradients of every op's samples (tests/python/op_cases.py) on a device, into a file of NumPy's.

    samples.py cuda FILE [--ops NAMES | --part 0/4] [--small] [--once] [--seconds 90]

The program runs in an environment whose device is the only difference from other records (compare.py). A file FILE.json beside
the record has failed samples and missing ops. "random" is an op, too.
"""

import argparse
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

LARGE_WHEN_EMULATED = ("float32", "bfloat16", "int32")
# An op of each family comes first, so a record that is cut short has seen each family.
FIRST = ("add gelu sum softmax layer_norm cross_entropy matmul embedding cumsum sort where index_select conv2d "
         "scaled_dot_product_attention batch_norm max_pool2d random").split()
INCOMPLETE = 3  # exit status of a record with failed or missing samples


def known_ops():
    from op_cases import CASES

    return [*FIRST, *sorted(set(CASES) - set(FIRST))]


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


def samples_of(yoke, op, options):
    """Yields (name, function that adds the sample's results to a dict) for an op."""
    from op_cases import CASES
    from op_table import OPS

    if op == "random":
        for name, draw in random_draws(yoke).items():
            yield name, lambda found, name=name, draw=draw: record_draw(yoke, name, draw, found)
        return
    case = CASES[op]
    calls = [*case.all_calls(), *([case.large] if case.large and not options.small else [])]
    for i, call in enumerate(calls):
        for dtype in case.dtypes[i % len(case.dtypes):][:1] if options.once else case.dtypes:
            if call is case.large and options.device == "emulated" and dtype not in LARGE_WHEN_EMULATED:
                continue
            name = f"{op}|{i} {call}|{dtype}"
            yield name, lambda found, call=call, dtype=dtype, name=name: record_call(yoke, OPS[op], call, dtype, name, found)


def record(options, until):
    """Runs the samples of ops and stores the results. If the time runs out, the results so far are stored, with the names of the
    missing ops. Returns whether all samples succeeded.
    """
    yoke = start_yoke(options.device)
    import numpy as np

    found, wrong, left = {}, {}, []
    for op in options.ops.split(",") if options.ops else part_of(known_ops(), options.part):
        if time.monotonic() > until:
            left.append(op)
            continue
        for name, sample in samples_of(yoke, op, options):
            try:
                sample(found)
            except Exception as error:
                wrong[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                print(f"FAILS: {name}: {wrong[name]}", flush=True)
        print(f"ran {op}", flush=True)  # the last line of a killed record shows how far the record came
    np.savez(options.file, **found)
    pathlib.Path(f"{options.file}.json").write_text(json.dumps({"wrong": wrong, "left": left}))
    ops = {name.split("|")[0] for name in found}
    print(f"recorded: {len(found)} results of {len(ops)} ops, {len(wrong)} samples failed"
          + (f", no time was left for {' '.join(left)}" if left else ""))
    return bool(found) and not wrong and not left


def part_of(ops, part):
    """Returns every n-th op, beginning with the i-th, for a part "i/n"."""
    i, n = map(int, part.split("/"))
    return ops[i::n]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", help="cuda, cpu, or emulated")
    parser.add_argument("file", help="the record; NumPy's format npz")
    parser.add_argument("--ops", help="these alone, with commas between")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="every N-th op, beginning with the I-th")
    parser.add_argument("--small", action="store_true", help="small samples alone")
    parser.add_argument("--once", action="store_true", help="each sample in a single dtype; samples take turns")
    parser.add_argument("--seconds", type=float, default=90, help="no op begins later than this")
    options = parser.parse_args()
    return 0 if record(options, time.monotonic() + options.seconds) else INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
