"""What `baton events` and `baton show` say of a saga that undoes what it has done."""

from __future__ import annotations

import re
from typing import Any

import pytest

from baton.cli.text.render import EventLines, helping
from baton.core.log import events as ev
from baton.core.read.views import entry_view
from baton.words.event_words import undo_declarations, undo_lines
from tests.kit.sentences import Says

T0 = 1_795_458_562_846
FAILED: dict[str, Any] = {
    "attempt": 1,
    "started_at": T0,
    "ended_at": T0,
    "tool": "trip.refund",
    "tool_version": "1",
    "schema_hash": "h",
}
EXPIRED = ev.Failure("card_expired", "the card\nhas expired", node="pay", tool="trip.refund")
DONE: dict[str, Any] = {
    "attempt": 1,
    "started_at": T0,
    "ended_at": T0,
    "tool_version": "1",
    "schema_hash": "h",
}


def said(event: ev.Event, width: int | None = None) -> list[str]:
    """What stands behind version and time."""
    entry = ev.Entry(version=9, branch=0, at=T0, epoch=1, invocation="i", events=(event,))
    return [re.sub(" {2,}", "  ", str(line)[21:]) for line in EventLines(width).of(entry_view(entry))][1:]


@pytest.mark.parametrize(
    "event",
    [
        ev.UndoBegan(reason="sold_out: none", at=T0),
        ev.UndoBegan(reason="", by="ada", at=T0, back_to=3, together=True),
        ev.UndoStepBegan(node="pay", item="undo", at=T0, version=5, tool="trip.pay", next=2),
        ev.UndoStepBegan(node="pay", item="undo-t1-1", at=T0, version=5, tool="trip.pay", again=True),
        ev.UndoPassed(node="tell", version=3, tool="trip.mail"),
        ev.UndoPassed(node="look", iteration=(1,), version=3, tool="trip.look", polled=True),
        ev.ChildUndone(node="a", child="k1", item="undo"),
        ev.ChildUndone(node="a", child="k1", item="undo", failure=ev.Failure("x", "no")),
        ev.StepSucceeded(node="pay", item="undo", tool="trip.refund", output=ev.Value(v=None), **DONE),
        ev.StepFailed(node="pay", item="undo", failure=EXPIRED, stays=True, is_result=True, **FAILED),
        ev.Forked(cut=3, branch=1, by="ada", at=T0, reason="changed", key="k", undo=True, back_to=2),
        ev.SagaEnded(
            status="rollback_failed",
            undone=ev.Undone(done=2, fails=1, lasts=1, doubtful=("x",)),
        ),
    ],
)
def test_an_event_about_undoing_is_a_sentence(event: ev.Event, says: Says) -> None:
    (line,) = said(event)
    says(line)
    assert "version=" not in line
    assert "model" not in line
    assert "is_result" not in line
    assert all(len(one) <= 80 for one in said(event, 80))


VIEW: dict[str, Any] = {"undoable": 0, "lasting": 0, "failed": [], "doubtful": [], "under_way": None, "done": None}  # fmt: skip
NOT = {"step": "pay", "version": 5, "tool": "trip.refund", "code": "gone", "message": "it is\ngone"}


def test_show_says_what_is_undone_and_what_is_not(says: Says) -> None:
    assert undo_lines({"undo": None}) == []
    assert undo_lines({"undo": VIEW}) == []
    says(undo_lines({"undo": VIEW | {"undoable": 2, "lasting": 1}}))
    under_way = {"undone": 1, "left": 2, "since": "2026-11-21T22:00:00.000Z", "by": None}
    says(undo_lines({"undo": VIEW | {"under_way": under_way}}))
    done = {"undone": 1, "failed": 1, "lasting": 9, "stays": list("abcdefghi"), "back_to": 2}
    found = undo_lines({"undo": VIEW | {"done": done, "failed": [NOT], "doubtful": ["x"]}})
    says(found)


def test_show_says_how_to_go_on() -> None:
    failed = {"id": "k1", "status": "rollback_failed", "undo": VIEW | {"failed": [NOT]}}
    assert [line.rpartition("baton ")[2] for _, line in helping(failed)] == ["rollback k1"]
    completed = {"id": "k1", "status": "completed", "undo": VIEW | {"undoable": 1}}
    assert [line.rpartition("baton ")[2] for _, line in helping(completed)] == ["rollback k1 --dry-run"]
    assert not list(helping({"id": "k1", "status": "rolled_back", "undo": VIEW}))


def test_check_says_what_would_be_undone_and_what_stays(says: Says) -> None:
    nodes: list[dict[str, Any]] = [
        {"name": "hold", "tool": "t", "effect": "idempotent", "undo": {"t": "u", "t2": "u"}},
        {"name": "look", "tool": "p", "effect": "pure"},
        {"name": "tell", "tool": "m", "effect": "idempotent"},
        {"name": "wait"},
    ]
    says(undo_declarations({"nodes": nodes}))
    assert undo_declarations({"nodes": nodes[:1]}) == "hold by u"
    assert undo_declarations({"nodes": nodes[1:]}) == ""


def test_check_names_each_inverse_that_may_be_called_where_nothing_has_happened(says: Says) -> None:
    nodes = [
        {"name": "hold", "tool": "t", "effect": "idempotent", "undo": {"t": "u"}, "unverified": ["u", "u"]},
        {
            "name": "seat",
            "tool": "s",
            "effect": "idempotent",
            "undo": {"s": "v", "z": "w"},
            "unverified": ["w"],
        },
        {"name": "pay", "tool": "p", "effect": "once", "undo": {"p": "q"}},
    ]
    says(undo_declarations({"nodes": nodes}))
