"""Inputs of a careless or hostile script to the binding: the script gets an error, unchanged if the script raised it, and the host
program goes on.

Cases that used to end Python run in a child process, so that such a test cannot hide other tests.
"""

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
import textwrap
from unittest import mock

import pytest

import yoke
from yoke import _yoke, nn, optim


def objects():
    """Returns an object of each class of the binding."""
    x = nn.Parameter(yoke.ones(2))
    options = {"lr": 0.1, "momentum": 0, "weight_decay": 0, "nesterov": False, "master_weights": False}
    region, scope = _yoke._AutocastRegion(None, True, True), _yoke._CheckpointScope("full", [], None, None, False)
    return [yoke.device("cpu"), yoke.current_stream(), yoke.Event(), _yoke._Graph(None), _yoke._Optimizer("SGD", options),
            _yoke._GradScaler((2.0, 2.0, 0.5, 10, 0)), _yoke._Ema([x], 0.9), region,
            scope, _yoke._MemoryBudget("0.5"), _yoke._Modes(False, None, region, scope, None, (), ())]


def in_child(code):
    """Returns the output of a script in a separate process, which must end well."""
    done = subprocess.run([sys.executable, "-c", "import yoke\n" + textwrap.dedent(code)], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stdout}\n{done.stderr}"
    return done.stdout


# ---- Objects without __init__ ----------------------------------------------------------------------------------------


def test_an_object_that_init_never_saw_is_refused_as_receiver_and_argument():
    in_child("""
        from yoke import _yoke
        classes = [each for each in vars(_yoke).values() if isinstance(each, type) and each.__module__ == "yoke._yoke"]
        assert len(classes) >= 9, classes
        for made in classes:
            empty = made.__new__(made)
            for name in dir(made):
                if name.startswith("__"):
                    continue
                try:
                    member = getattr(empty, name)
                    for arguments in ((), (empty,), (empty, empty), (0, 0, "x"), (0, 0, "x", None)):
                        try:
                            member(*arguments)
                        except TypeError:
                            pass
                except TypeError:
                    pass
            for call in (repr, str, hash, lambda e: e == e, lambda e: e.__enter__(), lambda e: e.__exit__(None, None, None),
                         lambda e: yoke.zeros(2, device=e), lambda e: yoke.tensor([1.0], device=e), lambda e: yoke.zeros(2).to(e),
                         lambda e: yoke.set_device(e), lambda e: yoke.set_stream(e), lambda e: yoke.stream(e).__enter__(),
                         lambda e: yoke.zeros(2).record_stream(e), lambda e: yoke.Event().record(e), lambda e: yoke.Event().wait(e),
                         lambda e: yoke.Event().elapsed_time(e), lambda e: yoke.current_stream().wait_event(e),
                         lambda e: yoke.current_stream().wait_stream(e), lambda e: yoke.current_stream() == e,
                         lambda e: yoke.memory_allocated(e), lambda e: yoke.lease_holder(e), lambda e: yoke.Graph(e)):
                try:
                    call(empty)
                except (TypeError, AttributeError):
                    pass
        """)


def test_what_only_says_that_it_is_a_device_is_none():
    in_child("""
        from unittest import mock
        class Raises:
            @property
            def __class__(self):
                raise KeyError("asked for my class")
        for call in (lambda v: yoke.zeros(2, device=v), lambda v: yoke.zeros(2).to(v), yoke.memory_allocated,
                     lambda v: yoke.zeros(2).record_stream(v), lambda v: yoke.Event().record(v), yoke.set_stream,
                     lambda v: yoke.current_stream() == v):
            for value in (mock.Mock(spec=yoke.Device), mock.Mock(spec=yoke.Stream), Raises()):
                try:
                    call(value)
                except (TypeError, KeyError):
                    pass
        """)


