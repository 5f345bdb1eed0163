"""Common behaviour of all classes of nn, optim, schedules and samplers: every public class is in each test."""

import inspect
import itertools

import pytest

import yoke
from yoke import nn, optim

P = nn.Parameter(yoke.ones(2))

# Values of arguments without a default, by name.
SIZES = {"num_groups": 2, "num_heads": 2, "kernel_size": 1, "output_size": 1, "unflattened_size": (4,)}


def public_classes(module, base=object):
    return [value for name, value in sorted(vars(module).items())
            if name in module.__all__ and inspect.isclass(value) and issubclass(value, base)]


LAYERS = [c for c in public_classes(nn, nn.Module) if c is not nn.Module]
CLASSES = [*public_classes(nn, nn.Module), *public_classes(optim), *public_classes(optim.schedule), yoke.data.DistributedSampler,
           yoke.GradScaler, yoke.DistributedDataParallel, yoke.Graph, yoke.autocast, yoke.checkpoint_scope, yoke.MemoryBudget]
CLASSES = [c for c in CLASSES if not issubclass(c, (yoke.Tensor, tuple)) and c is not nn.Identity]  # which takes any arguments


def made(layer):
    """The layer with small sizes."""
    parameters = list(inspect.signature(layer.__init__).parameters.values())[1:]
    return layer(*[SIZES.get(p.name, 4) for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD])


class Holder(nn.Module):
    """A layer, a tied parameter and a buffer."""

    def __init__(self, layer):
        self.layer = layer
        self.own = nn.Parameter(yoke.ones(3))
        self.tied = self.own
        self.register_buffer("mean", yoke.zeros(2))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_a_keyword_that_a_class_lacks_is_refused(cls):
    with pytest.raises(yoke.TypeError, match=rf"{cls.__name__}\(\): there is no argument 'nonsense'"):
        cls(*[nn.Linear(1, 1)] * (cls is yoke.DistributedDataParallel), nonsense=1)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_arguments_for_which_a_class_has_no_place_are_refused(cls):
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    if cls.__init__ is object.__init__:
        parameters = []
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        pytest.skip("it takes any number")
    places = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
    by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    said = rf"'{by_name[0]}' must be given by name.*such as {by_name[0]}=" if by_name else f"takes (?:at most {places}|no) arguments? but {places + 1}"
    with pytest.raises(yoke.TypeError, match=said):
        cls(*[0] * (places + 1))


def test_the_reason_for_arguments_by_name_is_that_of_the_class():
    class Net(nn.Module):
        def __init__(self, width, *, depth=2):
            self.width = width

    class Narrow(nn.Embedding):
        pass
    with pytest.raises(yoke.TypeError) as told:
        Net(3, 4)
    assert str(told.value) == "Net(): argument 'depth' must be given by name; write depth=…: Net(width, *, depth=2)"
    for wrong in (lambda: nn.Embedding(2, 2, 0, 1), lambda: yoke.data.DistributedSampler(1, 1), lambda: Narrow(2, 2, 0, 1), lambda: optim.Adam([P], 1, (0, 0), 0, 0, True)):
        with pytest.raises(yoke.TypeError, match="must be given by name, because PyTorch has another argument in its place; write"):
            wrong()


def test_the_error_says_what_was_assigned():
    net = Holder(nn.Linear(2, 2))
    for name in ("own", "mean", "layer"):
        for value, told in ((print, "a value of type builtin_function_or_method"), (3, "3"), ([1], "a value of type list")):
            with pytest.raises(yoke.TypeError, match=f"cannot assign {told} as "):
                setattr(net, name, value)
    for value, told in ((nn.ReLU(), "a value of type ReLU"), (yoke.ones(2, 3), r"a yoke.float32 tensor of shape \[2, 3\]")):
        with pytest.raises(yoke.TypeError, match=f"cannot assign {told} as parameter 'own'"):
            net.own = value


def test_networks_of_ones_own_refuse_them_too():
    class Net(nn.Module):
        def __init__(self, width):
            self.layer = nn.Linear(width, 1)

    class Bare(nn.Module):
        pass

    for wrong in (lambda: Net(2, wdith=3), lambda: Net(2, 3), lambda: Net(2, width=2), lambda: Bare(1), lambda: Bare(width=1)):
        with pytest.raises(yoke.TypeError, match="Net|Bare"):
            wrong()
    assert Net(width=2).layer.weight.shape == (1, 2) and isinstance(Bare(), nn.Module)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda c: c.__name__)
