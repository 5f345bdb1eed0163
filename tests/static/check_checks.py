"""Each check finds its offences: `check_checks.py SOURCE_DIR [BUILD_DIR]`.

Writes a small tree with a known offence of each kind, and expects reports of exactly these offences.
"""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import check_format
import check_shape
import check_symbols
import comments
import literals
import summary

HERE = pathlib.Path(__file__).parent


def run(check, *arguments):
    """Returns (exit status, output) of a check run on a tree."""
    command = [sys.executable, "-B", str(HERE / check), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text=""):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def includes(self, path, text):
        """Returns the output of the include check for a file beside a small good tree; "" if the check passes."""
        for header in ["core/base/a.h", "core/ops/b.h", "core/backend/backend.h", "kernels/cpu/c.h",
                       "kernels/cuda/d.h", "kernels/common/e.h", "capi/include/yoke/types.h",
                       "capi/include/yoke/f.h", "capi/src/guard.h", "bindings/lua/src/values/g.h",
                       "bindings/lua/src/leaves.h", "bindings/lua/src/list.h"]:
            self.write(header)
        self.write(path, text)
        status, output = run("check_floors.py", self.root)
        return output if status else ""

    def test_includes_that_the_plan_allows_pass(self):
        self.write("core/ops/x.cpp", '#include "core/base/a.h"\n#include "core/ops/b.h"\n')
        self.write("capi/src/y.cpp", '#include "core/ops/b.h"\n#include "yoke/f.h"\n')
        self.write("kernels/cpu/z.cpp", '#include "kernels/common/e.h"\n#include "kernels/cpu/c.h"\n')
        self.write("tests/core/t.cpp", '#include "core/base/a.h"\n')
        self.assertEqual(self.includes("kernels/cpu/w.cpp", "#include <omp.h>\n"), "")

    def test_includes_that_the_plan_forbids_are_named_with_their_line(self):
        forbidden = [
            ("core/base/x.cpp", '#include "core/ops/b.h"'),           # a higher layer
            ("bindings/lua/src/runtime/x.c", '#include "bindings/lua/src/values/g.h"'),
            ("bindings/lua/src/values/x.c", '#include "bindings/lua/src/leaves.h"'),
            ("bindings/lua/src/x.c", '#include "bindings/lua/src/list.h"'),  # leaf and leaf
            ("core/ops/x.cpp", '#include "kernels/common/e.h"'),      # core never sees kernels
            ("core/ops/x.cpp", '#include "yoke/f.h"'),                # only types.h of the C API
            ("core/ops/x.cpp", "#include <dnnl.h>"),                  # no engine
            ("core/attic/x.cpp", '#include "core/base/a.h"'),         # no such layer
            ("core/backend/backend.h", '#include "core/base/a.h"'),   # the contract stands alone
            ("kernels/cpu/x.cpp", '#include "kernels/cuda/d.h"'),     # another backend
            ("kernels/cpu/x.cpp", '#include "core/base/a.h"'),        # the rest of core
            ("kernels/cpu/x.cpp", '#include "../cuda/d.h"'),          # by a relative path too
            ("bindings/lua/x.c", '#include "core/base/a.h"'),         # bindings: public headers only
            ("tests/capi/x.c", '#include "core/base/a.h"'),           # tests of the API as well
            ("examples/x.c", '#include "capi/src/guard.h"'),
            ("capi/include/yoke/f.h", '#include "core/base/a.h"'),
            ("core/base/x.cpp", '#include "core/base/gone.h"'),       # no such file
        ]
        for path, line in forbidden:
            with self.subTest(path=path, line=line):
                output = self.includes(path, "\n" + line + "\n")
                self.assertIn(f"{path}:2 ", output)
                self.assertIn("1 broken", output)
                self.write(path)

    def floors(self, path, text):
        """Returns the output of the layer check for a file beside the existing files; "" if the check passes."""
        self.write("core/base/a.cpp", "#include <string>\n")
        self.write(path, text)
        status, output = run("check_floors.py", self.root)
        (self.root / path).unlink()
        return output if status else ""

    def test_files_that_include_one_another_are_a_circle(self):
        self.write("core/ops/b.h", '#include "core/ops/c.h"\n')
        self.write("core/ops/c.h", '#include "core/ops/d.h"\n')
        self.assertEqual(self.floors("core/ops/d.h", ""), "")
        output = self.floors("core/ops/d.h", '#include "core/ops/b.h"\n')
        self.assertIn("circle: core/ops/b.h -> core/ops/c.h -> core/ops/d.h -> core/ops/b.h", output)
        self.assertIn("1 broken", output)

    def test_names_of_kinds_and_vendors_decide_in_their_places_alone(self):
        for line in ['if (kind == "cuda") f();', 'if (std::string_view(info.vendor) != "nvidia") f();', 'f("cuda" == kind);',
                     'if (strcmp(device.kind(),\n "cuda") != 0) f();', 'f(name.compare(0, 4, "cuda"));', 'f(name.starts_with("cuda:"));']:
            with self.subTest(line=line):
                for path in ["bindings/cli/src/x.cpp", "bindings/lua/src/x.c"]:
                    output = self.floors(path, "\n" + line + "\n")
                    self.assertIn(f"{path}:2 compares", output)
                    self.assertIn("1 broken", output)
                for path in ["core/select/x.cpp", "kernels/cpu/x.cpp", "capi/src/x.cpp"]:
                    self.assertIn("knows a kind's or a vendor's name", self.floors(path, "\n" + line + "\n"))
                for place in ["core/backend/traits.cpp", "core/machine/nvidia.cpp", "core/doctor/x.cpp"]:
                    self.assertEqual(self.floors(place, line + "\n"), "")

    def test_below_the_bindings_names_of_kinds_and_vendors_stand_in_their_places_alone(self):
        for line in ['f(kind == std::string_view("cuda"));', 'f(kind == std::string{"cuda"});', 'constexpr const char *kName = "nvidia";',
                     'f(strcasecmp(kind, "NVIDIA"));', 'f(std::equal_to<>{}(kind, "cuda"));', 'f(table.at("cuda"));']:
            with self.subTest(line=line):
                output = self.floors("core/select/x.cpp", "\n" + line + "\n")
                self.assertIn("core/select/x.cpp:2 knows a kind's or a vendor's name", output)
        self.assertEqual(self.floors("core/select/x.cpp", '// kind == "cuda"\nf("the NVIDIA driver"); f(kind == host);\n'), "")
        self.assertEqual(self.floors("bindings/cli/src/x.cpp", 'yoke_disable("cuda");\n'), "")

    def test_an_include_names_its_file(self):
        output = self.floors("core/base/x.cpp", '#define UP "core/ops/b.h"\n#include UP\n')
        self.assertIn("core/base/x.cpp:2 includes what a macro says", output)

    def test_no_text_of_a_message_decides(self):
        for line in ['if (problem.find("code ") != npos) f();', 'f(std::string_view(error.what()).rfind("YOKE", 0));',
                     'if (info.reason == why) f();', 'f(strstr(record.message, "gone"));', 'if (nvml_problem == "") f();',
                     'f(std::string_view(info.reason) == "x");', 'if ("gone" == card.reason) f();',
                     'f(problem.substr(0, 3));', 'f(rejection.reason_text.starts_with("no"));', 'if (why != finding.evidence) f();',
                     'f(std::string_view{message}.starts_with("code "));', 'f(std::regex_search(message, pattern));',
                     'f(strcasestr(message, "gone"));', 'if (sscanf(message, "code %d", &code) == 1) f();', 'if (message[0] == 67) f();']:
            with self.subTest(line=line):
                output = self.floors("core/select/x.cpp", "\n" + line + "\n")
                self.assertIn("core/select/x.cpp:2 lets the text", output)
                self.assertIn("1 broken", output)
        good = 'char message[80];\nmessage[0] = 0;\nif (*card.reason == 0) f();\nif (why.reason == Reason::kGone) f(why.text);\nif (problem != nullptr) f(text.find(":"));\nlog(error.what());\n'
        self.assertEqual(self.floors("core/select/x.cpp", good), "")

    def test_no_text_of_a_failure_decides_in_groups(self):
        bad = {"if (event.how.starts_with(own_)) f();": "decide", "erase_if(all, [&](auto &each) { return each.second.text == text; });": "decide",
               "if (mine.text != told_) f();": "decide",
               'const std::string front = call + ": ";\nif (text.starts_with(front)) f();': "cuts a call off",
               'constexpr std::string_view kCall = "comm.init: ";\nif (text.starts_with(kCall)) f();': "cuts a call off"}
        for line, wrong in bad.items():
            with self.subTest(line=line):
                output = self.floors("core/comm/x.cpp", "\n" + line + "\n")
                self.assertIn(wrong, output)
                self.assertIn("1 broken", output)
        good = 'if (event.kind == PeerEvent::kShort) f(event.how);\nlog(each.text);\nif (error.call() == call) f(error.text());\n'
        self.assertEqual(self.floors("core/comm/x.cpp", good), "")

    def test_no_name_of_an_argument_decides(self):
        for line in ['if (strncmp(op.args[i].name, "ind", 3) == 0) f();', 'f(spec.type == kInt && strcmp(spec.name, "offset") == 0);',
                     'if (std::string_view(op.args[i].name) == "index") f();', 'if (op->args[0].name[0] == \'i\') f();',
                     'f(name == spec.name);', 'f(std::string_view(spec.name).starts_with("ind"));']:
            with self.subTest(line=line):
                for path in ["core/ops/x.cpp", "capi/src/x.cpp"]:
                    output = self.floors(path, "\n" + line + "\n")
                    self.assertIn(f"{path}:2 lets the name of an argument decide", output)
                    self.assertIn("1 broken", output)
        good = 'if (spec.role == ArgRole::kIndex) fail(YOKE_E_TYPE, "%s: %s", op.name, spec.name);\nvisit(op.args[i].name, x == y);\n'
        self.assertEqual(self.floors("core/ops/x.cpp", good), "")

    def shape(self, **files):
        """Returns {figure: counts} of a tree with these files in core/comm: x_h is x.h."""
        for name, text in files.items():
            self.write("core/comm/" + ".".join(name.rsplit("_", 1)), text)
        return check_shape.figures(check_shape.Product(self.root))

    def test_units_of_a_folder_are_counted_without_families(self):
        self.write("core/ops/softmax.cpp")
        self.write("core/ops/run.cpp")
        self.write("kernels/cuda/ops/any.cu")
        self.assertEqual(self.shape(a_h="", a_cpp="", b_c="")["units of a folder"], {"core/comm": 2, "core/ops": 1})

    def test_a_class_is_found_that_has_two_sources_and_its_functions_are_counted(self):
        header = """namespace yoke {
class A {
    A() = default;
    A(const A &) = delete;
    int f();
    int f(int more);
    int g() const { return 1; }
    friend void join(A &one, A &other);
    friend class B;
};
}
"""
        shape = self.shape(a_h=header, a_cpp="namespace yoke {\nint A::f() { return 1; }\n}\n")
        self.assertEqual((shape["functions of a class"], shape["sources of a class"]), ({"yoke::A": 4}, {"yoke::A": 1}))
        shape = self.shape(b_cpp="namespace yoke {\nint A::f(int more) { return more; }\n}\n")
        self.assertEqual(shape["sources of a class"], {"yoke::A": 2})

    def test_fields_beside_a_mutex_are_counted_with_those_of_structs_that_it_holds(self):
        header = """struct Beside { int a, b; };
class A {
    struct Free { int a, b; };
    struct Guarded { std::mutex mutex; int c, d; };
    struct Pointed { int e, f; };
    using Besides = std::vector<Beside>;
    mutable Mutex mutex_;
    int one_, two_;
    std::vector<Free> free_;
    Guarded guarded_;
    Pointed *pointed_;
    Besides besides_;
};
class NoMutex { int a, b, c, d, e, f, g; };
"""
        self.assertEqual(self.shape(a_h=header)["fields beside a mutex"], {"A": 8, "A::Guarded": 2})

    def test_retired_names_and_threads_and_names_of_failures_are_found(self):
        shape = self.shape(a_cpp='// a Meeting\nvoid fail_late();\nvoid fail_init();\nint new_hall, kVirtualizationGuest;\nconst char *text = "Guest";\n'
                           "void start() { std::thread own([] {}); std::thread none; threads.emplace_back([] {});\nstd::thread by(run, 1); }\n")
        self.assertEqual(shape["retired names"], {"new_hall": 1})
        self.assertEqual(shape["functions for a failed group"], {"fail_late": 1})
        self.assertEqual(shape["threads that are started by hand"], {"core/comm/a.cpp:6": 2, "core/comm/a.cpp:7": 1})

    def test_types_of_one_name_in_two_headers_are_found(self):
        shape = self.shape(a_h="namespace yoke {\nstruct Larger {};\n}\n", b_h="namespace yoke {\nstruct Larger {};\nclass A { struct B {}; };\n}\n",
                           c_h="namespace yoke {\nclass Larger;\nclass C { struct B {}; };\n}\n")
        self.assertEqual(shape["types of one name in headers of a folder"], {"core/comm yoke::Larger": 2, "core/comm yoke::A": 1, "core/comm yoke::C": 1})

    def test_lines_that_stand_twice_are_found_whatever_their_comments(self):
        lines = [f"call_number({i});" for i in range(8)]
        shape = self.shape(a_cpp="\n".join(lines), b_cpp="int x;\n" + "  // why\n".join(f"    {line}" for line in lines))
        self.assertEqual(shape["twins"], {"core/comm/a.cpp:1 and core/comm/b.cpp:2": 1})
        self.assertEqual(self.shape(b_cpp="\n".join(lines[:7]))["twins"], {})

    def test_a_readme_lists_the_headers_of_its_folder(self):
        for i in range(13):
            self.write(f"core/tensor/a{i}.h", "")
        faults = lambda: list(check_shape.readme_faults(check_shape.Product(self.root)))
        self.assertEqual(faults(), ["core/tensor has 13 units and no README.md"])
        page = "".join(f"| `a{i}.h` | | |\n" for i in range(13))
        self.write("core/tensor/README.md", page)
        self.assertEqual(faults(), [])
        self.write("core/tensor/README.md", page.replace("a0.h", "b.h"))
        self.assertEqual(faults(), ["core/tensor/README.md lacks a0.h", "core/tensor/README.md lists b.h, which is not there"])
        self.write("core/tensor/README.md", page + "\n" * 60)
        self.assertEqual(faults(), ["core/tensor/README.md has 73 lines, and may have 60"])

    def test_a_page_names_what_the_code_has(self):
        self.write("core/tensor/a.h", "namespace yoke {\nclass A {\npublic:\n    void run();\n};\n}\n")
        self.write("core/tensor/a.cpp", "namespace yoke {\nvoid A::run() {}\n}\n")
        self.write("docs/a.md", "`A::run` and `A::run()`; `run` (`core/tensor/a.cpp`), `A::run` (`a.h`), `std::thread`.\n")
        self.assertEqual(run("check_pages.py", self.root)[0], 0)
        self.write("docs/a.md", "`A::walk`\n`walk` (`a.cpp`)\n")
        self.write("core/tensor/README.md", "`run` (`b.cpp`)\n")
        self.write("core/tensor/b.h", "// a.h: a type.\n")
        output = run("check_pages.py", self.root)[1]
        for fault in ("docs/a.md names A::walk, which is not in the code", "docs/a.md looks for walk in a.cpp, which does not have it",
                      "core/tensor/README.md names b.cpp, which is not there", "core/tensor/b.h begins with the name of a.h"):
            self.assertIn(fault, output)

    def test_what_is_above_its_bound_may_only_come_down(self):
        for i in range(41):
            self.write(f"core/tensor/a{i}.cpp", "int a;\n")
        self.assertIn("units of a folder: core/tensor has 41, and may have 40", run("check_shape.py", self.root)[1])
        table = {"core/tensor": 41}
        with unittest.mock.patch.dict(check_shape.ABOVE, {"units of a folder": {"core/tensor": 41}}):
            self.assertEqual(list(check_shape.faults("units of a folder", table)), [])
            table["core/tensor"] = 40
            self.assertIn("has 40 now", *check_shape.faults("units of a folder", table))
        with unittest.mock.patch.dict(check_shape.ABOVE, {"twins": 3}):
            self.assertEqual(list(check_shape.faults("twins", {"one": 2, "two": 1})), [])
            self.assertIn("has 4, and may have 3", *check_shape.faults("twins", {"one": 4}))
            self.assertIn("has 2 now", *check_shape.faults("twins", {"one": 2}))

    def test_a_file_of_401_lines_is_too_long_unless_it_is_generated(self):
        self.write("core/base/long.cpp", "\n" * 401)
        self.write("core/base/right.cpp", "\n" * 400)
        self.write("core/base/made.cpp", "// Generated by capi/gen_ops.py\n" + "\n" * 900)
        status, output = run("check_lines.py", self.root)
        self.assertEqual(status, 1)
        self.assertIn("core/base/long.cpp has 401 lines", output)
        self.assertIn("1 broken", output)

    def test_a_comment_behind_column_120_is_named_and_wrapped(self):
        words = "word " * 23  # 118 columns, behind "// "
        self.write("core/base/a.cpp", f"// {words}and two\nint a;  // {words}and more\n// {words}and two\n// more.\n")
        self.write("bindings/lua/b.lua", f"---@field a {words}and more\n--- {words}and two\n")
        status, output = run("check_lines.py", self.root)
        self.assertEqual(status, 1)
        for place in ["core/base/a.cpp:1 ", "core/base/a.cpp:3 ", "bindings/lua/b.lua:2 "]:
            self.assertIn(place + "is a comment behind", output)
        self.assertIn("3 broken", output)
        self.assertEqual(comments.wrap(self.root / "core/base/a.cpp"), 2)
        self.assertEqual((self.root / "core/base/a.cpp").read_text(),
                         f"// {words.strip()}\n// and two\nint a;  // {words}and more\n// {words.strip()}\n// and two more.\n")

    def test_words_of_an_item_go_to_its_next_line(self):
        words = "word " * 22
        self.write("core/base/a.cpp", f"//  * {words}and two\n//    more.\n//  * {words}and two\n//  * one more\n")
        self.write("core/base/b.cpp", f"//   kind  {words}and two\n//         more.\n// {words}word word a text:\n//    code\n")
        for name in "ab":
            comments.wrap(self.root / f"core/base/{name}.cpp")
        item = words.strip()
        self.assertEqual((self.root / "core/base/a.cpp").read_text(),
                         f"//  * {item} and\n//    two more.\n//  * {item} and\n//    two\n//  * one more\n")
        self.assertEqual((self.root / "core/base/b.cpp").read_text(),
                         f"//   kind  {item}\n//         and two more.\n// {item} word\n// word a text:\n//    code\n")

    def test_a_text_that_is_cut_in_two_is_named_with_its_line(self):
        cut = {"core/base/a.cpp": 'f(\n    "one "\n    "two");\n', "bindings/lua/b.lua": 'f("one "\n  .. "two")\n',
               "bindings/python/yoke/c.py": 'f("one "\n  f"{two}")\n', "kernels/cuda/d.cu": 'f("a \\"b" "c");\n'}
        for path, text in cut.items():
            self.write(path, "\n" + text)
        status, output = run("check_messages.py", self.root)
        self.assertEqual(status, 1)
        for path, text in cut.items():
            self.assertIn(f"{path}:{2 + text[:4].count(chr(10))} cuts", output)
            self.assertEqual(literals.join(self.root / path), 1)
        self.assertIn("4 broken", output)
        self.assertEqual((self.root / "bindings/python/yoke/c.py").read_text(), '\nf(f"one {two}")\n')
        self.assertIn('"one two"', (self.root / "bindings/lua/b.lua").read_text())
        self.assertEqual(run("check_messages.py", self.root)[0], 0)

    def test_texts_that_only_look_cut_pass(self):
        self.write("core/base/a.cpp", 'f("a line\\n"\n  "and the next\\n"); // "a" "b"\n'
                                      "g('\"', 2, R\"(\"a\" \"b\")\", \"%\" PRId64 \"d\", \"\\x1b\" \"a\");\n")
        self.write("bindings/lua/b.lua", 'f("a" .. name .. "b") -- "a" .. "b"\n')
        self.write("bindings/python/yoke/c.py", 'f("a", "b")\nf(b"a" b"b")  # "a" "b"\n')
        self.assertEqual(run("check_messages.py", self.root), (0, "texts: 3 looked at, 0 broken\n"))

    def test_a_mutant_that_cannot_be_made_is_named(self):
        self.write("tests/emu/mutation/places.py", (HERE.parent / "emu/mutation/places.py").read_text())
        self.write("kernels/cuda/ops/a.cu", "__global__ void k(int n)\n{\n    if (n < 3) return;\n}\n")
        self.write("tests/emu/equivalent_mutants.txt", "a.cu | < as <= | if (n < 3) return; | Because.\n")
        self.assertEqual(run("check_mutants.py", self.root), (0, "equivalent mutants: 1 looked at, 0 broken\n"))
        self.write("kernels/cuda/ops/a.cu", "__global__ void k(int n)\n{\n    if (n < 4) return;\n}\n")
        status, output = run("check_mutants.py", self.root)
        self.assertEqual(status, 1)
        self.assertIn("names no mutant: a.cu | < as <= | if (n < 3) return;", output)

    @unittest.skipUnless(check_format.clang_format(), "there is no clang-format 14")
    def test_a_line_that_is_not_formatted_is_named(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("core/base/a.cpp", "int a;\nint  b;\n")
        status, output = run("check_format.py", self.root)
        self.assertEqual(status, 1)
        self.assertIn("core/base/a.cpp:2 is not formatted", output)

    def test_a_header_that_needs_another_first_does_not_compile_alone(self):
        self.write("capi/include/yoke/types.h", "typedef int yoke_int;\n")
        self.write("capi/include/yoke/bad.h", "yoke_int yoke_f(void);\n")
        status, output = run("check_headers.py", self.root)
        self.assertEqual(status, 1)
        self.assertIn("yoke/bad.h with gcc", output)

    def test_a_symbol_missing_from_any_list_is_named(self):
        found = list(check_symbols.differences({"a": {"yoke_x", "yoke_y"}, "b": {"yoke_x"}}))
        self.assertEqual(found, ["yoke_y is in a, not in b"])

    def test_a_weak_symbol_outside_its_level_is_found(self):
        folder = self.root / "kernels/cpu/CMakeFiles/yoke_cpu_v4.dir"
        self.write("a.cpp", "template <class T> T twice(T x) { return x + x; }\n"
                            "namespace v4 { template <class T> T same(T x) { return x; } }\n"
                            "int f(int x) { return twice(x) + v4::same(x); }\n")
        folder.mkdir(parents=True)
        subprocess.run(["g++", "-O0", "-c", self.root / "a.cpp", "-o", folder / "a.o"], check=True)
        status, output = run("check_isa.py", self.root, self.root)
        self.assertEqual(status, 1)
        self.assertIn("twice", output)
        self.assertIn("1 broken", output)

    def test_cases_are_counted_in_the_words_of_each_tool(self):
        gtest = "[==========] 4 tests from 1 test suite ran.\n[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test."
        self.assertEqual(summary.count_cases(False, gtest), (2, 1, 1))
        self.assertEqual(summary.count_cases(False, "== 2 failed, 5 passed, 1 skipped in 1s =="), (5, 2, 1))
        self.assertEqual(summary.count_cases(False, "3 successes / 1 failure / 1 error / 0 pending"),
                         (3, 2, 0))
        self.assertEqual(summary.count_cases(True, "5 passed in 1s"), (5, 0, 0))
        self.assertEqual(summary.count_cases(True, ""), (1, 0, 0))
        # A leak at exit or a crash: every case passed and the program failed all the same.
        self.assertEqual(summary.count_cases(False, "5 passed in 1s"), (5, 1, 0))
        self.assertEqual(summary.count_cases(False, ""), (0, 1, 0))

    def test_what_takes_twice_its_time_is_a_finding(self):
        told = "5 passed\nprocessor time of this shell, and of the test:\n0m0.01s 0m0.02s\n1m2.500000s 0m0.5s\n"
        self.assertEqual(summary.processor_seconds(told), 63)
        self.assertIsNone(summary.processor_seconds("5 passed\n"))
        self.write("page.md", "| Program | CPU-seconds |\n|---|---|\n| `asan a/b` | 30 | why |\n| every other program | 10 |\n")
        self.write("parts.txt", "build asan: 60.0 100.5 20.0\n")
        granted, parts = summary.budgets(self.root / "page.md"), list(summary.parts_of(self.root / "parts.txt"))
        self.assertEqual((granted, parts), ({"asan a/b": 30, "every other program": 10}, [("build asan", 60, 120.5)]))
        programs = [("asan a/b", 63.0), ("asan c/d", 19.0), ("asan e/f", 21.0)]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            findings = summary.tell_times(parts, programs, granted)
        self.assertEqual([finding.split(" took")[0] for finding in findings], ["asan a/b", "asan e/f"])
        self.assertLess(printed.getvalue().index("asan a/b"), printed.getvalue().index("asan c/d"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
