"""Comments, messages and pages are plain English: `check_english.py SOURCE_DIR [BUILD_DIR] [--list]`.

docs/style.md has the rules. Generated files do not count. `--list` names each comment and each sentence above the limits.
"""
import collections
import pathlib
import re
import sys

import english
import literals
import tree

# Limits of comments: openings in 100 in the tree and in a folder, pronouns in 100 words of a folder.
OPENINGS, OPENINGS_OF_FOLDER, PRONOUNS = 1.5, 3.0, 5.0
SCRIPTS = {".py", ".pyi", ".lua", ".cmake", ".sh", ".bash", ".yaml", ".yml", ".map", ".supp", ".in", ".toml"}
SCRIPT_NAMES = ("CMakeLists.txt", "Dockerfile")
FEW = 30  # comments: a folder of fewer counts with the folder around it
# Limits of a page: pronouns in 100 words, mean words of a sentence, sentences in 100 above 30 words.
PAGE_PRONOUNS, SENTENCE, LONG = 5.0, 18.0, 5.0
MESSAGE = 45  # words
# Folders in which no comment of a function begins with a word such as Whether; the other folders are counted.
WITH_VERBS = ("benchmarks/", "bindings/", "capi/", "core/", "examples/", "kernels/", "tests/")
PAGES = {
    "docs/distributed.md": 3300, "docs/design.md": 3000, "docs/devices.md": 2200, "docs/gpu-kernels.md": 1700, "docs/gpu.md": 1200,
    "docs/state.md": 1700, "docs/checkpoint.md": 1500, "docs/testing.md": 1400, "docs/launchers.md": 1500, "docs/cpu-kernels.md": 900,
    "CHANGELOG.md": 700, "README.md": 900, "docs/glossary.md": 900,
}
ALL_PAGES = 33000
GENERATED = ("docs/ops.md", "docs/dtypes.md", "docs/from-pytorch.md")
GENERATOR = "capi/gen/"  # whose texts stand in generated files
# Pages that quote bad lines.
QUOTES = ("docs/style.md", "docs/glossary.md")


def comment_files(root):
    for path in tree.files(root):
        known = path.suffix in tree.CODE | SCRIPTS or path.name in SCRIPT_NAMES or is_program(path)
        if known and not tree.is_generated(path):
            yield path


def is_program(path):
    """Returns whether a file is a script without a suffix, such as dev."""
    return not path.suffix and path.read_bytes()[:2] == b"#!"


class Folder:
    """Figures of the comments of a folder, with the folders in it."""

    def __init__(self):
        self.comments = self.openings = self.words = self.pronouns = 0

    def add(self, text):
        self.comments += 1
        self.openings += bool(english.opener(text))
        self.words += len(english.words(text))
        self.pronouns += english.pronouns(text)

    def opening(self):
        return 100 * self.openings / max(1, self.comments)

    def pronoun(self):
        return 100 * self.pronouns / max(1, self.words)


def checked_words(root):
    """Pattern of the checked words, from the glossary's second table, in the forms in which they occur."""
    rows = re.findall(r"^\| ([^|]+) \|", root.joinpath("docs/glossary.md").read_text(encoding="utf-8").split("| Checked word |")[1].split("\n\n")[0], re.M)
    words = [word.strip() for row in rows for word in row.replace("as a noun", "").split(",") if word.strip(" -")]
    forms = [r"(?:let|lets|letting) go" if word == "let go" else re.escape(word) + "s?" for word in words]
    return re.compile(rf"(?<![\w`./:-])(?:{'|'.join(forms)})(?![\w/-]|\.\w)", re.I)


def terms(root):
    """Terms of the glossary's first table."""
    table = root.joinpath("docs/glossary.md").read_text(encoding="utf-8").split("| Term |")[1].split("\n\n")[0]
    return [term.strip() for term in re.findall(r"^\| ([^|]+) \|", table, re.M) if term.strip(" -")]


