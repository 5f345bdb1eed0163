"""Habits of PyTorch users: such calls work, or the error says how to write the call in Yoke."""

import inspect

import pytest

import yoke
from yoke import nn

CREATORS = {"empty": (), "zeros": (), "ones": (), "rand": (), "randn": (), "randint": (0, 9)}




# ---- Shapes as single numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", CREATORS)
def test_a_shape_may_stand_one_by_one(op):
    make, first = getattr(yoke, op), CREATORS[op]
    assert make(*first, 2, 3).shape == make(*first, (2, 3)).shape == (2, 3)
    assert make(*first, 2, 0, 3, dtype="float64", device="cpu").dtype == yoke.float64
    assert make(*first, 2, 3, yoke.float64).dtype == yoke.float64
    assert make(*first, 4).shape == (4,)
    assert make(*first, 2, 3, dtype=yoke.float32, requires_grad=True).requires_grad


X = yoke.arange(6).reshape(2, 3)


@pytest.mark.parametrize("one, listed", [
    (lambda: X.reshape(3, -1), lambda: X.reshape((3, -1))),
    (lambda: yoke.reshape(X, 3, 2, 1), lambda: yoke.reshape(X, (3, 2, 1))),
    (lambda: X.view(6, 1), lambda: X.view((6, 1))),
    (lambda: X.permute(1, 0), lambda: X.permute((1, 0))),
    (lambda: X.unsqueeze(0).permute(2, 0, -2), lambda: X.unsqueeze(0).permute((2, 0, -2))),
    (lambda: X.expand(4, 2, 3), lambda: X.expand((4, 2, 3))),
    (lambda: X.tile(2, 1), lambda: X.tile((2, 1))),
    (lambda: X.flip(0, 1), lambda: X.flip((0, 1))),
    (lambda: X.pad(1, 2), lambda: X.pad((1, 2))),
    (lambda: X.pad(1, 0, "constant", 7), lambda: X.pad((1, 0), "constant", 7)),
    (lambda: yoke.layer_norm(X.float(), 2, 3, eps=0.5), lambda: yoke.layer_norm(X.float(), (2, 3), eps=0.5)),
    (lambda: yoke.layer_norm(X.float(), 2, 3, yoke.full((2, 3), 2.0)),
     lambda: yoke.layer_norm(X.float(), (2, 3), yoke.full((2, 3), 2.0))),
])
def test_a_list_of_ints_may_stand_one_by_one(one, listed):
    assert one().tolist() == listed().tolist()


def test_a_number_that_may_mean_another_argument_still_does():
    parts = yoke.arange(10).reshape(2, 5).split(2, 1)
    assert [part.shape for part in parts] == [(2, 2), (2, 2), (2, 1)]
    assert yoke.arange(4).roll(1, 0).tolist() == [3, 0, 1, 2]
    assert yoke.full((2, 3), 4).shape == (2, 3) and yoke.zeros((2, 3), None, "cpu").shape == (2, 3)


def test_every_op_of_the_table_keeps_the_rule():
    """Two ints may stand in place of the list if and only if the list is the last required argument and no number may follow."""
    found = set()
    for op in dir(yoke):
        function = getattr(yoke, op)
        if not inspect.isbuiltin(function) or not getattr(function, "__text_signature__", None):
            continue
        names = list(inspect.signature(function).parameters.values())
        lists = [p for p in names if p.name in ("shape", "axes", "reps", "padding", "normalized_shape", "shifts", "size")
                 and p.default is p.empty]
        if lists and names[0].name in ("x", "shape", "low"):
            found.add(op)
            try:
                function(*[X.float() if p.name in ("x", "residual") else 1 for p in names[:names.index(lists[0])]], 1, 2, 1, 1, 1, 1, 1)
            except yoke.TypeError as error:
                assert "takes at most" in str(error) and op in ("split", "roll", "full", "unfold"), (op, str(error))
            except (yoke.ValueError, yoke.IndexError):
                pass  # read as a shape that does not fit
            else:
                assert op not in ("split", "roll", "full", "unfold")
    assert found >= {"zeros", "randint", "reshape", "view", "permute", "expand", "tile", "flip", "pad", "split", "roll",
                     "layer_norm", "full"}


