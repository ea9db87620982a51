"""Every link between the pages and to files of the project leads somewhere."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import Page, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Page) -> None:
    dead = []
    for link in page.links():
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = page.path.parent / path if path else page.path
        if not target.exists() or (anchor and anchor not in Page(target).anchors()):
            dead.append(link)
    assert dead == []


_IN = re.compile(r"`(?:\w+\.)*(\w+)[^`]*`\s+(?:of|in)\s+\[[^\]]*\]\(([^)#]+\.py)\)")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_what_a_page_says_is_in_a_file_is_in_it(page: Page) -> None:
    places = _IN.findall(page.prose)
    assert [at for at in places if at[0] not in (page.path.parent / at[1]).read_text("utf-8")] == []


def test_a_name_that_is_in_another_file_would_be_seen() -> None:
    assert _IN.findall("as `status_of` in [state.py](a/state.py) says") == [("status_of", "a/state.py")]


def test_every_decision_is_listed_on_the_architecture_page() -> None:
    (architecture,) = [page for page in pages() if page.name == "docs/architecture.md"]
    listed = {link for link in architecture.links() if link.startswith("adr/")}
    written = {page.name.removeprefix("docs/") for page in pages() if page.name.startswith("docs/adr/")}
    assert written <= listed
    numbers = [page.partition("-")[0] for page in written]
    assert len(numbers) == len(set(numbers)), "each decision has its own number"


def test_a_dead_link_would_be_seen() -> None:
    (architecture,) = [page for page in pages() if page.name == "docs/architecture.md"]
    assert "two-invariants" in architecture.anchors()
    assert "no-such-heading" not in architecture.anchors()
    assert any(link.startswith("../layers/") for link in architecture.links())
