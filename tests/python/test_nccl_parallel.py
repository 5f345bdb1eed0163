"""Data parallel over NCCL on emulated cards: as through the host's memory, as one process with the whole batch, and alike on all ranks."""
import json
import os
import shutil
import subprocess
import sys

import pytest

from cards_of_ranks import IS_BUILT, PROGRAMS, machine, together, under_torchrun, write_pictures, yoke_run

LUA = shutil.which("lua5.4") or shutil.which("lua")
pytestmark = pytest.mark.skipif(not IS_BUILT, reason="no emulated CUDA module, no fake NVML or no command was built")

# Each way gives [gradients, values]. `one`: the same of one process with the batch of all ranks.
WAYS = '''
import json, os, sys
import yoke
from yoke import nn

class TwoCards(nn.Module):
    def __init__(self, first, second):
        self.a, self.b = nn.Linear(6, 8).to(first), nn.Linear(8, 2).to(second)
    def forward(self, x):
        return self.b(self.a(x).tanh().to(self.b.weight.device))

class Ranks:
    def __init__(self, backend):
        self.group = yoke.comm.init(backend=backend, timeout=60.)
        self.rank, self.size = self.group.rank, self.group.size
        self.card = f"cuda:{self.group.local_rank}"
        yoke.set_device(self.card)
    def wrap(self, net, **options):
        return yoke.DistributedDataParallel(net, self.group, bucket_mb=0.0003, **options)
    def rows(self, step):
        return rows(step, self.rank).to(self.card)

class One:
    """As if it were all ranks."""
    group, rank, card = None, 0, "cuda:0"
    def __init__(self, size):
        self.size = size
        yoke.set_device(self.card)
    def wrap(self, net, **options):
        return net
    def rows(self, step):
        return yoke.cat([rows(step, rank) for rank in range(self.size)]).to(self.card)

def rows(step, rank):
    return (yoke.arange(12, device="cpu").float() * 1.7 + rank + 0.3 * step).sin().reshape(2, 6) * 3

def net_of(norm=False, dtype=yoke.float32):
    yoke.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 12), *[nn.BatchNorm1d(12)] * norm, nn.Linear(12, 2)).to(dtype=dtype)

def loss(x):
    return (x.float() ** 2).mean()

def train(at, net, ddp, steps=4, optimizer=None):
    optimizer = optimizer or yoke.optim.AdamW(net.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        loss(ddp(at.rows(step).to(dtype=next(net.parameters()).dtype))).backward()
        if step < steps - 1: optimizer.step()
    return told(net)

def told(net, more=()):
    both = [p.grad for p in net.parameters()], [*net.parameters(), *net.buffers()]
    return [[None if each is None else each.float().cpu().reshape(-1).tolist() for each in some] for some in both] + list(more)

def plain(at, **options):
    net = net_of()
    return train(at, net, at.wrap(net, **options))

def hook(at):
    return plain(at, compression=lambda bucket, group: group.all_reduce(bucket.tensor, "avg", async_op=True))

def no_sync(at):
    net = net_of()
    ddp = at.wrap(net)
    if at.group is None:
        (loss(net(at.rows(0))) + loss(net(at.rows(1)))).backward()
        return told(net)
    with ddp.no_sync():
        loss(ddp(at.rows(0))).backward()
    loss(ddp(at.rows(1))).backward()
    return told(net)

def weights(at):   # a rank has as many rows as its weight
    net = net_of()
    ddp = at.wrap(net)
    every = [yoke.cat([rows(step, rank) for step in range(rank + 1)]) for rank in range(at.size)]
    if at.group is not None: ddp.set_weight(at.rank + 1)
    loss(ddp((yoke.cat(every) if at.group is None else every[at.rank]).to(at.card))).backward()
    return told(net)

def join(at):
    net = net_of(norm=True)
    ddp, optimizer = at.wrap(net), yoke.optim.AdamW(net.parameters(), lr=0.01)
    with at.group.join(optimizer):
        for step in range(1 + at.rank):
            optimizer.zero_grad()
            loss(ddp(at.rows(step))).backward()
            optimizer.step()
    return told(net)

def buffers(at):
    net = net_of(norm=True)
    return train(at, net, at.wrap(net))

def in_float32(at):
    net = net_of(dtype=yoke.bfloat16)
    return train(at, net, at.wrap(net, reduce_dtype=yoke.float32), 3)

def two_cards(at):
    yoke.manual_seed(1)
    net = TwoCards(at.card, "cuda:1" if at.group is None else f"cuda:{at.group.local_rank + at.size}")
    groups = [{"params": list(each.parameters())} for each in (net.a, net.b)]
    return train(at, net, at.wrap(net), optimizer=yoke.optim.AdamW(groups, lr=0.01))

def scaler(at):
    net = net_of()
    ddp, optimizer, scales = at.wrap(net), yoke.optim.AdamW(net.parameters(), lr=0.01), yoke.GradScaler(init_scale=8., growth_interval=2)
    found = []
    for step in range(4):
        optimizer.zero_grad()
        x = at.rows(step)
        if step == 2 and at.rank == at.size - 1: x = x * float("inf")   # on one rank
        scales.scale(loss(ddp(x))).backward()
        scales.step(optimizer)
        scales.update()
        found.append(scales.get_scale())
    return [[], told(net)[1], found]

WAYS = {"plain": plain, "fp16": lambda at: plain(at, compression="fp16"), "bf16": lambda at: plain(at, compression="bf16"),
        "powersgd": lambda at: plain(at, compression="powersgd:rank=2,start=2"), "hook": hook, "no_sync": no_sync, "weights": weights,
        "join": join, "buffers": buffers, "in_float32": in_float32, "two_cards": two_cards, "scaler": scaler}
names = sys.argv[2:]
if sys.argv[1] == "one":
    print(json.dumps({name: WAYS[name](One(int(os.environ["SIZE"]))) for name in names}))
else:
    at = Ranks(None if sys.argv[1] == "nccl" else sys.argv[1])
    given = {name: WAYS[name](at) for name in names}
    print(json.dumps([("nccl" in repr(at.group).split("; ")[-1]), given]))
'''
ALL = ["plain", "fp16", "bf16", "powersgd", "hook", "no_sync", "weights", "join", "buffers", "in_float32", "two_cards", "scaler"]
ROUNDS = {"fp16": 2e-3, "bf16": 3e-2}  # NCCL rounds each sum of two ranks, the host the whole sum
# Ways in which a single process has the same gradients: without compression, and without statistics of a batch.
AS_ONE = ["plain", "hook", "no_sync", "weights", "two_cards"]


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "ways.py"
    file.write_text(WAYS, encoding="utf-8")
    return [sys.executable, file]