def look_at_comments(root, checked, broken, listed):
    folders = collections.defaultdict(Folder)
    for path in comment_files(root):
        name = path.relative_to(root).as_posix()
        parts = name.split("/")[:-1]
        for comment in english.comments(path):
            for depth in range(len(parts) + 1):
                folders["/".join(parts[:depth]) or "."].add(comment.text)
            plain = re.sub(r"`[^`]*`", "", comment.text)
            broken += [f"{name}:{comment.line} has the word \"{word}\"; docs/glossary.md has another" for word in checked.findall(plain)]
            if listed and (english.opener(comment.text) or english.pronouns(comment.text) > 2 + len(english.words(comment.text)) / 10):
                print(f"{name}:{comment.line} {english.opener(comment.text)}: {' '.join(comment.text.split())}")
    for name, folder in sorted(folders.items()):
        if folder.comments < FEW and name != ".":
            continue
        if folder.opening() > (OPENINGS if name == "." else OPENINGS_OF_FOLDER):
            broken.append(f"{name}: {folder.opening():.1f} of 100 comments begin with a word such as Of, What or One")
        if folder.pronoun() > PRONOUNS:
            broken.append(f"{name}: {folder.pronoun():.1f} pronouns in 100 words of comments; {PRONOUNS:g} is the limit")
    for name in (".", "core", "kernels", "capi", "bindings", "tests"):
        folder = folders[name]
        print(f"comments of {name}: {folder.comments}, openings {folder.opening():.1f} %, pronouns {folder.pronoun():.1f} in 100 words")
    return folders["."].comments


def texts(path):
    """Literals of a file that people read, as (line, text)."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".py", ".pyi"):
        comments = {comment.text for comment in english.comments(path)}
        for line, found in english.python_literals(text):
            if found not in comments:
                yield line, found
        return
    for match in literals.TOKENS[literals.LANGUAGE[path.suffix]].finditer(text):
        if match["text"]:
            yield text.count("\n", 0, match.start()) + 1, match["text"][1:-1].replace("\\n", "\n").replace('\\"', '"')


def is_message(text):
    """Returns whether a literal is a sentence for people, rather than a name, a pattern or a page."""
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= 4 and " " in text and text.count("\n") < 2


def begins_with_pronoun(text):
    """Returns whether a message begins with a pronoun, behind white space, quotes and the name of its call.

    A text that begins with "of", "and" or another such word in small letters is a piece of a sentence.
    """
    text = text.lstrip(" \t\n'\"")
    if re.match(r"(?:of|or|and|nor|behind)\b", text):
        return False
    after_call = re.sub(r"^(?:%s|\w+(?:\.\w+)*(?:\(\))?|\{\w*\}(?:\(\))?): ", "", text)
    return bool(english.opener(after_call) or re.match(r"(?:its?|they|them|he|she|we|you)\b", after_call, re.I))


def look_at_questions(root, broken, listed):
    """Counts the comments of functions that begin with a word such as Whether; in public headers, with anything but a verb."""
    found = [(path.relative_to(root).as_posix(), comment) for path in comment_files(root) for comment in english.questions(path)]
    headers = [path for path in comment_files(root) if path.relative_to(root).as_posix().startswith("capi/include/")]
    found += [(path.relative_to(root).as_posix(), comment) for path in headers for comment in english.without_verb(path)]
    for name, comment in found:
        line = f"{name}:{comment.line} begins the comment of a function with {comment.text.split()[0]}; begin with a verb, such as Returns"
        if name.startswith(WITH_VERBS):
            broken.append(line)
        elif listed:
            print(line)
    print(f"comments of functions that begin with a word such as Whether: {len(found)}")


def look_at_messages(root, checked, broken):
    count = longest = 0
    for path in tree.files(root, set(literals.LANGUAGE) | {".py"}):
        name = path.relative_to(root).as_posix()
        if not literals.checked(name) or tree.is_generated(path) or name.startswith(GENERATOR):
            continue
        for line, text in texts(path):
            if not is_message(text):
                broken += [f"{name}:{line} has the word \"{word}\"" for word in checked.findall(text) if " " in text]
                continue
            count += 1
            length = len(english.words(text))
            longest = max(longest, length)
            if begins_with_pronoun(text):
                broken.append(f"{name}:{line} begins with a pronoun: {text[:60]}")
            if length > MESSAGE:
                broken.append(f"{name}:{line} is a message of {length} words; {MESSAGE} is the limit")
            broken += [f"{name}:{line} has the word \"{word}\"; docs/glossary.md has another" for word in checked.findall(text)]
            if not english.has_form(text):
                broken.append(f"{name}:{line} names no argument, or not what it must be: {text[:90]}")
    print(f"messages: {count}, the longest has {longest} words")
    return count


class Text:
    """Figures of the prose of a page."""

    def __init__(self, text):
        plain = "\n".join(english.paragraphs(text))
        lengths = [len(sentence) for sentence in english.sentences(text)] or [0]
        self.words = len(english.words(plain))
        self.pronouns = 100 * english.pronouns(plain) / max(1, self.words)
        self.mean = sum(lengths) / len(lengths)
        self.long = 100 * sum(length > 30 for length in lengths) / len(lengths)


def faults_of_text(name, text, figures, checked):
    """Yields the rules of a page's sentences and words that the page breaks."""
    if figures.words > 100 and figures.pronouns > PAGE_PRONOUNS:
        yield f"{name} has {figures.pronouns:.1f} pronouns in 100 words; {PAGE_PRONOUNS:g} is the limit"
    if figures.mean > SENTENCE:
        yield f"{name} has {figures.mean:.1f} words a sentence; {SENTENCE:g} is the limit"
    if figures.long > LONG:
        yield f"{name} has {figures.long:.0f} sentences in 100 above 30 words; {LONG:g} is the limit"
    for word in checked.findall(re.sub(r"`[^`]*`", "", english.prose(text))):
        yield f"{name} has the word \"{word}\"; docs/glossary.md has another"


