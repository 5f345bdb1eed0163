"""Worker of recompute.py: steps of an MLP and of a GPT whose blocks are checkpoint scopes.

Cases: "step MODEL POLICY" gives seconds of forward and backward, "peak MODEL POLICY" their peak bytes beside weights and
gradients. MODEL is MLP or GPT, POLICY a policy of yoke.checkpoint for each block, plain, or a share: a MemoryBudget with this
share for all of the forward.
"""

import functools
import time

import yoke
from bench import serve
from yoke import nn

WIDTH, TOKENS, HEADS, LENGTH = 512, 1024, 8, 256
yoke.set_device("cpu")
yoke.set_num_threads(1)


class Feed(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        hidden = yoke.linear(x, self.up.weight, self.up.bias, activation="gelu")
        return x + self.down(hidden)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).reshape((n, length, 3 * HEADS, WIDTH // HEADS)).transpose(1, 2)
        y = yoke.scaled_dot_product_attention(*yoke.split(heads, HEADS, 1), is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape((n, length, WIDTH)))
        hidden = yoke.linear(self.norm2(x), self.up.weight, self.up.bias, activation="gelu")
        return x + self.down(hidden)


@functools.lru_cache(None)
def made(model):
    yoke.manual_seed(0)
    if model == "MLP":
        return [Feed() for _ in range(16)], yoke.randn((TOKENS, WIDTH))
    return [Block() for _ in range(12)], yoke.randn((TOKENS // LENGTH, LENGTH, WIDTH))


@functools.lru_cache(None)
def budget(model, share):
    """Returns a budget with a finished plan."""
    found = yoke.MemoryBudget(share)
    for _ in range(4):
        run(model, found)
    return found


def run(model, policy):
    blocks, x = made(model)
    if isinstance(policy, yoke.MemoryBudget):
        x = yoke.checkpoint(nn.Sequential(*blocks), x, policy=policy)
    else:
        for block in blocks:
            x = block(x) if policy == "plain" else yoke.checkpoint(block, x, policy=policy)
    yoke.mean(x * x).backward()


def step(model, policy):
    run(model, budget(model, policy) if policy[0] == "0" else policy)


def measure(case, count):
    what, model, policy = case.split()
    if what == "peak":
        step(model, "plain")  # the gradients are there from now on
        step(model, policy)  # also finishes the budget's plan
        before = yoke.memory_allocated()
        yoke.reset_peak_memory_stats()
        step(model, policy)
        return float(yoke.max_memory_allocated() - before)
    start = time.perf_counter()
    for _ in range(count):
        step(model, policy)
    return (time.perf_counter() - start) / count


serve(f"Yoke {yoke.__version__}", measure)
