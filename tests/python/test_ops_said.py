"""Statements of docs/ops.md about differences between libraries, and errors that explain the problem."""

import pytest

import yoke


def grad_of(x, **bounds):
    x = yoke.tensor(x, requires_grad=True)
    x.clamp(**bounds).sum().backward()
    return x.grad.tolist()


def test_the_gradient_of_clamp_at_a_bound_is_1():
    assert grad_of([-1.0, 0.0, 0.5, 1.0, 2.0], min=0, max=1) == [0, 1, 1, 1, 0]
    assert grad_of([-1.0, 0.0, 1.0], min=0) == [0, 1, 1] and grad_of([0.0, 1.0, 2.0], max=1) == [1, 1, 0]


@pytest.mark.parametrize("dtype, low, high", [("int64", -(2**63), 2**63 - 1), ("int32", -(2**31), 2**31 - 1),
                                              ("int8", -128, 127), ("uint8", 0, 255)])
@pytest.mark.parametrize("source", ["float64", "float32"])
def test_casts_to_integers_stay_within_their_bounds(source, dtype, low, high):
    x = yoke.tensor([1e30, -1e30, float("inf"), float("-inf"), float("nan"), 2.9, -0.9], dtype=source)
    assert x.to(dtype=dtype).tolist() == [high, low, high, low, 0, 2, 0]


@pytest.mark.parametrize("equation, tensors, dtype, got", [
    ("i->", [[200, 200]], "uint8", 400), ("ii->", [[[100, 0], [0, 100]]], "int8", 200),
    ("ij->j", [[[200, 1], [100, 2]]], "uint8", [300, 3]), ("ij,k->i", [[[200, 200]], [200, 200]], "uint8", [160000]),
    ("ij,j->i", [[[200, 1]], [2, 1]], "uint8", [145]),  # a product, as in matmul
    ("i->i", [[200, 200]], "uint8", [200, 200]),
])
def test_einsum_sums_integers_as_sum_does(equation, tensors, dtype, got):
    assert yoke.einsum(equation, [yoke.tensor(t, dtype=dtype) for t in tensors]).tolist() == got


@pytest.mark.parametrize("padding, got", [
    ((-1, 2), [1, 2, 3, 4, 5, 1, 2]), ((2, -1), [3, 4, 0, 1, 2, 3, 4]), ((-2, -2), [2, 3]), ((0, -2), [0, 1, 2, 3]),
    ((-1, 5), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]),
])
def test_circular_padding_wraps_what_is_left(padding, got):
    assert yoke.arange(6).pad(padding, mode="circular").tolist() == got


def test_a_circle_is_gone_round_once_at_most():
    for padding in ((-1, 6), (-6, 1), (6, -1)):
        with pytest.raises(yoke.ValueError, match=r"cannot be taken from axis 0 of shape \[[05]\]"):
            yoke.arange(6).pad(padding, mode="circular")
    x = yoke.arange(12).reshape(3, 4).pad((-1, 1, 1, -1), mode="circular")
    assert x.tolist() == [[5, 6, 7, 5], [1, 2, 3, 1], [5, 6, 7, 5]]


def test_a_query_of_fewer_axes_keeps_its_heads():
    """With enable_gqa and as many heads of key and value, no head is shared, and no heads must be joined again."""
    q, kv = yoke.randn(4, 3, 8), yoke.randn(2, 4, 3, 8)
    got = yoke.scaled_dot_product_attention(q, kv, kv, enable_gqa=True)
    assert got.shape == (2, 4, 3, 8)
    assert got.tolist() == yoke.scaled_dot_product_attention(q.expand(2, 4, 3, 8), kv, kv).tolist()
    mask = yoke.rand(2, 4, 3, 3)
    masked = yoke.scaled_dot_product_attention(q, kv, kv, mask, enable_gqa=True)
    assert masked.tolist() == yoke.scaled_dot_product_attention(q.expand(2, 4, 3, 8), kv, kv, mask).tolist()
    assert masked.tolist() == yoke.scaled_dot_product_attention(q, kv, kv, mask).tolist()
    with pytest.raises(yoke.ValueError, match=r"'mask' has shape \[3, 1, 3, 3\]; it must broadcast to the shape of the scores, \[2, 4, 3, 3\]"):
        yoke.scaled_dot_product_attention(q, kv, kv, yoke.rand(3, 1, 3, 3), enable_gqa=True)


X = yoke.ones(2, dtype=yoke.int64)


@pytest.mark.parametrize("call, kind, told", [
    (lambda: yoke.ones(2).mean(dtype="int64"), yoke.TypeError, "mean: argument 'dtype' is int64.*give a floating dtype"),
    (lambda: X.mean(), yoke.TypeError, "mean: argument 'x' is int64.*give dtype=float32"),
    (lambda: X.norm(), yoke.TypeError, "norm: argument 'x' is int64"),
    (lambda: yoke.zeros(0).view((0, -1)), yoke.ValueError, r"view: shape \[0, -1\] is ambiguous"),
    (lambda: yoke.zeros(0, 3).reshape(-1, 0), yoke.ValueError, r"reshape: shape \[-1, 0\] is ambiguous"),
    (lambda: yoke.ones(3).reshape(0, -1), yoke.ValueError, "does not hold the 3 elements"),
    (lambda: yoke.ones(2, 3) @ yoke.ones(4, 3), yoke.ValueError, r"has 3 columns, but.* has 4 rows; .*y.mT would fit"),
    (lambda: yoke.ones(2, 3) @ yoke.ones(4, 5), yoke.ValueError, "must agree$"),
    (lambda: yoke.ones(2) & 1, yoke.TypeError, r"^bitwise_and: the operands are float32 together; it takes integers and bool"),
    (lambda: ~yoke.ones(2), yoke.TypeError, "^bitwise_not: argument 'x' is float32"),
    (lambda: pow(X, 2, 3), yoke.TypeError, r"^pow\(\): .*modulus"),
])
def test_errors_say_what_is_the_matter(call, kind, told):
    with pytest.raises(kind, match=told):
        call()


def test_an_empty_tensor_takes_a_shape_that_says_all():
    assert yoke.zeros(0).view(0, 5).shape == (0, 5) and yoke.zeros(2, 0).view(-1).shape == (0,)