def is_page_of_folder(path):
    """Returns whether a page is the README of a folder or a result of benchmarks, without a limit of words and links of terms."""
    return path.name == "README.md" or path.parent.name == "benchmarks" and path.name.startswith("RESULTS-")


def look_at_pages(root, checked, broken):
    found = list(tree.files(root, {".md"}))
    pages = [path for path in found if path.parent in (root, root / "docs")]
    pages = [path for path in pages if path.relative_to(root).as_posix() not in GENERATED]
    of_folders = [path for path in found if path.parent not in (root, root / "docs") and is_page_of_folder(path)]
    known, sizes = terms(root), {}
    for path in pages:
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        sizes[name] = english.page_words(text)
        if name in QUOTES:
            continue
        figures = Text(text)
        print(f"{name}: {sizes[name]} words, sentences of {figures.mean:.1f}, {figures.long:.0f} % long, pronouns {figures.pronouns:.1f} in 100 words")
        broken += faults_of_text(name, text, figures, checked)
        broken += [f"{name} does not link \"{term}\" at its first use" for term in known if not links(text, term)]
    for path in of_folders:
        text = path.read_text(encoding="utf-8")
        broken += faults_of_text(path.relative_to(root).as_posix(), text, Text(text), checked)
    broken += [f"{name} has {sizes[name]} words; {limit} is the limit" for name, limit in PAGES.items() if sizes.get(name, 0) > limit]
    total = sum(sizes.values())
    print(f"pages: {total} words; READMEs of folders and results: {len(of_folders)}")
    if total > ALL_PAGES:
        broken.append(f"pages have {total} words; {ALL_PAGES} is the limit")
    return len(pages) + len(of_folders)


# Terms that are words of every day too: they count where an article or the doctor stands before them.
EVERYDAY = ("cause", "check", "dump", "lane", "lease", "recording", "scope", "tape", "trait")
# Terms whose plural counts without an article.
PLURALS = ("dump", "lane", "lease", "recording", "scope", "tape", "trait")


