"""x[…] and x[…] = y against NumPy: hundreds of random keys, their values and gradients, and refused keys."""
import numpy as np
import pytest

import yoke

SEEDS = range(600)


def random_shape(rng):
    return tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))


def random_slice(rng, length):
    bound = lambda: None if rng.random() < 0.4 else int(rng.integers(-length - 1, length + 2))
    step = int(rng.choice([1, 1, 2, 3, -1, -2]))
    return slice(bound(), bound(), None if rng.random() < 0.4 else step)


def random_integers(rng, length, shape, as_what):
    index = rng.integers(-length, length, shape).astype(rng.choice([np.int64, np.int32]))
    return index.tolist() if as_what == "list" else index


def random_key(rng, shape):
    """A key of up to len(shape) items and some new axes, as NumPy takes it."""
    # The index tensors of a key broadcast: each tensor has this shape, or axes of length 1.
    common = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
    key, axis, stops = [], 0, int(rng.integers(1, len(shape) + 1))
    ellipsis_at = int(rng.integers(0, stops + 3))
    while axis < stops:
        if len(key) == ellipsis_at:
            key.append(...)
            axis = len(shape) - (stops - axis)
            stops = len(shape)
        kind = rng.choice(["int", "slice", "whole", "integers", "integers", "list", "mask", "none", "bool"],
                          p=[0.14, 0.14, 0.1, 0.2, 0.1, 0.08, 0.14, 0.06, 0.04])
        if kind == "int":
            key.append(int(rng.integers(-shape[axis], shape[axis])))
        elif kind == "slice":
            key.append(random_slice(rng, shape[axis]))
        elif kind == "whole":
            key.append(slice(None))
        elif kind in ("integers", "list"):
            own = tuple(n if rng.random() < 0.7 else 1 for n in common[int(rng.integers(0, len(common) + 1)):])
            key.append(random_integers(rng, shape[axis], own, kind))
        elif kind == "mask":
            # Masks broadcast with the other indices too: as many are true as the last common axis is long, or one.
            axes = int(rng.integers(1, min(3, len(shape) - axis) + 1))
            places = int(np.prod(shape[axis:axis + axes]))
            wanted = min(common[-1] if common else int(rng.integers(0, 4)), places)
            mask = np.zeros(places, bool)
            mask[rng.permutation(places)[:wanted if wanted == (common[-1] if common else wanted) else 1]] = True
            mask = mask.reshape(shape[axis:axis + axes])
            if common == ():
                common = (wanted,)
            key.append(mask.tolist() if rng.random() < 0.2 else mask)
            axis += axes - 1
            stops = max(stops, axis + 1)
        elif kind == "none":
            key.append(None)
            continue
        else:
            key.append(bool(rng.random() < 0.8))
            continue
        axis += 1
    return key[0] if len(key) == 1 and rng.random() < 0.5 else tuple(key)


def as_tensors(rng, key):
    """Returns the key with some of its arrays as tensors."""
    def convert(item):
        return yoke.tensor(item) if isinstance(item, np.ndarray) and rng.random() < 0.7 else item
    return tuple(map(convert, key)) if isinstance(key, tuple) else convert(key)


def numpys(x, key):
    """Returns NumPy's x[key], or its error."""
    try:
        return x[key]
    except (IndexError, ValueError) as error:
        return error


def drawn(seed):
    rng = np.random.default_rng(seed)
    shape = random_shape(rng)
    return rng, np.asarray(rng.standard_normal(shape)), random_key(rng, shape)


def test_the_keys_drawn_are_mostly_good_and_of_every_kind():
    kinds, good = set(), 0
    for seed in SEEDS:
        _, x, key = drawn(seed)
        good += not isinstance(numpys(x, key), Exception)
        kinds |= {type(item) for item in (key if isinstance(key, tuple) else (key,))}
    assert good > 0.7 * len(SEEDS)
    assert kinds >= {int, slice, type(None), type(...), np.ndarray, list, bool}


@pytest.mark.parametrize("seed", SEEDS)
def test_reading_gives_numpys_values_and_gradients(seed):
    rng, x, key = drawn(seed)
    want = numpys(x, key)
    tensor = yoke.tensor(x, requires_grad=True)
    if isinstance(want, Exception):
        with pytest.raises((yoke.IndexError, yoke.ValueError)):
            tensor[as_tensors(rng, key)]
        return
    got = tensor[as_tensors(rng, key)]
    assert tuple(got.shape) == np.shape(want), key
    np.testing.assert_array_equal(got.detach().numpy(), want)
    weights = rng.standard_normal(np.shape(want))
    (got * yoke.tensor(weights)).sum().backward()
    gradient = np.zeros_like(x)
    np.add.at(gradient, key, weights)
    np.testing.assert_allclose(tensor.grad.numpy(), gradient, atol=1e-14)


