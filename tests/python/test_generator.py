"""capi/gen_ops.py: the generated files follow the table, and a wrong table is refused with the line."""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = "relu(x: tensor) -> tensor saves out | number like x | none | bytes | x where x > 0, else 0."

BAD = {
    "unwritten": ("relu x", "not written as"),
    "twice": (GOOD + "\n" + GOOD, "'relu' stands there twice"),
    "argument twice": ("f(x: tensor, x: int) -> tensor | own | none | bytes | T.", "'x' is listed twice"),
    "type": ("f(x: tensr) -> tensor | own | none | bytes | T.", "unknown type 'tensr'"),
    "argument form": ("f(x tensor) -> tensor | own | none | bytes | T.", "not written as 'name: type'"),
    "role": ("f(x: tensor as indx) -> tensor | own | none | bytes | T.", "unknown role 'indx'; known: index, random_offset"),
    "role of another type": ("f(x: tensor, n: int as index) -> tensor | own | none | bytes | T.",
                             "'n' of type int cannot be index; that is for tensor and tensors"),
    "two offsets": ("f(m: int as random_offset, n: int as random_offset) -> () | own | none | bytes | T.",
                    "'m' and 'n' are both random_offset"),
    "role in place": ("f(x: tensor, i: tensor as index) -> tensor | own | none | bytes | T.\nf_(x: mut, i: tensor) -> x | - | none | inplace | T.",
                      "then what 'f' takes, roles"),
    "rule": ("f(x: tensor) -> tensor | alike x | none | bytes | T.", "unknown shape rule 'alike x'; known: like x, floating like x, "),
    "no rule": ("f(x: tensor) -> tensor | none | bytes | T.", "-> results | shape | autocast | cost | text'"),
    "rule of no argument": ("f(x: tensor, n: int) -> tensor | floating like y | none | bytes | T.",
                            "shape rule 'floating like' names 'y', which is no argument; there are: x, n"),
    "rule of another type": ("f(x: tensor, n: int) -> tensor | broadcast x n | none | bytes | T.",
                             "names 'x' of type tensor; 'broadcast x y' takes operand there"),
    "half a rule": ("f(x: tensor, axis: ints?) -> tensor | bool reduce x axis | none | bytes | T.",
                    "is not written as 'bool reduce x axis keepdim'"),
    "rule of two results": ("f(x: tensor) -> tensor, saved | like x | none | bytes | T.", "is of one result, and this op has 2"),
    "rule of a composition": ("f(x: tensor) -> tensor | like x | none | composed | T.", "cost composed has the shape rule '-'"),
    "nothing for a result": ("f(x: tensor) -> tensor | - | none | bytes | T.", "'-' is of an op that only writes its mut arguments"),
    "stray quote": ('f("x: tensor) -> tensor | own | none | bytes | T.', "argument '\"x: tensor' is not written as"),
    "no argument": ("f(x: tensor,, n: int) -> tensor | own | none | bytes | T.", "argument '' is not written as 'name: type'"),
    "saved for no gradient": ("f(x: tensor) -> tensor saves x | - | none | composed | T.", "'saves' is of an op with a gradient of its own"),
    "nothing saved": ("f(x: tensor) -> tensor saves  | own | none | bytes | T.", "'saves' names nothing; there are: x, out"),
    "nothing saved for one": ("f(x: tensor) -> tensor saves x for x,  for x | own | none | bytes | T.", "'saves' names nothing"),
    "autocast": ("f(x: tensor) -> tensor | own | fp16 | bytes | T.", "unknown autocast class 'fp16'"),
    "cost": ("f(x: tensor) -> tensor | own | none | free | T.", "unknown cost 'free'"),
    "default": ("f(x: tensor, n: int = 1.5) -> tensor | own | none | bytes | T.", "'1.5' is no default of type int; allowed: a whole number"),
    "default out of range": ("f(x: tensor, n: int = 9223372036854775808) -> tensor | own | none | bytes | T.",
                             "'n': '9223372036854775808' does not fit into 64 bits; allowed: -9223372036854775807 to "),
    "default beyond doubles": ("f(x: tensor, a: float = 1e309) -> tensor | own | none | bytes | T.", "'1e309' is beyond the largest double"),
    "name of a dtype": ("float32(x: tensor) -> tensor | own | none | bytes | T.", "op 'float32' is what core/base/dtypes.def calls dtype 2, too"),
    "short name of a dtype": ("u8(x: tensor) -> tensor | own | none | bytes | T.", "op 'u8' is what core/base/dtypes.def calls dtype 8, too"),
    "default order": ("f(n: int = 1, x: tensor) -> tensor | own | none | bytes | T.", "the argument before has one"),
    "by name, without default": ("f(x: tensor, *, a: int) -> tensor | own | none | bytes | T.", "'a' stands behind '*' and has no default"),
    "star at the end": ("f(x: tensor, *) -> tensor | own | none | bytes | T.", "'*' stands once at most, with an argument behind it"),
    "two stars": ("f(x: tensor, *, a: int = 1, *, b: int = 1) -> tensor | own | none | bytes | T.", "'*' stands once at most"),
    "python word": ("lambda(x: tensor) -> tensor | own | none | bytes | T.", "op 'lambda' is a word of Python; another name"),
    "lua word": ("repeat(x: tensor) -> tensor | own | none | bytes | T.", "op 'repeat' is a word of Lua;"),
    "c word": ("f(x: tensor, restrict: int) -> tensor | own | none | bytes | T.", "argument 'restrict' is a word of C;"),
    "c++ word": ("f(x: tensor, template: int) -> tensor | own | none | bytes | T.", "argument 'template' is a word of C++;"),
    "word of several": ("_and(x: tensor) -> tensor | own | none | bytes | T.", "op '_and' is a word of C++ and Python and Lua;"),
    "case": ("ReLU(x: tensor) -> tensor | own | none | bytes | T.", "snake_case"),
    "saves": ("f(x: tensor) -> tensor saves y | own | none | bytes | T.", "saves 'y', which is no tensor of the op; there are: x, out"),
    "result": ("f(x: tensor) -> list | own | none | bytes | T.", "result 'list' is unknown; known: tensor, plain, "),
    "list of a kernel": ("f(x: tensor) -> tensors | own | none | bytes | T.", "'tensors', a list, is for composed ops"),
    "list among others": ("f(x: tensor) -> tensor, tensors | - | none | composed | T.", "result 'tensors'"),
    "saved first": ("f(x: tensor) -> saved, tensor | own | none | bytes | T.", "saved results stand after"),
    "underscore": ("f_(x: tensor) -> tensor | own | none | bytes | T.", "ends in '_'"),
    "no underscore": ("f(x: mut) -> x | own | none | bytes | T.", "ends in '_'"),
    "text": ("f(x: tensor) -> tensor | own | none | bytes | No full stop", "ends in '.'"),
    "word of what is generated": ("f(args: tensors) -> tensor | own | none | bytes | T.", "'args' is a word of this table"),
    "length": ("f(x: ints, x_count: int) -> tensor | own | none | bytes | T.", "the name that C gives the length of 'x'"),
    "results": ("_f(x: tensor) -> tensor, tensor, plain, plain, saved | own | none | bytes | T.", "5 results; kMaxResults"),
    "lists": ("f(a: ints, b: ints, c: ints, d: tensors, e: ints) -> plain | own | none | bytes | T.", "5 lists; kMaxOpLists"),
    "lists of floats": ("f(a: floats?, b: floats?) -> plain | - | none | composed | T.", "several lists of floats"),
    "one enumerator": ("f(a_1: int, a1: int) -> plain | own | none | bytes | T.", "'a_1' and 'a1' are one name in C++"),
    "one struct": ("a_1(x: tensor) -> tensor | own | none | bytes | T.\na1(x: tensor) -> tensor | own | none | bytes | T.",
                   "'a_1' of line 3 are both A1Args in C++"),
    "function of a header": ("version(x: tensor) -> tensor | own | none | bytes | T.", "declared by a header written by hand"),
    "type of a header": ("tensor(x: int) -> plain | own | none | bytes | T.", "yoke_tensor of op 'tensor' is declared by a header"),
    "function of an op": ("f_scalar(x: tensor) -> tensor | own | none | bytes | T.\nf(x: operand) -> tensor | own | none | bytes | T.",
                          "declared by op 'f_scalar' of line 3"),
    "in place of nothing": ("f_(x: mut) -> x | - | none | inplace | T.", "no op 'f'"),
    "out": ("f(out: tensor) -> tensor | own | none | bytes | T.", "'out' has the name of what is added to the arguments: out"),
    "one of two outs": ("f(out1: tensor) -> plain, plain | own | none | bytes | T.", "added to the arguments: out0, out1"),
    "count of a list": ("f(count: int) -> tensors | - | none | composed | T.", "added to the arguments: outs, capacity, count"),
    "requires_grad": ("f(requires_grad: bool, device: device) -> plain | - | none | composed | T.", "added to the arguments: out, req"),
    "end of a comment": ("f(x: tensor) -> tensor | own | none | bytes | T */ T.", "the text holds \\ or */"),
    "control character": ("f(x: tensor) -> tensor | own | none | bytes | T\x0bT.", "U+000B, a control character"),
    "family twice": ("[pointwise]", "family 'pointwise' stands there twice; line 2 has it"),
    "family form": ("[point wise]", "'[point wise]' is not written as '[family]'"),
}


