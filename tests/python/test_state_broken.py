"""Files that break a rule of the format are refused by rule, tensor and place; errors of the system have path and number."""
import errno
import gzip
import io
import json
import os
import pickle
import re
import resource
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import numpy as np
import pytest

import yoke
from stored_files import Broken, Stored, packed, read, write

DATA = bytes(range(24))
GOOD = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


def one(**changes):
    return packed({"x": {key: value for key, value in {**GOOD, **changes}.items() if value is not None}}, DATA)


def two(first, second, data=DATA):
    def entry(offsets):
        return {"dtype": "U8", "shape": [offsets[1] - offsets[0]], "data_offsets": list(offsets)}
    return packed({"a": entry(first), "b": entry(second)}, data)


def text(header, data=DATA):
    return packed(header, data)


X = json.dumps(GOOD)
# {defect: (the file, the message beside the path)}
CASES = {
    "no byte": (b"", "the file has 0 bytes; a safetensors file begins with 8"),
    "7 bytes": (b"\2\0\0\0\0\0\0", "the file has 7 bytes"),
    "no header": (packed("", b""), "the header does not begin with '{'"),
    "a header longer than the file": (packed("{}", length=3), "is cut short (header size 3, limit 100000000, file size 10)"),
    "a header of 2**62 bytes": (packed({"x": GOOD}, DATA, length=2**62), "header size 4611686018427387904,"),
    "a header of 2**64 - 1 bytes": (packed({"x": GOOD}, DATA, length=2**64 - 1), "header size 18446744073709551615,"),
    "a header that ends too early": (packed({"x": GOOD}, DATA, length=20), "the header is not JSON at byte"),
    "a header that ends too late": (packed({"x": GOOD}, DATA, length=len(json.dumps({"x": GOOD})) + 4), "the header is not JSON"),
    "a big-endian length": (struct.pack(">Q", 2) + b"{}", "header size 144115188075855872,"),
    "a page of the web": (b"<!DOCTYPE html><html><body>404</body></html>", "the file is not a safetensors file, or is cut short"),
    "an array": (text("[]", b""), "the header does not begin with '{'"),
    "a space before": (text(' {"x":' + X + "}"), "the header does not begin with '{'"),
    "a mark of the byte order before": (text(b"\xef\xbb\xbf{}", b""), "the header does not begin with '{'"),
    "a text": (text('"x"', b""), "the header does not begin with '{'"),
    "no JSON": (text("{x}", b""), "the header is not JSON at byte 10"),
    "a comma too many": (text('{"x":' + X + ",}"), "the header is not JSON at byte"),
    "two objects": (text("{}{}", b""), "the header is not JSON at byte"),
    "zeros behind": (text(b"{}\0\0", b""), "the header is not JSON at byte"),
    "a comment": (text("{/**/}", b""), "the header is not JSON at byte"),
    "no UTF-8": (text(b'{"\xff":' + X.encode() + b"}"), "the header is not JSON at byte"),
    "half a character": (text('{"\\ud800":' + X + "}"), "the header is not JSON at byte"),
    "a line within a name": (text('{"a\nb":' + X + "}"), "the header is not JSON at byte"),
    "a name twice": (text('{"x":' + X + ',"x":' + X + "}"), r"tensor 'x' is in the header twice (data_offsets 0 to 24)"),
    "a name twice, escaped once": (text('{"x":' + X + ',"\\u0078":' + X + "}"), "tensor 'x' is in the header twice"),
    "a name twice, of nothing": (text('{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"I8","shape":[0],"data_offsets":[0,0]}}', b""),
                                 "tensor 'x' is in the header twice"),
    "a dtype twice": (text('{"x":{"dtype":"F32",' + X[1:] + "}"), "tensor 'x' has the key 'dtype' twice"),
    "a shape twice": (text('{"x":{"shape":[6],' + X[1:] + "}"), "tensor 'x' has the key 'shape' twice"),
    "offsets twice": (text('{"x":{"data_offsets":[0,24],' + X[1:] + "}"), "tensor 'x' has the key 'data_offsets' twice"),
    "metadata twice": (text('{"__metadata__":{},"__metadata__":{},"x":' + X + "}"), "the header has '__metadata__' twice"),
    "a key of the metadata twice": (text('{"__metadata__":{"a":"b","a":"b"},"x":' + X + "}"), "the metadata has 'a' twice"),
    "metadata that is no object": (text('{"__metadata__":[],"x":' + X + "}"), "'__metadata__' has an array where an object of strings belongs"),
    "metadata that is null": (text('{"__metadata__":null,"x":' + X + "}"), "'__metadata__' has null where an object of strings belongs"),
    "a number in the metadata": (text('{"__metadata__":{"a":1},"x":' + X + "}"), "'a' has a number where a string belongs"),
    "null in the metadata": (text('{"__metadata__":{"a":null},"x":' + X + "}"), "'a' has null where a string belongs"),
    "an object in the metadata": (text('{"__metadata__":{"a":{}},"x":' + X + "}"), "'a' has an object where a string belongs"),
    "a tensor that is no object": (text('{"x":[]}'), "'x' has an array where an object with dtype, shape and data_offsets belongs"),
    "a tensor that is null": (text('{"x":null}'), "'x' has null where an object"),
    "no dtype": (one(dtype=None), "tensor 'x' has no dtype"),
    "no shape": (one(shape=None), "tensor 'x' has no shape"),
    "no offsets": (one(data_offsets=None), "tensor 'x' has no data_offsets"),
    "an unknown dtype": (one(dtype="F31"), "tensor 'x' has the dtype 'F31', which the format does not have"),
    "a dtype in small letters": (one(dtype="f32"), "tensor 'x' has the dtype 'f32'"),
    "a dtype that ends with zero": (one(dtype="F32\0"), "tensor 'x' has the dtype 'F32?'"),
    "a dtype without a name": (one(dtype=""), "tensor 'x' has the dtype ''"),
    "a dtype that is a number": (one(dtype=32), "'x' has a number where the name of a dtype belongs"),
    "a shape that is a number": (one(shape=6), "'x' has a number where an array belongs"),
    "a shape that is an object": (one(shape={}), "'x' has an object where an array belongs"),
    "a negative size": (one(shape=[-2, -3]), "'x' has a negative number where a whole number from 0 to 9223372036854775807 belongs"),
    "a size that is a float": (one(shape=[2, 3.0]), "'x' has another number where"),
    "a size that is a text": (one(shape=["2", 3]), "'x' has a string where"),
    "a size that is true": (one(shape=[6, True]), "'x' has true or false where"),
    "a size that is a list": (one(shape=[[2, 3]]), "'x' has an array where"),
    "a size of 2**63": (one(shape=[2**63, 0]), "'x' has a larger number where"),
    "a size of 2**64": (one(shape=[2**64]), "'x' has another number where"),
    "a shape that wraps round to its size": (one(shape=[2**32, 2**32, 6]), "tensor 'x' has a shape with more elements than can be counted"),
    "bytes that wrap round to their number": (one(shape=[2**62 + 6]), "tensor 'x' has a shape with more elements than can be counted"),
    "bits that wrap round to their number": (one(shape=[2**59 + 6]), "tensor 'x' has a shape with more elements than can be counted"),
    "a shape that wraps round and holds nothing": (one(shape=[2**62, 2**62, 0], data_offsets=[0, 24]), "tensor 'x' has a shape with more elements"),
    "one offset": (one(data_offsets=[24]), "tensor 'x' has 1 data_offsets"),
    "three offsets": (one(data_offsets=[0, 24, 24]), "tensor 'x' has 3 data_offsets"),
    "no offset": (one(data_offsets=[]), "tensor 'x' has 0 data_offsets"),
    "a negative offset": (one(data_offsets=[-24, 0]), "'x' has a negative number where"),
    "an offset that is a text": (one(data_offsets=["0", "24"]), "'x' has a string where"),
    "an offset that is a float": (one(data_offsets=[0, 2.4e1]), "'x' has another number where"),
    "an end before the beginning": (one(data_offsets=[24, 0]), "(data_offsets 24 to 0)"),
    "an end before the beginning of nothing": (packed({"a": {"dtype": "U8", "shape": [24], "data_offsets": [0, 24]}, "b": {
        "dtype": "U8", "shape": [0], "data_offsets": [24, 0]}}, DATA), "tensor 'b' ends before it begins (data_offsets 24 to 0)"),
    "fewer bytes than the shape takes": (one(data_offsets=[0, 20]), "tensor 'x' takes 24 bytes by shape and dtype (data_offsets 0 to 20)"),
    "more bytes than the shape takes": (one(shape=[5]), "tensor 'x' takes 20 bytes by shape and dtype (data_offsets 0 to 24)"),
    "a scalar of 24 bytes": (one(shape=[]), "tensor 'x' takes 4 bytes by shape and dtype"),
    "nothing that takes bytes": (one(shape=[0, 6]), "tensor 'x' takes 0 bytes by shape and dtype"),
    "half a byte": (packed({"x": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}}, b"a"), "tensor 'x' does not end with a whole byte"),
    "bits of three quarters": (packed({"x": {"dtype": "F6_E2M3", "shape": [2, 3], "data_offsets": [0, 5]}}, b"abcde"), "'x' does not end with a whole byte"),
    "a hole before the first": (one(shape=[5], data_offsets=[4, 24]), "tensor 'x' does not begin where the previous tensor ends, at 0 (data_offsets 4 to 24)"),
    "a hole between": (two((0, 8), (12, 24)), "tensor 'b' does not begin where the previous tensor ends, at 8 (data_offsets 12 to 24)"),
    "an overlap": (two((0, 16), (12, 24)), "tensor 'b' does not begin where the previous tensor ends, at 16 (data_offsets 12 to 24)"),
    "one within the other": (two((0, 24), (8, 12)), "tensor 'b' does not begin where the previous tensor ends, at 24"),
    "two over the same": (two((0, 24), (0, 24)), "does not begin where the previous tensor ends, at 24 (data_offsets 0 to 24)"),
    "nothing in the middle of another": (two((0, 24), (8, 8)), "tensor 'b' does not begin where the previous tensor ends, at 24"),
    "nothing behind the end": (two((0, 24), (25, 25)), "tensor 'b' does not begin where the previous tensor ends, at 24"),
    "bytes behind the last": (packed({"x": GOOD}, DATA + b"\0"), "the tensors take 24 bytes, but after the header there are 25"),
    "bytes of no tensor": (packed("{}", b"\0"), "the tensors take 0 bytes, but after the header there are 1"),
    "a file that was cut short": (packed({"x": GOOD}, DATA[:-1]), "the tensors take 24 bytes, but after the header there are 23"),
    "a tensor behind the end of the file": (one(shape=[2**40], data_offsets=[0, 2**42]), "the tensors take 4398046511104 bytes, but after the header"),
    "the last offset there is": (one(shape=[(2**63 - 8) // 4], data_offsets=[0, 2**63 - 8]), None),
}


def name(path):
    return re.escape(f"{path}: ")


@pytest.mark.parametrize("case", CASES)
def test_a_rule_broken_singly_is_refused(tmp_path, case):
    path = tmp_path / "model.safetensors"
    content, says = CASES[case]
    path.write_bytes(content)
    with pytest.raises((Broken, ValueError, KeyError, TypeError, OverflowError)):
        read(path)
    for call in (yoke.load, yoke.load_info, lambda path: yoke.load(path, names="none of these"), lambda path: yoke.load(path, mmap=False)):
        with pytest.raises(yoke.CheckpointError, match=name(path)) as raised:
            call(path)
        assert says is None or says in str(raised.value), raised.value
        assert "\n" not in str(raised.value).removeprefix(str(path)) and len(str(raised.value)) < 1000


def test_the_file_of_which_the_others_are_broken_is_whole(tmp_path):
    (tmp_path / "file").write_bytes(one())
    assert yoke.load(tmp_path / "file")["x"].shape == (2, 3)


def of_torch(path, older=False):
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(3)}, path, _use_new_zipfile_serialization=not older)


