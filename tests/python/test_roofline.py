"""benchmarks/roofline: what it makes of machine code, and that it finds what it is to find."""
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
import frames  # noqa: E402
import predict  # noqa: E402
import report  # noqa: E402
import tensor  # noqa: E402
from thread import Lost, Thread  # noqa: E402

NVCC = shutil.which(os.environ.get("CUDACXX", "nvcc")) or shutil.which("nvcc", path="/usr/local/cuda/bin")
HEAD = "\t.section\t.text._Z1k,\"ax\"\n"


class NoMemory:
    def place(self, at):
        return None

    def read(self, at, size):
        return 7


def ran(code, parameters=b"", blocks=(4, 1), threads=256, block=0, arch=90):
    """The thread after it has run `code`, a line an instruction, with labels."""
    lines, at = [HEAD], 0
    for line in code.strip().splitlines():
        line = line.strip()
        if line.endswith(":"):
            lines.append(line + "\n")
        else:
            lines.append(f"        /*{at:04x}*/                   {line} ;\n")
            at += 16
    kernel = cubin.read_code("".join(lines), arch)["_Z1k"]
    launch = types.SimpleNamespace(parameters=parameters, blocks=list(blocks), threads=threads, shared=0)
    return Thread(kernel, launch, NoMemory(), block).run()


def test_a_loop_has_as_many_turns_as_its_parameter_says():
    thread = ran("""
        MOV R0, RZ
        .L_x_0:
        IADD3 R0, R0, 0x1, RZ
        LDG.E.128 R4, desc[UR4][R2.64]
        FADD R8, R4, R5
        ISETP.GE.AND P0, PT, R0, c[0x0][0x210], PT
        @!P0 BRA `(.L_x_0)
        STG.E [R2.64], R8
        EXIT""", struct.pack("<i", 5))
    assert thread.issued["LDG.E.128"] == 5 and thread.issued["STG.E"] == 1
    assert thread.bytes == {None: 84} and thread.most_in_flight == 16


@pytest.mark.parametrize("a, b", [(0, 1), (1, 0), (2**40, 2**40 + 1), (2**40 + 1, 2**40), (-1, 1), (5, 5), (-2**40, -2**40)])
def test_comparisons_of_64_bits_take_both_words(a, b):
    code = """
        ISETP.GE.U32.AND P0, PT, R0, R2, PT
        ISETP.GE.AND.EX P0, PT, R1, R3, PT, P0
        EXIT"""
    words = [value >> shift & 0xFFFFFFFF for value in (a, b) for shift in (0, 32)]
    moves = "\n".join(f"MOV R{k}, {word:#x}" for k, word in enumerate(words))
    assert ran(moves + code).predicates["P0"] == (a >= b)


def test_sums_of_64_bits_carry():
    thread = ran("""
        MOV R0, 0xffffffff
        IADD3 R4, P0, R0, 0x2, RZ
        IADD3.X R5, RZ, RZ, RZ, P0, !PT
        MOV R1, 0x3
        IADD3 R6, P1, R1, -R1, RZ
        IADD3.X R7, RZ, -0x1, RZ, P1, !PT
        IMAD.WIDE.U32 R8, R0, R0, R4
        LEA R10, P2, R0, R1, 0x4
        LEA.HI.X R11, R0, RZ, RZ, 0x4, P2
        EXIT""")
    assert [thread.registers[k] for k in (4, 5, 6, 7)] == [1, 1, 0, 0]
    assert thread.registers[8] | thread.registers[9] << 32 == 0xFFFFFFFF**2 + (1 << 32) + 1 & (1 << 64) - 1
    assert thread.registers[10] | thread.registers[11] << 32 == (0xFFFFFFFF << 4) + 3


