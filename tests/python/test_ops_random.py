"""Random ops: the bits of Philox, moments, ranges, seeds, streams of threads, and dropout's masks."""
import hashlib
import threading

import numpy as np
import pytest

import instruction_sets
import yoke
from op_table import FLOATS, LAYOUTS, dtype_of, name_of, to_numpy, to_yoke


def philox(seed, counter):
    """Returns a block of four words of Philox 4x32-10 (Salmon, Moraes, Dror, Shaw; SC11)."""
    c, k = [counter & 0xFFFFFFFF, counter >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_the_reference_above_has_the_known_answers_of_the_paper():
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 12345])
def test_uniform_numbers_are_philoxs(seed):
    yoke.manual_seed(seed)
    words = [w for block in range(3) for w in philox(seed, block)]
    assert to_numpy(yoke.rand(10)).tolist() == [(w >> 8) * 2.0**-24 for w in words[:10]]
    yoke.manual_seed(seed)
    pairs = [(words[i + 1] << 32 | words[i]) >> 11 for i in range(0, 12, 2)]
    assert to_numpy(yoke.rand(6, dtype=yoke.float64)).tolist() == [p * 2.0**-53 for p in pairs]


def test_normal_numbers_are_box_mullers_of_uniform_ones():
    yoke.manual_seed(3)
    got = to_numpy(yoke.randn(1000, dtype=yoke.float64))
    assert np.isfinite(got).all() and len(np.unique(got)) == 1000


GOLDEN = {
    # sha256 of 100,003 elements after manual_seed(2024): the same on every machine, compiler and instruction set.
    "rand float32": lambda: yoke.rand(100_003),
    "rand float64": lambda: yoke.rand(100_003, dtype=yoke.float64),
    "randn float32": lambda: yoke.randn(100_003),
    "randn float64": lambda: yoke.randn(100_003, dtype=yoke.float64),
    "randint int64": lambda: yoke.randint(-50, 1000, 100_003),
    "randperm": lambda: yoke.randperm(100_003),
    "dropout": lambda: yoke.dropout(yoke.ones(100_003), 0.25),
}
HASHES = {
    "rand float32": "74061249d94b930f",
    "rand float64": "de5ffb3568f2b2c5",
    "randn float32": "a5153140ad3031ae",
    "randn float64": "86bc653cae83af33",
    "randint int64": "8409d9aaadd5789e",
    "randperm": "039fe8a0fafcadca",
    "dropout": "5bdd17442c4cc2a6",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_bits_of_a_seed_never_change(name):
    yoke.manual_seed(2024)
    assert hashlib.sha256(to_numpy(GOLDEN[name]()).tobytes()).hexdigest()[:16] == HASHES[name]


@pytest.mark.parametrize("isa", instruction_sets.NAMES)
def test_the_bits_of_a_seed_are_the_same_on_every_instruction_set(isa):
    # A build by another compiler holds itself to the same hashes.
    script = ("import yoke, test_ops_random as t\n"
              "for name, draw in t.GOLDEN.items():\n"
              "    yoke.manual_seed(2024)\n"
              "    print(name, t.hashlib.sha256(t.to_numpy(draw()).tobytes()).hexdigest()[:16])\n")
    told = instruction_sets.run(isa, "-c", script)
    assert dict(line.rsplit(None, 1) for line in told.splitlines()) == HASHES


@pytest.mark.parametrize("name", GOLDEN)
def test_the_number_of_threads_does_not_change_a_bit(name):
    before, results = yoke.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            yoke.set_num_threads(threads)
            yoke.manual_seed(5)
            results.append(to_numpy(GOLDEN[name]()).tobytes())
    finally:
        yoke.set_num_threads(before)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_numbers_fill_their_range_and_never_reach_one(dtype):
    yoke.manual_seed(1)
    x = to_numpy(yoke.rand(200_000, dtype=dtype_of(dtype))).astype(np.float64)
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.005 and abs(x.var() - 1 / 12) < 0.002
    counts = np.histogram(x, 16, (0, 1))[0]
    assert np.abs(counts - 12_500).max() < 700  # over six standard deviations


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_numbers_have_the_moments_and_tails_of_the_normal(dtype):
    yoke.manual_seed(1)
    x = to_numpy(yoke.randn(400_000, dtype=dtype_of(dtype))).astype(np.float64)
    assert np.isfinite(x).all()
    moments = [x.mean(), x.var(), (x**3).mean(), (x**4).mean()]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.05)
    assert abs((np.abs(x) > 2).mean() - 0.0455) < 0.002 and 4 < np.abs(x).max() < 7
    # No correlation between neighbours, which Box and Muller make in pairs.
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.01


