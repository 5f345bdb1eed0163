"""PyTorch's files from strangers: nothing is executed, memory and recursion have bounds, and the error says what is allowed."""
import io
import os
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import zipfile

import pytest

import yoke
from yoke.compat.torch.serialization import load, save

PT = pathlib.Path(__file__).with_name("pt")
FLOATS = b"ctorch\nFloatStorage\n"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
HOOKS = b"ccollections\nOrderedDict\n)R"


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value):
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def numbers(*values):
    return b"(" + b"".join(map(number, values)) + b"t"


def storage(kind=FLOATS, key="0", location="cpu", count=4):
    return b"(" + text("storage") + kind + text(key) + text(location) + number(count) + b"tQ"


def tensor(offset=0, shape=(4,), strides=(1,), of=None, hooks=HOOKS):
    return REBUILD + b"(" + (of or storage()) + number(offset) + numbers(*shape) + numbers(*strides) + b"\x89" + hooks + b"tR"


def file_of(pickle_, *, method=zipfile.ZIP_STORED, entries=None, prefix="archive/"):
    """Returns a file of this pickle, without STOP, and a storage of 16 bytes."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as file:
        named = {"data.pkl": b"\x80\2" + pickle_ + b".", "byteorder": b"little", "data/0": bytes(16), "version": b"3\n"}
        for name, content in {**named, **(entries or {})}.items():
            if content is not None:
                file.writestr(prefix + name if not name.startswith("/") else name[1:], content)
    return data.getvalue()


def refused(content, *words):
    """Checks that a file is refused with these words, which name call and argument."""
    with pytest.raises(yoke.CheckpointError) as told:
        load(io.BytesIO(content))
    for word in ("load(): argument 'f', a BytesIO: ", *words):
        assert word in str(told.value), told.value
    assert len(str(told.value)) < 1500


def test_the_parts_of_these_tests_make_a_file():
    state = load(io.BytesIO(file_of(b"}(" + text("x") + tensor() + text("y") + tensor(1, (2, 1), (2, 7)) + b"u")))
    assert state["x"].tolist() == [0] * 4 and state["y"].shape == (2, 1)


# ---- Names -----------------------------------------------------------------------------------------------------------


class Evil:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("name", ["os.system", "posix.system", "builtins.eval", "builtins.exec", "builtins.getattr", "builtins.__import__", "subprocess.Popen",
                                  "torch.hub.load", "torch.load", "torch._utils._rebuild_qtensor", "collections.deque", "runpy.run_path",
                                  "torch._utils._rebuild_tensor_v2.__globals__", "yoke._yoke.tensor", "torch.storage.eval", "numpy.load", "copyreg._reconstructor"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_name_off_the_list_is_refused(name, protocol):
    module, _, last = name.rpartition(".")
    named = f"c{module}\n{last}\n".encode() if protocol == 2 else b"\x8c" + bytes([len(module)]) + module.encode() + b"\x8c" + bytes([len(last)]) + last.encode() + b"\x93"
    refused(file_of(named + text("echo x") + b"\x85R"), f"the global '{name}'", "not allowed", "nothing of it was executed", "OrderedDict", "torch.Size", "weights_only=False")


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_executed(tmp_path, protocol):
    mark = tmp_path / "executed"
    for evil in (Evil(os.system, f"touch {mark}"), Evil(eval, f"open({str(mark)!r}, 'w')"), Evil(open, str(mark), "w"), {"a": [Evil(exec, f"open({str(mark)!r}, 'w')")]}):
        refused(file_of(pickle.dumps(evil, protocol=protocol)[2 * (protocol >= 2):-1]))
    assert not mark.exists()


@pytest.mark.parametrize("pickle_, words", [
    (b"ccollections\ndefaultdict\nc__builtin__\nset\n\x85R", ["with weights_only=False"]),
    (b"ccollections\ndefaultdict\nctorch\nTensor\n\x85R", ["a defaultdict is made by something else", "builtins.list"]),
    (b"c__builtin__\nint\n" + text("7") + b"\x85R", ["only names a type"]),
    (b"cargparse\nNamespace\nK\1\x85\x81", ["the call of argparse.Namespace", "(int)"]),
    (b"cargparse\nNamespace\n)\x81}" + text("_get_kwargs") + b"K\1sb", ["attribute '_get_kwargs'"]),
    (b"cargparse\nNamespace\n)\x81q\0}" + text("me") + b"h\0sb", ["64 levels"]),
    (b"ccollections\nOrderedDict\n)\x81", ["damaged"]), (b"ctorch._utils\n_rebuild_parameter\n)\x81", ["damaged"])])
def test_a_trusted_file_has_values_alone(pickle_, words):
    if "with weights_only=False" in words:
        return refused(file_of(pickle_), "With weights_only=False")
    with pytest.raises(yoke.CheckpointError) as told:
        load(io.BytesIO(file_of(pickle_)), weights_only=False)
    assert all(word in str(told.value) for word in words), told.value


def test_a_script_may_say_that_it_trusts_the_file_and_still_nothing_is_executed(tmp_path):
    mark = tmp_path / "executed"
    content = file_of(pickle.dumps(Evil(os.system, f"touch {mark}"), protocol=2)[2:-1])
    with pytest.raises(yoke.CheckpointError, match="global 'posix.system'"):
        load(io.BytesIO(content), weights_only=False)
    assert not mark.exists()


@pytest.mark.parametrize("name, words", [("module.pt", ["'torch.nn.modules.linear.Linear'", "whole module", "state_dict()"]), ("path.pt", ["'pathlib.", "weights_only=False"]),
                                         ("int16.pt", ["'net.ids'", "int16", "x.to(torch.int32)"]), ("uint16.pt", ["'0'", "uint16"]), ("complex.pt", ["'spectrum'", "complex64"]),
                                         ("old.pt", ["before PyTorch 1.6", "torch.save(torch.load(FILE"]), ("script.pt", ["TorchScript", "state_dict()"])])
def test_files_of_pytorch_that_cannot_be_read_say_what_to_do(name, words):
    with pytest.raises(yoke.CheckpointError) as told:
        load(PT / name)
    for word in ("load(): argument 'f'", str(PT / name), *words):
        assert word in str(told.value), told.value


@pytest.mark.parametrize("pickle_, words", [
    (b"c__builtin__\nset\n]\x85R" + b"(K\1\x85tb", ["sets the state of a set"]),
    (HOOKS + b"}" + text("items") + b"K\1sb", ["attribute 'items'", "not allowed"]),
    (HOOKS + b"}" + text("__class__") + b"K\1sb", ["attribute '__class__'"]),
    (b"ctorch._utils\n_rebuild_parameter_with_state\n(" + tensor() + b"\x89" + HOOKS + b"}" + text("grad") + b"K\1stR", ["attribute 'grad'", "Parameter"]),
    (b"ctorch\nFloatStorage\n)R", ["damaged"]),
    (b"ctorch\nTensor\n)R", ["only names a type"]),
    (b"ctorch\nFloatStorage\n", ["its value is a class"]),
    (b"](c_codecs\nencode\n" + b"e", ["the value at '0' is a class or a function"]),
    (b"c_codecs\nencode\n" + text("x") + text("rot13") + b"\x86R", ["'rot13'", "latin1"]),
    (b"c__builtin__\nbytearray\n" + number(2**40) + b"\x85R", ["the call of bytearray", "(int)"]),
    (b"c__builtin__\nbytes\n" + number(2**40) + b"\x85R", ["the call of bytes", "(int)"]),
    (b"ctorch\nSize\n" + b"(" + b"K\1" * 100 + b"t\x85R", ["torch.Size", "64"]),
    (b"}]K\1s", ["a key of type list"]), (b"}" + number(2**64) + b"K\1s", ["a key of more than 64 bits"]), (b"c__builtin__\nset\n](" + number(-2**70) + b"e\x85R", ["64 bits"]),
    (b"}c__builtin__\ncomplex\nG" + bytes(8) + b"G" + bytes(8) + b"\x86RK\1s", ["a key of type complex"]),
    (b"}(((K\1ttK\1u", ["a key of type tuple"]),
    (text("storage") + b"Q", ["something else than a storage"]),
    (b"(" + text("module") + FLOATS + text("0") + text("cpu") + number(4) + b"tQ", ["something else than a storage"]),
    (b"ctorch._tensor\n_rebuild_from_type_v2\n(c_codecs\nencode\nctorch\nTensor\n" + text("a") + text("latin1") + b"\x86}tR", ["PyTorch's own functions"]),
])
def test_calls_with_other_arguments_are_refused(pickle_, words):
    refused(file_of(pickle_), *words)


# ---- Sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pickle_, words", [
    (storage(count=5), ["storage '0' is said to have 5 elements of 4 bytes, but it has 16"]),
    (storage(count=2**62), ["4611686018427387904 elements"]),
    (storage(count=-4), ["-4 elements"]),
    (storage(kind=b"ctorch\nDoubleStorage\n"), ["of 8 bytes, but it has 16"]),
    (storage(key="1"), ["no storage '1'"]),
    (storage(key="../version"), ["no storage"]),
    (tensor(shape=(5,)), ["passes the 16 bytes"]),
    (tensor(offset=1), ["passes the 16 bytes"]),
    (tensor(offset=2**61), ["passes the 16 bytes"]),
    (tensor(offset=-1), ["from element -1"]),
    (tensor(shape=(2, 2), strides=(3, 1)), ["passes"]),
    (tensor(shape=(2**61, 2**61), strides=(0, 0)), ["passes"]),
    (tensor(shape=(2,), strides=(2**61,)), ["passes"]),
    (tensor(shape=(-4,)), ["shape (-4,)"]),
    (tensor(strides=(-1,)), ["strides (-1,)"]),
    (tensor(shape=(2, 2)), ["strides (1,)"]),
    (tensor(shape=(1,) * 20, strides=(1,) * 20), ["20 axes", "at most 16"]),
    (tensor(hooks=b"}(K\1K\1u"), ["hooks"]),
    (tensor(of=b"N"), ["the call of _rebuild_tensor_v2 has the arguments (NoneType,"]),
    (b"ctorch._utils\n_rebuild_tensor_v3\n(" + storage() + number(0) + numbers(4) + numbers(1) + b"\x89" + HOOKS + b"NtR", ["a dtype"]),
    (b"ctorch._utils\n_rebuild_tensor_v3\n(" + storage() + number(0) + numbers(4) + numbers(1) + b"\x89" + HOOKS + b"ctorch\nfloat64\ntR", ["passes the 16 bytes"]),
])
def test_sizes_that_lie_are_refused(pickle_, words):
    refused(file_of(pickle_), *words)


def test_a_stride_of_zero_takes_no_memory():
    assert load(io.BytesIO(file_of(tensor(shape=(2**40,), strides=(0,))))).shape == (2**40,)


DEEP = 100_000


@pytest.mark.parametrize("pickle_", [
    b"]" * DEEP + b"a" * (DEEP - 1), b"(" * DEEP + b"t" * DEEP, b"K\1" + b"\x85" * DEEP, (b"}" + text("a")) * DEEP + b"}" + b"s" * DEEP, b"]q\0h\0a", b"]q\0(h\0\x85h\0e",
    HOOKS + b"q\0}" + text("me") + b"h\0sb"], ids=["lists", "marks", "tuples", "dicts", "itself", "through a tuple", "through an attribute"])
def test_deep_nesting_is_refused(pickle_):
    refused(file_of(pickle_), "64 levels")


def run_with(memory, content, tmp_path):
    """Returns the error of a load in a process with so many bytes of memory beyond its own."""
    (tmp_path / "file.pt").write_bytes(content)
    program = """
