"""Trees of plain values and tensors: a file gives them back unchanged, and an unsavable value is refused by its place."""
import collections
import enum
import json
import math
import os
import struct

import numpy as np
import pytest

import yoke
from stored_files import packed, read


@pytest.fixture
def again(tmp_path):
    def again(value, **options):
        yoke.save(tmp_path / "file", value)
        return yoke.load(tmp_path / "file", **options)
    return again


def shown(value):
    """Returns a value with all its distinctions: types, signs, bits, order."""
    if isinstance(value, dict):
        return dict, [(type(key), key, shown(each)) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shown(each) for each in value]
    if isinstance(value, float):
        return float, struct.pack("<d", value)
    if isinstance(value, yoke.Tensor):
        return yoke.Tensor, value.dtype.name, value.shape, value.tolist()
    return type(value), value


def nan(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


NUMBERS = [0, 1, -1, 3, 2**53 + 1, 2**63 - 1, -2**63, 0.0, -0.0, 3.0, 0.1, 1e22, 1e16, 123456789.0, 5e-324, -2.2250738585072014e-308,
           1.7976931348623157e308, math.inf, -math.inf, math.nan, nan(0x7FF8000000000001), nan(0xFFF8000000000000), nan(0x7FF4000000000000),
           True, False, None]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_a_number_comes_back_as_it_was(again, value):
    assert shown(again(value)) == shown(value)
    assert shown(again({"x": [value, (value,)], "y": {0: value}})) == shown({"x": [value, (value,)], "y": {0: value}})


@pytest.mark.parametrize("value", ["", "a", "ü𝄞", '"\\/', "\x00\x01\x1f\x7f\x80", "\n\r\t", "\ufeff\u2028\uffff", "3", "nan", "$tensor", "x" * 100_000],
                         ids=lambda text: repr(text[:20]))
def test_a_text_comes_back_as_it_was(again, value):
    assert again([value, {value: value}]) == [value, {value: value}]


TREES = {
    "nothing in it": [[], (), {}, [[]], [()], [{}], ([],), {"a": {}}, {"a": []}, {"": ()}],
    "lists and tuples": [[1, (2, [3, (4,)]), ()], ((), ((),), [((), 1)])],
    "keys": {"b": 1, "a": 2, 3: 3, "3": 4, -1: 5, "-1": 6, 2**63 - 1: 7, -2**63: 8, "": 9, "a.b": 10, "a/b": 11, "~": 12},
    "integer keys": {2: "b", 1: "a", 10: "c", 0: {5: [], 4: ()}},
    "keys that mean something": {"$tensor": "x", "$float": "inf", "$dict": [], "$tuple": [1], "$": {"$": {"$tuple": 3}}},
    "one key that means something": {"$tuple": []},
    "words of the format": {"__metadata__": {"a": "b"}, "dtype": "F32", "shape": [], "data_offsets": [0, 0], "yoke.tree": 1},
    "many": {f"{i}": [i, float(i), str(i)] for i in range(5000)},
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_comes_back_as_it_was(again, name):
    assert shown(again(TREES[name])) == shown(TREES[name])
    assert shown(again({"x": TREES[name], "t": yoke.ones(2)}, names=None)["x"]) == shown(TREES[name])


def test_tensors_keep_their_places(again):
    x, y, none = yoke.arange(6).reshape(2, 3), yoke.tensor(1.5), yoke.zeros(0, 3, dtype=yoke.bool)
    tree = {"a": [x, {"b": (y, x)}], 7: none, "net.0": {"weight": x + 1}, "net": [{"weight": x + 2}], "__metadata__": {"a": x * 2}}
    back = again(tree)
    assert shown(back) == shown(tree)
    assert back["a"][0] is back["a"][1]["b"][1]
    assert shown(again(x)) == shown(x) and shown(again([x])) == shown([x]) and shown(again({0: x})) == shown({0: x})
    flat = {"weight": x, "more": y}
    assert shown(again(flat)) == shown({"weight": x, "more": y})


def test_the_names_of_a_trees_tensors_are_their_paths(tmp_path):
    x = yoke.ones(1)
    tree = {"net": {"0.weight": x, "0": {"weight": x + 1}}, "list": [x + 2, (x + 3,)], 5: x + 4, "epoch": 3, "net.0": {"weight": x + 5}}
    yoke.save(tmp_path / "file", tree)
    found, metadata = read(tmp_path / "file")
    assert set(found) == {"net.0.weight", "net.0.weight~2", "net.0.weight~3", "list.0", "list.1.0", "5"}
    assert metadata["yoke.format"] == "1" and set(metadata) == {"yoke.format", "yoke.tree"}
    assert json.loads(metadata["yoke.tree"])["$dict"][1] == ["list", [{"$tensor": "list.0"}, {"$tuple": [{"$tensor": "list.1.0"}]}]]
    yoke.save(tmp_path / "file", [x])
    assert set(read(tmp_path / "file")[0]) == {"0"}
    yoke.save(tmp_path / "file", x)
    assert set(read(tmp_path / "file")[0]) == {"tensor"}


def nested(depth, innermost, wrap=lambda value: [value]):
    for _ in range(depth):
        innermost = wrap(innermost)
    return innermost


@pytest.mark.parametrize("innermost", [1, [], {}, (), "tensor"], ids=repr)
@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: (value,), lambda value: {"a": value}, lambda value: {0: value}],
                         ids=["lists", "tuples", "dicts", "integer keys"])
