"""Hooks on the gradients of tensors, and results that retain their gradient."""
import gc
import threading
import weakref

import pytest

import yoke


def leaf(*values, dtype=yoke.float32):
    return yoke.tensor(list(values), dtype=dtype, requires_grad=True)


def test_a_hook_sees_the_whole_gradient_of_a_leaf_once_before_the_leaf_adds_it():
    x, seen = leaf(1.0, 2.0), []
    handle = x.register_hook(lambda g: seen.append((g.tolist(), x.grad)))
    (x * 3 + x * x).sum().backward()
    assert seen == [([5.0, 7.0], None)] and x.grad.tolist() == [5.0, 7.0]
    (x * 2).sum().backward()
    assert seen[1][0] == [2.0, 2.0] and x.grad.tolist() == [7.0, 9.0]
    handle.remove()  # a function that refers to its tensor keeps it alive


def test_a_returned_tensor_takes_the_place_of_the_gradient():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 2)
    y.sum().backward()
    assert x.grad.tolist() == [42.0, 42.0]


def test_hooks_run_in_the_order_of_registration_and_a_removed_one_no_longer():
    x, order = leaf(1.0), []
    handles = [x.register_hook(lambda g, i=i: order.append(i)) for i in range(3)]
    handles[1].remove()
    handles[1].remove()
    (x * 1).sum().backward()
    with x.register_hook(lambda g: order.append("with")):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert order == [0, 2, 0, 2, "with", 0, 2]


def test_the_root_of_backward_and_the_input_of_grad_have_their_hooks():
    x = leaf(2.0)
    y = x * x
    loss = y.sum()
    loss.register_hook(lambda g: g * 3)
    y.register_hook(lambda g: g * 5)
    x.register_hook(lambda g: g + 1)
    assert [g.tolist() for g in yoke.grad(loss, [y, x], retain_graph=True)] == [[15.0], [61.0]]
    assert x.grad is None
    loss.backward()
    assert x.grad.tolist() == [61.0]


def test_the_replaced_gradient_belongs_to_the_leaf_alone():
    x, kept = leaf(1.0), yoke.tensor([7.0])
    x.register_hook(lambda g: kept)
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [21.0] and kept.tolist() == [7.0]


def test_a_gradient_that_a_hook_keeps_does_not_change_later():
    x, kept = leaf(1.0), []
    x.register_hook(kept.append)
    for _ in range(3):
        (x * 2).sum().backward()
    assert [g.tolist() for g in kept] == [[2.0]] * 3 and x.grad.tolist() == [6.0]