def of_numpy(write, **arrays):
    def made(path):
        with open(path, "wb") as file:
            write(file, **arrays)
    return made


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")


# {format: (its writer, the message)}
OTHERS = {
    "a checkpoint of PyTorch": (of_torch, ["PyTorch (torch.save)", "yoke.compat.torch.serialization import load", "yoke.save(NEW, load(FILE"]),
    "an older checkpoint of PyTorch": (lambda path: of_torch(path, older=True), ["PyTorch (torch.save, its older form)", "torch.save(torch.load(FILE", "yoke.compat.torch.serialization.load(NEW)"]),
    "an archive of NumPy": (of_numpy(np.savez, w=np.ones(3)), ["NumPy (.npz)", "numpy.load(FILE).items()"]),
    "a compressed archive of NumPy": (of_numpy(np.savez_compressed, w=np.ones(3)), ["NumPy (.npz)"]),
    "an archive of no array": (of_numpy(np.savez), ["an empty zip archive, as numpy.savez"]),
    "an array of NumPy": (of_numpy(np.save, arr=np.ones(3)), ["NumPy (.npy)", "yoke.tensor(numpy.load(FILE))"]),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps({"w": [1.0] * 9})), ["a pickle of Python"]),
    "a zip archive": (zipped, ["a zip archive", "unpack the archive"]),
    "HDF5": (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99)), ["HDF5", "h5py"]),
    "GGUF": (lambda path: path.write_bytes(b"GGUF\3\0\0\0" + bytes(99)), ["GGUF", "safetensors files"]),
    "a pointer of Git LFS": (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), ["git lfs pull"]),
    "gzip": (lambda path: path.write_bytes(gzip.compress(packed({}, b""), mtime=0)), ["compressed by gzip"]),
    "tar": (lambda path: path.write_bytes(tar_of("data")), ["a tar archive"]),
}