@pytest.mark.parametrize("call, told", [
    (lambda: X.reshape(3, 2.0), "reshape"),
    (lambda: yoke.zeros(2, True), "zeros"),
    (lambda: X.reshape(2, 3, shape=(2, 3)), "argument 'shape' is given twice"),
    (lambda: X.reshape(), r"argument 'shape' is missing: reshape\(x, shape\)"),
    (lambda: X.permute(0), "permute"),
    (lambda: yoke.ones(*[1] * 100), "ones: .*100"),
    (lambda: X.sum(0, True, None, 3, 4), r"takes at most 4 arguments but 6 were given: sum\(x, axis=None, keepdim=False"),
])
def test_what_cannot_be_one_by_one_is_refused(call, told):
    with pytest.raises((yoke.TypeError, yoke.ValueError), match=told):
        call()


# ---- Keywords --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, meant", [
    (lambda: X.sum(axs=0), "axis"),
    (lambda: X.amax(0, keepdm=True), "keepdim"),
    (lambda: yoke.add(X, y_=1), "y"),
    (lambda: yoke.zeros(newshape=(2, 3)), "shape"),
    (lambda: yoke.zeros((2,), dtpye=yoke.float16), "dtype"),
    (lambda: yoke.zeros((2,), require_grad=True), "requires_grad"),
    (lambda: X.clamp(a_min=0), "min"),
    (lambda: X.size(axs=0), "axis"),
    (lambda: X.to(dtyp=yoke.float16), "dtype"),
    (lambda: yoke.tensor([1], device_="cpu"), "device"),
    (lambda: X.float().var(ddof=1), "correction"),
])
def test_an_unknown_keyword_names_the_one_that_was_meant(call, meant):
    with pytest.raises(yoke.TypeError, match=rf"there is no argument '\w+'; did you mean '{meant}'\?: \w+\(.*{meant}"):
        call()


def test_a_keyword_that_is_near_to_nothing_shows_the_signature():
    with pytest.raises(yoke.TypeError, match=r"softmax\(\): there is no argument 'colour'; .*: softmax\(x, axis=-1, dtype=None\)$"):
        yoke.softmax(X, colour=1)
    with pytest.raises(yoke.TypeError, match="there is no argument"):
        yoke.softmax(X, **{"\udc80": 1})


# ---- Spellings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method, dtype", [("half", "float16"), ("bfloat16", "bfloat16"), ("float", "float32"),
                                           ("double", "float64"), ("int", "int32"), ("long", "int64"), ("bool", "bool")])
def test_a_dtype_has_a_method(method, dtype):
    x = yoke.tensor([0.0, 2.5], dtype=yoke.float64)
    y = getattr(x, method)()
    assert str(y.dtype).endswith(dtype) and y.tolist() == x.to(dtype=dtype).tolist()
    assert getattr(y, method)() is y
    leaf = yoke.ones(2).requires_grad_()
    leaf.double().sum().backward()
    assert leaf.grad.tolist() == [1, 1]


def test_a_module_has_the_methods_of_floats():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for method, dtype in (("half", yoke.float16), ("bfloat16", yoke.bfloat16), ("double", yoke.float64), ("float", yoke.float32)):
        assert getattr(net, method)() is net and {p.dtype for p in net.parameters()} == {dtype}
    assert net.cpu() is net
    if not yoke.is_available("cuda"):
        with pytest.raises(yoke.DeviceUnavailableError):
            net.cuda()


def test_sizes_and_axes():
    x = yoke.zeros(2, 3, 4)
    assert x.size() == (2, 3, 4) and x.size(0) == 2 and x.size(-1) == 4 and x.dim() == 3
    assert yoke.tensor(1).size() == () and yoke.tensor(1).dim() == 0
    for axis in (3, -4):
        with pytest.raises(yoke.IndexError, match=f"axis {axis} is out of range for a tensor of 3 axes"):
            x.size(axis)
    with pytest.raises(yoke.TypeError, match="axis"):
        x.size(1.0)


