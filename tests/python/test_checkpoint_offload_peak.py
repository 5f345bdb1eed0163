"""Device memory of a small GPT with offload, for every order in which streams may work."""
import os

import pytest

import yoke
from conftest import DEVICE, EMULATED
from yoke import nn

WIDTH, TOKENS, HEADS, BLOCKS = 64, 32, 8, 6
ORDERS = 2 if os.environ.get("YOKE_NO_CACHING") else 200 if os.environ.get("YOKE_SOAK") else 10  # a sanitizer is slow

pytestmark = pytest.mark.skipif(not EMULATED, reason="on the CPU nothing moves, and a GPU chooses the order for itself")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = self.qkv(self.norm1(x)).reshape((1, TOKENS, 3 * HEADS, WIDTH // HEADS)).transpose(1, 2)
        y = yoke.scaled_dot_product_attention(*yoke.split(heads, HEADS, 1), is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(yoke.linear(self.norm2(x), self.up.weight, self.up.bias, activation="gelu"))


def peak_and_gradients(blocks, x, run):
    """Returns the peak bytes of a step beside earlier memory, gradients included; and the gradients."""
    for p in blocks.parameters():
        p.grad = yoke.zeros_like(p)
    yoke.synchronize()
    before = yoke.memory_allocated(DEVICE)
    yoke.reset_peak_memory_stats(DEVICE)
    y = x
    for block in blocks:
        y = run(block, y)
    yoke.mean(y * y).backward()
    yoke.synchronize()
    return yoke.max_memory_allocated(DEVICE) - before, [p.grad.tolist() for p in blocks.parameters()]


def test_the_devices_peak_under_every_order_of_streams(monkeypatch):
    yoke.manual_seed(0)
    blocks, x = nn.Sequential(*(Block() for _ in range(BLOCKS))), yoke.randn((1, TOKENS, WIDTH))
    plain, wanted = peak_and_gradients(blocks, x, lambda block, y: block(y))
    for seed in range(1, ORDERS + 1):
        monkeypatch.setenv("FAKE_CUDA_SEED", str(seed))
        peak, found = peak_and_gradients(blocks, x, lambda block, y: yoke.checkpoint(block, y, policy="matmul", offload=True))
        assert found == wanted, seed
        assert peak <= 0.40 * plain, f"seed {seed}: {peak / plain:.3f}"
