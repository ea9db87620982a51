"""The judges of the simulation see in a log what they are there for, and nothing in one that is right."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log import events as ev
from baton.core.log.undos import UndoStepBegan, undo_item
from tests.kit.map_bugs import of_maps
from tests.kit.polls_and_children import left_standing, of_tries
from tests.kit.undoable_tools import in_order

pytestmark = pytest.mark.simulation

RAN: dict[str, Any] = {
    "attempt": 1,
    "started_at": 1,
    "ended_at": 2,
    "tool": "lend",
    "tool_version": "",
    "schema_hash": "",
}


def log(*events: ev.Event) -> list[ev.Entry]:
    """An entry for each event."""
    return [
        ev.Entry(version=n, at=n, epoch=1, invocation="i", events=(one,)) for n, one in enumerate(events, 1)
    ]


def done(node: str, item: str = "", prior: int | None = None) -> ev.StepSucceeded:
    return ev.StepSucceeded(node=node, item=item, output=ev.Value(v={}), prior=prior, **RAN)


def failed(node: str, item: str = "", prior: int | None = None) -> ev.StepFailed:
    failure = ev.Failure("timeout", "it is not known", node)
    return ev.StepFailed(node=node, item=item, failure=failure, prior=prior, **RAN)


def answered(node: str, action: str) -> ev.QuestionClosed:
    return ev.QuestionClosed(node=node, item=undo_item(""), ask="0.b.1", action=action, at=3)


A, B = done("a", prior=0), failed("b", prior=1)
UNDONE = done("a", undo_item(""))
ROLLED_BACK = ev.SagaEnded(status="rolled_back", undone=ev.Undone(done=1))


@pytest.mark.parametrize(
    ("between", "is_right"),
    [
        ((), False),
        ((answered("b", "fail"),), False),
        ((answered("b", "retry"),), True),
        ((done("b", undo_item("")),), True),
        ((ev.UndoPassed(node="b", version=2),), False),
        ((ev.UndoPassed(node="b", version=2, redone=True),), True),
    ],
)
def test_a_step_in_doubt_is_passed_over_only_where_it_is_known_not_to_have_happened(
    between: tuple[ev.Event, ...], is_right: bool
) -> None:
    began = UndoStepBegan(node="b", item=undo_item(""), at=2, version=2, doubt="it is not known")
    found = [*in_order(log(A, B, began, *between, UNDONE, ROLLED_BACK))]
    assert (found == []) is is_right, found


def opened(child: str) -> ev.ChildOpened:
    return ev.ChildOpened(node="c", child=child, workflow="v", input=ev.Value())


def test_a_child_that_is_started_twice_under_one_id_is_seen() -> None:
    assert [*of_tries({"s": log(opened("s.0.c"), opened("s.0.c..2"))})] == []
    (text,) = of_tries({"s": log(opened("s.0.c"), opened("s.0.c"))})
    assert "twice" in text


def test_a_child_whose_parent_is_rolled_back_and_that_stands_is_seen() -> None:
    parent = log(opened("s.0.c"), ROLLED_BACK)
    its = log(done("x", prior=0), ev.SagaEnded(status="completed"))
    (text,) = left_standing({"s": parent, "s.0.c": its})
    assert "stands" in text
    its = log(done("x", prior=0), ev.SagaEnded(status="completed"), ROLLED_BACK)
    assert [*left_standing({"s": parent, "s.0.c": its})] == []


BEGAN = (
    ev.MapBegan(node="m", over=ev.Value(v=[1, 2]), size=2),
    ev.ItemsBegan(node="m", count=2, at=1),
)


def closed(succeeded: int, stopped: int = 0) -> ev.MapClosed:
    return ev.MapClosed(node="m", output=ev.Value(), succeeded=succeeded, stopped=stopped)


@pytest.mark.parametrize(
    ("events", "is_right"),
    [
        ((done("m", "1"), done("m", "0"), closed(2)), True),
        ((done("m", "1"), closed(1, stopped=1)), True),
        ((done("m", "1"), closed(2)), False),
        ((done("m", "1"), done("m", "1"), closed(2)), False),
        ((done("m", "1"), closed(1, stopped=1), done("m", "0")), False),
        ((ev.ItemsBegan(node="m", first=1, count=1, at=1),), False),
        ((done("m", "2"),), False),
    ],
)
def test_what_a_map_says_of_its_items_is_counted_again(events: tuple[ev.Event, ...], is_right: bool) -> None:
    found = [*of_maps({"s": log(*BEGAN, *events)})]
    assert (found == []) is is_right, found
