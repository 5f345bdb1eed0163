"""Layers of ResNet-50 and GPT-2 at their real sizes on the device, by own kernels and by cuDNN, beside float32 on the CPU.

    sizes.py convolutions|attention|rows|products [--device cuda] [--seconds 120] [--small]

A batch is smaller than in training, because the CPU computes the same. Inputs are rounded to the dtype before either side sees
them. The error of a result or gradient is that of its norm: ‖device − CPU‖ / ‖CPU‖. Each line is told as soon as it is known.
"""

import argparse
import os
import sys
import time

import numpy as np

# Most error by dtype: a few roundings of the result for 16 bits; the order of sums for float32.
ALLOWED = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 5e-5}
# ResNet-50's convolutions at 224 x 224: (side, channels in, channels out, window, stride).
CONVOLUTIONS = [(224, 3, 64, 7, 2), (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1), (56, 256, 128, 1, 1),
                (56, 128, 128, 3, 2), (56, 256, 512, 1, 2), (28, 128, 128, 3, 1), (28, 128, 512, 1, 1), (28, 512, 256, 1, 1), (28, 256, 256, 3, 2),
                (28, 512, 1024, 1, 2), (14, 256, 256, 3, 1), (14, 256, 1024, 1, 1), (14, 1024, 512, 1, 1), (14, 512, 512, 3, 2),
                (14, 1024, 2048, 1, 2), (7, 512, 512, 3, 1), (7, 512, 2048, 1, 1), (7, 2048, 512, 1, 1)]
# Attention: (batch, heads, length, width, causal).
ATTENTION = [(2, 12, 1024, 64, True), (2, 12, 1024, 64, False), (1, 16, 2048, 128, True), (1, 2, 8192, 128, True), (3, 5, 333, 80, True), (2, 4, 1000, 96, False)]
# Products of GPT-2 at 32 x 1024 tokens: (rows, columns, depth); the last three give the gradients of weights.
PRODUCTS = [(4096, 2304, 768), (4096, 768, 768), (4096, 3072, 768), (4096, 768, 3072), (1024, 50304, 768), (768, 768, 32768), (3072, 768, 32768),
            (50304, 768, 2048)]
TINY = 8  # factor of --small


class Side:
    """Yoke on a device, with inputs that both sides share."""

    def __init__(self, yoke, device, dtype, is_reference=False):
        self.yoke, self.device, self.dtype, self.is_reference = yoke, device, dtype, is_reference

    def leaf(self, values):
        x = self.yoke.tensor(values, device="cpu").to(getattr(self.yoke, self.dtype))
        if self.is_reference:
            x = x.to(self.yoke.float32)  # as the dtype rounded them
        return x.to(self.device).requires_grad_(True)

    def index(self, values):
        return self.yoke.tensor(values, device="cpu").to(self.device)

    def numbers(self, x):
        return x.detach().to("cpu").to(self.yoke.float32).numpy()


def with_gradients(side, out, grad, leaves):
    """Returns the result of a layer and the gradients of its inputs, as NumPy's arrays."""
    seed = side.yoke.tensor(grad, device="cpu").to(getattr(side.yoke, side.dtype)).to(out.dtype).to(out.device)
    gradients = side.yoke.grad(out, leaves, seed)
    return [side.numbers(one) for one in (out, *gradients)]