def test_what_is_no_parameter_does_not_take_the_place_of_one(layer):
    net = Holder(made(layer))
    before = {name: value.tolist() for name, value in net.state_dict().items()}
    for owner in net.modules():
        for name, value in owner._parameters.items():
            for wrong in (yoke.ones(2), 3, "text", nn.ReLU()):
                with pytest.raises(yoke.TypeError, match=rf"cannot assign .* as parameter '{name}' \(Parameter or None expected\); write nn.Parameter"):
                    setattr(owner, name, wrong)
        for name in owner._buffers:
            with pytest.raises(yoke.TypeError, match=rf"cannot assign .* as buffer '{name}' \(tensor or None expected\)"):
                setattr(owner, name, [1.0])
        for name in owner._modules:
            for wrong in (yoke.ones(2), print):
                with pytest.raises(yoke.TypeError, match=rf"cannot assign .* as child module '{name}' \(Module or None expected\)"):
                    setattr(owner, name, wrong)
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before


def test_what_may_take_the_place_does():
    net = Holder(nn.Linear(4, 4))
    names = [name for name, _ in net.named_parameters()]
    net.own = nn.Parameter(yoke.zeros(3))
    assert [name for name, _ in net.named_parameters()][:2] == ["own", "tied"] and net.own is not net.tied
    net.mean = nn.Parameter(yoke.ones(2))  # as in PyTorch: a parameter takes the place of a buffer
    assert "mean" in dict(net.named_parameters()) and "mean" not in dict(net.named_buffers())
    net.mean = None
    with pytest.raises(yoke.TypeError, match="as parameter 'mean'"):
        net.mean = yoke.ones(2)
    del net.mean
    net.mean = yoke.ones(2)  # an attribute like any other now
    assert "mean" not in net.state_dict() and names[0] == "own"
    net.layer = None
    net.layer = "none"
    assert net.layer == "none" and not list(net.children())


MOVES = [("double", yoke.float64), ("half", yoke.float16), ("bfloat16", yoke.bfloat16), ("float", yoke.float32)]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda c: c.__name__)
def test_a_network_that_moves_keeps_its_parameters(layer):
    net = Holder(made(layer))
    before = dict(net.named_parameters())
    for parameter in before.values():
        parameter.grad = yoke.ones(parameter.shape)
    for name, dtype in MOVES:
        assert getattr(net, name)() is net
        after = dict(net.named_parameters())
        assert list(after) == list(before) and all(after[name] is before[name] for name in before)
        assert all(p.dtype is dtype and p.grad.dtype is dtype and p.requires_grad and p.is_leaf for p in after.values())
        assert all(b.dtype is dtype for b in net.buffers() if b.dtype.is_floating_point) and net.tied is net.own
    assert net.cpu() is net and net.to("float64") is net and net.own.dtype is yoke.float64 and net.own.grad.tolist() == [1, 1, 1]
    assert sorted(net.state_dict()) == sorted([*before, "tied", *[name for name, _ in net.named_buffers()]])


def test_one_walk_after_another_over_all_layers_trains_what_was_moved():
    for layer, (name, _) in itertools.product(LAYERS, MOVES[:1]):
        net = Holder(made(layer))
        optimizer = optim.SGD(net.parameters(), lr=0.5)
        getattr(net, name)()
        (net.own * 2).sum().backward()
        optimizer.step()
        assert net.own.tolist() == [0, 0, 0]


def test_no_name_of_a_member_is_taken_over_by_another_kind():
    net = nn.Linear(2, 2)
    with pytest.raises(yoke.ValueError, match="'weight' is a parameter of this Linear; del module.weight first"):
        net.register_buffer("weight", yoke.ones((2, 2)))
    assert [name for name, _ in net.named_parameters()] == ["weight", "bias"]
    net.register_buffer("scale", yoke.ones(()))
    net.register_buffer("scale", yoke.zeros(()))
    with pytest.raises(yoke.ValueError, match="'scale' is a buffer"):
        net.register_parameter("scale", nn.Parameter(yoke.ones(())))
    net.register_parameter("bias", None)
    net.register_buffer("bias", yoke.zeros((2,)))
    assert "bias" in dict(net.named_buffers())


def test_a_parameter_takes_other_values_and_stays_the_same_object():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    weight.data = yoke.zeros((2, 2))
    assert layer.weight is weight and weight.tolist() == [[0, 0], [0, 0]] and weight.requires_grad
    weight.no_decay = True  # a script's own mark
    assert weight.no_decay


def test_optimizers_say_what_was_meant():
    net = nn.Linear(2, 2)
    with pytest.raises(yoke.TypeError, match="net.parameters()"):
        yoke.optim.SGD(net.named_parameters(), lr=0.1)
    used = net.parameters()
    list(used)
    with pytest.raises(yoke.ValueError, match="used once"):
        yoke.optim.SGD(used, lr=0.1)
