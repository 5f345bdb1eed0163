"""torch.nn.functional, where PyTorch's arguments are others than Yoke's."""

from __future__ import annotations

from typing import Any

import yoke
from yoke._yoke import Tensor
from yoke.compat.torch.options import reduction_of, refused


def _write(inplace: bool, x: Tensor, in_place: Any, plain: Any, *args: Any) -> Tensor:
    result: Tensor = in_place(x, *args) if inplace else plain(x, *args)
    return result


def kept(x: Tensor, inplace: bool) -> Tensor:
    """Returns a copy of a tensor that is written over while its gradient needs the values; else the tensor."""
    return x.clone() if inplace and x.requires_grad else x


def written(inplace: bool, x: Tensor, found: Tensor) -> Tensor:
    """Returns a result; in place, writes it into x first."""
    return x.copy_(found) if inplace else found


# ---- Activations -----------------------------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns max(x, 0)."""
    return _write(inplace, input, yoke.relu_, yoke.relu)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns x · sigmoid(x)."""
    return _write(inplace, input, yoke.silu_, yoke.silu)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Returns x above 0, else negative_slope · x."""
    return _write(inplace, input, yoke.leaky_relu_, yoke.leaky_relu, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns x above 0, else alpha · (exp(x) - 1)."""
    return _write(inplace, input, yoke.elu_, yoke.elu, alpha)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Holds x between two values."""
    ends = (min_val, max_val) if input.dtype.is_floating_point else (int(min_val), int(max_val))
    return _write(inplace, input, yoke.clamp_, yoke.clamp, *ends)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Holds x between 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def logsigmoid(input: Tensor) -> Tensor:
    """Returns log(sigmoid(x))."""
    return -yoke.softplus(-input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns x · tanh(softplus(x))."""
    x = kept(input, inplace)
    return written(inplace, input, x * yoke.tanh(yoke.softplus(x)))


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Returns log(1 + exp(beta · x)) / beta, and x where beta · x is above the threshold."""
    return yoke.softplus(input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """Returns x / (1 + |x|)."""
    return input / (1 + yoke.abs(input))


def tanhshrink(input: Tensor) -> Tensor:
    """Returns x - tanh(x)."""
    return input - yoke.tanh(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns x / 6 + 1/2, held in [0, 1]."""
    return written(inplace, input, yoke.clamp(input + 3, 0, 6) / 6)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns x · hardsigmoid(x)."""
    x = kept(input, inplace)
    return written(inplace, input, x * hardsigmoid(x))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Returns the first half times the sigmoid of the second."""
    first, second = yoke.chunk(input, 2, dim)
    return first * yoke.sigmoid(second)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Returns x above 0, else weight · x, with a weight for each channel."""
    if weight.nelement() > 1 and input.ndim > 1:
        weight = weight.reshape(-1, *[1] * (input.ndim - 2))
    elif input.ndim == 0:
        weight = weight.reshape(())
    return yoke.where(input > 0, input, input * weight)


def _usual_axis(dim: int | None, input: Tensor) -> int:
    return dim if dim is not None else 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Returns softmax along an axis."""
    return yoke.softmax(input if dtype is None else input.to(dtype=dtype), _usual_axis(dim, input))


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Returns the logarithm of softmax along an axis."""
    return yoke.log_softmax(input if dtype is None else input.to(dtype=dtype), _usual_axis(dim, input))


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Returns softmax(-x) along an axis."""
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Draws from a categorical distribution, with gradients."""
    noise = -yoke.log(-yoke.log(yoke.rand_like(logits).clamp(min=1e-20)))
    soft = yoke.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    place = soft.argmax(dim, keepdim=True)
    one = yoke.scatter(yoke.zeros_like(soft), dim, place, yoke.ones_like(place, dtype=soft.dtype))
    return one - soft.detach() + soft


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p while training."""
    found = yoke.dropout(input, p, training)
    return input.copy_(found) if inplace and training else found


def dropout_channels(input: Tensor, p: float, training: bool, axes: int) -> Tensor:
    """Zeroes whole channels."""
    if not training or p == 0:
        return input
    mask = yoke.dropout(yoke.ones(input.shape[:input.ndim - axes], dtype=input.dtype, device=input.device), p, True)
    return input * mask.reshape(*mask.shape, *[1] * axes)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes channels of [N, C, L] with probability p."""
    return written(inplace, input, dropout_channels(kept(input, inplace), p, training, 1))


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes channels of [N, C, H, W] with probability p."""
    return written(inplace, input, dropout_channels(kept(input, inplace), p, training, 2))


# ---- Layers ----------------------------------------------------------------------------------------------------------


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns x Wᵀ + b; a vector W gives a number for each row."""
    if weight.ndim == 1:
        found = yoke.matmul(input, weight)
        return found if bias is None else found + bias
    return yoke.linear(input, weight, bias)


def _padded(input: Tensor, weight: Tensor, padding: str, dilation: Any) -> tuple[Tensor, Any]:
    """Returns the input, and the padding as numbers; padding on one side only is added to the input."""
    if padding != "same":
        return input, (0,) * (weight.ndim - 2)
    spread = [(length - 1) * step for length, step in zip(weight.shape[2:], _repeated(weight.ndim - 2)(dilation))]
    if any(each % 2 for each in spread):
        return yoke.pad(input, [side for each in reversed(spread) for side in (each // 2, each - each // 2)]), (0,) * len(spread)
    return input, tuple(each // 2 for each in spread)


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """Returns the convolution over the last axis."""
    if isinstance(padding, str):
        input, padding = _padded(input, weight, padding, dilation)
    stride, padding, dilation = (each if isinstance(each, int) else each[0] for each in (stride, padding, dilation))
    return yoke.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """Returns the convolution over the last two axes."""
    if isinstance(padding, str):
        input, padding = _padded(input, weight, padding, dilation)
    return yoke.conv2d(input, weight, bias, stride, padding, dilation, groups)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over windows, whose number is given; None keeps an axis."""
    sizes = output_size if isinstance(output_size, int) else [input.shape[i - 2] if each is None else each for i, each in enumerate(output_size)]
    return yoke.adaptive_avg_pool2d(input, sizes)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Returns the rows of weight that input names."""
    refused("embedding", max_norm=(max_norm, None), scale_grad_by_freq=(scale_grad_by_freq, False), sparse=(sparse, False))
    return yoke.embedding(input, weight, padding_idx)


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Adds elements at the ends of the last axes."""
    return yoke.pad(input, list(pad), mode, 0.0 if value is None else value)


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None,
               training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalises each channel over the batch, or by running statistics."""
    return yoke.batch_norm(input, running_mean, running_var, weight, bias, training=training, momentum=momentum, eps=eps)


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalises each channel of each example."""
    refused("instance_norm", running_mean=(running_mean, None), running_var=(running_var, None), use_input_stats=(use_input_stats, True))
    return yoke.group_norm(input, input.shape[1], weight, bias, eps)


def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Tensor:
    """Takes the largest of each window."""
    refused("max_pool2d", return_indices=(return_indices, False))
    return yoke.max_pool2d(input, kernel_size, stride or None, padding, dilation, ceil_mode)


def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """Averages over windows."""
    return yoke.avg_pool2d(input, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override)


def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """Returns the tensor with another height and width."""
    refused("interpolate", antialias=(antialias, False))
    given = {"size": size, "scale_factor": scale_factor, "align_corners": align_corners, "recompute_scale_factor": recompute_scale_factor}
    return yoke.interpolate(input, mode=mode, **{name: value for name, value in given.items() if value is not None})


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Tensor:
    """Divides by the norm along an axis."""
    refused("normalize", out=(out, None))
    return yoke.normalize(input, p, dim, eps)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Returns the cosine of the angle along an axis."""
    return yoke.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Returns the p-norm of the difference along the last axis."""
    return yoke.norm(x1 - x2 + eps, p, -1, keepdim=keepdim)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns x1ᵀ W x2 + b."""
    found = yoke.einsum("ni,oij,nj->no", [input1.reshape(-1, weight.shape[1]), weight, input2.reshape(-1, weight.shape[2])])
    found = found.reshape(*input1.shape[:-1], weight.shape[0])
    return found if bias is None else found + bias


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Returns the windows of [N, C, H, W] as columns."""
    if input.ndim == 3:
        return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride)[0]
    (high, wide), (step_y, step_x), (pad_y, pad_x), (far_y, far_x) = (_pair(each) for each in (kernel_size, stride, padding, dilation))
    padded = yoke.pad(input, [pad_x, pad_x, pad_y, pad_y]) if pad_x or pad_y else input
    windows = yoke.unfold(yoke.unfold(padded, 2, far_y * (high - 1) + 1, step_y), 3, far_x * (wide - 1) + 1, step_x)[..., ::far_y, ::far_x]
    return windows.permute(0, 1, 4, 5, 2, 3).reshape(input.shape[0], input.shape[1] * high * wide, windows.shape[2] * windows.shape[3])


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)  # type: ignore[return-value]


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Moves channels into height and width."""
    return yoke.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Moves height and width into channels."""
    return yoke.pixel_unshuffle(input, downscale_factor)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """Returns softmax(query keyᵀ · scale + mask) value."""
    if dropout_p:
        if enable_gqa:
            key, value = (yoke.repeat_interleave(each, query.shape[-3] // each.shape[-3], -3) for each in (key, value))
        return _attention_with_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale)
    return yoke.scaled_dot_product_attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)


def _attention_with_dropout(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float, is_causal: bool, scale: float | None) -> Tensor:
    scores = yoke.matmul(query, key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = yoke.ones(scores.shape[-2:], dtype=yoke.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype is yoke.bool else scores + mask
    return yoke.matmul(yoke.dropout(yoke.softmax(scores, -1), p, True), value)


# ---- Losses ----------------------------------------------------------------------------------------------------------


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """Returns the cross entropy of logits."""
    return yoke.cross_entropy(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction_of(size_average, reduce, reduction), label_smoothing=label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
             reduction: str = "mean") -> Tensor:
    """Returns the negative log likelihood."""
    return yoke.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction_of(size_average, reduce, reduction))


def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Returns the squared error."""
    refused("mse_loss", weight=(weight, None))
    return yoke.mse_loss(input, target, reduction=reduction_of(size_average, reduce, reduction))


def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Returns the absolute error."""
    refused("l1_loss", weight=(weight, None))
    return yoke.l1_loss(input, target, reduction=reduction_of(size_average, reduce, reduction))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Returns the squared error below beta, the absolute error above."""
    return yoke.smooth_l1_loss(input, target, reduction=reduction_of(size_average, reduce, reduction), beta=beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """Returns delta times smooth_l1_loss with beta = delta."""
    refused("huber_loss", weight=(weight, None))
    return yoke.smooth_l1_loss(input, target, reduction=reduction, beta=delta) * delta


def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Returns the divergence of log-probabilities from target."""
    return yoke.kl_div(input, target, reduction=reduction_of(size_average, reduce, reduction), log_target=log_target)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
                         reduction: str = "mean") -> Tensor:
    """Returns the cross entropy of probabilities."""
    return yoke.binary_cross_entropy(input, target, weight, reduction=reduction_of(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """Returns the cross entropy of sigmoid(input)."""
    return yoke.binary_cross_entropy_with_logits(input, target, weight, reduction=reduction_of(size_average, reduce, reduction), pos_weight=pos_weight)


def _repeated(times: int) -> Any:
    def several(x: Any) -> tuple[Any, ...]:
        """Returns a tuple: a number stands for each axis."""
        return tuple(x) if hasattr(x, "__iter__") else (x,) * times

    return several


single, pair, triple = _repeated(1), _repeated(2), _repeated(3)
