"""The pages of the guide: every name exists, and every link leads somewhere. test_snippets.py runs their code."""

import re
from pathlib import Path

import pytest

import documents
import yoke

DOCS = documents.ROOT / "docs"
PAGES = ("guide.md", "memory.md", "checkpoint.md", "state.md", "embedding.md", "cards.md")


def text(page):
    return (DOCS / page).read_text()


def test_functions_of_c_that_a_page_names_exist():
    declared = "".join(path.read_text() for path in (documents.ROOT / "capi/include/yoke").glob("*.h"))
    for page in PAGES:
        for name in set(re.findall(r"`(yoke_\w+)`", text(page))):
            assert re.search(rf"\b{name}\b", declared), f"{page} names {name}"


def test_the_page_of_memory_has_every_function_of_memory():
    table = documents.section(DOCS / "memory.md", "Every function")
    wanted = [name for name in dir(yoke) if re.search(r"mem_|memory|_cach|live_|saved", name) and not name.startswith("_")]
    assert len(wanted) >= 13, wanted
    assert [name for name in wanted if f"`{name}(" not in table] == []
    declared = (documents.ROOT / "capi/include/yoke/memory.h").read_text()
    functions = re.findall(r"YOKE_API \w+ (yoke_\w+)\(", declared)
    assert len(functions) >= 10, functions
    assert [name for name in functions if f"`{name}`" not in table] == []


@pytest.mark.parametrize("page", [DOCS / page for page in PAGES] + [documents.ROOT / "README.md"], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)\)", Path(page).read_text())
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []
