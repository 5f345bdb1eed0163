"""Cases of gpu.py: sizes, bytes moved by a case, and targets. Workers read the sizes here.

Cases of workers, "NAME ARGUMENTS": "add DTYPE", "gelu DTYPE", "cast DTYPE" (from f32), "softmax DTYPE [backward]", "layer_norm
DTYPE [backward]", "cross_entropy DTYPE [backward]", "batch_norm DTYPE [backward]", "batch_norm_add_relu DTYPE [backward]",
"max_pool DTYPE [backward]" (windows of 3 x 3, 2 apart), "embedding DTYPE [backward]", "adamw f32", "grad_norm f32", "gemm DTYPE SIZE",
"weights DTYPE ROWS COLUMNS DEPTH" (a product that gives the gradient of a weight), "conv DTYPE N IN SIDE OUT WINDOW STRIDE
[backward]", "attention LENGTH [WIDTH] [plain | masked] [dropped] [own] [backward]", "call" (host seconds of adding 8 numbers), "mlp AMP", and of the
nets gpt, gpt2 and resnet "step NET AMP", "graph NET AMP" (a captured step, replayed), "replay NET AMP" (host seconds of a replay)
and "activations NET AMP" (bytes). "own" keeps cuDNN away. "deterministic" at the end asks for equal bits; without it sums may be
taken in any order.
"""

import types

ELEMENTWISE, FORWARD, BACKWARD, ADAMW, NORM, LOSS = 0.90, 0.85, 0.70, 0.80, 0.85, 0.75  # least part of the copy's speed
BATCH, POOL = 0.75, 0.80
GEMM, ATTENTION = 0.98, 0.97  # least part of cuBLASLt's and cuDNN's speed
CALL_C, CALL_PYTHON, REPLAY = 1.0e-6, 1.3e-6, 10e-6  # most seconds: the first two beyond a bare launch
COMPILED, MFU = 1.0, 0.50
MIXED_SPEED, MIXED_MEMORY = 1.5, 0.6  # autocast beside TF32
PEAK = {"9.0": 989e12}  # dense bf16 FLOP/s by compute capability

# (case, bytes read and written in blocks of the input, target)
MEMORY = [
    ("add f32", 3, ELEMENTWISE), ("add bf16", 3, ELEMENTWISE), ("gelu f32", 2, ELEMENTWISE), ("gelu bf16", 2, ELEMENTWISE),
    ("cast bf16", 1.5, ELEMENTWISE), ("softmax f32", 2, FORWARD), ("softmax bf16", 2, FORWARD),
    ("softmax f32 backward", 3, BACKWARD), ("softmax bf16 backward", 3, BACKWARD), ("layer_norm f32", 2, FORWARD),
    ("layer_norm bf16", 2, FORWARD), ("layer_norm f32 backward", 3, BACKWARD), ("layer_norm bf16 backward", 3, BACKWARD),
    ("cross_entropy f32", 1, LOSS), ("cross_entropy bf16", 1, LOSS), ("cross_entropy f32 backward", 2, LOSS),
    ("cross_entropy bf16 backward", 2, LOSS), ("adamw f32", 7, ADAMW),
    ("grad_norm f32", 1, NORM),
    # Images lie [N, H, W, C]. Statistics need a pass of their own. A relu's mask comes with the gradient, whose masked
    # values the residual gets. A maximum's place takes a byte.
    ("batch_norm bf16", 3, BATCH), ("batch_norm bf16 backward", 5, BACKWARD), ("batch_norm_add_relu bf16", 4, BATCH),
    ("batch_norm_add_relu bf16 backward", 7, BACKWARD), ("max_pool bf16", 1.375, POOL), ("max_pool bf16 backward", 1.375, BACKWARD),
]
GEMMS = [(dtype, size) for size in (1024, 2048, 4096, 8192) for dtype in ("f32", "tf32", "f16", "bf16")]
# Weights of GPT-2 at 32 x 1024 tokens, by (rows, columns, depth) of the product that gives the gradient.
WEIGHTS = ((768, 768, 32768), (3072, 768, 32768), (50304, 768, 32768))
LENGTHS = (1024, 2048, 8192)
LOOKUPS = [("embedding bf16", 2), ("embedding bf16 backward", 2)]  # as MEMORY, without a target
# Convolutions of ResNet-50: (channels in, side, channels out, window, stride).
CONVOLUTIONS = ((3, 224, 64, 7, 2), (64, 56, 64, 3, 1), (256, 56, 64, 1, 1), (128, 56, 128, 3, 2), (256, 14, 1024, 1, 1), (512, 7, 512, 3, 1))
# Whole steps: (net, peer, how), the most telling first.
STEPS = (("gpt2", "compiled", ""), ("resnet", "step", ""), ("gpt2", "step", ""), ("resnet", "compiled", ""), ("gpt2", "step", "deterministic"),
         ("resnet", "step", "deterministic"), ("gpt2", "tuned", ""), ("resnet", "tuned", ""), ("gpt", "compiled", ""))

