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
    ("event", "words"),
    [
        (ev.UndoBegan(reason="sold_out: none", at=T0), "what was done is undone: sold_out: none"),
        (
            ev.UndoBegan(reason="", by="ada", at=T0, back_to=3, together=True),
            "`ada` has it undone, back to version 3, steps side by side",
        ),
        (
            ev.UndoStepBegan(node="pay", item="undo", at=T0, version=5, tool="trip.pay", next=2),
            "is to be undone: what `trip.pay` has done at version 5",
        ),
        (
            ev.UndoStepBegan(node="pay", item="undo-t1-1", at=T0, version=5, tool="trip.pay", again=True),
            "is to be undone, again: turn 1, call 2: what `trip.pay` has done at version 5",
        ),
        (
            ev.UndoPassed(node="tell", version=3, tool="trip.mail"),
            "stays, as nothing undoes it: what `trip.mail` has done at version 3",
        ),
        (ev.ChildUndone(node="a", child="k1", item="undo"), "undone by child k1"),
        (
            ev.ChildUndone(node="a", child="k1", item="undo", failure=ev.Failure("x", "no")),
            "child k1 could not undo all: x: no",
        ),
        (
            ev.StepSucceeded(node="pay", item="undo", tool="trip.refund", output=ev.Value(v=None), **DONE),
            "undone by `trip.refund`",
        ),
        (
            ev.StepFailed(node="pay", item="undo", failure=EXPIRED, stays=True, is_result=True, **FAILED),
            r"could not be undone by `trip.refund`: card_expired: the card\nhas expired",
        ),
        (
            ev.Forked(cut=3, branch=1, by="ada", at=T0, reason="changed", key="k", undo=True, back_to=2),
            "`ada` has undone what the saga has done, back to version 2: changed",
        ),
        (
            ev.SagaEnded(
                status="rollback_failed",
                undone=ev.Undone(done=2, fails=1, lasts=1, doubtful=("x",)),
            ),
            "2 steps undone, 1 step could not be undone, 1 step that nothing undoes, 1 step in doubt  status=rollback_failed",
        ),
    ],
)
def test_an_event_about_undoing_is_a_sentence(event: ev.Event, words: str) -> None:
    (line,) = said(event)
    assert words in line
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