def test_lists_and_dicts_lie_in_each_other_64_deep(tmp_path, again, wrap, innermost):
    own = isinstance(innermost, (list, dict, tuple))
    value = yoke.ones(1) if innermost == "tensor" else innermost
    assert shown(again(nested(64 - own, value, wrap))) == shown(nested(64 - own, value, wrap))
    before = (tmp_path / "file").read_bytes()
    for deeper in (1, 2, 100, 5000):
        with pytest.raises(yoke.ValueError, match=r"state(\[0\]|\['a'\]){40}.*64 deep"):
            yoke.save(tmp_path / "file", nested(64 - own + deeper, value, wrap))
    assert (tmp_path / "file").read_bytes() == before


def test_a_list_that_stands_in_two_places_counts_where_it_is_deepest(tmp_path):
    shared = nested(40, 1)
    yoke.save(tmp_path / "file", [shared, nested(23, shared)])
    for value in ([shared, nested(24, shared)], {"a": shared, "b": nested(24, shared)}):
        with pytest.raises(yoke.ValueError, match=r"save\(\): state.*64 deep"):
            yoke.save(tmp_path / "file", value)


def text_64_deep(floors):
    tree = nested(floors, "0", lambda text: f'{{"$dict":[[0,{text}]]}}')
    return packed({"__metadata__": {"yoke.format": "1", "yoke.tree": tree}})


def test_a_file_may_be_as_deep_as_a_tree_and_no_deeper(tmp_path):
    (tmp_path / "file").write_bytes(text_64_deep(64))
    assert yoke.load(tmp_path / "file") == nested(64, 0, lambda value: {0: value})
    for floors in (65, 66, 100, 10_000):
        (tmp_path / "file").write_bytes(text_64_deep(floors))
        with pytest.raises(yoke.CheckpointError, match="64 deep|nested lists"):
            yoke.load(tmp_path / "file")


class Stateful:
    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state() if callable(self.state) else self.state


def test_an_object_stands_for_its_state(again):
    inner = Stateful({"x": yoke.ones(2), "n": 3})
    outer = Stateful({"inner": inner, "same": inner, "list": [Stateful({"a": [1, (2,)]})], "x": Stateful(yoke.ones(1))})
    back = again({"outer": outer, "net": yoke.nn.Linear(2, 3)})
    assert back["outer"]["inner"]["n"] == 3 and back["outer"]["list"] == [{"a": [1, (2,)]}] and set(back["net"]) == {"weight", "bias"}
    assert back["outer"]["inner"]["x"] is back["outer"]["same"]["x"]
    assert set(again(yoke.nn.Linear(2, 3))) == {"weight", "bias"}


def loop(make):
    value = make()
    value.append(value) if isinstance(value, list) else value.update(a=[value])
    return value


def itself():
    me = Stateful(None)
    me.state = lambda: {"me": me}
    return me


def raises():
    raise ZeroDivisionError("on purpose")


class Colour(enum.Enum):
    RED = 1


