"""What is told of a saga that undoes what it has done: each step by its node, what became of it, and how the saga ended."""

from __future__ import annotations

from typing import Any

from baton.core.log import events as ev
from baton.core.read.places import Moment, see_undo_event
from baton.core.read.story import Reasons
from tests.core.build import Saga, done, failed, program, task
from tests.core.test_undoing import AT_ONCE, undoable
from tests.core.told import ROOM, story, why
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain, way


def rolled_back() -> Saga:
    """`a` and `c` can be undone, `b` cannot; `d` has failed."""
    saga = Saga(program(undoable("a"), task("b", "a"), undoable("c", "b"), task("d", "c"), task("e", "d")))
    for name in "abc":
        saga.go(done(name))
    saga.go(failed("d"))
    return saga


def told(saga: Saga) -> Any:
    return as_json(way(story(saga), 0, 1_000, ROOM))


def test_while_it_is_undone_only_what_undoes_is_open(says: Says) -> None:
    found = told(rolled_back())
    assert [(one["node"], one["item"]) for one in found["open"]] == [("c", "undo")]
    says(found["open"][0]["text"])
    says(found["end"])
    assert why(rolled_back(), "c").endswith("is being undone")


def test_a_node_says_that_it_was_undone_and_the_way_has_the_undoing(says: Says) -> None:
    saga = rolled_back()
    saga.go(done("c#undo"))
    saga.go(done("a#undo"))
    found = told(saga)
    assert [(one["node"], one.get("item"), one["became"]) for one in found["steps"]][-2:] == [
        ("c", "undo", "ran"),
        ("a", "undo", "ran"),
    ]
    assert found["steps"][-1]["text"] == "undo: by `u`"
    assert why(saga, "a").endswith("; undone by `u`")
    says(why(saga, "b"))
    says(found["end"])
    (items,) = (one["items"] for one in as_json(explain(story(saga), "a", ROOM))["iterations"])
    assert [one["text"] for one in items] == ["undo: by `u`"]


def test_what_could_not_be_undone_says_why_and_a_second_rollback_ends_it(says: Says) -> None:
    saga = rolled_back()
    saga.go(failed("c#undo", "gone", "permanent"))
    saga.note_told()
    saga.go(done("a#undo"))
    says(why(saga, "c"))
    says(told(saga)["end"])
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k"))
    saga.go()
    assert [(one["node"], one["item"]) for one in told(saga)["open"]] == [("c", "undo")]
    saga.go(done("c#undo"))
    assert why(saga, "c").endswith("; undone by `u`")
    assert why(saga, "d").startswith("`d` failed"), "a rollback repeats nothing"
    says(told(saga)["end"])


def test_a_completed_saga_that_is_rolled_back_says_by_whom(says: Says) -> None:
    saga = Saga(program(undoable("a")))
    saga.go(done("a"))
    saga.put(
        ev.Forked(
            cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k", reason="changed"
        )
    )
    saga.go()
    saga.go(done("a#undo"))
    says(told(saga)["end"])


def test_a_failed_saga_that_is_rolled_back_keeps_what_it_has_failed_with(says: Says) -> None:
    saga = Saga(program(undoable("a"), task("b", "a", failures=AT_ONCE)))
    saga.go(done("a"))
    saga.go(failed("b"))
    says(told(saga)["end"])
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k"))
    saga.go()
    saga.go(done("a#undo"))
    assert why(saga, "b").startswith("`b` failed")
    assert [one["node"] for one in told(saga)["steps"]] == ["a", "b", "a"]


def test_a_child_and_what_the_story_does_not_know_are_told_too(says: Says) -> None:
    saga = rolled_back()
    saga.go(done("c#undo"))
    saga.go(done("a#undo"))
    known = story(saga)
    now = Moment(99, saga.now)
    for event in (
        ev.UndoBegan(reason="", at=0, by="ada"),
        ev.UndoStepBegan(node="b", item="undo", at=0, version=3, child="k1"),
        ev.ChildUndone(node="b", item="undo", child="k1", failure=ev.Failure("gone", "")),
        ev.ChildUndone(node="b", item="undo", child="k1"),  # twice
        ev.UndoStepBegan(node="e", item="undo-t1", at=0, version=3, tool="x"),
        ev.ChildUndone(node="e", item="undo-t1", child="k1"),
        ev.UndoPassed(node="e", item="t9", version=3),
    ):
        see_undo_event(known, event, now)
    says((known.places["b"].fate, known.places["b#undo"].said))
    assert known.places["e#undo-t1"].said == "by no tool"
    known.places["b"].label = "turn 1"
    see_undo_event(known, ev.UndoStepBegan(node="b", item="undo", at=0, version=3, child="k1"), now)
    see_undo_event(known, ev.ChildUndone(node="b", item="undo", child="k1"), now)
    assert (known.places["b"].fate, known.places["b#undo"].label) == (
        "undone by child k1",
        "undo of turn 1",
    )
    known.end = (ev.SagaEnded(status="rolled_back", undone=ev.Undone()), now)
    stopped = Reasons(known).stopped()
    assert stopped is not None
    says(stopped.text)