def test_the_base_of_all_classes_has_no_instances():
    in_child("""
        base = yoke.Stream.__base__
        class Derived(base):
            pass
        for make in (base, Derived, lambda: base.__new__(base), lambda: base.__new__(Derived)):
            try:
                make()
            except TypeError:
                continue
            raise AssertionError("made one")
        """)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_objects_of_the_process_are_not_pickled(protocol):
    in_child(f"""
        import pickle, sys
        sys.path.insert(0, "tests/python")
        from test_guest import objects
        for each in [*objects(), yoke.Graph()]:
            if isinstance(each, yoke.Device):
                assert pickle.loads(pickle.dumps(each, {protocol})) is each
                continue
            try:
                pickle.dumps(each, {protocol})
            except TypeError as error:
                assert "pickle" in str(error), error
            else:
                raise AssertionError(type(each))
        """)


def test_objects_of_the_process_are_not_copied():
    for each in objects():
        if isinstance(each, yoke.Device):
            assert copy.copy(each) is each and copy.deepcopy(each) is each
            continue
        for function in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"a .*{type(each).__name__} can neither be copied nor pickled"):
                function(each)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_scaler_is_pickled_as_its_state(protocol):
    scaler = yoke.GradScaler(init_scale=8.0, growth_interval=7, enabled=True)
    again = pickle.loads(pickle.dumps(scaler, protocol))
    assert again.state_dict() == scaler.state_dict() and again.get_growth_interval() == 7 and again.is_enabled()
    assert copy.deepcopy(scaler).get_scale() == 8.0
    assert not pickle.loads(pickle.dumps(yoke.GradScaler(enabled=False), protocol)).is_enabled()


# ---- Failing conversions ---------------------------------------------------------------------------------------------


class Own(Exception):
    """Error of the values below, which must come out unchanged."""


def raising(name, *others, base=object, kind=Own):
    """Returns an object whose special method of this name raises. The methods in `others` work, so that a caller reaches the first."""
    def method(self, *arguments):
        raise kind("on purpose")

    fine = {"__len__": lambda self: 2, "__index__": lambda self: 1, "__getitem__": lambda self, i: 1,
            "__float__": lambda self: 1.0, "__dlpack_device__": lambda self: (1, 0), "__dlpack__": lambda self: None}
    return type(f"Raises{name}", (base,), {name: method, **{other: fine[other] for other in others}})()


def numpy_like():
    def refuse(self):
        raise Own("on purpose")

    return type("numpy.bool_", (), {"__bool__": refuse, "__float__": refuse})()


X = yoke.arange(6, dtype=yoke.float32).reshape((2, 3))


@pytest.mark.parametrize("call", [
    lambda: yoke.add(X, numpy_like()), lambda: X + numpy_like(), lambda: X[numpy_like()], lambda: yoke.tensor(numpy_like()),
    lambda: yoke.tensor([numpy_like()]), lambda: yoke.sum(X, keepdim=numpy_like()), lambda: yoke.zeros(2, requires_grad=numpy_like()),
    lambda: yoke.full((2,), numpy_like()), lambda: X.requires_grad_(numpy_like()), lambda: yoke.set_caching(numpy_like()),
    lambda: X.__setitem__(0, numpy_like()), lambda: yoke.clamp(X, numpy_like()),
    *[lambda kind=kind: yoke.add(X, raising("__float__", kind=kind)) for kind in (Own, OverflowError, SystemExit)],
    lambda: yoke.add(X, raising("__index__")), lambda: yoke.zeros(raising("__index__")), lambda: yoke.zeros((1, raising("__index__"))),
    lambda: yoke.zeros(raising("__getitem__", "__len__")), lambda: yoke.zeros(raising("__len__", "__getitem__", base=list)),
    lambda: X[raising("__index__")], lambda: X[raising("__index__"):], lambda: X[[raising("__index__")]],
    lambda: X[raising("__len__", base=list)], lambda: X[raising("__len__", "__getitem__")],
    lambda: yoke.tensor([raising("__float__")]), lambda: yoke.tensor([raising("__float__")], dtype=yoke.int32),
    lambda: yoke.tensor([raising("__float__", kind=OverflowError)], dtype=yoke.int64),
    lambda: yoke.tensor([raising("__float__", kind=OverflowError)], dtype=yoke.float16),
    lambda: yoke.tensor([raising("__index__")]), lambda: yoke.tensor([raising("__index__")], dtype=yoke.bfloat16),
    lambda: yoke.tensor(raising("__getitem__", "__len__")), lambda: X.__setitem__(0, raising("__float__")),
    lambda: yoke.cat(raising("__getitem__", "__len__")), lambda: yoke.grad(raising("__getitem__", "__len__"), X),
    lambda: yoke.manual_seed(raising("__index__")), lambda: yoke.set_num_threads(raising("__index__")),
    lambda: yoke.Stream(priority=raising("__index__")), lambda: yoke.shutdown(raising("__float__")),
    lambda: yoke.data.read_idx(raising("__fspath__")), lambda: yoke.doctor_record(raising("__fspath__")),
    lambda: yoke.from_dlpack(raising("__dlpack_device__", "__dlpack__")), lambda: yoke.from_dlpack(raising("__dlpack__", "__dlpack_device__")),
    lambda: yoke.from_dlpack(type("P", (), {"__dlpack__": property(lambda self: (_ for _ in ()).throw(Own("on purpose")))})()),
    lambda: optim.Adam([nn.Parameter(X)], betas=raising("__len__", "__getitem__")),
    lambda: optim.SGD([nn.Parameter(X)], lr=raising("__float__")), lambda: yoke.dropout(X, raising("__float__")),
])
def test_what_an_argument_raises_comes_out_as_it_is(call):
    with pytest.raises((Own, OverflowError, SystemExit), match="on purpose"):
        call()


