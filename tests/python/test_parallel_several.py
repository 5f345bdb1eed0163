"""Several modules of one group, wrapped each, in one backward. Ranks are threads."""
import numpy as np

import yoke
from yoke import nn
from test_parallel import batch, on_ranks, values


def pair(group=None, **options):
    yoke.manual_seed(3)
    first, second = (nn.Linear(6, 3, dtype=yoke.float64) for _ in range(2))
    if group is None:
        return first, second
    return tuple(yoke.DistributedDataParallel(each, group, **options) for each in (first, second))


def loss_of(first, second, rank, step, in_turn):
    x, y = batch(10 * rank + step, 4)
    made = {}
    for name, module in (("first", first), ("second", second))[::-1 if in_turn else 1]:
        made[name] = ((module(x) - y) ** 2).sum()
    return made["first"] + 3 * made["second"] if in_turn else 3 * made["second"] + made["first"]


def test_gradients_are_those_of_one_process_whatever_the_order_of_each_rank():
    size = 3

    def body(group):
        first, second = pair(group, bucket_mb=0.0001)
        found = []
        for step in range(4):
            loss_of(first, second, group.rank, step, (group.rank + step) % 2).backward()
            found.append([values(each) for each in (first.module, second.module)])
            first.zero_grad(), second.zero_grad()
        return found

    told = on_ranks(size, body)
    for step in range(4):
        whole = pair()
        sum((loss_of(*whole, rank, step, 0) / size for rank in range(size)), yoke.zeros((), dtype=yoke.float64)).backward()
        for rank in range(size):
            for expected, found in zip(whole, told[rank][step]):
                for name, want in values(expected).items():
                    assert np.abs(found[name] - want).max() < 1e-12, (step, rank, name)


def test_a_layer_that_one_rank_leaves_out_moves_nothing():
    class Decoder(nn.Module):
        def __init__(self):
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x, skips):
            x = self.a(x)
            return x if skips else self.b(x)

    def body(group):
        yoke.manual_seed(0)
        encoder = yoke.DistributedDataParallel(nn.Linear(4, 4), group)
        decoder = yoke.DistributedDataParallel(Decoder(), group, bucket_mb=1e-5)
        decoder(encoder(yoke.ones((3, 4))), group.rank == 1).sum().backward()
        return [{name: each.tolist() for name, each in values(part.module).items()} for part in (encoder, decoder)]

    first, second = on_ranks(2, body)
    assert first == second and first[1]["b.bias"] == [1.5] * 4


def test_a_module_that_one_rank_leaves_out_is_told_on_all():
    def body(group):
        first, second = pair(group)
        x, _ = batch(0, 4)
        second(x).sum().backward() if group.rank == 1 else (first(x) + second(x)).sum().backward()

    for told in on_ranks(2, body):
        assert isinstance(told, yoke.Error) and "rank 0 (host" in str(told) and "module 2 of this group and then module 1" in str(told), told
        assert "rank 1 (host" in str(told) and "module 2 and then no other" in str(told), told
