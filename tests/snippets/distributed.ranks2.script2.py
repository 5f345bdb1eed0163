import yoke

group = yoke.comm.init()
net = yoke.nn.Linear(4, 3)
optimizer = yoke.optim.SGD(net.parameters(), lr=0.1)
sampler = yoke.data.DistributedSampler(12)
