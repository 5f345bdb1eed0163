"""Peak memory of backward: a leaf takes its gradient at its last contribution, before other leaves are complete."""
import yoke
from conftest import DEVICE
from yoke import nn

BLOCKS, TOKENS, WIDTH = 16, 64, 64


class Feed(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(yoke.linear(x, self.up.weight, self.up.bias, activation="gelu"))


def step(blocks, x):
    for block in blocks:
        x = block(x)
    yoke.mean(x * x).backward()
    yoke.synchronize()


def test_a_step_that_adds_to_gradients_holds_no_second_set_of_them():
    blocks, x = [Feed() for _ in range(BLOCKS)], yoke.randn((TOKENS, WIDTH))
    step(blocks, x)
    before = yoke.memory_allocated(DEVICE)
    yoke.reset_peak_memory_stats(DEVICE)
    step(blocks, x)
    peak = (yoke.max_memory_allocated(DEVICE) - before) / (4 * TOKENS * WIDTH)
    activations = BLOCKS * 9  # for each block the product before gelu, gelu and the result; all weights are 128
    # A block's activation gradients come on top, and the weight gradients that are being added.
    assert peak <= activations + (4 + 4 + 2) + 4 + 1 <= 0.65 * 269
