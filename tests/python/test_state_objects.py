"""Optimizers, scalers, averages, schedules and random numbers in files: PyTorch's layout, and training that goes on with the same bits."""
import json

import pytest

import yoke
from stored_files import read, stored_of
from yoke import nn, optim
from yoke.optim import schedule


def rounds(net, optimizer, steps, scaler=None, ema=None, sched=None):
    """Trains on random numbers, so that where these stand counts too; the losses."""
    losses = []
    dtype = next(iter(net.parameters())).dtype
    for _ in range(steps):
        x = yoke.randn(8, 4).to(dtype=dtype)
        loss = yoke.dropout(net(x), 0.25).float().pow(2.0).mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        if sched:
            sched.step()
        if ema:
            ema.update()
    return losses


def sgd(params):
    return optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)


def adam(params):
    return optim.Adam(params, lr=0.01, betas=(0.8, 0.99))


def adamw(params):
    return optim.AdamW(params, lr=0.01, eps=1e-7)


def masters(params):
    return optim.AdamW(params, lr=0.01, master_weights=True)


class Run:
    def __init__(self, make, dtype, seed):
        yoke.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(dtype=dtype)
        params = list(self.net.parameters())
        self.optimizer = make([{"params": params[:2]}, {"params": params[2:], "lr": 0.05}])
        self.scaler = a_scaler() if dtype == yoke.float32 else yoke.GradScaler(enabled=False)
        self.ema = optim.EMA(params, decay=0.9)
        self.sched = schedule.cosine(self.optimizer, total_steps=20, warmup_steps=3)

    def go_on(self, steps):
        return rounds(self.net, self.optimizer, steps, self.scaler, self.ema, self.sched)

    def state(self):
        return {"net": self.net, "optimizer": self.optimizer, "scaler": self.scaler, "ema": self.ema, "schedule": self.sched,
                "rng": yoke.get_rng_state(), "epoch": 3}

    def load(self, state):
        assert state["epoch"] == 3
        for name in ("net", "optimizer", "scaler", "ema"):
            getattr(self, name).load_state_dict(state[name])
        self.sched.load_state_dict(state["schedule"])
        yoke.set_rng_state(state["rng"])

    def numbers(self):
        tensors = [*self.net.state_dict().values(), *self.ema.averages,
                   *(x for each in self.optimizer.state_dict()["state"].values() for x in each.values())]
        return [stored_of(x) for x in tensors], self.scaler.state_dict(), self.sched.state_dict(), self.sched.last_lr


def a_scaler():
    return yoke.GradScaler(init_scale=1024.0, growth_interval=3)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("make, dtype", [(sgd, yoke.float32), (adam, yoke.float32), (adamw, yoke.float64), (masters, yoke.bfloat16),
                                         (masters, yoke.float16)], ids=lambda x: getattr(x, "__name__", str(x)))
def test_a_run_goes_on_from_a_file_with_the_same_bits(tmp_path, make, dtype, mmap):
    first = Run(make, dtype, seed=1)
    first.go_on(4)
    yoke.save(tmp_path / "run", first.state())
    yoke.save(tmp_path / "run", first.state())
    wanted = first.go_on(6)
    second = Run(make, dtype, seed=2)
    second.go_on(2)
    second.load(yoke.load(tmp_path / "run", mmap=mmap))
    assert second.go_on(6) == wanted and second.numbers() == first.numbers()


def test_loading_from_pages_leaves_the_file_as_it_is(tmp_path):
    run = Run(adamw, yoke.float32, seed=3)
    run.go_on(2)
    yoke.save(tmp_path / "run", run.state())
    before = (tmp_path / "run").read_bytes()
    run.load(yoke.load(tmp_path / "run"))
    run.go_on(3)
    assert (tmp_path / "run").read_bytes() == before


def tree_in(path):
    return json.loads(read(path)[1]["yoke.tree"])


