"""Every link between the pages and to files of the project leads somewhere."""

from __future__ import annotations

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


def test_every_decision_is_listed_on_the_architecture_page() -> None:
    (architecture,) = [page for page in pages() if page.name == "docs/architecture.md"]
    listed = {link for link in architecture.links() if link.startswith("adr/")}
    written = {page.name.removeprefix("docs/") for page in pages() if page.name.startswith("docs/adr/")}
    assert written <= listed


def test_a_dead_link_would_be_seen() -> None:
    (architecture,) = [page for page in pages() if page.name == "docs/architecture.md"]
    assert "two-invariants" in architecture.anchors()
    assert "no-such-heading" not in architecture.anchors()
    assert any(link.startswith("../layers/") for link in architecture.links())
