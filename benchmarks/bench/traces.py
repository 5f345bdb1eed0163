"""Traces of requests for memory, made by programs that allocate as trainings and inference do.

write_all(folder) writes a CSV file for each, in the format of RMM's logging adaptor (Thread,Time,Action,Pointer,Size,Stream),
and returns their paths. Sizes are bytes. Every peak is above 1 GiB.
"""
import os
import random

MIB = 1 << 20


class Trace:
    def __init__(self, seed=1):
        self.rows = []
        self.random = random.Random(seed)
        self.count = 0
        self.sizes = {}
        self.live = self.peak = 0

    def alloc(self, size, stream=0):
        self.count += 1
        self.rows.append(("allocate", self.count, int(size), stream))
        self.sizes[self.count] = (int(size), stream)
        self.live += int(size)
        self.peak = max(self.peak, self.live)
        return self.count

    def free(self, *numbers):
        for number in numbers:
            size, stream = self.sizes.pop(number)
            self.rows.append(("free", number, size, stream))
            self.live -= size

    def free_all(self):
        self.free(*list(self.sizes))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("Thread,Time,Action,Pointer,Size,Stream\n")
            for time, (action, number, size, stream) in enumerate(self.rows):
                file.write(f"0,{time},{action},0x{number:x},{size},{stream}\n")


def parameters(trace, layers, width, vocabulary, copies):
    """Allocates the weights of a GPT in float32, each `copies` times: four with gradient and Adam's moments."""
    shapes = [vocabulary * width, 1024 * width]
    for _ in range(layers):
        shapes += [3 * width * width, 3 * width, width * width, width, 4 * width * width, 4 * width, 4 * width * width, width, width, width, width, width]
    for _ in range(copies):
        for numel in shapes:
            trace.alloc(4 * numel)


def block_forward(trace, tokens, width, heads):
    """Activations of a block in bfloat16; returns the activations read by backward."""
    row = 2 * tokens * width
    saved = [trace.alloc(row), trace.alloc(8 * tokens), trace.alloc(3 * row)]
    saved += [trace.alloc(row), trace.alloc(4 * tokens * heads)]
    projected = trace.alloc(row)
    saved.append(trace.alloc(row))
    trace.free(projected)
    saved += [trace.alloc(row), trace.alloc(8 * tokens), trace.alloc(4 * row), trace.alloc(4 * row)]
    projected = trace.alloc(row)
    saved.append(trace.alloc(row))
    trace.free(projected)
    return saved


def block_backward(trace, saved, upstream, tokens, width):
    """Frees what the forward pass saved; returns the gradient of the block's input."""
    row = 2 * tokens * width
    wide = trace.alloc(4 * row)
    weight = trace.alloc(2 * 4 * width * width)
    trace.free(weight, saved.pop())
    slope = trace.alloc(4 * row)
    trace.free(wide, saved.pop())
    narrow = trace.alloc(row)
    weight = trace.alloc(2 * 4 * width * width)
    trace.free(weight, slope, saved.pop(), saved.pop(), saved.pop())
    total = trace.alloc(row)
    trace.free(upstream, narrow)
    attended = trace.alloc(row)
    weight = trace.alloc(2 * width * width)
    trace.free(weight, saved.pop())
    mixed = trace.alloc(3 * row)
    trace.free(attended, saved.pop(), saved.pop())
    narrow = trace.alloc(row)
    weight = trace.alloc(2 * 3 * width * width)
    trace.free(weight, mixed, saved.pop())
    result = trace.alloc(row)
    trace.free(total, narrow, *saved)
    return result


def gpt_step(trace, batch, length, layers=12, width=768, heads=12, vocabulary=50304, is_recomputed=False):
    tokens = batch * length
    row = 2 * tokens * width
    data = trace.alloc(8 * tokens)
    hidden = trace.alloc(row)
    kept = []
    for _ in range(layers):
        saved = block_forward(trace, tokens, width, heads)
        if is_recomputed:
            trace.free(*saved[:-1])
            saved = saved[-1:]
        kept.append(saved)
    logits = trace.alloc(2 * tokens * vocabulary)
    losses = trace.alloc(4 * tokens)
    upstream = trace.alloc(2 * tokens * vocabulary)
    trace.free(logits, losses)
    gradient = trace.alloc(row)
    trace.free(upstream)
    for saved in reversed(kept):
        if is_recomputed:
            trace.free(*saved)
            saved = block_forward(trace, tokens, width, heads)
        gradient = block_backward(trace, saved, gradient, tokens, width)
    trace.free(gradient, hidden, data)


