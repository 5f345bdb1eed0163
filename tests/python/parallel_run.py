"""A training of several ranks, for tests with interrupts."""
import numpy as np

import yoke
from yoke import nn

EXAMPLES, BATCH = 60, 2
DATA = np.random.default_rng(0).normal(size=(EXAMPLES, 6)).astype("float32")


class Run:
    """State of a script: net, optimizer, scaler and sampler."""

    def __init__(self, group, norm=True, **options):
        yoke.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 12), *[nn.BatchNorm1d(12)] * norm, nn.Linear(12, 2))
        self.optimizer = yoke.optim.AdamW(self.net.parameters(), lr=0.01)
        self.scaler = yoke.GradScaler(init_scale=8., growth_interval=3)
        self.sampler = yoke.data.DistributedSampler(EXAMPLES, rank=group.rank, world_size=group.size, pad=False)
        self.ddp = yoke.DistributedDataParallel(self.net, group, bucket_mb=0.0005, **options)
        self.seen = []
        self.pass_ = iter(self.sampler)

    def batch(self):
        which = [index for _, index in zip(range(BATCH), self.pass_)]
        self.seen += which
        return which

    def loss(self, which):
        return self.scaler.scale(self.ddp(yoke.tensor(DATA[which])).pow(2).mean())

    def backward(self):
        self.loss(self.batch()).backward()

    def step(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()

    def steps(self, count):
        for _ in range(count):
            self.backward()
            self.step()

    def finish(self):
        """The epoch."""
        while len(which := self.batch()) == BATCH:
            self.loss(which).backward()
            self.step()

    def regroup(self, group):
        self.ddp.regroup(group, self.optimizer, self.scaler, self.sampler)
        self.pass_ = iter(self.sampler)

    def told(self):
        state = self.optimizer.state_dict()["state"]
        return ([each.tolist() for each in (*self.net.parameters(), *self.net.buffers())],
                [{name: each.tolist() for name, each in one.items()} for one in state.values()], self.scaler.state_dict(), self.sampler.state_dict())

    def state(self):
        """Returns the state from which as many ranks go on elsewhere."""
        parts = {"net": self.net, "optimizer": self.optimizer, "scaler": self.scaler, "sampler": self.sampler}
        state = {name: each.state_dict() for name, each in parts.items()}
        state["net"] = {name: each.clone() for name, each in state["net"].items()}
        state["optimizer"]["state"] = {i: {name: each.clone() for name, each in one.items()} for i, one in state["optimizer"]["state"].items()}
        return {**state, "comm": self.ddp.comm_state()}

    def go_on_from(self, state):
        for name in "net", "optimizer", "scaler", "sampler":
            getattr(self, name).load_state_dict(state[name])
        self.ddp.load_comm_state(state["comm"])
        self.pass_ = iter(self.sampler)
        return self