@pytest.mark.parametrize("low, high", [(0, 1), (0, 2), (-5, 5), (0, 3), (-128, 128), (2**40, 2**40 + 7), (-(2**63), 2**63 - 1)])
def test_integers_cover_their_range_evenly(low, high):
    yoke.manual_seed(4)
    x = to_numpy(yoke.randint(low, high, 60_000))
    assert x.min() >= low and x.max() < high
    if high - low <= 256:
        counts = np.unique(x, return_counts=True)[1]
        expected = 60_000 / (high - low)
        assert len(counts) == high - low and np.abs(counts - expected).max() < 7 * np.sqrt(expected)


def test_integers_of_every_dtype_that_can_hold_the_range():
    for dtype, low, high in (("int64", 0, 10), ("int32", -7, 7), ("int8", -128, 128), ("uint8", 0, 256), ("bool", 0, 2),
                             ("float32", 0, 10), ("bfloat16", 0, 10)):
        x = yoke.randint(low, high, 5000, dtype=dtype_of(dtype))
        assert name_of(x.dtype) == dtype and {int(v) for v in np.unique(to_numpy(x))} == set(range(low, high))


@pytest.mark.parametrize("dtype, low, high", [("int8", 0, 129), ("int8", -129, 0), ("uint8", -1, 5), ("int32", 0, 2**31 + 1),
                                              ("bool", 0, 3), ("bfloat16", 0, 258), ("bfloat16", -257, 0), ("bfloat16", 257, 400),
                                              ("float16", 0, 2050), ("float16", 2049, 2060), ("float16", 0, 70000), ("float16", -70000, 0),
                                              ("float32", 2**24, 2**24 + 2), ("float32", -2**24 - 1, 0), ("float64", 0, 2**53 + 2)])
def test_a_range_that_the_dtype_cannot_hold_is_refused(dtype, low, high):
    with pytest.raises(yoke.ValueError, match=rf"randint: \[{low}, {high}\) does not fit into {dtype}"):
        yoke.randint(low, high, 3, dtype=dtype_of(dtype))
    with pytest.raises(yoke.ValueError, match=rf"randint_like: \[{low}, {high}\) does not fit into {dtype}, which holds all whole"):
        yoke.randint_like(yoke.zeros(3, dtype=dtype_of(dtype)), low, high)


@pytest.mark.parametrize("dtype, most", [("bfloat16", 2**8), ("float16", 2**11), ("float32", 2**24), ("float64", 2**53)])
def test_the_largest_whole_numbers_of_a_float_are_drawn_as_they_are(dtype, most):
    for low, high in ((most - 3, most + 1), (-most, -most + 4), (-most, most + 1)):
        yoke.manual_seed(2)
        x = to_numpy(yoke.randint(low, high, 20_000, dtype=dtype_of(dtype)))
        yoke.manual_seed(2)
        np.testing.assert_array_equal(x, to_numpy(yoke.randint(low, high, 20_000)))  # numbers equal to int64's
        assert int(x.min()) >= low and int(x.max()) < high and (high - low > 4 or len(np.unique(x)) == 4)


def test_an_empty_range_and_a_wrong_dtype_are_refused():
    for low, high in ((3, 3), (4, 3)):
        with pytest.raises(yoke.ValueError, match=f"'low' is {low} and 'high' {high}"):
            yoke.randint(low, high, 3)
    for make in (yoke.rand, yoke.randn):
        with pytest.raises(yoke.TypeError, match="takes a floating dtype"):
            make(3, dtype=yoke.int64)
    with pytest.raises(yoke.TypeError, match="randperm"):
        yoke.randperm(5, dtype=yoke.float32)


