"""torchrun, and python -m torch.distributed.run: starts the ranks of a job by Yoke's launcher."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from typing import TypeVar

import yoke
from yoke import _yoke

T = TypeVar("T")

# Options whose effect Yoke's launcher always has, or that choose among ways of torchrun's own.
_WITHOUT_EFFECT = ("rdzv_backend", "rdzv_id", "rdzv_conf", "monitor_interval", "start_method", "role", "log_dir", "redirects", "tee", "local_addr", "logs_specs")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("torchrun", description="Starts the ranks of a job by Yoke's launcher.")

    def option(name: str, **about: object) -> None:
        names = {f"--{name}", f"--{name.replace('_', '-')}"}
        parser.add_argument(*sorted(names), dest=name, **about)  # type: ignore[arg-type]

    option("nproc_per_node", default="1", help="ranks on this machine: a number, cpu, gpu or auto")
    option("nnodes", default="1", help="number of machines")
    option("node_rank", type=int, default=None, help="number of this machine, from 0")
    option("master_addr", default=None, help="host of rank 0")
    option("master_port", type=int, default=29500, help="port of rank 0")
    option("rdzv_endpoint", default="", help="HOST:PORT of rank 0")
    option("max_restarts", type=int, default=0, help="times that all ranks are started again after a failure")
    option("standalone", action="store_true", help="start on a single machine, at a free port")
    option("use_env", action="store_true", help="has no effect")
    option("no_python", action="store_true", help="the program is not a Python script")
    for name in _WITHOUT_EFFECT:
        option(name, default=None, help="has no effect")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module")
    parser.add_argument("-r", dest="redirects", help="has no effect")
    parser.add_argument("-t", dest="tee", help="has no effect")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def _ranks(parser: argparse.ArgumentParser, text: str) -> int:
    if text.isdigit() and int(text) > 0:
        return int(text)
    if text not in ("gpu", "auto", "cpu"):
        parser.error(f"argument --nproc-per-node: {text!r} is not a number, cpu, gpu or auto")
    cards = yoke.cuda.device_count()
    if text == "gpu" and not cards:
        parser.error("argument --nproc-per-node: gpu, but there is no CUDA device")
    return cards if text != "cpu" and cards else len(os.sched_getaffinity(0))


def record(fn: Callable[..., T]) -> Callable[..., T]:
    """Returns the function: Yoke's launcher reports failures of ranks without a decorator."""
    return fn


def main(args: list[str] | None = None) -> int:
    """Starts the ranks and returns the exit code: 0, or 1 if a rank failed."""
    parser = _parser()
    given = parser.parse_args(args)
    ranks, nodes = _ranks(parser, given.nproc_per_node), int(given.nnodes.partition(":")[0])
    python = [] if given.no_python else [sys.executable, "-u", *(["-m"] if given.module else [])]
    program = [*python, given.training_script, *given.training_script_args]
    sys.stdout.flush()
    if nodes == 1 and not given.max_restarts:
        code, text, _ = _yoke._run(program, ranks, b"")
        if code:
            sys.stderr.write(f"torchrun: {text}\n")
        return int(code != 0)
    command = shutil.which("yoke")
    if command is None:
        sys.stderr.write("torchrun: the command yoke is not on the path; several machines and restarts need it\n")
        return 1
    wanted = [command, "run", "-n", str(ranks), "--nnodes", str(nodes), "--restarts", str(given.max_restarts)]
    if nodes > 1:
        master = given.rdzv_endpoint or f"{given.master_addr or 'localhost'}:{given.master_port}"
        wanted += ["--node-rank", str(given.node_rank or 0), "--master", master if ":" in master else f"{master}:{given.master_port}"]
    os.execv(command, [*wanted, "--", *program])
