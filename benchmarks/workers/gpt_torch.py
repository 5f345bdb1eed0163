"""Worker of gpt.py: the training step of examples/gpt.py in PyTorch, eager, as a script would have it.

A case is "train AMP THREADS". Attention is PyTorch's scaled_dot_product_attention where there is one, AdamW fused
where it can be on a CPU.
"""

import functools
import math
import time

import torch
import torch.nn.functional as F
from bench import hold_torch, serve
from torch import nn

LAYERS, WIDTH, HEADS, CONTEXT, BATCH = 6, 256, 4, 256, 8
with open("/usr/share/common-licenses/GPL-3", "rb") as file:
    text = torch.tensor(list(file.read()))
MASK = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).tril()


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = (q @ k.transpose(-1, -2)) * (1 / math.sqrt(q.shape[-1]))
    return scores.masked_fill(~MASK, -math.inf).softmax(-1).to(v.dtype) @ v


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(n, length, 3 * HEADS, WIDTH // HEADS).transpose(1, 2)
        y = attention(*heads.split(HEADS, 1))
        x = x + self.out(y.transpose(1, 2).reshape(n, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.byte, self.place = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, index):
        x = self.byte(index) + self.place(torch.arange(index.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def adamw(net):
    groups = [{"params": [p for p in net.parameters() if p.ndim == 2], "weight_decay": 0.1},
              {"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.0}]
    try:
        return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)
    except (RuntimeError, TypeError):  # an older PyTorch has this for CUDA alone
        return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))


@functools.lru_cache(None)
def stepper(amp):
    net = GPT()
    optimizer = adamw(net)

    def step():
        starts = torch.randint(0, len(text) - CONTEXT, (BATCH, 1))
        pieces = text[starts + torch.arange(CONTEXT + 1)]
        with torch.autocast("cpu", torch.bfloat16, enabled=amp == "bf16"):
            loss = F.cross_entropy(net(pieces[:, :-1]).reshape(-1, 256).float(), pieces[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def measure(case, count):
    _, amp, threads = case.split()
    hold_torch(torch, int(threads))
    step = stepper(amp)
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    serve(f"PyTorch {torch.__version__}", measure)
