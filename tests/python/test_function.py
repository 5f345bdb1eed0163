"""yoke.autograd.Function: ops of a script with a backward of their own."""
import gc
import threading
import weakref

import pytest

import yoke
from yoke.autograd import Function
from yoke.autograd.function import once_differentiable


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = yoke.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * y


class Scale(Function):
    """Several tensors, an argument that is no tensor, two outputs."""

    @staticmethod
    def forward(ctx, x, factor, y=None, *, unused=None):
        ctx.factor = factor
        ctx.needed = ctx.needs_input_grad
        return x * factor, y

    @staticmethod
    @once_differentiable
    def backward(ctx, gx, gy):
        return gx * ctx.factor, None, gy


def leaf(*values):
    return yoke.tensor(list(values), requires_grad=True)


def test_the_gradient_is_that_of_the_functions_own_backward():
    x = leaf(0.5, 1.0)
    y = Exp.apply(x)
    assert y.requires_grad and not y.is_leaf and y.tolist() == yoke.exp(x.detach()).tolist()
    (y * 2).sum().backward()
    assert x.grad.tolist() == (yoke.exp(x.detach()) * 2).tolist()


def test_saved_tensors_are_freed_by_backward_and_listed_before():
    x = leaf(1.0)
    loss = Exp.apply(x).sum()
    y = Exp.apply(x)
    assert [(each.op, each.argument, each.shape) for each in yoke.saved_tensors(y)] == [("Exp", "saved", (1,))]
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(yoke.StateError, match="the graph through 'Exp' was freed"):
        loss.backward()


def test_several_arguments_and_outputs():
    x, y = leaf(1.0), leaf(2.0)
    a, b = Scale.apply(x, 3.0, y)
    (a * 2 + b * 5).sum().backward()
    assert x.grad.tolist() == [6.0] and y.grad.tolist() == [5.0]
    a, b = Scale.apply(x, 3.0, 4)
    assert b == 4 and a.requires_grad


def test_missing_gradients_are_zeros_or_none():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a.tolist(), b if b is None else b.tolist()))
            return a, None

    x = leaf(1.0)
    for materialize in (True, False):
        Two.apply(x, materialize)[0].sum().backward()
    assert seen == [([1.0], [0.0]), ([1.0], None)]


def test_outputs_without_gradient():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, indices = x.sort(0)
            mean = x.mean()
            ctx.mark_non_differentiable(mean)
            return values, indices, mean

        @staticmethod
        def backward(ctx, values, indices, mean):
            assert indices.tolist() == [0, 0] and mean.item() == 0
            return values

    x = leaf(2.0, 1.0)
    values, indices, mean = Sorted.apply(x)
    assert values.requires_grad and not indices.requires_grad and not mean.requires_grad
    values.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_an_input_changed_in_place_is_returned_itself():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.tolist() == [2.0, 4.0]
    (z * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(yoke.StateError, match="Double: output 0 is a leaf that requires grad"):
        Double.apply(leaf(1.0))
    base = x * 1
    part = base[0:1]
    Double.apply(part)
    x.grad = None
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0]


def test_an_input_that_forward_returns_becomes_another_tensor():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr() and not y.is_leaf and x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [7.0]
    with yoke.no_grad():
        assert not Same.apply(x).requires_grad


def test_outputs_can_change_in_place():
    x = leaf(1.0)
    y = Exp.apply(x)
    kept = y * 1
    y += 1
    (y * 3 + kept * 0).sum()
    with pytest.raises(yoke.StateError, match="backward of Exp needs 'saved tensor 0' as it was, but add_ has changed it in place"):
        y.sum().backward()


def test_setup_context():
    class Square(Function):
        @staticmethod
        def forward(x, power):
            return x ** power

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, power = inputs
            ctx.save_for_backward(x, None)
            ctx.power = power
            assert output.tolist() == [9.0]

        @staticmethod
        def backward(ctx, g):
            x, none = ctx.saved_tensors
            assert none is None
            return g * ctx.power * x, None

    x = leaf(3.0)
    Square.apply(x, 2).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_nothing_is_recorded_where_no_gradient_is_wanted():
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((ctx.needs_input_grad, yoke.is_grad_enabled()))
            return x * 2

    assert not Look.apply(yoke.tensor([1.0])).requires_grad
    with yoke.no_grad():
        assert not Look.apply(leaf(1.0)).requires_grad
    assert Look.apply(leaf(1.0)).requires_grad
    assert seen == [((False,), False), ((True,), False), ((True,), False)]