import resource, sys
import yoke
from yoke.compat.torch.serialization import load
own = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (own + int(sys.argv[2]),) * 2)
try:
    print(type(load(sys.argv[1])).__name__)
except yoke.Error as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "file.pt", str(memory)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer takes all of the address space")
@pytest.mark.parametrize("pickle_, words", [
    (b"](" + b"K\1" * 10000 + b"eq\0c__builtin__\nset\nq\1](" + b"h\1h\0\x85R" * 20000 + b"e", "again and again"),
    (b"](" + b"NN\x86" * 10000 + b"eq\0ccollections\nOrderedDict\nq\1](" + b"h\1h\0\x85R" * 20000 + b"e", "again and again"),
    (text("x" * 100000) + b"q\0c_codecs\nencode\nq\1" + text("latin1") + b"q\2](" + b"h\1h\0h\2\x86R" * 20000 + b"e", "again and again"),
    (b"X\xff\xff\xff\x7fabc", "damaged"), (b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc", "damaged"), (b"\x8e\0\0\0\0\0\1\0\0abc", "damaged"),
    (b"\x96\0\0\0\0\0\1\0\0abc", "damaged"), (b"Nr\xff\xff\xff\xff", "NoneType"), (b"\x95\xff\xff\xff\xff\xff\xff\xff\x7fN", "NoneType"),
], ids=["sets", "dicts", "bytes", "text", "long text", "long bytes", "bytearray", "memo", "frame"])
def test_a_short_file_takes_little_memory(pickle_, words, tmp_path):
    found = run_with(1 << 28, file_of(pickle_), tmp_path)
    assert words in found


def test_values_that_lead_to_one_another_are_looked_at_once():
    """Forty levels of a list that holds the list below twice: a walk of each way would never end."""
    state = b"]q\0" + b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(40))
    found = load(io.BytesIO(file_of(b"(" + state + b"t")))
    assert len(found) == 41
    refused(file_of(b"(" + b"]q\0" + b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(80)) + b"t"), "64 levels")


