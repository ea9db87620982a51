"""Any leaf is a member of any scope: it runs, fails, runs out of time, is cancelled, and survives a crash behind each write.

Of the writes of a scope with a leaf, `make test` takes every third, from another one on for each; `make soak` all (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding.fold import fold
from baton.core.log.slots import Slot, slot_of
from baton.core.read.story import read_story
from baton.core.read.views import saga_view
from tests.core.build import replay
from tests.core.nodes.members import ACTING, CANNOT, LEAVES, SCOPES, Played, program_of, undone_of
from tests.core.test_fork import fork
from tests.core.told import ROOM
from tests.kit.views import as_json, way

EACH = 1 if os.environ.get("BATON_CRASH_POINTS") else 3
CELLS = list(product(SCOPES, LEAVES))
ENDS = [
    (scope, leaf, fate)
    for scope, leaf in CELLS
    for fate in ("fails", "expires")
    if (leaf, fate) not in CANNOT
]
TOLD_OF = {"time", "signal"}
"""Leaves that give an output when their time is over."""


def writes_of(saga: Played, scope: str, leaf: str) -> range:
    """The numbers of entries behind which something happens."""
    return range(1 + sum(map(ord, scope + leaf)) % EACH, len(saga.entries), EACH)


def end_of(saga: Played) -> tuple[str, Any]:
    assert saga.state.ended is not None
    assert replay(saga.entries) == saga.state
    assert not saga.state.open
    assert not saga.state.items
    assert not saga.state.tokens
    return saga.state.ended.status, saga.state.ended.output.v


@pytest.mark.parametrize(("scope", "leaf"), CELLS)
def test_a_member_runs_and_ends(scope: str, leaf: str) -> None:
    assert end_of(Played(program_of(scope, leaf)).play())[0] == "completed"


@pytest.mark.parametrize(("scope", "leaf", "fate"), ENDS)
def test_a_member_that_fails_or_runs_out_of_time_is_what_its_scope_says(
    scope: str, leaf: str, fate: str
) -> None:
    is_told = scope == "agent" or (
        fate == "expires" and leaf in TOLD_OF and (scope, leaf) != ("function", "signal")
    )
    assert end_of(Played(program_of(scope, leaf), fate).play())[0] == ("completed" if is_told else "failed")
    caught = end_of(Played(program_of(scope, leaf, caught=True), fate).play())
    assert caught[0] == "completed"


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_map_tolerates_a_failed_member_of_any_kind(leaf: str) -> None:
    fate = "expires" if (leaf, "fails") in CANNOT else "fails"
    status, output = end_of(Played(program_of("map", leaf, tolerated=2), fate).play())
    assert status == "completed"
    assert output["failed"] == (0 if fate == "expires" else 2)


@pytest.mark.parametrize(("scope", "leaf", "fate"), [*((*cell, "ok") for cell in CELLS), *ENDS])
def test_a_worker_that_dies_behind_any_write_changes_nothing(scope: str, leaf: str, fate: str) -> None:
    whole = Played(program_of(scope, leaf, caught=True), fate).play()
    for number in writes_of(whole, scope, leaf):
        crashed = Played(program_of(scope, leaf, caught=True), fate, dies_at=number).play()
        assert end_of(crashed) == end_of(whole), number


@pytest.mark.parametrize(("scope", "leaf"), CELLS)
def test_a_saga_that_is_cancelled_takes_its_members_along(scope: str, leaf: str) -> None:
    whole = Played(program_of(scope, leaf)).play()
    for number in writes_of(whole, scope, leaf):
        cancelled = Played(program_of(scope, leaf), cancelled_at=number).play()
        assert end_of(cancelled)[0] in {"cancelled", "completed"}, number


@pytest.mark.parametrize(("scope", "leaf"), CELLS)
def test_a_fork_from_any_cut_comes_to_the_same_end(scope: str, leaf: str) -> None:
    whole = Played(program_of(scope, leaf)).play()
    for number in writes_of(whole, scope, leaf):
        forked = whole.twin()
        fork(forked, number)
        assert end_of(forked.play()) == end_of(whole), number


@pytest.mark.parametrize(("scope", "leaf"), list(product(SCOPES, ACTING)))
def test_what_members_have_done_is_undone_in_reverse_once_each(scope: str, leaf: str) -> None:
    whole = Played(undone_of(scope, leaf)).play()
    assert end_of(whole)[0] == "rolled_back"
    assert [Slot.parse(slot).subject.text for slot in whole.undone] == acted(whole)[::-1]
    for number in writes_of(whole, scope, leaf):
        crashed = Played(undone_of(scope, leaf), dies_at=number).play()
        assert (end_of(crashed)[0], set(crashed.undone)) == ("rolled_back", set(whole.undone)), number


@pytest.mark.parametrize("leaf", ["step", "question", "child"])
def test_a_call_of_any_kind_that_succeeds_shows_that_the_model_is_of_use(leaf: str) -> None:
    saga = Played(program_of("agent", leaf)).play()
    (version,) = (
        one.version
        for one in saga.entries
        for event in one.events
        if isinstance(event, ev.Gives) and event.item == "t1-0"
    )
    before = replace(replay(saga.entries[: version - 1]), corrections={"a": (1, 2)})
    assert fold(before, saga.entries[version - 1]).corrections == {}


def acted(saga: Played) -> list[str]:
    """The slots whose members have ended well, in that order."""
    found = [event for entry in saga.entries for event in entry.events]
    ends = [
        one
        for one in found
        if isinstance(one, ev.StepSucceeded) and one.tool == "leaf" and (one.item or one.iteration)
    ]
    return [one.slot for one in found if one in ends or isinstance(one, ev.ChildClosed)]


@pytest.mark.parametrize(
    ("scope", "slot"), [("agent", "a#t1-0"), ("replan", "a#a1-1"), ("function", "a#leaf")]
)
def test_a_member_that_a_model_asks_for_gets_its_arguments_under_those_of_the_document(
    scope: str, slot: str
) -> None:
    given = {"n": 7, "message": "Of the model", "title": "Mine?"}
    for leaf in ("step", "callback"):
        assert Played(program_of(scope, leaf)).play().called[slot] == given
    (child,) = opened(Played(program_of(scope, "child")).play(), slot)
    assert child.input.v == given
    (graph,) = opened(Played(program_of(scope, "graph")).play(), slot)
    assert graph.input.v == {"input": given}
    (question,) = opened(Played(program_of(scope, "question")).play(), slot)
    assert (question.ask.title, question.ask.message) == ("May it?", "Of the model")


WORDS = {
    "time": "2023-11-14T23:13:20.000Z",
    "signal": "the signal `go`",
    "question": "an answer to the question",
    "callback": "the callback `0.",
    "child": "the child saga `s1.0.",
    "graph": "the child saga `s1.0.",
}


@pytest.mark.parametrize(("scope", "leaf"), [(scope, leaf) for scope, leaf in CELLS if leaf in WORDS])
def test_an_open_member_is_shown_and_explained_by_its_work(scope: str, leaf: str) -> None:
    saga = Played(program_of(scope, leaf)).play()
    opens = [
        (one.version, event.slot)
        for one in saga.entries
        for event in one.events
        if isinstance(event, ev.Opens)
    ]
    version, slot = next((at, one) for at, one in opens if "#" in one or scope == "round")
    entries = saga.entries[:version]
    state = replay(entries)
    (shown,) = (one for one in as_json(saga_view(state, saga.program))["active"] if place_of(one) == slot)
    assert shown["state"] == {"question": "asking", "child": "child", "graph": "child"}.get(leaf, "waiting")
    told = as_json(way(read_story(saga.program, state, entries), 0, 99, ROOM))["open"]
    texts = [one["text"] for one in told]
    assert any(WORDS[leaf] in text for text in texts), texts


def place_of(shown: Mapping[str, Any]) -> str:
    return slot_of(shown["node"], tuple(shown["iteration"]), shown.get("item", ""))


def opened(saga: Played, slot: str) -> list[Any]:
    found = [event for entry in saga.entries for event in entry.events]
    return [event for event in found if isinstance(event, ev.Opens) and event.slot == slot]