def test_integers_are_divided_by_way_of_floats():
    thread = ran("""
        MOV R0, 0x64
        I2F.U32.RP R1, R0
        MUFU.RCP R2, R1
        IADD3 R3, R2, 0xffffffe, RZ
        F2I.FTZ.U32.TRUNC.NTZ R4, R3
        SHF.R.U32.HI R5, RZ, 0x5, R0
        LOP3.LUT P3, R6, R0, 0x7c, RZ, 0xc0, !PT
        PRMT R7, R0, 0x5410, R4
        EXIT""")
    assert abs(thread.registers[4] - 2**32 / 100) < 100
    assert thread.registers[5] == 3 and thread.registers[6] == 0x64 and thread.predicates["P3"]
    assert thread.registers[7] == (thread.registers[4] & 0xFFFF) << 16 | 0x64


def test_each_block_knows_its_number_and_calls_return():
    thread = ran("""
        S2R R0, SR_CTAID.X
        MOV R20, 0x30
        CALL.REL.NOINC `(.L_x_9)
        EXIT
        .L_x_9:
        IADD3 R1, R0, c[0x0][0x0], RZ
        RET.REL.NODEC R20 `(_Z1k)""", block=3)
    assert thread.registers[1] == 3 + 256


def test_the_least_and_the_largest_of_three_are_one_instruction_of_blackwell():
    thread = ran("""
        MOV R0, 0x40000000
        MOV R1, 0x3f800000
        MOV R2, 0x7fc00000
        FMNMX3 R4, R0, -INF , R1, !PT
        FMNMX3 R5, R0, R1, R2, PT
        EXIT""", arch=100)
    assert not thread.unknown and (thread.registers[4], thread.registers[5]) == (0x40000000, 0x3F800000)
    known = cards.catalog()
    for name in ("B200 SXM", "RTX 5090"):
        each = known[name].each
        assert predict.pipes(thread.issued, known[name])["alu"] == pytest.approx(5 / each.alu)


def test_copies_to_shared_memory_are_in_flight_until_the_thread_waits():
    thread = ran("""
        LDGSTS.E.BYPASS.128 [R5], desc[UR4][R2.64]
        LDGSTS.E.BYPASS.128 [R5+0x800], desc[UR4][R2.64+0x40], PT
        LDGSTS.E.BYPASS.128 [R5+0x1000], desc[UR4][R2.64+0x80], P0
        LDGDEPBAR
        DEPBAR.LE SB0, 0x0
        LDG.E.64 R8, desc[UR4][R2.64]
        EXIT""")
    assert thread.bytes == {None: 40} and thread.most_in_flight == 32


def test_products_of_matrices_leave_sums_and_take_the_tensor_cores_time():
    thread = ran("""
        MOV R9, 0x40000000
        LDSM.16.M88.4 R12, [R3+0x10]
        HMMA.16816.F32.BF16 R4, R12, R16, RZ
        HMMA.16816.F32.BF16 R20, R12, R16, R8
        EXIT""")
    assert not thread.unknown and thread.registers[21] == 0x40000000 and thread.registers[4] == 0
    known = cards.catalog()
    for name, clocks in {"H200 SXM": 2 / 29.5, "A100 SXM 80GB": 2 / 16, "RTX 4090": 2 / 4}.items():  # of 4,096 FLOP a warp
        found = predict.pipes(thread.issued, known[name])
        assert found["tensor"] == pytest.approx(clocks, rel=0.01) and found["lsu"] == 4 / 32


def test_a_share_of_the_tensor_cores_below_its_target_is_found():
    wrong = []
    one = types.SimpleNamespace(kernel=types.SimpleNamespace(stack=0), resident=2, limit="registers", unknown={})
    tensor.judge("case, card", 0.36, [one], 0.35, wrong)
    assert not wrong
    one.kernel.stack = 16
    tensor.judge("case, card", 0.34, [one], 0.35, wrong)
    assert "stack frame of 16" in wrong[0] and "0.34 of the tensor cores' peak is predicted, of 0.35" in wrong[1]


def test_what_is_unknown_is_told_and_what_has_no_end_too():
    assert ran("FROBNICATE R1, R2\nEXIT").unknown == {"FROBNICATE": 1}
    with pytest.raises(Lost, match="more than"):
        ran(".L_x_0:\nBRA `(.L_x_0)")


def test_cards_are_those_of_the_catalog():
    found = cards.catalog()
    assert found["H200 SXM"].multiprocessors == 132 and found["T4"].arch == 75
    assert found["H200 SXM"].clock == pytest.approx(1.98e9, rel=0.01) and found["T4"].clock == pytest.approx(1.59e9, rel=0.01)


