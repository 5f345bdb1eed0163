"""benchmarks/roofline: the report finds planted defects in kernels, names missing tools, and writes its page."""
import os
import pathlib
import shutil
import struct
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks/roofline"), str(ROOT / "benchmarks")]
import cards  # noqa: E402
import cubin  # noqa: E402
import doubles  # noqa: E402
import frames  # noqa: E402
import predict  # noqa: E402
import report  # noqa: E402

NVCC = shutil.which(os.environ.get("CUDACXX", "nvcc")) or shutil.which("nvcc", path="/usr/local/cuda/bin")


@pytest.fixture(scope="module")
def planted_object(tmp_path_factory):
    """Kernels with a stack frame, with a spill, with more registers than a block can have, and with none of these."""
    try:
        cubin.tool("nvdisasm"), cubin.tool("cuobjdump")
    except cubin.Missing as missing:
        pytest.skip(str(missing))
    if not NVCC:
        pytest.skip("there is no nvcc")
    folder = tmp_path_factory.mktemp("planted")
    (folder / "planted.cu").write_text("""
        __global__ void plain(float *x, int n)
        {
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += 1;
        }
        __global__ void by_mma(float *x, int n)
        {
            x[threadIdx.x] += n;
        }
        __global__ void framed(float *x, int n)
        {
            float own[32];
            for (int i = 0; i < 32; i++) own[i] = 0;
            for (int i = 0; i < n; i++) own[(int)x[i] & 31] += 1;
            x[threadIdx.x] = own[threadIdx.x & 31];
        }
        __global__ void __launch_bounds__(256, 8) spilled(float *x)
        {
            float own[96];
            #pragma unroll
            for (int i = 0; i < 96; i++) own[i] = x[i * 256 + threadIdx.x];
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 96; i++) x[i * 256 + threadIdx.x] = own[95 - i] * own[i];
        }
        __global__ void in_double(float *x, int n)
        {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] = (float)((double)x[i] * 1.1 + 0.3);
        }
        #if defined(HEAVY)
        __global__ void __maxnreg__(240) heavy(float *x)
        {
            float own[160];
            #pragma unroll
            for (int i = 0; i < 160; i++) own[i] = x[i * 256 + threadIdx.x];
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 160; i++) x[i * 256 + threadIdx.x] = own[159 - i] * own[i];
        }
        #endif
        """)
    for name, options in {"planted": [], "heavy": ["-DHEAVY"]}.items():
        cubin.run(NVCC, "-arch=sm_90", *options, "-c", "planted.cu", "-o", f"{name}.o", cwd=folder)
    return folder / "planted.o"


def short(name):
    return name[len("_Z5"):].lstrip("0123456789").split("P")[0]


@pytest.fixture(scope="module")
def planted(planted_object):
    return {short(name): one for name, one in cubin.kernels_of(planted_object, 90).items()}


def test_a_planted_stack_frame_and_a_planted_spill_are_found(planted):
    assert planted["plain"].stack == 0
    assert planted["framed"].stack >= 128
    assert planted["spilled"].stack > 0 and planted["spilled"].most_threads == 256
    assert any(one.opcode == "STL" for one in planted["spilled"].code)


def test_a_launch_that_cannot_be_resident_is_found(planted):
    card = cards.catalog()["H200 SXM"]
    launch = types.SimpleNamespace(parameters=struct.pack("<Qi", 1 << 40, 1 << 20), blocks=[132 * 8, 1], threads=256,
                                   shared=230 << 10, operands=[(1 << 40, 4 << 20, 2)], op="plain")
    found = predict.predict(card, planted["plain"], launch)
    assert (found.resident, found.limit) == (0, "shared memory")
    launch.shared = 0
    found = predict.predict(card, planted["plain"], launch)
    assert found.resident == 8 and not found.unknown and found.in_flight > 0


def launch_of(kernel, shared=0):
    return types.SimpleNamespace(parameters=struct.pack("<Qi", 1 << 40, 4096), blocks=[132 * 8, 1], threads=256, shared=shared,
                                 operands=[(1 << 40, 4 << 20, 2)], op=short(kernel.name), kernel=kernel.name)


PLANTED = {"framed": 128, "spilled": 1024}  # at most the size of their frames


