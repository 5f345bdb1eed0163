"""yoke.GradScaler at the ends of its scale: a lower bound, a single warning, and no step that writes infinity or NaN."""
import contextlib
import math
import warnings

import pytest

import yoke
from conftest import DEVICE
from yoke import nn, optim

SMALLEST = 2.0**-126  # least normal number of float32
WORDS = "GradScaler: overflows have reduced the scale to 1.17549e-38"


def step(p, optimizer, scaler, factor):
    optimizer.zero_grad()
    scaler.scale((p * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


@contextlib.contextmanager
def told():
    """A list that warnings of a scale's end come to."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [str(w.message) for w in caught if str(w.message).startswith(WORDS)]


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
@pytest.mark.parametrize("overflows", [141, 142, 143, 144, 166, 200])
def test_after_any_number_of_overflows_a_good_gradient_is_unscaled_rightly(kind, overflows):
    p = nn.Parameter(yoke.zeros(2))
    optimizer, scaler = kind([p], lr=0.5), yoke.GradScaler()
    for _ in range(overflows):
        step(p, optimizer, scaler, math.inf)
    assert scaler.get_scale() == max(2.0**(16 - overflows), SMALLEST) and p.tolist() == [0, 0]
    step(p, optimizer, scaler, 1.0)
    assert p.tolist() == pytest.approx([-0.5, -0.5], rel=1e-6)


def test_the_scale_grows_again_from_its_end():
    p = nn.Parameter(yoke.zeros(2))
    optimizer, scaler = optim.SGD([p], lr=0.5), yoke.GradScaler(init_scale=1e-30, growth_interval=1, backoff_factor=1e-9)
    step(p, optimizer, scaler, math.nan)
    assert scaler.get_scale() == SMALLEST
    step(p, optimizer, scaler, 1.0)
    assert scaler.get_scale() == 2 * SMALLEST


def test_the_end_is_told_once():
    p = nn.Parameter(yoke.zeros(2))
    optimizer, scaler = optim.SGD([p], lr=0.5), yoke.GradScaler(init_scale=1e-30, backoff_factor=1e-5)
    with told() as early:
        step(p, optimizer, scaler, math.inf)
    with told() as found:
        for _ in range(40):  # a device's scale is looked at once in 16 updates
            step(p, optimizer, scaler, math.inf)
            yoke.synchronize()
    with told() as late:
        scaler.get_scale()
    assert (len(early), len(found), len(late)) == (0, 1, 0)


def test_who_reads_the_scale_is_told_at_once():
    scaler = yoke.GradScaler(init_scale=SMALLEST)
    scaler.scale(yoke.ones(()))
    with told() as found:
        scaler.get_scale()
    assert len(found) == 1


def test_replays_of_a_graph_stop_at_the_smallest_scale():
    p, factor = nn.Parameter(yoke.zeros(2)), yoke.tensor(math.inf)
    optimizer, scaler = optim.SGD([p], lr=0.5), yoke.GradScaler()
    graph = yoke.Graph()
    with graph.capture():
        step(p, optimizer, scaler, factor)
    for _ in range(170):
        graph.replay()
    assert scaler.get_scale() == SMALLEST
    factor.fill_(1.0)
    graph.replay()
    assert p.tolist() == [-0.5, -0.5]


@pytest.mark.parametrize("scale", [0.0, 1e-60, 1e-40, 1e-38])
def test_a_state_with_a_scale_below_the_smallest_goes_on_from_that(scale):
    p = nn.Parameter(yoke.zeros(2))
    optimizer, used, fresh = optim.SGD([p], lr=0.5), yoke.GradScaler(), yoke.GradScaler()
    used.scale(yoke.ones(()))
    state = used.state_dict()
    state["scale"] = scale
    for scaler in (used, fresh):
        with told() as found:
            scaler.load_state_dict(state)
        assert len(found) == 1 and scaler.get_scale() == SMALLEST
        with yoke.no_grad():
            p.fill_(0.0)
        step(p, optimizer, scaler, 1.0)
        assert p.tolist() == [-0.5, -0.5]


@pytest.mark.parametrize("scale", [1e-40, 1e-38])
def test_a_scale_given_below_the_smallest_is_refused(scale):
    with pytest.raises(yoke.ValueError, match="'init_scale' is .*; it must be at least 1.17549e-38"):
        yoke.GradScaler(init_scale=scale)
    scaler = yoke.GradScaler()
    scaler.scale(yoke.ones(()))
    with pytest.raises(yoke.ValueError, match="'new_scale' is .*; it must be at least 1.17549e-38"):
        scaler.update(scale)


@pytest.mark.skipif(DEVICE == "cpu", reason="the host's own tensors are looked at")
def test_a_scale_of_a_device_is_raised_to_the_smallest():
    scaler = yoke.GradScaler()
    scaler.scale(yoke.ones(()))
    scaler.update(yoke.tensor(1e-40))
    assert scaler.get_scale() == SMALLEST


@pytest.mark.parametrize("dtype", [yoke.float32, yoke.bfloat16, yoke.float64])
def test_a_gradient_that_overflows_as_it_is_unscaled_skips_the_step(dtype):
    p = nn.Parameter(yoke.zeros(2, dtype=dtype))
    optimizer, scaler = optim.SGD([p], lr=0.5), yoke.GradScaler(init_scale=2.0**-100)
    scaler.scale(yoke.ones(()))
    p.grad = yoke.tensor([1e30, 1.0], dtype=dtype)
    scaler.step(optimizer)
    scaler.update()
    if dtype == yoke.float64:
        assert all(map(math.isfinite, p.tolist())) and p.tolist()[0] < -1e59
    else:
        assert p.tolist() == [0, 0] and scaler.get_scale() == 2.0**-101