def tar_of(name):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    return made.getvalue()


@pytest.mark.parametrize("case", OTHERS)
def test_a_file_of_another_format_is_named_as_what_it_is(tmp_path, case):
    write, words = OTHERS[case]
    path = tmp_path / "model.safetensors"
    write(path)
    for call in (yoke.load, yoke.load_info):
        with pytest.raises(yoke.CheckpointError, match=name(path)) as raised:
            call(path)
        assert raised.value.native_code == errno.EINVAL and "the file is not a safetensors file, but" in str(raised.value)
        assert [word for word in words if word not in str(raised.value)] == [], raised.value


def test_what_the_advice_says_makes_a_state(tmp_path):
    np.savez(tmp_path / "x.npz", w=np.arange(3.0), b=np.ones(2, dtype=np.float32))
    yoke.save(tmp_path / "x", {name: yoke.tensor(array) for name, array in np.load(tmp_path / "x.npz").items()})
    assert yoke.load(tmp_path / "x")["w"].tolist() == [0, 1, 2]


LEGAL = {
    "nothing": (packed("{}"), {}),
    "spaces behind": (packed("{}", pad=100), {}),
    "lines and tabs": (text('{\n\t"x" :\r\n' + X + "\n}\n"), {"x": [2, 3]}),
    "keys of nobody": (text('{"x":{"more":{"dtype":[{},[],null,true,1.5,-3,"a",{"b":{}}]},' + X[1:] + "}"), {"x": [2, 3]}),
    "escapes": (text('{"\\ud834\\udd1e\\/\\u0000":' + X.replace("F32", "\\u004632") + "}"), {"𝄞/\0": [2, 3]}),
    "no element of many": (one(shape=[2**58, 0, 2], data_offsets=[0, 0])[:-24], {"x": [2**58, 0, 2]}),
    "offsets in another order": (two((12, 24), (0, 12)), {"a": [12], "b": [12]}),
    "nothing at every end": (packed({"a": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}, "x": GOOD, "b": {
        "dtype": "F64", "shape": [3, 0], "data_offsets": [24, 24]}}, DATA), {"a": [0], "x": [2, 3], "b": [3, 0]}),
    "metadata last and empty": (text('{"x":' + X + ',"__metadata__":{}}'), {"x": [2, 3]}),
    "16 axes": (one(shape=[1] * 14 + [2, 3]), {"x": [1] * 14 + [2, 3]}),
}


