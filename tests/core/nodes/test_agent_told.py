"""What people are told of an agent: its turns and calls by their numbers and tools, while it is at work and afterwards."""

from __future__ import annotations

from typing import Any

from baton.core.log.events import failed_with
from baton.core.log.scopes import Called, calls_words, item_words
from baton.core.read.costs import ModelCosts
from baton.core.read.explain import STATES
from baton.core.read.places import SHOWN
from baton.core.read.views import saga_view
from tests.core.build import Saga, failed
from tests.core.nodes.thinking import answered, call, outcome, thinking
from tests.core.told import ROOM, story, whole
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain, way

LOOK = "turn 1, call 1 (look)"


def asked() -> Saga:
    """The calls of its first turn are made."""
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1), call("look", n=2)))
    return saga


def active(saga: Saga) -> list[tuple[str, str]]:
    found = as_json(saga_view(saga.state, saga.program))["active"]
    return [(one.get("label", ""), one["state"]) for one in found]


def texts(saga: Saga) -> list[tuple[str, str]]:
    return [(one["became"], one["text"]) for one in as_json(way(story(saga), 0, 100, ROOM))["steps"]]


def test_an_item_is_a_turn_or_a_call_of_it() -> None:
    assert item_words("t12") == "turn 12"
    assert item_words("t12-0") == "turn 12, call 1"
    assert item_words("t12-3", "table.hold") == "turn 12, call 4 (table.hold)"
    assert item_words("anna", "table.hold") == "anna"


def test_calls_that_are_not_made_say_why(says: Says) -> None:
    calls = [
        Called(item="t2-0", tool="look"),
        Called(item="t2-1", tool="look", repeats="t1-0"),
        Called(item="t2-2", tool="luk", failure=failed_with("call_not_allowed", "no")),
    ]
    says(calls_words(calls))


def test_an_agent_at_work_says_at_which_turn_and_which_call(says: Says) -> None:
    saga = thinking()
    assert active(saga) == [("", "running"), ("turn 1", "ready")]
    says([one["text"] for one in as_json(way(story(saga), 0, 10, ROOM))["open"]])
    saga = asked()
    assert active(saga) == [("", "running"), (LOOK, "ready"), ("turn 1, call 2 (look)", "ready")]
    (found,) = whole(saga, "a")
    assert found["state"] == "running"
    says(found["text"])
    says([one["text"].partition(" of")[0] for one in found["items"]])


def test_a_call_that_is_tried_again_is_named() -> None:
    saga = asked()
    saga.go(failed("a#t1-0", "timeout"), running=["a#t1-1"])
    (failing,) = as_json(saga_view(saga.state, saga.program))["failing"]
    assert (failing["item"], failing["label"]) == ("t1-0", LOOK)


def test_the_way_of_a_saga_has_what_each_turn_asked_for_and_what_came_of_it(says: Says) -> None:
    saga = asked()
    saga.go(failed("a#t1-0", "business_rule"), running=["a#t1-1"])
    saga.go(outcome("a#t1-1", "two"))
    saga.go(answered("a#t2", call("look", n=2)))
    saga.go(answered("a#t3", data="done"))
    (refused,) = [text for became, text in texts(saga) if became == "failed"]
    assert refused.startswith(f"{LOOK}: business_rule")
    says([one for one in texts(saga) if one[0] != "failed"])
    steps = as_json(way(story(saga), 0, 100, ROOM))["steps"]
    assert {one["became"] for one in steps} <= set(STATES), "they are described to the outside"
    assert [one["by"] for one in steps] == [[], [], [], [], [], [""]]
    (found,) = as_json(explain(story(saga), "a", ROOM))["iterations"]
    assert [one["text"] for one in found["items"]] == [text for _, text in texts(saga)[:-1]]


def test_an_agent_that_is_stopped_says_what_it_was_at(says: Says) -> None:
    saga = asked()
    saga.cancel()
    says(whole(saga, "a")[0]["text"])


def test_of_many_turns_the_first_and_the_last_are_shown() -> None:
    saga = thinking(more=", turns: 100")
    for turn in range(1, 40):
        saga.go(answered(f"a#t{turn}", call("look", n=turn)))
        saga.go(outcome(f"a#t{turn}-0", turn))
    (found,) = whole(saga, "a")
    items: list[dict[str, Any]] = found["items"]
    assert (len(items), items[0]["item"], items[1]["item"], items[-1]["item"]) == (
        SHOWN,
        "t1",
        "t16",
        "t40",
    )


def test_turns_and_calls_are_steps_of_a_bill() -> None:
    saga = asked()
    saga.go(failed("a#t1-0", "business_rule"), running=["a#t1-1"])
    costs = ModelCosts()
    for entry in saga.entries:
        costs.add(entry)
    assert costs.agent_steps == 2
