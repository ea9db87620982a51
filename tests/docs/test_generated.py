"""What the pages derive from the code is what the code says now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest

from baton.core.log import events as ev
from baton.core.log.state import LISTS
from baton.core.log.work import Open
from docs import generate
from docs.transitions import DOCUMENTS, FOUND, REPEATED, find_operations, find_transitions, lives_of, searched
from tests.docs.pages import Page

# `make soak` has all.
IS_ALL = os.environ.get("BATON_TRANSITIONS") == "all"
SOME = REPEATED if IS_ALL else (REPEATED[0], *DOCUMENTS[1::8])


@pytest.mark.parametrize("page", [Page(path) for path in generate.PAGES], ids=lambda page: page.name)
def test_a_page_is_fresh(page: Page) -> None:
    assert generate.render(page.text) == page.text, f"{page.name} is stale: {generate.COMMAND}"


@pytest.mark.parametrize("path", generate.FILES, ids=lambda path: path.name)
def test_a_file_is_fresh(path: Path) -> None:
    assert generate.FILES[path]() == path.read_text("utf-8"), f"{path.name} is stale: {generate.COMMAND}"


def test_every_part_is_on_a_page() -> None:
    text = "".join(path.read_text("utf-8") for path in generate.PAGES)
    assert [name for name in generate.PARTS if f"<!-- generated: {name} -->" not in text] == []


def test_a_part_that_has_no_end_is_an_error_and_not_a_lost_page() -> None:
    with pytest.raises(ValueError, match="rooms"):
        generate.render("before <!-- generated: rooms --> after")


def test_what_stands_between_the_markers_is_replaced_and_nothing_else() -> None:
    page = "before <!-- generated: rooms --> old <!-- end: rooms --> after"
    made = generate.render(page)
    assert made.startswith("before <!-- generated: rooms -->\n| room |")
    assert made.endswith("\n<!-- end: rooms --> after")
    assert generate.render(made) == made


def test_the_search_finds_every_kind_of_event() -> None:
    kinds = {str(kind.__struct_config__.tag) for kind in get_args(ev.Event)}
    # A child that undoes something is in runtime/test_undoing_children.py, a hundred inverses that fail in core/test_undoing_asked.py.
    many = {"undo_set_aside", "undo_taken_up"}
    assert {kind for kind, _ in find_transitions()} == kinds - {"child_undone"} - many


def test_the_search_opens_and_ends_every_kind_of_open_work() -> None:
    kinds = {str(kind.__struct_config__.tag) for kind in get_args(Open)}
    begun = {after for (_, before), found in find_operations().items() for after in found if after != before}
    ended = {before for (_, before), found in find_operations().items() if found - {before}}
    assert kinds <= begun & ended


@pytest.mark.parametrize("document", SOME)
def test_a_saga_comes_to_nothing_that_the_pages_lack(document: str) -> None:
    for known, found in zip((find_transitions(), find_operations()), lives_of(document), strict=True):
        assert {key: after for key, after in found.items() if not after <= known.get(key, frozenset())} == {}


@pytest.mark.soak
def test_a_search_finds_what_the_pages_have() -> None:
    assert searched() == FOUND.read_text("utf-8"), f"{FOUND.name} is stale: {generate.COMMAND}"


def test_only_a_fork_leads_out_of_an_end() -> None:
    ends = {"completed", "failed", "cancelled"}
    assert {kind for kind, before in find_transitions() if before in ends} == {"forked", "workflow_recovered"}


def test_the_page_of_the_api_has_every_status_that_a_saga_comes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "| `suspended` |" in generate.api_statuses()
    monkeypatch.setattr(
        generate, "LISTS", {name: value for name, value in LISTS.items() if name != "suspended"}
    )
    with pytest.raises(LookupError, match="suspended"):
        generate.api_statuses()
