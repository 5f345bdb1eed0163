"""Case of both workers of images.py: a part's forward, and the backward of a result made once."""

import functools
import time

N, C, SIDE = 32, 64, 56


def measure_of(image, forward, parameters):
    """Returns serve()'s function for a case "PART WAY DTYPE ORDER"; seconds are those of the process."""
    image = functools.cache(image)

    def fed(part, dtype, order):
        return forward(part, *(functools.partial(image, number, dtype, order) for number in (0, 1)))

    @functools.cache
    def made(part, dtype, order):
        out = fed(part, dtype, order)
        return out, out.detach() * 0.5

    def backward(part, dtype, order):
        for leaf in (image(0, dtype, order), image(1, dtype, order), *parameters):
            leaf.grad = None
        out, grad = made(part, dtype, order)
        out.backward(grad, retain_graph=True)

    def measure(case, count):
        part, way, *rest = case.split()
        repeat = functools.partial({"forward": fed, "backward": backward}[way], part, *rest)
        repeat()
        start = time.process_time()
        for _ in range(count):
            repeat()
        return (time.process_time() - start) / count

    return measure
