"""Scenes of a trip: each scene returns a call. If a call can be made twice, the scene has already made the call once."""
import atexit
import os
import sys
import tempfile

import yoke
import yoke.comm


def softmax():
    x = yoke.randn(4, 5)
    yoke.softmax(x, 1)
    return lambda: yoke.softmax(x, 1)


def save():
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    manager = yoke.CheckpointManager(folder.name)
    states = {"model": yoke.nn.Linear(4, 5).state_dict()}
    manager.save(1, states)
    return lambda: manager.save(2, states)


def shrink():
    group = yoke.comm.init(backend="cpu")
    x = yoke.ones(4)
    group.all_reduce(x)
    if group.rank == group.size - 1:
        os._exit(0)
    try:
        group.all_reduce(x)
    except yoke.CollectiveError:
        pass
    if group.rank != 0:
        group.shrink()
        sys.exit()
    return lambda: group.shrink()


SCENES = {scene.__name__: scene for scene in (softmax, save, shrink)}