def test_transposed_views():
    assert X.T.tolist() == [[0, 3], [1, 4], [2, 5]] and X.T.shape == (3, 2) and yoke.shares_memory(X, X.T)
    y = yoke.zeros(2, 3, 4)
    assert y.T.shape == (4, 3, 2) and y.mT.shape == (2, 4, 3) and yoke.arange(3).T.tolist() == [0, 1, 2]
    with pytest.raises(yoke.ValueError, match=r"mT\(\): the tensor has 1 axes; .* a matrix"):
        yoke.arange(3).mT
    with pytest.raises(AttributeError):
        X.T = X
    w = yoke.ones(2, 3).requires_grad_()
    (w.T @ yoke.ones(2)).sum().backward()
    assert w.grad.shape == (2, 3)


def test_filling_in_place():
    x = yoke.ones(2, 2)
    assert x.zero_() is x and x.tolist() == [[0, 0], [0, 0]]
    assert x.fill_(3) is x and x[0].zero_() is not None and x.tolist() == [[0, 0], [3, 3]]
    with pytest.raises(yoke.StateError, match="leaf"):
        yoke.ones(1).requires_grad_().zero_()


def test_a_closed_tensor_says_so_whatever_the_spelling():
    x = yoke.ones(2, 2)
    x.close()
    for call in (x.half, x.size, x.dim, x.zero_, x.cuda, lambda: x.T, lambda: x.mT):
        with pytest.raises(yoke.ClosedError):
            call()


# ---- Devices ---------------------------------------------------------------------------------------------------------

no_accelerator = pytest.mark.skipif(yoke.is_available("cuda"), reason="there is a GPU")
accelerator = pytest.mark.skipif(not yoke.is_available("cuda"), reason="there is no GPU")


@no_accelerator
def test_cuda_without_a_gpu_says_why():
    why = yoke.why_unavailable("cuda")
    for call in (X.cuda, lambda: X.cuda(0), lambda: X.cuda(device="cuda:1")):
        with pytest.raises(yoke.DeviceUnavailableError) as told:
            call()
        assert why in str(told.value)
    with pytest.raises(yoke.ValueError, match="'device' is cpu"):
        X.cuda("cpu")


@accelerator
def test_cuda_moves_there():
    assert X.cuda().device.kind == "cuda" and str(X.cuda(0).device) == "cuda:0" and X.cuda(0).cuda(0).tolist() == X.tolist()


def test_is_available_asks_for_an_accelerator():
    assert yoke.is_available() == yoke.is_available("cuda") and yoke.is_available("cpu")
    for word, meant in (("gpu", "cuda"), ("GPU", "cuda"), ("cud", "cuda"), ("cpy", "cpu")):
        with pytest.raises(yoke.ValueError, match=f"there is no device kind '{word}'.*did you mean '{meant}'"):
            yoke.is_available(word)


@pytest.fixture
def on_cpu():
    before = yoke.current_device()
    yoke.set_device("cpu")
    yield
    yoke.set_device(before)


@no_accelerator
def test_a_bare_index_is_never_the_cpu(on_cpu):
    with pytest.raises(yoke.DeviceUnavailableError, match=r"index 0 is not a device.*\"cpu\".*cuda: "):
        yoke.set_device(0)
    with pytest.raises(yoke.IndexError):
        yoke.set_device(-1)
    assert yoke.current_device().kind == "cpu"


@accelerator
def test_a_bare_index_is_an_accelerator(on_cpu):
    yoke.set_device(0)
    assert str(yoke.current_device()) == "cuda:0"
    with pytest.raises(yoke.IndexError):
        yoke.set_device(1000)


P = yoke.nn.Parameter(yoke.ones(2))


