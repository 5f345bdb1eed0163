"""A rank is killed, stopped, or out of memory amid a training: the other ranks get the error, and go on. ./dev soak parallel repeats
this again and again.
"""
import json
import os
import pathlib
import threading

import pytest

import yoke
from yoke import nn
from parallel_run import BATCH, EXAMPLES, Run
from rank_scripts import start
from test_parallel import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:DistributedDataParallel. the ranks began with different values")
RANKS, AT = 3, 3  # the fault comes amid this step
ROUND = int(os.environ.get("YOKE_ROUND", "0"))

TRAINING = f"""
import contextlib, json, time
from parallel_run import BATCH, Run
kind, where, victim = os.environ["FAULT"].split()
victim, folder = int(victim), os.environ["FOLDER"]
group = yoke.comm.init(timeout=4. if kind == "stopped" else 60.)
processes = yoke.zeros(size, dtype=yoke.int64)
group.all_gather(processes, yoke.tensor([os.getpid()]))
step = 0

def may_fail(here):
    if (rank, step, where) != (victim, {AT}, here):
        return
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    yoke.zeros((1 << 45,))

def hook(bucket, group):
    if bucket.index == 1:
        may_fail("backward")
    return group.all_reduce(bucket.tensor, op="avg", async_op=True)

run = Run(group, compression=hook)
told = []

def train():
    global step
    while len(which := run.batch()) == BATCH:
        loss = run.loss(which)
        may_fail("forward")
        loss.backward()
        may_fail("optimizer")
        run.step()
        step += 1

def recover(error):
    global group, run
    began = time.monotonic()
    group = group.shrink()
    run.regroup(group)
    state = run.state()
    if group.rank == 0:
        yoke.save(os.path.join(folder, "there.safetensors"), state)
    told.append([type(error).__name__, str(error), time.monotonic() - began])

try:
    with group:
        while True:
            try:
                train()
                break
            except (yoke.CollectiveError, yoke.TimeoutError, yoke.CancelledError) as error:
                if rank == victim:
                    raise
                recover(error)
        group.barrier()
finally:
    if kind == "stopped" and rank != victim:
        with contextlib.suppress(ProcessLookupError):
            os.kill(processes.tolist()[victim], signal.SIGKILL)
print(json.dumps([told, group.size, run.told()]))
"""

ERRORS = {"killed": ["CollectiveError"], "stopped": ["TimeoutError", "CollectiveError"], "memory": ["CancelledError", "OutOfMemoryError"]}
CASES = [(kind, where) for kind in ERRORS for where in ("forward", "backward", "optimizer")]
DAILY = [case for case in CASES if "YOKE_ROUND" in os.environ or case[0] != "stopped" or case[1] == "backward"]  # other cases also wait for deadlines


def expected(there):
    """Returns the results of as many ranks that go on from this state."""
    def go_on(group):
        run = Run(group).go_on_from(there)
        run.finish()
        return run.told()
    first, second = on_ranks(RANKS - 1, go_on)
    assert first == second
    return json.loads(json.dumps(first))


@pytest.mark.parametrize("kind, where", DAILY)
def test_the_others_are_told_and_go_on_as_they_would_have_without_it(kind, where, tmp_path):
    victim = (CASES.index((kind, where)) + ROUND) % RANKS
    paths = os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    outs, statuses, errors = start(TRAINING, RANKS, FAULT=f"{kind} {where} {victim}", FOLDER=str(tmp_path), PYTHONPATH=paths)
    living = [rank for rank in range(RANKS) if rank != victim]
    assert [statuses[rank] for rank in living] == [0, 0] and statuses[victim] == (1 if kind == "memory" else -9), (statuses, errors)
    assert kind != "memory" or "OutOfMemoryError" in errors[victim]
    there = yoke.load(str(tmp_path / "there.safetensors"))
    after = expected(there)
    for rank in living:
        told, size, state = json.loads(outs[rank])
        assert len(told) == 1 and told[0][0] in ERRORS[kind] and f"rank {victim} (host" in told[0][1], told
        assert size == RANKS - 1 and state == after
        assert "YOKE_ROUND" not in os.environ or told[0][2] <= 5, told
    steps = int(next(iter(there["optimizer"]["state"].values()))["step"].item())
    all_had = AT + (where == "optimizer")  # a backward completed by all ranks
    assert steps == all_had and there["sampler"]["consumed"] == (steps + 1) * RANKS * BATCH < EXAMPLES


SHORT_OF_MEMORY = """
import resource
import yoke
from yoke import nn
from yoke import nn
group = yoke.comm.init(timeout=30.)
large = nn.Parameter(yoke.ones(1 << 24), requires_grad=os.environ["LARGE"] == "trained")
net = nn.Linear(2, 2)
net.large = large
group.barrier()
limits = resource.getrlimit(resource.RLIMIT_AS)
if rank == 1:
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20), limits[1]))
try:
    ddp = yoke.DistributedDataParallel(net, group)
    (ddp(yoke.ones((1, 2))).sum() + large.sum()).backward()
    print("made")
except yoke.Error as error:
    resource.setrlimit(resource.RLIMIT_AS, limits)
    print(type(error).__name__, error)
"""


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer takes all of the address space")
def test_a_rank_that_finds_no_memory_when_it_wraps_is_told_to_the_others():
    outs, statuses, errors = start(SHORT_OF_MEMORY, 2, LARGE="frozen")
    assert statuses == [0, 0] and outs == ["made\n", "made\n"], (outs, errors)  # comparing 64 MiB needs no copy
    outs, statuses, errors = start(SHORT_OF_MEMORY, 2, LARGE="trained")
    assert statuses == [0, 0] and any(out.startswith("OutOfMemoryError") for out in outs), (outs, errors)
    for out in outs:  # both ranks learn of the shortage; a rank notified first raises the other's error
        assert out.startswith(("OutOfMemoryError", "CancelledError")) and "on the host of rank 1 (host" in out and "are free" in out, outs


