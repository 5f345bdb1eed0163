"""Memory for states in files, as the system counts it for a child: the peak above the memory before."""
import os
import subprocess
import sys

import pytest

from stored_files import packed

pytestmark = pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system has no peak of memory that can be reset")
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # a sanitizer's allocator keeps freed memory
MIB = 1 << 20

CHILD = """
import sys, yoke

def told(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))

path = sys.argv[1]
%s
with open("/proc/self/clear_refs", "w") as most:
    most.write("5")
before = told("VmRSS:")
%s
print(told("VmHWM:") - before)
"""


def growth(path, before, then):
    """Returns the peak growth of a child's memory during an action, in bytes."""
    return int(subprocess.check_output([sys.executable, "-c", CHILD % (before, then), path], text=True, timeout=600))


@pytest.mark.parametrize("options", ["names='one'", "names='one', mmap=False", "names=lambda name: name == 'one', dtype='float64'"])
def test_one_tensor_of_a_file_larger_than_memory_is_read(tmp_path, options):
    path, size = tmp_path / "file", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 4 // 4096 * 4096
    one = 8 * MIB
    header = {"before": {"dtype": "F32", "shape": [size // 8], "data_offsets": [0, size // 2]},
              "one": {"dtype": "F32", "shape": [one // 4], "data_offsets": [size // 2, size // 2 + one]},
              "behind": {"dtype": "U8", "shape": [size // 2 - one], "data_offsets": [size // 2 + one, size]}}
    path.write_bytes(packed(header))
    os.truncate(path, path.stat().st_size + size)
    use = f"x = yoke.load(path, {options})['one']; assert x.shape == ({one // 4},) and x.sum().item() == 0"
    assert growth(path, "yoke.ones(4).sum().item()", use) <= 64 * MIB


def many(count):
    return "{" + ",".join(f'"layers.{i}.w":{{"dtype":"U8","shape":[1,1],"data_offsets":[{i},{i + 1}]}}' for i in range(count)) + "}"


def small(count):
    return "{" + ",".join(f'"{i:x}":{{"dtype":"U8","shape":[],"data_offsets":[{i},{i + 1}]}}' for i in range(count)) + "}"


BODY = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
LARGE = 16 * MIB
# {large part: (header, bytes of data, whether the file is whole)}
HEADERS = {
    "many tensors": (lambda: many(200_000), 200_000, True),
    "many small tensors": (lambda: small(300_000), 300_000, True),
    "a long name": (lambda: '{"' + "x" * LARGE + '":' + BODY + "}", 0, True),
    "a name of escapes": (lambda: '{"' + "\\u0041" * (LARGE // 6) + '":' + BODY + "}", 0, True),
    "a long shape": (lambda: '{"x":' + BODY.replace("[0]", "[" + "0," * (LARGE // 2) + "0]") + "}", 0, True),
    "a long text": (lambda: '{"__metadata__":{"a":"' + "x" * LARGE + '"}}', 0, True),
    "many texts": (lambda: '{"__metadata__":{' + ",".join(f'"{i}":""' for i in range(1_000_000)) + "}}", 0, True),
    "lists in each other": (lambda: '{"x":{"more":' + "[" * (LARGE // 2) + "]" * (LARGE // 2) + "," + BODY[1:] + "}", 0, True),
    "spaces": (lambda: "{}" + " " * LARGE, 0, True),
    "a name without an end": (lambda: '{"' + "x" * LARGE, 0, False),
    "a number without an end": (lambda: '{"x":' + "1" * LARGE + "}", 0, False),
    "a word of nobody": (lambda: '{"x":' + "n" * LARGE + "}", 0, False),
    "dtypes of nobody": (lambda: '{"x":{"dtype":"' + "x" * LARGE + '"}}', 0, False),
}


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory")
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_takes_no_more_than_eight_times_its_length(tmp_path, name):
    make, data, whole = HEADERS[name]
    header = make()
    (tmp_path / "file").write_bytes(packed(header, bytes(data)))
    then = "try:\n    assert yoke.load(path, names='none of these') == {}" + \
        f"\n    assert {whole}\nexcept yoke.CheckpointError:\n    assert not {whole}"
    # Does the same before, on a small file, so that objects of first use do not count for the header.
    first = "try:\n    yoke.load(path + '.none')\nexcept yoke.IOError:\n    pass\nopen(path + '.small', 'wb').write(bytes([2] + [0] * 7) + b'{}')\nyoke.load(path + '.small')"
    assert growth(tmp_path / "file", first, then) <= 8 * len(header) + MIB


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory")
@pytest.mark.parametrize("make", ["yoke.ones(48 << 20)", "yoke.ones(4096, 12288).T", "yoke.ones(2, 48 << 20, dtype=yoke.uint8)[:, ::2]",
                                  "yoke.ones(1).expand(24 << 20)"])
def test_a_blocking_save_takes_64_mib_beside_the_tensors(tmp_path, make):
    before = f"x = {make}; yoke.save(path, {{'x': yoke.ones(2, 2).T, 'n': 3}})"
    assert growth(tmp_path / "file", before, "yoke.save(path, {'x': x, 'n': [1]})") <= 64 * MIB
