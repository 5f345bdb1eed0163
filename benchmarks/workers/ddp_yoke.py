"""Worker of ddp.py: a rank, in Yoke, of two. Cases of a step, "WHAT MODEL BATCH":

plain: this rank alone. ddp: the reducing module; each: with a bucket for each parameter; behind: an all_reduce for each parameter
after backward. alone: the module in a group of one rank.

"peak HOW MODEL BATCH" gives bytes, for "plain" steps or for a module with buckets of HOW MiB. "overlap MODEL BATCH" gives the
finished part of backward at the begin of the first bucket. "slow MODEL BATCH" is ddp with buckets of 4 MiB, "transfer MODEL" an
all_reduce of all its gradients. "reduce HOW" reduces 25 MiB in matrices by a compression.
"""

import functools
import json
import os
import tempfile
import time

import gpt
import yoke
from bench import serve
from yoke import nn

yoke.set_device("cpu")
yoke.set_num_threads(1)
WIDTH, LAYERS = 1024, 12
NO_BYTES = 1e-6  # MiB, which each parameter reaches
GPT = gpt.read_options([])


@functools.cache
def group():
    return yoke.comm.init(timeout=300.0)


class Step:
    """forward, backward and optimizer of a model, in one of the ways."""

    def __init__(self, model, batch, way, bucket_mb=25.0):
        yoke.manual_seed(0)
        self.net, self.loss = (mlp if model == "MLP" else gpt_of)(batch)
        self.way, self.keeps = way, False
        self.optimizer = yoke.optim.SGD(self.net.parameters(), lr=1e-4, momentum=0.9)
        self.model = self.net
        if way in ("ddp", "alone"):
            self.model = yoke.DistributedDataParallel(self.net, group() if way == "ddp" else yoke.comm.init_all(["cpu"])[0], bucket_mb)
        self.backward = 0.0, 0.0  # when the last one began and ended

    def __call__(self):
        loss = self.loss(self.model)
        began = time.monotonic()
        loss.backward()
        self.backward = began, time.monotonic()
        if self.way == "behind":
            for each in self.net.parameters():
                group().all_reduce(each.grad, op="avg")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=not self.keeps)


def mlp(batch):
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    x, labels = yoke.randn((batch, WIDTH)), yoke.randint(0, WIDTH, (batch,))
    return nn.Sequential(*layers[:-1]), lambda model: yoke.cross_entropy(model(x), labels)


def gpt_of(batch):
    text = gpt.load(GPT.text, GPT.context)
    x, target = gpt.draw_batch(text, batch, GPT.context)
    return gpt.GPT(GPT.layers, GPT.width, GPT.heads, GPT.context), lambda model: yoke.cross_entropy(model(x).reshape((-1, 256)), target)


@functools.cache
def stepper(model, batch, way, bucket_mb=25.0):
    step = Step(model, batch, way, bucket_mb)
    for _ in range(3):
        step()
    return step


def timed(step, count):
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def peak(how, model, batch):
    """Returns the peak of steps from the first step on; gradients stay."""
    before = yoke.memory_allocated()
    yoke.reset_peak_memory_stats()
    step = Step(model, batch, "plain") if how == "plain" else Step(model, batch, "ddp", float(how))
    step.keeps = True
    for _ in range(3):
        step()
    return float(yoke.max_memory_allocated() - before)


def calls():
    """Returns the last calls of the group."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls.json")
        group().dump(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)["records"]


def overlap(model, batch):
    step = stepper(model, batch, "ddp")
    group().barrier()
    step()
    began, ended = step.backward
    first = min(each["began"] for each in calls() if each["began"] >= began and each["op"] == "all_reduce" and each["dtype"] == "float32")
    return (first - began) / (ended - began)


def transfer(model, count):
    sizes = [each.numel for each in stepper(model, 1, "plain").net.parameters()]
    everything = group().empty((sum(sizes),), yoke.float32)
    everything.fill_(1.0)
    group().barrier()
    return timed(lambda: group().all_reduce(everything, op="avg"), count)


@functools.cache
def matrices(how):
    """Returns parameters of 25 MiB, and a function whose backward only returns parts of a gradient."""
    net = nn.Module()
    for i in range(7):
        setattr(net, f"m{i}", nn.Parameter(yoke.randn((WIDTH if i < 6 else WIDTH // 4, WIDTH))))
    ddp = yoke.DistributedDataParallel(net, group(), compression=None if how == "f32" else how)
    gradient = yoke.randn((sum(each.numel for each in net.parameters()),))

    def step():
        joined = yoke.cat([each.reshape(-1) for each in net.parameters()])
        start = time.perf_counter()
        joined.backward(gradient)
        took = time.perf_counter() - start
        net.zero_grad()
        return took
    for _ in range(5):
        step()
    return ddp, step


def reduce(how, count):
    _, step = matrices(how)
    group().barrier()
    return sum(step() for _ in range(count)) / count


def measure(case, count):
    what, *words = case.split()
    if what == "peak":
        return peak(words[0], words[1], int(words[2]))
    if what == "reduce":
        return reduce(words[0], count)
    if what == "transfer":
        return transfer(words[0], count)
    if what == "overlap":
        return overlap(words[0], int(words[1]))
    way, bucket_mb = {"each": ("ddp", NO_BYTES), "slow": ("ddp", 4.0)}.get(what, (what, 25.0))
    step = stepper(words[0], int(words[1]), way, bucket_mb)
    if what not in ("plain", "alone"):
        group().barrier()
    return timed(step, count)


serve(f"Yoke {yoke.__version__}", measure)
