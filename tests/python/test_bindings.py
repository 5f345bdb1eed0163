"""Every public call of the Python package refuses arguments with its own error, which has the name of the call and of the argument."""

import inspect
import types

import pytest

import yoke
from yoke import nn, optim
from yoke._named import EACH_STEP

MODULES = {"yoke": yoke, "nn": nn, "init": nn.init, "optim": optim, "schedule": optim.schedule, "comm": yoke.comm, "data": yoke.data}
# Other names are constraints, go to the function, or take the place of a layer that had arguments.
SPECIAL = ("select", "checkpoint", "no_grad", "enable_grad", "Identity")


def public_calls():
    """Functions and classes that Python code of the package defines; a list or a tuple is a result, which no script makes."""
    found = {}
    for prefix, module in MODULES.items():
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if not isinstance(value, (types.FunctionType, type)) or not value.__module__.startswith("yoke.") or value.__module__ == "yoke._yoke":
                continue
            if isinstance(value, type) and issubclass(value, (list, tuple, BaseException)):
                continue
            found.setdefault(value, f"{prefix}.{name}")
    return {path: value for value, path in found.items()}


CALLS = public_calls()
METHODS = {f"{path}.{name}": method for path, cls in CALLS.items() if isinstance(cls, type)
           for name, method in vars(cls).items() if name[0] != "_" and name != "forward" and name not in EACH_STEP and isinstance(method, types.FunctionType)}


def required(call):
    return [p.name for p in inspect.signature(call).parameters.values() if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def test_the_walk_finds_the_calls():
    assert {"yoke.load", "yoke.CheckpointManager", "nn.Conv2d", "optim.SGD", "schedule.linear", "comm.init", "comm.Group", "data.read_idx"} <= set(CALLS)
    assert {"comm.Group.all_reduce", "optim.Optimizer.add_param_group", "nn.Module.load_state_dict", "yoke.GradScaler.scale"} <= set(METHODS)


@pytest.mark.parametrize("path", [path for path in CALLS if path.split(".")[-1] not in SPECIAL])
def test_an_unknown_keyword_is_named(path):
    call, name = CALLS[path], path.split(".")[-1]
    some = (nn.Linear(1, 1), ) if name == "DistributedDataParallel" else ()
    with pytest.raises(yoke.TypeError, match=rf"{name}\(\): there is no argument 'nonsense'"):
        call(*some, nonsense=1)


@pytest.mark.parametrize("path", [path for path, call in CALLS.items() if required(call)])
def test_a_missing_argument_is_named(path):
    call, name = CALLS[path], path.split(".")[-1]
    with pytest.raises(yoke.TypeError, match=rf"{name}\(\): argument '{required(call)[0]}' is missing: .*{name}\({required(call)[0]}") as told:
        call()
    assert isinstance(told.value, TypeError) and told.value.__context__ is None


@pytest.mark.parametrize("path", METHODS)
def test_a_method_names_an_unknown_keyword(path):
    """The object is made without __init__, because the method is not entered."""
    if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(METHODS[path]).parameters.values()):
        pytest.skip("it takes any keyword")
    cls = CALLS[path.rpartition(".")[0]]
    own = object.__new__(cls)
    if cls is yoke.comm.Group:
        own._core = types.SimpleNamespace(note_refused=lambda *_: None)
    with pytest.raises(yoke.TypeError, match=rf"^{path.split('.')[-1]}\(\): there is no argument 'nonsense'") as told:
        METHODS[path](own, nonsense=1)
    assert isinstance(told.value, TypeError)


def test_the_text_shows_how_the_call_is_written():
    layer = nn.Linear(2, 2)
    for call, text in (
            (lambda: nn.Linear(3), "Linear(): argument 'out_features' is missing: Linear(in_features, out_features, bias=True, device=None, dtype=None)"),
            (lambda: nn.Embedding(3), "Embedding(): argument 'embedding_dim' is missing: Embedding(num_embeddings, embedding_dim, padding_idx=None, *, device=None, dtype=None)"),
            (lambda: optim.schedule.linear(None, 1, 0), "schedule.linear(): argument 'total_steps' is missing: schedule.linear(optimizer, start, end, total_steps)"),
            (lambda: nn.init.ones_(1, 2, 3), "ones_(): takes at most 1 argument but 3 were given: ones_(tensor)"),
            (lambda: layer(), "Linear.forward(): argument 'x' is missing: Linear.forward(x)"),
            (lambda: layer(1, 2), "Linear.forward(): takes at most 1 argument but 2 were given: Linear.forward(x)")):
        with pytest.raises(yoke.TypeError) as told:
            call()
        assert str(told.value) == text


def test_the_class_in_the_text_is_one_that_the_script_has_written():
    class Small(nn.Conv2d):
        def __init__(self):
            super().__init__(3)

    class Own(nn.Conv2d):
        pass
    for call, name in ((lambda: nn.Conv2d(3, 4), "Conv2d"), (Small, "Conv2d"), (Own, "Own"), (optim.AdamW, "AdamW")):
        with pytest.raises(yoke.TypeError, match=rf"^{name}\(\): argument '.*' is missing: {name}\("):
            call()


def test_an_error_inside_a_call_stays_as_it_is():
    class Net(nn.Module):
        def forward(self, x):
            return len(x, x)

    wrong = TypeError("my own")

    def step(*_):
        raise wrong
    with pytest.raises(TypeError, match=r"len\(\) takes exactly one argument") as told:
        Net()(1)
    assert not isinstance(told.value, yoke.Error)
    with pytest.raises(TypeError) as told:
        yoke.checkpoint(step)
    assert told.value is wrong
    with pytest.raises(TypeError, match="step_fn|missing") as told:  # a function of the script, called with too few arguments
        yoke.Timer(lambda needed: needed, warmup=1).run()
    assert not isinstance(told.value, yoke.Error)


def test_the_words_of_pytorch_for_collectives_are_translated():
    group, = yoke.comm.init_all(["cpu"])
    x = yoke.ones(2)
    for call, ours in ((lambda: group.broadcast(x, src=0), "root"), (lambda: group.reduce(x, dst=0), "root"), (lambda: group.all_reduce(tensor=x), "t"),
                       (lambda: group.all_gather(output_tensor=x, t=x), "out")):
        with pytest.raises(yoke.TypeError, match=rf"\(\): there is no argument '\w+'; did you mean '{ours}'\?"):
            call()


def test_signatures_stay_visible():
    assert list(inspect.signature(nn.Linear).parameters) == ["in_features", "out_features", "bias", "device", "dtype"]
    assert list(inspect.signature(yoke.comm.Group.broadcast).parameters) == ["self", "t", "root", "async_op"]
    assert "Copies `t` of rank" in yoke.comm.Group.broadcast.__doc__


def test_a_class_of_a_script_keeps_its_methods():
    class Net(nn.Module):
        def __init__(self, width):
            self.width = width

        def grow(self, by):
            self.width += by
    assert not hasattr(Net.__init__, "__wrapped__") and not hasattr(Net.grow, "__wrapped__")
    assert hasattr(nn.Linear.__init__, "__wrapped__") and not hasattr(nn.Linear.forward, "__wrapped__")
