"""Children that are stopped, and their parent goes on or ends without them: a rollback of the parent comes to what they have done."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.decide.context import NOTHING
from baton.core.decide.decide import decide
from baton.core.decide.decision import CancelChildren
from baton.core.decide.unknown_outcomes import left_by
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.state import status_of
from baton.core.log.undos import undo_item
from baton.core.read.views import entry_view
from baton.words.event_words import of as words_of
from tests.core.asked import children_of
from tests.core.build import Saga, done, failed, ready, replay
from tests.core.test_stopped_steps import begun, events
from tests.core.told import story

RACE = """
name: w
on_failure: [rollback]
nodes:
  s: {tool: hold}
  g: {workflow: other, after: s%s}
  a: {tool: t, after: s}
  j: {value: 1, after: [a, g], join: {wait_for: any, rest: cancel}}
  y: {tool: hold, after: j}
  z: {tool: t, after: y}
"""
SUB = """
graphs:
  calm: {nodes: {x: {tool: t}, y: {graph: calm, after: x, when: "false"}}}
  pays: {nodes: {x: {tool: pay, with: {who: ann}}}}
  around: {nodes: {x: {tool: t}, y: {graph: pays, after: x}}}
  outside: {nodes: {x: {workflow: other}}}
"""


def stopped(saga: Saga) -> list[tuple[str, str]]:
    found = events(saga, ev.StepStopped)
    return [(one.slot, one.child) for one in found]


def undoing(saga: Saga) -> list[tuple[str, str]]:
    return [(slot, child.saga) for slot, child in children_of(saga.decision) if saga.state.in_scope(slot)]


def undone(saga: Saga, slot: str, **how: Any) -> None:
    """The child at this slot has undone what it had done."""
    node, _, item = slot.partition("#")
    ((_, name),) = undoing(saga)
    saga.put(ev.ChildUndone(node=node, item=undo_item(item), child=name, **how))
    saga.note_told()
    saga.go()


def lost(text: str = RACE % "") -> Saga:
    """A child has lost a race, and was told to stop."""
    saga = begun(text)
    saga.go(done("s"))
    saga.go(done("a"))
    return saga


def test_it_is_in_the_list_in_front_of_what_stops_it_and_undone_when_its_turn_comes() -> None:
    saga = lost()
    assert stopped(saga) == [("g", "s1.0.g")]
    kinds = [type(one) for entry in saga.entries for one in entry.events]
    assert kinds.index(ev.StepStopped) + 1 == kinds.index(ev.NodeSkipped)
    assert (saga.state.undo.can, saga.state.undo.in_doubt, saga.state.orphaned_children) == (2, (), ())
    saga.go(done("y"))
    saga.go(failed("z"))
    assert ready(saga.decision) == ["y#undo"]
    saga.go(done("y#undo"))
    assert undoing(saga) == [("g#undo", "s1.0.g")]
    undone(saga, "g", cost=3)
    assert (ready(saga.decision), saga.state.money.spent) == (["s#undo"], 3)
    saga.go(done("s#undo"))
    assert saga.state.ended is not None
    assert (status_of(saga.state), saga.state.ended.undone) == ("rolled_back", ev.Undone(done=3))
    assert replay(saga.entries) == saga.state


def test_what_it_could_not_undo_is_asked_of_it_again_by_a_later_rollback() -> None:
    saga = lost()
    saga.go(done("y"))
    saga.go(failed("z"))
    saga.go(done("y#undo"))
    undone(saga, "g", failure=ev.Failure("child_failed", "the office is closed", "g"))
    saga.go(done("s#undo"))
    assert status_of(saga.state) == "rollback_failed"
    again = ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True)
    saga.put(again, epoch=0, invocation="api")
    saga.go()
    (began,) = [one for one in saga.entries[-1].events if isinstance(one, ev.UndoStepBegan)]
    assert (began.child, began.again, began.stopped, began.doubt) == ("s1.0.g", True, True, "")
    undone(saga, "g")
    assert status_of(saga.state) == "rolled_back"


@pytest.mark.parametrize(("own", "status"), [(True, "rolled_back"), (False, "failed")])
def test_a_child_that_had_done_nothing_leaves_the_end_as_it_would_be_without_it(
    own: bool, status: str
) -> None:
    text = RACE % ""
    saga = lost(text if own else text.replace("tool: hold", "tool: t"))
    saga.go(done("y"))
    saga.go(failed("z"))
    if own:
        saga.go(done("y#undo"))
    undone(saga, "g", nothing=True)
    if own:
        saga.go(done("s#undo"))
    assert saga.state.ended is not None
    report = saga.state.ended.undone
    assert (status_of(saga.state), report and report.done) == (status, 2 if own else None)
    assert saga.state.ended.failure is not None
    assert (saga.state.ended.failure.node, saga.state.undo.is_left) == ("z", False)
    assert len(saga.state.undo.spans) == own, (
        "a fork to behind the race stays possible where nothing was undone"
    )


@pytest.mark.parametrize("is_ended", [False, True])
def test_one_that_had_done_nothing_leaves_a_cancelled_saga_cancelled(is_ended: bool) -> None:
    saga = lost((RACE % "").replace("tool: hold", "tool: t"))
    if is_ended:
        saga.go(done("y"))
        saga.go(done("z"))
        saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True), epoch=0)
    else:
        saga.put(ev.CancelRequested(reason="no more", by="ada", at=saga.now, grace_ms=0, undo=True))
    saga.go()
    undone(saga, "g", nothing=True)
    assert saga.state.ended is not None
    assert status_of(saga.state) == ("rolled_back" if is_ended else "cancelled")
    assert saga.state.ended.failure is not None


@pytest.mark.parametrize(
    ("starts", "is_listed"),
    [
        ("workflow: other", True),
        ("workflow: other, compensate: none", False),
        ("graph: calm", False),
        ("graph: pays", True),
        ("graph: around", True),
        ("graph: outside", True),
    ],
)
def test_it_is_listed_unless_certainly_nothing_undoes_what_it_has_done(starts: str, is_listed: bool) -> None:
    saga = lost((RACE % "").replace("workflow: other", starts) + SUB)
    assert bool(stopped(saga)) == is_listed
    assert (saga.state.undo.can == 2) == is_listed


def test_each_child_of_a_map_that_goes_on_without_it_is_listed() -> None:
    saga = begun(
        """