def test_the_layout_of_an_optimizer_is_pytorchs(tmp_path):
    params = [nn.Parameter(yoke.ones(n)) for n in (2, 3, 4)]
    optimizer = optim.AdamW([{"params": params[:2]}, {"params": params[2:], "lr": 0.5}], lr=0.25)
    params[0].grad, params[2].grad = yoke.ones(2), yoke.ones(4)
    optimizer.step()
    yoke.save(tmp_path / "file", optimizer)
    options = {"betas": {"$tuple": [0.9, 0.999]}, "eps": 1e-08, "weight_decay": 0.01, "master_weights": False}
    assert tree_in(tmp_path / "file") == {
        "state": {"$dict": [[n, {name: {"$tensor": f"state.{n}.{name}"} for name in ("exp_avg", "exp_avg_sq", "step")}] for n in (0, 2)]},
        "param_groups": [{"lr": 0.25, **options, "params": [0, 1]}, {"lr": 0.5, **options, "params": [2]}]}
    found = read(tmp_path / "file")[0]
    assert {name: (x.dtype, x.shape) for name, x in found.items() if name.startswith("state.2")} == {
        "state.2.exp_avg": ("F32", (4,)), "state.2.exp_avg_sq": ("F32", (4,)), "state.2.step": ("F32", ())}
    momentum = optim.SGD(params[:1], lr=0.5, momentum=0.5)
    momentum.step()
    yoke.save(tmp_path / "file", momentum)
    assert tree_in(tmp_path / "file") == {
        "state": {"$dict": [[0, {"momentum_buffer": {"$tensor": "state.0.momentum_buffer"}}]]},
        "param_groups": [{"lr": 0.5, "momentum": 0.5, "weight_decay": 0.0, "nesterov": False, "master_weights": False, "params": [0]}]}


def test_the_layouts_of_the_others(tmp_path):
    optimizer = optim.SGD([nn.Parameter(yoke.ones(2))], lr=0.5)
    scaler, ema = a_scaler(), optim.EMA(optimizer.param_groups[0]["params"], decay=0.5)
    yoke.save(tmp_path / "file", {"scaler": scaler, "off": yoke.GradScaler(enabled=False), "ema": ema,
                                  "step": schedule.step(optimizer, 3, gamma=0.25), "linear": schedule.linear(optimizer, 1, 0.0, 10)})
    assert tree_in(tmp_path / "file") == {
        "scaler": {"scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3, "_growth_tracker": 0},
        "off": {}, "ema": {"decay": 0.5, "averages": [{"$tensor": "ema.averages.0"}]},
        "step": {"kind": "step", "step_size": 3, "gamma": 0.25, "last_step": 0, "base_lrs": [0.5]},
        "linear": {"kind": "linear", "start": 1.0, "end": 0.0, "total_steps": 10, "last_step": 0, "base_lrs": [0.5]}}


SCHEDULES = {"constant": dict(factor=0.5, total_steps=2), "linear": dict(start=0.1, end=1.0, total_steps=5), "cosine": dict(total_steps=5),
             "step": dict(step_size=2), "one_cycle": dict(max_lr=1.0, total_steps=7)}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_schedule_goes_on_from_a_file(tmp_path, kind):
    def make():
        optimizer = optim.SGD([{"params": [nn.Parameter(yoke.ones(1))]}, {"params": [nn.Parameter(yoke.ones(1))], "lr": 0.25}], lr=0.5)
        return getattr(schedule, kind)(optimizer, **SCHEDULES[kind])
    one, other = make(), make()
    for _ in range(3):
        one.step()
    yoke.save(tmp_path / "file", one)
    other.load_state_dict(yoke.load(tmp_path / "file"))
    assert other.state_dict() == one.state_dict() and other.last_lr == one.last_lr
    one.step(), other.step()
    assert other.last_lr == one.last_lr


def test_random_numbers_go_on_from_a_file(tmp_path):
    yoke.manual_seed(2**64 - 1)
    yoke.rand(3)
    generator = yoke.Generator(seed=7)
    with generator:
        yoke.rand(5)
    yoke.save(tmp_path / "file", {"rng": yoke.get_rng_state(), "generator": generator.get_state()})
    wanted = yoke.rand(4).tolist()
    with generator:
        of_generator = yoke.rand(4).tolist()
    assert all((x.dtype, x.shape) == ("U8", (16,)) for x in read(tmp_path / "file")[0].values())
    state = yoke.load(tmp_path / "file")
    yoke.set_rng_state(state["rng"])
    assert yoke.rand(4).tolist() == wanted
    with yoke.Generator(seed=1).set_state(state["generator"]):
        assert yoke.rand(4).tolist() == of_generator


def test_a_state_of_a_wrong_kind_from_a_file_changes_nothing(tmp_path):
    run = Run(adamw, yoke.float32, seed=4)
    run.go_on(2)
    before = run.numbers()
    yoke.save(tmp_path / "file", {"optimizer": sgd(list(run.net.parameters())), "ema": optim.EMA([yoke.ones(3)]), "scaler": {"scale": 1.0},
                                  "schedule": schedule.constant(run.optimizer), "net": nn.Linear(4, 8)})
    state = yoke.load(tmp_path / "file")
    for name in ("optimizer", "ema", "scaler", "net"):
        with pytest.raises((yoke.ValueError, yoke.TypeError), match="load_state_dict"):
            getattr(run, name).load_state_dict(state[name])
    with pytest.raises(yoke.ValueError, match="constant, but this schedule is cosine"):
        run.sched.load_state_dict(state["schedule"])
    assert run.numbers() == before