def pattern_of(term):
    stem = term.removesuffix("s")
    if stem not in EVERYDAY:
        return re.compile(rf"\b{re.escape(term)}s?\b", re.I)
    alone = rf"|\b{stem}s\b" if stem in PLURALS else ""
    return re.compile(rf"\b(?:a|an|the|each|every|its|of|doctor's) {stem}s?\b{alone}", re.I)


def links(text, term):
    """Returns whether a page links a term to the glossary where it first uses the term, if it does. Tables count, code and headings do not."""
    plain = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    plain = re.sub(r"^#.*$|`[^`\n]*`", "", plain, flags=re.M)
    linked = re.search(rf"\[(?:the |a |an )?{re.escape(term.removesuffix('s'))}s?\]\((?:docs/)?glossary\.md", plain, re.I)
    used = pattern_of(term).search(re.sub(r"\[[^\]]*\]\([^)]*\)", lambda found: " " * len(found[0]), plain))
    return not used or bool(linked) and linked.start() <= used.start()


def quotes(text):
    """Messages that a page quotes: parts in quotes of code and of prose, of five words or more."""
    for found in re.finditer(r"\"([^\"\n]{20,})\"", re.sub(r"^```(?!text).*?^```", "", text, flags=re.S | re.M)):
        if found[1].count(" ") >= 4 and not re.search(r"[=;$]\S*[;$]|^[./]", found[1]):
            yield found[1]


def look_at_quotes(root, broken):
    sources = []
    for path in tree.files(root, set(literals.LANGUAGE) | {".py"}):
        if literals.checked(path.relative_to(root).as_posix()):
            sources += [text for _, text in texts(path) if is_message(text)]
    forms = [re.compile(re.sub(r"%[-.\d]*(?:ll|z|h|j)*[a-zA-Z]|%I|\\{[^}]*\\}", ".*?", re.sub(r"([][().*+?^$|\\{}])", r"\\\1", text)), re.S) for text in sources]
    for path in tree.files(root, {".md"}):
        name = path.relative_to(root).as_posix()
        if path.parent not in (root, root / "docs") or name in QUOTES + ("CHANGELOG.md",):
            continue
        for quote in quotes(path.read_text(encoding="utf-8")):
            plain = quote.rstrip(".")
            if not any(plain in text for text in sources) and not any(form.search(plain) for form in forms):
                broken.append(f"{name} quotes a message that no source has: {quote}")


def look_at_terms(root, broken):
    code = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in tree.files(root, tree.CODE)
                     if path.relative_to(root).as_posix().startswith(("core/", "kernels/", "capi/", "tests/")))
    broken += [f"docs/glossary.md has the term \"{term}\", which the code has not" for term in terms(root)
               if not re.search(re.escape(term).replace(r"\ ", "[ _]?"), code, re.I)]


def look_at_readme(root, broken):
    screen = "\n".join(root.joinpath("README.md").read_text(encoding="utf-8").splitlines()[:40])
    for what, found in (("a block that installs", "```sh"), ("a program in Python", "```python"), ("why a GPU is not used", "Why is my GPU not used?"),
                        ("the doctor's answer", "yoke doctor")):
        if found not in screen:
            broken.append(f"README.md: the first 40 lines have not {what} ({found})")


def main(root, *options):
    root, broken = pathlib.Path(root).resolve(), []
    checked = checked_words(root)
    looked_at = look_at_comments(root, checked, broken, "--list" in options)
    look_at_questions(root, broken, "--list" in options)
    looked_at += look_at_messages(root, checked, broken)
    looked_at += look_at_pages(root, checked, broken)
    look_at_quotes(root, broken)
    look_at_terms(root, broken)
    look_at_readme(root, broken)
    tree.report("texts", looked_at, broken)


if __name__ == "__main__":
    main(*sys.argv[1:])
