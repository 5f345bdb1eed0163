"""Each rank on a card of its own: the device of `auto`, data parallel across cards, and comparisons between ranks."""
import json
import os
import sys

import pytest

from cards_of_ranks import IS_BUILT, PROGRAMS, machine, together, under_torchrun, write_pictures, yoke_run

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # slow as well: a single case each
pytestmark = pytest.mark.skipif(not IS_BUILT, reason="no emulated CUDA module, no fake NVML or no command was built")

RECIPE = '''
import json, sys
import yoke

def net_of(seed):
    yoke.manual_seed(seed)
    return yoke.nn.Sequential(yoke.nn.Linear(3, 4), yoke.nn.ReLU(), yoke.nn.Linear(4, 2))

def rows(first, count):
    return yoke.arange(3 * count).reshape(count, 3) / 8 + first

def gradients(net, forward, x):
    (forward(x) ** 2).mean().backward()
    return [each.grad.cpu().reshape(-1).tolist() for each in net.parameters()]

def train(spec):
    group = yoke.comm.init()
    yoke.set_device(spec.format(group.local_rank))
    net = net_of(group.rank)
    ddp = yoke.DistributedDataParallel(net, group)
    found = gradients(net, ddp, rows(group.rank * 2, 2))
    print(json.dumps([group.rank, str(net[0].weight.device), found]), flush=True)
'''
ONE_PROCESS = '''
def alone(size):
    yoke.set_device("cpu")
    net = net_of(0)
    print(json.dumps(gradients(net, net, yoke.cat([rows(rank * 2, 2) for rank in range(size)]))))
alone(int(sys.argv[1]))
'''


@pytest.fixture
def recipe(tmp_path):
    """recipe(tail): a file of the recipe, which ends with these lines."""
    def recipe(tail):
        file = tmp_path / "recipe.py"
        file.write_text(RECIPE + tail, encoding="utf-8")
        return [sys.executable, file]
    return recipe


def ways(name, recipe, environment, ranks, spec):
    """Returns the output of the recipe under a launcher, by rank."""
    if name == "yoke run":
        return yoke_run([*recipe("train(sys.argv[1])"), spec], environment, ranks)
    if name == "torchrun":
        return together([*recipe("train(sys.argv[1])"), spec], under_torchrun(environment, ranks))
    command = recipe('if __name__ == "__main__": yoke.spawn(train, int(sys.argv[1]), (sys.argv[2],))')
    (out,), (error,) = together([*command, ranks, spec], [environment])
    lines = [line[line.index("] ") + 2:] + "\n" for line in sorted(out.splitlines())]
    return lines, [error] * ranks


@pytest.mark.parametrize("launcher, cards, spec", [
    ("spawn", 2, "cuda:{}"), ("torchrun", 2, "auto"), ("yoke run", 2, "auto:kind=cuda"),
    *([] if SANITIZED else [("spawn", 4, "auto"), ("torchrun", 4, "cuda:{}"), ("yoke run", 8, "auto")])])
def test_each_rank_has_its_own_card_and_the_gradients_of_one_process(recipe, tmp_path, launcher, cards, spec):
    environment = machine(tmp_path / "machine", cards)
    outs, errors = ways(launcher, recipe, environment, cards, spec)
    (one,), _ = together([*recipe(ONE_PROCESS), cards], [environment])
    expected = json.loads(one)
    for rank, out in enumerate(outs):
        told, device, found = json.loads(out)
        assert (told, device) == (rank, f"cuda:{rank}")
        for got, right in zip(found, expected, strict=True):
            assert got == pytest.approx(right, rel=1e-5, abs=1e-6)
    assert all("share a device" not in error and "different modules" not in error for error in errors), errors


def run(environment, script, ranks=0, **variables):
    """Returns the output of a script as words, and its standard error, by rank. With `ranks`, the script runs under torchrun."""
    environments = [{**each, **variables} for each in under_torchrun(environment, ranks)] if ranks else [{**environment, **variables}]
    outs, errors = together([sys.executable, "-c", "import yoke\n" + script], environments)
    return [out.split() for out in outs], errors


SAYS = "print(yoke.current_device(), yoke.device('auto'), yoke.select()[0], yoke.explain('auto')[0].device, yoke.ones(2).device)"


