"""Samples of the ops of core/ops/matmul and their references in NumPy."""
import math

import numpy as np

from op_samples import Case, call, values
from op_table import FLOATS, NUMBERS

_erf = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def np_linear(x, weight, bias=None, activation="none"):
    y = x @ weight.T
    return ACTIVATIONS[activation](y if bias is None else y + bias)


def summed_alone(einsum):
    """Integers are summed in int64 where an axis of one tensor is summed; products keep the dtype, as in matmul."""
    terms, arrow, result = einsum.args[0].replace(" ", "").replace(".", "").partition("->")
    letters = terms.replace(",", "")
    wanted = result if arrow else [letter for letter in letters if letters.count(letter) == 1]
    alone = [letter for letter in letters if letter not in wanted and sum(letter in term for term in terms.split(",")) == 1]
    return "sum" if alone else "same"


def np_attention(query, key, value, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ np.swapaxes(key, -1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        mask = np.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ value


def np_cdist(x, y, p=2.0, compute_mode=None):
    apart = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if p == 0:
        return (apart != 0).sum(-1).astype(np.float64)
    return apart.max(-1, initial=0) if math.isinf(p) else (apart**p).sum(-1) ** (1 / p)


def np_normalize(x, p=2.0, axis=1, eps=1e-12):
    return x / np.maximum((np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p), eps)


def np_cosine_similarity(x, y, axis=1, eps=1e-8):
    x, y = np.broadcast_arrays(x, y)
    return (np_normalize(x, 2, axis, eps) * np_normalize(y, 2, axis, eps)).sum(axis)


def product_of(*shapes, large, empty=(), ulps=16):
    """Calls of matmul by a name of its own. In a large one nothing cancels."""
    return Case(np.matmul, [call(*[values(*s) for s in pair]) for pair in shapes], empty=[call(*[values(*s) for s in pair]) for pair in empty],
                large=call(*[values(*s, low=0.2) for s in large]), dtypes=NUMBERS, ulps=ulps, absolute=True)


def sum_with(*shapes, large, empty):
    """Calls of beta * x + alpha * product."""
    calls = [call(*[values(*s) for s in each]) for each in shapes]
    calls += [call(*[values(*s) for s in shapes[0]], beta=2, alpha=3), call(*[values(*s) for s in shapes[0]], beta=0),
              call(*[values(*s) for s in shapes[-1]], beta=1, alpha=3)]
    return Case(lambda x, mat1, mat2, beta=1, alpha=1: beta * x + alpha * np.matmul(mat1, mat2), calls,
                empty=[call(*[values(*s) for s in each]) for each in empty], large=call(*[values(*s) for s in large]), dtypes=NUMBERS, ulps=24,
                absolute=True)


_holes = np.array([[True, False, True], [False, False, False], [True, True, True], [False, True, False]])

CASES = {
    "outer": Case(lambda x, y: np.logical_and.outer(x, y) if x.dtype == bool else np.multiply.outer(x, y),
                  [call(values(3), values(4)), call(values(1), values(1))],
                  empty=[call(values(0), values(3))], large=call(values(257), values(273))),
    "mm": product_of(((3, 4), (4, 5)), ((1, 1), (1, 1)), large=((129, 301), (301, 257)), empty=[((0, 4), (4, 2)), ((2, 0), (0, 3))]),
    "bmm": product_of(((2, 3, 4), (2, 4, 5)), ((1, 1, 2), (1, 2, 1)), large=((3, 150, 101), (3, 101, 170)), empty=[((0, 2, 3), (0, 3, 2))]),
    "mv": product_of(((3, 4), (4,)), large=((70_001, 3), (3,)), empty=[((0, 4), (4,)), ((3, 0), (0,))]),
    "dot": product_of(((5,), (5,)), ((1,), (1,)), large=((70_001,), (70_001,)), empty=[((0,), (0,))], ulps=128),
    "addmm": sum_with(((3, 5), (3, 4), (4, 5)), ((5,), (3, 4), (4, 5)), ((), (2, 2), (2, 3)), ((3, 1), (3, 4), (4, 5)),
                      large=((257,), (129, 301), (301, 257)), empty=[((3,), (0, 4), (4, 3)), ((2, 3), (2, 0), (0, 3))]),
    "baddbmm": sum_with(((2, 3, 5), (2, 3, 4), (2, 4, 5)), ((3, 5), (2, 3, 4), (2, 4, 5)), ((2, 1, 1), (2, 3, 4), (2, 4, 5)),
                        large=((170,), (3, 150, 101), (3, 101, 170)), empty=[((2,), (0, 3, 4), (0, 4, 2))]),
    "trace": Case(np.trace, [call(values(3, 3)), call(values(2, 4)), call(values(4, 2)), call(values(1, 1))], empty=[call(values(0, 3))],
                  large=call(values(300, 257)), result="sum", ulps=16, absolute=True),
    "cdist": Case(np_cdist, [
        call(values(3, 4), values(5, 4)), call(values(2, 3, 4), values(2, 5, 4)), call(values(3, 4), values(2, 5, 4)),
        call(values(3, 4, low=-1.7), values(5, 4) * 1.37, 1.0), call(values(3, 4, low=-1.7), values(5, 4) * 1.37, math.inf), call(values(3, 4), values(5, 4), p=3.0),
        call(values(3, 4), values(5, 4), 2.0, "use_mm_for_euclid_dist"), call(values(30, 3), values(4, 3)),
        call(values(30, 3), values(4, 3), 2.0, "donot_use_mm_for_euclid_dist"), call(values(3, 4), values(5, 4), 0.0)],
        empty=[call(values(0, 4), values(3, 4)), call(values(2, 4), values(0, 4)), call(values(2, 0), values(3, 0))],
        large=call(values(280, 3), values(257, 3), 1.0), dtypes=FLOATS, ulps=64, absolute=True),
    "normalize": Case(np_normalize, [
        call(values(3, 5)), call(values(2, 3, 4), 1.0), call(values(2, 3, 4), axis=-1), call(values(7), 3.0, 0), call(values(3, 5), 2.0, 0, 5.0)],
        empty=[call(values(0, 3)), call(values(2, 0))], large=call(values(257, 273)), dtypes=FLOATS, ulps=16, absolute=True),
    "cosine_similarity": Case(np_cosine_similarity, [
        call(values(3, 5), values(3, 5)), call(values(2, 3, 4), values(3, 1)), call(values(7), values(7), 0), call(values(3, 5), values(5), axis=-1),
        call(values(3, 5), values(3, 5), 1, 4.0)],
        empty=[call(values(0, 3), values(0, 3)), call(values(2, 0), values(2, 0))], large=call(values(257, 273), values(257, 273)), dtypes=FLOATS,
        ulps=16, absolute=True),
    "scaled_mm": Case(lambda x, y, scale_x, scale_y: x * scale_x @ (y * scale_y),
                      [call(values(3, 4), values(4, 2), values(), values(1)), call(values(1, 1), values(1, 1), values(1, 1), values())],
                      empty=[call(values(0, 4), values(4, 2), values(), values()), call(values(2, 0), values(0, 3), values(), values())],
                      large=call(values(129, 301), values(301, 257), values(), values()), dtypes=FLOATS, ulps=16, absolute=True),
    "einsum": Case(lambda equation, tensors: np.einsum(equation, *tensors), [
        call("ij,jk->ik", [values(3, 4), values(4, 5)]), call("ij,jk", [values(3, 4), values(4, 5)]),
        call("ba,ac", [values(3, 4), values(4, 2)]), call("i,i", [values(5), values(5)]), call("i,j->ji", [values(3), values(4)]),
        call("ii", [values(4, 4)]), call("ii->i", [values(4, 4)]), call("iji->ji", [values(3, 2, 3)]), call("iii", [values(3, 3, 3)]),
        call("ij->", [values(3, 4)]), call("ij->ji", [values(3, 4)]), call(" a b -> b ", [values(3, 4)]), call("ijk->ki", [values(2, 3, 4)]),
        call("bij,bjk->bik", [values(2, 3, 4), values(2, 4, 2)]), call("...ij,...jk->...ik", [values(2, 1, 3, 4), values(3, 4, 2)]),
        call("...ij,jk", [values(2, 3, 4), values(4, 2)]), call("i...->...i", [values(3, 2, 4)]), call("...,...", [values(3), values(2, 3)]),
        call("bhqd,bhkd->bhqk", [values(2, 2, 3, 4), values(2, 2, 5, 4)]), call("ij,jk,kl->il", [values(2, 3), values(3, 4), values(4, 2)]),
        call("ij,ij,ij->j", [values(3, 4), values(3, 4), values(3, 4)]), call("ijkl,klm->ijm", [values(2, 2, 3, 2), values(3, 2, 2)]),
        call("ij,kj->", [values(2, 3), values(4, 3)]), call("ij,ij->ij", [values(1, 3), values(2, 3)]), call("ij,jk->ik", [values(2, 1), values(3, 2)]),
        call("ii,ij->j", [values(3, 3), values(3, 2)]), call("aB,Bc", [values(2, 3), values(3, 2)]), call(",i->i", [values(), values(3)]),
        call("", [values()]), call("bn,anm,bm->ba", [values(2, 3), values(4, 3, 2), values(2, 2)])],
        empty=[call("ij,jk->ik", [values(0, 4), values(4, 2)]), call("ij,jk->ik", [values(2, 0), values(0, 3)]),
               call("ii->i", [values(0, 0)])],
        large=call("ij,jk->ki", [values(129, 301), values(301, 257)]), dtypes=NUMBERS, result=summed_alone, ulps=16, absolute=True),
    "scaled_dot_product_attention": Case(np_attention, [
        call(values(2, 5, 4), values(2, 3, 4), values(2, 3, 4)), call(values(5, 4), values(3, 4), values(3, 2)),
        call(values(2, 2, 5, 4), values(2, 2, 5, 4), values(2, 2, 5, 4), is_causal=True),
        call(values(2, 7, 3), values(2, 4, 3), values(2, 4, 3), is_causal=True),
        call(values(1, 3, 3), values(1, 6, 3), values(1, 6, 3), None, 0.0, True),
        call(values(2, 4, 3), values(2, 3, 3), values(2, 3, 3), _holes), call(values(4, 3), values(3, 3), values(3, 3), _holes, scale=0.25),
        call(values(2, 4, 3), values(2, 3, 3), values(2, 3, 3), _holes[None, :, :1]),
        call(values(2, 4, 3), values(2, 3, 3), values(2, 3, 3), values(4, 3)),
        call(values(2, 4, 3), values(2, 3, 3), values(2, 3, 3), values(2, 1, 3)),
        call(values(2, 4, 3), values(1, 3, 3), values(3, 3)),
        call(values(1, 4, 5, 2), values(1, 2, 3, 2), values(1, 2, 3, 2), enable_gqa=True),
        call(values(4, 4, 2), values(2, 3, 2), values(2, 3, 2), _holes, enable_gqa=True),
        call(values(4, 3, 2), values(2, 4, 3, 2), values(2, 4, 3, 2), enable_gqa=True),
        call(values(4, 3, 2), values(2, 2, 3, 2), values(2, 2, 3, 2), np.stack([_holes[:3]] * 8).reshape(2, 4, 3, 3), enable_gqa=True),
        call(values(4, 3, 2), values(2, 4, 3, 2), values(1, 4, 3, 2), np.stack([_holes[:3]] * 8).reshape(2, 4, 3, 3), enable_gqa=True),
        call(values(3, 2), values(2, 4, 3, 2), values(2, 4, 3, 2), np.stack([_holes[:3]] * 8).reshape(2, 4, 3, 3)),
        call(values(4, 4, 2), values(1, 3, 2), values(1, 3, 2), np.stack([_holes, ~_holes] * 2), enable_gqa=True)],
        empty=[call(values(0, 5, 4), values(0, 3, 4), values(0, 3, 4)), call(values(2, 0, 4), values(2, 3, 4), values(2, 3, 4)),
               call(values(2, 3, 4), values(2, 0, 4), values(2, 0, 4)), call(values(2, 3, 4), values(2, 3, 4), values(2, 3, 0))],
        large=call(values(3, 2, 130, 40), values(3, 2, 150, 40), values(3, 2, 150, 36), is_causal=True), dtypes=FLOATS, ulps=16,
        absolute=True),
    "linear": Case(np_linear, [
        call(values(3, 4), values(5, 4), values(5)), call(values(3, 4), values(5, 4)), call(values(4), values(5, 4), values(5)),
        call(values(2, 3, 4), values(5, 4), values(5)), call(values(1, 1), values(1, 1), None),
        call(values(33, 20), values(17, 20), values(17)),
        *[call(values(3, 4), values(5, 4), values(5), activation=a) for a in ACTIVATIONS if a != "none"],
        call(values(2, 3, 4), values(5, 4), None, "gelu"), call(values(4), values(5, 4), values(5), "silu")],
        empty=[call(values(0, 4), values(5, 4), values(5)), call(values(3, 0), values(5, 0), values(5)),
               call(values(3, 4), values(0, 4), values(0), "gelu"), call(values(2, 3, 0), values(5, 0), activation="relu")],
        large=call(values(300, 301), values(257, 301), values(257)), dtypes=FLOATS, ulps=16, absolute=True),
}