name: w
on_failure: [rollback]
nodes:
  m: {map: {over: "${input.l}", wait_for: 1, rest: cancel}, workflow: other}
  f: {tool: t, after: m}
""",
        {"l": [1, 2, 3]},
    )
    first = saga.state.children["m#0"]
    saga.put(ev.ChildReported(slot="m#0", child=first.saga, status="completed"))
    saga.go()
    assert stopped(saga) == [("m#1", "s1.0.m-1"), ("m#2", "s1.0.m-2")]
    saga.go(failed("f"))
    assert undoing(saga) == [("m#undo-2", "s1.0.m-2")]
    undone(saga, "m#2")
    undone(saga, "m#1")
    assert status_of(saga.state) == "rolled_back"


@pytest.mark.parametrize("undoable", [True, False])
def test_of_two_that_have_ended_at_once_the_loser_is_listed_if_it_has_something_to_undo(
    undoable: bool,
) -> None:
    saga = begun((RACE % "").replace("a: {tool: t", "a: {workflow: other"))
    saga.go(done("s"))
    saga.put(
        *(
            ev.ChildReported(slot=slot, child=f"s1.0.{slot}", status="completed", undoable=undoable)
            for slot in ("a", "g")
        )
    )
    saga.go()
    (closed,) = events(saga, ev.ChildClosed)
    loser = "a" if closed.node == "g" else "g"
    assert stopped(saga) == ([(loser, f"s1.0.{loser}")] if undoable else [])
    assert (saga.state.undo.can, saga.state.orphaned_children) == (1 + 2 * undoable, ())


def test_where_the_saga_stops_before_the_child_is_asked_to_its_steps_end_and_it_is_heard_in_its_turn() -> (
    None
):
    saga = lost()
    before = replay(saga.entries[:-1])
    assert [one.listed for one in before.orphaned_children] == [True]
    wanted = ev.CancelRequested(reason="no more", by="ada", at=saga.now, grace_ms=0, undo=True)
    decision = decide(saga.program, apply(before, wanted), saga.now)
    command = decision.of(CancelChildren)
    assert command is not None
    assert ([slot for slot, _ in command.children], command.revert) == ([""], True)
    assert decision.record == (), "it is asked before it is recorded"
    saga.put(wanted)
    saga.go()
    assert undoing(saga) == [("g#undo", "s1.0.g")], "once, and before what came earlier"
    undone(saga, "g")
    assert ready(saga.decision) == ["s#undo"]


@pytest.mark.parametrize("how", ["cancel", "stays"])
def test_what_the_end_of_a_saga_stops_that_undoes_nothing_is_there_for_a_later_rollback(how: str) -> None:
    rule = "fail" if how == "stays" else "rollback"
    text = f"""
