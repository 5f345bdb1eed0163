"""Rank of examples/ddp_fashion.py's training with a compression: `rank.py COMPRESSION SEED EPOCHS`. Rank 0 prints the accuracy."""
import sys

import ddp_fashion
import fashion_mnist
import yoke
from yoke import nn

DATA = "/usr/share/datasets/fashion-mnist"


class Options:
    amp = "off"

    def __init__(self, seed, epochs):
        self.seed, self.epochs = seed, epochs


def main(compression, seed, epochs):
    group = yoke.comm.init()
    yoke.set_device("cpu")
    yoke.manual_seed(seed)
    images, labels = fashion_mnist.load(DATA, "train")
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    ddp_fashion.train(net, images, labels, Options(seed, epochs), group, compression=None if compression == "none" else compression)
    share = ddp_fashion.accuracy(net, *fashion_mnist.load(DATA, "t10k"), group)
    if group.rank == 0:
        print(share)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