@pytest.fixture
def report_on(planted_object, planted, monkeypatch):
    """Returns a function that reports on a single planted kernel, by main's arguments, and gives the exit status."""
    def make(name, *options, shared=0, target=None, products=(), module="planted", excused=PLANTED):
        monkeypatch.setattr(report.tensor, "CASES", products)
        monkeypatch.setattr(report.gpu_cases, "MEMORY", [(f"{name} f32", 1, target)])
        monkeypatch.setattr(report, "KNOWN", {})
        monkeypatch.setattr(report.frames, "FRAMES", {kernel: ({90: most}, "planted") for kernel, most in excused.items()})
        monkeypatch.setattr(report.launches, "recorded",
                            lambda _, case, *rest: [launch_of(planted["by_mma"] if case in products else planted[name], shared)])
        monkeypatch.setattr(sys, "argv", ["report.py", ".", str(planted_object.with_stem(module)), "--cards", "H200 SXM", *options])
        return report.main()
    return make


@pytest.fixture
def without(monkeypatch):
    """No tool of that name on PATH, beside nvcc or among NVIDIA's wheels."""
    which = shutil.which

    def take_away(name):
        monkeypatch.setattr(cubin.shutil, "which", lambda asked, path=None: None if asked == name else which(asked, path=path))
        cubin.tool.cache_clear()
    yield take_away
    cubin.tool.cache_clear()


@pytest.mark.parametrize("name, options, told", [
    ("framed", {"excused": {"spilled": 1024}}, "framed f32, H200 SXM: framed has a stack frame of 128 bytes; 0 are allowed"),
    ("framed", {"excused": PLANTED | {"framed": 127}}, "framed f32, H200 SXM: framed has a stack frame of 128 bytes; 127 are allowed"),
    ("spilled", {"excused": {"framed": 128}}, "spilled f32, H200 SXM: spilled has a stack frame of"),
    ("plain", {"shared": 230 << 10}, "plain f32, H200 SXM: no block of plain fits a multiprocessor, because of its shared memory"),
    ("plain", {"target": 1e9}, "of a copy is predicted; the target is 1000000000.00")])
def test_the_check_fails_of_what_is_planted(report_on, capsys, name, options, told):
    assert report_on(name, "--check", **options) == 1
    assert told in capsys.readouterr().err
    assert report_on("plain", "--check") == 0


@pytest.mark.parametrize("options, told", [
    ({"excused": {"spilled": 1024}}, "framed, sm_90: a stack frame of 128 bytes; 0 are allowed: give a thread fewer elements"),
    ({"excused": PLANTED | {"framed": 120}}, "framed, sm_90: a stack frame of 128 bytes; 120 are allowed"),
    ({"excused": {"framed": 128}}, "spilled, sm_90: a stack frame of"),
    ({"excused": PLANTED | {"plain": 8}}, "plain, sm_90: remove its line from excuses.py: it has no frame"),
    ({"excused": PLANTED | {"gone<int>": 8}}, "gone<int>, sm_90: remove its line from excuses.py: there is no such kernel"),
    ({"module": "heavy"}, "heavy, sm_90: no block of 512 threads fits a multiprocessor, because of its registers; give the kernel launch bounds")])
@pytest.mark.parametrize("tool", ["", "nvdisasm"])
def test_what_is_planted_in_a_kernel_outside_the_cases_is_found(report_on, without, capsys, options, told, tool):
    if tool:
        without(tool)
    assert report_on("plain", "--check", **options) == 1
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1, said


def test_a_kernel_without_launch_bounds_may_tell_its_threads(report_on, monkeypatch):
    monkeypatch.setattr(report.frames, "BLOCKS", {"heavy": 256})
    assert report_on("plain", "--check", module="heavy") == 0


def test_kernels_are_told_as_their_sources_have_them():
    names = {"_ZN4yoke4cuda4base11column_rowsINS1_15SoftmaxGradientINS1_6HalvesEEES4_EEvNS1_4RowsIXplsrT_7kInputsLi1EEEEb":
             "column_rows<SoftmaxGradient<Halves>, Halves>", "_Z6framedPfi": "framed"}
    assert frames.readable(tuple(names)) == names