@pytest.mark.parametrize("case", LEGAL)
def test_what_no_rule_forbids_is_read(tmp_path, case):
    content, shapes = LEGAL[case]
    (tmp_path / "file").write_bytes(content)
    assert {n: list(x.shape) for n, x in read(tmp_path / "file")[0].items()} == shapes
    assert {n: entry["shape"] for n, entry in yoke.load_info(tmp_path / "file")["tensors"].items()} == shapes
    assert {n: list(x.shape) for n, x in yoke.load(tmp_path / "file").items()} == shapes


@pytest.mark.parametrize("shape, says", [([1] * 15 + [2, 3], "has 17 axes; a tensor of Yoke has at most 16"),
                                         ([2**62, 0], "has the shape [4611686018427387904, 0], with more elements than memory can address"),
                                         ([0, 2**62, 2**62], "with more elements than memory can address")], ids=str)
def test_what_a_tensor_of_yoke_cannot_be_is_told_by_its_name(tmp_path, shape, says):
    nothing = 0 in shape
    (tmp_path / "file").write_bytes(packed({"x": {**GOOD, "shape": shape, "data_offsets": [0, 0 if nothing else 24]}}, b"" if nothing else DATA))
    assert yoke.load_info(tmp_path / "file")["tensors"]["x"]["shape"] == shape
    with pytest.raises(yoke.CheckpointError, match=name(tmp_path / "file") + "tensor 'x' .*" + re.escape(says)):
        yoke.load(tmp_path / "file")
    assert yoke.load(tmp_path / "file", names="others") == {}


def test_names_in_messages_are_short_and_on_one_line(tmp_path):
    path = tmp_path / "file"
    for shown in ("a\nb\x1b[31m\x7f", "x" * 100_000, "ü" * 100, "a" + "ü" * 100, "𝄞" * 40, "abc" + "𝄞" * 40, "\u2028"):
        path.write_bytes(packed({shown: {**GOOD, "shape": [7]}}, DATA))
        with pytest.raises(yoke.CheckpointError) as raised:
            yoke.load(path)
        told = str(raised.value)
        assert "takes 28 bytes" in told and len(told) < 600 and told.isprintable() or shown == "\u2028", told
        assert "\ufffd" not in told  # no character is cut in two