REFUSED = [
    (lambda: {"a": {1: object()}}, yoke.TypeError, r"state\['a'\]\[1\] is an object"),
    (lambda: {"a": [1, b"bytes"]}, yoke.TypeError, r"state\['a'\]\[1\] is a bytes"),
    (lambda: {1.5: 1}, yoke.TypeError, r"state\[1.5\].*strings or ints"),
    (lambda: {"a": {True: 1}}, yoke.TypeError, r"state\['a'\]\[True\].*strings or ints"),
    (lambda: {"a": {None: 1}}, yoke.TypeError, r"state\['a'\]\[None\].*strings or ints"),
    (lambda: {"a": {(1, 2): 1}}, yoke.TypeError, r"state\['a'\]\[\(1, 2\)\].*strings or ints"),
    (lambda: [2**63], yoke.ValueError, r"state\[0\] is 9223372036854775808, which does not fit in 64 bits"),
    (lambda: {"a": -2**63 - 1}, yoke.ValueError, r"state\['a'\] is -9223372036854775809, which does not fit"),
    (lambda: {2**63: 1}, yoke.ValueError, r"state\[9223372036854775808\].*64-bit"),
    (lambda: {"a": "\ud800"}, yoke.ValueError, r"state\['a'\].*surrogates"),
    (lambda: {"a": 1j}, yoke.TypeError, r"state\['a'\] is a complex"),
    (lambda: {"a": {1, 2}}, yoke.TypeError, r"state\['a'\] is a set"),
    (lambda: {"a": iter([])}, yoke.TypeError, r"state\['a'\] is a list_iterator"),
    (lambda: {"a": Colour.RED}, yoke.TypeError, r"state\['a'\] is a Colour"),
    (lambda: {"a": np.zeros(3)}, yoke.TypeError, r"state\['a'\] is a numpy.ndarray"),
    (lambda: {"a": len}, yoke.TypeError, r"state\['a'\] is a builtin_function_or_method"),
    (lambda: loop(list), yoke.ValueError, r"state\[0\].*contains itself"),
    (lambda: {"b": loop(dict)}, yoke.ValueError, r"state\['b'\]\['a'\]\[0\].*contains itself"),
    (itself, yoke.ValueError, r"state(\['me'\])+ .*64 deep"),
    (lambda: {"a": Stateful(3)}, yoke.TypeError, r"state\['a'\] is an int; state_dict\(\) must return a dict or a tensor"),
    (lambda: {"a": Stateful([1])}, yoke.TypeError, r"state\['a'\] is a list; state_dict\(\) must return a dict or a tensor"),
    (lambda: {"a": Stateful(())}, yoke.TypeError, r"state\['a'\] is a tuple; state_dict\(\) must return a dict or a tensor"),
    (lambda: {np.True_: 1}, yoke.TypeError, "state.*strings or ints"),
    (lambda: {"a": np.complex64(1 + 2j)}, yoke.TypeError, r"state\['a'\] is a numpy.complex64"),
    (lambda: {"a": np.complex128(1 + 2j)}, yoke.TypeError, r"state\['a'\] is a numpy.complex128"),
    (lambda: {"a": np.clongdouble(1)}, yoke.TypeError, r"state\['a'\] is a numpy.c"),
    (lambda: {"a": np.timedelta64(3, "s")}, yoke.TypeError, r"state\['a'\] is a numpy.timedelta64"),
    (lambda: {"a": np.datetime64("2026-01-01")}, yoke.TypeError, r"state\['a'\] is a numpy.datetime64"),
    (lambda: {"a": np.bytes_(b"x")}, yoke.TypeError, r"state\['a'\] is a numpy.bytes_"),
    (lambda: {"a": np.array(3)}, yoke.TypeError, r"state\['a'\] is a numpy.ndarray"),
    (lambda: {"a": np.uint64(2**63)}, yoke.ValueError, r"state\['a'\] is 9223372036854775808, which does not fit in 64 bits"),
    (lambda: {"a": Stateful(raises)}, ZeroDivisionError, "on purpose"),
]


@pytest.mark.parametrize("make, error, words", REFUSED, ids=[words for _, _, words in REFUSED])
def test_what_no_state_has_is_refused_by_its_place(tmp_path, make, error, words):
    with pytest.raises(error, match=words):
        yoke.save(tmp_path / "file", make())
    assert not list(tmp_path.iterdir())


def test_a_long_key_is_cut_between_characters(tmp_path):
    for key in ("ü" * 200, "a" + "ü" * 200, "𝄞" * 100, "ab" + "𝄞" * 100):
        with pytest.raises(yoke.TypeError, match="is an object") as raised:
            yoke.save(tmp_path / "file", {key: object()})
        assert "\ufffd" not in str(raised.value) and len(str(raised.value)) < 400