# ---- Archives --------------------------------------------------------------------------------------------------------


GOOD = file_of(b"N")


def listed(content, name):
    """Returns where the header of an entry in the list begins."""
    place = content.rfind(name.encode()) - 46
    assert content[place:place + 4] == b"PK\1\2"
    return place


def poked(name, at, value, content=GOOD):
    place = listed(content, name) + at
    return content[:place] + value + content[place + len(value):]


def doubled():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file, pytest.warns(UserWarning):
        for _ in range(2):
            file.writestr("archive/data.pkl", b"\x80\2N.")
    return data.getvalue()


@pytest.mark.parametrize("content, words", [
    (b"", ["the file is empty"]), (b"PK\3\4", ["no list of its entries"]), (GOOD[:-30], ["no list of its entries", "cut off"]), (GOOD + b"x", ["the end of the zip archive is damaged"]),
    (GOOD[100:], ["no zip archive"]), (b"\x89HDF\r\n\x1a\n" + bytes(300), ["yoke.load(FILE)"]), (bytes(257) + b"ustar" + bytes(300), ["tar archive", "torch.save(torch.load(FILE"]),
    (pickle.dumps({"a": 1}, protocol=4), ["a pickle of Python"]),
    (file_of(b"N", method=zipfile.ZIP_DEFLATED), ["'archive/", "compressed (method 8)", "zip -0"]),
    (file_of(b"N", entries={"data/../../x": b"1"}), ["leads out of the archive"]), (file_of(b"N", entries={"//etc/x": b"1"}), ["leads out"]),
    (file_of(b"N", entries={"a\\b": b"1"}), ["leads out"]), (file_of(b"N", entries={"data.pkl": None}), ["no data.pkl"]),
    (file_of(b"N", entries={"/other/data.pkl": b"x"}), ["data.pkl"]), (file_of(b"N", prefix=""), ["no data.pkl in a folder"]),
    (file_of(b"N", entries={"byteorder": b"big"}), ["order of bytes 'big'", "little-endian"]), (file_of(b"N", entries={"version": b"11\n"}), ["version '11'", "1 to 10"]),
    (file_of(b"N", entries={"version": b"x" * 20}), ["version 'xxx"]), (doubled(), ["'archive/data.pkl' is there twice"]),
    (poked("archive/data.pkl", 10, b"\x08"), ["compressed (method 8)"]), (poked("archive/data.pkl", 8, b"\1"), ["is encrypted"]),
    (poked("archive/data.pkl", 38, b"\0\0\xff\xa1"), ["is a link"]), (poked("archive/data.pkl", 20, b"\3\0\0\0"), ["3 bytes in the archive, but 4"]),
    (poked("archive/data.pkl", 20, b"\xf0\0\0\0\xf0\0\0\0"), ["overlaps"]), (poked("archive/data.pkl", 20, b"\xff\xff\xff\x7f\xff\xff\xff\x7f"), ["overlaps"]),
    (poked("archive/data.pkl", 20, b"\xff" * 8), ["no zip64 field"]), (poked("archive/version", 42, b"\0\0\0\0"), ["overlaps"]),
    (poked("archive/version", 42, b"\xff\xff\xff\x7f"), ["overlaps"]), (poked("archive/data.pkl", 28, b"\xff\xff"), ["fewer than its 4 entries"]),
    (GOOD.replace(b"PK\1\2", b"PK\1\3"), ["damaged"]), (GOOD[:-12] + b"\xff\xff\xff\x7f" + GOOD[-8:], ["list of entries"]), (GOOD[:-6] + b"\xff\xff\xff\x7f\0\0", ["list of entries"]),
    (GOOD[:-14] + b"\xff\xff\xff\xff" + GOOD[-10:], ["fewer than its 65535 entries"]), (GOOD[:-18] + b"\1\0" + GOOD[-16:], ["damaged"]),
    (GOOD[:30] + b"Archive" + GOOD[37:], ["two different headers"]),
    (GOOD[:26] + b"\xff\xff" + GOOD[28:], ["overlaps"]),
], ids=lambda value: value[0] if isinstance(value, list) else "")
def test_archives_that_break_a_rule_are_refused(content, words):
    refused(content, *words)