@pytest.mark.parametrize("make, told", [
    (lambda: yoke.nn.Softmax(axes=1), r"Softmax\(\): there is no argument 'axes'; did you mean 'axis'\?: Softmax\(axis=-1\)"),
    (lambda: yoke.nn.Linear(2, 3, biass=True), "did you mean 'bias'"), (lambda: yoke.nn.Dropout(prob=0.1), r"Dropout\(p"),
    (lambda: yoke.nn.LayerNorm(3, epsilon=1), "no argument 'epsilon'"),
    (lambda: yoke.optim.SGD([P], lr=0.1, nestrov=True), "did you mean 'nesterov'"),
    (lambda: yoke.optim.Adam([P], learning_rate=1e-3), r"no argument 'learning_rate'.*Adam\(params, lr=0\.001, "),
    (lambda: yoke.optim.schedule.cosine(None, total_step=3), "did you mean 'total_steps'"),
    (lambda: yoke.optim.EMA([P], decaj=0.9), "did you mean 'decay'"), (lambda: yoke.GradScaler(init_scal=2), "'init_scale'"),
    (lambda: yoke.Timer(print, secs=1), r"Timer\(fn, device=None, seconds=0\.5, warmup=3\)"), (lambda: yoke.autocast(dtpe="float16"), "'dtype'"),
    (lambda: yoke.autocast("cuda", dtype=yoke.float16), "the first argument is the device 'cuda'; leave it out"),
    (lambda: yoke.autocast(device_type="cuda"), r"no argument 'device_type'.*autocast\(dtype=None, \*, enabled=True, cache_enabled=True\)"),
])
def test_classes_say_of_a_keyword_which_one_is_near(make, told):
    with pytest.raises(yoke.TypeError, match=told):
        make()


def test_a_class_that_takes_any_keyword_takes_any():
    class Net(yoke.nn.Module):
        def __init__(self, *sizes, **options):
            self.options = options
    assert Net(3, depth=2).options == {"depth": 2}


def test_a_dtype_may_be_named_and_no_grad_may_stand_without_brackets():
    assert yoke.ones(2).to("float16").dtype is yoke.float16 and yoke.ones(2).to("cpu").dtype is yoke.float32
    with pytest.raises(yoke.ValueError, match="device spec 'flaot16'.*dtype 'float16'"):
        yoke.ones(2).to("flaot16")

    @yoke.no_grad
    def halves(x):
        """Half."""
        return x / 2

    @yoke.enable_grad
    def doubles(x):
        return x * 2
    assert not halves(P).requires_grad and halves.__doc__ == "Half."
    with yoke.no_grad():
        assert doubles(P).requires_grad


# ---- Formats ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [yoke.float64, yoke.float32, yoke.float16, yoke.bfloat16, yoke.float8_e4m3, yoke.int64, yoke.int32,
                                   yoke.int8, yoke.uint8, yoke.bool], ids=str)
def test_a_tensor_of_no_axes_is_written_as_its_number(dtype):
    x = yoke.tensor(1, dtype=dtype)
    for spec in (".3f", "8.2e", "+.1%", "g", "<9.3f"):
        assert format(x, spec) == format(x.item(), spec) and format(nn.Parameter(x, False), spec) == format(x.item(), spec)
    if not dtype.is_floating_point:
        assert f"{x:03d}" == "001" and f"{x:x}" == "1"


def test_a_loss_is_written_while_it_is_recorded():
    loss = (yoke.ones(3, requires_grad=True) * 1.25).sum()
    assert f"{loss:.3f}" == "3.750" and f"{loss}" == str(loss) and "%.1f" % loss == "3.8"
    assert f"{yoke.ones(2)}" == str(yoke.ones(2)) and "{:>8.2f}".format(yoke.tensor(float("nan"))) == "     nan"


def test_a_tensor_with_axes_has_no_format():
    for x in (yoke.ones(1), yoke.ones(2), yoke.ones((0,))):
        with pytest.raises(yoke.TypeError, match=r"format\(\): the format '\.3f' .*shape \(\d,\); write x\.item\(\)"):
            f"{x:.3f}"
    with pytest.raises(ValueError, match="format"):
        f"{yoke.tensor(1.5):d}"
    closed = yoke.ones(())
    closed.close()
    with pytest.raises(yoke.ClosedError):
        f"{closed:.3f}"