def returning(*gradients):
    class Returns(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2 + y * 2

        @staticmethod
        def backward(ctx, g):
            return gradients[0] if len(gradients) == 1 else gradients

    return Returns


@pytest.mark.parametrize("gradients, error, text", [
    ((yoke.ones(2),), yoke.ValueError, "Returns returned 1 gradients for 2 arguments of its forward"),
    ((yoke.ones(2), None, yoke.ones(2)), yoke.ValueError, "Returns returned 3 gradients for 2 arguments"),
    ((yoke.ones(3), None), yoke.ValueError, r"backward of Returns returned \[3\] float32 on .* as the gradient of input 0, but the input was \[2\] float32 on "),
    ((yoke.ones(2, dtype=yoke.int64), None), yoke.TypeError, "int64.*as the gradient of input 0.*return a floating tensor"),
    ((3.0, None), TypeError, "a gradient.*a tensor or None, not float")])
def test_wrong_gradients_are_refused(gradients, error, text):
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    with pytest.raises(error, match=text):
        returning(*gradients).apply(x, y).sum().backward()
    assert x.grad is None


def test_gradients_are_cast_and_summed_to_the_input_as_in_pytorch():
    x, y = leaf(1.0, 2.0), leaf(1.0)
    returning(yoke.ones(2, dtype=yoke.float64), yoke.ones(2), None).apply(x, y).sum().backward()
    assert x.grad.dtype is yoke.float32 and x.grad.tolist() == [1.0, 1.0] and y.grad.tolist() == [2.0]
    returning(None, None).apply(x, y).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


class Mine(Exception):
    pass


def test_an_exception_of_backward_keeps_its_kind_and_traceback():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise Mine("of backward")

    with pytest.raises(Mine, match="of backward") as raised:
        Fails.apply(leaf(1.0)).sum().backward()
    assert raised.traceback[-1].name == "backward"


@pytest.mark.parametrize("call, error, text", [
    (lambda: Exp(), TypeError, r"Exp: a Function has no instances; call Exp.apply"),
    (lambda: Function.apply(leaf(1.0)), yoke.UnsupportedError, "write a static method forward"),
    (lambda: type("A", (Function,), {"forward": staticmethod(lambda ctx, x: ctx.save_for_backward(3))}).apply(leaf(1.0)), TypeError, "save_for_backward.*type int"),
    (lambda: type("A", (Function,), {"forward": staticmethod(lambda ctx, x: (ctx.mark_dirty(x), x * 2)[1])}).apply(leaf(1.0)), yoke.ValueError, "mark_dirty.*does not return"),
    (lambda: type("A", (Function,), {"forward": staticmethod(lambda ctx, x: (ctx.mark_dirty(x * 1), x * 2)[1])}).apply(leaf(1.0)), yoke.ValueError, "mark_dirty.*none of its inputs"),
    (lambda: type("A", (Function,), {"forward": staticmethod(lambda ctx, x: ctx.saved_tensors)}).apply(leaf(1.0)), yoke.StateError, "saved_tensors: A"),
    (lambda: type("A", (Function,), {"forward": staticmethod(lambda ctx, x: x * 1)}).apply(leaf(1.0)).sum().backward(), yoke.UnsupportedError, "write a static method backward")])
def test_wrong_functions_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_backward_may_walk_another_graph():
    class Again(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return yoke.sin(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with yoke.enable_grad():
                inner = x.detach().requires_grad_()
                yoke.sin(inner).backward(g)
            assert not yoke.is_grad_enabled()
            return inner.grad

    x = leaf(0.5, 1.0)
    Again.apply(x).sum().backward()
    assert x.grad.tolist() == yoke.cos(x.detach()).tolist()


@pytest.mark.parametrize("policy", ["full", "matmul"])
def test_a_checkpoint_scope_recomputes_saved_tensors(policy):
    runs = []

    class Tanh(Function):
        @staticmethod
        def forward(ctx, x):
            runs.append("forward")
            y = yoke.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * (1 - y * y)

    x = leaf(0.5, 1.0)
    with yoke.checkpoint_scope(policy=policy):
        y = Tanh.apply(x * 2)
        assert [each.recomputed for each in yoke.saved_tensors(y)] == [True]
        loss = (y * 3).sum()
    loss.backward()
    got = x.grad.tolist()
    x.grad = None
    (yoke.tanh(x * 2) * 3).sum().backward()
    assert got == pytest.approx(x.grad.tolist(), rel=1e-6) and runs == ["forward"]


def test_threads_walk_functions_at_once():
    x = yoke.ones(100).requires_grad_()
    y = Exp.apply(x)

    def walk():
        for _ in range(20):
            y.sum().backward(retain_graph=True)

    threads = [threading.Thread(target=walk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad[0].item() == pytest.approx(80 * 2.7182818, rel=1e-5)


def test_a_graph_and_its_contexts_are_released():
    gone = []

    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.output, ctx.input = y, x
            ctx.save_for_backward(x, y)
            gone.append(weakref.ref(ctx))
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    y = Keeps.apply(x)
    y.sum().backward()
    del y
    gc.collect()
    assert gone[0]() is None
    z = x
    for _ in range(20000):
        z = Keeps.apply(z)
    del z
    gc.collect()
    assert gone[-1]() is None


def test_autocast_and_hooks_around_a_function():
    w, seen = yoke.ones((4, 4)).requires_grad_(), []

    class Mm(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return yoke.matmul(x, w)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return None, yoke.matmul(x.to(dtype=g.dtype).T, g)

    w.register_hook(lambda g: seen.append(g.dtype))
    with yoke.autocast(dtype=yoke.bfloat16):
        y = Mm.apply(yoke.ones((4, 4)), w)
    assert y.dtype is yoke.bfloat16
    y.register_hook(lambda g: seen.append(g.dtype))
    y.sum().backward()
    assert seen == [yoke.bfloat16, yoke.float32] and w.grad[0, 0].item() == 4.0
