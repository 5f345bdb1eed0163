"""Lists, grids, places and counts beside the table of cases: results that are lists, arguments by number, and refusals."""
import numpy as np
import pytest

import yoke
from op_table import to_numpy, to_yoke

X = np.arange(42.0).reshape(7, 6)


def arrays(parts):
    assert type(parts) is tuple
    return [to_numpy(p) for p in parts]


def assert_parts(parts, wanted):
    for got, want in zip(arrays(parts), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


# ---- Lists -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sections, axis", [(3, 0), (7, 0), (9, 0), (1, 0), (4, 1), (4, -1)])
def test_tensor_split_cuts_into_so_many_parts(sections, axis):
    assert_parts(yoke.tensor(X).tensor_split(sections, axis), np.array_split(X, sections, axis))


@pytest.mark.parametrize("indices", [[2], [1, 4], [4, 1], [-2], [3, 3], [100], []])
def test_tensor_split_cuts_before_indices(indices):
    assert_parts(yoke.tensor_split(yoke.tensor(X), indices=indices), np.split(X, indices))


def test_meshgrid_spreads_vectors_over_the_grid():
    x, y, z = np.arange(3.0), np.arange(4.0), np.arange(2.0)
    for indexing in ("ij", "xy"):
        wanted = np.meshgrid(x, y, z, indexing=indexing)
        vectors = [yoke.tensor(v) for v in (x, y, z)]
        assert_parts(yoke.meshgrid(vectors, indexing=indexing), wanted)
        assert_parts(yoke.meshgrid(*vectors, indexing=indexing), wanted)
    assert_parts(yoke.meshgrid(yoke.tensor(x)), [x])
    assert_parts(yoke.meshgrid(yoke.tensor(x), yoke.tensor(2.0, dtype=yoke.float64), indexing="xy"), np.meshgrid(x, 2.0))


def test_gradients_flow_through_lists():
    x = to_yoke(X, requires_grad=True)
    a, b = x.tensor_split(2)
    (a.sum() + 2 * b.sum()).backward()
    assert to_numpy(x.grad).tolist() == [[1.0] * 6] * 4 + [[2.0] * 6] * 3
    u, v = (to_yoke(np.arange(n, dtype=float), requires_grad=True) for n in (2, 3))
    rows, columns = yoke.meshgrid(u, v)
    (rows * columns).sum().backward()
    assert u.grad.tolist() == [3.0, 3.0] and v.grad.tolist() == [1.0] * 3


def test_where_and_nonzero_give_tuples_as_in_pytorch():
    x = np.array([[0.0, 3.0], [4.0, 0.0], [5.0, 6.0]])
    for places in (yoke.where(yoke.tensor(x) > 0), (yoke.tensor(x) > 0).where(), yoke.nonzero(yoke.tensor(x), as_tuple=True),
                   yoke.tensor(x).nonzero(as_tuple=True), yoke.nonzero_tuple(yoke.tensor(x))):
        assert_parts(places, np.nonzero(x))
    assert_parts(yoke.nonzero_tuple(yoke.tensor(2.0)), [np.array([0])])
    assert_parts(yoke.nonzero_tuple(yoke.tensor(0.0)), [np.zeros(0)])
    assert yoke.tensor(x).nonzero(as_tuple=False).tolist() == np.argwhere(x).tolist()
    with pytest.raises(TypeError, match="as_tuple"):
        yoke.nonzero(yoke.tensor(x), as_tuple="yes")


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_gives_inverse_and_counts_if_asked_for(axis):
    x = np.random.default_rng(1).integers(0, 3, (9, 2))
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(x.shape) if axis is None else inverse.reshape(-1)
    t = yoke.tensor(x)
    assert_parts(t.unique(return_inverse=True, return_counts=True, axis=axis), [values, inverse, counts])
    assert_parts(yoke.unique(t, return_counts=True, axis=axis), [values, counts])
    assert_parts(yoke.unique(t, True, True, axis=axis), [values, inverse])
    assert isinstance(t.unique(axis=axis), yoke.Tensor)


def test_unique_of_nothing_and_of_nan():
    empty = yoke.zeros(0)
    assert [p.tolist() for p in empty.unique(return_inverse=True, return_counts=True)] == [[], [], []]
    values, counts = yoke.tensor([float("nan"), 1.0, float("nan"), -0.0, 0.0]).unique(return_counts=True)
    assert str(values.tolist()) == str([-0.0, 1.0, float("nan"), float("nan")]) and counts.tolist() == [2, 1, 1, 1]


# ---- Places and counts -----------------------------------------------------------------------------------------------


def test_places_may_be_int32_and_numbers_keep_their_value():
    seq = yoke.tensor([1, 3, 5])
    assert seq.dtype == yoke.int64 and yoke.searchsorted(seq, 2.5).tolist() == 1
    assert yoke.searchsorted(seq, yoke.tensor([3, 9]), out_int32=True).dtype == yoke.int32
    assert yoke.bucketize(yoke.tensor([3, 9]), seq, out_int32=True).dtype == yoke.int32
    assert yoke.bucketize(3, seq, right=True).tolist() == 2


def test_nan_and_infinities_have_places_as_in_pytorch():
    seq = yoke.tensor([-1.0, 0.0, float("inf"), float("nan")])
    x = yoke.tensor([float("-inf"), float("nan"), float("inf"), -0.0])
    assert yoke.searchsorted(seq, x).tolist() == [0, 4, 2, 1]
    assert yoke.searchsorted(seq, x, right=True).tolist() == [0, 4, 4, 2]


def test_weights_are_summed_in_float64_unless_they_are_float32():
    x = yoke.tensor([0, 2, 2, 1])
    for dtype, wanted in (("float32", yoke.float32), ("float16", yoke.float64), ("int32", yoke.float64), ("float64", yoke.float64)):
        got = yoke.bincount(x, yoke.tensor([1, 2, 3, 4], dtype=dtype), minlength=4)
        assert got.dtype == wanted and got.tolist() == [1.0, 4.0, 5.0, 0.0]


def test_histc_leaves_out_nan_and_what_is_outside():
    x = yoke.tensor([float("nan"), -1.0, 0.0, 0.5, 1.0, 2.0, 2.5])
    assert x.histc(2, 0, 2).tolist() == [2.0, 2.0]
    with pytest.raises(yoke.ValueError, match="histc: argument 'min' is nan"):
        x.histc(2)


# ---- Writes by an index ----------------------------------------------------------------------------------------------


def test_the_last_of_several_writes_counts():
    index, src = yoke.tensor([1, 1, 0, 1]), yoke.tensor([1.0, 2.0, 3.0, 4.0])
    assert yoke.zeros(2).scatter(0, index, src).tolist() == [3.0, 4.0]
    assert yoke.zeros(2).index_copy(0, index, src).tolist() == [3.0, 4.0]
    assert yoke.zeros(2).index_put([index], src).tolist() == [3.0, 4.0]


def test_a_refused_scatter_changes_nothing_and_a_device_leaves_out_what_is_wrong():
    x = yoke.zeros(3)
    with pytest.raises(yoke.IndexError):
        x.scatter_(0, yoke.tensor([0, 3]), 1.0)
        yoke.synchronize()
    assert x.tolist() == [1 if x.device.kind == "cuda" else 0, 0, 0]


def test_an_overwritten_value_has_no_gradient():
    x, src = yoke.zeros(2, 3, requires_grad=True), yoke.ones(2, 4, requires_grad=True)
    index = yoke.tensor([[0, 2, 0], [1, 1, 1]])
    (x.scatter(1, index, src) * yoke.tensor([[1.0, 2, 3], [4, 5, 6]])).sum().backward()
    assert x.grad.tolist() == [[0, 2, 0], [4, 0, 6]]
    assert src.grad.tolist() == [[0, 3, 1, 0], [0, 0, 5, 0]]


def test_a_scatter_reads_and_writes_strided_memory_of_every_width():
    rng = np.random.default_rng(7)
    for dtype in ("bool", "float16", "float32", "int64"):
        for axis in (0, 1, 2):
            whole, src = (rng.integers(0, 2, shape).astype(dtype) for shape in ((12, 5, 14), (6, 5, 9)))
            index = rng.integers(0, (6, 5, 7)[axis], (4, 3, 5))
            x = yoke.tensor(whole)[::2, :, ::2]
            wanted = np.array(whole)
            part = wanted[::2, :, ::2]
            for place in np.ndindex(*index.shape):
                to = list(place)
                to[axis] = index[place]
                part[tuple(to)] = src[place]
            x.scatter_(axis, yoke.tensor(index).int(), yoke.tensor(src))
            assert np.array_equal(np.asarray(x.cpu().tolist()), part), (dtype, axis)


def test_a_write_into_itself_reads_the_former_values():
    x = yoke.arange(5, dtype=yoke.float32)
    x.scatter_(0, yoke.tensor([1, 2, 3, 4]), x[:4])
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]
    x.index_copy_(0, yoke.tensor([0, 1]), x[3:])
    assert x.tolist() == [2.0, 3.0, 1.0, 2.0, 3.0]
    x.masked_fill_(x == 3, x[0])
    assert x.tolist() == [2.0, 2.0, 1.0, 2.0, 2.0]


