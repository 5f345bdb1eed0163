"""Draws by probabilities and weights, random numbers into tensors, and generators as arguments."""
import hashlib
import threading

import numpy as np
import pytest

import instruction_sets
import yoke
from op_table import ALL, FLOATS, LAYOUTS, dtype_of, name_of, to_numpy, to_yoke

WEIGHTS = np.array([[0.1, 0.0, 0.4, 0.5], [3.0, 1.0, 0.0, 0.0], [0.0, 2.0, 2.0, 4.0]])


def refused(kind, *words):
    return pytest.raises(kind, match="".join(f"(?=.*{w})" for w in words))


def draw(x, method, *args, **named):
    yoke.manual_seed(2024)
    return getattr(x, method)(*args, **named)


def empty(count=100_003, dtype="float32"):
    return yoke.zeros(count, dtype=dtype_of(dtype))


GOLDEN = {
    # sha256 of the result after manual_seed(2024): the same on every machine, compiler, instruction set and device.
    "uniform_ float32": lambda: empty().uniform_(-3, 5),
    "normal_ float64": lambda: empty(dtype="float64").normal_(2, 0.5),
    "exponential_ float32": lambda: empty().exponential_(0.7),
    "exponential_ float64": lambda: empty(dtype="float64").exponential_(),
    "bernoulli_": lambda: empty().bernoulli_(0.3),
    "bernoulli_ int64": lambda: empty(dtype="int64").bernoulli_(0.3),
    "bernoulli": lambda: yoke.bernoulli(yoke.linspace(0, 1, 100_003)),
    "random_ int8": lambda: empty(dtype="int8").random_(),
    "multinomial": lambda: yoke.multinomial(yoke.arange(1000.0).expand(30, 1000), 200, True),
    "multinomial without": lambda: yoke.multinomial(yoke.arange(1000.0).expand(30, 1000), 200),
}
HASHES = {
    "uniform_ float32": "7bba7d7d3f5700a7",
    "normal_ float64": "a980a45f2bbdaa0f",
    "exponential_ float32": "9dd5740fc6e00c31",
    "exponential_ float64": "6826e65a3eda369d",
    "bernoulli_": "c37a4600d32f9df8",
    "bernoulli_ int64": "0de98166c933a048",
    "bernoulli": "071aa1e2c51b64b7",
    "random_ int8": "55f6d2ebd0e13df9",
    "multinomial": "954ece3ae72fd7cc",
    "multinomial without": "bc9afc0a7c162173",
}


def hashes():
    told = {}
    for name, make in GOLDEN.items():
        yoke.manual_seed(2024)
        told[name] = hashlib.sha256(to_numpy(make()).tobytes()).hexdigest()[:16]
    return told


def test_the_bits_of_a_seed_never_change():
    assert hashes() == HASHES


@pytest.mark.parametrize("isa", instruction_sets.NAMES)
def test_the_bits_of_a_seed_are_the_same_on_every_instruction_set(isa):
    told = instruction_sets.run(isa, "-c", "import test_ops_draws as t\nfor name, each in t.hashes().items():\n    print(name, each)\n")
    assert dict(line.rsplit(None, 1) for line in told.splitlines()) == HASHES


