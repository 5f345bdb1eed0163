"""Samples of the losses of core/ops/loss.cpp and core/ops/class_loss.cpp, and their references in NumPy."""
import numpy as np

from op_samples import Case, as_real, call, indices, values
from op_table import FLOATS


def reduced(losses, reduction, batch=1):
    with np.errstate(all="ignore"):
        if reduction == "none":
            return losses
        return np.sum(losses) / {"mean": losses.size, "sum": 1, "batchmean": batch}[reduction]


def np_log_softmax(x, axis=-1):
    x = as_real(x)
    if x.ndim == 0:
        return np.zeros(())
    shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def np_classes(logs, target, weight, reduction, ignore_index, label_smoothing=0.0):
    """Returns the loss of log-probabilities, as PyTorch's documentation has it."""
    axis = 0 if logs.ndim == 1 else 1
    classes = logs.shape[axis]
    weight = np.ones(classes) if weight is None else weight
    wide = weight.reshape([classes if a == axis else 1 for a in range(logs.ndim)])
    if target.dtype.kind == "f":
        share = target * (1 - label_smoothing) + label_smoothing / classes
        losses = -(logs * share * wide).sum(axis)
        divisor = losses.size
    else:
        counts = target != ignore_index
        rows = np.where(counts, target, 0)
        of_target = -np.squeeze(np.take_along_axis(logs, np.expand_dims(rows, axis), axis), axis)
        each = counts * weight[rows]
        losses = (1 - label_smoothing) * each * of_target - counts * label_smoothing / classes * (logs * wide).sum(axis)
        divisor = each.sum()
    with np.errstate(all="ignore"):
        return losses if reduction == "none" else losses.sum() / (divisor if reduction == "mean" else 1)


def np_cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
    logs = np_log_softmax(x, 0 if x.ndim == 1 else 1)
    return np_classes(logs, target, weight, reduction, ignore_index, label_smoothing)


def np_nll_loss(x, target, weight=None, reduction="mean", ignore_index=-100):
    return np_classes(x, target, weight, reduction, ignore_index)


def np_smooth_l1(x, target, reduction="mean", beta=1.0):
    size = np.abs(x - target)
    with np.errstate(all="ignore"):
        return reduced(np.where(size < beta, 0.5 * size**2 / beta, size - 0.5 * beta), reduction)


def np_bce_logits(x, target, weight=None, reduction="mean", pos_weight=None):
    more = 1 if pos_weight is None else pos_weight
    losses = (1 - target) * np.logaddexp(0, x) + more * target * np.logaddexp(0, -x)
    return reduced(losses if weight is None else losses * weight, reduction)


def np_bce(x, target, weight=None, reduction="mean"):
    losses = -(target * np.log(x) + (1 - target) * np.log(1 - x))
    return reduced(losses if weight is None else losses * weight, reduction)


def np_kl_div(x, target, reduction="mean", log_target=False):
    logs, p = (target, np.exp(target)) if log_target else (np.log(target), target)
    return reduced(p * (logs - x), reduction, len(x))


def chance(*shape):
    return values(*shape, low=0.1, high=0.9)


def pair(reference, target=values, x=values, more=(), broadcasts=True, **options):
    """Calls of a loss of two tensors; values that differ by a kink's width or more."""
    calls = [call(x(3, 5), target(3, 5)), call(x(7), target(7), reduction="sum"), call(x(2, 3, 4), target(2, 3, 4), reduction="none")]
    if broadcasts:
        calls += [call(x(3, 5), target(5)), call(x(2, 1, 4), target(3, 1), reduction="none")]
    return Case(reference, calls + list(more),
                empty=[call(x(0), target(0), reduction="sum"), call(x(2, 0), target(2, 0), reduction="none")],
                large=call(x(257, 273), target(257, 273)), dtypes=FLOATS, ulps=8, absolute=True, **options)


def shares(*shape):
    """Class probabilities: each row of the second axis, or of a vector, has a sum of 1."""
    drawn = values(*shape, low=0.1, high=1.0)
    return drawn / drawn.sum(1 if len(shape) > 1 else 0, keepdims=True)


