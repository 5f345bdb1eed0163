"""Misuse of optimizers and averages by a script: reported, never silently lost."""

import pytest

import yoke
from yoke import nn, optim


def parameter(value=1.0):
    return nn.Parameter(yoke.tensor([value]))


# ---- Averages --------------------------------------------------------------------------------------------------------

def average_of_8_and_0():
    p = parameter(8.0)
    ema = optim.EMA([p], 0.5)
    with yoke.no_grad():
        p.fill_(0.0)
    ema.update()
    return p, ema


def test_applied_in_applied_changes_nothing():
    p, ema = average_of_8_and_0()
    with ema.applied():
        with ema.applied():
            assert p.item() == 4.0
        assert p.item() == 4.0
    assert p.item() == 0.0
    with pytest.raises(KeyError), ema.applied(), ema.applied():
        raise KeyError
    assert p.item() == 0.0 and ema.averages[0].item() == 4.0


@pytest.mark.parametrize("misuse", [lambda ema: ema.update(), lambda ema: ema.copy_to_params(),
                                    lambda ema: ema.load_state_dict(ema.state_dict())])
def test_what_would_lose_the_parameters_is_refused_while_averages_are_applied(misuse):
    p, ema = average_of_8_and_0()
    with ema.applied():
        with pytest.raises(yoke.StateError, match=r"leave applied\(\)"):
            misuse(ema)
    assert p.item() == 0.0 and ema.averages[0].item() == 4.0
    misuse(ema)


# ---- Groups ----------------------------------------------------------------------------------------------------------

CALLS = [lambda o: o.step(), lambda o: o.zero_grad(), lambda o: o.state_dict(),
         lambda o: yoke.GradScaler(enabled=False).step(o), lambda o: optim.schedule.step(o, 3)]


def put_list(optimizer, params):
    optimizer.param_groups[0]["params"] = params


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("change", [
    lambda o: o.param_groups[0]["params"].append(parameter()), lambda o: put_list(o, [parameter()]),
    lambda o: put_list(o, []), lambda o: put_list(o, iter(o.param_groups[0]["params"])),
    lambda o: o.param_groups[0].pop("params"), lambda o: o.param_groups.append({"params": [parameter()]}),
    lambda o: o.param_groups.clear()])
def test_parameters_that_come_or_go_by_the_lists_are_told(change, call):
    optimizer = optim.AdamW([parameter()])
    change(optimizer)
    with pytest.raises(yoke.StateError, match=r"add_param_group\("):
        call(optimizer)


@pytest.mark.parametrize("call", CALLS)
def test_an_option_that_was_taken_away_is_named(call):
    optimizer = optim.SGD([parameter()], lr=0.5)
    del optimizer.param_groups[0]["lr"]
    with pytest.raises(yoke.ValueError, match=r"param_groups\[0\] .*option 'lr'.* 0.5"):
        call(optimizer)
    optimizer.param_groups[0]["lr"] = 0.25
    call(optimizer)


def test_a_list_with_the_same_tensors_is_as_good():
    p = parameter()
    optimizer = optim.SGD([p], lr=0.5)
    put_list(optimizer, (p,))
    optimizer.param_groups[0]["initial_lr"] = 0.5  # a script's own
    p.grad = yoke.ones(1)
    optimizer.step()
    assert p.item() == 0.5
