"""Worker of mlp.py: the training loop of examples/fashion_mnist.py, as it stands there. A case is
"train AMP THREADS"."""

import time

import fashion_mnist
import yoke
from bench import serve
from yoke import nn

yoke.set_device("cpu")
images, labels = fashion_mnist.load("/usr/share/datasets/fashion-mnist", "train")
net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def measure(case, count):
    _, amp, threads = case.split()
    yoke.set_num_threads(int(threads))
    steps = min(count, len(images) // fashion_mnist.BATCH)
    pictures = steps * fashion_mnist.BATCH
    start = time.perf_counter()
    fashion_mnist.train(net, images[:pictures], labels[:pictures], 1, amp)
    return (time.perf_counter() - start) / steps


serve(f"Yoke {yoke.__version__}", measure)
