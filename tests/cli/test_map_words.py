"""What `baton events` says of maps, and how `baton show` counts their items."""

from __future__ import annotations

from typing import Any

from baton.cli.text.render import EventLines, _active
from baton.core.log import events as ev
from baton.core.read.views import entry_view
from tests.kit.sentences import Says

T0 = 1_795_458_562_846
RAN: dict[str, Any] = {
    "node": "m", "item": "3", "attempt": 1, "started_at": T0, "ended_at": T0, "tool": "t", "tool_version": "1", "schema_hash": "",
}  # fmt: skip


def said(*events: ev.Event) -> list[str]:
    entry = ev.Entry(version=2, branch=0, at=T0, epoch=1, invocation="i", events=events)
    return [" ".join(str(line)[21:].split()) for line in EventLines().of(entry_view(entry))][1:]


def test_what_a_map_does_is_said_in_sentences() -> None:
    failure = ev.Failure("map_failed", "2 of 3 items have failed", "m")
    found = said(
        ev.MapBegan(node="m", over=ev.Value(v=[1, 2, 3]), size=3),
        ev.ItemsBegan(node="m", first=0, count=1, at=T0),
        ev.ItemsBegan(node="m", first=1, count=2, at=T0),
        ev.ItemsGathered(node="m", items=(0, 1), results=ev.Value(v=[])),
        ev.MapStopped(node="m", failure=failure, batch=ev.Value(v={})),
        ev.MapClosed(node="m", output=ev.Value(v=[]), succeeded=2, stopped=1),
        ev.MapClosed(node="m", output=ev.Value(v=[])),
    )
    words = [
        "begins with 3 items", "item 0 begins", "items 1 to 2 begin", "the results of 2 items are put together",
        "cannot be done any more: map_failed: 2 of 3 items have failed", "done: 2 succeeded, 1 stopped", "done: no items",
    ]  # fmt: skip
    assert [one for one, line in zip(words, found, strict=True) if one not in line] == []


def test_an_item_is_named_by_its_index(says: Says) -> None:
    done, failed = said(
        ev.StepSucceeded(**RAN, output=ev.Value(v=5)),
        ev.StepFailed(**RAN, failure=ev.Failure("sold_out", "none left"), is_result=True),
    )
    assert "item 3" in done
    says(failed)


def test_many_items_are_counted_and_few_are_named() -> None:
    node: dict[str, Any] = {"node": "m", "iteration": [], "state": "running"}
    items = [{**node, "item": str(index), "label": f"item `{index}`"} for index in range(6)]
    assert _active({"active": [node, *items]}) == ["m (6 items at work)"]
    assert _active({"active": [node, *items[:2]]}) == ["m (item `0`, running)", "m (item `1`, running)"]