def draw(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# ---- layers: each yields (name, dtype, function of a side) -----------------------------------------------------------


def convolution(side, n, height, into, out, window, stride):
    x, w = side.leaf(draw(1, n, into, height, height)), side.leaf(draw(2, out, into, window, window) / (into * window**2) ** 0.5)
    y = side.yoke.conv2d(x, w, None, stride, window // 2)
    return with_gradients(side, y, draw(3, *y.shape), [x, w])


def convolutions(shrink):
    for dtype in ("bfloat16", "float32"):
        for height, into, out, window, stride in CONVOLUTIONS:
            sizes = (2 if shrink > 1 else 8, max(7, height // shrink), max(1, into // shrink), max(1, out // shrink), window, stride)
            yield f"conv {'x'.join(map(str, sizes))}", dtype, lambda side, sizes=sizes: convolution(side, *sizes)


def attend(side, batch, heads, length, width, causal):
    q, k, v = (side.leaf(draw(seed, batch, heads, length, width)) for seed in (1, 2, 3))
    y = side.yoke.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return with_gradients(side, y, draw(4, *y.shape), [q, k, v])


def attention(shrink):
    for dtype in ("bfloat16", "float16"):
        for batch, heads, length, width, causal in ATTENTION:
            sizes = (batch, max(1, heads // shrink), max(9, length // shrink // shrink), width, causal)
            yield f"attention {'x'.join(map(str, sizes))}", dtype, lambda side, sizes=sizes: attend(side, *sizes)


def norm(side, rows, width):
    x, w, b = side.leaf(draw(1, rows, width)), side.leaf(draw(2, width)), side.leaf(draw(3, width))
    y = side.yoke.layer_norm(x, (width,), w, b)
    return with_gradients(side, y, draw(4, *y.shape), [x, w, b])


def loss(side, rows, classes):
    x, target = side.leaf(draw(1, rows, classes)), side.index(np.random.default_rng(2).integers(0, classes, rows))
    return with_gradients(side, side.yoke.cross_entropy(x, target), np.float32(1), [x])


def batch_norm(side, n, channels, height):
    x, w, b = side.leaf(draw(1, n, channels, height, height)), side.leaf(draw(2, channels)), side.leaf(draw(3, channels))
    y = side.yoke.relu(side.yoke.batch_norm(x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), None, None, w, b, training=True))
    return with_gradients(side, y, draw(4, *y.shape), [x, w, b])


def pool(side, n, channels, height):
    x = side.leaf(draw(1, n, height, height, channels))
    y = side.yoke.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1)
    return with_gradients(side, y, draw(4, *y.shape), [x])


def look_up(side, rows, kinds, width):
    w, index = side.leaf(draw(1, kinds, width)), side.index(np.random.default_rng(2).integers(0, kinds, rows))
    y = side.yoke.embedding(index, w)
    return with_gradients(side, y, draw(3, *y.shape), [w])


def rows(shrink):
    layers = [("layer_norm", norm, (4096 // shrink, 768)), ("cross_entropy", loss, (1024 // shrink, 50304 // shrink)),
              ("batch_norm", batch_norm, (8, 64, 112 // shrink)), ("batch_norm", batch_norm, (8, 1024, 14 // min(shrink, 2))),
              ("max_pool", pool, (8, 64, 112 // shrink)), ("embedding", look_up, (8192 // shrink, 50304 // shrink, 768 // shrink))]
    for dtype in ("bfloat16", "float32"):
        for name, layer, sizes in layers:
            yield f"{name} {'x'.join(map(str, sizes))}", dtype, lambda side, layer=layer, sizes=sizes: layer(side, *sizes)


def multiply(side, count, columns, depth):
    x, y = side.leaf(draw(1, count, depth) / depth**0.5), side.leaf(draw(2, depth, columns))
    return with_gradients(side, side.yoke.matmul(x, y), draw(3, count, columns), [x, y] if depth < 8192 else [])


def products(shrink):
    for dtype in ("bfloat16", "float16", "float32"):
        for sizes in PRODUCTS:
            sizes = tuple(max(1, size // shrink // shrink) for size in sizes)
            yield f"product {'x'.join(map(str, sizes))}", dtype, lambda side, sizes=sizes: multiply(side, *sizes)


FAMILIES = {"convolutions": convolutions, "attention": attention, "rows": rows, "products": products}


# ---- comparing -------------------------------------------------------------------------------------------------------


def error_of(got, want):
    if got.shape != want.shape:
        return float("inf")
    wide = want.astype(np.float64)
    return float(np.linalg.norm(got.astype(np.float64) - wide) / max(np.linalg.norm(wide), 1e-30))


def check(name, dtype, got, want):
    """Prints the errors of a result and its gradients; returns whether all are allowed."""
    errors = [error_of(a, b) for a, b in zip(got, want)]
    right = all(error <= ALLOWED[dtype] for error in errors)  # not so for NaN
    print(f"{'right' if right else 'WRONG'}: {name}: {' '.join(f'{error:.1e}' for error in errors)} of {ALLOWED[dtype]:g}", flush=True)
    return right


def ways(yoke):
    """Returns {name: whether cuDNN may compute} of what is compared, and prints why one is missing."""
    if yoke.backends.cudnn.version():
        return {"own kernels": False, f"cuDNN {yoke.backends.cudnn.version()}": True}
    print(f"without cuDNN: {yoke.backends.cudnn.why_unavailable()}", flush=True)
    return {"own kernels": False}


def run_layer(yoke, device, name, dtype, layer, known, counts):
    want = layer(Side(yoke, "cpu", dtype, is_reference=True))
    for way, cudnn in known.items():
        try:
            with yoke.backends.cudnn.flags(enabled=cudnn):
                got = layer(Side(yoke, device, dtype))
            right = check(f"{name}, {dtype}, {way}", dtype, got, want)
        except Exception as error:  # also a lost device: this line and all later lines name the error
            right = False
            print(f"WRONG: {name}, {dtype}, {way}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
        counts[way][0 if right else 1] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=120, help="no layer begins later than this")
    parser.add_argument("--small", action="store_true", help="a fraction of the sizes")
    options = parser.parse_args()
    until, left = time.monotonic() + options.seconds, 0
    os.environ["YOKE_DEVICE"] = "cpu"
    import yoke

    known = ways(yoke)
    counts = {way: [0, 0] for way in known}
    for name, dtype, layer in FAMILIES[options.family](TINY if options.small else 1):
        if time.monotonic() > until:
            left += 1
        else:
            run_layer(yoke, options.device, name, dtype, layer, known, counts)
    print("; ".join([*(f"{way}: {right} layers right, {wrong} wrong" for way, (right, wrong) in counts.items()),
                     *[f"no time was left for {left} layers"] * bool(left)]))
    return 1 if left or any(wrong for _, wrong in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