def test_a_permutation_has_every_number_once_and_every_place_is_likely():
    for n in (0, 1, 2, 100, 70_001):
        for dtype in (yoke.int64, yoke.int32):
            x = to_numpy(yoke.randperm(n, dtype=dtype))
            np.testing.assert_array_equal(np.sort(x), np.arange(n))
    yoke.manual_seed(8)
    draws = np.array([to_numpy(yoke.randperm(4)) for _ in range(4000)])
    for place in range(4):
        counts = np.bincount(draws[:, place], minlength=4)
        assert np.abs(counts - 1000).max() < 200


# ---- Seeds and streams -----------------------------------------------------------------------------------------------


def test_a_seed_repeats_everything_and_another_seed_nothing():
    def draw(seed):
        yoke.manual_seed(seed)
        return np.concatenate([to_numpy(yoke.rand(5)), to_numpy(yoke.randn(7)), to_numpy(yoke.randint(0, 1000, 3)),
                               to_numpy(yoke.dropout(yoke.ones(9), 0.5)), to_numpy(yoke.rand_like(yoke.zeros(6)))])
    np.testing.assert_array_equal(draw(11), draw(11))
    assert not np.array_equal(draw(11), draw(12))


def test_draws_follow_one_another_without_overlap():
    yoke.manual_seed(6)
    seen = [v for count in (1, 2, 3, 4, 5, 1000, 1) for v in to_numpy(yoke.rand(count)).tolist()]
    assert len(set(seen)) == len(seen)


def test_each_thread_has_numbers_of_its_own_that_a_seed_repeats():
    def run():
        yoke.manual_seed(9)
        draws = [to_numpy(yoke.rand(100)).tolist()]
        for _ in range(3):
            thread = threading.Thread(target=lambda: draws.append(to_numpy(yoke.rand(100)).tolist()))
            thread.start()
            thread.join()
        return draws
    first = run()
    assert first == run()
    assert len({tuple(d) for d in first}) == 4


@pytest.mark.parametrize("layout", ["transposed", "strided"])
def test_dropouts_mask_follows_the_shape_and_not_the_strides(layout):
    x = to_yoke(np.ones((40, 50), np.float32))
    yoke.manual_seed(2)
    want = to_numpy(yoke.dropout(x, 0.4))
    y = LAYOUTS[layout](x)
    yoke.manual_seed(2)
    np.testing.assert_array_equal(to_numpy(yoke.dropout(y, 0.4)), want)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_keeps_the_mean(p):
    yoke.manual_seed(3)
    x = to_numpy(yoke.dropout(yoke.ones(200_000), p))
    assert abs((x == 0).mean() - p) < 0.006 and abs(x.mean() - 1) < 0.02
    assert len(np.unique(x)) == 2


def test_dropout_of_a_few_elements_keeps_those_that_it_keeps_of_many():
    def kept(count):
        yoke.manual_seed(11)
        return to_numpy(yoke.dropout(yoke.ones(count), 0.5)).tolist()
    for count in range(1, 34):
        assert kept(count) == kept(34)[:count], count


def test_dropout_that_has_nothing_to_drop_is_its_input_and_draws_nothing():
    x = yoke.ones(5)
    yoke.manual_seed(1)
    expected = to_numpy(yoke.rand(3)).tolist()
    yoke.manual_seed(1)
    assert yoke.shares_memory(yoke.dropout(x, 0.0), x) and yoke.shares_memory(yoke.dropout(x, 0.5, training=False), x)
    assert to_numpy(yoke.rand(3)).tolist() == expected


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_a_probability_outside_zero_and_one_is_refused(p):
    with pytest.raises(yoke.ValueError, match="dropout: argument 'p' is"):
        yoke.dropout(yoke.ones(3), p)
