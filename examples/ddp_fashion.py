"""Trains the network of fashion_mnist.py on any number of ranks, each with different pictures.

    yoke run -n 2 -- python ddp_fashion.py [--device auto] [--amp off|bf16|f16] [--epochs 3] [--threads N] [--seed 0]
                                           [--limit N] [--losses] [--save FOLDER] [--every 100]

torchrun, mpirun, srun and Kubernetes can start this script as well (deploy/). By "auto" each rank of a machine trains on a
separate GPU, or all on the CPU; by number: `sh -c 'exec python ddp_fashion.py --device cuda:$LOCAL_RANK'`. ddp_fashion.lua and
ddp_fashion.c do the same, and give the same losses bit for bit. With --save each program continues a run of the others from the
folder; all ranks must see the folder.
"""

import itertools
import sys
import time

import yoke
from fashion_mnist import AMP, load, read_options, show_progress
from saved_run import SavedRun
from yoke import nn

BATCH = 64  # per rank


def train(net, images, labels, options, group, saved=SavedRun(), compression=None):
    """Returns the loss of each step, the mean over all ranks."""
    ddp = yoke.DistributedDataParallel(net, group, compression=compression)
    sampler = yoke.data.DistributedSampler(len(images), rank=group.rank, world_size=group.size, seed=options.seed)
    batches = -(-len(sampler) // BATCH)
    steps = options.epochs * batches
    optimizer = yoke.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    schedule = yoke.optim.schedule.linear(optimizer, 0.1, 0.0, steps)
    scaler = yoke.GradScaler(enabled=options.amp == "f16")
    losses = yoke.zeros(steps)
    parts = {"net": net, "optimizer": optimizer, "schedule": schedule, "scaler": scaler, "sampler": sampler, "losses": losses}
    order = iter(sampler)
    for step in saved.steps(steps, parts):
        if step % batches == 0:
            sampler.set_epoch(step // batches)
            order = iter(sampler)
        rows = yoke.tensor(list(itertools.islice(order, BATCH)))
        x = images.index_select(0, rows) / 255
        with yoke.autocast(AMP[options.amp], enabled=options.amp != "off"):
            loss = yoke.cross_entropy(ddp(x), labels.index_select(0, rows))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        losses[step] = loss.detach()
        group.all_reduce(losses[step], op="avg")
        if group.rank == 0:
            show_progress(step + 1, steps)
    return losses.tolist()


def accuracy(net, images, labels, group):
    """Returns the share of correctly classified pictures: each rank looks at some of them."""
    sampler = yoke.data.DistributedSampler(len(images), rank=group.rank, world_size=group.size, shuffle=False, pad=False)
    right, order = yoke.zeros(1, dtype=yoke.int64), iter(sampler)
    with yoke.no_grad():
        while some := list(itertools.islice(order, 1000)):
            rows = yoke.tensor(some)
            guesses = net(images.index_select(0, rows) / 255).argmax(1)
            right += (guesses == labels.index_select(0, rows)).sum()
    group.all_reduce(right)
    return right.item() / len(images)


def main():
    options = read_options(__doc__)
    group = yoke.comm.init()  # if the device is a GPU, NCCL sums its gradients if possible
    yoke.set_device(options.device)
    yoke.set_num_threads(options.threads)
    yoke.manual_seed(options.seed)
    images, labels = load(options.data, "train", options.limit)
    test_images, test_labels = load(options.data, "t10k")
    if len(images) == 0:
        sys.exit(f"{options.data} has no pictures to train with")
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    begun_with = {"amp": options.amp, "epochs": options.epochs, "seed": options.seed, "limit": len(images), "ranks": group.size}
    saved = SavedRun("ddp_fashion", options.save, options.every, begun_with, group)
    start = time.perf_counter()
    losses = train(net, images, labels, options, group, saved)
    seconds = time.perf_counter() - start
    seen = len(images) * options.epochs * (1 - saved.first / len(losses))
    share = accuracy(net, test_images, test_labels, group)
    if group.rank > 0:
        return
    print(f"ranks: {group.size}, device: {yoke.current_device()}, {yoke.get_num_threads()} threads each, amp {options.amp}")
    print(f"images/s: {seen / seconds:.0f}")
    print(f"loss: {losses[0]:.4f} to {losses[-1]:.4f} in {len(losses)} steps")
    print(f"test accuracy: {share:.4f}")
    if options.losses:
        print("losses:", *(loss.hex() for loss in losses))


if __name__ == "__main__":
    try:
        main()
    except yoke.Error as error:
        sys.exit(str(error))
