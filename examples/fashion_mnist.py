"""Trains a small network on Fashion-MNIST: 60,000 pictures of clothes, ten kinds.

    python fashion_mnist.py [--device auto] [--amp off|bf16|f16] [--epochs 3] [--threads N] [--seed 0] [--limit N]
                            [--losses] [--save FOLDER] [--every 100]

fashion_mnist.lua and fashion_mnist.c do the same, and give the same losses bit for bit. With --save each program continues a run
of the others from the folder, as if the run had never stopped.
"""

import argparse
import sys
import time

import yoke
from saved_run import SavedRun
from yoke import nn

BATCH = 128
AMP = {"off": None, "bf16": yoke.bfloat16, "f16": yoke.float16}


def read_options(description=__doc__, more=()):
    """Reads the options. `more` has options of another program: (name, arguments of add_argument)."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name, told in more:
        parser.add_argument(name, **told)
    parser.add_argument("--device", default="auto", help='"auto", "cpu", "cuda:1" …')
    parser.add_argument("--amp", choices=AMP, default="off", help="mixed precision; f16 with a scaled loss")
    parser.add_argument("--epochs", type=int, default=3, help="number of passes over all pictures")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (0: all that are granted)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights and of the order of the pictures")
    parser.add_argument("--limit", type=int, metavar="N", help="train only with the first N pictures")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder of the data set")
    parser.add_argument("--losses", action="store_true", help="print the loss of every step, in hexadecimal")
    parser.add_argument("--save", metavar="FOLDER", help="folder in which the run is saved; a new start continues from there")
    parser.add_argument("--every", type=int, metavar="N", help="steps from one save to the next (100)")
    options = parser.parse_args()
    for name, least in ("epochs", 1), ("limit", 1), ("threads", 0):
        value = getattr(options, name)
        if value is not None and value < least:
            sys.exit(f"--{name} is {value}; it must be at least {least}")
    return options


def load(folder, part, limit=None):
    """Returns pictures [N, 784], a byte per pixel, and their kinds [N], on the current device."""
    try:
        images = yoke.data.read_idx(f"{folder}/{part}-images-idx3-ubyte.gz")[:limit]
        labels = yoke.data.read_idx(f"{folder}/{part}-labels-idx1-ubyte.gz")[:limit]
    except yoke.IOError as error:
        sys.exit(f"{error}\nThe data set: apt-get install dataset-fashion-mnist, or name its folder with --data.")
    device = yoke.current_device()
    return images.reshape((-1, 28 * 28)).to(device), labels.to(device, yoke.int64)


def show_progress(done, total):
    if sys.stderr.isatty():
        bar = "#" * (40 * done // total)
        print(f"\rpython [{bar:40}] {100 * done // total:3} %", end="\n" if done == total else "", file=sys.stderr)


def descend(parameters, steps):
    """Returns the optimizer, and the schedule of its rate."""
    optimizer = yoke.optim.SGD(parameters, lr=0.1, momentum=0.9)
    return optimizer, yoke.optim.schedule.linear(optimizer, 0.1, 0.0, steps)


def train(net, images, labels, epochs, amp="off", saved=SavedRun(), descend=descend):
    """Returns the loss of each step."""
    count = images.shape[0]
    batches = -(-count // BATCH)
    steps = epochs * batches
    optimizer, schedule = descend(net.parameters(), steps)
    scaler = yoke.GradScaler(enabled=amp == "f16")
    order = yoke.arange(count)  # order of pictures, new in each epoch
    losses = yoke.zeros(steps)  # on the device, which a number would be waited for
    parts = {"net": net, "optimizer": optimizer, "schedule": schedule, "scaler": scaler, "order": order, "losses": losses}
    for step in saved.steps(steps, parts):
        first = step % batches * BATCH
        if first == 0:
            order.copy_(yoke.randperm(count))
        rows = order[first:first + BATCH]
        x = images.index_select(0, rows) / 255
        with yoke.autocast(AMP[amp], enabled=amp != "off"):
            loss = yoke.cross_entropy(net(x), labels.index_select(0, rows))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        losses[step] = loss.detach()
        show_progress(step + 1, steps)
    return losses.tolist()


def accuracy(net, images, labels):
    """Returns the share of correctly classified pictures."""
    right, count = 0, images.shape[0]
    net.eval()
    with yoke.no_grad():
        for first in range(0, count, 1000):
            guesses = net(images[first:first + 1000] / 255).argmax(1)
            pairs = zip(guesses.tolist(), labels[first:first + 1000].tolist())
            right += sum(guess == label for guess, label in pairs)
    return right / count


def make_net():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def run(program, options, make_net, kept=(), descend=descend):
    """Trains, and prints the results; a saved run keeps the options in `kept`."""
    yoke.set_device(options.device)
    yoke.set_num_threads(options.threads)
    yoke.manual_seed(options.seed)
    images, labels = load(options.data, "train", options.limit)
    test_images, test_labels = load(options.data, "t10k")
    if len(images) == 0:
        sys.exit(f"{options.data} has no pictures to train with")
    net = make_net()

    begun_with = {"amp": options.amp, "epochs": options.epochs, "seed": options.seed, "limit": len(images)}
    saved = SavedRun(program, options.save, options.every, begun_with | {name: getattr(options, name) for name in kept})
    start = time.perf_counter()
    losses = train(net, images, labels, options.epochs, options.amp, saved, descend)
    seconds = time.perf_counter() - start
    seen = len(images) * options.epochs * (1 - saved.first / len(losses))

    device = yoke.current_device()
    print(f"device: {device} ({device.name}), {yoke.get_num_threads()} threads, amp {options.amp}")
    print(f"no GPU: {yoke.why_unavailable('cuda')}")
    print(f"images/s: {seen / seconds:.0f}")
    print(f"loss: {losses[0]:.4f} to {losses[-1]:.4f} in {len(losses)} steps")
    print(f"test accuracy: {accuracy(net, test_images, test_labels):.4f}")
    print(f"peak memory: {yoke.max_memory_allocated() / 2**20:.1f} MiB")
    if options.losses:
        print("losses:", *(loss.hex() for loss in losses))


if __name__ == "__main__":
    try:
        run("fashion_mnist", read_options(), make_net)
    except yoke.Error as error:
        sys.exit(str(error))