def trained(seed, steps, step):
    """Steps of a GPT with Adam; step(trace, number) makes each."""
    trace = Trace(seed)
    parameters(trace, 12, 768, 50304, 4)
    for number in range(steps):
        step(trace, number)
    trace.free_all()
    return trace


def varying():
    """Traces a GPT whose batches have sentences of 200 to 1,024 tokens."""
    return trained(1, 40, lambda trace, _: gpt_step(trace, 8, trace.random.randint(200, 1024)))


def alternating():
    """Batches of 16 and 17 in turn."""
    return trained(2, 30, lambda trace, number: gpt_step(trace, 16 + number % 2, 512))


def constant():
    return trained(3, 20, lambda trace, _: gpt_step(trace, 16, 512))


def experts():
    """Traces a mixture of experts; at each layer the number of tokens of an expert is drawn."""
    trace = Trace(4)
    parameters(trace, 8, 768, 32000, 4)
    for _ in range(30):
        tokens, width, count = 8192, 768, 8
        kept = []
        for _ in range(8):
            saved = block_forward(trace, tokens, width, 12)
            shares = [trace.random.expovariate(1) for _ in range(count)]
            for share in shares:
                routed = max(1, int(2 * tokens * share / sum(shares)))
                saved += [trace.alloc(2 * routed * width), trace.alloc(8 * routed * width), trace.alloc(8 * routed * width), trace.alloc(2 * routed * width)]
            kept.append(saved)
        for saved in reversed(kept):
            while saved:
                gradient = trace.alloc(trace.sizes[saved[-1]][0])
                trace.free(saved.pop(), gradient)
    trace.free_all()
    return trace


def recomputed():
    """Traces LoRA's small weights under a frozen model, with recomputed activations and varying lengths."""
    trace = Trace(5)
    parameters(trace, 24, 1024, 50304, 1)
    for _ in range(24):
        for _ in range(4):
            for _ in range(3):
                trace.alloc(4 * 16 * 1024)
    for _ in range(20):
        gpt_step(trace, 8, trace.random.randint(300, 1000), layers=24, width=1024, heads=16, is_recomputed=True)
    trace.free_all()
    return trace


def growing():
    """Traces a cache of keys and values that grows by cat, token by token."""
    trace = Trace(6)
    for _ in range(24):
        trace.alloc(24 * MIB)
    for _ in range(3):
        caches = [[trace.alloc(2 * 16 * 1024 * 64), trace.alloc(2 * 16 * 1024 * 64)] for _ in range(24)]
        for length in range(65, 400):
            for layer in caches:
                for each in range(2):
                    longer = trace.alloc(2 * 16 * 1024 * length)
                    scores = trace.alloc(4 * 16 * 16 * length)
                    trace.free(layer[each], scores)
                    layer[each] = longer
        for layer in caches:
            trace.free(*layer)
    trace.free_all()
    return trace


def streams():
    """Traces work that uses each of eight streams in turn, with much memory."""
    trace = Trace(7)
    for turn in range(24):
        stream = turn % 8
        blocks = [trace.alloc(trace.random.randint(20, 120) * MIB, stream) for _ in range(16)]
        trace.random.shuffle(blocks)
        trace.free(*blocks)
    return trace


TRACES = {"varying": varying, "alternating": alternating, "constant": constant, "experts": experts, "recomputed": recomputed, "growing": growing,
          "streams": streams}


def write_all(folder):
    paths = {}
    for name, make in TRACES.items():
        trace = make()
        assert trace.peak >= 1 << 30, (name, trace.peak)
        paths[name] = os.path.join(folder, name + ".csv")
        trace.write(paths[name])
    return paths