CASES = {
    "cross_entropy": Case(np_cross_entropy, [
        call(values(5, 4), indices(4, 5)), call(values(5, 4), indices(4, 5), reduction="sum"),
        call(values(5, 4), indices(4, 5), reduction="none"), call(values(5, 4), np.array([0, 3, -100, 1, -100])),
        call(values(5, 4), np.array([0, 3, 2, 1, 2]), ignore_index=2), call(values(1, 1), indices(1, 1)),
        call(values(5, 4), np.array([0, 3, -100, 1, 2]), label_smoothing=0.1),
        call(values(4, 6), indices(6, 4).astype(np.int32), None, "none", label_smoothing=0.3),
        call(values(5, 4), np.array([0, 3, 2, 1, 2]), chance(4)), call(values(5, 4), indices(4, 5), chance(4), "sum"),
        call(values(5, 4), np.array([0, 3, 2, 1, 2]), chance(4), "none", 2),
        call(values(5, 4), np.array([0, 3, -100, 1, 2]), chance(4), label_smoothing=0.2),
        call(values(5, 4), np.array([0, 3, -100, 1, 2]), chance(4), "none", label_smoothing=0.2),
        call(values(2, 3, 4, 5), indices(3, 2, 4, 5)), call(values(2, 3, 4), indices(3, 2, 4), reduction="none"),
        call(values(2, 3, 4), indices(3, 2, 4), chance(3), label_smoothing=0.1), call(values(2, 3, 4), indices(3, 2, 4), reduction="sum"),
        call(values(4), np.array(2)), call(values(4), np.array(2), chance(4), "none"), call(values(4), np.array(1), reduction="none"),
        call(values(5, 4), shares(5, 4)), call(values(5, 4), shares(5, 4), chance(4), "none", label_smoothing=0.3),
        call(values(2, 3, 4), shares(2, 3, 4), chance(3)), call(values(2, 3, 4), shares(2, 3, 4), reduction="sum"), call(values(4), shares(4))],
        empty=[call(values(0, 4), indices(4, 0)), call(values(0, 4), indices(4, 0), reduction="sum"),
               call(values(0, 4), indices(4, 0), reduction="none"), call(values(0, 4, 3), indices(4, 0, 3), chance(4), "sum"),
               call(values(0, 4), values(0, 4))],
        large=call(values(301, 227), indices(227, 301), reduction="none"), dtypes=FLOATS, ulps=8, absolute=True),
    "nll_loss": Case(np_nll_loss, [
        call(values(5, 4), indices(4, 5)), call(values(5, 4), indices(4, 5), reduction="sum"),
        call(values(5, 4), indices(4, 5), reduction="none"), call(values(5, 4), np.array([0, 3, -100, 1, -100])),
        call(values(5, 4), np.array([0, 3, 2, 1, 2]).astype(np.int32), ignore_index=2),
        call(values(5, 4), np.array([0, 3, 2, 1, 2]), chance(4)), call(values(5, 4), np.array([0, 3, 2, 1, 2]), chance(4), "none", 2),
        call(values(2, 3, 4, 5), indices(3, 2, 4, 5)), call(values(2, 3, 4), indices(3, 2, 4), chance(3), "sum"),
        call(values(2, 3, 4), indices(3, 2, 4), reduction="none"), call(values(4), np.array(2)), call(values(4), np.array(2), chance(4))],
        empty=[call(values(0, 4), indices(4, 0)), call(values(0, 4), indices(4, 0), reduction="none")],
        large=call(values(301, 227), indices(227, 301)), dtypes=FLOATS, ulps=8, absolute=True),
    "mse_loss": pair(lambda x, target, reduction="mean": reduced((x - target) ** 2, reduction)),
    "l1_loss": pair(lambda x, target, reduction="mean": reduced(np.abs(x - target), reduction)),
    "smooth_l1_loss": pair(np_smooth_l1, more=[call(values(3, 5), values(3, 5), "mean", 0.5), call(values(6), values(6), "sum", 0.0)]),
    "binary_cross_entropy_with_logits": pair(
        np_bce_logits, chance, broadcasts=False,
        more=[call(values(3, 5), chance(3, 5), chance(5)), call(values(3, 5), chance(3, 5), None, "sum", chance(5) * 3),
              call(values(3, 5), chance(3, 5), chance(3, 1), "none", pos_weight=chance(3, 5)),
              call(values(4) * 9, chance(4), reduction="none")]),
    "binary_cross_entropy": pair(np_bce, chance, chance, broadcasts=False,
                                 more=[call(chance(3, 5), chance(3, 5), chance(5)), call(chance(4), chance(4), chance(4), "none")]),
    "kl_div": pair(np_kl_div, chance, more=[call(values(3, 5), chance(3, 5), "batchmean"), call(values(3, 5), values(3, 5), "sum", True),
                                           call(values(4, 2), values(4, 2), reduction="batchmean", log_target=True)]),
}
