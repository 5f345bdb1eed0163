"""Autocast's kept casts beside captured graphs, and after every way in which a weight is written."""
import pytest

import yoke
from yoke import nn

SIDE = 4


def weight_of(value):
    return yoke.full((SIDE, SIDE), value).requires_grad_(True)


def product(weight):
    """Returns ones times the weight: each element is SIDE times the weight's value in the cast."""
    return yoke.matmul(yoke.ones((SIDE, SIDE)), weight)


def value_of(made):
    values = {v for row in made.to(dtype=yoke.float32).tolist() for v in row}
    assert len(values) == 1, values
    return values.pop() / SIDE


def write(weight, value):
    with yoke.no_grad():
        weight.fill_(value)


def test_a_capture_does_not_use_a_cast_from_before():
    weight, graph = weight_of(1.0), yoke.Graph()
    with yoke.autocast():
        assert value_of(product(weight)) == 1
        with graph.capture():
            made = product(weight)
    for value in (1.0, 3.0, 5.0):
        write(weight, value)
        graph.replay()
        assert value_of(made) == value


def test_a_cast_of_a_capture_serves_nobody_outside():
    weight, graph, other = weight_of(1.0), yoke.Graph(), yoke.Graph()
    with yoke.autocast():
        with graph.capture():
            made = product(weight)
        assert value_of(product(weight)) == 1  # before any replay
        with other.capture():
            more = product(weight)
        other.replay()
        assert value_of(more) == 1
        graph.replay()
        assert value_of(made) == 1 and value_of(product(weight)) == 1
        write(weight, 2.0)
        assert value_of(product(weight)) == 2
        other.replay()
        assert value_of(more) == 2 and value_of(made) == 1


def test_a_capture_that_failed_leaves_no_cast():
    weight, graph = weight_of(1.0), yoke.Graph()
    with yoke.autocast():
        with pytest.raises(yoke.Error), graph.capture():
            product(weight).sum().item()
        assert value_of(product(weight)) == 1
        with graph.capture():
            made = product(weight)
    graph.replay()
    assert value_of(made) == 1


def test_regions_of_one_capture_share_what_it_has_cast():
    weight, graph = weight_of(1.0), yoke.Graph()
    with graph.capture():
        with yoke.autocast():
            first = product(weight)
            with yoke.no_grad():
                weight.mul_(2)
            second = product(weight)  # later captured calls see the captured change
        with yoke.autocast():
            third = product(weight)
    graph.replay()
    assert [value_of(x) for x in (first, second, third)] == [1, 2, 2]
    graph.replay()
    assert [value_of(x) for x in (first, second, third)] == [2, 4, 4]


def test_memory_of_a_captures_casts_goes_with_the_graph():
    weight = yoke.ones((256, 256)).requires_grad_(True)
    with yoke.autocast():
        before = yoke.memory_allocated()
        graph = yoke.Graph()
        with graph.capture():
            yoke.matmul(yoke.ones((1, 256)), weight).detach()
        del graph
        assert yoke.memory_allocated() == before


def test_replays_make_casts_stale():
    weight, graph = weight_of(1.0), yoke.Graph()
    with graph.capture(), yoke.no_grad():
        weight.mul_(2)
    with yoke.autocast():
        for value in (1, 2, 4):
            assert value_of(product(weight)) == value
            graph.replay()


def test_replays_step_the_version_of_their_own_results():
    source, graph = yoke.ones((SIDE, SIDE)), yoke.Graph()
    with graph.capture():
        made = (source * 2).detach().requires_grad_(True)
    graph.replay()
    with yoke.autocast():
        assert value_of(product(made)) == 2
        source.fill_(5)
        graph.replay()
        assert value_of(product(made)) == 10
    y = (made * made).sum()
    graph.replay()
    with pytest.raises(yoke.Error, match="replay"):
        y.backward()


# ---- every writer of Yoke's own --------------------------------------------------------------------------------------


def by_optimizer(weight):
    weight.grad = yoke.full((SIDE, SIDE), -1.0)
    yoke.optim.SGD([weight], lr=1.0).step()


def by_adam(weight):
    weight.grad = yoke.full((SIDE, SIDE), -1.0)
    yoke.optim.Adam([weight], lr=1.0, eps=0.0).step()


def by_state(weight):
    module = nn.Module()
    module.weight = nn.Parameter(weight)
    module.load_state_dict({"weight": yoke.full((SIDE, SIDE), 2.0)})


def by_element(weight):
    with yoke.no_grad():
        weight[:] = 2.0


def by_mask(weight):
    with yoke.no_grad():
        weight[yoke.ones((SIDE, SIDE), dtype=yoke.bool)] = 2.0


def by_copy(weight):
    with yoke.no_grad():
        weight.copy_(yoke.full((SIDE, SIDE), 2.0))


def by_view(weight):
    with yoke.no_grad():
        weight.view((SIDE * SIDE,)).add_(1.0)


def by_detached(weight):
    weight.detach().add_(1.0)


def by_clipping(weight):
    with yoke.no_grad():
        weight.clamp_(2.0, 3.0)


def by_init(weight):
    nn.init.constant_(weight, 2.0)


def by_averages(weight):
    average = yoke.optim.EMA([weight], decay=0.5)
    write(weight, 3.0)
    average.update()
    with yoke.autocast(enabled=False):
        assert weight.tolist()[0][0] == 3
    product(weight)  # kept as 3
    average.copy_to_params()


def by_swapped_averages(weight):
    average = yoke.optim.EMA([weight], decay=0.5)
    write(weight, 3.0)
    average.update()
    with average.applied():
        assert value_of(product(weight)) == 2
    assert value_of(product(weight)) == 3
    write(weight, 2.0)


def by_replay(weight):
    graph = yoke.Graph()
    with graph.capture(), yoke.no_grad():
        weight.add_(1.0)
    graph.replay()


WRITERS = [by_optimizer, by_adam, by_state, by_element, by_mask, by_copy, by_view, by_detached, by_clipping, by_init, by_averages,
           by_swapped_averages, by_replay]


@pytest.mark.parametrize("write_by", WRITERS)
def test_a_weight_is_cast_anew_whoever_of_yoke_wrote_it(write_by):
    weight = weight_of(1.0)
    with yoke.autocast():
        assert value_of(product(weight)) == 1
        write_by(weight)
        assert value_of(product(weight)) == 2


def test_random_numbers_in_place_make_casts_stale():
    weight = weight_of(1.0)
    with yoke.autocast():
        for draw in (nn.init.uniform_, nn.init.normal_, nn.init.trunc_normal_, nn.init.xavier_uniform_, nn.init.kaiming_normal_):
            product(weight)
            draw(weight)
            want = yoke.cast(weight.detach(), yoke.get_autocast_dtype()).to(dtype=yoke.float32).tolist()
            identity = yoke.matmul(yoke.eye(SIDE), weight)
            assert identity.to(dtype=yoke.float32).tolist() == want, draw.__name__
