"""PyTorch's form of each op of the table: {name: function with the op's own arguments, over torch tensors}."""
import math

import torch
import torch.nn.functional as F


def _list(axis):
    return tuple(axis) if isinstance(axis, (list, tuple)) else axis


def _axes(x, axis):
    """Every axis, for functions of PyTorch that need a list of axes."""
    return tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, int) else tuple(axis)


def _to_tensors(*operands):
    like = next(v for v in operands if isinstance(v, torch.Tensor))
    return [v if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=like.dtype if like.is_floating_point() else None)
            for v in operands]


def _whole(operation, x, axis, keepdim):
    """Extends a reduction of PyTorch over a single axis to any axes."""
    axes = [a % x.ndim for a in ([axis] if isinstance(axis, int) else _axes(x, axis))]
    for each in axes:
        x = operation(x, each)
    return x if keepdim else x.squeeze(tuple(axes))


def _is_none(x, axis):
    """Returns whether no axis is reduced, as NumPy defines it: an empty list of axes, or a tensor without axes."""
    return axis in ((), []) or x.ndim == 0


def _prod(x, axis=None, keepdim=False, dtype=None):
    if _is_none(x, axis):
        return x.clone() if x.is_floating_point() else x.to(torch.int64)
    return _whole(lambda v, i: torch.prod(v, i, keepdim=True, dtype=dtype), x, axis, keepdim)


def _logsumexp(x, axis=None, keepdim=False):
    if _is_none(x, axis):
        return x.clone() if x.is_floating_point() else x.float()
    return torch.logsumexp(x, _axes(x, axis), keepdim)


def _topk(x, k, axis=-1, largest=True, sorted=True):
    return torch.topk(x, k, axis, largest, True)


def _bce_of_logits(x, target, reduction, pos_weight=None):
    """PyTorch has no gradient for pos_weight either."""
    positive = target if pos_weight is None else target * pos_weight
    return -(positive * F.logsigmoid(x) + (1 - target) * F.logsigmoid(-x))


def _spread(operation):
    def spread(x, axis=None, keepdim=False, correction=1):
        return operation(x, dim=_axes(x, axis), keepdim=keepdim, correction=correction)
    return spread


def _extreme(operation):
    def extreme(x, axis=None, keepdim=False):
        return x.clone() if axis in ((), []) else operation(x, dim=_axes(x, axis), keepdim=keepdim)
    return extreme


def _sum(operation):
    def total(x, axis=None, keepdim=False, **dtype):
        if axis in ((), []):
            return x.clone() if x.is_floating_point() else x.to(torch.int64)
        return operation(x, dim=_axes(x, axis), keepdim=keepdim, **dtype) if x.ndim else operation(x, **dtype)
    return total


def _truth(operation):
    def truth(x, axis=None, keepdim=False):
        if axis in ((), []):
            return x.bool()
        return operation(x.bool(), dim=_axes(x, axis), keepdim=keepdim) if x.ndim else operation(x.bool())
    return truth


def _norm(x, p=2.0, axis=None, keepdim=False, dtype=None):
    if axis in ((), []):
        return x.abs()
    return torch.linalg.vector_norm(x, p, dim=None if axis is None else _axes(x, axis), keepdim=keepdim, dtype=dtype)


def _slice(x, axis, start=None, stop=None, step=1):
    kept = list(range(x.shape[axis]))[start:stop:step]
    return x.index_select(axis, torch.tensor(kept, dtype=torch.int64))


