"""Optimizers and averages where a script does what they cannot follow: told, never silently lost."""

import pytest

import yoke
from yoke import nn, optim


def parameter(value=1.0):
    return nn.Parameter(yoke.tensor([value]))


# ---- Averages ----------------------------------------------------------------------------------------------------------

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
