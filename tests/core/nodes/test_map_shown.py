"""How a map is shown, drawn and explained; and values of it that are blobs."""

from __future__ import annotations

from baton.core.decide.decision import FetchValues
from baton.core.log import events as ev
from baton.core.nodes.map import HELD_BYTES
from baton.core.read.definition_views import graph_view
from baton.core.read.views import saga_view
from tests.core.asked import steps_of
from tests.core.build import Saga, done
from tests.core.nodes.maps import DO, map_of
from tests.core.nodes.test_map import LETTERS, begun, outcome, settled
from tests.core.told import ROOM, story
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain


def test_it_is_shown_with_its_items() -> None:
    saga = begun(map_of(at_once=2))
    settled(saga, done("m#0"))
    shown = {
        f"{one['node']}#{one.get('item', '')}": one
        for one in as_json(saga_view(saga.state, saga.program))["active"]
    }
    assert list(shown) == ["m#", "m#1", "m#2"]
    assert {key: shown["m#"][key] for key in ("state", "items", "begun", "failed")} == {
        "state": "running", "items": 5, "begun": 3, "failed": 0,
    }  # fmt: skip
    assert shown["m#1"]["label"] == "item `1`"


def test_it_is_drawn_with_what_is_done_for_each() -> None:
    (node,) = graph_view(map_of(need=1).graph)["nodes"]
    assert {key: node[key] for key in ("kind", "over", "of", "at_once", "tool")} == {
        "kind": "map", "over": "${input.l}", "of": "task", "at_once": 10, "tool": "t",
    }  # fmt: skip


def test_it_is_explained(says: Says) -> None:
    saga = begun(map_of(at_once=1), ["a"])
    (found,) = as_json(explain(story(saga), "m", ROOM))["iterations"]
    says(found["text"])
    settled(saga, done("m#0"))
    found = {slot: place.end.became for slot, place in story(saga).places.items() if place.end is not None}
    assert found == {"m": "ran", "m#0": "ran"}


def test_it_waits_for_its_items_before_they_begin(says: Says) -> None:
    saga = Saga(map_of(), {"l": LETTERS})
    saga.put(ev.MapBegan(node="m", over=ev.Value(v=LETTERS), size=5))
    (found,) = as_json(explain(story(saga), "m", ROOM))["iterations"]
    says(found["text"])


def test_a_value_is_read_where_it_is_large() -> None:
    saga = Saga(map_of(DO), {"l": LETTERS})
    saga.put(ev.MapBegan(node="m", over=ev.Value(ref="cas://l", size=9), size=2))
    saga.go(blobs={"cas://l": ["a", "b"]})
    assert [step.arguments["x"] for step in steps_of(saga.decision)] == ["a", "b"]
    saga.go(done("m#0", ref="cas://o"), done("m#1", 2), blobs={"cas://l": ["a", "b"], "cas://o": "large"})
    assert outcome(saga) == ["large", 2]


def test_results_that_were_put_together_are_fetched_when_it_is_done() -> None:
    saga = begun(map_of(at_once=3), ["a", "b", "c"])
    saga.put(
        ev.StepSucceeded(
            node="m",
            item="0",
            attempt=1,
            started_at=1,
            ended_at=2,
            tool="t",
            tool_version="",
            schema_hash="",
            output=ev.Value(v=1),
        )
    )
    saga.put(ev.ItemsGathered(node="m", items=(0,), results=ev.Value(ref="cas://part", size=9)))
    decision = saga.go(done("m#1", 2), done("m#2", 3))
    fetch = decision.of(FetchValues)
    assert fetch is not None
    assert fetch.refs == {"cas://part"}
    row = {"index": 0, "status": "succeeded", "output": 1}
    saga.go(done("m#1", 2), done("m#2", 3), blobs={"cas://part": [row]})
    assert outcome(saga) == [1, 2, 3]


def test_large_results_do_not_stay_in_the_state() -> None:
    saga = begun(map_of(at_once=5), list(range(20)))
    most = 0
    for first in range(0, 20, 5):
        settled(saga, *[done(f"m#{n}", "x" * 8_000) for n in range(first, first + 5)])
        most = max(most, sum(value is not None for value in saga.state.items.values()))
    assert outcome(saga) == ["x" * 8_000] * 20
    assert most * 8_000 <= HELD_BYTES


def test_a_map_whose_results_are_too_large_fails_when_that_is_known_and_not_at_its_end(says: Says) -> None:
    saga = begun(map_of(at_once=2), list(range(100)))
    for first in range(0, 6, 2):
        settled(saga, *[done(f"m#{n}", "x" * 1_000_000) for n in range(first, first + 2)])
    assert saga.state.failure is not None
    assert saga.state.failure.code == "value_too_large"
    says(saga.state.failure.message)
