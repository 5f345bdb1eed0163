"""Trains a residual network on Fashion-MNIST: 60,000 pictures of clothes, ten kinds.

    python resnet.py [--depth 18|50|152] [--width 16] [--image-size 28] [--device auto] [--amp off|bf16|f16] [--epochs 3]
                     [--threads N] [--seed 0] [--limit N] [--losses] [--save FOLDER] [--every 100]

(K. He et al., "Deep Residual Learning for Image Recognition".) Parameters have torchvision's names. Pictures of 28 x 28 pass a
stem of 3 x 3. For a larger image size the pictures are enlarged, and pass the usual stem of 7 x 7 with pooling. resnet.lua does
the same, and gives the same losses bit for bit.
"""

import sys

import yoke
from fashion_mnist import read_options, run
from yoke import nn

BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3), 152: (3, 8, 36, 3)}
SIDE = 28  # side of the pictures
MOST_SIDE = 4096


class BasicBlock(nn.Module):
    """Block of two convolutions of 3 x 3 beside a shortcut."""

    GROWTH = 1  # factor of the channels

    def __init__(self, channels, width, stride):
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width, relu=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, relu=True)
        self.downsample = passing(channels, width, stride)

    def forward(self, x):
        y = self.bn1(self.conv1(x))
        return self.bn2(self.conv2(y), self.downsample(x))


class Bottleneck(nn.Module):
    """Block of a convolution of 3 x 3 between two of 1 x 1, beside a shortcut."""

    GROWTH = 4

    def __init__(self, channels, width, stride):
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width, relu=True)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, relu=True)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width, relu=True)
        self.downsample = passing(channels, 4 * width, stride)

    def forward(self, x):
        y = self.bn1(self.conv1(x))
        y = self.bn2(self.conv2(y))
        return self.bn3(self.conv3(y), self.downsample(x))


def passing(channels, out, stride):
    """Returns layers that bring x to the block's size, empty if the size is the same."""
    if channels == out and stride == 1:
        return nn.Sequential()
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))


class ResNet(nn.Module):
    """Network from pictures [N, 784] to a number for each of ten kinds."""

    def __init__(self, depth, width, side):
        block = BasicBlock if depth == 18 else Bottleneck
        self.side, is_large = side, side > SIDE
        self.conv1 = nn.Conv2d(1, width, 7, 2, 3, bias=False) if is_large else nn.Conv2d(1, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width, relu=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if is_large else nn.Sequential()
        self.channels = width
        for i, count in enumerate(BLOCKS[depth]):
            setattr(self, f"layer{i + 1}", nn.Sequential(*(self._block(block, width << i, 2 if i and not j else 1) for j in range(count))))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(self.channels, 10)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def _block(self, block, width, stride):
        made = block(self.channels, width, stride)
        self.channels = width * block.GROWTH
        return made

    def forward(self, x):
        x = blown_up(x.reshape((-1, 1, SIDE, SIDE)), self.side)
        x = self.maxpool(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).reshape((x.shape[0], -1)))


def blown_up(x, side):
    """Returns pictures of another size, by repeating pixels."""
    if side == SIDE:
        return x
    nearest = yoke.tensor([i * SIDE // side for i in range(side)])
    return x.index_select(2, nearest).index_select(3, nearest)


def descend(parameters, steps):
    optimizer = yoke.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    return optimizer, yoke.optim.schedule.one_cycle(optimizer, 0.2, steps)


def main():
    options = read_options(__doc__, [
        ("--depth", {"type": int, "choices": BLOCKS, "default": 18, "help": "layers with weights"}),
        ("--width", {"type": int, "default": 16, "help": "channels of the first layers"}),
        ("--image-size", {"type": int, "default": SIDE, "dest": "side", "metavar": "N", "help": "height and width of the pictures"})])
    for name, value, least in ("width", options.width, 1), ("image-size", options.side, SIDE):
        if value < least:
            sys.exit(f"--{name} is {value}; it must be at least {least}")
    if options.side > MOST_SIDE:
        sys.exit(f"--image-size is {options.side}; it must be at most {MOST_SIDE}")
    run("resnet", options, lambda: ResNet(options.depth, options.width, options.side), ("depth", "width", "side"), descend)


if __name__ == "__main__":
    try:
        main()
    except yoke.Error as error:
        sys.exit(str(error))