def test_a_hook_may_register_remove_and_drop():
    x, seen = leaf(1.0), []

    def once(g):
        seen.append("once")
        handle.remove()
        x.register_hook(lambda g: seen.append("new"))

    handle = x.register_hook(once)
    (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert seen == ["once", "new"]
    tensors = [leaf(1.0)]
    loss = (tensors[0] * 2).sum()
    tensors[0].register_hook(lambda g: tensors.clear())
    loss.backward()
    assert not tensors


class Mine(Exception):
    pass


def test_an_exception_of_a_hook_leaves_backward_with_its_traceback_and_a_later_backward_works():
    x = leaf(1.0)

    def fails(g):
        raise Mine("of the hook")

    handle = x.register_hook(fails)
    for run in (lambda: (x * 2).sum().backward(), lambda: yoke.grad((x * 2).sum(), x)):
        with pytest.raises(Mine, match="of the hook") as raised:
            run()
        assert any(entry.name == "fails" for entry in raised.traceback)
    assert x.grad is None and yoke.is_grad_enabled()
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_an_interrupt_in_a_hook_leaves_backward():
    x = leaf(1.0)
    x.register_hook(lambda g: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        (x * 2).sum().backward()


@pytest.mark.parametrize("wrong, error", [
    (lambda g: yoke.zeros(2), (yoke.ValueError, "hook on the gradient of a result of leaf returned \\[2\\] float32.*the gradient is \\[1\\]")),
    (lambda g: g.double(), (yoke.TypeError, "float64.*same shape, dtype and device")),
    (lambda g: 3, (TypeError, "the hook's result.*a tensor or None, not int")),
    (lambda: None, (TypeError, "positional argument"))])
def test_wrong_results_of_a_hook_are_refused(wrong, error):
    x = leaf(1.0)
    x.register_hook(wrong)
    with pytest.raises(error[0], match=error[1]):
        (x * 2).sum().backward()


def test_wrong_calls_are_refused():
    x = leaf(1.0)
    with pytest.raises(yoke.StateError, match="register_hook|add_hook.*does not require grad"):
        yoke.tensor([1.0]).register_hook(print)
    with pytest.raises(TypeError, match="register_hook.*'hook' must be a function"):
        x.register_hook(3)
    with pytest.raises(yoke.StateError, match="does not require grad"):
        yoke.tensor([1.0]).retain_grad()
    x.close()
    with pytest.raises(yoke.ClosedError):
        x.register_hook(print)
    with pytest.raises(TypeError, match="register_hook"):
        yoke._yoke._Hook()


def test_a_hook_may_run_backward_of_another_graph_and_of_its_own():
    x, other = leaf(1.0), leaf(5.0)

    def nested(g):
        assert not yoke.is_grad_enabled()
        with yoke.enable_grad():
            (other * 3).sum().backward()

    y = x * 2
    y.register_hook(nested)
    y.sum().backward()
    assert other.grad.tolist() == [3.0] and x.grad.tolist() == [2.0]
    z = leaf(1.0)
    loss = (z * z).sum()
    inside = []

    def again(g):
        if not inside:
            inside.append(1)
            loss.backward(retain_graph=True)

    handle = z.register_hook(again)
    loss.backward(retain_graph=True)
    assert z.grad.tolist() == [4.0]
    handle.remove()


def test_a_nested_backward_that_frees_the_graph_is_an_error_and_no_hang():
    x = leaf(1.0)
    y = x * x
    loss = (y * y).sum()
    inside = []

    def again(g):
        if not inside:
            inside.append(1)
            loss.backward()

    with y.register_hook(again), pytest.raises(yoke.StateError, match="freed by an earlier backward"):
        loss.backward()


def test_modes_that_a_hook_leaves_open_or_opens_do_not_reach_the_walk():
    x = leaf(1.0)
    w = yoke.ones((4, 4)).requires_grad_()
    y = x * 2
    h = yoke.matmul(w, w) * y

    def hook(g):
        with yoke.no_grad():
            pass
        yoke.set_grad_enabled(True)

    h.register_hook(hook)
    with yoke.autocast(dtype=yoke.bfloat16), yoke.enable_grad():
        h.sum().backward()
        assert yoke.is_grad_enabled() and yoke.is_autocast_enabled()
    assert w.grad.dtype is yoke.float32 and not w.grad.requires_grad and not x.grad.requires_grad
    assert w.grad.tolist() == yoke.full((4, 4), 16.0).tolist()


def test_a_hook_on_a_cast_sees_the_dtype_of_its_tensor():
    w = yoke.ones((8, 8)).requires_grad_()
    x = yoke.ones((8, 8), dtype=yoke.bfloat16)
    seen = []
    half = w.to(dtype=yoke.bfloat16)
    half.register_hook(lambda g: seen.append(g.dtype))
    w.register_hook(lambda g: seen.append((g.dtype, g[0, 0].item())))
    for _ in range(2):
        yoke.matmul(x, half).sum().backward(retain_graph=True)
    assert seen == [yoke.bfloat16, (yoke.float32, 8.0)] * 2 and w.grad[0, 0].item() == 16.0


def test_a_leaf_under_autocast_has_its_hooks_although_products_add_to_its_gradient():
    w = yoke.ones((8, 8)).requires_grad_()
    seen = []
    for step in range(3):
        if step == 1:
            w.register_hook(lambda g: seen.append((g.dtype, g[0, 0].item())))
        with yoke.autocast(dtype=yoke.bfloat16):
            loss = yoke.matmul(yoke.ones((8, 8)), w).sum()
        loss.backward()
    assert seen == [(yoke.float32, 8.0)] * 2 and w.grad[0, 0].item() == 24.0


def test_changes_in_place_leave_hooks_with_the_former_value_and_retained_gradients_with_the_tensor():
    x = leaf(1.0, 2.0)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    assert y.retains_grad
    (y * 5).sum().backward()
    assert seen == [("after", [5.0, 5.0]), ("before", [15.0, 15.0])]
    assert y.grad.tolist() == [5.0, 5.0] and x.grad.tolist() == [15.0, 15.0]


def test_results_retain_their_gradient_after_all_hooks_and_add_it_up():
    x = leaf(1.0)
    assert not x.retains_grad
    x.retain_grad()
    assert not x.retains_grad
    y = x * 2
    with pytest.raises(yoke.StateError, match="retain_grad"):
        y.grad
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    assert y.retains_grad and y.grad is None
    loss = (y * 3).sum()
    loss.backward(retain_graph=True)
    assert y.grad.tolist() == [6.0]
    loss.backward()
    assert y.grad.tolist() == [12.0] and x.grad.tolist() == [24.0]
    y.grad = None
    assert y.grad is None
    y.grad = yoke.tensor([1.0])
    assert y.grad.tolist() == [1.0]
    del y.grad
    assert y.grad is None


def test_a_base_that_a_view_changes_keeps_its_retained_gradient():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    y[0] = 5.0
    (y * 2).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0] and x.grad.tolist() == [0.0, 2.0]


def test_recomputation_runs_no_hook():
    x, seen = leaf(1.0, 2.0), []
    with yoke.checkpoint_scope():
        y = yoke.tanh(x * 2)
        y.register_hook(lambda g: seen.append("y"))
        z = yoke.exp(y)
    x.register_hook(lambda g: seen.append("x"))
    z.sum().backward()
    assert seen == ["y", "x"]


def test_backward_of_some_inputs_adds_to_them_alone():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    loss = (y * y).sum()
    loss.backward(inputs=[x, y], retain_graph=True)
    assert x.grad.tolist() == [36.0] and w.grad is None and y.grad.tolist() == [12.0]
    yoke.autograd.backward([loss, y], [None, yoke.tensor([1.0])], inputs=w)
    assert w.grad.tolist() == [26.0] and x.grad.tolist() == [36.0]
    with pytest.raises(yoke.ValueError, match="'inputs' is empty"):
        (x * 2).sum().backward(inputs=[])
    with pytest.raises(yoke.StateError, match="does not require grad"):
        (x * 2).sum().backward(inputs=[yoke.tensor([1.0])])


def test_unused_inputs_of_grad_are_none_or_zeros_on_demand():
    x, w = leaf(2.0), leaf(3.0, 4.0)
    assert yoke.grad((x * 2).sum(), [x, w], allow_unused=True)[1] is None
    assert yoke.grad((x * 2).sum(), [x, w], materialize_grads=True)[1].tolist() == [0.0, 0.0]
    with pytest.raises(yoke.ValueError, match="no output depends on input 1.*allow_unused"):
        yoke.grad((x * 2).sum(), [x, w])
    with pytest.raises(yoke.ValueError, match="materialize_grads"):
        yoke.grad((x * 2).sum(), [x, w], materialize_grads=True, allow_unused=False)


def test_a_graph_of_gradients_is_refused_with_what_to_do():
    x = leaf(2.0)
    for call in (lambda: (x * 2).sum().backward(create_graph=True), lambda: yoke.grad((x * 2).sum(), x, create_graph=True),
                 lambda: yoke.autograd.backward((x * 2).sum(), create_graph=True)):
        with pytest.raises(yoke.UnsupportedError, match="'create_graph' is True, but there are no second-order gradients; leave it out"):
            call()
    (x * 2).sum().backward(create_graph=False, retain_graph=None)
    assert x.grad.tolist() == [2.0]


def test_threads_run_the_hooks_of_a_shared_leaf():
    x, seen = yoke.ones(1000).requires_grad_(), []
    x.register_hook(lambda g: seen.append(threading.get_ident()))
    y = x * 2
    barrier = threading.Barrier(4)

    def walk():
        barrier.wait()
        for _ in range(20):
            (y * 1).sum().backward(retain_graph=True)

    threads = [threading.Thread(target=walk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80 and len(set(seen)) == 4 and x.grad[0].item() == 160.0


def test_hooks_are_released_with_their_tensor_or_at_removal():
    class Callable:
        def __call__(self, g):
            return None

    functions = [Callable() for _ in range(3)]
    gone = [weakref.ref(each) for each in functions]
    x, y = leaf(1.0), leaf(1.0)
    handle = x.register_hook(functions[0])
    x.register_hook(functions[1])
    z = y * 2
    z.register_hook(functions[2])
    del functions
    handle.remove()
    gc.collect()
    assert [each() is None for each in gone] == [True, False, False]
    del x, z
    gc.collect()
    assert all(each() is None for each in gone)


def test_a_hook_that_refers_to_its_tensor_ends_with_a_graph_that_no_walk_can_pass_again():
    gone, x = [], leaf(1.0)
    for _ in range(3):
        y = x * x
        seen = []
        y.register_hook(lambda g, y=y, seen=seen: seen.append(y.tolist()))
        loss = (y * 2).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        assert seen == [[1.0], [1.0]]
        gone.append(weakref.ref(y))
        del y, loss
    gc.collect()
    assert all(each() is None for each in gone)
    z = x + 1  # keeps nothing, so another backward may pass
    handle = z.register_hook(lambda g: seen.append("z"))
    z.sum().backward()
    (z * 3).sum().backward()
    assert seen[2:] == ["z", "z"]
    handle.remove()


def test_the_release_of_a_long_chain_of_hooks_does_not_recurse():
    x = leaf(1.0)
    for _ in range(20000):
        before = x
        x = x * 1.0
        x.register_hook(lambda g, keep=before: None)
    del before, x
    gc.collect()
