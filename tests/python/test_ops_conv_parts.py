"""Convolutions large enough to be computed in parts: each instruction set beside float64, the same bits for any team."""
import sys

import pytest

import instruction_sets
import yoke

# images, channels in, side, channels out, kernel, stride, padding, dilation, groups
SHAPES = [(5, 64, 14, 96, 3, 1, 1, 1, 1),      # parts of two sizes
          (7, 16, 31, 32, 3, 2, 1, 1, 1),      # the last pixels of x are reached by fewer windows
          (33, 64, 14, 64, 3, 1, 1, 1, 1),     # more parts than a team has threads
          (2, 256, 7, 256, 3, 1, 1, 1, 1),     # a gradient by weight, cut by channels
          (2, 256, 9, 136, 3, 1, 1, 1, 1),     # last channels that fill no whole block
          (1, 64, 33, 64, 3, 2, 1, 1, 1),      # bands of an image, with rows shared out with a stride
          (2, 32, 40, 48, 5, 1, 4, 2, 1),      # bands of two images, with padding beyond every row
          (1, 32, 41, 64, 1, 3, 1, 1, 1),      # windows with unread rows between
          (9, 32, 19, 64, 3, 1, 2, 2, 4), (6, 96, 30, 96, 3, 1, 1, 1, 96), (1, 32, 30, 32, 5, 1, 2, 1, 1),
          (9, 5, 33, 70, 5, 3, 2, 1, 1), (3, 3, 64, 64, 7, 2, 3, 1, 1), (4, 256, 14, 128, 1, 1, 0, 1, 1), (4, 64, 21, 128, 1, 2, 0, 1, 1),
          # In bf16, gradients by weight as products: 1 x 1 with padding, short rows, with a stride and with dilation.
          (3, 24, 12, 40, 1, 1, 1, 1, 1), (5, 40, 8, 72, 3, 1, 1, 1, 1), (6, 33, 27, 48, 3, 2, 1, 1, 1), (5, 32, 11, 40, 3, 2, 3, 2, 1),
          # A single tap: dilation leaves no gap.
          (3, 66, 9, 44, 1, 1, 0, 2, 2),
          # In bf16, results as products of groups, each group with a bias.
          (3, 99, 15, 24, 3, 2, 1, 2, 3), (2, 128, 17, 80, 5, 2, 2, 1, 2)]
NEAR = {yoke.float32: 4e-6, yoke.bfloat16: 1e-2, yoke.float16: 2e-3}  # share of the largest element


def results(op, shape, dtype, inputs):
    """The result and gradients of a convolution, or of a transposed one."""
    _, _, _, _, _, stride, padding, dilation, groups = shape
    x, weight, bias, grad = (t.to(dtype).detach() for t in inputs)
    for t in (x, weight, bias):
        t.requires_grad = True
    out = op(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
    out.backward(grad)
    return [out.detach(), x.grad, weight.grad, bias.grad]


def draw(shape, transposed):
    """Returns an input, a weight, a bias and a gradient. Their rounding to 16 bits causes errors below the allowed error of a 16-bit
    result.
    """
    n, c, side, o, kernel, stride, padding, dilation, groups = shape
    out = (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    left = (out - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1  # size of x for the transposed convolution
    x, grad = yoke.randn((n, c, left if transposed else side, left if transposed else side)), yoke.randn((n, o, out, out))
    weight = yoke.randn((o, c // groups, kernel, kernel)) * (c // groups * kernel * kernel) ** -0.5
    bias = yoke.randn((c if transposed else o,))
    return (grad, weight, bias, x) if transposed else (x, weight, bias, grad)


def check(dtypes, shapes=SHAPES):
    yoke.manual_seed(3)
    for shape in shapes:
        for transposed in (False, True):
            op = yoke.conv_transpose2d if transposed else yoke.conv2d
            inputs = draw(shape, transposed)
            wanted = results(op, shape, yoke.float64, inputs)
            for dtype in dtypes:
                teams = []
                for threads in (1, 2, 3):
                    yoke.set_num_threads(threads)
                    teams.append(results(op, shape, dtype, inputs))
                for name, got, *others, want in zip(("result", "of x", "of weight", "of bias"), *teams, wanted):
                    far = ((got.double() - want).abs().amax() / want.abs().amax()).item()
                    assert far < NEAR[dtype], f"{op.__name__} {shape} {dtype}, {name}: {far}"
                    assert all((got == other).all().item() for other in others), f"{op.__name__} {shape} {dtype}, {name}: by the team"


@pytest.mark.parametrize("isa", instruction_sets.NAMES)
def test_parts_give_what_float64_gives_and_the_same_bits_for_any_team(isa):
    instruction_sets.run(isa, __file__)


if __name__ == "__main__":
    check((yoke.float32, yoke.bfloat16, yoke.float16), SHAPES)
    sys.exit(0)
