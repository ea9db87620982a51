"""The page of the console names every page of the console."""

from __future__ import annotations

import re
from collections.abc import Iterator

from baton.console.site import PAGES
from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/console.md")


def addresses(cell: str) -> Iterator[str]:
    """`/console/a`, `b` stands for two pages beside each other."""
    before = ""
    for word in re.findall(r"`([^`]+)`", cell):
        before = word if word.startswith("/") else f"{before.rpartition('/')[0]}/{word}"
        yield before


def test_its_pages_are_those_of_the_console() -> None:
    listed = {
        one
        for cell in re.findall(r"^\| (`/console.*?) \|", PAGE.text, re.MULTILINE)
        for one in addresses(cell)
    }
    assert listed == {f"/console/{page.path}".rstrip("/") for page in PAGES if page.method == "GET"}
