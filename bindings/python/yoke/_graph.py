"""Captured steps."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from yoke import _yoke
from yoke._named import Named


class Graph(Named):
    """A whole step, captured once and replayed: on cuda as a CUDA graph, elsewhere as the launches themselves.

        graph = yoke.Graph()
        with graph.capture():
            loss = yoke.cross_entropy(net(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for batch in batches:
            x.copy_(batch.images); target.copy_(batch.labels)
            graph.replay()  # loss holds the new value

    Within the capture nothing runs. Replays use the same memory: inputs are tensors from before the capture, results
    those that it made. What would wait for the device (item, tolist, printing), bring bytes of the host or work on
    another device raises StateError. Numbers that the host computes, a learning rate among them, stay as they were;
    random numbers are drawn anew. A graph is captured once; an exception in the capture leaves it empty.
    """

    def __init__(self, device: Any = None) -> None:
        self._graph = _yoke._Graph(device)

    @contextlib.contextmanager
    def capture(self) -> Iterator[Graph]:
        """`with graph.capture():` takes down what the block does."""
        self._graph.begin()
        try:
            yield self
        except BaseException:
            self._graph.abort()
            raise
        self._graph.end()

    def replay(self) -> None:
        """Runs what was captured; does not wait for it."""
        self._graph.replay()