def test_what_auto_means_is_the_same_wherever_it_is_said(tmp_path):
    outs, errors = run(machine(tmp_path, 4), SAYS, 4)
    assert outs == [[f"cuda:{rank}"] * 5 for rank in range(4)] and errors == [""] * 4
    outs, _ = run(machine(tmp_path, 4), SAYS + "\nprint(yoke.explain('auto')[0].reason)", 2, YOKE_DEVICE="auto:min_free=8GiB")
    assert [out[:5] for out in outs] == [["cuda:0"] * 5, ["cuda:1"] * 5]
    assert " ".join(outs[1]).endswith("; for local rank 1")


def test_a_count_asks_for_the_best_devices_whoever_asks(tmp_path):
    script = "print(yoke.device('auto:n=1'), *yoke.select(2), *yoke.select(1), yoke.explain('auto:n=1')[0].device)"
    outs, _ = run(machine(tmp_path, 4), script, 2)
    (alone,), _ = run(machine(tmp_path, 4), script)
    assert outs == [alone, alone]


def test_a_process_that_is_alone_on_its_machine_takes_the_best_device(tmp_path):
    environment = machine(tmp_path, 3, changes={"0": {"used": "60GiB"}, "1": {"used": "2GiB"}})
    best = [["cuda:2"] * 5]
    assert run(environment, SAYS)[0] == best
    assert run(environment, SAYS, 1)[0] == best
    assert run(environment, SAYS, RANK="3", WORLD_SIZE="8", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")[0] == best
    assert run(environment, SAYS, LOCAL_RANK="1")[0] == best  # no other variable marks a rank


def test_cards_that_do_not_serve_are_passed_over(tmp_path):
    environment = machine(tmp_path, 4, changes={"1": {"used": "70GiB"}})
    outs, errors = run(environment, SAYS, 3, YOKE_DEVICE="auto:min_free=40GiB")
    assert [out[0] for out in outs] == ["cuda:0", "cuda:2", "cuda:3"] and errors == [""] * 3


def test_the_slower_card_is_for_the_rank_that_gets_no_other(tmp_path):
    environment = machine(tmp_path, 3, changes={"0": {"model": "T4"}}, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    outs, _ = run(environment, SAYS, 3)
    assert [out[0] for out in outs] == ["cuda:1", "cuda:2", "cuda:0"]
    assert [set(out) for out in outs] == [{"cuda:1"}, {"cuda:2"}, {"cuda:0"}]


def test_more_ranks_than_devices_take_them_in_turn_with_one_warning(tmp_path):
    outs, errors = run(machine(tmp_path, 2), SAYS, 5)
    assert outs == [[f"cuda:{rank % 2}"] * 5 for rank in range(5)]
    outs_of_one, errors_of_one = run(machine(tmp_path, 1), SAYS, 3)
    assert outs_of_one == [["cuda:0"] * 5] * 3 and [error.count("share a device") for error in errors_of_one] == [0, 1, 0]
    told = [rank for rank, error in enumerate(errors) if error]
    assert told == [2] and errors[2].count("share a device") == 1 and "local rank 2, but only 2 of" in errors[2], errors


def test_ranks_on_a_machine_without_cards_share_the_cpu_without_a_warning(tmp_path):
    outs, errors = run(machine(tmp_path, 0), SAYS, 3)
    assert outs == [["cpu"] * 5] * 3 and errors == [""] * 3


def test_one_visible_card_is_the_ranks_own_where_each_rank_was_given_one(tmp_path):
    environment = machine(tmp_path, 4)
    each = [{**one, "CUDA_VISIBLE_DEVICES": str(3 - rank)} for rank, one in enumerate(under_torchrun(environment, 2))]
    script = "import yoke; print(yoke.device('auto'), yoke.explain('auto')[0].device, yoke.device('auto').uuid)"
    outs, errors = together([sys.executable, "-c", script], each)
    words = [out.split() for out in outs]
    assert [out[:2] for out in words] == [["cuda:0"] * 2] * 2 and words[0][2] != words[1][2] and errors == ["", ""]
    _, errors = yoke_run([sys.executable, "-c", script], {**environment, "CUDA_VISIBLE_DEVICES": "1"}, 2)  # both ranks on the same card
    assert errors[0] == "" and errors[1].count("share a device") == 1, errors


def test_a_variable_that_cannot_be_read_is_told_and_counts_no_ranks(tmp_path):
    environment = machine(tmp_path, 2)
    (out,), (error,) = run(environment, SAYS, RANK="0", WORLD_SIZE="2", LOCAL_RANK="two")
    assert out == ["cuda:1"] * 5 and error.count("LOCAL_RANK is 'two'") == 1, error
    (out,), (error,) = run(environment, SAYS, RANK="0", WORLD_SIZE="2", LOCAL_RANK="7", LOCAL_WORLD_SIZE="2")
    assert out == ["cuda:1"] * 5 and "LOCAL_RANK is 7, and LOCAL_WORLD_SIZE is 2" in error, error


def test_ranks_that_lease_hold_a_card_each_and_count_those_of_others_last(tmp_path):
    environment = machine(tmp_path, 4)
    script = """
import time
group = yoke.comm.init()
for turn in range(group.size):  # one after the other: the last one finds the others' leases
    if turn == group.rank: device = yoke.device("auto:lease")
    group.barrier()
print(device, device.lease is not None, yoke.explain("auto:lease")[0].device, yoke.explain("auto:exclude=leased")[0].device)
group.barrier()
"""
    outs, errors = run(environment, script, 4)
    assert outs == [[f"cuda:{rank}", "True", f"cuda:{rank}", f"cuda:{rank}"] for rank in range(4)] and errors == [""] * 4
    outs, errors = run(environment, """
held = yoke.select(lease=True)[0]
import subprocess, sys, os
script = "import yoke; print(yoke.device('auto'))"
own = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29999"}
ranks = [subprocess.run([sys.executable, "-c", script], env={**os.environ, **own, "RANK": str(k), "LOCAL_RANK": str(k)}, capture_output=True, text=True)
         for k in range(2)]
print(held, *(each.stdout.strip() for each in ranks))
""")
    assert outs == [["cuda:3", "cuda:0", "cuda:1"]]


def test_ranks_that_were_started_by_hand_have_their_own_once_they_have_met(tmp_path):
    environment = machine(tmp_path, 2)
    script = "import yoke; group = yoke.comm.init(); yoke.set_device('auto'); print(yoke.ones(1).device)"
    plain = [{name: value for name, value in each.items() if not name.startswith(("LOCAL_", "TORCHELASTIC_"))}
             for each in under_torchrun(environment, 2)]
    assert together([sys.executable, "-c", script], plain)[0] == ["cuda:0\n", "cuda:1\n"]


# ---- Values that must be equal on all ranks --------------------------------------------------------------------------

ACROSS = """
group = yoke.comm.init(timeout=60.)
rank, size = group.rank, group.size
yoke.set_device(f"cuda:{rank}")
def told(call):
    try:
        call()
        return "fine"
    except yoke.Error as error:
        return f"{type(error).__name__} {error}"
"""


def test_states_compressions_joins_and_regroups_go_from_card_to_card(tmp_path):
    outs, errors = run(machine(tmp_path, 2), ACROSS + """
net = yoke.nn.Sequential(yoke.nn.Conv2d(1, 4, 3), yoke.nn.BatchNorm2d(4), yoke.nn.Flatten(), yoke.nn.Linear(16, 64))
optimizer = yoke.optim.AdamW(net.parameters(), lr=0.1)
scaler, average = yoke.GradScaler(), yoke.optim.EMA(net.parameters())
sampler = yoke.data.DistributedSampler(8, rank=rank, world_size=size)
ddp = yoke.DistributedDataParallel(net, group, compression="powersgd:rank=1,start=2")
def step(x):
    scaler.scale((ddp(x) ** 2).mean()).backward()
    scaler.step(optimizer); scaler.update(); optimizer.zero_grad()
for i in range(3): step(yoke.full((2, 1, 4, 4), rank + i + 1.))
ddp.load_comm_state(ddp.comm_state())
with group.join(optimizer):
    for i in range(1 + rank): step(yoke.full((2, 1, 4, 4), rank + 1.))
smaller = group.shrink()
ddp.regroup(smaller, optimizer, scaler, sampler)
step(yoke.full((2, 1, 4, 4), rank + 1.))
state = ddp.state_dict()
sums = yoke.tensor([sum(t.cpu().double().sum().item() for t in state.values())], dtype=yoke.float64, device="cpu")
both = yoke.zeros(2, dtype=yoke.float64, device="cpu")
smaller.all_gather(both, sums)
print(both[0].item() == both[1].item(), *{str(t.device) for t in [*state.values(), *net.parameters()]})
""", 2)
    assert outs == [["True", "cuda:0"], ["True", "cuda:1"]], errors


def test_what_is_unlike_is_still_named_and_no_number_of_a_card_is(tmp_path):
    outs, _ = run(machine(tmp_path, 2), ACROSS + """
def wrap(*made, **options):
    holder = yoke.nn.Module()
    for i, (shape, dtype, device) in enumerate(made):
        setattr(holder, f"p{i}", yoke.nn.Parameter(yoke.zeros(shape, dtype=dtype, device=device)))
    return told(lambda: yoke.DistributedDataParallel(holder, group, **options))
here, other, f32 = f"cuda:{rank}", f"cuda:{1 - rank}", yoke.float32
print(wrap(([2], f32, "cpu" if rank else here)))
print(wrap(([2 + rank], f32, here)))
print(wrap(([2], yoke.bfloat16 if rank else f32, here)))
print(wrap(([2], f32, here), ([2], f32, other), ([2], f32, here)))
print(wrap(([2], f32, here), ([2], f32, here if rank else other)))
print(wrap(([2], f32, here), bucket_mb=1 + rank))
""".replace("print(wrap", "print('|', wrap"), 2)
    both = [" ".join(out).split("| ")[1:] for out in outs]
    assert both[0] == both[1]
    kinds, shapes, dtypes, crossed, unlike, options = both[0]
    assert "'p0' is [2] float32 on cuda on rank 0, the parameter 'p0' is [2] float32 on cpu on rank 1" in kinds
    assert "[2] float32 on cuda on rank 0" in shapes and "[3] float32 on cuda on rank 1" in shapes
    assert "[2] bfloat16 on cuda on rank 1" in dtypes and crossed.strip() == "fine"
    assert "'p1' is [2] float32 on cuda, device 2 of the module on rank 0" in unlike and "'p1' is [2] float32 on cuda on rank 1" in unlike
    assert "'bucket_mb' is 2" in options and "cuda:" not in " ".join(both[0])


# ---- The examples ----------------------------------------------------------------------------------------------------

def losses(out):
    line, = (line for line in out.splitlines() if line.startswith("losses: "))
    return [float.fromhex(loss) for loss in line.split()[1:]]


SPAWNED = """
import os
import runpy
import sys
import yoke

def train(words):
    sys.argv = words
    sys.path.insert(0, os.path.dirname(words[0]))
    runpy.run_path(words[0], run_name="__main__")

if __name__ == "__main__":
    yoke.spawn(train, int(sys.argv[1]), (sys.argv[2:],))
"""


def launched(launcher, command, environment, cards, folder):
    """Returns the output of an example's rank 0 under a launcher, and the card of rank 0."""
    if launcher == "torchrun":  # rank 0 has the last local rank
        return together(command, under_torchrun(environment, cards, backwards=True))[0][0], cards - 1
    if launcher == "yoke run":
        return yoke_run(command, environment, cards)[0][0], 0
    script = folder / "spawned.py"
    script.write_text(SPAWNED, encoding="utf-8")
    interpreter, *words = command
    (out,), _ = together([interpreter, script, cards, *words], [environment])
    return "".join(line[len("[0] "):] + "\n" for line in out.splitlines() if line.startswith("[0] ")), 0


@pytest.mark.parametrize("language, cards, spec, launcher", [
    ("C", 2, None, "torchrun"), ("C", 4, "auto", "yoke run"),
    *([] if SANITIZED else [("C", 8, "auto", "torchrun"), ("Lua", 2, "auto", "yoke run"), ("Lua", 2, None, "torchrun"),
                            ("Python", 2, "auto", "spawn"), ("Python", 4, None, "yoke run")])])
def test_the_example_trains_on_a_card_for_each_rank_as_on_the_cpu(tmp_path, language, cards, spec, launcher):
    environment = machine(tmp_path / "machine", cards)
    pictures = write_pictures(tmp_path / "pictures", 2 * cards)
    options = ["--data", pictures, "--epochs", 1, "--threads", 1, "--losses"]
    command = [*PROGRAMS[language], *options]
    by_spec = [*command, "--device", spec] if spec else ["sh", "-c", 'exec "$@" --device "cuda:$LOCAL_RANK"', "sh", *command]
    out, card = launched(launcher, by_spec, environment, cards, tmp_path)
    assert f"ranks: {cards}, device: cuda:{card}," in out
    on_cpu, _ = yoke_run([*command, "--device", "cpu"], environment, cards)
    assert losses(out) == pytest.approx(losses(on_cpu[0]), rel=1e-5)