@pytest.mark.parametrize("pickle_", [b"", b"R", b"K", b"t", b"h\0", b"q\0", b"X\4\0\0\0\xff\xff\xff\xff", b"a", b"]]e", b"}(K\1u", b"s", b"K\1K\2K\3s", b"c", b"cos\n", b"c" + b"x" * 1000 + b"\n\n",
                                     b"\x93", b"K\1K\1\x93", b"b", b"Q", b"\x86", b"i", b"d", b"l", b"0", b"2", b"1", b"S'x'\n", b"I1\n", b"\x81", b"\x92", b"\x82\1", b"\xff", b"\x91",
                                     b"\x8b\xff\xff\xff\x7f", b"P1\n", b"g0\n", b"\x97", b"]K\1a\x8f(]\x90"], ids=repr)
def test_damaged_pickles_are_refused(pickle_):
    refused(file_of(pickle_))


def entries_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name.partition("/")[2]: file.read(name) for name in file.namelist()}


def damaged(draw, content):
    """Returns bytes with some changed, removed or doubled."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        at, count = draw.randrange(len(data)), draw.randrange(20)
        way = draw.random()
        if way < 0.7:
            data[at] = draw.randrange(256) if draw.random() < 0.5 else draw.choice(b"(]})tue\x85\x86R.QbacNKhq0")
        elif way < 0.8:
            del data[at:at + count]
        else:
            data[at:at] = data[draw.randrange(len(data)):][:count]
        if not data:
            return b"x"
    return bytes(data)


@pytest.mark.parametrize("name", ["values.pt", "protocol4.pt", "numpy.pt", "int16.pt", "schedules.pt"])
def test_damage_is_an_error_or_another_state(name):
    """Whatever bytes become: a state, or an error of the library, soon. YOKE_MUTANTS=100000 tries more."""
    draw, good = random.Random(name), (PT / name).read_bytes()
    entries = entries_of(good)
    for _ in range(int(os.environ.get("YOKE_MUTANTS", "600"))):
        if draw.random() < 0.3:
            content = damaged(draw, good)
        else:
            content = file_of(b"", entries={**entries, "data.pkl": damaged(draw, entries["data.pkl"])})
        try:
            load(io.BytesIO(content), map_location="cpu")
        except yoke.Error:
            pass


SHORT16 = b"\x8c\3\xed\xa0\x80"  # a lone surrogate, which no terminal prints


@pytest.mark.parametrize("content", [
    file_of(b"}" + SHORT16 + b"ctorch\nint16\ns"), file_of(storage(key="0")[:-2].replace(text("cpu"), SHORT16) + b"tQ"), file_of(HOOKS + b"}" + SHORT16 + b"K\1sb"),
    file_of(b"cnumpy\ndtype\n" + SHORT16 + b"\x85R"), file_of(b"c_codecs\nencode\n" + text("a") + SHORT16 + b"\x86R"), file_of(b"ctorch\ndevice\n" + SHORT16 + b"\x85R"),
    file_of(b"N", entries={"x" * 60000: b"1", "data.pkl": None}), file_of(b"N", entries={"x" * 60000 + "/../x": b"1"})], ids=range(8))
def test_errors_can_be_printed(content):
    try:
        load(io.BytesIO(content))
    except yoke.Error as error:
        assert len(str(error).encode()) < 2000


class Lying(io.BytesIO):
    """File that gives fewer bytes than it has."""

    def read(self, size=-1):
        return super().read(min(size, 100) if size > 0 else size)

    readinto = None


def test_a_file_that_ends_too_early_is_refused():
    data = io.BytesIO()
    save({"x": yoke.ones(1000)}, data)
    with pytest.raises(yoke.CheckpointError, match="the file ends within bytes"):
        load(Lying(data.getvalue()))