def _pad(x, padding, mode="constant", value=0):
    if mode == "constant":
        return F.pad(x, tuple(padding), mode, value)
    lead, tail = x.shape[:x.ndim - len(padding) // 2], x.shape[x.ndim - len(padding) // 2:]
    y = F.pad(x.reshape(math.prod(lead), 1, *tail), tuple(padding), mode)  # axes before the padded axes are the batch
    return y.reshape(*lead, *y.shape[2:])


def _scatter_add(x, axis, index, src):
    used = src[tuple(slice(n) for n in index.shape)]  # PyTorch's gradient wants src to be as large as index
    return torch.scatter_add(x, axis, index.long(), used)


def _weighed(operation):
    """PyTorch has no gradient for a loss's weight, but for a product's factor."""
    def loss(x, target, weight=None, reduction="mean", pos_weight=None):
        more = {} if pos_weight is None else {"pos_weight": pos_weight}
        losses = operation(x, target, reduction="none", **more)
        losses = losses if weight is None else losses * weight
        return {"none": lambda y: y, "sum": torch.sum, "mean": torch.mean}[reduction](losses)
    return loss


def _linear(x, weight, bias=None, activation="none"):
    after = {"none": lambda y: y, "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "gelu_tanh": lambda y: F.gelu(y, approximate="tanh")}
    return after[activation](F.linear(x, weight, bias))


def _pool(operation, absent):
    """Extends a pooling of PyTorch, which takes no None for a number, and no 0 channels. None becomes the default; 0 channels become
    a channel of zeros, removed from the result.
    """
    def pool(x, size, *numbers, **named):
        given = [d if n is None else n for n, d in zip(numbers, absent)]
        if x.shape[-3]:
            return operation(x, size, *given, **{k: v for k, v in named.items() if v is not None})
        return pool(F.pad(x, (0, 0, 0, 0, 0, 1)), size, *numbers, **named).narrow(-3, 0, 0)
    return pool


def _conv(operation):
    """Extends a convolution of PyTorch, which takes no None for a number, and no 0 channels. 0 channels become a channel of zeros."""
    is_transposed, spatial = operation is F.conv_transpose2d, (0, 0) if operation is F.conv1d else (0, 0, 0, 0)

    def conv(x, weight, bias=None, *numbers, **named):
        given = [d if n is None else n for n, d in zip(numbers, [1, 0, 0, 1, 1] if is_transposed else [1, 0, 1, 1])]
        if weight.numel():
            return operation(x, weight, bias, *given, **named)
        none = [int(n == 0) for n in weight.shape[:2]]
        whole = F.pad(weight, (*spatial, 0, none[1], 0, none[0]))
        seen = F.pad(x, (*spatial, 0, int(x.shape[1] == 0)))
        out = operation(seen, whole, None if none[is_transposed] else bias, *given, **named)
        return out[:, :0] if none[is_transposed] else out
    return conv


def _attention(query, key, value, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


def _of_classes(operation):
    """A loss of classes; PyTorch has no gradient for its weight."""
    def loss(x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
        target = target if target.is_floating_point() else target.long()
        more = {"label_smoothing": label_smoothing} if operation is F.cross_entropy else {}
        weight = None if weight is None else weight.detach()
        return operation(x, target, weight, reduction=reduction, ignore_index=ignore_index, **more)
    return loss


def _interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False, recompute_scale_factor=False):
    return F.interpolate(x, size, scale_factor, mode, align_corners if "linear" in mode else None, recompute_scale_factor or None)


def _along(operation):
    return lambda x, axis=-1, **more: operation(x, dim=axis, **more)


def _paired(operation):
    return lambda x, y: operation(*_to_tensors(x, y))


def _index_put(x, indices, values, accumulate=False, axis=0, wraps=True):
    key = (slice(None),) * axis + tuple(i if i.dtype == torch.bool else i.long() for i in indices)
    out = x.clone()
    if accumulate:
        return out.index_put_(key, values, True)
    out[key] = values
    return out


def _scatter(x, axis, index, src, reduce="none"):
    named = {} if reduce == "none" else {"reduce": reduce}
    return torch.scatter(x, axis, index.long(), src, **named)


def _repeat_interleave(x, repeats, axis=None, output_size=None):
    return torch.repeat_interleave(x, repeats.reshape(-1) if isinstance(repeats, torch.Tensor) else repeats, axis)


def _unique(x, sorted=True, return_inverse=False, return_counts=False, axis=None):
    return torch.unique(x, True, return_inverse, return_counts, dim=axis)


def _into(operation):
    """An in-place form: the result stays in x's memory, hence in its dtype."""
    def into(x, *more, **named):
        return x.clone().copy_(operation(x, *more, **named)) if x.is_floating_point() else operation(x, *more, **named).to(x.dtype)
    return into


OPS = {
    # pointwise
    "add": torch.add, "sub": lambda x, y: x - y, "mul": torch.mul, "div": lambda x, y: x / y, "neg": torch.neg,
    "exp": torch.exp, "log": torch.log, "relu": torch.relu, "tanh": torch.tanh,
    "gelu": lambda x, approximate="none": F.gelu(x, approximate=approximate),
    "cast": lambda x, dtype: x.to(getattr(torch, dtype)), "clone": torch.clone,
    "abs": torch.abs, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "sin": torch.sin,
    "cos": torch.cos, "erf": torch.erf, "sigmoid": torch.sigmoid, "silu": F.silu, "softplus": F.softplus,
    "leaky_relu": F.leaky_relu, "elu": F.elu, "sign": torch.sign, "floor": torch.floor, "ceil": torch.ceil,
    "round": torch.round, "clamp": torch.clamp, "isnan": torch.isnan, "isfinite": torch.isfinite, "pow": torch.pow,
    "maximum": _paired(torch.maximum), "minimum": _paired(torch.minimum), "eq": _paired(torch.eq), "ne": _paired(torch.ne),
    "lt": _paired(torch.lt), "le": _paired(torch.le), "gt": _paired(torch.gt), "ge": _paired(torch.ge),
    "logical_and": _paired(torch.logical_and), "logical_or": _paired(torch.logical_or),
    "logical_xor": _paired(torch.logical_xor), "logical_not": torch.logical_not, "where": torch.where,
    "copy_": lambda x, src: x.clone().copy_(src), "fill_": lambda x, value: x.clone().fill_(value),
    # reductions
    "sum": _sum(torch.sum), "mean": _sum(torch.mean), "amax": _extreme(torch.amax), "amin": _extreme(torch.amin),
    "argmax": lambda x, axis=None, keepdim=False: torch.argmax(x, axis, keepdim),
    "argmin": lambda x, axis=None, keepdim=False: torch.argmin(x, axis, keepdim),
    "all": _truth(torch.all), "any": _truth(torch.any), "prod": _prod, "var": _spread(torch.var), "std": _spread(torch.std),
    "norm": _norm, "logsumexp": _logsumexp,
    "cumsum": lambda x, axis, dtype=None: torch.cumsum(x, axis, dtype=dtype),
    "sort": lambda x, axis=-1, descending=False: torch.sort(x, dim=axis, descending=descending, stable=True),
    "argsort": lambda x, axis=-1, descending=False: torch.argsort(x, dim=axis, descending=descending, stable=True),
    "topk": _topk,
    "softmax": _along(torch.softmax), "log_softmax": _along(torch.log_softmax),
    # losses
    "cross_entropy": _of_classes(F.cross_entropy), "nll_loss": _of_classes(F.nll_loss),
    "mse_loss": lambda x, target, reduction="mean": F.mse_loss(x, target, reduction=reduction),
    "l1_loss": lambda x, target, reduction="mean": F.l1_loss(x, target, reduction=reduction),
    "smooth_l1_loss": lambda x, target, reduction="mean", beta=1.0: F.smooth_l1_loss(x, target, reduction=reduction, beta=beta),
    "binary_cross_entropy_with_logits": _weighed(_bce_of_logits),
    "binary_cross_entropy": _weighed(F.binary_cross_entropy),
    "kl_div": lambda x, target, reduction="mean", log_target=False: F.kl_div(
        x, target, reduction=reduction, log_target=log_target),
    # norms
    "layer_norm": lambda x, normalized_shape, weight=None, bias=None, eps=1e-5: F.layer_norm(
        x, tuple(normalized_shape), weight, bias, eps),
    "rms_norm": lambda x, normalized_shape, weight=None, eps=None: F.rms_norm(x, tuple(normalized_shape), weight, eps),
    "group_norm": lambda x, num_groups, weight=None, bias=None, eps=1e-5: F.group_norm(x, num_groups, weight, bias, eps),
    "batch_norm": lambda x, mean=None, var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5:
        F.batch_norm(x, mean, var, weight, bias, training, momentum, eps),
    "batch_norm_add_relu": lambda x, residual=None, *rest, **named:
        F.relu(OPS["batch_norm"](x, *rest, **named) + (0 if residual is None else residual)),
    "add_layer_norm": lambda x, residual, *rest, **named: OPS["layer_norm"](x + residual, *rest, **named),
    "embedding": lambda index, weight, padding_idx=None: F.embedding(index, weight, padding_idx),
    # products
    "max_pool2d": _pool(F.max_pool2d, [None, 0, 1, False]), "avg_pool2d": _pool(F.avg_pool2d, [None, 0, False, True, None]),
    "adaptive_avg_pool2d": _pool(F.adaptive_avg_pool2d, []),
    "conv1d": _conv(F.conv1d), "conv2d": _conv(F.conv2d), "conv_transpose2d": _conv(F.conv_transpose2d),
    "mm": torch.mm, "bmm": torch.bmm, "mv": torch.mv, "dot": torch.dot, "addmm": torch.addmm, "baddbmm": torch.baddbmm, "trace": torch.trace,
    "cdist": lambda x, y, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary": torch.cdist(x, y, p, compute_mode),
    "normalize": lambda x, p=2.0, axis=1, eps=1e-12: F.normalize(x, p, axis, eps),
    "cosine_similarity": lambda x, y, axis=1, eps=1e-8: F.cosine_similarity(x, y, axis, eps),
    "interpolate": _interpolate, "pixel_shuffle": F.pixel_shuffle, "pixel_unshuffle": F.pixel_unshuffle,
    "matmul": torch.matmul, "outer": lambda x, y: torch.outer(x, y), "scaled_mm": lambda x, y, a, b: (x * a) @ (y * b), "linear": _linear,
    "einsum": lambda equation, tensors: torch.einsum(equation, *tensors), "scaled_dot_product_attention": _attention,
    # shape
    "reshape": torch.reshape, "view": lambda x, shape: x.view(tuple(shape)), "transpose": torch.transpose,
    "permute": lambda x, axes: x.permute(tuple(axes)), "expand": lambda x, shape: x.expand(tuple(shape)),
    "squeeze": lambda x, axis=None: x.squeeze() if axis is None else x.squeeze(axis), "unsqueeze": torch.unsqueeze,
    "slice": _slice, "contiguous": lambda x: x.contiguous(), "index_select": torch.index_select,
    "cat": lambda tensors, axis=0: torch.cat(tensors, axis), "stack": lambda tensors, axis=0: torch.stack(tensors, axis),
    "split": lambda x, size, axis=0: torch.split(x, size if isinstance(size, int) else list(size), axis),
    "chunk": lambda x, chunks, axis=0: torch.chunk(x, chunks, axis), "unbind": lambda x, axis=0: torch.unbind(x, axis),
    "gather": lambda x, axis, index: torch.gather(x, axis, index.long()),
    "scatter_add": _scatter_add,
    "nonzero": torch.nonzero, "masked_select": torch.masked_select, "masked_fill": torch.masked_fill, "pad": _pad,
    "flip": lambda x, axes: torch.flip(x, tuple(axes)),
    "roll": lambda x, shifts, axes=None: torch.roll(x, _list(shifts), None if axes is None else tuple(axes)),
    "tile": lambda x, reps: torch.tile(x, tuple(reps)), "tril": torch.tril, "triu": torch.triu,
    "flatten": lambda x, start_axis=0, end_axis=-1: torch.flatten(x, start_axis, end_axis),
    "unflatten": lambda x, axis, sizes: torch.unflatten(x, axis, tuple(sizes)), "ravel": torch.ravel,
    "movedim": lambda x, source, destination: torch.movedim(x, _list(source), _list(destination)), "swapaxes": torch.swapaxes,
    "narrow": torch.narrow, "diagonal": lambda x, offset=0, axis1=0, axis2=1: torch.diagonal(x, offset, axis1, axis2), "diag": torch.diag,
    "unfold": lambda x, axis, size, step: x.unfold(axis, size, step), "repeat_interleave": _repeat_interleave,
    "tensor_split": lambda x, sections=None, axis=0, indices=None: torch.tensor_split(
        x, sections if indices is None else tuple(indices), axis),
    "meshgrid": lambda tensors, indexing="ij": torch.meshgrid(*tensors, indexing=indexing),
    "nonzero_tuple": lambda x: torch.nonzero(x, as_tuple=True),
    "scatter": _scatter, "take_along_dim": lambda x, indices, axis=None: torch.take_along_dim(x, indices.long(), axis),
    "index_put": _index_put, "index_add": lambda x, axis, index, source, alpha=1: torch.index_add(x, axis, index, source, alpha=alpha),
    "index_copy": lambda x, axis, index, source: torch.index_copy(x, axis, index.long(), source),
    "index_fill": lambda x, axis, index, value: torch.index_fill(x, axis, index.long(), value), "masked_scatter": torch.masked_scatter,
    # places and counts
    "searchsorted": lambda sequence, x, out_int32=False, right=False: torch.searchsorted(sequence, x, out_int32=out_int32, right=right),
    "bucketize": lambda x, boundaries, out_int32=False, right=False: torch.bucketize(x, boundaries, out_int32=out_int32, right=right),
    "unique": _unique, "bincount": torch.bincount, "histc": torch.histc,
    "one_hot": lambda x, num_classes=-1: F.one_hot(x.long(), num_classes),
    "dropout": lambda x, p=0.5, training=True: F.dropout(x, p, training),
}


def function_of(name):
    """Returns PyTorch's function for an op, or None. An in-place form follows from its op."""
    if name in OPS:
        return OPS[name]
    return _into(OPS[name[:-1]]) if name.endswith("_") and name[:-1] in OPS else None