def is_near(found, expected, allowed):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(is_near(a, b, allowed) for a, b in zip(found, expected))
    return found == expected if expected is None else abs(found - expected) <= allowed


@pytest.mark.parametrize("ranks, seed", [(2, 3), (4, 7)])
def test_gradients_and_parameters_are_those_of_the_host_and_of_one_process(script, tmp_path, ranks, seed):
    environment = machine(tmp_path / "machine", 2 * ranks, FAKE_CUDA_SEED=str(seed), FAKE_NCCL_LATE="1", SIZE=str(ranks))
    by = {}
    for backend in "nccl", "cpu":
        outs = [json.loads(out) for out in yoke_run([*script, backend, *ALL], environment, ranks)[0]]
        assert [used for used, _ in outs] == [backend == "nccl"] * ranks
        assert all(given == outs[0][1] for _, given in outs)  # to the bit
        by[backend] = outs[0][1]
    one = json.loads(together([*script, "one", *AS_ONE], [environment])[0][0])
    for name in ALL:
        assert is_near(by["nccl"][name], by["cpu"][name], ROUNDS.get(name, 1e-5)), name
    for name in AS_ONE:
        assert is_near(by["nccl"][name], one[name], 1e-4), name
    *_, scales = by["nccl"]["scaler"]
    assert scales == [8., 16., 8., 8.]


BEGIN = """
import json, os, signal, sys, time
import yoke
def begin():
    group = yoke.comm.init(timeout=30.)
    yoke.set_device(f"cuda:{group.local_rank}")
    return group, f"cuda:{group.local_rank}"
def net_of():
    yoke.manual_seed(1)
    return yoke.nn.Sequential(yoke.nn.Linear(6, 16), yoke.nn.Tanh(), yoke.nn.Linear(16, 2)).to(yoke.current_device())
def values(net): return [p.detach().cpu().reshape(-1).tolist() for p in net.parameters()]
"""


