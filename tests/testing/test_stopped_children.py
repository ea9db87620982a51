"""Children that are stopped, on the whole engine: what they have done by then is undone with their parent, and only where there is something."""

from __future__ import annotations

from typing import Any

import pytest

from baton.testing import Result, run
from tests.testing.test_stopped_steps import toolbox

RACE = """
name: race
on_failure: [rollback]
graphs:
  order:
    nodes:
      h: {tool: hold, with: {who: h, seconds: 0}}
      p: {tool: %s, with: {who: p, seconds: 9}, after: h}
nodes:
  g: {graph: order}
  w: {wait: {for: 4s}}
  j: {value: 1, after: [g, w], join: {wait_for: any, rest: cancel}}
  y: {wait: {for: 1m}, after: j}
  z: {tool: boom, after: y}
"""


def seen(result: Result) -> list[str]:
    return [str(event["kind"]) for entry in result.entries for event in entry["events"]]


@pytest.mark.parametrize("tool", ["pay", "hold"])
@pytest.mark.parametrize("said", ["retry", {"action": "use", "output": {"id": "p"}}])
def test_a_person_is_asked_in_the_child_about_what_was_stopped_there(tool: str, said: Any) -> None:
    result = run(RACE % tool, tools=toolbox(), answers={"p": said})
    assert (result.status, result.undone) == ("rolled_back", ["g"])
    (child,) = result.children
    assert child["status"] == "rolled_back"
    assert child["undo"]["done"]["undone"] == (1 if said == "retry" else 2)


def test_a_graph_of_which_nothing_can_be_undone_leaves_no_trace() -> None:
    text = (RACE % "boom").replace("tool: hold, with: {who: h, seconds: 0}", "value: 1")
    result = run(text.replace("tool: boom, with: {who: p, seconds: 9}", "wait: {for: 1h}"), tools=toolbox())
    assert (result.status, result.undone) == ("failed", [])
    assert not {"step_stopped", "undo_began"} & set(seen(result))


def test_a_child_that_had_not_come_to_what_can_be_undone_leaves_the_saga_failed() -> None:
    text = (RACE % "pay").replace("tool: hold, with: {who: h, seconds: 0}", "wait: {for: 1h}")
    result = run(text, tools=toolbox())
    assert (result.status, result.undone, result.questions) == ("failed", [], [])
    assert seen(result)[-2:] == ["child_undone", "saga_ended"]
