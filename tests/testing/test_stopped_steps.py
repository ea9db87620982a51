"""What is stopped while it acts, on the whole engine: however large its arguments are, and when a person does not answer."""

from __future__ import annotations

import asyncio
import random
import string

import pytest

from baton import Context, StepFailure, tool
from baton.testing import run
from baton.tools.define import Registry

SEED = random.Random(1)


def toolbox() -> Registry:
    registry = Registry()

    @tool("texts", registry=registry, effect="pure")
    async def texts(count: int, size: int) -> list[str]:
        return ["".join(SEED.choices(string.ascii_letters, k=size)) for _ in range(count)]

    @tool("hold", registry=registry, undo="release")
    async def hold(who: str, seconds: float, context: Context) -> dict[str, str]:
        await asyncio.sleep(1 + seconds)
        return {"id": "h"}

    @tool("pay", registry=registry, effect="once", undo="release")
    async def pay(who: str, seconds: float, context: Context) -> dict[str, str]:
        await asyncio.sleep(seconds)
        return {"id": "p"}

    @tool("release", registry=registry)
    async def release(who: str) -> None:
        return None

    @tool("boom", registry=registry)
    async def boom() -> None:
        raise StepFailure("bad", "no")

    return registry


@pytest.mark.parametrize(("count", "size"), [(20, 30_000), (90, 7_500)])
def test_a_map_goes_on_without_items_that_were_stopped_however_large_what_they_got_is(
    count: int, size: int
) -> None:
    document = f"""
name: race
on_failure: [rollback]
nodes:
  texts: {{tool: texts, with: {{count: {count + 1}, size: {size}}}}}
  first:
    map: {{over: "${{ctx.texts.output}}", wait_for: 1, rest: cancel, concurrency: {count + 1}}}
    tool: hold
    with: {{who: "${{item}}", seconds: "${{index}}"}}
    after: texts
  last: {{tool: hold, after: first, with: {{who: z, seconds: 1}}}}
"""
    result = run(document, tools=toolbox())
    assert result.status == "completed"
    assert (
        sum(event["kind"] == "step_stopped" for entry in result.entries for event in entry["events"]) == count
    )


@pytest.mark.parametrize("stopped", ["pay", "hold"])
def test_people_on_call_are_told_of_a_stopped_step_that_no_person_has_spoken_about(stopped: str) -> None:
    document = f"""
name: race
on_failure: [rollback]
nodes:
  a: {{tool: hold, with: {{who: a, seconds: 1}}}}
  b: {{tool: {stopped}, with: {{who: b, seconds: 3}}}}
  won: {{value: 1, after: [a, b], join: {{wait_for: any, rest: cancel}}}}
  pause: {{wait: {{for: 1m}}, after: won}}
  z: {{tool: boom, after: pause}}
"""
    result = run(document, tools=toolbox(), answers={"b": None})
    assert result.status == "rollback_failed"
    sent = [key for entry in result.entries for event in entry["events"] for key in event.get("keys") or ()]
    assert any(key.endswith(".b.stopped.left") for key in sent)


@pytest.mark.parametrize(
    "nodes",
    [
        """
  a: {tool: hold, with: {who: a, seconds: 0}}
  b: {tool: hold, with: {who: b, seconds: 5}}
  j: {value: 1, after: [a, b], join: {wait_for: any, rest: cancel}}
""",
        """
  m: {map: {over: [0, 5], wait_for: 1, rest: cancel}, tool: hold, with: {who: a, seconds: "${item}"}}
""",
    ],
    ids=["join", "map"],
)
def test_what_the_end_of_the_saga_itself_stops_is_in_the_log(nodes: str) -> None:
    result = run(f"name: race\nnodes:{nodes}", tools=toolbox())
    assert result.status == "completed"
    last = [event["kind"] for event in result.entries[-1]["events"]]
    assert (last.count("step_stopped"), last[-1]) == (1, "saga_ended")
