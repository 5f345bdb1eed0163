"""Ranks lost at the end of an epoch: the living ranks go on in the same epoch. Ranks are threads."""
import itertools
import threading
import warnings

import pytest

import yoke
from test_parallel import on_ranks
from test_parallel_regroup import done
from yoke import nn

EXAMPLES, BATCH, EPOCHS = 24, 4, 3
PER_EPOCH = EXAMPLES // (3 * BATCH)  # steps of three ranks


class Script:
    """Rank 1 has finished the last backward of an epoch when rank 0 fails in this backward; then rank 2 is lost."""

    def __init__(self, group, failing_epoch):
        yoke.manual_seed(1)
        self.group, self.taken, self.steps = group, [], 0
        self.failing, self.last = False, (failing_epoch + 1) * PER_EPOCH
        net = nn.Linear(2, 1)
        self.optimizer = yoke.optim.SGD(net.parameters(), lr=0.01)
        self.ddp = yoke.DistributedDataParallel(net, group, compression=self.hook)
        self.sampler = yoke.data.DistributedSampler(EXAMPLES, rank=group.rank, world_size=group.size, pad=False)

    def hook(self, bucket, group):
        group.all_reduce(bucket.tensor, op="avg")
        if self.failing and bucket.is_last:
            AHEAD.wait(30)
            raise KeyError("too late")

    def pass_(self):
        order = iter(self.sampler)
        while which := list(itertools.islice(order, BATCH)):
            self.steps += 1
            self.failing = self.group.size == 3 and self.group.rank == 0 and self.steps == self.last
            self.ddp(yoke.ones((len(which), 2))).sum().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.taken.append((self.sampler.state_dict()["epoch"], which))
            if self.group.size == 3 and self.steps == self.last and self.group.rank > 0:
                BEHIND.wait(30)
                if self.group.rank == 2:
                    raise SystemExit
                AHEAD.set()

    def go_on(self):
        self.failing = False
        self.group = self.group.shrink(timeout=1.)
        self.ddp.regroup(self.group, self.optimizer, self.sampler)


FAILURES = yoke.CollectiveError, yoke.TimeoutError, yoke.CancelledError


def documented(script):
    while True:
        try:
            while (epoch := script.sampler.state_dict()["epoch"]) < EPOCHS:
                script.pass_()
                script.sampler.set_epoch(epoch + 1)
            script.group.barrier()
            return
        except FAILURES:
            script.go_on()


def of_a_counter(script):
    for epoch in range(EPOCHS):
        script.sampler.set_epoch(epoch)
        while True:
            try:
                script.pass_()
                break
            except FAILURES:
                script.go_on()


def run(loop, failing_epoch):
    global AHEAD, BEHIND
    AHEAD, BEHIND = threading.Event(), threading.Barrier(2)

    def body(group):
        script = Script(group, failing_epoch)
        try:
            loop(script)
        except SystemExit:
            group.abort("it is lost")
            return None
        except yoke.Error as error:
            return script.taken, str(error)
        return script.taken, "done"
    return done(on_ranks(3, body, yoke.comm.init_all(["cpu"], size=3, timeout=5.)))


@pytest.mark.parametrize("failing_epoch", [0, EPOCHS - 1])
def test_the_documented_loop_goes_on_in_one_epoch(failing_epoch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = run(documented, failing_epoch)
    assert first[1] == second[1] == "done"
    for epoch in range(failing_epoch + 1, EPOCHS):
        parts = [[index for of, which in taken for index in which if of == epoch] for taken, _ in (first, second)]
        seen = set(parts[0] + parts[1])
        assert len(parts[0]) == len(parts[1]) and len(seen) == 2 * len(parts[0])
        lost = 3 * BATCH if epoch == failing_epoch + 1 else 0  # the step of the next epoch that rank 1 had begun
        assert len(seen) == EXAMPLES - lost


def test_a_loop_with_a_counter_of_its_own_is_warned():
    with pytest.warns(RuntimeWarning, match="'epoch' is 1, but after a regroup the ranks went on in epoch 1"):
        run(of_a_counter, 0)
