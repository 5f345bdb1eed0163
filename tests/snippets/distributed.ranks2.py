import yoke
from yoke import nn

group = yoke.comm.init()
images, labels, epochs = yoke.randn(12, 4), yoke.tensor([0, 1, 2] * 4), 2
net = nn.Linear(4, 3)
ddp = yoke.DistributedDataParallel(net, group)
optimizer = yoke.optim.Adam(net.parameters(), lr=0.1)
sampler = yoke.data.DistributedSampler(len(images))
loss = yoke.cross_entropy


class Batches(list):
    """Batches of a rank, and the function that makes batches of a sampler's rows."""

    def __call__(self, sampler):
        yield from ([index] for index in sampler)


batches = Batches([(images[:3], labels[:3])] * (2 + group.rank))