def random_value(rng, shape, key):
    """A number, or an array that broadcasts to the shape, some with more axes of length 1 in front."""
    if rng.random() < 0.25:
        return float(rng.standard_normal())
    own = tuple(n if rng.random() < 0.7 else 1 for n in shape[int(rng.integers(0, len(shape) + 1)):])
    only = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    is_mask = isinstance(only, (np.ndarray, list)) and np.asarray(only).dtype == bool  # NumPy takes a single axis there
    more = len(own) == len(shape) and not is_mask and rng.random() < 0.1
    return rng.standard_normal((1,) * more + own)


@pytest.mark.parametrize("seed", SEEDS)
def test_assignment_gives_numpys_values_and_the_last_of_several_stays(seed):
    rng, x, key = drawn(seed)
    target = numpys(x, key)
    if isinstance(target, Exception):
        with pytest.raises((yoke.IndexError, yoke.ValueError)):
            yoke.tensor(x)[as_tensors(rng, key)] = 1.0
        return
    value = random_value(rng, np.shape(target), key)
    tensor, want = yoke.tensor(x), x.copy()
    tensor[as_tensors(rng, key)] = yoke.tensor(value) if isinstance(value, np.ndarray) else value
    want[key] = value
    np.testing.assert_array_equal(tensor.numpy(), want)
    tensor[as_tensors(rng, key)] += 1.0
    want[key] += 1.0
    np.testing.assert_array_equal(tensor.numpy(), want)


def needs_no_view(key):
    items = key if isinstance(key, tuple) else (key,)
    advanced = [isinstance(i, (np.ndarray, list)) or type(i) is int for i in items]
    apart = np.diff(np.flatnonzero(advanced)).max(initial=1) > 1
    plain = all(type(i) is not bool and i is not None and (not isinstance(i, slice) or i == slice(None)) for i in items)
    return plain and not apart and any(isinstance(i, (np.ndarray, list)) for i in items)


