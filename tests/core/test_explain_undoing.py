"""What is told of a saga that undoes what it has done: each step by its node, what became of it, and how the saga ended."""

from __future__ import annotations

from typing import Any

from baton.core.log import events as ev
from baton.core.read.explain import explain, way
from baton.core.read.places import Moment
from baton.core.read.reasons import Reasons
from baton.core.read.undo_places import see
from tests.core.build import Saga, done, failed, program, task
from tests.core.test_undoing import AT_ONCE, undoable
from tests.core.told import ROOM, story, why


def rolled_back() -> Saga:
    """`a` and `c` can be undone, `b` cannot; `d` has failed."""
    saga = Saga(program(undoable("a"), task("b", "a"), undoable("c", "b"), task("d", "c"), task("e", "d")))
    for name in "abc":
        saga.go(done(name))
    saga.go(failed("d"))
    return saga


def told(saga: Saga) -> dict[str, Any]:
    return way(story(saga), 0, 1_000, ROOM)


def test_while_it_is_undone_only_what_undoes_is_open() -> None:
    found = told(rolled_back())
    assert [(one["node"], one["item"]) for one in found["open"]] == [("c", "undo")]
    assert found["open"][0]["text"].startswith("undo of `c` is ready")
    assert found["end"] == "the saga failed: `d`: tool_error: it broke; it undoes what it has done"
    assert why(rolled_back(), "c").endswith("is being undone")


def test_a_node_says_that_it_was_undone_and_the_way_has_the_undoing() -> None:
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
    assert why(saga, "b").endswith("; nothing undoes it, so it stays")
    assert found["end"] == (
        "the saga failed: `d`: tool_error: it broke; 2 steps undone and 1 step that nothing undoes"
    )
    (items,) = (one["items"] for one in explain(story(saga), "a", ROOM)["iterations"])
    assert [one["text"] for one in items] == ["undo: by `u`"]


def test_what_could_not_be_undone_says_why_and_a_second_rollback_ends_it() -> None:
    saga = rolled_back()
    saga.go(failed("c#undo", "gone", "permanent"))
    saga.note_told()
    saga.go(done("a#undo"))
    assert "; could not be undone: gone: it broke" in why(saga, "c")
    assert (told(saga)["end"] or "").count("1 step could not be undone") == 1
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k"))
    saga.go()
    assert [(one["node"], one["item"]) for one in told(saga)["open"]] == [("c", "undo")]
    saga.go(done("c#undo"))
    assert why(saga, "c").endswith("; undone by `u`")
    assert why(saga, "d").startswith("`d` failed"), "a rollback repeats nothing"
    assert told(saga)["end"] == "`ada` has the saga rolled back; 1 step undone"


def test_a_completed_saga_that_is_rolled_back_says_by_whom() -> None:
    saga = Saga(program(undoable("a")))
    saga.go(done("a"))
    saga.put(
        ev.Forked(
            cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k", reason="changed"
        )
    )
    saga.go()
    saga.go(done("a#undo"))
    assert told(saga)["end"] == "`ada` has the saga rolled back: changed; 1 step undone"


def test_a_failed_saga_that_is_rolled_back_keeps_what_it_has_failed_with() -> None:
    saga = Saga(program(undoable("a"), task("b", "a", failures=AT_ONCE)))
    saga.go(done("a"))
    saga.go(failed("b"))
    assert told(saga)["end"] == "the saga failed: `b`: tool_error: it broke"
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k"))
    saga.go()
    saga.go(done("a#undo"))
    assert why(saga, "b").startswith("`b` failed")
    assert [one["node"] for one in told(saga)["steps"]] == ["a", "b", "a"]


def test_a_child_and_what_the_story_does_not_know_are_told_too() -> None:
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
        see(known, event, now)
    assert (known.places["b"].fate, known.places["b#undo"].said) == (
        "could not be undone: gone",
        "by child k1",
    )
    assert known.places["e#undo-t1"].said == "by no tool"
    known.places["b"].label = "turn 1"
    see(known, ev.UndoStepBegan(node="b", item="undo", at=0, version=3, child="k1"), now)
    see(known, ev.ChildUndone(node="b", item="undo", child="k1"), now)
    assert (known.places["b"].fate, known.places["b#undo"].label) == (
        "undone by child k1",
        "undo of turn 1",
    )
    known.end = (ev.SagaEnded(status="rolled_back", undone=ev.Undone()), now)
    stopped = Reasons(known).stopped()
    assert stopped is not None
    assert stopped.text.endswith("; nothing was undone")
