"""A run that tests/lua/state_run.lua and tests/capi/state_run.c make as well, step for step: each goes on from the others' files.

    state_run.py begin OUT STEPS       makes the run, takes steps, saves it
    state_run.py go IN OUT STEPS       goes on from a file
    state_run.py copy IN OUT           loads and saves
    state_run.py show IN               prints what is in a file, a line a node, dicts by their keys
"""
import math
import struct
import sys

import yoke
from stored_files import stored_of
from yoke import optim


class Run:
    def __init__(self, seed):
        yoke.manual_seed(seed)
        self.x, self.y = yoke.rand(4).requires_grad_(), yoke.rand(2, 3).requires_grad_()
        self.optimizer = optim.AdamW([{"params": [self.x]}, {"params": [self.y], "lr": 0.25}], lr=0.125, weight_decay=0.5)
        self.scaler = yoke.GradScaler(init_scale=8.0, growth_interval=2)
        self.ema = optim.EMA([self.x, self.y], decay=0.75)
        self.schedule = optim.schedule.cosine(self.optimizer, total_steps=10, min_lr=0.0625, warmup_steps=2)
        self.plain = {
            "none": None, "true": True, "false": False, "most": 2**63 - 1, "least": -2**63, "three": 3, "three.0": 3.0, "-0.0": -0.0,
            "nan": math.nan, "inf": math.inf, "-inf": -math.inf, "tiny": 5e-324, "text": "ü\n\"\\$", "": "", "list": [1, [2.5, []], None],
            "empty": {}, "keys": {5: "five", -1: "one", "5": "text", "a/b~c.d": {}}, "one to two": {1: "a", 2: "b"}, "$dict": [{"$": 1}],
            "half": yoke.tensor(1.5, dtype=yoke.bfloat16), "nothing": yoke.zeros(0, 3, dtype=yoke.int64)}

    def go_on(self, steps):
        for _ in range(steps):
            product = self.x * yoke.rand(4)
            loss = (product * product).sum() + (self.y * self.y).sum()
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.schedule.step()
            self.ema.update()

    def save(self, path):
        yoke.save(path, {"x": self.x, "again": [self.x], "y": self.y, "optimizer": self.optimizer, "scaler": self.scaler, "ema": self.ema,
                         "schedule": self.schedule, "rng": yoke.get_rng_state(), "plain": self.plain})

    def load(self, path):
        state = yoke.load(path)
        assert state["again"][0] is state["x"]
        with yoke.no_grad():
            self.x.copy_(state["x"])
            self.y.copy_(state["y"])
        for name in ("optimizer", "scaler", "ema", "schedule"):
            getattr(self, name).load_state_dict(state[name])
        yoke.set_rng_state(state["rng"])
        self.plain = state["plain"]


def scalar(value):
    if isinstance(value, bool):
        return f"bool {int(value)}"
    if isinstance(value, int):
        return f"int {value}"
    if isinstance(value, float):
        return f"float {struct.pack('>d', value).hex()}"
    return f"string {value.encode().hex()}"


def shown(value, path="", tensors=None):
    """The lines of a value."""
    tensors = {} if tensors is None else tensors
    if value is None:
        return [f"{path} none"]
    if isinstance(value, yoke.Tensor):
        number = tensors.setdefault(id(value), len(tensors))
        return [f"{path} tensor {number} {value.dtype.name} {' '.join(map(str, value.shape))} {stored_of(value).data.hex()}"]
    if isinstance(value, (list, tuple)):
        lines = [f"{path} {type(value).__name__} {len(value)}"]
        return lines + [line for i, each in enumerate(value) for line in shown(each, f"{path}/{i}", tensors)]
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (isinstance(key, str), key.encode() if isinstance(key, str) else key))
        lines = [f"{path} dict {len(value)}"]
        return lines + [line for key in keys for line in shown(value[key], f"{path}/{scalar(key)}", tensors)]
    return [f"{path} {scalar(value)}"]


def main(mode, *args):
    if mode == "show":
        print("\n".join(shown(yoke.load(args[0]))))
    elif mode == "copy":
        yoke.save(args[1], yoke.load(args[0]))
    else:
        run = Run(seed=5 if mode == "begin" else 99)
        if mode == "go":
            run.load(args[0])
        run.go_on(int(args[-1]))
        run.save(args[-2])


if __name__ == "__main__":
    main(*sys.argv[1:])
