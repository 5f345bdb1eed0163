"""benchmarks/roofline: its reading of machine code, and its data about cards."""
import pathlib
import struct
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks/roofline"), str(ROOT / "benchmarks")]
import cards  # noqa: E402
import cubin  # noqa: E402
import predict  # noqa: E402
import tensor  # noqa: E402
from thread import Lost, Thread  # noqa: E402

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


def test_a_bit_operation_adds_to_a_predicate():
    thread = ran("""
        MOV R0, 0x3f
        LOP3.LUT P0, RZ, R0, 0x20, RZ, 0xc0, !PT
        LOP3.LUT P1, RZ, RZ, 0xffffffff, RZ, 0xc0, P0
        LOP3.LUT P2, RZ, RZ, 0xffffffff, RZ, 0xc0, !P0
        EXIT""")
    assert [thread.predicates[name] for name in ("P0", "P1", "P2")] == [True, True, False]


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
    for name, clocks in {"H200 SXM": 2 / 29.5, "A100 SXM 80GB": 2 / 16, "RTX 4090": 2 / 4}.items():  # at 4,096 FLOP for each warp
        found = predict.pipes(thread.issued, known[name])
        assert found["tensor"] == pytest.approx(clocks, rel=0.01) and found["lsu"] == 4 / 32


def test_a_share_of_the_tensor_cores_below_its_target_is_found():
    wrong = []
    kernel = types.SimpleNamespace(name="a_kernel", arch=90, stack=0)
    one = types.SimpleNamespace(kernel=kernel, resident=2, limit="registers", unknown={})
    tensor.judge("case, card", 0.36, [one], 0.35, wrong)
    assert not wrong
    kernel.stack = 16
    tensor.judge("case, card", 0.34, [one], 0.35, wrong)
    assert "stack frame of 16" in wrong[0] and "0.34 of the tensor cores' peak is predicted; the target is 0.35" in wrong[1]


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