def test_numbers_that_do_not_fit_are_still_told_by_name():
    for call in (lambda: yoke.add(X, 10**400), lambda: yoke.tensor([10**400], dtype=yoke.float32),
                 lambda: yoke.tensor([10**30]), lambda: yoke.manual_seed(2**64), lambda: yoke.manual_seed(-2**63 - 1)):
        with pytest.raises(yoke.ValueError):
            call()
    for seed in (-2**63, -1, 0, 2**63, 2**64 - 1):
        yoke.manual_seed(seed)


@pytest.mark.parametrize("call", [
    lambda: yoke.device("cpu\0x"), lambda: yoke.zeros(2, dtype="float32\0x"), lambda: yoke.zeros(2, device="cpu\0x"),
    lambda: yoke.data.read_idx("/tmp/x\0y"), lambda: yoke.data.read_idx(b"/tmp/x\0y"), lambda: yoke.doctor_record("/tmp/x\0y"),
    lambda: yoke.doctor_record(b"/tmp/x\0y"), lambda: yoke.config_get("YOKE_LOG\0x"), lambda: yoke.config_set("YOKE_LOG", "warn\0x"),
    lambda: yoke.explain("auto\0x"), lambda: yoke.select(1, same="x\0y"), lambda: yoke.is_available("cpu\0x"),
    lambda: yoke.catalog_find("H200\0x", 0), lambda: yoke.lease_holder("GPU\0x"), lambda: yoke.disable("cuda\0x"),
    lambda: yoke.device("cpu").supports("float32", "compute\0x"), lambda: yoke.checkpoint_scope("full\0x"),
    lambda: yoke.checkpoint_scope(["gelu\0x"]), lambda: yoke.save("/tmp/x\0y", 1), lambda: yoke.load("/tmp/x\0y"),
    lambda: yoke.load("/tmp/x", names="a\0b"),
])
def test_a_string_with_a_nul_is_shown_and_not_cut(call):
    with pytest.raises(ValueError, match=r"\\x00"):
        call()


# ---- Modules in cycles -----------------------------------------------------------------------------------------------


def cycle():
    net = nn.Sequential(nn.Linear(2, 2))
    child = nn.Sequential()
    net.child, child.parent = child, net
    return net


