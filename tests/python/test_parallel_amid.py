"""A rank that stopped between the steps of its two optimizers: no rank goes on from such a half step."""
import threading

import pytest

import yoke
from test_parallel import on_ranks
from test_parallel_regroup import done
from yoke import nn


class Towers(nn.Module):
    def __init__(self):
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, uses_second):
        x = self.first(x)
        return self.second(x) if uses_second else x


class Run:
    """Run of four steps: `uses` says in which steps the second layer is used, `steps` in which its optimizer steps."""

    def __init__(self, group, uses, steps):
        yoke.manual_seed(1)
        net = Towers()
        self.params, self.uses, self.steps = list(net.parameters()), uses, steps
        self.ddp = yoke.DistributedDataParallel(net, group)
        self.optimizers = [yoke.optim.SGD(self.params[at:at + 2], lr=0.1) for at in (0, 2)]

    def backward(self, step):
        out = self.ddp(yoke.full((2, 4), self.ddp.group.rank + step + 1.), self.uses[step])
        out.sum().backward()

    def whole_step(self, step):
        self.backward(step)
        self.optimizers[0].step()
        if self.steps[step]:
            self.optimizers[1].step()
        for each in self.optimizers:
            each.zero_grad()

    def told(self):
        return [each.tolist() for each in self.params]


ALWAYS, EVERY_SECOND = [True] * 4, [False, True, False, True]


@pytest.mark.parametrize("halved", [0, 1])
@pytest.mark.parametrize("between", ["nothing", "a_call", "a_forward"])
@pytest.mark.parametrize("uses, steps", [(ALWAYS, ALWAYS), (EVERY_SECOND, EVERY_SECOND), (ALWAYS, EVERY_SECOND)],
                         ids=["all", "a_layer_is_used_now_and_then", "an_optimizer_steps_now_and_then"])
def test_half_a_step_is_not_what_all_go_on_from(uses, steps, between, halved):
    stopped = threading.Barrier(2)

    def body(group):
        run = Run(group, uses, steps)
        for step in range(3):
            run.whole_step(step)
        run.backward(3)
        loss = yoke.zeros((1,))
        if group.rank == halved:
            if between == "a_call":
                group.all_reduce(loss, async_op=True)
            elif between == "a_forward":
                with yoke.no_grad():
                    run.ddp(yoke.ones((2, 4)), True)
            run.optimizers[0].step()
        stopped.wait(60)
        if group.rank == halved:
            group.abort("no memory amid the step")
        before = run.told()
        run.ddp.regroup(group.shrink(timeout=20.))
        return before, run.told()
    results = done(on_ranks(2, body))
    assert results[0][1] == results[1][1] == results[1 - halved][0] != results[halved][0]