def test_the_number_of_threads_does_not_change_a_bit():
    before, told = yoke.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            yoke.set_num_threads(threads)
            told.append(hashes())
    finally:
        yoke.set_num_threads(before)
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("layout", [n for n in LAYOUTS if n != "contiguous"])
@pytest.mark.parametrize("method, args", [("uniform_", (1, 2)), ("normal_", ()), ("bernoulli_", (0.5,)), ("random_", (9,)), ("exponential_", ())])
def test_a_draw_into_a_tensor_follows_the_shape_and_not_the_strides(method, args, layout):
    x = to_yoke(np.zeros((7, 5, 4), np.float32))
    want = to_numpy(draw(x, method, *args))
    y = LAYOUTS[layout](to_yoke(np.zeros((7, 5, 4), np.float32)))
    assert draw(y, method, *args) is y
    np.testing.assert_array_equal(to_numpy(y), want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_in_a_tensor_have_the_moments_of_their_distribution(dtype):
    def moments(method, *args):
        x = to_numpy(draw(empty(200_000, dtype), method, *args)).astype(np.float64)
        return x.mean(), x.std(), x.min(), x.max()
    mean, std, low, high = moments("uniform_", -3, 5)
    assert abs(mean - 1) < 0.03 and abs(std - 8 / 12**0.5) < 0.02 and -3 <= low < -2.9 and 4.9 < high < 5
    mean, std, *_ = moments("normal_", 2, 0.5)
    assert abs(mean - 2) < 0.01 and abs(std - 0.5) < 0.01
    mean, std, low, high = moments("exponential_", 4)
    assert abs(mean - 0.25) < 0.01 and abs(std - 0.25) < 0.01 and low >= 0 and 2 < high < 8
    for p in (0.0, 0.25, 1.0):
        mean, _, low, high = moments("bernoulli_", p)
        assert abs(mean - p) < 0.005 and {low, high} <= {0, 1}


def test_rand_and_randn_are_uniform_and_normal_of_their_standard():
    for made, method in ((yoke.rand, "uniform_"), (yoke.randn, "normal_")):
        for dtype in FLOATS:
            yoke.manual_seed(2024)
            np.testing.assert_array_equal(to_numpy(made(1001, dtype=dtype_of(dtype))), to_numpy(draw(empty(1001, dtype), method)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("low, high", [(0.0, 0.1), (-0.1, 0.1), (3, 3), (1, 1 + 2.0**-7), (-1e30, 1e30)])
def test_uniform_numbers_stay_below_their_upper_end(dtype, low, high):
    if dtype == "float16" and high > 1e4:
        pytest.skip("beyond float16")
    x = to_numpy(draw(empty(100_000, dtype), "uniform_", low, high)).astype(np.float64)
    ends = to_numpy(to_yoke(np.array([low, high]), dtype)).astype(np.float64)
    assert x.min() >= ends[0] and (x.max() < high or low == high)


@pytest.mark.parametrize("dtype", ALL)
def test_random_integers_cover_what_a_dtype_holds_or_what_is_asked_for(dtype):
    x = draw(empty(50_000, dtype), "random_")
    most = {"bool": 1, "float64": 2**53, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8}.get(dtype) or np.iinfo(dtype).max
    got = to_numpy(x).astype(np.float64)
    assert got.min() >= 0 and got.max() <= most and (dtype == "bool" or got.max() > 0.99 * most)
    assert name_of(x.dtype) == dtype
    if dtype != "bool":
        assert set(to_numpy(draw(empty(1000, dtype), "random_", 5)).tolist()) == {0, 1, 2, 3, 4}
        assert set(to_numpy(draw(empty(1000, dtype), "random_", 3, 6)).tolist()) == {3, 4, 5}


def test_bernoulli_is_one_with_each_places_probability():
    p = yoke.tensor([0.0, 0.25, 1.0]).expand(100_000, 3)
    yoke.manual_seed(1)
    for x in (yoke.bernoulli(p), yoke.empty(100_000, 3).bernoulli_(yoke.tensor([0.0, 0.25, 1.0])), yoke.empty(100_000, 3).bernoulli_(p.to("float64"))):
        np.testing.assert_allclose(to_numpy(x).mean(0), [0, 0.25, 1], atol=0.006)
        assert set(to_numpy(x).ravel().tolist()) == {0, 1} and not x.requires_grad
    assert abs(to_numpy(yoke.bernoulli(yoke.zeros(100_000, dtype=yoke.int64), 0.5)).mean() - 0.5) < 0.006
    assert yoke.bernoulli(yoke.zeros(2, 0)).shape == (2, 0)


def test_normal_takes_tensors_or_numbers():
    yoke.manual_seed(3)
    mean, std = yoke.tensor([0.0, 10.0, -5.0]), yoke.tensor([[1.0], [0.0]])
    x = to_numpy(yoke.normal(mean.expand(20_000, 1, 3), std))
    assert x.shape == (20_000, 2, 3)
    np.testing.assert_allclose(x.mean(0), [[0, 10, -5], [0, 10, -5]], atol=0.05)
    np.testing.assert_allclose(x.std(0), [[1, 1, 1], [0, 0, 0]], atol=0.03)
    assert yoke.normal(mean).shape == (3,) and yoke.normal(2.0, yoke.ones(4)).shape == (4,)
    assert name_of(yoke.normal(mean.to("bfloat16"), 2).dtype) == "bfloat16"
    assert name_of(yoke.normal(mean, std.to("float64")).dtype) == "float64"
    y = yoke.normal(1, 0.5, (30_000,), dtype=yoke.float64)
    assert abs(y.mean().item() - 1) < 0.02 and name_of(y.dtype) == "float64"


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial_draws_by_the_weights_of_each_row(dtype, replacement):
    yoke.manual_seed(4)
    weights = to_yoke(np.tile(WEIGHTS, (8000, 1, 1)).reshape(-1, 4), dtype)
    got = yoke.multinomial(weights, 2, replacement)
    assert got.shape == (24_000, 2) and got.dtype == yoke.int64
    picked = to_numpy(got).reshape(8000, 3, 2)
    shares = WEIGHTS / WEIGHTS.sum(1, keepdims=True)
    first = np.stack([(picked[:, :, 0] == c).mean(0) for c in range(4)], 1)
    np.testing.assert_allclose(first, shares, atol=0.025)
    if replacement:
        second = np.stack([(picked[:, :, 1] == c).mean(0) for c in range(4)], 1)
        np.testing.assert_allclose(second, shares, atol=0.025)
    else:
        assert (picked[:, :, 0] != picked[:, :, 1]).all()


@pytest.mark.parametrize("count", [1, 3])
def test_a_weight_of_zero_is_never_drawn(count):
    weights = yoke.zeros(2000, 1003)
    weights[:, ::100] = yoke.tensor(1e-38)
    weights[:, 500] = 1e38
    weights[::2, 500] = 0
    for replacement in (True, False):
        got = to_numpy(yoke.multinomial(weights, count, replacement))
        assert (got % 100 == 0).all()
    whole = yoke.multinomial(yoke.tensor([0.0, 5.0, 0.0, 1.0]), 2)
    assert sorted(whole.tolist()) == [1, 3]


def test_a_draw_of_all_is_a_permutation_and_a_row_has_numbers_of_its_own():
    x = yoke.multinomial(yoke.ones(50, 7), 7)
    assert (np.sort(to_numpy(x), 1) == np.arange(7)).all() and len({tuple(r) for r in x.tolist()}) > 40
    assert yoke.multinomial(yoke.ones(3), 1).shape == (1,) and yoke.multinomial(yoke.ones(0, 3), 2).shape == (0, 2)
    assert yoke.multinomial(yoke.ones(3), 5000, True).shape == (5000,)


# ---- generators ------------------------------------------------------------------------------------------------------

DRAWS = {
    "rand": lambda g: yoke.rand(5, generator=g), "randn": lambda g: yoke.randn(5, generator=g), "randint": lambda g: yoke.randint(0, 99, (5,), generator=g),
    "randperm": lambda g: yoke.randperm(5, generator=g), "rand_like": lambda g: yoke.rand_like(yoke.zeros(5), generator=g),
    "randn_like": lambda g: yoke.randn_like(yoke.zeros(5), generator=g), "randint_like": lambda g: yoke.randint_like(yoke.zeros(5), 0, 9, generator=g),
    "bernoulli": lambda g: yoke.bernoulli(yoke.full((50,), 0.5), generator=g), "normal": lambda g: yoke.normal(0, 1, (5,), generator=g),
    "normal of tensors": lambda g: yoke.normal(yoke.zeros(5), generator=g), "multinomial": lambda g: yoke.multinomial(yoke.ones(40), 4, generator=g),
    "multinomial with": lambda g: yoke.multinomial(yoke.ones(40), 4, True, generator=g), "normal_": lambda g: yoke.zeros(5).normal_(generator=g),
    "uniform_": lambda g: yoke.zeros(5).uniform_(generator=g), "bernoulli_": lambda g: yoke.zeros(50).bernoulli_(generator=g),
    "bernoulli_ of tensor": lambda g: yoke.zeros(50).bernoulli_(yoke.full((50,), 0.5), generator=g),
    "random_": lambda g: yoke.zeros(5).random_(generator=g), "exponential_": lambda g: yoke.zeros(5).exponential_(generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_an_op_with_a_generator_draws_there_and_leaves_the_threads_stream_alone(name):
    op, g = DRAWS[name], yoke.Generator(seed=7)
    yoke.manual_seed(7)
    want = [op(None).tolist() for _ in range(2)]
    before = yoke.get_rng_state().tolist()
    assert [op(g).tolist() for _ in range(2)] == want and want[0] != want[1]
    assert yoke.get_rng_state().tolist() == before
    state = g.get_state()
    third = op(g).tolist()
    assert op(g.set_state(state)).tolist() == third
    with g.manual_seed(7):  # in its block the thread draws from g
        assert [op(None).tolist(), op(g).tolist()] == want
    assert op(g).tolist() == third


def test_what_is_no_generator_is_refused_with_what_is_taken():
    for wrong in (7, "g", object()):
        with refused(yoke.TypeError, "rand", "'generator'", "yoke.Generator"):
            yoke.rand(3, generator=wrong)


def test_threads_share_a_generator_without_drawing_twice():
    g, drawn = yoke.Generator(seed=1), []

    def work():
        for _ in range(50):
            drawn.append(yoke.rand(4, generator=g).tolist())
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(each) for each in drawn}) == 200


# ---- gradients and refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["normal_", "uniform_", "bernoulli_", "random_", "exponential_"])
def test_a_tensor_that_is_drawn_anew_has_no_gradient_from_its_old_values(method):
    x = yoke.ones(4, requires_grad=True)
    with refused(yoke.StateError, "leaf that requires grad"):
        getattr(x, method)()
    y = x * 2
    getattr(y, method)()
    (y * 3).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0]
    with yoke.no_grad():
        assert getattr(x, method)() is x and x.requires_grad


REFUSED = {
    "negative weight": (lambda: yoke.multinomial(yoke.tensor([0.5, -1.0]), 1), ["multinomial", "weight 1 of row 0"]),
    "nan weight": (lambda: yoke.multinomial(yoke.tensor([[1.0, 1], [0.5, float("nan")]]), 1, True), ["multinomial", "weight 1 of row 1"]),
    "infinite weight": (lambda: yoke.multinomial(yoke.tensor([0.5, float("inf")]), 3, True), ["multinomial", "weight 1 of row 0", "finite"]),
    "no weight": (lambda: yoke.multinomial(yoke.zeros(3), 1), ["multinomial", "row 0", "0 weights above 0", "needs 1"]),
    "no weight with": (lambda: yoke.multinomial(yoke.zeros(2, 3), 4, True), ["multinomial", "row 0", "0 weights above 0"]),
    "few weights": (lambda: yoke.multinomial(yoke.tensor([1.0, 0, 0]), 2), ["multinomial", "1 weights above 0", "needs 2"]),
    "too many": (lambda: yoke.multinomial(yoke.ones(3), 4), ["multinomial", "'num_samples' is 4", "3 weights"]),
    "none": (lambda: yoke.multinomial(yoke.ones(3), 0), ["multinomial", "'num_samples' is 0", "at least 1"]),
    "no classes": (lambda: yoke.multinomial(yoke.ones(2, 0), 1), ["multinomial", r"\[2, 0\]"]),
    "axes": (lambda: yoke.multinomial(yoke.ones(2, 2, 2), 1), ["multinomial", r"\[2, 2, 2\]", r"\[N, C\]"]),
    "probability": (lambda: yoke.bernoulli(yoke.tensor([0.5, 1.5])), ["bernoulli", "element 1", "between 0 and 1"]),
    "nan probability": (lambda: yoke.bernoulli(yoke.tensor([float("nan")])), ["bernoulli", "element 0", "between 0 and 1"]),
    "p": (lambda: yoke.bernoulli(yoke.ones(2), 1.5), ["bernoulli", "'p' is 1.5"]),
    "p in place": (lambda: yoke.ones(2).bernoulli_(-0.5), ["bernoulli_", "'p' is -0.5"]),
    "shape of p": (lambda: yoke.ones(2).bernoulli_(yoke.ones(3)), ["bernoulli_", "'p' has shape", r"\[2\]"]),
    "std": (lambda: yoke.ones(2).normal_(0, -1), ["normal_", "'std' is -1"]),
    "std of normal": (lambda: yoke.normal(yoke.ones(2), -1), ["normal", "'std' is -1"]),
    "no shape": (lambda: yoke.normal(0, 1), ["normal", "'shape'"]),
    "shape beside a tensor": (lambda: yoke.normal(yoke.ones(2), 1, (2,)), ["normal", "'shape'", "beside a tensor"]),
    "ends": (lambda: yoke.ones(2).uniform_(2, 1), ["uniform_", "'low' is 2", "'high' 1"]),
    "infinite end": (lambda: yoke.ones(2).uniform_(0, float("inf")), ["uniform_", "finite"]),
    "rate": (lambda: yoke.ones(2).exponential_(0), ["exponential_", "'lambd' is 0"]),
    "range": (lambda: yoke.ones(2).random_(5, 5), ["random_", "'low' is 5", "'high' 5"]),
    "range of a dtype": (lambda: yoke.ones(2, dtype=yoke.int8).random_(500), ["random_", "int8", "127"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_name_the_op_the_argument_and_the_values(name):
    call, words = REFUSED[name]
    with refused(yoke.ValueError, *words):
        call()
        yoke.synchronize()


def test_bad_weights_and_probabilities_of_the_host_are_named_by_value():
    for value in (-1.0, float("nan"), float("inf")):
        with refused(yoke.ValueError, f"weight 1 of row 0 of x is {value:g}", "finite, and 0 or more"):
            yoke.multinomial(yoke.tensor([0.5, value], device="cpu"), 1)
    with refused(yoke.ValueError, "element 1 of x is 1.5"):
        yoke.bernoulli(yoke.tensor([0.5, 1.5], device="cpu"))


@pytest.mark.parametrize("call", [lambda x: yoke.multinomial(x, 1), lambda x: x.normal_(), lambda x: x.uniform_(), lambda x: x.exponential_(),
                                  lambda x: yoke.bernoulli(x)])
def test_integers_are_a_type_error(call):
    with refused(yoke.TypeError, "int64"):
        call(yoke.ones(3, dtype=yoke.int64))