NETS = {"gpt": "examples/gpt.py", "gpt2": "GPT-2 124M", "resnet": "ResNet-50"}
PEERS = {"compiled": "torch.compile", "step": "PyTorch, eager", "tuned": "tuned products and convolutions"}


def step_target(net, peer, how):
    """Returns the least speed of a step beside a peer, or None: GPTs beside torch.compile and eager, ResNet-50 beside eager."""
    return COMPILED if not how and peer != "tuned" and (net, peer) != ("resnet", "compiled") else None


def sizes(small):
    """Returns all sizes; with `small`, sizes that an emulated device finishes in seconds."""
    if small:
        net = types.SimpleNamespace(layers=1, width=16, heads=2, context=8, batch=2, vocabulary=32)
        resnet = types.SimpleNamespace(depth=18, width=2, side=32, batch=2, kinds=10)
        return types.SimpleNamespace(block=8192, width=64, classes=64, tensors=4, tokens=32, heads=2, head_width=16,
                                     rotated=0, pictures=256, shrink=32, gpt=net, gpt2=net, resnet=resnet)
    gpt = types.SimpleNamespace(layers=6, width=256, heads=4, context=256, batch=8, vocabulary=256)
    gpt2 = types.SimpleNamespace(layers=12, width=768, heads=12, context=1024, batch=32, vocabulary=50304)
    resnet = types.SimpleNamespace(depth=50, width=64, side=224, batch=256, kinds=1000)
    return types.SimpleNamespace(block=2**28, width=4096, classes=32768, tensors=32, tokens=16384, heads=16, head_width=128,
                                 rotated=2**29, pictures=59904, shrink=1, gpt=gpt, gpt2=gpt2, resnet=resnet)


def gemm_sets(s, rows, columns, depth, dtype):
    """Returns the number of sets of matrices that take turns, as in gpu_floor.cu."""
    elements = rows * depth + depth * columns + rows * columns
    return max(1, -(-s.rotated // (elements * (4 if dtype in ("f32", "tf32") else 2))))


def weights(s):
    """Yields (rows, columns, depth) of the products that give gradients of weights."""
    for sizes in WEIGHTS:
        yield tuple(max(1, size // s.shrink) for size in sizes)


def convolutions(s):
    """Yields the arguments of "conv"."""
    for into, side, out, window, stride in CONVOLUTIONS:
        yield f"{s.resnet.batch} {max(1, into // s.shrink)} {max(7, side // s.shrink)} {max(1, out // s.shrink)} {window} {stride}"


def flops_of_token(net):
    """Returns the operations of training: 6 for each multiplied weight, and attention's products without a mask."""
    weights = net.layers * 12 * net.width**2 + net.vocabulary * net.width
    return 6 * weights + 12 * net.layers * net.width * net.context