def test_negative_indices_count_from_the_end_where_pytorch_lets_them():
    x = yoke.zeros(3)
    assert x.index_put([yoke.tensor([-1])], yoke.tensor(1.0)).tolist() == [0, 0, 1]
    with pytest.raises(yoke.IndexError, match=r"index_put: index\[0\] is -1; along an axis of length 3 use 0 to 2"):
        x.index_put([yoke.tensor([-1])], yoke.tensor(1.0), wraps=False)


def test_select_gives_a_view_without_the_axis():
    x = yoke.tensor(X)
    np.testing.assert_array_equal(to_numpy(x.select(0, 2)), X[2])
    np.testing.assert_array_equal(to_numpy(x.select(-1, -2)), X[:, -2])
    x.select(1, 0).fill_(7)
    assert x[:, 0].tolist() == [7.0] * 7
    with pytest.raises(yoke.IndexError, match=r"select\(\): argument 'index' is 7; it must be -7 to 6 for axis 0"):
        x.select(0, 7)


I, F, M = yoke.tensor([0, 1]), yoke.zeros(3, 4), yoke.tensor([True, False, True, False])


@pytest.mark.parametrize("call, kind, told", [
    (lambda: F.flatten(1, 0), yoke.ValueError, r"flatten: argument 'start_axis' is 1 and 'end_axis' 0, for shape \[3, 4\]"),
    (lambda: F.unflatten(1, (3, -1)), yoke.ValueError, r"unflatten: argument 'sizes' is \[3, -1\];.*multiply to 4.*axis 1"),
    (lambda: F.unflatten(1, (-1, -1)), yoke.ValueError, "with one -1 at most"),
    (lambda: F.movedim((0, 0), (0, 1)), yoke.ValueError, r"movedim: argument 'source' is \[0, 0\], which names axis 0 twice"),
    (lambda: F.movedim((0, 1), 0), yoke.ValueError, r"movedim: argument 'source' is \[0, 1\] and 'destination' \[0\]"),
    (lambda: F.narrow(0, 2, 2), yoke.ValueError, r"narrow: arguments 'start' and 'length' are 2 and 2;.*axis 0 of shape \[3, 4\]"),
    (lambda: yoke.zeros(3).diagonal(), yoke.ValueError, r"diagonal: argument 'x' has shape \[3\]; a diagonal needs two axes"),
    (lambda: F.diagonal(0, 1, -1), yoke.ValueError, "diagonal: arguments 'axis1' and 'axis2' are 1 and -1, the same axis"),
    (lambda: yoke.zeros(2, 2, 2).diag(), yoke.ValueError, r"diag: argument 'x' has shape \[2, 2, 2\]"),
    (lambda: F.unfold(0, 4, 1), yoke.ValueError, "unfold: argument 'size' is 4; it must be 0 to 3"),
    (lambda: F.unfold(0, 1, 0), yoke.ValueError, "unfold: argument 'step' is 0; it must be 1 or more"),
    (lambda: F.repeat_interleave(-1), yoke.ValueError, "repeat_interleave: argument 'repeats' is -1"),
    (lambda: F.repeat_interleave(1.5), yoke.ValueError, "repeat_interleave: argument 'repeats' is 1.5"),
    (lambda: F.repeat_interleave(I, 1), yoke.ValueError, r"'repeats' has shape \[2\]; .*the 4 parts' numbers"),
    (lambda: F.repeat_interleave(yoke.tensor([1, -2, 3]), 0), yoke.ValueError, "has the number -2"),
    (lambda: F.repeat_interleave(2, 0, output_size=7), yoke.ValueError, "'output_size' is 7, but the repeats sum to 6"),
    (lambda: F.tensor_split(), yoke.ValueError, "'sections' and 'indices' are both absent; give one"),
    (lambda: F.tensor_split(2, indices=[1]), yoke.ValueError, "'sections' and 'indices' are both given; give one"),
    (lambda: F.tensor_split(0), yoke.ValueError, "tensor_split: argument 'sections' is 0"),
    (lambda: yoke.meshgrid(F, F), yoke.ValueError, r"meshgrid: tensor 0 has shape \[3, 4\]; it must be a vector"),
    (lambda: yoke.meshgrid(I, yoke.ones(2)), yoke.TypeError, "meshgrid: tensor 1 is float32 and tensor 0 int64"),
    (lambda: yoke.meshgrid(I, indexing="yx"), yoke.ValueError, "meshgrid: argument 'indexing' is \"yx\""),
    (lambda: yoke.meshgrid([]), yoke.ValueError, "meshgrid: argument 'tensors' is an empty list"),
    (lambda: F.scatter(0, I, 1), yoke.ValueError, r"scatter: argument 'index' has shape \[2\] and 'x' \[3, 4\]"),
    (lambda: F.scatter(0, yoke.tensor([[1]]), yoke.ones(1, 1, dtype=yoke.int64)), yoke.TypeError, "'x' is float32 and 'src' is int64"),
    (lambda: F.scatter(0, yoke.tensor([[1]]), 1, reduce="max"), yoke.ValueError, "scatter: argument 'reduce' is \"max\""),
    (lambda: yoke.zeros(3, dtype=yoke.uint8).scatter(0, I, 300), yoke.ValueError, "scatter: .*300"),
    (lambda: F.index_add(0, I, yoke.ones(2, 3)), yoke.ValueError, r"index_add: argument 'source' has shape \[2, 3\];.*must have shape \[2, 4\]"),
    (lambda: F.index_add(0, I, yoke.ones(2, 4, dtype=yoke.float64)), yoke.TypeError, "'x' is float32 and 'source' is float64"),
    (lambda: yoke.zeros(3, dtype=yoke.int64).index_add(0, I, I, alpha=0.5), yoke.TypeError, "'alpha' is 0.5 and 'x' is int64"),
    (lambda: F.index_copy(0, yoke.zeros(1, 1, dtype=yoke.int64), F), yoke.ValueError, r"index_copy: argument 'index' has shape \[1, 1\]"),
    (lambda: F.index_fill(0, yoke.ones(1), 1), yoke.TypeError, "index_fill: argument 'index' is float32"),
    (lambda: F.index_fill(0, I, yoke.ones(2)), yoke.ValueError, r"index_fill: argument 'value' has shape \[2\]"),
    (lambda: yoke.tensor(1.0).index_fill(0, I, 1), yoke.ValueError, "index_fill: argument 'x' has no axes"),
    (lambda: F.masked_fill(M, yoke.ones(1)), yoke.ValueError, r"masked_fill: argument 'value' has shape \[1\]"),
    (lambda: I.masked_fill(M[:2], yoke.tensor(0.5)), yoke.TypeError, "masked_fill: argument 'value' is float32, which does not fit into int64"),
    (lambda: F.masked_scatter(M, yoke.ones(5)), yoke.ValueError, "'source' has 5 elements, but 'mask' is true for 6"),
    (lambda: F.masked_scatter(I, yoke.ones(9)), yoke.TypeError, "masked_scatter: argument 'mask' is int64"),
    (lambda: F.take_along_dim(I, 0), yoke.ValueError, r"take_along_dim: argument 'indices' has shape \[2\] and 'x' \[3, 4\]"),
    (lambda: F.index_put([I, I, I], yoke.ones(2)), yoke.ValueError, "index_put: 3 indices from axis 0 on do not fit"),
    (lambda: F.index_put([I], yoke.ones(3)), yoke.ValueError, r"index_put: the values have shape \[3\]"),
    (lambda: F.index_put([I, yoke.tensor([0, 1, 2])], yoke.ones(2)), yoke.ValueError, "index_put: .*broadcast"),
    (lambda: yoke.searchsorted(F, yoke.ones(2, 4)), yoke.ValueError, r"'sorted_sequence' has shape \[3, 4\] and 'x' \[2, 4\]"),
    (lambda: yoke.searchsorted(F, 1.0), yoke.ValueError, r"'sorted_sequence' has shape \[3, 4\] and 'x' \[\]"),
    (lambda: yoke.bucketize(F, F), yoke.ValueError, r"bucketize: argument 'boundaries' has shape \[3, 4\]"),
    (lambda: yoke.bincount(F), yoke.TypeError, "bincount: argument 'x' is float32; it takes integers"),
    (lambda: yoke.bincount(yoke.zeros(2, 2, dtype=yoke.int64)), yoke.ValueError, r"bincount: argument 'x' has shape \[2, 2\]"),
    (lambda: yoke.bincount(yoke.tensor([1, -1])), yoke.ValueError, "bincount: argument 'x' has the number -1"),
    (lambda: yoke.bincount(I, minlength=-1), yoke.ValueError, "bincount: argument 'minlength' is -1"),
    (lambda: yoke.bincount(I, yoke.ones(3)), yoke.ValueError, r"'weights' has shape \[3\] and 'x' \[2\]"),
    (lambda: F.histc(0), yoke.ValueError, "histc: argument 'bins' is 0"),
    (lambda: F.histc(2, 1, 0), yoke.ValueError, "histc: argument 'min' is 1 and 'max' 0"),
    (lambda: I.histc(2), yoke.TypeError, "histc: argument 'x' is int64"),
    (lambda: yoke.tensor(1).unique(axis=0), yoke.ValueError, "unique: argument 'x' has no axes"),
])
def test_a_refusal_names_call_argument_and_what_is_allowed(call, kind, told):
    with pytest.raises(kind, match=told):
        call()


