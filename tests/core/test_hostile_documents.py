"""Hostile documents: each is compiled or refused soon, in little memory, with its reason.

`make soak` tries all of them (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.nodes.registry import KINDS
from baton.core.read.explain import has_page
from baton.core.read.places import End, Moment, Place
from baton.core.read.story import Story
from baton.errors import InvalidDefinition
from tests.core.apart import tried_apart
from tests.core.build import TOOLS
from tests.core.hostile_documents import DEEP, LONG, TRIED, nested, step
from tests.core.hostile_documents import tried as tried_here
from tests.kit.sentences import Says

LONGEST_S = 3.0  # of the processor, on a slow machine that does other things as well
MOST_MB = 300


@pytest.fixture(scope="module")
def tried() -> list[Any]:
    return tried_apart(TRIED, tried_here)


def test_every_hostile_document_is_compiled_or_refused_with_its_reason(tried: list[Any]) -> None:
    assert [one[:2] for one in tried] == [[case.name, case.expected] for case in TRIED]


def test_each_ends_soon(tried: list[Any]) -> None:
    assert [(name, took) for name, _, _, took, _ in tried if took > LONGEST_S] == []


def test_each_takes_little_memory(tried: list[Any]) -> None:
    assert [(name, more) for name, _, _, _, more in tried if more > MOST_MB] == []


def refused(document: dict[str, Any], answers: int) -> list[tuple[str, str, str]]:
    """What is told of a document where the compiler has time only for so many answers."""
    left = iter(range(answers))
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(
            json.dumps({"name": "w", **document}), TOOLS, has_time=lambda: next(left, None) is not None
        )
    return [(one.path, one.message, one.suggestion) for one in caught.value.problems]


def test_a_document_that_takes_too_long_says_how_far_it_came_and_what_to_do(says: Says) -> None:
    document: dict[str, Any] = {"nodes": {f"m{i}": step(when=f"input.n == {i}") for i in range(9)}}
    places = set()
    for answers in range(60):
        try:
            (problem,) = refused(document, answers)
        except pytest.fail.Exception:
            break
        assert LONG in problem[1]
        says(problem[2])
        places.add(problem[0])
    else:
        raise AssertionError("it never has time enough")
    assert places >= {"", "/nodes/m7", "/nodes/m7/when"}


def test_problems_that_were_found_in_time_are_told_without_any_other() -> None:
    told = refused({"nodes": nested(40)}, 10_000)
    assert {place for place, _, _ in told} >= {"/nodes/l0_0/loop"}


def test_loops_that_are_too_deep_are_followed_no_further() -> None:
    told = refused({"nodes": nested(120)}, 10_000)
    assert [place for place, message, _ in told if DEEP in message] == ["/nodes/l0_87/loop"]
    assert len({message for _, message, _ in told if "inside each other" in message}) == 1


def test_a_page_of_the_way_is_known_once_a_later_entry_has_settled_more() -> None:
    story = Story(Program(compile_document("name: w\nnodes: {a: {value: 1}}", TOOLS), KINDS))
    for slot, version in (("a", 2), ("b", 3), ("c", 3), ("d", 5)):
        story.places[slot] = Place(slot, (), end=End("ran", Moment(version, 0)))
        story.ended.append(slot)
    known = {(after, limit): has_page(story, after, limit) for after in (0, 2, 3) for limit in (1, 2, 3, 4)}
    assert [key for key, is_known in known.items() if is_known] == [(0, 1), (0, 2), (0, 3), (2, 1), (2, 2)]