def kernel(registers=32, shared=0):
    return types.SimpleNamespace(registers=registers, shared=shared)


def test_what_a_multiprocessor_holds_is_what_it_has_least_of():
    each = cards.MULTIPROCESSORS
    assert cards.resident(each[90], kernel(32), 256, 0) == (8, "threads")
    assert cards.resident(each[90], kernel(64), 256, 0) == (4, "registers")
    assert cards.resident(each[90], kernel(33), 256, 0) == (6, "registers")  # 40 a thread: pieces of 256 a warp
    assert cards.resident(each[75], kernel(32), 256, 0) == (4, "threads")
    assert cards.resident(each[89], kernel(32), 256, 0) == (6, "threads")
    assert cards.resident(each[80], kernel(32), 128, 48 << 10) == (3, "shared memory")
    assert cards.resident(each[90], kernel(255), 1024, 0) == (0, "registers")


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


PLANTED = {"framed": 128, "spilled": 1024}  # at most what their frames have


@pytest.fixture
def report_on(planted_object, planted, monkeypatch):
    """A report on one planted kernel, by main's arguments; its exit status."""
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
    ("framed", {"excused": {"spilled": 1024}}, "framed f32, H200 SXM: framed has a stack frame of 128 bytes, of 0 that are excused"),
    ("framed", {"excused": PLANTED | {"framed": 127}}, "framed f32, H200 SXM: framed has a stack frame of 128 bytes, of 127"),
    ("spilled", {"excused": {"framed": 128}}, "spilled f32, H200 SXM: spilled has a stack frame of"),
    ("plain", {"shared": 230 << 10}, "plain f32, H200 SXM: no block of plain fits a multiprocessor, for its shared memory"),
    ("plain", {"target": 1e9}, "of a copy is predicted, of 1000000000.00")])
def test_the_check_fails_of_what_is_planted(report_on, capsys, name, options, told):
    assert report_on(name, "--check", **options) == 1
    assert told in capsys.readouterr().err
    assert report_on("plain", "--check") == 0


@pytest.mark.parametrize("options, told", [
    ({"excused": {"spilled": 1024}}, "framed, sm_90: a stack frame of 128 bytes, of 0 that are excused: give a thread fewer elements"),
    ({"excused": PLANTED | {"framed": 120}}, "framed, sm_90: a stack frame of 128 bytes, of 120 that are excused"),
    ({"excused": {"framed": 128}}, "spilled, sm_90: a stack frame of"),
    ({"excused": PLANTED | {"plain": 8}}, "plain, sm_90: its line in excuses.py is needed no more, it has no frame"),
    ({"excused": PLANTED | {"gone<int>": 8}}, "gone<int>, sm_90: its line in excuses.py is needed no more, there is no such kernel"),
    ({"module": "heavy"}, "heavy, sm_90: no block of 512 threads fits a multiprocessor, for its registers; tell its launch bounds")])
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


def test_without_cuobjdump_the_report_says_what_is_missing(report_on, without, capsys):
    without("cuobjdump")
    assert report_on("plain", "--check") == report.SKIPPED
    assert "cuobjdump is not here; it is part of the CUDA toolkit" in capsys.readouterr().out


def test_a_page_that_tells_another_share_is_found(tmp_path):
    text = "| Case | H200 SXM | T4 | Target |\n|---|---|---|---|\n| add f32 | 0.99 | **0.84** | 0.90 |\n\n| Case | Op |\n|---|---|\n| add f32 | add |\n"
    page = tmp_path / "page.md"
    for told, wanted in (("0.99", []), ("0.11", ["page.md says 0.11 for add f32 on H200 SXM, and it is 0.99"])):
        page.write_text(f"| Other | table |\n{report.BEGIN}\n\n{text.replace('0.99', told)}{report.END}\n")
        assert [line.split(":")[0] for line in report.stale(page, text)] == wanted
    assert report.shares(report.PAGE.read_text().split(report.BEGIN)[1])["add f32", "H200 SXM"]