# ---- Errors of the system --------------------------------------------------------------------------------------------


def refused(number, path, call):
    before = os.listdir("/proc/self/fd")
    with pytest.raises(yoke.IOError) as raised:
        call()
    assert isinstance(raised.value, OSError) and raised.value.native_code == number, raised.value
    assert str(path) in str(raised.value) and os.strerror(number) in str(raised.value)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("call", [yoke.load, yoke.load_info], ids=lambda f: f.__name__)
def test_what_cannot_be_read(tmp_path, call):
    refused(errno.ENOENT, tmp_path / "none", lambda: call(tmp_path / "none"))
    (tmp_path / "file").write_bytes(one())
    refused(errno.ENOTDIR, tmp_path / "file/more", lambda: call(tmp_path / "file/more"))
    refused(errno.ENAMETOOLONG, "nnn", lambda: call(tmp_path / ("n" * 300)))
    (tmp_path / "loop").symlink_to("loop")
    refused(errno.ELOOP, tmp_path / "loop", lambda: call(tmp_path / "loop"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(yoke.IOError, match="is not a regular file"):
        call(tmp_path / "pipe")
    with pytest.raises(yoke.IOError, match="is not a regular file"):
        call("/dev/null")


def test_what_cannot_be_written(tmp_path):
    state = {"x": yoke.ones(3)}
    refused(errno.ENOENT, tmp_path / "none", lambda: yoke.save(tmp_path / "none/file", state))
    (tmp_path / "folder").mkdir()
    refused(errno.EISDIR, tmp_path / "folder", lambda: yoke.save(tmp_path / "folder", state))
    (tmp_path / "file").write_bytes(b"mine")
    refused(errno.ENOTDIR, tmp_path / "file", lambda: yoke.save(tmp_path / "file/more", state))
    refused(errno.EISDIR, tmp_path, lambda: yoke.save(f"{tmp_path}/", state))
    with pytest.raises(yoke.IOError):
        yoke.save("", state)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"] and (tmp_path / "file").read_bytes() == b"mine"
    assert os.listdir(tmp_path / "folder") == []


CHILD = """
import os, resource, sys, yoke
path, state = sys.argv[1], {"x": yoke.zeros(1 << 20)}
yoke.save(path, {"x": yoke.ones(3)})
before = set(os.listdir("/proc/self/fd"))
%s
try:
    yoke.save(path, state)
except yoke.IOError as error:
    assert path in str(error), error
    print(error.native_code)
assert set(os.listdir("/proc/self/fd")) == before
assert yoke.load(path)["x"].tolist() == [1, 1, 1]
assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)], os.listdir(os.path.dirname(path))
%s
yoke.save(path, state)
assert yoke.load(path)["x"].shape == (1 << 20,)
"""


def in_child(path, before, after):
    return subprocess.check_output([sys.executable, "-c", CHILD % (before, after), path], text=True, timeout=300).split()


def test_a_file_that_grows_too_large_leaves_the_former_one(tmp_path):
    """Acts like a full disk: a call without space fails, in the middle of the data."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    ignored = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, ({}, %d))" % hard
    for most in (0, 10, 100, 1 << 20, (4 << 20) + 10):
        assert in_child(tmp_path / "file", ignored + limit.format(most), limit.format(hard)) == [str(errno.EFBIG)]


def test_a_folder_that_cannot_be_written_to_leaves_the_former_file():
    """Root may write everywhere, so the child becomes another user, in a folder open to other users."""
    with tempfile.TemporaryDirectory() as folder:
        drop = "os.chmod(os.path.dirname(path), 0o555)"
        if os.geteuid() == 0:
            drop += "; os.setegid(65534); os.seteuid(65534)"
        back = "os.seteuid(os.getuid()); os.chmod(os.path.dirname(path), 0o755)"
        assert in_child(f"{folder}/file", drop, back) == [str(errno.EACCES)]


def test_what_fails_is_told_as_long_as_it_is_read(tmp_path):
    """Beside a whole file, a damaged file: the error of a load names only its own file."""
    good = write(tmp_path / "good", {"x": Stored("F32", (6,), DATA)})
    (tmp_path / "bad").write_bytes(one(dtype="F31"))
    for _ in range(3):
        with pytest.raises(yoke.CheckpointError, match="bad"):
            yoke.load(tmp_path / "bad")
        assert yoke.load(good)["x"].shape == (6,)