def test_what_is_like_a_plain_value_is_one(again):
    class Number(int):
        pass

    class Point(collections.namedtuple("Point", "x y")):
        pass

    class Kind(enum.IntEnum):
        ONE = 1
    value = {"int": Number(3), "point": Point(1, 2), "ordered": collections.OrderedDict(b=1, a=2), "enum": Kind.ONE,
             "default": collections.defaultdict(list, a=[1]), "numpy": [np.int64(3), np.float32(0.5), np.float64(-0.0), np.uint8(255)],
             np.int32(7): np.int8(-1), "truth": [np.True_, np.bool_(False)], np.str_("text"): np.str_("ü"), "half": np.float16(0.1)}
    assert shown(again(value)) == shown({"int": 3, "point": (1, 2), "ordered": {"b": 1, "a": 2}, "enum": 1, "default": {"a": [1]},
                                         "numpy": [3, 0.5, -0.0, 255], 7: -1, "truth": [True, False],
                                         "text": "ü", "half": float(np.float16(0.1))})


def test_a_list_in_two_places_is_written_in_both(again):
    shared = [1, {"a": yoke.ones(1)}]
    back = again({"x": shared, "y": shared, "z": (shared, shared)})
    assert shown(back["x"]) == shown(back["y"]) == shown(back["z"][0]) and back["x"] is not back["y"]
    assert back["x"][1]["a"] is back["z"][1][1]["a"]


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="100 MB letter by letter; tests/core/state has it too")
def test_a_tree_that_is_too_large_for_a_header_is_refused(tmp_path):
    doubled = ["x" * 1000]
    for _ in range(40):
        doubled = [doubled, doubled]
    for value in (["x" * 100_000_001], doubled, {"x" * 100_000_001: yoke.ones(1)}):
        with pytest.raises(yoke.ValueError, match="100000000.*keep long lists of numbers in tensors"):
            yoke.save(tmp_path / "file", value)
    assert not list(tmp_path.iterdir())


def test_a_newer_format_of_trees_is_refused_and_its_tensors_load_by_name(tmp_path):
    entry = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    for number in ("2", "", "1.0", "x" * 1000):
        (tmp_path / "file").write_bytes(packed({"__metadata__": {"yoke.format": number, "yoke.tree": "[]"}, "x": entry}, b"\7"))
        with pytest.raises(yoke.CheckpointError, match=rf"file: the tree has format '{number[:100]}.*reads 1; use a newer version"):
            yoke.load(tmp_path / "file")
        assert yoke.load(tmp_path / "file", names="")["x"].tolist() == [7]


BROKEN = {"": None, "{": "JSON at byte", "[1,]": "JSON", '{"a":1,"a":2}': "'a' twice", '{"$tensor":"y"}': "'y', which is not among",
          '{"$tensor":7}': r"'\$tensor' of a whole number", '{"$complex":[1,2]}': r"\$complex.*newer", "9223372036854775808": "64 bits",
          '{"$float":"1.0"}': "float '1.0'", '{"$dict":[[1.5,1]]}': "a key that is a float", "1e999": "JSON", "[NaN]": "JSON",
          '"\\ud800"': "JSON", "//": "JSON", '{"$tuple":[1],"a":1}': "beside", "\x00": "a NUL",
          "[1]\x00x": "a NUL"}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: repr(text)[:30])
def test_a_tree_that_is_none_is_refused(tmp_path, text):
    entry = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    (tmp_path / "file").write_bytes(packed({"__metadata__": {"yoke.format": "1", "yoke.tree": text}, "x": entry}, b"\7"))
    if BROKEN[text] is None:  # an empty text is no tree
        assert yoke.load(tmp_path / "file")["x"].tolist() == [7]
        return
    with pytest.raises(yoke.CheckpointError, match=BROKEN[text]) as raised:
        yoke.load(tmp_path / "file")
    assert str(tmp_path / "file") in str(raised.value)
    assert yoke.load(tmp_path / "file", names="x")["x"].tolist() == [7]


def test_a_list_that_two_keys_share_is_whole_though_another_key_took_the_place_of_its_first(tmp_path):
    # Tensors are keys by identity in Python, and by their number in a tree: the second value replaces the first.
    for count in range(50):
        shared = [1.5, "a text that is long enough to lie in memory of its own", count]
        tree = {yoke.tensor(1): shared, yoke.tensor(1): [2, [4, "another text that lies in memory of its own"]], "a": shared}
        yoke.save(str(tmp_path / "tree"), tree)
        assert yoke.load(str(tmp_path / "tree"))["a"] == shared
