"""Each document says what docs/patterns.md says of its pattern, and has a test."""

from __future__ import annotations

import re

import pytest

from baton.core.documents.compile import compile_document
from docs.pattern_tables import NOT, PARTLY, PATTERNS, YES, documents, pattern_count, support
from tests.patterns.run_patterns import CHILDREN, DOCUMENTS, HERE, Diary

KNOWN = documents()


@pytest.mark.parametrize("number", DOCUMENTS)
def test_a_document_is_named_as_its_file_and_says_how_far_it_goes(number: int) -> None:
    path, document = KNOWN[number]
    assert path.stem[6:].replace("_", "-") == document["name"]
    assert support(document) in (YES, PARTLY)
    assert ("lacking" in document["metadata"]) == (support(document) == PARTLY)
    assert document["description"].endswith(".")


def test_every_pattern_without_a_document_says_why() -> None:
    assert len(PATTERNS) == 43
    without = {number for number, pattern in enumerate(PATTERNS, 1) if pattern.why_not}
    assert without == set(range(1, 44)) - DOCUMENTS.keys()
    assert support(None) == NOT


def test_every_document_has_a_test_that_bears_its_number() -> None:
    sources = "".join(path.read_text("utf-8") for path in HERE.glob("test_*.py"))
    names = "".join(re.findall(r"^def (test_wcp\w+)", sources, re.MULTILINE))
    assert {int(number) for number in re.findall(r"wcp(\d\d)", names)} == DOCUMENTS.keys()


def test_a_child_that_no_document_starts_would_be_seen() -> None:
    texts = [path.read_text("utf-8") for path in [*DOCUMENTS.values(), *CHILDREN]]
    started = {name for text in texts for name in re.findall(r"workflow: ([a-z-]+)", text)}
    specs = Diary().registry().specs()
    assert {compile_document(path.read_text("utf-8"), specs).name for path in CHILDREN} <= started


def test_the_changelog_has_the_count_of_the_page() -> None:
    """What a reader of releases is told."""
    ours = re.findall(r"\d+", pattern_count().splitlines()[2])
    supported, partly, no = ours
    text = " ".join((HERE.parents[1] / "CHANGELOG.md").read_text("utf-8").split())
    assert f"{supported} supported, {partly} partly, {no} not" in text
