import yoke

net = yoke.nn.Linear(4, 3)
optimizer = yoke.optim.SGD(net.parameters(), lr=0.1)
x, target = yoke.randn(8, 4), yoke.tensor([0, 1, 2, 0, 1, 2, 0, 1])
parts, count = [(x[:5], target[:5]), (x[5:], target[5:])], len(target)
