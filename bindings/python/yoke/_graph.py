"""Captured steps."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from yoke import _yoke
from yoke._named import Named, named


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

    Within the capture nothing runs. Replays use the same memory: inputs are tensors from before the capture, results are tensors
    made in the capture. Waits for the device (item, tolist, printing), copies of host memory and work on another device raise
    StateError. Numbers computed by the host program, such as a learning rate, keep their values of the capture; random numbers
    are drawn anew. A graph is captured once; an exception in the capture leaves the graph empty.
    """

    def __init__(self, device: Any = None) -> None:
        self._graph = _yoke._Graph(device)

    @contextlib.contextmanager
    @named
    def capture(self) -> Iterator[Graph]:
        """Captures the calls of a block: `with graph.capture():`."""
        self._graph.begin()
        try:
            yield self
        except BaseException:
            self._graph.abort()
            raise
        self._graph.end()

    def replay(self) -> None:
        """Runs the captured work; does not wait for it."""
        self._graph.replay()