def test_a_module_that_holds_itself_is_walked_once():
    net = cycle()
    assert [name for name, _ in net.named_modules()] == ["", "0", "child"] and len(list(net.modules())) == 3
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"] and not list(net.buffers())
    seen = []
    assert net.apply(seen.append) is net and seen == [net[0], net.child, net]
    assert not net.eval().child.training and net.train().child.training
    net.requires_grad_(False).to(yoke.float64).zero_grad()
    assert net[0].weight.dtype is yoke.float64
    assert "(child)" in repr(net) and "holds itself" in repr(net)
    other = copy.deepcopy(net)
    assert other.child.parent is other and other is not net


def test_a_module_that_holds_itself_has_no_state_dict():
    own = nn.Sequential()
    own.me = own
    for net, name in ((cycle(), "child.parent"), (own, "me")):
        for call, argument in ((net.state_dict, ()), (net.load_state_dict, ({},))):
            with pytest.raises(yoke.ValueError, match=f"the module '{name}' contains itself"):
                call(*argument)
    gc.collect()


def test_a_shared_module_stands_under_each_name_and_is_entered_once():
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, shared)
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    for _ in range(60):  # 2^60 paths lead to the layer
        net = nn.Sequential(net, net)
    assert len(list(net.parameters())) == 2 and len(list(net.modules())) == 62
    net.eval().to(yoke.float64)
    assert shared.weight.dtype is yoke.float64


# ---- Host programs with a decimal comma ------------------------------------------------------------------------------


def test_texts_are_the_same_where_the_host_writes_a_comma_for_the_point(comma_locale, tmp_path):
    script = """
        import json, locale, pathlib, re, sys, warnings
        if sys.argv[1]:
            locale.setlocale(locale.LC_ALL, sys.argv[1])
            assert locale.localeconv()["decimal_point"] == ","
        yoke.config_set("YOKE_NVML_TIMEOUT", "1.5")
        x = yoke.full((2, 2), 1.5)
        texts = []
        for call in (lambda: yoke.dropout(x, 1.5), lambda: yoke.norm(yoke.zeros((2, 0)), -1.5),
                     lambda: yoke.binary_cross_entropy(x, x), lambda: yoke.arange(0.5, 2.5, -0.5),
                     lambda: yoke.optim.SGD([yoke.nn.Parameter(x)], lr=-0.5), lambda: yoke.shutdown(-0.5),
                     lambda: yoke.device("auto:min_free=1,5GiB")):
            try:
                call()
            except yoke.Error as error:
                texts.append(str(error))
            else:
                raise AssertionError(len(texts))
        texts.append(str(yoke.explain("auto:min_free=1.5GiB,max_util=2.5%")))
        texts += [repr(x), str(yoke.topology()), str(yoke.tensor(0.1).item())]
        yoke.doctor_record(sys.argv[2])
        folder = pathlib.Path(sys.argv[2])
        for path in sorted(folder.rglob("*.json")):
            json.loads(path.read_text())
        host = folder / "root/yoke/host"
        texts.append(re.search("quota .*", host.read_text())[0])
        texts += [check.title + check.evidence + check.remedy for check in yoke.doctor().checks if check.id == "cgroup"]
        print(json.dumps(texts))
        """
    def texts(name, folder):
        variables = {**os.environ, "LOCPATH": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", "import yoke\n" + textwrap.dedent(script), name, str(tmp_path / folder)],
                              capture_output=True, text=True, timeout=120, env=variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    plain, comma = texts("", "plain"), texts("de_DE.utf8", "comma")
    assert any("1.5" in text for text in plain) and any("-0.5" in text for text in plain)
    assert comma == plain


def test_lists_that_hold_themselves_are_ragged_or_too_deep():
    nest = []
    nest.append(nest)
    with pytest.raises(yoke.ValueError, match="nested more than|ragged"):
        yoke.tensor(nest)
    with pytest.raises(yoke.ValueError, match="nested more than|ragged"):
        yoke.tensor([1.0, nest])
    with pytest.raises((yoke.ValueError, RecursionError)):
        X[nest]
    with pytest.raises((TypeError, RecursionError)):
        yoke.GradScaler().scale(nest)


def test_a_mock_of_a_class_is_no_object_of_it():
    with pytest.raises(yoke.TypeError, match="device"):
        yoke.zeros(2, device=mock.Mock(spec=yoke.Device))