# A device finds an index out of range after the call, and names the kernel.
@pytest.mark.parametrize("call, told", [
    (lambda: F.scatter(0, yoke.tensor([[3]]), 1), r"^scatter: index\[0, 0\] is 3; along an axis of length 3"),
    (lambda: F.scatter(0, yoke.tensor([[-1]]), 1), "^scatter: index.* is -1"),
    (lambda: F.scatter_(0, yoke.tensor([[3]]), 1, reduce="add"), "^scatter_: index.* is 3"),
    (lambda: F.scatter(0, yoke.tensor([[3]]), 2, reduce="multiply"), "^scatter: index.* is 3"),
    (lambda: F.scatter_(1, yoke.tensor([[0], [4]]), 1), r"^scatter_: index\[1, 0\] is 4; along an axis of length 4"),
    (lambda: yoke.zeros(0).scatter(0, I, 1), "scatter: axis 0 of argument 'x' is empty; for 2 indices"),
    (lambda: yoke.zeros(2, 0).scatter_add(1, yoke.tensor([[1]]), yoke.ones(1, 1)), "scatter_add: axis 1 of argument 'x' is empty"),
    (lambda: F.index_add(0, yoke.tensor([3]), yoke.ones(1, 4)), "^index_add: index.* is 3"),
    (lambda: F.index_add_(0, yoke.tensor([-1]), yoke.ones(1, 4)), "^index_add_: index.* is -1"),
])
def test_an_index_out_of_range_is_refused_by_the_call(call, told):
    with pytest.raises(yoke.IndexError, match=told):
        call()