def freeze_all(net):
    for each in net.parameters():
        each.requires_grad_(False)


@pytest.mark.parametrize("spoil, options, problem", [
    (freeze_all, {}, "no parameter that requires a gradient"), (None, {"bucket_mb": -1}, "'bucket_mb' is -1|'mib' is -1|-1"),
    (None, {"compression": "powersgd:rnk=2"}, "rnk")])
@pytest.mark.parametrize("which", [[1], [0, 1, 2]])
def test_what_is_refused_on_some_ranks_while_they_wrap_is_told_to_all_at_once(spoil, options, problem, which):
    def body(group):
        net = nn.Linear(4, 4)
        if spoil and group.rank in which:
            spoil(net)
        with pytest.raises(yoke.ValueError, match=problem) as told:
            yoke.DistributedDataParallel(net, group, **options if group.rank in which else {})
        assert ("rank 1 (host" in str(told.value)) == (group.rank not in which)
        ddp = yoke.DistributedDataParallel(nn.Linear(4, 4), group)  # the group is unchanged
        ddp(yoke.ones((2, 4))).sum().backward()
        return ddp.module.bias.grad.tolist()
    assert on_ranks(3, body, yoke.comm.init_all(["cpu"], size=3, timeout=30.)) == [[2.] * 4] * 3


@pytest.mark.parametrize("spoil, problem", [
    (lambda ddp: ddp.set_weight(0), "'n' is 0"), (lambda ddp: ddp.set_weight(float("nan")), "'n' is nan"),
    (lambda ddp: ddp.set_weight("3"), "'n'"),
    (lambda ddp: ddp.load_state_dict({"module.other": yoke.ones(4)}), "other"),
    (lambda ddp: ddp.regroup(5), "'group' is 5")])
def test_at_their_deadline_the_others_hear_what_a_rank_was_refused_in_place_of_its_backward(spoil, problem):
    have_heard = threading.Event()

    def body(group):
        ddp = yoke.DistributedDataParallel(nn.Linear(4, 4), group)
        if group.rank == 1:
            with pytest.raises(yoke.Error, match=problem):
                spoil(ddp)
            have_heard.wait(30)
            return None
        try:
            ddp(yoke.ones((2, 4))).sum().backward()
        finally:
            have_heard.set()
    told = on_ranks(2, body, yoke.comm.init_all(["cpu"], size=2, timeout=1.))
    assert isinstance(told[0], yoke.Error) and "was refused: " in str(told[0]) and problem in str(told[0]) and told[1] is None, told


def test_at_their_deadline_the_others_hear_what_a_rank_was_refused_as_they_regroup():
    have_heard = threading.Event()

    def body(group):
        ddp = yoke.DistributedDataParallel(nn.Linear(4, 4), group)
        part = group.split(0)
        if group.rank == 1:
            with pytest.raises(yoke.TypeError, match="object 0 is 'a text'"):
                ddp.regroup(part, "a text")
            have_heard.wait(30)
            return None
        try:
            ddp.regroup(part)
        finally:
            have_heard.set()
    told = on_ranks(2, body, yoke.comm.init_all(["cpu"], size=2, timeout=1.))
    assert isinstance(told[0], yoke.Error) and "was refused: " in str(told[0]) and "object 0 is 'a text'" in str(told[0]) and told[1] is None, told


@pytest.mark.parametrize("refused, problem", [
    (lambda loss: loss.backward("one"), "'gradient'"), (lambda loss: loss.backward(retain_graph="x"), "'retain_graph'"),
    (lambda loss: loss.backward(nonsense=1), "nonsense")])
def test_a_backward_that_takes_no_such_argument_is_told_to_all_at_once(refused, problem):
    def body(group):
        ddp = yoke.DistributedDataParallel(nn.Linear(4, 4), group)
        loss = ddp(yoke.ones((2, 4))).sum()
        group.monitored_barrier(30.)  # no rank fails before
        with pytest.raises(yoke.CancelledError if group.rank == 0 else TypeError, match=problem) as told:
            loss.backward() if group.rank == 0 else refused(loss)
        return str(told.value)
    first, second = on_ranks(2, body, yoke.comm.init_all(["cpu"], size=2, timeout=120.))
    assert "rank 1 (host" in first and "its backward failed" in first, (first, second)


def test_the_others_are_told_of_a_join_that_cannot_end():
    def body(group):
        model = nn.Linear(6, 2)
        ddp = yoke.DistributedDataParallel(model, group)
        # The error comes at once, not at the deadline.
        with pytest.raises(yoke.CancelledError if group.rank else yoke.StateError, match="has no DistributedDataParallel"):
            with group.join():
                for _ in range(1 + group.rank):
                    ddp(yoke.ones((2, 6))).sum().backward()
                if group.rank == 0:
                    del ddp
    assert on_ranks(2, body) == [None, None]
