"""check_english.py finds planted lines of each kind, and passes a tree without them: `check_planted_english.py SOURCE_DIR [BUILD_DIR]`."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import english

HERE = pathlib.Path(__file__).resolve().parent
GOOD = "// Returns the number of ranks.\nint size();\n"
README = "# Yoke\n\n```sh\nmake\n```\n\n```python\nimport yoke\n```\n\n## Why is my GPU not used?\n\n    yoke doctor\n"


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("docs/glossary.md", "# G\n\n| Term | Meaning | Where |\n|---|---|---|\n| lane | slot | x |\n\n| Checked word | Write |\n"
                                       "|---|---|\n| hall, guest | server |\n| backwards, as a noun | backward passes |\n| let go | release |\n\n")
        self.write("docs/style.md", "# S\n")
        self.write("README.md", README)
        self.write("core/good.h", GOOD * 40 + "// Holds the lane of a stream.\nint lane();\n")

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def run_check(self):
        command = [sys.executable, "-B", str(HERE / "check_english.py"), str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def finds(self, path, text, *parts):
        """Checks that the check names each part once the text is planted, and passes once the text is gone."""
        target = self.root / path
        before = target.read_text() if target.exists() else None
        self.write(path, text)
        status, printed = self.run_check()
        self.assertEqual(status, 1, printed)
        for part in parts:
            self.assertIn(part, printed)
        target.unlink() if before is None else target.write_text(before)

    def test_a_plain_tree_passes(self):
        status, printed = self.run_check()
        self.assertEqual(status, 0, printed)

    def test_comments(self):
        self.finds("core/bad.h", "".join(f"// {word} a rank.\nint x{i};\n" for i, word in enumerate(["Of", "What", "One", "The same"] * 10)),
                   "core: 49.4 of 100 comments begin with a word")
        self.finds("core/bad.h", "// Waits for it that they which one had what it told them itself, or none.\n" * 30, "pronouns in 100 words of comments")
        for words in ("a guest", "two halls", "two backwards", "lets go of a lane"):
            self.finds("core/bad.h", f"// Waits for {words}.\nint x;\n", "core/bad.h:1 has the word")
        self.finds("bindings/x.py", '"""Serves a guest."""\n', "bindings/x.py:1 has the word")
        self.finds("bindings/x.lua", "-- Serves a guest.\n", "bindings/x.lua:1 has the word")

    def test_comments_of_tables_and_settings(self):
        self.finds("core/x.def", "# Table of ops.\n#\n\n# Row of a guest.\n1 x | y\n", "core/x.def:4 has the word")
        self.finds("core/x.def", "// Row of a guest.\nX(1)\n", "core/x.def:1 has the word")
        self.finds("core/x.def", "".join(f"# What a rank has.\n{i} x\n" for i in range(20)), "core: 32.8 of 100 comments begin with a word")
        for name in ("x.yaml", "x.yml", "x.map", "x.supp", "x.bash", "x.in", "x.toml", "Dockerfile"):
            self.finds(f"examples/{name}", "# Serves a guest.\n", f"examples/{name}:1 has the word")
        self.finds("tests/program", "#!/bin/sh\n# Serves a guest.\n", "tests/program:2 has the word")
        # A directive of the preprocessor is no comment.
        self.write("core/x.def", "#define guest(x) x\n#undef guest\n")
        self.assertEqual(english.comments(self.root / "core/x.def"), [])

    def test_functions_of_public_headers(self):
        for text in ("The number of ranks.", "1 if it is there.", "NULL is ignored.", "Errors: VALUE for a rank below 0."):
            self.finds("capi/include/yoke/x.h", f"/* {text} */\nYOKE_API int size(void);\n", "capi/include/yoke/x.h:1 begins the comment of a function")
        self.write("capi/include/yoke/x.h", "/* Returns the number of ranks.\n * Errors: none. */\nYOKE_API int size(void);\n")
        self.assertEqual(self.run_check()[0], 0)

    def test_messages(self):
        call = 'void f() { fail(YOKE_E_VALUE, "%s"); }\n'
        self.finds("core/bad.cpp", call % "what: it is not one of the ranks here", "begins with a pronoun")
        self.finds("core/bad.cpp", call % ("the rank waits " * 20), "is a message of 60 words")
        self.finds("core/bad.cpp", call % "the guest of this rank has gone", "has the word \"guest\"")
        self.finds("core/bad.cpp", call % "f: argument 'x' is %d, so the call has failed", "core/bad.cpp:1 names no argument, or not what it must be")

    def test_comments_of_functions(self):
        begins = "begins the comment of a function with"
        self.finds("capi/x.h", "/* Whether a rank waits. */\nYOKE_API int32_t yoke_waits(int rank);\n", f"capi/x.h:1 {begins} Whether")
        self.finds("tests/x.h", "struct X {\n    // How many ranks wait.\n    static std::vector<int> waits() const;\n};\n", f"tests/x.h:2 {begins} How")
        self.finds("bindings/x.py", 'def waits():\n    """Where a rank waits."""\n', f"bindings/x.py:2 {begins} Where")
        self.finds("bindings/x.lua", "--- Whether a rank waits.\n---@return boolean\nfunction x.waits() end\n", f"bindings/x.lua:1 {begins} Whether")
        self.finds("benchmarks/x.h", "// Whether a rank waits.\nbool waits(int rank);\n", f"benchmarks/x.h:1 {begins} Whether")
        # Fields, sections, types and statements are no functions; other folders are only counted.
        self.write("capi/x.h", "/* Why clocks are low. */\n#define X(y) 4\n// How a group is.\nstruct Ranks {\n    int x(int);\n};\n"
                               "// Whether a rank waits.\nstatic thread_local bool t_waits __attribute__((tls_model(\"x\")));\n")
        self.write("cmake/x.h", "// Whether a rank waits.\nbool waits(int rank);\n")
        status, printed = self.run_check()
        self.assertEqual(status, 0, printed)
        self.assertIn("such as Whether: 1", printed)

    def test_messages_that_only_seem_to_be_pieces(self):
        call = 'void f() { fail(YOKE_E_VALUE, "%s"); }\n'
        for text in (" it is not one of the ranks here", "' they are not ranks of this group", "\\nwhat: it is not one of the ranks", "f(): it is not of the ranks"):
            self.finds("core/bad.cpp", call % text, "begins with a pronoun")
        self.write("core/piece.cpp", call % " of the result is in no tensor")
        status, printed = self.run_check()
        self.assertEqual(status, 0, printed)

    def test_form_of_messages(self):
        for text in ("%s: argument 'x' is %s, so the call fails", "%s: argument 'x': the call failed here", "f: argument 'x' is %d; there are %d ranks",
                     "f: argument 'x' is ragged: a %s stands among numbers", "f: the argument must be above 0", "f: argument 'x' must be above 0",
                     "f: there is no argument 'x' in this call", "f: argument 'x' is %s, which does not fit here",
                     "f: argument 'x' must be given by name, as in PyTorch"):
            self.assertFalse(english.has_form(text), text)
        for text in ("%s: argument 'x' is %g; it must be above 0", "f: argument 'x' is missing; give a tensor", "f: argument 'x' is %s; use another number",
                     "f: argument '{x}' is {y!r}; it takes a list", "f: arguments 'a' and 'b' are both given; leave out one", "f: argument 'x' is %s; %s",
                     "f: argument 'x' must be a tensor, not {y}", "f: there is no argument 'x'; it takes 'y'", "f: argument 'n' is %d; ranks count from 0",
                     "f: takes at most %d arguments but %d were given", "f: argument 'x' has 2 axes; 3 are allowed",
                     "f: argument '%s' must be given by name; write %s=...", "f: there is no argument 'x'; the arguments are"):
            self.assertTrue(english.has_form(text), text)

    def test_first_uses_of_terms(self):
        link = "\n\n[lane](glossary.md)\n"
        for first in ("| A | B |\n|---|---|\n| x | the lane |\n", "| A |\n|---|\n| lanes |\n", "Lanes wait.", "The stream has lanes."):
            self.finds("docs/x.md", f"# X\n\n{first}{link}", 'does not link "lane" at its first use')
        self.write("docs/x.md", "# X of the lanes\n\n`the lane`\n\n| A |\n|---|\n| [lanes](glossary.md) |\n\nThe lane waits.\n")
        status, printed = self.run_check()
        self.assertEqual(status, 0, printed)

    def test_pages(self):
        sentence = "The rank waits for the store and for the network and for the process and for the machine. "
        self.finds("docs/x.md", "# X\n\n" + sentence.replace(". ", " ") * 3 + "end.\n", "sentences in 100 above 30 words", "words a sentence")
        self.finds("docs/x.md", "# X\n\n" + "It is what they have that one had. " * 20, "pronouns in 100 words")
        self.finds("docs/x.md", "# X\n\nThe lane serves.\n\n[lane](glossary.md)\n", 'does not link "lane" at its first use')
        self.finds("docs/x.md", "# X\n\nThe guest waits.\n", "has the word")
        self.finds("docs/state.md", "# X\n\n" + "The rank waits. " * 600, "docs/state.md has 1802 words; 1700 is the limit")
        self.finds("docs/x.md", '# X\n\nThe log says "the moon is made of cheese today".\n', "quotes a message that no source has")
        self.finds("README.md", "# Yoke\n", "the first 40 lines have not a block that installs")
        self.finds("docs/glossary.md", (self.root / "docs/glossary.md").read_text().replace("| lane |", "| moon |"), 'the term "moon"')

    def test_words_that_only_look_alike_pass(self):
        self.write("core/alike.h", "// Opens `lent.h` and hallway.h, and lets the goat go backward.\nint x;\n")
        self.write("docs/x.md", "# X\n\nEach [lane](glossary.md) serves a stream. The lanes wait.\n")
        status, printed = self.run_check()
        self.assertEqual(status, 0, printed)

    def test_words_and_sentences_are_counted(self):
        self.assertEqual(english.opener("The same as before"), "the same")
        self.assertEqual(english.opener("The rank"), "")
        self.assertEqual(english.pronouns("Returns None, or what it holds"), 2)
        self.assertEqual([len(each) for each in english.sentences("# T\n\nOne two three. Four five six seven.\n\n| a | b |\n")], [3, 4])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