def test_without_nvdisasm_the_report_says_so_and_does_the_rest(report_on, without, capsys, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("as it was")
    without("nvdisasm")
    assert report_on("plain", "--write", str(page), target=0.9, products=("attention 4096 64",)) == 0
    said = capsys.readouterr().out
    assert "nvdisasm is not here" in said and "nothing is predicted" in said and page.read_text() == "as it was"
    assert "| plain f32 | — | 0.90 |" in said and "| 256 | 8 | threads | — | — | — |" in said, said
    assert "| attention 4096 64 | — | 0.35 |" in said, said
    assert report_on("plain", "--check", target=0.9) == report.SKIPPED
    assert report_on("framed", "--check", excused={"spilled": 1024}) == 1
    assert "framed has a stack frame" in capsys.readouterr().err


def test_the_page_is_of_its_own_cards_alone(report_on, monkeypatch, capsys, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{report.BEGIN}\n{report.END}\n")
    assert report_on("plain", "--write", str(page)) == 0
    assert f"{page} is not changed, because the page is for H200 SXM, H100 SXM, A100" in capsys.readouterr().out and "plain" not in page.read_text()
    monkeypatch.setattr(report, "CARDS", ("H200 SXM",))
    assert report_on("plain", "--write", str(page)) == 0
    assert "| plain f32 |" in page.read_text()


def test_without_cuobjdump_the_report_says_what_is_missing(report_on, without, capsys):
    without("cuobjdump")
    assert report_on("plain", "--check") == report.SKIPPED
    assert "cuobjdump is not here; it is part of the CUDA toolkit" in capsys.readouterr().out


def test_what_counts_in_float64_is_told_and_written(planted_object, planted, monkeypatch, tmp_path):
    page, launch = tmp_path / "page.md", launch_of(planted["in_double"])
    page.write_text(f"before\n{report.OF_FLOAT64}\nold\n{report.END}\nthe rest\n{report.BEGIN}\n\n{report.END}\n")
    launch.blocks = [16, 1]  # 256 threads each
    counted = [doubles.Counted("plain f32", "in_double", 4096, 8, "`planted`", "because"),
               doubles.Counted("plain f32", "in_double", 4096, 0, "the same", "because", one=True)]
    monkeypatch.setattr(report.doubles, "CASES", counted)
    monkeypatch.setattr(report.launches, "recorded", lambda *_: [launch])
    monkeypatch.setattr(sys, "argv", ["report.py", ".", str(planted_object), "--float64", "--write", str(page)])
    assert report.main() == 0
    written = page.read_text()
    assert "| `planted` | 1.0 | 2.0 |" in written and "| the same | 1 by the first thread of a block |" in written, written
    assert "old" not in written and written.startswith("before") and written.endswith(f"the rest\n{report.BEGIN}\n\n{report.END}\n")


def test_a_page_that_tells_another_share_is_found(tmp_path):
    text = "| Case | H200 SXM | T4 | Target |\n|---|---|---|---|\n| add f32 | 0.99 | **0.84** | 0.90 |\n\n| Case | Op |\n|---|---|\n| add f32 | add |\n"
    page = tmp_path / "page.md"
    for told, wanted in (("0.99", []), ("0.11", ["page.md says 0.11 for add f32 on H200 SXM, and it is 0.99"])):
        page.write_text(f"| Other | table |\n{report.BEGIN}\n\n{text.replace('0.99', told)}{report.END}\n")
        assert [line.split(":")[0] for line in report.stale(page, text)] == wanted
    assert report.shares(report.PAGE.read_text().split(report.BEGIN)[1])["add f32", "H200 SXM"]


def test_a_mask_hides_no_pair_of_a_case_for_tensor_cores():
    masked, plain, causal = (report.tensor.flops(f"attention 4096 64{how}") for how in (" masked", " plain", ""))
    assert masked == plain and plain / causal == 8192 / 4097
    assert report.tensor.target("attention 4096 64 plain") and not report.tensor.target("attention 4096 64 masked")
    launch = types.SimpleNamespace(kernel="by_mma", threads=128, blocks=[4, 1])
    assert report.tensor.followed("attention 4096 64 masked", launch) == [(0, 0)]
