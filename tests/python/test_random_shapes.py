"""Products and convolutions of random shapes: on every level of instruction sets for oneDNN, beside NumPy in float64 and with NaN in
unwritten memory; also float32 beside Yoke's own loops in float64 if a convolution is large enough for bands.

oneDNN 2.6 has kernels that fail for a few shapes in a thousand, some of them by reading unwritten memory; for some bands of an
image it takes other layouts of the weight than for others.
"""
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

import engine_shapes
import yoke

SOAKS = bool(os.environ.get("YOKE_SOAK"))
SANITIZED = "ASAN_OPTIONS" in os.environ  # slow
SHAPES = int(os.environ.get("YOKE_SHAPES", 20 if SANITIZED else 300))
SHARES = int(os.environ.get("YOKE_SHARES", 1))  # processes at a time, each with this many shapes
LARGE_SEEDS, LARGE_CASES = range(30 if SOAKS else 1), 8 if SANITIZED else 40

# Features of a processor, by Linux's names, that oneDNN needs for a level.
AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
FLAGS = {"SSE41": {"sse4_1"}, "AVX": {"avx"}, "AVX2": {"avx2"}, "AVX512_CORE": AVX512, "AVX512_CORE_BF16": AVX512 | {"avx512_vnni", "avx512_bf16"},
         "AVX512_CORE_AMX": AVX512 | {"avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"}}

