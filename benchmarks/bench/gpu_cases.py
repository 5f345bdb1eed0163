"""Cases of gpu.py: sizes, bytes moved by a case, and targets. Workers read the sizes here.

Cases of workers, "NAME ARGUMENTS": "add DTYPE", "gelu DTYPE", "cast DTYPE" (from f32), "softmax DTYPE [backward]", "layer_norm
DTYPE [backward]", "cross_entropy DTYPE [backward]", "batch_norm DTYPE [backward]", "batch_norm_add_relu DTYPE [backward]",
"max_pool DTYPE [backward]" (windows of 3 x 3, 2 apart), "adamw f32", "grad_norm f32", "gemm DTYPE SIZE", "attention LENGTH [WIDTH]
[plain] [backward]", "call" (host seconds of adding 8 numbers), "mlp AMP", and of the nets gpt and gpt2 "step NET AMP", "graph NET
AMP" (a captured step, replayed), "replay NET AMP" (host seconds of a replay) and "activations NET AMP" (bytes).
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
LENGTHS = (1024, 2048, 8192)


def sizes(small):
    """Returns all sizes; with `small`, sizes that an emulated device finishes in seconds."""
    if small:
        net = types.SimpleNamespace(layers=1, width=16, heads=2, context=8, batch=2, vocabulary=32)
        return types.SimpleNamespace(block=8192, width=64, classes=64, tensors=4, tokens=32, heads=2, head_width=16,
                                     rotated=0, pictures=256, gpt=net, gpt2=net)
    gpt = types.SimpleNamespace(layers=6, width=256, heads=4, context=256, batch=8, vocabulary=256)
    gpt2 = types.SimpleNamespace(layers=12, width=768, heads=12, context=1024, batch=32, vocabulary=50304)
    return types.SimpleNamespace(block=2**28, width=4096, classes=32768, tensors=32, tokens=16384, heads=16, head_width=128,
                                 rotated=2**29, pictures=59904, gpt=gpt, gpt2=gpt2)


def gemm_sets(s, size, dtype):
    """Returns the number of sets of matrices that take turns, as in gpu_floor.cu."""
    return max(1, -(-s.rotated // (3 * size * size * (4 if dtype in ("f32", "tf32") else 2))))


def flops_of_token(net):
    """Returns the operations of training: 6 for each multiplied weight, and attention's products without a mask."""
    weights = net.layers * 12 * net.width**2 + net.vocabulary * net.width
    return 6 * weights + 12 * net.layers * net.width * net.context