def test_set_device_comes_before_init_or_behind_it(tmp_path):
    outs = yoke_run([sys.executable, "-c", BEGIN + """
local = int(os.environ["LOCAL_RANK"])
found = []
for way in "before", "behind", "given":
    if way == "before": yoke.set_device(f"cuda:{local}")
    group = yoke.comm.init(device=f"cuda:{local}" if way == "given" else None, timeout=30.)
    if way != "before": yoke.set_device(local)
    net = net_of()
    ddp = yoke.DistributedDataParallel(net, group, device_ids=[local], output_device=local)
    ddp(yoke.full((2, 6), group.rank + 1., device="cpu")).sum().backward()
    found.append(["nccl" in repr(group), str(net[0].weight.grad.device), [p.grad.cpu().reshape(-1).tolist() for p in net.parameters()]])
    del ddp, group
    yoke.comm.finalize()
print(json.dumps(found))
"""], machine(tmp_path, 2), 2)[0]
    first, second = map(json.loads, outs)
    assert [a[0] for a in first + second] == [True] * 6
    assert [a[1] for a in first] == ["cuda:0"] * 3 and [a[1] for a in second] == ["cuda:1"] * 3
    assert all(a[2] == first[0][2] for a in first + second)


def test_a_module_goes_on_with_the_living_ranks_of_a_group_over_nccl(tmp_path):
    environments = under_torchrun(machine(tmp_path, 4, FAKE_CUDA_SEED="5"), 4)
    ranks = [subprocess.Popen([sys.executable, "-c", BEGIN + """
group, card = begin()
net = net_of()
ddp, optimizer = yoke.DistributedDataParallel(net, group, bucket_mb=0.0003), yoke.optim.AdamW(net.parameters(), lr=0.01)
def step(i):
    optimizer.zero_grad()
    (ddp(yoke.full((2, 6), (group.rank + i) / 4, device=card)) ** 2).mean().backward()
    optimizer.step()
for i in range(3): step(i)
group.barrier()  # the cards have reduced all
if group.rank == 3: os.kill(os.getpid(), signal.SIGKILL)
try:
    for i in range(3, 30): step(i)
    said = ""
except yoke.Error as error:
    said = str(error)
group = group.shrink()
ddp.regroup(group, optimizer)
for i in range(4): step(i)
print(json.dumps([said, group.size, "nccl" in repr(group), values(net)]))
"""], env=each, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for each in environments]
    done = [each.communicate(timeout=100) for each in ranks]
    assert [each.returncode for each in ranks] == [0, 0, 0, -9], done
    told = [json.loads(out) for out, _ in done[:3]]
    assert all("rank 3" in said and "died" in said for said, *_ in told), told
    assert all(rest == [3, True, told[0][3]] for _, *rest in told), told


def test_backward_returns_before_the_ranks_have_reduced(tmp_path):
    outs = yoke_run([sys.executable, "-c", BEGIN.replace("30.", "3.") + """
group, card = begin()
net = net_of()
ddp = yoke.DistributedDataParallel(net, group)
found = []
for step in range(3):
    ddp(yoke.ones((2, 6), device=card)).sum().backward()
    found.append(step)
    if step < 2: yoke.synchronize()
try:
    net[0].weight.grad.sum().item()
except yoke.TimeoutError:
    found.append("late")
print(json.dumps(found))
"""], machine(tmp_path, 2, FAKE_NCCL_STUCK="1@3"), 2)[0]   # the third bucket is never reduced
    assert [json.loads(out) for out in outs] == [[0, 1, 2, "late"]] * 2


@pytest.mark.parametrize("language", ["C", "Lua"])
def test_the_examples_of_all_languages_train_alike(tmp_path, language):
    if language == "Lua" and LUA is None:
        pytest.skip("there is no Lua")
    environment = machine(tmp_path / "machine", 2)
    options = ["--data", write_pictures(tmp_path / "pictures", 8), "--epochs", 1, "--threads", 1, "--losses", "--device", "auto"]
    outs, _ = yoke_run([*PROGRAMS[language], *options], environment, 2)
    expected, _ = yoke_run([*PROGRAMS["Python"], *options], environment, 2)
    def losses(out):
        line, = (line for line in out.splitlines() if line.startswith("losses: "))
        return [float.fromhex(loss) for loss in line.split()[1:]]
    assert losses(outs[0]) == pytest.approx(losses(expected[0]), rel=1e-5)
    with pytest.raises(AssertionError, match="ncclAllReduce"):   # proves the use of NCCL
        yoke_run([*PROGRAMS[language], *options], {**environment, "FAKE_NCCL_FAIL": "ncclAllReduce=2"}, 2)


# ---- A process with several cards ------------------------------------------------------------------------------------

@pytest.mark.parametrize("cards", [2, 4])
def test_one_process_has_groups_of_all_its_cards(tmp_path, cards):
    out, = together([sys.executable, "-c", f"CARDS = {cards}" + """
import json, threading
import yoke
cards = [f"cuda:{i}" for i in range(CARDS)]
groups = yoke.comm.init_all(cards, timeout=20.)
def made(count, *value):
    return [yoke.full((count,), *(value or [rank + 1.]), device=card) for rank, card in enumerate(cards)]
def every(call):
    with yoke.comm.coalesce():
        return [call(group, group.rank) for group in groups]
def threads(call):
    results = [None] * CARDS
    def run(rank):
        try: results[rank] = call(groups[rank], rank)
        except yoke.Error as error: results[rank] = f"{type(error).__name__} {error}"
    each = [threading.Thread(target=run, args=(rank,)) for rank in range(CARDS)]
    for one in each: one.start()
    for one in each: one.join()
    return results
said = {"nccl": all("nccl" in repr(group) for group in groups)}
for op in "sum", "avg", "max", "min", "prod":
    t = made(2)
    every(lambda group, rank: group.all_reduce(t[rank], op))
    said[op] = [each.tolist() for each in t]
t = made(2)
every(lambda group, rank: group.broadcast(t[rank], 1))
said["broadcast"] = [each.tolist() for each in t]
t = made(2)
every(lambda group, rank: group.reduce(t[rank], 1))
said["reduce"] = t[1].tolist()
t, out, back = made(2), made(2 * CARDS, 0.), made(2, 0.)
every(lambda group, rank: group.all_gather(out[rank], t[rank]))
said["all_gather"] = [each.tolist() for each in out]
every(lambda group, rank: group.reduce_scatter(back[rank], out[rank]))
said["reduce_scatter"] = [each.tolist() for each in back]
turned = made(2 * CARDS, 0.)
every(lambda group, rank: group.all_to_all(turned[rank], out[rank]))
said["all_to_all"] = [each.tolist() for each in turned]
every(lambda group, rank: group.gather(turned[0] if rank == 0 else None, t[rank], 0))
said["gather"] = turned[0].tolist()
every(lambda group, rank: group.scatter(back[rank], turned[0] if rank == 0 else None, 0))
said["scatter"] = [each.tolist() for each in back]
every(lambda group, rank: (group.send(t[rank], (rank + 1) % CARDS), group.recv(back[rank], (rank - 1) % CARDS)))
said["ring"] = [each.tolist() for each in back]
for work in every(lambda group, rank: group.all_reduce(t[rank], async_op=True)): work.wait()
said["async"] = t[0].tolist()
try: groups[0].all_reduce(t[0])
except yoke.StateError as error: said["outside"] = str(error)
parts = threads(lambda group, rank: group.split(rank % 2))
t = made(1)
with yoke.comm.coalesce():
    for rank, part in enumerate(parts): part.all_reduce(t[rank])
said["split"] = [each.item() for each in t]
threads(lambda group, rank: group.abort("enough") if rank == 1 else None)
said["failed"] = threads(lambda group, rank: every(lambda each, at: each.barrier()) if rank == 0 else None)[0]
living = [group for group in threads(lambda group, rank: None if rank == 1 else group.shrink()) if group is not None]
t = made(1)
with yoke.comm.coalesce():
    for group, rank in zip(living, [0, *range(2, CARDS)]): group.all_reduce(t[rank])
said["shrunk"] = [each.item() for each in t]
print(json.dumps(said))
"""], [machine(tmp_path, cards)])[0]
    said, ranks = json.loads(out), range(1, cards + 1)
    product = 2. if cards == 2 else 24.
    total, gathered = float(sum(ranks)), [float(rank) for rank in ranks for _ in range(2)]
    assert said.pop("nccl") is True and "in one coalesce" in said.pop("outside") and "enough" in said.pop("failed")
    assert said == {
        "sum": [[total] * 2] * cards, "avg": [[total / cards] * 2] * cards, "max": [[float(cards)] * 2] * cards, "min": [[1.] * 2] * cards,
        "prod": [[product] * 2] * cards, "broadcast": [[2.] * 2] * cards, "reduce": [total] * 2, "all_gather": [gathered] * cards,
        "reduce_scatter": [[float(cards * rank)] * 2 for rank in ranks], "all_to_all": [[float(rank)] * 2 * cards for rank in ranks],
        "gather": gathered, "scatter": [[float(rank)] * 2 for rank in ranks], "ring": [[float((rank - 2) % cards + 1)] * 2 for rank in ranks],
        "async": [total] * 2, "split": [1., 2.] if cards == 2 else [4., 6., 4., 6.], "shrunk": [1., 2.] if cards == 2 else [8., 2., 8., 8.]}