@pytest.mark.parametrize("seed", [s for s in SEEDS if needs_no_view(drawn(s)[2])])
def test_recorded_assignment_has_numpys_values_and_gradients(seed):
    rng, x, key = drawn(seed)
    target = numpys(x, key)
    if isinstance(target, Exception):
        return
    value, weights = random_value(rng, np.shape(target), key), rng.standard_normal(x.shape)
    base = yoke.tensor(x, requires_grad=True)
    source = yoke.tensor(value, dtype=yoke.float64, requires_grad=True)
    tensor = base * 1.0
    tensor[as_tensors(rng, key)] = source if isinstance(value, np.ndarray) else value
    (tensor * yoke.tensor(weights)).sum().backward()
    stays = weights.copy()
    stays[key] = 0
    np.testing.assert_array_equal(base.grad.numpy(), stays)
    if not isinstance(value, np.ndarray):
        return
    # Finds the element of the values in each written place: repeated places hold the last element.
    numbers = np.arange(value.size, dtype=np.int64).reshape(value.shape)
    writer = np.full(x.shape, -1)
    writer[key] = numbers
    wanted = np.zeros(value.size)
    np.add.at(wanted, writer[writer >= 0], weights[writer >= 0])
    np.testing.assert_allclose(source.grad.numpy(), wanted.reshape(value.shape), atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool"])
def test_every_dtype_is_read_and_written(dtype):
    x = yoke.tensor(np.arange(24).reshape(4, 6) % 2 if dtype == "bool" else np.arange(24).reshape(4, 6), dtype=getattr(yoke, dtype))
    index, mask = yoke.tensor([3, -1, 0]), yoke.tensor(np.arange(24).reshape(4, 6) % 3 == 0)
    as_list = np.array(x.tolist())
    assert x[index].tolist() == as_list[[3, -1, 0]].tolist() and x[index].dtype == x.dtype
    assert x[mask].tolist() == as_list[np.arange(24).reshape(4, 6) % 3 == 0].tolist()
    x[:, index] = x[:, yoke.tensor([0, 1, 2])]
    as_list[:, [3, -1, 0]] = as_list[:, [0, 1, 2]]
    assert x.tolist() == as_list.tolist()


def test_gradients_of_halves_are_summed_in_float32():
    x = yoke.tensor(np.ones(2), dtype=yoke.bfloat16, requires_grad=True)
    index = yoke.tensor(np.zeros(1000, np.int64))
    x[index].sum().backward()
    assert x.grad.tolist() == [1000.0, 0.0]  # in bfloat16 alone the sum would stay at 256


def test_large_indices_give_the_same_bits_with_any_number_of_threads():
    rng = np.random.default_rng(3)
    x, index = rng.standard_normal((300, 40)).astype(np.float32), rng.integers(-300, 300, 5000)
    weights = rng.standard_normal((5000, 40)).astype(np.float32)
    before, seen = yoke.get_num_threads(), set()
    try:
        for threads in (1, 2, 3):
            yoke.set_num_threads(threads)
            leaf = yoke.tensor(x, requires_grad=True)
            (leaf[index] * yoke.tensor(weights)).sum().backward()
            written = yoke.tensor(x)
            written[yoke.tensor(index)] = yoke.tensor(weights)
            want = x.copy()
            want[index] = weights
            np.testing.assert_array_equal(written.numpy(), want)
            seen.add(leaf.grad.numpy().tobytes())
    finally:
        yoke.set_num_threads(before)
    assert len(seen) == 1


def test_what_is_named_out_of_range_is_an_index_error_that_says_where():
    with pytest.raises(yoke.IndexError, match=r"index 4 is out of range for axis 0 .*; give -4 to 3$"):
        yoke.zeros(4, 10)[4]
    with pytest.raises(yoke.IndexError, match="the axis has no elements$"):
        yoke.zeros(0, 10)[0]
    x = yoke.zeros((3, 4))
    with pytest.raises(yoke.IndexError, match=r"index: the index\[1\] is 4; along an axis of length 4 use -4 to 3"):
        x[:, [0, 4]]
    with pytest.raises(yoke.IndexError, match=r"the index\[1, 0\] is -4; along an axis of length 3 use -3 to 2"):
        x[yoke.tensor([[0, 1], [-4, 2]])] = 1.0
    if yoke.current_device().kind == "cpu":  # a device finds the index during the write, and leaves out that row alone
        assert x.sum().item() == 0
    with pytest.raises(yoke.IndexError, match=r"mask of shape \[4\] .* shape \[3, 4\] .*axis 0 has 3 elements, and the mask 4"):
        x[yoke.tensor([True, False, True, True])]
    with pytest.raises(yoke.IndexError, match=r"indices have shapes \[2\] and \[3\]; they must broadcast"):
        x[[0, 1], [0, 1, 2]]
    with pytest.raises(yoke.IndexError, match="3 indices are given, but the tensor"):
        x[[0], [1], [2]]
    with pytest.raises(yoke.IndexError, match="the index 5 is out of range for an axis of length 3"):
        yoke.zeros((3, 0))[[5]]


def test_what_is_no_index_is_a_type_error_that_says_what_is():
    x = yoke.zeros((3, 4))
    with pytest.raises(yoke.TypeError, match="item 0 is a tensor of float32; index with integers or a bool mask"):
        x[yoke.tensor([0.0])]
    with pytest.raises(yoke.TypeError, match="__getitem__.*index.*not a str"):
        x["a"]
    with pytest.raises(yoke.TypeError, match="not a float"):
        x[1.0]
    with pytest.raises(yoke.TypeError, match="item 0 is a tensor of float64"):
        x[np.array([0.5])]
    closed = yoke.tensor([0])
    closed.close()
    with pytest.raises(yoke.ClosedError):
        x[closed]


def test_values_that_do_not_fit_are_refused_with_both_shapes():
    x = yoke.zeros((3, 4))
    with pytest.raises(yoke.ValueError, match=r"the values have shape \[3\]; they must broadcast to \[2, 4\]"):
        x[[0, 1]] = yoke.ones((3,))
    with pytest.raises(yoke.ValueError, match=r"shape \[3\];.*must broadcast to shape \[4\]"):
        x[0] = yoke.ones((3,))


def test_leaves_refuse_recorded_assignment_and_no_grad_allows_it():
    leaf = yoke.zeros((3, 4), requires_grad=True)
    with pytest.raises(yoke.StateError, match="leaf that requires grad"):
        leaf[[0, 1]] = 1.0
    with pytest.raises(yoke.StateError, match="leaf that requires grad"):
        leaf[yoke.tensor([True, False, True])] = 1.0
    with pytest.raises(yoke.StateError, match="view of a leaf that requires grad"):
        leaf[1:][[0]] = 1.0
    with pytest.raises(yoke.StateError, match="view of a leaf that requires grad"):
        leaf[1] = 1.0
    with yoke.no_grad():
        leaf[[0, 1]] = 1.0
    assert leaf.sum().item() == 8


def test_an_empty_list_and_numpys_scalars_are_indices():
    x = yoke.tensor(np.arange(6.0).reshape(2, 3))
    assert x[[]].shape == (0, 3) and x[:, []].shape == (2, 0)
    assert x[np.int64(1), np.int32(2)].item() == 5.0
    assert x[np.bool_(True)].shape == (1, 2, 3) and x[np.array(1)].tolist() == [3.0, 4.0, 5.0]
    assert x[yoke.tensor(1)].tolist() == [3.0, 4.0, 5.0] and x[np.array([0, 1], np.uint8)].shape == (2, 3)


def test_a_tensor_may_index_and_be_assigned_to_itself():
    x = yoke.tensor(np.array([2, 0, 1]))
    x[x] = x
    want = np.array([2, 0, 1])
    want[want.copy()] = want.copy()
    assert x.tolist() == want.tolist()
    y = yoke.tensor(np.arange(5.0))
    y[[1, 2, 3, 4]] = y[:4]
    assert y.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]
