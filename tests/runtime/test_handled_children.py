"""Children that fail where a saga above them goes on: none of them asks first, and the log says why."""

from __future__ import annotations

import pytest

from baton.core.log.events import NoticeDue, SagaStarted
from tests.kit.corpus import start
from tests.kit.world import World

CHILD = "name: child\nnodes: {a: {tool: refuse, retry: none}}"
MIDDLE = "name: middle\nnodes: {m: {workflow: child}}"
CAUGHT = "name: w\nnodes: {c: {workflow: %s, catch: h}, h: {value: caught}}\noutput: ${ctx.h.output?}"
TOLERATED = """
name: w
nodes:
  c: {workflow: %s}
  j: {value: tolerated, after: c, join: {tolerated_failures: 1}}
output: ${ctx.j.output?}
"""


async def starts_of(world: World, document: str, child: str = CHILD) -> tuple[dict[str, bool], int, str]:
    """By workflow, whether its start says that a failure is taken; how many were told; the status of `w`."""
    for text in (child, MIDDLE):
        await world.service().register(text, json_only=False)
    saga = await start(world, document, {}, "w")
    await world.settle()
    events = [event for head in world.log.heads() for event in world.events(head.ref.id)]
    handled = {event.workflow: event.handled for event in events if isinstance(event, SagaStarted)}
    asked = sum(isinstance(event, NoticeDue) for event in events)
    return handled, asked, str((await world.queries().show(saga))["status"])


@pytest.mark.parametrize("document", [CAUGHT, TOLERATED])
@pytest.mark.parametrize("name", ["child", "middle"])
async def test_a_child_does_not_ask_where_a_saga_above_goes_on_from_its_failure(
    document: str, name: str
) -> None:
    world = World.start()
    handled, asked, status = await starts_of(world, document % name)
    assert handled == {"w": False, "child": True} | ({"middle": True} if name == "middle" else {})
    assert (asked, status) == (0, "completed")


@pytest.mark.parametrize(
    ("document", "child"),
    [
        ("name: w\nnodes: {c: {workflow: child}}", CHILD),
        (CAUGHT % "child", CHILD + "\non_failure: ask"),
        (CAUGHT % "child", "name: child\nnodes: {a: {tool: refuse, retry: none, on_failure: ask}}"),
    ],
)
async def test_a_child_asks_where_nothing_above_goes_on_or_its_document_says_so(
    document: str, child: str
) -> None:
    world = World.start()
    _, asked, status = await starts_of(world, document, child)
    assert (asked, status) == (1, "waiting")
