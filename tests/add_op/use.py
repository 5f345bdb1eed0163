"""Calls the added op from Python, as a function and as a method, and checks its gradient by finite differences."""
import yoke

x = yoke.tensor([1.0, -2.0, 3.0], dtype=yoke.float64).requires_grad_()
y = yoke.test_cube(x)
assert y.tolist() == [1.0, -8.0, 27.0], y
yoke.sum(y).backward()
step = 1e-5
for i, value in enumerate(x.tolist()):
    above, below = (yoke.tensor(value + d, dtype=yoke.float64).test_cube().item() for d in (step, -step))
    assert abs(x.grad.tolist()[i] - (above - below) / (2 * step)) < 1e-8, (i, x.grad)
assert yoke.test_cube(yoke.tensor([2])).dtype == yoke.float32
assert "power of three" in yoke.test_cube.__doc__
