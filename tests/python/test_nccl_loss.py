"""A rank is lost amid a backward, and the other ranks have already stepped: no rank goes on from gradients that the cards did not
reduce.
"""
import json
import os
import subprocess
import sys

import pytest

from cards_of_ranks import IS_BUILT, machine, under_torchrun

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 3
pytestmark = pytest.mark.skipif(not IS_BUILT, reason="no emulated CUDA module, no fake NVML or no command was built")

# DEVICE FOLDER WAY LIVING: rank 2 dies between two buckets of a backward; over NCCL, after the other ranks have
# passed their backward. LIVING gives the other ranks' next action: "01", both make a step; "load", they load the
# saved state before regroup. Each rank prints the answer of regroup, and its parameters while all ranks were whole,
# after regroup and after three more steps.
PROGRAM = """
import json, os, pathlib, signal, sys, time
import yoke
from parallel_ways import LOST_AT, Run, mean_of
device, folder, way, living = sys.argv[1:]
folder, saved = pathlib.Path(folder), os.path.join(folder, "saved.safetensors")
group = yoke.comm.init(timeout=60.)
rank = group.rank
yoke.set_device(f"cuda:{group.local_rank}" if device == "cuda" else device)
is_doomed = False
def hook(bucket, group):
    if is_doomed and bucket.index == 1:
        while device == "cuda" and len(list(folder.glob("*.behind"))) < group.size - 1: time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return mean_of(bucket, group)
run, scales = Run(group, hook), yoke.GradScaler(init_scale=8.)
def values(): return [each.detach().cpu().reshape(-1).tolist() for each in run.net.parameters()]
def load():
    state = yoke.load(saved)
    run.net.load_state_dict(state["net"])
    run.optimizer.load_state_dict(state["optimizer"])
run.steps(0, LOST_AT - 1)
group.barrier()  # the cards are done
if rank == 0: yoke.save(saved, {"net": run.net.state_dict(), "optimizer": run.optimizer.state_dict()})
group.barrier()
whole = values()
is_doomed = rank == group.size - 1
run.optimizer.zero_grad()
try:
    if way == "no_sync":
        with run.ddp.no_sync(): run.go_back(LOST_AT)
    if way == "scaler":
        scales.scale((run.ddp(yoke.ones(2, 6)) ** 2).mean()).backward()
    else:
        run.go_back(LOST_AT)
    if str(rank) in living or living == "load": scales.step(run.optimizer) if way == "scaler" else run.optimizer.step()
    (folder / f"{rank}.behind").touch()
    group.barrier()
except yoke.Error as error:
    assert "died" in str(error), error
run.group = group.shrink(20.)
if living == "load": load()
said = ""
try:
    run.ddp.regroup(run.group, run.optimizer)
except yoke.StateError as error:
    said = str(error)
    load()
    run.ddp.regroup(run.group, run.optimizer)
behind = values()
run.steps(LOST_AT + 1, LOST_AT + 3)
print(json.dumps([said, whole, behind, values()]))
"""


def run(folder, device, way, living):
    folder /= device
    environment = machine(folder, RANKS, FAKE_CUDA_SEED="5", FAKE_NCCL_LATE="1")
    environment["PYTHONPATH"] = f"{HERE}:{environment.get('PYTHONPATH', '')}"
    ranks = [subprocess.Popen([sys.executable, "-c", PROGRAM, device, str(folder), way, living], env=each, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for each in under_torchrun(environment, RANKS)]
    done = [each.communicate(timeout=100) for each in ranks]
    assert [each.returncode for each in ranks] == [0, 0, -9], done
    found = [json.loads(out) for out, _ in done[:2]]
    assert found[0] == found[1]
    return found[0]


def distance(one, other):
    return max(abs(a - b) for p, q in zip(one, other, strict=True) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("way, living, is_refused", [("plain", "01", True), ("no_sync", "01", True), ("scaler", "01", True), ("plain", "0", False),
                                                     ("plain", "1", False), ("plain", "", False), ("plain", "load", False)])
def test_those_that_live_go_on_from_a_whole_step(tmp_path, way, living, is_refused):
    said, whole, behind, end = run(tmp_path, "cuda", way, living)
    assert bool(said) == is_refused, said
    assert not said or all(part in said for part in ("regroup: all ranks that are alive", "rank 2", "died", "load the last saved state")), said
    assert behind == whole
    *_, host = run(tmp_path, "cpu", way, "")
    assert distance(end, host) < 1e-5