def generate(root, *options):
    command = [sys.executable, "-B", str(ROOT / "capi" / "gen_ops.py"), "--root", str(root), *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path):
    """Makes the files that the generator reads, without its output."""
    (tmp_path / "core" / "ops").mkdir(parents=True)
    shutil.copy(ROOT / "core" / "ops" / "ops.def", tmp_path / "core" / "ops")
    for table in ("core/base/dtypes.def", "core/machine/pcie.def", "core/ops/other_names.def", "core/ops/foreign_names.def", "core/ops/forms.def"):
        (tmp_path / table).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / table, tmp_path / table)
    shutil.copytree(ROOT / "capi" / "include", tmp_path / "capi" / "include")
    shutil.copy(ROOT / "capi" / "slots.txt", tmp_path / "capi")
    return tmp_path


def contents(tree):
    return {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def set_table(tree, text):
    """Writes the table of ops; forms of calls would name ops that such a table lacks."""
    (tree / "core" / "ops" / "forms.def").write_text("")
    (tree / "core" / "ops" / "ops.def").write_text(text)


@pytest.mark.parametrize("case", BAD)
def test_a_line_that_breaks_the_rules_is_refused_and_nothing_is_written(tree, case):
    lines, reason = BAD[case]
    set_table(tree, f"# a comment\n[pointwise]\n{lines}\n")
    before = contents(tree)
    done = generate(tree)
    last_line = 3 + lines.count("\n")
    assert done.returncode == 1
    assert f"ops.def:{last_line}: " in done.stderr and reason in done.stderr
    assert contents(tree) == before


BAD_SLOTS = {
    "twice": ("yoke_relu", "yoke_relu stands there twice; line "),
    "two on a line": ("yoke_relu yoke_exp", "is not the name of one function"),
    "blank": ("", "is not the name of one function"),
    "unknown": ("yoke_relu_of_nobody", "no header declares yoke_relu_of_nobody"),
}


@pytest.mark.parametrize("case", BAD_SLOTS)
def test_a_slot_that_breaks_the_rules_is_refused_and_nothing_is_written(tree, case):
    line, reason = BAD_SLOTS[case]
    slots = tree / "capi" / "slots.txt"
    number = len(slots.read_text().splitlines()) + 1
    slots.write_text(slots.read_text() + line + "\n")
    before = contents(tree)
    done = generate(tree)
    assert done.returncode == 1
    assert f"capi/slots.txt:{number}: " in done.stderr and reason in done.stderr
    assert contents(tree) == before


def test_a_function_that_headers_declare_twice_is_named_with_both_places(tree):
    header = tree / "capi/include/yoke/device.h"
    number = len(header.read_text().splitlines()) + 1
    header.write_text(header.read_text() + "YOKE_API const char *yoke_version(void);\n")
    before = contents(tree)
    done = generate(tree)
    assert done.returncode == 1
    assert f"yoke_version is declared twice; capi/include/yoke/device.h:{number} has it" in done.stderr
    assert "capi/include/yoke/runtime.h:" in done.stderr and contents(tree) == before


def test_a_table_that_is_not_there_is_named(tree):
    (tree / "core/ops/ops.def").unlink()
    done = generate(tree)
    assert (done.returncode, done.stderr) == (1, "gen_ops.py: core/ops/ops.def: No such file or directory\n")


def test_a_byte_that_is_not_utf8_is_named_with_its_line(tree):
    table = tree / "core" / "ops" / "ops.def"
    table.write_bytes(b"[pointwise]\n# caf\xe9\n")
    before = contents(tree)
    done = generate(tree)
    assert (done.returncode, "ops.def:2: byte 0xe9 is not UTF-8" in done.stderr) == (1, True)
    assert contents(tree) == before


def test_an_op_outside_of_a_family_is_refused(tree):
    set_table(tree, GOOD + "\n")
    assert "before the first [family]" in generate(tree).stderr


def test_the_output_is_the_committed_one(tree):
    done = generate(tree)
    assert done.returncode == 0
    written = [line.removeprefix("wrote ") for line in done.stdout.splitlines()]
    assert "core/ops/table.cpp" in written
    for path in written:
        assert (tree / path).read_bytes() == (ROOT / path).read_bytes(), path


def test_check_names_what_is_stale_and_writes_nothing(tree):
    generate(tree)
    stale = tree / "docs" / "ops.md"
    stale.write_text("old")
    done = generate(tree, "--check")
    assert (done.returncode, done.stdout.strip()) == (1, "stale docs/ops.md")
    assert stale.read_text() == "old"


def test_every_type_is_told_of_where_people_read_of_types():
    sys.path.insert(0, str(ROOT / "capi"))
    from gen.arg_types import TYPES
    head = (ROOT / "core/ops/ops.def").read_text().partition("\n[")[0]
    header = (ROOT / "capi/include/yoke/runtime.h").read_text()
    of_argument = header[header.index("/* Argument of an op."):header.index("typedef struct yoke_op_arg")]
    for text in (head[head.index("# Argument types:"):head.index("# Results:")], of_argument):
        words = re.findall(r"[a-z]+\??", text)
        assert [name for name in TYPES if name not in words] == []


def test_a_rule_is_a_call_in_the_table_and_no_function_of_the_family(tree):
    lines = ["f(n: int, where: tensor) -> plain | floating like where | none | bytes | T.", "_g(x: mut) -> x | - | none | bytes | T.",
             "h(x: tensor) -> plain | own | none | bytes | T."]
    set_table(tree, "\n".join([(tree / "core/ops/ops.def").read_text(), "[more]", *lines, ""]))
    assert generate(tree).returncode == 0
    table, header = ((tree / "core/ops" / name).read_text() for name in ("table.cpp", "ops.h"))
    assert "rules::floating_like(Args(a), FArgs::kWhere, p);" in table
    assert [name for name in ("infer_f(", "infer_g(", "infer_h(") if name in header] == ["infer_h("]


def test_families_define_what_the_table_declares_and_no_more():
    pattern = re.compile(r"^\S.*?\b((?:infer|vjp|compose|count)_\w+)\(\w+Args\b", re.M)
    folder = ROOT / "core/ops"
    defined = [name for path in folder.glob("*.cpp") if path.name != "table.cpp" for name in pattern.findall(path.read_text())]
    assert sorted(defined) == sorted(pattern.findall((folder / "ops.h").read_text()))


def test_every_rule_is_told_of_and_used():
    sys.path.insert(0, str(ROOT / "capi"))
    from gen import rules
    text = (ROOT / "core/ops/ops.def").read_text()
    head, _, lines = text.partition("\n[")
    told = re.findall(r"^# {17}(\S.*?)  ", head[head.index("# shape:"):head.index("# autocast:")], re.M)
    assert told == [*map(rules.form, rules.RULES), rules.OWN, rules.NOTHING]
    assert [rule for rule in rules.RULES if f"| {rule} " not in lines] == []


def test_a_role_is_what_the_core_knows_and_nobody_else(tree):
    line = "f(x: tensor, where: tensor as index, at: int as random_offset = 0) -> plain | own | none | bytes | T."
    set_table(tree, (tree / "core/ops/ops.def").read_text() + f"[more]\n{line}\n")
    assert generate(tree).returncode == 0
    table = (tree / "core/ops/table.cpp").read_text()
    assert '{"where", ArgType::kTensor, ArgRole::kIndex, false, ' in table
    assert '{"at", ArgType::kInt, ArgRole::kRandomOffset, true, ' in table
    assert '"f(x: tensor, where: tensor, at: int = 0) -> plain"' in table
    assert "f(x: tensor, where: tensor, at: int = 0) -> plain" in (tree / "docs/ops.md").read_text()


def test_a_new_op_needs_a_slot_and_gets_the_last_one(tree):
    table = tree / "core" / "ops" / "ops.def"
    set_table(tree, table.read_text() + "[more]\ncbrt(x: tensor) -> tensor | own | none | bytes | Cube root.\n")
    before = (tree / "capi" / "slots.txt").read_text().split()
    assert "stale capi/slots.txt" in generate(tree, "--check").stdout
    assert (tree / "capi" / "slots.txt").read_text().split() == before
    assert generate(tree).returncode == 0
    assert (tree / "capi" / "slots.txt").read_text().split() == before + ["yoke_cbrt"]
    assert "yoke_status yoke_cbrt(yoke_tensor *x, yoke_tensor **out);" in (
        tree / "capi" / "include" / "yoke" / "ops.h").read_text()


def test_a_slot_is_never_taken_back(tree):
    table = tree / "core" / "ops" / "ops.def"
    kept = [line for line in table.read_text().splitlines() if not line.startswith("softmax(")]
    set_table(tree, "\n".join(kept) + "\n")
    done = generate(tree)
    assert done.returncode == 1 and "yoke_softmax; a slot that was released stays" in done.stderr


def test_comments_and_blanks_do_not_change_the_hash_but_a_line_does(tree):
    table = tree / "core" / "ops" / "ops.def"
    inc = tree / "core" / "backend" / "ops.inc"
    text = table.read_text()
    generate(tree)
    first = inc.read_text()
    set_table(tree, "# another comment\n\n" + text)
    generate(tree)
    assert inc.read_text() == first
    set_table(tree, text.replace("Largest value", "The largest value"))
    generate(tree)
    assert inc.read_text().splitlines()[2] != first.splitlines()[2]
    assert "YOKE_OP_TABLE_HASH" in first.splitlines()[2]


BAD_NAMES = {
    "unwritten": ("dim: axis", "not written as 'other -> own ...'"),
    "of itself": ("dim -> dim", "'dim' cannot be another name of itself"),
    "case": ("Dim -> axis", "other name 'Dim' is not written in snake_case"),
    "word": ("dim -> lambda", "argument 'lambda' is a word of Python"),
}


@pytest.mark.parametrize("case", BAD_NAMES)
def test_another_name_that_breaks_the_rules_is_refused(tree, case):
    line, reason = BAD_NAMES[case]
    (tree / "core" / "ops" / "other_names.def").write_text("# A comment.\n" + line + "\n")
    done = generate(tree)
    assert done.returncode == 1 and "core/ops/other_names.def:2: " in done.stderr and reason in done.stderr


BAD_FORMS = {
    "unwritten": ("add: alpha -> _add_scaled(x, y)", "not written as 'call: alone -> op(argument, ...)'"),
    "no call": ("ad: alone -> add(x)", "there is no op 'ad' in ops.def"),
    "no op": ("add: alone -> _ad(x)", "there is no op '_ad' in ops.def"),
    "no argument": ("add: given z -> _add_scaled(x, y, z)", "op '_add_scaled' has no argument 'z'; it has x, y, alpha"),
    "argument": ("add: given z -> _add_scaled(x, y z)", "argument 'y z' is not written as"),
    "tensors move": ("add: given z -> _add_scaled(y, x)", "the tensor 'y' stands at place 0, and in op '_add_scaled' at 1"),
    "too many": ("add: given z -> addcmul(x, tensor1, tensor2, value, -z)", "a form has 5 arguments; the bindings read at most 4"),
    "apart": ("max: alone -> amax(x)\nmin: alone -> amin(x)\nmax: given y -> maximum(x, y)", "the forms of 'max' stand apart"),
}


@pytest.mark.parametrize("case", BAD_FORMS)
def test_a_form_that_breaks_the_rules_is_refused(tree, case):
    lines, reason = BAD_FORMS[case]
    (tree / "core" / "ops" / "forms.def").write_text("# A comment.\n" + lines + "\n")
    done = generate(tree)
    assert done.returncode == 1 and f"core/ops/forms.def:{2 + lines.count(chr(10))}: " in done.stderr and reason in done.stderr, done.stderr


@pytest.mark.parametrize("lines", ["[yoke]\nclip write clamp", "clip: write clamp(x)", "[yoke]\nclip:"])
def test_a_foreign_name_that_breaks_the_rules_is_refused(tree, lines):
    (tree / "core" / "ops" / "foreign_names.def").write_text(lines + "\n")
    done = generate(tree)
    last_line = 1 + lines.count("\n")
    assert done.returncode == 1 and f"core/ops/foreign_names.def:{last_line}: not written as 'name ...: text' behind a [place]" in done.stderr