name: w
on_failure: {rule}
nodes:
  g: {{workflow: other}}
  b: {{tool: pay, with: {{who: ann}}}}
  z: {{tool: t}}
"""
    saga = begun(text)
    saga.children_have_acted = True
    cut = ev.StepInterrupted(node="b", started_at=saga.now, ended_at=saga.now, budget_ms=1)
    saga.put(cut)
    if how == "cancel":
        saga.cancel()
        saga.go()
    else:
        saga.go(failed("z", "odd", "permanent"))
    saga.note_told()
    saga.go()
    assert status_of(saga.state) == ("cancelled" if how == "cancel" else "failed")
    assert stopped(saga) == [("b", ""), ("g", "s1.0.g")]
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True), epoch=0)
    saga.go()
    undone(saga, "g")
    assert [one.ask is not None for one in saga.state.failing.values()] == [True]
    assert replay(saga.entries) == saga.state


def test_it_is_listed_once() -> None:
    saga = begun(RACE % "")
    saga.go(done("s"))
    (link,) = left_by(saga.program, saga.state, NOTHING)
    once = apply(saga.state, link)
    assert (apply(once, link), left_by(saga.program, once, NOTHING)) == (once, ())


def test_it_is_said_and_explained() -> None:
    saga = lost()
    (event,) = [
        one for entry in saga.entries for one in entry_view(entry)["events"] if one["kind"] == "step_stopped"
    ]
    said = words_of(event)
    assert said is not None
    assert "s1.0.g" in said[0]
    assert "child" in said[0]
    saga.go(done("y"))
    saga.go(failed("z"))
    assert "s1.0.g" in story(saga).places["g"].fate
    saga.go(done("y#undo"))
    undone(saga, "g", nothing=True)
    assert story(saga).places["g"].fate.startswith("nothing to undo")


LEFT = {
    "tried again": ("g: {workflow: other, retry: {max_attempts: 2, on: [gone]}}", "g", 1),
    "tolerated": ("g: {workflow: other, map: {over: [1, 2], tolerated_failures: 1}}", "g#0", 1),
    "tolerated after its tries": (
        "g: {workflow: other, map: {over: [1, 2], tolerated_failures: 1}, retry: {max_attempts: 2, on: [gone]}}",
        "g#0",
        2,
    ),
    "caught after its tries": (
        "g: {workflow: other, retry: {max_attempts: 2, on: [gone]}, catch: {then: c}}\n  c: {tool: t}",
        "g",
        2,
    ),
}


@pytest.mark.parametrize("undoable", [True, False])
@pytest.mark.parametrize("way", LEFT)
def test_what_a_child_that_has_failed_has_left_is_in_the_list_where_its_parent_goes_on(
    way: str, undoable: bool
) -> None:
    nodes, slot, tries = LEFT[way]
    saga = begun(f"name: w\non_failure: [rollback]\nnodes:\n  {nodes}\n  y: {{tool: hold}}\n")
    names = []
    for _ in range(tries):
        saga.now += 60_000
        saga.go()
        names.append(saga.state.children[slot].saga)
        failure = ev.Failure("gone", "it is gone", kind="transient")
        saga.put(
            ev.ChildReported(slot=slot, child=names[-1], status="failed", failure=failure, undoable=undoable)
        )
        saga.go()
    assert stopped(saga) == [(slot, name) for name in names if undoable]
    assert saga.state.failure is None


@pytest.mark.parametrize("rules", ["", ", retry: {max_attempts: 1, on: [gone]}"])
def test_a_child_whose_failure_stops_its_parent_is_asked_and_not_listed_before(rules: str) -> None:
    saga = begun(
        f"name: w\non_failure: [rollback]\nnodes:\n  g: {{workflow: other{rules}}}\n  y: {{tool: hold}}\n"
    )
    name = saga.state.children["g"].saga
    failure = ev.Failure("gone", "it is gone", kind="permanent")
    saga.put(ev.ChildReported(slot="g", child=name, status="failed", failure=failure, undoable=True))
    saga.go()
    assert (stopped(saga), saga.state.failure is not None) == ([], True)
