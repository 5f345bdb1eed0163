"""Code without an error that trains nothing: a single warning."""
import textwrap
import subprocess
import sys
import warnings

import pytest

import yoke
from yoke import nn, optim


def said_by(script):
    """The warnings of a process of its own, as the library says some things once in each."""
    lines = ["import warnings, yoke", "from yoke import nn, optim", "with warnings.catch_warnings(record=True) as said:", "    warnings.simplefilter('always')",
             textwrap.indent(textwrap.dedent(script), "    "), "print(*[str(each.message) for each in said], sep='\\n')"]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_loss_of_two_shapes_says_so_once():
    said = said_by("""
        x, target = yoke.ones((4, 1)), yoke.zeros(4)
        for loss in (yoke.mse_loss, yoke.l1_loss, yoke.smooth_l1_loss, nn.MSELoss(), yoke.kl_div, yoke.mse_loss):
            loss(x, target)
            loss(x.reshape(4), target)
            loss(x.expand(4, 4), target.expand(4, 4))
    """)
    assert [line.split(":")[0] for line in said] == ["mse_loss", "l1_loss", "smooth_l1_loss", "kl_div"]
    assert said[0] == ("mse_loss: argument 'x' has shape [4, 1] and 'target' [4], and both are broadcast to [4, 4]; "
                       "give both the same shape by reshape or squeeze, or by expand if the broadcast is meant")


def test_clipping_nothing_says_so_once():
    said = said_by("""
        net = nn.Linear(2, 2)
        parameters = net.parameters()
        optimizer = optim.SGD(parameters, lr=0.1)
        for _ in range(3):
            optim.clip_grad_norm_(parameters, 1.0)
        optim.clip_grad_norm_(net.parameters(), 1.0)
    """)
    assert len(said) == 1 and said[0].startswith("clip_grad_norm_: there is no tensor to clip; a generator such as net.parameters() gives its tensors once")


def test_an_optimizer_of_a_generator_that_is_used_up_is_an_error():
    parameters = nn.Linear(2, 2).parameters()
    optim.SGD(parameters, lr=0.1)
    for make in (lambda: optim.SGD(parameters, lr=0.1), lambda: optim.Adam([{"params": parameters}])):
        with pytest.raises(yoke.ValueError, match="empty"):
            make()


SCHEDULES = [lambda o: optim.schedule.constant(o), lambda o: optim.schedule.linear(o, 1.0, 0.0, 4), lambda o: optim.schedule.cosine(o, 4),
             lambda o: optim.schedule.step(o, 2), lambda o: optim.schedule.one_cycle(o, 1.0, 4)]


@pytest.mark.parametrize("make", SCHEDULES, ids=["constant", "linear", "cosine", "step", "one_cycle"])
def test_a_schedule_that_steps_before_its_optimizer_says_so_once(make):
    optimizer = optim.SGD([nn.Parameter(yoke.ones(2))], lr=0.5)
    schedule = make(optimizer)
    with pytest.warns(RuntimeWarning, match="call optimizer.step.. before schedule.step..") as said:
        schedule.step()
        schedule.step()
    assert len(said) == 1
    in_order = optim.SGD([nn.Parameter(yoke.ones(2))], lr=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule = make(in_order)
        for _ in range(3):
            in_order.step()
            schedule.step()
        again = optim.SGD([nn.Parameter(yoke.ones(2))], lr=0.5)  # goes on from a state after steps
        other = make(again)
        again.load_state_dict(in_order.state_dict())
        other.load_state_dict(schedule.state_dict())
        other.step()
