"""The page for those who come from another system: its ported workflows run."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import ROOT, Page
from tests.docs.projects import tried_out

PAGE = Page(ROOT / "docs/coming-from.md")


def test_what_it_ports_runs(tmp_path: Path) -> None:
    said = tried_out(tmp_path, PAGE.files())
    assert "7 passed" in said
    assert "ok, settle-claim" in said
