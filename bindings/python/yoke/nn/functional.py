"""PyTorch's words for ops of networks: functional.relu is yoke.relu.

    import yoke.nn.functional as F
"""

from __future__ import annotations

import sys
from typing import Any

import yoke
from yoke._later import has

# PyTorch's names in torch.nn.functional. A name that Yoke has too is there.
NAMES = frozenset("""
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d avg_pool1d avg_pool2d batch_norm binary_cross_entropy
    binary_cross_entropy_with_logits celu conv1d conv2d conv3d conv_transpose1d conv_transpose2d cosine_embedding_loss cosine_similarity
    cross_entropy dropout dropout1d dropout2d elu elu_ embedding embedding_bag fold gelu glu group_norm gumbel_softmax hardshrink hardsigmoid
    hardswish hardtanh huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear local_response_norm
    log_softmax logsigmoid margin_ranking_loss max_pool1d max_pool2d max_unpool2d mish mse_loss nll_loss normalize one_hot pad
    pairwise_distance pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_ rms_norm rrelu scaled_dot_product_attention selu
    sigmoid silu smooth_l1_loss softmax softmin softplus softshrink softsign tanh tanhshrink threshold triplet_margin_loss unfold
    upsample""".split())


def __getattr__(name: str) -> Any:
    if name in NAMES and has(name):
        return getattr(yoke, name)
    if name == "__all__":
        return __dir__()
    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted(name for name in NAMES if has(name))
