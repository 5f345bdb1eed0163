"""Helpers of both programs of a pair: the first values, the loss of a rank, and the file for the results."""
import json
import math
import os
import pathlib


def wave(rows, columns, phase):
    return [[math.sin(1.3 * (row * columns + column) + phase) for column in range(columns)] for row in range(rows)]


def kinds_of(rows, kinds):
    return [row * row // 2 % kinds for row in range(rows)]


def begin(net, tensor):
    """Writes the same values into the parameters of each rank. `tensor` is torch.tensor or yoke.tensor."""
    for phase, each in enumerate(net.parameters()):
        shape = tuple(each.shape)
        each.detach().copy_(tensor(wave(1, math.prod(shape), phase)).reshape(shape) * 0.3)


def numbers(net):
    return [each.tolist() for each in net.state_dict().values()]


def differ(some, others):
    """Returns whether weights differ by more than float32 rounds: a compression has lost something."""
    return any(abs(a - b) > 1e-5 for row, other in zip(some[0], others[0]) for a, b in zip(row, other))


def lose_a_rank(rank):
    """Raises on rank 1 while torchrun may still start the job again."""
    if rank == 1 and int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < int(os.environ["TORCHELASTIC_MAX_RESTARTS"]):
        raise RuntimeError("the test ends this rank")


def tell(folder, rank, **found):
    pathlib.Path(folder, f"{rank}.json").write_text(json.dumps(found), encoding="utf-8")
