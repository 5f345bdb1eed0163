"""Worker of recompute.py: the same steps in PyTorch, by torch.utils.checkpoint without reentry and by its selective policy."""

import functools
import resource
import time

import torch
import torch.nn.functional as F
from bench import hold_torch, serve
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, TOKENS, HEADS, LENGTH = 512, 1024, 8, 256
hold_torch(torch, 1)


class Feed(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(n, length, 3 * HEADS, WIDTH // HEADS).transpose(1, 2)
        y = F.scaled_dot_product_attention(*heads.split(HEADS, 1), is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def keep_products():
    from torch.utils.checkpoint import create_selective_checkpoint_contexts
    ops = torch.ops.aten
    return create_selective_checkpoint_contexts([
        ops.mm.default, ops.addmm.default, ops.bmm.default, ops._scaled_dot_product_flash_attention_for_cpu.default])


@functools.lru_cache(None)
def made(model):
    torch.manual_seed(0)
    if model == "MLP":
        return nn.ModuleList(Feed() for _ in range(16)), torch.randn(TOKENS, WIDTH)
    return nn.ModuleList(Block() for _ in range(12)), torch.randn(TOKENS // LENGTH, LENGTH, WIDTH)


def step(model, policy):
    blocks, x = made(model)
    more = {"context_fn": keep_products} if policy == "matmul" else {}
    for block in blocks:
        x = block(x) if policy == "plain" else checkpoint(block, x, use_reentrant=False, **more)
    (x * x).mean().backward()


def measure(case, count):
    what, model, policy = case.split()
    if what == "peak":
        blocks, _ = made(model)
        for parameter in blocks.parameters():
            parameter.grad = torch.zeros_like(parameter)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        step(model, policy)
        return 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    start = time.perf_counter()
    for _ in range(count):
        step(model, policy)
    return (time.perf_counter() - start) / count


serve(f"PyTorch {torch.__version__}", measure)