# Memory comes with NaN in every dtype. Aligned blocks, on which engines work, end at a guard page. At the release of
# a block, the bytes beside the block must be unchanged. With a certain setting, engines leave results unwritten in a
# quarter of their calls.
FILL = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { kPage = 4096 };
static const size_t kRoom = (size_t)1 << 40;
struct Block { unsigned char *begin, *data, *end; size_t bytes; };
static unsigned char *room;    // blocks lie in it one after another, and none of its places is used twice
static struct Block *blocks;   // by the page of their data
static size_t taken;
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
static void *filled(void *block, size_t bytes) { return block ? memset(block, 0xff, bytes) : block; }
void *malloc(size_t bytes) { return filled(__libc_malloc(bytes), bytes); }
static void *reserve(size_t bytes, int protection)
{
    void *(*map)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
    return map(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
static __attribute__((constructor)) void begin(void)
{
    blocks = reserve(kRoom / kPage * sizeof *blocks, PROT_READ | PROT_WRITE);
    room = reserve(kRoom, PROT_NONE);
}
int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (!room) begin();
    const size_t pages = (bytes + alignment + kPage - 1) / kPage + 2;
    unsigned char *first = room + __atomic_fetch_add(&taken, pages * kPage, __ATOMIC_RELAXED) + kPage, *end = first + (pages - 2) * kPage;
    unsigned char *data = (unsigned char *)((uintptr_t)(end - bytes) / alignment * alignment);
    if (mprotect(first, end - first, PROT_READ | PROT_WRITE) != 0) return ENOMEM;
    filled(first, end - first);
    blocks[(data - room) / kPage] = (struct Block){first, data, end, bytes};
    *block = data;
    return 0;
}
static void look(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; ++from)
        if (*from != 0xff) {
            (void)!write(2, "written beside a block\n", 23);
            abort();
        }
}
void free(void *pointer)
{
    unsigned char *data = pointer;
    if (data < room || data >= room + kRoom) {
        __libc_free(pointer);
        return;
    }
    const struct Block block = blocks[(data - room) / kPage];
    look(block.begin, data);
    look(data + block.bytes, block.end);
    madvise(block.begin, block.end - block.begin, MADV_DONTNEED);
    mprotect(block.begin, block.end - block.begin, PROT_NONE);
}
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    void *block = ((void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap"))(at, bytes, protection, flags, file, offset);
    const int is_block = flags == (MAP_PRIVATE | MAP_ANONYMOUS) && (protection & PROT_WRITE) && bytes >= 4u << 20 && bytes < 256u << 20;
    return is_block && block != MAP_FAILED ? filled(block, bytes) : block;
}
int dnnl_primitive_execute(const void *primitive, void *stream, int count, const void *args)
{
    static int calls;
    if (getenv("LEAVES_UNWRITTEN") && __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 4 == 0) return 0;
    void *engine = dlopen("libdnnl.so.2", RTLD_LAZY | RTLD_NOLOAD);  // which came with Yoke, and is not among what RTLD_NEXT goes through
    return ((int (*)(const void *, void *, int, const void *))dlsym(engine, "dnnl_primitive_execute"))(primitive, stream, count, args);
}
"""


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory):
    """The environment of a process whose memory comes with NaN."""
    library = tmp_path_factory.mktemp("fill") / "fill.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", library, "-x", "c", "-", "-ldl"], input=FILL, text=True, check=True)
    kept = {name: value for name, value in os.environ.items() if name != "YOKE_CPU_ISA"} | {"YOKE_NO_CACHING": "1", "YOKE_DEVICE": "cpu"}
    if SANITIZED:
        return kept | {"ASAN_OPTIONS": os.environ["ASAN_OPTIONS"] + ":max_malloc_fill_size=1073741824:malloc_fill_byte=255"}
    return kept | {"LD_PRELOAD": " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))}


def start(surroundings, level, *arguments, **more):
    return subprocess.Popen([sys.executable, pathlib.Path(engine_shapes.__file__), "--level", level, *arguments], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=surroundings | {"ONEDNN_MAX_CPU_ISA": level} | more)


def needs(level):
    """Skips the test if the processor does not support the level."""
    missing = FLAGS[level] - set(pathlib.Path("/proc/cpuinfo").read_text().split())
    if missing:
        pytest.skip(f"this processor has no {level}: it lacks {', '.join(sorted(missing))}")


@pytest.mark.parametrize("level", FLAGS)
def test_shapes_are_right_to_rounding_at_every_level(level, surroundings):
    needs(level)
    share = -(-SHAPES // SHARES)
    running = [start(surroundings, level, "--first", str(share * i), "--shapes", str(share)) for i in range(SHARES)]
    told = [one.communicate()[0] for one in running]
    print("".join(told))
    assert [one.returncode for one in running] == [0] * SHARES, "".join(told)


@pytest.mark.parametrize("number", [19637])  # a gradient by weight of 1 x 1 with a stride and three channels
def test_nothing_is_written_beside_the_memory_of_an_engine(number, surroundings):
    one = start(surroundings, "AVX2", "--only", str(number))
    told = one.communicate()[0]
    assert one.returncode == 0, told


@pytest.mark.parametrize("number", [16330])  # a gradient by x of 1 x 1 with a stride, of three channels
@pytest.mark.parametrize("level", ["AVX512_CORE_BF16", "AVX512_CORE_AMX"])
def test_shapes_that_were_wrong_at_a_level_are_right(level, number, surroundings):
    needs(level)
    one = start(surroundings, level, "--only", str(number))
    told = one.communicate()[0]
    assert one.returncode == 0, told


def test_one_shape_in_fifteen_is_of_the_kind_that_was_wrong():
    hits = sum(engine_shapes.skips_rows_twice(engine_shapes.draw_case(0, number)) for number in range(300))
    assert hits >= 20


@pytest.mark.skipif(SANITIZED, reason="the test preloads a library, and so does the sanitizer")
def test_results_that_an_engine_leaves_unwritten_are_seen(surroundings):
    level = next(level for level in reversed(FLAGS) if FLAGS[level] <= set(pathlib.Path("/proc/cpuinfo").read_text().split()))
    one = start(surroundings, level, "--shapes", "30", LEAVES_UNWRITTEN="1")
    told = one.communicate()[0]
    assert one.returncode == 1 and "nan location mismatch" in told, told


@pytest.fixture(autouse=True)
def threads():
    before = yoke.get_num_threads()
    yield
    yoke.set_num_threads(before)


def soil():
    """Leaves freed memory with values that show up in any result that reads them."""
    del [yoke.full((2**power,), float("nan")) for power in range(8, 20) for _ in range(2)][:]


def pair(draw, least, most):
    return [draw.randint(least, most), draw.randint(least, most)]


def results(op, operands, options, dtype, count, slopes):
    """Returns the output and the gradients of the operands; `slopes` holds the output's gradient, drawn once."""
    yoke.set_num_threads(count)
    leaves = [t.to(dtype).detach().requires_grad_(True) for t in operands]
    out = op(*leaves, **options)
    slopes[:] = slopes or [yoke.randn(out.shape).to("bf16")]
    soil()
    out.backward(slopes[0].to(dtype))
    return [t.detach().to("f32").numpy() for t in (out, *(leaf.grad for leaf in leaves))]


def draw_large_conv(draw):
    """Draws a convolution over 1 or 2 images with a result cut into bands, with strided windows or with padded 1 x 1 windows."""
    while True:
        kernel = [draw.randint(1, 9)] * 2 if draw.random() < 0.8 else pair(draw, 1, 7)
        stride, padding = pair(draw, 1, 4), [draw.choice([0, size // 2, size // 2, size]) for size in kernel]
        if draw.random() < 0.7:
            stride = [stride[0]] * 2
        n, channels, out = draw.choice([1, 1, 1, 2]), draw.choice([32, 64, 128, 256, 384]), draw.choice([48, 64, 68, 96, 192])
        sides = [draw.randint(20, 120), draw.randint(6, 200)]
        places = [(side + 2 * pad - size) // step + 1 for side, pad, size, step in zip(sides, padding, kernel, stride)]
        work = n * channels * out * np.prod(kernel) * np.prod(places)
        if min(places) > 0 and 2e7 < work < 3e8:
            return yoke.conv2d, [n, channels, *sides], [out, channels, *kernel], {"stride": stride, "padding": padding}


@pytest.mark.parametrize("dtype, bound", [("f32", 1e-4), ("bf16", 1.5e-2)])
@pytest.mark.parametrize("seed", LARGE_SEEDS)
def test_large_convolutions_are_those_of_own_loops(dtype, bound, seed):
    draw = random.Random(seed)
    yoke.manual_seed(seed)
    for _ in range(LARGE_CASES):
        op, x, weight, options = case = draw_large_conv(draw)
        operands, slopes = [yoke.randn(shape).to(dtype) for shape in (x, weight)], []
        want = results(op, operands, options, "f64", 2, slopes)
        got = results(op, operands, options, dtype, draw.choice([1, 2]), slopes)
        for exact, one in zip(want, got):
            np.testing.assert_allclose(one, exact, rtol=0, atol=bound * np.abs(exact).max(initial=1e-6), err_msg=str(case))


@pytest.mark.parametrize("dtype, x, weight, options", [
    ("f32", (1, 64, 35, 151), (192, 64, 7, 7), {"stride": 4, "padding": 3}), ("f32", (1, 384, 24, 40), (48, 384, 7, 7), {"stride": 2, "padding": 3}),
    ("bf16", (1, 100, 32, 6), (128, 100, 1, 1), {"stride": 3, "padding": (0, 1)}), ("bf16", (1, 100, 38, 24), (68, 100, 1, 1), {"stride": 2, "padding": (0, 1)}),
    ("bf16", (1, 384, 64, 12), (68, 384, 4, 4), {"stride": (2, 3), "padding": 2}), ("bf16", (1, 384, 54, 6), (192, 384, 7, 7), {"stride": 3, "padding": (0, 3)}),
    ("bf16", (1, 512, 54, 18), (64, 512, 3, 3), {"stride": 2, "padding": 1}), ("bf16", (1, 512, 111, 129), (68, 128, 4, 3), {"stride": (2, 1), "padding": (5, 1), "groups": 4})])
def test_convolutions_that_were_wrong_are_right(dtype, x, weight, options):
    operands, slopes = [yoke.randn(shape).to(dtype) for shape in (x, weight)], []
    want, got = (results(yoke.conv2d, operands, options, given, 2, slopes) for given in ("f64", dtype))
    for exact, one in zip(want, got):
        np.testing.assert_allclose(one, exact, rtol=0, atol=1.5e-2 * np.abs(exact).max())
