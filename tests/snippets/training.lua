yoke = require "yoke"

net = yoke.nn.Linear(4, 3)
x, target = yoke.randn(2, 4), yoke.tensor({0, 2})
